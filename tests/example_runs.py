"""One short run of each of the five systems, as anybody would make it: for the pictures and the tests of the page.

Imports stand inside the functions, because each needs other parts of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr


def ship_stance(duration: float = 60.0) -> xr.Dataset:
    """A sailor on watch: the scenario of `posture demo`."""
    import posture
    from posture.scenario import parse_scenario

    text = Path(posture.__file__).with_name("demo.toml").read_text(encoding="utf-8")
    run = parse_scenario(text, Path("demo.toml"), overrides={"duration": duration}).run()
    return _joined(run)


def cip(duration: float = 40.0) -> xr.Dataset:
    """Quiet stance of the paper's pendulum, kept up by a PID law against filtered noise."""
    from controllers import PID, Disturbed, FilteredNoise
    from posture.body import load_body
    from posture.deck import constant_deck
    from posture.simulate import simulate

    body = load_body("cip")
    law = PID(body.joint_names, stiffness={"ankle": 880.0}, damping={"ankle": 250.0}, integral={"ankle": 8.0})
    noise = FilteredNoise(gain=220.0, time_constant=100.0, interval=0.01, duration=duration, seed=3)
    return simulate(body, constant_deck(), Disturbed(law, {"ankle": noise}), duration=duration)


def double_pendulum(duration: float = 2.0) -> xr.Dataset:
    """Two links brought upright by the Lyapunov law, with a ligament and a cable between them."""
    from posture.body import load_body
    from posture.deck import constant_deck
    from posture.elements import Cable, Ligament
    from posture.simulate import simulate
    from posture.systems.double_pendulum import GRAVITY, balance

    body = load_body("double_pendulum")
    law = balance(body)
    lines = [
        Ligament(
            name="front ligament", link_a="body_1", point_a=(0.07, 0, 0.2), link_b="body_2", point_b=(0.08, 0, 0.2),
            stiffness=300.0, damping=5.0, rest_length=0.504,
        ),
        Cable(
            name="back cable", link_a="platform", point_a=(-0.35, 0.0, 0.0), link_b="body_2", point_b=(-0.07, 0, 0.3),
            length=0.88,
        ),
    ]  # fmt: skip
    run = simulate(
        body,
        constant_deck(gravity=GRAVITY),
        law,
        duration=duration,
        output_step=0.01,
        start_position=np.array([0.25, -0.1, -0.3, 0.2, -0.45, 0.2]),
        start_velocity=np.array([0.0, 3.0, 0, 0, 2.0, 0]),
        elements=lines,
    )
    value = law.certificate(run["joint_position"].values, run["joint_velocity"].values).value
    run["lyapunov_value"] = ("time", value, {"units": "J", "long_name": "Lyapunov function of the controller"})
    return run


def gait() -> xr.Dataset:
    """A synthetic walking person, run forward open loop from its own forces, beside the motion it should repeat."""
    from posture.body import load_body
    from posture.inverse import generalized_forces, states
    from posture.results import make_dataset, provenance
    from posture.systems.gait import CYCLE, SyntheticGait, walking
    from posture.track import track

    body = load_body("gait")
    person = SyntheticGait(body, walking(body))
    run = track(body, person.motion, np.arange(round(CYCLE / 0.001) + 1) * 0.001)
    rows = np.arange(0, len(run.time), 10)
    time = run.time[rows]
    wanted, feet = states(person.motion, time), person.feet(time)
    force = np.stack([wrench[:, :3] for wrench in feet.values()], axis=1)
    moment = np.stack([wrench[:, 3:] for wrench in feet.values()], axis=1)
    up = np.where(force[..., 2] > 10, force[..., 2], np.nan)
    point = np.stack((-moment[..., 1] / up, moment[..., 0] / up, 0 * up), axis=-1)
    torque = generalized_forces(body, wanted, feet)[:, 6:]
    dataset = make_dataset(
        time,
        {
            "joint_position": run.states.configuration[rows, 7:],
            "joint_torque": torque,
            "root_position": run.states.configuration[rows, :3],
            "root_quaternion": run.states.configuration[rows, 3:7],
            "ground_force": force,
            "ground_point": point,
        },
        joints=body.joint_names,
        locked=[],
        labels={"contact": [name.replace("hindfoot", "foot") for name in feet]},
    )
    for name, dims, values in (
        ("joint_position", ("joint",), wanted.configuration[:, 7:]),
        ("root_position", ("axis",), wanted.configuration[:, :3]),
        ("root_quaternion", ("quaternion",), wanted.configuration[:, 3:7]),
    ):
        dataset[f"reference_{name}"] = (("time", *dims), values, dataset[name].attrs)
    cycle = {"cycle_start_s": 0.0, "cycle_end_s": CYCLE}
    return dataset.assign_attrs(provenance(body, step=0.001, seed=None, scenario="") | cycle)


def jump() -> xr.Dataset:
    """The highest jump of the body's torques, and what its muscles do in it."""
    from scipy.interpolate import CubicSpline

    from posture.body import load_body
    from posture.inverse import from_pinocchio, to_pinocchio
    from posture.jump_motion import jump_motion
    from posture.muscle_analysis import analyse_muscles

    body = load_body("jump")
    found = jump_motion(body).once
    time = np.arange(round((found.time[-1] - found.time[0]) / 0.01) + 1) * 0.01 + found.time[0]
    curve = CubicSpline(found.time, from_pinocchio(found.states.configuration))
    return analyse_muscles(body, time, to_pinocchio(*(curve(time, order) for order in range(3))), reserve=100.0)


def _joined(run: object) -> xr.Dataset:
    from posture.results import join

    return join(list(run.blocks()))  # type: ignore[attr-defined]


EXAMPLES: dict[str, Callable[[], xr.Dataset]] = {
    "ship_stance": ship_stance,
    "cip": cip,
    "double_pendulum": double_pendulum,
    "gait": gait,
    "jump": jump,
}
