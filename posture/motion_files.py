"""Recordings from gait laboratories: TRC, C3D, MOT, STO and CSV, turned into metres, radians and X forward, Z up.

Axes and units are said, never guessed: ``axes`` names, for the world's X, Y and Z, the file's axis that points there
("x -z y" is OpenSim's Y-up world), and lengths follow the unit the file states, or the one given. What the numbers
then look like is checked: a person is neither 2 mm nor 2 km tall, time runs evenly, feet are below heads, left is
left. C3D is read by ezc3d; the text formats are a header and a table, which NumPy and pandas-free code reads in ms.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posture.errors import MotionError, find_name

Array = NDArray[np.floating]

UNITS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "meters": 1.0, "millimeters": 1e-3}
Y_UP = "x -z y"  # OpenSim: X forward, Y up, Z right
Z_UP = "x y z"
MAX_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Markers:
    """Marker places: time (n, s), positions (n × markers × 3, m, X forward, Y left, Z up), NaN where not seen."""

    time: Array
    names: list[str]
    positions: Array
    source: str = ""

    @property
    def rate(self) -> float:
        """Samples per second."""
        return float((len(self.time) - 1) / (self.time[-1] - self.time[0]))

    def seen(self) -> Array:
        """Share of frames in which each marker is seen."""
        return np.asarray(np.isfinite(self.positions).all(axis=2).mean(axis=0))

    def select(self, names: Sequence[str]) -> Markers:
        """These markers only, in this order."""
        at = [
            self.names.index(
                find_name(name, self.names, what="marker", where=self.source or "markers", error=MotionError)
            )
            for name in names
        ]
        return replace(self, names=list(names), positions=self.positions[:, at])

    def between(self, start: float, end: float) -> Markers:
        """The part from start to end (s)."""
        kept = (self.time >= start - 1e-9) & (self.time <= end + 1e-9)
        if kept.sum() < 2:
            raise MotionError(
                f"{self.source or 'markers'}: nothing between {start:g} and {end:g} s; "
                f"the record runs from {self.time[0]:g} to {self.time[-1]:g} s"
            )
        return replace(self, time=self.time[kept], positions=self.positions[kept])


@dataclass(frozen=True)
class Table:
    """Named columns over time, as MOT, STO and CSV files hold them; angles as in the file."""

    time: Array
    names: list[str]
    values: Array
    in_degrees: bool = False
    source: str = ""

    def __getitem__(self, name: str) -> Array:
        """One column."""
        at = self.names.index(
            find_name(name, self.names, what="column", where=self.source or "table", error=MotionError)
        )
        return np.asarray(self.values[:, at])

    def angle(self, name: str) -> Array:
        """One column that holds an angle, in rad whatever the file holds."""
        return np.radians(self[name]) if self.in_degrees else self[name]


@dataclass(frozen=True)
class PlateRecord:
    """What force plates measured, world axes of posture: force (n × plates × 3, N) and moment about the world's origin.

    ``force`` and ``moment`` are of the ground on the person. ``names``: one per plate or foot.
    """

    time: Array
    names: list[str]
    force: Array
    moment: Array
    source: str = ""
    notes: list[str] = field(default_factory=list)


# ---------------------------------------------------------------- axes and units


def axes_matrix(axes: str, *, where: str = "axes") -> Array:
    """Rotation file to world for words such as "x -z y": the file's axis along the world's X, Y and Z."""
    words = axes.lower().split()
    rows = []
    for word in words:
        sign, letter = (-1.0, word[1:]) if word.startswith("-") else (1.0, word.lstrip("+"))
        if letter not in ("x", "y", "z"):
            break
        rows.append(sign * np.eye(3)["xyz".index(letter)])
    matrix = np.array(rows)
    if matrix.shape != (3, 3) or abs(abs(np.linalg.det(matrix)) - 1) > 1e-9:
        raise MotionError(
            f'{where}: axes "{axes}" must name x, y and z once each, with a minus where reversed: "x -z y"'
        )
    if np.linalg.det(matrix) < 0:
        raise MotionError(f'{where}: axes "{axes}" turn a right hand into a left one; reverse one sign')
    return matrix


def unit_factor(unit: str, *, where: str) -> float:
    """Metres per unit of length."""
    return UNITS[find_name(unit.strip().lower(), UNITS, what="unit of length", where=where, error=MotionError)]


# ---------------------------------------------------------------- reading


def read_markers(path: str | Path, *, axes: str, unit: str | None = None) -> Markers:
    """Marker places from .trc, .c3d or .csv; ``unit`` overrides or supplies what the file says of lengths.

    A CSV has a first column ``time`` and three columns NAME_x, NAME_y, NAME_z (or NAME.x …) for each marker.
    """
    path = _existing(path, (".trc", ".c3d", ".csv"))
    reader = {".trc": _read_trc, ".c3d": _read_c3d_markers, ".csv": _read_csv_markers}[path.suffix.lower()]
    time, names, positions, said = reader(path)
    unit = unit or said
    if unit is None:
        raise MotionError(f"{path}: the file does not say its unit of length; give it (m, mm, cm)")
    turn = axes_matrix(axes, where=str(path))
    scale = unit_factor(unit, where=str(path))
    _check_unique(names, "marker", path)
    # Many systems write zeros for a marker they lost; a place with one coordinate missing is no place.
    lost = (positions == 0).all(axis=2) | ~np.isfinite(positions).all(axis=2)
    positions[lost] = 0.0
    places = positions @ turn.T * scale
    places[lost] = np.nan
    return Markers(_even_time(time, path), names, places, str(path))


def _check_unique(names: Sequence[str], what: str, path: Path) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MotionError(f"{path}: {what} {twice!r} stands twice; names must be unique")


def _existing(path: str | Path, kinds: tuple[str, ...]) -> Path:
    path = Path(path)
    if not path.is_file():
        raise MotionError(f"{path}: no such file; give a recording ({', '.join(kinds)})")
    if path.suffix.lower() not in kinds:
        raise MotionError(f"{path}: unknown kind {path.suffix!r}; known: {', '.join(kinds)}")
    size = path.stat().st_size
    if not 0 < size <= MAX_BYTES:
        raise MotionError(f"{path}: the file has {size} bytes; a recording has some, and at most {MAX_BYTES}")
    return path


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise MotionError(f"{path}: not a text file; it is damaged or of another kind than its name says") from None
    except OSError as error:
        raise MotionError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def _number(text: str, path: Path, line: int) -> float:
    text = text.strip()
    if not text:
        return np.nan
    try:
        return float(text)
    except ValueError:
        hint = "; write decimal points, not commas" if "," in text else ""
        raise MotionError(f"{path}, line {line}: {text[:30]!r} is not a number{hint}") from None


def _rows(lines: list[str], first: int, width: int, path: Path, separator: str | None) -> Array:
    """Numbers of the table that starts at line index ``first``; empty cells are NaN.

    With a ``separator`` a row may end early, where the last cells are empty. Without one, cells stand between blanks,
    and a row that has too few of them must be separated by tabs.
    """
    rows = []
    for offset, line in enumerate(lines[first:], start=first + 1):
        if not line.strip():
            continue
        cells = line.split(separator)
        if separator is None and len(cells) != width:
            cells = line.split("\t")
        while len(cells) > width and not cells[-1].strip():
            cells.pop()
        if len(cells) > width or (separator is None and len(cells) < width):
            raise MotionError(f"{path}, line {offset}: {len(cells)} cells, but the header names {width} columns")
        rows.append([_number(cell, path, offset) for cell in cells] + [np.nan] * (width - len(cells)))
    if len(rows) < 2:
        raise MotionError(f"{path}: the table has {len(rows)} rows; at least two are needed")
    return np.array(rows)


def _read_trc(path: Path) -> tuple[Array, list[str], Array, str | None]:
    lines = _lines(path)
    if len(lines) < 7 or not lines[0].startswith("PathFileType"):
        raise MotionError(f"{path}: not a TRC file; its first line must start with PathFileType")
    header = dict(zip(lines[1].split(), lines[2].split(), strict=False))  # blanks, tabs or two tabs between
    names = [name.strip() for name in lines[3].rstrip().split("\t")[2:] if name.strip()]
    try:
        promised, frames, rate = (float(header[key]) for key in ("NumMarkers", "NumFrames", "DataRate"))
    except (KeyError, ValueError):
        raise MotionError(f"{path}, lines 2 and 3: DataRate, NumFrames and NumMarkers are needed as numbers") from None
    if promised != len(names):
        raise MotionError(f"{path}: the header promises {promised:g} markers, line 4 names {len(names)}")
    table = _rows(lines, 5, 2 + 3 * len(names), path, "\t")
    if len(table) != frames:
        raise MotionError(
            f"{path}: the header promises {frames:g} frames, the file holds {len(table)}; it may be cut short"
        )
    time = table[:, 1]
    _check_rate(time, rate, path)
    unit = header.get("Units", "")  # where it is left empty, the next number takes its place
    return time, names, table[:, 2:].reshape(len(table), len(names), 3), unit if unit.isalpha() else None


def _check_rate(time: Array, rate: float, path: Path) -> None:
    found = (len(time) - 1) / (time[-1] - time[0]) if time[-1] > time[0] else np.nan
    if not abs(found - rate) <= 0.02 * rate:
        raise MotionError(
            f"{path}: the header says {rate:g} samples/s, but the times run at {found:.4g}; correct one of them"
        )


def _even_time(time: Array, path: Path) -> Array:
    """Times checked and freed of rounding: 0.017, 0.033, 0.05 s written for 60 Hz would shake second derivatives."""
    steps = np.diff(time)
    if not np.isfinite(time).all() or not (steps > 0).all():
        row = int(np.argmin(np.where(np.isfinite(steps), steps, -np.inf))) + 1
        raise MotionError(f"{path}: time does not rise at row {row + 1}; sort the rows or remove doubles")
    if steps.max() > 1.5 * np.median(steps):
        row = int(np.argmax(steps))
        raise MotionError(
            f"{path}: frames are missing after {time[row]:g} s ({steps[row]:.3g} s to the next, usually "
            f"{np.median(steps):.3g}); keep the rows and leave lost markers empty"
        )
    even = np.linspace(time[0], time[-1], len(time))
    return even if np.abs(even - time).max() < 0.4 * np.median(steps) else time


def _read_csv(path: Path) -> tuple[list[str], Array]:
    lines = _lines(path)
    names = next(csv.reader([lines[0]])) if lines else []
    names = [name.strip() for name in names]
    while names and not names[-1]:
        names.pop()
    if not names or names[0].lower() not in ("time", "time_s", "t"):
        raise MotionError(f"{path}: the first line must name the columns, beginning with time, between commas")
    return names[1:], _rows(lines, 1, len(names), path, ",")


def _read_csv_markers(path: Path) -> tuple[Array, list[str], Array, str | None]:
    columns, table = _read_csv(path)
    names = []
    for at in range(0, len(columns), 3):
        three = columns[at : at + 3]
        stems = {column[:-2] for column in three}
        if len(three) != 3 or len(stems) != 1 or [column[-1].lower() for column in three] != ["x", "y", "z"]:
            raise MotionError(f"{path}: columns {three} are not NAME_x, NAME_y, NAME_z of one marker")
        names.append(stems.pop())
    return table[:, 0], names, table[:, 1:].reshape(len(table), len(names), 3), None


def read_table(path: str | Path) -> Table:
    """Columns over time from .mot, .sto (OpenSim) or .csv."""
    path = _existing(path, (".mot", ".sto", ".csv"))
    if path.suffix.lower() == ".csv":
        names, table = _read_csv(path)
        _check_unique(names, "column", path)
        return Table(_even_time(table[:, 0], path), names, table[:, 1:], False, str(path))
    lines = [line.rstrip() for line in _lines(path)]
    end = next((row for row, line in enumerate(lines[:200]) if line.strip().lower() == "endheader"), None)
    if end is None or end + 1 >= len(lines):
        raise MotionError(f"{path}: not a MOT or STO file; a line 'endheader' must come before the table")
    degrees = any(line.replace(" ", "").lower().startswith("indegrees=yes") for line in lines[:end])
    titles = next((row for row in range(end + 1, len(lines)) if lines[row]), end + 1)
    names = lines[titles].split()
    if not names or names[0].lower() != "time":
        raise MotionError(f"{path}, line {titles + 1}: the first column must be time")
    _check_unique(names, "column", path)
    table = _rows(lines, titles + 1, len(names), path, None)
    promised = next((line[6:] for line in lines[:end] if line.lower().startswith("nrows=")), "")
    if promised.strip().isdecimal() and len(table) < int(promised):
        raise MotionError(
            f"{path}: the header promises {int(promised)} rows, the file holds {len(table)}; it may be cut short"
        )
    return Table(_even_time(table[:, 0], path), names[1:], table[:, 1:], degrees, str(path))


def _open_c3d(path: Path, *, plates: bool) -> Any:
    try:
        import ezc3d
    except ModuleNotFoundError:
        raise MotionError(f"{path}: reading C3D needs ezc3d; pip install 'posture[c3d]'") from None
    try:
        return ezc3d.c3d(str(path), extract_forceplat_data=plates)
    except Exception as error:  # ezc3d passes on C++ errors of many kinds
        raise MotionError(f"{path}: not a readable C3D file ({str(error).splitlines()[0][:80]})") from None


def _read_c3d_markers(path: Path) -> tuple[Array, list[str], Array, str | None]:
    content = _open_c3d(path, plates=False)
    point = content["parameters"]["POINT"]
    names = [str(name).strip() for name in point["LABELS"]["value"]]
    rate = float(point["RATE"]["value"][0])
    positions = np.array(content["data"]["points"][:3], float).transpose(2, 1, 0)[:, : len(names)]
    lost = content["data"]["meta_points"]["residuals"][0].T[:, : len(names)] < 0
    positions[lost] = np.nan
    first = int(content["header"]["points"]["first_frame"])
    units = point["UNITS"]["value"] if "UNITS" in point else []
    return (first + np.arange(len(positions))) / rate, names, positions, str(units[0]) if len(units) else None


# ---------------------------------------------------------------- force plates in files


def read_plates(
    path: str | Path,
    *,
    axes: str,
    feet: dict[str, str] | None = None,
    unit: str | None = None,
    reverse: bool = False,
) -> PlateRecord:
    """Ground reactions from .mot/.sto (force, point, torque columns), or the plates of a .c3d.

    ``feet`` (MOT, STO): name of each foot or plate and the prefix of its columns, PREFIX_vx, PREFIX_px and the torque
    PREFIX with "force" → "torque" followed by _x; found from the file when not given. ``unit`` of the points: m unless
    said. Points are only believed while the foot is loaded; files hold anything in the rest. ``reverse``: the file
    holds what the person does to the plate.
    """
    path = _existing(path, (".mot", ".sto", ".c3d"))
    turn = axes_matrix(axes, where=str(path))
    c3d = path.suffix.lower() == ".c3d"
    found = _c3d_plates(path, turn, unit) if c3d else _table_plates(path, turn, feet, unit)
    return replace(found, force=-found.force, moment=-found.moment) if reverse else found


def _table_plates(path: Path, turn: Array, feet: dict[str, str] | None, unit: str | None) -> PlateRecord:
    table = read_table(path)
    found = feet or {name[:-3]: name[:-3] for name in table.names if name.endswith("_vx")}
    if not found:
        raise MotionError(f"{path}: no columns PREFIX_vx of a ground reaction; known: {', '.join(table.names[:8])}")
    scale = unit_factor(unit or "m", where=str(path))
    force, moment, notes = [], [], []
    for name, prefix in found.items():
        push = np.column_stack([table[f"{prefix}_v{axis}"] for axis in "xyz"]) @ turn.T
        point = np.column_stack([table[f"{prefix}_p{axis}"] for axis in "xyz"]) @ turn.T * scale
        twist = np.column_stack([table[f"{prefix.replace('force', 'torque')}_{axis}"] for axis in "xyz"]) @ turn.T
        idle = np.linalg.norm(push, axis=1) < 1e-9
        if np.abs(point[idle]).max(initial=0) > 20:
            notes.append(f"{name}: points without load are not places and were ignored")
        force.append(push)
        moment.append(np.where(idle[:, None], 0.0, np.cross(point, push) + twist))
    return PlateRecord(table.time, list(found), np.stack(force, 1), np.stack(moment, 1), str(path), notes)


def _c3d_plates(path: Path, turn: Array, unit: str | None) -> PlateRecord:
    content = _open_c3d(path, plates=True)
    plates = content["data"].get("platform", [])
    if not plates:
        raise MotionError(f"{path}: the file holds no force plates; check its FORCE_PLATFORM parameters")
    rate = float(content["parameters"]["ANALOG"]["RATE"]["value"][0])
    force, moment = [], []
    for plate in plates:
        length = unit_factor(unit or str(plate.get("unit_position", "mm")), where=str(path))
        twist = unit_factor(str(plate.get("unit_moment", "Nmm")).removeprefix("N") or "m", where=str(path))
        # ezc3d turns what the file holds, usually the reaction on the person, into the file's world axes; the moment is
        # about the plate's own middle
        push = np.array(plate["force"], float).T @ turn.T
        middle = turn @ np.mean(plate["corners"], axis=1) * length
        force.append(push)
        moment.append(np.array(plate["moment"], float).T @ turn.T * twist + np.cross(middle, push))
    start = int(content["header"]["points"]["first_frame"]) / float(content["parameters"]["POINT"]["RATE"]["value"][0])
    time = start + np.arange(len(force[0])) / rate
    names = [f"plate_{number}" for number in range(1, len(plates) + 1)]
    return PlateRecord(time, names, np.stack(force, 1), np.stack(moment, 1), str(path))


# ---------------------------------------------------------------- writing


def write_trc(markers: Markers, path: Path) -> None:
    """Write markers as TRC in mm, OpenSim's axes (Y up); lost markers are left empty."""
    from posture.results import write_text

    places = 1000 * markers.positions @ axes_matrix(Y_UP)  # the inverse of a rotation is its transpose
    rate, count = f"{markers.rate:.6g}", len(markers.time)
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate}\t{rate}\t{count}\t{len(markers.names)}\tmm\t{rate}\t1\t{count}",
        "Frame#\tTime\t" + "\t\t\t".join(markers.names),
        "\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(1, len(markers.names) + 1)),
        "",
    ]
    for frame, (time, row) in enumerate(zip(markers.time, places.reshape(count, -1), strict=True), start=1):
        cells = ("" if np.isnan(value) else f"{value:.5f}" for value in row)
        lines.append(f"{frame}\t{time:.6f}\t" + "\t".join(cells))
    write_text(path, "\n".join(lines) + "\n")


