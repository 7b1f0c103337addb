"""`Dataset`: the store of a reader, the order of its records, and the part of a saved state that belongs to them."""

from __future__ import annotations

from typing import Any

from ndd.readers.epochs import state as states
from ndd.readers.options import Options
from ndd.readers.sampling.resharding import of_all_ranks, of_one_rank, resumed_order
from ndd.readers.sampling.sampler import Order, Shards
from ndd.readers.stores.records import RecordStore


class Dataset:
    """The store and the order, opened at the first sample. A state that is restored before is checked then.

    Args:
        reader: how errors call the reader.
        options: those that all readers share.
        permuted: whether `random_shuffle` permutes all samples before its buffer.

    Attributes:
        opened: the store and the order, None before they are opened.
        seed: of the order.
    """

    def __init__(self, reader: str, options: Options, permuted: bool):
        self._reader, self._options, self._permuted = reader, options, permuted
        self.opened: tuple[RecordStore, Order] | None = None
        self.seed = options.order_seed
        self._names = 0  # of the samples, see `states.names_mark`
        self._before: dict[str, Any] | None = None  # the places of the shards that an epoch was shared out from
        self._unchecked: dict[str, Any] = {}  # a restored state that waits for the data it must belong to

    def open(self, store: RecordStore) -> tuple[RecordStore, Order]:
        """Takes over the store. RuntimeError for more shards than samples, ValueError if the restored state is of other data."""
        shards = self._options.shards(len(store))
        if shards.count > shards.size:
            raise RuntimeError(
                f'{self._reader}: Assert on "num_shards_ <= Size()" failed: The number of input samples: '
                f"{shards.size} must not be below num_shards={shards.count}"
            )
        self._names = states.names_mark(store)
        states.check_data(self._reader, self._unchecked, shards, self._names)
        self._options.warn_of_small_buffer(self._reader, self._permuted, len(store))
        self.opened, self._unchecked = (store, self._order(shards)), {}
        return self.opened

    def close(self) -> None:
        """Closes files; later reads open them again."""
        if self.opened is not None:
            self.opened[0].close()

    def saved(self) -> dict[str, Any]:
        """Which data and which order this is, as plain values."""
        shards = self.opened[1].shards if self.opened else None
        return {
            "size": shards.size if shards else self._unchecked.get("size"),
            "shards": shards.place if shards else self._unchecked.get("shards", self._options.place()),
            "names": self._names if shards else self._unchecked.get("names"),
            **self._options.order_fields(),
            "seed": self.seed,
            **({"before": self._before} if self._before else {}),
        }

    def restore(self, fields: dict[str, Any]) -> None:
        """Takes the seed and the places of other ranks from a state. ValueError, without any change, if the state is of other
        data or another order."""
        states.check_order(self._reader, fields, self._options.order_fields())
        if self.opened is not None:
            states.check_data(self._reader, fields, self.opened[1].shards, self._names)
        former = self.seed, self._before
        self.seed, self._before = fields["seed"], fields.get("before")
        try:
            if self.opened is None:
                self._unchecked = fields
            else:
                self.opened = self.opened[0], self._order(self.opened[1].shards)
        except BaseException:
            self.seed, self._before = former
            raise

    def begin_afresh(self) -> None:
        """Forgets the places of other ranks and the state that waits to be checked. The seed stays."""
        self._unchecked = {}
        if self._before is not None:
            self._before = None
            self.opened = None if self.opened is None else (self.opened[0], self._order(self.opened[1].shards))

    def of_this_rank(
        self, saved: list[dict[str, Any]], many: bool, shards: Shards, anew: bool = False
    ) -> dict[str, Any]:
        """The state for this process, made of the states of all ranks (`many`) or of any one of them.

        `anew` divides the rest of the epoch again even if the number of ranks is the same.
        """
        for state in saved:
            states.check_order(self._reader, state, self._options.order_fields())
            states.check_data(self._reader, {**state, "shards": None}, shards, self._names)
        make = lambda own, seed: self._options.order(own, self._permuted, seed)  # noqa: E731
        return (of_all_ranks if many else of_one_rank)(self._reader, saved, shards, make, anew)

    def _order(self, shards: Shards) -> Order:
        return resumed_order(lambda own: self._options.order(own, self._permuted, self.seed), shards, self._before)
