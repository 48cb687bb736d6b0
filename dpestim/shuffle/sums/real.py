"""Sums and means of real numbers in the shuffle model, by the protocol that suits."""

from dpestim.shuffle.sums.estimator import SumProtocol
from dpestim.shuffle.sums.ikos import IKOSLaw
from dpestim.shuffle.sums.levels import Levels, OneLevel
from dpestim.shuffle.sums.manybits import ManyBits

#: The laws, by the name of their protocol.
PROTOCOLS = {"balle": OneLevel, "cheu": ManyBits, "ikos": IKOSLaw, "recursive": Levels}


class RealSum(SumProtocol):
    """Estimate sums and means of numbers by messages behind a shuffler.

    **Privacy.** (epsilon, delta)-differential privacy in the shuffle model, for data sets of equal size that differ in
    one user's row: the shuffler is trusted, the analyser and `colluding` users are not. ``privacy_`` says what a user's
    own messages keep without the shuffler.

    **Utility.** ``sum_`` is unbiased for the clipped values. For fixed epsilon and delta its error does not grow with
    the number n of users for "ikos", where it is that of the central model, and for "cheu", which sends about
    ``epsilon sqrt(n) / 3`` bits a user; it grows as n^(1/6) for "balle", and more slowly for "recursive".

    **Complexity.** O(messages) a user; O(n messages) for the analyser, in constant memory.

    {parameters}
    References
    ----------
    "ikos": Ishai, Kushilevitz, Ostrovsky, Sahai (2006), "Cryptography from anonymity", FOCS, and the paper of
    "recursive"; the number of shares by a bound of our own. "cheu": Cheu, Smith, Ullman, Zeber, Zhilyaev (2019),
    "Distributed differential privacy via shuffling", EUROCRYPT, section 4.3, with noise by a numeric bound.
    "recursive": Balle, Bell, Gascon, Nissim (2020), "Private summation in the multi-message shuffle model", CCS; levels
    and shares are our own. "balle": the same (2019), "The privacy blanket of the shuffle model", CRYPTO, section 4,
    with a numeric blanket and number of levels. The proofs: ``real.md``, ``ikos.md``, ``coins.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpestim.shuffle import RealSum
    >>> X = np.random.default_rng(0).uniform(0, 10, (10_000, 1))
    >>> protocol = RealSum(1.0, delta=1e-6, bounds=(0, 10), random_state=0).fit(X)
    >>> (protocol.sum_ - X.sum()).round(), protocol.standard_error_.round()
    (array([5.]), array([14.]))
    """

    _more_parameters = """
    bounds : (low, high), dict or Domain, default=None
        Public range of the values, numbers or one for each column: values outside are clipped. None learns it from the
        data that `fit` sees, which leaks (`PrivacyLeakWarning`) and makes ``privacy_.epsilon`` infinite.
    protocol : {"ikos", "cheu", "recursive", "balle"}, default="ikos"
        What is sent: shares of 64 bits whose sum alone tells anything, some ten of them; many bits; a few levels; one
        level. With many users errors grow in this order, and so does what is left where the shuffler, or the way to it,
        fails: shares protect nobody alone, and without one of them the sum is noise (an error). Shares need an epsilon
        of at most about 60, and a delta that words of 128 bits can tell from 0.
    n_messages : int, default=None
        Messages a user of "cheu" and "recursive"; None: what suits epsilon and the number of users.
    grid : int, default=None
        Steps between the bounds for "ikos", a power of two; None: enough for a negligible rounding error.
    """

    def __init__(self, epsilon=1.0, *, delta=None, bounds=None, protocol="ikos", n_messages=None, grid=None,
                 n_users=None, colluding=0, ledger=None, random_state=None, n_jobs=None):
        super().__init__(epsilon, delta=delta, n_users=n_users, colluding=colluding, ledger=ledger,
                         random_state=random_state, n_jobs=n_jobs)
        self.bounds = bounds
        self.protocol = protocol
        self.n_messages = n_messages
        self.grid = grid

    @property
    def _randomizer(self):
        if not isinstance(self.protocol, str) or self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be one of {sorted(PROTOCOLS)}")
        return PROTOCOLS[self.protocol]

    def _law_arguments(self, column, n_columns, domain):
        found = super()._law_arguments(column, n_columns, domain)
        for name in ("n_messages", "grid"):
            if getattr(self, name) is not None and name not in found:
                raise ValueError(f"{name} must be None where protocol is {self.protocol!r}")
        return found

    @classmethod
    def _test_params(cls):
        """Return settings that the common checks run with."""
        return [{"epsilon": 1.0, "delta": 0.01, "n_users": 4, "bounds": (-1.0, 3.0), "protocol": "cheu",
                 "n_messages": 3},
                {"epsilon": 2.0, "delta": 0.01, "n_users": 12, "bounds": ([0.0, -5.0], [1.0, 5.0]), "colluding": 2,
                 "protocol": "cheu", "n_messages": 2},
                {"epsilon": 1.0, "delta": 0.01, "n_users": 12, "bounds": (0.0, 1.0), "protocol": "balle"},
                {"epsilon": 2.0, "delta": 0.01, "n_users": 12, "bounds": (0.0, 1.0), "protocol": "recursive"},
                {"epsilon": 1.0, "delta": 0.01, "n_users": 4, "bounds": (0.0, 8.0)}]
