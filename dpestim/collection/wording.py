"""What a survey promises, in plain words for the person who is asked.

A reader works the text out again and compares it, so that the words of a version of the format never change: other
words need another version of the format.
"""

import math

from dpestim.privacy.text import bound, odds, posterior


def text_of(guarantee, *, bits, n_columns, n_sampled, states, permanent, hides=False):
    """Return the text, of sentences that follow from the guarantee.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        Of one report.
    bits : int
        Of a report.
    n_columns, n_sampled : int, int or None
        How many columns there are, and how many of them a person reports.
    states : bool
        Whether clients keep answers between reports.
    permanent : Fraction, math.inf or None
        Epsilon of any number of reports of answers that never change, where clients keep them.
    hides : bool, default=False
        Whether one answer is told among made-up ones.
    """
    told = _of_one(guarantee, n_columns) if hides else _what_it_tells(guarantee)
    return " ".join([*_what_leaves(bits, n_columns, n_sampled), *told, *_more(states, permanent),
                     "Not hidden are: that you took part, when, and from which network address the report came."])


def _what_leaves(bits, n_columns, n_sampled):
    size = "1 bit" if bits == 1 else f"{bits} bits"
    yield f"Your answers stay on your device. What leaves the device is a report of {size}, drawn at random there."
    if n_sampled is not None:
        yield (f"The device first draws {n_sampled} of the {n_columns} parts of your answers, without a look at them, "
               "and reports on these only. The report says which parts were drawn.")


def _what_it_tells(guarantee):
    if guarantee.epsilon != math.inf:
        yield "Every report that your device can send could also have come from any other answers."
        yield _times(guarantee.epsilon, "any other answers")
    else:
        yield "A report can show for certain that you have, or do not have, some of the answers."
    if guarantee.relaxation is not None:
        yield ("More is promised about some answers only. The name of this promise says which answers: "
               f"{guarantee.relaxation}. For these answers the following holds.")
        yield _times(guarantee.relaxed_epsilon, "the other answers")


def _of_one(guarantee, n_columns):
    yield (f"The device first draws one of the {n_columns} parts of your answers, without a look at them. The report "
           "is drawn from your answer to this part and from made-up answers to the other parts. The report does not "
           "say which part was drawn.")
    yield "Every report that your device can send could also have come from any other answers."
    yield _times(guarantee.epsilon, "any other answers")
    if guarantee.relaxation is not None:
        yield "More is promised about answers that differ from yours in one part only."
        yield _times(guarantee.relaxed_epsilon, "those answers")


def _times(epsilon, others):
    size, amount = odds(epsilon).removeprefix(" = "), bound(epsilon)
    return (f"No report is more than {size or f'e^{amount}'} times as likely with your answers as with {others} "
            f"(epsilon = {amount}). A person who thought two answers equally likely before the report can be at most "
            f"{posterior(epsilon)} percent sure of one of them after the report.")


def _more(states, permanent):
    if not states:
        yield "If you report again, the epsilons of your reports add up."
        return
    if permanent == math.inf:
        yield ("The device keeps something about your answers, and draws its reports from that. No bound is promised "
               "for several of your reports together. They can show that an answer has changed.")
        return
    yield ("The device keeps a random answer in place of yours, and draws all of its reports from that random answer. "
           "As long as your answers stay the same, all of your reports together have an epsilon of at most "
           f"{bound(permanent)}. Reports can show that an answer has changed. If an answer changes, your reports can "
           "together tell more than the sum of their epsilons.")
