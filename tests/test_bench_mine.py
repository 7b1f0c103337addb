"""`python -m ndd bench mine`: a user's loader beside ndd."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ndd
from ndd.__main__ import main
from ndd.bench import command, mine, mine_side
from ndd.bench.libraries import Setting
from ndd.bench.process import failure

SCRIPT = """
import numpy as np
import torch
import ndd
from pathlib import Path
from PIL import Image

print("said by the script")
names = sorted(str(p) for p in Path(ndd.demo.photos()).rglob("*.jpg"))


class Photos(torch.utils.data.Dataset):
    def __len__(self):
        return len(names)

    def __getitem__(self, i):
        with Image.open(names[i]) as image:
            return torch.from_numpy(np.array(image.convert("RGB").resize((32, 32))))


{own}


def ndd_loop():
    for jpegs, labels in ndd.readers.File(files=names, labels=[0] * len(names)).next_epoch(batch_size=4):
        yield ndd.resize(ndd.decoders.image(jpegs), size=[32, 32])


def broken():
    yield from ()
"""
LOADER = "def loader():\n    return torch.utils.data.DataLoader(Photos(), batch_size=4)"


@pytest.fixture
def setting():
    yield Setting("cpu", 2, {"ndd": ndd}, rounds=1, seconds=0.0)
    ndd.set_num_threads(None)


@pytest.fixture
def script(tmp_path):
    def write(own=LOADER):
        path = tmp_path / "mine.py"
        path.write_text(SCRIPT.format(own=own))
        return path

    yield write
    sys.modules.pop("ndd_bench_mine", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def test_both_sides_of_the_command(script, tmp_path, capsys):
    target = tmp_path / "numbers.json"
    assert (
        main(["bench", "mine", str(script()), "--rounds", "1", "--threads", "2", "--no-dali", "--json", str(target)])
        == 0
    )
    rate, images, cores, first = json.loads(target.read_text())["results"]
    assert rate["unit"] == "images/s"
    assert rate["ratio"] == pytest.approx(rate["ndd"] / rate["dali"])
    assert images["ndd"] == images["dali"] == len(list(Path(ndd.demo.photos()).rglob("*.jpg")))
    assert cores["ndd"] > 0
    assert first["dali"] > 0
    assert "mine.py; 2 threads" in capsys.readouterr().out


@pytest.mark.parametrize(
    "own",
    ["loader = torch.utils.data.DataLoader(Photos(), batch_size=4)", "dataset = Photos()\nbatch_size = 3", LOADER],
)
@pytest.mark.drawn(1)
def test_ways_to_say_what_is_yours(own, script, capsys):
    mine_side.main(["yours", str(script(own)), "--threads", "1", "--rounds", "1"])
    result = json.loads(capsys.readouterr().out)
    assert result["images"] == len(list(Path(ndd.demo.photos()).rglob("*.jpg")))
    assert result["rate"] > 0


def test_an_epoch_may_be_left(script, capsys):
    mine_side.main(["ndd", str(script()), "--threads", "1", "--rounds", "1", "--images", "5"])
    assert json.loads(capsys.readouterr().out)["images"] == 8


@pytest.mark.long
def test_what_is_missing_is_said(setting, script, tmp_path):
    with pytest.raises(ValueError, match="expected a script"):
        list(mine.measure(setting, None))
    with pytest.raises(FileNotFoundError, match="expected a file, got"):
        list(mine.measure(setting, tmp_path / "none.py"))
    with pytest.raises(SystemExit, match="expected `dataset` or `loader`"):
        mine_side.main(["yours", str(script("")), "--threads", "1"])
    with pytest.raises(SystemExit, match="a function `other`"):
        mine_side.main(["ndd", str(script()), "--threads", "1", "--loop", "other"])
    with pytest.raises(SystemExit, match="gave no batch"):
        mine_side.main(["ndd", str(script()), "--threads", "1", "--loop", "broken"])
    with pytest.raises(RuntimeError, match="the side of ndd failed"):
        list(mine.measure(setting, script(), only="broken"))


def test_it_is_a_section_of_its_own():
    assert "mine" in command._ON_REQUEST


def test_a_batch_size_that_is_not_used_is_refused(capsys):
    """`bench train --batch-size 16` measured batches of 32."""
    assert main(["bench", "train", "--batch-size", "16"]) == 1
    assert "bench train takes no --batch-size; its rows have theirs" in capsys.readouterr().err


def test_its_table_says_yours_and_nothing_of_dali(tmp_path, capsys):
    assert main(["bench", "mine", str(tmp_path / "none.py"), "--threads", "1"]) == 1
    text = capsys.readouterr().out
    assert "yours" in text
    assert "DALI" not in text
    ndd.set_num_threads(None)


def test_an_error_begins_at_the_users_script(script, capsys):
    """A side that says nothing tells how it ended."""
    path = script()
    path.write_text(path.read_text() + "\n\ndef wrong():\n    raise KeyError('mine')\n")
    with pytest.raises(SystemExit) as ended:
        mine_side.main(["ndd", str(path), "--threads", "1", "--loop", "wrong"])
    lines = str(ended.value).splitlines()
    assert f'File "{path}"' in lines[1]
    assert lines[-1] == "KeyError: 'mine'"
    with pytest.raises(SystemExit, match=f"^expected a function `missing` in {path} that gives"):
        mine_side.main(["ndd", str(path), "--threads", "1", "--loop", "missing"])
    done = subprocess.CompletedProcess([], -9, "", "")
    assert failure(done) == "it ended with signal 9, without a message"
