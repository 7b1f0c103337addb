"""Ctrl-C at any place of a run: the next one gives what it would have given, and nothing stays entered."""

import gc

import numpy as np
import pytest
from interrupts import interrupted

import ndd
from ndd._tensor import Device
from ndd.plugin.pytorch import DALIGenericIterator, LastBatchPolicy


@pytest.fixture(autouse=True)
def only_places_of_the_calls():
    """The collector runs finalisers at places of its own."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def files(tmp_path):
    names = [str(tmp_path / str(number)) for number in range(7)]
    for name in names:
        open(name, "wb").close()
    return names


@ndd.pipeline_def(batch_size=2, num_threads=1, device_id=None)
def labels_plus_one(files):
    return ndd.fn.readers.file(files=files, name="reader")[1] + 1


def by_hand(files, options):
    pipe = labels_plus_one(files, **options)
    return pipe.run, lambda outputs: np.ravel(outputs[0].as_array()).tolist()


def by_iterator(files, options):
    loop = DALIGenericIterator(
        labels_plus_one(files, **options),
        ["label"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        prepare_first_batch=False,
    )
    return loop.__next__, lambda result: result[0]["label"].flatten().tolist()


def over_a_reader(files, options):
    epoch = ndd.readers.File(files=files).next_epoch(2, last_batch="partial")
    loop = DALIGenericIterator(epoch, ["data", "label"], prepare_first_batch=False)
    return loop.__next__, lambda result: (result[0]["label"] + 1).flatten().tolist()


@pytest.mark.parametrize(
    ("way", "options", "before", "step"),
    [
        (by_hand, {}, 0, 60),
        (by_hand, {"prefetch_queue_depth": 1}, 1, 23),
        (by_hand, {}, 2, 1),
        (by_iterator, {}, 0, 59),
        (by_iterator, {"prefetch_queue_depth": 1}, 1, 29),
        (by_iterator, {"enable_checkpointing": True}, 2, 7),
        (over_a_reader, {}, 1, 11),
    ],
)
@pytest.mark.drawn(1)
def test_no_batch_is_lost(files, way, options, before, step):
    number, stroke = 1, None
    while stroke is None or stroke.place is not None:
        take, labels = way(files, options)
        seen, stroke = [take() for _ in range(before)], interrupted(number)
        with stroke:
            seen.append(take())
        seen += [take() for _ in range(4 - len(seen))]
        assert [label for batch in seen for label in labels(batch)][:7] == [1, 2, 3, 4, 5, 6, 7], stroke.place
        assert ndd.EvalContext.current() is ndd.EvalContext.default()
        assert ndd.Pipeline.current() is None
        number += step
    assert number > 10 * step


def test_the_checkpoint_of_an_interrupted_iterator(files):
    options, number, stroke = {"enable_checkpointing": True}, 1, None
    while stroke is None or stroke.place is not None:
        pipe, stroke = labels_plus_one(files, **options), interrupted(number)
        loop = DALIGenericIterator(pipe, ["label"], reader_name="reader", prepare_first_batch=False)
        seen = [next(loop)[0]["label"].flatten().tolist()]
        with stroke:
            seen.append(loop.__next__()[0]["label"].flatten().tolist())
        again = labels_plus_one(files, checkpoint=loop.checkpoints()[0], **options)
        rest = DALIGenericIterator(again, ["label"], reader_name="reader")
        seen += [item[0]["label"].flatten().tolist() for item in rest]
        assert [label for batch in seen for label in batch][:7] == [1, 2, 3, 4, 5, 6, 7], stroke.place
        number += 13


@pytest.mark.parametrize("prefetch", [0, 2])
def test_no_item_of_a_source_is_lost(prefetch):
    def result():
        last = -1

        def following():
            nonlocal last
            last += 1
            return last

        return following

    number, stroke = 1, None
    while stroke is None or stroke.place is not None:
        source, stroke = ndd.ExternalSource(result(), prefetch=prefetch), interrupted(number)
        seen = [source()]
        with stroke:
            seen.append(source())
        seen += [source() for _ in range(2)]
        assert [item.item() for item in seen[:3]] == [0, 1, 2], stroke.place
        number += 1
    assert number > 20


def test_no_device_stays_entered():
    """Of a context that is interrupted where it is entered or left, and then left as `Pipeline.run` does."""
    number, stroke, outer = 1, None, list(Device._local.stack)
    while stroke is None or stroke.place is not None:
        context, stroke = ndd.EvalContext(num_threads=1), interrupted(number)
        with stroke:
            context.__enter__()
            context.__exit__(None, None, None)
        while ndd.EvalContext.current() is context:
            context.__exit__(None, None, None)
        assert Device._local.stack == outer, stroke.place
        number += 1
    assert number > 3
