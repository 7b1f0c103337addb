"""User functions that a pipeline calls with its batches: on NumPy arrays, DLPack capsules or torch tensors, or compiled by
numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import ndd
from ndd.pipeline import current
from ndd.pipeline.node import add_node


def python_function(
    *inputs: Any,
    function: Any,
    num_outputs: int = 1,
    batch_processing: bool = False,
    output_layouts: Any = None,
    device: str | None = None,
    **_: Any,
) -> Any:
    """Calls `function` with NumPy arrays (torch tensors on the GPU) of every sample, or lists of them for the batch
    with `batch_processing=True`; its results are outputs, a tuple if there are several. `num_outputs=0` runs it for its
    effect. RuntimeError for another number of outputs or samples, or samples of several element types.

    An exception of `function` reaches the caller of `run` unchanged, and the pipeline goes on with the next batch. DALI
    makes it a RuntimeError with its text and ends the pipeline. Only StopIteration becomes a RuntimeError here too: an
    iterator would take it for the end of the data."""
    current.required("python_function")
    if not isinstance(output_layouts, list | tuple):
        output_layouts = [output_layouts] * num_outputs
    layouts = [*output_layouts, *[None] * num_outputs]  # a list may name the first outputs only

    def step(run: Any) -> Any:
        batches = run.batches(inputs)
        size = batches[0].batch_size if batches else run.batch_size
        columns = [[_plain(t) for t in b.tensors] for b in batches]
        if batch_processing:
            results = _returned(_called(function, *columns), num_outputs)
        else:
            rows = zip(*columns, strict=True) if columns else (() for _ in range(size))
            returned = [_returned(_called(function, *row), num_outputs) for row in rows]
            results = [list(c) for c in zip(*returned, strict=True)]
        for i, result in enumerate(results):
            _check_samples(result, size, i)
        outputs = [ndd.batch(r, layout=layout) for r, layout in zip(results, layouts, strict=False)]
        return None if num_outputs == 0 else outputs[0] if num_outputs == 1 else tuple(outputs)

    return add_node(step, inputs, outputs=num_outputs, always=True)


def _called(function: Any, *arguments: Any) -> Any:
    """The return value of a user's function."""
    try:
        return function(*arguments)
    except StopIteration as error:
        name = getattr(function, "__name__", "the function")
        raise RuntimeError(
            f"fn.python_function: {name} raised StopIteration, which only a source of data may: next(values, default) does not"
        ) from error


def _returned(result: Any, num_outputs: int) -> Any:
    """The outputs that a function returned. A tuple holds outputs, even if it has one element."""
    if num_outputs < 2:
        return [result[0] if isinstance(result, tuple) else result] if num_outputs else []
    if not isinstance(result, tuple | list) or len(result) != num_outputs:
        got = f"{len(result)} of them" if isinstance(result, tuple | list) else f"a {type(result).__name__}"
        raise RuntimeError(f"fn.python_function: the function must return a tuple of {num_outputs} outputs, got {got}")
    return result


def _check_samples(result: Any, size: int, output: int) -> None:
    if len(result) != size:
        raise RuntimeError(
            f"fn.python_function: output {output}: expected {size} samples as in the batch, got {len(result)}"
        )
    kinds = sorted({str(r.dtype).removeprefix("torch.") for r in result if hasattr(r, "dtype")})
    if len(kinds) > 1:
        raise RuntimeError(
            f"fn.python_function: output {output}: the samples have the types {', '.join(kinds)}. Convert them to one"
        )


