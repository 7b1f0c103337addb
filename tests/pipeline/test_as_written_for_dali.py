"""Programs as the examples of DALI's pipeline mode are written, run with DALI and with ndd: only the import differs."""

from __future__ import annotations

from pathlib import Path

import pytest

import ndd

PHOTOS = Path(ndd.__file__).parent / "demo" / "photos"
IMPORTS = """
import numpy as np, os, random
from nvidia.dali import pipeline_def, Pipeline
import nvidia.dali.fn as fn
import nvidia.dali.math as dmath
import nvidia.dali.types as types
"""

PROGRAMS = {
    "operators, new axes and lists of nodes": """
from nvidia.dali import newaxis, StreamPolicy, OperatorConcurrency
images = [np.arange(24, dtype=np.uint8).reshape(2, 4, 3), np.arange(60, dtype=np.uint8).reshape(5, 4, 3)]
@pipeline_def(batch_size=2, num_threads=1, device_id=None, stream_policy=StreamPolicy.SINGLE,
              concurrency=OperatorConcurrency.NONE)
def made():
    x = fn.external_source(lambda: [np.int32([-1, 0, 1]), np.int32([4, 5, 6])])
    first = fn.external_source(lambda: [np.int32(0), np.int32(1)])
    y = fn.external_source(lambda: images, layout="HWC")
    flipped, again = fn.flip([y, y[:, 1:]], horizontal=1)
    return (
        ~(x > 0), x << 1, x >> 1, 2 << abs(x), 64 >> abs(x), 7 % (x + 9), ~x, x + np.array([1, 2, 3]), y[first:],
        y[:, :, newaxis], y[:, newaxis("X"), :], y[newaxis("N")], y[0, newaxis("Q"), 1:], y[:, newaxis("Q"), 0],
        flipped, again, fn.cat(x, np.array([7, 8])), fn.copy([1.5, 2]), fn.copy(3), x.shape(device="cpu"),
        fn.constant(idata=3, shape=[2]), fn.constant(fdata=1.5, dtype=types.INT32),
        fn.constant(idata=[1, 2, 3, 4], shape=[2, 2], layout="HW", dtype=types.UINT8), y.property("layout", device="cpu"),
        fn.python_function(x, function=lambda v: (v, v)), fn.fast_resize_crop_mirror(y, size=[4, 4], crop=[2, 2], mirror=1),
        fn.dl_tensor_python_function(x, function=lambda v: [v[0], v[1]], batch_processing=True, synchronize_stream=False),
        fn.dl_tensor_python_function(x, function=lambda v: v, output_layouts="X", synchronize_stream=False),
    )
for v in made().run():
    out(v.layout(), v.ndim(), str(v.dtype), [np.array(t) for t in v])
for wrong in (lambda: made(num_threads=0).build(), lambda: newaxis("XY")):
    try:
        wrong()
    except ValueError:
        out("ValueError")
""",
    "what lists of tensors and constants offer": """
import ctypes
pipe = pipeline_def(lambda: fn.constant(idata=[1, 2, 3, 4], shape=[2, 2]))(batch_size=2, num_threads=1, device_id=None)
pipe.enable_api_check(False)
pipe.schedule_run()
(found,) = pipe.outputs(cuda_stream=None)
memory = (ctypes.c_int32 * 8)()
found.copy_to_external(ctypes.c_void_p(ctypes.addressof(memory)))
one = (ctypes.c_int32 * 4)()
found[1].copy_to_external(ctypes.c_void_p(ctypes.addressof(one)))
out(list(memory), list(one), found.data_ptr() > 0, found[0].ndim(), found[0].__array_interface__["shape"])
found.set_layout("HW")
one = found[0]
one.set_layout("XY")
out(found.layout(), one.layout(), one.get_property("layout"), found[0].layout())
one.set_layout(None)
found.set_layout("")
out(one.layout(), found.layout())
pipe.schedule_run()
out([v.as_array() for v in pipe.share_outputs(cuda_stream=None)])
pipe.release_outputs()
five = types.ScalarConstant(5)
out(int(five), bool(types.ScalarConstant(0)), five.dtype.name, types.ScalarConstant(0.5).dtype.name)
out(str(types.TensorLayout("HWC")), types.TensorLayout("HWC") == "HWC", len(types.TensorLayout("HWC")))
try:
    types.ScalarConstant([1])
except TypeError:
    out("TypeError")
""",
    "what cannot be fed, and pipelines without outputs": """
def made(source=None, depth=1, **how):
    body = pipeline_def(lambda: fn.external_source(source, name="x", **how))
    return body(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=depth)
def refused(what, call):
    try:
        call()
    except NotImplementedError:
        out(what, "NotImplementedError")
    except RuntimeError:
        out(what, "RuntimeError")
one, fraction = np.int32([1]), np.float32([1.5])
for what in (None, 3, object(), [object(), object()], [one, fraction], [1, 2.5], [one, [one]], [one] * 3):
    refused(str(type(what)), lambda: made().run(x=what))
    refused(str(type(what)), lambda: made(lambda: what).run())
refused("layout", lambda: made(layout="HWC").run(x=[one, one]))
for depth in (1, 2, 3, {"cpu_size": 4, "gpu_size": 2}):
    pipe = made(depth=depth)
    pipe.build()
    out(pipe.input_feed_count("x"))
pipe = made(depth=2)
pipe.build()
for i in range(pipe.input_feed_count("x")):
    pipe.feed_input("x", [np.int32(i), np.int32(5)])
for i in range(2, 5):
    out([int(np.array(t)) for t in pipe.run()[0]])
    pipe.feed_input("x", [np.int32(i), np.int32(5)])
pipe = Pipeline(2, 1, None)
with pipe:
    pipe.set_outputs()
refused("set_outputs()", pipe.build)
refused("None", lambda: pipeline_def(lambda: None)(batch_size=2, num_threads=1, device_id=None).run())
""",
    "a class that feeds before every run": """
class Fed(Pipeline):
    def __init__(self, depth):
        super().__init__(2, 1, None, prefetch_queue_depth=depth)
        self.left = 3
    def define_graph(self):
        self.numbers = fn.external_source(name="numbers")
        return self.numbers * 10
    def iter_setup(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        self.feed_input(self.numbers, [np.int32(self.left), np.int32(self.left + 5)])
for depth in (1, 2):
    pipe = Fed(depth)
    pipe.build()
    for _ in range(3):
        out(pipe.run()[0].as_array())
    try:
        pipe.run()
    except StopIteration:
        out("the end")
""",
    "getting started": """
@pipeline_def
def simple_pipeline():
    jpegs, labels = fn.readers.file(file_root=PHOTOS)
    return fn.decoders.image(jpegs, device="cpu"), labels
pipe = simple_pipeline(batch_size=8, num_threads=1, device_id=None)
pipe.build()
images, labels = pipe.run()
out(images.is_dense_tensor(), labels.is_dense_tensor(), len(images), images.layout(), images.shape(), str(images.dtype))
out(np.array(labels.as_tensor()), labels.as_array(), [np.array(x).shape for x in images], images.at(3).sum())
out(images.as_cpu().at(0).shape, labels.as_tensor().shape(), labels.as_reshaped_tensor([2, 4]).shape())
""",
    "a class": """
class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id):
        super().__init__(batch_size, num_threads, device_id, seed=12)
    def define_graph(self):
        jpegs, labels = fn.readers.file(file_root=PHOTOS, name="R")
        return fn.resize(fn.decoders.image(jpegs), size=[20, 30]), labels
pipe = SimplePipeline(4, 2, None)
pipe.build()
images, labels = pipe.run()
out(images.as_array().shape, labels.as_array(), pipe.epoch_size("R"), pipe.epoch_size(), pipe.reader_meta("R"))
out(pipe.max_batch_size, pipe.num_threads, pipe.device_id, pipe.seed, pipe.num_outputs)
""",
    "with": """
with Pipeline(batch_size=2, num_threads=1, device_id=None) as pipe:
    files, labels = fn.readers.file(file_root=PHOTOS)
    one, *others = fn.external_source(lambda: ([np.int32(1)] * 2, [np.int32(2)] * 2, [np.int32(3)] * 2), num_outputs=3)
    pipe.set_outputs(labels, one, *others, np.float32([1, 2]), 7)
out([v.as_array() for v in pipe.run()])
""",
    "an iterator as source": """
class ExternalInputIterator:
    def __init__(self, batch_size):
        self.batch_size, self.files = batch_size, sorted(str(p) for p in __import__("pathlib").Path(PHOTOS).rglob("*.jp*g"))
    def __iter__(self):
        self.i = 0
        return self
    def __next__(self):
        found = [np.fromfile(self.files[(self.i + k) % len(self.files)], np.uint8) for k in range(self.batch_size)]
        labels = [np.array([self.i + k], dtype=np.uint8) for k in range(self.batch_size)]
        self.i += self.batch_size
        return found, labels
pipe = Pipeline(batch_size=3, num_threads=2, device_id=None)
with pipe:
    jpegs, labels = fn.external_source(source=ExternalInputIterator(3), num_outputs=2, dtype=types.UINT8)
    images = fn.brightness_contrast(fn.decoders.image(jpegs, device="cpu", output_type=types.RGB), contrast=2)
    pipe.set_outputs(images, labels)
pipe.build()
for _ in range(3):
    images, labels = pipe.run()
    out(labels.as_array(), images.shape())
""",
    "samples by their infos": """
class ExternalInputCallable:
    def __call__(self, info):
        if info.iteration >= 3:
            raise StopIteration()
        place = np.random.default_rng(seed=42 + info.epoch_idx).permutation(13)[info.idx_in_epoch]
        return np.full(2, place, np.int32), np.int32([info.idx_in_batch, info.idx_in_epoch, info.iteration, info.epoch_idx])
@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def callable_pipeline():
    return tuple(fn.external_source(source=ExternalInputCallable(), num_outputs=2, batch=False, dtype=[types.INT32] * 2))
pipe = callable_pipeline()
pipe.build()
for epoch in range(2):
    while True:
        try:
            out([v.as_array() for v in pipe.run()])
        except StopIteration:
            out("end")
            pipe.reset()
            break
""",
    "batches and cycles": """
data = [[np.int32(i + 10 * k) for i in range(3)] for k in range(2)]
def batches(info):
    if info.iteration >= 2:
        raise StopIteration
    return [np.int32([info.iteration, info.epoch_idx])] * 3
def run(count, **given):
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def made():
        return fn.external_source(**given)
    pipe = made()
    for _ in range(count):
        try:
            out(pipe.run()[0].as_array())
        except StopIteration:
            out("end")
            pipe.reset()
run(7, source=batches, batch=True, batch_info=True)
class Restarts:
    def __iter__(self):
        self.left = data[::-1]
        return self
    def __next__(self):
        if not self.left:
            raise StopIteration
        *self.left, found = self.left
        return found
for cycle in (False, True, "quiet", "no", "raise"):
    run(6, source=data, cycle=cycle)
    run(6, source=Restarts(), cycle=cycle)
run(2, source=lambda: np.arange(12, dtype=np.float32).reshape(3, 4), no_copy=True)
run(3, source=lambda i: np.full((3, 2), i, np.int16))
""",
    "arithmetic": """
@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def made():
    a = fn.external_source(lambda: [np.uint8([1, 2, 130]), np.uint8([4, 200, 255])])
    b = fn.external_source(lambda: [np.float32([0.5, -2, 3]), np.float32([1, 1, 2])])
    c = fn.external_source(lambda: [np.int32([0, -2, 3]), np.int32([1, 1, 2])])
    ten = types.Constant(10).uint8()
    return (
        a + b, a * 3, a - ten, a / 2, a // 3, -c, ten + a, types.Constant(-4).int16() * a, a & 3, a | 4, a ^ 1, a < 100,
        a == 4, b > a, dmath.sqrt(a), dmath.clamp(c, 0, 2), dmath.min(a, 5), dmath.max(b, c), dmath.pow(b, 2),
        dmath.floor(b), dmath.abs(c), types.Constant([1, 2, 3]) + a, types.Constant(np.float32([1, 2, 3])) * c, 5 - a,
        types.Constant(1.5) + a, types.Constant(3), types.Constant([1, 2], dtype=types.FLOAT, shape=[2, 1]),
    )
out([(str(v.dtype), v.as_array().astype(np.float64).round(4)) for v in made().run()])
try:
    types.Constant("a")
except TypeError:
    out("no text")
""",
    "conditions": """
@pipeline_def(batch_size=6, num_threads=1, device_id=None, enable_conditionals=True)
def made():
    x = fn.external_source(lambda: [np.int32(i) for i in range(6)])
    if x > 3:
        y = x * 10
    elif x == 1:
        y = x - 100
    else:
        y = -x
    z = x
    if x < 2 or x > 4:
        z = x + 1000
    if x > 1 and x < 4:
        w = fn.cast(x, dtype=types.FLOAT)
    else:
        w = 0.5
    return y, z, not x, w
out([(str(v.dtype), v.as_array()) for v in made().run()])
""",
    "operator classes": """
from nvidia.dali import ops
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
""",
    "functions that pipeline mode has alone": """
import cv2, tempfile
root = tempfile.mkdtemp()
for video, count in enumerate((5, 7, 2)):
    os.makedirs(f"{root}/v{video}")
    for i in range(count):
        cv2.imwrite(f"{root}/v{video}/{i:03d}.png", np.full((4 + video, 6, 3), video * 50 + i, np.uint8))
image = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)
boxes, labels = np.float32([[0.1, 0.1, 0.5, 0.5], [0.4, 0.4, 0.9, 0.8]]), np.int32([1, 2])
def run(outputs):
    pipe = pipeline_def(outputs, batch_size=4, num_threads=1, device_id=None, seed=4)()
    for _ in range(3):
        out([(v.layout(), str(v.dtype), v.shape(), [np.array(t).flatten()[:12].round(4).tolist() for t in v]) for v in pipe.run()])
    return pipe
for given in ({"step": 2, "stride": 2}, {"random_shuffle": True, "initial_fill": 3}, {"num_shards": 2, "pad_last_batch": True},
              {"image_type": types.GRAY}):
    out(run(lambda: fn.readers.sequence(file_root=root, sequence_length=2, name="S", **given)).reader_meta("S"))
def cropped():
    given = fn.external_source(lambda: ([image] * 4, [boxes] * 4, [labels] * 4), num_outputs=3, layout=["HWC", "", ""])
    return tuple(fn.ssd_random_crop(*given))
run(cropped)
""",
    "tensors that are made": """
from nvidia.dali.tensors import TensorCPU, TensorListCPU, TensorListGPU
from nvidia.dali.backend import TensorListCPU as Again
from nvidia.dali.data_node import DataNode
made = TensorListCPU(np.arange(12, dtype=np.int16).reshape(2, 3, 2), "XY")
ragged = TensorListCPU([TensorCPU(np.zeros(2)), TensorCPU(np.ones(3))], layout="A")
out(Again is TensorListCPU, len(made), made.layout(), made.as_array(), ragged.shape(), ragged[1].layout(), str(ragged.dtype))
pipe = pipeline_def(lambda: fn.external_source(name="x"))(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
pipe.build()
pipe.feed_input("x", made)
(given,) = pipe.run()
out(isinstance(given, TensorListCPU), isinstance(given, TensorListGPU), isinstance(given[0], TensorCPU), given.as_array())
out(str(given), str(given[1]), given[0].get_property("other"), given[0].squeeze(-1), TensorCPU(np.zeros((1, 2))).squeeze(-2))
for wrong in (lambda: TensorCPU([1, 2]), lambda: TensorListCPU(np.zeros((2, 3)), "AB"), lambda: given.set_layout("ABC"),
              lambda: TensorListCPU([TensorCPU(np.zeros(2)), TensorCPU(np.zeros(2, np.float32))]), lambda: given[0].squeeze(7)):
    try:
        wrong()
    except (TypeError, ValueError, RuntimeError) as error:
        out(type(error).__name__)
""",
    "functions of Python": """
@pipeline_def(batch_size=3, num_threads=1, device_id=None, exec_async=False, exec_pipelined=False)
def made():
    x = fn.external_source(lambda: [np.arange(6, dtype=np.uint8).reshape(2, 3) + i for i in range(3)], layout="HW")
    a, b = fn.python_function(x, x, function=lambda p, q: (p[:, ::-1] + 0, np.int32([q.sum(), 1])), num_outputs=2)
    c = fn.python_function(x, function=lambda v: v * 2, output_layouts="HW")
    d = fn.python_function(x, function=lambda v: [w + 1 for w in v], batch_processing=True)
    return a, b, c, d
out([(str(v.dtype), v.layout(), v.as_array()) for v in made().run()])
""",
    "constants are nodes": """
makers = (
    lambda: types.Constant([1, 2]), lambda: types.Constant(np.float32([1, 2])), lambda: types.Constant(3, shape=[2]),
    lambda: types.Constant(3, dtype=types.UINT8, shape=[2]), lambda: types.Constant(np.uint8([[1, 2]]), layout="HW"),
)
for make in makers:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def made():
        c = make()
        return (
            c + 1, 1 - c, c + c, c * fn.constant(idata=2), -c, c[0], c < 2, c == 1, c != 1, c**2, 2**c, c / 2, c // 2, abs(c),
            c.shape(), dmath.sqrt(c), dmath.max(c, 2), c + np.float32([1, 2]), fn.cat(c, c), c,
        )
    for v in made().run():
        out(v.layout(), str(v.dtype), [np.array(t) for t in v])
for wrong in (lambda c: c + 1, lambda c: 1 - c, lambda c: c + c, lambda c: -c, lambda c: c[0], lambda c: c < c):
    try:
        wrong(types.Constant(3))
    except TypeError:
        out("TypeError")
""",
    "constants of every kind": """
import torch
C = types.Constant
pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
with pipe:
    x = fn.external_source(lambda: [np.uint8([1, 2])] * 2)
    pipe.set_outputs(
        C(np.int64(7)), C(np.array(7)), C(np.array([7])), C(np.uint64([7])), C(torch.tensor([7])), fn.copy(np.int64(7)),
        fn.copy(np.uint64(7)), fn.copy(np.array(7)), fn.copy(np.array([0.5])), fn.copy(np.float16(3)), np.array(7),
        C(2**40), C([-(2**40), 1]), C(300, dtype=types.UINT8), C([300, -1], dtype=types.UINT8), C(1.7).int32(),
        C([1.7, -1.5], dtype=types.INT32), C(np.float32([2.5, -1e5]), dtype=types.INT16), C(-1.5).uint8(),
        x + np.array(7), x + np.array(0.5), x + np.array([7, 8]), x + np.int16(7), x * C(np.float64(0.5)),
        x - C(torch.tensor([1, 2])), x + C(1.7, dtype=types.INT16),
        *fn.python_function(x, function=lambda v: (v, v > 1), num_outputs=2, output_layouts=["A"]),
        fn.python_function(np.array([[1, 2], [3, 4]]), function=lambda v: [w * w for w in v], batch_processing=True),
    )
pipe.build()
for value in pipe.run():
    out(np.dtype(types.to_numpy_type(value.dtype)).name, value.layout(), value.as_array())
def refused(function):
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    try:
        with pipe:
            pipe.set_outputs(function(fn.external_source(lambda: [np.uint8([[1, 2]])] * 2)))
        pipe.build()
        pipe.run()
    except Exception as error:
        out(type(error).__name__)
refused(lambda x: C(np.array([2**40])))
refused(lambda x: x[1.5])
refused(lambda x: x["a"])
refused(lambda x: x[:, :, :])
refused(lambda x: x[0, :, 0])
first = iter([np.uint8(1), np.int8(1), np.uint8(1), np.int8(1)])
refused(lambda x: fn.python_function(x, function=lambda v: np.array(next(first))))
refused(lambda x: fn.python_function(x, function=lambda v: (v, v, v), num_outputs=2)[0])
refused(lambda x: fn.python_function(x, function=lambda v: v[:1], batch_processing=True))
""",
    "checkpoints": """
from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
@pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_checkpointing=True, seed=3)
def made():
    return fn.readers.file(file_root=PHOTOS, random_shuffle=True, initial_fill=4, name="R", num_shards=3, shard_id=1)[1]
pipe = made()
for _ in range(3):
    pipe.run()
place = pipe.checkpoint()
rest = [pipe.run()[0].as_array().tolist() for _ in range(3)]
out([made(checkpoint=place).run()[0].as_array().tolist()] == rest[:1])
for policy in LastBatchPolicy:
    def iterating(**given):
        return DALIGenericIterator(made(**given), ["l"], reader_name="R", last_batch_policy=policy, auto_reset=True)
    def epochs(it):
        return [[step[0]["l"].flatten().tolist() for step in it] for _ in range(3)]
    whole = epochs(iterating())
    for taken in range(len(whole[0]) + 1):
        it = iterating()
        for _ in range(taken):
            next(it)
        (place,) = it.checkpoints()
        found = epochs(iterating(checkpoint=place))
        out(found[:2] == [rest for rest in (whole[0][taken:], *whole[1:]) if rest][:2])
try:
    DALIGenericIterator(made(enable_checkpointing=False), ["l"], reader_name="R").checkpoints()
except ValueError:
    out("not enabled")
""",
}


