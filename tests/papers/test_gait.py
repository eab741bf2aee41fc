"""The gait paper: its formulation, inverse dynamics, and forward runs without and with its controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from posture import load_body
from posture.body import STANDARD_GRAVITY
from posture.contact import center_of_pressure, convex_outline, stance_margin
from posture.inverse import (
    coordinate_accelerations,
    coordinate_names,
    from_pinocchio,
    generalized_forces,
    loads,
    states,
    to_pinocchio,
    total_wrench,
)
from posture.sharing import share
from posture.systems import gait as paper
from posture.track import Tracker, _Plant, growth_rates, round_trip, track

pytestmark = pytest.mark.xdist_group("gait_paper")


@pytest.fixture(scope="module")
def walker() -> paper.SyntheticGait:
    body = load_body("gait")
    return paper.SyntheticGait(body, paper.walking(body))


def test_body_has_18_segments_17_ball_joints_57_freedoms(walker: paper.SyntheticGait) -> None:
    body = walker.body
    assert len(body.segments) == 18
    assert len(body.joint_names) == 51
    assert body.model.nv == 57 == len(coordinate_names(body))
    assert body.mass == pytest.approx(85.0, abs=1e-5)
    for first in range(0, 51, 3):  # bend, sideways, twist at one place
        names = body.joint_names[first : first + 3]
        assert [name[-1] for name in names] == ["y", "x", "z"]
        assert len({name[:-2] for name in names}) == 1
        for name in names[1:]:
            assert not body.model.jointPlacements[body.joint_index(name) + 2].translation.any()
    # de Leva: thigh 14.16 %, shank 4.33 %, foot 1.37 %, head with neck 6.94 % of body mass
    mass = {name: body.model.inertias[joint].mass / 85 for name, joint in body.segments.items()}
    assert mass["left_thigh"] == pytest.approx(0.1416, abs=1e-4)
    assert mass["right_shank"] == pytest.approx(0.0433, abs=1e-4)
    assert mass["left_hindfoot"] + mass["left_forefoot"] == pytest.approx(0.0137, abs=1e-4)
    assert mass["neck"] + mass["head"] == pytest.approx(0.0694, abs=1e-4)
    pin.framesForwardKinematics(body.model, body.data, pin.neutral(body.model))
    sole = body.data.oMf[body.link_frame("left_hindfoot")].act(
        np.array(body.sidecar["contact"]["left_hindfoot"]["points"][0])
    )
    head = body.data.oMf[body.link_frame("neck")].translation[2] + 0.2486  # neck joint to vertex, 13.66 % of stature
    assert head - sole[2] == pytest.approx(1.82, abs=2e-3)


def test_the_ground_pushes_under_the_foot_that_stands(walker: paper.SyntheticGait) -> None:
    body, period = walker.body, walker.motion.period
    for side, start in (("right", 0.0), ("left", 0.5)):
        time = (start + np.linspace(0.17, 0.49, 15)) * period  # the other foot is in the air
        total = walker.total(time)
        points = center_of_pressure(total[:, :3], total[:, 3:])
        for point, q in zip(points, states(walker.motion, time).configuration, strict=True):
            pin.framesForwardKinematics(body.model, body.data, q)
            corners = [
                body.data.oMf[body.link_frame(name)].act(np.array(corner))[:2]
                for name in (f"{side}_hindfoot", f"{side}_forefoot")
                for corner in body.sidecar["contact"][name]["points"]
            ]
            assert stance_margin(point, convex_outline(np.array(corners))) > 0


def test_coordinates_and_their_derivatives_become_pinocchios(walker: paper.SyntheticGait) -> None:
    """Configuration, velocity and acceleration against finite differences on the manifold."""
    h, time = 1e-4, 0.37
    near = states(walker.motion, np.array([time - h, time, time + h]))
    model = walker.body.model
    ahead = pin.difference(model, near.configuration[0], near.configuration[2]) / (2 * h)
    assert np.abs(ahead - near.velocity[1]).max() < 1e-5
    slope = (near.velocity[2] - near.velocity[0]) / (2 * h)
    assert np.abs(slope - near.acceleration[1]).max() < 1e-4 * np.abs(near.acceleration[1]).max()
    values, rates, accelerations = walker.motion.sample(np.array([time]))
    assert np.abs(from_pinocchio(near.configuration[1]) - values).max() < 1e-12
    back = coordinate_accelerations(values[0], rates[0], to_pinocchio(values, rates, accelerations).acceleration[0])
    assert np.abs(back - accelerations[0]).max() < 1e-10


def test_natural_coordinates_agree_with_pinocchio(walker: paper.SyntheticGait) -> None:
    natural = paper.NaturalCoordinates(walker.body)
    assert (natural.size, natural.points) == (228, 22)
    assert np.linalg.matrix_rank(natural.mass) == 174
    worst = paper.natural_against_pinocchio(walker.body, walker.motion, np.array([0.2, 0.9]))
    assert worst["map"] < 1e-7
    assert worst["mass matrix"] < 1e-12
    assert worst["inverse"] < 1e-12
    assert worst["forward"] < 1e-12


def test_a_wrong_mass_is_seen_by_the_natural_coordinates(walker: paper.SyntheticGait) -> None:
    natural = paper.NaturalCoordinates(walker.body)
    z = np.zeros(57)
    good = natural.equations(z, z)[0]
    model = walker.body.model
    model_mass = pin.crba(model, walker.body.data, pin.neutral(model))
    assert good[0, 0] == pytest.approx(model_mass[0, 0], rel=1e-12)
    natural.mass[:3, :3] *= 1.001
    assert abs(natural.equations(z, z)[0][0, 0] - model_mass[0, 0]) > 1e-3


def test_mean_ground_force_of_a_cycle_is_the_weight(walker: paper.SyntheticGait) -> None:
    """Momentum is periodic, so over whole cycles the ground carries exactly the weight and pushes nowhere."""
    time = np.linspace(0, walker.motion.period, 200, endpoint=False)
    mean = total_wrench(walker.body, states(walker.motion, time))[:, :3].mean(axis=0)
    assert mean[2] == pytest.approx(walker.body.mass * STANDARD_GRAVITY, rel=1e-9)
    assert np.abs(mean[:2]).max() < 1e-7


@pytest.mark.parametrize("way", ["segment", "joint", "ground"])
def test_every_way_of_applying_loads_gives_the_motions_acceleration(walker: paper.SyntheticGait, way: str) -> None:
    time = np.array([0.05, 0.3, 0.8])
    motion = states(walker.motion, time)
    applied = loads(walker.body, motion, way, walker.feet(time) if way == "ground" else None)
    plant = _Plant(walker.body, None)
    for row in range(len(time)):
        q, v = motion.configuration[row], motion.velocity[row]
        tau, _ = plant.forces(
            q, (applied.torque[row], applied.root_force[row], applied.wrench[row]), np.zeros(3), np.zeros((18, 3))
        )
        a = pin.aba(plant.model, plant.data, q, v, tau)
        assert np.abs(a - motion.acceleration[row]).max() < 1e-9


@pytest.mark.parametrize("way", ["segment", "joint", "ground"])
def test_slopes_of_the_loads_match_finite_differences(walker: paper.SyntheticGait, way: str) -> None:
    """∂a/∂q of the open loop, which Newton and the growth rates use."""
    time = np.array([0.3])
    motion = states(walker.motion, time)
    applied = loads(walker.body, motion, way, walker.feet(time) if way == "ground" else None)
    load = (applied.torque[0], applied.root_force[0], applied.wrench[0])
    plant = _Plant(walker.body, None)
    q, v = motion.configuration[0], motion.velocity[0]
    by_q, by_v = plant.linearized(q, v, load)

    def acceleration(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau, _ = plant.forces(q, load, np.zeros(3), np.zeros((18, 3)))
        return np.array(pin.aba(plant.model, plant.data, q, v, tau))

    h = 1e-6
    for column in (1, 4, 7, 20, 33, 50):
        step = np.zeros(57)
        step[column] = h
        slope = (
            acceleration(pin.integrate(plant.model, q, step), v) - acceleration(pin.integrate(plant.model, q, -step), v)
        ) / (2 * h)
        assert np.abs(slope - by_q[:, column]).max() < 1e-5 * max(1, np.abs(by_q[:, column]).max())
        slope = (acceleration(q, v + step) - acceleration(q, v - step)) / (2 * h)
        assert np.abs(slope - by_v[:, column]).max() < 1e-5 * max(1, np.abs(by_v[:, column]).max())


def test_inverse_to_forward_and_back(walker: paper.SyntheticGait) -> None:
    motion = states(walker.motion, paper.record(step=0.05))
    assert round_trip(walker.body, motion) < 1e-10
    wrong = replace(motion, acceleration=motion.acceleration + 1e-6)
    assert np.abs(generalized_forces(walker.body, wrong) - generalized_forces(walker.body, motion)).max() > 1e-8


def test_controlled_run_keeps_the_papers_bounds_and_is_second_order(walker: paper.SyntheticGait) -> None:
    found = {}
    for step in (0.002, 0.001):
        run = track(walker.body, walker.motion, np.arange(0, 0.4 + 1e-9, step), tracker=paper.TRACKER)
        assert run.stopped is None
        assert run.residual.max() <= 1e-12
        found[step] = paper.controller_figures(run)
    assert found[0.001]["position"] <= 8e-7
    assert found[0.001]["angle"] <= 5e-6
    assert found[0.001]["force"] <= 5e-3
    order = np.log2(found[0.002]["angle"] / found[0.001]["angle"])
    assert order == pytest.approx(2.0, abs=0.1)


def test_lagged_controller_fails(walker: paper.SyntheticGait) -> None:
    time = np.arange(0, 0.25, 0.001)
    lagged = track(walker.body, walker.motion, time, tracker=Tracker(lagged=True))
    assert lagged.stopped is not None
    assert lagged.stopped < 0.2
    assert track(walker.body, walker.motion, time, tracker=Tracker()).stopped is None


def test_growth_depends_on_how_loads_are_applied(walker: paper.SyntheticGait) -> None:
    time = paper.record(step=0.05)
    growth = {
        way: growth_rates(
            walker.body, walker.motion, time, way=way, feet=walker.feet if way == "ground" else None
        ).mean()
        for way in ("segment", "joint", "ground")
    }
    assert growth["segment"] < growth["joint"] < growth["ground"]
    assert growth["ground"] > 5 * growth["segment"]


def test_growth_rate_is_what_a_small_error_does(walker: paper.SyntheticGait) -> None:
    """Two open-loop runs a hair apart separate no faster than the growth rates allow, and about as fast."""
    time = np.arange(0, 0.3, 0.001)
    exact = track(walker.body, walker.motion, time)
    coarse = track(walker.body, walker.motion, time[::2])
    gap = np.linalg.norm(exact.attitude_error[::2] - coarse.attitude_error, axis=(1, 2))
    grown = np.log(gap[140] / gap[60])
    bound = growth_rates(walker.body, walker.motion, time[120:280:10]).mean() * (time[280] - time[120])
    assert 0.3 * bound < grown < 1.5 * bound


def test_eighth_order_needs_no_controller(walker: paper.SyntheticGait) -> None:
    time = np.arange(0, 0.2, 0.005)
    best = track(walker.body, walker.motion, time, method="dop853")
    classical = track(walker.body, walker.motion, time, method="rk4")
    trapezoid = track(walker.body, walker.motion, time)
    errors = [np.abs(run.attitude_error).max() for run in (best, classical, trapezoid)]
    assert errors[0] < 1e-9 < errors[1] < errors[2]


class _Unloading(paper.SyntheticGait):
    """Another truth in double support: the rear foot's load falls along ``curve``, its centre of pressure speeds up."""

    curve = staticmethod(lambda phase: 1 - phase)

    def _unloading(self, time: np.ndarray, total: np.ndarray, landing: float, leaving: float) -> np.ndarray:
        phase = (time - landing) / (leaving - landing)
        left = self.curve(phase)
        force = left[:, None] * total[:, :3]
        force[:, 0] += 0.04 * total[:, 2] * np.sin(np.pi * phase) ** 2
        start = self.total(np.array([landing]))[0]
        place = np.array([-start[4], start[3], 0]) / start[2] + np.outer(phase**2, [0.06, 0.01, 0])
        moment = np.cross(place, force)
        moment[:, 2] += 2 * left
        return np.hstack((force, moment))


