"""Ankle and hip strategy: turn about the ankles while that suffices, bend at the hips when it does not.

F. B. Horak and L. M. Nashner (1986) saw people sway as one piece for small disturbances, and bend at the hips for large
ones or on narrow supports. Ankle torque is bounded by the foot: beyond it only hip motion moves the centre of mass. How
far that is, is told by the extrapolated centre of mass ξ = c + c'/ω0, ω0 = √(g/h) (A. L. Hof, M. G. I. Gazendam,
W. E. Sinke, 2005), against the edges of the stance. Two laws, one with cheap ankle and one with cheap hip torque, are
blended as ξ goes from ``start`` to ``full`` (shares of the way to the edge); blend and shares are choices of ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from controllers.plant import Plant
from controllers.protocol import Array, Controller, ControllerError

GRAVITY = 9.80665


class StrategySwitch:
    """A blend of two memoryless laws by the extrapolated centre of mass; ``outline`` (n × 2, m): the stance."""

    memory_size = 0

    def __init__(
        self,
        plant: Plant,
        ankle: Controller,
        hip: Controller,
        *,
        outline: ArrayLike,
        start: float = 0.3,
        full: float = 0.7,
    ) -> None:
        if ankle.joint_names != hip.joint_names or ankle.memory_size or hip.memory_size:
            raise ControllerError("both strategies must be memoryless laws for the same joints")
        if not 0 <= start < full:
            raise ControllerError(f"the switch starts at {start:g} and ends at {full:g}; it must start below its end")
        points = np.asarray(outline, float)
        self.plant, self.ankle, self.hip = plant, ankle, hip
        self.joint_names, self.start, self.full = ankle.joint_names, start, full
        self.middle, self.half = points.min(axis=0) / 2 + points.max(axis=0) / 2, np.ptp(points, axis=0) / 2

    def reach(self, position: Array, velocity: Array) -> float:
        """How far the extrapolated centre of mass has gone: 0 in the middle of the stance, 1 at its edge."""
        center, rate, _, _ = self.plant.center(position, velocity)
        ahead = center[:2] + rate[:2] * math.sqrt(max(center[2], 0.05) / GRAVITY)
        return float(np.max(np.abs(ahead - self.middle) / self.half))

    def share_of_hip(self, position: Array, velocity: Array) -> float:
        """0: ankle strategy, 1: hip strategy, smooth between."""
        way = min(max((self.reach(position, velocity) - self.start) / (self.full - self.start), 0.0), 1.0)
        return way * way * (3 - 2 * way)

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        share = self.share_of_hip(position, velocity)
        law: Callable[[Controller], Array] = lambda one: one.torque(time, position, velocity, memory)  # noqa: E731
        return (1 - share) * law(self.ankle) + share * law(self.hip)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)
