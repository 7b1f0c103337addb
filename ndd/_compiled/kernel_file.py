"""The file of a compiled kernel: a header in JSON, then code. It is read without a compiler, and nothing in it is unpickled.

    bytes  what
    32     SHA-256 of all that follows
    8      `nddkern1`
    4      the length of the header, unsigned, little-endian
    ...    the header: a JSON object, UTF-8
    ...    the code

The header says

    kernel     module and qualified name; with "inner." before it if it is what other kernels call
    source     digest of everything that the code depends on: texts, constants, options, versions
    signature  the types of the arguments, as numba prints them
    target     "triple", "cpu" and "features" of LLVM's code
    libraries  versions of "numba" and "llvmlite" without the number of the patch ("0.68"), and of "python" (the name of its
               binary interface, "cpython-311")
    result     the type of the result (`linking.py` has the forms)
    constants  element types of arrays that the function creates for Python, in the same forms
    format     "object": an object file of the system's (ELF, Mach-O, COFF) with a function that Python calls; "bitcode":
               optimised bitcode of LLVM, to be linked into other kernels
    symbols    names in the code: of the "function", its "environment" (numba's, which is empty) and the "library"; "inline":
               whether LLVM is told to make the function a part of its callers

A reader knows the first five, and uses a file only if they are equal.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

SUFFIX = ".kernel"
_DIGEST = 32
_MAGIC = b"nddkern1"
_LENGTH = 4
unstored: dict[str, tuple[bytes, str]] = {}
"""Kernels that could not be written (the disk is full), by the name of the file: its content, and why. A process that compiles
sends them to the program, which would compile them again."""


def packed(header: dict[str, Any], code: bytes) -> bytes:
    """The bytes of a file."""
    text = json.dumps(header, sort_keys=True).encode()
    content = _MAGIC + len(text).to_bytes(_LENGTH, "little") + text + code
    return hashlib.sha256(content).digest() + content


def unpacked(data: bytes, expected: dict[str, Any]) -> tuple[dict[str, Any], memoryview]:
    """Header and code. ValueError for a file that is damaged, or whose header differs from `expected`."""
    digest, content = data[:_DIGEST], memoryview(data)[_DIGEST:]
    start = len(_MAGIC) + _LENGTH
    if len(content) < start or content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(content).digest() != digest:
        raise ValueError("no file of a kernel, or a damaged one")
    length = int.from_bytes(content[len(_MAGIC) : start], "little")
    if length > len(content) - start:
        raise ValueError("the header is longer than the file")
    header = json.loads(bytes(content[start : start + length]))
    different = [name for name, value in expected.items() if header.get(name) != value]
    if different:
        raise ValueError(f"{different[0]} is {header.get(different[0])!r}, not {expected[different[0]]!r}")
    return header, content[start + length :]
