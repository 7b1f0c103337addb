"""Compiled kernels: who compiles, where they are kept, and what a damaged file does."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
from multiprocessing.connection import Pipe
from pathlib import Path

import numpy as np
import pytest
import warm_interpreter

from ndd._compiled import compile_worker, kernel_cache, kernel_file, linking
from ndd._compiled.background import Background
from ndd._compiled.compile_processes import ENDED, Worker
from ndd._compiled.jit import Kernel
from ndd._execution import cache_folders, compile_notice as compiling
from ndd._execution.cache_folders import chosen_folder

# A small kernel that calls another, in a file of its own so that it can be kept.
MODULE = """
from ndd._compiled.jit import kernel

@kernel
def twice(x):
    return x + x

@kernel
def doubled(values, out):
    for i in range(len(values)):
        out[i] = twice(values[i])
"""


# Kernels that hand on parts of arrays, and give back new ones.
COUNTING = """
from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
import numpy as np

@kernel
def either(a, b, first):
    return a if first else b

@kernel
def summed(rows, out):
    made = empty(rows.shape[1], np.float32)
    for i in range(len(rows)):
        part = either(rows[i], made, i % 3 != 1)
        for k in range(len(part)):
            made[k] = part[k]
            out[k] += part[k]
    return made, rows[0]
"""


# What it gives back has no form in a file.
TEXT = """
from ndd._compiled.jit import kernel

@kernel
def named(number):
    return "three" if number == 3 else "other"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the module, where kernels are kept too."""
    (tmp_path / "small.py").write_text(MODULE)
    places(monkeypatch, NUMBA_CACHE_DIR=tmp_path / "cache")
    return tmp_path


def places(monkeypatch, **environment):
    for name, value in {"NDD_CACHE_DIR": None, **environment}.items():
        monkeypatch.setenv(name, str(value)) if value else monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    for kept in (kernel_cache._folders, kernel_cache.writable_folder, kernel_cache.source_digest):
        kept.cache_clear()
        monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(cache_folders, "_warned", set())


@pytest.fixture(autouse=True)
def _places_afterwards():
    yield
    for kept in (kernel_cache._folders, kernel_cache.writable_folder, kernel_cache.source_digest):
        kept.cache_clear()


def loaded(folder):
    """The module as a new process would see it."""
    kernel_cache.source_digest.cache_clear()
    spec = importlib.util.spec_from_file_location("small", folder / "small.py")
    module = importlib.util.module_from_spec(spec)
    exec(compile((folder / "small.py").read_text(), folder / "small.py", "exec"), vars(module))
    return module


def found_on_disk(folder, kind=np.float64, factor=2):
    """Calls the kernel; whether it had been compiled before."""
    doubled = loaded(folder).doubled
    out = np.empty(3, kind)
    doubled(np.arange(3, dtype=kind), out)
    assert out.tolist() == [0, factor, 2 * factor]
    return bool(doubled.compiled()._cache_hits)  # `stats` asks for the folder too


def has_file(folder, kind=np.float64):
    dispatcher = loaded(folder).doubled.compiled()
    return dispatcher._cache.has_file((dispatcher.typeof_pyval(np.empty(3, kind)),) * 2, dispatcher.targetctx)


def files(folder):
    return sorted(p for p in folder.rglob("*") if p.name.endswith(".kernel"))


_kept: dict[str, bytes] = {}


def keep(folder, cache="cache/ndd"):
    """Puts the files of the kernel into a cache. They are compiled once for all tests that begin with them."""
    if not _kept:
        assert not found_on_disk(folder)
        _kept.update((path.name, path.read_bytes()) for path in files(folder))
    (folder / cache).mkdir(parents=True, exist_ok=True)
    for name, content in _kept.items():
        (folder / cache / name).write_bytes(content)


def test_kept_on_disk(folder):
    assert not found_on_disk(folder)
    assert len(files(folder)) == 2
    assert found_on_disk(folder)
    assert not found_on_disk(folder, np.int16)
    twice = loaded(folder).twice
    assert twice(4) == 8
    # What kernels call is kept as a part of kernels, and Python cannot call it.
    assert not twice.compiled().stats.cache_hits


LITERALS = """
from ndd._compiled.jit import kernel

