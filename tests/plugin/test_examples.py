"""The code of the pages that define this layer, imports changed: on the CPU, and `device="mixed"` on a GPU."""

from __future__ import annotations

import glob
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

import ndd
import ndd.fn as fn
import ndd.plugin.pytorch.experimental.proxy as dali_proxy
import ndd.types as types
from ndd.pipeline import pipeline_def
from ndd.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy
from ndd.plugin.pytorch.torch_utils import to_torch_tensor

PHOTOS = Path(ndd.__file__).parent / "demo" / "photos"
DEVICES = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.fixture
def folder(tmp_path):
    """Ten JPEGs in two classes, as an image folder."""
    photos = sorted(PHOTOS.rglob("*.jp*g"))
    for i in range(10):
        target = tmp_path / f"class{i % 2}" / f"{i}.jpeg"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(photos[i % len(photos)].read_bytes())
    return tmp_path


@pytest.fixture
def images(folder, tmp_path_factory):
    """The same in one flat folder."""
    flat = tmp_path_factory.mktemp("images")
    for path in folder.rglob("*.jpeg"):
        (flat / path.name).write_bytes(path.read_bytes())
    return flat


@pipeline_def
def create_dali_pipeline(data_dir, crop, size, shard_id, num_shards, dali_cpu=False, is_training=True):
    images, labels = fn.readers.file(
        file_root=data_dir,
        shard_id=shard_id,
        num_shards=num_shards,
        random_shuffle=is_training,
        pad_last_batch=True,
        name="Reader",
    )
    decoder_device = "cpu" if dali_cpu else "mixed"
    if is_training:
        images = fn.decoders.image_random_crop(
            images,
            device=decoder_device,
            output_type=types.RGB,
            preallocate_width_hint=0 if dali_cpu else 5980,
            preallocate_height_hint=0 if dali_cpu else 6430,
            random_aspect_ratio=[0.8, 1.25],
            random_area=[0.1, 1.0],
            num_attempts=100,
        )
        images = fn.resize(images, resize_x=crop, resize_y=crop, interp_type=types.INTERP_TRIANGULAR)
        mirror = fn.random.coin_flip(probability=0.5)
    else:
        images = fn.decoders.image(images, device=decoder_device, output_type=types.RGB)
        images = fn.resize(images, size=size, mode="not_smaller", interp_type=types.INTERP_TRIANGULAR)
        mirror = False
    images = fn.crop_mirror_normalize(
        images if dali_cpu else images.gpu(),
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(crop, crop),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=mirror,
    )
    labels = labels if dali_cpu else labels.gpu()
    return images, labels


