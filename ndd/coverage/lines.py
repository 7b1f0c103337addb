"""The number of an operator's own lines: its `.py`, its `.cu`, its tests, its cases.

Only reads the files of a checkout, so that any state of the project can be counted, `--root ../before` beside this one.
Blank lines do not count; documentation (docstrings) has a column of its own.

A file is an operator's own if nothing else uses it: the module that declares it, what only that imports, the kernel
text that only these name, `tests/.../test_<name>.py` and what only that imports. Parts that several operators use are listed
with the number of their users, and count for none of them. Of a file that declares or tests several, the operator's own
statements and cases count.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ndd.coverage.table import operator_names

DEFAULT = ("flip", "normalize", "multi_paste", "hsv", "reductions.sum")
_ROOMS = ("ops", "decoders", "io", "noise", "random", "reductions", "segmentation", "transforms", "experimental")
_CASES = ("REGISTRY_CASES", "TABLE")  # the name of dictionaries of cases, and its predecessor
_KERNELS = re.compile(r"[\w/]+\.cuh?")


@dataclasses.dataclass(frozen=True)
class Piece:
    """A file, or a part of it. `users` is 1 for a part that only one operator uses, which counts."""

    file: Path
    code: int
    docs: int
    users: int = 1
    part: str = ""


def report(root: Path, paths: Iterable[str], every: bool = False) -> str:
    """The files and lines of each operator, and the sum; ValueError for an operator that is not in the checkout."""
    checkout = Checkout(root)
    wanted = sorted(checkout.declared) if every else list(paths) or list(DEFAULT)
    unknown = [path for path in wanted if path not in checkout.declared]
    if unknown:
        raise ValueError(f"no operator {', '.join(unknown)} in {root}")
    lines = [f"{'code':>6} {'docs':>5}  file (in brackets: used by others too, not counted)"]
    total: set[Piece] = set()
    shared: dict[Path, Piece] = {}
    for path in wanted:
        pieces = checkout.pieces(path)
        lines += [path, *(_line(piece, checkout.root) for piece in pieces)]
        own = [piece for piece in pieces if piece.users == 1]
        lines.append(f"{sum(p.code for p in own):6} {sum(p.docs for p in own):5}  {path}, own")
        total |= set(own)
        shared.update({p.file: p for p in pieces if p.users > 1})
    lines.append(f"{sum(p.code for p in total):6} {sum(p.docs for p in total):5}  sum of {len(wanted)} operators")
    code, docs = (sum(getattr(p, column) for p in shared.values()) for column in ("code", "docs"))
    return "\n".join([*lines, f"{f'({code})':>6} {f'({docs})':>5}  the files in brackets, each once"])


def _line(piece: Piece, root: Path) -> str:
    name = f"{piece.file.relative_to(root)}{f', {piece.part}' if piece.part else ''}"
    if piece.users == 1:
        return f"{piece.code:6} {piece.docs:5}  {name}"
    return f"{f'({piece.code})':>6} {f'({piece.docs})':>5}  {name}: {piece.users} users"


class Checkout:
    """The files under `root`: the declarations of operators, and the users of each file."""

    def __init__(self, root: Path):
        self.root = root.resolve()
        self.package, self.tests = self.root / "ndd", self.root / "tests"
        if not self.package.is_dir():
            raise ValueError(f"expected a checkout of ndd, got {root}")
        self.declared = {path: file for path in operator_names() if (file := self._declaration(path))}
        self._homes = set(self.declared.values())
        self._users: dict[Path, set[str]] = {}
        for path in self.declared:
            for file in set(self._reached(path)) - (self._homes - {self.declared[path]}):
                self._users.setdefault(file, set()).add(path)
        rest = [f for f in self.package.rglob("*.py") if f not in self._users and f.name != "__init__.py"]
        for file in self._closure([used for f in rest for used in _named(f, self.package)]):
            self._users.setdefault(file, set()).add("the rest of ndd")

    def pieces(self, path: str) -> list[Piece]:
        """Everything that an operator uses, apart from code that all operators need; its own parts first."""
        parts = []
        for file in self._reached(path):
            users = self._users[file]
            if file in self._homes and file != self.declared[path]:
                parts.append(_whole(file, len(users) + 1))  # another operator's own
            elif len(users) == 1:
                parts.append(_whole(file))
            else:
                parts.append(_whole(file, len(users)))
                if file == self.declared[path]:
                    parts.append(_part(file, _statements(file, path.rpartition(".")[2]), f"{path} alone"))
        parts += self._cases(path)
        return sorted(parts, key=lambda piece: piece.users > 1)

    def _declaration(self, path: str) -> Path | None:
        """The file that declares an operator: the file with its name in its package, otherwise any that defines the name
        there."""
        *rooms, name = path.split(".")
        folder = self.package.joinpath(*(rooms or ["ops"]))
        files = [folder.with_suffix(".py"), *sorted(folder.glob("*.py" if rooms else "**/*.py"))]
        defining = [file for file in files if file.exists() and name in _defined(file)]
        return next((f for f in defining if f.stem == name), defining[0] if defining else None)

    def _reached(self, path: str) -> list[Path]:
        """The operator's module and test, and the files that they lead to; not through other operators' modules."""
        home = self.declared[path]
        return self._closure([home, *_named(home, self.package), *self._tests(path)])

    def _closure(self, queue: list[Path]) -> list[Path]:
        seen: list[Path] = []
        while queue:
            file = queue.pop(0)
            if file not in seen:
                seen.append(file)
                queue += [] if file in self._homes else _named(file, self.package, self.tests)
        return seen

    def _tests(self, path: str) -> Iterator[Path]:
        """The file named after the operator, in the folder that mirrors its module's; otherwise the family's file."""
        home, (*rooms, name) = self.declared[path], path.split(".")
        folder = self.tests / home.parent.relative_to(self.package)
        own = [folder / f"test_{name}.py", folder / f"test_{'_'.join([*rooms, name])}.py"]
        if not rooms and not any(map(Path.exists, own)):
            own += self.tests.rglob(f"test_{name}.py")
        taken = {other.rpartition(".")[2] for other, file in self.declared.items() if file.parent == home.parent}
        used = [file.stem for file in _named(home, self.package) if file.stem not in taken]
        family = [folder / f"test_{stem}.py" for stem in [home.stem, *used, *({folder.name} - taken)]]
        yield from dict.fromkeys(f for f in (next(filter(Path.exists, own), None), *family) if f and f.exists())

    def _cases(self, path: str) -> Iterator[Piece]:
        """The cases of the registry-wide tests, if they are not in a file counted already."""
        for file in sorted(self.tests.rglob("*.py")):
            nodes = [] if self._users.get(file) == {path} else _entries(file, path)
            if nodes:
                yield _part(file, nodes, f"cases of {path}")


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _defined(file: Path) -> set[str]:
    """The names of the functions and values of a module."""
    names = {node.name for node in _tree(file).body if isinstance(node, ast.FunctionDef)}
    assigned = [t for node in _tree(file).body if isinstance(node, ast.Assign) for t in node.targets]
    return names | {target.id for target in assigned if isinstance(target, ast.Name)}


@functools.cache
def _named(file: Path, package: Path, tests: Path | None = None) -> list[Path]:
    """The modules of operators' packages, `_cpu` and `_cuda` that a file imports, and the kernels that it names."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        beside = (
            folder / name for name in _KERNELS.findall(text) for folder in (file.parent, package / "_cuda/include")
        )
        return [f for f in beside if f.exists() and f != file]
    files = []
    for node in ast.walk(_tree(file)):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNELS.fullmatch(node.value):
            files.append(file.parent / node.value)
        for module in modules:
            parts = module.split(".")
            if parts[0] == "ndd" and parts[1:2] and parts[1] in (*_ROOMS, "_cpu", "_cuda"):
                files.append(package.joinpath(*parts[1:]).with_suffix(".py"))
            elif tests and parts[0] not in ("cases", "calling"):
                files.append((tests / parts[0]).with_suffix(".py"))
    inside = package in file.parents
    return [f for f in dict.fromkeys(files) if f.exists() and f != file and (inside or package not in f.parents)]


