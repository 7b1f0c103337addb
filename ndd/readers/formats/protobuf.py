"""The wire format of protobuf messages: which bytes of a buffer are which field.

A field is a tag (`number << 3 | wire`) and a value: wire 0 a varint, 1 eight bytes, 5 four bytes, 2 a length and as many
bytes (texts, messages, packed numbers); 3 and 4 begin and end a group, an old form that is skipped. As in all parsers of
protobuf, a field of an unknown number or of another wire than expected is skipped, and the last occurrence of a field that may
occur once counts.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.byte_order import little_endian

BROKEN = -1  # in place of a count: the bytes are not a message
TEXTS, FIRST, LAST, VARINTS, VALUE, MOST, FACTS = 0, 1, 3, 5, 6, 7, 8  # the facts from `fields` about a field


@kernel
def varint(data, at, end):
    """The number that begins at `at`, as int64, and where it ends; the end is -1 if the number is cut off or longer than 10
    bytes."""
    value, shift = 0, 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        if shift < 64:
            value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@kernel
def next_field(data, at, end):
    """The field that begins at `at`: (number, wire, value, start, next). `value` is the number of wire 0; of the others
    the bytes are `start` to `next`. `next` is -1 if there is no valid field."""
    tag, start = varint(data, at, end)
    number, wire = (tag >> 3) & 0x1FFFFFFF, tag & 7
    if start < 0 or number == 0 or tag >> 32:
        return 0, 0, 0, 0, -1
    if wire == 0:
        value, after = varint(data, start, end)
        return number, wire, value, start, after
    length = 0
    if wire == 1:
        length = 8
    elif wire == 5:
        length = 4
    elif wire == 2:
        length, start = varint(data, start, end)
    elif wire == 3:
        return number, wire, 0, start, _group_end(data, start, end)
    else:
        return 0, 0, 0, 0, -1
    if start < 0 or length < 0 or length > end - start:
        return 0, 0, 0, 0, -1
    return number, wire, 0, start, start + length


@kernel
def _group_end(data, at, end):
    """The end of a group that has begun; -1 if it has none."""
    depth = 1
    while at < end:
        tag, at = varint(data, at, end)
        wire, length = tag & 7, 0
        if at < 0 or wire > 5:
            return -1
        if wire == 3:
            depth += 1
        elif wire == 4:
            depth -= 1
            if depth == 0:
                return at
        elif wire == 0:
            _, at = varint(data, at, end)
        elif wire == 2:
            length, at = varint(data, at, end)
        else:
            length = 8 if wire == 1 else 4
        if at < 0 or length < 0 or length > end - at:
            return -1
        at += length
    return -1


@kernel
def messages(data, starts, ends, wanted, keep_last, places, counts):
    """Finds the messages (wire 2) of field `wanted` in each message. Writes start and end of the first ones to `places[i, k]`,
    with `keep_last` those of the last one to `places[i, -1]`, and their number to `counts[i]` (`BROKEN` for bytes that are not
    a message)."""
    room = places.shape[1] - 1 if keep_last else places.shape[1]
    for i in range(len(starts)):
        at, count = starts[i], 0
        while 0 <= at < ends[i]:
            number, wire, _, start, at = next_field(data, at, ends[i])
            if at >= 0 and number == wanted and wire == 2:
                if count < room:
                    places[i, count, 0], places[i, count, 1] = start, at
                if keep_last:
                    places[i, -1, 0], places[i, -1, 1] = start, at
                count += 1
        counts[i] = count if at >= 0 else BROKEN


@kernel
def fields(data, starts, ends, places):
    """Writes facts about the fields of each message: `places[i, number]`, as far as there are such rows, is

    * `TEXTS`: the number of times that it occurs with a length (wire 2),
    * `FIRST`, `FIRST + 1`: start and end of the first of these; `LAST`, `LAST + 1`: of the last one,
    * `VARINTS`: the number of times that it occurs as a varint; `VALUE`: the last one,
    * `MOST`: how many numbers it can hold at most, if it is a list of numbers, packed or not;

    and `places[i, 0, 0]` is 0, or `BROKEN` for bytes that are not a message. All of it must be 0 before.
    """
    for i in range(len(starts)):
        at = starts[i]
        while 0 <= at < ends[i]:
            number, wire, value, start, at = next_field(data, at, ends[i])
            if at < 0 or number >= places.shape[1]:
                continue
            row = places[i, number]
            row[MOST] += at - start if wire == 2 else 1
            if wire == 0:
                row[VARINTS] += 1
                row[VALUE] = value
            elif wire == 2:
                if row[TEXTS] == 0:
                    row[FIRST], row[FIRST + 1] = start, at
                row[TEXTS] += 1
                row[LAST], row[LAST + 1] = start, at
        if at < 0:
            places[i, 0, 0] = BROKEN


@kernel
def numbers(data, starts, ends, wanted, wire_of_one, places, rooms, out, counts):
    """Writes the numbers of field `wanted` in each message, packed or not, to `out` from `places[i]` on: varints (`wire_of_one`
    0) or the bits of four-byte numbers (5). Their number goes to `counts[i]`: `BROKEN` if packed ones are cut off or exceed
    `rooms[i]`."""
    for i in range(len(starts)):
        at, place, last = starts[i], places[i], places[i] + rooms[i]
        while 0 <= at < ends[i]:
            number, wire, _, start, at = next_field(data, at, ends[i])
            if at < 0 or number != wanted or (wire != wire_of_one and wire != 2):
                continue
            while 0 <= start < at:  # a number that is not packed looks like packed ones
                value = np.int64(0)
                if wire_of_one == 0:
                    value, start = varint(data, start, at)
                elif start + 4 <= at:
                    value = little_endian(data, start, 4)
                    start += 4
                else:
                    start = -1
                if place == last:
                    start = -1
                if start > 0:
                    out[place] = value
                    place += 1
            if start < 0:
                at = -1
        counts[i] = place - places[i] if at >= 0 else BROKEN
