"""Deck motion: exact derivatives, the station, recorded inertial data and what of it is refused."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY
from posture.deck import DeckSamples, RecordedDeck, Sine, SineDeck, bryant_rates, constant_deck, read_imu_csv
from posture.errors import DeckError

Array = NDArray[np.floating]
UP = np.array([0, 0, STANDARD_GRAVITY])


def rough_deck(**settings: object) -> SineDeck:
    """All six motions at once, angles large enough that no order of rotations can be mistaken for another."""
    return SineDeck(
        {
            "surge": [Sine(0.6, 9.1, 0.4), Sine(0.3, 6.3, 2.1)],
            "sway": [Sine(0.9, 9.7, 1.3)],
            "heave": [Sine(1.6, 8.3, 2.9), Sine(0.4, 5.1, 0.2)],
            "roll": [Sine(0.45, 9.5, 4.4), Sine(0.1, 6.9, 0.9)],
            "pitch": [Sine(0.3, 7.9, 1.1)],
            "yaw": [Sine(0.4, 10.3, 5.5)],
        },
        steady={"roll": 0.1, "pitch": -0.05, "yaw": 0.7, "surge": 3.0},
        **settings,
    )


def differences(at: Callable[[Array], Array], time: Array, step: float = 0.1) -> tuple[Array, Array]:
    """First and second derivative by central differences of order 10 over 11 values.

    Truncation: with the fastest frequency w = 1.24 rad/s, (w·0.1)^10 · amplitude < 1e-9 / 1000; rounding: 1e-15 / 0.1².
    """
    nodes = np.arange(-5, 6)
    powers = np.vander(nodes, 11, increasing=True).T.astype(float)
    wanted = np.zeros((11, 2))
    wanted[1, 0], wanted[2, 1] = 1.0, 2.0
    weights = np.linalg.solve(powers, wanted)
    values = np.array([at(time + node * step) for node in nodes])
    first, second = np.tensordot(weights.T, values, axes=1)
    return first / step, second / step**2


def matrices(samples: DeckSamples) -> Array:
    return Rotation.from_quat(samples.quaternion).as_matrix()


@pytest.mark.parametrize("station", [(0.0, 0.0, 0.0), (12.0, -3.0, 5.0)])
def test_channels_are_the_derivatives_of_the_pose(station: tuple[float, float, float]) -> None:
    deck, time = rough_deck(station=station), np.linspace(0, 60, 241)
    samples = deck.sample(time)
    turn = matrices(samples)
    turn_rate, turn_acceleration = differences(lambda t: matrices(deck.sample(t)), time)
    # Rᵀ R' = S(w); Rᵀ R'' = S(w') + S(w)², whose skew part is S(w').
    spin = np.einsum("nji,njk->nik", turn, turn_rate)
    spin_rate = np.einsum("nji,njk->nik", turn, turn_acceleration)
    for found, skew in ((samples.angular_velocity, spin), (samples.angular_acceleration, spin_rate)):
        vector = np.stack((skew[:, 2, 1] - skew[:, 1, 2], skew[:, 0, 2] - skew[:, 2, 0], skew[:, 1, 0] - skew[:, 0, 1]))
        assert np.abs(found - vector.T / 2).max() <= 1e-8
    acceleration = differences(lambda t: deck.sample(t).position, time)[1]
    expected = np.einsum("nji,nj->ni", turn, acceleration + UP)
    assert np.abs(samples.specific_force - expected).max() <= 1e-8
    assert np.abs(samples.angular_acceleration).max() > 0.1  # there is something to get wrong


def test_the_six_motions_are_the_derivatives_of_each_other() -> None:
    deck, time = rough_deck(), np.linspace(0, 30, 61)
    rate, acceleration = differences(lambda t: deck.motions(t)[0], time)
    assert np.abs(deck.motions(time)[1] - rate).max() <= 1e-8
    assert np.abs(deck.motions(time)[2] - acceleration).max() <= 1e-8


def test_bryant_rates_keep_any_leading_shape() -> None:
    rng = np.random.default_rng(0)
    angles, rates, accelerations = rng.normal(size=(3, 4, 5, 3))
    velocity, acceleration = bryant_rates(angles, rates, accelerations)
    one = bryant_rates(angles[2, 3], rates[2, 3], accelerations[2, 3])
    np.testing.assert_array_equal(velocity[2, 3], one[0])
    np.testing.assert_array_equal(acceleration[2, 3], one[1])


def test_positive_angles_turn_the_ship_as_documented() -> None:
    port, bow = np.array([0, 1.0, 0]), np.array([1.0, 0, 0])

    def turned(vector: Array, **steady: float) -> Array:
        return matrices(SineDeck(steady=steady).sample(np.zeros(1)))[0] @ vector

    assert turned(-port, roll=0.1)[2] < 0  # starboard down
    assert turned(bow, pitch=0.1)[2] < 0  # bow down
    assert turned(bow, yaw=0.1)[1] > 0  # bow to port


def test_a_station_off_the_axis_of_roll_feels_the_rotation() -> None:
    roll = {"roll": [Sine(0.2, 8.0, 0.0)]}
    time, arm = np.linspace(0, 8, 81), 5.0
    omega = 2 * np.pi / 8
    here = SineDeck(roll).sample(time)
    above = SineDeck(roll, station=(0, 0, arm)).sample(time)
    ahead = SineDeck(roll, station=(arm, 0, 0)).sample(time)
    rate, acceleration = -0.2 * omega * np.sin(omega * time), -0.2 * omega**2 * np.cos(omega * time)
    difference = above.specific_force - here.specific_force
    np.testing.assert_allclose(difference[:, 1], -arm * acceleration, atol=1e-13)  # roll to starboard throws to it
    np.testing.assert_allclose(difference[:, 2], -arm * rate**2, atol=1e-13)  # centripetal
    np.testing.assert_allclose(ahead.specific_force, here.specific_force, atol=1e-13)  # on the axis: nothing
    np.testing.assert_array_equal(above.angular_velocity, here.angular_velocity)
    np.testing.assert_allclose(above.position[:, 1], -arm * np.sin(0.2 * np.cos(omega * time)), atol=1e-12)


def test_a_deck_at_rest_feels_gravity_only() -> None:
    samples = constant_deck(roll=0.2, pitch=-0.1).sample(np.linspace(0, 5, 7))
    np.testing.assert_array_equal(samples.angular_velocity, 0)
    np.testing.assert_array_equal(samples.angular_acceleration, 0)
    np.testing.assert_allclose(np.linalg.norm(samples.specific_force, axis=1), STANDARD_GRAVITY, rtol=1e-14)
    # Starboard down: the support has a component to port. Bow up: one forward.
    c, s = math.cos, math.sin
    expected = STANDARD_GRAVITY * np.array([s(0.1) * c(0.2), s(0.2), c(0.1) * c(0.2)])
    np.testing.assert_allclose(samples.specific_force, np.tile(expected, (7, 1)), atol=1e-12)
    assert constant_deck().duration == math.inf
    np.testing.assert_array_equal(constant_deck().sample(np.zeros(1)).specific_force, [UP])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SineDeck({"rol": []}), "did you mean 'roll'"),
        (lambda: SineDeck({"roll": [Sine(30, 8, 0)]}), "angles are in rad"),
        (lambda: SineDeck({"heave": [Sine(1, 0, 0)]}), "heave period"),
        (lambda: SineDeck({"heave": [Sine(1, 0.125, 0)]}), "periods are in s, not Hz"),
        (lambda: SineDeck({"heave": [Sine(math.nan, 8, 0)]}), "heave amplitude"),
        (lambda: SineDeck(steady={"pitch": 9}), "steady pitch"),
        (lambda: SineDeck(station=(1, 2)), "x, y, z"),
        (lambda: SineDeck(station=(1, 2, math.inf)), "station"),
    ],
)
def test_impossible_motions_are_refused(build: Callable[[], SineDeck], words: str) -> None:
    with pytest.raises(DeckError, match=words):
        build()


# ---------------------------------------------------------------- recorded data

GYRO_NOISE = 0.0009  # rad/s per sample: raw differences at 50 Hz then err by 0.03 rad/s², as much as the signal
ACCEL_NOISE = 0.02  # m/s² per sample


def sea() -> SineDeck:
    """A sea in which roll and pitch have RMS 2.7° and 1.8°, like the reference the figures below come from."""
    degree = math.pi / 180
    return SineDeck(
        {
            "sway": [Sine(0.45, 9.7, 1.3), Sine(0.20, 8.1, 5.2)],
            "heave": [Sine(0.80, 8.3, 2.9), Sine(0.45, 7.1, 0.2)],
            "roll": [Sine(2.9 * degree, 9.5, 4.4), Sine(2.1 * degree, 7.9, 0.9)],
            "pitch": [Sine(2.0 * degree, 7.9, 1.1), Sine(1.3 * degree, 6.7, 3.3)],
            "yaw": [Sine(0.8 * degree, 10.3, 5.5)],
        }
    )


def imu(rate: float, duration: float = 300.0, *, noise: float = 1.0, seed: int = 4) -> tuple[Array, Array, Array]:
    """What an inertial sensor on that deck records."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(duration * rate)) / rate
    truth = sea().sample(time)
    gyro = truth.angular_velocity + noise * GYRO_NOISE * rng.standard_normal((len(time), 3))
    accel = truth.specific_force + noise * ACCEL_NOISE * rng.standard_normal((len(time), 3))
    return time, gyro, accel


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize("rate", [50.0, 100.0])
def test_a_noisy_record_gives_back_the_channels(rate: float) -> None:
    time, gyro, accel = imu(rate)
    deck = RecordedDeck(time, gyro, accel, cutoff_hz=2.0)
    inner = time[(time > 5) & (time < deck.duration - 5)]
    truth, found = sea().sample(inner), deck.sample(inner)
    rows = (time > 5) & (time < deck.duration - 5)
    raw_error = rms(np.gradient(gyro, 1 / rate, axis=0)[rows] - truth.angular_acceleration)
    error = rms(found.angular_acceleration - truth.angular_acceleration)
    # White noise of σ per sample: central differences err by σ·rate/√2; an ideal low-pass to fc, differentiated, by
    # σ·2π·fc^1.5·√(2/(3·rate)). The filter runs both ways, so it passes no more noise than the ideal one.
    assert raw_error == pytest.approx(GYRO_NOISE * rate / math.sqrt(2), rel=0.03)
    assert error < 1.05 * GYRO_NOISE * 2 * math.pi * 2.0**1.5 * math.sqrt(2 / (3 * rate))
    assert raw_error / error > (15 if rate == 50 else 40)
    assert rms(found.angular_velocity - truth.angular_velocity) < 0.4 * GYRO_NOISE
    assert rms(found.specific_force - truth.specific_force) < 0.4 * ACCEL_NOISE


