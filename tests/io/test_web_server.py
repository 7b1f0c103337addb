"""Files of web servers: presigned URLs, redirects and who may follow them, ranges, retries; no secrets in what is shown."""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import importlib
import socket
import threading
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from readers.datasets import recordio

import ndd
from ndd.io import web_server
from ndd.io.object_store import object_statuses, read_object_ranges, read_objects
from ndd.io.web_server import Zone, zone_of

SECRETS = ("PASSWORD", "SIGNATURE", "TOKEN")
QUERY = "X-Amz-Date=20260101&X-Amz-Signature=SIGNATURE%2F%2B&x-id=a b"


class Server(http.server.BaseHTTPRequestHandler):
    """GET of `files` by their path and query; `redirects` and `faults` of a path come first. HEAD is refused, as a presigned
    URL refuses it."""

    protocol_version = "HTTP/1.1"
    files: dict
    redirects: dict
    faults: list
    seen: list
    ranges = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(403, b"")

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.path = self.raw_requestline.decode().split(" ")[1]  # `self.path` has no two slashes at its beginning
        self.seen.append((self.path, self.headers.get("Authorization")))
        if self.faults:
            fault = self.faults.pop(0)
            if fault == "cut":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.wfile.write(b"12345")
                self.close_connection = True
                return None
            return self.answer(fault, b"")
        if self.path in self.redirects:
            code, place = self.redirects[self.path]
            return self.answer(code, b"moved", Location=place)
        data = self.files.get(self.path)
        if data is None:
            return self.answer(
                403 if "?" in self.path else 404, b"<Error><Message>Request has expired</Message></Error>"
            )
        wanted = self.headers.get("Range")
        if wanted is None or not self.ranges:
            return self.answer(200, data, ETag='"1"')
        first, last = wanted.removeprefix("bytes=").split("-")
        if int(first) >= len(data):
            return self.answer(416, b"", Content_Range=f"bytes */{len(data)}")
        end = min(int(last or len(data)) + 1, len(data))
        return self.answer(
            206, data[int(first) : end], Content_Range=f"bytes {first}-{end - 1}/{len(data)}", ETag='"1"'
        )


@contextlib.contextmanager
def serving(family=socket.AF_INET, **files):
    result = {"files": {f"/{name}": data for name, data in files.items()}, "redirects": {}, "faults": [], "seen": []}
    kind = type("Answers", (Server,), result)
    address = "127.0.0.1" if family == socket.AF_INET else "::1"
    server = type("_Server", (http.server.ThreadingHTTPServer,), {"address_family": family})((address, 0), kind)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    kind.host = f"{address if family == socket.AF_INET else f'[{address}]'}:{server.server_port}"
    kind.url = f"http://{kind.host}"
    try:
        yield kind
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def quick():
    web_server._warned.clear()
    with ndd.io.object_store(retries=2, timeout=10):
        yield


def data_of(url):
    (result,) = read_objects([url])
    if isinstance(result, BaseException):
        raise result
    return result.tobytes()


@pytest.mark.long
def test_a_presigned_url():
    """Whole, in ranges, and how large it is: the query is sent as it stands, in GETs only."""
    sent = "/a%20b%2Fc+d.jpg?X-Amz-Date=20260101&X-Amz-Signature=SIGNATURE%2F%2B&x-id=a%20b"
    with serving() as server:
        server.files[sent] = bytes(range(100))
        url = f"{server.url}/a b%2Fc+d.jpg?{QUERY}#part"
        assert data_of(url) == bytes(range(100))
        pieces = read_object_ranges([url] * 3, [0, 10, 98], [5, -1, 2])
        assert [p.tobytes() for p in pieces] == [bytes(range(5)), bytes(range(10, 100)), bytes([98, 99])]
        (status,) = object_statuses([url])
        assert (status.size, status.version) == (100, '"1"')
        reader = ndd.readers.File(files=[url])
        data, _ = reader[0]
        assert data.numpy().tolist() == list(range(100))
        assert data.source_info == url
        assert {path for path, _ in server.seen} == {sent}


def test_names_are_sent_as_they_stand():
    names = {
        "a//b.jpg": "/a//b.jpg", "/a.jpg": "//a.jpg", "./a/../b.jpg": "/./a/../b.jpg", "50%.jpg": "/50%25.jpg",
        "%23%3F.jpg": "/%23%3F.jpg", "a+b.jpg": "/a+b.jpg", "é.jpg": "/%C3%A9.jpg", "a;b=c,d.jpg": "/a;b=c,d.jpg",
        "?only=query": "/?only=query", "": "/",
    }  # fmt: skip
    with serving() as server:
        for name, sent in names.items():
            server.files = {sent: b"12345"}
            assert data_of(f"{server.url}/{name}") == b"12345", name