@kernel
def big_endian(data, at, count):
    number = 0
    for k in range(count):
        number = number << 8 | data[at + k]
    return number

@kernel(light=True)
def doubled(values, out):
    out[0] = big_endian(values, 0, 1)
    out[1] = big_endian(values, 1, 1)
    out[2] = big_endian(values, 1, 2) + big_endian(values, len(values) - 3, 2)
"""


def test_numbers_written_in_calls_make_no_other_kernels(folder):
    (folder / "small.py").write_text(LITERALS)
    out = np.empty(3, np.int64)
    loaded(folder).doubled(np.array([3, 4, 5], np.uint8), out)
    assert out.tolist() == [3, 4, 4 * 256 + 5 + 3 * 256 + 4]
    assert len(files(folder)) == 2


CHAIN = """
from ndd._compiled.jit import kernel
import numpy as np

@kernel
def mixed(values, out):
    for i in range(len(values)):
        out[i] = np.sqrt(values[i]) if i % 3 else np.floor(values[i]) + values[len(values) - 1 - i] / 7

@kernel
def twice(values, out):
    mixed(values, out)
    mixed(out, out)

@kernel
def doubled(values, out):
    twice(values, out)
"""


def test_large_kernels_are_linked_through_others(folder, monkeypatch):
    """Also where they are too large to be looked at by each kernel between them and the one that Python calls."""
    (folder / "small.py").write_text(CHAIN)
    values = np.arange(9, dtype=np.float64)
    result = []
    for large in (0, 1 << 30):
        monkeypatch.setattr(linking, "_LARGE", large)
        for path in files(folder):
            path.unlink()
        for _ in range(2):  # compiled, then loaded
            out = np.empty(9)
            loaded(folder).doubled(values, out)
            result.append(out.tolist())
    assert all(each == result[0] for each in result)


def test_a_call_is_resolved_once(folder, monkeypatch):
    """Numba does so each time that it goes over a function: compiling took a tenth longer."""
    from numba.core.typing.context import BaseContext

    resolved, of_numba = [], BaseContext.resolve_function_type

    def resolve(self, function, arguments, named):
        resolved.append((function, tuple(arguments), str(named)))
        return of_numba(self, function, arguments, named)

    monkeypatch.setattr(BaseContext, "resolve_function_type", resolve)
    loaded(folder).doubled(np.arange(3, dtype=np.int16), np.empty(3, np.uint16))
    assert resolved
    assert len(resolved) == len(set(resolved))


def test_the_switch_of_numba_is_a_sentence(folder, monkeypatch):
    """Its own functions are compiled no more, so that it could not compile kernels that must be."""
    import numba

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match=r"doubled: NUMBA_DISABLE_JIT is set.* Set NDD_COMPILE=0"):
        loaded(folder).doubled(np.zeros(1), np.zeros(1))


def test_one_variable_moves_all_caches(folder, monkeypatch):
    """Before numba's own, which is heeded where this one is empty."""
    monkeypatch.setenv("NDD_CACHE_DIR", str(folder / "moved"))
    kernel_cache._folders.cache_clear()
    assert not found_on_disk(folder)
    assert {path.parent for path in files(folder)} == {folder / "moved" / "kernels"}
    assert chosen_folder("gpu-kernels") == folder / "moved" / "gpu-kernels"
    monkeypatch.setenv("NDD_CACHE_DIR", "")
    assert kernel_cache._other_folders() == [folder / "cache" / "ndd"]
    assert chosen_folder("kernels") is None


def test_a_long_compilation_is_said_once(folder, monkeypatch, logged):
    monkeypatch.setattr(compiling, "_said", False)
    monkeypatch.setattr(compiling, "_PATIENCE", 1e6)
    assert not found_on_disk(folder)
    assert not logged  # not yet long
    monkeypatch.setattr(compiling, "_PATIENCE", 0.0)
    assert found_on_disk(folder)
    assert not logged  # nothing was compiled
    assert not found_on_disk(folder, np.int16)
    assert not found_on_disk(folder, np.int32)
    ((_, said),) = logged
    assert "is compiling kernels" in said  # each call finds out what it needs: their number is not known
    assert str(folder / "cache") in said
    assert "python -m ndd compile" in said


