"""In the place of a GPU's video engine: FFmpeg decodes, and writes pictures as the engine does."""

import ctypes

import numpy as np

from ndd.decoders import _nvdec


class Frame:
    is_corrupt = False

    def __init__(self, frame, size):
        self.frame, self.size, self.pts = frame, size, frame.pts

    def copy(self, target):
        height, width = self.size
        wide = self.frame.format.name.endswith("10le")
        kind, shift = (np.uint16, 6) if wide else (np.uint8, 0)
        planes = [np.frombuffer(p, np.uint8).reshape(-1, p.line_size).view(kind) << shift for p in self.frame.planes]
        rows, columns = -(-height // 2), -(-width // 2)
        made = np.full((3 * rows, 2 * columns), 0xA5, kind)
        made[:height, :width] = planes[0][:height, :width]
        made[2 * rows :, 0::2], made[2 * rows :, 1::2] = (plane[:rows, :columns] for plane in planes[1:])
        ctypes.memmove(target, made.ctypes.data, made.nbytes)


def put_in_place(monkeypatch):
    """A class of decoders that only this test counts: those of an earlier test may still be open, and close later."""
    kind = type("Decoder", (Decoder,), {})
    monkeypatch.setattr(_nvdec, "Decoder", kind)
    return kind


class Decoder:
    """See `_nvdec.Decoder`. A class counts its decoders that are open, and what all of them wrote."""

    open = 0
    copies = 0
    refuses = ()  # codecs

    def __init__(self, stream, device, size, after):
        if stream.codec_context.name in self.refuses:
            raise _nvdec.Refused("the test wants it")
        stream.codec_context.open(strict=False)
        self.context, self.size = stream.codec_context, size
        type(self).open += 1

    @property
    def skip_frame(self):
        return self.context.skip_frame

    @skip_frame.setter
    def skip_frame(self, value):
        self.context.skip_frame = value

    def wait_for(self, stream):
        pass

    def decode(self, packet):
        found = self.context.decode(packet)
        type(self).copies += len(found)
        return [Frame(frame, self.size) for frame in found]

    def flush_buffers(self):
        self.context.flush_buffers()

    def close(self):
        type(self).open -= 1
