"""Bad samples: every broken file is an error of its own, never a crash, a hang or a word on stderr; on_error."""

from __future__ import annotations

import os

import numpy as np
import pytest
import warm_interpreter
from encoded import FOLDER, made, needs_files, real

import ndd

# Fuzzed headers and a broken EXIF segment over pictures that decode all the same, here and in DALI.
READABLE = {"fuzz_1.bmp", "fuzz_2.jpg", "fuzz_3.bmp", "fuzz_4.jpg", "invalid_exif.jpg"}


def broken():
    """Broken files by name, made here."""
    jpeg, png, jp2 = (made()[n].copy() for n in ("420.jpg", "rgb.png", "rgb.jp2"))
    wrong_sum = png.copy()
    wrong_sum[29] ^= 0xFF
    cut = np.concatenate((jpeg[: len(jpeg) // 2], jpeg[-2:]))
    return {
        "empty": np.empty(0, np.uint8),
        "one byte": jpeg[:1],
        "text": np.frombuffer(b"this is not an image" * 20, np.uint8),
        "zeros": np.zeros(500, np.uint8),
        "jpeg header": jpeg[:100],
        "half jpeg": jpeg[: len(jpeg) // 2],
        "jpeg without its end": jpeg[:-2],
        "jpeg with the middle cut out": cut[: len(cut) // 2],
        "half png": png[: len(png) // 2],
        "png checksum": wrong_sum,
        "half jpeg 2000": jp2[: len(jp2) // 2],
        "half tiff": made()["lzw.tif"][: len(made()["lzw.tif"]) // 2],
        "half webp": made()["lossy.webp"][: len(made()["lossy.webp"]) // 2],
    }


def bomb(height=60000, width=60000):
    """A JPEG whose header claims another size."""
    data = made()["420.jpg"].copy()
    place = data.tobytes().index(b"\xff\xc0") + 5
    data[place : place + 4] = np.frombuffer(np.array([height, width], ">u2").tobytes(), np.uint8)
    return data


@pytest.mark.parametrize("name", sorted(broken()))
def test_broken_data_raises(name):
    with pytest.raises(RuntimeError, match="image: sample 0: "):
        ndd.decoders.image(ndd.tensor(broken()[name])).evaluate()


@pytest.mark.oracle
@pytest.mark.parametrize("name", sorted(set(broken()) - {"one byte"}))
def test_the_oracle_raises_too(dali, name):
    with dali.EvalMode.sync_cpu, pytest.raises(RuntimeError):
        dali.decoders.image(dali.tensor(broken()[name])).evaluate()


@needs_files
@pytest.mark.parametrize("path", real("broken/*"), ids=lambda p: p.name)
def test_broken_files(path):
    if path.name in READABLE:
        assert ndd.imread(path).ndim == 3
        return
    with pytest.raises(RuntimeError, match=path.name):
        ndd.imread(path).evaluate()


def test_every_bad_sample_is_named_with_its_index_and_file(tmp_path):
    files = []
    for i, data in enumerate([made()["420.jpg"], broken()["text"], made()["rgb.png"], broken()["half jpeg"], bomb()]):
        files.append(tmp_path / f"picture_{i}.jpg")
        files[-1].write_bytes(data.tobytes())
    with pytest.raises(RuntimeError) as caught:
        ndd.imread(files).evaluate()
    text = str(caught.value)
    assert "3 of 5 samples cannot be decoded" in text
    for i in (1, 3, 4):
        assert f"sample {i} ({files[i]}): " in text
    assert "sample 0 " not in text
    assert "sample 2 " not in text
    with pytest.raises(RuntimeError, match=r"image: sample 1 \(.*picture_1\.jpg\): expected an encoded image"):
        ndd.imread(files[:3]).evaluate()


def test_skip_leaves_bad_samples_out(tmp_path):
    files = []
    for i, data in enumerate([broken()["text"], made()["420.jpg"], broken()["half jpeg"], made()["odd.jpg"]]):
        files.append(str(tmp_path / f"picture_{i}.jpg"))
        (tmp_path / f"picture_{i}.jpg").write_bytes(data.tobytes())
    out = ndd.imread(files, on_error="skip")
    assert out.batch_size == 2
    assert out.shape == [(40, 56, 3), (33, 47, 3)]
    assert [(b.index, b.source) for b in out.dropped] == [(0, files[0]), (2, files[2])]
    assert "expected an encoded image" in out.dropped[0].error
    small = ndd.resize(out, size=[8, 8]) if hasattr(ndd, "resize") else out
    assert small.batch_size == 2
    assert ndd.imread(files[1:2], on_error="skip").dropped == []


def test_skip_may_leave_nothing():
    out = ndd.decoders.image(ndd.batch([broken()["text"], broken()["empty"]]), on_error="skip")
    assert out.batch_size == 0
    assert len(out.dropped) == 2


def test_fill_gives_zeros_in_the_size_that_the_header_states():
    datas = [broken()["half jpeg"], made()["420.jpg"], broken()["text"], bomb()]
    out = ndd.decoders.image(ndd.batch(datas), on_error="fill", dtype=ndd.float32)
    assert out.shape == [(40, 56, 3), (40, 56, 3), (1, 1, 3), (1, 1, 3)]
    for i in (0, 2, 3):
        assert not np.asarray(out.tensors[i]).any()
    assert np.asarray(out.tensors[1]).any()
    assert [b.index for b in out.dropped] == [0, 2, 3]
    gray = ndd.decoders.image(ndd.batch([broken()["text"]]), on_error="fill", output_type=ndd.types.GRAY)
    assert gray.shape == [(1, 1, 1)]
    item = ndd.decoders.image(broken()["half jpeg"], on_error="fill")
    assert item.shape == (40, 56, 3)


def test_fill_where_the_header_states_no_channels():
    jpeg = made()["420.jpg"].copy()
    frame = bytes(jpeg).index(b"\xff\xc0")
    jpeg[frame + 9] = 0
    out = ndd.decoders.image(jpeg, on_error="fill", output_type=ndd.types.ANY_DATA)
    assert out.shape[2] == 1
    assert not np.asarray(out).any()


def test_a_single_tensor_cannot_be_skipped():
    with pytest.raises(RuntimeError, match="expected an encoded image"):
        ndd.decoders.image(broken()["text"], on_error="skip").evaluate()


@pytest.mark.parametrize("policy", ["skip", "fill"])
def test_windows_follow_the_policy(policy):
    datas = [made()["odd.jpg"], made()["420.jpg"], broken()["half jpeg"], broken()["text"]]
    out = ndd.decoders.image_crop(ndd.batch(datas), crop=[36, 20], on_error=policy)  # odd.jpg has 33 rows
    assert [b.index for b in out.dropped] == [0, 2, 3]
    assert "not valid for the picture of 33x47" in out.dropped[0].error
    assert out.shape == ([(36, 20, 3)] if policy == "skip" else [(36, 20, 3)] * 3 + [(1, 1, 3)])
    out = ndd.decoders.image_slice(ndd.batch(datas), start=[0, 0], shape=[10, 36], on_error=policy)
    assert [b.index for b in out.dropped] == [0, 2, 3]


def test_on_error_is_checked():
    with pytest.raises(ValueError, match=r"on_error.*expected one of"):
        ndd.decoders.image(made()["420.jpg"], on_error="ignore").evaluate()


def test_the_next_call_works():
    for _ in range(3):
        with pytest.raises(RuntimeError):
            ndd.decoders.image(broken()["half jpeg"]).evaluate()
        assert ndd.decoders.image(made()["420.jpg"]).shape == (40, 56, 3)


# ---- the pixel limit


def test_header_bombs_cost_nothing():
    tracker = pytest.importorskip("resource")
    # What must be imported or compiled takes memory too.
    assert ndd.decoders.image(made()["420.jpg"]).shape == (40, 56, 3)
    before = tracker.getrusage(tracker.RUSAGE_SELF).ru_maxrss
    for data in (bomb(), bomb(65500, 65500)):
        with pytest.raises(RuntimeError, match="expected at most 268435456 pixels, got"):
            ndd.decoders.image(data).evaluate()
        with pytest.raises(RuntimeError, match="max_pixels"):
            ndd.decoders.image_crop(data, crop=[10, 10]).evaluate()
    assert tracker.getrusage(tracker.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_the_limit_can_be_set():
    data = made()["420.jpg"]  # 40 x 56 = 2240
    assert ndd.decoders.image(data, max_pixels=2240).shape == (40, 56, 3)
    with pytest.raises(RuntimeError, match="expected at most 2239 pixels, got 40x56"):
        ndd.decoders.image(data, max_pixels=2239).evaluate()
    ndd.decoders.set_max_pixels(1000)
    try:
        assert ndd.decoders.get_max_pixels() == 1000
        with pytest.raises(RuntimeError, match="at most 1000 pixels"):
            ndd.decoders.image(data).evaluate()
        assert ndd.decoders.image(data, max_pixels=5000).shape == (40, 56, 3)
    finally:
        ndd.decoders.set_max_pixels(None)
    assert ndd.decoders.image(data).shape == (40, 56, 3)
    with pytest.raises(ValueError, match="max_pixels"):
        ndd.decoders.set_max_pixels(0)


def test_nothing_is_said_on_stderr(tmp_path):
    """In a process of its own: the libraries write to the file descriptor, past Python."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import ndd, test_errors as t, encoded\n"
        "import logging; logging.getLogger('ndd').setLevel(logging.ERROR)\n"  # a line there says that kernels are compiled
        "datas = [*t.broken().values(), t.bomb(), *encoded.made().values()]\n"
        "datas += [encoded.read(p) for p in encoded.real('broken/*')]\n"
        "for kind in (ndd.types.RGB, ndd.types.GRAY, ndd.types.ANY_DATA):\n"
        "    ndd.decoders.image(ndd.batch(datas), on_error='fill', output_type=kind).evaluate()\n"
        "    ndd.decoders.image_crop(ndd.batch(datas), crop=[4, 4], on_error='skip', output_type=kind).evaluate()\n"
    )
    here = os.path.dirname(__file__)
    done = warm_interpreter.run(program, here, cwd=tmp_path, has_ndd=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_folder_of_broken_files_is_walked_in_ci():
    if "CI" in os.environ and "NDD_TEST_DATA" in os.environ:
        assert FOLDER.is_dir()
