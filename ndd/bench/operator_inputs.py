"""The inputs of `bench ops`: decoded photographs, and arrays that stand for boxes, sounds and clips."""

from __future__ import annotations

import io
import wave
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ndd.bench.photographs import decoded, folder

_ON_CPU = ("jpegs", "npys", "wavs", "flacs", "oggs", "matrices", "extents", "order", "mask_ids", "polygons", "vertices")
_POLYGONS, _VERTICES = 20, 30  # of a picture, of a polygon


def arrays(data: Path | None, count: int) -> dict[str, tuple[list[Any], str | None]]:
    """By name: the samples and their layout, the same for both libraries and in every run."""
    rng = np.random.default_rng(7)
    images = decoded(data, count)
    small = [np.resize(i, (224, 224, 3)) for i in images]
    files = folder(data, count)
    boxes = np.sort(rng.random((count, 20, 2, 2), np.float32), axis=2).reshape(count, 20, 4)
    lengths = rng.integers(16000, 160000, count)  # 1 to 10 s of speech
    waves = [0.3 * rng.standard_normal(n, np.float32) for n in lengths]
    grid = np.meshgrid(np.arange(224, dtype=np.float32), np.arange(224, dtype=np.float32))
    mask = np.zeros((224, 224), np.int32)
    mask[40:100, 50:150] = 1
    first = np.arange(_POLYGONS, dtype=np.int32)
    polygons = np.stack([first, first * _VERTICES, (first + 1) * _VERTICES], axis=1)

    def many(value: Any) -> list[Any]:
        return [np.asarray(value)] * count

    return {
        "images": (images, "HWC"),
        "small": (small, "HWC"),
        "floats": ([s.astype(np.float32) for s in small], "HWC"),
        "mosaic": ([s[:, :, 0].copy() for s in small], "HW"),
        "frames": ([np.stack([s[:112, :112]] * 4) for s in small], "FHWC"),
        "map_x": (many(grid[0]), "HW"),
        "map_y": (many(grid[1]), "HW"),
        "kernel": (many(np.full((5, 5), 0.04, np.float32)), None),
        "order": ([np.int32(i) for i in reversed(range(count))], None),
        "classes": ([np.array([i], np.int32) for i in range(count)], None),
        "boxes": (list(boxes), None),
        "box_classes": (many(np.arange(20, dtype=np.int32)), None),
        "points": (list(rng.random((count, 1000, 2), np.float32)), None),
        "mask": (many(mask), None),
        "mask_ids": (many(np.arange(0, _POLYGONS, 2, dtype=np.int32)), None),
        "polygons": (many(polygons), None),
        "vertices": (list(rng.random((count, _POLYGONS * _VERTICES, 2), np.float32)), None),
        "matrices": (many(np.array([[1, 2, 3], [4, 5, 6]], np.float32)), None),
        "extents": (many(np.array([375, 500], np.int64)), None),
        "sound": (waves, None),
        "spectrum": ([rng.random((257, n // 160), np.float32) for n in lengths], "ft"),
        "mel": ([rng.random((80, n // 160), np.float32) for n in lengths], "ft"),
        "lines": ([rng.random((n // 160, 400), np.float32) for n in lengths], None),
        "npys": ([_saved(s) for s in small], None),
        "wavs": ([_wave_file(w) for w in waves], None),
        "flacs": (_compressed(waves, "FLAC"), None),
        "oggs": (_compressed(waves, "OGG"), None),
        "jpegs": ([np.fromfile(files.root / f, np.uint8) for f in files.files[:count]], None),
    }


def _saved(array: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, array)
    return np.frombuffer(file.getvalue(), np.uint8)


def _wave_file(samples: np.ndarray) -> np.ndarray:
    """A WAV of 16 bits, 16 kHz."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 16000, 0, "NONE", ""))
        sound.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return np.frombuffer(file.getvalue(), np.uint8)


def _compressed(signals: list[np.ndarray], kind: str) -> list[np.ndarray]:
    """Files of 16 kHz that repeat four signals, smoothed like sound, because FLAC cannot compress white noise; WAVs if
    soundfile is not installed."""
    try:
        import soundfile
    except (ImportError, OSError):
        return [_wave_file(s) for s in signals]
    files = []
    for signal in signals[:4]:
        file = io.BytesIO()
        soundfile.write(file, np.convolve(signal, np.hanning(9) / 4, "same"), 16000, format=kind)
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return [files[i % len(files)] for i in range(len(signals))]


def inputs(library: Any, source: dict[str, tuple[list[Any], str | None]], device: str, types: Any) -> SimpleNamespace:
    """The arrays as batches of `library` on `device`; encoded images stay on the CPU, as decoders need them.

    `types` is the library's module of enumerations.
    """
    values: dict[str, Any] = {}
    for name, (samples, layout) in source.items():
        where = "cpu" if name in _ON_CPU else device
        values[name] = library.batch(samples, layout=layout, device=where).evaluate()
    anchors = np.sort(np.random.default_rng(1).random((500, 2, 2), np.float32), axis=1).reshape(-1)
    count = len(source["images"][0])
    constants = {"anchors": anchors.tolist(), "debayer": "bilinear_ocv" if device == "cpu" else "default_npp"}
    return SimpleNamespace(**values, **constants, types=types, device=device, batch_size=count)
