"""Fisher information: closed forms, blind outputs, linear against simulated, and the best perturbation."""

import numpy as np
import pytest
import xarray as xr

from controllers import PD, Lyapunov
from posture.body import Body, load_body
from posture.errors import ScenarioError
from posture.observability import ResponseInformation, fisher_information
from posture.segments import lyapunov
from posture.simulate import simulate

NOISE = {"position_cop_on_deck": 1e-3, "position_com_in_deck": 1e-3}
FREQUENCY = np.arange(1, 16) * 0.1


@pytest.fixture(scope="module")
def body() -> Body:
    """Ankle and hip in the sagittal plane."""
    return load_body("ship_stance").lock(["knee_*", "neck_*", "*_x", "*_z"])


@pytest.fixture(scope="module")
def gains(body: Body) -> dict[str, float]:
    need = body.toppling_stiffness()
    return {
        "ankle stiffness": 1.6 * need["ankle_y"],
        "ankle damping": 0.3 * need["ankle_y"],
        "hip stiffness": 2 * need["hip_y"],
        "hip damping": 0.3 * need["hip_y"],
    }


def controller(body: Body, values: np.ndarray) -> PD:
    return PD(
        body.joint_names,
        stiffness={"ankle_y": values[0], "hip_y": values[2]},
        damping={"ankle_y": values[1], "hip_y": values[3]},
    )


@pytest.fixture(scope="module")
def response(body: Body, gains: dict[str, float]) -> ResponseInformation:
    return ResponseInformation(
        body, lambda values: controller(body, values), gains, NOISE, motion="surge", frequency=FREQUENCY, duration=20.0
    )


def test_closed_form():
    time = np.linspace(0, 1, 200)

    def run(gains: np.ndarray) -> xr.Dataset:
        return xr.Dataset({"y": ("time", gains[0] * time**2), "blind": ("time", 0 * time)}, coords={"time": time})

    found = fisher_information(run, {"a": 3.0, "b": 1.0}, {"y": 0.1, "blind": 0.1})
    assert found["information"].sel(output="y").values[0, 0] == pytest.approx(
        np.sum((3 * time**2 / 0.1) ** 2), rel=1e-3
    )
    errors = found["relative_error"]
    assert errors.sel(output="y", gain="a") == pytest.approx(0.1 / np.sqrt(np.sum((3 * time**2) ** 2)), rel=1e-3)
    assert np.isinf(errors.sel(output="y", gain="b"))
    assert np.isinf(errors.sel(output="blind")).all()
    with pytest.raises(ScenarioError, match="no output is called 'z'"):
        fisher_information(run, {"a": 1.0, "b": 1.0}, {"z": 0.1})


def test_two_gains_that_only_act_as_a_product_cannot_be_told_apart():
    time = np.linspace(0, 1, 50)

    def run(gains: np.ndarray) -> xr.Dataset:
        return xr.Dataset({"y": ("time", gains[0] * gains[1] * time)}, coords={"time": time})

    assert np.isinf(fisher_information(run, {"a": 3.0, "b": 2.0}, {"y": 0.1})["relative_error"].sel(output="all")).all()


def test_best_perturbation_is_certified_and_beats_other_mixes(response: ResponseInformation):
    limits = {"rms": 0.02, "rms_acceleration": 0.5}
    best = response.best(**limits)
    assert best.efficiency > 0.999
    omega = 2 * np.pi * FREQUENCY
    assert np.sum(best.amplitude**2) / 2 <= limits["rms"] ** 2 * (1 + 1e-6)
    assert np.sum((omega**2 * best.amplitude) ** 2) / 2 <= limits["rms_acceleration"] ** 2 * (1 + 1e-6)

    def score(power: np.ndarray) -> float:
        size = max(power.sum() / 2 / limits["rms"] ** 2, (omega**4 * power).sum() / 2 / limits["rms_acceleration"] ** 2)
        return float(np.linalg.slogdet(np.tensordot(power / size, response.information, 1))[1])

    top = float(np.linalg.slogdet(best.information)[1])
    generator = np.random.default_rng(0)
    others = [score(generator.exponential(size=len(FREQUENCY)) ** generator.uniform(0.5, 4)) for _ in range(300)]
    assert max(others) <= top + 1e-9
    assert top - np.median(others) > 0.5  # and the choice matters
    # Nearby, too: every shift of a tenth of the power between two frequencies loses.
    power = best.amplitude**2
    for index in range(len(power)):
        assert score(0.9 * power + 0.1 * power.sum() * np.eye(len(power))[index]) <= top + 1e-9


