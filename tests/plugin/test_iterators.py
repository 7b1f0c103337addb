"""The iterators: wrong uses, sizes, and frameworks that use them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numbers_pipeline import construct, fed, two

import ndd.plugin.pytorch as plugin

WRONG = [
    ("no pipelines", AssertionError, lambda o: (None, {})),
    ("an empty list", AssertionError, lambda o: ([], {})),
    ("batch sizes", AssertionError, lambda o: ([o.numbers(7, 2), o.numbers(7, 3)], {"reader_name": "Reader"})),
    ("size 0", AssertionError, lambda o: (o.numbers(7, 2), {"size": 0})),
    ("size -1 for several", AssertionError, lambda o: ([o.numbers(7, 2), o.numbers(7, 2)], {})),
    ("size and reader", AssertionError, lambda o: (o.numbers(7, 2), {"size": 7, "reader_name": "Reader"})),
    (
        "padded and reader",
        AssertionError,
        lambda o: (o.numbers(7, 2), {"last_batch_padded": True, "reader_name": "Reader"}),
    ),
    ("epoch sizes", AssertionError, lambda o: ([o.numbers(7, 2), o.numbers(8, 2)], {"reader_name": "Reader"})),
    ("shards", AssertionError, lambda o: ([o.numbers(7, 2), o.numbers(7, 2, 2, 1)], {"reader_name": "Reader"})),
    ("padding", AssertionError, lambda o: ([o.numbers(7, 2), o.numbers(7, 2, pad=True)], {"reader_name": "Reader"})),
    (
        "sticking",
        AssertionError,
        lambda o: ([o.numbers(7, 2, 2, 0), o.numbers(7, 2, 2, 1, stick=True)], {"reader_name": "Reader"}),
    ),
    ("a name for a policy", ValueError, lambda o: (o.numbers(7, 2), {"last_batch_policy": "FILL"})),
    ("a number for a policy", ValueError, lambda o: (o.numbers(7, 2), {"last_batch_policy": 0})),
    ("no policy", ValueError, lambda o: (o.numbers(7, 2), {"last_batch_policy": None})),
    ("auto_reset 1", ValueError, lambda o: (o.numbers(7, 2), {"auto_reset": 1})),
    ("auto_reset 0", ValueError, lambda o: (o.numbers(7, 2), {"auto_reset": 0})),
    ("auto_reset 'True'", ValueError, lambda o: (o.numbers(7, 2), {"auto_reset": "True"})),
    ("another reader", RuntimeError, lambda o: (o.numbers(7, 2), {"reader_name": "Writer"})),
    (
        "batch larger than the shard",
        RuntimeError,
        lambda o: (
            o.numbers(3, 5),
            {"reader_name": "Reader", "last_batch_policy": o.plugin.LastBatchPolicy.DROP},
        ),
    ),
]


@pytest.mark.parametrize(("error", "make"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
@pytest.mark.filterwarnings("ignore")
def test_wrong_uses(our, error, make):
    pipes, arguments = make(our)
    with pytest.raises(error) as caught:
        construct(our, pipes, **arguments)
    assert len(str(caught.value)) > 15


@pytest.mark.oracle
@pytest.mark.parametrize(("error", "make"), [w[1:] for w in WRONG[2:]], ids=[w[0] for w in WRONG[2:]])
@pytest.mark.filterwarnings("ignore")
def test_dali_refuses_the_same(their, error, make):
    pipes, arguments = make(their)
    with pytest.raises(error):
        their.plugin.DALIGenericIterator(pipes, ["label"], **arguments)


def test_names_of_the_outputs(our, one):
    with pytest.raises(AssertionError, match="distinct"):
        construct(our, one(), ["a", "a"], reader_name="Reader")
    with pytest.raises(KeyError):
        construct(our, one(), ["a", "b"], reader_name="Reader")
    with pytest.raises(IndexError):
        construct(our, one(), [], reader_name="Reader")
    late = construct(our, one(), ["a", "b"], reader_name="Reader", prepare_first_batch=False)
    with pytest.raises(KeyError):
        next(late)
    with pytest.raises(AssertionError, match="dense"):
        plugin.DALIRaggedIterator(one(), ["a"], reader_name="Reader", output_types=["thick"])


def test_the_unknown_reader_is_named(our, one):
    with pytest.raises(RuntimeError, match=r"Writer.*Reader"):
        construct(our, one(), reader_name="Writer")


def test_an_empty_epoch_where_nothing_is_prepared(our):
    drop = {"reader_name": "Reader", "last_batch_policy": plugin.LastBatchPolicy.DROP}
    assert list(construct(our, our.numbers(3, 5), prepare_first_batch=False, **drop)) == []
    assert list(construct(our, fed([]), prepare_first_batch=False)) == []
    with pytest.raises(RuntimeError, match="no data in the pipeline"):
        construct(our, fed([]))


def test_a_pipeline_serves_one_master(our, one):
    used = one()
    used.run()
    with pytest.raises(RuntimeError, match="run"):
        construct(our, used, reader_name="Reader")
    taken = one()
    construct(our, taken, reader_name="Reader", prepare_first_batch=False)
    with pytest.raises(RuntimeError, match="iterator"):
        taken.run()
    with pytest.raises(RuntimeError, match="iterator"):
        taken.schedule_run()


def test_asking_a_pipeline_about_itself_does_not_use_it(our, one):
    pipe = one()
    assert pipe.epoch_size("Reader") == 7
    assert pipe.reader_meta("Reader")["number_of_shards"] == 1
    assert next(construct(our, pipe, reader_name="Reader"))[0]["label"].tolist() == [[1], [2]]


def test_short_batches_only_without_a_size(our):
    batches = [np.zeros((2, 1)), np.zeros((1, 1)), np.zeros((2, 1))]
    assert [len(d[0]["label"]) for d in construct(our, fed(batches))] == [2, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted = construct(our, fed(batches), size=6)
    next(counted)
    with pytest.raises(AssertionError, match="batch of 1, expected 2"):
        next(counted)


def test_larger_batches_are_refused(our):
    with pytest.raises(RuntimeError, match="batch of 3 samples"):
        construct(our, fed([np.zeros((3, 1))]))


def test_warnings_point_at_the_caller(one):
    with pytest.warns(Warning, match="reader_name") as caught:
        plugin.DALIGenericIterator(one(), ["label"], size=7)
    assert caught[0].filename == __file__
    for fill, expected in [(True, [7, 1]), (False, [7])]:
        with pytest.warns(Warning, match="fill_last_batch") as caught:
            iterator = plugin.DALIClassificationIterator(two(), reader_name="Reader", fill_last_batch=fill)
        assert caught[0].filename == __file__
        assert list(iterator)[-1][0]["label"].flatten().tolist() == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugin.DALIGenericIterator(one(), ["label"], reader_name="Reader")


def test_fill_last_batch_overrides_the_policy():
    with pytest.warns(Warning, match="fill_last_batch"):
        iterator = plugin.DALIClassificationIterator(
            two(), reader_name="Reader", fill_last_batch=False, last_batch_policy=plugin.LastBatchPolicy.DROP
        )
    assert len(list(iterator)) == 4


def test_all_arguments_by_position(one):
    generic = plugin.DALIGenericIterator(
        [one()], ["a"], -1, "Reader", True, None, False, False, plugin.LastBatchPolicy.DROP, True
    )
    ragged = plugin.DALIRaggedIterator(
        [one()], ["a"], -1, "Reader", ["dense"], True, None, False, False, plugin.LastBatchPolicy.DROP, True
    )
    classic = plugin.DALIClassificationIterator(
        [two()], -1, "Reader", True, None, False, False, plugin.LastBatchPolicy.DROP, True
    )
    assert len(generic) == len(ragged) == len(classic) == 3
    assert isinstance(classic, plugin.DALIGenericIterator)
    assert not isinstance(ragged, plugin.DALIGenericIterator)


def test_the_policy_is_dalis(their):
    ours = {p.name: p.value for p in plugin.LastBatchPolicy}
    assert ours == {p.name: p.value for p in their.plugin.LastBatchPolicy} == {"FILL": 0, "DROP": 1, "PARTIAL": 2}


def test_a_sanity_check_of_two_batches_and_then_epochs(our, one):
    """What Lightning does: `iter()` again and again, `len()`, loops of `next` with a limit."""
    iterator = construct(
        our, one(pad=True), reader_name="Reader", last_batch_policy=plugin.LastBatchPolicy.PARTIAL, auto_reset=True
    )
    sanity = iter(iterator)
    assert [next(sanity)[0]["label"].flatten().tolist() for _ in range(2)] == [[1, 2], [3, 4]]
    rest = [s[0]["label"].flatten().tolist() for s in iterator]
    assert rest == [[5, 6], [7]]
    for _ in range(2):
        assert [s[0]["label"].flatten().tolist() for s in iterator] == [[1, 2], [3, 4], [5, 6], [7]]
        assert len(iterator) == 4


def test_a_loop_that_looks_one_batch_ahead(our, one):
    """What Accelerate does, to know which batch is the last."""
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=True)
    for _ in range(2):
        walk, seen = iter(iterator), []
        current = next(walk)
        while current is not None:
            following = next(walk, None)
            seen.append((current[0]["label"].flatten().tolist(), following is None))
            current = following
        assert seen == [([1, 2], False), ([3, 4], False), ([5, 6], False), ([7, 7], True)]
