"""The structure of the package: who may import whom, one importer for each optional library, complete public names."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import re
import types
import typing
from pathlib import Path
from typing import NamedTuple

import pytest

import ndd

pytestmark = pytest.mark.fast
PACKAGE = Path(ndd.__file__).parent
FILES = sorted(p for p in PACKAGE.rglob("*.py") if "__pycache__" not in p.parts)

# The layers: what lies in one may import its own files and the layers before.
LAYERS = [
    {
        "types",
        "installation",
        "tfrecord",
        "atomic_file",
        "pickling",
        "plugin_manager",
        "_absent_modules",
        "_bare_packages",
        "_container_limits",
        "_required_torch",
    },
    {"_tensor", "_typing"},
    {"_execution"},
    {"read_ahead"},
    {"_compiled"},
    {"_before_torch"},
    {"_cpu"},
    {"_cuda"},
    {"_operator"},
    {"_lookahead"},
    {"ops", "math", "random", "noise", "reductions", "segmentation", "transforms", "decoders", "io"},
    {"readers", "imread", "external_source", "checkpoint", "picture"},
    {"targets", "names", "profiling", "show"},
    {"experimental"},
    {"capture", "pytorch"},
    {"pipeline", "fn", "tensors", "data_node", "backend"},
    {"auto_aug"},
    {"torchvision", "recipes"},
    {"plugin"},
    {"demo", "doctor", "index", "compile", "bench", "stubs", "coverage", "__main__"},
]
LAYER_OF = {name: i for i, names in enumerate(LAYERS) for name in names}
# Programs on top of the library.
COMMANDS = ("demo", "doctor", "index", "compile", "bench", "stubs", "coverage", "__main__")
# Imports inside functions that go up on purpose: (file, what it imports), with the reason.
UPWARDS = {
    ("_tensor/convert.py", "ndd._cpu"): "compiled loops for large arrays, on first use",
    ("ops/__init__.py", "ndd.pipeline"): "DALI's operator classes stand in a module of this name",
}
ONE_IMPORTER = (
    "cupy", "cupy_backends", "cv2", "PIL", "simplejpeg", "nvidia", "soundfile", "av", "pycocotools", "lmdb",
    "astropy", "msgspec", "obstore", "lz4", "kvikio", "pyarrow", "tqdm",
)  # fmt: skip
MORE_IMPORTERS = {
    # decoding in one place, encoding in another, drawing in a third
    "PIL": {"decoders/backends/pillow.py", "_tensor/encoded_picture.py", "torchvision/v2/functional/pillow.py"},
}
LATE = (*ONE_IMPORTER, "torchvision", "scipy", "pandas", "matplotlib")  # not needed, or slow, to `import ndd`
COMPILER = ("numba", "llvmlite")  # imported by files of `_compiled` alone
FORBIDDEN_NAMES = {"utils", "util", "common", "misc", "helpers", "helper", "core"}


def part_of(path):
    """The subpackage or module of `ndd` that a file belongs to; "" for `ndd/__init__.py`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


class Text(NamedTuple):
    """What the tests look at in a file, which is parsed once."""

    imports: list[tuple[str, bool, int]]  # module name, is it at the top of the file, line; type-checking ones left out
    nodes: list[ast.AST]


# Not names that fit anything.
VAGUE = {"found", "given", "made", "much", "what"}


def is_looked_at(node):
    """Decorated functions, vague names, asserts and prints."""
    if isinstance(node, ast.Name | ast.arg | ast.keyword):
        return (node.id if isinstance(node, ast.Name) else node.arg) in VAGUE
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "print"
    return isinstance(node, ast.Assert) or (isinstance(node, ast.FunctionDef) and bool(node.decorator_list))


@functools.cache
def parsed(path):
    gc.disable()  # Python would look for garbage among the nodes half of the time
    try:
        tree = ast.parse(path.read_text())
        package = ("ndd", *path.relative_to(PACKAGE).parts[:-1])
        return Text(
            list(imports_of_statements(package, tree.body, True)), [n for n in ast.walk(tree) if is_looked_at(n)]
        )
    finally:
        gc.enable()


