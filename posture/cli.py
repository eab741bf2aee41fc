"""The command line: every command prints for people, or for programs with --json.

Exit codes: 0 done, 1 a comparison failed, 2 bad input, 3 the run ended early (a fall), 130 interrupted. Heavy modules
are imported inside the commands, so that --help comes at once.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from posture import __version__
from posture.commands import Run, basics, compare, ensembles, gait, jump, runs, ship, sway, view
from posture.errors import PostureError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an old terminal's code page may lack ² and Greek letters
    try:
        try:
            chosen = _parser().parse_args(arguments)
            return int(chosen.run(chosen))
        finally:
            sys.stdout.flush()
    except PostureError as error:
        print(f"posture: {' '.join(str(error).splitlines())}", file=sys.stderr)
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

    def command(name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, epilog=f"example: posture {example}")
        added.set_defaults(run=run)
        added.add_argument("--json", action="store_true", help="print JSON")
        return added

    basics.add(command)
    runs.add(command)
    ship.add(command)
    jump.add(command)
    gait.add(command)
    ensembles.add(command)
    sway.add(command)
    view.add(command)
    compare.add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
