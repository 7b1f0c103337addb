"""Calls of `fn` outside of any pipeline, and what a body knows of the variables around it."""

from __future__ import annotations

import numpy as np
import pytest

from ndd import Pipeline, fn, pipeline_def, types
from ndd.pipeline.experimental import pipeline_def as experimental_pipeline_def

BATCHES = [[np.int32(1), np.int32(2)], [np.int32(3), np.int32(4)]]


def values(pipeline):
    return [output.as_array().tolist() for output in pipeline.run()]


def test_a_node_is_computed_once_a_run():
    coin = fn.random.uniform(range=(0, 1), seed=3)
    pipe = Pipeline(batch_size=2)
    pipe.set_outputs(coin, coin * 2, fn.external_source(BATCHES, cycle=True) + 1)
    first, second = values(pipe), values(pipe)
    assert np.allclose(np.multiply(first[0], 2), first[1])
    assert first[0] != second[0]
    assert (first[2], second[2]) == ([2, 3], [4, 5])


def test_each_pipeline_has_a_state_of_its_own():
    coin = fn.random.uniform(range=(0, 1), seed=3)

    @pipeline_def(batch_size=2)
    def result(drawn):
        return drawn, drawn + 0

    pipes = [result(coin), result(coin)]
    first, second = values(pipes[0]), values(pipes[0])
    assert first[0] == first[1] != second[0]
    assert [values(pipes[1]), values(pipes[1])] == [first, second]


def test_conditions_on_a_node_that_was_given():
    @experimental_pipeline_def(batch_size=2, prefetch_queue_depth=1, enable_conditionals=True)
    def result(number):
        if number > 1:
            number = number * 10
        return number

    pipe = result(fn.external_source(name="given"))
    for batch in BATCHES:
        pipe.feed_input("given", batch)
    assert [values(pipe), values(pipe)] == [[[1, 20]], [[30, 40]]]


def test_sources_without_names_are_fed_by_their_nodes():
    first, second = fn.external_source(), fn.external_source()
    pipe = Pipeline(batch_size=2)
    pipe.set_outputs(first, second)
    pipe.feed_input(second, BATCHES[1])
    pipe.feed_input(first, BATCHES[0])
    assert values(pipe) == [[1, 2], [3, 4]]


def test_pipelines_made_in_a_loop():
    """Each has the value that the variable had when it was made, as in DALI; with `debug=True`, that of the run."""
    pipes = []
    for shard in range(3):

        @pipeline_def(batch_size=1)
        def result():
            return np.int32(shard)  # noqa: B023

        pipes += [result(), result(debug=True)]
    assert [values(pipe)[0][0] for pipe in pipes] == [0, 2, 1, 2, 2, 2]


def test_a_body_may_count_in_a_variable_around_it():
    runs = 0

    @pipeline_def(batch_size=1, debug=True)
    def result():
        nonlocal runs
        runs += 1
        return np.int32(runs)

    pipe = result()
    assert [values(pipe)[0][0] for _ in range(2)] == [1, 2] == [runs - 1, runs]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda made: made(), TypeError, "missing a required argument: 'a'"),
        (lambda made: made(1, c=3), TypeError, "unexpected keyword argument 'c'"),
        (lambda made: pipeline_def(lambda **k: 1)(batch_size=1), TypeError, "`\\*\\*kwargs`, which is not allowed"),
        (lambda made: made(1, batch_size=0).build(), ValueError, "batch_size"),
        (lambda made: made(1, output_ndim=-1), ValueError, "output_ndim"),
        (lambda made: made(1, output_dtype=[types.NO_TYPE]), ValueError, "output_dtype"),
        (lambda made: made(1, output_layout=3), TypeError, "output_layout"),
        (lambda made: made(1, prefetch_queue_depth="a"), TypeError, "prefetch_queue_depth"),
        (lambda made: made((1, {"x": 1})).run(), TypeError, "The output 1 is a `<class 'dict'>`"),
        (lambda made: made((1, [fn.constant(idata=3)])).run(), TypeError, "The output 1 contains a nested `DataNode`"),
        (lambda made: fn.flip(np.zeros((2, 2, 3)), colour=1), KeyError, "no argument 'colour'"),
        (lambda made: fn.flip(), ValueError, "at least 1 and at most 1 inputs, got 0"),
        (lambda made: fn.cast(3), RuntimeError, "'dtype' is required"),
        (lambda made: fn.readers.file(root="."), KeyError, "no argument 'root'"),
        (lambda made: fn.external_source(lambda: 1, root="."), ValueError, "no argument 'root'"),
        (lambda made: fn.external_source((x for x in ()), cycle=True), TypeError, "cannot begin again"),
    ],
)
def test_wrong_calls_are_told_in_the_call(call, error, said):
    @pipeline_def(batch_size=1)
    def result(a, b=2):
        return a

    with pytest.raises(error, match=said):
        call(result)


def test_names_belong_to_one_call():
    @pipeline_def(batch_size=2)
    def result():
        return [fn.external_source(BATCHES, name="x") for _ in range(2)]

    with pytest.raises(RuntimeError, match="two calls named 'x'"):
        result().run()


def test_lists_of_nodes():
    @pipeline_def(batch_size=2)
    def result():
        (only,) = fn.external_source([[b] for b in BATCHES], num_outputs=1)
        assert only.device == "cpu"
        assert isinstance(fn.copy([only]), type(only))
        return tuple(fn.copy([only, only + 1]))

    assert values(result()) == [[1, 2], [2, 3]]


def test_what_excludes_each_other_until_the_check_is_off():
    pipe = pipeline_def(lambda: np.int32(1))(batch_size=1)
    pipe.run()
    for call in (pipe.schedule_run, pipe.share_outputs, pipe.release_outputs):
        with pytest.raises(RuntimeError, match=r"run\(\)"):
            call()
    pipe.enable_api_check(False)
    pipe.schedule_run()
    assert pipe.share_outputs()[0].as_array().tolist() == [1]
