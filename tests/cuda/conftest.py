"""The compiler for GPUs, and what gives it texts."""

from __future__ import annotations

import emulated_gpu as emulation
import pytest


@pytest.fixture(scope="session")
def nvrtc():
    pytest.importorskip("cupy")  # finds the libraries
    result = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    try:
        result.getVersion()
    except Exception as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    return result


@pytest.fixture
def kernels(monkeypatch):
    """Its `texts` are those of the kernels that operators on "gpu" launch, which run only where there is a GPU."""
    import ndd

    yield emulation.install(monkeypatch, emulation.ListedKernels())
    ndd.EvalContext.current().evaluate_all()
