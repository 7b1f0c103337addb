"""`ndd.reductions.min`."""

from __future__ import annotations

from ndd.reductions.over_axes import reduction


@reduction
def min(
    input,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    keep_dims: bool = False,
):
    """Finds the smallest element along axes.

    Each sample is reduced separately. Each result is `min(x)` over its elements.
    Any layout and rank, integers and float32.
    The element type stays. NaN is ignored (NumPy and torch return it); without elements the result is
    the type's greatest finite value.

    Args:
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        input: integers or float32, of any rank and layout.

    Errors: IndexError for an axis that does not exist, ValueError for a repeated one, RuntimeError for an unknown
    letter and for bool, float16 and float64 inputs.

    >>> import ndd
    >>> ndd.reductions.min(ndd.tensor([[1.0, 2.0], [3.0, 0.0]]), axes=1).torch()
    tensor([1., 0.])
    """
