"""The arguments of a pipeline's constructor as its attributes, and DALI's methods that have no effect here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.checkpoints import restored_states


class StreamPolicy(Enum):
    """How DALI's executor assigns streams; accepted, without effect."""

    UNSPECIFIED = "unspecified"
    SINGLE = "single"
    PER_BACKEND = "per backend"
    PER_OPERATOR = "per operator"


class OperatorConcurrency(Enum):
    """Which operators DALI's executor runs at once; accepted, without effect."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    BACKEND = "backend"
    FULL = "full"


def _whole(name: str, value: Any) -> int | None:
    """An argument that is a count; TypeError unless it is an integer."""
    if value is None or isinstance(value, int | np.integer):
        return None if value is None else int(value)
    raise TypeError(f"Pipeline: {name}: expected an integer, got {value!r}")


def _queue_sizes(depth: Any) -> tuple[int, int]:
    if isinstance(depth, dict) and not {"cpu_size", "gpu_size"} <= depth.keys():
        raise KeyError(f"Pipeline: prefetch_queue_depth: a dict needs cpu_size and gpu_size, got {depth!r}")
    sizes = (depth["cpu_size"], depth["gpu_size"]) if isinstance(depth, dict) else (depth, depth)
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(
            f"Pipeline: prefetch_queue_depth: expected a number, or a dict of cpu_size and gpu_size, got {depth!r}"
        )
    if min(sizes) < 1:
        raise ValueError(f"Pipeline: prefetch_queue_depth must be at least 1, got {depth}")
    return sizes


def _is_type(value: Any) -> bool:
    try:
        return ndd.dtype(value) is not None
    except (KeyError, TypeError, ValueError):
        return False


def _expected(name: str, setting: Any, kind: str, is_one: Callable[[Any], bool]) -> Any:
    """The required property of outputs, checked."""
    for value in setting if isinstance(setting, list | tuple) else [setting]:
        none_of_a_kind = name == "output_dtype" and value == ndd.types.NO_TYPE
        if none_of_a_kind or (name == "output_ndim" and isinstance(value, int) and value < 0):
            raise ValueError(f"Pipeline: {name}: expected {kind}, got {value!r}")
        if value is not None and not is_one(value):
            raise TypeError(f"Pipeline: {name}: expected {kind}, a list of them or None, got {value!r}")
    return setting


class PipelineOptions:
    """The constructor of `Pipeline`, which documents the arguments."""

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: Any = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        output_dtype: Any = None,
        output_ndim: Any = None,
        output_layout: Any = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: Any = None,
        concurrency: Any = None,
    ):
        self._max_batch_size, self._num_threads = _whole("batch_size", batch_size), _whole("num_threads", num_threads)
        if self._num_threads is not None and self._num_threads < 1:
            raise ValueError(f"num_threads must be at least 1, got {num_threads}")
        self._device_id = None if device_id in (None, -99999) else _whole("device_id", device_id)
        number = _whole("seed", seed)
        self._seed = None if number is None or number < 0 else number
        #: As it was given.
        self.prefetch_queue_depth = prefetch_queue_depth
        self.exec_separated = isinstance(prefetch_queue_depth, dict)
        self.cpu_queue_size, self.gpu_queue_size = _queue_sizes(prefetch_queue_depth)
        self._depth = max(self.cpu_queue_size, self.gpu_queue_size)
        self.exec_pipelined, self.exec_async = exec_pipelined, exec_async
        chosen = next((e for e in (exec_dynamic, experimental_exec_dynamic) if e is not None), None)
        self.exec_dynamic = chosen if chosen is not None or self.exec_separated else True
        self.bytes_per_sample, self.set_affinity = bytes_per_sample, set_affinity
        self.max_streams = -1 if max_streams is None else max_streams
        self.default_cuda_stream_priority = default_cuda_stream_priority or 0
        self.enable_memory_stats, self.enable_checkpointing = enable_memory_stats, enable_checkpointing
        self.py_num_workers, self.py_start_method = py_num_workers, py_start_method
        self.stream_policy, self.concurrency = stream_policy, concurrency
        self._restored: dict[str, Any] | None = None
        self._restored_iterator: dict[str, Any] | None = None  # the position of the iterator in the checkpoint
        if checkpoint is not None:
            self._restored, self._restored_iterator = restored_states(checkpoint)
        self._output_checks = (
            _expected("output_dtype", output_dtype, "an element type", _is_type),
            _expected("output_ndim", output_ndim, "a number of at least 0", lambda v: isinstance(v, int)),
            _expected("output_layout", output_layout, "a string", lambda v: isinstance(v, str)),
        )
        self._prepare()

    def _prepare(self) -> None:
        """The state of a new pipeline."""

    @property
    def max_batch_size(self) -> int:
        """The batch size given at construction."""
        if not self._max_batch_size:
            raise ValueError("A pipeline needs a batch_size: pass it to the constructor or to @pipeline_def")
        return self._max_batch_size

    @property
    def batch_size(self) -> int:
        """Deprecated: `max_batch_size`."""
        warnings.warn("batch_size is deprecated, please use max_batch_size instead", Warning, stacklevel=2)
        return self.max_batch_size

    @property
    def num_threads(self) -> int:
        """Threads of CPU operators."""
        return self._num_threads or ndd.get_num_threads()

    @property
    def device_id(self) -> int | None:
        """The GPU, None on the CPU."""
        return self._device_id

    @property
    def seed(self) -> int | None:
        """The seed of the random operators."""
        return self._seed

    # ---- methods that code for DALI may call, without effect here

    def start_py_workers(self) -> None:
        """Nothing to do."""

    def external_source_shm_statistics(self) -> dict[str, Any]:
        """DALI's keys, without entries: no source runs in a process of its own."""
        return {"capacities": [], "per_sample_capacities": []}
