r"""Muscles for any URDF body: paths over links and pulleys, lengths, moment arms, and how strong they are.

A body's muscles stand in STEM.muscles.toml beside STEM.urdf:

    specific_tension_mpa = 0.61            # stress of a fully active muscle: max_force = PCSA · specific tension

    [pulley.knee_cap]                      # a cylinder fixed to a link, which a tendon may wrap
    link = "thigh"
    center = [0.0, 0.0, -0.43]             # m, in the link's frame
    axis = [0, 1, 0]                       # the path turns about it by the right-hand rule, from origin to insertion
    radius = 0.042                         # m

    [muscle.vasti]
    max_force = 5000.0                     # N (or pcsa_cm2)
    optimal_fiber_length = 0.087           # m   \
    tendon_slack_length = 0.136            # m    } only for force-length-velocity bounds
    pennation_deg = 3.0                    #     /
    path = [{ link = "thigh", point = [0.03, 0, -0.2] }, { pulley = "knee_cap" }, { link = "shank", point = [0.04, 0, -0.08] }]

A path runs straight between its points. Round a pulley it takes the shortest way, or passes it freely when the straight
line already clears it, so lengths and moment arms never jump. Moment arms follow from the pull on each point by virtual
work; tests compare them with -dl/dq. The pull on a pulley's link acts at the two tangent points, which is right for a
pulley without friction because sliding them changes no length (first order).

OpenSim has such muscles for its own models; no URDF or Pinocchio tool does, hence this file.
"""  # noqa: E501

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posture.body import Body
from posture.errors import BodyError, check_number, find_name
from posture.kinematics import Posture, postures, tree_of

Array = NDArray[np.floating]

SPECIFIC_TENSION_MPA = 0.61  # N/mm²; the value behind the OpenSim lower-limb models, from a secondary source
CENTER_CLEARANCE = 1e-3  # m: a path nearer to a joint's centre than this could not turn the joint
POINT_KEYS = ("link", "point", "pulley")
MUSCLE_KEYS = (
    "path",
    "max_force",
    "pcsa_cm2",
    "optimal_fiber_length",
    "tendon_slack_length",
    "pennation_deg",
    "source",
)


@dataclass(frozen=True)
class Place:
    """A point fixed to a link, given in the frame of the joint that carries the link (-1: root)."""

    joint: int
    point: Array


@dataclass(frozen=True)
class Pulley:
    """A cylinder fixed to a link; centre and unit axis in the frame of the joint that carries it."""

    name: str
    joint: int
    center: Array
    axis: Array
    radius: float


@dataclass(frozen=True)
class Muscle:
    """One muscle; lengths in m, force in N, pennation at optimal length in rad. NaN: not said."""

    name: str
    path: tuple[Place | Pulley, ...]
    max_force: float
    optimal_fiber_length: float
    tendon_slack_length: float
    pennation: float


@dataclass(frozen=True)
class Curves:
    """Shape of force over length and velocity, after Thelen (2003); the numbers are from a secondary source.

    Active: exp(-(l - 1)²/width). Passive: (exp(k (l - 1)/strain) - 1)/(exp k - 1). Shortening at v (in maximal
    shortening velocities, negative): (1 + v)/(1 - v/curvature); lengthening tends to ``eccentric``.
    """

    width: float = 0.45
    passive_shape: float = 5.0
    passive_strain: float = 0.6
    curvature: float = 0.25
    eccentric: float = 1.4
    maximal_velocity: float = 10.0  # optimal fibre lengths per second

    def active_length(self, length: Array) -> Array:
        """Active force over normalised fibre length."""
        return np.asarray(np.exp(-((length - 1) ** 2) / self.width))

    def passive(self, length: Array) -> Array:
        """Passive force over normalised fibre length; zero when short."""
        stretched = np.maximum(length - 1, 0) / self.passive_strain
        return np.asarray(np.expm1(self.passive_shape * stretched) / np.expm1(self.passive_shape))

    def velocity(self, velocity: Array) -> Array:
        """Factor of the active force over velocity in optimal fibre lengths per second, shortening negative."""
        v = np.clip(np.asarray(velocity) / self.maximal_velocity, -1, None)
        down, up = np.minimum(v, 0), np.maximum(v, 0)
        rise = up * (2 + 2 / self.curvature) / (self.eccentric - 1)
        return np.asarray(
            np.where(v <= 0, (1 + down) / (1 - down / self.curvature), (1 + self.eccentric * rise) / (1 + rise))
        )


