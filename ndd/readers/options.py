"""The arguments that all readers share: their meaning, their checks, and the order and shards that they select."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from torch.utils.data import get_worker_info

from ndd._execution.rank import rank_of_world
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._tensor.invariant import unmarked
from ndd._tensor.limits import check_sample_count
from ndd._tensor.user_line import warn_user
from ndd.readers.sampling.sampler import Buffered, Global, Order, Reshuffled, Sampled, Shards, check_sampler

DEFAULT_EPOCH_SEED = 524287  # DALI's default of shuffle_after_epoch_seed

_MOST_AHEAD = 1 << 14  # batches that are read ahead: all of them are in memory


@dataclass
class Options:
    """The arguments that every reader takes besides its own; this list becomes part of each reader's docstring.

    Attributes:
        max_batch_size: the default batch size of `next_epoch()`, and the largest that it accepts.
        name: ignored (DALI's operator name).
        device: the device of the outputs that can be on a GPU: "cpu" or, if the reader has such outputs, "gpu".
        num_inputs: 0 or None.
        dont_use_mmap: without effect. Files are always read by system calls, with one copy, as with DALI's `True`. If a file
            becomes shorter while it is read, the missing records are errors.
        random_shuffle: draw samples from a buffer of `initial_fill` samples. If samples are single files, one fixed
            permutation of all of them comes first. The order equals DALI's for the same `seed`.
        initial_fill: the size of that buffer. It holds sample numbers, not data: a large buffer costs nothing.
        shuffle_after_epoch: a new permutation of all samples for each epoch, the same for all shards; equal to DALI's
            for the same `shuffle_after_epoch_seed`.
        shuffle_after_epoch_seed: its seed. The default is a fixed seed.
        seed: the seed of `random_shuffle` and `shuffle="global"`. The default is a fixed seed.
        num_shards: the number of processes that share the data set.
        shard_id: the part of it that this process reads: samples floor(id * N / num) to floor((id + 1) * N / num) - 1.
        stick_to_shard: read the same shard in every epoch, not the next one.
        pad_last_batch: repeat a shard's last sample until the shard is as long as the longest one and fills whole
            batches. All shards then have the same number of batches.
        prefetch_queue_depth: the number of batches to read ahead, besides the next one.
        read_ahead: read twice as many batches ahead.
        skip_cached_images: accepted, without effect: there is no decoder cache.
        tensor_init_bytes: accepted, without effect: memory is pooled.
        lazy_init: accepted, without effect: nothing is opened before the first sample.
        enable_checkpointing: `get_state` works without it. As in DALI it changes the order of `shuffle_after_epoch`: each
            epoch then shuffles the stored order, not the order of the previous epoch.
        shuffle: "global" for a full and independent permutation in each epoch, a pure function of (seed, epoch).
            Each shard then takes its share of the permutation; with shard="auto" the samples go to the processes round robin,
            so that the samples of a step are the same for any number of processes with the same global batch size. (Not in DALI.)
        sampler: the sample numbers of each epoch: a sequence, an object that can be iterated in each epoch (a torch
            Sampler; its `set_epoch` is called if it has one) or a function of the epoch number. It is called while the
            previous epoch is still running. For an exact resume it must return the same numbers again. (Not in DALI.)
        shard: "auto" takes shard_id and num_shards from torch.distributed, or from RANK and WORLD_SIZE. All processes then
            make the same number of steps in an epoch, even if their shards differ by a sample (except with last_batch="partial"
            and single samples), and a state may be that of other ranks, see `set_state`. (Not in DALI.)
        on_error: "raise" raises the error of a broken record at its batch. "skip" skips the record: the batch is smaller,
            `batch.dropped` and `epoch.dropped` name the missing samples, `reader.skipped` lists all of them, and empty batches
            are skipped. Out-of-memory errors and a store that does not answer are always raised. (Not in DALI.)
    """

    max_batch_size: int | None = None
    name: str | None = None
    device: DeviceLike = "cpu"
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
    shuffle: Literal["global"] | None = None
    sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None
    shard: Literal["auto"] | None = None
    on_error: Literal["raise", "skip"] = "raise"

    def check_early(self, reader: str) -> None:
        """The checks in the constructor: raises ValueError and TypeError."""
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
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'{reader}: on_error: expected "raise" or "skip", got {self.on_error!r}')
        if self.shard == "auto" and (self.num_shards, self.shard_id) != (1, 0):
            raise ValueError(
                f'{reader}: shard="auto" takes num_shards and shard_id from torch.distributed; remove them'
            )
        asked = [n for n in ("random_shuffle", "shuffle_after_epoch", "shuffle") if getattr(self, n)]
        if self.sampler is not None:
            check_sampler(reader, self.sampler)
            if asked:
                raise ValueError(f"{reader}: sampler decides the order itself; drop {asked[0]}")
        if self.shuffle and len(asked) > 1:
            raise ValueError(f'{reader}: shuffle="global" and {asked[0]} exclude each other')

    def check_late(self, reader: str) -> None:
        """The checks that DALI makes only at the first sample: raises RuntimeError."""
        if self.shuffle_after_epoch and self.random_shuffle:
            raise RuntimeError(f"{reader}: shuffle_after_epoch and random_shuffle cannot be both true")
        if self.shuffle_after_epoch and self.stick_to_shard:
            raise RuntimeError(f"{reader}: shuffle_after_epoch and stick_to_shard cannot be both true")
        if not 1 <= self.prefetch_queue_depth <= _MOST_AHEAD:
            expected = f"expected at least 1 and at most {_MOST_AHEAD:,}, got {self.prefetch_queue_depth}"
            raise RuntimeError(f"{reader}: prefetch_queue_depth: {expected}")
        if self.tensor_init_bytes < 0:
            raise RuntimeError(f"{reader}: tensor_init_bytes: expected a size from 0, got {self.tensor_init_bytes}")

    sent_place = None  # of the process whose DataLoader started this one: workers have its rank

    def place(self) -> list[int]:
        """The shard of this process and the number of shards."""
        if self.shard != "auto":
            return [self.shard_id, self.num_shards]
        place = list(rank_of_world())
        return self.sent_place if place == [0, 1] and self.sent_place and get_worker_info() else place

    def shards(self, size: int) -> Shards:
        """The division of the samples, and the part of this process."""
        index, count = self.place()
        return Shards(size, count, index, self.stick_to_shard, self.pad_last_batch, self.shard == "auto")

    def wanted_batch(self, reader: str, batch_size: Any, free: bool) -> int | None:
        """The batch size of an epoch, `max_batch_size` by default; ValueError for a larger one, unless one is in use."""
        size = check_batch_size(reader, batch_size)
        largest = check_batch_size(reader, self.max_batch_size, "max_batch_size")
        if size is None:
            return largest
        if largest is not None and size > largest and free:
            raise ValueError(
                f"{reader}: `batch_size` {size} is larger than the `max_batch_size` {largest} specified when the reader was made"
            )
        return size

    def warn_of_small_buffer(self, reader: str, permuted: bool, size: int) -> None:
        """Warns if a buffer shuffles only a small part of the samples."""
        if self.random_shuffle and not permuted and self.initial_fill * 4 < size:
            warn_user(
                f"{reader}: random_shuffle draws from initial_fill={self.initial_fill} samples at a time, "
                f'and the {size} samples are read in the order they are stored. shuffle="global" shuffles all of them.'
            )

    @property
    def order_name(self) -> str:
        """The argument that decides the order, "stored" if there is none."""
        if self.sampler is not None:
            return "sampler"
        names = [n for n in ("shuffle", "random_shuffle", "shuffle_after_epoch") if getattr(self, n)]
        return names[0] if names else "stored"

    def order_fields(self) -> dict[str, Any]:
        """The fields in which a saved state must agree, besides the data."""
        return {
            "order": self.order_name + (" with enable_checkpointing" if self._afresh else ""),
            "fill": self.initial_fill if self.order_name == "random_shuffle" else None,
            "stick": self.stick_to_shard,
            "pad": self.pad_last_batch,
        }

    def order(self, shards: Shards, permuted: bool, seed: int) -> Order:
        """The order that the arguments select."""
        name = self.order_name
        if name == "sampler":
            return Sampled(shards, self.sampler)
        if name == "shuffle":
            return Global(shards, seed)
        if name == "random_shuffle":
            return Buffered(shards, self.initial_fill, seed, permuted)
        if name == "shuffle_after_epoch":
            return Reshuffled(shards, seed, self._afresh)
        return Order(shards)

    @property
    def _afresh(self) -> bool:
        return self.enable_checkpointing and self.order_name == "shuffle_after_epoch"

    @property
    def order_seed(self) -> int:
        """The seed of the selected order."""
        if self.order_name != "shuffle_after_epoch":
            return self.seed
        return DEFAULT_EPOCH_SEED if self.shuffle_after_epoch_seed is None else self.shuffle_after_epoch_seed


def plain(value: Any) -> Any:
    """A Tensor, Batch or NumPy value as Python numbers and lists; anything else unchanged."""
    value = unmarked(value)
    if isinstance(value, Batch):
        return [plain(sample) for sample in value]
    if isinstance(value, Tensor):
        value = value.cpu().__array__()
    if hasattr(value, "dtype") and hasattr(value, "tolist") and not callable(value):
        return value.tolist()
    return value


def listed_numbers(reader: str, indices: Any) -> list[Any]:
    """The requested sample numbers. Raises TypeError for a single number."""
    numbers = plain(indices)
    if not isinstance(numbers, Iterable) or isinstance(numbers, str):
        raise TypeError(
            f"{reader}.fetch: expected a list of sample numbers, got {indices!r}. reader[i] returns one sample"
        )
    return list(numbers)


def check_batch_size(reader: str, batch_size: Any, name: str = "batch_size") -> int | None:
    """A batch size as an int, or None. Raises RuntimeError, as DALI does, for anything but a positive integer."""
    size = plain(batch_size)
    if size is None or (type(size) is int and size > 0):
        return size and check_sample_count(reader, size, RuntimeError)
    raise RuntimeError(f"{reader}: {name}: expected a positive integer, got {batch_size!r}")


def check_device(reader: str, device: Any, allowed: tuple[str, ...]) -> str:
    """Returns "cpu" or "gpu". Raises ValueError for other values, and for a device that the reader does not support."""
    kind = str(device).partition(":")[0]
    kind = "gpu" if kind == "cuda" else kind
    if kind not in ("cpu", "gpu"):
        raise ValueError(f"{reader}: invalid device type: {kind}. Expected 'cpu' or 'gpu'")
    if kind not in allowed:
        raise ValueError(f"{reader}: invalid device {kind!r}: this reader runs on {' or '.join(allowed)}")
    return kind
