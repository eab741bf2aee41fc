"""Feed-forward of the base's motion: the torque that would keep a posture on a base that moves as it does.

Inverse dynamics of what is wanted, not of what is, so that it needs no measurement of the body (C. H. An,
C. G. Atkeson, J. M. Hollerbach, Model-Based Control of a Robot Manipulator, 1988).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from controllers.plant import Plant
from controllers.protocol import Array, by_joint

LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, 9.80665])


class BaseFeedforward:
    """u = h(r, 0, d(t)) - h(r, 0, level): what the base's motion d adds to carrying the posture r (rad) at rest.

    Added to a feedback law by ``Together``, it cancels what the plant knows of the base.
    """

    memory_size = 0

    def __init__(self, plant: Plant, *, reference: Mapping[str, float] | float = 0.0) -> None:
        self.plant, self.joint_names = plant, plant.joint_names
        self.reference = by_joint(reference, self.joint_names, what="reference")
        self.still = np.zeros(len(self.joint_names))
        self.level = plant.bias(self.reference, self.still, LEVEL)

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        return self.plant.bias(self.reference, self.still, self.plant.base(time)) - self.level

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)
