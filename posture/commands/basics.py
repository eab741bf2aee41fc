"""Commands about bodies, papers and files: models, check, scale, reproduce, export."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, show
from posture.errors import find_name


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    command("models", _models, "List the bodies that come with posture.", "models")

    check = command("check", _check, "Check a body and show what is in it.", "check my_person.urdf")
    check.add_argument("body", help="name (see `posture models`) or path of a .urdf file")

    scale = command(
        "scale",
        _scale,
        "Write a body scaled to a person.",
        "scale ship_stance --mass 62 --height 1.68 --sex female --out anna.urdf",
    )
    scale.add_argument("body", help="name or path of a body whose .toml sidecar says whose size it has")
    scale.add_argument("--mass", type=float, required=True, help="kg")
    scale.add_argument("--height", type=float, required=True, help="m")
    scale.add_argument("--sex", required=True, help="female or male: which segment table")
    scale.add_argument("--out", type=Path, required=True, help=".urdf file to write, with a .toml beside it")

    again = command(
        "reproduce", _reproduce, "Compare with a paper's published numbers.", "reproduce ship_stance --json"
    )
    again.add_argument(
        "system", nargs="?", help="stem of a file in posture/systems, such as ship_stance; all by default"
    )

    export = command("export", _export, "Write a result for other programs.", "export demo.nc --out demo.sto")
    export.add_argument("result", type=Path, help="result (.nc)")
    export.add_argument("--out", type=Path, required=True, help=".csv, .sto, .mot (OpenSim) or .html (3D page)")
    export.add_argument("--variables", nargs="+", metavar="NAME", help="only these variables")


def _models(chosen: argparse.Namespace) -> int:
    from posture.body import load_body, model_names

    found = [load_body(name).describe() for name in model_names()]
    show(found, chosen, [f"{item['name']}: {len(item['joints'])} joints, {item['mass_kg']:g} kg" for item in found])
    return 0


def _check(chosen: argparse.Namespace) -> int:
    from posture.body import load_body, read_twice

    body = load_body(chosen.body)
    if "muscles" in body.sidecar:
        from posture.muscles import load_muscles

        load_muscles(body)
    found = body.describe() | {"readers_agree_within_m": read_twice(body)}
    person, contacts = found["person"], found["contacts"]
    show(
        found,
        chosen,
        [
            f"{body.path}: good",
            f"joints ({len(found['joints'])}): {', '.join(found['joints']) or 'none'}",
            f"links ({len(found['links'])}): {', '.join(found['links'])}",
            f"mass: {found['mass_kg']:g} kg, centre of mass upright: {found['center_of_mass_m']} m",
            f"contacts: {', '.join(contacts) or 'none (no stance margin; name them in a .toml beside the URDF)'}",
            f"muscles: {len(found['muscles']) or 'none'}",
            "person: " + (f"{person['mass']:g} kg, {person['height']:g} m, {person['sex']}" if person else "not said"),
            f"Pinocchio and yourdfpy place all links alike within {found['readers_agree_within_m']:.1e} m",
        ],
    )
    return 0


def _scale(chosen: argparse.Namespace) -> int:
    from posture.anthropometry import Person
    from posture.body import load_body, write_body

    body = load_body(chosen.body, person=Person(chosen.mass, chosen.height, chosen.sex))
    write_body(body, chosen.out)
    files = [str(chosen.out), str(chosen.out.with_suffix(".toml"))]
    show(body.describe() | {"files": files}, chosen, [f"wrote {files[0]} and {files[1]}: {body.mass:g} kg"])
    return 0


def _reproduce(chosen: argparse.Namespace) -> int:
    from importlib import import_module

    from posture.systems import system_names

    known = system_names()
    wanted = [find_name(chosen.system, known, what="system", where="reproduce")] if chosen.system is not None else known
    rows: list[dict[str, Any]] = []
    lines = []
    for name in wanted:
        found = import_module(f"posture.systems.{name}").reproduce()
        rows += found
        width = max(len(row["quantity"]) for row in found)
        lines.append(f"{name:{width}}  {'paper':>8}  {'ours':>9}  {'tolerance':>9}")
        for row in found:
            paper, tolerance = (f"{row[key]:g}" if row[key] is not None else "-" for key in ("paper", "tolerance"))
            verdict = "report" if row["tolerance"] is None else "pass" if row["pass"] else "FAIL"
            lines.append(f"{row['quantity']:{width}}  {paper:>8}  {row['ours']:>9.3g}  {tolerance:>9}  {verdict}")
    show(rows, chosen, lines)
    return 0 if all(row["pass"] for row in rows) else 1


def _export(chosen: argparse.Namespace) -> int:
    from posture.results import export, load

    dataset = load(chosen.result, schema="posture-run")
    if chosen.out.suffix == ".html":
        from posture.view import write_view

        write_view(dataset, chosen.out, title=chosen.result.stem)
    else:
        export(dataset, chosen.out, variables=chosen.variables)
    show({"result": str(chosen.result), "written": str(chosen.out)}, chosen, [f"wrote {chosen.out}"])
    return 0
