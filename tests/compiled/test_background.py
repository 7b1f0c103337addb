"""Kernels that are compiled by a thread, and what answers meanwhile."""

from __future__ import annotations

import functools
import io
import os
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from encoded import made as encoded

import ndd
from ndd._compiled import background as room, kernel_cache, thread_team as team
from ndd._compiled.intrinsics import array_at
from ndd._compiled.jit import Kernel, kernel
from ndd._compiled.sample_loops import SampleLoop, _by_fallback, of_sample
from ndd.decoders.jpeg import backend as jpeg
from ndd.decoders.sound import batch_kernels as sound_batch, decode as sound_decode


def spread(shape, dtype, low, high):
    """Every number of a range, over and over."""
    return (low + (np.arange(np.prod(shape)) * 7919 % 9973).reshape(shape) % (high - low)).astype(dtype)


IMAGE, T = spread((37, 53, 3), np.uint8, 0, 256), ndd.types
IMAGES = IMAGE, spread((20, 31, 3), np.float32, -300, 300)
BOXES = ndd.batch([np.sort(spread((k, 2, 2), np.float32, 0, 100) / 100, axis=1).reshape(k, 4) for k in (5, 1, 12)])
LABELS = ndd.batch([np.arange(1, k + 1, dtype=np.int32) for k in (5, 1, 12)])
ANCHORS = np.sort(spread((90, 2, 2), np.float32, 0, 97) / 97, axis=1).reshape(90, 4)
GREAT = spread((80, 53, 3), np.uint8, 0, 256)
FLOATS = spread((1 << 14,), np.float32, -99, 99) * np.float32(999.9)
FLOATS[:4] = np.nan, np.inf, -np.inf, 2**32
MASKS = ndd.batch([spread((k, 23), np.int32, 0, 3) // 2 * k for k in (17, 4, 1)])
VOLUMES = ndd.batch([np.repeat(spread((5, k, 7), np.uint8, 0, 3), 2, axis=2) for k in (9, 1, 4)])
SOUND = ndd.batch([spread((k,), np.float32, -999, 999) * np.hanning(k).astype(np.float32) for k in (6000, 9, 641)])
# One behind the other: `both` copies all that lies between samples.
BOXES, LABELS, MASKS, VOLUMES, SOUND = (ndd.copy(batch) for batch in (BOXES, LABELS, MASKS, VOLUMES, SOUND))
# What is left there counts for nothing, or stands elsewhere too.
SCRATCH = {"runs", "constants", "room", "place", "out_words", "row"}


def made(array, layout="HWC"):
    return ndd.batch([array, array[:-3]], layout=layout)


def drawn(function, *inputs, **arguments):
    return function(*inputs, rng=ndd.random.RNG(seed=5), **arguments)


CALLS = {
    "resize": lambda x: ndd.resize(x, size=[30, 20]),
    "resize cubic": lambda x: ndd.resize(x, size=[9, 70], interp_type=T.INTERP_CUBIC),
    "resize lanczos3": lambda x: ndd.resize(
        x, size=[40, 41], interp_type=T.INTERP_LANCZOS3, roi_start=[30.0, -2.5], roi_end=[2.0, 40.0]
    ),
    "resize gaussian, nearest": lambda x: ndd.resize(
        x, size=[9, 70], min_filter=T.INTERP_NN, mag_filter=T.INTERP_GAUSSIAN
    ),
    "resize nearest": lambda x: ndd.resize(x, size=[9, 70], interp_type=T.INTERP_NN),
    "resize, not larger": lambda x: ndd.resize(x, size=[30, 20], mode="not_larger", max_size=25.0),
    "resize_crop_mirror": lambda x: ndd.resize_crop_mirror(x, resize_shorter=25.0, crop=[20, 20], mirror=1),
    "random_resized_crop": lambda x: drawn(ndd.random_resized_crop, x, size=[20, 20]),
    "crop": lambda x: ndd.crop(x, crop=[12, 11], crop_pos_x=0.3),
    "pad": lambda x: ndd.pad(x, axis_names="HW", align=[8, 8]),
    "crop_mirror_normalize": lambda x: ndd.crop_mirror_normalize(x, mean=[100.0, 90.0, 3.0], std=[50.0, 3.3, 7.0]),
    "crop_mirror_normalize to HWC": lambda x: ndd.crop_mirror_normalize(
        x, mean=[100.0], std=[0.3], mirror=1, output_layout="HWC", dtype=ndd.int8, pad_output=True
    ),
    "crop_mirror_normalize outside": lambda x: ndd.crop_mirror_normalize(
        x, crop=[60, 20], out_of_bounds_policy="pad", fill_values=[1.0, 2.0, 3.0], std=[9.0], mirror=1, dtype=ndd.float16
    ),
    "color_twist": lambda x: ndd.color_twist(x, brightness=1.3, contrast=1.2, hue=20.0, saturation=1.7),
    "color_twist to int16": lambda x: ndd.color_twist(x, contrast=-0.7, hue=200.0, dtype=ndd.int16),
    "flip": lambda x: ndd.flip(x, horizontal=ndd.batch([np.int32(1), np.int32(0)]), vertical=1),
    "rotate": lambda x: ndd.rotate(x, angle=30.0),
    "rotate and fill": lambda x: ndd.rotate(x, angle=130.0, fill_value=300.5, keep_size=True, dtype=x.dtype),
    "rotate, nearest": lambda x: ndd.rotate(x, angle=230.0, interp_type=T.INTERP_NN, fill_value=77.0),
    "warp_affine": lambda x: ndd.warp_affine(x, matrix=[1.1, 0.2, -10.0, -0.1, 0.9, 9.5], size=[40.0, 600.0]),
    "warp_affine to other types": lambda x: ndd.warp_affine(
        x, matrix=[0.3, 0.2, 10.0, 1.1, 0.9, -6.5], dtype=ndd.int16 if x.dtype == ndd.float32 else ndd.float32
    ),
    "sphere": lambda x: ndd.sphere(x, interp_type=T.INTERP_LINEAR),
    "water": lambda x: ndd.water(x, interp_type=T.INTERP_LINEAR, fill_value=7.0),
    "water, nearest": lambda x: ndd.water(x, freq_x=0.3, phase_y=0.2),
    "normalize": lambda x: ndd.normalize(x, axes=[0, 1]),
    "normalize all": lambda x: ndd.normalize(x, ddof=1, epsilon=0.5, scale=64.0, shift=128.0, dtype=ndd.uint8),
    "normalize columns": lambda x: ndd.normalize(x, axes=[1], stddev=3.0),
    "gaussian_blur": lambda x: ndd.gaussian_blur(x, sigma=1.5),
    "gaussian_blur by one axis": lambda x: ndd.gaussian_blur(x, window_size=[1, 7], dtype=ndd.float32),
    "laplacian": lambda x: ndd.laplacian(x, window_size=[3, 5]),
    "laplacian, smooth": lambda x: ndd.laplacian(x, window_size=5, smoothing_size=1, scale=[0.5, 2.0], dtype=ndd.float32),
    "transpose": lambda x: ndd.transpose(x, perm=[2, 0, 1]),
    "cat": lambda x: ndd.cat(x, x, axis=2),
    "cat of three": lambda x: ndd.cat(x, x, x, axis=2),
    "noise.gaussian": lambda x: drawn(ndd.noise.gaussian, x, stddev=70.0),
    "noise.salt_and_pepper": lambda x: drawn(ndd.noise.salt_and_pepper, ndd.copy(x), prob=0.3),
    "noise.shot": lambda x: drawn(ndd.noise.shot, x),
    "noise.shot, by whole means": lambda x: drawn(ndd.noise.shot, x, factor=9.3),
    "noise.shot, many": lambda x: drawn(ndd.noise.shot, x, factor=0.05),
    "jitter": lambda x: drawn(ndd.jitter, x, nDegree=7),
}  # fmt: skip
ONE_TYPE = {"crop_mirror_normalize to HWC": 0, "crop_mirror_normalize outside": 1}  # three seconds of compiling each
OTHERS = {
    "random.beta": lambda: drawn(
        ndd.random.beta, alpha=2.0, beta=ndd.batch([np.float32(b) for b in (3.0, 0.3, 2.5)]), shape=[140]
    ),
    "random.beta, small": lambda: drawn(ndd.random.beta, alpha=0.2, beta=0.3, batch_size=3, shape=[140]),
    "random.beta of float64": lambda: drawn(
        ndd.random.beta, alpha=0.5, beta=3.0, dtype=ndd.float64, batch_size=3, shape=[70]
    ),
    "random_bbox_crop": lambda: drawn(ndd.random_bbox_crop, BOXES, bbox_layout="xyXY", thresholds=[0.1, 0.9]),
    "random_bbox_crop, pruned": lambda: drawn(
        ndd.random_bbox_crop,
        BOXES,
        bbox_layout="xyXY",
        all_boxes_above_threshold=False,
        threshold_type="overlap",
        bbox_prune_threshold=0.3,
        scaling=[0.3, 0.9],
        aspect_ratio=[0.5, 2.0],
    ),
    "random_bbox_crop of fixed windows": lambda: drawn(
        ndd.random_bbox_crop,
        BOXES,
        bbox_layout="xyXY",
        crop_shape=[50, 60],
        input_shape=[90, 80],
        thresholds=[0.01],
        total_num_attempts=30,
        quiet=True,
    ),
    "segmentation.random_mask_pixel": lambda: drawn(
        ndd.segmentation.random_mask_pixel, MASKS, foreground=ndd.batch([np.int32(f) for f in (0, 1, 1)])
    ),
    "segmentation.random_object_bbox": lambda: drawn(ndd.segmentation.random_object_bbox, MASKS),
    "segmentation.random_object_bbox in volumes": lambda: drawn(ndd.segmentation.random_object_bbox, VOLUMES),
    "clahe": lambda: ndd.clahe(made(IMAGE), tiles_x=4, tiles_y=3, clip_limit=2.0),
    "clahe of channels": lambda: ndd.clahe(made(IMAGE), tiles_x=7, tiles_y=5, clip_limit=30.0, luma_only=False),
    "clahe without limit": lambda: ndd.clahe(made(IMAGE[..., :1]), tiles_x=1, tiles_y=9, clip_limit=0.0),
    "spectrogram": lambda: ndd.spectrogram(SOUND, nfft=64, window_length=50, window_step=20),
    "spectrogram of odd length": lambda: ndd.spectrogram(SOUND, nfft=45, window_length=45, window_step=20, power=1),
    "pad of rows": lambda: ndd.pad(
        ndd.batch([np.arange(n, dtype=np.int16) for n in range(9)]), fill_value=-3, align=[7]
    ),
    "pad of matrices": lambda: ndd.pad(ndd.batch([np.ones((n, 9 - n)) for n in range(9)]), fill_value=0.1),
    "nonsilent_region": lambda: ndd.nonsilent_region(SOUND, window_length=64, reset_interval=640, cutoff_db=-2.0),
    "nonsilent_region of integers": lambda: ndd.nonsilent_region(
        ndd.batch([np.asarray(s).astype(np.int16) for s in SOUND.tensors]), window_length=64, cutoff_db=-2.0
    ),
    "nonsilent_region, short": lambda: ndd.nonsilent_region(SOUND, window_length=2048, cutoff_db=-3.0),
    "cast": lambda: ndd.cast(ndd.tensor(FLOATS), dtype=ndd.int16),
    "reductions.sum": lambda: ndd.reductions.sum(made(GREAT), axes=[0, 1]),
    "reductions.sum of floats": lambda: ndd.reductions.sum(made(GREAT.astype(np.float32)), axes=[0]),
    "reductions.sum of rows": lambda: ndd.reductions.sum(made(GREAT[:60]), axes=[2]),
    "reductions.rms": lambda: ndd.reductions.rms(made(GREAT)),
    "reductions.variance": lambda: ndd.reductions.variance(made(GREAT), 120.0, axes=[0, 1]),
    "reductions.min": lambda: ndd.reductions.min(made(GREAT.astype(np.int16)), axes=[0, 1]),
    "reductions.max": lambda: ndd.reductions.max(made(np.where(GREAT == 7, np.float32("nan"), GREAT)), axes=[0, 1]),
    "lookup_table": lambda: ndd.lookup_table(made(GREAT), keys=[0, 9, 200], values=[3.0, 4.0, 5.0]),
    "lookup_table of signed numbers": lambda: ndd.lookup_table(
        made(GREAT.astype(np.int16) - 9), keys=[0, 9], values=[3.0, 4.0], dtype=ndd.uint8
    ),
    "cast to more": lambda: ndd.cast(ndd.tensor(FLOATS), dtype=ndd.uint32),
    "equalize": lambda: ndd.equalize(made(IMAGE)),
    "random.uniform": lambda: drawn(ndd.random.uniform, batch_size=3, shape=[1100], range=[-1.0, 3.0]),
    "random.normal": lambda: drawn(ndd.random.normal, batch_size=3, shape=[1100], mean=4.0, stddev=3.0),
    "coin_flip": lambda: drawn(ndd.random.coin_flip, batch_size=70, probability=0.3),
    "batch_permutation": lambda: drawn(ndd.batch_permutation, batch_size=9),
    "random_crop_generator": lambda: drawn(ndd.random_crop_generator, ndd.batch([np.array([99, 70])] * 50)),
}


def at_addresses(options):
    """The results that a kernel knows by their addresses."""
    if "what" in options:
        rows = [of_sample.in_python()(options["what"], i) for i in options["order"].tolist()]
        return [array.copy() for row in rows for array in row if isinstance(array, np.ndarray)]
    if "geometry" not in options:
        return []
    counts = options["geometry"][:, 0].prod(axis=1).tolist()
    placed = array_at.in_python()
    return [placed(t, n, options["like"]).copy() for t, n in zip(options["targets"].tolist(), counts, strict=True)]


@pytest.fixture
def both(monkeypatch):
    """Whatever is called is computed in both ways; by name, the kernels that were."""
    seen = set()
    compiled = Kernel.__call__

    def compared(self, *args):
        if self.function.__code__ is team._join.__code__:  # the loop itself is looked at
            _, _, counter, limit, case = args
            return compared(self.function.__globals__["loop"], counter, limit, *case)
        if self._fallback is None and isinstance(self, SampleLoop):
            counter, limit, *case = args
            return compiled(team.joined(self), team.ALONE, 0, counter, limit, tuple(case))
        if self._fallback is None:
            return compiled(self, *args)
        arrays = {(a.ctypes.data, a.shape, a.strides): a.copy() for a in args if isinstance(a, np.ndarray)}
        copies = [arrays[a.ctypes.data, a.shape, a.strides] if isinstance(a, np.ndarray) else a for a in args]
        result = self._fallback(*copies)
        if result is False:  # it leaves the samples to another way, whose kernels are compared
            return result
        names = self.function.__code__.co_varnames
        first = at_addresses(dict(zip(names, args, strict=False)))
        if isinstance(self, SampleLoop):
            turns, most, *case = args
            expected = compiled(team.joined(self), team.ALONE, 0, turns, most, tuple(case))
        else:
            expected = compiled(self, *args)
        for ours, theirs in zip(first, at_addresses(dict(zip(names, args, strict=False))), strict=True):
            np.testing.assert_array_equal(ours, theirs, f"targets of {self.__qualname__}")
        pairs = {
            n: pair
            for n, *pair in zip(names, copies, args, strict=False)
            if n not in SCRATCH and isinstance(pair[0], np.ndarray)
        }
        pairs |= {"result": (result, expected)} if expected is not None else {}
        for case, pair in pairs.items():
            for ours, theirs in zip(*pair, strict=True) if isinstance(pair[0], tuple) else [pair]:
                np.testing.assert_array_equal(ours, theirs, f"{case} of {self.__qualname__}")
        seen.add(self.__qualname__)
        return expected

    monkeypatch.setattr(Kernel, "__call__", compared)
    return seen


@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
@pytest.mark.drawn(1)
def test_what_stands_in_computes_the_same_bits(name, both):
    with ndd.EvalContext(num_threads=1):  # of samples that threads take in turn, nobody knows who takes which
        if name in OTHERS:
            made_of = OTHERS[name]()
            for value in made_of if isinstance(made_of, tuple) else [made_of]:
                value.evaluate()
        else:
            for image in [IMAGES[ONE_TYPE[name]]] if name in ONE_TYPE else IMAGES:
                CALLS[name](made(image)).evaluate()
    assert both


def sounds(form, subtype):
    soundfile = pytest.importorskip("soundfile")
    file = io.BytesIO()
    soundfile.write(file, spread((999, 2), np.int32, -(1 << 31), 1 << 31), 8000, format=form, subtype=subtype)
    sound = ndd.tensor(np.frombuffer(file.getvalue(), np.uint8))
    kinds = {"dtype": ndd.float32}, {"dtype": ndd.int16}, {"downmix": True}
    return [np.asarray(ndd.decoders.audio(sound, **kind)[0]) for kind in kinds]


@pytest.mark.parametrize(
    ("room", "decoded"),
    [
        pytest.param(jpeg._LOOPS, lambda: [np.asarray(ndd.decoders.image(encoded()["420.jpg"]))], id="JPEG"),
        pytest.param(sound_batch, lambda: sounds("FLAC", "PCM_24"), id="FLAC"),
        pytest.param(sound_batch, lambda: sounds("WAV", "PCM_16"), id="WAV"),
    ],
)
def test_other_libraries_decode_meanwhile(room, decoded, monkeypatch):
    expected, calls = decoded(), []
    names = room if isinstance(room, dict) else vars(room)
    for name, result in list(names.items()):
        each_file = room is sound_batch and name.startswith(("decode_", "open_", "read_"))
        if isinstance(result, Kernel) and result._fallback is not None and not each_file:
            fallback = result._fallback
            monkeypatch.setitem(names, name, lambda *options, f=fallback: calls.append(f) or f(*options))
    monkeypatch.setattr(
        sound_decode, "loop_over_samples", lambda item: calls.append(item) or functools.partial(_by_fallback, item)
    )
    for result, known in zip(decoded(), expected, strict=True):
        np.testing.assert_array_equal(result, known)
    assert calls


@kernel
def more(values, out):
    for i in range(len(values)):
        out[i] = values[i] + 1


@more.fallback
def _more_by_numpy(values, out):
    ANSWERED.append(threading.current_thread().name)
    out[...] = (values + 1).astype(out.dtype)


@kernel
def more_of_each(rows, out):
    for i in range(len(rows)):
        more(rows[i], out[i])


@more_of_each.fallback
def _more_of_each_by_others(rows, out):
    for row, result in zip(rows, out, strict=True):
        more(row, result)


@kernel
def twice(number):
    return 2 * number


ANSWERED: list[str] = []


def as_in_a_new_process(monkeypatch):
    for kernel_of_here in (more, more_of_each):
        monkeypatch.setattr(kernel_of_here, "_compiled", None)
        monkeypatch.setattr(kernel_of_here, "_answers", None)


@pytest.fixture
def allowed(tmp_path, monkeypatch):
    """Nothing is compiled yet, and a thread may do so, at once."""
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path))
    kept = kernel_cache._folders, kernel_cache.writable_folder
    for function in kept:
        function.cache_clear()
    monkeypatch.setattr(room, "_QUIET", 0.0)
    monkeypatch.setattr(room.background, "allowed", True)
    as_in_a_new_process(monkeypatch)
    ANSWERED.clear()
    yield tmp_path
    room.background.finish()
    for function in kept:
        function.cache_clear()


