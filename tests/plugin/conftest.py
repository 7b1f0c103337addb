"""Both libraries, for comparison."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from numbers_pipeline import Library


@pytest.fixture(scope="session")
def our():
    return Library("ndd")


@pytest.fixture(scope="session")
def their():
    pytest.importorskip("nvidia.dali.plugin.pytorch")
    return Library("dali")


@pytest.fixture
def one(our):
    return lambda **options: our.numbers(7, 2, **options)
