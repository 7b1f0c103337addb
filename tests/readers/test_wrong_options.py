"""Values that no reader takes: an error that names reader and argument, at once."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import ndd
from ndd.readers.reader import Reader

READERS = [kind for kind in map(ndd.readers.__dict__.get, ndd.readers.__all__) if inspect.isclass(kind)]
READERS = [kind for kind in READERS if issubclass(kind, Reader) and kind is not Reader]
WRONG = {
    "int": (float("inf"), float("nan"), 1.5, "x", [1], {}, np.array([1, 2])),
    "str": (1, ["a"], {}, np.array([1])),
    "sampler": (0, True, 1.5, object()),
}


def arguments_of(kind):
    for parameter in inspect.signature(kind).parameters.values():
        form = str(parameter.annotation).removesuffix(" | None")
        form = "sampler" if parameter.name == "sampler" else form.removeprefix("<class '").removesuffix("'>")
        if form in WRONG and parameter.name not in ("name",):
            yield parameter.name, WRONG[form]


@pytest.mark.parametrize("kind", READERS, ids=lambda kind: kind.__name__)
def test_every_reader_names_itself_and_the_argument(kind):
    parameters = inspect.signature(kind).parameters.values()
    needed = {p.name: 1 if p.annotation is int else "nowhere" for p in parameters if p.default is p.empty}
    tried = 0
    for name, values in arguments_of(kind):
        for value in values:
            with pytest.raises((TypeError, ValueError)) as error:
                kind(**{**needed, name: value})
            assert kind._display in str(error.value), (name, value)
            assert name in str(error.value), (name, value)
            tried += 1
    assert tried > 20


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ndd.readers.Numpy(files=["a.npy"], roi_start=["x"]), "readers.Numpy: roi_start: expected numbers"),
        (lambda: ndd.readers.Numpy(files=["a.npy"], rel_roi_shape={}), "readers.Numpy: rel_roi_shape: expected numbers"),
        (lambda: ndd.readers.Webdataset(paths="a.tar", ext=[None]), "readers.Webdataset: ext: expected strings"),
        (lambda: ndd.readers.Webdataset(paths="a.tar", ext=7), "readers.Webdataset: ext: expected strings"),
        (lambda: ndd.readers.Webdataset(paths="a.tar", ext="jpg", dtypes=["x"]), "readers.Webdataset: dtypes: expected types"),
        (lambda: ndd.readers.Caffe2(path="a", additional_inputs=2**31), "readers.Caffe2: additional_inputs: expected up to"),
    ],
)  # fmt: skip
def test_arguments_of_some(make, said):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=said):
        next(make().next_epoch(batch_size=1))
