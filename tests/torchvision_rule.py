"""torchvision, as an oracle."""

from __future__ import annotations

from typing import Any

import pytest

from ndd.torchvision.installed import import_torchvision


def torchvision() -> Any:
    """The package, or a skipped test where it is not installed."""
    try:
        return import_torchvision()
    except ImportError:
        return pytest.skip("torchvision is not installed")


def functional() -> Any:
    """`torchvision.transforms.v2.functional`."""
    return torchvision().transforms.v2.functional
