"""The notebooks run from top to bottom, and what they show is small."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.timeout(400)  # on a cold cache it compiles the kernels of all image operators
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(path.parent.parent))
    notebook = nbformat.read(path, as_version=4)
    stored = [shown(cell) for cell in notebook.cells]
    client = nbclient.NotebookClient(notebook, timeout=360, kernel_name="python3")
    client.execute(cwd=str(path.parent))
    assert [shown(cell) for cell in notebook.cells] == stored


def shown(cell):
    """The kinds of a cell's outputs. Lines printed some time apart come as several outputs, or as one: that is chance."""
    # Without stderr: where caches are empty, a line there says that kernels are compiled.
    kinds = [(o["output_type"], o.get("name")) for o in cell.get("outputs", []) if o.get("name") != "stderr"]
    return [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before or kind[0] != "stream"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_outputs_are_there_and_small(path):
    import json

    assert path.stat().st_size < 1_000_000
    code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert sum(bool(c["outputs"]) for c in code) > len(code) // 2
    kinds = {kind for c in code for o in c["outputs"] for kind in o.get("data", {})}
    assert "text/html" in kinds
    assert not [o for c in code for o in c["outputs"] if o["output_type"] == "error"]
