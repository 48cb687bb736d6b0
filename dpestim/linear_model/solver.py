"""The certified minimiser: a float vector and a proven distance to the exact minimum of the perturbed objective.

The certificate rests on strong convexity alone: with a regulariser of strength s,

    |v - argmin F| <= |gradient of F at v| / s,

where the gradient that floats give is off by at most `MarginLoss.rounding`. How v was found does not matter, so the
search may be as clever as it likes: it starts on every 16th row, and takes a Hessian as rarely as it can (later steps
correct it by BFGS from gradients, which are several times cheaper; of wide rows a Hessian of some of them has to do,
and BLAS forms it in single precision). It stops when the certificate is good enough, never after a number of
iterations. Proofs: `logistic.md`.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg.blas import dnrm2
from scipy.linalg.lapack import dpotrf, dpotrs

from dpestim import parallel
from dpestim._core import logistic
from dpestim.inputs import row_shape
from dpestim.linear_model.losses import LOGISTIC

#: Bound of the constants that are added to margins.
LARGEST_OFFSET = 40.0
_ULP = 2.0**-53
_BLOCK = 2048  # rows whose gradients are added one after the other
_LANES = 8  # parts of the data with a Hessian of their own, so that threads do not change the order of additions
_LANE_CELLS = 1 << 24  # no more lanes than keep their Hessians below 128 MB together
_THREAD_CELLS = 1 << 20  # of rows or Hessians: work of less than about a millisecond is done before threads have woken
_PAIRS = 25  # corrections of a kept Hessian, at most
_COARSE = 16  # every 16th row is where the search starts
_SOME, _ENOUGH = 4, 16  # of every 4th row, and so many for each coefficient, the Hessian serves for all rows
_FAR = 1 << 21  # numbers in coarse rows, up to which these are copied
_START = 3e-3  # by how much the gradient of the coarse rows shrinks: what these rows lack is more
_LIFTS = (0.0, 2.0**-20, 2.0**-14, 2.0**-8, 1.0)  # of a Hessian that rounding has made indefinite: shares of its top
_SEEN = 4  # steps by which the pace of a search is judged
_FAST = 10.0  # by how much a step on a fresh Hessian of all rows shrinks a gradient, about
_WIDE = 64  # coefficients from which on a Hessian costs many gradients: BLAS forms it, and some rows have to do


class MarginLoss:
    """Sum over rows of l(sign (z w + offset)), z being a row clipped to norm 1 with its constant appended.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), C-contiguous float64, or `dpestim.inputs.SparseRows`
        A row with a value that is not finite does not count.
    signs : ndarray of int8
        +1, -1, or 0 for a row that does not count.
    data_norm : float
        Rows are divided by it, and clipped to norm 1 afterwards.
    intercept : float
        The constant that is appended to each row (0: none); then everything is divided by sqrt(1 + intercept^2).
    scales : ndarray of shape (n_rows,), optional
        The rows' factors where another loss of the same X has computed them.
    offset : float
        Of modulus at most `LARGEST_OFFSET`.
    margin : Margin
        Which loss l is.
    targets : ndarray of shape (n_rows,), optional
        Of a Poisson loss, in [0, 1].
    """

    #: By how much a step on a kept Hessian must shrink the gradient.
    patience = 0.3

    def __init__(self, X, signs, data_norm, intercept, n_jobs=None, scales=None, *, offset=0.0, margin=LOGISTIC,
                 targets=None):
        n, d = X.shape
        self.X, self.signs, self.n_rows, self.n_jobs = X, signs, n, n_jobs
        self.margin, self._targets, self.curvature, self.offset = margin, targets, margin.curvature, offset
        self.size = d + (intercept > 0)
        self._width = -(-self.size // logistic.PAD) * logistic.PAD
        self.scales = np.full(n, -1.0) if scales is None else scales
        self.limit, self.tail = row_shape(d, intercept)
        self._inverse, self._few = 1.0 / data_norm, None
        #: how many gradients a Hessian of the same rows costs, about; None: too few to be thought over
        self.dear = None
        if self.size >= _WIDE:
            self.dear = self.size / 25 if isinstance(X, np.ndarray) else 1 + len(X.values) / max(n, 1)

    def evaluate(self, w, hessian=False, step=1):
        """Return loss, gradient and Hessian (None unless asked for) of every step-th row, times step."""
        n = self.n_rows
        if step == _COARSE and isinstance(self.X, np.ndarray) and self.size < _WIDE and self.X.size <= _FAR * step:
            self._few = self._few or self._gathered(step)
            loss, gradient, bend = self._few.evaluate(w, hessian)
            return step * loss, step * gradient, step * bend if hessian else None
        padded = np.zeros(self._width)
        padded[: self.size] = w
        span = _BLOCK * step
        n_blocks = -(-n // span)
        dense = isinstance(self.X, np.ndarray)
        if n_blocks == 1 and dense and not (hessian and self.size >= _WIDE):
            # few rows: what stands around the kernel would take as long
            gradient, work = np.zeros(self._width), np.empty((logistic.AHEAD, self._width))
            curves = np.zeros((self._width, self._width) if hessian else (0, 0))
            loss = logistic.accumulate(
                self.X, self.signs, self.scales, self._inverse, self.limit, self.tail, self.offset, 0, n, step, padded,
                work, gradient, curves, self.margin.kind, self.margin.shape, self._targets)
            return step * loss, step * gradient[: self.size], step * _mirrored(curves, self.size) if hessian else None
        gradients, losses = np.zeros((n_blocks, self._width)), np.zeros(n_blocks)
        lanes = min(_LANES, n_blocks, max(1, _LANE_CELLS // self._width**2))
        if hessian:  # (to add up those of lanes is to cost little beside their rows)
            lanes = min(lanes, max(1, n // step // (_ENOUGH * self._width)))
        curved = np.zeros((lanes, self._width, self._width)) if hessian else [np.zeros((0, 0))] * lanes

        blas = hessian and dense and self.size >= _WIDE
        bends, none = np.empty(n) if blas else None, np.zeros((0, 0))
        exact = np.float64 if step == 1 else np.float32  # a Hessian of some rows is a guess anyway
        buffers = [np.empty((_BLOCK, self._width), exact) for _ in range(lanes)] if blas else None
        margin = (self.margin.kind, self.margin.shape, self._targets)
        rows = (self.signs, self.scales, self._inverse, self.limit, self.tail, self.offset)

        def task(first, last):
            work = np.zeros((logistic.AHEAD, self._width)) if dense else None
            for lane in range(first, last):
                for block in range(n_blocks * lane // lanes, n_blocks * (lane + 1) // lanes):
                    span_of = (block * span, min(n, (block + 1) * span), step, padded)
                    sums = (gradients[block], none if blas else curved[lane], *margin)
                    if dense:
                        losses[block] = logistic.accumulate(self.X, *rows, *span_of, work, *sums, bends)
                        if blas:
                            self._outer(slice(*span_of[:3]), bends, buffers[lane], curved[lane])
                    else:
                        x = self.X
                        losses[block] = logistic.accumulate_sparse(
                            x.values, x.index, x.start, x.shape[1], *rows, *span_of, *sums)

        if lanes:
            cells = n // step * self._width * (1 + hessian * self._width // 8)
            with parallel.one_thread(self.size if blas else 0):
                parallel.run(task, lanes, self.n_jobs if cells >= _THREAD_CELLS else 1, pieces=4)
        loss, gradient = step * losses.sum(), step * np.add.reduce(gradients, axis=0)[: self.size]
        if not hessian:
            return loss, gradient, None
        return loss, gradient, step * _mirrored(np.add.reduce(curved, axis=0), self.size)

    def _gathered(self, step):
        """Return the loss of every step-th row, side by side: from afar each pass would fetch them anew."""
        few = object.__new__(MarginLoss)
        few.__dict__.update(self.__dict__)
        few.X, few.signs, few.scales = self.X[::step].copy(), self.signs[::step].copy(), self.scales[::step].copy()
        few._targets = None if self._targets is None else self._targets[::step].copy()
        few.n_rows = len(few.X)
        return few

    def _outer(self, some, bends, buffer, out):
        """Add sum bend z z' over some rows to a matrix. No certificate rests on a Hessian, so BLAS may form it."""
        roots = np.sqrt(bends[some])
        z = buffer[: len(roots)]
        z[:, self.X.shape[1] :] = 0.0
        with np.errstate(all="ignore"):
            np.multiply(self.X[some], (self.scales[some] * roots)[:, None], out=z[:, : self.X.shape[1]])
        if self.size > self.X.shape[1]:
            z[:, self.size - 1] = self.tail * roots
        gone = roots == 0
        if gone.any():
            z[gone] = 0.0  # not 0 times what is no number
        out += z.T @ z

    def rounding(self, norm):
        """Return what the float gradient at a w of this norm is off by at most, in Euclidean norm."""
        return rounding(self.n_rows, self._width, norm, self.margin)


