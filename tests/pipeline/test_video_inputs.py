"""Videos that are fed to a pipeline, some sequences a run. (DALI's needs a driver, so there is no oracle.)"""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd import fn, pipeline_def

pytest.importorskip("av")
GIVEN = [[[0, 5, 10, 15], [20, 25, 30, 35], [40, 45, 50, 55]], [[60, 65, 70, 75], [80]]]


def encoded(frames):
    clip = np.stack([np.full((32, 48, 3), 5 * i, np.uint8) for i in range(frames)])
    return np.asarray(ndd.io.video.encode(clip, rate=5))


def made(**given):
    body = lambda: fn.experimental.inputs.video(name="V", sequence_length=4, **given)  # noqa: E731
    return pipeline_def(body, batch_size=3)()


@pytest.mark.parametrize("policy", ["partial", "pad"])
def test_one_video_after_the_other(policy):
    pipe = made(last_sequence_policy=policy)
    pipe.feed_input("V", encoded(17)[None])
    pipe.feed_input("V", [encoded(12)])
    last = [80, 0, 0, 0] if policy == "pad" else [80]
    for expected in (GIVEN[0], [GIVEN[1][0], last], GIVEN[0]):
        (found,) = pipe.run()
        assert found.layout() == "FHWC"
        for sample, values in zip(found, expected, strict=True):
            assert np.allclose(np.array(sample)[:, 5, 5, 0], values, atol=2)
    with pytest.raises(RuntimeError, match="no data"):
        pipe.run()


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="expected one video"):
        made().feed_input("V", [encoded(3)] * 2)
    with pytest.raises(RuntimeError, match="'partial' or 'pad'"):
        made(last_sequence_policy="cut").run()
