"""Values to and from NumPy, torch, DLPack and the CUDA array interface."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
import torch
from compare import check_same

import ndd
from ndd._tensor import operations

ALL = [d for d in vars(ndd).values() if isinstance(d, ndd.DType)]


def test_numpy_sees_a_writable_view_and_array_copies():
    t = ndd.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        view = np.asarray(t)
        view[0] = 5
        copied = np.array(t)
        converted = np.asarray(t, dtype=np.float64)
    assert t.torch().tolist() == [5, 2]
    copied[0] = 7
    assert t.torch().tolist() == [5, 2]
    assert converted.dtype == np.float64
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="copy"):
            np.asarray(t, dtype=np.float64, copy=False)


def test_torch_shares_unless_asked():
    t = ndd.tensor([1.0, 2.0])
    shared, copied = t.torch(), t.torch(copy=True)
    shared[0] = 5
    assert np.asarray(t)[0] == 5
    assert copied[0] == 1
    assert torch.as_tensor(t).data_ptr() == shared.data_ptr()
    assert torch.from_dlpack(t).data_ptr() == shared.data_ptr()
    assert torch.tensor(np.asarray(t)).data_ptr() != shared.data_ptr()


def test_batches_share_when_they_lie_in_one_piece():
    uniform = ndd.flip(ndd.batch(np.zeros((3, 4, 4, 3), np.uint8), layout="HWC"))
    assert uniform.torch().data_ptr() == uniform.torch(copy=False).data_ptr()
    assert uniform.torch(copy=True).data_ptr() != uniform.torch().data_ptr()
    apart = ndd.as_batch([np.zeros(2), np.ones(2)])
    assert apart.torch().tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ValueError, match="copy"):
        apart.torch(copy=False)
    ragged = ndd.batch([[1], [2, 3]])
    with pytest.raises(ValueError, match="pad=True"):
        ragged.torch()
    with pytest.raises(TypeError, match=r"batch\.torch\(\)"):
        torch.from_dlpack(uniform)
    assert not hasattr(uniform, "__array__")


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_type_goes_to_torch_and_back(dtype):
    t = ndd.tensor([[1, 0], [0, 1]], dtype=dtype)
    again = ndd.as_tensor(t.torch())
    assert again.torch().tolist() == t.torch().tolist()
    if not str(dtype).endswith("Type"):
        assert again.dtype is dtype
        assert ndd.as_tensor(torch.from_dlpack(t)).dtype is dtype


def test_torch_views_with_strides_and_flags():
    base = torch.arange(24.0).reshape(4, 6)
    for view in (base.t(), base[:, ::2], base[1:, 2:4]):
        t = ndd.as_tensor(view)
        assert torch.equal(t.torch(), view)
        assert np.shares_memory(np.asarray(t), base.numpy())
    negative = torch.imag(torch.zeros(3, dtype=torch.complex64).conj())
    assert np.asarray(ndd.as_tensor(negative)).tolist() == [0, 0, 0]
    learned = torch.ones(2, requires_grad=True)
    assert np.asarray(ndd.as_tensor(learned.detach())).tolist() == [1, 1]


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class OnlyInterface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


class BrokenDlpack(OnlyArray):
    def __dlpack__(self, **more):
        raise TypeError("not today")

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("wrapper", [OnlyDlpack, OnlyArray, OnlyInterface, BrokenDlpack])
def test_protocols(wrapper):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    t = ndd.as_tensor(wrapper(array))
    assert (t.dtype, t.shape) == (ndd.int16, (2, 3))
    assert np.shares_memory(np.asarray(t), array)
    b = ndd.batch([wrapper(array), wrapper(array[:1])])
    assert b.shape == [(2, 3), (1, 3)]
    assert ndd.as_batch(wrapper(array)).shape == [(3,), (3,)]


@pytest.mark.oracle
@pytest.mark.parametrize("whose", ["ndd.tensors", "nvidia.dali.tensors"])
def test_what_pipelines_give_is_taken_as_what_it_is(dali, whose):
    """Also by ndd what DALI's pipelines give: a loop may be moved over piece by piece."""
    module = importlib.import_module(whose)
    images = module.TensorListCPU(np.arange(96, dtype=np.uint8).reshape(2, 4, 4, 3), "HWC")
    ragged = module.TensorListCPU([np.zeros((2, i + 1), np.float32) for i in range(3)], "AB")
    turns = module.TensorListCPU(np.array([0, 90], np.float32))
    item = images[0]
    for values in (images, ragged):
        for make in (ndd.as_batch, ndd.batch, ndd.Batch):
            result = make(values)
            assert result.layout == values.layout()
            assert result.shape == [tuple(sample.shape()) for sample in values]
            np.testing.assert_array_equal(result.tensors[1].numpy(), np.asarray(values[1]))
    for make in (ndd.as_tensor, ndd.tensor, ndd.Tensor):
        assert (make(item).layout, make(item).shape, make(images).shape) == ("HWC", (4, 4, 3), (2, 4, 4, 3))
    assert ndd.as_batch(images, layout="XYZ", dtype=ndd.int32).layout == "XYZ"
    turned = ndd.rotate(images, angle=turns)
    np.testing.assert_array_equal(turned.tensors[0].numpy(), np.asarray(images[0]))
    np.testing.assert_array_equal(turned.tensors[1].numpy(), np.rot90(np.asarray(images[1])))
    assert (ndd.batch([[1], [2]]) + turns).shape == [(1,), (1,)]
    assert isinstance(ndd.flip(item), ndd.Tensor)


