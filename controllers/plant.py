"""What a model-based law asks of the body it controls: any mechanism on a moving base, from any library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from controllers.protocol import Array


class Plant(Protocol):
    """A body of n joints on a base that moves: M(q) a = u - h(q, v, d), arrays in the order of ``joint_names``.

    d are nine numbers in base axes: angular velocity (rad/s), angular acceleration (rad/s²), specific force (m/s²).
    ``base(time)`` is what the law knows of them, which need not be the truth. ``free``: joints that are not locked;
    a law leaves the others alone.
    """

    joint_names: tuple[str, ...]
    free: NDArray[np.intp]

    def base(self, time: float) -> Array:
        """Base motion d at ``time`` s, as far as the law knows it."""
        ...

    def inertia(self, position: Array) -> Array:
        """M, n × n."""
        ...

    def bias(self, position: Array, velocity: Array, base: Array) -> Array:
        """h: torques for zero joint acceleration."""
        ...

    def slopes(self, position: Array, velocity: Array, base: Array) -> tuple[Array, Array]:
        """dh/dq and dh/dv, n × n each."""
        ...

    def wrench(self, position: Array, velocity: Array, base: Array) -> tuple[Array, Array]:
        """Force and moment of the base on the body, w0 + W a: w0 (6), W (6 × n); base axes, about the base origin."""
        ...

    def center(self, position: Array, velocity: Array) -> tuple[Array, Array, Array, Array]:
        """Centre of mass in base axes: place (3), velocity (3), Jacobian J (3 × n), and J'v (3)."""
        ...


@dataclass(frozen=True)
class Linear:
    """x' = A x + B u over the free joints, x = (position - reference, velocity); ``hold`` (n): torque at rest there."""

    A: Array
    B: Array
    hold: Array
    reference: Array

    def sampled(self, period: float) -> tuple[Array, Array]:
        """Exact matrices for a torque held during ``period`` s."""
        states, inputs = self.B.shape
        block = np.zeros((states + inputs, states + inputs))
        block[:states, :states], block[:states, states:] = self.A, self.B
        power = expm(block * period)
        return power[:states, :states], power[:states, states:]


def linearise(plant: Plant, reference: Array, base: Array) -> Linear:
    """Linear motion about a posture at rest on a base that keeps doing ``base``."""
    free, still = plant.free, np.zeros(len(reference))
    block = np.ix_(free, free)
    inverse = np.linalg.inv(plant.inertia(reference)[block])
    by_position, by_velocity = plant.slopes(reference, still, base)
    count = len(free)
    A, B = np.zeros((2 * count, 2 * count)), np.zeros((2 * count, count))
    A[:count, count:] = np.eye(count)
    A[count:, :count], A[count:, count:] = -inverse @ by_position[block], -inverse @ by_velocity[block]
    B[count:] = inverse
    return Linear(A, B, plant.bias(reference, still, base), np.asarray(reference, float))
