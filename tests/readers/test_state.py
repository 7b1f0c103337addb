import copy
import json
import pickle
from itertools import islice
from pathlib import Path

import pytest

from ndd.readers import File, ReaderState
from readers.epochs import epoch_of, labels_of

CASES = [
    {},
    {"pad_last_batch": True},
    {"num_shards": 3, "shard_id": 1},
    {"num_shards": 3, "shard_id": 1, "pad_last_batch": True},
    {"num_shards": 3, "stick_to_shard": True},
    {"random_shuffle": True, "initial_fill": 3},
    {"random_shuffle": True, "initial_fill": 3, "num_shards": 3, "seed": 5},
    {"random_shuffle": True},
    {"random_shuffle": True, "pad_last_batch": True, "num_shards": 2, "initial_fill": 4},
    {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 9},
    {"shuffle": "global", "seed": 4, "num_shards": 2, "shard_id": 1},
    {"sampler": lambda epoch: [epoch % 10, 3, 4, 9, 0]},
]


def run(reader, batch, epochs):
    return [epoch_of(reader, batch) for _ in range(epochs)]


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("given_", CASES)
@pytest.mark.drawn(1)
def test_every_position_resumes_exactly(numbered, given_, batch):
    """From any point: the same batches, cut into the same epochs, for the rest of this epoch and two more."""
    reader = File(files=numbered(10), **given_)
    expected, states = [], []
    for _ in range(4):
        expected.append([])
        epoch = reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch)
        states.append((len(expected) - 1, 0, reader.get_state()))
        for value in epoch:
            expected[-1].append(labels_of(value))
            states.append((len(expected) - 1, len(expected[-1]), reader.get_state()))
    for number, given_before, state in states[: -len(expected[-1]) * 2]:
        number, given_before = (number, given_before) if given_before < len(expected[number]) else (number + 1, 0)
        other = File(files=numbered(10), **given_)
        other.set_state(str(state))
        assert other.get_state() == state
        resumed = other.next_epoch() if batch is None else other.next_epoch(batch_size=batch)
        assert len(resumed) == len(expected[number]) - given_before
        assert [labels_of(v) for v in resumed] == expected[number][given_before:]
        for following in expected[number + 1 : number + 3]:
            assert epoch_of(other, batch) == following


def test_forms(numbered):
    reader = File(files=numbered(10))
    epoch_of(reader, limit=3)
    state = reader.get_state(cuda_stream=None)
    assert str(state).isascii()
    assert len(str(state)) < 440
    assert pickle.loads(pickle.dumps(state)) == state
    assert eval(repr(state)) == state
    assert hash(state) == hash(ReaderState(str(state)))
    for form in (state, str(state), str(state).encode(), bytearray(str(state), "ascii")):
        other = File(files=numbered(10))
        other.set_state(form)
        assert epoch_of(other) == [3, 4, 5, 6, 7, 8, 9]
    other = File(files=numbered(10))
    other.load_state_dict(json.loads(json.dumps(reader.state_dict())))
    assert epoch_of(other) == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("wrong", [5, None, {}, [5]])
def test_wrong_types(numbered, wrong):
    with pytest.raises(TypeError, match="ReaderState"):
        File(files=numbered(3)).set_state(wrong)


@pytest.mark.parametrize(
    "wrong", ["", "garbage", "{}", "5", b"\xff\xfe", '{"version":99}', '{"version":1,"reader":"readers.TFRecord"}']
)
def test_wrong_texts(numbered, wrong):
    reader = File(files=numbered(3))
    with pytest.raises(ValueError):
        reader.set_state(wrong)
    assert epoch_of(reader) == [0, 1, 2]


def test_wrong_numbers(numbered):
    reader = File(files=numbered(3))
    good = json.loads(str(reader.get_state()))
    for key in ("epoch", "left", "visit", "offset", "left_batch", "seed", "draw"):
        for value in ("1", 0.5) if key in ("seed", "draw") else (-1, "1", None, 0.5):
            with pytest.raises(ValueError, match=key):
                reader.set_state(json.dumps({**good, key: value}))


