"""`readers.NemoAsr`: speech and its transcripts, from manifests of NVIDIA NeMo."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd._tensor import DType
from ndd._tensor.dtype import float32, int16, int32, int64, uint8
from ndd._tensor.packed import Packed
from ndd._tensor.secrets import without_secrets
from ndd._tensor.user_line import warn_user
from ndd.decoders.sound.decode import Wanted, decode, decode_one, decode_several
from ndd.io.object_store import connections, is_remote, without_query
from ndd.readers.files.file_reading import OpenFiles, UsualSize, read_files
from ndd.readers.files.file_tree import FilePath, listed_names, read_lines
from ndd.readers.output import Column, Output, Record
from ndd.readers.reader import Reader
from ndd.readers.stores.records import THREADS_OF_STORES, Records, RecordStore, samples_of

_OPEN_AT_ONCE = 32  # files that are read and decoded together
_LARGE = 1 << 24  # bytes of a file from which on a part of it is read in place


class NemoAsr(Reader):
    """Reads the recordings that manifests list, with their transcripts.

    A manifest has a JSON object on each line: `{"audio_filepath": "a.wav", "duration": 1.5, "offset": 0.0, "text":
    "..."}`. Only `audio_filepath` is required. Relative paths begin at the working directory, as in DALI; if the first path of a
    manifest does not exist there, they begin at the manifest's folder. `offset` and `duration` (in s) select a part of
    `floor(duration * rate)` samples from `floor(offset * rate)` on; without a duration, or with a negative one, it extends to the
    end.

    Outputs: the samples, `(n,)`, or `(n, channels)` with `downmix=False`; the sampling rate of the file in Hz, float32 of shape
    `()`; the transcript as UTF-8 bytes, u8; and with `read_idxs` the number of the entry among the selected entries of its
    manifest, int64 `(1,)`.

    Args:
        manifest_filepaths: a path or a list of paths; their entries are read one manifest after the other.
        downmix: return the mean of the channels.
        dtype: float32, int16 or int32, scaled as by `decoders.audio`.
        max_duration: skip longer entries, in s. 0: no limit.
        min_duration: skip shorter entries, and entries without a duration.
        quality: the quality of resampling, 0 to 100.
        read_idxs, read_sample_rate, read_text: the outputs beside the samples.
        sample_rate: the rate to resample to. 0 or less: the file's rate. Unlike in `decoders.audio`, the rate in the output is
            always the file's.
        normalize_text: accepted for compatibility with DALI, without effect.

    Lines that cannot be read (broken JSON, no `audio_filepath`, a duration that is not a number, a text that is not a
    string) are skipped, and a warning tells their number. DALI crashes on such lines, or returns empty signals.

    Differences from DALI: MP3 and all formats of FFmpeg are read as well. Seconds are read exactly (DALI 2.4.0 reads some of
    them one bit too small, and returns one sample less). An `offset` also works in files in which libsndfile cannot seek
    (GSM, G.72x; DALI reads those from their beginning). Of a file of more than 16 MB only the selected part is read.

    Raises (at the first sample): RuntimeError for a manifest that cannot be read, or if no entry is left. At its batch:
    RuntimeError for a file that is missing or not a sound file, and for an offset beyond the end.

    >>> import ndd, json, pathlib, soundfile, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> soundfile.write(folder / "a.wav", [0.5, -0.5, 0.25], 8000)
    >>> entry = {"audio_filepath": str(folder / "a.wav"), "text": "yes"}
    >>> _ = (folder / "all.json").write_text(json.dumps(entry))
    >>> samples, rate, text = ndd.readers.NemoAsr(manifest_filepaths=folder / "all.json")[0]
    >>> samples.torch().tolist(), rate.item(), bytes(text.numpy()).decode()
    ([0.5, -0.5, 0.25], 8000.0, 'yes')
    """

    @classmethod
    def _outputs(
        cls,
        *,
        dtype: DType = float32,
        downmix: bool = True,
        read_idxs: bool = False,
        read_sample_rate: bool = True,
        read_text: bool = True,
        **_others: Any,
    ) -> tuple[Output, ...]:
        every = (
            (Output("audio", dtype, 1 if downmix else 2), True),
            (Output("sample_rate", float32, 0), read_sample_rate),
            (Output("text", uint8, 1), read_text),
            (Output("index", int64, 1), read_idxs),
        )
        return tuple([output for output, wanted in every if wanted])

    def _open(
        self,
        *,
        manifest_filepaths: FilePath | Sequence[FilePath],
        downmix: bool = True,
        dtype: DType = float32,
        max_duration: float = 0.0,
        min_duration: float = 0.0,
        normalize_text: bool | None = None,
        quality: float = 50.0,
        read_idxs: bool = False,
        read_sample_rate: bool = True,
        read_text: bool = True,
        sample_rate: float = -1.0,
    ) -> RecordStore:
        if dtype not in (float32, int16, int32):
            raise RuntimeError(f"{self._display}: Unsupported output type: {dtype}. Expected one of f32, i16, i32.")
        if not 0 <= quality <= 100:
            raise RuntimeError(f"{self._display}: `quality`: expected 0 to 100, got {quality}")
        entries: list[Entry] = []
        for path in listed_names(self._display, "manifest_filepaths", manifest_filepaths):
            entries += read_manifest(self._display, path, min_duration, max_duration)
        if not entries:
            raise RuntimeError(
                f"{self._display}: No files found in {manifest_filepaths}: it has no line that can be read and is "
                f"within `min_duration`={min_duration:g} and `max_duration`={max_duration:g} (0: no limit)"
            )
        wanted = Wanted(np.dtype(dtype.numpy), downmix, sample_rate, quality)
        return _Recordings(entries, wanted, (True, read_sample_rate, read_text, read_idxs))


class Entry(NamedTuple):
    """A line of a manifest."""

    path: str
    offset: float
    duration: float | None
    text: str
    index: int


def read_manifest(reader: str, path: str, shortest: float, longest: float) -> list[Entry]:
    """The entries of a manifest with a duration within the limits."""
    entries: list[Entry] = []
    broken = 0
    example = ""
    least, most = float(np.float32(shortest)), float(np.float32(longest))  # DALI's arguments are 32-bit
    for number, line in enumerate(read_lines(reader, path), 1):
        if not line.strip():
            continue
        try:
            # Windows editors write a byte order mark at the beginning of a file; DALI skips the line with it.
            entry = _entry(json.loads(line.removeprefix("\ufeff")), len(entries))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            broken += 1
            example = example or f"line {number}: {error}"
            continue
        length = -1.0 if entry.duration is None else entry.duration
        if (length >= least and (most <= 0 or length <= most)) or (least <= 0 and length < 0):
            entries.append(entry)
    if broken:
        text = f"{reader}: {path}: {broken} lines are left out. The first: {example}"
        warn_user(without_secrets(text))
    first = next((e.path for e in entries if not (os.path.isabs(e.path) or is_remote(e.path))), None)
    if first is not None and not os.path.exists(first):
        folder = os.path.dirname(without_query(path))
        if is_remote(path) or os.path.exists(os.path.join(folder, first)):
            entries = [e if is_remote(e.path) else e._replace(path=os.path.join(folder, e.path)) for e in entries]
    return entries


def _entry(fields: Any, index: int) -> Entry:
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, got {type(fields).__name__}: each line is one entry")
    path, text = fields.get("audio_filepath"), fields.get("text", "")
    if not isinstance(path, str) or not isinstance(text, str):
        raise ValueError("expected texts as `audio_filepath` and `text`")
    duration, offset = fields.get("duration"), fields.get("offset", 0.0)
    for value in (duration, offset):
        if value is not None and (isinstance(value, bool) or not math.isfinite(value)):
            raise ValueError(f"expected seconds as `duration` and `offset`, got {value!r}")
    return Entry(path, float(offset or 0), None if duration is None or duration < 0 else float(duration), text, index)


class _Recordings(RecordStore):
    def __init__(self, entries: list[Entry], wanted: Wanted, outputs: tuple[bool, ...]):
        self._entries = entries
        self._wanted = wanted
        self._outputs = outputs
        self._usual = UsualSize()
        self._remote = any(is_remote(entry.path) for entry in entries)
        if self._remote:
            self.at_once, self.threads = connections(), THREADS_OF_STORES

    def __len__(self) -> int:
        return len(self._entries)

    def source(self, number: int) -> str:
        return self._entries[number].path

    def record(self, number: int) -> Record:
        entry = self._entries[number]
        source = _file(entry.path)
        samples, rate = (
            decode(source, self._part(entry)) if isinstance(source, str) else decode_one(source, self._part(entry))
        )
        columns = self._columns([entry], [samples], np.array([rate]))
        return tuple([samples_of(column)[0] for column in columns])

    def records(self, numbers: Sequence[int]) -> Records:
        """Several recordings, decoded together."""
        together = len(numbers) if self._remote else _OPEN_AT_ONCE
        return Records.joined(
            [self._read(numbers[start : start + together]) for start in range(0, len(numbers), together)]
        )

    def _read(self, numbers: Sequence[int]) -> Records:
        entries = [self._entries[number] for number in numbers]
        paths = [entry.path for entry in entries]
        if not self._remote:
            with OpenFiles(paths) as files:
                fit = ((files.sizes >= 0) & (files.sizes <= _LARGE)).all()
            if not fit:  # each with its own error; large files are not read into memory
                return Records.of(super().records(numbers))
        contents, faults = read_files(paths, self._usual)
        if faults:
            return Records.of(super().records(numbers))
        sources = samples_of(contents)
        starts = np.array([entry.offset for entry in entries], np.float64)
        durations = np.array([np.nan if entry.duration is None else entry.duration for entry in entries], np.float64)
        decoded = decode_several(sources, self._wanted, starts, durations)
        if decoded.whole:
            return Records.from_columns(
                self._columns(entries, Packed.of(decoded.flat, decoded.places, decoded.shapes), decoded.rates)
            )
        parts, rates, errors = decoded.parts(), decoded.rates.copy(), {}
        for i in np.flatnonzero(~decoded.done).tolist():
            try:
                parts[i], rates[i] = decode(sources[i], self._part(entries[i]))
            except Exception as error:
                errors[i] = error
        return Records.from_columns(self._columns(entries, parts, rates), errors)

    def _part(self, entry: Entry) -> Wanted:
        return self._wanted._replace(start=entry.offset, duration=entry.duration)

    def _columns(self, entries: list[Entry], samples: Column, rates: np.ndarray) -> list[Column]:
        texts = [entry.text.encode("utf-8", "surrogatepass") for entry in entries]
        lengths = np.array([len(text) for text in texts], np.int64)
        every = (
            samples,
            rates.astype(np.float32),
            Packed.of(np.frombuffer(b"".join(texts), np.uint8), np.cumsum(lengths) - lengths, lengths),
            np.array([[entry.index] for entry in entries], np.int64),
        )
        return [column for column, wanted in zip(every, self._outputs, strict=True) if wanted]


def _file(path: str) -> np.ndarray | str:
    """The input of `decode`: the bytes, or the path of a large file."""
    if not is_remote(path) and os.path.getsize(path) > _LARGE:
        return path
    contents, faults = read_files([path])
    if faults:
        raise faults[0]
    return contents.arrays()[0] if isinstance(contents, Packed) else contents[0]
