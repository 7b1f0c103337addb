"""`on_error="skip"`: nothing is lost silently, and a saved state knows what was left out."""

import errno
import json
import os

import numpy as np
import pytest
from encoded import made

import ndd
from ndd.readers import File, Numpy
from readers.epochs import epoch_of, labels_of

BROKEN = (2, 3, 6)


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{i}.bin" for i in range(9)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i]))
    return [str(path) for path in paths]


@pytest.fixture
def broken(files):
    for i in BROKEN:
        os.unlink(files[i])
    return files


def test_a_batch_is_smaller_and_says_what_is_missing(broken):
    reader = File(files=broken, on_error="skip")
    epoch = reader.next_epoch(batch_size=3)
    assert reader.skipped == []
    with pytest.warns(UserWarning, match=r"readers.File: sample 2 \(.*2.bin\) is left out: FileNotFoundError"):
        first = next(epoch)
    assert labels_of(first) == [0, 1] == epoch.indices
    assert [(bad.index, bad.source) for bad in first[0].dropped] == [(2, broken[2])]
    assert first[1].dropped == first[0].dropped == epoch.dropped
    assert first[0].source_info == broken[:2]
    assert labels_of(next(epoch)) == [4, 5]
    assert epoch.dropped[0].index == 0
    assert labels_of(next(epoch)) == [7, 8]
    assert [bad.number for bad in reader.skipped] == list(BROKEN)
    assert all(bad.source == broken[bad.number] and "FileNotFoundError" in bad.error for bad in reader.skipped)
    assert epoch_of(reader, 3) == [[0, 1], [4, 5], [7, 8]]
    assert len(reader.skipped) == 3


def test_samples_and_calls(broken):
    reader = File(files=broken, on_error="skip")
    assert epoch_of(reader) == [0, 1, 4, 5, 7, 8]
    reader.reset()
    assert [labels_of(reader()) for _ in range(7)] == [0, 1, 4, 5, 7, 8, 0]
    data, labels = reader.fetch([3, 1, 2, 0])
    assert labels_of((data, labels)) == [1, 0]
    assert [bad.index for bad in data.dropped] == [0, 2]
    for ask in (lambda: reader[3], lambda: reader.fetch([3, 2])):
        with pytest.raises(RuntimeError, match=r"3.bin"):
            ask()


def test_raising_is_the_default(broken):
    epoch = File(files=broken).next_epoch(batch_size=3)
    with pytest.raises(RuntimeError, match=r"sample 2 \("):
        next(epoch)
    with pytest.raises(ValueError, match="on_error: expected"):
        File(files=broken, on_error="ignore")


def test_a_batch_of_which_nothing_is_left(broken):
    reader = File(files=broken, on_error="skip", max_batch_size=2, sampler=[0, 1, 2, 3, 4, 5])
    assert epoch_of(reader) == [[0, 1], [4, 5]]
    assert [bad.number for bad in reader.skipped] == [2, 3]


def test_data_of_which_nothing_can_be_read(files):
    reader = File(files=files, on_error="skip")
    len(reader)
    for path in files:
        os.unlink(path)
    with pytest.raises(RuntimeError, match=r"expected some readable records, none of 9 in a row"):
        list(reader.next_epoch(batch_size=3))
    reader.reset()
    with pytest.raises(RuntimeError, match=r"none of 9 in a row"):
        reader()


@pytest.mark.parametrize(
    ("size", "sound", "options", "expected"),
    [
        (3, [0], {"sampler": lambda epoch: [[0, 1, 2], [2, 1, 0]][epoch % 2]}, [[0]] * 4),
        (6, [0, 5], {"num_shards": 2}, [[0], [5]] * 2),
    ],
)
def test_broken_records_last_in_an_epoch_and_first_in_the_next(files, size, sound, options, expected):
    paths = [files[i] if i in sound else f"absent {i}" for i in range(size)]
    reader = File(files=paths, labels=list(range(size)), on_error="skip", **options)
    with pytest.warns(UserWarning, match="is left out"):
        assert [epoch_of(reader) for _ in expected] == expected


