"""The setup header of Vorbis as tables, which files of one encoder share. The format: "Vorbis I specification".

`table`, int32, begins with the fields that the constants below name. Records (of codebooks, floors, residues, mappings and
modes) and the codes of the codebooks follow. `values`, float32, has the vectors of the codebooks, one after the other.
"""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel

# Places in `table`: sizes of blocks (short, long) halved, bits of a mode's number, where records begin, elements in use.
CHANNELS, SHORT, LONG, MODES, MODE_BITS, MODE_AT, MAP_AT, FLOOR_AT, RESIDUE_AT, BOOK_AT, USED, VALUES = range(12)
_HEAD = 16
# Records. A mode: whether its blocks are long, its mapping.
MODE = 2
# A codebook: the numbers of a vector, entries, whether it has codes; the bits that index the first table, and its place; the
# place of its vectors, -1 if it has none.
DIM, ENTRIES, CODED, BITS, CODES, VECTORS, BOOK = range(7)
# A floor: posts, multiplier, bits of the first two heights; the number of partitions; then the places of: classes of the
# partitions; for each class the number of posts, bits of the choice, its book, books to choose from (8); positions of posts,
# their order, neighbours.
POSTS, MULTIPLIER, HEIGHT_BITS, PARTITIONS, PARTITION = range(5)
CLASS_DIM, CLASS_BITS, CLASS_BOOK, CLASS_BOOKS = 37, 53, 69, 85
X, ORDER, LOW, HIGH, FLOOR = 213, 278, 343, 408, 473
# A residue: type, first and last number, numbers of a partition, book of the classes, stages, the place of the classes of each
# word of that book, the number of valid words; for each class a book for each of 8 stages, -1: none.
TYPE, FIRST, END, GROUP, PHRASES, STAGES, CLASSES, WORDS, STAGE_BOOKS = range(9)
RESIDUE = 8 + 64 * 8
# A mapping: the numbers of submaps and coupled pairs; for each channel its submap, for each pair its channels, for each submap
# its floor and residue.
SUBMAPS, PAIRS, SUBMAP = range(3)
MOST_CHANNELS = 16
MAGNITUDE = SUBMAP + MOST_CHANNELS
ANGLE, SUBMAP_FLOOR, SUBMAP_RESIDUE, MAPPING = MAGNITUDE + 256, MAGNITUDE + 512, MAGNITUDE + 528, MAGNITUDE + 544
_FIRST_BITS = 9  # longest code that the first table resolves: 2 kB for each codebook


@kernel(light=True)
def _bits(data, at, count):
    """`count` bits, at most 32, from bit `at`. Bits after the data repeat its last bytes."""
    i = min(at >> 3, data.size - 8)
    word = np.int64(0)
    for k in range(5):
        word |= np.int64(data[i + k]) << (8 * k)
    return (word >> (at & 7)) & ((np.int64(1) << count) - 1)


@kernel(light=True)
def _width(value):
    """The number of bits that a number takes."""
    n = 0
    while value > 0:
        n += 1
        value >>= 1
    return n


@kernel(light=True)
def _float(word):
    """A number of 21 bits of mantissa, 10 of exponent and a sign."""
    value = np.float64(word & 0x1FFFFF) * 2.0 ** np.float64((word >> 21 & 0x3FF) - 788)
    return np.float32(-value if word >> 31 else value)


@kernel(light=True)
def _lengths(data, at, end, lengths):
    """Fills `lengths` with those of a codebook's codes (0: no code). Returns the bit after them, or -1 if they are damaged."""
    entries = lengths.size
    if _bits(data, at, 1):  # ascending
        length, i = _bits(data, at + 1, 5) + 1, np.int64(0)
        at += 6
        while i < entries:
            width = _width(entries - i)
            count = _bits(data, at, width)
            at += width
            if length > 32 or count > entries - i or at > end:
                return np.int64(-1)
            for _ in range(count):
                lengths[i] = length
                i += 1
            length += 1
        return at
    sparse = _bits(data, at + 1, 1)
    at += 2
    for i in range(entries):
        lengths[i] = 0
        if sparse:
            at += 1
            if _bits(data, at - 1, 1) == 0:
                continue
        lengths[i] = _bits(data, at, 5) + 1
        at += 5
        if at > end:
            return np.int64(-1)
    return at


