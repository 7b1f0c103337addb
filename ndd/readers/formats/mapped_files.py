"""Copying ranges of a mapped file, which takes two thirds of the time of `read` where the bytes are in the page cache.

`Mapping` maps a regular file of a local file system and reads ranges of it. A long range whose first and last byte are
in the page cache is copied with stores that go past the processor's caches (on an AMD EPYC 100 kB in 7 to 8 us; `read` takes
10 to 15, `memcpy` out of the mapping 12); another one is read by `read`, which reads ahead better from a disk.

A file that gets shorter while it is mapped would end the process: the kernel sends SIGBUS to who touches a page that is no
longer there (or that the disk cannot give). So a handler of SIGBUS stands while a mapping is used:

* A fault inside one of our mappings: it puts pages of zeros in place of the rest of that mapping and marks it as broken. The
  copy goes on, and is thrown away: after each copy the mark and the size of the file are looked at, and a mapping that is
  broken, or longer than its file, is never used again. The ranges are then read by `read`, which says what is wrong.
* Any other SIGBUS: it puts back the handler that was there before (faulthandler's, another library's, the default) and
  returns, so that the fault happens again and that handler sees it. The second time it is the default that is put back, for
  two handlers may each believe that the other one was there before.

The handler does nothing but loads, stores and calls of `mmap`, `sigaction` and `raise`, which are allowed in one; it is 50
lines of LLVM's assembler because numba would take 0.3 s to compile it in each process. It is installed with the first mapping,
and again before a copy if another one has been installed since. A forked child inherits handler and mappings and starts with
an empty table. Only on Linux, on processors where this was tried; elsewhere there are no mappings.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ndd._compiled.jit import External, Intrinsic, kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.files import read_range
from ndd._execution.fork import around_fork

T = TypeVar("T")

AVAILABLE = sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(os, "preadv")

LEAST = 1 << 15  # bytes of a range from which on a copy is faster than a read call, with what is asked before it
_MOST_BYTES = 1 << 36  # mapped together: the kernel's tables for 64 GB that were touched take 128 MB
_MAPPINGS = 256  # at a time
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0xF2F52010}  # ext, xfs, btrfs, tmpfs, overlay, f2fs
_SIGBUS = 7
_WITH_ADDRESS, _ON_OTHER_STACK = 4, 0x08000000  # flags of sigaction
_NOW = 8  # RWF_NOWAIT: only what is in the page cache
_STRIDE = 64  # bytes that `_stream` copies

_preadv2 = External("preadv2", "int64(int32, uintp, int32, int64, int32)")


class Mapping:
    """A file of `size` bytes, mapped until `close`; `handle` stays the caller's.

    `Mapping.of` gives None where a file cannot, or should not, be mapped.
    """

    def __init__(self, handle: int, size: int, row: int, address: int):
        self._handle, self._size, self._row, self._address = handle, size, row, address
        self._given_up = False

    @classmethod
    def of(cls, handle: int, size: int) -> Mapping | None:
        """A new mapping of an open regular file."""
        if not AVAILABLE or size < LEAST or not _is_local(handle):
            return None
        with _lock:
            taken = _table[:, 0] != 0
            if taken.all() or int((_table[:, 1] - _table[:, 0])[taken].sum()) + size > _MOST_BYTES:
                return None
            address = _libc().mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
            if address in (None, ctypes.c_void_p(-1).value):
                return None
            row = int(np.argmin(taken))
            _table[row, 1:] = address + -(-size // mmap.PAGESIZE) * mmap.PAGESIZE, 0
            _table[row, 0] = address
        return cls(handle, size, row, address)

    def read(
        self, offsets: np.ndarray, sizes: np.ndarray, places: np.ndarray, target: np.ndarray, done: np.ndarray
    ) -> int | None:
        """As `files.read_ranges` of this one file. None if the mapping is of no use any more: nothing is read then."""
        if self._given_up:
            return None
        _guard()
        probe = np.array([0, 1, 0], np.int64)
        incomplete = _read_mapped(self._handle, self._address, self._size, offsets, sizes, places, target, done, probe)
        return incomplete if self._is_sound() else None

    def look(self, at: Callable[[np.ndarray], T]) -> T | None:
        """`at(bytes)` of the whole file, u8, which it neither writes to nor keeps. None if the mapping is of no use any
        more: what `at` saw was something else."""
        _guard()
        found = at(np.ctypeslib.as_array((ctypes.c_uint8 * self._size).from_address(self._address)))
        return found if self._is_sound() else None

    def _is_sound(self) -> bool:
        if _table[self._row, 2] or os.fstat(self._handle).st_size < self._size:
            self._given_up = True
        return not self._given_up

    def close(self) -> None:
        """Unmap the file. Nobody may be reading from it."""
        with _lock:
            if _table[self._row, 0] == self._address:  # else it was mapped before a fork, and this is the child
                _table[self._row, 0] = 0
            _libc().munmap(self._address, self._size)


@kernel
def _read_mapped(handle, mapped, size, offsets, sizes, places, target, done, probe):
    """`read_ranges` of one file that is mapped at `mapped`. `probe`: room for a byte, and for what `preadv2` wants."""
    base, here = np.int64(target.ctypes.data), np.int64(probe.ctypes.data)
    probe[0] = here + 16
    incomplete = 0
    for i in range(len(sizes)):
        first, last = offsets[i], offsets[i] + sizes[i]
        if (
            sizes[i] >= LEAST
            and first >= 0
            and last <= size
            and _preadv2(handle, here, 1, first, _NOW) == 1
            and _preadv2(handle, here, 1, last - 1, _NOW) == 1
        ):
            copy_past_caches(base + places[i], mapped + first, sizes[i])
            done[i] = sizes[i]
        else:
            done[i] = read_range(handle, base + places[i], sizes[i], first)
            incomplete += done[i] != sizes[i]
    return incomplete


@kernel
def copy_past_caches(target, source, size):
    """Copies bytes between addresses, for what is too large to stay in the processor's caches."""
    lead = min((-target) & (_STRIDE - 1), size)
    copy_bytes(target, source, lead)
    at = lead
    while at + _STRIDE <= size:
        _stream(target + at, source + at)
        at += _STRIDE
    copy_bytes(target + at, source + at, size - at)
    _fence()


