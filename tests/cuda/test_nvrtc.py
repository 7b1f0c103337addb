"""Every kernel compiles for every GPU generation: NVRTC needs no GPU and no driver.

The texts are what a GPU would be given to run the cases of each operator, so that they carry real structs.
Compiling all of them for all generations takes four minutes of one core: by default an operator's first text is compiled
for the oldest one, which can least, and another one, of another element type, for a later one, so that over the operators
all generations have their turn. `NDD_ALL_ARCHITECTURES=1 pytest tests/cuda/test_nvrtc.py` takes all texts, for all.
"""

from __future__ import annotations

import itertools
import os
import zlib

import numpy as np
import pytest
from calling import call_with, cases_of, evaluated, layouts_of, load_every_module, public, samples
from nvrtc import compiled

import ndd

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
DTYPES = ("uint8", "float16", "float32", "bool", "int64")
OPERATORS = load_every_module()
PATHS = [
    p for p, op in OPERATORS.items() if (op.cuda or op.cuda_source) and (op.plan or not op.batch) and cases_of(p, op)
]


WITHOUT_KERNELS = ("optical_flow",)


def texts_of(path, kernels):
    """The kernel texts that the operator's cases use, a few element types for the first case."""
    op = OPERATORS[path]
    cases, refusals = cases_of(path, op), []
    for case in cases:
        for layout in layouts_of(case, op)[:2]:
            wanted = [d for d in case.dtypes or DTYPES if d in DTYPES] if case is cases[0] else []
            for dtype in wanted or [None]:
                try:
                    values = [ndd.batch(a, layout=own).gpu() for a, own in samples(case, layout, "ragged", dtype)]
                    evaluated(call_with(ndd, public(ndd, path), case, values, "ragged", device="gpu"))
                except (TypeError, ValueError, RuntimeError) as error:
                    refusals.append(f"{dtype}: {error}")
    if path in WITHOUT_KERNELS:
        pytest.skip("computed on the CPU, or by the driver's own engine")
    assert kernels.texts, f"no kernel was launched: {refusals[:2]}"
    return list(kernels.texts)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.drawn(3)
def test_kernels_compile(path, kernels, nvrtc):
    (oldest, *later), turn = ARCHITECTURES, zlib.crc32(path.encode())
    texts = texts_of(path, kernels)
    chosen = [(texts[0], oldest), ((texts[1:] or texts)[turn % max(1, len(texts) - 1)], later[turn % len(later)])]
    if "NDD_ALL_ARCHITECTURES" in os.environ:
        chosen = itertools.product(texts, ARCHITECTURES)
    for text, architecture in chosen:
        problem = compiled(text, architecture)
        assert problem is None, f"sm_{architecture}: {problem}"


def test_a_kernel_that_is_two_operators_compiles(kernels, nvrtc):
    """`crop_mirror_normalize` done by a kernel of resize.cu."""
    images = ndd.batch([np.zeros((40, 30, 3), np.uint8)] * 2, layout="HWC").gpu()
    with ndd.EvalMode.deferred:
        ndd.crop_mirror_normalize(ndd.resize(images, size=20)).evaluate()
    (text,) = [text for text in kernels.texts if "#define JOINED float" in text]
    problem = compiled(text, 90)
    assert problem is None, problem
