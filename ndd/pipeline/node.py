"""`DataNode`: what the functions of `fn` give and take inside a pipeline."""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.conditions import branch, narrowed, parted
from ndd.pipeline.function_call import noted
from ndd.types import Constant


class NewAxis:
    """What stands in an index for an axis to be added: `newaxis`, or `newaxis("C")` with its letter in the layout."""

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
    """The operator of a node and something else, and that of something else and a node."""
    compute = getattr(operator, f"__{name}__")

    def left(self: DataNode, other: Any) -> DataNode:
        return self._apply(compute, other)

    def right(self: DataNode, other: Any) -> DataNode:
        return self._apply(lambda a, b: compute(b, a), other)

    return noted(f"DataNode.__{name}__", left), noted(f"DataNode.__r{name}__", right)


def _of_one(name: str) -> Any:
    compute = getattr(operator, f"__{name}__")
    return noted(f"DataNode.__{name}__", lambda self: self._apply(compute))


class DataNode:
    """A value inside a pipeline's body: a batch of this run, or (between `with pipe:`) a step recorded for later runs.

    It has the operators and methods of DALI's DataNode; `value` is the `ndd.Batch`, and printing a node prints it.
    """

    def __init__(
        self,
        value: Any = None,
        step: Callable[[dict[int, Any]], Any] | None = None,
        inputs: tuple[Any, ...] = (),
        state: Any = None,
    ):
        self._value = value
        self._step = step and _called_here(step)
        # Of a recorded step: values, some of which are or hold nodes.
        self.inputs = inputs if branch() is None else tuple(parted(n, n.made_in) for n in nodes_in(inputs))
        self.state = state  # of the call that made a recorded step: a `CallState`
        self.made_in = branch()  # the branch of an `if` on a node whose samples it holds
        self.source: Any = None  # the `CallState` of an external source, for `feed_input`
        # As DALI names it: "images", "__Flip_0"; with its place "reader[1]", if it is one of several.
        self.name: str | None = None
        self.call: Any = None  # the `FunctionCall` that made a recorded step, and the step's place among what it gave
        self.place: Any = 0

    @classmethod
    def after(cls, *inputs: Any) -> DataNode:
        """A recorded step that is there for the order of the steps alone, and never runs."""
        found = cls(step=_only_recorded)
        found.inputs = inputs
        return found

    @property
    def recorded(self) -> bool:
        """Whether it is a step for later runs, without a value of its own."""
        return self._step is not None

    @property
    def value(self) -> Any:
        """The `ndd.Batch` of this run."""
        if self._step is not None:
            raise RuntimeError(
                "This node was made in a `with pipeline:` block or outside of any pipeline: it has a value only while a "
                "pipeline runs that has it among its outputs or arguments. Call the operator of ndd itself for values now"
            )
        return self._value

    def evaluated(self, memo: dict[int, Any]) -> Any:
        """The batch of this run; a recorded step runs once for each run (`memo`)."""
        if self._step is None:
            return self._value if branch() is self.made_in else narrowed(self._value, self.made_in)
        key = id(self)
        if key not in memo:
            memo[key] = self._step(memo)
        return memo[key]

    __array_ufunc__ = None  # of an array and a node: ours

    def __ndd_function__(self, function: Callable[..., Any], *operands: Any) -> DataNode:
        """`function` of operands one of which is this node: what `ndd.math` calls."""
        if not isinstance(function, functools.partial):
            return applied(function, *operands)
        (name,) = function.args  # of a function of `ndd.math`
        return noted(f"math.{name}", lambda *_: applied(function, *operands))(*operands)

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
        """Where the value is: "cpu" or "gpu"; of a recorded step, where it will be as far as the calls before it tell."""
        return self.call.device if self.call is not None else self.value.device.device_type

    def get(self) -> Any:
        """The value of this run, as the `TensorList` that `run()` gives: for the eyes, as in DALI's debug mode."""
        from ndd.pipeline.outputs import TensorList

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
        """The shape of every sample, as a tensor of int64 (or `dtype`) on that device."""
        return self._apply(lambda batch: shapes_of(batch, dtype).to_device(device))

    @_noted
    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Where every sample came from, as a tensor of characters."""
        return self.property("source_info", device=device)

    @_noted
    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """A property of every sample ("layout", "source_info"), on that device."""
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
        return "DataNode(recorded)" if self._step is not None else f"DataNode({self._value!r})"

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


# The operators that make nodes, indexing aside.
OPERATORS = [name for name, method in vars(DataNode).items() if hasattr(method, "noted") and name.startswith("__")]
OPERATORS.remove("__getitem__")


def _indexed(batch: Any, *ranges: Any) -> Any:
    named = sum(r is not ... for r in ranges)
    if named > batch.ndim:
        raise RuntimeError(f"Too many indices: {named} for samples of {batch.ndim} axes")
    return batch.slice[ranges]


def user_frame() -> types.FrameType:
    """Where the user's program called into `ndd`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        frame = frame.f_back
    return frame


