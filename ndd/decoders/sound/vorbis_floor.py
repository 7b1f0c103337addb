"""The floors of Vorbis: the envelope of a block's spectrum, straight lines between posts, in 256 steps of 0.547 dB. Also
functions that read bits and codes of packets."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd.decoders.sound.vorbis_setup import (
    BITS,
    BOOK,
    BOOK_AT,
    CLASS_BITS,
    CLASS_BOOK,
    CLASS_BOOKS,
    CLASS_DIM,
    CODED,
    CODES,
    HEIGHT_BITS,
    HIGH,
    LOW,
    MULTIPLIER,
    ORDER,
    PARTITION,
    PARTITIONS,
    POSTS,
    X,
    levels_of,
)  # fmt: skip

NONE, ENDED, UNKNOWN = -1, -2, -3  # results of `heights_of` in place of a bit
# Table 10.1 of the specification, with all its digits.
_LEVELS = np.array(
    [
        1.0649863e-07, 1.1341951e-07, 1.2079015e-07, 1.2863978e-07, 1.369995e-07, 1.459025e-07, 1.5538409e-07, 1.6548181e-07,
        1.7623574e-07, 1.8768856e-07, 1.998856e-07, 2.128753e-07, 2.2670913e-07, 2.4144197e-07, 2.5713223e-07, 2.7384212e-07,
        2.9163792e-07, 3.1059022e-07, 3.307741e-07, 3.5226967e-07, 3.7516213e-07, 3.995423e-07, 4.255068e-07, 4.5315863e-07,
        4.8260745e-07, 5.1397e-07, 5.4737063e-07, 5.829419e-07, 6.208247e-07, 6.611694e-07, 7.041359e-07, 7.4989464e-07,
        7.98627e-07, 8.505263e-07, 9.057983e-07, 9.646621e-07, 1.0273513e-06, 1.0941144e-06, 1.1652161e-06, 1.2409384e-06,
        1.3215816e-06, 1.4074654e-06, 1.4989305e-06, 1.5963394e-06, 1.7000785e-06, 1.8105592e-06, 1.9282195e-06, 2.053526e-06,
        2.1869757e-06, 2.3290977e-06, 2.4804558e-06, 2.6416496e-06, 2.813319e-06, 2.9961443e-06, 3.1908505e-06, 3.39821e-06,
        3.619045e-06, 3.8542307e-06, 4.1047006e-06, 4.371447e-06, 4.6555283e-06, 4.958071e-06, 5.280274e-06, 5.623416e-06,
        5.988857e-06, 6.3780467e-06, 6.7925284e-06, 7.2339453e-06, 7.704048e-06, 8.2047e-06, 8.737888e-06, 9.305725e-06,
        9.910464e-06, 1.0554501e-05, 1.1240392e-05, 1.1970856e-05, 1.2748789e-05, 1.3577278e-05, 1.4459606e-05, 1.5399271e-05,
        1.6400005e-05, 1.7465769e-05, 1.8600793e-05, 1.9809577e-05, 2.1096914e-05, 2.2467912e-05, 2.3928002e-05, 2.5482977e-05,
        2.7139005e-05, 2.890265e-05, 3.078091e-05, 3.2781227e-05, 3.4911533e-05, 3.718028e-05, 3.9596467e-05, 4.2169668e-05,
        4.491009e-05, 4.7828602e-05, 5.0936775e-05, 5.424693e-05, 5.7772202e-05, 6.152657e-05, 6.552491e-05, 6.9783084e-05,
        7.4317984e-05, 7.914758e-05, 8.429104e-05, 8.976875e-05, 9.560242e-05, 0.00010181521, 0.00010843174, 0.00011547824,
        0.00012298267, 0.00013097477, 0.00013948625, 0.00014855085, 0.00015820454, 0.00016848555, 0.00017943469, 0.00019109536,
        0.00020351382, 0.0002167393, 0.00023082423, 0.00024582449, 0.00026179955, 0.00027881275, 0.00029693157, 0.00031622787,
        0.00033677815, 0.00035866388, 0.00038197188, 0.00040679457, 0.00043323037, 0.0004613841, 0.0004913675, 0.00052329927,
        0.0005573062, 0.0005935231, 0.0006320936, 0.0006731706, 0.000716917, 0.0007635063, 0.00081312325, 0.00086596457,
        0.00092223985, 0.0009821722, 0.0010459992, 0.0011139743, 0.0011863665, 0.0012634633, 0.0013455702, 0.0014330129,
        0.0015261382, 0.0016253153, 0.0017309374, 0.0018434235, 0.0019632196, 0.0020908006, 0.0022266726, 0.0023713743,
        0.0025254795, 0.0026895993, 0.0028643848, 0.0030505287, 0.003248769, 0.0034598925, 0.0036847359, 0.0039241905,
        0.0041792067, 0.004450795, 0.004740033, 0.005048067, 0.0053761187, 0.005725489, 0.0060975635, 0.0064938175,
        0.0069158226, 0.0073652514, 0.007843887, 0.008353627, 0.008896492, 0.009474637, 0.010090352, 0.01074608,
        0.011444421, 0.012188144, 0.012980198, 0.013823725, 0.014722068, 0.015678791, 0.016697686, 0.017782796,
        0.018938422, 0.020169148, 0.021479854, 0.022875736, 0.02436233, 0.025945531, 0.027631618, 0.029427277,
        0.031339627, 0.03337625, 0.035545226, 0.037855156, 0.0403152, 0.042935107, 0.045725275, 0.048696756,
        0.05186135, 0.05523159, 0.05882085, 0.062643364, 0.06671428, 0.07104975, 0.075666964, 0.08058423,
        0.08582105, 0.09139818, 0.097337745, 0.1036633, 0.11039993, 0.11757434, 0.12521498, 0.13335215,
        0.14201812, 0.15124726, 0.16107617, 0.1715438, 0.18269168, 0.19456401, 0.20720787, 0.22067343,
        0.23501402, 0.25028655, 0.26655158, 0.28387362, 0.3023213, 0.32196787, 0.34289113, 0.36517414,
        0.3889052, 0.41417846, 0.44109413, 0.4697589, 0.50028646, 0.53279793, 0.5674221, 0.6042964,
        0.64356697, 0.6853896, 0.72993004, 0.777365, 0.8278826, 0.88168305, 0.9389798, 1.0,
    ],
    np.float32,
)  # fmt: skip


@kernel
def peek(words, at):
    """The 64 bits from bit `at`, the first bit lowest."""
    i, s = np.uint64(at) >> np.uint64(6), np.uint64(at) & np.uint64(63)
    return np.int64(words[i] >> s | words[i + np.uint64(1)] << np.uint64(1) << np.uint64(63) - s)


@kernel
def entry_of(words, at, table, book):
    """Reads the next code of a codebook that has codes. Returns (entry, bits)."""
    window, bits = peek(words, at), table[book + BITS]
    e = np.int64(table[table[book + CODES] + (window & ((1 << bits) - 1))])
    if e < 0:
        e = np.int64(table[(-e >> 6) + (window >> bits & ((1 << (-e & 63)) - 1))])
    return e >> 6, e & 63


@kernel
def heights_of(words, at, end, table, floor, heights):
    """Fills `heights` with those of the posts, and 0x8000 where a post is not used. Returns the bit after them; NONE if the
    block is silent, ENDED if the packet ends too early, which makes it silent, UNKNOWN if libsndfile must decode it."""
    if at >= end or peek(words, at) & 1 == 0:
        return np.int64(NONE)
    at += 1
    width, posts = table[floor + HEIGHT_BITS], table[floor + POSTS]
    window = peek(words, at)
    heights[0], heights[1] = window & ((1 << width) - 1), window >> width & ((1 << width) - 1)
    at += 2 * width
    if at > end:
        return np.int64(UNKNOWN)
    i = 2
    for p in range(table[floor + PARTITIONS]):
        c = table[floor + PARTITION + p]
        bits, choice = np.int64(table[floor + CLASS_BITS + c]), np.int64(0)
        if bits:
            book = table[BOOK_AT] + table[floor + CLASS_BOOK + c] * BOOK
            if table[book + CODED] == 0:
                return np.int64(UNKNOWN)
            choice, length = entry_of(words, at, table, book)
            at += length
            if at > end:
                return np.int64(ENDED)
        for _ in range(table[floor + CLASS_DIM + c]):
            k = table[floor + CLASS_BOOKS + c * 8 + (choice & ((1 << bits) - 1))]
            choice >>= bits
            heights[i] = 0
            if k >= 0:
                book = table[BOOK_AT] + k * BOOK
                if table[book + CODED] == 0:
                    return np.int64(UNKNOWN)
                heights[i], length = entry_of(words, at, table, book)
                at += length
                if at > end:
                    return np.int64(ENDED)
            i += 1
    levels = levels_of(table[floor + MULTIPLIER])
    for i in range(2, posts):
        low, high = table[floor + LOW + i], table[floor + HIGH + i]
        x0, x1 = np.int64(table[floor + X + low]), np.int64(table[floor + X + high])
        y0, y1 = heights[low] & 0x7FFF, heights[high] & 0x7FFF
        steep = abs(y1 - y0) * (table[floor + X + i] - x0) // (x1 - x0)
        guess = y0 - steep if y1 < y0 else y0 + steep
        above, below, value = levels - guess, guess, heights[i]
        if value == 0:
            heights[i] = guess | 0x8000
            continue
        if value >= 2 * min(above, below):
            value = value - below if above > below else above - value - 1
        elif value & 1:
            value = -((value + 1) >> 1)
        else:
            value >>= 1
        heights[i] = (value + guess) & 0x7FFF
        heights[low] &= 0x7FFF
        heights[high] &= 0x7FFF
    return at


@kernel
def shape(table, floor, heights, line, half):
    """Multiplies the first `half` numbers of a line by the floor."""
    multiplier, x0 = np.int64(table[floor + MULTIPLIER]), np.int64(0)
    y0 = min(max(heights[0] * multiplier, 0), 255)
    for j in range(1, table[floor + POSTS]):
        post = table[floor + ORDER + j]
        if heights[post] > 0x7FFF:
            continue
        x1, y1 = np.int64(table[floor + X + post]), min(max(heights[post] * multiplier, 0), 255)
        width, last = x1 - x0, min(x1, half)
        steep = abs(y1 - y0) // width
        rest, error, y = abs(y1 - y0) - steep * width, -width, y0
        step, more = (-steep, -steep - 1) if y1 < y0 else (steep, steep + 1)
        for x in range(x0, last):
            line[np.uint64(x)] *= _LEVELS[np.uint64(y)]
            over = error + (rest - width)
            y += step if over < -width else more
            error = error + rest if over < -width else over
        x0, y0 = x1, y1
    for x in range(x0, half):
        line[x] *= _LEVELS[y0]
