"""The language: a Python function whose syntax tree is read and checked, and that is never run.

After the check, each noise has a statement of its own (`Noise`), `for` is `while`, and every name has a type.
"""

import ast
import inspect
import textwrap
from dataclasses import field
from fractions import Fraction

from dpestim.records import record

NOISES = ("laplace", "discrete_laplace")
DIFFER = ("each", "one", "monotone")
#: What stands in every message about what is not in the language.
ALLOWED = ("allowed are assignments to names, if, while, `for i in range(...)`, `out = []`, `out.append(...)`, one "
           "`return` at the end, + - * / %, comparisons, and, or, not, abs, min, max, len, q[i], laplace(scale) and "
           "discrete_laplace(scale)")


class ProgramError(ValueError):
    """A program is not in the language; the message names the line and what is allowed."""


@record
class Queries:
    """What is declared of a list of query answers: `queries` makes it.

    Attributes
    ----------
    sensitivity : Fraction
    differ : {"each", "one", "monotone"}
    integer : bool

    Examples
    --------
    >>> from dpestim.verify import queries
    >>> queries(integer=True)
    Queries(sensitivity=Fraction(1, 1), differ='each', integer=True)
    """

    sensitivity: Fraction
    differ: str
    integer: bool


@record
class Assign:
    """`name = expr`."""

    name: str
    expr: ast.expr
    line: int


@record
class Noise:
    """A draw of noise, which is read as the name ``~number``."""

    number: int
    kind: str
    scale: ast.expr
    line: int
    #: Expressions that this noise is added to, where they could be found: only hints for the search of an alignment.
    companions: list = field(default_factory=list, compare=False)
    #: Whether the sum of the noise and its only companion is an output itself.
    is_output: bool = False

    @property
    def name(self):
        """How expressions refer to the noise."""
        return f"~{self.number}"


@record
class Append:
    """`out.append(expr)`."""

    expr: ast.expr
    line: int


@record
class If:
    """`if cond: body else: orelse`."""

    cond: ast.expr
    body: list
    orelse: list
    line: int


@record
class While:
    """`while cond: body`."""

    cond: ast.expr
    body: list
    line: int


@record
class Return:
    """`return a, b, out`; `exprs` has None for the list."""

    exprs: list
    line: int


def queries(sensitivity=1, *, differ="each", integer=False):
    """Declare a parameter that is a list of exact answers to queries, whose length is public.

    Parameters
    ----------
    sensitivity : number, default=1
        The most by which one answer differs between neighbours.
    differ : {"each", "one", "monotone"}, default="each"
        Which answers differ: each of them may, in any direction; only one of them does (a histogram, where one person
        is added or removed); each of them may, and all in the same direction.
    integer : bool, default=False
        Whether answers are integers, as they must be where `discrete_laplace` is added to them.

    Returns
    -------
    Queries

    Examples
    --------
    >>> from dpestim.verify import queries
    >>> queries(2, differ="one").differ
    'one'
    """
    exact = Fraction(str(sensitivity)) if isinstance(sensitivity, int | float | Fraction) else None
    if exact is None or exact <= 0:
        raise ValueError(f"sensitivity must be a number above 0, got {sensitivity!r}")
    if differ not in DIFFER:
        raise ValueError(f"differ must be one of {', '.join(DIFFER)}, got {differ!r}")
    return Queries(exact, differ, bool(integer))


def laplace(scale):
    """Laplace noise, in a program that is read: calling it is an error.

    Parameters
    ----------
    scale : number
        Above 0, of parameters and numbers. The density is proportional to ``exp(-|x| / scale)``.

    Examples
    --------
    >>> from dpestim.verify import laplace, program, queries
    >>> @program("1 / b", assume=["b > 0"], q=queries())
    ... def noisy(q, b):
    ...     return q[0] + laplace(b)
    """
    raise TypeError("laplace(scale) is noise of a program that is read: write @program(...) above the function")


def discrete_laplace(scale):
    """Integer noise, in a program that is read: calling it is an error.

    Parameters
    ----------
    scale : number
        Above 0, of parameters and numbers. The probability is proportional to ``exp(-|z| / scale)``.

    Examples
    --------
    >>> from dpestim.verify import discrete_laplace, program, queries
    >>> @program("1 / b", assume=["b > 0"], q=queries(integer=True))
    ... def noisy(q, b):
    ...     return q[0] + discrete_laplace(b)
    """
    raise TypeError("discrete_laplace(scale) is noise of a program that is read: write @program(...) above the "
                    "function")


