"""`MixedStore`: the records of several stores, one store after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd.readers.output import Record
from ndd.readers.stores.records import Records, RecordStore


class MixedStore(RecordStore):
    """The records of `stores`, numbered consecutively."""

    def __init__(self, stores: Sequence[RecordStore]):
        self._stores = list(stores)
        self._firsts = np.cumsum([0, *map(len, stores)])
        self.threads = max(store.threads for store in stores)
        self.at_once = max(store.at_once for store in stores)

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def _place(self, number: int) -> tuple[RecordStore, int]:
        k = int(np.searchsorted(self._firsts, number, "right")) - 1
        return self._stores[k], number - int(self._firsts[k])

    def source(self, number: int) -> str:
        """The origin of the record according to its store."""
        store, own = self._place(number)
        return store.source(own)

    def record(self, number: int) -> Record:
        """One record."""
        store, own = self._place(number)
        return store.record(own)

    def records(self, numbers: Sequence[int]) -> Records:
        """Several records, store by store."""
        listed = np.asarray(numbers, np.int64)
        which = np.searchsorted(self._firsts, listed, "right") - 1
        order = np.argsort(which, kind="stable")
        parts = [
            Records.of(self._stores[k].records((listed[which == k] - self._firsts[k]).tolist()))
            for k in np.unique(which).tolist()
        ]
        return Records.joined(parts).picked(np.argsort(order))

    def close(self) -> None:
        """Closes all of them."""
        for store in self._stores:
            store.close()
