"""What a new reader has to write: a store, a signature, and `_open`."""

import pickle
import warnings
from typing import Literal

import numpy as np
import pytest

import ndd
from ndd._tensor import Packed
from ndd.readers import Output, Reader, RecordStore
from ndd.readers.stores.records import Records, Sources


class Features(RecordStore):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def record(self, number):
        text = np.frombuffer(b"x" * number, np.uint8)
        return np.full((2, number + 1, 3), number, np.uint8), np.array(number, np.float32), text

    def source(self, number):
        return f"features[{number}]"


class Container(Reader):
    """A reader of dicts, in the order they are stored."""

    _permutes_first = False
    gives_dicts = True

    def _open(self, *, count: int = 5, factor: float = 1.0, kind: Literal["a", "b"] = "a", flag: bool = False):
        self.got = count, factor, kind, flag
        return Features(count)

    @classmethod
    def _outputs(cls, **arguments):
        return Output("image", ndd.uint8, 3, "HWC"), Output("score", ndd.float32, 0), Output("text", ndd.uint8, 1)


def test_dicts():
    reader = Container()
    sample = next(reader.next_epoch())
    assert list(sample) == ["image", "score", "text"]
    assert sample["image"].layout == "HWC"
    assert sample["text"].shape == (0,)
    reader.reset(0)
    batch = next(reader.next_epoch(batch_size=3))
    assert batch["image"].shape == [(2, 1, 3), (2, 2, 3), (2, 3, 3)]
    assert batch["image"].layout == "HWC"
    assert batch["score"].torch().tolist() == [0, 1, 2]
    assert batch["score"].dtype == ndd.float32
    assert batch["text"].shape == [(0,), (1,), (2,)]
    assert reader[3]["score"].torch().item() == 3


def test_arguments_are_converted():
    assert len(Container(count=None)) == 5
    reader = Container(count=np.int32(7), factor=ndd.tensor(2), kind="b", flag=1)
    assert len(reader) == 7
    assert reader.got == (7, 2.0, "b", True)
    assert isinstance(reader.got[1], float)
    assert "count=7" in repr(Container(count=7))
    for wrong, error in (
        ({"sed": 3}, TypeError), ({"count": "x"}, ValueError), ({"count": 1.5}, ValueError),
        ({"factor": "x"}, ValueError), ({"kind": "c"}, RuntimeError),
    ):  # fmt: skip
        with pytest.raises(error, match=rf"readers\.Container: .*{next(iter(wrong))}"):
            Container(**wrong)


def test_containers_shuffle_in_a_buffer_and_say_so():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        reader = Container(count=100, random_shuffle=True, initial_fill=2)
        order = [int(s["score"].torch()) for s in reader.next_epoch()]
        assert all(number - place <= 1 for place, number in enumerate(order))
        assert sorted(order) == list(range(100)) != order
        list(Container(count=100, random_shuffle=True).next_epoch())
        list(Container(count=100, shuffle="global").next_epoch())
    assert len(seen) == 1
    assert 'shuffle="global"' in str(seen[0].message)


def test_columns():
    item = [np.zeros(3, np.int32), np.ones(3, np.int32)]
    ragged = [np.zeros(3), np.zeros(4)]
    mixed = [np.zeros(2, np.int32), np.zeros(2, np.int64)]
    large = [np.zeros(100), np.zeros(100)]
    scalars = [np.zeros((), np.int64), np.ones((), np.int64)]
    turned = Records.of(list(zip(item, ragged, mixed, large, scalars, strict=True))).columns
    assert [isinstance(column, np.ndarray) for column in turned] == [True, False, False, False, True]
    assert turned[0].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert turned[4].tolist() == [0, 1]


def _packed(shift=0, faults=None):
    """Record i holds the i + 1 numbers from 10 * i + shift on, as a table of one row, and its number."""
    buffer = np.arange(60, dtype=np.int16)
    starts = np.arange(5) * 10 + shift
    shapes = np.stack([np.ones(5, np.int64), np.arange(1, 6)], 1)
    return Records.from_columns([Packed.of(buffer, starts, shapes), np.arange(5)[:, None]], faults)


def _seen(records):
    return [r if isinstance(r, Exception) else (r[0].tolist(), r[1].tolist()) for r in records]


def test_records_in_one_buffer_are_those_that_were_read_one_by_one():
    error = ValueError("broken")
    for faults in ({}, {3: error}, {0: error, 4: error}, dict.fromkeys(range(5), error)):
        packed, other = _packed(0, faults), _packed(3)
        seen = [faults.get(i) or ([list(range(10 * i, 11 * i + 1))], [i]) for i in range(5)]
        assert _seen(packed) == seen
        assert _seen(Records.of(list(packed))) == seen
        both = Records.joined([packed, other, packed])
        assert _seen(both) == seen + _seen(other) + seen
        assert _seen(Records.joined([packed, Records.of(list(other))])) == seen + _seen(other)
        places = [7, 3, 3, 12, 0]
        assert _seen(both.picked(places)) == [_seen(both)[place] for place in places]
        assert len(both.picked([])) == 0
    assert both.columns[0].addresses().tolist() == [a.ctypes.data for a in both.columns[0].arrays()]


class Together(Features):
    """All texts of a call in one buffer."""

    def records(self, numbers):
        sizes = np.array(numbers, np.int64)
        text = np.frombuffer(b"abc" * 100, np.uint8)
        images = [self.record(number)[0] for number in numbers]
        return Records.from_columns([images, sizes.astype(np.float32), Packed.of(text, sizes, sizes)])


