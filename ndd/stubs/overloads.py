"""An operator as overloads: the types of its inputs, and whether it returns a Tensor or a Batch."""

from __future__ import annotations

import inspect
import itertools
import typing
from collections.abc import Iterator
from typing import Any

from ndd._operator import Samples
from ndd._tensor.device import DeviceLike
from ndd.decoders import image as decode
from ndd.stubs.annotation import Names, accepted, default, plain, united

_WIDTH = 120
_EMPTY = inspect.Parameter.empty


def outputs_of(operator: Any) -> list[tuple[dict[str, Any], int | None]]:
    """The numbers of outputs for values of arguments: `[({}, 1)]`, or `[({"save_attrs": False}, 1),
    ({"save_attrs": True}, 2)]`; an input is True if it is given. None stands for a number that depends on more."""
    declared: Any = operator.declared_outputs
    if isinstance(declared, int):
        return [({}, declared)]
    annotations = {name: p.annotation for name, p in _declaration(operator).items()}
    names = list(inspect.signature(declared).parameters)
    choices = [(False, True) if name in operator.inputs else _choices(annotations[name]) for name in names]
    if not all(choices):
        return [({}, None)]
    variants: list[tuple[dict[str, Any], int | None]] = []
    for combination in itertools.product(*choices):
        values = dict(zip(names, combination, strict=True))
        variants.append((values, declared(**values)))
    return variants


def _choices(annotation: Any) -> tuple[Any, ...]:
    """All values of an argument, if they can be counted."""
    if annotation is bool:
        return (False, True)
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()


def _declaration(operator: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(operator.function, eval_str=True).parameters)


def _batch_only(operator: Any) -> bool:
    """Whether a call without a batch size is an error."""
    if operator.inputs or operator.variadic or any(a.required for a in operator.arguments):
        return False
    outcome = operator.function(**{a.name: a.default for a in operator.arguments})
    return isinstance(outcome, Samples) and outcome.batch_only


def operator_overloads(name: str, function: Any, names: Names) -> list[str]:
    """The forms of a public operator, in this order: only Tensors return a Tensor; a Batch as first input returns a Batch;
    a Batch elsewhere, or a `batch_size`, gives a Batch.

    The first input of the last form is not a Batch, so that `Tensor | Batch` there fits no form as a whole: the type
    checker then takes each on its own, and gets `Tensor | Batch`.
    """
    operator = function.operator
    declared = _declaration(operator)
    own = inspect.signature(function).parameters.values()
    single, several = names.add("ndd._typing", "TensorLike"), names.add("ndd._tensor", "Batch")
    forms = (
        [(single, False), (several, True), (single, True)] if operator.required else [(single, False), (several, True)]
    )
    if _batch_only(operator):
        forms = forms[1:]
    overloads = []
    for fixed, count in outputs_of(operator):
        for first, batch in forms:
            inputs = {name: [single, several] if batch else [single] for name in [*operator.inputs, operator.variadic]}
            if operator.required:
                inputs[operator.inputs[0]] = [first]
            parameters = [
                _fixed(p, fixed[p.name], inputs.get(p.name), names)
                if p.name in fixed
                else _written(p, inputs.get(p.name) or accepted(declared[p.name].annotation, names, batch), names)
                if p.name in declared
                else _added(p, operator, names, batch)
                for p in own
            ]
            overloads.append(definition(name, parameters, _result(count, batch, names)))
    return overloaded(overloads, names)


def _fixed(p: inspect.Parameter, value: Any, options: list[str] | None, names: Names) -> inspect.Parameter:
    """An argument that has one value in this form, or an input that is given or not; the default stays with the form
    that has it."""
    if options is not None:
        return _written(p.replace(default=_EMPTY), options, names) if value else _written(p, [], names)
    kind = plain(typing.Literal[value], names)  # type: ignore[valid-type]
    return _written(p if p.default == value else p.replace(default=_EMPTY), [kind], names)


def _added(p: inspect.Parameter, operator: Any, names: Names, batch: bool) -> inspect.Parameter:
    """The arguments of every operator besides its own."""
    if p.name == "batch_size":
        if _batch_only(operator):
            return p.replace(annotation="int", default=_EMPTY)
        return _written(p, ["int"] if batch else ["None"], names)
    if p.name == "device":
        return _written(p, [names.add("ndd._tensor.device", "DeviceLike")], names)
    if p.name == "rng":
        return _written(p, [names.add("ndd.random.rng", "RNG")], names)
    raise TypeError(f"{operator.name}: no type for {p.name!r}: add it to ndd/stubs/overloads.py")


