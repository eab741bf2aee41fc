"""Stand any human or humanoid URDF on the deck: find its feet, turn its tree round, put the feet on the deck.

Most humanoids have their root in the pelvis and their feet at the ends of the tree. Here the tree is turned round so
that it starts at the deck: the joints between root and foot change direction but keep name, coordinate and sign, so
the dynamics are those of the original with its foot held (tested against Pinocchio's constrained dynamics).

Two feet on the deck are a closed loop, which a tree cannot hold. As in ship_stance, both legs then move as one: each
pair of leg joints becomes one joint half way between them, carrying the links of both sides at their true places.
That is exact for motion in the sagittal plane, where the axes of both sides coincide. To the side it is a reduction:
the legs lean together about the middle and the pelvis may tilt over them, which a real parallelogram of legs resists.
``on="left"`` or ``"right"`` stands on one foot instead, without any reduction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree
from numpy.typing import NDArray

from posture.body import Body, _build, _read_sidecar, load_body
from posture.errors import BodyError, find_name
from posture.urdf import MOVING_TYPES, _parse, check_urdf, joint_ends, link_mass, mesh_file, moving_parts

Array = NDArray[np.floating]

STANCES = ("both", "left", "right")
FOOT_WORDS = re.compile(r"foot|feet|sole|toe", re.IGNORECASE)
HEAD_WORDS = re.compile(r"head|skull|face", re.IGNORECASE)
ANKLE_WORDS = re.compile(r"ankle|ankl", re.IGNORECASE)
LEFT_WORDS = re.compile(r"left|Left|LEFT|(?<![a-zA-Z])[lL](?![a-zA-Z])|^L(?=[A-Z])")
RIGHT_WORDS = re.compile(r"right|Right|RIGHT|(?<![a-zA-Z])[rR](?![a-zA-Z])|^R(?=[A-Z])")
SIDE_WORDS = re.compile(f"{LEFT_WORDS.pattern}|{RIGHT_WORDS.pattern}")
SOLE_THICKNESS = 0.015  # m; what of a foot lies this near the floor touches it
ROLE_WORDS = {
    "ankle": r"ankle|ankl",
    "knee": r"knee",
    "hip": r"hip(?!o)",
    "trunk": r"lumbar|spine|waist|torso|trunk|back|abdomen|thorac|chest|j?L5S1|L4L3|L1T12|T9T8",
    "neck": r"neck|head|T1C7|C1Head|skull",
    "shoulder": r"should|clavic|scapula|c7shoulder",
    "elbow": r"elbow",
    "wrist": r"wrist|hand",
}
LEG = ("ankle", "knee", "hip")


def stand(
    source: Body | str | Path,
    *,
    feet: Mapping[str, str] | None = None,
    head: str | None = None,
    on: str = "both",
) -> Body:
    """A body that stands on the deck with its feet, from a URDF (path, name or Body) whose root is anywhere.

    ``feet`` (``{"left": link, "right": link}``) and ``head`` are taken from the sidecar's ``[stand]`` table or found
    by name and place where they are not given; ``on``: both feet, or one. The result is an ordinary body: X forward,
    Y left, Z up at zero joint angles, origin on the deck midway between the ankles; write it with ``write_body``.
    """
    find_name(on, STANCES, what="stance", where="stand")
    tree = _Tree.of(source)
    if tree.stands:
        return tree.build()
    wanted = dict(feet or tree.sidecar.get("stand", {}).get("feet", {}))
    left, right = tree.find_feet(wanted)
    tree.set_upright(left, right, tree.find_head(head))
    used = {"both": [left, right], "left": [left], "right": [right]}[on]
    sole = {foot: tree.sole(foot) for foot in used}
    for foot in used:
        tree.stiffen_beyond(foot)
    ankle = np.mean([tree.world[tree.first_moving_above(foot)].translation for foot in used], axis=0)
    floor = min(float(points[:, 2].min()) for points in sole.values())
    ground = pin.SE3(np.eye(3), np.array([ankle[0], ankle[1], floor]))
    tree.turn_round(tree.merge_legs(left, right) if on == "both" else used[0], ground)
    contact = {
        ("left_foot" if name == left else "right_foot"): {
            "link": tree.deck,
            "points": [
                [round(float(x), 9) for x in ground.actInv(np.append(point[:2], floor))] for point in sole[name]
            ],
        }
        for name in used
    }
    tree.sidecar = {key: tree.sidecar[key] for key in ("person",) if key in tree.sidecar}
    tree.sidecar |= {"contact": contact, "stand": {"feet": {"left": left, "right": right}, "head": tree.head}}
    body = tree.build()
    if tree.notes:
        body.sidecar["stand"]["notes"] = tree.notes
    body.sidecar["roles"] = roles(body)
    return body


def roles(body: Body) -> dict[str, list[str]]:
    """Which joints are ankle, knee, hip, trunk, neck, shoulder, elbow, wrist about which deck axis.

    Keys such as ``ankle_y`` or ``left_elbow_z``; from the sidecar's ``[roles]`` where it has one, otherwise by name
    and by the axis at zero angles. A joint that fits nothing has no role.
    """
    if "roles" in body.sidecar:
        where = f"{body.name}: [roles] of the .toml"
        return {
            role: [find_name(name, body.joint_names, what="joint", where=where) for name in names]
            for role, names in body.sidecar["roles"].items()
        }
    jacobian = pin.computeJointJacobians(body.model, body.data, body.with_base(body.neutral))
    found: dict[str, list[str]] = {}
    for index, name in enumerate(body.joint_names):
        axis = jacobian[3:, 6 + index]
        if np.abs(axis).max(initial=0) < 0.9:
            continue
        word = next((role for role, pattern in ROLE_WORDS.items() if re.search(pattern, name, re.IGNORECASE)), None)
        if word is None:
            continue
        height = body.data.oMi[2 + index].translation
        side = "" if word in ("trunk", "neck") or abs(height[1]) < 1e-3 else ("left_" if height[1] > 0 else "right_")
        found.setdefault(f"{side}{word}_{'xyz'[int(np.argmax(np.abs(axis)))]}", []).append(name)
    return found


def by_role(body: Body, settings: Mapping[str, float], *, rest: float | None = None) -> dict[str, float]:
    """Settings by joint name from settings by role: ``{"ankle_y": 900, "hip": 600}`` (all axes and sides of the hip).

    The more exact key wins: ``left_hip_y``, ``hip_y``, ``left_hip``, ``hip``. Joints without a role or a setting get
    ``rest``; without ``rest`` they are refused, so that no joint is left limp by a spelling.
    """
    table = roles(body)
    known = {name for role in table for name in _role_keys(role)}
    for key in settings:
        find_name(key, sorted(known), what="joint role", where=body.name)
    result: dict[str, float] = {}
    for role, joints in table.items():
        value = next((settings[key] for key in _role_keys(role) if key in settings), rest)
        if value is not None:
            result |= dict.fromkeys(joints, float(value))
    for name in body.joint_names:
        if name not in result:
            if rest is None:
                raise BodyError(
                    f"{body.name}: joint {name!r} has no setting for its role; add its role to [roles] of the .toml "
                    "and to the settings, or give a value for the rest"
                )
            result[name] = rest
    return result


def _role_keys(role: str) -> list[str]:
    """Keys that mean a role, the most exact first."""
    side, _, plain = role.partition("_") if role.startswith(("left_", "right_")) else ("", "", role)
    keys = [role, plain]
    if side:
        keys += [f"{side}_{plain[:-2]}"]
    return [*dict.fromkeys([*keys, plain[:-2]])]


@dataclass
class _Tree:
    """A URDF being turned round: the XML, and where every link is at zero angles in the first root's frame."""

    name: str
    path: Path
    root: etree._Element
    sidecar: dict[str, Any]
    locked: dict[str, float]
    notes: list[str]
    head: str = ""
    deck: str = "deck"

    @classmethod
    def of(cls, source: Body | str | Path) -> _Tree:
        """Read a source; what a standing body does not need is dropped, and noted."""
        if not isinstance(source, Body) and str(source).endswith((".urdf", ".xml")):
            path = Path(source).expanduser()
            notes: list[str] = []
            root = _tamed(_parse(path), path, notes)
            check_urdf(root, path, idle=True)
            _stop_idle_joints(root, notes)
            return cls(path.stem, path, root, _read_sidecar(path), {}, notes)
        body = source if isinstance(source, Body) else load_body(source)
        root = etree.fromstring(body.urdf.encode())
        return cls(body.name, body.path, root, dict(body.sidecar), dict(body.locked), [])

    def build(self) -> Body:
        """The body of the present tree; locked joints that still exist stay locked."""
        check_urdf(self.root, self.path)
        body = _build(self.name, self.path, self.root, self.sidecar)
        return body.lock({name: value for name, value in self.locked.items() if name in body.joint_names})

    # ------------------------------------------------------------ looking

    @property
    def links(self) -> dict[str, etree._Element]:
        return {link.get("name"): link for link in self.root.findall("link")}

    @property
    def joints(self) -> dict[str, etree._Element]:
        return {joint.get("name"): joint for joint in self.root.findall("joint")}

    @property
    def above(self) -> dict[str, etree._Element]:
        """The joint above each link."""
        return {joint_ends(joint)[1]: joint for joint in self.root.findall("joint")}

    @property
    def top(self) -> str:
        above = self.above
        return next(name for name in self.links if name not in above)

    @property
    def stands(self) -> bool:
        """Whether the root is a floor or stands on it: it touches the deck, or has neither mass nor feet that move."""
        if self.sidecar.get("floats", False):
            return False
        if any(self.carrier(entry["link"]) is None for entry in self.sidecar.get("contact", {}).values()):
            return True  # what touches the deck is a rigid part of the root
        return self.mass(self.top) == 0 and not all(self.named_feet().values())

    @property
    def world(self) -> dict[str, pin.SE3]:
        """Placement of every link at zero angles, in the root's frame."""
        placed = {self.top: pin.SE3.Identity()}
        waiting = self.root.findall("joint")
        while waiting:
            later = []
            for joint in waiting:
                parent, child = joint_ends(joint)
                if parent in placed:
                    placed[child] = placed[parent] * _origin(joint)
                else:
                    later.append(joint)
            waiting = later
        return placed

    def mass(self, link: str) -> float:
        return link_mass(self.links[link])

    def path_down(self, link: str) -> list[etree._Element]:
        """Joints from the root to a link."""
        above, found = self.above, []
        while link in above:
            found.append(above[link])
            link = joint_ends(above[link])[0]
        return found[::-1]

    def beyond(self, link: str) -> list[str]:
        """A link and everything further out."""
        found = [link]
        for name in found:
            found.extend(joint_ends(joint)[1] for joint in self.root.findall("joint") if joint_ends(joint)[0] == name)
        return found

    def first_moving_above(self, link: str) -> str:
        """The child link of the nearest moving joint at or above a link: its frame is where that joint is."""
        above = self.above
        while above[link].get("type") == "fixed":
            link = joint_ends(above[link])[0]
        return link

    def carrier(self, link: str) -> str | None:
        """What a link is a rigid part of: the child of the nearest moving joint; none if that has no mass.

        A sole is often a mere frame fixed to the last link of the leg, which has the mass and the shape.
        """
        above = self.above
        while link in above and above[link].get("type") == "fixed":
            link = joint_ends(above[link])[0]
        if link not in above:
            return None
        rigid = [link]
        for name in rigid:
            rigid += [joint_ends(joint)[1] for joint in self.root.findall("joint")
                      if joint.get("type") == "fixed" and joint_ends(joint)[0] == name]  # fmt: skip
        return link if any(self.mass(name) > 0 for name in rigid) else None

    def side(self, link: str) -> str:
        """Left or right, by name, else by place; empty in the middle."""
        left, right = bool(LEFT_WORDS.search(link)), bool(RIGHT_WORDS.search(link))
        if left != right:
            return "left" if left else "right"
        across = float(self.world[link].translation[1])
        return "" if abs(across) < 0.01 else "left" if across > 0 else "right"

    def find_feet(self, wanted: dict[str, str]) -> tuple[str, str]:
        """Left and right foot: as named, else what carries mass and is called foot, sole or toe, nearest to the root.

        Where nothing is called so, the outermost link of each side that is called ankle.
        """
        links, world = self.links, self.world
        if wanted:
            for side in wanted:
                find_name(side, ("left", "right"), what="side", where=f"{self.path}: feet")
            if len(wanted) != 2:
                raise BodyError(f"{self.path}: feet needs both left and right; name the two links that touch the deck")
            told = [find_name(wanted[side], links, what="link", where=str(self.path)) for side in ("left", "right")]
            found = [self.carrier(name) or name for name in told]
            if found[0] == found[1]:
                raise BodyError(f"{self.path}: both feet are {found[0]!r}; name two links")
        else:
            sides = self.named_feet()
            if not sides["left"] or not sides["right"]:
                lowest = sorted(links, key=lambda name: float(world[name].translation[2]))[:4]
                raise BodyError(
                    f"{self.path}: which links are the feet cannot be told from their names; say "
                    f'feet = {{ left = "…", right = "…" }} under [stand] in {self.path.stem}.toml '
                    f"(the lowest links are {', '.join(lowest)})"
                )
            found = [sides["left"][0], sides["right"][0]]
        for name in found:
            if not any(joint.get("type") in MOVING_TYPES for joint in self.path_down(name)):
                raise BodyError(f"{self.path}: foot {name!r} cannot move against the root; name a link beyond a joint")
        return found[0], found[1]

    def named_feet(self) -> dict[str, list[str]]:
        """What the names of links tell of the feet, by side, the likeliest first."""
        links = self.links
        named = [name for name in links if FOOT_WORDS.search(name)]
        sides = self._by_side(named + [entry["link"] for entry in self.sidecar.get("contact", {}).values()])
        if sides["left"] or sides["right"]:
            return sides
        ankles = self._by_side([name for name in links if ANKLE_WORDS.search(name)])
        return {side: found[::-1] for side, found in ankles.items()}

    def _by_side(self, named: list[str]) -> dict[str, list[str]]:
        """What carries the named links, by side, nearest to the root first."""
        sides: dict[str, list[str]] = {"left": [], "right": []}
        for name in sorted(set(named), key=lambda name: (len(self.path_down(name)), name)):
            carrier = self.carrier(name)
            side = self.side(name) if carrier else ""
            if side:
                sides[side].append(str(carrier))
        return sides

    def find_head(self, head: str | None) -> str:
        """The head: as named, else a link called so, else the highest link with mass."""
        wanted = head or self.sidecar.get("stand", {}).get("head")
        if wanted:
            self.head = find_name(wanted, self.links, what="link", where=f"{self.path}: head")
            return self.head
        solid, world = [name for name in self.links if self.mass(name) > 0], self.world
        named = [name for name in solid if HEAD_WORDS.search(name)]
        self.head = max(named or solid, key=lambda name: float(world[name].translation[2]))
        return self.head

    def set_upright(self, left: str, right: str, head: str) -> None:
        """Turn a body whose Y or X axis is up (ISB: Y) or that faces Y; refuse one that is not upright at zero."""
        up, across = self._directions(left, right, head)
        axes = [np.sign(one) * (np.abs(one) > 0.9 * np.linalg.norm(one)) for one in (across, up)]
        turn = np.array([np.cross(axes[0], axes[1]), *axes])
        # Half a turn about Z is no other convention: the feet are swapped, or the body looks backwards.
        if abs(np.linalg.det(turn) - 1) < 1e-9 and not np.allclose(turn, np.diag([-1, -1, 1])):
            if not np.allclose(turn, np.eye(3)):
                top, base = self.top, self._free_name("upright", self.links)
                self.root.insert(0, etree.Element("link", name=base))
                joint = etree.SubElement(self.root, "joint", name=self._free_name("turn", self.joints), type="fixed")
                etree.SubElement(joint, "parent", link=base)
                etree.SubElement(joint, "child", link=top)
                _set_origin(joint, pin.SE3(turn, np.zeros(3)))
                ahead, _, above = (f"{'-' if row.sum() < 0 else ''}{'XYZ'[int(np.abs(row).argmax())]}" for row in turn)
                self.notes.append(f"turned, as the file has {ahead} forward and {above} up")
            return
        if up[2] < 0.8 * np.linalg.norm(up):
            raise BodyError(
                f"{self.path}: with all joints at zero, {head!r} is not above the feet along Z; "
                "turn the root link so that Z is up, or name the feet and the head"
            )
        if across[1] < 0.8 * np.linalg.norm(across):
            raise BodyError(
                f"{self.path}: with all joints at zero, {left!r} is not to the left (Y) of {right!r}; "
                "turn the root link so that X is forward and Y left, or swap the feet"
            )

    def _directions(self, left: str, right: str, head: str) -> tuple[Array, Array]:
        """From the feet to the head, and from the right foot to the left."""
        world = self.world
        feet = (world[left].translation + world[right].translation) / 2
        return world[head].translation - feet, world[left].translation - world[right].translation

    def sole(self, foot: str) -> Array:
        """Points (n × 3, first root's frame) with which a foot and its toes touch the floor at zero angles."""
        world, members = self.world, self.beyond(foot)
        points = [
            world[entry["link"]].act(np.array(point, float))
            for entry in self.sidecar.get("contact", {}).values()
            if entry["link"] in members
            for point in entry["points"]
        ]
        if not points:
            for tag in ("collision", "visual"):
                for name in members:
                    for holder in self.links[name].findall(tag):
                        points += _touching(holder, world[name] * _origin(holder))
                if points:
                    break
        array = np.array(points)
        low = array[array[:, 2] < array[:, 2].min() + SOLE_THICKNESS] if len(points) else array
        if len(low) < 3:
            raise BodyError(
                f"{self.path}: foot {foot!r} has no box, cylinder or three spheres to stand on; add its outline as "
                f'[contact.NAME] link = "{foot}", points = [[x, y, z], …] to {self.path.stem}.toml'
            )
        return np.asarray(low)

    # ------------------------------------------------------------ changing

    def stiffen_beyond(self, foot: str) -> None:
        """Toes lie flat on the deck: joints beyond a foot become fixed."""
        members = self.beyond(foot)
        for name, joint in self.joints.items():
            if joint_ends(joint)[0] in members and joint.get("type") != "fixed":
                _fix(joint)
                self.notes.append(f"joint {name} is fixed, as what it moves lies flat on the deck")

    def merge_legs(self, left: str, right: str) -> str:
        """Make one leg of two; returns the link that both feet are fixed to."""
        chains = [self.path_down(left), self.path_down(right)]
        while chains[0] and chains[1] and chains[0][0] is chains[1][0]:
            chains = [chains[0][1:], chains[1][1:]]
        world = self.world
        moving = [[joint for joint in chain if joint.get("type") in MOVING_TYPES] for chain in chains]
        if len(moving[0]) != len(moving[1]):
            raise BodyError(
                f"{self.path}: the left leg has {len(moving[0])} joints and the right {len(moving[1])}, so they cannot "
                'move as one; stand on one foot (on="left"), or fix the joints that differ'
            )
        parent = joint_ends(chains[0][0])[0]
        frame = world[parent]
        carriers: list[dict[str, tuple[str, pin.SE3]]] = [{}, {}]  # each side's link: what carries it now, and where
        for pair in zip(*moving, strict=True):
            places = [world[joint_ends(joint)[1]] for joint in pair]
            axes = [place.rotation @ _axis(joint) for place, joint in zip(places, pair, strict=True)]
            along = float(axes[0] @ axes[1])
            if pair[0].get("type") != pair[1].get("type") or abs(along) < 0.999:
                raise BodyError(
                    f"{self.path}: joints {pair[0].get('name')!r} and {pair[1].get('name')!r} turn about different "
                    'axes, so the legs cannot move as one; stand on one foot (on="left")'
                )
            placed = pin.SE3(places[0].rotation, (places[0].translation + places[1].translation) / 2)
            link = self._free_name(_common_name(*(joint_ends(joint)[1] for joint in pair)), self.links)
            etree.SubElement(self.root, "link", name=link)
            joint = etree.SubElement(self.root, "joint", type=pair[0].get("type"))
            joint.set("name", self._free_name(_common_name(*(joint.get("name") for joint in pair)), self.joints))
            etree.SubElement(joint, "parent", link=parent)
            etree.SubElement(joint, "child", link=link)
            _set_origin(joint, frame.actInv(placed))
            etree.SubElement(joint, "axis", xyz=_words(_axis(pair[0])))
            _add_common_limits(joint, pair, same=along > 0)
            for side, chain in enumerate(chains):
                start = chain.index(pair[side])
                for step in chain[start:]:
                    if step is not pair[side] and step.get("type") in MOVING_TYPES:
                        break
                    carriers[side][joint_ends(step)[1]] = (link, placed)
            parent, frame = link, placed
        for side, chain in enumerate(chains):
            for joint in chain:
                self.root.remove(joint)
            for name, (carrier, placed) in carriers[side].items():
                used = any(joint_ends(joint)[0] == name for joint in self.root.findall("joint"))
                if self.mass(name) > 0 or used or len(self.links[name].findall("visual")):
                    weld = etree.SubElement(self.root, "joint", name=f"{name}_in_{carrier}", type="fixed")
                    etree.SubElement(weld, "parent", link=carrier)
                    etree.SubElement(weld, "child", link=name)
                    _set_origin(weld, placed.actInv(world[name]))
                else:
                    self.root.remove(self.links[name])
        self.notes.append("both legs move as one (exact in the sagittal plane)")
        return parent

    def turn_round(self, foot: str, ground: pin.SE3) -> None:
        """Make the deck the root, at ``ground`` (first root's frame), with a foot fixed to it."""
        place = self.world[foot]
        path = self.path_down(foot)
        moved: dict[str, pin.SE3] = {}  # new frame of a link in its old one
        for joint in path:
            moved[joint_ends(joint)[0]] = _origin(joint)
        for link, shift in moved.items():
            for holder in self.links[link]:
                if holder.tag in ("inertial", "visual", "collision"):
                    _set_origin(holder, shift.actInv(_origin(holder)))
            for joint in self.root.findall("joint"):
                if joint_ends(joint)[0] == link and joint not in path:
                    _set_origin(joint, shift.actInv(_origin(joint)))
        for joint in path:
            parent, child = joint_ends(joint)
            _set_origin(joint, moved[child].inverse() if child in moved else pin.SE3.Identity())
            joint.find("parent").set("link", child)
            joint.find("child").set("link", parent)
            if joint.get("type") != "fixed":
                axis = joint.find("axis")
                axis = etree.SubElement(joint, "axis", xyz="1 0 0") if axis is None else axis
                axis.set("xyz", _words(-_axis(joint)))
        self.deck = self._free_name("deck", self.links)
        self.root.insert(0, etree.Element("link", name=self.deck))
        joint = etree.Element("joint", name=self._free_name(f"{foot}_on_deck", self.joints), type="fixed")
        etree.SubElement(joint, "parent", link=self.deck)
        etree.SubElement(joint, "child", link=foot)
        _set_origin(joint, ground.actInv(place))
        self.root.append(joint)

    def _free_name(self, name: str, taken: Mapping[str, Any]) -> str:
        return name if name not in taken else self._free_name(f"{name}_", taken)


