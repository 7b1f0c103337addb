"""Decoding a whole batch: headers first where windows follow from them, then the pixels, then what becomes of bad samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._operator import Call, Operand
from ndd._tensor import Store
from ndd._tensor.no_samples import inferred
from ndd._tensor.small_arrays import equal_rows, few_zeros
from ndd._tensor.store import no_samples
from ndd.decoders._policy import judged_pictures, options_of
from ndd.decoders._sample import Window, bad_image, check_size, decode, header_of, too_large
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.headers import CHANNELS, FACTS, FIRST_SWAPPED, GOOD, HEIGHT, ORIENTATION, WIDTH, look
from ndd.types import DALIImageType

_UNKNOWN = 1 << 20  # stands in for the extents of a picture whose header cannot be read: every window fits
_ANY = np.zeros(1, np.uint8)


class Encoded:
    """The encoded pictures of one call, and what is known of each: header, window, pixels or error.

    Args:
        arguments: those of the decoder, by name.
        facts: int64 `[N, FACTS]`, what the headers say; where `facts[:, GOOD]`, compiled code has read them.

    Attributes:
        windows_of: where the windows begin and how large they are, in pictures of these extents; None for whole ones.
        windows: int64 `[N, 4]`: y0, x0, y1, x1; None for whole pictures.
        seen: the same for the part of a whole picture that anybody will look at; None if that is all of it.
        images: the pixels of each picture, once they are made; not where they are `together`.
        together: the pixels of all pictures behind each other, if they were made so.
    """

    def __init__(self, call: Call, operand: Operand, arguments: dict[str, Any], facts: np.ndarray | None = None):
        self.call = call
        self.operand = operand
        self.arguments = arguments
        self.options = options_of(**arguments)
        self.sources = operand.source_info
        self.facts = few_zeros((operand.n, FACTS), np.int64) if facts is None else facts
        self.windows: np.ndarray | None = None
        self.windows_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
        self.seen: np.ndarray | None = None
        self.images: dict[int, np.ndarray] = {}
        self.together: np.ndarray | None = None
        self.errors: dict[int, BaseException] = {}
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

    def look(self) -> None:
        """Fills `facts` of those pictures whose headers compiled code can read. Too large a picture is the error of its
        sample."""
        addresses = np.ascontiguousarray(self.operand.pointers())
        look(addresses, np.ascontiguousarray(self.operand.sizes), _ANY, self.facts)
        self._refuse_large()

    def _refuse_large(self) -> None:
        pixels = self.facts[:, HEIGHT] * self.facts[:, WIDTH]
        for i in np.flatnonzero(pixels > self.options.limit()).tolist():
            if i not in self.errors:
                self.errors[i] = too_large(self.header(i), self.options)

    def read_headers(self) -> None:
        """Fills `facts`, but for the good ones. What is wrong with a header, or too large a picture, is the error of its
        sample."""
        for i in np.flatnonzero(self.facts[:, GOOD] == 0).tolist():
            try:
                header = self._headers[i] = header_of(self.data[i])
                check_size(header, self.options)  # before it becomes a number of 64 bits, which some claims exceed
                self.facts[i, HEIGHT : ORIENTATION + 1] = (
                    header.height,
                    header.width,
                    header.channels,
                    header.orientation,
                )
            except RuntimeError as error:
                self.errors[i] = error
        self._refuse_large()

    def header(self, i: int) -> Header:
        """The header of a picture. RuntimeError if it has none."""
        found = self._headers.get(i)
        if found is None:
            found = self._headers[i] = header_of(self.data[i])
        return found

    def extents(self) -> np.ndarray:
        """Height and width of each picture as it will be decoded, int64 `[N, 2]`; of bad ones something large."""
        found = self.facts[:, HEIGHT : WIDTH + 1].copy()
        if self.options.adjust_orientation:
            swapped = self.facts[:, ORIENTATION] >= FIRST_SWAPPED
            if swapped.any():
                found[swapped] = found[swapped][:, ::-1]
        if self.errors:
            found[list(self.errors)] = _UNKNOWN
        return found

    def cut(self, starts: np.ndarray, shapes: np.ndarray) -> None:
        """Sets the windows (`[N, 2]`, rows and columns). One that reaches outside is the error of its sample."""
        ends, extents = starts + shapes, self.extents()
        self.windows = np.concatenate((starts, ends), axis=1)
        wrong = ((starts < 0) | (ends > extents) | (shapes < 1)).any(axis=1)
        for i in np.flatnonzero(wrong).tolist():
            if i not in self.errors:
                (y0, x0), (y1, x1), (height, width) = starts[i], ends[i], extents[i]
                error = bad_image(
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
        found = np.empty((len(self), 3), np.int64)
        found[:, :2] = self.extents() if self.windows is None else self.windows[:, 2:] - self.windows[:, :2]
        found[:, 2] = 1 if kind == DALIImageType.GRAY else 3
        if kind == DALIImageType.ANY_DATA:
            found[:, 2] = np.maximum(self.facts[:, CHANNELS], 1)  # a damaged header may say 0
        if self.errors:
            found[list(self.errors)] = 0
        return found

    def decode(self, samples: list[int], nbytes: int | None = None) -> None:
        """Decodes these samples on the CPU's threads, but for those that are known to be bad."""
        tried = self._decode_plain(samples)
        if self.together is not None:
            return
        # The large ones first, so that no thread comes to the end with one of them while the others have nothing to do.
        sizes = self.operand.sizes.tolist()
        samples = [i for i in samples if i not in self.images and i not in self.errors]
        samples.sort(key=sizes.__getitem__, reverse=True)

        def one(k: int) -> None:
            i = samples[k]
            known = self._headers.get(i)
            if known is None and self.facts[i, HEIGHT]:
                known = self.header(i)
            seen = None if self.seen is None else tuple(self.seen[i].tolist())
            self.images[i] = decode(self.data[i], self.options, known, self.window(i), seen, i in tried)

        found = self.call.spread(one, len(samples), nbytes)
        self.errors.update({samples[k]: error for k, error in found.items()})

    def _decode_plain(self, samples: list[int]) -> set[int]:
        """Decodes the common JPEGs among these samples without a step of Python for each: their numbers."""
        if len(self) == 1:
            return set()
        chosen = _jpeg.plain(self.facts, self.options)
        if self.errors or len(samples) != len(self):
            wanted = set(samples).difference(self.errors)
            chosen = np.array([i for i in chosen.tolist() if i in wanted], np.int64)
        if not len(chosen):
            return set()
        shapes = self.shapes()
        out, starts, done = _jpeg.decode_batch(
            self.call, self.operand, chosen, self.facts, shapes, self.windows, self.seen
        )
        if done.all():
            self.together = out
            return set()
        for i in chosen[done[chosen]].tolist():
            start, shape = starts[i], shapes[i].tolist()
            self.images[i] = out[start : start + shape[0] * shape[1] * shape[2]].reshape(shape)
        return set(chosen.tolist()) if done.any() else set()

    def result(self) -> Store:
        """The pictures as a value in host memory; `on_error` says what becomes of bad ones."""
        kept, dropped = judged_pictures(self)
        spec = self.call.outs[0]
        if self.together is not None:
            shapes = self.shapes()
            store = Store(spec.dtype, spec.layout, spec.device, shapes, flat=self.together)
            if equal_rows(shapes):
                store.dense()
        else:
            parts = [self.images[i] for i in kept]
            store = Store(spec.dtype, spec.layout, spec.device, [p.shape for p in parts], parts=parts)
        store.partial = self.seen is not None
        return self.labelled(store, kept, dropped)

    def labelled(self, store: Store, kept: list[int], dropped: Any) -> Store:
        """The result, with what was left out of it and where its samples came from."""
        if not kept:
            store = no_samples(store.dtype, store.layout, store.device, self._extents_of_any())
        store.dropped = dropped
        if self.sources and len(kept) != len(self):
            store.source_info = [self.sources[i] for i in kept]
        return store

    def _extents_of_any(self) -> tuple[int, ...]:
        """What is known of the shape of a picture where none could be decoded: (H, W, C), 0 for the others."""
        channels = 1 if self.options.output_type == DALIImageType.GRAY else 3
        if self.options.output_type == DALIImageType.ANY_DATA:
            channels = 0
        windows, count = None if self.call.op.random else self.windows_of, len(self)
        sides = windows and inferred(
            lambda shapes: windows(np.array(shapes * count, np.int64))[1][:1].tolist(), [((0, 0), "HW")]
        )
        return (*(sides[0] if sides else (0, 0)), channels)


