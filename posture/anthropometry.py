"""Segment masses, centres and radii of gyration of adults, and how a body is scaled to one.

Source: P. de Leva (1996) "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters",
J. Biomechanics 29(9):1223-1230, tables 2 and 4: mean segment lengths, masses, centres of mass and radii of
gyration of young adults (means: women 61.9 kg, 1.735 m; men 73.0 kg, 1.741 m).
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from posture.errors import BodyError, check_number, find_name
from posture.urdf import INERTIA_KEYS, joint_ends


@dataclass(frozen=True)
class Segment:
    """One row of the table; fractions of body mass and of segment length, length as fraction of stature.

    ``center`` runs from the proximal (upper) end. ``gyration`` is about the sagittal (forward), transverse
    (left) and longitudinal axis through the centre of mass.
    """

    length: float
    mass: float
    center: float
    gyration: tuple[float, float, float]


TRUNK_PARTS = ("upper_trunk", "middle_trunk", "lower_trunk")  # whose lengths and masses add up to the trunk's


def _table(stature_mm: float, rows: dict[str, tuple[float, ...]]) -> dict[str, Segment]:
    # The women's rounded percentages add up to 99.99; a person of 60 kg shall weigh 60 kg.
    once = ("head", "trunk")
    total = sum(row[1] * (1 if name in once else 2) for name, row in rows.items() if name not in TRUNK_PARTS)
    return {
        name: Segment(length / stature_mm, mass / total, center / 100, (sag / 100, trans / 100, long / 100))
        for name, (length, mass, center, sag, trans, long) in rows.items()
    }


# length mm, mass %, centre %, radii of gyration % (sagittal, transverse, longitudinal)
DE_LEVA = {
    "female": _table(
        1735,
        {
            "head": (243.7, 6.68, 48.41, 27.1, 29.5, 26.1),  # vertex to C7
            "trunk": (614.8, 42.57, 49.64, 30.7, 29.2, 14.7),  # C7 to mid-hip
            "upper_trunk": (228.0, 15.45, 50.50, 46.6, 31.4, 44.9),  # C7 to xiphoid
            "middle_trunk": (205.3, 14.65, 45.12, 43.3, 35.4, 41.5),  # xiphoid to navel
            "lower_trunk": (181.5, 12.47, 49.20, 43.3, 40.2, 44.4),  # navel to mid-hip
            "upper_arm": (275.1, 2.55, 57.54, 27.8, 26.0, 14.8),
            "forearm": (264.3, 1.38, 45.59, 26.1, 25.7, 9.4),
            "hand": (78.0, 0.56, 74.74, 53.1, 45.4, 33.5),
            "thigh": (368.5, 14.78, 36.12, 36.9, 36.4, 16.2),
            "shank": (438.6, 4.81, 43.52, 26.7, 26.3, 9.2),  # knee to ankle joint centre
            "foot": (228.3, 1.29, 40.14, 29.9, 27.9, 13.9),  # heel to toe tip
        },
    ),
    "male": _table(
        1741,
        {
            "head": (242.9, 6.94, 50.02, 30.3, 31.5, 26.1),
            "trunk": (603.3, 43.46, 51.38, 32.8, 30.6, 16.9),
            "upper_trunk": (242.1, 15.96, 50.66, 50.5, 32.0, 46.5),
            "middle_trunk": (215.5, 16.33, 45.02, 48.2, 38.3, 46.8),
            "lower_trunk": (145.7, 11.17, 61.15, 61.5, 55.1, 58.7),
            "upper_arm": (281.7, 2.71, 57.72, 28.5, 26.9, 15.8),
            "forearm": (268.9, 1.62, 45.74, 27.6, 26.5, 12.1),
            "hand": (86.2, 0.61, 79.00, 62.8, 51.3, 40.1),
            "thigh": (422.2, 14.16, 40.95, 32.9, 32.9, 14.9),
            "shank": (440.3, 4.33, 43.95, 25.1, 24.6, 10.2),
            "foot": (258.1, 1.37, 44.15, 25.7, 24.5, 12.4),
        },
    ),
}
STANDING_STACK = ("shank", "thigh", "trunk", "head")
SEGMENT_KEYS = ("segment", "direction", "origin", "carries_mass")


@dataclass(frozen=True)
class Person:
    """Whom a body stands for: mass in kg, height in m, ``sex`` picks the table."""

    mass: float
    height: float
    sex: str

    def __post_init__(self) -> None:
        find_name(self.sex, DE_LEVA, what="sex", where="person")
        check_number(self.mass, what="person: mass", unit="kg", low=25, high=300, error=BodyError)
        hint = "give metres, not centimetres" if isinstance(self.height, (int, float)) and self.height > 50 else ""
        check_number(self.height, what="person: height", unit="m", low=1.2, high=2.4, error=BodyError, hint=hint)

    def length(self, name: str) -> float:
        """Length in m of a table segment, or of ``ankle_height``.

        The ankle is as high as makes the stack shank + thigh + trunk + head reach the person's stature.
        """
        table = DE_LEVA[self.sex]
        if name == "ankle_height":
            return self.height * (1 - sum(table[part].length for part in STANDING_STACK))
        return self.height * table[find_name(name, table, what="segment", where="segment table")].length


def segment_inertia(
    person: Person, name: str, direction: NDArray[np.float64], origin: float
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Mass (kg), centre of mass (m) and central inertia (kg·m²) of a segment in its link's frame.

    ``direction``: unit vector along an axis of the link, from the proximal to the distal end; ``origin``: where
    along the segment the link's frame sits (0 proximal, 1 distal). The transverse axis is the link's Y; the
    sagittal one is whichever of X and Z is left.
    """
    segment = DE_LEVA[person.sex][name]
    mass, length = person.mass * segment.mass, person.length(name)
    sagittal, transverse, longitudinal = (mass * (radius * length) ** 2 for radius in segment.gyration)
    along_x = abs(direction[0]) > 0.5
    principal = (longitudinal, transverse, sagittal) if along_x else (sagittal, transverse, longitudinal)
    return mass, (segment.center - origin) * length * direction, np.diag(principal)


