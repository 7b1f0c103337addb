"""Decoding a whole batch: headers first where windows follow from them, then the pixels, then what becomes of bad samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._operator import Call, Operand
from ndd._tensor import Store
from ndd.decoders._header import Header
from ndd.decoders._policy import judged, options_of
from ndd.decoders._sample import Window, bad_image, check_size, decode, header_of

_UNKNOWN = 1 << 20  # stands in for the extents of a picture whose header cannot be read: every window fits


class Encoded:
    """The encoded pictures of one call, and what is known of each: header, window, pixels or error.

    Args:
        arguments: those of the decoder, by name.
    """

    def __init__(self, call: Call, operand: Operand, arguments: dict[str, Any]):
        self.call = call
        self.arguments = arguments
        self.options = options_of(**arguments)
        self.data: list[np.ndarray] = [data.reshape(-1) for data in operand.arrays]
        self.sources = operand.source_info
        self.headers: list[Header | None] = [None] * len(self.data)
        self.windows: list[Window | None] = [None] * len(self.data)  # None: the whole picture
        self.images: dict[int, np.ndarray] = {}
        self.errors: dict[int, BaseException] = {}

    def __len__(self) -> int:
        return len(self.data)

    def read_headers(self) -> None:
        """Fills `headers`. What is wrong with one, or too large a picture, is the error of its sample."""
        for i, data in enumerate(self.data):
            try:
                header = header_of(data)
                self.headers[i] = header
                check_size(header, self.options)
            except RuntimeError as error:
                self.errors[i] = error

    def extents(self) -> np.ndarray:
        """Height and width of each upright picture, int64 `[N, 2]`; of bad ones something large."""
        sizes = [
            (_UNKNOWN, _UNKNOWN) if i in self.errors or header is None else header.size(self.options.adjust_orientation)
            for i, header in enumerate(self.headers)
        ]
        return np.array(sizes, np.int64).reshape(len(sizes), 2)

    def cut(self, starts: np.ndarray, shapes: np.ndarray) -> None:
        """Sets the windows (`[N, 2]`, rows and columns). One that reaches outside is the error of its sample."""
        ends, extents = starts + shapes, self.extents()
        wrong = ((starts < 0) | (ends > extents) | (shapes < 1)).any(axis=1)
        for i in np.flatnonzero(wrong).tolist():
            if i not in self.errors:
                (y0, x0), (y1, x1), (height, width) = starts[i], ends[i], extents[i]
                self.errors[i] = bad_image(
                    f"the window of rows {y0}..{y1} and columns {x0}..{x1} is not valid for the picture of "
                    f"{height}x{width} pixels",
                    self._shape(i, shapes[i]),
                )
        self.windows = [tuple(w) for w in np.concatenate((starts, ends), axis=1).tolist()]

    def _shape(self, i: int, size: np.ndarray) -> tuple[int, int, int] | None:
        header, (height, width) = self.headers[i], size.tolist()
        known = header is not None and height > 0 and width > 0
        return (height, width, header.out_channels(self.options.output_type)) if known and header else None

    def decode(self, samples: list[int], nbytes: int | None = None) -> None:
        """Decodes these samples on the CPU's threads, but for those that are known to be bad."""

        def one(k: int) -> None:
            i = samples[k]
            if i not in self.errors:
                self.images[i] = decode(self.data[i], self.options, self.headers[i], self.windows[i])

        found = self.call.spread(one, len(samples), nbytes)
        self.errors.update({samples[k]: error for k, error in found.items()})

    def labelled(self, store: Store, kept: list[int], dropped: Any) -> Store:
        """The result, with what was left out of it and where its samples came from."""
        store.dropped = dropped
        if self.sources and len(kept) != len(self):
            store.source_info = [self.sources[i] for i in kept]
        return store


def decodes(op: Any, windows: Callable[..., tuple[np.ndarray, np.ndarray]] | None = None) -> None:
    """What computes a decoder, on the CPU and on a GPU.

    `windows(call, extents, *inputs, **arguments)` gives where the windows begin and how large they are, int64 `[N, 2]`
    each as (y, x), from the extents of the pictures and the operator's further inputs. Without it pictures are decoded whole.
    """

    def encoded(call: Call, operand: Operand, further: tuple[Any, ...], arguments: dict[str, Any]) -> Encoded:
        found = Encoded(call, operand, arguments)
        if windows is not None or call.device.device_id is not None:
            found.read_headers()
        if windows is not None:
            found.cut(*windows(call, found.extents(), *further, **arguments))
        return found

    @op.batch
    def _(call: Call, operand: Operand, *further: Any, **arguments: Any) -> Store:
        batch = encoded(call, operand, further, arguments)
        batch.decode(list(range(len(batch))), operand.volumes.total)
        kept, dropped = judged(batch)
        spec, parts = call.outs[0], [batch.images[i] for i in kept]
        store = Store(spec.dtype, spec.layout, spec.device, [p.shape for p in parts], parts=parts)
        return batch.labelled(store, kept, dropped)

    @op.cuda
    def _(launch: Any, operand: Operand, *further: Any, **arguments: Any) -> Store:
        from ndd._cuda.lookahead import looked_ahead
        from ndd.decoders._gpu import decode_batch

        def compute(call: Call, operand: Operand) -> Store:
            return decode_batch(encoded(call, operand, further, arguments))

        return looked_ahead(launch.call, operand, compute) if windows is None else compute(launch.call, operand)
