"""`pipeline_def`: functions that build pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ndd.pipeline.pipeline import Pipeline


def pipeline_def(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function that builds pipelines of a body: `@pipeline_def` or `@pipeline_def(batch_size=..., ...)`.

    Arguments of `Pipeline` may stand here or in the call, which overrides; all others go to the body.
    `enable_conditionals` is accepted; conditions of plain Python work in any case.
    """
    options.pop("enable_conditionals", None)
    if function is None:
        return lambda f: pipeline_def(f, **options)

    @functools.wraps(function)
    def make(*arguments: Any, **named: Any) -> Pipeline:
        own = {**options, **{k: named.pop(k) for k in list(named) if k in _OPTIONS}}
        pipeline = Pipeline(**own)
        pipeline._body = functools.partial(function, *arguments, **named)
        return pipeline

    return make


_OPTIONS = frozenset(inspect.signature(Pipeline).parameters)
