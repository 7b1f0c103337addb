"""`readers.Numpy(device="gpu")` through kvikio: with a stand-in that has kvikio's interface and reads to the pretended
memory of a GPU."""

import errno
import os
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from waiting import wait_until

import ndd
from ndd.readers import Numpy


class StandIn:
    """kvikio 26.10 as far as it is used. `shorter` bytes are missing at the end of each read; `broken` files raise when
    they are opened ("open"), when reading begins ("begin") or when it ends ("end")."""

    def __init__(self):
        self.available, self.compatible = True, False
        self.opened, self.reads = [], []
        self.shorter, self.broken = 0, {}
        self.threads = ThreadPoolExecutor(2)

    def put_in_place(self, monkeypatch):
        kvikio = types.ModuleType("kvikio")
        kvikio.CuFile = lambda path, flags="r": CuFile(self, path, flags)
        kvikio.cufile_driver = types.ModuleType("kvikio.cufile_driver")
        kvikio.cufile_driver.get = {"is_gds_available": self.available}.__getitem__
        kvikio.defaults = types.ModuleType("kvikio.defaults")
        kvikio.defaults.is_compat_mode_preferred = lambda: self.compatible
        for module in (kvikio, kvikio.cufile_driver, kvikio.defaults):
            monkeypatch.setitem(sys.modules, module.__name__, module)

    def maybe(self, moment, path):
        if self.broken.get(os.path.basename(path)) == moment:
            raise RuntimeError(f"KvikIO failure at {moment}")


class CuFile:
    def __init__(self, kvikio, path, flags):
        assert flags == "r"
        kvikio.maybe("open", path)
        self.kvikio, self.path = kvikio, path
        self.file, self.pending = open(path, "rb", buffering=0), []  # noqa: SIM115
        kvikio.opened.append(self)

    def fileno(self):
        return self.file.fileno()

    def pread(self, buf, size=None, file_offset=0, task_size=None):
        """To a contiguous u8 buffer, on a thread of its own; what is beyond the end of the file is not read."""
        self.kvikio.maybe("begin", self.path)
        target = torch.from_dlpack(buf).numpy()  # NumPy before 2.2 makes read-only arrays
        assert target.dtype == np.uint8
        assert size == len(target)
        self.kvikio.reads.append((os.path.basename(self.path), file_offset, size))

        def read():
            self.kvikio.maybe("end", self.path)
            data = os.pread(self.fileno(), max(size - self.kvikio.shorter, 0), file_offset)
            target[: len(data)] = np.frombuffer(data, np.uint8)
            return len(data)

        future = self.kvikio.threads.submit(read)
        self.pending.append(future)
        return types.SimpleNamespace(get=future.result, done=future.done)

    def close(self):
        assert all(future.done() for future in self.pending), "closed while it was read"
        self.file.close()

    @property
    def closed(self):
        return self.file.closed


@pytest.fixture
def kvikio(monkeypatch, emulated_gpu):
    if emulated_gpu.real:
        pytest.skip("a real GPU's memory is nothing that the stand-in can write to")
    monkeypatch.delenv("NDD_GPUDIRECT", raising=False)
    stand_in = StandIn()
    stand_in.put_in_place(monkeypatch)
    yield stand_in
    wait_until(lambda: all(file.closed for file in stand_in.opened))  # a reader may still be reading ahead
    stand_in.threads.shutdown()


ARRAYS = {
    "plain": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "large": np.arange(30_000, dtype=np.float32).reshape(30, 40, 25),
    "fortran": np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    "swapped": np.arange(24, dtype=">f4").reshape(2, 3, 4),
    "empty": np.zeros((2, 0, 4), np.float32),
}


