"""A user's program, for the type checker alone: everything here is right. Nothing is called."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from typing_extensions import assert_type

import ndd


def train(root: Path, model: nn.Module, optimizer: torch.optim.Optimizer, epochs: int = 3) -> float:
    reader = ndd.readers.File(file_root=root, random_shuffle=True, shard_id=0, num_shards=2)
    loss = torch.zeros(())
    for epoch in range(epochs):
        for jpegs, labels in reader.next_epoch(batch_size=64):
            assert_type(jpegs, ndd.Batch)
            rng = ndd.random.RNG(seed=epoch)
            images = ndd.decoders.image_random_crop(jpegs, device="gpu", rng=rng)
            images = ndd.resize(images, size=[224, 224], interp_type=ndd.types.INTERP_CUBIC)
            mirror = ndd.random.coin_flip(batch_size=images.batch_size, rng=rng)
            images = ndd.crop_mirror_normalize(images, mirror=mirror, mean=[0.485, 0.456, 0.406], std=(0.2, 0.2, 0.2))
            assert_type(images, ndd.Batch)
            loss = nn.functional.cross_entropy(model(images.torch()), labels.torch().flatten().long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save(reader.get_state(), root / "state")
    return float(loss)


def one_image(path: str, array: np.ndarray, tensor: torch.Tensor) -> None:
    image = ndd.imread(path)
    assert_type(image, ndd.Tensor)
    assert_type(ndd.imread([path, path], device="gpu"), ndd.Batch)
    assert_type(ndd.flip(array), ndd.Tensor)
    assert_type(ndd.flip(tensor, horizontal=tensor), ndd.Tensor)
    assert_type(ndd.flip([[[1]]]), ndd.Tensor)
    assert_type(ndd.rotate(image, angle=30, device=torch.device("cpu")), ndd.Tensor)
    assert_type(ndd.rotate(image, angle=30.5, fill_value=0, dtype=ndd.float32, device=ndd.Device("gpu")), ndd.Tensor)
    assert_type(ndd.rotate(image, angle=ndd.random.uniform(range=(-30, 30), batch_size=4)), ndd.Batch)
    assert_type(ndd.rotate(image, angle=ndd.random.uniform(range=(-30, 30))), ndd.Tensor)
    assert_type(ndd.color_space_conversion(image, image_type=ndd.types.RGB, output_type=2), ndd.Tensor)
    assert_type(ndd.cast(image, dtype=ndd.types.FLOAT), ndd.Tensor)
    assert_type(ndd.cast(image, dtype=np.float32), ndd.Tensor)
    assert_type(ndd.cast(ndd.batch([array]), dtype=torch.float32), ndd.Batch)
    assert_type(ndd.random.uniform(dtype=np.dtype("f4"), batch_size=2), ndd.Batch)
    print(image.numpy().sum())
    print(ndd.batch([array]).numpy(pad=True).shape)
    assert_type(ndd.__version__, str)
    ndd.slice(image, np.array([0, 0]), shape=np.array([4, 4]), axes=(0, 1))
    ndd.warp_affine(image, matrix=[[1, 0, 0], [0, 1, 0.5]], size=(3, 4))
    ndd.warp_affine(image, matrix=(1, 0, 0, 0, 1, 0), size=array.shape[:2])
    ndd.crop(image, crop=(100, 100), crop_pos_x=np.float32(0.5), crop_pos_y=tensor)


def either(value: ndd.Tensor | ndd.Batch, keep: bool) -> None:
    assert_type(ndd.flip(value), ndd.Tensor | ndd.Batch)
    assert_type(ndd.math.sqrt(value), ndd.Tensor | ndd.Batch)
    assert_type(value + 1, ndd.Tensor | ndd.Batch)
    if isinstance(value, ndd.Batch):
        assert_type(ndd.resize(value, size=64), ndd.Batch)
        assert_type(ndd.resize(value, size=64, save_attrs=True), tuple[ndd.Batch, ndd.Batch])
        resized = ndd.resize(value, size=64, save_attrs=keep)
        assert_type(resized, ndd.Batch | tuple[ndd.Batch, ndd.Batch])


def several_outputs(images: ndd.Batch, shape: ndd.Tensor) -> None:
    anchor, window = ndd.random_crop_generator(shape)
    assert_type(anchor, ndd.Tensor)
    assert_type(ndd.slice(images, anchor, window, axes=[0, 1]), ndd.Batch)
    first, second = ndd.element_extract(images, element_map=[0, 1])
    ndd.cat(first, second, axis=0)


def no_inputs() -> None:
    assert_type(ndd.random.uniform(), ndd.Tensor)
    assert_type(ndd.random.uniform(batch_size=3), ndd.Batch)
    assert_type(ndd.random.uniform(ndd.zeros(shape=[2])), ndd.Tensor)
    assert_type(ndd.random.normal(mean=ndd.batch([1, 2])), ndd.Batch)
    assert_type(ndd.zeros(shape=(2, 3), dtype=ndd.uint8), ndd.Tensor)
    assert_type(ndd.batch_permutation(batch_size=3), ndd.Batch)
    assert_type(ndd.transforms.rotation(angle=30), ndd.Tensor)
    assert_type(ndd.transforms.scale(scale=[2, 2], batch_size=2), ndd.Batch)


def values(t: ndd.Tensor, b: ndd.Batch, array: np.ndarray) -> None:
    assert_type(ndd.tensor([1, 2], dtype=np.float32), ndd.Tensor)
    assert_type(ndd.as_tensor(array, dtype="u8", layout="HWC"), ndd.Tensor)
    assert_type(ndd.batch([array, array], device="gpu"), ndd.Batch)
    assert_type(ndd.uint8([1, 2]), ndd.Tensor)
    assert_type(t.torch(), torch.Tensor)
    assert_type(b.torch(pad=True), torch.Tensor)
    assert_type(t.gpu().evaluate(), ndd.Tensor)
    assert_type(b.to_device("cpu"), ndd.Batch)
    assert_type(b.select(0), ndd.Tensor)
    assert_type(b.select([0, 1]), ndd.Batch)
    assert_type(b.select(slice(1, 3)), ndd.Batch)
    assert_type(b.tensors[0], ndd.Tensor)
    assert_type(b.tensors[1:].as_batch(), ndd.Batch)
    assert_type(b.slice[..., 0], ndd.Batch)
    assert_type(t[1:, 0], ndd.Tensor)
    assert_type([s.shape for s in b], list[tuple[int, ...]])
    assert_type(-t, ndd.Tensor)
    assert_type(t + b, ndd.Batch)
    assert_type(1 - b, ndd.Batch)
    assert_type(b * array, ndd.Batch)
    assert_type(b == t, ndd.Batch)
    assert_type(ndd.math.clamp(t, 0, 1), ndd.Tensor)
    assert_type(ndd.math.clamp(t, 0, b), ndd.Batch)
    assert_type(ndd.math.atan2(b, t), ndd.Batch)
    assert_type(ndd.reductions.mean(b, axes=[0, 1], keep_dims=True), ndd.Batch)
    assert_type(ndd.device("gpu"), ndd.Device)


def readers(root: Path) -> None:
    reader = ndd.readers.File(file_root=root, files=["a", "b"], shuffle="global", max_batch_size=8)
    for data, label in reader.next_epoch():
        print(data.shape, label)
    data, label = reader.fetch([0, 1])
    assert_type(len(reader.next_epoch(batch_size=2)), int)


@ndd.operator
def invert(image, /, *, maximum: ndd.PerSample[int] = 255):
    """An operator of the user."""
    return ndd.like(image)


@invert.cpu
def _(image, out, maximum):
    out[...] = maximum - image


@ndd.operator(layouts=("HWC",), random=True)
def jitter(image, /, *, amount: float):
    """Another one, with options."""
    return ndd.like(image)


def own_operators(image: ndd.Tensor, images: ndd.Batch) -> None:
    invert(image)
    invert(images, maximum=ndd.batch([1, 2]))
    invert(images, maximum=torch.tensor(3))
    invert(image, maximum=3, batch_size=3)
    invert(image, maximum=3, device="cpu")
    jitter(image, amount=0.5, rng=ndd.random.RNG(1))


class LineStore(ndd.readers.RecordStore):
    def __init__(self, path: str):
        self._path = path
        self._lines = Path(path).read_bytes().splitlines()

    def __len__(self) -> int:
        return len(self._lines)

    def record(self, number: int) -> tuple[np.ndarray, ...]:
        return (np.frombuffer(self._lines[number], np.uint8),)

    def source(self, number: int) -> str:
        return f"{self._path}:{number + 1}"


class Lines(ndd.readers.Reader):
    """Reads a text file line by line."""

    def _open(self, *, path: str, strip: bool = False) -> LineStore:
        return LineStore(path)

    @classmethod
    def _outputs(cls, *, strip: bool = False, **arguments: object) -> tuple[ndd.readers.Output, ...]:
        return (ndd.readers.Output("line", ndd.uint8, 1),)

    def _present(self, line: ndd.Batch) -> tuple[ndd.Batch, ...]:
        return (ndd.cast(line, dtype=ndd.int32),) if self._arguments["strip"] else (line,)


def lines(path: str) -> None:
    for (line,) in Lines(path=path, random_shuffle=True).next_epoch(batch_size=4):
        assert_type(line, ndd.Batch)
