"""Muscle sharing and joint forces of jump.urdf against OpenSim's StaticOptimization and JointReaction, frames/s.

Both get the same body, muscles and motion. Sharing is compared on OpenSim's own moment arms and on the torques that
its answer gives, so that our objective must not be above its own; joint forces for OpenSim's muscle forces.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import OPENSIM, fastest, missing, row
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.joint_loads import joint_loads
from posture.kinematics import Base, tree_of
from posture.muscle_sharing import share
from posture.muscles import Muscles, Place, load_muscles

FRAMES = 121
RATE = 120.0  # frames per second of the motion
LOWEST = 0.01  # activation
BIG = 6000  # frames in one of our batches


def rows() -> list[dict[str, Any]]:
    """Two exponents of sharing, and joint forces."""
    body = load_body("jump")
    muscles = load_muscles(body)
    found = []
    for exponent in (2, 3):
        name = f"OpenSim StaticOptimization, p = {exponent}"
        try:
            theirs = in_opensim(problem(body, muscles, exponent))
        except (ImportError, RuntimeError, subprocess.TimeoutExpired) as error:
            found.append(missing("muscles", name, f"{type(error).__name__}: {error}"))
            continue
        found.append(sharing(muscles, theirs, exponent, name))
        if exponent == 2:
            found.append(reactions(body, muscles, theirs))
    return found


def swing(body: Body, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A lively motion in the air as root x, z, pitch and joints, with its first two derivatives (n × 16 each)."""
    random = np.random.default_rng(3)
    count = 3 + len(body.joint_names)
    size, speed, phase = random.uniform(0.1, 0.3, count), random.uniform(3, 7, count), random.uniform(0, 6, count)
    middle = np.array([0.0, 1.0, 0.1, *(0.7 if "hip" in name or "knee" in name else 0.1 for name in body.joint_names)])
    turn = times[:, None] * speed + phase
    return middle + size * np.sin(turn), size * speed * np.cos(turn), -size * speed**2 * np.sin(turn)


def problem(body: Body, muscles: Muscles, exponent: int) -> dict[str, Any]:
    """Everything as plain numbers."""
    tree, model = tree_of(body), body.model
    times = np.arange(FRAMES) / RATE
    position = swing(body, times)[0]
    links = [{"name": "root", "parent": -1, "offset": [0, 0, 0], "axis": [0, 1, 0]}]
    links += [
        {
            "name": name,
            "parent": tree.parent[index] + 1,
            "offset": tree.offset[index].tolist(),
            "axis": tree.axis[index].tolist(),
        }
        for index, name in enumerate(body.joint_names)
    ]
    for link, inertia in zip(links, list(model.inertias)[1:], strict=True):
        link |= {"mass": inertia.mass, "center": inertia.lever.tolist(), "inertia": inertia.inertia.tolist()}
    pulleys: dict[str, Any] = {}
    paths = []
    for muscle in muscles.muscles:
        items: list[dict[str, Any]] = []
        for item in muscle.path:
            if isinstance(item, Place):
                items.append({"body": item.joint + 1, "point": item.point.tolist()})
            else:
                pulleys[item.name] = {
                    "body": item.joint + 1,
                    "center": item.center.tolist(),
                    "axis": item.axis.tolist(),
                    "radius": item.radius,
                }
                items.append({"pulley": item.name})
        paths.append({"name": muscle.name, "max_force": muscle.max_force, "path": items})
    return {
        "gravity": STANDARD_GRAVITY,
        "links": links,
        "pulleys": pulleys,
        "muscles": paths,
        "muscle_joints": [body.joint_names[joint] for joint in muscles.joints],
        "lowest_activation": LOWEST,
        "exponent": exponent,
        "times": times.tolist(),
        "position": position[:, [2, 0, 1, *range(3, position.shape[1])]].tolist(),
        "every": 1,
    }


def in_opensim(given: dict[str, Any], python: Path = OPENSIM) -> dict[str, Any]:
    """Run the peer in its own process and environment."""
    if not python.is_file():
        raise ImportError("OpenSim is not installed")
    peer = Path(__file__).with_name("opensim_muscles_peer.py")
    with tempfile.TemporaryDirectory() as folder:  # OpenSim leaves a log wherever it runs
        done = subprocess.run(
            [python.absolute(), peer.absolute()],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            cwd=folder,
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "OpenSim failed")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def sharing(muscles: Muscles, theirs: dict[str, Any], exponent: int, name: str) -> dict[str, Any]:
    """Same moment arms, torques, bounds and reserves; the difference is how far our objective lies above theirs."""
    activation, reserve = np.array(theirs["activation"]), np.array(theirs["reserve"])
    times = np.round(np.array(theirs["times"]) * RATE).astype(int)
    arms = np.array(theirs["moment_arms"])[times]
    torque = np.einsum("njm,nm->nj", arms, activation * muscles.max_force) + reserve
    ours = share(arms, torque, muscles.max_force, exponent=exponent, low=LOWEST, reserve=1.0)
    objective = (activation**exponent).sum(axis=1) + (np.abs(reserve) ** exponent).sum(axis=1)
    above = float(np.max((ours.objective - objective) / objective))
    copies = -(-BIG // len(arms))
    many_arms, many_torques = np.tile(arms, (copies, 1, 1)), np.tile(torque, (copies, 1))
    seconds = fastest(
        lambda: share(many_arms, many_torques, muscles.max_force, exponent=exponent, low=LOWEST, reserve=1.0)
    )
    speeds = len(many_arms) / seconds, len(times) / theirs["sharing_seconds"]
    return row("muscles", name, *speeds, max(above, float(ours.kkt.max())), 1e-9)


def reactions(body: Body, muscles: Muscles, theirs: dict[str, Any]) -> dict[str, Any]:
    """Forces in the six leg joints for OpenSim's muscle forces; relative to the largest."""
    times = np.array(theirs["reaction_times"])
    tension = np.array(theirs["muscle_force"])
    motion = swing(body, times)
    names = [body.joint_names[joint] for joint in muscles.joints]

    def loads(copies: int) -> np.ndarray:
        q, v, a = (np.tile(values, (copies, 1)) for values in motion)
        base = Base.planar(q[:, :3], v[:, :3], a[:, :3])
        found = joint_loads(
            body,
            q[:, 3:],
            v[:, 3:],
            a[:, 3:],
            base=base,
            muscles=muscles,
            muscle_force=np.tile(tension, (copies, 1)),
            joints=names,
        )
        return np.asarray(found.force)

    expected = np.array(theirs["joint_force"])
    inner = slice(len(times) // 5, -len(times) // 5)  # OpenSim splines the motion, which goes wrong at its ends
    difference = float(np.abs(loads(1) - expected)[inner].max() / np.abs(expected).max())
    copies = -(-BIG // len(times))
    speeds = copies * len(times) / fastest(lambda: loads(copies)), len(times) / theirs["reaction_seconds"]
    return row("muscles", "OpenSim JointReaction", *speeds, difference, 1e-6)
