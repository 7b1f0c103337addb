"""What holds for every reader, tested for all that `ndd.readers` has: a new one is an entry in `datasets.py`."""

import inspect
import json
import os
import pickle
import typing

import numpy as np
import pytest
import warm_interpreter
from hypothesis import HealthCheck, given, settings, strategies as st
from waiting import wait_until

import ndd
import ndd.readers
from readers.datasets import DATASETS

NAMES = [
    f"experimental.{name}" if home is not ndd.readers and hasattr(ndd.readers, name) else name
    for home in (ndd.readers, ndd.experimental.readers) for name in home.__all__
    if issubclass(kind := getattr(home, name), ndd.readers.Reader) and kind is not ndd.readers.Reader
]  # fmt: skip
MODES = [None, 1, 3]
every_reader = pytest.mark.parametrize("name", [name for name in NAMES if name in DATASETS])


def test_every_reader_has_data():
    untested, unknown = set(NAMES) - set(DATASETS), set(DATASETS) - set(NAMES)
    assert not untested, (
        f"without an entry in DATASETS of datasets.py, by which the tests here find their data: {untested}"
    )
    assert not unknown, f"in DATASETS of datasets.py, but in `__all__` of no room of readers: {unknown}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`made(name, count)`: the arguments of a reader for `count` records; written once."""
    known = {}

    def make(name, count):
        if (name, count) not in known:
            known[name, count] = DATASETS[name].make(tmp_path_factory.mktemp(name), count)
        return known[name, count]

    return make


def kind_of(name, package=ndd):
    """The class, which may be an experimental one; None where the package has none."""
    if name.startswith("experimental."):
        return getattr(package.experimental.readers, name.partition(".")[2])
    return getattr(package.readers, name, None) or getattr(package.experimental.readers, name, None)


def reader_of(name, arguments, package=ndd, **more):
    if package is not ndd:
        arguments = DATASETS[name].for_dali(arguments)
    return kind_of(name, package)(**arguments, **more)


def parts(value):
    return list(value.values()) if isinstance(value, dict) else list(value)


def numbers(name, value):
    """The number of a sample, or those of the samples of a batch. Texts must be those of the same samples."""
    outputs = parts(value)
    if not hasattr(outputs[0], "tensors"):
        number = DATASETS[name].number([np.asarray(output) for output in outputs])
        assert all(output.endswith(str(number)) for output in outputs if isinstance(output, str))
        return number
    samples = zip(*(getattr(output, "tensors", output) for output in outputs), strict=True)
    return [numbers(name, sample) for sample in samples]


def epoch(name, reader, batch=None):
    return [numbers(name, value) for value in reader.next_epoch(**({} if batch is None else {"batch_size": batch}))]


@st.composite
def orders(draw, of_epochs):
    size = draw(st.integers(1, 30))
    shards = draw(st.integers(1, min(size, 5)))
    result = {
        "num_shards": shards, "shard_id": draw(st.integers(0, shards - 1)), "pad_last_batch": draw(st.booleans()),
    }  # fmt: skip
    kinds = ["stored", "random_shuffle", "shuffle_after_epoch"][: 3 if of_epochs else 2]
    order = draw(st.sampled_from(kinds))
    if order != "stored":
        result[order] = True
    if order == "random_shuffle":
        result["initial_fill"] = draw(st.sampled_from([1, 2, 3, 8, 1024]))
        result["seed"] = draw(st.sampled_from([-1, 0, 77, 2**31 - 1, -(2**31)]))
    if order == "shuffle_after_epoch":
        result["shuffle_after_epoch_seed"] = draw(st.sampled_from([524287, 0, 3, 2**40, -7]))
        result["enable_checkpointing"] = draw(st.booleans())
    if order != "shuffle_after_epoch":
        result["stick_to_shard"] = draw(st.booleans())
    elif not result["pad_last_batch"] and size % shards:  # epochs have other lengths than in DALI, see `readers.File`
        result.update(num_shards=1, shard_id=0)
    return size, draw(st.sampled_from([None, 1, 2, 3, 8, 40])), result


