"""Modules of DALI that ndd does not have: the error of an import tells what to do instead."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

_INSTEAD = {
    "ndd.backend_impl": "it is DALI's library in C++. Its functions for memory are in ndd.backend, its tensors in ndd.tensors",
    "ndd.reducers": "nothing is sent to other processes by pickling: leave `py_callback_pickler` out",
    "ndd.sysconfig": "there is no library to compile C++ operators against. Declare operators with @ndd.operator, in Python or "
    "as CUDA text",
    "ndd.python_function_plugin": "fn.dl_tensor_python_function takes and gives DLPack capsules, and torch.from_dlpack reads them",
    "ndd.plugin.triton": "keep the function that makes the pipeline beside the model, and run it in Triton's Python backend",
    "ndd.plugin.tf": "an output is read through DLPack: tf.experimental.dlpack.from_dlpack(output.as_tensor().__dlpack__())",
    "ndd.plugin.jax": "an output is read through DLPack: jax.dlpack.from_dlpack(output.as_tensor().torch())",
    "ndd.plugin.paddle": "an output is read through DLPack: paddle.utils.dlpack.from_dlpack(output.as_tensor().__dlpack__())",
}


class _Finder:
    """The last that Python asks for a module."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name in _INSTEAD:
            _refuse(name)


def _refuse(name: str) -> NoReturn:
    raise ImportError(f"ndd has no {name.removeprefix('ndd.')!r}, which DALI has: {_INSTEAD[name]}", name=name)


sys.meta_path.append(_Finder)  # type: ignore[arg-type]
