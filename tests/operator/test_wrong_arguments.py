"""Values that no argument takes: an error that names operator and argument, wherever the conversion of the value fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from calling import call_with, cases_of, evaluated, layouts_of, load_every_module, public, samples

import ndd

OPERATORS = load_every_module()
VALUES = {
    "objects": np.array([None, 1], object),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "a structure": np.zeros(2, [("a", "i4")]),
    "complex": torch.zeros(2).to(torch.complex64),
    "float8": torch.zeros(2).to(torch.float8_e4m3fn),
    "sparse": torch.zeros(2).to_sparse(),
    "on no device": torch.zeros(2, device="meta"),
}
PATHS = [path for path, op in sorted(OPERATORS.items()) if cases_of(path, op)]


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", PATHS)
def test_the_error_names_operator_and_argument(path):
    op, case = OPERATORS[path], cases_of(path, OPERATORS[path])[0]
    inputs = samples(case, layouts_of(case, op)[0])
    wrong = []
    for argument in op.arguments:
        if argument.name == "image_type" and op.name in ("crop", "slice", "crop_mirror_normalize"):
            continue  # an old argument without effect
        if argument.numpy == np.bool_ and not argument.per_sample:
            continue  # anything is true or false
        for name, value in VALUES.items():
            batches = [ndd.batch(arrays, layout=layout) for arrays, layout in inputs]
            try:
                evaluated(call_with(ndd, public(ndd, path), case, batches, "ragged", **{argument.name: value}))
                said = "nothing"
            except (TypeError, ValueError, RuntimeError) as error:
                said = str(error)
            if op.name not in said or argument.name not in said:
                wrong.append(f"{argument.name}, {name}: {said}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["complex", "float8", "sparse", "on no device"])
def test_torch_tensors_that_no_value_can_be_made_of(name):
    value = VALUES[name]
    for call in (ndd.tensor, ndd.as_tensor, lambda x: ndd.batch([x]), lambda x: ndd.as_batch(x).evaluate()):
        with pytest.raises((TypeError, RuntimeError), match=r"Cannot make a tensor of a torch tensor on 'meta'|"
                           "Cannot make a tensor of torch's type|Cannot make a tensor of a sparse torch tensor"):  # fmt: skip
            call(value)
    with pytest.raises((TypeError, RuntimeError), match=r"^flip: Cannot make"):
        ndd.flip(value)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_lists_of_differing_lengths_on_no_device():
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    with pytest.raises(TypeError, match="a nested torch tensor"):
        ndd.as_tensor(nested)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda x: ndd.brightness(x, brightness=np.datetime64("2020")),
            "brightness: argument 'brightness': expected num",
        ),
        (lambda x: ndd.crop(x, crop=np.array(["2020", "2021"], "M8[Y]")), "crop: argument 'crop': expected numbers"),
        (lambda x: ndd.erase(x, shape=[None, 1.0]), "erase: argument 'shape': expected numbers, got"),
        (
            lambda x: ndd.experimental.dilate(x, iterations=2**64),
            "argument 'iterations': 18446744073709551616 does not fit",
        ),
        (
            lambda x: ndd.reductions.sum(x, axes=[[[0]]]),
            r"argument 'axes': expected a list .* array of shape \(1, 1, 1\)",
        ),
        (lambda x: ndd.crop(x, crop_w="\ud800", crop_h=3), "crop: argument 'crop_w'"),
    ],
)
def test_numbers_that_are_none(call, said):
    with pytest.raises((TypeError, ValueError, OverflowError, RuntimeError), match=said):
        call(ndd.batch([np.zeros((9, 8, 3), np.uint8)] * 2, layout="HWC")).evaluate()
