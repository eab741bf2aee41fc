"""Headline numbers of a run, from the result alone; ``page`` makes a report of them, ``figures`` its figures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY
from posture.ship.interruptions import count_run, disagreement
from posture.simulate import residual


def summary(dataset: xr.Dataset) -> dict[str, Any]:
    """Sizes of deck motion, sway and load over the whole run, ready for JSON; the unit ends each name."""
    time = dataset.time.values
    found: dict[str, Any] = {
        "body": dataset.attrs["body"],
        "mass_kg": round(float(dataset.attrs["body_mass_kg"]), 3),
        "duration_s": round(float(time[-1]), 6),
        "rows": len(time),
        "stopped": dataset.attrs["stopped"],
    }
    if "position_cop_on_deck" in dataset and "deck_quaternion" in dataset:
        found |= _on_deck(dataset)
    if dataset.sizes["joint"]:
        peak = np.degrees(np.nanmax(np.abs(dataset["joint_position"].values), axis=0))
        worst = int(np.argmax(peak))
        found["largest_joint_angle"] = str(dataset["joint"].values[worst])
        found["largest_joint_angle_deg"] = _round(peak[worst])
    if len(time) > 2 and "deck_specific_force" in dataset:
        found["newton_residual_g"] = float(f"{residual(dataset):.2g}")
    return found


def _on_deck(dataset: xr.Dataset) -> dict[str, Any]:
    """What a body that stands on a deck or floor does there."""
    time = dataset.time.values
    found: dict[str, Any] = {}
    tilt = np.degrees(Rotation.from_quat(dataset["deck_quaternion"].values).as_euler("XYZ"))
    for column, name in enumerate(("roll", "pitch")):
        found[f"deck_{name}_rms_deg"] = _round(_rms(tilt[:, column]))
    pressure, mass_center = dataset["position_cop_on_deck"].values, dataset["position_com_in_deck"].values
    for column, name in enumerate(("fore_aft", "lateral")):
        found[f"cop_{name}_sd_mm"] = _round(1000 * np.nanstd(pressure[:, column]))
        found[f"com_{name}_sd_mm"] = _round(1000 * np.nanstd(mass_center[:, column]))
    if "stance_margin" in dataset:
        margin = dataset["stance_margin"].values
        found["stance_margin_min_mm"] = _round(1000 * np.nanmin(margin))
        # No pressure at all (NaN) is outside, too: the deck has dropped away.
        found["time_outside_stance_percent"] = _round(100 * np.mean(~(margin >= 0)))
        if len(time) > 2 and np.isfinite(margin).any():
            found |= count_run(dataset).summary() | disagreement(dataset)
    weight = dataset.attrs["body_mass_kg"] * STANDARD_GRAVITY
    vertical = dataset["force_deck_on_person"].values[:, 2] / weight
    found["vertical_force_min_weights"], found["vertical_force_max_weights"] = (
        _round(vertical.min()),
        _round(vertical.max()),
    )
    return found


def _rms(values: Any) -> float:
    return math.sqrt(float(np.mean(np.square(values))))


def _round(value: Any) -> float | None:
    return round(float(value), 3) if math.isfinite(value) else None
