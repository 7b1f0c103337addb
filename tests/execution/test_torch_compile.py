"""Functions that call ndd under `torch.compile`: the values are right for one shape after another, nothing is traced into."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import warm_interpreter

import ndd

SHAPES = [(4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (3, 3), (5, 9), (14, 15), (16, 17), (18, 19)]
IMAGES = [torch.arange(h * w * 3, dtype=torch.uint8).reshape(h, w, 3) for h, w in SHAPES]


@ndd.operator
def plus(x, /, *, by: int = 1):
    return ndd.like(x)


@plus.batch
def _(call, x, *, by):
    return [np.asarray(sample) + sample.dtype.type(by) for sample in x.arrays]


def image(x):
    return ndd.as_tensor(x, layout="HWC")


def modes(x):
    with ndd.EvalMode.sync_cpu:
        y = ndd.as_tensor(x) + 1
    with ndd.EvalContext(num_threads=1):
        z = y * 2
    return z.torch() * 2


def methods(x):
    values = ndd.batch([x, x])
    return values.select(0).torch() + values.tensors[1].torch() + values.slice[0:2].torch().sum() + len(values.shape)


def tensors_before_and_after(x):
    y = torch.nn.functional.relu(x.float())
    z = ndd.crop_mirror_normalize(image(y), mean=[1.0, 2.0, 3.0])
    return z.torch().mean() + y.mean()


def random_numbers(x):
    numbers = ndd.random.uniform(range=[0.0, 1.0], batch_size=3, rng=ndd.random.RNG(seed=3))
    return numbers.torch() + x.sum()


def epoch(x):
    total = x.sum() * 0
    reader = ndd.readers.File(files=[__file__] * 4, labels=[1, 2, 3, 4])
    for _, labels in reader.next_epoch(2, last_batch="partial"):
        total = total + labels.torch().sum()
    return total


CALLS = {
    "operator": lambda x: ndd.resize(image(x), size=[4, 4]).torch() + 1,
    "arguments of its shape": lambda x: ndd.resize(image(x), size=[x.shape[0] + 1, int(x.shape[1])]).torch(),
    "arithmetic": lambda x: (ndd.as_tensor(x) * 2 + 1).torch() + 1,
    "an operator of a user": lambda x: plus(ndd.as_tensor(x), by=3).torch() * 2,
    "functions of numpy": lambda x: torch.from_numpy(np.asarray(ndd.as_tensor(x))) + 1,
    "dlpack": lambda x: torch.from_dlpack(ndd.as_tensor(x) + 1) * 2,
    "math": lambda x: ndd.math.sqrt(ndd.as_tensor(x)).torch() * 2,
    "a method in a graph's place": lambda x: torch.relu(image(x).torch().float()).sum(),
    "modes": modes,
    "methods": methods,
    "tensors before and after": tensors_before_and_after,
    "random numbers": random_numbers,
    "a reader": epoch,
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_values(name, dynamic, recwarn):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, compiled = CALLS[name], torch.compile(CALLS[name], backend="aot_eager", dynamic=dynamic)
    for x in IMAGES:
        torch.testing.assert_close(compiled(x), plain(x), rtol=0, atol=0)
    frames = torch._dynamo.utils.counters["frames"]["total"]
    assert frames <= 12, f"{frames} frames were compiled for {len(IMAGES)} shapes"
    assert not [w for w in recwarn if "Dynamo" in str(w.message)], "it looked inside"


def test_a_whole_graph_is_refused():
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(CALLS["operator"], backend="eager", fullgraph=True)(IMAGES[0])


@pytest.mark.parametrize("first", ["torch._dynamo, ndd", "ndd, torch._dynamo"])
@pytest.mark.long
def test_whoever_comes_first(first):
    """`import ndd` does not import Dynamo, which takes seconds."""
    text = (
        f"import sys, {first.split(', ')[0]}\n"
        "assert ('torch._dynamo' in sys.modules) == ('ndd' not in sys.modules)\n"
        f"import torch, {first}\n"
        "from torch._dynamo import trace_rules\n"
        "assert trace_rules.check(ndd.as_tensor.__code__) and trace_rules.check(ndd.resize.__code__)\n"
        "f = torch.compile(lambda x: (ndd.as_tensor(x) * 2).torch() + 1, backend='eager')\n"
        "print([f(torch.ones(n)).sum().item() for n in (2, 3, 4)])\n"
    )
    run = warm_interpreter.run(text)
    assert run.stdout == "[6.0, 9.0, 12.0]\n", run.stderr
