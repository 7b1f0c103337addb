"""`python -m ndd bench`, with tiny sizes: the numbers are there, and the table fits both libraries."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import ndd
from ndd.__main__ import main
from ndd._operator import all_operators
from ndd.bench import (
    augment,
    cold,
    command,
    detection,
    dispatch,
    loop,
    loop_pictures,
    operator_inputs,
    operator_side,
    operator_table,
    operators,
    process,
    rounds,
    soak,
    start,
    torchvision as recipes_of_torchvision,
    train,
)  # fmt: skip
from ndd.bench.libraries import Setting, enumerations, finish, make_setting
from ndd.bench.operator_table import TABLE, WITHOUT_A_LINE
from ndd.demo import folder as demo_folder

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
    actual = list(dispatch.measure(alone))
    assert [r.unit for r in actual] == ["us"] * 4
    assert all(0 < r.ndd < 1e5 for r in actual)
    assert all(r.ratio is None for r in actual)


def test_torchvision(alone):
    """Both sides give images a second of a recipe, or ndd's alone where torchvision is not installed."""
    actual = list(recipes_of_torchvision.measure(alone, None, batch_size=4, images=8, only="val"))
    assert [result.unit for result in actual] == ["images/s"]
    assert actual[0].ndd > 0
    assert actual[0].dali is None or actual[0].ratio > 0


def test_cold(alone, monkeypatch, capsys):
    """The loop of one side; and what is told of the times of several."""
    common = ["--threads", "1", "--batch-size", "2", "--data", str(demo_folder.PHOTOS), "--device", "cpu"]
    cold.main(["ndd", "--begun", str(time.monotonic()), "--seconds", "0.2", *common])
    times = json.loads(capsys.readouterr().out)
    assert times == sorted(times)
    assert times[-1] > 0.2

    asked = []

    def faked(side, setting, data, batch_size, environment):
        asked.append((side, environment.get("NDD_COMPILE_IN_BACKGROUND")))
        speed = 20 if len(asked) == 4 else 10  # batches a second
        return [k / speed for k in range(1, 31 * speed)]

    monkeypatch.setattr(cold, "_times", faked)
    alone.libraries["DALI"] = None
    actual = list(cold.measure(alone, None))
    assert asked == [("ndd", None), ("DALI", None), ("ndd", "0"), ("ndd", None)]
    assert [r.ndd for r in actual] == [0.1, 50, 100, 200, 300, None, 0.05, 100, 200, 400, 600, 0.05]
    assert [r.dali for r in actual] == 2 * [0.1, 50, 100, 200, 300, 0.1]
    assert actual[5].name == "to 80 % of the warm rate; empty cache, CPU, 2 threads"


def test_a_rate_is_reached_when_it_lasts():
    slow, fast = [0.5 * k for k in range(1, 11)], [5 + 0.1 * k for k in range(1, 101)]
    assert cold.warm_rate(slow + fast) == pytest.approx(10, rel=0.05)
    assert cold.seconds_to(slow + fast, 10.0) == 4.5  # most of the two seconds that follow
    assert cold.seconds_to(slow, 10.0) is None
    assert cold.seconds_to([1.0], 10.0) is None


def test_speech(alone):
    from ndd.bench import speech

    alone.rounds = 1
    whole, read, decoded = speech.measure(alone, None, batch_size=4, recordings=4)
    assert whole.ndd > 0
    assert whole.dali is None
    assert (read.section, decoded.unit) == ("speech", "files/s")


def test_loop(alone):
    actual, spent, process, *threads = loop.measure(alone, None, batch_sizes=[8], images=16, only="resize")
    assert (spent.unit, process.unit) == ("ms", "ms")
    assert 0 < spent.ndd / 8 < process.ndd
    assert actual.unit == "images/s"
    assert actual.ndd > 1
    assert "2 threads" in actual.name
    assert all("of the threads ndd-" in thread.name for thread in threads)


