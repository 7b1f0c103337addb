"""The `compile` command: its operators, its targets, and progress bars (lines if the output is not a terminal)."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import logging
import multiprocessing
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from ndd._compiled.cpu_levels import LEVELS
from ndd._compiled.kernel_cache import why_not_kept
from ndd._execution.cpus import cpu_count
from ndd._execution.signal_safe import interrupting_no_children
from ndd.bench.start import FEW
from ndd.compile import archives, calls as of_operators, recipes
from ndd.compile.programs import PROGRAMS, USUAL, run_program
from ndd.demo.progress import Bar

_SAMPLES = 2
_MANY = 64  # samples, with which kernels on a GPU share their work differently
_BY_COUNT = re.compile(r"(reductions\.|normalize\b)")  # the calls for which that is so
_CALLS = {**of_operators.CALLS, **of_operators.FOR_WHEELS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd compile`."""
    parser.add_argument(
        "operators",
        nargs="*",
        metavar="OPERATOR",
        help="such as resize, random.beta, loop or recipes.simclr (default for the CPU: what the loop, `bench speech`, `readers`, "
        "`video` and the demo need; for a GPU: all)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="every operator, with rarer arguments and floats too, recipes and torchvision's transforms: all that a wheel has",
    )
    parser.add_argument("--no-cpu", action="store_true", help="leave the kernels for the CPU out")
    parser.add_argument(
        "--gpu",
        metavar="ARCHITECTURES",
        help="such as sm_80,sm_90, or none (default: those of the GPUs of this machine)",
    )
    parser.add_argument(
        "--archives",
        type=Path,
        metavar="DIR",
        help="write what a wheel carries: kernels for levels of CPUs, and for GPUs (default: all that are known), to DIR",
    )
    parser.add_argument("--jobs", type=int, help="kernels at the same time (default: the CPUs of this process)")


def run(args: argparse.Namespace) -> int:
    """Compiles the kernels of small programs and typical calls. Cached kernels are not compiled again."""
    _quiet()
    everything = args.all or args.archives is not None
    calls = chosen(args.operators, everything)
    architectures = _architectures(",".join(archives.ALL_GPUS) if args.gpu is None and args.archives else args.gpu)
    jobs = cpu_count() if args.jobs is None else args.jobs
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}.")
    if args.archives is not None:
        return _write_archives(args.archives, calls, [] if args.no_cpu else list(LEVELS), architectures, jobs)
    if not args.no_cpu:
        from ndd._compiled.kernel_cache import writable_folder

        _compile_for_cpu(calls, jobs)
        _say_kept(writable_folder())
    if architectures:
        from ndd._cuda.compile import cache_folder

        of_gpu = calls if args.operators or everything else [*of_operators.CALLS, *recipes.OF_BOTH]
        _compile_for_gpu(of_gpu, architectures, jobs)
        _say_kept(cache_folder())
    return 0


def _write_archives(folder: Path, calls: list[str], levels: list[str], architectures: list[str], jobs: int) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for level in levels:
        with tempfile.TemporaryDirectory(prefix="ndd-kernels-") as cache:
            first = level == levels[0]
            begin = functools.partial(archives.begin, folder.absolute(), level, cache)
            _compile_for_cpu(calls, jobs, begin, _call if first else _call_and_compile)
            if architectures:
                with _processes(1, begin) as pool:
                    pool.submit(_compile_beside_gpu, calls).result()
            archives.write_for_cpu(folder, level, Path(cache, "kernels"))
    if architectures:
        from ndd._cuda.compile import compiler, packaged_name

        for architecture, codes in _compile_for_gpu(calls, architectures, jobs).items():
            named = {packaged_name(text): code for text, code in codes.items()}
            archives.write_for_gpu(folder, architecture, named, compiler())
    return 0


def _say_kept(folder: Path | None) -> None:
    print("not kept: no folder can be written to" if folder is None else f"kept in {folder}", flush=True)


def chosen(operators: list[str], everything_else: bool = False) -> list[str]:
    """The calls that are of these operators, and the programs of these names; without names the usual ones. ValueError for a name
    that has none. `everything_else`: those that only wheels need, too."""
    if not operators and not everything_else:
        return [*FEW, *USUAL]
    everything = [*of_operators.CALLS, *PROGRAMS, *(of_operators.FOR_WHEELS if everything_else else ())]
    unknown = [name for name in operators if not any(_operator(call) == name for call in everything)]
    if unknown:
        raise ValueError(
            f"no operator with kernels is named {unknown[0]}; `python -m ndd coverage` lists all operators."
        )
    return [call for call in everything if not operators or _operator(call) in operators]


def _operator(call: str) -> str:
    return call.split(" ")[0]


def _architectures(named: str | None) -> list[str]:
    if named is None:
        import torch

        capabilities = {torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())}
        return [f"sm_{major}{minor}" for major, minor in sorted(capabilities)]
    if named == "none":
        return []
    names = [name.strip() for name in named.split(",")]
    for name in names:
        if not re.fullmatch(r"sm_\d+[af]?|compute_\d+", name):
            raise ValueError(f"--gpu: expected architectures such as sm_80,sm_90, or none, got {name!r}.")
    return names


# ---- CPU: each call is made, in processes, since one compiles one kernel at a time


def _compile_for_cpu(
    calls: list[str], jobs: int, begin: Callable[[], None] | None = None, call: Callable[[str], str] | None = None
) -> None:
    bar, failed = Bar("CPU", len(calls), each=True), {}
    with _processes(min(jobs, len(calls)), begin) as pool:
        waiting = {pool.submit(call or _call, name): name for name in calls}
        for done in as_completed(waiting):
            problem = done.result()
            if problem:
                failed[waiting[done]] = problem
            bar(waiting[done])
    bar.done()
    _say_failed("CPU", failed)


