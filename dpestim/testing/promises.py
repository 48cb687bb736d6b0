"""One check of any law against what it promises, be it plain or relaxed, of categories or of numbers.

A promise (inputs, others, outputs, epsilon) says: for x of the kind `inputs`, x' of the kind `others` and every output
y of the kind `outputs`, P[y|x] <= e^epsilon P[y|x']. It speaks in one direction; the reverse is another promise. The
kind "all" is everything, and epsilon may be infinite. A plain law promises ("all", "all", "all", epsilon) alone.
"""

import math
from fractions import Fraction

import numpy as np

from dpestim.privacy.divergence import worst_ratio
from dpestim.privacy.exact import LEAST_USE, canonical_epsilon, log_ratio, uses_enough, within
from dpestim.testing.tools import client_of, require

#: A worst ratio that does not come from the matrix may be larger by this factor.
_NEARLY = 1 + Fraction(1, 10**6)
EVERY = ("all", "all", "all")


def check_promises(sample):
    """A law keeps what it promises, exactly, and uses it; what is not named as relaxed has the declared epsilon."""
    share = canonical_epsilon(sample.estimator.epsilon) / sample.n_reported
    for column in sample.columns:
        law = column.randomizer
        inputs, outputs = law.input_kinds(), law.output_kinds()
        plain = keeps_promises(column.whole, law.promises, inputs, outputs, law.slack)
        require(plain == law.plain_epsilon, "plain_epsilon is not what is promised to all")
        require(law.epsilon <= share, "the columns' epsilons add up to more than epsilon")
        require(law.slack or law.epsilon >= LEAST_USE * share, "much less than epsilon is used, without a slack")
        require(law.relaxation or plain == law.epsilon, "where epsilon does not hold for all a relaxation is named")
        if law.relaxation and law.relaxed_kind == "all":
            _keeps_between(column.whole, law)
            continue
        full = inputs != law.relaxed_kind if law.relaxation else np.ones(len(inputs), bool)
        worst = worst_ratio(column.whole, full, full, np.ones(len(outputs), bool))
        require(at_most(worst, law.epsilon), "inputs that no relaxation names are told apart by more than epsilon")


def _keeps_between(whole, law):
    """Require that any two inputs are told apart by no more than the relaxation promises for them."""
    everywhere, n = np.ones(whole.shape[1], bool), len(whole)
    for x in range(n):
        for other in range(n):
            worst = worst_ratio(whole, np.arange(n) == x, np.arange(n) == other, everywhere)
            require(at_most(worst, law.relaxed_between(x, other)), "two inputs are told apart by more than the "
                    "relaxation promises for them")


def check_declared_inputs(sample):
    """The inputs with less protection are those that the parameter of the relaxation names; so says its name."""
    client, est, names = client_of(sample.estimator), sample.fresh(), []
    for number, column in enumerate(est._columns_now(sample.rows(1).shape[1])):
        law = column.law
        require(column.n_joint is None or law.relaxation is None, "no relaxation of a joint law is known")
        if column.n_joint:
            continue
        values = sample.kind.probes(client, number)
        codes = column.coder()(column.read(values, None, True))
        relaxed = law.kind_of(np.array(codes)) == law.relaxed_kind if law.relaxation else np.zeros(len(values), bool)
        declared = sample.kind.declared_relaxed(client, number, values)
        require(np.array_equal(relaxed, declared), "other inputs have less protection than the parameters say")
        if declared.any():
            inputs = sample.kind.relaxed_inputs(client, number)
            names.append(f"{law.relaxation}(column {number}: {law.relaxed_kind}={inputs})")
    stated = est.fit(sample.rows(9)).privacy_.relaxation
    require(stated == (" x ".join(names) or None), f"the relaxation must be named {' x '.join(names) or None}")


def check_worst_ratio(sample):
    """What a law says of its worst ratio, for any size, is that of its matrix; a millionth more at most, never less."""
    for column in sample.columns:
        inputs, outputs = (np.ones(n, bool) for n in column.whole.shape)
        worst = worst_ratio(column.whole, inputs, inputs, outputs)
        try:
            stated = column.randomizer.worst_ratio()
        except ValueError:  # a law with a public part may leave it out
            continue
        near = stated == worst if math.inf in (stated, worst) else worst <= stated <= worst * _NEARLY
        require(near, "worst_ratio must be the largest ratio of two entries of a column of the law, or little more")


