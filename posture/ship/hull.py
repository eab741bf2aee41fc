"""How a ship answers waves: transfer functions of six motions, from a table or in closed form from hull dimensions.

A transfer function H gives motion per metre of wave amplitude (m/m, rad/m), as a complex number: the wave at the
reference point is Re(a e^{i(ωe t + ε)}), the motion Re(a H e^{i(ωe t + ε)}), with ωe = ω - k U cos(heading) the
frequency of encounter, negative where the ship overtakes the waves. Axes X bow, Y port, Z up; roll starboard down,
pitch bow down, yaw to port; heading as in the package's docstring (0 following, π/2 waves running to port, π head).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import math
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

from posture.deck import MOTIONS
from posture.errors import DeckError, check_number, find_name
from posture.ship.sea import Sea, check_increasing

Array = NDArray[np.floating]
Complex = NDArray[np.complexfloating]

GRAVITY = 9.80665  # m/s², in the dispersion relation
MIRRORED = np.array([1, -1, 1, -1, 1, -1])  # what changes sign when port and starboard change places
STANDSTILL = 0.1  # of ωe/ω: below it a ship keeps pace with the wave and is carried along instead of moved to and fro


class Ship(Protocol):
    """Anything with transfer functions; ``length`` and ``beam`` (m) bound where a person can stand, if known."""

    @property
    def name(self) -> str:
        """For messages and plots."""
        ...

    @property
    def length(self) -> float | None:
        """Between perpendiculars, m."""
        ...

    @property
    def beam(self) -> float | None:
        """Greatest, m."""
        ...

    def transfer(self, omega: Array, heading: Array, speed: float) -> Complex:
        """H (n × 6) for wave frequencies (n, rad/s) and headings (n, rad) at a speed (m/s)."""
        ...

    def fingerprint(self) -> str:
        """A text that changes when any number of the ship does."""
        ...


def wave_number(omega: Array) -> Array:
    """K = ω²/g of deep water, rad/m."""
    return np.asarray(omega**2 / GRAVITY)


def encounter(omega: Array, heading: Array, speed: float) -> Array:
    """Frequency at which the ship meets a wave, rad/s; negative where it overtakes it (following seas)."""
    return np.asarray(omega - wave_number(omega) * speed * np.cos(heading))


def check_heading(value: object, *, what: str = "heading") -> float:
    """A heading in rad."""
    return check_number(
        value,
        what=what,
        unit="rad",
        low=-2 * math.pi,
        high=2 * math.pi,
        error=DeckError,
        hint="angles are in rad here: math.radians(120)",
    )


def check_heading_deg(value: object, *, what: str = "heading_deg") -> float:
    """A heading in degrees, as rad; small numbers with odd decimals are taken for radians and refused."""
    degrees = check_number(value, what=what, unit="degrees", low=-360, high=360, error=DeckError)
    if 0 < abs(degrees) <= 2 * math.pi and (degrees * 4) % 1:
        raise DeckError(
            f"{what} is {degrees:g} degrees, which looks like radians ({math.degrees(degrees):.4g}°); "
            "give degrees from -360 to 360, small ones in steps of 0.25"
        )
    return math.radians(degrees)


def check_on_board(station: Array, ship: Ship) -> None:
    """Refuse a place that is not on board: beyond 0.6 of the length or of the beam, or far above it."""
    limits = [(ship.length, "forward"), (ship.beam, "to port"), (ship.length, "up")]
    for value, (size, way) in zip(station, limits, strict=True):
        if size is not None and abs(value) > 0.6 * size:
            raise DeckError(
                f"station {np.round(station, 3).tolist()} m lies outside {ship.name}: {value:g} m {way} of the "
                f"reference point, but at most {0.6 * size:.4g} m either way is on board; "
                "give x forward, y to port, z up in m"
            )


def check_covered(ship: Ship, sea: Sea) -> None:
    """Refuse a table that ends where the ship still moves and the sea still has waves."""
    if not isinstance(ship, RaoTable):
        return
    top = float(ship.omega[-1])
    above = 1 - float(np.interp(top, sea.omega, sea.cumulative)) / sea.cumulative[-1]
    still = float(np.abs(ship.values[:, :, -1, :3]).max())
    if above > 0.05 and still > 0.2:
        raise DeckError(
            f"{ship.name}: the transfer functions end at {top:.3g} rad/s, where the ship still moves by {still:.2g} of "
            f"the wave, but {100 * above:.0f} % of the energy of {sea.name} lies above; extend the table"
        )


# ---------------------------------------------------------------- closed form


@dataclass(frozen=True)
class Hull:
    """A monohull known by its main dimensions (m); transfer functions in closed form, for users without tables.

    Heave and pitch: J. J. Jensen, A. E. Mansour, A. S. Olsen (2004) "Estimation of ship motions using closed-form
    expressions", Ocean Engineering 31; written from memory and checked against a second-hand statement of the
    formulas, not against the paper. One change: the pressure decays as exp(-k T/2), at half draught and with the true
    wave number, where the paper has exp(-k T |cos heading|). The paper's has no decay in beam seas, where heave then
    peaks at 1.4 to 1.6, above most real hulls; with ours it stays below the tables of four real hulls, and heave and
    pitch come nearer to them on average over all headings. That decay was picked on these same four hulls, out of 40
    combinations (depth, beam, averaging, length), so its errors on a fifth hull may be larger. Both sides keep their
    phase, where the paper gives amplitudes.

    Roll: one degree of freedom, driven by the wave slope averaged over length and beam at half draught; the natural
    period is 2π r √(1 + a) / √(g GM) with r the dry radius of gyration and a the added share of inertia. a = 0.3 is
    ours, picked on the same hulls, whose strip and panel computations have 0.18, 0.34, 0.36 and 0.41.
    ``roll_damping`` is the ratio to critical, 0.1 for a hull with bilge keels (from memory); it decides the
    height of the resonance.

    Surge is what the water's pressure makes of the ship's mass: the acceleration is the water's own, ω² times its
    displacement, whatever the ship's speed, so the displacement is (ω/ωe)² times the water's. (Strip theory's tables
    of the S175 have that factor to 0.1 %.) In sway and yaw half of the inertia is added mass, which moves with the
    water itself, factor 1; the geometric mean |ω/ωe| is within 8 % of the S175's sway in waves longer than 1.2 lengths.
    """

    length: float
    beam: float
    draught: float
    metacentric_height: float
    roll_radius: float | None = None
    roll_damping: float = 0.1
    added_roll_inertia: float = 0.3
    name: str = "hull"

    def __post_init__(self) -> None:
        """Refuse what is no ship."""
        for key, low, high, unit in (
            ("length", 3, 500, "m"),
            ("beam", 0.5, 100, "m"),
            ("draught", 0.1, 40, "m"),
            ("metacentric_height", 0.02, 30, "m"),
            ("roll_damping", 0.01, 1, "of critical"),
            ("added_roll_inertia", 0, 2, "of the dry inertia"),
        ):
            check_number(getattr(self, key), what=f"{self.name}: {key}", unit=unit, low=low, high=high, error=DeckError)
        if self.roll_radius is not None:
            check_number(
                self.roll_radius,
                what=f"{self.name}: roll_radius",
                unit="m",
                low=0.15 * self.beam,
                high=0.6 * self.beam,
                error=DeckError,
            )

    @property
    def roll_period(self) -> float:
        """Natural period of roll, s; without a radius of gyration 0.35 of the beam is taken."""
        radius = 0.35 * self.beam if self.roll_radius is None else self.roll_radius
        return 2 * math.pi * radius * math.sqrt((1 + self.added_roll_inertia) / (GRAVITY * self.metacentric_height))

    def transfer(self, omega: Array, heading: Array, speed: float) -> Complex:
        """H (n × 6)."""
        omega, heading = np.asarray(omega, float), np.asarray(heading, float)
        k, draught = wave_number(omega), self.draught
        along, across = np.cos(heading), np.sin(heading)
        alpha = encounter(omega, heading, speed) / omega
        # Damping over restoring of a section: A² / (k B |α|³) with A = 2 sin(kBα²/2) exp(-kTα²), written with sinc so
        # that it stays finite where the ship keeps pace with the waves (α = 0).
        decay = np.sinc(k * self.beam * alpha**2 / (2 * np.pi)) * np.exp(-k * draught * alpha**2)
        damping = k * self.beam * np.abs(alpha) * decay**2
        pushed = 1 - k * draught + 1j * damping  # restoring, added mass and damping force of the water's own motion
        answer = 1 - 2 * k * draught * alpha**2 + 1j * alpha * damping
        depth = np.exp(-k * draught / 2)
        half_length, half_beam = k * along * self.length / 2, k * across * self.beam / 2
        mean, tilt = np.sinc(half_length / np.pi), _mean_slope(half_length)
        result = np.zeros((len(omega), 6), complex)
        carried = depth * np.sinc(half_beam / np.pi)  # surge, sway and yaw: the water's own, averaged over the beam
        slowed = alpha**2 / (alpha**4 + STANDSTILL**4)  # (ω/ωe)², bounded where the ship keeps pace with the waves
        sideways = np.sqrt(slowed)
        result[:, 0] = -1j * along * carried * mean * slowed
        result[:, 1] = -1j * across * carried * mean * sideways
        result[:, 2] = depth * mean * pushed / answer
        result[:, 4] = 1j * k * along * depth * tilt * pushed / answer
        result[:, 5] = -k * along * across * carried * tilt * sideways
        natural = 2 * math.pi / self.roll_period
        ratio = alpha * omega / natural
        slope = -1j * k * across * depth * mean * _mean_slope(half_beam)
        result[:, 3] = slope / (1 - ratio**2 + 2j * self.roll_damping * ratio)
        return result

    def fingerprint(self) -> str:
        """All dimensions."""
        return repr(self)


def _mean_slope(half: Array) -> Array:
    """Slope of the line nearest to a wave over a length, relative to the wave's own: 3 (sin σ - σ cos σ) / σ³."""
    small = np.abs(half) < 1e-3
    safe = np.where(small, 1.0, half)
    return np.where(small, 1 - half**2 / 10, 3 * (np.sin(safe) - safe * np.cos(safe)) / safe**3)


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class RaoTable:
    """Transfer functions on a grid: speeds (m/s) × headings (rad, from 0 to 2π) × wave frequencies (rad/s) × 6.

    Between the grid's points real and imaginary parts are interpolated linearly. Shorter waves than the table's move
    the ship by nothing, longer ones as the longest; a speed outside the table is an error.
    """

    speeds: Array
    headings: Array
    omega: Array
    values: Complex
    name: str = "table"
    length: float | None = None
    beam: float | None = None

    @property
    def missing(self) -> list[str]:
        """Motions of which the table knows nothing: they are zero everywhere."""
        return [name for index, name in enumerate(MOTIONS) if not self.values[..., index].any()]

    @cached_property
    def _interpolate(self) -> RegularGridInterpolator:
        return RegularGridInterpolator((self.headings, self.omega), np.moveaxis(self.values, 0, -1))

    def transfer(self, omega: Array, heading: Array, speed: float) -> Complex:
        """H (n × 6)."""
        low, high = self.speeds[0], self.speeds[-1]
        if not low - 1e-6 <= speed <= high + 1e-6:
            raise DeckError(
                f"{self.name}: the table covers speeds from {low:g} to {high:g} m/s, but {speed:g} m/s was asked for"
            )
        omega = np.asarray(omega, float)
        points = np.stack((np.mod(heading, 2 * math.pi), np.clip(omega, self.omega[0], self.omega[-1])), axis=-1)
        found = self._interpolate(points)  # n × 6 × speeds
        if len(self.speeds) == 1:
            at = found[..., 0]
        else:
            index = int(np.clip(np.searchsorted(self.speeds, speed) - 1, 0, len(self.speeds) - 2))
            share = (speed - self.speeds[index]) / (self.speeds[index + 1] - self.speeds[index])
            at = (1 - share) * found[..., index] + share * found[..., index + 1]
        return np.where((omega > self.omega[-1])[:, None], 0, at)

    def fingerprint(self) -> str:
        """A hash of all numbers."""
        parts = (self.speeds, self.headings, self.omega, self.values)
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def rao_table(
    *,
    speeds: Array,
    headings: Array,
    omega: Array,
    values: Complex,
    name: str,
    length: float | None = None,
    beam: float | None = None,
) -> RaoTable:
    """Check a grid of transfer functions (speeds × headings × frequencies × 6) and close it over all headings.

    Headings may cover 0 to π (the other half is the mirror image of a symmetric ship) or the whole circle.
    """
    speeds, headings, omega = (np.asarray(part, float) for part in (speeds, headings, omega))
    values = np.asarray(values, complex)
    check_increasing(omega, f"{name}: wave frequencies", "rad/s")
    check_increasing(headings, f"{name}: headings", "rad")
    check_increasing(speeds, f"{name}: speeds", "m/s")
    if values.shape != (len(speeds), len(headings), len(omega), 6):
        raise DeckError(f"{name}: {values.shape} transfer functions do not fit speeds, headings, frequencies and 6")
    if not np.isfinite(values).all():
        raise DeckError(f"{name}: a transfer function is missing or not finite")
    if omega[0] <= 0 or omega[-1] > 20:
        raise DeckError(
            f"{name}: wave frequencies go from {omega[0]:g} to {omega[-1]:g}, but must lie above 0 and below 20 rad/s; "
            "are they in Hz or periods in s?"
        )
    if headings[-1] > 2 * math.pi + 1e-6:
        raise DeckError(f"{name}: headings go up to {headings[-1]:g} rad; they must lie between 0 and 2π")
    if headings[-1] < math.pi + 1e-6:
        if abs(headings[0]) > 1e-6 or abs(headings[-1] - math.pi) > 1e-6:
            raise DeckError(
                f"{name}: headings go from {math.degrees(headings[0]):g}° to {math.degrees(headings[-1]):g}°; "
                "they must cover 0° to 180° or the whole circle"
            )
        mirror = values[:, -2::-1] * MIRRORED
        headings, values = np.append(headings, 2 * math.pi - headings[-2::-1]), np.concatenate((values, mirror), axis=1)
    elif headings[-1] < 2 * math.pi - 1e-6:
        headings, values = np.append(headings, 2 * math.pi), np.concatenate((values, values[:, :1]), axis=1)
    headings = headings.copy()
    headings[0], headings[-1] = 0.0, 2 * math.pi
    table = RaoTable(speeds, headings, omega, values, name, length, beam)
    _check_long_waves(table)
    return table


