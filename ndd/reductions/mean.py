"""`ndd.reductions.mean`."""

from __future__ import annotations

from ndd._tensor import DType
from ndd.reductions.over_axes import reduction


@reduction
def mean(
    input,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
):
    """Averages the elements along axes.

    Each sample is reduced separately. Each result is `sum(x) / n` over its elements.
    Any layout and rank, integers and float32.
    The result is float32. With `dtype=` an integer input may keep its type: the sum then wraps in that type and
    the mean is truncated, as in DALI.

    Args:
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        dtype: the element type of the result.
        input: integers or float32, of any rank and layout.

    Errors: IndexError for an axis that does not exist, ValueError for a repeated one, RuntimeError for a letter that
    is not in the layout, for bool, float16 and float64 inputs, and for an unsupported `dtype`.

    >>> import ndd
    >>> ndd.reductions.mean(ndd.tensor([[1.0, 2.0], [3.0, 5.0]]), axes=-1).torch()
    tensor([1.5000, 4.0000])
    """
