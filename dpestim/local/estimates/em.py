"""Expectation maximisation: the distribution of inputs under which the counted reports are likeliest."""

import numpy as np

#: Iterations between two looks at the likelihood, whose logarithms cost as much as an iteration.
STRIDE = 10


def maximise(channel, counts, start, *, smooth, max_iter, tol):
    """Return (distribution, log-likelihood of the reports, iterations, whether it converged).

    Stops where the log-likelihood changes by less than tol an iteration (on the average of `STRIDE`).
    """
    f, counts = np.array(start, np.float64), np.ascontiguousarray(counts, np.float64)
    likelihood, done = _log_likelihood(channel, f, counts), 0
    while done < max_iter:
        n_steps = min(STRIDE, max_iter - done)
        channel.steps(f, counts, n_steps, smooth)
        f /= f.sum()
        before, likelihood, done = likelihood, _log_likelihood(channel, f, counts), done + n_steps
        if abs(likelihood - before) < tol * n_steps:
            return f, likelihood, done, True
    return f, likelihood, done, False


def _log_likelihood(channel, f, counts):
    seen = counts > 0
    return float(counts[seen] @ np.log(np.maximum(channel.expected(f)[seen], 1e-300)))
