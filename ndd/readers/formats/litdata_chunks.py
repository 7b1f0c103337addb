"""Chunks of LitData: their index, and the samples of chunks that are compressed in parts."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from ndd.readers.files.table_arguments import inside
from ndd.readers.formats.arrow import frame_size, inflated
from ndd.readers.formats.shards import Shard, offsets_in

_MOST_SAMPLES = 1 << 32  # of a chunk: offsets are u32
_DEEPEST = 32
_FRAMED = struct.Struct("<8sHHIII")  # of a chunk of compressed frames: magic, version, flags, samples, rows, frames
_FRAME = struct.Struct("<IIQII")  # first sample, samples, offset, size, size when decompressed


def leaves_of(config: dict[str, Any]) -> dict[str, str]:
    """The names of the leaves of a sample, and their types."""
    if config.get("encryption"):
        raise ValueError("encrypted chunks")
    if config.get("item_loader") not in (None, "PyTreeLoader"):
        raise ValueError(f"chunks of {config['item_loader']!r}, which hold no separate samples")
    names = _names(json.loads(config["data_spec"])[1], "", 0)
    if len(set(names)) != len(names):
        raise ValueError(f"leaves of equal names among {', '.join(names)}")
    return dict(zip(names, map(str, config["data_format"]), strict=True))


def _names(spec: dict[str, Any], before: str, depth: int) -> list[str]:
    """The leaves below a node of the tree that torch's `treespec_dumps` describes."""
    if depth > _DEEPEST:
        raise ValueError("samples of too many levels")
    children = spec["children_spec"]
    if spec["type"] is None:
        return [before or "0"]
    keys = json.loads(spec["context"]) if "dict" in spec["type"].lower() else list(range(len(children)))
    prefix = f"{before}." if before else ""
    pairs = zip(keys, children, strict=True)
    return [name for key, child in pairs for name in _names(child, f"{prefix}{key}", depth + 1)]


def chunk_of(folder: str, chunk: dict[str, Any], config: dict[str, Any]) -> Shard:
    """A chunk that an index describes. ValueError for impossible numbers."""
    count, size, name = chunk["chunk_size"], chunk["chunk_bytes"], chunk["filename"]
    if type(count) is not int or not 0 <= count < _MOST_SAMPLES or type(size) is not int or size < 0:
        raise ValueError(f"a chunk of {count!r} samples and {size!r} bytes")
    codec = str(config.get("compression") or "").partition(":")[0]
    whole = bool(codec) and not config.get("compression_level")
    return Shard(inside(folder, name), count, codec if whole else "", size)


def unpacked(data: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples of a chunk whose frames, or single samples, are compressed. LitData compresses only data that becomes
    smaller."""
    if data[:6].tobytes() != b"LDFZ01":
        offsets = offsets_in(data, count, len(data)).astype(np.int64)
        samples = [_inflated(data[a:b]) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        ends = np.cumsum([0, *map(len, samples)])
        return np.concatenate([*samples, np.empty(0, np.uint8)]), ends
    if len(data) < _FRAMED.size:
        raise ValueError(f"expected a chunk of frames, got {len(data)} bytes")
    _, version, _, samples_there, _, frames = _FRAMED.unpack(data[: _FRAMED.size].tobytes())
    table = _FRAMED.size + 4 * (count + 1)
    if version != 1 or samples_there != count or table + frames * _FRAME.size > len(data):
        raise ValueError(f"expected a chunk of {count} samples in frames, got {samples_there} in {len(data)} bytes")
    ends = np.frombuffer(data[_FRAMED.size : table].tobytes(), "<u4").astype(np.int64)
    parts: list[np.ndarray] = []
    for k in range(frames):
        _, _, start, size, plain = _FRAME.unpack_from(data.data, table + k * _FRAME.size)
        if start > len(data) - size:
            raise ValueError(f"expected a frame of {size} bytes at {start}, got {len(data)} bytes")
        parts.append(inflated("zstd", data[start : start + size], plain))
    content = np.concatenate([*parts, np.empty(0, np.uint8)])
    if ends[0] != 0 or ends[-1] > len(content) or (np.diff(ends) < 0).any():
        raise ValueError(f"expected samples within {len(content)} bytes, got wrong offsets")
    return content, ends


def _inflated(sample: np.ndarray) -> np.ndarray:
    """A sample, decompressed if it is a frame of zstd."""
    if sample[:4].tobytes() != b"\x28\xb5\x2f\xfd":
        return sample
    return inflated("zstd", sample, frame_size(sample))
