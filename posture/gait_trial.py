"""One walking trial from files to joint torques that a forward simulation confirms.

The order of the paper (Pàmies-Vilà and Font-Llagunes 2013), each step callable by itself:

  checks      posture.motion_files.plausible, posture.markers.check_labels, posture.plates.check_plates
  gaps        posture.signals.fill_gaps
  smoothing   SSA of the markers, fit of the body, SSA of the coordinates, quintic B-splines, 1 ms
  forces      total wrench of the ground from the motion; shared between the feet (posture.sharing); joint torques
  proof       the same forces run forward (posture.track)

``analyse_gait`` does all of it and keeps what each step found for the quality page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
import xarray as xr
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY, Body
from posture.errors import MotionError, find_name
from posture.inverse import coordinate_names, from_pinocchio, generalized_forces, states, total_wrench
from posture.kinematics import tree_of
from posture.markers import FAR, Fit, MarkerSet, check_labels, fit_markers
from posture.motion_files import Markers, PlateRecord, plausible
from posture.plates import (
    assign_feet,
    center_of_pressure,
    check_cover,
    check_feet,
    check_plates,
    contacts,
    events_from_motion,
    wrenches,
)
from posture.results import make_dataset, provenance
from posture.sharing import share, sharing_residual
from posture.signals import Smoothing, SplineTrajectory, fill_gaps, lowpass, spline, ssa
from posture.track import Tracker, growth_rates, round_trip, track

Array = NDArray[np.floating]
Tell = Callable[[str], None]

FEET = (
    {"left": "left_hindfoot", "right": "right_hindfoot"},
    {"left": "calcn_l", "right": "calcn_r"},
    {"left": "left_foot", "right": "right_foot"},
)
TOES = {"left_hindfoot": "left_forefoot", "right_hindfoot": "right_forefoot", "calcn_l": "toes_l", "calcn_r": "toes_r"}
STEP = 0.001  # s
# Plates err by 2 % and good recordings agree with their motion to about 5 % of body weight; beyond these shares of it
# something is wrong that a note should name.
WRONG_MASS, WRONG_CLOCK = 0.06, 0.10
FILTERS = ("ssa", "lowpass")


@dataclass(frozen=True)
class Trial:
    """What came of a recording: result, motion as splines, and how good it is, step by step."""

    body: Body
    dataset: xr.Dataset
    trajectory: SplineTrajectory
    fit: Fit
    contacts: dict[str, list[tuple[float, float]]]
    quality: dict[str, Any]


def feet_of(body: Body, feet: Mapping[str, str] | None = None) -> dict[str, str]:
    """The links with which a body walks, by side; known names are found, others must be given."""
    if feet is not None:
        if set(feet) != {"left", "right"}:
            raise MotionError(f"{body.name}: give the links of both feet, left and right, not {', '.join(feet)} only")
        for link in feet.values():
            body.link_frame(link)
        return dict(feet)
    names = {frame.name for frame in body.model.frames if frame.type == pin.FrameType.BODY}
    for known in FEET:
        if set(known.values()) <= names:
            return dict(known)
    raise MotionError(f"{body.name}: no feet are known by name; say which links they are, left and right")


def foot_paths(body: Body, fit: Fit, feet: Mapping[str, str]) -> dict[str, tuple[Array, Array, Array]]:
    """Places (n × 3, m) of each foot's heel end, of its toe end and of its middle."""
    names = {frame.name for frame in body.model.frames}
    ends = {side: (link, TOES[link] if TOES.get(link) in names else link) for side, link in feet.items()}
    paths = {side: np.empty((2, len(fit.time), 3)) for side in feet}
    for row, q in enumerate(fit.configuration):
        pin.framesForwardKinematics(body.model, body.data, q)
        for side, links in ends.items():
            for end, link in enumerate(links):
                paths[side][end, row] = body.data.oMf[body.link_frame(link)].translation
    return {side: (path[0], path[1], path.mean(axis=0)) for side, path in paths.items()}


