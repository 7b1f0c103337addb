"""For intrinsics: stores vectors of red, green and blue as pixels."""

from __future__ import annotations

from typing import Any

_REGISTER = 128  # bits


def store_rgb(builder: Any, colours: list[Any], out: Any) -> None:
    """Interleaves three vectors, one number of each per pixel, and stores them from `out` on, a pointer to numbers.

    One shuffle of each register of a colour puts every number at its place in one of the three results, which are then selected
    from the shuffled registers. A register holds a power of two of numbers, of which 3 is not a factor, so no two numbers collide.
    """
    from llvmlite import ir

    kind = colours[0].type
    per_register = _REGISTER // kind.element.width
    inverse = pow(3, -1, per_register)
    mask_type, register_type = ir.VectorType(ir.IntType(1), kind.count), ir.VectorType(kind.element, per_register)

    def shuffled(value: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))

    turned = [
        shuffled(
            value,
            [n - n % per_register + (n % per_register - colour) * inverse % per_register for n in range(kind.count)],
        )
        for colour, value in enumerate(colours)
    ]
    for part in range(3):
        which = [(part * per_register + n % per_register) % 3 for n in range(kind.count)]
        words = builder.select(ir.Constant(mask_type, [w == 0 for w in which]), turned[0], turned[1])
        words = builder.select(ir.Constant(mask_type, [w == 2 for w in which]), turned[2], words)
        for block in range(0, kind.count, per_register):
            place = builder.gep(out, [ir.Constant(ir.IntType(64), 3 * block + part * per_register)])
            register = shuffled(words, list(range(block, block + per_register))) if kind.count > per_register else words
            builder.store(register, builder.bitcast(place, register_type.as_pointer()), align=kind.element.width // 8)
