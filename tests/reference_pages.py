"""The modules that build the site, and the entries of its reference, for the tests of both; and the reader that is documented."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import ndd

SITE = Path(__file__).parent.parent / "notebooks" / "site"


@functools.cache
def site() -> dict[str, Any]:
    """The modules that build the site; nothing but ndd is needed for these."""
    sys.path.insert(0, str(SITE))
    try:
        return {
            name: importlib.import_module(name) for name in ("build", "docstrings", "errors", "gallery", "reference")
        }
    finally:
        sys.path.remove(str(SITE))


@functools.cache
def book() -> Any:
    """The reference, without pictures."""
    return site()["reference"].Reference(site()["build"]._torchvision_names(), lambda path: "")


@functools.cache
def entries() -> dict[str, str]:
    """The Markdown of each entry of the reference by its path."""
    text = "\n".join(book().page(page) for page in book().pages)
    parts = re.split(r"(?m)^## .* \{ #(ndd[\w.]+) \}$", text)
    constants = dict.fromkeys(re.findall(r'<span id="(ndd[\w.]+)">', text), "")
    return constants | dict(zip(parts[1::2], parts[2::2], strict=True))


def documented_reader() -> str:
    """The class in the documentation of `Reader`."""
    text = inspect.getdoc(ndd.readers.Reader) or ""
    start = text.index("    class LineStore(")
    return textwrap.dedent(text[start : text.index("\n\nAttributes:")])
