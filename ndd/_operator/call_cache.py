"""The call cache: everything that follows from the constants of a call, and plans for inputs of certain shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ndd._operator.plan import Plan
from ndd._tensor import Batch, Spec, Tensor
from ndd._tensor.cache_keys import seen_before

FEW = 64  # plans cached for one call, and samples compared one by one to see whether a batch is uniform
_FEW_RAGGED = 256  # samples of different shapes whose GPU records are cached: 100 bytes for each sample and launch
_CHURN = 8  # calls in a row with new shapes, after which shapes are cached only when they come again
_HANDLES = (Tensor, Batch)


class CachedCall:
    """All that follows from the constants and the specs of a call's inputs. Calls that agree in these share it."""

    __slots__ = (
        "assumed", "batch_only", "by_name", "came_once", "columns", "constants", "device", "fewer", "handles", "kernels",
        "made_once", "missed", "moves", "named", "outs", "places", "plans", "single",
        "specs",
    )  # fmt: skip

    def __init__(
        self,
        specs: list[Any],
        named: dict[str, Any],
        handles: list[Any],
        device: Any,
        moves: bool,
        outs: list[Spec],
        single: bool,
        places: list[tuple[int, str]] | None = None,
    ):
        self.specs = specs
        self.named = named
        self.handles = handles
        if places is None:
            places = (
                [(i, name) for i, (name, v) in enumerate(named.items()) if v.__class__ in _HANDLES] if handles else []
            )
        self.places = places  # keys of the handles among the arguments
        self.device = device
        self.moves = moves
        self.outs = outs
        self.single = single
        self.fewer = self.batch_only = False
        self.assumed = False  # input 0 has no layout, and is taken as HWC
        self.constants: Any = None  # compared with the constants of a call with an equal key
        self.plans: dict[Any, CachedPlan] = {}
        self.made_once: dict[Any, Any] = {}  # see `Call.once` and `Call.once_for_shapes`
        self.kernels: dict[Any, Any] = {}  # GPU: the parts that launches share, see `Launch`
        self.columns: dict[Any, Any] = {}  # GPU: the facts about inputs and outputs that all launches share
        self.missed = 0  # calls in a row for which no plan was cached
        self.came_once: set[int] = set()  # hashes of shapes that have come once
        # A number of samples, and the result of `Call.arguments` for it.
        self.by_name: tuple[int, dict[str, Any]] = (-1, {})

    def keep(self, key: Any, planned: CachedPlan) -> None:
        """Caches a plan for the next batch of these shapes. If each batch has other shapes (sound, for example), it caches a
        plan only when its shapes come again: recording launches takes a fifth of the time of a call."""
        self.missed += 1
        if self.missed > _CHURN and not seen_before(key, self.came_once):
            return
        if len(self.plans) > FEW:
            self.plans.clear()
        self.plans[key] = planned
        planned.cached = True

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once for all calls with these constants and this key."""
        cache = self.made_once
        try:
            return cache[key]
        except KeyError:
            result = make()
        if len(cache) > FEW:
            cache.clear()
        cache[key] = result
        return result  # not looked up again: another thread may have cleared it

    def with_values(self, values: Sequence[Any], keep: bool = True) -> CachedCall:
        """The same with the handles that are among the values of the arguments; `keep=False`: without them."""
        named = self.named.copy()
        handles: list[Any] = []
        for i, name in self.places:
            named[name] = values[i] if keep else None
            handles.append(named[name])
        cached = CachedCall(self.specs, named, handles, self.device, self.moves, self.outs, self.single, self.places)
        cached.fewer, cached.batch_only, cached.assumed = self.fewer, self.batch_only, self.assumed
        cached.constants, cached.plans, cached.kernels = self.constants, self.plans, self.kernels
        cached.columns, cached.made_once = self.columns, self.made_once
        return cached


class CachedPlan:
    """A plan for inputs of certain shapes, with everything derived from it. It is cached if it depends on no data."""

    __slots__ = ("cached", "columns", "kernels", "plan", "recorded", "rooms", "shapes")

    def __init__(self, plan: Plan, shapes: list[Any]):
        self.plan = plan
        self.shapes = shapes
        self.columns: list[Any] | None = None
        self.kernels: list[Any] | None = None  # CPU: the kernels, with the parts of the plan that they get
        self.rooms: Any = None  # GPU: the memory that the outputs need
        self.recorded: Any = None  # GPU: the recorded launches, which are repeated without the operator's code
        self.cached = False  # whether it is valid for later batches of these shapes


def shapes_key(stores: list[Any], n: int, on_gpu: bool) -> Any:
    """The shapes as the key of a plan, besides the constants. None if the plan is not worth caching or depends on more."""
    if not stores:
        return None
    key: list[Any] = [n]
    for s in stores:
        if s is None:
            key.append(None)
            continue
        if s.whole is None and on_gpu and 1 < s.n <= _FEW_RAGGED:
            extents = s.shape_array
            key.append((extents.shape[1], extents.tobytes()))
            continue
        if s.flat is not None and s.n > 1:  # only shapes that differ make flat buffers
            return None
        shapes = s.shapes
        if s.whole is None and len(shapes) > FEW:
            return None
        first = shapes[0] if shapes else None
        if s.whole is None and shapes and shapes.count(first) != len(shapes):
            return None
        key.append((len(shapes), first))
    return tuple(key)


__all__ = ["CachedCall", "CachedPlan", "shapes_key"]
