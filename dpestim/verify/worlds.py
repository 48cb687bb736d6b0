"""What two runs are executed in: parameters, answers, noise, and the output that the first run has.

`SymbolicWorld` has terms of z3, `ConcreteWorld` the numbers of one model of it.
"""

from fractions import Fraction

from dpestim.verify import terms as t

KINDS = {"none": 0, "bool": 1, "int": 2, "real": 3}


class SymbolicWorld:
    """Terms for all that is not known.

    Parameters
    ----------
    fixed : dict
        Integer parameters that have a number.
    length : int or None
        How many answers there are; None for any number.
    sign : int
        Of monotone queries: 1 where answers rise, -1 where they fall.
    """

    def __init__(self, program, fixed=(), length=None, sign=0):
        # (names of z3 begin with a sign that no parameter can have)
        z3 = t.solver()
        self.program, self.fixed, self.sign, self.count = program, dict(fixed), sign, 0
        self.parameters = {name: self.fixed[name] if name in self.fixed else
                           (z3.Int if name in program.integers else z3.Real)(name) for name in program.public}
        self.facts = []
        self.length = z3.Int("!length") if length is None else length
        if length is None:
            self.facts.append(self.length >= 0)
        sort = z3.IntSort() if program.queries.integer else z3.RealSort()
        self._answer = z3.Function("!answer", z3.IntSort(), sort)
        self._change = z3.Function("!change", z3.IntSort(), sort)
        #: The place of the only answer that differs, and by how much.
        self.place, self._only = z3.Int("!place"), z3.Const("!only", sort)
        most = t.term(program.queries.sensitivity)
        if program.queries.differ == "one":
            self.facts += [self._only <= most, self._only >= -most]
        self.kind = z3.Function("!kind", z3.IntSort(), z3.IntSort())
        self.as_bool = z3.Function("!truth", z3.IntSort(), z3.BoolSort())
        self.as_int = z3.Function("!whole", z3.IntSort(), z3.IntSort())

    def answer(self, place, facts):
        """Return (an answer, how far that of the neighbour is above it)."""
        place, most = t.term(place), t.term(self.program.queries.sensitivity)
        if self.program.queries.differ == "one":
            return self._answer(place), t.choose(place == self.place, self._only, 0 * self._only)
        change = self._change(place)
        facts += [change <= (most if self.sign >= 0 else 0), change >= (-most if self.sign <= 0 else 0)]
        return self._answer(place), change

    def noise(self, site, steps):
        """Return new noise."""
        z3 = t.solver()
        make = z3.Int if site.kind == "discrete_laplace" else z3.Real
        if isinstance(self.length, int):  # (unrolled: a step has its own name, in every world)
            return make(f"{site.name}@{steps}")
        self.count += 1
        return make(f"{site.name}#{self.count}")

    def known_output(self, place, kind, value):
        """Yield what is known of an output of the first run."""
        if isinstance(place, tuple):
            if kind in ("bool", "int"):
                yield t.same(self.returned(place[1], kind), value)
            return
        place = t.term(place)
        yield self.kind(place) == KINDS[kind]
        if kind in ("bool", "int"):
            yield t.same((self.as_bool if kind == "bool" else self.as_int)(place), value)

    def returned(self, number, kind):
        """Return the number that is returned, of a kind."""
        z3 = t.solver()
        return (z3.Bool if kind == "bool" else z3.Int)(f"!returned{number}")

    def next_is(self, place, kind, value):
        """Tell whether the next output of the first run is of a kind, and has a value (None: any)."""
        place = t.term(place)
        out = [self.kind(place) == KINDS[kind]]
        if value is not None:
            out.append(t.same((self.as_bool if kind == "bool" else self.as_int)(place), value))
        return t.both(*out)


class ConcreteWorld:
    """The numbers of a model of a symbolic world whose length is a number."""

    def __init__(self, world, model):
        self._world, self._model, self._seen = world, model, {}
        self.parameters = {name: self._number(value) for name, value in world.parameters.items()}
        self.facts, self.length, self.program = [], world.length, world.program

    def _number(self, value):
        if t.is_known(value):
            return value
        key = value.get_id()
        if key not in self._seen:
            # (the term is kept, so that its number stays its own)
            self._seen[key] = value, constant(self._model.eval(value, model_completion=True))
        return self._seen[key][1]

    def answer(self, place, facts):
        """Return (an answer, its change), and facts as truth values."""
        found = []
        answer, change = self._world.answer(place, found)
        facts += [bool(self._number(fact)) for fact in found]
        return self._number(answer), self._number(change)

    def noise(self, site, steps):
        """Return the noise of the model."""
        return self._number(self._world.noise(site, steps))

    def known_output(self, place, kind, value):
        """Yield whether the output is the one of the model."""
        for fact in self._world.known_output(place, kind, value):
            yield bool(self._number(fact))

    def returned(self, number, kind):
        """Return the number that is returned in the model."""
        return self._number(self._world.returned(number, kind))

    def next_is(self, place, kind, value):
        """Tell whether the next output is so in the model."""
        return bool(self._number(self._world.next_is(place, kind, value)))


def constant(value):
    """Return a number of z3 as one of Python; raises ValueError for what is no rational number."""
    z3 = t.solver()
    if z3.is_true(value) or z3.is_false(value):
        return z3.is_true(value)
    if z3.is_int_value(value):
        return value.as_long()
    if z3.is_rational_value(value):
        return Fraction(value.numerator_as_long(), value.denominator_as_long())
    raise ValueError(f"z3 found a number that is not rational: {value}")
