"""Google's and Azure's stores, as far as a server of their answers on the loopback goes: listing, whole objects, ranges."""

import json
from pathlib import Path

import pytest
from loopback_store import answering
from readers.datasets import recordio
from readers.epochs import labels_of

import ndd

pytest.importorskip("obstore")
NAMES = ["train/cat/1.jpg", "train/cat/2 é.jpg", "train/dog/1.jpg", "train/notes.txt"]


@pytest.fixture
def store(monkeypatch):
    with answering({name: name.encode() * 100 for name in NAMES}) as (url, kind):
        emulated(monkeypatch, url)
        with ndd.io.object_store(retries=0, timeout=60):
            yield kind


def emulated(monkeypatch, url):
    """The environment in which both clients ask this server."""
    empty = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    account = json.dumps({"gcs_base_url": url, "disable_oauth": True, **empty})
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", account)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", url)


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
    expected, result = (
        [labels_of(batch) for batch in ndd.readers.MXNet(**arguments).next_epoch(5)] for arguments in (local, remote)
    )
    assert result == expected
    assert result[1] == [5, 6, 7, 8, 9]
