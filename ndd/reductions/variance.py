"""`ndd.reductions.variance`."""

from __future__ import annotations

from ndd._operator import operator
from ndd.reductions import over_axes


@operator(reads={"mean": "anywhere"})
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

    Every sample is reduced by itself. Each result is `sum((x - mean)**2) / (n - ddof)` over its
    elements. Any layout and rank, integers and float32; the result is float32. Over no axes at all (`axes=[]`) it is 0.

    Args:
        mean: float32; one number, or one for every element of the result. It may lie on the CPU beside data on a GPU: one
            number for each sample then goes along with the launch.
        axes: the axes to reduce; negative ones count from the end. Default: all.
        axis_names: the same by letters of the layout, instead of `axes`.
        keep_dims: leave the reduced axes with extent 1, and the layout as it is.
        ddof: what to take from the number of elements before dividing (1 for the unbiased estimate, the
            default of torch; NumPy's is 0, as here).

    Errors: IndexError for an axis that does not exist, ValueError for one given twice, RuntimeError for a letter that
    is not in the layout, for bool, float16 and float64 inputs, and for a `mean` of another type or size.

    >>> import ndd
    >>> ndd.reductions.variance(ndd.tensor([1.0, 3.0]), ndd.tensor(2.0)).torch()
    tensor(1.)
    """
    over_axes.check_mean_type(mean)
    return over_axes.outcome("variance", data, axes, axis_names, keep_dims, None)


@variance.old_plan
def _(data, mean, *, axes, axis_names, ddof, keep_dims):
    plan = over_axes.plan("variance", data, axes, axis_names, keep_dims, ddof=ddof)
    over_axes.check_mean_shapes(mean, plan.shapes)
    return plan


@variance.cpu
def _(data, mean, out, name, chosen, ddof):
    over_axes.reduce_sample(name, data, out, chosen, over_axes.stretched(mean, data, chosen), ddof)


@variance.cpu_batch
def _(data, mean, out, name, chosen, ddof):
    over_axes.reduce_batch(name, data, out, chosen, mean, ddof)


@variance.cuda("reduce.cu")
def _(launch, data, mean, out, *, name, chosen, ddof):
    over_axes.launch(launch, name, data, chosen, mean, ddof)
