"""Inverse plant: what was applied, from how the plant moved, by a replica in feedback (Zames, George).

The replica x^' = f(t, x^, u^) is driven by the difference between measured and replicated outputs,

    u^ = K (z - h(x^)),

so that a large K makes the replica follow and u^ approach what drove the plant. K^-1 in parallel with the replica, as
in the paper's Fig. 2, would make the inverse exact but is an algebraic loop, so it is zero here, as in the paper's own
examples. Nothing is differentiated, but the gain decides everything: the error falls as 1/K and noise grows as K (see
``best_gain``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from controllers.protocol import Array, ControllerError

HOLDS = ("smooth", "straight")
RK4_REACH = 1.0  # largest step times eigenvalue: 2 % error in the fastest decay; RK4 is stable up to 2.78
MOST_PARTS = 500  # of one sampling step


@dataclass(frozen=True)
class Estimate:
    """What an inverse plant found: inputs (n × inputs) and replica states (n × states) at the measured times."""

    time: Array
    input: Array
    state: Array


class InversePlant:
    """An inverse of any plant that can be simulated.

    ``rate(time, state, input)``: the replica, stable without input. ``output(state)``: what is measured of it.
    ``gain`` (inputs × outputs): K. Units follow from those of inputs and outputs.
    """

    def __init__(
        self,
        rate: Callable[[float, Array, Array], Array],
        output: Callable[[Array], Array],
        *,
        gain: ArrayLike,
    ) -> None:
        self.rate, self.output, self.gain = rate, output, np.atleast_2d(np.asarray(gain, float))
        if not np.isfinite(self.gain).all():
            raise ControllerError(
                "the gain of an inverse plant must be finite; a large number does what infinity would"
            )

    def run(self, time: Array, measured: Array, *, start: Array, between: str = "smooth") -> Estimate:
        """Follow measured outputs (n × outputs); ``start``: first replica state, which is soon forgotten.

        ``between`` samples the outputs are taken from a spline ("smooth", for clean data) or from straight lines.
        """
        if between not in HOLDS:
            raise ControllerError(f"between is {between!r}; it must be {' or '.join(HOLDS)}")
        if measured.shape != (len(time), self.gain.shape[1]) or not np.isfinite(measured).all():
            raise ControllerError(
                f"measured outputs must be {len(time)} × {self.gain.shape[1]} finite numbers, one row per time, "
                f"not {' × '.join(map(str, measured.shape))}"
            )
        state = (
            self._follow_spline(time, measured, start) if between == "smooth" else self._follow(time, measured, start)
        )
        if not np.isfinite(state).all():
            raise ControllerError(
                "the replica did not follow the measured motion; is it stable, and is the gain right?"
            )
        inputs = np.array([self.gain @ (z - self.output(x)) for z, x in zip(measured, state, strict=True)])
        return Estimate(time, inputs, state)

    def _rate(self, time: float, state: Array, measured: Array) -> Array:
        return self.rate(time, state, self.gain @ (measured - self.output(state)))

    def _follow_spline(self, time: Array, measured: Array, start: Array) -> Array:
        """Replica states along a smooth curve; high gain makes them stiff, so an implicit method: LSODA."""
        spline = CubicSpline(time, measured)
        found = solve_ivp(
            lambda at, state: self._rate(at, state, spline(at)),
            (time[0], time[-1]),
            start,
            method="LSODA",
            t_eval=time,
            rtol=1e-8,
            atol=1e-10,
        )
        return np.asarray(found.y.T if found.success else np.full((len(time), len(start)), np.nan))

    def _follow(self, time: Array, measured: Array, start: Array) -> Array:
        """Replica states along straight lines between samples, by RK4 with as many parts per sample as it needs."""
        size = 1e-6
        matrix = np.empty((len(start), len(start)))
        for column in range(len(start)):
            nudge = np.zeros(len(start))
            nudge[column] = size
            ahead, behind = (self._rate(time[0], start + way * nudge, measured[0]) for way in (1, -1))
            matrix[:, column] = (ahead - behind) / (2 * size)
        fastest = float(np.abs(np.linalg.eigvals(matrix)).max())
        parts = max(1, math.ceil(fastest * float(np.max(np.diff(time))) / RK4_REACH))
        if parts > MOST_PARTS:
            raise ControllerError(
                f"the gain makes the replica follow within {1 / fastest:.2g} s, far below the sampling step; lower it, "
                "noise would swamp the estimate anyway"
            )
        states = [np.asarray(start, float)]
        for row in range(len(time) - 1):
            state, step = states[-1], (time[row + 1] - time[row]) / parts
            slope = (measured[row + 1] - measured[row]) / parts
            for part in range(parts):
                at, z = time[row] + part * step, measured[row] + part * slope
                k1 = self._rate(at, state, z)
                k2 = self._rate(at + step / 2, state + step / 2 * k1, z + slope / 2)
                k3 = self._rate(at + step / 2, state + step / 2 * k2, z + slope / 2)
                k4 = self._rate(at + step, state + step * k3, z + slope)
                state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(state)
        return np.array(states)


def best_gain(
    error_times_gain: float, *, noise_position: float, noise_velocity: float, damping_time: float
) -> tuple[float, float]:
    """Position gain k with the least error for noisy data, and that error; velocity gain is k · ``damping_time``.

    ``error_times_gain``: rms error times k in a noise-free trial, where the product is constant. Measured noise (rms)
    passes the inverse above its corner frequency unchanged: k n_q + k T n_v. So the squared error is about
    (c/k)² + k² (n_q² + T² n_v²), least where both parts are equal.
    """
    noise = math.hypot(noise_position, damping_time * noise_velocity)
    if not (noise > 0 and error_times_gain > 0):
        raise ControllerError("without noise or without error there is no best gain: the larger, the better")
    return math.sqrt(error_times_gain / noise), math.sqrt(2 * error_times_gain * noise)
