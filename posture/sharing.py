"""Who carries what: the total ground wrench, known from the motion, shared between the feet that stand.

In single support the motion alone says what the ground does to the foot; in double support it gives only the sum.
Force plates measure each foot, but do not add up to what the motion needs. Three ways out, each with a sum that is
the total to rounding, nothing on a foot in the air, and no jump when a foot lands or leaves:

``corrected``  Corrected Force Plates (Cuadrado, Pàmies-Vilà, Lugrís, Alonso 2011; our reading of it): every standing
               foot keeps its plate's reading, and what is missing goes to the feet in shares that start from zero at
               landing and end at zero at leaving. With one plate, its foot is corrected by the mismatch at the near
               end of double support and the other foot gets the rest.
``smooth``     no plates: the rear foot's wrench at the landing of the front foot fades along a fixed curve (smooth
               transition assumption, after Ren, Jones and Howard 2008; the curve is ours and reaches zero exactly).
``plain``      the plates as they are, for comparison; the sum is off by whatever the plates are off.

Wrenches are n × 6: force (N) and moment (N·m) of the ground on the person, world axes, moment about the world's
origin, so that they add. A plate that does not see its foot is NaN there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from posture.errors import MotionError, find_name

Array = NDArray[np.floating]
Contacts = Mapping[str, Sequence[tuple[float, float]]]

METHODS = ("corrected", "smooth", "plain")
FADE = 0.01  # s; a plate's reading at its own event (threshold, noise) is faded in and out over this time
FOREVER = 1e9  # s; stands for a contact that begins before the record or ends after it


def contact_weights(time: Array, contacts: Contacts) -> dict[str, Array]:
    """Share of each foot in what the plates miss: non-negative, one in single support, adding up to one on the ground.

    With u the time to the nearer end of a foot's own contact, the share is u² / Σ u²: zero with zero slope when the
    foot lands or leaves, for any number of feet.
    """
    inside = {}
    for foot, spans in contacts.items():
        room = np.zeros(len(time))
        for start, end in spans:
            room = np.maximum(room, np.minimum(time - max(start, -FOREVER), min(end, FOREVER) - time))
        inside[foot] = room
    total = sum(room**2 for room in inside.values())
    standing = {foot: _standing(time, spans) for foot, spans in contacts.items()}
    count = sum(mask.astype(float) for mask in standing.values())
    # Two feet that land in the same sample have no room yet: they share equally.
    return {
        foot: np.where(total > 0, room**2 / np.where(total > 0, total, 1), standing[foot] / np.maximum(count, 1))
        for foot, room in inside.items()
    }


def share(
    time: Array,
    total: Array,
    contacts: Contacts,
    measured: Mapping[str, Array] | None = None,
    *,
    method: str = "corrected",
) -> dict[str, Array]:
    """Wrench of the ground on each foot (n × 6), by foot.

    ``total``: wrench that the motion needs (n × 6); ``contacts``: landing and leaving times (s) of each foot, ±inf
    when outside the record; ``measured``: what each foot's plate says, NaN where the foot is on no plate.
    """
    find_name(method, METHODS, what="way of sharing", where="share", error=MotionError)
    measured = dict(measured or {})
    for foot in measured:
        find_name(foot, contacts, what="foot with contact times", where="share", error=MotionError)
    standing = {foot: _standing(time, spans) for foot, spans in contacts.items()}
    plates: dict[str, Array] = {
        foot: _faded(time, measured.get(foot, np.full((len(time), 6), np.nan)), spans)
        for foot, spans in contacts.items()
    }
    if method == "plain":
        return {foot: np.where(standing[foot][:, None], plates[foot], 0.0) for foot in contacts}
    weights = contact_weights(time, contacts)
    shares: dict[str, Array] = {
        foot: standing[foot][:, None] * weights[foot][:, None] * total for foot in contacts
    }  # single support
    for start, end, feet in _overlaps(time, contacts):
        span = (time >= start) & (time <= end) & np.logical_and.reduce([standing[foot] for foot in feet])
        seen = [foot for foot in feet if not np.isnan(plates[foot][span]).any()] if method == "corrected" else []
        if len(seen) == len(feet):
            missing = total[span] - sum(plates[foot][span] for foot in feet)
            for foot in feet:
                shares[foot][span] = plates[foot][span] + weights[foot][span, None] * missing
            continue
        if len(feet) > 2:
            raise MotionError(
                f"{', '.join(feet)} stand together from {start:.3f} to {end:.3f} s and not all are measured; "
                "more than two need a plate each"
            )
        rear = min(feet, key=lambda foot: _end_near(contacts[foot], end))
        front = next(foot for foot in feet if foot != rear)
        if seen:
            known = seen[0]
            # At the far end of double support the known foot is alone: there its mismatch can be seen.
            alone = start if known == rear else end
            mismatch = _at(time, total, alone) - _at(time[span], plates[known][span], alone)
            shares[known][span] = plates[known][span] + weights[known][span, None] * mismatch
        else:
            known = rear
            shares[rear][span] = _fading((time[span] - start) / (end - start))[:, None] * _at(time, total, start)
        other = front if known == rear else rear
        shares[other][span] = total[span] - shares[known][span]
    return shares


def sharing_residual(total: Array, shares: Mapping[str, Array], time: Array, contacts: Contacts) -> tuple[float, float]:
    """Largest difference of the sum from the total (N or N·m) while someone stands, and largest load in the air."""
    standing = {foot: _standing(time, spans) for foot, spans in contacts.items()}
    ground = np.logical_or.reduce(list(standing.values()))
    gap = np.abs(sum(shares.values()) - total)[ground]
    air = [np.abs(shares[foot][~standing[foot]]).max(initial=0.0) for foot in shares]
    return float(gap.max(initial=0.0)), float(max(air, default=0.0))


def _standing(time: Array, spans: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    mask = np.zeros(len(time), bool)
    for start, end in spans:
        if not start < end:
            raise MotionError(f"a contact from {start:g} to {end:g} s has no duration; landing comes before leaving")
        mask |= (time >= start) & (time <= end)
    return mask


def _overlaps(time: Array, contacts: Contacts) -> list[tuple[float, float, list[str]]]:
    """Times in which two or more feet stand, cut wherever one lands or leaves."""
    edges = {float(np.clip(edge, time[0], time[-1])) for spans in contacts.values() for span in spans for edge in span}
    cuts = sorted(edges | {float(time[0]), float(time[-1])})
    found = []
    for start, end in pairwise(cuts):
        middle = (start + end) / 2
        feet = [foot for foot, spans in contacts.items() if any(a <= middle <= b for a, b in spans)]
        if len(feet) > 1:
            found.append((start, end, feet))
    return found


def _end_near(spans: Sequence[tuple[float, float]], time: float) -> float:
    return min(end for _, end in spans if end >= time - 1e-12)


def _faded(time: Array, reading: Array, spans: Sequence[tuple[float, float]]) -> Array:
    """The reading, taken to zero at both ends of each contact within ``FADE``."""
    gain = np.ones(len(time))
    for start, end in spans:
        inside = (time >= start) & (time <= end)
        gain[inside] = np.clip(np.minimum(time[inside] - start, end - time[inside]) / FADE, 0, 1)
    return reading * gain[:, None]


def _at(time: Array, values: Array, when: float) -> Array:
    return np.array([np.interp(when, time, column) for column in values.T])


def _fading(phase: Array) -> Array:
    """From one to zero with zero slope at the start; exp(-(2 phase)³) brought to zero exactly at phase one."""
    last = np.exp(-8.0)
    return np.asarray((np.exp(-8.0 * phase**3) - last) / (1 - last))
