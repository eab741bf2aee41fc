"""Deck motion as tables that C evaluates at every half step: wave components, splines, or plain samples.

A deck that has a method ``table()`` gives one of the first two; any other deck is sampled at the half steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

INTERPOLATION_ERROR = 1e-13  # relative, from evaluating waves at nodes only
POINTS = (8, 12, 16)  # nodes an interpolation may use


@dataclass(frozen=True)
class Components:
    """Six motions (surge, sway, heave, roll, pitch, yaw) as sums of cos and sin at shared frequencies.

    motion m at time t = steady[m] + Σ_k cosine[k, m] cos(w_k t) + sine[k, m] sin(w_k t), in m and rad;
    ``frequency``: w (K, rad/s); ``cosine``, ``sine``: K × 6; ``station``: where the person stands (m, ship axes).
    """

    frequency: Array
    cosine: Array
    sine: Array
    steady: Array
    station: Array
    gravity: float

    def shifted(self, seconds: float) -> Components:
        """The same motion, its time counted from ``seconds`` on."""
        c, s = (function(self.frequency * seconds)[:, None] for function in (np.cos, np.sin))
        return replace(self, cosine=self.cosine * c + self.sine * s, sine=self.sine * c - self.cosine * s)

    @property
    def mask(self) -> NDArray[np.int64]:
        """For each frequency, bit m is set when motion m has a part in it."""
        used = (self.cosine != 0) | (self.sine != 0)
        return np.asarray((used * (1 << np.arange(6))).sum(axis=1), np.int64)

    def grid(self, step: float) -> tuple[int, int]:
        """Half steps between nodes (a power of two) and nodes per interpolation: the cheapest within the error.

        Interpolating cos(w t) from n nodes H apart errs by at most (w H)^n (1·3·…·(n-1))² / (2^n n!). What a person
        feels holds products of two motions, so w is twice the fastest wave's; products of three are smaller by more
        than their error grows. A wave at a node costs about five times what a node costs in an interpolation.
        """
        fastest = 2 * max(float(np.abs(self.frequency).max(initial=0.0)), 1e-9)
        choices = []
        for points in POINTS:
            bound = math.prod(range(1, points, 2)) ** 2 / (2**points * math.factorial(points))
            longest = (INTERPOLATION_ERROR / bound) ** (1 / points) / fastest
            stride = 1
            while stride < 64 and stride * step <= longest:  # twice as many half steps: 2 · stride · step / 2
                stride *= 2
            choices.append((5 * len(self.frequency) / stride + points, stride, points))
        return min(choices)[1:]


@dataclass(frozen=True)
class Spline:
    """Angular velocity and specific force as cubic pieces on an even grid; C differentiates the velocity.

    ``pieces``: (knots - 1) × 6 × 4, cubic coefficient first; ``rate``: knots per s; ``start``: s into the record.
    """

    pieces: Array
    rate: float
    start: float = 0.0


@dataclass(frozen=True)
class Samples:
    """Nine channels at the half steps of the run, (2n + 1) × 9."""

    channels: Array


Table = Components | Spline | Samples


@runtime_checkable
class HasTable(Protocol):
    """A deck that is a sum of waves or a spline."""

    def table(self) -> Components | Spline:
        """Its table."""
        ...


@cache
def interpolation_weights(stride: int, points: int) -> Array:
    """Weights (stride × points) of the nodes around node 0 at the fractions 0, 1/stride, … between it and the next."""
    nodes = np.arange(1.0 - points // 2, 1.0 + points // 2)
    weights = np.empty((stride, points))
    for row in range(stride):
        for column, node in enumerate(nodes):
            others = np.delete(nodes, column)
            weights[row, column] = np.prod((row / stride - others) / (node - others))
    return weights
