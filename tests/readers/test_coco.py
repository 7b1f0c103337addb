"""Objects of COCO files against DALI and the COCO tools, preprocessed files in both directions, and broken data."""

import json
import os
import re
import struct
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.readers import COCO
from ndd.readers.formats import coco_annotations
from ndd.readers.formats.coco_masks import Outline, Run, counts_of_text, painted
from readers.datasets import write_coco

REAL = Path(__file__).parents[3] / "shared" / "data" / "coco"
SQUARE = [2, 1, 6, 1, 6, 5, 2, 5]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def samples(package, **arguments):
    return [[np.array(o) for o in sample] for sample in package.readers.COCO(**arguments).next_epoch()]


def assert_equal(result, expected):
    assert len(result) == len(expected)
    for first, second in zip(result, expected, strict=True):
        assert [(a.dtype, a.shape) for a in first] == [(b.dtype, b.shape) for b in second]
        assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def lists(result):
    return [[a.tolist() for a in sample[1:]] for sample in result]


def image(number, name, height=10, width=20, **more):
    return {"id": number, "file_name": name, "height": height, "width": width, **more}


def thing(owner, category=5, bbox=(1, 2, 3, 4), **more):
    result = {"id": 7, "image_id": owner, "category_id": category, "bbox": bbox, **more}
    return {key: value for key, value in result.items() if value is not ...}


TWO = [image(2, "b.jpg"), image(1, "a.jpg")]


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("instances", {"ratio": True, "image_ids": True}),
        ("instances", {"polygon_masks": True}),
        ("instances", {"pixelwise_masks": True, "ratio": True, "ltrb": True}),
        ("instances", {"masks": True, "ratio": True, "ltrb": True, "skip_empty": True, "include_iscrowd": False}),
        ("instances_polygons_only", {"pixelwise_masks": True, "avoid_class_remapping": True, "size_threshold": 20}),
        ("instances_rle", {"polygon_masks": True}),
    ],
    ids=str,
)
@pytest.mark.drawn(1)
def test_real_files(dali, file, options):
    arguments = {"file_root": str(REAL / "images"), "annotations_file": str(REAL / f"{file}.json"), **options}
    result = samples(ndd, **arguments)
    assert len(result) == 18 if "skip_empty" in options else 20
    assert_equal(result, samples(dali, **arguments))


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_run_lengths(dali, tmp_path):
    """DALI paints the last of the run lengths of a label. With one object for each label both agree; with all of them,
    those of a label are painted together."""
    document = json.loads((REAL / "instances_rle.json").read_text())
    every = document["annotations"]
    document["annotations"] = list({(a["image_id"], a["category_id"]): a for a in every}.values())
    assert 50 < len(document["annotations"]) < len(every) - 50
    (tmp_path / "one.json").write_text(json.dumps(document))
    arguments = {"file_root": str(REAL / "images"), "pixelwise_masks": True}
    result = samples(ndd, annotations_file=str(tmp_path / "one.json"), **arguments)
    assert_equal(result, samples(dali, annotations_file=str(tmp_path / "one.json"), **arguments))

    tools = pytest.importorskip("pycocotools.mask")
    places = {category["id"]: place for place, category in enumerate(document["categories"], 1)}
    result = samples(ndd, annotations_file=str(REAL / "instances_rle.json"), image_ids=True, **arguments)
    for _, _, _, mask, number in result:
        expected = np.zeros(mask.shape[:2], np.int32)
        for item in sorted(every, key=lambda a: places[a["category_id"]]):
            if item["image_id"] == number[0]:
                runs = item["segmentation"]
                if isinstance(runs["counts"], list):
                    runs = tools.frPyObjects(runs, *runs["size"])
                expected[tools.decode(runs) != 0] = places[item["category_id"]]
        assert np.array_equal(mask[..., 0], expected)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("images", "annotations", "options"),
    [
        (TWO, [thing(2), thing(1, 1, (-3, 2.25, 40.1, 1e1)), thing(1, 9), thing(77)], {"image_ids": True}),
        (TWO, [thing(2, bbox=...), thing(1, iscrowd=1), thing(1, 1, iscrowd=0)], {"include_iscrowd": False}),
        (TWO, [thing(2, bbox=(0, 0, 0.1, 0.1)), thing(2, 1, (0, 0, 9, 0.05)), thing(1, 1, (0, 0, -3, 5))], {}),
        (TWO, [thing(1, 700)], {"avoid_class_remapping": True, "skip_empty": True}),
        ([image(3, "b.jpg"), image(3, "a.jpg", 5), image(-2, "c.jpg")], [thing(3)], {"ratio": True, "image_ids": True}),
        (TWO, [thing(1)], {"images": ["b.jpg", "a.jpg", "b.jpg"], "image_ids": True}),
        (TWO, [thing(1)], {"images": ["b.jpg", "a.jpg", "b.jpg"], "skip_empty": True}),
        ([image(3, "a.jpg"), image(1, "a.jpg"), image(2, "a.jpg")], [], {"images": "a.jpg", "image_ids": True}),
        ([image(1, "sub/ü.jpg"), image(2, "sub/b c.jpg")], [thing(2)], {"images": []}),
        ([{"id": 4, "file_name": "a.jpg"}, image(5, "b.jpg")], [thing(5)], {"ratio": True, "ltrb": True}),
        (TWO, [], {}),
        (TWO, [thing(1, segmentation=None), thing(1, segmentation=[]), thing(1, 1, segmentation=[SQUARE])],
         {"polygon_masks": True}),
        (TWO, [thing(2, segmentation=[[0.1, 1e-7, 2.123456789123, 3.5, 9.99, 7], SQUARE]), thing(2, segmentation=[[]]),
               thing(2, 1, segmentation=[SQUARE[:4]])], {"masks": True, "ratio": True}),
        (TWO, [thing(2, segmentation=[SQUARE]), thing(2, segmentation=[[5, 3, 12, 2, 9.5, 9.5]]),
               thing(2, 1, segmentation={"size": [10, 20], "counts": [5, 10, 185]}),
               thing(1, 9, segmentation=[SQUARE]), thing(1, 5, segmentation={"size": [10, 20], "counts": "5:i5"}),
               thing(1, 1, segmentation=[[-5, -5, 30, 30, 30.4, 3], SQUARE[:4]])], {"pixelwise_masks": True}),
    ],
)  # fmt: skip
def test_odd_data(tmp_path, dali, images, annotations, options):
    categories = [{"id": 5}, {"id": 1}, {"id": 5}, {"id": 700}]
    arguments = {**write_coco(tmp_path, images, annotations, categories), **options}
    result = samples(ndd, **arguments)
    assert len(result) > 0
    assert_equal(result, samples(dali, **arguments))