def analyse_gait(
    body: Body,
    marker_set: MarkerSet,
    markers: Markers,
    plates: PlateRecord | None = None,
    *,
    feet: Mapping[str, str] | None = None,
    smoothing: str = "ssa",
    cutoff: float = 6.0,
    plate_cutoff: float | None = None,
    sharing: str | None = None,
    longest_gap: float = 0.2,
    step: float = STEP,
    confirm: bool = True,
    tell: Tell = lambda text: None,
) -> Trial:
    """Run all steps. Without plates, contacts come from the motion and the feet share by smooth transition.

    ``smoothing``: "ssa" (markers and coordinates) or "lowpass" (coordinates, ``cutoff`` in Hz); ``plate_cutoff`` (Hz)
    filters the plates; ``sharing``: see ``posture.sharing``; ``longest_gap`` (s) is filled; ``confirm`` runs forward.
    """
    find_name(smoothing, FILTERS, what="smoothing", where="gait", error=MotionError)
    links = feet_of(body, feet)
    tell("checking markers")
    height = body.person.height if body.person else None
    notes = [*plausible(markers, height=height), *check_labels(body, marker_set, markers)]
    quality: dict[str, Any] = {"frames": len(markers.time), "rate_hz": round(markers.rate, 3)}
    missing = [name for name in marker_set.names if name not in markers.names]
    unknown = [name for name in markers.names if name not in marker_set.names]
    if missing:
        notes.append(f"markers of the set that the record lacks: {', '.join(missing)}")
    if unknown:
        notes.append(f"markers of the record that the set lacks: {', '.join(unknown)}")
    filled, gaps = fill_gaps(markers.time, markers.positions, names=markers.names, longest=longest_gap)
    markers = replace(markers, positions=filled)
    quality["gaps"] = gaps.sentence()
    if smoothing == "ssa":
        tell("smoothing markers")
        markers, first = _smooth_markers(markers)
        quality["marker_filter"] = _told(first, "m")
    tell("fitting the body")
    fit = fit_markers(body, marker_set, markers).of_seen()
    quality |= _marker_quality(fit)
    notes += _strays(fit)
    carriers = dict(zip(marker_set.names, marker_set.links, strict=True))
    bare = sorted(set(carriers.values()) - {carriers[name] for name in fit.names})
    if bare:
        notes.append(f"no marker is seen on {', '.join(bare)}; what is said of their joints is a guess")
    tell("smoothing coordinates")
    values = from_pinocchio(fit.configuration)
    if smoothing == "ssa":
        values, second = ssa(values, markers.rate, names=coordinate_names(body))
        quality["coordinate_filter"] = _told(second, "rad_or_m")
    else:
        values = lowpass(values, markers.rate, cutoff)
        quality["coordinate_filter"] = f"Butterworth, fourth order, no delay, {cutoff:g} Hz"
    trajectory = spline(markers.time, values)
    time = np.arange(round((markers.time[-1] - markers.time[0]) / step) + 1) * step + markers.time[0]
    time = time[time <= markers.time[-1] + 1e-12]
    tell("inverse dynamics")
    motion = states(trajectory, time)
    quality["round_trip"] = _short(round_trip(body, motion))
    total = total_wrench(body, motion)
    paths = foot_paths(body, fit, links)
    measured, spans, more = _ground(plates, time, markers.time, fit, paths, body, plate_cutoff)
    notes += more
    method = sharing or ("corrected" if plates is not None else "smooth")
    shares = share(time, total, spans, measured, method=method)
    gap, air = sharing_residual(total, shares, time, spans)
    quality |= {"sharing": method, "sharing_gap": _short(gap), "load_in_swing": _short(air)}
    if measured is not None:
        against, doubts = _against_plates(total, measured, spans, time, body.mass)
        quality |= against
        notes += doubts
    applied = {links[side]: values for side, values in shares.items()}
    forces = generalized_forces(body, motion, applied)
    standing = np.logical_or.reduce([_inside(time, spans[side]) for side in spans])
    quality["root_residual_force_n"] = _rms(forces[standing, :3])
    quality["root_residual_moment_nm"] = _rms(forces[standing, 3:6])
    quality["cycles"] = {side: found for side in spans if (found := _cycles(spans[side], time))}
    if confirm:
        tell("running forward")
        quality["forward"] = _confirm(body, trajectory, time)
    quality["notes"] = notes
    dataset = _dataset(body, time, motion, forces, shares, total)
    dataset.attrs |= provenance(body, step=step, seed=None, scenario="") | {
        "quality": json.dumps(quality, ensure_ascii=False),
        "contacts": json.dumps(spans),
    }
    return Trial(body, dataset, trajectory, fit, spans, quality)


# ---------------------------------------------------------------- the steps' small parts


def _smooth_markers(markers: Markers) -> tuple[Markers, Smoothing]:
    """SSA of every marker that is seen throughout; the others go to the fit as they are."""
    whole = np.asarray(np.isfinite(markers.positions).all(axis=(0, 2)))
    if not whole.any():
        raise MotionError(
            f"{markers.source or 'markers'}: every marker has gaps too long to fill; nothing can be smoothed"
        )
    names = [f"{name}.{axis}" for name, good in zip(markers.names, whole, strict=True) if good for axis in "xyz"]
    smooth, found = ssa(markers.positions[:, whole].reshape(len(markers.time), -1), markers.rate, names=names)
    positions = markers.positions.copy()
    positions[:, whole] = smooth.reshape(len(markers.time), -1, 3)
    return replace(markers, positions=positions), found