@dataclass(frozen=True)
class Pulls:
    """Where one muscle pulls: joints that carry the points, the points (3 × frames) and the pull per newton."""

    joints: list[int]
    points: list[Array]
    pulls: list[Array]


@dataclass(frozen=True)
class Paths:
    """Muscles in some postures: length (frames × muscles, m), moment arm (frames × joints × muscles, m), pulls.

    A moment arm is the torque on a joint per newton of tension, -dl/dq; a slide's is a pure number.
    """

    length: Array
    moment_arm: Array
    pulls: list[Pulls]

    def points(self) -> Array:
        """Path points in the world, frames × muscles × points × 3, NaN where a muscle has fewer points."""
        most = max(len(pull.points) for pull in self.pulls)
        found = np.full((len(self.length), len(self.pulls), most, 3), np.nan)
        for index, pull in enumerate(self.pulls):
            for place, point in enumerate(pull.points):
                found[:, index, place] = point.T
        return found


@dataclass(frozen=True)
class Muscles:
    """The muscles of a body, in the order of every muscle array."""

    body: Body
    muscles: tuple[Muscle, ...]
    specific_tension: float  # Pa

    @property
    def names(self) -> list[str]:
        """Names, in order."""
        return [muscle.name for muscle in self.muscles]

    @cached_property
    def max_force(self) -> Array:
        """Largest isometric forces, N."""
        return np.array([muscle.max_force for muscle in self.muscles])

    @property
    def area(self) -> Array:
        """Physiological cross-sections A, m²; the stress in a muscle is F/A."""
        return self.max_force / self.specific_tension

    @cached_property
    def joints(self) -> list[int]:
        """Joints that at least one muscle crosses, by index."""
        tree = tree_of(self.body)
        crossed: set[int] = set()
        for muscle in self.muscles:
            chains = [set(tree.above(place.joint)) for place in muscle.path]
            for one, other in pairwise(chains):
                crossed |= one ^ other
        return sorted(crossed)

    def paths(self, posture: Posture) -> Paths:
        """Lay all muscles over placed links (see kinematics.postures)."""
        frames = posture.frames
        length = np.empty((len(self.muscles), frames))
        arm = np.zeros((len(self.muscles), len(self.body.joint_names), frames))
        pulls = []
        for index, muscle in enumerate(self.muscles):
            length[index], found = _lay(muscle, posture, arm[index], self.body)
            pulls.append(found)
        return Paths(length.T, np.moveaxis(arm, 2, 0).swapaxes(1, 2), pulls)

    def pulls(self, posture: Posture, chosen: list[int]) -> list[Pulls]:
        """Where some muscles (by index) pull, without lengths and moment arms."""
        return [_lay(self.muscles[index], posture, None, self.body)[1] for index in chosen]

    def at(self, position: Array) -> Paths:
        """Muscles in configurations (frames × joints) of the body with its root at the origin."""
        return self.paths(postures(self.body, position))

    def strength(self, length: Array, velocity: Array, curves: Curves | None = None) -> tuple[Array, Array]:
        """Force at full activation without its passive part, and that passive part (N, frames × muscles).

        Tendons are rigid: the fibre follows the whole muscle's ``length`` (m) and ``velocity`` (m/s, lengthening
        positive), its thickness stays, so cos(pennation) = (l - l_tendon)/l_fibre.
        """
        curves = curves or Curves()
        for muscle in self.muscles:
            if not np.isfinite(muscle.optimal_fiber_length + muscle.tendon_slack_length + muscle.pennation):
                raise BodyError(
                    f"{_file(self.body)}: muscle {muscle.name!r} has no fibre data; add optimal_fiber_length, "
                    "tendon_slack_length (m) and pennation_deg, or leave bounds by force, length and velocity out"
                )
        best = np.array([muscle.optimal_fiber_length for muscle in self.muscles])
        thickness = best * np.sin([muscle.pennation for muscle in self.muscles])
        along = length - np.array([muscle.tendon_slack_length for muscle in self.muscles])
        fiber = np.hypot(np.maximum(along, 0), thickness)
        slope = np.maximum(along, 0) / np.maximum(fiber, 1e-9)
        shape = curves.active_length(fiber / best) * curves.velocity(velocity * slope / best)
        return self.max_force * shape * slope, self.max_force * curves.passive(fiber / best) * slope


