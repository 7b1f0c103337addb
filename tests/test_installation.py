"""The version, the commands that install what is missing, and a wheel that can be installed without a compiler."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import warm_interpreter

import ndd
from ndd import _required_torch, doctor, installation
from ndd._execution import kernel_archives

ROOT = Path(__file__).parent.parent
PROJECT = (ROOT / "pyproject.toml").read_text()


def test_the_version_is_that_of_the_project():
    assert f'\nversion = "{ndd.__version__}"\n' in PROJECT


@pytest.mark.parametrize(
    ("torch", "sentence"),
    [
        ("sys.modules['torch'] = None", "ndd needs torch 2.9 or newer, which is not installed: pip install torch"),
        (
            "sys.modules['torch'] = type(sys)('torch'); sys.modules['torch'].__version__ = '2.8.1+cu126'",
            "ndd needs torch 2.9 or newer, and 2.8.1+cu126 is installed: pip install --upgrade torch",
        ),
    ],
)
@pytest.mark.drawn(1)
def test_torch_is_asked_for(torch, sentence):
    assert '"torch>={}.{}"'.format(*_required_torch.LEAST) in PROJECT
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {torch}; import ndd"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr.strip().splitlines()[-1].partition(": ")[2] == sentence


def test_only_one_place_says_how_to_install_an_extra():
    """The package index has another project of the name `ndd`, and none of ours."""
    for path in Path(ndd.__file__).parent.rglob("*.py"):
        assert 'pip install "ndd' not in path.read_text(encoding="utf-8"), path


def test_names_that_are_not_there_are_still_errors():
    with pytest.raises(AttributeError, match="module 'ndd' has no attribute 'resise'"):
        ndd.resise  # noqa: B018


def test_modules_of_ported_code_are_there_without_an_import_of_their_own():
    code = "import ndd; print(ndd.tensors.TensorCPU, ndd.backend.GetCUDADeviceCount(), ndd.data_node.DataNode, ndd.ops, ndd.fn)"
    done = warm_interpreter.run(code, has_ndd=True)
    assert "TensorCPU" in done.stdout, done.stderr


def test_commands_from_a_checkout():
    assert installation.install_command("cuda13") == f'pip install -e "{ROOT}[cuda13]"'


def test_commands_of_an_installed_wheel_name_the_libraries(monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "_CHECKOUT", tmp_path)
    required = ['simplejpeg>=1.8; extra == "cpu"', 'codec>=0.8; sys_platform != "darwin" and extra == "cpu"', "numpy"]
    asked = []
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asked.append(name) or required)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: asked.append(name) or "7.8")
    assert installation.install_command("cpu") == 'pip install "simplejpeg>=1.8" "codec>=0.8"'
    assert ndd.__version__ == "7.8"
    assert set(asked) == {installation.DISTRIBUTION}


def test_a_folder_alone_has_no_version(monkeypatch, tmp_path):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(importlib.metadata, "requires", absent)
    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert ndd.__version__ == "unknown"
    assert installation.install_command("cpu") == 'pip install ".[cpu]"  # in a checkout of ndd'


def test_no_text_installs_the_other_project_of_this_name():
    """`ndd` on the package index is not this library."""
    texts = [p for p in ROOT.rglob("*") if p.suffix in (".py", ".md", ".toml", ".ipynb", ".pyi")]
    tracked = [p for p in texts if not {".venv", "build", "dist"} & set(p.relative_to(ROOT).parts)]
    assert len(tracked) > 300
    wrong = re.compile(r"pip install (?:[^`\n&|;]*[ '\"])?ndd(?:[\[ '\"`=<>~]|$)", re.MULTILINE)
    named = [str(p.relative_to(ROOT)) for p in tracked if p.name != Path(__file__).name and wrong.search(p.read_text())]
    named = [p for p in named if p != "ndd/installation.py"]  # which says that it must not be
    assert not named


def copied_checkout(target):
    """The files of this checkout, without what git ignores."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).stdout.decode()
    if not listed:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((ROOT / name).read_bytes())
    return target


