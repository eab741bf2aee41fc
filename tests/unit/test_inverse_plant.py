"""Inverse plant on plants with known answers, on ship_stance, and its guidance about gains."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from controllers import ControllerError, InversePlant, best_gain
from posture.body import load_body
from posture.deck import Sine, SineDeck, constant_deck
from posture.estimate import replica
from posture.systems.ship_stance import balance_controller

J, K, D = 0.5, 30.0, 3.0  # kg·m², N·m/rad, N·m·s/rad of a plain oscillator


def oscillator(time: float, state: np.ndarray, applied: np.ndarray) -> np.ndarray:
    return np.array([state[1], (applied[0] - K * state[0] - D * state[1]) / J])


def transfer(omega: float, gain: float) -> complex:
    """Estimated over applied torque of the oscillator with K = (gain, 0.2 gain), in the frequency domain."""
    plant = 1 / (K - J * omega**2 + 1j * omega * D)
    loop = gain * (1 + 0.2j * omega) * plant
    return loop / (1 + loop)


@pytest.mark.parametrize("gain", [1e2, 1e3, 1e4])
def test_error_of_an_oscillator_is_that_of_the_closed_form(gain: float):
    omega, time = 3.0, np.linspace(0, 20, 2001)
    plant = 1 / (K - J * omega**2 + 1j * omega * D)
    position = np.real(plant * np.exp(1j * omega * time))
    velocity = np.real(1j * omega * plant * np.exp(1j * omega * time))
    inverse = InversePlant(oscillator, lambda x: x, gain=[[gain, 0.2 * gain]])
    found = inverse.run(time, np.column_stack((position, velocity)), start=np.zeros(2))
    expected = np.real(transfer(omega, gain) * np.exp(1j * omega * time))
    late = time > 10
    np.testing.assert_allclose(found.input[late, 0], expected[late], atol=2e-5)
    assert np.abs(found.input[late, 0] - np.cos(omega * time[late])).max() == pytest.approx(
        abs(transfer(omega, gain) - 1), rel=0.05
    )


def test_straight_and_smooth_agree_on_clean_data():
    time = np.linspace(0, 3, 601)
    z = np.column_stack((0.1 * np.sin(2 * time), 0.2 * np.cos(2 * time)))
    inverse = InversePlant(oscillator, lambda x: x, gain=[[500.0, 100.0]])
    smooth, straight = (inverse.run(time, z, start=z[0], between=way).input for way in ("smooth", "straight"))
    # A straight line between samples 5 ms apart misses the curve by h²/8 · 4 · amplitude: 500 · 1e-6.
    late = time > 0.1  # the replica starts at the right state but with the wrong input
    np.testing.assert_allclose(smooth[late], straight[late], atol=2e-3)


def test_ship_stance_needs_no_code_of_its_own_and_error_falls_as_one_over_gain():
    body, deck = load_body("ship_stance"), SineDeck({"pitch": [Sine(0.02, 3.0, 0.0)]})
    known, hip = balance_controller(body), body.joint_index("hip_y")
    plant, time = replica(body, deck, duration=1.0, controller=known), np.arange(51) / 50

    def torque(at: float) -> np.ndarray:
        return np.eye(12)[hip] * 10 * np.sin(np.pi * at) ** 2

    states = solve_ivp(
        lambda t, x: plant(t, x, torque(t)),
        (0, time[-1]),
        np.zeros(24),
        method="LSODA",
        t_eval=time,
        rtol=1e-9,
        atol=1e-11,
    ).y.T
    push = np.array([torque(t) for t in time])
    errors = []
    for gain in (1e4, 1e5):
        inverse = InversePlant(plant, lambda x: x, gain=np.hstack((gain * np.eye(12), 0.2 * gain * np.eye(12))))
        error = inverse.run(time, states, start=np.zeros(24)).input - push
        errors.append(np.sqrt(np.mean(error**2) / np.mean(push**2)))
    assert errors[1] < 0.02
    assert np.log10(errors[0] / errors[1]) == pytest.approx(1, abs=0.1)


def test_best_gain_is_where_noise_and_lag_meet():
    """On the oscillator the two terms can be measured: error without noise times gain, and noise as it passes."""
    omega, time = 3.0, np.arange(0, 30, 0.01)
    plant = 1 / (K - J * omega**2 + 1j * omega * D)
    z = np.column_stack(
        (np.real(plant * np.exp(1j * omega * time)), np.real(1j * omega * plant * np.exp(1j * omega * time)))
    )
    noise = np.random.default_rng(1).normal(0, [1e-3, 1e-2], z.shape)
    late, applied = time > 5, np.cos(omega * time)
    product = 1e4 * abs(transfer(omega, 1e4) - 1) / np.sqrt(2)
    gain, predicted = best_gain(product, noise_position=1e-3, noise_velocity=1e-2, damping_time=0.2)

    def error(k: float) -> float:
        inverse = InversePlant(oscillator, lambda x: x, gain=[[k, 0.2 * k]])
        found = inverse.run(time, z + noise, start=z[0], between="straight").input[:, 0]
        return float(np.sqrt(np.mean((found - applied)[late] ** 2)))

    at, low, high = error(gain), error(gain / 3), error(gain * 3)
    assert at == pytest.approx(predicted, rel=0.3)  # 1/K and full noise are both bounds, reached at high gain only
    assert at < low
    assert at < high


def test_known_deck_motion_is_not_mistaken_for_torque():
    body, deck = load_body("double_pendulum"), SineDeck({"surge": [Sine(0.05, 2.0, 0.0)]})
    known = balance_controller_of(body)
    plant, time = replica(body, deck, duration=1.0, controller=known), np.arange(41) / 50
    states = solve_ivp(
        lambda t, x: plant(t, x, np.zeros(6)),
        (0, time[-1]),
        np.zeros(12),
        method="LSODA",
        t_eval=time,
        rtol=1e-9,
        atol=1e-11,
    ).y.T
    gain = np.hstack((1e3 * np.eye(6), 2e2 * np.eye(6)))
    right = InversePlant(plant, lambda x: x, gain=gain).run(time, states, start=np.zeros(12))
    still = replica(body, constant_deck(), duration=1.0, controller=known)
    wrong = InversePlant(still, lambda x: x, gain=gain).run(time, states, start=np.zeros(12))
    assert np.abs(states[:, :6]).max() > 0.01
    assert np.abs(right.input).max() < 1e-3
    assert np.abs(wrong.input).max() > 1


def balance_controller_of(body):
    from posture.segments import lyapunov

    return lyapunov(body, rotation=100.0, translation=25.0, damping_time=0.2)


def test_bad_requests_get_one_sentence():
    inverse = InversePlant(oscillator, lambda x: x, gain=[[1e9, 1e9]])
    time, z = np.linspace(0, 1, 11), np.zeros((11, 2))
    with pytest.raises(ControllerError, match="far below the sampling step"):
        inverse.run(time, z, start=np.zeros(2), between="straight")
    with pytest.raises(ControllerError, match="11 × 2 finite numbers"):
        inverse.run(time, z[:, :1], start=np.zeros(2))
    with pytest.raises(ControllerError, match="smooth or straight"):
        inverse.run(time, z, start=np.zeros(2), between="spline")
    with pytest.raises(ControllerError, match="must be finite"):
        InversePlant(oscillator, lambda x: x, gain=[[np.inf, 1.0]])
    with pytest.raises(ControllerError, match="the larger, the better"):
        best_gain(1.0, noise_position=0.0, noise_velocity=0.0, damping_time=0.2)
