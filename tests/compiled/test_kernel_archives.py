"""Kernels that come with the package: used where they fit, else compiled, with a reason."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import textwrap
import weakref

import numpy as np
import pytest
import warm_interpreter
from compiled.test_kernels import MODULE, files, keep, loaded, places

from ndd._compiled import cpu_levels, jit, kernel_cache, kernel_file
from ndd._execution import cache_folders, compile_notice, kernel_archives
from ndd.compile import archives

LEVELS = list(cpu_levels.LEVELS)
pytestmark = pytest.mark.skipif(not LEVELS, reason="no level of processors has wheels here")


@pytest.fixture
def package(tmp_path, monkeypatch, logged):
    """The folder of the package's kernels, with those of the module `small` for this processor; nothing else is kept."""
    (tmp_path / "small.py").write_text(MODULE)
    monkeypatch.setattr(kernel_archives, "folder", tmp_path / "package")
    monkeypatch.setattr(kernel_archives, "_refused", {})
    monkeypatch.setattr(compile_notice, "_said", False)
    monkeypatch.setattr(compile_notice, "_PATIENCE", 0.0)
    _forget()
    places(monkeypatch, NDD_CACHE_DIR=tmp_path / "made")
    keep(tmp_path, "made/kernels")
    kept = [(p.name, p.read_bytes()) for p in files(tmp_path) if not p.name.startswith("inner.")]
    assert len(kept) == 1
    archived(tmp_path, kept)
    places(monkeypatch, NDD_CACHE_DIR=tmp_path / "cache")
    monkeypatch.setattr(compile_notice, "_said", False)
    logged.clear()
    yield tmp_path
    _forget()
    for cached in (kernel_cache._folders, kernel_cache.writable_folder, kernel_cache.source_digest):
        cached.cache_clear()


def archived(folder, kept, **header):
    said, _ = kernel_file.unpacked(kept[0][1], {})
    header = {name: said[name] for name in ("target", "libraries")} | header
    (folder / "package").mkdir(exist_ok=True)
    kernel_archives.write_archive(folder / "package", LEVELS[-1], header, kept)
    _forget()


def _forget():
    for cached in (kernel_archives.archive, kernel_archives.targets, kernel_cache._archives, kernel_cache.libraries):
        cached.cache_clear()


def contents(folder):
    files = kernel_archives.archive(LEVELS[-1])
    return [(name, files.read(name)) for name in files._names if name.endswith(kernel_file.SUFFIX)]


def compiled(folder, kind=np.float64):
    """Calls the kernel; whether it had to be compiled."""
    doubled = loaded(folder).doubled
    out = np.empty(3, kind)
    doubled(np.arange(3, dtype=kind), out)
    assert out.tolist() == [0, 2, 4]
    return not doubled.compiled()._cache_hits


def test_kernels_of_the_package_are_used(package, logged):
    assert not compiled(package)
    assert not (package / "cache").exists()
    assert not logged
    assert compiled(package, np.int16)  # not among them
    assert "(" not in logged[0][1].partition("; ")[2]  # which is no fault of theirs


def test_a_kernel_of_another_text_is_not_used(package):
    (package / "small.py").write_text(MODULE.replace("x + x", "2 * x"))
    assert compiled(package)


def test_other_libraries_are_told(package, logged):
    libraries = kernel_cache.libraries()
    archived(package, contents(package), libraries={**libraries, "numba": "0.1.2"})
    assert compiled(package)
    ((_, said),) = logged
    assert said.endswith(f"(The kernels of this package are for numba 0.1.2, and here is {libraries['numba']}.)")


@pytest.mark.parametrize("library", ["numba", "llvmlite"])
def test_later_patch_releases_run_the_kernels(package, logged, monkeypatch, library):
    module = importlib.import_module(library)
    monkeypatch.setattr(module, "__version__", ".".join(module.__version__.split(".")[:2] + ["99"]))
    _forget()
    assert not compiled(package)
    assert not logged
    monkeypatch.setattr(module, "__version__", "99.0.0rc1")
    _forget()
    assert compiled(package)
    assert "and here is 99.0.0rc1" in logged[0][1]


def test_a_lesser_processor_is_told(package, logged):
    target = kernel_archives.archive(LEVELS[-1]).header["target"]
    archived(package, contents(package), target={**target, "features": target["features"] + ",+warp-drive"})
    assert compiled(package)
    ((_, said),) = logged
    assert f"need a processor of level {LEVELS[0]}" in said


