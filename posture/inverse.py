"""Inverse dynamics of a floating body: coordinates, their rates and the ground's wrenches in, joint torques out.

A motion is told in plain coordinates, one history each, that can be filtered and splined: the root's place (m, world
axes), its yaw, pitch and roll (rad; turned in this order about Z, Y, X), then the joints (rad) in the order of
``Body.joint_names``. ``to_pinocchio`` turns them and their rates into Pinocchio's configuration, velocity and
acceleration, with the root's speeds in the root's own frame.

Wrenches of the ground are n × 6: force (N) and moment (N·m) about the world's origin, world axes, on the person.
Without them, the first six rows of RNEA are the total wrench that the motion needs; with them, what is left there is
the residual, the measure of how well recording and body agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from posture.body import Body
from posture.errors import MotionError

Array = NDArray[np.floating]

ROOT_COORDINATES = ("root_x", "root_y", "root_z", "root_yaw", "root_pitch", "root_roll")


class Trajectory(Protocol):
    """A motion that knows its coordinates, rates and accelerations (each n × coordinates) at any time."""

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """Coordinates, their first and their second derivatives by time."""
        ...


@dataclass(frozen=True)
class States:
    """A motion in Pinocchio's terms: configuration (n × nq), velocity and acceleration (n × nv)."""

    configuration: Array
    velocity: Array
    acceleration: Array


def coordinate_names(body: Body) -> list[str]:
    """Names of the coordinates of a floating body, root first."""
    return [*ROOT_COORDINATES, *body.joint_names]


# ---------------------------------------------------------------- coordinates and Pinocchio's states


def _turning(angles: Array) -> tuple[Array, Array]:
    """Rotation root to world (n × 3 × 3) and matrix E (n × 3 × 3): local angular velocity = E · (yaw, pitch, roll)'."""
    (s1, s2, s3), (c1, c2, c3) = np.sin(angles).T, np.cos(angles).T
    zero = np.zeros_like(s1)
    rotation = np.array(
        [
            [c1 * c2, c1 * s2 * s3 - s1 * c3, c1 * s2 * c3 + s1 * s3],
            [s1 * c2, s1 * s2 * s3 + c1 * c3, s1 * s2 * c3 - c1 * s3],
            [-s2, c2 * s3, c2 * c3],
        ]
    )
    rates = np.array([[-s2, zero, zero + 1], [c2 * s3, c3, zero], [c2 * c3, -s3, zero]])
    return np.moveaxis(rotation, -1, 0), np.moveaxis(rates, -1, 0)


def _turning_rate(angles: Array, rates: Array) -> Array:
    """Time derivative of the matrix E of ``_turning``."""
    (_, s2, s3), (_, c2, c3) = np.sin(angles).T, np.cos(angles).T
    _, d2, d3 = rates.T
    zero = np.zeros_like(s2)
    change = np.array(
        [
            [-c2 * d2, zero, zero],
            [-s2 * s3 * d2 + c2 * c3 * d3, -s3 * d3, zero],
            [-s2 * c3 * d2 - c2 * s3 * d3, -c3 * d3, zero],
        ]
    )
    return np.moveaxis(change, -1, 0)


def to_pinocchio(values: Array, rates: Array, accelerations: Array) -> States:
    """Coordinates and their derivatives (n × coordinates) as Pinocchio's states."""
    values, rates, accelerations = (np.atleast_2d(item) for item in (values, rates, accelerations))
    angles, turn = values[:, 3:6], rates[:, 3:6]
    rotation, E = _turning(angles)
    spin = np.einsum("nij,nj->ni", E, turn)
    angular = np.einsum("nij,nj->ni", E, accelerations[:, 3:6])
    angular += np.einsum("nij,nj->ni", _turning_rate(angles, turn), turn)
    linear = np.einsum("nji,nj->ni", rotation, rates[:, :3])
    push = np.einsum("nji,nj->ni", rotation, accelerations[:, :3]) - np.cross(spin, linear)
    half = 0.5 * angles
    (s1, s2, s3), (c1, c2, c3) = np.sin(half).T, np.cos(half).T
    quaternion = np.column_stack(
        (
            c1 * c2 * s3 - s1 * s2 * c3,
            c1 * s2 * c3 + s1 * c2 * s3,
            s1 * c2 * c3 - c1 * s2 * s3,
            c1 * c2 * c3 + s1 * s2 * s3,
        )
    )
    return States(
        np.hstack((values[:, :3], quaternion, values[:, 6:])),
        np.hstack((linear, spin, rates[:, 6:])),
        np.hstack((push, angular, accelerations[:, 6:])),
    )


def from_pinocchio(configuration: Array) -> Array:
    """Coordinates (n × coordinates) of configurations (n × nq); yaw and roll without jumps, pitch within ±90°."""
    q = np.atleast_2d(configuration)
    x, y, z, w = q[:, 3:7].T
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    roll = np.unwrap(np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)))
    yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return np.column_stack((q[:, :3], yaw, pitch, roll, q[:, 7:]))


def coordinate_accelerations(values: Array, rates: Array, acceleration: Array) -> Array:
    """Second derivatives of the coordinates of one instant from Pinocchio's acceleration (nv)."""
    rotation, E = (item[0] for item in _turning(values[None, 3:6]))
    turn = rates[3:6]
    spin = E @ turn
    push = rotation @ (acceleration[:3] + np.cross(spin, rotation.T @ rates[:3]))
    angular = np.linalg.solve(E, acceleration[3:6] - _turning_rate(values[None, 3:6], turn[None])[0] @ turn)
    return np.concatenate((push, angular, acceleration[6:]))


