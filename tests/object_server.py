"""A real S3 server process on the loopback (moto's), and a proxy before it that answers badly on request."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter, deque

SETTINGS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


class Proxy:
    """Hands each request on; `faults` holds what is done to the coming GETs of objects instead: "500", "403", "cut" (half of
    the body, then the end of the connection), "slow" (half a second later) or "hang".

    Attributes:
        broken: what is done to every GET of an object, by its path, such as "pets/a.jpg". Late requests of an earlier test, of
            which a busy machine has a dozen, take what is in `faults`, but not this.
        seen: how often each request line arrived.
    """

    def __init__(self, port):
        self.target = port
        self.faults = deque()
        self.broken = {}
        self.seen = Counter()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError):
            while self._one(client):
                pass

    def _one(self, client):
        head = _until_blank(client)
        if not head:
            return False
        line = head.split(b"\r\n", 1)[0].decode()
        self.seen[line] += 1
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = _exactly(client, int(length[1])) if length else b""
        fault = ""
        if asked := re.match(r"GET /(\w+/[^?]+) ", line):
            fault = self.broken.get(asked[1]) or (self.faults.popleft() if self.faults else "")
        if fault == "hang":
            time.sleep(8)
            return False
        if fault == "slow":
            time.sleep(0.5)
        if fault in ("500", "403"):
            client.sendall(f"HTTP/1.1 {fault} No\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        with socket.create_connection(("127.0.0.1", self.target)) as server:
            head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
            server.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body)
            answer = b"".join(iter(lambda: server.recv(1 << 16), b""))
        if fault == "cut":
            start = answer.index(b"\r\n\r\n") + 4
            client.sendall(answer[: start + (len(answer) - start) // 2])
            return False
        client.sendall(re.sub(rb"(?i)\r\nconnection: close", b"", answer))
        return True

    def close(self):
        self.listener.close()


def _until_blank(client):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = client.recv(1)
        if not more:
            return b""
        data += more
    return data


def _exactly(client, size):
    data = b""
    while len(data) < size:
        data += client.recv(size - len(data))
    return data


@contextlib.contextmanager
def s3_server():
    """The port of a moto server in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(2000):  # a busy machine has taken half a minute
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def put(url, data=b""):
    """Makes a bucket (no data) or an object; moto asks for no signature here."""
    request = urllib.request.Request(url, data=data, method="PUT")
    request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request")
    request.add_header("Content-Type", "application/octet-stream")  # else it is taken for a form
    urllib.request.urlopen(request).close()
