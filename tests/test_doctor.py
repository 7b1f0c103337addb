"""`python -m ndd doctor`: tries things really, says what to install, and its exit code tells."""

from __future__ import annotations

import importlib

import pytest

from ndd import doctor
from ndd.__main__ import _COMMANDS, main
from ndd.installation import install_command


def without(monkeypatch, *missing):
    """Makes imports of these modules fail as if they were not installed."""
    real = importlib.import_module

    def import_module(name, package=None):
        if name.split(".")[0] in missing or name in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, package)

    monkeypatch.setattr(doctor, "import_module", import_module)


def test_a_working_installation(capsys):
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for name in (
        "torch",
        "numba",
        "OpenCV",
        "Pillow",
        "nvImageCodec",
        "driver",
        "cupy",
        "DALI",
        "the loop, CPU",
        "kernels",
    ):
        assert f"  {name}" in text
    assert "compiled a function" in text
    assert "decoded a JPEG of 400 x 266" in text
    assert text.splitlines()[-1] == "Everything that is needed here works."


def test_what_is_needed_and_missing(monkeypatch, capsys):
    without(monkeypatch, "numba")
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "NO  numba" in text
    end = text.partition("What to do:\n\n")[2]
    assert end.startswith('    pip install "numba>=0.61"\n')
    assert "open an issue" in end.splitlines()[-1]
    assert "\nDoes not work: numba" in text


@pytest.mark.parametrize("module", ["simplejpeg", "cupy", "nvidia.nvimgcodec"])
@pytest.mark.drawn(1)
def test_what_is_optional_and_missing(module, monkeypatch):
    without(monkeypatch, module)
    states = {f.name: f.state for f in doctor.findings()}
    assert "broken" not in states.values()
    name = {"nvidia.nvimgcodec": "nvImageCodec"}.get(module, module)
    assert states[name] == "missing"


def test_a_library_that_cannot_be_imported_is_broken(monkeypatch):
    real = importlib.import_module

    def import_module(name, package=None):
        if name == "cv2":
            raise ImportError("libGL.so.1: cannot open shared object file")
        return real(name, package)

    monkeypatch.setattr(doctor, "import_module", import_module)
    result = next(f for f in doctor.findings() if f.name == "OpenCV")
    assert result.state == "broken"
    assert "libGL.so.1" in result.text


def test_a_check_that_fails_does_not_hide_the_others(monkeypatch):
    def raising(_device):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(doctor, "_loop", raising)
    result = {finding.name: finding for finding in doctor.findings()}
    assert result["the loop, CPU"].text == "RuntimeError: first line"
    assert result["the loop, CPU"].state == "broken"


def test_a_gpu_without_its_libraries(monkeypatch):
    without(monkeypatch, "cupy")
    monkeypatch.setattr(doctor, "_driver_version", lambda: 12080)
    result = doctor._cupy(gpus=1)
    assert (result.state, result.advice) == ("broken", install_command("cuda12"))
    monkeypatch.setattr(doctor, "_driver_version", lambda: 13000)
    assert doctor._cupy(gpus=1).advice == install_command("cuda13")


def test_no_arguments_are_taken(capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "--verbose"])
    assert "unrecognized arguments" in capsys.readouterr().err


def test_without_a_command_they_are_listed(capsys):
    assert main([]) == 0
    told = capsys.readouterr().out
    assert all(f"\n    {name} " in told for name in _COMMANDS)