def test_where_dali_is_wrong(tmp_path):
    """An odd coordinate, run lengths of one label, ids of 64 bits, categories or annotations that are not there."""
    odd = thing(1, segmentation=[SQUARE[:5]])
    arguments = write_coco(tmp_path, TWO, [odd, thing(1, segmentation=[SQUARE])], info={"segmentation": [SQUARE]})
    (_, _, _, rows, vertices), _ = samples(ndd, **arguments, polygon_masks=True)
    assert rows.tolist() == [[0, 0, 2], [1, 2, 6]]
    assert vertices.ravel().tolist() == SQUARE[:4] + SQUARE
    runs = [{"size": [2, 3], "counts": counts} for counts in ([0, 1, 5], [5, 1], "051")]
    arguments = write_coco(tmp_path, [image(1, "a.jpg", 2, 3)], [thing(1, segmentation=run) for run in runs])
    assert samples(ndd, **arguments, pixelwise_masks=True)[0][3][..., 0].tolist() == [[2, 2, 2], [2, 2, 2]]
    arguments = write_coco(tmp_path, [image(2**40, "a.jpg")], [thing(2**40, 2**50)], [{"id": 2**50}])
    assert lists(samples(ndd, **arguments)) == [[[[1, 2, 3, 4]], [1]]]
    for option, case in (("image_ids", "image ids"), ("avoid_class_remapping", "category ids")):
        with pytest.raises(RuntimeError, match=f"readers.COCO: expected {case} of 32 bits"):
            samples(ndd, **arguments, **{option: True})
    arguments = write_coco(tmp_path, TWO, [thing(1)], categories=())
    assert lists(samples(ndd, **arguments))[0][1] == [0]
    (tmp_path / "instances.json").write_text(json.dumps({"images": TWO}))
    assert lists(samples(ndd, **arguments)) == [[[], []]] * 2


