"""The `bench` command: its options, the table on the screen, and the JSON file."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ndd.bench.libraries import Setting, make_setting
from ndd.bench.loop_pictures import PICTURES
from ndd.bench.rounds import Result

_SECTIONS = ("dispatch", "loop", "classic", "augment", "detection", "speech", "ops", "import")
# an hour; gigabytes of disk; needs PyAV; 20 minutes; 2 minutes; 15 minutes on a GPU; needs torchvision
_ON_REQUEST = ("soak", "readers", "video", "first", "cold", "train", "torchvision", "mine")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd bench`."""
    parser.add_argument("section", nargs="?", default="all", choices=[*_SECTIONS, *_ON_REQUEST, "all"])
    parser.add_argument(
        "script",
        nargs="?",
        type=Path,
        help="mine: a script with `dataset` or `loader`, and `ndd_loop`: help(ndd.bench.mine)",
    )
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="a folder of JPEGs in class folders (default: embedded); of speech: of sound files (default: made)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file too")
    parser.add_argument("--threads", type=int, help="CPU threads of both libraries (default: the CPUs of this process)")
    parser.add_argument("--batch-size", type=int, help="of loop and ops (default: loop 64, on a GPU also 256; ops 64)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds; medians are shown (default 7, of train 3)")
    parser.add_argument(
        "--images",
        type=int,
        help="images of an epoch of the loop (default 512, on a GPU 8192), recordings of speech (256, 2048)",
    )
    parser.add_argument("--records", type=int, help="records that each reader reads (default 20,000)")
    parser.add_argument(
        "--store",
        action="store_true",
        help="readers: over a bucket 50 ms away, beside its plain client (2,000 pictures)",
    )
    parser.add_argument("--connections", type=int, default=32, help="readers --store: requests at once (default 32)")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="operators, readers or parts of soak whose name contains this"
    )
    parser.add_argument("--count", type=int, help="soak: repetitions of each part (default: a number of its own)")
    parser.add_argument(
        "--pictures",
        default="",
        choices=["all", *PICTURES],
        help="loop: files of one kind, made of those of --data",
    )
    parser.add_argument("--hw-load", type=float, help="loop: the decoders' hw_decoder_load, 0 to 1 (default theirs)")
    parser.add_argument(
        "--sides",
        default="",
        help="with commas between; loop: ndd, DALI dynamic, DALI pipeline, torchvision, DataLoader; train: also synthetic, "
        "resident",
    )
    parser.add_argument("--steps", type=int, help="train: steps that are timed (default 200, on a CPU 20)")
    parser.add_argument("--gpus", type=int, default=1, help="train: processes under torchrun, each with a GPU")
    parser.add_argument("--numa", default="", help="train: torchrun's --numa-binding")
    parser.add_argument("--no-dali", action="store_true", help="measure ndd alone")


_WITH_BATCHES = {"all", "augment", "classic", "cold", "detection", "loop", "mine", "ops", "speech", "torchvision"}


def run(args: argparse.Namespace) -> int:
    """Measures, prints each line as soon as it is known, writes the file."""
    for name in ("rounds", "threads", "batch_size", "images", "records", "count", "steps", "gpus", "connections"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}.")
    if args.hw_load is not None and not 0 <= args.hw_load <= 1:
        raise ValueError(f"--hw-load must be from 0 to 1, got {args.hw_load}.")
    if args.script is not None and args.section != "mine":
        raise ValueError(f"only `bench mine` takes a script, got {args.script} for `bench {args.section}`.")
    if args.batch_size is not None and args.section not in _WITH_BATCHES:
        more = "; its rows have theirs, of which --only chooses some" if args.section == "train" else ""
        raise ValueError(f"bench {args.section} takes no --batch-size{more}.")
    if args.data is not None and not args.data.is_dir():
        raise NotADirectoryError(f"--data: there is no folder {args.data}.")
    if args.json is not None and not args.json.absolute().parent.is_dir():  # before measuring, which may take an hour
        raise NotADirectoryError(f"--json: the folder {args.json.absolute().parent} does not exist.")
    mine = args.section == "mine"  # beside the user's own loader
    setting = make_setting(args.device, args.threads, not (args.no_dali or mine))
    setting.rounds = args.rounds or (3 if args.section in ("train", "torchvision", "mine") else 7)
    machine = describe(setting)
    print(", ".join(f"{k}: {v}" for k, v in machine.items()))
    if setting.without_dali and not mine:
        print(setting.without_dali)
    results = []
    print(f"\n{'':<66}{'ndd':>11}{'yours' if mine else 'DALI':>11}  {'unit':<9}{'ratio':>7}  target")
    for result in sections(setting, args):
        results.append(result)
        print(line(result), flush=True)
    if args.only and not results:
        raise ValueError(f"--only: no row of {args.section} has {args.only!r} in its name.")
    if args.json is not None:
        text = json.dumps({"machine": machine, "results": [r.record() for r in results]}, indent=1)
        args.json.write_text(text + "\n")
        print(f"wrote {args.json}")
    if rows := [result for result in results if result.section == "ops"]:
        from ndd.bench.operators import summary

        print(summary(rows))
    return 0


