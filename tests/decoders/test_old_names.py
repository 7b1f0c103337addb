"""ndd.experimental.decoders and ndd.experimental.peek_image_shape: what DALI moved, under the old name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import warm_interpreter

import ndd

PGM = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
CALLS = {
    "decoders.image": {"output_type": 2},
    "decoders.image_crop": {"crop": [1, 2]},
    "decoders.image_random_crop": {},
    "decoders.image_slice": {"start": [1, 0], "shape": [2, 1]},
    "peek_image_shape": {"adjust_orientation": False},
}


def find(module, path):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def run(path, **more):
    random = {"rng": ndd.random.RNG(seed=3)} if "random" in path else {}
    return np.asarray(find(ndd, path)(PGM, **CALLS[path.removeprefix("experimental.")], **random, **more))


@pytest.mark.parametrize("path", CALLS)
def test_the_old_name_warns_and_does_the_same(path):
    old = f"experimental.{path}"
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=f"`ndd.{old}` is an old name of `ndd.{path}`") as result:
            value = run(old)
        assert [w.filename for w in result] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(value, run(path))


@pytest.mark.parametrize("path", CALLS)
def test_documented_as_old(path):
    import inspect

    old, new = find(ndd.experimental, path), find(ndd, path)
    assert old.__doc__.startswith(f"The old name of `ndd.{path}`")
    assert new.__doc__ in old.__doc__
    assert inspect.signature(old) == inspect.signature(new)
    assert old.operator is not new.operator


@pytest.mark.parametrize("path", CALLS)
def test_wrong_calls(path):
    with pytest.warns(DeprecationWarning, match="old name"), pytest.raises(TypeError, match=path.split(".")[-1]):
        find(ndd.experimental, path)(PGM, no_such_argument=1)
    with pytest.warns(DeprecationWarning, match="old name"), pytest.raises(RuntimeError, match=path.split(".")[-1]):
        find(ndd.experimental, path)(PGM[:1], **CALLS[path]).evaluate()


@pytest.mark.oracle
def test_the_oracle_warns_too(dali):
    code = f"""
import warnings, numpy as np
import nvidia.dali.experimental.dynamic as dali
for path, arguments in {CALLS}.items():
    operator = dali.experimental
    for name in path.split("."):
        operator = getattr(operator, name)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            operator(np.zeros(9, np.uint8), **arguments)
        except RuntimeError:
            pass
    if any(w.category is DeprecationWarning for w in said):
        print(path)
"""
    ran = warm_interpreter.run(code)
    assert ran.stdout.split() == list(CALLS)


def test_a_script_sees_the_warnings():
    """Python shows a DeprecationWarning only where it is about the line of a script."""
    code = (
        "import ndd, numpy as np\n"
        "data = np.frombuffer(b'P5 3 2 255 abcdef', np.uint8)\n"
        "ndd.experimental.peek_image_shape(data)\n"
        "ndd.decoders.image(data, split_stages=True)\n"
    )
    ran = warm_interpreter.run(code, has_ndd=True)
    assert "<string>:3: DeprecationWarning: `ndd.experimental.peek_image_shape`" in ran.stderr
    assert "<string>:4: DeprecationWarning: image: `split_stages` has no effect" in ran.stderr
