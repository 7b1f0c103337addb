"""The operators behind `+ - * / ...`, comparisons and `ndd.math`: elementwise, with broadcasting inside each sample.

A Python or NumPy number beside a batch stays a constant, so that it costs neither a tensor nor a copy to the GPU. `apply`
divides the operands into inputs and constants, which a `Form` describes.

Two results differ from those of DALI 2.4.0 on the CPU, which are wrong. Negative integers compare with floats by value (in DALI
they are less than every float, -1 even less than -1.0). `rsqrt` is infinite at 0, and 0 at infinity (in DALI NaN, in 32 bits).
Integers divided by an integer 0 raise a ValueError as in DALI, which also names the sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cuda.source import ELEMENT_TYPES
from ndd._operator import Plan, bad_sample, operator, output
from ndd._tensor import Batch, DType, Tensor, bind_operations
from ndd._tensor.construct import build_tensor, from_pipeline
from ndd._tensor.dtype import dtype as to_dtype, float32, float64
from ndd._tensor.promotion import common, common_layout, result_type
from ndd.ops.tensor.elementwise_kernels import OPERATIONS, loop_of, spread

UNARY = (
    "minus", "plus", "bitnot", "abs", "fabs", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "sin", "cos",
    "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil",
)  # fmt: skip
COMPARISONS = ("eq", "neq", "lt", "leq", "gt", "geq")
BINARY = (
    "add", "sub", "mul", "fdiv", "div", "mod", "pow", "fpow", "atan2", "min", "max", "bitand", "bitor", "bitxor",
    "lshift", "rshift", *COMPARISONS,
)  # fmt: skip
_KERNEL_NAMES = {
    "bitand": "bitand_", "bitor": "bitor_", "bitxor": "bitxor_", "pow": "power", "fpow": "fpower", "atan2": "angle",
    "min": "minimum", "max": "maximum", "abs": "absolute", "fabs": "magnitude", "sqrt": "root", "rsqrt": "rroot",
    "cbrt": "cuberoot", "exp": "exponential", "log": "logarithm", "log2": "logarithm2", "log10": "logarithm10",
    "sin": "sine", "cos": "cosine", "tan": "tangent", "asin": "arcsine", "acos": "arccosine", "atan": "arctangent",
    "sinh": "hsine", "cosh": "hcosine", "tanh": "htangent", "asinh": "hareasine", "acosh": "hareacosine",
    "atanh": "hareatangent", "floor": "down", "ceil": "up",
}  # fmt: skip


class Form:
    """The operands of an operation: None for an input, a 0-d array for a constant."""

    __slots__ = ("constants", "types")
    is_immutable = True  # so that calls with the same form share cached results

    def __init__(self, constants: tuple[Any, ...]):
        self.constants = constants
        self.types = tuple(None if c is None else to_dtype(c.dtype) for c in constants)

    def fill(self, inputs: tuple[Any, ...]) -> list[Any]:
        """The operands in their order: `inputs` and constants."""
        rest = iter(inputs)
        return [next(rest) if c is None else c for c in self.constants]

    def element_types(self, inputs: tuple[Any, ...]) -> list[DType]:
        """The element types of the operands, in their order."""
        rest = iter(inputs)
        return [next(rest).dtype if t is None else t for t in self.types]


def _declare(name: str) -> Callable[..., Any]:
    """Declares the operator of an operation. `form` has the operands that are not inputs."""
    compute = OPERATIONS[name]

    def outcome(first, /, *others, form: Any):
        operands = (first, *others)
        layout = common_layout(name, *[o.layout for o in operands]) if others else first.layout
        ndim = max([o.ndim for o in operands])
        if layout is not None and len(layout) != ndim:  # the operand with the most axes has none
            layout = None
        return output(result_type(name, *form.element_types(operands)), ndim, layout)

    outcome.__name__ = outcome.__qualname__ = name
    outcome.__doc__ = f"`{name}`, elementwise."
    op = operator(outcome, register=False, cut="elements")

    @op.plan
    def _(*operands, form):
        shapes, compiled = _broadcast([o.shapes for o in operands]), None
        if all([o.shapes is shapes or np.array_equal(o.shapes, shapes) for o in operands]):
            result = result_type(name, *form.element_types(operands)).numpy
            compiled = loop_of(name, result, form.fill([o.dtype.numpy for o in operands]))
        return Plan(shapes, shared={"form": form}, kernel=compiled)

    @op.cpu
    def _(operands, out, form):
        compute(out, *form.fill(operands if len(operands) == 1 else [spread(a, out) for a in operands]))

    @op.cuda("elementwise.cu")
    def _(launch, *operands, form):
        _launch(launch, name, operands[:-1], operands[-1], form)

    return op


def _broadcast(all_shapes: list[np.ndarray]) -> np.ndarray:
    """The common shapes `[N, ndim]` of operands, broadcast as NumPy does within each sample."""
    first = all_shapes[0]
    if all(s is first or np.array_equal(s, first) for s in all_shapes[1:]):
        return first
    ndim = max(s.shape[1] for s in all_shapes)
    shape = np.ones((len(first), ndim), np.int64)
    for s in all_shapes:
        part = shape[:, ndim - s.shape[1] :]
        wrong = (s != part) & (s != 1) & (part != 1)
        if wrong.any():
            sample = int(np.flatnonzero(wrong.any(axis=1))[0])
            texts = " and ".join("x".join(map(str, q[sample].tolist())) or "scalar" for q in all_shapes)
            raise bad_sample(sample, f"Can't broadcast shapes: {texts}. Extents must be equal, or 1 to be stretched.")
        np.copyto(part, s, where=s != 1)
    return shape


def _launch(launch: Any, name: str, operands: tuple[Any, ...], out: Any, form: Form) -> None:
    kinds = form.element_types(operands)
    together = kinds[0]
    for kind in kinds[1:]:
        together = common(together, kind)
    mixed_remainder = name == "mod" and out.dtype == float32 and any(k != float32 for k in kinds)
    compare = name in COMPARISONS
    exact = compare and {k.name for k in kinds} >= {"u64"} and any(k.kind is DType.Kind.signed for k in kinds)
    compute = float64 if mixed_remainder else together if compare else out.dtype
    stretched = any([o.shapes is not out.shapes and not np.array_equal(o.shapes, out.shapes) for o in operands])
    macros: dict[str, Any] = {
        "OP": f"operation::{_KERNEL_NAMES.get(name, name)}", "ARITY": len(kinds), "INPUTS": len(operands),
        "COMPUTE": ELEMENT_TYPES[compute.name], "BROADCAST": stretched, "EXACT": exact,
        "INDEX": index_type(out.volumes.largest),
    }  # fmt: skip
    shared, number = {}, 0
    for i in range(3):
        constant = form.constants[i] if i < len(form.constants) else None
        macros[f"INDEX{i}"] = 0 if constant is not None else min(number, len(operands) - 1)
        if constant is not None:
            shared[f"constant{i}"] = constant
            macros[f"OPERAND{i}(i)"] = f"(shared.constant{i})"
        else:
            macros[f"OPERAND{i}(i)"] = f"number(p{number}[i])"
            number += 1
    fields = {"strides": _strides([o.shapes for o in operands], out.shapes)} if stretched else {}
    pack = 1 if stretched else min(8, 16 // max([k.bytes for k in (*kinds, out.dtype)]))
    launch("elementwise", pack=pack, per_sample=fields, shared=shared, macros=macros)


def index_type(largest: int) -> str:
    """The C type that can index this many elements: 32-bit divisions are several times faster."""
    return "unsigned" if largest < 1 << 31 else "unsigned long long"


def _strides(shapes: list[np.ndarray], out: np.ndarray) -> np.ndarray:
    """Element strides `[N, inputs * ndim]` of every input along the axes of the output; 0 along a stretched axis."""
    n, ndim = len(out), max(1, out.shape[1])
    strides = np.zeros((n, len(shapes), ndim), np.int64)
    for k, s in enumerate(shapes):
        step = np.ones(n, np.int64)
        for d in range(s.shape[1] - 1, -1, -1):
            strides[:, k, ndim - s.shape[1] + d] = np.where(s[:, d] == 1, 0, step)
            step = step * s[:, d]
    return strides.reshape(n, -1)


_PLAIN = {1: Form((None,)), 2: Form((None, None)), 3: Form((None, None, None))}
declared = functools.cache(_declare)  # the operator of an operation


_LIMIT = 1 << 31


def constant(value: Any) -> np.ndarray | None:
    """A Python or NumPy number with DALI's types: int is int32, float is float32. None for anything else."""
    kind = value.__class__
    if kind is int:
        if not -_LIMIT <= value < _LIMIT:
            raise OverflowError(f"Integer {value} is out of range for int32. Give it as a NumPy number or a tensor.")
        return np.array(value, np.int32)
    if kind is float:
        if -3e38 < value < 3e38:
            return np.array(value, np.float32)
        with np.errstate(over="ignore"):
            return np.array(value, np.float32)
    if kind is bool:
        return np.array(value)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float):
        return constant(value.__index__() if isinstance(value, int) else float(value))
    return None


