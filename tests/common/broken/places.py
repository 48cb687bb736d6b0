"""Broken reports of places."""

from fractions import Fraction

import numpy as np

from dpestim.geo import PlanarLaplaceTransformer
from dpestim.geo.law import PlanarLaw
from dpestim.geo.layers import layers_of


class SteepLaw(PlanarLaw):
    """Noise falls faster than epsilon for a metre allows."""

    def __init__(self, epsilon, n_first, n_second, step, manhattan=False):
        super().__init__(epsilon, n_first, n_second, step, manhattan)
        self.layers = layers_of(self.epsilon * self.step * 5 / 4, max(self.n_first, self.n_second))


class DrawsAgainLaw(PlanarLaw):
    """States, and draws, the law of places within the region only: those beyond are drawn again."""

    def transition_matrix(self):
        weights, n = self.around(), self.n_second
        r = len(weights) // 2
        at = [divmod(k, n) for k in range(self.n_inputs)]
        rows = [[int(weights[r + a - i, r + b - j]) for a, b in at] for i, j in at]
        return [[Fraction(w, sum(row)) for w in row] for row in rows]


class LongMetreLaw(PlanarLaw):
    """Promises epsilon for a longer metre."""

    def relaxed_between(self, x, other):
        return super().relaxed_between(x, other) / 2


class Steep(PlanarLaplaceTransformer):
    """Noise that falls too fast."""

    _randomizer = SteepLaw

    def _law(self, sides, step, coder):
        return SteepLaw.make(self._share(1), *sides, step)


class DrawsAgain(PlanarLaplaceTransformer):
    """Rejection in place of remapping to the border."""

    _randomizer = DrawsAgainLaw

    def _law(self, sides, step, coder):
        return DrawsAgainLaw.make(self._share(1), *sides, step)


class LongMetre(PlanarLaplaceTransformer):
    """Half of what two places have is promised."""

    _randomizer = LongMetreLaw

    def _law(self, sides, step, coder):
        return LongMetreLaw.make(self._share(1), *sides, step)


class RoundsDown(PlanarLaplaceTransformer):
    """Places are moved to a corner of their cell, and not to the nearest place."""

    def _made(self, lows, highs, names, **more):
        made = super()._made(lows, highs, names, **more)
        (column,) = made
        coder = column.coder

        def down():
            codes_of, half = coder(), float(column.law.step) / 2 / np.array(column.metres)
            return lambda block: codes_of(np.asarray(block, float) - half)

        column.coder = down
        return made


class WorsePrior(PlanarLaplaceTransformer):
    """The remapping goes to the least likely place."""

    def decode(self, codes):
        places = super().decode(codes)
        return places if self.prior is None else np.broadcast_to(
            np.asarray(self.prior[0])[np.argmin(self.prior[1])], places.shape).copy()


_METRES = PlanarLaplaceTransformer._test_params()[0]
BROKEN = [
    (Steep, _METRES, "check_promises"),
    (DrawsAgain, _METRES, "check_promises"),
    (LongMetre, _METRES, "check_places_are_as_far_as_promised"),
    (RoundsDown, _METRES, "check_places_are_rounded_to_the_nearest"),
    (WorsePrior, _METRES, "check_prior_is_free_and_helps"),
]
