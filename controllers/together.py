"""Several laws at once: their torques add up, each keeps its own memory."""

from __future__ import annotations

import numpy as np

from controllers.protocol import Array, Controller, ControllerError


class Together:
    """The sum of laws for the same joints, such as passive muscles and a late active part."""

    def __init__(self, *laws: Controller) -> None:
        if not laws or any(law.joint_names != laws[0].joint_names for law in laws):
            raise ControllerError("laws that act together must be for the same joints; build them with the same names")
        self.laws, self.joint_names = laws, laws[0].joint_names
        self._ends = np.cumsum([law.memory_size for law in laws])
        self.memory_size = int(self._ends[-1])

    def _parts(self, memory: Array) -> list[Array]:
        return np.split(memory, self._ends[:-1])

    def sample(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """New memory of those laws that sample once per step."""
        parts = [
            law.sample(time, position, velocity, part) if hasattr(law, "sample") else part
            for law, part in zip(self.laws, self._parts(memory), strict=True)
        ]
        return np.concatenate(parts)

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        pairs = zip(self.laws, self._parts(memory), strict=True)
        return np.asarray(np.sum([law.torque(time, position, velocity, part) for law, part in pairs], axis=0))

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Memory rates of all laws."""
        pairs = zip(self.laws, self._parts(memory), strict=True)
        return np.concatenate([law.memory_rate(time, position, velocity, part) for law, part in pairs])