def write_plates(record: PlateRecord, path: Path, *, threshold: float = 20.0) -> None:
    """Write ground reactions as MOT (force, point on the ground, free torque), OpenSim's axes (Y up)."""
    from posture.results import write_text

    back = axes_matrix(Y_UP)
    header, columns = ["time"], [record.time[:, None]]
    for plate, name in enumerate(record.names):
        force, moment = record.force[:, plate], record.moment[:, plate]
        down = np.where(force[:, 2] > threshold, force[:, 2], np.inf)
        point = np.column_stack((-moment[:, 1] / down, moment[:, 0] / down, np.zeros(len(down))))
        force = np.where(np.isinf(down)[:, None], 0.0, force)
        twist = np.where(np.isinf(down)[:, None], 0.0, moment - np.cross(point, force))
        columns += [force @ back, point @ back, twist @ back]
        header += [f"{name}_ground_force_v{axis}" for axis in "xyz"] + [
            f"{name}_ground_force_p{axis}" for axis in "xyz"
        ]
        header += [f"{name}_ground_torque_{axis}" for axis in "xyz"]
    table = np.hstack(columns)
    lines = [path.stem, "version=1", f"nRows={len(table)}", f"nColumns={len(header)}", "inDegrees=no", "endheader"]
    lines += ["\t".join(header), *("\t".join(f"{value:.8g}" for value in row) for row in table)]
    write_text(path, "\n".join(lines) + "\n")


