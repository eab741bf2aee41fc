"""The page under strain: strange names, gaps, huge numbers, long runs, small screens, true waves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from controllers import PD
from posture.body import load_body
from posture.deck import Sine, SineDeck
from posture.ship.hull import Hull
from posture.ship.motion import SeaDeck
from posture.ship.sea import sea_state
from posture.simulate import simulate
from posture.view import body_of, write_view
from posture.view.payload import SEA_NODES, SEA_SPACING, deck_shift, payload, unpack


def stand(deck: Any, duration: float = 4.0) -> xr.Dataset:
    body = load_body("ship_stance")
    stiffness = {name: 9 * value for name, value in body.toppling_stiffness().items()}
    damping = {name: 0.03 * value for name, value in stiffness.items()}
    return simulate(body, deck, PD(body.joint_names, stiffness=stiffness, damping=damping), duration=duration)


@pytest.fixture(scope="module")
def run() -> xr.Dataset:
    return stand(SineDeck({"roll": [Sine(0.12, 7, 0.3)], "pitch": [Sine(0.03, 6, 1)], "heave": [Sine(0.5, 8, 0)]}))


def stretched(run: xr.Dataset, rows: int, step: float) -> xr.Dataset:
    """The run again and again, with noise so that repetition does not help the compression."""
    again = np.resize(np.arange(run.sizes["time"]), rows)
    long = run.isel(time=again).assign_coords(time=np.arange(rows) * step)
    noise = 0.01 * np.random.default_rng(1).standard_normal(long.joint_position.shape)
    return long.assign(joint_position=long.joint_position + noise)


def test_a_minute_is_small(run: xr.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "minute.html"
    write_view(stretched(run, 3001, 0.02), path, title="A minute")
    assert path.stat().st_size < 3e6


def test_forty_minutes_open_thinned_with_the_data_beside(
    run: xr.Dataset, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    path = tmp_path / "long.html"
    write_view(stretched(run, 120_001, 0.02), path, title="Forty minutes", data_file="long run.nc")
    page = open_page(path, hash_="t=1800")
    assert page.evaluate("posture.run.end") == pytest.approx(2400, abs=1)
    assert page.evaluate("posture.run.time.length") <= 12_000
    assert page.get_attribute("#data a", "href") == "long run.nc"
    assert "every 11th row" in page.inner_text("#thin")
    assert page.said == []


def test_markup_in_names_stays_text_and_runs_nothing(
    run: xr.Dataset, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    bad = "<img src=x onerror=alert(1)>\"'</script><script>window.hurt = 1</script>@@payload@@"
    path = tmp_path / "bad.html"
    hostile = run.assign_attrs(stopped=bad)
    write_view(hostile, path, title=bad, subtitle=bad, data_file=bad)
    page = open_page(path)
    assert page.inner_text("h1") == bad
    assert page.evaluate("window.hurt") is None
    assert page.evaluate("document.images.length") == 0
    assert page.said == []


def test_gaps_and_huge_values_are_left_out(run: xr.Dataset, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    holes = run.copy(deep=True)
    holes["joint_position"][60:100] = np.nan
    holes["position_cop_on_deck"][60:100] = np.nan
    holes["stance_margin"][60:100] = np.nan
    holes["deck_quaternion"][60:100] = np.nan
    holes["force_deck_on_person"][120:] = 1e300
    path = tmp_path / "holes.html"
    write_view(holes, path, title="Holes")
    page = open_page(path, hash_=f"t={float(run.time[80])}")
    assert "no data" in page.inner_text("#state")
    assert page.evaluate(f"posture.scene.show({float(run.time[80])})") is False
    assert page.evaluate(f"posture.scene.show({float(run.time[130])})") is True
    page.evaluate("posture.scene.render()")
    assert page.said == []


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)], ids=["laptop", "phone"])
def test_everything_fits_the_screen(
    run: xr.Dataset, tmp_path: Path, open_page: Callable[..., Any], size: tuple[int, int]
) -> None:
    path = tmp_path / "run.html"
    write_view(run, path, title="A run with a rather long title that has to be broken somewhere")
    page = open_page(path, size=size)
    for part in ("#stage", "#bar", "#play", "#slider", "#head"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= size[0] + 1
        assert box["y"] + box["height"] <= size[1] + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    for canvas in page.query_selector_all(".plot canvas"):
        assert canvas.get_attribute("aria-label")


def test_moments_off_balance_are_marked_on_the_slider(
    run: xr.Dataset, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    tipped = run.copy(deep=True)
    tipped["stance_margin"][:] = 0.05
    tipped["stance_margin"][50:60] = -0.01  # 1.00 s
    tipped["stance_margin"][150:152] = -0.01  # 3.00 s
    path = tmp_path / "run.html"
    write_view(tipped, path, title="Stumbles")
    page = open_page(path)
    assert [round(event["time"], 3) for event in page.evaluate("posture.run.events")] == [1.0, 3.0]
    assert page.locator("#events button").count() == 2
    page.keyboard.press("]")
    assert page.evaluate("posture.time()") == pytest.approx(1.0)
    page.keyboard.press("]")
    assert page.evaluate("posture.time()") == pytest.approx(3.0)


def test_the_drawn_sea_is_the_sea_that_moves_the_ship(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    ship = Hull(length=120.0, beam=15.0, draught=4.8, metacentric_height=1.2, roll_radius=5.6, roll_damping=0.1)
    deck = SeaDeck(ship, sea_state("SS5"), heading=1.7, speed=5.0, station=(4.0, -2.0, 6.0), seed=3, waves=60)
    run = stand(deck, duration=3.0)
    # The ship's own elevation at its reference point, which SeaDeck works out in another way.
    waves = {name: run[f"wave_{name}"].values for name in ("amplitude", "number", "frequency", "phase")}

    def height(x: float, y: float, t: np.ndarray) -> np.ndarray:
        phase = np.outer(t, waves["frequency"]) - waves["number"] @ np.array([x, y]) + waves["phase"]
        return np.cos(phase) @ waves["amplitude"]

    times = np.array([0.0, 1.3, 2.9])
    np.testing.assert_allclose(height(0, 0, times), deck.elevation(times), atol=1e-9)
    # Deep water: a wave of frequency ω has k = ω²/g before the ship's speed shifts its frequency.
    speed_along = waves["number"] @ np.array([5.0, 0.0])
    omega = waves["frequency"] + speed_along
    np.testing.assert_allclose(np.linalg.norm(waves["number"], axis=1), omega**2 / 9.80665, rtol=1e-9)

    head, arrays = unpack(payload(run, body_of(run), max_frames=1000))
    sheet = ((arrays["sea"][0] - 128.0) / 127 * head["sea"]["largest"]).reshape(SEA_NODES, SEA_NODES)
    row, column = 20, 12  # a cubic spline takes 1/6, 4/6, 1/6 of neighbouring coefficients at a node
    weights = np.array([1, 4, 1]) / 6
    drawn = weights @ sheet[row - 1 : row + 2, column - 1 : column + 2] @ weights
    shift = deck_shift(run)
    place = (np.array([column, row]) - (SEA_NODES - 1) / 2) * SEA_SPACING + shift[:2]
    rounding = head["sea"]["largest"] / 127  # heights are stored in steps of this
    assert drawn == pytest.approx(float(height(*place, run.time.values[:1])[0]), abs=rounding)
    assert head["sea"]["level"] == pytest.approx(-shift[2])

    path = tmp_path / "sea.html"
    write_view(run, path, title="Sea")
    page = open_page(path, hash_="t=1.5&view=earth")
    assert page.said == []  # a shader that does not compile complains
