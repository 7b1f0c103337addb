"""`Operator`: a declaration, and the path of every call up to the point where it is scheduled."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._execution.errors import raise_as_later
from ndd._execution.schedule import schedule
from ndd._operator import fusion
from ndd._operator.arguments import arguments_of
from ndd._operator.call import Call
from ndd._operator.call_cache import CachedCall
from ndd._operator.frames import frame_spec, is_video, video_spec
from ndd._operator.limits import MOST
from ndd._operator.name_hints import keyword_hint, position_hint
from ndd._operator.plan import Samples
from ndd._tensor import Batch, Device, Handle, Spec, Tensor
from ndd._tensor.cache_keys import Constants, array_key, is_immutable, seen_before
from ndd._tensor.construct import build_batch, build_tensor, characters, from_pipeline
from ndd._tensor.device import DeviceLike, device as to_device_object
from ndd._tensor.dtype import DType, InterpType
from ndd._tensor.invariant import shown, watched
from ndd._tensor.limits import sample_count
from ndd._tensor.operations import operation
from ndd._tensor.type_guards import is_list
from ndd._tensor.warn_once import warn_once

_MOST_CALLS = 256
LONGEST_CACHED = (
    256  # numbers in a list: comparing the 34,928 numbers of SSD's anchors took 36 ms, converting them takes 4
)
_HANDLES = (Tensor, Batch)
_PLAIN = frozenset({type(None), bool, int, float, str, DType, InterpType})  # hashable, and never changed
_UNKNOWN_LAYOUT = object()


class Operator:
    """A declared operator: its signature, what it accepts, and the functions that plan and compute it.

    `function.operator` of every public operator is one of these.
    """

    plan: Callable[..., Any] | None = None
    cpu: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    batch_takes_plan = False
    cuda: Callable[..., Any] | None = None
    cuda_source: str | None = None
    views: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None
    """The units of the result's axes (seconds, hertz), from the units of input 0 and the arguments."""
    plan_takes_call = False
    # Whether each result depends on its own sample alone; or a function of the arguments that says so.
    independent_samples: bool | Callable[..., bool] = True
    empty_ndim: int | None = None
    """The number of axes that this operator assumes for samples of an empty list, if it does not take scalars: 1 if it takes
    bytes. Such a batch itself says 0, as DALI's does."""
    keeps_shape = False  # True: the results have the shapes of input 0's samples
    may_run_ahead = True  # False: the operator has side effects

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        self.name = function.__name__
        self.function = function
        self.module = function.__module__ or "__main__"  # code that `exec` runs may lack a module name
        self.ours = self.module.startswith("ndd.")  # what functions of users' operators return is checked at every call
        self.inputs, self.required, self.variadic, self.arguments = arguments_of(function)
        for argument in self.arguments if self.ours else ():
            argument.bounded = argument.name in MOST
        self.layouts: tuple[str, ...] | None = options["layouts"]
        self.types = options["types"]
        self.dtypes = options["dtypes"]
        self.frames: bool = options["frames"]
        self.random: bool = options["random"]
        self.argument_shapes: bool = options["argument_shapes"]
        self.cut: str = options["cut"]
        self.masks: bool = options["masks"]
        self.paths: bool = options["paths"]
        self.reads = _reads(options["reads"], self)
        self.declared_outputs: int | Callable[..., int] = options["outputs"]
        # By the maker of input 0, see `fusion.py`.
        self.fuses: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {}
        self.costs: dict[Any, Any] = {}  # of loops on the CPU, see `partition.py`
        self.cpu_names: list[str] = []
        self.cuda_names: list[str] = []
        self.forget()

    def forget(self) -> None:
        """Clears the caches between calls."""
        self._effective: dict[tuple[int, str | None], str | None] = {}
        self._cached_calls: dict[Any, CachedCall] = {}
        self._came_once: set[int] = set()  # keys of calls with arrays, see `_worth_keeping`

    @property
    def runs_on_gpu(self) -> bool:
        """Whether `device="gpu"` is allowed."""
        return self.cuda is not None or self.cuda_source is not None or self.views is not None

    def outputs(self, *inputs: Any, **arguments: Any) -> int:
        """The number of outputs for these inputs (it only matters whether they are passed) and arguments (the others
        have their defaults), before anything runs."""
        declared = self.declared_outputs
        if isinstance(declared, int):
            return declared
        asked = inspect.signature(declared).parameters
        defaults = {a.name: a.default for a in self.arguments if a.name in asked}
        present = {k: i < len(inputs) and inputs[i] is not None for i, k in enumerate(self.inputs) if k in asked}
        return declared(
            **{**defaults, **present, **{k: v for k, v in arguments.items() if k in asked and v is not None}}
        )

    def effective_layout(self, spec: Spec, ndim: int | None = None) -> str | None:
        """The layout an input is taken to have: its own if allowed, a default by rank if it has none."""
        key = (spec.ndim if ndim is None else ndim, spec.layout or None)
        effective = self._effective.get(key, _UNKNOWN_LAYOUT)  # type: ignore[arg-type]
        if effective is _UNKNOWN_LAYOUT:
            effective = self._effective[key] = self._check_layout(*key)  # type: ignore[index, arg-type]
        return effective  # type: ignore[return-value]

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
                + (". Decode encoded pictures first: ndd.decoders.image(x)" if ndim == 1 and "HWC" in allowed else "")
            )
        if layout not in allowed:
            raise ValueError(
                f"{self.name}: The layout {layout!r} of input 0 is not one of the allowed ones: {', '.join(allowed)}"
            )
        return layout

    # ---- a call

    def call(
        self, inputs: tuple[Any, ...], values: tuple[Any, ...], batch_size: Any, device: Any, rng: Any = None
    ) -> Any:
        """Checks the arguments, describes the outputs, schedules the call and returns handles."""
        if watched:
            inputs, values, batch_size, device, rng = shown(self.name, inputs, values, batch_size, device, rng)
        n: int | None = None
        external = False
        specs: list[Any] = []
        for value in inputs:
            kind = value.__class__
            if kind is Batch:
                size = value._n
                if n is None or size is None or size != n:
                    n = self._agree(n, value, inputs)
            elif kind is not Tensor:
                if value is None:
                    specs.append(None)
                    continue
                inputs = tuple([self._to_handle(v) for v in inputs])
                return self.call(inputs, values, batch_size, device, rng)
            if value._external:
                external = True
            if value._spec.ndim is None:  # a cached call is for one element type and number of axes
                value._value()
            specs.append(value._spec)
        if self.masks and specs[0] is not None and specs[0].ndim == 2 and specs[0].layout in (None, "", "HW"):
            return self._of_mask(inputs, values, batch_size, device, rng)
        try:
            cached_call = self._find_or_make_call(
                inputs, values, None if device is None else self._asked(device), specs
            )
        except RuntimeError as error:
            if external:
                raise
            raise_as_later(error)
        if cached_call.handles:
            for value in cached_call.handles:
                if value.__class__ is Batch:
                    n = self._agree(n, value, inputs, cached_call.named)
                external = external or value._external
        batched = n is not None
        if batch_size is not None:
            n, batched = self._batch_size(batch_size, n, inputs), True
        elif n is None:
            n = 1
            if cached_call.batch_only:
                raise ValueError(
                    f"{self.name}: `batch_size` must be specified for `{self.name}`: it has no data inputs for it"
                )
        if cached_call.moves:
            inputs = self._moved(inputs, cached_call.device)
        call = Call(self, cached_call, inputs, n, batched, _random_words(self.name, rng) if self.random else None)
        needed = (*inputs, *cached_call.handles) if cached_call.handles else inputs
        if self.fuses and fusion.announce(call, inputs[0]._pending):
            needed = needed[1:]  # the input may be made along with this call
        invocation = schedule(self.name, call.run, needed, shares_memory=external, operator_call=call)
        maker = Batch._of_pending if batched else Tensor._of_pending
        if cached_call.fewer and batched:
            n = None  # type: ignore[assignment]
        outs = cached_call.outs
        if cached_call.single:
            return maker(invocation, 0, outs[0], n)
        return tuple([maker(invocation, i, o, n) for i, o in enumerate(outs)])

    def _of_mask(self, inputs: tuple[Any, ...], values: tuple[Any, ...], batch_size: Any, device: Any, rng: Any) -> Any:
        """The call for an HW image, which becomes HWC with one channel and HW again, by views. DALI refuses such images with
        ValueError, and so does this where the operator refuses the HWC image."""
        reshape, mask = operation("reshape"), inputs[0]
        image = reshape(mask, src_dims=[0, 1, -1], layout="HWC")
        image._external = mask._external
        try:
            results = self.call((image, *inputs[1:]), values, batch_size, device, rng)
        except RuntimeError as error:
            raise ValueError(str(error)).with_traceback(error.__traceback__) from error.__cause__
        outs = [results] if isinstance(results, Handle) else list(results)
        for i, out in enumerate(outs):
            layout = out._spec.layout or ""
            if sorted(layout.lstrip("F")) == ["C", "H", "W"]:
                places = [k for k, c in enumerate(layout) if c != "C"]
                outs[i] = reshape(out, src_dims=places, layout=layout.replace("C", ""))
        return outs[0] if isinstance(results, Handle) else tuple(outs)

    def unknown(self, arguments: dict[str, Any]) -> TypeError:
        """The error for arguments that the operator does not have."""
        name = next(iter(arguments))
        if name in self.inputs:
            return TypeError(f"{self.name}() takes its input {name!r} by position, not by name")
        known = [a.name for a in self.arguments] + ["batch_size", "device"] + (["rng"] if self.random else [])
        hint = keyword_hint(self.name, name, arguments[name], known)
        return TypeError(f"{self.name}() got an unexpected keyword argument {name!r}{hint}")

    def surplus(self, positional: tuple[Any, ...]) -> TypeError:
        """The error for arguments without their names."""
        known, required = [a.name for a in self.arguments], [a.name for a in self.arguments if a.required]
        taken, count = len(self.inputs), len(self.inputs) + len(positional)
        hint = position_hint(self.name, positional[0], known, required)
        plural = "" if taken == 1 else "s"
        return TypeError(f"{self.name}() takes {taken} positional argument{plural} but {count} were given{hint}")

    def _find_or_make_call(
        self, inputs: tuple[Any, ...], values: tuple[Any, ...], device: Any, specs: list[Any]
    ) -> CachedCall:
        """The cached call with the same constants and specs, or a new one."""
        key = values
        try:
            cached_call = self._cached_calls.get((key, device, *specs))
        except TypeError:  # a list in a list, an array or a handle among the values
            key = tuple([v if v.__class__ in _PLAIN else _cache_key(v, self.argument_shapes) for v in values])
            try:
                cached_call = self._cached_calls.get((key, device, *specs))
            except TypeError:
                cached_call = None
        if cached_call is not None and cached_call.constants.same(key):
            return cached_call.with_values(values) if cached_call.handles else cached_call
        return self._new_cached_call(inputs, values, key, device, specs)

    def _new_cached_call(
        self, inputs: tuple[Any, ...], values: tuple[Any, ...], key: tuple[Any, ...], device: Any, specs: list[Any]
    ) -> CachedCall:
        """Everything that follows from a call's constants and from its inputs' specs. It is cached for the next such call:
        converting 20 arguments takes 10 us, looking them up 1 us."""
        for i, spec in enumerate(specs[: self.required]):
            if spec is None:
                raise TypeError(f"{self.name}: expected a value for input {i}, got None")
        named = {a.name: self._accepted(a, v) for a, v in zip(self.arguments, values, strict=True)}
        handles = [v for v in named.values() if v.__class__ in _HANDLES]
        target = self._device(inputs, device)
        wanted = [self._place(i, s, target) for i, s in enumerate(specs)]
        moves = any([s is not None and s.device != w for s, w in zip(specs, wanted, strict=True)])
        seen = [self._spec_of(h, i) for i, h in enumerate(inputs)]
        bare = self.empty_ndim is not None and inputs[0].__class__ is Batch and inputs[0]._n == 0 == specs[0].ndim
        if bare:
            seen[0] = Spec.of(specs[0].dtype, self.empty_ndim, specs[0].layout, specs[0].device)
        if moves:  # the plan sees the inputs on the device where they will be
            seen = [s and Spec.of(s.dtype, s.ndim, s.layout, w) for s, w in zip(seen, wanted, strict=True)]
        while len(seen) > self.required and seen[-1] is None and not self.variadic:
            seen.pop()
        cached_call = self._declared(seen, named, handles, target, moves)
        first = specs[0] if specs else None
        cached_call.assumed = first is not None and not first.layout and seen[0].layout == "HWC"
        same_handles = len(handles) == sum([v.__class__ in _HANDLES for v in values])
        if not bare and same_handles and is_immutable(key) and self._worth_keeping(values, (key, device, *specs)):
            if len(self._cached_calls) > _MOST_CALLS:
                self._cached_calls.clear()
            cached_call.constants = Constants(key)
            self._cached_calls[(key, device, *specs)] = (
                cached_call.with_values(values, keep=False) if handles else cached_call
            )
        return cached_call

    def _worth_keeping(self, values: tuple[Any, ...], key: Any) -> bool:
        """Whether a call with arrays should be cached. Arrays often differ from call to call, so a call is cached when its
        arrays come again. An array that is not converted to a copy belongs to the user, who may write to it."""
        arrays = [a for a, v in zip(self.arguments, values, strict=True) if v.__class__ is np.ndarray]
        return not arrays or (all([a.vector and a.number for a in arrays]) and seen_before(key, self._came_once))

    def _accepted(self, argument: Any, value: Any) -> Any:
        """An argument's value, checked and converted; a handle if samples may have values of their own."""
        if value is not None and value is not argument.default:
            return argument.accept(value, self.name)
        if argument.required and value is None:
            kind = ValueError if argument.per_sample else TypeError
            raise kind(f"{self.name}: argument {argument.name!r} has no default value: it cannot be None")
        value = argument.default
        return value if value is None else argument.constant(value, self.name)

    def _declared(
        self, seen: list[Any], named: dict[str, Any], handles: list[Any], target: Device, moves: bool
    ) -> CachedCall:
        """The outputs that the operator's own function declares."""
        self._check_types(seen, named)
        sequences = self.frames and not is_video(seen[0]) and any(map(is_video, seen))
        try:
            out = self.function(*(map(frame_spec, seen) if sequences else seen), **named)
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            if str(error).startswith(self.name):
                raise
            raise type(error)(f"{self.name}: {error}").with_traceback(error.__traceback__) from None
        fewer = batch_only = False
        if out.__class__ is Samples:
            out, fewer, batch_only = out
        single = out.__class__ is Spec
        declared: Any = [out] if single else out
        if not (is_list(declared) and declared and all([o.__class__ is Spec for o in declared])):
            raise TypeError(
                f"{self.name}: the declaring function says what comes out, such as `return ndd.like({_first(self)})`, or "
                f"a tuple of these; got {out!r}"
            )
        outs = [o if o.device is target else Spec.of(o.dtype, o.ndim, o.layout, target) for o in declared]
        outs = [video_spec(o) for o in outs] if sequences else outs
        cached_call = CachedCall(seen, named, handles, target, moves, outs, single)
        cached_call.fewer, cached_call.batch_only = fewer, batch_only
        return cached_call

    def _check_types(self, seen: list[Any], named: dict[str, Any]) -> None:
        """Raises RuntimeError for element types of inputs, or values of `dtype`, that the operator does not take."""
        if self.types is not None:
            for i, spec in enumerate(seen if self.variadic else seen[:1]):
                if spec is not None and spec.dtype.name not in self.types:
                    which = f"input {i}" if i else "input"
                    advice = " Convert with ndd.cast(x, dtype=ndd.float32)." if "f32" in self.types else ""
                    raise RuntimeError(
                        f"{self.name}: Unsupported {which} type: {spec.dtype}. Expected one of {', '.join(self.types)}.{advice}"
                    )
        if self.dtypes is not None and named["dtype"] is not None and named["dtype"].name not in self.dtypes:
            raise RuntimeError(
                f"{self.name}: Unsupported output type: {named['dtype']}. Expected one of {', '.join(self.dtypes)}."
            )

    def _to_handle(self, value: Any) -> Any:
        if value is None or value.__class__ in _HANDLES:
            return value
        try:
            unwrapped = from_pipeline(value)
            if unwrapped is not None:
                return unwrapped
            if self.paths:
                value = characters(value)
            elif is_list(value) and value and all(isinstance(v, bytes) for v in value):
                # Encoded data: byte strings of different lengths.
                value = build_batch(value, None, None, None, copy=False)
            if value.__class__ in _HANDLES:
                return value
            handle = build_tensor(value, None, None, None, copy=False)
        except (TypeError, ValueError, RuntimeError) as error:
            raise type(error)(f"{self.name}: {error}") from None
        if self.layouts is not None and is_list(value) and all(getattr(v, "ndim", 0) == 2 for v in value):
            warn_once(
                f"{self.name}: list",
                f"{self.name}: a list of arrays is taken as one array, not as a batch. ndd.batch(...) makes a batch of them",
            )
        return handle

    def _agree(self, n: int | None, value: Any, inputs: tuple[Any, ...], named: dict[str, Any] | None = None) -> int:
        """The batch size of `value`, which must be `n`; the ValueError says which input has which size."""
        size = value._n if value._n is not None else value.batch_size
        if n is not None and n != size:
            batches: list[tuple[str, Any]] = [(f"input {i}", v) for i, v in enumerate(inputs)]
            batches += [(f"argument {name!r}", v) for name, v in named.items()] if named else []
            sizes = {label: v.batch_size for label, v in batches if isinstance(v, Batch)}
            counts = ", ".join(f"{label} has {count} samples" for label, count in sizes.items())
            raise ValueError(f"{self.name}: Inconsistent batch size: {size} != {n}: {counts}")
        return size

    def _batch_size(self, batch_size: Any, n: int | None, inputs: tuple[Any, ...]) -> int:
        """The number of samples of the results. As in DALI, inputs that are all batches overrule the argument, except in
        random operators."""
        size = sample_count(self.name, batch_size)
        if n is None or size == n:
            return size
        conflict = f"batch_size={size}, but got a batch of {n}"
        if self.random or {v.__class__ for v in inputs if v is not None} != {Batch}:
            raise RuntimeError(f"{self.name}: Inconsistent batch size: {conflict}")
        warn_once(f"{self.name}: batch_size", f"{self.name}: {conflict}: the argument is ignored")
        return n

    def check_arguments(self, arguments: dict[str, Any]) -> None:
        """The error that a call would raise for these arguments and `device` with any inputs."""
        for argument in self.arguments:
            if argument.name in arguments:
                self._accepted(argument, arguments[argument.name])
        if isinstance(arguments.get("device"), str) and arguments["device"] != "gpu":
            self._asked(arguments["device"])

    # ---- devices

    def _asked(self, device: DeviceLike | None) -> Device | None:
        try:
            return to_device_object(device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise type(error)(f"{self.name}: argument 'device': {error}") from None

    def _device(self, handles: Any, target: Any) -> Device:
        if target is not None:
            if target.device_id is not None and not self.runs_on_gpu:
                raise ValueError(f'Invalid device "{target}" for operator `{self.name}`: it runs on the CPU only')
            return target
        if self.runs_on_gpu:
            for h in handles:
                if h is not None and h._spec.device.device_id is not None:
                    return h._spec.device
        return Device.CPU

    def _place(self, i: int, spec: Any, target: Device) -> Any:
        """Where input `i` is read: see `reads` of `operator`."""
        if spec is None:
            return None
        where = self.reads[min(i, len(self.reads) - 1)]
        if where == "cpu":
            return Device.CPU
        # A CPU kernel reads host memory.
        reads_there = self.cpu is not None or self.plan is not None
        return target if where == "device" or (reads_there and target.device_id is None) else spec.device

    def _moved(self, handles: tuple[Any, ...], target: Device) -> tuple[Any, ...]:
        """The inputs, moved to where the operator reads them."""
        placed: list[Any] = []
        for i, h in enumerate(handles):
            if h is None:
                placed.append(None)
                continue
            place = self._place(i, h._spec, target)
            if place == h._spec.device:
                placed.append(h)
            elif place.device_id is None:
                placed.append(h.cpu())
            elif h._spec.device.device_id is not None:
                raise ValueError(
                    f"{self.name}: Got inputs with different device ids: input {i} is on {h._spec.device}, "
                    f"the operator runs on {target}"
                )
            else:
                placed.append(h.to_device(place))
        return tuple(placed)

    def _spec_of(self, handle: Any, index: int) -> Any:
        if handle is None:
            return None
        spec = handle._spec
        if index:
            return spec
        layout = self.effective_layout(spec)
        if layout and layout[0] == "F" and not spec.layout and handle.__class__ is Tensor:
            warn_once(
                f"{self.name}: video",
                f"{self.name}: an array of {spec.ndim} axes without a layout is taken for one video, {layout}. ndd.batch(...) "
                f'makes a batch of its first axis; ndd.as_tensor(..., layout="{layout}") says that it is a video',
            )
        return spec if layout == spec.layout else Spec.of(spec.dtype, spec.ndim, layout, spec.device)


def _cache_key(value: Any, shapes_matter: bool) -> Any:
    """The cache key of an argument's value. For a handle of one number for each sample the key has everything that the
    declaring function can know of it. Where the shapes of other handles matter too, they are keys themselves, and the call is
    not cached."""
    if value.__class__ in _HANDLES:
        return value if shapes_matter and value._spec.ndim != 0 else (value.__class__, value._spec)
    if value.__class__ is np.ndarray:
        return array_key(value) or value
    if value.__class__ in (tuple, list) and len(value) <= LONGEST_CACHED:
        return _hashable(value)
    return value


def _hashable(values: Any) -> tuple[Any, ...]:
    """A list of lists, such as a matrix, as tuples. Without such a key `warp_affine` on a GPU spends 190 of 260 us of every
    call on it."""
    most = LONGEST_CACHED // max(len(values), 1)
    return tuple([_hashable(v) if v.__class__ is list and len(v) <= most else v for v in values])


def _first(op: Operator) -> str:
    return op.inputs[0] if op.inputs else "image"


def _reads(reads: Any, op: Operator) -> tuple[str, ...]:
    """Where each input is read; the last entry holds for all further inputs."""
    names = [*op.inputs, op.variadic] if op.variadic else op.inputs
    if isinstance(reads, str):
        return (reads,)
    unknown = set(reads) - set(names)
    if unknown:
        raise TypeError(f"{op.name}: `reads` names unknown inputs: {', '.join(sorted(unknown))}")
    return tuple([reads.get(name, "device") for name in names]) or ("device",)


_random_source: list[Callable[[str, Any], Any]] = []


def bind_random(source: Callable[[str, Any], Any]) -> None:
    """Sets the source of positions for random operators: `source(operator, rng)` advances `rng` (or the thread's
    default)."""
    _random_source[:] = [source]


def _random_words(name: str, rng: Any) -> Any:
    return _random_source[0](name, rng)
