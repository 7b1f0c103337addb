"""Reading out of mapped files: the bytes, files that get shorter, and every other handler of SIGBUS."""

import json
import mmap
import os
import signal

import numpy as np
import pytest
import warm_interpreter

import ndd
from ndd.readers.files import file_reading
from ndd.readers.files.file_reading import OpenFiles
from ndd.readers.formats import mapped_files
from ndd.readers.formats.mapped_files import LEAST, Mapping

pytestmark = pytest.mark.skipif(not mapped_files.AVAILABLE, reason="files are not mapped on this system")
SIZE = 40 * LEAST + 123


@pytest.fixture
def path(tmp_path):
    np.random.default_rng(0).integers(0, 256, SIZE, np.uint8).tofile(tmp_path / "data")
    file = OpenFiles([str(tmp_path / "data")], mapped=True)
    if file._mapping is None:
        pytest.skip("temporary files are not on a file system of this machine")
    return tmp_path / "data"


def read(file, ranges):
    offsets, sizes = np.array(ranges).T
    found = file.read(np.zeros(len(ranges), np.int64), offsets, sizes)
    return [str(piece) if isinstance(piece, OSError) else bytes(piece) for piece in found]


RANGES = [
    (0, LEAST),
    (1, LEAST + 65),
    (99, 7),
    (63, 3 * LEAST + 1),
    (SIZE - LEAST, LEAST),
    (20 * LEAST - 5, 18 * LEAST),
]


def test_ranges_are_those_of_the_file_at_any_address(path):
    whole = path.read_bytes()
    file = OpenFiles([str(path)], mapped=True)
    assert read(file, RANGES) == [whole[at : at + size] for at, size in RANGES]
    joined = file.read_joined(np.zeros(3, np.int64), [33, LEAST + 35, 5 * LEAST], [LEAST, 4 * LEAST, LEAST])
    assert [bytes(j) for j in joined] == [
        whole[a : a + n] for a, n in ((33, LEAST), (LEAST + 35, 4 * LEAST), (5 * LEAST, LEAST))
    ]
    assert not file._mapping._given_up
    assert "ends too early" in read(file, [(SIZE - LEAST, 2 * LEAST)])[0]


def test_a_file_that_gets_shorter_while_it_is_copied(path):
    """The copy meets pages that are gone: zeros for who copies, and from then on what the file says."""
    whole = path.read_bytes()
    file = OpenFiles([str(path)], mapped=True)
    assert read(file, RANGES)[0] == whole[:LEAST]
    mapping, end = file._mapping, 30 * LEAST
    mapped = (np.ctypeslib.ctypes.c_ubyte * SIZE).from_address(mapping._address)
    os.truncate(path, end)
    assert bytes(mapped[end - 9 : end + 9]) == whole[end - 9 : end] + bytes(9)  # what a copy would do between two looks
    first, second = read(file, [(end - LEAST, LEAST), (end - LEAST, 2 * LEAST)])
    assert first == whole[end - LEAST : end]
    assert "ends too early" in second
    path.write_bytes(whole)  # as long as before: a mapping that lied is not used again
    assert mapping._given_up
    assert read(file, RANGES) == [whole[at : at + size] for at, size in RANGES]
    file.close()
    assert mapped_files._table[mapping._row, 0] == 0


def test_a_file_that_is_looked_at_and_gets_shorter(path):
    """What was seen in zeros is forgotten; the file is looked at again as it is now."""
    whole, sizes = path.read_bytes(), []

    def look(data):
        sizes.append(len(data))
        if len(sizes) == 1:
            os.truncate(path, 5 * LEAST)
        return bytes(data[LEAST : 7 * LEAST])

    assert file_reading.look_at(str(path), look) == whole[LEAST : 5 * LEAST]
    assert sizes == [SIZE, 5 * LEAST]
    with pytest.raises(FileNotFoundError):
        file_reading.look_at(str(path) + "0", look)


def test_a_record_file_that_is_cut_off_under_its_reader(tmp_path):
    """The records that are gone are left out, the others are read; and all again when the file is whole again."""
    size, count = 2 * LEAST, 6
    head = np.array([0xCED7230A, size - 8], "<u4").tobytes() + bytes(24)
    bodies = np.random.default_rng(0).integers(0, 256, (count, size - len(head)), np.uint8)
    whole = b"".join(head + body.tobytes() for body in bodies)
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    index.write_text("".join(f"{i} {i * size}\n" for i in range(count)))
    for dont_use_mmap in (False, True):
        path.write_bytes(whole)
        reader = ndd.readers.MXNet(path=path, index_path=index, dont_use_mmap=dont_use_mmap, on_error="skip")
        assert (reader[5][0].torch().numpy() == bodies[5]).all()
        file = reader._session.opened()[0]._files(str(path), not dont_use_mmap)
        assert (file._mapping is None) == dont_use_mmap
        os.truncate(path, 4 * size + LEAST)
        assert [batch[0].batch_size for batch in reader.next_epoch(batch_size=3)] == [3, 1]
        assert len(reader.skipped) == 2
        path.write_bytes(whole)
        assert (reader.fetch(range(count))[0].torch().numpy() == bodies).all()