def test_another_kind_of_processor_is_none_that_code_runs_on():
    host = {"triple": "x86_64-unknown-linux-gnu", "cpu": "haswell", "features": "+avx,-avx512f,+fma"}
    assert cpu_levels.runs_on({**host, "triple": "x86_64-conda-linux-gnu", "features": "+fma"}, host)
    assert not cpu_levels.runs_on({**host, "features": "+avx512f"}, host)
    assert not cpu_levels.runs_on({**host, "triple": "aarch64-unknown-linux-gnu"}, host)


@pytest.mark.parametrize("damage", [b"", b"noise" * 100, "cut", "flipped", "no header", "foreign", "encrypted"])
@pytest.mark.drawn(2)
def test_a_damaged_archive_is_told(package, logged, damage):
    path = package / "package" / f"{LEVELS[-1]}.zip"
    content = path.read_bytes()
    if damage == "flipped":  # in the code of a kernel
        content = content[:400] + bytes([content[400] ^ 1]) + content[401:]
    elif damage == "no header":
        content = content.replace(b"archive.json", b"another.json")
    elif damage == "encrypted":  # by a bit of the directory that says so
        at = content.index(b"PK\x01\x02") + 8
        content = content[:at] + bytes([content[at] | 1]) + content[at + 1 :]
    elif damage == "foreign":
        archived(package, contents(package), target=["x86-64"])
        content = path.read_bytes()
    else:
        content = content[: len(content) // 2] if damage == "cut" else damage
    path.write_bytes(content)
    _forget()
    assert compiled(package)
    ((_, said),) = logged
    assert damage == "flipped" or f"{path} cannot be read" in said


def test_what_others_could_have_written_is_not_used(package, monkeypatch):
    def others(status):
        return "it belongs to another user"

    monkeypatch.setattr(cache_folders, "others_who_write", others)
    _forget()
    with pytest.warns(RuntimeWarning, match="is not used for kernels of the package"):
        assert kernel_archives.archive(LEVELS[-1]) is None


def test_what_was_called_is_compiled_for_a_level(package, monkeypatch):
    """Also if the garbage collector does not list it: processes that compile freeze their objects."""
    monkeypatch.setattr(jit, "called_kernels", weakref.WeakSet())
    gc.freeze()
    try:
        assert not compiled(package)
        gc.freeze()
        archives.compile_called()
    finally:
        gc.unfreeze()
    kept = {path.name.rsplit(".", 3)[0] for path in (package / "cache" / "kernels").glob("*.kernel")}
    assert kept == {"small.doubled", "inner.small.twice"}
    (kernel,) = jit.called_kernels
    monkeypatch.setattr(kernel_cache.KernelCache, "has_file", None)
    monkeypatch.setattr(kernel_cache.KernelCache, "load_overload", None)
    archives.compile_called()  # looks for nothing again
    assert len(kernel._for_target.overloads) == 1


_AT_A_LEVEL = """
import json, sys
from pathlib import Path
import numpy as np
from ndd._compiled import kernel_cache
from ndd.compile import archives

level, folder, cache = sys.argv[1:]
archives.begin(Path(folder), level, cache)
from small import doubled
out = np.empty(3)
doubled(np.arange(3.0), out)
assert out.tolist() == [0, 2, 4]
hits = sum(doubled.compiled()._cache_hits.values())
archives.compile_called()
archives.write_for_cpu(Path(folder), level, Path(cache, "kernels"))
print(hits)
"""


@pytest.mark.long
def test_code_for_a_higher_level_is_compiled_but_not_run(package):
    """Machines that build wheels may have a lower one; the code of the lowest level answers the calls."""
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *sys.path])}
    result, hits = package / "levels", []
    result.mkdir()
    for level in LEVELS:
        cache = package / f"cache-{level}"
        done = warm_interpreter.run(textwrap.dedent(_AT_A_LEVEL), level, str(result), str(cache), env=own, cwd=package)
        assert done.returncode == 0, done.stderr
        hits.append(int(done.stdout.splitlines()[-1]))
    assert hits == [0, *[1] * (len(LEVELS) - 1)]
    for level in LEVELS:
        archive = kernel_archives.KernelArchive((result / f"{level}.zip").read_bytes())
        features = cpu_levels.environment(level)["NUMBA_CPU_FEATURES"]
        assert archive.header["target"]["features"] == features
        (name,) = [name for name in archive._names if name.endswith(kernel_file.SUFFIX)]
        header, _ = kernel_file.unpacked(archive.read(name), json.loads(json.dumps(archive.header)))
        assert header["kernel"] == "small.doubled"