def _tamed(root: etree._Element, path: Path, notes: list[str]) -> etree._Element:
    """Leave out what posture's own bodies may not have, but a robot's may; say so in ``notes``."""
    for holder in [*root.iter("visual"), *root.iter("collision")]:
        box = holder.find("geometry/box")
        if box is not None and set(box.get("size", "").split()) == {"0"}:
            holder.getparent().remove(holder)  # a box without size marks a point, as human-gazebo's do
            continue
        mesh = holder.find("geometry/mesh")
        if mesh is not None:
            try:
                mesh_file(mesh, path, "")
            except BodyError:
                holder.getparent().remove(holder)
                notes.append(f"mesh {mesh.get('filename')} is absent and not drawn")
    for joint in root.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            joint.remove(mimic)
            _fix(joint)
            notes.append(f"joint {joint.get('name')} only followed another and is fixed")
    children = [joint for joint in root.findall("joint") if joint.find("child") is not None]
    below = {joint.find("child").get("link") for joint in children}
    for link in root.findall("link"):
        hanging = [joint for joint in children if joint.find("parent") is not None
                   and joint.find("parent").get("link") == link.get("name")]  # fmt: skip
        massless = link.find("inertial/mass") is None
        if link.get("name") not in below and massless and len(hanging) == 1:
            joint = hanging[0]
            if joint.get("type") == "floating" or (joint.get("type") == "fixed" and _is_plain(joint)):
                root.remove(link)
                root.remove(joint)
                notes.append(f"link {link.get('name')} was only a frame for the root and is left out")
            break
    return root