def test_loops_of_all_kinds_of_pictures(alone, monkeypatch):
    """Each is converted and given to the chosen sides; large ones in small batches."""
    seen = []

    def faked(side, setting, case):
        files = demo_folder.scan(case.root).files
        seen.append((side, case.pictures, case.batch_size, case.images, {Path(name).suffix for name in files}))
        return loop._Times(2.0, 1.0, 3.0)

    monkeypatch.setattr(loop, "_times", faked)
    kinds = {name: loop_pictures.PICTURES[name] for name in ("tiny-png", "12mp", "tiff-jpeg")}
    monkeypatch.setattr(loop, "PICTURES", {**kinds, "12mp": kinds["12mp"]._replace(size=(40, 30), most=2)})
    monkeypatch.setattr(loop_pictures, "PICTURES", loop.PICTURES)
    alone.libraries["DALI"] = None
    results = list(loop.measure(alone, None, [256], 512, "normalize", "all", sides="DALI Dynamic,ndd"))
    assert len(results) == 9
    assert all(result.ratio == 1 for result in results)
    assert seen[::2] == [
        ("ndd", "tiny-png", 256, 512, {".png"}), ("ndd", "12mp", 2, 8, {".jpg"}), ("ndd", "tiff-jpeg", 256, 512, {".tif"}),
    ]  # fmt: skip
    assert [side for side, *_ in seen[1::2]] == ["DALI dynamic"] * 3


def test_no_file_is_read_twice_in_an_epoch_of_reading_alone(tmp_path):
    """DALI copies a file that is named again from a mapping that it keeps, which no data set would show."""
    photos = demo_folder.PHOTOS
    links = loop_pictures.distinct_files(tmp_path, photos, 100)
    names = demo_folder.scan(links).files
    assert len(set(names)) == len(names) >= 100
    contents = {(photos / name).read_bytes() for name in demo_folder.scan(photos).files}
    assert {(links / name).read_bytes() for name in names} == contents
    assert loop_pictures.distinct_files(tmp_path, photos, 1) == photos


def test_augment(alone):
    loop, by_itself = augment.measure(alone, None, batch_size=4, images=8)
    assert loop.ndd > 1
    assert by_itself.ndd > 1
    assert "RandAugment" in loop.name


def test_detection(alone):
    (actual,) = detection.measure(alone, None, batch_size=4, images=8)
    assert actual.unit == "images/s"
    assert actual.ndd > 0.1
    boxes = np.array(detection.anchors()).reshape(-1, 4)
    assert len(boxes) == 8732  # of SSD300
    assert (boxes[:, :2] < boxes[:, 2:]).all()


@pytest.mark.parametrize("part", ["threads", "abandoned", "exceptions"])
@pytest.mark.drawn(1)
def test_soak(alone, part):
    """A short piece of each part that counts failures. Memory says nothing after so few iterations."""
    actual = list(soak.measure(alone, None, count=16, only=part))
    assert [r.ndd for r in actual if r.target == "0"] == [0.0], actual
    assert any(r.unit.startswith("kB") for r in actual) == (part in ("abandoned", "exceptions"))


@pytest.mark.oracle
def test_operators(dali):
    setting = Setting("cpu", 1, {"ndd": ndd, "DALI": dali}, rounds=1, seconds=0.0)
    (actual,) = operators.measure(setting, None, batch_size=2, only="reshape")
    assert actual.name == "reshape, 2 samples, CPU"
    assert actual.ndd > 0
    assert actual.dali > 0
    assert actual.target == ""


def one_row(**sides: Any):
    """The result of the row `flip` with a library for each side."""
    setting = Setting("cpu", 1, sides, seconds=0.0)
    x = SimpleNamespace(images=ndd.batch([np.zeros((2, 2, 3), np.uint8)], layout="HWC"))
    answers = {side: operator_side.Rows(setting, side, x).answer for side in sides}
    return operators._compare("flip", "flip, 1 samples, CPU", answers, 1)


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


def test_an_operator_that_one_side_lacks_is_a_line_without_a_number():
    result = one_row(ndd=ndd, DALI=SimpleNamespace())
    assert result.ndd > 0
    assert result.dali is None
    assert result.target == "not in DALI"
    assert command.line(result).split()[-4:] == ["-", "not", "in", "DALI"]


def test_an_operator_that_one_side_refuses_is_a_line_with_the_reason():
    def flip(images, horizontal):
        raise RuntimeError("Operator flip") from ValueError("no such layout\nand more")

    result = one_row(ndd=ndd, DALI=SimpleNamespace(flip=flip))
    assert result.ndd > 0
    assert (result.dali, result.target) == (None, "DALI: no such layout")


