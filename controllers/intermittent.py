"""Intermittent control: act only while the body falls, let go while it comes back by itself.

Y. Asai, Y. Tasaka, K. Nomura, T. Nomura, M. Casadio, P. Morasso (2009), "A model of postural control in quiet
standing": muscles' own stiffness, below what standing needs, is always there; an active part Kp q + Kd v switches on
where

    q (v - a q) > 0    and    q² + v² > r²,

that is, away from the stable manifold of the saddle that the passive body has. ``Intermittent`` is the active part
alone; wrapped in ``Delayed`` and added to a passive ``PD`` by ``Together`` it is the paper's model, as the function
``intermittent`` gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controllers.delayed import Delayed
from controllers.pd import PD, Gains
from controllers.protocol import Array, by_joint
from controllers.together import Together


class Intermittent:
    """The switched active part, joint by joint; ``slope`` a (1/s, negative) and ``radius`` r (rad, v in rad/s)."""

    memory_size = 0

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        stiffness: Gains,
        damping: Gains,
        slope: float = -0.4,
        radius: float = 0.004,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.stiffness = by_joint(stiffness, self.joint_names, what="stiffness", lowest=0)
        self.damping = by_joint(damping, self.joint_names, what="damping", lowest=0)
        self.slope, self.radius = slope, radius

    def acts(self, position: Array, velocity: Array) -> Array:
        """1 where the active part is on, 0 elsewhere."""
        falling = position * (velocity - self.slope * position) > 0
        return np.where(falling & (position**2 + velocity**2 > self.radius**2), 1.0, 0.0)

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        return -self.acts(position, velocity) * (self.stiffness * position + self.damping * velocity)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)


def intermittent(
    joint_names: Sequence[str],
    *,
    passive_stiffness: Gains,
    passive_damping: Gains,
    stiffness: Gains,
    damping: Gains,
    delay: float,
    step: float,
    slope: float = -0.4,
    radius: float = 0.004,
) -> Together:
    """The paper's law: passive muscles at once, the switched active part ``delay`` s late."""
    active = Intermittent(joint_names, stiffness=stiffness, damping=damping, slope=slope, radius=radius)
    late = Delayed(active, delay=delay, step=step) if delay > 0 else active
    return Together(PD(joint_names, stiffness=passive_stiffness, damping=passive_damping), late)
