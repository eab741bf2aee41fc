"""Thousands of runs: in parts, on threads here or on a Dask cluster, resumable, in bounded memory.

A part (some runs in order) is computed from the plan and its number alone and kept as one file until all are there;
then the parts are put together in order. So neither threads, machines, lost workers nor kill -9 change a byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from posture.engine.machine import Machine, machine_for
from posture.engine.plan import BINS, LEVELS, SIGNALS, Draw, Plan
from posture.engine.statistics import ENDINGS, deviation, merge, quantiles
from posture.errors import Interrupted, ResultError, ScenarioError
from posture.results import SCHEMA_VERSION, creating, replacing, seal, versions, write_text

Array = NDArray[np.floating]

PART_VERSION = 1
PATIENCE_S = 10  # for a Dask scheduler to answer


def run_ensemble(
    plan: Plan,
    out: Path,
    *,
    threads: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    engine: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Compute a plan into one netCDF file; ``progress`` is told the runs done so far.

    ``scheduler``: address of a Dask scheduler, whose workers have posture installed and see the same files.
    """
    if out.suffix != ".nc":
        raise ResultError(f"{out}: this file is written as .nc; give a name that ends so")
    plan.batch(range(1))  # a plan that cannot work should fail before anything starts
    folder = out.with_name(out.name + ".parts")
    machine = machine_for(plan.program, engine)
    engine = machine.kind  # one for all parts: two would differ in the last bits
    with _READY_LOCK:
        _READY.clear()
        _READY[plan.text(), engine] = plan, machine
    waiting = _open_folder(plan, folder, engine, resume=resume)
    done = plan.parts - len(waiting)
    results = (
        _on_cluster(plan, waiting, scheduler, engine) if scheduler else _on_threads(plan, waiting, threads, engine)
    )
    try:
        for part, content in results:
            with replacing(folder / f"{part:06d}.npz") as temporary:
                temporary.write_bytes(content)
            done += 1
            if progress:
                progress(min(plan.runs, done * plan.part_size))
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {folder} keeps what is done, so go on with --resume") from None
    finally:
        results.close()
        if not any(folder.glob("*.npz")):  # nothing worth resuming
            shutil.rmtree(folder, ignore_errors=True)
    _put_together(plan, folder, out)
    shutil.rmtree(folder, ignore_errors=True)


def _open_folder(plan: Plan, folder: Path, engine: str, *, resume: bool) -> list[int]:
    """Parts still to be computed; the folder says which plan it belongs to."""
    label = json.dumps({"plan": plan.sha256, "part": PART_VERSION, "engine": engine, "versions": versions()})
    mark = folder / "plan.json"
    if folder.exists() and not resume:
        raise ScenarioError(f"{folder}: an unfinished ensemble lies here; add --resume to go on, or remove it")
    if mark.exists():
        if mark.read_text(encoding="utf-8") != label:
            raise ScenarioError(f"{folder}: belongs to another ensemble or version of posture; remove it to start anew")
    else:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ResultError(f"{folder}: cannot be made ({error.strerror}); choose another place") from None
        write_text(mark, label)
    for left in folder.glob(".*.part"):  # files a killed process was writing
        left.unlink(missing_ok=True)
    return [part for part in range(plan.parts) if _read_part(folder, part) is None]


# ---------------------------------------------------------------- computing parts


def compute_part(plan_text: str, part: int, engine: str) -> bytes:
    """One part as the bytes of an .npz file with a checksum in front: the unit of work, here or on a cluster."""
    plan, machine = _ready(plan_text, engine)
    runs = range(part * plan.part_size, min(plan.runs, (part + 1) * plan.part_size))
    batch, drawn = plan.batch(runs)
    found = plan.statistics()
    machine.gather(batch, found)
    moments = found.moments
    pooled: Array = np.zeros((len(plan.signals), 3))
    for row in moments:
        pooled = merge(pooled, row[:, :3])
    stream = io.BytesIO()
    np.savez(
        stream,
        drawn=drawn,
        mean=np.where(moments[..., 0] > 0, moments[..., 1], np.nan),
        deviation=deviation(moments),
        extremes=moments[..., 3:],
        quantiles=quantiles(found.histogram, found.low, found.high, moments[..., 3:], LEVELS),
        ending=found.ending,
        pooled=pooled,
        histogram=found.histogram.sum(axis=0, dtype=np.int64),
        over_time=found.over_time,
    )
    content = stream.getvalue()
    return hashlib.sha256(content).digest() + content


_READY: dict[tuple[str, str], tuple[Plan, Machine]] = {}
_READY_LOCK = threading.Lock()


