"""The command ``posture gait``: a walking trial from files to report, its stages, and one made up to start from."""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, as_lines, show
from posture.errors import MotionError, check_number

STAGES = {
    "run": "everything: checks, angles, torques, forward run, report",
    "check": "only look at the files and say what is wrong with them",
    "angles": "joint angles from markers, without forces",
    "example": "write the files of a made-up walking person to --out",
}


def add(command: AddCommand) -> None:
    """Add the command of this module."""
    gait = command(
        "gait",
        _gait,
        "Markers and force plates to joint torques, confirmed by running forward.",
        "gait run --markers walk.trc --plates walk.mot --axes 'x -z y' --mass 85 --height 1.82 --sex male --out walk",
    )
    gait.add_argument("stage", choices=STAGES, help="; ".join(f"{name}: {text}" for name, text in STAGES.items()))
    gait.add_argument("--markers", type=Path, help="recording: .trc, .c3d or .csv")
    gait.add_argument("--plates", type=Path, help="ground reactions: .mot, .sto or .c3d")
    gait.add_argument("--static", type=Path, help="standing trial: scales the body and registers the markers")
    gait.add_argument("--axes", help='the files\' axes along X forward, Y left, Z up: "x -z y" for Y up, "x y z"')
    gait.add_argument("--plate-axes", help="those of the plates' file, if they are others")
    gait.add_argument("--unit", help="unit of length where the file does not say it: m, cm, mm")
    gait.add_argument("--body", default="gait", help="name or .urdf of another body, or an OpenSim model (.osim)")
    gait.add_argument("--marker-set", type=Path, help="where the markers sit (.toml); beside the body by default")
    gait.add_argument("--feet", nargs="+", metavar="SIDE=LINK", help="links of the feet, if not known by name")
    gait.add_argument("--plate-names", nargs="+", metavar="SIDE=PREFIX", help="columns of each foot in a .mot or .sto")
    gait.add_argument("--reverse-plates", action="store_true", help="the file holds the force on the plates")
    gait.add_argument("--mass", type=float, help="kg")
    gait.add_argument("--height", type=float, help="m")
    gait.add_argument("--sex", help="female or male: which segment table")
    gait.add_argument("--between", nargs=2, type=float, metavar=("START", "END"), help="part of the record, s")
    gait.add_argument("--smoothing", default="ssa", help="ssa (default) or lowpass")
    gait.add_argument("--cutoff", type=float, default=6.0, help="Hz of the lowpass")
    gait.add_argument("--plate-cutoff", type=float, help="Hz; plates are not filtered by default")
    gait.add_argument("--sharing", help="corrected (default with plates), smooth (without) or plain")
    gait.add_argument("--longest-gap", type=float, default=0.2, help="s of a lost marker that are filled")
    gait.add_argument("--no-forward", action="store_true", help="leave the forward run out")
    gait.add_argument("--seed", type=int, default=1, help="noise of the example")
    gait.add_argument("--out", type=Path, help="folder to write to")


def _gait(chosen: argparse.Namespace) -> int:
    if chosen.stage == "example":
        return _example(chosen)
    if chosen.markers is None or chosen.axes is None:
        raise MotionError('gait: give --markers and --axes (such as "x -z y" for Y up)')
    body, marker_set = _body(chosen)
    return {"run": _run, "check": _check, "angles": _angles}[chosen.stage](chosen, body, marker_set)


def _body(chosen: argparse.Namespace) -> tuple[Any, Any]:
    from posture.anthropometry import Person
    from posture.body import load_body
    from posture.markers import read_marker_set, register, scale_to_markers
    from posture.motion_files import plausible

    if chosen.body.endswith(".osim"):
        from posture.osim import read_osim

        body, marker_set = read_osim(chosen.body, free_coupled=True)
        if chosen.marker_set is not None:
            marker_set = read_marker_set(body, chosen.marker_set)
        return body, marker_set
    person = None
    given = (chosen.mass, chosen.height, chosen.sex)
    if any(value is not None for value in given):
        if None in given:
            raise MotionError("gait: give --mass, --height and --sex together, or none of them")
        person = Person(*given)
    body = load_body(chosen.body, person=person)
    marker_set = read_marker_set(body, chosen.marker_set)
    if chosen.static is not None:
        if body.person is None:
            raise MotionError(
                f"{body.name}: a static trial scales the body to a person; give --mass, --height and --sex"
            )
        standing = _markers(chosen, chosen.static)
        plausible(standing, height=body.person.height)
        body, marker_set, _ = scale_to_markers(body, marker_set, standing, body.person)
        marker_set, _ = register(body, marker_set, standing, rounds=1)
    return body, marker_set


def _markers(chosen: argparse.Namespace, path: Path) -> Any:
    from posture.motion_files import read_markers

    return read_markers(path, axes=chosen.axes, unit=chosen.unit)


