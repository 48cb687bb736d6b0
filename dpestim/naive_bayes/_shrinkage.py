"""How much of a difference between classes is more than noise: a function of released numbers and known variances.

A column that noise drowns would speak as loudly as one that tells classes apart, and naive Bayes adds up what all of
them say. So what classes say apart from all rows together shrinks towards that, by empirical Bayes.
"""

import numpy as np

#: The most standard deviations of its own error by which the spread of differences is taken as less.
_CAUTION = 3.0
#: The variance of the square of Laplace noise, in squares of its variance; of normal noise it is 2.
_TAIL = 5.0


def noise_apart(n, variance):
    """Return the variance of noise in (sum / n of a class, less that of all rows), from that of a sum.

    Parameters
    ----------
    n : ndarray of shape (n_classes, 1)
        Rows of each class.
    variance : float or ndarray of shape (n_columns,)
    """
    total = n.sum()
    return variance * ((1 / n - 1 / total) ** 2 + (len(n) - 1) / total**2)


def kept_of(differences, variances):
    """Return the part of each difference that is kept, from 0 to 1, of the shape of both.

    The spread t of true differences is what squares are more than noise, on a mean in which a number counts by its
    precision, or the square of it, less what that mean errs by; then t / (t + variance) of a difference is kept (James
    and Stein 1961; Efron and Morris 1973).

    Parameters
    ----------
    differences, variances : ndarray of shape (n_classes, n_numbers)
        Between a class and all rows, in units in which true ones are about as large as each other; and their noise.
    """
    variances = np.maximum(variances, 1e-100)
    # what noise adds to the logarithm of a row's probability has variance `loud`: only if that is much does a spread
    # that is none do harm
    loud, spread = float(variances.sum(axis=1).max()), 0.0
    # the best known numbers may be those that say nothing, and the least known ones drown the others: whichever mean
    # of squares shows most
    for power in (1, 2):
        weights = (variances.min() / variances) ** power
        weights /= weights.sum()
        found = float((weights * (np.square(differences) - variances)).sum())
        # (differences of k classes are as good as those of k - 1)
        error = np.sqrt(_TAIL * np.square(weights * variances).sum() * len(variances) / max(len(variances) - 1, 1))
        spread = max(spread, found - _CAUTION * loud / (1 + loud) * float(error))
    return spread / (spread + variances)
