"""Transforms of the user's: `Transform` and `Lambda`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import batch_of, samples_of, theirs, tv_tensors

import ndd
from ndd.torchvision import v2

IMAGES = [torch.randint(0, 256, (3, h, 12), dtype=torch.uint8) for h in (9, 14, 20)]


def made_with(module):
    class Shifted(module.Transform):
        """Adds a random number to the rows below a random one."""

        def make_params(self, flat_inputs):
            height, _ = module.query_size(flat_inputs)
            return {"row": int(torch.randint(height, ())), "by": int(torch.randint(1, 9, ()))}

        def transform(self, inpt, params):
            assert isinstance(inpt, torch.Tensor)
            result = inpt.clone()
            result[..., params["row"] :, :] += params["by"]
            return result

    return Shifted()


def test_on_tensors():
    for value in (IMAGES[0], tv_tensors.Image(IMAGES[0]), (IMAGES[0], 4)):
        torch.manual_seed(0)
        wanted = made_with(theirs)(value)
        torch.manual_seed(0)
        assert str(made_with(v2)(value)) == str(wanted)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_samples_of_a_batch_come_one_by_one(layout):
    torch.manual_seed(0)
    wanted = [made_with(theirs)(image) for image in IMAGES]
    torch.manual_seed(0)
    result = made_with(v2)(batch_of(IMAGES, layout))
    assert result.layout == layout
    assert all(map(torch.equal, samples_of(result), wanted))


def test_batches_on_request():
    class Brighter(v2.Transform):
        takes_batches = True

        def make_params(self, flat_inputs):
            return {"factor": 1.0 + float(torch.rand(()))}

        def transform(self, inpt, params):
            assert isinstance(inpt, ndd.Batch)
            assert params["factor"].shape == (3,)
            return v2.functional.adjust_brightness(inpt, params["factor"])

    torch.manual_seed(0)
    factors = [1.0 + float(torch.rand(())) for _ in IMAGES]
    torch.manual_seed(0)
    result = Brighter()(batch_of(IMAGES, "HWC"))
    for image, factor, sample in zip(IMAGES, factors, samples_of(result), strict=True):
        assert (theirs.functional.adjust_brightness(image, factor).int() - sample.int()).abs().max() <= 1


def test_types_are_chosen_as_in_torchvision():
    class Doubled(v2.Transform):
        _transformed_types = (tv_tensors.Mask,)

        def transform(self, inpt, params):
            return tv_tensors.wrap(inpt * 2, like=inpt)

    image, mask = tv_tensors.Image(IMAGES[0]), tv_tensors.Mask(torch.ones(9, 12))
    a, b = Doubled()(image, mask)
    assert a is image
    assert float(b.sum()) == 2 * 9 * 12


def test_lambda():
    work = v2.Lambda(lambda value: value + 1, int, str)
    assert work([1, 2.5]) == [2, 2.5]
    assert repr(work) == repr(theirs.Lambda(lambda value: value + 1, int, str))
    batch = ndd.batch([np.zeros((2, 2, 3), np.uint8)], layout="HWC")
    assert v2.Lambda(lambda value: value.batch_size, ndd.Batch)(batch) == 1


def test_identity_and_the_base():
    value = {"a": IMAGES[0], "b": 3}
    result = v2.Identity()(value)
    assert result["a"] is IMAGES[0]
    with pytest.raises(NotImplementedError):
        v2.Transform()(IMAGES[0])
