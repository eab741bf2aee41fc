"""The deck of a ship in a random sea: a sum of waves through the ship's transfer functions, with exact derivatives.

All six motions share each wave's phase, so heave, pitch and roll hang together as they do at sea. Implements
``posture.deck.DeckMotion``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation
from threadpoolctl import ThreadpoolController

from posture.body import STANDARD_GRAVITY
from posture.deck import DeckMotion, DeckSamples, check_station, deck_samples
from posture.engine.tables import Components
from posture.errors import DeckError, check_number
from posture.ship.hull import Ship, check_covered, check_heading, check_on_board, encounter, wave_number
from posture.ship.sea import WAVES, Sea

Array = NDArray[np.floating]


@cache
def _blas() -> ThreadpoolController:
    """For matrix products in one thread: on a busy machine several slow each other tenfold, and bytes may vary."""
    return ThreadpoolController()


class SeaDeck:
    """Where a person stands on a ship in a sea.

    heading: direction in which the waves travel, rad (0 following, π/2 to port, π head seas); speed: of the ship, m/s;
    station: m from the point the transfer functions are for, x forward, y to port, z up; waves: how many make up the
    sea. Lightly damped roll answers only a narrow band, so rare events need thousands of waves.
    """

    duration = math.inf

    def __init__(
        self,
        ship: Ship,
        sea: Sea,
        *,
        heading: float,
        speed: float = 0.0,
        station: Sequence[float] = (0.0, 0.0, 0.0),
        seed: int | Sequence[int],
        waves: int = WAVES,
        gravity: float = STANDARD_GRAVITY,
    ) -> None:
        self.ship, self.sea, self.gravity = ship, sea, gravity
        self.heading = check_heading(heading)
        self.speed = check_number(speed, what="speed", unit="m/s", low=0, high=40, error=DeckError, hint="not knots")
        self.station = check_station(station)
        check_on_board(self.station, ship)
        check_covered(ship, sea)
        drawn = sea.waves(seed=seed, count=waves)
        directions = self.heading + drawn.direction
        ways = np.column_stack((np.cos(directions), np.sin(directions)))
        self._wave_number = wave_number(drawn.omega)[:, None] * ways
        self.omega_encounter = encounter(drawn.omega, directions, self.speed)
        wave = drawn.amplitude * np.exp(1j * drawn.phase)
        # Row 0: the wave itself at the reference point; rows 1 to 6: surge … yaw.
        self._wave = np.column_stack((wave, wave[:, None] * ship.transfer(drawn.omega, directions, self.speed)))

    @cached_property
    def _derivatives(self) -> NDArray[np.complexfloating]:
        """Amplitudes of the seven signals, their rates and accelerations: waves × 21."""
        rate = 1j * self.omega_encounter[:, None]
        return np.hstack((self._wave, rate * self._wave, rate**2 * self._wave))

    def signals(self, time: Array) -> tuple[Array, Array, Array]:
        """Wave elevation (m, at the reference point) and six motions, their rates and accelerations, n × 7 each.

        On an even grid the exponentials factor into those of a coarse and a fine step, and the sum over waves becomes
        one matrix product: 720 000 instants of 400 waves in seconds.
        """
        time = np.asarray(time, float)
        count = len(time)
        steps = np.diff(time)
        fine = math.isqrt(count) if count > 64 and np.ptp(steps) < 1e-9 * max(1.0, abs(time[-1])) else 1
        coarse = math.ceil(count / fine)
        step = (time[-1] - time[0]) / (count - 1) if count > 1 else 0.0
        within = np.exp(1j * np.outer(np.arange(fine) * step, self.omega_encounter))
        result = np.empty((coarse * fine, 21))
        with _blas().limit(limits=1, user_api="blas"):
            for first in range(0, coarse, 64):
                starts = time[first * fine : (first + 64) * fine : fine]
                turned = np.exp(1j * np.outer(starts, self.omega_encounter))[:, :, None] * self._derivatives
                block = np.tensordot(within.real, turned.real, (1, 1)) - np.tensordot(within.imag, turned.imag, (1, 1))
                rows = np.moveaxis(block, 1, 0).reshape(-1, 21)
                result[first * fine : first * fine + len(rows)] = rows
        return result[:count, :7], result[:count, 7:14], result[:count, 14:]

    def waves(self) -> dict[str, Array]:
        """The sea's waves, as results keep them (results.SCHEMA): height at (x, y) is Σ a cos(ω t - k·(x, y) + phase).

        The axes are those of the deck's position; ω is the frequency at which the ship meets the wave.
        """
        return {
            "wave_amplitude": np.abs(self._wave[:, 0]),
            "wave_number": self._wave_number,
            "wave_frequency": self.omega_encounter,
            "wave_phase": np.angle(self._wave[:, 0]),
        }

    def elevation(self, time: Array) -> Array:
        """Wave elevation at the ship's reference point as it moves along, m."""
        return self.signals(time)[0][:, 0]

    def table(self) -> Components:
        """The same motion as a table of waves, for the compiled engine."""
        motions = self._wave[:, 1:]
        return Components(self.omega_encounter, motions.real, -motions.imag, np.zeros(6), self.station, self.gravity)

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants, at the station."""
        value, rate, acceleration = (part[:, 1:] for part in self.signals(time))
        return deck_samples(
            np.asarray(time, float), value, rate, acceleration, station=self.station, gravity=self.gravity
        )


class TurnedDeck:
    """A deck as felt by a person who faces another way than the bow: axes turned by ``facing`` (rad, to port).

    X is where the person looks, Y to the person's left; bodies and margins stay as they are, drawings turn the ship.
    """

    def __init__(self, deck: DeckMotion, facing: float) -> None:
        self.deck = deck
        self.facing = check_number(
            facing, what="facing", unit="rad", low=-2 * math.pi, high=2 * math.pi, error=DeckError
        )

    @property
    def duration(self) -> float:
        """That of the deck, s."""
        return self.deck.duration

    def waves(self) -> dict[str, Array]:
        """Those of the deck, if it knows any; its position keeps its axes."""
        return self.deck.waves() if isinstance(self.deck, SeaDeck) else {}

    def sample(self, time: Array) -> DeckSamples:
        """Motion at the given instants, in the person's axes."""
        deck, turn = self.deck.sample(time), Rotation.from_euler("Z", self.facing)
        return DeckSamples(
            deck.time,
            turn.inv().apply(deck.angular_velocity),
            turn.inv().apply(deck.angular_acceleration),
            turn.inv().apply(deck.specific_force),
            deck.position,
            (Rotation.from_quat(deck.quaternion) * turn).as_quat(),
        )