def test_another_text_is_another_kernel(folder):
    """Also if only a constant that is compiled in has changed, which stands in another file."""
    (folder / "small.py").write_text(f"FACTOR = OTHER = 3\n{MODULE.replace('return x + x', 'return x * FACTOR')}")
    assert not found_on_disk(folder, np.int64, 3)
    module = loaded(folder)
    for changed in (module.twice, module.doubled):
        changed.function.__globals__["FACTOR"] = 5
    out = np.empty(3)
    module.doubled(np.arange(3.0), out)
    assert out.tolist() == [0, 5, 10]
    assert not found_on_disk(folder, np.float64, 3)


def test_options_that_are_sets_have_one_text():
    """Words in a set come in another order in each process: there they were compiled anew. (So do these two numbers.)"""
    texts = {Kernel(places, {"fastmath": numbers})._text() for numbers in ({0, 8}, {8, 0})}
    assert str({0, 8}) != str({8, 0})
    assert len(texts) == 1


def test_arrays_are_counted_without_locks(folder):
    from numba.core.runtime import _nrt_python, rtsys

    (folder / "small.py").write_text(COUNTING)
    summed = loaded(folder).summed
    rows, out = np.ones((7, 5), np.float32), np.zeros(5, np.float32)
    summed(rows, out)
    code = "".join(summed.compiled().inspect_llvm().values())
    assert "NRT_decref" in code
    assert "atomicrmw" not in code
    held = sys.getrefcount(rows)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(20):
            result, first = summed(rows, out)
            assert result.tolist() == first.tolist() == [1.0] * 5
        del result, first
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free > 20
    assert sys.getrefcount(rows) == held


