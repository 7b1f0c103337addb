"""A user's program, for the type checker alone: each line that says so is wrong, no other is. Nothing is called."""
# ruff: noqa: F841, RUF059

import ndd


def arguments(image: ndd.Tensor, images: ndd.Batch) -> None:
    ndd.flip(image, horizntal=1)  # error
    ndd.flip(images, batchsize=3)  # error
    ndd.flip(image, image)  # error
    ndd.flip()  # error
    ndd.flip("photo.jpg")  # error
    ndd.flip(input=image)  # error
    ndd.flip(None)  # error
    ndd.flip(image, horizontal="yes")  # error
    ndd.flip(images, horizontal=[[1], [2]])  # error
    ndd.flip(image, batch_size="3")  # error
    ndd.flip(image, device=0)  # error
    ndd.resize(image, size="224")  # error
    ndd.resize(image, size=["224", "224"])  # error
    ndd.resize(image, size=[224, 224], antialias="yes")  # error
    ndd.resize(image, size=[224, 224], interp_type="cubic")  # error
    ndd.resize(image, size=[224, 224], dtype=3.5)  # error
    ndd.resize(images, size=[224, 224], mode=3)  # error
    ndd.transpose(images, perm=images)  # error
    ndd.clahe(image)  # error
    ndd.cast(image)  # error
    ndd.cast(image, ndd.uint8)  # error
    ndd.paste(image, ratio=2)  # error
    ndd.zeros([2, 3])  # error
    ndd.random.uniform(range="wide")  # error
    ndd.random.uniform(rng=3)  # error
    ndd.random.uniform(seed=3)  # error
    ndd.flip(image, rng=ndd.random.RNG(1))  # error
    ndd.batch_permutation()  # error
    ndd.math.sqrt("2")  # error
    ndd.math.clamp(image, 0)  # error
    ndd.imread(3)  # error
    ndd.imread("photo.jpg", devise="gpu")  # error
    ndd.imread("photo.jpg", output_type="RGB")  # error
    ndd.tensor([1], dtype=3)  # error
    ndd.resise(image, size=3)  # error
    ndd.random.unifrom()  # error


def results(image: ndd.Tensor, images: ndd.Batch) -> None:
    ndd.flip(image).select(0)  # error
    ndd.flip(images).item()  # error
    flipped: ndd.Tensor = ndd.flip(images)  # error
    added: ndd.Tensor = image + images  # error
    more: ndd.Batch = ndd.flip(image)  # error
    drawn: ndd.Tensor = ndd.random.uniform(batch_size=3)  # error
    root: ndd.Batch = ndd.math.sqrt(image)  # error
    resized: ndd.Batch = ndd.resize(images, size=3, save_attrs=True)  # error
    first, second, three = ndd.random_crop_generator(image)  # error
    number: int = images.torch()  # error
    image + "one"  # error
    images.select("first")  # error


def readers() -> None:
    reader = ndd.readers.File(file_root="photos", random_shufle=True)  # error
    ndd.readers.File(file_root="photos", initial_fill="many")  # error
    reader.next_epoch(batch_size="64")  # error
    reader.next_epoch(batchsize=64)  # error
    for data, _ in reader.next_epoch(batch_size=64):
        data.item()  # error


@ndd.operator
def invert(image, /, *, maximum: ndd.PerSample[int] = 255):
    """An operator of the user."""
    return ndd.like(image)


def own_operators(image: ndd.Tensor) -> None:
    invert()  # error
    invert(image, maximm=3)  # error
    invert(image, maximum="3")  # error
    ndd.operator(layout=("HWC",))  # error
