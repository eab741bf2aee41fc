"""Measured ship motion: logs of roll, pitch, heave and whatever else was logged, even at 1 Hz.

A motion reference unit logs angles and heave a few times a second or less. Between its samples the motion is taken as
band-limited: everything above ``cutoff_hz`` is removed and the rest interpolated through Fourier's series. What a log
cannot tell is not made up: motions without a column are zero and are named in ``RecordedMotion.unknown``, as is the
frequency above which nothing is known.
"""

from __future__ import annotations

import csv
import functools
import gzip
import math
import operator
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, make_interp_spline

from posture.body import STANDARD_GRAVITY
from posture.deck import MOTIONS, DeckSamples, check_station, deck_samples
from posture.errors import DeckError, check_number, find_name

Array = NDArray[np.floating]

SELDOM = 4.0  # s between samples: the fastest motion kept then has a period of 10 s
FINE_SAMPLES = 12  # per period of the fastest motion kept: a quintic spline through these is good to 1e-5


class RecordedMotion:
    """A deck from logged motions; implements ``posture.deck.DeckMotion``.

    time: s, nearly even; motions: name to values (m, rad; signs as everywhere: roll starboard down, pitch bow down,
    heave up, yaw to port). The mean of heave, surge, sway and yaw is removed, that of roll and pitch (list and trim)
    kept. ``cutoff_hz``: 0.8 of the highest frequency the log can hold by default. station: m from the point where
    heave was measured.
    """

    def __init__(
        self,
        time: Array,
        motions: Mapping[str, Array],
        *,
        cutoff_hz: float | None = None,
        station: Sequence[float] = (0.0, 0.0, 0.0),
        gravity: float = STANDARD_GRAVITY,
        source: str = "log",
    ) -> None:
        self.source, self.gravity = source, gravity
        self.station = check_station(station)
        names = [find_name(name, MOTIONS, what="motion", where=source, error=DeckError) for name in motions]
        if not names:
            raise DeckError(f"{source}: no motion is given; name at least one of {', '.join(MOTIONS)}")
        values = np.column_stack([np.asarray(motions[name], float) for name in names])
        rate = _check_log(np.asarray(time, float), values, names, source)
        self.cutoff_hz = check_number(
            0.4 * rate if cutoff_hz is None else cutoff_hz,
            what=f"{source}: cutoff_hz",
            unit="Hz",
            low=0.02,
            high=rate / 2,
            error=DeckError,
            hint=f"the log has {rate:.4g} samples per second, so nothing above {rate / 2:.4g} Hz is in it",
        )
        self.unknown = [name for name in MOTIONS if name not in names]
        even = np.arange(len(values)) / rate
        lag = float(time[0])
        on_grid = CubicSpline(np.asarray(time, float) - lag, values)(np.minimum(even, time[-1] - lag))
        self.duration = float(even[-1])
        columns = [MOTIONS.index(name) for name in names]
        drifting = [index for index, column in enumerate(columns) if column not in (3, 4)]
        on_grid[:, drifting] -= on_grid[:, drifting].mean(axis=0)
        fine_time, fine = _band_limited(on_grid, rate, self.cutoff_hz)
        self._columns = columns
        self._value = make_interp_spline(fine_time, fine, k=5)
        self._rate, self._acceleration = self._value.derivative(), self._value.derivative(2)

    def motions(self, time: Array) -> tuple[Array, Array, Array]:
        """Six motions and their first and second derivatives, n × 6 each (m, rad); unknown ones are zero."""
        time = np.asarray(time, float)
        if time.size and (time.min() < -1e-9 or time.max() > self.duration + 1e-9):
            raise DeckError(
                f"{self.source}: the log lasts {self.duration:.6g} s but {time.max():.6g} s was asked for; "
                "shorten the run"
            )
        parts = []
        for spline in (self._value, self._rate, self._acceleration):
            part = np.zeros((len(time), 6))
            part[:, self._columns] = spline(time)
            parts.append(part)
        return parts[0], parts[1], parts[2]

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants (s from the log's first sample), at the station."""
        value, rate, acceleration = self.motions(time)
        return deck_samples(
            np.asarray(time, float), value, rate, acceleration, station=self.station, gravity=self.gravity
        )


def _check_log(time: Array, values: Array, names: list[str], source: str) -> float:
    if len(time) < 32 or len(time) != len(values):
        raise DeckError(f"{source}: {len(time)} samples are too few; at least 32, as many as values, are needed")
    if not (np.isfinite(time).all() and np.isfinite(values).all()):
        row = int(np.argmin(np.isfinite(np.column_stack((time, values))).all(axis=1)))
        raise DeckError(f"{source}, sample {row + 1}: a value is missing or not finite; fill or cut the gap before use")
    steps = np.diff(time)
    usual = float(np.median(steps))
    if (steps <= 0).any() or steps.max() > 1.5 * usual:
        row = int(np.argmax(steps <= 0)) if (steps <= 0).any() else int(np.argmax(steps))
        raise DeckError(
            f"{source}, sample {row + 2}: {steps[row]:.4g} s after the one before, where samples come every "
            f"{usual:.4g} s; times must increase without gaps, so cut the log there"
        )
    if usual > SELDOM:
        raise DeckError(
            f"{source}: samples come every {usual:.4g} s, too seldom for waves of some 6 to 20 s; "
            "if the times are milliseconds, divide them by 1000"
        )
    for name, column in zip(names, values.T, strict=True):
        largest = float(np.abs(column).max())
        turning = float(np.abs(np.diff(column)).max()) / usual if name == "yaw" else 0.0
        if turning > 0.35:  # 20°/s
            raise DeckError(
                f"{source}: yaw changes by {turning:.3g} rad/s, more than a ship can turn; "
                "if the values are degrees, name the column yaw_deg"
            )
        if name in MOTIONS[3:5] and (largest > 1.0 or column.std() > 0.35):  # 57°, 20° RMS: no ship would stay upright
            raise DeckError(
                f"{source}: {name} reaches {largest:.3g} rad; if the values are degrees, name the column {name}_deg"
            )
        if name in MOTIONS[:3] and largest > 50:
            raise DeckError(f"{source}: {name} reaches {largest:.4g} m, more than a wave can do")
    return 1.0 / float(np.mean(steps))


def _band_limited(values: Array, rate: float, cutoff: float) -> tuple[Array, Array]:
    """Remove what is faster than ``cutoff`` (Hz) and resample finely enough for a spline; time from 0.

    The log is continued at both ends by its point reflection, so that neither value nor slope jumps there.
    """
    count = len(values)
    before, after = 2 * values[0] - values[:0:-1], 2 * values[-1] - values[-2::-1]
    longer = np.vstack((before, values, after))
    slope = (longer[-1] - longer[0]) / (len(longer) - 1)  # taken off, it makes the continued log periodic
    drift = np.arange(len(longer))[:, None] * slope
    spectrum = np.fft.rfft(longer - drift, axis=0)
    frequency = np.fft.rfftfreq(len(longer), 1 / rate)
    # A cosine ramp over the upper tenth of the band instead of a cliff, which would ring.
    spectrum *= np.clip((1.1 * cutoff - frequency) / (0.2 * cutoff), 0, 1)[:, None]
    finer = max(1, math.ceil(FINE_SAMPLES * cutoff / rate))
    fine = np.fft.irfft(spectrum, finer * len(longer), axis=0) * finer
    fine += np.arange(len(fine))[:, None] * (slope / finer)
    start = finer * (count - 1)
    kept = slice(start, start + finer * (count - 1) + 1)
    return np.arange(finer * (count - 1) + 1) / (rate * finer), fine[kept]


LOG_HELP = (
    "needed: time_s or t_s, and any of surge_m, sway_m, heave_m, roll_deg, pitch_deg, yaw_deg (or _rad), heading_deg"
)

KNOWN_COLUMNS = {"time_s", "t_s", "heading_deg"} | {
    f"{motion}_{unit}" for index, motion in enumerate(MOTIONS) for unit in (("deg", "rad") if index > 2 else ("m",))
}


def read_motion_log(
    path: Path,
    *,
    flip: Sequence[str] = (),
    cutoff_hz: float | None = None,
    station: Sequence[float] = (0.0, 0.0, 0.0),
) -> RecordedMotion:
    """Read a log of ship motion: CSV, or the sentences of a motion sensor ($PSXN,23; text, plain or gzipped).

    In CSV the unit of each column stands in its name; other columns are left alone.
    A compass ``heading_deg`` (clockwise) becomes yaw. ``flip`` names motions logged with the opposite sign: many units
    log pitch bow up or heave downwards. Compare heave with a GNSS height if in doubt.
    """
    if not path.is_file():
        raise DeckError(f"{path}: no such file; give a log of ship motion in CSV")
    if path.suffix != ".csv":
        return _flipped(*_read_sentences(path), flip, cutoff_hz, station, path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream) if row and not row[0].lstrip().startswith("#")]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DeckError(f"{path}: not a CSV text file ({error})") from None
    header = [name.strip() for name in rows[0]] if rows else []
    twice = sorted({name for name in header if header.count(name) > 1} & KNOWN_COLUMNS)
    if twice:
        raise DeckError(f"{path}: column {twice[0]} stands there {header.count(twice[0])} times; keep one")
    clock = [name for name in ("time_s", "t_s") if name in header]
    if len(clock) != 1:
        raise DeckError(f"{path}: one column of time is needed; {LOG_HELP}")

    def column(name: str) -> Array:
        at = header.index(name)
        try:
            return np.array([float(row[at]) if row[at].strip() else math.nan for row in rows[1:]])
        except (ValueError, IndexError):
            raise DeckError(f"{path}: column {name} does not hold a number in every row") from None

    motions: dict[str, Array] = {}
    for index, motion in enumerate(MOTIONS):
        units = {"_deg": math.pi / 180, "_rad": 1.0} if index > 2 else {"_m": 1.0}
        found = [unit for unit in units if motion + unit in header]
        if len(found) > 1:
            raise DeckError(f"{path}: {motion} stands there in two units; keep one")
        if found:
            motions[motion] = column(motion + found[0]) * units[found[0]]
    if "yaw" in motions:
        motions["yaw"] = np.unwrap(motions["yaw"])
    if "heading_deg" in header and "yaw" not in motions:
        motions["yaw"] = -np.unwrap(np.radians(column("heading_deg")))
    if not motions:
        raise DeckError(f"{path}: there is no motion in it; {LOG_HELP}")
    return _flipped(column(clock[0]), motions, flip, cutoff_hz, station, path)


