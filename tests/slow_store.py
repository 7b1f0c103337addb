"""A store that answers late: `slow_store.py FOLDER SECONDS` serves a folder as a bucket of S3 does, without signatures, and prints
its port. Each answer comes after SECONDS; connections are kept, and any number of requests wait at once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import subprocess
import sys
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote, urlsplit

_CONTENT: dict[str, bytes] = {}


def _read(path: Path) -> bytes:
    if str(path) not in _CONTENT:
        _CONTENT[str(path)] = path.read_bytes()
    return _CONTENT[str(path)]


def _answer(folder: Path, head: str) -> tuple[bytes, bytes | memoryview]:
    """The header and the body."""
    method, target, _ = head.split("\r\n", 1)[0].split(" ")
    path = folder / unquote(urlsplit(target).path).strip("/")
    if not path.is_file():
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b""
    content = _read(path)
    wanted = re.search(r"(?i)\r\nrange: *bytes=(\d+)-(\d*)", head)
    start, end, status = 0, len(content), "200 OK"
    if wanted:
        start, end = int(wanted[1]), min(int(wanted[2] or len(content) - 1) + 1, len(content))
        status = f"206 Partial Content\r\nContent-Range: bytes {start}-{end - 1}/{len(content)}"
    tag = hashlib.md5(str(path).encode()).hexdigest()
    lines = (
        f'HTTP/1.1 {status}\r\nContent-Length: {end - start}\r\nETag: "{tag}"\r\nLast-Modified: {formatdate(0, usegmt=True)}\r\n'
        "Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\n\r\n"
    )
    return lines.encode(), b"" if method == "HEAD" else memoryview(content)[start:end]


async def _serve(folder: Path, seconds: float) -> None:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await asyncio.sleep(seconds)
                lines, body = _answer(folder, head)
                writer.write(lines)
                writer.write(body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def slow_store(folder: Path, seconds: float = 0.05):
    """The URL of a store in a process of its own."""
    process = subprocess.Popen([sys.executable, __file__, str(folder), str(seconds)], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), float(sys.argv[2])))
