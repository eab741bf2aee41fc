"""Posturography: what is measured on a centre-of-pressure record, by definition and source.

A record is low-passed at 10 Hz first (zero-lag Butterworth), unless it was filtered before: filtering twice takes up
to 8 % off the mean speed.

All measures are of the COP about its mean, x forwards (``ap``), y left (``ml``), and their distance (``resultant``),
SI units. Where sources differ the choice is stated:

path_length, mean_speed    sum of steps between samples (resultant: planar steps); over the duration. Prieto et al. 1996
rms, range                 about the mean; largest minus smallest (resultant: largest distance of two points). Prieto
ellipse_*                  95 % prediction ellipse: the next sample falls inside with 95 %; area = π·c·√det(cov) with
                           c = 2(n-1)(n+1)/(n(n-2))·F(0.95; 2, n-2). Schubert and Kirchner 2014
frequency_50, frequency_95 below which half and 95 % of the power between 0.15 and 5 Hz lie (Prieto's band; Welch, Hann
                           windows of 20 s, linear trend removed); mean_frequency: path / (2π · mean distance), Prieto
diffusion_*                stabilogram diffusion, Collins and De Luca 1993: mean square displacement over lags to 10 s;
                           two straight lines, split where they fit best; D is half a slope, H half a log-log slope;
                           the critical point is where the lines cross
density_*                  sway density, after Baratto et al. 2002: for each sample, how long the COP stays unbroken
                           within 2.5 mm of it; low-passed at 2.5 Hz; mean peak, mean time and distance between peaks
sample_entropy             Richman and Moorman 2000, m = 2, r = 0.2 standard deviations
dfa_exponent               detrended fluctuation analysis, Peng et al. 1994: order 1, 20 window lengths in geometric
                           steps from 0.1 s (16 samples at least) to a tenth of the record

Definitions of Baratto's and Prieto's measures are from secondary accounts. Ellipse area and mean speed are checked
against values the authors of a public data set published, entropy and DFA against NeuroKit2; SciPy does the spectra.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.signal import butter, find_peaks, sosfiltfilt, welch
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.distance import pdist
from scipy.stats import f as f_distribution

from posture.errors import RecordingError
from posture.recordings import Recording, filtered_before

Array = NDArray[np.floating]

DIRECTIONS = ("ap", "ml", "resultant")
CUTOFF = 10.0  # Hz, of the low-pass before measuring
BAND = (0.15, 5.0)  # Hz
WINDOW = 20.0  # s, of Welch's method
LONGEST_LAG = 10.0  # s, of the diffusion plot
RADIUS = 0.0025  # m, of the sway density

# name: dims, unit, meaning
MEASURES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "path_length": (("direction",), "m", "length of the COP path"),
    "mean_speed": (("direction",), "m/s", "path length over duration"),
    "rms": (("direction",), "m", "root mean square distance from the mean"),
    "range": (("direction",), "m", "largest minus smallest; resultant: largest distance of two points"),
    "mean_frequency": (("direction",), "Hz", "turns per second on a circle of the mean distance at the mean speed"),
    "frequency_50": (("direction",), "Hz", "median of the power between 0.15 and 5 Hz"),
    "frequency_95": (("direction",), "Hz", "95 % of the power between 0.15 and 5 Hz"),
    "diffusion_short": (("direction",), "m^2/s", "diffusion coefficient before the critical point"),
    "diffusion_long": (("direction",), "m^2/s", "diffusion coefficient after the critical point"),
    "diffusion_exponent_short": (("direction",), "1", "scaling exponent H before the critical point"),
    "diffusion_exponent_long": (("direction",), "1", "scaling exponent H after the critical point"),
    "critical_time": (("direction",), "s", "lag of the critical point"),
    "critical_square": (("direction",), "m^2", "mean square displacement at the critical point"),
    "sample_entropy": (("direction",), "1", "sample entropy, m = 2, r = 0.2 sd"),
    "dfa_exponent": (("direction",), "1", "detrended fluctuation exponent"),
    "ellipse_area": ((), "m^2", "area of the 95 % prediction ellipse"),
    "ellipse_major": ((), "m", "longer half axis of the ellipse"),
    "ellipse_minor": ((), "m", "shorter half axis of the ellipse"),
    "ellipse_angle": ((), "rad", "from forwards to the longer axis, left positive, within ±π/2"),
    "density_peak": ((), "s", "mean of the peaks of sway density"),
    "density_peak_interval": ((), "s", "mean time between peaks of sway density"),
    "density_peak_distance": ((), "m", "mean distance between consecutive peaks' places"),
}


def measure_sway(recording: Recording, *, cutoff: float | None = None) -> xr.Dataset:
    """All measures of a recording, labelled with units.

    ``cutoff`` (Hz) of the low-pass before: by default 10, or none for a recording that was filtered before; 0 for none.
    """
    if cutoff is None:
        raw = recording.rate > 2.5 * CUTOFF and not filtered_before(recording.cop[:, 0], recording.rate)
        cutoff = CUTOFF if raw else 0.0
    if cutoff:
        recording = recording.low_passed(cutoff)
    centered = recording.cop - recording.cop.mean(axis=0)
    distance = np.linalg.norm(centered, axis=1)
    steps = np.diff(centered, axis=0)
    found: dict[str, Any] = {}
    path = np.array([*np.abs(steps).sum(axis=0), np.linalg.norm(steps, axis=1).sum()])
    mean_distance = np.array([*np.abs(centered).mean(axis=0), distance.mean()])
    found["path_length"] = path
    found["mean_speed"] = path / recording.duration
    found["rms"] = np.array([*centered.std(axis=0), math.sqrt(float(np.mean(distance**2)))])
    found["range"] = np.array([*np.ptp(centered, axis=0), _widest(centered)])
    # One-dimensional excursions cross the mean twice per turn and cover four mean distances: Prieto's 4√2.
    found["mean_frequency"] = (
        path / recording.duration / (np.array([4 * math.sqrt(2)] * 2 + [2 * math.pi]) * mean_distance)
    )
    series = [centered[:, 0], centered[:, 1], distance]
    quantiles = np.array([power_quantiles(values, recording.rate) for values in series])
    found["frequency_50"], found["frequency_95"] = quantiles.T
    lags, squares = diffusion(recording)
    fits = [diffusion_fit(lags, squares[:, column]) for column in range(3)]
    for name in fits[0]:
        found[name] = np.array([fit[name] for fit in fits])
    found["sample_entropy"] = np.array([sample_entropy(values) for values in series])
    found["dfa_exponent"] = np.array([dfa_exponent(values, recording.rate) for values in series])
    found |= ellipse(centered)
    found |= sway_density(centered, recording.rate)
    return xr.Dataset(
        {
            name: (dims, found[name], {"units": unit, "long_name": text})
            for name, (dims, unit, text) in MEASURES.items()
        },
        coords={"direction": list(DIRECTIONS)},
        attrs={
            "recording": recording.name,
            "duration_s": recording.duration,
            "rate_hz": recording.rate,
            "low_pass_hz": cutoff,
            "notes": "; ".join(recording.notes),
        },
    )


def as_row(measures: xr.Dataset) -> dict[str, float]:
    """Flat names to numbers: ``rms_ap``, …, ``ellipse_area``; units are those of ``MEASURES``."""
    row = {}
    for name, (dims, _, _) in MEASURES.items():
        if dims:
            for direction in DIRECTIONS:
                row[f"{name}_{direction}"] = float(measures[name].sel(direction=direction))
        else:
            row[name] = float(measures[name])
    return row


def ellipse(centered: Array) -> dict[str, float]:
    """95 % prediction ellipse of points (n × 2): area, half axes, direction of the longer one."""
    n = len(centered)
    covariance = np.cov(centered.T)
    factor = 2 * (n - 1) * (n + 1) / (n * (n - 2)) * float(f_distribution.ppf(0.95, 2, n - 2))
    values, vectors = np.linalg.eigh(covariance)
    axes = np.sqrt(factor * values)
    angle = math.atan2(vectors[1, 1], vectors[0, 1])
    return {
        "ellipse_area": math.pi * float(axes[0] * axes[1]),
        "ellipse_major": float(axes[1]),
        "ellipse_minor": float(axes[0]),
        "ellipse_angle": (angle + math.pi / 2) % math.pi - math.pi / 2,
    }


def spectrum(values: Array, rate: float) -> tuple[Array, Array]:
    """Frequencies (Hz) and one-sided density (unit²/Hz) by Welch's method."""
    length = min(len(values), round(WINDOW * rate))
    frequency, power = welch(values, rate, nperseg=length, detrend="linear")
    return frequency, power


