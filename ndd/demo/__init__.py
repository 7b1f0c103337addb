"""`ndd.demo.photos()`: sixteen photographs to try things with. `python -m ndd demo` trains a small classifier on them,
through the loop of the README."""

from pathlib import Path

__all__ = ["photos"]


def photos() -> str:
    """The folder of the photographs that come with ndd: a folder for each class, as `readers.File(file_root=)` wants it.

    >>> import ndd
    >>> jpegs, labels = ndd.readers.File(file_root=ndd.demo.photos()).fetch([0, 15])
    >>> ndd.decoders.image(jpegs).shape[0], labels.torch().flatten().tolist()
    ((266, 400, 3), [0, 4])
    """
    return str(Path(__file__).parent / "photos")
