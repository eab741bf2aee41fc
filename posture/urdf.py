"""Read a URDF and refuse what Pinocchio would swallow.

Pinocchio takes ``mass="1,5"`` as 1, text as 0, accepts negative masses, impossible inertias, zero axes and
links with two parents, and ends the whole interpreter on a few others. So nothing reaches it before every
element has been looked at here. Each refusal is one sentence with file, line and element.

No library does this well: yourdfpy and urdfdom parse but do not judge, check_urdf needs a ROS install.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from lxml import etree

from posture.errors import BodyError

MAX_BYTES = 5_000_000
MAX_LINKS = 2000  # Pinocchio's recursive URDF reader overflows the stack near 5000
MAX_MOVING = 150  # the memory of Pinocchio's work space grows with the cube: 0.2 GB here, 50 GB at 1000
MOVING_TYPES = ("revolute", "continuous", "prismatic")
NO_RADIUS = 1e-9  # m; a radius of gyration below it is rounding, and the link a point mass
RESERVED = ("universe", "root_joint")  # names Pinocchio gives to its own joints
INERTIA_KEYS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
MAX_MASS = 1e4  # kg
MAX_DISTANCE = 100.0  # m
MAX_GYRATION = 10.0  # m; sqrt(inertia / mass) of a rod of 35 m
DEGREES = (4 * math.pi, 720.0)  # a limit between these is rather degrees than turns; larger ones stand for "none"
# What each element may hold. Others are extensions of some program and pass, unless they look like a slip of the pen.
ELEMENTS = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "inertial": ("origin", "mass", "inertia"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry", "material"),
    "joint": ("parent", "child", "origin", "axis", "limit", "mimic", "dynamics", "safety_controller", "calibration"),
}
ATTRIBUTES = {
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "mass": ("value",),
    "inertia": INERTIA_KEYS,
    "limit": ("lower", "upper", "effort", "velocity"),
}
GEOMETRY_SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": (),
}


def read_urdf(path: Path) -> etree._Element:
    """Return the ``<robot>`` element of a file that passed every check below."""
    root = _parse(path)
    check_urdf(root, path)
    return root


def _parse(path: Path) -> etree._Element:
    if not path.is_file():
        raise BodyError(f"{path}: no such file; give a body's name (see `posture models`) or a path to a .urdf file")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BodyError(
            f"{path}: the file has {size} bytes, a URDF may have at most {MAX_BYTES}; keep meshes in files of their own"
        )
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BodyError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    if not text.strip():
        raise BodyError(f"{path}: the file is empty; a URDF starts with <robot name=…>")
    plain = text.replace(b"\0", b"")  # so that UTF-16 hides nothing
    entities = BodyError(
        f"{path}: document types and entities are not accepted in a URDF; remove the <!DOCTYPE …> block"
    )
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise entities
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, remove_comments=False)
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise BodyError(
            f"{path}, line {error.lineno}: not well-formed XML ({error.msg}); fix the markup there"
        ) from None
    if root.getroottree().docinfo.internalDTD is not None:  # written in an encoding that hid it above
        raise entities
    if root.tag != "robot":
        raise BodyError(
            f"{path}: the outermost element is <{root.tag}>, but a URDF has <robot>; is this another kind of file?"
        )
    return root


def check_urdf(root: etree._Element, path: Path, *, idle: bool = False) -> None:
    """Raise ``BodyError`` for the first thing in the tree that would make the dynamics wrong or unsafe.

    ``idle`` lets joints pass that move no mass.
    """
    if not root.get("name"):
        raise BodyError(f'{path}, line {root.sourceline}: <robot> has no name; write <robot name="…">')
    _check_spelling(root, path)
    links = _named(root, "link", path)
    joints = _named(root, "joint", path)
    _named(root, "material", path)
    if not links:
        raise BodyError(f"{path}: there is no <link>; a body needs at least one")
    if len(links) > MAX_LINKS:
        raise BodyError(f"{path}: {len(links)} links, at most {MAX_LINKS} are accepted; simplify the body")
    moving = sum(joint.get("type") in MOVING_TYPES for joint in joints.values())
    if moving > MAX_MOVING:
        raise BodyError(f"{path}: {moving} moving joints, at most {MAX_MOVING} are accepted; make some of them fixed")
    held = {joint.find("child").get("link") for joint in joints.values()
            if joint.get("type") == "fixed" and joint.find("child") is not None}  # fmt: skip
    for name, link in links.items():
        _check_inertial(link, path, point=name in held)
        _check_geometry(link, path)
    for material in root.iter("material"):
        _check_material(material, path)
    for joint in joints.values():
        _check_joint(joint, links, path)
    _check_tree(links, joints, path)
    if not idle:
        _check_moving_mass(links, joints, path)


def joint_ends(joint: etree._Element) -> tuple[str, str]:
    """Names of the parent and the child link of a checked joint."""
    return joint.find("parent").get("link"), joint.find("child").get("link")


def numbers(element: etree._Element, attribute: str, count: int, where: str, default: str | None = None) -> list[float]:
    """Read exactly ``count`` finite numbers from an attribute."""
    text = element.get(attribute, default)
    if text is None:
        raise BodyError(f'{where}: <{element.tag}> has no "{attribute}"; add it')
    values = []
    # Python's numbers may hold digits of any script, its blanks any kind of space; a URDF's may not.
    plain = text.isascii() and text.isprintable() and "_" not in text
    for word in text.split():
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (plain and math.isfinite(value)):
            raise BodyError(
                f'{where}: {attribute}="{text}" in <{element.tag}> is not a finite number; '
                "write digits with a point, such as 1.5, and plain blanks between numbers"
            )
        values.append(value)
    if len(values) != count:
        raise BodyError(
            f'{where}: {attribute}="{text}" in <{element.tag}> has {len(values)} numbers, {count} are needed'
        )
    return values


def _place(element: etree._Element, path: Path) -> str:
    return f"{path}, line {element.sourceline}, {element.tag} {element.get('name')!r}"


def _check_spelling(root: etree._Element, path: Path) -> None:
    """Refuse names of elements and attributes that are nearly right: readers pass over what they do not know."""
    for element in root.iter(*ELEMENTS, *ATTRIBUTES):
        parent = element.getparent()
        if parent is not None and element.tag not in ELEMENTS.get(parent.tag, ()):
            continue  # inside an extension
        known = ELEMENTS.get(element.tag, ())
        for child in element.iterchildren(tag=etree.Element):
            if child.tag in ("link", "joint") and element.tag != "robot":
                raise BodyError(
                    f"{path}, line {child.sourceline}: <{child.tag}> in <{element.tag}> would not be read; "
                    "all links and joints stand directly in <robot>"
                )
            close = difflib.get_close_matches(child.tag.lower(), known, n=1, cutoff=0.75)
            if close and child.tag not in known and not child.tag.startswith("self_"):
                raise BodyError(
                    f"{path}, line {child.sourceline}: <{child.tag}> in <{element.tag}> would not be read; "
                    f"did you mean <{close[0]}>?"
                )
        allowed = ATTRIBUTES.get(element.tag, ())
        for attribute in element.attrib if allowed else ():
            near = difflib.get_close_matches(attribute.lower(), allowed, n=1, cutoff=0.75)
            if attribute not in allowed and (near or element.tag in ("origin", "axis")):
                raise BodyError(
                    f"{path}, line {element.sourceline}: {attribute!r} in <{element.tag}> would not be read; "
                    f"it may hold {', '.join(allowed)}"
                )


def _named(root: etree._Element, tag: str, path: Path) -> dict[str, etree._Element]:
    found: dict[str, etree._Element] = {}
    for element in root.findall(tag):
        name = element.get("name")
        if not name:
            raise BodyError(f"{path}, line {element.sourceline}: a <{tag}> has no name; give it one")
        if not name.isprintable():
            raise BodyError(f"{_place(element, path)}: the name holds a line break or control character; remove it")
        if name in RESERVED:
            raise BodyError(f"{_place(element, path)}: this name is Pinocchio's own; rename the {tag}")
        if name in found:
            raise BodyError(
                f"{_place(element, path)}: the name is already taken on line {found[name].sourceline}; "
                "names must be unique"
            )
        found[name] = element
    return found


def _single(parent: etree._Element, tag: str, where: str) -> etree._Element | None:
    found = parent.findall(tag)
    if len(found) > 1:
        raise BodyError(f"{where}: <{tag}> stands {len(found)} times, at most one is allowed; remove the others")
    return found[0] if found else None


def _check_origin(parent: etree._Element, where: str) -> None:
    origin = _single(parent, "origin", where)
    if origin is None:
        return
    if max(map(abs, numbers(origin, "xyz", 3, where, "0 0 0"))) > MAX_DISTANCE:
        raise BodyError(
            f'{where}: xyz="{origin.get("xyz")}" in <origin> is more than {MAX_DISTANCE:g} m away; '
            "lengths are in m, so divide mm by 1000"
        )
    if max(map(abs, numbers(origin, "rpy", 3, where, "0 0 0"))) > 2 * math.pi + 0.01:
        raise BodyError(
            f'{where}: rpy="{origin.get("rpy")}" in <origin> is more than a full turn; '
            "angles are in rad, so multiply degrees by 0.0174533"
        )


def _check_inertial(link: etree._Element, path: Path, *, point: bool) -> None:
    """``point``: whether the link is fixed to another, so that it may be a mere point mass."""
    where = _place(link, path)
    inertial = _single(link, "inertial", where)
    if inertial is None:
        return
    _check_origin(inertial, where)
    mass_element = _single(inertial, "mass", where)
    if mass_element is None:
        raise BodyError(f"{where}: <inertial> has no <mass>; add one or remove <inertial>")
    (mass,) = numbers(mass_element, "value", 1, where)
    if mass < 0:
        raise BodyError(f"{where}: the mass is {mass:g} kg; it must be zero or more")
    if mass > MAX_MASS:
        raise BodyError(f"{where}: the mass is {mass:g} kg, at most {MAX_MASS:g} is accepted; masses are in kg, not g")
    inertia_element = _single(inertial, "inertia", where)
    if inertia_element is None:
        raise BodyError(f"{where}: <inertial> has no <inertia>; add ixx, iyy, izz, ixy, ixz and iyz")
    ixx, iyy, izz, ixy, ixz, iyz = (numbers(inertia_element, key, 1, where)[0] for key in INERTIA_KEYS)
    principal = np.linalg.eigvalsh(np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]))
    if principal[2] <= mass * NO_RADIUS**2:
        principal[:] = 0.0
    slack = 1e-9 * max(float(np.abs(principal).max()), 1e-12)
    if principal[0] < -slack:
        raise BodyError(
            f"{where}: the inertia has a principal moment of {principal[0]:.3g} kg·m²; all three must be positive"
        )
    if mass > 0 and principal[2] <= 0 and not point:
        raise BodyError(f"{where}: the mass is {mass:g} kg but the inertia is zero; give the link its inertia")
    if mass == 0 and principal[2] > slack:
        raise BodyError(f"{where}: the mass is zero but the inertia is not; give the link its mass")
    if mass > 0 and principal[2] > MAX_GYRATION**2 * mass:
        raise BodyError(
            f"{where}: an inertia of {principal[2]:.4g} kg·m² for {mass:g} kg means a link of more than "
            f"{2 * MAX_GYRATION:g} m; inertias are in kg·m², so divide kg·cm² by 10000, kg·mm² by 1000000"
        )
    # A rigid body of positive density cannot break I1 + I2 >= I3; published tables round to about 1e-3.
    if principal[0] + principal[1] < principal[2] * (1 - 1e-3):
        a, b, c = principal
        raise BodyError(
            f"{where}: no solid has principal inertias {a:.4g}, {b:.4g}, {c:.4g} kg·m² "
            "(the two smaller must add up to at least the largest); check units and order of ixx, iyy, izz"
        )


def _check_geometry(link: etree._Element, path: Path) -> None:
    where = _place(link, path)
    for holder in [*link.findall("visual"), *link.findall("collision")]:
        _check_origin(holder, where)
        geometry = _single(holder, "geometry", where)
        shapes = [] if geometry is None else [child for child in geometry if isinstance(child.tag, str)]
        if len(shapes) != 1:
            raise BodyError(f"{where}: a <{holder.tag}> needs one <geometry> with one shape, found {len(shapes)}")
        shape = shapes[0]
        if shape.tag not in GEOMETRY_SIZES:
            raise BodyError(f"{where}: unknown shape <{shape.tag}>; allowed: {', '.join(GEOMETRY_SIZES)}")
        for attribute in GEOMETRY_SIZES[shape.tag]:
            sizes = numbers(shape, attribute, 3 if attribute == "size" else 1, where)
            if min(sizes) <= 0:
                raise BodyError(f'{where}: {attribute}="{shape.get(attribute)}" of <{shape.tag}> must be positive')
        if shape.tag == "mesh":
            mesh_file(shape, path, where)
            numbers(shape, "scale", 3, where, "1 1 1")


def _check_material(material: etree._Element, path: Path) -> None:
    where = f"{path}, line {material.sourceline}, material {material.get('name')!r}"
    if not material.get("name"):
        raise BodyError(f"{where}: a <material> has no name; give it one")
    color = _single(material, "color", where)
    if color is not None:
        numbers(color, "rgba", 4, where)


def mesh_file(mesh: etree._Element, path: Path, where: str) -> Path:
    """Resolve a mesh's file, which must exist in the URDF's own folder or below it."""
    name = mesh.get("filename")
    if not name:
        raise BodyError(f"{where}: a <mesh> has no filename; add it")
    relative = PurePosixPath(name.split("://", 1)[1]) if name.startswith("package://") else PurePosixPath(name)
    folder = path.parent.resolve()
    candidates = [folder / relative]
    if name.startswith("package://"):  # package://NAME/meshes/x.stl: NAME may be this folder itself
        candidates.append(folder.joinpath(*relative.parts[1:]))
    for candidate in candidates:
        resolved = candidate.resolve()
        if "://" in str(relative) or relative.is_absolute() or not resolved.is_relative_to(folder):
            raise BodyError(
                f"{where}: mesh {name!r} lies outside {folder}; move it beside the URDF and use a relative path"
            )
        if resolved.is_file():
            return resolved
    raise BodyError(f"{where}: mesh {name!r} does not exist below {folder}; copy it there or remove the <mesh>")


def _check_joint(joint: etree._Element, links: dict[str, etree._Element], path: Path) -> None:
    where = _place(joint, path)
    kind = joint.get("type")
    if kind not in (*MOVING_TYPES, "fixed"):
        raise BodyError(
            f"{where}: joint type {kind!r} is not supported; use {', '.join(MOVING_TYPES)} or fixed "
            "(a ball joint is three revolutes; the floating base is added by posture)"
        )
    if joint.find("mimic") is not None:
        raise BodyError(f"{where}: <mimic> is not supported; make the joint fixed or free")
    _check_origin(joint, where)
    for end in ("parent", "child"):
        element = _single(joint, end, where)
        name = None if element is None else element.get("link")
        if name is None:
            raise BodyError(f'{where}: <{end} link="…"/> is missing; add it')
        if name not in links:
            raise BodyError(f"{where}: the {end} link {name!r} does not exist; define it or correct the name")
    dynamics = _single(joint, "dynamics", where)
    if dynamics is not None:
        for attribute in ("damping", "friction"):
            numbers(dynamics, attribute, 1, where, "0")
    if kind == "fixed":
        return
    axis = _single(joint, "axis", where)
    if axis is not None and np.linalg.norm(numbers(axis, "xyz", 3, where)) < 1e-6:
        raise BodyError(f'{where}: the axis is "{axis.get("xyz")}"; it must have a direction, such as "0 1 0"')
    limit = _single(joint, "limit", where)
    if limit is None:
        if kind == "continuous":
            return
        raise BodyError(f"{where}: a {kind} joint needs <limit lower upper effort velocity>; add it or use continuous")
    (lower,) = numbers(limit, "lower", 1, where, "0")
    (upper,) = numbers(limit, "upper", 1, where, "0")
    if lower > upper:
        raise BodyError(f"{where}: the limits are reversed (lower {lower:g} > upper {upper:g}); swap them")
    widest = max(abs(lower), abs(upper))
    if kind == "revolute" and DEGREES[0] < widest <= DEGREES[1]:
        raise BodyError(
            f"{where}: a limit of {widest:g} rad is more than two turns; angles are in rad, so multiply degrees by "
            "0.0174533, or use a continuous joint for one without limits"
        )
    for attribute in ("effort", "velocity"):
        if numbers(limit, attribute, 1, where)[0] < 0:
            raise BodyError(f'{where}: {attribute}="{limit.get(attribute)}" in <limit> must be zero or more')


def _check_tree(links: dict[str, etree._Element], joints: dict[str, etree._Element], path: Path) -> None:
    parent_of: dict[str, str] = {}
    for joint in joints.values():
        parent, child = joint_ends(joint)
        if child in parent_of:
            raise BodyError(
                f"{_place(joint, path)}: link {child!r} already has the parent {parent_of[child]!r}; a link has one"
            )
        parent_of[child] = parent
    grounded: set[str] = set()  # links known to hang from a root
    for name in links:
        seen = [name]
        while seen[-1] in parent_of and seen[-1] not in grounded:
            parent = parent_of[seen[-1]]
            if parent in seen:
                loop = [parent, *reversed(seen[seen.index(parent) :])]
                raise BodyError(f"{path}: links form a loop ({' → '.join(loop)}); cut one joint")
            seen.append(parent)
        grounded.update(seen)
    roots = [name for name in links if name not in parent_of]
    if len(roots) > 1:
        raise BodyError(
            f"{path}: two links have no parent ({roots[0]!r} and {roots[1]!r}); join all links into one tree"
        )


def moving_parts(
    links: dict[str, etree._Element], joints: dict[str, etree._Element]
) -> Iterator[tuple[str, list[str]]]:
    """Yield each moving joint's name with every link that it carries, directly or further out."""
    children: dict[str, list[str]] = {name: [] for name in links}
    for joint in joints.values():
        parent, child = joint_ends(joint)
        children[parent].append(child)
    for name, joint in joints.items():
        if joint.get("type") in MOVING_TYPES:
            carried = [joint_ends(joint)[1]]
            for link in carried:
                carried.extend(children[link])
            yield name, carried


def link_mass(link: etree._Element) -> float:
    """Mass of a checked link, kg."""
    element = link.find("inertial/mass")
    return 0.0 if element is None else float(element.get("value"))


def _check_moving_mass(links: dict[str, etree._Element], joints: dict[str, etree._Element], path: Path) -> None:
    for joint, carried in moving_parts(links, joints):
        if not any(link_mass(links[name]) > 0 for name in carried):
            raise BodyError(
                f"{_place(joints[joint], path)}: it moves link {carried[0]!r}, "
                "which has no mass, nor has anything beyond it; "
                "give it an <inertial> or make the joint fixed"
            )
