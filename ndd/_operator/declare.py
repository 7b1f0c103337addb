"""`@operator`: from a function with a true signature to an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from ndd._execution.dynamo import OPERATOR_FILE, leave_alone
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
    register: bool = True,
) -> Any:
    """Declares an operator. The function says what comes out; `.plan`, `.cpu` and `.cuda` say how.

    Parameters before `/` are data inputs, keyword-only ones are arguments (annotate those that may differ between
    samples with `PerSample[...]`). `batch_size` and `device` are added. The result behaves as every operator of
    ndd: eager on a background thread, any EvalMode, ragged batches, per-sample arguments, errors at the user's line.

    Args:
        layouts: what input 0 may have; an input without a layout takes the first one of its rank.
        types: the element types that input 0 may have ("u8", "f32", ...); for `*inputs` all of them. Default: all.
        dtypes: the element types that the argument `dtype` may be.
        frames: unroll a leading F (video) of any input into samples, with per-frame arguments.
        random: adds `rng=`; `call.draws` is the place in the stream of random words.
        reads: where inputs are read, for all of them or by name: "device" (where the operator runs), "cpu" (in host
            memory, also when the work is on a GPU), "anywhere" (where they lie).
        outputs: how many outputs there are, or a function that says so; its parameters name the arguments that it
            needs, or inputs, which are True if given.
        cut: what the CPU kernel may get as one array in place of a sample: "whole", nothing else; "elements", several samples or a
            part of one, since it looks at single elements (arrays of one axis, if it is compiled); "rows", the same along the first
            axis of its views.
        elementwise: True is `cut="elements"`.
        masks: an image HW is taken as HWC with one channel, and comes out as HW. The operator never sees it.
        paths: inputs may be paths (str, os.PathLike, lists of them), which the operator gets as characters.
        register: list the operator among those that the registry-wide tests walk.
        function: the function that is decorated; without it the result is the decorator.

    Roles, each a decorator of the operator:

    * `.plan` shapes, numbers for the kernels, and how those of the CPU see the memory, once a batch (`ndd.Plan`; default: the
      shapes of input 0, arguments by name);
    * `.cpu` one sample: inputs and outputs, then by name what the plan has;
    * `.cuda` the launches;
    * `.batch` a whole batch at once, where samples cannot be computed one by one: `f(call, *inputs, **arguments)` gives the
      results, `f(call, plan, *inputs, *outputs)` fills those that the plan has shapes for;
    * `.views` outputs that are an input's memory.

    A plan whose first parameter is `call` gets the `Call`, `.batch` and `.views` always do.

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
    }  # fmt: skip

    def declare(declared: Callable[..., Any]) -> Any:
        found = Operator(declared, options)
        wrapper = wrapper_of(found)
        if register:
            registry.add(found)
        return wrapper

    return declare if function is None else declare(function)