def test_what_is_kept_is_loaded_without_the_compiler(folder):
    """Numba's library of what it can compile takes 0.3 s to import, and scipy's linear algebra with it."""
    (folder / "small.py").write_text(COUNTING)
    code = """
    import sys
    import numpy as np
    from small import summed
    rows, out = np.ones((7, 5), np.float32), np.zeros(5, np.float32)
    made, first = summed(rows, out)
    assert made.tolist() == first.tolist() == [1.0] * 5
    assert sys.getrefcount(rows) == 3
    print(sorted({"numba.np.arrayobj", "scipy.linalg", "numpy.ma"} & set(sys.modules)), "numba" in sys.modules)
    """
    own = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    own["NUMBA_CACHE_DIR"] = str(folder / "cache")
    compiled, result = (warm_interpreter.run(textwrap.dedent(code), env=own, cwd=folder) for _ in range(2))
    assert "'numba.np.arrayobj'" in compiled.stdout, compiled.stderr
    assert result.stdout == "[] True\n", result.stderr


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "forged"])
@pytest.mark.drawn(1)
def test_a_damaged_file_is_compiled_anew(folder, damage):
    keep(folder)
    for path in files(folder):
        whole = path.read_bytes()
        path.write_bytes(
            {
                "empty": b"",
                "cut": whole[: len(whole) // 2],
                "noise": bytes(range(256)) * 20,
                "forged": whole[:-1] + bytes([whole[-1] ^ 1]),
            }[damage]
        )
    assert not has_file(folder)  # else the call would compile, where a fallback can answer
    assert not found_on_disk(folder)
    assert found_on_disk(folder)
    assert has_file(folder)
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make files")
def test_without_a_package_folder_or_a_home(folder, monkeypatch):
    """A container: the package read-only, no home. The temporary folder serves, if only its owner can write there."""
    spare = folder / "temporary"
    spare.mkdir()
    none = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": "/proc/none", "HOME": "/proc/none", "TMPDIR": spare}
    monkeypatch.setattr(kernel_cache, "__file__", "/proc/ndd/_cpu/kernel_cache.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        places(monkeypatch, **none)
        assert not found_on_disk(folder)
        assert len(files(spare)) == 2
        own = files(spare)[0].parent
        assert (own.stat().st_mode & 0o777) == 0o700
        places(monkeypatch, **none)
        assert found_on_disk(folder)
    own.chmod(0o777)  # anybody may have written what lies there: it is not run
    places(monkeypatch, **none)
    with pytest.warns(RuntimeWarning, match="NDD_CACHE_DIR"):
        assert not found_on_disk(folder)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make files")
def test_without_any_folder(folder, monkeypatch):
    """Compiled once a process, and one warning."""
    places(monkeypatch, NUMBA_CACHE_DIR="/proc/none")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for kind in (np.float64, np.float32):
            assert not found_on_disk(folder, kind)
    assert "set NDD_CACHE_DIR" in str(seen[0].message)
    assert len([w for w in seen if w.category is RuntimeWarning]) == 1


def test_a_full_disk(folder, monkeypatch):
    """The kernel runs all the same, and half a file is not left behind."""

    def full(beside, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(kernel_file, "unstored", {})
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert not found_on_disk(folder)
    assert [name.split(".")[:2] for name in kernel_file.unstored] == [["small", "doubled"]]
    assert [path.name for path in (folder / "cache" / "ndd").iterdir()] == [".busy"]


def test_a_process_with_a_full_disk_sends_what_it_compiles(folder, monkeypatch):
    """The program loads it, and warns in its place. It compiled it again: the second batch came after 28 s, not 12."""
    keep(folder)
    name = next(path.name for path in files(folder) if not path.name.startswith("inner."))
    for path in files(folder):
        path.unlink()
    ours, theirs = Pipe()

    def compile_it(kernel):
        kernel_file.unstored[name] = _kept[name], "could not be written"

    monkeypatch.setattr(compile_worker, "background", Background())
    monkeypatch.setattr(compile_worker, "_compile", compile_it)
    theirs.send_bytes(compile_worker._answer(theirs, b"doubled"))
    assert not kernel_file.unstored
    assert Worker(ours).answer() == ENDED
    with pytest.warns(RuntimeWarning, match="could not be written"):
        assert found_on_disk(folder)
    assert not kernel_file.unstored


def test_a_folder_that_cannot_be_used_is_told_and_another_one_serves(folder, monkeypatch):
    """NDD_CACHE_DIR; the next process finds what was kept elsewhere."""
    (folder / "file").write_text("")
    for kept in ([], [True]):
        places(monkeypatch, NUMBA_CACHE_DIR=folder / "cache", NDD_CACHE_DIR=folder / "file" / "below")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert found_on_disk(folder) == bool(kept)
            found_on_disk(folder, np.int8)
        said = [str(w.message) for w in seen]
        assert len(said) == (not kept), said
        for text in said:
            assert text == (
                f"NDD_CACHE_DIR: {folder / 'file' / 'below' / 'kernels'} cannot be used (Not a directory), so compiled kernels "
                f"are kept in {folder / 'cache' / 'ndd'}."
            )


def test_a_folder_that_can_only_be_read_is_read(folder, monkeypatch):
    """As in an image of a container; what is new is kept elsewhere."""
    places(monkeypatch, NUMBA_CACHE_DIR=folder / "cache", NDD_CACHE_DIR=folder / "full")
    assert not found_on_disk(folder)
    refuse_writing(monkeypatch, folder / "full" / "kernels")
    places(monkeypatch, NUMBA_CACHE_DIR=folder / "cache", NDD_CACHE_DIR=folder / "full")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found_on_disk(folder)
    with pytest.warns(RuntimeWarning, match="NDD_CACHE_DIR: .* cannot be used .Read-only file system., so"):
        assert not found_on_disk(folder, np.int8)
    assert found_on_disk(folder, np.int8)


def refuse_writing(monkeypatch, folder):
    """As a read-only file system does."""
    make = tempfile.TemporaryFile

    def refuses(*arguments, dir=None, **options):
        if Path(dir) == folder:
            raise OSError(30, "Read-only file system", str(dir))
        return make(*arguments, dir=dir, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", refuses)


class Runs:
    """What makes a pickle that runs something."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_is_unpickled(folder):
    """A pickle in the form that files had before, and one in place of the code; nor is the module at hand."""
    for form in (lambda content: content, lambda content: kernel_file.packed({}, content)):
        keep(folder)
        for path in files(folder):
            content = form(pickle.dumps(Runs(str(folder / "ran"))))
            path.write_bytes(hashlib.sha256(content).digest() + content)
        assert not found_on_disk(folder)
    assert not (folder / "ran").exists()
    assert not [
        name for name, module in sys.modules.items() if name.startswith("ndd._cpu.") and hasattr(module, "pickle")
    ]


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
def test_what_others_could_have_written_is_not_run(folder, monkeypatch):
    keep(folder)
    for path in files(folder):
        path.chmod(0o666)
    assert not found_on_disk(folder)  # the files; written anew
    assert found_on_disk(folder)
    own = folder / "cache" / "ndd"
    for place in (own, own.parent):  # who writes to the one above can put another in its place
        place.chmod(0o777)
        places(monkeypatch, NUMBA_CACHE_DIR=folder / "cache")
        said = f"^{own} is not used for compiled kernels: every user can write to "
        with pytest.warns(RuntimeWarning, match=said) as seen:
            kept = [found_on_disk(folder), found_on_disk(folder, np.int8)]
        assert kept == [False, False]
        assert len([w for w in seen if str(own) in str(w.message)]) == 1
        place.chmod(0o755)
    places(monkeypatch, NUMBA_CACHE_DIR=folder / "cache")
    assert found_on_disk(folder)


@pytest.mark.skipif(os.name != "posix", reason="needs a umask")
def test_files_are_closed_to_others_whatever_the_umask_is(folder):
    before = os.umask(0)
    try:
        assert not found_on_disk(folder)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in files(folder)} == {0o644}
    assert (folder / "cache" / "ndd").stat().st_mode & 0o777 == 0o755


def test_a_result_without_a_form_is_compiled_in_each_process(folder):
    """Text is none of ours; nothing is kept, and nothing goes wrong."""
    (folder / "small.py").write_text(TEXT)
    for _ in range(2):
        assert loaded(folder).named(3) == "three"
    assert not files(folder)


def test_many_threads_ask_first(folder):
    """One of them compiles for each type; the others wait, and find it."""
    kinds, wrong = [np.float64, np.float32, np.int64, np.int16], []
    doubled, ready = loaded(folder).doubled, threading.Barrier(16)

    def work(i):
        out = np.empty(3, kinds[i % 4])
        ready.wait()
        try:
            doubled(np.arange(3, dtype=out.dtype), out)
            if out.tolist() != [0, 2, 4]:
                wrong.append(out)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong
    assert sum(doubled.compiled().stats.cache_misses.values()) == 4


def test_many_processes_ask_first(folder):
    """With different types, so that they write at the same time; all of it can be read afterwards. One of them compiles for a
    type, the others wait and find it."""
    kinds = ["float64", "int16"]
    code = """
    import numpy as np
    from ndd._compiled.kernel_cache import KernelCache
    from small import doubled
    kept, keep = [], KernelCache._keep
    KernelCache._keep = lambda self, *given: kept.append(self) or keep(self, *given)
    out = np.empty(3, {0!r})
    doubled(np.arange(3, dtype={0!r}), out)
    print(out.tolist() == [0, 2, 4], len(kept))
    """
    own = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NUMBA_CACHE_DIR": str(folder / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code.format(kind))],
            env={**os.environ, **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
        for _ in range(2)
    ]
    compiled = 0
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert out.startswith("True"), err[-2000:]
        compiled += int(out.split()[1])
    assert len(files(folder)) == compiled == 2 * len(kinds)
    assert not list(folder.rglob("*.tmp"))
    for path in files(folder):
        content = path.read_bytes()
        assert hashlib.sha256(content[32:]).digest() == content[:32]
