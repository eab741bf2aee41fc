"""The segments of a body: links that carry mass and move, as a control law for whole links sees them.

Links fixed to each other count as one segment, named after the first; frames between the axes of a joint carry no
mass and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from controllers import LinkGains, LinkMotion, Lyapunov
from posture.body import STANDARD_GRAVITY, Body
from posture.errors import BodyError, find_name

Array = NDArray[np.floating]


class Segments:
    """Names, masses (kg), central inertias (kg·m², link axes) and motion of a body's segments.

    Calling it with joint positions and velocities gives their ``LinkMotion`` relative to the root link; that is the
    ``kinematics`` that controllers ask for.
    """

    def __init__(self, body: Body) -> None:
        self.body, self.model, self.data = body, body.model, body.model.createData()
        self._joints = [index for index in range(2, self.model.njoints) if self.model.inertias[index].mass > 0]
        first = {
            frame.parentJoint: frame.name for frame in reversed(self.model.frames) if frame.type == pin.FrameType.BODY
        }
        self.names = [first[index] for index in self._joints]
        inertias = [self.model.inertias[index] for index in self._joints]
        self.mass = np.array([inertia.mass for inertia in inertias])
        self.inertia = np.array([inertia.inertia for inertia in inertias])
        self._skew = [pin.skew(inertia.lever) for inertia in inertias]
        self._lever = [inertia.lever for inertia in inertias]
        self._q = body.with_base(body.neutral)
        self._places: tuple[Array, Array, Array, Array] | None = None

    def __call__(self, position: Array, velocity: Array) -> LinkMotion:
        """Motion of all segments, seen from the root link."""
        if not np.array_equal(self._q[7:], position) or self._places is None:  # asked again for one place: no new work
            self._places = self._placed(position)
        rotation, place, turn, shift = self._places
        return LinkMotion(rotation, turn @ velocity, place, shift @ velocity, turn, shift)

    def _placed(self, position: Array) -> tuple[Array, Array, Array, Array]:
        """Rotations, centres of mass and both Jacobians."""
        self._q[7:] = position
        pin.computeJointJacobians(self.model, self.data, self._q)
        count = len(self._joints)
        rotation, place = np.empty((count, 3, 3)), np.empty((count, 3))
        turn, shift = np.empty((count, 3, len(position))), np.empty((count, 3, len(position)))
        for row, index in enumerate(self._joints):
            jacobian = pin.getJointJacobian(self.model, self.data, index, pin.LOCAL)[:, 6:]
            placement = self.data.oMi[index]
            rotation[row] = placement.rotation
            place[row] = placement.translation + placement.rotation @ self._lever[row]
            turn[row] = jacobian[3:]
            shift[row] = placement.rotation @ (jacobian[:3] - self._skew[row] @ jacobian[3:])
        return rotation, place, turn, shift


def lyapunov(
    body: Body,
    *,
    rotation: Mapping[str, float] | float,
    translation: Mapping[str, float] | float,
    damping_time: float,
    gravity: float = STANDARD_GRAVITY,
    attitude: str = "rotation",
    limits: Mapping[str, float] | float | None = None,
) -> Lyapunov:
    """Balance with a certificate (controllers/lyapunov.py) for any body, gains in proportion to inertia and mass.

    ``rotation`` (rad²/s², times each segment's inertia) and ``translation`` (1/s², times its mass): one number or one
    per segment; ``damping_time`` (s): damping over stiffness; ``limits``: largest torque by joint, N·m.
    """
    segments = Segments(body)
    rates = []
    for given in (rotation, translation):
        table = given if isinstance(given, Mapping) else dict.fromkeys(segments.names, given)
        for name in table:
            find_name(name, segments.names, what="segment", where=body.name)
        missing = [name for name in segments.names if name not in table]
        if missing:
            raise BodyError(f"{body.name}: no gain for segment {', '.join(missing)}; give one for each, or one number")
        rates.append(table)
    gains = {
        name: LinkGains.proportional(
            mass, inertia, rotation=rates[0][name], translation=rates[1][name], damping_time=damping_time
        )
        for name, mass, inertia in zip(segments.names, segments.mass, segments.inertia, strict=True)
    }
    return Lyapunov(
        body.joint_names,
        kinematics=segments,
        link_names=segments.names,
        mass=segments.mass,
        inertia=segments.inertia,
        gains=gains,
        gravity=(0, 0, -gravity),
        attitude=attitude,
        limits=limits,
    )