def _mirrored(upper, size):
    """Return the symmetric matrix of which an upper triangle, padded, is known."""
    upper = upper[:size, :size]
    return np.where(_above(size), upper, upper.T)


@lru_cache(maxsize=64)
def _above(size):
    """Return where the upper triangle of a matrix is."""
    return np.triu(np.ones((size, size), bool))


def rounding(n_rows, width, norm, margin=LOGISTIC):
    """Return a bound of the error of the float gradient of `n_rows` rows, at a w of this norm.

    A margin errs by (width / 8 + 6) ulp |w| and an ulp of its offset, and by more where something is subtracted from
    it; a row's weight by that times the curvature and a relative 2^-48. Adding up goes through blocks (row by row, if
    rows are sparse) and then over blocks.
    """
    depth = _BLOCK + -(-n_rows // _BLOCK) + 8
    off = (width / 8 + 6) * norm + LARGEST_OFFSET
    off += 4 * (norm + LARGEST_OFFSET + margin.shift) if margin.shift else 0.0
    return 1.01 * n_rows * (margin.curvature * off * _ULP + 2.0**-48 + depth * _ULP)


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
    margin : Margin
        Which loss of a margin it is.
    steepest, start : float
        Of the loss of a row: the largest norm of its gradient, and its value at 0, or more.
    rounded : callable, optional
        What the float gradient at a w of a norm is off by at most; None: `rounding`.
    """

    def __init__(self, n_rows, size, strength, reach, reach_after=0.0, spare=0.0, margin=LOGISTIC, steepest=1.0,
                 start=None, rounded=None):
        self.n_rows, self.strength, self.steepest = n_rows, strength, steepest
        width, start = -(-size // logistic.PAD) * logistic.PAD, margin.drop if start is None else start
        self._rounded = rounded or (lambda norm: rounding(n_rows, width, norm, margin))
        self.fold = (reach + math.sqrt(reach * reach + 2 * start * strength * n_rows)) / strength + reach_after
        # at a noise vector beyond this the minimiser lies beyond 2 fold, whatever the data
        self.beyond = 1.001 * (2 * self.fold * strength + steepest * n_rows)
        #: distance to the exact minimiser that is asked for: at least four times what rounding alone may amount to
        self.tolerance = max(4 * self.error(0.0, 2.1 * self.fold, self.beyond), spare)
        #: distance of what is released, before its own noise, to the exact value
        self.distance = 2.0001 * self.tolerance + 2.0**-44 * self.fold

    def error(self, gradient_norm, w_norm, noise_norm):
        """Return a bound of the distance between w and the exact minimiser for the exact noise."""
        off = self._rounded(w_norm) + 2.0**-49 * noise_norm
        off += 8 * _ULP * (self.strength * w_norm + noise_norm + self.steepest * self.n_rows)
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
    with parallel.one_thread(len(noise)):
        w = _minimum(loss, noise, noise_norm, certificate)
    return certificate.folded(w) if fold else w


def _minimum(loss, noise, noise_norm, certificate):
    """Return a w that is good enough, or so far away that folding makes it 0."""
    w, bend, strength = np.zeros(len(noise)), None, certificate.strength
    if loss.n_rows >= 4 * _COARSE * max(64, len(noise)):
        w = _search(loss, noise, strength, w, lambda *_: False, 0.0, _COARSE)
        step = min(_SOME, loss.n_rows // (_ENOUGH * len(noise)))
        if len(noise) >= _WIDE and step > 1:
            bend = _objective(loss, noise, strength, w, True, step)[2]

    def good(gradient_norm, w):
        error = certificate.error(gradient_norm, _norm(w), noise_norm)
        return error <= certificate.tolerance or _norm(w) - error > 2 * certificate.fold

    return _search(loss, noise, strength, w, good, strength * certificate.tolerance, 1, bend)


def _search(loss, noise, strength, w, good, goal, step, bend=None):
    """Return a w that is `good`: Newton steps whose Hessian is kept and corrected while it serves.

    They begin with the Hessian `bend`, where one is known that is good enough for a start. A gradient near the norm
    `goal` is about good; on a coarse grid of rows a relative one of `_START` is enough.
    """
    value, slope, own = _objective(loss, noise, strength, w, bend is None, step)
    fresh, sizes = bend is None, [_norm(slope)]
    goal = max(goal, _START * sizes[0]) if step > 1 else goal
    solve, pairs = _factor(own if fresh else bend, strength), []
    while True:
        if good(sizes[-1], w) or (step > 1 and sizes[-1] <= goal):
            return w
        move = -_bfgs(solve, pairs, slope, loss.dear is not None)
        found = _line(loss, noise, strength, w, value, slope, move, step)
        if found is None or (not fresh and _spent(loss, [*sizes, found[1]], goal)):
            # the kept Hessian serves no more: take it anew, from the better of the two points
            if found is not None:
                w = found[2]
            elif fresh:
                # rounding hides all progress along the Newton step; a gradient step of this length always contracts
                w = w - slope / (strength + loss.curvature * loss.n_rows)
            value, slope, bend = _objective(loss, noise, strength, w, True, step)
            solve, pairs, fresh, sizes = _factor(bend, strength), [], True, [_norm(slope)]
            if step > 1 and found is None:
                return w
            continue
        new_value, size, new_w, new_slope = found
        moved, change = new_w - w, new_slope - slope
        pairs = [*pairs[1 - _PAIRS :], (moved, change, float(moved @ change))]
        w, value, slope, fresh = new_w, new_value, new_slope, False
        sizes.append(size)


def _spent(loss, sizes, goal):
    """Tell whether a Hessian is to be taken anew, from the norms of the gradients since it was taken."""
    if loss.dear is None:
        return len(sizes) > _PAIRS or sizes[-1] > loss.patience * sizes[-2]
    steps = min(len(sizes) - 1, _SEEN)
    pace = math.log(max(sizes[-1 - steps], 1e-300) / max(sizes[-1], 1e-300)) / steps
    left = math.log(max(sizes[-1] / max(goal, 1e-300), 1.0))
    return steps == _SEEN and left > max(pace, 0.0) * (loss.dear + left / math.log(_FAST))


def _line(loss, noise, strength, w, value, slope, move, step):
    """Return (value, gradient norm, w, gradient) at the first better one of w + move, w + move / 2, ..., or None."""
    descent, length, size = float(slope @ move), 1.0, _norm(slope)
    while length > 2.0**-70:  # where nothing bends, a Newton step is as long as the regulariser is weak
        new_w = w + length * move
        new_value, new_slope, _ = _objective(loss, noise, strength, new_w, False, step)
        new_size, far = _norm(new_slope), _norm(new_w)
        # where values tell no more, slopes do: along a line of a convex function they rise, and up to half of what they
        # were at first it has fallen (of values that are rounded, tiny steps would look like progress, without end)
        hidden = 2.0**-44 * (abs(value) + (_norm(noise) + strength * far) * far)
        if -length * descent > hidden:
            falls = new_value <= value + 1e-4 * length * descent
        else:
            falls = float(new_slope @ move) <= -0.5 * descent
        if (falls or new_size <= 0.5 * size) and new_value <= value + hidden:
            return new_value, new_size, new_w, new_slope
        length /= 2 if length > 2.0**-6 else 8
    return None


def _objective(loss, noise, strength, w, hessian, step):
    """Return value and gradient of the whole objective, and the Hessian of the loss."""
    value, slope, bend = loss.evaluate(w, hessian, step)
    value += 0.5 * strength * float(w @ w) + float(noise @ w)
    slope = (slope + strength * w) + noise
    return value, slope, bend


def _factor(bend, strength):
    if callable(bend):  # a loss that knows a short way
        return bend(strength)
    diagonal = np.einsum("ii->i", bend)  # (a view of it)
    diagonal += strength
    for more in _LIFTS:
        diagonal += more * diagonal.max()
        # LAPACK itself: around it scipy.linalg spends ten times what a small system takes
        factor, failed = dpotrf(bend)
        if not failed:
            break
    else:
        raise np.linalg.LinAlgError("the Hessian is not positive definite")
    return lambda x: dpotrs(factor, x)[0]


def _bfgs(solve, pairs, slope, level):
    """Return the inverse Hessian, corrected by (change of w, of the gradient, their product), times the gradient."""
    q, used = slope.copy(), []
    for s, y, curvature in reversed(pairs):
        if curvature > 0:
            weight = float(s @ q) / curvature
            q -= weight * y
            used.append((weight, curvature, s, y))
    r = solve(q)
    if level and used:  # (a Hessian of other weights is too steep or too flat, and the last step tells by how much)
        _, curvature, s, y = used[0]
        r *= curvature / float(y @ solve(y))
    for weight, curvature, s, y in reversed(used):
        r += (weight - float(y @ r) / curvature) * s
    return r


def _norm(x):
    return float(dnrm2(x))  # (a certificate's factor of 1.0001 covers how its squares round)
