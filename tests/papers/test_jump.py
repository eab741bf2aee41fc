"""The jump paper: its equations against each other and the package; each misprint put back must show."""

import numpy as np
import pinocchio as pin
import pytest

from posture.body import load_body
from posture.joint_loads import Push, joint_loads
from posture.jump_motion import TORQUE_LIMITS, jump_motion
from posture.muscle_analysis import analyse_muscles, contacts_from_motion
from posture.muscles import load_muscles
from posture.systems import jump

pytestmark = pytest.mark.xdist_group("jump")


@pytest.fixture(scope="module")
def body():
    return load_body("jump")


@pytest.fixture(scope="module")
def muscles(body):
    return load_muscles(body)


@pytest.fixture(scope="module")
def planar(body):
    return jump.Planar(body)


@pytest.fixture(scope="module")
def states():
    return jump.random_states(15, 21)


@pytest.fixture(scope="session")
def motion():
    return jump_motion(load_body("jump"))


def test_the_body_has_the_papers_size(body, planar):
    assert len(jump.SEGMENTS) == 14
    assert len(jump.JOINTS) == len(body.joint_names) == 13
    assert planar.D(jump.random_states(1, 0)[0]).shape == (42, 16)
    assert len(jump.JOINTS) - len(jump.LEG_JOINTS) == 7  # k'', printed as 6 in one place
    assert body.mass == pytest.approx(80)
    assert planar.mass.sum() == pytest.approx(80)


@pytest.mark.parametrize("rows", ["equations", "flight_and_pressure", "sharing", "reduced_model"])
def test_reproduces(body, muscles, rows):
    found = {
        "equations": lambda: jump.equations(body, muscles, 15),
        "flight_and_pressure": lambda: jump.flight_and_pressure(body, 15),
        "sharing": lambda: jump.sharing(body, muscles, 1500),
        "reduced_model": lambda: jump.reduced_model(body, 15),
    }[rows]()
    assert len(found) >= 1
    assert [row for row in found if not row["pass"]] == []
    assert any(row["tolerance"] is not None for row in found)


def test_equation_9_is_wrong_and_its_proof_compares_ranks(planar, muscles, states):
    for state in states:
        D = planar.D(state)
        projected = D @ np.linalg.inv(D.T @ planar.M @ D) @ D.T
        inverse = np.linalg.inv(planar.M)
        assert np.linalg.matrix_rank(projected) == 16
        assert np.linalg.matrix_rank(inverse) == 42
        # What the paper's argument shows is only that it projects:
        np.testing.assert_allclose(projected @ planar.M @ D, D, atol=1e-9)
    rows = {row["quantity"]: row["ours"] for row in jump.equations(planar.body, muscles, 15)}
    assert rows["(9) as printed: torque wrong by, median"] > 0.5
    assert rows["(16) as printed: torque wrong by, median"] > 0.01
    assert rows["joint force from torques alone instead of muscles: wrong by, median"] > 0.3


def test_equation_6_as_printed_turns_the_reactions_round(planar, states):
    for state in states[:5]:
        C, _ = planar.constraints(state)
        p2 = planar.D(state) @ state.acceleration + planar.gamma(state)
        literal = np.linalg.solve(
            np.hstack((C.T, planar.contact(state, "left_foot").T, planar.B_tau)), planar.M @ p2 - planar.f_g
        )
        joints, ground, torque = planar.determinate_absolute(state, "left_foot")
        size = np.abs(literal).max()
        np.testing.assert_allclose(literal[:26], -joints, atol=1e-11 * size)
        np.testing.assert_allclose(literal[26:29], -ground, atol=1e-11 * size)
        np.testing.assert_allclose(literal[29:], torque, atol=1e-11 * size)


def test_a_person_at_rest_stands_on_the_ground(planar):
    state = jump.State(np.zeros(16), np.zeros(16), np.zeros(16))
    ground, _ = planar.determinate(state, "right_foot")
    assert ground[0] == pytest.approx(0, abs=1e-9)
    assert ground[1] == pytest.approx(80 * 9.80665)
    # The centre of mass is ahead of the ankle by d, so the moment about it is weight times d, counter-clockwise.
    center = planar.body.center_of_mass()[0]
    assert ground[2] == pytest.approx(80 * 9.80665 * center, rel=1e-9)