def sections(setting: Setting, args: argparse.Namespace) -> Iterator[Result]:
    """The results of the requested sections."""
    wanted = _SECTIONS if args.section == "all" else (args.section,)
    if "dispatch" in wanted:
        from ndd.bench import dispatch

        yield from dispatch.measure(setting)
    if "loop" in wanted:
        from ndd.bench import loop

        sizes = [args.batch_size] if args.batch_size else None
        yield from loop.measure(
            setting, args.data, sizes, args.images, args.only, args.pictures, args.hw_load, args.sides
        )
    if "detection" in wanted:
        from ndd.bench import detection

        yield from detection.measure(setting, args.data, args.batch_size, args.images)
    if "classic" in wanted:
        from ndd.bench import classic

        yield from classic.measure(setting, args.data, args.batch_size, args.images)
    if "augment" in wanted:
        from ndd.bench import augment

        yield from augment.measure(setting, args.data, args.batch_size, args.images)
    if "speech" in wanted and (args.section == "speech" or speech_is_read()):
        from ndd.bench import speech

        sounds = args.data if args.section == "speech" else None  # for other sections it holds pictures
        yield from speech.measure(setting, sounds, args.batch_size, args.images)
    if "ops" in wanted:
        from ndd.bench import operators

        yield from operators.measure(setting, args.data, args.batch_size or 64, args.only)
    if "readers" in wanted:
        from ndd.bench import own_loaders, readers

        if args.store:
            from ndd.bench import stores

            yield from stores.measure(args.only, args.records, args.connections)
            return
        yield from readers.measure(setting, args.data, args.only, args.records)
        if setting.device == "cpu":
            from ndd.demo.folder import PHOTOS

            yield from own_loaders.measure(readers.contents(args.data or PHOTOS, 100_000), args.only)
    if "video" in wanted:
        from ndd.bench import video

        yield from video.measure(setting, args.data, args.only)
    if "train" in wanted:
        from ndd.bench import train

        yield from train.measure(
            setting, args.data, args.only, args.sides, args.steps, args.gpus, args.hw_load, args.numa
        )
    if "torchvision" in wanted:
        from ndd.bench import torchvision

        yield from torchvision.measure(setting, args.data, args.batch_size, args.images, args.only)
    if "mine" in wanted:
        from ndd.bench import mine

        yield from mine.measure(setting, args.script, args.batch_size, args.images, args.only)
    if "import" in wanted:
        from ndd.bench import start

        yield from start.measure_import(setting)
        yield from start.measure_first_call(setting)
    if "first" in wanted:
        from ndd.bench import start

        yield from start.measure_first_calls(setting, args.only)
    if "cold" in wanted:
        from ndd.bench import cold

        yield from cold.measure(setting, args.data, args.batch_size)
    if "soak" in wanted:
        from ndd.bench import soak

        yield from soak.measure(setting, args.data, args.count, args.only)


def speech_is_read() -> bool:
    """Whether the reader of sound files is installed. Without it, only an explicit request for the section raises an error."""
    return importlib.util.find_spec("soundfile") is not None


def line(result: Result) -> str:
    """One row of the table."""
    ratio = f"{result.ratio:7.2f}" if result.ratio is not None else "      -"
    numbers = f"{_number(result.ndd):>11}{_number(result.dali):>11}"
    return f"{result.name:<66}{numbers}  {result.unit:<9}{ratio}  {result.target}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def describe(setting: Setting) -> dict[str, Any]:
    """The machine and the versions on which the numbers depend."""
    import torch

    import ndd

    machine: dict[str, Any] = {"cpu": _cpu_name(), "threads": setting.threads, "cores": os.cpu_count()}
    if setting.device == "gpu":
        machine["gpu"] = torch.cuda.get_device_name()
    machine |= {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "ndd": ndd.__version__,
    }
    if "DALI" in setting.libraries:
        machine["dali"] = next((v for d in ("130", "120") if (v := _version(f"nvidia-dali-cuda{d}"))), "unknown")
    return machine


def _version(distribution: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for text in info.read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
