"""The launches of `ndd.normalize` on the GPU: statistics in double, then one pass over the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd.ops.tensor.elementwise import index_type
from ndd.reductions import over_axes

# For each sample: the address of float32 numbers, and how many there are (one for each kept element, or a single one).
Numbers = tuple[np.ndarray, np.ndarray]


class Launches:
    """One call of `normalize`. Memory lives until the last launch is queued."""

    def __init__(
        self,
        launch: Any,
        x: Any,
        axes: tuple[int, ...],
        ddof: int,
        epsilon: float,
        scale: float,
        shift: float,
        batch: bool,
    ):
        self.launch, self.x, self.axes, self.ddof, self.shift, self.batch = launch, x, axes, ddof, shift, batch
        self.shared = {"add": np.float32(epsilon), "times": np.float32(scale)}
        kept_axes = tuple(d for d in range(x.ndim) if d not in axes)
        self.kept = launch.remember("kept", lambda: over_axes.counts(x.shapes, kept_axes))
        count = launch.remember("count", lambda: over_axes.counts(x.shapes, axes))
        self.count = np.broadcast_to(count.sum(), count.shape) if batch else count
        self.alive: list[Any] = []

    def run(self, centres: list[Any], factors: list[np.ndarray] | None) -> None:
        """Computes what is not given, then normalizes."""
        stages = self.launch.remember("moments", lambda: over_axes.stages_of(self.x.shapes, self.axes))
        if centres[0] is None and factors is None and not self.batch and len(stages) <= 2:
            mean, factor = self._both(stages)
        else:
            mean = self._finished("centre", "sum", None) if centres[0] is None else self._uploaded(centres)
            factor = self._finished("factor", "deviation", mean) if factors is None else self._uploaded(factors)
        shapes = self.x.shapes
        self.launch(
            "normalize",
            per_sample={
                "mean_steps": over_axes.mean_steps(shapes, self.axes, mean[1]),
                "factor_steps": over_axes.mean_steps(shapes, self.axes, factor[1]),
            },
            addresses={"mean_address": mean[0], "factor_address": factor[0]},
            shared={"move": np.float32(self.shift)},
            macros={"INDEX": index_type(shapes)},
            kept="all",
        )

    def _room(self, sizes: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
        memory, addresses = over_axes.scratch_for(self.launch, sizes, dtype)
        self.alive.append(memory)
        return addresses

    def _uploaded(self, arrays: list[np.ndarray]) -> Numbers:
        sizes = np.array([a.size for a in arrays], np.int64)
        memory = self.launch.upload(np.concatenate([np.asarray(a, np.float32).reshape(-1) for a in arrays]))
        self.alive.append(memory)
        return memory.data_ptr() + 4 * (np.cumsum(sizes) - sizes), sizes

    def _both(self, stages: list[tuple[np.ndarray, ...]]) -> tuple[Numbers, Numbers]:
        """Mean and factor from one reading of the values."""
        centre, factor = self._room(self.kept), self._room(self.kept)
        source = np.zeros(self.launch.n, np.int64)
        divisor = {"total": self.count.astype(np.float64), "divisor": (self.count - self.ddof).astype(np.float64)}
        for number, (outer, rows, inner, splits) in enumerate(stages):
            last, sizes = number == len(stages) - 1, outer * splits * inner
            target = source if last else self._room(2 * sizes, np.float64)
            self.launch(
                "moments", sizes, kept=("moments", number), shared=self.shared,
                per_sample={
                    "outer": outer, "rows": rows, "inner": inner, "splits": splits, "line": stages[0][1] * inner, **divisor
                },
                addresses={"source": source, "target": target, "centre": centre, "factor": factor},
                macros={"MOMENTS": "1", "FROM_INPUT": str(int(number == 0)), "LAST": str(int(last))},
            )  # fmt: skip
            source = target
        return (centre, self.kept), (factor, self.kept)

    def _finished(self, kernel: str, kind: str, about: Numbers | None) -> Numbers:
        """Means ("centre") or factors ("factor") from accumulated sums."""
        launch, x = self.launch, self.x
        divisor = self.count if kernel == "centre" else self.count - self.ddof
        per_sample = {"divisor": divisor.astype(np.float64)}
        single = np.dtype(np.float32)
        if not self.batch:
            target = self._room(self.kept)
            over_axes.accumulate_on_gpu(
                launch, kind, x, self.axes, single, about, into=target, per_sample=per_sample, shared=self.shared,
                macros={"FINISH": "3" if kernel == "centre" else "4"},
            )  # fmt: skip
            return target, self.kept
        target = np.repeat(self._room(self.kept[:1]), launch.n)
        memory, sums, total = over_axes.accumulate_on_gpu(launch, kind, x, self.axes, single, about)
        self.alive.append(memory)
        launch(
            kernel, int(self.kept[0]), kept=kernel, addresses={"sums": sums, "target": target}, shared=self.shared,
            per_sample={**per_sample, "kept": self.kept},
            macros={"ACC": over_axes.ACC_TYPES[total.kind], "SUMS": "1"},
        )  # fmt: skip
        return target, self.kept
