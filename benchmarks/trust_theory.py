"""What the page of trust models says in words: who is trusted, what is asked, what is proven and by whom."""

TRUST = {
    "local": ("nobody", "one noisy report", "who sent which report"),
    "shuffle, one message": ("the shuffler, and that most users follow the protocol",
                             "one noisy message, to the shuffler", "all messages in random order"),
    "shuffle, several messages": ("the shuffler, and that most users follow the protocol",
                                  "several messages, to the shuffler", "all messages of all users in random order"),
    "central": ("the curator, who holds all rows", "the true value, to the curator", "the noisy result"),
}

INTRODUCTION = """# What trust costs

Who adds the noise decides how large the error is. This page measures six problems under four kinds of trust, with the
estimators of dpestim. `python -m benchmarks.trust_models --write` writes the page, [its figures](_static/trust_models.json)
and the picture.

![Error over the number of users at epsilon 1, for six problems and four kinds of trust](_static/trust_models.svg)

Marks are measured, lines are predicted from the exact variances of the estimators. In the shuffle model and for vectors
under a curator delta is {delta:g}; all other results are pure. Neighbours are rows of one user that are replaced. In
the tables:

* *measured* is the root of the mean squared error over runs with fresh noise on the same rows, in users,
* *predicted* is what the variance of the law gives for these rows,
* *literature* is the error that a published proof promises, with its constant, where the proof covers the setting.

A dash says that there is no such figure: the proof needs more users or a smaller epsilon, or gives no constant."""

QUESTIONS = {
    "count": "How many users answer yes? 30 % do.",
    "sum": "What is the sum of the users' numbers in [0, 1]? The numbers are spread evenly.",
    "histogram": "How many users hold each of 100 categories? Zipf's law says how many. The error is that of one category.",
    "selection": "Which of 32 attributes do most users have? One attribute has 60 %, all others have 50 %. The figures are "
                 "shares of runs that choose the right attribute: higher is better.",
    "mean of vectors": "What is the sum of the users' vectors, of 16 entries and length 1? The error is the Euclidean length "
                       "of the difference.",
    "learning": "Which of two classes does a user belong to? Naive Bayes from eight binary features, each of which agrees with "
                "the class for 65 % of users. The figures are the accuracy that is lost beside naive Bayes without privacy. "
                "Accuracy is not linear in the counts, so that no variance predicts it.",
}

#: (problem, model) -> the rate, its constant where one is known, and who proved it.
KNOWN = {
    ("count", "local"): "√n e^(ε/2) / (e^ε − 1), exactly that of randomised response; no local protocol is better than "
                        "of order √n (Beimel, Nissim, Omri 2008; Chan, Shi, Song 2012)",
    ("count", "shuffle, one message"): "√(32 ln(4/δ)) / ε for many users and ε < 1 (Cheu et al. 2019). With δ = 0 one message "
                                       "is no better than the local model (Balcer, Cheu 2020)",
    ("count", "shuffle, several messages"): "√2 / ε, the error of the central model (Ishai et al. 2006; Balle et al. 2020)",
    ("count", "central"): "√2 / ε (Dwork et al. 2006)",
    ("sum", "local"): "√n (e^ε + 1) / (2 (e^ε − 1)) at most (Duchi, Jordan, Wainwright 2018); of order √n at least",
    ("sum", "shuffle, one message"): "of order n^(1/6), which is the best for one message; the constant holds for ε ≤ 1 "
                                     "(Balle et al. 2019)",
    ("sum", "shuffle, several messages"): "√2 / ε, the error of the central model (Ishai et al. 2006; Balle et al. 2020)",
    ("sum", "central"): "√2 / ε (Dwork et al. 2006)",
    ("histogram", "local"): "2 √n e^(ε/2) / (e^ε − 1) for a rare category (Wang et al. 2017)",
    ("histogram", "shuffle, one message"): "√(14 ln(2/δ)) / ε for many users and ε ≤ 1 (Balle et al. 2019)",
    ("histogram", "shuffle, several messages"): "depends neither on users nor on categories (Balcer, Cheu 2020); their constants "
                                                "are for the largest error of all categories, and are not compared",
    ("histogram", "central"): "2 √2 / ε (Dwork et al. 2006)",
    ("selection", "local"): "b attributes need users of order b log b / (e^ε − 1)² (Ullman 2018, as the survey cites it)",
    ("selection", "shuffle, one message"): "users of order b^(1/17) at least (Cheu et al. 2019, as the survey cites it); no "
                                           "matching protocol is known to us",
    ("selection", "shuffle, several messages"): "users of order √b at least (Cheu, Ullman 2021). `RealSum` splits ε among the "
                                                "attributes, and needs of order b",
    ("selection", "central"): "users of order log b (McSherry, Talwar 2007; Bafna, Ullman 2017)",
    ("mean of vectors", "local"): "√n √π d Γ((d+1)/2) / (2 Γ(d/2+1)) · (e^ε + 1) / (e^ε − 1) at most "
                                  "(Duchi, Jordan, Wainwright 2018)",
    ("mean of vectors", "shuffle, one message"): "the square is of order d n^(d/(d+2)), which is the best for one message "
                                                 "(Asi et al. 2024); no constant",
    ("mean of vectors", "shuffle, several messages"): "the square is of order d / ε² up to logarithms with about min(n ε², d) "
                                                      "messages (Asi et al. 2024). `RealSum` splits ε among the d entries: "
                                                      "2 √2 d^(3/2) / ε",
    ("mean of vectors", "central"): "2 √d √(2 ln(1.25/δ)) / ε for ε ≤ 1 (Dwork, Roth 2014); the exact Gaussian law needs less "
                                    "(Balle, Wang 2018)",
    ("learning", "local"): "of convex losses: excess of order √(d / n) / ε (Duchi, Jordan, Wainwright 2013); of naive Bayes "
                           "nothing",
    ("learning", "shuffle, one message"): "nothing that is known to us for one round with one message",
    ("learning", "shuffle, several messages"): "of convex losses, in several rounds: between local and central, at times as "
                                               "central (Cheu, Joseph, Mao, Peng 2022); of naive Bayes nothing",
    ("learning", "central"): "of convex losses: excess of order √d / (n ε) beside the best model of the rows (Bassily, Smith, "
                             "Thakurta 2014); of naive Bayes nothing",
}

OUTRO = """## How to read the figures

* Behind a shuffler the error of counts, sums and histograms does not grow with users, or hardly. In the local model it
  grows with the root of the number of users.
* One message a user is enough for counts and histograms. Sums of numbers need several messages for the error of the
  central model.
* For selection and for vectors the shuffle model is closer to the local model than to the central one. `RealSum` splits
  epsilon among the columns; with many users one message by `ShuffledEstimator` may be better, and the tables show where.
* What `RealSum` sends with several messages is many bits, and protects nothing if the shuffler fails. `BooleanSum` and
  `ShuffledEstimator` keep a local epsilon, which `privacy_` states.

A cell has {least} to {most} runs. {far}."""
