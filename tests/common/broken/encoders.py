"""Broken encoders: what they keep or give away depends on rows."""

from dpestim.preprocessing import DomainEncoder


class LongerThanItSays(DomainEncoder):
    """Rows that are longer than `norm_bound`."""

    def transform(self, X):
        return 2 * super().transform(X)


class KeepsTheMean(DomainEncoder):
    """A fit that looks at values."""

    _learned = ("_names", "_mean")

    def fit(self, X, y=None):
        super().fit(X)
        self._mean = float(X.sum())
        return self


SETTINGS = DomainEncoder._test_params()
BROKEN = [(LongerThanItSays, SETTINGS[0], "check_encoder_is_free"),
          (KeepsTheMean, SETTINGS[0], "check_encoder_is_free")]
