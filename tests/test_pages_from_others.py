"""The pages "From ...": the names in their tables exist on our side and, where the other library is installed, on its side."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torchvision_rule
from test_pages import exists

FOLDER = Path(__file__).parent.parent / "notebooks" / "from"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
SHORT = {"v2": "ndd.torchvision.v2", "targets": "ndd.Targets", "readers": "ndd.readers", "reader": "ndd.readers.File"}


def rows(page):
    """(their cell, our cell) of each row."""
    cells = [
        re.split(r"(?<!\\)\|", line) for line in PAGES[page].splitlines() if re.match(r"\|(?! (---|\w+ \| ndd))", line)
    ]
    return [(cell[1], cell[2]) for cell in cells]


def theirs(page, pattern=r"`\.?([\w.]+)"):
    return {name for their, _ in rows(page) for name in re.findall(pattern, their)}


@pytest.mark.parametrize("page", PAGES)
def test_our_names_exist(page):
    """Also the short forms `v2.`, `targets.`, `reader.`."""
    names = {
        name
        for _, our in rows(page)
        for name in re.findall(r"(?<![\w.])((?:ndd|v2|targets|readers?)\.[a-zA-Z][\w.]*\w)", our)
    }
    assert len(names) > 5
    for name in names:
        first, _, rest = name.partition(".")
        assert exists(f"{SHORT.get(first, first)}.{rest}"), name


def test_torchvisions_names_exist():
    torchvision = torchvision_rule.torchvision()
    from torchvision.transforms import v2

    places = (v2, v2.functional, torchvision.datasets, torchvision.io, torchvision.utils, torchvision.tv_tensors)
    for name in theirs("torchvision"):
        assert any(hasattr(place, name.rpartition(".")[2]) for place in places), name


def test_every_transform_of_albumentations_has_a_row():
    albumentations = pytest.importorskip("albumentations")
    classes = {name for name, kind in vars(albumentations).items() if inspect.isclass(kind)}
    bases = {"BasicTransform", "DualTransform", "ImageOnlyTransform", "Transform3D", "BaseCompose", "suppress"}
    assert theirs("albumentations", r"`([A-Z]\w+)") == classes - bases


def test_webdatasets_names_exist():
    webdataset = pytest.importorskip("webdataset")
    for name in theirs("webdataset", r"`\.?(?:wds\.)?([a-zA-Z]\w+)[`(]") - {"wids"}:
        assert hasattr(webdataset, name) or hasattr(webdataset.WebDataset, name), name


def test_dalis_names_exist():
    dynamic = pytest.importorskip("nvidia.dali.experimental.dynamic")
    from nvidia import dali
    from nvidia.dali import fn

    for name in theirs("dali", r"`(?:\w+ = |\w+, \w+ = )?((?:fn|ndd|dali)\.[\w.]+)"):
        first, *rest = name.split(".")
        place = {"fn": fn, "ndd": dynamic, "dali": dali}[first]
        for part in rest:
            assert hasattr(place, part), name
            place = getattr(place, part)
