"""Force plates: wrenches of the ground on the feet, centres of pressure, and when the feet land and leave.

Below a threshold of vertical force a plate knows neither place nor contact; there its wrench is zero and its centre
of pressure NaN. Events are where the force, extended along its slope, reaches zero. Without plates they come from the
feet's own motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY
from posture.errors import MotionError, check_number
from posture.motion_files import PlateRecord
from posture.signals import _runs, lowpass

Array = NDArray[np.floating]
Spans = dict[str, list[tuple[float, float]]]

THRESHOLD = 20.0  # N of vertical force
SHORTEST_CONTACT, SHORTEST_SWING = 0.08, 0.03  # s; anything briefer is noise


def center_of_pressure(force: Array, moment: Array, *, threshold: float = THRESHOLD) -> Array:
    """Place on the ground (… × 2, m) where the force acts with no moment about X and Y; NaN below the threshold."""
    loaded = force[..., 2] > threshold
    down = np.where(loaded, force[..., 2], np.nan)
    return np.stack((-moment[..., 1] / down, moment[..., 0] / down), axis=-1)


def check_plates(record: PlateRecord, *, mass: float | None = None) -> list[str]:
    """Refuse readings that cannot be the ground under a walking person; sentences about what is merely unusual."""
    where = record.source or "plates"
    if not np.isfinite(record.force).all() or not np.isfinite(record.moment).all():
        plate = int(np.argmin(np.isfinite(record.force).all(axis=(0, 2)) & np.isfinite(record.moment).all(axis=(0, 2))))
        raise MotionError(f"{where}: {record.names[plate]} has empty or infinite readings; fill or cut them")
    total = record.force.sum(axis=1)
    size = np.linalg.norm(total, axis=1)
    loaded = size > max(THRESHOLD, 0.2 * float(size.max(initial=0.0)))
    if size.max(initial=0.0) < THRESHOLD:
        raise MotionError(f"{where}: the largest force is {size.max(initial=0.0):.3g} N; nobody stood on these plates")
    mean = total[loaded].mean(axis=0)
    along = int(np.argmax(np.abs(mean)))
    if along != 2:
        raise MotionError(
            f"{where}: the mean force {np.round(mean).astype(int).tolist()} N points along {'XYZ'[along]}, not up; the "
            "plates' axes are swapped, so give the file's axes"
        )
    if mean[2] < 0:
        raise MotionError(
            f"{where}: the mean vertical force is {mean[2]:.0f} N, downward; this is the force on the plate, "
            "so reverse it (reverse=True, --reverse-plates)"
        )
    notes = list(record.notes)
    if mass is not None:
        check_number(mass, what="mass", unit="kg", low=25, high=300, error=MotionError)
        ratio = float(np.median(total[loaded, 2])) / (mass * STANDARD_GRAVITY)
        if not 0.3 < ratio < 3:
            raise MotionError(
                f"{where}: the vertical force is typically {ratio:.3g} body weights; check the mass ({mass:g} kg) and "
                "the unit of force (N)"
            )
    pressure = center_of_pressure(record.force, record.moment)
    wide = (
        np.nanmax(np.abs(pressure - np.nanmedian(pressure, axis=0)), initial=0.0) if np.isfinite(pressure).any() else 0
    )
    if wide > 20:
        raise MotionError(f"{where}: centres of pressure lie {wide:.3g} m apart; moments are probably in N·mm")
    return notes


def check_cover(record: PlateRecord, frames: Array) -> None:
    """Refuse plates that were not recorded as long as the markers (at times ``frames``, s)."""
    slack = float(np.median(np.diff(frames))) + float(np.median(np.diff(record.time)))
    if record.time[0] > frames[0] + slack or record.time[-1] < frames[-1] - slack:
        start, end = max(record.time[0], frames[0]), min(record.time[-1], frames[-1])
        cure = f"keep the part that both hold (--between {start:g} {end:g})" if end > start else "they share no time"
        raise MotionError(
            f"{record.source or 'plates'}: recorded from {record.time[0]:g} to {record.time[-1]:g} s, the markers from "
            f"{frames[0]:g} to {frames[-1]:g} s; {cure}, or correct a sampling rate"
        )


def contacts(record: PlateRecord, *, threshold: float = THRESHOLD) -> Spans:
    """Landing and leaving times (s) under each plate; ±inf for a foot that stands when the record begins or ends."""
    time = record.time
    found: Spans = {}
    for plate, name in enumerate(record.names):
        force = record.force[:, plate, 2]
        spans: list[tuple[float, float]] = []
        for start, end in _runs(force > threshold):
            if spans and time[start] - spans[-1][1] < SHORTEST_SWING:
                spans[-1] = (spans[-1][0], float(time[end - 1]))
            else:
                spans.append((float(time[start]), float(time[end - 1])))
        ends = (float(time[0]), float(time[-1]))  # a contact cut by the record's end may be short
        spans = [(a, b) for a, b in spans if b - a >= SHORTEST_CONTACT or a == ends[0] or b == ends[1]]
        found[name] = [
            (_reach_zero(time, force, a, -1, threshold), _reach_zero(time, force, b, 1, threshold)) for a, b in spans
        ]
    return found


def _reach_zero(time: Array, force: Array, when: float, side: int, threshold: float) -> float:
    """Where the force, going outward from a threshold crossing, reaches zero along its slope (at most 15 ms away)."""
    at = int(np.searchsorted(time, when - 1e-12))
    if (side < 0 and at == 0) or (side > 0 and at == len(time) - 1):
        return side * np.inf
    step = float(time[1] - time[0])
    inner = int(np.clip(at - side * max(1, round(0.005 / step)), 0, len(time) - 1))
    slope = abs(force[inner] - force[at]) / max(abs(time[inner] - time[at]), step)
    return float(time[at] + side * min(force[at] / max(slope, threshold / 0.015), 0.015))


def wrenches(
    record: PlateRecord, time: Array, spans: Mapping[str, list[tuple[float, float]]], *, cutoff: float | None = None
) -> dict[str, Array]:
    """Wrench of each plate (n × 6, about the world's origin) at other times; zero outside its contacts.

    ``cutoff`` (Hz): low-pass at the plates' own rate first. Resampling is linear: plates are sampled densely.
    """
    rate = (len(record.time) - 1) / (record.time[-1] - record.time[0])
    found = {}
    for plate, name in enumerate(record.names):
        reading = np.hstack((record.force[:, plate], record.moment[:, plate]))
        if cutoff is not None:
            reading = lowpass(reading, rate, cutoff)
        values = np.column_stack([np.interp(time, record.time, column) for column in reading.T])
        standing = np.zeros(len(time), bool)
        for start, end in spans[name]:
            standing |= (time >= start) & (time <= end)
        found[name] = np.where(standing[:, None], values, 0.0)
    return found


def assign_feet(
    record: PlateRecord, spans: Spans, feet: Mapping[str, tuple[Array, Array]]
) -> tuple[PlateRecord, Spans]:
    """Plates by number to feet by name: each contact goes to the foot that is nearest to its centre of pressure.

    ``feet``: for each foot its times (s) and places (n × 3, m).
    """
    pressure = center_of_pressure(record.force, record.moment)
    force = np.zeros((len(record.time), len(feet), 3))
    moment = np.zeros_like(force)
    found: Spans = {foot: [] for foot in feet}
    for plate, name in enumerate(record.names):
        for start, end in spans[name]:
            inside = (record.time >= start) & (record.time <= end)
            distance = {}
            for foot, (when, places) in feet.items():
                near = np.column_stack([np.interp(record.time[inside], when, places[:, axis]) for axis in range(2)])
                distance[foot] = float(np.nanmedian(np.linalg.norm(pressure[inside, plate] - near, axis=1)))
            nearest = min(distance, key=lambda foot: distance[foot])
            if not distance[nearest] < 0.4:
                raise MotionError(
                    f"{record.source or 'plates'}: {name} is loaded from {start:.2f} to {end:.2f} s, "
                    f"{distance[nearest]:.2f} m from the nearest foot; "
                    "markers and plates do not share their axes or origin"
                )
            column = list(feet).index(nearest)
            force[inside, column] += record.force[inside, plate]
            moment[inside, column] += record.moment[inside, plate]
            found[nearest].append((start, end))
    for foot, times in found.items():
        found[foot] = sorted(times)
    return replace(record, names=list(feet), force=force, moment=moment), found


def check_feet(record: PlateRecord, feet: Mapping[str, tuple[Array, Array]], *, far: float = 0.35) -> None:
    """Refuse a record whose loads are not under the feet they are named after: swapped sides, axes or origins."""
    pressure = center_of_pressure(record.force, record.moment, threshold=5 * THRESHOLD)
    distance: dict[tuple[str, str], float] = {}
    for plate, name in enumerate(record.names):
        seen = np.isfinite(pressure[:, plate]).all(axis=1)
        if name not in feet or not seen.any():
            continue
        for foot, (when, places) in feet.items():
            inside = seen & (record.time >= when[0]) & (record.time <= when[-1])
            near = np.column_stack([np.interp(record.time[inside], when, places[:, axis]) for axis in range(2)])
            distance[name, foot] = float(np.median(np.linalg.norm(pressure[inside, plate] - near, axis=1)))
    for name in record.names:
        own = distance.get((name, name))
        if own is None or own < far:
            continue
        other, gap = min(((foot, distance[name, foot]) for foot in feet if foot != name), key=lambda item: item[1])
        if gap < far:
            raise MotionError(
                f"{record.source or 'plates'}: the load named {name} lies under the {other} foot ({gap:.2f} m away, "
                f"its own {own:.2f} m); left and right are swapped in markers or plates"
            )
        raise MotionError(
            f"{record.source or 'plates'}: the load named {name} lies {own:.2f} m from its foot; "
            "markers and plates do not share their axes or origin"
        )


def events_from_motion(time: Array, heel: Array, toe: Array, pelvis: Array) -> list[tuple[float, float]]:
    """Contacts of one foot from the places (n × 3, m) of its heel and toe and of the pelvis.

    It lands when the heel is farthest ahead of the pelvis and leaves when the toe is farthest behind
    (coordinate-based method of Zeni, Richards and Higginson 2008). Ahead is where the foot points on average, on a
    treadmill and in any direction of the room; where the pelvis goes, if heel and toe are one point.
    """
    from scipy.signal import find_peaks

    pointing = np.mean(toe - heel, axis=0)[:2]
    if np.linalg.norm(pointing) < 0.02:
        pointing = (pelvis[-1] - pelvis[0])[:2]
    forward = pointing / max(float(np.linalg.norm(pointing)), 1e-12)
    ahead, behind = (heel - pelvis)[:, :2] @ forward, (pelvis - toe)[:, :2] @ forward
    rate = 1 / float(np.median(np.diff(time)))
    space = max(1, int(0.5 * rate))
    landings = time[find_peaks(ahead, distance=space, prominence=0.05)[0]]
    leavings = time[find_peaks(behind, distance=space, prominence=0.05)[0]]
    spans: list[tuple[float, float]] = []
    for landing in landings:
        later = leavings[leavings > landing]
        spans.append((float(landing), float(later[0]) if len(later) else np.inf))
    if len(leavings) and (not len(landings) or leavings[0] < landings[0]):
        spans.insert(0, (-np.inf, float(leavings[0])))
    return spans
