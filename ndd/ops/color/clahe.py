"""`ndd.clahe`: histogram equalization of parts of an image, with limited contrast."""

from __future__ import annotations

import functools

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._operator import Plan, bad_sample, like, operator
from ndd.ops.color.lab import lab_tables, lab_to_rgb, rgb_to_lab

_PER_THREAD = 4  # pixels of a GPU thread
_ROOTS = 2048  # white is 2040


@operator(layouts=("HWC",))
def clahe(
    input,
    /,
    *,
    bins: int = 256,
    clip_limit: float,
    luma_only: bool = True,
    tiles_x: int,
    tiles_y: int,
):
    """Equalizes the histograms of tiles of an image, so that contrast is even: CLAHE.

    The image is divided into `tiles_x` times `tiles_y` tiles of one size (it is extended by reflection if they do not fit). The
    histogram of each is clipped at `limit = clip_limit * (pixels of a tile) / 256`, at least 1, and the excess is spread over
    all values; a value `v` then becomes `round(255 * (pixels that are at most v) / (pixels of a tile))`. Each pixel is
    interpolated bilinearly between the results of the four tiles with the nearest centres.

    Args:
        input: uint8, layout HWC (the layout of an input that has none), 1 or 3 channels. Three are R, G and B.
        tiles_x, tiles_y: tiles from left to right and from top to bottom; at least 1.
        clip_limit: the highest count of a value, in multiples of the average; smaller means less contrast. 0, a negative number
            or NaN: no limit.
        luma_only: of RGB images, equalize the lightness L of CIE L*a*b* (8 bits, as `cv2.COLOR_RGB2Lab`) and keep a and
            b. Otherwise each channel is equalized separately. Without effect for one channel.
        bins: accepted and without effect: there are always 256, as in DALI on the CPU.

    Element type, shape and layout stay. Equal to OpenCV: `cv2.createCLAHE(clip_limit, (tiles_x, tiles_y))`, between
    `cv2.COLOR_RGB2Lab` and `cv2.COLOR_Lab2RGB` for `luma_only`. As in DALI on the CPU; unlike DALI 2.4.0 on the GPU
    `luma_only=False` works there too. Images without pixels stay so (DALI refuses them), and limits whose product with
    the tile does not fit in 31 bits mean no limit (DALI: 1).

    Errors: ValueError for other element types, layouts and numbers of channels, RuntimeError for `tiles_x` or `tiles_y`
    below 1 (DALI crashes).

    >>> import ndd, numpy as np
    >>> image = ndd.tensor(np.array([10, 10, 11, 12], np.uint8).reshape(2, 2, 1), layout="HWC")
    >>> ndd.clahe(image, tiles_x=1, tiles_y=1, clip_limit=0)[..., 0].torch()
    tensor([[128, 128],
            [191, 255]], dtype=torch.uint8)
    >>> ndd.clahe(ndd.demo.photo("launch_site"), tiles_x=8, tiles_y=8, clip_limit=4).shape
    (267, 400, 3)
    """
    if input.dtype.name != "u8":
        raise ValueError(f"clahe: Unsupported input type: {input.dtype}. Expected u8.")
    for name, count in (("tiles_x", tiles_x), ("tiles_y", tiles_y)):
        if count < 1:
            raise RuntimeError(f"clahe: Argument `{name}` must be positive, got {count}")
    return like(input)


@clahe.plan
def _(input, *, bins, clip_limit, luma_only, tiles_x, tiles_y):
    channels = input.shapes[:, 2]
    wrong = (channels != 1) & (channels != 3)
    if wrong.any():
        sample = int(wrong.argmax())
        raise bad_sample(sample, f"Expected an image of 1 or 3 channels, got {channels[sample]}", ValueError)
    height, width = input.shapes[:, 0], input.shapes[:, 1]
    fits = (height % tiles_y == 0) & (width % tiles_x == 0)
    tile_h = np.where(fits, height, height + tiles_y - height % tiles_y) // tiles_y
    tile_w = np.where(fits, width, width + tiles_x - width % tiles_x) // tiles_x
    area = tile_h * tile_w
    limit = np.zeros(input.n, np.int32)
    if clip_limit > 0:
        limit[:] = np.clip(float(clip_limit) * area / 256, 1, np.maximum(area, 1))
    tiles = np.stack([np.full(input.n, tiles_y), np.full(input.n, tiles_x), tile_h, tile_w, limit], axis=1)
    tiles = tiles.astype(np.int32)
    return Plan(
        input.shapes, {"tiles": tiles}, {"luma": luma_only}, kernel=functools.partial(_equalize, lab=lab_tables())
    )


# ---- CPU


