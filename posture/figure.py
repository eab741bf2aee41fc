"""What a person looks like: lofted segments from a body's own dimensions, for drawing only.

A profile is a stack of cross-sections along a segment, for the mean man of the segment table. A body's segment is
as long as its person's; across, it grows with the square root of mass over length, so that it keeps its density. No
library does this: human meshes that can be scaled segment by segment come with licences that forbid passing them on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from posture.anthropometry import DE_LEVA, Person
from posture.errors import BodyError, check_number, find_name

if TYPE_CHECKING:
    from posture.body import Body

Array = NDArray[np.floating]

MEAN_MAN = Person(mass=73.0, height=1.741, sex="male")
SKIN, SHIRT, TROUSERS, SHOE, HAIR, EYE, LIP = (
    (0.85, 0.66, 0.54, 1.0),
    (0.16, 0.31, 0.50, 1.0),
    (0.19, 0.22, 0.27, 1.0),
    (0.10, 0.10, 0.11, 1.0),
    (0.25, 0.18, 0.13, 1.0),
    (0.14, 0.11, 0.10, 1.0),
    (0.74, 0.48, 0.42, 1.0),
)
SIDES, RINGS = 28, 26


@dataclass(frozen=True)
class Profile:
    """Cross-sections of one piece: rows of (place along the segment, centre forward, half depth, half width), mm.

    The place runs from 0 at the upper end to 1 at the lower end; ``roundness`` 2 is an ellipse, more is boxier.
    With ``beside`` (mm) there are two of it, that far to the left and to the right.
    """

    color: tuple[float, ...]
    rows: tuple[tuple[float, float, float, float], ...]
    roundness: float = 2.0
    beside: float = 0.0


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
                (-0.03, -8, 4, 4), (-0.015, -9, 44, 37), (0.05, -11, 72, 60), (0.13, -14, 88, 73), (0.22, -20, 92, 80),
                (0.32, -27, 88, 82), (0.44, -33, 80, 80), (0.54, -41, 68, 74), (0.62, -49, 53, 60), (0.68, -56, 36, 38),
                (0.70, -58, 8, 8),
            ),
        ),
        Profile(SKIN, ((0.43, 94, 2, 4), (0.50, 98, 8, 8), (0.575, 102, 14, 15), (0.6, 98, 9, 13), (0.61, 95, 2, 4))),
        Profile(SKIN, ((0.40, -6, 2, 2), (0.42, -6, 12, 4), (0.46, -7, 17, 6), (0.53, -5, 14, 6), (0.585, -2, 8, 4),
                       (0.60, -1, 2, 2)), beside=75.0),
        Profile(HAIR, ((0.385, 86, 1, 6), (0.395, 87, 3, 14), (0.41, 87, 3, 14), (0.42, 86, 1, 6)), beside=30.0),
        Profile(EYE, ((0.440, 84, 1, 2), (0.446, 85, 3, 7), (0.462, 85, 4, 9), (0.476, 85, 3, 7), (0.482, 84, 1, 2)),
                beside=30.0),
        Profile(LIP, ((0.678, 80, 2, 8), (0.685, 82, 4, 20), (0.698, 83, 4, 18), (0.708, 80, 2, 6))),
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
                (0.45, 3, 83, 76), (0.65, 4, 73, 68), (0.85, 3, 65, 61), (0.97, 1, 61, 58),
                (1.03, 0, 58, 56), (1.08, 0, 49, 47), (1.115, 0, 8, 8),
            ),
        ),
    ),
    "shank": (
        Profile(
            TROUSERS,
            (
                (-0.115, 0, 6, 6), (-0.08, 0, 44, 43), (-0.03, 0, 56, 54), (0.03, 0, 60, 57.5),
                (0.10, -3, 61, 58), (0.22, -8, 65, 59),
                (0.34, -9, 64, 58), (0.50, -6, 57, 52), (0.70, -2, 51, 47), (0.90, 0, 50, 47), (1.0, 2, 52, 48),
                (1.03, 2, 52, 48), (1.035, 2, 6, 6),
            ),
        ),
    ),
    # Along the foot: centre and half height are those above the sole, see UPRIGHT.
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


DOME = 0.11  # of the whole piece's length; where a joint bends, the dome of each part shows instead of a gap
QUARTER = np.radians([30.0, 60.0, 85.0])
XIPHOID, NAVEL = (
    sum(DE_LEVA["male"][part].length for part in parts) / DE_LEVA["male"]["trunk"].length
    for parts in (("upper_trunk",), ("upper_trunk", "middle_trunk"))
)
# Parts of pieces for links that end within a segment: the piece, and where it is cut; -1 and 2 are beyond its ends.
PARTS = {
    "upper_trunk": ("trunk", -1.0, XIPHOID),
    "middle_trunk": ("trunk", XIPHOID, NAVEL),
    "lower_trunk": ("trunk", NAVEL, 2.0),
    "torso": ("trunk", -1.0, 0.83),
    "pelvis": ("trunk", 0.836, 2.0),
    "skull": ("head", -1.0, 0.86),
    "neck": ("head", 0.86, 2.0),
    "hindfoot": ("foot", -1.0, 0.72),
    "forefoot": ("foot", 0.72, 2.0),
}


def _cut(profile: Profile, low: float, high: float) -> Profile | None:
    """What a profile has between ``low`` and ``high``, told along that part, with a dome at each cut."""
    rows = np.array(profile.rows)
    start, end = max(low, 0.0), min(high, 1.0)
    chosen = rows[(rows[:, 0] > low + 0.004) & (rows[:, 0] < high - 0.004)]
    if not len(chosen):
        return None
    size = PchipInterpolator(rows[:, 0], rows[:, 1:])
    before = _dome(low, size(low), -DOME)[::-1] if low > rows[0, 0] else chosen[:0]
    after = _dome(high, size(high), DOME) if high < rows[-1, 0] else chosen[:0]
    part = np.vstack((before, chosen, after))
    part[:, 0] = (part[:, 0] - start) / (end - start)
    return replace(profile, rows=tuple((a, b, c, d) for a, b, c, d in part.tolist()))


def _dome(place: float, size: Array, height: float) -> Array:
    """Rows from a cut outwards: a quarter of an ellipse."""
    forward, depth, width = size
    bulge = [(place + height * np.sin(t), forward, np.cos(t) * depth, np.cos(t) * width) for t in QUARTER]
    return np.array([(place, forward, depth, width), *bulge])


for _name, (_piece, _low, _high) in PARTS.items():
    PROFILES[_name] = tuple(part for item in PROFILES[_piece] if (part := _cut(item, _low, _high)) is not None)

UPRIGHT = ("foot", "hindfoot", "forefoot")  # their depth is a height above the sole; all else has its depth forward


@dataclass(frozen=True)
class Piece:
    """Where a piece is on a link: its upper and lower end (m, link axes) and its girth, 1 for the mean man's."""

    name: str
    upper: Array
    lower: Array
    girth: float


