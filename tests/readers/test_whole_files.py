"""Whole files, many in one call: room that is made before their sizes are known, files that change meanwhile, few handles."""

import contextlib
import errno
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from ndd.readers import File
from ndd.readers.files import file_reading
from ndd.readers.files.file_reading import OpenFiles, UsualSize, read_files
from ndd.readers.stores.records import samples_of

compiled = file_reading.compiled
pytestmark = pytest.mark.skipif(not compiled.AVAILABLE, reason="no compiled reading here")


@pytest.fixture(params=["compiled", "before it is compiled"])
def way(request, monkeypatch):
    if request.param != "compiled":
        monkeypatch.setattr(compiled, "read_files", compiled.read_files._fallback)


@pytest.fixture
def never_slowly(monkeypatch):
    def refuse(path, *_):
        raise AssertionError(f"{path} is read alone")

    monkeypatch.setattr(file_reading, "read_slowly", refuse)


def written(folder, sizes):
    """Files of these sizes: their paths and contents."""
    rng = np.random.default_rng(0)
    contents = [rng.integers(0, 256, size, np.uint8).tobytes() for size in sizes]
    paths = [str(folder / str(number)) for number in range(len(sizes))]
    for path, content in zip(paths, contents, strict=True):
        with open(path, "wb") as file:
            file.write(content)
    return paths, contents


def texts(contents):
    return [bytes(piece) for piece in samples_of(contents)]


def handles(folder):
    """What is open in the folder; other tests' connections may end meanwhile."""
    numbers = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    links = [os.path.realpath(f"/proc/self/fd/{number}") for number in numbers]
    return sorted(link for link in links if link.startswith((str(folder), "/dev/zero")))


@pytest.mark.parametrize(
    "sizes", [[0], [5], [0, 0, 0], [64] * 9, [63, 64, 65, 0, 1, 100_000], list(range(0, 9000, 100))]
)
def test_files_of_any_sizes_are_read_whatever_was_usual(tmp_path, way, never_slowly, sizes):
    paths, expected = written(tmp_path, sizes)
    for learnt in ([], [0], [1, 1], [64], [1000, 3000], [200_000]):
        usual = UsualSize()
        if learnt:
            usual.learn(np.array(learnt, np.int64))
        for _ in range(3):
            contents, errors = read_files(paths, usual)
            assert (texts(contents), errors) == (expected, {})
            addresses = contents.addresses()
            assert not (addresses[np.array(sizes) >= 1 << 15] % compiled.ALIGNMENT).any()
    assert texts(read_files(paths)[0]) == expected


def test_files_of_the_usual_size_are_opened_once(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    paths, expected = written(tmp_path, rng.integers(10_000, 200_000, 64).tolist())
    usual, real, calls = UsualSize(), compiled.read_files, []
    monkeypatch.setattr(compiled, "read_files", lambda *args: calls.append(len(args[1])) or real(*args))
    read_files(paths, usual)
    assert calls == [64, 64]  # nothing is known before the first
    calls.clear()
    for _ in range(5):
        order = rng.permutation(64)
        contents, _ = read_files([paths[k] for k in order], usual)
        assert texts(contents) == [expected[k] for k in order]
        assert contents.buffers[0].nbytes < 1.2 * sum(map(len, expected))
    assert calls == [64] * 5


def test_what_is_usual_is_bounded():
    usual = UsualSize()
    assert usual.room(100) == 0
    usual.learn(np.full(4, 2**62))  # their sum wraps
    assert 0 < usual.room(1 << 20) <= 1 << 26
    for _ in range(60):
        usual.learn(np.full(4, 1000))
    assert 64_000 < usual.room(64) < 90_000


def test_files_that_change_after_they_were_measured(tmp_path, way, monkeypatch):
    """The first call measures, the second one reads."""
    names = ["grows", "shrinks", "vanishes", "pipe", "folder", "same"]
    paths = [str(tmp_path / name) for name in names]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"0123456789")
    real, calls = compiled.read_files, []

    def changing(*args):
        if len(calls) == 1:
            for name in ("vanishes", "pipe", "folder"):
                (tmp_path / name).unlink()
            os.mkfifo(tmp_path / "pipe")
            (tmp_path / "folder").mkdir()
            (tmp_path / "grows").write_bytes(b"x" * 1000)
            os.truncate(tmp_path / "shrinks", 4)
        calls.append(1)
        return real(*args)

    monkeypatch.setattr(compiled, "read_files", changing)
    before = handles(tmp_path)
    contents, errors = read_files(paths)
    assert [bytes(contents[k]) for k in (0, 1, 5)] == [b"x" * 1000, b"0123", b"0123456789"]
    assert {k: type(error) for k, error in errors.items()} == {2: FileNotFoundError, 3: OSError, 4: IsADirectoryError}
    assert "Not a regular file" in str(errors[3])
    assert paths[2] in str(errors[2])
    assert handles(tmp_path) == before


