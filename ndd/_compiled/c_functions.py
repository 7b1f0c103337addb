"""Callbacks for C libraries, written in LLVM IR.

numba's `cfunc` takes 0.4 s for such a function in each process; this takes 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndd._execution.fork import fork_lock

_engines: dict[Callable[[Any, Any], None], Any] = {}  # own the machine code for the life of the process


def c_functions(write: Callable[[Any, Any], None], *names: str) -> tuple[int, ...]:
    """The addresses of functions. `write(ir, module)` writes them into a module of `llvmlite.ir`, at the first call."""
    with fork_lock:
        engine = _engines.get(write)
        if engine is None:
            engine = _engines[write] = _compiled(write)
    return tuple([engine.get_function_address(name) for name in names])


def _compiled(write: Callable[[Any, Any], None]) -> Any:
    from llvmlite import binding, ir

    module = ir.Module()
    write(ir, module)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    return engine
