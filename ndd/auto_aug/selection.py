"""The augmentation of each sample: samples with the same one form a batch.

`select` divides a batch by the index drawn for each sample, calls every drawn augmentation once, with the batch of its samples,
and joins the results in the order of the samples. Dividing and joining are views: no pixel is copied. The augmentations of
`augmentations.py` are kinds of one operator and need not be divided: a step of a policy is one call of it (`kinds.py`), a few
launches on a GPU. Users' augmentations form a group each.

The indices are drawn on the caller's thread (`decide`), so the groups are known at the call, which does not wait. An error
names the source of a sample; a number beside it is the sample's place among those of its group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ndd
from ndd._operator.structural import join_batches
from ndd.auto_aug.augmentations import translate_x, translate_y
from ndd.auto_aug.declare import Augmentation, MissingArgument
from ndd.auto_aug.kinds import together
from ndd.auto_aug.nodes import at_run, batch_of, in_pipeline, is_image, is_node, numbers_of, part, value_of
from ndd.auto_aug.signed_bin import SignedMagnitudeBin


def select(ops: Sequence[Callable[..., Any]], selected_op_idx: Any, *op_args: Any, **op_kwargs: Any) -> Any:
    """`ops[selected_op_idx](*op_args, **op_kwargs)` for each sample, each of the `ops` called once.

    Args:
        ops: augmentations, or other functions of batches.
        selected_op_idx: a batch of indices into `ops` (in pipeline mode a DataNode). The call waits for their values.
        op_args, op_kwargs: batches and signed bins are divided among the `ops`; other values are passed to all.

    The result has the samples in their order. Raises IndexError for an index that `ops` does not have, ValueError if the
    results of two `ops` differ in type, rank or layout.

    >>> import ndd
    >>> ops = [lambda x: x + 10, lambda x: x * 2]
    >>> ndd.auto_aug.select(ops, ndd.batch([1, 0, 1]), ndd.batch([1, 2, 3])).torch()
    tensor([ 2, 12,  6], dtype=torch.int32)
    """

    def chosen(index: Any, *args: Any, **named: Any) -> Any:
        return _divided(ops, numbers_of(value_of(index)).reshape(-1), args, named)

    return at_run(chosen)(selected_op_idx, *op_args, **op_kwargs)


def _divided(ops: Sequence[Callable[..., Any]], index: np.ndarray, args: Any, named: dict[str, Any]) -> Any:
    for wrong in index[(index < 0) | (index >= len(ops))][:1].tolist():
        raise IndexError(f"select: index {wrong} of {len(ops)} augmentations")
    numbers = np.unique(index).tolist()
    if len(numbers) == 1:
        return ops[numbers[0]](*args, **named)
    if not numbers:  # an empty batch: any of them describes the result
        return ops[0](*args, **named)
    groups, order = [], []
    for k in numbers:
        places = np.flatnonzero(index == k).tolist()
        groups.append(ops[k](*[part(v, places) for v in args], **{n: part(v, places) for n, v in named.items()}))
        order += places
    batches = [value_of(f) for f in groups]
    joined = join_batches(batches, np.argsort(order).tolist())
    node = next(filter(is_node, groups), None)
    return joined if node is None else type(node)(joined)


def divided(
    augmentations: Sequence[Augmentation], index: np.ndarray, data: Any, named: dict[str, Any], suite: str
) -> Any:
    """`select` with known indices. `suite`: the function whose `use_shape` a translation without `shape` needs."""
    suite_of_all = together(tuple(augmentations), named["num_magnitude_bins"], "shape" in named)
    alike = (suite_of_all.kinds[index] >= 0) & is_image(data)
    if index.size and alike.all():
        return suite_of_all.apply(data, index, named["magnitude_bin"], named)

    def all_alike(data: Any, index: Any, **named: Any) -> Any:
        return suite_of_all.apply(data, numbers_of(index), named["magnitude_bin"], named)

    ops = [*[functools.partial(_alone, x) for x in augmentations], all_alike]
    try:
        return _divided(ops, np.where(alike, len(augmentations), index), (data, batch_of(index)), named)
    except MissingArgument as error:
        if error.names == ["shape"] and error.augmentation.op in (translate_x.op, translate_y.op):
            raise ValueError(
                f"The augmentation `{error.augmentation.name}` needs the shape of the images: pass `shape=` (of encoded images "
                f"`peek_image_shape` tells it), or take `translate_x_no_shape` and `translate_y_no_shape`, which move "
                f"by pixels, as `{suite}(use_shape=False)` does"
            ) from None
        raise


def _alone(augmentation: Augmentation, data: Any, index: Any, **named: Any) -> Any:
    return augmentation(data, **named)


def checked_images(name: str, data: Any) -> Any:
    """The data as a batch of bytes HWC or FHWC, by rank if it has no layout; RuntimeError for other data. A node of a pipeline
    is returned unchanged."""
    if is_node(data):
        return data
    images = data if isinstance(data, ndd.Batch | ndd.Tensor) else ndd.batch(data)
    if not is_image(images):
        raise RuntimeError(
            f"{name}: expected uint8 images HWC or videos FHWC, got {images.dtype} of {images.ndim} axes with layout "
            f"{images.layout or 'none'}"
        )
    return images if images.layout else ndd.reshape(images, layout="FHWC"[4 - images.ndim :])


def without(excluded: Sequence[str] | None, augmentations: list[Augmentation], call: str) -> list[Augmentation]:
    """The augmentations except those with excluded names."""
    names = [x.name for x in augmentations]
    for name in excluded or ():
        if name not in names:
            raise ValueError(f"{call}: excluded: expected some of {', '.join(names)}, got `{name}`")
    return [x for x in augmentations if x.name not in (excluded or ())]


def taken_by(augmentations: Sequence[Augmentation], shape: Any, fill_value: Any, interp_type: Any) -> dict[str, Any]:
    """The arguments that some augmentation takes: it is not an error if the remaining augmentations take fewer."""
    named = {"fill_value": fill_value, "interp_type": interp_type} | ({} if shape is None else {"shape": shape})
    return {k: v for k, v in named.items() if any(x._takes_argument(k) for x in augmentations)}


def decide(name: str, data: Any, seed: int | None, rng: Any, steps: Callable[..., Any], named: dict[str, Any]) -> Any:
    """Calls `steps(data, draw, **named)`, where `draw(k)` returns k uniform numbers in [0, 1) for each sample: float64 `[N,
    k]`.

    `data` is a batch or, in a pipeline, a node with the batch of this run; one sample comes as a batch of one.
    """
    pipeline = in_pipeline()
    generator: Callable[[], Any] = lambda: rng  # noqa: E731
    if pipeline is not None and rng is None:
        generator = pipeline._generator(f"auto_aug.{name}", seed)
    elif seed is not None:
        if rng is not None:
            raise ValueError(f"{name}: `seed` and `rng` exclude each other")
        rng = ndd.random.RNG(seed)
    if isinstance(data, ndd.Tensor):
        return decide(name, ndd.batch([data]), None, generator(), steps, named).select(0)
    if not (isinstance(data, ndd.Batch) or is_node(data)):
        data = ndd.batch(data)

    def run(data: Any, **named: Any) -> Any:
        n = value_of(data).batch_size

        def draw(k: int) -> np.ndarray:
            with ndd.EvalMode.sync_cpu:  # immediately, because the queue of the context may be long
                drawn = ndd.random.uniform(range=(0, 1), shape=[k], batch_size=n, rng=generator())
            return drawn.numpy().reshape(n, k).astype(np.float64)

        return steps(data, draw, **named)

    return at_run(run)(data, **named)


def signed(bins: Any, negative: np.ndarray) -> SignedMagnitudeBin:
    """A `signed_bin` of drawn numbers: the bin, an integer or `[N]`, and whether the magnitude is negated, `[N]`."""
    return SignedMagnitudeBin(bins, negative.astype(np.int32))


def picked(draws: np.ndarray, count: int) -> np.ndarray:
    """One of `count`, each equally likely, for each uniform number in [0, 1): int32."""
    return (draws * count).astype(np.int32)


__all__ = ["checked_images", "decide", "divided", "picked", "select", "signed", "taken_by", "without"]