def _told(found: Smoothing, unit: str) -> dict[str, Any]:
    name, most = found.worst()
    return {
        "method": "SSA",
        "window_samples": found.window,
        "rank_median": int(np.median(found.rank)),
        "rank_largest": int(found.rank.max()),
        "removed_most": name,
        f"removed_rms_{unit}": _short(most),
    }


def _marker_quality(fit: Fit) -> dict[str, Any]:
    means = np.sqrt(np.nanmean(fit.distance**2, axis=0))
    order = np.argsort(-means)[:3]
    return {
        "marker_rms_mm": round(1000 * float(np.mean(fit.rms)), 3),
        "marker_rms_worst_frame_mm": round(1000 * float(fit.rms.max()), 3),
        "marker_worst": {fit.names[at]: round(1000 * float(means[at]), 2) for at in order},
        "fit_converged_percent": round(100 * float(fit.converged.mean()), 2),
    }


def _strays(fit: Fit) -> list[str]:
    """Sentences about markers that leave their place for a while: labels swapped in part of a record, a marker lost."""
    usual = np.nanmedian(fit.distance, axis=0)
    far = fit.distance > np.maximum(FAR, 3 * usual)
    found = []
    for at in np.flatnonzero(far.any(axis=0)):
        worst = int(np.nanargmax(fit.distance[:, at]))
        away = f"{1000 * fit.distance[worst, at]:.0f} mm from its place at {fit.time[worst]:.2f} s"
        found.append(
            f"marker {fit.names[at]} is {away} and far from it in {far[:, at].sum()} frames; check its label there"
        )
    return found


def _ground(
    plates: PlateRecord | None,
    time: Array,
    frames: Array,
    fit: Fit,
    paths: Mapping[str, tuple[Array, Array, Array]],
    body: Body,
    cutoff: float | None,
) -> tuple[dict[str, Array] | None, dict[str, list[tuple[float, float]]], list[str]]:
    """Measured wrenches by side (NaN where a foot's contact is on no plate), contacts by side, notes."""
    moving = {
        side: events_from_motion(frames, heel, toe, fit.configuration[:, :3]) for side, (heel, toe, _) in paths.items()
    }
    if plates is None:
        if not any(moving.values()):
            raise MotionError(
                "no steps are found in the motion and there are no plates; give plates, or a walking trial"
            )
        return None, moving, ["contacts come from the feet's motion; there are no plates"]
    notes = check_plates(plates, mass=body.mass)
    check_cover(plates, frames)
    middles = {side: (frames, middle) for side, (_, _, middle) in paths.items()}
    spans = contacts(plates)
    if set(plates.names) != set(paths):
        plates, spans = assign_feet(plates, spans, middles)
    check_feet(plates, middles)
    measured = wrenches(plates, time, spans, cutoff=cutoff)
    # A step beside the plates: the foot stands by its motion, and no plate sees it.
    for side, steps in moving.items():
        for start, end in steps:
            first, last = max(start, float(frames[0])), min(end, float(frames[-1]))
            if last - first > 0.04 and not any(a < last and b > first for a, b in spans[side]):
                spans[side] = sorted([*spans[side], (start, end)])
                measured[side][_inside(time, [(start, end)])] = np.nan
                notes.append(f"the {side} foot stands on no plate from {first:.2f} to {last:.2f} s")
    return measured, spans, notes


def _against_plates(
    total: Array,
    measured: Mapping[str, Array],
    spans: Mapping[str, list[tuple[float, float]]],
    time: Array,
    mass: float,
) -> tuple[dict[str, Any], list[str]]:
    """How far the plates are from what the motion needs, while they see every foot that stands; and what that says."""
    seen = np.logical_and.reduce([np.isfinite(values).all(axis=1) for values in measured.values()])
    seen &= np.logical_or.reduce([_inside(time, spans[side]) for side in spans])
    if not seen.any():
        return {}, ["there is no time at which the plates see every foot that stands"]
    gap = (total - sum(measured.values()))[seen]
    # moments about the world's origin grow with the way walked: tell them about the place of the load
    place = np.column_stack((-total[seen, 4], total[seen, 3], np.zeros(seen.sum()))) / total[seen, 2:3]
    found = {
        "plates_minus_motion_force_n": _rms(gap[:, :3]),
        "plates_minus_motion_moment_nm": _rms(gap[:, 3:] - np.cross(place, gap[:, :3])),
    }
    missing, uneven = gap[:, 2].mean() / STANDARD_GRAVITY, found["plates_minus_motion_force_n"] / mass
    if abs(missing) > WRONG_MASS * mass:
        return found, [
            f"the plates carry {abs(missing):.1f} kg {'less' if missing > 0 else 'more'} on average than the body of "
            f"{mass:.1f} kg needs; check the mass and the plates' scale"
        ]
    if uneven > WRONG_CLOCK * STANDARD_GRAVITY:
        return found, [
            f"plates and motion differ by {found['plates_minus_motion_force_n']:.0f} N rms; check that markers and "
            "plates share their clock, rates and axes"
        ]
    return found, []


