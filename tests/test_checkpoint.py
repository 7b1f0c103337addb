"""`Checkpoint`: the same scenarios as DALI's, and what must hold when a process dies or a file lies."""

from __future__ import annotations

import json
import os
import sys

import pytest

import ndd

PLACE = "Philox_0000000000000001_0000000000000000:0000000000000000_3"
FILE = {"version": 2, "states": {"__op_0": {"state": PLACE, "type": "RNG"}, "k": {"state": "7", "type": None}}}


class Own:
    """A user's object."""

    def __init__(self, value="0"):
        self.value = value

    def get_state(self, *, cuda_stream=None):
        return self.value

    def set_state(self, value):
        if value == "bad":
            raise ValueError("bad!")
        self.value = value


class Other(Own):
    pass


def registering(m, do):
    c, rng = m.checkpoint.Checkpoint(), m.random.RNG(seed=1)
    do(lambda: c.register(rng))
    do(lambda: c.register(rng))
    do(lambda: c.register(Own(), "x"))
    do(lambda: c.register(Other(), "x"))
    do(lambda: c.register(rng, "y"))
    do(lambda: c.register(Own(), "__op_7"))
    do(lambda: c.register(Own(), ""))
    do(lambda: c.register(Own()))
    do(lambda: (c.names, len(c), "x" in c, "y" in c))
    do(lambda: c.get_state("x"))
    do(lambda: c.get_state("none"))


def completed(m, do):
    c, own = m.checkpoint.Checkpoint(), Own("3")
    do(lambda: c.serialize())
    do(lambda: c.collect())
    do(lambda: (c.is_complete, c.is_loaded))
    c.clear()
    c.register(own, "own")
    c.register(m.random.RNG(seed=1))
    c.collect()
    do(lambda: (c.is_complete, c.is_loaded, c.serialize()))
    do(lambda: c.register(Own()))
    do(lambda: c.register(Own(), "new"))
    do(lambda: c.register(own))
    do(lambda: c.register(Own("9"), "own"))
    do(lambda: c.set_state("unknown", "a"))
    do(lambda: c.set_state("own", "44", 5))
    do(lambda: c.set_state("own", "44", Other))
    do(lambda: c.restore())
    do(lambda: c.set_state("own", "44", Own))
    do(lambda: c.restore())
    do(lambda: (c.is_complete, c.get_state("own")))


def restoring(m, do):
    c, own = m.checkpoint.Checkpoint(), Own()
    do(lambda: c.restore())
    c.set_state("a", "5")
    do(lambda: c.restore())
    c.register(own, "a")
    do(lambda: own.value)
    c.register(Own(), "b")
    do(lambda: c.restore())
    do(lambda: c.serialize())
    c.set_state("a", "bad")
    do(lambda: c.register(own, "a"))
    do(lambda: c.register(own, "a"))
    c.set_state("c", "5")
    do(lambda: c.collect())
    do(lambda: (c.names, c.is_complete))


def loaded(m, do):
    c, rng = m.checkpoint.Checkpoint(), m.random.RNG(seed=9)
    c.deserialize(json.dumps({**FILE, "states": {**FILE["states"], "m": {"state": "7", "type": "Own"}}}))
    do(lambda: (c.is_loaded, c.is_complete, c.names))
    do(lambda: c.register(rng))
    do(lambda: str(rng.state))
    do(lambda: c.register(Own()))
    do(lambda: c.register(Own(), "unknown"))
    do(lambda: c.register(Other(), "m"))
    do(lambda: c.register(Own(), "k"))
    do(lambda: c.names)
    do(lambda: c.collect())


def texts(m, do):
    for text in (
        "", "{}", "[]", '{"version":1,"states":{}}', '{"version":2}', '{"version":2,"states":[]}',
        '{"version":2,"states":{"a":1}}', '{"version":2,"states":{"a":{}}}', '{"version":2,"states":{}}',
        '{"version":2,"states":{"a":{"state":"x","type":5}}}', '{"version":2,"states":{"a":{"state":"x"}}}',
    ):  # fmt: skip
        c = m.checkpoint.Checkpoint()
        do(lambda c=c, text=text: c.deserialize(text))
        do(lambda c=c: c.is_loaded)


