"""What a file says of a kernel, and can say."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from compiled import test_kernels
from compiled.test_kernels import files, found_on_disk, keep

from ndd._compiled import kernel_file, linking

folder, _places_afterwards = test_kernels.folder, test_kernels._places_afterwards


def test_types_of_results_have_a_form():
    from numba import types

    array = types.Array(types.float32, 2, "C")
    kinds = [
        types.none, types.boolean, types.uint8, types.float64, types.literal(True), types.literal(-3), array,
        types.Array(types.int64, 1, "A", readonly=True, aligned=False), types.UniTuple(types.int64, 2),
        types.Tuple((types.boolean, array, types.UniTuple(array, 2))), types.Optional(types.int64), types.Tuple(()),
    ]  # fmt: skip
    for kind in [*kinds, np.dtype("f4"), np.dtype("?"), np.dtype("M8[ns]")]:
        form = json.loads(json.dumps(linking._form(kind)))
        again = linking._type(form)
        assert again == kind
        assert type(again) is type(kind)
    for kind in (types.unicode_type, types.SliceType("slice", 2), np.dtype([("a", "i4")])):
        with pytest.raises(TypeError):
            linking._form(kind)
    with pytest.raises(TypeError):
        linking._type("Array")


def test_the_form_of_a_file(folder):
    """As `kernel_file.py` tells it."""
    keep(folder)
    texts = {}
    for path in files(folder):
        data = path.read_bytes()
        header, code = kernel_file.unpacked(data, {})
        assert data[32:40] == b"nddkern1"
        assert path.name.startswith(f"{header['kernel']}.{header['source']}.")
        assert set(header["target"]) == {"triple", "cpu", "features"}
        assert set(header["libraries"]) == {"numba", "llvmlite", "python"}
        assert len(code) == len(data) - 44 - int.from_bytes(data[40:44], "little")
        texts[header["kernel"]] = (header["signature"], header["result"], header["format"], header["constants"])
    array = "Array(float64, 1, 'C', False, aligned=True)"
    assert texts == {
        "small.doubled": (f"({array}, {array})", "none", "object", []),
        "inner.small.twice": ("(float64,)", "float64", "bitcode", []),
    }


@pytest.mark.parametrize("name", ["kernel", "source", "signature", "target", "libraries"])
@pytest.mark.drawn(1)
def test_a_file_that_says_it_is_another_kernel_is_not_used(folder, name):
    keep(folder)
    for path in files(folder):
        header, code = kernel_file.unpacked(path.read_bytes(), {})
        header[name] = {**header[name], "cpu": "other"} if isinstance(header[name], dict) else "other"
        path.write_bytes(kernel_file.packed(header, bytes(code)))
    assert not found_on_disk(folder)


_HEADERS = [b"", b"{", b"[]", b"3", b"{}", b"null", b"\xff", b"[" * 100_000]


@pytest.mark.parametrize("header", _HEADERS, ids=range(len(_HEADERS)))
@pytest.mark.drawn(1)
def test_a_header_that_is_none_is_compiled_anew(folder, header):
    """With a right digest; and a length that leads behind the end."""
    keep(folder)
    for path in files(folder):
        for length in (len(header), len(header) + 1, 2**32 - 1):
            content = b"nddkern1" + length.to_bytes(4, "little") + header
            path.write_bytes(hashlib.sha256(content).digest() + content)
            with pytest.raises((ValueError, AttributeError, RecursionError)):
                kernel_file.unpacked(path.read_bytes(), {"kernel": "small.doubled"})
    assert not found_on_disk(folder)