def test_state_of_another_reader(numbered):
    reader = File(files=numbered(10), num_shards=2)
    epoch_of(reader, limit=1)
    state = reader.get_state()
    for key, given_ in (
        ("size", {"num_shards": 2, "files": numbered(11)}),
        ("shards", {"num_shards": 2, "shard_id": 1}),
        ("shards", {"num_shards": 3}),
    ):
        given_ = {"files": numbered(10), **given_}
        running = File(**given_)
        expected = epoch_of(running, limit=2)
        with pytest.raises(ValueError, match=f"another {key}"):
            running.set_state(state)
        fresh = File(**given_)
        fresh.set_state(state)
        for _ in range(2):
            with pytest.raises(ValueError, match=f"another {key}"):
                epoch_of(fresh)
        fresh.reset(0)
        assert epoch_of(fresh, limit=2) == expected
    for key, given_ in (
        ("order", {"random_shuffle": True}),
        ("stick", {"stick_to_shard": True}),
        ("pad", {"pad_last_batch": True}),
    ):
        with pytest.raises(ValueError, match=f"another {key}"):
            File(files=numbered(10), num_shards=2, **given_).set_state(state)


def test_state_of_another_data_set_of_the_same_size(numbered, tmp_path):
    """The names tell, and not the folders: a data set may have moved."""
    reader = File(files=numbered(10))
    epoch_of(reader, 3, limit=1)
    for number, (moved, renamed) in enumerate((("{}", False), ("other_{}", True))):
        folder = tmp_path / f"moved{number}"
        folder.mkdir()
        files = [folder / moved.format(Path(name).name) for name in numbered(10)]
        for file in files:
            file.write_bytes(b"x")
        other = File(files=[str(file) for file in files])
        if not renamed:
            other.set_state(reader.get_state())
            assert epoch_of(other, 3) == [[3, 4, 5], [6, 7, 8], [9, 0, 1]]
            continue
        other.set_state(reader.get_state())
        with pytest.raises(ValueError, match="another data set of the same size"):
            epoch_of(other, 3)
        with pytest.raises(ValueError, match="another data set of the same size"):
            len(other)
        other.reset(0)
        assert len(other) == 10
        with pytest.raises(ValueError, match="another data set of the same size"):
            other.set_state(reader.get_state())


def test_the_seed_comes_with_the_state(numbered):
    reader = File(files=numbered(10), random_shuffle=True, initial_fill=4, seed=1)
    first = epoch_of(reader, limit=4)
    other = File(files=numbered(10), random_shuffle=True, initial_fill=4, seed=2)
    epoch_of(other, limit=1)
    other.set_state(reader.get_state())
    assert sorted(first + epoch_of(other)) == list(range(10))
    assert epoch_of(other) == run(File(files=numbered(10), random_shuffle=True, initial_fill=4, seed=1), None, 2)[1]


def test_set_state_on_a_running_reader(numbered):
    reader = File(files=numbered(10))
    epoch = reader.next_epoch(batch_size=3)
    next(epoch)
    state = reader.get_state()
    next(epoch)
    reader.set_state(state)
    assert next(epoch, None) is None
    assert epoch_of(reader, 3) == [[3, 4, 5], [6, 7, 8], [9, 0, 1]]
    reader.set_state(state)
    assert epoch_of(reader, 3) == [[3, 4, 5], [6, 7, 8], [9, 0, 1]]


def test_other_batch_size_or_mode_after_a_state(numbered):
    reader = File(files=numbered(10))
    epoch_of(reader, 3, limit=1)
    state = reader.get_state()
    for batch, expected in (
        (None, [3, 4, 5, 6, 7, 8, 9]),
        (4, [[3, 4, 5, 6], [7, 8, 9, 0]]),
        (7, [list(range(3, 10))]),
    ):
        other = File(files=numbered(10))
        other.set_state(state)
        assert epoch_of(other, batch) == expected


