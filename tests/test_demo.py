"""`python -m ndd demo`: trains, prints, writes the contact sheet; what a user does wrong is one sentence."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import warm_interpreter
from PIL import Image

import ndd
from ndd.__main__ import main
from ndd.demo import command
from ndd.demo.folder import PHOTOS, Folder, scan


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    """An epoch of 64 crops, so that a run takes a second."""
    monkeypatch.setattr(command, "_LEAST_PER_EPOCH", 64)
    yield
    ndd.set_num_threads(None)


def losses(text):
    return [float(x) for x in re.findall(r"^epoch .* loss ([\d.]+)", text, re.MULTILINE)]


@pytest.mark.slow
def test_the_embedded_set_is_learnt(capsys, monkeypatch):
    monkeypatch.setattr(command, "_LEAST_PER_EPOCH", 256)
    assert main(["demo", "--epochs", "4", "--device", "cpu", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    assert "16 images in 5 classes from the embedded set" in text
    assert "the CPU, 2 threads" in text
    assert "images/s" in text
    result = losses(text)
    assert len(result) == 4
    assert result[-1] < 0.6 * result[0]


def test_a_folder_of_the_users_and_a_contact_sheet(tmp_path, capsys):
    data = tmp_path / "data"
    for name in ("nature", "things"):
        shutil.copytree(PHOTOS / name, data / name)
    (data / "empty").mkdir()
    grid = tmp_path / "grid.png"
    arguments = ["demo", "--data", str(data), "--epochs", "1", "--batch-size", "6", "--device", "cpu"]
    assert main([*arguments, "--save-grid", str(grid)]) == 0
    text = capsys.readouterr().out
    assert "6 images in 2 classes" in text
    assert "each is used 11 times an epoch" in text
    sheet = np.asarray(Image.open(grid))
    assert sheet.shape == (2 * 100 + 4, 3 * 100 + 4, 3)  # 6 tiles of 96 with gaps of 4
    tile = sheet[4:100, 4:100]
    assert tile.std() > 10
    assert (sheet[:4] == 32).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--data", "nowhere"],
            "nowhere does not exist. Give a folder that holds one folder of images for each class.",
        ),
        (["--data", "file.jpg"], "file.jpg is a file. Give a folder"),
        (["--data", "empty"], "empty holds no images (0 folders looked into"),
        (["--data", "loose"], "loose holds 1 images, but not in folders."),
        (["--epochs", "0"], "--epochs must be at least 1, got 0."),
        (["--batch-size", "-3"], "--batch-size must be at least 1, got -3."),
        (["--save-grid", "grid.jpg"], "--save-grid writes a PNG"),
        (["--save-grid", "nowhere/grid.png"], "does not exist"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "loose"):
        Path(folder).mkdir()
    for name in ("file.jpg", "loose/cat.jpg"):
        shutil.copy(PHOTOS / "nature" / "cat.jpg", name)
    assert main(["demo", *arguments]) == 1
    out, err = capsys.readouterr()
    assert sentence in err
    assert err.startswith("ndd demo: ")
    assert err.count("\n") == 1
    assert "Traceback" not in out + err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_a_sentence(tmp_path, capsys):
    """It names the file, and not the number of the system's error."""
    grid = tmp_path / "grid.png"
    grid.symlink_to("/dev/full")
    assert main(["demo", "--epochs", "1", "--device", "cpu", "--save-grid", str(grid)]) == 1
    assert capsys.readouterr().err == f"ndd demo: {grid}: No space left on device\n"


def test_a_damaged_image_is_named(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    data = (PHOTOS / "nature" / "cat.jpg").read_bytes()
    (tmp_path / "a" / "broken.jpg").write_bytes(data[:200])
    assert main(["demo", "--data", str(tmp_path), "--epochs", "1", "--device", "cpu"]) == 1
    assert "broken.jpg" in capsys.readouterr().err


def test_gpu_without_a_gpu(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["demo", "--device", "gpu"]) == 1
    assert "python -m ndd doctor" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.long
def test_as_a_process_without_a_terminal(tmp_path):
    arguments = ["demo", "--epochs", "1", "--data", str(PHOTOS), "--device", "cpu"]
    done = warm_interpreter.run(
        "from ndd.__main__ import main; from ndd.demo import command; command._LEAST_PER_EPOCH = 64;"
        f"raise SystemExit(main({arguments!r}))"
    )
    assert done.returncode == 0, done.stderr
    assert "\r" not in done.stdout
    assert len(losses(done.stdout)) == 1
    # Where caches are empty, a line there says that kernels are compiled.
    assert [line for line in done.stderr.splitlines() if "compiles kernels" not in line] == []


def test_the_photographs_and_their_provenance():
    result = scan(PHOTOS)
    assert len(result.files) == 16
    assert result.classes == ["nature", "people", "places", "texture", "things"]
    text = (PHOTOS / "PROVENANCE.md").read_text()
    total = 0
    for name in result.files:
        assert f"| {name} |" in text
        total += (PHOTOS / name).stat().st_size
        with Image.open(PHOTOS / name) as image:
            assert image.format == "JPEG"
            assert max(image.size) <= 400
    assert total < 1_000_000


def test_repeated_and_first():
    folder = Folder(Path("x"), ["a", "b", "c"], [0, 0, 1], ["p", "q"])
    assert folder.repeated(7).files == ["a", "b", "c"] * 3
    assert folder.repeated(3).labels == [0, 0, 1]
    assert folder.repeated(7).first(4).labels == [0, 0, 1, 0]


def test_the_bar_redraws_on_a_terminal(monkeypatch, capsys):
    from ndd.demo.progress import Bar

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    bar = Bar("epoch", 2)
    bar("slow")
    bar("x")
    bar.done()
    out = capsys.readouterr().out
    assert out.split("\r")[-1] == "epoch [########################] 2/2  x\n"
