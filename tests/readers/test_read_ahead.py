"""Threads: none before the first sample, none after the reader is gone, none in a forked child; nothing hangs."""

import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import warm_interpreter
from memory import least_growth
from waiting import let_read_on, wait_until

import ndd
from ndd.read_ahead import _running
from ndd.readers import File, Output, Reader, RecordStore
from ndd.readers.epochs import read_ahead
from ndd.readers.sampling import sampler
from readers.epochs import epoch_of, labels_of


def reader_threads():
    gc.collect()
    return [t for t in threading.enumerate() if t.name.startswith("ndd-reader")]


@pytest.fixture(autouse=True)
def own_threads():
    """The threads of this test's readers; in the end there are none. Those of other tests may still be about to end."""
    before = set(reader_threads())

    def own():
        return set(reader_threads()) - before

    yield own
    wait_until(lambda: not own())


class Slow(RecordStore):
    """Records that say who read them and how long they lived."""

    def __init__(self, count, delay=0.0, broken=None):
        self.count, self.delay, self.broken = count, delay, broken
        self.asked = []
        self.alive = []

    def __len__(self):
        return self.count

    def record(self, number):
        self.asked.append(number)
        time.sleep(self.delay)
        if number == self.broken:
            raise OSError(f"record {number} is broken")
        data = np.full(1000, number, np.int32)
        self.alive.append(weakref.ref(data))
        return data, np.array([number], np.int32)

    def source(self, number):
        return f"memory:{number}"


class Memory(Reader):
    def _open(self, *, store):
        return store

    @classmethod
    def _outputs(cls, **arguments):
        return Output("data", ndd.int32, 1), Output("number", ndd.int32, 1)


def test_the_last_of_many_batches_is_read_in_the_middle_of_an_iteration():
    """The first half is the loop's: a thread that read meanwhile would take the interpreter from it."""
    store = Slow(1000)
    reader = Memory(store=store)
    read, record = [], store.record
    store.record = lambda number: (read.append(time.perf_counter()), record(number))[1]
    epoch = reader.next_epoch(batch_size=1)
    next(epoch)
    ahead = reader._session.ahead
    ahead.peek(4)
    let_read_on(reader)
    for k in range(6):
        time.sleep(0.06)
        count, taken = len(read), time.perf_counter()
        next(epoch)
        let_read_on(reader)
        assert len(read) == count + 1
        if k:
            assert read[-1] - taken >= 0.029
    for _ in range(3):  # now several are missing, and threads read at once
        next(epoch)
    assert ahead._pause() is None


def test_no_thread_before_and_none_after(numbered, own_threads):
    reader = File(files=numbered(8))
    epoch = reader.next_epoch(batch_size=2)
    reader.get_metadata()
    assert not own_threads()
    next(epoch)
    assert own_threads()
    del reader
    gc.collect()
    next(epoch)  # the epoch keeps its reader
    del epoch


def test_reset_stops_the_threads(numbered, own_threads):
    reader = File(files=numbered(8))
    epoch_of(reader, 2)
    reader.reset()
    wait_until(lambda: not own_threads())
    epoch_of(reader, 3)


def test_batches_are_read_while_the_user_works():
    store = Slow(64, 0.002)
    reader = Memory(store=store, prefetch_queue_depth=3)
    epoch = reader.next_epoch(batch_size=4)
    next(epoch)
    wait_until(lambda: len(store.asked) >= 4 + 4 * 4)
    time.sleep(0.05)
    assert len(store.asked) == 4 + 4 * 4  # and no more than was asked for
    next(epoch)
    wait_until(lambda: len(store.asked) >= 4 + 5 * 4)


def test_what_was_handed_over_is_not_kept(own_threads):
    store = Slow(32)
    reader = Memory(store=store)
    for _value in reader.next_epoch(batch_size=4):
        del _value
        gc.collect()
    assert sum(ref() is not None for ref in store.alive) <= 4 * 3
    reader.reset()
    wait_until(lambda: not own_threads())
    gc.collect()
    assert not any(ref() is not None for ref in store.alive)


