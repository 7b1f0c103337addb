"""`import ndd` asks CUDA for 16 hardware queues, unless the user has said how many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import warm_interpreter

import ndd

_ROOT = str(Path(ndd.__file__).parents[1])


@pytest.mark.parametrize(("wish", "expected"), [(None, "16"), ("1", "1")])
@pytest.mark.drawn(1)
def test_import_asks_for_queues(wish, expected):
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_DEVICE_MAX_CONNECTIONS"}
    if wish:
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = wish
    code = "import os, torch, ndd; print(os.environ['CUDA_DEVICE_MAX_CONNECTIONS'], torch.cuda.is_initialized())"
    environment["PYTHONPATH"] = _ROOT
    done = warm_interpreter.run(code, env=environment)
    assert done.stdout.split() == [expected, "False"]
