"""Labels and other numbers of lists: integers of 32 bits, and what a list says wrongly."""

import pickle

import numpy as np
import pytest

import ndd
import ndd.readers
from ndd.readers import File
from readers.epochs import epoch_of, labels_of

WHOLE = ndd.tfrecord.FixedLenFeature((), ndd.tfrecord.string, "")


def test_labels_are_integers(numbered):
    taken = File(files=numbered(4), labels=[1.0, "2", True, np.int64(7)])
    assert taken.fetch(range(4))[1].torch().flatten().tolist() == [1, 2, 1, 7]
    for wrong in (0.5, float("nan"), float("inf"), None, np.float32(2.5)):
        with pytest.raises(ValueError, match=r"readers.File: labels: expected an integer .*, got .* for file 1"):
            File(files=numbered(2), labels=[0, wrong]).fetch([0])
    with pytest.raises(ValueError, match=r"got 'cat' for file 0. Number the classes: labels=\[classes.index"):
        File(files=numbered(1), labels=["cat"]).fetch([0])
    with pytest.raises(ValueError, match=r"got 0.5 for file 0"):
        File(files=numbered(1), labels=np.array([0.5])).fetch([0])


@pytest.mark.parametrize("label", [1 << 31, -(10**30)])
def test_labels_have_32_bits(numbered, label):
    with pytest.raises(ValueError, match=f"an integer of 32 bits for each file, got {label} for file 1"):
        labels_of(File(files=numbered(2), labels=[0, label]))


@pytest.mark.parametrize("label", [1 << 31, -(1 << 31) - 1, 1 << 32, 10**17])
def test_labels_in_a_list_have_32_bits(numbered, tmp_path, label):
    """DALI keeps the lower bits: 2**32 + 1 would be class 1."""
    names = numbered(3)
    path = tmp_path / "list"
    path.write_text(f"{names[0]} {(1 << 31) - 1}\n{names[1]} {-(1 << 31)}\n")
    assert epoch_of(File(file_list=str(path))) == [(1 << 31) - 1, -(1 << 31)]
    path.write_text(f"{names[0]} 1\n{names[1]} {label}\n")
    with pytest.raises(RuntimeError, match=rf'list":2: .*an integer of 32 bits, got .*{label}'):
        len(File(file_list=str(path)))
    with pytest.raises(RuntimeError, match=r"line 2 .*expected a file, a label from 0"):
        len(ndd.readers.Video(file_list=str(path), sequence_length=1))


@pytest.mark.parametrize(
    ("make", "line", "words"),
    [
        (
            lambda name, path: File(file_list=path),
            "{name} {large}",
            'list":1: expected a file name followed by a label',
        ),
        (
            lambda name, path: ndd.readers.Video(file_list=path, sequence_length=1),
            "{name} {large}",
            'line 1 of "/.*: expected a file, a label from 0',
        ),
        (
            lambda name, path: ndd.readers.TFRecord(path=name, index_path=path, features={"a": WHOLE}),
            "{large} 4",
            'list":1: expected an offset and a size',
        ),
        (
            lambda name, path: ndd.readers.MXNet(path=name, index_path=path),
            "0 {large}",
            'list":1: expected a key and an offset',
        ),
        (
            lambda name, path: ndd.readers.Webdataset(paths=name, index_paths=path, ext="bin"),
            "v1.2 1\nbin 512 {large} a",
            'list" line 2: expected "extension offset size',
        ),
        (
            lambda name, path: ndd.readers.NemoAsr(manifest_filepaths=path, max_duration=5.0),
            '{{"audio_filepath": "a", "duration": {large}0}}',
            "No files found",
        ),
    ],
    ids=["File", "Video", "TFRecord", "MXNet", "Webdataset", "NemoAsr"],
)
@pytest.mark.parametrize("digits", [400, 5000])  # more than a number of 64 bits holds, and than Python reads
@pytest.mark.filterwarnings("ignore")
def test_numbers_too_large_for_a_list(numbered, tmp_path, make, line, words, digits):
    name = numbered(1)[0]
    (tmp_path / "list").write_text(line.format(name=name, large="9" * digits) + "\n")
    with pytest.raises(RuntimeError, match=words):
        len(make(name, tmp_path / "list"))


def test_the_names_of_classes(tmp_path):
    """As torchvision's `ImageFolder`; hidden and empty folders count, those that are filtered out do not."""
    for name in ("b/1.jpg", "a 1/2.jpg", "a 1/3.jpg", ".hidden/4.jpg", "other/5.jpg", "empty/", "loose.jpg"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_bytes(b"x")
    whole = File(file_root=tmp_path)
    assert whole.classes == [".hidden", "a 1", "b", "empty", "other"]
    assert whole.class_to_idx == {".hidden": 0, "a 1": 1, "b": 2, "empty": 3, "other": 4}
    for data, label in whole.next_epoch():
        assert f"/{whole.classes[label.item()]}/" in data.source_info
    some = pickle.loads(pickle.dumps(File(file_root=f"{tmp_path}/", dir_filters=["a*", "b"])))
    assert some.classes == ["a 1", "b"]
    some.classes.clear()
    assert list(some.class_to_idx) == ["a 1", "b"]
    with pytest.raises(RuntimeError, match=r"readers.File: classes: the files are listed with numbers as labels"):
        File(files=[str(tmp_path / "loose.jpg")]).class_to_idx  # noqa: B018
    with pytest.raises(RuntimeError, match="Failed to open"):
        File(file_root=tmp_path / "nowhere").classes  # noqa: B018