class OnItsGPU:
    """A value of DALI's: made on its GPU of inputs of the CPU, as its operators that have no other kernel do."""

    device = SimpleNamespace(device_type="gpu")

    def evaluate(self):
        return self


@pytest.mark.parametrize("several", [False, True])
def test_a_kernel_that_is_only_launched_is_not_compared_with_the_cpu(several):
    output = (ndd.tensor([1]), OnItsGPU()) if several else OnItsGPU()
    result = one_row(ndd=ndd, DALI=SimpleNamespace(flip=lambda images, horizontal: output))
    assert result.ndd > 0
    assert result.ratio is None
    assert (result.dali, result.target) == (None, "DALI: on its GPU only")


def test_the_table_of_the_gpu_has_what_lies_there(monkeypatch):
    monkeypatch.setattr(Setting, "synchronize", lambda self: None)
    setting = Setting("gpu", 1, {"DALI": SimpleNamespace(flip=lambda images, horizontal: OnItsGPU())}, seconds=0.0)
    assert operator_side.Rows(setting, "DALI", SimpleNamespace(images=None)).answer("flip")["seconds"] > 0


class Mortal:
    """A process of one library that ends when `bb_flip` is asked for, DALI's in the midst of it."""

    started: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []

    def __init__(self, module: str, side: str, *arguments: str):
        self.side = side
        self.started.append(side)

    def ask(self, row: str) -> dict[str, Any]:
        self.asked.append(f"{self.side} {row}".strip())
        if self.side == "DALI" and self.asked.count("DALI bb_flip") == 2 and row == "bb_flip":
            raise RuntimeError("the process that measures ended: -11")
        return {"seconds": 0.001} if row else {}

    def close(self) -> None:
        self.asked.append(f"{self.side} closed")


def test_a_process_that_ends_is_a_line_and_the_next_row_has_a_new_one(alone, monkeypatch):
    monkeypatch.setattr(operators, "Process", Mortal)
    monkeypatch.setattr(Mortal, "started", [])
    monkeypatch.setattr(Mortal, "asked", [])
    alone.libraries["DALI"] = None
    results = list(operators.measure(alone, None, batch_size=2, only="flip"))
    died = [r for r in results if r.dali is None]
    assert [(r.name, r.ndd, r.target) for r in died] == [
        ("bb_flip, 2 samples, CPU", 1.0, "DALI: the process that measures ended: -11")
    ]
    assert [(r.ndd, r.dali, r.target) for r in results if r not in died] == [(1.0, 1.0, "")] * (len(results) - 1)
    assert Mortal.started == ["ndd", "DALI", "DALI"]
    assert Mortal.asked[:6] == ["ndd", "ndd flip", "DALI", "DALI flip", "ndd flip", "DALI flip"]
    after = Mortal.asked[Mortal.asked.index("DALI closed") :]
    assert after[:4] == ["DALI closed", "ndd bb_flip", "ndd bb_flip", "ndd coord_flip"]
    assert after[4:6] == ["DALI", "DALI coord_flip"]
    assert after[-2:] == ["ndd closed", "DALI closed"]


def test_a_process_that_cannot_start_ends_the_table(alone, monkeypatch):
    class Broken(Mortal):
        def ask(self, row: str) -> dict[str, Any]:
            raise RuntimeError("the process that measures ended: 1")

    monkeypatch.setattr(operators, "Process", Broken)
    with pytest.raises(RuntimeError, match="ended: 1"):
        list(operators.measure(alone, None, batch_size=2))


def test_a_process_that_ended_says_so_whenever_it_is_asked():
    asked = process.Process("keyword")  # a module that does nothing
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the process that measures ended: 0"):
            asked.ask("flip")
    asked.close()


def test_the_last_line_sums_up(alone, monkeypatch, capsys):
    def row(name: str, ours: float | None, theirs: float | None):
        return rounds.Result("ops", f"{name}, 64 samples, CPU", "ms", ours, theirs)

    rows = [
        row("flip", 1.0, 4.0),
        row("x * 0.5 + 3", 3.0, 2.0),
        row("random.normal [1000]", 4.0, 2.0),
        row("jitter", 1.0, None),
    ]
    monkeypatch.setattr(operators, "measure", lambda *_: iter(rows))
    assert main(["bench", "ops", "--no-dali"]) == 0
    ndd.set_num_threads(None)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "ops: 4 rows, 3 with both numbers; geometric mean of the ratios 0.909; "
        "above 1.0: random.normal [1000] 2.00, x * 0.5 + 3 1.50"
    )
    assert operators.summary(rows[:1]).endswith("above 1.0: none")
    assert operators.summary(rows[3:]) == "ops: 1 rows, none with both numbers"


