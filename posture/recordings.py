"""Recordings of a standing person: centre of pressure from files of force plates, checked before anything uses it.

Read are CSV and TSV files (also .gz) with a header line, and C3D. Two public layouts are known by their columns:
BDS (Santos and Duarte 2016: one plate, units in the header) and PDS (dos Santos et al. 2017: two plates). Any other
table is mapped by ``columns`` and ``unit``. A unit is taken from the header (``COPx[cm]``, ``cop_x (mm)``,
``cop_x_mm``) or must be given; lengths then have to make sense for a standing person, so that cm taken for m does
not pass.

Axes inside: x forwards, y left, metres; a column may be mapped with a sign, so no laboratory has to turn its plates.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, periodogram, sosfiltfilt

from posture.body import STANDARD_GRAVITY
from posture.errors import RecordingError, check_number, find_name

Array = NDArray[np.floating]

LENGTHS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
FORCES = {"N": 1.0, "kN": 1000.0}
MOMENTS = {"Nm": 1.0, "N m": 1.0, "N.m": 1.0, "N·m": 1.0, "Nmm": 0.001, "N mm": 0.001, "N.mm": 0.001, "Ncm": 0.01}
TIMES = {"s": 1.0, "ms": 0.001}
SUFFIXES = (".csv", ".tsv", ".txt", ".c3d")
LARGEST_FILE = 500_000_000  # bytes

SHORTEST = 5.0  # s: below, no posturographic measure means anything
LONGEST_GAP = 0.1  # s: a shorter gap is bridged by a straight line, and said
LARGEST_SWAY = 0.1  # m, resultant standard deviation: feet are not longer
LEAST_SWAY = 1e-4  # m: nobody stands so still; breathing and heartbeat alone move the COP more
LEAST_SHARE = 0.5  # of the median vertical force: below, a foot has left the plate
UNLOADED = 0.05  # share of the weight below which a plate of two carries no foot
CLIPPED_SHARE = 0.01  # of the samples at one extreme value: a saturated amplifier

# Names under which tables hold what is needed, lower case without units and separators.
USUAL = {
    "time": ("time", "t", "seconds"),
    "x": ("copx", "copap", "apcop", "ap", "copnetx", "x"),
    "y": ("copy", "copml", "mlcop", "ml", "y"),
    **{name + plate: (name + plate,) for plate in ("", "1", "2") for name in ("fx", "fy", "fz", "mx", "my")},
}


@dataclass(frozen=True)
class Recording:
    """Centre of pressure of one trial: ``cop`` (n × 2, m: forwards, left) at ``rate`` Hz, no gaps.

    ``vertical_force`` (n, N) where the file has it; ``feet``: share of the load and COP of each foot on two plates.
    """

    name: str
    rate: float
    cop: Array = field(repr=False)
    vertical_force: Array | None = field(default=None, repr=False)
    feet: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def duration(self) -> float:
        """Seconds from the first sample to the end of the last one."""
        return len(self.cop) / self.rate

    @property
    def time(self) -> Array:
        """Instants of the samples, s, from 0."""
        return np.asarray(np.arange(len(self.cop)) / self.rate)

    @property
    def mass(self) -> float | None:
        """Mean vertical force over g, kg."""
        return None if self.vertical_force is None else float(self.vertical_force.mean() / STANDARD_GRAVITY)

    def low_passed(self, cutoff: float) -> Recording:
        """Zero-lag second-order Butterworth (applied forwards and backwards), ``cutoff`` in Hz."""
        check_number(cutoff, what="cutoff", unit="Hz", low=0.1, high=0.49 * self.rate, error=RecordingError)
        filtered = sosfiltfilt(butter(2, cutoff, fs=self.rate, output="sos"), self.cop, axis=0)
        return replace(self, cop=np.asarray(filtered))

    def between(self, start: float, end: float) -> Recording:
        """The part from ``start`` to ``end`` s."""
        if not 0 <= start < end <= self.duration + 1e-9:
            raise RecordingError(f"{self.name}: {start:g} to {end:g} s is not inside 0 to {self.duration:g} s")
        rows = slice(round(start * self.rate), round(end * self.rate))
        feet = {foot: {key: values[rows] for key, values in parts.items()} for foot, parts in self.feet.items()}
        force = None if self.vertical_force is None else self.vertical_force[rows]
        return replace(self, cop=self.cop[rows], vertical_force=force, feet=feet)


def filtered_before(values: Array, rate: float) -> bool:
    """Whether a signal was low-pass filtered: top fifth of its band under 1e-4 of the density at 3 to 5 Hz."""
    frequency, power = periodogram(values, rate, window="hann")
    top, middle = power[frequency > 0.4 * rate], power[(frequency > 3) & (frequency < 5)]
    return bool(len(top) and len(middle) and np.mean(top) < 1e-4 * np.mean(middle))


def center_of_pressure_of_plates(
    forces: Sequence[Array], moments: Sequence[Array], *, origins: Sequence[Sequence[float]], surface: float = 0.0
) -> tuple[Array, Array]:
    """COP (n × 2, m) and vertical force (n, N) on one or more plates from their forces and moments (n × 3 each).

    Moments are about each plate's own origin, ``surface`` m below the surface; ``origins``: where those origins are on
    the floor (x forwards, y left, m). Per plate x = (z Fx - My)/Fz, y = (z Fy + Mx)/Fz; plates add by their Fz.
    """
    total = np.zeros(len(forces[0]))
    weighted = np.zeros((len(forces[0]), 2))
    for force, moment, origin in zip(forces, moments, origins, strict=True):
        weighted[:, 0] += surface * force[:, 0] - moment[:, 1] + origin[0] * force[:, 2]
        weighted[:, 1] += surface * force[:, 1] + moment[:, 0] + origin[1] * force[:, 2]
        total += force[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return weighted / total[:, None], np.asarray(np.abs(total))


def read_recording(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    rate: float | None = None,
    surface: float = 0.0,
    origins: Sequence[Sequence[float]] | None = None,
    forward: str = "x",
    quiet: bool = True,
) -> Recording:
    """Read one trial from .csv, .tsv, .txt (each also .gz) or .c3d.

    ``columns``: what is where, such as ``{"x": "AP", "y": "-ML", "time": "t"}`` (a minus turns a sign), or raw plate
    columns ``fx fy fz mx my`` (``fx1`` … ``my2`` for two plates). ``unit``: of COP columns without one in the
    header. ``rate`` (Hz): for tables without a time column. ``surface``: plate surface above the origin of raw
    moments, m. ``origins``: where the origins of two raw plates are, m. ``forward``: for C3D, the laboratory axis the
    person faces (x, -x, y, -y). ``quiet=False`` leaves the checks of a quiet stance out.
    """
    path = Path(path)
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind.lower() not in SUFFIXES:
        raise RecordingError(f"{path}: unknown kind {path.suffix!r}; recordings end in {', '.join(SUFFIXES)} (or .gz)")
    if not path.is_file():
        raise RecordingError(f"{path}: no such file; give the path of a recording")
    if path.stat().st_size > LARGEST_FILE:
        raise RecordingError(f"{path}: larger than {LARGEST_FILE / 1e6:g} MB; cut it into trials")
    if unit is not None:
        find_name(unit, LENGTHS, what="unit of length", where=str(path), error=RecordingError)
    if kind.lower() == ".c3d":
        found = _read_c3d(path, forward)
    else:
        header, table = _read_table(path)
        found = _from_table(path, header, table, columns or {}, unit, rate, surface, origins)
    return checked(found) if quiet else found


def checked(recording: Recording) -> Recording:
    """The recording if a standing person can have made it, short gaps bridged; otherwise one sentence why not."""
    name, notes = recording.name, list(recording.notes)
    if recording.duration < SHORTEST:
        raise RecordingError(
            f"{name}: the recording lasts {recording.duration:.3g} s, but sway measures need {SHORTEST:g} s or more "
            "(60 s is usual); record longer"
        )
    cop = recording.cop.copy()
    missing = np.asarray(~np.isfinite(cop).all(axis=1))
    if recording.vertical_force is not None:
        force = recording.vertical_force
        known = force[np.isfinite(force)]
        low = (
            np.isfinite(force) & (force < LEAST_SHARE * np.median(known)) if len(known) else np.zeros(len(force), bool)
        )
        if low.any():
            at = int(np.argmax(low))
            raise RecordingError(
                f"{name}: at {at / recording.rate:.2f} s the plate carries only {force[at]:.0f} of "
                f"{np.median(known):.0f} N; a foot left the plate, so cut the recording before or after"
            )
    for foot, parts in recording.feet.items():
        off = parts["share"] < UNLOADED
        if off.any():
            raise RecordingError(
                f"{name}: at {np.argmax(off) / recording.rate:.2f} s the {foot} foot carries less than "
                f"{100 * UNLOADED:g} % of the weight; it left its plate, so cut the recording before or after"
            )
    if missing.any():
        start, length = _longest_run(missing)
        if missing.all() or length / recording.rate > LONGEST_GAP or missing[0] or missing[-1]:
            raise RecordingError(
                f"{name}: no COP for {length / recording.rate:.2f} s from {start / recording.rate:.2f} s on (gaps to "
                f"{LONGEST_GAP:g} s inside a recording are bridged); cut the recording to a part without gaps"
            )
        rows = np.arange(len(cop))
        for column in range(2):
            cop[missing, column] = np.interp(rows[missing], rows[~missing], cop[~missing, column])
        notes.append(f"{int(missing.sum())} missing samples were bridged by straight lines")
    spread = float(np.sqrt(cop.var(axis=0).sum()))
    if spread == 0 or (cop.std(axis=0) == 0).any():
        raise RecordingError(
            f"{name}: the COP never moves (a flat line in x or y); is the plate connected, are the columns right?"
        )
    if spread > LARGEST_SWAY:
        raise RecordingError(
            f"{name}: the COP has a standard deviation of {spread:.3g} m, more than feet allow; is it in cm or mm? "
            "Give the unit"
        )
    if spread < LEAST_SWAY:
        raise RecordingError(
            f"{name}: the COP has a standard deviation of {1000 * spread:.2g} mm, less than breathing causes; is it "
            "in m rather than cm or mm? Give the unit"
        )
    for column, letter in enumerate("xy"):
        _check_clipping(name, f"COP {letter}", cop[:, column])
    if recording.vertical_force is not None:
        _check_clipping(name, "vertical force", recording.vertical_force)
    jump = np.linalg.norm(np.diff(cop, axis=0), axis=1)
    if jump.max() > 0.05 and jump.max() > 20 * spread / np.sqrt(recording.rate):
        raise RecordingError(
            f"{name}: the COP jumps {1000 * jump.max():.0f} mm at {np.argmax(jump) / recording.rate:.2f} s; a step or "
            "a broken sample, so cut the recording there"
        )
    if spread > 0.03:
        notes.append(f"unusually large sway ({1000 * spread:.0f} mm); check the unit")
    if spread < 0.0005:
        notes.append(f"unusually small sway ({1000 * spread:.2g} mm); check the unit")
    return replace(recording, cop=cop, notes=tuple(notes))


def _check_clipping(name: str, what: str, values: Array) -> None:
    """Refuse a channel that sits at its largest or smallest value far more often than just beside it."""
    levels, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(levels) < 3:
        return
    for edge, beside, word in ((-1, -2, "largest"), (0, 1, "smallest")):
        if counts[edge] >= max(10, CLIPPED_SHARE * len(values)) and counts[edge] > 5 * counts[beside]:
            raise RecordingError(
                f"{name}: {counts[edge]} samples of {what} have exactly its {word} value {levels[edge]:.6g}; the plate "
                "was clipped (saturated), so record again with a larger range"
            )


def _longest_run(mask: NDArray[np.bool_]) -> tuple[int, int]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(int), [0]))))
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest] - starts[longest])


# ---------------------------------------------------------------- tables


def _read_table(path: Path) -> tuple[list[str], Array]:
    """Header cells and numbers of a text table; empty cells and NaN become NaN."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: cannot be read as text ({error}); is it a table?") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 3:
        raise RecordingError(f"{path}: fewer than three lines; a recording has a header and one row per sample")
    separator = max("\t;,", key=lines[0].count)
    if not lines[0].count(separator):
        raise RecordingError(f"{path}: the header has one column only; separate columns by tabs, commas or semicolons")
    header = [cell.strip() for cell in next(csv.reader([lines[0]], delimiter=separator))]
    if all(_is_number(cell) for cell in header):
        raise RecordingError(f"{path}: the first line holds numbers; put the names of the columns there")
    body = "\n".join(lines[1:])
    if separator == ";":
        body = body.replace(",", ".")  # decimal commas
    try:
        table = np.genfromtxt(io.StringIO(body), delimiter=separator, dtype=float, invalid_raise=True)
    except ValueError:
        short = next(
            (row for row, line in enumerate(lines[1:], start=2) if line.count(separator) != lines[0].count(separator)),
            2,
        )
        raise RecordingError(
            f"{path}: line {short} does not have the {len(header)} columns of the header; is the file cut off?"
        ) from None
    if table.ndim != 2 or table.shape[1] != len(header):
        raise RecordingError(
            f"{path}: {len(header)} columns in the header, {table.shape[-1]} in the rows; make them the same"
        )
    return header, np.asarray(table)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _split_unit(cell: str) -> tuple[str, str]:
    """Name and unit of a header cell: ``COPx[cm]``, ``COP x (mm)``, ``cop_x_mm``."""
    matched = re.fullmatch(r"(.*?)\s*[\[(]\s*(.+?)\s*[\])]", cell)
    if matched:
        return matched[1], matched[2]
    matched = re.fullmatch(r"(.*)_(mm|cm|m|s|ms|N|Nm)", cell)
    return (matched[1], matched[2]) if matched else (cell, "")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


