"""Names and forms that users of other libraries guess: each error says what to write here instead."""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest
import torch
from calling import load_every_module

import ndd
from ndd._operator import name_hints as hints

OPERATORS = load_every_module()
X = ndd.batch([np.zeros((9, 8, 3), np.uint8)] * 2, layout="HWC")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ndd.resize(X, 256), TypeError, r"by name, such as size=\[height, width\], or resize_shorter="),
        (lambda: ndd.flip(X, True), TypeError, "such as horizontal=True"),
        (lambda: ndd.crop(X, 4), TypeError, "such as crop="),
        (lambda: ndd.gaussian_blur(X, kernel_size=3), TypeError, "'kernel_size': gaussian_blur.. has 'window_size'"),
        (lambda: ndd.experimental.erode(X, kernel_size=3), TypeError, "erode.. has 'mask_size'"),
        (lambda: ndd.random_resized_crop(X, size=[3, 3], scale=(0.1, 1)), TypeError, "'random_area'"),
        (lambda: ndd.resize(X, scale=2), TypeError, "'size'"),
        (lambda: ndd.crop(X, height=3, width=3), TypeError, "'crop_h'"),
        (lambda: ndd.flip(X, p=0.3), TypeError, r"coin_flip\(batch_size=n, probability=0.3\)"),
        (lambda: ndd.flip(X, horizontl=1), TypeError, "did you mean 'horizontal'"),
        (lambda: ndd.center_crop, AttributeError, r"ndd\.crop\(images, crop="),
        (lambda: ndd.CenterCrop, AttributeError, r"ndd\.crop\(images, crop="),
        (lambda: ndd.Compose, AttributeError, "one after the other"),
        (lambda: ndd.transforms.Compose, AttributeError, "one after the other"),
        (lambda: ndd.Normalize, AttributeError, r"did you mean ndd\.normalize\?"),
        (lambda: ndd.reszie, AttributeError, r"did you mean ndd\.resize\?"),
        (lambda: ndd._no_such_thing, AttributeError, "attribute '_no_such_thing'$"),
        (lambda: ndd.resize(ndd.io.file.read([__file__]), size=[3, 3]), ValueError, r"ndd\.decoders\.image\(x\)"),
        (lambda: f"{ndd.tensor([1, 2]):.2f}", TypeError, r"shape \(2,\).*x\.numpy\(\)\.flat"),
        (lambda: f"{X:.2f}", TypeError, r"batch\.tensors"),
        (lambda: torch.from_dlpack(X), TypeError, r"batch\.torch\(\)"),
        (lambda: np.from_dlpack(X), TypeError, r"batch\.torch\(\)"),
    ],
)
def test_an_error_says_what_to_write(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_scalars_are_formatted_as_numbers():
    assert f"{ndd.tensor(3.5):.2f} {ndd.tensor(7):03d} {ndd.tensor(1.25, dtype=ndd.bfloat16):.1f}" == "3.50 007 1.2"
    assert f"{ndd.tensor([1])}" == str(ndd.tensor([1]))
    assert f"{X}" == str(X)


def test_a_batch_sampler():
    from torch.utils.data import BatchSampler, SequentialSampler

    sampler = BatchSampler(SequentialSampler(range(5)), 2, drop_last=False)
    reader = ndd.readers.File(files=[__file__] * 5, sampler=sampler)
    with pytest.raises(TypeError, match=r"got batches of them \(BatchSampler\): .* next_epoch\(batch_size="):
        next(reader.next_epoch(2))


def failing(error):
    @ndd.operator
    def fails(x, /):
        return ndd.like(x)

    @fails.batch
    def _(call, x):
        raise error

    return fails


class Mute(Exception):
    def __str__(self):
        raise ValueError("inner")


@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.sync_cpu])
def test_errors_without_a_text(mode):
    with mode:
        with pytest.raises(MemoryError, match=r"fails: there is not enough memory for 2 samples, .* 432 bytes"):
            failing(MemoryError())(X).evaluate()
        with pytest.raises(RuntimeError, match=r"fails: Mute: its text cannot be shown \(ValueError\)"):
            failing(Mute())(X).evaluate()


def test_records_whose_error_has_no_text(monkeypatch):
    store = importlib.import_module("ndd.readers.stores.file_store").FileStore
    read = store.records

    def records(self, numbers):
        result = read(self, numbers)
        result.faults[0] = Mute()
        return result

    monkeypatch.setattr(store, "records", records)
    with pytest.raises(RuntimeError, match="Mute: its text cannot be shown"):
        ndd.readers.File(files=[__file__] * 2)[0]


def test_what_hints_name_is_there():
    texts = [*hints._NAMES.values(), hints._BY_CHANCE, *hints._FIRST.values()]
    named = {name for text in texts for name in re.findall(r"ndd((?:\.[a-z_]\w*)+)", text)}
    assert len(named) > 20
    for name in named:
        value = ndd
        for part in name[1:].split("."):
            value = getattr(value, part)
    for text in texts:
        for name, options in re.findall(r"ndd\.((?:\w+\.)*\w+)\(((?:[^()]|\([^()]*\))*)\)", text):
            known = {a.name for a in OPERATORS[name].arguments} if name in OPERATORS else None
            outside = re.sub(r"\([^()]*\)", "", options)
            for keyword in re.findall(r"(\w+)=", outside) if known else ():
                assert keyword in known | {"batch_size"}, (name, keyword)
    arguments = {a.name for op in OPERATORS.values() for a in op.arguments}
    assert {other for others in hints._ARGUMENTS.values() for other in others} <= arguments
    for operator, text in hints._FIRST.items():
        known = {a.name for a in OPERATORS[operator].arguments}
        assert set(re.findall(r"(\w+)=", text)) <= known, operator


@pytest.mark.parametrize("path", sorted(OPERATORS))
def test_no_operator_takes_arguments_by_position(path):
    function = ndd
    for part in path.split("."):
        function = getattr(function, part)
    operator = OPERATORS[path]
    if operator.variadic or any(argument.required for argument in operator.arguments):
        return
    with pytest.raises(TypeError, match=r"positional argument.* by name"):
        function(*[0] * (len(operator.inputs) + 1))
