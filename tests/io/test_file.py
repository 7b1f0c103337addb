"""io.file.read: whole files, against the oracle; and what cannot be read."""

from __future__ import annotations

import gc
import importlib
import os
import threading

import numpy as np
import pytest
from waiting import wait_until

import ndd
from ndd._cpu import files as file_kernels

REGISTRY_CASES = {"io.file.read": []}  # it reads files


def path_tensor(path, dtype=np.uint8):
    return np.frombuffer(str(path).encode(), dtype)


@pytest.fixture
def files(tmp_path):
    sizes = (1, 10, 5000, 100_003)
    result = []
    for size in sizes:
        result.append(tmp_path / f"file {size}ä.bin")
        result[-1].write_bytes(np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes())
    return result


@pytest.mark.oracle
def test_against_the_oracle(dali, files):
    for path in files:
        for arguments in ({}, {"dont_use_mmap": True}, {"use_o_direct": True}):
            with dali.EvalMode.sync_cpu:
                expected = np.asarray(dali.io.file.read(dali.tensor(path_tensor(path)), **arguments)).copy()
            result = ndd.io.file.read(path_tensor(path), **arguments)
            assert (result.dtype, result.ndim, result.layout) == (ndd.uint8, 1, None)
            np.testing.assert_array_equal(np.asarray(result), expected)


def test_batches_and_spellings(files):
    contents = [p.read_bytes() for p in files]
    out = ndd.io.file.read(ndd.batch([path_tensor(p) for p in files]))
    assert [np.asarray(t).tobytes() for t in out.tensors] == contents
    for spelling in (
        path_tensor(files[0], np.int8),
        path_tensor(f"{files[0]}\0 and more"),
        path_tensor(f"file://{files[0]}"),
    ):
        assert np.asarray(ndd.io.file.read(spelling)).tobytes() == contents[0]


def test_an_empty_file_has_no_bytes(tmp_path):
    (tmp_path / "empty").touch()
    assert ndd.io.file.read(path_tensor(tmp_path / "empty")).shape == (0,)


def test_what_cannot_be_read(files, tmp_path):
    with pytest.raises(RuntimeError, match=r"read: sample 1.*nothing_here.*cannot be read: No such file"):
        ndd.io.file.read(ndd.batch([path_tensor(files[0]), path_tensor(tmp_path / "nothing_here")])).evaluate()
    with pytest.raises(RuntimeError, match="cannot be read"):
        ndd.io.file.read(path_tensor(tmp_path)).evaluate()
    with pytest.raises(RuntimeError, match="scheme ftp://"):
        ndd.io.file.read(path_tensor("ftp://host/key")).evaluate()
    for wrong in (path_tensor(files[0]).astype(np.int32), path_tensor(files[0])[None]):
        with pytest.raises(RuntimeError, match="expected paths as characters"):
            ndd.io.file.read(wrong).evaluate()


def test_the_path_goes_with_the_bytes(files):
    out = ndd.decoders.image(ndd.io.file.read(path_tensor(files[1])))
    with pytest.raises(RuntimeError, match="10ä"):
        out.evaluate()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
@pytest.mark.parametrize("read", [lambda path: ndd.io.file.read(path), lambda path: ndd.imread(path)])
def test_a_pipe_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(RuntimeError, match="Not a regular file"):
            read(str(path)).evaluate()


@pytest.mark.oracle
def test_a_batch_of_no_paths(dali):
    results = [m.io.file.read(m.batch([], dtype=m.uint8)).evaluate() for m in (ndd, dali)]
    for name in ("shape", "ndim", "layout"):
        assert getattr(results[0], name) == getattr(results[1], name)


def test_many_files_are_one_task_for_each_thread(files, tasks, monkeypatch):
    """And are open together, but not too many of them."""
    monkeypatch.setattr(importlib.import_module("ndd.io.file"), "_OPEN_AT_ONCE", 10)
    paths = [files[i * 7 % 4] for i in range(26)]
    ndd.set_num_threads(3)
    try:
        result = ndd.io.file.read([str(path) for path in paths]).evaluate()
    finally:
        ndd.set_num_threads(None)
    assert [np.asarray(t).tobytes() for t in result.tensors] == [path.read_bytes() for path in paths]
    assert len(tasks) == 6  # two for each part: to open, to read
    assert max(tasks) <= 3


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
def test_no_file_stays_open(files, tmp_path, monkeypatch):
    missing = [*map(str, files), str(tmp_path / "nothing_here")]
    with pytest.raises(RuntimeError, match=r"sample 4.*nothing_here.*No such file"):
        ndd.io.file.read(missing).evaluate()
    ndd.io.file.read(missing[:-1]).evaluate()

    def interrupted(*options):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return real(*options)

    real = file_kernels.read_loop
    monkeypatch.setattr(file_kernels, "read_loop", interrupted)
    for threads in (1, 2):
        with ndd.EvalContext(num_threads=threads), ndd.EvalMode.sync_cpu, pytest.raises(KeyboardInterrupt):
            ndd.io.file.read(missing[:-1])
    wait_until(lambda: not links_into(tmp_path))


def links_into(folder):
    """The open files of this process that lie there."""
    gc.collect()
    places = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return [p for p in places if os.path.lexists(p) and os.readlink(p).startswith(str(folder))]
