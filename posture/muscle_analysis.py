"""From a motion to ground forces, joint torques, muscle forces and joint loads: any URDF body with muscles.

What the ground does follows from the whole body's motion (Newton and Euler), shared between the feet that stand by
``posture.sharing``; or it is measured, and then the part above the muscles need not be known at all (``reduced``: the
legs hang on a pelvis whose motion is known, section 2.3 of the jump paper). A body that does not float is held by its
root. Joints crossed by muscles are moved by them, all others by torques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY, Body
from posture.errors import MotionError, find_name
from posture.inverse import States, coordinate_names, to_pinocchio
from posture.joint_loads import JointLoads, Push, joint_loads
from posture.kinematics import Base, postures
from posture.motion_files import Table
from posture.muscle_sharing import eliminate, share
from posture.muscles import Curves, load_muscles
from posture.results import make_dataset, provenance
from posture.sharing import Contacts, contact_weights
from posture.sharing import share as share_ground

Array = NDArray[np.floating]

NEAR_GROUND = 0.02  # m above the lowest place of any sole at which a foot counts as touching
LIGHT = 0.02  # of the body weight: below this the body flies


def analyse_muscles(
    body: Body,
    time: Array,
    motion: States,
    *,
    contacts: Contacts | None = None,
    measured: Mapping[str, Array] | None = None,
    reduced: bool = False,
    exponent: float = 2.0,
    hill: bool | Curves = False,
    lowest_activation: float = 0.0,
    reserve: float | None = None,
    elimination: bool = False,
) -> xr.Dataset:
    """Everything the motion (n frames) tells about a body's muscles, as a result with units.

    ``contacts``: landing and leaving times (s) of each contact of the body's sidecar, found from the motion if not
    given; ``measured``: wrench of each contact's plate (n × 6: force, moment about the world's origin). ``reduced``:
    use the measured wrenches as they are and only joints crossed by muscles. ``hill``: bound activations by force,
    length and velocity (True, or the curves). ``exponent``, ``reserve``: as in ``muscle_sharing.share``.
    ``elimination``: show the paper's pseudo-inverse with elimination beside the optimum.
    """
    time = np.asarray(time, float)
    muscles = load_muscles(body)
    position, velocity, acceleration = motion.configuration[:, 7:], motion.velocity[:, 6:], motion.acceleration[:, 6:]
    base = Base.free_flyer(motion.configuration, motion.velocity, motion.acceleration)
    if reduced and measured is None:
        raise MotionError("the reduced model cannot find the ground's forces; give the measured ones")
    names = [body.joint_names[joint] for joint in muscles.joints] if reduced else body.joint_names

    def loads(pushes: Sequence[Push], forces: Array | None = None) -> JointLoads:
        return joint_loads(
            body,
            position,
            velocity,
            acceleration,
            base=base,
            muscles=None if forces is None else muscles,
            muscle_force=forces,
            pushes=pushes,
            joints=names if reduced else None,
        )

    if reduced:
        assert measured is not None
        feet = {name: np.asarray(wrench, float) for name, wrench in measured.items()}
    elif not body.floats:
        feet = {}
    else:
        alone = loads(())
        total = np.hstack((alone.root_force, alone.root_moment))
        contacts = contacts or contacts_from_motion(body, time, motion, total[:, 2])
        feet = _shared(time, total, contacts, measured)
    pushes = [
        Push(_link(body, name), wrench[:, :3], np.zeros((len(time), 3)), wrench[:, 3:]) for name, wrench in feet.items()
    ]
    by_torque = loads(pushes)
    own = [by_torque.joints.index(body.joint_names[joint]) for joint in muscles.joints]

    paths = muscles.paths(postures(body, position, base))
    speed = -np.einsum("njm,nj->nm", paths.moment_arm, velocity)
    arms = paths.moment_arm[:, muscles.joints]
    capacity, passive = np.broadcast_to(muscles.max_force, paths.length.shape), np.zeros_like(paths.length)
    if hill:
        capacity, passive = muscles.strength(paths.length, speed, hill if isinstance(hill, Curves) else None)
    asked = by_torque.torque[:, own] - np.einsum("njm,nm->nj", arms, passive)
    shared = share(arms, asked, capacity, exponent=exponent, low=lowest_activation, reserve=reserve)
    force = shared.force + passive
    by_muscle = loads(pushes, force)

    variables = {
        "root_position": motion.configuration[:, :3],
        "root_quaternion": motion.configuration[:, 3:7],
        "joint_torque": by_torque.torque,
        "joint_force": by_muscle.force,
        "joint_force_torque_only": by_torque.force,
        "muscle_activation": shared.activation,
        "muscle_force": force,
        "muscle_capacity": np.array(capacity),
        "muscle_length": paths.length,
        "muscle_velocity": speed,
        "muscle_path": paths.points(),
        "sharing_kkt": shared.kkt,
        "sharing_torque_residual": shared.torque_residual,
        "sharing_shortfall": shared.shortfall,
    }
    if elimination:
        literal, met = eliminate(arms, asked, capacity)
        variables["muscle_activation_elimination"] = np.where(met[:, None], literal, np.nan)
    if feet:
        ground = np.stack(list(feet.values()), axis=1)
        variables["ground_force"], variables["ground_moment"] = ground[:, :, :3], ground[:, :, 3:]
        variables["ground_point"] = _pressure(body, motion, feet)
    chosen = [body.joint_index(name) for name in names]
    for name, values in (
        ("joint_position", position),
        ("joint_velocity", velocity),
        ("joint_acceleration", acceleration),
    ):
        variables[name] = values[:, chosen]
    if body.floats and not reduced:  # only the whole body's motion says what the ground must do
        variables["ground_residual_force"] = by_torque.root_force
        variables["ground_residual_moment"] = by_torque.root_moment
    points = variables["muscle_path"].shape[2]
    dataset = make_dataset(
        time,
        variables,
        joints=list(names),
        locked=[],
        labels={
            "contact": list(feet),
            "muscle": muscles.names,
            "muscle_joint": [body.joint_names[joint] for joint in muscles.joints],
            "path_point": [str(point) for point in range(1, points + 1)],
        },
    )
    dataset.attrs = provenance(body, step=float(np.median(np.diff(time))), seed=None, scenario="") | {
        "exponent": str(exponent),
        "hill": int(bool(hill)),
        "reduced": int(reduced),
    }
    return dataset


def states_from_table(body: Body, table: Table, *, cutoff: float | None = None) -> tuple[Array, States]:
    """Times and states of a motion file whose columns are the body's coordinates (see inverse.coordinate_names).

    Root columns that are missing are zero (a planar file has root_x, root_z and root_pitch). Rates come from quintic
    splines, after a low-pass at ``cutoff`` Hz if given.
    """
    from posture.signals import lowpass, spline

    names = coordinate_names(body)
    for name in table.names:
        find_name(name, names, what="coordinate", where=table.source or "motion", error=MotionError)
    missing = [name for name in body.joint_names if name not in table.names]
    if missing:
        raise MotionError(
            f"{table.source or 'motion'}: no column for joint {missing[0]!r} ({len(missing)} are missing); "
            f"the body needs {', '.join(names[:9])}…"
        )
    values: Array = np.zeros((len(table.time), len(names)))
    for name in table.names:
        turns = name in body.joint_names or name in ("root_yaw", "root_pitch", "root_roll")
        values[:, names.index(name)] = np.radians(table[name]) if table.in_degrees and turns else table[name]
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise MotionError(
            f"{table.source or 'motion'}: {names[column]} has no number at {table.time[row]:g} s; fill gaps first"
        )
    if len(table.time) < 6:
        raise MotionError(f"{table.source or 'motion'}: {len(table.time)} frames; rates need at least 6")
    if cutoff is not None:
        values = lowpass(values, (len(table.time) - 1) / float(table.time[-1] - table.time[0]), cutoff)
    return table.time, to_pinocchio(*spline(table.time, values).sample(table.time))


def contacts_from_motion(
    body: Body, time: Array, motion: States, vertical: Array
) -> dict[str, list[tuple[float, float]]]:
    """When each foot stands: its sole is near the lowest place any sole gets to, and the motion needs a push upwards.

    ``vertical``: force (N) that the whole motion needs.
    """
    if not body.contact_names:
        raise MotionError(f"{body.name}: no contact areas are known; add [contact.NAME] to its .toml")
    heights = {name: soles[:, :, 2].min(axis=1) for name, soles in _soles(body, motion).items()}
    ground = min(float(height.min()) for height in heights.values())
    pushed = vertical > LIGHT * body.mass * STANDARD_GRAVITY
    found = {}
    for name, height in heights.items():
        down = (height < ground + NEAR_GROUND) & pushed
        edges = np.flatnonzero(np.diff(np.concatenate(([False], down, [False])).astype(int)))
        found[name] = [
            (
                -np.inf if start == 0 else float(time[start]),
                np.inf if end == len(time) else float(time[end - 1]),
            )
            for start, end in zip(edges[::2], edges[1::2], strict=True)
            if end - start > 1
        ]
    return found


def _shared(time: Array, total: Array, contacts: Contacts, measured: Mapping[str, Array] | None) -> dict[str, Array]:
    """The whole wrench on the feet that stand; with plates corrected by them, without in parts that grow from landing.

    Feet that land and leave together carry equal parts, as in a jump on both legs.
    """
    if measured is not None:
        return share_ground(time, total, contacts, measured)
    return {name: weight[:, None] * total for name, weight in contact_weights(time, contacts).items()}


def _link(body: Body, contact: str) -> str:
    return str(body.sidecar["contact"][find_name(contact, body.contact_names, what="contact", where=body.name)]["link"])


def _soles(body: Body, motion: States) -> dict[str, Array]:
    """Outline points of each contact in the world, n × points × 3."""
    posture = postures(
        body,
        motion.configuration[:, 7:],
        Base.free_flyer(motion.configuration, motion.velocity, motion.acceleration),
    )
    found = {}
    for name in body.contact_names:
        frame = body.model.frames[body.link_frame(_link(body, name))]
        joint = int(frame.parentJoint) - 2
        places = [
            posture.place(joint, frame.placement.act(np.array(point, float))).T
            for point in body.sidecar["contact"][name]["points"]
        ]
        found[name] = np.stack(places, axis=1)
    return found


def _pressure(body: Body, motion: States, feet: Mapping[str, Array]) -> Array:
    """Where each foot's force meets the ground (n × feet × 3), the lowest place of all soles; NaN without load."""
    ground = min(float(soles[:, :, 2].min()) for soles in _soles(body, motion).values())
    found = np.full((len(motion.configuration), len(feet), 3), np.nan)
    for column, wrench in enumerate(feet.values()):
        force, moment = wrench[:, :3], wrench[:, 3:]
        up = np.where(force[:, 2] > 1.0, force[:, 2], np.nan)
        found[:, column, 0] = (-moment[:, 1] + ground * force[:, 0]) / up
        found[:, column, 1] = (moment[:, 0] + ground * force[:, 1]) / up
        found[:, column, 2] = np.where(np.isfinite(up), ground, np.nan)
    return found


