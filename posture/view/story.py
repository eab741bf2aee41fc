"""What a run tells, found from the variables it has: curves, headline numbers, live readouts and moments to mark.

Nothing here asks how a run was made. Optional variables beyond results.SCHEMA that are shown when present:
``reference_joint_position``, ``reference_root_position``, ``reference_root_quaternion`` (like those without
``reference_``: the motion to follow), ``lyapunov_value`` (J); attributes ``cycle_start_s``, ``cycle_end_s`` (a gait
cycle: curves of torques are then told over % of it), ``elements`` (JSON, as Pinocchio links and points).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY, Body
from posture.ship.interruptions import count_run

Array = NDArray[np.floating]

# Okabe and Ito's colours, which people who see fewer colours tell apart, darkened where they are thin lines on white.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072b2", "#d98a00", "#00855f", "#c2417c", "#3d9bd1", "#d04a00"
COLORS = (BLUE, ORANGE, GREEN, PINK, SKY, RED)
MOST_PLOTS = 6
MOST_EVENTS = 500
CAUSES = {"lift_off": "feet lift off", "tip": "COP leaves the stance", "slide": "feet slide"}


@dataclass(frozen=True)
class Curve:
    """One line of a plot: a number for each row of the run."""

    label: str
    color: str
    values: Array


@dataclass(frozen=True)
class Plot:
    """Curves with one unit; over time, or over % of a cycle (start and end in s)."""

    title: str
    unit: str
    curves: list[Curve]
    cycle: tuple[float, float] | None = None


@dataclass(frozen=True)
class Readout:
    """A number that is told beside the picture while the run plays."""

    label: str
    unit: str
    digits: int
    values: Array


# ---------------------------------------------------------------- reading a run


def rows(dataset: xr.Dataset, name: str, width: int, missing: float = math.nan) -> Array:
    """Values of a variable, or a constant where the run has none such (width 0: one number per row)."""
    if name in dataset:
        return np.array(dataset[name].values, dtype=np.float64)
    return np.full((dataset.sizes["time"], width) if width else dataset.sizes["time"], missing)


def labels(dataset: xr.Dataset, dimension: str) -> list[str]:
    """Names along a dimension."""
    return [str(label) for label in dataset[dimension].values]


def tilt(dataset: xr.Dataset) -> Array:
    """Roll and pitch of the ship (n × 2, rad), wherever the person faces; NaN where the run does not know its pose."""
    found = np.full((dataset.sizes["time"], 2), np.nan)
    if "deck_quaternion" in dataset:
        turn = np.asarray(dataset["deck_quaternion"].values, float)
        good = np.isfinite(turn).all(axis=1) & (np.abs(turn).max(axis=1) > 1e-9)
        if good.any():
            found[good] = Rotation.from_quat(turn[good]).as_euler("XYZ")[:, :2]  # a last turn about Z changes neither
    return found


def facing(dataset: xr.Dataset) -> float:
    """Where the person looks, rad from the bow to port: the X axis of everything in the deck's axes."""
    return float(dataset.attrs.get("facing_rad", 0.0))


def deck_moves(dataset: xr.Dataset) -> bool:
    """Whether the ground tilts or heaves: then it is a ship's deck, otherwise the floor of a laboratory."""
    if "wave_amplitude" in dataset:
        return True
    height = rows(dataset, "deck_position", 3, 0.0)[:, 2]
    sizes = [np.ptp(values[np.isfinite(values)]) for values in (*tilt(dataset).T, height) if np.isfinite(values).any()]
    return any(size > 1e-6 for size in sizes)


def has_feet(body: Body) -> bool:
    """Whether the body stands on contact areas; one joined to the ground, a pendulum, has no pressure centre."""
    return bool(body.contact_names)


def pressure(dataset: xr.Dataset, body: Body) -> Array:
    """Centre of pressure (n × 2, m) of a body that stands on something."""
    return rows(dataset, "position_cop_on_deck" if has_feet(body) else "", 2)


def weights(dataset: xr.Dataset, body: Body, name: str) -> Array:
    """A force variable in body weights."""
    return np.asarray(dataset[name].values, float) / (body.mass * STANDARD_GRAVITY)


