"""`posture ship …`: how often a sailor loses balance, over headings, speeds and seas."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, Run, as_lines, show
from posture.errors import DeckError, find_name


def add(command: AddCommand) -> None:
    """Add `ship` and what it can do."""
    ship = command(
        "ship",
        _template,
        "Ship motion and human factors: interruptions, sickness, limits.",
        "ship template --out voyage.toml",
    )
    parts = ship.add_subparsers(title="what to do", required=True, metavar="WHAT")

    def part(name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
        added = parts.add_parser(name, help=text, description=text, epilog=f"example: posture ship {example}")
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        return added

    template = part("template", _template, "Write a voyage file to start from.", "template --out voyage.toml")
    template.add_argument("--out", type=Path, help="file to write (.toml); printed by default")

    one = part(
        "mii",
        _mii,
        "How often a sailor loses balance at one heading and speed in one sea.",
        "mii voyage.toml --heading-deg 120 --speed 6 --sea SS5 --station bridge",
    )
    one.add_argument("voyage", type=Path, help="voyage in TOML (`posture ship template` writes one)")
    one.add_argument("--heading-deg", type=float, required=True, help="0 following, 90 waves running to port, 180 head")
    one.add_argument("--speed", type=float, required=True, help="m/s")
    one.add_argument("--sea", help="name of one of the voyage's seas; its first by default")
    one.add_argument("--station", help="name of one of the voyage's stations; its first by default")

    sweep = part(
        "sweep",
        _sweep,
        "All headings, speeds and seas of a voyage; goes on where it was stopped.",
        "sweep voyage.toml --out voyage.nc --plots voyage_plots",
    )
    sweep.add_argument("voyage", type=Path, help="voyage in TOML")
    sweep.add_argument("--out", type=Path, required=True, help="table to write or to go on with (.nc)")
    sweep.add_argument("--plots", type=Path, help="folder for polar plots (.svg) and the table as .csv")
    sweep.add_argument("--restart", action="store_true", help="begin anew even if the file exists")

    draw = part("draw", _draw, "Polar plots of a finished sweep.", "draw voyage.nc --plots voyage_plots")
    draw.add_argument("table", type=Path, help="sweep (.nc)")
    draw.add_argument("--plots", type=Path, required=True, help="folder to write to")

    raos = part("raos", _raos, "Check transfer functions and show their peaks.", "raos my_ship.re1 --out my_ship.csv")
    raos.add_argument("table", type=Path, help=".csv, .re1, .re1.gz (VERES) or .mat (MSS)")
    raos.add_argument("--out", type=Path, help="also write them as .csv")
    raos.add_argument("--draught", type=float, help="m; with --metacentric-height: compare with the closed form")
    raos.add_argument("--metacentric-height", type=float, help="m")
    raos.add_argument("--roll-radius", type=float, help="m, dry; 0.35 of the beam by default")
    raos.add_argument("--roll-damping", type=float, default=0.1, help="of critical (default: 0.1)")
    raos.add_argument("--speed", type=float, help="m/s, at which to look; the table's first by default")

    log = part(
        "log",
        _log,
        "Measured ship motion: RMS, interruptions and sickness dose of a rigid person.",
        "log motion.csv --flip pitch heave --station 10 0 8",
    )
    log.add_argument(
        "log", type=Path, help="CSV with time_s and roll_deg, pitch_deg, heave_m …, or a log of $PSXN,23 sentences"
    )
    log.add_argument("--flip", nargs="+", default=[], metavar="MOTION", help="motions logged with the opposite sign")
    log.add_argument("--station", nargs=3, type=float, default=[0.0, 0.0, 0.0], metavar=("X", "Y", "Z"), help="m")
    log.add_argument("--criteria", default="nato_personnel", help="table of limits (default: nato_personnel)")
    log.add_argument("--cutoff-hz", type=float, help="fastest motion kept; 0.4 of the sampling rate by default")


def _template(chosen: argparse.Namespace) -> int:
    from posture.results import write_text

    text = Path(__file__).parents[1].joinpath("ship", "voyage.toml").read_text(encoding="utf-8")
    if chosen.out is None:
        print(text, end="")
        return 0
    if chosen.out.exists():
        raise DeckError(f"{chosen.out}: this file exists already; give another name or remove it")
    write_text(chosen.out, text)
    show({"written": str(chosen.out)}, chosen, [f"wrote {chosen.out}"])
    return 0


def _mii(chosen: argparse.Namespace) -> int:
    from posture.ship.assess import assess
    from posture.ship.criteria import check_criteria
    from posture.ship.hull import RaoTable, check_heading_deg
    from posture.ship.settings import read_voyage

    voyage = read_voyage(chosen.voyage)
    sea = find_name(chosen.sea or next(iter(voyage.seas)), voyage.seas, what="sea", where=str(chosen.voyage))
    station = find_name(
        chosen.station or next(iter(voyage.stations)), voyage.stations, what="station", where=str(chosen.voyage)
    )
    found = assess(
        voyage.ship,
        voyage.seas[sea],
        heading=check_heading_deg(chosen.heading_deg, what="--heading-deg"),
        speed=chosen.speed,
        station=voyage.stations[station],
        sailor=voyage.sailor,
        seed=voyage.seed,
    )
    counted = found.pop("counted")
    missing = voyage.ship.missing if isinstance(voyage.ship, RaoTable) else []
    summary: dict[str, Any] = {"ship": voyage.ship.name, "sea": sea, "station": station, **found}
    summary["unknown_motions"] = missing
    if math.isnan(summary["fell"]):
        summary["fell"] = None
    lines = [f"{voyage.ship.name} in {sea}, heading {chosen.heading_deg:g}°, {chosen.speed:g} m/s, at {station}"]
    rate = found["interruptions_per_minute"]
    if counted is not None:
        summary["counted"], rate = counted.summary(), counted.per_minute
        low, high = counted.interval
        causes = ", ".join(f"{number} {name}" for name, number in counted.by_cause().items())
        lines.append(
            f"interruptions: {rate:.3g} per minute (95 %: {low:.3g} to {high:.3g}), counted over "
            f"{counted.duration:g} s as {voyage.sailor.method}: {causes}; worst 10 s from {counted.worst_start:.1f} s"
        )
        spread = summary["counted"]["stance_margin_percentiles_mm"]
        below = ", ".join(f"{value:.0f} mm for {level} %" for level, value in spread.items())
        lines.append(f"centre of pressure nearer to the edge than (below zero: outside): {below} of the time")
    ways = ", ".join(f"{name} {value:.2g}" for name, value in found["formula"].items())
    lines.append(f"by the level-crossing formula: {found['interruptions_per_minute']:.3g} per minute ({ways})")
    lines.append(
        f"sick after {voyage.sailor.exposure / 3600:g} h: {found['sickness_percent']:.1f} % (McCauley); after 2 h "
        f"{found['sickness_2_hours_percent']:.1f} % (O'Hanlon and McCauley); dose {found['dose']:.1f} m/s^1.5, "
        f"{found['vomiting_percent']:.1f} % may vomit (ISO 2631-1)"
    )
    limits = {**found["rms"], "interruptions_per_minute": rate, "sickness_percent": found["sickness_percent"]}
    summary["criteria"] = check_criteria(limits, voyage.criteria)
    show(summary, chosen, [*lines, *_limits(summary["criteria"], voyage.criteria), *_warn(missing)])
    return 0


def _limits(rows: list[dict[str, Any]], criteria: str) -> list[str]:
    values = ["      - " if row["value"] is None else f"{row['value']:8.3g}" for row in rows]
    return [f"limits of {criteria}:"] + [
        f"  {row['quantity']:26} {value} of {row['limit']:g} {row['unit']}: {row['verdict']}"
        for row, value in zip(rows, values, strict=True)
    ]


def _sweep(chosen: argparse.Namespace) -> int:
    from posture.ship.settings import read_voyage
    from posture.ship.sweep import run_sweep

    voyage = read_voyage(chosen.voyage)
    with _conditions() as tell:
        table = run_sweep(voyage, chosen.out, progress=tell, restart=chosen.restart)
    written = _plots(table, chosen.plots) if chosen.plots else []
    rate = table["interruptions_per_minute"]
    worst = rate.isel(rate.argmax(...))
    found: dict[str, Any] = {
        "result": str(chosen.out),
        "conditions": int(table["done"].size),
        "stations": table.sizes["station"],
        "worst_per_minute": float(worst),
        "worst_at": {dim: str(worst[dim].values) for dim in ("sea", "speed", "heading", "station")},
        "files": [str(path) for path in written],
    }
    place = found["worst_at"]
    lines = [
        f"{chosen.out}: {found['conditions']} conditions at {found['stations']} stations",
        f"worst: {found['worst_per_minute']:.3g} interruptions per minute at {place['station']} in {place['sea']}, "
        f"heading {float(place['heading']):g}°, {float(place['speed']):g} m/s",
        *(f"wrote {path}" for path in written),
    ]
    show(found, chosen, lines)
    return 0


def _conditions() -> Any:
    """Tell finished conditions: a bar on a terminal, a line every tenth otherwise."""
    from contextlib import contextmanager

    @contextmanager
    def telling() -> Any:
        if sys.stderr.isatty():
            from tqdm import tqdm

            with tqdm(unit="condition") as bar:

                def advance(done: int, total: int) -> None:
                    bar.total = total
                    bar.update(done - bar.n)

                yield advance
            return

        def say(done: int, total: int) -> None:
            if done * 10 // total > (done - 1) * 10 // total:
                print(f"posture: {done} of {total} conditions", file=sys.stderr, flush=True)

        yield say

    return telling()


def _plots(table: Any, folder: Path) -> list[Path]:
    from posture.ship.polar import draw_all
    from posture.ship.sweep import write_table

    paths = draw_all(table, folder)
    write_table(table, folder / "table.csv")
    return [*paths, folder / "table.csv"]


def _draw(chosen: argparse.Namespace) -> int:
    from posture.results import load

    written = [str(path) for path in _plots(load(chosen.table, schema="posture-sweep"), chosen.plots)]
    show({"files": written}, chosen, [f"wrote {path}" for path in written])
    return 0


def _raos(chosen: argparse.Namespace) -> int:
    import numpy as np

    from posture.deck import MOTIONS
    from posture.ship.hull import Hull, compare, read_ship, wave_number, write_rao_csv

    ship = read_ship(chosen.table)
    speed = float(ship.speeds[0]) if chosen.speed is None else chosen.speed
    beam = ship.transfer(ship.omega, np.full(len(ship.omega), math.pi / 2), speed)
    roll = np.abs(beam[:, 3])
    found: dict[str, Any] = {
        "name": ship.name,
        "length_m": ship.length,
        "beam_m": ship.beam,
        "speeds_m_s": ship.speeds.tolist(),
        "headings": len(ship.headings) - 1,
        "periods_s": [round(2 * math.pi / float(ship.omega[end]), 3) for end in (-1, 0)],
        "roll_peak_period_s": round(2 * math.pi / float(ship.omega[int(np.argmax(roll))]), 3),
        "roll_peak_over_slope": round(float((roll / wave_number(ship.omega)).max()), 3),
        "largest": {name: round(float(np.abs(ship.values[..., index]).max()), 5) for index, name in enumerate(MOTIONS)},
        "unknown_motions": ship.missing,
    }
    if chosen.out is not None:
        write_rao_csv(ship, chosen.out)
        found["written"] = str(chosen.out)
    lines = as_lines(found)
    if (chosen.draught is None) != (chosen.metacentric_height is None):
        raise DeckError("a comparison with the closed form needs both --draught and --metacentric-height, in m")
    if chosen.draught is not None:
        if ship.length is None or ship.beam is None:
            raise DeckError(f"{chosen.table}: a closed form needs the ship's length and beam, which this file lacks")
        hull = Hull(
            ship.length,
            ship.beam,
            chosen.draught,
            chosen.metacentric_height,
            roll_radius=chosen.roll_radius,
            roll_damping=chosen.roll_damping,
        )
        rows = compare(hull, ship, speed=speed)
        found["closed_form_roll_period_s"] = round(hull.roll_period, 3)
        found["closed_form_miss"] = [
            {key: None if math.isnan(value) else round(value, 4) for key, value in row.items()} for row in rows
        ]
        lines.append(
            f"closed form: natural roll period {hull.roll_period:.2f} s; at {speed:g} m/s miss of amplitudes, % of the "
            "table:"
        )
        lines.append("  heading  heave  pitch   roll")
        lines += [
            f"  {row['heading_deg']:6.0f}°"
            + "".join(
                "      -" if math.isnan(row[name]) else f"{100 * row[name]:7.0f}" for name in ("heave", "pitch", "roll")
            )
            for row in rows
        ]
    show(found, chosen, lines)
    return 0


def _log(chosen: argparse.Namespace) -> int:
    import numpy as np

    from posture.ship.criteria import check_criteria
    from posture.ship.interruptions import RigidPerson, count_rigid
    from posture.ship.record import read_motion_log
    from posture.ship.sickness import dose, vomiting_percent

    log = read_motion_log(chosen.log, flip=chosen.flip, cutoff_hz=chosen.cutoff_hz, station=chosen.station)
    time = np.arange(0, log.duration, 0.05)
    value = log.motions(time)[0]
    deck = log.sample(time)
    counted = count_rigid(deck, RigidPerson())
    sick = dose(time, deck.specific_force[:, 2])
    angles, felt = value[:, 3:5], deck.specific_force.std(axis=0)
    limits = {
        "roll": math.sqrt(float(np.mean(angles[:, 0] ** 2))),
        "pitch": math.sqrt(float(np.mean(angles[:, 1] ** 2))),
        "vertical_acceleration": float(felt[2]),
        "interruptions_per_minute": counted.per_minute,
    }
    if "sway" not in log.unknown:
        limits["lateral_acceleration"] = float(felt[1])
    rows = check_criteria(limits, chosen.criteria)
    found = {
        "log": str(chosen.log),
        "duration_s": round(log.duration, 3),
        "unknown_motions": log.unknown,
        "unknown_above_hz": round(log.cutoff_hz, 4),
        "roll_rms_deg": round(float(np.degrees(value[:, 3].std())), 4),
        "pitch_rms_deg": round(float(np.degrees(value[:, 4].std())), 4),
        "heave_rms_m": round(float(value[:, 2].std()), 4),
        **counted.summary(),
        "dose_m_s1_5": round(sick, 3),
        "vomiting_percent": round(vomiting_percent(sick), 2),
    }
    lines = [*as_lines(found), *_limits(rows, chosen.criteria), *_warn(log.unknown)]
    show(found | {"criteria": rows}, chosen, lines)
    return 0


def _warn(missing: list[str]) -> list[str]:
    """What it does to the numbers that motions are not known."""
    level = [name for name in ("surge", "sway") if name in missing]
    if not level:
        return []
    return [
        f"careful: {' and '.join(level)} are not known. They take away from or add to what gravity does on a tilted "
        "deck, so interruptions may be too many or too few."
    ]
