"""Every operator of ndd: documentation, signature, values against the oracle, CPU against GPU, modes, errors.

The operators come from the registry, what to call them with from their test files (`cases.py` collects it). A new
operator is tested by being there.
"""

from __future__ import annotations

import dataclasses
import doctest
import enum
import inspect
import itertools
import re

import numpy as np
import pytest
from calling import FORMS, call, call_with, cases_of, decodes, evaluated, layouts_of, load_every_module, public, samples
from cases import DTYPES, Case, EachSample, table, values as numbers
from compare import arrays_of, assert_same_values, describe
from selection import drawn, drawn_types

import ndd

OPERATORS = load_every_module()
PATHS = sorted(OPERATORS)
# The fast part of `.ci/run` takes the first case of an operator only, and leaves what is marked so to the rest.
sweep = pytest.mark.sweep
CASES = [
    pytest.param(path, case, id=f"{path}-{i}", marks=[sweep] if i else [])
    for path in PATHS
    for i, case in enumerate(cases_of(path, OPERATORS[path]))
]
FIRST = [
    pytest.param(path, cases_of(path, OPERATORS[path])[0], id=path) for path in PATHS if cases_of(path, OPERATORS[path])
]
GPU_DTYPES = ("uint8", "int16", "int32", "float16", "float32")
pytestmark = pytest.mark.fast
BUILTIN = (TypeError, ValueError, RuntimeError, IndexError, OverflowError, NotImplementedError)


class Trouble:
    """Collects what is wrong over many calls, so that one run shows all of it."""

    def __init__(self):
        self.found = []

    def of(self, subject):
        self.what = subject
        return self

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None or not issubclass(kind, Exception):
            return False
        text = str(error) or kind.__name__
        self.found.append(f"{self.what}: {kind.__name__}: {text[:600]}")
        return True

    def report(self):
        assert not self.found, f"{len(self.found)} of the calls:\n" + "\n".join(self.found[:8])


# ---- the front


@pytest.mark.parametrize("path", PATHS)
def test_front_door(path):
    """Each operator is where its path says, and says how it is tested."""
    function = public(ndd, path)
    assert function is not None, f"ndd.{path} does not exist: export it"
    assert cases_of(path, OPERATORS[path]) or path in table(), (
        f"{path} has required arguments: add `REGISTRY_CASES` to its test file"
    )


@pytest.mark.parametrize("path", PATHS)
def test_documentation(path):
    op = OPERATORS[path]
    text = inspect.getdoc(op.function) or ""
    assert len(text) > 60, "too short to help"
    first = text.split("\n\n")[0]
    assert first.endswith("."), f"the first paragraph is no sentence: {first!r}"
    assert "TensorList" not in text
    assert not re.search(r"\bgraph\b", text)
    assert any(example.want for example in doctest.DocTestParser().get_examples(text)), "no example that shows a result"
    unmentioned = [a.name for a in op.arguments if not re.search(rf"\b{a.name}\b", text)]
    assert not unmentioned, f"arguments that the text does not mention: {unmentioned}"


# What ndd's operators take beyond DALI's, and why.
BEYOND = {
    "on_error": "decoders: what becomes of bad samples",
    "max_pixels": "decoders: refuses header bombs",
    "rule": "resize, random_resized_crop, resize_crop_mirror, equalize: the numbers of torchvision and Pillow",
    "times": "decoders.video: frames by the moment when they are shown",
    "start": "decoders.audio: a part of a long recording",
    "duration": "decoders.audio: a part of a long recording",
}


