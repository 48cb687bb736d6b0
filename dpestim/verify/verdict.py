"""The answer to a claim: proved, refuted or unknown, with the alignment or the counterexample."""

import math
from fractions import Fraction

from dpestim.privacy import PrivacyGuarantee
from dpestim.tables import Table

PROVED, REFUTED, UNKNOWN = "proved", "refuted", "unknown"


class Verdict(Table):
    """What `verify` found out about a program's claim.

    ``print(verdict)`` shows it; ``bool(verdict)`` is True for a proof only.

    Attributes
    ----------
    status : {"proved", "refuted", "unknown"}
    program : Program
    alignment : list of (str, int, str)
        Of a proof: the case ("" where there is one), the line of each noise, and how far the noise of the second run is
        shifted. A distance is the second run's value less the first one's.
    scope : str or None
        Of a proof: the sizes that it is about.
    counterexample : Refutation or None
        Of a refutation: inputs, an output, and bounds of its two probabilities.
    reason : str or None
        Why nothing is known.
    seconds : float

    Examples
    --------
    >>> from dpestim.verify import laplace, program, queries, verify
    >>> @program("epsilon", assume=["epsilon > 0"], q=queries())
    ... def too_little(q, epsilon):
    ...     return q[0] + laplace(1 / (2 * epsilon))
    >>> verdict = verify(too_little)
    >>> verdict.status, round(verdict.counterexample.epsilon, 6)
    ('refuted', 2.0)
    """

    _plotted = ("value", None, None)

    def __init__(self, program, seconds, *, proof=None, counterexample=None, reason=None):
        self.program, self.seconds, self.counterexample, self.reason = program, seconds, counterexample, reason
        self.status = PROVED if proof is not None else REFUTED if counterexample is not None else UNKNOWN
        self.scope = None if proof is None else proof.scope
        self.alignment = [] if proof is None else [
            (case, site.line, str(shift)) for case, shifts in proof.shifts
            for site, shift in zip(program.sites, shifts)]

    def __bool__(self):
        return self.status == PROVED

    __repr__ = Table.__str__

    @property
    def privacy(self):
        """Nothing was released: a verdict is about a program."""
        return PrivacyGuarantee(0, notes=("A verdict is about a program, and reads no data.",))

    def _about(self):
        return f"Nothing: the program {self.program.name} was read, and not run."

    def _head(self):
        return "fact", "value"

    def _rows(self):
        yield "program", self.program.name
        yield "claimed epsilon", self.program.claim
        yield "verdict", self.status
        if self.status == PROVED:
            yield "holds for", self.scope
            for case, line, shift in self.alignment:
                yield f"shift of the noise of line {line}{', if ' * bool(case)}{case}", shift
        elif self.status == REFUTED:
            found = self.counterexample
            for name, value in found.parameters.items():
                yield name, as_text(value)
            yield self.program.query, as_text(found.answers)
            yield f"{self.program.query} of the neighbour", as_text(found.neighbour)
            yield "output", as_text(found.output)
            kind = "density" if found.is_density else "probability"
            yield f"its {kind}", f"{float(found.likely[0]):.6g}"
            yield f"its {kind} on the neighbour", f"{float(found.unlikely[1]):.6g}"
            yield "epsilon of this output", "infinite" if math.isinf(found.epsilon) else f"{found.epsilon:.6g}"
            yield "epsilon that is claimed", f"{float(found.claim):.6g}"
        else:
            yield "reason", self.reason

    def _remarks(self):
        return {
            PROVED: ("The run on the neighbour draws the noise of the first run, shifted. Both runs have the same "
                     "output, and the shifts cost at most the claim.",),
            REFUTED: ("Both numbers are computed from the law of the noise: nothing was sampled.",),
        }.get(self.status, ())


def as_text(value):
    """Return a value of a program as text: fractions of more than three digits as decimals."""
    if isinstance(value, Fraction):
        return str(value) if value.denominator < 10 else f"{float(value):.4f}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(as_text, value))}]"
    return str(value)
