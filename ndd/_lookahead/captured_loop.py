"""`CapturedLoop`: the calls of the first iteration of a captured loop, and the errors for later ones that break the promise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from ndd._tensor import Batch
from ndd._tensor.handle import Handle
from ndd._tensor.invariant import is_marked, marked_places, unmarked, watched
from ndd._tensor.user_line import user_frame, warn_user


class _Local(threading.local):
    loop: CapturedLoop | None = None


_local = _Local()


def current_loop() -> CapturedLoop | None:
    """The captured loop whose body this thread is in."""
    return _local.loop


class CapturedLoop:
    """The recording of the first iteration of a captured loop, for all epochs of its reader.

    Args:
        size: the batch size.
    """

    def __init__(self, size: int):
        self.size = size
        self._item: Any = None  # that the body is at
        self.forget()

    def forget(self) -> None:
        """Back to before the first iteration: values that were bound to the loop are free again."""
        for feeder in getattr(self, "feeders", ()):
            feeder._released()
        self.step = 0
        self.has_operators = False  # whether the first iteration called any
        self.calls: dict[Any, tuple[str, tuple[Any, ...]]] = {}  # site: where it ran, which of its arguments are marked
        self.has_marks = False
        self._forget_draws()
        self.feeders: dict[Any, int] = {}  # source that is read in the body: the step that read it last

    def _forget_draws(self) -> None:
        # Site: generator, its key, place in the first iteration.
        self.draws: dict[Any, tuple[Any, tuple[int, int], int]] = {}
        self.drawn: dict[Any, int] = {}  # site: the step that drew last
        self.draws_per_iteration: dict[Any, int] = {}  # generator: the numbers that it draws in an iteration
        self.counted = 0  # iterations since the first of `draws`

    @property
    def batch_size(self) -> int:
        """The size of the batch that the body is at: the last one may be smaller, or one with broken samples."""
        item = self._item
        values = item.values() if isinstance(item, dict) else item if isinstance(item, tuple) else (item,)
        return next((value.batch_size for value in values if isinstance(value, Batch)), self.size)

    @property
    def tracing(self) -> bool:
        """Whether this is the first iteration."""
        return self.step == 0

    def iterations(
        self,
        begun: Callable[[Callable[[], None]], Iterator[Any]],
        free: Callable[[], None],
        left: Callable[[], None] | None = None,
    ) -> Iterator[Any]:
        """The items, one for each iteration.

        Args:
            begun: returns the items when the loop begins. It gets a function to call before an item is returned, so that an
                interrupt comes before that or after it.
            free: called if the loop captures nothing: its iterable may then be used in another way.
            left: called if the loop is left in its first iteration.
        """
        ordinary = False

        def begin() -> None:
            if not ordinary:
                self._begin()

        whole, items = False, begun(begin)
        try:
            for item in items:
                whole, self._item = False, item  # nothing is called here: an interrupt would lose the item
                yield item
                self._end()
                whole = True
                if self.tracing and not self.has_operators:
                    warn_user(
                        "capture=True was given, but no operators were captured in the first iteration: the loop goes on "
                        "as an ordinary one."
                    )
                    self.forget()
                    free()
                    ordinary = True
                    yield from items
                    return
                self.step += 1
                self.counted += 1
        finally:
            self._leave()
            self._item = None
            if not whole:
                if self.tracing:
                    self.forget()
                    if left is not None:
                        left()
                else:
                    self.step += 1
                self._forget_draws()  # the iteration that was left may have drawn less than the others

    def _begin(self) -> None:
        if _local.loop is not None:
            raise RuntimeError("Only one capture-mode loop can be active at a time: one runs inside another")
        _local.loop = self
        watched.append(self)
        self.body = user_frame().f_code

    def _leave(self) -> None:
        if _local.loop is self:
            _local.loop = None
        if self in watched:
            watched.remove(self)

    def _end(self) -> None:
        self._leave()
        for step in self.feeders.values():
            if step != self.step:
                raise RuntimeError(
                    "An ExternalSource was not consumed this step: a captured loop reads each of its sources exactly once "
                    "in every iteration"
                )

    # The calls of the body

    def _site(self, name: str, known: Iterable[Any] | None) -> Any:
        """The operator and where it was called; of `known` ones the one at that place, if other calls led there now."""
        site = (name, _call_site(self.body))
        if known is None or site in known:
            return site
        alike = [k for k in known if k[0] == name and k[1][0] == site[1][0]]
        return alike[0] if len(alike) == 1 else site

    def called(self, name: str, inputs: Any, values: Any, batch_size: Any, device: Any) -> None:
        """An operator was called, in this loop or in another thread."""
        if _local.loop is not self:
            return
        if self.tracing:
            self.has_operators = True
        else:
            self.check_batch_size(name, unmarked(batch_size))
        operands = (*inputs, *values)
        marked = marked_places(operands)
        self.has_marks = self.has_marks or (bool(marked) and self.tracing)
        if self.tracing:
            self.calls.setdefault(self._site(name, None), (_place(device, inputs), marked))
        if self.tracing or (device is None and not self.has_marks):
            return
        site = self._site(name, self.calls)
        if site not in self.calls:
            return
        where, before = self.calls[site]
        if device is not None and _place(device, inputs) != where:
            raise RuntimeError(f"{name}: Cannot change device from {where} to {device} in a capture-mode loop")
        if any(i < len(operands) and operands[i] is not None and not is_marked(operands[i]) for i in before):
            raise RuntimeError(
                f"{name}: An argument marked with ndd.capture.invariant when captured must remain marked in all iterations"
            )

    def check_batch_size(self, name: str, size: Any) -> None:
        """RuntimeError if it is neither the loop's nor the current batch's."""
        if size is not None and size not in (self.size, self.batch_size):
            raise RuntimeError(f"{name}: Cannot change batch size to {size}, the capture-mode loop uses {self.size}.")

    def draws_from(self, name: str, rng: Any, key: tuple[int, int], place: int) -> None:
        """A random operator is about to take its numbers from `place` of `rng`. The key: its own, and its restarts."""
        site = self._site(name, self.draws if self.counted else None)
        if site not in self.draws:
            if not self.counted:
                self.draws[site] = (rng, key, place)
                self.drawn[site] = self.step
            return
        if self.drawn[site] == self.step:
            if self.tracing:
                warn_user(
                    f"{name}: a random operator's call site runs more than once per iteration. What it draws is right, but "
                    "only the first call of each iteration is checked."
                )
            return
        self.drawn[site] = self.step
        generator, first_key, first = self.draws[site]
        moved, rest = divmod(place - first, self.counted)
        usual = self.draws_per_iteration.setdefault(id(rng), moved)
        if rng is not generator or key != first_key or rest or moved != usual or moved < 0:
            raise RuntimeError(
                f"{name}: The RNG of a captured operator was used unexpectedly: the number of random draws per iteration "
                "changed, or the RNG was modified outside the captured loop"
            )

    def feeds(self, source: Any) -> None:
        """A source is read in the body."""
        if source not in self.feeders and not self.tracing:
            raise RuntimeError(
                "ExternalSource wasn't seen during tracing: a captured loop reads it from the first iteration on"
            )
        if self.feeders.get(source) == self.step:
            raise RuntimeError("An ExternalSource may be read only once per capture-mode step")
        self.feeders[source] = self.step


def _place(device: Any, inputs: Any) -> str:
    """Where an operator runs: "gpu" if it was told so or has an input there, else "cpu". The number of the GPU does not matter."""
    if device is None:
        on_gpu = [isinstance(x, Handle) and x._spec.device.device_id is not None for x in map(unmarked, inputs)]
        return "gpu" if any(on_gpu) else "cpu"
    return "cpu" if str(unmarked(device)) == "cpu" else "gpu"


def _call_site(body: CodeType) -> tuple[tuple[CodeType, int], ...]:
    """The line at which the user's program called ndd, and the calls that led there from the body of the loop: a function that is
    called twice in it makes two sites. If the body is not among the callers (a generator of the user's has the loop), the
    innermost place alone."""
    frame: FrameType | None = user_frame()
    path = []
    while frame is not None:
        path.append((frame.f_code, frame.f_lasti))
        if frame.f_code is body:
            return tuple(path)
        frame = frame.f_back
    return (path[0],)
