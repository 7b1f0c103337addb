"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# The same examples in every run of CI: what is new is found by runs elsewhere.
if os.environ.get("CI") == "true":
    import hypothesis

    hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
    hypothesis.settings.load_profile("ci")


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The GPU path on a machine without one; see `emulated_gpu.py`. On a machine with a GPU it is the real one.

    `launches` lists the kernels started so far, `texts` their source, `real` says which of the two it is.
    """
    import emulated_gpu as emulation
    import torch

    if not torch.cuda.is_available() and shutil.which("g++") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("the emulated GPU needs g++")
    gpu = emulation.install(monkeypatch)
    yield gpu
    import ndd

    ndd.EvalContext.current().evaluate_all()


@pytest.fixture
def two_gpus(emulated_gpu: Any) -> Any:
    """As `emulated_gpu`, with "gpu:1" as well."""
    from ndd._tensor.device import gpu_count

    if gpu_count() < 2:
        pytest.skip("needs two GPUs")
    return emulated_gpu


@pytest.fixture
def cuda() -> Any:
    """torch.cuda, on a machine with a GPU."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.cuda


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a GPU can be chosen by its mark, and is skipped where there is none."""
    for item in items:
        if "cuda" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        import torch

        if not torch.cuda.is_available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now stays: looking through it for garbage took an eighth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def dali() -> Any:
    """DALI's dynamic mode, the oracle."""
    return pytest.importorskip("nvidia.dali.experimental.dynamic")
