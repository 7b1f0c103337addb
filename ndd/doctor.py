"""The `doctor` command: tells what is installed, whether it works here, and how to install missing parts."""

from __future__ import annotations

import argparse
import ctypes
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from ndd import installation

__all__ = ["Finding", "add_arguments", "findings", "run"]

_PHOTO = Path(__file__).parent / "demo" / "photos" / "nature" / "cat.jpg"
_KERNEL = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }'


@dataclass
class Finding:
    """One line of the report. `state` is "ok", "missing" (not needed) or "broken"; `advice` is a command."""

    name: str
    state: str
    text: str
    advice: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(args: argparse.Namespace) -> int:
    """Prints the findings, and at the end commands to copy; returns 0 if everything that this machine needs works, otherwise
    1."""
    print(f"ndd {installation.version()}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    report = findings()
    width = max(len(f.name) for f in report)
    marks = {"ok": "ok", "missing": "--", "broken": "NO"}
    for f in report:
        print(f"  {marks[f.state]}  {f.name:<{width}}  {f.text}")
    broken = [f.name for f in report if f.state == "broken"]
    print(f"Does not work: {', '.join(broken)}." if broken else "Everything that is needed here works.")
    # Broken parts come first. Shells take text after # for a comment.
    commands = dict.fromkeys(f.advice for f in sorted(report, key=lambda f: f.state != "broken") if f.advice)
    if commands:
        print("\nWhat to do:\n")
        print("\n".join(f"    {command}" for command in commands))
    if broken:
        print("\nIf that does not help, open an issue with all of this output.")
    return 1 if broken else 0


def findings() -> list[Finding]:
    """All checks, in the order of the report. None raises."""
    gpus = _gpu_count()
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("torch", _torch),
        ("numpy", lambda: Finding("numpy", "ok", _version("numpy"))),
        ("numba", _numba),
        ("OpenCV", _opencv),
        ("Pillow", _pillow),
        ("simplejpeg", _simplejpeg),
        ("libdeflate", _libdeflate),
        ("nvImageCodec", _nvimgcodec),
        ("nvImageCodec GPU", lambda: _nvimgcodec_gpu(gpus)),
        ("driver", lambda: _driver(gpus)),
        ("cupy", lambda: _cupy(gpus)),
        ("DALI", _dali),
        ("the loop, CPU", lambda: _loop("cpu")),
        ("kernels", _kernels),
    ]
    if gpus:
        checks.append(("the loop, GPU", lambda: _loop("gpu")))
    return [_tried(name, check) for name, check in checks]


