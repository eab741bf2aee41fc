"""Headings × speeds × seas: interruptions and sickness at every station, kept in one file that can be resumed.

Each condition draws its own sea from the voyage's seed and its place in the table, so the numbers do not depend on
the order of work or on interruptions. The file is written whole, with checksums, every few seconds; conditions not
yet done are NaN.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.errors import ResultError
from posture.results import SCHEMA_VERSION, load, replacing, save, versions
from posture.ship.assess import assess
from posture.ship.criteria import check_criteria
from posture.ship.interruptions import CAUSES
from posture.ship.settings import Voyage

SAVE_EVERY = 3.0  # s between writings of the file
WAYS = ("tip_lateral", "tip_fore_aft", "slide_lateral", "slide_fore_aft")
CONDITION = ("sea", "speed", "heading", "station")

# name: dims after the condition's, unit, meaning
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "interruptions_formula": (("way",), "1/min", "interruptions of a rigid person by the level-crossing formula"),
    "interruptions_per_minute": ((), "1/min", "counted interruptions; the formula's sum where none were counted"),
    "interruptions_low": ((), "1/min", "lower 95 % limit of the counted rate"),
    "interruptions_high": ((), "1/min", "upper 95 % limit of the counted rate"),
    "interruptions_by_cause": (("cause",), "1", "counted interruptions by cause"),
    "fell_at": ((), "s", "when the simulated person fell; NaN if never"),
    "sickness_percent": ((), "%", "motion sickness incidence after the exposure (McCauley 1976)"),
    "sickness_2_hours_percent": ((), "%", "motion sickness incidence after two hours (O'Hanlon and McCauley 1974)"),
    "dose": ((), "m/s^1.5", "motion sickness dose value MSDVz of ISO 2631-1"),
    "vomiting_percent": ((), "%", "who may vomit by ISO 2631-1"),
    "criteria_used": ((), "1", "largest share of a limit of the criteria table that is used up; above 1 it is broken"),
    "rms": (("quantity",), "SI", "RMS of motions (m, rad) and felt accelerations (m/s²)"),
}
QUANTITIES = (
    *("surge", "sway", "heave", "roll", "pitch", "yaw"),
    *("fore_aft_acceleration", "lateral_acceleration", "vertical_acceleration"),
)


def empty_table(voyage: Voyage) -> xr.Dataset:
    """The table of a voyage with nothing done yet."""
    coords: dict[str, Any] = {
        "sea": list(voyage.seas),
        "speed": ("speed", np.array(voyage.speeds), {"units": "m/s"}),
        "heading": (
            "heading",
            np.degrees(voyage.headings),
            {"units": "deg", "long_name": "0 following, 180 head seas"},
        ),
        "station": list(voyage.stations),
        "way": list(WAYS),
        "cause": list(CAUSES),
        "quantity": list(QUANTITIES),
    }
    sizes = {name: len(values[1] if isinstance(values, tuple) else values) for name, values in coords.items()}
    table = xr.Dataset(
        {
            name: (
                (*CONDITION, *dims),
                np.full([sizes[dim] for dim in (*CONDITION, *dims)], np.nan),
                {"units": unit, "long_name": text},
            )
            for name, (dims, unit, text) in VARIABLES.items()
        },
        coords=coords,
    )
    table["done"] = (CONDITION[:3], np.zeros([sizes[dim] for dim in CONDITION[:3]]), {"units": "1"})
    return table.assign_attrs(
        schema="posture-sweep",
        schema_version=SCHEMA_VERSION,
        title=voyage.title,
        ship=voyage.ship.name,
        voyage=voyage.text,
        settings=json.dumps(_settings(voyage)),
        versions=json.dumps(versions()),
        stopped="",
    )


def _settings(voyage: Voyage) -> dict[str, str]:
    """Everything a number depends on, as text; a file with other settings cannot be resumed."""
    sailor = {
        item.name: repr(getattr(voyage.sailor, item.name)) for item in fields(voyage.sailor) if item.name != "simulate"
    }
    model = voyage.text if voyage.sailor.method == "model" else ""
    seas = {
        name: hashlib.sha256(sea.omega.tobytes() + sea.density.tobytes() + repr(sea.spreading).encode()).hexdigest()
        for name, sea in voyage.seas.items()
    }
    return {
        "ship": voyage.ship.fingerprint(),
        "seas": repr(seas),
        "headings": repr(voyage.headings),
        "speeds": repr(voyage.speeds),
        "stations": repr(voyage.stations),
        "seed": repr(voyage.seed),
        "criteria": voyage.criteria,
        "versions": json.dumps(versions()),
        "model": hashlib.sha256(model.encode()).hexdigest(),
        **sailor,
    }


def run_sweep(
    voyage: Voyage, path: Path, *, progress: Callable[[int, int], None] | None = None, restart: bool = False
) -> xr.Dataset:
    """Work through all conditions that ``path`` does not hold yet; ``progress`` is told conditions done and in all.

    An existing file is continued if it belongs to the same voyage, or begun anew with ``restart``.
    """
    if path.suffix != ".nc":
        raise ResultError(f"{path}: a sweep is written as .nc; give a name that ends so")
    table = empty_table(voyage)
    if path.exists() and not restart:
        table = _resume(path, table)
    conditions = list(product(range(len(voyage.seas)), range(len(voyage.speeds)), range(len(voyage.headings))))
    finished = before = int(table["done"].sum())
    saved = time.monotonic()
    try:
        for place in conditions:
            if table["done"].values[place]:
                continue
            _fill(table, voyage, place)
            finished += 1
            if progress:
                progress(finished, len(conditions))
            if time.monotonic() - saved > SAVE_EVERY:
                save(table, path)
                saved = time.monotonic()
    finally:  # what is done is kept, whatever stops the work
        if finished > before:
            save(table, path)
    return table


def _resume(path: Path, fresh: xr.Dataset) -> xr.Dataset:
    stored = load(path, schema="posture-sweep")
    before, now = json.loads(stored.attrs["settings"]), json.loads(fresh.attrs["settings"])
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        raise ResultError(
            f"{path}: this file belongs to a voyage with other {', '.join(changed)}; "
            "give another --out, or --restart to write it anew"
        )
    return stored.assign_attrs({key: value for key, value in stored.attrs.items() if key != "checksums"})


def _fill(table: xr.Dataset, voyage: Voyage, place: tuple[int, int, int]) -> None:
    """Compute one condition for all stations."""
    sea = list(voyage.seas.values())[place[0]]
    for index, station in enumerate(voyage.stations.values()):
        found = assess(
            voyage.ship,
            sea,
            heading=voyage.headings[place[2]],
            speed=voyage.speeds[place[1]],
            station=station,
            sailor=voyage.sailor,
            seed=[voyage.seed, *place],  # one sea for all stations: they are on the same ship
        )
        counted = found["counted"]
        rate = found["interruptions_per_minute"] if counted is None else counted.per_minute
        limits = {**found["rms"], "interruptions_per_minute": rate, "sickness_percent": found["sickness_percent"]}
        low, high = (math.nan, math.nan) if counted is None else counted.interval
        values: dict[str, Any] = {
            "interruptions_formula": [found["formula"][way] for way in WAYS],
            "interruptions_per_minute": rate,
            "interruptions_low": low,
            "interruptions_high": high,
            "interruptions_by_cause": [math.nan if counted is None else counted.by_cause()[name] for name in CAUSES],
            "fell_at": found["fell"],
            "criteria_used": max(
                row["used"] for row in check_criteria(limits, voyage.criteria) if row["used"] is not None
            ),
            "rms": [found["rms"][name] for name in QUANTITIES],
        }
        for name in ("sickness_percent", "sickness_2_hours_percent", "dose", "vomiting_percent"):
            values[name] = found[name]
        for name, value in values.items():
            table[name].values[(*place, index)] = value
    table["done"].values[place] = 1


def write_table(table: xr.Dataset, path: Path) -> None:
    """Write all conditions as rows of a CSV file; RMS values and ways spread over columns."""
    header = [*CONDITION]
    columns = {}
    for name, (dims, _, _) in VARIABLES.items():
        labels = [str(label) for label in table[dims[0]].values] if dims else [""]
        for number, label in enumerate(labels):
            title = f"{name}.{label}" if label else name
            columns[title] = table[name].values[..., number] if label else table[name].values
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(",".join([*header, *columns]) + "\n")
        for place in product(*(range(table.sizes[dim]) for dim in CONDITION)):
            labels = [str(table[dim].values[at]).replace(",", ";") for dim, at in zip(CONDITION, place, strict=True)]
            stream.write(",".join([*labels, *(f"{values[place]:.8g}" for values in columns.values())]) + "\n")
