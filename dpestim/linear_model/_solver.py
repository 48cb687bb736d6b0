"""The certified minimiser: a float vector and a proven distance to the exact minimum of the perturbed objective.

The certificate rests on strong convexity alone: with a regulariser of strength s,

    |v - argmin F| <= |gradient of F at v| / s,

where the gradient that floats give is off by at most `LogisticLoss.rounding`. How v was found does not matter, so the
search may be as clever as it likes: it starts on every 16th row, and takes the Hessian of the full data as rarely as
it can (later steps correct it by BFGS from gradients, which are several times cheaper). It stops when the certificate
is good enough, never after a number of iterations. Proofs: `_logistic.md`.
"""

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from dpestim import parallel
from dpestim._core import logistic

_ULP = 2.0**-53
_BLOCK = 2048  # rows whose gradients are added one after the other
_LANES = 8  # parts of the data with a Hessian of their own, so that threads do not change the order of additions
_LANE_CELLS = 1 << 24  # no more lanes than keep their Hessians below 128 MB together
_THREAD_CELLS = 1 << 20  # of rows or Hessians: work of less than about a millisecond is done before threads have woken
_COARSE = 16  # every 16th row is where the search starts


class LogisticLoss:
    """Sum over rows of log(1 + exp(-sign z w)), z being a row clipped to norm 1 with its constant appended.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), C-contiguous float64
        A row with a value that is not finite does not count.
    signs : ndarray of int8
        +1, -1, or 0 for a row that does not count.
    data_norm : float
        Rows are divided by it, and clipped to norm 1 afterwards.
    intercept : float
        The constant that is appended to each row (0: none); then everything is divided by sqrt(1 + intercept^2).
    scales : ndarray of shape (n_rows,), optional
        The rows' factors where another loss of the same X has computed them.
    """

    def __init__(self, X, signs, data_norm, intercept, n_jobs=None, scales=None):
        n, d = X.shape
        self.X, self.signs, self.n_jobs = X, signs, n_jobs
        self.size = d + (intercept > 0)
        self._width = -(-self.size // logistic.PAD) * logistic.PAD
        self.scales = np.full(n, -1.0) if scales is None else scales
        self.limit, self.tail = row_shape(d, intercept)
        self._inverse = 1.0 / data_norm

    def evaluate(self, w, hessian=False, step=1):
        """Return loss, gradient and Hessian (None unless asked for) of every step-th row, times step."""
        n = len(self.X)
        padded = np.zeros(self._width)
        padded[: self.size] = w
        span = _BLOCK * step
        n_blocks = -(-n // span)
        gradients, losses = np.zeros((n_blocks, self._width)), np.zeros(n_blocks)
        lanes = min(_LANES, n_blocks, max(1, _LANE_CELLS // self._width**2))
        curved = np.zeros((lanes, self._width, self._width)) if hessian else [np.zeros((0, 0))] * lanes

        def task(first, last):
            work = np.zeros((logistic.TILE, self._width))
            for lane in range(first, last):
                for block in range(n_blocks * lane // lanes, n_blocks * (lane + 1) // lanes):
                    losses[block] = logistic.accumulate(
                        self.X, self.signs, self.scales, self._inverse, self.limit, self.tail,
                        block * span, min(n, (block + 1) * span), step, padded, work, gradients[block], curved[lane],
                    )

        if lanes:
            cells = n // step * self._width * (1 + hessian * self._width // 8)
            parallel.run(task, lanes, self.n_jobs if cells >= _THREAD_CELLS else 1, pieces=4)
        loss, gradient = step * losses.sum(), step * np.add.reduce(gradients, axis=0)[: self.size]
        if not hessian:
            return loss, gradient, None
        upper = np.triu(np.add.reduce(curved, axis=0)[: self.size, : self.size])
        return loss, gradient, step * (upper + np.triu(upper, 1).T)

    def rounding(self, norm):
        """Return what the float gradient at a w of this norm is off by at most, in Euclidean norm."""
        return rounding(len(self.X), self._width, norm)


def row_shape(n_features, intercept):
    """Return (norm that the features of a row keep, its appended constant): a row's exact norm is at most 1."""
    room = (1.0 - (n_features + 64) * 2.0**-52) / math.sqrt(1.0 + intercept * intercept)
    return room, intercept * room


def rounding(n_rows, width, norm):
    """Return a bound of the error of the float gradient of `n_rows` rows, at a w of this norm.

    A margin errs by (width / 8 + 5) ulp |w|, and a row's weight by a quarter of that and a relative 2^-48; adding up
    goes through blocks (half a tile at a time) and then over blocks.
    """
    depth = 2 * _BLOCK / logistic.TILE + -(-n_rows // _BLOCK) + 8
    return 1.01 * n_rows * ((width / 8 + 5) * _ULP * norm / 4 + 2.0**-48 + depth * _ULP)


class Certificate:
    """Public tolerance of one problem: what is asked of the minimiser, and the fold that keeps it bounded.

    Released coefficients are w folded: unchanged up to norm `fold`, shrinking to 0 at 2 `fold` and 0 beyond. No fit
    comes near it (it bounds w unless the noise exceeds its reach, at probability below 1e-12), and because of it floats
    of 53 bits suffice for noise of any size: the guarantee knows no case that was left out.

    Parameters
    ----------
    n_rows, size : int
    strength : float
    reach : float
        Norm of the noise in the objective that is hardly ever exceeded.
    reach_after : float
        The same for noise that is added to the minimiser.
    spare : float
        A distance that is small enough whatever rounding would allow.
    """

    def __init__(self, n_rows, size, strength, reach, reach_after=0.0, spare=0.0):
        self.n_rows, self.strength = n_rows, strength
        self.width = -(-size // logistic.PAD) * logistic.PAD
        self.fold = (reach + math.sqrt(reach * reach + 1.4 * strength * n_rows)) / strength + reach_after
        # at a noise vector beyond this the minimiser lies beyond 2 fold, whatever the data
        self.beyond = 1.001 * (2 * self.fold * strength + n_rows)
        #: distance to the exact minimiser that is asked for: at least four times what rounding alone may amount to
        self.tolerance = max(4 * self.error(0.0, 2.1 * self.fold, self.beyond), spare)
        #: distance of what is released, before its own noise, to the exact value
        self.distance = 2.0001 * self.tolerance + 2.0**-44 * self.fold

    def error(self, gradient_norm, w_norm, noise_norm):
        """Return a bound of the distance between w and the exact minimiser for the exact noise."""
        off = rounding(self.n_rows, self.width, w_norm)
        off += 8 * _ULP * (self.strength * w_norm + noise_norm + self.n_rows) + 2.0**-49 * noise_norm
        return 1.0001 * (gradient_norm + off) / self.strength

    def folded(self, w):
        """Return w, folded."""
        norm = _norm(w)
        return w if norm <= self.fold else w * max(0.0, 2.0 - norm / self.fold)


def minimise(loss, noise, certificate, fold=True):
    """Return the folded minimiser of loss + strength / 2 |w|^2 + noise w, within ``certificate.distance``.

    Without noise (and only then) it may be asked for as it is, within ``certificate.tolerance``.
    """
    noise_norm = _norm(noise)
    if noise_norm > certificate.beyond:
        return np.zeros(len(noise))
    w = np.zeros(len(noise))
    if len(loss.X) >= 4 * _COARSE * max(64, len(noise)):
        w = _search(loss, noise, certificate.strength, w, lambda *_: False, _COARSE)

    def good(gradient_norm, w):
        error = certificate.error(gradient_norm, _norm(w), noise_norm)
        return error <= certificate.tolerance or _norm(w) - error > 2 * certificate.fold

    w = _search(loss, noise, certificate.strength, w, good, 1)
    return certificate.folded(w) if fold else w


def _search(loss, noise, strength, w, good, step):
    """Return a w that is `good`: Newton steps whose Hessian is kept and corrected while it serves.

    On a coarse grid of rows a relative gradient of 1e-3 is enough.
    """
    value, slope, bend = _objective(loss, noise, strength, w, True, step)
    start = _norm(slope)
    solve, pairs, fresh = _factor(bend), [], True
    while True:
        size = _norm(slope)
        if good(size, w) or (step > 1 and size <= 1e-3 * start):
            return w
        move = -_bfgs(solve, pairs, slope)
        found = _line(loss, noise, strength, w, value, slope, move, step)
        if found is None or (not fresh and found[1] > 0.3 * size):
            # the kept Hessian serves no more: take it anew, from the better of the two points
            if found is not None:
                w = found[2]
            elif fresh:
                # rounding hides all progress along the Newton step; a gradient step of this length always contracts
                w = w - slope / (strength + 0.25 * len(loss.X))
            value, slope, bend = _objective(loss, noise, strength, w, True, step)
            solve, pairs, fresh = _factor(bend), [], True
            if step > 1 and found is None:
                return w
            continue
        new_value, _, new_w, new_slope = found
        pairs.append((new_w - w, new_slope - slope))
        w, value, slope, fresh = new_w, new_value, new_slope, False


def _line(loss, noise, strength, w, value, slope, move, step):
    """Return (value, gradient norm, w, gradient) at the first better one of w + move, w + move / 2, ..., or None."""
    descent, length, size = float(slope @ move), 1.0, _norm(slope)
    while length > 2.0**-20:
        new_w = w + length * move
        new_value, new_slope, _ = _objective(loss, noise, strength, new_w, False, step)
        new_size = _norm(new_slope)
        if new_size <= 0.5 * size or new_value <= value + 1e-4 * length * descent:
            return new_value, new_size, new_w, new_slope
        length /= 2
    return None


def _objective(loss, noise, strength, w, hessian, step):
    """Return value, gradient and Hessian of the whole objective."""
    value, slope, bend = loss.evaluate(w, hessian, step)
    value += 0.5 * strength * float(w @ w) + float(noise @ w)
    slope = (slope + strength * w) + noise
    if bend is not None:
        bend[np.diag_indices_from(bend)] += strength
    return value, slope, bend


def _factor(bend):
    # LAPACK itself: around it scipy.linalg spends ten times what a small system takes
    factor, failed = dpotrf(bend)
    if failed:
        raise np.linalg.LinAlgError("the Hessian is not positive definite")
    return lambda x: dpotrs(factor, x)[0]


def _bfgs(solve, pairs, slope):
    """Return the inverse Hessian, corrected by (change of w, change of gradient) pairs, times the gradient."""
    q, used = slope.copy(), []
    for s, y in reversed(pairs):
        curvature = float(s @ y)
        if curvature > 0:
            weight = float(s @ q) / curvature
            q -= weight * y
            used.append((weight, curvature, s, y))
    r = solve(q)
    for weight, curvature, s, y in reversed(used):
        r += (weight - float(y @ r) / curvature) * s
    return r


def _norm(x):
    return math.hypot(*x.tolist())
