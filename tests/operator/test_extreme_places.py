"""Places and sizes that are NaN, infinite, or whose sums wrap: an error in a sentence, before anything is read or written there."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

NAN, INF, MOST = float("nan"), float("inf"), 2**63 - 1
IMAGES = ndd.batch([np.ones((23, 31, 3), np.uint8)] * 3, layout="HWC")


def each(value):
    """This value for the second of three samples, a harmless one for the others."""
    value = np.asarray(value)
    return ndd.batch([np.ones_like(value), value, np.ones_like(value)])


CALLS = {
    "erase of NaN": (lambda: ndd.erase(IMAGES, anchor=[2.0, 3.0], shape=[NAN, 1.0]), "`anchor` and `shape`"),
    "erase at NaN": (lambda: ndd.erase(IMAGES, anchor=each([NAN, 3.0]), shape=[4.0, 1.0]), "sample 1: `anchor`"),
    "erase of what cancels": (lambda: ndd.erase(IMAGES, anchor=[-INF, 0.0], shape=[INF, 1.0]), "`anchor` and `shape`"),
    "erase of shares": (
        lambda: ndd.erase(IMAGES, shape=[-INF, 1.0], normalized=True, anchor=[INF, 0.0]),
        "`anchor` and",
    ),
    "erase about a centre": (lambda: ndd.erase(IMAGES, shape=[INF, 1.0], centered_anchor=True), "`anchor` and `shape`"),
    "paste by infinity": (lambda: ndd.paste(IMAGES, ratio=INF, fill_value=[0]), "`ratio`"),
    "paste by too much": (lambda: ndd.paste(IMAGES, ratio=1e30, fill_value=[0]), "`ratio`"),
    "paste of NaN": (lambda: ndd.paste(IMAGES, ratio=2.0, fill_value=[0], min_canvas_size=NAN), "`min_canvas_size`"),
    "paste of infinity": (
        lambda: ndd.paste(IMAGES, ratio=2.0, fill_value=[0], min_canvas_size=INF),
        "`min_canvas_size`",
    ),
    "pad to wrap": (lambda: ndd.pad(IMAGES, align=[MOST, 1, 1]), "no room for"),
    "pad to wrap more": (lambda: ndd.pad(IMAGES, align=[7, 7, 7], shape=[MOST, 1, 1]), "no room for"),
    "dilate": (lambda: ndd.experimental.dilate(IMAGES, anchor=each([MOST, 3])), "sample 1: `anchor`"),
    "erode": (lambda: ndd.experimental.erode(IMAGES, anchor=[3, MOST], mask_size=[5, 5]), "`anchor`"),
    "erode of what merges": (lambda: ndd.experimental.erode(IMAGES, anchor=[3, 2**61], iterations=8), "`anchor`"),
    "resample without end": (lambda: ndd.audio_resample(np.ones(9, np.float32), scale=INF), "`scale`"),
    "resample from infinity": (
        lambda: ndd.audio_resample(np.ones(9, np.float32), in_rate=INF, out_rate=1.0),
        "`in_rate`",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_an_error(name):
    call, said = CALLS[name]
    with pytest.raises((RuntimeError, ValueError, MemoryError), match=said):
        call().evaluate()


@pytest.mark.parametrize("name", ["in_anchors", "out_anchors"])
@pytest.mark.parametrize("place", [[MOST, 0], [0, MOST - 3], [-MOST - 1, 0]])
def test_regions_that_multi_paste_would_look_for_behind_the_memory(name, place):
    places = {name: ndd.batch([np.array([place])] * 3), "shapes": ndd.batch([np.array([[5, 5]])] * 3)}
    with pytest.raises(RuntimeError, match="sample 0: region 0 of shape"):
        ndd.multi_paste(IMAGES, in_ids=ndd.batch([[0]] * 3), output_size=[40, 40], **places).evaluate()


def test_multi_paste_names_the_argument_that_was_given():
    with pytest.raises(RuntimeError, match="`in_anchors_rel`: expected shape"):
        ndd.multi_paste(IMAGES, in_ids=ndd.batch([[0]] * 3), in_anchors_rel=ndd.batch([[0.5]] * 3)).evaluate()


@pytest.mark.parametrize("argument", ["sample_rate", "start", "duration"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_seconds_without_end(argument, value):
    with pytest.raises(RuntimeError, match=f"`{argument}` is a finite number"):
        ndd.decoders.audio(np.zeros(100, np.uint8), **{argument: value})[0].evaluate()


def test_regions_may_be_infinite():
    """What reaches beyond the image is ignored, however far it does."""
    image = ndd.tensor(np.ones((4, 5, 1), np.uint8), layout="HWC")
    result = np.asarray(ndd.erase(image, anchor=[1.0, 2.0], shape=[INF, INF]))[..., 0]
    assert result.tolist() == [[1] * 5, *[[1, 1, 0, 0, 0]] * 3]
    assert np.asarray(ndd.pad(image, align=[3, 1, 1])).shape == (6, 5, 1)
