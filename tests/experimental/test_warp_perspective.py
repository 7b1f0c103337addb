"""`ndd.experimental.warp_perspective` beside DALI (bit for bit), OpenCV and the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, check_same
from warp_calls import numbers, perspective, picture

import ndd
from ndd.experimental.perspective import beyond_opencv, keeps_sign, multiplies_and_adds, warp_rgb

REGISTRY_CASES = {
    "experimental.warp_perspective": each_of(
        {"matrix": [[1.0, 0.2, 3.0], [-0.1, 0.9, 1.0], [0.0, 0.001, 1.0]]},
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0], [0.0, 0.001, 1.0]], "interp_type": 0, "fill_value": [9.0]},
        {"matrix": [[1.0, 0.2, 3.0], [-0.1, 0.9, 1.0], [0.0, 0.001, 1.0]], "interp_type": 2, "border_mode": "reflect"},
        layouts=("HWC", "FHWC", "CHW"),
        dtypes=("uint8", "uint16", "int16", "float32"),
    ),
}

BORDERS = ["constant", "replicate", "reflect", "reflect_101", "wrap"]
TYPES = ["uint8", "uint16", "int16", "float32"]
EYE = np.eye(3, dtype=np.float32)


def arguments(rng, module, channels=1):
    result = {"matrix": module.tensor(perspective(rng, 4 * int(rng.integers(0, 2))))}
    result["interp_type"] = int(rng.integers(0, 3))
    result["border_mode"] = str(rng.choice(BORDERS))
    result["pixel_origin"] = str(rng.choice(["corner", "center"]))
    result["inverse_map"] = bool(rng.integers(0, 2))
    if rng.integers(0, 2):
        result["size"] = [float(v) for v in rng.integers(1, 50, 2) + rng.choice([0.0, 0.3, 0.5])]
    if rng.integers(0, 2):
        result["fill_value"] = [float(v) for v in rng.uniform(-9, 300, channels)]
    return result


def given_for(seed, m, channels):
    return arguments(np.random.default_rng(seed), m, channels)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("layout", ["HW", "HWC", "FHWC", "CHW", "FCHW", None])
@pytest.mark.drawn(1)
def test_random_calls_are_bit_for_bit_those_of_dali(dali, layout, kind):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        # Where samples differ in their number of channels, DALI takes the first one's.
        samples = [picture(rng, layout or "HWC", kind)]
        samples.append(numbers(rng, samples[0].shape, kind))
        channels = samples[0].shape[-1] if layout in ("HWC", "FHWC") else 1

        def call(m, samples=samples, seed=seed, channels=channels):
            return m.experimental.warp_perspective(m.batch(samples, layout=layout), **given_for(seed, m, channels))

        assert check_same(dali, call, note=(layout, kind, seed))


WAYS = [
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=m.batch(list(k))),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=m.tensor(k[0])),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=k[0]),
    lambda m, x, k: m.experimental.warp_perspective(x, m.batch(list(k))),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=k[0], size=m.batch([[4.0, 5.0], [6.5, 2.7], [0.0, 9.9]])),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=k[0], size=5.5),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=k[0], size=m.batch([4.0, 5.0, 7.5])),
    lambda m, x, k: m.experimental.warp_perspective(x, matrix=k[0], fill_value=2.5),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_ways_to_pass_a_matrix_as_dali(dali, number):
    rng = np.random.default_rng(number)
    samples = [numbers(rng, (5 + i, 9, 3), "uint8") for i in range(3)]
    maps = np.stack([perspective(rng) for _ in range(3)])
    assert check_same(dali, lambda m: WAYS[number](m, m.batch(samples, layout="HWC"), maps))


def test_a_matrix_for_each_frame_as_dali(dali):
    rng = np.random.default_rng(5)
    video = [numbers(rng, (f, 9, 8, 3), "uint8") for f in (2, 4)]
    maps = [np.stack([perspective(rng) for _ in v]) for v in video]

    def call(m):
        matrix = m.per_frame(m.batch(maps))
        return m.experimental.warp_perspective(m.batch(video, layout="FHWC"), matrix=matrix, fill_value=5.0)

    assert check_same(dali, call)


def _image(m, kind="uint8"):
    return m.tensor(np.ones((3, 4, 3), kind), layout="HWC")


MISUSES = [
    lambda m: m.experimental.warp_perspective(_image(m)),
    lambda m: m.experimental.warp_perspective(_image(m), matrix=np.eye(2, 3, dtype=np.float32)),
    lambda m: m.experimental.warp_perspective(_image(m), matrix=EYE, interp_type=3),
    lambda m: m.experimental.warp_perspective(_image(m), matrix=EYE, border_mode="mirror"),
    lambda m: m.experimental.warp_perspective(_image(m), matrix=EYE, pixel_origin="middle"),
    lambda m: m.experimental.warp_perspective(_image(m), matrix=EYE, fill_value=[1.0, 2.0]),
    lambda m: m.experimental.warp_perspective(_image(m, "int32"), matrix=EYE),
    lambda m: m.experimental.warp_perspective(_image(m, "float16"), matrix=EYE),
    lambda m: m.experimental.warp_perspective(m.tensor(np.ones((3, 4), np.uint8), layout="WH"), matrix=EYE),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    assert not check_same(dali, MISUSES[number])


def test_a_matrix_without_an_inverse():
    """DALI paints the whole image with one pixel."""
    with pytest.raises(ValueError, match="singular"):
        ndd.experimental.warp_perspective(_image(ndd), matrix=0 * EYE, inverse_map=False).evaluate()


def test_beyond_dali():
    """More channels than OpenCV takes at once; planes with a fill value each; images without pixels."""
    rng = np.random.default_rng(1)
    matrix, image = perspective(rng), numbers(rng, (9, 8, 7), "uint8")
    for fill in ([5.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]):
        whole = np.asarray(
            ndd.experimental.warp_perspective(ndd.tensor(image, layout="HWC"), matrix=matrix, fill_value=fill)
        )
        planes = ndd.tensor(np.ascontiguousarray(image.transpose(2, 0, 1)), layout="CHW")
        result = np.asarray(ndd.experimental.warp_perspective(planes, matrix=matrix, fill_value=fill))
        np.testing.assert_array_equal(result.transpose(1, 2, 0), whole)
        for c in range(7):
            item = ndd.tensor(np.ascontiguousarray(image[..., c]), layout="HW")
            single = ndd.experimental.warp_perspective(item, matrix=matrix, fill_value=[fill[c % len(fill)]])
            np.testing.assert_array_equal(whole[..., c], np.asarray(single))
    empty = ndd.tensor(np.zeros((0, 5, 3), np.uint8), layout="HWC")
    result = np.asarray(ndd.experimental.warp_perspective(empty, matrix=EYE, size=[2.0, 3.0], fill_value=[1, 2, 3]))
    assert (result == [1, 2, 3]).all()
    assert result.shape == (2, 3, 3)


def test_opencv():
    """`pixel_origin="center"` is OpenCV's."""
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(3)
    image, m = numbers(rng, (40, 50, 3), "uint8"), perspective(rng)
    expected = cv2.warpPerspective(image, m.astype(np.float64), (50, 40), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    result = ndd.experimental.warp_perspective(ndd.tensor(image, layout="HWC"), matrix=m, pixel_origin="center")
    np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, kind):
    for seed in range(24):
        rng = np.random.default_rng(seed)
        layout = ("HWC", "CHW", "HW", "FHWC")[seed % 4]
        batch = ndd.batch([picture(rng, layout, kind) for _ in range(3)], layout=layout)
        options = arguments(rng, ndd)
        cpu = ndd.experimental.warp_perspective(batch, **options)
        gpu = ndd.experimental.warp_perspective(batch.gpu(), **options)
        for a, b in zip(arrays_of(gpu), arrays_of(cpu), strict=True):
            assert a.shape == b.shape
            off = np.abs(a.astype(np.float64) - b)
            least = 1 if kind != "float32" else 0
            scale = np.abs(b.astype(np.float64)).max(initial=1)
            # A point may lie between two pixels or two of the 32 places where int16 is read.
            many = off > max(least, 1e-4 * scale)
            steps = kind == "int16" or (layout[-1] == "C" and a.shape[-1] == 2)
            allowed = 0.1 if options["interp_type"] == 0 or steps else 0.001
            assert np.count_nonzero(many) <= max(4, allowed * a.size), (seed, kind, options, a.shape)


