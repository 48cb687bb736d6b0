"""What estimates frequencies from counts, of whatever reports or messages: answers, errors, intervals, a score."""

import numpy as np
from scipy.special import ndtri

from dpestim.inputs import CategoryEncoder, at_least_two, columns_of, learn_categories
from dpestim.local.categories.estimates import check_postprocess, postprocessed
from dpestim.local.interval_ends import ends


class Frequencies:
    """Mixin, left of a server and a `CategoryClient`; laws bring `estimate` and `variance_line`."""

    #: How many of the users have reported each column, where these were drawn (`dpestim.local.estimates.mixed`).
    _drawn = None

    def release(self):
        """Return `frequencies_`: the counts made into estimates, post-processed as `postprocess` says."""
        return self.frequencies_

    def score(self, X, y=None):
        """Return minus the mean squared error against the plain frequencies of X, over the union of the domains.

        The score compares with raw data. It is **not private**: an exact, unmetered release of X, which a ledger
        records as an entry of epsilon 0 and strict mode refuses.
        """
        self._check_fitted()
        self._refuse_in_strict("score is refused, because it compares with raw data: call it outside of strict mode")
        X, _, columns = self._schema(X, False)
        self._note_score(X.shape[0])
        total, size = 0.0, 0
        for column, values, estimate in zip(columns, columns_of(X), self.frequencies_):
            name = column.name
            seen = CategoryEncoder(at_least_two(learn_categories(values, name, allow_missing=True)), name)
            truth = np.bincount(seen.encode(values), minlength=len(seen.categories)) / X.shape[0]
            plain = dict(zip(seen.plain_categories(), truth))
            errors = [f - plain.pop(v, 0.0) for v, f in zip(column.encoder.plain_categories(), estimate)]
            errors += [f for f in plain.values() if f]  # a category that was never declared is estimated as 0
            total, size = total + float(np.square(errors).sum()), size + len(errors)
        return -total / size

    @property
    def frequencies_(self):
        """Estimated frequencies, one array per column."""
        self._check_fitted()
        if isinstance(self.postprocess, str):  # (a callable may answer otherwise the next time)
            return self._remembered(self.postprocess, self._postprocessed)
        return self._unbiased() if self.postprocess is None else self._postprocessed()

    @property
    def standard_errors_(self):
        """Standard errors of the unbiased estimates, one array per column."""
        self._check_fitted()
        return [error(np.clip(f, 0.0, 1.0)) for f, error in zip(self._unbiased(), self._error_functions())]

    def confidence_interval(self, level=0.95):
        """Return one (n_categories, 2) array per column: score intervals for the frequencies.

        Each end is the frequency whose own standard error puts the unbiased estimate `level` away, so that an interval
        never has width 0 where the estimate happens to look certain. Normal approximation. It is about the users who
        took part, and does not cover their being drawn from a population.

        With `postprocess` they are the same intervals, clipped to [0, 1], where every frequency of users is: no part
        that could be right is lost, and a post-processed frequency may lie outside. (Bootstraps of post-processed
        frequencies do not cover what they claim: see "Negative estimates" in the user guide.) Not clipped without.
        """
        if not 0 < level < 1:
            raise ValueError("level must lie strictly between 0 and 1")
        self._check_fitted()
        z = ndtri(0.5 + level / 2)
        intervals = [ends(f, z, error).T for f, error in zip(self._unbiased(), self._error_functions())]
        return intervals if self.postprocess is None else [np.clip(both, 0.0, 1.0) for both in intervals]

    def to_frame(self, level=0.95):
        """Return a tidy pandas frame: feature, category, frequency, standard_error, ci_low, ci_high.

        Frequencies are post-processed where `postprocess` is set; the standard error and the interval are always those
        of the unbiased estimate, so a post-processed frequency may lie outside its interval.
        """
        self._check_fitted()
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'dpestim[pandas]'") from error

        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(self.categories_))])
        parts = zip(names, self.categories_, self.frequencies_, self.standard_errors_, self.confidence_interval(level))
        return pd.concat(
            [
                pd.DataFrame(
                    {"feature": n, "category": c, "frequency": f, "standard_error": s, "ci_low": ci[:, 0],
                     "ci_high": ci[:, 1]}
                )
                for n, c, f, s, ci in parts
            ],
            ignore_index=True,
        )

    # ---------------------------------------------------------------- inside

    def _test_data(self, n_rows, seed=0):
        """Return rows drawn from the declared categories with unequal frequencies, as an object array."""
        rng = np.random.default_rng(seed)
        X = np.empty((n_rows, len(self.categories)), dtype=object)
        for j, categories in enumerate(self.categories):
            values = np.empty(len(categories), dtype=object)
            values[:] = list(categories)
            weights = np.arange(1, len(values) + 1.0) ** 0.5
            X[:, j] = values[rng.choice(len(values), n_rows, p=weights / weights.sum())]
        return X, None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _client(self, restart=False):
        return self

    def _check_call_parameters(self):
        super()._check_call_parameters()
        self._check_postprocess()

    def _check_postprocess(self):
        if self.postprocess is not None:
            check_postprocess(self.postprocess)

    @property
    def categories_(self):
        """The categories of each column."""
        if self._columns is None:
            self._check_fitted()
        return [c.categories for c in self._columns]

    def _forget(self):
        super()._forget()
        self._thaw()
        vars(self).pop("_answers", None)

    def _error_functions(self):
        """Return, for each column, the standard errors of the estimates as a function of frequencies in [0, 1]."""
        return [self._error_function(*each) for each in zip(self._laws_of_reports, self._own_counts(), self._sizes())]

    def _error_function(self, law, counts, m):
        if not m:
            return lambda f: np.full(np.shape(f), np.nan)
        (at_zero, slope), uneven = law.variance_line(counts, m), self._unevenness(m)
        return lambda f: np.sqrt(np.maximum(at_zero + slope * f, 0.0) / m + uneven * f * (1 - f))

    @property
    def _laws_of_reports(self):
        """What the reports of each column follow."""
        return self.randomizers_

    def _own_counts(self):
        """Return the counts of each law, without what else is counted."""
        return self._counts

    def _sizes(self):
        """Return how many users have reported each column."""
        return [self._n_users] * len(self._counts) if self._drawn is None else self._drawn

    def _unevenness(self, m):
        """Return what share (1 - share) is multiplied by where m of all users have reported (``mixed.md``, claim 4)."""
        return (1 / m - 1 / self._n_users) * self._n_users / max(self._n_users - 1, 1)

    def _unbiased(self):
        return self._remembered(
            None, lambda: [r.estimate(c, m) if m else np.full(r.n_categories, np.nan)
                           for r, c, m in zip(self._laws_of_reports, self._own_counts(), self._sizes())]
        )

    def _postprocessed(self):
        each = zip(self._unbiased(), self.standard_errors_, self._laws_of_reports, self._own_counts(), self._sizes())
        return [postprocessed(self.postprocess, f, se, law, counts, m) if m else f for f, se, law, counts, m in each]

    def _remembered(self, name, make):
        """Return copies of answers of this name, made anew where counts changed: one of many values takes seconds.

        Whatever adds to the counts replaces their list, and the laws are those of the first counts. Two threads at
        once make the same answers twice; what another replaces meanwhile belongs to counts that no one has any more.
        """
        counts, laws, n = self._counts, self.randomizers_, self._n_users
        known = vars(self).get("_answers")
        if known is None or known[0] is not counts or known[1] is not laws or known[2] != n:
            known = self._answers = counts, laws, n, {}
        answers = known[3]
        if name not in answers:
            answers[name] = make()
        return [f.copy() for f in answers[name]]

    def __getstate__(self):
        state = super().__getstate__()
        state.pop("_answers", None)
        return state
