"""`Policy`: the sequences of augmentations that AutoAugment chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor.user_line import warn_user
from ndd.auto_aug.declare import Augmentation


class Policy:
    """Sequences of augmentations with their probabilities and magnitudes, as in AutoAugment (arXiv:1805.09501).

    Args:
        name: the name in messages.
        num_magnitude_bins: the number of magnitude bins of the augmentations.
        sub_policies: sequences of (augmentation, probability of applying it, magnitude bin). One sequence is chosen for
            each sample. The bin of an augmentation without magnitudes is None.

    Different augmentations of the same name get a number in front of their names. Raises TypeError and ValueError for invalid
    arguments; warns of a probability of 0, and of a bin without effect.

    >>> import ndd
    >>> from ndd.auto_aug import augmentations as a
    >>> policy = ndd.auto_aug.Policy("mine", 11, [[(a.rotate, 0.5, 3), (a.invert, 1.0, None)], [(a.shear_x, 0.2, 9)]])
    >>> sorted(policy.augmentations)
    ['invert', 'rotate', 'shear_x']
    """

    def __init__(
        self,
        name: str,
        num_magnitude_bins: int,
        sub_policies: Sequence[Sequence[tuple[Augmentation, float, int | None]]],
    ):
        self.name = name
        self.num_magnitude_bins = positive_bins(f"policy `{name}`", num_magnitude_bins)
        if not isinstance(sub_policies, list | tuple):
            raise TypeError(
                f"policy `{name}`: `sub_policies` is to be a list or a tuple, got {type(sub_policies).__name__}"
            )
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, list | tuple):
                raise TypeError(f"policy `{name}`: a sub-policy is to be a list or a tuple, got {sub_policy!r}")
            for step in sub_policy:
                self._check(step)
        self.sub_policies = _with_names_of_their_own(sub_policies)

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations by name, sorted."""
        by_name = {step[0].name: step[0] for sub_policy in self.sub_policies for step in sub_policy}
        return dict(sorted(by_name.items()))

    def __repr__(self) -> str:
        listed = [[(a.name, p, bin) for a, p, bin in sub_policy] for sub_policy in self.sub_policies]
        sequences = "".join(f"\n\t{s}," for s in listed)
        augmentations = "".join(f"\n\t{n!r}: {a!r}," for n, a in self.augmentations.items())
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies=[{sequences}], "
            f"augmentations={{{augmentations}}})"
        )

    def _check(self, step: Any) -> None:
        if not isinstance(step, list | tuple) or len(step) != 3:
            raise TypeError(
                f"policy `{self.name}`: a step of a sub-policy is (augmentation, probability, magnitude bin), got {step!r}"
            )
        augmentation, probability, bin = step
        if not isinstance(augmentation, Augmentation):
            raise TypeError(
                f"policy `{self.name}`: expected an augmentation, got {augmentation!r}: decorate it with `@augmentation`"
            )
        which = f"policy `{self.name}`: augmentation `{augmentation.name}`"
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise ValueError(f"{which}: expected a probability from 0 to 1, got {probability!r}")
        if probability == 0:
            warn_user(f"{which} stands in a sub-policy with probability 0")
        if bin is None:
            if augmentation.mag_range is not None:
                raise ValueError(f"{which} has a `mag_range`: it needs a magnitude bin, got None")
            return
        if augmentation.mag_range is None:
            warn_user(f"{which} has no `mag_range`: the magnitude bin {bin!r} says nothing, write None")
        if not isinstance(bin, int) or not 0 <= bin < self.num_magnitude_bins:
            raise ValueError(f"{which}: expected a magnitude bin from 0 to {self.num_magnitude_bins - 1}, got {bin!r}")


def positive_bins(which: str, bins: Any) -> int:
    """A number of magnitude bins, checked."""
    if not isinstance(bins, int) or bins < 1:
        raise ValueError(f"{which}: `num_magnitude_bins` is to be a positive integer, got {bins!r}")
    return bins


def _with_names_of_their_own(sub_policies: Any) -> tuple[tuple[Any, ...], ...]:
    every = list(dict.fromkeys(step[0] for sub_policy in sub_policies for step in sub_policy))
    own = {a: a for a in every}
    if len({a.name for a in every}) < len(every):
        digits = len(str(len(every) - 1))
        own = {a: a.augmentation(name=f"{i:0{digits}}__{a.name}") for i, a in enumerate(every)}
    return tuple([tuple([(own[a], p, bin) for a, p, bin in sub_policy]) for sub_policy in sub_policies])
