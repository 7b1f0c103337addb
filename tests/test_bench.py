"""`python -m ndd bench`, with tiny sizes: the numbers are there, and the table fits both libraries."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ndd
from ndd.__main__ import main
from ndd._operator import all_operators
from ndd.bench import (
    augment,
    command,
    detection,
    dispatch,
    loop,
    operator_inputs,
    operator_table,
    operators,
    rounds,
    soak,
    start,
)  # fmt: skip
from ndd.bench.libraries import Setting, enumerations, finish, make_setting
from ndd.bench.operator_table import TABLE, WITHOUT_A_LINE

GPU_ONLY = {
    "jitter", "experimental.remap", "experimental.median_blur", "experimental.dilate", "experimental.erode",
    "optical_flow",
}  # fmt: skip


@pytest.fixture
def alone():
    """ndd without DALI, as short as can be."""
    setting = Setting("cpu", 2, {"ndd": ndd}, rounds=1, seconds=0.0)
    yield setting
    ndd.set_num_threads(None)


def test_dispatch(alone, monkeypatch):
    monkeypatch.setattr(dispatch, "_CALLS", 16)
    found = list(dispatch.measure(alone))
    assert [r.unit for r in found] == ["us"] * 4
    assert all(0 < r.ndd < 1e5 for r in found)
    assert all(r.ratio is None for r in found)


def test_speech(alone):
    from ndd.bench import speech

    alone.rounds = 1
    whole, read, decoded = speech.measure(alone, None, batch_size=4, recordings=4)
    assert whole.ndd > 0
    assert whole.dali is None
    assert (read.section, decoded.unit) == ("speech", "files/s")


def test_loop(alone):
    found, spent, *threads = loop.measure(alone, None, batch_sizes=[8], images=16, only="resize")
    assert spent.unit == "ms"
    assert spent.ndd > 0
    assert found.unit == "images/s"
    assert found.ndd > 1
    assert "2 threads" in found.name
    assert all("of the threads ndd-" in thread.name for thread in threads)


def test_augment(alone):
    loop, by_itself = augment.measure(alone, None, batch_size=4, images=8)
    assert loop.ndd > 1
    assert by_itself.ndd > 1
    assert "RandAugment" in loop.name


def test_detection(alone):
    (found,) = detection.measure(alone, None, batch_size=4, images=8)
    assert found.unit == "images/s"
    assert found.ndd > 0.1
    boxes = np.array(detection.anchors()).reshape(-1, 4)
    assert len(boxes) == 8732  # of SSD300
    assert (boxes[:, :2] < boxes[:, 2:]).all()


@pytest.mark.parametrize("part", ["threads", "abandoned", "exceptions"])
def test_soak(alone, part):
    """A short piece of each part that counts failures. Memory says nothing after so few iterations."""
    found = list(soak.measure(alone, None, count=16, only=part))
    assert [r.ndd for r in found if r.target == "0"] == [0.0], found
    assert any(r.unit.startswith("kB") for r in found) == (part in ("abandoned", "exceptions"))


def test_operators(alone):
    found = list(operators.measure(alone, None, batch_size=2, only="flip"))
    assert found[0].name.startswith("flip, 2 samples")
    assert found[0].ndd > 0


@pytest.mark.oracle
def test_the_table_suits_dali(dali):
    """Every line works with DALI, so that a number that is missing is ours."""
    source = operator_inputs.arrays(None, 2)
    x = operator_inputs.inputs(dali, source, "cpu", enumerations("DALI"))
    for name, call in TABLE.items():
        if name not in GPU_ONLY:
            finish(call(dali, x))


def test_the_table_suits_ndd():
    """Every line whose operator is here works on the CPU, or is for the GPU alone."""
    source = operator_inputs.arrays(None, 2)
    x = operator_inputs.inputs(ndd, source, "cpu", ndd.types)
    wrong = []
    for name, call in TABLE.items():
        try:
            finish(call(ndd, x))
        except AttributeError:
            continue
        except Exception as error:
            if name not in GPU_ONLY:
                wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_operator_has_a_line_or_a_reason():
    text = Path(operator_table.__file__).read_text()
    ours = [name for name, op in all_operators().items() if op.ours]
    without = {
        name for name in ours if f"m.{name}(" not in text and f"m.{name.removeprefix('experimental.')}(" not in text
    }
    assert without == set(WITHOUT_A_LINE)


def test_an_operator_that_one_side_lacks_is_a_line_without_a_number(alone):
    alone.libraries = {"ndd": ndd, "DALI": SimpleNamespace()}
    result = operators._compare(
        alone, "flip", lambda m, x: m.flip(x), {"ndd": ndd.batch([np.zeros((2, 2, 3), np.uint8)]), "DALI": None}, 1
    )
    assert result.ndd > 0
    assert result.dali is None
    assert result.target == "not in DALI"
    assert command.line(result).split()[-4:] == ["-", "not", "in", "DALI"]


@pytest.mark.slow
def test_import_time(alone):
    (found,) = start.measure_import(alone)
    assert 0 < found.ndd < 5


@pytest.mark.slow
def test_first_call_from_an_empty_and_a_filled_cache(alone, monkeypatch):
    monkeypatch.setattr(start, "_FEW", ("flip",))
    cold, warm = start.measure_first_call(alone)
    assert "compiled anew" in cold.name
    assert 0 < warm.ndd < 2 * cold.ndd  # NumPy answers until a kernel is compiled: both may take the same


@pytest.mark.slow
def test_first_calls_of_the_table(alone):
    (found,) = start.measure_first_calls(alone, only="coord_flip")
    assert found.ndd > 0
    assert "of CPU time" in found.target


@pytest.mark.oracle
def test_both_sides_have_the_same_threads(dali):
    setting = make_setting("cpu", 1)
    assert set(setting.libraries) == {"ndd", "DALI"}
    assert ndd.get_num_threads() == dali.get_num_threads() == 1
    ndd.set_num_threads(None)
    dali.set_num_threads(None)


def test_the_command_and_its_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dispatch, "_CALLS", 8)
    path = tmp_path / "numbers.json"
    assert main(["bench", "dispatch", "--rounds", "1", "--no-dali", "--json", str(path)]) == 0
    text = capsys.readouterr().out
    assert "DALI is left out" in text
    saved = json.loads(path.read_text())
    assert saved["machine"]["threads"] == ndd.get_num_threads()
    assert len(saved["results"]) == 4
    assert saved["results"][0]["ratio"] is None
    ndd.set_num_threads(None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["loop", "--data", "nowhere", "--no-dali"], "nowhere does not exist"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, capsys):
    assert main(["bench", *arguments]) == 1
    assert sentence in capsys.readouterr().err


def test_gpu_without_a_gpu(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["bench", "--device", "gpu"]) == 1
    assert "torch sees no GPU" in capsys.readouterr().err


def test_rounds_alternate_and_give_medians():
    calls = []
    values = {"a": iter([1.0, 9.0, 2.0]), "b": iter([5.0, 4.0, 6.0])}

    def side(name):
        calls.append(name)
        return next(values[name])

    found = rounds.interleaved({"a": lambda: side("a"), "b": lambda: side("b")}, 3)
    assert found == {"a": 2.0, "b": 5.0}
    assert calls == list("abbaab")


def test_results():
    result = rounds.Result("loop", "x", "images/s", 300.0, 150.0, "ratio >= 1.7")
    assert result.ratio == 2.0
    assert result.record()["ratio"] == 2.0
    assert "2.00" in command.line(result)
    assert "1,500" in command.line(rounds.Result("loop", "x", "us", 1500.0, None))


def test_what_readers_are_measured_on_is_what_was_written(tmp_path):
    import ndd.bench.readers as bench

    contents = [bytes(range(256)) * 3, bytes(255)]
    arguments = bench.KINDS["NemoAsr"].make(tmp_path, contents)
    (tmp_path / "large").write_bytes(contents[0] * 5000)
    bench._as_from_a_disk(tmp_path)
    assert (tmp_path / "large").read_bytes() == contents[0] * 5000
    samples, rate, text = ndd.readers.NemoAsr(**arguments, dtype=ndd.int16).fetch([0, 1])
    assert samples.tensors[0].numpy().tobytes() == contents[0]
    assert samples.shape == [(384,), (127,)]
    assert rate.torch().tolist() == [16_000, 16_000]
    assert bytes(text.tensors[1].numpy()) == b"1"
