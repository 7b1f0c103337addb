"""The compiler for GPUs."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def nvrtc():
    pytest.importorskip("cupy")  # finds the libraries
    found = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    try:
        found.getVersion()
    except Exception as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    return found
