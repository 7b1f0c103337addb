"""Numbers that would make an operator work, or take memory, out of all proportion are refused in a sentence, at once.

Every operator that takes such a number is here; all calls run in one process that may have 6 GB and little time."""

from __future__ import annotations

import json

import pytest
import warm_interpreter

CALLS = {
    "hue(x, batch_size=2**31)": "batch_size: expected at most 1,048,576 samples",
    "ndd.random.uniform(batch_size=2**31)": "batch_size: expected at most",
    "ndd.zeros(shape=[1], batch_size=2**40)": "batch_size: expected at most",
    "ndd.batch_permutation(batch_size=2**31)": "batch_size: expected at most",
    "ndd.Batch.broadcast([1], 2**31)": "batch_size: expected at most",
    "next(ndd.readers.File(files=[ndd.__file__]).next_epoch(2**31))": "batch_size: expected at most",
    "next(ndd.readers.File(files=[ndd.__file__], max_batch_size=2**31).next_epoch())": "batch_size: expected at most",
    "next(ndd.readers.File(files=[ndd.__file__], prefetch_queue_depth=2**31).next_epoch(2))": "prefetch_queue_depth",
    "ndd.experimental.erode(x, mask_size=[5, 1000000])": "'mask_size': expected numbers up to 4,096, got 1,000,000",
    "ndd.experimental.dilate(x, mask_size=ndd.batch([[3, 3], [3, 10**6]]))": "sample 1: argument 'mask_size'",
    "ndd.experimental.erode(x, iterations=10**6)": "'iterations': expected numbers up to 4,096",
    "ndd.experimental.erode(x, iterations=4000, mask_size=[50, 3])": "after 4000 iterations",
    "ndd.experimental.median_blur(x, window_size=10**6 + 1)": "window_size",
    "ndd.gaussian_blur(x, window_size=10**6 + 1)": "window_size",
    "ndd.gaussian_blur(x, sigma=1e6)": "",
    "ndd.laplacian(x, window_size=10**6 + 1)": "window_size",
    "ndd.clahe(x, tiles_x=10**6, tiles_y=4, clip_limit=2.0)": "'tiles_x': expected numbers up to 512",
    "ndd.random_resized_crop(x, size=[3, 3], num_attempts=2**31)": "num_attempts",
    "ndd.random_crop_generator([5, 5], num_attempts=2**31)": "num_attempts",
    "ndd.random_bbox_crop(ndd.batch([[[0.1, 0.1, 0.2, 0.2]]], dtype=ndd.float32), num_attempts=2**31)": "num_attempts",
    "ndd.mel_filter_bank(spectrum, nfilter=10**6, sample_rate=8000)": "'nfilter': expected numbers up to 16,384",
    "ndd.mfcc(spectrum, n_mfcc=10**9)": "",
    "ndd.spectrogram(sound, nfft=2**31)": "nfft",
    "ndd.spectrogram(sound, window_length=2**31)": "window_length",
    "ndd.audio_resample(sound, in_rate=1, out_rate=10**6)": "up to 4,096 times as many samples as before",
    "ndd.audio_resample(sound, scale=1e9)": "up to 4,096 times as many samples",
    "ndd.audio_resample(sound, out_length=2**40)": "",
    "ndd.decoders.audio(wave, sample_rate=10**8)[0]": "up to 4,096 times that of the file, 1000 Hz",
    "ndd.decoders.audio(ndd.batch([wave, wave]), sample_rate=10**8)[0]": "up to 4,096 times that of the file",
    "ndd.resize(x, size=[10**6, 10**6])": "bytes",
    "ndd.zeros(shape=[2**40])": "bytes",
    "ndd.pad(x, align=[10**9])": "bytes",
    "ndd.one_hot(ndd.batch([1, 2]), num_classes=2**31 - 1)": "",
    "ndd.transforms.rotation(angle=3.0, batch_size=2**31)": "batch_size: expected at most",
    "ndd.warp_affine(x, matrix=[1.0, 0, 0, 0, 1, 0], size=[10**6, 10**6])": "bytes",
    "ndd.noise.gaussian(x, batch_size=2**40)": "batch_size",
}
SETUP = """
import io, json, resource, signal, sys, time, wave as waves
import numpy as np
import ndd
from ndd import hue
x = ndd.tensor(np.zeros((9, 8, 3), np.uint8), layout="HWC")
sound = np.zeros(1000, np.float32)
spectrum = ndd.tensor(np.zeros((5, 6), np.float32), layout="ft")
file = io.BytesIO()
with waves.open(file, "wb") as written:
    written.setnchannels(1), written.setsampwidth(2), written.setframerate(1000), written.writeframes(bytes(2000))
wave = np.frombuffer(file.getvalue(), np.uint8)
ndd.flip(x).evaluate()
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for call in json.loads(sys.argv[1]):
    signal.alarm(60)  # what does not come back ends the process
    began = time.process_time()
    try:
        found = eval(call)
        getattr(found, "evaluate", lambda: None)()
        text = "no error"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    print(json.dumps([call, text, time.process_time() - began]), flush=True)
"""


@pytest.fixture(scope="module")
def answers():
    pytest.importorskip("resource")
    quiet = "import warnings; warnings.simplefilter('ignore')"
    run = warm_interpreter.run(quiet + SETUP, json.dumps(list(CALLS)), timeout=280, has_ndd=True)
    result = {call: rest for call, *rest in map(json.loads, run.stdout.splitlines())}
    assert len(result) == len(CALLS), (list(CALLS)[len(result)], run.stderr[-2000:])
    return result


@pytest.mark.parametrize("call", CALLS)
def test_refused_at_once(answers, call):
    text, seconds = answers[call]
    assert CALLS[call] in text
    if CALLS[call]:
        assert text != "no error"
        assert len(text.split(": ", 1)[1]) > 20
    assert seconds < 60  # the work would take many minutes; compiling a kernel on a busy machine may take some seconds
