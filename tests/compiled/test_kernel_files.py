"""What a file can say of a kernel."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ndd._compiled import linking


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
