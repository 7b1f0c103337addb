"""The return values of an operator's functions: descriptions of its outputs, and plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._operator.partition import View, view_of
from ndd._tensor import Spec, Store
from ndd._tensor.dtype import dtype as to_dtype, from_framework, torch_dtype
from ndd._tensor.type_guards import is_list

if TYPE_CHECKING:
    from ndd._typing import DTypeLike


def like(
    source: Spec,
    *,
    dtype: DTypeLike | None = None,
    ndim: int | None = None,
    layout: str | None = "same",
) -> Spec:
    """Describes an output like `source`, except for the arguments given.

    Args:
        source: an input of the operator.
        dtype: the element type.
        ndim: the number of axes.
        layout: a letter for each axis; None: the result has no layout.

    >>> import ndd
    >>> @ndd.operator
    ... def halves(numbers, /):
    ...     return ndd.like(numbers, dtype=ndd.float32)
    >>> @halves.cpu
    ... def _(numbers, out):
    ...     out[...] = numbers / 2
    >>> halves(ndd.tensor([1, 2])).torch()
    tensor([0.5000, 1.0000])
    """
    if dtype is None and ndim is None and layout == "same":
        return source
    return Spec.of(
        source.dtype if dtype is None else to_dtype(dtype),
        source.ndim if ndim is None else ndim,
        source.layout if layout == "same" else layout,
        source.device,
    )


def output(dtype: DTypeLike | None, ndim: int | None, layout: str | None = None) -> Spec:
    """Describes an output in full. The device is filled in for you.

    Args:
        dtype: the element type; None: known only after the operator has run.
        ndim: the number of axes; None: known only after the operator has run.
        layout: a letter for each axis, if it has a layout.
    """
    return Spec.of(None if dtype is None else to_dtype(dtype), ndim, layout, None)  # type: ignore[arg-type]


class Samples(NamedTuple):
    """Describes the outputs of an operator that have another number of samples than its inputs.

    `fewer`: some may be left out, so that the size of the batch is known only after the operator has run. `batch_only`: the
    operator makes only batches; a call without a batch size is an error.
    """

    spec: Spec | tuple[Spec, ...]
    fewer: bool = False
    batch_only: bool = False


class Plan:
    """The shapes of the outputs, the numbers that the kernels need, and how CPU kernels see the memory, for the whole batch.
    A plan knows no device.

    Args:
        shapes: int64 `[N, ndim]` (or a list of tuples) for one output, a list of these for several.
        per_sample: by name, an array whose first axis is the samples (or a list of N things).
        shared: by name, a number or array that holds for all samples.
        view: how the CPU kernel sees each sample of the inputs and outputs: extents `[N, ndim]`, "flat", "rows", "bytes", "bits",
            or a `View`, which says what these are; a dict has those of single parameters of the kernel, by name. Default: as
            they are.
        kernel: computes a sample on the CPU in place of the role `.cpu`, if the choice depends on types or shapes. A
            `functools.partial` of a kernel gives it numbers of its own (`Rows`: for each sample), which a GPU does not get.
            A dict of kernels says by a mask `[N]` which samples each is for.
        cut: replaces the operator's `cut`.
        inputs: the numbers of the inputs that the CPU kernel takes. Default: all.
        work: the approximate work of each sample on the CPU in bytes, `[N]`, or of every sample. Default: the bytes of its
            arrays.
    """

    __slots__ = ("cut", "inputs", "kernel", "per_sample", "shapes", "shared", "view", "work")

    def __init__(
        self,
        shapes: Any,
        per_sample: dict[str, Any] | None = None,
        shared: dict[str, Any] | None = None,
        *,
        view: Any = None,
        kernel: Any = None,
        cut: str | None = None,
        inputs: Sequence[int] | None = None,
        work: Any = None,
    ):
        self.shapes = shapes
        self.per_sample = per_sample or {}
        self.shared = shared or {}
        self.view, self.kernel, self.cut, self.inputs, self.work = view, kernel, cut, inputs, work

    def _views(self, names: list[str], count: int) -> list[View | None]:
        """The views of the first `count` parameters of a kernel.

        Args:
            names: the kernel's parameters.
            count: the number of inputs and outputs among them.
        """
        if self.view.__class__ is not dict:
            return [view_of(self.view)] * count
        return [view_of(self.view.get(name)) for name in names[:count]]

    def field(self, name: str) -> tuple[Any, bool]:
        """The value of a kernel's parameter of this name, and whether it has a row for each sample.

        Args:
            name: of the parameter.

        Raises TypeError for a name that neither the call nor the plan has.
        """
        if name in self.per_sample:
            return self.per_sample[name], True
        if name in self.shared:
            return self.shared[name], False
        has = ", ".join([*self.per_sample, *self.shared]) or "nothing"
        raise TypeError(
            f"the CPU kernel asks for {name!r}, which is neither an input nor an argument, and not in the plan, which has {has}."
        )


def checked_plan(plan: Any, outs: list[Spec], single: bool, n: int, frames: bool) -> Plan:
    """Checks that the plan of a user's operator fits the declaration, and returns it. `frames`: the samples are frames of
    the declared videos and have one dimension less."""
    if not isinstance(plan, Plan):
        raise TypeError(f"`.plan` must return an `ndd.Plan`, got {plan!r}")
    for k, (shapes, spec) in enumerate(zip(_per_output(plan.shapes, outs, single), outs, strict=True)):
        which = f"`.plan`, output {k}" if len(outs) > 1 else "`.plan`"
        try:
            listed = [tuple([int(e) for e in shape]) for shape in np.asarray(shapes, object).tolist()]
        except (TypeError, ValueError):
            raise TypeError(f"{which}: expected a shape for each sample, got {shapes!r}") from None
        if len(listed) != n:
            raise ValueError(f"{which}: expected {n} shapes, one for each sample, got {len(listed)}")
        for i, shape in enumerate(listed):
            ndim = len(shape) if spec.ndim is None else spec.ndim - frames
            if len(shape) != ndim or any(e < 0 for e in shape):
                raise bad_sample(i, f"{which}: expected {ndim} extents that are not negative, got {shape}", ValueError)
    return plan


def check_values(values: Any, outs: list[Spec], single: bool, n: int | None) -> None:
    """Checks that the results of a user's `.batch` fit the declaration: the samples, their type and rank."""
    for k, (value, spec) in enumerate(zip(_per_output(values, outs, single), outs, strict=True)):
        which = f"`.batch`, output {k}" if len(outs) > 1 else "`.batch`"
        if isinstance(value, Store):
            continue
        listed = value.__class__ is list
        samples: list[Any] = value if listed else [value]
        lead = 0 if listed else 1
        if any(not hasattr(s, "shape") or not hasattr(s, "dtype") for s in samples):
            raise TypeError(f"{which}: expected a list of arrays, or one array for all samples, got {value!r}")
        count = len(samples) if lead == 0 else samples[0].shape[0] if samples[0].shape else 0
        if n is not None and count != n:
            raise ValueError(f"{which}: expected {n} samples, got {count}")
        held_as = spec.dtype.numpy, torch_dtype(spec.dtype)
        for i, sample in enumerate(samples):
            shape = tuple(sample.shape)[lead:]
            if sample.dtype not in held_as or (spec.ndim is not None and len(shape) != spec.ndim):
                wanted = f"{spec.dtype}" if spec.ndim is None else f"{spec.dtype} with {spec.ndim} dimension(s)"
                got = f"{from_framework(sample.dtype)} of shape {shape}"
                raise bad_sample(i, f"{which}: expected {wanted}, got {got}", ValueError)


def _per_output(values: Any, outs: list[Spec], single: bool) -> Any:
    if single:
        return [values]
    if not is_list(values) or len(values) != len(outs):
        raise TypeError(f"expected a value for each of the {len(outs)} outputs, got {values!r}")
    return values


def bad_sample(index: int, message: str, kind: type[Exception] = RuntimeError) -> Exception:
    """An error about one sample for a plan to raise; the caller adds operator, sample and source to it.

    Args:
        index: the number of the sample in the batch.
        message: the expected and the actual value.
        kind: the type of the error.
    """
    error = kind(message)
    error.sample = index  # type: ignore[attr-defined]
    return error
