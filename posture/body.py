"""A person (or any mechanism) as a checked URDF in Pinocchio, attached to whatever it stands on, or floating.

The root link is the base: a free-flyer in Pinocchio, so that its motion can be prescribed. A body whose sidecar says
``floats = true`` has its root somewhere in the middle (a pelvis) and touches the ground with links that move.
Configurations used by the rest of the package hold the joints only, in the order of ``Body.joint_names``; angles in
rad, slides in m.
``Body.model`` has no gravity: gravity reaches the body through the specific force of its base (see deck.py).
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree
from numpy.typing import NDArray

from posture.anthropometry import Person, check_segments, scale_body, stretch_body
from posture.contact import convex_outline
from posture.errors import BodyError, check_number, find_name
from posture.urdf import INERTIA_KEYS, check_urdf, read_urdf

Array = NDArray[np.floating]

STANDARD_GRAVITY = 9.80665  # m/s²
SIDECAR_ENTRIES = ("floats", "person", "contact", "segments", "figure", "variant", "stand", "roles")
CONTACT_REACH = 10.0  # m; a foot's outline farther from its link is in mm
UNUSED = ("dynamics", "safety_controller", "calibration")  # elements of a URDF's joint
VERTICAL_AXIS_SHARE = 0.04  # gain of a joint about the body's long axis, relative to one across it


def models_folder() -> Path:
    """Folder of the bodies that come with posture: inside the package when installed, else beside it."""
    package = Path(__file__).resolve().parent
    installed = package / "models_urdf"
    return installed if installed.is_dir() else package.parent / "models_urdf"


def model_names() -> list[str]:
    """Names that ``load_body`` knows without a path."""
    return sorted(path.stem for path in models_folder().glob("*.urdf"))


@dataclass(frozen=True)
class Body:
    """A loaded body. ``lock`` and ``scaled`` return new ones; nothing changes in place."""

    name: str
    path: Path
    urdf: str
    sidecar: dict[str, Any]
    model: pin.Model = field(repr=False)
    locked: dict[str, float] = field(default_factory=dict)

    @cached_property
    def model_with_gravity(self) -> pin.Model:
        """The model in a world whose gravity pulls along -Z, for bodies that move about in it."""
        model = self.model.copy()
        model.gravity.linear = np.array([0.0, 0.0, -STANDARD_GRAVITY])
        return model

    @cached_property
    def segments(self) -> dict[str, int]:
        """Links that carry mass, with the index of the Pinocchio joint that moves each."""
        found: dict[int, str] = {}
        for frame in self.model.frames:
            joint = frame.parentJoint
            if frame.type == pin.FrameType.BODY and joint > 0 and self.model.inertias[joint].mass > 0:
                found.setdefault(joint, frame.name)
        return {name: joint for joint, name in found.items()}

    @property
    def joint_names(self) -> list[str]:
        """Moving joints in the order of every joint array."""
        return list(self.model.names)[2:]

    @property
    def free_joints(self) -> list[str]:
        """Joints that are not locked."""
        return [name for name in self.joint_names if name not in self.locked]

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """Indices of the joints that are not locked."""
        return np.array([self.joint_index(name) for name in self.free_joints], dtype=np.intp)

    @property
    def person(self) -> Person | None:
        """Whose size the body has, if its sidecar says so."""
        return Person(**self.sidecar["person"]) if "person" in self.sidecar else None

    @property
    def floats(self) -> bool:
        """Whether the root moves freely and links that move may touch the ground."""
        return bool(self.sidecar.get("floats", False))

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return float(sum(inertia.mass for inertia in self.model.inertias))

    @property
    def sha256(self) -> str:
        """Fingerprint of everything that decides the dynamics."""
        parts = json.dumps([self.urdf, self.sidecar, self.locked], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()

    @cached_property
    def data(self) -> pin.Data:
        """Pinocchio's work space for single calls; a simulation makes its own."""
        return self.model.createData()

    def joint_index(self, name: str) -> int:
        """Position of a joint in every joint array."""
        return self.joint_names.index(find_name(name, self.joint_names, what="joint", where=self.name))

    def link_frame(self, name: str) -> int:
        """Pinocchio frame id of a link (Pinocchio itself would take a misspelt one without a word)."""
        return self._links[find_name(name, self._links, what="link", where=self.name)]

    @cached_property
    def _links(self) -> dict[str, int]:
        return {frame.name: index for index, frame in enumerate(self.model.frames) if frame.type == pin.FrameType.BODY}

    @property
    def neutral(self) -> Array:
        """Upright configuration: all joints zero, locked ones where they are locked."""
        position = np.zeros(len(self.joint_names))
        for name, value in self.locked.items():
            position[self.joint_index(name)] = value
        return position

    def with_base(self, position: Array) -> Array:
        """Pinocchio configuration of the body with its base at the origin of the ship frame."""
        return np.concatenate(([0, 0, 0, 0, 0, 0, 1.0], position))

    def center_of_mass(self, position: Array | None = None) -> Array:
        """Centre of mass in the root link's frame, m."""
        at = self.with_base(self.neutral if position is None else np.asarray(position, float))
        return np.array(pin.centerOfMass(self.model, self.data, at))

    def gravity_torque(self, position: Array) -> Array:
        """Joint torques (N·m) that hold a configuration on a level deck at rest."""
        lift = np.zeros(self.model.nv)
        lift[2] = STANDARD_GRAVITY
        return np.array(pin.rnea(self.model, self.data, self.with_base(position), np.zeros(self.model.nv), lift))[6:]

    def toppling_stiffness(self) -> dict[str, float]:
        """m·g·l of what each joint carries, N·m/rad: the stiffness below which a joint cannot hold its load upright.

        l is the distance from joint to the carried centre of mass. A joint about the vertical topples nothing; it
        gets ``VERTICAL_AXIS_SHARE`` of the value, so that one factor gives sensible gains on any body.
        """
        pin.centerOfMass(self.model, self.data, self.with_base(self.neutral), True)
        pin.computeSubtreeMasses(self.model, self.data)
        jacobian = pin.computeJointJacobians(self.model, self.data, self.with_base(self.neutral))
        stiffness = {}
        for index, name in enumerate(self.joint_names, start=2):
            carried = self.data.oMi[index].act(self.data.com[index])
            lever = float(np.linalg.norm(carried - self.data.oMi[index].translation))
            axis = jacobian[3:, self.model.joints[index].idx_v]
            share = max(VERTICAL_AXIS_SHARE, 1 - float(axis[2] ** 2)) if np.any(axis) else 1.0
            stiffness[name] = share * self.data.mass[index] * STANDARD_GRAVITY * lever
        return stiffness

    def joint_heights(self) -> dict[str, float]:
        """Height of every joint above the root's origin in the upright body, m."""
        pin.forwardKinematics(self.model, self.data, self.with_base(self.neutral))
        places = self.data.oMi
        return {name: float(places[index].translation[2]) for index, name in enumerate(self.joint_names, start=2)}

    @cached_property
    def gimbal_joints(self) -> list[str]:
        """Middle joints of X-Y-Z triples, singular at ±90°: no mass of their own nor before them in the triple."""
        inertias, parents = self.model.inertias, self.model.parents
        return [
            name
            for index, name in enumerate(self.joint_names, start=2)
            if inertias[index].mass == 0 and inertias[parents[index]].mass == 0 and parents[index] > 1
        ]

    @property
    def contact_names(self) -> list[str]:
        """Names of the areas with which the body touches the deck."""
        return list(self.sidecar.get("contact", {}))

    def contact_polygon(self, name: str | None = None) -> Array:
        """Outline (n × 2, m, counter-clockwise, X forward, Y left) of one contact area on the deck, or of all."""
        names = (
            self.contact_names
            if name is None
            else [find_name(name, self.contact_names, what="contact", where=self.name)]
        )
        if not names:
            raise BodyError(
                f"{self.path}: no contact areas are known; "
                f"add [contact.NAME] link, points to {self.path.with_suffix('.toml').name}"
            )
        pin.framesForwardKinematics(self.model, self.data, self.with_base(self.neutral))
        points: list[Array] = []
        for area in names:
            entry = self.sidecar["contact"][area]
            placement = self.data.oMf[self.link_frame(entry["link"])]
            points.extend(placement.act(np.array(point, float)) for point in entry["points"])
        return convex_outline(np.array(points)[:, :2])

    def lock(self, joints: Iterable[str] | Mapping[str, float]) -> Body:
        """Return this body with joints held still, at zero or at given angles (rad).

        Names may hold the wildcards of a shell: ``lock(["knee_*"])``, or ``lock("knee_*")`` for one alone.
        """
        names_only = [joints] if isinstance(joints, str) else joints
        wanted = names_only if isinstance(names_only, Mapping) else dict.fromkeys(names_only, 0.0)
        locked = dict(self.locked)
        for pattern, value in wanted.items():
            names = fnmatch.filter(self.joint_names, pattern)
            for name in names or [find_name(pattern, self.joint_names, what="joint", where=self.name)]:
                locked[name] = check_number(
                    value,
                    what=f"{self.name}: the angle at which joint {name!r} is locked",
                    unit="rad",
                    low=-2 * np.pi,
                    high=2 * np.pi,
                    error=BodyError,
                )
        return replace(self, locked=locked)

    def scaled(self, person: Person) -> Body:
        """Return this body with another person's lengths, masses and inertias."""
        if "muscles" in self.sidecar:
            from posture.muscles import load_muscles, scaled_muscles

            load_muscles(self)  # refuses what could not be scaled
        root, sidecar = scale_body(_element(self.urdf), self.sidecar, person, where=str(self.path))
        check_urdf(root, self.path)
        body = replace(_build(self.name, self.path, root, sidecar), locked=dict(self.locked))
        if "muscles" not in sidecar:
            return body
        return replace(body, sidecar=sidecar | {"muscles": scaled_muscles(self, body)})

    def stretched(self, factors: Mapping[str, float], person: Person) -> Body:
        """Return this body with each named link grown by its factor, and the person's mass in the same shares."""
        for link in factors:
            self.link_frame(link)
        root, sidecar = stretch_body(_element(self.urdf), self.sidecar, dict(factors), person)
        check_urdf(root, self.path)
        return replace(_build(self.name, self.path, root, sidecar), locked=dict(self.locked))

    def changed(
        self,
        *,
        links: Mapping[str, Mapping[str, Any]] | None = None,
        joints: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Body:
        """Return this body with other numbers: ``links={"shank": {"mass": 4.0, "center": …, "inertia": …}}``.

        Mass in kg, centre of mass and joint ``origin`` in m, inertia as three principal moments in kg·m².
        """
        root = _element(self.urdf)
        for kind, changes in (("link", links), ("joint", joints)):
            for name, numbers in (changes or {}).items():
                _change(root, kind, name, numbers, str(self.path))
        check_urdf(root, self.path)
        return replace(_build(self.name, self.path, root, self.sidecar), locked=dict(self.locked))

    def describe(self) -> dict[str, Any]:
        """Headline facts, ready for JSON."""
        return {
            "name": self.name,
            "joints": self.joint_names,
            "locked": self.locked,
            "links": [frame.name for frame in self.model.frames if frame.type == pin.FrameType.BODY],
            "mass_kg": round(self.mass, 6),
            "center_of_mass_m": [round(float(value), 6) for value in self.center_of_mass()],
            "contacts": self.contact_names,
            "person": asdict(self.person) if self.person else None,
            "floats": self.floats,
            "muscles": list(self.sidecar.get("muscles", {}).get("muscle", {})),
        }


def load_body(
    name_or_path: str | Path,
    *,
    variants: Iterable[str] = (),
    person: Person | None = None,
    locked: Iterable[str] | Mapping[str, float] = (),
) -> Body:
    """Load a body by name (``posture models`` lists them) or from a .urdf file with its optional .toml sidecar.

    ``variants`` are applied in order: named changes of inertias, masses or joint places that the sidecar describes
    in [variant.NAME] tables. A name may carry them itself: ``load_body("double_pendulum+literal_s1")``.
    """
    text = str(name_or_path)
    looks_like_path = text.endswith((".urdf", ".xml")) or "/" in text
    if looks_like_path:
        path = Path(os.path.expanduser(text))
    else:
        text, *named = text.split("+")
        variants = (*named, *variants)
        name = find_name(text, model_names(), what="body", where="models_urdf (or give a path ending in .urdf)")
        path = models_folder() / f"{name}.urdf"
    body = _build(path.stem, path, read_urdf(path), _read_sidecar(path))
    for variant in variants:
        known = body.sidecar.get("variant", {})
        find_name(variant, known, what="variant", where=str(path.with_suffix(".toml")))
        body = replace(body.changed(**known[variant]), name=f"{body.name}+{variant}")
    if person is not None:
        body = body.scaled(person)
    return body.lock(locked) if locked else body


def body_from_text(name: str, urdf: str, sidecar: dict[str, Any]) -> Body:
    """Rebuild a body from the texts that a result file keeps; shapes that are files of their own are left out."""
    path = Path(f"{name}.urdf")
    root = _element(urdf)
    for mesh in list(root.iter("mesh")):
        shape = mesh.getparent().getparent()
        shape.getparent().remove(shape)
    check_urdf(root, path)
    return _build(name, path, root, sidecar)


def read_twice(body: Body) -> float:
    """Compare Pinocchio's reading with yourdfpy's; largest distance (m) between their places of a link, upright.

    A different mass, set of joints or place means that one of the two misread the file, and is refused.
    """
    import yourdfpy

    root = _element(body.urdf)
    for unread in list(root.iter("visual", "collision", "material", *UNUSED)):  # yourdfpy does not know capsules
        unread.getparent().remove(unread)
    other = yourdfpy.URDF.load(io.BytesIO(etree.tostring(root)), load_meshes=False)
    mass = sum(link.inertial.mass for link in other.robot.links if link.inertial and link.inertial.mass)
    if sorted(other.actuated_joint_names) != sorted(body.joint_names) or abs(mass - body.mass) > 1e-9 * body.mass:
        raise BodyError(
            f"{body.path}: Pinocchio reads {len(body.joint_names)} joints and {body.mass:g} kg, yourdfpy "
            f"{len(other.actuated_joint_names)} and {mass:g}; look for unusual elements"
        )
    pin.framesForwardKinematics(body.model, body.data, body.with_base(np.zeros(len(body.joint_names))))
    distance = max(
        float(np.linalg.norm(other.get_transform(name)[:3, 3] - body.data.oMf[body.link_frame(name)].translation))
        for name in other.link_map
    )
    if distance > 1e-6:
        raise BodyError(f"{body.path}: Pinocchio and yourdfpy place a link {distance:.3g} m apart; look at the origins")
    return distance


def write_body(body: Body, path: str | Path) -> None:
    """Write a body's URDF and sidecars (``path`` with .toml and .muscles.toml), each complete or not at all."""
    from posture.results import write_text

    path = Path(path)
    if path.suffix != ".urdf":
        raise BodyError(f"{path}: a body is written as URDF; give a name ending in .urdf")
    beside = path.with_suffix(".toml")
    if not set(_read_toml(beside)) <= set(SIDECAR_ENTRIES):
        raise BodyError(
            f"{beside}: this file, where the body's sidecar belongs, is something else; choose another name"
        )
    write_text(path, body.urdf + "\n")
    write_text(beside, _sidecar_toml(body.sidecar))
    if "muscles" in body.sidecar:
        write_text(path.with_suffix(".muscles.toml"), _tables_toml(body.sidecar["muscles"]))


def _element(urdf: str) -> etree._Element:
    return etree.fromstring(urdf.encode())


def _build(name: str, path: Path, root: etree._Element, sidecar: dict[str, Any]) -> Body:
    urdf = etree.tostring(root, encoding="unicode")
    model = pin.buildModelFromXML(pinocchio_text(root), pin.JointModelFreeFlyer())
    model.gravity = pin.Motion.Zero()
    body = Body(name, path, urdf, sidecar, model)
    _check_mass_matrix(body)
    beside = path.with_suffix(".toml")
    check_segments(sidecar.get("segments", {}), root, where=str(beside))
    links = [link.get("name") for link in root.findall("link")]
    if "figure" in sidecar:
        from posture.figure import check_figure

        check_figure(sidecar["figure"], links, where=str(beside))
    for area, entry in sidecar.get("contact", {}).items():
        find_name(entry["link"], links, what="link", where=f"{beside}: [contact.{area}]")
        frame = model.frames[body.link_frame(entry["link"])]
        if frame.parentJoint > 1 and not body.floats:
            raise BodyError(
                f"{beside}: contact {area!r} is on {entry['link']!r}, which moves; "
                "only links fixed to the root can touch the deck (or say floats = true)"
            )
        try:
            body.contact_polygon(area)
        except BodyError as error:
            raise BodyError(f"{beside}: [contact.{area}]: {error}") from None
    return body


def pinocchio_text(root: etree._Element) -> str:
    """URDF text in the dialect Pinocchio reads without surprises.

    A continuous joint would get two coordinates (cos, sin); as a revolute without reachable limits it has one.
    Capsules vanish below version 1.1. Friction, soft stops and calibration, which no dynamics here uses, stop the
    reader when something is amiss in them, so they are left out.
    """
    prepared = etree.fromstring(etree.tostring(root))
    prepared.set("version", "1.1")
    for unread in list(prepared.iter(*UNUSED)):
        unread.getparent().remove(unread)
    for joint in prepared.findall("joint"):
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            for limit in joint.findall("limit"):
                joint.remove(limit)
            etree.SubElement(joint, "limit", lower="-1e9", upper="1e9", effort="1e9", velocity="1e9")
    return str(etree.tostring(prepared, encoding="unicode"))


def _check_mass_matrix(body: Body) -> None:
    if not body.joint_names:
        return
    inertia = np.array(pin.crba(body.model, body.data, body.with_base(body.neutral)))[6:, 6:]
    inertia = np.triu(inertia) + np.triu(inertia, 1).T
    values, vectors = np.linalg.eigh(inertia)
    if values[0] <= 1e-12 * values[-1]:
        joint = body.joint_names[int(np.argmax(np.abs(vectors[:, 0])))]
        raise BodyError(
            f"{body.path}: joint {joint!r} turns nothing that has inertia "
            "about its axis (or two joints share one axis); "
            "give its link inertia"
        )


def _change(root: etree._Element, kind: str, name: str, changes: Mapping[str, Any], where: str) -> None:
    """Set numbers of one <link> or <joint>: mass, center, inertia (three principal moments); origin."""
    elements = {element.get("name"): element for element in root.findall(kind)}
    element = elements[find_name(name, elements, what=kind, where=where)]
    holder = element if kind == "joint" else element.find("inertial")
    if holder is None:
        raise BodyError(f"{where}: link {name!r} has no <inertial> to change; add one to the URDF")
    for key, value in changes.items():
        keys = ("origin",) if kind == "joint" else ("mass", "center", "inertia")
        find_name(key, keys, what="setting", where=f"{where}: {kind} {name!r}")
        numbers = np.atleast_1d(value) if np.ndim(value) < 2 else np.zeros(0)
        if len(numbers) != (1 if key == "mass" else 3) or numbers.dtype.kind not in "if":
            count = "one number, kg" if key == "mass" else "three numbers [x, y, z]"
            raise BodyError(f"{where}: {kind} {name!r}: {key} is {value!r}; give {count}")
        words = [f"{number:.17g}" for number in numbers]
        if key == "mass":
            holder.find("mass").set("value", words[0])
        elif key == "inertia":  # about the centre of mass, along the link's axes
            for axis, word in zip(INERTIA_KEYS, [*words, "0", "0", "0"], strict=True):
                holder.find("inertia").set(axis, word)
        else:
            if holder.find("origin") is None:
                etree.SubElement(holder, "origin")
            holder.find("origin").set("xyz", " ".join(words))


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BodyError(f"{path}: cannot be read ({error.strerror}); make it a readable file or remove it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BodyError(f"{path}: not valid TOML ({error}); fix it or remove the file") from None


def _read_sidecar(urdf: Path) -> dict[str, Any]:
    path = urdf.with_suffix(".toml")
    sidecar = _read_toml(path)
    for key in sidecar:
        find_name(key, SIDECAR_ENTRIES, what="entry", where=str(path))
    if not isinstance(sidecar.get("floats", False), bool):
        raise BodyError(f"{path}: floats is {sidecar['floats']!r}, but must be true or false")
    variants = sidecar.get("variant", {})
    if not (isinstance(variants, dict) and all(isinstance(entry, dict) for entry in variants.values())):
        raise BodyError(f"{path}: variant is {variants!r}; it must be tables, [variant.NAME.links] or .joints")
    for name, entry in variants.items():
        for key, changes in entry.items():
            find_name(key, ("links", "joints"), what="table", where=f"{path}: [variant.{name}]")
            if not (isinstance(changes, dict) and all(isinstance(change, dict) for change in changes.values())):
                raise BodyError(f"{path}: [variant.{name}] {key} must be a table of NAME = {{ mass = … }}")
    roles = sidecar.get("roles", {})
    if not (isinstance(roles, dict) and all(map(_are_words, roles.values()))):
        raise BodyError(f'{path}: roles is {roles!r}; it must be a table such as {{ ankle_y = ["left_ankle_pitch"] }}')
    stand = sidecar.get("stand", {})
    feet = stand.get("feet", {}) if isinstance(stand, dict) else None
    good = isinstance(feet, dict) and _are_words(list(feet.values())) and isinstance(stand.get("head", ""), str)
    if not good or not _are_words(stand.get("notes", [])):
        raise BodyError(
            f'{path}: stand is {stand!r}; it must be a table with feet = {{ left = "…", right = "…" }} and head = "…"'
        )
    for key in stand:
        find_name(key, ("feet", "head", "notes"), what="setting", where=f"{path}: [stand]")
    if "person" in sidecar:
        try:
            Person(**sidecar["person"])
        except TypeError:
            raise BodyError(f"{path}: [person] needs exactly mass (kg), height (m) and sex") from None
        except BodyError as error:
            raise BodyError(f"{path}: {error}") from None
    contacts = sidecar.get("contact", {})
    if not isinstance(contacts, dict):
        raise BodyError(f"{path}: contact is {contacts!r}; it must be tables, [contact.NAME] with link and points")
    for name, entry in contacts.items():
        try:
            points = np.array(entry["points"])
            good = points.ndim == 2 and points.shape[0] >= 3 and points.shape[1] == 3 and points.dtype.kind in "if"
            good = good and bool((np.abs(points) < CONTACT_REACH).all()) and isinstance(entry["link"], str)
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise BodyError(
                f"{path}: [contact.{name}] needs link and at least three points [x, y, z] in m, "
                f"none more than {CONTACT_REACH:g} m away"
            )
        for key in entry:
            find_name(key, ("link", "points"), what="setting", where=f"{path}: [contact.{name}]")
    muscles = _read_toml(urdf.with_suffix(".muscles.toml"))
    return sidecar | {"muscles": muscles} if muscles else sidecar


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _sidecar_toml(sidecar: dict[str, Any]) -> str:
    plain = ("floats", "person", "contact", "figure", "stand", "roles")
    text = _tables_toml({key: sidecar[key] for key in plain if key in sidecar})
    if "segments" in sidecar:
        rows = (
            f"{json.dumps(key, ensure_ascii=False)} = {_inline(value)}" for key, value in sidecar["segments"].items()
        )
        text += "\n".join(["[segments]", *rows, ""])
    return text


def _tables_toml(tables: dict[str, Any]) -> str:
    """TOML of plain values, tables and tables of tables, in this order."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    lines = [f"{key} = {_inline(value)}" for key, value in plain.items()] + [""] * bool(plain)
    for key, table in tables.items():
        if key in plain:
            continue
        nested = all(isinstance(value, dict) for value in table.values())
        named = {f"{key}.{_inline(name)}": entry for name, entry in table.items()} if nested else {key: table}
        for title, entry in named.items():
            lines += [f"[{title}]", *(f"{name} = {_inline(value)}" for name, value in entry.items()), ""]
    return "\n".join(lines)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