def apply(name: str, *operands: Any) -> Any:
    """Applies the operation to handles, numbers, lists, arrays or tensors of other libraries."""
    inputs: list[Any] = []
    constants: list[Any] = []
    for operand in operands:
        kind = operand.__class__
        fixed = None if kind is Tensor or kind is Batch else constant(operand)
        constants.append(fixed)
        if fixed is None:
            if operand is None:
                raise ValueError(
                    f"{name}: an operand is None. Expected a Tensor, a Batch, a number, a list or an array."
                )
            inputs.append(operand)
    if not inputs:
        inputs, constants[0] = [build_tensor(constants[0], None, None, None, copy=False)], None
    elif len(inputs) > 1 or inputs[0].__class__ not in _HANDLES:
        try:
            inputs = _on_one_device(name, inputs)
        except TypeError:  # a node of a pipeline can apply a function to itself
            node = next((v for v in operands if hasattr(v, "__ndd_function__")), None)
            if node is None:
                raise
            return node.__ndd_function__(functools.partial(apply, name), *operands)
    form = _PLAIN[len(operands)] if len(inputs) == len(operands) else _form(constants)
    return declared(name)(*inputs, form=form)


_forms: dict[Any, Form] = {}


def _form(constants: list[Any]) -> Form:
    """Returns the same object for the same constants, so that equal calls share cached results."""
    key = tuple([None if c is None else (c.dtype.char, c.tobytes()) for c in constants])
    form = _forms.get(key)
    if form is None:
        if len(_forms) >= 1024:
            _forms.clear()
        form = _forms[key] = Form(tuple(constants))
    return form


