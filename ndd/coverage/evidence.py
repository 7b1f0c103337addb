"""The tests of a name: the cases of the registry-wide tests for operators, the files that name it for the rest."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import ndd

_TESTS = Path(ndd.__file__).parent.parent / "tests"
# Other forms of the name in tests.
_WRITTEN = {
    "__init__": r"{owner}\(", "__call__": r"\w\(", "__iter__": r"for \w+(, \w+)* in |iter\(|list\(", "__repr__": r"repr\(",
    "__str__": r"str\(", "__hash__": r"hash\(", "__eq__": r"operator\.eq|==", "__ne__": r"operator\.ne|!=",
    "__abs__": r"operator\.abs|\babs\(", "__enter__": r"\bwith ", "__exit__": r"\bwith ", "__len__": r"\blen\(",
    "__getitem__": r"\w\[", "__bool__": r"\bbool\(", "__int__": r"\bint\(", "__array__": r"np\.asarray\(",
    "__contains__": r" in ", "__index__": r"\brange\(|\[", "__format__": r"\{\w+:", "__float__": r"\bfloat\(",
}  # fmt: skip
_WALKED = {"math": "tensor/test_math.py"}  # modules whose names are all taken by one test


class Evidence:
    """The tests of this package's checkout; without a checkout or pytest, every answer is "?"."""

    def __init__(self):
        self._texts: dict[str, str] = {}
        self._calling: Any = None
        if (_TESTS / "calling.py").exists() and importlib.util.find_spec("pytest"):
            files = sorted(_TESTS.rglob("test_*.py"))
            self._texts = {str(f.relative_to(_TESTS)): f.read_text(encoding="utf-8") for f in files}
            self._calling = _calling()

    def of_operator(self, name: str, operator: Any) -> str:
        """ "with DALI, 3 cases" if a case of the registry is compared with it; "2 cases"; else a file, else "-"."""
        if self._calling is None:
            return "?"
        cases = self._calling.cases_of(name, operator)
        if not cases:
            return self.of_name(name)
        count = f"{len(cases)} case{'s' * (len(cases) > 1)}"
        return f"with DALI, {count}" if any(case.oracle for case in cases) else count

    def of_name(self, name: str) -> str:
        """The file that names it most often, "-" if none does."""
        if not self._texts:
            return "?"
        owner, _, last = name.rpartition(".")
        if owner in _WALKED:
            return _WALKED[owner]
        return self._named_by(_pattern(owner, last), "" if last.startswith("__") else last)

    @functools.cache  # noqa: B019  (names of several classes share a pattern, and there is one object for a table)
    def _named_by(self, pattern: str, plain: str) -> str:
        """The file that has it most often; `plain` is searched first, which takes a tenth of the time."""
        occurrences = re.compile(pattern).findall
        counts = {file: len(occurrences(text)) for file, text in self._texts.items() if plain in text}
        best = max(counts, key=lambda file: counts[file], default="")
        return best if best and counts[best] else "-"


def _pattern(owner: str, last: str) -> str:
    if last in _WRITTEN:
        return _WRITTEN[last].format(owner=owner.rpartition(".")[2])
    if re.fullmatch(r"__r?(\w+)__", last):
        bare = last.strip("_")
        names = {bare, bare.removeprefix("r")} | {f"{bare}_", f"{bare.removeprefix('r')}_"}
        return "|".join(rf"operator\.{n}\b" for n in sorted(names)) + rf"|{last}\b"
    if owner:
        return rf"\.{re.escape(last)}\b"
    return rf"\bndd\.{re.escape(last)}\b|\bmodule\.{re.escape(last)}\b"


def _calling() -> Any:
    """The module that collects the cases, which are in test files that import each other by this path."""
    sys.path.insert(0, str(_TESTS))
    try:
        importlib.import_module("cases").table()
        return importlib.import_module("calling")
    finally:
        sys.path.remove(str(_TESTS))
