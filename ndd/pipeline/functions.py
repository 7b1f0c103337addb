"""The functions of `fn`: every operator and reader of ndd under DALI's functional name, by a rule rather than a list.

`fn.flip` is `ndd.flip`; `fn.readers.file` makes an `ndd.readers.File` once for a pipeline and advances it once a run;
each random operator has a generator of its own, with DALI's numbers; a function without a batch among its inputs gets the
run's batch size.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

import ndd
from ndd.pipeline import current
from ndd.pipeline.array_regions import REGION_ARGUMENTS, regions_of_samples
from ndd.pipeline.function_call import nodes_in, noted
from ndd.pipeline.node import DataNode, add_node, as_constant, contains_node, shapes_of
from ndd.pipeline.operator_states import OperatorState
from ndd.pipeline.python_functions import (
    dl_tensor_python_function,
    numba_function,
    python_function,
    torch_python_function,
)
from ndd.pipeline.sources import ExternalSource, check_source
from ndd.random.streams import PipelineRNG
from ndd.types import Constant

# Arguments of pipeline mode without a meaning for an operator that runs at once.
_WITHOUT_EFFECT = ("name", "preserve", "bytes_per_sample_hint", "seed")
_SOURCE_OPTIONS = (
    "batch", "batch_info", "blocking", "bytes_per_sample_hint", "cuda_stream", "cycle", "device", "dtype", "layout", "ndim",
    "no_copy", "parallel", "prefetch_queue_depth", "preserve", "repeat_last", "use_copy_kernel",
)  # fmt: skip
# Names from before DALI had modules.
OLD_NAMES = {
    "audio_decoder": "decoders.audio",
    "caffe2_reader": "readers.caffe2",
    "caffe_reader": "readers.caffe",
    "coco_reader": "readers.coco",
    "coin_flip": "random.coin_flip",
    "experimental.inflate": "decoders.inflate",
    "file_reader": "readers.file",
    "image_decoder": "decoders.image",
    "image_decoder_crop": "decoders.image_crop",
    "image_decoder_random_crop": "decoders.image_random_crop",
    "image_decoder_slice": "decoders.image_slice",
    "mxnet_reader": "readers.mxnet",
    "nemo_asr_reader": "readers.nemo_asr",
    "normal_distribution": "random.normal",
    "numpy_reader": "readers.numpy",
    "tfrecord_reader": "readers.tfrecord",
    "transform_translation": "transforms.translation",
    "uniform": "random.uniform",
    "video_reader": "readers.video",
    "video_reader_resize": "readers.video_resize",
}


class Namespace:
    """`fn` or a part of it, such as `fn.readers`."""

    def __init__(self, home: Any, path: str):
        self._home = home
        self._path = path
        self.__name__ = f"fn.{path}" if path else "fn"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "_conditional":
            raise AttributeError(name)
        path = f"{self._path}.{name}" if self._path else name
        member = lookup(self._home, path, name)
        if not isinstance(member, Namespace):
            member = noted(path, member)
        setattr(self, name, member)
        return member

    def __dir__(self) -> list[str]:
        prefix = f"{self._path}." if self._path else ""
        own = [p.removeprefix(prefix).partition(".")[0] for p in OWN if p.startswith(prefix)]
        names = {n.lower() if isinstance(getattr(self._home, n), type) else n for n in dir(self._home)}
        members = [n for n in names if not n.startswith("_") and _exists(self._home, f"{prefix}{n}", n)]
        return sorted({*own, *members})


def lookup(home: Any, path: str, name: str) -> Any:
    """The function or package behind `fn.<path>`; AttributeError if ndd has no such operator."""
    if path in OWN:
        return OWN[path]
    if path in OLD_NAMES:
        member: Any = Namespace(ndd, "")
        for part in OLD_NAMES[path].split("."):
            member = getattr(member, part)
        return member
    if path.split(".")[-2:-1] == ["readers"]:
        return _reader_function(home, path, name)
    if path in ("experimental.inputs", "_conditional"):
        return Namespace(None, path)
    if path == "experimental" or path.startswith("experimental."):
        return _experimental(path)
    member = getattr(home, name, None)
    if type(member).__name__ == "module":
        return Namespace(member, path)
    if _is_operator(member):
        return _operator_function(member, path)
    raise AttributeError(f"fn has no {path!r}: ndd has no operator of that name")


def _is_operator(value: Any) -> bool:
    return inspect.isfunction(value) and (
        hasattr(value, "operator") or not value.__module__.startswith(("ndd._", "ndd.pipeline"))
    )


def _exists(home: Any, path: str, name: str) -> bool:
    try:
        lookup(home, path, name)
    except AttributeError:
        return False
    return True


def _experimental(path: str) -> Any:
    """`fn.experimental.<path>`: ndd's experimental operator of that name, or its successor."""
    home: Any = getattr(ndd, "experimental", None)
    names = path.split(".")[1:]
    if not names:
        return Namespace(home or ndd, path)
    for name in names[:-1]:
        home = getattr(home, name, None)
    if home is not None and hasattr(home, names[-1]):
        member = getattr(home, names[-1])
        return Namespace(member, path) if type(member).__name__ == "module" else _operator_function(member, path)
    member = fn
    for name in names:
        member = getattr(member, name)
    return Namespace(member._home, path) if isinstance(member, Namespace) else member


