"""Warnings of readers point at the line of the program that asked, whichever way it asked."""

from __future__ import annotations

import io
import json
import tarfile
import warnings

import numpy as np
import pytest

import ndd

pytestmark = pytest.mark.fast


def first_batch(reader):
    next(iter(reader.next_epoch(batch_size=1)))


def one_sample(reader):
    next(iter(reader))


def by_number(reader):
    reader.fetch([0])


def tar_with_an_empty_one(folder):
    for name, members in (("full", ["a.jpg"]), ("empty", [])):
        with tarfile.open(folder / f"{name}.tar", "w") as tar:
            for member in members:
                header = tarfile.TarInfo(member)
                header.size = 3
                tar.addfile(header, io.BytesIO(b"jpg"))
    return ndd.readers.Webdataset(paths=[str(folder / "full.tar"), str(folder / "empty.tar")], ext=["jpg"])


def manifest_with_a_broken_line(folder):
    path = folder / "manifest.json"
    path.write_text(json.dumps({"audio_filepath": "a.wav", "text": ""}) + "\nno JSON\n")
    return ndd.readers.NemoAsr(manifest_filepaths=str(path), on_error="skip", read_sample_rate=False)


def files_of_which_one_is_missing(folder):
    np.arange(3, dtype=np.uint8).tofile(folder / "b")
    return ndd.readers.File(files=[str(folder / "a"), str(folder / "b")], labels=[0, 1], on_error="skip")


@pytest.mark.parametrize("ask", [first_batch, one_sample, by_number, len])
@pytest.mark.parametrize("make", [tar_with_an_empty_one, manifest_with_a_broken_line, files_of_which_one_is_missing])
def test_a_reader_warns_at_the_users_line(make, ask, tmp_path):
    if ask is len and make is files_of_which_one_is_missing:
        pytest.skip("counting reads nothing")
    reader = make(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ask(reader)
        except RuntimeError:  # no sample can be read
            pass
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_an_unfinished_epoch_warns_where_the_next_one_begins(tmp_path):
    reader = files_of_which_one_is_missing(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for _ in reader.next_epoch(batch_size=1):
                break
    assert {warning.filename for warning in caught} == {__file__}
