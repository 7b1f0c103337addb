"""BMPs of a batch, which compiled code decodes: every kind, in every output type, gives what it gives alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from encoded import KINDS
from picture_writers.bmp import BITFIELDS, INFO, OS2, RLE8, V4, V5, bmp, packed
from pictures_alone import check_batch, check_damage, check_windows

import ndd
from ndd._compiled.background import background

RNG = np.random.default_rng(3)
COLOURS = RNG.integers(0, 256, (256, 3), np.uint8)
GRAYS = np.repeat(COLOURS[:, :1], 3, axis=1)
HEIGHT, WIDTH = 19, 23
INDICES = RNG.integers(0, 256, (HEIGHT, WIDTH))
WORDS = RNG.integers(0, 1 << 32, (HEIGHT, WIDTH), np.uint32)


@pytest.fixture(autouse=True)
def _without_fallbacks(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def common_files():
    """Those that compiled code decodes."""
    for bits, header, top_down, gap in itertools.product((24, 32), (INFO, V4, V5), (False, True), (0, 3)):
        body = packed(WORDS[::-1] if top_down else WORDS, bits)
        yield bmp(body, WIDTH, HEIGHT, bits, header=header, top_down=top_down, gap=gap)
    for palette, top_down, count in itertools.product((COLOURS, GRAYS), (False, True), (256, 200, 1)):
        yield bmp(packed(INDICES, 8), WIDTH, HEIGHT, 8, palette=palette[:count], top_down=top_down)
    for width in range(1, 9):
        yield bmp(packed(WORDS[:, :width], 24), width, HEIGHT, 24)
        yield bmp(packed(INDICES[:, :width], 8), width, HEIGHT, 8, palette=COLOURS)


def rare_files():
    """Those that Python decodes."""
    yield bmp(packed(WORDS, 24), WIDTH, HEIGHT, 24, header=OS2)
    yield bmp(packed(WORDS, 32), WIDTH, HEIGHT, 32, BITFIELDS, masks=(0xFF, 0xFF00, 0xFF0000))
    yield bmp(packed(WORDS & 0x7FFF, 16), WIDTH, HEIGHT, 16)
    yield bmp(packed(INDICES & 15, 4), WIDTH, HEIGHT, 4, palette=COLOURS[:16])
    yield bmp(b"\x17\1\0\0" * HEIGHT + b"\0\1", WIDTH, HEIGHT, 8, RLE8, palette=COLOURS)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(1)
def test_every_kind_as_alone(kind, threads, monkeypatch):
    common, rare = [*common_files()], [*rare_files()]
    data = [*rare[:2], *common, *rare[2:]]
    _, by_python = check_batch(monkeypatch, data, threads, output_type=getattr(ndd.types, kind))
    with_four = sum(int(item[28]) == 32 for item in common)
    assert by_python == {"YCbCr": len(data), "ANY_DATA": len(rare) + with_four}.get(kind, len(rare))


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY"])
def test_windows_as_alone(kind, monkeypatch):
    data = [item for item in common_files() if int(item[18:22].view("<i4")[0]) == WIDTH]
    windows = (3, 2, 9, 11), (0, 0, 1, 1), (18, 22, 1, 1), (5, 0, 14, 23)
    check_windows(monkeypatch, data, windows, output_type=getattr(ndd.types, kind))


def test_damage_is_what_it_is_alone():
    files = (
        bmp(packed(WORDS, 24), WIDTH, HEIGHT, 24), bmp(packed(INDICES, 8), WIDTH, HEIGHT, 8, palette=COLOURS),
        bmp(packed(WORDS, 32), WIDTH, HEIGHT, 32, header=V5),
    )  # fmt: skip
    data = []
    for whole in files:
        data += [whole[:k] for k in (2, 13, 20, 53, 54, 55, len(whole) // 2, len(whole) - 1, len(whole) - 4)]
        for place in (*range(2, 54), 60, len(whole) - 1):
            for bit in (0x01, 0x80):
                changed = whole.copy()
                changed[place] ^= bit
                data.append(changed)
    check_damage(data, 60, max_pixels=1 << 22)