def test_unknown_names_are_said(tmp_path):
    arguments = write_coco(tmp_path, TWO, [thing(1)])
    with pytest.warns(UserWarning, match=r"2 of the names in `images` are not in .*'x.jpg', 'y.jpg'"):
        assert len(COCO(**arguments, images=["x.jpg", "b.jpg", "y.jpg"])) == 1
    with pytest.warns(UserWarning, match="are skipped"), pytest.raises(RuntimeError, match="No files found"):
        len(COCO(**arguments, images=["x.jpg"]))


OBJECTS = [
    thing(1, segmentation=[SQUARE]), thing(1, 1, segmentation={"size": [9, 9], "counts": [8, 73]}),
    thing(3, 1, (0, 0, 4, 5)), thing(3, segmentation={"size": [5, 6], "counts": [3, 7, 5, 1, 14]}),
    thing(3, 1, segmentation=[[1.5, 1.25, 5, 1, 3, 4.75]]),
]  # fmt: skip
THREE = [image(3, "c.jpg", 5, 6), image(2, "d/b.jpg", 3, 3), image(1, "a.jpg", 9, 9)]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("options", "again"),
    [
        ({"ratio": True, "ltrb": True}, {}),
        ({"polygon_masks": True, "ratio": True, "image_ids": True, "skip_empty": True}, ("polygon_masks", "image_ids")),
        ({"masks": True}, ("masks",)),
        ({"images": ["c.jpg", "a.jpg", "c.jpg"], "polygon_masks": True}, ("polygon_masks",)),
    ],
    ids=str,
)
def test_preprocessed(tmp_path, dali, options, again):
    """Each library reads what it and the other one saved; the files are equal."""
    arguments = {**write_coco(tmp_path, THREE, OBJECTS), **options}
    result, written = samples(ndd, **arguments), []
    again = {name: True for name in again}
    for package in (ndd, dali):
        folder = tmp_path / package.__name__
        folder.mkdir()
        samples(package, **arguments, save_preprocessed_annotations=True, save_preprocessed_annotations_dir=str(folder))
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
        for reading in (ndd, dali):
            read = samples(reading, file_root=str(tmp_path), preprocessed_annotations=str(folder), **again)
            assert_equal(read, result)
    assert written[0] == written[1]


def test_preprocessed_masks(tmp_path):
    """Ours are read as they were saved. (DALI 2.4.0 crashes on these images when it paints them itself.)"""
    arguments = {**write_coco(tmp_path, THREE, OBJECTS), "pixelwise_masks": True}
    saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(tmp_path)}
    result = samples(ndd, **arguments, **saving)
    read = samples(ndd, file_root=str(tmp_path), preprocessed_annotations=str(tmp_path), pixelwise_masks=True)
    assert_equal(read, result)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "numbers", "said"),
    [
        ("masks_rles", ("<iqqqI", 1, 8, 9, -7, 0), "masks_rles.dat is damaged: expected run lengths"),
        ("masks_rles", ("<iqqqI", 1, 8, 9, 2**62, 0), "masks_rles.dat is damaged: expected run lengths"),
        ("masks_rles_idx", ("<ii", 1, -1), r"expected outlines of the image's 1 objects, got one of object -1"),
        ("masks_rles_idx", ("<ii", 1, 5), r"expected outlines of the image's 1 objects, got one of object 5"),
        ("polygon_data", ("<iiii", 1, 7, 0, 3), r"expected outlines of the image's 1 objects, got one of object 7"),
        ("masks_offset", ("<iq", 1, 2**63 - 1), "masks_offset.dat is damaged: expected places among 1 items"),
        ("mask_count", ("<iq", 1, 2**63 - 1), "masks_offset.dat is damaged: expected places among 1 items"),
        ("vertices_offset", ("<iq", 1, 2**63 - 2), "vertices_offset.dat is damaged: expected places"),
    ],
)  # fmt: skip
@pytest.mark.drawn(2)
def test_preprocessed_numbers_that_wrap_or_lie_outside(tmp_path, name, numbers, said):
    runs = {"size": [8, 9], "counts": [10, 5, 57]}
    outlines = [0.0, 0, 5, 0, 5, 5]
    item = {"id": 1, "file_name": "a.jpg", "height": 8, "width": 9}
    thing_of = thing(1, segmentation=[outlines] if name in ("polygon_data", "vertices_offset") else runs)
    arguments = {**write_coco(tmp_path, [item], [thing_of]), "pixelwise_masks": True}
    saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(tmp_path)}
    assert len(samples(ndd, **arguments, **saving)) == 1
    (tmp_path / f"{name}.dat").write_bytes(struct.pack(*numbers))
    with pytest.raises(RuntimeError, match=said):
        samples(ndd, file_root=str(tmp_path), preprocessed_annotations=str(tmp_path), pixelwise_masks=True)


