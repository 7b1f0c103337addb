"""The encoded pictures of one call (headers, windows, pixels, errors), and `decodes`, which makes an operator a decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._execution import observation
from ndd._operator import Call, Operand, fusion
from ndd._tensor import Store
from ndd._tensor.extent_inference import infer_extents
from ndd._tensor.memory import host_empty
from ndd._tensor.small_arrays import equal_rows, few_zeros
from ndd._tensor.store import empty_store
from ndd.decoders.backend import Decoded, Options, Window
from ndd.decoders.batch_backends import Backends, describe_others
from ndd.decoders.headers.header import Header
from ndd.decoders.headers.orientation import FIRST_SWAPPED
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.batch_headers import CHANNELS, FACTS, FORMAT, HEIGHT, ORIENTATION, WIDTH
from ndd.decoders.on_error import resolve_pictures
from ndd.decoders.picture import bad_picture, check_size, decode, last_backend, too_large
from ndd.decoders.registry import read_header
from ndd.types import DALIImageType

_UNKNOWN = 1 << 20  # the extents of a picture whose header cannot be read, so that every window fits


class PictureBatch:
    """The encoded pictures of one call, and the known facts of each.

    Attributes:
        facts: int64 `[N, FACTS]`, the headers; `facts[:, FORMAT]` says whether compiled code has read them.
        windows_of: returns the starts and sizes of the windows for pictures of given extents; None for whole pictures.
        windows: int64 `[N, 4]`: y0, x0, y1, x1; None for whole pictures.
        used: the same for the part of a whole picture that is used; None for all of it.
        images: the pixels of single pictures, by number.
        block: the pixels of all pictures, one after the other, if a backend has decoded them into one block; `images` is then
            empty.
        errors: the errors of bad pictures, by number.
        backends: those that may decode pictures of the batch in compiled code on the CPU.
    """

    def __init__(self, call: Call, operand: Operand, arguments: dict[str, Any]):
        self.call = call
        self.operand = operand
        self.arguments = arguments
        self.options = Options.of(**arguments)
        self.sources = operand.source_info
        self.facts = few_zeros((operand.n, FACTS), np.int64)
        self.windows: np.ndarray | None = None
        self.windows_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
        self.used: np.ndarray | None = None
        self.images: dict[int, np.ndarray] = {}
        self.block: np.ndarray | None = None
        self.errors: dict[int, BaseException] = {}
        self.backends: Backends = [("jpeg", _jpeg)]
        self._data: list[np.ndarray] | None = None
        self._headers: dict[int, Header] = {}

    def __len__(self) -> int:
        return self.operand.n

    @property
    def data(self) -> list[np.ndarray]:
        """The bytes of each picture."""
        if self._data is None:
            self._data = [data.reshape(-1) for data in self.operand.arrays]
        return self._data

    def refuse_large(self) -> None:
        """A picture of too many pixels is an error of its sample."""
        pixels = self.facts[:, HEIGHT] * self.facts[:, WIDTH]
        for i in np.flatnonzero(pixels > self.options.limit()).tolist():
            if i not in self.errors:
                self.errors[i] = too_large(self.header(i), self.options)

    def read_headers(self) -> None:
        """Fills the `facts` that compiled code has not filled. A bad header, or one of a picture that is too large, is an error
        of its sample."""
        for i in np.flatnonzero(self.facts[:, FORMAT] == 0).tolist():
            try:
                header = self._headers[i] = read_header(self.data[i])
                check_size(header, self.options)  # a false size may be too large for `facts`
                size = header.height, header.width
                self.facts[i, HEIGHT : ORIENTATION + 1] = *size, header.channels, header.orientation
            except RuntimeError as error:
                self.errors[i] = error
        self.refuse_large()

    def header(self, i: int) -> Header:
        """The header of a picture. RuntimeError if it is bad."""
        header = self._headers.get(i)
        if header is None:
            header = self._headers[i] = read_header(self.data[i])
        return header

    def extents(self) -> np.ndarray:
        """Height and width of each decoded picture, int64 `[N, 2]`; a large number for bad ones."""
        extents = self.facts[:, HEIGHT : WIDTH + 1].copy()
        if self.options.adjust_orientation:
            swapped = self.facts[:, ORIENTATION] >= FIRST_SWAPPED
            if swapped.any():
                extents[swapped] = extents[swapped][:, ::-1]
        if self.errors:
            extents[list(self.errors)] = _UNKNOWN
        return extents

    def cut(self, starts: np.ndarray, shapes: np.ndarray) -> None:
        """Sets the windows, by their starts and shapes, int64 `[N, 2]`. A window that reaches outside its picture is an error
        of its sample."""
        ends, extents = starts + shapes, self.extents()
        self.windows = np.concatenate((starts, ends), axis=1)
        wrong = ((starts < 0) | (ends > extents) | (shapes < 1)).any(axis=1)
        for i in np.flatnonzero(wrong).tolist():
            if i not in self.errors:
                (y0, x0), (y1, x1), (height, width) = starts[i], ends[i], extents[i]
                error = bad_picture(
                    f"the window of rows {y0}..{y1} and columns {x0}..{x1} is not valid for the picture of "
                    f"{height}x{width} pixels"
                )
                if (shapes[i] > 0).all():
                    error.image_shape = tuple(self.shapes()[i].tolist())  # type: ignore[attr-defined]
                self.errors[i] = error

    def window(self, i: int) -> Window | None:
        """The window of a picture."""
        return None if self.windows is None else tuple(self.windows[i].tolist())

    def shapes(self) -> np.ndarray:
        """The shapes of the results, HWC as int64 `[N, 3]`; zeros for bad samples."""
        kind = self.options.output_type
        shapes = np.empty((self.operand.n, 3), np.int64)
        shapes[:, :2] = self.extents() if self.windows is None else self.windows[:, 2:] - self.windows[:, :2]
        shapes[:, 2] = 1 if kind == DALIImageType.GRAY else 3
        if kind == DALIImageType.ANY_DATA:
            shapes[:, 2] = np.maximum(self.facts[:, CHANNELS], 1)  # a damaged header may say 0
        if self.errors:
            shapes[list(self.errors)] = 0
        return shapes

    def decode(self, samples: list[int], nbytes: int | None = None) -> None:
        """Decodes these samples, except bad ones, on the CPU's threads: the common files as a batch, the rest one by one."""
        failed = self._decode_common(samples)
        if self.block is not None:
            return
        # The largest first, so that no thread works on one at the end while the others are idle.
        sizes = self.operand.sizes.tolist()
        samples = [i for i in samples if i not in self.images and i not in self.errors]
        samples.sort(key=sizes.__getitem__, reverse=True)

        def decode_next(k: int) -> None:
            i = samples[k]
            header = self._headers.get(i)
            if header is None and self.facts[i, HEIGHT]:
                header = self.header(i)
            used = None if self.used is None else tuple(self.used[i].tolist())
            self.images[i] = decode(self.data[i], self.options, header, self.window(i), used, i in failed)
            if observation.active is not None:
                observation.active.pictures([i], last_backend())

        errors = self.call.spread(decode_next, len(samples), nbytes)
        self.errors.update({samples[k]: error for k, error in errors.items()})

    def _decode_common(self, samples: list[int]) -> set[int]:
        """Decodes as many of these samples as compiled code can. Returns those that it tried; some may have failed."""
        if self.operand.n == 1:
            return set()  # a single picture costs less in `decode`
        suitable = [backend.suitable(self.facts, self.options) for _, backend in self.backends]
        if self.errors or len(samples) != self.operand.n:
            wanted = set(samples).difference(self.errors)
            suitable = [np.array([i for i in numbers.tolist() if i in wanted], np.int64) for numbers in suitable]
        tried = np.concatenate(suitable)
        if not len(tried):
            return set()
        decoded = self._room_for(tried)
        memory, shapes, starts, done = decoded
        for (name, backend), numbers in zip(self.backends, suitable, strict=True):
            if len(numbers):
                backend.decode_batch(self, numbers, decoded)
                if observation.active is not None and done[numbers].any():
                    observation.active.pictures(numbers[done[numbers]].tolist(), name)
        if done.all():
            self.block = memory
            return set()
        for i in tried[done[tried]].tolist():
            start, shape = starts[i], shapes[i].tolist()
            self.images[i] = memory[start : start + shape[0] * shape[1] * shape[2]].reshape(shape)
        return set(tried.tolist()) if done.any() else set()

    def _room_for(self, samples: np.ndarray) -> Decoded:
        """Memory for these samples, none decoded yet."""
        shapes, n = self.shapes(), self.operand.n
        lengths = shapes[:, 0] * shapes[:, 1] * shapes[:, 2]
        if len(samples) != n:
            lengths = np.where(np.bincount(samples, minlength=n), lengths, 0)
        ends = np.add.accumulate(lengths)
        return Decoded(host_empty((int(ends[-1]),), np.uint8), shapes, ends - lengths, np.zeros(n, np.bool_))

    def result(self) -> Store:
        """The pictures in host memory, after `on_error`."""
        kept, dropped = resolve_pictures(self)
        spec = self.call.outs[0]
        if self.block is not None:
            shapes = self.shapes()
            store = Store(spec.dtype, spec.layout, spec.device, shapes, flat=self.block)
            if equal_rows(shapes):
                store.dense()
        else:
            parts = [self.images[i] for i in kept]
            store = Store(spec.dtype, spec.layout, spec.device, [p.shape for p in parts], parts=parts)
        store.partial = self.used is not None
        return self.labelled(store, kept, dropped)

    def labelled(self, store: Store, kept: list[int], dropped: Any) -> Store:
        """The result, with the dropped samples and the sources of the others."""
        if not kept:
            store = empty_store(store.dtype, store.layout, store.device, self._extents_of_any())
        store.dropped = dropped
        if self.sources and len(kept) != self.operand.n:
            store.source_info = [self.sources[i] for i in kept]
        return store

    def _extents_of_any(self) -> tuple[int, ...]:
        """The known extents of pictures if none could be decoded: (H, W, C), 0 for unknown ones."""
        channels = 1 if self.options.output_type == DALIImageType.GRAY else 3
        if self.options.output_type == DALIImageType.ANY_DATA:
            channels = 0
        windows, count = None if self.call.op.random else self.windows_of, self.operand.n
        sides = windows and infer_extents(
            lambda shapes: windows(np.array(shapes * count, np.int64))[1][:1].tolist(), [((0, 0), "HW")]
        )
        return (*(sides[0] if sides else (0, 0)), channels)


