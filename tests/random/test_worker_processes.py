"""Child processes draw numbers of their own: torch's workers from their seeds, others from a branch of the parent's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import warm_interpreter

import ndd
from ndd.random import RNG, get_default_rng, set_seed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

LOADER = """
import json, sys
import numpy as np
import torch
import ndd

class Drawn(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        mine = float(np.asarray(ndd.random.uniform(range=(0, 1))))
        return mine, float(torch.rand(()))

def seeded(worker):
    ndd.random.set_seed(worker)

def epoch(method, **more):
    loader = torch.utils.data.DataLoader(Drawn(), num_workers=2, multiprocessing_context=method, **more)
    found = [(float(a), float(b)) for a, b in loader]
    return [a for a, _ in found], [b for _, b in found]

if __name__ == "__main__":
    ndd.random.uniform().evaluate()  # the parent has drawn
    ndd.random.set_seed(5)
    method, epochs = sys.argv[1], int(sys.argv[2])
    found = {}
    for run in ("first", "again"):
        torch.manual_seed(3)
        found[run] = [epoch(method) for _ in range(epochs)]
    found["parent"] = np.asarray(ndd.random.uniform(range=(0, 1), shape=[4])).tolist()
    if method == "fork":
        found["init"] = epoch(method, worker_init_fn=seeded)[0]
    print(json.dumps(found))
"""


@pytest.mark.parametrize(("method", "epochs"), [("fork", 2), ("forkserver", 1), ("spawn", 1)])
def test_workers_of_a_data_loader(tmp_path, method, epochs):
    """Different for each worker and epoch, the same again after the same torch.manual_seed, as torch's own numbers."""
    if method == "fork":
        done = warm_interpreter.run(LOADER, method, str(epochs), has_ndd=True)
    else:  # workers import the script
        script = tmp_path / "loader.py"
        script.write_text(LOADER)
        done = subprocess.run(
            [sys.executable, str(script), method, str(epochs)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=280,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    ours = [x for numbers, _ in result["first"] for x in numbers]
    theirs = [x for _, numbers in result["first"] for x in numbers]
    assert len(set(theirs)) == 4 * epochs  # what torch does, to compare with
    assert len(set(ours)) == 4 * epochs
    assert result["again"] == result["first"]
    set_seed(5)
    assert result["parent"] == np.asarray(ndd.random.uniform(range=(0, 1), shape=[4])).tolist()  # left alone
    if method == "fork":  # what the user sets in a worker counts
        for worker in range(2):
            rng = RNG(worker)
            expected = [float(np.asarray(ndd.random.uniform(range=(0, 1), rng=rng))) for _ in range(2)]
            assert result["init"][worker::2] == expected


def state_in_a_child(work=lambda: None):
    """The default generator's state in a forked child, after `work()` there."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writer, str(get_default_rng().state).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return result


def test_forked_children():
    """A branch each, other than the parent's and each other's numbers; the same again after the same seed."""
    runs = []
    for _ in range(2):
        set_seed(7)
        states = [str(get_default_rng().state)]
        states += [state_in_a_child(), state_in_a_child()]
        assert str(get_default_rng().state) == states[0]  # a fork does not move the parent's generator
        ndd.random.uniform().evaluate()
        states.append(state_in_a_child())
        runs.append(states)
    assert runs[0] == runs[1]
    assert len({state.split("_")[1] for state in runs[0]}) == 4  # four keys
    set_seed(8)
    assert state_in_a_child() not in runs[0]


def test_children_of_children_and_a_seed_set_there():
    set_seed(7)
    first = state_in_a_child()
    set_seed(7)
    inner = state_in_a_child(lambda: set_seed_of(state_in_a_child()))
    assert inner.split("_")[1] not in (first.split("_")[1], f"{7:016X}")
    assert state_in_a_child(lambda: set_seed(7)) == str(RNG(7).state)


def set_seed_of(state):
    """Takes over another process's state, to pass it on."""
    get_default_rng().state = state


def test_threads_that_never_drew_differ():
    """A thread without a generator forks: nothing to branch from, so the operating system chooses."""
    result = []
    for _ in range(2):
        thread = threading.Thread(target=lambda: result.append(state_in_a_child()))
        thread.start()
        thread.join()
    assert result[0] != result[1]


def test_a_pool_of_processes():
    code = """
import multiprocessing, sys
import numpy as np
import ndd
def draw(i):
    return multiprocessing.current_process().name, float(np.asarray(ndd.random.uniform(range=(0, 1))))
def numbers():
    with multiprocessing.get_context("fork").Pool(3) as pool:
        return pool.map(draw, range(12), chunksize=2)
ndd.random.uniform().evaluate()  # compiled here, not by each child
ndd.random.set_seed(1)
found = [number for _ in range(2) for _, number in numbers()]
print(len(set(found)))
"""
    done = warm_interpreter.run(code, has_ndd=True)
    assert done.stdout == "24\n", done.stderr[-2000:]


def test_a_lock_held_by_another_thread_holds_up_no_child():
    set_seed(7)
    leave = threading.Event()
    from ndd.random import rng

    def hold():
        with rng._moving:
            held.set()
            leave.wait()

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert state_in_a_child().startswith("Philox_")
    finally:
        leave.set()
        thread.join()
