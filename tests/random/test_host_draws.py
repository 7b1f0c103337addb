"""Numbers of torch's generator that are foreseen: the loop gets those that it would have drawn, and so does whoever draws next."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ndd
from ndd.random import host_draws

pytestmark = pytest.mark.fast


def uniform(generator, n, most):
    return torch.rand(n, 2, generator=generator).numpy() * most


def normal(generator, n):
    return torch.randn(n, 1, generator=generator).numpy()


FIRST, SECOND = (uniform, 3.0), (normal,)


def iteration(n=4):
    return host_draws.draw(FIRST, n), host_draws.draw(SECOND, n)


def foreseen_after_two_iterations():
    """The coming iteration's draws, foreseen by those of two."""
    before, now = iteration(), iteration()
    return [b.moved(b.words_since(a)) for a, b in zip(before, now, strict=True)]


def test_foreseen_numbers_are_those_that_come():
    torch.manual_seed(1)
    foreseen = foreseen_after_two_iterations()
    state = torch.get_rng_state()
    wanted = torch.rand(4, 2).numpy() * 3.0, torch.randn(4, 1).numpy()
    end = torch.get_rng_state()
    torch.set_rng_state(state)
    for a, b, numbers in zip(foreseen, iteration(), wanted, strict=True):
        assert (a.key, a.position) == (b.key, b.position)
        assert np.array_equal(a.streams(4), numbers)
        assert np.array_equal(b.streams(4), numbers)
    assert torch.equal(torch.get_rng_state(), end)


@pytest.mark.parametrize(
    "what", ["a number between", "another seed", "another size", "another argument", "another step"]
)
def test_what_comes_differently_was_not_foreseen(what):
    torch.manual_seed(1)
    foreseen = foreseen_after_two_iterations()[0]
    if what == "a number between":
        torch.rand(1)
    if what == "another seed":
        torch.manual_seed(1)
    n = 3 if what == "another size" else 4
    step = {"another argument": (uniform, 4.0), "another step": SECOND}.get(what, FIRST)
    state = torch.get_rng_state()
    drawn = host_draws.draw(step, n)
    assert (drawn.key, drawn.position) != (foreseen.key, foreseen.position)
    torch.set_rng_state(state)
    assert np.array_equal(drawn.streams(n), step[0](None, n, *step[1:]))


def test_an_iteration_with_a_number_of_its_own_between_is_not_foreseen():
    first = host_draws.draw(FIRST, 4)
    torch.rand(1)
    assert host_draws.draw(FIRST, 4).words_since(first) is None


def test_many_iterations_keep_little():
    torch.manual_seed(2)
    draws = [iteration()[0] for _ in range(1000)]
    assert len(draws[-1].key.steps) <= host_draws._KEPT + 2
    assert draws[-1].words_since(draws[-2]) == 2
    assert draws[-1].moved(2 * 30).streams(4).shape == (4, 2)


def test_rows_of_another_size_are_refused():
    with pytest.raises(ValueError, match="5 samples"):
        host_draws.draw(FIRST, 4).streams(5)


def test_columns_and_seeds():
    torch.manual_seed(3)
    drawn = host_draws.draw((uniform, 100.0), 3)
    rows = drawn.streams(3)
    assert np.array_equal(drawn.columns(1, 0, ndd.int32).torch().numpy(), rows[:, 1].astype(np.int32))
    assert np.array_equal(drawn.columns(0, 2, ndd.float32).torch().numpy(), rows)
    torch.manual_seed(4)
    seed = int(torch.randint(-(2**63), 2**63 - 1, (1,)))
    torch.manual_seed(4)
    made = ndd.random.uniform(batch_size=5, rng=host_draws.seed()).torch()
    assert torch.equal(made, ndd.random.uniform(batch_size=5, rng=ndd.random.RNG(seed=seed)).torch())