def test_linear_information_is_that_of_the_simulated_person(
    body: Body, gains: dict[str, float], response: ResponseInformation
):
    best = response.best(rms=0.01, rms_output={"position_cop_on_deck": 0.01})
    deck = best.deck()

    def run(values: np.ndarray) -> xr.Dataset:
        # All frequencies are multiples of 0.1 Hz: 10 s are whole periods; the start has died out after 10 s.
        whole = simulate(body, deck, controller(body, values), duration=20, step=0.01, output_step=0.02)
        return whole.isel(time=slice(501, None))

    found, expected = fisher_information(run, gains, NOISE), response.of(best.amplitude)
    # 10 s of the 20 s that the linear figures are for; the rest is the nonlinearity of 10 mm of sway.
    np.testing.assert_allclose(
        found["relative_error"].values, np.sqrt(2) * expected["relative_error"].values, rtol=0.03
    )
    cop = run(np.array(list(gains.values())))["position_cop_on_deck"].values[:, 0]
    assert np.std(cop) <= 0.0101


def test_outputs_that_cannot_tell_gains_apart_are_refused(body: Body, gains: dict[str, float]):
    def side(values: np.ndarray) -> PD:
        return controller(body, values)

    blind = ResponseInformation(
        body, side, gains, {"deck_position": 1e-3}, motion="surge", frequency=FREQUENCY[:3], duration=20.0
    )
    with pytest.raises(ScenarioError, match="whatever the platform does"):
        blind.best(rms=0.01)
    with pytest.raises(ScenarioError, match="did you mean 'position_cop_on_deck'"):
        ResponseInformation(body, side, gains, {"position_cop": 1e-3}, motion="surge", frequency=[0.2])


def test_gains_of_the_lyapunov_law_on_the_double_pendulum():
    """The question the paper ends on: which measured output tells about which feedback."""
    pendulum = load_body("double_pendulum")
    gains = {"rotation": 100.0, "translation": 25.0, "damping_time": 0.2}

    def law(values: np.ndarray) -> Lyapunov:
        return lyapunov(pendulum, rotation=values[0], translation=values[1], damping_time=values[2])

    noise = {"position_com_in_deck": 1e-3, "moment_deck_on_person": 0.1, "joint_position": 1e-3}
    found = ResponseInformation(pendulum, law, gains, noise, motion="surge", frequency=[0.3, 0.7, 1.5], duration=20.0)
    errors = found.of(np.array([0.03, 0.01, 0.005]))["relative_error"]
    assert np.isfinite(errors.values).all()
    single = errors.sel(output=list(noise)).values
    assert (errors.sel(output="all").values < single.min(axis=0)).all()  # together they see more than the best alone
    louder = ResponseInformation(
        pendulum, law, gains, {name: 2 * sd for name, sd in noise.items()}, motion="surge", frequency=[0.3, 0.7, 1.5],
        duration=20.0,
    ).of(np.array([0.03, 0.01, 0.005]))["relative_error"]  # fmt: skip
    np.testing.assert_allclose(louder.values, 2 * errors.values, rtol=1e-9)
    turned = ResponseInformation(pendulum, law, gains, noise, motion="heave", frequency=[0.3, 0.7, 1.5], duration=20.0)
    assert np.isinf(turned.of(np.full(3, 0.01))["relative_error"].values).all()  # upright, heave moves no joint