LONG_WAVE = 0.35  # rad/s: 51 m of wave length for every rad of phase, so any hull of this tool follows such waves


def _check_long_waves(table: RaoTable) -> None:
    """In waves much longer than the ship, a ship moves as the water does: that fixes units, phases and axes."""
    omega = table.omega[:1]
    if omega[0] > LONG_WAVE or abs(table.speeds[0]) > 0.5:
        return  # nothing in the table is known beforehand
    k = float(wave_number(omega)[0])
    following = table.transfer(omega, np.zeros(1), float(table.speeds[0]))[0]
    beam = table.transfer(omega, np.full(1, math.pi / 2), float(table.speeds[0]))[0]
    for motion, what, found, expected in (
        ("heave", "heave in beam seas", beam[2], 1.0),
        ("surge", "surge in following seas", following[0], -1j),
        ("pitch", "pitch in following seas", following[4] / k, 1j),
        ("sway", "sway in waves running to port", beam[1], -1j),
    ):
        if motion not in table.missing and abs(found - expected) > 0.5:
            raise DeckError(
                f"{table.name}: {what} at {omega[0]:.3g} rad/s has amplitude {abs(found):.3g} of the wave's and phase "
                f"{math.degrees(np.angle(found)):.0f}°, but a ship follows such long waves (1 at "
                f"{math.degrees(np.angle(expected)):.0f}°); are phases in degrees named rad or the reverse, amplitudes "
                "in degrees named rad, or axes and headings of another convention?"
            )


