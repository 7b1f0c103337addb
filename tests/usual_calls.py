"""Calls everything with usual arguments, as a program: the operators of the registry, decoders with files of each format, the
readers, torchvision's transforms. After `python -m ndd compile --all` nothing of it compiles (`test_compile.py`)."""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import encoded
import torch
import videos
from calling import FORMS, call, cases_of, evaluated, layouts_of, load_every_module, samples
from readers.datasets import DATASETS
from sounds import encoded as sound_file, ffmpeg_file, sound
from torch.utils._pytree import tree_flatten

import ndd
from ndd.torchvision import v2

SOUNDS = (
    "WAV PCM_U8", "WAV PCM_16", "WAV PCM_24", "WAV PCM_32", "WAV ULAW", "WAV FLOAT", "WAV DOUBLE", "FLAC PCM_S8",
    "FLAC PCM_16", "FLAC PCM_24", "AIFF PCM_16", "OGG VORBIS", "OGG OPUS", "MP3 MPEG_LAYER_III", "ipod aac", "mp3 libmp3lame",
)  # fmt: skip
VIDEOS = ("mp4 libx264", "mp4 mpeg4", "webm libvpx-vp9", "mp4 libsvtav1")


def operators() -> Iterator[Any]:
    """The first layout of each case, as batches of several sizes and of one, and one sample."""
    for path, operator in sorted(load_every_module().items()):
        for case in cases_of(path, operator):
            layout = layouts_of(case, operator)[0]
            for form in FORMS:
                with contextlib.suppress(ValueError):  # operators of batches take no single sample
                    yield evaluated(call(ndd, path, case, samples(case, layout, form), form))


def pictures() -> Iterator[Any]:
    for data in [*encoded.made().values(), *encoded.rare().values(), encoded.cmyk()]:
        files = ndd.batch([data] * 3)
        for kind in ("RGB", "GRAY", "ANY_DATA"):
            yield ndd.decoders.image(files, device="cpu", output_type=getattr(ndd.types, kind))
        yield ndd.peek_image_shape(files)
        yield ndd.decoders.image_crop(files, device="cpu", crop=[20, 20])
        yield ndd.decoders.image_random_crop(files, device="cpu")
        yield ndd.decoders.image_slice(files, [0.1, 0.1], [0.5, 0.5], device="cpu")


def sounds() -> Iterator[Any]:
    for kind in SOUNDS:
        form, codec = kind.split()
        rate = 48000 if codec == "OPUS" else 16000
        for channels in (1, 2):
            made = sound_file(sound(6000, channels), rate, form, codec) if form.isupper() else ffmpeg_file(form, codec)
            for more in (
                {}, {"downmix": True}, {"sample_rate": 8000.0}, {"sample_rate": 8000.0, "downmix": True},
                {"dtype": ndd.int16}, {"start": 0.1, "duration": 0.1},
            ):  # fmt: skip
                yield from ndd.decoders.audio(ndd.batch([made] * 3), **more)


def clips() -> Iterator[Any]:
    for kind in VIDEOS:
        form, codec = kind.split()
        files = ndd.batch([videos.encoded(24, format=form, codec=codec)] * 2)
        for more in ({}, {"frames": [0, 3, 5]}, {"sequence_length": 4}):
            yield ndd.decoders.video(files, device="cpu", **more)


def readers() -> Iterator[Any]:
    for name, data in DATASETS.items():
        home = ndd.experimental if name.startswith("experimental.") or not hasattr(ndd.readers, name) else ndd
        with tempfile.TemporaryDirectory() as folder:
            arguments = data.make(Path(folder), 10)
            for more in ({}, {"random_shuffle": True, "seed": 1}, {"pad_last_batch": True}):
                reader = getattr(home.readers, name.removeprefix("experimental."))(**arguments, **more)
                for batch_size in ({}, {"batch_size": 4}):
                    for outputs in reader.next_epoch(**batch_size):
                        yield from outputs.values() if isinstance(outputs, dict) else outputs


def transforms() -> Iterator[Any]:
    if importlib.util.find_spec("torchvision") is None:
        return
    import torchvision_classes

    pictures = [torch.randint(0, 256, (3, *size), dtype=torch.uint8) for size in ((37, 53), (60, 37), (50, 50))]
    kinds = [pictures, [picture / 255 for picture in pictures], [picture[:, :37, :37] for picture in pictures]]
    values = [torchvision_classes.batch_of(kind, layout) for kind in kinds for layout in ("HWC", "CHW")]
    values += torchvision_classes.inputs().values()
    for name in torchvision_classes.names():
        for arguments in torchvision_classes.CASES.get(name, [()])[:1]:
            for value in values if name not in torchvision_classes.APART else ():
                with contextlib.suppress(TypeError, ValueError, RuntimeError):  # not for these values
                    torch.manual_seed(3)
                    yield from tree_flatten(getattr(v2, name)(*arguments)(value))[0]


if __name__ == "__main__":
    for part in (operators, pictures, sounds, clips, readers, transforms):
        for result in part():
            if hasattr(result, "evaluate"):
                result.evaluate()