def test_an_error_in_a_record_names_it():
    reader = Memory(store=Slow(20, broken=13))
    epoch = reader.next_epoch(batch_size=4)
    seen = []
    for _ in range(5):
        try:
            seen.append(labels_of(next(epoch))[0])
        except RuntimeError as error:
            seen.append(str(error))
    assert seen[:3] == [0, 4, 8]
    assert seen[4] == 16
    assert "readers.Memory: sample 13 (memory:13)" in seen[3]
    assert "record 13 is broken" in seen[3]


def test_an_error_in_the_store_itself():
    class Broken(Slow):
        def records(self, numbers):
            raise ValueError("the whole store is broken")

    with pytest.raises(RuntimeError, match="the whole store is broken"):
        next(Memory(store=Broken(20)).next_epoch())


def test_results_do_not_depend_on_timing(numbered):
    class Uneven(Slow):
        def record(self, number):
            time.sleep((number * 7 % 5) / 1000)
            return super().record(number)

    expected = epoch_of(File(files=numbered(13), random_shuffle=True, initial_fill=5))
    reader = Memory(store=Uneven(13), random_shuffle=True, initial_fill=5)
    assert epoch_of(reader) == expected


def test_two_threads_share_a_reader(numbered):
    reader = File(files=numbered(10))
    list(reader.next_epoch())  # locks the mode
    seen, epochs = [], [reader.next_epoch() for _ in range(4)]

    def work(epoch):
        for value in epoch:
            seen.append(labels_of(value))

    threads = [threading.Thread(target=work, args=(epoch,)) for epoch in epochs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(list(range(10)) * 4)


def test_threads_share_an_epoch(numbered, monkeypatch):
    reader = File(files=numbered(10))
    epoch, begin, seen = reader.next_epoch(batch_size=2), reader._session.begin_epoch, []
    monkeypatch.setattr(reader._session, "begin_epoch", lambda *given_: (begin(*given_), time.sleep(0.05))[0])

    def work():
        seen.extend(labels_of(value) for value in iter(lambda: next(epoch, None), None))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_many_readers_leave_nothing(numbered, own_threads):
    files = numbered(16)
    opened = len(os.listdir("/proc/self/fd"))
    for _ in range(30):
        epoch_of(File(files=files), 3, limit=2)
    gc.collect()
    wait_until(lambda: not own_threads())
    assert len(os.listdir("/proc/self/fd")) < opened + 30


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_ctrl_c_while_waiting_loses_nothing():
    class Held(Slow):
        def record(self, number):
            if number > 1:
                released.wait(60)
            return super().record(number)

    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupted():  # the timer starts inside what catches it
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        next(epoch)

    released = threading.Event()
    epoch = Memory(store=Held(12)).next_epoch(batch_size=2)
    assert labels_of(next(epoch)) == [0, 1]
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                interrupted()
    finally:
        signal.signal(signal.SIGALRM, before)
        released.set()
    assert [labels_of(value) for value in epoch] == [[2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_goes_on(numbered):
    reader = File(files=numbered(10))
    epoch = reader.next_epoch(batch_size=2)
    next(epoch)
    child = os.fork()
    if child == 0:
        ok = [labels_of(v) for v in epoch] == [[2, 3], [4, 5], [6, 7], [8, 9]]
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert [labels_of(v) for v in epoch] == [[2, 3], [4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize("how", ["raise SystemExit(3)", "os.fork() or sys.exit(0)"])
def test_the_interpreter_exits(numbered, how):
    code = f"""
import logging, os, sys, warnings
logging.getLogger("ndd").setLevel(logging.ERROR)  # where caches are empty, a line says that kernels are compiled
warnings.simplefilter("ignore")
from ndd.readers import File
reader = File(files={numbered(10)!r} * 100)
epoch = reader.next_epoch(batch_size=5)
next(epoch)
{how}
"""
    done = warm_interpreter.run(code, has_ndd=True)
    assert done.returncode == (3 if "SystemExit" in how else 0)
    assert not done.stderr


@pytest.mark.slow
def test_memory_is_flat(tmp_path):
    for i in range(64):
        (tmp_path / f"{i}.bin").write_bytes(os.urandom(60_000))
    reader = File(files=sorted(map(str, tmp_path.iterdir())), random_shuffle=True)

    def epochs(count):
        for _ in range(count):
            for _value in reader.next_epoch(batch_size=16):
                pass

    epochs(50)
    assert least_growth(lambda: epochs(120)) < 3e6


def test_hand_over_is_cheap(tmp_path):
    """The caller's share for a batch that is ready: a few microseconds a sample."""
    for i in range(64):
        (tmp_path / f"{i}.bin").write_bytes(b"x" * 1000)
    reader = File(files=sorted(map(str, tmp_path.iterdir())))
    best = 1.0
    for _ in range(20):
        epoch = reader.next_epoch(batch_size=64)
        let_read_on(reader)
        start = time.thread_time()
        next(epoch)
        best = min(best, time.thread_time() - start)
    assert best < 64 * 20e-6  # 64 * 3.5e-6 on a machine with 26 waiting for its two cores


@pytest.mark.parametrize("place", ["_may_prepare", "_prepare", "_read"])
def test_a_thread_without_memory_goes_on(monkeypatch, place):
    """A MemoryError at any place in a thread of the reader: nothing is lost, and nobody waits for a dead thread."""
    usual, left = getattr(read_ahead.RecordReadAhead, place), iter(range(2))

    def short_of_memory(self, *part):
        if threading.current_thread().name.startswith("ndd-reader") and next(left, None) is not None:
            raise MemoryError
        return usual(self, *part)

    monkeypatch.setattr(read_ahead.RecordReadAhead, place, short_of_memory)
    reader = Memory(store=Slow(40))
    assert epoch_of(reader, 8) == [list(range(i, i + 8)) for i in range(0, 40, 8)]
    assert next(left, None) is None


def test_a_reader_in_a_handler_of_atexit_that_runs_after_ours_is_an_error():
    """It hung: the threads that read had ended before."""
    code = """
import atexit, logging, signal
logging.getLogger("ndd").setLevel(logging.ERROR)  # where caches are empty, a line says that kernels are compiled
def late():
    signal.alarm(60)  # it is to end, and a start alone can take 30 s on a busy machine
    assert len(reader) == 9
    for what in (lambda: next(reader.next_epoch(batch_size=4)), lambda: reader.fetch([1, 2])):
        try:
            what()
        except RuntimeError as error:
            print(str(error)[:60])
atexit.register(late)
import ndd
reader = ndd.readers.File(files=[ndd.__file__] * 9)
for _ in reader.next_epoch(batch_size=4):
    pass
"""
    done = warm_interpreter.run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "a reader was asked for data while the program ends, when its\n" * 2


def test_another_thread_comes_only_where_records_take_time():
    ahead = read_ahead.RecordReadAhead(Slow(8), lambda: None, 4, 2)
    for seconds, threads in ((2e-6, 0), (2e-5, 3)):
        ahead._seconds = seconds
        for _ in range(9):
            ahead._ask_for_thread(3)
        assert len(ahead._threads) == threads
    ahead.stop()


@pytest.mark.parametrize("count", [1, 4])
def test_what_a_record_takes_does_not_depend_on_how_a_batch_is_cut(monkeypatch, count):
    """A job is a share of the batch: 8 records in 4 jobs of 2 us each take 1 us, as in one job of 8."""

    class Cut:
        def __init__(self):
            self.count = count

        def run(self, job):
            clock[0] += 8e-6 / count

        def records(self):
            return [(np.zeros(3), np.zeros(1, np.int32))] * 8

    clock, store = [0.0], Slow(8)
    store.jobs = lambda numbers: Cut()
    monkeypatch.setattr(read_ahead.time, "perf_counter", lambda: clock[0])
    ahead = read_ahead.RecordReadAhead(store, lambda: None, 8, 2)
    assert len(ahead.read(range(8))) == 8
    assert ahead._seconds == pytest.approx(1e-6)
    ahead.stop()


def test_parts_of_a_batch_have_few_sizes():
    """So that the pool of host memory keeps few blocks: whole batches, halves and quarters."""
    ahead = read_ahead.RecordReadAhead(Slow(8), lambda: None, 4, 2)
    result = {}
    for threads in range(1, 7):
        ahead._threads = [threading.current_thread()] * threads
        sizes = set()
        for seconds in np.arange(0, 1e-4, 1e-6):
            ahead._seconds = seconds
            parts = ahead._cut(read_ahead._Group([(list(range(240)), sampler.Position())]))
            assert [start for _, start, _ in parts] == list(range(0, 240, 240 // len(parts)))
            sizes.add(len(parts))
        result[threads] = sizes
    assert result == {1: {1}, 2: {1, 2}, 3: {1, 2}, 4: {1, 2, 4}, 5: {1, 2, 4}, 6: {1, 2, 4}}
    ahead.stop()


@pytest.mark.parametrize(("room", "together"), [(1 << 26, 16), (9 * 4004, 8), (3000, 4)])
def test_a_store_that_wants_many_records_at_once(monkeypatch, room, together):
    """Small batches are read several together, if they are small in bytes too; each is handed over as it would be alone."""
    monkeypatch.setattr(read_ahead, "_BYTES_AT_ONCE", room)
    calls = []

    class Far(Slow):
        at_once = 16

        def records(self, numbers):
            calls.append(len(numbers))
            return super().records(numbers)

    stream = iter(range(1000))

    class Stream:
        position = property(lambda self: None)

        def take(self):
            return np.array([next(stream) for _ in range(4)])

    ahead = read_ahead.RecordReadAhead(Far(1000), Stream, 4, 2)
    result = [ahead.next() for _ in range(12)]
    assert [step.numbers for step in result] == [list(range(k, k + 4)) for k in range(0, 48, 4)]
    assert [[int(label[0]) for _, label in step.records] for step in result] == [step.numbers for step in result]
    wait_until(lambda: ahead.peek(3) is not None)
    seen = [ahead.peek(k) for k in (3, 1, 2)]
    assert [seen[1], seen[2], seen[0]] == [ahead.next() for _ in range(3)]
    assert (calls[0], max(calls)) == (4, together)
    ahead.stop()


def test_a_slow_request_keeps_no_others_waiting():
    """The records of a store after one that has no answer yet: eight times as many as are asked for at once."""
    others = threading.Event()
    seen = []

    class Far(Slow):
        at_once, threads = 4, 8

        def records(self, numbers):
            seen.extend(numbers)
            if len(seen) >= 8 * self.at_once:
                others.set()
            if 0 in numbers:
                assert others.wait(60)
            return super().records(numbers)

    order = sampler.Order(sampler.Shards(1000))
    ahead = read_ahead.RecordReadAhead(Far(1000), lambda: sampler.NumberStream(order, 4, sampler.Position()), 4, 2)
    ahead._bytes = 0  # known to be small
    assert ahead.next().records[0][1][0] == 0
    assert sorted(seen)[:32] == list(range(32))
    ahead.stop()


@pytest.mark.parametrize("place", ["the lock is free", "the lock was taken"])
def test_an_interrupt_while_the_lock_changes_hands(monkeypatch, place):
    """Ctrl-C at any step of waiting for a batch is a KeyboardInterrupt, loses no batch, and nobody waits for ever."""
    reader = Memory(store=Slow(12, delay=0.01))
    epoch = iter(reader.next_epoch(batch_size=2))
    seen = [next(epoch)[1].torch().flatten().tolist()]
    store = reader._session.dataset.opened[0]
    ahead = next(a for a in _running if getattr(a, "_store", None) is store)  # others serve pipelines
    with monkeypatch.context() as patched:
        if place == "the lock is free":
            release = ahead._ready._release_save

            def interrupted():
                release()
                raise KeyboardInterrupt

            patched.setattr(ahead._ready, "_release_save", interrupted)
            with pytest.raises(KeyboardInterrupt):
                seen += iter(lambda: next(epoch)[1].torch().flatten().tolist(), None)
        else:

            def entered(condition):
                condition.acquire()
                if threading.current_thread() is threading.main_thread():
                    raise KeyboardInterrupt

            patched.setattr(threading.Condition, "__enter__", entered)
            seen.append(next(epoch)[1].torch().flatten().tolist())
    seen += [labels.torch().flatten().tolist() for _, labels in epoch]
    assert sorted(number for batch in seen for number in batch) == list(range(12))
