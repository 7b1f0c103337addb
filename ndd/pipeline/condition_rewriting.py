"""Rewrites a function so that its conditions are decided by `conditions.py`: `if`, `and`, `or`, `not`, `a < b < c`,
`a if c else b`.

An `if` becomes two functions of the variables that its branches assign, and an assignment of those that are read elsewhere.
If a branch returns or continues a loop, the statements after the `if` become part of the other branches. A condition with
`break` or `yield` in its branches, or with `return` inside a loop, is not rewritten: it may be about plain values.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sysconfig
import textwrap
import types
from collections import Counter
from pathlib import Path
from typing import Any

from ndd.pipeline import conditions

_HOMES = (str(Path(__file__).parents[1]), *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_DOOR = "_ndd_conditions"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_rewritten: dict[types.CodeType, Any] = {}  # the factory of the rewritten function, None if there is no source


def with_conditions(function: Any) -> Any:
    """The function with conditions on nodes; anything but a Python function of the user is returned unchanged."""
    if isinstance(function, functools.partial):
        return functools.partial(with_conditions(function.func), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        return types.MethodType(with_conditions(function.__func__), function.__self__)
    if not isinstance(function, types.FunctionType):
        kinds = (vars(kind) for kind in type(function).__mro__)
        call = next((names["__call__"] for names in kinds if "__call__" in names), None)  # for an object of the user
        return types.MethodType(with_conditions(call), function) if isinstance(call, types.FunctionType) else function
    if function.__code__.co_filename.startswith(_HOMES):
        return function
    code = function.__code__
    # It is rewritten with the function around it.
    if _DOOR in code.co_freevars or getattr(function, "_keeps_conditions", False):
        return function
    if code not in _rewritten:
        _rewritten[code] = _factory(function)
    factory = _rewritten[code]
    if factory is None:
        return function
    inner = types.FunctionType(factory, {})(*[None] * (len(code.co_freevars) + 1))
    known = {_DOOR: types.CellType(_Door), **dict(zip(code.co_freevars, function.__closure__ or (), strict=True))}
    cells = tuple([known[name] for name in inner.__code__.co_freevars])
    own = inner.__code__.replace(co_name=code.co_name)
    rewritten = types.FunctionType(own, function.__globals__, function.__name__, function.__defaults__, cells)
    rewritten.__kwdefaults__ = function.__kwdefaults__
    return rewritten


def do_not_convert(function: Any) -> Any:
    """A decorator: the conditions of this function are about plain values and are not rewritten.

    Args:
        function: the function that is decorated.

    >>> import ndd
    >>> @ndd.pipeline.do_not_convert
    ... def larger(a, b):
    ...     return a if a > b else b
    >>> larger(3, 4)
    4
    """
    function._keeps_conditions = True
    return function


class _Door:
    decide, defined = staticmethod(conditions.decide), staticmethod(conditions.defined)
    both, either = staticmethod(conditions.both), staticmethod(conditions.either)
    negated, chosen = staticmethod(conditions.negated), staticmethod(conditions.chosen)
    called = staticmethod(with_conditions)


def _factory(function: types.FunctionType) -> types.CodeType | None:
    """The code of a factory that takes the free variables and makes the rewritten function."""
    try:
        own = _lambda(function.__code__) if function.__name__ == "<lambda>" else _definition(function.__code__)
    except (OSError, TypeError, SyntaxError):
        return None
    if own is None:
        return None
    own.name = "_ndd_function"  # within the function its own name is a global one, or one of the scope around it
    own.decorator_list = []
    own.body = _Expressions().block(own.body)
    own.body = _Blocks(own.body).block(own.body, False)
    free = [ast.arg(name) for name in (*function.__code__.co_freevars, _DOOR)]
    arguments = ast.arguments(posonlyargs=[], args=free, kwonlyargs=[], kw_defaults=[], defaults=[])
    own.args.defaults = []  # the function's own defaults are copied
    own.args.kw_defaults = [None] * len(own.args.kwonlyargs)
    outer = ast.FunctionDef("_make", arguments, [own, ast.Return(ast.Name(own.name, ast.Load()))], [], None, None)
    outer.type_params = []  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    compiled = compile(module, function.__code__.co_filename, "exec")
    return next(constant for constant in compiled.co_consts if isinstance(constant, types.CodeType))


def _definition(code: types.CodeType) -> ast.FunctionDef | None:
    """The statement that defines a function; None for any other."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return tree.body[0] if isinstance(tree.body[0], ast.FunctionDef) else None