@kernel
def _equalize(image, out, tiles, luma, lab):
    height, width, channels = image.shape
    if image.size == 0:
        return
    size, luma = height * width, luma and channels == 3
    tables = empty((tiles[0], tiles[1], 256), np.uint8)
    pixels, leveled = image.reshape(size, channels), out.reshape(size, channels)
    planes = empty((3, size if channels == 3 else 0), np.uint8)
    if luma:
        rgb_to_lab(pixels, planes, lab)
    elif channels == 3:
        _to_planes(pixels, planes[0], planes[1], planes[2])
    source, target = planes, planes
    if channels == 1:
        source, target = image.reshape(1, size), out.reshape(1, size)
    for k in range(1 if luma else channels):
        plane = source[k].reshape(height, width)
        _fill_tables(plane, tables, np.int64(tiles[2]), np.int64(tiles[3]), np.int64(tiles[4]))
        _mix(plane, target[k].reshape(height, width), tables, np.int64(tiles[2]), np.int64(tiles[3]))
    if luma:
        lab_to_rgb(planes, leveled, lab)
    elif channels == 3:
        _to_pixels(planes[0], planes[1], planes[2], leveled)


_equalize.fallback()


@kernel
def _to_planes(pixels, red, green, blue):
    for i in range(pixels.shape[0]):
        red[i], green[i], blue[i] = pixels[i, 0], pixels[i, 1], pixels[i, 2]


@_to_planes.fallback
def _(pixels, red, green, blue):
    red[:], green[:], blue[:] = pixels.T


@kernel
def _to_pixels(red, green, blue, pixels):
    for i in range(pixels.shape[0]):
        pixels[i, 0], pixels[i, 1], pixels[i, 2] = red[i], green[i], blue[i]


@_to_pixels.fallback
def _(red, green, blue, pixels):
    pixels.T[:] = red, green, blue


@kernel
def _reflected(i, size):
    """The place of pixel i if the image is reflected about its border pixels."""
    if size == 1:
        return 0
    i %= 2 * size - 2
    return i if i < size else 2 * size - 2 - i


@kernel
def _fill_tables(plane, tables, tile_h, tile_w, limit):
    height, width = plane.shape
    counts, second = empty(256, np.int32), empty(256, np.int32)
    third, fourth = empty(256, np.int32), empty(256, np.int32)
    for row in range(tables.shape[0]):
        for column in range(tables.shape[1]):
            counts[:] = 0
            second[:] = 0
            third[:] = 0
            fourth[:] = 0
            left, right = column * tile_w, (column + 1) * tile_w
            for i in range(row * tile_h, (row + 1) * tile_h):
                line = plane[i if i < height else _reflected(i, height)]
                part = line[left : min(right, width)]
                # Four sets of counters, so that a repeated value need not wait for its own counter.
                fours = part.size // 4 * 4
                for x in range(0, fours, 4):
                    counts[part[x]] += 1
                    second[part[x + 1]] += 1
                    third[part[x + 2]] += 1
                    fourth[part[x + 3]] += 1
                for x in range(fours, part.size):
                    counts[part[x]] += 1
                for x in range(max(left, width), right):
                    counts[line[_reflected(x, width)]] += 1
            for v in range(256):
                counts[v] += second[v] + third[v] + fourth[v]
            _fill_table(counts, tables[row, column], tile_h * tile_w, limit)


