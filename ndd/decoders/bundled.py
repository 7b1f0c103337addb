"""Shared libraries inside the wheels of OpenCV and Pillow."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

OPENCV, PILLOW = ("cv2", "opencv*.libs"), ("PIL", "pillow.libs")


def copies(name: str, *wheels: tuple[str, str]) -> Iterator[Path]:
    """The files of a library whose names begin with `name`, in these wheels; a system's own copies are not among them."""
    for module, folder in wheels:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            package = Path(spec.origin).parent
            yield from sorted(package.parent.glob(f"{folder}/{name}*.so*"))
            yield from sorted(package.glob(f".dylibs/{name}*.dylib"))