def test_a_file_that_is_cut_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    paths, expected = written(tmp_path, [10, 10])
    real, usual = compiled.read_files, UsualSize()
    usual.learn(np.array([100]))

    def cut(*args):
        real(*args)
        os.truncate(paths[1], 4)
        args[-1][1] = 4  # bytes that were there
        return 1

    monkeypatch.setattr(compiled, "read_files", cut)
    contents, errors = read_files(paths, usual)
    assert ([bytes(piece) for piece in contents], errors) == ([expected[0], expected[1][:4]], {})


def test_no_handle_stays_open(tmp_path, way):
    paths, expected = written(tmp_path, [1000, 0, 70_000])
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    wrong = [str(tmp_path / name) for name in ("pipe", "folder", "loop", "none", "0/x", "x" * 300, "a\0b", "\ud800")]
    before, usual = handles(tmp_path), UsualSize()
    usual.learn(np.array([500]))
    for _ in range(3):
        contents, errors = read_files([*paths[:2], *wrong, paths[2], "/dev/zero"], usual)
        assert [bytes(contents[k]) for k in (0, 1, 10)] == expected
        assert sorted(errors) == [*range(2, 10), 11]
        assert all(isinstance(error, OSError) and error.filename for error in list(errors.values())[:6])
        assert errors[7].errno == errno.ENAMETOOLONG
    assert handles(tmp_path) == before


def test_a_thousand_files_where_a_process_may_open_few(tmp_path, never_slowly):
    resource = pytest.importorskip("resource")
    paths, expected = written(tmp_path, [100 + k for k in range(50)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    reader = File(files=[paths[k % 50] for k in range(1000)])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        (jpegs, labels) = next(iter(reader.next_epoch(batch_size=1000)))
        result = [bytes(np.asarray(sample)) for sample in jpegs]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert result == [expected[k % 50] for k in range(1000)]
    assert labels.torch()[:, 0].tolist() == list(range(1000))


def sparse(folder, count, size):
    """Files of so many bytes that no file system needs to store."""
    paths = [str(folder / f"sparse{number}") for number in range(count)]
    for path in paths:
        with open(path, "wb") as file:
            try:
                file.truncate(size)
            except OSError:
                pytest.skip("no file of this size here")
    return paths


@pytest.fixture
def roomy(tmp_path):
    """A folder in memory, where a file may have 2**62 bytes; else any."""
    shared = "/dev/shm"
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.mark.parametrize("count", [1, 2, 4])  # the sum of four is 2**64: it wraps to 0
def test_files_larger_than_the_memory_are_errors_of_their_own(roomy, way, count):
    paths, expected = written(roomy, [100, 5000])
    huge = sparse(roomy, count, 2**62)
    contents, errors = read_files([paths[0], *huge, paths[1]])
    assert [bytes(contents[0]), bytes(contents[-1])] == expected
    assert sorted(errors) == list(range(1, count + 1))
    for k, error in errors.items():
        assert error.errno == errno.ENOMEM
        assert "no room for 4,611,686,018,427,387,904 bytes" in str(error)
        assert error.filename == huge[k - 1]


@pytest.mark.parametrize("count", [2, 4])
def test_ranges_whose_sum_wraps_are_errors(roomy, count):
    with OpenFiles(sparse(roomy, count, 2**62)) as files:
        result = files.read(range(count), [0] * count, [2**62] * count)
        assert [error.errno for error in result] == [errno.ENOMEM] * count
        _, _, errors = files.read_packed(range(count), [0] * count, [2**62] * count)
        assert sorted(errors) == list(range(count))


def test_threads_share_what_is_usual(tmp_path):
    rng = np.random.default_rng(2)
    paths, expected = written(tmp_path, rng.integers(0, 50_000, 40).tolist())
    usual, wrong = UsualSize(), []

    def read(seed):
        own = np.random.default_rng(seed)
        for _ in range(30):
            order = own.permutation(40)[: own.integers(1, 40)]
            if texts(read_files([paths[k] for k in order], usual)[0]) != [expected[k] for k in order]:
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_on(tmp_path):
    paths, expected = written(tmp_path, [1000, 20_000])
    usual = UsualSize()
    read_files(paths, usual)
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            code = int(texts(read_files(paths, usual)[0]) != expected)
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert texts(read_files(paths, usual)[0]) == expected
