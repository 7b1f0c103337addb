"""Files of seven lengths."""

from __future__ import annotations

import pytest


@pytest.fixture
def files(tmp_path):
    result = []
    for i in range(7):
        path = tmp_path / f"{i}.bin"
        path.write_bytes(bytes([i] * (i + 1)))
        result.append(str(path))
    return result
