"""The picture of two worlds: the releases of 100 that lead to a conclusion, with somebody's data and without."""

from html import escape

from dpestim.privacy.chances import chances

#: Dots of a row, and the distance between two of them.
_SIDE, _STEP = 10, 12


class Worlds:
    """What a guarantee means for one person, in a language: sentences, a picture of dots, and lines of text.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
    say : Language
    """

    def __init__(self, guarantee, say):
        self._guarantee, self._say, self.chances = guarantee, say, chances(guarantee)
        self.is_bounded = self.chances is not None and not guarantee.is_nothing
        of = guarantee.neighbours.value
        self._names = say(f"without.{of}"), say(f"within.{of}")

    @property
    def text(self):
        """How often a release leads to any conclusion about the person, in both worlds."""
        say = self._say
        if self._guarantee.is_nothing:
            return say("worlds.nothing")
        if self.chances is None:
            return say("worlds.far" if self._guarantee.is_finite or self._guarantee.relaxation else "worlds.none")
        base, x, y, u, v, _ = self.chances
        return self._of_relaxed("worlds.says", base=base, x=x, y=y, u=u, v=v)

    @property
    def guess(self):
        """How often an attacker names the right world."""
        if self._guarantee.is_nothing:
            return self._say("attacker.nothing")
        if self.chances is None:
            return self._say("attacker.everything")
        base = self.chances.base
        return self._of_relaxed("attacker.guess", base=base, y=self.chances.right, half=base // 2)

    @property
    def lines(self):
        """The picture as lines of text, one for each world: a mark for each ten of 100."""
        return [f"  [{'#' * round(10 * n / self.chances.base):.<10}] {name}: {said}" for n, name, said in self._parts()]

    @property
    def html(self):
        """The picture as HTML, with a text for readers who do not see it."""
        parts = self._parts()
        if not parts:
            return ""
        label = self._say("worlds.seen", without=self._names[0], within=self._names[1], **self._numbers())
        figures = "".join(
            f"<figure style='margin:0;max-width:14em'>{_dots(n / self.chances.base)}"
            f"<figcaption>{escape(name)}: {escape(said)}</figcaption></figure>" for n, name, said in parts)
        return (f"<div role='img' aria-label='{escape(label)}' style='display:flex;flex-wrap:wrap;gap:2em'>"
                f"{figures}</div>")

    def _parts(self):
        """Return (number of releases, world, number as text) of both worlds; nothing where there is no bound."""
        if not self.is_bounded:
            return []
        base, x, y = self.chances[:3]
        numbers = (x, "worlds.of"), (y, "worlds.at_most")
        return [(n, name, self._say(key, **self._written(many=n, base=base)))
                for (n, key), name in zip(numbers, self._names)]

    def _numbers(self):
        base, x, y = self.chances[:3]
        return self._written(base=base, x=x, y=y)

    def _written(self, **numbers):
        return {name: self._say.count(n) for name, n in numbers.items()}

    def _of_relaxed(self, key, **numbers):
        """Return a text, and for which values it holds where that is not for all."""
        text = self._say(key, without=self._names[0], within=self._names[1], **self._written(**numbers))
        if self._guarantee.is_finite:
            return text
        return self._say("worlds.relaxed", relaxation=self._guarantee.relaxation, text=text)


def _dots(share):
    """Return a picture of 100 dots, of which a share is full: in the colour of the text, so on any background."""
    full, size = round(100 * share), _SIDE * _STEP
    dots = "".join(
        f"<circle cx='{_STEP * (k % _SIDE) + 6}' cy='{_STEP * (k // _SIDE) + 6}' r='4' "
        f"fill='{'currentColor' if k < full else 'none'}'/>" for k in range(100))
    return (f"<svg viewBox='0 0 {size} {size}' width='{size}' height='{size}' stroke='currentColor' "
            f"aria-hidden='true'>{dots}</svg>")