def decodes(op: Any, windows: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None) -> None:
    """What computes a decoder, on the CPU and on a GPU.

    `windows(call, extents, *inputs, **arguments)` gives where the windows begin and how large they are, int64 `[N, 2]`
    each as (y, x), from the extents of the pictures and the operator's further inputs. Without it pictures are decoded whole.
    """

    op.operator.empty_ndim = 1

    def cut(batch: Encoded, further: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        chosen = windows
        if chosen is not None:
            batch.windows_of = lambda extents: chosen(batch.call, extents, *further, **arguments)
            batch.cut(*batch.windows_of(batch.extents()))

    @op.batch
    def _(call: Call, operand: Operand, *further: Any, **arguments: Any) -> Store:
        batch = Encoded(call, operand, arguments)
        if len(batch) > 1:  # one picture alone has less to do in Python
            batch.look()
        if windows is not None:
            batch.read_headers()
            cut(batch, further, arguments)
        elif call.taker is not None:
            batch.read_headers()
            batch.seen = None if batch.errors else call.looked_at(batch.shapes())
        batch.decode(list(range(len(batch))), operand.volumes.total)
        return batch.result()

    @op.cuda
    def _(launch: Any, operand: Operand, *further: Any, **arguments: Any) -> Store:
        from ndd.decoders.nvimgcodec.gpu import decode_batch

        return decode_batch(launch.call, operand, arguments, lambda batch: cut(batch, further, arguments))
