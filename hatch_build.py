"""Builds wheels: `pip wheel .` or `python -m build`, by hatchling, with kernels inside where they are for Linux.

The environment variable NDD_WHEEL_KERNELS says which: `none` for a wheel without, which any platform takes; a folder that
`python -m ndd compile --archives` has filled; `compile` to compile them, which takes minutes. Not set, they are compiled if the
Python that builds has torch and what else that needs (`pip install -e '.[cpu,audio,test]'`), so that `pip install .` in a new
environment stays quick. Editable installs have none.

To compile them, ndd is run: with the packages of the Python that builds, or with `compile` in the build's own environment, for
which torch is downloaded once more.
"""

from __future__ import annotations

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


def _chosen() -> str:
    """`none`, `compile`, or a folder."""
    has_levels = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
    return os.environ.get(_VARIABLE, "") or ("compile" if has_levels and _has_all() else "none")


def _has_all() -> bool:
    """Whether the Python that builds can compile kernels without the build's own environment, which PYTHONPATH adds."""
    libraries = "import torch, numba, cv2, PIL, simplejpeg, soundfile, av"
    code = f"{libraries}; from cupy_backends.cuda.libs import nvrtc; nvrtc.getVersion()"
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=False).returncode == 0


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What is installed for the build: to compile kernels, ndd is run."""
    needed = hatchling.get_requires_for_build_wheel(config_settings)
    if _chosen() != "compile" or _has_all():
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


class KernelsInside(BuildHookInterface):
    """Puts the archives into the wheel, and the name of the platform into its own."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected."""
        kernels = _chosen()
        if version == "editable" or kernels == "none":
            return
        if kernels == "compile":
            self._made = tempfile.TemporaryDirectory(prefix="ndd-wheel-")  # until the wheel is built
            kernels = self._made.name
            command = [sys.executable, "-m", "ndd", "compile", "--archives", kernels]
            own = {"PYTHONPATH": self.root} if _has_all() else {"LD_LIBRARY_PATH": _libraries()}
            subprocess.run(command, cwd=self.root, env={**os.environ, **own}, check=True)
        archives = sorted(Path(kernels).absolute().glob("*.zip"))
        if not archives:
            raise ValueError(f"{_VARIABLE}={kernels}: no archives of kernels are there; `none` makes a wheel without")
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        abi = f"{python}{getattr(sys, 'abiflags', '')}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{abi}-manylinux_{_GLIBC}_{platform.machine()}"
        build_data["force_include"].update({str(path): f"ndd/_kernels/{path.name}" for path in archives})
