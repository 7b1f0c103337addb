"""`python -m ndd bench classic`, with few images."""

from __future__ import annotations

import pytest

import ndd
from ndd.bench import classic
from ndd.bench.libraries import Setting


@pytest.mark.slow
def test_classic_loops():
    result = list(classic.measure(Setting("cpu", 2, {"ndd": ndd}, rounds=1), None, batch_size=4, images=8))
    assert len(result) == 4
    assert all(r.ndd > 0 and r.unit == "images/s" for r in result)
    assert result[1].dali > 0
