"""Ctrl-C at any place on a batch's way to the loop: the next call gives that batch, and the state names it."""

import gc
import warnings

import numpy as np
import pytest
from interrupts import interrupted

import ndd
from ndd.readers import File, Output, Reader, RecordStore
from readers.epochs import flat, labels_of


class Numbers(RecordStore):
    def __len__(self):
        return 7

    def record(self, number):
        return np.zeros(2, np.uint8), np.array([number], np.int32)

    def source(self, number):
        return f"memory:{number}"


class Memory(Reader):
    def _open(self):
        return Numbers()

    @classmethod
    def _outputs(cls):
        return Output("data", ndd.uint8, 1), Output("number", ndd.int32, 1)


@pytest.fixture(autouse=True)
def only_places_of_the_calls():
    """The collector runs finalisers at places of its own."""
    gc.disable()
    yield
    gc.enable()


WAYS = {
    "batches": lambda reader: iter(reader.next_epoch(2)),
    "a smaller last batch": lambda reader: iter(reader.next_epoch(2, last_batch="partial")),
    "samples": lambda reader: iter(reader.next_epoch(last_batch="partial")),
    "calls": lambda reader: iter(reader, None),
}


def rest(items):
    """Up to the end, or of what has no end the first epoch."""
    result = []
    for item in items:
        result.append(labels_of(item))
        if 6 in np.ravel(result[-1]):
            break
    return flat([single if isinstance(single, list) else [single] for single in result])[:7]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.drawn(1)
def test_the_interrupted_batch_comes_next(way, before):
    number, step = 1, 2 if before else 17  # the first batch opens the reader, at some 300 places
    while True:
        reader = Memory()
        epoch = WAYS[way](reader)
        seen = [next(epoch) for _ in range(before)]
        stroke = interrupted(number)
        with stroke:
            seen.append(epoch.__next__())  # as a `for` loop does; `next(epoch)` is a call of its own
        arguments = flat([np.ravel(labels_of(single)).tolist() for single in seen])
        state = reader.get_state()
        assert arguments + [n for n in rest(epoch) if n not in arguments] == list(range(7)), stroke.place
        again = Memory()
        again.set_state(state)
        assert arguments + [n for n in rest(WAYS[way](again)) if n not in arguments] == list(range(7)), stroke.place
        if stroke.place is None:
            break
        number += step
    assert number > (30 if before else 200)


def test_a_resumed_epoch_ends_where_it_would_have_ended():
    first = Memory()
    epoch = first.next_epoch(2, last_batch="partial")
    next(epoch)
    state, number, stroke = first.get_state(), 1, None
    while stroke is None or stroke.place is not None:
        reader = Memory()
        reader.set_state(state)
        loop, stroke, seen = iter(reader.next_epoch(2, last_batch="partial")), interrupted(number), []
        with stroke:
            seen.append(loop.__next__())
        seen += list(loop)
        assert [labels_of(single) for single in seen] == [[2, 3], [4, 5], [6]], stroke.place
        number += 5


def test_a_captured_loop_loses_nothing():
    """Its iterator ends with the interrupt; the next loop begins with the batch that the body has not seen."""

    def body(labels):
        seen.append(ndd.cast(labels, dtype=ndd.int32).torch()[0].item())

    number, stroke, seen = 1, None, []
    while stroke is None or stroke.place is not None:
        reader, stroke = Memory(), interrupted(number)
        loop = reader.next_epoch(2, capture=True)
        seen.clear()
        body(next(loop)[1])
        with stroke:
            loop.__next__()
            if stroke.place is None:
                break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _, labels in reader.next_epoch(2, capture=True):
                body(labels)
        assert seen[:4] == [0, 2, 4, 6], stroke.place
        number += 1
    assert number > 30


def test_a_record_that_cannot_be_read_is_passed_by_once(tmp_path):
    """Unlike an interrupt: otherwise the loop could never go on."""
    files = [str(tmp_path / f"{i}") for i in range(4)]
    for name in (files[0], files[1], files[3]):
        open(name, "wb").close()
    epoch, seen = iter(File(files=files).next_epoch()), []
    for _ in range(4):
        try:
            seen.append(labels_of(next(epoch)))
        except RuntimeError:
            seen.append("error")
    assert seen == [0, 1, "error", 3]
