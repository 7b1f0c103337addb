"""`ndd.reductions.mean_square`."""

from __future__ import annotations

from ndd._tensor import DType
from ndd.reductions.over_axes import reduction


@reduction
def mean_square(
    input,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
):
    """Averages the squares of the elements along axes.

    Each sample is reduced separately. Each result is `sum(x**2) / n` over its elements.
    Any layout and rank, integers and float32.
    The result is float32; with `dtype=` uint64 (of an unsigned input) or int64, truncated.
    Squares of uint16 are exact (in DALI 2.4.0 those of numbers above 46340 overflow).

    Args:
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        dtype: the element type of the result.
        input: integers or float32, of any rank and layout.

    Errors: IndexError for an axis that does not exist, ValueError for a repeated one, RuntimeError for a letter that
    is not in the layout, for bool, float16 and float64 inputs, and for an unsupported `dtype`.

    >>> import ndd
    >>> ndd.reductions.mean_square(ndd.tensor([3.0, 4.0])).torch()
    tensor(12.5000)
    """
