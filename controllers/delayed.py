"""Feedback that arrives late: what nerves do to any control law.

PD or PID control of the ankles, some 0.1 to 0.2 s late, is how R. J. Peterka (2002), "Sensorimotor integration in human
postural control", described people who stand. What delay a loop bears is its phase margin over its crossover frequency
(K. J. Åström, R. M. Murray, Feedback Systems, 2008, chapter 9).

A delay needs the past. The integrator carries it as memory that does not change during a step (``sample`` is called
once before each step), so that the law itself keeps nothing between calls.
"""

from __future__ import annotations

import numpy as np

from controllers.protocol import Array, Controller, ControllerError


class Delayed:
    """Another law, fed with joint angles and speeds from ``delay`` s ago (a whole number of integration steps).

    What was sensed is held during each step, which adds half a step to the delay on average. Before the first
    ``delay`` seconds the past is the start state. The law's own memory (its error integral) sees delayed angles, too.
    """

    def __init__(self, law: Controller, *, delay: float, step: float) -> None:
        steps = round(delay / step) if np.isfinite(delay) and step > 0 else 0
        if steps < 1 or abs(steps * step - delay) > 1e-9:
            raise ControllerError(
                f"delay is {delay:g} s, but must be a whole number of integration steps of {step:g} s, at least one"
            )
        self.law = law
        self.joint_names = law.joint_names
        self.steps = steps
        self._row = 2 * len(law.joint_names)
        # The law's memory, then whether the past was filled in (0 or 1), then the past, oldest row first.
        self.memory_size = law.memory_size + 1 + (steps + 1) * self._row

    def sample(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Memory for the coming step: the oldest row drops out, the present one is appended."""
        own = self.law.memory_size
        now = np.concatenate((position, velocity))
        past = memory[own + 1 :].reshape(self.steps + 1, self._row)
        past = np.vstack((past[1:], now)) if memory[own] else np.tile(now, (self.steps + 1, 1))
        kept = memory[:own]
        if hasattr(self.law, "sample"):  # a law that decides now and then decides on what it knows late
            kept = self.law.sample(time, past[0, : len(position)], past[0, len(position) :], kept)
        return np.concatenate((kept, [1.0], past.ravel()))

    def _sensed(self, position: Array, velocity: Array, memory: Array) -> tuple[Array, Array]:
        own, joints = self.law.memory_size, len(self.joint_names)
        if not memory[own]:  # nothing sampled yet
            return position, velocity
        oldest = memory[own + 1 : own + 1 + self._row]
        return oldest[:joints], oldest[joints:]

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m, from what was sensed ``delay`` s ago."""
        old_position, old_velocity = self._sensed(position, velocity, memory)
        return self.law.torque(time, old_position, old_velocity, memory[: self.law.memory_size])

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Rate of the law's own memory; the past is held during a step."""
        old_position, old_velocity = self._sensed(position, velocity, memory)
        own = self.law.memory_rate(time, old_position, old_velocity, memory[: self.law.memory_size])
        return np.concatenate((own, np.zeros(self.memory_size - self.law.memory_size)))