def _operator_function(operator: Any, path: str) -> Any:
    declared = getattr(operator, "operator", None)
    is_random = bool(getattr(declared, "random", False))
    form = CallForm(path, inspect.signature(operator))

    def function(*inputs: Any, **arguments: Any) -> Any:
        form.check(len(inputs), arguments)
        plain = {k: v for k, v in arguments.items() if k not in _WITHOUT_EFFECT and v is not None}
        if plain.get("device") == "mixed":
            plain["device"] = "gpu"
        if plain.get("device") == "gpu":
            _require_gpu(path)
        if declared is not None:
            declared.check_arguments({k: v for k, v in plain.items() if not contains_node(v)})
        outputs = 1 if declared is None else declared.outputs(*inputs, **plain)
        sets = _input_sets(path, inputs)
        always, results = bool(arguments.get("preserve")), []
        call_state = None
        for input_set in sets:  # these draw the same
            if is_random:
                call_state = OperatorState(
                    f"random {path}", _generator, seeded=True, seed=arguments.get("seed"), like=call_state
                )
            step, taken = _step(operator, path, input_set, plain)
            results.append(add_node(step, taken, outputs=outputs, call_state=call_state, always=always))
        if len(results) == 1:
            return results[0]
        return [list(column) for column in zip(*results, strict=True)] if isinstance(results[0], list) else results

    return _named(function, path, operator.__doc__, form)


def _named(function: Any, path: str, text: str | None, form: CallForm) -> Any:
    function.__name__, function.__doc__, function.form = path.rpartition(".")[2], text, form
    return function


def _generator(pipeline: Any, seed: int | None) -> PipelineRNG:
    return PipelineRNG(seed)