def _known(values: Array) -> Array:
    return values[np.isfinite(values)]


def _turning(body: Body) -> list[str]:
    return [
        name
        for name in body.joint_names
        if body.model.joints[body.model.getJointId(name)].shortname().startswith("JointModelR")
    ]


def _words(name: str) -> str:
    """A name as people write it; sides are short, since legends are."""
    side = {"left_": "L ", "right_": "R "}
    start = next((prefix for prefix in side if name.startswith(prefix)), "")
    return side.get(start, "") + name.removeprefix(start).replace("_", " ")


def _largest(names: list[str], values: Array, count: int = 3) -> list[Curve]:
    """The columns that vary most, in their own order; of columns that agree (two legs in a jump) only one."""
    clean = np.where(np.isfinite(values), values, 0.0)
    chosen: list[int] = []
    for k in np.argsort(-clean.std(axis=0), kind="stable"):
        same = [j for j in chosen if np.abs(clean[:, j] - clean[:, k]).max() < 1e-3 * max(np.ptp(clean[:, k]), 1e-12)]
        if not same and len(chosen) < count:
            chosen.append(int(k))
    return [Curve(_words(names[k]), color, values[:, k]) for k, color in zip(sorted(chosen), COLORS, strict=False)]


# ---------------------------------------------------------------- curves


def plots(dataset: xr.Dataset, body: Body) -> list[Plot]:
    """The plots a run can fill, the most telling first."""
    found = [
        Plot(plot.title, plot.unit, shown, plot.cycle)
        for plot in _plots(dataset, body)
        if (shown := [curve for curve in plot.curves if len(_known(curve.values))])
    ]
    return found[:MOST_PLOTS]


def _plots(dataset: xr.Dataset, body: Body) -> Iterator[Plot]:
    if deck_moves(dataset):
        roll, pitch = np.degrees(tilt(dataset)).T
        yield Plot("Deck", "deg", [Curve("roll", BLUE, roll), Curve("pitch", ORANGE, pitch)])
    if "lyapunov_value" in dataset:
        yield Plot("Lyapunov function", "J", [Curve("v", PINK, rows(dataset, "lyapunov_value", 0))])
    if "element_tension" in dataset:
        tension = np.asarray(dataset["element_tension"].values, float)
        yield Plot("Tension", "N", _largest(labels(dataset, "element"), tension))
    if "muscle_activation" in dataset:
        active = np.asarray(dataset["muscle_activation"].values, float)
        yield Plot("Muscle activation", "0 to 1", _largest(labels(dataset, "muscle"), active))
    if "ground_force" in dataset:
        up = weights(dataset, body, "ground_force")[:, :, 2]
        names = labels(dataset, "contact")
        curves = [Curve(_words(n), c, up[:, k]) for k, (n, c) in enumerate(zip(names, COLORS, strict=False))]
        yield Plot("Vertical force", "body weights", curves)
    if "joint_force" in dataset:
        size = np.linalg.norm(weights(dataset, body, "joint_force"), axis=2)
        yield Plot("Joint load", "body weights", _largest(labels(dataset, "joint"), size))
    com = rows(dataset, "position_com_in_deck", 3) * 1000
    cop = pressure(dataset, body) * 1000
    for column, title in enumerate(("Fore-aft", "Lateral")):
        both = [Curve("COP", PINK, cop[:, column]), Curve("COM", ORANGE, com[:, column])]
        if any(np.ptp(known) > 1e-3 for curve in both if len(known := _known(curve.values))):
            yield Plot(title, "mm", both)
    if "force_deck_on_person" in dataset and "element_tension" not in dataset:
        up = weights(dataset, body, "force_deck_on_person")[:, 2]
        if np.ptp(_known(up)) > 1e-3 if len(_known(up)) else False:
            yield Plot("Vertical force", "body weights", [Curve("Fz", GREEN, up)])
    if "reference_joint_position" in dataset:
        apart = np.degrees(np.abs(dataset["joint_position"].values - dataset["reference_joint_position"].values))
        yield Plot("Farthest joint from reference", "deg", [Curve("error", RED, apart.max(axis=1))])
    if "joint_torque" in dataset and not deck_moves(dataset):
        torque = np.asarray(dataset["joint_torque"].values, float)
        yield Plot("Joint torque", "N·m", _largest(labels(dataset, "joint"), torque), cycle(dataset))
    turning = [name for name in _turning(body) if name in labels(dataset, "joint")]
    angles = np.degrees(dataset.joint_position.sel(joint=turning).values)
    yield Plot("Joint angle", "deg", _largest(turning, angles, 3), cycle(dataset))