def keeps_promises(matrix, promises, input_kinds, output_kinds, slack=""):
    """Require that a law keeps what it promises, uses it, and leaves nothing unsaid; return the plain epsilon.

    * each promise holds, exactly;
    * none is idle: 0.99 of a finite epsilon is used, and an infinite one is needed, unless `slack` says why not;
    * ("all", "all", "all") is promised once: that is the plain epsilon, which no other promise exceeds;
    * every pair of kinds of inputs is covered at every kind of outputs: by a finite promise, or by a ratio that really
      is infinite. So nothing is called unprotected that is protected.

    Parameters
    ----------
    matrix : list of lists, or array, of Fraction or int
        Row x is the law of the report of input x, up to one common factor (`as_integers` is quicker to compare).
    promises : iterable of (inputs, others, outputs, epsilon)
        Kinds by name; epsilon a Fraction, an int or ``math.inf``.
    input_kinds, output_kinds : array-like of str
        The kind of each row and of each column.
    slack : str
        Why less than 0.99 of an epsilon is used, where that is so.
    """
    rows, columns = np.asarray(input_kinds), np.asarray(output_kinds)
    require(rows.shape == (len(matrix),), "input_kinds must name a kind for each row of the law")
    require(columns.shape == (len(matrix[0]),), "output_kinds must name a kind for each column of the law")
    promises, whole = [tuple(p) for p in promises], np.array(matrix, dtype=object)
    for inputs, others, outputs, epsilon in promises:
        name = f"({inputs}, {others}, {outputs}, {float(epsilon):g})"
        one, two, at = (_of(kind, kinds) for kind, kinds in ((inputs, rows), (others, rows), (outputs, columns)))
        require(all(mask.any() for mask in (one, two, at)), f"the promise {name} is about a kind that does not exist")
        exact = isinstance(epsilon, Fraction | int) and not isinstance(epsilon, bool) and epsilon >= 0
        require(exact or epsilon == math.inf, f"the promise {name} needs an exact epsilon, or an infinite one")
        worst = worst_ratio(whole, one, two, at)
        require(at_most(worst, epsilon), f"the promise {name} is broken: {_logarithm(worst)} is seen")
        require(slack or _is_used(worst, epsilon), f"the promise {name} is idle: only {_logarithm(worst)} is seen")
    plain = [p[3] for p in promises if p[:3] == EVERY]
    require(len(plain) == 1, "a law must promise ('all', 'all', 'all', epsilon) once")
    require(all(p[3] <= plain[0] for p in promises), "a promise exceeds the plain epsilon")
    _require_covered(whole, promises, rows, columns)
    return plain[0]


def _require_covered(whole, promises, rows, columns):
    finite = [p for p in promises if p[3] != math.inf]
    for a in dict.fromkeys(rows.tolist()):
        for b in dict.fromkeys(rows.tolist()):
            for c in dict.fromkeys(columns.tolist()):
                if not any(p[0] in ("all", a) and p[1] in ("all", b) and p[2] in ("all", c) for p in finite):
                    worst = worst_ratio(whole, rows == a, rows == b, columns == c)
                    require(worst == math.inf, f"({a}, {b}, {c}) is protected, and no promise says so")


def at_most(ratio, epsilon):
    """Tell whether ratio <= e^epsilon is certain."""
    if math.inf in (ratio, epsilon):
        return epsilon == math.inf
    return ratio <= 1 or within(ratio.numerator, ratio.denominator, epsilon)


def _is_used(ratio, epsilon):
    if math.inf in (ratio, epsilon):
        return ratio == epsilon
    return not epsilon or uses_enough(ratio.numerator, ratio.denominator, epsilon)


def _of(kind, kinds):
    return np.ones(len(kinds), bool) if kind == "all" else kinds == kind


def _logarithm(ratio):
    """Return ln(ratio) for a message."""
    return float("inf") if ratio == math.inf else log_ratio(ratio, 1) if ratio else float("-inf")


CHECKS = (check_promises, check_worst_ratio, check_declared_inputs)
