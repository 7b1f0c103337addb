"""Small public names of types and devices, each beside DALI's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

import ndd

KINDS = ("signed", "unsigned", "float", "bool", "enum")


@pytest.mark.oracle
def test_kinds_of_types(dali):
    assert [k.name for k in ndd.DType.Kind] == [k.name for k in dali.DType.Kind] == list(KINDS)
    assert [k.value for k in ndd.DType.Kind] == [k.value for k in dali.DType.Kind]
    kinds = ndd.DType.Kind
    expected = {
        "int8": kinds.signed, "uint8": kinds.unsigned, "float16": kinds.float, "bool": kinds.bool,
        "InterpType": kinds.enum, "ImageType": kinds.enum, "DataType": kinds.enum,
    }  # fmt: skip
    assert {ndd.InterpType.name, ndd.ImageType.name, ndd.DataType.name} == {"InterpType", "ImageType", "DataType"}
    for name, kind in expected.items():
        assert getattr(ndd, name).kind is kind
        assert getattr(dali, name).kind.name == kind.name


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["InterpType", "ImageType", "DataType", "uint8", "float16", "bool", "bfloat16"])
def test_numbers_and_sizes_of_types(dali, name):
    ours, theirs = getattr(ndd, name), getattr(dali, name)
    assert (ours.bits, ours.bytes, str(ours), repr(ours)) == (theirs.bits, theirs.bytes, str(theirs), repr(theirs))
    if theirs.type_id is not None:
        assert int(ours.type_id) == int(theirs.type_id) == int(ndd.type_id(ours)) == int(dali.type_id(theirs))
        assert ndd.DType.from_type_id(int(theirs.type_id)) is ours
        assert ndd.DType.from_type_id(theirs.type_id) is ours


@pytest.mark.oracle
@pytest.mark.parametrize("given", [np.float32, np.dtype("uint16"), torch.float16, torch.int64, np.bool_])
def test_types_of_other_libraries(dali, given):
    assert str(ndd.DType.from_fw_type(given)) == str(dali.DType.from_fw_type(given))


@pytest.mark.oracle
@pytest.mark.parametrize("wrong", [3, "u8", np.float32, None])
def test_type_id_takes_types_of_the_library_only(dali, wrong):
    for module in (dali, ndd):
        with pytest.raises(ValueError, match="Invalid dtype"):
            module.type_id(wrong)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["f32e8m23", "f16e5m10", "f64e11m52"])
def test_floats_by_their_bits(dali, name):
    assert ndd.dtype(name).name == dali.dtype(name).name == name.partition("e")[0]


@pytest.mark.parametrize("name", ["f32e8m0", "f16e0m10", "f16e8m7", "i8eNonemNone", "f32e8m23 "])
def test_no_float_has_these_bits(name):
    with pytest.raises(ValueError, match="Unsupported type name"):
        ndd.dtype(name)


def test_an_unknown_framework_type():
    with pytest.raises(TypeError):
        ndd.DType.from_fw_type(3)


SPELLINGS = [np.float32, np.dtype("float32"), torch.float32, float, "f32", "float32", ndd.types.FLOAT]
TAKE_A_DTYPE = {  # what is no operator
    "tensor": lambda kind: ndd.tensor([1], dtype=kind),
    "as_tensor": lambda kind: ndd.as_tensor(np.array([1]), dtype=kind),
    "batch": lambda kind: ndd.batch([[1]], dtype=kind),
    "as_batch": lambda kind: ndd.as_batch([np.array([1])], dtype=kind),
    "Tensor": lambda kind: ndd.Tensor([1], dtype=kind),
    "Batch": lambda kind: ndd.Batch([[1]], dtype=kind),
    "Batch.broadcast": lambda kind: ndd.Batch.broadcast(1, 2, dtype=kind),
    "ExternalSource": lambda kind: ndd.ExternalSource(lambda: np.zeros(3), dtype=kind)(),
    "imread": lambda kind: ndd.imread(f"{ndd.demo.photos()}/nature/cat.jpg", dtype=kind),
    "like": lambda kind: ndd.like(ndd.tensor([1])._spec, dtype=kind),
    "output": lambda kind: ndd.output(kind, 1),
}


@pytest.mark.parametrize("kind", SPELLINGS, ids=str)
def test_every_spelling_of_a_type(kind):
    assert ndd.dtype(kind) is ndd.float32
    for name, make in TAKE_A_DTYPE.items():
        assert make(kind).dtype is ndd.float32, name


def test_python_types_are_those_of_python_numbers():
    for kind, value in ((int, 1), (float, 1.0), (bool, True)):
        assert ndd.dtype(kind) is ndd.tensor(value).dtype is ndd.cast(ndd.tensor([1]), dtype=kind).dtype


def test_no_other_function_takes_a_dtype():
    """What has an argument `dtype` and is no operator stands in the list above."""
    result = set()
    for name in ndd.__all__:
        value = getattr(ndd, name)
        if callable(value) and not hasattr(value, "operator") and "dtype" in inspect.signature(value).parameters:
            result.add(name)
    assert result == set(TAKE_A_DTYPE) - {"Batch.broadcast"} | {"type_id"}  # which DALI refuses for other types


def test_outputs_of_pipelines_are_checked_by_any_spelling():
    for kind in SPELLINGS:
        pipe = ndd.Pipeline(batch_size=2, num_threads=1, device_id=None, output_dtype=kind)
        with pipe:
            pipe.set_outputs(ndd.types.Constant(1.5, dtype=kind))
        assert str(pipe.run()[0].dtype) == str(ndd.types.FLOAT)


@pytest.mark.oracle
def test_devices_by_number(dali):
    for module in (dali, ndd):
        assert module.Device("cpu") == module.Device.CPU
        assert module.Device("cpu").CPU is module.Device.CPU
        assert module.Device.default_device_id("cpu") is None
        assert [module.Device.type_from_dlpack(n) for n in (1, 2)] == ["cpu", "gpu"]
        with pytest.raises(ValueError, match="Unsupported device type: 9"):
            module.Device.type_from_dlpack(9)
    assert "torch.device" in str(ndd.DeviceLike)
    assert "torch.device" in str(dali.DeviceLike)


def test_dlpack_takes_its_arguments_by_position():
    tensor = ndd.tensor([1, 2])
    assert torch.utils.dlpack.from_dlpack(tensor.__dlpack__(None)).tolist() == [1, 2]


def test_streams_are_given_by_name():
    assert ndd.stream(stream=None) is None
    assert ndd.Stream.create_new is not None
    with pytest.raises(TypeError, match="positional"):
        ndd.stream(None)
    with pytest.raises(TypeError, match="positional"):
        ndd.Stream(None)
    with pytest.raises(TypeError, match="positional"):
        ndd.set_current_stream(cuda_stream=None)


def test_a_context_remembers_results():
    context = ndd.EvalContext()
    call = object()
    assert context.cached_results(call) is None
    context.cache_results(call, (1, 2))
    assert context.cached_results(call) in ((1, 2), None)


def test_the_default_generator_is_one_object():
    assert ndd.random.get_default_rng() is ndd.random.get_default_rng()


CONSTANTS = [
    (10,), (1.5,), (True,), (10, "UINT8"), (2, "FLOAT"), (2.7, "INT32"), (-2.7, "INT32"), (2, "BOOL"), (7, "FLOAT16"),
    (300, "UINT8"), (np.uint16(3),), (np.int64(5),), (np.float64(2),), (np.bool_(True),), (np.array(3, np.uint16),),
    (np.float32(2), "INT64"), (torch.tensor(3),), (torch.tensor(2.5, dtype=torch.float16),),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("make", ["Constant", "ScalarConstant"])
@pytest.mark.parametrize("call", CONSTANTS, ids=str)
def test_constants_of_one_number_show_it_and_its_type(make, call):
    theirs = pytest.importorskip("nvidia.dali.types")
    shown = []
    for types in (ndd.types, theirs):
        constant = getattr(types, make)(call[0], *[getattr(types, name) for name in call[1:]])
        shown.append((str(constant), repr(constant), f"{constant}"))
    assert shown[0] == shown[1]


def test_what_has_no_single_number_shows_its_value():
    types = ndd.types
    assert [str(types.Constant(v)) for v in ([1, 2], [1.5])] == ["[1, 2]", "[1.5]"]
    assert str(types.Constant(5, shape=[2])) == "5"
    assert str(types.Constant(float("nan"), dtype=types.INT32)) == "nan"


@pytest.mark.oracle
def test_layouts_show_their_class():
    theirs = pytest.importorskip("nvidia.dali.types").TensorLayout("HWC")
    ours = ndd.types.TensorLayout("HWC")
    assert str(ours) == str(theirs) == "HWC"
    assert repr(ours) == repr(theirs).replace("nvidia.dali", "ndd")
