"""`notebooks/torchvision_names.md` names every functional that is there, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from ndd.torchvision.v2 import functional

PAGE = Path(__file__).parent.parent.parent / "notebooks" / "torchvision_names.md"
KERNELS = re.compile(r"_(image|mask|video|bounding_boxes|keypoints)$")


def test_every_functional_has_a_row():
    rows = [line.split(" | ")[0] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name.removeprefix("functional.") for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    own = {name for name in functional.__all__ if name in named or not KERNELS.search(name)}
    assert own <= named
    assert {name for name in named if name in functional.__all__ or name[0].islower()} <= set(functional.__all__)
