"""Statistics of runs: the twin of runtime.c's ``reduce`` in NumPy, and how those of many runs are put together.

Quantiles come from histograms of fixed bins, so that runs can be added in any number without keeping samples; a
quantile is exact to one bin. All sums are taken in the order of the runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posture.engine.machine import Batch, Statistics
from posture.engine.program import Program

Array = NDArray[np.floating]

COMPLETE, NOT_FINITE, TURNED, FALLEN = range(4)
ENDINGS = ("complete", "not finite", "joint past 80°", "fallen")


def gather_run(batch: Batch, found: Statistics, run: int, states: Array, outputs: Array, program: Program) -> None:
    """Add one run (rows × …) to the statistics, as runtime.c does while it goes on."""
    rows = len(states)
    times = (batch.first + batch.every * (np.arange(rows) + int(not batch.keep_start))) * batch.step
    broken = np.asarray(~np.isfinite(states).all(axis=1))
    turned = (np.abs(states[:, list(batch.gimbals)]) > batch.gimbal_limit).any(axis=1)
    lowest = -np.inf if batch.lowest is None else batch.lowest[run]
    low = outputs[:, 2 * program.joints + 8] < lowest
    bad, fell = (int(np.argmax(flags)) if flags.any() else rows for flags in (broken | turned, low))
    good = min(bad, fell + 1)  # the row of the fall still counts
    why = COMPLETE
    if good < rows or fell == rows - 1:
        why = FALLEN if fell < bad else NOT_FINITE if broken[bad] else TURNED
    events, last_event = 0, -np.inf
    if batch.outlines:
        outside = ~(outputs[:good, -1] >= 0)
        for time in times[:good][np.diff(outside.astype(int), prepend=0) > 0]:
            if time - last_event >= found.refractory:
                events, last_event = events + 1, time
    found.ending[run] = times[good - 1] if good else 0.0, why, events
    table = np.hstack((states, outputs))[:good, list(found.columns)]
    for signal in range(len(found.columns)):
        values = table[:, signal]
        for row, value in enumerate(values):
            if np.isnan(value):
                continue
            for moments in (found.moments[run, signal], found.over_time[row, signal]):
                difference = value - moments[1]
                moments[0] += 1
                moments[1] += difference / moments[0]
                moments[2] += difference * (value - moments[1])
        values = values[~np.isnan(values)]
        if len(values):
            found.moments[run, signal, 3:] = values.min(), values.max()
        place = (values - found.low[signal]) * (found.bins / (found.high[signal] - found.low[signal]))
        bins = np.where(place < 0, 0, np.where(place >= found.bins, found.bins + 1, 1 + np.floor(place))).astype(int)
        found.histogram[run, signal] += np.bincount(bins, minlength=found.bins + 2).astype(np.int32)


def merge(one: Array, other: Array) -> Array:
    """Count, mean and M2 (last axis) of two groups together (Chan, Golub and LeVeque 1979)."""
    count = one[..., 0] + other[..., 0]
    share = np.divide(other[..., 0], count, out=np.zeros_like(count), where=count > 0)
    difference = other[..., 1] - one[..., 1]
    mean = one[..., 1] + difference * share
    squares = one[..., 2] + other[..., 2] + difference**2 * one[..., 0] * share
    return np.stack((count, mean, squares), axis=-1)


def deviation(moments: Array) -> Array:
    """Standard deviation (n - 1) from count, mean and M2; NaN below two samples."""
    count = np.where(moments[..., 0] > 1, moments[..., 0] - 1, np.nan)
    return np.asarray(np.sqrt(moments[..., 2] / count))


def quantiles(histogram: NDArray[np.integer], low: Array, high: Array, extremes: Array, levels: Array) -> Array:
    """Quantiles (… × signals × levels) from histograms (… × signals × bins + 2), linear inside a bin.

    ``extremes``: smallest and largest sample (… × signals × 2), which bound the two open bins.
    """
    bins = histogram.shape[-1] - 2
    edges = low[:, None] + (high - low)[:, None] * np.arange(bins + 1) / bins  # signals × (bins + 1)
    inside = np.broadcast_to(edges, (*histogram.shape[:-1], bins + 1))
    smallest, largest = extremes[..., :1], extremes[..., 1:]
    ends = np.minimum(smallest, inside[..., :1]), np.maximum(largest, inside[..., -1:])
    borders = np.concatenate((ends[0], inside, ends[1]), axis=-1)
    reached = np.cumsum(histogram, axis=-1)
    total = reached[..., -1:]
    result = []
    for level in levels:
        wanted = level * total
        place = np.argmax((reached >= wanted) & (histogram > 0), axis=-1)[..., None]
        count = np.take_along_axis(histogram, place, -1)
        before = np.take_along_axis(reached, place, -1) - count
        part = (wanted - before) / np.maximum(count, 1)
        left, right = (np.take_along_axis(borders, place + side, -1) for side in (0, 1))
        value = np.clip(left + part * (right - left), smallest, largest)
        result.append(np.where(total > 0, value, np.nan))
    return np.concatenate(result, axis=-1)
