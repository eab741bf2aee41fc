"""Muscle paths in closed form, moment arms against -dl/dq, strength curves, scaling."""

import math

import numpy as np
import pytest

from posture.anthropometry import Person
from posture.body import body_from_text, load_body, write_body
from posture.joint_loads import joint_loads
from posture.muscles import Curves, load_muscles

LINK = """<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link>"""
HINGE = f"""<robot name="hinge">{LINK.format(name="upper")}{LINK.format(name="lower")}{LINK.format(name="tip")}
<joint name="bend" type="revolute"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="reach" type="prismatic"><parent link="lower"/><child link="tip"/>
<origin xyz="0.1 0.02 -0.3" rpy="0.2 0.3 0.1"/>
<axis xyz="0.6 0 -0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def hinge(path, pulley=None, **entries):
    tables = {"muscle": {"string": {"max_force": 100.0, "path": path} | entries}}
    if pulley:
        tables["pulley"] = {"wheel": pulley}
    return load_muscles(body_from_text("hinge", HINGE, {"muscles": tables}))


WHEEL = {"link": "upper", "center": [0.0, 0.0, 0.0], "axis": [0, 1, 0], "radius": 0.04}
OVER = [
    {"link": "upper", "point": [0.03, 0.0, 0.3]},
    {"pulley": "wheel"},
    {"link": "lower", "point": [0.03, 0.0, -0.3]},
]


def test_a_straight_muscle_has_the_law_of_cosines():
    muscles = hinge([{"link": "upper", "point": [0.05, 0, 0.3]}, {"link": "lower", "point": [0.05, 0, -0.2]}])
    angle = np.linspace(-1, 1, 41)
    found = muscles.at(np.column_stack((angle, 0 * angle)))
    one, other = math.hypot(0.05, 0.3), math.hypot(0.05, 0.2)
    between = math.atan2(0.3, 0.05) + math.atan2(0.2, 0.05) - angle * -1
    np.testing.assert_allclose(
        found.length[:, 0], np.sqrt(one**2 + other**2 - 2 * one * other * np.cos(between)), atol=1e-14
    )


def test_a_pulley_gives_its_radius_as_moment_arm_and_lets_go_smoothly():
    muscles = hinge(OVER, WHEEL)
    angle = np.linspace(-0.6, 2.5, 3001)
    found = muscles.at(np.column_stack((angle, 0 * angle)))
    arm = found.moment_arm[:, 0, 0]
    bent = angle > 0.3  # the string lies on the wheel: flexion turns the shank back, about +Y
    np.testing.assert_allclose(arm[bent], -0.04, atol=1e-14)
    # Away from the wheel the arm grows with the straight string; nothing jumps where it lifts off.
    assert np.abs(arm[angle < -0.3]).min() > 0.04
    assert np.abs(np.diff(found.length[:, 0])).max() < 0.12 * (angle[1] - angle[0])
    assert np.abs(np.diff(arm)).max() < 0.2 * (angle[1] - angle[0])
    np.testing.assert_allclose(
        found.length[bent, 0] - found.length[bent, 0][0], 0.04 * (angle[bent] - angle[bent][0]), atol=1e-13
    )


def test_a_string_that_climbs_along_the_axis_is_a_helix():
    path = [
        {"link": "upper", "point": [0.0, -0.05, 0.3]},
        {"pulley": "wheel"},
        {"link": "lower", "point": [0.0, 0.07, -0.3]},
    ]
    muscles = hinge(path, WHEEL)
    leg = math.sqrt(0.3**2 - 0.04**2)
    wrapped = 2 * math.asin(0.04 / 0.3) + 1.2  # turn of the string in the plane at 1.2 rad
    flat = 2 * leg + 0.04 * wrapped
    assert muscles.at([1.2, 0.0]).length[0, 0] == pytest.approx(math.hypot(flat, 0.12), abs=1e-14)


@pytest.mark.parametrize("climb", [0.0, 0.06])
def test_moment_arms_are_minus_dl_dq_with_hinge_slide_and_pulley(climb):
    path = [*OVER[:2], {"link": "lower", "point": [0.02, climb, -0.2]}, {"link": "tip", "point": [0.05, 0.1, -0.1]}]
    muscles = hinge(path, WHEEL | {"axis": [0.1, 0.9, -0.2]})
    rng = np.random.default_rng(1)
    q = np.column_stack((rng.uniform(-1, 2.3, 200), rng.uniform(-0.2, 0.2, 200)))
    arm, step = muscles.at(q).moment_arm[:, :, 0], 1e-5
    for joint in range(2):
        shift = step * np.eye(2)[joint]
        slope = (muscles.at(q + shift).length - muscles.at(q - shift).length)[:, 0] / (2 * step)
        # Central differences: step² · third derivative (< 1e3 /m²) + rounding 1e-16/step.
        np.testing.assert_allclose(arm[:, joint], -slope, atol=1e-7)


def test_muscles_do_no_work_on_the_whole_body_and_their_torque_is_arm_times_force():
    body = load_body("jump")
    muscles = load_muscles(body)
    rng = np.random.default_rng(2)
    q = rng.uniform(0, 1, (20, 13))
    tension = 1000 * rng.random((20, 18))
    zero = np.zeros_like(q)
    pulled = joint_loads(body, q, zero, zero, muscles=muscles, muscle_force=tension)
    plain = joint_loads(body, q, zero, zero)
    np.testing.assert_allclose(pulled.root_force, plain.root_force, atol=1e-10)
    np.testing.assert_allclose(pulled.root_moment, plain.root_moment, atol=1e-10)
    given = np.einsum("njm,nm->nj", muscles.at(q).moment_arm, tension)
    np.testing.assert_allclose(plain.torque - pulled.torque, given, atol=1e-10)


def test_the_pull_of_a_muscle_presses_its_joint():
    muscles = hinge([{"link": "upper", "point": [0.05, 0, 0.3]}, {"link": "lower", "point": [0.05, 0, -0.2]}])
    zero = np.zeros((1, 2))
    pulled = joint_loads(muscles.body, zero, zero, zero, muscles=muscles, muscle_force=np.array([[70.0]]))
    plain = joint_loads(muscles.body, zero, zero, zero)
    # The muscle lifts the lower link with 70 N, so the joint pushes it down by as much more.
    np.testing.assert_allclose(pulled.force[0, 0] - plain.force[0, 0], [0, 0, -70], atol=1e-12)


def test_jump_has_nine_muscles_per_leg_whose_arms_have_the_anatomical_signs():
    body = load_body("jump")
    muscles = load_muscles(body)
    assert len(muscles.names) == 18
    assert [body.joint_names[joint] for joint in muscles.joints] == [
        *("left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle")
    ]
    low, high = body.model.lowerPositionLimit[7:], body.model.upperPositionLimit[7:]
    # Beyond 120° of flexion hamstrings pass behind hip and knee; no pulley keeps them from it.
    high = np.minimum(high, 2.0)
    q = low + (high - low) * np.random.default_rng(3).random((500, 13))
    arms = muscles.at(q).moment_arm
    signs = {  # hip, knee, ankle: flexion and dorsiflexion positive
        "hamstrings": (-1, 1, 0),
        "biceps_short_head": (0, 1, 0),
        "gluteus_maximus": (-1, 0, 0),
        "iliopsoas": (1, 0, 0),
        "rectus_femoris": (1, -1, 0),
        "vasti": (0, -1, 0),
        "gastrocnemius": (0, 1, -1),
        "soleus": (0, 0, -1),
        "tibialis_anterior": (0, 0, 1),
    }
    for side in ("left", "right"):
        joints = [body.joint_index(f"{side}_{name}") for name in ("hip", "knee", "ankle")]
        for name, expected in signs.items():
            own = arms[:, :, muscles.names.index(f"{side}_{name}")]
            assert not np.delete(own, joints, axis=1).any()
            share = np.mean(np.sign(own[:, joints]) == expected, axis=0)
            assert share.min() == 1, (side, name, share)


def test_strength_at_rest_is_the_maximal_force_times_the_pennation():
    muscles = hinge(
        [{"link": "upper", "point": [0.05, 0, 0.3]}, {"link": "lower", "point": [0.05, 0, -0.2]}],
        optimal_fiber_length=0.1,
        tendon_slack_length=0.3,
        pennation_deg=20.0,
    )
    along = 0.1 * math.cos(math.radians(20))
    active, passive = muscles.strength(np.array([[0.3 + along]]), np.zeros((1, 1)))
    assert active[0, 0] == pytest.approx(100 * math.cos(math.radians(20)), rel=1e-12)
    assert passive[0, 0] == pytest.approx(0, abs=1e-12)
    assert muscles.strength(np.array([[0.29]]), np.zeros((1, 1)))[0][0, 0] == 0  # a slack tendon pulls nothing


def test_curves_join_without_a_step():
    curves = Curves()
    assert curves.velocity(np.array([0.0, -10.0, -20.0])) == pytest.approx([1, 0, 0])
    near = curves.velocity(np.array([-1e-6, 1e-6]))
    assert np.abs(near - 1).max() < 2e-6
    assert curves.velocity(np.array([1e6]))[0] == pytest.approx(1.4, abs=1e-4)
    assert np.all(np.diff(curves.velocity(np.linspace(-10, 50, 500))) > 0)
    assert curves.passive(np.array([1.0, 1.6])) == pytest.approx([0, 1])


def test_scaling_keeps_the_share_of_fibre_and_tendon_and_follows_mass():
    body = load_body("jump")
    same = load_muscles(body.scaled(Person(80.0, 1.78, "male")))
    muscles = load_muscles(body)
    np.testing.assert_allclose(same.max_force, muscles.max_force, rtol=1e-6)
    np.testing.assert_allclose(same.at(body.neutral).length, muscles.at(body.neutral).length, atol=2e-6)
    small = load_muscles(body.scaled(Person(50.0, 1.55, "female")))
    growth = small.at(body.neutral).length[0] / muscles.at(body.neutral).length[0]
    assert growth.max() < 1
    np.testing.assert_allclose(small.max_force / muscles.max_force, 50 / 80 / growth, rtol=1e-4)
    for one, other, ratio in zip(small.muscles, muscles.muscles, growth, strict=True):
        assert one.optimal_fiber_length / other.optimal_fiber_length == pytest.approx(ratio, rel=1e-4)


def test_a_written_body_keeps_its_muscles(tmp_path):
    body = load_body("jump").scaled(Person(62.0, 1.68, "female"))
    write_body(body, tmp_path / "anna.urdf")
    again = load_body(tmp_path / "anna.urdf")
    assert again.sidecar == body.sidecar
    assert again.floats
    np.testing.assert_array_equal(load_muscles(again).max_force, load_muscles(body).max_force)