def cycle(dataset: xr.Dataset) -> tuple[float, float] | None:
    """Start and end of a gait cycle, s, if the run says so."""
    start, end = (float(dataset.attrs.get(name, math.nan)) for name in ("cycle_start_s", "cycle_end_s"))
    return (start, end) if end > start else None


# ---------------------------------------------------------------- numbers


def tiles(dataset: xr.Dataset, body: Body) -> list[tuple[str, str]]:
    """Headline numbers of the whole run: what, and how much with its unit."""
    return list(_tiles(dataset, body))[:6]


def _tiles(dataset: xr.Dataset, body: Body) -> Iterator[tuple[str, str]]:
    time = dataset.time.values
    if deck_moves(dataset) and len(roll := _known(tilt(dataset)[:, 0])):
        yield "roll RMS", f"{math.degrees(math.sqrt(float(np.mean(roll**2)))):.1f}°"
    cop = pressure(dataset, body) * 1000
    for column, way in ((1, "lateral"), (0, "fore-aft")):
        known = _known(cop[:, column])
        if len(known) and np.ptp(known) > 1e-3:
            yield f"COP RMS, {way}", f"{known.std():.3g} mm"
            if way == "lateral":
                break
            if not deck_moves(dataset) and len(known) == len(cop) > 1:
                speed = np.linalg.norm(np.diff(cop, axis=0), axis=1).sum() / (time[-1] - time[0])
                yield "mean COP speed", f"{speed:.3g} mm/s"
    if deck_moves(dataset) and "stance_margin" in dataset and "force_deck_on_person" in dataset and len(time) > 2:
        yield "interruptions per minute", f"{count_run(dataset).per_minute:.2g}"
    if "stance_margin" in dataset and len(known := _known(dataset["stance_margin"].values)):
        outside = 100 * float(np.mean(~(dataset["stance_margin"].values >= 0)))
        yield ("COP outside stance", f"{outside:.1f} %") if deck_moves(dataset) else (
            "smallest margin", f"{1000 * known.min():.0f} mm"
        )  # fmt: skip
    if "lyapunov_value" in dataset and len(known := _known(rows(dataset, "lyapunov_value", 0))):
        yield "Lyapunov function, start", f"{known[0]:.3g} J"
        yield "of it left at the end", f"{100 * known[-1] / known[0]:.2g} %" if known[0] else "0 %"
        yield "steps in which it rises", f"{int(np.sum(np.diff(known) > 1e-9 * (1 + np.abs(known[:-1]))))}"
    if "element_tension" in dataset:
        yield "largest tension", f"{np.nanmax(dataset['element_tension'].values):.3g} N"
    if "root_position" in dataset:
        root = np.asarray(dataset["root_position"].values, float)
        far = float(np.linalg.norm(root[-1, :2] - root[0, :2]))
        if far > 0.5:
            yield "walking speed", f"{far / (time[-1] - time[0]):.2f} m/s"
        if (
            len(flying := flight(dataset))
            and (height := STANDARD_GRAVITY * float(np.ptp(time[flying])) ** 2 / 8) > 0.02
        ):
            yield "jump height", f"{100 * height:.0f} cm"
    if "ground_force" in dataset:
        total = weights(dataset, body, "ground_force")[:, :, 2].sum(axis=1)
        yield "peak vertical force", f"{np.nanmax(total):.2f} BW"
    if "joint_force" in dataset:
        size = np.linalg.norm(weights(dataset, body, "joint_force"), axis=2).max(axis=0)
        yield f"{_words(labels(dataset, 'joint')[int(np.argmax(size))])} load", f"{size.max():.1f} BW"
    if "reference_joint_position" in dataset:
        apart = np.abs(dataset["joint_position"].values - dataset["reference_joint_position"].values)
        yield "farthest from reference", f"{np.degrees(np.nanmax(apart)):.2g}°"
    if "muscle_activation" in dataset:
        yield "largest activation", f"{float(dataset['muscle_activation'].max()):.2f}"


