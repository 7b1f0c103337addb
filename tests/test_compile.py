"""`python -m ndd compile`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import typing
from pathlib import Path

import pytest
import warm_interpreter

import ndd
from ndd.__main__ import main
from ndd._compiled.cpu_levels import LEVELS, environment
from ndd._compiled.kernel_cache import libraries
from ndd._execution.kernel_archives import KernelArchive
from ndd.bench.loop_pictures import PICTURES
from ndd.bench.operator_table import WITHOUT_A_LINE
from ndd.compile import calls, command, recipes, transforms
from ndd.compile.calls import CALLS
from ndd.compile.programs import PROGRAMS


def test_the_caches_are_filled(tmp_path, monkeypatch, capsys):
    """For the CPU by calls; for a GPU from the texts of kernels, without one."""
    pytest.importorskip("cupy")
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path))
    from ndd._compiled import kernel_cache

    kept = kernel_cache._folders, kernel_cache.writable_folder
    for function in kept:
        function.cache_clear()
    try:
        assert main(["compile", "flip", "--gpu", "sm_75,sm_90", "--jobs", "1"]) == 0
        said = capsys.readouterr().out
        assert f"kept in {tmp_path / 'kernels'}" in said
        assert f"kept in {tmp_path / 'gpu-kernels'}" in said
        lines = [line for line in said.splitlines() if line.startswith("GPU")]
        assert [re.sub(r"\d+\.\d s", "0.1 s", line) for line in lines] == [
            "GPU: 1 of 2, 0.1 s: flip", "GPU: 2 of 2, 0.1 s: flip"
        ]  # fmt: skip
        assert any(path.name.startswith("ndd.ops.image.flip.") for path in (tmp_path / "kernels").iterdir())
        assert len(list((tmp_path / "gpu-kernels").glob("*.bin"))) == 2
    finally:
        for function in kept:
            function.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(not LEVELS, reason="no level of processors has wheels here")
def test_archives_of_a_wheel(tmp_path, capsys):
    """An archive for each level of processors, with what the calls need, and one for each kind of GPU."""
    pytest.importorskip("cupy")
    assert main(["compile", "flip", "--gpu", "sm_90,compute_90", "--jobs", "1", "--archives", str(tmp_path)]) == 0
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted([*LEVELS, "sm_90", "compute_90"])
    kernels = []
    for level in LEVELS:
        archive = KernelArchive((tmp_path / f"{level}.zip").read_bytes())
        assert archive.header["libraries"] == libraries()
        assert archive.header["target"]["features"] == environment(level)["NUMBA_CPU_FEATURES"]
        kernels.append({name.rsplit(".", 3)[0] for name in archive._names if name.endswith(".kernel")})
    assert any(name.startswith("ndd.ops.image.flip.") for name in kernels[0])
    assert "ndd._compiled.thread_team._serve" in kernels[0]  # what threads of every batch run
    assert not any(name.startswith("inner.") for name in kernels[0])
    assert all(of_level == kernels[0] for of_level in kernels)
    assert any(name.startswith("ndd._cpu.ragged.") for name in kernels[0])  # writes the records of launches
    texts = [KernelArchive((tmp_path / f"{target}.zip").read_bytes())._names for target in ("sm_90", "compute_90")]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2  # with the header
    said = capsys.readouterr().out
    for target in [*LEVELS, "sm_90", "compute_90"]:
        assert re.search(rf"^{target}: \d+ kernels, 0\.\d\d MB$", said, re.MULTILINE)


def test_the_operators_that_have_kernels():
    assert command.chosen(["random.normal"]) == ["random.normal [1000]", "random.normal of many"]
    assert command.chosen(["random.beta"]) == ["random.beta"]
    assert command.chosen(["filter"]) == ["filter", "filter to bytes"]
    assert "filter of floats" in command.chosen(["filter"], everything_else=True)
    assert "resize 224 cubic" in command.chosen(["resize", "flip"])
    assert command.chosen(["loop", "readers.COCO"]) == ["loop", "readers.COCO"]
    assert {command._operator(call) for call in command.chosen([])} > {"resize", "loop", "readers.COCO"}
    assert {command._operator(call) for call in command.chosen([], everything_else=True)} > {
        "random.beta",
        "recipes.simclr",
    }


def test_a_form_of_calls_has_numbers_of_each_sample(monkeypatch):
    """As random operators give them: kernels take them as another type."""
    monkeypatch.setattr(ndd, "brightness_contrast", lambda images, **named: named)
    assert "brightness_contrast of numbers of each sample" in command.chosen([], everything_else=True)
    named = calls._WithNumbersOfSamples(ndd, list, 2).brightness_contrast(
        None, brightness=1.5, contrast_center=[0.5], dtype=ndd.float32, device="cpu"
    )
    assert named == {"brightness": [1.5, 1.5], "contrast_center": [[0.5], [0.5]], "dtype": ndd.float32, "device": "cpu"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["resise"], "no operator with kernels is named resise"),
        (["flip", "--gpu", "hopper"], "--gpu: expected architectures such as sm_80,sm_90, or none, got 'hopper'"),
        (["flip", "--jobs", "0"], "--jobs must be at least 1"),
    ],
)
def test_mistakes_are_sentences(arguments, sentence, capsys):
    assert main(["compile", *arguments]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a limit for files")
def test_a_full_disk_is_an_error(tmp_path):
    """It said `kept in` for kernels that were not."""
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (99, resource.RLIM_INFINITY))\n"
        "from ndd.compile.command import _call\n"
        "try: _call('cast f32')\n"
        "finally: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
    )
    env = {**os.environ, "NDD_CACHE_DIR": str(tmp_path), "NDD_COMPILE_IN_BACKGROUND": "0"}
    done = warm_interpreter.run(code, env=env, has_ndd=True)
    assert f"OSError: compiled kernels could not be written to {tmp_path / 'kernels'}" in done.stderr.splitlines()[-1]


_BENCH = ["bench", "--no-dali", "--rounds", "1"]
EVERYTHING = [
    [*_BENCH, "loop", "--images", "64"],
    [*_BENCH, "speech", "--images", "16"],
    [*_BENCH, "readers", "--records", "300"],
    [*_BENCH, "video"],
    *[[*_BENCH, "loop", "--images", "64", "--only", "random_resized_crop", "--pictures", name] for name in PICTURES],
    ["demo", "--epochs", "1", "--device", "cpu"],
]
OTHER_RECIPES = """
from ndd.compile import recipes
recipes._FEW, recipes._MANY, recipes._CLIP = 17, 96, (16, 90, 120, 3)  # not what was compiled with
for seed in range(1, 5):
    for run in recipes.OF_BOTH.values():
        run(None, seed=seed)
