"""Gradient of a 60 s run, in runs: how many runs one gradient costs, against differences one run after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.problem import fastest, row, stance
from posture.engine.gradient import Differentiable

NAMES = [f"{gain}.{joint}" for gain in ("stiffness", "damping") for joint in ("ankle_x", "ankle_y", "hip_x", "hip_y")]
ALLOWED = 1e-6  # relative


def rows() -> list[dict[str, Any]]:
    """Eight parameters in lanes; all parameters in reverse; both against plain central differences."""
    run = Differentiable(stance(60.0), engine="compiled")
    states = run.machine.states(run.batch)[0]
    weights = states / len(states)  # gradient of half the mean square of the states
    one = fastest(lambda: run.machine.states(run.batch))
    places = [run.names.index(name) for name in NAMES]

    def by_lanes() -> np.ndarray:
        return np.einsum("rs,rsp->p", weights, run.jacobian(NAMES))

    def one_by_one() -> np.ndarray:
        found = []
        for place in places:
            step = 6e-6 * run.values[place]
            ends = []
            for sign in (1, -1):
                values = run.values.copy()
                values[place] += sign * step
                ends.append(run.run(values)[0])
            found.append(np.sum(weights * (ends[0] - ends[1])) / (2 * step))
        return np.array(found)

    lanes, reverse, plain = by_lanes(), run.pullback(weights)[0], one_by_one()
    plain_s = fastest(one_by_one, repeats=3)
    scale = np.abs(reverse[places]).max()
    found = []
    for name, work, value in (
        (f"8 parameters in lanes, {fastest(by_lanes) / one:.1f} runs, vs one by one", by_lanes, lanes),
        (
            f"all {len(run.names)} parameters in reverse, {fastest(lambda: run.pullback(weights)) / one:.1f} runs, vs 8 one by one",
            lambda: run.pullback(weights),
            reverse[places],
        ),
    ):
        difference = max(np.abs(value - plain).max(), np.abs(value - reverse[places]).max()) / scale
        found.append(row("gradient", name, 1 / fastest(work), 1 / plain_s, difference, ALLOWED))
    return found
