"""Runs many command lines, each in a process of its own, without paying for the imports each time."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

# Imports everything once, then forks for each command line: a crash ends one child and is seen in its exit code.
FORKING = """
import json, os, sys
import posture.body, posture.scenario, posture.view, posture.report, yourdfpy, h5netcdf, h5py, tqdm
from posture.cli import main

folder = sys.argv[1]
for number, arguments in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if child == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT), stream)
        code = 70  # what an escaped exception is told by; its traceback is printed below
        try:
            code = main(arguments)
        except SystemExit as left:
            code = left.code
        except BaseException:
            import traceback
            traceback.print_exc(limit=-2)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """What one command line left behind; ``code`` is negative when a signal ended it."""

    arguments: Sequence[str]
    code: int
    out: str
    err: str


RunAll = Callable[[Sequence[Sequence[str | Path]]], list[Done]]


@pytest.fixture(scope="session")
def run_all(tmp_path_factory: pytest.TempPathFactory) -> RunAll:
    """Run command lines of posture, each in its own forked process; one ``Done`` for each."""

    def run(lines: Sequence[Sequence[str | Path]]) -> list[Done]:
        folder = tmp_path_factory.mktemp("commands")
        asked = [[str(word) for word in line] for line in lines]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", FORKING, str(folder)],
            input=json.dumps(asked), capture_output=True, text=True, env=environment, cwd=folder, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        codes = [int(line) for line in done.stdout.split()]
        return [
            Done(
                arguments, code, *((folder / f"{number}.{name}").read_text(encoding="utf-8") for name in ("out", "err"))
            )
            for number, (arguments, code) in enumerate(zip(asked, codes, strict=True))
        ]

    return run
