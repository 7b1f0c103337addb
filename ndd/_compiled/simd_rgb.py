"""For intrinsics: vectors of red, green and blue become pixels in memory."""

from __future__ import annotations

from typing import Any

_REGISTER = 128  # bits


def store_rgb(builder: Any, colours: list[Any], out: Any) -> None:
    """Stores three vectors, one pixel in each place, behind `out`, a pointer to their numbers.

    In each 16 bytes the numbers of a colour change places once, so that each is where it belongs in one of the three results;
    these are then chosen from. 3 is no factor of how many there are, so no two of them meet.
    """
    from llvmlite import ir

    kind = colours[0].type
    lanes = _REGISTER // kind.element.width
    inverse = pow(3, -1, lanes)
    many, few = ir.VectorType(ir.IntType(1), kind.count), ir.VectorType(kind.element, lanes)

    def shuffled(value: Any, places: list[int]) -> Any:
        return builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))

    turned = [
        shuffled(value, [n - n % lanes + (n % lanes - colour) * inverse % lanes for n in range(kind.count)])
        for colour, value in enumerate(colours)
    ]
    for part in range(3):
        which = [(part * lanes + n % lanes) % 3 for n in range(kind.count)]
        words = builder.select(ir.Constant(many, [w == 0 for w in which]), turned[0], turned[1])
        words = builder.select(ir.Constant(many, [w == 2 for w in which]), turned[2], words)
        for block in range(0, kind.count, lanes):
            place = builder.gep(out, [ir.Constant(ir.IntType(64), 3 * block + part * lanes)])
            piece = shuffled(words, list(range(block, block + lanes))) if kind.count > lanes else words
            builder.store(piece, builder.bitcast(place, few.as_pointer()), align=kind.element.width // 8)
