"""Linear quadratic regulator: the torque that costs least, for a body linearised about a posture.

u = u0 - K x, x = (q - r, v), where K minimises ∫ x'Q x + u'R u dt for x' = A x + B u: K = R⁻¹B'P with the solution P
of the algebraic Riccati equation A'P + PA - PBR⁻¹B'P + Q = 0 (R. E. Kalman, 1960; solved by SciPy). u0 carries the
weight at r. On a base whose motion is known, add ``BaseFeedforward`` (by ``Together``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_are

from controllers.plant import Plant, linearise
from controllers.protocol import Array, ControllerError, Symbols, by_joint

Weights = Mapping[str, float] | float


class LQR:
    """LQR about ``reference`` (rad) on a base that does ``base`` (at rest on level ground by default).

    ``position_weight`` (1/rad²), ``velocity_weight`` (s²/rad²) and ``torque_weight`` (1/(N·m)²) are the diagonals of Q
    and R, by joint name or one for all; only their ratios matter.
    """

    memory_size = 0

    def __init__(
        self,
        plant: Plant,
        *,
        position_weight: Weights = 1.0,
        velocity_weight: Weights = 0.1,
        torque_weight: Weights = 1e-6,
        reference: Weights = 0.0,
        base: Array | None = None,
    ) -> None:
        self.joint_names, free = plant.joint_names, plant.free
        self.reference = by_joint(reference, self.joint_names, what="reference")
        level = np.array([0, 0, 0, 0, 0, 0, 0, 0, 9.80665]) if base is None else np.asarray(base, float)
        self.linear = linearise(plant, self.reference, level)
        q, v, r = (
            by_joint(values, self.joint_names, what=what, lowest=0)[free]
            for values, what in (
                (position_weight, "position weight"),
                (velocity_weight, "velocity weight"),
                (torque_weight, "torque weight"),
            )
        )
        if not (r > 0).all():
            raise ControllerError("the torque weight of every joint must be above 0; a joint nobody pays for is stiff")
        self.Q, self.R = np.diag(np.concatenate((q, v))), np.diag(r)
        try:
            self.P = solve_continuous_are(self.linear.A, self.linear.B, self.Q, self.R)
        except np.linalg.LinAlgError as error:
            raise ControllerError(
                f"no stabilising gain was found ({error}); give every joint a position weight"
            ) from None
        count = len(self.joint_names)
        small = np.linalg.solve(self.R, self.linear.B.T @ self.P)
        self.gain = np.zeros((count, 2 * count))
        self.gain[np.ix_(free, np.concatenate((free, count + free)))] = small
        self.hold = self.linear.hold

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        error = np.concatenate((position - self.reference, velocity))
        return np.asarray(self.hold - self.gain @ error)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)

    def parameters(self) -> dict[str, Array]:
        """Gain, reference and constant torque may differ between runs of one compiled library."""
        return {"gain": self.gain.ravel(), "reference": self.reference, "hold": self.hold}

    def symbolic_form(self) -> str:
        """Nothing but its size, which the joints tell."""
        return "lqr"

    def symbolic(self, symbols: Symbols) -> tuple[Any, Any]:
        """The law in CasADi."""
        import casadi

        count, gains = len(self.joint_names), symbols.parameters
        error = casadi.vertcat(symbols.position - gains["reference"], symbols.velocity)
        gain = casadi.reshape(gains["gain"], 2 * count, count).T
        return gains["hold"] - gain @ error, symbols.memory
