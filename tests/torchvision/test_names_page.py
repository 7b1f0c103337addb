"""`notebooks/torchvision_names.md` names every transform and functional, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from ndd.coverage import torchvision

PAGE = Path(__file__).parent.parent.parent / "notebooks" / "torchvision_names.md"
KERNELS = re.compile(r"_(image|mask|video|bounding_boxes|keypoints)$")


def test_every_name_has_a_row():
    rows = [line.split(" | ")[0] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name.removeprefix("functional.") for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    listed = {line.split(" ")[0].removeprefix("functional.") for line in torchvision.names()}
    assert {name for name in listed if not KERNELS.search(name)} <= named
    assert named <= listed
