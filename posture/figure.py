"""What a person looks like: lofted segments from a body's own dimensions, for drawing only.

A profile is a stack of cross-sections along a segment, for the mean man of the segment table. A body's segment is
as long as its person's; across, it grows with the square root of mass over length, so that it keeps its density. No
library does this: human meshes that can be scaled segment by segment come with licences that forbid passing them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from posture.anthropometry import DE_LEVA, Person

Array = NDArray[np.floating]

MEAN_MAN = Person(mass=73.0, height=1.741, sex="male")
SKIN, SHIRT, TROUSERS, SHOE, HAIR = (
    (0.85, 0.66, 0.54, 1.0),
    (0.16, 0.31, 0.50, 1.0),
    (0.19, 0.22, 0.27, 1.0),
    (0.10, 0.10, 0.11, 1.0),
    (0.25, 0.18, 0.13, 1.0),
)
SIDES, RINGS = 28, 26


@dataclass(frozen=True)
class Profile:
    """Cross-sections of one piece: rows of (place along the segment, centre forward, half depth, half width), mm.

    The place runs from 0 at the upper end to 1 at the lower end; ``roundness`` 2 is an ellipse, more is boxier.
    """

    color: tuple[float, ...]
    rows: tuple[tuple[float, float, float, float], ...]
    roundness: float = 2.0


PROFILES: dict[str, tuple[Profile, ...]] = {
    "head": (
        Profile(
            SKIN,
            (
                (0.00, -4, 3, 3), (0.02, -5, 38, 30), (0.07, -6, 64, 50), (0.15, -5, 83, 65), (0.26, -3, 94, 74),
                (0.38, 0, 97, 76), (0.50, 2, 96, 73), (0.58, 6, 92, 69), (0.66, 12, 84, 63), (0.74, 20, 73, 56),
                (0.80, 28, 58, 46), (0.825, 28, 46, 40), (0.85, 10, 55, 50), (0.90, -2, 58, 57), (0.97, -6, 60, 61),
                (1.05, -8, 63, 70),
            ),
        ),
        Profile(
            HAIR,
            (
                (-0.025, -8, 4, 4), (-0.01, -10, 42, 34), (0.05, -12, 68, 55), (0.15, -13, 87, 69),
                (0.28, -14, 95, 78), (0.40, -20, 90, 77), (0.52, -32, 76, 70), (0.62, -44, 56, 55), (0.68, -52, 38, 34),
                (0.70, -56, 8, 8),
            ),
        ),
        Profile(SKIN, ((0.46, 96, 2, 5), (0.52, 101, 8, 9), (0.575, 104, 14, 15), (0.6, 99, 9, 13), (0.61, 96, 2, 4))),
    ),
    "trunk": (
        Profile(
            SHIRT,
            (
                (-0.012, -5, 50, 52), (0.0, -6, 62, 74), (0.025, -6, 70, 112), (0.06, -5, 80, 152),
                (0.10, -3, 92, 178), (0.16, 0, 101, 187), (0.25, 5, 111, 182), (0.36, 8, 114, 172), (0.47, 6, 107, 159),
                (0.58, 3, 100, 149), (0.66, 1, 99, 148), (0.74, -1, 103, 155), (0.80, -3, 109, 164),
                (0.83, -3, 108, 163), (0.835, -3, 20, 20),
            ),
            2.3,
        ),
        Profile(
            TROUSERS,
            (
                (0.80, -3, 20, 20), (0.803, -3, 104, 158), (0.85, -5, 111, 167), (0.92, -9, 117, 174),
                (0.98, -11, 117, 176), (1.04, -10, 110, 168), (1.09, -7, 96, 146), (1.125, -4, 70, 100),
                (1.14, 0, 10, 14),
            ),
            2.3,
        ),
    ),
    "upper_arm": (
        Profile(
            SHIRT,
            (
                (-0.135, 0, 6, 5), (-0.125, 0, 26, 24), (-0.085, 0, 46, 42), (0.0, 0, 60, 54), (0.12, 0, 62, 54),
                (0.30, 0, 57, 50), (0.50, 0, 53, 47), (0.62, 0, 52, 47), (0.625, 0, 8, 8),
            ),
        ),
        Profile(
            SKIN,
            (
                (0.50, 0, 42, 39), (0.70, 0, 45, 41), (0.85, 0, 43, 39), (0.97, 0, 41, 38), (1.06, 0, 36, 34),
                (1.09, 0, 6, 6),
            ),
        ),
    ),
    "forearm": (
        Profile(
            SKIN,
            (
                (-0.09, 0, 4, 4), (-0.06, 0, 32, 31), (0.0, 0, 41, 39), (0.12, 1, 46, 43), (0.26, 2, 46, 41),
                (0.45, 2, 40, 35), (0.65, 1, 33, 28), (0.85, 0, 29, 22), (1.0, 0, 28, 20),
                (1.06, 0, 27, 18), (1.09, 0, 4, 4),
            ),
        ),
    ),
    "hand": (
        Profile(
            SKIN,
            (
                (-0.20, 0, 4, 4), (-0.12, 0, 26, 17), (0.1, 1, 31, 18), (0.4, 4, 40, 19), (0.8, 6, 45, 18),
                (1.1, 7, 45, 16), (1.5, 9, 41, 14), (1.9, 12, 33, 12), (2.15, 14, 22, 10), (2.25, 15, 3, 2),
            ),
            2.4,
        ),
        Profile(
            SKIN,
            (
                (0.15, 28, 4, 3), (0.3, 36, 13, 11), (0.7, 50, 14, 11), (1.1, 57, 12, 10), (1.35, 59, 9, 8),
                (1.42, 59, 2, 2),
            ),
        ),
    ),
    "thigh": (
        Profile(
            TROUSERS,
            (
                (-0.14, -6, 6, 6), (-0.10, -6, 62, 58), (-0.02, -6, 92, 84), (0.10, -4, 97, 90), (0.25, 0, 93, 86),
                (0.45, 3, 83, 76), (0.65, 4, 72, 67), (0.85, 3, 63, 60), (1.0, 1, 59, 57),
                (1.07, 0, 52, 50), (1.10, 0, 8, 8),
            ),
        ),
    ),
    "shank": (
        Profile(
            TROUSERS,
            (
                (-0.10, 0, 6, 6), (-0.07, 0, 48, 46), (0.0, 1, 61, 58), (0.10, -3, 62, 58), (0.22, -8, 65, 59),
                (0.34, -9, 64, 58), (0.50, -6, 57, 52), (0.70, -2, 51, 47), (0.90, 0, 50, 47), (1.0, 2, 52, 48),
                (1.03, 2, 52, 48), (1.035, 2, 6, 6),
            ),
        ),
    ),
    # Along the foot: centre and half height are those above the sole, see _foot_ring.
    "foot": (
        Profile(
            SHOE,
            (
                (-0.03, 20, 8, 8), (-0.02, 30, 26, 26), (0.03, 38, 37, 33), (0.12, 45, 45, 36), (0.24, 48, 48, 38),
                (0.36, 45, 45, 39), (0.50, 36, 36, 42), (0.64, 29, 29, 46), (0.78, 25, 25, 49), (0.90, 22, 22, 46),
                (0.98, 20, 19, 36), (1.03, 18, 14, 20), (1.045, 17, 4, 5),
            ),
            2.6,
        ),
    ),
}  # fmt: skip


def _cut(profile: Profile, start: float, end: float, low: float, high: float) -> Profile | None:
    """What a profile has between ``low`` and ``high``, with bulging lids, told along the part from start to end."""
    rows = np.array(profile.rows)
    low, high = max(low, rows[0, 0]), min(high, rows[-1, 0])
    if high - low < 1e-6:
        return None
    edges = PchipInterpolator(rows[:, 0], rows[:, 1:])(np.array([low, high]))
    inside = rows[(rows[:, 0] > low + 0.004) & (rows[:, 0] < high - 0.004)]
    lids = [(place + bulge, edge[0], 0.6 * edge[1], 0.6 * edge[2])
            for place, bulge, edge in ((low, -0.03, edges[0]), (high, 0.03, edges[1]))]  # fmt: skip
    closed = np.vstack((lids[0], [low, *edges[0]], inside, [high, *edges[1]], lids[1]))
    closed[:, 0] = (closed[:, 0] - start) / (end - start)
    return Profile(profile.color, tuple((a, b, c, d) for a, b, c, d in closed.tolist()), profile.roundness)


# A trunk in three parts, cut where the mean man's xiphoid and navel are; the ends keep their neck and crotch.
for _name, _start, _end in (("upper_trunk", 0.0, 0.371), ("middle_trunk", 0.371, 0.705), ("lower_trunk", 0.705, 1.0)):
    _found = [_cut(item, _start, _end, _start or -1.0, _end if _end < 1 else 2.0) for item in PROFILES["trunk"]]
    PROFILES[_name] = tuple(item for item in _found if item is not None)


def lofts(
    person: Person, entry: dict[str, Any], *, sole: float
) -> Iterator[tuple[Array, NDArray[np.int64], tuple[float, ...]]]:
    """Vertices (n × 3, m, in the link's frame), triangles and colour of each piece of a link's segment.

    ``entry`` is the link's row of the sidecar's [segments]; ``sole`` the height of the sole in a foot's frame, m.
    """
    segment, along = entry["segment"], np.array(entry["direction"], float)
    length = person.length(segment)
    heavier = person.mass * DE_LEVA[person.sex][segment].mass / (MEAN_MAN.mass * DE_LEVA["male"][segment].mass)
    girth = np.sqrt(heavier * MEAN_MAN.length(segment) / length)
    # A foot lies along X and its depth is a height above the sole; everything else has its depth forward.
    across, base = (np.array([0, 0, 1.0]), sole) if segment == "foot" else (np.array([1.0, 0, 0]), 0.0)
    left = np.array([0, 1.0, 0])
    turn = np.arange(SIDES) * 2 * np.pi / SIDES
    for profile in PROFILES[segment]:
        rows = np.array(profile.rows)
        even = np.linspace(rows[0, 0], rows[-1, 0], RINGS)
        gap = np.abs(even[:, None] - rows[:, 0]).min(axis=1)
        # Rings much closer to each other than the rest would show as bands in the shading.
        places = np.sort(np.concatenate((even[gap > 0.45 * (even[1] - even[0])], rows[:, 0])))
        center, depth, width = girth / 1000 * PchipInterpolator(rows[:, 0], rows[:, 1:])(places).T
        ellipse = np.abs((np.cos(turn), np.sin(turn))) ** (2 / profile.roundness) * np.sign(
            (np.cos(turn), np.sin(turn))
        )
        spine = ((places - entry.get("origin", 0.0)) * length)[:, None] * along + (base + center)[:, None] * across
        rings = (
            spine[:, None, :]
            + (depth[:, None] * ellipse[0])[..., None] * across
            + (width[:, None] * ellipse[1])[..., None] * left
        )
        points = np.vstack((rings.reshape(-1, 3), spine[0], spine[-1]))
        faces = _surface(len(places))
        yield points, faces if np.cross(across, left) @ along > 0 else faces[:, ::-1], profile.color


def _surface(rings: int) -> NDArray[np.int64]:
    """Triangles of a closed tube: between consecutive rings, and from both ends to the two points after all rings."""
    ring, side = np.divmod(np.arange((rings - 1) * SIDES), SIDES)
    corner, beside = ring * SIDES + side, ring * SIDES + (side + 1) % SIDES
    around, next_one = np.arange(SIDES), (np.arange(SIDES) + 1) % SIDES
    first, last = np.full(SIDES, rings * SIDES), np.full(SIDES, rings * SIDES + 1)
    top = (rings - 1) * SIDES
    return np.vstack(
        (
            np.stack((corner, beside, beside + SIDES), axis=-1),
            np.stack((corner, beside + SIDES, corner + SIDES), axis=-1),
            np.stack((next_one, around, first), axis=-1),
            np.stack((around + top, next_one + top, last), axis=-1),
        )
    )
