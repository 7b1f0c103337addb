"""Says what to install where torch is missing or too old. `import ndd` imports it first."""

from __future__ import annotations

import re

LEAST = (2, 9)
_NEEDED = f"ndd needs torch {LEAST[0]}.{LEAST[1]} or newer"

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(f"{_NEEDED}, which is not installed: pip install torch", name="torch") from None

_release = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
if _release is not None and tuple(map(int, _release.groups())) < LEAST:
    raise ImportError(f"{_NEEDED}, and {torch.__version__} is installed: pip install --upgrade torch", name="torch")
