"""DALI's rules for arithmetic: the element type of a result, the operands that are refused, and the common type of samples.

Unlike NumPy's: a signed with an unsigned type gives the next wider signed type, but never a float (uint64 with int64
is int64); an integer with a float takes the float's type; `/` of integers is float32.
"""

from __future__ import annotations

from functools import cache, reduce

from ndd._tensor.dtype import (
    DType,
    bool_,
    float32,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip

_BITWISE = {"bitand": "&", "bitor": "|", "bitxor": "^", "lshift": "<<", "rshift": ">>"}
_COMPARISON = {"eq": "==", "neq": "!=", "lt": "<", "leq": "<=", "gt": ">", "geq": ">="}
_FLOATING = {"fdiv": "/", "fpow": "fpow", "atan2": "atan2"}
_NUMERIC = {
    "add": "+", "sub": "-", "mul": "*", "div": "//", "mod": "%", "pow": "pow", "min": "min", "max": "max",
    "clamp": "clamp",
}  # fmt: skip
SYMBOLS = {**_BITWISE, **_COMPARISON, **_FLOATING, **_NUMERIC, "minus": "-", "plus": "+", "bitnot": "~"}
_LONG = {"f16": "float16"}
_SIDES = ("Left", "Right", "Third")

_UNSIGNED = {8: uint8, 16: uint16, 32: uint32, 64: uint64}
_SIGNED = {8: int8, 16: int16, 32: int32, 64: int64}
_Kind = DType.Kind


@cache
def common(a: DType, b: DType) -> DType:
    """The type that two operands are converted to."""
    if a == b:
        return a
    if a.kind is _Kind.bool:
        return b
    if b.kind is _Kind.bool:
        return a
    if a.kind is _Kind.float or b.kind is _Kind.float:
        if a.kind is b.kind:
            return a if a.bits >= b.bits else b
        return a if a.kind is _Kind.float else b
    bits = max(a.bits, b.bits)
    if a.kind is b.kind:
        return (_SIGNED if a.kind is _Kind.signed else _UNSIGNED)[bits]
    signed, unsigned = (a, b) if a.kind is _Kind.signed else (b, a)
    return _SIGNED[min(64, signed.bits if signed.bits > unsigned.bits else 2 * unsigned.bits)]


@cache
def result_type(operation: str, *operands: DType) -> DType:
    """The element type of `operation` ("add", "sqrt", ...) on these operand

    RuntimeError for operands that DALI refuses: float16, bfloat16 and enum values everywhere, two booleans outside
    `* & | ^ << >>` and comparisons, floats in bitwise operations.
    """
    for i, operand in enumerate(operands):
        if _unsupported(operand):
            side = f"{_SIDES[i]} operand data type" if len(operands) > 1 else "Data type"
            raise RuntimeError(
                f"{side} not supported by `{SYMBOLS.get(operation, operation)}`: {_LONG.get(operand.name, operand.name)}. "
                f"Cast to ndd.float32 or an integer type first."
            )
    together = operands[0]
    for operand in operands[1:]:
        together = common(together, operand)
    if operation in _COMPARISON:
        return bool_
    if operation in _BITWISE or operation == "bitnot":
        if together.kind is _Kind.float:
            raise RuntimeError(
                f"Inputs to bitwise operator `{SYMBOLS[operation]}` must be of integral type, got "
                f"{' and '.join(map(str, operands))}"
            )
        return together
    if together.kind is _Kind.bool and operation not in ("mul", "plus"):
        raise RuntimeError(_about_booleans(operation, len(operands)))
    if operation in _NUMERIC or operation in ("minus", "plus", "abs"):
        return together
    return together if together.kind is _Kind.float else float32


def _unsupported(operand: DType) -> bool:
    return operand.kind is _Kind.enum or (operand.kind is _Kind.float and operand.bits == 16)


def _about_booleans(operation: str, count: int) -> str:
    symbol = SYMBOLS.get(operation, operation)
    if count == 1:
        return f"Input to arithmetic operator `{symbol}` cannot be a boolean. Use the bitwise operator `~` or a numeric type."
    return (
        f"Inputs to arithmetic operator `{symbol}` cannot be booleans. Use the bitwise operators `|`, `&`, `^`, or "
        f"a numeric type for one of the inputs; `*` of booleans is allowed."
    )


def common_layout(operation: str, *layouts: str | None) -> str | None:
    """The layout of a result: the longest one, of which every other must be a suffix."""
    longest: str | None = None
    for i, layout in enumerate(layouts):
        if not layout or layout == longest:
            continue
        if longest is None or layout.endswith(longest):
            longest = layout
        elif not longest.endswith(layout):
            raise RuntimeError(
                f"Layouts of subexpressions {i - 1} and {i} for arithmetic operation {operation} do not match. They "
                f"must be equal or one must be a suffix of the other. Got {longest} and {layout}."
            )
    return longest


def type_of_all(kinds: list[DType]) -> DType:
    """The common type of samples of these types; float16 with bfloat16 gives float32. Enum values get the type of the
    first."""
    if all([kind is kinds[0] for kind in kinds]) or any([kind.kind is _Kind.enum for kind in kinds]):
        return kinds[0]
    halves = {kind for kind in kinds if kind.kind is _Kind.float and kind.bits == 16}
    return reduce(common, kinds, float32 if len(halves) > 1 else kinds[0])


def type_of_python(kinds: list[DType]) -> DType:
    """The common type of Python numbers, given the types that each has alone: the type of one list of them."""
    return next((kind for kind in (float32, uint32, int32) if kind in kinds), kinds[0])


def type_with_python(arrays: DType, kinds: set[str]) -> DType:
    """The type of arrays with Python numbers of these kinds (NumPy's letters) among them: numbers make no type wider."""
    if "f" in kinds:
        return arrays if arrays.kind is _Kind.float else float32
    return int32 if kinds - {"b"} and arrays.kind is _Kind.bool else arrays


def largest_exact(held: DType, wanted: DType) -> int | None:
    """The largest integer up to which `wanted` represents every number of type `held`; None if it represents all of them."""
    if wanted.kind is _Kind.float and held.kind in (_Kind.signed, _Kind.unsigned):
        return 2 ** (wanted.significand_bits + 1)  # type: ignore[operator]
    return 2**63 - 1 if (held, wanted) == (uint64, int64) else None
