"""The experiments of the SDLDP paper, done again through the estimators of dpestim; `..reproduce_sdldp` runs them.

Y. Chen, Y. Ye, M. Zhang, B. Shu, "SDLDP: A Local Differential Private Framework for Multi-level Sensitive Data"
(DOI 10.19363/J.cnki.cn10-1380/tn.2025.07.10). What the paper states is followed: the mechanisms, epsilon from 0.1 to
1.0, high-sensitive shares of 25, 50 and 75 % of the *values*, personalised users at 40, 30 and 30 %, the squared error
of unbiased frequencies, the mean of a distribution fitted by expectation maximisation (EM) from uniform shares, stopped
where an iteration (here: the average of ten) adds less than e^epsilon / 1000 to the log-likelihood of all reports. What
it leaves open is chosen here, once:

* which values are high-sensitive (`data.py` lists each attribute's values from the most sensitive on), and that a share
  of them is rounded half up;
* the squared error of frequencies is the mean over all values, and, beside it, over the high and the low ones;
* bins of EM: 64. The low interval's cells are as wide. The paper too cuts outputs into cells before EM, so that what
  it fits is what the *discretised* form sends;
* where the data are not to be had: UCI Adult in place of the 1990 census (16 values of education, not 18).

Files: `data.py` (attributes and columns), `categories.py` (Figures 2, 5, 6 and 9), `numbers.py` (Figures 4, 7 and 8,
and whose gain it is), `games.py` (who can be told from whom), `figures.py` (pictures), `claims.py` (the table).
"""

#: The paper's budgets.
EPSILONS = tuple(k / 10 for k in range(1, 11))
#: High-sensitive shares of the values, and the shares of the personalised users who choose them.
SHARES = {25: 0.4, 50: 0.3, 75: 0.3}
