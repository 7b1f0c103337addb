"""`ndd.dump_image`: writes images to files, for debugging."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cuda import transfer
from ndd._operator import bad_sample, like, operator
from ndd._tensor import Store


@operator(types=("u8",))
def dump_image(input, /, *, input_layout: str = "HWC", suffix: str = ""):
    """Writes each image to a file in the working directory and returns it unchanged, for debugging.

    Args:
        input: uint8 images (H, W, 3) or (H, W, 1), on the CPU or the GPU.
        input_layout: only "HWC". The layout of the images is ignored.
        suffix: a part of the file names.

    Sample i goes to `i-{suffix}-0.ppm`: plain-text PPM (P3) for colour, PGM (P2) for one channel, a line for each row.
    The next call with the same suffix writes the same files again. They are written when the result is computed.
    PIL (`Image.open`) and OpenCV (`imread`) read them. To write a PNG use PIL: `Image.fromarray(np.asarray(x)).save(f)`.

    Raises RuntimeError for other types, ranks and numbers of channels, and if a file cannot be written.

    >>> import ndd, os, tempfile
    >>> image = ndd.resize(ndd.demo.photo(), size=[40, 60])
    >>> home = os.getcwd()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.chdir(folder)
    ...     _ = ndd.dump_image(image, suffix="before").evaluate()
    ...     print(open("0-before-0.ppm").read().split()[:4])
    ...     os.chdir(home)
    ['P3', '60', '40', '255']
    """
    if input_layout != "HWC":
        raise RuntimeError(f'`input_layout`: only "HWC" is supported, got {input_layout!r}')
    if input.ndim != 3:
        raise RuntimeError(f"Input images must have three dimensions, got {input.ndim}")
    return like(input)


dump_image.operator.may_run_ahead = False  # it writes files


@dump_image.views
def _(call: Any, store: Store, *, input_layout, suffix) -> Store:
    on_cpu = store if store.on_cpu else _copied(store)
    failed: list[Exception] = []
    for i, image in enumerate(on_cpu.arrays()):
        try:
            _write(f"{i}-{suffix}-0.ppm", np.asarray(image))
        except RuntimeError as error:
            failed.append(bad_sample(i, str(error)))
    if failed:
        raise failed[0]
    return store.relabelled(store.layout)


def _write(name: str, image: np.ndarray) -> None:
    if image.shape[2] not in (1, 3):
        raise RuntimeError(f"expected images of 1 or 3 channels, got {image.shape[2]}")
    try:
        with open(name, "wb") as file:
            file.write(encoded(image))
    except OSError as error:
        raise RuntimeError(f"cannot write {name!r}: {error.strerror}") from None


def _copied(store: Store) -> Store:
    return transfer.to_cpu(store)


def encoded(image: np.ndarray) -> bytes:
    """The text of a PPM or PGM file."""
    height, width, channels = image.shape
    head = f"P{3 if channels == 3 else 2}\n{width} {height}\n255\n"
    numbers = np.array([f"{v} " for v in range(256)], object)
    rows = ["".join(row) for row in numbers[image.reshape(height, width * channels)].tolist()]
    return (head + "".join(f"{row}\n" for row in rows)).encode()
