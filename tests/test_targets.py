"""Targets: a box drawn into an image and the box beside it go the same way, to one pixel; points and masks too."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import ndd

SIZES = st.tuples(st.integers(40, 120), st.integers(40, 120))
FRACTION = st.floats(0, 1, width=32)


def painted(size, corners):
    """An image with a filled box, its mask, and the box and its middle as fractions."""
    height, width = size
    left, right = sorted((int(corners[0] * (width - 12)), int(corners[1] * (width - 12))))
    top, bottom = sorted((int(corners[2] * (height - 12)), int(corners[3] * (height - 12))))
    right, bottom = right + 12, bottom + 12
    mask = np.zeros(size, np.uint8)
    mask[top:bottom, left:right] = 1
    box = np.float32([left / width, top / height, right / width, bottom / height])
    middle = (box[:2] + box[2:]) / 2
    image = ndd.tensor(np.repeat(mask[..., None] * 255, 3, axis=2), layout="HWC")
    return ndd.Targets(
        image, ndd.tensor(box[None]), ndd.tensor(np.int32([7])), ndd.tensor(mask, layout="HW"), ndd.tensor(middle[None])
    )


def drawn_box(pixels):
    """Left, top, right, bottom of what is painted, in pixels."""
    y, x = np.nonzero(pixels)
    return np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])


def check(result, tolerance=1.0):
    """The box agrees with what is painted in the image and in the mask. Nothing to see: no box, or a part of a pixel."""
    image, mask, boxes = np.asarray(result.images), np.asarray(result.masks), np.asarray(result.boxes)
    height, width = mask.shape
    assert image.shape[:2] == (height, width)
    assert len(np.asarray(result.labels)) == len(boxes)
    if len(boxes) == 0 or not mask.any():
        return
    box = boxes[0] * [width, height, width, height]
    for pixels in (image[..., 0] > 127, mask == 1):
        if pixels.any():
            assert np.abs(drawn_box(pixels) - box).max() <= tolerance, (drawn_box(pixels), box)


few = hypothesis.settings(max_examples=12, deadline=None)


@few
@hypothesis.given(SIZES, st.tuples(*[FRACTION] * 4), st.booleans(), st.booleans())
def test_flip(size, corners, horizontal, vertical):
    result = painted(size, corners).flip(horizontal=int(horizontal), vertical=int(vertical))
    check(result, 0.01)
    x, y = np.asarray(result.points)[0] * size[::-1]
    left, top, right, bottom = drawn_box(np.asarray(result.masks))
    assert abs(x - (left + right) / 2) + abs(y - (top + bottom) / 2) < 0.02


@few
@hypothesis.given(SIZES, st.tuples(*[FRACTION] * 4), st.floats(-360, 360, width=32), st.booleans())
def test_rotate(size, corners, angle, keep_size):
    result = painted(size, corners).rotate(angle=angle, keep_size=keep_size, fill_value=0, remove_threshold=0.0)
    if not keep_size:  # all of the box is there: its middle is that of the pixels
        check(result, 1.01)
        where = np.argwhere(np.asarray(result.masks)).mean(axis=0) + 0.5
        assert np.abs(np.asarray(result.points)[0] * np.asarray(result.masks).shape[::-1] - where[::-1]).max() < 0.5


@few
@hypothesis.given(SIZES, st.tuples(*[FRACTION] * 4), st.tuples(*[st.floats(-0.25, 0.25, width=32)] * 4), FRACTION)
def test_warp_affine(size, corners, linear, shift):
    # The canvas holds all of it: of a turned box that is cut off, the upright one may be larger than what is left.
    matrix = np.float32([[1 + linear[0], linear[1], 40 + 9 * shift], [linear[2], 1 + linear[3], 40]])
    result = painted(size, corners).warp_affine(matrix=matrix, size=[240, 250], fill_value=0, remove_threshold=0.0)
    assert np.asarray(result.masks).shape == (240, 250)
    check(result, 1.01)
    inverse = np.linalg.inv(matrix[:, :2])
    before = inverse @ (np.asarray(result.points)[0] * [250, 240] - matrix[:, 2])
    assert np.abs(before - np.asarray(painted(size, corners).points)[0] * size[::-1]).max() < 1e-2


@few
@hypothesis.given(SIZES, st.tuples(*[FRACTION] * 4), st.integers(0, 1 << 30))
def test_random_crop(size, corners, seed):
    before = painted(size, corners)
    result = before.random_crop(
        scaling=[0.4, 0.9], aspect_ratio=[0.5, 2.0], allow_no_crop=False, rng=ndd.random.RNG(seed)
    )
    check(result, 1.01)
    boxes = np.asarray(result.boxes)
    if len(boxes) and ((boxes > 0.01) & (boxes < 0.99)).all():  # nothing is cut off: the point is the box's middle
        assert np.abs(np.asarray(result.points)[0] - (boxes[0, :2] + boxes[0, 2:]) / 2).max() < 1e-5


@few
@hypothesis.given(SIZES, st.tuples(*[FRACTION] * 4), st.tuples(*[st.floats(0.0, 0.5, width=32)] * 2))
def test_crop_and_resize(size, corners, start):
    cropped = painted(size, corners).crop(start=list(start), shape=[0.5, 0.4], remove_threshold=0.0)
    check(cropped, 1.01)
    assert np.asarray(cropped.images).shape[:2] == np.asarray(cropped.masks).shape
    resized = painted(size, corners).resize(size=[77, 200])
    check(resized, 2.5)  # a pixel of the original is up to 5 wide
    assert np.asarray(resized.masks).shape == (77, 200)


def test_batches_with_numbers_of_their_own_and_what_is_dropped():
    samples = [painted((60, 80), (0.0, 0.1, 0.0, 0.1)), painted((50, 40), (0.5, 0.9, 0.5, 0.9))]
    fields = ("images", "boxes", "labels", "masks", "points")
    both = ndd.Targets(*[ndd.batch([getattr(s, name) for s in samples]) for name in fields])
    flips, angles = ndd.batch([1, 0]), ndd.batch([90.0, -20.0])
    result = both.flip(horizontal=flips).rotate(angle=angles, fill_value=0)
    for i, item in enumerate(samples):
        alone = item.flip(horizontal=1 - i).rotate(angle=(90.0, -20.0)[i], fill_value=0)
        for name in fields:
            np.testing.assert_array_equal(
                np.asarray(getattr(result, name).tensors[i]), np.asarray(getattr(alone, name))
            )
    gone = both.crop(start=[0.5, 0.5], shape=[0.5, 0.5])
    assert [len(np.asarray(b)) for b in gone.boxes.tensors] == [0, 1]
    assert [len(np.asarray(b)) for b in gone.labels.tensors] == [0, 1]
    assert [len(np.asarray(b)) for b in gone.points.tensors] == [1, 1]
    with pytest.raises(TypeError, match="boxes"):
        ndd.Targets(both.images).random_crop()


def test_images_on_a_gpu(emulated_gpu):
    item = painted((40, 50), (0.2, 0.5, 0.2, 0.5))
    there = ndd.Targets(item.images.gpu(), item.boxes, item.labels, item.masks.gpu(), item.points)
    result, expected = (t.rotate(angle=30.0, fill_value=0).flip() for t in (there, item))
    assert result.images.device.device_type == "gpu"
    assert np.abs(np.asarray(result.images.cpu()).astype(int) - np.asarray(expected.images)).max() <= 1
    np.testing.assert_array_equal(np.asarray(result.masks.cpu()), np.asarray(expected.masks))
    np.testing.assert_array_equal(np.asarray(result.boxes), np.asarray(expected.boxes))


def test_operators_say_that_targets_have_methods():
    with pytest.raises(TypeError, match=r"flip: Cannot make a tensor of Targets.*targets\.flip\("):
        ndd.flip(painted((40, 40), (0, 1, 0, 1)))
