"""`places`: where values stand in a JSON text that is known to be sound."""

from __future__ import annotations

from ndd._cpu.jit import kernel

_SPACE, _QUOTE, _COMMA, _DIGIT_9, _LETTER_U = b' ",9u'  # what else is space has lower numbers than " "
_BACKSLASH, _LIST, _LIST_END, _OBJECT, _OBJECT_END = b"\\[]{}"


@kernel
def _after_space(text, at):
    while at < len(text) - 1 and text[at] <= _SPACE:
        at += 1
    return at


@kernel
def _text_end(text, at):
    """The place behind the text that begins at `at`."""
    at += 1
    while at < len(text) and text[at] != _QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return min(at + 1, len(text) - 1)


@kernel
def _value_end(text, at):
    """The place behind the value that begins at `at`."""
    if text[at] == _QUOTE:
        return _text_end(text, at)
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter > _DIGIT_9:  # neither of a number nor between two of them
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
    """Of the entry of an object that begins at `at`: whether it has this key, and where its value begins."""
    end = _text_end(text, at)
    value = _after_space(text, _after_space(text, end) + 1)
    return _equal(text, at + 1, end - 1, key), value


@kernel
def _next(text, at):
    """From behind one value in a list or object: where the next begins, or its last bracket."""
    at = _after_space(text, at)
    return _after_space(text, at + 1) if text[at] == _COMMA else at


@kernel
def places(text, listed, key, starts, lengths):
    """Of the document's list `listed` of objects, where in u8 `text` the value of `key` of each begins, and its length (0
    where there is none). Gives how many objects there are, but no more than there are `starts`."""
    count, at = 0, _after_space(text, _after_space(text, 0) + 1)
    while text[at] == _QUOTE:
        found, at = _entry(text, at, listed)
        if not found:
            at = _next(text, _value_end(text, at))
            continue
        count, at = 0, _after_space(text, at + 1)
        while text[at] == _OBJECT and count < len(starts):
            starts[count], lengths[count] = 0, 0
            at = _after_space(text, at + 1)
            while text[at] == _QUOTE:
                found, at = _entry(text, at, key)
                end = _value_end(text, at)
                if found:
                    starts[count], lengths[count] = at, end - at
                at = _next(text, end)
            count += 1
            at = _next(text, at + 1)
        at = _next(text, at + 1)
    return count
