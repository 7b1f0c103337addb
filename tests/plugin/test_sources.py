"""Iterators over sources of every kind."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numbers_pipeline import fed, number_files, trace

import ndd
import ndd.plugin.pytorch as plugin
from ndd import fn

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


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
    result = []
    for library in (their, our):
        try:
            pipe = source_pipe(library.pipelines, library.fn, spec)
        except Exception as error:
            result.append([type(error).__name__])
            continue
        result.append(trace(library, [pipe], program, policy, auto_reset=auto_reset))
    theirs, ours = ([v[:3] if isinstance(v, tuple) else v for v in f] for f in result)
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


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_the_sources_of_several_pipelines_begin_again_together(our, their):
    def loops(library):
        data = batches([0, 1], [2, 3])
        pipes = [fed(data, 2, library.pipelines, library.fn, cycle="raise") for _ in range(3)]
        iterator = library.plugin.DALIGenericIterator(pipes, ["x"], size=12, last_batch_padded=True)
        return [[[d["x"].tolist() for d in step] for step in iterator] for _ in range(3)]

    assert loops(our) == loops(their) == [[[[0, 1]] * 3, [[2, 3]] * 3]] * 3


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
    function = ndd.pipeline_def(lambda: fn.constant(idata=[1], shape=[1]), batch_size=1)
    for pipelines in (function, [function]):
        with pytest.raises(TypeError, match="a function that makes one: call it"):
            plugin.DALIGenericIterator(pipelines, ["x"])
    with pytest.raises(RuntimeError, match="reader_name"):
        plugin.DALIGenericIterator([(ndd.batch([1]),)], ["x"], reader_name="Reader")


def test_names_come_from_a_dict_of_outputs():
    @ndd.pipeline_def(batch_size=2)
    def body():
        x = fn.external_source(source=[[1, 2]])
        return {"twice": x * 2, "x": x}

    step = next(plugin.DALIGenericIterator(body(), ["a", "b"]))
    assert {k: v.tolist() for k, v in step[0].items()} == {"a": [2, 4], "b": [1, 2]}
