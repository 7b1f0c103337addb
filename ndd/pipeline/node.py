"""`DataNode`: the values that the functions of `fn` take and return inside a pipeline."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ndd
from ndd.pipeline import current
from ndd.pipeline.function_call import Node, nodes_in, noted
from ndd.pipeline.operator_states import OperatorState
from ndd.pipeline.outputs import TensorList
from ndd.pipeline.trace import Step
from ndd.types import Constant


class NewAxis:
    """A new axis in an index: `newaxis`, or `newaxis("C")` with the axis' letter in the layout.

    Args:
        name: one letter; None: the axis has none.

    >>> import ndd
    >>> with ndd.Pipeline(batch_size=1) as pipe:
    ...     pipe.set_outputs(ndd.fn.external_source(source=[[[1, 2, 3]]])[ndd.newaxis, :])
    >>> pipe.run()[0].shape()
    [(1, 3)]
    """

    def __init__(self, name: str | None = None):
        if name is not None and (not isinstance(name, str) or len(name) != 1):
            error = ValueError if isinstance(name, str) else TypeError
            raise error(f"newaxis: expected the one letter of the axis in the layout, got {name!r}")
        self.name = name

    def __call__(self, name: str | None = None) -> NewAxis:
        """The axis with a name."""
        return NewAxis(name)


newaxis = NewAxis()


def _noted(method: Callable[..., Any]) -> Any:
    return noted(f"DataNode.{method.__name__}", method)


def _of_two(name: str) -> tuple[Any, Any]:
    """The operator of a node and another value, and its reflected form."""
    compute = getattr(operator, f"__{name}__")

    def left(self: DataNode, other: Any) -> DataNode:
        return self._apply(compute, other)

    def right(self: DataNode, other: Any) -> DataNode:
        return self._apply(lambda a, b: compute(b, a), other)

    return noted(f"DataNode.__{name}__", left), noted(f"DataNode.__r{name}__", right)


def _of_one(name: str) -> Any:
    compute = getattr(operator, f"__{name}__")
    return noted(f"DataNode.__{name}__", lambda self: self._apply(compute))


class DataNode(Node):
    """A value inside a pipeline's function: the result of a recorded step in every run, or (with `debug=True`) a batch.

    It has the operators and methods of DALI's DataNode.

    Args:
        value: the `ndd.Batch`, with `debug=True`.
        step: the recorded step that gives it.
        index: its place among the values of the step, if there are several.
        made_in: the branch of a condition that it was made in.

    Raises TypeError for operands that are neither nodes nor numbers nor arrays.
    """

    def __init__(self, value: Any = None, step: Step | None = None, index: Any = None, made_in: Any = None):
        self._value = value
        self._step = step
        self.index = index  # its place among the results of the step, if there are several
        self._made_in = made_in

    @property
    def _recorded(self) -> bool:
        """Whether it stands for a value of every run and has no value of its own."""
        return self._step is not None

    @property
    def value(self) -> Any:
        """The `ndd.Batch`, with `debug=True`.

        Raises RuntimeError unless the pipeline was made with `debug=True`.
        """
        if self._step is not None:
            raise RuntimeError(
                "This node has no value: the function of a pipeline is called once, to record its steps, and each run replays "
                "them. @pipeline_def(debug=True) calls it for every batch, with values; fn.python_function sees the values of "
                "every run; and the operators of ndd itself give values at once"
            )
        return self._value

    __array_ufunc__ = None  # makes NumPy leave `array + node` to us

    def __ndd_function__(self, function: Callable[..., Any], *operands: Any) -> DataNode:
        """`function` of operands, one of which is this node; `ndd.math` calls it."""
        path = f"math.{function.args[0]}" if isinstance(function, functools.partial) else None
        return noted(path, lambda *values: applied(function, *values))(*operands)

    def _apply(self, function: Callable[..., Any], *others: Any) -> DataNode:
        for value in others:
            if value is None or isinstance(value, str | bytes):
                raise TypeError(f"A DataNode goes together with nodes, numbers and arrays, got {value!r}")
        return applied(function, self, *(Constant(v) if isinstance(v, np.ndarray) else v for v in others))

    @_noted
    def __getitem__(self, ranges: Any) -> DataNode:
        """Indexing inside every sample; `newaxis` (or `newaxis("C")`) adds an axis of extent 1. None is a whole axis, as `:`."""
        parts = tuple(slice(None) if p is None else p for p in (ranges if isinstance(ranges, tuple) else (ranges,)))
        plain = [p for p in parts if not isinstance(p, NewAxis)]
        if any(isinstance(p, float | str) for p in plain):
            raise TypeError(f"A DataNode is indexed by integers, slices, nodes and `newaxis`, got {ranges!r}")
        node = self._apply(_indexed, *plain) if plain else self
        if len(plain) == len(parts):
            return node
        kept = [p for p in parts if isinstance(p, NewAxis | slice)]  # integers drop their axes
        axes = [i for i, p in enumerate(kept) if isinstance(p, NewAxis)]
        names = [p.name for p in parts if isinstance(p, NewAxis) and p.name]
        if names and len(names) < len(axes):
            raise ValueError("New axes: expected a name for each or for none: node[newaxis('F'), newaxis('C')]")
        return node._apply(lambda batch: ndd.expand_dims(batch, axes=axes, new_axis_names="".join(names) or None))

    def __iter__(self) -> Any:
        raise TypeError("A DataNode cannot be unpacked: the function gives one output (index a sample with node[...])")

    @property
    def device(self) -> str:
        """The device of the value, "cpu" or "gpu"; for a recorded step, the device as far as the calls before it tell."""
        if self._call is not None:
            return self._call.device
        return "cpu" if self._step is not None else self._value.device.device_type

    def get(self) -> Any:
        """The value of this run, as the `TensorList` that `run()` gives: to be looked at, as in DALI's debug mode."""
        return TensorList(self.value)

    @_noted
    def gpu(self) -> DataNode:
        """The value on the GPU."""
        return self._apply(lambda batch: batch.gpu())

    @_noted
    def cpu(self) -> DataNode:
        """The value on the CPU."""
        return self._apply(lambda batch: batch.cpu())

    @_noted
    def shape(self, *, dtype: Any = None, device: str = "cpu") -> DataNode:
        """The shape of every sample, as a tensor of int64 (or `dtype`) on that device.

        Args:
            dtype: the element type of the result.
            device: "cpu" or "gpu".
        """
        return self._apply(lambda batch: shapes_of(batch, dtype).to_device(device))

    @_noted
    def source_info(self, *, device: str = "cpu") -> DataNode:
        """The source of every sample, as a tensor of characters.

        Args:
            device: "cpu" or "gpu".
        """
        return self.property("source_info", device=device)

    @_noted
    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """A property of every sample ("layout", "source_info"), on that device.

        Args:
            key: "layout" or "source_info".
            device: "cpu" or "gpu".
        """
        return self._apply(lambda batch: ndd.get_property(batch, key=key).to_device(device))

    def __bool__(self) -> bool:
        if self._step is None and self._value.batch_size == 1 and self._value.shape[0] == ():
            return bool(self._value.select(0).item())
        raise TypeError(
            "A DataNode holds a value for each sample and has no single truth value. @pipeline_def(enable_conditionals=True) "
            "makes `if node:` decide for each sample, in the pipeline's function and in those that it calls; not in loops "
            "that it breaks, nor between `with pipe:`. Or compute with it: `flag * a + (1 - flag) * b`"
        )

    def __repr__(self) -> str:
        if self._step is None:
            return f"DataNode({self._value!r})"
        return f"DataNode(name={self.name!r}, device={self.device!r})"

    __add__, __radd__ = _of_two("add")
    __sub__, __rsub__ = _of_two("sub")
    __mul__, __rmul__ = _of_two("mul")
    __truediv__, __rtruediv__ = _of_two("truediv")
    __floordiv__, __rfloordiv__ = _of_two("floordiv")
    __mod__, __rmod__ = _of_two("mod")
    __pow__, __rpow__ = _of_two("pow")
    __and__, __rand__ = _of_two("and")
    __or__, __ror__ = _of_two("or")
    __xor__, __rxor__ = _of_two("xor")
    __lshift__, __rlshift__ = _of_two("lshift")
    __rshift__, __rrshift__ = _of_two("rshift")
    __eq__ = _of_two("eq")[0]
    __ne__ = _of_two("ne")[0]
    __lt__ = _of_two("lt")[0]
    __le__ = _of_two("le")[0]
    __gt__ = _of_two("gt")[0]
    __ge__ = _of_two("ge")[0]
    __hash__ = None  # type: ignore[assignment]  # as equality gives a node
    __neg__ = _of_one("neg")
    __invert__ = _of_one("invert")
    __abs__ = _of_one("abs")

    def __pos__(self) -> DataNode:
        return self


