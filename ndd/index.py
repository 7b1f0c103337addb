"""`python -m ndd index PATH...`: the index files that DALI's tfrecord2idx, wds2idx and rec2idx write."""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._tensor.secrets import error_text
from ndd.atomic_file import atomic_file
from ndd.demo.progress import Bar
from ndd.readers.files.file_reading import RegularFile
from ndd.readers.files.file_tree import words_of
from ndd.readers.files.gzip_file import GzipFile, is_packed
from ndd.readers.formats.crc32c import wrong_heads
from ndd.readers.formats.tar_file import BLOCK, is_header, members
from ndd.readers.formats.tf_example import HEAD
from ndd.readers.mxnet import scan_recordio
from ndd.readers.tfrecord import scan_tfrecord
from ndd.readers.webdataset import is_hidden

__all__ = ["add_arguments", "conventional_name", "kind_of", "run"]

_REPORT = Callable[[int, int], None]
_STEPS = 100  # of the progress bar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a folder of files, or a pattern such as '*.tar'"
    )
    parser.add_argument("--output", metavar="PATH", help="the index of a single file, or a folder for all of them")
    parser.add_argument("--force", action="store_true", help="overwrite existing index files")


def run(args: argparse.Namespace) -> int:
    """Writes an index for each file. An error in one file is reported, and the others are written."""
    files = _files(args.paths)
    folder = args.output is not None and os.path.isdir(args.output)
    if args.output is not None and not folder and len(files) > 1:
        raise ValueError(f"--output: expected a folder for the indices of {len(files)} files, got {args.output!r}")
    failed = False
    for path, kind in files:
        index = conventional_name(path, kind)
        if args.output is not None:
            index = os.path.join(args.output, os.path.basename(index)) if folder else args.output
        try:
            if os.path.exists(index) and not args.force:
                raise FileExistsError(f"{index} exists already: --force overwrites it")
            print(f"{path}: {_write(path, kind, index)} {_NAMES[kind]} -> {index}")
        except (OSError, ValueError) as error:
            print(f"ndd index: {error_text(error)}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


def conventional_name(path: str, kind: str) -> str:
    """The name that DALI's examples and scripts give to the index of a container: beside it, with `.idx`."""
    if kind == "tfrecord":
        return f"{path}.idx"
    if kind == "recordio":
        return f"{os.path.splitext(path)[0]}.idx"
    folder, name = os.path.split(path)
    return os.path.join(folder, name[:1] + name[1:].partition(".")[0] + ".idx")


def kind_of(path: str) -> str | None:
    """The kind of a file by its first bytes: "tfrecord", "tar", "recordio" or None."""
    with RegularFile(path) as file:
        head = file.read(0, BLOCK)
    if head[:4] == b"\x0a\x23\xd7\xce":
        return "recordio"
    if is_header(head):
        return "tar"
    if is_packed(head):
        with GzipFile(path) as content, contextlib.suppress(OSError):
            head = content.read(0, HEAD)
    return "tfrecord" if _is_record(head) else None


def _is_record(head: bytes) -> bool:
    return len(head) >= HEAD and wrong_heads(np.frombuffer(head[:HEAD], np.uint8)) < 0


def _files(paths: list[str]) -> list[tuple[str, str]]:
    """The files to index and their kinds. Files of other kinds in a folder are left out."""
    files: list[tuple[str, str]] = []
    for path in paths:
        is_pattern = not os.path.exists(path) and glob.has_magic(path)
        if is_pattern or os.path.isdir(path):
            names = glob.glob(path) if is_pattern else [entry.path for entry in os.scandir(path)]
            kinds = [(name, kind_of(name)) for name in sorted(names) if os.path.isfile(name)]
            chosen = [(name, kind) for name, kind in kinds if kind is not None]
            if not chosen:
                raise ValueError(f"{path}: expected TFRecord, tar or RecordIO files, found none")
            files += chosen
        else:
            kind = kind_of(path)
            if kind is None:
                raise ValueError(
                    f"{path}: expected a TFRecord, tar or RecordIO file (tar and RecordIO not compressed), got something else"
                )
            files.append((path, kind))
    return files


def _write(path: str, kind: str, index: str) -> int:
    """Writes the index of a file and returns its number of records."""
    bar = Bar(os.path.basename(path), _STEPS) if sys.stdout.isatty() else None

    def report(done: int, total: int) -> None:
        while bar is not None and bar.count < _STEPS * done // max(total, 1):
            bar("")

    try:
        lines = _LINES[kind](path, report)
    finally:
        if bar is not None and bar.count:
            bar.done()
    with atomic_file(index) as out:
        out.write("".join(lines).encode(errors="surrogateescape"))
    return len(lines) - (kind == "tar")


def _tfrecord_lines(path: str, report: _REPORT) -> list[str]:
    """ "offset size" for each record."""
    index = scan_tfrecord(path, report)
    return [
        f"{offset} {size}\n" for offset, size in zip(index["offsets"].tolist(), index["sizes"].tolist(), strict=True)
    ]


def _recordio_lines(path: str, report: _REPORT) -> list[str]:
    """ "number<tab>offset" for each record."""
    return [f"{number}\t{offset}\n" for number, offset in enumerate(scan_recordio(path, report))]


def _tar_lines(path: str, report: _REPORT) -> list[str]:
    """ "v1.2 samples", then "extension offset size name" for each component of a sample.

    As in wds2idx, a name without a dot is a sample whose name lacks the last letter, with the whole name as extension. For a
    long name of GNU tar wds2idx gives the position of the name; here it is that of the data.
    """
    samples: list[list[str]] = []
    last = None
    for name, offset, size in members(path, report):
        dot = name.find(".", name.rfind("/") + 1)
        sample, extension = name[:dot], name[dot + 1 :]
        if is_hidden(sample):
            continue
        if len(words_of(name)) != 1:
            raise ValueError(
                f"{path}: the file name {name!r} cannot stand in an index, which separates by spaces; readers.Webdataset reads "
                "the archive without an index"
            )
        if sample != last:
            samples.append([])
            last = sample
        samples[-1].append(f"{extension} {offset} {size} {name}")
    if not samples:
        raise ValueError(f"{path}: Webdataset Tar File empty: expected files with names such as 0.jpg, found none")
    return [f"v1.2 {len(samples)}\n", *(" ".join(components) + "\n" for components in samples)]


_LINES: dict[str, Any] = {"tfrecord": _tfrecord_lines, "recordio": _recordio_lines, "tar": _tar_lines}
_NAMES = {"tfrecord": "records", "recordio": "records", "tar": "samples"}
