"""Centre of pressure, stance outline and margin: by hand, and against brute force."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from posture.contact import center_of_pressure, convex_outline, stance_margin
from posture.errors import BodyError

SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])

grid = st.integers(-50, 50).map(lambda value: value / 10)
points = st.lists(st.tuples(grid, grid), min_size=3, max_size=12, unique=True).map(np.array)


def outline_or_skip(corners: np.ndarray) -> np.ndarray:
    spread = np.linalg.svd(corners - corners.mean(axis=0), compute_uv=False)
    assume(spread[1] > 1e-3)  # points on a line have no outline
    return convex_outline(corners)


def test_a_push_at_a_point_has_its_pressure_there() -> None:
    where, force = np.array([0.1, -0.05, 0.0]), np.array([30.0, -20.0, 800.0])
    np.testing.assert_allclose(center_of_pressure(force, np.cross(where, force)), where[:2], rtol=1e-14)


def test_the_signs_of_the_pressure_are_those_of_the_lever_rule() -> None:
    # 100 N up, 0.2 m ahead and 0.3 m to port: M = r × F = (0.3·100, -0.2·100, 0).
    np.testing.assert_allclose(center_of_pressure(np.array([0, 0, 100.0]), np.array([30.0, -20.0, 0])), [0.2, 0.3])


def test_a_moment_about_the_vertical_does_not_move_the_pressure() -> None:
    force = np.array([5.0, 6.0, 700.0])
    np.testing.assert_array_equal(
        center_of_pressure(force, np.array([7.0, 14.0, 0.0])), center_of_pressure(force, np.array([7.0, 14.0, 99.0]))
    )


@pytest.mark.parametrize("up", [0.0, -1.0, np.nan])
def test_a_deck_that_does_not_push_has_no_pressure(up: float) -> None:
    assert np.isnan(center_of_pressure(np.array([1.0, 1.0, up]), np.ones(3))).all()


def test_the_pressure_of_a_series_is_that_of_each_row() -> None:
    rng = np.random.default_rng(2)
    force, moment = rng.normal(loc=(0, 0, 9), size=(7, 3)), rng.normal(size=(7, 3))
    rows = [center_of_pressure(force[row], moment[row]) for row in range(7)]
    np.testing.assert_array_equal(center_of_pressure(force, moment), rows)


@given(points)
def test_an_outline_is_convex_counter_clockwise_and_holds_every_point(cloud: np.ndarray) -> None:
    outline = outline_or_skip(cloud)
    assert {tuple(corner) for corner in outline} <= {tuple(point) for point in cloud}
    edge = np.roll(outline, -1, axis=0) - outline
    turn = edge[:, 0] * np.roll(edge, -1, axis=0)[:, 1] - edge[:, 1] * np.roll(edge, -1, axis=0)[:, 0]
    assert (turn > 0).all()
    for point in cloud:
        offset = point - outline
        # On the left of every edge; 1e-9 for rounding, the points are a tenth apart.
        assert (edge[:, 0] * offset[:, 1] - edge[:, 1] * offset[:, 0] > -1e-9).all()


def test_points_inside_and_on_edges_are_no_corners() -> None:
    outline = convex_outline(np.vstack((SQUARE, [[1, 1], [1, 0], [0.5, 1.5]])))
    assert sorted(map(tuple, outline)) == sorted(map(tuple, SQUARE))


@pytest.mark.parametrize("cloud", [[[0, 0], [1, 0]], [[0, 0], [1, 1], [2, 2]], [[1, 1], [1, 1], [1, 1]]])
def test_points_without_an_area_are_refused(cloud: list) -> None:
    with pytest.raises(BodyError, match="a stance needs an area"):
        convex_outline(np.array(cloud, float))


@pytest.mark.parametrize(
    ("point", "margin"),
    [
        ((1.0, 1.0), 1.0),  # the middle
        ((1.5, 1.0), 0.5),  # nearer one edge
        ((2.0, 1.0), 0.0),  # on it
        ((3.0, 1.0), -1.0),  # beyond an edge
        ((5.0, 6.0), -5.0),  # beyond a corner: 3, 4, 5
    ],
)
def test_the_margin_in_a_square_is_as_measured_by_hand(point: tuple, margin: float) -> None:
    assert stance_margin(np.array(point), SQUARE) == pytest.approx(margin, abs=1e-15)


def test_no_pressure_has_no_margin() -> None:
    margin = stance_margin(np.array([[1.0, 1.0], [np.nan, np.nan]]), SQUARE)
    assert margin[0] == 1.0
    assert np.isnan(margin[1])


@given(points, st.tuples(grid, grid).map(np.array))
def test_the_margin_is_the_distance_to_the_nearest_of_many_points_on_the_edge(
    cloud: np.ndarray, point: np.ndarray
) -> None:
    outline = outline_or_skip(cloud)
    share = np.linspace(0, 1, 2001)[:, None]
    ends = np.roll(outline, -1, axis=0)
    edge = np.concatenate([start + share * (end - start) for start, end in zip(outline, ends, strict=True)])
    nearest = np.linalg.norm(edge - point, axis=1).min()
    margin = stance_margin(point, outline)
    # Samples on an edge of at most 15 m are 7.5 mm apart; the nearest lies at most half of that from the foot point.
    assert abs(abs(margin) - nearest) < 0.004
    # Inside or outside by winding: the angles under which the edges are seen add up to a turn, or to none.
    if nearest > 0.01:
        a, b = outline - point, ends - point
        seen = np.arctan2(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], np.sum(a * b, axis=1)).sum()
        assert (margin > 0) == (seen > np.pi)