def _step(operator: Any, path: str, inputs: tuple[Any, ...], plain: dict[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The function that computes one set of inputs, and the values that it takes."""
    taken = (*inputs, *(plain[k] for k in sorted(plain)))
    # In a branch it permutes the samples of the branch: no other function without inputs depends on the other samples of its
    # batch.
    branch = current.branch() if path == "batch_permutation" else None
    scope = None if branch is None else branch.part(branch.decision.condition)

    def step(run: Any, generator: Any = None) -> Any:
        values = list(map(run.unwrapped, inputs))
        named = {k: run.unwrapped(v) for k, v in plain.items()}
        if not any(isinstance(v, ndd.Batch) for v in (*values, *named.values())):
            named["batch_size"] = run.batch_size if scope is None else run.of(scope).batch_size
        if generator is None:
            return operator(*values, **named)
        results = operator(*values, rng=generator, **named)
        generator.advance((results[0] if isinstance(results, tuple | list) else results).batch_size)
        return results

    return step, taken if scope is None else (*taken, scope)


def _require_gpu(path: str) -> None:
    """RuntimeError in a pipeline on the CPU alone."""
    pipeline = current.pipeline()
    if pipeline is not None and pipeline.device_id is None:
        raise RuntimeError(f"fn.{path} with a GPU device: the pipeline has device_id=None, so it runs on the CPU alone")


class CallForm:
    """How a function may be called, looked up once: its inputs, the arguments that it knows and those that it needs."""

    def __init__(self, path: str, signature: inspect.Signature):
        self.path = path
        parameters = signature.parameters.values()
        named = [p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.known = {p.name for p in named} | set(_WITHOUT_EFFECT)
        self.takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.needed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        self.first = [p.name for p in by_place if p.default is p.empty]
        self.most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(by_place)

    def check(self, inputs: int, arguments: dict[str, Any]) -> None:
        """Raises DALI's errors: KeyError for an unknown argument, ValueError for wrong inputs, RuntimeError for missing ones."""
        least = sum(name not in arguments for name in self.first)
        if inputs < least or (self.most is not None and inputs > self.most):
            most = "" if self.most is None else f" and at most {self.most}"
            raise ValueError(f"fn.{self.path}: expected at least {least}{most} inputs, got {inputs}")
        self.check_names(f"fn.{self.path}", arguments)
        for name in self.needed:
            if name not in arguments:
                raise RuntimeError(f"fn.{self.path}: the argument {name!r} is required")

    def check_names(self, label: str, arguments: dict[str, Any]) -> None:
        """KeyError for an argument that is not known."""
        unknown = arguments.keys() - self.known
        if unknown and not self.takes_any_name:
            raise KeyError(f"{label} has no argument {min(unknown)!r}; it has {sorted(self.known)}")


def _constant_input(path: str, value: Any) -> Any:
    """Numbers in place of an input are a constant of 32 bits, even a NumPy number of 64 bits, as Python numbers are. A list
    of arrays has one for each sample if the body runs for every batch, and raises TypeError otherwise."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
        return as_constant(value, 1).select(0)
    if isinstance(value, list | tuple) and any(hasattr(v, "__array__") and not np.isscalar(v) for v in value):
        pipeline = current.pipeline()
        if pipeline is None or pipeline._tracing:
            raise TypeError(
                f"fn.{path}: expected nodes, lists of nodes, numbers or arrays as inputs, got a {type(value).__name__} of arrays. "
                "With @pipeline_def(debug=True) it is one array for each sample; fn.external_source gives batches elsewhere"
            )
        return DataNode(ndd.batch(list(value)))
    return Constant(value) if isinstance(value, int | float | list | tuple | np.ndarray) else value


def _input_sets(path: str, inputs: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Lists of nodes among the inputs stand for as many calls, each with its own node of every list."""
    is_list = [isinstance(v, list) and any(isinstance(e, DataNode) for e in v) for v in inputs]
    lengths = {len(v) for v, listed in zip(inputs, is_list, strict=True) if listed}
    if len(lengths) > 1:
        raise ValueError(f"fn.{path}: lists of inputs must be of one length, got {sorted(lengths)}")
    count = lengths.pop() if lengths else 1
    columns = [v if listed else [v] * count for v, listed in zip(inputs, is_list, strict=True)]
    sets = list(zip(*columns, strict=True)) if columns else [()]
    return [tuple(_constant_input(path, v) for v in input_set) for input_set in sets]


def _reader_function(home: Any, path: str, name: str) -> Any:
    wanted = name.replace("_", "")
    homes = (home, ndd.readers)  # fn.experimental.readers has those that are no longer experimental too
    kinds = (getattr(home, n) for home in homes for n in dir(home) if n.lower() == wanted)
    kind = next((kind for kind in kinds if isinstance(kind, type)), None)
    if kind is None:
        raise AttributeError(f"fn has no {path!r}: ndd.readers has no reader of that name")

    form = CallForm(path, inspect.signature(kind))

    def function(*positional: Any, name: str | None = None, **arguments: Any) -> Any:
        form.check(len(positional), arguments)
        plain = {k: v for k, v in arguments.items() if k not in ("preserve", "bytes_per_sample_hint")}
        seeded = plain.get("seed", -1) in (-1, None)
        nodes = {k: v for k, v in sorted(plain.items()) if contains_node(v)}
        for argument in set(nodes) - set(REGION_ARGUMENTS if kind is ndd.readers.Numpy else ()):
            raise TypeError(f"fn.{path}: {argument}: expected one value for all samples, got a node of the pipeline")
        plain, finish = regions_of_samples(plain) if nodes else (plain, None)

        def make(pipeline: Any, word: int | None) -> Any:
            keywords = plain if word is None else {**plain, "seed": word}
            return pipeline._new_reader(kind, positional, keywords, call_state.called)

        def step(run: Any, reader: Any) -> Any:
            outputs = run.pipeline._batch_of(reader)
            return outputs if finish is None else finish(outputs, run.unwrapped)

        call_state = OperatorState(f"reader {path}", make, name=name, seeded=seeded)
        names = [output.name for output in kind.outputs(*positional, **plain)]
        outputs = names if kind.gives_dicts else len(names)
        always = bool(arguments.get("preserve"))
        result = add_node(step, tuple(nodes.values()), outputs=outputs, call_state=call_state, always=always)
        outlets = nodes_in([*result.values()] if isinstance(result, dict) else result)
        call_state.node = outlets[0] if outlets else None
        return result

    return _named(function, path, kind.__doc__, form)


def external_source(
    source: Any = None, num_outputs: int | None = None, *, name: str | None = None, **options: Any
) -> Any:
    """Batches from Python: a callable, an iterable, a generator function, or fed with `feed_input`/`run(name=...)`.

    Args:
        source: a callable (without parameters; with the iteration; with a SampleInfo if `batch=False`) or an iterable.
        num_outputs: if given, the source gives tuples of that length.
        name: for `Pipeline.feed_input` and `run(name=...)`.
        options: `cycle` (None, "no", "quiet", "raise"), `batch`, `batch_info`, `layout`, `dtype`, `ndim`, `device`,
            `repeat_last` as in DALI; `no_copy`, `blocking`, `parallel`, `prefetch_queue_depth`, `cuda_stream` and
            `use_copy_kernel` change nothing here.

    RuntimeError, as in DALI, for data that is not a batch and for samples of several types, when it is fed or requested.
    (Python numbers and nested lists are taken; DALI refuses them.)
    """
    unknown = [option for option in options if option not in _SOURCE_OPTIONS]
    if unknown:
        raise ValueError(f"fn.external_source has no argument {unknown[0]!r}; it has {list(_SOURCE_OPTIONS)}")
    options = {**options, "num_outputs": num_outputs}
    check_source(source, options)

    def make(pipeline: Any, _: Any) -> ExternalSource:
        return pipeline._new_source(ExternalSource(name, pipeline.max_batch_size, source, options))

    call_state = OperatorState("external_source", make, name=name, is_source=True)

    def step(run: Any, source: Any) -> Any:
        batches = run.data_of(source)
        return batches[0] if num_outputs in (None, 1) else batches

    nodes = add_node(step, outputs=num_outputs, call_state=call_state, always=bool(options.get("preserve")))
    return [nodes] if num_outputs == 1 else nodes


def fast_resize_crop_mirror(*inputs: Any, antialias: bool = False, **arguments: Any) -> Any:
    """`resize_crop_mirror` without antialiasing."""
    return fn.resize_crop_mirror(*inputs, antialias=antialias, **arguments)


def constant(
    *, idata: Any = None, fdata: Any = None, shape: Any = None, dtype: Any = None, layout: str | None = None, **_: Any
) -> Any:
    """A batch in which every sample is the same constant.

    Args:
        idata, fdata: integers or floating point numbers, one of the two.
        shape: of the sample; default: one axis. A single number fills it.
        dtype: default int32 for `idata`, float32 for `fdata`.
        layout: the layout of the sample.
    """
    if (idata is None) == (fdata is None):
        raise RuntimeError("fn.constant: expected either `idata` or `fdata`")
    data = np.atleast_1d(idata if idata is not None else fdata)
    data = data.astype(np.int32 if idata is not None else np.float32)
    if shape is not None:
        data = np.full(shape, data.flat[0]) if data.size == 1 else data.reshape(shape)
    kind = None if dtype is None else ndd.dtype(dtype)
    data = ndd.as_tensor(data, layout=layout)
    return add_node(lambda run: ndd.Batch.broadcast(data, run.batch_size, dtype=kind))


def shapes(value: Any, *, dtype: Any = None, **_: Any) -> Any:
    """The shape of every sample, as int64 tensors."""
    return add_node(lambda run: shapes_of(run.batches((value,))[0], dtype), value)


# Functions that are not just operators under another name; `compositions.py` adds some.
OWN: dict[str, Any] = {
    "constant": constant,
    "dl_tensor_python_function": dl_tensor_python_function,
    "experimental.numba_function": numba_function,
    "fast_resize_crop_mirror": fast_resize_crop_mirror,
    "external_source": external_source,
    "python_function": python_function,
    "torch_python_function": torch_python_function,
    "shapes": shapes,
}

fn = Namespace(ndd, "")