def saved(folder, arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


def values(reader, batch):
    if batch is None:
        return [np.asarray(array.cpu()) for (array,) in reader.next_epoch()]
    batches = [array for (array,) in reader.next_epoch(batch_size=batch)]
    assert all(array.device == reader[0][0].device for array in batches)
    return [np.asarray(sample) for array in batches for sample in array.cpu().tensors]


@pytest.mark.parametrize("batch", [None, 2, 5])
@pytest.mark.parametrize(
    ("region", "straight"),
    [
        ({}, ["large.npy", "plain.npy"]),
        ({"roi_start": [1, 0, 0]}, ["large.npy", "plain.npy"]),
        ({"roi_start": [0, 0, 1], "roi_shape": [2, 2, 2], "out_of_bounds_policy": "trim_to_shape"}, []),
        ({"roi_shape": [3, 3, 4], "out_of_bounds_policy": "pad", "fill_value": 7}, []),
        ({"roi_start": [1, 0, 0], "roi_end": [1, 3, 4], "out_of_bounds_policy": "trim_to_shape"}, []),
    ],
    ids=str,
)
@pytest.mark.drawn(1)
def test_equal_to_the_cpu(tmp_path, kvikio, region, straight, batch):
    """Whole arrays and regions, of any order of axes and bytes, several times over."""
    files = saved(tmp_path, ARRAYS)
    there, here = Numpy(files=files, device="gpu:1", **region), Numpy(files=files, **region)
    for _ in range(2):
        for result, expected in zip(values(there, batch), values(here, batch), strict=True):
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            assert (result == expected).all()
    assert there[1][0].device == ndd.Device("gpu:1")
    assert there[1][0].source_info == str(files[1])
    assert all(offset % 4096 == 0 for _, offset, _ in kvikio.reads)
    assert {name for name, _, _ in kvikio.reads} == set(straight)


def test_only_the_pages_of_a_region_are_read(tmp_path, kvikio):
    """Rows 10 to 19 of 1,000 bytes: from byte 128 + 40,000 on, which is in the page that begins at 36,864."""
    (path,) = saved(tmp_path, {"a": np.arange(30_000, dtype=np.float32).reshape(30, 1000)})
    result = Numpy(files=path, roi_start=[10, 0], roi_end=[20, 1000], device="gpu")[0][0]
    assert kvikio.reads == [("a.npy", 36_864, 128 + 40_000 - 36_864 + 40_000)]
    assert (np.asarray(result.cpu()) == np.arange(10_000, 20_000).reshape(10, 1000)).all()


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "u4", "u8", "f2", "f8"])
@pytest.mark.drawn(1)
def test_element_types(tmp_path, kvikio, kind):
    array = np.arange(12).reshape(3, 4).astype(kind)
    (path,) = saved(tmp_path, {"a": array})
    result = Numpy(files=path, device="gpu")[0][0]
    assert result.dtype == ndd.dtype(array.dtype)
    assert (np.asarray(result.cpu()) == array).all()
    assert len(kvikio.reads) == 1


def test_what_is_computed_of_it(tmp_path, kvikio):
    """An operator on the GPU reads this memory; more than one store of files is open at once."""
    files = saved(tmp_path, {str(i): np.full((5, 6, 3), i, np.uint8) for i in range(70)})
    reader = Numpy(files=files, device="gpu")
    for batch, (images,) in enumerate(reader.next_epoch(batch_size=35)):
        flipped = ndd.cast(ndd.flip(images), dtype=ndd.int32).cpu()
        assert [int(np.asarray(sample)[0, 0, 0]) for sample in flipped.tensors] == [batch * 35 + i for i in range(35)]


@pytest.mark.parametrize("moment", ["open", "begin", "end", "short", "replaced"])
@pytest.mark.drawn(1)
def test_what_cannot_be_read_harms_only_its_batch(tmp_path, kvikio, monkeypatch, moment):
    files = saved(tmp_path, {str(i): np.full(9, i) for i in range(6)})
    said = f"GPUDirect: KvikIO failure at {moment}"
    if moment == "short":
        kvikio.shorter, said = 80, r"The file ends too early \(expected 72 bytes at 128, got 0\)"
    elif moment == "replaced":
        opened = CuFile.fileno
        other = os.open(files[0], os.O_RDONLY)
        monkeypatch.setattr(CuFile, "fileno", lambda self: other if self.path.endswith("2.npy") else opened(self))
        said = "The file was replaced while it was read"
    else:
        kvikio.broken = {"2.npy": moment}
    reader = Numpy(files=files, device="gpu")
    epoch = reader.next_epoch(batch_size=2)
    result = []
    for batch in range(3):
        if batch == 1 or moment == "short":
            with pytest.raises(
                RuntimeError, match=rf"readers.Numpy: sample {batch * 2} \(.*{batch * 2}\.npy\): .*{said}"
            ):
                next(epoch)
        else:
            result += [int(np.asarray(sample.cpu())[0]) for sample in next(epoch)[0].tensors]
    assert result == ([] if moment == "short" else [0, 1, 4, 5])
    if moment == "replaced":
        os.close(other)


