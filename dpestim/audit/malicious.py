"""What malicious users can do to an estimate: the worst gain under each law, exactly, and how it is shown."""

import math
from fractions import Fraction
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from dpestim.audit.targets import target_of
from dpestim.local.client import Client
from dpestim.local.server import Server
from dpestim.plots import Display
from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table

#: How malicious users go about it.
ATTACKS = ("input", "output")
#: What `direction` may be, and whether the goal is to rise.
_DIRECTIONS = {"raise": True, "lower": False}


class Gain(NamedTuple):
    """How far a share of malicious users moves an estimate at most: one line of `Poisoning`.

    Examples
    --------
    >>> from dpestim.audit import poisoning
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> poisoning(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]), 0.25, goal="a").gains[0].gain
    Fraction(1, 4)
    """

    mechanism: str
    epsilon: float
    attack: str
    share: Fraction
    gain: Fraction
    standard_errors: float | None


class Poisoning(Table):
    """The worst gains of malicious users, as `poisoning` computes them.

    ``print(result)`` shows a line for each mechanism, attack and share; `plot` draws the gain over the share, a line
    for each mechanism and attack.

    Attributes
    ----------
    gains : tuple of Gain
        (mechanism, epsilon, attack, share, gain, standard_errors), exact where the law's decoding is: Fractions.
    goal : str
        What malicious users aim at, in words.
    n_users : int or None
        The number of users for which a gain is expressed in standard errors.

    Examples
    --------
    >>> from dpestim.audit import poisoning
    >>> from dpestim.local import GRRFrequencyEstimator
    >>> result = poisoning(GRRFrequencyEstimator(1.0, categories=[["a", "b"]]), goal="a")
    >>> result.worst("output") > result.worst("input")
    True
    """

    _n_labels = 3
    _most_lines = 60

    def __init__(self, gains, goal, n_users=None):
        self.gains, self.goal, self.n_users = tuple(gains), goal, n_users

    def worst(self, attack="output"):
        """Return the gain that is farthest from 0, over all mechanisms and shares, as an exact number.

        Parameters
        ----------
        attack : {"output", "input"}, default="output"
        """
        if attack not in ATTACKS:
            raise ValueError(f"attack must be one of {list(ATTACKS)}")
        return max((line.gain for line in self.gains if line.attack == attack), key=abs)

    @property
    def privacy(self):
        """Nothing was released: gains are those of laws."""
        return PrivacyGuarantee(0, notes=("Gains are computed from laws, and no data are read.",))

    def plot(self, ax=None, **kwargs):
        """Draw the gain over the share of malicious users: dots for output poisoning, crosses for input poisoning.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes new ones.
        **kwargs
            For matplotlib's `plot` of the lines.

        Returns
        -------
        PoisoningDisplay
            With `ax_` and `figure_`.
        """
        return PoisoningDisplay(self.gains, self.goal).plot(ax, **kwargs)

    def _head(self):
        return "mechanism", "epsilon", "attack", "malicious users", "gain", "standard errors"

    def _columns(self):
        return Gain._fields

    def _records(self):
        return ((*line[:3], float(line.share), float(line.gain), line.standard_errors) for line in self.gains)

    def _rows(self):
        for name, epsilon, attack, share, gain, errors in self._records():
            in_errors = None if errors is None else f"{errors:.3g}"
            yield name, f"{epsilon:g}", attack, f"{100 * share:.4g} %", gain, in_errors

    def _about(self):
        return f"How far malicious users move {self.goal} at most."

    def _remarks(self):
        errors = ("Standard errors are not told for this goal." if self.n_users is None or all(
            line.standard_errors is None for line in self.gains) else
            f"Standard errors are those of {self.n_users:,} honest users.")
        return (f"The goal is {self.goal}.",
                "A gain is how far the expected estimate moves, before it is clipped or post-processed.",
                "Input: malicious users choose their values and follow the law. Output: they send any report.", errors)