CSV_HELP = (
    "needed: speed_m_s, heading_deg, omega_rad_s, and for each of surge, sway, heave MOTION_amplitude_m_m, for roll, "
    "pitch, yaw MOTION_amplitude_rad_m or _deg_m, for all MOTION_phase_deg or _rad"
)
CSV_MOTIONS = [
    f"{motion}_{end}"
    for motions, size in ((MOTIONS[:3], ("amplitude_m_m",)), (MOTIONS[3:], ("amplitude_rad_m", "amplitude_deg_m")))
    for motion in motions
    for end in (*size, "phase_deg", "phase_rad")
]


def compare(hull: Hull, table: RaoTable, *, speed: float = 0.0) -> list[dict[str, float]]:
    """How far a closed form is from a table of the same ship, every 30° of heading from following to head seas.

    For heave, pitch and roll: RMS difference of amplitudes over wave frequencies from 0.25 to 1.6 rad/s, as a share of
    the table's RMS; NaN where symmetry or slenderness leaves no motion to compare.
    """
    omega = np.linspace(0.25, 1.6, 80)
    rows = []
    for degrees in range(0, 181, 30):
        heading = np.full(len(omega), math.radians(degrees))
        known, found = (np.abs(ship.transfer(omega, heading, speed)) for ship in (table, hull))
        row = {"heading_deg": float(degrees)}
        for name, still in (("heave", ()), ("pitch", (90,)), ("roll", (0, 180))):
            real, ours = known[:, MOTIONS.index(name)], found[:, MOTIONS.index(name)]
            row[name] = math.nan
            if degrees not in still and real.any():
                row[name] = math.sqrt(float(np.mean((real - ours) ** 2) / np.mean(real**2)))
        rows.append(row)
    return rows