def _confirm(body: Body, trajectory: SplineTrajectory, time: Array) -> dict[str, Any]:
    run = track(body, trajectory, time, tracker=Tracker())
    free = track(body, trajectory, time)
    duration = float(time[-1] - time[0])
    sparse = time[:: max(1, round(0.05 / (time[1] - time[0])))]
    return {
        "tracked_whole": run.stopped is None,
        "position_error_m": _short(np.abs(run.position_error).max()),
        "angle_error_rad": _short(np.abs(run.attitude_error).max()),
        "controller_force_n": _short(np.abs(run.force).max()),
        "controller_torque_nm": _short(np.abs(run.torque).max()),
        "step_residual": _short(run.residual.max()),
        "without_controller_within_1_deg_s": _short(free.time_within(np.radians(1)) - time[0]),
        "duration_s": _short(duration),
        "error_growth_exponent": _short(growth_rates(body, trajectory, sparse).mean() * duration),
    }


def _inside(time: Array, spans: list[tuple[float, float]]) -> NDArray[np.bool_]:
    mask = np.zeros(len(time), bool)
    for start, end in spans:
        mask |= (time >= start) & (time <= end)
    return mask


def _cycles(spans: list[tuple[float, float]], time: Array) -> list[tuple[float, float]]:
    landings = [start for start, _ in spans if np.isfinite(start) and time[0] <= start <= time[-1]]
    return [(round(a, 4), round(b, 4)) for a, b in pairwise(landings)]


def _rms(values: Array) -> float:
    return _short(np.sqrt(np.mean(values**2)))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _dataset(
    body: Body, time: Array, motion: Any, forces: Array, shares: Mapping[str, Array], total: Array
) -> xr.Dataset:
    sides = list(shares)
    wrench = np.stack([shares[side] for side in sides], axis=1)
    pressure = center_of_pressure(wrench[..., :3], wrench[..., 3:])
    left = total - wrench.sum(axis=1)
    variables = {
        "joint_position": motion.configuration[:, 7:],
        "joint_velocity": motion.velocity[:, 6:],
        "joint_acceleration": motion.acceleration[:, 6:],
        "joint_torque": forces[:, 6:],
        "joint_power": forces[:, 6:] * motion.velocity[:, 6:],
        "root_position": motion.configuration[:, :3],
        "root_quaternion": motion.configuration[:, 3:7],
        "ground_force": wrench[..., :3],
        "ground_moment": wrench[..., 3:],
        "ground_point": np.concatenate((pressure, np.where(np.isnan(pressure[..., :1]), np.nan, 0.0)), axis=-1),
        "ground_residual_force": left[:, :3],
        "ground_residual_moment": left[:, 3:],
    }
    return make_dataset(time, variables, joints=body.joint_names, locked=[], labels={"contact": sides})


def over_cycle(dataset: xr.Dataset, name: str, joint: str, cycle: tuple[float, float], *, count: int = 101) -> Array:
    """A joint's variable at 0 … 100 % of a cycle (start and end in s)."""
    at = np.linspace(*cycle, count)
    return np.asarray(np.interp(at, dataset.time.values, dataset[name].sel(joint=joint).values))


def cycle_table(trial: Trial) -> tuple[list[str], Array]:
    """Titles and columns (101 × …) over 0 … 100 % of every cycle of each leg, with the signs of the joints.

    Angle (°), moment (N·m/kg) and power (W/kg) of each turning joint, titled side_number.joint.quantity.
    """
    quantities = {
        "angle_deg": ("joint_position", 180 / np.pi),
        "moment_nm_per_kg": ("joint_torque", 1 / trial.body.mass),
        "power_w_per_kg": ("joint_power", 1 / trial.body.mass),
    }
    titles, columns = ["percent"], [np.arange(101.0)]
    for side, cycles in trial.quality["cycles"].items():
        for number, cycle in enumerate(cycles, start=1):
            for joint, slides in zip(trial.body.joint_names, tree_of(trial.body).slides, strict=True):
                for title, (variable, scale) in quantities.items() if not slides else ():
                    titles.append(f"{side}_{number}.{joint}.{title}")
                    columns.append(scale * over_cycle(trial.dataset, variable, joint, cycle))
    return titles, np.column_stack(columns)