def pipe_of(folder, device, training):
    return create_dali_pipeline(
        batch_size=4,
        num_threads=2,
        device_id=None if device == "cpu" else 0,
        seed=12,
        data_dir=str(folder),
        crop=32,
        size=40,
        dali_cpu=device == "cpu",
        shard_id=0,
        num_shards=1,
        is_training=training,
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("training", [True, False])
def test_resnet50(folder, device, training):
    batch_size = 4
    pipe = pipe_of(folder, device, training)
    pipe.build()
    loader = DALIClassificationIterator(
        pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    train_loader_len = math.ceil(loader._size / batch_size)
    assert train_loader_len == 3
    for _ in range(2):
        seen = 0
        for i, data in enumerate(loader):
            images = data[0]["data"]
            labels = data[0]["label"].squeeze(-1).long()
            rows = 4 if i < 2 else 2
            assert tuple(images.shape) == (rows, 3, 32, 32)
            assert images.dtype == torch.float32
            assert images.device.type == labels.device.type == ("cpu" if device == "cpu" else "cuda")
            assert tuple(labels.shape) == (rows,)
            seen += len(images)
        assert seen == 10


@pytest.mark.oracle
def test_resnet50_validation_is_dalis(folder):
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.fn as their_fn
    import nvidia.dali.plugin.pytorch as theirs
    import nvidia.dali.types as their_types

    @dali.pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def their_pipe():
        images, labels = their_fn.readers.file(file_root=str(folder), pad_last_batch=True, name="Reader")
        images = their_fn.decoders.image(images, device="cpu", output_type=their_types.RGB)
        images = their_fn.resize(images, size=40, mode="not_smaller", interp_type=their_types.INTERP_TRIANGULAR)
        images = their_fn.crop_mirror_normalize(
            images,
            dtype=their_types.FLOAT,
            output_layout="CHW",
            crop=(32, 32),
            mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
            std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        )
        return images, labels

    arguments = {"reader_name": "Reader", "auto_reset": True}
    ours = DALIClassificationIterator(
        pipe_of(folder, "cpu", False), last_batch_policy=LastBatchPolicy.PARTIAL, **arguments
    )
    reference = theirs.DALIClassificationIterator(
        their_pipe(), last_batch_policy=theirs.LastBatchPolicy.PARTIAL, **arguments
    )
    for _ in range(2):
        steps = 0
        for mine, other in zip(ours, reference, strict=True):
            assert mine[0]["label"].tolist() == other[0]["label"].tolist()
            difference = (mine[0]["data"] - other[0]["data"]).abs() * 0.225 * 255
            assert difference.max() < 1.1
            assert (difference > 0.5).float().mean() < 0.01
            steps += 1
        assert steps == 3


@pytest.mark.parametrize("device", DEVICES)
def test_efficientnet(folder, device):
    pipe = pipe_of(folder, device, True)
    pipe.build()
    with pytest.warns(Warning, match="fill_last_batch"):
        train_loader = DALIClassificationIterator(pipe, reader_name="Reader", fill_last_batch=False)
    for _ in range(2):
        assert [len(d[0]["data"]) for d in train_loader] == [4, 4, 2]
        train_loader.reset()


@pytest.mark.parametrize("device", DEVICES)
def test_video_like_generic_iterator(device):
    frames = np.arange(2 * 3 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 4, 3)

    @pipeline_def(batch_size=2, num_threads=2, device_id=None if device == "cpu" else 0)
    def sequences():
        clip = fn.external_source(source=[frames], cycle="raise", layout="FHWC")
        return clip if device == "cpu" else clip.gpu()

    loader = DALIGenericIterator(sequences(), ["data"], auto_reset=True)
    for _ in range(2):
        (batch,) = loader
        assert batch[0]["data"].cpu().numpy().tolist() == frames.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_decode_zoo(images, device):
    @pipeline_def(batch_size=4, num_threads=4, device_id=None if device == "cpu" else 0, exec_dynamic=True)
    def decode_pipeline(source_name):
        inputs = fn.external_source(device="cpu", name=source_name, no_copy=False, blocking=True, dtype=types.UINT8)
        decoded = fn.decoders.image(
            inputs,
            device="cpu" if device == "cpu" else "mixed",
            output_type=types.RGB,
            jpeg_fancy_upsampling=True,
        )
        return decoded

    pipe = decode_pipeline("encoded_img", prefetch_queue_depth=1)
    pipe.build()
    kept = []
    for file_name in sorted(Path(images).iterdir()):
        encoded = np.expand_dims(np.fromfile(file_name, dtype=np.uint8), axis=0)
        decoded = pipe.run(encoded_img=encoded)
        img = to_torch_tensor(decoded[0][0], copy=False)
        assert img.device.type == ("cpu" if device == "cpu" else "cuda")
        assert img.ndim == 3
        assert img.data_ptr() == decoded[0][0].data_ptr()
        kept.append((img, img.clone()))
    assert all(torch.equal(a, b) for a, b in kept)
    assert len(kept) == 10


class ImageDataset(Dataset):
    def __init__(self, images_dir, transform=None):
        self.images_dir = images_dir
        self.transform = transform
        self.image_ids = sorted(glob.glob("*.jpeg", root_dir=images_dir))

    def __len__(self):
        return len(self.image_ids)

    def __getitem__(self, idx):
        image_path = Path(self.images_dir) / self.image_ids[idx]
        encoded_img = np.expand_dims(np.fromfile(image_path, dtype=np.uint8), axis=0)
        if self.transform is not None:
            return self.transform(encoded_img)
        return encoded_img


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.drawn(1)
def test_decode_and_transform(images, device):
    @pipeline_def
    def image_pipe(img_hw=(320, 200)):
        encoded_images = fn.external_source(name="images", no_copy=True)
        decoded = fn.decoders.image(encoded_images, device="cpu" if device == "cpu" else "mixed", output_type=types.RGB)
        return fn.resize(decoded, size=img_hw, interp_type=types.INTERP_LINEAR)

    device_id = None if device == "cpu" else 0
    with dali_proxy.DALIServer(image_pipe(batch_size=4, num_threads=4, device_id=device_id)) as dali_server:
        dataset = ImageDataset(str(images), transform=dali_server.proxy)
        dataloader = dali_proxy.DataLoader(dali_server, dataset, batch_size=4, num_workers=2, drop_last=True)
        batches = list(dataloader)
    assert [tuple(b.shape) for b in batches] == [(4, 320, 200, 3)] * 2
    assert {b.device.type for b in batches} == {"cpu" if device == "cpu" else "cuda"}
    assert {b.dtype for b in batches} == {torch.uint8}
