"""Smoother and inverse dynamics: against the dense Gaussian solution, calibrated errors, torques of a known run."""

import numpy as np
import pytest

from controllers import PD
from posture.body import load_body
from posture.deck import Sine, SineDeck
from posture.estimate import EstimateError, joint_torques, smooth_motion
from posture.simulate import simulate


def test_smoother_is_the_conditional_mean_of_the_whole_record():
    """Dense algebra: integrals of white snap from an uncertain start, conditioned on all samples at once."""
    generator, step, count, snap = np.random.default_rng(0), 0.05, 15, 40.0
    time = np.arange(count) * step
    position, velocity = generator.normal(0, 1, (count, 1)), generator.normal(0, 1, (count, 1))
    found = smooth_motion(time, position, velocity, noise_position=0.1, noise_velocity=0.2, snap=snap)

    # State over time by fine steps of the exact integrals, written with factorials.
    def shift(t: float) -> np.ndarray:
        return np.array([[1, t, t**2 / 2, t**3 / 6], [0, 1, t, t**2 / 2], [0, 0, 1, t], [0, 0, 0, 1]])

    def added(t: float) -> np.ndarray:
        # ∫ c(s) c(s)' ds with c = (s³/6, s²/2, s, 1)
        power, divisor = np.array([3, 2, 1, 0]), np.array([6.0, 2, 1, 1])
        total = power[:, None] + power[None, :] + 1
        return t**total / total / np.outer(divisor, divisor)

    # The smoother starts from its first sample: mean there, with the measured noise and wide rates.
    mean, cov = np.zeros((count, 4)), np.zeros((count * 4, count * 4))
    mean[0] = [position[0, 0], velocity[0, 0], 0, 0]
    block = np.diag([0.1**2, 0.2**2, 1e4, 1e6])
    for i in range(count):
        if i:
            mean[i] = shift(step) @ mean[i - 1]
            block = shift(step) @ block @ shift(step).T + snap * added(step)
        for j in range(i, count):
            cov[4 * j : 4 * j + 4, 4 * i : 4 * i + 4] = shift((j - i) * step) @ block
            cov[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] = cov[4 * j : 4 * j + 4, 4 * i : 4 * i + 4].T
    seen = np.array([4 * i + k for i in range(1, count) for k in (0, 1)])
    z = np.column_stack((position, velocity))[1:].ravel()
    noise = np.tile([0.1**2, 0.2**2], count - 1)
    gain = np.linalg.solve(cov[np.ix_(seen, seen)] + np.diag(noise), cov[seen]).T
    expected = mean.ravel() + gain @ (z - mean.ravel()[seen])
    left = np.sqrt(np.diag(cov - gain @ cov[seen])).reshape(count, 4)
    expected = expected.reshape(count, 4)
    np.testing.assert_allclose(found.position[:, 0], expected[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.velocity[:, 0], expected[:, 1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.acceleration[:, 0], expected[:, 2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.acceleration_sd[:, 0], left[:, 2], rtol=1e-4)


def test_strength_is_found_and_errors_are_as_large_as_claimed():
    generator, time = np.random.default_rng(3), np.arange(0, 8, 0.01)
    true = np.column_stack((0.3 * np.sin(3 * time), 0.02 * np.sin(9 * time)))
    speed = np.column_stack((0.9 * np.cos(3 * time), 0.18 * np.cos(9 * time)))
    acceleration = np.column_stack((-2.7 * np.sin(3 * time), -1.62 * np.sin(9 * time)))
    found = smooth_motion(
        time,
        true + generator.normal(0, 1e-3, true.shape),
        speed + generator.normal(0, 1e-2, true.shape),
        noise_position=1e-3,
        noise_velocity=1e-2,
    )
    inner = slice(50, -50)
    score = ((found.acceleration - acceleration) / found.acceleration_sd)[inner]
    assert 0.5 < np.sqrt(np.mean(score**2)) < 1.5
    error = np.sqrt(np.mean((found.acceleration - acceleration)[inner] ** 2, axis=0))
    differences = np.gradient(speed + generator.normal(0, 1e-2, speed.shape), time, axis=0) - acceleration
    assert (error < 0.1 * np.sqrt(np.mean(differences[inner] ** 2, axis=0))).all()


@pytest.mark.parametrize("velocity", [True, False])
def test_torques_of_a_person_on_a_moving_deck_come_back_from_noisy_angles(velocity: bool):
    body = load_body("ship_stance")
    stiffness = {name: 6 * value for name, value in body.toppling_stiffness().items()}
    law = PD(body.joint_names, stiffness=stiffness, damping={name: 0.04 * value for name, value in stiffness.items()})
    deck = SineDeck({"roll": [Sine(0.1, 4, 0.3)], "pitch": [Sine(0.06, 3, 1)], "surge": [Sine(0.2, 3.5, 1)]})
    run = simulate(body, deck, law, duration=6, step=0.005, output_step=0.01)
    generator, shape = np.random.default_rng(2), run["joint_position"].shape
    motion = smooth_motion(
        run.time.values,
        run["joint_position"].values + generator.normal(0, 1e-3, shape),
        run["joint_velocity"].values + generator.normal(0, 1e-2, shape) if velocity else None,
        noise_position=1e-3,
        **({"noise_velocity": 1e-2} if velocity else {}),
    )
    torque = joint_torques(body, deck, run.time.values, motion)
    for joint in ("ankle_x", "ankle_y", "hip_x", "hip_y"):
        column, inner = body.joint_index(joint), slice(100, -100)
        true = run["joint_torque"].values[inner, column]
        error = np.sqrt(np.mean((torque[inner, column] - true) ** 2)) / np.std(true)
        assert error < (0.1 if velocity else 0.2), joint


@pytest.mark.parametrize(
    ("time", "noise", "message"),
    [
        (np.arange(5) * 0.1, 1e-3, "fewer than ten"),
        (np.arange(20) ** 2 * 0.1, 1e-3, "evenly spaced"),
        (np.arange(20) * 0.1, 0.0, "positive standard deviations"),
    ],
)
def test_records_that_cannot_be_smoothed_are_refused(time: np.ndarray, noise: float, message: str):
    with pytest.raises(EstimateError, match=message):
        smooth_motion(time, np.zeros((len(time), 2)), noise_position=noise)
