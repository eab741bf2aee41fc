"""A law fed with combinations of joint angles, such as the lean of the whole body instead of the angle of the ankle."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from controllers.protocol import Array, Controller, ControllerError


class Sensed:
    """Another memoryless law that sees S q and S v in place of q and v; S is square, one row per joint.

    People steer their ankles by how the body leans, not by the angle of the ankle: a row of S is then the lean of the
    centre of mass about that joint.
    """

    memory_size = 0

    def __init__(self, law: Controller, matrix: ArrayLike) -> None:
        self.law, self.joint_names = law, law.joint_names
        self.matrix = np.asarray(matrix, float)
        count = len(self.joint_names)
        if self.matrix.shape != (count, count) or not np.isfinite(self.matrix).all() or law.memory_size:
            raise ControllerError(f"what is sensed must be a {count} × {count} matrix, and the law without memory")

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        return self.law.torque(time, self.matrix @ position, self.matrix @ velocity, memory)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)
