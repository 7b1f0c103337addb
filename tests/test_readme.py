"""The README: its Python runs, its commands are those that CI runs, its links and sections exist."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import ndd

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"<!-- run -->\n```python\n(.*?)```", TEXT, re.DOTALL)
PHOTOS = Path(ndd.__file__).parent / "demo" / "photos"


@pytest.fixture
def scope(tmp_path, monkeypatch):
    """The names that blocks share, in a folder with what they read."""
    shutil.copytree(PHOTOS, tmp_path / "photos")
    (tmp_path / "broken.jpg").write_bytes((PHOTOS / "nature" / "cat.jpg").read_bytes()[:3000])
    monkeypatch.chdir(tmp_path)
    return {"__name__": "readme"}


def run(scope, blocks):
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)


def test_the_blocks_run(scope, capsys):
    assert len(BLOCKS) >= 6
    run(scope, BLOCKS)
    assert scope["x"].shape == (8, 3, 224, 224)
    assert scope["y"].shape == (8, 1)
    assert scope["small"].shape == [(4, 4, 3)]
    assert scope["kept"] == [0, 2]
    assert [str(s) for s in scope["labels"].torch().flatten().tolist()] == ["0", "2"]


def test_the_resumed_reader_goes_on_with_the_next_batch(scope):
    run(scope, ["import ndd", *(b for b in BLOCKS if "set_state" in b)])
    expected, _ = next(scope["epoch"])
    assert scope["second"].source_info == expected.source_info


def test_the_operator_of_the_readme_is_short_and_right_on_cpu_and_gpu(scope, emulated_gpu):
    kernel, with_torch = [b for b in BLOCKS if "solarize" in b][:2]
    assert len(kernel.splitlines()) <= 25
    samples = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10, np.arange(9, dtype=np.uint8).reshape(1, 3, 3)]
    for blocks in ([kernel], [kernel, with_torch]):
        run(scope, blocks)
        solarize = scope["solarize"]
        for threshold in (100, ndd.batch([100, 5])):
            batch = ndd.batch(samples, layout="HWC")
            cpu = solarize(batch, threshold=threshold)
            gpu = solarize(batch.gpu(), threshold=threshold).cpu()
            limits = [100, 100] if isinstance(threshold, int) else [100, 5]
            for sample, limit, a, b in zip(samples, limits, cpu, gpu, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.where(sample < limit, sample, 255 - sample))
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_the_commands_are_those_of_ci():
    commands = re.findall(r"^python3 -m venv .*$", TEXT, re.MULTILINE)
    assert len(commands) == 2
    ci = (ROOT / ".ci" / "run").read_text()
    for step in commands[1].split(" && "):
        assert step in ci
    for step in commands[0].split(" && ")[:2]:
        assert step in ci


def test_the_commands_it_names_exist():
    from ndd.__main__ import _COMMANDS

    named = set(re.findall(r"python -m ndd (\w+)", TEXT))
    assert named == set(_COMMANDS)


def test_links_and_folders_exist():
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert link.startswith("http") or (ROOT / link).exists(), link
    for folder in re.findall(r"`(ndd/\w+)`", TEXT):
        assert (ROOT / folder).exists(), folder


def test_changelog_and_licence():
    assert "## 0.1.0" in (ROOT / "CHANGELOG.md").read_text()
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "ndd authors" in licence
    assert os.path.getsize(PHOTOS / "PROVENANCE.md") > 1000
