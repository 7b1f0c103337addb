"""The memory that the results of a pipeline's calls take: `Pipeline.executor_statistics()`."""

from __future__ import annotations

from typing import Any


class MemoryStatistics:
    """The largest sizes that the results of each call had in any run, in bytes."""

    def __init__(self) -> None:
        self.sizes: dict[str, dict[str, list[int]]] = {}
        self._watched: dict[tuple[str, Any], Any] = {}

    def watch(self, node: Any, name: str, place: Any) -> None:
        """Notes that a call of that name made a node."""
        self._watched[name, place] = node

    def measure(self, run: Any) -> None:
        """Notes the sizes at the end of a run, while all its values exist."""
        rows: dict[str, list[tuple[int, int]]] = {}
        for (name, _), node in self._watched.items():
            if node._step not in run.values:
                continue  # no output needs it
            batch = run.of(node)
            sizes = [sample.nbytes for sample in batch.tensors]
            device = batch.device.device_type.upper()
            rows.setdefault(f"{device}_{name}", []).append((sum(sizes), max(sizes, default=0)))
        for key, sizes_of_outputs in rows.items():
            for k, kind in enumerate(("", "max_")):
                now = [sizes[k] for sizes in sizes_of_outputs]
                for size_kind in ("real", "reserved"):
                    title = f"{kind}{size_kind}_memory_size"
                    before = self.sizes.setdefault(key, {}).get(title, now)
                    self.sizes[key][title] = [max(pair) for pair in zip(before, now, strict=True)]