def check_segments(segments: Any, root: etree._Element, *, where: str) -> None:
    """Refuse a sidecar's [segments] that scaling could not follow."""
    if not isinstance(segments, dict):
        raise BodyError(f"{where}: [segments] must be a table of link = {{ segment = …, direction = … }}")
    links = {link.get("name"): link for link in root.findall("link")}
    for name, entry in segments.items():
        find_name(name, links, what="link", where=f"{where}: [segments]")
        place = f"{where}: [segments] {name}"
        if not isinstance(entry, dict):
            raise BodyError(f"{place} is {entry!r}; it must be a table such as {{ segment = …, direction = … }}")
        for key in entry:
            find_name(key, SEGMENT_KEYS, what="setting", where=place)
        massive = entry.get("carries_mass", False)
        known = [*DE_LEVA["male"], *([] if massive else ["ankle_height"])]
        find_name(entry.get("segment", ""), known, what="segment", where=place)
        direction = entry.get("direction")
        if direction not in [[sign * (axis == column) for column in range(3)] for axis in range(3) for sign in (1, -1)]:
            raise BodyError(f"{place}: direction is {direction!r}; give an axis of the link, such as [0, 0, -1]")
        if massive:
            check_number(entry.get("origin"), what=f"{place}: origin", unit="", low=-1, high=2, error=BodyError)
            if links[name].find("inertial") is None:
                raise BodyError(f"{place}: carries_mass, but the link has no <inertial> to scale; add one")


