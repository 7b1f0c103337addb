"""The functions of pipeline mode: `import ndd.fn as fn` in the place of `import nvidia.dali.fn as fn`.

Every operator and reader of ndd has its functional name here (`fn.readers.file`, `fn.decoders.image`), by rule; see
`ndd.pipeline.functions`.
"""

from __future__ import annotations

from typing import Any

from ndd.pipeline.functions import fn as _functions


def __getattr__(name: str) -> Any:
    return getattr(_functions, name)


def __dir__() -> list[str]:
    return dir(_functions)