# The operators that make nodes, except indexing.
OPERATORS = [name for name, method in vars(DataNode).items() if hasattr(method, "noted") and name.startswith("__")]
OPERATORS.remove("__getitem__")


def _indexed(batch: Any, *ranges: Any) -> Any:
    named = sum(r is not ... for r in ranges)
    if named > batch.ndim:
        raise RuntimeError(f"Too many indices: {named} for samples of {batch.ndim} axes")
    return batch.slice[ranges]


def shapes_of(batch: Any, dtype: Any = None) -> Any:
    """A batch with the shapes of a batch's samples."""
    return ndd.batch([list(s) for s in batch.shape], dtype=ndd.int64 if dtype is None else ndd.dtype(dtype))


_NARROW = {np.dtype(wide): np.dtype(narrow) for wide, narrow in (("f8", "f4"), ("i8", "i4"), ("u8", "u4"))}


def as_constant(value: Any, batch_size: int) -> Any:
    """A batch of equal samples, with DALI's types for constants: 32 bits unless a type is given.

    Numbers are rounded and saturate, except that one float loses its fraction and integers of an array that do not
    fit are an error. A `Constant` of one NumPy number without a device, and arrays of other libraries, keep their type.
    """
    spec = value if isinstance(value, Constant) else Constant(value)
    if isinstance(spec.value, ndd.Tensor):
        return ndd.Batch.broadcast(spec.value, batch_size)
    data = np.asarray(spec.value)
    dtype = None if spec.dtype is None else ndd.dtype(spec.dtype)
    is_numpy = isinstance(spec.value, np.ndarray | np.generic)
    if dtype is None and data.dtype in _NARROW and (isinstance(spec.value, list | tuple) or is_numpy):
        if data.ndim or spec is not value or spec.target is not None:
            narrow = _NARROW[data.dtype]
            if is_numpy and narrow.kind != "f":
                _check_fits(data, narrow)
            dtype = ndd.dtype(narrow)
    elif dtype is not None and isinstance(spec.value, float) and dtype.numpy.kind in "iu" and spec.target is None:
        data = np.trunc(data)
    if spec.extents is not None:
        data = np.broadcast_to(data, spec.extents) if data.ndim == 0 else data.reshape(spec.extents)
    sample = np.ascontiguousarray(data).reshape(data.shape)
    constant = ndd.batch([sample] * batch_size, dtype=dtype, layout=spec.layout)
    return constant.gpu() if spec.target == "gpu" else constant


