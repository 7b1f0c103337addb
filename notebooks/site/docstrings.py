"""Docstrings as Markdown: text, a table of arguments, errors, an example."""

from __future__ import annotations

import enum
import inspect
import operator
import re
import sys
import textwrap
import types
from dataclasses import dataclass, field
from typing import Any

import ndd
from ndd import DType

_HEADS = ("Args:", "Attributes:")
# What `@operator` adds to every operator, where a docstring does not say more.
_ADDED = {
    "batch_size": "the number of samples, where no input is a batch; each input is then the same for all of them.",
    "device": '"cpu" or "gpu". Default: where the first input is.',
    "dtype": "the element type of the result.",
    "rng": "an `ndd.random.RNG`; without it the thread's default one.",
}
_TYPES = {"batch_size": "int", "device": "Device | str", "rng": "RNG"}


@dataclass
class Docstring:
    """The parts of a docstring."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    errors: str = ""
    example: str = ""


def parsed(thing: Any) -> Docstring:
    """The docstring of a function, class or module, taken apart."""
    doc = Docstring()
    paragraphs = re.split(r"\n\s*\n", inspect.getdoc(thing) or "")
    text, examples = [], []
    for paragraph in paragraphs:
        first = paragraph.lstrip().split("\n", 1)[0]
        if first in _HEADS:
            doc.arguments.update(_arguments(paragraph))
        elif first.startswith(">>>") or (examples and paragraph.startswith("    ")):
            examples.append(paragraph)
        elif first.startswith("Raises "):
            doc.errors = _lists_apart(paragraph)
        else:
            text.append(_lists_apart(paragraph))
    doc.text, doc.example = "\n\n".join(text), "\n\n".join(examples)
    return doc


def _arguments(section: str) -> dict[str, str]:
    """Name (or names with commas) and text of each entry of an `Args:` section."""
    entries: dict[str, str] = {}
    name = ""
    # A list of names may take several lines.
    section = re.sub(r"(?m)^(    \w[\w, *`]*,)\n\s+(?=[\w*`]+(?:, [\w*`]+)*[:,])", r"\1 ", section)
    section = re.sub(r"(?m)^(    \w[\w, *`]*,)\n\s+(?=[\w*`]+(?:, [\w*`]+)*[:,])", r"\1 ", section)
    for line in section.split("\n")[1:]:
        entry = re.match(r"^    ([\w*`]+(?:, [\w*`]+)*)(?: \([^)]*\))?: (.*)", line)
        if entry:
            name = entry[1].replace("`", "")
            entries[name] = entry[2]
        elif name:
            entries[name] += "\n" + line.strip()
    return entries


def _lists_apart(paragraph: str) -> str:
    """An empty line before a list, as Markdown wants it."""
    return re.sub(r"(?m)^(?!\s*[*-] )(.+)\n(?=\* |- |\d\. )", r"\1\n\n", paragraph)


def signature_text(name: str, function: Any) -> str:
    """The signature, on one line where that is short, else on several."""
    signature = signature_of(function)
    if signature is None:
        return name
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    words: list[str] = []
    for i, parameter in enumerate(parameters):
        before = parameters[i - 1].kind if i else None
        if parameter.kind is parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            words.append("*")
        words.append(_parameter(parameter))
        last = i + 1 == len(parameters)
        if parameter.kind is parameter.POSITIONAL_ONLY and (last or parameters[i + 1].kind is not parameter.kind):
            words.append("/")
    line = f"{name}({', '.join(words)})"
    if len(line) <= 88:
        return line
    # A line for each of twenty parameters would push the text off the screen; the table below has them one by one.
    filled = textwrap.wrap(", ".join(words) + ",", 84, break_long_words=False, break_on_hyphens=False)
    return f"{name}(\n" + "".join(f"    {part}\n" for part in filled) + ")"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={value_text(parameter.default)}"
    return f"{stars}{parameter.name}{default}"


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature; None of what has none."""
    if isinstance(function, type) and issubclass(function, enum.Enum):
        return None
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def value_text(value: Any) -> str:
    """A default as one writes it."""
    if isinstance(value, enum.Enum):
        return value.name
    text = str(value) if isinstance(value, DType) else repr(value)
    return text if len(text) <= 60 and "<" not in text else "..."


