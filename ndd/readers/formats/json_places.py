"""`places`: where values stand in a JSON text; `without`: the text without them.

Why it is here: most of the text of COCO annotations are outlines, which an index does not need. Without them msgspec takes 0.9
ms for a megabyte of annotations, with them 2.0 ms (0.4 and 0.9 s for the 450 MB of instances_train2017; Python's `json` 9 s).
An outline that is needed later is read from its position.

For a text that is not JSON the results mean nothing, but nothing here reads beyond the text or loops forever, provided that the
text ends with a bracket (`}`), which stands for every missing end.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes

_SPACE, _QUOTE, _COMMA, _DIGIT_0, _DIGIT_9, _LETTER_U = b' ",09u'  # all other white space has lower numbers than " "
_BACKSLASH, _LIST, _LIST_END, _OBJECT, _OBJECT_END = b"\\[]{}"
_EACH = 0x0101010101010101  # 8 letters at once
# Brackets have the bit of letters; lower characters may be quotes.
_LETTERS, _HIGH = np.uint64(0x40 * _EACH), np.uint64(0x80 * _EACH)
_QUOTES, _ONES = np.uint64(_QUOTE * _EACH), np.uint64(_EACH)


@kernel
def _after_space(text, at):
    while at < len(text) - 1 and text[at] <= _SPACE:
        at += 1
    return min(at, len(text) - 1)


@kernel
def _after_numbers(words, at):
    """The first 8 letters from `at` on, a multiple of 8, among which there may be a bracket or a quote. A segmentation is
    hundreds of numbers: letter by letter they take four times as long."""
    k = at >> 3
    while k < len(words):
        quotes = words[k] ^ _QUOTES
        if words[k] & _LETTERS or (quotes - _ONES) & ~quotes & _HIGH:
            break
        k += 1
    return k << 3


@kernel
def _text_end(text, at):
    """The place after the text that begins at `at`."""
    at += 1
    while at < len(text) and text[at] != _QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return min(at + 1, len(text) - 1)


@kernel
def _value_end(text, words, at):
    """The place behind the value that begins at `at`. `words`: the text, 8 letters each."""
    if text[at] == _QUOTE:
        return _text_end(text, at)
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter > _DIGIT_9:  # a character that occurs neither in a number nor between two
            if letter in (_LIST, _OBJECT):
                depth += 1
            elif letter in (_LIST_END, _OBJECT_END):
                depth -= 1
                if depth <= 0:
                    return at + (depth == 0)
        elif depth == 0 and (letter == _COMMA or letter <= _SPACE):
            return at
        elif letter == _QUOTE:
            at = _text_end(text, at) - 1
        at += 1
        if depth and at & 7 == 0:
            at = _after_numbers(words, at)
    return len(text) - 1


@kernel
def _equal(text, at, end, key):
    """Whether the text of a key is `key`; letters of it may be written as \\u and four digits."""
    for wanted in key:
        if at >= end:
            return False
        letter = int(text[at])
        at += 1
        if letter == _BACKSLASH:
            letter = int(text[at])
            at += 1
            if letter == _LETTER_U and at + 4 <= end:
                letter = 0
                for k in range(at, at + 4):
                    letter = 16 * letter + (text[k] - 48 if text[k] <= _DIGIT_9 else (text[k] & 31) + 9)
                at += 4
        if letter != wanted:
            return False
    return at == end


@kernel
def _entry(text, at, key):
    """Whether the entry at `at` of an object has this key, and where its value begins."""
    end = _text_end(text, at)
    value = _after_space(text, _after_space(text, end) + 1)
    return _equal(text, at + 1, end - 1, key), value


@kernel
def _next(text, at):
    """Where the next value of a list or object begins, or its last bracket is; `at` is the place after a value."""
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == _COMMA else at


@kernel
def places(text, words, listed, key, starts, lengths):
    """Writes where in u8 `text` the value of `key` begins in each object of the document's list `listed`, and its length (0 if
    it is missing). `words`: the text, 8 letters each. Returns the number of objects, at most that of `starts`."""
    count, at = 0, _after_space(text, _after_space(text, 0) + 1)
    while text[at] == _QUOTE:
        place, at = _entry(text, at, listed)
        if not place:
            at = _next(text, _value_end(text, words, at))
            continue
        count, at = 0, _after_space(text, at + 1)
        while text[at] == _OBJECT and count < len(starts):
            starts[count], lengths[count] = 0, 0
            at = _after_space(text, at + 1)
            while text[at] == _QUOTE:
                place, at = _entry(text, at, key)
                end = _value_end(text, words, at)
                if place:
                    starts[count], lengths[count] = at, end - at
                at = _next(text, end)
            count += 1
            at = _next(text, at + 1)
        at = _next(text, at + 1)
    return count


@kernel
def without(text, starts, lengths, target):
    """Copies u8 `text` to `target`, with a 0 in place of each of these values, in the order of the text (length 0: none).

    `target` has the length of the text, less that of the values, plus 1 for each. Returns the number of bytes written."""
    source, to = np.int64(text.ctypes.data), np.int64(target.ctypes.data)
    done, at = 0, 0
    for i in range(len(starts) + 1):
        if i < len(starts) and lengths[i] == 0:
            continue
        end = starts[i] if i < len(starts) else len(text)
        if not at <= end < at + len(target) - done + (i == len(starts)):  # the text is not JSON
            break
        copy_bytes(to + done, source + at, end - at)
        done, at = done + end - at, end
        if i < len(starts):
            target[done] = _DIGIT_0
            done, at = done + 1, at + lengths[i]
    return done
