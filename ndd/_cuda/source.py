"""The text of a kernel: its own file, what it includes, and the structs made from the plan."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np

_INCLUDE = Path(__file__).parent / "include"
_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "uint16": "unsigned short", "int16": "short",
    "uint32": "unsigned int", "int32": "int", "uint64": "unsigned long long", "int64": "long long",
    "float32": "float", "float64": "double",
}  # fmt: skip
# The names of the element types in kernels; half and bfloat16 are defined in scalar.cuh.
ELEMENT_TYPES = {
    "u8": "unsigned char", "i8": "signed char", "u16": "unsigned short", "i16": "short", "u32": "unsigned int",
    "i32": "int", "u64": "unsigned long long", "i64": "long long", "f16": "half_t", "bfloat16": "bfloat16_t",
    "f32": "float", "f64": "double", "bool": "bool", "DataType": "int", "ImageType": "int", "InterpType": "int",
}  # fmt: skip
_INCLUDE_LINE = re.compile(r'^\s*#include\s+"([^"]+)"\s*$', re.MULTILINE)


@functools.cache
def expanded(source: Path | str) -> str:
    """A kernel's text, given as a file or as text, with each `#include "x.cuh"` line replaced by the file, once."""
    seen: set[str] = set()
    home = source.parent if isinstance(source, Path) else _INCLUDE

    def insert(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        beside = home / name
        file = beside if beside.exists() else _INCLUDE / name
        return _INCLUDE_LINE.sub(insert, file.read_text())

    return _INCLUDE_LINE.sub(insert, source.read_text() if isinstance(source, Path) else source)


def struct_text(name: str, dtype: np.dtype, pointers: dict[str, str]) -> str:
    """The C struct with the memory layout of an aligned NumPy record; `pointers` names the pointer fields' types."""
    lines = []
    for field in dtype.names or ():
        kind = dtype.fields[field][0]  # type: ignore[index]
        if field in pointers:
            lines.append(f"  {pointers[field]}* {field};")
            continue
        base, shape = (kind.subdtype or (kind, ()))[:2] if kind.subdtype else (kind, ())
        extents = "".join(f"[{e}]" for e in shape)
        lines.append(f"  {_TYPES[base.name]} {field}{extents};")
    body = "\n".join(lines) or "  int unused;"
    return f"struct {name} {{\n{body}\n}};\n"


def kernel_text(source: Path | str, sample: str, shared: str, macros: dict[str, str]) -> str:
    """The whole text for NVRTC: scalar types first, so that the macros and structs may name them, then the loops."""
    defines = "".join(f"#define {k} {v}\n" for k, v in macros.items())
    scalars = expanded(_INCLUDE / "scalar.cuh")
    own = expanded(source).replace(scalars, "")
    return f"{scalars}\n{defines}{sample}{shared}{expanded(_INCLUDE / 'samples.cuh')}\n{own}"