def decodes(op: Any, windows: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None) -> None:
    """Makes an operator a decoder of pictures on the CPU and on GPUs.

    `windows(call, extents, *inputs, **arguments)` returns the starts and sizes of the windows, int64 `[N, 2]` as (y, x) each,
    from the extents of the pictures and the operator's further inputs. Without it whole pictures are decoded.
    """

    op.operator.empty_ndim = 1

    def cut(batch: PictureBatch, further: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        chosen = windows
        if chosen is not None:
            batch.windows_of = lambda extents: chosen(batch.call, extents, *further, **arguments)
            batch.cut(*batch.windows_of(batch.extents()))

    # A batch: threads share the pictures inside one compiled call, without Python for each picture.
    @op.batch
    def _(call: Call, operand: Operand, *further: Any, **arguments: Any) -> Store:
        batch = PictureBatch(call, operand, arguments)
        if len(batch) > 1:  # Python reads the header of one picture in less time
            _jpeg.describe(batch)
            describe_others(batch)
        if windows is not None:
            batch.read_headers()
            cut(batch, further, arguments)
        elif call.taker is not None:
            batch.read_headers()
            batch.used = None if batch.errors else fusion.window(call, batch.shapes())
            if batch.used is not None and observation.active is not None:
                observation.active.note(f"fused: only what {call.taker.op.name} looks at was decoded")
        batch.decode(list(range(len(batch))), operand.volumes.total)
        return batch.result()

    @op.cuda
    def _(launch: Any, operand: Operand, *further: Any, **arguments: Any) -> Store:
        from ndd.decoders.nvimgcodec.gpu import decode_on_gpu  # four modules that GPUs alone need

        batch = PictureBatch(launch.call, operand, arguments)
        return decode_on_gpu(batch, lambda: cut(batch, further, arguments))