def _statements(file: Path, name: str) -> list[ast.AST]:
    """The statements of a module that make one operator: `def name`, what it decorates, `name.cuda(...)`."""

    def leads(node: ast.AST) -> bool:
        while isinstance(node, ast.Call | ast.Attribute):
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id == name

    statements: list[ast.AST] = []
    for node in _tree(file).body:
        defines = isinstance(node, ast.FunctionDef) and (node.name == name or any(map(leads, node.decorator_list)))
        assigns = isinstance(node, ast.Assign) and any(map(leads, node.targets))
        if defines or assigns or (isinstance(node, ast.Expr) and leads(node.value)):
            statements.append(node)
    return statements


def _entries(file: Path, path: str) -> list[ast.AST]:
    """The entries of an operator in a dictionary of cases."""
    entries: list[ast.AST] = []
    for node in _tree(file).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if any(getattr(t, "id", "") in _CASES for t in targets) and isinstance(value, ast.Dict):
            for key, entry in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == path:
                    entries += [key, entry]
    return entries


def _whole(file: Path, users: int = 1) -> Piece:
    return Piece(file, *_counted(file, None), users)


def _part(file: Path, nodes: list[ast.AST], name: str) -> Piece:
    return Piece(file, *_counted(file, nodes), 1, name)


def _counted(file: Path, nodes: list[ast.AST] | None) -> tuple[int, int]:
    """(code, docs): the non-blank lines outside and inside of docstrings, of all statements or of those passed."""
    lines = file.read_text(encoding="utf-8").splitlines()
    filled = {number for number, line in enumerate(lines, 1) if line.strip()}
    if file.suffix != ".py":
        return len(filled), 0
    if nodes is not None:
        filled &= {number for node in nodes for number in _span(node)}
    docs = filled & {number for node in ast.walk(_tree(file)) if _is_text(node) for number in _span(node)}
    return len(filled - docs), len(docs)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _span(node: ast.AST) -> range:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])  # type: ignore[attr-defined]
    return range(first, node.end_lineno + 1)  # type: ignore[attr-defined]
