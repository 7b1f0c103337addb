"""Finding and decoding the features of `tf.train.Example`, protobuf's wire format, in many records at once.

    Example { Features features = 1; }            Features { map<string, Feature> feature = 1; }
    Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }        each list: repeated value = 1

As in protobuf, the last of several entries with the same key counts, as does the last type of a feature; lists of the same
type are joined, and numbers may be packed or not. Fields with other numbers are skipped.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd.readers.formats.crc32c import masked_crc32c
from ndd.readers.formats.protobuf import next_field, varint

GOOD, SHORT, OTHER_LENGTH, NO_EXAMPLE = range(4)
# Bytes of a record before its data (length, CRC of the length), and before and after it (CRC of the data).
HEAD, FRAME = 12, 16
NOTHING = -1  # the type of a feature without values; else 0, 1, 2 as in `ndd.tfrecord`


@kernel
def _field(data, at, end):
    """A field's number, wire type, the range of its contents, and the position after it; -1 for an invalid field or a group."""
    number, wire, _, start, after = next_field(data, at, end)
    if wire == 3:
        after = -1
    return number, wire, start, after


@kernel
def _word(data, at):
    word = np.uint32(0)
    for k in range(4):
        word = np.uint32(word | np.uint32(data[at + k]) << np.uint32(8 * k))
    return word


@kernel
def _equal(data, start, end, keys, first, last):
    same, k = end - start == last - first, 0
    while same and k < end - start:
        same = data[start + k] == keys[first + k]
        k += 1
    return same


@kernel
def _features(data, start, end, keys, key_ends, entries):
    """Writes the range of the entry of each selected key, (0, 0) for a missing one. Returns False if this is not an Example."""
    entries[:] = 0
    at = start
    while at < end:
        number, wire, first, at = _field(data, at, end)
        if at < 0:
            return False
        if number != 1 or wire != 2:
            continue
        place, last = first, at
        while place < last:
            number, wire, entry, place = _field(data, place, last)
            if place < 0:
                return False
            if number != 1 or wire != 2:
                continue
            key_start, key_end, inside = entry, entry, entry
            while inside < place:
                number, wire, content, inside = _field(data, inside, place)
                if inside < 0:
                    return False
                if number == 1 and wire == 2:
                    key_start, key_end = content, inside
            key = 0
            for k in range(len(key_ends)):
                if _equal(data, key_start, key_end, keys, key, key_ends[k]):
                    entries[k, 0], entries[k, 1] = entry, place
                key = key_ends[k]
    return True


@kernel
def _values(data, start, end, wanted, ints, floats):
    """Parses the entry of a feature. Returns its type (`NOTHING` without values, -2 if it is broken), the number of values, and
    the range of the first string. Writes numbers of type `wanted` to `ints` or (as bits) `floats`, as far as they fit: a list of
    another type may follow, and then another list of the first type."""
    kind, count, first, last = np.int64(NOTHING), np.int64(0), np.int64(0), np.int64(0)
    broken = (np.int64(-2), count, first, last)
    at = start
    while at < end:
        number, wire, feature, at = _field(data, at, end)
        if at < 0:
            return broken
        if number != 2 or wire != 2:
            continue
        while feature < at:
            number, wire, listed, feature = _field(data, feature, at)
            if feature < 0:
                return broken
            if not 1 <= number <= 3 or wire != 2:
                continue
            if kind != number % 3:
                kind, count = number % 3, np.int64(0)
            while listed < feature:
                number, wire, value, listed = _field(data, listed, feature)
                if listed < 0:
                    return broken
                if number != 1:
                    continue
                if kind == 1 and wire == 2:
                    if count == 0:
                        first, last = value, listed
                    count += 1
                elif kind == 2 and (wire == 2 or wire == 5):
                    if (listed - value) % 4:
                        return broken
                    if wanted == 2:
                        for k in range(min((listed - value) // 4, len(floats) - count)):
                            floats[count + k] = _word(data, value + 4 * k)
                    count += (listed - value) // 4
                elif kind == 0 and (wire == 2 or wire == 0):
                    while value < listed:
                        decoded, value = varint(data, value, listed)
                        if value < 0:
                            return broken
                        if wanted == 0 and count < len(ints):
                            ints[count] = decoded
                        count += 1
    return (kind if count else np.int64(NOTHING)), count, first, last


@kernel
def examine(data, starts, sizes, keys, key_ends, entries, kinds, counts, strings, lengths):
    """Parses the records of `sizes[i]` bytes at `starts[i]` of `data`, and returns the state of each (`GOOD`, ...).

    For each record and each selected key (the keys end at `key_ends` of `keys`): the range of its entry, the type and
    number of its values, the range of its first string. `lengths`: the lengths that the records state.
    """
    states = empty(len(starts), np.int64)
    none_i, none_f = empty(0, np.int64), empty(0, np.uint32)
    for i in range(len(starts)):
        start, room = starts[i], sizes[i] - FRAME
        kinds[i, :], counts[i, :] = NOTHING, 0
        lengths[i] = 0
        states[i] = SHORT
        if room < 0:
            continue
        length = np.int64(0)
        for k in range(8):
            length |= np.int64(data[start + k]) << np.int64(8 * k)
        lengths[i] = length
        states[i] = OTHER_LENGTH
        if length < 0 or length > room:
            continue
        if length < room and masked_crc32c(data, start, start + 8) != _word(data, start + 8):
            continue
        first, last = start + HEAD, start + HEAD + length
        states[i] = NO_EXAMPLE
        if not _features(data, first, last, keys, key_ends, entries[i]):
            continue
        states[i] = GOOD
        for k in range(len(key_ends)):
            kinds[i, k], counts[i, k], strings[i, k, 0], strings[i, k, 1] = _values(
                data, entries[i, k, 0], entries[i, k, 1], NOTHING, none_i, none_f
            )
            if kinds[i, k] == -2:
                states[i] = NO_EXAMPLE
    return states


@kernel
def decode(data, entries, types, places, rooms, ints, floats):
    """Writes the numbers of each entry to `ints` or (as bits) `floats`: at most `rooms[i, k]` from `places[i, k]` on; a place of
    -1 skips the entry."""
    for i in range(len(entries)):
        for k in range(len(types)):
            first = places[i, k]
            if first >= 0:
                last = first + rooms[i, k]
                _values(data, entries[i, k, 0], entries[i, k, 1], types[k], ints[first:last], floats[first:last])
