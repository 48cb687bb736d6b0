"""What a user answers: the gradient of the loss of the user's row at the model of a round; and what randomises it."""


import numpy as np

from dpestim.local.numbers.duchi import DuchiTransformer
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.numbers.privunit import PrivUnitTransformer
from dpestim.records import record

MECHANISMS = ("privunit", "duchi", "pm")
#: Steps of the grid of "pm": rounding to it, without bias, adds next to nothing to the noise.
_GRID = 256


@record(eq=False)
class Round:
    """What the server of a model tells the users of one group: all of it is public.

    `LDPSGDClassifier` and `LDPSGDRegressor` make it by `next_round`, and their `privatize` takes it. A device that got
    the two in another form makes it of them.

    Parameters
    ----------
    number : int
        From 0; it also says which words of a seed are those of this round.
    weights : ndarray of shape (n_outputs, n_features + fit_intercept)
        The model at which they answer, for rows of norm at most 1 with the constant of the intercept appended, and for
        targets from -1 to 1 in a regression.
    centre : ndarray of shape (n_features,), 0.0 or None, default=0.0
        What is subtracted from such rows where their directions count. None: users answer with their rows instead of
        gradients, of which the server makes a centre.

    Examples
    --------
    >>> from dpestim.local import LDPSGDClassifier, Round
    >>> told = LDPSGDClassifier(1.0, data_norm=1.0, classes=[0, 1]).next_round(n_features=2)
    >>> Round(told.number, told.weights.tolist())
    Round(number=0, weights=[[0.0, 0.0, 0.0]], centre=0.0)
    """

    number: int
    weights: np.ndarray
    centre: object = 0.0


def gradients_of(link, rows, targets, weights, shift):
    """Return the gradients of rows' losses, in parts of their largest norm; of what does not count 0.

    The loss of a row z counts 1 / |z - shift|, and the gradient is that in coordinates in which rows are z - shift: so
    it is as long as the slope is, whatever row it is.
    """
    with np.errstate(all="ignore"):
        margins = rows @ np.asarray(weights, np.float64).T
        slopes = link.slopes(margins[:, 0] if link.n_outputs == 1 else margins, targets).reshape(len(rows), -1)
        rows = np.where(rows.any(axis=1, keepdims=True), rows - shift, 0.0)  # (a row that does not count is 0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(lengths > 0, lengths, 1.0)
        found = (slopes[:, :, None] * rows[:, None, :]).reshape(len(rows), -1) / link.most
    return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)


def client_of(mechanism, epsilon, size):
    """Return the client of a law: gradients, divided by their largest norm, lie in the unit ball."""
    box = -np.ones(size), np.ones(size)
    if mechanism == "privunit":
        made = PrivUnitTransformer(epsilon, radius=1.0, center=np.zeros(size))
    elif mechanism == "duchi":
        made = DuchiTransformer(epsilon, bounds=box, strategy="joint")
    else:
        made = PMTransformer(epsilon, bounds=box, grid=_GRID, strategy="sample")
    made._columns_now()  # what words cannot express is refused here
    return made