@pytest.mark.oracle
@pytest.mark.parametrize("path", PATHS)
def test_signature(path, dali):
    theirs = public(dali, path)
    if theirs is None:
        pytest.skip("an operator beyond DALI's")
    ours = inspect.signature(public(ndd, path)).parameters
    expected = inspect.signature(theirs).parameters
    positional = [p.name for p in ours.values() if p.kind is p.POSITIONAL_ONLY]
    assert len(positional) == sum(p.kind is p.POSITIONAL_ONLY for p in expected.values())
    assert {p.kind for p in ours.values() if p.kind is p.VAR_POSITIONAL} == {
        p.kind for p in expected.values() if p.kind is p.VAR_POSITIONAL
    }
    keywords = {p.name for p in ours.values() if p.kind is p.KEYWORD_ONLY}
    assert not {p.name for p in expected.values() if p.kind is p.KEYWORD_ONLY} - keywords, "missing arguments"
    extra = keywords - set(expected) - set(BEYOND)
    assert not extra, "arguments that DALI has not: name them in BEYOND"
    for name in keywords & set(expected):
        needed = expected[name].default is inspect.Parameter.empty
        assert (ours[name].default is inspect.Parameter.empty) == needed, f"{name}: required or not"
    for p, q in zip(positional, [p for p in expected.values() if p.kind is p.POSITIONAL_ONLY], strict=True):
        assert (ours[p].default is inspect.Parameter.empty) == (q.default is inspect.Parameter.empty), p


@pytest.mark.oracle
@pytest.mark.parametrize("path", PATHS)
def test_defaults(path, dali):
    """What ndd shows as a default is DALI's own (None where DALI has none or works it out)."""
    schema = getattr(public(dali, path), "_schema", None)
    if schema is None:
        pytest.skip("an operator beyond DALI's")
    for argument in OPERATORS[path].arguments:
        if argument.default is None or argument.name in BEYOND or not schema.HasArgumentDefaultValue(argument.name):
            continue
        expected = _default_value(schema.GetArgumentDefaultValueString(argument.name))
        if expected is not None:
            own = argument.default
            own = [float(v) for v in own] if isinstance(own, list | tuple) else own
            if isinstance(expected, int) and not isinstance(own, bool | int | float | list):
                own = int(own.type_id)  # an element type, which is written as its number
            elif isinstance(expected, int) and isinstance(own, enum.IntEnum):
                own = int(own)
            assert _comparable(own) == _comparable(expected), f"{argument.name}: {own!r}, DALI {expected!r}"


def _default_value(text):
    """DALI writes defaults as Python text: numbers, lists, enum members, strings."""
    text = text.strip()
    if "." in text and text.split(".")[0] in ("DALIDataType", "DALIInterpType", "DALIImageType"):
        return text.split(".")[1]
    try:
        return eval(text, {"__builtins__": {}, "nan": float("nan"), "inf": float("inf")})
    except Exception:
        return None


def _comparable(value):
    if isinstance(value, bool | np.bool_):
        return float(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_comparable(v) for v in value] if len(value) != 1 else _comparable(value[0])
    if isinstance(value, ndd.DType):
        return value.type_id.name
    if hasattr(value, "name"):
        return value.name
    return round(float(value), 4) if isinstance(value, int | float | np.number) else str(value)


# ---- values


def _check_named(path, error):
    """An error tells the operator, and the operator's docstring tells the error."""
    assert OPERATORS[path].name in str(error), f"the error does not name the operator: {error}"
    text = inspect.getdoc(OPERATORS[path].function) or ""
    assert type(error).__name__ in text, f"the docstring does not name {type(error).__name__}: {error}"


def _against_oracle(dali, path, case, inputs, form, subject, trouble):
    try:
        theirs = evaluated(call(dali, path, case, inputs, form))
    except BUILTIN as error:
        refusal = error
    else:
        refusal = None
    with trouble.of(subject):
        try:
            ours = evaluated(call(ndd, path, case, inputs, form))
        except BUILTIN as error:
            if refusal is None:
                raise
            _check_named(path, error)
            return False
        if refusal is not None:
            return False  # wider than DALI: the GPU and element type tests look at it
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert describe(a) == describe(b)
            assert_same_values(arrays_of(a), arrays_of(b), case.relative, case.off_by_one)
    return True


