"""One ship, sea, heading, speed and station: how often balance is lost, how many fall sick, which limits are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from posture.errors import ResultError, SimulationStopped, check_number, find_name
from posture.ship.hull import Ship
from posture.ship.interruptions import Interruptions, Rail, RigidPerson, count_rigid, count_run, crossing_rates
from posture.ship.motion import SeaDeck
from posture.ship.response import Response
from posture.ship.sea import WAVES, Sea
from posture.ship.sickness import dose_of_response, incidence, incidence_2_hours, vomiting_percent
from posture.ship.stance import Stance

METHODS = ("none", "rigid", "model")
MEAN_OVER_RMS = math.sqrt(2 / math.pi)  # mean absolute value of a Gaussian signal over its RMS

Simulate = Callable[[SeaDeck, float], xr.Dataset]


@dataclass(frozen=True)
class Sailor:
    """Who stands there and how events are counted.

    method: "none" leaves it at the level-crossing formula, "rigid" counts Graham's rigid person along ``duration`` s
    of motion, "model" a simulated person. ``simulate(deck, duration)`` gives the model's result; any engine will do.
    """

    person: RigidPerson = field(default_factory=RigidPerson)
    stance: Stance = field(default_factory=Stance)
    rail: Rail | None = None
    refractory: float = 1.0
    exposure: float = 7200.0
    method: str = "rigid"
    duration: float = 1200.0
    step: float = 0.1
    mass: float = 80.0
    waves: int = WAVES
    simulate: Simulate | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be counted."""
        find_name(self.method, METHODS, what="way of counting", where="count", error=ResultError)
        check_number(self.exposure, what="exposure", unit="s", low=60, high=1e6, error=ResultError)
        check_number(self.duration, what="counted duration", unit="s", low=10, high=1e6, error=ResultError)
        check_number(self.step, what="counting step", unit="s", low=0.005, high=0.5, error=ResultError)
        if self.method == "model" and self.simulate is None:
            raise ResultError("counting with a model needs a way to simulate it; give simulate, or count the rigid one")


def assess(
    ship: Ship,
    sea: Sea,
    *,
    heading: float,
    speed: float,
    station: Sequence[float],
    sailor: Sailor | None = None,
    seed: int | Sequence[int] = 0,
) -> dict[str, Any]:
    """Everything about one condition; angles in rad, lengths in m, speed in m/s.

    Keys: ``rms`` (motions and felt accelerations, SI), ``formula`` (interruptions per minute by the level-crossing
    formula, each way), ``interruptions_per_minute`` (their sum, an upper bound where ways coincide), ``counted``
    (an ``Interruptions`` or None), ``fell`` (s, NaN if the model stayed up), ``sickness_percent`` after the exposure,
    ``sickness_2_hours_percent``, ``dose`` (m/s^1.5), ``vomiting_percent``.
    """
    sailor = sailor or Sailor()
    response = Response(ship, sea, heading=heading, speed=speed, station=station, facing=sailor.stance.facing)
    rms, formula = response.rms(), crossing_rates(response, sailor.person)
    vertical, omega = rms["vertical_acceleration"], response.vertical_frequency()
    energy = response.energy * np.abs(response.acceleration[2]) ** 2
    dose = dose_of_response(response.omega_encounter, energy, duration=sailor.exposure)
    counted: Interruptions | None = None
    fell = math.nan
    if sailor.method != "none":
        deck = SeaDeck(ship, sea, heading=heading, speed=speed, station=station, seed=seed, waves=sailor.waves)
        counted, fell = _count(deck, sailor)
    return {
        "rms": rms,
        "formula": formula,
        "interruptions_per_minute": sum(formula.values()),
        "counted": counted,
        "fell": fell,
        "sickness_percent": incidence(vertical, omega, duration=sailor.exposure),
        "sickness_2_hours_percent": incidence_2_hours(MEAN_OVER_RMS * vertical, omega),
        "dose": dose,
        "vomiting_percent": vomiting_percent(dose),
    }


def _count(deck: SeaDeck, sailor: Sailor) -> tuple[Interruptions, float]:
    if sailor.simulate is None or sailor.method == "rigid":
        samples = sailor.stance.deck(deck).sample(np.arange(round(sailor.duration / sailor.step)) * sailor.step)
        counted = count_rigid(samples, sailor.person, mass=sailor.mass, refractory=sailor.refractory, rail=sailor.rail)
        return counted, math.nan
    fell = math.nan
    try:
        run = sailor.simulate(deck, sailor.duration)
    except SimulationStopped as stopped:  # a fall ends the run; what came before is counted
        if stopped.partial is None or stopped.partial.sizes["time"] < 2:
            raise
        run = stopped.partial
        fell = float(run.time[-1])
    counted = count_run(run, friction=sailor.person.friction, refractory=sailor.refractory, rail=sailor.rail)
    return counted, fell