def test_a_store_may_give_records_in_one_buffer():
    class Joined(Container):
        def _open(self, *, count: int = 5, factor: float = 1.0, kind: Literal["a", "b"] = "a", flag: bool = False):
            return Together(count)

    texts = ["", "b", "ca", "abc", "bcab"]
    batch = next(Joined().next_epoch(batch_size=5))["text"]
    assert batch.shape == [(0,), (1,), (2,), (3,), (4,)]
    assert [s.numpy().tobytes().decode() for s in batch.tensors] == texts
    assert [(batch + 1).tensors[i].numpy().tolist() for i in (1, 2)] == [[99], [100, 98]]
    assert [s.numpy().tobytes().decode() for s in ndd.as_batch(batch, layout="X").tensors] == texts
    assert [sample["text"].numpy().tobytes().decode() for sample in Joined().next_epoch()] == texts


def test_base_store_is_abstract():
    store = RecordStore()
    for use in (lambda: len(store), lambda: store.record(0), lambda: store.source(0)):
        with pytest.raises(NotImplementedError):
            use()
    assert isinstance(store.records([0])[0], NotImplementedError)
    store.close()


class Wrong(Features):
    """Record 3 is of another type than the others."""

    def record(self, number):
        image, score, text = super().record(number)
        return (image.astype(np.int16) if number == 3 else image), score, text


class Free(Container):
    """Declares nothing of its data."""

    def _open(self, *, count: int = 5, kind: str = "mixed"):
        return Wrong(count)

    @classmethod
    def _outputs(cls, **arguments):
        return Output("image"), Output("score", ndd.float32, 0), Output("text", ndd.uint8, 1)


def test_samples_of_one_batch_have_one_type():
    reader = Free()
    assert [s["image"].dtype for s in reader.next_epoch()] == [*[ndd.uint8] * 3, ndd.int16, ndd.uint8]
    with pytest.raises(RuntimeError, match=r"Free: sample 3 \(features\[3\]\): expected 'image' as uint8 with 3 dim"):
        reader.fetch([0, 1, 3])


def test_a_record_is_what_was_declared():
    class False1(Container):
        @classmethod
        def _outputs(cls, **arguments):
            return Output("image", ndd.int16, 3), Output("score"), Output("text")

    class False2(Container):
        @classmethod
        def _outputs(cls, **arguments):
            return (Output("image"),)

    with pytest.raises(RuntimeError, match=r"sample 0 .*expected 'image' as int16 with 3 dimension"):
        False1()[0]
    with pytest.raises(TypeError, match=r"readers.False2: declared 1 output\(s\), gave 3"):
        False2()[0]


class Doubled(Reader):
    """Computes on what was read, from a second array that it does not give."""

    def _open(self, *, count: int = 5, thrice: bool = False):
        return Features(count)

    @classmethod
    def _outputs(cls, thrice, **arguments):
        image = Output("image", ndd.int16, 3, "HWC")
        return (image, Output("again", ndd.int16, 3, "HWC")) if thrice else (image,)

    def _present(self, image, score, text):
        doubled = ndd.cast(image * 2, dtype=ndd.int16)
        return (doubled, ndd.cast(doubled + score, dtype=ndd.int16)) if self._arguments["thrice"] else (doubled,)


@pytest.mark.parametrize("lookahead", ["0", "1"])
def test_what_was_read_may_be_computed_on(monkeypatch, lookahead):
    monkeypatch.setenv("NDD_LOOKAHEAD", lookahead)
    reader = Doubled(thrice=True)
    assert [o.name for o in Doubled.outputs()] == ["image"]
    assert reader.num_outputs == 2
    for _ in range(3):
        batches = list(reader.next_epoch(batch_size=1))
        assert [int(np.asarray(b[0].tensors[0])[0, 0, 0]) for b in batches] == [0, 2, 4, 6, 8]
        assert [int(np.asarray(b[1].tensors[0])[0, 0, 0]) for b in batches] == [0, 3, 6, 9, 12]
    image, again = reader[3]
    assert (image.dtype, image.layout, image.source_info) == (ndd.int16, "HWC", "features[3]")
    assert np.asarray(again).max() == 9


def test_computing_happens_on_the_users_thread_in_the_given_context():
    import threading

    seen = []

    class Noting(Doubled):
        def _present(self, *values):
            seen.append((threading.current_thread(), ndd.EvalContext.current()))
            return super()._present(*values)

    context = ndd.EvalContext()
    assert len(list(Noting(count=3).next_epoch(1, context))) == 3
    assert seen == [(threading.current_thread(), context)] * 3


def test_own_arguments_are_given_by_name_and_are_new():
    with pytest.raises(TypeError, match="expected keyword-only parameters"):

        class Positional(Reader):
            def _open(self, path):
                return Features(1)

    with pytest.raises(TypeError, match="'seed'"):

        class Taken(Reader):
            def _open(self, *, seed=3):
                return Features(1)


def test_sources_are_made_when_somebody_asks():
    """Once for all; a pickled batch holds texts, not the store."""

    class Counted(RecordStore):
        asked = 0

        def source(self, number):
            Counted.asked += 1
            return f"a record {number}"

    result = Sources(Counted(), [4, 0, 2])
    assert (len(result), Counted.asked) == (3, 0)
    assert (result[1], result[-1], result[:2]) == ("a record 0", "a record 2", ["a record 4", "a record 0"])
    assert list(result) == pickle.loads(pickle.dumps(result)) == ["a record 4", "a record 0", "a record 2"]
    assert Counted.asked == 3
