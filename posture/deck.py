"""How the ground moves: what a person standing on a ship can feel, as nine channels in the ship's own axes.

Angular velocity (rad/s), angular acceleration (rad/s²) and specific force (m/s²: acceleration minus gravity, what
an accelerometer reads; +9.81 along Z on a level deck at rest), all at the place where the person stands, ship axes
X bow, Y port, Z up. They decide the person's dynamics completely. The pose (position, orientation) is for drawing
and for measures such as roll; no simulation needs it.

Rotation is Bryant's: ship to world = Rx(roll) Ry(pitch) Rz(yaw); positive roll puts the starboard side down,
positive pitch the bow down, positive yaw turns the bow to port.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY
from posture.engine.tables import Components, Spline
from posture.errors import DeckError, check_number, find_name

Array = NDArray[np.floating]

MAX_PEAK = 50.0  # m/s² or rad/s² of one harmonic; five times gravity
MOTIONS = ("surge", "sway", "heave", "roll", "pitch", "yaw")


@dataclass(frozen=True)
class DeckSamples:
    """Deck motion at n instants; vectors n × 3 in ship axes.

    ``position`` (n × 3, m) and ``quaternion`` (n × 4, x y z w, ship to world) are for drawing.
    """

    time: Array
    angular_velocity: Array
    angular_acceleration: Array
    specific_force: Array
    position: Array
    quaternion: Array

    @property
    def roll_pitch_yaw(self) -> Array:
        """Bryant angles, n × 3, rad."""
        return np.asarray(Rotation.from_quat(self.quaternion).as_euler("XYZ"))


def channels_of(deck: DeckSamples) -> Array:
    """The nine channels, n × 9: angular velocity, angular acceleration, specific force."""
    return np.hstack((deck.angular_velocity, deck.angular_acceleration, deck.specific_force))


class DeckMotion(Protocol):
    """Anything that can tell the deck's motion from time 0 to ``duration`` (s)."""

    @property
    def duration(self) -> float:
        """Last instant that can be asked for, s; infinite for formulas."""
        ...

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants (s)."""
        ...


@dataclass(frozen=True)
class Sine:
    """One harmonic a·cos(2πt/T + phase): amplitude in m or rad, period in s, phase in rad."""

    amplitude: float
    period: float
    phase: float


class SineDeck:
    """Sums of harmonics about a steady position, in six motions, with exact derivatives.

    ``components``: motion name to harmonics. ``steady``: motion name to a constant (m or rad), such as a list of
    the ship. ``station``: where the person stands, m from the ship's reference point, ship axes.
    """

    duration = math.inf

    def __init__(
        self,
        components: Mapping[str, Sequence[Sine]] | None = None,
        *,
        steady: Mapping[str, float] | None = None,
        station: Sequence[float] = (0.0, 0.0, 0.0),
        gravity: float = STANDARD_GRAVITY,
    ) -> None:
        self.components = {
            find_name(name, MOTIONS, what="motion", where="deck", error=DeckError): tuple(parts)
            for name, parts in (components or {}).items()
        }
        self.steady = np.zeros(6)
        for name, value in (steady or {}).items():
            index = MOTIONS.index(find_name(name, MOTIONS, what="motion", where="deck", error=DeckError))
            limit, unit = (1e6, "m") if index < 3 else (math.pi, "rad")
            self.steady[index] = check_number(
                value, what=f"deck: steady {name}", unit=unit, low=-limit, high=limit, error=DeckError
            )
        for name, parts in self.components.items():
            angular = name in MOTIONS[3:]
            for part in parts:
                check_number(
                    part.amplitude,
                    what=f"deck: {name} amplitude",
                    unit="rad" if angular else "m",
                    low=0,
                    high=math.pi / 2 if angular else 100,
                    error=DeckError,
                    hint="angles are in rad here" if angular else "",
                )
                check_number(part.period, what=f"deck: {name} period", unit="s", low=0.05, high=3600, error=DeckError)
                check_number(part.phase, what=f"deck: {name} phase", unit="rad", low=-1e6, high=1e6, error=DeckError)
                peak = part.amplitude * (2 * math.pi / part.period) ** 2
                if peak > MAX_PEAK:
                    raise DeckError(
                        f"deck: {name} of amplitude {part.amplitude:g} {'rad' if angular else 'm'} and period "
                        f"{part.period:g} s reaches {peak:.3g} {'rad' if angular else 'm'}/s², at most {MAX_PEAK:g} is "
                        "accepted; periods are in s, not Hz"
                    )
        self.station = check_station(station)
        self.gravity = gravity

    def motions(self, time: Array) -> tuple[Array, Array, Array]:
        """Six motions and their first and second derivatives, n × 6 each (m, rad)."""
        value = np.tile(self.steady, (len(time), 1))
        rate, acceleration = np.zeros_like(value), np.zeros_like(value)
        for name, parts in self.components.items():
            column = MOTIONS.index(name)
            for part in parts:
                omega = 2 * np.pi / part.period
                angle = omega * time + part.phase
                value[:, column] += part.amplitude * np.cos(angle)
                rate[:, column] -= part.amplitude * omega * np.sin(angle)
                acceleration[:, column] -= part.amplitude * omega**2 * np.cos(angle)
        return value, rate, acceleration

    def table(self) -> Components:
        """The same motion as a table for the compiled engine."""
        parts = [(MOTIONS.index(name), part) for name, sines in self.components.items() for part in sines]
        cosine, sine = np.zeros((len(parts), 6)), np.zeros((len(parts), 6))
        for row, (column, part) in enumerate(parts):
            cosine[row, column] = part.amplitude * math.cos(part.phase)
            sine[row, column] = -part.amplitude * math.sin(part.phase)
        frequency = np.array([2 * math.pi / part.period for _, part in parts])
        return Components(frequency, cosine, sine, self.steady, self.station, self.gravity)

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants, at the station."""
        time = np.asarray(time, float)
        value, rate, acceleration = self.motions(time)
        return deck_samples(time, value, rate, acceleration, station=self.station, gravity=self.gravity)