# ---------------------------------------------------------------- does it look like a person?


def plausible(markers: Markers, *, height: float | None = None) -> list[str]:
    """Refuse records that cannot be a person in metres with Z up; sentences about what is merely unusual."""
    where = markers.source or "markers"
    places = markers.positions[np.isfinite(markers.positions).any(axis=(1, 2))]
    if not len(places):
        raise MotionError(f"{where}: no marker is seen in any frame")
    tall = np.nanmedian(np.nanmax(places[..., 2], axis=1) - np.nanmin(places[..., 2], axis=1))
    reach = np.nanmedian(np.linalg.norm(np.nanmax(places, axis=1) - np.nanmin(places, axis=1), axis=1))
    if reach > 10 or reach < 0.1:
        guess = "mm" if reach > 100 else "cm" if reach > 10 else "m"
        raise MotionError(
            f"{where}: the markers span {reach:.3g} m, a person 0.1 to 10; the file is probably in {guess} "
            "(or was converted twice), so give its unit"
        )
    if tall < 0.5 * reach and reach > 0.8:
        raise MotionError(
            f"{where}: the markers are {tall:.2f} m high but {reach:.2f} m long, so Z is not up; give the file's axes, "
            f'such as "{Y_UP}" for Y up'
        )
    notes = []
    if height is not None and not 0.6 * height < reach < 1.6 * height:
        notes.append(f"markers span {reach:.2f} m, the person is {height:.2f} m tall")
    seen = markers.seen()
    for name, share in zip(markers.names, seen, strict=True):
        if share < 0.5:
            notes.append(f"marker {name} is seen in {100 * share:.0f} % of the frames only")
    return notes
