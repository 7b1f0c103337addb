"""The habits of DALI's notebooks around the operators: one sample without a batch, NumPy and pictures in between, a network
behind a graph of nodes, pipelines whose source runs in workers. Here in our words, on data of ours."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from readers.datasets import tensor, write_lmdb
from videos import numbers_of, write

import ndd

PHOTOS = Path(ndd.demo.photos())
FILES = sorted(str(path) for path in PHOTOS.glob("*/*.jpg"))[:6]


def test_one_sample_of_a_reader_and_arithmetic_on_its_parts(tmp_path):
    """A call of a reader gives a sample: alone if it has one output. Its parts go through NumPy's functions."""
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.float32([[3, 4], [6, 8 + i]]))
    pair = ndd.readers.Numpy(file_root=str(tmp_path), file_filter="*.npy")()
    assert isinstance(pair, ndd.Tensor)
    row = pair[1]
    assert np.sqrt(np.square(row[0]) + np.square(row[1])) == 10
    assert np.arctan2(-row[0], -row[1]) == pytest.approx(np.arctan2(-6, -8))
    file, label = ndd.readers.File(files=FILES)()
    image = ndd.decoders.image(file)
    assert (image.ndim, label.shape, label.item()) == (3, (1,), 0)
    assert np.asarray(image.cpu()).max() > 0


def test_one_sample_goes_through_a_matrix_in_memory():
    """A matrix as the second input, as an argument, and with the size of the image."""
    image = ndd.imread(FILES[0])
    matrix = np.float32([[1.2, -0.2, 3], [-0.3, 1.05, 8]])
    second = ndd.warp_affine(image, ndd.as_tensor(matrix), size=(50, 60))
    named = ndd.warp_affine(image, matrix=ndd.as_tensor(matrix), size=(50, 60))
    np.testing.assert_array_equal(second, named)
    assert second.shape == (50, 60, 3)
    assert ndd.warp_affine(image, ndd.as_tensor(matrix)).shape == image.shape


@pytest.mark.parametrize("saturation", [0, 1])
def test_a_coin_decides_about_colours(saturation):
    """A drawn number becomes an argument by a cast; 0 makes a picture grey, 1 leaves it."""
    image = ndd.imread(FILES[0])
    coin = ndd.cast(ndd.random.coin_flip(probability=float(saturation)), dtype=ndd.types.FLOAT)
    result = np.asarray(ndd.hsv(image, saturation=coin)).astype(int)
    if saturation:
        assert abs(result - np.asarray(image)).max() <= 1
    else:
        assert np.ptp(result, axis=2).max() <= 1


def test_text_beside_pictures(tmp_path):
    """Bytes of a name, one sample after the other, beside the pixels."""
    names = [Path(file).stem for file in FILES]
    texts = ndd.batch([np.frombuffer(name.encode(), np.uint8) for name in names])
    images = ndd.crop_mirror_normalize(ndd.resize(ndd.imread(FILES), resize_shorter=40), crop=(32, 32))
    seen = {}
    for image, text in zip(images.tensors, texts.tensors, strict=True):
        pixels = np.transpose(np.asarray(image.cpu()), (1, 2, 0))
        seen["".join(chr(byte) for byte in np.asarray(text))] = pixels.shape
    assert seen == dict.fromkeys(names, (32, 32, 3))


def test_the_frames_of_a_clip_one_by_one(tmp_path):
    reader = ndd.readers.Video(filenames=[str(write(tmp_path / "a.mp4", 9))], sequence_length=3, step=3, seed=3)
    for i, (clips,) in enumerate(reader.next_epoch(batch_size=1)):
        together = ndd.as_tensor(clips)
        assert together.shape[:2] == (1, 3)
        frames = clips.select(0).cpu()
        assert numbers_of(frames) == [3 * i, 3 * i + 1, 3 * i + 2]
        np.testing.assert_array_equal(frames[1], np.asarray(frames)[1])
        assert np.asarray(frames[0]).shape == together.shape[2:]