def _lambda(code: types.CodeType) -> ast.FunctionDef | None:
    """A `lambda` as a function that returns its expression. Of several in a line it is the one whose expression has the
    position of the code (before Python 3.11, which records positions, the first with the same arguments)."""
    tree = _parsed("".join(inspect.findsource(code)[0]))
    in_line = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == code.co_firstlineno]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    own = [n for n in in_line if tuple(a.arg for a in (*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs)) == names]
    if len(own) > 1 and hasattr(code, "co_positions"):
        columns = [place[2] for place in code.co_positions() if place[2] is not None]
        own = [n for n in own if n.body.col_offset in columns[-1:]]
    if not own:
        return None
    chosen = copy.deepcopy(own[0])
    body: list[ast.stmt] = [ast.copy_location(ast.Return(chosen.body), chosen)]
    definition = ast.FunctionDef("_lambda", chosen.args, body, [], None, None)
    definition.type_params = []  # type: ignore[attr-defined]
    return ast.copy_location(definition, chosen)


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _door(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(_DOOR, ast.Load()), name, ast.Load()), list(arguments), [])


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), value)


def _assigns(node: ast.expr) -> bool:
    """Whether a part of an expression cannot move into a function."""
    return any(isinstance(n, ast.NamedExpr | ast.Await) for n in ast.walk(node))


