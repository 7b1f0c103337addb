"""`python -m ndd coverage`: the list is DALI's, what it says is so, and the README and the index say the same."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
from calling import load_every_module

import ndd
from ndd.__main__ import main
from ndd.coverage import command, torchvision
from ndd.coverage.command import summary
from ndd.coverage.evidence import Evidence
from ndd.coverage.operator_index import index
from ndd.coverage.signature import compared
from ndd.coverage.table import names, own_operators, table
from ndd.torchvision.installed import import_torchvision

ROOT = Path(__file__).parent.parent
# Arguments that ndd takes beyond DALI's.
BEYOND = {
    "last_batch",
    "on_error",
    "max_pixels",
    "files",
    "labels",
    "sampler",
    "shuffle",
    "shard",
    "device_id",
    "times",
    "start",
    "duration",
    "prefetch",
    "processes",
    "rule",  # torchvision's or Pillow's
    "memory_format",  # torch.channels_last
}


def test_torchvisions_names(capsys):
    assert main(["coverage", "--torchvision"]) == 0
    *lines, counts = capsys.readouterr().out.splitlines()
    assert len(lines) == len(torchvision.names())
    assert re.fullmatch(r"\d+ of \d+ transforms and functionals of torchvision, \d+ of \d+ signatures equal", counts)
    line = next(line for line in lines if line.startswith("functional.resize "))
    assert line.endswith("ndd: here  signature: equal")
    assert main(["coverage", "--torchvision", "--missing"]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("functional.")]


def test_the_list_is_torchvisions():
    try:
        v2 = import_torchvision().transforms.v2
    except ImportError:
        pytest.skip("torchvision is not installed")
    assert torchvision.names() == torchvision.listed(v2)


@pytest.fixture(scope="module")
def rows():
    return table()


def test_the_command(capsys, monkeypatch, rows):
    monkeypatch.setattr(command, "table", lambda: rows)
    assert main(["coverage"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) + 4
    assert "\n".join(lines[-3:]) == summary(rows)
    flip = next(line for line in lines if line.startswith("flip "))
    assert re.fullmatch(r"flip +DALI: cpu gpu +ndd: cpu gpu +signature: equal  tested: with DALI, \d+ cases?", flip)
    assert main(["coverage", "--missing"]) == 0
    missing = capsys.readouterr().out.splitlines()
    assert missing[-3:] == lines[-3:]
    assert len(missing) == 4 + sum(not row.complete for row in rows)


def test_what_is_here_is_equal_and_tested(rows):
    here = [row for row in rows if row.there]
    assert len(here) > 350
    assert not [row for row in here if row.lacks]
    other = {row.name: row.signature for row in here if row.signature and not row.signature.startswith("equal")}
    assert other == {"readers.TFRecord": "index_path=None, in DALI required"}  # it makes its own index
    more = {name for row in here if row.signature for name in row.signature.removeprefix("equal").split(", and ")[1:]}
    assert {name for text in more for name in text.split(", ")} <= BEYOND
    assert not [row.name for row in here if row.tested == "-"]


@pytest.mark.fast
def test_what_dali_has_not_is_tested_by_a_file_of_its_own():
    """The walk over all operators can compare it with nothing: its values are its own tests' to check."""
    load_every_module()
    evidence = Evidence()
    untested = [name for name in own_operators() if evidence.of_name(name) == "-"]
    assert not untested, (
        f"add tests/.../test_<name>.py, which calls ndd.<name> and says what comes out, for: {untested}"
    )


def test_tested_means_cases_of_the_registry(rows):
    operators = load_every_module()
    result = {row.name: row.tested for row in rows if row.devices}
    assert set(result) | set(own_operators()) == set(operators)
    assert result["resize"] == "with DALI, 4 cases"
    assert result["jitter"] == "1 case"
    assert result["dump_image"].startswith("ops/image/")
    assert {row.tested for row in rows if not row.there} <= {"-"}


@pytest.mark.oracle
def test_the_list_is_dalis(dali):
    """Every name is there in DALI, with these parameters; of what ndd has not yet, too."""
    wrong = []
    for name, kind, parameters in names():
        if name.startswith("pytorch."):
            continue  # needs torchdata there
        result, there = _find(dali, name)
        if not there or (result is None) != (kind == "disabled"):
            wrong.append(name)
        elif parameters is not None:
            same, _, more = compared(result, parameters).partition(", and ")
            if same != "equal" or not all(extra.startswith("_") for extra in more.split(", ") if extra):
                wrong.append((name, same, more))
    assert not wrong


def _find(module, name):
    for part in name.split("."):
        if not hasattr(module, part):
            try:
                module = importlib.import_module(f"{module.__name__}.{part}")
            except (ImportError, AttributeError):
                return None, False
        else:
            module = getattr(module, part)
    return module, True