def test_filtering_shifts_nothing_in_time() -> None:
    time, gyro, accel = imu(50.0, noise=0.0)
    deck = RecordedDeck(time, gyro, accel, cutoff_hz=2.0)
    inner = np.linspace(20, 280, 2001)  # also between the samples
    truth, found = sea().sample(inner), deck.sample(inner)
    # A one-way filter would be late by tenths of a second: tens of percent. Slowest 0.1 Hz, fastest 0.15 Hz: |H|² of
    # order 4 at 0.15 of 2 Hz differs from 1 by 0.075^8 = 1e-9.
    assert rms(found.angular_velocity - truth.angular_velocity) < 1e-5 * rms(truth.angular_velocity)
    assert rms(found.angular_acceleration - truth.angular_acceleration) < 1e-4 * rms(truth.angular_acceleration)


def test_jittered_and_offset_clocks_are_put_right() -> None:
    rng = np.random.default_rng(2)
    time = np.arange(5000) / 50 + rng.uniform(-0.004, 0.004, 5000)
    truth = sea().sample(time)
    deck = RecordedDeck(time + 1e5, truth.angular_velocity, truth.specific_force)
    inner = np.linspace(10, 90, 500)
    found = deck.sample(inner)
    exact = sea().sample(inner + time[0])
    assert rms(found.angular_velocity - exact.angular_velocity) < 1e-4 * rms(exact.angular_velocity)


