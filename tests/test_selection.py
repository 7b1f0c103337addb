"""What runs by default: each value of each parameter, in few combinations, the same ones in each run."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import selection


def item(test, drawn=None, **parameters):
    places = {name: sum(map(ord, str(value))) for name, value in parameters.items()}
    callspec = SimpleNamespace(params=parameters, indices=places)
    nodeid = f"{test}[{'-'.join(map(str, parameters.values()))}]"
    marks = {"drawn": SimpleNamespace(args=(drawn,))} if drawn else {}
    return SimpleNamespace(
        nodeid=nodeid, get_closest_marker=marks.get, **({"callspec": callspec} if parameters else {})
    )


def test_each_value_of_each_parameter_occurs():
    borders, sides = ("wrap", "clamp", "reflect", 7), (len, sum)
    items = [item("test", border=b, side=s, size=n) for b, s, n in itertools.product(borders, sides, range(9))]
    chosen = selection.combinations(items)
    kept = [i.callspec.params for i in items if i.nodeid in chosen]
    assert 9 <= len(kept) < 20
    assert {p["border"] for p in kept} == set(borders)
    assert {p["side"] for p in kept} == set(sides)
    assert {p["size"] for p in kept} == set(range(9))
    assert selection.combinations(items[::-1]) == selection.combinations(items[::-1])


def test_a_mark_says_how_many_run():
    def chosen(test, drawn, count):
        return selection.combinations([item(test, drawn, size=n) for n in range(count)])

    assert len(chosen("test", 4, 9)) == 4
    assert len(chosen("test", 4, 3)) == 3
    assert chosen("test", 4, 9) == chosen("test", 4, 9)
    assert {i.removeprefix("test") for i in chosen("test", 4, 9)} != {
        i.removeprefix("other") for i in chosen("other", 4, 9)
    }
    assert len(chosen("test", None, 30)) == 30
    assert len(chosen("test", None, 300)) < 30


def test_few_rows_have_the_most_values_and_axes():
    layouts = ("HWC", "CHW", "FHWC", "DHWC", "FCDHW")
    items = [item("test", 2, kind=k, layout=x) for k, x in itertools.product(("uint8", "float32"), layouts)]
    kept = [i.callspec.params for i in items if i.nodeid in selection.combinations(items)]
    assert {p["kind"] for p in kept} == {"uint8", "float32"}
    assert "FCDHW" in {p["layout"] for p in kept}
    items = [item("test", 1, kind=k, size=n) for n, k in enumerate(("int16", "bool", "uint8", "int64"))]
    assert selection.combinations(items) == {items[2].nodeid}


@pytest.mark.parametrize(
    "kinds", [("uint8", "f4", "i64", "bool", "bfloat16"), (np.uint8, np.int8, np.float32, np.bool_)]
)
def test_two_element_types_are_tried(kinds):
    items = [item("test", kind=k) for k in kinds]
    assert len(selection.combinations(items)) == 2
    items = [item("test", kind=k, line=f"line {i}") for i, k in enumerate(kinds)]
    assert len(selection.combinations(items)) == len(kinds)  # each has something that no other has


def test_all_tests_of_a_subject_try_the_same_types(monkeypatch):
    monkeypatch.setattr(selection, "everything", False)
    types = ["int8", "uint8", "bool", "float16", "float32", "int64", "uint16"]
    first = selection.drawn_types(types, 3, "flip")
    assert set(first) > {"uint8", "float32"}
    assert selection.drawn_types(types[::-1], 3, "flip")[2] == first[2]
    assert (
        len(
            {
                selection.drawn_types(types, 3, subject)[2]
                for subject in ("flip", "pad", "cat", "crop", "slice", "erase")
            }
        )
        > 1
    )
    items = [item("tests/ops/test_flip.py::test", kind=k) for k in types]
    chosen = [i.callspec.params["kind"] for i in items if i.nodeid in selection.combinations(items)]
    assert set(chosen) == set(first[:2])
    monkeypatch.setattr(selection, "everything", True)
    assert selection.drawn_types(types, 3, "flip") == types


def test_what_has_no_parameters_runs():
    items = [item("one"), item("two"), item("three", path="flip"), item("three", path="resize")]
    assert len(selection.combinations(items)) == 4


def test_values_are_drawn(monkeypatch):
    monkeypatch.setattr(selection, "everything", False)
    some = selection.drawn(range(100), 5, "a", 1)
    assert some == selection.drawn(range(100), 5, "a", 1)
    assert some[0] == 0
    assert len(set(some)) == 5
    assert some != selection.drawn(range(100), 5, "b", 1)
    assert selection.drawn("xy", 5) == ["x", "y"]
    monkeypatch.setattr(selection, "everything", True)
    assert selection.drawn(range(100), 5, "a", 1) == list(range(100))


def test_what_is_long_is_there():
    """A test that was renamed would run by default again."""
    texts = {}
    for path in Path(__file__).parent.rglob("test_*.py"):
        texts[path.name] = texts.get(path.name, "") + path.read_text()
    for name in selection.LONG:
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in texts[file], f"LONG has {name}"
