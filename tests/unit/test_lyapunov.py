"""The Lyapunov law on any chain: certificate, singularity-free variant, torque limits, bad gains."""

import numpy as np
import pytest

from controllers import ControllerError, LinkGains, LinkMotion, Lyapunov
from controllers.lyapunov import angle_rate_matrix, bryant_angles
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import Sine, SineDeck, constant_deck
from posture.errors import BodyError
from posture.scenario import parse_scenario
from posture.segments import Segments, lyapunov
from posture.simulate import Dynamics, simulate

LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
GAINS = {"rotation": 100.0, "translation": 25.0, "damping_time": 0.2}


def rate_by_differences(law: Lyapunov, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> float:
    """Rate of the function along (q', v') = (v, a) by a five-point rule."""
    h = 1e-4
    at = [law.value(q + k * h * v, v + k * h * a) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


@pytest.mark.parametrize("name", ["double_pendulum", "ship_stance"])
@pytest.mark.parametrize("attitude", ["angles", "rotation"])
def test_value_falls_at_the_promised_rate_on_any_body(name: str, attitude: str):
    body = load_body(name)
    law, dynamics = lyapunov(body, attitude=attitude, **GAINS), Dynamics(body)
    generator = np.random.default_rng(5)
    joints = len(body.joint_names)
    for _ in range(5):
        q, v = generator.uniform(-0.3, 0.3, joints), generator.normal(0, 0.3, joints)
        a = dynamics.acceleration(q, v, law.torque(0, q, v, np.zeros(0)), LEVEL)
        # Five points with h = 1e-4: rounding of v over h, about 1e-16 v / 1e-4.
        assert rate_by_differences(law, q, v, a) == pytest.approx(law.damping(q, v), abs=1e-9 * (1 + law.value(q, v)))


@pytest.mark.parametrize("attitude", ["angles", "rotation"])
def test_ship_stance_comes_upright_with_falling_value(attitude: str):
    body = load_body("ship_stance")
    law = lyapunov(body, attitude=attitude, **GAINS)
    start = np.random.default_rng(4).uniform(-0.3, 0.3, 12)
    run = simulate(body, constant_deck(), law, duration=2.0, output_step=0.01, start_position=start)
    found = law.certificate(run["joint_position"].values, run["joint_velocity"].values)
    assert (np.diff(found.value) < 0).all()
    assert not found.broken.any()
    assert found.value[-1] < 0.01 * found.value[0]


def test_rotation_potential_is_one_minus_cosine_and_its_couple_is_the_gradient():
    generator = np.random.default_rng(0)
    K = np.diag([3.0, 5.0, 2.0])

    def kinematics(position: np.ndarray, velocity: np.ndarray) -> LinkMotion:
        from scipy.spatial.transform import Rotation

        turn = Rotation.from_rotvec(position).as_matrix()[None]
        return LinkMotion(
            turn, velocity[None], np.zeros((1, 3)), np.zeros((1, 3)), np.eye(3)[None], np.zeros((1, 3, 3))
        )

    law = Lyapunov(
        ["x", "y", "z"],
        kinematics=kinematics,
        link_names=["one"],
        mass=[1.0],
        inertia=[np.eye(3)],
        gains=LinkGains(K, 1.0, 1.0, 1.0),
        gravity=(0, 0, 0),
        attitude="rotation",
    )
    for angle in (1e-3, 1.0, 1.7, 3.0):  # beyond 90°, too
        axis = generator.normal(size=3)
        axis /= np.linalg.norm(axis)
        assert law.value(angle * axis, np.zeros(3)) == pytest.approx((1 - np.cos(angle)) * axis @ K @ axis, rel=1e-9)
        couple = law.wanted(angle * axis, np.zeros(3))
        h = 1e-6  # turning on about the axis by dφ costs -couple·axis dφ
        slope = (law.value((angle + h) * axis, np.zeros(3)) - law.value((angle - h) * axis, np.zeros(3))) / (2 * h)
        assert -couple @ axis == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_rotation_variant_balances_where_angles_are_singular():
    body = load_body("double_pendulum")
    start = np.array([0.0, 0.9, 0.1, 0.1, 0.9, 0.0])  # body 2 leans by more than 100°
    tilt = Segments(body)(start, np.zeros(6)).rotation[1]
    assert np.degrees(np.arccos(tilt[2, 2])) > 100
    law = lyapunov(body, attitude="rotation", **GAINS)
    run = simulate(body, constant_deck(), law, duration=3.0, output_step=0.01, start_position=start)
    found = law.certificate(run["joint_position"].values, run["joint_velocity"].values)
    assert (np.diff(found.value) < 0).all()
    assert np.abs(run["joint_position"].values[-1]).max() < 0.05
    # On the way body 2 passes 90° of pitch, where B of the angle law grows without bound.
    angles = np.array([bryant_angles(Segments(body)(q, np.zeros(6)).rotation)[1] for q in run["joint_position"].values])
    assert np.abs(angles[:, 1]).max() > np.radians(85)
    assert np.abs(angle_rate_matrix(angles)).max() > 10


def test_torque_limits_are_kept_and_the_report_names_where_they_break_the_certificate():
    body = load_body("double_pendulum")
    start = np.array([0.3, -0.4, 0.2, 0.1, 0.5, -0.3])
    law = lyapunov(body, limits=12.0, **GAINS)
    run = simulate(body, constant_deck(), law, duration=0.2, output_step=0.005, start_position=start)
    assert np.abs(run["joint_torque"].values).max() <= 12.0
    q, v = run["joint_position"].values, run["joint_velocity"].values
    found = law.certificate(q, v)
    assert found.broken.any()
    assert not (found.broken & ~found.limited.any(axis=1)).any()  # without limits it never breaks
    rising = np.flatnonzero(np.diff(found.value) > 0)
    assert (found.broken[rising] | found.broken[rising + 1]).all()
    report = found.report(run.time.values, body.joint_names)
    assert "torque limit of" in report[0]
    assert "base_" in report[0]
    # The rate with limits counted is the true one.
    dynamics = Dynamics(body)
    for row in (3, 20, 40):
        a = dynamics.acceleration(q[row], v[row], law.torque(0, q[row], v[row], np.zeros(0)), LEVEL)
        assert rate_by_differences(law, q[row], v[row], a) == pytest.approx(found.rate[row], abs=1e-7)


def test_a_moving_deck_is_a_disturbance_the_certificate_can_count():
    body = load_body("double_pendulum")
    law, dynamics = lyapunov(body, **GAINS), Dynamics(body)
    run = simulate(body, SineDeck({"surge": [Sine(0.1, 1.5, 0.0)]}), law, duration=1.0)
    q, v = run["joint_position"].values, run["joint_velocity"].values
    still = np.zeros(6)
    force = run["deck_specific_force"].values
    loads = [
        np.triu(dynamics.inertia(p)) for p in q
    ]  # u = M (a_moving - a_level) is what the deck's acceleration does to the joints
    disturbance = np.array(
        [
            (upper + np.triu(upper, 1).T)
            @ (dynamics.acceleration(p, w, still, np.r_[np.zeros(6), f]) - dynamics.acceleration(p, w, still, LEVEL))
            for upper, p, w, f in zip(loads, q, v, force, strict=True)
        ]
    )
    found = law.certificate(q, v, disturbance=disturbance)
    for row in (10, 30):
        a = run["joint_acceleration"].values[row]
        assert rate_by_differences(law, q[row], v[row], a) == pytest.approx(found.rate[row], abs=1e-8)
    assert "forces the law does not know" in found.report(run.time.values, body.joint_names)[0]


def test_segments_are_the_links_that_carry_mass():
    body = load_body("ship_stance")
    segments = Segments(body)
    assert segments.names == ["shank", "thigh", "trunk", "head"]
    feet = body.model.inertias[1].mass
    assert segments.mass.sum() + feet == pytest.approx(body.mass)
    q, v, h = np.linspace(-0.4, 0.5, 12), np.linspace(1, -1, 12), 1e-6
    at, ahead, behind = segments(q, v), segments(q + h * v, v), segments(q - h * v, v)
    np.testing.assert_allclose(at.velocity, (ahead.position - behind.position) / (2 * h), atol=1e-8)
    spin = np.swapaxes(at.rotation, 1, 2) @ (ahead.rotation - behind.rotation) / (2 * h)
    np.testing.assert_allclose(
        at.angular_velocity, np.stack((spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]), 1), atol=1e-8
    )


@pytest.fixture
def body() -> Body:
    return load_body("double_pendulum")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rotation": -1.0}, "positive definite"),
        ({"translation": 0.0}, "positive definite"),
        ({"attitude": "euler"}, "attitude is 'euler'"),
        ({"limits": {"elbow": 3.0}}, "no joint is called 'elbow'"),
    ],
)
def test_gains_without_certificate_are_refused(body: Body, change: dict, message: str):
    with pytest.raises(ControllerError, match=message):
        lyapunov(body, **GAINS | change)


def test_misspelt_segment_gets_the_nearest_name(body: Body):
    with pytest.raises(BodyError, match="did you mean 'body_1'"):
        lyapunov(body, rotation={"body1": 3.0, "body_2": 3.0}, translation=25.0, damping_time=0.2)


def test_scenario_can_ask_for_it(tmp_path):
    text = 'body = "double_pendulum+literal_s1"\nduration = 0.1\n[controller]\ntype = "lyapunov"\ntorque_limit = 40.0\n'
    run = parse_scenario(text, tmp_path / "s.toml").run()
    assert isinstance(run.controller, Lyapunov)
    assert run.body.name == "double_pendulum+literal_s1"