def summary(dataset: xr.Dataset) -> dict[str, object]:
    """Headline numbers of an analysis, ready for JSON; the unit ends each name."""
    weight = float(dataset.attrs["body_mass_kg"]) * STANDARD_GRAVITY
    activation = dataset["muscle_activation"]
    shortfall = np.abs(dataset["sharing_shortfall"].values)
    found: dict[str, object] = {
        "body": dataset.attrs["body"],
        "frames": int(dataset.sizes["time"]),
        "duration_s": round(float(dataset.time.values[-1] - dataset.time.values[0]), 4),
        "exponent": float(dataset.attrs["exponent"]),
    }
    if "ground_force" in dataset:
        peak = float(dataset["ground_force"].values[:, :, 2].sum(axis=1).max())
        found["ground_force_peak_weights"] = round(peak / weight, 3)
    if "ground_residual_force" in dataset:
        found["ground_residual_N"] = float(f"{np.abs(dataset['ground_residual_force'].values).max():.3g}")
    size = np.linalg.norm(dataset["joint_force"].values, axis=2).max(axis=0) / weight
    plain = np.linalg.norm(dataset["joint_force_torque_only"].values, axis=2).max(axis=0) / weight
    crossed = [str(name) for name in dataset["muscle_joint"].values]
    for index, name in enumerate(str(value) for value in dataset["joint"].values):
        if name in crossed:
            found[f"{name}_force_peak_weights"] = round(float(size[index]), 2)
            found[f"{name}_force_torque_only_peak_weights"] = round(float(plain[index]), 2)
    strongest = int(np.argmax(activation.values.max(axis=0)))
    found["largest_activation_muscle"] = str(activation["muscle"].values[strongest])
    found["largest_activation"] = round(float(activation.max()), 4)
    found["sharing_kkt_largest"] = float(f"{float(dataset['sharing_kkt'].max()):.2g}")
    feasible = shortfall.max(axis=1) == 0
    found["sharing_torque_residual_Nm"] = float(
        f"{np.abs(dataset['sharing_torque_residual'].values[feasible]).max(initial=0.0):.2g}"
    )
    found["infeasible_frames"] = int((~feasible).sum())
    if "muscle_activation_elimination" in dataset:
        literal = (dataset["muscle_activation_elimination"].values ** 2).sum(axis=1)
        found["elimination_frames_without_answer"] = int(np.isnan(literal).sum())
        if found["exponent"] == 2:  # the criterion that the pseudo-inverse is about
            both = np.isfinite(literal) & feasible
            above = literal[both] / (activation.values[both] ** 2).sum(axis=1) - 1
            found["elimination_above_optimum_percent"] = round(float(100 * above.max(initial=0.0)), 3)
    if not feasible.all():
        joint = int(shortfall.max(axis=0).argmax())
        frame = int(shortfall[:, joint].argmax())
        found["weakest_joint"] = crossed[joint]
        found["weakest_joint_lacks_Nm"] = round(float(shortfall[frame, joint]), 2)
        found["weakest_joint_at_s"] = round(float(dataset.time.values[frame]), 4)
    return found
