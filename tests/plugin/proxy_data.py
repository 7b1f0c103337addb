"""Data sets for the proxy's tests, in a module that spawned workers can import."""

from __future__ import annotations

import os
import signal
import time
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from torch.utils.data import Dataset, IterableDataset

Pair = namedtuple("Pair", ["data", "number"])


@dataclass
class Record:
    data: object
    number: object


class Numbers(Dataset):
    """Sample `i` is the transform of `i`, and `i`; `mode` says what happens at `at`, or what form a sample has."""

    def __init__(self, transform, count=10, mode="", at=-1, delay=0.0):
        self.transform, self.count, self.mode, self.at, self.delay = transform, count, mode, at, delay

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.delay:
            time.sleep(self.delay * (i % 3))
        if i == self.at:
            self.misbehave()
        value = self.transform(np.full(4, i, np.int32))
        if self.mode == "bare":
            return value
        if self.mode == "dict":
            return {"data": value, "inner": [value, (i,)], "name": f"n{i}"}
        if self.mode == "named":
            return Pair(value, i)
        return value, i

    def misbehave(self):
        if self.mode == "raise":
            raise ValueError("a bad sample")
        if self.mode == "exit":
            os._exit(3)
        if self.mode == "kill":
            os.kill(os.getpid(), signal.SIGKILL)


class Stream(IterableDataset):
    def __init__(self, transform, count):
        self.transform, self.count = transform, count

    def __iter__(self):
        return ((self.transform(np.full(4, i, np.int32)), i) for i in range(self.count))


class Shapes(Numbers):
    """Inputs that the pipeline gives back as they are, or cannot take."""

    def __getitem__(self, i):
        return self.transform(self.mode(i)), i


def growing(i):
    return np.zeros(1 + i // 4, np.int32) if i < 4 else np.zeros(1 + i, np.int32)


def text_at_five(i):
    return "five" if i == 5 else np.zeros(2)


def mixed_types_at_five(i):
    return np.zeros(2, np.float32 if i == 5 else np.int32)


class Made(Dataset):
    """Eight samples: what the transform makes of `make(i)`."""

    def __init__(self, transform, make):
        self.transform, self.make = transform, make

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.transform(self.make(i))


class Pairs(Dataset):
    """Two calls of the transform for a sample."""

    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.transform(np.int32(i)), self.transform(np.int32(i + 100))
