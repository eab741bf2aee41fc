"""Control laws: torques by hand, gains by name, clear refusals, no knowledge of posture."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import controllers
from controllers import PD, PID, ControllerError, Relaxed

JOINTS = ("ankle", "hip")
NOTHING = np.zeros(0)


def test_pd_torque_is_stiffness_times_error_minus_damping_times_speed() -> None:
    law = PD(JOINTS, stiffness={"ankle": 100.0, "hip": 40.0}, damping={"ankle": 10.0, "hip": 2.0}, reference=0.1)
    torque = law.torque(0.0, np.array([0.3, -0.1]), np.array([1.0, -2.0]), NOTHING)
    # 100 (0.1 - 0.3) - 10 · 1 = -30;  40 (0.1 + 0.1) + 2 · 2 = 12
    np.testing.assert_allclose(torque, [-30.0, 12.0], rtol=1e-14)
    assert law.memory_size == 0
    assert law.memory_rate(0.0, np.ones(2), np.ones(2), NOTHING).shape == (0,)


def test_pid_adds_the_integral_of_the_error() -> None:
    law = PID(JOINTS, stiffness=100.0, damping=10.0, integral={"hip": 5.0}, reference={"hip": 0.2})
    position, velocity, memory = np.array([0.1, 0.1]), np.array([0.0, 1.0]), np.array([7.0, 0.5])
    # -100 · 0.1 = -10, its integral gain is zero;  100 · 0.1 - 10 · 1 + 5 · 0.5 = 2.5
    np.testing.assert_allclose(law.torque(0.0, position, velocity, memory), [-10.0, 2.5], rtol=1e-14)
    np.testing.assert_allclose(law.memory_rate(0.0, position, velocity, memory), [-0.1, 0.1], rtol=1e-14)
    assert law.memory_size == 2


def test_the_memory_of_a_steady_error_grows_until_the_load_is_carried() -> None:
    law = PID(["hinge"], stiffness=20.0, damping=5.0, integral=10.0)
    position, velocity, memory, load = np.zeros(1), np.zeros(1), np.zeros(1), 3.0
    for _ in range(60_000):  # unit inertia under a constant load, semi-implicit Euler of 1 ms
        velocity = velocity + 1e-3 * (law.torque(0, position, velocity, memory) + load)
        memory = memory + 1e-3 * law.memory_rate(0, position, velocity, memory)
        position = position + 1e-3 * velocity
    assert abs(position[0]) < 1e-9  # PD alone would rest at 3 / 20 rad
    assert memory[0] == pytest.approx(-load / 10.0, rel=1e-9)


def test_the_weight_is_carried_when_asked() -> None:
    law = PD(JOINTS, stiffness=0.0, damping=0.0, gravity_torque=lambda position: 9.0 * position)
    np.testing.assert_allclose(law.torque(0.0, np.array([1.0, 2.0]), np.zeros(2), NOTHING), [9.0, 18.0])


def test_a_relaxed_body_gets_no_torque() -> None:
    np.testing.assert_array_equal(Relaxed(JOINTS).torque(1.0, np.ones(2), np.ones(2), NOTHING), [0, 0])


def test_gains_by_name_follow_the_order_of_the_joints_and_default_to_zero() -> None:
    law = PD(("a", "b", "c"), stiffness={"c": 3.0, "a": 1.0}, damping=2.0)
    np.testing.assert_array_equal(law.stiffness, [1, 0, 3])
    np.testing.assert_array_equal(law.damping, [2, 2, 2])


def test_the_inputs_of_a_law_are_left_alone() -> None:
    law = PID(JOINTS, stiffness=1.0, damping=1.0, integral=1.0, gravity_torque=lambda position: position)
    given = [np.ones(2) for _ in range(3)]
    law.torque(0.0, *given)
    law.memory_rate(0.0, *given)
    np.testing.assert_array_equal(given, np.ones((3, 2)))


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ({"stiffness": {"knee": 1.0}, "damping": 0.0}, "stiffness: no joint is called 'knee'; .* are ankle, hip"),
        ({"stiffness": -1.0, "damping": 0.0}, "stiffness of joint 'ankle' is -1.0; .* finite number, 0 or more"),
        ({"stiffness": 1.0, "damping": {"hip": float("nan")}}, "damping of joint 'hip' is nan"),
        ({"stiffness": float("inf"), "damping": 0.0}, "stiffness of joint 'ankle' is inf"),
        ({"stiffness": {"hip": "soft"}, "damping": 0.0}, "stiffness of joint 'hip' is 'soft'"),
        ({"stiffness": [1.0, 2.0], "damping": 0.0}, r"stiffness of joint 'ankle' is \[1.0, 2.0\]"),
        ({"stiffness": 1.0, "damping": 0.0, "reference": float("nan")}, "reference .* must be a finite number$"),
        ({"stiffness": 1.0, "damping": 0.0, "integral": -1.0}, "integral gain of joint 'ankle' is -1.0"),
    ],
)  # fmt: skip
def test_bad_gains_are_refused_with_joint_and_value(gains: dict, message: str) -> None:
    with pytest.raises(ControllerError, match=message) as refused:
        PID(JOINTS, **gains)
    assert "\n" not in str(refused.value)


def test_a_reference_may_be_negative() -> None:
    np.testing.assert_array_equal(PD(JOINTS, stiffness=1.0, damping=0.0, reference=-0.5).reference, [-0.5, -0.5])


def test_no_file_of_the_controllers_imports_posture() -> None:
    files = list(Path(controllers.__file__).parent.glob("**/*.py"))
    assert len(files) >= 3
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "posture"], file


def test_importing_the_controllers_loads_nothing_of_posture() -> None:
    code = "import controllers, sys; print([n for n in sys.modules if n.split('.')[0] in ('posture', 'pinocchio')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