def built(checkout, calls, **environment):
    """The files that the back end of the project makes, by these of its functions, without the network."""
    pytest.importorskip("hatchling")
    code = f"import sys; sys.path.insert(0, '.ci'); import hatch_build as b; print(*[f for f in ({calls})], sep='\\n')"
    environment = {**os.environ, "NDD_WHEEL_KERNELS": "none", **environment}
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return [checkout / "dist" / name for name in done.stdout.split()]


def test_an_editable_install_is_a_plain_path(tmp_path):
    """Beside a clone that is called as the package, `import ndd` would else find the clone, as an empty namespace; and type
    checkers follow paths alone."""
    checkout = copied_checkout(tmp_path / "ndd")
    (wheel,) = built(checkout, "b.build_editable('dist'),")
    inside = zipfile.ZipFile(wheel)
    paths = [inside.read(name).decode() for name in inside.namelist() if name.endswith(".pth")]
    assert [path.strip() for path in paths] == [str(checkout)]
    assert not [name for name in inside.namelist() if name.endswith(".py")]
    assert wheel.name.endswith("-py3-none-any.whl")

    inside.extractall(tmp_path / "site")
    code = (
        "import os, site, sys\n"
        "sys.path = [p for p in sys.path if not os.path.exists(os.path.join(p, 'pyproject.toml'))]  # of an install like it\n"
        f"site.addsitedir({str(tmp_path / 'site')!r})\n"
        "import importlib.util; print(importlib.util.find_spec('ndd').origin)"
    )
    used = subprocess.run(
        [sys.executable, "-c", code],  # with the folder where it runs first on its path
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert used.stdout.split() == [str(checkout / "ndd" / "__init__.py")], used.stderr[-2000:]


@pytest.mark.skipif(sys.platform != "linux", reason="kernels in wheels are for Linux")
def test_a_wheel_with_kernels_is_for_its_platform_and_python(tmp_path):
    checkout, kernels = copied_checkout(tmp_path / "checkout"), tmp_path / "kernels"
    kernels.mkdir()
    for name in ("x86-64-v3.zip", "sm_90.zip"):
        (kernels / name).write_bytes(name.encode())
    (kernels / "notes.txt").write_text("not an archive")
    (wheel,) = built(checkout, "b.build_wheel('dist'),", NDD_WHEEL_KERNELS=str(kernels))
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert wheel.name.split("-")[2:] == [python, python + sys.abiflags, f"manylinux_2_28_{platform.machine()}.whl"]
    inside = zipfile.ZipFile(wheel)
    kept = [name for name in inside.namelist() if name.startswith("ndd/_kernels/")]
    assert sorted(kept) == ["ndd/_kernels/sm_90.zip", "ndd/_kernels/x86-64-v3.zip"]
    assert inside.read("ndd/_kernels/sm_90.zip") == b"sm_90.zip"
    assert "Root-Is-Purelib: false" in inside.read(f"ndd_dataloading-{ndd.__version__}.dist-info/WHEEL").decode()


@pytest.mark.parametrize(
    ("machine", "missing", "reason"),
    [
        (
            "x86_64",
            "ImportError: libnvrtc.so.13: no such file",
            "(ImportError: libnvrtc.so.13: no such file); NDD_WHEEL_KERNELS=compile",
        ),
        ("riscv64", "", "Linux on x86-64 and arm64"),
    ],
)
def test_a_wheel_without_kernels_says_why(tmp_path, monkeypatch, capsys, machine, missing, reason):
    """The line on stderr, which pip shows with -v, and what `doctor` says of the installed wheel."""
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    backend = importlib.import_module("hatch_build")
    monkeypatch.delenv("NDD_WHEEL_KERNELS", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(backend, "_missing", lambda: missing)
    hook = backend.KernelsInside(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    data = {"force_include": {}}
    hook.initialize("standard", data)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ndd: this wheel has no compiled kernels: ")
    assert reason in line
    ((file, inside),) = data["force_include"].items()
    assert inside.startswith("ndd/_kernels/")
    monkeypatch.setattr(kernel_archives, "folder", Path(file).parent)
    kernel_archives.targets.cache_clear()
    finding = doctor._kernels()
    kernel_archives.targets.cache_clear()
    assert finding.state == "missing"
    assert reason in finding.text


def test_what_a_build_needs(monkeypatch):
    pytest.importorskip("hatchling")
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    backend = importlib.import_module("hatch_build")
    monkeypatch.setenv("NDD_WHEEL_KERNELS", "none")
    assert not [name for name in backend.get_requires_for_build_wheel() if name.startswith(("torch", "numba"))]
    assert not [name for name in backend.get_requires_for_build_editable() if name.startswith(("torch", "numba"))]
    monkeypatch.delenv("NDD_WHEEL_KERNELS")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(backend, "_missing", lambda: "")
    assert backend._chosen() == "compile"
    assert "torch" not in " ".join(backend.get_requires_for_build_wheel())  # it is there already
    monkeypatch.setattr(backend, "_missing", lambda: "ModuleNotFoundError: No module named 'cupy_backends'")
    assert backend._chosen() == "none"  # `pip install .` in a new environment downloads nothing for kernels
    assert "torch" not in " ".join(backend.get_requires_for_build_wheel())
    monkeypatch.setenv("NDD_WHEEL_KERNELS", "compile")
    needed = " ".join(backend.get_requires_for_build_wheel())  # kernels are compiled by running ndd
    for name in ("torch", "numba", "opencv", "simplejpeg", "nvidia-cuda-nvrtc", "cupy"):
        assert name in needed
    monkeypatch.delenv("NDD_WHEEL_KERNELS")
    monkeypatch.setattr(backend, "_missing", lambda: "")
    monkeypatch.setattr(sys, "platform", "win32")
    assert backend._chosen() == "none"


@pytest.mark.slow
def test_wheel_and_sdist_hold_what_the_library_reads(tmp_path):
    """Built from a copy of the files; the wheel is then used on its own."""
    checkout = copied_checkout(tmp_path / "checkout")
    sdist, wheel = built(checkout, "b.build_sdist('dist'), b.build_wheel('dist')")
    assert wheel.name == f"ndd_dataloading-{ndd.__version__}-py3-none-any.whl"  # no compiler, any platform
    assert sdist.name == f"ndd_dataloading-{ndd.__version__}.tar.gz"

    house = ROOT / "ndd"
    needed = {str(p.relative_to(ROOT)) for p in house.rglob("*") if p.suffix in (".py", ".pyi", ".cu", ".cuh")}
    needed |= {str(p.relative_to(ROOT)) for p in (house / "demo" / "photos").rglob("*") if p.is_file()}
    needed |= {"ndd/py.typed", "ndd/coverage/dali_names.txt"}
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert not needed - inside
    assert not [name for name in inside if name.startswith(("tests", "notebooks")) or "__pycache__" in name]

    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    smoke = (
        "import ndd; jpegs, labels = ndd.readers.File(file_root=ndd.demo.photos()).fetch([0, 1]);"
        "images = ndd.decoders.image(jpegs); print(ndd.__version__, ndd.__file__, images.batch_size);"
        "from ndd.installation import install_command; print(install_command('cuda12'))"
    )
    used = subprocess.run(
        [sys.executable, "-c", smoke],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert used.returncode == 0, used.stderr[-2000:]
    first, second = used.stdout.splitlines()
    assert first == f"{ndd.__version__} {tmp_path / 'site' / 'ndd' / '__init__.py'} 2"
    assert second == 'pip install "cupy-cuda12x[ctk]>=14" "deflate>=0.8" "nvidia-nvimgcodec-cu12[all]>=0.9"'