@kernel(light=True)
def _code_words(lengths, codes):
    """Fills `codes` with the codes of these lengths, the first bit lowest. Returns whether they form a full tree."""
    free = np.zeros(33, np.int64)  # free nodes by depth, at most one of each
    free[0] = 1 << 32
    for i in range(lengths.size):
        length = np.int64(lengths[i])
        if length == 0:
            continue
        depth = length
        while depth >= 0 and free[depth] == 0:
            depth -= 1
        if depth < 0:
            return False
        node = free[depth] & 0xFFFFFFFF
        free[depth] = 0
        for d in range(depth + 1, length + 1):
            free[d] = node + (np.int64(1) << (32 - d)) | 1 << 32
        code = np.int64(0)
        for b in range(length):
            code |= (node >> (31 - b) & 1) << b
        codes[i] = code
    left = 0
    for d in range(33):
        left += free[d] > 0
    return left == 0


@kernel(light=True)
def _codes(lengths, table, used, book):
    """Appends the codes of a codebook to `table[used:]`. Returns the first element after them, or -1 if the lengths form no
    full tree.

    An element is `entry << 6 | length`, indexed by the next bits. For longer codes the first table has `-(place << 6 | bits)`,
    which refers to another table, indexed by the bits after these.
    """
    entries, longest, count = lengths.size, np.int64(0), 0
    for i in range(entries):
        longest = max(longest, np.int64(lengths[i]))
        count += lengths[i] > 0
    bits = min(longest, np.int64(_FIRST_BITS))
    table[book + CODED], table[book + BITS], table[book + CODES] = count > 0, bits, used
    size = np.int64(1) << bits
    if count == 0:
        return used
    if used + size > table.size:
        return np.int64(-1)
    first = table[used : used + size]
    if count == 1:
        if longest != 1:
            return np.int64(-1)
        for i in range(entries):
            if lengths[i]:
                first[0] = first[1] = i << 6 | 1
        return used + size
    first[:] = 0
    codes = np.empty(entries, np.int64)
    if not _code_words(lengths, codes):
        return np.int64(-1)
    for i in range(entries):
        if lengths[i] > bits:
            k = codes[i] & (size - 1)
            first[k] = min(np.int64(first[k]), bits - np.int64(lengths[i]))
    used += size
    for k in range(size):
        if first[k] < 0:
            place, more = used, -np.int64(first[k])
            if place + (1 << more) > min(table.size, 1 << 24):
                return np.int64(-1)
            used += 1 << more
            first[k] = -(place << 6 | more)
    for i in range(entries):
        length, code = np.int64(lengths[i]), codes[i]
        if length == 0:
            continue
        place, width, done = np.int64(table[book + CODES]), bits, np.int64(0)
        if length > bits:
            second = -np.int64(first[code & (size - 1)])
            place, width, done = second >> 6, second & 63, bits
        k = code >> done
        while k < 1 << width:
            table[place + k] = i << 6 | length
            k += np.int64(1) << (length - done)
    return used


@kernel(light=True)
def _vectors(data, at, end, kind, dim, entries, values, place):
    """Fills `values` from `place` on with the vectors of a codebook. Returns the bit after them, or -1 if they are damaged."""
    least, step = np.float64(_float(_bits(data, at, 32))), np.float64(_float(_bits(data, at + 32, 32)))
    width, sums = _bits(data, at + 64, 4) + 1, _bits(data, at + 68, 1)
    at += 69
    count = entries * dim
    if place + count > values.size:
        return np.int64(-1)
    if kind == 1:  # the largest count whose power is at most the number of entries
        count = np.int64(0)
        power = np.int64(0)
        while power <= entries:
            count += 1
            power = 1
            for _ in range(dim):
                power *= count
                if power > entries:
                    break
        count -= 1
    if count == 0 or at + count * width > end:
        return np.int64(-1)
    for i in range(entries):
        last, divisor = np.float32(0), np.int64(1)
        for k in range(dim):
            index = i * dim + k
            if kind == 1:
                index = i // divisor % count
                divisor *= count
            value = np.float32(np.float64(_bits(data, at + index * width, width)) * step + least + np.float64(last))
            if sums:
                last = value
            values[place + i * dim + k] = value
    return at + count * width


@kernel(light=True)
def _books(data, at, end, table, values):
    """Reads the codebooks. Returns the bit after them, or -1 if they are damaged."""
    books, used, place = _bits(data, at, 8) + 1, np.int64(_HEAD), np.int64(0)
    at += 8
    table[BOOK_AT] = used
    used += books * BOOK
    for b in range(books):
        book = table[BOOK_AT] + b * BOOK
        dim, entries = _bits(data, at + 24, 16), _bits(data, at + 40, 24)
        if _bits(data, at, 24) != 0x564342 or dim == 0 or entries == 0 or _width(dim) + _width(entries) > 24:
            return np.int64(-1)
        lengths = np.empty(entries, np.uint8)
        at = _lengths(data, at + 64, end, lengths)
        if at < 0:
            return at
        used = _codes(lengths, table, used, book)
        if used < 0:
            return used
        table[book + DIM], table[book + ENTRIES], table[book + VECTORS] = dim, entries, -1
        kind = _bits(data, at, 4)
        at += 4
        if kind > 2:
            return np.int64(-1)
        if kind:
            table[book + VECTORS] = place
            at = _vectors(data, at, end, kind, dim, entries, values, place)
            if at < 0:
                return at
            place += entries * dim
    table[USED], table[VALUES] = used, place
    return at