def scale_body(
    root: etree._Element, sidecar: dict[str, Any], person: Person, *, where: str
) -> tuple[etree._Element, dict[str, Any]]:
    """Return a copy of a URDF tree and its sidecar for another person.

    Along a link's segment everything grows with the segment's own length; across it, joint offsets grow with
    stature and shapes with the square root of mass over length (same density). Links that name a segment
    without carrying all its mass keep their share of it; links that name none, of the whole body's.
    """
    if "person" not in sidecar:
        raise BodyError(
            f"{where}: the body does not say whose size it has; add [person] mass, height, sex to its .toml sidecar"
        )
    model = Person(**sidecar["person"])
    root, sidecar = copy.deepcopy(root), copy.deepcopy(sidecar)
    growth = person.height / model.height
    frames: dict[str, NDArray[np.float64]] = {}
    shapes: dict[str, NDArray[np.float64]] = {}
    for link in root.findall("link"):
        name = link.get("name")
        entry = sidecar.get("segments", {}).get(name, {})
        frames[name], shapes[name] = _factors(entry, model, person, growth)
        if entry.get("carries_mass"):
            _write_inertial(
                link, *segment_inertia(person, entry["segment"], np.array(entry["direction"], float), entry["origin"])
            )
        elif link.find("inertial") is not None:
            _grow_inertial(link.find("inertial"), _heavier(entry.get("segment"), model, person), growth)
        for holder in [*link.findall("visual"), *link.findall("collision")]:
            _grow_xyz(holder, shapes[name])
            _grow_shape(holder.find("geometry").find("*"), shapes[name], holder)
    for joint in root.findall("joint"):
        _grow_xyz(joint, frames[joint_ends(joint)[0]])
    for contact in sidecar.get("contact", {}).values():
        contact["points"] = (np.array(contact["points"]) * shapes[contact["link"]]).round(6).tolist()
    for piece in sidecar.get("figure", {}).values():
        entry = sidecar.get("segments", {}).get(piece["link"], {})
        _grow_piece(piece, shapes[piece["link"]], _heavier(entry.get("segment"), model, person))
    for holder in muscle_places(sidecar.get("muscles", {})):
        key = "point" if "point" in holder else "center"
        holder[key] = (np.array(holder[key], float) * frames[holder["link"]]).round(6).tolist()
    sidecar["person"] = asdict(person)
    return root, sidecar


def stretch_body(
    root: etree._Element, sidecar: dict[str, Any], factors: dict[str, float], person: Person
) -> tuple[etree._Element, dict[str, Any]]:
    """Return a copy of a URDF tree and its sidecar with every link grown by its own factor (1 where none is given).

    Links keep their shares of the person's mass; inertias follow mass and the square of the factor.
    """
    root, sidecar = copy.deepcopy(root), copy.deepcopy(sidecar)
    total = sum(float(mass.get("value")) for mass in root.iterfind("link/inertial/mass"))
    for link in root.findall("link"):
        factor = factors.get(link.get("name"), 1.0)
        if link.find("inertial") is not None:
            _grow_inertial(link.find("inertial"), person.mass / total, factor)
        for holder in [*link.findall("visual"), *link.findall("collision")]:
            _grow_xyz(holder, np.full(3, factor))
            _grow_shape(holder.find("geometry")[0], np.full(3, factor), holder)
    for joint in root.findall("joint"):
        _grow_xyz(joint, np.full(3, factors.get(joint_ends(joint)[0], 1.0)))
    for contact in sidecar.get("contact", {}).values():
        contact["points"] = (np.array(contact["points"]) * factors.get(contact["link"], 1.0)).round(6).tolist()
    for piece in sidecar.get("figure", {}).values():
        _grow_piece(piece, np.full(3, factors.get(piece["link"], 1.0)), person.mass / total)
    sidecar["person"] = asdict(person)
    return root, sidecar


