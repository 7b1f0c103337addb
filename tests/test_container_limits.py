"""The limits of the container, as the files of control groups give them."""

from __future__ import annotations

import pytest

from ndd import _container_limits

pytestmark = pytest.mark.fast
NONE_OF_VERSION_1 = "9223372036854771712\n"


@pytest.fixture
def limit_of(tmp_path, monkeypatch):
    """Reads a limit where the system has these files."""

    def read(limit, files, own=""):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "own").write_text(own)
        monkeypatch.setattr(_container_limits, "_CGROUPS", tmp_path)
        monkeypatch.setattr(_container_limits, "_OWN", tmp_path / "own" if own else tmp_path / "none")
        return limit.__wrapped__()

    return read


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 2),  # `docker run --cpus 1.5`
        ({"cpu.max": "20000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "0 0\n"}, None),
        ({"cpu.max": "100000\n"}, None),
        ({"cpu.max": "what is this\n"}, None),
        ({}, None),
    ],
)
def test_the_cpus_of_a_container(limit_of, files, expected):
    assert limit_of(_container_limits.cpu_quota, files) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "max\n", "memory/memory.limit_in_bytes": NONE_OF_VERSION_1}, int(NONE_OF_VERSION_1)),
        ({"memory.max": "17179869184\n"}, 16 << 30),
        ({"memory/memory.limit_in_bytes": "1073741824\n"}, 1 << 30),
        ({"memory.max": "max\n"}, None),
        ({}, None),
    ],
)
def test_the_memory_of_a_container(limit_of, files, expected):
    assert limit_of(_container_limits.memory_limit, files) == expected


@pytest.mark.parametrize(
    ("own", "folder"),
    [
        ("0::/system.slice/slurmstepd.scope/job_7/step_0\n", "system.slice/slurmstepd.scope/job_7"),  # around ours
        ("0::/user.slice/run-1.scope\n", "user.slice/run-1.scope"),
        ("5:memory:/slurm/job_7\n4:cpu,cpuacct:/other\n0::/\n", "memory/slurm/job_7"),
    ],
)
def test_the_groups_around_a_process_count(limit_of, own, folder):
    """Slurm and systemd limit a group inside the machine's; the least limit applies."""
    name = "memory.limit_in_bytes" if folder.startswith("memory/") else "memory.max"
    files = {f"{folder}/{name}": "4096\n", "memory.max": "8192\n", "memory/memory.limit_in_bytes": NONE_OF_VERSION_1}
    assert limit_of(_container_limits.memory_limit, files, own) == 4096


@pytest.mark.parametrize("own", ["0::/../../elsewhere\n", "no colons\n", "0::/docker/not_mounted_here\n", "\n"])
def test_a_group_that_is_not_mounted_leaves_the_root(limit_of, own):
    assert limit_of(_container_limits.cpu_quota, {"cpu.max": "200000 100000\n"}, own) == 2
