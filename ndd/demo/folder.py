"""The photographs of the demo: a tree with one folder for each class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PHOTOS = Path(__file__).parent / "photos"
_ENDINGS = {".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".tif", ".tiff", ".jp2", ".ppm"}


@dataclass(frozen=True)
class Folder:
    """Image files relative to `root`, the number of the class of each, and the names of the classes."""

    root: Path
    files: list[str]
    labels: list[int]
    classes: list[str]

    def repeated(self, least: int) -> Folder:
        """The same files, repeated until there are at least `least`."""
        times = -(-least // len(self.files))
        return Folder(self.root, self.files * times, self.labels * times, self.classes)

    def first(self, most: int) -> Folder:
        """Only the first `most` files."""
        return Folder(self.root, self.files[:most], self.labels[:most], self.classes)


def scan(root: Path) -> Folder:
    """The images below `root`; raises FileNotFoundError, NotADirectoryError or ValueError that tells what is missing."""
    if not root.exists():
        raise FileNotFoundError(f"{root} does not exist. Give a folder that holds one folder of images for each class.")
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is a file. Give a folder that holds one folder of images for each class.")
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    files: list[str] = []
    labels: list[int] = []
    classes: list[str] = []
    for folder in folders:
        images = sorted(p for p in folder.iterdir() if p.suffix.lower() in _ENDINGS)
        if images:
            labels += [len(classes)] * len(images)
            classes.append(folder.name)
            files += [p.relative_to(root).as_posix() for p in images]
    if files:
        return Folder(root, files, labels, classes)
    loose = sum(p.suffix.lower() in _ENDINGS for p in root.iterdir())
    if loose:
        raise ValueError(f"{root} holds {loose} images, but not in folders. Move them into one folder for each class.")
    raise ValueError(
        f"{root} holds no images ({len(folders)} folders looked into; endings {', '.join(sorted(_ENDINGS))})."
    )