"""


@pytest.mark.parametrize(
    ("compiled", "programs"),
    [
        (["readers.MXNet"], [[*_BENCH, "readers", "--records", "300", "--only", "MXNet"]]),
        (["random.normal"], [[*_BENCH, "ops", "--device", "cpu", "--only", "random.normal"]]),  # of 64 samples
        pytest.param([], EVERYTHING, marks=[pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_programs_compile_nothing_after_it(tmp_path, compiled, programs):
    """What the loop, `bench speech`, `readers` and `video`, and the demo need is kept."""
    env = {**os.environ, "NDD_CACHE_DIR": str(tmp_path), "NDD_COMPILE_IN_BACKGROUND": "0"}

    def kernels_after(*arguments):
        subprocess.run([sys.executable, *arguments], env=env, check=True, capture_output=True, text=True)
        return {path.name for path in (tmp_path / "kernels").iterdir()}

    kept = kernels_after("-m", "ndd", "compile", *compiled, "--gpu", "none")
    for program in programs:
        assert sorted(kernels_after("-m", "ndd", *program) - kept) == [], program
    if not compiled:
        kept = kernels_after("-m", "ndd", "compile", "--all", "--gpu", "none")
        assert sorted(kernels_after("-c", OTHER_RECIPES) - kept) == []
        assert sorted(kernels_after(str(Path(__file__).with_name("usual_calls.py"))) - kept) == []


PYTHON_READS = """
import pathlib, sys
from ndd._compiled.jit import called_kernels
from ndd.compile import recipes
recipes.run_rarer_pictures(pathlib.Path(sys.argv[1]))
for kernel in called_kernels:
    print(kernel.function.__name__, *sorted(str(kinds[0].dtype) for kinds in kernel.compiled().overloads))