def _type_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, str):
        text = annotation
    elif isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        text = annotation.__name__
    else:
        text = str(annotation)
    text = re.sub(r"ForwardRef\('([\w.]+)'\)", r"\1", text)
    text = re.sub(r"\b(?:collections\.abc|typing|numpy|ndd(?:\.\w+)+)\.(?=\w)", "", text)
    return text.replace(" | None", "")


def _resolved(name: str, function: Any, owner: Any) -> Any:
    """What a name in a docstring stands for: a method of the same class, or a name of the same module, of a package around it
    or of ndd."""
    parts = (getattr(function, "__module__", None) or "").split(".")
    modules = [sys.modules.get(".".join(parts[:i])) for i in range(len(parts), 0, -1)]
    for start in (owner, *modules, ndd):
        try:
            thing = operator.attrgetter(name.removeprefix("ndd."))(start)
        except AttributeError:
            continue
        if callable(thing):
            return thing
    return None


def meanings(function: Any, owner: Any = None, depth: int = 2) -> dict[str, str]:
    """The text of each argument: its own, that of a function which the docstring names, or of a method that is overridden."""
    doc = parsed(function)
    texts: dict[str, str] = {}
    for base in reversed(function.__mro__[1:]) if isinstance(function, type) else ():
        texts |= meanings(base, None, 0)
    for base in getattr(owner, "__mro__", ()) if depth else ():
        method = vars(base).get(getattr(function, "__name__", ""))
        if callable(method) and method is not function:
            texts = meanings(method, None, 0) | texts
    for name in re.findall(r"(?:arguments are those of|^See|\. See) `([\w.]+)`", doc.text) if depth else ():
        texts |= meanings(_resolved(name, function, owner), owner, depth - 1)
    if hasattr(function, "operator"):
        texts = _ADDED | texts
    for names, text in doc.arguments.items():
        for name in names.replace("*", "").split(", "):
            texts[name] = _followed(text, name, function, owner) if depth else text
    return texts


def _followed(text: str, argument: str, function: Any, owner: Any) -> str:
    """A text "as for `resize`" with the words of that function."""
    text = " ".join(text.split())
    reference = re.match(r"(?:as for|as in|see) `([\w.]+)`[.,;]?\s*", text)
    there = reference and meanings(_resolved(reference[1], function, owner), owner, 1).get(argument)
    if not reference or not there:
        return text
    rest = text[reference.end() :].removeprefix("and so are the inputs.")
    return f"{there} {rest[:1].upper()}{rest[1:]}".strip()


def _annotation(parameter: inspect.Parameter, function: Any, doc: Docstring) -> str:
    """The type of a parameter, or of the parameter of the same name of the function whose arguments it has."""
    text = _type_text(parameter.annotation) or _TYPES.get(parameter.name, "")
    if not text and hasattr(function, "operator") and parameter.kind is not parameter.KEYWORD_ONLY:
        return "Batch | TensorLike"
    those = None if text else re.search(r"arguments are those of `([\w.]+)`", doc.text)
    other = those and signature_of(_resolved(those[1], function, None))
    same = other and other.parameters.get(parameter.name, next(iter(other.parameters.values())))
    return _type_text(same.annotation) if same else text


def argument_table(function: Any, doc: Docstring, owner: Any = None) -> str:
    """Every parameter with type, default and text, as a Markdown table; "" where there are none."""
    signature = signature_of(function)
    if signature is None:
        return ""
    texts, rows = meanings(function, owner), []
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        default = "" if parameter.default is parameter.empty else f"`{value_text(parameter.default)}`"
        kind = _annotation(parameter, function, doc)
        cells = (
            f"`{parameter.name}`",
            f"`{kind}`" if kind else "",
            default,
            " ".join(texts.get(parameter.name, "").split()),
        )
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    head = "| argument | type | default | |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + "\n" if rows else ""
