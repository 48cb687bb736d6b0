"""One column of rows: its values as a law takes them, and what its reports stand for."""


import numpy as np


class Column:
    """One column: its name, its domain and its law; a sub-class for each kind of domain.

    Parameters
    ----------
    name : str
        As errors and relaxations call it, such as "column 0" or "column 'weight'".
    law : Randomizer
    """

    #: Features of X that it stands for. With None `read` gets one of them, as an array of rows; a column with a number
    #: here gets an (n, n_features) block, even if that is 1: its law is about all of them together.
    n_joint = None

    #: Whether `read` returns an array of its own, that nobody else has.
    reads_afresh = False

    def __init__(self, name, law):
        self.name, self.law = name, law

    @property
    def n_features(self):
        """Features of X that it stands for."""
        return self.n_joint or 1

    @property
    def feature_names(self):
        """How messages call its features."""
        return [self.name]

    def identity(self):
        """Return what two columns must share for their reports to be counted together: domain and law."""
        raise TypeError(f"{type(self).__name__} does not say what identifies it")

    def is_like(self, other):
        """Tell whether reports of the two can be counted together."""
        return self.identity() == other.identity()

    @property
    def domain(self):
        """What values are possible, as a survey says it: a dict with a "kind", of lists, strings, numbers and bools."""
        return {"kind": "other"}

    def read(self, values, n_jobs, strict):
        """Return the values of one checked column as an array of rows, or raise ValueError that names the column only.

        Where `strict`, nothing is raised for a value.
        """
        raise TypeError(f"{type(self).__name__} does not say how to read values")

    def coder(self):
        """Return a function from a block of what `read` gave to the codes that the law takes; one for each thread."""
        return lambda block: block

    def privatizer(self):
        """Return a function that writes the reports of a block of what `read` gave: block, words, out.

        One for each thread. A law that answers values without codes in between, faster, may have one of its own.
        """
        codes_of, privatize = self.coder(), self.law.privatize
        return lambda block, words, out: privatize(codes_of(block), words, out)

    def coder_of_one(self, dtype, place):
        """Return a function from a record, an array of one row, to the codes of its value at a place.

        It returns None for a value that `read` has to look at. None in its place: `read` looks at every value.
        """
        return None

    def named(self, name):
        """Return the same column under another name."""
        if name == self.name:
            return self
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), name=name)
        return twin

    def relaxation(self):
        """Return the name of the promise that the law keeps here: the column, and the exact set of inputs."""
        return f"{self.law.relaxation}({self.name}: {self.law.relaxed_kind}={self.relaxed_inputs()})"

    def relaxed_inputs(self):
        """Return, in the user's terms, the inputs that the law's relaxation gives less protection."""
        raise TypeError(f"{type(self).__name__} does not say which inputs are relaxed")

    @property
    def middles(self):
        """What a decoded number is where a row says nothing about it: any public number, one for each feature."""
        raise TypeError(f"{type(self).__name__} does not say where its middle is")

    # what a server of numbers asks: positions are the law's own coordinates

    #: Whether a value may be missing, and is reported as such.
    may_be_missing = False
    #: Whether a bin is a value, and not a range of them.
    is_discrete = False
    #: Whether neighbouring bins are neighbouring values, so that an average over them means something.
    is_even = True

    def to_units(self, positions):
        """Return positions in the user's units."""
        return positions

    @property
    def width(self):
        """One unit of positions, in the user's units."""
        return 1.0

    def numbers(self, rows):
        """Return rows, as `read` gave them, as floats in the units that means are in."""
        return np.asarray(rows, np.float64)

    def average(self, rows):
        """Return the mean of rows, as `read` gave them, of which `means` are estimates."""
        return np.atleast_1d(self.numbers(rows).mean(axis=0))

    def check_mean(self):
        """Raise ValueError where the counts do not tell about the mean."""
        self.mean_values()

    def n_reports(self, counts):
        """Return how many reports the counts are of."""
        return int(counts.sum())

    def means(self, counts):
        """Return (means, standard errors, largest biases), arrays with one entry a feature, in the user's units.

        Standard errors cover the drawing of the users, too; NaN for a single report, and all is NaN without any.
        """
        (numbers, bias), (zero, unit), n = self.mean_values(), self.mean_scale, self.n_reports(counts)
        if not n:
            return np.full(1, np.nan), np.full(1, np.nan), np.full(1, np.nan)
        middle, shares = (numbers.max() + numbers.min()) / 2, counts.astype(np.float64)
        v = numbers - middle  # so that sums lose no digits; floats are exact below 2**53, and have faster products
        mean, error = middle + v @ shares / n, np.nan
        if n > 1:
            seen = np.square(v - v @ shares / n) @ shares / (n - 1)
            # far outliers are rare where epsilon is large, and may be missing among few reports: the law knows of them
            error = np.sqrt(max(seen, self.least_noise(v, mean, counts, n)) / n) * unit
        return np.array([zero + unit * mean]), np.array([error]), np.array([bias * unit])

    def two_numbers(self, counts):
        """Return (shares of the larger, how far apart they are, a unit of that) where a report is one of two numbers.

        Arrays; the unit is in the user's. Else, and without any report, None.
        """
        (numbers, _), n = self.mean_values(), self.n_reports(counts)
        if len(numbers) != 2 or not n:
            return None
        share = counts[int(numbers[1] >= numbers[0])] / n
        return np.array([share]), np.array([np.ptp(numbers)]), np.array([self.mean_scale[1]])

    def missing_share(self, counts):
        """Return (the share of missing values, its standard error), an estimate; both 0 where none may be missing."""
        return 0.0, 0.0

    @property
    def shape_law(self):
        """The law of the reports that tell of a distribution."""
        return self.law

    def shape_counts(self, counts):
        """Return the counts of these reports."""
        return counts

    def unmixed(self, counts, shares):
        """Return shares of bins of equal width, without what else is among these reports."""
        return shares

    def decode(self, reports):
        """Return an (n, n_features) array of what reports stand for, in the user's units, where the law says it."""
        raise TypeError(f"{type(self).__name__} does not say what reports stand for")

    def mean_values(self):
        """Return (numbers of the counts, bias) as `Randomizer.mean_values` does, on the scale `mean_scale`.

        Raises ValueError where this column has no mean.
        """
        return self.law.mean_values()

    @property
    def mean_scale(self):
        """Where 0 lies, and how long 1 is, of the numbers of `mean_values`, in the user's units."""
        return self.to_units(0.0), self.width

    #: The variance of values spread evenly over the domain, in the user's units.
    even_spread = 0.0

    def even_variance(self):
        """Return the variance of a report's number over users with values spread evenly over the domain.

        An array with one entry a feature, in the user's units; it depends on no data.
        """
        numbers, _ = self.mean_values()
        middle = (numbers.max() + numbers.min()) / 2  # so that squares lose no digits
        return np.array([self.law.noise_of(numbers - middle).mean() * self.mean_scale[1] ** 2 + self.even_spread])

    def least_noise(self, numbers, mean, counts, n):
        """Return a variance that a report's number has at least, as the law has it; the reports may not show it yet."""
        return 0.0

    def binned(self, rows):
        """Return rows, as `read` gave them, on the scale of the bins of a distribution."""
        return self.numbers(rows)