def test_the_drawn_attitude_and_travel_stay_close_to_the_truth() -> None:
    time, gyro, accel = imu(50.0)
    deck = RecordedDeck(time, gyro, accel)
    inner = np.arange(60.0, 240.0, 0.1)
    truth, found = sea().sample(inner), deck.sample(inner)
    up_true, up_found = matrices(truth)[:, 2], matrices(found)[:, 2]  # the world's up in ship axes
    tilt = np.degrees(np.arccos(np.clip(np.sum(up_true * up_found, axis=1), -1, 1)))
    smooth = found.specific_force / np.linalg.norm(found.specific_force, axis=1, keepdims=True)
    tilt_of_accelerometer = np.degrees(np.arccos(np.clip(np.sum(up_true * smooth, axis=1), -1, 1)))
    assert rms(tilt) < 0.3
    assert rms(tilt_of_accelerometer) > 5 * rms(tilt)
    np.testing.assert_allclose(np.linalg.norm(found.quaternion, axis=1), 1, rtol=1e-14)
    heave = truth.position[:, 2] - truth.position[:, 2].mean()
    assert rms(found.position[:, 2] - heave) < 0.1 * rms(heave)


def test_a_record_cannot_be_asked_beyond_its_ends() -> None:
    deck = RecordedDeck(*imu(50.0, 20.0))
    assert deck.duration == pytest.approx(19.98)
    for instant in (-0.5, 20.5):
        with pytest.raises(DeckError, match=rf"lasts 19\.98 s but {instant} s was asked for"):
            deck.sample(np.array([3.0, instant, 5.0]))


