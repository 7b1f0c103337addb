"""Automatic augmentation: RandAugment, TrivialAugment and AutoAugment, on the CPU and on a GPU.

    from ndd.auto_aug import rand_augment

    for jpegs, labels in reader.next_epoch(batch_size=64):
        images = ndd.decoders.image(jpegs, device="gpu")
        images = rand_augment.rand_augment(images, n=2, m=17)

Modules, functions and arguments are those of `nvidia.dali.auto_aug`, and code for it runs with the import changed, in
pipeline mode. In a loop the functions take batches; `rng=` takes a generator. `enable_conditionals` is not needed.

`augmentations` has the augmentations, `augmentation` turns a function into one, `Policy` is a policy of AutoAugment, and
`select` calls a function for each sample by an index. `ndd.auto_aug.core` is DALI's name for the module of these four.
"""

import sys

from ndd.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from ndd.auto_aug.declare import Augmentation, Augmentation as _Augmentation, augmentation
from ndd.auto_aug.policy import Policy
from ndd.auto_aug.selection import select
from ndd.auto_aug.signed_bin import signed_bin

# `from nvidia.dali.auto_aug.core import augmentation` with the import changed.
core = sys.modules[f"{__name__}.core"] = sys.modules[__name__]

__all__ = [
    "Augmentation",
    "Policy",
    "_Augmentation",
    "augmentation",
    "augmentations",
    "auto_augment",
    "core",
    "rand_augment",
    "select",
    "signed_bin",
    "trivial_augment",
]
