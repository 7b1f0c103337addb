"""The Dockerfile of the documentation, its steps run without Docker: the workflow `wheels` builds and runs it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import ndd

ROOT = Path(ndd.__file__).parent.parent
DOCKERFILE = ROOT / ".github" / "Dockerfile"


def instructions():
    """Pairs of the instruction and what it is given."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def given(name):
    (value,) = [value for instruction, value in instructions() if instruction == name]
    return value


def test_it_is_short_and_names_what_the_project_needs():
    assert len(DOCKERFILE.read_text().splitlines()) <= 10
    project = (ROOT / "pyproject.toml").read_text()
    installed = " ".join(value for instruction, value in instructions() if instruction == "RUN")
    for library in ("simplejpeg", "nvidia-nvimgcodec-cu13"):
        assert library in installed
        assert library in project.partition("\ncpu = [")[2].partition("]")[0]


def reachable(user):
    """The user, if this process may become it and Python can then be started; else None, which is the present one."""
    try:
        subprocess.run([sys.executable, "-c", "import numpy"], user=user, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return user


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="users and modes of files")
def test_its_command_runs_with_its_user_and_environment(tmp_path):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o055)  # pytest makes them for this user alone
    package = tmp_path / "site" / "ndd"
    shutil.copytree(
        ROOT / "ndd", package, ignore=shutil.ignore_patterns("*.zip")
    )  # with what Python has compiled: 4 s less
    for path in [package, *package.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) | stat.S_IROTH | path.is_dir())
    before = {*package.rglob("*")}
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)

    set_here = dict(pair.partition("=")[::2] for pair in given("ENV").split())
    set_here["NDD_CACHE_DIR"] = set_here["NDD_CACHE_DIR"].replace("/tmp", str(tmp_path / "tmp"), 1)
    python, *arguments = json.loads(given("CMD"))
    assert python == "python"
    libraries = {sysconfig.get_path("purelib"), *[path for path in sys.path if path.endswith("site-packages")]}
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *libraries]),
            **set_here,
        },
        user=reachable(int(given("USER"))),
        cwd=given("WORKDIR"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert {*package.rglob("*")} == before or os.geteuid() == 0  # root writes where nobody may
