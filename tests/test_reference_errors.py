"""The reference says which errors each name raises, and they are raised."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import reference_pages
from calling import N, call, cases_of, evaluated, layouts_of, load_every_module, public, samples

import ndd
from ndd.pipeline.operator_classes import OperatorClass

OPERATORS = {path: op for path, op in load_every_module().items() if not op.name.startswith("_")}
WRONG_TYPES = {"u64": np.uint64, "f64": np.float64, "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "f32": np.float32}


def _raised(op: Any, make: Any) -> str:
    with pytest.raises(Exception, match=op.name) as caught:
        evaluated(make())
    return type(caught.value).__name__


@pytest.mark.parametrize("path", OPERATORS)
def test_an_operator_raises_what_its_declaration_implies(path):
    """Each cause of the site's list; the error has the stated type and names the operator."""
    op, function = OPERATORS[path], public(ndd, path)
    causes = reference_pages.site()["errors"].causes(op)
    ones = [ndd.tensor([1])] * (op.required + 9)
    case = next(iter(cases_of(path, op)), None)
    inputs = samples(case, layouts_of(case, op)[0]) if case else []

    def with_argument(name: str, value: Any) -> Any:
        return call(ndd, path, case, inputs, **{name: value})

    def with_first(dtype: Any, layout: str | None, size: int = N) -> Any:
        (arrays, _), *rest = inputs
        return call(ndd, path, case, [([np.asarray(a).astype(dtype) for a in arrays[:size]], layout), *rest])

    tries = {"unknown": lambda: function(*ones[: op.required], no_such_argument=1)}
    if not any(argument.required for argument in op.arguments):
        tries["missing"] = function
        tries["surplus"] = lambda: function(*ones)
    if case is not None:
        tries |= {key: (lambda name=key: with_argument(name, -1)) for key in ("batch_size", "rng")}
        tries["device"] = lambda: with_argument("device", "tpu")
        tries["no_gpu"] = lambda: with_argument("device", "gpu")
        for argument in op.arguments:
            if not argument.per_sample:
                tries[f"whole {argument.name}"] = lambda name=argument.name: with_argument(name, ndd.batch([1] * N))
        if "dtype" in causes:
            tries["dtype"] = lambda: with_argument("dtype", next(t for t in WRONG_TYPES if t not in op.dtypes))
    if inputs:
        dtype, layout = np.asarray(inputs[0][0][0]).dtype, inputs[0][1]
        if "layout" in causes:
            tries["layout"] = lambda: with_first(dtype, "QZYXVUTS"[: np.asarray(inputs[0][0][0]).ndim])
        if "type" in causes:
            tries["type"] = lambda: with_first(next(WRONG_TYPES[t] for t in WRONG_TYPES if t not in op.types), layout)
        if len(inputs) > 1:
            tries["sizes"] = lambda: with_first(dtype, layout, N - 1)
    for key, attempt in tries.items():
        if key.split()[0] in causes:
            assert _raised(op, attempt) == causes[key.split()[0]].kind, key


def test_a_cpu_operator_asked_to_run_on_a_gpu(emulated_gpu):
    """Where there is a GPU it is a ValueError, as the site says."""
    tried = 0
    for path, op in OPERATORS.items():
        if not op.runs_on_gpu and cases_of(path, op):
            case = cases_of(path, op)[0]
            inputs = samples(case, layouts_of(case, op)[0])
            assert _raised(op, lambda p=path, c=case, i=inputs: call(ndd, p, c, i, device="gpu")) == "ValueError"
            tried += 1
    assert tried > 5


# ---- what is no operator


def test_what_a_name_raises_is_in_its_entry():
    """The types of the errors that its own code raises, or a function of ndd that it calls, stand in its entry."""
    holes = []
    for path, function, owner in _functions():
        told = _entry(path)
        for kind, place in sorted(_raises(function, owner).items()):
            if kind not in told:
                holes.append(f"{path}: {kind} (in {place})")
    assert not holes, "\n".join(holes)


def _entry(path: str) -> str:
    """The text of a name or member, with what its class says of all."""
    entry = reference_pages.entries().get(path)
    if entry is not None:
        return re.split(r"(?m)^### ", entry)[0]
    owner, _, name = path.rpartition(".")
    of_class, *members = re.split(r"(?m)^### ", reference_pages.entries()[owner])
    return of_class.partition("**Errors.**")[2] + next(m for m in members if m.startswith(f"{name} {{"))


def _functions() -> Iterator[tuple[str, Any, Any]]:
    book, reference = reference_pages.book(), reference_pages.site()["reference"]
    for path, thing in [entry for page in book.pages.values() for entry in page]:
        same = book._documented_elsewhere(thing) != path
        if same or reference._is_constant(thing) or path.removeprefix("ndd.") in OPERATORS:
            continue
        if not isinstance(thing, type):
            yield path, thing, None
            continue
        if not issubclass(thing, OperatorClass):  # it raises Python's TypeError for a wrong call
            yield path, thing.__init__, thing
        for name, member in reference._members(thing):
            yield f"{path}.{name}", member.fget if isinstance(member, property) else member, thing


@functools.cache
def _raises(function: Any, owner: Any, deeper: bool = True) -> dict[str, str]:
    """Names of built-in errors that a function raises, or one that it calls, and where."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    generated = not hasattr(function, "__code__") or function.__code__.co_filename.startswith("<")
    if generated or not (function.__module__ or "").startswith("ndd"):
        return {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    kinds = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            name = ast.unparse(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
            if isinstance(getattr(builtins, name, None), type) and name not in ("NotImplementedError", "ImportError"):
                kinds[name] = function.__qualname__
        elif deeper and isinstance(node, ast.Call):
            called = _called(node.func, function, owner)
            kinds = _raises(called, owner, deeper=False) | kinds
    return kinds


def _called(node: ast.expr, function: Any, owner: Any) -> Any:
    if isinstance(node, ast.Name):
        return function.__globals__.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return getattr(owner, node.attr, None)
    return None


# ---- torchvision's names


def _outcome(function: Any, *inputs: Any, **arguments: Any) -> str:
    try:
        function(*inputs, **arguments)
    except Exception as error:
        return type(error).__name__
    return "no error"


def test_torchvisions_names_raise_torchvisions_types_of_errors():
    """As the pages of `ndd.torchvision.v2` say: arguments that are wrong, and inputs that are no images."""
    from torchvision_classes import theirs

    from ndd.torchvision import v2

    differ = []
    for name, ours in vars(v2).items():
        if isinstance(ours, type) and isinstance(getattr(theirs, name, None), type):
            for parameter in inspect.signature(getattr(theirs, name)).parameters:
                for wrong in ("nonsense", -7, object(), [1, 2, 3, 4, 5]):
                    mine, other = (_outcome(kind, **{parameter: wrong}) for kind in (ours, getattr(theirs, name)))
                    if mine != other:
                        differ.append(f"{name}({parameter}={wrong!r}): {mine}, {other}")
    for name, ours in vars(v2.functional).items():
        other = getattr(theirs.functional, name, None)
        if inspect.isfunction(ours) and inspect.isfunction(other):
            for wrong in (object(), "x", 3):
                kinds = [_outcome(function, wrong) for function in (ours, other)]
                if kinds[0] != kinds[1] and kinds != ["TypeError", "AttributeError"]:
                    differ.append(f"{name}({wrong!r}): {kinds}")
    assert not differ, "\n".join(differ)