class _Table:
    """A table whose columns are found by mapping or usual name, each with its unit turned to SI."""

    def __init__(
        self, path: Path, header: list[str], values: Array, columns: Mapping[str, str], unit: str | None
    ) -> None:
        self.path, self.header, self.values, self.unit = path, header, values, unit
        for key in columns:
            find_name(key, USUAL, what="quantity", where=f"{path}: columns", error=RecordingError)
        self.columns = dict(columns)

    def has(self, key: str) -> bool:
        return self._cell(key) is not None

    def _cell(self, key: str) -> str | None:
        if key in self.columns:
            wanted = self.columns[key].lstrip("-")
            names = {cell: cell for cell in self.header} | {_split_unit(cell)[0]: cell for cell in self.header}
            return names[find_name(wanted, names, what="column", where=str(self.path), error=RecordingError)]
        for usual in USUAL[key]:
            for cell in self.header:
                if _plain(_split_unit(cell)[0]) == usual:
                    return cell
        return None

    def get(self, key: str, units: Mapping[str, float], default: str | None = None) -> Array:
        """Column in SI; the unit comes from the header, else from ``unit`` or ``default``, else is asked for."""
        cell = self._cell(key)
        assert cell is not None  # callers ask has() first
        sign = -1.0 if self.columns.get(key, "").startswith("-") else 1.0
        unit = _split_unit(cell)[1] or (self.unit if units is LENGTHS else None) or default
        if unit is None:
            raise RecordingError(
                f"{self.path}: column {cell!r} does not say its unit; write it into the header, as in '{cell}[mm]', or "
                f"give the unit ({', '.join(units)})"
            )
        if unit not in units:
            raise RecordingError(
                f"{self.path}: column {cell!r} has the unit {unit!r}, but must be in {', '.join(units)}; rename it"
            )
        return np.asarray(sign * units[unit] * self.values[:, self.header.index(cell)])