@_fill_tables.fallback
def _(plane, tables, tile_h, tile_w, limit):
    (rows, columns), (height, width) = tables.shape[:2], plane.shape
    reflect, size = _reflected.function, tile_h * tile_w
    lines = [y if y < height else reflect(y, height) for y in range(rows * tile_h)]
    places = [x if x < width else reflect(x, width) for x in range(columns * tile_w)]
    tiles = plane[np.ix_(lines, places)].reshape(rows, tile_h, columns, tile_w).swapaxes(1, 2).reshape(-1, size)
    for tile, table in zip(tiles, tables.reshape(-1, 256), strict=True):
        counts = np.bincount(tile, minlength=256).astype(np.int32)
        if limit > 0:
            cut = int(np.maximum(counts - limit, 0).sum())
            counts = np.minimum(counts, limit) + (cut >> 8)
            extra = cut & 255
            counts[: extra * max(256 // max(extra, 1), 1) : max(256 // max(extra, 1), 1)] += 1
        scale = np.float32(255) / np.float32(size)
        table[:] = np.minimum(np.rint(np.cumsum(counts).astype(np.float32) * scale), np.float32(255))


@kernel
def _fill_table(counts, table, area, limit):
    if limit > 0:
        most, cut = np.int32(limit), np.int32(0)
        for v in range(256):
            cut += max(counts[v] - most, np.int32(0))
            counts[v] = min(counts[v], most)
        each, extra = cut >> np.int32(8), cut & np.int32(255)
        for v in range(256):
            counts[v] += each
        step = max(256 // max(extra, 1), 1)
        for k in range(extra):
            counts[k * step] += np.int32(1)
    total = np.int32(0)
    for v in range(256):
        total += counts[v]
        counts[v] = total
    scale = np.float32(255) / np.float32(area)
    for v in range(256):
        table[v] = np.uint8(np.int32(min(np.rint(np.float32(counts[v]) * scale), np.float32(255))))


@kernel
def _mix(plane, out, tables, tile_h, tile_w):
    """The tables of a tile and its right, lower and lower right neighbours are interleaved, so that four bytes are read at
    once."""
    height, width = plane.shape
    rows, columns = tables.shape[0], tables.shape[1]
    quads = empty((columns + 1) * 256, np.int32)
    four = empty(width, np.int32)
    start = empty(width, np.int32)  # the place of the table of a pixel's four tiles
    right, left = empty(width, np.float32), empty(width, np.float32)
    for x in range(width):
        place = np.float32(x) * (np.float32(1) / np.float32(tile_w)) - np.float32(0.5)
        start[x] = np.int32(np.floor(place) + 1) * 256
        right[x] = place - np.floor(place)
        left[x] = np.float32(1) - right[x]
    current = -2
    for y in range(height):
        place = np.float32(y) * (np.float32(1) / np.float32(tile_h)) - np.float32(0.5)
        above = int(np.floor(place))
        lower = place - np.floor(place)
        upper = np.float32(1) - lower
        if above != current:
            current = above
            _fill_quads(tables[max(above, 0)], tables[min(above + 1, rows - 1)], quads)
        line = plane[y]
        for x in range(width):
            four[x] = quads[np.uint32(start[x] + np.int32(line[x]))]
        _mix_row(four, left, right, upper, lower, out[y])


@_mix.fallback
def _(plane, out, tables, tile_h, tile_w):
    above, lower = _between(plane.shape[0], tile_h)
    before, right = _between(plane.shape[1], tile_w)
    one = np.float32(1)
    rows = [np.clip(above + k, 0, tables.shape[0] - 1)[:, None] for k in (0, 1)]
    columns = [np.clip(before + k, 0, tables.shape[1] - 1) for k in (0, 1)]
    a, b, c, d = (tables[y, x, plane].astype(np.float32) for y in rows for x in columns)
    lower = lower[:, None]
    out[...] = np.rint((a * (one - right) + b * right) * (one - lower) + (c * (one - right) + d * right) * lower)


def _between(count: int, tile: int) -> tuple[np.ndarray, np.ndarray]:
    """The tile with the nearest middle before each of `count` pixels, and the share of the next one."""
    place = np.arange(count, dtype=np.float32) * (np.float32(1) / np.float32(tile)) - np.float32(0.5)
    first = np.floor(place)
    return first.astype(np.int64), place - first


@kernel
def _mix_row(four, left, right, upper, lower, target):
    byte = np.int32(255)
    for x in range(target.size):
        quad = four[x]
        # int32, because numba extends shifted numbers to 64 bits.
        a, b = np.float32(np.int32(quad & byte)), np.float32(np.int32((quad >> np.int32(8)) & byte))
        c, d = np.float32(np.int32((quad >> np.int32(16)) & byte)), np.float32(np.int32((quad >> np.int32(24)) & byte))
        value = (a * left[x] + b * right[x]) * upper + (c * left[x] + d * right[x]) * lower
        target[x] = np.uint8(np.int32(np.rint(value)))


@kernel
def _fill_quads(upper, lower, quads):
    columns = upper.shape[0]
    for k in range(columns + 1):
        a, b = max(k - 1, 0), min(k, columns - 1)
        above_a, above_b, below_a, below_b = upper[a], upper[b], lower[a], lower[b]
        quad = quads[k * 256 : (k + 1) * 256]
        for v in range(256):
            quad[v] = (
                np.int32(above_a[v])
                | (np.int32(above_b[v]) << np.int32(8))
                | (np.int32(below_a[v]) << np.int32(16))
                | (np.int32(below_b[v]) << np.int32(24))
            )


# ---- GPU


@clahe.cuda("clahe.cu")
def _(launch, image, out, *, tiles, luma):
    height, width, channels = image.shapes.T
    planes = np.where(luma & (channels == 3), 1, channels)
    sizes = tiles[:, 0].astype(np.int64) * tiles[:, 1] * planes * 256
    fields, macros = {"tables": launch.scratch(sizes, np.uint8)}, {"PIXELS": _PER_THREAD, **_lab_macros()}
    launch("tables", np.where(height * width, sizes, 0), per_sample=fields, macros=macros)  # a block for each tile
    launch("clahe", -(-(height * width) // _PER_THREAD), per_sample=fields, macros=macros)


@functools.cache
def _lab_macros() -> dict[str, str]:
    """The tables and matrices of Lab as constants of the kernels."""
    macros = {}
    tables = lab_tables()._asdict()
    for name in ("linear", "root", "lightness", "gamma", "to_xyz", "to_rgb"):
        table = tables[name]
        macros[f"LAB_{name.upper()}"] = ",".join(map(str, table[:_ROOTS] if name == "root" else table))
    return macros
