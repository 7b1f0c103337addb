"""The rank of this process and the number of processes, where torchrun or another launcher has started several."""

from __future__ import annotations

import os

import torch.distributed as distributed


def rank_of_world() -> tuple[int, int]:
    """(rank, world size) of torch.distributed if it is initialised, else what torchrun put into the environment,
    else (0, 1)."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return 0, 1
