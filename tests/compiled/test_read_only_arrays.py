"""Read-only arrays, frozen or mapped from a file, run the code that was compiled for writable ones."""

import numba
import numpy as np
import pytest

import ndd
from ndd._compiled.background import background
from ndd._compiled.jit import called_kernels, kernel


@kernel
def _add_both(pair, out):
    for i in range(len(out)):
        out[i] = pair[0][i] + pair[1][i]


def frozen(array):
    array.flags.writeable = False
    return array


def versions(kernels):
    """What this process has compiled or loaded, of each of these kernels."""
    return {each: len(each.compiled().overloads) for each in kernels}


def test_one_version_serves_both(tmp_path):
    values = np.arange(6, dtype=np.float32)
    np.save(tmp_path / "values.npy", values)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    read_only = [frozen(values.copy()), np.broadcast_to(np.float32(2), 6)[:1].repeat(6), np.asarray(mapped)]
    for first, second in [(read_only[0], values), (values, values), (read_only[2], read_only[1]), read_only[:2]]:
        out = np.empty(6, np.float32)
        _add_both((first, second), out)
        np.testing.assert_array_equal(out, first + second)
        assert len(_add_both.compiled().overloads) == 1


def test_kernels_of_other_packages_still_see_the_difference():
    """numba keeps the types of arrays for all packages alike."""
    values = frozen(np.arange(3, dtype=np.float32))
    _add_both((values, values), np.empty(3, np.float32))

    @numba.njit
    def written(array):
        array[0] = 5

    with pytest.raises(numba.TypingError, match="readonly"):
        written(values)
    assert values[0] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda points, image: ndd.coord_transform(points, M=[[1.0, 2.0], [3.0, 4.0]]),
        lambda points, image: ndd.erase(image, anchor=[2.0, 3.0], shape=[4.0, 5.0], axis_names="HW"),
        lambda points, image: ndd.resize(image, size=[9, 9]),
        lambda points, image: ndd.crop(image, crop=[5, 5]),
    ],
    ids=["coord_transform", "erase", "resize", "crop"],
)
def test_operators_compile_nothing_for_read_only_arrays(call, monkeypatch):
    """Nor for one sample after a batch: the numbers of one sample are a read-only row."""
    monkeypatch.setattr(background, "allowed", False)
    points = np.arange(8, dtype=np.float32).reshape(4, 2)
    image = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)

    def one():
        return call(ndd.as_tensor(points), ndd.as_tensor(image, layout="HWC")).numpy()

    with ndd.EvalMode.sync_cpu:
        call(ndd.batch([points] * 3), ndd.batch([image, image[1:], image[2:]], layout="HWC")).evaluate()
        before = versions([*called_kernels])
        expected = one()
        assert versions(before) == before
        before = versions([*called_kernels])
        frozen(points), frozen(image)
        np.testing.assert_array_equal(one(), expected)
    assert versions(before) == before
