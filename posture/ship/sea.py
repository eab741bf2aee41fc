"""Waves: spectra by formula or measured, directional spreading, named sea states, random seas from a seed.

Written here in a few formulas rather than taken from a library: wavespectra and waveresponse were tried. Both bring
pandas (wavespectra also dask) and 0.5 to 1.4 s of import for what is two equations here, and neither makes a sea as
met by a moving ship. waveresponse serves as an independent check in the tests.

Spectra are one-sided, m²·s/rad over wave frequency (rad/s) as seen by a ship at rest; deep water, k = ω²/g.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.special import gamma

from posture.errors import DeckError, check_number

Array = NDArray[np.floating]

GRID_POINTS = 6000
KEPT_ENERGY = (0.0005, 0.9985)  # share of the energy below the lowest and the highest component of a random sea
SPREADING_DIRECTIONS = 11
WAVES = 800  # in a random sea: some thirty of them in the resonance of a roll damped by a tenth

# Significant height (m) and most probable peak period (s): open-ocean North Atlantic values as given with the NATO
# sea state table (STANAG 4194); quoted from memory of secondary sources, so check them before a contract rests on them.
SEA_STATES = {
    "SS2": (0.30, 7.5),
    "SS3": (0.88, 7.5),
    "SS4": (1.88, 8.8),
    "SS5": (3.25, 9.7),
    "SS6": (5.00, 12.4),
    "SS7": (7.50, 15.0),
    "SS8": (11.50, 16.4),
}


@dataclass(frozen=True)
class Waves:
    """Single waves whose sum is one random sea: amplitude (m), frequency (rad/s), direction off the main one, phase."""

    amplitude: Array
    omega: Array
    direction: Array
    phase: Array


@dataclass(frozen=True)
class Sea:
    """A sea state: spectral density (m²·s/rad) over increasing frequencies (rad/s), and how directions spread.

    ``spreading`` is n of D(θ) ∝ cosⁿθ within ±90° of the main direction; None for long crests, 2 is usual at sea.
    """

    omega: Array
    density: Array
    spreading: float | None = None
    name: str = "sea"

    def __post_init__(self) -> None:
        """Refuse spectra that are none."""
        if len(self.omega) < 3 or self.omega.shape != self.density.shape:
            raise DeckError(f"{self.name}: a spectrum needs at least three frequencies with one density each")
        if not (np.isfinite(self.omega).all() and np.isfinite(self.density).all()):
            raise DeckError(f"{self.name}: the spectrum holds values that are not finite; remove or fill them")
        check_increasing(self.omega, f"{self.name}: wave frequencies", "rad/s")
        if self.omega[0] < 0 or (self.density < 0).any() or not self.density.any():
            raise DeckError(f"{self.name}: frequencies and densities must not be negative, nor all densities zero")
        if self.spreading is not None:
            check_number(
                self.spreading,
                what=f"{self.name}: spreading",
                unit="",
                low=0.5,
                high=50,
                error=DeckError,
                hint="n of cosⁿ; leave it out for long crests, which narrower seas come near to",
            )

    @cached_property
    def cumulative(self) -> Array:
        """Energy (m²) below each frequency."""
        return np.asarray(cumulative_trapezoid(self.density, self.omega, initial=0.0))

    def moment(self, order: int) -> float:
        """Spectral moment ∫ ωⁿ S dω; order 0 is the variance of the wave elevation, m²."""
        return float(np.trapezoid(self.omega**order * self.density, self.omega))

    @property
    def significant_height(self) -> float:
        """4 √m₀, m."""
        return 4 * math.sqrt(self.moment(0))

    @property
    def peak_period(self) -> float:
        """Period of the highest density, s."""
        return 2 * math.pi / float(self.omega[int(np.argmax(self.density))])

    def spread(self, exponent: float | None) -> Sea:
        """Return this sea with directions spread as cosⁿθ, or long-crested for None."""
        return replace(self, spreading=exponent)

    def directions(self, count: int = SPREADING_DIRECTIONS) -> tuple[Array, Array]:
        """Directions off the main one (rad) and the share of the energy that goes each way."""
        if self.spreading is None:
            return np.zeros(1), np.ones(1)
        angles = (np.arange(count) + 0.5) / count * math.pi - math.pi / 2
        share = np.cos(angles) ** self.spreading
        return angles, share / share.sum()

    def waves(self, *, seed: int | Sequence[int], count: int = WAVES) -> Waves:
        """Draw a random sea of ``count`` waves, shared among the directions.

        The frequency range is cut into equal cells; each cell's wave carries exactly the cell's energy, at a random
        place in the cell, so that the sea does not repeat. Outside the cells lie 0.2 % of the energy.
        """
        check_number(count, what="number of waves", unit="", low=8, high=100_000, error=DeckError)
        generator = np.random.default_rng(seed)
        total = self.cumulative[-1]
        low, high = np.interp([share * total for share in KEPT_ENERGY], self.cumulative, self.omega)
        angles, shares = self.directions()
        shape = (len(angles), math.ceil(count / len(angles)))
        edges = np.linspace(low, high, shape[1] + 1)
        energy = np.diff(np.interp(edges, self.omega, self.cumulative))
        omega = edges[:-1] + generator.uniform(size=shape) * np.diff(edges)
        return Waves(
            np.sqrt(2 * shares[:, None] * energy).ravel(),
            omega.ravel(),
            np.repeat(angles, shape[1]),
            generator.uniform(0, 2 * math.pi, size=shape).ravel(),
        )


def check_increasing(values: Array, what: str, unit: str) -> None:
    """Refuse a row of numbers that does not increase."""
    wrong = ~(np.diff(values) > 0)  # so is what is no number
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DeckError(
            f"{what} must increase, but {values[at]:g} is followed by {values[at + 1]:g} {unit}; sort them, each once"
        )


def _check_height_period(height: float, period: float, name: str) -> tuple[float, float]:
    height = check_number(height, what=f"{name}: significant wave height", unit="m", low=0.01, high=30, error=DeckError)
    period = check_number(period, what=f"{name}: peak period", unit="s", low=1, high=40, error=DeckError)
    steepest = height / (9.81 * period**2 / (2 * math.pi))
    if steepest > 0.1:  # waves of this mean steepness would all be breaking
        raise DeckError(
            f"{name}: a significant height of {height:g} m with a peak period of {period:g} s is {steepest:.2g} of the "
            "wave length, but above 0.1 every wave breaks; lower the height or lengthen the period"
        )
    return height, period


def _grid(peak: float) -> Array:
    """Frequencies from 0.25 to 12 times the peak, fine near it: a Bretschneider tail of 6e-5 of the energy is cut."""
    return peak * np.geomspace(0.25, 12, GRID_POINTS)


def bretschneider(
    *,
    height: float,
    peak_period: float | None = None,
    mean_period: float | None = None,
    zero_crossing_period: float | None = None,
    spreading: float | None = None,
) -> Sea:
    """Bretschneider's spectrum, also called ITTC two-parameter: S = 5/16 Hs² ωp⁴/ω⁵ exp(-5/4 (ωp/ω)⁴).

    Height Hs in m; one period in s: of the peak, the mean one (m₀/m₁) or that of zero crossings (√(m₀/m₂)).
    """
    given = {
        1.0: peak_period,
        1.25**0.25 * float(gamma(0.75)): mean_period,
        math.sqrt(math.sqrt(1.25) * float(gamma(0.5))): zero_crossing_period,
    }
    chosen = [(factor, value) for factor, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise DeckError(
            "bretschneider: give exactly one of peak_period, mean_period and zero_crossing_period, in s; "
            f"{len(chosen)} were given"
        )
    factor, value = chosen[0]
    check_number(value, what="bretschneider: period", unit="s", low=0.5, high=40, error=DeckError)
    height, period = _check_height_period(height, factor * float(value), "bretschneider")
    peak = 2 * math.pi / period
    omega = _grid(peak)
    density = 5 / 16 * height**2 * peak**4 / omega**5 * np.exp(-1.25 * (peak / omega) ** 4)
    return Sea(omega, density, spreading, f"Bretschneider {height:g} m, {period:.4g} s")


def pierson_moskowitz(*, wind_speed: float, spreading: float | None = None) -> Sea:
    """Fully developed sea for a wind (m/s) 19.5 m above it: S = 0.0081 g²/ω⁵ exp(-0.74 (g/(U ω))⁴)."""
    wind = check_number(
        wind_speed, what="pierson_moskowitz: wind speed", unit="m/s", low=1, high=60, error=DeckError, hint="not knots"
    )
    decay = 0.74 * (9.81 / wind) ** 4
    height = 4 * math.sqrt(0.0081 * 9.81**2 / (4 * decay))
    sea = bretschneider(height=height, peak_period=2 * math.pi / (0.8 * decay) ** 0.25, spreading=spreading)
    return replace(sea, name=f"Pierson-Moskowitz {wind:g} m/s")


def jonswap(*, height: float, peak_period: float, peakedness: float = 3.3, spreading: float | None = None) -> Sea:
    """JONSWAP's spectrum of growing seas; peakedness γ = 1 gives Bretschneider's. Scaled to the given height exactly.

    S ∝ ω⁻⁵ exp(-5/4 (ωp/ω)⁴) γ^exp(-(ω-ωp)²/(2 σ² ωp²)), σ = 0.07 below the peak, 0.09 above.
    """
    height, period = _check_height_period(height, peak_period, "jonswap")
    peakedness = check_number(peakedness, what="jonswap: peakedness", unit="", low=1, high=20, error=DeckError)
    peak = 2 * math.pi / period
    omega = _grid(peak)
    width = np.where(omega <= peak, 0.07, 0.09)
    bump = peakedness ** np.exp(-((omega - peak) ** 2) / (2 * width**2 * peak**2))
    shape = omega**-5.0 * np.exp(-1.25 * (peak / omega) ** 4) * bump
    density = shape * (height**2 / 16) / np.trapezoid(shape, omega)
    return Sea(omega, density, spreading, f"JONSWAP {height:g} m, {period:.4g} s, γ {peakedness:g}")


def sea_state(name: str, *, spreading: float | None = None) -> Sea:
    """A named sea state, such as SS5, as a Bretschneider spectrum."""
    key = str(name).upper().replace(" ", "")
    if key not in SEA_STATES:
        raise DeckError(f"no sea state is called {name!r}; known: {', '.join(SEA_STATES)}")
    height, period = SEA_STATES[key]
    return replace(bretschneider(height=height, peak_period=period, spreading=spreading), name=key)


# ---------------------------------------------------------------- measured spectra


def read_ndbc(path: Path, *, when: str = "mean", spreading: float | None = None) -> Sea:
    """Read a wave spectrum of the US National Data Buoy Center.

    Takes the yearly files (a row of frequencies in Hz, then rows of date and m²/Hz; two- and four-digit years, with
    and without minutes, 999 for missing) and the real-time ``.data_spec`` files (pairs ``density (frequency)``), plain
    or gzipped. ``when``: a time such as "2018-01-03 12:40", "highest", or "mean" of all complete rows.
    """
    if not path.is_file():
        raise DeckError(f"{path}: no such file; give a wave spectrum in NDBC's format")
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="ascii") as stream:
            lines = [line.split("#")[0] if not line.startswith("#") else line for line in stream if line.strip()]
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        raise DeckError(f"{path}: not an NDBC text file ({error})") from None
    header = lines[0].lstrip("#").split() if lines else []
    if len(header) < 8 or header[0] not in ("YY", "YYYY"):
        raise DeckError(f"{path}, line 1: NDBC spectra begin with '#YY MM DD hh mm' and frequencies in Hz")
    stamp = 5 if "mm" in header[:5] else 4
    rows = [line for line in lines[1:] if not line.startswith("#")]
    if "(" in "".join(rows[:1]):
        found = [(line.split()[:stamp], re.findall(r"([\d.]+) \(([\d.]+)\)", line)) for line in rows]
        grids = [[pair[1] for pair in pairs] for _, pairs in found]
        if any(grid != grids[0] for grid in grids):
            raise DeckError(f"{path}: the rows have different frequencies; keep those with the same ones")
        frequency = np.array(grids[0], float)
        table = _numbers([[pair[0] for pair in pairs] for _, pairs in found], len(frequency), path)
        stamps = [parts for parts, _ in found]
    else:
        frequency = _numbers([header[stamp:]], len(header) - stamp, path)[0]
        table = _numbers([line.split()[stamp:] for line in rows], len(frequency), path)
        stamps = [line.split()[:stamp] for line in rows]
    check_increasing(frequency, f"{path}: wave frequencies", "Hz")
    good = np.asarray(((table >= 0) & (table < 998)).all(axis=1))
    if not good.any():
        raise DeckError(f"{path}: there is no row without missing (999) or negative values")
    label, density = _choose(table, good, stamps, when, frequency, path)
    return Sea(2 * math.pi * frequency, density / (2 * math.pi), spreading, f"{path.name}, {label}")


def _numbers(rows: list[list[str]], width: int, path: Path) -> Array:
    for index, row in enumerate(rows):
        if len(row) != width:
            raise DeckError(f"{path}, data row {index + 1}: {len(row)} densities for {width} frequencies; cut it out")
    try:
        return np.array(rows, float).reshape(len(rows), width)
    except ValueError as error:
        raise DeckError(f"{path}: {error}; densities and frequencies must be numbers") from None


def _choose(
    table: Array, good: NDArray[np.bool_], stamps: list[list[str]], when: str, frequency: Array, path: Path
) -> tuple[str, Array]:
    if when == "mean":
        return f"mean of {int(good.sum())} rows", table[good].mean(axis=0)
    times = []
    for row, parts in enumerate(stamps):
        try:
            year, month, day, hour, minute = (int(part) for part in [*parts, "0"][:5])
        except ValueError:
            raise DeckError(f"{path}, data row {row + 1}: {' '.join(parts)!r} is not a date and hour") from None
        full = year if year > 99 else year + (1900 if year > 50 else 2000)
        times.append(f"{full:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}")
    if when == "highest":
        energy = np.where(good, np.trapezoid(table, frequency, axis=1), -1)
        row = int(np.argmax(energy))
    else:
        wanted = when.replace("T", " ")[:16]
        if wanted not in times:
            raise DeckError(
                f"{path}: no spectrum of {when!r}; the file goes from {times[0]} to {times[-1]}, "
                'or choose "mean" or "highest"'
            )
        row = times.index(wanted)
        if not good[row]:
            raise DeckError(f"{path}: the spectrum of {when} has missing or negative values; choose another time")
    return times[row], table[row]
