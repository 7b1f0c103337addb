"""`pipeline_def`: functions that build pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ndd.pipeline.condition_rewriting import with_conditions
from ndd.pipeline.pipeline import Pipeline


def pipeline_def(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that builds pipelines: `@pipeline_def` or `@pipeline_def(batch_size=..., ...)`.

    Each call of it calls the decorated function once, and makes a `Pipeline` of the steps that the function records.
    Arguments of `Pipeline` may be given here or in the call, which overrides them; the function gets the arguments that it
    takes. These may be nodes that were made outside of any pipeline. TypeError in the call for arguments that the function
    does not take.

    Args:
        enable_conditionals: `if node:`, `and`, `or`, `not` and `a if node else b` decide for each sample, in the function and
            in the functions of the program that it calls (also lambdas, methods and objects with `__call__`). Both branches
            are recorded, each for the samples that take it, as in DALI. The values that they assign to variables, attributes
            and items, or return, are merged into one: ValueError if the structures differ (tuples of other lengths, other
            keys), RuntimeError if only one branch gives a value, and in a run for values of different type or rank. Readers,
            sources, and random operators that take no node, give a branch its samples of a whole batch. A condition in a
            `while`, or with `break`, cannot decide for each sample. Conditions of plain Python values work in any case.
        debug: the function runs for every batch, and its nodes have values (`node.get()`), so that it can be printed and
            stepped through. A list of arrays as an operator's input is one array for each sample. Such a pipeline runs
            nothing ahead, and its outputs, readers and sources are unknown before the first run. (In DALI it needs a GPU.)
        function: the function that is decorated; without it the result is the decorator.
        **options: arguments of `Pipeline`.

    >>> import ndd
    >>> @ndd.pipeline_def(batch_size=4, enable_conditionals=True)
    ... def halved():
    ...     x = ndd.fn.external_source(source=[[8, 3, 6, 1]])
    ...     if x % 2 == 0:
    ...         x = x // 2
    ...     return x
    >>> [sample.item() for sample in halved().run()[0].batch]  # without source text nothing is rewritten
    [4, 3, 3, 1]
    """
    conditional = options.pop("enable_conditionals", False)
    debug = options.pop("debug", False)
    if function is None:
        return lambda f: pipeline_def(f, enable_conditionals=conditional, debug=debug, **options)

    signature = inspect.signature(function)

    @functools.wraps(function)
    def make(*arguments: Any, **named: Any) -> Pipeline:
        if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            raise TypeError(
                f"pipeline_def: {_name(function)} takes `**kwargs`, which is not allowed: name them, so that they are not mixed "
                "up with those of the pipeline"
            )
        own = {k: named.pop(k) for k in list(named) if k in _OPTIONS and k not in signature.parameters}
        chosen = {"enable_conditionals": conditional, "debug": debug}
        chosen |= {k: named.pop(k) for k in chosen if k in named and k not in signature.parameters}
        try:
            signature.bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{_name(function)}: {error}") from None
        pipeline = Pipeline(**{**options, **own})
        body = with_conditions(function) if chosen["enable_conditionals"] else function
        if chosen["debug"]:
            pipeline._run_body(functools.partial(body, *arguments, **named))
        else:
            pipeline._trace_body(body, *arguments, **named)
        return pipeline

    make._is_pipeline_def = True  # type: ignore[attr-defined]
    return make


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


_OPTIONS = frozenset(inspect.signature(Pipeline).parameters)
