"""`@operator`: from a function with a true signature to an operator; and the one path of every call."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from enum import Enum
from operator import index
from typing import Any

import numpy as np

from ndd._execution.context import EvalContext
from ndd._execution.errors import user_frame
from ndd._execution.invocation import Invocation
from ndd._execution.mode import local as mode
from ndd._operator import registry
from ndd._operator.arguments import Argument, arguments_of
from ndd._operator.run import Job, Prepared
from ndd._tensor import Batch, Device, DType, Spec, Tensor
from ndd._tensor.construct import build_tensor
from ndd._tensor.device import device as to_device_object

_DEFERRED, _EAGER, _SYNC_CPU, _SYNC_FULL = 1, 2, 3, 4
_KEPT_CALLS = 256


class Operator:
    """A declared operator: its signature, what it accepts, and the functions that plan and compute it.

    `function.operator` of every public operator is one of these.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        self.name = function.__name__
        self.function = function
        self.module = function.__module__
        self.inputs, self.required, self.variadic, self.arguments = arguments_of(function)
        self.layouts: tuple[str, ...] | None = options["layouts"]
        self.frames: bool = options["frames"]
        self.random: bool = options["random"]
        self.mixed: bool = options["mixed"]
        self.transfers: bool = options["transfers"]
        self.heavy: bool = options["heavy"]
        self.elementwise: bool = options["elementwise"]
        self.host_inputs: tuple[int, ...] = options["host_inputs"]
        self.either_inputs: tuple[int, ...] = options["either_inputs"]
        self.cpu_only: bool = options["cpu_only"]
        self.drops: str | None = options["drops"]
        self.needs_batch: bool = options["needs_batch"]
        self.plan: Callable[..., Any] | None = None
        self.cpu: Callable[..., Any] | None = None
        self.cpu_names: list[str] = []
        self.cpu_batch: Callable[..., Any] | None = None
        self.cpu_batch_names: list[str] = []
        self.cpu_batch_inputs: tuple[int, ...] | None = ()  # numbers of the inputs it takes; None: all, as one tuple
        self.cuda: Callable[..., Any] | None = None
        self.cuda_names: list[str] = []
        self.cuda_source: str | None = None
        self.views: Callable[..., Any] | None = None
        self.recover: Callable[..., Any] | None = None
        self._effective: dict[tuple[int, str | None], str | None] = {}
        self._prepared: dict[Any, Prepared] = {}

    def effective_layout(self, spec: Spec, ndim: int | None = None) -> str | None:
        """The layout an input is taken to have: its own if allowed, a default by rank if it has none."""
        key = (spec.ndim if ndim is None else ndim, spec.layout or None)
        try:
            return self._effective[key]  # type: ignore[index]
        except KeyError:
            found = self._effective[key] = self._check_layout(*key)  # type: ignore[index, arg-type]
            return found

    def _check_layout(self, ndim: int, layout: str | None) -> str | None:
        allowed = self.layouts
        if allowed is None:
            return layout
        if layout is None:
            for candidate in allowed:
                if len(candidate) == ndim:
                    return candidate
            raise ValueError(
                f"{self.name}: The number of dimensions {ndim} does not match any of the allowed layouts for input 0. "
                f"Valid layouts are: {', '.join(allowed)}"
            )
        if layout not in allowed:
            raise ValueError(
                f"{self.name}: The layout {layout!r} of input 0 is not one of the allowed ones: {', '.join(allowed)}"
            )
        return layout

    def call(
        self, inputs: tuple[Any, ...], values: tuple[Any, ...], batch_size: Any, device: Any, rng: Any = None
    ) -> Any:
        """Checks, works out what will come out, schedules; returns handles."""
        n: int | None = None
        external = False
        specs: list[Any] = []
        for value in inputs:
            kind = value.__class__
            if kind is Batch:
                size = value._n
                if n is None or size is None or size != n:
                    n = self._agree(n, value)
            elif kind is not Tensor:
                if value is None:
                    specs.append(None)
                    continue
                inputs = tuple(self._to_handle(v) for v in inputs)
                return self.call(inputs, values, batch_size, device, rng)
            if value._external:
                external = True
            specs.append(value._spec)
        target = None if device is None else to_device_object(device)
        try:
            prepared = self._prepared.get((values, target, *specs))
        except TypeError:  # a list, an array or a handle among the values
            values = tuple([tuple(v) if v.__class__ is list else v for v in values])
            try:
                prepared = self._prepared.get((values, target, *specs))
            except TypeError:
                prepared = None
        if prepared is None:
            prepared = self._prepare(inputs, values, target, specs)
        if prepared.handles:
            for value in prepared.handles:
                if value.__class__ is Batch:
                    n = self._agree(n, value)
                external = external or value._external
        batched = n is not None
        if batch_size is not None:
            size = _checked_size(self.name, batch_size)
            if batched and size != n:
                raise RuntimeError(f"{self.name}: Inconsistent batch size: batch_size={size}, but got a batch of {n}")
            n, batched = size, True
        if not batched:
            n = 1
            if self.needs_batch:
                raise ValueError(
                    f"{self.name}: `batch_size` must be specified for `{self.name}`: it has no data inputs for it"
                )
        if prepared.moves:
            inputs = self._moved(inputs, prepared.device)

        level = mode.level
        context = EvalContext.current()
        job = Job(self, prepared, inputs, n or 0, batched, _random_words(rng) if self.random else None)
        invocation = Invocation(
            self.name, job.run, context, user_frame() if level < _SYNC_CPU else None, level == _DEFERRED
        )
        if level == _DEFERRED:
            invocation.inputs = (*inputs, *prepared.handles)
        if external and level < _SYNC_CPU:
            context.finish(invocation)
            if prepared.device.device_id is not None:
                _order_after(invocation, prepared.device)
        elif level == _EAGER:
            job.eager = True
            context.submit(invocation)
        elif level >= _SYNC_CPU:
            context.finish(invocation)
            invocation.raise_now()
            if level == _SYNC_FULL and invocation.stream is not None:
                invocation.stream.synchronize()
        maker = Batch._of_pending if batched else Tensor._of_pending
        if prepared.may_drop and batched:
            n = None
        outs = prepared.outs
        if prepared.single:
            return maker(invocation, 0, outs[0], n)
        return tuple([maker(invocation, i, o, n) for i, o in enumerate(outs)])

    def _prepare(self, inputs: tuple[Any, ...], values: tuple[Any, ...], device: Any, specs: list[Any]) -> Prepared:
        """Everything about a call that follows from its constants and from what its inputs are. Kept for the next call
        with the same ones: converting 20 arguments costs 10 us, finding them converted 1 us."""
        given: list[Any] = []
        handles: list[Any] = []
        for i, spec in enumerate(specs[: self.required]):
            if spec is None:
                raise TypeError(f"{self.name}: expected a value for input {i}, got None")
        for value, argument in zip(values, self.arguments, strict=True):
            if value is None or value is argument.default:
                if argument.required and value is None:
                    kind = ValueError if argument.per_sample else TypeError
                    raise kind(f"{self.name}: argument {argument.name!r} has no default value: it cannot be None")
                value = argument.default
                if value is not None:
                    value = argument.constant(value, self.name)
            else:
                value = argument.accept(value, self.name)
                if value.__class__ in _HANDLES:
                    handles.append(value)
            given.append(value)
        target = self._device(inputs, device)
        wanted = [Device.CPU if self._stays(i, s) else target for i, s in enumerate(specs)]
        moves = not self.transfers and any(s is not None and s.device != w for s, w in zip(specs, wanted, strict=True))
        seen = [self._spec_of(h, i) for i, h in enumerate(inputs)]
        if moves:  # the plan sees the inputs where they will be
            seen = [s and Spec.of(s.dtype, s.ndim, s.layout, w) for s, w in zip(seen, wanted, strict=True)]
        while len(seen) > self.required and seen[-1] is None and not self.variadic:
            seen.pop()
        named = {a.name: v for a, v in zip(self.arguments, given, strict=True)}
        out = self.function(*seen, **named)
        single = out.__class__ is Spec
        outs = [
            o if o.device is target else Spec.of(o.dtype, o.ndim, o.layout, target) for o in ([out] if single else out)
        ]
        may_drop = self.drops is not None and named[self.drops] == "skip"
        prepared = Prepared(seen, named, handles, target, moves, outs, single, may_drop)
        if not handles:
            if len(self._prepared) > _KEPT_CALLS:
                self._prepared.clear()
            if _is_constant(values):
                self._prepared[(values, device, *specs)] = prepared
        return prepared

    def _to_handle(self, value: Any) -> Any:
        if value is None or value.__class__ in _HANDLES:
            return value
        try:
            return build_tensor(value, None, None, None, copy=False)
        except (TypeError, ValueError, RuntimeError) as error:
            raise type(error)(f"{self.name}: {error}") from None

    def _agree(self, n: int | None, value: Any) -> int:
        size = value._n if value._n is not None else value.batch_size
        if n is not None and n != size:
            raise ValueError(f"{self.name}: Inconsistent batch size: {size} != {n}")
        return size

    def _device(self, handles: Any, target: Any) -> Device:
        if target is not None:
            if target.device_id is not None and self.cpu_only:
                raise ValueError(f'Invalid device "{target}" for operator `{self.name}`: it runs on the CPU only')
            return target
        if not self.cpu_only:
            for h in handles:
                if h is not None and h._spec.device.device_id is not None:
                    return h._spec.device
        return Device.CPU

    def _stays(self, i: int, spec: Any) -> bool:
        """Whether input `i` is read on the CPU even when the work is on a GPU."""
        if self.mixed or i in self.host_inputs:
            return True
        return i in self.either_inputs and spec is not None and spec.device.device_id is None

    def _moved(self, handles: tuple[Any, ...], target: Device) -> tuple[Any, ...]:
        """The inputs where the operator reads them."""
        placed = []
        for i, h in enumerate(handles):
            if h is None:
                placed.append(None)
            elif target.device_id is None or self._stays(i, h._spec):
                placed.append(h.cpu())
            elif h._spec.device.device_id is not None and h._spec.device != target:
                raise ValueError(
                    f"{self.name}: Got inputs with different device ids: input {i} is on {h._spec.device}, "
                    f"the operator runs on {target}"
                )
            else:
                placed.append(h.to_device(target))
        return tuple(placed)

    def _spec_of(self, handle: Any, index: int) -> Any:
        if handle is None:
            return None
        spec = handle._spec
        if spec.ndim is None:
            handle._value()
            spec = handle._spec
        if index:
            return spec
        layout = self.effective_layout(spec)
        return spec if layout == spec.layout else Spec.of(spec.dtype, spec.ndim, layout, spec.device)