def load_muscles(body: Body) -> Muscles:
    """Read and check the muscles that stand beside a body's URDF."""
    where = _file(body)
    tables = body.sidecar.get("muscles", {})
    if not tables.get("muscle"):
        raise BodyError(f"{where}: no muscles are known; add [muscle.NAME] with max_force and path")
    for key in tables:
        find_name(key, ("specific_tension_mpa", "source", "pulley", "muscle"), what="entry", where=where)
    tension = check_number(
        tables.get("specific_tension_mpa", SPECIFIC_TENSION_MPA),
        what=f"{where}: specific_tension_mpa",
        unit="N/mm²",
        low=0.01,
        high=10,
        error=BodyError,
    )
    pulleys = {name: _pulley(body, name, entry, where) for name, entry in _tables(tables, "pulley", where)}
    found = tuple(
        _muscle(body, name, entry, pulleys, tension, where) for name, entry in _tables(tables, "muscle", where)
    )
    muscles = Muscles(body, found, tension * 1e6)
    _check_paths(muscles, where)
    return muscles


def scaled_muscles(old: Body, new: Body) -> dict[str, Any]:
    """Muscle table of a body scaled to another person, whose places are scaled already.

    Pulleys grow with stature. Fibres and tendons keep their share of the upright length, and volume goes with body
    mass, so force goes with mass over length.
    """
    tables: dict[str, Any] = copy.deepcopy(new.sidecar["muscles"])
    assert old.person is not None  # a scaled body has one
    assert new.person is not None
    for pulley in tables.get("pulley", {}).values():
        pulley["radius"] = round(pulley["radius"] * new.person.height / old.person.height, 6)
    upright = [
        load_muscles(body).at(body.neutral).length[0]
        for body in (old, Body(new.name, new.path, new.urdf, new.sidecar | {"muscles": tables}, new.model))
    ]
    for entry, growth in zip(tables["muscle"].values(), upright[1] / upright[0], strict=True):
        for key in ("optimal_fiber_length", "tendon_slack_length"):
            if key in entry:
                entry[key] = round(entry[key] * float(growth), 6)
        for key in ("max_force", "pcsa_cm2"):
            if key in entry:
                entry[key] = round(entry[key] * new.person.mass / old.person.mass / float(growth), 4)
    return tables


# ---------------------------------------------------------------- reading and checking


def _file(body: Body) -> str:
    return str(body.path.with_suffix(".muscles.toml"))


