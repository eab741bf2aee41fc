"""The command that runs a scenario thousands of times: ensemble."""

from __future__ import annotations

import argparse
from pathlib import Path

from posture.commands import AddCommand, as_lines, progress, show


def add(command: AddCommand) -> None:
    """Add the command of this module."""
    many = command(
        "ensemble",
        _ensemble,
        "Run a scenario many times with other seas, persons or gains; keep statistics, not trajectories.",
        "ensemble demo.toml --runs 1000 --vary 'person.mass=normal(80, 12, 50, 120)' --out ensemble.nc",
    )
    many.add_argument("scenario", type=Path, help="scenario in TOML")
    many.add_argument("--runs", type=int, required=True, help="number of runs")
    many.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="SETTING=DISTRIBUTION",
        help="draw a setting of [person], [controller] or [deck] for each run: uniform(low, high), normal(mean, sd), "
        "normal(mean, sd, low, high) or choice(a, b, …); may be given several times",
    )
    many.add_argument("--same-sea", action="store_true", help="keep the scenario's seed, so that all runs meet one sea")
    many.add_argument("--seed", type=int, help="of all that is drawn; the scenario's by default")
    many.add_argument(
        "--refractory", type=float, default=1.0, help="s; an event counts if the last one began that long ago"
    )
    many.add_argument("--out", type=Path, required=True, help="result to write (.nc)")
    many.add_argument("--threads", type=int, help="all cores by default; the result does not depend on it")
    many.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster, such as tcp://10.0.0.5:8786")
    many.add_argument("--resume", action="store_true", help="go on with what an interrupted run has left")
    many.add_argument("--engine", default="auto", help="auto, compiled or vm (see simulate)")


def _ensemble(chosen: argparse.Namespace) -> int:
    from posture.engine.ensemble import parse_vary, run_ensemble, summary
    from posture.engine.plan import Plan
    from posture.errors import ScenarioError, check_number, find_name
    from posture.results import load
    from posture.scenario import read_scenario

    if chosen.threads is not None:
        check_number(chosen.threads, what="threads", unit="", low=1, high=1024, error=ScenarioError)
    find_name(chosen.engine, ("auto", "compiled", "vm"), what="engine", where="ensemble", error=ScenarioError)
    scenario = read_scenario(chosen.scenario)
    seed = scenario.seed if chosen.seed is None else chosen.seed
    if not 0 <= seed < 2**63:
        raise ScenarioError(f"--seed is {seed}; it must be a whole number from 0 up")
    plan = Plan(
        scenario,
        chosen.runs,
        parse_vary(chosen.vary),
        seed,
        refractory=chosen.refractory,
        same_sea=chosen.same_sea,
    )
    with progress(float(chosen.runs), unit="runs") as tell:
        run_ensemble(
            plan,
            chosen.out,
            threads=chosen.threads,
            scheduler=chosen.scheduler,
            resume=chosen.resume,
            engine=chosen.engine,
            progress=lambda runs: tell(float(runs)),
        )
    found = summary(load(chosen.out)) | {"result": str(chosen.out)}
    show(found, chosen, as_lines(found))
    return 0
