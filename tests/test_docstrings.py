"""What the docstring of every operator tells: shapes, types, errors, other libraries, a formula, an example."""

from __future__ import annotations

import inspect
import re

import pytest
from calling import load_every_room

OPERATORS = load_every_room()

WORDS = {
    "shapes": r"\b[Ll]ayouts?\b|\b[FD]?HWC\b|\b[Ss]hapes?\b|\b[Ee]xtents?\b|`\[[^\]]*\]`|\b[Aa]x[ei]s\b|1-D",
    "types": r"\b[Tt]ypes?\b|\bdtype\b|\b[uif](8|16|32|64)\b|\bu?int(8|16|32|64)\b|\bfloat(16|32|64)\b",
    "errors": r"\bRaises\b|\b[Rr]efuses?\b|\b[Ee]rrors?\b|\b(Runtime|Value|Type|Index)Error\b",
}
OTHERS = r"\b(PIL|Pillow|OpenCV|cv2|torchvision|torch|NumPy|numpy|scikit-image|skimage|SciPy|scipy|GridMask|imgaug)\b"
# Operators on images, of which one wants to know how they differ from what one used before.
IMAGES = ("ndd.ops.image.", "ndd.ops.color.", "ndd.ops.filter.", "ndd.decoders.", "ndd.experimental.", "ndd.noise.")

# Formulas stand in backticks, with spaces around their signs: `out[y, x] = in[y, W - 1 - x]`; or are `max(x)`.
FORMULA = re.compile(r"\s(=|!=|\+|-|\*|/|<|<=|>|>=|->|>>|\*\*|&|\||\^|and|==|//|%)\s|\(x\)")
# Operators that read, decode and describe: there is nothing to compute that a formula could tell.
WITHOUT_FORMULA = {
    *("decoders.image", "decoders.image_random_crop", "decoders.image_slice", "get_property", "io.file.read"),
    *("experimental.decoders.image", "experimental.decoders.image_random_crop", "experimental.decoders.image_slice"),
    *("peek_image_shape", "experimental.peek_image_shape", "per_frame"),
}  # fmt: skip


def prose(path):
    """The docstring without its examples."""
    lines, example = [], False
    for line in (inspect.getdoc(OPERATORS[path].function) or "").splitlines():
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("path", OPERATORS)
def test_it_tells_what_one_needs(path):
    text = prose(path)
    missing = [what for what, words in WORDS.items() if not re.search(words, text)]
    assert not missing, f"{path} says nothing about {missing}"


@pytest.mark.parametrize("path", [p for p, op in OPERATORS.items() if f"{op.module}.".startswith(IMAGES)])
def test_it_compares_itself_with_other_libraries(path):
    assert re.search(OTHERS, prose(path))


@pytest.mark.parametrize("path", OPERATORS)
def test_it_has_a_formula(path):
    spans = re.findall(r"`([^`]*)`", prose(path))
    assert any(FORMULA.search(span) for span in spans) != (path in WITHOUT_FORMULA)


@pytest.mark.parametrize("path", OPERATORS)
def test_the_example_shows_numbers_or_a_shape(path):
    examples = re.findall(
        r">>> .*\n(?:\.\.\. .*\n)*([^>\n].*)", (inspect.getdoc(OPERATORS[path].function) or "") + "\n"
    )
    assert any(re.search(r"\d|True|False|'\w+'", shown) for shown in examples), f"{path} shows no result"
