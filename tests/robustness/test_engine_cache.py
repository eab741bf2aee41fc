"""The library cache and the search for a compiler: concurrent, killed, damaged, missing, forbidden."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

CODE = """
import hashlib, sys
import numpy as np
from posture.body import load_body
from posture.engine.stepper import Stepper
from posture.systems.ship_stance import balance_controller, heavy_weather
body = load_body("ship_stance")
stepper = Stepper(body, balance_controller(body, 2.0), heavy_weather(), step=0.005, every=10, engine=sys.argv[1])
states = stepper.integrate(0, 400, np.zeros(24))
np.save(sys.argv[2], states)
print(stepper.kind, hashlib.sha256(states.tobytes()).hexdigest())
"""


def start(engine: str, out: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE, engine, str(out)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str, str]:
    """Kind, digest, what was said on stderr."""
    said, complaint = process.communicate(timeout=120)
    assert process.returncode == 0, complaint
    kind, digest = said.split()
    return kind, digest, complaint


def test_processes_that_build_at_once_get_one_good_library_and_clear_old_leftovers(tmp_path: Path) -> None:
    cache = {"POSTURE_CACHE": str(tmp_path / "cache")}
    old = tmp_path / "cache/.build-old"  # of a build killed long ago
    old.mkdir(parents=True)
    os.utime(old, (1, 1))
    found = [finish(process) for process in [start("compiled", tmp_path / f"{n}.npy", **cache) for n in range(3)]]
    assert len({digest for _, digest, _ in found}) == 1
    assert len(list((tmp_path / "cache").glob("*.so"))) == 1
    assert not list((tmp_path / "cache").glob(".build-*"))


def test_a_killed_build_and_a_damaged_library_are_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = {"POSTURE_CACHE": str(folder)}
    process = start("compiled", tmp_path / "a.npy", **cache)
    for _ in range(4000):  # until the compiler runs
        if list(folder.glob(".build-*/program.c")):
            break
        time.sleep(0.005)
    assert list(folder.glob(".build-*/program.c"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(folder.glob("*.so"))
    first = finish(start("compiled", tmp_path / "b.npy", **cache))
    library = next(folder.glob("*.so"))
    library.write_bytes(library.read_bytes()[:5000])
    assert finish(start("compiled", tmp_path / "c.npy", **cache)) == first


def test_without_any_compiler_the_interpreter_does_the_work_and_says_how_to_get_faster(tmp_path: Path) -> None:
    environment = {"POSTURE_CACHE": str(tmp_path / "cache"), "PATH": ""}
    hide_zig = {"POSTURE_COMPILER": "none"}
    kind, _, said = finish(start("auto", tmp_path / "vm.npy", **environment, **hide_zig))
    assert kind == "vm"
    assert len(said.strip().splitlines()) == 1
    assert "pip install ziglang" in said
    finish(start("compiled", tmp_path / "compiled.npy"))
    one, other = np.load(tmp_path / "vm.npy"), np.load(tmp_path / "compiled.npy")
    assert np.abs(one - other).max() <= 1e-11 * np.abs(other).max()
    refused = start("compiled", tmp_path / "no.npy", **environment, **hide_zig)
    assert "NoCompiler" in refused.communicate(timeout=60)[1]


@pytest.mark.slow
def test_with_an_empty_path_the_zig_package_compiles_to_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    kind, digest, _ = finish(start("auto", tmp_path / "zig.npy", POSTURE_CACHE=str(tmp_path / "cache"), PATH=""))
    assert kind == "compiled"
    assert digest == finish(start("compiled", tmp_path / "usual.npy"))[1]


def test_a_compiler_that_fails_is_told_and_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "bin/gcc"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'internal compiler error: out of luck' >&2\nexit 1\n")
    broken.chmod(0o755)
    environment = {"POSTURE_CACHE": str(tmp_path / "cache"), "POSTURE_COMPILER": str(broken)}
    kind, _, said = finish(start("auto", tmp_path / "a.npy", **environment))
    assert kind == "vm"
    assert "out of luck" in said


def test_a_cache_that_cannot_be_made_or_belongs_to_others_is_not_used(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert finish(start("compiled", tmp_path / "a.npy", POSTURE_CACHE=str(blocked)))[0] == "compiled"
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    finish(start("compiled", tmp_path / "b.npy", POSTURE_CACHE=str(shared)))
    assert shared.stat().st_mode & 0o022 == 0  # ours, so it could be closed to others before use
