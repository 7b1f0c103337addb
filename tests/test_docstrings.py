"""What the docstring of every operator tells: shapes or layouts, element types, errors, other libraries, an example."""

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

# What is still to be written.
UNSAID = {
    "shapes": {"batch_permutation"},
    "types": {"per_frame"},
    "errors": {
        *("batch_permutation", "cast", "cast_like", "copy", "experimental.resize", "full_like", "jitter", "ones"),
        *("ones_like", "permute_batch", "random.beta", "random.choice", "random.coin_flip", "random.normal", "zeros"),
        *("random.uniform", "random_crop_generator", "random_resized_crop", "resize", "resize_crop_mirror"),
        *("roi_random_crop", "tensor_resize", "zeros_like"),
    },
    "others": {
        *("experimental.resize", "jitter", "paste", "random_crop_generator", "resize_crop_mirror", "roi_random_crop"),
        *("sphere", "water"),
    },
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
    missing = [what for what, words in WORDS.items() if path not in UNSAID[what] and not re.search(words, text)]
    assert not missing, f"{path} says nothing about {missing}"


@pytest.mark.parametrize("path", [p for p, op in OPERATORS.items() if f"{op.module}.".startswith(IMAGES)])
def test_it_compares_itself_with_other_libraries(path):
    assert path in UNSAID["others"] or re.search(OTHERS, prose(path))


@pytest.mark.parametrize("path", OPERATORS)
def test_the_example_shows_numbers_or_a_shape(path):
    examples = re.findall(
        r">>> .*\n(?:\.\.\. .*\n)*([^>\n].*)", (inspect.getdoc(OPERATORS[path].function) or "") + "\n"
    )
    assert any(re.search(r"\d|True|False|'\w+'", shown) for shown in examples), f"{path} shows no result"


def test_the_list_of_what_is_unsaid_holds_operators():
    assert set().union(*UNSAID.values()) <= set(OPERATORS)
