"""The shape of the house: who may import whom, one importer for each optional library, a complete front door."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import types
import typing
from pathlib import Path

import pytest

import ndd

pytestmark = pytest.mark.fast
HOUSE = Path(ndd.__file__).parent
FILES = sorted(p for p in HOUSE.rglob("*.py") if "__pycache__" not in p.parts)

# A room may import its own files and the rooms of the lines before.
LEVELS = [
    {"types", "installation", "tfrecord", "atomic_file", "pickling", "plugin_manager", "_absent_modules"},
    {"_tensor", "_typing"},
    {"_execution"},
    {"_compiled"},
    {"_cpu"},
    {"_cuda"},
    {"_operator"},
    {"ops", "math", "random", "noise", "reductions", "segmentation", "transforms", "decoders", "io"},
    {"readers", "imread", "external_source", "checkpoint", "picture"},
    {"targets", "names"},
    {"experimental"},
    {"capture", "pytorch"},
    {"pipeline", "fn", "tensors", "data_node", "backend"},
    {"auto_aug"},
    {"plugin"},
    {"demo", "doctor", "index", "compile", "bench", "stubs", "coverage", "__main__"},
]
LEVEL_OF = {room: i for i, rooms in enumerate(LEVELS) for room in rooms}
# Programs on top of the library.
COMMANDS = ("demo", "doctor", "index", "compile", "bench", "stubs", "coverage", "__main__")
# Imports inside functions that go up on purpose: (file, what it imports), with the reason.
UPWARDS = {
    ("_tensor/convert.py", "ndd._cpu"): "compiled loops for large arrays, on first use",
    ("_execution/context.py", "ndd.checkpoint"): "a context makes its checkpoint on first use",
    ("ops/__init__.py", "ndd.pipeline"): "DALI's operator classes stand in a module of this name",
    ("_operator/operator.py", "ndd.random"): "random operators bind their default generator on first use",
}
ONE_IMPORTER = (
    "cupy", "cupy_backends", "numba", "cv2", "PIL", "simplejpeg", "nvidia", "soundfile", "av", "pycocotools", "lmdb",
    "astropy", "msgspec", "obstore", "lz4", "kvikio",
)  # fmt: skip
MORE_IMPORTERS = {
    "av": {
        "decoders/video_files/index.py",
        "decoders/sound/ffmpeg.py",
    },  # pictures, and sound that libsndfile cannot read
    # decoding in one place, encoding in another, drawing in a third
    "PIL": {"decoders/_portable.py", "_tensor/picture.py", "picture.py"},
    # the compiler, its cache, and instructions that it lacks or does not find
    "numba": {
        "_compiled/atomics.py",
        "_compiled/half.py",
        "_compiled/intrinsics.py",
        "_compiled/jit.py",
        "_compiled/kernel_cache.py",
        "_compiled/leading_zeros.py",
        "_compiled/linking.py",
        "_compiled/nontemporal_stores.py",
        "_compiled/sample_loops.py",
        "_compiled/simd.py",
        "decoders/jpeg/blocks.py",
        "decoders/video_files/yuv.py",
        "experimental/medians.py",
        "ops/audio/moving_sums.py",
        "ops/color/bayer.py",
        "readers/formats/mapped_files.py",
    },
}
FORBIDDEN_NAMES = {"utils", "util", "common", "misc", "helpers", "helper", "core"}


def room_of(path):
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


@functools.cache
def imports_of(path):
    """(module name, is it at the top of the file, line) of every import that runs, type-checking ones left out."""
    tree = ast.parse(path.read_text())
    package = ("ndd", *path.relative_to(HOUSE).parts[:-1])
    found = []

    def visit(node, top):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for other in child.orelse:
                    visit(other, top)
                continue
            if isinstance(child, ast.Import):
                found.extend((alias.name, top, child.lineno) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    base = ".".join([*package[: len(package) - child.level + 1], base]).rstrip(".")
                found.extend((f"{base}.{alias.name}", top, child.lineno) for alias in child.names)
            visit(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    visit(tree, True)
    return found


def assert_none(faults):
    """No (file, fault) is there; else all are told at once."""
    told = [f"{path.relative_to(HOUSE)}: {fault}" for path, fault in faults]
    assert not told, "\n".join(told)


def test_imports_go_one_way():
    unknown = {room_of(path) for path in FILES} - LEVEL_OF.keys() - {""}
    assert not unknown, f"new rooms: give them a place in LEVELS: {sorted(unknown)}"
    assert_none((path, wrong) for path in FILES if room_of(path) for wrong in upward_imports(path))


def upward_imports(path):
    room = room_of(path)
    for name, _, line in imports_of(path):
        parts = name.split(".")
        if parts[0] != "ndd" or len(parts) < 2 or parts[1] == room or parts[1] not in LEVEL_OF:
            continue
        where = (str(path.relative_to(HOUSE)), ".".join(parts[:2]))
        if LEVEL_OF[parts[1]] > LEVEL_OF[room] and where not in UPWARDS:
            yield f"line {line}: {room} imports {name}"


def test_the_upper_rooms_use_what_everybody_may_use():
    upper = [path for path in FILES if room_of(path) in ("pipeline", "fn", "plugin")]
    assert_none((path, name) for path in upper for name, _, _ in imports_of(path) if name.startswith("ndd._"))


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_library_has_one_importer(library):
    importers = {
        str(p.relative_to(HOUSE))
        for p in FILES
        for name, _, _ in imports_of(p)
        if name.split(".")[0] == library and room_of(p) not in COMMANDS
    }
    assert len(importers) <= 1 or importers == MORE_IMPORTERS.get(library), f"{library}: {sorted(importers)}"


def test_optional_and_heavy_libraries_are_imported_late():
    """NumPy and torch may be imported by any file; whatever else is not needed to `import ndd` waits for its use."""
    late = (*ONE_IMPORTER, "torchvision", "scipy", "pandas", "matplotlib", "tqdm")
    assert_none(
        (path, f"{name} is imported at the top")
        for path in FILES
        for name, top, _ in imports_of(path)
        if top and name.split(".")[0] in late
    )


def test_names_say_what_is_inside():
    bad = [str(p.relative_to(HOUSE)) for p in HOUSE.rglob("*") if p.stem.strip("_").lower() in FORBIDDEN_NAMES]
    assert not bad


def test_no_loose_ends():
    assert_none((path, end) for path in FILES for end in loose_ends(path))


def loose_ends(path):
    text = path.read_text()
    if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", text):
        yield "a note of what is left to do"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno} asserts: raise an error with a text"
        calls = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if calls and node.func.id == "print" and room_of(path) not in COMMANDS:
            yield f"line {node.lineno} prints"


def test_no_file_is_longer_than_600_lines():
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    lengths = {path: len(path.read_text().splitlines()) for path in (*FILES, *tests)}
    assert not {str(path): length for path, length in lengths.items() if length > 600}


def test_every_kernel_text_belongs_to_an_operator():
    """`resize.cu` lies beside `resize.py`, or is named by a file of its folder."""
    for kernel in HOUSE.rglob("*.cu"):
        beside = [p.read_text() for p in kernel.parent.glob("*.py")]
        assert any(kernel.name in text for text in beside), f"{kernel.name} is used by no file of its folder"


def natural(name):
    """Classes, then the rest, numbers inside names by value: the order that ruff keeps."""
    parts = [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]
    return not name[0].isupper(), parts


def test_the_front_door_is_sorted_and_complete():
    names = ndd.__all__
    misplaced = [name for name, right in zip(names, sorted(names, key=natural), strict=True) if name != right]
    assert not misplaced, f"ndd.__all__ is not sorted from {misplaced[0]!r} on: `ruff check --fix` does it"
    assert len(names) == len(set(names))
    for name in names:
        assert hasattr(ndd, name), f"ndd.{name} is in __all__ but does not exist"
    modules = {p.stem for p in HOUSE.iterdir()}
    public = {n for n in vars(ndd) if not n.startswith("_") and n not in modules} - {"annotations"}
    assert public <= set(names), f"imported by ndd/__init__.py, but not in its __all__: {sorted(public - set(names))}"


FRONT_DOORS = sorted(
    {
        *(f"ndd.{p.stem}" for p in HOUSE.glob("[a-z]*.py")),
        *(".".join(("ndd", *p.parent.relative_to(HOUSE).parts)) for p in HOUSE.rglob("__init__.py")),
        "ndd.pytorch.nodes",
        "ndd.plugin.base_iterator",
    }
)


@pytest.mark.parametrize("name", [n for n in FRONT_DOORS if "._" not in n and n != "ndd"])
def test_modules_export_their_own_names_alone(name):
    """Not what they import from elsewhere, nor their type variables."""
    if name == "ndd.pytorch.nodes":
        pytest.importorskip("torchdata")
    module = importlib.import_module(name)
    if not hasattr(module, "__all__"):
        values = {k: v for k, v in vars(module).items() if not k.startswith("_") and k != "annotations"}
        foreign = {k for k, v in values.items() if not _is_ours(v)}
        dispatches = "__getattr__" in vars(module)  # what it has it gives by name
        assert foreign <= ({"Any"} if dispatches else set()), f"{name} needs an __all__: it has {sorted(foreign)}"
        return
    variables = [n for n in module.__all__ if isinstance(getattr(module, n), typing.TypeVar)]
    assert not variables, f"{name}.__all__ has the type variables {variables}"
    assert len(module.__all__) == len(set(module.__all__))


def _is_ours(value):
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "ndd")
    return str(home).startswith("ndd") and not isinstance(value, typing.TypeVar)
