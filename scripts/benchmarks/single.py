"""One 12-DOF run, steps per second on one core."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.problem import OPENSIM, STEP, fastest, in_opensim, links, missing, row, stance
from posture.deck import Sine, SineDeck, channels_of

SECONDS = 60.0
# Allowed difference of joint angles, rad. pin: the base's own 1e-11. MuJoCo, Drake: held or interpolated deck accelerations and,
# for Drake, RK3 instead of RK4. OpenSim: the deck's motion as a spline.
PIN, PEERS = 1e-9, 1e-5


def rows() -> list[dict[str, Any]]:
    """Our engine against every peer."""
    run = stance(SECONDS)
    stepper = run.stepper()
    steps = round(SECONDS / STEP)
    states = stepper.integrate(0, steps, run.start)
    joints = len(run.body.joint_names)
    ours = steps / fastest(lambda: stepper.integrate(0, steps, run.start))
    found = []
    for name, peer in (
        ("pin.aba in a Python loop", pin_loop),
        ("MuJoCo", mujoco_moving),
        ("MuJoCo, deck at rest", mujoco_resting),
        ("Drake", drake),
        ("OpenSim", opensim),
    ):
        try:
            per_s, difference, allowed = peer(run, states[:, :joints])
        except ImportError as error:
            found.append(missing("single", name, str(error)))
            continue
        except Exception as error:  # a peer that fails is a line of the table, not the end of it
            found.append(missing("single", name, f"{type(error).__name__}: {error}"))
            continue
        found.append(row("single", name, ours, per_s, difference, allowed))
    return found


def pin_loop(run: Any, angles: np.ndarray) -> tuple[float, float, float]:
    """The leanest Python loop: one pin.aba per stage, on a base too heavy to be moved by the person.

    A base of 1e13 kg and kg·m² with the wrench that gives it the deck's acceleration follows the deck to 1e-11.
    """
    heavy = 1e13
    model = run.body.model.copy()
    model.inertias[1] = pin.Inertia(heavy, np.zeros(3), heavy * np.eye(3))
    data = model.createData()
    steps = 400
    channels = channels_of(run.deck.sample(np.arange(2 * steps + 1) * STEP / 2))
    kp, kd = run.controller.stiffness, run.controller.damping
    q, v, tau = run.body.with_base(run.body.neutral), np.zeros(model.nv), np.zeros(model.nv)
    wrench = heavy * np.hstack((channels[:, 6:], channels[:, 3:6]))
    spin, aba = channels[:, :3], pin.aba

    def rate(x: np.ndarray, row: int) -> np.ndarray:
        q[7:] = x[:12]
        v[6:] = x[12:]
        v[3:6] = spin[row]
        tau[:6] = wrench[row]
        tau[6:] = -kp * x[:12] - kd * x[12:]
        result = np.empty(24)
        result[:12] = x[12:]
        result[12:] = aba(model, data, q, v, tau)[6:]
        return result

    kept = np.empty((steps, 24))

    def loop() -> None:
        x = np.zeros(24)
        for index in range(steps):
            k1 = rate(x, 2 * index)
            k2 = rate(x + STEP / 2 * k1, 2 * index + 1)
            k3 = rate(x + STEP / 2 * k2, 2 * index + 1)
            k4 = rate(x + STEP * k3, 2 * index + 2)
            x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            kept[index] = x

    seconds = fastest(loop)
    return steps / seconds, float(np.abs(kept[:, :12] - angles[:steps]).max()), PIN


def mujoco_moving(run: Any, angles: np.ndarray) -> tuple[float, float, float]:
    """mujoco.rollout, one thread."""
    from mujoco import MjData, rollout

    from benchmarks import mujoco_peer

    model = mujoco_peer.model_of(run)
    start, controls = mujoco_peer.start_and_controls(model, run, run.deck)
    states, _ = rollout.rollout(model, MjData(model), start, controls)
    seconds = fastest(lambda: rollout.rollout(model, MjData(model), start, controls), repeats=3)
    return len(controls) / seconds, float(np.abs(mujoco_peer.angles(model, states[0], 12) - angles).max()), PEERS


def mujoco_resting(run: Any, _angles: np.ndarray) -> tuple[float, float, float]:
    """The same person on a deck at rest: 12 instead of 18 joints, the least work MuJoCo can be given."""
    import mujoco
    from mujoco import MjData, rollout

    from benchmarks import mujoco_peer

    still = stance(SECONDS, deck=SineDeck({"surge": [Sine(0.0, 10.0, 0.0)]}))
    begin = np.random.default_rng(0).uniform(-0.05, 0.05, 12)
    still.start[:12] = begin
    steps = round(SECONDS / STEP)
    angles = still.stepper().integrate(0, steps, still.start)[:, :12]
    model = mujoco_peer.model_of(still, moving=False)
    data = mujoco.MjData(model)
    data.qpos[:] = begin
    start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, _ = rollout.rollout(model, data, start, nstep=steps)
    seconds = fastest(lambda: rollout.rollout(model, MjData(model), start, nstep=steps), repeats=3)
    return steps / seconds, float(np.abs(mujoco_peer.angles(model, states[0], 12) - angles).max()), 1e-9


def drake(run: Any, angles: np.ndarray) -> tuple[float, float, float]:
    """Drake's RK3 with fixed step."""
    from benchmarks import drake_peer

    steps = 400
    seconds, found = drake_peer.simulate(run, steps)
    return steps / seconds, float(np.abs(found - angles[steps - 1]).max()), PEERS


def opensim(run: Any, angles: np.ndarray) -> tuple[float, float, float]:
    """OpenSim's Runge-Kutta-Merson with fixed step, in a process of its own."""
    if not OPENSIM.is_file():
        raise ImportError("OpenSim is not installed")
    steps = 200
    times = np.arange(-20, steps // 2 + 40) * 0.025
    problem = {
        "links": links(run.body),
        "stiffness": run.controller.stiffness.tolist(),
        "damping": run.controller.damping.tolist(),
        "station": run.deck.station.tolist(),
        "gravity": run.deck.gravity,
        "step": STEP,
        "steps": steps,
        "times": times.tolist(),
        "motions": run.deck.motions(times)[0].tolist(),
    }
    found = in_opensim("single", problem)
    return steps / found["seconds"], float(np.abs(np.array(found["angles"]) - angles[steps - 1]).max()), PEERS


if __name__ == "__main__":
    begin = time.perf_counter()
    for line in rows():
        print(line)
    print(time.perf_counter() - begin)