@pytest.mark.parametrize("name", [name for name in NAMES if name in DATASETS and DATASETS[name].dali])
@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.*random_shuffle draws from")
@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.drawn(2)
def test_order_against_dali(made, name, data):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    of_epochs = kind_of(name)._has_epoch_shuffle and DATASETS[name].dali_shuffles
    size, batch, options = data.draw(orders(of_epochs))
    ours, theirs = (reader_of(name, made(name, size), package, **options) for package in (ndd, dali))
    for _ in range(4):
        assert epoch(name, ours, batch) == epoch(name, theirs, batch)
    assert ours.get_metadata() == reader_of(name, made(name, size), dali, **options).get_metadata()


@pytest.mark.drawn(3)
@every_reader
def test_shuffling_after_epochs(made, name):
    if not kind_of(name)._has_epoch_shuffle:
        with pytest.raises(TypeError, match="shuffle_after_epoch"):
            reader_of(name, made(name, 3), shuffle_after_epoch=True)
        return
    sides = [reader_of(name, made(name, 12), shuffle_after_epoch=True, num_shards=2, shard_id=i) for i in (0, 1)]
    epochs = [epoch(name, sides[0]) + epoch(name, sides[1]) for _ in range(3)]
    assert all(sorted(e) == list(range(12)) for e in epochs)
    assert len({tuple(e) for e in [*epochs, list(range(12))]}) == 4


@pytest.mark.drawn(2)
@every_reader
def test_shards_are_a_partition(made, name):
    seen = [epoch(name, reader_of(name, made(name, 10), num_shards=3, shard_id=i)) for i in range(3)]
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    for i in range(3):
        stuck = reader_of(name, made(name, 10), num_shards=3, shard_id=i, stick_to_shard=True, pad_last_batch=True)
        assert [epoch(name, stuck, 2) for _ in range(2)] == [
            [[3 * i, 3 * i + 1], [3 * i + 2, 3 * i + (3 if i == 2 else 2)]]
        ] * 2


@pytest.mark.drawn(2)
@every_reader
@pytest.mark.parametrize("batch", MODES)
@pytest.mark.parametrize("options", [{}, {"shuffle": "global", "seed": 3}, {"num_shards": 2, "pad_last_batch": True}])
def test_every_place_resumes(made, name, batch, options):
    arguments = made(name, 7)
    reader = reader_of(name, arguments, **options)
    given_, states = [], []
    for _ in range(2):
        for value in reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch):
            given_.append(numbers(name, value))
            states.append(str(reader.get_state()))
    following = epoch(name, reader, batch)
    for place, state in enumerate(states):
        other = reader_of(name, arguments, **options)
        other.set_state(state)
        rest = epoch(name, other, batch)
        while len(rest) < len(given_) - place - 1 + len(following):
            rest += epoch(name, other, batch)
        assert rest[: len(given_) - place - 1] == given_[place + 1 :]


@every_reader
def test_access_by_number(made, name):
    reader = reader_of(name, made(name, 6), shuffle="global")
    assert len(reader) == 6
    assert numbers(name, reader[4]) == 4
    assert numbers(name, reader[-1]) == 5
    assert numbers(name, reader[1:4]) == [1, 2, 3]
    assert numbers(name, reader.fetch([5, 0, 5])) == [5, 0, 5]
    assert sorted(epoch(name, reader)) == list(range(6))


@every_reader
@pytest.mark.parametrize("batch", MODES)
def test_outputs_are_as_declared(made, name, batch):
    kind = kind_of(name)
    arguments = made(name, 5)
    declared = kind.outputs(**arguments)
    reader = kind(**arguments)
    assert reader.num_outputs == len(declared) > 0
    assert len({output.name for output in declared}) == len(declared)
    for value in reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch):
        assert isinstance(value, dict if kind.gives_dicts else tuple)
        if kind.gives_dicts:
            assert list(value) == [output.name for output in declared]
        for output, result in zip(declared, parts(value), strict=True):
            if isinstance(result, str if batch is None else list):  # texts
                assert output.dtype is None
                continue
            assert isinstance(result, ndd.Tensor if batch is None else ndd.Batch)
            assert output.dtype in (None, result.dtype)
            assert output.ndim in (None, result.ndim)
            assert output.layout == result.layout
            assert output.device == result.device.device_type == "cpu"


