"""`ndd.warp_affine` beside DALI (bit for bit), OpenCV and the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, check_same, outcome
from warp_calls import affine, layouts_and_pairs, numbers, picture

import ndd

_IMAGE_TYPES = ("uint8", "int16", "int32", "float32")

REGISTRY_CASES = {
    "warp_affine": each_of(
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0]]},
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0]], "interp_type": 0, "fill_value": 9.0, "size": [30, 20]},
        # Halves: points between two pixels and numbers between two whole ones.
        {"matrix": [[1.0, 0.25, -2.5], [0.25, 0.75, 0.5]], "fill_value": 300.5},
        {"matrix": [[1.0, 0.25, -2.5], [0.25, 0.75, 0.5]], "interp_type": 0, "fill_value": -2.5},
        layouts=("HWC", "FHWC"),
        dtypes=_IMAGE_TYPES,
    ),
}


def arguments(rng, module, axes, target, matrix):
    result = {"matrix": module.tensor(matrix), "interp_type": int(rng.integers(0, 2))}
    result["fill_value"] = [None, 7.0, 300.5, -9.25, 2.5][rng.integers(0, 5)]
    result["inverse_map"] = bool(rng.integers(0, 2))
    if rng.integers(0, 2):
        result["size"] = [float(v) for v in rng.integers(1, 50, axes)]
    if target:
        result["dtype"] = getattr(module, target)
    return result


@pytest.mark.parametrize(("layout", "pair"), layouts_and_pairs("HWC", "FHWC", "DHWC", "FDHWC", None))
def test_random_calls_are_bit_for_bit_those_of_dali(dali, layout, pair):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        letters = layout or "HWC"
        axes = 3 if "D" in letters else 2
        samples = [picture(rng, letters, pair[0]) for _ in range(2)]
        # Every other map has points that lie between two pixels, and halves to be rounded.
        matrix = affine(rng, axes, 4 * (seed % 2))
        if axes == 3:
            matrix[:, :3] = np.round(matrix[:, :3] * 64) / 64  # of 3-D inverses the last bit differs

        def call(m, samples=samples, matrix=matrix, seed=seed, axes=axes):
            options = arguments(np.random.default_rng(seed), m, axes, pair[1], matrix)
            options["inverse_map"] |= axes == 3
            return m.warp_affine(m.batch(samples, layout=layout), **options)

        assert check_same(dali, call, note=(layout, pair, seed))


def test_rows_longer_than_a_tile_as_dali(dali):
    rng = np.random.default_rng(1)
    for kind in ("float32", "uint8"):
        for width in (255, 256, 257, 511, 513, 1100):
            image, matrix = numbers(rng, (5, width, 3), kind), affine(rng, 2)
            for interp in (0, 1):
                check_same(
                    dali,
                    lambda m, i=image, x=matrix, k=interp: m.warp_affine(
                        m.tensor(i, layout="HWC"), matrix=m.tensor(x), interp_type=k
                    ),
                    note=width,
                )


def test_volumes_through_an_inverse_as_dali(dali):
    rng = np.random.default_rng(2)
    for _ in range(6):
        volume, matrix = numbers(rng, (6, 7, 8, 2), "float32"), affine(rng, 3)
        check_same(
            dali,
            lambda m, v=volume, x=matrix: m.warp_affine(
                m.tensor(v, layout="DHWC"), matrix=m.tensor(x), inverse_map=False
            ),
            1e-5,
        )


WAYS = [
    lambda m, x, k: m.warp_affine(x, matrix=m.batch(list(k))),
    lambda m, x, k: m.warp_affine(x, matrix=m.tensor(k[0])),
    lambda m, x, k: m.warp_affine(x, matrix=k[0]),
    lambda m, x, k: m.warp_affine(x, m.batch(list(k))),
    lambda m, x, k: m.warp_affine(x, m.tensor(k[0])),
    lambda m, x, k: m.warp_affine(x, matrix=m.batch(list(k)), interp_type=0, fill_value=3),
    lambda m, x, k: m.warp_affine(x, matrix=m.batch(list(k)), size=m.batch([[4.0, 5.0], [6.5, 2.7], [1.0, 9.9]])),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_ways_to_pass_a_matrix_as_dali(dali, number):
    rng = np.random.default_rng(number)
    samples = [picture(rng, "HWC", "uint8") for _ in range(3)]
    maps = np.stack([affine(rng, 2) for _ in range(3)])
    assert check_same(dali, lambda m: WAYS[number](m, m.batch(samples, layout="HWC"), maps))


def test_a_matrix_for_each_frame_as_dali(dali):
    rng = np.random.default_rng(5)
    video = [numbers(rng, (f, 9, 8, 3), "uint8") for f in (2, 4)]
    maps = [np.stack([affine(rng, 2) for _ in v]) for v in video]

    def call(m):
        return m.warp_affine(m.batch(video, layout="FHWC"), matrix=m.per_frame(m.batch(maps)), fill_value=5)

    assert check_same(dali, call)


def matrices_for_images(m, case):
    rng = np.random.default_rng(8)
    images = [numbers(rng, (9, 8, 3), "uint8") for _ in range(2)]
    several = [np.stack([affine(rng, 2) for _ in range(count)]) for count in (3, 2)]
    batch, maps = m.batch(images, layout="HWC"), m.batch(several, layout="F**")
    if case == "sizes":
        return m.warp_affine(batch, maps, size=m.batch([np.float32([5, 6]), np.float32([4, 4])]))
    if case == "per_frame":
        return m.warp_affine(m.batch(images), m.per_frame(m.batch(several)), dtype=m.float32, fill_value=3)
    if case == "one list of maps":
        return m.warp_affine(batch, m.tensor(several[0], layout="F**"))
    if case == "tensors":
        return m.warp_affine(m.tensor(images[0], layout="HWC"), m.tensor(several[0], layout="F**"))
    if case == "volumes":
        maps = m.batch([np.stack([affine(rng, 3, 4)] * 2)] * 2, layout="F**")
        return m.warp_affine(m.batch([np.stack([i] * 4) for i in images], layout="DHWC"), maps)
    if case == "filters":
        weights = [np.stack([numbers(rng, (3, 3), "float32")] * count) for count in (3, 2)]
        return m.filter(batch, m.batch(weights, layout="F**"))
    shifts = [np.stack([[[1, 0, 2], [0, 1, k], [0, 0, 1]] for k in range(2)]).astype(np.float32)] * 2
    return m.experimental.warp_perspective(batch, m.batch(shifts, layout="F**"))


SEVERAL = ["sizes", "per_frame", "one list of maps", "tensors", "volumes", "filters", "perspective"]


@pytest.mark.parametrize("what", SEVERAL)
def test_images_with_several_matrices_make_videos_as_dali(dali, what):
    """The input with the leading F need not be the first one; the layout is known before anything runs."""
    assert check_same(dali, lambda m: matrices_for_images(m, what))
    with ndd.EvalMode.deferred:
        result = matrices_for_images(ndd, what)
        assert (result.layout, result.ndim) == (("FDHWC", 5) if what == "volumes" else ("FHWC", 4))


@pytest.mark.parametrize("what", ["sizes", "filters"])
@pytest.mark.drawn(1)
def test_images_with_several_matrices_on_the_gpu(emulated_gpu, what):
    expected = [np.asarray(sample) for sample in matrices_for_images(ndd, what)]

    class OnGpu:
        """ndd, with batches on the GPU."""

        float32, warp_affine, filter = ndd.float32, ndd.warp_affine, ndd.filter

        @staticmethod
        def batch(samples, layout=None):
            result = ndd.batch(samples, layout=layout)
            return result.gpu() if layout == "HWC" else result

    result = matrices_for_images(OnGpu, what)
    assert result.device.device_type == "gpu"
    for item, other in zip(result.cpu(), expected, strict=True):
        np.testing.assert_allclose(np.asarray(item).astype(int), other.astype(int), atol=1)


def test_a_mask_with_several_matrices():
    mask = ndd.tensor(np.arange(6, dtype=np.uint8).reshape(2, 3), layout="HW")
    result = ndd.warp_affine(mask, ndd.tensor(np.float32([[[1, 0, k], [0, 1, 0]] for k in range(2)]), layout="F**"))
    assert result.layout == "FHW"
    assert np.asarray(result).tolist() == [[[0, 1, 2], [3, 4, 5]], [[1, 2, 2], [4, 5, 5]]]


def test_nested_lists():
    image = ndd.tensor(np.arange(12, dtype=np.uint8).reshape(3, 4, 1), layout="HWC")
    result = [ndd.warp_affine(image, matrix=x) for x in ([[1, 0, 1], [0, 1, 0]], [1, 0, 1, 0, 1, 0])]
    for out in result:
        assert np.asarray(out)[..., 0].tolist() == [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]]


IMAGE = np.ones((3, 4, 1), np.uint8)
EYE = np.eye(2, 3, dtype=np.float32)
MISUSES = [
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC")),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=np.eye(3, dtype=np.float32)),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=EYE, interp_type=2),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=EYE, size=[3.0]),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=EYE, size=[-1.0, 3.0]),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=EYE, dtype=m.int16),
    lambda m: m.warp_affine(m.tensor(IMAGE.astype(np.uint16), layout="HWC"), matrix=EYE),
    lambda m: m.warp_affine(m.tensor(IMAGE.astype(np.float16), layout="HWC"), matrix=EYE),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="CHW"), matrix=EYE),
    lambda m: m.warp_affine(m.tensor(IMAGE, layout="HWC"), matrix=0 * EYE, inverse_map=False),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    assert not check_same(dali, MISUSES[number])


def test_images_without_pixels_are_filled():
    """DALI crashes."""
    for shape in ((0, 5, 3), (5, 0, 3), (5, 5, 0)):
        image = ndd.tensor(np.zeros(shape, np.uint8), layout="HWC")
        result = np.asarray(ndd.warp_affine(image, matrix=EYE, size=[2.0, 3.0], fill_value=9))
        assert result.shape == (2, 3, shape[2])
        assert (result == 9).all()


def test_points_that_are_no_numbers_lie_outside():
    image = ndd.tensor(np.full((3, 4, 3), 7, np.uint8), layout="HWC")
    for bad in (np.nan, 1e12, -1e12, np.inf):
        for interp in (0, 1):
            matrix = np.array([[1, 0, bad], [0, 1, 0]], np.float32)
            assert (np.asarray(ndd.warp_affine(image, matrix=matrix, fill_value=5, interp_type=interp)) == 5).all()


def test_opencv_with_its_origin():
    """The same map from the middle of the first pixel, as OpenCV has it."""
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(3)
    image, m = numbers(rng, (40, 50, 3), "uint8"), affine(rng, 2).astype(np.float64)
    own = m.copy()
    own[:, 2] += m[:, :2] @ [0.5, 0.5] - 0.5
    expected = cv2.warpAffine(image, own, (50, 40), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    result = np.asarray(ndd.warp_affine(ndd.tensor(image, layout="HWC"), matrix=m, fill_value=0))
    assert_same_values([result], [expected], off_by_one=0.02)


@pytest.mark.parametrize(("layout", "pair"), layouts_and_pairs("HWC", "FHWC", "DHWC"))
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, layout, pair):
    rng = np.random.default_rng(6)
    axes = 3 if "D" in layout else 2
    batch = ndd.batch([picture(rng, layout, pair[0]) for _ in range(3)], layout=layout)
    for seed in range(4):
        options = arguments(np.random.default_rng(seed), ndd, axes, pair[1], affine(rng, axes))
        cpu, gpu = ndd.warp_affine(batch, **options), ndd.warp_affine(batch.gpu(), **options)
        for a, b in zip(arrays_of(gpu), arrays_of(cpu), strict=True):
            if options["interp_type"] == 0:  # a point may lie between two pixels
                assert np.count_nonzero(a != b) <= 0.01 * a.size
            else:
                # The CPU adds steps up, as DALI does on it: its points are off by some 1e-5 pixel.
                assert np.abs(a.astype(np.float64) - b).max(initial=0) <= max(
                    1 if a.dtype.kind != "f" else 0, 2e-4 * np.abs(b.astype(np.float64)).max(initial=1)
                )


def test_every_mode_of_rgb_pixels_as_dali(dali):
    """RGB in bytes has a way of its own on the CPU: where its rows begin and end."""
    rng = np.random.default_rng(7)
    for shape in ((1, 1, 3), (1, 2, 3), (2, 1, 3), (1, 3, 3), (3, 3, 3), (2, 40, 3), (40, 2, 3)):
        image = numbers(rng, shape, "uint8")
        for size in (None, [1.0, 1.0], [1.0, 30.0], [30.0, 1.0], [9.0, 9.0]):
            for fill in (None, 200.0):
                for interp in (0, 1):
                    matrix = affine(rng, 2, 2)
                    options = {} if size is None else {"size": size}

                    def call(m, image=image, matrix=matrix, fill=fill, interp=interp, options=options):
                        return m.warp_affine(
                            m.tensor(image, layout="HWC"),
                            matrix=m.tensor(matrix), fill_value=fill, interp_type=interp, **options,
                        )  # fmt: skip

                    assert check_same(dali, call, note=(shape, size, fill, interp))


def test_output_dtype_is_the_old_name(dali):
    image = numbers(np.random.default_rng(0), (4, 5, 3), "uint8")

    def call(m):
        return m.warp_affine(m.tensor(image, layout="HWC"), matrix=EYE, output_dtype=m.float32)

    with pytest.warns(Warning, match="output_dtype"):
        result = outcome(ndd, call)
    np.testing.assert_array_equal(arrays_of(result)[0], image.astype(np.float32))


def test_pil():
    from PIL import Image

    image, matrix = numbers(np.random.default_rng(0), (40, 51, 3), "uint8"), [0.9, 0.2, -3.0, -0.1, 1.05, 2.0]
    expected = Image.fromarray(image).transform((51, 40), Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST)
    result = ndd.warp_affine(ndd.tensor(image, layout="HWC"), matrix=matrix, fill_value=0, interp_type=0)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))
