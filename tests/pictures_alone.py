"""What a picture of a batch should be: what it is alone, where Python decodes it."""

from __future__ import annotations

from typing import Any

import numpy as np

import ndd
from ndd.decoders import picture_batch


def alone(data, **arguments) -> Any:
    """The picture, or the text of its error."""
    try:
        return np.asarray(ndd.decoders.image(ndd.tensor(data), **arguments)).copy()
    except RuntimeError as error:
        return str(error).split("sample 0: ", 1)[1]


def counted(monkeypatch):
    """The pictures that Python decodes one by one, as they come."""
    actual, decode = [], picture_batch.decode

    def noted(data, *rest):
        actual.append(data)
        return decode(data, *rest)

    monkeypatch.setattr(picture_batch, "decode", noted)
    return actual


def check_batch(monkeypatch, data, threads, **arguments):
    """Each picture of a batch is what it is alone. Returns the pictures, and how many of them Python decoded one by one."""
    expected, by_python = [alone(item, **arguments) for item in data], counted(monkeypatch)
    with ndd.EvalContext(num_threads=threads):
        actual = [np.asarray(image) for image in ndd.decoders.image(ndd.batch(data), **arguments).tensors]
    for item, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(item, other)
    return actual, len(by_python)


def check_windows(monkeypatch, data, windows, **arguments):
    """Windows y, x, height, width of each picture of a batch are parts of what it is alone, and Python decodes none of them."""
    whole, by_python = [alone(item, **arguments) for item in data], counted(monkeypatch)
    place = {"axes": (0, 1), "normalized_anchor": False, "normalized_shape": False}
    for y, x, high, wide in windows:
        result: Any = ndd.decoders.image_slice(ndd.batch(data), [y, x], [high, wide], **place, **arguments)
        for item, window in zip(whole, result.tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(window), item[y : y + high, x : x + wide])
    assert not by_python


def check_damage(data, least, **arguments):
    """Each damaged picture of a batch is skipped with the error that it has alone, and the others are what they are alone."""
    each = [alone(item, **arguments) for item in data]
    bad = [i for i, item in enumerate(each) if isinstance(item, str)]
    assert len(bad) >= least
    result: Any = ndd.decoders.image(ndd.batch(data), on_error="skip", **arguments)
    good = [item for item in each if not isinstance(item, str)]
    for item, image in zip(good, result.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(image), item)
    assert [(d.index, d.error) for d in result.dropped] == [(i, each[i]) for i in bad]
