"""What a report can be about: a run, a sweep over conditions or a cohort's table; the file itself says which."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import xarray as xr

from posture.errors import ResultError
from posture.results import check_whole, load

MOST_ROWS = 100_000


def kind_of(source: xr.Dataset) -> str:
    """``run``, ``sweep`` or ``cohort``."""
    if "recording" in source.dims:
        return "cohort"
    return "sweep" if source.attrs.get("schema") == "posture-sweep" else "run"


def read_source(path: Path) -> xr.Dataset:
    """Read any of the three, checked as far as its kind allows."""
    if not path.is_file():
        raise ResultError(f"{path}: no such file; give a result (.nc) or a cohort's table (.csv)")
    if path.suffix == ".csv":
        return _table(path)
    check_whole(path)
    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            schema, is_cohort = stored.attrs.get("schema"), "recording" in stored.dims
            if is_cohort:
                return stored.load()
    except Exception:  # h5py raises half a dozen unrelated types for damaged files; load() says what is wrong
        return load(path)
    return load(path, schema="posture-sweep") if schema == "posture-sweep" else load(path)


def _table(path: Path) -> xr.Dataset:
    """A cohort's table: a column ``recording`` and columns of numbers or words."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for _, row in zip(range(MOST_ROWS), csv.DictReader(stream), strict=False)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ResultError(f"{path}: not a readable table ({error}); give .csv with a heading") from None
    if not rows or "recording" not in rows[0]:
        raise ResultError(f"{path}: no column is called 'recording'; give the table that `posture sway` writes")
    columns = {}
    for name in rows[0]:
        texts = [row.get(name) or "" for row in rows]
        if name in (None, "recording"):
            continue
        numbers = [_number(text) for text in texts]
        words = any(number is None for number in numbers)
        columns[name] = ("recording", np.array(texts if words else numbers, dtype=None if words else float))
    return xr.Dataset(columns, coords={"recording": [row["recording"] for row in rows]})


def _number(text: str) -> float | None:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        return None