@pytest.mark.slow
def test_import_time(alone):
    (actual,) = start.measure_import(alone)
    assert 0 < actual.ndd < 5


@pytest.mark.slow
def test_first_call_from_an_empty_and_a_filled_cache(alone, monkeypatch):
    monkeypatch.setattr(start, "FEW", ("flip",))
    cold, warm = start.measure_first_call(alone)
    assert "compiled anew" in cold.name
    assert 0 < warm.ndd < 2 * cold.ndd  # NumPy answers until a kernel is compiled: both may take the same


@pytest.mark.slow
def test_first_calls_of_the_table(alone):
    (actual,) = start.measure_first_calls(alone, only="coord_flip")
    assert actual.ndd > 0
    assert "of CPU time" in actual.target
    assert int(re.search(r"; (\d+) kernels compiled$", actual.target)[1]) > 0


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
        *[([section, "--data", "nowhere"], "--data: there is no folder nowhere.") for section in ("loop", "cold")],
        (["--json", "nowhere/numbers.json"], "/nowhere does not exist."),
        (["loop", "--hw-load", "3"], "--hw-load must be from 0 to 1, got 3.0."),
        (["dispatch", "mine.py"], "only `bench mine` takes a script, got mine.py for `bench dispatch`."),
        *[
            ([k, "--data", str(Path(__file__).parent / "compiled")], "compiled holds no images")
            for k in ("cold", "ops")
        ],
        (["first", "--only", "resise", "--no-dali"], "--only: no row of first has 'resise' in its name."),
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

    actual = rounds.interleaved({"a": lambda: side("a"), "b": lambda: side("b")}, 3)
    assert actual == {"a": 2.0, "b": 5.0}
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


@pytest.mark.long
def test_train(alone):
    actual = list(train.measure(alone, None, sides="synthetic, resident, ndd", steps=2))
    rate, share = actual[0], next(r for r in actual if "share of synthetic, ndd" in r.name)
    assert (rate.name[:23], rate.unit) == ("small network, batch 32", "images/s")
    assert rate.ndd > 0
    assert share.ndd == pytest.approx(rate.ndd / actual[1].dali)
    assert [r.ndd for r in actual if r.name.endswith("share of synthetic, resident")] > [0]
    assert {"cores", "GiB", "ms", "s"} <= {r.unit for r in actual}


def test_train_tells_the_kernels_of_loading_from_those_of_the_network():
    measured = {
        "synthetic": {"kernels": {"conv": 200.0}},
        "ndd": {"kernels": {"conv": 203.0, "resample": 2.0, "Memcpy HtoD": 13.0, "rare": 0.001}},
        "DALI pipeline": {"kernels": {"conv": 201.0, "warp": 30.0}},
    }
    actual = list(train._kernel_rows(measured))
    assert (actual[0].ndd, actual[0].dali) == (pytest.approx(15.001), 30.0)
    assert (actual[1].ndd, actual[1].dali) == (203.0, 200.0)
    assert [(r.name.strip(), r.ndd) for r in actual[2:]] == [("Memcpy HtoD", 13.0), ("resample", 2.0)]


def test_train_knows_its_sides(alone):
    with pytest.raises(ValueError, match=r"--sides: expected some of synthetic, resident, ndd.*, got 'tensorflow'"):
        list(train.measure(alone, None, sides="ndd,tensorflow"))


def test_train_knows_its_networks(alone):
    with pytest.raises(ValueError, match=r"--only: expected a part of one of small network, batch 32, got 'ResNet-9'"):
        list(train.measure(alone, None, only="ResNet-9"))


def test_networks_have_as_many_weights_as_published():
    from ndd.bench.residual_networks import network

    counts = {name: sum(p.numel() for p in network(name).parameters()) for name in ("resnet18", "resnet50")}
    assert counts == {"resnet18": 11_689_512, "resnet50": 25_557_032}