def test_run_lengths_whose_sum_wraps(tmp_path):
    outline = Outline(
        np.zeros((0, 3), np.int32), np.zeros((0, 2), np.float32), [Run(0, 8, 9, np.array([2**62] * 4 + [72]))]
    )
    with pytest.raises(ValueError, match=f"expected 72 pixels in all, got {2**64 + 72}"):
        painted(outline, np.array([1]), 8, 9)


@pytest.mark.oracle
@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_preprocessed_masks_of_real_files(tmp_path, dali):
    options = {"file_root": str(REAL / "images"), "pixelwise_masks": True}
    saving = {"save_preprocessed_annotations": True, "annotations_file": str(REAL / "instances.json")}
    written = []
    for package in (ndd, dali):
        folder = tmp_path / package.__name__
        folder.mkdir()
        samples(package, **options, **saving, save_preprocessed_annotations_dir=str(folder))
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    read = [samples(package, **options, preprocessed_annotations=str(folder)) for package in (ndd, dali)]
    assert_equal(*read)


def test_preprocessed_files_that_are_missing_or_damaged(tmp_path):
    arguments, folder = write_coco(tmp_path, THREE, OBJECTS), tmp_path / "saved"
    folder.mkdir()
    saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": folder}
    reading = {"file_root": tmp_path, "preprocessed_annotations": folder}
    assert len(COCO(**arguments, **saving)) == 3
    for option, file in (("image_ids", "original_ids"), ("polygon_masks", "polygon_data"), ("pixelwise_masks", "h")):
        with pytest.raises(RuntimeError, match=f"{file}.*dat: there is no such file; was it saved with the same"):
            len(COCO(**reading, **{option: True}))
    for option in ({"ratio": False}, {"ltrb": True}, {"images": ["a.jpg"]}, {"annotations_file": "x"}):
        with pytest.raises(RuntimeError, match="is not supported when reading preprocessed annotations"):
            len(COCO(**reading, **option))
    assert len(COCO(**arguments, **saving, pixelwise_masks=True, image_ids=True)) == 3
    options = {**reading, "pixelwise_masks": True, "image_ids": True}
    assert len(samples(ndd, **options)) == 3
    for file in folder.iterdir():
        whole = file.read_bytes()
        for broken in (
            whole[:-1],
            whole[:3],
            b"",
            b"\xff\xff\xff\x7f" + whole[4:],
            whole[:4] + b"\xfb" * len(whole[4:]),
        ):
            file.write_bytes(broken)
            if file.name in ("filenames.dat", "boxes.dat", "labels.dat", "vertices.dat", "original_ids.dat"):
                pass  # other names and numbers are no damage that shows
            else:
                with pytest.raises(RuntimeError, match=r"readers.COCO: "):
                    samples(ndd, **options)
        file.write_bytes(whole)
    with pytest.raises(RuntimeError, match=r"cannot save preprocessed annotations in '.*none'"):
        len(COCO(**arguments, **{**saving, "save_preprocessed_annotations_dir": tmp_path / "none"}))
    with pytest.raises(RuntimeError, match=r"No files found in .*none"):
        len(COCO(file_root=tmp_path, preprocessed_annotations=tmp_path / "none"))