"""


def test_pictures_that_python_reads(tmp_path):
    """The kernels of TIFFs and BMPs that the compiled code for batches leaves to Python."""
    done = warm_interpreter.run(PYTHON_READS, str(tmp_path), has_ndd=True)
    assert done.returncode == 0, done.stderr
    called = done.stdout.splitlines()
    assert {"_take uint8", "_mix uint8", "unpack uint8", "add_left uint16 uint8"} <= set(called)
    assert called.count("unpack uint8") == 2  # of LZW and of PackBits


def test_every_operator_is_called():
    """Those of `bench ops`, which has a line for every operator or says why not (`test_bench.py`), and of these the others."""
    elsewhere = {"decoders.video": "video", "io.file.read": "loop"}
    without_kernels = {"dump_image"}
    called = {command._operator(call) for call in CALLS}
    assert set(WITHOUT_A_LINE) - called - without_kernels == set(elsewhere)
    assert set(elsewhere.values()) <= set(PROGRAMS)


def test_every_transform_is_called():
    """Those without arguments there need none."""
    import torchvision_classes  # skips where torchvision is not installed

    from ndd.torchvision import v2

    for name in torchvision_classes.names():
        for arguments in transforms.ARGUMENTS.get(name, [()] if name not in transforms.APART else []):
            getattr(v2, name)(*arguments)


def test_all_recipes_are_compiled():
    """And each with all its values of a setting that is a text of several or a truth value."""
    assert set(recipes.RECIPES) == {name for name in ndd.recipes.__all__ if name not in ("Recipe", "recipe")}
    for name, runs in recipes.RECIPES.items():
        for setting, kind in typing.get_type_hints(getattr(ndd.recipes, name).__wrapped__).items():
            texts = {
                text
                for part in (kind, *typing.get_args(kind))
                for text in typing.get_args(part)
                if isinstance(text, str)
            }
            values = {True, False} if kind is bool else texts
            default = getattr(ndd.recipes, name)().settings.get(setting)
            assert values <= {run.get(setting, default) for run in runs}, (name, setting)


_AS_ON_A_GPU_MACHINE = """
import json, torch
from ndd._cuda import driver
from ndd.compile.command import _texts

def touched(*_):
    raise AssertionError("a real GPU was asked")

# torch says that a GPU is there. Without one (and its driver here) whatever would use it fails.
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
for name in ("_lazy_init", "current_stream", "current_device", "set_device", "synchronize", "Stream", "Event"):
    setattr(torch.cuda, name, touched)
driver._functions = touched
texts, failed = _texts(["flip", "resize 224", "equalize", "cast f32"])
print(json.dumps([sorted(texts.values()), failed]))
"""


def test_kernel_texts_are_collected_without_the_gpu_of_the_machine():
    """On a machine with a GPU the launches' records went to real memory of it, by a copy between host addresses: SIGSEGV."""
    told = warm_interpreter.run(_AS_ON_A_GPU_MACHINE, has_ndd=True)
    assert told.returncode == 0, told.stderr
    names, failed = json.loads(told.stdout)
    assert failed == {}
    assert len(names) >= 4


_OF_LARGER_BATCHES = """
import ndd
from ndd.bench.libraries import finish
from ndd.compile import command

for name in ("reductions.sum", "reductions.max", "normalize"):
    texts, _ = command._texts([name])  # the compiler that takes texts goes on after it
    before = len(texts)
    for count in (2, 50, 100):
        finish(command._CALLS[name](ndd, command._inputs("gpu", count)))
    print(name, before, len(texts))
"""


def test_kernel_texts_are_those_of_larger_batches_too():
    """Reductions divide few samples among more threads than many."""
    told = warm_interpreter.run(_OF_LARGER_BATCHES, has_ndd=True)
    assert told.returncode == 0, told.stderr
    for line in told.stdout.splitlines():
        _, before, after = line.split()
        assert int(before) == int(after) > 0, line
    assert told.stdout.count("\n") == 3


def test_processes_that_compile_see_no_gpu_and_the_end_of_one_is_a_sentence(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    seen = []

    def work():
        with command._processes(1) as pool:
            seen.append(pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result())
            pool.submit(os._exit, 3).result()

    with pytest.raises(RuntimeError, match=r"was killed .*--jobs 1"):
        work()
    assert seen == ["-1"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no masks of signals")
def test_control_c_ends_processes_that_compile_at_once_and_silently(monkeypatch):
    """A terminal sends it to them, too, and each printed a traceback; then the kernels that they had begun were waited for."""
    monkeypatch.setattr(command, "_without_gpu", None)
    begun = time.monotonic()
    masked = []

    def work():
        with command._processes(1) as pool:
            masked.append(pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result())
            pool.submit(time.sleep, 300)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert masked == [{signal.SIGINT}]
    assert time.monotonic() - begun < 100
