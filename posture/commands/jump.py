"""Commands about muscles and jumps: jump, muscles."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, as_lines, show
from posture.errors import MotionError, ResultError, check_number


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    jump = command(
        "jump",
        _jump,
        "The highest jump a body's torques allow with its muscles and joint loads, or the height of a recorded one.",
        "jump --out jump.nc --plots jump_plots",
    )
    jump.add_argument("--force", type=Path, help="instead: heights from a record of vertical force (.csv, .txt: N)")
    jump.add_argument("--rate", type=float, help="samples per second of --force when it has no time column")
    jump.add_argument("--mass", type=float, help="kg, when --force is too short for quiet standing")
    jump.add_argument("--kind", default="countermovement", help="countermovement (default) or squat")
    jump.add_argument("--body", default="jump", help="body with the joints of jump.urdf (default: jump)")
    _sharing_options(jump)

    muscles = command(
        "muscles",
        _muscles,
        "A body's muscles: lengths and moment arms in a posture, or forces and joint loads of a recorded motion.",
        "muscles jump --posture right_knee=60 left_knee=60",
    )
    muscles.add_argument("body", help="name or path of a body with a .muscles.toml beside its .urdf")
    muscles.add_argument("--posture", nargs="+", default=[], metavar="JOINT=DEG", help="joint angles in degrees")
    muscles.add_argument("--motion", type=Path, help="motion (.mot, .sto, .csv) with the body's coordinates as columns")
    muscles.add_argument("--cutoff", type=float, help="low-pass of the motion, Hz")
    muscles.add_argument("--plates", type=Path, help="measured ground forces (.mot, .sto, .c3d)")
    muscles.add_argument(
        "--axes", default="x -z y", help="the plates' axes that point along X, Y, Z (default: 'x -z y')"
    )
    muscles.add_argument("--feet", nargs="+", default=[], metavar="CONTACT=PREFIX", help="columns of each foot's plate")
    muscles.add_argument(
        "--reduced", action="store_true", help="legs only, with the measured ground forces as they are"
    )
    _sharing_options(muscles)


def _sharing_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--exponent", default="2", help="p of the criterion Σ aᵖ, 1 or more, or inf (default: 2)")
    parser.add_argument(
        "--elimination", action="store_true", help="show the paper's pseudo-inverse with elimination beside the optimum"
    )
    parser.add_argument("--hill", action="store_true", help="bound activations by force, length and velocity")
    parser.add_argument("--out", type=Path, help="result to write (.nc)")
    parser.add_argument("--plots", type=Path, help="folder for activations.svg and joint_loads.svg")


def _exponent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise MotionError(f"--exponent is {text!r}, but must be a number from 1 to 100, or inf") from None
    if value == math.inf:
        return value
    return check_number(value, what="--exponent", unit="", low=1, high=100, error=MotionError, hint="or inf")


def _settings(chosen: argparse.Namespace) -> dict[str, Any]:
    """How to share, checked together with --out before the long work begins."""
    if chosen.out is not None and chosen.out.suffix != ".nc":
        raise ResultError(f"{chosen.out}: a result is written as .nc; give a name that ends so")
    return {"exponent": _exponent(chosen.exponent), "hill": chosen.hill, "elimination": chosen.elimination}


def _pairs(items: list[str], what: str) -> dict[str, str]:
    for item in items:
        if "=" not in item:
            raise MotionError(f"{what} {item!r} is not of the form NAME=VALUE")
    return dict(item.split("=", 1) for item in items)


def _finish(dataset: Any, found: dict[str, Any], chosen: argparse.Namespace) -> int:
    """Write what was asked for, then print."""
    if chosen.out is not None:
        from posture.results import save

        save(dataset, chosen.out)
        found["result"] = str(chosen.out)
    if chosen.plots is not None:
        from posture.muscle_plots import plot_muscles

        found["plots"] = [str(path) for path in plot_muscles(dataset, chosen.plots)]
    show(found, chosen, as_lines(found))
    return 0


def _jump(chosen: argparse.Namespace) -> int:
    if chosen.force is not None:
        return _recorded(chosen)
    from posture.body import load_body
    from posture.jump_motion import jump_motion
    from posture.muscle_analysis import analyse_muscles, summary

    settings = _settings(chosen)
    motion = jump_motion(load_body(chosen.body), kind=chosen.kind)
    found: dict[str, Any] = {f"height_{name}_m": round(value, 4) for name, value in motion.heights().items()}
    found |= {"take_off_s": round(motion.take_off, 4), "landing_s": round(motion.landing, 4)}
    once = motion.once
    standing = {name: [(-math.inf, motion.take_off)] for name in once.body.contact_names}
    dataset = analyse_muscles(
        once.body,
        once.time,
        once.states,
        contacts=standing,
        **settings,
    )
    return _finish(dataset, found | summary(dataset), chosen)


def _recorded(chosen: argparse.Namespace) -> int:
    import numpy as np

    from posture.jump_height import jump_height

    if chosen.rate is not None:
        check_number(chosen.rate, what="--rate", unit="samples per second", low=1, high=1e6, error=MotionError)
    try:
        text = chosen.force.read_text(encoding="utf-8")
    except OSError as error:
        raise MotionError(
            f"{chosen.force}: cannot be read ({error.strerror}); give a text file of forces in N"
        ) from None
    except UnicodeDecodeError:
        raise MotionError(f"{chosen.force}: not a text file; give a table of forces in N") from None
    if "," in text and "." not in text:  # 661,2 would be read as two plates
        raise MotionError(f"{chosen.force}: commas but no decimal points; write 661.2, and commas only between columns")
    rows: list[list[float]] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            values = [float(word) for word in line.replace(",", " ").split()]
        except ValueError:
            if rows:
                raise MotionError(f"{chosen.force}, line {number}: {line.strip()!r} is not numbers") from None
            continue  # a heading
        if values:
            rows.append(values)
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise MotionError(f"{chosen.force}: no table of numbers; give time and force, or forces with --rate")
    table = np.array(rows)
    if chosen.rate is not None:
        # A column that counts samples is no plate; several plates add up.
        counts = min(table.shape) > 1 and table[1, 0] > table[0, 0] and np.ptp(np.diff(table[:, 0])) < 1e-6
        time, force = np.arange(len(table)) / chosen.rate, table[:, int(counts) :].sum(axis=1)
    elif table.shape[1] < 2:
        raise MotionError(f"{chosen.force}: one column only; say its rate with --rate (samples per second)")
    else:
        time, force = table[:, 0], table[:, 1:].sum(axis=1)
    height = jump_height(time, force, mass=chosen.mass)
    found = height.as_dict()
    show(found, chosen, as_lines(found))
    return 0


def _muscles(chosen: argparse.Namespace) -> int:
    from posture.body import load_body

    body = load_body(chosen.body)
    if chosen.motion is None:
        return _geometry(body, chosen)
    from posture.motion_files import read_plates, read_table
    from posture.muscle_analysis import analyse_muscles, states_from_table, summary
    from posture.plates import contacts, wrenches

    settings = _settings(chosen)
    if chosen.feet and chosen.plates is None:
        raise MotionError("--feet names columns of the plates' file; give it with --plates")
    time, motion = states_from_table(body, read_table(chosen.motion), cutoff=chosen.cutoff)
    spans = measured = None
    if chosen.plates is not None:
        record = read_plates(chosen.plates, axes=chosen.axes, feet=_pairs(chosen.feet, "--feet") or None)
        spans = contacts(record)
        measured = wrenches(record, time, spans)
    dataset = analyse_muscles(
        body,
        time,
        motion,
        contacts=spans,
        measured=measured,
        reduced=chosen.reduced,
        **settings,
    )
    return _finish(dataset, dict(summary(dataset)), chosen)


def _geometry(body: Any, chosen: argparse.Namespace) -> int:
    import numpy as np

    from posture.muscles import load_muscles

    muscles = load_muscles(body)
    position = body.neutral
    for name, text in _pairs(chosen.posture, "--posture").items():
        index = body.joint_index(name)
        try:
            angle = float(text)
        except ValueError:
            raise MotionError(f"--posture {name}={text}: the angle must be a number of degrees") from None
        check_number(angle, what=f"--posture {name}", unit="degrees", low=-360, high=360, error=MotionError)
        position[index] = np.radians(angle)
    paths = muscles.at(position)
    names = [body.joint_names[joint] for joint in muscles.joints]
    rows: list[dict[str, Any]] = []
    for index, muscle in enumerate(muscles.muscles):
        arms = paths.moment_arm[0, muscles.joints, index]
        rows.append(
            {
                "muscle": muscle.name,
                "max_force_N": round(muscle.max_force, 3),
                "pcsa_cm2": round(float(muscles.area[index]) * 1e4, 3),
                "length_m": round(float(paths.length[0, index]), 5),
                "moment_arms_m": {name: round(float(arm), 5) for name, arm in zip(names, arms, strict=True) if arm},
            }
        )
    width = max(len(row["muscle"]) for row in rows)
    lines = [f"{'muscle':{width}}  {'force N':>8}  {'PCSA cm²':>8}  {'length m':>8}  moment arms mm"]
    for row in rows:
        arms_text = ", ".join(f"{name} {1000 * arm:+.1f}" for name, arm in row["moment_arms_m"].items())
        lines.append(
            f"{row['muscle']:{width}}  {row['max_force_N']:8.0f}  {row['pcsa_cm2']:8.1f}  "
            f"{row['length_m']:8.4f}  {arms_text}"
        )
    show(rows, chosen, lines)
    return 0