class PoisoningDisplay(Display):
    """The worst gain over the share of malicious users, a line for each mechanism and attack.

    ``result.plot()`` of `dpestim.audit.poisoning` makes it.

    Parameters
    ----------
    gains : sequence of Gain
    goal : str

    Attributes
    ----------
    {drawn on}
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> from dpestim.audit import poisoning
    >>> from dpestim.local import OUEFrequencyEstimator
    >>> result = poisoning(OUEFrequencyEstimator(1.0, categories=[["a", "b"]]), [0.01, 0.05, 0.1], goal="a")
    >>> result.plot().ax_.get_xlabel()
    'malicious users in %'
    """

    def __init__(self, gains, goal):
        self.gains = gains
        self.goal = goal

    def plot(self, ax=None, **kwargs):
        """Draw the lines.

        Parameters
        ----------
        {ax}
        **kwargs
            For matplotlib's `plot` of the lines.

        Returns
        -------
        PoisoningDisplay
            This object.
        """
        ax, self.lines_ = self._open(ax), []
        several, epsilons = (len({part(g) for g in self.gains}) > 1
                         for part in (lambda g: g[:2], lambda g: g.epsilon))
        colors = {}
        for mechanism, epsilon, attack in dict.fromkeys(line[:3] for line in self.gains):
            mine = sorted((g.share, g.gain) for g in self.gains if g[:3] == (mechanism, epsilon, attack))
            name = ", ".join([mechanism] * several + [f"epsilon {epsilon:g}"] * epsilons + [attack])
            look = {"marker": "o", "linestyle": "-"} if attack == "output" else {"marker": "x", "linestyle": "--"}
            style = {**look, "markersize": 4, "linewidth": 1.4, "label": name, **kwargs}
            if (mechanism, epsilon) in colors:
                style.setdefault("color", colors[mechanism, epsilon])
            x, y = zip(*((100 * float(share), float(gain)) for share, gain in mine))
            self.lines_ += ax.plot(x, y, **style)
            colors.setdefault((mechanism, epsilon), self.lines_[-1].get_color())
        ax.legend(frameon=False, fontsize="small")
        return self._close(xlabel="malicious users in %", ylabel=f"gain in {self.goal}")


