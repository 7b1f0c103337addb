"""Every transform of torchvision's registry beside torchvision's own: the same seed, the same result."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
import torchvision_classes as classes
from torchvision_classes import APART, CASES, MEAN, STD, batch_of, difference, inputs, names, outcome, theirs

from ndd.torchvision import v2

INPUTS = inputs()
CALLED = [(name, arguments) for name in names() if name not in APART for arguments in CASES.get(name, [()])]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_every_public_name_is_there():
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert len(names()) + 2 >= 65  # with two enums
    assert public <= set(v2.__all__), sorted(public - set(v2.__all__))


@pytest.mark.parametrize("name", names())
def test_signatures(name):
    """torchvision's parameters and defaults; `same_on_batch` is ours, and behind them."""
    own, wanted = (list(inspect.signature(getattr(m, name)).parameters.values()) for m in (v2, theirs))
    extra = [p for p in own if p.name == "same_on_batch"]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is False for p in extra)
    plain = [
        [(p.name, p.kind, getattr(p.default, "value", p.default)) for p in parameters if p.name != "same_on_batch"]
        for parameters in (own, wanted)
    ]
    assert plain[0] == plain[1]
    draws = name.startswith("Random") or name in (
        "AugMix", "AutoAugment", "ColorJitter", "ElasticTransform", "GaussianBlur", "GaussianNoise", "JPEG", "RandAugment",
        "ScaleJitter", "TrivialAugmentWide",
    )  # fmt: skip
    assert bool(extra) == draws


@pytest.mark.parametrize(("name", "arguments"), CALLED, ids=[f"{n}{a}" for n, a in CALLED])
@pytest.mark.drawn(1)
def test_as_torchvision(name, arguments):
    own, wanted = getattr(v2, name)(*arguments), getattr(theirs, name)(*arguments)
    if name != "AutoAugment":  # its policy is of torchvision's class or of ours
        assert repr(own) == repr(wanted)
    for kind, value in INPUTS.items():
        for seed in range(3):
            a = outcome(own, copy.deepcopy(value), seed)
            b = outcome(wanted, copy.deepcopy(value), seed)
            if isinstance(b, Exception) and kind == "one pixel high":
                break  # a side cut down to 0 pixels, which ndd makes 1
            if isinstance(b, Exception):
                assert isinstance(a, type(b)), (kind, a, b)
                break
            if isinstance(a, Exception):
                raise AssertionError(f"{kind}: {a!r}") from a
            assert not (text := difference(name, a, b)), (kind, seed, text)


WRONG = [
    ("Resize", ((1, 2, 3),)), ("Resize", (None,)), ("CenterCrop", ((1, 2, 3),)),
    ("RandomHorizontalFlip", (1.5,)), ("Pad", ("x",)), ("Pad", ([1, 2, 3],)), ("Pad", (1, 0, "wrap")), ("Pad", (1, "x")),
    ("RandomCrop", (8, "x")), ("RandomCrop", (8, 1, False, 0, "wrap")), ("RandomRotation", (-1,)),
    ("RandomRotation", ((1, 2, 3),)), ("RandomRotation", (3, "nearest", False, 5)), ("RandomAffine", (1, (2, 0))),
    ("RandomAffine", (1, None, (0, 1))), ("RandomAffine", (1, None, None, (1, 2, 3))), ("RandomPerspective", (2,)),
    ("ElasticTransform", ("x",)), ("ElasticTransform", ((1, 2, 3),)), ("RandomZoomOut", (0, (0.5, 2))),
    ("RandomZoomOut", (0, 2)), ("RandomResizedCrop", (8, 1)), ("RandomResizedCrop", (8, (0, 1), 1)),
    ("ColorJitter", (-1,)), ("ColorJitter", ("x",)), ("ColorJitter", ((2, 1),)), ("ColorJitter", (0, 0, 0, 1)),
    ("GaussianBlur", (2,)), ("GaussianBlur", (3, 0)), ("GaussianBlur", (3, (2, 1))), ("JPEG", (0,)), ("JPEG", (True,)),
    ("JPEG", ((1, 2, 3),)), ("JPEG", (5.5,)), ("RandomErasing", (2,)), ("RandomErasing", (1, 1)),
    ("RandomErasing", (1, (0, 1), 1)), ("RandomErasing", (1, (-1, 1))), ("RandomErasing", (1, (0, 1), (1, 1), "x")),
    ("RandomErasing", (1, (0, 1), (1, 1), {})), ("RandAugment", (-1,)), ("AugMix", (11,)), ("AutoAugment", ("x",)),
    ("SanitizeBoundingBoxes", (0,)), ("SanitizeBoundingBoxes", (1, 0)), ("SanitizeBoundingBoxes", (1, 1, 3)),
    ("SetClampingMode", ("x",)), ("ToDtype", ("x",)), ("Compose", (3,)), ("Compose", ([],)), ("RandomApply", (3,)),
    ("RandomApply", ([],)), ("RandomApply", ([len], 2)), ("RandomChoice", ([],)), ("RandomChoice", ([len], [1, 2])),
    ("RandomOrder", (3,)), ("LinearTransformation", (torch.eye(3)[:2], torch.zeros(3))),
    ("LinearTransformation", (torch.eye(3), torch.zeros(2))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), WRONG, ids=[f"{n}{i}" for i, (n, _) in enumerate(WRONG)])
