"""The order of samples against DALI itself."""

import importlib

import numpy as np
import pytest

import ndd
import ndd.readers
from readers.epochs import epoch_of, flat

pytestmark = pytest.mark.oracle


def test_uneven_shards_of_shuffle_after_epoch(numbered, dali):
    """The stream is DALI's; ours cuts it into epochs of the shard's own length."""
    given_ = {"shuffle_after_epoch": True, "num_shards": 3}
    ours = ndd.readers.File(files=numbered(10), **given_)
    theirs = dali.readers.File(files=numbered(10), **given_)
    first = flat([epoch_of(ours) for _ in range(5)])
    second = flat([epoch_of(theirs) for _ in range(4)])
    assert first[:12] == second[:12]
    assert [len(epoch_of(ours)) for _ in range(3)] == [3, 3, 3]


def test_checkpointing_changes_what_is_drawn_after_an_epoch(numbered, dali):
    """Of readers and of pipelines; and a state tells the two orders apart."""
    given_ = {"shuffle_after_epoch": True, "enable_checkpointing": True}
    ours, theirs = (package.readers.File(files=numbered(10), **given_) for package in (ndd, dali))
    expected = [epoch_of(theirs) for _ in range(4)]
    assert [epoch_of(ours) for _ in range(4)] == expected
    ours.reset(2)
    assert [epoch_of(ours), epoch_of(ours)] == expected[2:]
    with pytest.raises(
        ValueError, match="another order: expected shuffle_after_epoch, got shuffle_after_epoch with enable"
    ):
        ndd.readers.File(files=numbered(10), shuffle_after_epoch=True).set_state(ours.get_state())
    runs = []
    for package in ("nvidia.dali", "ndd"):
        main, fn = importlib.import_module(package), importlib.import_module(f"{package}.fn")
        pipe = main.Pipeline(batch_size=5, num_threads=1, device_id=None, enable_checkpointing=True)
        with pipe:
            pipe.set_outputs(*fn.readers.file(files=numbered(10), shuffle_after_epoch=True))
        pipe.build()
        runs.append([[int(np.array(label)[0]) for label in pipe.run()[1]] for _ in range(6)])
    assert runs[0] == runs[1] == [part for epoch in expected[:3] for part in (epoch[:5], epoch[5:])]


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("given_", [{}, {"num_shards": 3}, {"num_shards": 3, "pad_last_batch": True}])
def test_unfinished_epochs_go_on(numbered, batch, given_, dali):
    ours, theirs = (package.readers.File(files=numbered(10), **given_) for package in (ndd, dali))
    for limit in (1, None, None, None):
        assert epoch_of(ours, batch, limit) == epoch_of(theirs, batch, limit)


def test_calls(numbered, dali):
    for given_ in ({}, {"num_shards": 3, "shard_id": 1}, {"num_shards": 3, "shard_id": 1, "pad_last_batch": True}):
        ours, theirs = (package.readers.File(files=numbered(10), **given_) for package in (ndd, dali))
        assert [bytes(memoryview(ours()[0].torch().numpy())) for _ in range(14)] == [
            bytes(memoryview(__import__("numpy").asarray(theirs()[0]))) for _ in range(14)
        ]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    names = "a/1.jpg a/10.jpg a/2.JPG a/x.txt a/sub/3.jpg b/z.png B/y.jpeg .hid/h.jpg c/.dot.jpg c/q.jpg top.jpg "
    names += "ä/u.webp 10/k.jpg 9/k.jpg f/noext f/a.tar.jpg g/x.txt é/ü.jpg f/[x].jpg f/-.jpg f/^.jpg f/a]b.png"
    for name in [*names.split(" "), "e/sp ace.jpg", "a/no\u00a0break\u2003"]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "empty").mkdir()
    (root / "b" / "dir.jpg").mkdir()
    (root / "linked").symlink_to(root / "a")
    (root / "b" / "link.jpg").symlink_to(root / "a" / "1.jpg")
    return root


def listing(package, **given_):
    import numpy as np

    return [(bytes(np.asarray(d)), int(np.asarray(n)[0])) for d, n in package.readers.File(**given_).next_epoch()]