def check_station(station: Sequence[float]) -> Array:
    """Where the person stands, m from the ship's reference point: x forward, y to port, z up."""
    values = [
        check_number(value, what="deck: station coordinate", unit="m", low=-500, high=500, error=DeckError)
        for value in station
    ]
    if len(values) != 3:
        raise DeckError(f"deck: station has {len(values)} numbers; give x, y, z in m")
    return np.array(values)


def deck_samples(
    time: Array, value: Array, rate: Array, acceleration: Array, *, station: Array, gravity: float = STANDARD_GRAVITY
) -> DeckSamples:
    """What is felt at a station (m, ship axes) when the ship's reference point makes six motions.

    ``value``, ``rate``, ``acceleration``: the motions and their exact derivatives, n × 6 (m, rad), world axes and
    Bryant angles.
    """
    angular_velocity, angular_acceleration = bryant_rates(value[:, 3:], rate[:, 3:], acceleration[:, 3:])
    ship_to_world = Rotation.from_euler("XYZ", value[:, 3:])
    lifted = acceleration[:, :3] + np.array([0, 0, gravity])
    specific_force = (
        ship_to_world.inv().apply(lifted)
        + np.cross(angular_acceleration, station)
        + np.cross(angular_velocity, np.cross(angular_velocity, station))
    )
    position = value[:, :3] + ship_to_world.apply(np.tile(station, (len(time), 1)))
    return DeckSamples(time, angular_velocity, angular_acceleration, specific_force, position, ship_to_world.as_quat())


