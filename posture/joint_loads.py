"""Forces in the joints: what the links press on each other, with the pull of the muscles or without.

Newton and Euler for the part of the body beyond a joint: what it needs to move as it does, less what gravity, ground
and muscles do to it, comes through the joint. The same sum at the root is the ground's whole action when none was
given, so this is also inverse dynamics. Joints may be chosen, as in the augmented joint coordinates of the jump paper,
equation (25): only links beyond them are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY, Body
from posture.errors import BodyError
from posture.kinematics import Array, Base, Posture, cross, link_wrenches, postures, tree_of
from posture.muscles import Muscles, Pulls

FRAMES_AT_ONCE = 1024  # keeps the work in the processor's cache
DOWN = np.array([0.0, 0.0, -STANDARD_GRAVITY])


@dataclass(frozen=True)
class Push:
    """A force from outside on a link: force (n × 3, N) at a point (n × 3, m), with a free moment (N·m); world axes."""

    link: str
    force: Array
    point: Array
    moment: Array | None = None


@dataclass(frozen=True)
class JointLoads:
    """What each chosen joint carries, world axes, frames first.

    ``force`` (n × joints × 3, N): of the parent link on the child, at the joint's centre; ``moment`` (N·m) likewise;
    ``torque`` (n × joints, N·m): its part about the joint's axis (a slide's: force along it), which something has to
    give: all of it with no muscles, what is left over with them. ``root_force``, ``root_moment`` (n × 3, about the
    world's origin): what acts on the body from outside beyond the pushes given; the ground's action if none was. NaN
    where joints were chosen, as only their links were looked at.
    """

    joints: list[str]
    force: Array
    moment: Array
    torque: Array
    root_force: Array
    root_moment: Array


def joint_loads(
    body: Body,
    position: Array,
    velocity: Array,
    acceleration: Array,
    *,
    base: Base | None = None,
    muscles: Muscles | None = None,
    muscle_force: Array | None = None,
    pushes: Sequence[Push] = (),
    joints: Sequence[str] | None = None,
    gravity: Array = DOWN,
) -> JointLoads:
    """Loads in all joints, or in the chosen ones, for frames × joints of motion (rad, rad/s, rad/s²).

    ``muscle_force``: tension (N), frames × muscles of ``muscles``; ``base``: motion of the root, at rest by default.
    """
    position, velocity, acceleration = (np.atleast_2d(np.asarray(x, float)) for x in (position, velocity, acceleration))
    frames = len(position)
    base = base or Base.still(frames)
    chosen = [body.joint_index(name) for name in (joints if joints is not None else body.joint_names)]
    if (muscles is None) != (muscle_force is None):
        raise BodyError(f"{body.name}: give muscles and muscle_force together, or neither")
    tension = np.zeros((frames, 0)) if muscle_force is None else np.asarray(muscle_force, float)
    if muscles is not None and tension.shape != (frames, len(muscles.names)):
        raise BodyError(
            f"{body.name}: muscle forces have shape {tension.shape}; "
            f"give {frames} × {len(muscles.names)} (frames × muscles)"
        )
    carried = [body.model.frames[body.link_frame(push.link)].parentJoint - 2 for push in pushes]
    needed, pulling = _needed_parts(body, chosen if joints is not None else None, muscles)
    force, moment = np.empty((frames, len(chosen), 3)), np.empty((frames, len(chosen), 3))
    torque = np.empty((frames, len(chosen)))
    root = np.full((frames, 6), np.nan)
    for start in range(0, frames, FRAMES_AT_ONCE):
        part = slice(start, min(start + FRAMES_AT_ONCE, frames))
        posture = postures(body, position[part], base.part(part), needed=needed)
        forces, about_origin = _needed(posture, base.part(part), velocity[part], acceleration[part], gravity)
        if muscles is not None:
            _pull(forces, about_origin, muscles.pulls(posture, pulling), tension[part][:, pulling])
        for joint, push in zip(carried, pushes, strict=True):
            if joint >= 0 and not needed[joint]:
                continue
            pushed = np.asarray(push.force[part], float).T
            forces[joint + 1] -= pushed
            about_origin[joint + 1] -= cross(np.asarray(push.point[part], float).T, pushed)
            if push.moment is not None:
                about_origin[joint + 1] -= np.asarray(push.moment[part], float).T
        for joint in range(len(posture.tree.parent) - 1, -1, -1):  # children come after their parents
            if needed[joint]:
                parent = posture.tree.parent[joint] + 1
                forces[parent] += forces[joint + 1]
                about_origin[parent] += about_origin[joint + 1]
        for place, joint in enumerate(chosen):
            through = forces[joint + 1]
            about = about_origin[joint + 1] - cross(posture.origin[joint + 1], through)
            force[part, place], moment[part, place] = through.T, about.T
            working = through if posture.tree.slides[joint] else about
            torque[part, place] = (posture.axis[joint] * working).sum(axis=0)
        if joints is None:
            root[part, :3], root[part, 3:] = forces[0].T, about_origin[0].T
    return JointLoads([body.joint_names[joint] for joint in chosen], force, moment, torque, root[:, :3], root[:, 3:])


def _needed_parts(body: Body, chosen: list[int] | None, muscles: Muscles | None) -> tuple[NDArray[np.bool_], list[int]]:
    """Joints to place and muscles to lay: all, or those beyond the chosen joints, on the way or tied to them."""
    tree = tree_of(body)
    count = 0 if muscles is None else len(muscles.muscles)
    if chosen is None:
        return np.ones(len(tree.parent), bool), list(range(count))
    beyond = np.array([bool(set(tree.above(joint)) & set(chosen)) for joint in range(len(tree.parent))], bool)
    wanted = set(np.flatnonzero(beyond).tolist())
    pulling = []
    for index in range(count):
        assert muscles is not None
        touched = {place.joint for place in muscles.muscles[index].path}
        if any(joint >= 0 and beyond[joint] for joint in touched):
            pulling.append(index)
            wanted |= touched
    needed = np.zeros(len(tree.parent), bool)
    for joint in wanted:
        needed[tree.above(joint)] = True
    return needed, pulling


def _needed(
    posture: Posture, base: Base, velocity: Array, acceleration: Array, gravity: Array
) -> tuple[list[Array], list[Array]]:
    """Force on each link and its moment about the world's origin (3 × frames each, root first)."""
    forces, moments, centers = link_wrenches(posture, base, velocity, acceleration, gravity)
    about_origin = [
        moment + cross(center, force) if len(force) else force
        for force, moment, center in zip(forces, moments, centers, strict=True)
    ]
    return forces, about_origin


def _pull(forces: list[Array], about_origin: list[Array], pulls: list[Pulls], tension: Array) -> None:
    """Take the muscles' pull off what each link needs."""
    for index, pull in enumerate(pulls):
        for joint, point, unit in zip(pull.joints, pull.points, pull.pulls, strict=True):
            pulled = unit * tension[:, index]
            forces[joint + 1] -= pulled
            about_origin[joint + 1] -= cross(point, pulled)