def read_rao_csv(path: Path, *, length: float | None = None, beam: float | None = None) -> RaoTable:
    """Read transfer functions from a table with one row for each speed, heading and wave frequency, in any order.

    Columns carry their units in their names (see ``CSV_HELP``); a motion without columns does not move. Phases lead
    the wave crest at the reference point; axes, signs and headings are those of this module.
    """
    if not path.is_file():
        raise DeckError(f"{path}: no such file; give transfer functions in CSV")
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row and not row[0].lstrip().startswith("#")]
        header = [name.strip() for name in rows[0]] if rows else []
        table = np.array(rows[1:], float).reshape(len(rows) - 1, len(header)) if header else np.zeros((0, 0))
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise DeckError(f"{path}: not a table of numbers with one header row ({error})") from None
    for needed in ("speed_m_s", "heading_deg", "omega_rad_s"):
        if header.count(needed) != 1:
            raise DeckError(f"{path}: column {needed} must be there once; {CSV_HELP}")
    for name in header:
        if name.split("_")[0] not in MOTIONS:
            continue  # somebody's own note
        find_name(name, CSV_MOTIONS, what="column", where=str(path), error=DeckError)
        if header.count(name) > 1:
            raise DeckError(f"{path}: column {name} stands there {header.count(name)} times; keep one")
    if not len(table) or not np.isfinite(table).all():
        raise DeckError(f"{path}: there are no rows, or some number is missing or not finite")
    places = table[:, [header.index(name) for name in ("speed_m_s", "heading_deg", "omega_rad_s")]]
    axes = [np.unique(column) for column in places.T]
    if not len(table) == len(np.unique(places, axis=0)) == len(axes[0]) * len(axes[1]) * len(axes[2]):
        raise DeckError(
            f"{path}: {len(table)} rows, but {len(axes[0])} speeds × {len(axes[1])} headings × {len(axes[2])} "
            "frequencies need every combination once"
        )
    order = np.lexsort(places.T[::-1])
    for heading in axes[1]:
        check_heading_deg(float(heading), what=f"{path}: heading_deg")
    values = np.zeros((len(table), 6), complex)
    for column, motion in enumerate(MOTIONS):
        found = _csv_motion(header, table, motion, angular=column > 2, path=path)
        if found is not None:
            values[:, column] = found
    if not values.any():
        raise DeckError(f"{path}: there is no motion in the table; {CSV_HELP}")
    return rao_table(
        speeds=axes[0],
        headings=np.radians(axes[1]),
        omega=axes[2],
        values=values[order].reshape(len(axes[0]), len(axes[1]), len(axes[2]), 6),
        name=path.name,
        length=length,
        beam=beam,
    )