def imports_of(path):
    return parsed(path).imports


def imports_of_statements(package, statements, top):
    """Those of a file of this package, whose name is in parts."""
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from ((alias.name, top, statement.lineno) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            base = statement.module or ""
            if statement.level:
                base = ".".join([*package[: len(package) - statement.level + 1], base]).rstrip(".")
            yield from ((f"{base}.{alias.name}", top, statement.lineno) for alias in statement.names)
        blocks = ["body", "orelse", "finalbody", "handlers", "cases"]
        if isinstance(statement, ast.If):
            condition = ast.unparse(statement.test)
            if condition.endswith("TYPE_CHECKING") and "not" not in condition:
                blocks.remove("body")
        inside = top and not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        for block in blocks:
            yield from imports_of_statements(package, getattr(statement, block, ()), inside)


def assert_none(faults):
    """No (file, fault) is there; else all are told at once."""
    told = [f"{path.relative_to(PACKAGE)}: {fault}" for path, fault in faults]
    assert not told, "\n".join(told)


def test_imports_go_one_way():
    unknown = {part_of(path) for path in FILES} - LAYER_OF.keys() - {""}
    assert not unknown, f"new parts: give them a place in LAYERS: {sorted(unknown)}"
    assert_none((path, wrong) for path in FILES if part_of(path) for wrong in upward_imports(path))


def upward_imports(path):
    part = part_of(path)
    for name, _, line in imports_of(path):
        parts = name.split(".")
        if parts[0] != "ndd" or len(parts) < 2 or parts[1] == part or parts[1] not in LAYER_OF:
            continue
        where = (str(path.relative_to(PACKAGE)), ".".join(parts[:2]))
        if LAYER_OF[parts[1]] > LAYER_OF[part] and where not in UPWARDS:
            yield f"line {line}: {part} imports {name}"


def module_of(path):
    parts = ("ndd", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Circles of imports that may stay: the modules of each, with the reason.
CIRCLES: dict[frozenset[str], str] = {}


def circles_of(imported):
    """The strongly connected components of more than one module (Tarjan), given what each module imports."""
    order, lowest, waiting, circles = {}, {}, [], []

    def visit(module):
        order[module] = lowest[module] = len(order)
        waiting.append(module)
        for other in imported[module]:
            if other not in order:
                visit(other)
            if other in waiting:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            start = waiting.index(module)
            if len(waiting) > start + 1:
                circles.append(frozenset(waiting[start:]))
            del waiting[start:]

    for module in imported:
        if module not in order:
            visit(module)
    return circles


def test_circles_are_seen():
    imported = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d"], "f": ["a", "d"], "g": ["g"]}
    assert sorted(map(sorted, circles_of(imported))) == [["a", "b", "c"], ["d", "e"]]


def test_no_circle_of_imports():
    """Imports inside functions count too: they hide a circle, they do not break it. `from package import name` is an import of
    the module of this name if there is one, else of the package."""
    modules = {module_of(path): path for path in FILES}
    imported = {}
    for module, path in modules.items():
        named = [name if name in modules else name.rpartition(".")[0] for name, _, _ in imports_of(path)]
        imported[module] = sorted({name for name in named if name in modules and name != module})
    circles = [sorted(circle) for circle in circles_of(imported) if circle not in CIRCLES]
    inside = [
        f"{module} imports {other}"
        for circle in circles
        for module in circle
        for other in imported[module]
        if other in circle
    ]
    assert not circles, "\n".join(inside)
    assert CIRCLES.keys() <= set(circles_of(imported)), "CIRCLES names what is no longer one"


def test_the_upper_layers_use_public_names_alone():
    upper = [path for path in FILES if part_of(path) in ("pipeline", "fn", "plugin", "torchvision", "recipes")]
    assert_none((path, name) for path in upper for name, _, _ in imports_of(path) if name.startswith("ndd._"))


READER_FOLDERS = ["epochs", "sampling", "formats", "stores", "files"]  # each may import those behind it


@pytest.mark.parametrize("folder", READER_FOLDERS)
def test_the_folders_of_readers_import_one_way(folder):
    above = READER_FOLDERS[: READER_FOLDERS.index(folder)]
    upwards = [
        f"{path.name}: {name}"
        for path in (PACKAGE / "readers" / folder).glob("*.py")
        for name, _, _ in imports_of(path)
        if name.startswith(tuple(f"ndd.readers.{other}" for other in above))
    ]
    assert not upwards


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_library_has_one_importer(library):
    importers = {
        str(p.relative_to(PACKAGE))
        for p in FILES
        for name, _, _ in imports_of(p)
        if name.split(".")[0] == library and part_of(p) not in COMMANDS
    }
    assert len(importers) <= 1 or importers == MORE_IMPORTERS.get(library), f"{library}: {sorted(importers)}"


@pytest.mark.parametrize("library", COMPILER)
def test_the_compiler_is_imported_in_one_package(library):
    importers = {
        str(p.relative_to(PACKAGE))
        for p in FILES
        for name, _, _ in imports_of(p)
        if name.split(".")[0] == library and part_of(p) not in COMMANDS
    }
    outside = {name for name in importers if not name.startswith("_compiled/")}
    assert not outside, f"{library}: {sorted(outside)}"


def test_optional_and_heavy_libraries_are_imported_late():
    """NumPy and torch may be imported by any file; whatever else is not needed to `import ndd` waits for its use."""
    assert_none(
        (path, f"{name} is imported at the top")
        for path in FILES
        for name, top, _ in imports_of(path)
        if top and name.split(".")[0] in LATE
    )


def test_late_imports_say_why():
    """An import inside a function has a comment with the reason, on its line, in its block of imports, or on the line above.
    Optional and slow libraries need none, nor the commands, whose parts import what they run."""
    late = {*LATE, *COMPILER}
    assert_none(
        (path, f"line {line} imports {name} inside a function: move it to the top, or say why not in a comment")
        for path in FILES
        if part_of(path) not in COMMANDS
        for name, top, line in imports_of(path)
        if not top and name.split(".")[0] not in late and "#" not in block_of_imports(path, line)
    )


def block_of_imports(path, line):
    """The text of the imports around a line, with the line above them."""
    lines = path.read_text().splitlines()
    first = line - 1
    while lines[first].strip().startswith(("import ", "from ")):
        first -= 1
    return "\n".join(lines[first:line])


def test_names_say_what_is_inside():
    bad = [str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*") if p.stem.strip("_").lower() in FORBIDDEN_NAMES]
    assert not bad


def test_variables_have_names_of_their_own():
    assert_none(
        (path, f"line {node.lineno}: {name}")
        for path in FILES
        for node in parsed(path).nodes
        for name in [getattr(node, "id", getattr(node, "arg", ""))]
        if name in VAGUE and not isinstance(getattr(node, "ctx", None), ast.Load) and not isinstance(node, ast.keyword)
    )


@functools.cache
def functions_of_roles(role):
    """(file, function, line of its decorator) of every function of operators that is declared under `@name.role`."""
    return [
        (path, node, decorator.lineno)
        for path in FILES
        for node in parsed(path).nodes
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        for named in [decorator.func if isinstance(decorator, ast.Call) else decorator]
        if isinstance(named, ast.Attribute) and named.attr == role
    ]


def test_cpu_kernels_see_their_sample_alone():
    kernels = functions_of_roles("cpu")
    assert len(kernels) > 20
    own = {"call", "stores", "results"}
    assert_none((path, f"line {line}") for path, node, line in kernels if own & {a.arg for a in node.args.args})


def test_batch_roles_say_why():
    """A comment on the line above, or beside."""
    roles = functions_of_roles("batch")
    assert len(roles) > 20
    lines = {path: path.read_text().splitlines() for path, _, _ in roles}
    assert_none((path, f"line {at}") for path, _, at in roles if "#" not in "".join(lines[path][at - 2 : at]))


def test_no_loose_ends():
    assert_none((path, end) for path in FILES for end in loose_ends(path))


def loose_ends(path):
    if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", path.read_text()):
        yield "a note of what is left to do"
    for node in parsed(path).nodes:
        if isinstance(node, ast.Assert):
            yield f"line {node.lineno} asserts: raise an error with a text"
        if isinstance(node, ast.Call) and part_of(path) not in COMMANDS:
            yield f"line {node.lineno} prints"


def test_no_file_is_longer_than_600_lines():
    tests = sorted(Path(__file__).parent.rglob("*.py"))
    lengths = {str(path): len(path.read_text().splitlines()) for path in (*FILES, *tests)}
    assert not {path: length for path, length in lengths.items() if length > 600}


def test_files_that_the_text_names_exist():
    """`resize.cu` and the like in docstrings and comments; `name.py` stands for any."""
    files = [f"/{p.relative_to(PACKAGE.parent).as_posix()}" for p in PACKAGE.rglob("*") if p.is_file()]
    files += [f"/tests/{p.relative_to(Path(__file__).parent).as_posix()}" for p in Path(__file__).parent.rglob("*.py")]
    named = {(p, name) for p in FILES for name in re.findall(r"`([\w/]+\.(?:py|cuh?))`", p.read_text())}
    gone = [
        f"{p.relative_to(PACKAGE)}: {name}"
        for p, name in named
        if not name.endswith("name.py") and not any(file.endswith(f"/{name}") for file in files)
    ]
    assert not gone, "\n".join(sorted(gone))


def test_every_kernel_text_belongs_to_an_operator():
    """`resize.cu` lies beside `resize.py`, or is named by a file of its folder."""
    for kernel in PACKAGE.rglob("*.cu"):
        beside = [p.read_text() for p in kernel.parent.glob("*.py")]
        assert any(kernel.name in text for text in beside), f"{kernel.name} is used by no file of its folder"


def natural(name):
    """Classes, then the rest, numbers inside names by value: the order that ruff keeps."""
    parts = [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]
    return not name[0].isupper(), parts


def test_public_names_are_sorted_and_complete():
    names = ndd.__all__
    misplaced = [name for name, right in zip(names, sorted(names, key=natural), strict=True) if name != right]
    assert not misplaced, f"ndd.__all__ is not sorted from {misplaced[0]!r} on: `ruff check --fix` does it"
    assert len(names) == len(set(names))
    for name in names:
        assert hasattr(ndd, name), f"ndd.{name} is in __all__ but does not exist"
    modules = {p.stem for p in PACKAGE.iterdir()}
    public = {n for n in vars(ndd) if not n.startswith("_") and n not in modules} - {"annotations"}
    assert public <= set(names), f"imported by ndd/__init__.py, but not in its __all__: {sorted(public - set(names))}"


PUBLIC_MODULES = sorted(
    {
        *(f"ndd.{p.stem}" for p in PACKAGE.glob("[a-z]*.py")),
        *(".".join(("ndd", *p.parent.relative_to(PACKAGE).parts)) for p in PACKAGE.rglob("__init__.py")),
        "ndd.pytorch.nodes",
        "ndd.plugin.base_iterator",
    }
)


@pytest.mark.parametrize("name", [n for n in PUBLIC_MODULES if "._" not in n and n != "ndd"])
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


def test_operators_are_not_hidden_by_their_modules():
    """`ndd.decoders.video` is the operator, whatever modules of the package of this name are imported, and in which order."""
    for path in (PACKAGE / "decoders" / "video").glob("*.py"):
        importlib.import_module(module_of(path))
    for name in ndd.decoders.__all__:
        assert not isinstance(getattr(ndd.decoders, name), types.ModuleType), name


def _is_ours(value):
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "ndd")
    return str(home).startswith("ndd") and not isinstance(value, typing.TypeVar)