def test_numpy_does_not_loop_over_our_values():
    b = ndd.batch([[1, 2], [3]])
    t = ndd.tensor([1, 2])
    assert isinstance(np.array([1, 2]) + t, ndd.Tensor)
    assert isinstance(np.float32(2) * b, ndd.Batch)
    assert ((np.uint8(2) * b).dtype, (np.float16(2) * b).dtype) == (ndd.int32, ndd.float32)  # as Python's numbers
    assert isinstance(torch.tensor([1, 2]) + t, ndd.Tensor)
    assert isinstance(torch.tensor(2) * b, ndd.Batch)


def test_the_cuda_interface_is_for_gpu_values(emulated_gpu):
    assert not hasattr(ndd.tensor([1]), "__cuda_array_interface__")
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        np.asarray(ndd.tensor([1]).gpu())
    assert ndd.tensor([1]).gpu().__dlpack_device__() == (2, 0)


@pytest.mark.parametrize(("gpus", "address", "where"), [(2, 64, "cuda:1"), (2, 0, "cuda"), (1, 64, "cuda")])
@pytest.mark.parametrize("packs", [False, True])
def test_memory_of_another_gpu_stays_there(monkeypatch, gpus, address, where, packs):
    """The CUDA array interface does not say where it is; torch would copy it to the current GPU."""

    class Foreign:
        def __init__(self):
            self.__cuda_array_interface__ = {"data": (address, False), "shape": (2,), "typestr": "|u1", "version": 3}

        if packs:

            def __dlpack_device__(self):
                return 2, 1

            def __dlpack__(self, **_):
                raise NotImplementedError

    def refused(data):
        raise BufferError("not today")

    places, as_tensor = [], torch.as_tensor

    def placed(data, device=None):
        places.append(device)
        return as_tensor([1, 2], dtype=torch.uint8)

    monkeypatch.setattr(torch, "as_tensor", placed)
    monkeypatch.setattr(torch, "from_dlpack", refused)
    monkeypatch.setattr(importlib.import_module("ndd._tensor.device"), "_gpu_count", gpus)
    monkeypatch.setitem(operations._operations, "gpu_of_address", lambda address: 1)
    assert ndd.as_tensor(Foreign()).numpy().tolist() == [1, 2]
    assert places == [where]


def test_dlpack_of_a_pending_value_waits():
    with ndd.EvalMode.deferred:
        t = ndd.tensor([1.0]) + 1
    assert torch.from_dlpack(t).tolist() == [2]


def test_lengths_of_padded_sequences():
    sounds = ndd.batch([np.zeros((5, 2), np.float32), np.zeros((3, 2), np.float32)], layout="tc")
    for axis, expected in ((0, [5, 3]), ("t", [5, 3]), (1, [2, 2]), (-1, [2, 2]), ("c", [2, 2])):
        assert sounds.lengths(axis).tolist() == expected
    packed = torch.nn.utils.rnn.pack_padded_sequence(sounds.torch(pad=True), sounds.lengths(), batch_first=True)
    assert packed.batch_sizes.tolist() == [2, 2, 2, 1, 1]
    not_yet_computed = ndd.flip(ndd.batch([[[[1]]], [[[2], [3]]]], layout="HWC"))
    assert not_yet_computed.lengths("W").tolist() == [1, 2]
    sounds.lengths()[0] = 9
    assert sounds.shape == [(5, 2), (3, 2)]
    assert ndd.batch(np.zeros((0, 4), np.float32)).lengths().tolist() == []
    for axis, kind in (("f", ValueError), ("tc", ValueError), (2, IndexError), (-3, IndexError)):
        with pytest.raises(kind, match="lengths"):
            sounds.lengths(axis)


