"""What notebooks show: `ndd.show`, names under a contact sheet, a reader's table, errors without the frames of ndd."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from warm_interpreter import run

import ndd

Image = pytest.importorskip("PIL.Image")
BLACK = np.zeros((40, 60, 3), np.uint8)


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.png())))


def reader(**arguments):
    return ndd.readers.File(file_root=ndd.demo.photos(), **arguments)


@pytest.mark.parametrize(
    "images",
    [
        ndd.batch([BLACK, BLACK[:20], BLACK], layout="HWC"),
        torch.zeros(3, 3, 40, 60),
        torch.zeros(3, 40, 60, 3, dtype=torch.uint8),
        np.zeros((3, 40, 60, 3), np.uint8),
        [BLACK, BLACK[:20], BLACK],
    ],
    ids=["batch", "NCHW", "NHWC", "numpy", "list"],
)
def test_labels_are_written_on_the_first_images(images):
    plain = ndd.show(images, max=2)
    named = ndd.show(images, labels=[1, 0, 1], names=["dog", "cat"], max=2)
    assert repr(plain) == repr(named) == "Picture of 2 images"
    assert pixels(plain)[:, :190].max() == 0
    other = ndd.show(images, labels=[0, 1, 0], names=["dog", "cat"], max=2)
    corners = [pixels(sheet)[:14, :30] for sheet in (named, other)]
    assert corners[0].max() > 0
    assert (corners[0] != corners[1]).any()


def test_encoded_images_targets_boxes_and_masks():
    jpegs, labels = reader().fetch([0, 5])
    assert repr(ndd.show(jpegs, labels=labels, names=list("abcde"))) == "Picture of 2 images"
    image = ndd.tensor(BLACK, layout="HWC")
    boxes = ndd.tensor([[0.25, 0.25, 0.75, 0.75]])
    mask = ndd.tensor(np.pad(np.ones((10, 10), np.uint8), ((30, 0), (50, 0))), layout="HW")
    shown = pixels(ndd.show(image, boxes=boxes, masks=mask, labels=ndd.tensor([3])))
    assert (pixels(ndd.show(ndd.Targets(image, boxes, ndd.tensor([3]), mask))) == shown).all()
    assert shown[-1, -1].max() > 0  # the mask
    assert shown[33, 48].max() > 0  # the box


def test_targets_in_pixels_and_other_formats():
    image = ndd.tensor(BLACK, layout="HWC")
    shown = pixels(ndd.show(image, boxes=ndd.tensor([[0.25, 0.25, 0.75, 0.75]])))
    for format, box in (("xyxy", [15.0, 10.0, 45.0, 30.0]), ("xywh", [15.0, 10.0, 30.0, 20.0])):
        targets = ndd.Targets(image, ndd.tensor([box]), format=format, normalized=False)
        assert (pixels(ndd.show(targets)) == shown).all()


def test_misuse():
    with pytest.raises(ValueError, match="show: labels: expected 1, one for each image, got 2"):
        ndd.show(ndd.batch([BLACK], layout="HWC"), labels=[1, 2])
    with pytest.raises(ValueError, match="show: max: expected 1 to 64, got 0"):
        ndd.show(BLACK, max=0)


def sheet(batch):
    import base64
    import re

    data = base64.b64decode(re.search(r"base64,([^\"]+)", batch._repr_html_())[1])
    return np.asarray(Image.open(io.BytesIO(data)))


def test_images_of_files_stand_above_folder_and_name():
    jpegs, _ = reader().fetch([0, 5])
    images = ndd.resize(ndd.decoders.image(jpegs), size=[100, 150])
    assert sheet(images).shape[0] == 113
    assert sheet(ndd.as_batch(images.torch(), layout="HWC")).shape[0] == 100  # of no file
    images._value().source_info = ["http://user:word@host/a/b.jpg?signature=123", "日本/語.jpg"]
    assert sheet(images).shape[0] == 113


def test_a_reader_shows_its_first_samples_and_stays_where_it_is():
    source = reader(shuffle="global", seed=1, num_shards=2, shard_id=1)
    next(source.next_epoch(batch_size=3))
    before = str(source.get_state())
    page = source._repr_html_()
    assert str(source.get_state()) == before
    for text in ("file_root=", "16 samples", "shard 1 of 2", "epoch 0, sample 3", "nature/cat.jpg", "data:image/"):
        assert text in page
    assert page.count("<tr>") == 5
    expected = next(reader(shuffle="global", seed=1, num_shards=2, shard_id=1).next_epoch(batch_size=3))
    source.set_state(before)
    assert next(source.next_epoch(batch_size=3))[0].source_info != expected[0].source_info


def test_texts_are_shown_as_they_are():
    table = [{"path": ndd.demo.photos() + "/nature/cat.jpg", "caption": "a <cat>"}]
    page = ndd.readers.Table(table, columns=["path", "caption"])._repr_html_()
    assert "a &lt;cat&gt;" in page
    assert "data:image/" in page


def test_a_reader_of_nothing_says_so():
    assert "Failed to open" in ndd.readers.File(file_root="/nowhere")._repr_html_()


def test_errors_in_a_notebook_are_short(monkeypatch, capsys):
    from ndd._execution import notebook

    shown = []
    monkeypatch.setattr(notebook, "shell", lambda: object())
    monkeypatch.setattr(notebook, "show_now", shown.append)
    display = type("display", (), {"HTML": str})
    monkeypatch.setitem(__import__("sys").modules, "IPython", type("IPython", (), {"display": display}))
    late = ndd.crop(ndd.demo.photo(), crop=[5000, 5000])
    with pytest.raises(RuntimeError) as caught:
        late.torch()
    lines = caught.value._render_traceback_()
    assert lines[-1] == f"RuntimeError: {caught.value}"
    assert [line for line in lines[:-1] if "late.torch()" in line]
    assert not [line for line in lines[:-1] if "/ndd/_" in line]
    assert shown[0].startswith("<details>")
    assert "in torch" in shown[0]


# Runs cells in a kernel of Jupyter that has no process of its own, which would take seconds to start, and prints their outputs.
_KERNEL = """
import json, queue, sys, warnings
warnings.simplefilter("ignore")
from ipykernel.inprocess.manager import InProcessKernelManager

