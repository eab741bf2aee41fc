"""Many recordings, one table: each file is one job, done once, on local cores or a Dask scheduler.

Results of single files are kept in a folder beside the table until it is complete, so that an interrupted run goes on
where it stopped. A result counts only for the same file content and settings. Files that cannot be used are reported
with their sentence and left out.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.errors import PostureError, RecordingError
from posture.recordings import SUFFIXES
from posture.results import replacing, write_text

Row = dict[str, float | str]
Job = Callable[[Path, Mapping[str, Any]], Row]


@dataclass
class Table:
    """Rows of the files that worked, in order of their names; sentences of those that did not."""

    rows: list[Row] = field(default_factory=list)
    bad: dict[str, str] = field(default_factory=dict)
    resumed: int = 0


def recording_files(folder: Path, pattern: str = "*") -> list[Path]:
    """Files of a folder (not of its subfolders) that could be recordings, by name."""
    if not folder.is_dir():
        raise RecordingError(f"{folder}: no such folder")
    found = [
        path
        for path in sorted(folder.glob(pattern))
        if path.is_file() and Path(path.name.removesuffix(".gz")).suffix.lower() in SUFFIXES
    ]
    if not found:
        raise RecordingError(
            f"{folder}: no recording matches {pattern!r}; recordings end in {', '.join(SUFFIXES)} (or .gz)"
        )
    return found


def run_cohort(
    files: Sequence[Path],
    job: Job,
    settings: Mapping[str, Any],
    *,
    out: Path,
    workers: int = 1,
    scheduler: str | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Table:
    """Do ``job(file, settings)`` for every file and write the table ``out`` (.csv or .nc).

    ``settings`` must be plain JSON values. ``scheduler``: address of a running Dask scheduler, such as
    tcp://host:8786, whose workers see the same files; otherwise ``workers`` local processes. ``tell`` hears how many of
    how many files are done.
    """
    if out.suffix not in (".csv", ".nc"):
        raise RecordingError(f"{out}: a table is written as .csv or .nc; give a name that ends so")
    parts = out.with_name(out.name + ".parts")
    parts.mkdir(parents=True, exist_ok=True)
    table = Table()
    kept: dict[Path, Path] = {path: parts / f"{_fingerprint(path, job, settings)}.json" for path in files}
    todo = [path for path in files if not kept[path].is_file()]
    table.resumed = len(files) - len(todo)
    done = table.resumed
    if tell:
        tell(done, len(files))
    for path, result in _results(todo, job, settings, workers, scheduler):
        write_text(kept[path], json.dumps(result))
        done += 1
        if tell:
            tell(done, len(files))
    for path in files:
        result = json.loads(kept[path].read_text(encoding="utf-8"))
        if "error" in result:
            table.bad[path.name] = result["error"]
        else:
            table.rows.append({key: math.nan if value is None else value for key, value in result["row"].items()})
    if table.rows:
        write_table(table.rows, out)
    shutil.rmtree(parts)
    return table


def write_table(rows: Sequence[Row], out: Path) -> None:
    """Write rows as .csv or netCDF (.nc, one variable per column along ``recording``), complete or not at all."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with replacing(out) as temporary:
        if out.suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, names, restval="", lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            return
        variables = {}
        for name in names:
            if name == "recording":
                continue
            values = [row.get(name, math.nan) for row in rows]
            text = any(isinstance(value, str) for value in values)
            variables[name] = ("recording", np.array([str(v) for v in values]) if text else np.array(values, float))
        labels = [str(row["recording"]) for row in rows]
        xr.Dataset(variables, coords={"recording": labels}).to_netcdf(temporary, engine="h5netcdf")


def _attempt(path: Path, job: Job, settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        row = job(path, settings)
    except PostureError as error:
        return {"error": str(error)}
    except Exception as error:  # one strange file must not end a night's work
        return {"error": f"{path.name}: failed unexpectedly ({type(error).__name__}: {error}); please report it"}
    clean = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()
    }
    return {"row": clean}


def _results(
    todo: Sequence[Path], job: Job, settings: Mapping[str, Any], workers: int, scheduler: str | None
) -> Iterator[tuple[Path, dict[str, Any]]]:
    if scheduler is not None:
        try:
            import distributed
        except ImportError:
            raise RecordingError(
                "a Dask scheduler needs distributed; install it: pip install 'posture[cluster]'"
            ) from None
        try:
            client: Any = distributed.Client(scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise RecordingError(
                f"{scheduler}: no Dask scheduler answers ({error}); start one or use --workers"
            ) from None
        with client:
            futures = {client.submit(_attempt, path.resolve(), job, settings, pure=False): path for path in todo}
            for future in distributed.as_completed(futures):
                yield futures[future], future.result()
        return
    if workers <= 1 or len(todo) < 2:
        for path in todo:
            yield path, _attempt(path, job, settings)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_attempt, path, job, settings): path for path in todo}
        try:
            for item in as_completed(running):
                yield running[item], item.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside use one thread for linear algebra: with one process per core, more only wait."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _fingerprint(path: Path, job: Job, settings: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(path.read_bytes())
    digest.update(json.dumps([path.name, job.__name__, settings], sort_keys=True).encode())
    return digest.hexdigest()[:32]
