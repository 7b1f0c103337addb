"""Builds wheels: `pip wheel .` or `python -m build`, by hatchling, with kernels inside where they are for Linux.

The environment variable NDD_WHEEL_KERNELS says which: `none` for a wheel without, which any platform takes; a folder that
`python -m ndd compile --archives` has filled; `compile` to compile them, which takes minutes. Not set, they are compiled if the
Python that builds has torch and what else that needs (`pip install -e '.[cpu,audio,test]'`), so that `pip install .` in a new
environment stays quick. A wheel without says why in one line, which `python -m ndd doctor` shows too. Editable installs have none.

To compile them, ndd is run: with the packages of the Python that builds, or with `compile` in the build's own environment, for
which torch is downloaded once more.
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling import build as hatchling
from hatchling.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

__all__ = [
    "KernelsInside",
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]
_VARIABLE = "NDD_WHEEL_KERNELS"
_EXTRAS = ("cpu", "audio")  # what makes the calls whose kernels are compiled
_FOR_GPUS = ("cupy-cuda13x>=14", "nvidia-cuda-nvrtc")  # compiles for GPUs without one
_GLIBC = "2_28"  # the oldest that torch's own wheels run with
_ABSENT = "absent.txt"  # `kernel_archives.why_none` reads it


def _chosen() -> str:
    """`none`, `compile`, or a folder."""
    return os.environ.get(_VARIABLE, "") or ("none" if _why_none() else "compile")


def _why_none() -> str:
    """Why a wheel has no kernels if the variable says nothing; "" if it has them."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return "wheels bring kernels for Linux on x86-64 and arm64"
    missing = _missing()
    return (
        missing
        and f"the Python that builds cannot compile them ({missing}); {_VARIABLE}=compile downloads what it lacks"
    )


@functools.cache
def _missing() -> str:
    """What keeps the Python that builds from compiling kernels without the build's own environment, which PYTHONPATH adds: the
    last line of its error, or ""."""
    libraries = "import torch, numba, cv2, PIL, simplejpeg, soundfile, av"
    code = f"{libraries}; from cupy_backends.cuda.libs import nvrtc; nvrtc.getVersion()"
    tried = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    said = tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"]
    return said[-1] if tried.returncode else ""


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What is installed for the build: to compile kernels, ndd is run."""
    needed = hatchling.get_requires_for_build_wheel(config_settings)
    if _chosen() != "compile" or not _missing():
        return needed
    project = ProjectMetadata(os.getcwd(), PluginManager()).core
    of_extras = [each for extra in _EXTRAS for each in project.optional_dependencies[extra]]
    return [*needed, *project.dependencies, *of_extras, *_FOR_GPUS]


def _libraries() -> str:
    """Where NVRTC lies: cupy does not look into the folders that pip makes for a build."""
    folders = [
        library.parent for place in sys.path for library in sorted(Path(place).glob("nvidia/*/lib/libnvrtc.so.*"))
    ]
    return os.pathsep.join([*map(str, folders), os.environ.get("LD_LIBRARY_PATH", "")]).strip(os.pathsep)


def _say(content: str) -> None:
    print(f"ndd: this wheel has {content}", file=sys.stderr, flush=True)


class KernelsInside(BuildHookInterface):
    """Puts the archives into the wheel, and the name of the platform into its own."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected."""
        if version == "editable":
            return
        kernels = _chosen()
        self._made = tempfile.TemporaryDirectory(prefix="ndd-wheel-")  # until the wheel is built
        if kernels == "none":
            reason = f"{_VARIABLE} is none" if os.environ.get(_VARIABLE) else _why_none()
            _say(f"no compiled kernels: {reason}")
            absent = Path(self._made.name, _ABSENT)
            absent.write_text(reason, encoding="utf-8")
            build_data["force_include"][str(absent)] = f"ndd/_kernels/{_ABSENT}"
            return
        if kernels == "compile":
            kernels = self._made.name
            command = [sys.executable, "-m", "ndd", "compile", "--archives", kernels]
            own = {"LD_LIBRARY_PATH": _libraries()} if _missing() else {"PYTHONPATH": self.root}
            subprocess.run(command, cwd=self.root, env={**os.environ, **own}, check=True)
        archives = sorted(Path(kernels).absolute().glob("*.zip"))
        if not archives:
            raise ValueError(f"{_VARIABLE}={kernels}: no archives of kernels are there; `none` makes a wheel without")
        _say(f"compiled kernels for {', '.join(path.stem for path in archives)}")
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        abi = f"{python}{getattr(sys, 'abiflags', '')}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{abi}-manylinux_{_GLIBC}_{platform.machine()}"
        build_data["force_include"].update({str(path): f"ndd/_kernels/{path.name}" for path in archives})
