"""Standing already balanced: where a controller holds a person on a deck that moves, before a run begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controllers import Controller
from posture.body import STANDARD_GRAVITY, Body
from posture.deck import DeckMotion, channels_of
from posture.errors import ScenarioError
from posture.simulate import GIMBAL_LIMIT, Dynamics, sampled

Array = NDArray[np.floating]


class Balance:
    """Postures in which a controller just balances what the deck does; the slope there is worked out once."""

    def __init__(self, body: Body, controller: Controller) -> None:
        self.body, self.controller = body, controller
        self._dynamics, self._still = Dynamics(body), np.zeros(len(body.joint_names))
        self._memory, self._neutral = np.zeros(controller.memory_size), body.neutral
        level, size = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY]), 1e-6
        upright = self._neutral[body.free]
        slope = np.empty((len(upright), len(upright)))  # no rows at all where every joint is locked
        for column, step in enumerate(size * np.eye(len(upright))):
            ahead, behind = (self._acceleration(0.0, level, upright + way * step) for way in (1, -1))
            slope[:, column] = (ahead - behind) / (2 * size)
        self._step = np.linalg.pinv(slope)  # a slope without an inverse is a person who cannot be balanced: see below

    def _acceleration(self, time: float, channels: Array, angles: Array) -> Array:
        position = self._neutral.copy()
        position[self.body.free] = angles
        state = np.concatenate((position, self._still, self._memory))
        memory = sampled(self.controller, len(position), time, state)[2 * len(position) :]
        torque = self.controller.torque(time, position, self._still, memory)
        return self._dynamics.acceleration(position, self._still, torque, channels)[self.body.free]

    def posture(self, time: float, channels: Array, guess: Array) -> Array:
        """Joint positions without joint acceleration under the deck's nine channels."""
        angles = guess[self.body.free]
        for _ in range(30):  # the slope of the upright posture is good enough to close in on any near it
            change = self._step @ self._acceleration(time, channels, angles)
            angles = angles - change
            if not np.abs(angles).max() < GIMBAL_LIMIT:
                break
            if np.abs(change).max() < 1e-13:
                position = self._neutral.copy()
                position[self.body.free] = angles
                return position
        raise ScenarioError(
            f"{self.body.name}: there is no posture in which the controller balances the deck's motion at the start; "
            'use stiffer control, or start = "upright"'
        )

    def start(self, deck: DeckMotion) -> tuple[Array, Array]:
        """Joint positions and velocities of someone who already stands on the moving deck at time 0.

        The position balances that instant, the velocity is how that position moves on; a run from there has next to
        no swing of its own from being put on the deck suddenly.
        """
        if not len(self.body.free):
            return self.body.neutral, self._still
        later = 0.01
        now, soon = channels_of(deck.sample(np.array([0.0, later])))
        position = self.posture(0.0, now, self.body.neutral)
        return position, (self.posture(later, soon, position) - position) / later
