"""Fixtures of the whole suite."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The GPU path on a machine without one; see `emulated_gpu.py`. Skipped where there is no g++."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated GPU needs g++")
    import emulated_gpu as emulation

    gpu = emulation.install(monkeypatch)
    yield gpu
    import ndd

    ndd.EvalContext.current().evaluate_all()


@pytest.fixture(scope="session")
def dali() -> Any:
    """DALI's dynamic mode, the oracle."""
    return pytest.importorskip("nvidia.dali.experimental.dynamic")