def test_pressure_of_a_foot_pushed_at_the_toes():
    # 800 N up and 100 N back at a point 0.15 m ahead of and 0.08 m below the ankle.
    force, arm = np.array([-100.0, 800.0]), np.array([0.15, -0.08])
    moment = arm[0] * force[1] - arm[1] * force[0]
    assert jump.ankle_moment(force[0], force[1], 0.15, 0.08) == pytest.approx(moment)
    assert jump.pressure_point(force[0], force[1], moment, 0.08) == pytest.approx(0.15)
    printed = (moment + force[0] * 0.08) / force[1]
    assert abs(printed - 0.15) > 0.01


def test_rank_of_two_feet_is_short_by_three(planar, states):
    D = planar.D(states[0])
    both = np.hstack(
        [-(planar.contact(states[0], foot) @ D).T for foot in ("left_foot", "right_foot")] + [D.T @ planar.B_tau]
    )
    assert both.shape == (16, 19)
    assert np.linalg.matrix_rank(both) == 16


@pytest.mark.slow
def test_the_best_jump_obeys_newton_at_every_point(body, motion):
    alone = joint_loads(body, motion.position, motion.velocity, motion.acceleration, base=motion.base)
    flying = motion.phase == 2
    # The optimiser's constraints hold to 1e-10 of the body weight.
    assert np.abs(alone.root_force[flying]).max() < 1e-6
    assert np.abs(alone.root_moment[flying]).max() < 1e-6
    still = np.zeros(len(motion.time))
    pushes = [
        Push(
            f"{side}_sole",
            np.column_stack((motion.ground[:, 0], still, motion.ground[:, 1])),
            points,
            np.column_stack((still, motion.ground[:, 2], still)),
        )
        for side, points in motion.toe_points.items()
    ]
    pushed = joint_loads(body, motion.position, motion.velocity, motion.acceleration, base=motion.base, pushes=pushes)
    np.testing.assert_allclose(pushed.torque, motion.torque, atol=1e-6)
    assert np.abs(pushed.root_force).max() < 1e-6
    for joint, name in enumerate(body.joint_names):
        low, high = TORQUE_LIMITS[name.split("_")[-1]]
        assert motion.torque[:, joint].min() >= low - 1e-6
        assert motion.torque[:, joint].max() <= high + 1e-6
    feet = motion.toe_points["left"]
    assert np.abs(feet[~flying][:, [0, 2]]).max() < 1e-9  # toes rest until they leave
    assert motion.ground[~flying, 1].min() >= 0


@pytest.mark.slow
def test_three_ways_to_the_height_of_the_best_jump(motion):
    heights = motion.heights()
    assert 0.25 < heights["by_velocity"] < 0.6  # what people reach
    # Collocation of order 4 with some 20 intervals: impulse and flight differ by its error only.
    assert heights["by_impulse"] == pytest.approx(heights["by_velocity"], abs=5e-4)
    assert heights["by_flight"] == pytest.approx(heights["by_velocity"], abs=5e-4)


@pytest.mark.slow
def test_between_its_points_the_best_jump_obeys_newton_too(body, motion):
    assert motion.energy_gap() < 0.5  # of 400 J; 1.3 with even intervals
    model = pin.Model(body.model)
    model.gravity.linear = np.array([0, 0, -9.80665])
    data = model.createData()
    states, flying = motion.states, np.flatnonzero(motion.phase == 2)
    q, v = states.configuration[flying[0]], states.velocity[flying[0]]

    def speedup(q, v, torque):
        return pin.aba(model, data, q, v, np.append(np.zeros(6), torque))

    # Simulated forward with Pinocchio, torques quadratic between the points; Runge-Kutta 4 with 20 steps per interval.
    for start, middle, end in zip(flying[:-2:2], flying[1:-1:2], flying[2::2], strict=True):
        step = (motion.time[end] - motion.time[start]) / 20
        for part in np.arange(20) / 20:
            first, half, last = (
                motion.torque[start] * (1 - s) * (1 - 2 * s)
                + motion.torque[middle] * 4 * s * (1 - s)
                + motion.torque[end] * s * (2 * s - 1)
                for s in (part, part + 0.025, part + 0.05)
            )
            a1 = speedup(q, v, first)
            a2 = speedup(pin.integrate(model, q, step / 2 * v), v + step / 2 * a1, half)
            a3 = speedup(pin.integrate(model, q, step / 2 * (v + step / 2 * a1)), v + step / 2 * a2, half)
            a4 = speedup(pin.integrate(model, q, step * (v + step / 2 * a2)), v + step * a3, last)
            q = pin.integrate(model, q, step * (v + step / 6 * (a1 + a2 + a3)))
            v = v + step / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        assert np.abs(pin.difference(model, states.configuration[end], q)).max() < 5e-3  # rad, m, after half a second
        assert np.abs(states.velocity[end] - v).max() < 0.03  # of 13 rad/s
    pin.centerOfMass(model, data, states.configuration[flying[0]], states.velocity[flying[0]])
    place, speed = data.com[0].copy(), data.vcom[0].copy()
    for index in flying:
        since = motion.time[index] - motion.take_off
        fallen = place + speed * since + [0, 0, -0.5 * 9.80665 * since**2]
        here = pin.centerOfMass(model, data, states.configuration[index])
        np.testing.assert_allclose(here, fallen, atol=3e-4)


