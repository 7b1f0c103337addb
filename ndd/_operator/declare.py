"""`@operator`: from a function with a true signature to an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from ndd._execution.dynamo import OPERATOR_FILE, mark_as_skipped
from ndd._operator import registry
from ndd._operator.arguments import Argument
from ndd._operator.operator import LONGEST_CACHED, Operator


def operator(
    function: Callable[..., Any] | None = None,
    *,
    layouts: tuple[str, ...] | None = None,
    types: tuple[str, ...] | None = None,
    dtypes: tuple[str, ...] | None = None,
    frames: bool = False,
    random: bool = False,
    reads: str | dict[str, str] = "device",
    outputs: int | Callable[..., int] = 1,
    cut: str = "whole",
    elementwise: bool = False,
    masks: bool = False,
    paths: bool = False,
    argument_shapes: bool = True,
    register: bool = True,
) -> Any:
    """Declares an operator. The function describes the outputs; `.plan`, `.cpu` and `.cuda` compute them.

    Parameters before `/` are data inputs, keyword-only ones are arguments (annotate those that may differ between
    samples with `PerSample[...]`). `batch_size` and `device` are added. The result behaves as every operator of
    ndd: eager on a background thread, any EvalMode, ragged batches, per-sample arguments, errors at the user's line.

    Args:
        layouts: the layouts that input 0 may have; an input without a layout takes the first one of its rank.
        types: the element types that input 0 may have ("u8", "f32", ...); for `*inputs` all of them. Default: all.
        dtypes: the element types that the argument `dtype` may be.
        frames: unroll a leading F (video) of any input into samples, with per-frame arguments.
        random: adds `rng=`; `call.draws` is the place in the stream of random words.
        reads: where inputs are read, for all of them or by name: "device" (where the operator runs), "cpu" (in host
            memory, also when the work is on a GPU), "anywhere" (where they lie).
        outputs: the number of outputs, or a function that returns it; its parameters name the arguments that it
            needs, or inputs, which are True if given.
        cut: the data that the CPU kernel may get as one array instead of a sample: "whole", nothing else; "elements", several
            samples or a part of one, since it looks at single elements (arrays of one axis, if it is compiled); "rows", the
            same along the first axis of its views.
        elementwise: True is `cut="elements"`.
        masks: an image HW is taken as HWC with one channel, and comes out as HW. The operator never sees it.
        paths: inputs may be paths (str, os.PathLike, lists of them), which the operator gets as characters.
        argument_shapes: False if the function never asks for the shape of an argument that differs between samples. Then calls
            with vectors for each sample are cached, and may run ahead of a loop.
        register: whether the registry-wide tests walk the operator.
        function: the function that is decorated; without it the result is the decorator.

    Roles, each a decorator of the operator:

    * `.plan` shapes, numbers for the kernels, and how those of the CPU see the memory, once a batch (`ndd.Plan`; default: the
      shapes of input 0, arguments by name);
    * `.cpu` one sample: inputs and outputs, then by name what the plan has;
    * `.cuda` the launches;
    * `.batch` a whole batch at once, where samples cannot be computed one by one: `f(call, *inputs, **arguments)` gives the
      results, `f(call, plan, *inputs, *outputs)` fills those that the plan has shapes for;
    * `.views` outputs that are an input's memory.

    A plan gets the `Call` if its first parameter is `call`; `.batch` and `.views` always get it.

    Raises TypeError for a function without a name, for parameters that cannot be inputs or arguments, and for names in
    `reads` that are no inputs.

    >>> import ndd
    >>> @ndd.operator
    ... def invert(image, /, *, maximum: ndd.PerSample[int] = 255):
    ...     "maximum - image."
    ...     return ndd.like(image)
    >>> @invert.cpu
    ... def _(image, out, maximum):
    ...     out[...] = maximum - image
    >>> invert(ndd.batch([[1, 2], [3]]), maximum=ndd.batch([10, 5])).torch(pad=True)
    tensor([[9, 8],
            [2, 0]], dtype=torch.int32)
    """
    options = {
        "layouts": layouts, "types": types, "dtypes": dtypes, "frames": frames, "random": random, "reads": reads,
        "outputs": outputs, "cut": "elements" if elementwise else cut, "masks": masks, "paths": paths,
        "argument_shapes": argument_shapes,
    }  # fmt: skip

    def declare(declared: Callable[..., Any]) -> Any:
        op = Operator(declared, options)
        wrapper = wrapper_of(op)
        if register:
            registry.add(op)
        return wrapper

    return declare if function is None else declare(function)


def wrapper_of(op: Operator) -> Any:
    """The public function, with the true signature. Python raises the TypeErrors for missing arguments; those for unknown ones
    are ours:
    Python before 3.13 does not suggest what may have been meant."""
    if not op.name.isidentifier():
        raise TypeError(f"ndd.operator: an operator needs a name: write it with `def`, not as {op.name}")
    scope: dict[str, Any] = {"_op": op}
    parameters = list(inspect.signature(op.function).parameters.values())
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    head = [p.name if p.default is p.empty else f"{p.name}=None" for p in inputs]
    if inputs:
        head.append("/")
    head.append(f"*{op.variadic or '_surplus'}")
    tail = ["batch_size=None", "device=None"]
    for argument in op.arguments:
        scope[f"_default_{argument.name}"] = argument.default
        tail.append(argument.name if argument.required else f"{argument.name}=_default_{argument.name}")
    if op.random:
        tail.append("rng=None")
    tail.append("**_unknown")
    passed = "".join(f"{p.name}, " for p in inputs) + (f"*{op.variadic}, " if op.variadic else "")
    values = "".join(f"{_value_of(a)}, " for a in op.arguments)
    rng = ", rng" if op.random else ""
    surplus = "" if op.variadic else "    if _surplus:\n        raise _op.surplus(_surplus)\n"
    text = (
        f"def {op.name}({', '.join(head + tail)}):\n"
        "    if _unknown:\n"
        "        raise _op.unknown(_unknown)\n"
        f"{surplus}"
        f"    return _op.call(({passed}), ({values}), batch_size, device{rng})\n"
    )
    exec(compile(text, f"{OPERATOR_FILE}{op.name}>", "exec"), {"__name__": __name__, **scope}, scope)
    wrapper = scope[op.name]
    mark_as_skipped(wrapper.__code__)
    wrapper.__doc__ = op.function.__doc__
    wrapper.__module__ = op.module
    wrapper.__qualname__ = op.name
    wrapper.__annotations__ = dict(op.function.__annotations__)
    taken = inspect.signature(wrapper)
    wrapper.__signature__ = taken.replace(
        parameters=[p for p in taken.parameters.values() if p.name not in ("_unknown", "_surplus")]
    )
    wrapper.operator = op
    wrapper.plan = partial(_set_plan, op)
    wrapper.views = partial(_set, op, "views")
    wrapper.batch = partial(_set_batch, op)
    wrapper.cpu = partial(_set_kernel, op, "cpu")
    wrapper.cuda = partial(_set_cuda, op)
    wrapper.fuses = partial(_set_fusion, op)
    return wrapper


def _value_of(argument: Argument) -> str:
    """Source text for an argument's value. A short list becomes a tuple: it is a key of the cache of calls, and later
    changes of the list do not reach it. `type`, not `__class__`: a list that `invariant` has marked keeps its mark."""
    name = argument.name
    if not argument.vector:
        return name
    return f"tuple({name}) if type({name}) is list and len({name}) <= {LONGEST_CACHED} else {name}"


def _set(op: Operator, role: str, function: Any) -> Any:
    setattr(op, role, function)
    return function


def _set_plan(op: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    op.plan_takes_call = next(iter(inspect.signature(function).parameters), None) == "call"
    return _set(op, "plan", function)


def _set_fusion(op: Operator, maker: str, *needs: str) -> Callable[..., Any]:
    """`maker`: the operator that makes input 0, its `.cu` file, or "decoders"; `needs`: at least one of these arguments must
    be given."""

    def fuses(function: Callable[..., Any]) -> Callable[..., Any]:
        op.fuses[maker] = function, needs
        return function

    return fuses


def _set_batch(op: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    op.batch_takes_plan = list(inspect.signature(function).parameters)[1:2] == ["plan"]
    return _set(op, "batch", function)


def _set_kernel(op: Operator, role: str, function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(getattr(function, "function", function)).parameters.values()
    setattr(op, role, function)
    setattr(op, f"{role}_names", ["**" if p.kind is p.VAR_KEYWORD else p.name for p in parameters])
    if role == "cpu" and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        _check_places(op)
    return function


def _check_places(op: Operator) -> None:
    """TypeError for a kernel that does not take the outputs: it could not write them, and uninitialised memory would come
    out."""
    outputs = op.declared_outputs if isinstance(op.declared_outputs, int) else 1
    expected = [*([op.variadic] if op.variadic else op.inputs), *["out"] * outputs]
    places = op.cpu_names[: len(expected)]
    if len(places) < len(expected) or any(a.name in places for a in op.arguments):
        raise TypeError(
            f"{op.name}.cpu: expected a function of ({', '.join(expected)}), then of anything else that it needs by name, "
            f"got one of ({', '.join(op.cpu_names)})"
        )


def _set_cuda(op: Operator, source: Any = None) -> Callable[..., Any]:
    """`op.cuda("x.cu")` alone: one launch of the kernel named as the operator; as a decorator: a Python function."""
    if callable(source):
        return _set_kernel(op, "cuda", source)
    op.cuda_source = source
    return partial(_set_kernel, op, "cuda")


__all__ = ["Operator", "operator", "wrapper_of"]
