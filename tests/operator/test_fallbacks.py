"""What answers while a kernel is compiled gives the same bits as the kernel, for every operator."""

from __future__ import annotations

import numpy as np
import pytest
from calling import call, cases_of, evaluated, layouts_of, load_every_module, samples
from compare import arrays_of

import ndd
from ndd._compiled.background import background
from ndd._compiled.jit import Kernel

OPERATORS = load_every_module()
CASES = [
    pytest.param(path, case, id=f"{path}-{i}")
    for path, op in sorted(OPERATORS.items())
    for i, case in enumerate(cases_of(path, op))
    if not path.startswith("io.")
]


@pytest.mark.long
@pytest.mark.parametrize(("path", "case"), CASES)
def test_fallbacks_give_the_same_bits(path, case, monkeypatch):
    op, compiled, answered = OPERATORS[path], Kernel.__call__, []
    inputs = samples(case, layouts_of(case, op)[0])

    def result():
        op.forget()
        more = {"rng": ndd.random.RNG(seed=5)} if op.random else {}
        return [arrays_of(item) for item in evaluated(call(ndd, path, case, inputs, "ragged", **more))]

    def by_fallback(kernel, *args):
        if not kernel.has_fallback():
            return compiled(kernel, *args)
        answered.append(kernel)
        with np.errstate(all="ignore"):
            return kernel.run_fallback(*args)

    monkeypatch.setattr(background, "allowed", False)
    expected = result()
    monkeypatch.setattr(Kernel, "__call__", by_fallback)
    for item, other in zip(expected, result(), strict=True):
        for a, b in zip(item, other, strict=True):
            np.testing.assert_array_equal(a, b)
    if op.cpu.__class__ is Kernel and op.cpu.has_fallback():
        assert answered
