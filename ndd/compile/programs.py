"""Small versions of programs, run once to cache their kernels: the loop, `bench speech`, `readers` and `video`, the demo, and the
recipes of `recipes.py`.

`bench ops` calls each operator by itself; these call the code between them: readers, batches of files, random arguments.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ndd.compile import recipes
from ndd.compile.transforms import run_transforms

_BATCH, _RECORDS = 4, 10  # the last batch is a part of one
_SIZES = (1_000, 100_000)  # bytes of a record


def _loop(folder: Path) -> None:
    import ndd
    from ndd.bench.loop_sides import LOOPS, operators

    for loop in LOOPS:
        work = operators(ndd, loop, "cpu", {})
        for jpegs, labels in _photographs().next_epoch(batch_size=_BATCH):
            work(jpegs)
            labels.torch()


def _demo(folder: Path) -> None:
    from ndd.demo.loop import augmented

    for _ in augmented(_photographs(), _BATCH, "cpu"):
        pass


def _photographs() -> Any:
    from ndd.demo.folder import PHOTOS, scan
    from ndd.demo.loop import open_reader

    return open_reader(scan(PHOTOS).first(_RECORDS), seed=1)


def _speech(folder: Path) -> None:
    import ndd
    from ndd.bench.speech import STAGES

    paths = []
    for kind, files in _recordings().items():
        for k, data in enumerate(files):
            paths.append(str(folder / f"{k}.{kind}"))
            data.tofile(paths[-1])
    reader = ndd.readers.File(files=paths, random_shuffle=True)
    for stage in STAGES.values():
        for batch, _ in reader.next_epoch(batch_size=_BATCH):
            stage(ndd, "cpu", batch)


def _recordings() -> dict[str, list[np.ndarray]]:
    from ndd.bench.operator_inputs import arrays

    values = arrays(None, _BATCH)
    return {kind: values[f"{kind}s"][0] for kind in ("wav", "flac", "ogg")}


def _reader(name: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        from ndd.bench.readers import KINDS, made_reader

        for size in _SIZES:
            rng, place = np.random.default_rng(0), folder / str(size)
            place.mkdir()
            records = [rng.integers(0, 256, size, np.uint8).tobytes() for _ in range(_RECORDS)]
            reader = made_reader("ndd", name, KINDS[name].make(place, records))
            for batch in reader.next_epoch(batch_size=_BATCH):
                for value in batch.values() if isinstance(batch, dict) else batch:
                    value.evaluate()

    return read


def _video(folder: Path) -> None:
    import ndd

    frames = np.random.default_rng(0).integers(0, 256, (24, 48, 64, 3), np.uint8)
    path = str(folder / "clip.mp4")
    ndd.io.video.write(path, frames, codec="libx264", key_interval=8, quality=30)
    for more in ({}, {"step": 5, "random_shuffle": True, "seed": 1}):
        reader = ndd.experimental.readers.Video(filenames=[path], sequence_length=8, device="cpu", **more)
        for (clips,) in reader.next_epoch(batch_size=2):
            clips.evaluate()
    for filters in (ndd.types.INTERP_LINEAR, ndd.types.INTERP_NN):
        resized = ndd.readers.VideoResize(filenames=[path], sequence_length=8, resize_shorter=24, interp_type=filters)
        for (clips,) in resized.next_epoch(batch_size=2):
            clips.evaluate()


def _many_numbers(folder: Path) -> None:
    import ndd
    from ndd._cpu.draws import PIECE

    # From here on threads share the numbers.
    ndd.random.normal(batch_size=_BATCH, device="cpu", shape=[PIECE]).evaluate()


def _resized_alone(folder: Path) -> None:
    import ndd

    # The last batch of an epoch may be one picture, and a side may have its size already.
    picture = np.zeros((48, 64, 3), np.uint8)
    for filters in (ndd.types.INTERP_LINEAR, ndd.types.INTERP_NN):
        for size in ([24, 32], [24, 64]):
            ndd.resize(ndd.batch([picture], layout="HWC"), size=size, interp_type=filters).evaluate()


def _usual() -> Iterator[tuple[str, Callable[..., None]]]:
    from ndd.bench.readers import KINDS

    yield from (("loop", _loop), ("speech", _speech), ("video", _video), ("demo", _demo))
    yield from (("pictures", recipes.run_pictures), ("resize of one picture", _resized_alone))
    yield from zip([f"readers.{name}" for name in KINDS], map(_reader, KINDS), strict=True)


USUAL = dict(_usual())
"""By name: functions that run a small version of a program in an empty folder. `python -m ndd compile` compiles their kernels."""
PROGRAMS: dict[str, Callable[..., None]] = {
    **USUAL,
    "random.normal of many": _many_numbers,
    "rarer pictures": recipes.run_rarer_pictures,
    **recipes.OF_BOTH,
    "torchvision.transforms": run_transforms,
}
"""These, and those whose kernels come in a wheel, or by `python -m ndd compile --all`."""


def run_program(name: str, **how: Any) -> None:
    """Runs one of them."""
    with tempfile.TemporaryDirectory(prefix="ndd-compile-") as folder:
        PROGRAMS[name](Path(folder), **how)