@pytest.mark.slow
def test_muscles_of_the_best_jump(body, motion, muscles):
    once = motion.once
    found = analyse_muscles(body, once.time, once.states)
    spans = contacts_from_motion(body, once.time, once.states, found["ground_force"].values[:, :, 2].sum(axis=1))
    for foot in ("left_foot", "right_foot"):  # found without being told
        (start, end), *others = spans[foot]
        assert not others
        assert start == -np.inf
        assert end == pytest.approx(motion.take_off, abs=0.03)
    total = found["ground_force"].values.sum(axis=1)
    np.testing.assert_allclose(total[once.phase < 2][:, [0, 2]], 2 * once.ground[once.phase < 2][:, :2], atol=1e-6)
    assert float(found["sharing_kkt"].max()) < 1e-8
    assert float(np.abs(found["sharing_shortfall"]).max()) == 0
    arms = muscles.at(once.position).moment_arm
    given = np.einsum("njm,nm->nj", arms, found["muscle_force"].values)
    np.testing.assert_allclose(given[:, muscles.joints], once.torque[:, muscles.joints], atol=1e-5)
    knee = np.linalg.norm(found["joint_force"].sel(joint="left_knee").values, axis=1).max()
    plain = np.linalg.norm(found["joint_force_torque_only"].sel(joint="left_knee").values, axis=1).max()
    assert knee > 3 * plain  # why (19) to (25) matter
    # Centre of pressure inside the sole while feet are flat.
    flat = once.phase == 0
    ahead = found["ground_point"].values[flat, 0, 0]
    assert ahead.max() <= 1e-6
    assert ahead.min() >= -(0.1979 + 0.066) - 1e-6


@pytest.mark.slow
def test_reduced_and_hill_bounded_analyses_of_the_best_jump(body, motion, muscles):
    once = motion.once
    full = analyse_muscles(body, once.time, once.states)
    measured = {
        str(foot): np.hstack((full["ground_force"].values[:, index], full["ground_moment"].values[:, index]))
        for index, foot in enumerate(full["contact"].values)
    }
    legs = analyse_muscles(body, once.time, once.states, measured=measured, reduced=True)
    assert list(legs["joint"].values) == list(legs["muscle_joint"].values)
    np.testing.assert_allclose(legs["muscle_force"], full["muscle_force"], atol=1e-6)
    bounded = analyse_muscles(body, once.time, once.states, hill=True, exponent=3)
    assert np.any(np.abs(bounded["muscle_capacity"] / full["muscle_capacity"] - 1) > 0.2)
    # What muscles give, stretched ones without being asked, is what the joints need.
    tension = bounded["muscle_force"].values
    assert np.any(tension > bounded["muscle_capacity"].values * bounded["muscle_activation"].values + 10)
    strong = np.abs(bounded["sharing_shortfall"].values).max(axis=1) == 0
    given = np.einsum("njm,nm->nj", muscles.at(once.position).moment_arm, tension)[:, muscles.joints]
    needed = bounded["joint_torque"].sel(joint=bounded["muscle_joint"].values).values
    assert strong.sum() > 20
    np.testing.assert_allclose(given[strong], needed[strong], atol=1e-6)
    np.testing.assert_allclose((given + bounded["sharing_shortfall"].values)[~strong], needed[~strong], atol=1e-4)
    # A muscle that shortens fast is weaker: at take-off the calf has less than its isometric force.
    leave = int(np.flatnonzero(once.phase == 2)[0])
    soleus = bounded.isel(time=leave - 1).sel(muscle="left_soleus")
    assert float(soleus["muscle_velocity"]) < -0.1
    assert float(soleus["muscle_capacity"]) < 0.7 * 5137