def dl_tensor_python_function(
    *inputs: Any, function: Any, batch_processing: bool = False, synchronize_stream: bool = True, **arguments: Any
) -> Any:
    """`python_function` with DLPack capsules instead of NumPy arrays; results are capsules or have `__dlpack__`.

    Args:
        synchronize_stream: no effect: the user of a result waits for it.
    """

    def as_capsules(value: Any) -> Any:
        return [as_capsules(v) for v in value] if isinstance(value, list) else value.__dlpack__()

    def as_tensors(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(as_tensors(v) for v in value)
        return torch.from_dlpack(value)

    def call(*values: Any) -> Any:
        return as_tensors(function(*map(as_capsules, values)))

    return python_function(*inputs, function=call, batch_processing=batch_processing, **arguments)


def torch_python_function(*inputs: Any, function: Any, batch_processing: bool = False, **arguments: Any) -> Any:
    """`python_function` with torch tensors instead of NumPy arrays; results may be either.

    Args:
        *inputs: nodes: each is an argument of the function.
        function: takes torch tensors; gives one result, a tuple of them, or nothing.
        batch_processing: call it once a batch, with lists of tensors; False: once a sample.
        **arguments: further arguments of `fn.python_function`, such as `num_outputs` and `output_layouts`.

    >>> import ndd, torch
    >>> from ndd.plugin.pytorch import fn
    >>> with ndd.Pipeline(batch_size=2) as pipe:
    ...     numbers = ndd.fn.external_source(source=[[[1, 2], [3, 4]]])
    ...     pipe.set_outputs(fn.torch_python_function(numbers, function=lambda x: torch.flip(x, [0])))
    >>> pipe.run()[0].as_array().tolist()
    [[2, 1], [4, 3]]
    """

    def as_torch(value: Any) -> Any:
        return [as_torch(v) for v in value] if isinstance(value, list) else torch.as_tensor(value)

    def call(*values: Any) -> Any:
        return function(*map(as_torch, values))

    return python_function(*inputs, function=call, batch_processing=batch_processing, **arguments)


def numba_function(
    *inputs: Any,
    run_fn: Any,
    out_types: Any,
    in_types: Any,
    outs_ndim: Any,
    ins_ndim: Any,
    setup_fn: Any = None,
    batch_processing: bool = False,
    **_: Any,
) -> Any:
    """Calls `run_fn(out, ..., in, ...)` with arrays of every sample; it writes the outputs. CPU only.

    The function is called directly: decorate it with `numba.njit` to have it compiled.

    Args:
        out_types, in_types: the element types of outputs and inputs; the inputs are checked.
        outs_ndim, ins_ndim: their numbers of dimensions; checked.
        setup_fn: `setup_fn(outs, ins)` writes the shapes, `outs[output][sample][axis]`, knowing `ins[input][sample]`;
            without it outputs have the shapes of the inputs.
        batch_processing: `run_fn` is called once, with lists of arrays.
        *inputs: nodes: each is an argument of the function.
        run_fn: the function.
        **_: accepted for compatibility with DALI, without effect.

    Raises ValueError for lists of types and of numbers of axes that differ in length, RuntimeError for inputs of
    another type or number of axes.

    >>> import ndd
    >>> from ndd.plugin.numba.fn.experimental import numba_function
    >>> def double(out, numbers):
    ...     out[:] = 2 * numbers
    >>> kinds = {"out_types": [ndd.types.INT32], "in_types": [ndd.types.INT32], "outs_ndim": [1], "ins_ndim": [1]}
    >>> with ndd.Pipeline(batch_size=2) as pipe:
    ...     numbers = ndd.fn.external_source(source=[[[1, 2], [3, 4]]])
    ...     pipe.set_outputs(numba_function(numbers, run_fn=double, **kinds))
    >>> pipe.run()[0].as_array().tolist()
    [[2, 4], [6, 8]]
    """
    current.required("numba_function")
    kinds = [np.dtype(ndd.types.to_numpy_type(kind)) for kind in out_types]
    for kind, types, ndims in (("out", out_types, outs_ndim), ("in", in_types, ins_ndim)):
        if len(types) != len(ndims):
            raise ValueError(
                f"fn.experimental.numba_function: `{kind}_types` and `{kind}s_ndim` differ in length: {len(types)} and "
                f"{len(ndims)}"
            )

    def step(run: Any) -> Any:
        batches = run.batches(inputs)
        for i, (batch, kind, ndim) in enumerate(zip(batches, in_types, ins_ndim, strict=True)):
            if (batch.dtype.type_id, batch.ndim) != (kind, ndim):
                raise RuntimeError(
                    f"fn.experimental.numba_function: input {i}: expected {ndim} dimensions of {ndd.dtype(kind)}, got "
                    f"{batch.ndim} of {batch.dtype}"
                )
        input_arrays = [[np.asarray(sample) for sample in batch.tensors] for batch in batches]
        shapes = [[np.array(a.shape, np.int64) for a in column] for column in input_arrays]
        if setup_fn is None:
            out_shapes = shapes[: len(kinds)]
        else:
            out_shapes = [[np.zeros(ndim, np.int64) for _ in input_arrays[0]] for ndim in outs_ndim]
            setup_fn(out_shapes, shapes)
        outs = [[np.zeros(tuple(s), kind) for s in column] for column, kind in zip(out_shapes, kinds, strict=True)]
        if batch_processing:
            run_fn(*outs, *input_arrays)
        else:
            for arrays in zip(*outs, *input_arrays, strict=True):
                run_fn(*arrays)
        results = tuple(ndd.batch(column) for column in outs)
        return results[0] if len(results) == 1 else results

    return add_node(step, inputs, outputs=len(kinds))


def _plain(tensor: Any) -> Any:
    return np.asarray(tensor) if tensor.device.device_type == "cpu" else tensor.torch()
