"""The site's reference and gallery: every operator with every argument, its own example, DALI's and torchvision's names."""

from __future__ import annotations

import inspect
import re

import pytest
import reference_pages

import ndd
from ndd._operator import all_operators

OPERATORS = {p: o for p, o in all_operators().items() if o.module.startswith("ndd.") and not o.name.startswith("_")}


@pytest.fixture(name="site")
def _site():
    return reference_pages.site()


@pytest.fixture(name="entries")
def _entries():
    return reference_pages.entries()


def test_every_argument_of_every_name_has_a_type_and_a_text(entries):
    """Classes, their methods, functions and operators. "as for `resize`" is replaced by what `resize` says."""
    holes, rows = [], 0
    for path, entry in entries.items():
        member = path
        for line in entry.replace(r"\|", "/").splitlines():
            head = re.match(r"### .* \{ #(ndd[\w.]+) \}$", line)
            member = head[1] if head else member
            row = re.match(r"\| `(\w+)` \|(.*)\|.*\|(.*)\|$", line)
            if row:
                rows += 1
                name, kind, text = (cell.strip() for cell in row.groups())
                bare = re.fullmatch(r"(?:(?:as for|as in|see) `[\w.]+`|see (?:above|the text)|the data)\.?", text)
                if not kind or not text or bare:
                    holes.append(f"{member}: {name}: {kind} {text}")
    assert not holes
    assert rows > 3500


def test_every_parameter_has_a_row(entries, site):
    """Also `batch_size`, `device` and `rng`, which `@operator` adds."""
    for path, operator in OPERATORS.items():
        entry = entries[f"ndd.{path}"]
        if "The same as [" not in entry:
            for name in inspect.signature(operator.function).parameters:
                assert f"| `{name}` |" in entry, f"{path}: {name}"


# Another name's example shows these; members of enumerations and what needs a GPU or torchvision itself have none.
WITHOUT_EXAMPLE = re.compile(
    r"ndd\.(?:(?:set_|get_)?(?:current_|default_)stream|set_current_stream|Stream|StreamPolicy|OperatorConcurrency|Plan|output"
    r"|bad_sample|backend\.\w+|tensors\.\w+|pipeline\.DataNode|checkpoint\.current|plugin_manager\.\w+|profiling\.OperatorTimes"
    r"|plugin\.numba\.NumbaFunction|plugin\.pytorch\.TorchPythonFunction|plugin\.pytorch\.LastBatchPolicy"
    r"|plugin\.pytorch\.experimental\.proxy\.\w+|pytorch\.nodes\.\w+|tfrecord\.(?:Feature|FeatureType)"
    r"|readers\.(?:ContainerStore|Output|Reader|RecordStore|Skipped)|types\.(?:\w+Info|DALI\w+|PipelineAPIType)"
    r"|torchvision\.v2\.(?:ClampBoundingBoxes|ClampKeyPoints|SanitizeKeyPoints|AutoAugmentPolicy|get_bounding_boxes|get_keypoints)"
    r"|torchvision\.v2\.functional\.(?:register_kernel|\w+_(?:image|video|mask|bounding_boxes|keypoints)))"
)


def test_every_name_has_an_example(entries):
    without = [
        path
        for path, entry in entries.items()
        if entry and "```pycon" not in entry and "The same as [" not in entry and not WITHOUT_EXAMPLE.fullmatch(path)
    ]
    assert not without


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
        "ndd.backend.ReleaseUnusedMemory",
        "ndd.pipeline.do_not_convert",
        "ndd.plugin.numba.fn.experimental.numba_function",
        "ndd.plugin.pytorch.DALIGenericIterator",
        "ndd.profiling.Profile",
        "ndd.recipes.imagenet_train",
        "ndd.tensors.TensorListCPU",
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
    result = object.__new__(module.Gallery)
    result.files, result.figures, result.failed = {}, {}, {}
    result._add(path, OPERATORS[path])
    assert not result.failed
    before, after = result.figures[path]
    assert {"flip": "<img", "spectrogram": "<svg", "one_hot": "<table", "random.uniform": ""}[path] in before
    assert ("<img" if path in ("flip", "spectrogram") else "<table") in after
    assert all(data[:4] == b"RIFF" for data in result.files.values())
