"""What an operator's own functions give: what comes out, and the plan of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ndd._tensor import Spec
from ndd._tensor.dtype import dtype as to_dtype
from ndd._tensor.operand import Operand  # noqa: F401

if TYPE_CHECKING:
    from ndd._typing import DTypeLike


def like(
    source: Spec,
    *,
    dtype: DTypeLike | None = None,
    ndim: int | None = None,
    layout: str | None = "same",
) -> Spec:
    """What comes out is as `source`, except for what is given. `layout=None` means that the result has none."""
    if dtype is None and ndim is None and layout == "same":
        return source
    return Spec.of(
        source.dtype if dtype is None else to_dtype(dtype),
        source.ndim if ndim is None else ndim,
        source.layout if layout == "same" else layout,
        source.device,
    )


def output(dtype: DTypeLike, ndim: int | None, layout: str | None = None) -> Spec:
    """What comes out, in full. `ndim=None`: known only when it has run. The device is filled in for you."""
    return Spec.of(to_dtype(dtype), ndim, layout, None)  # type: ignore[arg-type]


class Samples(NamedTuple):
    """What comes out of an operator whose samples are not simply those that go in.

    `fewer`: some may be left out, so that the size of the batch is known when it has run. `batch_only`: the operator
    makes batches, a call without a batch size is an error.
    """

    spec: Spec
    fewer: bool = False
    batch_only: bool = False


class Plan:
    """Shapes of the outputs and the numbers that the kernels need, for the whole batch. It knows no device.

    Args:
        shapes: int64 `[N, ndim]` (or a list of tuples) for one output, a list of these for several.
        per_sample: by name, an array whose first axis is the samples (or a list of N things).
        shared: by name, a number or array that goes for all samples.
    """

    __slots__ = ("per_sample", "shapes", "shared")

    def __init__(self, shapes: Any, per_sample: dict[str, Any] | None = None, shared: dict[str, Any] | None = None):
        self.shapes = shapes
        self.per_sample = per_sample or {}
        self.shared = shared or {}


def bad_sample(index: int, message: str, kind: type[Exception] = RuntimeError) -> Exception:
    """An error about one sample, to be raised in a plan: the caller adds operator, sample and source to it."""
    error = kind(message)
    error.sample = index  # type: ignore[attr-defined]
    return error
