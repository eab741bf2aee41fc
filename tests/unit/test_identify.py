"""Identification of balance control: likelihoods against plain definitions, recovery of known parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from posture import Mechanics, RecordingError, identify_balance, load_body
from posture.identify import StanceModel, fisher_information, whiteness
from posture.identify.likelihood import kalman_function, model_spectrum, tapered_periodogram, whittle_function

PENDULUM = Mechanics.pendulum(mass=60, height=1.13, inertia=76, gravity=9.81)
# The paper's values (2006); s = (A/B)·√0.01.
TRUTH = {
    "stiffness": 1470.0,
    "damping": 200.0,
    "integral": 14.32,
    "noise_intensity": 1.25,
    "noise_time_constant": 80.0,
    "plate_noise": 3e-4,
}
DELAYED = TRUTH | {"stiffness": 1000.0, "damping": 300.0, "delay": 0.12}
HIP = {"hip_stiffness": 400.0, "hip_damping": 40.0, "hip_noise_intensity": 0.5}


def models() -> dict[str, tuple[StanceModel, dict[str, float]]]:
    two = Mechanics.of(load_body("ankle_hip"))
    return {
        "ankle": (StanceModel(PENDULUM), TRUTH),
        "ankle, delayed": (StanceModel(PENDULUM, delay=True), DELAYED),
        "ankle and hip": (StanceModel(two), TRUTH | HIP),
        "ankle and hip, delayed": (StanceModel(two, delay=True), DELAYED | HIP),
    }


def plain_kalman_cost(model: StanceModel, theta: np.ndarray, record: np.ndarray, step: float) -> float:
    """The textbook filter, sample by sample, with the mean as one more state; mm."""
    transition, covariance, output, sensor = model.sampled(theta, step)
    size = len(transition) + 1
    a, q, c = np.eye(size), np.zeros((size, size)), np.concatenate(([1.0], 1000 * output))
    a[1:, 1:], q[1:, 1:] = transition, covariance
    mean, spread = np.zeros(size), np.diag(np.concatenate(([1000.0], model.start_spread)) ** 2)
    cost = 0.0
    for value in record:
        variance = c @ spread @ c + (1000 * sensor) ** 2
        error = value - c @ mean
        cost += 0.5 * (np.log(variance) + error**2 / variance)
        gain = spread @ c / variance
        mean = a @ (mean + gain * error)
        spread = a @ (spread - np.outer(gain, c @ spread)) @ a.T + q
    return float(cost)


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.parametrize(("rate", "count"), [(10.0, 600), (50.0, 701)])
def test_the_block_likelihood_is_that_of_a_plain_kalman_filter(name: str, rate: float, count: int) -> None:
    model, values = models()[name]
    theta = model.theta(values)
    record = 1000 * model.simulate(values, rate=rate, count=count, seed=5)
    for point in (theta, theta + 0.3):
        cost = float(kalman_function(model, count, 1 / rate)(point, record)[0])
        # Two algorithms in doubles over covariances that span ten decades.
        assert cost == pytest.approx(plain_kalman_cost(model, point, record, 1 / rate), rel=1e-7, abs=1e-5)


@pytest.mark.parametrize("name", list(models()))
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    model, values = models()[name]
    theta = model.theta(values) + 0.1
    record = 1000 * model.simulate(values, rate=20.0, count=500, seed=6)
    frequency, power = tapered_periodogram(record, 0.05)
    for function, data in (
        (kalman_function(model, 500, 0.05), record),
        (whittle_function(model, frequency, 0.05), power),
    ):
        gradient = np.asarray(function(theta, data)[1]).ravel()
        size = 1e-4
        differences = [
            (float(function(theta + size * unit, data)[0]) - float(function(theta - size * unit, data)[0])) / (2 * size)
            for unit in np.eye(len(theta))
        ]
        np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("name", list(models()))
def test_the_spectrum_is_the_resolvent_and_adds_up_to_the_variance(name: str) -> None:
    model, values = models()[name]
    theta, rate = model.theta(values), 10.0
    transition, covariance, output, sensor = model.sampled(theta, 1 / rate)
    frequency = np.array([0.02, 0.3, 1.0, 4.9])
    ours = model_spectrum(model, theta, frequency, 1 / rate)
    for value, at in zip(ours, frequency, strict=True):
        resolvent = np.linalg.inv(np.exp(2j * np.pi * at / rate) * np.eye(len(transition)) - transition)
        direct = (output @ resolvent @ covariance @ resolvent.conj().T @ output).real + sensor**2
        assert value == pytest.approx(2 * direct / rate, rel=1e-8)
    grid = (np.arange(2**15) + 0.5) * rate / 2**16  # far finer than the slowest pole, 0.002 Hz
    stationary = output @ solve_discrete_lyapunov(transition, covariance) @ output + sensor**2
    assert np.sum(model_spectrum(model, theta, grid, 1 / rate)) * rate / 2**16 == pytest.approx(stationary, rel=1e-3)


@pytest.mark.parametrize("name", list(models()))
def test_the_state_space_is_the_impedance_of_body_and_control(name: str) -> None:
    model, p = models()[name]
    F, N, C, _ = model.system(model.theta(p))
    body, joints = model.mechanics, model.links
    for omega in (0.01, 0.5, 3.0, 7.0):
        s = 1j * omega
        law = np.zeros((joints, joints), complex)
        law[0, 0] = (p["stiffness"] + p["damping"] * s + p["integral"] / s) * np.exp(-s * p.get("delay", 0.0))
        if joints == 2:
            law[1, 1] = p["hip_stiffness"] + p["hip_damping"] * s
        impedance = body.mass_matrix * s**2 - body.toppling + law
        intensity = np.array([p["noise_intensity"], p.get("hip_noise_intensity", 0.0)])[:joints]
        angle = np.linalg.solve(impedance, np.diag(intensity / (s + 1 / p["noise_time_constant"])))
        direct = (body.cop_angle + s**2 * body.cop_acceleration) @ angle
        ours = C @ np.linalg.solve(s * np.eye(len(F)) - F, N)
        # Padé's second order leaves the phase wrong by (ω·delay)⁵/720, 6e-4 at the highest; near resonance times ten.
        np.testing.assert_allclose(ours, direct, rtol=6e-3 if model.delayed else 1e-9)


def test_mechanics_of_bodies() -> None:
    cip = Mechanics.of(load_body("cip"))
    assert cip.mass_matrix[0, 0] == pytest.approx(60 * 1.13**2 + 0.01)
    assert cip.ankle_load == pytest.approx(60 * 9.80665 * 1.13)
    assert cip.cop_angle[0] == pytest.approx(1.13)
    assert cip.cop_acceleration[0] == pytest.approx(-cip.mass_matrix[0, 0] / (60 * 9.80665))
    person = load_body("ship_stance")
    held = Mechanics.of(person.lock([name for name in person.joint_names if name not in ("ankle_y", "hip_y")]))
    two = Mechanics.of(load_body("ankle_hip"))
    for name in ("mass_matrix", "toppling", "cop_angle", "cop_acceleration"):  # seven digits in the URDF
        np.testing.assert_allclose(getattr(two, name), getattr(held, name), rtol=1e-6)
    with pytest.raises(RecordingError, match="12 joints are free"):
        Mechanics.of(person)
    with pytest.raises(RecordingError, match="lateral axis"):
        Mechanics.of(person.lock([name for name in person.joint_names if name != "ankle_x"]))


def recover(rate: float, records: int) -> tuple[np.ndarray, np.ndarray, list[list[str]], np.ndarray]:
    """Relative errors, whether intervals cover, verdicts, and the Cramér-Rao bound (relative), by parameter."""
    model = StanceModel(PENDULUM)
    errors, covered, verdicts = [], [], []
    for seed in range(records):
        record = model.simulate(TRUTH, rate=rate, count=round(60 * rate), seed=seed)
        found = identify_balance(record, rate=rate, mechanics=PENDULUM)
        assert found.converged
        estimates = [found.estimates[name] for name in model.names]
        errors.append([one.value / TRUTH[name] - 1 for one, name in zip(estimates, model.names, strict=True)])
        covered.append([one.low <= TRUTH[name] <= one.high for one, name in zip(estimates, model.names, strict=True)])
        verdicts.append([one.verdict for one in estimates])
    information = fisher_information(model, TRUTH, rate=rate, count=round(60 * rate))
    for name in ("integral", "noise_time_constant", "plate_noise"):  # what their priors add
        information[model.names.index(name), model.names.index(name)] += 1 / 1.5**2
    bound = np.sqrt(np.diag(np.linalg.inv(information)))
    bound[0] *= 1 - PENDULUM.ankle_load / TRUTH["stiffness"]  # of the stiffness, not of what exceeds the load
    return np.array(errors), np.array(covered), verdicts, bound


@pytest.mark.slow
def test_recovery_at_10_hz_is_at_the_cramer_rao_bound_and_intervals_cover() -> None:
    errors, covered, verdicts, bound = recover(10.0, 120)
    rms = np.sqrt(np.mean(errors**2, axis=0))
    assert rms[0] < 0.10
    assert rms[1] < 0.30
    for column in (0, 1, 3):  # stiffness, damping, noise intensity
        assert rms[column] < 1.3 * bound[column]
        assert rms[column] > 0.7 * bound[column]  # far below the bound would mean that the prior knows the answer
        assert 0.90 <= covered[:, column].mean() <= 0.99
    for column in (2, 4):  # integral gain and time constant
        assert np.mean([row[column] == "not identifiable" for row in verdicts]) > 0.95
    for column in (0, 1, 3):
        assert all(row[column] == "identified" for row in verdicts)


@pytest.mark.slow
def test_recovery_at_100_hz() -> None:
    errors, covered, verdicts, bound = recover(100.0, 40)
    rms = np.sqrt(np.mean(errors**2, axis=0))
    assert rms[0] < 0.10
    assert rms[1] < 0.15
    assert (rms[[0, 1, 3, 5]] < 1.3 * bound[[0, 1, 3, 5]]).all()
    assert 0.9 <= covered[:, [0, 1, 3]].mean() <= 0.99
    assert all(row[2] == row[4] == "not identifiable" for row in verdicts)


def test_whittle_agrees_with_kalman() -> None:
    record = StanceModel(PENDULUM).simulate(TRUTH, rate=20.0, count=6000, seed=3, settle=100)
    kalman = identify_balance(record, rate=20.0, mechanics=PENDULUM)
    whittle = identify_balance(record, rate=20.0, mechanics=PENDULUM, method="whittle")
    for name in ("stiffness", "damping", "noise_intensity"):
        # The taper weighs the record differently, so each may stray by about its own error.
        assert (
            abs(whittle.estimates[name].value - kalman.estimates[name].value)
            < 2.5 * whittle.estimates[name].standard_error
        )
    assert whittle.log_likelihood <= kalman.log_likelihood + 1e-6


def test_a_long_record_identifies_the_integral_gain() -> None:
    # The bound says 55 % at 600 s and 14 % at 6000 s with the time constant known: what 60 s cannot tell, 100 min can.
    record = StanceModel(PENDULUM).simulate(TRUTH, rate=2.0, count=12000, seed=8, settle=300)
    found = identify_balance(
        record, rate=2.0, mechanics=PENDULUM, fixed={"noise_time_constant": 80.0, "plate_noise": 3e-4}
    )
    one = found.estimates["integral"]
    assert one.verdict == "identified"
    assert one.low < TRUTH["integral"] < one.high
    assert "noise_time_constant" not in found.estimates


def test_the_delay_is_found_and_missing_it_is_noticed() -> None:
    model = StanceModel(PENDULUM, delay=True)
    record = model.simulate(DELAYED | {"plate_noise": 3e-5}, rate=20.0, count=2400, seed=2, settle=60)
    right = identify_balance(record, rate=20.0, mechanics=PENDULUM, delay=True)
    wrong = identify_balance(record, rate=20.0, mechanics=PENDULUM)
    delay = right.estimates["delay"]
    assert abs(delay.value - 0.12) < 3 * delay.standard_error
    assert delay.verdict == "identified"
    assert right.whiteness["white"]
    assert not wrong.whiteness["white"]
    assert right.aic < wrong.aic - 10
    assert any("not white" in note for note in wrong.notes)


def test_bootstrap_agrees_with_the_hessian() -> None:
    record = StanceModel(PENDULUM).simulate(TRUTH, rate=10.0, count=1200, seed=4, settle=100)
    found = identify_balance(record, rate=10.0, mechanics=PENDULUM)
    assert found.bootstrap(count=3, seed=1) == found.bootstrap(count=3, seed=1)
    drawn = found.bootstrap(count=40, seed=1)
    for name in ("stiffness", "damping", "noise_intensity"):
        # 40 draws know a deviation within 1/√80 = 11 %; three of those.
        assert drawn[name]["standard_error"] == pytest.approx(found.estimates[name].standard_error, rel=0.34)
        assert drawn[name]["low"] < found.estimates[name].value < drawn[name]["high"]


def test_the_smoother_knows_how_well_it_knows_the_disturbance() -> None:
    model = StanceModel(PENDULUM)
    theta = model.theta(TRUTH)
    transition, covariance, output, sensor = model.sampled(theta, 0.1)
    root = np.linalg.cholesky(covariance + 1e-18 * np.eye(4))
    scores = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        state, states = np.zeros(4), np.empty((400, 4))
        for index in range(400):
            states[index] = state
            state = transition @ state + root @ random.standard_normal(4)
        record = states @ output + sensor * random.standard_normal(400)
        fixed = {name: value for name, value in TRUTH.items() if name != "noise_intensity"}
        smooth = identify_balance(record, rate=10.0, mechanics=PENDULUM, fixed=fixed).smooth()
        change = smooth["disturbance_torque"].values[250] - states[250, 3]
        scores.append(change / smooth["disturbance_torque_sd"].values[250])
    # 30 independent scores: their rms is 1 within 3/√60.
    assert 0.6 < np.sqrt(np.mean(np.square(scores))) < 1.4


def test_whiteness_of_white_and_coloured_noise() -> None:
    random = np.random.default_rng(0)
    noise = random.standard_normal(3000)
    assert whiteness(noise, 0.1)["white"]
    verdicts = [whiteness(random.standard_normal(500), 0.1)["white"] for _ in range(300)]
    assert np.mean(verdicts) == pytest.approx(0.99, abs=0.02)  # the test's own level
    coloured = whiteness(noise[1:] + 0.3 * noise[:-1], 0.1)
    assert not coloured["white"]
    assert coloured["lag_one"] == pytest.approx(0.3 / 1.09, abs=0.05)


def test_filtered_records_are_thinned_and_it_is_said() -> None:
    from scipy.signal import butter, sosfiltfilt

    record = StanceModel(PENDULUM).simulate(TRUTH, rate=100.0, count=6000, seed=1)
    raw = identify_balance(record, rate=100.0, mechanics=PENDULUM)
    assert raw.step == 0.01
    assert not raw.notes
    smooth = sosfiltfilt(butter(4, 10, fs=100, output="sos"), record)
    thinned = identify_balance(smooth, rate=100.0, mechanics=PENDULUM)
    assert thinned.step == pytest.approx(0.1)
    assert any("every 10th sample" in note for note in thinned.notes)


def test_requests_that_make_no_sense_get_a_sentence() -> None:
    record = StanceModel(PENDULUM).simulate(TRUTH, rate=10.0, count=600, seed=1)
    for wrong, sentence in (
        ({"fixed": {"stifness": 1.0}}, "did you mean 'stiffness'"),
        ({"fixed": {"stiffness": 100.0}}, "must be a number from"),
        ({"priors": {"damping": (200.0, 0.0)}}, "log-sd"),
        ({"method": "magic"}, "no method"),
        ({"fixed": TRUTH}, "every parameter is fixed"),
        ({"rate": 0.5}, "rate is 0.5"),
    ):
        with pytest.raises(RecordingError, match=sentence):
            identify_balance(record, **{"rate": 10.0, "mechanics": PENDULUM, **wrong})
    with pytest.raises(RecordingError, match="do not balance"):
        StanceModel(PENDULUM, delay=True).simulate(DELAYED | {"delay": 0.39}, rate=10.0, count=100, seed=0)
