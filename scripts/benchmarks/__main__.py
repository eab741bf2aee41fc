"""Run the jobs, print a table or JSON: python -m benchmarks [--only JOB] [--json] [--plot FILE.svg]."""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import benchmarks

HELPERS = ("problem", "growth")


def jobs() -> list[str]:
    """Stems of the files of this folder that hold a job."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    return [name for name in names if name not in HELPERS and not name.startswith("_") and not name.endswith("_peer")]


def main() -> int:
    """Exit code 1 if any peer disagrees or is missing."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--only", choices=jobs(), help="one job")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--plot", type=Path, help="also plot cost against run length, ensemble size and joints (.svg)")
    chosen = parser.parse_args()
    rows = []
    for job in [chosen.only] if chosen.only else jobs():
        print(f"bench: {job}", file=sys.stderr, flush=True)
        rows += import_module(f"benchmarks.{job}").rows()
    if chosen.json:
        print(json.dumps(rows, indent=1))
    else:
        width = max(len(row["peer"]) for row in rows)
        print(f"{'job':10} {'peer':{width}} {'ours/s':>12} {'peer/s':>12} {'ratio':>7}  agree within")
        for row in rows:
            line = f"{row['job']:10} {row['peer']:{width}} "
            if row["agree"]:
                line += (
                    f"{row['ours_per_s']:12.4g} {row['peer_per_s']:12.4g} {row['ratio']:7.1f}  {row['difference']:.1e}"
                )
            else:
                line += "no speed: " + row.get("reason", f"answers differ by {row['difference']}")
            if row["agree"] and "ratio_cpu" in row:
                line += f"  (ratio of processor time {row['ratio_cpu']:.1f})"
            print(line)
    if chosen.plot:
        from benchmarks.growth import plot

        for name, slope in plot(chosen.plot).items():
            print(f"cost against {name}: exponent {slope:.2f}", file=sys.stderr)
    return 0 if all(row["agree"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