def _ready(plan_text: str, engine: str) -> tuple[Plan, Machine]:
    """The plan and its machine; the last one is kept, as parts of one plan come in a row."""
    with _READY_LOCK:  # two threads of one process must not build the same plan at once
        key = (plan_text, engine)
        if key not in _READY:
            plan = Plan.of_text(plan_text)
            plan.batch(range(1))  # fills what threads share
            _READY.clear()
            _READY[key] = plan, machine_for(plan.program, engine)
        return _READY[key]


def _on_threads(plan: Plan, parts: list[int], threads: int | None, engine: str) -> Generator[tuple[int, bytes]]:
    text, waiting = plan.text(), iter(parts)
    count = (
        threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else threads or os.cpu_count() or 1
    )
    with ThreadPoolExecutor(count) as pool:
        running = {
            pool.submit(compute_part, text, part, engine): part
            for _, part in zip(range(2 * count), waiting, strict=False)
        }
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
                    for part in waiting:
                        running[pool.submit(compute_part, text, part, engine)] = part
                        break
        finally:
            for future in running:
                future.cancel()


def _on_cluster(plan: Plan, parts: list[int], scheduler: str, engine: str) -> Generator[tuple[int, bytes]]:
    try:
        from distributed import Client, Future, as_completed
    except ImportError:
        raise ScenarioError("--scheduler needs Dask; install it with: pip install 'posture[cluster]'") from None
    text = plan.text()
    try:
        client = Client(scheduler, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ScenarioError(
            f"{scheduler}: no Dask scheduler answers there ({error}); start one or mend the address"
        ) from None
    with client:
        # A worker that dies gives its unfinished parts back to the scheduler, which hands them out again.
        waiting = iter(parts)

        def submit(part: int) -> Future:
            return client.submit(compute_part, text, part, engine, key=f"{plan.sha256}-{engine}-{part}", retries=5)

        running = {submit(part): part for _, part in zip(range(64), waiting, strict=False)}
        finished = as_completed(list(running), loop=client.loop)
        for future in finished:
            yield running.pop(future), _content(future, scheduler)
            for part in waiting:
                fresh = submit(part)
                running[fresh] = part
                finished.add(fresh)
                break


def _content(future: Any, scheduler: str) -> bytes:
    """What a worker gave; trouble of the cluster itself becomes one sentence."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    try:
        return bytes(future.result())
    except (CancelledError, KilledWorker, CommClosedError, OSError, ImportError) as error:
        raise ScenarioError(
            f"{scheduler}: the cluster failed ({error}); see that its workers have this version of posture, "
            "then go on with --resume"
        ) from None


# ---------------------------------------------------------------- putting parts together


def _read_part(folder: Path, part: int) -> dict[str, Array] | None:
    """A part's arrays, or None where it is missing or damaged."""
    try:
        content = (folder / f"{part:06d}.npz").read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    with np.load(io.BytesIO(content[32:]), allow_pickle=False) as found:
        return dict(found)


def _put_together(plan: Plan, folder: Path, out: Path) -> None:
    """Write the result from the parts, one part in memory at a time."""
    import h5py

    signals, run = len(plan.signals), plan.first
    rows = round(run.duration / run.step) // run.every + 1
    over_time: Array = np.zeros((rows, signals, 3))
    pooled: Array = np.zeros((signals, 3))
    histogram, extremes = np.zeros((signals, BINS + 2), np.int64), np.tile([np.inf, -np.inf], (signals, 1))
    names = sorted(plan.vary)
    text = h5py.string_dtype()
    with creating(out) as file:
        sums: dict[str, Any] = {}
        file.dimensions = {
            "run": plan.runs, "signal": signals, "quantile": len(LEVELS), "time": rows, "bin": BINS + 2,
            **({"varied": len(names)} if names else {}),
        }  # fmt: skip

        def write(
            name: str, dims: tuple[str, ...], values: Any, unit: str, meaning: str, at: int | None = None
        ) -> None:
            array = np.asarray(values) if np.asarray(values).dtype.kind in "U" else np.asarray(values, "<f8")
            if name not in sums:
                made = file.create_variable(name, dims, dtype=text if array.dtype.kind == "U" else np.float64)
                made.attrs["units"], made.attrs["long_name"] = unit, meaning
                sums[name] = hashlib.sha256()
            if array.dtype.kind == "U":
                file[name][...] = np.array(array, dtype=object)
                sums[name].update("\n".join(array.tolist()).encode())
            else:
                file[name][... if at is None else slice(at, at + len(array))] = array
                sums[name].update(np.ascontiguousarray(array).tobytes())

        low, high = (np.array([SIGNALS[name][which] for name in plan.signals]) for which in (1, 2))
        write("signal", ("signal",), np.array(plan.signals), "1", "what was watched")
        write("signal_unit", ("signal",), np.array([SIGNALS[name][3] for name in plan.signals]), "1", "its unit")
        write("quantile", ("quantile",), LEVELS, "1", "levels of the quantiles")
        write("time", ("time",), np.arange(rows) * (run.every * run.step), "s", "time")
        write("bin_low", ("signal",), low, "as signal", "lower end of the histogram; below it is bin 0")
        write("bin_high", ("signal",), high, "as signal", "upper end of the histogram; above it is the last bin")
        if names:
            write("varied", ("varied",), np.array(names), "1", "settings that differ between runs")
        for part in range(plan.parts):
            found = _read_part(folder, part)
            if found is None:
                raise ResultError(f"{folder}: part {part} is damaged; run again with --resume")
            at = part * plan.part_size
            if names:
                write(
                    "drawn", ("run", "varied"), found["drawn"], "as setting", "values drawn; a choice by its place", at
                )
            per_run = ("run", "signal")
            write("mean", per_run, found["mean"], "as signal", "mean over time", at)
            write("standard_deviation", per_run, found["deviation"], "as signal", "standard deviation over time", at)
            write("minimum", per_run, found["extremes"][..., 0], "as signal", "smallest sample", at)
            write("maximum", per_run, found["extremes"][..., 1], "as signal", "largest sample", at)
            write("quantiles", (*per_run, "quantile"), found["quantiles"], "as signal", "quantiles over time", at)
            write("end_time", ("run",), found["ending"][:, 0], "s", "last instant that counts", at)
            write(
                "ending",
                ("run",),
                found["ending"][:, 1],
                "1",
                ", ".join(f"{i} {word}" for i, word in enumerate(ENDINGS)),
                at,
            )
            write("events", ("run",), found["ending"][:, 2], "1", "times the centre of pressure left the stance", at)
            over_time, pooled = merge(over_time, found["over_time"]), merge(pooled, found["pooled"])
            histogram += found["histogram"].astype(np.int64)
            extremes[:, 0] = np.minimum(extremes[:, 0], found["extremes"][..., 0].min(axis=0))
            extremes[:, 1] = np.maximum(extremes[:, 1], found["extremes"][..., 1].max(axis=0))
        along = ("time", "signal")
        write("count_over_runs", along, over_time[..., 0], "1", "runs still going on")
        write(
            "mean_over_runs",
            along,
            np.where(over_time[..., 0] > 0, over_time[..., 1], np.nan),
            "as signal",
            "mean over runs",
        )
        write("standard_deviation_over_runs", along, deviation(over_time), "as signal", "standard deviation over runs")
        write("pooled_mean", ("signal",), pooled[:, 1], "as signal", "mean over runs and time")
        write(
            "pooled_standard_deviation",
            ("signal",),
            deviation(pooled),
            "as signal",
            "standard deviation over runs and time",
        )
        pooled_quantiles = quantiles(histogram, low, high, extremes, LEVELS)
        write("pooled_quantiles", ("signal", "quantile"), pooled_quantiles, "as signal", "quantiles over runs and time")
        write("histogram", ("signal", "bin"), histogram, "1", "samples per bin, runs and time")
        attributes = run.attributes | {
            "schema": "posture-ensemble",
            "schema_version": SCHEMA_VERSION,
            "runs": plan.runs,
            "seed": plan.seed,
            "vary": json.dumps(dict(plan.vary)),
            "refractory_s": plan.refractory,
        }
        for key, value in attributes.items():
            file.attrs[key] = value
        seal(file, sums)


def parse_vary(pairs: Iterable[str]) -> dict[str, str]:
    """``person.mass=normal(80, 10)`` … as a mapping; each distribution is checked."""
    found: dict[str, str] = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals:
            raise ScenarioError(f"--vary {pair}: write SETTING=DISTRIBUTION, such as person.mass=normal(80, 10)")
        Draw.parse(text, f"--vary {path}")
        found[path.strip()] = text.strip()
    return found


def summary(dataset: xr.Dataset) -> dict[str, Any]:
    """Headline numbers of an ensemble, ready for JSON; the unit ends each name."""
    events, ending = dataset["events"].values, dataset["ending"].values
    found: dict[str, Any] = {"body": dataset.attrs["body"], "runs": int(dataset.sizes["run"])}
    for code, word in enumerate(ENDINGS):
        found[f"runs_{word.replace(' ', '_').replace('°', '_deg')}"] = int((ending == code).sum())
    found["events_per_run_mean"] = round(float(events.mean()), 4)
    found["events_per_run_sd"] = round(float(events.std(ddof=1)), 4) if len(events) > 1 else None
    middle = int(np.argmin(np.abs(LEVELS - 0.5)))
    for row, name in enumerate(dataset["signal"].values):
        low, median, high = (float(dataset["pooled_quantiles"].values[row, k]) for k in (0, middle, -1))
        unit = dataset["signal_unit"].values[row]
        found[f"{name}_{unit}"] = {"5 %": round(low, 4), "50 %": round(median, 4), "95 %": round(high, 4)}
    return found
