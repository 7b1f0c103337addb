"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem, DoctestModule

sys.path.insert(0, str(Path(__file__).parent))
# Programs that tests start: nothing is to be collected from them, and importing them takes seconds.
collect_ignore = [f"distributed/{name}.py" for name in ("elastic_loop", "kept_by_ranks", "gpus_loop")]

# The same examples in every run of CI: what is new is found by runs elsewhere. Nor do they follow the constants in ndd's text, for
# which hypothesis parses all files, in each worker: five seconds in a new clone.
if os.environ.get("CI") == "true":
    import hypothesis

    providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants
    hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
    hypothesis.settings.load_profile("ci")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Kernels are tested, and not what stands in for them while a thread compiles them."""
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        if hasattr(os, "fork"):
            import warm_interpreter
            import warm_workers

            workers, option = warm_interpreter.share(), session.config.option
            if workers and sys.platform == "linux" and option.tx == ["popen"] * len(option.tx):
                option.tx = [f"popen//python={warm_workers.command(workers)}"] * len(option.tx)
        return  # this process hands tests to others, and needs no ndd
    from ndd._compiled.background import background

    background.forbid()


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The GPU path on a machine without one; see `emulated_gpu.py`. On a machine with a GPU it is the real one.

    `launches` lists the kernels started so far, `texts` their source, `real` says which of the two it is.
    """
    import emulated_gpu as emulation
    import torch

    if not torch.cuda.is_available() and shutil.which("g++") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("the emulated GPU needs g++")
    gpu = emulation.install(monkeypatch)
    yield gpu
    import ndd

    ndd.EvalContext.current().evaluate_all()


@pytest.fixture
def two_gpus(emulated_gpu: Any) -> Any:
    """As `emulated_gpu`, with "gpu:1" as well."""
    from ndd._tensor.device import gpu_count

    if gpu_count() < 2:
        pytest.skip("needs two GPUs")
    return emulated_gpu


@pytest.fixture
def cuda() -> Any:
    """torch.cuda, on a machine with a GPU."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.cuda


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="runs what takes long too, and every combination of parameters")


def pytest_configure(config: pytest.Config) -> None:
    import selection

    selection.everything = config.option.all
    if interval := os.environ.get("NDD_TEST_SWITCH_INTERVAL"):  # threads that take turns at almost every step
        sys.setswitchinterval(float(interval))


def _chooses(config: pytest.Config) -> bool:
    """Whether some tests run, and not all, nor those that are named."""
    return not config.option.all and not any("::" in argument for argument in config.args)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, object, object]:
    """Only the combinations of parameters that run become tests: to make all took a third of the time of collecting."""
    import selection

    result = yield
    calls = metafunc._calls
    if calls and _chooses(metafunc.config):
        chosen = selection.combinations(selection.planned(metafunc))
        name = metafunc.definition.nodeid
        metafunc._calls = [call for call in calls if f"{name}[{call.id}]" in chosen] or calls[:1]
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs a GPU can be chosen by its mark, and is skipped where there is none; what is long waits for `--all`."""
    import selection

    for item in items:
        if selection.is_long(item.nodeid):
            item.add_marker(pytest.mark.long)
        if "cuda" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
        if isinstance(item, DoctestItem) and any(
            "import_torchvision" in example.source for example in item.dtest.examples
        ):
            # The folder of its tests is a namespace of its name.
            missing = getattr(importlib.util.find_spec("torchvision"), "origin", None) is None
            item.add_marker(pytest.mark.skipif(missing, reason="torchvision is not installed"))
    if _chooses(config):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)  # else one worker ends with them alone
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        import torch

        if not torch.cuda.is_available():
            for item in marked:
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no examples to run: looking for some in each file takes a third of the time of collecting."""
    return [file for file in (yield) if not isinstance(file, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there afterwards stays. To look through it for garbage took a fifth of the time of collecting, and an eighth of the
    time of all tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """DALI takes each argument for a variable, but with `--all` and where a test has the mark `read_by_dali`.

    Else it parses the file of each caller, in Python and for a second, to see which arguments are constants there. That took a
    sixth of the time of all tests. It does without where a caller has no text.
    """
    analysis = sys.modules.get("nvidia.dali.experimental.dynamic._source_analysis")
    if analysis is not None and not item.config.option.all:
        _real.setdefault("_classify_site", analysis._classify_site)
        reads = item.get_closest_marker("read_by_dali") is not None
        analysis._classify_site = _real["_classify_site"] if reads else lambda *_: None


_real: dict[str, Any] = {}  # functions of DALI


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """What a file of tests leaves behind, such as imports and compiled kernels, stays as well. Each search for garbage would
    else take half a second, and many tests ask for some."""
    try:
        return (yield)
    finally:
        if nextitem is not None and nextitem.path != item.path:
            gc.collect()
            gc.freeze()


@pytest.fixture(scope="session")
def dali() -> Any:
    """DALI's dynamic mode, the oracle."""
    return pytest.importorskip("nvidia.dali.experimental.dynamic")


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.levelname, record.getMessage()))


@pytest.fixture
def logged() -> Iterator[list[tuple[str, str]]]:
    """Levels and texts of what is logged. `caplog` does not work here: its plugin puts handlers on torch's fifty loggers, six
    times a test, which took two thirds of what pytest itself takes for one."""
    log, root, ndd = _Log(), logging.getLogger(), logging.getLogger("ndd")
    level = ndd.level
    ndd.setLevel(logging.WARNING)  # `python -m ndd compile`, of another test in this process, says less
    root.addHandler(log)
    yield log.said
    root.removeHandler(log)
    ndd.setLevel(level)


@pytest.fixture(scope="session")
def stats() -> Any:
    """Tests of distributions. Its import takes seconds, which collecting shall not."""
    from scipy import stats

    return stats


@pytest.fixture
def tasks(monkeypatch):
    """How many threads each loop over samples was worth, and how many tasks the pool got each time. All threads take part,
    whatever the work."""
    from ndd._compiled.thread_team import ThreadTeam
    from ndd._execution.threads import ThreadPool

    counts: list[int] = []
    run, ensure = ThreadPool.run, ThreadTeam.ensure
    monkeypatch.setattr(ThreadPool, "run", lambda pool, f, count: counts.append(count) or run(pool, f, count))
    monkeypatch.setattr(ThreadTeam, "ensure", lambda team, wanted: counts.append(wanted + 1) or ensure(team, wanted))
    monkeypatch.setattr("ndd._operator.partition._WAKE_SECONDS", 1e-15)
    return counts
