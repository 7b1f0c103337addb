"""What a new reader has to write: a store, a signature, and `_open`."""

import warnings

import numpy as np
import pytest

import ndd
from ndd.readers import Reader, RecordStore
from ndd.readers.records import columns


class Features(RecordStore):
    fields = ("image", "score", "text")
    layouts = ("HWC",)

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def record(self, number):
        text = np.frombuffer(b"x" * number, np.uint8)
        return np.full((2, number + 1, 3), number, np.uint8), np.float32(number).reshape(()), text

    def source(self, number):
        return f"features[{number}]"


class Container(Reader):
    """A reader of dicts, in the order they are stored."""

    permuted = False

    def __init__(
        self, max_batch_size=None, name=None, device="cpu", num_inputs=None, *, count=5, random_shuffle=False,
        initial_fill=1024, shuffle=None,
    ):  # fmt: skip
        super().__init__(locals())

    def _open(self, count):
        return Features(count)


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


def test_arguments_have_their_defaults():
    assert len(Container(count=None)) == 5
    assert len(Container(count=np.int32(7))) == 7
    with pytest.raises(TypeError):
        Container(seed=3)
    assert "count=5" in repr(Container())


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
    one = [np.zeros(3, np.int32), np.ones(3, np.int32)]
    ragged = [np.zeros(3), np.zeros(4)]
    mixed = [np.zeros(2, np.int32), np.zeros(2, np.int64)]
    large = [np.zeros(100), np.zeros(100)]
    scalars = [np.zeros((), np.int64), np.ones((), np.int64)]
    turned = columns(list(zip(one, ragged, mixed, large, scalars, strict=True)))
    assert [isinstance(column, np.ndarray) for column in turned] == [True, False, False, False, True]
    assert turned[0].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert turned[4].tolist() == [0, 1]


def test_base_store_is_abstract():
    store = RecordStore()
    for use in (lambda: len(store), lambda: store.record(0), lambda: store.source(0)):
        with pytest.raises(NotImplementedError):
            use()
    assert isinstance(store.records([0])[0], NotImplementedError)
    store.close()
