"""Which law an estimator behind a shuffler has: the largest local epsilon that keeps the promise among n users."""

from sklearn.base import clone

from dpestim.base import PrivateEstimator
from dpestim.central.base import checked_delta
from dpestim.local.categories.adaptive import AdaptiveFrequencyEstimator
from dpestim.local.client import Client
from dpestim.local.estimates.mean import MeanEstimator
from dpestim.local.estimates.mixed import MixedEstimator
from dpestim.local.estimates.personalized import PersonalizedEstimator
from dpestim.local.numbers.pm import PMTransformer
from dpestim.local.server import Server
from dpestim.privacy.exact import canonical_epsilon
from dpestim.privacy.rounding import whole
from dpestim.shuffle.amplification import largest_local
from dpestim.shuffle.base import ShuffleProtocol
from dpestim.shuffle.choice import chosen as best_of
from dpestim.shuffle.of_local import inner_of, known_law
from dpestim.shuffle.transport.uniform import FOR_MESSAGES


class Calibrated(PrivateEstimator):
    """Base of what wraps an estimator of the local model (`estimator`), and says with which epsilon it reports."""

    # ---------------------------------------------------------------- what is wrapped

    def _find_ledger(self):
        """Return the ledger of the wrapped estimator, or of the block in which either was made."""
        inner = inner_of(self._wrapped)
        if self._bound[0] is None and getattr(inner, "_bound", (None,))[0] is not None:
            return inner._find_ledger()
        return super()._find_ledger()

    def _is_strict(self):
        wrapped = vars(self).get("estimator")  # (asked for before __init__, too)
        return super()._is_strict() or any(
            item._bound[1] for item in (wrapped, inner_of(wrapped)) if isinstance(item, PrivateEstimator)
        )

    @property
    def _wrapped(self):
        return MeanEstimator(PMTransformer()) if self.estimator is None else self.estimator

    # ---------------------------------------------------------------- its law

    def _checked(self):
        """Return (epsilon, delta) as Fractions, having checked all parameters that no domain is needed for."""
        epsilon, delta = canonical_epsilon(self.epsilon), checked_delta(self.delta)
        if self.bound not in ("best", "blanket", "clones"):
            raise ValueError("bound must be 'best', 'blanket' or 'clones'")
        whole(self.colluding, "colluding", 0)
        inner = inner_of(self._wrapped)
        if hasattr(self._wrapped, "next_round") and getattr(self._wrapped, "n_rounds", None) != 1:
            raise ValueError(f"estimator must not be a {type(self._wrapped).__name__}, whose users answer in several "
                             "rounds: take PrivKVEstimator or PCKVEstimator, which ask once")
        if isinstance(self._wrapped, MixedEstimator | PersonalizedEstimator | ShuffleProtocol) or not (
            isinstance(self._wrapped, Server) and isinstance(inner, Client)
        ):
            raise ValueError("estimator must be an estimator that counts reports of a local law, such as "
                             "dpestim.local.MeanEstimator or a frequency estimator")
        return epsilon, delta

    def _at(self, epsilon0, chosen=None, n=None):
        """Return a fresh copy of the wrapped estimator with a local epsilon; ledger, seed and threads are shared.

        One that is planned for a number of users, which is public, is planned for `n` where it does not say another.
        """
        server, given = clone(self._wrapped if chosen is None else chosen), inner_of(self._wrapped)
        if hasattr(server, "transformer") and server.transformer is None:
            server.transformer = PMTransformer()
        inner = inner_of(server)
        inner.set_params(epsilon=epsilon0)
        if n is not None and getattr(inner, "n_users", n) is None:
            inner.set_params(n_users=n)
        for name in ("ledger", "random_state", "n_jobs"):
            setattr(inner, name, getattr(given, name))
        books = [item._to_bind()[0] for item in (self, self._wrapped, given)]
        server._bound = inner._bound = (next((book for book in books if book is not None), None), self._is_strict())
        return server

    def _server_for(self, n, width=None):
        """Return a fresh wrapped estimator with the largest local epsilon that keeps the promise among n users."""
        epsilon, delta = self._checked()
        honest = n - whole(self.colluding, "colluding", 0)
        if honest < 1:
            raise ValueError("colluding must be less than the number of users")
        trial, columns, chosen = *self._declared_columns(epsilon, width, n=n), None
        if columns is not None and len(columns) == 1 and type(trial) is AdaptiveFrequencyEstimator:
            # (what is best locally is not behind a shuffler)
            chosen = best_of(self._wrapped, columns.laws[0].n_categories, *self._setting(n))
            trial, columns = self._declared_columns(epsilon, width, chosen, n)
        law = None
        if columns is not None:
            trial._check_columns(columns)
            if any(part.relaxation is not None for part in columns.laws) or hasattr(columns, "fakes"):
                raise ValueError("estimator must not have a relaxed law or fakes, because no bound for its shuffled "
                                 "reports is proven: take another estimator, or its strategy 'smp'")
            law = known_law(columns, self.bound)
        local = largest_local(law, honest, epsilon, delta * FOR_MESSAGES)
        return trial if local == epsilon else self._at(local, chosen, n)

    def _server_of_width(self, n, width):
        """Return the same where messages are so many numbers wide."""
        return self._server_for(n, self._at(self._checked()[0])._client()._columns_of_width(width).n_features)

    def _declared_columns(self, epsilon, width, chosen=None, n=None):
        """Return the wrapped estimator with an epsilon, and its columns, None where they are not known yet."""
        trial = self._at(epsilon, chosen, n)
        client = trial._client()
        return trial, client._columns_now(width) if client._is_declared else None

    def _setting(self, n):
        """Return what decides which mechanism is best among n users."""
        return n - whole(self.colluding, "colluding", 0), n, *self._checked(), self.bound != "clones"
