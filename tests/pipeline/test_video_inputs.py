"""`fn.experimental.inputs.video`: sequences of videos that are fed to a pipeline."""

import numpy as np
import nvdec
import pytest
from videos import FOLDER, encoded, numbers_of

import ndd


def pipeline_of(package, fn, length, batch_size, **options):
    options = {"device": "cpu", **options}
    device_id = options.pop("device_id", None)

    @package.pipeline_def(
        batch_size=batch_size,
        num_threads=1,
        device_id=device_id,
        exec_pipelined=False,
        exec_async=False,
        prefetch_queue_depth=1,
    )
    def sequences():
        return fn.experimental.inputs.video(name="video", sequence_length=length, **options)

    pipeline = sequences()
    pipeline.build()
    return pipeline


def outputs(pipeline):
    """All batches until there is no data left, as arrays."""
    result = []
    while True:
        try:
            (batch,) = pipeline.run()
        except RuntimeError as error:
            return result, str(error)
        assert batch.layout() == "FHWC"
        result.append([np.array(sequence) for sequence in batch])


@pytest.fixture
def clip():
    return encoded(10)


@pytest.mark.parametrize(("length", "batch_size", "shape"), [(3, 2, [2, 2]), (5, 2, [2]), (4, 8, [3]), (20, 1, [1])])
@pytest.mark.parametrize("policy", ["partial", "pad"])
def test_sequences_are_the_frames_in_order(clip, length, batch_size, shape, policy):
    pipeline = pipeline_of(ndd, ndd.fn, length, batch_size, last_sequence_policy=policy)
    pipeline.feed_input("video", [clip])
    result, error = outputs(pipeline)
    assert [len(batch) for batch in result] == shape
    assert "'video': no data" in error
    frames = np.concatenate([sequence for batch in result for sequence in batch])
    assert numbers_of(frames[:10]) == list(range(10))
    assert len(frames) == (10 if policy == "partial" else -(-10 // length) * length)
    assert not frames[10:].any()


def test_videos_follow_each_other(clip):
    other = ndd.io.video.encode(np.full((3, 16, 16, 3), 200, np.uint8))
    pipeline = pipeline_of(ndd, ndd.fn, 6, 3)
    pipeline.feed_input("video", [clip, other])
    pipeline.feed_input("video", ndd.batch([clip]))
    result, _ = outputs(pipeline)
    assert [[sequence.shape[:3] for sequence in batch] for batch in result] == [
        [(6, 32, 48), (4, 32, 48)],
        [(3, 16, 16)],
        [(6, 32, 48), (4, 32, 48)],
    ]


def test_on_a_gpu(clip, emulated_gpu, monkeypatch):
    engine = None if emulated_gpu.real else nvdec.put_in_place(monkeypatch)
    pipeline = pipeline_of(ndd, ndd.fn, 3, 2, device="mixed", last_sequence_policy="pad", device_id=0)
    pipeline.feed_input("video", [clip])
    result = [pipeline.run()[0] for _ in range(2)]
    assert {type(batch).__name__ for batch in result} == {"TensorListGPU"}
    frames = np.concatenate([np.array(item) for batch in result for item in batch.as_cpu()])
    assert numbers_of(frames[:10]) == list(range(10))
    assert len(frames) == 12
    assert not frames[10:].any()
    assert engine is None or engine.copies > 0


def test_errors(clip):
    pipeline = pipeline_of(ndd, ndd.fn, 6, 1)
    pipeline.feed_input("video", [np.zeros(100, np.uint8)])
    pipeline.feed_input("video", [clip])
    with pytest.raises(RuntimeError, match="video"):
        pipeline.run()
    assert len(np.array(pipeline.run()[0][0])) == 6  # the next one is as good as ever
    for options, words in (({"last_sequence_policy": "x"}, "last_sequence_policy: exp"), ({}, "sequence_length: exp")):
        with pytest.raises(RuntimeError, match=words):
            pipeline_of(ndd, ndd.fn, 6 if options else 0, 1, **options).run()


@pytest.mark.oracle
@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the shared data")
def test_like_dali():
    import nvidia.dali

    data = np.fromfile(FOLDER / "vp9_cfr_nasa_320x180.mp4", np.uint8)
    both = []
    for package, fn in ((nvidia.dali, nvidia.dali.fn), (ndd, ndd.fn)):
        pipeline = pipeline_of(package, fn, 30, 2, last_sequence_policy="pad")
        pipeline.feed_input("video", [data])
        both.append(outputs(pipeline)[0])
    theirs, ours = both
    assert [len(batch) for batch in theirs] == [len(batch) for batch in ours]
    for batch, other in zip(theirs, ours, strict=True):
        for sequence, mine in zip(batch, other, strict=True):
            assert mine.shape == sequence.shape
            assert np.abs(mine.astype(int) - sequence).max() <= 2
