"""What calls, batches and the import cost, counted in Python calls and modules instead of seconds: no clock, no noise.

A count that falls is good news: write the new number here. One that grows by 5 % fails.
"""

from __future__ import annotations

import json
import sys

import pytest
import torch
import warm_interpreter

pytestmark = pytest.mark.fast

# Python functions of ndd that one thread enters (`call_counts.py`). "caller": up to the return of a deferred call.
CALLS = {
    "flip": 55,
    "flip by a batch": 120,
    "decoders.image": 117,
    "resize": 127,
    "random_resized_crop": 125,
    "random.coin_flip": 74,
    "crop_mirror_normalize": 148,
    "flip, caller": 14,
    "flip by a batch, caller": 18,
    "decoders.image, caller": 18,
    "resize, caller": 16,
    "resize, caller, tuples": 16,
    "random_resized_crop, caller": 21,
    "random.coin_flip, caller": 21,
    "crop_mirror_normalize, caller": 26,
    "crop_mirror_normalize, caller, tuples": 26,
    "reader: batch": 61,
    "reader: batch, fetched here": 62,
    "pipeline: batch": 9,
    "pipeline: batch, computed here": 658,
}
# Modules that `import ndd` loads beside torch's. What torch leaves for ndd to load depends on both versions.
MODULES = {"import: modules of ndd": 514, "import: modules of others": 0}
if (sys.version_info[:2], torch.__version__[:4]) == ((3, 11), "2.13"):
    MODULES["import: modules of Python"] = 8
GROWTH = 1.05


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """The counts of now, by a process of its own: nothing that other tests did is in them."""
    done = warm_interpreter.run("import call_counts; call_counts.main()")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_that_is_counted_has_a_limit(counts):
    assert counts.keys() - {"import: modules of Python"} == (CALLS | MODULES).keys() - {"import: modules of Python"}


@pytest.mark.parametrize("name", [*CALLS, *MODULES])
def test_costs_do_not_grow(counts, name):
    known = (CALLS | MODULES)[name]
    assert counts[name] < max(known * GROWTH, known + 1), (
        f"{name}: {counts[name]} calls or modules, {known} were enough"
    )


def test_a_flip_is_short(counts):
    assert counts["flip"] <= 80


@pytest.mark.parametrize("name", ["resize", "crop_mirror_normalize"])
def test_lists_cost_what_tuples_cost(counts, name):
    """The usual way to write sizes and means takes the same path."""
    assert counts[f"{name}, caller"] == counts[f"{name}, caller, tuples"]