def test_state_before_the_first_sample(numbered):
    reader = File(files=numbered(4))
    other = File(files=numbered(4))
    other.set_state(reader.get_state())
    assert epoch_of(other) == [0, 1, 2, 3]


def test_state_between_calls(numbered):
    reader = File(files=numbered(5), random_shuffle=True, initial_fill=2)
    for _ in range(7):
        reader()
    other = File(files=numbered(5), random_shuffle=True, initial_fill=2)
    other.set_state(reader.get_state())
    assert [labels_of(reader()) for _ in range(9)] == [labels_of(other()) for _ in range(9)]


def test_state_is_what_was_given_not_what_was_read_ahead(numbered):
    reader = File(files=numbered(40), prefetch_queue_depth=8)
    epoch = reader.next_epoch(batch_size=2)
    list(islice(epoch, 3))
    assert json.loads(str(reader.get_state()))["offset"] == 6


def test_state_after_a_bad_file_goes_on_after_it(numbered):
    files = [*numbered(4)]
    files[1] = "/nonexistent"
    reader = File(files=files)
    epoch = reader.next_epoch()
    next(epoch)
    with pytest.raises(RuntimeError):
        next(epoch)
    other = File(files=files)
    other.set_state(reader.get_state())
    assert epoch_of(other) == [2, 3]


def test_enable_checkpointing_changes_nothing(numbered):
    given_ = {"files": numbered(10), "random_shuffle": True, "initial_fill": 3}
    assert run(File(**given_), 4, 3) == run(File(**given_, enable_checkpointing=True), 4, 3)


FORGED = [None, -1, 0, 1, 2**31, 2**63, 2**70, 1.5, float("nan"), "x", [], [1], {}, True, [0, 0], [0, -1], [2**70] * 2]


def test_forged_states_are_refused_or_harmless(numbered):
    """Every field with every kind of value, cut and garbled texts: a ValueError or TypeError that names the reader at
    `set_state` or at the data, or a reader that goes on."""
    files, whole = numbered(6), {"shuffle": "global", "seed": 3}
    first = File(files=files, **whole)
    next(first.next_epoch(batch_size=2))
    text = str(first.get_state())
    fields = json.loads(text)
    forged = [json.dumps({**fields, key: value}) for key in fields for value in FORGED]
    forged += [json.dumps({k: v for k, v in fields.items() if k != key}) for key in fields]
    forged += [text[:i] for i in range(0, len(text), 5)] + [text.replace(c, "7", 1) for c in sorted(set(text))]
    forged += [b"\xff\xfe", "null", "[]", "3", "NaN", "[" * 100_000, b"\0" * 10]
    said = []
    for state in forged:
        reader = File(files=files, **whole)
        try:
            reader.set_state(state)
            assert sum(1 for _ in islice(reader.next_epoch(batch_size=2), 9)) > 0
        except (ValueError, TypeError, RuntimeError) as error:
            said.append(str(error))
        finally:
            reader.close()
    assert len(said) > 0.6 * len(forged)
    assert not [text for text in said if "readers.File" not in text]


@pytest.mark.parametrize("last_batch", ["fill", "partial"])
def test_a_pickled_epoch_is_its_rest(numbered, last_batch):
    """Also where `next` asks it, as no loop does."""
    epoch = File(files=numbered(6)).next_epoch(2, last_batch=last_batch)
    next(epoch)
    again = pickle.loads(pickle.dumps(epoch))
    assert [labels_of(value) for value in iter(lambda: next(again, None), None)] == [[2, 3], [4, 5]]
    assert [labels_of(value) for value in copy.deepcopy(epoch)] == [[2, 3], [4, 5]]
    assert [labels_of(value) for value in iter(lambda: next(epoch, None), None)] == [[2, 3], [4, 5]]
