"""The arguments that all readers share: their conversion, their checks, and the order and shards they ask for."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from ndd._tensor import Batch, Tensor
from ndd.readers.sampler import Buffered, Global, Order, Reshuffled, Sampled, Shards, check_sampler

DEFAULT_EPOCH_SEED = 524287  # what DALI uses when shuffle_after_epoch_seed is not given


@dataclass
class Options:
    """The arguments of the base reader, as Python values. Their meaning is documented at `readers.File`."""

    max_batch_size: int | None = None
    name: str | None = None
    device: Any = "cpu"
    num_inputs: int | None = None
    dont_use_mmap: bool = False
    initial_fill: int = 1024
    lazy_init: bool = False
    num_shards: int = 1
    pad_last_batch: bool = False
    prefetch_queue_depth: int = 1
    random_shuffle: bool = False
    read_ahead: bool = False
    seed: int = -1
    shard_id: int = 0
    shuffle_after_epoch: bool = False
    shuffle_after_epoch_seed: int | None = None
    skip_cached_images: bool = False
    stick_to_shard: bool = False
    tensor_init_bytes: int = 1 << 20
    enable_checkpointing: bool = False
    shuffle: str | None = None
    sampler: Any = None
    shard: str | None = None

    def check_early(self, reader: str) -> None:
        """What is refused when the reader is made: ValueError and TypeError."""
        if self.num_shards < 1:
            raise ValueError(f"{reader}: num_shards: expected a positive number of shards, got {self.num_shards}")
        if not 0 <= self.shard_id < self.num_shards:
            raise ValueError(
                f"{reader}: shard_id={self.shard_id} is invalid: expected a number in [0..{self.num_shards - 1}]"
            )
        if self.random_shuffle and self.initial_fill < 1:
            raise ValueError(f"{reader}: initial_fill: expected a buffer of at least 1 sample, got {self.initial_fill}")
        if self.num_inputs:
            raise ValueError(f"{reader}: num_inputs: a reader has no inputs, got {self.num_inputs}")
        if self.shuffle not in (None, "global"):
            raise ValueError(f'{reader}: shuffle: expected "global" or None, got {self.shuffle!r}')
        if self.shard not in (None, "auto"):
            raise ValueError(f'{reader}: shard: expected "auto" or None, got {self.shard!r}')
        if self.shard == "auto" and (self.num_shards, self.shard_id) != (1, 0):
            raise ValueError(f'{reader}: shard="auto" takes num_shards and shard_id from torch.distributed; drop them')
        asked = [n for n in ("random_shuffle", "shuffle_after_epoch", "shuffle") if getattr(self, n)]
        if self.sampler is not None:
            check_sampler(self.sampler)
            if asked:
                raise ValueError(f"{reader}: sampler decides the order itself; drop {asked[0]}")
        if self.shuffle and len(asked) > 1:
            raise ValueError(f'{reader}: shuffle="global" and {asked[0]} exclude each other')

    def check_late(self, reader: str) -> None:
        """What DALI refuses only when the first sample is asked for: RuntimeError."""
        if self.shuffle_after_epoch and self.random_shuffle:
            raise RuntimeError(f"{reader}: shuffle_after_epoch and random_shuffle cannot be both true")
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise RuntimeError(f"{reader}: shuffle_after_epoch and stick_to_shard cannot be both true")
        if self.prefetch_queue_depth < 1:
            raise RuntimeError(f"{reader}: prefetch_queue_depth: expected at least 1, got {self.prefetch_queue_depth}")
        if self.tensor_init_bytes < 0:
            raise RuntimeError(f"{reader}: tensor_init_bytes: expected a size from 0, got {self.tensor_init_bytes}")

    def shards(self, size: int) -> Shards:
        """How the samples are divided, and which part is ours."""
        index, count = distributed_shard() if self.shard == "auto" else (self.shard_id, self.num_shards)
        return Shards(size, count, index, self.stick_to_shard, self.pad_last_batch)

    @property
    def order_name(self) -> str:
        """The argument that decides the order, "stored" if there is none."""
        if self.sampler is not None:
            return "sampler"
        names = [n for n in ("shuffle", "random_shuffle", "shuffle_after_epoch") if getattr(self, n)]
        return names[0] if names else "stored"

    def order_fields(self) -> dict[str, Any]:
        """What a saved state must agree with besides the data."""
        return {
            "order": self.order_name,
            "fill": self.initial_fill if self.order_name == "random_shuffle" else None,
            "stick": self.stick_to_shard,
            "pad": self.pad_last_batch,
        }

    def order(self, shards: Shards, permuted: bool, seed: int) -> Order:
        """The order that the arguments ask for."""
        name = self.order_name
        if name == "sampler":
            return Sampled(shards, self.sampler)
        if name == "shuffle":
            return Global(shards, seed)
        if name == "random_shuffle":
            return Buffered(shards, self.initial_fill, seed, permuted)
        if name == "shuffle_after_epoch":
            return Reshuffled(shards, seed)
        return Order(shards)

    @property
    def order_seed(self) -> int:
        """The seed of the order in force."""
        if self.order_name != "shuffle_after_epoch":
            return self.seed
        return DEFAULT_EPOCH_SEED if self.shuffle_after_epoch_seed is None else self.shuffle_after_epoch_seed


def split_options(reader_type: type, given: dict[str, Any]) -> tuple[Options, dict[str, Any]]:
    """A reader's `__init__` locals as the shared options and the rest. None stands for the default, as in DALI;
    values of ndd and NumPy become Python's."""
    shared: dict[str, Any] = {}
    own: dict[str, Any] = {}
    known = {field.name: field for field in fields(Options)}
    for key, default in _defaults(reader_type).items():
        value = default if given[key] is None else plain(given[key])
        if key not in known:
            own[key] = value
        elif key in _NUMBERS and value is not None:
            shared[key] = _number(key, value)
        elif isinstance(known[key].default, bool):
            shared[key] = bool(value)
        else:
            shared[key] = value
    return Options(**shared), own


