"""Places and accelerations of all links for many frames at once.

Pinocchio's Python calls take one frame each, and what they cost is mostly the call: a recording of thousands of frames
goes several times faster through arrays. Tests hold every number here to Pinocchio's.
Vectors are in world axes, and the frame is the last index (3 × frames, rotations 3 × 3 × frames), so that NumPy works
along memory. A joint is named by its index in ``Body.joint_names``; index -1 is the root link.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import Body
from posture.errors import BodyError

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tree:
    """What does not change with the posture: parents, placements in them, axes, masses; root first."""

    parent: tuple[int, ...]  # of each joint, index of a joint or -1
    offset: Array  # joints × 3
    turn: Array  # joints × 3 × 3
    axis: Array  # joints × 3, in the joint's own frame
    slides: tuple[bool, ...]
    mass: Array  # (joints + 1), root first
    center: Array  # (joints + 1) × 3
    inertia: Array  # (joints + 1) × 3 × 3, about the centre

    def above(self, joint: int) -> list[int]:
        """Joints between a link and the root, from the link upwards, its own joint first."""
        found = []
        while joint >= 0:
            found.append(joint)
            joint = self.parent[joint]
        return found


@lru_cache(maxsize=64)
def _tree(model: pin.Model) -> Tree:
    subspaces = [np.array(joint.createData().S).reshape(6, -1)[:, 0] for joint in list(model.joints)[2:]]
    inertias = list(model.inertias)[1:]
    return Tree(
        tuple(int(model.parents[index]) - 2 for index in range(2, model.njoints)),
        np.array([place.translation for place in list(model.jointPlacements)[2:]]).reshape(-1, 3),
        np.array([place.rotation for place in list(model.jointPlacements)[2:]]).reshape(-1, 3, 3),
        np.array([s[3:] + s[:3] for s in subspaces]).reshape(-1, 3),
        tuple(bool(np.any(s[:3])) for s in subspaces),
        np.array([inertia.mass for inertia in inertias]),
        np.array([inertia.lever for inertia in inertias]),
        np.array([inertia.inertia for inertia in inertias]),
    )


def tree_of(body: Body) -> Tree:
    """The body's constants."""
    return _tree(body.model)


@dataclass(frozen=True)
class Posture:
    """All links in some frames: rotations to world and origins of root (index 0) and joints (1 + index)."""

    tree: Tree
    rotation: list[Array]  # 3 × 3 × frames each
    origin: list[Array]  # 3 × frames each
    axis: list[Array]  # 3 × frames each, without the root
    placed: NDArray[np.bool_]  # joints that were asked for; the others' arrays are empty

    @property
    def frames(self) -> int:
        """How many frames."""
        return int(self.origin[0].shape[1])

    def place(self, joint: int, point: Array) -> Array:
        """World position (3 × frames) of a point given in a joint's frame (-1: the root's)."""
        return np.asarray(self.origin[joint + 1] + point @ self.rotation[joint + 1])

    def moved_by(self, joint: int, point: Array) -> Array:
        """Velocity (3 × frames) of world points carried by a joint, per unit speed of that joint."""
        axis = self.axis[joint]
        return axis if self.tree.slides[joint] else cross(axis, point - self.origin[joint + 1])


@dataclass(frozen=True)
class Base:
    """Motion of the root link, frames last.

    Its position (3 × n, m), rotation to world (3 × 3 × n), and in world axes its angular velocity, angular
    acceleration and the acceleration of its origin (3 × n each).
    """

    position: Array
    rotation: Array
    angular_velocity: Array
    angular_acceleration: Array
    acceleration: Array

    @classmethod
    def still(cls, frames: int) -> Base:
        """A root at rest at the origin."""
        zero = np.zeros((3, frames))
        return cls(zero, np.repeat(np.eye(3)[:, :, None], frames, axis=2), zero, zero, zero)

    @classmethod
    def planar(cls, place: Array, velocity: Array, acceleration: Array) -> Base:
        """A root that moves in the XZ plane; each n × 3: x, z (m) and tilt about Y (rad, forward positive)."""
        sine, cosine, zero, one = np.sin(place[:, 2]), np.cos(place[:, 2]), np.zeros(len(place)), np.ones(len(place))
        rotation = np.array([[cosine, zero, sine], [zero, one, zero], [-sine, zero, cosine]])

        def linear(values: Array) -> Array:
            return np.array([values[:, 0], zero, values[:, 1]])

        def angular(values: Array) -> Array:
            return np.array([zero, values[:, 2], zero])

        return cls(linear(place), rotation, angular(velocity), angular(acceleration), linear(acceleration))

    @classmethod
    def free_flyer(cls, configuration: Array, velocity: Array, acceleration: Array) -> Base:
        """From Pinocchio's states of a floating body (n × nq, nv, nv), whose root speeds are in the root's axes."""
        rotation = np.moveaxis(Rotation.from_quat(configuration[:, 3:7]).as_matrix(), 0, 2)
        (speed, spin), (speedup, spin_rate) = (
            (values[:, :3].T, values[:, 3:6].T) for values in (velocity, acceleration)
        )

        def world(vector: Array) -> Array:
            return np.asarray((rotation * vector).sum(axis=1))

        return cls(configuration[:, :3].T, rotation, world(spin), world(spin_rate), world(speedup + cross(spin, speed)))

    def part(self, frames: slice) -> Base:
        """Some of the frames."""
        return Base(
            self.position[:, frames],
            self.rotation[:, :, frames],
            self.angular_velocity[:, frames],
            self.angular_acceleration[:, frames],
            self.acceleration[:, frames],
        )