FAR = [
    [1.0, 0.0, 2e9, 0.0, 1.0, -2e9, 0.0, 0.0, 1.0],
    [1.0, 0.2, 1e5, 0.1, 1.0, 3.0, 0.0, 0.0, 1.0],
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.0, -3.0],  # the vanishing line lies in the picture
    [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    [1.0, 0.0, float("nan"), 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    [1.0, 0.0, float("inf"), 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    [1e30, 0.0, 1e38, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
]


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interp", [0, 1, 2])
@pytest.mark.drawn(1)
def test_points_far_outside(emulated_gpu, border, interp):
    """OpenCV, and so DALI, takes hours or crashes for some of these."""
    rng = np.random.default_rng(0)
    for matrix in FAR:
        for shape in ((1, 7, 3), (6, 1, 3), (1, 1, 3), (9, 8, 3)):
            image = ndd.tensor(numbers(rng, shape, "uint8"), layout="HWC")
            options = {
                "matrix": matrix,
                "border_mode": border,
                "interp_type": interp,
                "fill_value": 7.0,
                "size": [9, 10],
            }
            result = [np.asarray(ndd.experimental.warp_perspective(i, **options).cpu()) for i in (image, image.gpu())]
            if border == "constant" and matrix in FAR[:2] + FAR[4:]:
                assert (result[0] == 7).all(), (matrix, shape)
            if matrix in FAR[:2]:
                off = np.count_nonzero(np.abs(result[0].astype(int) - result[1]) > 1)
                assert off <= 0.1 * result[0].size or border != "constant" or interp == 1, (matrix, shape)


@pytest.mark.parametrize("x", [0, 8])
@pytest.mark.parametrize("y", [0, 6])
def test_each_corner_pixel_is_looked_at_before_opencv_is_called(x, y):
    """A repeated image is read very far outside for one pixel alone, whose third component is almost 0."""
    third = np.array([1.0 if x == 0 else -1.0, 1.0 if y == 0 else -1.0, 0.0])
    third[2] = 1e-9 - third[0] * x - third[1] * y
    m = np.array([[0.0, 0, 1], [0, 0, 1], third])
    sources, targets = np.array([[7, 9]]), np.array([[7, 9]])
    assert beyond_opencv(m[None], sources, targets, False, BORDERS.index("reflect"))[0]
    m[2, 2] += 1
    assert not beyond_opencv(m[None], sources, targets, False, BORDERS.index("reflect"))[0]


def test_the_way_around_opencv_gives_the_same():
    rng = np.random.default_rng(1)
    image = numbers(rng, (20, 30, 3), "float32")
    for border in ("reflect", "reflect_101", "wrap"):
        for interp in (0, 1, 2):
            for step in (3.25, 60 * 3.0):  # three times the image away; it takes longer strides for the second
                m = [1.0, 0.25, step, 0.5, 1.0, -step, 0.0, 0.0, 1.0]
                options = {"matrix": m, "border_mode": border, "interp_type": interp, "pixel_origin": "center"}
                near = ndd.experimental.warp_perspective(ndd.tensor(image, layout="HWC"), size=[16, 40], **options)
                wide = ndd.experimental.warp_perspective(ndd.tensor(image, layout="HWC"), size=[16, 7000], **options)
                np.testing.assert_allclose(np.asarray(near), np.asarray(wide)[:, :40], atol=0.02 if interp else 0)


@pytest.mark.skipif(not multiplies_and_adds(), reason="OpenCV rounds differently on this processor")
def test_rgb_images_are_opencvs_bit_for_bit():
    """Rows of any length, of which OpenCV works out the end in another order; points that are no numbers are left to it."""
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(2)
    taken = 0
    for k in range(96):
        image, size = numbers(rng, (*rng.integers(2, 80, 2), 3), "uint8"), (16 + k, int(rng.integers(3, 90)))
        m = perspective(rng) if k % 4 else rng.integers(-2, 3, (3, 3)).astype(np.float32)
        fill, out = rng.integers(0, 256, 3).astype(np.uint8), np.empty((*size[::-1], 3), np.uint8)
        expected = cv2.warpPerspective(image, m.astype(np.float64), size, flags=1 | 16, borderValue=fill.tolist())
        if keeps_sign(m[None].astype(np.float64), np.array([size[::-1]]))[0]:
            warp_rgb.waited_for(image, out, m.astype(np.float64), fill)
            np.testing.assert_array_equal(out, expected, err_msg=f"{k}: {m.tolist()}")
            taken += 1
        options = {"matrix": m, "fill_value": fill.tolist(), "size": [*size[::-1]], "pixel_origin": "center"}
        result = ndd.experimental.warp_perspective(ndd.tensor(image, layout="HWC"), **options)
        np.testing.assert_array_equal(np.asarray(result), expected, err_msg=f"{k}: {m.tolist()}")
    assert 40 <= taken < 96
