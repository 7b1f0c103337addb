"""A server on the loopback that answers as the stores of Amazon, Google and Azure do, as far as readers ask: listing, whole
objects, ranges. It checks no signatures and notes what it was asked for."""

from __future__ import annotations

import contextlib
import http.server
import threading
from email.utils import formatdate
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Answers(http.server.BaseHTTPRequestHandler):
    """`GET /bucket/key` and `GET /bucket?...prefix=` of all three, Azure's told apart by the account at the beginning. There is
    one bucket, "pets"."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]
    seen: list[tuple[str, str]]
    requests: list[tuple[str, dict[str, str]]]
    """The path, and the headers by their names in lower case."""

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {
            "Content-Length": len(body),
            "Last-Modified": formatdate(0, usegmt=True),
            **headers,
        }.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = urlsplit(self.path)
        path, asked = unquote(parts.path).lstrip("/"), parse_qs(parts.query)
        azure = path.startswith("devstoreaccount1/")
        self.seen.append((self.command, "az" if azure else "gs"))
        self.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        bucket, _, key = path.removeprefix("devstoreaccount1/").partition("/")
        if "prefix" in asked or not key:
            return self.answer(200, self.listed(azure, asked.get("prefix", [""])[0]), Content_Type="application/xml")
        data = self.objects.get(key) if bucket == "pets" else None
        if data is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        kind = {"ETag": '"1"', "x_ms_blob_type": "BlockBlob", "x_ms_creation_time": formatdate(0, usegmt=True)}
        wanted = self.headers.get("Range") or self.headers.get("x-ms-range")
        if wanted is None:
            return self.answer(200, data, **kind)
        first, last = wanted.removeprefix("bytes=").split("-")
        end = min(int(last or len(data)) + 1, len(data))
        return self.answer(206, data[int(first) : end], Content_Range=f"bytes {first}-{end - 1}/{len(data)}", **kind)

    def listed(self, azure, prefix):
        keys = sorted(key for key in self.objects if key.startswith(prefix))
        folders = sorted({prefix + key[len(prefix) :].split("/")[0] + "/" for key in keys if "/" in key[len(prefix) :]})
        files = [key for key in keys if "/" not in key[len(prefix) :]]
        if azure:
            blobs = "".join(
                f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{formatdate(0, usegmt=True)}</Last-Modified>"
                f"<Content-Length>{len(self.objects[key])}</Content-Length><Content-Type>a/b</Content-Type><Etag>1</Etag>"
                "</Properties></Blob>"
                for key in files
            )
            blobs += "".join(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>" for name in folders)
            return f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>".encode()
        result = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"1"</ETag><Size>{len(self.objects[key])}</Size></Contents>'
            for key in files
        )
        result += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{result}</ListBucketResult>".encode()


@contextlib.contextmanager
def answering(objects):
    """The URL of a server that has these objects, and its `Answers`."""
    kind = type("_Answers", (Answers,), {"objects": objects, "seen": [], "requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kind
    finally:
        server.shutdown()
        server.server_close()
