"""Kernel text to machine code: compiled once a machine, also where the cache cannot be written."""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace

import pytest

from ndd._cuda import compile
from ndd._execution import kernel_archives

TEXT = """extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    pytest.importorskip("cupy")
    try:
        compile._nvrtc().getVersion()
    except Exception as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    monkeypatch.delenv("NDD_CACHE_DIR", raising=False)  # it goes before
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def test_a_text_is_compiled_once(cache, monkeypatch):
    first = compile.binary(TEXT, "twice", "sm_90")
    assert len(list(cache.glob("*.bin"))) == 1
    monkeypatch.setattr(compile, "_compiled", None)  # would fail if it was called
    assert compile.binary(TEXT, "twice", "sm_90") == first


def test_a_damaged_file_is_compiled_anew(cache):
    first = compile.binary(TEXT, "twice", "sm_90")
    for damage in (b"", b"half of it", b"x" * 5000):
        next(cache.glob("*.bin")).write_bytes(damage)
        assert compile.binary(TEXT, "twice", "sm_90") == first


def test_text_generation_and_version_make_a_different_kernel(cache):
    keys = {compile._key(t, a) for t in (TEXT, TEXT + " ") for a in ("sm_90", "sm_80")}
    assert len(keys) == 4


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(cache):
    cache.parent.joinpath("kernels").write_text("a file where the folder should be")
    assert compile.binary(TEXT, "twice", "sm_90")


@pytest.mark.skipif(os.name != "posix", reason="a device that is always full")
def test_a_full_disk_leaves_no_half_file(cache, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert compile.binary(TEXT, "twice", "sm_90")
    assert [p.name for p in cache.iterdir()] == [".busy"]


def test_generations_newer_than_the_compiler_get_portable_code(cache):
    known = compile._nvrtc().getSupportedArchs()
    assert compile._architecture(90) == "sm_90"
    assert compile._architecture(max(known) + 10) == f"compute_{max(known)}"
    assert b".target" in compile.binary(TEXT, "twice", f"compute_{max(known)}")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Code of a text for some targets, as a wheel has it: the names of the targets."""
    folder = tmp_path / "package"
    folder.mkdir()
    for target in ("sm_75", "sm_80", "sm_86", "sm_90", "compute_90"):
        header = {"target": {"architecture": target}, "libraries": {"nvrtc": "13.0"}}
        kernel_archives.write_archive(folder, target, header, [(compile.packaged_name(TEXT), target.encode())])
    monkeypatch.setattr(kernel_archives, "folder", folder)
    monkeypatch.setattr(kernel_archives, "_refused", {})
    for cached in (kernel_archives.archive, kernel_archives.targets):
        cached.cache_clear()
    yield folder
    for cached in (kernel_archives.archive, kernel_archives.targets):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("capability", "serve"),
    [(75, ["sm_75"]), (80, ["sm_80"]), (86, ["sm_86", "sm_80"]), (89, ["sm_86", "sm_80"]), (90, ["sm_90"]),
     (70, []), (103, ["compute_90"]), (120, ["compute_90"])],
)  # fmt: skip
def test_code_of_the_package_is_of_the_generation_or_portable(package, capability, serve):
    assert list(compile.packaged(TEXT, capability)) == [name.encode() for name in serve]
    assert not list(compile.packaged(TEXT + " ", capability))


def test_what_the_driver_does_not_take_is_compiled(package, monkeypatch):
    class TooOld(Exception):
        pass

    class Module:
        def load(self, code):
            loaded.append(code)
            if code != b"compiled here":
                raise TooOld("no kernel image")

        def get_function(self, name):
            return SimpleNamespace(ptr=7)

    loaded = []
    device = contextlib.nullcontext(SimpleNamespace(compute_capability="90"))
    function, driver = SimpleNamespace(Module=Module), SimpleNamespace(CUDADriverError=TooOld)
    cuda = SimpleNamespace(Device=lambda _: device, function=function, driver=driver)
    monkeypatch.setattr(compile, "cupy", lambda: SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(compile, "binary", lambda text, name, architecture: b"compiled here")
    monkeypatch.setattr(compile, "_architecture", lambda capability: f"sm_{capability}")
    assert compile._load(TEXT, "twice", 0).ptr == 7
    assert loaded == [b"sm_90", b"compiled here"]
    assert "the driver cannot load the kernels of this package (no kernel image)" in kernel_archives.refused()

    monkeypatch.setattr(Module, "load", lambda self, code: loaded.append(code))
    monkeypatch.setattr(compile, "binary", None)  # nor is NVRTC asked for anything
    loaded.clear()
    compile._load(TEXT, "twice", 0)
    assert loaded == [b"sm_90"]


def test_the_text_of_a_kernel_that_does_not_compile_is_explained(cache):
    with pytest.raises(RuntimeError, match=r"a kernel does not compile[^;]*undefined"):
        compile.binary("__global__ void f() { undefined(); }", "f", "sm_90")


def test_subnormal_numbers_are_kept(cuda):
    """As on the CPU and in DALI; cupy's own compiler options make them 0."""
    import numpy as np

    import ndd

    tiny = np.array([1e-40, -1e-44], np.float32)
    for operation in (lambda x: x * 1, lambda x: ndd.cast(x, dtype=ndd.float64)):
        expected = np.asarray(operation(ndd.tensor(tiny)))
        np.testing.assert_array_equal(np.asarray(operation(ndd.tensor(tiny).gpu()).cpu()), expected)
