"""`readers.Mix`: samples of several readers in one stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ndd.readers.definition import Definition
from ndd.readers.options import Options
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.sampling.sampler import NumberStream, Order, Position, Sampled, Shards, place_after
from ndd.readers.stores.mixed import MixedStore
from ndd.readers.stores.records import RecordStore

_MASK = (1 << 64) - 1


@dataclass
class MixOptions(Options):
    """The arguments of a mixture: they choose the order of its parts.

    Attributes:
        mixture: the parts, after they have been opened.
        epoch_size: the number of samples of an epoch; None: all samples.
        shares: the weights; None: the sizes.
    """

    mixture: list[_Part] = field(default_factory=list)
    shares: tuple[float, ...] | None = None
    epoch_size: int | None = None

    def order_fields(self) -> dict[str, Any]:
        """The options of every reader, and the mixture."""
        mixture = None if (self.shares, self.epoch_size) == (None, None) else f"{self.shares} {self.epoch_size}"
        return {**super().order_fields(), **({} if mixture is None else {"mixture": mixture})}

    def order(self, shards: Shards, permuted: bool, seed: int) -> Order:
        """The mixture of each epoch, or the order of a sampler."""
        if self.sampler is not None:
            return super().order(shards, permuted, seed)
        parts: list[tuple[_Part, Order]] = []
        for number, part in enumerate(self.mixture):
            options: Options = part.reader._options
            own = Shards(part.size)
            if self.order_name == "stored":
                order = options.order(own, part.reader._permutes_first, options.order_seed)
            else:
                order = super().order(own, part.reader._permutes_first, seed + number)
            parts.append((part, order))
        return Sampled(shards, partial(_mixed, parts, self.epoch_size or shards.size, seed))


@dataclass
class _Part:
    """A reader of a mixture: its number of samples, the number of samples of the parts before it, and its share of each
    epoch."""

    reader: Reader
    size: int
    first: int
    share: tuple[float, float]


class Mix(Reader):
    """Mixes the samples of several readers with equal outputs: each epoch holds a share of each reader, at random places.

    The shares are exact: after any number of epochs a reader with weight 0.3 has contributed 30 % of the samples, rounded. Each
    reader goes through its own data again and again, in its own order (`shuffle`, `random_shuffle`, `sampler` and so on, without
    shards), or in the order of the mixture if that has one. The order depends only on the seeds and the epoch, so shards, exact
    resume on any number of ranks and `reader[i]` work. `source_info` names the file or record of each sample, and `indices` its
    number: the samples of the first reader come first, then those of the second.

    The mixture does not change the state of the readers; they may be used elsewhere.

    Args:
        readers: the readers, in a list. The mixture shares their open files.
        weights: a positive number for each reader, its share of the samples. Default: its size, so that an epoch has each sample
            once.
        epoch_size: the number of samples of an epoch. Default, and maximum: the samples of all readers together.

    Raises: TypeError for weights that are not numbers. ValueError for an empty list of readers, a wrong number of weights,
    weights that are not positive, readers with different outputs, or readers that compute their outputs from records (`Numpy`,
    videos). Errors of the readers.

    >>> import ndd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for i in range(8):
    ...     _ = (folder / f"{i}.jpg").write_bytes(b"...")
    >>> paths = sorted(map(str, folder.iterdir()))
    >>> real = ndd.readers.File(files=paths[:6])
    >>> synthetic = ndd.readers.File(files=paths[6:], labels=[10, 11])
    >>> reader = ndd.readers.Mix([real, synthetic], weights=[1, 1])
    >>> sorted(label.torch().item() for data, label in reader.next_epoch())
    [0, 1, 2, 3, 10, 10, 11, 11]
    """

    _leading = ("readers",)
    _options_type = MixOptions

    def __init__(self, *positional: Any, **arguments: Any):
        super().__init__(*positional, **arguments)
        options: Any = self._options
        weights = self._arguments.get("weights")
        try:
            options.shares = None if weights is None else tuple(map(float, weights))
        except (TypeError, ValueError):
            raise TypeError(
                f"{self._display}: weights: expected a number for each reader, got {weights!r:.80}"
            ) from None
        options.epoch_size = self._arguments.get("epoch_size")

    @classmethod
    def _outputs(cls, *, readers: Any = (), **arguments: Any) -> tuple[Output, ...]:
        listed = list(readers) if isinstance(readers, list | tuple) else [readers]
        if not listed or not all(isinstance(reader, Reader) for reader in listed):
            raise ValueError(f"{cls._display}: readers: expected a list of readers, got {readers!r:.80}")
        declared = [reader._session.outputs for reader in listed]
        for reader, outputs in zip(listed, declared, strict=True):
            if len(outputs) != len(declared[0]) or reader.gives_dicts:
                raise ValueError(
                    f"{cls._display}: readers: expected readers with tuples of {len(declared[0])}, got "
                    f"{type(reader).__name__} of {len(outputs)} outputs"
                )
            if type(reader)._present is not Definition._present or any(output.device == "gpu" for output in outputs):
                raise ValueError(
                    f"{cls._display}: readers: {type(reader).__name__} computes its outputs from what it reads"
                )
        return tuple(_agreed(outputs) for outputs in zip(*declared, strict=True))

    def _open(
        self, *, readers: Sequence[Reader], weights: Sequence[float] | None = None, epoch_size: int | None = None
    ) -> RecordStore:
        stores: list[RecordStore] = []
        for reader in readers:
            with reader._session.entered():
                stores.append(reader._session.opened()[0])
        sizes = [len(store) for store in stores]
        shares = [float(weight) for weight in (sizes if weights is None else weights)]
        if len(shares) != len(stores) or not all(0 < share < np.inf for share in shares):
            raise ValueError(f"{self._display}: weights: expected a positive number for each reader, got {weights!r}")
        if epoch_size is not None and not 0 < epoch_size <= sum(sizes):
            raise ValueError(f"{self._display}: epoch_size: expected 1 to {sum(sizes)}, got {epoch_size}")
        ends = np.cumsum([0.0, *shares]) / sum(shares)
        firsts = np.cumsum([0, *sizes]).tolist()
        options: Any = self._options
        parts = zip(readers, sizes, firsts, pairwise(ends.tolist()), strict=False)
        options.mixture = [_Part(*part) for part in parts]
        return MixedStore(stores)


def _agreed(outputs: Sequence[Output]) -> Output:
    """The common description of an output of all readers."""
    first = outputs[0]
    same = {name: getattr(first, name) if len({getattr(o, name) for o in outputs}) == 1 else None for name in _FACTS}
    return dataclasses.replace(first, **same)


_FACTS = ("dtype", "ndim", "layout")


def _mixed(parts: Sequence[tuple[_Part, Order]], size: int, seed: int, epoch: int) -> np.ndarray:
    """The numbers of the samples of an epoch, in order."""
    which = np.zeros(size, np.int32)
    numbers: list[np.ndarray] = []
    end = 0
    for k, (part, order) in enumerate(parts):
        before, after = _drawn_before(part.share, size, epoch), _drawn_before(part.share, size, epoch + 1)
        which[end : end + after - before] = k
        end += after - before
        if after > before:
            place = place_after(order, Position(), before, 1)
            numbers.append(part.first + NumberStream(order, after - before, place).take())
        else:
            numbers.append(np.empty(0, np.int64))
    if len(parts) > 1:
        words = np.random.Philox(key=((epoch & _MASK) << 64) | (seed & _MASK)).random_raw(size)
        which = which[np.argsort(words, kind="stable")]
    mixed = np.empty(size, np.int64)
    for k, own in enumerate(numbers):
        mixed[which == k] = own
    return mixed


def _drawn_before(share: tuple[float, float], size: int, epochs: int) -> int:
    """The number of samples that a reader has contributed after some epochs: the difference of two rounded places, so that the
    numbers of all readers add up."""
    first, last = (round(bound * size * epochs) for bound in share)
    return last - first