def spoil(what: str) -> tuple[Array, Array, Array]:
    time, gyro, accel = imu(50.0, 20.0)
    if what == "gap":
        keep = np.r_[0:400, 410:1000]
        return time[keep], gyro[keep], accel[keep]
    if what == "nan":
        gyro[123, 1] = np.nan
    if what == "back":
        time[500] = time[498]
    if what == "g":
        accel = accel / STANDARD_GRAVITY
    if what == "no gravity":
        accel = accel - UP
    if what == "z down":
        accel = accel * [1, -1, -1]
    if what == "y up":
        accel = accel[:, [0, 2, 1]]
    if what == "degrees":
        gyro = np.degrees(gyro)
    if what == "small degrees":  # a calm day: never above 3 "rad/s", but the swing is absurd
        gyro = np.degrees(gyro) / 2
        assert np.abs(gyro).max() < 3
    if what == "overflow":
        accel[123, 1] = 1e308
    if what == "short":
        return time[:63], gyro[:63], accel[:63]
    return time, gyro, accel


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("gap", r"sample 401: a gap of 0\.22 s where samples come every 0\.02 s"),
        ("nan", "sample 124: a value is missing"),
        ("back", "sample 501: time goes from .* must increase"),
        ("g", "it looks like g"),
        ("no gravity", "is gravity removed"),
        ("z down", "along −Z"),
        ("y up", "another axis than Z"),
        ("degrees", "gyro_x_deg_s"),
        ("small degrees", "RMS at the rate of waves.*gyro_x_deg_s"),
        ("overflow", "sample 124: a value is beyond"),
        ("short", "63 samples are too few"),
    ],
)
def test_a_record_that_cannot_be_right_is_refused_with_the_reason(what: str, words: str) -> None:
    with pytest.raises(DeckError, match=words):
        RecordedDeck(*spoil(what), source="trial.csv")


@pytest.mark.parametrize("cutoff", [0.0, 25.0, math.nan])
def test_a_cutoff_the_record_cannot_carry_is_refused(cutoff: float) -> None:
    with pytest.raises(DeckError, match=r"cutoff_hz.*50 samples per second"):
        RecordedDeck(*imu(50.0, 20.0), cutoff_hz=cutoff)


HEADER = "time_s,gyro_x_rad_s,gyro_y_rad_s,gyro_z_rad_s,accel_x_m_s2,accel_y_m_s2,accel_z_m_s2"


def write_csv(path: Path, header: str, table: Array) -> Path:
    rows = [",".join(repr(float(value)) for value in row) for row in table]
    path.write_text("# a comment\n" + header + "\n" + "\n".join(rows) + "\n")
    return path


def test_units_in_column_names_lead_to_the_same_motion(tmp_path: Path) -> None:
    time, gyro, accel = imu(50.0, 20.0)
    one = read_imu_csv(write_csv(tmp_path / "si.csv", HEADER, np.column_stack((time, gyro, accel))))
    header = "accel_z_g,accel_y_g,accel_x_g,gyro_x_deg_s,gyro_y_deg_s,gyro_z_deg_s,temperature,time_s"
    table = np.column_stack((accel[:, ::-1] / STANDARD_GRAVITY, np.degrees(gyro), np.full(len(time), 21.0), time))
    other = read_imu_csv(write_csv(tmp_path / "other.csv", header, table))
    instants = np.linspace(0, 19, 50)
    for field in ("angular_velocity", "angular_acceleration", "specific_force", "quaternion"):
        np.testing.assert_allclose(
            getattr(one.sample(instants), field), getattr(other.sample(instants), field), atol=1e-10
        )


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER.replace("time_s", "t"), "no column time_s"),
        (HEADER.replace("gyro_y_rad_s", "gyro_y"), "column gyro_y is missing"),
        (HEADER.replace("gyro_y_rad_s", "gyro_y_deg_s"), "different units"),
        (HEADER + ",gyro_x_deg_s", "stands twice, in different units"),
        (HEADER + ",gyro_x_rad_s", "stands more than once"),
    ],
)
def test_columns_that_do_not_tell_their_unit_are_refused(tmp_path: Path, header: str, words: str) -> None:
    table = np.column_stack(imu(50.0, 4.0))
    if header.count(",") == 7:
        table = np.column_stack((table, table[:, 1]))
    with pytest.raises(DeckError, match=words):
        read_imu_csv(write_csv(tmp_path / "record.csv", header, table))


def test_text_among_the_numbers_is_named_by_its_row(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "record.csv", HEADER, np.column_stack(imu(50.0, 4.0)))
    lines = path.read_text().splitlines()
    lines[40] = lines[40].replace(",", ",oops", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(DeckError, match="data row 39"):
        read_imu_csv(path)
    lines[40] = ",".join(["0.76", "", "0", "0", "0", "0", "9.8"])
    path.write_text("\n".join(lines))
    with pytest.raises(DeckError, match="sample 39: a value is missing"):
        read_imu_csv(path)
