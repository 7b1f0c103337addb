"""decoders.numpy, against numpy.load and the oracle."""

from __future__ import annotations

import io

import numpy as np
import pytest
from cases import DTYPES, F16, F64, I32, U8, each_of, values

import ndd


def saved(array, version=None):
    """The bytes of a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version)
    return np.frombuffer(file.getvalue(), np.uint8)


REGISTRY_INPUTS = {".npy": (lambda rng, i, dtype: saved(values(rng, (3 + i, 4), "float32") * 300 - 100), None)}
REGISTRY_CASES = {
    "decoders.numpy": each_of(
        {}, {"dtype": U8}, {"dtype": I32}, {"dtype": F16}, {"dtype": F64}, inputs=(".npy",), dtypes=("uint8",)
    )
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.drawn(1)
def test_what_numpy_saves_is_loaded(dtype):
    rng = np.random.default_rng(4)
    for shape in ((), (0,), (5,), (0, 3), (2, 3), (3, 1, 2, 2), (1,) * 6):
        array = np.asarray(values(rng, shape, dtype))
        for stored in (array, np.array(array, order="F"), array.astype(array.dtype.newbyteorder(">"))):
            for version in ((1, 0), (2, 0), (3, 0)):
                data = saved(stored, version)
                for arguments in (data, data.view(np.int8), data.reshape(2, -1) if len(data) % 2 == 0 else data):
                    result = ndd.decoders.numpy(ndd.tensor(arguments))
                    assert (result.shape, result.dtype, result.layout) == (shape, ndd.dtype(dtype), None)
                    np.testing.assert_array_equal(np.asarray(result), array)


@pytest.mark.oracle
def test_samples_of_several_types_are_converted_as_by_the_oracle(dali):
    arrays = [np.array([1.5, 2.5, -3.5, 300, 1e10, np.nan], np.float32), np.array([[-1, 2, 3000]], np.int16)[0]]
    for number in (U8, I32, F16, F64):
        with dali.EvalMode.sync_cpu:
            expected = dali.decoders.numpy(dali.batch([saved(a) for a in arrays]), dtype=number)
        result = ndd.decoders.numpy(ndd.batch([saved(a) for a in arrays]), dtype=number)
        for mine, theirs in zip(result.tensors, expected.tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_what_follows_goes_by_what_was_in_the_file():
    """The same line of a loop may get another element type and number of axes: nothing kept of a call may go for it."""
    with ndd.EvalMode.deferred:
        for array in (np.ones((4, 5, 3), np.uint8), np.ones((4, 5, 3), np.float32), np.ones((2, 4, 5, 3), np.int16)):
            result = ndd.flip(ndd.decoders.numpy(ndd.tensor(saved(array))))
            assert (result.dtype, result.ndim) == (ndd.dtype(array.dtype), array.ndim)
            np.testing.assert_array_equal(np.asarray(result), array)
            sums = ndd.decoders.numpy(ndd.batch([saved(array)] * 2)) + 1.5
            assert sums.shape == [array.shape] * 2
            assert (np.asarray(sums.tensors[1]) == 2.5).all()


def test_the_result_has_memory_of_its_own():
    data = saved(np.zeros(3)).copy()
    result = ndd.decoders.numpy(ndd.as_tensor(data)).evaluate()
    data[:] = 255
    assert np.asarray(result).tolist() == [0, 0, 0]


A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([saved(A), saved(A)[:-1]], r"sample 1: expected 152 bytes for shape \(2, 3\) of float32, got 151"),
        ([np.append(saved(A), np.uint8(0))], "sample 0: expected 152 bytes .* got 153"),
        (
            [saved(A), saved(A.astype(np.int32))],
            "sample 1: expected f32 as in sample 0, got i32; `dtype=` converts all",
        ),
        ([saved(A), saved(A[0])], r"sample 1: expected 2 axes as in sample 0, got shape \(3,\)"),
        ([saved(A.astype(np.complex64))], "sample 0: expected elements of a bool, integer or float type"),
        ([saved(A.astype("S3"))], "sample 0: expected elements of a bool, integer or float type"),
        ([np.arange(200, dtype=np.uint8)], "sample 0: expected a .npy file"),
        ([np.zeros(0, np.uint8)], "sample 0: expected a .npy file"),
        ([saved(A)[:60]], "sample 0: expected a .npy header"),
    ],
)
def test_what_is_no_array_is_an_error(files, message):
    with pytest.raises(RuntimeError, match=message):
        ndd.decoders.numpy(ndd.batch(files)).evaluate()
    with pytest.raises(RuntimeError, match="Unsupported input type: u16"):
        ndd.decoders.numpy(ndd.tensor(np.zeros(4, np.uint16)))


def test_an_error_names_the_file(tmp_path):
    np.save(tmp_path / "good.npy", A)
    (tmp_path / "bad.npy").write_bytes(saved(A).tobytes()[:-3])
    with pytest.raises(RuntimeError, match=r"bad\.npy"):
        ndd.decoders.numpy(ndd.io.file.read([str(tmp_path / "good.npy"), str(tmp_path / "bad.npy")])).evaluate()


@pytest.mark.parametrize("big", [False, True])
def test_ragged_files_by_pieces_and_in_one_task_for_each_thread(big, tasks):
    """Files of any sizes in one batch: without elements, a page, several pieces of what is copied at once."""
    extents = [3, 0, 1000, 70_001, 5, 0, 200_000] + [10] * 20
    arrays = [np.arange(2 * n, dtype=np.int16).reshape(2, n) + i for i, n in enumerate(extents)]
    files = [saved(a.astype(">i2") if big else a) for a in arrays]
    ndd.set_num_threads(3)
    try:
        result = ndd.decoders.numpy(ndd.batch(files)).evaluate()
    finally:
        ndd.set_num_threads(None)
    for expected, array in zip(arrays, result.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(array), expected)
    assert sum(tasks) == 27 if big else 1 < sum(tasks) <= 3


def test_headers_that_numpy_would_not_write():
    """What Python reads as the same is the same; what it does not is an error, though the first file is a plain one."""
    whole = saved(np.arange(6, dtype=np.int16).reshape(2, 3)).tobytes()
    for text, accepted in {
        b"(2,3,), }": True, b"(2 ,3), }": True, b"(+2, 3), }": True, b"(02, 3), }": False, b"(2, 3)}  ": True,
        b"(2, 3), } #": True, b"(2, 3), } 1": False, b"(0x2, 3), }": True, b"(2, , 3), }": False, b"(1, 6), }": True,
        b"(2, 9999999999999999999), }": False, b"(4611686018427387904, 8), }": False, b"(6,), }  ": False, b"(2, 3], }": False,
    }.items():  # fmt: skip
        begin = whole.index(b"(2, 3), }")
        other = np.frombuffer(whole[:begin] + text + whole[begin + len(text) :], np.uint8)
        files = ndd.batch([np.frombuffer(whole, np.uint8), other])
        if accepted:
            assert np.asarray(ndd.decoders.numpy(files).tensors[1]).reshape(-1).tolist() == list(range(6)), text
        else:
            with pytest.raises(RuntimeError, match="sample 1: "):
                ndd.decoders.numpy(files).evaluate()
