"""Statistics of a ship's motion in a sea without simulating it: ∫ |H|² S over frequencies and directions.

Everything is linear: small angles, Gaussian signals. A signal is known by its transfer function over the waves; its
variance, zero-crossing rate and level crossings follow from moments over the frequency of encounter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY
from posture.deck import MOTIONS, check_station
from posture.errors import DeckError, check_number
from posture.ship.hull import Ship, check_covered, check_heading, check_on_board, encounter
from posture.ship.sea import Sea

Array = NDArray[np.floating]
Complex = NDArray[np.complexfloating]

FREQUENCIES = 1500


class Response:
    """A ship's linear answer to a sea at one heading, speed and station; arguments as in ``motion.SeaDeck``.

    facing: where the person looks, rad from the bow to port; horizontal signals below are in the person's axes.
    """

    def __init__(
        self,
        ship: Ship,
        sea: Sea,
        *,
        heading: float,
        speed: float = 0.0,
        station: Sequence[float] = (0.0, 0.0, 0.0),
        facing: float = 0.0,
    ) -> None:
        heading = check_heading(heading)
        speed = check_number(speed, what="speed", unit="m/s", low=0, high=40, error=DeckError, hint="not knots")
        self.facing = check_number(
            facing, what="facing", unit="rad", low=-2 * math.pi, high=2 * math.pi, error=DeckError
        )
        x, y, z = place = check_station(station)
        check_on_board(place, ship)
        check_covered(ship, sea)
        edges = np.linspace(sea.omega[0], sea.omega[-1], FREQUENCIES + 1)
        energy = np.diff(np.interp(edges, sea.omega, sea.cumulative))
        angles, shares = sea.directions()
        omega = np.tile((edges[1:] + edges[:-1]) / 2, len(angles))
        directions = heading + np.repeat(angles, FREQUENCIES)
        self.energy = (shares[:, None] * energy).ravel()  # m² of each small band
        self.omega_encounter = encounter(omega, directions, speed)
        self.motions = ship.transfer(omega, directions, speed)  # at the reference point
        surge, sway, heave, roll, pitch, yaw = self.motions.T
        at = np.stack((surge + z * pitch - y * yaw, sway + x * yaw - z * roll, heave + y * roll - x * pitch))
        c, s = math.cos(self.facing), math.sin(self.facing)
        self._turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])  # from the ship's axes to the person's
        self.displacement: Complex = self._turn @ at  # at the station, person's axes, 3 × n
        self.rotation: Complex = self._turn @ np.stack((roll, pitch, yaw))

    @property
    def acceleration(self) -> Complex:
        """Transfer function of the station's acceleration (world's level, person's axes), 3 × n."""
        return np.asarray(-(self.omega_encounter**2) * self.displacement)

    @property
    def angular_acceleration(self) -> Complex:
        """Transfer function of the angular acceleration, person's axes, 3 × n."""
        return np.asarray(-(self.omega_encounter**2) * self.rotation)

    def moment(self, transfer: Complex, order: int = 0) -> float:
        """∫ ωeⁿ |transfer|² S dω; order 0 is the variance, order 2 that of the rate."""
        return float(np.sum(self.energy * np.abs(transfer) ** 2 * self.omega_encounter**order))

    def rms(self) -> dict[str, float]:
        """RMS of the six motions at the reference point (m, rad), and of the station's accelerations (m/s²).

        ``lateral`` and ``fore_aft`` accelerations are in the ship's axes, wherever the person looks, and hold
        gravity's share, as an accelerometer would feel it and as criteria mean it; ``vertical`` does not.
        """
        found = {name: math.sqrt(self.moment(self.motions[:, index])) for index, name in enumerate(MOTIONS)}
        fore_aft, lateral, vertical = self._turn.T @ self.felt()
        found["fore_aft_acceleration"] = math.sqrt(self.moment(fore_aft))
        found["lateral_acceleration"] = math.sqrt(self.moment(lateral))
        found["vertical_acceleration"] = math.sqrt(self.moment(vertical))
        return found

    def felt(self) -> Complex:
        """Transfer functions of the specific force at the station less its mean, person's axes, 3 × n."""
        tilt = np.stack((-self.rotation[1], self.rotation[0], np.zeros_like(self.rotation[0])))
        return np.asarray(self.acceleration + STANDARD_GRAVITY * tilt)

    def vertical_frequency(self) -> float:
        """Mean frequency (rad/s) of the vertical motion as it feels: RMS acceleration over RMS velocity; 0 at rest."""
        rate = self.moment(self.displacement[2], 2)
        return math.sqrt(self.moment(self.displacement[2], 4) / rate) if rate else 0.0

    def crossings(self, transfer: Complex, level: float) -> float:
        """How often per second a signal rises above a level: Rice's 1/(2π) √(m₂/m₀) exp(-level²/(2 m₀))."""
        variance = self.moment(transfer)
        if variance == 0:
            return 0.0
        return math.sqrt(self.moment(transfer, 2) / variance) / (2 * math.pi) * math.exp(-(level**2) / (2 * variance))
