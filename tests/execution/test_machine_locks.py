"""One process of a machine at a time: locks that end with who holds them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ndd._execution import compile_notice, machine_locks
from ndd._execution.machine_locks import alone, try_lock, unlock

pytestmark = pytest.mark.skipif(machine_locks.fcntl is None, reason="files cannot be locked")
_HOLDER = """
import runpy, sys
from pathlib import Path
room = runpy.run_path(sys.argv[1])
print(room["try_lock"](Path(sys.argv[2]), sys.argv[3]), flush=True)
input()
room["unlock"](Path(sys.argv[2]), sys.argv[3])
print("given back", flush=True)
input()
"""


class Holder:
    """Another process that has taken a lock."""

    def __init__(self, folder, name):
        command = [sys.executable, "-S", "-c", _HOLDER, machine_locks.__file__, str(folder), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.has_it = self.process.stdout.readline().strip() == "True"

    def give_back(self):
        print(file=self.process.stdin, flush=True)
        assert self.process.stdout.readline().strip() == "given back"

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def holder(tmp_path):
    result = Holder(tmp_path, "a kernel")
    yield result
    result.kill()


def test_another_process_has_a_lock_until_it_gives_it_back(holder, tmp_path):
    assert holder.has_it
    assert not try_lock(tmp_path, "a kernel")
    assert try_lock(tmp_path, "another kernel")
    holder.give_back()
    assert try_lock(tmp_path, "a kernel")
    second = Holder(tmp_path, "a kernel")
    assert not second.has_it
    second.kill()
    unlock(tmp_path, "a kernel")


def test_or_until_it_is_killed(holder, tmp_path):
    holder.kill()
    with alone(tmp_path, "a kernel") as waited:
        assert not waited


def test_who_waits_is_asked_and_told(holder, tmp_path):
    asked = []

    def meanwhile():
        asked.append(1)
        if len(asked) == 3:
            holder.give_back()

    with alone(tmp_path, "a kernel", meanwhile) as waited:
        assert waited
        second = Holder(tmp_path, "a kernel")
        assert not second.has_it
        second.kill()
    assert len(asked) == 3
    third = Holder(tmp_path, "a kernel")
    assert third.has_it
    third.kill()


def test_waiting_ends_with_an_error_or_with_patience(holder, tmp_path, monkeypatch):
    def breaks_off():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), alone(tmp_path, "a kernel", breaks_off):
        pass
    monkeypatch.setattr(machine_locks, "_PATIENCE", 0.1)
    with alone(tmp_path, "a kernel") as waited:  # the other one hangs
        assert waited


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_no_lock_of_its_parent(tmp_path):
    assert try_lock(tmp_path, "a kernel")
    child = os.fork()
    if not child:
        os._exit(int(try_lock(tmp_path, "a kernel")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    unlock(tmp_path, "a kernel")


def test_without_a_folder_that_can_be_written_everybody_has_it(tmp_path):
    for folder in (None, tmp_path / "absent"):
        assert try_lock(folder, "a kernel")
        unlock(folder, "a kernel")


def said(folder, logged, monkeypatch, count=1):
    monkeypatch.setattr(compile_notice, "_said", False)
    monkeypatch.setattr(compile_notice, "_PATIENCE", 0.0)
    logged.clear()
    with compile_notice.compiling(folder, lambda: count):
        pass
    return [text for _, text in logged]


def test_a_notice_is_said_once_a_machine(tmp_path, logged, monkeypatch):
    holder = Holder(tmp_path, "notice")
    assert not said(tmp_path, logged, monkeypatch)
    holder.kill()
    (text,) = said(tmp_path, logged, monkeypatch, 14)
    assert text.startswith("ndd is compiling 14 kernels for this machine, about 21 s, kept in ")
    assert str(tmp_path) in text
    unlock(tmp_path, "notice")
