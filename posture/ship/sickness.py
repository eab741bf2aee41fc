"""Motion sickness from vertical acceleration: ISO 2631-1's weighted dose, and O'Hanlon and McCauley's incidence.

The weighting's filter parameters are those tabulated for Wf in ISO 8041, read in the manual of a vibration meter that
quotes the table. The incidence formulas' coefficients are from secondary sources. All of them are inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from posture.body import STANDARD_GRAVITY
from posture.errors import ResultError, check_number

Array = NDArray[np.floating]
Complex = NDArray[np.complexfloating]


@dataclass(frozen=True)
class Weighting:
    """Wf of ISO 2631-1: band limits, an acceleration-velocity transition and an upward step; frequencies in Hz."""

    high_pass: float = 0.08
    low_pass: float = 0.63
    transition: float = 0.25
    transition_quality: float = 0.86
    step_from: float = 0.0625
    step_from_quality: float = 0.80
    step_to: float = 0.10
    step_to_quality: float = 0.80

    def response(self, frequency: Array) -> Complex:
        """Complex gain at frequencies in Hz; its size is the weighting factor.

        H = s²/(s² + √2 ω₁ s + ω₁²) · ω₂²/(s² + √2 ω₂ s + ω₂²) · 1/(1 + s/(Q₄ω₄) + (s/ω₄)²)
        · (ω₅/ω₆)² (1 + s/(Q₅ω₅) + (s/ω₅)²)/(1 + s/(Q₆ω₆) + (s/ω₆)²); the transition has no zero (f₃ is infinite).
        """
        s = 1j * np.asarray(frequency, float)

        def quadratic(corner: float, quality: float) -> Complex:
            return np.asarray(1 + s / (quality * corner) + (s / corner) ** 2)

        butterworth = 1 / math.sqrt(2)
        band = (s / self.high_pass) ** 2 / (
            quadratic(self.high_pass, butterworth) * quadratic(self.low_pass, butterworth)
        )
        step = (
            (self.step_from / self.step_to) ** 2
            * quadratic(self.step_from, self.step_from_quality)
            / quadratic(self.step_to, self.step_to_quality)
        )
        return np.asarray(band * step / quadratic(self.transition, self.transition_quality))


WF = Weighting()
NAUSEA_PER_DOSE = 1 / 3  # percent who vomit per m/s^1.5, mixed unadapted adults; ISO 2631-1's figure, second hand


def dose(time: Array, vertical_acceleration: Array, *, weighting: Weighting = WF) -> float:
    """Motion sickness dose value MSDVz = √(∫ a_w² dt), m/s^1.5, of a record (even steps, s and m/s²).

    The weighting is applied to the record's Fourier transform, so the record counts as one period of a lasting motion.
    """
    steps = np.diff(time)
    if len(time) < 16 or np.ptp(steps) > 1e-6 * float(np.mean(steps)) + 1e-9:
        raise ResultError("a motion sickness dose needs at least 16 samples at even time steps")
    step = float(np.mean(steps))
    transform = np.fft.rfft(vertical_acceleration - np.mean(vertical_acceleration))
    gain = np.abs(weighting.response(np.fft.rfftfreq(len(time), step)))
    weighted = np.fft.irfft(transform * gain, len(time))
    return math.sqrt(float(np.sum(weighted**2)) * step)


def dose_of_response(
    omega_encounter: Array, acceleration_energy: Array, *, duration: float, weighting: Weighting = WF
) -> float:
    """MSDVz (m/s^1.5) after ``duration`` s of a stationary motion: energy (m²/s⁴) of each band of frequency (rad/s)."""
    gain = np.abs(weighting.response(np.abs(omega_encounter) / (2 * math.pi)))
    return math.sqrt(float(np.sum(acceleration_energy * gain**2)) * duration)


def vomiting_percent(dose_value: float, *, factor: float = NAUSEA_PER_DOSE) -> float:
    """Percentage of people who may vomit after a dose, ISO 2631-1's rule of thumb."""
    return min(100.0, factor * dose_value)


# Φ((log10(a/g) - μ)/spread), μ = offset + curve (log10 ω)², ω in rad/s: worst at 1 rad/s = 0.16 Hz.
INCIDENCE_2_HOURS: Mapping[str, float] = {"offset": -0.819, "curve": 2.32, "spread": 0.4}


def incidence_2_hours(
    mean_acceleration: float, omega: float, *, coefficients: Mapping[str, float] = INCIDENCE_2_HOURS
) -> float:
    """Motion sickness incidence, percent after two hours: J. F. O'Hanlon, M. E. McCauley (1974), Aerospace Medicine 45.

    mean_acceleration: mean of the absolute vertical acceleration, m/s² (0.798 times the RMS of a Gaussian motion);
    omega: frequency of the motion, rad/s. One published program takes Hz here, which puts the worst frequency at 1 Hz
    instead of the 0.16 Hz the experiments found; that is a slip.
    """
    check_number(mean_acceleration, what="mean acceleration", unit="m/s²", low=0, high=100, error=ResultError)
    if mean_acceleration == 0:
        return 0.0
    check_number(omega, what="frequency", unit="rad/s", low=0.01, high=100, error=ResultError)
    middle = coefficients["offset"] + coefficients["curve"] * math.log10(omega) ** 2
    return 100 * float(ndtr((math.log10(mean_acceleration / STANDARD_GRAVITY) - middle) / coefficients["spread"]))


INCIDENCE: Mapping[str, float] = {
    "acceleration": 2.128,
    "frequency": -9.277,
    "frequency_squared": -5.809,
    "constant": -1.851,
    "carried": 1.134,
    "time": 1.989,
    "time_constant": -2.904,
}


def incidence(
    rms_acceleration: float, omega: float, *, duration: float, coefficients: Mapping[str, float] = INCIDENCE
) -> float:
    """Motion sickness incidence in percent after any time: the refined model of M. E. McCauley and others (1976).

    MSI = 100 Φ(za) Φ(zt), za from log10 of RMS acceleration (g) and of frequency (Hz), zt = 1.134 za + 1.989 log10
    (minutes) - 2.904. Coefficients from memory of secondary sources. rms_acceleration in m/s², omega in rad/s,
    duration in s. Fitted to 0.08 to 0.7 Hz and up to two hours.
    """
    check_number(rms_acceleration, what="rms acceleration", unit="m/s²", low=0, high=100, error=ResultError)
    check_number(duration, what="duration of exposure", unit="s", low=1, high=1e6, error=ResultError)
    if rms_acceleration == 0:
        return 0.0
    check_number(omega, what="frequency", unit="rad/s", low=0.01, high=100, error=ResultError)
    frequency = math.log10(omega / (2 * math.pi))
    level = (
        coefficients["acceleration"] * math.log10(rms_acceleration / STANDARD_GRAVITY)
        + coefficients["frequency"] * frequency
        + coefficients["frequency_squared"] * frequency**2
        + coefficients["constant"]
    )
    exposed = (
        coefficients["carried"] * level
        + coefficients["time"] * math.log10(duration / 60)
        + coefficients["time_constant"]
    )
    return 100 * float(ndtr(level) * ndtr(exposed))
