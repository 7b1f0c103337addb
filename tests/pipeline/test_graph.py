"""The graph of a pipeline: names of nodes, definitions as text, dot files, statistics."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import ndd
import ndd.backend
import ndd.tfrecord as tfrec
from ndd import fn, math, types

PHOTOS = str(Path(ndd.__file__).parent / "demo" / "photos")
RUN = {"batch_size": 3, "num_threads": 1, "device_id": None, "seed": 7}


def images():
    """Much of what a body may hold."""
    jpegs, labels = fn.readers.file(file_root=PHOTOS, random_shuffle=True, name="R", stick_to_shard=True)
    pictures = fn.random_resized_crop(fn.decoders.image(jpegs, output_type=types.GRAY), size=(8, 6))
    scaled = fn.crop_mirror_normalize(
        pictures,
        mean=[3.0],
        std=np.float32([2]),
        mirror=fn.random.coin_flip(probability=0.3),
        dtype=types.FLOAT,
        crop=(7, 6),
    )
    edges = math.clamp(3 - pictures[1:, :5, None], 0, types.Constant(90).uint8())
    numbers = types.Constant([1, 2], dtype=types.FLOAT, shape=[2]) / fn.cast(
        labels + np.array([1, 2]), dtype=ndd.float32
    )
    return scaled, edges, pictures.shape(), numbers, fn.reshape(pictures[ndd.pipeline.newaxis("N")], layout="DHWC"), 2.5


def recorded(pipe):
    with pipe:
        pipe.set_outputs(*images())
    return pipe


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ndd.pipeline_def(images)(**RUN), id="pipeline_def"),
        pytest.param(lambda: recorded(ndd.Pipeline(**RUN)), id="with"),
    ],
)
@pytest.mark.drawn(1)
def test_what_is_read_again_gives_the_same(make, tmp_path):
    pipe, file = make(), tmp_path / "pipe.json"
    text = pipe.serialize(filename=file)
    pipe.run()
    assert pipe.serialize() == text == file.read_bytes()
    pipe, again = make(), ndd.Pipeline.deserialize(filename=file)
    assert again.serialize() == text
    for _ in range(3):
        for ours, read in zip(pipe.run(), again.run(), strict=True):
            assert (ours.layout(), ours.dtype, ours.shape()) == (read.layout(), read.dtype, read.shape())
            assert all(np.array_equal(a, b) for a, b in zip(ours.batch, read.batch, strict=True))
    assert again.reader_meta("R")["epoch_size"] == pipe.reader_meta("R")["epoch_size"]
    larger = ndd.Pipeline.deserialize(text, batch_size=4, seed=8)
    assert (larger.max_batch_size, larger.seed, len(larger.run()[0])) == (4, 8, 4)
    other = ndd.Pipeline(**RUN)
    other.deserialize_and_build(text)
    assert len(other.run()) == 6


@pytest.mark.oracle
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
def test_the_seed_is_a_part_of_what_is_read(package):
    library = importlib.import_module(package)

    def drawn(pipeline):
        return [output.as_array().tolist() for output in pipeline.run()]

    def result(**seed):
        body = library.fn.random.uniform, library.fn.random.normal
        return library.pipeline_def(lambda: tuple(draw() for draw in body))(
            batch_size=3, num_threads=1, device_id=None, **seed
        )

    text = result(seed=7).serialize()
    for arguments, seed in (({}, 7), ({"seed": 8}, 8)):
        other = library.Pipeline(batch_size=3, num_threads=1, device_id=None, **arguments)
        other.deserialize_and_build(text)
        assert drawn(other) == drawn(result(seed=seed))


def test_sources_are_fed_by_name():
    def body():
        first, second = fn.external_source(lambda: ([1, 2], [3, 4]), num_outputs=2)
        return first + 1, second, fn.external_source([[5, 6]], name="named")

    pipe = ndd.pipeline_def(body)(batch_size=2)
    again = ndd.Pipeline.deserialize(pipe.serialize(), prefetch_queue_depth=1)
    again.feed_input("__ExternalSource_0", ([1, 2], [3, 4]))
    again.feed_input("named", [5, 6])
    assert [o.as_array().tolist() for o in again.run()] == [[2, 3], [3, 4], [5, 6]]


def test_tfrecords(tmp_path):
    features = {"a": tfrec.FixedLenFeature((), tfrec.int64, 3), "b": tfrec.VarLenFeature(tfrec.float32, 0.5)}

    def body():
        result = fn.readers.tfrecord(path=[str(tmp_path / "none")], features=features, name="T")
        return result["a"], result["b"]

    text = ndd.pipeline_def(body)(batch_size=2).serialize()
    assert ndd.pipeline_def(body)(batch_size=2).serialize() == text
    assert f'"Feature": [{{"tuple": []}}, {int(tfrec.int64)}, 3, false]' in text.decode()


def test_what_is_not_written():
    for body, said in (
        (
            lambda: fn.python_function(fn.constant(idata=1), function=abs),
            "fn.python_function: function: a builtin_function",
        ),
        (
            lambda: ndd.auto_aug.trivial_augment.trivial_augment_wide(fn.constant(idata=1)),
            "not made by a function of",
        ),
        (lambda: fn.copy(ndd.tensor([1])), "fn.copy: input 0: a Tensor cannot be written"),
    ):
        pipe = ndd.pipeline_def(body, enable_conditionals=True)(batch_size=2)
        with pytest.raises(RuntimeError, match=said):
            pipe.serialize()
    with pytest.raises(TypeError, match=r"serialize\(filename=...\)"):
        pipe.serialize("name")
    assert ndd.Pipeline(batch_size=2).serialize(lambda: fn.constant(idata=1))


def test_other_texts_are_refused():
    for arguments in ((), (b"a", "b")):
        with pytest.raises(ValueError, match="either serialized_pipeline or filename"):
            ndd.Pipeline.deserialize(*arguments)
    whole = json.loads(ndd.pipeline_def(images)(**RUN).serialize())
    call = {"inputs": [], "arguments": {}}
    for changed, said in (
        (b"", "expected what"), ("\x08\x02\x10", "expected what"), ("[1]", "expected what"), ("{}", "expected what"),
        ({"version": 2}, "version 1"), ({"options": {"seed": {"x": 1}}}, "expected what"),
        ({"options": {"sefd": 1}}, "unknown option 'sefd'"),
        ({"calls": whole["calls"][1:]}, "is inconsistent"),
        ({"outputs": [{"node": [99, None]}]}, "is inconsistent"),
        *(({"calls": [{"function": name, **call}]}, "is inconsistent") for name in (
            "__class__", "lookup", "_home.os.system", "DataNode.__init__", "math.os", "readers", "constant.__globals__")),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=said):
            ndd.Pipeline.deserialize(json.dumps({**whole, **changed}) if isinstance(changed, dict) else changed)


def test_names_are_dalis():
    nvidia = pytest.importorskip("nvidia.dali")
    from nvidia.dali import newaxis as their_newaxis

    result = []
    for module, newaxis in ((nvidia, their_newaxis), (ndd, ndd.pipeline.newaxis)):
        f, names = module.fn, []

        def body(f=f, names=names, newaxis=newaxis, module=module):
            x = f.external_source(name="x")
            jpegs, labels = f.readers.file(files=["a"], name="rd")
            y = f.flip(x, horizontal=f.random.coin_flip(name="coin"))
            z = f.resize(y, size=[8, 8], name="big") + 1
            boxes = f.random_bbox_crop(np.zeros((1, 4), np.float32))
            nodes = [
                x, jpegs, labels, y, z, f.slice(y, 0, 1, axes=[0], name="sl"), f.transforms.scale(scale=[1.0, 2.0]), *boxes,
                f.random.uniform(), y[0], -y * 2, f.cast(y, dtype=module.types.FLOAT), y.shape(), f.constant(idata=2),
                f.bbox_paste(boxes[1], ratio=2.0), f.mfcc(x),
            ]  # fmt: skip
            names[:] = [node.name for node in nodes]
            return y

        module.pipeline_def(body)(batch_size=2, num_threads=1, device_id=None).build()
        if module is ndd:
            ndd.pipeline_def(body)(batch_size=2).serialize()
        result.append(names)
    assert result[1] == result[0]


def edges(file):
    """The edges of a dot file."""
    text = file.read_text()
    assert re.fullmatch(r'digraph pipeline \{\n("[^"]*"( -> "[^"]*")?(\[\w+="?\w+"?\])?;\n)*\}\n', text)
    return re.findall(r'"([^"]*)" -> "([^"]*)"', text)


def test_dot_files(tmp_path):
    def body():
        x = fn.external_source(name="x")
        y = fn.flip(x, horizontal=fn.random.coin_flip(name="coin"), device="cpu")
        parts = fn.python_function(y, function=abs, num_outputs=2, name="twice")
        return parts[1], y + 1

    pipe, file = ndd.pipeline_def(body)(batch_size=2), tmp_path / "a.dot"
    pipe.save_graph_to_dot_file(file)
    sum_name = "___ArithmeticGenericOp_1"
    assert sorted(edges(file)) == sorted(
        [("x", "__Flip_0"), ("coin", "__Flip_0"), ("__Flip_0", "twice"), ("__Flip_0", sum_name), ("twice", "output 0"),
         (sum_name, "output 1")]
    )  # fmt: skip
    with pytest.warns(DeprecationWarning, match="show_ids"):
        pipe.save_graph_to_dot_file(str(file), show_tensors=True, show_ids=True, use_colors=True)
    assert {("twice", "twice[1]"), ("twice[1]", "output 0"), ("x[0]", "__Flip_0")} <= set(edges(file))
    assert '"twice"[color=blue];' in file.read_text()


@pytest.mark.parametrize(
    "way", [lambda body, **run: ndd.pipeline_def(body)(**run), lambda body, **run: with_body(body, **run)]
)
def test_statistics(way):
    sizes = iter([2, 3, 1])

    def body():
        x = fn.external_source(lambda: [np.zeros((k, 4), np.float32) for k in (next(sizes), 1)], name="x")
        fn.cast(x, dtype=types.UINT8, name="for nothing")
        return fn.cast(x, dtype=types.UINT8, name="y"), fn.constant(idata=3)

    pipe = way(body, batch_size=2, enable_memory_stats=True, prefetch_queue_depth=1)
    assert pipe.executor_statistics() == {}
    for _ in range(3):
        pipe.run()
    result = pipe.executor_statistics()
    assert result["CPU_x"] == {
        "real_memory_size": [64], "max_real_memory_size": [48], "reserved_memory_size": [64], "max_reserved_memory_size": [48],
    }  # fmt: skip
    assert result["CPU_y"]["real_memory_size"] == [16]
    assert pipe.external_source_shm_statistics() == {"capacities": [], "per_sample_capacities": []}


def with_body(body, **run):
    pipe = ndd.Pipeline(**run)
    with pipe:
        pipe.set_outputs(*body())
    return pipe


def test_none_is_a_whole_axis():
    nvidia = pytest.importorskip("nvidia.dali")
    result = []
    for module in (nvidia, ndd):

        def body(module=module):
            x = module.fn.external_source(lambda: [np.arange(6).reshape(2, 3)] * 2, layout="HW")
            return (
                x[None],
                x[None, 0],
                x[:, None],
                x[module.newaxis if module is nvidia else module.pipeline.newaxis, None],
            )

        outputs = module.pipeline_def(body)(batch_size=2, num_threads=1, device_id=None).run()
        result.append([(o.layout(), o.as_array().tolist()) for o in outputs])
    assert result[1] == result[0]


def test_buffer_factors_and_streams():
    before = ndd.backend.GetHostBufferGrowthFactor()
    ndd.backend.SetBufferGrowthFactor(1.5)
    assert ndd.backend.GetDeviceBufferGrowthFactor() == ndd.backend.GetHostBufferGrowthFactor() == 1.5
    ndd.backend.SetBufferGrowthFactor(before)
    for wrong in (lambda: ndd.backend.SetBufferGrowthFactor(5), lambda: ndd.backend.SetHostBufferShrinkThreshold(1.5)):
        with pytest.raises(ValueError, match="expected a number from"):
            wrong()
    assert types.CUDAStream(3).ptr == 3


def test_sides_of_and():
    pipe = ndd.pipeline_def(
        lambda: fn._conditional.validate_logical(
            fn.constant(idata=[1, 2]), expression_name="and", expression_side="left"
        )
    )(batch_size=2)
    with pytest.raises(RuntimeError, match="left side of `and`"):
        pipe.run()
