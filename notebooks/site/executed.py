"""Executed notebooks as Markdown, with what they showed."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any


def page(path: Path) -> str:
    """A notebook as a page: text as it is, code in blocks, outputs below them."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source.strip():
            parts.append(f"```python\n{source}\n```")
            parts += [shown for output in cell["outputs"] if (shown := _output(output))]
    title, rest = parts[0].split("\n", 1) if "\n" in parts[0] else (parts[0], "")
    link = f'[Notebook]({path.name}){{ .download download="{path.name}" }}'
    return "\n\n".join([title, link, rest, *parts[1:]])


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return "" if output["name"] == "stderr" else _text("".join(output["text"]))
    data = output.get("data", {})
    if "text/html" in data:
        # One line: Markdown takes no empty line within HTML.
        return '<div class="output">' + re.sub(r"\s*\n\s*", " ", "".join(data["text/html"])) + "</div>"
    if "image/png" in data:
        return f'<div class="output"><img src="data:image/png;base64,{"".join(data["image/png"]).strip()}"></div>'
    return _text("".join(data["text/plain"])) if "text/plain" in data else ""


def _text(text: str) -> str:
    return f'<div class="output"><pre>{html.escape(text.rstrip()).replace(chr(10), "&#10;")}</pre></div>'
