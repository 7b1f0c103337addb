"""`ndd.lookup_table`: replaces integers with values from a table."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import Plan, like, operator
from ndd._operator.deprecated import renamed
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import float32

_LAST_KEY = 65535


@operator(cut="elements")
def lookup_table(
    input,
    /,
    *,
    default_value: float = 0.0,
    dtype: DType | None = None,
    keys: list[int] | None = None,
    output_dtype: DType | None = None,
    values: list[float] | None = None,
):
    """Replaces every element with its value in the table.

    `out = values[k]` where `in == keys[k]`, else `default_value`. Any rank and layout, integers of every size; shapes and
    layout stay. The last of several values for one key counts. `cv2.LUT` and Pillow's `Image.point` do the same for bytes
    with a table of all 256 values, the same one for all channels here.

    Args:
        keys: from 0 to 65535. Default: none (DALI crashes for an empty list).
        values: one for each key.
        default_value: the value of elements without a key.
        dtype: the element type of the result. Default: float32. Values become integers by rounding half away from
            zero and saturating.
        output_dtype: the old name of `dtype`; warns.
        input: integers of any size, rank and layout.

    Errors: RuntimeError for an input that is not of an integer type, for keys outside the range, and if there are not
    as many values as keys.

    >>> import ndd
    >>> ndd.lookup_table(ndd.tensor([0, 1, 2]), keys=[0, 2], values=[5, 10.5], default_value=-1).torch()
    tensor([ 5.0000, -1.0000, 10.5000])
    >>> negative = ndd.lookup_table(ndd.demo.photo("cat"), keys=list(range(256)), values=list(range(255, -1, -1)), dtype=ndd.uint8)
    >>> negative.shape
    (266, 400, 3)
    """
    if input.dtype.kind not in (DType.Kind.signed, DType.Kind.unsigned):
        raise RuntimeError(f"lookup_table: Unsupported input type: {input.dtype}. Expected an integer type.")
    dtype = renamed("lookup_table", "output_dtype", output_dtype, "dtype", dtype)
    listed = np.asarray(() if keys is None else keys)
    n_values = 0 if values is None else len(values)
    if len(listed) != n_values:
        raise RuntimeError(f"`keys` size should match `values` size: got {len(listed)} keys and {n_values} values")
    if n_values and (listed.min() < 0 or listed.max() > _LAST_KEY):
        raise RuntimeError(f"`keys` should be in the range [0, {_LAST_KEY}], got {listed.min()} to {listed.max()}")
    return like(input, dtype=dtype or float32)


@lookup_table.plan
def _(input, *, default_value, dtype, keys, output_dtype, values):
    keys = np.zeros(0, np.int64) if keys is None else keys
    # The last entry is the default value, for elements without a key.
    size = int(keys.max(initial=-1)) + 2
    if input.dtype.bytes == 1:
        size = max(size, 257)  # then every 8-bit number is inside
    table = np.full(size, default_value, np.float32)
    if values is not None:
        table[keys] = values
    table = convert_array(table, "f32", (dtype or output_dtype or float32).name)
    view = "bits" if table.dtype == np.float16 else None
    return Plan(input.shapes, {}, {"table": table}, kernel=_KERNELS.get(input.dtype.name, look_up), view={"out": view})


@kernel
def look_up(x, out, table):
    """out = table[x], or the last entry of the table if x is not a valid index."""
    last = table.size - 1
    for i in range(x.size):
        key = np.int64(x[i])
        out[i] = table[key] if 0 <= key < last else table[last]


@look_up.fallback
def _(x, out, table):
    keys, last = x.astype(np.int64, copy=False), table.size - 1
    np.take(table, np.where((keys >= 0) & (keys < last), keys, last), out=out)


@kernel
def look_up_bytes(x, out, table):
    """Does the same as `look_up` for uint8, whose numbers are all in the table, in a third less time."""
    for i in range(x.size):
        out[i] = table[x[i]]


@look_up_bytes.fallback
def _(x, out, table):
    np.take(table, x, out=out)


@kernel
def look_up_unsigned(x, out, table):
    """Does the same as `look_up` for uint64."""
    last = np.uint64(table.size - 1)
    for i in range(x.size):
        out[i] = table[np.int64(x[i])] if x[i] < last else table[table.size - 1]


@look_up_unsigned.fallback
def _(x, out, table):
    np.take(table, np.minimum(x, np.uint64(table.size - 1)).astype(np.int64), out=out)


_KERNELS = {"u8": look_up_bytes, "u64": look_up_unsigned}


@lookup_table.cuda("lookup_table.cu")
def _(launch, input, out, *, table):
    launch("lookup_table", per_sample={"table": launch.table(table)}, shared={"last": len(table) - 1})
