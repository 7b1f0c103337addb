"""The reference: a page for each module and family of operators, made from the functions themselves.

Generators that read the source (mkdocstrings) do not see what `@operator` adds to a signature: `batch_size`, `device`, `rng`.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from docstrings import argument_table, parsed, signature_of, signature_text, value_text
from errors import WHEN, errors_of

import ndd
from ndd._operator import Operator, all_operators
from ndd.coverage.operator_index import _FAMILIES, _family
from ndd.coverage.table import devices, names as dali_names

# Public modules that `ndd.__all__` does not name: they are imported when they are asked for.
_LATE = {
    "backend",
    "data_node",
    "pipeline",
    "plugin",
    "plugin_manager",
    "profiling",
    "recipes",
    "tensors",
    "torchvision",
}
_DEEPER = ("ndd.io.file", "ndd.plugin.numba.fn.experimental", "ndd.pytorch.nodes")
_TOP = {
    "ndd._tensor": ("values", "Values: Tensor, Batch, types"),
    "ndd._execution": ("execution", "Execution: modes, contexts, threads"),
    "ndd._operator": ("declaring", "Declaring operators"),
    "ndd.pipeline": ("pipeline", "Pipelines"),
}
_MORE = ("more", "Pictures, targets, sources")


class Reference:
    """All public names, and the pages that they stand on."""

    def __init__(self, torchvision: dict[str, str], figure: Callable[[str], str]):
        self.torchvision, self.figure = torchvision, figure
        self.pages: dict[str, list[tuple[str, Any]]] = {}
        self.titles: dict[str, str] = {}
        self.place: dict[str, str] = {}
        self._dali = {name for name, _, _ in dali_names()}
        self._seen: set[int] = set()
        for name in sorted(set(ndd.__all__)):
            self._add_top(name, getattr(ndd, name))
        for path in (*_modules(), *_DEEPER):
            with contextlib.suppress(ImportError):  # of torchdata, which the extra `docs` brings
                self._add_module(path)

    def _add_top(self, name: str, thing: Any) -> None:
        if isinstance(thing, types.ModuleType) or name == "__version__":
            return
        operator = getattr(thing, "operator", None)
        module = getattr(thing, "__module__", None) or type(thing).__module__
        if isinstance(operator, Operator):
            family = _family(operator.module)
            self._put(family.replace(".", "-"), _FAMILIES.get(family, family), f"ndd.{name}", thing)
        else:
            page, title = next((v for k, v in _TOP.items() if module.startswith(k)), _MORE)
            self._put(page, title, f"ndd.{name}", thing)

    def _add_module(self, path: str) -> None:
        module = importlib.import_module(path)
        page = path.removeprefix("ndd.").replace(".", "-")
        title = _FAMILIES.get(path.removeprefix("ndd."), path)
        listed = {id(operator) for operator in all_operators().values()}
        operators = [name for name, thing in vars(module).items() if id(getattr(thing, "operator", None)) in listed]
        for name in sorted(getattr(module, "__all__", operators)):
            thing = getattr(module, name, None)
            if not isinstance(thing, types.ModuleType) and not name.startswith("_"):
                self._put(page, title, f"{path}.{name}", thing)

    def _put(self, page: str, title: str, path: str, thing: Any) -> None:
        self.titles.setdefault(page, title)
        self.pages.setdefault(page, []).append((path, thing))
        self.place[path] = page

    # ---- pages

    def index(self) -> str:
        """The page with all names."""
        parts = [
            "# Reference\n\nEvery public name. Press <kbd>/</kbd> to search. [Errors](#errors) says when errors are raised.\n"
        ]
        for page, entries in self.pages.items():
            rows = [
                f"| [`{path}`]({page}.md#{path}) | {_sentence(thing)} |"
                for path, thing in entries
                if not _is_constant(thing)
            ]
            if rows:
                parts.append(
                    f"## [{self.titles[page]}]({page}.md)\n\n| name | |\n| --- | --- |\n" + "\n".join(rows) + "\n"
                )
        return "\n".join([*parts, WHEN])

    def page(self, page: str) -> str:
        """The page of one module or family."""
        entries = self.pages[page]
        constants = [(path, thing) for path, thing in entries if _is_constant(thing)]
        parts = [f"# {self.titles[page]}\n"]
        module = _module_of(page)
        if module is not None:
            doc = parsed(module)
            parts.append(doc.text.split("\n\n")[0] + "\n")
        parts += [self._entry(path, thing) for path, thing in entries if not _is_constant(thing)]
        if constants:
            rows = "\n".join(
                f'| <span id="{path}"></span>`{path}` | `{value_text(thing)}` |' for path, thing in constants
            )
            parts.append(f"## Constants\n\n| name | value |\n| --- | --- |\n{rows}\n")
        return "\n".join(parts)

    def _entry(self, path: str, thing: Any) -> str:
        short = path.removeprefix("ndd.")
        if short.count(".") > 1:  # a list of contents has no room for `torchvision.v2.functional.affine_image`
            short = short.rpartition(".")[2]
        parts = [f"## {short} {{ #{path} }}\n"]
        same = self._documented_elsewhere(thing)
        if same and same != path:
            return parts[0] + f"\nThe same as [`{same}`]({self.place[same]}.md#{same}).\n"
        parts += [self._facts(path, thing), *self._described(path, thing, self.place[path])]
        if isinstance(thing, type) and issubclass(thing, enum.Enum):
            parts.append("One of " + ", ".join(f"`{name}`" for name in thing.__members__) + ".\n")
        elif isinstance(thing, type):
            parts += [self._member(path, name, member, thing) for name, member in _members(thing)]
        return "\n".join(part for part in parts if part)

    def _documented_elsewhere(self, thing: Any) -> str | None:
        paths = [path for entries in self.pages.values() for path, other in entries if other is thing]
        return paths[0] if paths else None

    def _facts(self, path: str, thing: Any) -> str:
        facts = []
        operator = getattr(thing, "operator", None)
        if isinstance(operator, Operator):
            facts.append(f"**Devices** {devices(operator).upper().replace(' ', ', ')}")
            if operator.layouts:
                facts.append(f"**Layouts** {', '.join(operator.layouts)}")
        short = path.removeprefix("ndd.")
        if short in self._dali:
            pipelines = f", in pipelines `nvidia.dali.fn.{short}`" if isinstance(operator, Operator) else ""
            facts.append(f"**DALI** `nvidia.dali.experimental.dynamic.{short}`{pipelines}")
        if short.startswith("torchvision.v2."):
            facts.append(f"**torchvision** `torchvision.transforms.{short.removeprefix('torchvision.')}`")
        if short in self.torchvision:
            facts.append(f"**torchvision** {self.torchvision[short]}")
        return f"{' · '.join(facts)}\n{{ .facts }}\n" if facts else ""

    def _described(self, path: str, thing: Any, page: str, owner: Any = None) -> Iterator[str]:
        doc = parsed(thing)
        if signature_of(thing) is not None:
            yield f"```python\n{signature_text(path, thing)}\n```\n"
        yield self.figure(path.removeprefix("ndd.")) + "\n"
        yield doc.text + "\n"
        yield argument_table(thing, doc, owner)
        yield errors_of(thing, page)
        if doc.example:
            yield f"```pycon\n{doc.example}\n```\n"

    def _member(self, path: str, name: str, member: Any, owner: Any) -> str:
        anchor = f"{path}.{name}"
        head = f"### {name} {{ #{anchor} }}\n"
        if isinstance(member, property) or not callable(member):
            doc = parsed(member.fget if isinstance(member, property) else member)
            return "\n".join([head, doc.text + "\n", errors_of(member, "")])
        return "\n".join([head, *(part for part in self._described(anchor, member, "", owner) if part.strip())])


def _modules() -> Iterator[str]:
    """The public modules below `ndd`, by their dotted paths."""
    for info in pkgutil.iter_modules(ndd.__path__):
        if info.name not in _LATE and info.name not in ndd.__all__:
            continue
        path = f"ndd.{info.name}"
        module = importlib.import_module(path)
        if isinstance(getattr(ndd, info.name, module), types.ModuleType):
            yield path
            if info.ispkg:
                yield from _inner(module, path)


def _inner(module: types.ModuleType, path: str) -> Iterator[str]:
    for info in pkgutil.iter_modules(module.__path__):
        inner = f"{path}.{info.name}"
        public = info.name in getattr(module, "__all__", ()) or info.ispkg
        if public and not info.name.startswith("_") and info.name not in ("formats", "stores", "sampling", "jpeg"):
            try:
                loaded = importlib.import_module(inner)
            except ImportError:
                continue
            if isinstance(getattr(module, info.name, loaded), types.ModuleType) and getattr(loaded, "__all__", None):
                yield inner
                if info.ispkg:
                    yield from _inner(loaded, inner)


def _module_of(page: str) -> types.ModuleType | None:
    try:
        return importlib.import_module("ndd." + page.replace("-", "."))
    except ImportError:
        return None


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties with a docstring, also of what a class inherits from ndd."""
    for name in sorted(dir(kind)):
        if name.startswith("_"):
            continue
        owner = next((c for c in kind.__mro__ if name in vars(c)), object)
        if not (owner.__module__ or "").startswith("ndd"):
            continue
        member = inspect.getattr_static(kind, name)
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        called = callable(member) and not isinstance(member, type)
        if (isinstance(member, property) or called) and inspect.getdoc(member):
            yield name, member


def _is_constant(thing: Any) -> bool:
    """Whether it is a value: an element type, a member of an enumeration, a union of types."""
    return not callable(thing) or isinstance(thing, ndd.DType) or type(thing).__module__ in ("typing", "types")


def _sentence(thing: Any) -> str:
    paragraph = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    first = re.match(r".*?\.(?=\s|$)", paragraph)
    return (first.group() if first else paragraph).replace("|", r"\|")
