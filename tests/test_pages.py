"""The pages of the site: their code runs, their links and names exist, their sentences are short."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ndd

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
PAGES = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.md"))}
WRITTEN = {name: text for name, text in PAGES.items() if name != "operators.md"}  # the list is made from docstrings
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
CODE = re.compile(r"((?:<!-- [^>]* -->\n)*)```(python|bash)\n(.*?)```", re.DOTALL)
WITH_CODE = [name for name, text in WRITTEN.items() if "```python\n" in text]


def blocks(text):
    """(comments before it, language, code) of each block; a comment "needs: x" holds for all that follow."""
    needs: list[str] = []
    for part in re.split(r"(?m)(?=^<!-- needs: )", text):
        needs += re.findall(r"^<!-- needs: ([\w, ]+) -->", part)
        for result in CODE.finditer(part):
            yield ", ".join(needs), *result.groups()


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_CODE)
def test_code_runs_and_prints_what_it_says(name, tmp_path, monkeypatch):
    """Blocks share their names, in an empty folder. `print(x)  # text` says what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    scope = {"__name__": "__main__"}
    ran = 0
    mode = ndd.random.get_default_rng().get_state()
    try:
        for needs, comments, language, code in blocks(WRITTEN[name]):
            if "<!-- not run" in comments:
                continue
            for module in filter(None, needs.split(", ")):
                importable(module)
            file = re.search(r"<!-- file: ([\w./-]+) -->", comments)
            if file:
                Path(file[1]).write_text(code)
            elif language == "python":
                run(code, scope, name)
                ran += 1
            elif "<!-- run -->" in comments:
                command = re.sub("(?m)^torchrun", "python -m torch.distributed.run", code)
                command = re.sub("(?m)^python", sys.executable, command)
                done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr[-3000:]
                compare(re.findall(r"(?m)^# prints: (.*)$", code), done.stdout, name)
                ran += 1
    finally:
        ndd.random.get_default_rng().set_state(mode)
        forget_accelerate()
    assert ran or "<!-- not run" in WRITTEN[name]


def test_the_triton_kernel_of_the_page_runs(tmp_path, monkeypatch, emulated_gpu):
    """On a GPU, else by Triton's interpreter. Triton reads kernels from a file."""
    pytest.importorskip("triton")
    if not emulated_gpu.real:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    name = "cookbook/own_operator.md"
    codes = [code for _, _, _, code in blocks(WRITTEN[name])]
    (kernel,) = [code for code in codes if "triton.jit" in code]
    file = tmp_path / "page.py"
    file.write_text(codes[0] + kernel)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "page"})
    compare(re.findall(r"(?m)^print\(.*\)  # (.*)$", kernel), said.getvalue(), name)


@pytest.mark.gpu
def test_the_captured_step_of_the_page_runs(cuda):
    name = "cookbook/cuda_graphs.md"
    (code,) = [code for _, _, _, code in blocks(WRITTEN[name])]
    run(code, {"__name__": "page"}, name)


def forget_accelerate():
    """It keeps one state for the process, and ranks that a later test forks would be of a world of one."""
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(reset_partial_state=True)
        state.GradientState._reset_state()


def importable(module):
    """Skips the test if a package is not there, or comes with a torchvision that was built for another torch."""
    try:
        pytest.importorskip(module)
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        pytest.skip(str(error))


def run(code, scope, name):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, name, "exec"), scope)
    compare(re.findall(r"(?m)^ {0,4}print\(.*\)  # (.*)$", code), said.getvalue(), name)


def compare(expected, said, name):
    """All expected lines, in this order; others may stand between them."""
    lines = iter(said.splitlines())
    for line in expected:
        assert any(line == other for other in lines), f"{name}: expected {line!r} in:\n{said}"


@pytest.mark.fast
def test_every_page_has_an_entry_and_every_entry_a_page():
    nav = (FOLDER / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    entries = re.findall(r"(?m)^\s+- (?:[^\n]*?: )?([\w/.-]+\.(?:md|ipynb))$", nav)
    assert sorted(entries) == sorted([*PAGES, *NOTEBOOKS])


@pytest.mark.fast
@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", PAGES[name], flags=re.DOTALL)):
        if target.startswith(("http", "#")):
            continue
        path, _, anchor = target.partition("#")
        inside = "reference/" in path  # made when the site is built
        assert inside or (FOLDER / name).parent.joinpath(path).exists(), target
        if inside and anchor:
            assert exists(anchor), target


def rates(text):
    """The numbers of a text that may be rates, above 100."""
    return {float(number.replace(",", "")) for number in re.findall(r"(?<![\w.,])\d[\d,]{2,}(?!\.)", text)}


@pytest.mark.fast
@pytest.mark.parametrize("path", ["README.md", "notebooks/about/speed.md"])
def test_rates_were_measured(path):
    """The rates of a row are those of a section of RESULTS, rounded."""
    sections = [rates(part) for part in (ROOT / "ndd/bench/RESULTS.md").read_text(encoding="utf-8").split("\n## ")]
    told = [
        [float(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:images|files|frames)/s", line)]
        for line in (ROOT / path).read_text(encoding="utf-8").splitlines()
    ]
    assert len(list(filter(None, told))) >= 5
    for row in filter(None, told):
        assert any(all(min(abs(n - m) for m in part) <= 0.006 * n for n in row) for part in sections if part), row


@pytest.mark.fast
@pytest.mark.parametrize("name", WRITTEN)
def test_names_of_ndd_exist(name):
    """`ndd.x.y` in the text of a page, outside of its code."""
    for path in set(re.findall(r"`(ndd\.[a-zA-Z_][\w.]*\w)[`(]", WRITTEN[name])):
        assert exists(path), path


def exists(path):
    import importlib

    result = ndd
    for i, part in enumerate(path.split(".")[1:], 2):
        if not hasattr(result, part):
            try:
                importlib.import_module(".".join(path.split(".")[:i]))
            except ImportError:
                return False
        result = getattr(result, part)
    return True


@pytest.mark.fast
@pytest.mark.parametrize("name", [*WRITTEN, *NOTEBOOKS, "README.md", ".github/CONTRIBUTING.md"])
def test_sentences_are_short(name):
    """At most 25 words on average, and none above 45."""
    if name in NOTEBOOKS:
        cells = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    else:
        text = WRITTEN[name] if name in WRITTEN else (ROOT / name).read_text(encoding="utf-8")
    lengths = sorted((len(sentence.split()), sentence) for sentence in sentences(text))
    if lengths:
        assert sum(n for n, _ in lengths) / len(lengths) <= 25
        assert lengths[-1][0] <= 45, lengths[-1][1]


def sentences(text):
    text = re.sub(r"^---\n.*?\n---\n|```.*?```|<!--.*?-->|<[^>]+>", "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", text):
        plain = " ".join(line for line in paragraph.splitlines() if not re.match(r"\s*(\||#)", line))
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        for part in re.split(r"(?:^|\s)[*-] ", plain):
            yield from (s for s in re.split(r"(?<=[.:;?!])\s+", part) if len(s.split()) > 1)
