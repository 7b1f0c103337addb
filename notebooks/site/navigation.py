"""The pages that `mkdocs.yml` names; without a YAML parser, so that a test needs none."""

from __future__ import annotations

import re


def pages_of(configuration: str) -> list[str]:
    """The paths of the entries under `nav:`."""
    nav = configuration[configuration.index("\nnav:") :]
    return re.findall(r"(?m)^\s+- (?:[^\n]*?: )?([\w/.-]+\.(?:md|ipynb))$", nav)
