"""`@recipe`: turns a function of batches and settings into one that takes the settings and returns a `Recipe`."""

from __future__ import annotations

import functools
import inspect
import textwrap
import typing
from collections.abc import Callable
from typing import Any, Literal

import ndd


class Recipe:
    """Steps with their settings, to be called with batches. `print` shows them; it can be pickled, and compared.

    Attributes:
        name: the name of its function.
        settings: its arguments, by name.
        source: the text of the steps.

    Args:
        make: creates the recipe again from its settings, for `pickle`.
        steps: the function.

    >>> import ndd
    >>> recipe = ndd.recipes.imagenet_eval(224)
    >>> recipe.name, recipe.settings["size"]
    ('imagenet_eval', 224)
    """

    def __init__(self, make: Callable[..., Recipe], steps: Callable[..., Any], settings: dict[str, Any]):
        self._make, self._steps = make, steps
        self.name: str = steps.__name__
        self.settings = settings
        self._inputs = [p.name for p in _parameters(steps) if p.kind is p.POSITIONAL_ONLY]

    @property
    def source(self) -> str:
        """The text of the steps, without the docstring."""
        text = textwrap.dedent(inspect.getsource(self._steps))
        lines = text[text.index("def ") :].rstrip()
        doc = inspect.getdoc(self._steps)
        begin = lines.index('"""') if doc else 0
        end = lines.index('"""', begin + 3) + 3 if doc else 0
        return lines[:begin].rstrip() + lines[end:]

    def __call__(self, *batches: Any) -> Any:
        """The results of the steps, then the batches that were passed beyond their inputs."""
        count = len(self._inputs)
        if len(batches) < count:
            expected = ", ".join(self._inputs)
            raise TypeError(f"{self.name}: expected batches of {expected}, got {len(batches)} of them")
        for name, value in zip(self._inputs, batches, strict=False):
            if not isinstance(value, ndd.Batch):
                raise TypeError(
                    f"{self.name}: {name}: expected an ndd.Batch, got {type(value).__name__}. ndd.as_batch makes one of a list"
                )
        result = self._steps(*batches[:count], **self.settings)
        rest = batches[count:]
        return (*(result if isinstance(result, tuple) else (result,)), *rest) if rest else result

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.settings.items())})"

    def __str__(self) -> str:
        return f"{self!r}\n\n{self.source}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and (self._steps, self.settings) == (other._steps, other.settings)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(self._make, **self.settings), ()


def recipe(steps: Callable[..., Any]) -> Callable[..., Recipe]:
    """Turns a function into a recipe: its parameters before `/` are batches, the others settings with their defaults.

    When the recipe is created, raises TypeError for settings that it does not have, and ValueError for a value that is not in
    the setting's `Literal`.

    Args:
        steps: the decorated function; it returns a batch or a tuple of batches.

    >>> import ndd, numpy as np
    >>> @ndd.recipes.recipe
    ... def thumbnails(images, /, size: int = 8):
    ...     return ndd.resize(images, size=[size, size])
    >>> small = thumbnails(4)
    >>> small, [t.shape for t in small(ndd.batch([np.zeros((9, 7, 3), np.uint8)])).tensors]
    (thumbnails(size=4), [(4, 4, 3)])
    """
    signature = inspect.signature(steps)
    taken = [p for p in signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY]

    @functools.wraps(steps)
    def make(*values: Any, **named: Any) -> Recipe:
        try:
            bound = inspect.Signature(taken).bind(*values, **named)
        except TypeError as error:
            raise TypeError(f"{steps.__name__}: {error}") from None
        bound.apply_defaults()
        _check(steps, bound.arguments)
        return Recipe(make, steps, dict(bound.arguments))

    make.__signature__ = inspect.Signature(taken, return_annotation=Recipe)  # type: ignore[attr-defined]
    return make


def _parameters(steps: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(steps).parameters.values())


def _check(steps: Callable[..., Any], settings: dict[str, Any]) -> None:
    """ValueError for a text that is not in the annotation."""
    hints = typing.get_type_hints(steps)
    for name, value in settings.items():
        options = [hints.get(name), *typing.get_args(hints.get(name))]
        words = [w for option in options if typing.get_origin(option) is Literal for w in typing.get_args(option)]
        if words and value is not None and value not in words:
            raise ValueError(f"{steps.__name__}: {name}: expected one of {', '.join(map(repr, words))}, got {value!r}")