@pytest.mark.oracle
@pytest.mark.parametrize(("path", "case"), CASES)
def test_values(path, case, dali):
    if not case.oracle or public(dali, path) is None:
        pytest.skip("the oracle has no CPU variant")
    trouble, compared = Trouble(), 0
    for layout in drawn(layouts_of(case, OPERATORS[path]), 2, path, case.args):
        for form in FORMS:
            subject = f"{form} {layout or ''} {case.args}"
            compared += _against_oracle(dali, path, case, samples(case, layout, form), form, subject, trouble)
    trouble.report()
    assert compared or trouble.found, "the oracle refuses every one of these calls: the case is of no use"


@pytest.mark.oracle
@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(42)
def test_without_layout(path, case, dali):
    """Images without a layout take DALI's default one, and say so."""
    op = OPERATORS[path]
    if case.inputs is not None or not case.oracle or public(dali, path) is None:
        pytest.skip("no images")
    trouble = Trouble()
    arrays = samples(case, "HWC")[0][0]
    _against_oracle(dali, path, case, [(arrays, None)], "ragged", f"no layout, {op.name}", trouble)
    trouble.report()


@sweep
@pytest.mark.oracle
@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(2)
def test_element_types(path, case, dali):
    if not case.oracle or public(dali, path) is None or case.inputs == ():
        pytest.skip("nothing to vary")
    trouble = Trouble()
    layout = layouts_of(case, OPERATORS[path])[0]
    for dtype in drawn_types(case.dtypes or DTYPES, 3, path):
        inputs = samples(case, layout, "ragged", dtype)
        _against_oracle(dali, path, case, inputs, "ragged", dtype, trouble)
    trouble.report()


def _runs_on_gpu(op):
    return op.runs_on_gpu and not decodes(op)


@sweep
@pytest.mark.parametrize(("path", "case"), CASES)
def test_gpu_equals_cpu(path, case, emulated_gpu):
    op = OPERATORS[path]
    if not _runs_on_gpu(op):
        pytest.skip("runs on the CPU only")
    trouble = Trouble()
    first = case == cases_of(path, op)[0]
    for layout in drawn(layouts_of(case, op), 2, path, case.args):
        dtypes = [d for d in case.dtypes or GPU_DTYPES if d in GPU_DTYPES] if first and layout in (None, "HWC") else []
        for dtype in drawn_types(dtypes, 2, path) or [None]:
            inputs = samples(case, layout, "ragged", dtype)
            with trouble.of(f"{layout or ''} {dtype or ''} {case.args}"):
                try:
                    expected = evaluated(call(ndd, path, case, inputs))
                except BUILTIN:
                    continue
                values = [ndd.batch(arrays, layout=own).gpu() for arrays, own in inputs]
                result = evaluated(call_with(ndd, public(ndd, path), case, values, "ragged", device="gpu"))
                for a, b in zip(result, expected, strict=True):
                    assert a.device == ndd.Device("gpu:0")
                    assert (str(a.dtype), a.ndim, a.layout, a.shape) == (str(b.dtype), b.ndim, b.layout, b.shape)
                    assert_same_values(arrays_of(a), arrays_of(b), max(case.relative, 2e-5), max(case.off_by_one, 0.02))
    trouble.report()


