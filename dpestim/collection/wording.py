"""What a survey promises, in plain words for the person who is asked, in the person's language.

A reader works the text out again and compares it, so that the words of a version of the format never change: other
words need another version of the format. The words are in ``dpestim/privacy/strings.toml``.
"""

import math
from fractions import Fraction

from dpestim.privacy.chances import chances_of, guessed
from dpestim.privacy.languages import language as language_of
from dpestim.privacy.text import bound, odds, posterior

#: Questions with different numbers of answers that a text is about.
_MOST_QUESTIONS = 3


def text_of(guarantee, *, bits, n_columns, n_sampled, states, permanent, hides=False, language=None, answers=()):
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
    language : str or None, default=None
        Of the text. None: English without whole numbers out of 100, as in surveys of versions 1.0 and 1.1.
    answers : iterable of int, default=()
        How many answers each column of categories has.
    """
    text = _Text(language_of(language or "en"), language is not None)
    told = text.of_one(guarantee, n_columns) if hides else text.what_it_tells(guarantee)
    return " ".join([*text.what_leaves(bits, n_columns, n_sampled), *told, *text.guesses(guarantee.epsilon, answers),
                     *text.more(states, permanent), text.say("survey.not_hidden")])


class _Text:
    def __init__(self, say, is_counted):
        self.say, self._is_counted = say, is_counted

    def what_leaves(self, bits, n_columns, n_sampled):
        yield self.say(f"survey.leaves.{'one' if bits == 1 else 'other'}", bits=bits)
        if n_sampled is not None:
            yield self.say("survey.sampled", some=n_sampled, all=n_columns)

    def what_it_tells(self, guarantee):
        if guarantee.epsilon != math.inf:
            yield self.say("survey.any")
            yield from self._times(guarantee.epsilon, "any")
        else:
            yield self.say("survey.certain")
        if guarantee.relaxation is not None:
            yield self.say("survey.relaxed", relaxation=guarantee.relaxation)
            yield from self._times(guarantee.relaxed_epsilon, "the")

    def of_one(self, guarantee, n_columns):
        yield self.say("survey.hides", all=n_columns)
        yield self.say("survey.any")
        yield from self._times(guarantee.epsilon, "any")
        if guarantee.relaxation is not None:
            yield self.say("survey.one_part")
            yield from self._times(guarantee.relaxed_epsilon, "those")

    def guesses(self, epsilon, answers):
        """Yield what somebody gains who guesses an answer, for questions with few answers."""
        sizes = sorted({n for n in answers if n > 1})[:_MOST_QUESTIONS]
        if not self._is_counted or epsilon == math.inf:
            return
        for n in sizes:
            found = guessed(Fraction(epsilon), n)
            if found is not None:
                base, before, after = map(self.say.count, found)
                yield self.say("survey.guess", answers=self.say.count(n), base=base, x=before, y=after)

    def more(self, states, permanent):
        if not states:
            yield self.say("survey.add_up")
        elif permanent == math.inf:
            yield self.say("survey.keeps")
        else:
            yield self.say("survey.permanent", epsilon=self.say.number(bound(permanent)))

    def _times(self, epsilon, others):
        size, amount, percent = odds(epsilon).removeprefix(" = "), bound(epsilon), posterior(epsilon)
        others = self.say(f"survey.others.{others}")
        yield self.say("survey.times", times=self.say.number(size or f"e^{amount}"), others=others,
                       epsilon=self.say.number(amount),
                       percent=self.say.number(percent) if percent[0].isdigit() else self.say("survey.nearly"))
        found = chances_of(epsilon) if self._is_counted else None
        if found is not None:
            base, x, y = map(self.say.count, found[:3])
            yield self.say("survey.worlds", base=base, x=x, y=y, others=others)
