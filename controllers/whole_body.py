"""Whole-body control: the joint accelerations that serve several aims best while the feet stay where they are.

Every ``period`` s a quadratic program over joint accelerations a,

    min  |J a + J'v - c''|² + w |a - a_posture|² + ε |u|²      (centre of mass, posture, effort)
    s.t. u = M a + h,  wrench = w0 + W a:
         |Fx|, |Fy| <= μ/√2 Fz (a pyramid inside the friction cone),  Fz >= least_force,
         centre of pressure inside the outline, each edge moved inward by ``inset``,  |u| <= limits,

after O. Khatib (1987) and the task formulation common since L. Sentis and O. Khatib (2005). Solved by the active-set
method DAQP (D. Arnström, A. Bemporad, D. Axehill, 2022), which CasADi brings along: exact, for small dense problems.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from controllers.held import Held
from controllers.plant import Plant
from controllers.protocol import Array, ControllerError, by_joint


class WholeBody(Held):
    """Whole-body QP; ``outline`` (n × 2, m, counter-clockwise) is where the centre of pressure may be.

    ``frequency`` (rad/s) and ``damping_ratio``: how the centre of mass and the posture return; the centre of mass is
    drawn to where it is in the reference posture. ``posture_weight``: of the posture against the centre of mass (m²).
    """

    def __init__(
        self,
        plant: Plant,
        *,
        outline: ArrayLike,
        friction: float = 0.7,
        least_force: float = 1.0,
        inset: float = 0.005,
        frequency: float = 4.0,
        damping_ratio: float = 1.0,
        posture_weight: float = 0.05,
        torque_weight: float = 1e-8,
        limits: Mapping[str, float] | float | None = None,
        reference: Mapping[str, float] | float = 0.0,
        period: float = 0.005,
    ) -> None:
        super().__init__(plant.joint_names, period=period)
        self.plant = plant
        self.frequency, self.damping_ratio = frequency, damping_ratio
        self.posture_weight, self.torque_weight = posture_weight, torque_weight
        self.reference = by_joint(reference, self.joint_names, what="reference")
        self.limits = None if limits is None else by_joint(limits, self.joint_names, what="torque limit", lowest=0)
        still = np.zeros(len(self.joint_names))
        self.center = plant.center(self.reference, still)[0]
        self.cone = _cone(np.asarray(outline, float), friction, inset)
        self.least = np.concatenate((np.zeros(len(self.cone) - 1), [least_force]))
        self._solver: Any = None

    def decide(self, time: float, position: Array, velocity: Array) -> Array:
        """Joint torques, N·m; raises where no acceleration keeps all constraints."""
        free, plant = self.plant.free, self.plant
        if not (np.isfinite(position).all() and np.isfinite(velocity).all()):
            return np.zeros(len(position))  # whoever integrates finds out and says so
        base = plant.base(time)
        inertia, bias = plant.inertia(position), plant.bias(position, velocity, base)
        fixed, slope = plant.wrench(position, velocity, base)
        center, center_rate, jacobian, drift = plant.center(position, velocity)
        stiff, soft = self.frequency**2, 2 * self.damping_ratio * self.frequency
        aim = -stiff * (center - self.center) - soft * center_rate - drift
        posture = (-stiff * (position - self.reference) - soft * velocity)[free]
        J, M = jacobian[:, free], inertia[:, free]
        hessian = J.T @ J + self.posture_weight * np.eye(len(free)) + self.torque_weight * M.T @ M
        linear = -J.T @ aim - self.posture_weight * posture + self.torque_weight * M.T @ bias
        rows, low = self.cone @ slope[:, free], self.least - self.cone @ fixed
        high = np.full(len(low), np.inf)
        if self.limits is not None:
            rows = np.vstack((rows, M[free]))
            low = np.concatenate((low, -self.limits[free] - bias[free]))
            high = np.concatenate((high, self.limits[free] - bias[free]))
        best: Array = np.linalg.solve(hessian, -linear)
        if not ((rows @ best >= low) & (rows @ best <= high)).all():
            best = self._solve(hessian, linear, rows, low, high, time)
        acceleration = np.zeros(len(position))
        acceleration[free] = best
        return inertia @ acceleration + bias

    def _solve(self, hessian: Array, linear: Array, rows: Array, low: Array, high: Array, time: float) -> Array:
        import casadi

        # Rows of unit length, so that the solver's tolerance means the same for forces and moments.
        scale = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)  # a wrench that no joint changes has a row of zeros
        rows, low, high = rows / scale[:, None], low / scale, high / scale
        if self._solver is None:
            shapes = {"h": casadi.Sparsity.dense(*hessian.shape), "a": casadi.Sparsity.dense(*rows.shape)}
            self._solver = casadi.conic("whole_body", "daqp", shapes, {"error_on_fail": False})
        found = self._solver(h=hessian, g=linear, a=rows, lba=low, uba=high)
        if not self._solver.stats()["success"]:
            raise ControllerError(
                f"at {time:.3f} s no torques keep the feet on the deck within friction, outline and limits; "
                "a step would be needed"
            )
        return np.asarray(found["x"]).ravel()


def _cone(outline: Array, friction: float, inset: float) -> Array:
    """Rows C with C · wrench >= 0 inside friction pyramid and outline, the last one being the vertical force."""
    if outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3:
        raise ControllerError("the outline needs at least three points (x, y) in m, counter-clockwise")
    side = friction / math.sqrt(2)
    rows = [[-1, 0, side, 0, 0, 0], [1, 0, side, 0, 0, 0], [0, -1, side, 0, 0, 0], [0, 1, side, 0, 0, 0]]
    for start, end in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        length = float(np.linalg.norm(end - start))
        if length < 1e-9:
            continue
        normal = np.array([start[1] - end[1], end[0] - start[0]]) / length  # points inward
        # normal · cop >= normal · start + inset, with cop = (-My, Mx) / Fz.
        rows.append([0, 0, -(float(normal @ start) + inset), float(normal[1]), -float(normal[0]), 0])
    return np.array([*rows, [0, 0, 1, 0, 0, 0]], float)
