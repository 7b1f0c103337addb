"""In the place of a GPU's video engine: FFmpeg decodes, and writes pictures as the engine does."""

import ctypes

import av
import numpy as np

from ndd.decoders.video import nvdec as _nvdec


def copy(frame, size, target):
    height, width = size
    wide = frame.format.name.endswith("10le")
    kind, shift = (np.uint16, 6) if wide else (np.uint8, 0)
    planes = [np.frombuffer(p, np.uint8).reshape(-1, p.line_size).view(kind) << shift for p in frame.planes]
    rows, columns = -(-height // 2), -(-width // 2)
    result = np.full((3 * rows, 2 * columns), 0xA5, kind)
    result[:height, :width] = planes[0][:height, :width]
    result[2 * rows :, 0::2], result[2 * rows :, 1::2] = (plane[:rows, :columns] for plane in planes[1:])
    ctypes.memmove(target, result.ctypes.data, result.nbytes)


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

    def __init__(self, codec, extradata, device, size, after):
        if codec in self.refuses:
            raise _nvdec.Refused("the test wants it")
        self.context, self.size = av.CodecContext.create(codec, "r"), size
        self.context.extradata = extradata
        self.context.height, self.context.width = size
        self.context.open(strict=False)
        type(self).open += 1

    def wait_for(self, stream):
        pass

    def decode(self, packets, unwanted, wanted, ends=False):
        places, last, sent = dict(wanted.tolist()), None, 0
        parts = np.split(np.frombuffer(packets.data, np.uint8), np.cumsum(packets.sizes)[:-1])
        coming = list(zip(parts, packets.times.tolist(), unwanted.tolist(), strict=False))[: len(packets.sizes)]
        for part, time, no in [*coming, *[(None, 0, False)] * ends]:
            if wanted.size and not wanted[:, 1].any():
                break
            self.context.skip_frame = "NONREF" if no else "DEFAULT"
            packet = None
            if part is not None:
                packet = av.Packet(part.tobytes())
                packet.pts = time
            sent += 1
            result = self.context.decode(packet)
            if packet is None:
                self.context.flush_buffers()
            type(self).copies += len(result)
            for frame in result:
                if frame.is_corrupt:
                    raise _nvdec.Refused("damaged")
                last = frame.pts
                if places.get(frame.pts):
                    copy(frame, self.size, places[frame.pts])
                    wanted[wanted[:, 0] == frame.pts, 1] = 0
        return sent, last

    def flush_buffers(self):
        self.context.flush_buffers()

    def close(self):
        type(self).open -= 1