@every_reader
def test_outputs_on_the_gpu_are_declared(made, name):
    kind = kind_of(name)
    arguments = made(name, 3)
    if "gpu" not in kind.devices:
        with pytest.raises(ValueError, match="this reader runs on cpu"):
            kind.outputs(**arguments, device="gpu")
        return
    assert any(output.device == "gpu" for output in kind.outputs(**arguments, device="gpu"))
    assert kind.outputs(**arguments, device="cuda:0") == kind.outputs(**arguments, device="gpu")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", [name for name in NAMES if name in DATASETS and "gpu" in kind_of(name).devices])
@pytest.mark.parametrize("batch", MODES)
def test_outputs_are_delivered_on_the_gpu(made, name, batch, emulated_gpu):
    """What is declared to follow the device, and no more, equal to what is read on the CPU; several epochs, so that
    batches also come from a lookahead."""
    kind = kind_of(name)
    arguments = made(name, 5)
    device = "gpu" if emulated_gpu.real else "gpu:1"
    declared = kind.outputs(**arguments, device=device)
    there, here = kind(**arguments, device=device), kind(**arguments)
    for _ in range(3):
        sides = [r.next_epoch() if batch is None else r.next_epoch(batch_size=batch) for r in (there, here)]
        for first, second in zip(*sides, strict=True):
            for output, result, expected in zip(declared, parts(first), parts(second), strict=True):
                assert result.device == ndd.Device(device if output.device == "gpu" else "cpu")
                assert result.source_info == expected.source_info
                pairs = [(result, expected)] if batch is None else zip(result.tensors, expected.tensors, strict=True)
                assert all(np.array_equal(np.asarray(a.cpu()), np.asarray(b)) for a, b in pairs)
    assert parts(there[2])[0].device == ndd.Device(device if declared[0].device == "gpu" else "cpu")


@every_reader
@pytest.mark.drawn(3)
def test_samples_know_where_they_are_from(made, name):
    reader = reader_of(name, made(name, 5))
    batch = next(reader.next_epoch(batch_size=5))
    sources = parts(batch)[0].source_info
    assert len(set(sources)) == 5
    assert all(os.path.exists(source.partition(" ")[0]) for source in sources)
    assert all(output.source_info == sources for output in parts(batch) if isinstance(output, ndd.Batch))
    assert [parts(reader[i])[0].source_info for i in range(5)] == sources


@every_reader
@pytest.mark.drawn(2)
def test_a_damaged_record_harms_only_its_batch(tmp_path, name):
    data = DATASETS[name]
    arguments = data.make(tmp_path, 8)
    reader = reader_of(name, arguments)
    source = parts(reader[2])[0].source_info
    data.damage(tmp_path, 2)
    reader.close()
    batches = reader.next_epoch(batch_size=2)
    assert numbers(name, next(batches)) == [0, 1]
    with pytest.raises(RuntimeError) as raised:
        next(batches)
    text = str(raised.value)
    assert text.startswith(f"{kind_of(name)._display}: sample 2 ({source}): expected a readable record, got ")
    assert len(text) > len(source) + 80
    assert [numbers(name, value) for value in batches] == [[4, 5], [6, 7]]