class _Expressions(ast.NodeTransformer):
    """Conditions inside expressions, and calls, whose functions may have conditions as well."""

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(statement) for statement in statements]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        if _assigns(node):
            return node
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        joined = node.values[0]
        for value in node.values[1:]:
            joined = _door(name, _later(joined), _later(value))
        return joined

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if _assigns(node):
            return node
        self.generic_visit(node)
        return self._compared(node)

    def _compared(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` is `a < b and b < c`, where `b` is computed once, and `c` only if the first holds."""
        if len(node.ops) == 1:
            return node
        names = [f"_{side}_of_{len(node.ops)}" for side in ("left", "right")]
        left, right = (ast.Name(name, ast.Load()) for name in names)
        first = ast.Compare(left, node.ops[:1], [right])
        rest = self._compared(ast.Compare(right, node.ops[1:], node.comparators[1:]))
        both = _later(_door("both", _later(first), _later(rest)))
        both.args.args = [ast.arg(name) for name in names]
        return ast.Call(both, [node.left, node.comparators[0]], [])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _door("negated", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if _assigns(node):
            return node
        self.generic_visit(node)
        return _door("chosen", node.test, _later(node.body), _later(node.orelse))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            return node
        node.func = _door("called", node.func)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


class _Blocks:
    """Statements with every `if` rewritten."""

    def __init__(self, statements: list[ast.stmt]) -> None:
        self.count = 0
        self.reads = sum(map(_reads, statements), Counter())

    def block(self, statements: list[ast.stmt], in_loop: bool) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for k, statement in enumerate(statements):
            if not isinstance(statement, ast.If) or _must_stay(statement, in_loop):
                done.append(self.inside(statement, in_loop))
            elif _has(statement, ast.Return):
                return [*done, *self.returning(statement, statements[k + 1 :])]
            else:
                done += self.assigning(statement, in_loop)
        return done

    def inside(self, statement: ast.stmt, in_loop: bool) -> ast.stmt:
        """The blocks of any other statement."""
        if isinstance(statement, _SCOPES):
            if isinstance(statement, ast.FunctionDef):
                statement.body = self.block(statement.body, False)
            return statement
        looping = in_loop or isinstance(statement, ast.For | ast.While)
        if isinstance(statement, ast.For | ast.While):
            statement.body = _without_continue(statement.body)
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(statement, field, None), list):
                setattr(statement, field, self.block(getattr(statement, field), looping))
        for handler in getattr(statement, "handlers", []):
            handler.body = self.block(handler.body, in_loop)
        return statement

    def assigning(self, statement: ast.If, in_loop: bool) -> list[ast.stmt]:
        names = sorted(_assigned([*statement.body, *statement.orelse]))
        inside = _reads(statement)
        taken = [name for name in names if in_loop or self.reads[name] > inside[name]]
        after = ast.Return(ast.Tuple([ast.Name(name, ast.Load()) for name in taken], ast.Load()))
        branches = [[*self.block(body, in_loop), after] for body in (statement.body, statement.orelse)]
        functions, call = self.call(statement, names, branches)
        if not taken:
            return [*functions, ast.copy_location(ast.Expr(call), statement)]
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in taken], ast.Store())
        return [*functions, ast.copy_location(ast.Assign([targets], call), statement)]

    def returning(self, statement: ast.If, following: list[ast.stmt]) -> list[ast.stmt]:
        end: list[ast.stmt] = [*following, ast.Return(ast.Constant(None))]
        bodies = [
            body if body and isinstance(body[-1], ast.Return) else [*body, *copy.deepcopy(end)]
            for body in (statement.body, statement.orelse)
        ]
        names = sorted(_assigned([s for body in bodies for s in body]))
        functions, call = self.call(statement, names, [self.block(body, False) for body in bodies])
        return [*functions, ast.copy_location(ast.Return(call), statement)]

    def call(
        self, statement: ast.If, names: list[str], bodies: list[list[ast.stmt]]
    ) -> tuple[list[ast.stmt], ast.expr]:
        functions: list[ast.stmt] = []
        for body in bodies:
            self.count += 1
            arguments = ast.arguments(
                posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
            )
            definition = ast.FunctionDef(f"_branch_{self.count}", arguments, body, [], None, None)
            definition.type_params = []  # type: ignore[attr-defined]
            functions.append(ast.copy_location(definition, statement))
        before = [_door("defined", ast.Constant(name), _later(ast.Name(name, ast.Load()))) for name in names]
        chosen = [ast.Name(f"_branch_{self.count - 1 + i}", ast.Load()) for i in range(2)]
        operands = [statement.test, *chosen, ast.Tuple(list(before), ast.Load())]
        places = [
            n for body in bodies for s in body for n in _walked(s) if isinstance(n, ast.Subscript | ast.Attribute)
        ]
        stored = [n for n in places if isinstance(n.ctx, ast.Store)]
        own = {ast.unparse(n): n for n in stored if isinstance(n.value, ast.Name) and n.value.id not in names}
        own = {k: n for k, n in own.items() if isinstance(n, ast.Attribute) or _is_fixed(n.slice, names)}
        others = [ast.Constant(ast.unparse(n)) for n in stored if ast.unparse(n) not in own]
        known: list[ast.expr] = []
        for n in own.values():
            key = _later(ast.Constant(n.attr) if isinstance(n, ast.Attribute) else n.slice)
            owner = _later(ast.Name(n.value.id, ast.Load()))  # type: ignore[attr-defined]
            known.append(ast.Tuple([owner, key, ast.Constant(isinstance(n, ast.Subscript))], ast.Load()))
        return functions, _door("decide", *operands, ast.Tuple(known, ast.Load()), *others[:1])


def _is_fixed(key: ast.expr, assigned: list[str]) -> bool:
    """Whether an index or key is the same before and after the branches."""
    return isinstance(key, ast.Constant) or (isinstance(key, ast.Name) and key.id not in assigned)


def _reads(node: ast.AST) -> Counter[str]:
    """The number of times that variables are read."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return Counter(n.id for n in names if not isinstance(n.ctx, ast.Store))


def _without_continue(statements: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop in which the statements after an `if` that ends in `continue` are moved into the branches that do
    not."""
    for k, statement in enumerate(statements):
        if isinstance(statement, ast.If) and _ends_turn(statement):
            rest = statements[k + 1 :]
            statement.body, statement.orelse = (_turn(body, rest) for body in (statement.body, statement.orelse))
            return statements[: k + 1]
    return statements


def _turn(body: list[ast.stmt], rest: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(body[-1], ast.Continue):
        return body[:-1] or [ast.copy_location(ast.Pass(), body[-1])]
    return _without_continue([*body, *copy.deepcopy(rest)])


def _ends_turn(statement: ast.If) -> bool:
    last = [body[-1] for body in (statement.body, statement.orelse) if body]
    return any(isinstance(s, ast.Continue) or (isinstance(s, ast.If) and _ends_turn(s)) for s in last)


def _walked(node: ast.AST) -> Any:
    """The node and the nodes inside it, without functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SCOPES):
            yield from _walked(child)


def _has(node: ast.AST, *kinds: type) -> bool:
    return any(isinstance(n, kinds) for n in _walked(node))


def _must_stay(statement: ast.If, in_loop: bool) -> bool:
    kinds: list[type] = [ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete]
    kinds += [ast.Return, ast.Break, ast.Continue] if in_loop else []
    return _has(statement, *kinds)


def _assigned(statements: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
            continue
        comprehended: set[str] = set()
        for node in _walked(statement):
            if isinstance(node, ast.comprehension):
                comprehended |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.add(node.name)
        stored = {n.id for n in _walked(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names |= stored - comprehended
    return names
