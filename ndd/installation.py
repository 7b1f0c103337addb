"""The version of ndd, and the command that installs one of its extras.

`ndd` on the package index is another project, so no message of ours says `pip install ndd[...]`; all such commands come
from here. They are read from `pyproject.toml` in a checkout, from the installed metadata elsewhere.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

__all__ = ["DISTRIBUTION", "install_command", "version"]

DISTRIBUTION = "ndd-dataloading"
_CHECKOUT = Path(__file__).parent.parent


def version() -> str:
    """The version of the checkout that contains this file, or of the installed distribution."""
    project = _project()
    if project is not None:
        return re.search(r'^version = "([^"]+)"', project, re.MULTILINE)[1]  # type: ignore[index]
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # only the folder `ndd` was copied to somewhere on the path
        return "unknown"


def install_command(extra: str) -> str:
    """The command that installs the libraries of an extra ("cpu", "cuda12", "cuda13", "oracle").

    In a checkout it names the extra, elsewhere the libraries themselves, since a wheel may have come from anywhere. Every
    shell understands the double quotes, including Windows's.
    """
    if _project() is not None:
        return f'pip install -e "{_CHECKOUT}[{extra}]"'
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        required = []
    pieces = [r.partition(";") for r in required]
    libraries = [name.strip() for name, _, marker in pieces if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    if not libraries:
        return f'pip install ".[{extra}]"  # in a checkout of ndd'
    return "pip install " + " ".join(f'"{library}"' for library in libraries)


def _project() -> str | None:
    """The text of `pyproject.toml`, if this file belongs to a checkout."""
    try:
        text = (_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return None
    return text if f'name = "{DISTRIBUTION}"' in text else None
