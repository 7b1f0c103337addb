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
    # decoding in one place, encoding in another, drawing in a third
    "PIL": {"decoders/backends/pillow.py", "_tensor/picture.py", "picture.py"},
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
        "_compiled/simd_jpeg.py",
        "_compiled/simd_yuv.py",
        "_compiled/unaligned.py",
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_imports_go_one_way(path):
    room = room_of(path)
    if not room:
        return
    assert room in LEVEL_OF, f"a new room {room!r}: give it a place in LEVELS"
    wrong = []
    for name, _, line in imports_of(path):
        parts = name.split(".")
        if parts[0] != "ndd" or len(parts) < 2 or parts[1] == room or parts[1] not in LEVEL_OF:
            continue
        where = (str(path.relative_to(HOUSE)), ".".join(parts[:2]))
        if LEVEL_OF[parts[1]] > LEVEL_OF[room] and where not in UPWARDS:
            wrong.append(f"line {line}: {room} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "path", [p for p in FILES if room_of(p) in ("pipeline", "fn", "plugin")], ids=lambda p: str(p.relative_to(HOUSE))
)
def test_the_upper_rooms_use_what_everybody_may_use(path):
    private = [name for name, _, _ in imports_of(path) if name.startswith("ndd._")]
    assert not private, f"{path.name} reaches behind the front door: {private}"


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_library_has_one_importer(library):
    importers = {
        str(p.relative_to(HOUSE))
        for p in FILES
        for name, _, _ in imports_of(p)
        if name.split(".")[0] == library and room_of(p) not in COMMANDS
    }
    assert len(importers) <= 1 or importers == MORE_IMPORTERS.get(library), f"{library}: {sorted(importers)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_optional_and_heavy_libraries_are_imported_late(path):
    """NumPy and torch may be imported by any file; whatever else is not needed to `import ndd` waits for its use."""
    late = (*ONE_IMPORTER, "torchvision", "scipy", "pandas", "matplotlib", "tqdm")
    early = [name for name, top, _ in imports_of(path) if top and name.split(".")[0] in late]
    assert not early, f"imported at the top: {early}"


def test_names_say_what_is_inside():
    bad = [str(p.relative_to(HOUSE)) for p in HOUSE.rglob("*") if p.stem.strip("_").lower() in FORBIDDEN_NAMES]
    assert not bad


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_no_loose_ends(path):
    text = path.read_text()
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", text)
    tree = ast.parse(text)
    assert not [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Assert)], "asserts: raise an error with a text"
    if room_of(path) not in COMMANDS:
        prints = [
            n.lineno
            for n in ast.walk(tree)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "print"
        ]
        assert not prints, f"prints at lines {prints}"
    assert len(text.splitlines()) <= 600, "too long for one file"


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