@pytest.mark.parametrize(
    "given_",
    [
        {},
        {"file_filters": "*.jpg"},
        {"file_filters": ["*.jpg", "1*"]},
        {"file_filters": "*.jpg", "case_sensitive_filter": True},
        {"case_sensitive_filter": True},
        {"file_filters": "[0-9].jpg"},
        {"file_filters": "?.jpg"},
        {"file_filters": "*"},
        {"file_filters": "[!1]*.jpg"},
        {"file_filters": "[^1]*.jpg"},
        {"file_filters": "\\[*"},
        {"file_filters": "[]a]*"},
        {"file_filters": "[x^-].jpg"},
        {"file_filters": ".dot*"},
        {"file_filters": "[[:digit:]-].jpg"},
        {"file_filters": "[![:alpha:]]*.jpg"},
        {"file_filters": ["[[:nothing:]]*", "[z-a]*", "[\\]^].jpg", "[a\\]]]b.png"]},
        {"dir_filters": "[[:upper:]]"},
        {"file_filters": ["*.PNG", "*.Webp"]},
        {"dir_filters": "a"},
        {"dir_filters": ["b", "c"]},
        {"dir_filters": "B", "case_sensitive_filter": True},
        {"dir_filters": "?"},
        {"dir_filters": "*"},
    ],
    ids=str,
)
@pytest.mark.drawn(16)
def test_tree(tree, given_, dali):
    expected = listing(dali, file_root=str(tree), **given_)
    assert expected
    assert listing(ndd, file_root=str(tree), **given_) == expected
    assert listing(ndd, file_root=tree, **given_) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a/1.jpg 5\nb/z.png 3\n",
        "a/1.jpg 5\n\n\nb/z.png 3",
        "a/1.jpg\t5\r\nb/z.png 3\r\n",
        "e/sp ace.jpg 4\n",
        "a/1.jpg 2147483647\n",
        "a/1.jpg 010\n",
        "a/1.jpg 1\n   \nb/z.png 2\n",
        "a/no\u00a0break\u2003 7\n",
    ],
    ids=repr,
)
def test_file_list(tree, text, dali):
    path = tree / "list.txt"
    path.write_text(text)
    assert listing(ndd, file_list=str(path)) == listing(dali, file_list=str(path))


@pytest.mark.parametrize(
    "text",
    [
        "  a/1.jpg   5  \n",
        "a/1.jpg\n",
        "a/1.jpg x\n",
        "a/1.jpg 1.5\n",
        "",
        "# c\n",
        "5\n",
        " 5\n",
        "a/1.jpg +7\n",
        "a/1.jpg\u00a03\n",
        "a/1.jpg \u0663\n",
    ],
)
def test_file_list_mistakes(tree, text, dali):
    path = tree / "wrong.txt"
    path.write_text(text)
    for package in (ndd, dali):
        with pytest.raises(RuntimeError):
            listing(package, file_list=str(path))


def test_lists_and_roots(tree, dali):
    root = str(tree)
    for given_ in (
        {"files": ["1.jpg", root + "/b/z.png"], "file_root": root + "/a"},
        {"files": root + "/a/1.jpg"},
        {"files": root + "/a/1.jpg", "labels": 7},
        {"files": [root + "/a/1.jpg"] * 3, "labels": [1, -2, 3]},
        {"files": ["1.jpg"], "file_root": root + "/a", "file_filters": "*.png"},
        {"files": [f"file://{root}/e/sp ace.jpg"]},
    ):
        assert listing(ndd, **given_) == listing(dali, **given_)


MISTAKES = [
    {"files": 3, "foo": 1},
    {"files": 3, "num_shards": 4},
    {"files": 3, "num_shards": 2, "shard_id": 2},
    {"files": 3, "num_shards": 2, "shard_id": -1},
    {"files": 3, "num_shards": 0},
    {"files": 3, "num_shards": -1},
    {},
    {"file_root": "/nonexistent"},
    {"files": 0},
    {"files": 3, "labels": [1]},
    {"files": 3, "file_list": "/x"},
    {"file_list": "/x"},
    {"labels": [1, 2], "file_root": "/tmp"},
    {"files": 3, "random_shuffle": True, "shuffle_after_epoch": True},
    {"files": 3, "stick_to_shard": True, "shuffle_after_epoch": True},
    {"files": ["/nonexistent/a"]},
    {"files": 3, "device": "mixed"},
    {"files": 3, "seed": "a"},
    {"files": 3, "prefetch_queue_depth": 0},
    {"files": 3, "max_batch_size": 0},
    {"files": 3, "tensor_init_bytes": -5},
    {"files": 3, "dir_filters": [], "file_root": "/tmp"},
]


@pytest.mark.parametrize("given_", MISTAKES, ids=str)
def test_same_error_type(numbered, given_, dali):
    given_ = dict(given_)
    if isinstance(given_.get("files"), int):
        given_["files"] = numbered(given_["files"])
    errors = []
    for package in (dali, ndd):
        try:
            listing(package, **given_)
            errors.append(None)
        except Exception as error:
            errors.append(type(error))
    assert errors[0] is errors[1]


def test_methods(dali):
    import inspect

    for method in ("next_epoch", "get_metadata", "get_state", "set_state"):
        first = inspect.signature(getattr(ndd.readers.File, method)).parameters
        second = inspect.signature(getattr(dali.readers.File, method)).parameters
        own = [p for p in first.values() if p.name != "last_batch"]
        assert [(p.name, p.kind) for p in own] == [(p.name, p.kind) for p in second.values()]
