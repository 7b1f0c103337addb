"""`ndd.reductions.variance`."""

from __future__ import annotations

from ndd.reductions.over_axes import reduction


@reduction
def variance(
    data,
    mean,
    /,
    *,
    axes: list[int] | None = None,
    axis_names: str | None = None,
    ddof: int = 0,
    keep_dims: bool = False,
):
    """Averages the squared distances from a given mean along axes.

    Each sample is reduced separately. Each result is `sum((x - mean)**2) / (n - ddof)` over its
    elements. Any layout and rank, integers and float32; the result is float32. Over no axes at all (`axes=[]`) it is 0.

    Args:
        mean: float32; one number, or one for every element of the result. It may lie on the CPU beside data on a GPU.
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        ddof: the number to subtract from the number of elements before dividing (1 for the unbiased estimate, the
            default of torch; NumPy's is 0, as here).
        data: integers or float32, of any rank and layout.

    Errors: IndexError for an axis that does not exist, ValueError for a repeated one, RuntimeError for a letter that
    is not in the layout, for bool, float16 and float64 inputs, and for a `mean` of another type or size.

    >>> import ndd
    >>> ndd.reductions.variance(ndd.tensor([1.0, 3.0]), ndd.tensor(2.0)).torch()
    tensor(1.)
    """
