"""The operator classes of pipeline mode."""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd import Pipeline, fn, ops, types

PROGRAM = """
import numpy as np
from nvidia.dali import Pipeline, ops, types
class Made(Pipeline):
    def __init__(self):
        super().__init__(3, 1, None, seed=12)
        self.input = ops.readers.File(file_root=PHOTOS, random_shuffle=True)
        self.decode = ops.decoders.Image(device="cpu", output_type=types.RGB)
        self.resize = ops.Resize(resize_x=8, resize_y=6)
        self.cut = ops.CropMirrorNormalize(dtype=types.FLOAT, crop=(2, 2), mean=[128.0, 128.0, 128.0], std=[1.0, 1.0, 1.0])
        self.coin = ops.random.CoinFlip(probability=0.5)
        self.uniform = ops.random.Uniform(range=(0.0, 1.0))
        self.fed, self.other = ops.ExternalSource(), ops.ExternalSource()
        self.two = ops.ExternalSource(lambda: ([np.int32(1)] * 3, [np.int32(2)] * 3), 2)
        self.function = ops.PythonFunction(lambda x: x.astype(np.int64) * 2, 1)
        self.chain = ops.Compose([ops.Flip(horizontal=1), ops.Cast(dtype=types.INT16)])
    def define_graph(self):
        jpegs, labels = self.input(name="Reader")
        images = self.resize(self.decode(jpegs))
        images = self.cut(
            [images, images], mirror=self.coin(), crop_pos_x=self.uniform(), crop_pos_y=self.uniform()
        )
        one, two = self.two()
        self.a, self.b = self.fed(), self.other()
        return [labels, *images, one + two, self.a, self.b, self.function(labels), self.chain(np.uint8([[[1], [2]]]))]
    def iter_setup(self):
        self.feed_input(self.b, [np.float32([1, 2])] * 3)
        self.feed_input(self.a, [np.float32([3, 4])] * 3)
pipe = Made()
pipe.build()
for _ in range(2):
    out(*[(str(v.dtype), v.layout(), np.round(v.as_array().astype(np.float64), 3)) for v in pipe.run()])
out(sorted(pipe.reader_meta()))
for wrong in (lambda: ops.Flip(colour=1), lambda: ops.Cast(dtype=types.FLOAT)(np.int32(1), dtype=types.INT8)):
    try:
        wrong()
    except (KeyError, ValueError) as error:
        out(type(error).__name__)
"""


@pytest.mark.oracle
def test_as_dali():
    pytest.importorskip("nvidia.dali")
    from test_as_written_for_dali import told

    assert told(PROGRAM, "ndd") == told(PROGRAM, "nvidia.dali")


@pytest.mark.oracle
def test_every_class_of_dali_is_here():
    import types as python_types

    dali = pytest.importorskip("nvidia.dali.ops")

    def missing(theirs, ours):
        for name in dir(theirs):
            value = getattr(theirs, name)
            if isinstance(value, python_types.ModuleType):
                if value.__name__.startswith("nvidia.dali.ops.") and not name.startswith("_") and name != "hidden":
                    yield from missing(value, getattr(ours, name))
            elif isinstance(value, type) and not name.startswith("_") and not hasattr(ours, name):
                yield name

    assert list(missing(dali, ops)) == []


def test_what_a_class_is():
    import inspect

    assert issubclass(ops.Flip, object)
    assert ops.Flip.__doc__ == fn.flip.__doc__
    assert (ops.Flip().device, ops.Flip(device="gpu").device) == ("cpu", "gpu")
    assert inspect.isclass(ops.readers.File)
    assert ndd.plugin.pytorch.TorchPythonFunction is not None
    with pytest.raises(AttributeError, match="Nothing"):
        ops.Nothing  # noqa: B018
    with pytest.raises(TypeError, match="by their names"):
        ops.Flip(1)


def test_the_classes_of_the_plugins():
    from ndd.plugin.numba import NumbaFunction
    from ndd.plugin.pytorch import TorchPythonFunction

    def double(out, given):
        out[:] = given * 2

    with Pipeline(batch_size=2) as pipe:
        x = types.Constant(np.float32([1, 2]))
        half = TorchPythonFunction(lambda t: t / 2)
        twice = NumbaFunction(double, [types.FLOAT], [types.FLOAT], [1], [1])
        pipe.set_outputs(half(x), twice(x))
    assert [v.as_array().tolist() for v in pipe.run()] == [[[0.5, 1]] * 2, [[2, 4]] * 2]
