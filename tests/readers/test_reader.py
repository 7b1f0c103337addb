"""The base reader through `readers.File`: modes, misuse, unfinished epochs, reset, random access, sample identity."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import ndd
import ndd.readers
from ndd.readers import File
from readers.epochs import epoch_of, flat, labels_of


def test_samples_are_tensors_and_batches_batches(numbered):
    data, label = next(File(files=numbered(3)).next_epoch())
    assert isinstance(data, ndd.Tensor)
    assert (data.dtype, data.shape, data.layout, data.device) == (ndd.uint8, (1,), None, ndd.Device("cpu"))
    assert (label.dtype, label.shape) == (ndd.int32, (1,))
    data, label = next(File(files=numbered(12)).next_epoch(batch_size=12))
    assert isinstance(data, ndd.Batch)
    assert [bytes(np.asarray(t)) for t in data.tensors] == [str(i).encode() for i in range(12)]
    assert (data.dtype, data.batch_size, data.shape[-1]) == (ndd.uint8, 12, (2,))
    assert label.torch().shape == (12, 1)
    assert label.dtype == ndd.int32


def test_length(numbered):
    reader = File(files=numbered(10), num_shards=3)
    for expected in (2, 2, 2):
        epoch = reader.next_epoch(batch_size=2)
        assert len(epoch) == expected == len(list(epoch)) == len(epoch)
    reader = File(files=numbered(10), num_shards=3)
    for expected in (3, 3, 4):
        epoch = reader.next_epoch()
        assert len(epoch) == expected == len(list(epoch))
    assert len(File(files=numbered(10), num_shards=3)) == 10


def test_an_epoch_is_its_own_iterator_and_a_new_loop_a_new_epoch(numbered):
    epoch = File(files=numbered(3)).next_epoch()
    assert iter(epoch) is epoch
    assert len(list(epoch)) == 3
    assert next(epoch, None) is None
    assert [len(list(epoch)) for _ in range(3)] == [3, 3, 3]


def test_max_batch_size(numbered):
    reader = File(files=numbered(10), max_batch_size=4)
    assert len(epoch_of(reader)) == 3
    with pytest.raises(ValueError, match="different than the `max_batch_size` 4"):
        reader.next_epoch(batch_size=5)
    with pytest.raises(ValueError, match="`batch_size` 5 is larger than the `max_batch_size` 4"):
        File(files=numbered(10), max_batch_size=4).next_epoch(batch_size=5)
    reader = File(files=numbered(10), max_batch_size=4)
    assert len(epoch_of(reader, 3)) == 4


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "4", True])
def test_wrong_batch_size(numbered, wrong):
    with pytest.raises(RuntimeError, match="positive integer"):
        list(File(files=numbered(3)).next_epoch(batch_size=wrong))


@pytest.mark.parametrize("size", [np.int64(4), np.array(4), ndd.tensor(4)])
def test_batch_size_of_other_types(numbered, size):
    assert len(list(File(files=numbered(10)).next_epoch(batch_size=size))) == 3


def test_arguments_may_be_values(numbered):
    reader = File(
        files=numbered(3), labels=ndd.tensor([4, 5, 6]), seed=ndd.tensor(5), num_shards=np.int64(1), shard_id=None
    )
    assert epoch_of(reader) == [4, 5, 6]
    assert epoch_of(File(files=numbered(3), labels=np.array([4, 5, 6]))) == [4, 5, 6]


def test_modes_do_not_mix(numbered):
    reader = File(files=numbered(10))
    epoch_of(reader, 4)
    with pytest.raises(ValueError, match="`batch_size` 3 is different than the `max_batch_size` 4"):
        reader.next_epoch(batch_size=3)
    for call in (reader.next_epoch, reader, lambda: reader(batch_size=4)):
        with pytest.raises(RuntimeError, match="Cannot mix `samples`, `batches`"):
            call()
    reader = File(files=numbered(10))
    late = reader.next_epoch(batch_size=4)
    epoch_of(reader)
    with pytest.raises(RuntimeError, match="Cannot mix"):
        next(late)
    reader = File(files=numbered(10))
    assert labels_of(reader()) == 0
    with pytest.raises(RuntimeError, match="batch_size"):
        reader(batch_size=3)
    with pytest.raises(RuntimeError, match="Cannot mix"):
        reader.next_epoch()


def test_calls_go_round(numbered):
    reader = File(files=numbered(3))
    assert [labels_of(reader()) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    reader = File(files=numbered(3))
    assert [labels_of(reader(batch_size=2)) for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]
    with pytest.raises(TypeError):
        reader(3)
    with pytest.raises(TypeError):
        reader(file_root="x")


def test_wrong_context_and_capture(numbered):
    reader = File(files=numbered(3))
    with pytest.raises(TypeError, match="EvalContext"):
        reader.next_epoch(2, 5)
    with pytest.raises(ValueError, match="batch_size"):
        reader.next_epoch(capture=True)
    assert len(list(reader.next_epoch(2, ndd.EvalContext.current()))) == 2


def test_an_unfinished_epoch_warns_once(numbered):
    reader = File(files=numbered(10))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert epoch_of(reader, limit=3) == [0, 1, 2]
        assert epoch_of(reader, limit=3) == [3, 4, 5]
        assert epoch_of(reader) == [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]
        assert epoch_of(reader) == [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]
    assert len(seen) == 1
    assert "reset()" in str(seen[0].message)
    assert seen[0].filename.endswith("epochs.py")


def test_stopping_at_the_last_sample_is_no_unfinished_epoch(numbered):
    reader = File(files=numbered(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        epoch_of(reader, limit=3)
        assert epoch_of(reader) == [0, 1, 2]


def test_two_epochs_share_the_stream(numbered):
    reader = File(files=numbered(10), num_shards=3)
    first, second = reader.next_epoch(), reader.next_epoch()
    assert [labels_of(next(e)) for e in (first, second, first, second, first)] == [0, 1, 2, 3, 4]
    assert next(first, None) is None
    assert [labels_of(v) for v in second] == [5]


@pytest.mark.parametrize("given_", [{}, {"random_shuffle": True, "initial_fill": 3}, {"shuffle": "global"}])
def test_reset(numbered, given_):
    expected = File(files=numbered(10), **given_)
    epochs = [epoch_of(expected) for _ in range(4)]
    reader = File(files=numbered(10), **given_)
    epoch = reader.next_epoch()
    next(epoch)
    reader.reset()
    assert next(epoch, None) is None
    assert epoch_of(reader) == epochs[1]
    reader.reset()  # between epochs: only frees mode and batch size
    batches = epoch_of(reader, 4)
    assert flat(batches)[:10] == epochs[2]
    reader.reset()  # the last batch had gone on into epoch 3
    assert epoch_of(reader) == epochs[3]
    reader.reset(epoch=1)
    assert epoch_of(reader) == epochs[1]
    assert epoch_of(reader) == epochs[2]
    with pytest.raises(ValueError, match="from 0"):
        reader.reset(-1)


def test_reset_after_calls(numbered):
    reader = File(files=numbered(3))
    reader()
    reader.reset()
    assert epoch_of(reader, 2) == [[0, 1], [2, 0]]


def test_reset_of_a_fresh_reader(numbered):
    reader = File(files=numbered(3))
    reader.reset()
    assert epoch_of(reader) == [0, 1, 2]


def test_random_access(numbered):
    reader = File(files=numbered(6), random_shuffle=True)
    order = epoch_of(reader, limit=2)
    assert labels_of(reader[4]) == 4
    assert labels_of(reader[-1]) == 5
    assert labels_of(reader[1:4]) == [1, 2, 3]
    assert labels_of(reader.fetch([5, 0, 5])) == [5, 0, 5]
    assert labels_of(reader.fetch(ndd.tensor([2, 1]))) == [2, 1]
    assert labels_of(reader.fetch(np.arange(40) % 6)) == [i % 6 for i in range(40)]
    fresh = File(files=numbered(6), random_shuffle=True)
    assert order == epoch_of(fresh, limit=2)
    assert epoch_of(reader, limit=3) == epoch_of(fresh, limit=3)  # access by number moved nothing
    for wrong in (6, -7):
        with pytest.raises(IndexError, match="from 0 to 5"):
            reader[wrong]
    with pytest.raises(IndexError):
        reader.fetch([0, 6])
    with pytest.raises(TypeError):
        reader[1.5]
    with pytest.raises(TypeError):
        reader.fetch(["a"])
    with pytest.raises(ValueError, match="at least one"):
        reader.fetch([])


def test_source_info_and_indices(numbered):
    files = numbered(10)
    reader = File(files=files, shuffle="global", seed=3)
    epoch = reader.next_epoch(batch_size=4)
    data, label = next(epoch)
    assert epoch.indices == labels_of((data, label))
    assert data.source_info == [files[i] for i in epoch.indices]
    assert label.source_info == data.source_info
    sample, _ = reader[7]
    assert sample.source_info == files[7]


def test_sampler(numbered):
    reader = File(files=numbered(6), sampler=[5, 5, 0])
    assert epoch_of(reader) == [5, 5, 0]
    assert len(reader.next_epoch()) == 3
    reader = File(files=numbered(6), sampler=lambda epoch: [epoch, epoch + 1], num_shards=2, shard_id=1)
    assert [epoch_of(reader) for _ in range(3)] == [[1], [2], [3]]
    reader = File(files=numbered(6), sampler=lambda epoch: [0] if epoch < 2 else [9])
    assert epoch_of(reader) == [0]
    assert epoch_of(reader) == [0]
    for _ in range(2):
        with pytest.raises(IndexError, match="got 9"):
            epoch_of(reader)
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    sampler = torch.utils.data.WeightedRandomSampler([0, 0, 1, 1, 0, 0], 8, generator=generator)
    assert set(epoch_of(File(files=numbered(6), sampler=sampler))) <= {2, 3}


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        ({"sampler": iter([1])}, TypeError),
        ({"sampler": [1], "random_shuffle": True}, ValueError),
        ({"shuffle": "local"}, ValueError),
        ({"shuffle": "global", "random_shuffle": True}, ValueError),
        ({"shard": "all"}, ValueError),
        ({"shard": "auto", "num_shards": 2}, ValueError),
        ({"initial_fill": 0, "random_shuffle": True}, ValueError),
        ({"seed": 1.5}, ValueError),
        ({"device": "gpu"}, ValueError),
        ({"device": "cuda:0"}, ValueError),
        ({"device": "tpu"}, ValueError),
        ({"num_inputs": 1}, ValueError),
    ],
)
def test_refused_at_construction(numbered, given_, error):
    with pytest.raises(error, match=r"readers\.File|sampler|seed"):
        File(files=numbered(3), **given_)


def test_shard_auto(numbered, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert epoch_of(File(files=numbered(6), shard="auto")) == list(range(6))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    reader = File(files=numbered(6), shard="auto")
    assert epoch_of(reader) == [2, 3]
    assert reader.get_metadata()["number_of_shards"] == 3


def test_shard_auto_from_torch_distributed(numbered, monkeypatch):
    distributed = pytest.importorskip("torch.distributed")
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 3)
    assert epoch_of(File(files=numbered(7), shard="auto")) == [4, 5, 6]


def test_global_shuffle(numbered):
    reader = File(files=numbered(20), shuffle="global")
    epochs = [epoch_of(reader) for _ in range(3)]
    assert all(sorted(e) == list(range(20)) for e in epochs)
    assert len({tuple(e) for e in epochs}) == 3
    parts = [File(files=numbered(20), shuffle="global", num_shards=3, shard_id=i) for i in range(3)]
    for epoch in epochs:
        assert flat([epoch_of(p) for p in parts]) == epoch


def test_metadata_before_and_during(numbered):
    reader = File(files=numbered(10), num_shards=3, shard_id=1, pad_last_batch=True)
    expected = {
        "epoch_size": 10,
        "epoch_size_padded": 12,
        "number_of_shards": 3,
        "shard_id": 1,
        "pad_last_batch": 1,
        "stick_to_shard": 0,
    }
    assert reader.get_metadata() == expected
    epoch_of(reader, 4)
    assert reader.get_metadata(4) == expected


def test_nothing_is_opened_before_the_first_sample():
    reader = File(file_root="/nonexistent")
    epoch = reader.next_epoch(batch_size=2)
    reader.get_state()
    with pytest.raises(RuntimeError, match="Failed to open /nonexistent"):
        next(epoch)


def test_more_shards_than_samples(numbered):
    with pytest.raises(RuntimeError, match=r'"num_shards_ <= Size\(\)" failed: The number of input samples: 3'):
        epoch_of(File(files=numbered(3), num_shards=4))


@pytest.mark.parametrize("batch", [None, 2])
def test_an_unreadable_file_harms_only_its_batch(numbered, batch):
    files = list(numbered(6))
    files[2] = "/nonexistent/zz"
    bad = "FileNotFoundError"
    reader = File(files=files)
    epoch = reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch)
    seen = []
    while True:
        try:
            seen.append(labels_of(next(epoch)))
        except RuntimeError as error:
            seen.append(type(error.__cause__).__name__ if "sample 2 (/nonexistent/zz)" in str(error) else str(error))
        except StopIteration:
            break
    assert seen == ([0, 1, bad, 3, 4, 5] if batch is None else [[0, 1], bad, [4, 5]])
    assert labels_of(reader[3]) == 3
    with pytest.raises(RuntimeError, match="sample 2"):
        reader[2]
    with pytest.raises(RuntimeError, match="sample 2"):
        reader.fetch([1, 2])


def test_directories_and_empty_files(tmp_path):
    (tmp_path / "empty.bin").write_bytes(b"")
    (tmp_path / "full.bin").write_bytes(b"12")
    reader = File(files=["empty.bin", "full.bin"], file_root=tmp_path)
    data, _ = next(reader.next_epoch(batch_size=2))
    assert data.shape == [(0,), (2,)]
    with pytest.raises(RuntimeError, match="directory"):
        epoch_of(File(files=[tmp_path]))


def test_large_batches_are_read_exactly(tmp_path):
    rng = np.random.default_rng(0)
    contents = [rng.integers(0, 256, int(n), np.uint8).tobytes() for n in rng.integers(0, 200_000, 150)]
    for i, content in enumerate(contents):
        (tmp_path / f"{i:03}.bin").write_bytes(content)
    reader = File(files=sorted(map(str, tmp_path.iterdir())))
    data, _ = next(reader.next_epoch(batch_size=150))
    assert [bytes(np.asarray(t)) for t in data.tensors] == contents
    assert all(np.asarray(t).flags.writeable for t in data.tensors)


def test_what_a_reader_says_of_itself(numbered, monkeypatch, tmp_path):
    reader = File(files=numbered(5), num_shards=2, shard_id=1, random_shuffle=True)
    first = f"File(files=[{numbered(1)[0]!r}, ...] (5))"
    assert repr(reader) == f"{first}: not opened yet, shard 1 of 2, random_shuffle, at epoch 0, sample 0"
    next(reader.next_epoch(batch_size=2))
    assert repr(reader) == f"{first}: 5 samples, shard 1 of 2, random_shuffle, at epoch 0, sample 2"
    assert repr(File(file_root=tmp_path)).startswith(f"File(file_root={str(tmp_path)!r}): not opened yet")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    reader = File(files=numbered(3), shard="auto")
    assert "not opened yet, shard by rank, at" in repr(reader)
    reader.fetch([0])
    assert "3 samples, shard 1 of 3, at" in repr(reader)


def test_repr_does_not_ask_a_sampler(numbered):
    asked = []
    reader = File(files=numbered(3), sampler=lambda epoch: asked.append(epoch) or [2, 1])
    reader.fetch([0])
    assert "3 samples, shard 0 of 1, sampler, at epoch 0, sample 0" in repr(reader)
    assert not asked


@pytest.mark.parametrize(
    "given_", [{"file_root": "absent"}, {"file_list": "absent"}, {"files": ["absent"]}, {"file_list": "list.txt"}]
)
def test_a_missing_file_names_the_working_directory(given_, tmp_path, monkeypatch):
    (tmp_path / "list.txt").write_text("absent/1.jpg 0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=f"absent.* from the working directory {tmp_path}"):
        File(**given_).fetch([0])
    with pytest.raises(RuntimeError) as told:
        File(file_root="/nonexistent").fetch([0])
    assert "working directory" not in str(told.value)


@pytest.mark.parametrize("batch", [None, 3])
def test_samples_fetched_before_an_epoch_leave_its_batches_as_they_are(numbered, batch):
    expected = epoch_of(File(files=numbered(7)), batch)
    reader = File(files=numbered(7))
    for _ in range(2):
        reader.fetch([5, 1])
        assert epoch_of(reader, batch) == expected
        reader.reset(0)
    reader[1:4]
    assert reader(batch_size=2)[1].batch_size == 2
    reader.reset(0)
    reader.fetch([0, 1])
    reader.set_state(File(files=numbered(7)).get_state())
    assert epoch_of(reader, batch) == expected


def test_urls_of_local_files(tmp_path):
    for name in ("a b.jpg", "50%41.jpg", "x.npy"):
        (tmp_path / name).write_bytes(name.encode())
    urls = [f"file://{tmp_path}/{name}" for name in ("a b.jpg", "50%41.jpg")]
    result = [bytes(np.asarray(data)) for data, _ in File(files=urls).next_epoch()]
    assert result == [b"a b.jpg", b"50%41.jpg"]
    quoted = [(tmp_path / name).as_uri() for name in ("a b.jpg", "50%41.jpg")]
    assert quoted[0].endswith("a%20b.jpg")
    assert [bytes(np.asarray(data)) for data, _ in File(files=quoted).next_epoch()] == result
    assert len(File(file_root=tmp_path.parent.as_uri(), dir_filters=tmp_path.name)) == 2
    np.save(tmp_path / "x.npy", np.arange(3))
    assert ndd.readers.Numpy(files="x.npy", file_root=tmp_path.as_uri())[0][0].torch().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: File(file_root="~/data"), r"~/data from .* \(~ is a name like any other: see os\.path\.expanduser\)"),
        (
            lambda: File(files="/data/*.jpg"),
            r"\(/data/\*\.jpg\): .*\(a pattern is a name like any other: see glob\.glob",
        ),
        (
            lambda: File(files="ftp://host/a.jpg"),
            r"\(a path, file:// or a URL of s3, gs, az, http or https was expected\)",
        ),
        (
            lambda: ndd.readers.Webdataset(paths="/data/a-{000..9}.tar", ext="jpg"),
            r"9}\.tar \(a pattern is a name like",
        ),
        (lambda: ndd.readers.Webdataset(paths="absent.tar", ext="jpg"), "absent.tar from the working directory /"),
        (lambda: ndd.readers.Caffe(path="~/lmdb"), r"~/lmdb from .* \(~ is a name like any other"),
    ],
)
def test_what_is_more_than_a_name_elsewhere(make, said):
    with pytest.raises(RuntimeError, match=said):
        next(make().next_epoch())


def test_images_directly_in_the_root(tmp_path):
    for name in ("1.jpg", "2.jpg", "notes.txt"):
        (tmp_path / name).write_text("...")
    with pytest.raises(RuntimeError, match="2 files lie in it directly: put them into one folder for each class"):
        File(file_root=tmp_path).fetch([0])
    (tmp_path / "cat").mkdir()
    with pytest.raises(RuntimeError, match=r"2 files lie in it directly.* or name them with files="):
        File(file_root=tmp_path).fetch([0])
    with pytest.raises(RuntimeError, match=r"1 file lies in it directly"):
        File(file_root=tmp_path, file_filters="1.*").fetch([0])
    with pytest.raises(RuntimeError, match=r"No files found in .*\. Do the filters match the names\?$"):
        File(file_root=tmp_path, dir_filters="dog").fetch([0])


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("File", {"file_root": 5}, "file_root: expected a path .* got 5"),
        ("File", {"files": 5}, "files: expected a path .* got 5"),
        ("File", {"files": ["a", 1.5]}, r"files: expected a path .* got 1\.5"),
        ("File", {"file_list": 5}, "file_list: expected a path"),
        ("File", {"file_root": ".", "file_filters": 5}, r"file_filters: expected a pattern such as '\*\.jpg'"),
        ("Numpy", {"file_root": 5}, "file_root: expected a path"),
        ("COCO", {"file_root": 5, "annotations_file": "x"}, "file_root: expected a path"),
        ("COCO", {"file_root": ".", "annotations_file": 5}, "annotations_file: expected a path"),
        ("MXNet", {"path": "x", "index_path": 5}, "index_path: expected a path"),
        ("Webdataset", {"paths": 5, "ext": "jpg"}, "paths: expected a path"),
        ("Caffe", {"path": 5}, "path: expected a path"),
    ],
)
def test_what_is_no_path(name, arguments, said):
    with pytest.raises(TypeError, match=rf"readers\.{name}: {said}"):
        next(getattr(ndd.readers, name)(**arguments).next_epoch(batch_size=1))


def test_sizes_and_numbers_name_the_reader(numbered):
    with pytest.raises(RuntimeError, match=r"readers\.File: batch_size: expected a positive integer, got 0"):
        File(files=numbered(2)).next_epoch(batch_size=0)
    with pytest.raises(RuntimeError, match=r"readers\.File: max_batch_size: expected a positive integer, got -1"):
        next(File(files=numbered(2), max_batch_size=-1).next_epoch())
    with pytest.raises(TypeError, match=r"readers\.File\.fetch: expected a list of sample numbers, got 1"):
        File(files=numbered(2)).fetch(1)


def test_links_to_themselves(tmp_path):
    """Beside the folders they are none of them; among the files the error names them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(b"x")
    (tmp_path / "self").symlink_to("self")
    reader = File(file_root=tmp_path)
    assert next(reader.next_epoch(batch_size=1))[0].source_info == [str(tmp_path / "a" / "x.jpg")]
    (tmp_path / "a" / "me.jpg").symlink_to("me.jpg")
    with pytest.raises(RuntimeError, match=r"me\.jpg"):
        next(File(file_root=tmp_path).next_epoch(batch_size=2))


def test_the_machinery_of_a_reader_is_out_of_sight(numbered):
    """`help` shows what users call; a subclass may name its own attributes as it likes."""
    shown = {name for name in dir(File) if not name.startswith("_")}
    assert shown == {
        "class_to_idx", "classes", "close", "devices", "fetch",
        "get_metadata", "get_state", "gives_dicts", "load_state_dict", "next_epoch",
        "num_outputs", "outputs", "reset", "set_state", "skipped", "state_dict",
    }  # fmt: skip
    assert set(vars(File(files=numbered(2)))) == {"_arguments", "_called_with", "_options", "_session"}


def test_a_reader_that_nobody_holds_ends_at_once(numbered):
    gc.disable()
    try:
        reader = File(files=numbered(8))
        next(reader.next_epoch(batch_size=2))
        session, ahead = weakref.ref(reader._session), reader._session.ahead
        del reader
        assert session() is None
        assert ahead._stopped
    finally:
        gc.enable()
