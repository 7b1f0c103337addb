"""The oldest and the newest numba that `pyproject.toml` allows: kernels compile, are kept, are loaded again and run on threads.

The package uses some of numba's private names (`ndd/_compiled/__init__.py` lists the files), so each version must be tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLDEST, ABOVE = re.search(r'"numba>=([\d.]+),<([\d.]+)"', (ROOT / "pyproject.toml").read_text()).groups()
TRIED = ("test_kernels.py", "test_kernel_files.py", "test_thread_team.py")


def test_this_numba_is_one_of_those():
    import numba

    version = [int(part) for part in numba.__version__.split(".")[:2]]
    oldest, above = ([int(part) for part in bound.split(".")] for bound in (OLDEST, ABOVE))
    assert oldest <= version < above


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("wanted", [f"numba=={OLDEST}.*", f"numba>={OLDEST},<{ABOVE}"])
def test_kernels_with_another_numba(tmp_path, wanted):
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", str(site)]
    installed = subprocess.run([*pip, "numpy>=2.1", wanted], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"{wanted} cannot be installed for this Python: {installed.stderr.strip().splitlines()[-1:]}")
    env = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    told = "import numba, numpy; print(numba.__version__, numba.__file__)"
    version = subprocess.run([sys.executable, "-c", told], env=env, capture_output=True, text=True, check=True).stdout
    assert str(site) in version
    tests = [str(Path(__file__).parent / name) for name in TRIED]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env=env, cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{version}\n{done.stdout[-6000:]}"
