"""Classes of `tv_tensors` of the user's own: kernels that are registered for them, and what passes without."""

from __future__ import annotations

import pytest
import torch
from torchvision_classes import APART, CASES, names, outcome, theirs

from ndd.torchvision import v2
from ndd.torchvision.v2 import functional as F

from torchvision import tv_tensors  # isort: skip

oracle = theirs.functional


class Angles(tv_tensors.TVTensor):
    """With kernels."""


class Degrees(Angles):
    """With those of its base."""


class Heights(tv_tensors.TVTensor):
    """Without a kernel."""


class Thumbnail(tv_tensors.Image):
    """An image, with a kernel of its own for one function."""


def of(cls):
    return torch.arange(6.0).reshape(2, 3).as_subclass(cls)


def register(module):
    @module.register_kernel(functional="hflip", tv_tensor_cls=Angles)
    def _(angles):
        return tv_tensors.wrap(-angles, like=angles)

    @module.register_kernel(module.rotate, Angles)
    def _(angles, angle, expand, **others):
        assert sorted(others) == ["center", "fill", "interpolation"]
        return tv_tensors.wrap(angles + angle + expand, like=angles)

    @module.register_kernel(module.invert, Thumbnail)
    def _(image):
        return image


register(F)
register(oracle)


def assert_same(result, wanted):
    assert type(result) is type(wanted)
    assert torch.equal(torch.Tensor(result), torch.Tensor(wanted))


@pytest.mark.parametrize("cls", [Angles, Degrees])
def test_functions(cls):
    assert_same(F.hflip(of(cls)), oracle.hflip(of(cls)))
    assert_same(F.horizontal_flip(inpt=of(cls)), oracle.horizontal_flip(of(cls)))
    assert_same(F.rotate(of(cls), 30, expand=True), oracle.rotate(of(cls), 30, expand=True))
    with pytest.raises(TypeError, match=r"F\.resize supports"):
        F.resize(of(cls), 5)


def test_a_subclass_of_an_image():
    image = torch.arange(12, dtype=torch.uint8).reshape(3, 2, 2).as_subclass(Thumbnail)
    for call in (lambda m: m.invert(image), lambda m: m.hflip(image), lambda m: m.resize(image, [4, 4])):
        assert_same(call(F), call(oracle))


@pytest.mark.parametrize("name", [n for n in names() if n not in APART])
def test_transforms(name):
    """Beside an image: with a kernel, or passed through."""
    arguments = CASES.get(name, [()])[0]
    image = tv_tensors.Image(torch.arange(3 * 40 * 50).reshape(3, 40, 50).to(torch.uint8))
    for own in (of(Degrees), of(Heights)):
        result, wanted = (outcome(getattr(m, name)(*arguments), [image, own], 0) for m in (v2, theirs))
        if isinstance(wanted, Exception):
            assert isinstance(result, type(wanted)), (result, wanted)
        elif name not in ("FiveCrop", "TenCrop"):
            assert_same(result[1], wanted[1])


def test_wrong_arguments():
    for arguments in (
        ("nothing", Heights),
        (len, Heights),
        (F.resize, torch.Tensor),
        (F.resize, "x"),
        (F.resize, tv_tensors.Mask),
        (F.rotate, Angles),
    ):
        with pytest.raises(ValueError, match=r"[Kk]ernel"):
            F.register_kernel(*arguments)
