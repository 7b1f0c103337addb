"""The types that an operator's parameters accept, and the conversion of the user's values."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._operator.limits import excess
from ndd._operator.plan import bad_sample
from ndd._operator.values import Values
from ndd._tensor import Batch, Handle, Tensor
from ndd._tensor.construct import build_tensor, from_pipeline
from ndd._tensor.dtype import DType, dtype as to_dtype
from ndd._tensor.type_guards import is_array, is_integer, is_list, is_numpy_number, is_tuple
from ndd._tensor.warn_once import warn_once
from ndd.types import is_enum

T = TypeVar("T")

if TYPE_CHECKING:
    # One value for all samples, or one for each: a Batch, or a Tensor whose value holds for all.
    PerSample = T | tuple[Any, ...] | Tensor | Batch | np.ndarray | None
else:

    class PerSample:
        """Annotation of an argument that may differ between samples: `PerSample[int]`, `PerSample[list[float]]`.

        Args:
            kind: the type of one sample's value.

        >>> import ndd
        >>> @ndd.operator
        ... def add(numbers, /, *, amount: ndd.PerSample[int] = 1):
        ...     return ndd.like(numbers)
        >>> @add.cpu
        ... def _(numbers, out, amount):
        ...     out[...] = numbers + amount
        >>> add(ndd.batch([[1], [1]]), amount=ndd.batch([10, 20])).torch().flatten().tolist()
        [11, 21]
        """

        def __init__(self, kind: Any):
            self.kind = kind

        def __class_getitem__(cls, kind: Any) -> PerSample:
            return cls(kind)

        def __repr__(self) -> str:
            kind = self.kind
            return f"PerSample[{kind.__name__ if type(kind) is type else kind}]"

        def __or__(self, other: Any) -> PerSample:
            return self

        __ror__ = __or__


_NO_NUMBERS = tuple("cmMV")  # kinds of NumPy's types that it converts to numbers: complex ones, dates, structures
_SEQUENCES: tuple[Any, ...] = (list, tuple, Sequence)
_CALLABLE: Any = collections.abc.Callable


class Argument:
    """One keyword argument: name, default, whether it may differ between samples, and its conversion."""

    __slots__ = (
        "bounded",
        "convert",
        "default",
        "name",
        "number",
        "numpy",
        "per_sample",
        "required",
        "vector",
        "words",
    )

    def __init__(self, name: str, annotation: Any, default: Any):
        self.name = name
        self.bounded = False  # its numbers have limits
        self.required = default is inspect.Parameter.empty
        self.default = None if self.required else default
        self.per_sample = annotation.__class__.__name__ == "PerSample"
        kind: Any = annotation.kind if self.per_sample else _without_none(annotation)
        # Strings that hold for all samples, besides numbers: PerSample[int | Literal["all"]].
        self.words: tuple[Any, ...] = ()
        if self.per_sample and typing.get_origin(kind) in (types.UnionType, typing.Union):
            kind, *literals = typing.get_args(kind)
            self.words = tuple(word for literal in literals for word in typing.get_args(literal))
        self.vector = typing.get_origin(kind) in _SEQUENCES or kind in _SEQUENCES
        element: Any = (typing.get_args(kind) or (float,))[0] if self.vector else kind
        self.number = element in (int, float)
        self.numpy = np.dtype(np.int64 if _is_enum(element) else _NUMPY.get(element, np.float32))
        self.convert: Callable[[Any], Any] = _vector_of(element, self.numpy) if self.vector else _converter(element)

    def constant(self, value: Any, operator: str) -> Any:
        """The user's value as the operator sees it; TypeError or ValueError that names operator and argument."""
        return self._named(self._constant, self.convert, value, operator)

    def _named(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function, whose errors name operator and argument. The last two of `arguments` are the user's value
        and the operator."""
        try:
            return function(*arguments)
        except (TypeError, ValueError, OverflowError, RuntimeError, BufferError) as error:
            raise_signalled(error)
            *_, value, operator = arguments
            reason = str(error)
            if is_list(value) and any(isinstance(v, Batch) for v in value):
                reason = (
                    "expected numbers in the list, got a batch. ndd.stack(a, b) makes one argument of several batches"
                )
            kind = ValueError if isinstance(error, UnicodeError) else type(error)
            raise kind(f"{operator}: argument {self.name!r}: {reason}") from None

    def _constant(self, convert: Callable[[Any], Any], value: Any, operator: str) -> Any:
        if getattr(getattr(value, "dtype", None), "kind", "") in _NO_NUMBERS:
            raise TypeError(f"expected numbers, got {value!r}")
        converted = convert(value)
        # Anchors, or a matrix of a user's operator, may be rows of numbers; axes, sizes and indices may not.
        if is_array(converted) and converted.ndim > 1 and not self.per_sample and self.numpy.kind == "i":
            raise ValueError(f"expected a list of numbers, got an array of shape {converted.shape}")
        self._warn_of_change(value, operator)
        too_large = excess(self.name, converted) if self.bounded else None
        if too_large is not None:
            raise ValueError(too_large[1])
        return converted

    def _warn_of_change(self, value: Any, operator: str) -> None:
        """Warns of values that DALI takes in a way that may not be meant: strings as numbers, fractions cut off."""
        if not self.number or (self.words and isinstance(value, str)):
            return
        listed = np.asarray(value)
        how = ""
        if listed.dtype.kind in "US":
            how = "the text is taken as the number that it spells"
        elif listed.dtype.kind == "f" and self.numpy.kind == "i" and (listed != np.trunc(listed)).any():
            how = "an integer is expected, the fraction is dropped"
        if how:
            shown = list(value) if is_tuple(value) else value
            warn_once(f"{operator}: {self.name}", f"{operator}: argument {self.name!r}: {how}: got {shown!r}")

    def accept(self, value: Any, operator: str) -> Any:
        """A converted constant, or a handle of values that belong to samples."""
        if isinstance(value, Tensor) and not self.per_sample:
            value.evaluate()  # the operator that makes it names its own errors
        return self._named(self._accepted, value, operator)

    def _accepted(self, value: Any, operator: str) -> Any:
        if self.words and isinstance(value, str):
            return self._constant(_one_of(self.words), value, operator)
        if self.per_sample:
            if isinstance(value, Handle):
                return value
            unwrapped = from_pipeline(value)
            if unwrapped is not None:
                return unwrapped
            if getattr(value, "is_cuda", False):
                return build_tensor(value, None, None, None, copy=False)
            if self.numpy.kind == "i" and hasattr(value, "__array__"):
                value = _whole(value)
            if not self.vector:
                if hasattr(value, "__dlpack__") and not is_numpy_number(value):
                    return build_tensor(value, None, None, None, copy=False)
                if is_list(value):
                    values = self._constant(_listed(self.numpy), value, operator)
                    if values.size != 1:
                        raise RuntimeError(
                            f"expected one value for all samples, got {list(value)}. Wrap it in "
                            "ndd.batch(...) for a value of each sample"
                        )
                    value = values.item()  # DALI takes a list of one for its number
                elif hasattr(value, "__array__") and not is_numpy_number(value):
                    return build_tensor(np.asarray(value), None, None, None, copy=False)
                elif isinstance(value, int) and self.numpy.kind == "i" and not -(2**31) <= value < 2**31:
                    raise OverflowError(f"{value} does not fit in 32 bits")
            elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
                return build_tensor(value, None, None, None, copy=False)
        elif isinstance(value, Tensor):
            value = value.item() if not self.vector else np.asarray(value.cpu())
        elif hasattr(value, "requires_grad"):
            # Of torch: the autograd graph is dropped, and a row of one number is a number.
            value = value.detach().cpu()
            value = value.item() if not self.vector and value.numel() == 1 else value.numpy()
        elif isinstance(value, Batch):
            raise TypeError("is the same for all samples: it cannot be a Batch")
        return self._constant(self.convert, value, operator)


def _without_none(annotation: Any) -> Any:
    options = [a for a in typing.get_args(annotation) if a is not type(None)]
    is_union = type(None) in typing.get_args(annotation)
    return options[0] if is_union and options else annotation


def _integer(value: Any) -> int:
    if isinstance(value, list | tuple):
        raise TypeError(f"expected one integer, got the list {value!r}")
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"expected an integer, got {value!r}") from None
    if not -(2**63) <= number < 2**63:
        raise OverflowError(f"{number} does not fit in 64 bits")
    return number


def _real(value: Any) -> float:
    if isinstance(value, list | tuple):
        raise TypeError(f"expected one number, got {value!r}")
    try:
        with np.errstate(over="ignore"):
            return float(np.float32(value))  # DALI's arguments are 32-bit: 0.3 means 0.30000001
    except (TypeError, ValueError) as error:
        raise type(error)(f"expected a number, got {value!r}") from None


def _truth(value: Any) -> bool:
    if isinstance(value, list | tuple | str):
        raise TypeError(f"expected True or False, got {value!r}")
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r}")
    return value


def _element_type(value: Any) -> DType:
    if isinstance(value, DType):
        return value
    try:
        if is_integer(value) and not isinstance(value, bool):
            return DType.from_type_id(int(value))
        return to_dtype(value)
    except KeyError as error:
        raise RuntimeError(error.args[0]) from None
    except (TypeError, ValueError) as error:
        expected = "expected an element type such as ndd.float32, np.float32, torch.float32"
        raise type(error)(f"{expected} or 'f32', got {value!r}") from None


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _enumeration(kind: Any) -> Callable[[Any], Any]:
    """A member, its number, or the member of DALI's own enumeration with the same name and number. A number without a member
    raises RuntimeError, as in DALI, where the operator finds the mistake."""
    members = ", ".join(f"ndd.types.{m.name}" for m in kind)

    def convert(value: Any) -> Any:
        number: Any = value
        if isinstance(value, str):
            raise ValueError(f"expected one of {members} ({kind.__name__}), got the text {value!r}")
        if isinstance(value, Enum) and not isinstance(value, kind) and not is_enum(value, kind.__name__):
            raise TypeError(f"expected one of {members}, got {value!r}")
        try:
            number = int(number)
        except (TypeError, ValueError):
            raise ValueError(f"expected one of {members}, got {value!r}") from None
        try:
            return kind(number)
        except ValueError:
            raise RuntimeError(f"expected one of {members}, got {value!r}") from None

    return convert


def _one_of(allowed: tuple[Any, ...]) -> Callable[[Any], Any]:
    """The value, if it is among those that a `Literal` names."""
    listed = ", ".join(map(repr, allowed))

    def convert(value: Any) -> Any:
        for known in allowed:
            if value.__class__ is known.__class__ and value == known:
                return known
        raise ValueError(f"expected one of {listed}, got {value!r}")

    return convert


def _function(value: Any) -> Any:
    if not callable(value):
        raise TypeError(f"expected a function, got {value!r}")
    return value


def _same(value: Any) -> Any:
    return value


def _converter(kind: Any) -> Callable[[Any], Any]:
    """The function that converts a user's value, chosen by the argument's annotation."""
    if typing.get_origin(kind) is Literal:
        return _one_of(typing.get_args(kind))
    if _CALLABLE in (kind, typing.get_origin(kind)):
        return _function
    return _enumeration(kind) if _is_enum(kind) else _SCALARS.get(kind, _same)


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    int: _integer,
    float: _real,
    bool: _truth,
    str: _text,
    DType: _element_type,
}
_NUMPY: dict[Any, Any] = {int: np.int64, float: np.float32, bool: np.bool_}


def _vector_of(element: Any, numpy: np.dtype) -> Callable[[Any], Any]:
    if element is str:
        return lambda value: [value] if isinstance(value, str) else [_text(v) for v in value]
    if element not in _NUMPY and not _is_enum(element):
        convert = _converter(element)
        return lambda value: [convert(v) for v in (value if is_list(value) else [value])]

    return _listed(numpy)


def _listed(numpy: np.dtype) -> Callable[[Any], np.ndarray]:
    def listed(value: Any) -> np.ndarray:
        try:
            values = np.atleast_1d(np.asarray(value))
        except ValueError:
            raise ValueError(
                f"expected numbers, got {list(value)}, lists of different lengths. Wrap them in ndd.batch(...) for a value "
                "of each sample"
            ) from None
        if values.dtype.kind in _NO_NUMBERS or (values.dtype.kind == "O" and any(v is None for v in values.flat)):
            raise TypeError(f"expected numbers, got {value!r}")
        if values.dtype.kind == "f" and numpy.kind == "i" and np.isnan(values).any():
            raise ValueError("expected integers, got NaN")
        if numpy.kind == "i" and values.dtype.kind in "ufO":
            for number in values.reshape(-1).tolist():
                if isinstance(number, int | float) and not -(2**63) <= number < 2**63:
                    raise OverflowError(f"{number} does not fit in 64 bits")
        try:
            return values.astype(numpy)
        except (TypeError, ValueError) as error:
            raise type(error)(f"expected numbers, got {value!r}") from None

    return listed


def values_of(argument: Argument, value: Any, n: int, operator: str) -> Values:
    """A per-sample argument for `n` samples, from a constant or a handle."""
    if not isinstance(value, Handle):
        return Values(argument.name, value, n, argument.numpy, argument.vector, varies=False)
    values = _values_behind(argument, value, n, operator)
    too_large = excess(argument.name, values) if argument.bounded else None
    if too_large is not None:
        raise bad_sample(too_large[0], f"argument {argument.name!r}: {too_large[1]}", ValueError)
    return Values(argument.name, values, n, argument.numpy, argument.vector, varies=True, layout=value.layout)


def _values_behind(argument: Argument, handle: Any, n: int, operator: str) -> Any:
    """The values behind a handle: scalars `[n]`, vectors `[n, ...]` or a list where lengths differ."""
    store = (handle if handle.device.device_type == "cpu" else handle.cpu())._value()
    whole = store.dense()
    if not argument.vector:
        if whole is not None and whole.size == store.n:
            values = _converted(whole.reshape(-1), argument.numpy)
        else:
            values = _scalars(argument, store.arrays(), operator)
        return np.repeat(values, n) if len(values) == 1 and n != 1 else values
    if whole is not None:
        values = _converted(np.asarray(whole), argument.numpy)
        values = values[:, None] if values.ndim == 1 else values
        return np.broadcast_to(values, (n, *values.shape[1:])) if len(values) == 1 and n != 1 else values
    rows = [_converted(np.atleast_1d(a), argument.numpy) for a in store.arrays()]
    if not rows or any(r.shape != rows[0].shape for r in rows):
        return rows
    values = np.stack(rows)
    return np.broadcast_to(values, (n, *values.shape[1:])) if len(values) == 1 and n != 1 else values


def _scalars(argument: Argument, arrays: list[np.ndarray], operator: str) -> np.ndarray:
    for i, a in enumerate(arrays):
        if a.size != 1:
            advice = (
                ". Wrap it in ndd.batch(...) for a value of each sample" if len(arrays) == 1 and a.ndim == 1 else ""
            )
            raise RuntimeError(
                f"{operator}: Unexpected shape of argument {argument.name!r}: expected one value for each sample, "
                f"got shape {tuple(a.shape)} for sample {i}{advice}"
            )
    return _converted(np.array([a.reshape(()).item() for a in arrays]), argument.numpy)


def _converted(values: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Converts values of samples to an argument's type by the rule of `cast`: halves are rounded away from zero."""
    return (_whole(values) if kind.kind != "f" else values).astype(kind, copy=False)


def _whole(values: Any) -> Any:
    """Rounds arrays and NumPy numbers, which are tensors to DALI, and truncates Python numbers."""
    array = np.asarray(values)
    return np.trunc(array + np.copysign(0.5, array))[()] if array.dtype.kind == "f" else values


def arguments_of(function: Callable[..., Any]) -> tuple[list[str], int, str | None, list[Argument]]:
    """Input names, the number of required ones, the name of a variadic input, and the keyword arguments of a declaration."""
    signature = inspect.signature(function, eval_str=True)
    inputs: list[str] = []
    arguments: list[Argument] = []
    required, variadic = 0, None
    for p in signature.parameters.values():
        if p.kind is p.POSITIONAL_ONLY:
            inputs.append(p.name)
            required += p.default is p.empty
        elif p.kind is p.VAR_POSITIONAL:
            variadic = p.name
        elif p.kind is p.KEYWORD_ONLY:
            arguments.append(Argument(p.name, p.annotation, p.default))
        else:
            raise TypeError(
                f"{function.__name__}: write data inputs before '/' and arguments after '*', not {p.name!r}"
            )
    return inputs, required, variadic, arguments