@pytest.mark.oracle
def test_no_public_function_of_dali_is_left_out(dali):
    listed = {name for name, _, _ in names()}
    for room in ("", "math", "noise", "random", "reductions", "transforms", "decoders", "segmentation", "experimental"):
        module = getattr(dali, room) if room else dali
        for name, value in vars(module).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                path = f"{room}.{name}" if room else name
                assert path in listed or value.__module__.endswith("._ops"), path


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("input, /, *, horizontal=1, vertical=0, factor=0.1, name='x'", "equal"),
        ("x, /, *, horizontal=..., vertical=0, factor=0.1, name='x'", "equal"),
        ("input, /, *, horizontal=2, vertical=0, factor=0.1, name='x'", "horizontal=1, in DALI 2"),
        ("input, /, *, horizontal=1, vertical=0, factor=0.2, name='x'", "factor=0.1, in DALI 0.2"),
        ("input, /, *, horizontal=1, vertical=0, factor=0.1, name='y'", "name='x', in DALI 'y'"),
        ("input, /, *, horizontal, vertical=0, factor=0.1, name='x'", "horizontal=1, in DALI required"),
        ("input, /, *, horizontal=1, factor=0.1, name='x'", "equal, and vertical"),
        ("input, /, *, horizontal=1, vertical=0, depth=0, factor=0.1, name='x'", "lacks depth"),
        ("input, horizontal=1, *, vertical=0, factor=0.1, name='x'", "horizontal is keyword-only"),
        ("a, b, /, *, horizontal=1, vertical=0, factor=0.1, name='x'", "inputs (all, required, any number)"),
    ],
)
def test_signatures_are_compared_whole(parameters, expected):
    def ours(input, /, *, horizontal=1, vertical=0, factor=0.1, name="x"):
        """Nothing."""

    result = compared(ours, parameters)
    assert result == expected if expected.startswith("equal") else expected in result


def test_a_needed_argument_that_dali_has_not_is_a_difference():
    def ours(input, /, *, more):
        """Nothing."""

    assert compared(ours, "input, /") == "more is needed"


@pytest.mark.fast
def test_the_index_of_operators_is_written_by_the_command(tmp_path):
    folder = ROOT / "notebooks"
    text = (folder / "operators.md").read_text(encoding="utf-8")
    assert text == index(folder), "run: python -m ndd coverage --index notebooks/operators.md"
    assert main(["coverage", "--index", str(tmp_path / "operators.md")]) == 0
    assert len((tmp_path / "operators.md").read_text(encoding="utf-8").splitlines()) == len(text.splitlines())
    assert str(ROOT) not in text
    for path in load_every_module():
        assert f"[`{path}`](" in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (folder / link).exists(), link
    assert all(len(row.split(" | ")) in (2, 4) for row in text.splitlines() if row.startswith("| ["))


def test_the_readme_links_the_index():
    assert "(notebooks/operators.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ndd.flip.__doc__.split(".")[0] in (ROOT / "notebooks" / "operators.md").read_text(encoding="utf-8")


FLIP = '''"""Mirrors."""

from ndd.ops.image.flip_axes import axes
from ndd.ops.image.shared import common


@operator
def flip(x):
    """One line.

    Two.
    """
    return "flip.cu"
'''


@pytest.fixture
def checkout(tmp_path):
    """Two operators of which one has files of its own, and a family file that both use."""
    image, tests = tmp_path / "ndd" / "ops" / "image", tmp_path / "tests" / "ops" / "image"
    for folder in (image, tests):
        folder.mkdir(parents=True)
    (image / "flip.py").write_text(FLIP)
    (image / "flip.cu").write_text("kernel\n\nkernel\n")
    (image / "flip_axes.py").write_text("axes = 1\n")
    (image / "shared.py").write_text("common = 1\n")
    (image / "rotate.py").write_text(
        "from ndd.ops.image.shared import common\n\ndef rotate(x): ...\ndef crop(x):\n    1\n"
    )
    (tests / "test_flip.py").write_text("import flip_data\n\nREGISTRY_CASES = {'flip': [1], 'rotate': [\n    1,\n]}\n")
    (tests.parent.parent / "flip_data.py").write_text("a = 1\n")
    return tmp_path


def test_own_lines_of_an_operator(checkout, capsys):
    assert main(["coverage", "--lines", "flip", "crop", "rotate", "--root", str(checkout)]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert shown[1:9] == [
        "flip",
        "5 4 ndd/ops/image/flip.py",
        "1 0 ndd/ops/image/flip_axes.py",
        "2 0 ndd/ops/image/flip.cu",
        "4 0 tests/ops/image/test_flip.py",
        "1 0 tests/flip_data.py",
        "(1) (0) ndd/ops/image/shared.py: 3 users",
        "13 4 flip, own",
    ]
    assert shown[9:13] == [
        "crop",
        "2 0 ndd/ops/image/rotate.py, crop alone",
        "(4) (0) ndd/ops/image/rotate.py: 2 users",
        "(1) (0) ndd/ops/image/shared.py: 3 users",
    ]
    assert "3 0 tests/ops/image/test_flip.py, cases of rotate" in shown
    assert shown[-2:] == ["19 4 sum of 3 operators", "(5) (0) the files in brackets, each once"]


def test_lines_are_counted_of_every_operator(capsys):
    assert main(["coverage", "--lines", "--all"]) == 0
    shown = capsys.readouterr().out.splitlines()
    own = {line.split()[2].rstrip(",") for line in shown if line.endswith(", own")}
    assert own | set(own_operators()) == set(load_every_module())
    assert main(["coverage", "--lines", "no_such"]) == 1
    assert "no operator no_such" in capsys.readouterr().err
