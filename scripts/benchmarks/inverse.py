"""Inverse dynamics of a 57-DOF body, frames per second on one core."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.problem import OPENSIM, fastest, in_opensim, missing, row, whole_body
from posture.engine.frames import InverseDynamics

FRAMES = 20_000
ROUNDING = 1e-12  # relative to the largest force


def rows() -> list[dict[str, Any]]:
    """Our engine against pin in parallel, pin in a loop, MuJoCo and OpenSim."""
    model = whole_body()
    random = np.random.default_rng(1)
    q = np.hstack(
        (random.normal(size=(FRAMES, 3)), np.tile([0, 0, 0, 1.0], (FRAMES, 1)), random.uniform(-1, 1, (FRAMES, 51)))
    )
    v, a = random.normal(size=(2, FRAMES, model.nv))
    ours_function = InverseDynamics(model, engine="compiled")
    forces = ours_function(q, v, a)
    ours = FRAMES / fastest(lambda: ours_function(q, v, a), repeats=9)
    found = []
    for name, peer in (("pin.rneaInParallel", parallel), ("pin.rnea in a Python loop", loop), ("OpenSim", opensim)):
        try:
            per_s, difference = peer(model, q, v, a, forces)
            found.append(row("inverse", name, ours, per_s, difference / np.abs(forces).max(), ROUNDING))
        except Exception as error:  # a peer that fails is a line of the table, not the end of it
            found.append(missing("inverse", name, f"{type(error).__name__}: {error}"))
    return found


def parallel(model: pin.Model, q: Any, v: Any, a: Any, forces: Any) -> tuple[float, float]:
    """pin.rneaInParallel on one thread, columns contiguous as it likes them."""
    pool = pin.ModelPool(model, 1)
    columns = [np.asfortranarray(values.T) for values in (q, v, a)]
    out = np.zeros((model.nv, len(q)), order="F")
    seconds = fastest(lambda: pin.rneaInParallel(1, pool, *columns, out))
    return len(q) / seconds, float(np.abs(out.T - forces).max())


def loop(model: pin.Model, q: Any, v: Any, a: Any, forces: Any) -> tuple[float, float]:
    """pin.rnea, frame by frame."""
    data, count = model.createData(), 2000
    out = np.array([pin.rnea(model, data, q[row], v[row], a[row]) for row in range(count)])

    def work() -> None:
        for line in range(count):
            pin.rnea(model, data, q[line], v[line], a[line])

    return count / fastest(work), float(np.abs(out - forces[:count]).max())


def opensim(model: pin.Model, q: Any, v: Any, a: Any, forces: Any) -> tuple[float, float]:
    """OpenSim's solver, frame by frame; base at the origin without turning or speed, where both mean the same."""
    if not OPENSIM.is_file():
        raise ImportError("OpenSim is not installed")
    count = 1000
    still = [np.array(values[:count]) for values in (q, v, a)]
    still[0][:, :7], still[1][:, :6], still[2][:, :6] = [0, 0, 0, 0, 0, 0, 1.0], 0.0, 0.0
    expected = InverseDynamics(model, engine="compiled")(*still)
    links = [
        {
            "name": str(model.names[index]),
            "parent": int(model.parents[index]) - 1,
            "offset": model.jointPlacements[index].translation.tolist(),
            "mass": float(model.inertias[index].mass),
            "center": model.inertias[index].lever.tolist(),
            "inertia": model.inertias[index].inertia.tolist(),
        }
        for index in range(1, model.njoints)
    ]
    base = np.zeros((count, 6))
    problem = {"links": links, "gravity": 9.81}
    problem |= {key: np.hstack((base, values[:, -51:])).tolist() for key, values in zip("qva", still, strict=True)}
    found = in_opensim("inverse", problem)
    theirs = np.array(found["forces"])
    theirs = np.hstack((theirs[:, 3:6], theirs[:, :3], theirs[:, 6:]))  # OpenSim's base: turns first
    return count / found["seconds"], float(np.abs(theirs - expected).max())