def pieces(body: Body) -> dict[str, list[Piece]]:
    """What to draw on each link: the sidecar's [figure], and every link that carries a whole segment of the person."""
    found: dict[str, list[Piece]] = {}
    for entry in body.sidecar.get("figure", {}).values():
        upper, lower = (np.array(entry[end], float) for end in ("upper", "lower"))
        found.setdefault(entry["link"], []).append(Piece(entry["piece"], upper, lower, float(entry.get("girth", 1.0))))
    person = body.person
    for link, entry in body.sidecar.get("segments", {}).items():
        name = entry["segment"]
        if person and entry.get("carries_mass") and name in PROFILES and link not in found:
            along = person.length(name) * np.array(entry["direction"], float)
            areas = [area for area in body.sidecar.get("contact", {}).values() if area["link"] == link]
            sole = min((point[2] for area in areas for point in area["points"]), default=0.0)
            upper = np.array([0, 0, sole if name in UPRIGHT else 0.0]) - entry["origin"] * along
            found[link] = [Piece(name, upper, upper + along, girth(person, name))]
    return found


def check_figure(figure: Any, links: list[str], *, where: str) -> None:
    """Refuse a sidecar's [figure] that could not be drawn."""
    if not isinstance(figure, dict):
        raise BodyError(f"{where}: figure is {figure!r}; give tables [figure.NAME] with link, piece, upper, lower")
    for name, entry in figure.items():
        place = f"{where}: [figure.{name}]"
        if not isinstance(entry, dict) or not {"link", "piece", "upper", "lower"} <= set(entry):
            raise BodyError(f"{place} needs link, piece, and its upper and lower end [x, y, z] in m")
        for key in entry:
            find_name(key, ("link", "piece", "upper", "lower", "girth"), what="setting", where=place)
        find_name(entry["link"], links, what="link", where=place)
        find_name(entry["piece"], PROFILES, what="piece", where=place)
        check_number(entry.get("girth", 1.0), what=f"{place}: girth", unit="", low=0.2, high=5, error=BodyError)
        for end in ("upper", "lower"):
            values = entry[end] if isinstance(entry[end], list) else []
            if len(values) != 3:
                raise BodyError(f"{place}: {end} is {entry[end]!r}; give [x, y, z] in m")
            for value in values:
                check_number(value, what=f"{place}: {end}", unit="m", low=-5, high=5, error=BodyError)
        if np.allclose(entry["upper"], entry["lower"]):
            raise BodyError(f"{place}: upper and lower end are the same point; move them apart")


