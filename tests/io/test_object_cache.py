"""The local cache of objects: a process that is killed in the middle of a write leaves it sound."""

import json
import os
import time

import numpy as np
import pytest
import warm_interpreter

from ndd.atomic_file import SUFFIX
from ndd.io.object_cache import ObjectCache

SIZE, LIMIT = 300_000, 1_000_000
# `write` stops when half of the data are on the disk, or when all are and only the name is missing, and says so.
PROGRAM = """
import contextlib, json, os, signal, sys, time
import numpy as np
from ndd.io import object_cache

folder, size, limit, half = json.loads(sys.argv[1])
said, say = os.pipe()

class Stopped:
    def __init__(self, file):
        self.file = file

    def write(self, data):
        self.file.write(data[:size // 2] if half else data)
        self.file.flush()
        os.write(say, b"writing")
        time.sleep(600)

whole = object_cache.atomic_file

@contextlib.contextmanager
def stopped(*arguments, **options):
    with whole(*arguments, **options) as file:
        yield Stopped(file)

child = os.fork()
if not child:
    object_cache.atomic_file = stopped
    object_cache.ObjectCache(folder, limit).put("key", np.full(size, 7, np.uint8))
    os._exit(0)
os.read(said, 7)
os.kill(child, signal.SIGKILL)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


def killed_in_a_write(folder, half):
    done = warm_interpreter.run(PROGRAM, json.dumps([str(folder), SIZE, LIMIT, half]), has_ndd=True)
    assert done.returncode == 0, done.stderr


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.drawn(1)
def test_killed_in_the_middle_of_a_write(tmp_path, half):
    killed_in_a_write(tmp_path, half)
    (left,) = files(tmp_path)
    assert left.suffix == SUFFIX
    assert left.stat().st_size == (SIZE // 2 if half else SIZE)
    cache = ObjectCache(str(tmp_path), LIMIT)
    assert cache.get("key") is None  # nothing of it is read
    data = np.arange(SIZE, dtype=np.uint8)
    cache.put("key", data)
    assert np.array_equal(ObjectCache(str(tmp_path), LIMIT).get("key"), data)


def test_what_killed_processes_leave_counts_and_goes(tmp_path):
    """A job that is killed and begun again, over and over, does not fill the disk."""
    for half in (True, False, False):
        killed_in_a_write(tmp_path, half)
    cache = ObjectCache(str(tmp_path), LIMIT)
    for number in range(4):
        cache.put(f"key {number}", np.full(SIZE, number, np.uint8))
        assert sum(path.stat().st_size for path in files(tmp_path)) <= LIMIT + SIZE
    for path in files(tmp_path):
        if path.suffix == SUFFIX:
            os.utime(path, (time.time() - 7200,) * 2)
    cache.put("key", np.full(SIZE, 9, np.uint8))
    assert all(path.suffix != SUFFIX for path in files(tmp_path))
    assert np.array_equal(cache.get("key"), np.full(SIZE, 9, np.uint8))