@every_reader
@pytest.mark.drawn(2)
def test_files_are_closed(made, name):
    def opened():
        return len(os.listdir("/proc/self/fd"))

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    reader = reader_of(name, made(name, 6))
    epoch(name, reader, 2)
    reader.close()
    before = opened()
    for _ in range(5):
        assert epoch(name, reader, 2) == [[0, 1], [2, 3], [4, 5]]
        assert len(parts(reader[1])) == reader.num_outputs
        reader.close()
    wait_until(lambda: opened() <= before)  # a thread may still be reading ahead
    for _ in range(20):
        assert numbers(name, reader_of(name, made(name, 6))[3]) == 3
    wait_until(lambda: opened() <= before)  # a thread may still be reading ahead


@pytest.mark.drawn(2)
@every_reader
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("batch", [None, 2])
def test_a_forked_child_goes_on(made, name, batch):
    reader = reader_of(name, made(name, 8))
    values = iter(reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch))
    first = numbers(name, next(values))
    rest = list(range(1, 8)) if batch is None else [[2, 3], [4, 5], [6, 7]]
    child = os.fork()
    if child == 0:
        os._exit(0 if [numbers(name, v) for v in values] == rest else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert [numbers(name, v) for v in values] == rest
    assert first == (0 if batch is None else [0, 1])


@every_reader
@pytest.mark.drawn(2)
def test_a_copy_for_another_process_goes_on(made, name):
    reader = reader_of(name, made(name, 7), shuffle="global", seed=5)
    values = reader.next_epoch(batch_size=3)
    next(values)
    other = pickle.loads(pickle.dumps(reader))
    assert str(other.get_state()) == str(reader.get_state())
    assert epoch(name, other, 3) == [numbers(name, value) for value in values]


_IN_ANOTHER_PROCESS = """
import json, pickle, sys
from readers.test_every_reader import numbers
with open(sys.argv[1], "rb") as file:
    readers = pickle.load(file)
print(json.dumps({name: [numbers(name, reader[i]) for i in range(4)] for name, reader in readers.items()}))
"""


def test_another_process_reads(made, tmp_path):
    """Each reader goes there as a pickle, used before; one process for all, since it takes a second to start."""
    readers = {name: reader_of(name, made(name, 4)) for name in DATASETS}
    for name, reader in readers.items():
        epoch(name, reader, 2)
    path = tmp_path / "readers"
    path.write_bytes(pickle.dumps(readers))
    done = warm_interpreter.run(_IN_ANOTHER_PROCESS, str(path), has_ndd=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [0, 1, 2, 3] for name in DATASETS}


@every_reader
def test_signature_and_documentation(name):
    """Everything is in the signature, with types that a stub can repeat, and in the docstring."""
    kind = kind_of(name)
    parameters = inspect.signature(kind).parameters
    for parameter in parameters.values():
        assert not isinstance(parameter.annotation, str), parameter
        assert "Any" not in str(parameter.annotation)
        optional = type(None) in typing.get_args(parameter.annotation)
        assert parameter.name == "device" or optional == (parameter.default is not parameter.empty)
    assert [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD] == [
        *kind._leading, "max_batch_size", "name", "device", "num_inputs",
    ]  # fmt: skip
    said = inspect.getdoc(kind).partition("\nArgs:\n")[2].partition("\n\n")[0]
    documented = {word.strip() for line in said.splitlines() for word in line.partition(":")[0].split(",")}
    assert set(parameters) <= documented
    with pytest.raises(TypeError, match=f"{kind._display}: .*'foo'"):
        kind(**{p.name: "x" for p in parameters.values() if p.default is p.empty}, foo=3)


@every_reader
@pytest.mark.oracle
def test_signature_against_dali(name):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    if kind_of(name, dali) is None:
        pytest.skip("a reader beyond DALI's")
    ours = inspect.signature(kind_of(name)).parameters
    theirs = {n: p for n, p in inspect.signature(kind_of(name, dali)).parameters.items() if not n.startswith("_")}
    assert list(ours)[: len(theirs)] == list(theirs)
    assert all(ours[n].kind == p.kind for n, p in theirs.items())
    own = ["labels"] if name == "Numpy" else []
    assert list(ours)[len(theirs) :] == [*own, "shuffle", "sampler", "shard", "on_error"]