def _flipped(
    time: Array,
    motions: dict[str, Array],
    flip: Sequence[str],
    cutoff_hz: float | None,
    station: Sequence[float],
    path: Path,
) -> RecordedMotion:
    for name in flip:
        motions[find_name(name, motions, what="motion to flip", where=str(path), error=DeckError)] *= -1
    return RecordedMotion(time, motions, cutoff_hz=cutoff_hz, station=station, source=str(path))


def _read_sentences(path: Path) -> tuple[Array, dict[str, Array]]:
    """Time (s) and motions from sentences $PSXN,23,roll,pitch,heading,heave*checksum, a time stamp before each.

    Signs as these units send them: roll port up, pitch bow up, heave downwards (found by GNSS heights), degrees and m.
    Sentences with a wrong checksum are left out.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    rows = []
    try:
        with opener(path, "rt", encoding="ascii", errors="replace") as stream:
            for line in stream:
                stamp, mark, sentence = line.strip().partition(" $")
                body, _, checksum = sentence.partition("*")
                if not mark or not body.startswith("PSXN,23,"):
                    continue
                if f"{functools.reduce(operator.xor, body.encode('ascii', 'replace')):02X}" != checksum.upper():
                    continue
                roll, pitch, heading, heave = map(float, body.split(",")[2:6])
                rows.append([datetime.fromisoformat(stamp).timestamp(), roll, pitch, heading, heave])
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DeckError(f"{path}: not a log of time stamps and $PSXN,23 sentences ({error})") from None
    if not rows:
        raise DeckError(f"{path}: neither a .csv file nor a log with time-stamped $PSXN,23 sentences; {LOG_HELP}")
    table = np.array(rows)
    turned = np.radians(table[:, 1:4])
    motions = {"roll": turned[:, 0], "pitch": -turned[:, 1], "yaw": -np.unwrap(turned[:, 2]), "heave": -table[:, 4]}
    return table[:, 0] - table[0, 0], motions