@pytest.mark.oracle
def test_old_names(tmp_path, dali):
    arguments, folder = write_coco(tmp_path, TWO, [thing(1)]), str(tmp_path)
    for package in (ndd, dali):
        with pytest.warns(DeprecationWarning, match="save_img_ids"):
            result = samples(package, **arguments, save_img_ids=True, dump_meta_files=True, dump_meta_files_path=folder)
        assert lists(result) == [[[[1, 2, 3, 4]], [2], [1]], [[], [], [2]]]
        with pytest.warns(DeprecationWarning, match="meta_files_path"):
            assert lists(samples(package, file_root=folder, meta_files_path=folder))[0] == [[[1, 2, 3, 4]], [2]]
        with pytest.raises(TypeError, match="save_img_ids"):
            samples(package, **arguments, save_img_ids=True, image_ids=False)
    with pytest.warns(DeprecationWarning, match="masks"):
        samples(ndd, **arguments, masks=True)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "change",
    [
        {"file_root": None}, {"annotations_file": None}, {"annotations_file": "none.json"},
        {"polygon_masks": True, "pixelwise_masks": True}, {"masks": True, "pixelwise_masks": True},
        {"save_preprocessed_annotations": True}, {"save_preprocessed_annotations_dir": "."}, {"num_shards": 3},
        {"images": ["a.jpg"], "skip_empty": True},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes(tmp_path, dali, change):
    arguments = {**write_coco(tmp_path, TWO, [thing(2)]), **change}
    for package in (ndd, dali):
        with pytest.raises(RuntimeError):
            samples(package, **{name: value for name, value in arguments.items() if value is not None})


GOOD = json.dumps({"images": TWO, "annotations": [thing(1), thing(2, id=42)], "categories": [{"id": 5}]})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (GOOD, "", "another text: Input data was truncated"), (GOOD, GOOD[:-60], "another text: Input data was trunc"),
        (GOOD, "[1, 2]", "another text: Expected `object`, got `array`"), (GOOD, "{}", "missing required field `images`"),
        (GOOD, GOOD + "x", "trailing characters"), (GOOD, "\xff\xfe", "another text: "), (GOOD, "[" * 10**5, "another text"),
        (GOOD, '{"images": {"a": 1}}', r"another text: Expected `array`, got `object` - at `\$.images`"),
        ('"id": 2, "file', '"file', r"image 0 \(id none\): Object missing required field `id`"),
        ('"id": 2, "file', '"\xffid": 2, "file', r"image 0 \(id none\): Object missing required field `id`"),
        ('"file_name": "a.jpg", ', "", r"image 1 \(id 1\): Object missing required field `file_name`"),
        ('"a.jpg"', "17", r"image 1 \(id 1\): Expected `str`, got `int`"),
        ('"id": 42, "image_id": 2', '"id": 42', r"annotation 1 \(id 42\): .*missing required field `image_id`"),
        ('42, "image_id": 2', '42, "image_id": "2"', r"annotation 1 \(id 42\): Expected `int`, got `str`"),
        ('42, "image_id": 2', '42, "image_id": 2.5', r"annotation 1 \(id 42\): Expected `int`, got `float`"),
        ('42, "image_id": 2', f'42, "image_id": {2**70}', r"annotation 1 \(id 42\): Expected `int` <= "),
        ('"image_id": 2, "category_id": 5', '"image_id": 2', r"annotation 1 \(id 42\): .*field `category_id`"),
        ('"categories": [{"id": 5}]', '"categories": [{"name": 5}]', r"category 0 \(id none\): .*field `id`"),
        ("[1, 2, 3, 4]", "[1, 2, 3]", r"annotation 0 \(id 7\): Expected `array` of length 4"),
        ("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]", r"annotation 0 \(id 7\): Expected `array` of length 4"),
        ("[1, 2, 3, 4]", "null", r"annotation 0 \(id 7\): Expected `array`, got `null`"),
        ("[1, 2, 3, 4]", "[1, 2, 3, NaN]", "another text: JSON is malformed"),
        ("[1, 2, 3, 4]", "[1, 2, 3, 1e999]", r"annotation 0 \(id 7\): Number out of range"),
    ],
)  # fmt: skip
def test_broken_files(tmp_path, old, new, said):
    arguments = write_coco(tmp_path, TWO)
    (tmp_path / "instances.json").write_text(GOOD.replace(old, new, 1), encoding="latin-1")
    kind = ValueError if old == "[1, 2, 3, 4]" and "NaN" not in new else RuntimeError
    with pytest.raises(kind) as raised:
        len(COCO(**arguments))
    text = str(raised.value)
    assert re.match(r"readers.COCO: annotations_file '.*instances.json': expected COCO annotations as JSON, got", text)
    assert re.search(said, text), text


