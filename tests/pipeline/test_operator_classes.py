"""The operator classes of pipeline mode."""

from __future__ import annotations

import numpy as np
import pytest

from ndd import Pipeline, fn, ops, types


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
            elif isinstance(value, type) and name[0].isupper() and not hasattr(ours, name):
                yield name

    assert list(missing(dali, ops)) == []


def test_what_a_class_is():
    import inspect

    assert ops.Flip.__doc__ == fn.flip.__doc__
    assert (ops.Flip().device, ops.Flip(device="gpu").device) == ("cpu", "gpu")
    assert inspect.isclass(ops.readers.File)
    with pytest.raises(AttributeError, match="Nothing"):
        ops.Nothing  # noqa: B018
    with pytest.raises(TypeError, match="by name"):
        ops.Flip(1)


def test_the_classes_of_the_plugins():
    from ndd.plugin.numba import NumbaFunction
    from ndd.plugin.pytorch import TorchPythonFunction

    def double(out, arguments):
        out[:] = arguments * 2

    with Pipeline(batch_size=2) as pipe:
        x = types.Constant(np.float32([1, 2]))
        half = TorchPythonFunction(lambda t: t / 2)
        twice = NumbaFunction(double, [types.FLOAT], [types.FLOAT], [1], [1])
        pipe.set_outputs(half(x), twice(x))
    assert [v.as_array().tolist() for v in pipe.run()] == [[[0.5, 1]] * 2, [[2, 4]] * 2]
