"""The input of DALI's SSD example with the import changed: in pipeline mode as DALI where nothing is random beside the crop,
in a loop as DALI's dynamic mode with all its random numbers, and on a GPU."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ndd

Image = pytest.importorskip("PIL.Image")
SIZES = ((60, 80), (90, 50), (70, 70), (64, 100))


@pytest.fixture
def source(tmp_path):
    """Smooth pictures with boxes, as a COCO file."""
    images, things = [], []
    rng = np.random.default_rng(12)
    for i, (height, width) in enumerate(SIZES):
        y, x = np.mgrid[:height, :width]
        Image.fromarray(np.stack([x * 2, y * 2, x + y], axis=2).astype(np.uint8)).save(
            tmp_path / f"{i}.jpg", quality=95
        )
        images.append({"id": i, "file_name": f"{i}.jpg", "height": height, "width": width})
        for _ in range(i):
            box = [*(rng.random(2) * 20), *(10 + rng.random(2) * 20)]
            things.append({"id": len(things), "image_id": i, "category_id": 1 + i % 2, "bbox": box})
    result = {"images": images, "annotations": things, "categories": [{"id": 1}, {"id": 2}]}
    (tmp_path / "instances.json").write_text(json.dumps(result))
    return {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "instances.json")}


def outputs(package, fn, source):
    anchors = np.sort(np.random.default_rng(13).random((60, 2, 2)), axis=1).reshape(-1).astype(np.float32).tolist()

    @package.pipeline_def(batch_size=len(SIZES), num_threads=2, device_id=None, seed=14)
    def ssd():
        inputs, bboxes, labels = fn.readers.coco(**source, skip_empty=False, ratio=True, ltrb=True, name="Reader")
        crop_begin, crop_size, bboxes, labels = fn.random_bbox_crop(
            bboxes,
            labels,
            device="cpu",
            aspect_ratio=[1.0, 1.0],
            thresholds=[0.0],
            scaling=[1.0, 1.0],
            bbox_layout="xyXY",
            allow_no_crop=True,
            num_attempts=50,
        )
        images = fn.decoders.image_slice(inputs, crop_begin, crop_size, device="cpu", output_type=package.types.RGB)
        images = fn.resize(images, resize_x=48, resize_y=48, min_filter=package.types.DALIInterpType.INTERP_TRIANGULAR)
        bboxes = fn.bb_flip(bboxes, ltrb=True, horizontal=1)
        images = fn.crop_mirror_normalize(
            images,
            crop=(48, 48),
            mean=[128.0] * 3,
            std=[64.0] * 3,
            mirror=1,
            dtype=package.types.FLOAT,
            output_layout="CHW",
        )
        bboxes, labels = fn.box_encoder(
            bboxes, labels, criteria=0.5, anchors=anchors, offset=True, stds=[0.1, 0.1, 0.2, 0.2], scale=300
        )
        return images, bboxes, labels

    pipe = ssd()
    pipe.build()
    return [[np.asarray(out.at(i)) for i in range(len(SIZES))] for out in pipe.run()]


@pytest.mark.oracle
def test_the_input_of_ssd(dali, source):
    import nvidia.dali
    import nvidia.dali.fn
    import nvidia.dali.types

    result, expected = outputs(ndd, ndd.fn, source), outputs(nvidia.dali, nvidia.dali.fn, source)
    for i in range(len(SIZES)):
        assert np.abs(result[0][i] - expected[0][i]).mean() < 0.02
        np.testing.assert_allclose(result[1][i], expected[1][i], atol=2e-4)
        np.testing.assert_array_equal(result[2][i], expected[2][i])
    assert any((labels > 0).any() for labels in result[2])


def ssd_loop(m, types, source, device="cpu", dtype=None):
    """An epoch of SSD's training input in dynamic mode; every random number comes from one generator."""
    anchors = np.sort(np.random.default_rng(13).random((60, 2, 2)), axis=1).reshape(-1).astype(np.float32).tolist()
    reader = m.readers.COCO(**source, ratio=True, ltrb=True, skip_empty=True)
    rng = m.random.RNG(21)
    for inputs, boxes, labels in reader.next_epoch(batch_size=2):
        n = inputs.batch_size

        def draw(low, high, n=n):
            return m.random.uniform(range=[low, high], batch_size=n, rng=rng)

        begin, extent, boxes, labels = m.random_bbox_crop(
            boxes,
            labels,
            aspect_ratio=[0.5, 2.0],
            thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
            scaling=[0.3, 1.0],
            bbox_layout="xyXY",
            allow_no_crop=True,
            num_attempts=50,
            rng=rng,
        )
        images = m.decoders.image(inputs, device=device)
        images = m.slice(images, begin, extent, axis_names="WH")
        images = m.resize(images, resize_x=48, resize_y=48, min_filter=types.DALIInterpType.INTERP_TRIANGULAR)
        images = m.hsv(images, dtype=m.float32, hue=draw(-0.5, 0.5), saturation=draw(0.5, 1.5))
        images = m.brightness_contrast(
            images, contrast_center=128, dtype=m.uint8, brightness=draw(0.875, 1.125), contrast=draw(0.5, 1.5)
        )
        mirror = m.random.coin_flip(probability=0.5, batch_size=n, rng=rng)
        boxes = m.bb_flip(boxes, ltrb=True, horizontal=mirror)
        images = m.crop_mirror_normalize(
            images,
            crop=(48, 48),
            mean=[128.0] * 3,
            std=[64.0] * 3,
            mirror=mirror,
            dtype=dtype or m.float32,
            output_layout="CHW",
        )
        boxes, labels = m.box_encoder(boxes, labels, criteria=0.5, anchors=anchors)
        yield images, boxes, labels


@pytest.mark.oracle
def test_the_loop_of_ssd_is_dalis(dali, source):
    from nvidia.dali import types

    steps = 0
    for result, expected in zip(ssd_loop(ndd, ndd.types, source), ssd_loop(dali, types, source), strict=True):
        for mine, theirs in zip(
            *[[np.stack([np.asarray(t) for t in v.tensors]) for v in x] for x in (result, expected)], strict=True
        ):
            assert mine.shape == theirs.shape
            apart = np.abs(mine.astype(np.float64) - theirs)
            if mine.ndim == 4:
                assert apart.mean() < 0.02  # of a JPEG decoder's last bits
            else:
                assert apart.max() < 1e-5
        steps += 1
    assert steps == 2  # the first picture has no boxes


def test_the_loop_of_ssd_on_a_gpu(emulated_gpu, source):
    wanted = list(ssd_loop(ndd, ndd.types, source, dtype=ndd.float16))
    result = list(ssd_loop(ndd, ndd.types, source, "gpu", ndd.float16))
    for (images, boxes, labels), (own, own_boxes, own_labels) in zip(result, wanted, strict=True):
        assert images.device.device_type == "gpu"
        assert images.dtype == ndd.float16
        apart = np.abs(images.cpu().numpy().astype(np.float32) - own.numpy().astype(np.float32))
        assert apart.mean() < 0.05
        assert (boxes.cpu().numpy() == own_boxes.numpy()).all()
        assert (labels.cpu().numpy() == own_labels.numpy()).all()