def _is_plain(joint: etree._Element) -> bool:
    """Whether a joint does not turn what it carries."""
    return bool(np.allclose(_origin(joint).rotation, np.eye(3), atol=1e-9))


def _fix(joint: etree._Element) -> None:
    joint.set("type", "fixed")
    for tag in ("axis", "limit", "dynamics", "safety_controller", "calibration"):
        for element in joint.findall(tag):
            joint.remove(element)


def _origin(element: etree._Element) -> pin.SE3:
    origin = element.find("origin")
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (np.array(origin.get(key, "0 0 0").split(), float) for key in ("xyz", "rpy"))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def _set_origin(element: etree._Element, placement: pin.SE3) -> None:
    origin = element.find("origin")
    if origin is None:
        origin = etree.SubElement(element, "origin")
    origin.set("xyz", _words(placement.translation))
    origin.set("rpy", _words(pin.rpy.matrixToRpy(placement.rotation)))


def _axis(joint: etree._Element) -> Array:
    axis = joint.find("axis")
    direction = np.array([1.0, 0, 0] if axis is None else [float(word) for word in axis.get("xyz").split()])
    return np.asarray(direction / np.linalg.norm(direction))


def _words(values: Any) -> str:
    return " ".join(f"{value + 0.0:.17g}" for value in values)


