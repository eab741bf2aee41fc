"""How high was a jump? From the vertical force alone, by impulse and by time in the air.

Impulse: velocity is the integral of (F - W)/m from a moment at rest; height is v²/2g at take-off. Where the person
stands still before the jump the integral runs forwards, where only after it (a drop jump) backwards from there. It
needs the weight: an error of 1 N over a second of pushing is 1/m m/s. Flight: g T²/8, which is too high by however much
more the legs are bent at landing than at take-off. Both are told, and what separates them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid

from posture.body import STANDARD_GRAVITY
from posture.errors import MotionError, check_number

Array = NDArray[np.floating]

AIR = 20.0  # N below which nobody is on the plate
SHORTEST_FLIGHT = 0.15  # s
LONGEST_FLIGHT = 1.5  # s
QUIET = 0.4  # s of standing still that give the weight
STILL = 0.03  # of the weight: standard deviation below which somebody stands still
SLOWEST = 50.0  # samples per second; one sample of flight time is then worth 2.5 cm of height (g T dT/4)
UNITS = {
    "take_off": "s",
    "landing": "s",
    "weight": "N",
    "mass": "kg",
    "speed": "m_per_s",
    "height_by_impulse": "m",
    "height_by_flight": "m",
    "weight_error": "N",
    "speed_error": "m_per_s",
    "difference": "m",
}


@dataclass(frozen=True)
class JumpHeight:
    """One jump in a force record; times s, forces N, mass kg, heights m, speed m/s."""

    take_off: float
    landing: float
    weight: float
    mass: float
    speed: float
    height_by_impulse: float
    height_by_flight: float
    weight_error: float  # standard error of the weight
    speed_error: float  # what that error makes of the speed over the time integrated
    rest: str  # "before", "after" or "start": where the person stood still

    @property
    def difference(self) -> float:
        """Flight minus impulse, m."""
        return self.height_by_flight - self.height_by_impulse

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; the unit ends each name."""
        values = asdict(self) | {"difference": self.difference}
        return {
            f"{key}_{UNITS[key]}" if key in UNITS else key: round(value, 5) if isinstance(value, float) else value
            for key, value in values.items()
        }


def jump_height(time: Array, force: Array, *, mass: float | None = None) -> JumpHeight:
    """Heights of the jump with the longest flight in a record of vertical force (N, upwards on the person).

    ``mass`` (kg): only for records too short for quiet standing; they must then start at rest.
    """
    time, force = np.asarray(time, float), np.asarray(force, float)
    if time.shape != force.shape or time.ndim != 1 or len(time) < 10:
        raise MotionError("a jump needs one force for each of at least ten times; give two columns of equal length")
    if not (np.isfinite(time).all() and np.isfinite(force).all()):
        raise MotionError("the force record has gaps; fill them or cut them off")
    steps = np.diff(time)
    if steps.min() <= 0:
        raise MotionError(f"time does not go on after {time[int(np.argmin(steps > 0))]:g} s; it must rise in every row")
    if np.median(steps) > 1 / SLOWEST:
        raise MotionError(
            f"one force every {np.median(steps):g} s is too few for a jump, which needs {SLOWEST:g} per second; "
            "if the first column counts samples, give their rate"
        )
    take_off, landing = _longest_flight(time, force)
    if mass is not None:
        check_number(mass, what="mass", unit="kg", low=10, high=300, error=MotionError)
        rest, weight, calm, weight_error = "start", mass * STANDARD_GRAVITY, 0, 0.0
        if abs(force[0] - weight) > 0.05 * weight:
            raise MotionError(
                f"the record starts with {force[0]:.0f} N, a person of {mass:g} kg at rest has {weight:.0f} N; "
                "begin it in quiet standing"
            )
    else:
        rest, window = _rest(time, force, take_off, landing)
        weight = float(force[window].mean())
        mass = weight / STANDARD_GRAVITY
        calm = window.stop - 1 if rest == "before" else window.start
        # Neighbouring samples are not independent: count one per 50 ms.
        weight_error = float(force[window].std() / np.sqrt(max((time[window.stop - 1] - time[window.start]) / 0.05, 1)))
    gained = cumulative_trapezoid((force - weight) / mass, time, initial=0.0)
    speed = float(gained[take_off] - gained[calm])
    return JumpHeight(
        float(time[take_off]),
        float(time[landing]),
        weight,
        mass,
        speed,
        speed**2 / (2 * STANDARD_GRAVITY),
        STANDARD_GRAVITY * float(time[landing] - time[take_off]) ** 2 / 8,
        weight_error,
        weight_error / mass * abs(float(time[take_off] - time[calm])),
        rest,
    )


def _rest(time: Array, force: Array, take_off: int, landing: int) -> tuple[str, slice]:
    """Where the person stands still: before the jump if possible (less to integrate over), else after it."""
    for name, mask in (("before", time < time[take_off]), ("after", time > time[landing])):
        window, spread = _quietest(time, force, mask)
        if spread < STILL:
            return name, window
    raise MotionError(
        f"nobody stands still for {QUIET:g} s before or after the flight at {time[take_off]:.2f} s; "
        "record a second of quiet standing, from which weight and speed follow, or give the mass"
    )


def _longest_flight(time: Array, force: Array) -> tuple[int, int]:
    """First and last sample of the longest time in the air that has contact before and after it."""
    air = force < AIR
    edges = np.flatnonzero(np.diff(air.astype(int)))
    flights = [
        (int(start) + 1, int(end) + 1)
        for start, end in pairwise(edges)
        if air[start + 1] and SHORTEST_FLIGHT <= time[end + 1] - time[start + 1] <= LONGEST_FLIGHT
    ]
    if not flights:
        raise MotionError(
            f"no flight: the force is nowhere below {AIR:g} N for {SHORTEST_FLIGHT:g} to {LONGEST_FLIGHT:g} s "
            "between two contacts; check that forces are in N and upwards positive"
        )
    return max(flights, key=lambda flight: time[flight[1]] - time[flight[0]])


def _quietest(time: Array, force: Array, mask: NDArray[np.bool_]) -> tuple[slice, float]:
    """The stillest stretch of ``QUIET`` seconds on the plate, and its standard deviation over its mean."""
    count = round(QUIET / float(np.median(np.diff(time))))
    indices = np.flatnonzero(mask)
    best, spread = slice(0, 0), float("inf")
    if len(indices) < count:
        return best, spread
    # Running mean and variance by sums; the mean is taken off first to keep the digits.
    values = force - force.mean()
    sums, squares = (np.concatenate(([0.0], np.cumsum(x))) for x in (values, values**2))
    starts = np.arange(indices[0], indices[-1] - count + 2)
    mean = (sums[starts + count] - sums[starts]) / count
    variance = np.maximum((squares[starts + count] - squares[starts]) / count - mean**2, 0)
    level = mean + force.mean()
    ratio = np.where(level > 10 * AIR, np.sqrt(variance) / np.maximum(level, 1), np.inf)
    chosen = int(np.argmin(ratio))
    return slice(int(starts[chosen]), int(starts[chosen]) + count), float(ratio[chosen])
