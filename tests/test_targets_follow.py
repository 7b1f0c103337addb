"""Whatever a method of Targets is told, pixels, masks, boxes and points go the same way: generated calls, every layout, every type
of ids. Spots of known colour and id are painted around points; afterwards they are where the points and boxes say."""

from __future__ import annotations

import numpy as np
import pytest
from selection import drawn

import ndd

_HALF = 5  # of a spot, which is 11 x 11 pixels
_IDS = {
    "uint8": 200,
    "int32": 2**24 + 1,
    "int64": 2**40 + 1,
    "uint64": 2**64 - 9,
    "bool": 1,
    "int16": -300,
    "float64": 1 / 3,
}


class Scene:
    """An image with three spots, in the layouts and with the type of ids that are asked for."""

    def __init__(self, rng, layout, mask_layout, dtype):
        self.layout, self.mask_layout = layout, mask_layout
        self.size = height, width = rng.integers(60, 90, 2).tolist()
        self.middles = np.array(
            [[width // 4, height // 4], [3 * width // 4, height // 3], [width // 3, 3 * height // 4]]
        )
        kind = np.dtype(dtype)
        self.ids = np.array([_IDS[dtype] - (i if kind.itemsize > 1 else 10 * i) for i in range(3)]).astype(kind)
        if dtype == "bool":
            self.ids[:] = True
        image, planes = np.zeros((height, width, 3), np.uint8), np.zeros((3, height, width), kind)
        for i, (x, y) in enumerate(self.middles):
            spot = np.s_[y - _HALF : y + _HALF + 1, x - _HALF : x + _HALF + 1]
            image[spot] = (i == 0, i == 1, i == 2)
            planes[i][spot] = self.ids[i]
        image *= 240
        mask = planes if mask_layout == "NHW" else planes.sum(0, dtype=kind)
        pixels = {"HWC": image, "CHW": image.transpose(2, 0, 1), "HW": image.max(2)}[layout]
        points = (self.middles + 0.5) / [width, height]
        half = np.array([_HALF + 0.5, _HALF + 0.5]) / [width, height]
        self.targets = ndd.Targets(
            ndd.tensor(np.ascontiguousarray(pixels), layout=layout),
            ndd.tensor(np.float32(np.concatenate([points - half, points + half], axis=1))),
            ndd.tensor(np.arange(3, dtype=np.int32)),
            ndd.tensor(mask[..., None] if mask_layout == "HW1" else mask),
            ndd.tensor(np.float32(points)),
        )


def check(scene, after):
    """What is at each point, and within each box, is the spot that was there before."""
    image, boxes, labels, points = (np.asarray(v) for v in (after.images, after.boxes, after.labels, after.points))
    mask = np.asarray(after.masks)
    assert mask.dtype == scene.ids.dtype
    pixels = {
        "HWC": image,
        "CHW": image.swapaxes(0, 1).swapaxes(1, 2) if image.ndim == 3 else image,
        "HW": image[..., None],
    }[scene.layout]
    height, width = pixels.shape[:2]
    per_object = scene.mask_layout == "NHW"
    assert (
        mask.shape
        == {"NHW": (len(boxes), height, width), "HW1": (height, width, 1), "HW": (height, width)}[scene.mask_layout]
    )
    if not per_object:
        mask = mask.reshape(height, width)
    assert set(np.unique(mask).tolist()) <= {0, *scene.ids.tolist()}
    assert len(labels) == len(boxes)
    seen = 0
    for i, (x, y) in enumerate(points * [width, height]):
        rows = np.flatnonzero(labels == i)
        column, row = int(np.floor(x)), int(np.floor(y))
        if not (2 < x < width - 2 and 2 < y < height - 2):
            continue
        seen += 1
        assert len(rows) == 1, "a box whose middle is inside is kept"
        own = mask[rows[0]] if per_object else mask
        assert own[row, column] == scene.ids[i], (i, x, y)
        colour = pixels[row, column].astype(int)
        assert colour[0] > 150 if scene.layout == "HW" else (colour[i] > 150 and colour.sum() - colour[i] < 90), (
            i,
            colour,
        )
        box = boxes[rows[0]] * [width, height, width, height]
        if scene.ids.dtype == bool and not per_object:
            continue  # the spots have one id
        found_y, found_x = np.nonzero(own == scene.ids[i])
        drawn = np.array([found_x.min(), found_y.min(), found_x.max() + 1, found_y.max() + 1])
        whole = (box[:2] > 0.5).all() and (box[2:] < [width - 0.5, height - 0.5]).all()
        if whole:
            assert np.abs(drawn - box).max() <= 1.01, (i, drawn, box)
    return seen


def _numbers(rng, low, high):
    return rng.uniform(low, high, 2).round(3).tolist()


def generated_resize(rng, size):
    height, width = size
    how = {}
    way = rng.integers(5)
    if way == 0:
        how["size"] = [
            float(rng.integers(40, 120)) * rng.choice([-1, 1]),
            float(rng.integers(40, 120)) * rng.choice([-1, 1]),
        ]
    elif way == 1:
        how["resize_x"] = float(rng.integers(40, 120)) * rng.choice([-1, 1])
    elif way == 2:
        how["resize_y"] = float(rng.integers(40, 120)) * rng.choice([-1, 1])
    elif way == 3:
        how["resize_shorter"] = float(rng.integers(40, 120))
    else:
        how["resize_longer"] = float(rng.integers(40, 120))
        how["max_size"] = 100
    if way < 3 and rng.integers(2):
        how["mode"] = str(rng.choice(["default", "stretch", "not_larger", "not_smaller"]))
    if rng.integers(2):
        start, end = rng.uniform(-0.1, 0.3, 2), rng.uniform(0.7, 1.1, 2)
        if rng.integers(3) == 0:
            start[0], end[0] = end[0], start[0]  # mirrored
        relative = bool(rng.integers(2))
        factor = 1 if relative else np.array([height, width])
        how |= {"roi_start": (start * factor).tolist(), "roi_end": (end * factor).tolist(), "roi_relative": relative}
    how["subpixel_scale"] = bool(rng.integers(2))
    name = str(rng.choice(["interp_type", "min_filter", "mag_filter"]))
    how[name] = rng.choice([ndd.types.INTERP_LINEAR, ndd.types.INTERP_CUBIC, ndd.types.INTERP_NN])
    if rng.integers(3) == 0:
        how["dtype"] = ndd.float32
    return how


def generated_rotate(rng, size):
    how = {"angle": float(rng.uniform(-200, 200)), "fill_value": 0}
    way = rng.integers(3)
    if way == 1:
        how["keep_size"] = True
    elif way == 2:
        how["size"] = [int(rng.integers(60, 110)), int(rng.integers(60, 110))]
    if rng.integers(3) == 0:
        how["dtype"] = ndd.float32
    return how


def generated_warp(rng, size):
    linear = np.eye(2) + rng.uniform(-0.3, 0.3, (2, 2))
    shift = rng.uniform(-10, 20, 2)
    how = {"matrix": np.float32(np.concatenate([linear, shift[:, None]], axis=1)), "inverse_map": bool(rng.integers(2))}
    if rng.integers(2):
        how["size"] = [int(rng.integers(60, 110)), int(rng.integers(60, 110))]
    how["fill_value"] = float(rng.integers(2))
    return how


METHODS = {
    "flip": lambda rng, size: {"horizontal": int(rng.integers(2)), "vertical": int(rng.integers(2))},
    "crop": lambda rng, size: {"start": _numbers(rng, 0, 0.3), "shape": _numbers(rng, 0.4, 0.7)},
    "random_crop": lambda rng, size: {
        "scaling": [0.5, 0.9], "aspect_ratio": [0.6, 1.6], "allow_no_crop": False, "rng": ndd.random.RNG(int(rng.integers(99))),
        "bbox_prune_threshold": 0.2,
    },
    "resize": generated_resize,
    "rotate": generated_rotate,
    "warp_affine": generated_warp,
}  # fmt: skip


@pytest.mark.parametrize("layout", ["HWC", "CHW", "HW"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.drawn(1)
def test_everything_goes_where_the_pixels_go(method, layout):
    rng = np.random.default_rng(len(method) * 7 + len(layout) * 3 + (layout == "CHW"))
    seen, kinds = 0, drawn(_IDS, 2, method, layout)
    for dtype in kinds:
        for mask_layout in ("HW", "NHW", "HW1"):
            scene = Scene(rng, layout, mask_layout, dtype)
            how = METHODS[method](rng, scene.size)
            try:
                seen += check(scene, getattr(scene.targets, method)(**how))
            except Exception as error:
                error.add_note(f"{method}({how}) of {scene.size}, masks {mask_layout} {dtype}")
                raise
    assert seen >= 3 * len(kinds), "a third of the spots stay inside at least"


def test_a_batch_with_numbers_of_its_own():
    rng = np.random.default_rng(5)
    scenes = [Scene(rng, "HWC", "NHW", "int64") for _ in range(3)]
    names = ("images", "boxes", "labels", "masks", "points")
    together = ndd.Targets(*[ndd.batch([getattr(s.targets, name) for s in scenes]) for name in names])
    how = {
        "size": np.float32([[60, -70], [-50, 50], [90, 80]]),
        "roi_start": np.float32([[0, 0], [0.1, 1], [0.2, 0]]),
        "roi_end": np.float32([[1, 1], [0.9, 0.1], [1, 0.8]]),
    }
    after = together.resize(**{k: ndd.batch(v) for k, v in how.items()}, roi_relative=True)
    for i, scene in enumerate(scenes):
        alone = scene.targets.resize(**{k: v[i] for k, v in how.items()}, roi_relative=True)
        assert check(scene, alone) == 3
        for name in names:
            np.testing.assert_array_equal(np.asarray(getattr(after, name).tensors[i]), np.asarray(getattr(alone, name)))


def test_masks_of_objects_leave_with_their_boxes():
    image = np.zeros((40, 60, 3), np.uint8)
    boxes = np.float32([[0, 0, 0.1, 0.1], [0.5, 0.5, 0.9, 0.9], [0.7, 0.7, 0.8, 0.8]])
    masks = np.zeros((3, 40, 60), bool)
    masks[1], masks[2, 30] = True, True
    window = {"start": [0.4, 0.4], "shape": [0.6, 0.6]}
    left = ndd.Targets(image, boxes, np.array([7, 8, 2**40]), masks).crop(**window)
    assert left.labels.torch().tolist() == [8, 2**40]
    assert left.masks.layout == "NHW"
    np.testing.assert_array_equal(left.masks.numpy(), masks[1:, 16:, 24:])
    turned = left.rotate(angle=90)
    np.testing.assert_array_equal(turned.masks.numpy(), np.rot90(masks[1:, 16:, 24:], axes=(1, 2)))
    assert turned.images.shape[:2] == turned.masks.shape[1:]
    for of_the_image in (ndd.tensor(masks, layout="CHW"), ndd.tensor(masks[:2])):
        kept = ndd.Targets(image, boxes, masks=of_the_image).crop(**window)
        assert kept.masks.shape == (of_the_image.shape[0], 24, 36)
    with pytest.raises(RuntimeError, match="Targets: sample 0: labels: expected 3, one for each box, got 2"):
        ndd.Targets(image, boxes, np.array([1, 2])).crop(**window).labels.torch()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_any_number_of_objects(count):
    masks = np.random.default_rng(count).integers(0, 2**62, (count, 20, 30))
    before = ndd.Targets(np.zeros((20, 30, 3), np.uint8), masks=masks)
    np.testing.assert_array_equal(before.flip().masks.numpy(), masks[:, :, ::-1])
    np.testing.assert_array_equal(before.rotate(angle=180).masks.numpy(), masks[:, ::-1, ::-1])
    np.testing.assert_array_equal(before.resize(size=[-20, -30]).masks.numpy(), masks[:, ::-1, ::-1])
    np.testing.assert_array_equal(before.crop(start=[0.5, 0], shape=[0.5, 0.5]).masks.numpy(), masks[:, :10, 15:])


IMAGE = np.zeros((40, 60, 3), np.uint8)
BOXES = np.float32([[0.1, 0.1, 0.5, 0.5]])


@pytest.mark.parametrize(
    "masks", [np.zeros((20, 60)), np.zeros((60, 40, 1)), np.zeros((3, 60, 40)), np.zeros((1, 40, 60, 1))]
)
def test_masks_that_are_not_as_large_as_their_image_are_refused(masks):
    with pytest.raises(ValueError, match=r"Targets: .*masks: expected"):
        ndd.Targets(IMAGE, masks=masks)
    with pytest.raises(ValueError, match=r"Targets: .*masks: expected"):  # before it is known how large the image is
        ndd.Targets(ndd.resize(IMAGE, size=[40, 60]), masks=masks).flip().masks.torch()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: t.resize(size=[9, 9], save_attrs=True), TypeError, "Targets.resize: does not take `save_attrs`"),
        (lambda t: t.resize(size=[9, 9], batch_size=2), TypeError, "Targets.resize: does not take `batch_size`"),
        (lambda t: t.random_crop(crop_shape=[9, 9]), TypeError, "does not take `crop_shape`: boxes are left, top"),
        (lambda t: t.crop(start=[0, 0], shape=[0, 0.5]).boxes.torch(), RuntimeError, "cannot follow into a window"),
        (
            lambda t: t.rotate(angle=5, size=[0, 9]).boxes.torch(),
            RuntimeError,
            "cannot follow to an image without pixels",
        ),
        (
            lambda t: t.warp_affine(matrix=np.zeros((2, 3), np.float32), inverse_map=True).boxes.torch(),
            RuntimeError,
            "cannot follow a `matrix` that has no inverse",
        ),
    ],
)
def test_what_cannot_follow_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(ndd.Targets(IMAGE, BOXES))


def test_images_that_are_none_are_refused():
    for value in (ndd.tensor(IMAGE[None], layout="DHWC"), np.zeros(9, np.uint8)):
        with pytest.raises(ValueError, match="Targets: images: expected pixels, HWC, CHW or HW"):
            ndd.Targets(value)


def test_boxes_without_an_area_stay_in_a_plain_resize():
    boxes = np.float32([[0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1]])
    np.testing.assert_array_equal(ndd.Targets(IMAGE, boxes).resize(size=[9, 9]).boxes.numpy(), boxes)


def test_video_moves_as_one_image():
    frames = np.random.default_rng(1).integers(0, 255, (3, 20, 30, 3), np.uint8)
    ids = frames[..., 0].astype(np.int64) << 40
    upside = np.s_[:, ::-1, ::-1]
    for layout, order in (("FHWC", (0, 1, 2, 3)), ("FCHW", (0, 3, 1, 2))):
        before = ndd.Targets(ndd.tensor(np.ascontiguousarray(frames.transpose(order)), layout=layout), masks=ids)
        for after in (before.rotate(angle=180), before.flip(vertical=1), before.resize(size=[-20, -30])):
            np.testing.assert_array_equal(after.images.numpy(), frames[upside].transpose(order))
            np.testing.assert_array_equal(after.masks.numpy(), ids[upside])


def test_on_a_gpu(emulated_gpu):
    scene = Scene(np.random.default_rng(3), "CHW", "NHW", "int64")
    there = ndd.Targets(
        scene.targets.images.gpu(), scene.targets.boxes, scene.targets.labels, scene.targets.masks.gpu()
    )
    window = {"start": [0.4, 0.0], "shape": [0.6, 1.0]}
    for after, expected in zip(
        *[[t.crop(**window), t.rotate(angle=20.0, fill_value=0)] for t in (there, scene.targets)], strict=True
    ):
        assert after.masks.device.device_type == "gpu"
        np.testing.assert_array_equal(np.asarray(after.masks.cpu()), np.asarray(expected.masks))
        np.testing.assert_array_equal(np.asarray(after.boxes), np.asarray(expected.boxes))
        assert np.abs(np.asarray(after.images.cpu()).astype(int) - np.asarray(expected.images)).max() <= 1