def states(trajectory: Trajectory, time: Array) -> States:
    """A trajectory's states at the given times."""
    return to_pinocchio(*trajectory.sample(np.asarray(time, float)))


# ---------------------------------------------------------------- inverse dynamics


def generalized_forces(body: Body, motion: States, wrenches: Mapping[str, Array] | None = None) -> Array:
    """Forces (n × nv) that the motion needs beyond the given wrenches on links: root wrench (root axes), then joints.

    N along slides, N·m about axes. Row k is RNEA of frame k.
    """
    model = body.model_with_gravity
    data = body.data
    count = len(motion.configuration)
    found = np.empty((count, model.nv))
    q, v, a = motion.configuration, motion.velocity, motion.acceleration
    if not wrenches:
        for row in range(count):
            found[row] = pin.rnea(model, data, q[row], v[row], a[row])
        return found
    given: dict[int, Array] = {}
    for link, values in wrenches.items():
        joint = model.frames[body.link_frame(link)].parentJoint
        given[joint] = given.get(joint, 0) + _checked_wrench(link, values, count)
    forces = pin.StdVec_Force([pin.Force.Zero() for _ in range(model.njoints)])
    for row in range(count):
        pin.forwardKinematics(model, data, q[row])
        for joint, wrench in given.items():
            forces[joint] = data.oMi[joint].actInv(pin.Force(wrench[row]))
        found[row] = pin.rnea(model, data, q[row], v[row], a[row], forces)
    return found


def _checked_wrench(link: str, values: Array, count: int) -> Array:
    values = np.asarray(values, float)
    if values.shape != (count, 6):
        raise MotionError(f"wrench on {link!r} has shape {values.shape}; {count} frames need ({count}, 6)")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).all(axis=1)))
        raise MotionError(f"wrench on {link!r} is not a number in frame {row}; fill or cut the gap first")
    return values


def total_wrench(body: Body, motion: States) -> Array:
    """Wrench of the ground on the whole person (n × 6, about the world's origin) that the motion needs."""
    needed = generalized_forces(body, motion)[:, :6]
    return np.array(
        [
            pin.XYZQUATToSE3(q[:7]).act(pin.Force(wrench)).vector
            for q, wrench in zip(motion.configuration, needed, strict=True)
        ]
    )


@dataclass(frozen=True)
class Loads:
    """What moves a body in a motion, as vectors in the world: everything a forward run needs to repeat it.

    ``torque``: joint torques (n × nv, root rows zero); ``root_force`` (n × 3): at the root's origin, moving with it;
    ``wrench`` (n × joints of the model × 6): fixed in the world, moment about its origin.
    """

    torque: Array
    root_force: Array
    wrench: Array


WAYS = ("segment", "joint", "ground")


def loads(body: Body, motion: States, way: str, wrenches: Mapping[str, Array] | None = None) -> Loads:
    """The forces behind a motion, put one of three ways; all three give the same accelerations on the motion itself.

    ``segment``: lumbar (root) force and a world torque on every segment, as the paper applies them; ``joint``: joint
    torques, and root force and torque; ``ground``: joint torques, and the ground's wrenches where they act; what
    they leave over at the root (nothing when they share the total wrench) goes to the root.
    """
    if way not in WAYS:
        raise MotionError(f"no way of applying loads is called {way!r}; use {', '.join(WAYS)}")
    model = body.model_with_gravity
    data = body.data
    count = len(motion.configuration)
    torque, root_force = np.zeros((count, model.nv)), np.zeros((count, 3))
    wrench = np.zeros((count, model.njoints, 6))
    if way == "ground":
        if not wrenches:
            raise MotionError("loads on the ground need the feet's wrenches; give them by link")
        for link, values in wrenches.items():
            wrench[:, model.frames[body.link_frame(link)].parentJoint] += _checked_wrench(link, values, count)
        needed = generalized_forces(body, motion, wrenches)
    else:
        needed = generalized_forces(body, motion)
    parts = body.segments
    parent = {joint: _carrier(model, joint, set(parts.values())) for joint in parts.values()}
    for row, q in enumerate(motion.configuration):
        rotation = pin.Quaternion(q[3:7]).matrix()
        root_force[row] = rotation @ needed[row, :3]
        if way != "segment":
            torque[row, 6:] = needed[row, 6:]
            wrench[row, 1, 3:] += rotation @ needed[row, 3:6]
            continue
        pin.rnea(model, data, q, motion.velocity[row], motion.acceleration[row])
        pin.forwardKinematics(model, data, q)
        for joint in parts.values():
            across = data.oMi[joint].rotation @ data.f[joint].angular  # moment through the segment's own joint
            wrench[row, joint, 3:] += across
            if parent[joint]:
                wrench[row, parent[joint], 3:] -= across
    return Loads(torque, root_force, wrench)


def _carrier(model: pin.Model, joint: int, heavy: set[int]) -> int:
    """Nearest joint towards the root that moves a segment with mass; 0 for the root itself."""
    joint = int(model.parents[joint])
    while joint and joint not in heavy:
        joint = int(model.parents[joint])
    return joint