def _csv_motion(header: list[str], table: Array, motion: str, *, angular: bool, path: Path) -> Complex | None:
    amplitudes = {"_rad_m": 1.0, "_deg_m": math.pi / 180} if angular else {"_m_m": 1.0}
    phases = {"_deg": math.pi / 180, "_rad": 1.0}
    parts = []
    for kind, units in (("amplitude", amplitudes), ("phase", phases)):
        found = [unit for unit in units if f"{motion}_{kind}{unit}" in header]
        if len(found) > 1:
            raise DeckError(f"{path}: {motion}_{kind} stands there in two units; keep one")
        parts.append((found[0], units[found[0]]) if found else None)
    if parts == [None, None]:
        return None
    if None in parts:
        raise DeckError(f"{path}: {motion} needs both an amplitude and a phase; {CSV_HELP}")
    (amplitude_unit, amplitude_factor), (phase_unit, phase_factor) = (part for part in parts if part)
    amplitude = table[:, header.index(f"{motion}_amplitude{amplitude_unit}")] * amplitude_factor
    phase = table[:, header.index(f"{motion}_phase{phase_unit}")]
    largest = float(np.abs(phase).max())
    if (amplitude < 0).any():
        raise DeckError(f"{path}: {motion} has a negative amplitude; give amplitudes from 0 up and turn the phase")
    if phase_unit == "_deg" and 0 < largest <= 2 * math.pi and len(phase) > 8:
        raise DeckError(
            f"{path}: column {motion}_phase_deg stays within ±{largest:.3g}, which looks like radians; "
            f"name it {motion}_phase_rad or give degrees"
        )
    if phase_unit == "_rad" and largest > 60:
        raise DeckError(
            f"{path}: column {motion}_phase_rad goes up to {largest:.4g}, which looks like degrees; "
            f"name it {motion}_phase_deg or give radians"
        )
    return np.asarray(amplitude * np.exp(1j * phase * phase_factor))


