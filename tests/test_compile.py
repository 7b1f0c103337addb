"""`python -m ndd compile`."""

from __future__ import annotations

import pytest

from ndd.__main__ import main
from ndd.compile import command


def test_the_caches_are_filled(tmp_path, monkeypatch, capsys):
    """For the CPU by calls; for a GPU from the texts of kernels, without one."""
    pytest.importorskip("cupy")
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path))
    from ndd._cpu import kernel_cache

    kept = kernel_cache._folders, kernel_cache.writable_folder
    for function in kept:
        function.cache_clear()
    try:
        assert main(["compile", "flip", "--gpu", "sm_75,sm_90", "--jobs", "1"]) == 0
        said = capsys.readouterr().out
        assert f"kept in {tmp_path / 'kernels'}" in said
        assert f"kept in {tmp_path / 'gpu-kernels'}" in said
        assert "2/2  flip" in said
        assert any(path.name.startswith("ndd.ops.image.flip.") for path in (tmp_path / "kernels").iterdir())
        assert len(list((tmp_path / "gpu-kernels").iterdir())) == 2
    finally:
        for function in kept:
            function.cache_clear()


def test_the_operators_that_have_kernels():
    assert command.chosen(["random.beta"]) == ["random.beta"]
    assert "resize 224 cubic" in command.chosen(["resize", "flip"])
    assert {command._operator(call) for call in command.chosen([])} > {"resize", "random.beta"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["resise"], "no operator with kernels is named resise"),
        (["flip", "--gpu", "hopper"], "--gpu: expected architectures such as sm_80,sm_90, or none, got 'hopper'"),
        (["flip", "--jobs", "0"], "--jobs must be at least 1"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, capsys):
    assert main(["compile", *arguments]) == 1
    assert sentence in capsys.readouterr().err
