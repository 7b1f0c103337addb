"""The README: its Python runs, its commands are those that CI runs, its links and sections exist."""

from __future__ import annotations

import code
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ndd

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
PAGES = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "notebooks").rglob("*.md")))
BLOCKS = re.findall(r"<!-- run -->\n```python\n(.*?)```", TEXT, re.DOTALL)
PHOTOS = Path(ndd.__file__).parent / "demo" / "photos"


@pytest.fixture
def scope(tmp_path, monkeypatch):
    """The names that blocks share, in an empty folder: the README brings what it reads."""
    monkeypatch.chdir(tmp_path)
    return {"__name__": "readme"}


class Prompt(code.InteractiveConsole):
    """Python's prompt, line by line, where an error ends the test."""

    def showtraceback(self):
        raise sys.exc_info()[1]

    def showsyntaxerror(self, filename=None, **more):
        raise sys.exc_info()[1]


def run(scope, blocks):
    """Pastes blocks at the prompt. What a script may do and a prompt may not (no empty line after a loop) fails."""
    prompt = Prompt(scope, "README.md")
    for block in blocks:
        for line in [*block.splitlines(), ""]:
            unfinished = prompt.push(line)
        assert not unfinished


def test_the_first_block_runs_in_a_fresh_interpreter(tmp_path):
    pasted = BLOCKS[0] + "\nprint(x.shape, x.dtype, y.shape, y.dtype)\n"
    done = subprocess.run(
        [sys.executable, "-q", "-i"],
        input=pasted,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "torch.Size([8, 3, 224, 224]) torch.float32 torch.Size([8, 1]) torch.int32" in done.stdout
    assert "Error" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_blocks_run(scope, capsys):
    assert len(BLOCKS) == 3
    run(scope, BLOCKS)
    assert scope["x"].shape == (8, 3, 224, 224)
    assert scope["y"].shape == (8, 1)
    assert scope["kept"] == [0, 2]
    assert [str(s) for s in scope["labels"].torch().flatten().tolist()] == ["0", "2"]


def test_the_operator_of_the_readme_is_short_and_right_on_cpu_and_gpu(scope, emulated_gpu):
    kernel = next(b for b in BLOCKS if "solarize" in b)
    page = (ROOT / "notebooks" / "cookbook" / "own_operator.md").read_text(encoding="utf-8")
    with_torch = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "torch.where" in b)
    assert len(kernel.splitlines()) <= 25
    samples = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10, np.arange(9, dtype=np.uint8).reshape(1, 3, 3)]
    for blocks in ([kernel], [kernel, with_torch + "\n"]):
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


def test_the_commands_for_windows_are_the_same_two():
    commands = re.findall(r"^python3 -m venv .*$", TEXT, re.MULTILINE)
    on_windows = re.findall(r"^py -m venv .*$", TEXT, re.MULTILINE)
    for unix, windows in zip(commands, on_windows, strict=True):
        same = unix.replace("python3", "py").replace(".venv/bin/", ".venv\\Scripts\\").replace(" && ", "; ")
        same = same.replace("'", '"').replace(",oracle", "")  # DALI is not made for Windows
        assert windows == same
        assert "/" not in windows


def test_the_commands_it_names_exist():
    from ndd.__main__ import _COMMANDS

    named = set(re.findall(r"python -m ndd (\w+)", TEXT + CONTRIBUTING + PAGES))
    assert named == set(_COMMANDS)


def test_links_and_folders_exist():
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert link.startswith("http") or (ROOT / link).exists(), link
    for folder in re.findall(r"`(ndd/\w+)`", TEXT + CONTRIBUTING):
        assert (ROOT / folder).exists(), folder


def test_it_is_short_and_shows_a_batch():
    assert len(TEXT.splitlines()) <= 200
    assert max(len(line) for line in TEXT.splitlines() if not line.startswith(("|", ".", "python3", "py "))) <= 140
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    assert (ROOT / picture).stat().st_size < 200_000


def test_changelog_and_licence():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.M)
    assert "## [Unreleased]" in changes
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence
    assert "ndd authors" in licence
    assert os.path.getsize(PHOTOS / "PROVENANCE.md") > 1000
