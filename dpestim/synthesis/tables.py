"""Tables of rows in parts: counts of sets of columns, which add up."""


from dpestim.passes import Blueprint, Request
from dpestim.records import record
from dpestim.synthesis.scores import cells_in, counted

#: Cells of tables that a part sends at a time, or one table: 8 MiB.
_MOST_CELLS = 1 << 20


@record
class CountTables(Request):
    """Asks rows in parts for the exact table of each of some sets of columns."""

    blueprint: Blueprint
    #: `Categories` or `Numbers`, as they were declared
    columns: list
    sets: tuple = ()

    def of_rows(self, rows, place):
        """Return exact tables."""
        codes = self.blueprint.build()._read_part(rows, self.columns)
        return [counted(codes, own, [column.size for column in self.columns]) for own in self.sets]

    @staticmethod
    def add(one, other):
        """Return the sums of both; neither is changed."""
        return [a + b for a, b in zip(one, other)]


def few_at_a_time(sets, sizes):
    """Yield sets of columns, in their order, in tuples whose tables have few cells together."""
    some, cells = [], 0
    for own in sets:
        more = cells_in(own, sizes)
        if some and cells + more > _MOST_CELLS:
            yield tuple(some)
            some, cells = [], 0
        some.append(own)
        cells += more
    if some:
        yield tuple(some)