def _say_failed(device: str, failed: dict[str, str]) -> None:
    for name, problem in failed.items():
        print(f"  {name}: not for the {device}: {problem}")


class _Pool(ProcessPoolExecutor):
    def submit(self, *args: Any, **more: Any) -> Any:
        """The same. It starts the processes."""
        with interrupting_no_children():
            return super().submit(*args, **more)


@contextlib.contextmanager
def _processes(count: int, begin: Callable[[], None] | None = None) -> Iterator[ProcessPoolExecutor]:
    """Processes that do `begin` first. Ctrl-C ends them."""
    context = multiprocessing.get_context("spawn")
    try:
        with _Pool(count, mp_context=context, initializer=_without_gpu, initargs=(begin,)) as pool:
            try:
                yield pool
            except BaseException:
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a process that compiles was killed (by the system for its memory?): start again with --jobs 1, "
            "or with the names of some operators; what was compiled is kept"
        ) from error


def _without_gpu(begin: Callable[[], None] | None) -> None:
    """These processes need no GPU: a pretended one has its memory on the host, and a real one's driver would
    only cost memory on it."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # not "", which Windows treats as an unset variable
    if begin is not None:
        begin()
    from ndd._compiled.compile_worker import emit_sooner

    emit_sooner()
    _quiet()


def _quiet() -> None:
    """Does not log that kernels are compiled, and waits for them."""
    from ndd._compiled.background import background

    background.forbid()
    logging.getLogger("ndd").setLevel(logging.ERROR)


def _call(name: str) -> str:
    """Makes one call of the table, or runs a small program; returns "", or the reason why it cannot be made here. OSError if
    kernels cannot be kept: then it is no use to go on."""
    problem = _problem(name)
    if why := why_not_kept():
        raise OSError(f"compiled kernels {why}")
    return problem


def _problem(name: str) -> str:
    import ndd
    from ndd.bench.libraries import finish

    try:
        _prepare()
        if name in PROGRAMS:
            run_program(name)
        else:
            finish(_CALLS[name](ndd, _inputs("cpu")))
    except Exception as error:
        return _first_line(error)
    return ""


@functools.cache
def _prepare() -> None:
    from ndd._compiled.thread_team import address_of_shared

    address_of_shared()  # every batch on threads needs it, but two samples or a single core may not
    gc.freeze()  # numba's tables, which the collector would look through after each kernel


def _call_and_compile(name: str) -> str:
    """The same with code for another processor, from an archive; what it calls is compiled for that of this process."""
    problem = _call(name)
    archives.compile_called()
    return problem


@functools.cache
def _inputs(device: str, count: int = _SAMPLES) -> Any:
    import ndd
    from ndd.bench.operator_inputs import arrays, inputs

    return inputs(ndd, arrays(None, count), device, ndd.types)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# ---- GPU: the texts of the kernels, from a process that pretends to have a GPU; the compiler then runs in threads


def _compile_for_gpu(calls: list[str], architectures: list[str], jobs: int) -> dict[str, dict[str, bytes]]:
    """The code of each text, for each architecture."""
    from ndd._cuda.compile import binary

    with _processes(1) as pool:
        texts, failed = pool.submit(_texts, calls).result()
    bar = Bar("GPU", len(texts) * len(architectures), each=True)
    codes: dict[str, dict[str, bytes]] = {architecture: {} for architecture in architectures}
    with ThreadPoolExecutor(jobs) as threads:
        waiting = {
            threads.submit(binary, text, name, a): (text, a) for text, name in texts.items() for a in architectures
        }
        for done in as_completed(waiting):
            text, architecture = waiting[done]
            codes[architecture][text] = done.result()
            bar(texts[text])
    bar.done()
    _say_failed("GPU", failed)
    return codes


def _compile_beside_gpu(calls: list[str]) -> None:
    """The kernels for the CPU of calls for a GPU: they read headers and write the records of launches."""
    _texts(calls)
    archives.compile_called()


def _texts(calls: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The sources that these calls would pass to the GPU's compiler, with a kernel of each; and why a call has none."""
    import ndd
    from ndd._operator import all_operators
    from ndd.bench.libraries import finish
    from ndd.compile.pretended_gpu import TextsOnly, pretend

    operators = all_operators()
    gpu, failed = TextsOnly(), {}
    pretend(gpu)
    for name in [call for call in calls if call in of_operators.CALLS or call in of_operators.RARER]:
        operator = operators.get(_operator(name))
        if operator is not None and not operator.cuda_source:  # libraries do the work: kernels for the CPU call them
            with contextlib.suppress(Exception):
                finish(_CALLS[name](ndd, _inputs("gpu")))
            continue
        try:
            finish(_CALLS[name](ndd, _inputs("gpu")))
            if _BY_COUNT.match(name):
                finish(_CALLS[name](ndd, _inputs("gpu", _MANY)))
        except Exception as error:  # not for the GPU, or it needs a real one
            failed[name] = _first_line(error)
            continue
        for path, other in operators.items() if name in of_operators.CALLS else ():
            if operator is not None and operator.cuda_source in other.fuses:
                # Both in one kernel, if the second takes the results of the first, which is not so for videos.
                with contextlib.suppress(Exception), ndd.EvalMode.deferred:
                    finish(getattr(ndd, path)(_CALLS[name](ndd, _inputs("gpu"))))
    for name in [call for call in calls if call in recipes.OF_BOTH]:
        try:
            run_program(name, device="gpu")
        except Exception as error:
            failed[name] = _first_line(error)
    return gpu.texts, failed