def readouts(dataset: xr.Dataset, body: Body) -> list[Readout]:
    """What is told beside the picture."""
    return list(_readouts(dataset, body))[:4]


def _readouts(dataset: xr.Dataset, body: Body) -> Iterator[Readout]:
    if deck_moves(dataset):
        roll, pitch = np.degrees(tilt(dataset)).T
        yield Readout("roll", "°", 1, roll)
        yield Readout("pitch", "°", 1, pitch)
    if "stance_margin" in dataset:
        yield Readout("stance margin", " mm", 0, rows(dataset, "stance_margin", 0) * 1000)
    if "lyapunov_value" in dataset:
        yield Readout("Lyapunov function", " J", 3, rows(dataset, "lyapunov_value", 0))
    if "element_tension" in dataset:
        for k, name in enumerate(labels(dataset, "element")[:2]):
            yield Readout(name, " N", 1, np.asarray(dataset["element_tension"].values[:, k], float))
    if (span := cycle(dataset)) is not None:
        yield Readout("gait cycle", " %", 0, 100 * (dataset.time.values - span[0]) / (span[1] - span[0]))
    if "ground_force" in dataset:
        up = weights(dataset, body, "ground_force")[:, :, 2]
        for k, name in enumerate(labels(dataset, "contact")[:2]):
            yield Readout(_words(name), " BW", 2, up[:, k])
    if "muscle_activation" in dataset:
        yield Readout("largest activation", "", 2, dataset["muscle_activation"].values.max(axis=1))
    elif not deck_moves(dataset) and "position_cop_on_deck" in dataset and has_feet(body):
        yield Readout("COP forward", " mm", 1, pressure(dataset, body)[:, 0] * 1000)


# ---------------------------------------------------------------- moments


def flight(dataset: xr.Dataset) -> NDArray[np.intp]:
    """Rows of the longest time in the air of a floating body; empty if it never leaves the ground."""
    if "ground_force" not in dataset:
        return np.array([], dtype=np.intp)
    up = np.nan_to_num(dataset["ground_force"].values[:, :, 2]).sum(axis=1)
    in_air = up < 0.02 * max(float(np.abs(up).max()), 1e-9)
    spans = _spans(in_air)
    return np.arange(*max(spans, key=lambda span: span[1] - span[0])) if spans else np.array([], dtype=np.intp)


def _spans(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def events(dataset: xr.Dataset) -> list[tuple[float, str]]:
    """Moments to mark on the time slider: when (s) and what, in order of time."""
    return sorted(_events(dataset))[:MOST_EVENTS]


def _events(dataset: xr.Dataset) -> Iterator[tuple[float, str]]:
    time = dataset.time.values
    if "stance_margin" in dataset and "force_deck_on_person" in dataset and len(time) > 2:
        found = count_run(dataset)
        yield from (
            (float(when), f"interruption: {CAUSES[why]}") for when, why in zip(found.time, found.cause, strict=True)
        )
    if "element_impact_energy" in dataset:
        for k, name in enumerate(labels(dataset, "element")):
            for row in np.flatnonzero(dataset["element_impact_energy"].values[:, k] > 1e-9):
                yield float(time[row]), f"{name} snaps taut"
    if len(flying := flight(dataset)) > 2:
        yield float(time[flying[0]]), "take-off"
        if flying[-1] + 1 < len(time):
            yield float(time[flying[-1]]), "landing"
    elif "ground_force" in dataset:
        for k, name in enumerate(labels(dataset, "contact")):
            loaded = np.nan_to_num(dataset["ground_force"].values[:, k, 2]) > 10
            for start, _ in _spans(loaded):
                if start:
                    yield float(time[start]), f"{_words(name)} lands"
    if dataset.attrs.get("stopped"):
        yield float(time[-1]), str(dataset.attrs["stopped"])