PROGRAM = """
import ctypes, faulthandler, json, mmap, os, signal, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
from ndd.readers.formats import mapped_files
from ndd.readers.files.file_reading import OpenFiles

none = np.zeros(1, np.int64)
mapped_files._read_mapped(0, 0, 0, none, none, none, np.zeros(1, np.uint8), none, np.zeros(3, np.int64))  # compiles, once
folder, size = sys.argv[1], int(sys.argv[2])

def run(what, path):
    if "before" in what:
        faulthandler.enable()
    if "fork" in what:
        before = OpenFiles([path], mapped=True)
        if child := os.fork():
            os.kill(os.getpid(), os.WTERMSIG(os.waitpid(child, 0)[1]))
    file = OpenFiles([path], mapped=True)
    before = None
    read = lambda: len(file.read([0], [0], [size])[0])
    assert signal.getsignal(signal.SIGBUS) == signal.SIG_DFL
    assert read() == size
    if "after" in what:
        faulthandler.enable()
        read()
    if "disabled" in what:
        faulthandler.disable()
        read()
    if "python" in what:
        signal.signal(signal.SIGBUS, lambda *_: print("python's own", flush=True))
        read()

    def ours():
        os.truncate(path, 4096)
        assert ctypes.string_at(file._mapping._address + 8192, 9) == bytes(9)
        print("went on", flush=True)

    thread = threading.Thread(target=ours)
    thread.start()
    thread.join()
    if "sent" in what:
        os.kill(os.getpid(), signal.SIGBUS)
    if "foreign" in what:
        mine = mmap.mmap(os.open(path, os.O_RDONLY), 4096, prot=mmap.PROT_READ)
        os.truncate(path, 0)
        mine[0]
    print("end", flush=True)

said = {}
for what in sys.argv[3:]:
    path = os.path.join(folder, what)
    open(path, "wb").write(bytes(size))
    streams = [os.open(f"{path} {name}", os.O_RDWR | os.O_CREAT) for name in ("out", "err")]
    child = os.fork()
    if not child:
        os.dup2(streams[0], 1), os.dup2(streams[1], 2)
        run(what, path)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said[what] = [status, *(os.pread(stream, 1 << 16, 0).decode() for stream in streams)]
print(json.dumps(said))
"""
DIES = ["foreign", "foreign before", "foreign after", "foreign fork", "sent"]
LIVES = ["before disabled", "sent python"]


def test_other_handlers_see_what_is_not_ours(path):
    """A fault in a mapping of ours is survived, on any thread; any other one, and the signal itself, ends in the handler
    that was there before, or as if there were none."""
    done = warm_interpreter.run(PROGRAM, str(path.parent), str(SIZE), *DIES, *LIVES)
    assert done.returncode == 0, done.stderr
    for what, (status, out, err) in json.loads(done.stdout).items():
        assert out.startswith("went on\n"), (what, err)
        assert status == (-signal.SIGBUS if what in DIES else 0), (what, err)
        assert ("Bus error" in err) == (what in ("foreign before", "foreign after")), (what, err)
        assert out.endswith("end\n") == (what in LIVES), what
        assert ("python's own" in out) == ("python" in what), what


def test_what_is_not_mapped(path, monkeypatch):
    """Short files, other file systems, more than a share of the kernel's memory, and files where all is in use."""
    with open(path, "rb") as file:
        handle = file.fileno()
        assert Mapping.of(handle, LEAST - 1) is None
        monkeypatch.setattr(mapped_files, "_MOST_BYTES", SIZE - 1)
        assert Mapping.of(handle, SIZE) is None
        monkeypatch.undo()
        held = []
        while (mapping := Mapping.of(handle, SIZE)) is not None:
            held.append(mapping)
        assert 0 < len(held) <= len(mapped_files._table)
        assert OpenFiles([str(path)], mapped=True)._mapping is None
        for mapping in held:
            mapping.close()
        mapping = Mapping.of(handle, SIZE)
        assert mapping is not None
        mapping.close()
        monkeypatch.setattr(mapped_files, "_LOCAL", set())
        assert Mapping.of(handle, SIZE) is None
    assert mmap.PAGESIZE <= LEAST
