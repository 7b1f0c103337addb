"""What tests of lookahead share."""

from __future__ import annotations

import pytest

from ndd._lookahead import decision, prefetch


@pytest.fixture
def sizes(monkeypatch):
    """How many batches were worked on as one, each time."""
    result, real = [], prefetch.expected_calls

    def output(loop, stores, *more):
        result.append(len(stores))
        return real(loop, stores, *more)

    monkeypatch.setattr(prefetch, "expected_calls", output)
    monkeypatch.setattr(decision, "_MAX_SECONDS", 1e9)  # the machine may be slow
    return result
