"""Pipelines over numbered samples, in ndd and in DALI, and what iterators over them give."""

from __future__ import annotations

import logging
import tempfile
from functools import lru_cache
from pathlib import Path

import ndd
import ndd.plugin.pytorch as ours
from ndd import fn


@lru_cache(1)
def number_files():
    """Sixteen small files; what is in them does not matter, the labels say which is which."""
    folder = Path(tempfile.mkdtemp(prefix="ndd-numbers-"))
    paths = [folder / f"{i}.bin" for i in range(1, 17)]
    for path in paths:
        path.write_bytes(path.name.encode())
    return [str(p) for p in paths]


class Library:
    """One of the two: its pipelines, its functions, its iterators."""

    def __init__(self, name):
        self.name = name
        if name == "ndd":
            self.pipelines, self.fn, self.plugin = ndd, ndd.fn, ours
        else:
            import nvidia.dali as dali
            import nvidia.dali.fn as fn
            import nvidia.dali.plugin.pytorch as theirs

            self.pipelines, self.fn, self.plugin = dali, fn, theirs

    def numbers(self, n, batch, shards=1, shard=0, pad=False, stick=False, shuffle=False, depth=2):
        """A pipeline whose one output is the labels 1 .. n; its reader is called "Reader"."""
        files = [number_files()[i % 16] for i in range(n)]

        @self.pipelines.pipeline_def(
            batch_size=batch, num_threads=1, device_id=None, seed=3, prefetch_queue_depth=depth
        )
        def body():
            _, label = self.fn.readers.file(
                files=files,
                labels=list(range(1, n + 1)),
                num_shards=shards,
                shard_id=shard,
                pad_last_batch=pad,
                stick_to_shard=stick,
                random_shuffle=shuffle,
                seed=77,
                name="Reader",
            )
            return label

        return body()

    def iterator(self, pipelines, policy="FILL", **arguments):
        policy = self.plugin.LastBatchPolicy[policy]
        return self.plugin.DALIGenericIterator(pipelines, ["label"], last_batch_policy=policy, **arguments)


def rows(step):
    """The numbers of one step: a list for each pipeline."""
    return [d["label"].reshape(len(d["label"]), -1)[:, 0].tolist() for d in step]


def epochs(library, pipelines, policy="FILL", count=3, **arguments):
    """What `count` epochs give: (_size, len, steps) of each."""
    iterator = library.iterator(pipelines, policy, **arguments)
    result = []
    for _ in range(count):
        size, length = iterator._size, len(iterator)
        result.append((size, length, [rows(step) for step in iterator]))
        iterator.reset()
    return result


class Warnings(logging.Handler):
    """Counts what is logged on the root logger."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += 1


def trace(library, pipelines, operations, policy, **arguments):
    """What a program of `next`, `iter`, `reset`, `for` and `break` sees: results, sizes, number of warnings."""
    warnings = Warnings()
    root = logging.getLogger()
    root.addHandler(warnings)
    result = []
    try:
        iterator = library.iterator(pipelines, policy, **arguments)
        for operation in operations:
            try:
                result.append(_step(iterator, operation))
            except StopIteration:
                result.append("stop")
            except Exception as error:
                result.append(type(error).__name__)
            result.append((operation, iterator._size, iterator._size < 0 or len(iterator), warnings.count))
    except Exception as error:
        result.append(type(error).__name__)
    finally:
        root.removeHandler(warnings)
    return result


def _step(iterator, operation):
    if operation == "next":
        return rows(next(iterator))
    if operation == "iter":
        return iter(iterator) is iterator
    if operation == "reset":
        return iterator.reset()
    seen = []
    for i, step in enumerate(iterator):
        seen.append(rows(step))
        if i == (1 if operation == "break" else 25):
            break
    return seen


def fed(batches, batch_size=2, library=ndd, functions=fn, **options):
    """A pipeline with one output, of a list of batches or any other source."""
    options = {"source": batches, **options}

    @library.pipeline_def(batch_size=batch_size, num_threads=1, device_id=None)
    def body():
        return functions.external_source(**options)

    return body()


def construct(our, pipes, names=("label",), **arguments):
    """An iterator of ndd's over pipelines of `our`."""
    return ours.DALIGenericIterator(pipes, names, **arguments)


def two(n=7, batch=2, **options):
    """A pipeline of data and labels 1 .. n."""
    files = [number_files()[i] for i in range(n)]

    @ndd.pipeline_def(batch_size=batch, num_threads=1, **options)
    def body():
        _, label = fn.readers.file(files=files, labels=list(range(1, n + 1)), name="Reader")
        return fn.cast(label, dtype=ndd.types.FLOAT) * 10, label

    return body()