def poisoning(estimator, share=0.01, goal=None, *, column=0, of=None, direction="raise", honest=None, n_users=None):
    """Return the worst gain that malicious users can cause: how far they move the expected estimate.

    Two attacks, under each law: *input poisoning*, where malicious users choose their values and follow the law, and
    *output poisoning*, where they send any report that the server accepts. The less a report of the law tells, the more
    it is multiplied by, and the more a malicious one counts: strong privacy and robustness are opposites here. The
    computation reads the public law, touches no data and costs nothing.

    Parameters
    ----------
    estimator : estimator of `dpestim.local`, list of them, or dict
        A frequency estimator, a transformer of numbers or `MeanEstimator` (the mean of a column), `MixedEstimator`, or
        an estimator of keys, with its domain declared or fitted. Several are compared, by the names that a dict gives.
    share : float or list of float, default=0.01
        Malicious users as a share of all users, in (0, 1).
    goal : object or list, default=None
        A category, or several, whose frequencies together are the goal; a key. None: the mean of the column.
    column : int or str, default=0
        Number or name of the column.
    of : {"frequency", "mean"}, default=None
        Of a key: which of the two is the goal. None: its frequency.
    direction : {"raise", "lower"}, default="raise"
        Where the estimate is to go. A gain of "lower" is negative.
    honest : float or (float, float), default=None
        The goal among honest users: the frequency, or the mean in the units of X. None: the worst there is (nobody
        holds the goal; the mean is at the far bound). The mean of a key, and of a column with missing values, depends
        on (share of holders, mean), which must be given.
    n_users : int, default=None
        Users, for gains in units of the standard error. None: those of a fitted estimator; else these are not told.

    Returns
    -------
    Poisoning
        A table with a line for each mechanism, attack and share.

    Raises
    ------
    ValueError
        For parameters that do not fit, for estimates that are no sums over reports (`DistributionEstimator`, learners),
        and for laws of which the worst report is not known; it says why.

    Notes
    -----
    What is exact: the shift of the expected estimate, before clipping and post-processing, in Fractions where the law
    decodes in Fractions, and in floats for `RAPPORFrequencyEstimator`, `MetricFrequencyEstimator`,
    `SDGRRFrequencyEstimator` and means by inversion. Local hashing, subset selection and dBitFlipPM are unbiased up to
    1e-6, which input gains leave out. Where columns or keys are drawn, and for means that are ratios, it is the limit
    for many users. Standard errors take the honest values beside the goal to be held equally often. They are told for
    one category, not for several. Proofs in ``malicious.md``.

    References
    ----------
    X. Cao, J. Jia, N. Z. Gong, "Data poisoning attacks to local differential privacy protocols", USENIX Security 2021
    (the maximal gain attack on GRR, OUE and OLH). A. Cheu, A. Smith, J. Ullman, "Manipulation attacks in local
    differential privacy", IEEE S&P 2021. Y. Wu, X. Cao, J. Jia, N. Z. Gong, "Poisoning attacks to local differential
    privacy protocols for key-value data", USENIX Security 2022. X. Li, N. Li, W. Sun, N. Z. Gong, H. Li, "Fine-grained
    poisoning attack to local differential privacy protocols for mean and variance estimation", USENIX Security 2023.

    Examples
    --------
    >>> from dpestim.audit import poisoning
    >>> from dpestim.local import GRRFrequencyEstimator, OUEFrequencyEstimator
    >>> both = [make(1.0, categories=[range(100)]) for make in (GRRFrequencyEstimator, OUEFrequencyEstimator)]
    >>> print(poisoning(both, share=0.01, goal=7).to_frame()[["mechanism", "attack", "gain"]].round(3))
                   mechanism  attack   gain
    0  GRRFrequencyEstimator   input  0.010
    1  GRRFrequencyEstimator  output  0.586
    2  OUEFrequencyEstimator   input  0.010
    3  OUEFrequencyEstimator  output  0.032
    """
    shares = _shares(share)
    if not isinstance(direction, str) or direction not in _DIRECTIONS:
        raise ValueError(f"direction must be one of {list(_DIRECTIONS)}")
    if n_users is not None and (isinstance(n_users, bool) or not isinstance(n_users, Integral) or n_users < 1):
        raise ValueError("n_users must be None or an integer of at least 1")
    raises, lines = _DIRECTIONS[direction], []
    given = _named(estimator)
    for name, each in given:
        try:
            target = target_of(each, goal, column, of, honest)
        except ValueError as error:
            raise ValueError(f"{name}: {error}" if len(given) > 1 else str(error)) from None
        n = n_users if n_users is not None else getattr(each, "_n_users", 0) or None
        noise = None if n is None else target.variance(int(n))
        for attack in ATTACKS:
            for part in shares:
                gain = target.gain(part, attack, raises)
                errors = float(gain) / math.sqrt(noise) if noise else None
                lines.append(Gain(name, float(each.privacy_.epsilon), attack, part, gain, errors))
    words = f"{target.what}, to {direction} it"
    return Poisoning(lines, words, n)


def _shares(share):
    """Return the shares as Fractions."""
    shares = np.ravel(share).tolist() if isinstance(share, list | tuple | np.ndarray) else [share]
    if not shares or not all(isinstance(s, Real) and not isinstance(s, bool) and 0 < s < 1 for s in shares):
        raise ValueError("share must be a number in (0, 1), malicious users as a share of all, or a list of such")
    return [s if isinstance(s, Fraction) else Fraction(repr(float(s))) for s in shares]  # (as it is written)


def _named(estimator):
    """Return (name, estimator) pairs."""
    if isinstance(estimator, dict):
        pairs = [(str(name), each) for name, each in estimator.items()]
    else:
        several = estimator if isinstance(estimator, list | tuple) else [estimator]
        pairs = [(type(each).__name__, each) for each in several]
    if not pairs:
        raise ValueError("estimator must be one estimator of dpestim.local, or a list or dict of some")
    for _, each in pairs:
        if not isinstance(each, Client | Server):
            raise ValueError("estimator must be one of dpestim.local: a frequency estimator, a transformer of numbers, "
                             "MeanEstimator, MixedEstimator or an estimator of keys")
    return [(name if isinstance(estimator, dict) else _name(each), each) for name, each in pairs]


def _name(estimator):
    """Return the class of who randomises."""
    client = estimator._client() if isinstance(estimator, Server) else estimator
    return type(client).__name__
