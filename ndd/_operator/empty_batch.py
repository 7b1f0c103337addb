"""Results for batches without samples: nothing is computed but the known extents of the results."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._execution.errors import raise_signalled
from ndd._operator.frames import frame_spec, is_video
from ndd._tensor import Spec, Store
from ndd._tensor.extent_inference import infer_extents
from ndd._tensor.operand import Operand
from ndd._tensor.store import empty_store, extents_of

if TYPE_CHECKING:
    from ndd._operator.call import Call

Shape = tuple[int, ...]


def results_without_samples(call: Call, inputs: list[Store | None]) -> list[Store]:
    """The outputs of a call whose inputs hold no samples."""
    outs = call.outs
    try:
        extents = _extents(call, inputs)
    except Exception as error:  # an operator that cannot plan without samples: only the rank is known
        raise_signalled(error)
        extents = None
    stores: list[Store] = []
    for k, out in enumerate(outs):
        shape = None if extents is None else extents[k]
        if shape is None or len(shape) != out.ndim:
            shape = (0,) * (out.ndim or 0)
        if out.ndim is None:
            stores.append(Store(out.dtype, out.layout, out.device, [], parts=[]))
        else:
            stores.append(empty_store(out.dtype, out.layout, out.device, shape))
    return stores


def ranked(store: Store, spec: Spec) -> Store:
    """A result without samples, of the declared rank."""
    if store.whole is not None or not spec.ndim:
        return store
    empty = empty_store(store.dtype, store.layout, store.device, (0,) * spec.ndim)
    empty.dropped, empty.stream, empty.ready = store.dropped, store.stream, store.ready
    return empty


def _extents(call: Call, inputs: list[Store | None]) -> list[Shape] | None:
    op, specs = call.op, call.cached_call.specs
    sequences = op.frames and any(map(is_video, specs))
    known = [_known(store, spec, sequences) for store, spec in zip(inputs, specs, strict=False)]
    empty = [i for i, entry in enumerate(known) if entry is not None]
    if not op.ours or not op.may_run_ahead or call.cached_call.handles:
        return None
    in_memory = op.plan is None and (op.batch is not None or op.views is not None)
    if op.keeps_shape and inputs[0] is not None:
        return [extents_of(inputs[0], call.outs[0].ndim)]
    if in_memory and call.device.device_id is not None:
        return None
    probe = type(call)(op, call.cached_call, call.handles, 1, True, call.draws)
    probe.context = call.context

    def shapes_of(shapes: list[Shape]) -> list[Shape]:
        stores: list[Any] = list(inputs)
        for i, shape in zip(empty, shapes, strict=True):
            spec: Any = frame_spec(specs[i]) if sequences else specs[i]
            memory: dict[str, Any] = {"whole": np.zeros((1, *shape), spec.dtype.numpy)} if in_memory else {}
            stores[i] = Store(spec.dtype, spec.layout, spec.device, [shape], **memory)
        return _computed(probe, stores) if in_memory else _planned(probe, stores, sequences)

    extents = infer_extents(shapes_of, [known[i] for i in empty], large=not in_memory)  # type: ignore[misc]
    if extents is not None and sequences:
        lengths = [
            extents_of(s, 1)[0] for s, spec in zip(inputs, specs, strict=False) if s is not None and is_video(spec)
        ]
        extents = [(lengths[0], *shape) for shape in extents]
    return extents


def _known(store: Store | None, spec: Spec | None, sequences: bool) -> tuple[Shape, str | None] | None:
    """The known properties of an input without samples; None for an input with samples."""
    if store is None or spec is None or store.n:
        return None
    extents, layout = extents_of(store, spec.ndim), spec.layout
    if len(extents) != spec.ndim:
        extents = (0,) * (spec.ndim or 0)
    return (extents[1:], layout[1:]) if sequences and layout and is_video(spec) else (extents, layout)


def _planned(probe: Call, stores: list[Any], sequences: bool) -> list[Shape]:
    specs: list[Any] = [frame_spec(spec) for spec in probe.cached_call.specs] if sequences else probe.cached_call.specs
    operands: list[Any] = [None if s is None else Operand(s, specs[i], 1) for i, s in enumerate(stores)]
    operands += [None] * (len(probe.op.inputs) - len(operands))
    plan = probe._plan(operands, probe.arguments(), 1, sequences)
    shapes = [plan.shapes] if probe.cached_call.single else plan.shapes
    return [tuple(int(extent) for extent in np.asarray(shape)[0]) for shape in shapes]


def _computed(probe: Call, stores: list[Any]) -> list[Shape]:
    probe.stores = stores
    results: list[Store] | None = probe._view(stores) if probe.op.views is not None else probe._batch(stores)
    return [tuple(store.shapes[0]) if store.n else extents_of(store) for store in results or []]
