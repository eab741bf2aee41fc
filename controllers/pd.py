"""Proportional-derivative and proportional-integral-derivative control of joint angles.

u = u0(q) + Kp (r - q) - Kd v + Ki z,  z' = r - q, joint by joint (K. J. Åström, R. M. Murray, Feedback Systems, 2008,
chapter 10); u0 is an optional feed-forward such as the torque that carries the body's weight, with which any Kp, Kd > 0
bring a body on a base at rest to r (M. Takegaki, S. Arimoto, 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from controllers.protocol import Array, Symbols, by_joint

Gains = Mapping[str, float] | float


class PID:
    """PID control; gains by joint name or one number for all.

    Units: ``stiffness`` N·m/rad, ``damping`` N·m·s/rad, ``integral`` N·m/(rad·s), ``reference`` rad.
    ``gravity_torque(position)`` is added when given.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        stiffness: Gains,
        damping: Gains,
        integral: Gains = 0.0,
        reference: Gains = 0.0,
        gravity_torque: Callable[[Array], Array] | None = None,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.stiffness = by_joint(stiffness, self.joint_names, what="stiffness", lowest=0)
        self.damping = by_joint(damping, self.joint_names, what="damping", lowest=0)
        self.integral = by_joint(integral, self.joint_names, what="integral gain", lowest=0)
        self.reference = by_joint(reference, self.joint_names, what="reference")
        self.gravity_torque = gravity_torque
        self.memory_size = len(self.joint_names) if np.any(self.integral) else 0

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        torque = self.stiffness * (self.reference - position) - self.damping * velocity
        if self.memory_size:
            torque += self.integral * memory
        if self.gravity_torque is not None:
            torque += self.gravity_torque(position)
        return torque

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Angle error, rad, whose integral is the memory."""
        return self.reference - position if self.memory_size else np.zeros(0)

    def parameters(self) -> dict[str, Array]:
        """Gains and reference: they may differ between runs of one compiled library."""
        found = {"stiffness": self.stiffness, "damping": self.damping, "reference": self.reference}
        return found | {"integral": self.integral} if self.memory_size else found

    def symbolic_form(self) -> str:
        """Whether there is an integral and a feed-forward."""
        return f"pid, integral {bool(self.memory_size)}, gravity torque {self.gravity_torque is not None}"

    def symbolic(self, symbols: Symbols) -> tuple[Any, Any]:
        """The law in CasADi; the feed-forward is taken to be the torque that carries the body's weight."""
        gains = symbols.parameters
        error = gains["reference"] - symbols.position
        torque = gains["stiffness"] * error - gains["damping"] * symbols.velocity
        if self.memory_size:
            torque += gains["integral"] * symbols.memory
        if self.gravity_torque is not None:
            torque += symbols.gravity_torque()
        return torque, error if self.memory_size else symbols.memory


class PD(PID):
    """PD control: PID without the integral."""

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        stiffness: Gains,
        damping: Gains,
        reference: Gains = 0.0,
        gravity_torque: Callable[[Array], Array] | None = None,
    ) -> None:
        super().__init__(
            joint_names, stiffness=stiffness, damping=damping, reference=reference, gravity_torque=gravity_torque
        )


class Relaxed(PD):
    """No torque at all: a body that only falls, or hangs."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        super().__init__(joint_names, stiffness=0.0, damping=0.0)
