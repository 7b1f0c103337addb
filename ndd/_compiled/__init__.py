"""CPU kernels: how they are compiled, stored, loaded and run. The only package that imports numba and llvmlite.

A kernel is a Python function under `@kernel` (`jit.py`). Its life:

1. Nothing happens when it is declared. numba is imported, in 0.2 s, when the first kernel is called.
2. A call looks up the types of its arguments (`dispatcher.py`). Machine code for these types is called at once, without the GIL.
3. For new types a file is loaded, in 1 ms (`kernel_cache.py` finds it, `kernel_file.py` has the format, `linking.py` loads it). Its
   name is a hash of the source of the kernel and of all that it calls, the types, the processor and the versions of libraries.
4. Without a file the kernel is compiled. The kernels that it calls are compiled to bitcode first, each once for its types, stored
   in files of their own, and linked in (`linking.py`). One thread compiles at a time.
5. A kernel with a `fallback` does not make the caller wait: the slower fallback answers while another process compiles
   (`background.py`).
6. A batch is one call. Threads that wait in compiled code join it (`thread_team.py`) and take samples with a shared counter
   (`sample_loops.py`), so that no thread needs the interpreter.

The other files have functions that kernels call:

* `intrinsics.py`: arrays over addresses, `empty`, `zeros`, `min`, `max`, `multiply_add`
* `atomics.py`: atomic operations on shared numbers, and calls by address
* `libm.py`: C's mathematical functions, for kernels whose text may be interpreted
* `half.py`, `leading_zeros.py`: single instructions; `processor.py`: the processor's features
* `nontemporal_stores.py`: results that bypass the cache
* `simd.py`, `simd_rgb.py`, `simd_bayer.py`, `simd_medians.py`, `simd_sums.py`: loops in vector registers

To add an intrinsic, i.e. a function whose LLVM code is written by hand, first measure a plain loop, and write the difference
into the docstring of the file. Then write a function without arguments that imports `numba` and `llvmlite` and returns what
`@numba.extending.intrinsic` makes, and give it to `jit.Intrinsic`, with a Python function that does the same if the text of a
kernel that calls it may be interpreted. `leading_zeros.py` is the shortest example. Such code checks no index: its docstring
must say which memory it accesses.

numba's private names are used by `dispatcher.py` (of a dispatcher), `linking.py` (of the compiler and its libraries of code),
`pipeline.py` (of its passes), `intrinsics.py` (arrays; `min` and `max`) and `atomics.py` (errors of kernels). So `pyproject.toml`
bounds numba's version, and `tests/compiled/test_numba_versions.py` tries the oldest and the newest one.
"""

from ndd._compiled import intrinsics as _intrinsics  # noqa: F401  (kernels have its `min` and `max`)