def _written(p: inspect.Parameter, options: list[str], names: Names) -> inspect.Parameter:
    """A parameter with annotation and default as texts. None may be passed if it is the default."""
    if p.default is None and "Any" not in options:
        options = [*options, "None"]
    value = p.default if p.default is _EMPTY else default(p.default, names)
    return p.replace(annotation=united(options), default=value)


def _result(count: int | None, batch: bool, names: Names) -> str:
    if count is None:
        return names.add("typing", "Any")
    single = names.add("ndd._tensor", "Batch" if batch else "Tensor")
    return single if count == 1 else f"tuple[{', '.join([single] * count)}]"


def elementwise_overloads(name: str, function: Any, names: Names, result: str) -> list[str]:
    """A function of operands: gives `result` for Tensors; a Batch if one is a Batch, each in its turn the first one."""
    single, several = names.add("ndd._typing", "TensorLike"), names.add("ndd._tensor", "Batch")
    parameters = list(inspect.signature(function).parameters.values())
    own = [p for p in parameters if p.name == "self"]
    operands = [p for p in parameters if p.name != "self"]
    overloads = [definition(name, [*own, *(p.replace(annotation=single) for p in operands)], result)]
    for first in range(len(operands)):
        kinds = [single] * first + [several] + [f"{single} | {several}"] * (len(operands) - first - 1)
        typed = [p.replace(annotation=kind) for p, kind in zip(operands, kinds, strict=True)]
        overloads.append(definition(name, [*own, *typed], several))
    return overloaded(overloads, names)


def imread_overloads(name: str, function: Any, names: Names) -> list[str]:
    """`ndd.imread`: a path returns a Tensor, several return a Batch. The arguments are as for `decoders.image`."""
    path = f"str | bytes | {names.add('os', 'PathLike')}[{names.add('typing', 'Any')}]"
    single = f"{path} | {names.add('ndd._typing', 'Array')}", names.add("ndd._tensor", "Tensor")
    batch = names.add("ndd._tensor", "Batch")
    several = f"{names.add('collections.abc', 'Sequence')}[{path}] | {batch}", batch
    decoder = _declaration(decode.operator)  # type: ignore[attr-defined]
    declared = {"device": DeviceLike, **{k: p.annotation for k, p in decoder.items()}}
    overloads = []
    for paths, gives in (single, several):
        parameters = [
            p.replace(annotation=paths)
            if p.kind is p.POSITIONAL_ONLY
            else _written(p, accepted(declared[p.name], names, batch=False), names)
            for p in inspect.signature(function).parameters.values()
        ]
        overloads.append(definition(name, parameters, gives))
    return overloaded(overloads, names)


def overloaded(definitions: list[str], names: Names) -> list[str]:
    """The lines of a function with these forms."""
    if len(definitions) == 1:
        return definitions
    return [f"@{names.add('typing', 'overload')}\n{text}" for text in definitions]


def definition(name: str, parameters: list[inspect.Parameter], result: str) -> str:
    """`def name(parameters) -> result: ...`, broken into lines. Annotations are texts."""
    head, tail = f"def {name}(", f") -> {result}: ..."
    return wrapped(head, list(_listed(parameters)), tail)


def wrapped(head: str, items: list[str], tail: str) -> str:
    """A list in brackets, in one line or filling several."""
    line = head + ", ".join(items) + tail
    if len(line) <= _WIDTH:
        return line
    lines = [""]
    for text in items:
        if len(lines[-1]) + len(text) + 6 > _WIDTH:
            lines.append("")
        lines[-1] += f"{text}, "
    return "\n".join([head, *[f"    {text.rstrip()}" for text in lines], tail])


def _listed(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """The parameters as text, with `/` and `*` where they belong."""
    previous = None
    for p in [*parameters, None]:
        kind = None if p is None else p.kind
        if previous is inspect.Parameter.POSITIONAL_ONLY and kind is not previous:
            yield "/"
        if p is None:
            return
        if kind is p.KEYWORD_ONLY and previous not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            yield "*"
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        annotation = "" if p.annotation is _EMPTY else f": {p.annotation}"
        value = "" if p.default is _EMPTY else f" = {p.default}"
        yield f"{star}{p.name}{annotation}{value if annotation else value.replace(' ', '')}"
        previous = kind
