"""Reading a function: the check of each statement, noise taken out of expressions, types, and what is secret."""

import ast

from dpestim.verify.language import ALLOWED, NOISES, Append, Assign, If, Noise, ProgramError, Return, While

_FUNCTIONS = {"abs": (1, 1), "min": (2, 9), "max": (2, 9), "len": (1, 1)}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def names_in(expr):
    """Return the names that an expression reads."""
    return {node.id for node in ast.walk(expr) if isinstance(node, ast.Name)}


def expressions(body):
    """Yield (statement, expression) of all statements, inner ones too."""
    for node in body:
        if isinstance(node, Assign | Append):
            yield node, node.expr
        elif isinstance(node, If | While):
            yield node, node.cond
            yield from expressions(node.body)
            yield from expressions(getattr(node, "orelse", []))
        elif isinstance(node, Return):
            yield from ((node, expr) for expr in node.exprs if expr is not None)


class Reader:
    """Checks a function's statements, and returns those of the language."""

    def __init__(self, program):
        self.program = program
        self.output = None
        self.sites = []
        self.known = set(program.public)
        self.counters = set()
        self.types, self.secret = {}, set()

    def fail(self, node, what):
        """Raise an error about a line."""
        raise ProgramError(f"line {node.lineno} of {self.program.name}: {what}; {ALLOWED}")

    # ---------------------------------------------------------------- statements

    def block(self, body, top=False):
        """Return the statements of a block."""
        if top and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # (a docstring)
        if top and not (body and isinstance(body[-1], ast.Return)):
            raise ProgramError(f"{self.program.name} must end with `return`")
        out = []
        for node in body:
            out += self.statement(node, top, top and node is body[-1])
        return out

    def statement(self, node, top, last):
        """Return what one statement of Python becomes."""
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            node = ast.fix_missing_locations(ast.copy_location(
                ast.Assign([node.target], ast.copy_location(value, node)), node))
        if isinstance(node, ast.Assign):
            return self.assignment(node, top)
        if isinstance(node, ast.Expr) and self.is_append(node.value):
            if self.output is None or node.value.func.value.id != self.output:
                self.fail(node, "append must be to the output, which begins as `out = []`")
            before, expr = self.lifted(node.value.args[0], value=True)
            return [*before, Append(expr, node.lineno)]
        if isinstance(node, ast.If):
            before, cond = self.lifted(node.test)
            known = set(self.known)
            body = self.block(node.body)
            first, self.known = self.known, known
            orelse = self.block(node.orelse)
            self.known = first & self.known
            return [*before, If(cond, body, orelse, node.lineno)]
        if isinstance(node, ast.While) and not node.orelse:
            cond = self.without_noise(node.test)
            known = set(self.known)
            body = self.block(node.body)
            self.known = known
            return [While(cond, body, node.lineno)]
        if isinstance(node, ast.For) and not node.orelse:
            return self.counted(node)
        if isinstance(node, ast.Return) and last and node.value is not None:
            return self.returned(node)
        if isinstance(node, ast.Pass):
            return []
        if isinstance(node, ast.Return):
            self.fail(node, "return must be the last statement, and return something")
        return self.fail(node, f"`{ast.unparse(node).splitlines()[0]}` is not in the language")

    def assignment(self, node, top):
        """Return an assignment, or nothing for the output that begins."""
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            self.fail(node, "an assignment must be to one name")
        name = node.targets[0].id
        if name in self.program.parameters or name in (*NOISES, *_FUNCTIONS) or name == self.output:
            self.fail(node, f"{name} must not be assigned to")
        if isinstance(node.value, ast.List) and not node.value.elts:
            if not top or self.output is not None or name in self.known:
                self.fail(node, "there must be one list, which begins empty, outside of if and loops")
            self.output = name
            return []
        if name in self.counters:
            self.fail(node, f"{name} must not be assigned to: it counts the steps of a loop")
        before, expr = self.lifted(node.value)
        self.known.add(name)
        return [*before, Assign(name, expr, node.lineno)]

    def counted(self, node):
        """Return `for i in range(a, b)` as a loop with a counter of its own."""
        call = node.iter
        if not (isinstance(node.target, ast.Name) and isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                and call.func.id == "range" and 1 <= len(call.args) <= 2 and not call.keywords):
            self.fail(node, "a loop must be `for name in range(stop)` or range(start, stop)")
        start, stop = call.args if len(call.args) == 2 else (ast.Constant(0), call.args[0])
        name = node.target.id
        if name in self.known or name in (*self.program.parameters, *NOISES, *_FUNCTIONS):
            self.fail(node, f"the loop must count with a name that is not used: {name} is")
        for bound in (start, stop):
            ast.copy_location(bound, node)
            self.without_noise(bound)
            if not names_in(bound) <= {*self.program.parameters, "len"}:
                self.fail(node, "the bounds of range must be of parameters and numbers")
        self.known.add(name)
        self.counters.add(name)
        known = set(self.known)
        body = self.block(node.body)
        # (after the loop Python has another value, and so has nobody)
        self.known = known - {name}
        one = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), ast.Constant(1))
        cond = ast.Compare(ast.Name(name, ast.Load()), [ast.Lt()], [stop])
        for new in (one, cond):
            ast.fix_missing_locations(ast.copy_location(new, node))
        return [Assign(name, start, node.lineno), While(cond, [*body, Assign(name, one, node.lineno)], node.lineno)]

    def returned(self, node):
        """Return what is returned: numbers, and the list."""
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        before, exprs = [], []
        for value in values:
            if isinstance(value, ast.Name) and value.id == self.output:
                exprs.append(None)
                continue
            found, expr = self.lifted(value, value=True)
            before += found
            exprs.append(expr)
        if exprs.count(None) != (self.output is not None):
            self.fail(node, f"the list {self.output} must be returned, once")
        return [*before, Return(exprs, node.lineno)]

    def is_append(self, node):
        """Tell whether an expression is `name.append(value)`."""
        return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
                and isinstance(node.func.value, ast.Name) and len(node.args) == 1 and not node.keywords)

    # ---------------------------------------------------------------- expressions

    def without_noise(self, expr):
        """Return a checked expression, which draws no noise."""
        before, expr = self.lifted(expr)
        if before:
            self.fail(expr, "noise must be drawn in a statement before: `noise = laplace(...)`")
        return expr

    def lifted(self, expr, value=False):
        """Return (the noise that an expression draws, in order; the expression that names it)."""
        found = []
        lifted = self.visit(expr, found, sure=True, value=value)
        return found, lifted

    def visit(self, node, found, sure, value=False):
        """Return a checked copy of an expression; `sure`: whether Python would surely evaluate it."""
        def inner(part, sure=sure):
            return self.visit(part, found, sure)

        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool | int | float) or (value and node.value is None):
                if isinstance(node.value, float) and node.value - node.value != 0:
                    self.fail(node, "a number must be finite")
                return node
        elif isinstance(node, ast.Name):
            if node.id not in self.known:
                self.fail(node, f"{node.id} has no value here, or may have none")
            return node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            if isinstance(node.op, ast.Div | ast.Mod) and not names_in(node.right) <= set(self.program.public):
                self.fail(node, "what is divided by must be of parameters and numbers")
            return ast.copy_location(ast.BinOp(inner(node.left), node.op, inner(node.right)), node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
            return ast.copy_location(ast.UnaryOp(node.op, inner(node.operand)), node)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _COMPARISONS):
            return ast.copy_location(ast.Compare(inner(node.left), node.ops, [inner(node.comparators[0])]), node)
        elif isinstance(node, ast.BoolOp):
            parts = [inner(part, sure and k == 0) for k, part in enumerate(node.values)]
            return ast.copy_location(ast.BoolOp(node.op, parts), node)
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            if node.value.id == self.program.query:
                return ast.copy_location(ast.Subscript(node.value, inner(node.slice), node.ctx), node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.call(node, found, sure)
        return self.fail(node, f"`{ast.unparse(node)}` is not in the language")

    def call(self, node, found, sure):
        """Return a call of a function of the language."""
        name = node.func.id
        if name in NOISES and len(node.args) == 1:
            if not sure:
                self.fail(node, "noise must be drawn in a statement before: `noise = laplace(...)`")
            scale = self.without_noise(node.args[0])
            if not names_in(scale) <= set(self.program.public):
                self.fail(node, "a scale must be of parameters and numbers")
            site = Noise(len(self.sites), name, scale, node.lineno)
            self.sites.append(site)
            self.known.add(site.name)
            found.append(site)
            return ast.copy_location(ast.Name(site.name, ast.Load()), node)
        least, most = _FUNCTIONS.get(name, (1, 0))
        if not least <= len(node.args) <= most:
            self.fail(node, f"`{ast.unparse(node)}` is not in the language")
        if name == "len":
            (of,) = node.args
            if not (isinstance(of, ast.Name) and of.id == self.program.query):
                self.fail(node, f"len must be of {self.program.query}")
            return node
        args = [self.visit(part, found, sure) for part in node.args]
        return ast.copy_location(ast.Call(node.func, args, []), node)

    # ---------------------------------------------------------------- what holds of the whole

    def finish(self, body):
        """Find types, what is secret, and what each noise is added to; check indices."""
        self._types(body)
        self._secrets(body)
        for node, expr in expressions(body):
            for part in ast.walk(expr):
                if isinstance(part, ast.Subscript):
                    if self.type_of(part.slice) != "int":
                        raise ProgramError(f"line {node.line}: the place in {self.program.query} must be an integer")
                    if self.is_secret(part.slice):
                        raise ProgramError(f"line {node.line}: the place in {self.program.query} must not depend on "
                                           "answers or noise")
        for site in self.sites:
            if self.type_of(site.scale) not in ("int", "real"):
                raise ProgramError(f"line {site.line} of {self.program.name}: the scale must be a number")
        self._companions(body)

    def type_of(self, expr):
        """Return "bool", "int", "real" or "none"; raises where an operation mixes truth values and numbers."""
        if isinstance(expr, ast.Constant):
            return ("none" if expr.value is None else "bool" if isinstance(expr.value, bool) else
                    "int" if isinstance(expr.value, int) else "real")
        if isinstance(expr, ast.Name):
            return self.types.get(expr.id)
        if isinstance(expr, ast.Subscript):
            return "int" if self.program.queries.integer else "real"
        if isinstance(expr, ast.Compare | ast.BoolOp) or (
                isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)):
            inner = "bool" if not isinstance(expr, ast.Compare) else "number"
            parts = getattr(expr, "values", None) or (
                [expr.operand] if isinstance(expr, ast.UnaryOp) else [expr.left, *expr.comparators])
            self._demand(parts, inner)
            return "bool"
        if isinstance(expr, ast.Call) and expr.func.id == "len":
            return "int"
        parts = ([expr.left, expr.right] if isinstance(expr, ast.BinOp) else
                 [expr.operand] if isinstance(expr, ast.UnaryOp) else expr.args)
        self._demand(parts, "number")
        types = [self.type_of(part) for part in parts]
        if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Div):
            return "real"
        if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mod) and types != ["int", "int"]:
            if None not in types:
                self.fail(expr, "% must be of integers")
            return "int"
        return "real" if "real" in types else None if None in types else "int"

    def _demand(self, parts, kind):
        for part in parts:
            found = self.type_of(part)
            if found is not None and (found == "bool") != (kind == "bool"):
                self.fail(part, f"`{ast.unparse(part)}` must be a {'truth value' if kind == 'bool' else 'number'}")

    def _types(self, body):
        self.types = {name: "int" if name in self.program.integers else "real" for name in self.program.public}
        self.types |= {site.name: "int" if site.kind == "discrete_laplace" else "real" for site in self.sites}
        order = {None: 0, "int": 1, "real": 2}
        for _ in range(3 + len(list(expressions(body)))):
            for node, expr in expressions(body):
                found = self.type_of(expr)
                if isinstance(node, If | While) and found not in ("bool", None):
                    raise ProgramError(f"line {node.line}: a condition must be a truth value")
                if isinstance(node, Assign):
                    old = self.types.get(node.name)
                    if "bool" in (old, found) and None not in (old, found) and old != found:
                        raise ProgramError(f"line {node.line}: {node.name} must be a number or a truth value, not both")
                    if found == "bool" or old == "bool":
                        self.types[node.name] = "bool"
                    else:
                        self.types[node.name] = max(old, found, key=order.__getitem__)

    def is_secret(self, expr):
        """Tell whether an expression depends on answers or noise."""
        return any(name in self.secret or name.startswith("~") for name in names_in(expr)) or any(
            isinstance(node, ast.Subscript) for node in ast.walk(expr))

    def _secrets(self, body):
        def mark(block, hidden):
            for node in block:
                if isinstance(node, Assign) and (hidden or self.is_secret(node.expr)):
                    self.secret.add(node.name)
                elif isinstance(node, If):
                    inside = hidden or self.is_secret(node.cond)
                    mark(node.body, inside)
                    mark(node.orelse, inside)
                elif isinstance(node, While):
                    # (that the condition of a loop is the same in both runs is proved at each step)
                    mark(node.body, hidden)
        before = None
        while before != self.secret:
            before = set(self.secret)
            mark(body, False)

    def _companions(self, body):
        """Find what each noise is added to, directly or by a name that is the noise."""
        alias = {node.name: node.expr.id for node, expr in expressions(body)
                 if isinstance(node, Assign) and isinstance(expr, ast.Name) and expr.id.startswith("~")}
        for node, expr in expressions(body):
            for whole in _sums(expr):
                terms = list(_terms(whole, 1))
                for k, (term, sign) in enumerate(terms):
                    name = alias.get(term.id, term.id) if isinstance(term, ast.Name) else ""
                    if name.startswith("~"):
                        site = self.sites[int(name[1:])]
                        others = [(part, sign * own) for j, (part, own) in enumerate(terms) if j != k]
                        rest = _total(others)
                        if rest is not None and ast.dump(rest) not in map(ast.dump, site.companions):
                            site.companions.append(rest)
                        if isinstance(node, Append | Return) and whole is expr and term.id == name:
                            object.__setattr__(site, "is_output", True)


def _sums(expr):
    """Yield the largest sums within an expression."""
    if isinstance(expr, ast.Name) or (isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Add | ast.Sub)):
        yield expr
    else:
        for part in ast.iter_child_nodes(expr):
            if isinstance(part, ast.expr):
                yield from _sums(part)


def _terms(expr, sign):
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Add | ast.Sub):
        yield from _terms(expr.left, sign)
        yield from _terms(expr.right, sign if isinstance(expr.op, ast.Add) else -sign)
    else:
        yield expr, sign


def _total(terms):
    """Return the sum of signed terms; None of none."""
    out = None
    for term, sign in terms:
        part = term if sign > 0 else ast.UnaryOp(ast.USub(), term)
        out = part if out is None else ast.BinOp(out, ast.Add(), part)
    return out