def _check_folder(chosen: argparse.Namespace, purpose: str) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    if chosen.out is None:
        raise MotionError(f"gait {chosen.stage}: give --out, a folder {purpose}")
    there = next(path for path in (chosen.out, *chosen.out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise MotionError(f"{chosen.out}: {there} is not a folder that can be written to; choose another --out")


def _pairs(words: list[str] | None, option: str) -> dict[str, str] | None:
    if words is None:
        return None
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    if len(pairs) != len(words) or not set(pairs) <= {"left", "right"}:
        raise MotionError(f"gait: {option} takes left=NAME right=NAME, not {' '.join(words)}")
    return pairs


def _recordings(chosen: argparse.Namespace) -> tuple[Any, Any]:
    from posture.motion_files import read_plates

    markers = _markers(chosen, chosen.markers)
    plates = None
    if chosen.plates is not None:
        names = _pairs(chosen.plate_names, "--plate-names")
        plates = read_plates(
            chosen.plates,
            axes=chosen.plate_axes or chosen.axes,
            feet=names or _guess(chosen.plates),
            reverse=chosen.reverse_plates,
        )
    return (markers.between(*chosen.between) if chosen.between else markers), plates


def _guess(path: Path) -> dict[str, str] | None:
    """Columns of left and right in a .mot or .sto whose names say so."""
    from posture.motion_files import read_table

    if path.suffix.lower() not in (".mot", ".sto"):
        return None
    prefixes = [name[:-3] for name in read_table(path).names if name.endswith("_vx")]
    found = {}
    for side, marks in (("left", ("left", "_l")), ("right", ("right", "_r"))):
        fitting = [prefix for prefix in prefixes if any(f"{mark}_" in f"{prefix}_" for mark in marks)]
        if len(fitting) == 1:
            found[side] = fitting[0]
    return found if len(found) == 2 else None


def _check(chosen: argparse.Namespace, body: Any, marker_set: Any) -> int:
    from posture.markers import check_labels
    from posture.motion_files import plausible
    from posture.plates import check_cover, check_plates, contacts

    markers, plates = _recordings(chosen)
    notes = [*plausible(markers, height=body.person and body.person.height), *check_labels(body, marker_set, markers)]
    found: dict[str, Any] = {"frames": len(markers.time), "rate_hz": markers.rate, "markers": len(markers.names)}
    if plates is not None:
        notes += check_plates(plates, mass=body.mass)
        check_cover(plates, markers.time)
        found["contacts_s"] = {
            name: [tuple(round(edge, 3) if math.isfinite(edge) else None for edge in span) for span in spans]
            for name, spans in contacts(plates).items()
        }
    found["notes"] = notes
    show(found, chosen, [*_lines(found), "no error found"])
    return 0


def _angles(chosen: argparse.Namespace, body: Any, marker_set: Any) -> int:
    from posture.markers import check_labels, fit_markers
    from posture.motion_files import plausible
    from posture.results import export, make_dataset
    from posture.signals import fill_gaps

    _check_folder(chosen, "for the angles")
    markers, _ = _recordings(chosen)
    notes = [*plausible(markers), *check_labels(body, marker_set, markers)]
    filled, gaps = fill_gaps(markers.time, markers.positions, names=markers.names, longest=chosen.longest_gap)
    fit = fit_markers(body, marker_set, replace(markers, positions=filled))
    chosen.out.mkdir(parents=True, exist_ok=True)
    variables = {
        "joint_position": fit.configuration[:, 7:],
        "root_position": fit.configuration[:, :3],
        "root_quaternion": fit.configuration[:, 3:7],
    }
    path = chosen.out / "angles.mot"
    dataset = make_dataset(fit.time, variables, joints=body.joint_names, locked=[])
    export(dataset, path, variables=list(variables))
    rms = round(1000 * float(fit.rms.mean()), 3)
    found = {"angles": str(path), "marker_rms_mm": rms, "gaps": gaps.sentence(), "notes": notes}
    show(found, chosen, _lines(found))
    return 0


def _run(chosen: argparse.Namespace, body: Any, marker_set: Any) -> int:
    from posture.gait_report import write_trial
    from posture.gait_trial import analyse_gait

    _check_folder(chosen, "for result and report")
    markers, plates = _recordings(chosen)
    trial = analyse_gait(
        body,
        marker_set,
        markers,
        plates,
        feet=_pairs(chosen.feet, "--feet"),
        smoothing=chosen.smoothing,
        cutoff=chosen.cutoff,
        plate_cutoff=chosen.plate_cutoff,
        sharing=chosen.sharing,
        longest_gap=chosen.longest_gap,
        confirm=not chosen.no_forward,
        tell=lambda text: print(f"posture: {text}", file=sys.stderr, flush=True),
    )
    files = write_trial(trial, chosen.out, title=f"{chosen.markers.stem}: walking trial")
    show(trial.quality | {"files": files}, chosen, [*_lines(trial.quality), f"open {files['report']} in a browser"])
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    """Each thing found in a line, notes in one each."""
    notes = [f"note: {note}" for note in found.get("notes", [])]
    return as_lines({name: value for name, value in found.items() if name != "notes" and value != {}}) + notes


def _example(chosen: argparse.Namespace) -> int:
    import numpy as np

    from posture.body import load_body
    from posture.markers import read_marker_set
    from posture.motion_files import write_plates, write_trc
    from posture.systems.gait import CYCLE, RECORD, SyntheticGait, walking

    _check_folder(chosen, "for the files")
    check_number(chosen.seed, what="gait: --seed", unit="", low=0, high=2**63, error=MotionError)
    body = load_body("gait")
    gait = SyntheticGait(body, walking(body))
    end = RECORD * CYCLE
    markers = gait.markers(np.arange(0, end, 0.01), read_marker_set(body), noise=0.0005, seed=chosen.seed)
    chosen.out.mkdir(parents=True, exist_ok=True)
    files = {"markers": chosen.out / "walk.trc", "plates": chosen.out / "walk.mot"}
    write_trc(markers, files["markers"])
    write_plates(gait.plate_record(np.arange(0, end, 0.001), seed=chosen.seed), files["plates"])
    command = f"posture gait run --markers {files['markers']} --plates {files['plates']} --axes 'x -z y'"
    command += f" --out {chosen.out}/report"
    show({name: str(path) for name, path in files.items()} | {"next": command}, chosen, [f"now try: {command}"])
    return 0