def added(dtype: type = np.float64):
    out = np.zeros(3, dtype)
    more(np.arange(3, dtype=dtype), out)
    assert out.tolist() == [1, 2, 3]


def test_a_thread_compiles_while_something_else_answers(allowed, monkeypatch):
    notes = []
    with monkeypatch.context() as watched:
        watched.setattr(room.observation, "active", SimpleNamespace(note=notes.append))  # for `ndd.explain`
        added()
    assert notes == ["slower than usual: its kernel was not compiled yet"]
    added()
    assert 1 <= len(ANSWERED) <= 2
    room.background.finish()
    ANSWERED.clear()
    added()
    assert not ANSWERED
    assert len(list((allowed / "kernels").glob("*more*"))) == 1


def test_threads_that_call_a_kernel_at_the_same_time_ask_once(allowed, monkeypatch):
    """A second job would wait for the first one's file, and begin again ten times a second."""
    asked, both = [], threading.Barrier(2)
    has_file = kernel_cache.KernelCache.has_file
    monkeypatch.setattr(kernel_cache.KernelCache, "has_file", lambda *args: both.wait(60) < 0 or has_file(*args))
    monkeypatch.setattr(room.Background, "do", lambda self, *args: asked.append(args[2]))
    threads = [threading.Thread(target=added) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert asked == [more]
    assert len(ANSWERED) == 2


def test_what_a_loop_calls_is_not_compiled_by_itself(allowed):
    """Both were compiled, the loop last: for it nobody waited. A loop of pictures was slow three times as long."""
    rows, out = np.arange(6.0).reshape(2, 3), np.zeros((2, 3))
    with room.fork_lock:  # nothing is compiled meanwhile
        more_of_each(rows, out)
        more_of_each(rows, out)
        assert len(ANSWERED) == 4
        job = room.background.job_with(more)
        assert [*room.background._jobs, room.background._job].count(job) == 1
        assert len(room.background._jobs) + (room.background._job is not None) == 1
        assert job.spent > 0
    room.background.finish()
    assert np.array_equal(out, rows + 1)
    kept = [path.name for path in (allowed / "kernels").iterdir()]
    assert [name for name in kept if ".more_of_each." in name and not name.startswith("inner.")]
    assert not [name for name in kept if ".more." in name and not name.startswith("inner.")]
    more_of_each(rows, out)
    assert len(ANSWERED) == 4


def test_calls_wait_for_the_compiler_once_a_fallback_has_taken_long(allowed):
    begun, go_on = threading.Event(), threading.Event()

    def compile_now():
        begun.set()
        assert go_on.wait(60)

    job, other = room.Job(compile_now), room.Job(lambda: None)
    other.spent = 9.0
    room.background.do(job)
    assert begun.wait(60)
    room.background.await_if_slow(job)  # a short time so far
    room.background.await_if_slow(other)  # nobody compiles it
    job.spent = 9.0
    waiting = threading.Thread(target=room.background.await_if_slow, args=(job,))
    waiting.start()
    waiting.join(0.2)
    try:
        assert waiting.is_alive()
    finally:
        go_on.set()
    waiting.join(60)
    assert not waiting.is_alive()


def test_what_took_longest_meanwhile_is_compiled_first(allowed, monkeypatch):
    monkeypatch.setattr(room, "_QUIET", 0.3)
    done = []
    for number, spent in enumerate((0.0, 2.0, 1.0)):
        job = room.Job(functools.partial(done.append, number))
        job.spent = spent
        room.background.do(job)
    room.background.finish()
    assert done == [1, 2, 0]


def test_what_is_waited_for_now_counts_too(allowed):
    slow, quick = room.Job(lambda: None), room.Job(lambda: None)
    with quick.answering():
        pass
    quick.spent += 0.01
    with slow.answering():
        time.sleep(0.05)
        assert slow.spent == 0.0
        assert max([quick, slow], key=room.Job.waited) is slow
    assert slow.spent >= 0.05


def test_what_another_process_compiles_waits_while_others_are_compiled(allowed):
    done, busy = [], [True]

    def elsewhere():
        if busy[0]:
            done.append("tried")
            busy[0] = len(done) < 3
            room.background.elsewhere(inner=False)
        done.append("found")

    first, other = room.Job(elsewhere), room.Job(lambda: done.append("other"))
    first.spent = 9.0
    with room.fork_lock:  # both are there when the thread begins
        room.background.do(first)
        room.background.do(other)
    room.background.finish()
    assert done[:2] in (["tried", "other"], ["other", "tried"])
    assert done[-1] == "found"
    assert done.count("tried") == 2


def test_what_is_waited_for_much_longer_goes_first(allowed):
    """Of a loop's kernels the first one that is asked for is often the one that can wait."""
    begun, done, asked = threading.Event(), [], []

    def endless():
        begun.set()
        while not done:
            room.background.step()
            time.sleep(0.01)
        asked.append("again")

    slow = room.Job(lambda: done.append("slow"))
    room.background.do(room.Job(endless))
    assert begun.wait(60)
    slow.spent = 9.0
    room.background._jobs.append(slow)
    room.background.finish()
    assert done == ["slow"]
    assert asked == ["again"]


def test_a_compiler_shares_the_interpreter_with_few(allowed):
    """Else it comes to its turn so rarely that a loop is slow for a minute."""
    begun, go_on, pool = threading.Event(), threading.Event(), ndd.ThreadPool(8)

    def at_once():
        names = set()

        def work(_):
            names.add(threading.get_ident())
            time.sleep(0.01)

        assert not pool.run(work, 40)
        return len(names)

    def compile_now():
        begun.set()
        assert go_on.wait(60)

    assert at_once() > 3
    room.background.do(room.Job(compile_now))
    try:
        assert begun.wait(60)
        assert at_once() <= 3
    finally:
        go_on.set()
    room.background.finish()
    assert at_once() > 3


def test_what_answers_warns_as_little_as_kernels_do(allowed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = np.zeros(2, np.float32)
        more(np.float32([3e38, -np.inf]) * np.float32(1), out)
        overflow = np.zeros(1, np.uint8)
        more(np.full(1, np.inf), overflow)  # to an integer: NumPy warns of an invalid value
    assert ANSWERED


def test_what_is_on_disk_is_not_compiled_again(allowed, monkeypatch):
    added()
    room.background.finish()
    as_in_a_new_process(monkeypatch)
    ANSWERED.clear()
    added()
    assert not ANSWERED


def test_what_cannot_be_compiled_is_an_error_of_a_call(allowed):
    odd = np.array([1, 2, 3], object)
    out = np.zeros(3)
    more(odd, out)  # NumPy can
    room.background.finish()
    with pytest.raises(Exception, match="non-precise type"):
        more(odd, out)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_compiles_at_the_call(allowed):
    added()
    child = os.fork()
    if not child:
        status = 1
        try:
            ANSWERED.clear()
            added(np.float32)
            status = 0 if not ANSWERED and not room.background.allowed else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def under_way(allowed, monkeypatch):
    """A compilation that has begun and goes on when somebody wants it broken off; gives what broke it off."""
    begun, broken_off, compilers_own = threading.Event(), [], room.background.step

    def step():
        begun.set()
        for _ in range(3000 if not broken_off else 0):
            if room.fork_lock.wanted:
                break
            time.sleep(0.01)
        try:
            compilers_own()
        except BaseException as error:
            broken_off.append(error)
            raise

    monkeypatch.setattr(room.background, "step", step)
    added()
    assert begun.wait(60)
    yield broken_off
    assert len(broken_off) == 1
    room.background.finish()
    ANSWERED.clear()
    added()
    assert not ANSWERED  # it was begun again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_breaks_a_compilation_off(under_way):
    """The child, which has no thread to compile, does so at the call."""
    child = os.fork()
    if not child:
        status = 1
        try:
            ANSWERED.clear()
            added()
            status = 0 if not ANSWERED else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_call_breaks_a_compilation_off(under_way):
    assert twice(4) == 8