def bryant_rates(angles: Array, rates: Array, accelerations: Array) -> tuple[Array, Array]:
    """Angular velocity and acceleration in the turned frame from X-Y-Z angles (… × 3) and their derivatives.

    w = E r' with E = [[c2 c3, s3, 0], [-c2 s3, c3, 0], [s2, 0, 1]]; w' = E r'' + E' r'.
    """
    s2, c2, s3, c3 = np.sin(angles[..., 1]), np.cos(angles[..., 1]), np.sin(angles[..., 2]), np.cos(angles[..., 2])
    r1, r2, r3 = rates[..., 0], rates[..., 1], rates[..., 2]
    a1, a2, a3 = accelerations[..., 0], accelerations[..., 1], accelerations[..., 2]
    velocity = np.stack((c2 * c3 * r1 + s3 * r2, -c2 * s3 * r1 + c3 * r2, s2 * r1 + r3), axis=-1)
    acceleration = np.stack(
        (
            c2 * c3 * a1 + s3 * a2 + (-s2 * c3 * r2 - c2 * s3 * r3) * r1 + c3 * r3 * r2,
            -c2 * s3 * a1 + c3 * a2 + (s2 * s3 * r2 - c2 * c3 * r3) * r1 - s3 * r3 * r2,
            s2 * a1 + a3 + c2 * r2 * r1,
        ),
        axis=-1,
    )
    return velocity, acceleration


def constant_deck(*, roll: float = 0.0, pitch: float = 0.0, gravity: float = STANDARD_GRAVITY) -> SineDeck:
    """A deck at rest, level or tilted (rad)."""
    return SineDeck(steady={"roll": roll, "pitch": pitch}, gravity=gravity)


# ---------------------------------------------------------------- recorded inertial data

GYRO_UNITS = {"rad_s": 1.0, "deg_s": math.pi / 180}
ACCEL_UNITS = {"m_s2": 1.0, "g": STANDARD_GRAVITY}
COLUMNS_HELP = (
    "needed: time_s, gyro_x/gyro_y/gyro_z with _rad_s or _deg_s, accel_x/accel_y/accel_z with _m_s2 or _g "
    "(ship axes X bow, Y port, Z up; accelerometer reads +1 g on Z at rest)"
)
ATTITUDE_GAIN = 0.05  # 1/s, how fast the drawn attitude follows the accelerometer (Mahony filter)
MAX_SWING_DEG = 25.0  # RMS of roll or pitch, whose peaks are then near 70°
DRAWN_MOTION_MIN_HZ = 0.04  # slower travel cannot be told from accelerometer offset


