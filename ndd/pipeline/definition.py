"""`pipeline_def`: functions that build pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ndd.pipeline.condition_rewriting import with_conditions
from ndd.pipeline.pipeline import Pipeline


def pipeline_def(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that builds pipelines of a body: `@pipeline_def` or `@pipeline_def(batch_size=..., ...)`.

    Arguments of `Pipeline` may stand here or in the call, which overrides; all others go to the body.

    Args:
        enable_conditionals: `if node:`, `and`, `or`, `not` and `a if node else b` decide for each sample, in the body and
            in the functions of the program that it calls. The branches run on the samples that take them (on none: not
            at all), and what they assign to variables, or return, must be of one type and rank. Conditions of plain
            Python values work in any case.
        debug: accepted; a body is ordinary Python that runs anew for every batch, so it can be debugged in any case.

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
    options.pop("debug", None)
    if function is None:
        return lambda f: pipeline_def(f, enable_conditionals=conditional, **options)

    @functools.wraps(function)
    def make(*arguments: Any, **named: Any) -> Pipeline:
        own = {**options, **{k: named.pop(k) for k in list(named) if k in _OPTIONS}}
        pipeline = Pipeline(**own)
        per_sample = named.pop("enable_conditionals", conditional)
        named.pop("debug", None)
        body = with_conditions(function) if per_sample else function
        pipeline._body = functools.partial(body, *arguments, **named)
        return pipeline

    return make


_OPTIONS = frozenset(inspect.signature(Pipeline).parameters)
