"""The speech loop: sound files to normalised log-mel batches on torch, the libraries take turns, each in its own process."""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ndd.bench.libraries import Setting, make_setting
from ndd.bench.process import Process
from ndd.bench.rounds import Result

_BATCH = 64
_RATE = 16000.0
_KINDS = ("*.wav", "*.flac", "*.ogg")
_TARGETS = {"cpu": "ratio >= 2.0", "gpu": "ratio >= 1.5"}


def _read(library: Any, device: str, files: Any) -> Any:
    return files.evaluate()


def _decode(library: Any, device: str, files: Any) -> Any:
    samples, _ = library.decoders.audio(files, downmix=True, sample_rate=_RATE)
    return (samples.gpu() if device == "gpu" else samples).evaluate()


def _whole(library: Any, device: str, files: Any) -> Any:
    samples, _ = library.decoders.audio(files, downmix=True, sample_rate=_RATE)
    if device == "gpu":
        samples = samples.gpu()
    x = library.preemphasis_filter(samples)
    x = library.spectrogram(x, nfft=512, window_length=400, window_step=160)
    x = library.mel_filter_bank(x, nfilter=80, sample_rate=_RATE)
    x = library.to_decibels(x, cutoff_db=-80.0)
    x = library.normalize(x, axes=[1])
    return x.torch(pad=True)


STAGES: dict[str, Callable[[Any, str, Any], Any]] = {
    "decode, 16 kHz, preemphasis, mel 80, decibels, normalise, torch(pad=True)": _whole,
    "  of which reading alone": _read,
    "  reading and decoding": _decode,
}


def measure(
    setting: Setting, data: Path | None, batch_size: int | None = None, recordings: int | None = None
) -> Iterator[Result]:
    """Recordings a second. `data`: a folder with WAV, FLAC or OGG files at any depth; without it, generated files."""
    batch = batch_size or _BATCH
    count = recordings or (256 if setting.device == "cpu" else 2048)
    with tempfile.TemporaryDirectory() as folder:
        results = (
            sorted(itertools.chain.from_iterable(data.rglob(kind) for kind in _KINDS))
            if data
            else _generated(Path(folder))
        )
        if not results:
            raise ValueError(f"--data {data}: no file matches {', '.join(_KINDS)}")
        listed = Path(folder) / "files.json"
        listed.write_text(json.dumps([str(p) for p in itertools.islice(itertools.cycle(results), count)]))
        heading = f"batch {batch}, {setting.device.upper()}, {setting.threads} threads"
        processes = {
            side: Process("ndd.bench.speech", side, setting.device, str(setting.threads), str(batch), str(listed))
            for side in setting.libraries
        }
        try:
            for place, (title, _) in enumerate(STAGES.items()):
                rates = _alternating(processes, str(place), setting.rounds)
                yield Result(
                    "speech", f"{title}; {heading}", "files/s", rates["ndd"], rates.get("DALI"),
                    _TARGETS[setting.device] if place == 0 else "",
                )  # fmt: skip
        finally:
            for process in processes.values():
                process.close()


def _alternating(processes: dict[str, Process], stage: str, rounds: int) -> dict[str, float]:
    """The median of the epochs' rates; the libraries take turns by epoch, after one that is not counted."""
    rates: dict[str, list[float]] = {side: [] for side in processes}
    for process in processes.values():
        process.ask(stage)
    for turn in range(rounds):
        for side in list(processes)[:: 1 if turn % 2 == 0 else -1]:
            rates[side].append(processes[side].ask(stage)["rate"])
    return {side: median(values) for side, values in rates.items()}


def _generated(folder: Path) -> list[Path]:
    """Sixteen recordings of 2 to 15 s of noise that comes and goes, 16 bits at 22.05 kHz, half of them FLAC."""
    import soundfile  # the benchmark writes the files itself

    rng, paths = np.random.default_rng(3), []
    for i, seconds in enumerate(rng.uniform(2, 15, 16)):
        n = int(seconds * 22050)
        loudness = np.abs(np.sin(np.cumsum(rng.uniform(0, 4e-4, n))))
        paths.append(folder / f"{i}.{('wav', 'flac')[i % 2]}")
        soundfile.write(paths[-1], 0.2 * loudness * rng.standard_normal(n), 22050, subtype="PCM_16")
    return paths


def _answer(side: str, device: str, threads: str, batch: str, listed: str) -> None:
    """The process of one library: an epoch of a stage for each line of the input."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library's own output must not mix with the answers
    setting = make_setting(device, int(threads), side == "DALI")
    library = setting.libraries[side]
    reader = library.readers.File(files=json.loads(Path(listed).read_text()), random_shuffle=True)
    stages = list(STAGES.values())
    for line in sys.stdin:
        stage, count = stages[int(line)], 0
        setting.synchronize()
        start = time.perf_counter()
        for files, _ in reader.next_epoch(batch_size=int(batch)):
            stage(library, device, files)
            count += files.batch_size
        setting.synchronize()
        print(json.dumps({"rate": count / (time.perf_counter() - start)}), file=out, flush=True)


if __name__ == "__main__":
    _answer(*sys.argv[1:])
