"""Kernel text to machine code: compiled once a machine, also where the cache cannot be written."""

from __future__ import annotations

import os

import pytest

from ndd._cuda import compile

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