@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(12)  # kernels are built for each
def test_device_takes_the_inputs_there(path, case, emulated_gpu):
    """`device="gpu"` with inputs on the CPU, and the other way round."""
    op = OPERATORS[path]
    if not _runs_on_gpu(op) or case.inputs == ():
        pytest.skip("no inputs that could be elsewhere")
    inputs = samples(case, layouts_of(case, op)[0])
    values = [ndd.batch(arrays, layout=own) for arrays, own in inputs]
    expected = evaluated(call_with(ndd, public(ndd, path), case, values, "ragged"))
    there = [value.gpu() for value in values]
    for device, arguments in (("gpu", values), ("cpu", there)):
        result = evaluated(call_with(ndd, public(ndd, path), case, arguments, "ragged", device=device))
        for a, b in zip(result, expected, strict=True):
            assert a.device.device_type == device
            assert (str(a.dtype), a.layout, a.shape) == (str(b.dtype), b.layout, b.shape)
            assert_same_values(arrays_of(a), arrays_of(b), max(case.relative, 2e-5), max(case.off_by_one, 0.02))


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_a_batch_is_a_fixed_number_of_launches(path, case, emulated_gpu):
    """However many samples there are, and however different their shapes."""
    op = OPERATORS[path]
    if not _runs_on_gpu(op) or case.inputs == () or path == "permute_batch":
        pytest.skip("no batch on a GPU")
    layout = layouts_of(case, op)[0]
    counts = set()
    for repeats in (1, 2, 5):
        values = [ndd.batch(arrays * repeats, layout=own).gpu().evaluate() for arrays, own in samples(case, layout)]
        before = len(emulated_gpu.launches)
        evaluated(call_with(ndd, public(ndd, path), case, values, "ragged", device="gpu"))
        counts.add(len(emulated_gpu.launches) - before)
    assert len(counts) == 1, f"launches for 3, 6 and 15 samples: {counts}"


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_a_kernel_goes_round_where_there_is_more_than_its_blocks_hold(path, case, emulated_gpu, monkeypatch):
    from ndd._cuda import launch

    op = OPERATORS[path]
    if not _runs_on_gpu(op) or case.inputs == () or path == "permute_batch":
        pytest.skip("no batch on a GPU")
    monkeypatch.setattr(launch, "_ENOUGH_BLOCKS", 1)
    monkeypatch.setattr(launch, "_ROUNDS", 1 << 20)
    inputs = [(arrays * 2, own) for arrays, own in samples(case, layouts_of(case, op)[0])]  # shapes not launched before
    expected = evaluated(call(ndd, path, case, inputs))
    values = [ndd.batch(arrays, layout=own).gpu() for arrays, own in inputs]
    result = evaluated(call_with(ndd, public(ndd, path), case, values, "ragged", device="gpu"))
    for a, b in zip(result, expected, strict=True):
        assert_same_values(arrays_of(a), arrays_of(b), max(case.relative, 2e-5), max(case.off_by_one, 0.02))


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_bfloat16(path, case):
    """What takes every element type takes bfloat16 too (the oracle has none), and computes as with float32."""
    op = OPERATORS[path]
    if case.dtypes or case.inputs == () or (op.types is not None and ndd.bfloat16.name not in op.types):
        pytest.skip("takes some element types only")
    layout = layouts_of(case, op)[0]
    inputs = samples(case, layout, "ragged", "float32")
    narrow, wide = [], []
    for arrays, own in inputs:
        narrow.append(ndd.batch(arrays, layout=own, dtype=ndd.bfloat16))
        wide.append(ndd.cast(narrow[-1], dtype=ndd.float32))
    result = evaluated(call_with(ndd, public(ndd, path), case, narrow, "ragged"))
    expected = evaluated(call_with(ndd, public(ndd, path), case, wide, "ragged"))
    for a, b in zip(result, expected, strict=True):
        assert a.dtype in (ndd.bfloat16, b.dtype)
        same = ndd.cast(a, dtype=b.dtype)
        assert_same_values(arrays_of(same), arrays_of(b), 1e-2 if a.dtype is ndd.bfloat16 else 1e-5, 0.02)


# ---- the ways to run