def plain(value: Any) -> Any:
    """A Tensor, Batch or NumPy value as Python numbers and lists; anything else as it is."""
    if isinstance(value, Batch):
        return [plain(sample) for sample in value]
    if isinstance(value, Tensor):
        value = value.cpu().__array__()
    if hasattr(value, "dtype") and hasattr(value, "tolist") and not callable(value):
        return value.tolist()
    return value


def check_batch_size(batch_size: Any) -> int | None:
    """A batch size as an int, or None. RuntimeError, as in DALI, for anything that is no positive integer."""
    size = plain(batch_size)
    if size is None or (type(size) is int and size > 0):
        return size
    raise RuntimeError(f"batch_size: expected a positive integer, got {batch_size!r}")


def check_device(reader: str, device: Any, allowed: tuple[str, ...]) -> str:
    """ "cpu" or "gpu"; ValueError for what is no device or one the reader does not run on."""
    kind = str(device).partition(":")[0]
    kind = "gpu" if kind == "cuda" else kind
    if kind not in ("cpu", "gpu"):
        raise ValueError(f"{reader}: invalid device type: {kind}. Expected 'cpu' or 'gpu'")
    if kind not in allowed:
        raise ValueError(f"{reader}: invalid device {kind!r}: this reader runs on {' or '.join(allowed)}")
    return kind


def distributed_shard() -> tuple[int, int]:
    """(rank, world size) of torch.distributed if it is initialised, else what torchrun put into the environment,
    else (0, 1)."""
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 1


_NUMBERS = {field.name for field in fields(Options) if field.type in ("int", "int | None")}


def _number(key: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or (number != value and not isinstance(value, str)):
        raise ValueError(f"{key}: expected an integer, got {value!r}")
    return number


@cache
def _defaults(reader_type: type) -> dict[str, Any]:
    """The defaults in a reader's signature."""
    parameters = inspect.signature(reader_type.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.name != "self"}
