"""The index of the operators: a Markdown page made from their declarations and docstrings."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import ndd
from ndd._operator import all_operators
from ndd.coverage.table import devices, find

# Families in the order of a pipeline: the folder of a declaration, under `ndd`, and its heading.
_FAMILIES = {
    "decoders": "Decoders",
    "io": "Files",
    "ops.image": "Images: geometry, windows, composition",
    "ops.color": "Colour",
    "ops.filter": "Filters",
    "noise": "Noise",
    "ops.audio": "Sound",
    "ops.video": "Video",
    "ops.boxes": "Boxes",
    "ops.tensor": "Tensors, coordinates, video frames, order of a batch",
    "reductions": "Reductions",
    "random": "Random numbers",
    "transforms": "Matrices of coordinate transforms",
    "segmentation": "Segmentation",
    "experimental": "Experimental, and old names",
}
_HEAD = """# The operators of ndd

Written by `python -m ndd coverage --index notebooks/operators.md`; the text is the first sentence of each docstring.
`help(ndd.resize)` shows the rest: arguments, layouts, element types, errors, an example. *Layouts* are those of the
first input; a leading F is video, whose frames are processed as images of their own. "any" means that the operator does
not restrict them; "-" that its inputs are not images.
"""
# Operators that check layouts themselves, and families whose inputs have none.
_LAYOUTS = {
    "element_extract": "F first, or none",
    "sequence_rearrange": "F first, or none",
    "peek_image_shape": "-",
    "random_crop_generator": "-",
    "roi_random_crop": "-",
    "experimental.peek_image_shape": "-",
}
_NO_LAYOUTS = ("decoders", "io.file", "random", "transforms", "experimental.decoders")


def index(folder: Path) -> str:
    """The page, with links that are right in `folder`."""
    families: dict[str, list[str]] = {}
    for path, operator in all_operators().items():
        if operator.module.startswith("ndd.") and not operator.name.startswith("_"):
            families.setdefault(_family(operator.module), []).append(_row(path, operator, folder))
    families["io"].append(f"| {_link('imread', ndd.imread, folder)} | {_sentence(ndd.imread)} | CPU, GPU | - |")
    parts = [_HEAD]
    for family in [*_FAMILIES, *sorted(set(families) - set(_FAMILIES))]:
        if family in families:
            head = "| operator | | devices | layouts |\n| --- | --- | --- | --- |\n"
            parts.append(f"## {_FAMILIES.get(family, family)}\n\n{head}" + "\n".join(families[family]) + "\n")
    parts += [_classes(folder), _functions(folder)]
    return "\n".join(parts)


def _family(module: str) -> str:
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[0] == "ops" else parts[0] if parts[0] != "_operator" else "ops.tensor"


def _row(path: str, operator: Any, folder: Path) -> str:
    where = devices(operator).replace("cpu", "CPU").replace("gpu", "GPU").replace(" ", ", ")
    layouts = "-"
    if operator.layouts:
        layouts = ", ".join(operator.layouts)
    elif path.rpartition(".")[0] not in _NO_LAYOUTS and (operator.inputs or operator.variadic):
        layouts = _LAYOUTS.get(path, "any")
    return f"| {_link(path, operator.function, folder)} | {_sentence(operator.function)} | {where} | {layouts} |"


def _classes(folder: Path) -> str:
    homes = {"readers": ndd.readers, "experimental.readers": ndd.experimental.readers}
    readers = [(f"{path}.{name}", getattr(home, name)) for path, home in homes.items() for name in sorted(home.__all__)]
    rows = [
        f"| {_link(name, kind, folder)} | {_sentence(kind)} |" for name, kind in readers if hasattr(kind, "next_epoch")
    ]
    return "## Readers\n\n| class | |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def _functions(folder: Path) -> str:
    links = ", ".join(f"`{name}`" for name in sorted(ndd.math.__all__))
    file = _relative(Path(inspect.getfile(ndd.math)), folder)
    text = f"[`ndd.math`]({file}), on tensors, batches and scalars, CPU and GPU: {links}."
    return (
        f"## Arithmetic\n\n`+ - * / // % **`, comparisons, `& | ^ ~ << >>` and `abs` of tensors and batches;\n{text}\n"
    )


def _link(path: str, declared: Any, folder: Path) -> str:
    target = find(path)
    file = inspect.getsourcefile(inspect.unwrap(declared)) or inspect.getfile(type(target))
    return f"[`{path}`]({_relative(Path(file), folder)})"


def _relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def _sentence(documented: Any) -> str:
    """The first sentence of a docstring, on one line, without characters that have a meaning in tables."""
    paragraph = " ".join((inspect.getdoc(documented) or "").split("\n\n")[0].split())
    first = re.match(r".*?\.(?=\s|$)", paragraph)
    return (first.group() if first else paragraph).replace("|", r"\|")