def _common_name(left: str, right: str) -> str:
    """What two names share without left and right: ``left_hip_y`` and ``right_hip_y`` give ``hip_y``."""
    plain = [re.sub(r"__+", "_", SIDE_WORDS.sub("", name)).strip("_") for name in (left, right)]
    return plain[0] if plain[0] and plain[0] == plain[1] else f"{left}_and_{right}"


def _add_common_limits(joint: etree._Element, pair: tuple[etree._Element, ...], *, same: bool) -> None:
    """Limits that both legs keep; effort is that of both."""
    limits = [one.find("limit") for one in pair]
    if any(limit is None for limit in limits):
        joint.set("type", "continuous" if joint.get("type") == "continuous" else joint.get("type"))
        return
    ranges = [[float(limit.get(key, "0")) for key in ("lower", "upper")] for limit in limits]
    if not same:
        ranges[1] = [-ranges[1][1], -ranges[1][0]]
    lower, upper = max(ranges[0][0], ranges[1][0]), min(ranges[0][1], ranges[1][1])
    if lower > upper:
        lower, upper = ranges[0]
    effort = sum(float(limit.get("effort")) for limit in limits)
    velocity = min(float(limit.get("velocity")) for limit in limits)
    etree.SubElement(
        joint,
        "limit",
        lower=f"{lower:.17g}",
        upper=f"{upper:.17g}",
        effort=f"{effort:.17g}",
        velocity=f"{velocity:.17g}",
    )


def _stop_idle_joints(root: etree._Element, notes: list[str]) -> None:
    """Fix joints that move nothing with mass, such as fingers that are only drawn."""
    links = {link.get("name"): link for link in root.findall("link")}
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    for name, carried in list(moving_parts(links, joints)):
        if not any(link_mass(links[link]) > 0 for link in carried):
            _fix(joints[name])
            notes.append(f"joint {name} moves nothing that has mass and is fixed")


def _touching(holder: etree._Element, placed: pin.SE3) -> list[Array]:
    """Points of a placed shape that may touch the floor; a mesh has none that can be trusted."""
    shape = next((child for child in holder.find("geometry") if isinstance(child.tag, str)), None)
    if shape is None or shape.tag == "mesh":
        return []
    if shape.tag == "box":
        half = np.array([float(word) for word in shape.get("size").split()]) / 2
    else:
        radius = float(shape.get("radius"))
        if shape.tag == "sphere":
            return [placed.translation - [0, 0, radius]]
        length = float(shape.get("length")) / 2 + (radius if shape.tag == "capsule" else 0)
        half = np.array([radius, radius, length])
    return [placed.act(half * np.array([x, y, z])) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