class RecordedDeck:
    """Deck motion from an inertial sensor's record.

    Both sensors are low-passed without phase shift before the gyroscope is differentiated: the derivative of raw
    gyro noise would swamp the angular acceleration of a ship. Values between samples come from cubic splines.
    """

    def __init__(
        self, time: Array, gyro: Array, accel: Array, *, cutoff_hz: float = 2.0, source: str = "record"
    ) -> None:
        rate = _check_record(time, gyro, accel, source)
        check_number(
            cutoff_hz,
            what=f"{source}: cutoff_hz",
            unit="Hz",
            low=0.05,
            high=rate / 2.5,
            error=DeckError,
            hint=f"the record has {rate:.4g} samples per second",
        )
        even = np.arange(len(time)) / rate
        raw = CubicSpline(time - time[0], np.hstack((gyro, accel)))(np.minimum(even, time[-1] - time[0]))
        smooth = sosfiltfilt(butter(4, cutoff_hz, fs=rate, output="sos"), raw, axis=0)
        self.source = source
        self.duration = float(even[-1])
        self._gyro = CubicSpline(even, smooth[:, :3])
        self._gyro_rate = self._gyro.derivative()
        self._accel = CubicSpline(even, smooth[:, 3:])
        stride = max(1, int(rate / (5 * cutoff_hz)))  # five samples per fastest cycle are plenty for a drawing
        self._pose = _drawn_pose(even[::stride], smooth[::stride, :3], smooth[::stride, 3:])

    def table(self) -> Spline:
        """The same motion as a table for the compiled engine."""
        pieces = np.concatenate((self._gyro.c, self._accel.c), axis=2)  # 4 × (knots - 1) × 6
        return Spline(np.ascontiguousarray(pieces.transpose(1, 2, 0)), 1.0 / float(self._gyro.x[1] - self._gyro.x[0]))

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants (s from the record's first sample)."""
        time = np.asarray(time, float)
        if time.size and (time.min() < -1e-9 or time.max() > self.duration + 1e-9):
            asked = time.min() if time.min() < 0 else time.max()
            raise DeckError(
                f"{self.source}: the record lasts {self.duration:.6g} s but {asked:.6g} s was asked for; "
                "shorten the run"
            )
        pose = self._pose(time)
        quaternion = pose[:, 3:] / np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        return DeckSamples(time, self._gyro(time), self._gyro_rate(time), self._accel(time), pose[:, :3], quaternion)


def _check_record(time: Array, gyro: Array, accel: Array, source: str) -> float:
    if len(time) < 64:
        raise DeckError(f"{source}: {len(time)} samples are too few to filter; at least 64 are needed")
    table = np.column_stack((time, gyro, accel))
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        raise DeckError(f"{source}, sample {row + 1}: a value is missing or not finite; fill or cut the gap before use")
    if (np.abs(table) > 1e12).any():  # whose square would overflow
        row = int(np.argmax((np.abs(table) > 1e12).any(axis=1)))
        raise DeckError(f"{source}, sample {row + 1}: a value is beyond any sensor's range; fix or cut it before use")
    steps = np.diff(time)
    if (steps <= 0).any():
        row = int(np.argmax(steps <= 0))
        raise DeckError(
            f"{source}, sample {row + 2}: time goes from {time[row]:.6g} to {time[row + 1]:.6g} s; it must increase"
        )
    usual = float(np.median(steps))
    if usual > 1.0:
        raise DeckError(
            f"{source}: samples come every {usual:.4g} s, too seldom for a ship's motion; "
            "if the times are milliseconds, divide them by 1000"
        )
    if steps.max() > 1.9 * usual:
        row = int(np.argmax(steps))
        raise DeckError(
            f"{source}, sample {row + 2}: a gap of {steps[row]:.4g} s where samples come every {usual:.4g} s; "
            "fill it or cut the record there"
        )
    pull = float(np.median(np.linalg.norm(accel, axis=1)))
    if not 7.0 < pull < 13.0:
        guess = (
            "it looks like g: name the columns accel_x_g …"
            if 0.7 < pull < 1.3
            else "is gravity removed, or the unit another one?"
        )
        raise DeckError(
            f"{source}: the accelerometer's median length is {pull:.3g} m/s² but a ship's is near 9.8; {guess}"
        )
    mean = accel.mean(axis=0)
    if mean[2] < 0.7 * np.linalg.norm(mean):
        axis = "−Z" if mean[2] < -0.7 * np.linalg.norm(mean) else "another axis than Z"
        raise DeckError(
            f"{source}: on average the accelerometer points along {axis}; "
            "it must read +9.8 m/s² on Z at rest (Z up), so turn the axes"
        )
    fastest = float(np.abs(gyro).max())
    if fastest > 3.0:
        raise DeckError(
            f"{source}: the gyroscope reaches {fastest:.3g} rad/s, more than any ship; "
            "if the values are degrees, name the columns gyro_x_deg_s …"
        )
    rate = 1.0 / float(np.mean(steps))
    swing = float(np.degrees(_band_integral(gyro[:, :2], rate, 1).std(axis=0).max()))
    if swing > MAX_SWING_DEG:
        raise DeckError(
            f"{source}: the gyroscope means roll or pitch of {swing:.3g}° RMS at the rate of waves, but no ship goes "
            f"beyond {MAX_SWING_DEG:g}°; if the values are degrees, name the columns gyro_x_deg_s …"
        )
    return rate


def _band_integral(values: Array, rate: float, order: int) -> Array:
    """Integrate columns once or twice in the frequency domain, slow drift left out; ``rate`` in samples per second."""
    spectrum = np.fft.rfft(values - values.mean(axis=0), axis=0)
    omega = 2 * np.pi * np.fft.rfftfreq(len(values), 1 / rate)
    kept = omega > 2 * np.pi * DRAWN_MOTION_MIN_HZ
    spectrum[kept] /= ((1j * omega[kept]) ** order)[:, None]
    spectrum[~kept] = 0
    return np.asarray(np.fft.irfft(spectrum, len(values), axis=0))


def _drawn_pose(time: Array, gyro: Array, accel: Array) -> CubicSpline:
    """Attitude by a Mahony filter and wave-frequency travel by integrating in the frequency domain."""
    step = time[1] - time[0]
    up = accel[0] / np.linalg.norm(accel[0])
    attitude = Rotation.align_vectors([[0, 0, 1.0]], [up])[0]
    quaternions = np.empty((len(time), 4))
    for index in range(len(time)):
        quaternions[index] = attitude.as_quat()
        down_error = np.cross(accel[index] / np.linalg.norm(accel[index]), attitude.inv().apply([0, 0, 1.0]))
        attitude = attitude * Rotation.from_rotvec((gyro[index] + ATTITUDE_GAIN * down_error) * step)
    flips = np.cumprod(np.where(np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0, -1.0, 1.0))
    quaternions[1:] *= flips[:, None]
    world = Rotation.from_quat(quaternions).apply(accel)
    return CubicSpline(time, np.hstack((_band_integral(world, 1 / step, 2), quaternions)))


def read_imu_csv(path: Path, *, cutoff_hz: float = 2.0) -> RecordedDeck:
    """Read an inertial record; the unit of each column stands in its name (see the README's table)."""
    if not path.is_file():
        raise DeckError(f"{path}: no such file; give the path of an inertial record in CSV")
    if path.stat().st_size > 2_000_000_000:
        raise DeckError(f"{path}: larger than 2 GB; cut the record into pieces")
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.reader(line for line in stream if not line.lstrip().startswith("#"))
            header = [name.strip() for name in next(rows, [])]
            body = [row for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DeckError(f"{path}: not a CSV text file ({error})") from None
    columns, factors = _match_columns(header, path)
    table = np.empty((len(body), 7))
    for index, row in enumerate(body):
        try:
            table[index] = [float(row[column]) if row[column].strip() else math.nan for column in columns]
        except (ValueError, IndexError):
            raise DeckError(
                f"{path}, data row {index + 1}: {','.join(row)[:60]!r} does not hold numbers in all columns; "
                "fix or remove it"
            ) from None
    table *= factors
    return RecordedDeck(table[:, 0], table[:, 1:4], table[:, 4:7], cutoff_hz=cutoff_hz, source=str(path))


def _match_columns(header: list[str], path: Path) -> tuple[list[int], Array]:
    if "time_s" not in header:
        raise DeckError(f"{path}: there is no column time_s; {COLUMNS_HELP}")
    columns, factors = [header.index("time_s")], [1.0]
    for sensor, units in (("gyro", GYRO_UNITS), ("accel", ACCEL_UNITS)):
        used = set()
        for axis in "xyz":
            found = [(f"{sensor}_{axis}_{unit}", unit) for unit in units if f"{sensor}_{axis}_{unit}" in header]
            if len(found) != 1:
                problem = "is missing" if not found else "stands twice, in different units"
                raise DeckError(f"{path}: column {sensor}_{axis} {problem}; {COLUMNS_HELP}")
            name, unit = found[0]
            if header.count(name) > 1:
                raise DeckError(f"{path}: column {name} stands more than once; keep one")
            used.add(unit)
            columns.append(header.index(name))
            factors.append(units[unit])
        if len(used) > 1:
            raise DeckError(
                f"{path}: the three {sensor} columns have different units ({', '.join(sorted(used))}); use one"
            )
    return columns, np.array(factors)
