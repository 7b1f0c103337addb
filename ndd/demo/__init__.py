"""Data for experiments: sixteen photographs and a sound. `python -m ndd demo` trains a small classifier on the photographs,
through the loop of the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ndd._tensor import Tensor, as_tensor
from ndd.imread import imread

__all__ = ["photo", "photos", "sound"]


def photos() -> str:
    """The folder of the photographs that come with ndd: a folder for each class, as `readers.File(file_root=)` wants it.

    >>> import ndd
    >>> jpegs, labels = ndd.readers.File(file_root=ndd.demo.photos()).fetch([0, 15])
    >>> ndd.decoders.image(jpegs).shape[0], labels.torch().flatten().tolist()
    ((266, 400, 3), [0, 4])
    """
    return str(Path(__file__).parent / "photos")


def photo(name: str = "cat") -> Tensor:
    """One of the photographs, decoded: u8, HWC, RGB, on the CPU.

    Args:
        name: the name of a file in `photos()`, without folder and ending: "cat", "coffee", "astronaut", ...

    Raises ValueError for other names, and lists those that exist.

    >>> import ndd
    >>> ndd.demo.photo("cat").shape
    (266, 400, 3)
    """
    files = {path.stem: path for path in sorted(Path(photos()).glob("*/*.jpg"))}
    if name not in files:
        raise ValueError(f"photo: name: expected one of {', '.join(files)}, got {name!r}")
    image: Any = imread(str(files[name]))
    return image


def sound() -> Tensor:
    """A second of sound at 8 kHz, a tone that rises from 200 Hz to 2 kHz, between a tenth of silence each. f32, one channel.

    >>> import ndd
    >>> ndd.demo.sound().shape
    (9600,)
    """
    seconds = np.arange(8000) / 8000
    tone = 0.5 * np.sin(2 * np.pi * (200 * seconds + 900 * seconds**2)) * np.sin(np.pi * seconds) ** 0.5
    return as_tensor(np.pad(tone.astype(np.float32), 800))
