"""The iterators: wrong uses, rules of reset and iteration, what a step holds, sources of every kind."""

from __future__ import annotations

import gc
import logging
import warnings

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from numbers_pipeline import number_files, trace

import ndd
import ndd.plugin.pytorch as plugin
from ndd import fn

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
DALI_DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]


def fed(batches, batch_size=2, library=ndd, functions=fn, **options):
    """A pipeline with one output, of a list of batches or any other source."""
    options = {"source": batches, **options}

    @library.pipeline_def(batch_size=batch_size, num_threads=1, device_id=None)
    def body():
        return functions.external_source(**options)

    return body()


@pytest.fixture
def one(our):
    return lambda **options: our.numbers(7, 2, **options)


def construct(our, pipes, names=("label",), **arguments):
    return plugin.DALIGenericIterator(pipes, names, **arguments)


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


def test_warnings_point_at_the_caller(our, one):
    with pytest.warns(Warning, match="reader_name") as caught:
        construct(our, one(), size=7)
    assert caught[0].filename == __file__
    for fill, expected in [(True, [7, 1]), (False, [7])]:
        with pytest.warns(Warning, match="fill_last_batch") as caught:
            iterator = plugin.DALIClassificationIterator(two(), reader_name="Reader", fill_last_batch=fill)
        assert caught[0].filename == __file__
        assert list(iterator)[-1][0]["label"].flatten().tolist() == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        construct(our, one(), reader_name="Reader")


def two(n=7, batch=2, **options):
    """A pipeline of data and labels 1 .. n."""
    files = [number_files()[i] for i in range(n)]

    @ndd.pipeline_def(batch_size=batch, num_threads=1, **options)
    def body():
        _, label = fn.readers.file(files=files, labels=list(range(1, n + 1)), name="Reader")
        return fn.cast(label, dtype=ndd.types.FLOAT) * 10, label

    return body()


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


# What a step holds


def test_a_step_is_a_list_of_dicts_of_tensors():
    iterator = plugin.DALIClassificationIterator(two(), reader_name="Reader")
    step = next(iterator)
    assert isinstance(step, list)
    assert list(step[0]) == ["data", "label"]
    data, label = step[0].values()
    assert (data.dtype, label.dtype, tuple(label.shape)) == (torch.float32, torch.int32, (2, 1))
    assert data.is_contiguous()
    assert iter(iterator) is iterator
    assert (iterator.batch_size, iterator.size, iterator._size) == (2, 8, 8)
    assert iterator.output_map == ["data", "label"]
    assert iterator.next()[0]["label"].flatten().tolist() == [3, 4]
    with pytest.raises(TypeError):
        iterator[0]


@pytest.mark.parametrize("name", [*DALI_DTYPES, "uint16", "uint32", "uint64"])
def test_types_and_scalars(our, name):
    values = np.arange(4).astype(name)
    iterator = construct(our, fed([values[:2], values[2:]]))
    steps = [step[0]["label"] for step in iterator]
    assert {s.dtype for s in steps} == {getattr(torch, name)}
    assert [tuple(s.shape) for s in steps] == [(2,), (2,)]
    assert torch.cat(steps).to(torch.int64).tolist() == values.astype(np.int64).tolist()


def test_shapes_may_change_between_batches(our):
    shapes = [(2, 3, 4), (2, 5, 1)]
    for dynamic in (False, True):
        iterator = construct(our, fed([np.ones(s) for s in shapes]), dynamic_shape=dynamic)
        assert [tuple(s[0]["label"].shape) for s in iterator] == shapes


def test_a_short_last_batch_cuts_every_output():
    iterator = plugin.DALIClassificationIterator(
        two(), reader_name="Reader", last_batch_policy=plugin.LastBatchPolicy.PARTIAL
    )
    last = list(iterator)[-1][0]
    assert last["label"].tolist() == [[7]]
    assert last["data"].tolist() == [[70.0]]