def _check_fits(data: np.ndarray, dtype: np.dtype) -> None:
    limits = np.iinfo(dtype)
    for extreme in (data.min(initial=0), data.max(initial=0)):
        if not limits.min <= extreme <= limits.max:
            raise OverflowError(f"Integer {extreme} is out of range for {dtype}. Say types.Constant(..., dtype=...)")


def contains_node(value: Any) -> bool:
    """Whether a value, a slice, a list or a tuple contains a DataNode or a Constant."""
    if isinstance(value, slice):
        return any(contains_node(v) for v in (value.start, value.stop, value.step))
    if isinstance(value, list | tuple):
        return any(contains_node(v) for v in value)
    return isinstance(value, DataNode | Constant)


def add_node(
    compute: Callable[..., Any],
    inputs: Any = (),
    *,
    outputs: int | Sequence[str] | None = None,
    call_state: OperatorState | None = None,
    always: bool = False,
    joins: bool = False,
) -> Any:
    """The node, list of nodes or dict of nodes that a call returns: recorded for every run, or computed now in a body that
    runs for every batch.

    Args:
        compute: see `Step`.
        inputs: its inputs, then its arguments by their names; values that are not nodes are skipped.
        outputs: the number of outputs, or their names.
        always: it runs even if no output of the pipeline needs it.
        call_state, joins: see `Step`.
    """
    nodes, pipeline = nodes_in(inputs), current.pipeline()
    live = pipeline is not None and not pipeline._tracing and not any(node._recorded for node in nodes)
    step = Step(compute, nodes, call_state, outputs not in (None, 1), joins, live)
    branch = current.branch() if nodes else None  # a call without inputs is for all samples
    result: Any = None
    if live:
        step.call_state = None if call_state is None else pipeline._states.known_here(call_state)
        result = pipeline._live.compute(step)
    elif always and pipeline is not None:
        pipeline._always.append(step)

    def node(index: Any) -> DataNode:
        if live:
            return DataNode(result if index is None else result[index], made_in=branch)
        return DataNode(step=step, index=index, made_in=branch)

    if not step.several:
        return node(None)
    if isinstance(outputs, int):
        return [node(i) for i in range(outputs)] or None
    return {key: node(key) for key in outputs or ()}


def applied(function: Callable[..., Any], *values: Any) -> DataNode:
    """A node of `function` applied to batches."""
    return add_node(lambda run: function(*map(run.unwrapped, values)), values)