def wrapper_of(found: Operator) -> Any:
    """The public function, with the true signature. Missing arguments are Python's own TypeErrors, unknown ones are ours:
    Python before 3.13 does not say what may have been meant."""
    if not found.name.isidentifier():
        raise TypeError(f"ndd.operator: an operator needs a name: write it with `def`, not as {found.name}")
    scope: dict[str, Any] = {"_op": found}
    parameters = list(inspect.signature(found.function).parameters.values())
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    head = [p.name if p.default is p.empty else f"{p.name}=None" for p in inputs]
    if inputs:
        head.append("/")
    head.append(f"*{found.variadic or '_surplus'}")
    tail = ["batch_size=None", "device=None"]
    for argument in found.arguments:
        scope[f"_default_{argument.name}"] = argument.default
        tail.append(argument.name if argument.required else f"{argument.name}=_default_{argument.name}")
    if found.random:
        tail.append("rng=None")
    tail.append("**_unknown")
    given = "".join(f"{p.name}, " for p in inputs) + (f"*{found.variadic}, " if found.variadic else "")
    values = "".join(f"{_value_of(a)}, " for a in found.arguments)
    rng = ", rng" if found.random else ""
    surplus = "" if found.variadic else "    if _surplus:\n        raise _op.surplus(_surplus)\n"
    text = (
        f"def {found.name}({', '.join(head + tail)}):\n"
        "    if _unknown:\n"
        "        raise _op.unknown(_unknown)\n"
        f"{surplus}"
        f"    return _op.call(({given}), ({values}), batch_size, device{rng})\n"
    )
    exec(compile(text, f"{OPERATOR_FILE}{found.name}>", "exec"), {"__name__": __name__, **scope}, scope)
    wrapper = scope[found.name]
    leave_alone(wrapper.__code__)
    wrapper.__doc__ = found.function.__doc__
    wrapper.__module__ = found.module
    wrapper.__qualname__ = found.name
    wrapper.__annotations__ = dict(found.function.__annotations__)
    taken = inspect.signature(wrapper)
    wrapper.__signature__ = taken.replace(
        parameters=[p for p in taken.parameters.values() if p.name not in ("_unknown", "_surplus")]
    )
    wrapper.operator = found
    wrapper.plan = partial(_set_plan, found)
    wrapper.views = partial(_set, found, "views")
    wrapper.batch = partial(_set_batch, found)
    wrapper.cpu = partial(_set_kernel, found, "cpu")
    wrapper.cuda = partial(_set_cuda, found)
    wrapper.fuses = partial(_set_fusion, found)
    return wrapper


def _value_of(argument: Argument) -> str:
    """Source text for an argument's value. A short list becomes a tuple: calls can be looked up by it, and later
    changes of the list do not reach it. `type`, not `__class__`: a list that `invariant` has marked keeps its mark."""
    name = argument.name
    if not argument.vector:
        return name
    return f"tuple({name}) if type({name}) is list and len({name}) <= {LONGEST_CACHED} else {name}"


def _set(found: Operator, role: str, function: Any) -> Any:
    setattr(found, role, function)
    return function


def _set_plan(found: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    found.plan_takes_call = next(iter(inspect.signature(function).parameters), None) == "call"
    return _set(found, "plan", function)


def _set_fusion(found: Operator, maker: str, *needs: str) -> Callable[..., Any]:
    """`maker`: the operator that makes input 0, its `.cu` file, or "decoders"; `needs`: arguments of which one must be given."""

    def fuses(function: Callable[..., Any]) -> Callable[..., Any]:
        found.fuses[maker] = function, needs
        return function

    return fuses


def _set_batch(found: Operator, function: Callable[..., Any]) -> Callable[..., Any]:
    found.batch_takes_plan = list(inspect.signature(function).parameters)[1:2] == ["plan"]
    return _set(found, "batch", function)


def _set_kernel(found: Operator, role: str, function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(getattr(function, "function", function)).parameters.values()
    setattr(found, role, function)
    setattr(found, f"{role}_names", ["**" if p.kind is p.VAR_KEYWORD else p.name for p in parameters])
    if role == "cpu" and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        _check_places(found)
    return function


def _check_places(found: Operator) -> None:
    """TypeError for a kernel that does not take the outputs: it could not write them, and what memory held before would come
    out."""
    outputs = found.declared_outputs if isinstance(found.declared_outputs, int) else 1
    expected = [*([found.variadic] if found.variadic else found.inputs), *["out"] * outputs]
    places = found.cpu_names[: len(expected)]
    if len(places) < len(expected) or any(a.name in places for a in found.arguments):
        raise TypeError(
            f"{found.name}.cpu: expected a function of ({', '.join(expected)}) and then, by name, of what else it needs, "
            f"got one of ({', '.join(found.cpu_names)})"
        )


def _set_cuda(found: Operator, source: Any = None) -> Callable[..., Any]:
    """`op.cuda("x.cu")` alone: one launch of the kernel named as the operator; as a decorator: a Python function."""
    if callable(source):
        return _set_kernel(found, "cuda", source)
    found.cuda_source = source
    return partial(_set_kernel, found, "cuda")


__all__ = ["Operator", "operator", "wrapper_of"]
