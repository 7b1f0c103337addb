"""What a type checker says of a user's code: nothing where it is right, an error at each line that is wrong.

`right_code.py` and `wrong_code.py` are written by hand. A third file calls every public operator in every way that its
declaration allows, and in wrong ways; it is made from the registry, for some operators without `--all`. A fourth one is the
reader in the documentation of `Reader`. One run of pyright checks all of them.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest
from calling import load_every_module
from reference_pages import documented_reader
from selection import drawn

import ndd
from ndd._tensor import DType
from ndd.types import DALIImageType, DALIInterpType

pytest.importorskip("pyright")

HERE = Path(__file__).parent
ERROR = "  # error"
VALUES = {
    int: "1", float: "0.5", bool: "True", str: "'x'", DType: "ndd.uint8", DALIImageType: "ndd.types.RGB",
    DALIInterpType: "ndd.types.INTERP_NN", typing.Any: "1",
}  # fmt: skip
# Operators with more outputs than one, whatever their arguments.
SEVERAL = {
    "box_encoder": 2,
    "decoders.audio": 2,
    "cutmix": 2,
    "mixup": 2,
    "nonsilent_region": 2,
    "random_crop_generator": 2,
    "segmentation.select_masks": 2,
}
# As many outputs as the values of an argument say, or the inputs that are given.
UNKNOWN = (
    "bbox_rotate", "bbox_transform", "element_extract", "random_bbox_crop", "segmentation.random_object_bbox",
)  # fmt: skip


def value_of(annotation):
    """A right value for an argument, as text."""
    annotation = getattr(annotation, "kind", annotation)
    members = [a for a in typing.get_args(annotation) if a is not type(None)]
    if type(None) in typing.get_args(annotation):
        return value_of(members[0])
    if typing.get_origin(annotation) is typing.Literal:
        return repr(members[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return value_of(members[0])
    if typing.get_origin(annotation) in (list, tuple, collections.abc.Sequence):
        return f"[{value_of(members[0])}]"
    return VALUES[annotation]


def calls_of(path, op):
    """Lines that call an operator: rightly, with the type that comes out, and wrongly."""
    declared = inspect.signature(op.function, eval_str=True).parameters
    arguments = {n: p for n, p in declared.items() if p.kind is p.KEYWORD_ONLY}
    needed = {n: value_of(p.annotation) for n, p in arguments.items() if p.default is p.empty}
    each = [n for n, p in arguments.items() if type(p.annotation).__name__ == "PerSample"]
    everything = {n: value_of(p.annotation) for n, p in arguments.items() if n != "save_attrs"}

    def call(first, **options):
        inputs = [first, *["t"] * (op.required - 1)] if op.required else []
        return f"ndd.{path}({', '.join([*inputs, *(f'{n}={v}' for n, v in options.items())])})"

    def gives(kind, text):
        count = SEVERAL.get(path, 1)
        result = kind if count == 1 else f"tuple[{', '.join([kind] * count)}]"
        return text if path in UNKNOWN else f"assert_type({text}, {result})"

    right = [gives("ndd.Batch", call("t", batch_size=3, **needed))]
    if path != "batch_permutation":
        right += [
            gives("ndd.Tensor", call("t", **needed)),
            gives("ndd.Tensor", call("a", device="'cpu'", **everything)),
        ]
    if op.required:
        right += [gives("ndd.Batch", call("b", **needed)), gives("ndd.Batch", call("b", **everything))]
    right += [gives("ndd.Batch", call("t", **{**needed, n: "b"})) for n in each]
    needed_size = {"batch_size": 3} if (path == "batch_permutation") else {}
    wrong = [call("t", **needed, **needed_size, no_such_argument=1), call("object()", **needed_size, **needed)]
    wrong = wrong[: 1 + bool(op.required)]
    wrong += [call("t", **needed_size, **{k: v for k, v in needed.items() if k != n}) for n in needed]
    kinds = {repr(p.annotation): n for n, p in arguments.items() if p.annotation is not typing.Any}
    wrong += [call("t", **needed_size, **{**needed, n: "object()"}) for n in kinds.values()]  # one of each kind
    return [*right, *(line + ERROR for line in wrong)]


def calls_of_operators(operators):
    """The lines of the third file."""
    lines = ["import numpy as np", "from typing_extensions import assert_type", "import ndd"]
    lines += ["def calls(t: ndd.Tensor, b: ndd.Batch, a: np.ndarray) -> None:"]
    return lines + [f"    {line}" for path, op in operators for line in calls_of(path, op)]


def checked(folder):
    """The files, as {name: (lines, {number of a line with errors: what they say})}."""
    operators = drawn(load_every_module().items(), 20, "user code")  # the checker takes 60 ms for each
    (folder / "operators.py").write_text("\n".join(calls_of_operators(operators)) + "\n")
    use = 'for (line,) in Lines(path="a.txt", shuffle="global").next_epoch():\n    print(line)\n'
    strict = "# pyright: strict, reportMissingModuleSource=false\nimport ndd\n"
    (folder / "documented.py").write_text(f"{strict}\n{documented_reader()}\n\n{use}")
    for name in ("right_code.py", "wrong_code.py"):
        (folder / name).write_text((HERE / name).read_text())
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"include": ["."], "extraPaths": [str(Path(ndd.__file__).parents[1])], "pythonVersion": "3.11"})
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    actual = {name: ((folder / name).read_text().splitlines(), {}) for name in (p.name for p in folder.glob("*.py"))}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        errors = actual[Path(item["file"]).name][1]
        number = item["range"]["start"]["line"] + 1
        errors[number] = f"{errors.get(number, '')}\n    {item['message']}"
    return actual


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_errors_are_where_the_code_is_wrong(tmp_path):
    missed, false = [], []
    for name, (lines, errors) in checked(tmp_path).items():
        expected = {number for number, line in enumerate(lines, 1) if line.endswith(ERROR)}
        wrong = [f"line {n} passes, and is wrong: {lines[n - 1].strip()}" for n in sorted(expected - set(errors))]
        right = [f"line {n} is right: {lines[n - 1].strip()}{errors[n]}" for n in sorted(set(errors) - expected)]
        missed += [f"{name}: {text}" for text in wrong]
        false += [f"{name}: {text}" for text in right]
        assert len(expected) > 40 or name in ("right_code.py", "documented.py")
    assert not missed + false, "\n".join([*missed, *false][:20])


def test_every_public_operator_is_called():
    text = "\n".join(calls_of_operators(load_every_module().items()))
    missing = [path for path in load_every_module() if f" ndd.{path}(" not in text.replace("(ndd.", "( ndd.")]
    assert not missing
