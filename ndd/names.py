"""What `ndd` says of names that it does not have, and the one that it looks up."""

from __future__ import annotations

from sys import modules as _modules
from typing import Any

from ndd._operator.name_hints import missing_name
from ndd.installation import version


def __getattr__(name: str) -> Any:
    """`ndd.__version__`, looked up when it is asked for: the installed metadata take 10 ms to find."""
    if name == "__version__":
        return version()
    raise missing_name("ndd", name, vars(_modules["ndd"]).get("__all__", ()))
