"""The types that the stubs use: values that operators take, and the result of `@operator`.

Only type checkers read this module. Nothing at run time depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, Union, overload

if TYPE_CHECKING:
    import numpy as np
    import torch

    from ndd._tensor import Batch, DType, Tensor
    from ndd.types import DALIDataType

P = ParamSpec("P")
T = TypeVar("T")


class SupportsArray(Protocol):
    """NumPy's arrays and numbers, and values that convert to them (pandas, PIL, ...)."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class SupportsDLPack(Protocol):
    """torch, cupy, jax, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class SupportsCudaArray(Protocol):
    """numba's device arrays and the like."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


# One array. A Batch is not one, so that overloads distinguish calls that return a Tensor from those that return a Batch.
Array: TypeAlias = Union["Tensor", "np.ndarray", "torch.Tensor", SupportsArray, SupportsDLPack, SupportsCudaArray]
# One sample: an array, a number or (nested) lists of numbers.
TensorLike: TypeAlias = Array | bool | int | float | list[Any] | tuple[Any, ...]
# One value of an argument for all samples, or one for each. At run time `ndd.PerSample` is a marker that `@operator` reads.
PerSample: TypeAlias = Union[T, tuple[Any, ...], Array, "Batch", None]
# Names of an element type.
DTypeLike: TypeAlias = Union["DType", "DALIDataType", str, "np.dtype[Any]", "torch.dtype", type[Any]]


class Declared(Protocol[P]):
    """A user's own operator, as `@ndd.operator` returns it.

    A call is checked against the decorated function's signature. The type system cannot add `batch_size`, `device` and `rng`
    to that signature (a ParamSpec takes no further keywords), so calls that use one of these are not checked. Nor can it
    tell whether the result is a Tensor or a Batch.
    """

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, *args: Any, batch_size: int | None, **more: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, device: Any, **more: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, rng: Any, **more: Any) -> Any: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:  # `plan`, `cpu`, `cuda` and the other decorators
        ...
