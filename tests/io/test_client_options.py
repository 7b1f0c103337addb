"""Endpoints, signatures, request-payer and presigned URLs: what every reader asks a store for, by what it was told."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from loopback_store import answering
from readers.datasets import DATASETS

import ndd

pytest.importorskip("obstore")
LOCAL = ("Caffe", "Caffe2")  # LMDB maps files of this machine
NAMES = [name for name in DATASETS if name not in (*LOCAL, "Mix", "VideoResize", "experimental.Video")]
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "t"}
# What the environment says, and the arguments of `object_store`; {url} is the server.
WAYS = {
    "payer in arguments": (CREDENTIALS, {"endpoint": "{url}", "request_payer": True}),
    "payer in the environment": ({**CREDENTIALS, "AWS_ENDPOINT_URL": "{url}", "AWS_REQUEST_PAYER": "true"}, {}),
    "signed": ({**CREDENTIALS, "AWS_ENDPOINT_URL": "{url}"}, {}),
    "anonymous in arguments": (CREDENTIALS, {"endpoint": "{url}", "skip_signature": True}),
    "anonymous in the environment": ({"AWS_ENDPOINT_URL": "{url}", "AWS_SKIP_SIGNATURE": "true"}, {}),
}
# With one URL for each file; the others list a folder, which a web server does not.
BY_FILE = ("File", "HuggingFace", "MXNet", "NemoAsr", "Numpy", "Parquet", "TFRecord", "Table", "Webdataset", "Zip")


def moved(value, before, after):
    """Arguments of a reader with another root of their paths."""
    if isinstance(value, str | Path):
        return str(value).replace(str(before), after, 1)
    if isinstance(value, list | tuple):
        return type(value)(moved(item, before, after) for item in value)
    return {key: moved(item, before, after) for key, item in value.items()} if isinstance(value, dict) else value


def signed(value, query):
    """The same URLs with a query."""
    if isinstance(value, str):
        return value + query if value.startswith("http") else value
    if isinstance(value, list | tuple):
        return type(value)(signed(item, query) for item in value)
    return {key: signed(item, query) for key, item in value.items()} if isinstance(value, dict) else value


def samples(name, arguments):
    module = ndd.readers if hasattr(ndd.readers, name) else ndd.experimental.readers
    reader = getattr(module, name)(**arguments)
    listed = [list(s.values()) if isinstance(s, dict) else s for s in map(reader.__getitem__, range(3))]
    return [[np.asarray(v).tolist() if hasattr(v, "shape") else v for v in sample] for sample in listed]


@pytest.fixture
def stored(tmp_path, request):
    """A reader's arguments for files of three samples, and the same files as objects."""
    arguments = DATASETS[request.param].make(tmp_path, 3)
    for path in tmp_path.rglob("*"):  # lists of paths
        if path.suffix in (".json", ".txt") and str(tmp_path) in (text := path.read_text()):
            (tmp_path / f"{path.name}.moved").write_text(text.replace(str(tmp_path), "s3://pets"))
    objects = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for key in [key for key in objects if key.endswith(".moved")]:
        objects[key.removesuffix(".moved")] = objects.pop(key)
    return request.param, arguments, moved(arguments, tmp_path, "s3://pets"), objects


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", NAMES, indirect=True)
@pytest.mark.drawn(1)
def test_what_every_reader_asks_with(stored, way, monkeypatch):
    name, local, remote, objects = stored
    expected = samples(name, local)
    for variable in [variable for variable in os.environ if variable.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    environment, options = WAYS[way]
    with answering(objects) as (url, server):
        for variable, value in {"AWS_REGION": "us-east-1", **environment}.items():
            monkeypatch.setenv(variable, value.format(url=url))
        options = {option: value.format(url=url) if value == "{url}" else value for option, value in options.items()}
        with ndd.io.object_store(retries=0, timeout=60, **options):
            assert samples(name, remote) == expected
        assert server.requests
        for path, headers in server.requests:
            assert path.startswith("/pets")
            if way.startswith("anonymous"):
                assert "authorization" not in headers
            else:
                assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=mine/")
                assert headers["x-amz-security-token"] == "t"
            assert headers.get("x-amz-request-payer") == ("requester" if way.startswith("payer") else None)


@pytest.mark.parametrize("stored", BY_FILE, indirect=True)
@pytest.mark.drawn(2)
def test_presigned_urls(stored, monkeypatch):
    """Each file is asked for with the query of its URL, and nothing else says who asks."""
    name, local, remote, objects = stored
    expected = samples(name, local)
    for variable, value in CREDENTIALS.items():
        monkeypatch.setenv(variable, value)
    query = "X-Amz-Credential=k%2F20260101&X-Amz-Signature=5f"
    with answering(objects) as (url, server):
        for key, value in objects.items():
            objects[key] = value.replace(b"s3://pets", f"{url}/pets".encode())
        arguments = moved(remote, "s3://pets", f"{url}/pets")
        for key in [key for key, value in arguments.items() if value == f"{url}/pets"]:  # a folder: each of its files
            del arguments[key]
            arguments["files" if name == "Numpy" else key] = [f"{url}/pets/{key}" for key in sorted(objects)]
        assert samples(name, signed(arguments, f"?{query}")) == expected
        for path, headers in server.requests:
            assert "authorization" not in headers
            assert urlsplit(path).query == query or (name == "NemoAsr" and path.endswith(".wav"))
