"""Gloo processes of torchrun, of one node and of two, one of them killed in mid-epoch; started again, then finished by fewer."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from distributed.elastic_loop import saved

import ndd

SCRIPT = str(Path(__file__).parent / "elastic_loop.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--monitor-interval=0.05"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(ndd.__file__).parents[1])}


def written(folder, count):
    """The paths of files, a file that lists them, and a folder for states."""
    names = [str(folder / f"{i:02d}.txt") for i in range(count)]
    for name in names:
        Path(name).write_text(name)
    (folder / "files").write_text("\n".join(names))
    (folder / "states").mkdir()
    return names, folder / "files", folder / "states"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun's restarts need POSIX")
def test_killed_restarted_and_finished_by_fewer(tmp_path):
    names, listed, folder = written(tmp_path, 41)
    ran = subprocess.run(
        [*TORCHRUN, "--standalone", "--max-restarts=1", SCRIPT, str(folder), str(listed), "3"],
        env=ENVIRONMENT, capture_output=True, text=True, timeout=280, check=False,
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


def on_two_nodes(folder, listed, steps, attempt):
    """The exit codes and errors of two torchruns, of two processes each, that form one world."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    meeting = ["--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={port}", "--max-restarts=0"]
    nodes = [
        subprocess.Popen(
            [*TORCHRUN, *meeting, f"--node-rank={node}", SCRIPT, str(folder), str(listed), str(steps), str(attempt)],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for node in (0, 1)
    ]  # fmt: skip
    return [(node.communicate(timeout=280)[1][-2000:], node.returncode) for node in nodes]


def in_turn(ranks):
    """What all ranks have seen, in the order of the whole."""
    return [label for row in itertools.zip_longest(*ranks) for label in row if label is not None]


@pytest.mark.slow
@pytest.mark.long  # half a minute, above all of eight processes that import torch; test_frameworks.py does it with forks
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun needs POSIX")
def test_two_nodes_killed_started_again_and_finished_by_other_numbers(tmp_path):
    """The order of the whole is the same for any number of ranks, also from a saved place on."""
    names, listed, folder = written(tmp_path, 61)
    item = ndd.readers.File(files=names, shard="auto", shuffle="global", seed=5)
    order = [label.torch().item() for _, label in item.next_epoch()]
    assert all(code for _, code in on_two_nodes(folder, listed, 3, 0))  # rank 1 was killed
    for told, code in on_two_nodes(folder, listed, 3, 1):
        assert code == 0, told
    attempts = [
        [json.loads(p.read_text())["seen"] for p in sorted(a.glob("rank*"))] for a in sorted(folder.glob("attempt*"))
    ]
    assert [[len(seen) for seen in ranks] for ranks in attempts] == [[4] * 4, [8] * 4]
    assert in_turn(attempts[0]) + in_turn(attempts[1]) == order[:48]
    states, _ = saved(folder)
    for told in (states, states[2]):  # of all ranks, or of any one
        rests = []
        for rank in range(3):
            reader = ndd.readers.File(files=names, shard="auto", shuffle="global", seed=5)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("RANK", str(rank))
                patch.setenv("WORLD_SIZE", "3")
                reader.load_state_dict(told)
                rests.append([label.torch().item() for _, label in reader.next_epoch(last_batch="partial")])
        assert in_turn(rests) == order[48:]