def test_a_user_and_a_password():
    with serving(**{"a.jpg": b"12345"}) as server:
        assert data_of(f"http://me%40home:PASS%2FWORD@{server.host}/a.jpg") == b"12345"
        said = base64.b64decode(server.seen[0][1].removeprefix("Basic ")).decode()
        assert said == "me@home:PASS/WORD"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.drawn(2)
def test_redirects_keep_credentials_to_themselves(code):
    with serving() as first, serving(**{"b.jpg?t=1": b"12345"}) as second:
        first.redirects = {"/a.jpg": (code, "/c.jpg"), "/c.jpg": (code, f"http://x:y@{second.host}/b.jpg?t=1")}
        assert data_of(f"http://me:PASSWORD@{first.host}/a.jpg") == b"12345"
        assert [user is not None for _, user in first.seen] == [True, True]
        assert second.seen == [("/b.jpg?t=1", None)]


def test_another_host_is_told_once():
    with serving() as first, serving(**{"b.jpg": b"12345"}) as second:
        first.redirects["/a.jpg"] = (302, f"http://localhost:{second.host.split(':')[1]}/b.jpg?sig=SIGNATURE")
        second.files["/b.jpg?sig=SIGNATURE"] = b"12345"
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert [data_of(f"{first.url}/a.jpg") for _ in range(2)] == [b"12345"] * 2
        texts = [str(w.message) for w in told]
        assert texts == ["127.0.0.1 hands requests on to localhost, and files are read from there"]


@pytest.mark.parametrize(
    "place",
    ["http://169.254.169.254/latest/meta-data", "http://[fe80::1]/a", "http://[::ffff:169.254.169.254]/a",
     "http://2852039166/a", "file:///etc/passwd", "ftp://host/a", "//169.254.169.254/a", ""],
)  # fmt: skip
@pytest.mark.drawn(2)
def test_redirects_that_are_not_followed(place):
    with serving() as server:
        server.redirects["/a.jpg"] = (302, place)
        with pytest.raises(OSError, match="hands the request on") as raised:
            data_of(f"{server.url}/a.jpg")
        assert len(server.seen) == 1, "refused at once, not tried again"
        assert server.host in str(raised.value)


def test_nobody_from_outside_leads_inside(monkeypatch):
    """As if the first server stood somewhere else: a name is looked up in the moment of connecting."""
    with serving() as outside, serving(**{"b.jpg": b"12345"}) as inside:
        real = web_server.zone_of
        outside.redirects["/a.jpg"] = (302, f"{inside.url}/b.jpg")
        for zone, refused in {Zone.PUBLIC: True, Zone.PRIVATE: True, Zone.LOOPBACK: False}.items():
            seen = [zone]
            web_server._local.__dict__.clear()
            monkeypatch.setattr(web_server, "zone_of", lambda address, seen=seen: seen.pop() if seen else real(address))
            settings = web_server.Settings(0, 10)
            if refused:
                with pytest.raises(
                    PermissionError, match=r"hands the request on to 127.0.0.1, an address of this machine"
                ):
                    web_server.read(f"{outside.url}/a.jpg", 0, -1, "", settings)
                assert not inside.seen
            else:
                assert web_server.read(f"{outside.url}/a.jpg", 0, -1, "", settings) == b"12345"


def test_https_does_not_become_http():
    target = web_server._Target.of("https://host/a.jpg")
    with pytest.raises(OSError, match="from https to http"):
        web_server._followed(target, "http://host/a.jpg")
    assert web_server._followed(target, "/b.jpg?x=1").path == "/b.jpg?x=1"
    assert web_server._followed(target, "//other/b").server == ("https", "other", 443)


def test_a_circle():
    with serving() as server:
        server.redirects["/a.jpg"] = (302, "/a.jpg")
        with pytest.raises(OSError, match="more than 10 times"):
            data_of(f"{server.url}/a.jpg")