_HOME = str(Path(__file__).parent.parent)
_STEP = (lambda step, memo: step(memo)).__code__


def _called_here(step: Callable[[dict[int, Any]], Any]) -> Callable[[dict[int, Any]], Any]:
    """A recorded step, to be called as if from the user's line that recorded it: errors name the innermost line outside
    this package, which would be that of `run()`."""
    frame = user_frame()
    line = _STEP.replace(
        co_filename=frame.f_code.co_filename, co_name=frame.f_code.co_name, co_firstlineno=frame.f_lineno
    )
    call = types.FunctionType(line, {"__name__": "recorded"})
    return lambda memo: call(step, memo)


def shapes_of(batch: Any, dtype: Any = None) -> Any:
    """A batch of the shapes of a batch's samples."""
    return ndd.batch([list(s) for s in batch.shape], dtype=ndd.int64 if dtype is None else ndd.dtype(dtype))


_NARROW = {np.dtype(wide): np.dtype(narrow) for wide, narrow in (("f8", "f4"), ("i8", "i4"), ("u8", "u4"))}


def as_constant(value: Any, batch_size: int) -> Any:
    """A batch of equal samples; types as DALI chooses them for constants: 32 bits where they were not asked for.

    Numbers are rounded and saturate, except that one float loses its fraction and integers of an array that do not
    fit are an error. A `Constant` of one NumPy number, and arrays of other libraries, keep their type.
    """
    spec = value if isinstance(value, Constant) else Constant(value)
    if isinstance(spec.value, ndd.Tensor):
        return ndd.Batch.broadcast(spec.value, batch_size)
    data = np.asarray(spec.value)
    dtype = None if spec.dtype is None else ndd.dtype(spec.dtype)
    is_numpy = isinstance(spec.value, np.ndarray | np.generic)
    if dtype is None and data.dtype in _NARROW and (isinstance(spec.value, list | tuple) or is_numpy):
        if data.ndim or spec is not value:
            narrow = _NARROW[data.dtype]
            if is_numpy and narrow.kind != "f":
                _check_fits(data, narrow)
            dtype = ndd.dtype(narrow)
    elif dtype is not None and isinstance(spec.value, float) and dtype.numpy.kind in "iu":
        data = np.trunc(data)
    if spec.extents is not None:
        data = np.broadcast_to(data, spec.extents) if data.ndim == 0 else data.reshape(spec.extents)
    sample = np.ascontiguousarray(data).reshape(data.shape)
    made = ndd.batch([sample] * batch_size, dtype=dtype, layout=spec.layout)
    return made.gpu() if spec.target == "gpu" else made


def _check_fits(data: np.ndarray, dtype: np.dtype) -> None:
    limits = np.iinfo(dtype)
    for extreme in (data.min(initial=0), data.max(initial=0)):
        if not limits.min <= extreme <= limits.max:
            raise OverflowError(f"Integer {extreme} is out of range for {dtype}. Say types.Constant(..., dtype=...)")


def contains_node(value: Any) -> bool:
    """Whether a DataNode or a Constant stands in a value, a slice, a list or a tuple."""
    if isinstance(value, slice):
        return any(contains_node(v) for v in (value.start, value.stop, value.step))
    if isinstance(value, list | tuple):
        return any(contains_node(v) for v in value)
    return isinstance(value, DataNode | Constant)


def _only_recorded(memo: dict[int, Any]) -> Any:
    raise RuntimeError("The branches of an `if` on a node were gone through, not run: the value is not known yet")


def nodes_in(value: Any) -> list[DataNode]:
    """The nodes that stand in a value, a slice, a list or a tuple, in order."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, list | tuple):
        return [node for v in value for node in nodes_in(v)]
    return [value] if isinstance(value, DataNode) else []


def is_recorded(value: Any) -> bool:
    """Whether a value depends on a recorded step."""
    return any(node.recorded for node in nodes_in(value))


def unwrapped(value: Any, memo: dict[int, Any]) -> Any:
    """The value with batches in place of nodes."""
    if isinstance(value, DataNode):
        return value.evaluated(memo)
    if isinstance(value, Constant):
        return as_constant(value, 1).select(0)
    if isinstance(value, slice) and contains_node(value):
        return slice(*(unwrapped(v, memo) for v in (value.start, value.stop, value.step)))
    if isinstance(value, list | tuple) and contains_node(value):
        return type(value)(unwrapped(v, memo) for v in value)
    return value


def applied(function: Callable[..., Any], *values: Any) -> DataNode:
    """A node of `function` applied to batches: now, or at every run if a value is recorded."""
    if any(is_recorded(v) for v in values):
        return DataNode(step=lambda memo: function(*[unwrapped(v, memo) for v in values]), inputs=values)
    return DataNode(function(*[unwrapped(v, {}) for v in values]))
