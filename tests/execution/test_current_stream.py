"""Torch's current stream while an operator works: ours, and after it the one of before, on every GPU."""

from __future__ import annotations

import pytest

from ndd._cuda import scope


class Torch:
    """Its current GPU, and the current stream of each."""

    def __init__(self, device):
        self.now, self.streams = device, {0: (10, 0, 1), 1: (11, 1, 1)}
        self.changes = 0

    def device(self):
        return self.now

    def current(self, device):
        return self.streams[device]

    def set(self, *, stream_id, device_index, device_type):
        self.changes += 1
        self.now, self.streams[device_index] = device_index, (stream_id, device_index, device_type)

    def back_to(self, device):
        self.now = device


class Ours:
    def __init__(self, place):
        self.place = None
        self._torch = type("Stream", (), dict(zip(("stream_id", "device_index", "device_type"), place, strict=True)))


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("place", [(5, 0, 1), (6, 1, 1), (10, 0, 1)])
def test_it_is_put_back(before, place, monkeypatch):
    torch = Torch(before)
    streams = dict(torch.streams)
    monkeypatch.setattr(scope, "_functions", lambda: torch)
    ours = Ours(place)

    def work():
        with scope.on_stream(ours, place[1]):
            assert torch.now == place[1]
            assert torch.streams[torch.now] == place
            raise ValueError("of an operator")

    for _ in range(2):
        with pytest.raises(ValueError, match="of an operator"):
            work()
        assert torch.now == before
        assert torch.streams == streams


def test_nothing_is_done_where_it_is_current(monkeypatch):
    torch = Torch(0)
    monkeypatch.setattr(scope, "_functions", lambda: torch)
    with scope.on_stream(Ours((10, 0, 1)), 0):
        pass
    assert torch.changes == 0
