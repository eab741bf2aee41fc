"""The common problem: ship_stance under PD control on a rough sea, RK4 with 5 ms; and how things are timed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from controllers import PD
from posture.body import Body, load_body
from posture.deck import SineDeck
from posture.simulate import Run, prepare
from posture.systems.ship_stance import balance_controller, heavy_weather

ROOT = Path(__file__).parents[2]
OPENSIM = ROOT / ".venv-opensim/bin/python"
STEP = 0.005
# Times the system's own gains: stiffer, as a rough sea topples it, and less damped, so that Drake's RK3 is stable, too.
STIFFNESS, DAMPING = 2.0, 1.0


def fastest(work: Callable[[], Any], *, repeats: int = 5, clock: Callable[[], float] = time.process_time) -> float:
    """Least time of some repeats, s; processor time unless several cores work."""
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def both(work: Callable[[], Any], *, repeats: int) -> tuple[float, float]:
    """Least elapsed time and least processor time of all threads, s."""
    elapsed, busy = [], []
    for _ in range(repeats):
        begin = time.perf_counter(), time.process_time()
        work()
        elapsed.append(time.perf_counter() - begin[0])
        busy.append(time.process_time() - begin[1])
    return min(elapsed), min(busy)


def row(job: str, peer: str, ours_per_s: float, peer_per_s: float, difference: float, allowed: float) -> dict[str, Any]:
    """One line; ``difference`` of the two answers must not exceed ``allowed`` (rad, or relative)."""
    return {
        "job": job,
        "peer": peer,
        "ours_per_s": ours_per_s,
        "peer_per_s": peer_per_s,
        "ratio": ours_per_s / peer_per_s,
        "agree": bool(difference <= allowed),
        "difference": float(difference),
    }


def missing(job: str, peer: str, reason: str) -> dict[str, Any]:
    """A line for a peer that could not run."""
    return {
        "job": job,
        "peer": peer,
        "ours_per_s": None,
        "peer_per_s": None,
        "ratio": None,
        "agree": False,
        "difference": None,
        "reason": reason,
    }


def stance(duration: float, *, deck: SineDeck | None = None, engine: str = "compiled") -> Run:
    """The run all peers do."""
    body = load_body("ship_stance")
    own = balance_controller(body)
    controller = PD(
        body.joint_names, stiffness=_named(body, STIFFNESS * own.stiffness), damping=_named(body, DAMPING * own.damping)
    )
    return prepare(
        body, deck or heavy_weather(), controller, duration=duration, step=STEP, output_step=STEP, engine=engine
    )


def _named(body: Body, values: np.ndarray) -> dict[str, float]:
    return dict(zip(body.joint_names, values.tolist(), strict=True))


def links(body: Body) -> list[dict[str, Any]]:
    """Links of the chain as plain numbers: parent, offset (m), mass, centre, inertia about it, axes."""
    found = []
    model = body.model
    for index in range(1, model.njoints):
        inertia = model.inertias[index]
        found.append(
            {
                "name": str(model.names[index]),
                "parent": int(model.parents[index]) - 1,
                "offset": model.jointPlacements[index].translation.tolist(),
                "mass": float(inertia.mass),
                "center": inertia.lever.tolist(),
                "inertia": inertia.inertia.tolist(),
                "axis": "-" if index == 1 else model.joints[index].shortname()[-1],
            }
        )
    return found


def whole_body(seed: int = 0) -> pin.Model:
    """A 57-DOF body: 18 segments, 17 ball joints (three revolutes each), free base; sizes drawn from a seed."""
    random = np.random.default_rng(seed)
    model = pin.Model()

    def segment() -> pin.Inertia:
        shape = pin.Inertia.FromEllipsoid(float(random.uniform(1, 10)), 0.06, 0.05, 0.2)
        return pin.Inertia(shape.mass, np.array([0, 0, -0.15]), shape.inertia)

    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    model.appendBodyToJoint(root, segment(), pin.SE3.Identity())
    carriers = [root]
    for number in range(17):
        joint = carriers[int(random.integers(max(0, len(carriers) - 4), len(carriers)))]
        place = pin.SE3(np.eye(3), random.uniform(-0.2, 0.2, 3))
        for axis, kind in zip("xyz", (pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ()), strict=True):
            joint = model.addJoint(joint, kind, place if axis == "x" else pin.SE3.Identity(), f"joint{number}_{axis}")
        model.appendBodyToJoint(joint, segment(), pin.SE3.Identity())
        carriers.append(joint)
    return model


def in_opensim(task: str, problem: dict[str, Any]) -> dict[str, Any]:
    """Let OpenSim work in a process of its own (it cannot share one with CasADi)."""
    done = subprocess.run(
        [OPENSIM, Path(__file__).with_name("opensim_peer.py"), task],
        input=json.dumps(problem),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "OpenSim failed")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
