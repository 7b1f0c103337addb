"""The input of DALI's SSD example, as it is written for pipeline mode, with the import changed: as DALI where nothing is random
beside the crop."""

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
    found = {"images": images, "annotations": things, "categories": [{"id": 1}, {"id": 2}]}
    (tmp_path / "instances.json").write_text(json.dumps(found))
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

    found, expected = outputs(ndd, ndd.fn, source), outputs(nvidia.dali, nvidia.dali.fn, source)
    for i in range(len(SIZES)):
        assert np.abs(found[0][i] - expected[0][i]).mean() < 0.02
        np.testing.assert_allclose(found[1][i], expected[1][i], atol=2e-4)
        np.testing.assert_array_equal(found[2][i], expected[2][i])
    assert any((labels > 0).any() for labels in found[2])
