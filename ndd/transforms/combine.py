"""`ndd.transforms.combine`: combines several maps into one."""

from __future__ import annotations

import numpy as np

from ndd._operator import Plan, bad_sample, operator
from ndd._operator.partition import each_run
from ndd.transforms.matrices import check_matrices, check_shapes, compose, matrix_spec


@operator
def combine(input_0, input_1, /, *inputs, reverse_order: bool = False):
    """Returns the matrix of several affine maps applied one after the other.

    Args:
        input_0, input_1, inputs: float32 matrices d x (d + 1), or one for each frame ("F**").
        reverse_order: apply the last one first.

    The result is a float32 matrix with layout "**" ("F**" if an input has frames): for `combine(A, B)` it is the map `x ->
    B(A(x))`.

    The product of matrices with a last row (0, ..., 0, 1) added, in float32 and in DALI's order: bit for bit the same.

    Raises RuntimeError for inputs of unequal shapes or of other types.

    >>> import ndd
    >>> shift = ndd.transforms.translation(offset=(1, 0))
    >>> ndd.transforms.combine(shift, ndd.transforms.scale(scale=(2, 2))).torch()
    tensor([[2., 0., 2.],
            [0., 2., 0.]])
    """
    every = (input_0, input_1, *inputs)
    for spec in every:
        check_matrices("combine", spec)
    return matrix_spec("combine", next((i for i in every if (i.layout or "")[:1] == "F"), input_0))


@combine.plan
def _(*inputs, reverse_order):
    framed = [i for i in inputs if (i.layout or "")[:1] == "F"]
    first = (framed or inputs)[0]
    for k, operand in enumerate(inputs):
        check_shapes(operand)
        if (operand.shapes[0, -2:] != first.shapes[0, -2:]).any():
            raise RuntimeError(
                f"All input transforms are expected to have the same shape. Got: {tuple(first.shapes[0, -2:].tolist())} "
                f"and {tuple(operand.shapes[0, -2:].tolist())} for input {k}"
            )
    for operand in framed:
        wrong = operand.shapes[:, 0] != first.shapes[:, 0]
        if wrong.any():
            i = int(wrong.argmax())
            raise bad_sample(
                i, f"the inputs have different numbers of frames: {first.shapes[i, 0]} and {operand.shapes[i, 0]}"
            )
    return Plan(first.shapes, shared={"reverse_order": reverse_order})


# A batch: the maps of all samples are composed in one compiled call for two of the inputs.
@combine.batch
def _(call, plan, *stores):
    each_run(call, [*stores], lambda _, *maps: _composed(*maps, reverse_order=plan.shared["reverse_order"]))


def _composed(*inputs: np.ndarray, reverse_order: bool) -> None:
    """Composes maps [N, d, d + 1], or [N, F, d, d + 1]: the first two, then the result and the third, and so on, as in DALI."""
    *maps, out = [a if a.ndim == 4 else a[:, None] for a in inputs]
    done = maps[0]
    for k, operand in enumerate(maps[1:], 2):
        result = out if k == len(maps) else np.empty_like(out)
        compose(*((done, operand) if reverse_order else (operand, done)), result)
        done = result
