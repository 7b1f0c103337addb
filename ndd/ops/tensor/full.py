"""`ndd.full`, `ones`, `zeros` and their `_like` forms: arrays filled with a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import each
from ndd._compiled.jit import kernel
from ndd._compiled.sample_loops import next_index
from ndd._cuda import transfer
from ndd._cuda.launch import Room
from ndd._operator import Call, PerSample, Values, bad_sample, like, operator, output
from ndd._tensor import Device, DType, Spec, Store
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import int16, int32, int64, torch_dtype
from ndd._tensor.memory import host_empty
from ndd._tensor.store import Volumes

_LITTLE = 1 << 19  # one thread writes about this many bytes before another one begins
_PIECE = 1 << 15  # words of 8 bytes that a thread writes in one turn
_SIGNED = {2: int16, 4: int32, 8: int64}


@operator(reads="cpu")
def full(fill_value, /, *, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays filled with a value: `out[...] = fill_value[...]`, broadcast as in NumPy.

    Args:
        fill_value: a number, or an array that broadcasts to `shape`; its element type is that of the result.
        shape: the shape; default: that of `fill_value` (DALI 2.4.0: a scalar, whatever the value).
        layout: a letter for each axis.

    Raises RuntimeError for negative extents, for a value that does not broadcast and a layout of another length.

    >>> import ndd
    >>> ndd.full([1, 2], shape=[2, 2]).torch()
    tensor([[1, 2],
            [1, 2]], dtype=torch.int32)
    """
    return _spec("full", fill_value.dtype, shape, layout, fill_value.ndim)


@operator(reads={"fill_value": "cpu"})
def full_like(data_like, fill_value, /):
    """Arrays of the shape, element type and layout of `data_like`, filled with `fill_value`.

    `out[...] = cast(fill_value)[...]`, broadcast to the shape. (`numpy.full_like` drops the fraction of 5.5.)

    Raises RuntimeError for a value that does not broadcast and for text, ValueError for batches of different sizes.

    Args:
        data_like: a value with the shape, element type and layout.
        fill_value: a number, or an array that broadcasts to the shape.

    >>> import ndd
    >>> ndd.full_like(ndd.tensor([1, 2]), 5.5).torch()
    tensor([6, 6], dtype=torch.int32)
    """
    return like(data_like)


