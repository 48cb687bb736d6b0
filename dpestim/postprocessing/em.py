"""Expectation maximisation: the distribution of inputs under which the counted reports are likeliest."""

import numpy as np

#: Iterations between two looks at the likelihood, whose logarithms cost as much as an iteration.
STRIDE = 10


def maximise(channel, counts, start, *, smooth, max_iter, tol, leaps=False):
    """Return (distribution, log-likelihood of the reports, iterations, whether it converged).

    Stops where the log-likelihood changes by less than tol an iteration (on the average of `STRIDE`). With leaps, the
    two halves of a stride say where many more lead to; half a stride from there is kept where it is likelier.
    """
    f, counts = np.array(start, np.float64), np.ascontiguousarray(counts, np.float64)
    likelihood, done = log_likelihood(channel, f, counts), 0
    while done < max_iter:
        n_steps, before = min(STRIDE, max_iter - done), likelihood
        half, way = n_steps // 2 if leaps else 0, [f.copy()]
        for n in (n_steps - half, half):
            channel.steps(f, counts, n, smooth)
            way.append(f.copy())
        f /= f.sum()
        likelihood, done = log_likelihood(channel, f, counts), done + n_steps
        if leaps and done + half <= max_iter:
            there, done = _leap(*way), done + half
            channel.steps(there, counts, half, smooth)
            there /= there.sum()
            value = log_likelihood(channel, there, counts)
            if value > likelihood:
                f, likelihood = there, value
        if abs(likelihood - before) < tol * (n_steps + half):
            return f, likelihood, done, True
    return f, likelihood, done, False


def _leap(*way):
    """Return where three places of a slow walk lead to: SQUAREM of their logarithms, which keeps them positive."""
    start, *places = (np.log(np.maximum(f, 1e-300)) for f in way)
    first = places[0] - start
    bend = places[1] - places[0] - first
    length = max(1.0, np.sqrt(way[-1] @ np.square(first) / max(way[-1] @ np.square(bend), 1e-300)))
    there = start + 2 * length * first + length**2 * bend
    there = np.exp(there - there.max())
    return there / there.sum()


class Matrix:
    """Any channel: row i is the law of the outputs for input i (or proportional to it, column by column)."""

    def __init__(self, rows):
        self._rows = np.ascontiguousarray(rows, np.float64)

    def steps(self, f, counts, n_steps, smooth):
        """Do iterations on f in place."""
        n = counts.sum()
        for _ in range(n_steps):
            f *= self._rows @ (counts / np.maximum(self.expected(f), 1e-300)) / n
            if smooth:
                average_neighbours(f)
            f /= f.sum()

    def expected(self, f):
        """Return the probability of each output under f."""
        return f @ self._rows


def average_neighbours(f):
    """Average over neighbouring bins of one width, in place."""
    if len(f) > 1:
        f[:] = np.concatenate([
            [(2 * f[0] + f[1]) / 3], f[:-2] / 4 + f[1:-1] / 2 + f[2:] / 4, [(f[-2] + 2 * f[-1]) / 3]
        ])


def log_likelihood(channel, f, counts):
    """Return the log-likelihood of the counts of outputs under f."""
    seen = counts > 0
    return float(counts[seen] @ np.log(np.maximum(channel.expected(f)[seen], 1e-300)))
