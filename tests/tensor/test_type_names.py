"""Small public names of types and devices, each beside DALI's."""

from __future__ import annotations

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


def test_an_unknown_framework_type():
    with pytest.raises(TypeError):
        ndd.DType.from_fw_type(3)


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
