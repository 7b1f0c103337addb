"""Arrays from `.npy` files against DALI and NumPy: types, versions, orders, regions, sources, broken files."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import selection
from hypothesis import HealthCheck, given, settings, strategies as st

import ndd
from ndd.readers import Numpy

REAL = Path(__file__).parents[3] / "shared" / "data" / "numpy"
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
SHAPES = [(), (0,), (7,), (3, 0, 2), (2, 3, 4), (1, 2, 1, 2, 3)]


def read(package, **arguments):
    return [np.asarray(values[0]) for values in package.readers.Numpy(**arguments).next_epoch()]


def write(path, array, version=(1, 0)):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version)
    return str(path)


def same(one, two):
    return (
        one.dtype == two.dtype and one.shape == two.shape and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    )


@pytest.mark.parametrize("order", "><")
@pytest.mark.parametrize("kind", DTYPES)
def test_types_versions_orders_and_shapes(tmp_path, kind, order):
    rng = np.random.default_rng(0)
    expected, files = [], []
    for shape, version, layout in itertools.product(SHAPES, [(1, 0), (2, 0), (3, 0)], "CF"):
        array = rng.integers(0, 100, shape).astype(np.dtype(kind).newbyteorder(order))
        expected.append(array.astype(kind))
        files.append(write(tmp_path / f"{len(files)}.npy", np.array(array, order=layout), version))
    result = read(ndd, files=files)
    assert all(same(first, second) for first, second in zip(result, expected, strict=True))
    assert all(first.flags.c_contiguous for first in result)


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_files(dali):
    for path in sorted(REAL.glob("*.npy")):
        if path.name == "broken_truncated.npy":
            with pytest.raises(RuntimeError, match=r"sample 0 \(.*broken_truncated.npy\): .*expected \d+ bytes"):
                read(ndd, files=str(path))
            continue
        (result,) = read(ndd, files=str(path))
        expected = np.load(path)
        assert same(result, expected.astype(expected.dtype.newbyteorder("=")))
        if not path.name.startswith(("big", "c_float32_v3")):
            assert same(result, read(dali, files=str(path))[0])


@st.composite
def regions(draw):
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    result = {}
    count = len(shape)
    if draw(st.booleans()):
        axes = draw(st.permutations(range(count)))[: draw(st.integers(1, count))]
        result["roi_axes"] = [axis - count * draw(st.booleans()) for axis in axes]
        count = len(axes)
    whole = draw(st.sampled_from(["inside", "inside", "outside"]))
    numbers = {"inside": st.integers(0, 6), "outside": st.integers(-4, 12)}[whole]
    parts = {"inside": st.sampled_from([0, 0.1, 0.25, 0.35, 0.5]), "outside": st.floats(-0.5, 1.5, width=16)}[whole]

    def several(values):
        if draw(st.integers(0, 4)) == 0:
            return [draw(values)]
        return draw(st.lists(values, min_size=count, max_size=count))

    start = draw(st.sampled_from([None, "roi_start", "rel_roi_start"]))
    end = draw(st.sampled_from([None, "roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape"]))
    for name in filter(None, (start, end)):
        result[name] = several(parts if name.startswith("rel") else numbers)
    result["out_of_bounds_policy"] = draw(st.sampled_from(["error", "pad", "pad", "trim_to_shape"]))
    result["fill_value"] = draw(st.sampled_from([0, 7.6, -5, 300, 1.5]))
    return shape, draw(st.sampled_from(["u1", "i4", "f4"])), draw(st.sampled_from("CF")), result


@pytest.mark.oracle
@settings(deadline=None, max_examples=300 if selection.everything else 100, suppress_health_check=list(HealthCheck))
@given(case=regions())
def test_regions(tmp_path_factory, dali, case):
    shape, kind, order, given_ = case
    array = np.array(np.random.default_rng(1).integers(0, 100, shape).astype(kind), order=order)
    path = write(tmp_path_factory.getbasetemp() / "region.npy", array)
    outcomes = []
    for package in (dali, ndd):
        try:
            outcomes.append(read(package, files=[path], **given_)[0])
        except RuntimeError:
            outcomes.append(None)
    theirs, ours = outcomes
    assert (theirs is None) == (ours is None)
    assert theirs is None or same(ours, theirs)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "given_",
    [
        {"rel_roi_end": [0.9]},  # 13.5 of 15, in 32 bits
        {"rel_roi_start": [0.35], "roi_shape": [2]},
        {"rel_roi_start": [0.35], "rel_roi_shape": [0.35]},
        {"roi_start": [-3], "rel_roi_shape": [0.5], "out_of_bounds_policy": "pad"},
    ],
)
def test_shares_of_extents_are_rounded_as_dali_rounds_them(dali, tmp_path, given_):
    paths = [write(tmp_path / f"{n:02}.npy", np.arange(n)) for n in (5, 10, 15, 25)]
    theirs, ours = (read(package, files=paths, **given_) for package in (dali, ndd))
    assert all(same(mine, yours) for mine, yours in zip(ours, theirs, strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("axes", [(), (1, 0)])
def test_each_sample_of_a_pipeline_may_have_its_own_region(dali, tmp_path, axes):
    for n in range(3):
        write(tmp_path / f"{n}.npy", np.arange(100.0 * n, 100 * n + 40).reshape(5, 8))

    def run(package, fn):
        @package.pipeline_def(batch_size=3, num_threads=1, device_id=None)
        def regions():
            start = fn.external_source(source=lambda: [np.int32([k, 1]) for k in range(3)])
            there = {"roi_axes": axes, "out_of_bounds_policy": "pad", "fill_value": -1}
            return fn.readers.numpy(file_root=str(tmp_path), roi_start=start, rel_roi_end=[0.9], **there)

        pipeline = regions()
        pipeline.build()
        return [np.array(sample) for sample in pipeline.run()[0]]

    import nvidia.dali

    theirs, ours = run(nvidia.dali, nvidia.dali.fn), run(ndd, ndd.fn)
    assert all(same(mine, yours) for mine, yours in zip(ours, theirs, strict=True))


def test_one_value_for_all_samples(tmp_path):
    @ndd.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def nodes():
        return ndd.fn.readers.numpy(file_root=str(tmp_path), file_filter=ndd.fn.constant(idata=1))

    with pytest.raises(TypeError, match="file_filter: expected one value for all samples"):
        nodes().run()


def test_labels(tmp_path):
    files = [write(tmp_path / f"{i}.npy", np.full((2, i + 1), i, np.int16)) for i in range(6)]
    Path(files[3]).write_bytes(b"no array")
    options = {"labels": [10, 11, 12, 13, 14, 15], "on_error": "skip", "random_shuffle": True, "seed": 1}
    for region in ({}, {"roi_shape": [1, 1]}):
        reader = Numpy(files=files, **options, **region)
        assert [output.name for output in reader.outputs(files=files, labels=[1])] == ["array", "label"]
        with pytest.warns(UserWarning, match="sample 3"):
            batches = list(reader.next_epoch(batch_size=2))
        pairs = [
            (int(np.asarray(a)[0, 0]), np.asarray(n).tolist())
            for arrays, labels in batches
            for a, n in zip(arrays, labels, strict=True)
        ]
        assert sorted(pairs) == [(i, [i + 10]) for i in (0, 1, 2, 4, 5)]
        assert all(labels.dtype == ndd.int32 and str(labels.device) == "cpu" for _, labels in batches)
    (array, label), state = reader[2], reader.get_state()
    assert (array.shape, label.torch().tolist()) == ((1, 1), [12])
    again = Numpy(files=files, **options)
    again.set_state(state)
    for given_, error, said in (
        ({"files": files, "labels": [1]}, RuntimeError, "expected a label for each file, got 1"),
        ({"file_root": tmp_path, "labels": [1] * 6}, RuntimeError, "`labels` is valid only together with `files`"),
        ({"files": files, "labels": [0.5] * 6}, ValueError, "got 0.5 for file 0"),
    ):
        with pytest.raises(error, match=rf"readers\.Numpy: .*{said}"):
            next(Numpy(**given_).next_epoch())


def test_labels_and_regions_that_are_nodes(tmp_path):
    files = [write(tmp_path / f"{i}.npy", np.arange(4) + i) for i in range(2)]

    @ndd.pipeline_def(batch_size=2)
    def regions():
        start = ndd.fn.constant(idata=[1])
        return ndd.fn.readers.numpy(files=files, labels=[7, 8], roi_start=start, roi_shape=[2])

    arrays, labels = regions().run()
    assert (arrays.as_array().tolist(), labels.as_array().tolist()) == ([[1, 2], [2, 3]], [[7], [8]])


@pytest.mark.parametrize("order", "CF")
def test_regions_of_large_arrays_read_only_what_they_span(tmp_path, order, monkeypatch):
    from ndd.readers.formats import npy_file

    array = np.array(np.arange(200_000, dtype=np.float32).reshape(100, 20, 100), order=order)
    path = write(tmp_path / "a.npy", array)
    read_bytes = []
    real = npy_file.OpenFiles.read

    def noting(self, numbers, offsets, sizes):
        read_bytes.append(int(np.sum(sizes)))
        return real(self, numbers, offsets, sizes)

    monkeypatch.setattr(npy_file.OpenFiles, "read", noting)
    region = {"roi_start": [50, 0, 0], "roi_shape": [2, 20, 100]} if order == "C" else {"roi_axes": 2, "roi_start": 98}
    result = np.asarray(Numpy(files=path, **region)[0][0])
    assert same(result, array[50:52] if order == "C" else np.ascontiguousarray(array[:, :, 98:]))
    assert sum(read_bytes) == 256 + result.nbytes


def test_values_of_ndd_and_numpy_as_arguments(tmp_path):
    path = write(tmp_path / "a.npy", np.arange(24).reshape(4, 6))
    for start in ([1, 2], (1, 2), np.array([1, 2]), ndd.tensor([1, 2])):
        (result,) = read(ndd, files=[path], roi_start=start, roi_shape=ndd.tensor(2), roi_axes=np.array([0, -1]))
        assert result.tolist() == [[8, 9], [14, 15]]


@pytest.mark.oracle
def test_sources(tmp_path, dali):
    names = [
        "b.npy",
        "a.npy",
        ".hid.npy",
        "z/1.npy",
        "z/10.npy",
        "z/2.npy",
        "c/x.npy",
        "c/deep/y.npy",
        ".d/q.npy",
        "c/n.NPY",
    ]
    for i, name in enumerate([*names, "c/with space.npy"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with open(tmp_path / name, "wb") as file:
            np.save(file, np.full(2, i))
    (tmp_path / "dir.npy").mkdir()
    (tmp_path / "list.txt").write_text("b.npy\n\nc/with space.npy\n")
    (tmp_path / "one.txt").write_text("1.npy")
    root = str(tmp_path)
    for arguments in (
        {"file_root": root}, {"file_root": root, "file_filter": "1*.npy"}, {"file_root": root, "file_filter": "*.NPY"},
        {"file_root": root, "file_filter": "?.npy"}, {"file_list": root + "/one.txt", "file_root": root + "/z"},
        {"files": ["z/1.npy", root + "/a.npy"], "file_root": root}, {"files": root + "/a.npy"},
        {"files": [root + "/a.npy"], "file_filter": "*.x"},
    ):  # fmt: skip
        expected = [array.tolist() for array in read(dali, **arguments)]
        assert [array.tolist() for array in read(ndd, **arguments)] == expected, arguments
        assert expected
    assert [array[0] for array in read(ndd, file_list=root + "/list.txt")] == [0, 10]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "change",
    [
        {"files": []}, {"files": None}, {"files": None, "file_root": "/nonexistent"}, {"file_list": "x"},
        {"files": None, "file_list": "/nonexistent"}, {"files": None, "file_root": "/", "file_filter": "*.none"},
        {"files": ["/nonexistent/a.npy"]}, {"out_of_bounds_policy": "foo"}, {"roi_start": [1], "rel_roi_start": [0.1]},
        {"roi_end": [1], "roi_shape": [1]}, {"rel_roi_end": [1], "rel_roi_shape": [1]}, {"roi_start": [3], "roi_end": [1]},
        {"roi_start": [1, 1, 1]}, {"roi_start": [0], "roi_end": [99]}, {"roi_axes": [5], "roi_start": [1]},
        {"roi_axes": [0, 0], "roi_start": [1, 1]}, {"roi_axes": [0, -2], "roi_start": [1, 1]}, {"roi_shape": [-1]},
        {"roi_axes": [0], "roi_start": [1, 1]}, {"use_o_direct": True}, {"foo": 1}, {"fill_value": "x"},
        {"roi_start": [9], "out_of_bounds_policy": "pad"}, {"num_shards": 3},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes(tmp_path, dali, change):
    path = write(tmp_path / "a.npy", np.zeros((4, 5), np.float32))
    arguments = {k: v for k, v in {"files": [path], **change}.items() if v is not None}
    errors = []
    for package in (dali, ndd):
        with pytest.raises((RuntimeError, TypeError, ValueError)) as raised:
            read(package, **arguments)
        errors.append(raised.type)
    assert errors[0] is errors[1]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {"roi_start": []}, {"roi_axes": [1]}, {"roi_start": 2}, {"roi_start": 2.5}, {"roi_start": [1.5, 2]},
        {"cache_header_information": True}, {"register_buffers": False}, {"use_o_direct": True, "dont_use_mmap": True},
        {"roi_start": [1], "roi_shape": [0]}, {"rel_roi_start": 0.25, "rel_roi_shape": 0.3},
    ],
    ids=str,
)  # fmt: skip
def test_options(tmp_path, dali, options):
    path = write(tmp_path / "a.npy", np.arange(40.0).reshape(5, 8))
    (ours,), (theirs,) = (read(package, files=path, **options) for package in (ndd, dali))
    assert same(ours, theirs)
    point = write(tmp_path / "b.npy", np.array(3.5))
    assert read(ndd, files=point, **options)[0] == 3.5


def broken(array, change):
    """The bytes of a `.npy` file with something in its header replaced."""
    import io

    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    old, new = change
    return file.getvalue().replace(old, new.ljust(len(old)) if len(new) < len(old) else new, 1)


@pytest.mark.parametrize(
    ("array", "change", "said"),
    [
        (np.zeros(9), (b"\x93NUMPY", b"PK"), "which begins with"),
        (np.zeros(9), (b"NUMPY\x01", b"NUMPY\x09"), "version 1, 2 or 3, got 9"),
        (np.zeros(9), (b"(9,)", b"(99,"), "header"),
        (np.zeros(9), (b"(9,)", b"(-1)"), "shape"),
        (np.zeros(9), (b"(9,), ", b"(999,)"), r"expected 8120 bytes for shape \(999,\)"),
        (np.zeros(9), (b"False", b"maybe"), "header"),
        (np.zeros(9), (b"'descr'", b"'other'"), "header"),
        (np.zeros(9), (b"<f8", b"<q8"), "header"),
        (np.zeros(9, np.complex64), (b"", b""), "got complex64"),
        (np.zeros(9, "U3"), (b"", b""), "got <U3"),
        (np.zeros(9, [("a", "i4"), ("b", "f4")]), (b"", b""), r"got \[\('a'"),
        (np.array([None, {}], object), (b"", b""), "got object"),
        (np.zeros(9, np.longdouble), (b"", b""), "got float128"),
        (np.zeros(9), (b"\x93NUMPY\x01\x00v\x00", b"\x93NUMPY\x02\x00v\x00\xff\xff"), "at most 1048576 bytes"),
    ],
)
def test_broken_files(tmp_path, array, change, said):
    path, good = tmp_path / "a.npy", write(tmp_path / "b.npy", np.zeros(9))
    path.write_bytes(broken(array, change))
    epoch = Numpy(files=[path, good]).next_epoch()
    with pytest.raises(RuntimeError, match=rf"readers.Numpy: sample 0 \(.*a\.npy\): .*{said}"):
        next(epoch)
    assert next(epoch)[0].shape == (9,)


@pytest.mark.parametrize("length", [0, 3, 8, 11, 60, 127, 128, 150])
def test_files_that_were_cut_off(tmp_path, length):
    path = write(tmp_path / "a.npy", np.zeros(9))
    os.truncate(path, length)
    with pytest.raises(RuntimeError, match=r"sample 0 \(.*a\.npy\): expected a readable record, got "):
        Numpy(files=path)[0]


def test_a_long_header(tmp_path):
    """Longer than what is read of each file at first; NumPy pads headers, others may pad them more."""
    text = b"{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }" + b" " * 5000 + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + np.arange(3, dtype="<i2").tobytes()
    (tmp_path / "a.npy").write_bytes(content)
    assert read(ndd, files=tmp_path / "a.npy")[0].tolist() == [0, 1, 2]


def test_batches_hold_one_type_and_number_of_dimensions(tmp_path):
    arrays = [np.zeros((2, 3)), np.zeros((4, 1)), np.zeros((2, 3), np.float32), np.zeros(6)]
    reader = Numpy(files=[write(tmp_path / f"{i}.npy", array) for i, array in enumerate(arrays)])
    assert reader.fetch([0, 1])[0].shape == [(2, 3), (4, 1)]
    for numbers, wrong in (([0, 2], "float32"), ([1, 3], r"\(6,\)")):
        with pytest.raises(
            RuntimeError,
            match=rf"sample {numbers[1]} .* as float64 with 2 dimension.* got .*{wrong}.*Inconsistent data",
        ):
            reader.fetch(numbers)
    assert [values[0].ndim for values in reader.next_epoch()] == [2, 2, 2, 1]


def test_without_a_gpu_the_error_says_so(tmp_path):
    if ndd.Device.current().device_type == "gpu":
        pytest.skip("there is a GPU")
    reader = Numpy(files=write(tmp_path / "a.npy", np.zeros(9)), device="gpu")
    with pytest.raises(RuntimeError, match="no usable CUDA device"):
        next(reader.next_epoch(batch_size=1))


def test_extents_beyond_all_memory(tmp_path):
    """Whose product is 0 all the same."""
    text = repr({"descr": "<f4", "fortran_order": False, "shape": (1, 2**62, 2**31, 0)}).encode().ljust(117) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text)
    reader = ndd.readers.Numpy(files=[str(tmp_path / "a.npy")])
    with pytest.raises(RuntimeError, match=r"readers.Numpy: .*a\.npy.*less than 2\*\*63 bytes"):
        reader[0]
