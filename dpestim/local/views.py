"""Views of a row: public functions of its features, of which each user reports some; for what is built of oracles.

A view has a law of its own over its values: the pair of two categories, the first bits of a code, the node of a tree at
one level. Features are read once, as small numbers; a view is computed for the rows that drew it only, so that hundreds
of views of a row cost no memory. Users draw k of the views without looking at the row (`SampledColumns`, whose proof
`sampling.md` holds for any columns, and a view is one: a function of the row).
"""

from dataclasses import replace

import numpy as np

from dpestim.local.column import Column
from dpestim.local.sampling import CountedDraws


class View(Column):
    """A public function of the codes of some features; a sub-class brings `of`, and `function`, its identity.

    Parameters
    ----------
    name : str
    law : CategoricalRandomizer
    places : tuple of int
        The numbers of the features that it reads.
    """

    def __init__(self, name, law, places):
        super().__init__(name, law)
        self.places = tuple(places)

    @property
    def function(self):
        """What two views must share, besides the features that they read, to be the same function."""
        raise TypeError(f"{type(self).__name__} does not say which function it is: implement `function`")

    def of(self, codes):
        """Return the values of the view, an array of the law's `code_dtype`, from arrays of the features' codes."""
        raise TypeError(f"{type(self).__name__} does not say what it makes of codes: implement `of`")

    def identity(self):
        """Return the function, what it reads, and the law."""
        return type(self).__name__, self.function, self.places, self.law


class Product(View):
    """The values of several features together, as one number: the first feature counts most.

    Parameters
    ----------
    name, law, places : as `View`
    sizes : tuple of int
        How many values each of these features has.
    """

    def __init__(self, name, law, places, sizes):
        super().__init__(name, law, places)
        self.sizes = tuple(sizes)

    @property
    def function(self):
        """The sizes of the features."""
        return self.sizes

    def of(self, codes):
        """Return one number for each row."""
        out = codes[0].astype(self.law.code_dtype)
        for own, size in zip(codes[1:], self.sizes[1:]):
            out *= out.dtype.type(size)
            out += own.astype(out.dtype)
        return out


class Quotient(View):
    """A code without its last digits: the node of a tree, at one level, in whose range the code lies.

    Parameters
    ----------
    name, law : as `View`
    place : int
        The feature.
    width : int
        How many codes a node has.
    """

    def __init__(self, name, law, place, width):
        super().__init__(name, law, (place,))
        self.width_of_node = int(width)

    @property
    def function(self):
        """How many codes a node has."""
        return self.width_of_node

    def of(self, codes):
        """Return the number of the node of each code."""
        return (codes[0] // codes[0].dtype.type(self.width_of_node)).astype(self.law.code_dtype)


class _Seen:
    """The values of a view for the rows that are asked for: computed when they are."""

    def __init__(self, view, codes):
        self._view, self._codes = view, codes

    def __len__(self):
        return len(self._codes[0])

    def __getitem__(self, rows):
        return self._view.of([codes[rows] for codes in self._codes])

    def rows(self, view, rows):
        """Return the values of another view of the same features, for some of the rows."""
        return _Seen(view, [codes[rows] for codes in self._codes])


class ViewColumns(CountedDraws):
    """The views of a row, of which each user reports `n_sampled`.

    Parameters
    ----------
    views : list of View
    inferred, keys : as `Columns`
    n_sampled : int
    features : list
        What reads the features of a row (`dpestim.local.coded`): with `name`, `n_values`, `identity` and `read`.
    """

    def __init__(self, views, inferred="", keys=None, *, n_sampled, features):
        super().__init__(views, inferred, keys, n_sampled=n_sampled)
        self.row, self.n_features = list(features), len(features)

    def with_columns(self, columns):
        """Return the same draw of other views."""
        return type(self)(columns, self.inferred, self.keys, n_sampled=self.n_sampled, features=self.row)

    @property
    def names(self):
        """How messages call the features."""
        return [feature.name for feature in self.row]

    def named(self, names):
        """Return the same views of features with other names."""
        if list(names) == self.names:
            return self
        features = [feature.named(name) for feature, name in zip(self.row, names)]
        return type(self)(self.columns, self.inferred, self.keys, n_sampled=self.n_sampled, features=features)

    def number_of(self, column):
        """Return the number of a view, by its number or its name."""
        names = {view.name: j for j, view in enumerate(self.columns)}
        j = names.get(column) if isinstance(column, str) else column
        if isinstance(j, bool) or not isinstance(j, int | np.integer) or not -len(self) <= j < len(self):
            raise ValueError(f"column must be the name of a view or a number below {len(self)}")
        return j % len(self)

    def same_law(self, other):
        """Tell whether reports of the two can be counted together."""
        return super().same_law(other) and [f.identity() for f in self.row] == [f.identity() for f in other.row]

    def read(self, parts, n_jobs, strict):
        """Return the values of each view, from one array-like for each feature, or raise ValueError."""
        codes = []
        for feature, values in zip(self.row, parts):
            places, why = feature.read(values, n_jobs, explain=not strict)
            if strict:
                places[places == feature.n_values] = 0  # (what is no value counts as the first one)
            elif why:
                raise ValueError(f"{feature.name} {why}")
            codes.append(places)
        return [_Seen(view, [codes[place] for place in view.places]) for view in self.columns]

    def guarantee(self, seeded=None, times=1, n_batches=1):
        """Return what the report of one row promises."""
        plain = super().guarantee(seeded, times, n_batches)
        drawn = f"Each user reports {self.n_sampled} of {len(self)} columns, drawn independently of the row."
        views = f"Each user reports {self.n_sampled} of {len(self)} views of the row, drawn independently of the row."
        return replace(plain, notes=tuple(views if note == drawn else note for note in plain.notes))