def write_rao_csv(ship: RaoTable, path: Path) -> None:
    """Write a table in the schema ``read_rao_csv`` reads, headings from 0° to 180°."""
    from posture.results import replacing

    header = ["speed_m_s", "heading_deg", "omega_rad_s"]
    header += [f"{motion}_amplitude_{'rad_m' if column > 2 else 'm_m'}" for column, motion in enumerate(MOTIONS)]
    header += [f"{motion}_phase_deg" for motion in MOTIONS]
    half = ship.headings <= math.pi + 1e-9
    grid = np.meshgrid(ship.speeds, np.degrees(ship.headings[half]), ship.omega, indexing="ij")
    values = ship.values[:, half].reshape(-1, 6)
    table = np.column_stack((*(part.ravel() for part in grid), np.abs(values), np.degrees(np.angle(values)) + 0.0))
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(",".join(header) + "\n")
        np.savetxt(stream, table, fmt="%.10g", delimiter=",")


def read_veres(path: Path) -> RaoTable:
    """Read motion transfer functions of ShipX/VERES (.re1, plain or gzipped).

    VERES has X aft, Y starboard, Z up and counts headings from head seas: surge, pitch and yaw change sign and the
    heading becomes 180° less VERES's. Checked by the water's own motion in long waves and, on a fast ship, by heave
    resonance in head seas. Amplitudes of rotations are in rad/m.
    """
    if not path.is_file():
        raise DeckError(f"{path}: no such file; give a VERES .re1 file")
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="latin-1") as stream:
            lines = stream.read().split("\n")
        numbers = np.array(" ".join(lines[6:]).split(), float)
        length, beam = numbers[2], numbers[3]
        counts = numbers[7:11].astype(int)
        speeds, headings, frequencies, motions = (int(count) for count in counts)
        block = numbers[11 : 11 + speeds * (5 + headings * (1 + frequencies * (1 + 3 * motions)))]
        per_speed = block.reshape(speeds, -1)
        per_heading = per_speed[:, 5:].reshape(speeds, headings, -1)
        rows = per_heading[:, :, 1:].reshape(speeds, headings, frequencies, 1 + 3 * motions)
    except (OSError, EOFError, zlib.error, ValueError, IndexError):
        raise DeckError(
            f"{path}: not a readable VERES motion file; six text lines, then numbers are expected"
        ) from None
    if motions != 6 or not lines[0].strip().startswith("MOTION TRANSFER FUNCTIONS"):
        raise DeckError(f"{path}: this is not a VERES file of six motion transfer functions")
    parts = rows[..., 1:].reshape(speeds, headings, frequencies, 6, 3)
    values = (parts[..., 1] + 1j * parts[..., 2]) * np.array([-1, 1, 1, 1, -1, -1])
    return rao_table(
        speeds=per_speed[:, 0],
        headings=np.radians(180 - per_heading[0, ::-1, 0]),
        omega=rows[0, 0, :, 0],
        values=values[:, ::-1],
        name=lines[2].split(":")[-1].strip() or path.name,
        length=float(length),
        beam=float(beam),
    )


