"""ndd.picture: what is drawn is where it belongs; from encoded images and from Targets; before and after; misuse."""

from __future__ import annotations

import io

import numpy as np
import pytest

import ndd

Image = pytest.importorskip("PIL.Image")
BLACK = np.zeros((100, 200, 3), np.uint8)


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.png())))


def colored(image):
    """Where something is drawn."""
    return image.max(axis=2) > 0


@pytest.mark.parametrize(
    ("box", "how"),
    [
        ([0.25, 0.5, 0.75, 0.9], {}),
        ([50, 50, 150, 90], {"ratio": False}),
        ([0.25, 0.5, 0.5, 0.4], {"ltrb": False}),
        ([50, 50, 100, 40], {"ltrb": False, "ratio": False}),
    ],
)
def test_boxes(box, how):
    result = pixels(ndd.picture(ndd.tensor(BLACK, layout="HWC"), ndd.tensor(np.float32([box])), tile=400, **how))
    assert result.shape == (200, 400, 3)
    y, x = np.nonzero(colored(result))
    assert (x.min(), x.max() + 1, y.min(), y.max() + 1) == (100, 300, 100, 180)
    assert not colored(result)[104:176, 104:296].any()


def test_labels_have_colours_and_names():
    boxes = ndd.tensor(np.float32([[0, 0, 0.3, 0.9], [0.5, 0, 0.8, 0.9]]))
    image = ndd.tensor(BLACK, layout="HWC")
    first, second, same = (pixels(ndd.picture(image, boxes, ndd.tensor(np.int32(k)))) for k in ([1, 1], [1, 2], [1, 1]))
    np.testing.assert_array_equal(first, same)
    assert (first[:, :120] == second[:, :120]).all()
    assert (first != second).any()
    named = pixels(ndd.picture(image, boxes, ndd.tensor(np.int32([1, 2])), names={1: "a longer name"}))
    assert (named[:, :120] != second[:, :120]).any()
    assert (named[:, 120:] == second[:, 120:]).all()


def test_masks_points_and_polygons():
    mask = np.zeros((100, 200), np.int32)
    mask[20:40, 50:90] = 3
    image = ndd.tensor(BLACK, layout="HWC")
    for arguments in (mask, mask[..., None]):
        np.testing.assert_array_equal(
            colored(pixels(ndd.picture(image, masks=ndd.tensor(arguments), tile=200))), mask > 0
        )
    y, x = np.nonzero(colored(pixels(ndd.picture(image, points=ndd.tensor(np.float32([[0.5, 0.25]])), tile=200))))
    assert abs(x.mean() - 100) < 1
    assert abs(y.mean() - 25) < 1
    outline = {"polygons": ndd.tensor(np.int32([[0, 0, 4]])), "ratio": False, "tile": 200}
    corners = ndd.tensor(np.float32([[50, 20], [90, 20], [90, 40], [50, 40]]))
    y, x = np.nonzero(colored(pixels(ndd.picture(image, vertices=corners, **outline))))
    assert (x.min(), x.max(), y.min(), y.max()) == (50, 90, 20, 40)


def test_what_a_reader_gives(tmp_path):
    Image.fromarray(BLACK).save(tmp_path / "a.png")
    encoded = ndd.batch([(tmp_path / "a.png").read_bytes()] * 3)
    boxes = ndd.batch([np.zeros((0, 4), np.float32), np.float32([[0, 0, 1, 1]]), np.float32([[0, 0, 0.5, 0.5]] * 2)])
    sheet = ndd.picture(encoded, boxes, tile=100)
    result = pixels(sheet)
    assert result.shape == (50, 308, 3)
    assert not colored(result[:, :100]).any()
    sheet.save(tmp_path / "sheet.png")
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "sheet.png")), result)
    assert "Picture of 3 images" in repr(sheet)


def test_targets_show_themselves_and_before_and_after():
    targets = ndd.Targets(ndd.tensor(BLACK, layout="HWC"), ndd.tensor(np.float32([[0.1, 0.1, 0.4, 0.9]])))
    assert targets._repr_html_().startswith("<img")
    before, after = ndd.picture(targets, tile=100), ndd.picture(targets.rotate(angle=90, fill_value=0), tile=100)
    assert pixels(before.beside(after)).shape == (50 + 2 + 100, 100, 3)
    with pytest.raises(ValueError, match="2 and 1"):
        ndd.picture(ndd.batch([BLACK] * 2, layout="HWC")).beside(before)


def test_misuse():
    with pytest.raises(ValueError, match="boxes: expected 1, one for each image, got 2"):
        ndd.picture(ndd.tensor(BLACK, layout="HWC"), ndd.batch([np.zeros((1, 4), np.float32)] * 2))
    with pytest.raises(ValueError, match="expected images"):
        ndd.picture(ndd.tensor(np.zeros((4, 4, 7), np.uint8)))


def test_masks_of_objects():
    planes = np.zeros((2, 40, 60), bool)
    planes[0, :20], planes[1, 30:] = True, True
    black = ndd.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    merged = np.where(planes[1], 2, planes[0]).astype(np.int32)
    shown = ndd.picture(ndd.Targets(black, masks=planes))
    assert shown.png() == ndd.picture(black, masks=ndd.tensor(merged)).png()
    assert ndd.picture(ndd.Targets(black, masks=planes[:0])).png() == ndd.picture(black).png()
