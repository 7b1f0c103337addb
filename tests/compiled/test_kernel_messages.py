"""Kernels that are sent to the processes that compile."""

import pickle
import subprocess
import sys
import textwrap
import types

import pytest
import warm_interpreter

import ndd
from ndd._compiled import compile_processes, kernel_messages
from ndd._compiled.jit import External, Intrinsic, Kernel, kernel
from ndd._compiled.sample_loops import loop_over_samples
from ndd._compiled.thread_team import joined
from ndd._cpu.resample import filter_loop

OFFSET = 3


@kernel
def with_constant(x):
    return x + OFFSET


@kernel
def with_kernel(x):
    return 2 * with_constant(x)


def received(one):
    return kernel_messages.unpacked(kernel_messages.packed(one, ()))[0]


def kernels_of_the_package():
    """All kernels, and what threads call for those that have a fallback."""
    modules = [
        module for name, module in list(sys.modules.items()) if name.startswith("ndd.") and hasattr(module, "__file__")
    ]
    own = list(
        {
            id(value): value for module in modules for value in vars(module).values() if isinstance(value, Kernel)
        }.values()
    )
    return [*own, *[joined(loop_over_samples(one)) for one in own if one.has_fallback()], joined(filter_loop)]


def test_what_is_received_has_the_same_file():
    """Then the process that sent the kernel finds what the other one has stored."""
    sent = [one for one in kernels_of_the_package() if one._text() is not None]
    assert len(sent) > 300
    refused = []
    for one in sent:
        message = kernel_messages.packed(one, ())
        if message is None:
            refused.append(one.__qualname__)
        else:
            assert kernel_messages.unpacked(message)[0]._text() == one._text(), one.__qualname__
    assert not refused


def test_no_kernel_names_a_module_of_the_package():
    """Such a module is not sent, so a process could not compile the kernel."""
    for one in kernels_of_the_package():
        scope = one.function.__globals__
        modules = [
            scope[name] for name in one.function.__code__.co_names if isinstance(scope.get(name), types.ModuleType)
        ]
        assert not [module for module in modules if module.__name__.startswith("ndd")], one.__qualname__


def test_a_received_kernel_is_another_one_that_does_the_same():
    for one, argument, expected in ((with_constant, 4, 7), (with_kernel, 4, 14)):
        other = received(one)
        assert other is not one
        assert other.function is not one.function
        assert other.interpreted(argument) == expected


def test_a_name_that_is_something_else_in_the_module_is_left_out():
    assert kernel_messages.can_be_sent(with_constant)
    assert not kernel_messages.can_be_sent(ndd.resize)
    assert not kernel_messages.can_be_sent(ndd)


def test_what_has_no_name_cannot_be_sent():
    offset = 1
    assert kernel_messages.packed(Kernel(lambda x: x + offset, {}), ()) is None
    with pytest.raises(pickle.PicklingError, match="no name"):
        Intrinsic(lambda: None, None).as_message()


def test_a_function_of_c_needs_no_library():
    other = received(External("a_function_of_no_library", "int64(int64)"))
    assert other.described() == b"a_function_of_no_library int64(int64)"


def test_a_function_of_libc_stays_itself():
    """LLVM does not know its address before numba is imported."""
    code = """
    import sys
    from ndd._compiled.jit import _declared
    _declared("memset", "uintp(uintp, int32, uintp)")
    assert "numba" not in sys.modules
    from numba.core.registry import cpu_target
    from llvmlite import binding
    cpu_target.target_context
    assert binding.address_of_symbol("memset")
    """
    done = warm_interpreter.run(textwrap.dedent(code))
    assert done.returncode == 0, done.stderr


def test_receiving_imports_neither_torch_nor_an_operator():
    """They take longer than most kernels."""
    message = kernel_messages.packed(joined(filter_loop), ())
    path, package = list(sys.path), list(ndd.__path__)
    program = compile_processes.PROGRAM.format(path=path, package=package, numbers=[])
    start = program[program.index("import sys") : program.index("from ndd.")]
    code = f"""
    from ndd._compiled.compile_worker import unpacked
    print(unpacked({message!r})[0]._text() is not None)
    heavy = ("torch.nn", "ndd._tensor.batch", "ndd._operator", "ndd.ops", "ndd.readers")
    print([name for name in heavy if name in sys.modules])
    """
    code = start + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["True", "[]"], done.stderr