def test_a_text_without_its_segmentations(tmp_path):
    """Whatever a segmentation is, and wherever a text is cut off: what is read is what the whole text says."""
    odd = r"""{"info": {"annotations": [{"segmentation": "}]"}]}, "images": [{"id": 1, "file_name": "a}\"[.jpg"}],
        "annotations": [ { "segmentation": [[0.25, 1, 12345678.125, 8]] ,"id":3,"image_id":1,"category_id":5,"bbox":[1,2,3,4]},
        {"image_id":1,"category_id":5,"bbox":[5,6,7,8],"\u0073egmentation":{"size":[4,4],"counts":"]}\\\"0[{"}},
        {"image_id":1,"category_id":6,"bbox":[9,6,7,8]}, {"image_id":1,"category_id":5,"segmentation":null},
        {"image_id":1,"bbox":[5,5,5,5],"segmentation":-1.5e3,"category_id":7}], "categories": [{"id": 5}]}
    """
    path = tmp_path / "instances.json"
    path.write_text(odd)
    index = coco_annotations.annotation_index("COCO", str(path), True)
    assert index["boxes"][:, 0].tolist() == [1, 5, 9, 5]
    assert index["labels"].tolist() == [5, 5, 6, 7]
    assert index["numbers"].tolist() == [0, 1, 2, 4]
    result = [odd[a : a + n] for a, n in zip(index["starts"].tolist(), index["lengths"].tolist(), strict=True)]
    assert result == ["[[0.25, 1, 12345678.125, 8]]", r"""{"size":[4,4],"counts":"]}\\\"0[{"}""", "", "-1.5e3"]
    whole = 0
    for cut in range(len(odd.rstrip()) - 1):
        path.write_text(odd[:cut] + "}")
        try:
            sound = "images" in json.loads(odd[:cut] + "}")
        except ValueError:
            sound = False
        with nullcontext() if sound else pytest.raises((RuntimeError, ValueError), match="expected COCO annotations"):
            coco_annotations.annotation_index("COCO", str(path), True)
        whole += sound
    assert whole == 2  # after the images, and after the annotations


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_no_ordinary_file(tmp_path, kind):
    arguments = write_coco(tmp_path, TWO)
    for name in ("instances.json", "b.jpg"):
        (tmp_path / name).unlink()
        if kind == "device":
            (tmp_path / name).symlink_to("/dev/zero")
        else:
            os.mkfifo(tmp_path / name) if kind == "pipe" else (tmp_path / name).mkdir()
    with pytest.raises(RuntimeError, match=r"instances.json': Is a directory|Not a regular file"):
        len(COCO(**arguments))
    (tmp_path / "i.json").write_text(GOOD)
    epoch = COCO(file_root=tmp_path, annotations_file=tmp_path / "i.json").next_epoch()
    assert len(next(epoch)) == 3
    with pytest.raises(RuntimeError, match=r"sample 1 .*b.jpg"):
        next(epoch)


@pytest.mark.parametrize(
    ("segmentation", "said"),
    [
        ("5:Y5", "got `str`"), ([1, 2, 3, 4], "Expected `array`, got `int`"),
        ([[1, 2, "x", 4]], r"Expected `float`, got `str` - at `\$\[0\]\[2\]`"), ({"size": [10, 20]}, "field `counts`"),
        ({"size": [9, 20], "counts": [180]}, "expected a mask of the image's size, 10 x 20, got 9 x 20"),
        ({"size": [10, 20], "counts": [5, 10, 184]}, "expected 200 pixels in all, got 199"),
        ({"size": [10, 20], "counts": [5, -10, 205]}, "expected 200 pixels in all"),
        ({"size": [10, 20], "counts": "5:Y"}, "expected run lengths as the COCO tools compress them"),
        ({"size": [10, 20], "counts": "5 :Y5"}, "expected run lengths as the COCO tools compress them"),
        ({"size": [10, 20], "counts": "ooooooooooooooooooooooooooooo1"}, "expected run lengths below"),
        ([[1e12, 0, 5, 5, 0, 5]], "polygon of object 0: expected coordinates in pixels"),
    ],
    ids=str,
)  # fmt: skip
def test_broken_segmentations(tmp_path, segmentation, said):
    """They harm the batch of their image only."""
    arguments = write_coco(tmp_path, TWO, [thing(2, segmentation=[SQUARE]), thing(1, segmentation=segmentation)])
    epoch = COCO(**arguments, pixelwise_masks=True).next_epoch()
    with pytest.raises(RuntimeError) as raised:
        next(epoch)
    assert re.match(rf"readers.COCO: sample 0 \({tmp_path}/a.jpg\): .*{said}", str(raised.value)), raised.value
    assert np.asarray(next(epoch)[3])[..., 0].sum() == 2 * 16


