"""The stubs say what the sources say, and the names that they list are those of the modules."""

from __future__ import annotations

import ast
import functools
import inspect
from pathlib import Path

import pytest
from calling import load_every_module, public

import ndd
from ndd.stubs.command import COMMAND, modules, run, stale

pytestmark = pytest.mark.fast
HOUSE = Path(ndd.__file__).parent
MODULES = {m.__name__: m for m in modules()}


@functools.cache
def functions(module):
    """The functions of a module's stub: [(name, node), ...], every overload."""
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    return [(node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_stubs_are_up_to_date():
    names = [str(path.relative_to(HOUSE.parent)) for path in stale()]
    assert not names, f"not what the sources say: {', '.join(names)}. Run `{COMMAND}` and commit what it writes."


def test_no_stub_is_left_over():
    """A stub hides the module beside it: one that nobody writes any more would go on telling old things."""
    written = {Path(m.__file__).with_suffix(".pyi") for m in MODULES.values()}
    assert set(HOUSE.rglob("*.pyi")) == written


@pytest.mark.parametrize("path", sorted(load_every_module()))
def test_every_operator_is_in_a_stub(path):
    """With the names, the order and the kinds of the parameters that it has when it runs, in each form."""
    room, _, name = f"ndd.{path}".rpartition(".")
    forms = [node.args for result, node in functions(MODULES[room]) if result == name]
    assert forms, f"ndd.{path} is in no stub: run `{COMMAND}`"
    parameters = inspect.signature(public(ndd, path)).parameters.values()
    for args in forms:
        assert [a.arg for a in args.posonlyargs] == [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
        assert [a.arg for a in args.kwonlyargs] == [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        assert (args.vararg and args.vararg.arg) == next(
            (p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None
        )
        assert not args.args
        assert not args.kwarg


@pytest.mark.parametrize("name", [n for n, m in MODULES.items() if hasattr(m, "__all__")])
def test_a_stub_exports_what_its_module_exports(name):
    module = MODULES[name]
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    bound = {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    bound |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    bound |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    listed = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
    assert ast.literal_eval(listed) == module.__all__, f"run `{COMMAND}`"
    assert set(module.__all__) <= bound


def test_check_finds_an_old_stub(monkeypatch, tmp_path, capsys):
    old = tmp_path / "old.pyi"
    old.write_text("def f(): ...\n")
    monkeypatch.setattr("ndd.stubs.command.stale", lambda: {old: "def g(): ...\n"})
    assert run(_arguments(check=True)) == 1
    assert old.read_text() == "def f(): ...\n"
    assert run(_arguments(check=False)) == 0
    assert old.read_text() == "def g(): ...\n"
    assert capsys.readouterr().out.count("old.pyi") == 2


def _arguments(check):
    import argparse

    return argparse.Namespace(check=check)
