"""A slow S3 bucket on the loopback: `slow_store(folder, seconds)`, without signatures.

It has a thread for each connection, and files are sent by the system (`sendfile`), so that the server uses little of the
measured CPU time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote, urlsplit

_END = b"\r\n\r\n"


@contextlib.contextmanager
def slow_store(folder: Path, seconds: float = 0.05) -> Iterator[str]:
    """The URL of a store in its own process, which serves the folders in a folder as buckets."""
    process = subprocess.Popen([sys.executable, __file__, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True)
    if process.stdout is None:
        raise RuntimeError("the store has no output to say its port by")
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _serve(folder: Path, seconds: float) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=_answers, args=(server.accept()[0], folder, seconds), daemon=True).start()


def _answers(connection: socket.socket, folder: Path, seconds: float) -> None:
    """Answers the requests of one connection, each after this number of seconds."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    received = b""
    with connection, contextlib.suppress(OSError):
        while True:
            while _END not in received:
                data = connection.recv(1 << 16)
                if not data:
                    return
                received += data
            head, _, received = received.partition(_END)
            time.sleep(seconds)
            _answer(connection, folder, head.decode())


def _answer(connection: socket.socket, folder: Path, head: str) -> None:
    method, target, _ = head.split("\r\n", 1)[0].split(" ")
    path = folder / unquote(urlsplit(target).path).strip("/")
    if not path.is_file():
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return
    with open(path, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        wanted = re.search(r"(?i)\r\nrange: *bytes=(\d+)-(\d*)", head)
        start, end, status = 0, total, "200 OK"
        if wanted:
            start, end = int(wanted[1]), min(int(wanted[2] or total - 1) + 1, total)
            status = f"206 Partial Content\r\nContent-Range: bytes {start}-{end - 1}/{total}"
        tag = hashlib.md5(str(path).encode()).hexdigest()
        lines = (
            f'HTTP/1.1 {status}\r\nContent-Length: {end - start}\r\nETag: "{tag}"\r\n'
            f"Last-Modified: {formatdate(0, usegmt=True)}\r\nAccept-Ranges: bytes\r\n"
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        connection.sendall(lines.encode())
        if method != "HEAD":
            connection.sendfile(file, start, end - start)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), float(sys.argv[2]))