@pytest.mark.parametrize("direct", ["0", "1"])
def test_labels_stay_on_the_cpu_and_with_their_arrays(tmp_path, kvikio, monkeypatch, direct):
    monkeypatch.setenv("NDD_GPUDIRECT", direct)
    files = saved(tmp_path, {str(i): np.full(9, i) for i in range(6)})
    os.truncate(files[2], 190)
    reader = Numpy(
        files=files, labels=[10, 11, 12, 13, 14, 15], device="gpu", on_error="skip", sampler=[5, 2, 3, 0, 1, 4]
    )
    with pytest.warns(UserWarning, match="sample 2"):
        result = [
            [(int(np.asarray(array.cpu())[0]), label.torch().tolist()) for array, label in zip(*batch, strict=True)]
            for batch in reader.next_epoch(batch_size=3)
        ]
    assert result == [[(5, [15]), (3, [13])], [(0, [10]), (1, [11]), (4, [14])]]
    array, label = reader[4]
    assert (str(array.device.device_type), label.device) == ("gpu", ndd.Device("cpu"))


def test_broken_files_are_left_out_on_request(tmp_path, kvikio):
    files = saved(tmp_path, {str(i): np.full(9, i) for i in range(4)})
    os.truncate(files[1], 190)
    files[2].write_bytes(b"?")
    ((array,),) = Numpy(files=files, device="gpu", on_error="skip").next_epoch(batch_size=4)
    assert [int(np.asarray(sample)[0]) for sample in array.cpu().tensors] == [0, 3]
    assert [bad.index for bad in array.dropped] == [1, 2]


def test_other_types_in_a_batch(tmp_path, kvikio):
    files = saved(tmp_path, {"a": np.zeros(9), "b": np.zeros(9, np.int16)})
    with pytest.raises(RuntimeError, match=r"sample 1 .*expected 'array' as float64 .* got int16 of shape \(9,\)"):
        Numpy(files=files, device="gpu").fetch([0, 1])


def test_no_room_is_no_fault_of_the_files(tmp_path, kvikio, monkeypatch):
    import torch

    from ndd.readers.files import gpudirect

    def full(*_):
        raise torch.OutOfMemoryError("no room")

    files = saved(tmp_path, {"a": np.zeros(9)})
    monkeypatch.setattr(gpudirect, "device_empty", full)
    reader = Numpy(files=files, device="gpu", on_error="skip")
    with pytest.raises(RuntimeError, match="MemoryError: no room"):
        next(reader.next_epoch(batch_size=1))


@pytest.mark.parametrize(
    ("wish", "available", "compatible", "straight"),
    [
        (None, True, False, True),
        (None, False, False, False),
        (None, True, True, False),
        ("0", True, False, False),
        ("1", False, True, True),
    ],
)
@pytest.mark.drawn(1)
def test_when_it_is_used(tmp_path, kvikio, monkeypatch, wish, available, compatible, straight):
    kvikio.available, kvikio.compatible = available, compatible
    kvikio.put_in_place(monkeypatch)
    if wish is not None:
        monkeypatch.setenv("NDD_GPUDIRECT", wish)
    (path,) = saved(tmp_path, {"a": np.arange(9)})
    result = Numpy(files=path, device="gpu")[0][0]
    assert result.device.device_type == "gpu"
    assert (np.asarray(result.cpu()) == np.arange(9)).all()
    assert len(kvikio.reads) == straight


def test_without_kvikio(tmp_path, kvikio, monkeypatch):
    """One of its libraries that is missing is no ImportError. Who wants it all the same is told."""
    (path,) = saved(tmp_path, {"a": np.arange(9)})
    monkeypatch.setitem(sys.modules, "kvikio.defaults", None)
    assert (np.asarray(Numpy(files=path, device="gpu")[0][0].cpu()) == np.arange(9)).all()
    assert not kvikio.reads
    monkeypatch.setenv("NDD_GPUDIRECT", "1")
    with pytest.raises(RuntimeError, match=r"readers\.Numpy: NDD_GPUDIRECT=1 wants kvikio, which cannot be used"):
        len(Numpy(files=path, device="gpu"))
    monkeypatch.setenv("NDD_GPUDIRECT", "yes")
    with pytest.raises(RuntimeError, match="NDD_GPUDIRECT: expected 0, 1 or nothing, got 'yes'"):
        len(Numpy(files=path, device="gpu"))
    assert len(Numpy(files=path)) == 1


def test_an_error_of_a_file_keeps_its_number(tmp_path, kvikio):
    """A file that is gone is found before kvikio is asked."""
    reader = Numpy(files=tmp_path / "none.npy", device="gpu")
    with pytest.raises(RuntimeError, match=r"none\.npy") as caught:
        reader[0]
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOENT
    assert not kvikio.opened
