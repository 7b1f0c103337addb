"""Pipelines over containers in the form that DALI's examples have, run with the imports of both packages."""

import importlib

import numpy as np
import pytest
from encoded import FOLDER

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the shared data"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class Imports:
    """What an example imports, of one package."""

    def __init__(self, package):
        self.pipeline_def = importlib.import_module("nvidia.dali" if package == "dali" else "ndd").pipeline_def
        self.fn, self.types, self.tfrec = (
            importlib.import_module(f"nvidia.dali.{name}" if package == "dali" else f"ndd.{name}")
            for name in ("fn", "types", "tfrecord")
        )


def augmented(m, encoded, labels):
    images = m.fn.decoders.image(encoded, device="cpu", output_type=m.types.RGB)
    images = m.fn.resize(images, resize_shorter=256.0)
    output = m.fn.crop_mirror_normalize(
        images,
        dtype=m.types.FLOAT,
        crop=(224, 224),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[58.0, 57.0, 57.0],
    )
    return output, labels


def mxnet(m, data):
    files = {"path": [str(data / "recordio/train.rec")], "index_path": [str(data / "recordio/train.idx")]}
    return augmented(m, *m.fn.readers.mxnet(**files, shard_id=1, num_shards=2, name="Reader"))


def caffe(m, data):
    folders = [str(data / "lmdb/caffe"), str(data / "lmdb/caffe_part2")]
    return augmented(m, *m.fn.readers.caffe(path=folders, shard_id=0, num_shards=2, stick_to_shard=True, name="Reader"))


def caffe2(m, data):
    return augmented(m, *m.fn.readers.caffe2(path=str(data / "lmdb/caffe2"), label_type=0, name="Reader"))


def tfrecord(m, data):
    names = [str(data / f"tfrecord/train-0000{k}-of-00002") for k in range(2)]
    features = {
        "image/encoded": m.tfrec.FixedLenFeature((), m.tfrec.string, ""),
        "image/class/label": m.tfrec.FixedLenFeature([1], m.tfrec.int64, -1),
        "image/class/text": m.tfrec.FixedLenFeature([], m.tfrec.string, ""),
    }
    inputs = m.fn.readers.tfrecord(
        path=names, index_path=[f"{name}.idx" for name in names], features=features, name="Reader"
    )
    images = m.fn.decoders.image(inputs["image/encoded"], device="cpu", output_type=m.types.RGB)
    resized = m.fn.resize(images, device="cpu", resize_shorter=256.0)
    output = m.fn.crop_mirror_normalize(
        resized, dtype=m.types.FLOAT, crop=(224, 224), mean=[0.0, 0, 0], std=[1.0, 1, 1]
    )
    return output, inputs["image/class/text"], inputs["image/class/label"]


def webdataset(m, data):
    tars = [str(data / f"webdataset/shard-00000{k}.tar") for k in range(2)]
    image, label = m.fn.readers.webdataset(
        paths=tars,
        index_paths=[tar.replace(".tar", ".idx") for tar in tars],
        ext=["jpg", "cls"],
        missing_component_behavior="error",
        name="Reader",
    )
    return augmented(m, image, label)


def coco(m, data):
    inputs, boxes, labels, polygons, vertices = m.fn.readers.coco(
        file_root=str(data / "coco/images"),
        annotations_file=str(data / "coco/instances.json"),
        skip_empty=True,
        polygon_masks=True,
        ratio=True,
        ltrb=True,
        name="Reader",
    )
    return m.fn.decoders.image(inputs), boxes, labels, polygons, vertices


@pytest.mark.parametrize("example", [mxnet, caffe, caffe2, tfrecord, webdataset, coco], ids=lambda f: f.__name__)
@pytest.mark.drawn(1)
def test_example(example):
    pytest.importorskip("nvidia.dali")
    data, result = FOLDER.parent, []
    for package in ("dali", "ndd"):
        imports = Imports(package)

        @imports.pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def body(imports=imports):
            return example(imports, data)

        pipe = body()
        pipe.build()
        runs = [[[np.array(sample) for sample in output] for output in pipe.run()] for _ in range(2)]
        result.append((pipe.reader_meta("Reader"), runs))
    (meta, expected), (own_meta, own) = result
    assert own_meta == meta
    for theirs, ours in zip(expected, own, strict=True):
        for column, own_column in zip(theirs, ours, strict=True):
            for sample, own_sample in zip(column, own_column, strict=True):
                assert own_sample.dtype == sample.dtype
                assert own_sample.shape == sample.shape
                difference = np.abs(own_sample.astype(np.float64) - sample)
                # Pixels may differ by one after decoding and resizing, few of them do.
                assert difference.mean() < 0.01 if sample.ndim == 3 else difference.max(initial=0) < 1e-6
