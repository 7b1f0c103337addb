"""Two gloo processes of torchrun, one of them killed in mid-epoch, restarted, then one process that finishes the epoch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from distributed.elastic_loop import saved

import ndd


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun's restarts need POSIX")
def test_killed_restarted_and_finished_by_fewer(tmp_path):
    names = []
    for i in range(41):
        (tmp_path / f"{i:02d}.txt").write_text(str(i))
        names.append(str(tmp_path / f"{i:02d}.txt"))
    listed, folder = tmp_path / "files", tmp_path / "states"
    listed.write_text("\n".join(names))
    folder.mkdir()
    script = Path(__file__).parent / "elastic_loop.py"
    given = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(ndd.__file__).parents[1])]),
    }
    ran = subprocess.run(
        [*given, "--monitor-interval=0.05", str(script), str(folder), str(listed), "3"],
        env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    first, second = (
        [json.loads(p.read_text()) for p in sorted(a.glob("rank*"))] for a in sorted(folder.glob("attempt*"))
    )
    assert len(first[1]["seen"]) == 4  # two steps, and the third was killed
    assert [len(rank["seen"]) for rank in second] == [8, 8]  # both in step
    states, seen = saved(folder)
    reader = ndd.readers.File(files=names, shard="auto", shuffle="global", seed=5)
    reader.load_state_dict(states)
    seen += [
        label for _, labels in reader.next_epoch(2, last_batch="partial") for label in labels.torch().flatten().tolist()
    ]
    assert sorted(seen) == list(range(41))
    again = [
        label for _, labels in reader.next_epoch(2, last_batch="partial") for label in labels.torch().flatten().tolist()
    ]
    assert sorted(again) == list(range(41))