def muscle_places(muscles: dict[str, Any]) -> list[dict[str, Any]]:
    """Every entry of a muscle sidecar that is a place on a link: path points and centres of pulleys."""
    points = [point for muscle in muscles.get("muscle", {}).values() for point in muscle["path"] if "link" in point]
    return [*points, *muscles.get("pulley", {}).values()]


def _factors(
    entry: dict[str, Any], model: Person, person: Person, growth: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    frame, shape = np.full(3, growth), np.full(3, growth)
    if entry:
        along = np.abs(np.array(entry["direction"], float)) > 0.5
        stretch = person.length(entry["segment"]) / model.length(entry["segment"])
        frame[along] = shape[along] = stretch
        if entry.get("carries_mass"):
            shape[~along] = np.sqrt(_heavier(entry["segment"], model, person) / stretch)
    return frame, shape


def _heavier(segment: str | None, model: Person, person: Person) -> float:
    """How much heavier a segment becomes; links that divide one segment between them grow alike."""
    shares = [
        DE_LEVA[someone.sex][segment].mass if segment in DE_LEVA[someone.sex] else 1.0 for someone in (person, model)
    ]
    return person.mass * shares[0] / (model.mass * shares[1])


def _text(values: Any) -> str:
    return " ".join(f"{value:.10g}" for value in np.atleast_1d(values))


def _grow_xyz(holder: etree._Element, factors: NDArray[np.float64]) -> None:
    origin = holder.find("origin")
    if origin is not None and origin.get("xyz"):
        origin.set("xyz", _text(np.array(origin.get("xyz").split(), float) * factors))


def _grow_shape(shape: etree._Element, factors: NDArray[np.float64], holder: etree._Element) -> None:
    origin = holder.find("origin")
    roll, pitch, yaw = (float(word) for word in (origin.get("rpy", "0 0 0") if origin is not None else "0 0 0").split())
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    own = np.sqrt((rotation**2).T @ factors**2)  # growth along the shape's own axes
    if shape.tag == "box":
        shape.set("size", _text(np.array(shape.get("size").split(), float) * own))
    elif shape.tag == "mesh":
        shape.set("scale", _text(np.array(shape.get("scale", "1 1 1").split(), float) * own))
    else:
        girth = np.sqrt(own[0] * own[1])
        shape.set("radius", _text(float(shape.get("radius")) * girth))
        if shape.tag != "sphere":
            shape.set("length", _text(float(shape.get("length")) * own[2]))


def _grow_piece(piece: dict[str, Any], factors: NDArray[np.float64], heavier: float) -> None:
    """Let a drawn piece grow with its link; across, with the square root of mass over length."""
    upper, lower = np.array(piece["upper"], float), np.array(piece["lower"], float)
    stretch = np.linalg.norm((upper - lower) * factors) / np.linalg.norm(upper - lower)
    piece["upper"], piece["lower"] = ((end * factors).round(6).tolist() for end in (upper, lower))
    piece["girth"] = round(piece.get("girth", 1.0) * float(np.sqrt(heavier / stretch)), 6)


def _grow_inertial(inertial: etree._Element, heavier: float, growth: float) -> None:
    _grow_xyz(inertial, np.full(3, growth))
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    mass.set("value", _text(float(mass.get("value")) * heavier))
    for key in INERTIA_KEYS:
        inertia.set(key, _text(float(inertia.get(key)) * heavier * growth**2))


def _write_inertial(
    link: etree._Element, mass: float, center: NDArray[np.float64], inertia: NDArray[np.float64]
) -> None:
    inertial = link.find("inertial")
    inertial.find("mass").set("value", _text(mass))
    for origin in inertial.findall("origin"):
        inertial.remove(origin)  # it may be turned, and the new inertia is along the link's own axes
    inertial.insert(0, etree.Element("origin", xyz=_text(center)))
    tensor = inertial.find("inertia")
    for key, (row, column) in zip(INERTIA_KEYS, ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)), strict=True):
        tensor.set(key, _text(inertia[row, column]))