def _tables(tables: dict[str, Any], key: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    found = tables.get(key, {})
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise BodyError(f"{where}: {key!r} must be tables; write [{key}.NAME]")
    return list(found.items())


def _vector(value: object, what: str) -> Array:
    try:
        vector = np.array(value, float)
        good = vector.shape == (3,) and bool(np.isfinite(vector).all())
    except (TypeError, ValueError):
        good = False
    if not good:
        raise BodyError(f"{what} is {value!r}, but must be three finite numbers [x, y, z] in m")
    return vector


def _in_joint(body: Body, link: object, point: Array, where: str) -> tuple[int, Any]:
    """Joint that carries a link, and the placement of the link's frame in the joint's."""
    links = [frame.name for frame in body.model.frames if body.model.existBodyName(frame.name)]
    frame = body.model.frames[body.link_frame(find_name(str(link), links, what="link", where=where))]
    return int(frame.parentJoint) - 2, frame.placement


def _pulley(body: Body, name: str, entry: dict[str, Any], where: str) -> Pulley:
    here = f"{where}: pulley {name!r}"
    for key in entry:
        find_name(key, ("link", "center", "axis", "radius", "source"), what="entry", where=here)
    for key in ("link", "center", "axis", "radius"):
        if key not in entry:
            raise BodyError(f"{here} has no {key}; a pulley needs link, center, axis and radius")
    center, axis = _vector(entry["center"], f"{here}: center"), _vector(entry["axis"], f"{here}: axis")
    if np.linalg.norm(axis) < 1e-6:
        raise BodyError(f"{here}: the axis is zero; it must have a direction, such as [0, 1, 0]")
    radius = check_number(entry["radius"], what=f"{here}: radius", unit="m", low=1e-4, high=1, error=BodyError)
    joint, placement = _in_joint(body, entry["link"], center, here)
    return Pulley(name, joint, placement.act(center), placement.rotation @ axis / np.linalg.norm(axis), radius)


def _muscle(
    body: Body, name: str, entry: dict[str, Any], pulleys: dict[str, Pulley], tension: float, where: str
) -> Muscle:
    here = f"{where}: muscle {name!r}"
    for key in entry:
        find_name(key, MUSCLE_KEYS, what="entry", where=here)
    if ("max_force" in entry) == ("pcsa_cm2" in entry):
        raise BodyError(f"{here} needs either max_force (N) or pcsa_cm2 (cm²), one of the two")
    if "max_force" in entry:
        force = check_number(
            entry["max_force"], what=f"{here}: max_force", unit="N", low=1e-3, high=1e6, error=BodyError
        )
    else:
        area = check_number(
            entry["pcsa_cm2"], what=f"{here}: pcsa_cm2", unit="cm²", low=1e-4, high=1e4, error=BodyError
        )
        force = area * 100 * tension  # cm² · N/mm²

    def number(key: str, low: float, high: float, unit: str) -> float:
        if key not in entry:
            return np.nan
        return check_number(entry[key], what=f"{here}: {key}", unit=unit, low=low, high=high, error=BodyError)

    path = entry.get("path")
    if not isinstance(path, list) or len(path) < 2 or not all(isinstance(item, dict) for item in path):
        raise BodyError(f"{here} needs a path of at least two points {{ link = …, point = [x, y, z] }}")
    return Muscle(
        name,
        tuple(_path_item(body, item, pulleys, f"{here}, path item {index}") for index, item in enumerate(path, 1)),
        force,
        number("optimal_fiber_length", 1e-3, 2, "m"),
        number("tendon_slack_length", 0, 3, "m"),
        np.radians(number("pennation_deg", 0, 80, "degrees")),
    )


def _path_item(body: Body, item: dict[str, Any], pulleys: dict[str, Pulley], here: str) -> Place | Pulley:
    for key in item:
        find_name(key, POINT_KEYS, what="entry", where=here)
    if set(item) == {"pulley"}:
        return pulleys[find_name(str(item["pulley"]), pulleys, what="pulley", where=here)]
    if set(item) != {"link", "point"}:
        raise BodyError(f"{here} needs link and point, or pulley alone")
    point = _vector(item["point"], f"{here}: point")
    joint, placement = _in_joint(body, item["link"], point, here)
    return Place(joint, placement.act(point))


def _check_paths(muscles: Muscles, where: str) -> None:
    """Refuse paths that end on a pulley, pass a joint's centre, or turn nothing."""
    body = muscles.body
    for muscle in muscles.muscles:
        here = f"{where}: muscle {muscle.name!r}"
        kinds = [isinstance(item, Pulley) for item in muscle.path]
        if kinds[0] or kinds[-1] or any(one and other for one, other in pairwise(kinds)):
            raise BodyError(f"{here}: a pulley needs a point before and after it; add one")
    posture = postures(body, body.neutral)
    paths = muscles.paths(posture)
    for index, (muscle, pull) in enumerate(zip(muscles.muscles, paths.pulls, strict=True)):
        here = f"{where}: muscle {muscle.name!r}"
        ends = list(zip(pull.joints, pull.points, strict=True))
        for (link, start), (other, end) in pairwise(ends):
            for joint in set(posture.tree.above(link)) ^ set(posture.tree.above(other)):
                center = posture.origin[joint + 1][:, 0]
                along = end[:, 0] - start[:, 0]
                share = np.clip((center - start[:, 0]) @ along / max(float(along @ along), 1e-12), 0, 1)
                distance = float(np.linalg.norm(start[:, 0] + share * along - center))
                if distance < CENTER_CLEARANCE:
                    raise BodyError(
                        f"{here} passes through the centre of joint {body.joint_names[joint]!r} "
                        f"({1000 * distance:.2g} mm away, at least {1000 * CENTER_CLEARANCE:g} mm are needed), "
                        "so it could not turn it; move a point or add a pulley"
                    )
        if np.abs(paths.moment_arm[0, :, index]).max(initial=0) < 1e-6:
            raise BodyError(f"{here} turns no joint; put its ends on links that move against each other")


# ---------------------------------------------------------------- geometry


def _lay(muscle: Muscle, posture: Posture, arm: Array | None, body: Body) -> tuple[Array, Pulls]:
    """Length (frames) and pulls of one muscle; its moment arms are added to ``arm`` (joints × frames) if given."""
    joints: list[int] = []
    points: list[Array] = []
    length = np.zeros(posture.frames)
    arcs = set()
    for index, item in enumerate(muscle.path):
        if isinstance(item, Place):
            joints.append(item.joint)
            points.append(posture.place(item.joint, item.point))
            continue
        after = muscle.path[index + 1]
        assert isinstance(after, Place)  # _check_paths has seen to it
        first, second, arc = _wrap(item, posture, points[-1], posture.place(after.joint, after.point), muscle, body)
        arcs.add(len(points))
        joints += [item.joint, item.joint]
        points += [first, second]
        length += arc
    pulls: list[Array] = [np.zeros((3, posture.frames)) for _ in points]
    for index in range(len(points) - 1):
        if index in arcs:
            continue
        along = points[index + 1] - points[index]
        distance = np.sqrt((along * along).sum(axis=0))
        length += distance
        unit = along / np.maximum(distance, 1e-12)
        pulls[index] += unit
        pulls[index + 1] -= unit
        if arm is None:
            continue
        before, after_ = (posture.tree.above(joint) for joint in joints[index : index + 2])
        for joint in before:
            if joint not in after_:
                arm[joint] += (unit * posture.moved_by(joint, points[index])).sum(axis=0)
        for joint in after_:
            if joint not in before:
                arm[joint] -= (unit * posture.moved_by(joint, points[index + 1])).sum(axis=0)
    return length, Pulls(joints, points, pulls)


def _wrap(
    pulley: Pulley, posture: Posture, start: Array, end: Array, muscle: Muscle, body: Body
) -> tuple[Array, Array, Array]:
    """Tangent points (3 × frames) and length of the arc between them; where the path clears the pulley, arc 0.

    In the plane across the axis the string turns counter-clockwise from ``start`` to ``end``; along the axis it climbs
    evenly (a helix is straight on the unrolled cylinder). Where it clears the pulley both tangent points lie on the
    straight line, so that they add nothing.
    """
    turned = posture.rotation[pulley.joint + 1]
    helper = np.eye(3)[int(np.argmin(np.abs(pulley.axis)))]
    one = np.cross(helper, pulley.axis)
    one /= np.linalg.norm(one)
    across, ahead, along = one @ turned, np.cross(pulley.axis, one) @ turned, pulley.axis @ turned
    center = posture.place(pulley.joint, pulley.center)

    def flat(point: Array) -> tuple[Array, Array, Array, Array]:
        arm = point - center
        x, y = (arm * across).sum(axis=0), (arm * ahead).sum(axis=0)
        distance = np.hypot(x, y)
        if np.any(distance < pulley.radius):
            frame = int(np.argmin(distance))
            raise BodyError(
                f"{_file(body)}: muscle {muscle.name!r}, frame {frame}: a path point lies {distance[frame]:.4f} m from "
                f"the axis of pulley {pulley.name!r}, inside its radius {pulley.radius:g} m; "
                "move the point or shrink the pulley"
            )
        return np.arctan2(y, x), np.arccos(pulley.radius / distance), (arm * along).sum(axis=0), distance

    angle_1, reach_1, height_1, distance_1 = flat(start)
    angle_2, reach_2, height_2, distance_2 = flat(end)
    first, last = angle_1 + reach_1, angle_2 - reach_2
    turn = np.mod(last - first + np.pi, 2 * np.pi) - np.pi
    wraps = turn > 0
    leg_1 = np.sqrt(distance_1**2 - pulley.radius**2)
    leg_2 = np.sqrt(distance_2**2 - pulley.radius**2)
    arc = pulley.radius * turn
    whole = np.maximum(leg_1 + arc + leg_2, 1e-12)
    climb = height_2 - height_1

    def tangent(angle: Array, share: Array) -> Array:
        flat_part = np.cos(angle) * across + np.sin(angle) * ahead
        return center + pulley.radius * flat_part + (height_1 + climb * share) * along

    clear_1, clear_2 = start + (end - start) / 3, start + (end - start) * (2 / 3)
    points = (
        np.where(wraps, tangent(first, leg_1 / whole), clear_1),
        np.where(wraps, tangent(last, (leg_1 + arc) / whole), clear_2),
    )
    middle = np.linalg.norm(clear_2 - clear_1, axis=0)
    return points[0], points[1], np.where(wraps, arc * np.sqrt(1 + (climb / whole) ** 2), middle)
