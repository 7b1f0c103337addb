"""Google's and Azure's stores, as far as a server of their answers on the loopback goes: listing, whole objects, ranges."""

import http.server
import json
import threading
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from readers.datasets import recordio
from readers.epochs import labels_of

import ndd

pytest.importorskip("obstore")
NAMES = ["train/cat/1.jpg", "train/cat/2 é.jpg", "train/dog/1.jpg", "train/notes.txt"]


class Answers(http.server.BaseHTTPRequestHandler):
    """`GET /bucket/key` and `GET /bucket?...prefix=` of both, told apart by Azure's account at the beginning."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, bytes]
    seen: list[tuple[str, str]]

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
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"1"</ETag><Size>{len(self.objects[key])}</Size></Contents>'
            for key in files
        )
        found += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()


@pytest.fixture
def store(monkeypatch):
    kind = type("_Answers", (Answers,), {"objects": {name: name.encode() * 100 for name in NAMES}, "seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    account = json.dumps({"gcs_base_url": url, "disable_oauth": True, **empty})
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", account)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", url)
    with ndd.io.object_store(retries=0, timeout=10):
        yield kind
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_readers(store, tmp_path, scheme):
    reader = ndd.readers.File(file_root=f"{scheme}://pets/train")
    data, labels = next(reader.next_epoch(batch_size=3))
    assert [sample.numpy().tobytes() for sample in data.tensors] == [name.encode() * 100 for name in NAMES[:3]]
    assert labels.torch().flatten().tolist() == [0, 0, 1]
    assert data.source_info == [f"{scheme}://pets/{name}" for name in NAMES[:3]]
    assert {kind for _, kind in store.seen} == {scheme}
    with pytest.raises(RuntimeError, match=rf"\({scheme}://pets/none\): .*No such object: '{scheme}://pets/none'$"):
        ndd.readers.File(files=[f"{scheme}://pets/none"])[0]
    local = recordio(tmp_path, 20)
    for path in map(Path, local.values()):
        store.objects[f"records/{path.name}"] = path.read_bytes()
    remote = {name: f"{scheme}://pets/records/{Path(path).name}" for name, path in local.items()}
    expected, found = (
        [labels_of(batch) for batch in ndd.readers.MXNet(**arguments).next_epoch(5)] for arguments in (local, remote)
    )
    assert found == expected
    assert found[1] == [5, 6, 7, 8, 9]