@operator
def ones(*, dtype: DType | None = None, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays of ones: `out[...] = 1`.

    Args:
        shape: the shape; default: a scalar.
        dtype: the element type; default i32 (NumPy and torch: a float).
        layout: a letter for each axis.

    Raises RuntimeError for negative extents and a layout of another length, ValueError or TypeError for a `dtype` that is not a
    type of ndd.

    >>> import ndd
    >>> ndd.ones(shape=[2]).torch()
    tensor([1, 1], dtype=torch.int32)
    """
    return _spec("ones", dtype or int32, shape, layout, 0)


@operator
def ones_like(data_like, /, *, dtype: DType | None = None):
    """Ones of the shape and layout of `data_like`, of its element type or `dtype`: `out[...] = 1`.

    Raises ValueError or TypeError for a `dtype` that is not a type of ndd, RuntimeError for complex numbers and text.

    Args:
        data_like: a value with the shape, layout and element type.
        dtype: another element type.

    >>> import ndd
    >>> ndd.ones_like(ndd.tensor([[5.0, 6.0]])).torch()
    tensor([[1., 1.]])
    """
    return like(data_like, dtype=dtype)


@operator
def zeros(*, dtype: DType | None = None, layout: str | None = None, shape: PerSample[list[int]] = None):
    """Arrays of zeros: `out[...] = 0`.

    Args:
        shape: the shape; default: a scalar.
        dtype: the element type; default i32 (NumPy and torch: a float).
        layout: a letter for each axis.

    Raises RuntimeError for negative extents and a layout of another length, ValueError or TypeError for a `dtype` that is not a
    type of ndd.

    >>> import ndd
    >>> ndd.zeros(shape=[2], batch_size=3).shape
    [(2,), (2,), (2,)]
    """
    return _spec("zeros", dtype or int32, shape, layout, 0)


@operator
def zeros_like(data_like, /, *, dtype: DType | None = None):
    """Zeros of the shape and layout of `data_like`, of its element type or `dtype`: `out[...] = 0`.

    Raises ValueError or TypeError for a `dtype` that is not a type of ndd, RuntimeError for complex numbers and text.

    Args:
        data_like: a value with the shape, layout and element type.
        dtype: another element type.

    >>> import ndd
    >>> ndd.zeros_like(ndd.tensor([[5, 6]])).torch()
    tensor([[0, 0]], dtype=torch.int32)
    """
    return like(data_like, dtype=dtype)


zeros_like.operator.keeps_shape = ones_like.operator.keeps_shape = full_like.operator.keeps_shape = True


def _spec(name: str, dtype: DType, shape: Any, layout: str | None, ndim: int) -> Any:
    known: int | None = ndim
    if shape is not None:
        known = len(shape) if isinstance(shape, np.ndarray) and shape.ndim == 1 else None
    if layout and known is not None and len(layout) != known:
        raise RuntimeError(f"{name}: `layout` {layout!r} has {len(layout)} letters, the shape {known} axes")
    return output(dtype, known, layout or None)


def _fills(declared: Any) -> Any:
    """Registers a function that returns the shapes and the fill: a number, or an operand of values."""

    def hook(asked: Callable[..., tuple[np.ndarray, Any]]) -> None:
        declared.batch(lambda call, *operands, **arguments: _filled(call, *asked(call, *operands, **arguments)))
        declared.cuda(
            lambda launch, *inputs, **arguments: _filled(launch.call, *asked(launch.call, *inputs, **arguments))
        )

    return hook


@_fills(full)
def _(call, fill_value, *, layout, shape):
    return fill_value.shapes if shape is None else _shapes(shape, call.n), fill_value


_fills(full_like)(lambda call, data_like, fill_value: (data_like.shapes, fill_value))
_fills(ones)(lambda call, *, dtype, layout, shape: (_shapes(shape, call.n), 1))
_fills(zeros)(lambda call, *, dtype, layout, shape: (_shapes(shape, call.n), 0))
_fills(ones_like)(lambda call, data_like, *, dtype: (data_like.shapes, 1))
_fills(zeros_like)(lambda call, data_like, *, dtype: (data_like.shapes, 0))


def _shapes(shape: Values | None, n: int) -> np.ndarray:
    """The argument as int64 `[N, ndim]`."""
    if shape is None:
        return np.zeros((n, 0), np.int64)
    shapes = np.ascontiguousarray(shape.rows())
    for i in np.flatnonzero((shapes < 0).any(axis=1))[:1].tolist():
        raise bad_sample(i, f"`shape`: extents must not be negative, got {tuple(shapes[i].tolist())}")
    return shapes


def _filled(call: Call, shapes: np.ndarray, value: Any) -> Store:
    """The arrays; `value` is a number or the operand of values that broadcast."""
    spec = call.outs[0]
    dtype, layout = spec.dtype, spec.layout
    if layout and len(layout) != shapes.shape[1]:
        raise RuntimeError(f"`layout` {layout!r} has {len(layout)} letters, the shape {shapes.shape[1]} axes")
    number = _one_number(value, dtype)
    if number is not None and call.device.device_id is not None:
        return _filled_there(spec, shapes, number)
    flat = host_empty(Volumes(shapes).total, dtype.numpy)
    uniform = bool((shapes == shapes[0]).all())
    forms: dict[str, Any] = {"whole": flat.reshape((len(shapes), *shapes[0].tolist()))} if uniform else {"flat": flat}
    store = Store(dtype, layout, Device.CPU, shapes, **forms)
    if number is not None:
        _fill(call, flat, number)
    else:
        for i, (target, source) in enumerate(zip(store.arrays(), value.arrays, strict=True)):
            _broadcast(target, convert_array(np.asarray(source), value.dtype.name, dtype.name), i)
    if call.device.device_id is None:
        return store
    return transfer.to_gpu(store, call.device)


def _one_number(value: Any, dtype: DType) -> np.ndarray | None:
    """The number for all elements, converted; None if there are several."""
    if isinstance(value, int):
        return convert_array(np.array(value, np.int32), "i32", dtype.name)
    arrays = value.arrays
    if arrays[0].size != 1 or any([a is not arrays[0] for a in arrays]):
        return None
    return convert_array(np.asarray(arrays[0]), value.dtype.name, dtype.name).reshape(())


def _fill(call: Call, flat: np.ndarray, number: np.ndarray) -> None:
    """Fills an array, with several threads if it is large: one thread writes about 10 GB/s."""
    if flat.nbytes <= _LITTLE:
        flat[...] = number
        return
    octets, pattern = flat.view(np.uint8), np.full(8 // flat.itemsize, number).view(np.uint64)
    behind = octets.size // 8 * 8
    octets[behind:] = pattern.view(np.uint8)[: octets.size - behind]
    words, word = octets[:behind].view(np.uint64), pattern[0]
    pieces = -(-words.size // _PIECE)
    call.parallel_for(_fill_words, (words, word), pieces, flat.nbytes, flat)


@kernel
def _fill_words(counter, limit, words, word):
    """Fills an array of words, piece by piece."""
    for _ in range(limit):
        start = next_index(counter) * _PIECE
        if start >= words.size:
            break
        piece = words[start : start + _PIECE]
        for i in each(piece.size):
            piece[i] = word
    return True


_fill_words.fallback()


def _filled_there(spec: Spec, shapes: np.ndarray, number: np.ndarray) -> Store:
    """Fills arrays on the GPU, with torch."""
    store = Room(shapes, len(shapes), []).store(spec)
    flat = store.flat if store.whole is None else store.whole
    width = spec.dtype.bytes
    if number.dtype.kind == "u" and width > 1:  # torch fills signed integers only; bfloat16 is held as uint16
        number, flat = number.view(f"i{width}"), flat.view(torch_dtype(_SIGNED[width]))
    flat.fill_(number.item())
    return store


def _broadcast(target: np.ndarray, source: np.ndarray, i: int) -> None:
    while source.ndim > target.ndim and source.shape[0] == 1:
        source = source[0]
    try:
        target[...] = source
    except ValueError:
        raise bad_sample(i, f"a value of shape {source.shape} does not broadcast to shape {target.shape}") from None
