"""PNMs of a batch, which compiled code decodes: every kind, in every output type, gives what it gives alone."""

from __future__ import annotations

import numpy as np
import pytest
from encoded import KINDS
from pictures_alone import check_batch, check_damage, check_windows

import ndd
from ndd._compiled.background import background

GRAY = np.random.default_rng(3).integers(0, 256, (19, 23), np.uint8)
COLOURS = np.random.default_rng(4).integers(0, 256, (19, 23, 3), np.uint8)
HEADS = (
    b"P%d\n23 19\n255\n", b"P%d 23 19 255 ", b"P%d\n# made by hand\n23\t19\n# 7 8 9\n255\n", b"P%d\n#\n23 #x\r19 255\r",
    b"P%d\n023 0019 000255\n",
)  # fmt: skip
RARE = b"P%d\n23 19\n254\n"


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def file(head, kind, body=None, more=b""):
    body = (GRAY if kind == 5 else COLOURS).tobytes() if body is None else body
    return np.frombuffer(head % kind + body + more, np.uint8)


def files(heads):
    return [file(head, kind, more=more) for head in heads for kind in (5, 6) for more in (b"", b"behind")]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_as_alone(kind, threads, monkeypatch):
    common = files(HEADS)
    data = [*common, file(RARE, 5), file(RARE, 6)]
    actual, by_python = check_batch(monkeypatch, data, threads, output_type=getattr(ndd.types, kind))
    assert by_python == (len(data) if kind == "YCbCr" else 2)
    if kind == "ANY_DATA":
        for item, image in zip(common, actual, strict=False):
            np.testing.assert_array_equal(image, GRAY[..., None] if item[1] == ord("5") else COLOURS)


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY"])
def test_windows_as_alone(kind, monkeypatch):
    windows = (3, 2, 9, 11), (0, 0, 1, 1), (18, 22, 1, 1), (5, 0, 14, 23)
    check_windows(monkeypatch, files(HEADS), windows, output_type=getattr(ndd.types, kind))


def test_damage_is_what_it_is_alone():
    whole = file(HEADS[0], 6)
    lies = (
        b"23 20 255\n",
        b"24 19 255\n",
        b"0 19 255\n",
        b"23 -19 255\n",
        b"23 19\n",
        b"23 19 0\n",
        b"999999999 999999999 255\n",
    )
    data = [whole[:k] for k in (1, 2, 3, 5, 9, 12, 13, len(whole) - 1)]
    data += [file(b"P%d " + text, 6) for text in lies]
    data += [np.frombuffer(b"P6" + bytes([space]) * 5000 + whole.tobytes()[3:], np.uint8) for space in b" \n"]
    check_damage([item for bad in data for item in (bad, whole)], 10)
