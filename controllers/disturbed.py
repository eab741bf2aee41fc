"""Torques a person does not intend: breathing, heartbeat, tremor, as low-pass filtered noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from controllers.protocol import Array, Controller, ControllerError


class FilteredNoise:
    """Torque T with B T' + T = A x: x is Gaussian, drawn every ``interval`` s and held; T(0) = 0.

    ``gain`` A in N·m, ``time_constant`` B and ``interval`` in s. A and B alone say nothing: the intensity is
    s = (A/B)·√interval, in N·m/√s. A function of time, exact between draws, so that any integrator may ask anywhere.
    """

    def __init__(self, *, gain: float, time_constant: float, interval: float, duration: float, seed: int) -> None:
        for what, value in (("time constant", time_constant), ("noise interval", interval), ("duration", duration)):
            if not (math.isfinite(value) and value > 0):
                raise ControllerError(f"{what} is {value:g} s, but must be above 0")
        if not math.isfinite(gain):
            raise ControllerError(f"gain is {gain:g} N·m, but must be a finite number")
        count = math.ceil(duration / interval - 1e-9) + 1
        self.gain, self.time_constant, self.interval = gain, time_constant, interval
        self.draws = np.random.default_rng(seed).standard_normal(count)
        decay = math.exp(-interval / time_constant)
        levels = np.zeros(count + 1)
        for index, draw in enumerate(self.draws):
            levels[index + 1] = decay * levels[index] + (1 - decay) * gain * draw
        self.levels = levels

    @property
    def intensity(self) -> float:
        """Strength of the white noise it amounts to, N·m/√s."""
        return self.gain / self.time_constant * math.sqrt(self.interval)

    def torque(self, time: float) -> float:
        """Torque at ``time`` s, N·m."""
        index = min(max(int(time / self.interval + 1e-9), 0), len(self.draws) - 1)
        decay = math.exp(-(time - index * self.interval) / self.time_constant)
        return float(decay * self.levels[index] + (1 - decay) * self.gain * self.draws[index])


class Disturbed:
    """Another law plus disturbance torques by joint name; laws that sample once per step keep doing so."""

    def __init__(self, law: Controller, disturbances: Mapping[str, FilteredNoise]) -> None:
        for name in disturbances:
            if name not in law.joint_names:
                raise ControllerError(
                    f"disturbance: no joint is called {name!r}; the joints are {', '.join(law.joint_names)}"
                )
        self.law = law
        self.joint_names = law.joint_names
        self.memory_size = law.memory_size
        self._columns = [(law.joint_names.index(name), noise) for name, noise in disturbances.items()]
        if hasattr(law, "sample"):
            self.sample = law.sample

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques of the law and the disturbance, N·m."""
        torque = np.array(self.law.torque(time, position, velocity, memory), dtype=float)
        for column, noise in self._columns:
            torque[column] += noise.torque(time)
        return torque

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """The law's own."""
        return self.law.memory_rate(time, position, velocity, memory)