def power_quantiles(values: Array, rate: float) -> tuple[float, float]:
    """Frequencies (Hz) below which 50 and 95 % of the power in ``BAND`` lie."""
    frequency, power = spectrum(values, rate)
    inside = (frequency >= BAND[0]) & (frequency <= BAND[1])
    if inside.sum() < 3:
        return math.nan, math.nan
    cumulative = np.concatenate(([0.0], np.cumsum((power[inside][1:] + power[inside][:-1]) / 2)))
    low, high = np.interp((0.5, 0.95), cumulative / cumulative[-1], frequency[inside])
    return float(low), float(high)


def diffusion(recording: Recording) -> tuple[Array, Array]:
    """Lags (s) and mean square displacement (m²; ap, ml, planar) for lags up to 10 s or a third of the record."""
    n = len(recording.cop)
    longest = min(round(LONGEST_LAG * recording.rate), n // 3)
    squares = np.empty((longest, 3))
    for column in range(2):
        values = recording.cop[:, column] - recording.cop[:, column].mean()
        products = np.fft.irfft(np.abs(np.fft.rfft(values, 2 * n)) ** 2)[1 : longest + 1]
        total = np.concatenate(([0.0], np.cumsum(values**2)))
        lags = np.arange(1, longest + 1)
        squares[:, column] = (total[n - lags] + total[n] - total[lags] - 2 * products) / (n - lags)
    squares[:, 2] = squares[:, 0] + squares[:, 1]
    return np.arange(1, longest + 1) / recording.rate, np.maximum(squares, 0)


def diffusion_fit(lags: Array, squares: Array) -> dict[str, float]:
    """Two straight lines over a diffusion plot, and the critical point where they cross."""
    split = _best_split(lags, squares)
    parts = (slice(0, split), slice(split, None))
    (slope_short, level_short), (slope_long, level_long) = (np.polyfit(lags[part], squares[part], 1) for part in parts)
    with np.errstate(divide="ignore"):
        exponents = [float(np.polyfit(np.log(lags[part]), np.log(squares[part]), 1)[0]) / 2 for part in parts]
    crossing = (level_long - level_short) / (slope_short - slope_long) if slope_short != slope_long else math.nan
    inside = 0 < crossing <= lags[-1]
    return {
        "diffusion_short": float(slope_short) / 2,
        "diffusion_long": float(slope_long) / 2,
        "diffusion_exponent_short": exponents[0],
        "diffusion_exponent_long": exponents[1],
        "critical_time": float(crossing) if inside else math.nan,
        "critical_square": float(level_short + slope_short * crossing) if inside else math.nan,
    }


def _best_split(lags: Array, squares: Array) -> int:
    """Index where two free lines leave the least square error, at least five points on each side."""

    def errors(x: Array, y: Array) -> Array:  # of a line through the first k points, for every k
        k = np.arange(1, len(x) + 1)
        sx, sy, sxx, sxy, syy = (np.cumsum(part) for part in (x, y, x * x, x * y, y * y))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(syy - sy**2 / k - (sxy - sx * sy / k) ** 2 / (sxx - sx**2 / k))

    scale = squares.max() or 1.0
    x, y = lags - lags.mean(), squares / scale
    left, right = errors(x, y), errors(x[::-1], y[::-1])[::-1]
    total = left[4:-6] + right[5:-5]
    return 5 + int(np.nanargmin(total))


def stay(centered: Array) -> Array:
    """For each sample, how many neighbours before and after lie within ``RADIUS`` of it, without a break."""
    n = len(centered)
    found = np.zeros(n)
    for sign in (1, -1):
        points = centered[::sign]
        here, lag, length = np.arange(n), 1, np.zeros(n)
        while len(here):  # samples whose neighbourhood still holds at this lag
            here = here[here + lag < n]
            here = here[np.sum((points[here + lag] - points[here]) ** 2, axis=1) <= RADIUS**2]
            length[here] = lag
            lag += 1
        found += length[::sign]
    return found


def sway_density(centered: Array, rate: float) -> dict[str, float]:
    """Peaks of the time the COP stays within ``RADIUS`` of each of its samples."""
    density = stay(centered) / rate
    if rate > 5.2:
        density = sosfiltfilt(butter(2, 2.5, fs=rate, output="sos"), density)
    peaks, _ = find_peaks(density)
    if len(peaks) < 2:
        return {"density_peak": math.nan, "density_peak_interval": math.nan, "density_peak_distance": math.nan}
    return {
        "density_peak": float(density[peaks].mean()),
        "density_peak_interval": float(np.diff(peaks).mean() / rate),
        "density_peak_distance": float(np.linalg.norm(np.diff(centered[peaks], axis=0), axis=1).mean()),
    }


def sample_entropy(values: Array, *, length: int = 2, tolerance: float = 0.2) -> float:
    """-log of the chance that ``length`` samples alike (within ``tolerance`` sd) stay alike for one more."""
    radius = tolerance * values.std()
    n = len(values)
    alike = longer = 0
    templates = np.sort(np.arange(n - length))
    order = templates[np.argsort(values[templates], kind="stable")]
    first = values[order]
    ends = np.searchsorted(first, first + radius, side="right")
    for start in range(0, len(order), 256):  # sorted by first sample, so candidates are a slice
        rows = order[start : start + 256]
        candidates = order[start : ends[min(start + 255, len(order) - 1)]]
        near = np.abs(values[rows][:, None] - values[candidates][None, :]) <= radius
        for offset in range(1, length):
            near &= np.abs(values[rows + offset][:, None] - values[candidates + offset][None, :]) <= radius
        near &= np.arange(len(candidates))[None, :] > np.arange(len(rows))[:, None]  # each pair once, never itself
        alike += int(near.sum())
        near &= np.abs(values[rows + length][:, None] - values[candidates + length][None, :]) <= radius
        longer += int(near.sum())
    return math.log(alike / longer) if longer else math.inf


def dfa_windows(count: int, rate: float) -> NDArray[np.intp]:
    """Window lengths (samples) of the fluctuation analysis."""
    shortest = max(16, round(0.1 * rate))
    longest = max(count // 10, shortest + 4)
    return np.unique(np.round(np.geomspace(shortest, longest, 20)).astype(np.intp))


def dfa_exponent(values: Array, rate: float) -> float:
    """Slope of log fluctuation against log window length."""
    profile = np.cumsum(values - values.mean())
    windows = dfa_windows(len(values), rate)
    fluctuation = []
    for window in windows:
        pieces = profile[: len(profile) // window * window].reshape(-1, window)
        x = np.arange(window) - (window - 1) / 2
        slope = pieces @ x / (x @ x)
        residual = pieces - pieces.mean(axis=1, keepdims=True) - slope[:, None] * x
        fluctuation.append(math.sqrt(float(np.mean(residual**2))))
    return float(np.polyfit(np.log(windows), np.log(fluctuation), 1)[0])


def _widest(points: Array) -> float:
    try:
        corners = points[ConvexHull(points).vertices]
    except QhullError:
        raise RecordingError("the COP moves along one line only; are x and y the same column?") from None
    return float(pdist(corners).max())
