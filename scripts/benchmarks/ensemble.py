"""Many 60 s runs with different seas on two cores, runs per second, with the making of the deck motion."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.problem import ROOT, both, missing, row
from posture.deck import channels_of
from posture.engine.ensemble import run_ensemble
from posture.engine.machine import machine_for
from posture.engine.plan import Plan
from posture.scenario import read_scenario

CORES, RUNS, PEER_RUNS = 2, 2048, 8
ALLOWED = 1e-5  # rad: what MuJoCo's held deck accelerations leave open (see single.py)


def rows() -> list[dict[str, Any]]:
    """``run_ensemble`` as a whole (statistics, checkpoints, result file) against the peers' bare trajectories."""
    # Upright and at rest at time 0, as the peers begin; finding a balanced posture first is not part of the comparison.
    plan = Plan(read_scenario(ROOT / "posture/demo.toml", overrides={"start": "upright"}), RUNS, {}, seed=1)
    batch, _ = plan.batch(range(PEER_RUNS))
    angles = machine_for(plan.program, "compiled").states(batch)[:, :, : plan.program.joints]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ensemble.nc"
        seconds, busy = both(lambda: run_ensemble(plan, out, threads=CORES), repeats=3)
    found = []
    for name, peer in (("mujoco.rollout", mujoco_rollout), ("pin.abaInParallel", pin_parallel)):
        try:
            (peer_seconds, peer_busy), difference, allowed = peer(plan, angles)
            line = row("ensemble", name, RUNS / seconds, 1 / peer_seconds, difference, allowed)
            # Of processor time, which other work on the machine disturbs less than elapsed time.
            found.append(line | {"ratio_cpu": peer_busy / (busy / RUNS)})
        except Exception as error:  # a peer that fails is a line of the table, not the end of it
            found.append(missing("ensemble", name, f"{type(error).__name__}: {error}"))
    return found


def mujoco_rollout(plan: Plan, angles: np.ndarray) -> tuple[tuple[float, float], float, float]:
    """Seconds per run (elapsed, processor), difference, allowed: mujoco.rollout on two threads; controls from the same harmonics in NumPy."""
    from mujoco import MjData, rollout

    from benchmarks import mujoco_peer

    first = plan.first
    model = mujoco_peer.model_of(first)
    kept: list[np.ndarray] = []

    def work() -> None:
        decks = [plan.settings_of(run)[0].deck() for run in range(PEER_RUNS)]
        pairs = [mujoco_peer.start_and_controls(model, first, deck) for deck in decks]
        starts, controls = (np.stack(part) for part in zip(*pairs, strict=True))
        kept[:] = [rollout.rollout(model, [MjData(model) for _ in range(CORES)], starts, controls)[0]]

    elapsed, busy = both(work, repeats=2)
    states = kept[0][:, first.every - 1 :: first.every]
    difference = float(np.abs(mujoco_peer.angles(model, states, plan.program.joints) - angles[:, 1:]).max())
    return (elapsed / PEER_RUNS, busy / PEER_RUNS), difference, ALLOWED


def pin_parallel(plan: Plan, angles: np.ndarray) -> tuple[tuple[float, float], float, float]:
    """RK4 in NumPy over 64 runs at once, pin.abaInParallel on two threads, base as heavy as in single.py."""
    first, runs, steps, heavy = plan.first, 64, 100, 1e13
    model = first.body.model.copy()
    model.inertias[1] = pin.Inertia(heavy, np.zeros(3), heavy * np.eye(3))
    pool = pin.ModelPool(model, CORES)
    kp, kd = first.controller.stiffness[:, None], first.controller.damping[:, None]
    q, v, tau, a = (np.zeros((size, runs), order="F") for size in (model.nq, model.nv, model.nv, model.nv))
    q[6] = 1.0
    step = first.step
    kept: list[np.ndarray] = []

    def work() -> None:
        times = np.arange(2 * steps + 1) * step / 2
        felt = np.stack([channels_of(plan.settings_of(run)[0].deck().sample(times)) for run in range(runs)], axis=2)
        wrench = heavy * np.concatenate((felt[:, 6:], felt[:, 3:6]), axis=1)

        def rate(x: np.ndarray, row: int) -> np.ndarray:
            q[7:], v[6:], v[3:6], tau[:6] = x[:12], x[12:], felt[row, :3], wrench[row]
            tau[6:] = -kp * x[:12] - kd * x[12:]
            pin.abaInParallel(CORES, pool, q, v, tau, a)
            return np.concatenate((x[12:], a[6:]))

        x = np.zeros((24, runs))
        for index in range(steps):
            k1 = rate(x, 2 * index)
            k2 = rate(x + step / 2 * k1, 2 * index + 1)
            k3 = rate(x + step / 2 * k2, 2 * index + 1)
            k4 = rate(x + step * k3, 2 * index + 2)
            x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        kept[:] = [x]

    share = runs * steps / round(first.duration / step)  # of whole runs
    elapsed, busy = both(work, repeats=2)
    difference = np.abs(kept[0][:12, :PEER_RUNS].T - angles[:, steps // first.every]).max()
    return (elapsed / share, busy / share), float(difference), 1e-9