def read_mss(path: Path) -> RaoTable:
    """Read the motion transfer functions of a vessel structure of the Marine Systems Simulator (.mat).

    MSS has X bow, Y starboard, Z down and headings that turn to starboard; mirrored to port, heave, roll and pitch
    change sign at the same heading.
    """
    from scipy.io import loadmat

    if not path.is_file():
        raise DeckError(f"{path}: no such file; give an MSS vessel structure (.mat)")
    try:
        vessel: Any = loadmat(path, squeeze_me=True, struct_as_record=False)["vessel"]
        motion = vessel.motionRAO
        speeds = np.atleast_1d(np.asarray(vessel.velocities, float))
        amplitude = np.stack([np.asarray(part, float) for part in motion.amp], axis=-1)
        phase = np.stack([np.asarray(part, float) for part in motion.phase], axis=-1)
        omega, headings = np.asarray(motion.w, float), np.asarray(vessel.headings, float)
        name, length, beam = str(vessel.main.name), float(vessel.main.Lpp), float(vessel.main.B)
    except Exception:  # SciPy raises many unrelated types for files that are none of its own
        raise DeckError(f"{path}: not a readable MSS vessel structure with motionRAO and main") from None
    values = amplitude * np.exp(1j * phase) * np.array([1, 1, -1, -1, -1, 1])  # frequencies × headings × speeds × 6
    values = np.moveaxis(values, (0, 1, 2), (2, 1, 0))[: len(speeds)]
    return rao_table(
        speeds=speeds,
        headings=headings,
        omega=omega,
        values=values,
        name=path.stem if name == "input" else name,
        length=length,
        beam=beam,
    )


def read_ship(path: Path, *, length: float | None = None, beam: float | None = None) -> RaoTable:
    """Read transfer functions by the file's ending: .csv, .re1, .re1.gz (VERES) or .mat (MSS)."""
    if path.name.endswith((".re1", ".re1.gz")):
        return read_veres(path)
    if path.suffix == ".mat":
        return read_mss(path)
    if path.suffix == ".csv":
        return read_rao_csv(path, length=length, beam=beam)
    raise DeckError(f"{path}: transfer functions are read from .csv, .re1, .re1.gz (VERES) and .mat (MSS) files")
