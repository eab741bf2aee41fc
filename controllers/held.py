"""Laws that decide now and then and hold their torque in between: digital controllers, optimisers, policies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from controllers.protocol import Array, ControllerError


class Held:
    """A law that calls ``decide`` every ``period`` s and holds the torque; subclasses say what to decide.

    The period should be a whole number of integration steps; otherwise a decision waits for the next step. Memory:
    how many decisions were made, then the held torque.
    """

    def __init__(self, joint_names: Sequence[str], *, period: float) -> None:
        if not (math.isfinite(period) and period > 0):
            raise ControllerError(f"the control period is {period!r} s, but must be above 0")
        self.joint_names = tuple(joint_names)
        self.period = period
        self.memory_size = 1 + len(self.joint_names)

    def decide(self, time: float, position: Array, velocity: Array) -> Array:
        """Joint torques, N·m, for the coming period."""
        raise NotImplementedError

    def sample(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Memory for the coming step, with a new decision when one is due."""
        if time < memory[0] * self.period - 1e-9:
            return memory
        return np.concatenate(([math.floor(time / self.period + 1e-9) + 1], self.decide(time, position, velocity)))

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """The held torque."""
        return memory[1:]

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing changes between decisions."""
        return np.zeros(self.memory_size)
