"""A body as model-based controllers see it (controllers/plant.py), in Pinocchio; which may not be the true one."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY, Body
from posture.deck import DeckMotion, DeckSamples

Array = NDArray[np.floating]

LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
GRID = 0.0025  # s; half of the usual integration step, where Runge and Kutta ask
GRID_ROWS = 2000


class Plant:
    """What a controller believes about a body and the deck below it.

    ``deck``: the motion it knows of, ``lag`` s late (None: a level deck at rest). Who wants a wrong belief gives
    another body.
    """

    def __init__(self, body: Body, deck: DeckMotion | None = None, *, lag: float = 0.0) -> None:
        self.body, self.deck, self.lag = body, deck, lag
        self.joint_names, self.free = tuple(body.joint_names), body.free
        self.model = body.model
        self.data = self.model.createData()
        self._q, self._v, self._a = body.with_base(body.neutral), np.zeros(self.model.nv), np.zeros(self.model.nv)
        self._blocks: dict[int, DeckSamples] = {}

    def base(self, time: float) -> Array:
        """The nine deck channels at ``time``."""
        if self.deck is None:
            return LEVEL
        sample, row = self._sample(time)
        return np.concatenate(
            (sample.angular_velocity[row], sample.angular_acceleration[row], sample.specific_force[row])
        )

    def _sample(self, time: float) -> tuple[DeckSamples, int]:
        """Deck motion as a law knows it at ``time``; instants of a fine grid are worked out many at once."""
        assert self.deck is not None  # for the type checker: asked only where there is a deck
        at = max(0.0, min(time - self.lag, self.deck.duration))
        index = round(at / GRID)
        if abs(index * GRID - at) > 1e-9:
            return self.deck.sample(np.array([at])), 0
        block = index // GRID_ROWS
        if block not in self._blocks:
            grid = (block * GRID_ROWS + np.arange(GRID_ROWS)) * GRID
            self._blocks[block] = self.deck.sample(np.minimum(grid, self.deck.duration))
        return self._blocks[block], index % GRID_ROWS

    def _set(self, position: Array, velocity: Array, base: Array) -> None:
        self._q[7:], self._v[6:] = position, velocity
        self._v[3:6], self._a[:3], self._a[3:6], self._a[6:] = base[:3], base[6:], base[3:6], 0.0

    def inertia(self, position: Array) -> Array:
        """Mass matrix of the joints."""
        self._q[7:] = position
        upper = np.triu(pin.crba(self.model, self.data, self._q)[6:, 6:])
        return np.asarray(upper + np.triu(upper, 1).T)

    def bias(self, position: Array, velocity: Array, base: Array) -> Array:
        """Torques for zero joint acceleration."""
        self._set(position, velocity, base)
        return np.array(pin.rnea(self.model, self.data, self._q, self._v, self._a))[6:]

    def slopes(self, position: Array, velocity: Array, base: Array) -> tuple[Array, Array]:
        """Derivatives of the bias with joint position and velocity (Pinocchio's analytic ones)."""
        self._set(position, velocity, base)
        by_position, by_velocity, _ = pin.computeRNEADerivatives(self.model, self.data, self._q, self._v, self._a)
        return np.array(by_position)[6:, 6:], np.array(by_velocity)[6:, 6:]

    def wrench(self, position: Array, velocity: Array, base: Array) -> tuple[Array, Array]:
        """Deck wrench on the body without joint acceleration, and per joint acceleration."""
        self._set(position, velocity, base)
        fixed = np.array(pin.rnea(self.model, self.data, self._q, self._v, self._a))[:6]
        slope = np.triu(pin.crba(self.model, self.data, self._q))[:6, 6:]
        return fixed, np.asarray(slope)

    def center(self, position: Array, velocity: Array) -> tuple[Array, Array, Array, Array]:
        """Centre of mass in the deck, its velocity, Jacobian, and acceleration at zero joint acceleration."""
        self._q[7:], self._v[6:], self._v[:6] = position, velocity, 0.0
        still = np.zeros(self.model.nv)
        pin.centerOfMass(self.model, self.data, self._q, self._v, still)
        place, rate, drift = (np.array(values[0]) for values in (self.data.com, self.data.vcom, self.data.acom))
        jacobian = np.array(pin.jacobianCenterOfMass(self.model, self.data, self._q))[:, 6:]
        return place, rate, jacobian, drift

    def tilt(self, time: float) -> tuple[Array, Array]:
        """The deck's small angle about each joint's upright axis (rad) and its rate: what the senses may tell."""
        if self.deck is None:
            still = np.zeros(len(self.joint_names))
            return still, still
        sample, row = self._sample(time)
        axes = self._axes
        # Gravity's direction in the deck, so that yaw, which no inner ear feels, does not count.
        angles = Rotation.from_quat(sample.quaternion[row]).as_euler("XYZ") * [1, 1, 0]
        return axes @ angles, axes @ (sample.angular_velocity[row] * [1, 1, 0])

    @cached_property
    def _axes(self) -> Array:
        jacobian = pin.computeJointJacobians(self.model, self.data, self.body.with_base(self.body.neutral))
        return np.array(jacobian)[3:, 6:].T