def test_zones():
    inside = ["127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
    assert {zone_of(a) for a in inside} == {Zone.LOOPBACK}
    assert {zone_of(a) for a in ["10.1.1.1", "172.16.0.1", "192.168.1.1", "fd00::1", "100.64.0.1"]} == {Zone.PRIVATE}
    assert {zone_of(a) for a in ["169.254.169.254", "fe80::1%eth0", "::ffff:169.254.1.1"]} == {Zone.LINK_LOCAL}
    assert {zone_of(a) for a in ["8.8.8.8", "2606:4700::1111"]} == {Zone.PUBLIC}


@pytest.mark.parametrize("fault", [500, 503, 429, "cut"])
def test_tried_again(fault):
    with serving(**{"a.jpg": b"12345"}) as server:
        server.faults[:] = [fault, fault]
        assert data_of(f"{server.url}/a.jpg") == b"12345"
        server.faults[:] = [fault] * 3
        with pytest.raises(ConnectionError, match="could not be read"):
            data_of(f"{server.url}/a.jpg")


def test_a_server_without_ranges():
    with serving(**{"a.jpg": bytes(range(100))}) as server:
        server.ranges = False
        assert data_of(f"{server.url}/a.jpg") == bytes(range(100))
        assert object_statuses([f"{server.url}/a.jpg"])[0].size == 100
        assert read_object_ranges([f"{server.url}/a.jpg"], [0], [3])[0].tolist() == [0, 1, 2]
        (refused,) = read_object_ranges([f"{server.url}/a.jpg"], [5], [3])
        assert "whole files only" in str(refused)


def test_empty_and_too_short_files():
    with serving(**{"a.jpg": b"", "b.jpg": b"123"}) as server:
        assert data_of(f"{server.url}/a.jpg") == b""
        assert object_statuses([f"{server.url}/a.jpg"])[0].size == 0
        assert "ends too early" in str(read_object_ranges([f"{server.url}/b.jpg"], [2], [5])[0])


def test_replaced():
    with serving(**{"a.jpg": b"12345"}) as server:
        (result,) = read_object_ranges([f"{server.url}/a.jpg"], [0], [3], ['"2"'])
        assert "was replaced" in str(result)


def test_a_proxy(monkeypatch):
    with serving() as proxy:
        proxy.files["http://nowhere.invalid:80/a.jpg?q=1"] = b"12345"
        monkeypatch.setenv("http_proxy", f"http://me:PASSWORD@{proxy.host}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert data_of("http://nowhere.invalid/a.jpg?q=1") == b"12345"
        proxy.redirects["http://nowhere.invalid:80/b.jpg"] = (302, "http://localhost/x")
        with pytest.raises(PermissionError, match="address of this machine"):
            data_of("http://nowhere.invalid/b.jpg")


def test_the_cache_knows_queries_apart_and_keeps_no_names(tmp_path):
    with serving() as server, ndd.io.object_store(cache_dir=tmp_path):
        server.files |= {f"/a.jpg?part={i}&sig=SIGNATURE": bytes([i]) * 5 for i in range(3)}
        for _ in range(2):
            result = [data_of(f"{server.url}/a.jpg?part={i}&sig=SIGNATURE") for i in range(3)]
            assert result == [bytes([i]) * 5 for i in range(3)]
        assert len(server.seen) == 3
    kept = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(kept) == 3
    assert not any(secret in str(p) or secret.encode() in p.read_bytes() for p in kept for secret in SECRETS)


def test_a_state_outlives_its_signatures():
    with serving() as server:
        files = [f"/{i}.jpg?sig={sig}" for sig in "ab" for i in range(6)]
        server.files |= {name: name.encode() for name in files}
        first, second = (ndd.readers.File(files=[server.url + f for f in part]) for part in (files[:6], files[6:]))
        next(first.next_epoch(2))
        second.set_state(first.get_state())
        assert [label.tolist() for label in next(second.next_epoch(2))[1].torch()] == [[2], [3]]


def secret_urls(server):
    """Of files that are not there, which a server refuses or that no server has."""
    return [
        f"http://PASSWORD:PASSWORD@{server.host}/a.bin?X-Amz-Signature=SIGNATURE&x=SIGNATURE#t=TOKEN",
        f"http://u%73er:PASS%57ORDPASSWORD@{server.host}/a.bin?SIGNATURE",
        "http://user:PASSWORD@127.0.0.1:1/a.bin?sig=SIGNATURE",
        "http://user:PASSWORD/x@127.0.0.1:1/a.bin?sig=SIGNATURE",
        "http://user:PASSWORD@[zz/a.bin?sig=SIGNATURE",
        "ftp://user:PASSWORD@host/a.bin?sig=SIGNATURE",
        "s3://user:PASSWORD@bucket/a.bin?sig=SIGNATURE",
        "az://pets/a.bin?sig=SIGNATURE",
    ]


READERS = {
    "File": lambda url: [{"files": [url]}, {"file_list": url}, {"file_root": url}],
    "Numpy": lambda url: [{"files": [url]}, {"file_list": url}],
    "experimental.Fits": lambda url: [{"files": [url]}],
    "Webdataset": lambda url: [
        {"paths": [url], "ext": ["jpg"]},
        {"paths": [url], "ext": ["jpg"], "index_paths": [url]},
    ],
    "TFRecord": lambda url: [{"path": [url], "features": {}}, {"path": [url], "index_path": [url], "features": {}}],
    "MXNet": lambda url: [{"path": [url], "index_path": [url]}],
    "COCO": lambda url: [{"file_root": url, "annotations_file": url}],
    "Caffe": lambda url: [{"path": [url]}],
    "NemoAsr": lambda url: [{"manifest_filepaths": [url]}],
    "Video": lambda url: [{"filenames": [url], "sequence_length": 1}, {"file_list": url, "sequence_length": 1}],
}


@pytest.mark.filterwarnings("ignore")
def test_readers_show_no_secrets(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "k")
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:1")
    count = 0
    with serving() as server, ndd.io.object_store(retries=0, timeout=5):
        urls = secret_urls(server)
        for url in urls:
            for kind, result in READERS.items():
                for arguments in result(url):
                    for policy in ({}, {"on_error": "skip"})[: 1 + (url in urls[:1])]:
                        room = ndd.experimental.readers if kind.startswith("experimental") else ndd.readers
                        reader = functools.partial(getattr(room, kind.split(".")[-1]), **arguments, **policy)
                        count += shows_nothing(lambda reader=reader: list(reader()), url)
            for call in (
                lambda url: ndd.io.file.read([url]).evaluate(),
                lambda url: ndd.imread(url).evaluate(),
                lambda url: ndd.resize(ndd.decoders.image(ndd.io.file.read(url)), size=[2, 2]).evaluate(),
            ):
                count += shows_nothing(functools.partial(call, url), url)
    assert count > 110


def shows_nothing(call, url):
    try:
        call()
    except (AttributeError, NameError):  # a mistake of the test
        raise
    except Exception as error:
        told = "".join(traceback.format_exception(error)) + repr(error)
        lines = [line for line in told.splitlines() if "PASS%" not in line and "lambda" not in line]
        assert not [line for line in lines if any(secret in line for secret in SECRETS)], (url, told)
        return 1
    return 0


def test_bad_samples_show_no_secrets(recwarn):
    """Files that can be read and not decoded: errors, warnings, what was left out, displays. `source_info` stays whole."""
    with serving() as server:
        server.files[f"/a.jpg?{QUERY.replace(' ', '%20')}"] = b"no picture"
        server.files["/b.jpg?sig=SIGNATURE"] = b""
        urls = [
            f"http://me:PASSWORD@{server.host}/a.jpg?{QUERY}",
            f"http://me:PASSWORD@{server.host}/b.jpg?sig=SIGNATURE",
        ]
        reader = ndd.readers.File(files=urls)
        data, _ = reader.fetch([0, 1])
        assert data.source_info == urls
        left = ndd.decoders.image(data, on_error="skip")
        shown = [
            repr(data),
            repr(left),
            repr(left.dropped),
            str(left.dropped[0].source),
            data._repr_html_(),
            repr(reader),
        ]
        for call in (
            lambda: ndd.decoders.image(data).evaluate(),
            lambda: ndd.decoders.audio(data)[0].evaluate(),
            lambda: ndd.crop(data, crop=[50, 50]).evaluate(),
            lambda: ndd.imread(urls).evaluate(),
            lambda: ndd.imread(urls, on_error="skip").evaluate().batch_size,
        ):
            shows_nothing(call, urls[0])
        gone = ndd.readers.File(files=[urls[0], urls[0].replace("a.jpg", "none.jpg")], on_error="skip")
        list(gone.next_epoch(2))
        assert len(gone.skipped) == 1
        shown += [repr(gone.skipped), gone.skipped[0].source, gone.get_state(), *(str(w.message) for w in recwarn)]
        assert not [text for text in shown if any(secret in str(text) for secret in SECRETS)]
        assert all("127.0.0.1" in text for text in (repr(left.dropped), repr(gone.skipped)))


@pytest.mark.filterwarnings("ignore")
def test_indices_of_containers(tmp_path, monkeypatch):
    """They are read from presigned URLs, and what is kept of them on disk names no secrets."""
    monkeypatch.setattr(importlib.import_module("ndd.readers.mxnet"), "LEAST_TEXT", 0)
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "kept"))
    local = recordio(tmp_path, 20)
    with serving() as server:
        remote = {}
        for name, path in local.items():
            server.files[f"/{name}?sig=SIGNATURE"] = Path(path).read_bytes()
            remote[name] = f"http://me:PASSWORD@{server.host}/{name}?sig=SIGNATURE"
        for _ in range(2):
            data, _ = ndd.readers.MXNet(**remote)[3]
            assert data.numpy().tolist() == ndd.readers.MXNet(**local)[3][0].numpy().tolist()
    kept = list((tmp_path / "kept").rglob("*.npz"))
    assert kept
    for path in kept:
        with np.load(path) as arrays:
            assert b"SIGNATURE" not in bytes(arrays["_state"])
