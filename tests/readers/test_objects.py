"""Texts and other Python objects of samples: aligned with the arrays through orders, skips, workers and captured loops; a
reader of one's own, as its documentation shows it."""

import numpy as np
import pytest
from reference_pages import documented_reader
from torch.utils.data import DataLoader

import ndd


class Pairs(ndd.readers.Reader):
    """Reads numbers and what is said of them.

    Args:
        count: how many.
        broken: the numbers that cannot be read.
    """

    @classmethod
    def _outputs(cls, **arguments):
        return ndd.readers.Output("number", ndd.int64, 1), ndd.readers.Output("text"), ndd.readers.Output("more")

    def _open(self, *, count: int = 20, broken: tuple[int, ...] = ()) -> ndd.readers.RecordStore:
        return Store(count, broken)


class Store(ndd.readers.RecordStore):
    def __init__(self, count, broken):
        self.count, self.broken = count, broken

    def __len__(self):
        return self.count

    def record(self, number):
        if number in self.broken:
            raise ValueError("broken")
        return np.array([number]), f"number {number}", {"n": number, "list": [number] * (number % 3)}

    def source(self, number):
        return f"row {number}"


def assert_aligned(numbers, texts, more):
    listed = numbers.torch().flatten().tolist()
    assert texts == [f"number {n}" for n in listed]
    assert more == [{"n": n, "list": [n] * (n % 3)} for n in listed]
    return listed


ORDERS = [{}, {"shuffle": "global"}, {"random_shuffle": True, "initial_fill": 5}, {"sampler": [5, 5, 19, 0]}]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_objects_come_with_their_samples(order, batch):
    reader = Pairs(**order)
    for _ in range(2):
        for values in reader.next_epoch(batch):
            assert_aligned(*values)
    number, text, more = reader[7]
    assert (np.asarray(number).item(), text, more["n"]) == (7, "number 7", 7)
    assert_aligned(*reader.fetch([3, 3, 18]))


def test_skips():
    reader = Pairs(broken=(0, 4, 5, 19), on_error="skip", shuffle="global", seed=2)
    with pytest.warns(UserWarning, match="is left out"):
        seen = [n for values in reader.next_epoch(4, last_batch="partial") for n in assert_aligned(*values)]
    assert sorted(seen) == sorted(set(range(20)) - {0, 4, 5, 19})


def test_resume():
    reader = Pairs(shuffle="global")
    epoch = reader.next_epoch(3)
    next(epoch)
    other = Pairs(shuffle="global")
    other.set_state(reader.get_state())
    rest = [assert_aligned(*values) for values in epoch]
    assert [assert_aligned(*values) for values in other.next_epoch(3)] == rest


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers():
    loader = DataLoader(Pairs(shuffle="global").next_epoch(3), batch_size=None, num_workers=2)
    assert {n for values in loader for n in assert_aligned(*values)} == set(range(20))


def test_loops_that_run_ahead():
    """Operators on the arrays of a batch are computed ahead; the texts stay with them. The same in a captured loop."""
    for capture in (False, True):
        reader = Pairs(shuffle="global")
        for _ in range(3):
            for numbers, texts, more in reader.next_epoch(5, capture=capture):
                doubled = ndd.cast(numbers, dtype=ndd.float32)
                assert doubled.torch().flatten().tolist() == [float(n) for n in assert_aligned(numbers, texts, more)]


def test_a_kind_that_changes_is_an_error():
    class Changing(Pairs):
        """Gives a text, then an array."""

        def _open(self, *, count: int = 4) -> ndd.readers.RecordStore:
            store = Store(count, ())
            store.record = lambda n: (np.array([n]), "text" if n < 3 else np.zeros(2), None)
            return store

    with pytest.raises(RuntimeError, match=r"sample 3 .*expected 'text' as a Python object, got float64 of shape"):
        list(Changing().next_epoch(4))


def test_the_documented_reader_reads(tmp_path):
    """A type checker accepts it: `stubs/test_user_code.py`."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree")
    lines = documented_reader()
    assert len(lines.strip().splitlines()) <= 18
    program = f"import ndd\n{lines}\n"
    names = {"__name__": "documented"}
    exec(program, names)
    reader = names["Lines"](path=str(tmp_path / "a.txt"), shuffle="global", seed=1)
    assert sorted(line for (line,) in reader.next_epoch()) == ["one", "three", "two"]
    assert reader[1] == ("two",)
    with pytest.raises(TypeError, match="path"):
        names["Lines"]()
