"""`ndd.progress`: a bar for a loop. The only importer of tqdm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar

from ndd._tensor.handle import Handle
from ndd.profiling.loop_profile import Profile

Item = TypeVar("Item")


def progress(epoch: Iterable[Item], *, desc: str | None = None, **options: Any) -> Iterator[Item]:
    """Loops over an epoch with a progress bar: images (samples) per second, and the share of the time that the loop waited for
    data.

    Args:
        epoch: the iterable of the loop: an epoch of a reader, a DataLoader, or any other. With `len()` the bar knows its end.
        desc: the text before the bar.
        **options: options of `tqdm.auto.tqdm`, such as `leave=False` or `mininterval=1`. The bar counts batches.

    Works in terminals and notebooks. A bar costs the loop about 20 us for each call and each wait, as `ndd.profile` does.

    Raises ImportError without tqdm, TypeError for what cannot be looped over.

    >>> import io, ndd
    >>> epoch = ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=8)
    >>> shown = io.StringIO()
    >>> for jpegs, labels in ndd.progress(epoch, desc="demo", file=shown):
    ...     images = ndd.decoders.image(jpegs).evaluate()
    >>> "images/s" in shown.getvalue()
    True
    """
    if not (hasattr(type(epoch), "__iter__") or hasattr(type(epoch), "__getitem__")):
        raise TypeError(
            f"ndd.progress: epoch: expected an epoch of a reader, a DataLoader or another iterable, got {type(epoch).__name__}"
        )
    bar_of = _tqdm()
    if options.get("total") is None:
        try:
            options["total"] = len(epoch)  # type: ignore[arg-type]
        except TypeError:
            options["total"] = None
    return _shown(epoch, bar_of, {"desc": desc, "unit": "batch", **options})


def _shown(epoch: Iterable[Item], bar_of: Any, options: dict[str, Any]) -> Iterator[Item]:
    profile, samples, unseen = Profile(keeps_spans=False), 0, 0.0
    with profile, bar_of(**options) as bar:
        items = iter(epoch)
        while True:
            begun, seen = perf_counter(), profile.waited
            try:
                item = next(items)
            except StopIteration:
                return
            # A DataLoader and a generator are waited for as a reader is, but no profile sees it.
            unseen += max(0.0, perf_counter() - begun - (profile.waited - seen))
            yield item
            samples += samples_of(item)
            rate = (samples or profile.images) / profile.seconds
            images = f"{rate:,.0f} images/s, " if rate else ""  # numbers and texts are no images
            waiting = min((profile.waited + unseen) / profile.seconds, 1.0)
            bar.set_postfix_str(f"{images}{100 * waiting:.0f} % waiting", refresh=False)
            bar.update()


def samples_of(item: Any) -> int:
    """The number of samples of an item of a loop: that of the first Batch in it, else the length of the first array.

    Args:
        item: a batch, an array, or a tuple, list or dict of these.

    >>> import ndd
    >>> from ndd.profiling import samples_of
    >>> samples_of((ndd.batch([1, 2, 3]), "names"))
    3
    """
    values = item.values() if isinstance(item, dict) else item if isinstance(item, tuple | list) else (item,)
    for value in values:
        if isinstance(value, Handle):
            return getattr(value, "batch_size", 1)
        shape = getattr(value, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
    return 0


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(f"ndd.progress: tqdm is missing ({error}): pip install tqdm") from None
    return tqdm
