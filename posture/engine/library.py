"""C text to a loaded library: finds a compiler, builds once, keeps the result for next time.

A library's file name holds the key (formulas, flags, compiler, CPU) and the checksum of its own bytes, and it gets
that name by one rename when complete: processes may build the same one at the same time, and a killed build or a
damaged file is simply built again. The folder belongs to its user alone, since what lies there is executed.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from posture.errors import PostureError

# -ffp-contract=off: the same bytes from every compiler, lane width and CPU; it costs about a tenth of the speed.
FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-std=gnu11")
BUILD_LIMIT_S = 300
HOW_TO_GET_FASTER = (
    "no C compiler found, so CasADi's own machine runs the formulas, some twenty times slower; "
    "for a compiler without root rights: pip install ziglang"
)


class EngineError(PostureError):
    """A library cannot be built or used."""


class NoCompiler(EngineError):
    """There is no C compiler, or none that works."""


def cache_folder() -> Path:
    """Where libraries are kept: $POSTURE_CACHE, else the user's cache folder."""
    chosen = os.environ.get("POSTURE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "posture" / "engine"


def find_compilers() -> list[list[str]]:
    """Commands that may compile C, best first: gcc, clang, the system's cc, the ziglang package.

    $POSTURE_COMPILER names the only one to use, or "none".
    """
    chosen = os.environ.get("POSTURE_COMPILER")
    if chosen == "none":
        return []
    if chosen == "zig":
        return [[sys.executable, "-m", "ziglang", "cc"]]
    if chosen:
        return [[path] for path in [shutil.which(chosen)] if path]
    found = [[path] for name in ("gcc", "clang", "cc") if (path := shutil.which(name))]
    if importlib.util.find_spec("ziglang"):
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found


@cache
def cpu() -> str:
    """What -march=native depends on."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line.split(':', 1)[1].strip()}"
    except OSError:
        pass
    return f"{platform.machine()} {platform.processor()} {platform.node()}"


def widest() -> int:
    """Doubles in the CPU's vector registers."""
    flags = cpu().split()
    return 8 if "avx512f" in flags else 4 if "avx2" in flags else 2


def load_library(form: str, text: Callable[[], str], *, lanes: int) -> ctypes.CDLL:
    """The library for a form (see ``Program.form``), built from ``text()`` if it is not kept already."""
    folder = _private(cache_folder())
    compilers = find_compilers()
    for command in compilers:
        kept = _kept(folder, _key(form, command, lanes))
        if kept is not None:
            return ctypes.CDLL(str(kept))
    reason = ""
    for command in compilers:
        try:
            return ctypes.CDLL(str(_build(folder, _key(form, command, lanes), text(), command, lanes)))
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            reason = f" ({' '.join(command)}: {said[-1] if said else error})"
    raise NoCompiler(HOW_TO_GET_FASTER + reason)


def _key(form: str, command: list[str], lanes: int) -> str:
    program = Path(shutil.which(command[0]) or command[0]).resolve()
    state = program.stat()
    identity = (form, FLAGS, command, str(program), state.st_size, state.st_mtime_ns, cpu(), lanes)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:32]


def _private(folder: Path) -> Path:
    """The folder, made for this user alone; another one where that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.stat()
        if not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022):
            if os.access(folder, os.W_OK):
                return folder
        elif state.st_uid == os.getuid():
            folder.chmod(0o700)
            return folder
    except OSError:
        pass
    return _session_folder()


@cache
def _session_folder() -> Path:
    """A folder for this process only, removed at its end."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="posture-engine-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _kept(folder: Path, key: str) -> Path | None:
    for path in sorted(folder.glob(f"{key}-*.so")):
        try:
            if hashlib.sha256(path.read_bytes()).hexdigest()[:32] == path.stem.split("-")[1]:
                return path
            path.unlink(missing_ok=True)  # damaged: a truncated library would crash the process
        except OSError:
            continue
    return None


def _build(folder: Path, key: str, text: str, command: list[str], lanes: int) -> Path:
    for left in folder.glob(".build-*"):  # of a build that was killed
        if time.time() - left.stat().st_mtime > 2 * BUILD_LIMIT_S:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=folder) as place:
        source, built = Path(place) / "program.c", Path(place) / "program.so"
        source.write_text(text, encoding="utf-8")
        # Zig keeps caches of its own; inside the folder they go where everything of ours goes.
        environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"), "ZIG_LOCAL_CACHE_DIR": place}
        subprocess.run(
            [*command, *FLAGS, "-march=native", f"-DLANES={lanes}", "program.c", "-o", "program.so", "-lm"],
            cwd=place,
            env=environment,
            check=True,
            capture_output=True,
            timeout=BUILD_LIMIT_S,
        )
        with built.open("rb+") as stream:
            os.fsync(stream.fileno())
        final = folder / f"{key}-{hashlib.sha256(built.read_bytes()).hexdigest()[:32]}.so"
        os.replace(built, final)
        return final