PDS_COLUMNS = ("RGRF_Y", "LGRF_Y", "RCOP_X", "RCOP_Z", "LCOP_X", "LCOP_Z", "COPNET_X", "COPNET_Z")


def _from_table(
    path: Path,
    header: list[str],
    values: Array,
    columns: Mapping[str, str],
    unit: str | None,
    rate: float | None,
    surface: float,
    origins: Sequence[Sequence[float]] | None,
) -> Recording:
    table = _Table(path, header, values, columns, unit)
    pds = all(name in header for name in PDS_COLUMNS) and not columns
    if table.has("time"):
        time = table.get("time", TIMES, "s")
        found_rate = _rate(path, time)
        if rate is not None and abs(found_rate - rate) > 0.01 * rate:
            raise RecordingError(f"{path}: the time column says {found_rate:.4g} Hz, you say {rate:g} Hz; correct one")
        rate = found_rate
    elif rate is None:
        raise RecordingError(f"{path}: there is no time column; name it or give the rate in Hz")
    check_number(rate, what=f"{path}: rate", unit="Hz", low=2, high=1e5, error=RecordingError)
    name = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    if pds:
        return _from_pds(name, rate, {cell: values[:, header.index(cell)] for cell in PDS_COLUMNS})
    force = np.abs(table.get("fz", FORCES, "N")) if table.has("fz") else None
    if table.has("x") and table.has("y"):
        cop = np.column_stack([table.get(letter, LENGTHS) for letter in "xy"])
        return Recording(name, rate, cop, force)
    for plates in (("",), ("1", "2")):
        if not all(table.has(name + plate) for plate in plates for name in ("fx", "fy", "fz", "mx", "my")):
            continue
        if len(plates) == 2 and (origins is None or len(origins) != 2):
            raise RecordingError(f"{path}: two plates, but not where they are; give the origin of each (x, y in m)")
        parts = [
            (
                np.column_stack([table.get(name + plate, FORCES) for name in ("fx", "fy", "fz")]),
                np.column_stack([table.get(name + plate, MOMENTS) for name in ("mx", "my")]),
            )
            for plate in plates
        ]
        forces, moments = [part[0] for part in parts], [part[1] for part in parts]
        places = [(0.0, 0.0)] if len(plates) == 1 else list(origins or [])
        cop, force = center_of_pressure_of_plates(forces, moments, origins=places, surface=surface)
        note = f"COP from forces and moments of {len(plates)} plate(s)"
        if len(plates) == 1:
            return Recording(name, rate, cop, force, notes=(note,))
        own = [
            center_of_pressure_of_plates([push], [turn], origins=[place], surface=surface)
            for push, turn, place in zip(forces, moments, places, strict=True)
        ]
        used = _stood_on([(load, pressure) for pressure, load in own], force)
        return Recording(name, rate, cop, force, _feet(used, force), (note,))
    raise RecordingError(
        f"{path}: neither COP (x, y) nor raw plate columns (fx fy fz mx my, or fx1 … my2) were found among "
        f"{', '.join(header[:12])}; map them, as in x=AP y=ML"
    )


