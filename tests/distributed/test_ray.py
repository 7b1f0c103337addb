"""The recipe of `notebooks/scale.ipynb`, and workers of Ray Train, on a local Ray cluster, where ray is installed."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from distributed.test_elastic import ENVIRONMENT, in_turn

import ndd

ROOT = Path(ndd.__file__).parents[1]


@contextlib.contextmanager
def cluster(cpus):
    """A cluster of this machine; ray."""
    ray = pytest.importorskip("ray")
    path = f"{ROOT}:{ROOT / 'tests'}"
    environment = {"env_vars": {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}}
    ray.init(num_cpus=cpus, include_dashboard=False, runtime_env=environment)
    try:
        yield ray
    finally:
        ray.shutdown()


def recipe():
    """The class of the notebook."""
    cells = json.loads((Path(__file__).parents[2] / "notebooks" / "scale.ipynb").read_text())["cells"]
    text = "".join(next(c for c in cells if "ray.data" in "".join(c["source"]))["source"])
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    result = {}
    exec(code[: code.index("paths = ")].replace("import ndd, ray", "import ndd"), result)
    return result["Thumbnails"]


@pytest.fixture(scope="module")
def files():
    return sorted(str(p) for p in (Path(ndd.__file__).parent / "demo" / "photos").rglob("*.jp*g"))


def test_the_recipe_alone(files):
    block = recipe()(24)({"path": np.array(files[:5])})
    assert block["image"].shape == (5, 24, 24, 3)


@pytest.mark.slow
def test_on_a_local_cluster(files):
    """Starts and ends a cluster of this machine, half a minute; nothing of it stays."""
    pytest.importorskip("ray.data")
    psutil = pytest.importorskip("psutil")
    with cluster(2) as ray:
        paths = ray.data.from_items([{"path": path} for path in files])
        done = paths.map_batches(recipe(), fn_constructor_args=(24,), batch_size=4, concurrency=1).take_all()
    mine = psutil.Process()
    left = psutil.wait_procs([p for p in mine.children(recursive=True) if "ray" in " ".join(p.cmdline())], timeout=10)[
        1
    ]
    assert not left
    assert sorted(row["path"] for row in done) == files
    expected = {path: ndd.resize(ndd.imread(path), size=[24, 24]).numpy() for path in files}
    assert all((row["image"] == expected[row["path"]]).all() for row in done)


def seen_by(folder):
    """What each of four ranks saw, step by step, and their places after three steps."""
    said = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]
    return [rank["steps"] for rank in said], [rank["state"] for rank in said]


def flat(steps):
    return [label for step in steps for label in step]


@pytest.mark.slow
@pytest.mark.timeout(900)  # four processes that import torch and start a cluster
@pytest.mark.skipif(sys.platform == "win32", reason="torchrun needs POSIX")
def test_workers_of_ray_train(tmp_path):
    """`shard="auto"`: the union is the epoch, all take as many steps, and the order of the whole is that of torchrun's
    processes, which two ranks go on with."""
    trainers = pytest.importorskip("ray.train.torch")
    train = pytest.importorskip("ray.train")
    names = [str(tmp_path / f"{i:02d}.txt") for i in range(61)]
    for name in names:
        Path(name).write_text(name)
    (tmp_path / "files").write_text("\n".join(names))
    for name in ("ray", "torchrun"):
        (tmp_path / name).mkdir()

    def loop(config):
        from distributed.ray_loop import run

        run(**config)

    with cluster(4):
        trainers.TorchTrainer(
            loop,
            train_loop_config={"folder": str(tmp_path / "ray"), "files": names},
            torch_config=trainers.TorchConfig(backend="gloo"),
            scaling_config=train.ScalingConfig(num_workers=4, resources_per_worker={"CPU": 0.5}),
            run_config=train.RunConfig(storage_path=str(tmp_path / "storage")),
        ).fit()
    script = str(Path(__file__).parent / "ray_loop.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4", script]
    subprocess.run([*command, str(tmp_path / "torchrun"), str(tmp_path / "files")], env=ENVIRONMENT, check=True)
    (ranks, states), (others, _) = (seen_by(tmp_path / name) for name in ("ray", "torchrun"))
    assert ranks == others
    assert [len(steps) for steps in ranks] == [8] * 4
    assert sorted(label for steps in ranks for label in flat(steps)) == list(range(61))
    order = in_turn([flat(steps) for steps in ranks])
    item = ndd.readers.File(files=names, shard="auto", shuffle="global", seed=5)
    assert order == [label.torch().item() for _, label in item.next_epoch()]
    rests = []
    for rank in range(2):
        reader = ndd.readers.File(files=names, shard="auto", shuffle="global", seed=5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RANK", str(rank))
            patch.setenv("WORLD_SIZE", "2")
            reader.load_state_dict(states)
            rests.append([label.torch().item() for _, label in reader.next_epoch(last_batch="partial")])
    assert in_turn(rests) == order[24:]