def test_tensors_stay_valid_and_may_be_written_to(our):
    source = [np.full((2, 1000), i, np.int32) for i in range(6)]
    iterator = construct(our, fed(source))
    kept = []
    for i, step in enumerate(iterator):
        kept.append(step[0]["label"])
        if i % 2:
            kept[-1] += 100
    del iterator
    gc.collect()
    assert [t.unique().tolist() for t in kept] == [[0], [101], [2], [103], [4], [105]]
    assert [s[0, 0] for s in source] == list(range(6))


def test_no_copy_is_made():
    batch = ndd.batch(np.zeros((2, 8), np.float32))
    (step,) = plugin.DALIGenericIterator(iter([(batch,)]), ["x"])
    assert step[0]["x"].data_ptr() == batch.torch().data_ptr()


RAGGED = [np.arange(n, dtype=np.int32) + 10 * n for n in (2, 0, 3)]


def ragged_pipe():
    return fed([RAGGED, RAGGED], batch_size=3)


def test_ragged_outputs(our):
    with pytest.raises(RuntimeError, match="DALIRaggedIterator"):
        construct(our, ragged_pipe())
    with pytest.raises(RuntimeError, match="ragged"):
        plugin.DALIRaggedIterator(ragged_pipe(), ["x"])
    lists = plugin.DALIRaggedIterator(ragged_pipe(), ["x"], output_types=[plugin.DALIRaggedIterator.SPARSE_LIST_TAG])
    for step in lists:
        assert [t.tolist() for t in step[0]["x"]] == [a.tolist() for a in RAGGED]
    coo = plugin.DALIRaggedIterator(ragged_pipe(), ["x"], output_types=[plugin.DALIRaggedIterator.SPARSE_COO_TAG])
    sparse = next(coo)[0]["x"]
    assert tuple(sparse.shape) == (3, 3)
    assert sparse.to_dense().tolist() == [[20, 21, 0], [0, 0, 0], [30, 31, 32]]


@pytest.mark.oracle
@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo", "dense"])
def test_ragged_outputs_are_dalis(their, tag):
    batch = [a[:2] if tag == "dense" else a for a in (RAGGED[0], RAGGED[2])]
    found = []
    for library, functions, iterators in ((ndd, fn, plugin), (their.pipelines, their.fn, their.plugin)):
        pipe = fed([batch], library=library, functions=functions)
        found.append(next(iterators.DALIRaggedIterator(pipe, ["x"], output_types=[tag]))[0]["x"])
    ours, theirs = found
    if tag == "sparse_list":
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]
    elif tag == "sparse_coo":
        assert ours.coalesce().indices().tolist() == theirs.coalesce().indices().tolist()
        assert ours.to_dense().tolist() == theirs.to_dense().tolist()
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    else:
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("tag", ["sparse_list", "sparse_coo", "dense"])
def test_ragged_partial(one, tag):
    iterator = plugin.DALIRaggedIterator(
        one(),
        ["x"],
        reader_name="Reader",
        output_types=[tag],
        last_batch_policy=plugin.LastBatchPolicy.PARTIAL,
    )
    last = list(iterator)[-1][0]["x"]
    assert len(last) == 1
    assert int(last[0][0]) == 7


# reset, iter, StopIteration