def girth(person: Person, segment: str) -> float:
    """Across, a segment grows with the square root of mass over length, so that it keeps the mean man's density."""
    heavier = person.mass * DE_LEVA[person.sex][segment].mass / (MEAN_MAN.mass * DE_LEVA["male"][segment].mass)
    return float(np.sqrt(heavier * MEAN_MAN.length(segment) / person.length(segment)))


def lofts(piece: Piece) -> Iterator[tuple[Array, NDArray[np.int64], tuple[float, ...]]]:
    """Vertices (n × 3, m, in the link's frame), triangles and colour of everything a piece is made of."""
    along, across = piece.lower - piece.upper, np.array([0, 0, 1.0] if piece.name in UPRIGHT else [1.0, 0, 0])
    left = np.array([0, 1.0, 0])
    turn = np.arange(SIDES) * 2 * np.pi / SIDES
    circle = np.array((np.cos(turn), np.sin(turn)))
    for profile in PROFILES[piece.name]:
        rows = np.array(profile.rows)
        even = np.linspace(rows[0, 0], rows[-1, 0], RINGS)
        gap = np.abs(even[:, None] - rows[:, 0]).min(axis=1)
        # Rings much closer to each other than the rest would show as bands in the shading.
        places = np.sort(np.concatenate((even[gap > 0.45 * (even[1] - even[0])], rows[:, 0])))
        center, depth, width = piece.girth / 1000 * PchipInterpolator(rows[:, 0], rows[:, 1:])(places).T
        ellipse = np.abs(circle) ** (2 / profile.roundness) * np.sign(circle)
        faces = _surface(len(places))
        for side in (profile.beside, -profile.beside) if profile.beside else (0.0,):
            middle = piece.upper + piece.girth * side / 1000 * left
            spine = middle + places[:, None] * along + center[:, None] * across
            rings = (
                spine[:, None, :]
                + (depth[:, None] * ellipse[0])[..., None] * across
                + (width[:, None] * ellipse[1])[..., None] * left
            )
            points = np.vstack((rings.reshape(-1, 3), spine[0], spine[-1]))
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
