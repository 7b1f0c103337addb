"""Lists of nodes as inputs: one operator for several sets, which draws once, so that masks stay with their images."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from calling import cases_of, layouts_of, load_every_module, samples
from cases import EachSample

import ndd

OPERATORS = {path: op for path, op in load_every_module().items() if op.random and (op.inputs or op.variadic)}
N = 3


def outputs_of(pipe, runs=2):
    return [[[np.asarray(sample) for sample in output.batch] for output in pipe.run()] for _ in range(runs)]


def same(one, two):
    return len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def inputs_of(path, operator):
    """Inputs and arguments of a call, with at least one input."""
    for case in cases_of(path, operator):
        if case.inputs is None or len(case.inputs) >= max(operator.required, 1):
            return samples(case, layouts_of(case, operator)[0]), case.args
    return [([np.ones((16, 16), np.float32)] * N, None)], cases_of(path, operator)[0].args


@pytest.mark.parametrize("path", sorted(OPERATORS))
def test_every_random_operator_draws_once(path):
    inputs, arguments = inputs_of(path, OPERATORS[path])
    function = ndd.fn
    for part in path.split("."):
        function = getattr(function, part)

    def body():
        def fed(arrays, layout):
            return [ndd.fn.external_source(source=lambda: arrays[:N], layout=layout) for _ in range(2)]

        passed = {
            k: ndd.fn.external_source(source=lambda v=v: list(v.values[:N])) if isinstance(v, EachSample) else v
            for k, v in arguments.items()
        }
        result = function(*[fed(*one) for one in inputs], **passed)
        return tuple(node for output in (result if isinstance(result[0], list) else [result]) for node in output)

    first, second = outputs_of(ndd.pipeline_def(body)(batch_size=N, seed=3))
    for run in (first, second):
        assert len(run) % 2 == 0
        for one, two in zip(run[::2], run[1::2], strict=True):
            assert same(one, two)


@pytest.mark.oracle
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.drawn(1)
def test_images_and_masks_as_in_dali(conditional):
    """The first set that an output needs gives all of them its seed; each takes a word of the pipeline's."""
    pytest.importorskip("nvidia.dali")
    result = []
    for package in ("ndd", "nvidia.dali"):
        library = importlib.import_module(package)
        fn, ops = (importlib.import_module(f"{package}.{name}") for name in ("fn", "ops"))

        def body(fn=fn, ops=ops):
            data = np.arange(40 * 50 * 3, dtype=np.uint16).astype(np.uint8).reshape(40, 50, 3)
            image = fn.external_source(lambda: [data, data[:, ::-1].copy()], layout="HWC")
            mask = fn.external_source(lambda: [data // 2, data[:, ::-1] // 2], layout="HWC")
            wide = fn.external_source(lambda: [np.zeros((2, 9), np.float32), np.zeros((1, 4), np.float32)])
            narrow = fn.external_source(lambda: [np.zeros(3, np.float32), np.zeros(3, np.float32)])
            flag = fn.random.coin_flip()
            if flag if conditional else True:
                pair = fn.random_resized_crop([image, mask], size=[6, 7])
            else:
                pair = [fn.resize(v, size=[6, 7]) for v in (image, mask)]
            noise = fn.noise.gaussian([wide, narrow])
            drawn = ops.random.Uniform(range=[0, 5])([wide, narrow])
            return pair[1], noise[0], fn.random.uniform(), pair[0], noise[1], *drawn, fn.random.normal(), flag

        options = {"batch_size": 2, "num_threads": 1, "device_id": None, "seed": 11}
        pipe = library.pipeline_def(body, enable_conditionals=conditional)(**options)
        pipe.build()
        result.append([[[np.array(o.at(i)) for i in range(2)] for o in pipe.run()] for _ in range(3)])
    for ours, theirs in zip(*result, strict=True):
        for i, (first, second) in enumerate(zip(ours, theirs, strict=True)):
            for a, b in zip(first, second, strict=True):
                assert a.dtype == b.dtype, i
                np.testing.assert_allclose(a.astype(np.float32), b, rtol=1e-5, atol=1 if a.dtype == np.uint8 else 1e-5)
