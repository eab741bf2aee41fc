"""What every body in models_urdf and every system must keep, those to come included."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

from controllers import PD
from posture.body import Body, body_from_text, load_body, model_names, read_twice
from posture.deck import Sine, SineDeck
from posture.results import SCHEMA
from posture.simulate import residual, simulate
from posture.systems import comparison, system_names

BODIES = model_names()


def run_of(body: Body) -> xr.Dataset:
    """Half a second on a deck that moves in all six ways, one joint locked where there are more."""
    stiffness = {name: 8 * value for name, value in body.toppling_stiffness().items()}
    damping = {name: 0.02 * value for name, value in stiffness.items()}
    controller = PD(body.joint_names, stiffness=stiffness, damping=damping, gravity_torque=body.gravity_torque)
    motions = ("surge", "sway", "heave", "roll", "pitch", "yaw")
    deck = SineDeck({name: [Sine(0.03, 4.0 + i, 0.5 + i)] for i, name in enumerate(motions)}, station=(5, 2, 1))
    held = body.lock({body.joint_names[-1]: 0.05}) if len(body.joint_names) > 1 else body
    return simulate(held, deck, controller, duration=0.5, step=0.001, output_step=0.005)


def test_there_are_bodies_and_systems_and_each_system_has_its_body() -> None:
    assert "ship_stance" in system_names()
    assert set(system_names()) <= set(BODIES)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_loads_and_is_read_alike_by_two_libraries(name: str) -> None:
    body = load_body(name)
    assert body.name == name
    assert len(set(body.joint_names)) == len(body.joint_names) > 0
    assert 0 < body.mass < 500
    assert np.isfinite(body.center_of_mass()).all()
    assert read_twice(body) < 1e-6
    assert load_body(name).sha256 == body.sha256
    assert body_from_text(name, body.urdf, body.sidecar).mass == pytest.approx(body.mass)
    json.dumps(body.describe())
    for area in body.contact_names:
        outline = body.contact_polygon(area)
        after = np.roll(outline, -1, axis=0)
        assert np.sum(outline[:, 0] * after[:, 1] - after[:, 0] * outline[:, 1]) > 0  # counter-clockwise, with an area


@pytest.mark.parametrize("name", [name for name in BODIES if not load_body(name).floats])
def test_a_run_is_finite_named_with_units_repeatable_and_without_dead_output(name: str) -> None:
    body = load_body(name)
    run = run_of(body)
    assert list(run.joint.values) == body.joint_names
    moving = [joint for joint in body.joint_names if joint != body.joint_names[-1] or len(body.joint_names) == 1]
    for key, variable in run.data_vars.items():
        assert variable.attrs["units"] == SCHEMA[str(key)][1]
        assert variable.attrs["long_name"]
        assert np.isfinite(variable.values).all(), key
        live = variable.sel(joint=moving) if "joint" in variable.dims else variable
        if key == "position_com_in_deck" and not any(name.endswith(("_x", "_z")) for name in body.joint_names):
            live = live.sel(axis=["x", "z"])  # a body of one plane never leaves it
        size = np.abs(live.values).max(axis=0)
        assert (size > 0).all(), f"{key} is always zero in a column"
        spread = np.ptp(live.values, axis=0)
        assert (spread > 0).all(), f"{key} never changes in a column"
    assert residual(run.isel(time=slice(1, None))) < 0.01  # Newton's law for the centre of mass, in g
    assert run.identical(run_of(load_body(name)))


@pytest.mark.slow
@pytest.mark.parametrize("system", system_names())
def test_rows_of_a_reproduction_are_well_formed(system: str, reproduced: Callable[[str], list[dict[str, Any]]]) -> None:
    rows = reproduced(system)
    assert rows
    json.dumps(rows, allow_nan=False)
    assert len({row["quantity"] for row in rows}) == len(rows)
    for row in rows:
        assert list(row) == ["quantity", "paper", "ours", "tolerance", "pass"]
        assert isinstance(row["quantity"], str)
        assert row["quantity"]
        assert isinstance(row["ours"], float)
        assert math.isfinite(row["ours"])
        assert row["paper"] is None or isinstance(row["paper"], float)
        assert row["tolerance"] is None or row["tolerance"] >= 0
        assert isinstance(row["pass"], bool)
    assert any(row["paper"] is not None for row in rows)
    assert any(row["tolerance"] is not None for row in rows)
    assert [row["quantity"] for row in rows if not row["pass"]] == []


def test_a_comparison_passes_only_inside_its_tolerance() -> None:
    assert comparison("a", 0.5, 0.1, 0.2)["pass"] is True
    assert comparison("a", 0.5, 0.3, 0.2)["pass"] is False
    assert comparison("a", 2.0, 1.96, 0.05, distance=True)["pass"] is True
    assert comparison("a", 2.0, 2.06, 0.05, distance=True)["pass"] is False
    assert comparison("a", None, np.float64(7), None) == {
        "quantity": "a",
        "paper": None,
        "ours": 7.0,
        "tolerance": None,
        "pass": True,
    }
    for tolerance in (None, 0.1):  # what is not a number is not right, even where nothing is demanded
        assert comparison("a", 0.5, math.nan, tolerance)["pass"] is False
