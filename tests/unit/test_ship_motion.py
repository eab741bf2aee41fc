"""The deck in a random sea: variances, exact derivatives, seeds, axes."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from posture.deck import DeckSamples, SineDeck
from posture.errors import DeckError
from posture.ship.hull import Hull, encounter
from posture.ship.motion import SeaDeck, TurnedDeck
from posture.ship.response import Response
from posture.ship.sea import Sea, sea_state
from posture.ship.stance import Stance

HULL = Hull(100, 14, 5, 1.2, roll_radius=5)
STATION = (20.0, 3.0, 8.0)
HOURS = np.arange(0, 4 * 3600, 0.5)


@pytest.mark.parametrize(
    ("degrees", "speed", "spreading"), [(180, 8.0, None), (90, 0.0, None), (120, 5.0, 2.0), (30, 12.0, None)]
)
def test_variances_are_the_integrals_of_the_spectra(degrees: int, speed: float, spreading: float | None) -> None:
    sea, heading = sea_state("SS5", spreading=spreading), math.radians(degrees)
    # Following seas fold: waves of two lengths are met at almost the same slow rate and beat for hours, so that case
    # is averaged over eight seas instead of one; crossing waves do the same to a lesser degree.
    waves = 400 if spreading is None else 2200  # in eleven directions
    runs = range(8 if degrees == 30 else 4 if spreading else 1)
    variance, acceleration = np.mean(
        [
            [
                part.var(axis=0)
                for part in SeaDeck(HULL, sea, heading=heading, speed=speed, seed=seed, waves=waves).signals(HOURS)[::2]
            ]
            for seed in runs
        ],
        axis=0,
    )
    assert variance[0] == pytest.approx(sea.moment(0), rel=0.02)
    # ∫|H|²S written out here, on a grid of its own.
    omega = np.linspace(0.2, 5.0, 8001)
    density = np.interp(omega, sea.omega, sea.density)
    angles, shares = sea.directions()
    for column in range(6):
        exact = exact_acceleration = 0.0
        for angle, share in zip(angles, shares, strict=True):
            gain = np.abs(HULL.transfer(omega, np.full(len(omega), heading + angle), speed)[:, column]) ** 2
            met = encounter(omega, np.full(len(omega), heading + angle), speed)
            exact += share * np.trapezoid(gain * density, omega)
            exact_acceleration += share * np.trapezoid(gain * density * met**4, omega)
        if exact < 1e-8:
            assert variance[column + 1] < 1e-8
            continue
        assert variance[column + 1] == pytest.approx(exact, rel=0.02)
        assert acceleration[column + 1] == pytest.approx(exact_acceleration, rel=0.02)
        response = Response(HULL, sea, heading=heading, speed=speed)
        assert response.moment(response.motions[:, column]) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("facing", [0.0, 0.6])
def test_accelerations_at_a_station_have_the_variance_of_the_formula(facing: float) -> None:
    heading = math.radians(120)
    deck = SeaDeck(HULL, sea_state("SS4"), heading=heading, speed=6, station=STATION, seed=2)
    felt = TurnedDeck(deck, facing).sample(HOURS).specific_force
    formula = Response(HULL, sea_state("SS4"), heading=heading, speed=6, station=STATION, facing=facing)
    for column, signal in enumerate(formula.felt()):
        # The formula has small angles; at 1.5° RMS that is worth less than the 2 % of chance in four hours.
        assert felt[:, column].std() == pytest.approx(math.sqrt(formula.moment(signal)), rel=0.02)
    # Limits are the ship's: turning on one's heels changes none of them.
    ahead = Response(HULL, sea_state("SS4"), heading=heading, speed=6, station=STATION).rms()
    for name, value in formula.rms().items():
        assert value == pytest.approx(ahead[name], rel=1e-9)
    lateral = deck.sample(HOURS).specific_force[:, 1].std()
    assert ahead["lateral_acceleration"] == pytest.approx(lateral, rel=0.02)


def test_derivatives_match_finite_differences() -> None:
    deck = SeaDeck(HULL, sea_state("SS6"), heading=2.0, speed=6, station=STATION, seed=4)
    time = np.array([0.0, 17.3, 999.9, 3600.0])

    def differences(step: float, name: str) -> np.ndarray:
        def at(shift: float) -> np.ndarray:
            return np.hstack([getattr(deck.sample(time + shift), name)])

        # Fifth-order central difference: the error is of the order of step⁴ ω⁵ ≈ 1e-10 of the signal.
        return (-at(2 * step) + 8 * at(step) - 8 * at(-step) + at(-2 * step)) / (12 * step)

    sample = deck.sample(time)
    np.testing.assert_allclose(
        differences(0.01, "angular_velocity"),
        sample.angular_acceleration,
        atol=1e-8 * np.abs(sample.specific_force).max(),
    )

    # Specific force: second derivative of the place in the world, turned into the ship, plus gravity.
    def place(shift: float) -> np.ndarray:
        return deck.sample(time + shift).position

    step = 0.02
    curve = (-place(2 * step) + 16 * place(step) - 30 * place(0) + 16 * place(-step) - place(-2 * step)) / (
        12 * step**2
    )
    felt = Rotation.from_quat(sample.quaternion).inv().apply(curve + np.array([0, 0, deck.gravity]))
    np.testing.assert_allclose(felt, sample.specific_force, atol=1e-8 * 10)
    value, rate, acceleration = deck.signals(time)
    for lower, upper in ((0, rate), (1, acceleration)):
        parts = [deck.signals(time + shift)[lower] for shift in (0.008, 0.004, -0.004, -0.008)]
        slope = (-parts[0] + 8 * parts[1] - 8 * parts[2] + parts[3]) / 0.048
        np.testing.assert_allclose(slope, upper, atol=1e-8)
    assert value.shape == (4, 7)


def test_an_even_grid_gives_the_same_as_single_instants() -> None:
    deck = SeaDeck(HULL, sea_state("SS5"), heading=2.0, speed=6, seed=4)
    grid = np.arange(5000) * 0.1 + 3.0
    chosen = np.array([0, 1, 70, 71, 2345, 4999])
    for even, single in zip(deck.signals(grid), deck.signals(grid[chosen]), strict=True):
        np.testing.assert_allclose(even[chosen], single, atol=1e-11)


def test_the_same_seed_gives_the_same_bytes_and_another_one_another_sea() -> None:
    time = np.arange(0, 30, 0.1)
    one, same, other = (
        SeaDeck(HULL, sea_state("SS5"), heading=2.0, speed=6, seed=seed).sample(time) for seed in (7, 7, 8)
    )
    assert one.specific_force.tobytes() == same.specific_force.tobytes()
    assert np.abs(one.specific_force - other.specific_force).max() > 0.1


def test_one_long_wave_lifts_and_tilts_the_ship_together() -> None:
    # A narrow sea of very long following waves: heave follows the wave, pitch is its slope, a quarter period apart.
    omega = np.linspace(0.149, 0.151, 50)
    deck = SeaDeck(HULL, Sea(omega, np.full(50, 1000.0)), heading=0.0, seed=1, waves=8)
    time = np.arange(0, 400, 0.5)
    value, rate, _ = deck.signals(time)
    np.testing.assert_allclose(value[:, 3], value[:, 0], atol=0.02 * np.abs(value[:, 0]).max())
    # ζ(t, x) = a cos(ωt - kx): the slope in x is -ζ'·k/ω, and bow down is minus the slope.
    down = rate[:, 0] * 0.15 / 9.80665
    np.testing.assert_allclose(value[:, 5], down, atol=0.04 * np.abs(down).max())


@pytest.mark.parametrize("speed", [0.0, 6.0])
@pytest.mark.parametrize("degrees", [0, 60, 120, 180, 250])
def test_a_small_boat_rides_the_sea_that_is_drawn(degrees: int, speed: float) -> None:
    # In long swell each place on board stays as high above the drawn sea as it is above the water at rest: heave, roll,
    # pitch, surge and sway must all have the waves' own phases and directions for that.
    swell = Sea(np.linspace(0.2, 0.45, 200), np.ones(200), spreading=4.0)
    deck = SeaDeck(
        Hull(12, 4, 0.6, 0.8), swell, heading=math.radians(degrees), speed=speed, station=(4, 1.5, 2), seed=3, waves=300
    )
    time = np.arange(0, 300, 0.2)
    place, sea = deck.sample(time).position, deck.waves()
    phase = np.outer(time, sea["wave_frequency"]) - place[:, :2] @ sea["wave_number"].T + sea["wave_phase"]
    height = np.cos(phase) @ sea["wave_amplitude"]
    # Left over: slopes of 2 % RMS times what the boat strays, kT of depth, (ω/ω_roll)² of 2 % of the roll.
    assert np.abs(place[:, 2] - height - 2.0).max() < 0.1 * height.std()
    assert height.std() > 0.25


def test_facing_turns_what_is_felt() -> None:
    deck = SeaDeck(HULL, sea_state("SS5"), heading=2.0, speed=6, seed=1)
    time = np.arange(0, 20, 0.5)
    ship, person = deck.sample(time), TurnedDeck(deck, math.pi / 2).sample(time)
    # Looking to port: the person's forward is the ship's port, the person's left is the ship's stern.
    for name in ("angular_velocity", "angular_acceleration", "specific_force"):
        x, y, z = getattr(ship, name).T
        np.testing.assert_allclose(getattr(person, name), np.column_stack((y, -x, z)), atol=1e-12)
    np.testing.assert_allclose(person.roll_pitch_yaw[:, :2], ship.roll_pitch_yaw[:, :2], atol=1e-9)
    assert Stance().deck(deck) is deck
    turned = Stance(facing=1.0).deck(SineDeck())
    assert isinstance(turned.sample(time), DeckSamples)
    assert turned.duration == math.inf


def test_impossible_voyages_are_refused() -> None:
    sea = sea_state("SS5")
    with pytest.raises(DeckError, match=r"heading is 120, but must be .* rad; angles are in rad here"):
        SeaDeck(HULL, sea, heading=120, seed=1)
    with pytest.raises(DeckError, match="speed is -1, but must be a number from 0 to 40 m/s; not knots"):
        SeaDeck(HULL, sea, heading=1, speed=-1, seed=1)
    with pytest.raises(DeckError, match=r"lies outside hull: 70 m forward .* at most 60 m either way is on board"):
        SeaDeck(HULL, sea, heading=1, station=(70, 0, 5), seed=1)
    with pytest.raises(DeckError, match=r"lies outside hull: 9 m to port"):
        Response(HULL, sea, heading=1, station=(0, 9, 5))
    with pytest.raises(DeckError, match="number of waves is 2"):
        SeaDeck(HULL, sea, heading=1, seed=1, waves=2)
