"""The command line: every command prints for people, or for programs with --json.

Exit codes: 0 done, 1 a comparison failed, 2 bad input, 3 the run ended early (a fall), 130 interrupted. Heavy modules
are imported inside the commands, so that --help comes at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from posture import __version__
from posture.errors import PostureError, ResultError, SimulationStopped, find_name

SYSTEMS = ("ship_stance",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except PostureError as error:
        print(f"posture: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("posture: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"posture: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return PostureError.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="posture",
        description="People as robots: simulate a standing person on a moving deck.",
        epilog="start with: posture demo --out demo_out",
    )
    parser.add_argument("--version", action="version", version=f"posture {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, example: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, epilog=f"example: posture {example}")
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="print JSON")
        return added

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

    run = command("simulate", _simulate, "Simulate a scenario.", "simulate demo.toml --out demo.nc --view demo.html")
    run.add_argument("scenario", type=Path, help="scenario in TOML (`posture demo` writes one to start from)")
    run.add_argument("--body", help="another body: name or path of a .urdf file")
    run.add_argument("--duration", type=float, help="s")
    run.add_argument("--step", type=float, help="integration step, s")
    run.add_argument("--seed", type=int, help="draws what the scenario leaves open")
    run.add_argument("--out", type=Path, help="result to write (.nc); the scenario's name by default")
    run.add_argument("--view", type=Path, help="also write a page with the motion in 3D (.html)")

    again = command(
        "reproduce", _reproduce, "Compare with a paper's published numbers.", "reproduce ship_stance --json"
    )
    again.add_argument("system", nargs="?", help=f"one of {', '.join(SYSTEMS)}; all by default")

    demo = command(
        "demo", _demo, "A person on a ship in a rough sea: scenario, result, 3D page.", "demo --out demo_out"
    )
    demo.add_argument("--out", type=Path, default=Path("demo_out"), help="folder to write to (default: demo_out)")
    demo.add_argument("--seed", type=int, help="another sea")

    export = command("export", _export, "Write a result for other programs.", "export demo.nc --out demo.sto")
    export.add_argument("result", type=Path, help="result (.nc)")
    export.add_argument("--out", type=Path, required=True, help=".csv, .sto, .mot (OpenSim) or .html (3D page)")
    export.add_argument("--variables", nargs="+", metavar="NAME", help="only these variables")
    return parser


# ---------------------------------------------------------------- commands


def _models(chosen: argparse.Namespace) -> int:
    from posture.body import load_body, model_names

    found = [load_body(name).describe() for name in model_names()]
    _show(found, chosen, [f"{item['name']}: {len(item['joints'])} joints, {item['mass_kg']:g} kg" for item in found])
    return 0


def _check(chosen: argparse.Namespace) -> int:
    from posture.body import load_body, read_twice

    body = load_body(chosen.body)
    found = body.describe() | {"readers_agree_within_m": read_twice(body)}
    person, contacts = found["person"], found["contacts"]
    _show(
        found,
        chosen,
        [
            f"{body.path}: good",
            f"joints ({len(found['joints'])}): {', '.join(found['joints']) or 'none'}",
            f"links ({len(found['links'])}): {', '.join(found['links'])}",
            f"mass: {found['mass_kg']:g} kg, centre of mass upright: {found['center_of_mass_m']} m",
            f"contacts: {', '.join(contacts) or 'none (no stance margin; name them in a .toml beside the URDF)'}",
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
    _show(body.describe() | {"files": files}, chosen, [f"wrote {files[0]} and {files[1]}: {body.mass:g} kg"])
    return 0


def _simulate(chosen: argparse.Namespace) -> int:
    from posture.scenario import read_scenario

    keys = ("body", "duration", "step", "seed")
    asked = {key: getattr(chosen, key) for key in keys if getattr(chosen, key) is not None}
    if "body" in asked and Path(asked["body"]).is_file():  # a path on the command line is seen from here
        asked["body"] = str(Path(asked["body"]).resolve())
    scenario = read_scenario(chosen.scenario, overrides=asked)
    return _run(scenario, chosen.out or Path(chosen.scenario.stem + ".nc"), chosen.view, chosen)


def _run(scenario: Any, out: Path, view: Path | None, chosen: argparse.Namespace) -> int:
    """Simulate into a file, then report from that file, so that long runs never sit in memory."""
    import xarray as xr

    from posture.report import summary
    from posture.results import save_blocks

    for path, kind in ((out, ".nc"), (view, ".html")):
        if path is not None and path.suffix != kind:
            raise ResultError(f"{path}: this file is written as {kind}; give a name that ends so")
    run = scenario.run()
    code, reason = 0, ""
    with _progress(run.duration) as progress:
        try:
            save_blocks(run.blocks(progress), out)
        except SimulationStopped as stopped:
            code, reason = stopped.exit_code, str(stopped)
    with xr.open_dataset(out, engine="h5netcdf") as stored:
        found = summary(stored) | {"result": str(out)}
        if view is not None:
            from posture.view import write_view

            write_view(stored, view, title=scenario.title, subtitle=f"{found['body']}, {found['mass_kg']:g} kg")
            found["view"] = str(view)
    _show(found, chosen, [f"{name.replace('_', ' ')}: {value}" for name, value in found.items() if value != ""])
    if reason:
        print(f"posture: {reason}; {out} holds the first {found['duration_s']:g} s", file=sys.stderr)
    return code


def _reproduce(chosen: argparse.Namespace) -> int:
    from importlib import import_module

    wanted = [find_name(chosen.system, SYSTEMS, what="system", where="reproduce")] if chosen.system else list(SYSTEMS)
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
    _show(rows, chosen, lines)
    return 0 if all(row["pass"] for row in rows) else 1


def _demo(chosen: argparse.Namespace) -> int:
    from posture.results import write_text
    from posture.scenario import parse_scenario

    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "demo.toml"
    text = Path(__file__).with_name("demo.toml").read_text(encoding="utf-8")
    scenario = parse_scenario(text, path, overrides={} if chosen.seed is None else {"seed": chosen.seed})
    write_text(path, scenario.text)
    code = _run(scenario, chosen.out / "demo.nc", chosen.out / "demo.html", chosen)
    if not chosen.json:
        print(f"scenario: {path}\nopen {chosen.out / 'demo.html'} in a browser to see the motion")
    return code


def _export(chosen: argparse.Namespace) -> int:
    from posture.results import export, load

    dataset = load(chosen.result)
    if chosen.out.suffix == ".html":
        from posture.view import write_view

        write_view(dataset, chosen.out, title=chosen.result.stem)
    else:
        export(dataset, chosen.out, variables=chosen.variables)
    _show({"result": str(chosen.result), "written": str(chosen.out)}, chosen, [f"wrote {chosen.out}"])
    return 0


# ---------------------------------------------------------------- printing


def _show(found: Any, chosen: argparse.Namespace, lines: list[str]) -> None:
    print(json.dumps(found, indent=2, ensure_ascii=False) if chosen.json else "\n".join(lines), flush=True)


@contextmanager
def _progress(duration: float) -> Iterator[Callable[[float], None]]:
    """Tell simulated seconds: as a bar on a terminal, as a line every tenth otherwise."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(total=duration, bar_format="{l_bar}{bar}| {n:.0f}/{total:.0f} s [{remaining} left]") as bar:

            def advance(seconds: float) -> None:
                bar.update(seconds - bar.n)

            yield advance
        return
    told = 0

    def say(seconds: float) -> None:
        nonlocal told
        tenth = int(10 * seconds / duration + 1e-9)
        if tenth > told:
            told = tenth
            print(f"posture: simulated {seconds:.6g} of {duration:.6g} s", file=sys.stderr, flush=True)

    yield say


if __name__ == "__main__":
    sys.exit(main())
