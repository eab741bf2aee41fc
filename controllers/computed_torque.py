"""Computed torque (inverse dynamics): cancel the body's own dynamics, put a linear one in its place.

u = M(q) (r'' - 2ζω (v - r') - ω² (q - r)) + h(q, v, d), so that with a true model the error obeys
e'' + 2ζω e' + ω² e = 0 whatever the posture and, as far as the base's motion d is known, whatever the base does
(J. Y. S. Luh, M. W. Walker, R. P. C. Paul, 1980; textbook form).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from controllers.plant import Plant
from controllers.protocol import Array, by_joint

Reference = Callable[[float], tuple[Array, Array, Array]]


class ComputedTorque:
    """Computed torque; ``frequency`` ω (rad/s) and ``damping_ratio`` ζ by joint name or one for all.

    ``reference``: joint angles (rad), or a function of time that gives angles, their rates and accelerations.
    """

    memory_size = 0

    def __init__(
        self,
        plant: Plant,
        *,
        frequency: Mapping[str, float] | float = 4.0,
        damping_ratio: Mapping[str, float] | float = 1.0,
        reference: Mapping[str, float] | float | Reference = 0.0,
    ) -> None:
        self.plant, self.joint_names = plant, plant.joint_names
        self.frequency = by_joint(frequency, self.joint_names, what="frequency", lowest=0)
        self.damping_ratio = by_joint(damping_ratio, self.joint_names, what="damping ratio", lowest=0)
        if callable(reference):
            self.reference: Reference = reference
        else:
            posture, still = by_joint(reference, self.joint_names, what="reference"), np.zeros(len(self.joint_names))
            self.reference = lambda time: (posture, still, still)

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        wanted, rate, acceleration = self.reference(time)
        acceleration = acceleration - self.frequency**2 * (position - wanted)
        acceleration = acceleration - 2 * self.damping_ratio * self.frequency * (velocity - rate)
        locked = np.ones(len(position), bool)
        locked[self.plant.free] = False
        acceleration = np.where(locked, 0.0, acceleration)
        base = self.plant.base(time)
        return self.plant.inertia(position) @ acceleration + self.plant.bias(position, velocity, base)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)