def _rate(path: Path, time: Array) -> float:
    steps = np.diff(time)
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        row = int(np.argmin(np.isfinite(steps) & (steps > 0))) + 1
        raise RecordingError(f"{path}: time does not grow at sample {row}; sort the rows or remove the repeated ones")
    step = float(np.median(steps))
    if np.abs(steps - step).max() > 0.5 * step:
        row = int(np.argmax(np.abs(steps - step)))
        raise RecordingError(
            f"{path}: samples are {step:.4g} s apart, but {steps[row]:.4g} s after {time[row]:.4g} s; samples are "
            "missing, so cut the recording there or resample it"
        )
    return round((len(time) - 1) / float(time[-1] - time[0]), 6)


def _from_pds(name: str, rate: float, part: dict[str, Array]) -> Recording:
    """Two plates (dos Santos et al. 2017): X forwards, Y up, Z right, N and m; the net COP is made anew from both."""
    total = part["RGRF_Y"] + part["LGRF_Y"]
    feet: dict[str, dict[str, Array]] = {}
    cop = np.zeros((len(total), 2))
    for foot, letter in (("right", "R"), ("left", "L")):
        share = part[f"{letter}GRF_Y"] / total
        own = np.column_stack((part[f"{letter}COP_X"], -part[f"{letter}COP_Z"]))
        feet[foot] = {"share": share, "cop": own}
        cop += share[:, None] * own
    return Recording(name, rate, cop, total, feet, ("COP from two plates",))