@functools.cache
def _make_stream() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def stream(typing_context, target, source):
        """64 bytes, to an aligned address, past the caches."""

        def generate(context, builder, signature, arguments):
            row = ir.VectorType(ir.IntType(64), _STRIDE // 8)
            to, start = (builder.inttoptr(argument, row.as_pointer()) for argument in arguments)
            store = builder.store(builder.load(start, align=1), to, align=_STRIDE)
            store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            return context.get_dummy_value()

        return types.void(target, source), generate

    return stream


@functools.cache
def _make_fence() -> Any:
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def fence(typing_context):
        """Other threads see what was stored, past the caches too, before what comes next."""

        def generate(context, builder, signature, arguments):
            builder.fence("seq_cst")
            return context.get_dummy_value()

        return types.void(), generate

    return fence


_stream: Any = Intrinsic(_make_stream)
_fence: Any = Intrinsic(_make_fence)

_lock = threading.Lock()
# First address (0: none), the one after the last page, whether it is broken.
_table = np.zeros((_MAPPINGS, 3), np.int64)


class _Action(ctypes.Structure):
    """libc's `struct sigaction`."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_char * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_before, _default = _Action(), _Action()
_passed_on = np.zeros(1, np.int64)  # whether a fault was left to the handler before

# si_code is at byte 8 of siginfo_t and above 0 if the kernel saw a fault; the address is at byte 16. Addresses are numbers until
# they are used: how pointers are written depends on the version of LLVM.
_HANDLER = """
define void @on_sigbus(i32 %signal, i64 %info, i64 %context) {{
entry:
  %code.at = add i64 %info, 8
  %code.pointer = inttoptr i64 %code.at to {i32}
  %code = load i32, {i32} %code.pointer
  %address.at = add i64 %info, 16
  %address.pointer = inttoptr i64 %address.at to {i64}
  %address = load i64, {i64} %address.pointer
  %fault = icmp sgt i32 %code, 0
  br i1 %fault, label %look, label %foreign
look:
  %row = phi i64 [ {table}, %entry ], [ %next, %other ]
  %first.pointer = inttoptr i64 %row to {i64}
  %first = load volatile i64, {i64} %first.pointer
  %end.at = add i64 %row, 8
  %end.pointer = inttoptr i64 %end.at to {i64}
  %end = load volatile i64, {i64} %end.pointer
  %taken = icmp ne i64 %first, 0
  %behind = icmp uge i64 %address, %first
  %before = icmp ult i64 %address, %end
  %between = and i1 %behind, %before
  %inside = and i1 %taken, %between
  br i1 %inside, label %ours, label %other
other:
  %next = add i64 %row, 24
  %more = icmp ult i64 %next, {table_end}
  br i1 %more, label %look, label %foreign
ours:
  %page = and i64 %address, {page_mask}
  %rest = sub i64 %end, %page
  %mmap = inttoptr i64 {mmap} to {mmap_type}
  %got = call i64 %mmap(i64 %page, i64 %rest, i32 1, i32 50, i32 -1, i64 0)
  %covered = icmp eq i64 %got, %page
  br i1 %covered, label %mark, label %foreign
mark:
  %broken.at = add i64 %row, 16
  %broken.pointer = inttoptr i64 %broken.at to {i64}
  store volatile i64 1, {i64} %broken.pointer
  ret void
foreign:
  %passed.pointer = inttoptr i64 {passed_on} to {i64}
  %passed = load volatile i64, {i64} %passed.pointer
  store volatile i64 1, {i64} %passed.pointer
  %again = icmp ne i64 %passed, 0
  %action = select i1 %again, i64 {default}, i64 {before}
  %sigaction = inttoptr i64 {sigaction} to {sigaction_type}
  %set = call i32 %sigaction(i32 %signal, i64 %action, i64 0)
  br i1 %fault, label %return, label %sent
sent:
  %raise = inttoptr i64 {raise_} to {raise_type}
  %raised = call i32 %raise(i32 %signal)
  br label %return
return:
  ret void
}}
"""


@functools.cache
def _handler() -> tuple[Any, int]:
    """The machine code of the handler, and its address."""
    from llvmlite import binding, ir

    libc, i32, i64 = _libc(), ir.IntType(32), ir.IntType(64)

    def where(function: Any) -> int:
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)

    text = _HANDLER.format(
        i32=i32.as_pointer(),
        i64=i64.as_pointer(),
        mmap_type=ir.FunctionType(i64, [i64, i64, i32, i32, i32, i64]).as_pointer(),
        sigaction_type=ir.FunctionType(i32, [i32, i64, i64]).as_pointer(),
        raise_type=ir.FunctionType(i32, [i32]).as_pointer(),
        table=_table.ctypes.data,
        table_end=_table.ctypes.data + _table.nbytes,
        page_mask=-mmap.PAGESIZE,
        mmap=where(libc.mmap),
        sigaction=where(libc.sigaction),
        raise_=where(libc["raise"]),
        passed_on=_passed_on.ctypes.data,
        before=ctypes.addressof(_before),
        default=ctypes.addressof(_default),
    )
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    return engine, engine.get_function_address("on_sigbus")


def _guard() -> None:
    """Installs the handler, unless it is there."""
    address, now = _handler()[1], _Action()
    _libc().sigaction(_SIGBUS, None, ctypes.byref(now))
    if now.handler == address:
        return
    with _lock:
        _libc().sigaction(_SIGBUS, None, ctypes.byref(now))
        if now.handler != address:
            ctypes.memmove(ctypes.byref(_before), ctypes.byref(now), ctypes.sizeof(_Action))
            _passed_on[0] = 0
            ours = _Action(handler=address, flags=_WITH_ADDRESS | _ON_OTHER_STACK)
            _libc().sigaction(_SIGBUS, ctypes.byref(ours), None)


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
    )  # fmt: skip
    libc.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t
    libc.sigaction.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
    libc.fstatfs.argtypes = ctypes.c_int, ctypes.c_void_p
    return libc


def _is_local(handle: int) -> bool:
    """Whether the file lies on a file system of this machine that keeps its pages in the page cache."""
    said = (ctypes.c_int64 * 32)()  # struct statfs begins with the kind of file system
    return _libc().fstatfs(handle, said) == 0 and said[0] & 0xFFFFFFFF in _LOCAL


def _forget() -> None:
    """In a forked child, where nobody reads from what its parent mapped; a thread there may have held the lock."""
    global _lock
    _lock = threading.Lock()
    _table[:] = 0


around_fork(in_child=_forget)
