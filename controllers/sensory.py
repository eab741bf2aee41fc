"""Sensory weighting: balance by what ankles, eyes and inner ear say, each with its own weight and noise.

R. J. Peterka (2002), "Sensorimotor integration in human postural control": torque follows a weighted sum of how far the
body seems to lean, measured against the support (proprioception), against what is seen, and against gravity
(vestibular), with weights that add up to one. Here each joint has its own error

    e = w_p q + w_v (q + s θ) + w_g (q + θ) + noise,     u = u0 - Kp e - Kd e',

where θ is the tilt of the deck about that joint's axis and s says how much of it the eyes can see: 1 with the horizon
in sight, 0 below deck, where the cabin moves along. Nervous delay is added by ``Delayed``; ``lag`` then makes the tilt
as old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from controllers.disturbed import FilteredNoise
from controllers.pd import Gains
from controllers.protocol import Array, ControllerError, by_joint

Tilt = Callable[[float], tuple[Array, Array]]


class Sensory:
    """Sensory weighting; gains as in ``PD``.

    ``weights``: of ``proprioceptive``, ``visual`` and ``vestibular``, adding up to 1. ``tilt(time)`` gives, for each
    joint, the deck's angle about the joint's axis (rad) and its rate. ``noise``: by channel, added to the felt angle
    (unit rad; its rate is not felt). ``horizon``: s above.
    """

    memory_size = 0

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        stiffness: Gains,
        damping: Gains,
        weights: Mapping[str, float],
        tilt: Tilt,
        noise: Mapping[str, FilteredNoise] | None = None,
        horizon: float = 0.0,
        lag: float = 0.0,
        hold: Array | None = None,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.stiffness = by_joint(stiffness, self.joint_names, what="stiffness", lowest=0)
        self.damping = by_joint(damping, self.joint_names, what="damping", lowest=0)
        channels = ("proprioceptive", "visual", "vestibular")
        for name in [*weights, *(noise or {})]:
            if name not in channels:
                raise ControllerError(f"no sensory channel is called {name!r}; the channels are {', '.join(channels)}")
        self.weights = {name: float(weights.get(name, 0.0)) for name in channels}
        if min(self.weights.values()) < 0 or abs(sum(self.weights.values()) - 1) > 1e-9:
            raise ControllerError(
                f"sensory weights add up to {sum(self.weights.values()):g}; they must be 0 or more and add up to 1"
            )
        self.tilt, self.noise, self.horizon, self.lag = tilt, dict(noise or {}), horizon, lag
        self.hold = np.zeros(len(self.joint_names)) if hold is None else np.asarray(hold, float)

    def felt(self, time: float, position: Array, velocity: Array) -> tuple[Array, Array]:
        """The lean that the senses agree on, and its rate, joint by joint."""
        tilt, rate = self.tilt(max(0.0, time - self.lag))
        seen = self.weights["vestibular"] + self.horizon * self.weights["visual"]
        wrong = sum(self.weights[name] * noise.torque(time) for name, noise in self.noise.items())
        return position + seen * tilt + wrong, velocity + seen * rate

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        lean, rate = self.felt(time, position, velocity)
        return self.hold - self.stiffness * lean - self.damping * rate

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)