manager = InProcessKernelManager()
manager.start_kernel()
client = manager.client()
client.start_channels()

def outputs(text):
    client.execute(text)
    while True:
        try:
            message = client.get_iopub_msg(timeout=0)
        except queue.Empty:
            return
        if message["msg_type"] in ("display_data", "execute_result", "error", "stream"):
            yield {"type": message["msg_type"], **message["content"]}

print(json.dumps([[*outputs(text)] for text in json.loads(sys.argv[1])], default=str))
"""


@pytest.mark.slow
def test_a_notebook_shows_once_and_folds(tmp_path):
    pytest.importorskip("ipykernel")
    cells = [
        "import ndd\nphoto = ndd.demo.photo()\nndd.show(photo)\n'after'",
        "ndd.show(photo)",
        "ndd.crop(photo, crop=[5000, 5000]).torch()",
        "ndd.resize(photo, size=[4, 4], rule='none')",
        "ndd.readers.File(file_root='/nowhere').fetch([0])",
        "{}['user']",
        "def compiles():\n    eval('1 +')\ncompiles()",
        "handler = lambda shell, kind, error, trace, tb_offset=None: print('mine', error)\n"
        "get_ipython().set_custom_exc((Exception,), handler)\nndd.crop(photo, crop=[5000, 5000]).torch()",
    ]
    done = run(_KERNEL, json.dumps(cells), cwd=tmp_path)
    assert not done.returncode, done.stderr
    first, second, third, *at_the_call, own, syntax, replaced = json.loads(done.stdout.splitlines()[-1])
    assert [o["type"] for o in first] == ["display_data", "execute_result"]
    assert [o["type"] for o in second] == ["display_data"]
    fold, error = third
    assert "<details>" in fold["data"]["text/html"]
    assert len(error["traceback"]) <= 3
    assert "crop(), called at cell, line 1: crop: sample 0" in error["evalue"]
    for fold, error in at_the_call:
        assert "<details>" in fold["data"]["text/html"]
        *lines, sentence = error["traceback"]
        assert [line[:14] for line in lines] == ["cell, line 1: "]
        assert sentence == f"{error['ename']}: {error['evalue']}"
    assert "Traceback" in "".join(own[0]["traceback"])  # not of ndd: as IPython shows it
    assert "compiles()" in "".join(syntax[0]["traceback"])
    assert replaced[0]["text"].startswith("mine ")
    assert "error" not in [output["type"] for output in replaced]


def test_a_handler_of_the_user_stays(monkeypatch):
    from ndd._execution import notebook

    handlers = []
    kernel = SimpleNamespace(custom_exceptions=(ValueError,), set_custom_exc=lambda *handler: handlers.append(handler))
    monkeypatch.setattr(notebook, "shell", lambda: kernel)
    notebook.fold_errors()
    assert not handlers
    kernel.custom_exceptions = ()
    notebook.fold_errors()
    assert handlers == [((Exception,), notebook._show_error)]