def test_states_know_what_was_left_out(broken):
    reader = File(files=broken, on_error="skip", shuffle="global", seed=1)
    arguments, states = [], []
    for value in reader.next_epoch(batch_size=2):
        arguments.append(labels_of(value))
        states.append((str(reader.get_state()), reader.skipped))
    for place, (state, skipped) in enumerate(states[:-1]):
        other = File(files=broken, on_error="skip", shuffle="global", seed=1)
        other.set_state(state)
        assert other.skipped == skipped
        assert epoch_of(other, 2) == arguments[place + 1 :]
        assert other.skipped == reader.skipped
    with pytest.raises(ValueError, match="'skipped'"):
        reader.set_state(json.dumps({**json.loads(str(reader.get_state())), "skipped": [["x"]]}))


def test_records_of_another_type(tmp_path):
    for i, kind in enumerate([np.uint8, np.uint8, np.float32, np.uint8]):
        np.save(tmp_path / f"{i}.npy", np.full(2, i, kind))
    reader = Numpy(file_root=tmp_path, on_error="skip")
    ((array,),) = list(reader.next_epoch(batch_size=4))
    assert [int(np.asarray(a)[0]) for a in array.tensors] == [0, 1, 3]
    assert "expected 'array' as uint8" in reader.skipped[0].error


def test_on_the_gpu(tmp_path, emulated_gpu):
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", np.full(2, i))
    (tmp_path / "1.npy").write_bytes(b"?")
    reader = Numpy(file_root=tmp_path, on_error="skip", device="gpu")
    ((array,),) = list(reader.next_epoch(batch_size=3))
    assert array.device.device_type == "gpu"
    assert [bad.index for bad in array.dropped] == [1]


class NoMemory(ndd.readers.RecordStore):
    def __len__(self):
        return 6

    def source(self, number):
        return str(number)

    def record(self, number):
        raise (MemoryError("no"), TimeoutError("no"), OSError(errno.EMFILE, "Too many open files"))[number // 2]


class NoMemories(ndd.readers.Reader):
    def _open(self):
        return NoMemory()

    @classmethod
    def _outputs(cls, **arguments):
        return (ndd.readers.Output("data", ndd.uint8, 1),)


def test_what_is_no_fault_of_the_record_is_raised():
    epoch = NoMemories(on_error="skip").next_epoch(batch_size=2)
    for kind in ("MemoryError", "TimeoutError", "Too many open files"):
        with pytest.raises(RuntimeError, match=kind):
            next(epoch)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_without_file_descriptors_nothing_is_left_out(files, tmp_path):
    """In a forked process, one after the other runs out of them."""
    resource = pytest.importorskip("resource")
    clip = str(tmp_path / "clip.mp4")
    ndd.io.video.write(clip, np.zeros((2, 32, 64, 3), np.uint8))
    (tmp_path / "one.jpg").write_bytes(made()["420.jpg"].tobytes())
    calls = [
        lambda: len(ndd.readers.Video(filenames=[clip], sequence_length=1, on_error="skip")),
        lambda: len(epoch_of(File(files=files, on_error="skip"), 1)),
        lambda: ndd.imread([str(tmp_path / "one.jpg")], on_error="skip").evaluate().batch_size,
    ]
    assert [call() for call in calls] == [2, len(files), 1]
    child = os.fork()
    if not child:
        said = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            for call in calls:
                try:
                    said.append(str(call()))
                except Exception as error:
                    said.append(repr(error))
        finally:
            print(*said, sep="\n", flush=True)
            os._exit(sum("Too many open files" in text for text in said))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)


@pytest.mark.parametrize("harm", ["shrink", "vanish", "unreadable", "folder"])
def test_a_file_that_changes_after_it_was_listed(tmp_path, harm):
    """It costs its own sample, whatever happened to it."""
    (tmp_path / "class").mkdir()
    paths = [tmp_path / "class" / f"{i}.jpg" for i in range(3)]
    for path in paths:
        path.write_bytes(b"12345678")
    reader = File(file_root=tmp_path, on_error="skip")
    assert len(reader) == 3
    if harm == "shrink":
        paths[1].write_bytes(b"1")
    else:
        paths[1].unlink()
    if harm == "unreadable":
        paths[1].symlink_to(tmp_path / "nowhere")
    if harm == "folder":
        paths[1].mkdir()
    sizes = [len(np.asarray(data)) for data, _ in reader.next_epoch()]
    assert sizes == ([8, 1, 8] if harm == "shrink" else [8, 8])
    assert [bad.number for bad in reader.skipped] == ([] if harm == "shrink" else [1])
