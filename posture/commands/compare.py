"""Commands about other people's bodies and controllers: compare, stand, and export of a body."""

from __future__ import annotations

import argparse
import csv
import io
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, progress, show
from posture.errors import ResultError


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    one = command(
        "compare",
        _compare,
        "Compare controllers on bodies: sway, effort, interruptions, robustness.",
        "compare --bodies cip my_robot.urdf --controllers pd lqr mpc --out table.csv",
    )
    one.add_argument("--bodies", nargs="+", metavar="BODY", help="names or .urdf files; four of posture's by default")
    one.add_argument("--controllers", nargs="+", metavar="NAME", help="all by default")
    one.add_argument("--sea", default="SS5", help="sea state below a frigate, SS2 to SS8; still for a deck at rest")
    one.add_argument("--duration", type=float, default=20.0, help="s of each run")
    one.add_argument("--step", type=float, default=0.005, help="integration step, s; 0.15 s must be whole steps")
    one.add_argument("--seed", type=int, default=1, help="of waves and sensory noise")
    one.add_argument("--out", type=Path, help="also write all figures to this .csv")

    feet = command(
        "stand", _stand, "Stand a human or humanoid URDF on the deck.", "stand robot.urdf --out standing.urdf"
    )  # fmt: skip
    feet.add_argument("body", help="name or .urdf file; its root may be anywhere")
    feet.add_argument("--left", help="link of the left foot, where its name does not tell")
    feet.add_argument("--right", help="link of the right foot")
    feet.add_argument("--head", help="link of the head")
    feet.add_argument("--on", default="both", help="both (legs move as one), left or right")
    feet.add_argument("--out", type=Path, required=True, help=".urdf to write, with a .toml beside it")

    give = command(
        "give", _give, "Write a body for other programs.", "give ship_stance --lock 'knee_*' --out stiff.xml"
    )  # fmt: skip
    give.add_argument("body", help="name or .urdf file")
    give.add_argument("--lock", nargs="+", default=[], metavar="JOINT", help="joints to fix; wildcards allowed")
    give.add_argument("--out", type=Path, required=True, help=".urdf, or .xml for MuJoCo")


def _compare(chosen: argparse.Namespace) -> int:
    from posture.compare import BODIES, CASES, compare, table
    from posture.errors import ScenarioError, find_name
    from posture.laws import NAMES
    from posture.results import write_text

    if chosen.out is not None and chosen.out.suffix != ".csv":
        raise ResultError(f"{chosen.out}: the table is written as .csv; give a name that ends so")
    names = chosen.controllers or list(NAMES)
    for name in names:
        find_name(name, NAMES, what="controller", where="compare", error=ScenarioError)
    bodies = chosen.bodies or list(BODIES)
    with progress(len(bodies) * len(names) * len(CASES), unit="runs") as tell:
        found = compare(
            bodies, names, _deck(chosen), duration=chosen.duration, step=chosen.step, seed=chosen.seed, progress=tell
        )
    rows: list[dict[str, Any]] = [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in asdict(one).items()}
        for one in found
    ]
    if chosen.out is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(chosen.out, text.getvalue())
    show(rows, chosen, table(found))
    return 0


def _deck(chosen: argparse.Namespace) -> Any:
    from posture.deck import constant_deck
    from posture.ship.hull import Hull
    from posture.ship.motion import SeaDeck
    from posture.ship.sea import sea_state

    if chosen.sea == "still":
        return constant_deck()
    # The frigate of ship/voyage.toml, on its flight deck, waves from forward of the beam.
    ship = Hull(length=120.0, beam=15.0, draught=4.8, metacentric_height=1.2, roll_radius=5.6, roll_damping=0.1)
    station = (-45.0, 0.0, 4.0)
    return SeaDeck(
        ship, sea_state(chosen.sea), heading=math.radians(120), speed=6.0, station=station, seed=chosen.seed
    )  # fmt: skip


def _stand(chosen: argparse.Namespace) -> int:
    from posture.body import write_body
    from posture.swap import stand

    feet = {side: link for side, link in (("left", chosen.left), ("right", chosen.right)) if link}
    body = stand(chosen.body, feet=feet or None, head=chosen.head, on=chosen.on)
    write_body(body, chosen.out)
    notes = body.sidecar.get("stand", {}).get("notes", [])
    roles = body.sidecar.get("roles", {})
    lines = [f"wrote {chosen.out}: {len(body.joint_names)} joints, {body.mass:g} kg", *notes]
    lines += [f"{role}: {', '.join(joints)}" for role, joints in roles.items()]
    show(body.describe() | {"notes": notes, "roles": roles, "files": [str(chosen.out)]}, chosen, lines)
    return 0


def _give(chosen: argparse.Namespace) -> int:
    from posture.body import load_body
    from posture.export_body import write_export

    body = load_body(chosen.body, locked=chosen.lock)
    write_export(body, chosen.out)
    show(body.describe() | {"files": [str(chosen.out)]}, chosen, [f"wrote {chosen.out}: {body.mass:g} kg"])
    return 0