@pytest.mark.parametrize("auto_reset", [False, None, "no"])
def test_the_end_stays_the_end_until_a_reset(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    for _ in range(4):
        next(iterator)
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
    iterator.reset()
    assert next(iterator)[0]["label"].flatten().tolist() == [1, 2]


@pytest.mark.parametrize("auto_reset", [True, "yes"])
def test_auto_reset_raises_once(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    for _ in range(2):
        assert len([next(iterator) for _ in range(4)]) == 4
        with pytest.raises(StopIteration):
            next(iterator)
    assert next(iterator)[0]["label"].flatten().tolist() == [1, 2]


@pytest.mark.parametrize("auto_reset", [True, False])
def test_loops_follow_each_other(our, one, auto_reset):
    iterator = construct(our, one(pad=True), reader_name="Reader", auto_reset=auto_reset)
    assert [len(list(iterator)) for _ in range(3)] == [4, 4, 4]


def said(caplog):
    """The levels of what iterators have said; the line about the first compilation may come at any time."""
    return [r.levelname for r in caplog.records if "compiles kernels" not in r.getMessage()]


def test_a_reset_too_early_is_ignored_and_logged(our, one, caplog):
    iterator = construct(our, one(), reader_name="Reader")
    iter(iterator)
    assert not said(caplog)
    with caplog.at_level(logging.WARNING):
        iterator.reset()
        next(iterator)
        iterator.reset()
        iterator.reset()
    assert said(caplog) == ["WARNING"] * 3
    assert next(iterator)[0]["label"].flatten().tolist() == [3, 4]


def test_a_loop_after_a_break_goes_on(our, one, caplog):
    iterator = construct(our, one(), reader_name="Reader")
    for _ in iterator:
        break
    assert [s[0]["label"].flatten().tolist() for s in iterator] == [[3, 4], [5, 6], [7, 1]]
    assert len(said(caplog)) == 1


def test_no_needless_warning_between_epochs(our, one, caplog):
    iterator = construct(our, one(), reader_name="Reader", auto_reset=True)
    assert [len(list(iterator)) for _ in range(3)] == [4, 3, 4]
    assert not said(caplog)


def test_nothing_runs_before_it_is_asked_for(our):
    def fed_by_a_list(asked):
        return fed(lambda i: asked.append(i) or np.zeros((2, 1)))

    late, early = [], []  # each its own: threads prepare the runs to come
    iterator = construct(our, fed_by_a_list(late), prepare_first_batch=False)
    assert late == []
    next(iterator)
    assert late[0] == 0
    construct(our, fed_by_a_list(early))
    assert early[0] == 0


def test_errors_of_the_pipeline(our):
    def bad(i):
        if i == 2:
            raise ZeroDivisionError("the third batch")
        return np.full((2, 1), i)

    with pytest.raises(ZeroDivisionError):
        construct(our, fed(lambda: 1 // 0))
    iterator = construct(our, fed(bad))
    assert [int(next(iterator)[0]["label"][0]) for _ in range(2)] == [0, 1]
    with pytest.raises(ZeroDivisionError, match="third"):
        next(iterator)


# External sources


@st.composite
def sources(draw):
    batch = draw(st.integers(1, 3))
    count = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, batch), min_size=count, max_size=count))
    numbers = iter(range(100))
    return {
        "batch": batch,
        "data": [[next(numbers) for _ in range(size)] for size in sizes],
        "kind": draw(st.sampled_from(["list", "function", "generator", "call", "numbered", "sample", "samples"])),
        "count": draw(st.integers(1, 8)),
        "cycle": draw(st.sampled_from(["", None, False, True, "no", "quiet", "raise"])),
    }


def source_pipe(library, functions, spec):
    data = [np.array(b, np.int32) for b in spec["data"]]
    options = {} if spec["cycle"] == "" else {"cycle": spec["cycle"]}
    values = iter(data)

    def generator():
        yield from data

    def numbered(i):
        if i >= len(data):
            raise StopIteration
        return data[i]

    def sample(info):
        if info.idx_in_epoch >= spec["count"]:
            raise StopIteration
        return np.array([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx], np.int32)

    source = {
        "list": data,
        "function": generator,
        "generator": generator(),
        "call": lambda: next(values),
        "numbered": numbered,
        "sample": sample,
        "samples": [v for b in data for v in b],
    }[spec["kind"]]
    if spec["kind"] in ("sample", "samples"):
        options["batch"] = False
    return fed(source, spec["batch"], library, functions, **options)


@pytest.mark.oracle
@given(spec=sources(), auto_reset=st.booleans(), policy=st.sampled_from(["FILL", "DROP", "PARTIAL"]))
@QUICK
def test_sources_end_and_begin_again_as_in_dali(our, their, spec, auto_reset, policy):
    program = ["for", "for", "next", "for", "for"] if auto_reset else ["for", "next", "next", "for", "for"]
    if spec["cycle"] in (True, "quiet"):
        program = ["next"] * 7  # without end
    found = []
    for library in (their, our):
        try:
            pipe = source_pipe(library.pipelines, library.fn, spec)
        except Exception as error:
            found.append([type(error).__name__])
            continue
        found.append(trace(library, [pipe], program, policy, auto_reset=auto_reset))
    theirs, ours = ([v[:3] if isinstance(v, tuple) else v for v in f] for f in found)
    if "next" in program[2:] and program[0] == "for" and auto_reset:
        theirs, ours = theirs[:4], ours[:4]  # DALI's read-ahead lets a loop after `next` see two epochs in one
    assert ours == theirs


def batches(*rows):
    return [np.array(r, np.int32) for r in rows]


def counted(source, size, auto_reset, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plugin.DALIGenericIterator(
            fed(source, 3, **options), ["x"], size=size, last_batch_padded=True, auto_reset=auto_reset
        )


@pytest.mark.parametrize("auto_reset", [True, False])
def test_a_size_beside_the_data(auto_reset):
    nine = batches([0, 1, 2], [3, 4, 5], [6, 7, 8])

    def loops(size):
        iterator = counted(nine, size, auto_reset, cycle="raise")
        return [["".join(map(str, s[0]["x"].tolist())) for s in iterator] for _ in range(3)]

    assert loops(9) == [["012", "345", "678"]] * 3
    assert loops(7) == [["012", "345", "678"]] * 3
    assert loops(6) == [["012", "345"], ["678", "012"], ["345", "678"]]
    assert loops(12) == [["012", "345", "678"], [], []]


# Anything that ndd's users have


def reader(n=7):
    return ndd.readers.File(files=number_files()[:n], labels=list(range(1, n + 1)))


def test_an_epoch_of_a_reader_feeds_a_loop():
    numbers = reader()
    iterator = plugin.DALIClassificationIterator(
        ((fn_cast(data), label) for data, label in numbers.next_epoch(batch_size=2))
    )
    assert [s[0]["label"].flatten().tolist() for s in iterator] == [[1, 2], [3, 4], [5, 6], [7, 1]]
    assert len(plugin.DALIGenericIterator(numbers.next_epoch(batch_size=2), ["d", "l"], prepare_first_batch=False)) == 4


def fn_cast(data):
    return ndd.batch([np.zeros(2, np.float32)] * data.batch_size)


@pytest.mark.parametrize("auto_reset", [True, False])
def test_a_function_makes_an_epoch_each_time(auto_reset):
    numbers = reader()

    def epoch():
        for _, label in numbers.next_epoch(batch_size=2):
            yield {"label": label, "twice": label * 2}

    iterator = plugin.DALIGenericIterator(epoch, ["twice", "label"], auto_reset=auto_reset)
    loops = [[s[0]["label"].flatten().tolist() for s in iterator] for _ in range(2)]
    assert loops == [[[1, 2], [3, 4], [5, 6], [7, 1]], [[2, 3], [4, 5], [6, 7], [1, 2]]]
    assert next(iter(iterator))[0]["twice"].flatten().tolist() == [6, 8]


def test_a_list_of_batches_may_be_gone_through_again():
    iterator = plugin.DALIGenericIterator([(ndd.batch([1, 2]),), (ndd.batch([3]),)], ["x"])
    assert len(iterator) == 2
    assert [[s[0]["x"].tolist() for s in iterator] for _ in range(2)] == [[[1, 2], [3]]] * 2


def test_what_is_neither():
    with pytest.raises(TypeError, match="int"):
        plugin.DALIGenericIterator(3, ["x"])
    with pytest.raises(RuntimeError, match="reader_name"):
        plugin.DALIGenericIterator([(ndd.batch([1]),)], ["x"], reader_name="Reader")


def test_names_come_from_a_dict_of_outputs():
    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=[[1, 2]])
        return {"twice": x * 2, "x": x}

    step = next(plugin.DALIGenericIterator(body(), ["a", "b"]))
    assert {k: v.tolist() for k, v in step[0].items()} == {"a": [2, 4], "b": [1, 2]}


# Frameworks


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
