"""Commands that simulate: simulate, demo."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, as_lines, progress, show
from posture.errors import ResultError, SimulationStopped


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    run = command("simulate", _simulate, "Simulate a scenario.", "simulate demo.toml --out demo.nc --view demo.html")
    run.add_argument("scenario", type=Path, help="scenario in TOML (`posture demo` writes one to start from)")
    run.add_argument("--body", help="another body: name or path of a .urdf file")
    run.add_argument("--duration", type=float, help="s")
    run.add_argument("--step", type=float, help="integration step, s")
    run.add_argument("--seed", type=int, help="draws what the scenario leaves open")
    run.add_argument(
        "--engine",
        default="auto",
        help="compiled (machine code), vm (CasADi's interpreter), reference (Pinocchio, readable); auto by default",
    )
    run.add_argument("--out", type=Path, help="result to write (.nc); the scenario's name by default")
    run.add_argument("--view", type=Path, help="also write a page with the motion in 3D (.html)")
    run.add_argument("--live", action="store_true", help="print an address that shows the run while it goes on")

    demo = command(
        "demo", _demo, "A person on a ship in a rough sea: scenario, result, 3D page.", "demo --out demo_out"
    )
    demo.add_argument("--out", type=Path, default=Path("demo_out"), help="folder to write to (default: demo_out)")
    demo.add_argument("--seed", type=int, help="another sea")


def _simulate(chosen: argparse.Namespace) -> int:
    from posture.scenario import read_scenario

    keys = ("body", "duration", "step", "seed")
    asked = {key: getattr(chosen, key) for key in keys if getattr(chosen, key) is not None}
    if "body" in asked and Path(asked["body"]).is_file():  # a path on the command line is seen from here
        asked["body"] = str(Path(asked["body"]).resolve())
    scenario = read_scenario(chosen.scenario, overrides=asked)
    return _run(scenario, chosen.out or Path(chosen.scenario.stem + ".nc"), chosen.view, chosen, chosen.engine)


def _run(scenario: Any, out: Path, view: Path | None, chosen: argparse.Namespace, engine: str = "auto") -> int:
    """Simulate into a file, then report from that file, so that long runs never sit in memory."""
    import xarray as xr

    from posture.report import summary
    from posture.results import save_blocks

    for path, kind in ((out, ".nc"), (view, ".html")):
        if path is not None and path.suffix != kind:
            raise ResultError(f"{path}: this file is written as {kind}; give a name that ends so")
        if path is not None and not path.parent.is_dir():
            raise ResultError(f"{path}: the folder {path.parent} does not exist; create it first")
        if path is not None and path.is_dir():
            raise ResultError(f"{path}: this is a folder; give a file name")
        if path is not None and not os.access(path.parent, os.W_OK):
            raise ResultError(f"{path}: the folder {path.parent} cannot be written to; choose another place")
    run = scenario.run(engine)
    code, reason = 0, ""
    with progress(run.duration) as tell, _shown_live(chosen, scenario.title) as watched:
        try:
            save_blocks(watched(run.blocks(tell)), out)
        except SimulationStopped as stopped:
            code, reason = stopped.exit_code, str(stopped)
    with xr.open_dataset(out, engine="h5netcdf") as stored:
        found = summary(stored) | {"result": str(out)}
        if view is not None:
            from posture.view import write_view

            about = f"{found['body']}, {found['mass_kg']:g} kg"
            data = out.name if out.resolve().parent == view.resolve().parent else ""
            write_view(stored, view, title=scenario.title, subtitle=about, data_file=data)
            found["view"] = str(view)
    show(found, chosen, as_lines(found))
    if reason:
        print(f"posture: {reason}; {out} holds the first {found['duration_s']:g} s", file=sys.stderr)
    return code


@contextmanager
def _shown_live(chosen: argparse.Namespace, title: str) -> Iterator[Callable[[Iterator[Any]], Iterator[Any]]]:
    """A way to pass on blocks that also shows them to whoever opens the printed address; plain without --live."""
    if not getattr(chosen, "live", False):
        yield iter
        return
    from posture.view.live import LiveView

    with LiveView(title=title) as live:
        print(f"posture: live at {live.url}", file=sys.stderr, flush=True)

        def watched(blocks: Iterator[Any]) -> Iterator[Any]:
            for block in blocks:
                live.add(block)
                yield block

        yield watched
        live.finish()


def _demo(chosen: argparse.Namespace) -> int:
    from posture.results import write_text
    from posture.scenario import parse_scenario

    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / "demo.toml"
    text = Path(__file__).parents[1].joinpath("demo.toml").read_text(encoding="utf-8")
    scenario = parse_scenario(text, path, overrides={} if chosen.seed is None else {"seed": chosen.seed})
    write_text(path, scenario.text)
    code = _run(scenario, chosen.out / "demo.nc", chosen.out / "demo.html", chosen)
    if not chosen.json:
        print(f"scenario: {path}\nopen {chosen.out / 'demo.html'} in a browser to see the motion")
    return code
