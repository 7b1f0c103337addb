"""Writes small shards with MosaicML Streaming or LitData, and their values as JSON: `write.py mds|litdata FOLDER [CODEC]`.

The files beside this one were written so with mosaicml-streaming 0.13.0 and litdata 0.2.76.
"""

import importlib.util
import json
import os
import sys
import types

import numpy as np


def mds(folder, codec):
    spec = importlib.util.find_spec("streaming")
    for name, part in (("streaming", ""), ("streaming.base", "base")):  # without what it imports of torchvision
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(spec.submodule_search_locations[0], part)]
        sys.modules[name] = module
    from streaming.base.format.mds.writer import MDSWriter

    columns = {
        "image": "bytes",
        "label": "int",
        "caption": "str",
        "meta": "json",
        "vector": "ndarray:float32:3",
        "array": "ndarray",
    }
    with MDSWriter(out=folder, columns=columns, compression=codec or None, size_limit=900) as writer:
        for i in range(5):
            writer.write({
                "image": b"x" * i, "label": i, "caption": f"é{i}", "meta": {"k": [i]},
                "vector": np.full(3, i, np.float32), "array": np.full((2, i + 1), i, np.int32),
            })  # fmt: skip
    return ["image", "label", "caption", "meta", "vector", "array"], [
        [[120] * i, [i], f"é{i}", {"k": [i]}, [i] * 3, [[i] * (i + 1)] * 2] for i in range(5)
    ]


def litdata(folder, codec):
    import torch
    from litdata.streaming.writer import BinaryWriter

    os.makedirs(folder)
    more = {"compression": codec, "compression_level": "chunk"} if codec else {}
    writer = BinaryWriter(folder, chunk_size=2, **more)
    for i in range(5):
        writer[i] = {
            "image": b"x" * i, "label": i, "caption": f"é{i}", "box": {"list": [i, i + 1], "flag": i > 2},
            "tensor": torch.full((2, i + 1), i, dtype=torch.int16), "array": np.full(i, i, np.int32), "f": i / 2,
        }  # fmt: skip
    writer.done()
    writer.merge()
    return ["image", "label", "caption", "box.list", "box.flag", "tensor", "array", "f"], [
        [[120] * i, [i], f"é{i}", [i, i + 1], [i > 2], [[i] * (i + 1)] * 2, [i] * i, [i / 2]] for i in range(5)
    ]


if __name__ == "__main__":
    kind, folder, codec = (*sys.argv[1:], "")[:3]
    columns, samples = (mds if kind == "mds" else litdata)(os.path.join(folder, kind), codec)
    with open(os.path.join(folder, f"{kind}.json"), "w") as out:
        json.dump({"columns": columns, "samples": samples}, out)