def _stood_on(plates: Sequence[tuple[Array, Array]], total: Array) -> list[tuple[Array, Array]]:
    """Those of the plates, each load (n, N) and COP (n × 2, m), that carry somebody."""
    return [plate for plate in plates if np.nanmean(plate[0]) > UNLOADED * np.nanmean(total)]


def _feet(used: Sequence[tuple[Array, Array]], total: Array) -> dict[str, dict[str, Array]]:
    """Share of the load and COP of each foot on two plates, left being the larger y; nothing on another number."""
    if len(used) != 2:
        return {}
    order = sorted(used, key=lambda plate: float(np.nanmean(plate[1][:, 1])))
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            foot: {"share": load / total, "cop": own}
            for foot, (load, own) in zip(("right", "left"), order, strict=True)
        }


# ---------------------------------------------------------------- C3D


def _read_c3d(path: Path, forward: str) -> Recording:
    """All force plates of a C3D file, by ezc3d (which knows plate types 1 to 4 and their corners)."""
    find_name(forward, ("x", "-x", "y", "-y"), what="axis", where=f"{path}: forward", error=RecordingError)
    try:
        import ezc3d
    except ImportError:
        raise RecordingError(f"{path}: reading C3D needs ezc3d; install it: pip install 'posture[c3d]'") from None
    try:
        content: Any = ezc3d.c3d(str(path), extract_forceplat_data=True)
        plates = content["data"]["platform"]
        rate = float(content["header"]["analogs"]["frame_rate"])
    except Exception as error:  # ezc3d raises several unrelated types for damaged files
        raise RecordingError(f"{path}: not a readable C3D file ({error}); copy or export it again") from None
    if not plates:
        raise RecordingError(f"{path}: the file has no force plate; export it with analog data and plate parameters")
    size = plates[0]["force"].shape[1]
    total, weighted, feet = np.zeros(size), np.zeros((size, 2)), []
    turn = {"x": (0, 1, 1, 1), "-x": (0, -1, 1, -1), "y": (1, 1, 0, -1), "-y": (1, -1, 0, 1)}[forward]
    for plate in plates:
        scale = LENGTHS.get(str(plate["unit_position"]).strip())
        if scale is None:
            raise RecordingError(f"{path}: plate positions are in {plate['unit_position']!r}; use m, cm or mm")
        load = np.abs(np.asarray(plate["force"])[2])
        point = scale * np.asarray(plate["center_of_pressure"])
        own = np.column_stack((turn[1] * point[turn[0]], turn[3] * point[turn[2]]))
        loaded = load > 10.0  # N: an empty plate has no COP
        total += load
        weighted[loaded] += load[loaded, None] * own[loaded]
        feet.append((load, own))
    with np.errstate(divide="ignore", invalid="ignore"):
        cop = weighted / total[:, None]
    used = _stood_on(feet, total)
    return Recording(
        path.stem,
        rate,
        cop,
        total,
        _feet(used, total),
        (f"COP from {len(used)} plate(s) of a C3D file, person facing lab {forward}",),
    )