def test_wrong_arguments(name, arguments):
    """torchvision's kind of error, and its sentence."""
    with pytest.raises(Exception) as wanted:
        getattr(theirs, name)(*arguments)
    with pytest.raises(type(wanted.value)) as told:
        getattr(v2, name)(*arguments)
    assert str(told.value) == str(wanted.value)


WRONG_CALLS = [
    ("Resize", (0,)), ("Resize", (-1,)), ("Resize", ([8, 0],)), ("Resize", (("a", "b"),)), ("RandomResizedCrop", (0,)),
    ("RandomShortestSize", (-1,)), ("Pad", (1, -1)), ("Pad", (1, 256)), ("Pad", (1, float("nan"))), ("Pad", (1, [])),
    ("RandomRotation", ((5, 9), "nearest", False, None, [])), ("RandomAffine", (9, None, None, None, "nearest", (1, 2))),
    ("RandomPhotometricDistort", ((0.5, 1), [], (0.5, 1), (0, 0.1), 1.0)), ("GaussianNoise", ("x",)),
    ("GaussianNoise", (0.0, None)), ("GaussianNoise", (0.0, -1.0)),
    ("Normalize", (MEAN, STD)), ("RandomSolarize", (300, 1.0)), ("RandomPosterize", (9, 1.0)),
    ("RandomCrop", (99,)), ("FiveCrop", (99,)), ("RandomIoUCrop", ()), ("SanitizeBoundingBoxes", ()), ("CutMix", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), WRONG_CALLS, ids=[f"{n}{i}" for i, (n, _) in enumerate(WRONG_CALLS)])
def test_wrong_arguments_that_show_in_a_call(name, arguments):
    a, b = (outcome(getattr(module, name)(*arguments), INPUTS["bytes"], 0) for module in (v2, theirs))
    assert isinstance(b, Exception)
    assert isinstance(a, type(b)), (a, b)
    for layout in ("HWC", "CHW"):
        images = outcome(getattr(v2, name)(*arguments), batch_of([INPUTS["bytes"]] * 2, layout), 0)
        assert isinstance(images, Exception) or isinstance(outcome(lambda x: x.evaluate(), images, 0), Exception)


def test_flags_are_true_or_not():
    result = v2.TenCrop(20, vertical_flip="yes")(INPUTS["bytes"])
    assert all(map(torch.equal, result, theirs.TenCrop(20, vertical_flip="yes")(INPUTS["bytes"])))


@pytest.mark.parametrize("name", ["RandomResizedCrop", "RandomCrop", "RandomErasing"])
def test_get_params_of_an_image(name):
    arguments = {
        "RandomResizedCrop": ((0.1, 0.5), (0.5, 2.0)), "RandomCrop": ((20, 30),), "RandomErasing": ((0.1, 0.2), (0.5, 2.0), [0.0]),
    }[name]  # fmt: skip
    torch.manual_seed(4)
    wanted = getattr(theirs, name).get_params(INPUTS["bytes"], *arguments)
    torch.manual_seed(4)
    assert [*getattr(v2, name).get_params(INPUTS["bytes"], *arguments)][:4] == [*wanted][:4]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("RandomRotation", ([1, 20],)),
        ("RandomAffine", ([1, 20], [0.1, 0.2], [1, 2], [1, 2, 3, 4], [40, 30])),
        ("RandomPerspective", (40, 30, 0.5)),
        ("ColorJitter", ([1, 2], None, [0, 1], [0.1, 0.2])),
        ("GaussianBlur", (0.1, 2.0)),
        ("ElasticTransform", ([50.0, 40.0], [5.0, 5.0], [60, 70])),
        ("AutoAugment", (25,)),
    ],
)
def test_get_params_of_numbers(name, arguments):
    torch.manual_seed(4)
    wanted = getattr(theirs, name).get_params(*arguments)
    torch.manual_seed(4)
    result = getattr(v2, name).get_params(*arguments)
    if name == "ElasticTransform":
        assert torch.allclose(result, wanted, atol=1e-5)
    else:
        assert str(result) == str(wanted)


@pytest.mark.parametrize("name", [n for n in names() if n not in APART])
@pytest.mark.drawn(2)
def test_a_transform_is_a_value(name):
    """It is pickled and copied, and does the same then."""
    result = getattr(v2, name)(*CASES.get(name, [()])[0])
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert repr(other) == repr(result)
        a, b = (outcome(each, copy.deepcopy(INPUTS["detection"]), 0) for each in (result, other))
        assert type(a) is type(b)
        assert isinstance(a, Exception) or not classes.difference(name, a, b)


def test_a_transform_is_not_scripted():
    with pytest.raises(RuntimeError, match="Resize cannot be JIT scripted"):
        torch.jit.script(v2.Resize(20))