def told(program, package):
    """What a program says with `out(...)`, as text; arrays as lists."""
    said = []

    def plain(value):
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        return value.tolist() if hasattr(value, "tolist") else value

    text = (IMPORTS + program).replace("nvidia.dali", package)
    arguments = {"out": lambda *values: said.append(str(plain(values))), "PHOTOS": str(PHOTOS), "__name__": "program"}
    # A file, since conditions are rewritten from their text.
    exec(compile(text, _file(text), "exec"), arguments)
    return said


def _file(text):
    import linecache

    name = f"<program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


@pytest.mark.oracle
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.drawn(1)
def test_as_dali(name):
    pytest.importorskip("nvidia.dali")
    result = told(PROGRAMS[name], "ndd")
    assert result == told(PROGRAMS[name], "nvidia.dali")
    assert name != "checkpoints" or "[False]" not in result


def test_other_places_of_functions():
    """The plugins' functions, and what DALI's debug mode shows."""
    import numpy as np
    import torch

    import ndd.plugin.pytorch as plugin
    from ndd.pipeline.experimental import pipeline_def
    from ndd.plugin.numba.fn.experimental import numba_function

    seen = []

    def double(out, arguments):
        out[:] = arguments * 2

    @pipeline_def(batch_size=2, debug=True)
    def output():
        x = ndd.fn.external_source(lambda: [np.float32([1, 2]), np.float32([3, 4])])
        seen.append((x * 2).get().as_array().tolist())
        kinds = {"out_types": [ndd.types.FLOAT], "in_types": [ndd.types.FLOAT]}
        return (
            plugin.fn.torch_python_function(x, function=lambda t: torch.relu(t - 2)),
            plugin.fn.torch_python_function(x, function=lambda t: [v + 1 for v in t], batch_processing=True),
            numba_function(x, run_fn=double, outs_ndim=[1], ins_ndim=[1], **kinds),
        )

    result = [v.as_array().tolist() for v in output().run()]
    assert result == [[[0, 0], [1, 2]], [[2, 3], [4, 5]], [[2, 4], [6, 8]]]
    assert seen[0] == [[2, 4], [6, 8]]


def test_a_checkpoint_of_another_iterator():
    from ndd.plugin.pytorch import DALIGenericIterator

    @ndd.pipeline_def(batch_size=2, enable_checkpointing=True)
    def result():
        return ndd.fn.readers.file(file_root=str(PHOTOS), name="R")[1]

    pipe = result()
    pipe.run()
    for place in ({"counter": 4}, {"counter": "x", "size": 4, "epoch": 0, "credit": [0]}):
        with pytest.raises(ValueError, match="another iterator"):
            DALIGenericIterator(result(checkpoint=pipe.checkpoint(iterator=place)), ["l"], reader_name="R")
