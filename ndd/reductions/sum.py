"""`ndd.reductions.sum`."""

from __future__ import annotations

from ndd._tensor import DType
from ndd.reductions.over_axes import reduction


@reduction
def sum(
    input,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    dtype: DType | None = None,
    keep_dims: bool = False,
):
    """Sums the elements along axes.

    Each sample is reduced separately. Each result is `sum(x)` over its elements.
    Any layout and rank, integers and float32.
    u8 to u64 give uint64, as in NumPy (torch: int64), i8 to i64 int64, float32 gives float32. With `dtype=` an integer sum
    may keep the input's type, in which case it wraps (200 + 200 = 144 in uint8), or become float32.

    Args:
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        dtype: the element type of the result.
        input: integers or float32, of any rank and layout.

    Errors: IndexError for an axis that does not exist, ValueError for a repeated one, RuntimeError for a letter that
    is not in the layout, for bool, float16 and float64 inputs, and for an unsupported `dtype`.

    >>> import ndd
    >>> ndd.reductions.sum(ndd.tensor([[1.0, 2.0], [3.0, 4.0]]), axes=0).torch()
    tensor([4., 6.])
    """