def postures(
    body: Body, position: Array, base: Base | None = None, *, needed: NDArray[np.bool_] | None = None
) -> Posture:
    """Place all links. ``position``: frames × joints (rad, m). Joints not ``needed`` (a mask) get empty arrays."""
    tree = tree_of(body)
    angles = np.ascontiguousarray(np.atleast_2d(np.asarray(position, float)).T)
    if len(angles) != len(tree.parent):
        raise BodyError(
            f"{body.name}: the configuration has {len(angles)} columns, the body {len(tree.parent)} joints; "
            "give one column per joint"
        )
    base = base or Base.still(angles.shape[1])
    placed = np.ones(len(tree.parent), bool) if needed is None else needed
    rotation, origin = [base.rotation], [base.position]
    axes: list[Array] = []
    for joint, parent in enumerate(tree.parent):
        if not placed[joint]:
            for items in (rotation, origin, axes):
                items.append(np.empty(0))
            continue
        before, turn, own = rotation[parent + 1], tree.turn[joint], tree.axis[joint]
        center = origin[parent + 1] + tree.offset[joint] @ before
        axis = (turn @ own) @ before
        turned = turn.T @ before  # R_parent R_joint, row by row
        if tree.slides[joint]:
            center = center + axis * angles[joint]
        else:  # Rodrigues' formula
            x, y, z = own
            skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            turned = turned + np.sin(angles[joint]) * (skew.T @ turned)
            turned += (1 - np.cos(angles[joint])) * ((turn @ skew @ skew).T @ before)
        rotation.append(turned)
        origin.append(center)
        axes.append(axis)
    return Posture(tree, rotation, origin, axes, placed)


def link_wrenches(
    posture: Posture, base: Base, velocity: Array, acceleration: Array, gravity: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """What each link needs to move as it does: force (N), moment about its centre of mass (N·m), that centre (m).

    Newton and Euler: F = m (c'' - g), M = I w' + w × I w; lists with the root first, 3 × frames each, empty for joints
    not placed. ``velocity`` and ``acceleration``: frames × joints.
    """
    tree = posture.tree
    spins, spin_rates, speedups = [base.angular_velocity], [base.angular_acceleration], [base.acceleration]
    for joint, parent in enumerate(tree.parent):
        if not posture.placed[joint]:
            for items in (spins, spin_rates, speedups):
                items.append(np.empty(0))
            continue
        w, wd, a = spins[parent + 1], spin_rates[parent + 1], speedups[parent + 1]
        arm = posture.origin[joint + 1] - posture.origin[parent + 1]
        axis, rate, rate2 = posture.axis[joint], velocity[:, joint], acceleration[:, joint]
        carried = a + cross(wd, arm) + cross(w, cross(w, arm))
        if tree.slides[joint]:
            speedups.append(carried + axis * rate2 + 2 * cross(w, axis * rate))
            spins.append(w)
            spin_rates.append(wd)
        else:
            speedups.append(carried)
            spins.append(w + axis * rate)
            spin_rates.append(wd + axis * rate2 + cross(w, axis * rate))
    forces: list[Array] = []
    moments: list[Array] = []
    centers: list[Array] = []
    for index, (w, wd, a) in enumerate(zip(spins, spin_rates, speedups, strict=True)):
        if index and not posture.placed[index - 1]:
            for items in (forces, moments, centers):
                items.append(np.empty(0))
            continue
        turned = posture.rotation[index]
        lever = tree.center[index] @ turned
        centers.append(posture.origin[index] + lever)
        forces.append(
            tree.mass[index] * (a + cross(wd, lever) + cross(w, cross(w, lever)) - np.reshape(gravity, (3, 1)))
        )
        own_w, own_wd = (turned * w[:, None]).sum(axis=0), (turned * wd[:, None]).sum(axis=0)  # Rᵀ w
        own = tree.inertia[index] @ own_wd + cross(own_w, tree.inertia[index] @ own_w)
        moments.append((turned * own).sum(axis=1))
    return forces, moments, centers


def cross(one: Array, other: Array) -> Array:
    """Cross product along the first axis; np.cross spends most of its time on generality."""
    x, y, z = one
    u, v, w = other
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])