_HANDLES = (Tensor, Batch)


def _on_one_device(name: str, inputs: list[Any]) -> list[Any]:
    """Inputs as handles. Lists and NumPy arrays are moved to the device of the others. ValueError for both CPU and GPU
    values."""
    device = next((v._spec.device for v in inputs if v.__class__ in _HANDLES), None)
    handles = []
    for value in inputs:
        if value.__class__ not in _HANDLES:
            follows = device is not None and isinstance(value, list | tuple | np.ndarray)
            try:
                unwrapped = from_pipeline(value)
                place = device if follows else None
                value = build_tensor(value, None, place, None, copy=False) if unwrapped is None else unwrapped
            except (TypeError, ValueError, RuntimeError) as error:
                raise type(error)(f"{name}: {error}") from None
        handles.append(value)
    devices = [h._spec.device for h in handles]
    for other in devices[1:]:
        if other.device_type != devices[0].device_type:
            gpu = next(d for d in devices if d.device_type == "gpu")
            raise ValueError(
                f"{name}: cannot mix GPU and CPU inputs: one operand is on the CPU, another on {gpu}. "
                f"Move one with .gpu() or .cpu()."
            )
    return handles


def _bound(name: str) -> Callable[..., Any]:
    """The function that a Python operator such as `+` calls."""
    if name in UNARY:
        unary = declared(name)
        form = _PLAIN[1]
        return lambda input: unary(input, form=form)
    return lambda left, right: apply(name, left, right)


bind_operations(**{name: _bound(name) for name in (*BINARY, "minus", "plus", "abs", "bitnot")})