_HANDLES = (Tensor, Batch)


def _is_constant(value: Any) -> bool:
    """Whether a value cannot change behind our back (a torch tensor could, and it has a hash)."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    if value is None or isinstance(value, int | float | str | Enum | DType | np.generic):
        return True
    return getattr(type(value), "never_changes", False) is True


def _checked_size(name: str, batch_size: Any) -> int:
    try:
        size = index(batch_size)
    except TypeError:
        raise TypeError(f"{name}: batch_size must be an integer, got {batch_size!r}") from None
    if size < 0:
        raise ValueError(f"{name}: batch_size must not be negative, got {size}")
    return size


def _order_after(invocation: Invocation, device: Device) -> None:
    """Memory that torch shares with us: what torch does next on its stream waits for our reading of it."""
    stream = invocation.stream
    if stream is None:
        return
    import torch

    torch.cuda.current_stream(device.device_id).wait_stream(stream._torch)


_random_source: list[Callable[[Any], Any]] = []


def bind_random(source: Callable[[Any], Any]) -> None:
    """Where random operators take their position from: `source(rng)` advances `rng` (or the thread's default)."""
    _random_source[:] = [source]


def _random_words(rng: Any) -> Any:
    if not _random_source:
        import ndd.random  # noqa: F401  (binds itself)
    return _random_source[0](rng)


_wrappers = threading.Lock()


def operator(
    function: Callable[..., Any] | None = None,
    *,
    layouts: tuple[str, ...] | None = None,
    frames: bool = False,
    random: bool = False,
    mixed: bool = False,
    transfers: bool = False,
    heavy: bool = False,
    elementwise: bool = False,
    host_inputs: tuple[int, ...] = (),
    either_inputs: tuple[int, ...] = (),
    cpu_only: bool = False,
    drops: str | None = None,
    needs_batch: bool = False,
    register: bool = True,
) -> Any:
    """Declares an operator. The function says what comes out; `.plan`, `.cpu` and `.cuda` say how.

    Parameters before `/` are data inputs, keyword-only ones are arguments (annotate those that may differ between
    samples with `PerSample[...]`). `batch_size` and `device` are added. The result behaves as every operator of
    ndd: eager on a background thread, any EvalMode, ragged batches, per-sample arguments, errors at the user's line.

    Args:
        layouts: what input 0 may have; an input without a layout takes the first one of its rank.
        frames: unroll a leading F (video) into samples, with per-frame arguments.
        random: adds `rng=`; the plan gets the stream position as `words`.
        mixed: on a GPU the inputs stay on the CPU (decoders).
        transfers: takes inputs where they are, whatever the device it runs on (`copy`).
        heavy: a sample is worth a thread whatever its size.
        elementwise: the CPU kernel may get several samples, or a part of one, as one array: it looks at elements only.
        host_inputs: numbers of the inputs whose values are needed on the CPU even when the work is on a GPU.
        either_inputs: numbers of the inputs that a GPU operator takes from the CPU as they are, and from the GPU too.
        cpu_only: there is no GPU variant; `device="gpu"` is a ValueError.
        drops: the name of an argument that, if "skip", lets samples be left out.
        needs_batch: refuse a call that does not say a batch size.
        register: list the operator among those that the registry-wide tests walk.

    Besides `.cpu`, which gets one sample, `.cpu_batch` may say how samples of one shape are computed together:
    `f(inputs, outputs, names...)` gets arrays `[N, ...]` of the inputs that it names (as the operator does), of the
    outputs and of the plan's per-sample values, where N is a part of the batch. A call costs as much as a few
    thousand elements: for small samples this is many times faster. Batches of unequal shapes go to `.cpu`.

    >>> import ndd
    >>> @ndd.operator
    ... def invert(image, /, *, maximum: ndd.PerSample[int] = 255):
    ...     "maximum - image."
    ...     return ndd.like(image)
    >>> @invert.cpu
    ... def _(image, out, maximum):
    ...     out[...] = maximum - image
    >>> invert(ndd.batch([[1, 2], [3]]), maximum=ndd.batch([10, 5])).torch(pad=True)
    tensor([[9, 8],
            [2, 0]], dtype=torch.int32)
    """
    options = {
        "layouts": layouts, "frames": frames, "random": random, "mixed": mixed, "transfers": transfers, "heavy": heavy,
        "elementwise": elementwise, "host_inputs": host_inputs, "either_inputs": either_inputs, "cpu_only": cpu_only,
        "drops": drops, "needs_batch": needs_batch,
    }  # fmt: skip

    def declare(declared: Callable[..., Any]) -> Any:
        found = Operator(declared, options)
        wrapper = wrapper_of(found)
        if register:
            registry.add(found)
        return wrapper

    return declare if function is None else declare(function)


def wrapper_of(found: Operator) -> Any:
    """The public function, with the true signature: unknown and missing arguments are Python's own TypeErrors."""
    scope: dict[str, Any] = {"_op": found}
    parameters = list(inspect.signature(found.function).parameters.values())
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    head = [p.name if p.default is p.empty else f"{p.name}=None" for p in inputs]
    if inputs:
        head.append("/")
    head.append(f"*{found.variadic}" if found.variadic else "*")
    tail = ["batch_size=None", "device=None"]
    for argument in found.arguments:
        scope[f"_default_{argument.name}"] = argument.default
        tail.append(argument.name if argument.required else f"{argument.name}=_default_{argument.name}")
    if found.random:
        tail.append("rng=None")
    given = "".join(f"{p.name}, " for p in inputs) + (f"*{found.variadic}, " if found.variadic else "")
    values = "".join(f"{a.name}, " for a in found.arguments)
    rng = ", rng" if found.random else ""
    text = (
        f"def {found.name}({', '.join(head + tail)}):\n"
        f"    return _op.call(({given}), ({values}), batch_size, device{rng})\n"
    )
    exec(compile(text, f"<ndd operator {found.name}>", "exec"), {"__name__": __name__, **scope}, scope)
    wrapper = scope[found.name]
    wrapper.__doc__ = found.function.__doc__
    wrapper.__module__ = found.module
    wrapper.__qualname__ = found.name
    wrapper.__annotations__ = dict(found.function.__annotations__)
    wrapper.operator = found
    wrapper.plan = lambda f: _set(found, "plan", f)
    wrapper.views = lambda f: _set(found, "views", f)
    wrapper.recover = lambda f: _set(found, "recover", f)
    wrapper.cpu = lambda f: _set_kernel(found, "cpu", f)
    wrapper.cpu_batch = lambda f: _set_batch_kernel(found, f)
    wrapper.cuda = lambda source=None: _set_cuda(found, source)
    return wrapper


def _set(found: Operator, role: str, function: Callable[..., Any]) -> Callable[..., Any]:
    setattr(found, role, function)
    return function


def _set_kernel(found: Operator, role: str, function: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(getattr(function, "function", function)).parameters)
    setattr(found, role, function)
    setattr(found, f"{role}_names", names)
    return function


def _set_batch_kernel(found: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel for many samples of one shape; it says by their names which inputs it takes."""
    _set_kernel(found, "cpu_batch", function)
    names = found.cpu_batch_names
    takes_all = found.variadic is not None and names[:1] == [found.variadic]
    found.cpu_batch_inputs = None if takes_all else tuple([i for i, k in enumerate(found.inputs) if k in names])
    return function


def _set_cuda(found: Operator, source: Any) -> Any:
    """`op.cuda("x.cu")` alone: one launch of the kernel named as the operator; as a decorator: a Python function."""
    if callable(source):
        return _set_kernel(found, "cuda", source)
    found.cuda_source = source
    return lambda function: _set_kernel(found, "cuda", function)


__all__ = ["Argument", "Operator", "bind_random", "operator", "wrapper_of"]
