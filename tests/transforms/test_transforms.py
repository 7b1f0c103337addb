"""ndd.transforms beside DALI: values, frames, inputs, misuse; and what the maps mean for points and images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import Case, each_of
from compare import check_same, outcome

import ndd

REGISTRY_INPUTS = {"matrix 2x3": (lambda rng, i, dtype: np.array([[1, 0.1 * i, 2], [-0.1, 0.9, 1]], np.float32), None)}
REGISTRY_CASES = {
    "transforms.translation": each_of({"offset": [2.0, 3.0]}, inputs=()),
    "transforms.scale": each_of({"scale": [2.0, 3.0], "center": [1.0, 1.0]}, inputs=()),
    "transforms.rotation": each_of({"angle": 30.0}, {"angle": 30.0, "axis": [1.0, 2.0, 3.0]}, inputs=()),
    "transforms.shear": each_of({"shear": [0.1, 0.3]}, {"angles": [10.0, 20.0]}, inputs=()),
    "transforms.crop": each_of({}, {"from_start": [0.1, 0.2], "from_end": [0.9, 0.7]}, inputs=()),
    "transforms.combine": [Case({}, inputs=("matrix 2x3", "matrix 2x3"), dtypes=("float32",))],
}

RNG = np.random.default_rng(3)
PLANE = [RNG.standard_normal((2, 3)).astype(np.float32) for _ in range(3)]
SPACE = [RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(3)]
FRAMES = [RNG.standard_normal((f, 2, 3)).astype(np.float32) for f in (2, 4, 1)]


def vectors(module, size, n=3):
    return module.batch(list(np.random.default_rng(size).standard_normal((n, size)).astype(np.float32)))


def framed(module, size, counts=(2, 4, 1)):
    rng = np.random.default_rng(size)
    return module.batch([rng.standard_normal((f, size)).astype(np.float32) for f in counts], layout="F*")


def angles(module, framed=False):
    if framed:
        return module.batch([np.float32([10, -20]), np.float32([1, 2, 3, 4]), np.float32([90])], layout="F")
    return module.batch([np.float32(a) for a in (10, 720.5, -135)])


VALUES = {
    "translation": [
        *[lambda m, k=k: {"offset": [1.5] * k} for k in (1, 2, 3, 5)],
        lambda m: {"offset": 2},
        lambda m: {"offset": vectors(m, 2)},
        lambda m: {"offset": m.tensor([1.0, 2.0])},
        lambda m: {"offset": np.array([1, 2])},
        lambda m: {"offset": framed(m, 2)},
        lambda m: {"offset": framed(m, 2, (3, 3, 3))},
    ],
    "scale": [
        lambda m: {"scale": 2},
        lambda m: {"scale": [2.0, 3.0]},
        lambda m: {"scale": vectors(m, 3)},
        lambda m: {"scale": [2.0, 3.0], "center": [0.3, 0.7]},
        lambda m: {"scale": [2.0, 3.0], "center": 5},
        lambda m: {"scale": vectors(m, 2), "center": vectors(m, 2)},
        lambda m: {"scale": 1.7, "ndim": 3},
        lambda m: {"scale": [2.0, 3.0], "ndim": 3},
        lambda m: {"scale": framed(m, 2), "center": vectors(m, 2)},
        lambda m: {"scale": [3, 4], "center": framed(m, 2)},
        lambda m: {"scale": framed(m, 2), "center": framed(m, 2)},
    ],
    "rotation": [
        *[lambda m, a=a: {"angle": a} for a in (0, 30, 45, 90, -120, 360, 1e6)],
        lambda m: {"angle": angles(m)},
        lambda m: {"angle": angles(m), "center": [1, 2]},
        lambda m: {"angle": angles(m), "center": vectors(m, 2)},
        lambda m: {"angle": angles(m), "axis": [1, 2, 3]},
        lambda m: {"angle": angles(m), "axis": vectors(m, 3), "center": [1, 2, 3]},
        lambda m: {"angle": angles(m, True)},
        lambda m: {"angle": angles(m, True), "center": framed(m, 2)},
        lambda m: {"angle": angles(m), "axis": framed(m, 3)},
    ],
    "shear": [
        lambda m: {"shear": [0.5, 2]},
        lambda m: {"shear": vectors(m, 2), "center": [1, 2]},
        lambda m: {"shear": m.batch([np.arange(6, dtype=np.float32).reshape(3, 2) * k for k in (1, 2, 3)])},
        lambda m: {"shear": m.tensor(np.arange(6, dtype=np.float32).reshape(3, 2)), "center": vectors(m, 3)},
        lambda m: {"angles": [10, -20]},
        lambda m: {"angles": [90, -90]},
        lambda m: {"angles": m.tensor(np.arange(6, dtype=np.float32).reshape(3, 2)), "center": [1, 2, 3]},
        lambda m: {"shear": framed(m, 2), "center": [1, 2]},
        lambda m: {"shear": m.tensor(np.arange(24, dtype=np.float32).reshape(4, 3, 2), layout="F**")},
    ],
    "crop": [
        lambda m: {},
        lambda m: {"from_start": [0.1, 0.2], "from_end": [0.8, 0.7]},
        lambda m: {"from_start": [0.1, 0.2], "from_end": 0.7, "to_start": [0.3, 0.4], "to_end": [5, 9]},
        lambda m: {"from_start": vectors(m, 2), "to_end": vectors(m, 2)},
        lambda m: {"from_start": [8, 2], "from_end": [1, 7], "to_start": [9, 0.4], "to_end": [5, 9], "absolute": True},
        lambda m: {"from_start": [8, 2], "from_end": [1, 7]},
        lambda m: {"from_start": [0.8, 0.2], "from_end": [0.8, 0.7]},
        lambda m: {"from_start": vectors(m, 3), "to_start": [0.3, 0.4, 1]},
        lambda m: {"from_start": framed(m, 2), "to_start": vectors(m, 2)},
    ],
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
def test_values_as_dali(dali, name):
    for i, arguments in enumerate(VALUES[name]):
        assert check_same(dali, lambda m, a=arguments: getattr(m.transforms, name)(**a(m)), 1e-6, (name, i))


@pytest.mark.oracle
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.drawn(1)
def test_after_and_before_the_map_of_an_input(dali, name, reverse):
    good = 0
    for i, arguments in enumerate(VALUES[name]):
        for kind, layout in ((PLANE, None), (SPACE, "**"), (FRAMES, "F**")):
            good += check_same(
                dali,
                lambda m, a=arguments, k=kind, x=layout: getattr(m.transforms, name)(
                    m.batch(k, layout=x), reverse_order=reverse, **a(m)
                ),
                1e-6,
                (name, i, layout),
            )
    assert good >= 6


@pytest.mark.oracle
@pytest.mark.parametrize("reverse", [False, True])
def test_combine_bit_for_bit_as_dali(dali, reverse):
    good = 0
    options = [
        (PLANE, PLANE[::-1]),
        (SPACE, SPACE[::-1], SPACE, SPACE),
        (FRAMES, FRAMES),
        (FRAMES, PLANE, PLANE),
        (PLANE, FRAMES),
    ]
    for maps in options:

        def call(m, maps=maps):
            values = [m.batch(x, layout="F**" if x is FRAMES else None) for x in maps]
            return m.transforms.combine(*values, reverse_order=reverse)

        good += check_same(dali, call, 0.0, [x[0].shape for x in maps])
    assert good == len(options)
    for many in (False, True):
        kind = [np.float32([[1, 0, np.inf], [2, 1, 3]])]
        assert check_same(
            dali,
            lambda m, k=kind, n=many: m.transforms.combine(
                m.batch(k * 70) if n else m.tensor(k[0]), m.tensor(PLANE[0]), k[0].tolist(), reverse_order=reverse
            ),
        )


MISUSES = [
    lambda m, t: t.translation(),
    lambda m, t: t.translation(offset=[]),
    lambda m, t: t.translation(offset=m.batch([[1.0, 2.0], [1.0]])),
    lambda m, t: t.translation(offset=m.tensor(np.ones((2, 2), np.float32))),
    lambda m, t: t.translation(m.tensor(SPACE[0]), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(SPACE[0]), offset=[1]),
    lambda m, t: t.translation(m.tensor(PLANE[0], layout="HW"), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(FRAMES[0], layout="FHW"), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(FRAMES[0]), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(PLANE[0].astype(np.float64)), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(np.eye(3, dtype=np.float32)), offset=[1, 2]),
    lambda m, t: t.translation(m.tensor(np.ones(3, np.float32)), offset=[1, 2]),
    lambda m, t: t.translation(m.batch(FRAMES, layout="F**"), offset=framed(m, 2, (3, 4, 1))),
    lambda m, t: t.translation(m.tensor(FRAMES[2], layout="F**"), offset=m.tensor(np.ones((3, 2)), layout="F*")),
    lambda m, t: t.scale(),
    lambda m, t: t.scale(scale=[1, 2], center=[1, 2, 3]),
    lambda m, t: t.scale(scale=[1, 2], center=[]),
    lambda m, t: t.scale(scale=1, center=[1, 2]),
    lambda m, t: t.rotation(),
    lambda m, t: t.rotation(angle=30, axis=[1, 2]),
    lambda m, t: t.rotation(angle=30, center=[1, 2, 3]),
    lambda m, t: t.rotation(m.tensor(SPACE[0]), angle=30),
    lambda m, t: t.shear(),
    lambda m, t: t.shear(shear=[1, 2], angles=[1, 2]),
    lambda m, t: t.shear(shear=[1, 2, 3]),
    lambda m, t: t.shear(shear=[]),
    lambda m, t: t.shear(angles=[91, 0]),
    lambda m, t: t.shear(angles=m.batch([[0.0, -90.1]])),
    lambda m, t: t.crop(from_start=[]),
    lambda m, t: t.crop(from_start=[1, 2], from_end=[1, 2, 3]),
    lambda m, t: t.crop(m.tensor(SPACE[0])),
    lambda m, t: t.combine(m.tensor(PLANE[0])),
    lambda m, t: t.combine(m.tensor(PLANE[0]), m.tensor(SPACE[0])),
    lambda m, t: t.combine(m.tensor(FRAMES[0]), m.tensor(FRAMES[0])),
    lambda m, t: t.combine(m.tensor(FRAMES[0], layout="F**"), m.tensor(FRAMES[1], layout="F**")),
    lambda m, t: t.combine(m.tensor(PLANE[0], layout="HW"), m.tensor(PLANE[0])),
    lambda m, t: t.combine(m.tensor(PLANE[0].astype(np.float16)), m.tensor(PLANE[0].astype(np.float16))),
]


@pytest.mark.oracle
def test_misuse_as_dali(dali):
    for i, call in enumerate(MISUSES):
        assert not check_same(dali, lambda m, c=call: c(m, m.transforms), note=i)


def test_refused_where_dali_gives_numbers_without_meaning():
    for call in (
        lambda m: m.transforms.rotation(angle=10, axis=[0, 0, 0]),
        lambda m: m.transforms.combine(m.batch([PLANE[0], SPACE[0]]), m.batch([PLANE[0], SPACE[0]])),
    ):
        assert isinstance(outcome(ndd, call), RuntimeError)


def test_six_numbers_are_the_factors_in_space_row_by_row():
    """DALI takes such a list or refuses it, depending on the calls before."""
    numbers = np.arange(6, dtype=np.float32)
    expected = ndd.transforms.shear(shear=ndd.tensor(numbers.reshape(3, 2))).torch()
    for options in (numbers, numbers.tolist(), ndd.tensor(numbers)):
        np.testing.assert_array_equal(np.asarray(ndd.transforms.shear(shear=options)).reshape(3, 4), expected)


def test_what_the_maps_do_to_points():
    points = RNG.random((7, 2), np.float32)
    t = ndd.transforms
    move, turn = t.translation(offset=[3, -1]), t.rotation(angle=25, center=[0.5, 1])
    both = t.combine(move, turn)
    result = np.asarray(ndd.coord_transform(points, MT=both))
    angle = math.radians(25)
    matrix = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    np.testing.assert_allclose(result, (points + [3, -1] - [0.5, 1]) @ matrix.T + [0.5, 1], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(t.rotation(move, angle=25, center=[0.5, 1])), np.asarray(both), rtol=1e-6)
    box = t.crop(from_start=[10, 20], from_end=[30, 60], to_start=[0, 0], to_end=[1, 1])
    np.testing.assert_allclose(ndd.coord_transform([[10.0, 60.0], [20.0, 40.0]], MT=box).torch(), [[0, 1], [0.5, 0.5]])


def test_rotation_in_space_is_right_handed():
    turned = ndd.coord_transform([[1.0, 0.0, 0.0]], MT=ndd.transforms.rotation(angle=90, axis=[0, 0, 2]))
    np.testing.assert_allclose(np.asarray(turned), [[0, 1, 0]], atol=1e-6)


def test_rotation_beside_opencv():
    cv2 = pytest.importorskip("cv2")
    result = np.asarray(ndd.transforms.rotation(angle=25, center=[3, 7]))
    np.testing.assert_allclose(result, cv2.getRotationMatrix2D((3, 7), -25, 1), atol=1e-5)