def test_a_network_learns_behind_a_graph_of_nodes(tmp_path):
    """Greys of pictures from an LMDB, mapped, read ahead; a linear layer tells dark from bright. Each epoch has every record."""
    pytest.importorskip("lmdb")
    tn = pytest.importorskip("torchdata.nodes")
    rng = np.random.default_rng(1)
    records = []
    for i in range(24):
        jpeg = encoded(rng.integers(0, 60, (12, 12)) + 150 * (i % 2))
        records.append(tensor(4, [1], texts=[jpeg]) + tensor(2, [1], integers=[i % 2]))
    path = write_lmdb(tmp_path / "lmdb", records)

    def gray(jpegs):
        images = ndd.decoders.image(jpegs, output_type=ndd.types.GRAY)
        return ndd.crop_mirror_normalize(images, output_layout="CHW", mean=[127.5], std=[127.5])

    reader = ndd.pytorch.nodes.Reader(ndd.readers.Caffe2, batch_size=6, path=Path(path), random_shuffle=True)
    mapped = ndd.pytorch.nodes.DictMapper(source=reader, map_fn=gray)
    loader = tn.Loader(tn.Prefetcher(ndd.pytorch.nodes.ToTorch(mapped), prefetch_factor=2))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(4):
        right = total = 0
        for images, labels in loader:
            labels = labels.squeeze(-1).long()
            output = model(images)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(output, labels).backward()
            optimizer.step()
            right += (output.argmax(1) == labels).sum().item()
            total += len(labels)
        assert total == 24
    assert right == 24


def encoded(gray):
    """A JPEG of a grey picture."""
    buffer = io.BytesIO()
    Image.fromarray(gray.astype(np.uint8)).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


class FileOfIndex:
    """A source that knows the number of a sample: a worker can make any."""

    def __call__(self, info):
        if info.idx_in_epoch >= len(FILES):
            raise StopIteration
        return np.fromfile(FILES[info.idx_in_epoch], np.uint8), np.int32([info.idx_in_epoch])


def test_a_source_in_workers_gives_the_same():
    """The same pictures from an iterator, from calls, and from workers that are started before the pipelines are built."""

    def batches():
        while True:
            yield [np.fromfile(file, np.uint8) for file in FILES[:3]], [np.int32([i]) for i in range(3)]

    def pipeline(source, **how):
        @ndd.pipeline_def(batch_size=3, num_threads=1, device_id=None, py_num_workers=2)
        def body():
            jpegs, labels = ndd.fn.external_source(source=source, num_outputs=2, **how)
            return ndd.fn.brightness_contrast(ndd.fn.decoders.image(jpegs), contrast=2), labels

        return body()

    pipes = [
        pipeline(batches()),
        pipeline(FileOfIndex(), batch=False),
        pipeline(FileOfIndex(), batch=False, parallel=True),
    ]
    for pipe in pipes:
        pipe.start_py_workers()
    for pipe in pipes:
        pipe.build()
    first, *others = [[value.as_cpu() for value in pipe.run()] for pipe in pipes]
    for other in others:
        for expected, value in zip(first, other, strict=True):
            for i in range(3):
                np.testing.assert_array_equal(value.at(i), expected.at(i))


def test_a_turn_by_numba_in_a_pipeline():
    pytest.importorskip("numba")
    from ndd.plugin.numba.fn.experimental import numba_function

    @ndd.pipeline_def
    def body():
        jpegs, _ = ndd.fn.readers.file(files=FILES)
        images = ndd.fn.decoders.image(jpegs)
        turned = numba_function(
            images,
            run_fn=turn,
            setup_fn=shapes_of_turned,
            out_types=[ndd.types.UINT8],
            in_types=[ndd.types.UINT8],
            outs_ndim=[3],
            ins_ndim=[3],
        )
        return images, turned

    pipe = body(batch_size=2, num_threads=1, device_id=None)
    pipe.build()
    images, turned = pipe.run()
    for i in range(2):
        np.testing.assert_array_equal(turned.at(i), np.rot90(images.at(i)))


def shapes_of_turned(outs, ins):
    for out, image in zip(outs[0], ins[0]):  # noqa: B905 # compiled
        out[0], out[1], out[2] = image[1], image[0], image[2]


def turn(out, image):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = image[j, out.shape[0] - 1 - i]


@pytest.mark.parametrize("from_file", [False, True])
@pytest.mark.drawn(1)
def test_a_pipeline_goes_on_from_a_checkpoint(tmp_path, from_file):
    @ndd.pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_checkpointing=True, seed=12)
    def body():
        jpegs, labels = ndd.fn.readers.file(files=FILES, random_shuffle=True)
        angle = ndd.fn.random.uniform(range=(-30.0, 30.0))
        return ndd.fn.rotate(ndd.fn.decoders.image(jpegs), angle=angle), labels, angle

    pipe = body()
    pipe.build()
    for _ in range(2):
        pipe.run()
    state = pipe.checkpoint(str(tmp_path / "pipe.cpt"))
    again = body(checkpoint=(tmp_path / "pipe.cpt").read_bytes() if from_file else state)
    again.build()
    for expected, value in zip(pipe.run(), again.run(), strict=True):
        for i in range(2):
            np.testing.assert_array_equal(np.array(value[i]), np.array(expected[i]))