@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(42)
def test_modes_give_equal_values(path, case):
    layout = layouts_of(case, OPERATORS[path])[0]
    inputs = samples(case, layout)
    result = {}
    for mode in ndd.EvalMode:
        with mode:
            result[mode] = [arrays_of(out) for out in call(ndd, path, case, inputs)]
    for mode, outputs in result.items():
        for a, b in zip(outputs, result[ndd.EvalMode.sync_full], strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y, err_msg=str(mode))


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_gpu_modes_give_equal_values(path, case, emulated_gpu):
    if not _runs_on_gpu(OPERATORS[path]):
        pytest.skip("runs on the CPU only")
    inputs = samples(case, layouts_of(case, OPERATORS[path])[0])
    result = []
    for mode in ndd.EvalMode:
        with mode:
            values = [ndd.batch(arrays, layout=own).gpu() for arrays, own in inputs]
            outputs = call_with(ndd, public(ndd, path), case, values, "ragged", device="gpu")
            before = [(o.dtype, o._spec.ndim, o.layout, o.device) for o in outputs]
            evaluated(outputs)
            after = [(o.dtype, o._spec.ndim, o.layout, o.device) for o in outputs]
            assert all(b[1] is None or b == a for b, a in zip(before, after, strict=True))
            result.append([a for o in outputs for a in arrays_of(o)])
    for other in result[1:]:
        for a, b in zip(result[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_what_comes_out_is_known_before_it_runs(path, case):
    layout = layouts_of(case, OPERATORS[path])[0]
    with ndd.EvalMode.deferred:
        outputs = call(ndd, path, case, samples(case, layout))
        before = [(o.dtype, o._spec.ndim, o.layout, o.device, o.batch_size) for o in outputs]
        assert all(o._pending is None or o._pending.state == 0 for o in outputs), "asking for the type ran it"
        for out, (dtype, ndim, own, device, n) in zip(outputs, before, strict=True):
            out.evaluate()
            assert (out.dtype, out.layout, out.device, out.batch_size) == (dtype, own, device, n)
            assert ndim is None or ndim == out.ndim
            assert all(len(s) == out.ndim for s in out.shape)
            assert all(a.dtype == np.dtype(out.dtype.numpy) for a in arrays_of(out))


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_an_empty_batch(path, case):
    layout = layouts_of(case, OPERATORS[path])[0]
    if case.inputs == () or path == "permute_batch":
        pytest.skip("takes no batch")
    values = [ndd.batch(arrays, layout=own).select([]) for arrays, own in samples(case, layout)]
    for out in evaluated(call_with(ndd, public(ndd, path), case, values, "ragged")):
        assert (out.batch_size, out.shape) == (0, [])


# Where ndd is not as the oracle on purpose.
ODD_OF_ITS_OWN = {("sphere", (1, 1, 3)): "the oracle divides 0 by 0 and gives `fill_value`; ndd keeps the pixel"}


def _odd_images(case, shape):
    """Three images of one shape, as the input of a case."""
    rng, dtype = np.random.default_rng(shape), case.dtypes[0] if case.dtypes else "uint8"
    return [([numbers(rng, shape, dtype) for _ in range(3)], "HWC")]


@sweep
@pytest.mark.oracle
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_odd_extents(path, case, dali):
    """Images of one pixel, one row, one column: the oracle's values, or an error where it has one."""
    if case.inputs is not None or not case.oracle or public(dali, path) is None:
        pytest.skip("no images, or no oracle")
    case = dataclasses.replace(case, off_by_one=max(case.off_by_one, 0.12))  # of few elements one or two
    trouble = Trouble()
    for shape in ((1, 1, 3), (1, 9, 3), (9, 1, 3), (257, 2, 3)):
        if (path, shape) not in ODD_OF_ITS_OWN:
            _against_oracle(dali, path, case, _odd_images(case, shape), "ragged", shape, trouble)
    trouble.report()


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_odd_extents_on_the_gpu(path, case, emulated_gpu):
    """No rows and no columns as well, of which the oracle may die: what the CPU gives, errors too."""
    op = OPERATORS[path]
    if case.inputs is not None or not _runs_on_gpu(op):
        pytest.skip("no images, or runs on the CPU only")
    trouble = Trouble()
    for shape in ((1, 1, 3), (1, 9, 3), (9, 1, 3), (257, 2, 3), (0, 5, 3), (5, 0, 3)):
        with trouble.of(shape):
            ((arrays, layout),) = _odd_images(case, shape)
            try:
                expected = evaluated(call(ndd, path, case, [(arrays, layout)]))
            except BUILTIN as error:
                _check_named(path, error)
                with pytest.raises(type(error), match=op.name):
                    evaluated(
                        call_with(ndd, public(ndd, path), case, [ndd.batch(arrays, layout=layout).gpu()], "ragged")
                    )
                continue
            result = evaluated(
                call_with(ndd, public(ndd, path), case, [ndd.batch(arrays, layout=layout).gpu()], "ragged")
            )
            for a, b in zip(result, expected, strict=True):
                assert (str(a.dtype), a.layout, a.shape) == (str(b.dtype), b.layout, b.shape)
                # Of few elements one or two: halves that CPU and GPU round each in its own way.
                assert_same_values(arrays_of(a), arrays_of(b), max(case.relative, 2e-5), max(case.off_by_one, 0.12))
    trouble.report()


@sweep
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_arguments_may_differ_between_samples(path, case):
    """Each sample has the result of a call with its value alone; the middle one has another value than its neighbours. Samples
    of one shape too: a kernel gets them together, and the values of all beside them."""
    op = OPERATORS[path]
    layout = layouts_of(case, op)[0]
    trouble = Trouble()
    for form, argument in itertools.product(("ragged", "uniform"), op.arguments):
        value = case.args.get(argument.name, argument.default)
        value = value.values[0] if isinstance(value, EachSample) else value
        if not argument.per_sample or value is None or isinstance(value, str):
            continue
        item = np.asarray(value, argument.numpy)
        other = (
            ~item if item.dtype.kind == "b" else item + 1 if item.dtype.kind == "i" else item * np.float32(0.75) + 0.125
        )
        inputs = samples(case, layout, form)
        with trouble.of(f"{argument.name}, {form}"):
            alone = [evaluated(call(ndd, path, case, inputs, form, **{argument.name: item.tolist()}))]
            try:
                alone.append(evaluated(call(ndd, path, case, inputs, form, **{argument.name: other.tolist()})))
            except BUILTIN:  # no value that it takes
                other = item
            each = ndd.batch([item, other.astype(item.dtype), item])
            result = evaluated(call(ndd, path, case, inputs, form, **{argument.name: each}))
            for k, output in enumerate(result):
                expected = [arrays_of(alone[i % len(alone)][k])[i] for i in range(3)]
                assert_same_values(arrays_of(output), expected, 1e-6)
    trouble.report()


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_source_info_survives(path, case):
    """A sample keeps the name of its file through every operator."""
    op = OPERATORS[path]
    if case.inputs == () or path in ("permute_batch", "batch_permutation"):
        pytest.skip("takes no batch")
    layout = layouts_of(case, op)[0]
    values = []
    for arrays, own in samples(case, layout):
        values.append(ndd.batch(arrays, layout=own))
    values[0]._value().source_info = ["a.jpg", "b.jpg", "c.jpg"]
    for out in evaluated(call_with(ndd, public(ndd, path), case, values, "ragged")):
        assert out.source_info == ["a.jpg", "b.jpg", "c.jpg"]


# ---- errors


@pytest.mark.parametrize("path", PATHS)
def test_wrong_calls(path):
    op = OPERATORS[path]
    function = public(ndd, path)
    with pytest.raises(TypeError, match=op.name):
        function(*[ndd.tensor([1])] * op.required, no_such_argument=1)
    if op.required:
        with pytest.raises(TypeError, match=op.name):
            function()
    if op.layouts and not any(len(x) == 9 for x in op.layouts):
        with pytest.raises(BUILTIN, match=op.name):
            evaluated(
                call_with(ndd, function, (cases_of(path, op) or [Case()])[0], [ndd.tensor(np.ones((1,) * 9))], "one")
            )


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_a_failed_input_is_reported_once_and_harms_nothing(path, case):
    op = OPERATORS[path]
    if op.required != 1 or case.inputs == ():
        pytest.skip("one input shows it")
    layout = layouts_of(case, op)[0]
    (arrays, own) = samples(case, layout)[0]
    if not arrays[0].ndim:
        pytest.skip("nothing to index")
    bad = ndd.cast(ndd.batch(arrays, layout=own).slice[10_000], dtype=ndd.uint8)
    good = ndd.batch(arrays, layout=own)
    with pytest.raises(RuntimeError, match="out of range"):
        bad.evaluate()
    evaluated(call_with(ndd, public(ndd, path), case, [good], "ragged"))
