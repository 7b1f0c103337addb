"""The site's reference and gallery: every operator with every argument, its own example, DALI's and torchvision's names."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

import ndd
from ndd._operator import all_operators

ROOT = Path(__file__).parent.parent
SITE = ROOT / "notebooks" / "site"
OPERATORS = {p: o for p, o in all_operators().items() if o.module.startswith("ndd.") and not o.name.startswith("_")}


@pytest.fixture(scope="module")
def site():
    """The modules that build the site; nothing but ndd is needed for these."""
    sys.path.insert(0, str(SITE))
    try:
        import build
        import docstrings
        import gallery
        import reference

        yield {"build": build, "docstrings": docstrings, "gallery": gallery, "reference": reference}
    finally:
        sys.path.remove(str(SITE))


@pytest.fixture(scope="module")
def entries(site):
    """The Markdown of each entry of the reference by its path."""
    book = site["reference"].Reference(site["build"]._torchvision_names(), lambda path: "")
    text = "\n".join(book.page(page) for page in book.pages)
    parts = re.split(r"(?m)^## .* \{ #(ndd[\w.]+) \}$", text)
    constants = dict.fromkeys(re.findall(r'<span id="(ndd[\w.]+)">', text), "")
    return constants | dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("path", OPERATORS)
def test_every_argument_has_a_row_with_a_text(path, entries):
    entry = entries[f"ndd.{path}"]
    if "The same as [" in entry:
        return
    for parameter in inspect.signature(OPERATORS[path].function).parameters.values():
        row = re.search(rf"(?m)^\| `\*?{parameter.name}` \|.*\|.*\| (.*) \|$", entry)
        assert row, parameter.name
        assert row[1].strip(), f"{path}: {parameter.name} is not documented"


@pytest.mark.parametrize("path", OPERATORS)
def test_the_example_of_an_operator_calls_it(path):
    """The gallery is made of these calls."""
    text = inspect.getdoc(OPERATORS[path].function) or ""
    name = path.removeprefix("experimental.") if text.startswith("The old name of") else path
    assert re.search(rf"(?m)^(>>>|\.\.\.) .*ndd\.{re.escape(name)}\(", text), text[-300:]


def test_public_names_are_there(entries):
    missing = [name for name in ndd.__all__ if callable(getattr(ndd, name)) and f"ndd.{name}" not in entries]
    assert not missing
    for path in (
        "ndd.readers.File",
        "ndd.random.RNG",
        "ndd.torchvision.v2.Resize",
        "ndd.math.sqrt",
        "ndd.types.TensorLayout",
    ):
        assert path in entries
    assert "### torch { #ndd.Batch.torch }" in entries["ndd.Batch"]
    assert "nvidia.dali.experimental.dynamic.resize" in entries["ndd.resize"]
    assert "**torchvision** `Resize(256)`" in entries["ndd.resize"]
    assert "`device`" in entries["ndd.resize"]
    assert "`batch_size`" in entries["ndd.resize"]
    assert "`rng`" in entries["ndd.random.uniform"]


@pytest.mark.parametrize("path", ["flip", "spectrogram", "one_hot", "random.uniform"])
def test_the_gallery_shows_what_goes_in_and_what_comes_out(path, site):
    module = site["gallery"]
    made = object.__new__(module.Gallery)
    made.files, made.figures, made.failed = {}, {}, {}
    made._add(path, OPERATORS[path])
    assert not made.failed
    before, after = made.figures[path]
    assert {"flip": "<img", "spectrogram": "<svg", "one_hot": "<table", "random.uniform": ""}[path] in before
    assert ("<img" if path in ("flip", "spectrogram") else "<table") in after
    assert all(data[:4] == b"RIFF" for data in made.files.values())