def test_memory_outlives_its_handle():
    result = ndd.flip(ndd.batch(np.full((2, 100, 100, 3), 7, np.uint8), layout="HWC")).torch()
    for _ in range(20):  # what comes after must not be given the same memory
        ndd.flip(ndd.batch(np.zeros((2, 100, 100, 3), np.uint8), layout="HWC")).evaluate()
    assert bool((result == 7).all())
    view = np.asarray(ndd.flip(ndd.tensor(np.full((100, 100, 3), 7, np.uint8), layout="HWC")))[3:5]
    for _ in range(20):
        ndd.flip(ndd.tensor(np.zeros((100, 100, 3), np.uint8), layout="HWC")).evaluate()
    assert (view == 7).all()


def test_numpy_of_a_tensor_is_what_asarray_gives():
    array = np.arange(6).reshape(2, 3)
    locked = array.copy()
    locked.flags.writeable = False
    for own in (array, array[::-1], locked):
        result = ndd.as_tensor(own).numpy()
        assert np.shares_memory(result, own)
        np.testing.assert_array_equal(result, own)
    assert (ndd.tensor([1, 2]) * 2).numpy().tolist() == [2, 4]


def test_numpy_of_a_batch():
    array = np.arange(12).reshape(2, 2, 3)
    batch = ndd.as_batch(array)
    assert np.shares_memory(batch.numpy(), array)
    np.testing.assert_array_equal(ndd.batch(list(array)).numpy(), array)
    ragged = ndd.batch([[1, 2, 3], [4]])
    assert ragged.numpy(pad=True).tolist() == [[1, 2, 3], [4, 0, 0]]
    with pytest.raises(ValueError, match="`pad=True` pads them with zeros"):
        ragged.numpy()


def test_numpy_has_no_bfloat16():
    for value in (ndd.tensor(1.0, dtype=ndd.bfloat16), ndd.batch([1.0], dtype=ndd.bfloat16)):
        with pytest.raises(TypeError, match=r"dtype=ndd\.float32"):
            value.numpy()


def test_numpy_copies_from_a_gpu(emulated_gpu):
    for value in (ndd.tensor([1, 2]), ndd.batch([[1], [2]])):
        result = (value.gpu() + 1).numpy()
        assert isinstance(result, np.ndarray)
        assert result.ravel().tolist() == [2, 3]
    assert ndd.batch([[1], [2, 3]]).gpu().numpy(pad=True).tolist() == [[1, 0], [2, 3]]


@pytest.mark.oracle
@pytest.mark.parametrize("make", [lambda m, x: x, lambda m, x: m.tensor(x), lambda m, x: m.as_batch([x, x])])
def test_a_masked_array_is_its_numbers(dali, make):
    image = np.ma.array(np.arange(60, dtype=np.uint8).reshape(5, 4, 3), mask=np.arange(60).reshape(5, 4, 3) % 2)
    for call in (lambda m, x: m.flip(x), lambda m, x: m.gaussian_blur(x, sigma=1.0)):
        check_same(dali, lambda m, call=call: call(m, make(m, image)))


@pytest.mark.oracle
def test_types_that_no_element_has(dali):
    for kind in (np.complex64, torch.complex64):
        check_same(dali, lambda m, kind=kind: m.dtype(kind))
        check_same(dali, lambda m, kind=kind: m.tensor(1, dtype=kind))
    for array in (np.zeros(2, np.longdouble), np.zeros(2, complex), torch.zeros(2, dtype=torch.complex64)):
        check_same(dali, lambda m, array=array: m.tensor(array))


@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "CFHW"])
def test_channels_last(layout):
    """What torch makes of the same values; a batch with its channels last is not copied."""
    extents = {"F": 2, "D": 2, "H": 4, "W": 6, "C": 3}
    array = np.random.default_rng(1).random((5, *(extents[letter] for letter in layout)), np.float32)
    batch = ndd.as_batch(array, layout=layout)
    memory_format = torch.channels_last if len(layout) == 3 else torch.channels_last_3d
    plain = torch.from_numpy(array)
    expected = plain.movedim(1 + layout.index("C"), 1).contiguous(memory_format=memory_format)
    result = batch.torch(memory_format=memory_format)
    assert torch.equal(result, expected)
    assert result.is_contiguous(memory_format=memory_format)
    assert (result.data_ptr() == batch.torch().data_ptr()) == (layout[-1] == "C")


def test_channels_last_of_other_layouts():
    with pytest.raises(ValueError, match=r"'HW': torch\.channels_last is for HWC"):
        ndd.zeros(batch_size=2, shape=[4, 4], layout="HW").torch(memory_format=torch.channels_last)
    with pytest.raises(ValueError, match=r"torch\.contiguous_format"):
        ndd.zeros(batch_size=2, shape=[4, 4, 3], layout="HWC").torch(memory_format=torch.contiguous_format)
