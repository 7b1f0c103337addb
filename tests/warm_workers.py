"""The workers of `pytest -n`, which find imported what each of them would import for ten seconds.

xdist starts this file in place of Python. It gives what it was started with to the process of `warm_interpreter.share`, which
forks a worker that reads and writes in its place.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shlex
import socket
import sys
import types
from typing import Any, NoReturn

# What comes of itself in nearly every worker. Plugins of pytest are not here: it rewrites their asserts at the import.
IMPORTED = (
    "numba.core.registry",
    "numba.extending",
    "ndd",
    "nvidia.dali.experimental.dynamic",
    "ndd.targets.tv_tensors",
    "torch._dynamo",
)


def command(address: str) -> str:
    """What starts a worker, for execnet, which appends options of Python."""
    return shlex.join([sys.executable, "-I", "-S", __file__, address])


def _launch(address: str, *options: str) -> None:
    """Asks for a worker and waits for its end. Its pipes are not held open, so that their other end sees when it ends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        request = {"code": options[-1], "env": dict(os.environ), "cwd": os.getcwd()}
        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        for number in (0, 1):
            os.close(number)
        connection.recv(1)


def run_next(listener: socket.socket) -> NoReturn:
    """Forks the workers, until stdin ends, and each of them runs its code to the interpreter's end."""
    code = _in_worker(listener)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv[:] = ["-c"]
    sys.path[0] = ""  # it was the folder of this file
    exec(code, main.__dict__)
    sys.exit()


def _in_worker(listener: socket.socket) -> str:
    """Comes back in new children only, with the code that each is to run; the process itself ends here."""
    imported = False
    while 0 not in (ready := select.select([listener, 0], [], [], 1.0)[0]):
        while imported and _ended():
            pass
        if not ready:
            continue
        connection, _ = listener.accept()
        _, inherited, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile() as lines:
            request = json.loads(lines.readline())
        if not imported:
            imported = True
            _take_settings(request)
            _import_all()
        if os.fork() == 0:
            listener.close()
            connection.detach()  # it stays open as long as this process lives
            for number, descriptor in enumerate(inherited):
                os.dup2(descriptor, number)
                os.close(descriptor)
            _take_settings(request)
            return request["code"]
        connection.close()
        for descriptor in inherited:
            os.close(descriptor)
    while imported and _ended(wait=True):
        pass
    sys.exit()


def _take_settings(request: dict[str, Any]) -> None:
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])


def _import_all() -> None:
    for name in IMPORTED:
        with contextlib.suppress(Exception):  # an extra that is not there, or not for this Python: a test says so
            importlib.import_module(name)
    if tv_tensors := sys.modules.get("ndd.targets.tv_tensors"):
        with contextlib.suppress(Exception):
            tv_tensors.import_torchvision()
    gc.collect()
    gc.freeze()  # else each worker copies what it looks through for garbage


def _ended(wait: bool = False) -> bool:
    """Whether a child has ended, whose times count as this process's then."""
    try:
        return os.waitpid(-1, 0 if wait else os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


if __name__ == "__main__":
    _launch(*sys.argv[1:])
