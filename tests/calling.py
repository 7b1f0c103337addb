"""Calls of operators from the table of cases, for ndd and for the oracle alike."""

from __future__ import annotations

import importlib
import pkgutil
import zlib
from typing import Any

import numpy as np
from cases import IMAGE_LAYOUTS, KINDS, Case, EachSample, image, table

ROOMS = ("ops", "decoders", "random", "noise", "reductions", "segmentation", "transforms", "io", "experimental")
N = 3
FORMS = ("ragged", "uniform", "one")


def load_every_module() -> dict[str, Any]:
    """Imports each module of the rooms that hold operators, and gives the operators of ndd by public path."""
    import ndd
    from ndd._operator import all_operators

    for info in pkgutil.walk_packages(ndd.__path__, "ndd."):
        if info.name.split(".")[1] in ROOMS:
            importlib.import_module(info.name)
    return {path: op for path, op in all_operators().items() if op.module.startswith("ndd.") and not of_doctest(op)}


def of_doctest(op: Any) -> bool:
    """Whether an example of a docstring has declared the operator: then it bears the name of the module with the docstring."""
    return op.function.__code__.co_filename.startswith("<doctest")


def public(package: Any, path: str) -> Any:
    """`package.random.uniform` for "random.uniform"; None if there is no such name."""
    result = package
    for name in path.split("."):
        result = getattr(result, name, None)
    return result


def cases_of(path: str, op: Any) -> list[Case]:
    """The cases in the operator's test file, those of the new name of an old one, or a default by its declaration."""
    for name in (path, path.removeprefix("experimental.")):
        if name in table():
            return table()[name]
    if any(a.required for a in op.arguments):
        return []
    if op.layouts and any("H" in layout for layout in op.layouts):
        return [Case()]
    return [Case(inputs=("matrix",) * op.required)]


def layouts_of(case: Case, op: Any) -> tuple[str | None, ...]:
    """The layouts of image inputs to try; (None,) for other inputs."""
    if case.inputs is not None:
        return (None,)
    return case.layouts or tuple(x for x in IMAGE_LAYOUTS if op.layouts is None or x in op.layouts)


def samples(case: Case, layout: str | None, form: str = "ragged", dtype: str | None = None) -> list[Any]:
    """NumPy samples of every input, with its layout: [(arrays, layout), ...]."""
    kind = dtype or (case.dtypes[0] if case.dtypes else "uint8" if case.inputs is None else "float32")
    rng = np.random.default_rng(zlib.crc32(repr((case.args, case.inputs, layout)).encode()))
    numbers = (0,) if form == "one" else (1,) * N if form == "uniform" else range(N)
    if case.inputs is None:
        return [([image(rng, i, layout or "HWC", kind) for i in numbers], layout)]
    return [([KINDS[k][0](rng, i, kind) for i in numbers], KINDS[k][1]) for k in case.inputs]


def call(
    package: Any, path: str, case: Case, inputs: list[Any], form: str = "ragged", /, **more: Any
) -> tuple[Any, ...]:
    """The outputs as a tuple of Tensors (form "one") or Batches, not yet evaluated."""
    function = public(package, path)
    values = []
    for arrays, layout in inputs:
        make = package.tensor if form == "one" else package.batch
        values.append(make(arrays[0] if form == "one" else arrays, layout=layout))
    return call_with(package, function, case, values, form, **more)


def call_with(package: Any, function: Any, case: Case, values: list[Any], form: str, /, **more: Any) -> tuple[Any, ...]:
    """As `call`, with inputs made already."""
    arguments = {k: package.batch(v.values) if isinstance(v, EachSample) else v for k, v in case.args.items()}
    if not values and form != "one":
        arguments["batch_size"] = N
    if is_random(package, function):
        arguments["rng"] = package.random.RNG(seed=1234)
    out = function(*values, **{**arguments, **more})
    return out if isinstance(out, tuple) else (out,)


def is_random(package: Any, function: Any) -> bool:
    """Whether the operator draws random numbers."""
    import inspect

    return "rng" in inspect.signature(function).parameters


def evaluated(outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs, computed; DALI's and ours raise here."""
    for out in outputs:
        out.evaluate()
    return outputs


def decodes(op):
    """Whether an operator reads bytes on the CPU and gives images on the GPU, by a library."""
    return op.reads == ("cpu",) and "decoders" in op.module
