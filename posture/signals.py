"""Recorded histories made smooth enough to differentiate twice: gaps, singular spectrum analysis, B-splines.

Singular spectrum analysis (SSA): the history's windows of L samples are the columns of a Hankel matrix; its leading r
singular parts, averaged back along the diagonals, are the smoothed history. The two choices follow stated rules:

* window: ``WINDOW`` seconds, at most half of the record. Longer windows separate slow motion from noise better, and
  four tenths of a second hold the fastest parts of human movement.
* rank: the smallest for which what is taken away looks like noise, that is, neighbouring samples of it are not
  correlated (lag-one autocorrelation below 2/√n). One part more lets noise through and may multiply the error of the
  second derivative by ten; one less takes motion away, and then the remainder is correlated. Skin that moves over
  bone is noise, too, but correlated; so a part whose own frequency lies above ``HIGHEST`` ends the sum in any case.

Written by hand because no maintained package offers SSA with such a rule; it is one eigenvalue problem of size L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posture.errors import MotionError, check_number

Array = NDArray[np.floating]

WINDOW = 0.4  # s
HIGHEST = 7.0  # Hz; walking has little above 6
LONGEST_GAP = 0.2  # s; a longer hole is not filled by default
FEWEST_SAMPLES = 12
# s³; a smoothing spline of samples with noise σ along motion whose acceleration has spectral density q has σ²/q. Two
# millimetres beside the 20 m/s² below 6 Hz of a foot: (2e-3)² / (20²/12).
BRIDGE_STIFFNESS = 1e-7


@dataclass(frozen=True)
class Smoothing:
    """What a filter did to each column: its window (samples) and rank, and the size of what it took away."""

    names: list[str]
    window: int
    rank: NDArray[np.intp]
    removed: Array

    def worst(self) -> tuple[str, float]:
        """Column that lost most, and how much (rms, in the column's unit)."""
        at = int(np.argmax(self.removed))
        return self.names[at], float(self.removed[at])


def ssa(
    values: Array,
    rate: float,
    *,
    window: float = WINDOW,
    rank: int | None = None,
    highest: float = HIGHEST,
    names: Sequence[str] | None = None,
) -> tuple[Array, Smoothing]:
    """Smooth every column (n × m) by SSA; ``rate`` in samples/s, ``window`` in s, ``rank`` None to choose it.

    ``highest`` (Hz): parts faster than this are noise whatever they look like.
    """
    columns = np.asarray(values, float).reshape(len(values), -1)
    count = len(columns)
    check_number(rate, what="sampling rate", unit="samples/s", low=1.0, high=1e5, error=MotionError)
    if count < FEWEST_SAMPLES:
        raise MotionError(f"{count} samples are too few to smooth; at least {FEWEST_SAMPLES} are needed")
    if not np.isfinite(columns).all():
        raise MotionError("a history to smooth has gaps; fill them first (fill_gaps)")
    length = int(np.clip(round(window * rate), 4, count // 2))
    labels = list(names) if names is not None else [str(column) for column in range(columns.shape[1])]
    smooth, ranks = np.empty_like(columns), np.zeros(columns.shape[1], np.intp)
    for column, history in enumerate(columns.T):
        smooth[:, column], ranks[column] = _ssa(history, length, rank, highest / rate)
    removed = np.sqrt(np.mean((columns - smooth) ** 2, axis=0))
    return smooth.reshape(np.shape(values)), Smoothing(labels, length, ranks, removed)


def _ssa(history: Array, length: int, rank: int | None, highest: float) -> tuple[Array, int]:
    middle = history.mean()
    spread = float(np.abs(history - middle).max())
    if spread == 0:
        return history.copy(), 0
    # At an end few windows overlap and little is averaged: go on with the history's reflection in its end point.
    centred = (
        np.concatenate(
            (2 * history[0] - history[length:0:-1], history, 2 * history[-1] - history[-2 : -2 - length : -1])
        )
        - middle
    )
    inner = slice(length, length + len(history))
    windows = np.lib.stride_tricks.sliding_window_view(centred, length).T  # length × windows
    parts = np.linalg.eigh(windows @ windows.T)[1][:, ::-1]
    scores = parts.T @ windows
    overlap = np.convolve(np.ones(length), np.ones(windows.shape[1]))
    limit = 2 / np.sqrt(len(history))
    found = np.zeros(len(centred))
    for order in range(length if rank is None else min(rank, length)):
        if rank is None and order and _frequency(parts[:, order]) > highest:
            return found[inner] + middle, order
        found += np.convolve(parts[:, order], scores[order]) / overlap
        left = (centred - found)[inner]
        if rank is None and (np.abs(left).max() < 1e-9 * spread or _neighbours(left) < limit):
            return found[inner] + middle, order + 1
    return found[inner] + middle, length if rank is None else min(rank, length)


def _frequency(part: Array) -> float:
    """Frequency (cycles per sample) about which a part of a window oscillates: half its sign changes per sample."""
    return float(np.count_nonzero(np.diff(np.signbit(part)))) / (2 * (len(part) - 1))


def _neighbours(values: Array) -> float:
    values = values - values.mean()
    size = float(values @ values)
    return float(values[1:] @ values[:-1]) / size if size > 0 else 0.0


def lowpass(values: Array, rate: float, cutoff: float) -> Array:
    """Fourth-order Butterworth forwards and backwards (no delay), the laboratories' habit; ``cutoff`` in Hz.

    Two passes of a second-order filter; its cut-off is raised so that both together are 3 dB down at ``cutoff``.
    """
    from scipy.signal import butter, filtfilt

    check_number(cutoff, what="cut-off", unit="Hz", low=0.1, high=0.45 * rate, error=MotionError)
    corrected = np.tan(np.pi * cutoff / rate) / (np.sqrt(2) - 1) ** 0.25
    b, a = butter(2, np.arctan(corrected) * 2 / np.pi)
    return np.asarray(filtfilt(b, a, values, axis=0, padtype="odd", padlen=min(len(values) - 1, int(rate))))


@dataclass(frozen=True)
class Gaps:
    """Holes of a record: how many samples were filled, and the ones too long to fill, by column name."""

    filled: dict[str, int]
    left: dict[str, list[tuple[float, float]]]

    def sentence(self) -> str:
        """One line for a report."""
        if not self.filled and not self.left:
            return "no gaps"
        filled = f"{sum(self.filled.values())} samples filled in {len(self.filled)} histories"
        longest = max((b - a for spans in self.left.values() for a, b in spans), default=0.0)
        return filled + (f"; {len(self.left)} keep gaps of up to {longest:.2f} s" if self.left else "")


def fill_gaps(time: Array, values: Array, *, names: Sequence[str], longest: float = LONGEST_GAP) -> tuple[Array, Gaps]:
    """Fill holes (NaN) of each named history by a smoothing spline along its neighbours, if they are short enough.

    ``values``: n × names × anything; a sample with any NaN is a hole. Holes longer than ``longest`` (s) and those at
    either end stay.
    """
    from scipy.interpolate import make_smoothing_spline

    check_number(longest, what="longest gap to fill", unit="s", low=0, high=10, error=MotionError)
    filled = np.array(values, float)
    done: dict[str, int] = {}
    left: dict[str, list[tuple[float, float]]] = {}
    step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
    for column, name in enumerate(names):
        history = filled[:, column].reshape(len(time), -1)
        hole = ~np.isfinite(history).all(axis=1)
        if not hole.any():
            continue
        good = np.flatnonzero(~hole)
        for start, end in _runs(hole):
            inside = len(good) >= 5 and start > good[0] and end - 1 < good[-1]
            if inside and (end - start) * step <= longest + 1e-9:
                near = good[max(0, np.searchsorted(good, start) - 8) : np.searchsorted(good, end) + 8]
                across = make_smoothing_spline(time[near], filled[near, column], lam=BRIDGE_STIFFNESS)
                filled[start:end, column] = across(time[start:end])
                done[name] = done.get(name, 0) + end - start
            else:
                left.setdefault(name, []).append((float(time[start]), float(time[end - 1] + step)))
    return filled, Gaps(done, left)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Start and end (exclusive) of every run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class SplineTrajectory:
    """Coordinates as quintic B-splines through their samples; derivatives are the splines' own."""

    spline: object
    start: float
    end: float

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """Coordinates and their first two derivatives at times (s) within the record."""
        time = np.asarray(time, float)
        if len(time) and (time.min() < self.start - 1e-9 or time.max() > self.end + 1e-9):
            raise MotionError(
                f"times from {time.min():g} to {time.max():g} s are asked of a record "
                f"from {self.start:g} to {self.end:g} s"
            )
        return tuple(np.asarray(self.spline(time, order)) for order in range(3))  # type: ignore[operator, return-value]


def spline(time: Array, values: Array, *, degree: int = 5) -> SplineTrajectory:
    """B-splines of odd ``degree`` (3 or 5) through samples (n × coordinates)."""
    from scipy.interpolate import make_interp_spline

    time = np.asarray(time, float)
    if degree not in (3, 5):
        raise MotionError(f"the degree of a spline is {degree}, but must be 3 or 5")
    if len(time) <= degree or not np.all(np.diff(time) > 0):
        raise MotionError("a spline needs more samples than its degree, at rising times")
    return SplineTrajectory(make_interp_spline(time, values, k=degree), float(time[0]), float(time[-1]))
