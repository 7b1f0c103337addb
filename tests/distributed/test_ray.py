"""The recipe of `notebooks/scale.ipynb` on a local Ray cluster, where ray is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import ndd


def recipe():
    """The class of the notebook."""
    cells = json.loads((Path(__file__).parents[2] / "notebooks" / "scale.ipynb").read_text())["cells"]
    text = "".join(next(c for c in cells if "ray.data" in "".join(c["source"]))["source"])
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    found = {}
    exec(code[: code.index("paths = ")].replace("import ndd, ray", "import ndd"), found)
    return found["Thumbnails"]


@pytest.fixture(scope="module")
def files():
    return sorted(str(p) for p in (Path(ndd.__file__).parent / "demo" / "photos").rglob("*.jp*g"))


def test_the_recipe_alone(files):
    block = recipe()(24)({"path": np.array(files[:5])})
    assert block["image"].shape == (5, 24, 24, 3)


@pytest.mark.slow
def test_on_a_local_cluster(files):
    """Starts and ends a cluster of this machine, half a minute; nothing of it stays."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    psutil = pytest.importorskip("psutil")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(ndd.__file__).parents[1])}},
    )
    try:
        paths = ray.data.from_items([{"path": path} for path in files])
        done = paths.map_batches(recipe(), fn_constructor_args=(24,), batch_size=4, concurrency=1).take_all()
    finally:
        ray.shutdown()
    mine = psutil.Process()
    left = psutil.wait_procs([p for p in mine.children(recursive=True) if "ray" in " ".join(p.cmdline())], timeout=10)[
        1
    ]
    assert not left
    assert sorted(row["path"] for row in done) == files
    expected = {path: ndd.resize(ndd.imread(path), size=[24, 24]).numpy() for path in files}
    assert all((row["image"] == expected[row["path"]]).all() for row in done)
