"""Batches whose samples have other lengths at every call, as sound has: what a GPU operator does for each of them."""

from __future__ import annotations

import json

import emulated_gpu as emulation
import numpy as np
import pytest
import warm_interpreter
from sound_steps import SOUND

import ndd


@pytest.fixture
def nothing_runs(monkeypatch):
    """A GPU whose kernels do nothing."""
    yield emulation.install(monkeypatch, emulation.ListedKernels())
    ndd.EvalContext.current().evaluate_all()


# How many more calls of functions new lengths take than the same ones, and how many in all: what Python 3.11 makes, and some more,
# for other Pythons. It was twice as many when every launch wrote itself down, and fields were looked up by the
# types of all of them.
MOST = {
    "audio_resample": (112, 255), "preemphasis_filter": (82, 205), "spectrogram": (141, 361), "nonsilent_region": (127, 295),
    "mel_filter_bank": (132, 252), "to_decibels": (86, 215), "mfcc": (139, 257), "normalize": (123, 276),
}  # fmt: skip


def test_new_lengths_take_so_many_more_steps():
    """In a process of its own: behind other tests a call may take eight more, by what they left in the library."""
    done = warm_interpreter.run("import sound_steps; sound_steps.main()", has_ndd=True)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts.keys() == MOST.keys()
    for name, (same, new) in counts.items():
        more, every = MOST[name]
        assert new - same <= more, name
        assert new <= every, name


def kept_of(op):
    """How much is kept for each call of an operator with its constants, at most."""
    every = list(op._cached_calls.values())
    result = {
        name: max(len(getattr(item, name)) for item in every)
        for name in ("plans", "kernels", "columns", "came_once", "made_once")
    }
    forms = [form for item in every for form in item.kernels.values()]
    return {**result, "functions": max(len(form.functions) for form in forms)}


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.drawn(1)
def test_new_lengths_fill_nothing_for_ever(name, nothing_runs):
    """Once there was all that launches share, only what tells lengths that came before grows, up to a thousand."""
    make, call = SOUND[name]
    op = getattr(ndd, name).operator
    op.forget()
    kept = []
    for _ in range(2):
        for _ in range(40):
            call(make()).evaluate() if name != "nonsilent_region" else call(make())[0].evaluate()
        kept.append(kept_of(op))
    first, second = kept
    assert second.pop("came_once") - first.pop("came_once") == 40
    assert first == second
    assert first["plans"] < 12
    assert first["columns"] == first["functions"] == 1


asked: list[int] = []


@ndd.operator(register=False)
def doubled(array, /):
    """array * 2"""
    return ndd.like(array)


@doubled.cuda("PER_ITEM(doubled) { s.out0[i] = s.in0[i] * 2; }")
def _(launch, array, out):
    asked.append(array.volumes.total)
    launch("doubled")


def _doubled(*lengths):
    batch = ndd.batch([np.arange(n, dtype=np.float32) for n in lengths]).gpu()
    result = [sample.torch().tolist() for sample in doubled(batch).cpu()]
    assert result == [[2.0 * i for i in range(n)] for n in lengths]


def test_launches_are_written_down_only_for_lengths_that_come_again(emulated_gpu):
    asked.clear()
    for n in range(1, 21):
        _doubled(n, n + 1)
    assert asked == [2 * n + 1 for n in range(1, 21)]
    cached_call = next(iter(doubled.operator._cached_calls.values()))
    assert len(cached_call.plans) < 12
    asked.clear()
    for _ in range(4):
        _doubled(20, 21)  # came before: kept now
    assert asked == [41]
    _doubled(30, 31)  # from here on batches are taken to be alike again
    for _ in range(2):
        _doubled(31, 30)
    assert asked == [41, 61, 61]
    assert len(cached_call.kernels) == 1


def test_an_operator_may_ask_for_work_in_any_number(emulated_gpu):
    """Of Python, of NumPy, or one for each sample."""
    for work in (7, np.int64(7), np.array([7, 5]), [7, 5]):

        @ndd.operator(register=False)
        def counted(array, /):
            """The number of items."""
            return ndd.like(array)

        @counted.cuda("PER_ITEM(counted) { if (i < s.out0_shape[0]) s.out0[i] = s.items + s.extra; }")
        def _(launch, array, out, work=work):
            launch("counted", work, per_sample={"extra": np.ones(1, np.float32)})

        result = [sample.torch().tolist() for sample in counted(ndd.batch([np.zeros(2, np.float32)] * 2).gpu()).cpu()]
        assert result == [[8.0, 8.0], [8.0, 8.0] if np.ndim(work) == 0 else [6.0, 6.0]]