def test_images_without_a_size(tmp_path):
    images = [{"id": 1, "file_name": "a.jpg"}, image(2, "b.jpg", None, 0)]
    arguments = write_coco(tmp_path, images, [thing(1)])
    assert len(samples(ndd, **arguments)) == 2
    for option in ("ratio", "pixelwise_masks"):
        with pytest.raises(RuntimeError, match=r"a.jpg.*: expected the height and width of the image, got height 0"):
            next(COCO(**arguments, **{option: True}).next_epoch())


def test_the_annotations_file_changed(tmp_path):
    arguments = write_coco(tmp_path, TWO, [thing(1, segmentation=[SQUARE])])
    reader = COCO(**arguments, polygon_masks=True)
    assert len(reader) == 2
    write_coco(tmp_path, TWO, [])
    with pytest.raises(RuntimeError, match=r"sample 0 .*instances.json has changed since it was indexed"):
        reader[0]


def test_the_index_is_kept(tmp_path, monkeypatch):
    """Segmentations are found again wherever their key stands in the text, and however it is written."""
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))
    pieces = [[[i, 0, 5, i, 9, 9]] for i in range(4)]
    things = [thing(1 + i % 2, segmentation=piece) for i, piece in enumerate(pieces)]
    things[1] = {"segmentation": pieces[1], **things[1], "note": {"segmentation": pieces[2]}, "more": '{"]\\' * 300}
    arguments = write_coco(tmp_path, TWO, [*things, thing(1), {"segmentation": [], **thing(2)}])
    file = tmp_path / "instances.json"
    file.write_text(file.read_text().replace('"segmentation": [[2', '"segmentati\\u006fn" : [[2') + " " * (1 << 20))
    for _ in range(2):
        result = samples(ndd, **arguments, polygon_masks=True)
        assert result[0][4].ravel().tolist() == pieces[0][0] + pieces[2][0]
        assert result[1][4].ravel().tolist() == pieces[1][0] + pieces[3][0]
        assert len(samples(ndd, **arguments)) == 2
        monkeypatch.setattr(coco_annotations, "_built", None)
    assert len(list((tmp_path / "cache").glob("*.npz"))) == 2  # beside `kernels`


def test_run_lengths():
    """Texts of the COCO tools, and masks painted from them."""
    tools = pytest.importorskip("pycocotools.mask")
    generator = np.random.default_rng(3)
    for height, width in ((1, 1), (7, 3), (1, 4000), (97, 41)):
        for smooth in (1, 30):
            mask = np.repeat(generator.integers(0, 2, -(-height * width // smooth)), smooth)[: height * width]
            mask = np.asfortranarray(mask.reshape(height, width).astype(np.uint8))
            counts = counts_of_text(tools.encode(mask)["counts"].decode())
            runs = [Run(0, height, width, counts)]
            empty = np.zeros((0, 3), np.int32), np.zeros((0, 2), np.float32)
            assert np.array_equal(painted(Outline(*empty, runs), np.array([9]), height, width)[..., 0], mask * 9)
    assert len(counts_of_text("")) == 0


@pytest.mark.parametrize(("library", "options"), [("msgspec", {}), ("pycocotools", {"pixelwise_masks": True})])
def test_a_missing_library_is_named(tmp_path, monkeypatch, library, options):
    from ndd.readers.formats import coco_masks

    for part in (coco_annotations._kinds, coco_masks._tools):
        part.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, library, None)
    arguments = write_coco(tmp_path, TWO, [thing(1, segmentation=[SQUARE])])
    with pytest.raises((ImportError, RuntimeError), match=rf"{library}: pip install .*coco"):
        next(COCO(**arguments, **options).next_epoch())