@kernel(light=True)
def levels_of(multiplier):
    """The number of heights that a post of a floor may have."""
    return np.int64(256 if multiplier == 1 else 128 if multiplier == 2 else 86 if multiplier == 3 else 64)


@kernel(light=True)
def _floor(data, at, books, floor):
    """Reads a floor of type 1. Returns the bit after it, or -1 if it is damaged."""
    partitions, classes, posts = _bits(data, at, 5), np.int64(0), np.int64(2)
    at += 5
    floor[PARTITIONS] = partitions
    for p in range(partitions):
        floor[PARTITION + p] = _bits(data, at, 4)
        classes = max(classes, np.int64(floor[PARTITION + p]) + 1)
        at += 4
    for c in range(classes):
        floor[CLASS_DIM + c], bits = _bits(data, at, 3) + 1, _bits(data, at + 3, 2)
        at += 5
        floor[CLASS_BITS + c], floor[CLASS_BOOK + c] = bits, 0
        if bits:
            floor[CLASS_BOOK + c] = _bits(data, at, 8)
            at += 8
        for k in range(1 << bits):
            book = _bits(data, at, 8) - 1
            floor[CLASS_BOOKS + c * 8 + k] = book
            at += 8
            if max(book, np.int64(floor[CLASS_BOOK + c])) >= books:
                return np.int64(-1)
    multiplier, width = _bits(data, at, 2) + 1, _bits(data, at + 2, 4)
    at += 6
    floor[MULTIPLIER], floor[HEIGHT_BITS] = multiplier, _width(levels_of(multiplier) - 1)
    x = floor[X : X + 65]
    x[0], x[1] = 0, 1 << width
    for p in range(partitions):
        for _ in range(floor[CLASS_DIM + floor[PARTITION + p]]):
            if posts == 65:
                return np.int64(-1)
            x[posts] = _bits(data, at, width)
            at += width
            posts += 1
    floor[POSTS] = posts
    order, low, high = floor[ORDER : ORDER + posts], floor[LOW : LOW + posts], floor[HIGH : HIGH + posts]
    for i in range(posts):
        k = i
        while k > 0 and x[order[k - 1]] > x[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
        if k > 0 and x[order[k - 1]] == x[i]:
            return np.int64(-1)
        low[i], high[i] = 0, 1
        for j in range(i):  # the nearest of the posts before it
            if x[low[i]] < x[j] < x[i]:
                low[i] = j
            if x[i] < x[j] < x[high[i]]:
                high[i] = j
    return at


@kernel(light=True)
def _residue(data, at, table, books, residue):
    """Reads a residue after its type. Returns the bit after it, or -1 if it is damaged."""
    for k in range(3):
        table[residue + FIRST + k] = _bits(data, at + 24 * k, 24)
    table[residue + GROUP] += 1
    classes, phrases = _bits(data, at + 72, 6) + 1, _bits(data, at + 78, 8)
    at += 86
    table[residue + PHRASES] = phrases
    cascades, stages = np.zeros(64, np.int64), np.int64(0)
    for c in range(classes):
        cascades[c] = _bits(data, at, 3)
        at += 4
        if _bits(data, at - 1, 1):
            cascades[c] |= _bits(data, at, 5) << 3
            at += 5
        stages = max(stages, np.int64(_width(cascades[c])))
    table[residue + STAGES] = stages
    for c in range(classes):
        for s in range(8):
            table[residue + STAGE_BOOKS + c * 8 + s] = -1
            if cascades[c] >> s & 1:
                book = _bits(data, at, 8)
                at += 8
                if book >= books or table[table[BOOK_AT] + book * BOOK + VECTORS] < 0:
                    return np.int64(-1)
                table[residue + STAGE_BOOKS + c * 8 + s] = table[BOOK_AT] + book * BOOK
    if phrases >= books:
        return np.int64(-1)
    book = table[BOOK_AT] + phrases * BOOK
    dim, words = np.int64(table[book + DIM]), np.int64(1)
    for _ in range(dim):
        words *= classes
        if words > table[book + ENTRIES]:
            return np.int64(-1)
    used = np.int64(table[USED])
    if used + words * dim > table.size:
        return np.int64(-1)
    table[residue + PHRASES], table[residue + CLASSES], table[residue + WORDS] = book, used, words
    for w in range(words):
        rest = np.int64(w)
        for k in range(dim):
            table[used + w * dim + dim - 1 - k] = rest % classes
            rest //= classes
    table[USED] = used + words * dim
    return at


@kernel(light=True)
def _mapping(data, at, channels, floors, residues, mapping):
    """Reads a mapping. Returns the bit after it, or -1 if it is damaged."""
    submaps, pairs, width = np.int64(1), np.int64(0), _width(channels - 1)
    at += 1
    if _bits(data, at - 1, 1):
        submaps = _bits(data, at, 4) + 1
        at += 4
    at += 1
    if _bits(data, at - 1, 1):
        pairs = _bits(data, at, 8) + 1
        at += 8
    mapping[SUBMAPS], mapping[PAIRS] = submaps, pairs
    for p in range(pairs):
        magnitude, angle = _bits(data, at, width), _bits(data, at + width, width)
        at += 2 * width
        if magnitude == angle or max(magnitude, angle) >= channels:
            return np.int64(-1)
        mapping[MAGNITUDE + p], mapping[ANGLE + p] = magnitude, angle
    at += 2
    if _bits(data, at - 2, 2):
        return np.int64(-1)
    for c in range(channels):
        mapping[SUBMAP + c] = 0
        if submaps > 1:
            mapping[SUBMAP + c] = _bits(data, at, 4)
            at += 4
        if mapping[SUBMAP + c] >= submaps:
            return np.int64(-1)
    for s in range(submaps):
        floor, residue = _bits(data, at + 8, 8), _bits(data, at + 16, 8)
        at += 24
        if floor >= floors or residue >= residues:
            return np.int64(-1)
        mapping[SUBMAP_FLOOR + s], mapping[SUBMAP_RESIDUE + s] = floor, residue
    return at


@kernel(light=True)
def _reserve(table, where, count, size):
    """Reserves room for `count` records of `size` elements, whose place is written to `table[where]`. Returns whether there is
    enough room."""
    table[where] = table[USED]
    table[USED] += count * size
    return table[USED] <= table.size


@kernel(light=True)
def read_setup(data, end, channels, table, values):
    """Fills `table` and `values` from the setup header `data`, uint8, with 8 bytes after its `end`. Returns whether it is
    supported: all floors have type 1, and the tables have room."""
    table[CHANNELS] = channels
    end *= 8
    at = _books(data, np.int64(56), end, table, values)
    if at < 0:
        return False
    books = _bits(data, np.int64(56), 8) + 1
    times = _bits(data, at, 6) + 1
    at += 6
    for _ in range(times):
        if _bits(data, at, 16) != 0:
            return False
        at += 16
    floors = _bits(data, at, 6) + 1
    at += 6
    if not _reserve(table, FLOOR_AT, floors, FLOOR):
        return False
    for f in range(floors):
        if _bits(data, at, 16) != 1:
            return False
        begin = table[FLOOR_AT] + f * FLOOR
        at = _floor(data, at + 16, books, table[begin : begin + FLOOR])
        if at < 0:
            return False
    residues = _bits(data, at, 6) + 1
    at += 6
    if not _reserve(table, RESIDUE_AT, residues, RESIDUE):
        return False
    for r in range(residues):
        residue = table[RESIDUE_AT] + r * RESIDUE
        table[residue + TYPE] = _bits(data, at, 16)
        if table[residue + TYPE] > 2:
            return False
        at = _residue(data, at + 16, table, books, residue)
        if at < 0:
            return False
    mappings = _bits(data, at, 6) + 1
    at += 6
    if not _reserve(table, MAP_AT, mappings, MAPPING):
        return False
    for m in range(mappings):
        begin = table[MAP_AT] + m * MAPPING
        if _bits(data, at, 16) != 0:
            return False
        at = _mapping(data, at + 16, channels, floors, residues, table[begin : begin + MAPPING])
        if at < 0:
            return False
    modes = _bits(data, at, 6) + 1
    at += 6
    table[MODES], table[MODE_BITS] = modes, _width(modes - 1)
    if not _reserve(table, MODE_AT, modes, MODE):
        return False
    for m in range(modes):
        mode = table[MODE_AT] + m * MODE
        table[mode], table[mode + 1] = _bits(data, at, 1), _bits(data, at + 33, 8)
        if _bits(data, at + 1, 32) != 0 or table[mode + 1] >= mappings:
            return False
        at += 41
    return at < end and _bits(data, at, 1) == 1


class NotReadyError(Exception):
    """The kernel is being compiled."""


@read_setup.fallback
def _(*args):
    raise NotReadyError
