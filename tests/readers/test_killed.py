"""kill -9 at random points of loops over every reader and policy: resumed from the last checkpoint, the loop is the same."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time

import pytest

import ndd
from readers.datasets import DATASETS
from readers.test_every_reader import kind_of, numbers, reader_of

KILLS = int(os.environ.get("NDD_KILLS", "12"))
SEED = int(os.environ.get("NDD_KILLS_SEED", "6"))
STEPS = 14
POLICIES = [
    {},
    {"random_shuffle": True, "initial_fill": 3, "num_shards": 2},
    {"shuffle": "global", "pad_last_batch": True, "num_shards": 2, "shard_id": 1},
    {"random_shuffle": True, "seed": 5, "stick_to_shard": True, "num_shards": 3, "shard_id": 2},
    {"shuffle_after_epoch": True, "num_shards": 2},
    {"sampler": lambda epoch: [(4 * i + epoch) % 9 for i in range(7)]},
]


class Steps:
    """What a user's own object keeps: how many steps the loop has made."""

    def __init__(self):
        self.count = 0

    def get_state(self):
        return str(self.count)

    def set_state(self, state):
        self.count = int(state)


class Loop:
    """A reader, a generator and the user's own object, in one checkpoint."""

    def __init__(self, name, arguments, policy, last, folder):
        self.name, self.last, self.pattern = name, last, f"{folder}/{{seq}}.json"
        self.reader = reader_of(name, arguments, **policy)
        self.rng, self.steps, self.checkpoint = ndd.random.RNG(seed=1), Steps(), ndd.checkpoint.Checkpoint()

    def start(self, load=False):
        if load:
            self.checkpoint.load(self.pattern)
        for key, op in (("reader", self.reader), ("rng", self.rng), ("steps", self.steps)):
            self.checkpoint.register(op, key)
        return self

    def run(self, saved=None):
        """Batches and random words, to `STEPS`. `saved(count)` is told of each step, once a checkpoint has it."""
        result = []
        while self.steps.count < STEPS:
            for batch in self.reader.next_epoch(2, last_batch=self.last):
                self.steps.count += 1
                result.append((numbers(self.name, batch), self.rng()))
                if saved:
                    self.checkpoint.collect()
                    self.checkpoint.save(self.pattern)
                    saved(self.steps.count)
                if self.steps.count == STEPS:
                    break
        self.reader.close()
        return result


def dies(seconds):
    """kill -9 of this process, from a thread."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_loops_go_on(tmp_path):
    pick = random.Random(SEED)
    # Every reader with every order, each time with another ending of epochs; as many of them as there are kills.
    pairs = [
        (name, policy)
        for name, policy in itertools.product(sorted(DATASETS), POLICIES)
        if "shuffle_after_epoch" not in policy or kind_of(name)._has_epoch_shuffle
    ]
    pick.shuffle(pairs)
    cases = [(*pair, last) for last in ("fill", "partial", "drop") for pair in pairs]
    result, whole, places = {}, {}, set()
    for kill in range(KILLS):
        name, policy, last = cases[kill % len(cases)]
        if name not in result:
            (tmp_path / name).mkdir()
            result[name] = DATASETS[name].make(tmp_path / name, 9)
        folder = tmp_path / f"kill{kill}"
        options = name, result[name], policy, last, folder
        case = name, str(policy), last
        if case not in whole:
            whole[case] = Loop(*options).start().run()
        # A moment after so many steps, so that also a loop that hardly gets a core dies in another place each time.
        steps, moment = pick.randrange(STEPS), pick.random() * 0.01
        child = os.fork()
        if not child:
            try:
                loop = Loop(*options).start()
                if not steps:
                    dies(moment)
                loop.run(saved=lambda count, last=steps, moment=moment: dies(moment) if count == last else None)
                time.sleep(60)
            finally:
                os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        if not any(folder.glob("*.json")):
            continue  # killed before or in its first save: there is nothing to go on from
        resumed = Loop(*options).start(load=True)
        at = resumed.steps.count
        places.add(at)
        assert resumed.run() == whole[case][at:], (case, at)
    assert len(places) > 3, places