@pytest.mark.parametrize(
    "curve",
    [
        lambda phase: 1 - phase,
        lambda phase: np.exp(-8 * phase**3) - phase * np.exp(-8.0),
        lambda phase: (1 - phase) ** 3 * (1 + 2 * phase),
    ],
    ids=["straight", "late", "early"],
)
def test_correction_comes_nearer_to_the_truth_than_plates_however_the_load_is_handed_over(
    walker: paper.SyntheticGait, curve: object
) -> None:
    gait = type("Handover", (_Unloading,), {"curve": staticmethod(curve)})(walker.body, walker.motion)
    time = paper.record(step=0.002)
    total, truth = gait.total(time), gait.wrenches(time)
    both = np.logical_and.reduce([paper._inside(time, spans) for spans in gait.contacts.values()])
    errors = []
    for seed in range(8):  # a late, steep handover gains a tenth at most; four plates say too little about it
        plates = gait.plates(time, seed=seed)
        one = plates | {"left": np.full_like(plates["left"], np.nan)}
        found = [
            share(time, total, gait.contacts, measured, method=method)
            for measured, method in ((plates, "plain"), (plates, "corrected"), (one, "corrected"))
        ]
        gaps = [np.concatenate([wrench[side][both] - truth[side][both] for side in truth]) for wrench in found]
        errors.append([np.sqrt(np.mean(gap[:, part] ** 2)) for part in (slice(0, 3), slice(3, 6)) for gap in gaps])
    plain, two, one, plain_moment, two_moment, one_moment = np.transpose(errors)
    assert (two < plain).all()
    assert (one < plain).all()
    assert two_moment.mean() < plain_moment.mean()
    assert one_moment.mean() < plain_moment.mean()


def test_walking_stands_on_the_ground(walker: paper.SyntheticGait) -> None:
    """Lowest point of the soles within 3 cm of the ground, and the standing foot hardly slides."""
    time = np.linspace(0, walker.motion.period, 50, endpoint=False)
    heights, _ = paper._soles(walker.body, walker.motion, time)
    assert np.abs(heights.min(axis=1)).max() < 0.03
    assert 0.8 < walker.motion.speed < 1.6


@pytest.mark.slow
def test_reproduce_passes_every_comparison(reproduced: Callable[[str], list[dict[str, Any]]]) -> None:
    rows = reproduced("gait")
    failed = [row["quantity"] for row in rows if not row["pass"]]
    assert not failed
    names = {row["quantity"] for row in rows}
    assert "PD, trapezoid 1 ms: lumbar joint, m" in names
    assert "open loop, eighth order: within 1° up to % of cycle" in names
