"""Sums of independent losses by FFT, with a bound of the error.

Masses are *tilted*: multiplied by e^(theta loss) and scaled to a sum near 1. Tilted masses of a sum are convolved just
as plain ones are, and theta moves their bulk to where the answer is decided, so that absolute errors of a transform
become relative errors of delta. The bounds are derived in ``loss.md``, "Tilting".
"""


import numpy as np
from scipy.fft import irfft, rfft

from dpestim.records import record

_UNIT = 2.0**-53
#: What may be cut off at one side of an array; it counts as an error.
_CUT = 1e-17
#: Arrays that are convolved at a time.
_RADIX = 8


@record
class Tilted:
    """Masses at ``first + i`` steps, one loss a row; each row is off from the true one by at most `error` in sum."""

    first: int
    mass: np.ndarray
    error: np.ndarray

    def rows(self, which):
        """Return some of the rows."""
        return Tilted(self.first, self.mass[which], self.error[which])


def tilt(losses, step, theta):
    """Return (tilted masses, ln c of each row): the true ones are c e^(-theta loss) times these."""
    exponent = theta * step * (losses.first + np.arange(losses.mass.shape[1]))
    top = theta * step * losses.last
    scaled = losses.mass * np.exp(np.minimum(exponent - top[:, None], 0.0))
    total = scaled.sum(axis=1)
    log_total = top + np.log(total)
    largest = np.abs(exponent[[0, -1]]).max()
    rounding = (16 + 2 * largest + np.abs(log_total)) * 2 * _UNIT
    return _cut(losses.first, scaled / total[:, None], rounding, np.full(total.size, _CUT)), log_total


def _cut(first, mass, error, cut):
    """Return the rows without their ends, as far as the sums of these are at most `cut`."""
    low = int((np.cumsum(mass, axis=1) < cut[:, None]).sum(axis=1).min())
    high = mass.shape[1] - int((np.cumsum(mass[:, ::-1], axis=1) < cut[:, None]).sum(axis=1).min())
    if low >= high:
        return Tilted(first, mass, error)
    return Tilted(first + low, mass[:, low:high], error + 2.01 * cut)


def _multiply(first, stack, size, error, power=1):
    """Return the sums of losses stack[i, 0] + stack[i, 1] + ..., `power` copies of each, one sum a row."""
    sums = stack.sum(axis=2)
    shares = np.sqrt((stack**2).sum(axis=2)) / sums
    length = 1 << max(2, (size - 1).bit_length())
    length = length // 4 * 3 if size <= length // 4 * 3 else length
    spectrum = np.multiply.reduce(rfft(stack, length, axis=2), axis=1)
    if power > 1:
        spectrum = spectrum**power
    mass = np.maximum(irfft(spectrum, length, axis=1)[:, :size], 0.0)
    unit, n_arrays = 10 * _UNIT * np.log2(length), power * stack.shape[1]
    product = np.prod(sums, axis=1) ** power
    noise = 2 * product * (unit * power * shares.sum(axis=1) + (4 * n_arrays * _UNIT + unit) * shares.min(axis=1))
    fresh = np.sqrt(size) * noise
    error = (product * np.expm1(power * np.log1p(error / sums).sum(axis=1)) + fresh) * (1 + 1e-9)
    # the ends of a row are noise: without a cut that grows with it they would never be left out
    return _cut(first, mass, error, np.maximum(_CUT, error / 128))


def convolve(parts, power=1):
    """Return the sum of single rows, and of `power` copies of each."""
    stack = np.zeros((1, len(parts), max(part.mass.shape[1] for part in parts)))
    for i, part in enumerate(parts):
        stack[0, i, : part.mass.shape[1]] = part.mass[0]
    size = power * sum(part.mass.shape[1] - 1 for part in parts) + 1
    return _multiply(power * sum(part.first for part in parts), stack, size,
                     np.array([[part.error[0] for part in parts]]), power)


def total(batches):
    """Return the sum of all rows of all batches, given as (rows, how often each counts), as a single row."""
    done = []
    for batch, counts in batches:
        done += [_repeat(batch.rows([i]), int(counts[i])) for i in np.flatnonzero(counts > 1)]
        done += _fold(batch.rows(counts == 1))
    while len(done) > 1:
        done.sort(key=lambda part: part.mass.shape[1])
        done = [convolve(done[i : i + _RADIX]) if i + 1 < len(done) else done[i] for i in range(0, len(done), _RADIX)]
    return done[0]


def _fold(batch):
    """Return a few single rows, whose sum is that of all rows."""
    left = []
    while len(batch.error) >= _RADIX:
        n = len(batch.error) // _RADIX
        left += [batch.rows([i]) for i in range(n * _RADIX, len(batch.error))]
        width = batch.mass.shape[1]
        batch = _multiply(_RADIX * batch.first, batch.mass[: n * _RADIX].reshape(n, _RADIX, width),
                          _RADIX * (width - 1) + 1, batch.error[: n * _RADIX].reshape(n, _RADIX))
    return left + [batch.rows([i]) for i in range(len(batch.error))]


def _repeat(part, count):
    """Return the sum of so many copies of a row, by squaring; from the first digit on, so that few arrays are large."""
    result = part
    for digit in bin(count)[3:]:
        result = convolve([result, result, part]) if digit == "1" else convolve([result], power=2)
    return result
