"""How cost grows with run length, ensemble size and number of joints; all three should be straight lines.

The free base costs the same whatever stands on it, so joints are counted without it. Past some 60 joint degrees of
freedom the code outgrows the processor's first caches and each further joint costs up to twice as much.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from benchmarks.problem import STEP, fastest, stance
from posture.engine.frames import InverseDynamics
from posture.engine.machine import Batch


def measure() -> dict[str, tuple[list[int], list[float], str]]:
    """Name to sizes, seconds, and what the size counts."""
    run = stance(240.0)
    stepper = run.stepper()
    steps = [3000, 6000, 12000, 24000, 48000]
    length = [fastest(lambda n=n: stepper.integrate(0, n, run.start)) for n in steps]
    sizes = [16, 32, 64, 128]
    ensemble = []
    for runs in sizes:
        batch = Batch(
            np.tile(stepper.parameters, (runs, 1)),
            np.tile(run.start, (runs, 1)),
            [stepper.table] * runs,
            2000,
            STEP,
            2000,
        )
        ensemble.append(fastest(lambda batch=batch: stepper.machine.states(batch)))
    joints, inverse = [], []
    for balls in (2, 4, 8, 17):
        model = chain(balls)
        function = InverseDynamics(model, engine="compiled")
        random = np.random.default_rng(0)
        q = np.hstack((np.tile([0, 0, 0, 0, 0, 0, 1.0], (4000, 1)), random.uniform(-1, 1, (4000, 3 * balls))))
        v, a = random.normal(size=(2, 4000, model.nv))
        joints.append(3 * balls)
        inverse.append(fastest(lambda f=function, q=q, v=v, a=a: f(q, v, a), repeats=9))
    return {
        "run length": (steps, length, "steps"),
        "ensemble size": (sizes, ensemble, "runs of 10 s"),
        "joints": (joints, inverse, "joint degrees of freedom (4000 frames of inverse dynamics)"),
    }


def chain(balls: int) -> pin.Model:
    """A chain of ball joints on a free base."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    link = pin.Inertia(3.0, np.array([0, 0, 0.1]), np.diag([0.02, 0.02, 0.01]))
    model.appendBodyToJoint(joint, link, pin.SE3.Identity())
    for number in range(balls):
        for axis, kind in zip("xyz", (pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ()), strict=True):
            place = pin.SE3(np.eye(3), np.array([0, 0, 0.2 if axis == "x" else 0.0]))
            joint = model.addJoint(joint, kind, place, f"{number}{axis}")
        model.appendBodyToJoint(joint, link, pin.SE3.Identity())
    return model


def plot(path: Path) -> dict[str, float]:
    """Draw the three; exponents of cost against size (1 is linear)."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "posture"
    from matplotlib import pyplot

    found = measure()
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    slopes = {}
    for axis, (name, (sizes, seconds, unit)) in zip(axes, found.items(), strict=True):
        slopes[name] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        axis.loglog(sizes, 1000 * np.array(seconds), "o-")
        axis.loglog(sizes, 1000 * seconds[-1] * np.array(sizes) / sizes[-1], "--", label="linear")
        axis.set(title=f"cost against {name}, exponent {slopes[name]:.2f}", xlabel=unit, ylabel="ms of one core")
        axis.legend()
    figure.savefig(path, metadata={"Date": None})
    return slopes