def program(claim, *, assume=(), integers=(), **declared):
    """Declare what a randomised program claims: a decorator of a function that is read, and never run.

    Parameters
    ----------
    claim : str
        The epsilon that is claimed, an expression of parameters, such as ``"epsilon"`` or ``"2 * epsilon"``.
    assume : sequence of str
        What holds of parameters, such as ``["epsilon > 0", "N >= 1"]``.
    integers : sequence of str
        Parameters that are integers; others are real numbers.
    **declared : Queries
        The parameter that holds answers to queries, by its name: see `queries`. Other parameters are public.

    Returns
    -------
    callable
        Takes a function, or the text of one, and returns a `Program`.

    Raises
    ------
    ProgramError
        A ValueError: what is not in the language, with its line.

    Examples
    --------
    >>> from dpestim.verify import laplace, program, queries
    >>> @program("epsilon", assume=["epsilon > 0"], q=queries())
    ... def noisy_answer(q, epsilon):
    ...     return q[0] + laplace(1 / epsilon)
    >>> noisy_answer
    <program noisy_answer(q, epsilon), which claims epsilon>
    """
    def read(function):
        return Program(function, claim, assume, integers, declared)
    return read


class Program:
    """A program that was read; `program` makes it.

    Attributes
    ----------
    name : str
    parameters : list of str
    source : str
        Its text, whose lines messages count from 1.
    claim : str
    query : str
        The parameter that holds answers.
    queries : Queries
        What is declared of them.

    Examples
    --------
    >>> from dpestim.verify import suite
    >>> suite()["smart sum"].claim
    '2 * epsilon'
    """

    def __init__(self, function, claim, assume, integers, declared):
        try:
            self.source = textwrap.dedent(function if isinstance(function, str) else inspect.getsource(function))
        except OSError as error:
            raise ProgramError("the text of the function is not known: write the function in a file, or give its text "
                               "to program(...)") from error
        tree = ast.parse(self.source)
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if len(tree.body) != 1 or not found:
            raise ProgramError("a program must be one function: give a function, or the text of one")
        (function,) = found
        self.source = "\n".join(self.source.splitlines()[function.lineno - 1:])
        ast.increment_lineno(function, 1 - function.lineno)
        args = function.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
            raise ProgramError("line 1: parameters must be plain names, without defaults and stars")
        self.name, self.parameters = function.name, [arg.arg for arg in args.args]
        taken = [name for name in self.parameters if name in (*NOISES, "abs", "min", "max", "len", "range")]
        if taken:
            raise ProgramError(f"line 1: {taken[0]} is a function of the language: give the parameter another name")
        self._declare(claim, assume, integers, declared)
        from dpestim.verify.reading import Reader

        reader = Reader(self)
        self.body = reader.block(function.body, top=True)
        self.sites = reader.sites
        reader.finish(self.body)
        self.types, self.is_secret, self.types_of = reader.types, reader.is_secret, reader.type_of
        for expr, kinds in ((self.claim_expr, ("int", "real")), *((expr, ("bool",)) for expr in self.assumptions)):
            try:
                kind = reader.type_of(reader.without_noise(expr))
            except ProgramError:
                kind = None
            if kind not in kinds:
                raise ProgramError(f"`{ast.unparse(expr)}` must be a {'condition' if 'bool' in kinds else 'number'} of "
                                   "parameters, with + - * / %, one comparison at a time, and, or, not")

    def _declare(self, claim, assume, integers, declared):
        for name in (*integers, *declared):
            if name not in self.parameters:
                raise ProgramError(f"{name} is declared, and {self.name} has no such parameter: it has "
                                   f"{', '.join(self.parameters)}")
        if len(declared) != 1 or not isinstance(next(iter(declared.values())), Queries):
            raise ProgramError(f"one parameter of {self.name} must be declared as queries(): "
                               "program(..., q=queries())")
        (self.query, self.queries), = declared.items()
        self.integers = tuple(integers)
        self.public = [name for name in self.parameters if name != self.query]
        self.claim = str(claim)
        self.claim_expr = self._public(self.claim, "claim")
        self.assumptions = [self._public(text, "assume") for text in ([assume] if isinstance(assume, str) else assume)]

    def _public(self, text, what):
        """Return the tree of an expression of parameters."""
        try:
            tree = ast.parse(str(text), mode="eval").body
        except SyntaxError as error:
            raise ProgramError(f"{what} must be an expression of parameters, got {text!r}") from error
        allowed = (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.operator, ast.unaryop,
                   ast.cmpop, ast.boolop, ast.Load)
        for node in ast.walk(tree):
            if not isinstance(node, allowed) or (isinstance(node, ast.Name) and node.id not in self.public):
                raise ProgramError(f"{what} must be an expression of the parameters {', '.join(self.public)}, "
                                   f"got {text!r}")
        return tree

    def __repr__(self):
        return f"<program {self.name}({', '.join(self.parameters)}), which claims {self.claim}>"