def _tried(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:  # a failed check must not hide the later ones
        first = (str(error).strip() or "no message").splitlines()[0]
        return Finding(name, "broken", f"{type(error).__name__}: {first}")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed as a package"


def _imported(module: str, name: str, advice: str, needed: bool) -> Any:
    """The module, or a Finding if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == module.split(".")[0]
        text = "not installed" if absent else f"cannot be imported: {str(error).splitlines()[0]}"
        return Finding(name, "broken" if needed or not absent else "missing", text, advice)


def _gpu_count() -> int:
    try:
        torch = import_module("torch")
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    except ImportError:
        return 0


def _torch() -> Finding:
    torch = import_module("torch")
    if float((torch.ones(3) * 2).sum()) != 6.0:
        return Finding(
            "torch", "broken", f"{torch.__version__} computes wrongly", "pip install --force-reinstall torch"
        )
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    if not torch.cuda.is_available():
        return Finding("torch", "ok", f"{torch.__version__}, {built}, sees no GPU")
    names = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    gpus = ", ".join(f"{p.name} ({p.total_memory >> 30} GiB, sm_{p.major}{p.minor})" for p in names)
    return Finding("torch", "ok", f"{torch.__version__}, {built}, sees {gpus}")


def _numba() -> Finding:
    numba = _imported("numba", "numba", 'pip install "numba>=0.61"', needed=True)
    if isinstance(numba, Finding):
        return numba
    doubled = numba.njit(lambda x: x * 2)(21)
    if doubled != 42:
        return Finding(
            "numba", "broken", f"{numba.__version__} compiles wrongly", 'pip install --force-reinstall "numba>=0.61"'
        )
    return Finding("numba", "ok", f"{numba.__version__}, compiled a function")


def _opencv() -> Finding:
    advice = 'pip uninstall -y opencv-python opencv-contrib-python; pip install --force-reinstall "opencv-python-headless>=5"'
    cv2 = _imported("cv2", "OpenCV", advice, needed=True)
    if isinstance(cv2, Finding):
        return cv2
    if int(cv2.__version__.split(".")[0]) < 5:
        return Finding("OpenCV", "broken", f"{cv2.__version__} is too old: its warps round differently", advice)
    shape = cv2.imread(str(_PHOTO)).shape
    return Finding("OpenCV", "ok", f"{cv2.__version__}, decoded a JPEG of {shape[1]} x {shape[0]}")


def _pillow() -> Finding:
    pil = _imported("PIL.Image", "Pillow", "pip install pillow", needed=True)
    if isinstance(pil, Finding):
        return pil
    with pil.open(_PHOTO) as image:
        size = image.convert("RGB").size
    return Finding("Pillow", "ok", f"{_version('pillow')}, decoded a JPEG of {size[0]} x {size[1]}")


def _simplejpeg() -> Finding:
    simplejpeg = _imported("simplejpeg", "simplejpeg", "", needed=False)
    if isinstance(simplejpeg, Finding):
        return simplejpeg
    shape = simplejpeg.decode_jpeg(_PHOTO.read_bytes()).shape
    return Finding("simplejpeg", "ok", f"{_version('simplejpeg')}, decoded a JPEG of {shape[1]} x {shape[0]}")


def _libdeflate() -> Finding:
    deflate = _imported("deflate", "libdeflate", "", needed=False)
    if isinstance(deflate, Finding):
        return deflate
    if not import_module("ndd.decoders.png.libdeflate").available():
        return Finding("libdeflate", "missing", "the wheel `deflate` does not show its functions; libpng reads PNGs")
    return Finding("libdeflate", "ok", f"{_version('deflate')}, reads PNGs twice as fast as libpng")


def _nvimgcodec_extra() -> str:
    version = _driver_version()
    return installation.install_command("cuda12" if 0 < version < 13000 else "cuda13")


def _nvimgcodec() -> Finding:
    if platform.system() == "Darwin":
        return Finding("nvImageCodec", "missing", "not made for macOS; OpenCV and simplejpeg decode")
    advice = f"{installation.install_command('cpu')}  # faster decoding of more formats"
    # This module silences the library's first import, which otherwise writes to stderr.
    ours = import_module("ndd.decoders.nvimgcodec.python_api").library()
    codec = _imported("nvidia.nvimgcodec", "nvImageCodec", advice, needed=False)
    if isinstance(codec, Finding):
        return codec
    if ours is None:
        text = f"{codec.__version__} is too old: other libraries decode on the CPU"
        return Finding("nvImageCodec", "broken", text, f"{installation.install_command('cpu')}  # brings 0.9 or newer")
    # Without a driver only this pair of settings works; see the decoders.
    only = codec.Backend(codec.BackendKind.CPU_ONLY)
    decoder = codec.Decoder(device_id=codec.NVIMGCODEC_DEVICE_CPU_ONLY, backends=[only])
    image = decoder.decode(_PHOTO.read_bytes())
    if image is None:
        again = f"{installation.install_command('cpu')} --force-reinstall"
        return Finding("nvImageCodec", "broken", f"{codec.__version__} decodes nothing on the CPU", again)
    return Finding(
        "nvImageCodec", "ok", f"{codec.__version__}, CPU back end decoded a JPEG of {image.width} x {image.height}"
    )


def _nvimgcodec_gpu(gpus: int) -> Finding:
    name = "nvImageCodec GPU"
    if not gpus:
        return Finding(name, "missing", "not tried: no GPU")
    codec = _imported("nvidia.nvimgcodec", name, _nvimgcodec_extra(), needed=True)
    if isinstance(codec, Finding):
        return codec
    data, working, failed = _PHOTO.read_bytes(), [], []
    for kind in ("HW_GPU_ONLY", "GPU_ONLY", "HYBRID_CPU_GPU"):
        try:
            decoder = codec.Decoder(device_id=0, backends=[codec.Backend(getattr(codec.BackendKind, kind))])
            decoded = decoder.decode(data) is not None
        except RuntimeError:
            decoded = False
        (working if decoded else failed).append(kind)
    text = f"{', '.join(working) or 'no back end'} decoded a JPEG" + (f"; not {', '.join(failed)}" if failed else "")
    return Finding(
        name, "ok" if working else "broken", text, "" if working else f"{_nvimgcodec_extra()}  # nvJPEG is missing"
    )


def _driver_version() -> int:
    """The CUDA version that the driver supports as 1000 * major + 10 * minor, 0 without a driver."""
    library = {"win32": "nvcuda.dll"}.get(sys.platform, "libcuda.so.1")
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return 0
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    return version.value


def _driver(gpus: int) -> Finding:
    version = _driver_version()
    if not version:
        return Finding("driver", "missing", "no NVIDIA driver: the CPU does all the work")
    text = f"supports CUDA {version // 1000}.{version % 1000 // 10}"
    if gpus:
        return Finding("driver", "ok", f"{text}, {gpus} GPU{'s' if gpus > 1 else ''}")
    torch = import_module("torch")
    if torch.version.cuda is None:
        index = " --index-url https://download.pytorch.org/whl/cu126" if version < 13000 else ""
        advice = f"pip install --force-reinstall torch{index}  # one that is built for CUDA, to use the GPU"
        return Finding("driver", "missing", f"{text}, but torch cannot use it", advice)
    advice = "unset CUDA_VISIBLE_DEVICES  # it may hide the GPU; a container needs --gpus all"
    return Finding("driver", "missing", f"{text}, but no GPU is visible", advice)


def _cupy(gpus: int) -> Finding:
    cupy = _imported("cupy", "cupy", _nvimgcodec_extra() if gpus else "", needed=gpus > 0)
    if isinstance(cupy, Finding):
        return cupy
    if gpus:
        x = import_module("torch").ones(32, device="cuda")
        cupy.RawKernel(_KERNEL, "twice")((1,), (32,), (cupy.asarray(x),))
        cupy.cuda.runtime.deviceSynchronize()
        if float(x.sum()) != 64.0:
            return Finding("cupy", "broken", f"{cupy.__version__}: a kernel computes wrongly", _nvimgcodec_extra())
        return Finding("cupy", "ok", f"{cupy.__version__}, compiled and ran a kernel on torch's memory")
    try:
        nvrtc = import_module("cupy_backends.cuda.libs.nvrtc")
        nvrtc.compileProgram(nvrtc.createProgram(_KERNEL, "", (), ()), ["-arch=compute_80"])
    except Exception as error:
        return Finding(
            "cupy", "missing", f"{cupy.__version__}; no compiler ({type(error).__name__}), none needed without a GPU"
        )
    return Finding("cupy", "ok", f"{cupy.__version__}, compiled a kernel (nothing to run it on)")


def _dali() -> Finding:
    name = next((d for d in ("nvidia-dali-cuda130", "nvidia-dali-cuda120") if _installed(d)), None)
    if name is None:
        return Finding("DALI", "missing", "not installed; only `ndd bench` and the oracle tests use it")
    return Finding("DALI", "ok", f"{_version(name)}, for comparison")


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _loop(device: str) -> Finding:
    """The main job on one photograph: file, decode, resize, normalise, torch."""
    ndd = import_module("ndd")
    name = f"the loop, {device.upper()}"
    reader = ndd.readers.File(files=[str(_PHOTO)])
    jpegs, _ = next(iter(reader.next_epoch(batch_size=1)))
    images = ndd.resize(ndd.decoders.image(jpegs, device=device), size=[64, 64])
    pixels = ndd.crop_mirror_normalize(images, mean=[128.0], std=[64.0]).torch()
    if tuple(pixels.shape) != (1, 3, 64, 64) or not bool(pixels.isfinite().all()):
        return Finding(name, "broken", f"gave {tuple(pixels.shape)}")
    return Finding(name, "ok", f"file -> decode -> resize -> normalise -> torch on {pixels.device}")


def _kernels() -> Finding:
    """The compiled kernels that come with the package. The loop, tried before, has used some of those for this processor."""
    archives = import_module("ndd._execution.kernel_archives")
    at_first_use = "compiled at their first use, or ahead of time by `python -m ndd compile --all`"
    if archives.refused():
        return Finding("kernels", "missing", f"{archives.refused()}; they are {at_first_use}")
    if archives.targets():
        return Finding("kernels", "ok", f"the package brings those for {', '.join(archives.targets())}")
    why = archives.why_none()
    return Finding(
        "kernels", "missing", f"the package brings none; they are {at_first_use}{why and f'. The reason: {why}'}"
    )