def files(m, do):
    c = m.checkpoint.Checkpoint()
    do(lambda: c.save("none_{seq}"))
    c.set_state("a", "1")
    for pattern in (
        "a_{seq:03d}.json",
        "h{seq:x}",
        "[a-z]{seq}.json",
        "{{q}}{seq}",
        "deep/er/{seq}",
        "{seq}",
        "+{seq:,}",
    ):
        for _ in range(2):
            do(lambda pattern=pattern: bool(m.checkpoint.Checkpoint().load(pattern)))
            do(lambda pattern=pattern: bool(c.save(pattern)))
        do(lambda pattern=pattern: m.checkpoint.Checkpoint().load(pattern) == sorted(os.listdir("."))[0] and None)
    for pattern in ("{seq}{seq}", "{other}", "{}", "gone/{seq}"):
        do(lambda pattern=pattern: m.checkpoint.Checkpoint().load(pattern))
    for name in ("b_7", "b_x", "b_-9", "b_1_0", "b_08", "cb_9"):
        with open(name, "w") as file:
            file.write(json.dumps(FILE))
    do(lambda: m.checkpoint.Checkpoint().load("b_{seq}"))
    do(lambda: m.checkpoint.Checkpoint().load("plain_{seq}"))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "scenario", [registering, completed, restoring, loaded, texts, files], ids=lambda s: s.__name__
)
def test_as_dali(scenario, tmp_path, monkeypatch):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    result = []
    for name, package in (("ndd", ndd), ("dali", dali)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        arguments = []

        def do(call, arguments=arguments):
            try:
                arguments.append(call())
            except Exception as error:
                arguments.append(ValueError if isinstance(error, ValueError) else type(error))

        scenario(package, do)
        result.append(arguments)
    assert result[0] == result[1]


def test_words_of_errors():
    c = ndd.checkpoint.Checkpoint()
    c.register(Own(), "x")
    with pytest.raises(TypeError, match=r"replace operator 'x' of type 'Own'.*'Other'"):
        c.register(Other(), "x")
    with pytest.raises(TypeError, match="get_state"):
        c.register(object())
    c.collect()
    with pytest.raises(RuntimeError, match="completed"):
        c.register(Own())
    c.deserialize(json.dumps(FILE))
    with pytest.raises(RuntimeError, match="no corresponding registered ops"):
        c.restore()
    with pytest.raises(KeyError, match="loaded checkpoint has no state"):
        c.register(Own(), "z")
    with pytest.raises(TypeError, match=r"Type mismatch.*'RNG'.*'Own'"):
        ndd_loaded().register(Own())
    for text, said in (
        ('{"version":3,"states":{}}', "version"),
        ('{"version":2,"states":{"a":{"state":5}}}', "Invalid checkpoint entry"),
        ('{"version":2,"states":{"a":{"state":"x","type":5}}}', "Invalid `type`"),
        ("[" * 100000, "expected JSON"),
    ):
        with pytest.raises(ValueError, match=said):
            c.deserialize(text)
    assert c.get_state("x") is None


def ndd_loaded():
    c = ndd.checkpoint.Checkpoint()
    c.deserialize(json.dumps(FILE))
    return c


def test_a_loop_goes_on(tmp_path):
    """Readers, a generator and an object of the user's, in one file."""

    for i in range(10):
        (tmp_path / f"{i}.txt").write_text(str(i))
    names = [str(tmp_path / f"{i}.txt") for i in range(10)]

    def result():
        reader = ndd.readers.File(files=names, random_shuffle=True, enable_checkpointing=True)
        rng, own, c = ndd.random.RNG(seed=3), Own(), ndd.checkpoint.Checkpoint()
        return reader, rng, own, c

    def steps(reader, rng, own):
        for _, labels in reader.next_epoch(batch_size=3):
            own.value = str(int(own.value) + 1)
            noise = ndd.random.uniform(range=(0, 1), batch_size=3, rng=rng)
            yield labels.torch().flatten().tolist(), noise.torch().tolist(), own.value

    reader, rng, own, c = result()
    for op, name in ((reader, "reader"), (rng, None), (own, "own")):
        c.register(op, name)
    epoch = steps(reader, rng, own)
    next(epoch)
    c.collect()
    c.save(tmp_path / "{seq}.json")
    expected = list(epoch)
    reader, rng, own, c = result()
    c.load(tmp_path / "{seq}.json")
    for op, name in ((reader, "reader"), (rng, None), (own, "own")):
        c.register(op, name)
    assert list(steps(reader, rng, own)) == expected


def test_numbers_go_on_and_nothing_is_overwritten(tmp_path):
    c = ndd.checkpoint.Checkpoint()
    c.set_state("a", "1")
    assert [os.path.basename(c.save(tmp_path / "s{seq:02d}.json")) for _ in range(2)] == ["s00.json", "s01.json"]
    (tmp_path / "s07.json").write_text("{")
    assert c.save(tmp_path / "s{seq:02d}.json").endswith("s08.json")
    assert c.save(tmp_path / "plain.json").endswith("plain.json")
    with pytest.raises(FileExistsError, match="nothing is overwritten"):
        c.save(tmp_path / "plain.json")
    with pytest.raises(ValueError, match="name of the file"):
        c.save(tmp_path / "{seq}" / "a.json")
    with pytest.raises(ValueError, match="integer"):
        c.save(tmp_path / "{seq:.2f}")
    (tmp_path / "s09.json").write_text('{"version": 2, "states": {"a": {"sta')
    with pytest.raises(ValueError, match=r"s09\.json: Invalid checkpoint"):
        ndd.checkpoint.Checkpoint().load(tmp_path / "s{seq:02d}.json")


DYING = """
import os, sys, ndd.checkpoint as m
c = m.Checkpoint()
c.set_state("a", "x" * 100000)
step, calls = int(sys.argv[1]), 0
def dies(name):
    real = getattr(os, name)
    def call(*args, **kwargs):
        global calls
        calls += 1
        if calls == step:
            os._exit(9)
        return real(*args, **kwargs)
    setattr(os, name, call)
for name in ("makedirs", "listdir", "fsync", "link", "unlink", "open", "close"):
    dies(name)
c.save("s{seq}.json")
"""


def test_a_crash_at_any_step_leaves_the_last_one(tmp_path, monkeypatch):
    """The process ends before each of the calls that touch the disk: what can be loaded is whole."""
    monkeypatch.chdir(tmp_path)
    c = ndd.checkpoint.Checkpoint()
    c.set_state("a", "first")
    c.save("s{seq}.json")
    ends = []
    for step in range(1, 16):
        child = os.fork()
        if not child:
            try:
                sys.argv = ["", str(step)]
                exec(DYING, {"__name__": "dying"})
            finally:
                os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        again = ndd.checkpoint.Checkpoint()
        again.load("s{seq}.json")
        assert len(again._states["a"][0]) in (5, 100000)
    assert ends.index(0) >= 6, ends
    assert ends[-1] == 0, ends
