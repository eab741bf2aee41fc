"""The 3D page: self-contained, true to Pinocchio, tolerant of gaps."""

from __future__ import annotations

import base64
import importlib.util
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import umsgpack
import xarray as xr

from controllers import PD
from posture.body import Body, load_body
from posture.deck import Sine, SineDeck
from posture.errors import ResultError
from posture.figure import PROFILES
from posture.report.page import _criteria
from posture.ship.motion import TurnedDeck
from posture.simulate import simulate
from posture.systems.ship_stance import balance_controller
from posture.view import view_html, write_view
from posture.view.payload import unpack
from posture.view.story import tilt

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("ship_stance")


@pytest.fixture(scope="module")
def run(body: Body) -> xr.Dataset:
    stiffness = {name: 9 * value for name, value in body.toppling_stiffness().items()}
    damping = {name: 0.03 * value for name, value in stiffness.items()}
    deck = SineDeck({"roll": [Sine(0.08, 9, 0.3)], "pitch": [Sine(0.03, 6, 1)], "heave": [Sine(0.5, 8, 0)]})
    return simulate(body, deck, PD(body.joint_names, stiffness=stiffness, damping=damping), duration=2)


def payload(page: str) -> dict:
    """The head of what the page holds, with its arrays under ``arrays``."""
    head, arrays = unpack(base64.b64decode(re.search(r'id="payload">([^<]*)<', page)[1]))
    return head | {"arrays": arrays}


def array(data: dict, name: str) -> np.ndarray:
    return data["arrays"][name]


def commands(data: dict) -> list[dict]:
    return [umsgpack.unpackb(base64.b64decode(text)) for text in data["commands"]]


def test_a_ship_is_drawn_and_judged_in_its_own_axes_wherever_the_person_looks(body: Body) -> None:
    law = balance_controller(body, 2.0)
    deck = SineDeck({"roll": [Sine(0.08, 9, 0.3)], "pitch": [Sine(0.03, 6, 1)], "sway": [Sine(0.5, 6, 1)]})
    ahead, sideways = (simulate(body, felt, law, duration=2) for felt in (deck, TurnedDeck(deck, math.radians(70))))
    assert np.allclose(tilt(sideways), tilt(ahead), rtol=0, atol=1e-12)
    assert _criteria(sideways, {}) == _criteria(ahead, {})
    assert payload(view_html(sideways, title=""))["facing"] == pytest.approx(math.radians(70))
    assert payload(view_html(ahead, title=""))["facing"] == 0


def test_the_page_loads_nothing_from_elsewhere(run: xr.Dataset) -> None:
    page = view_html(run, title="A run")
    package = Path(importlib.util.find_spec("meshcat").origin).parent
    bundle = (package / "viewer/dist/main.min.js").read_text(encoding="utf-8")
    start = page.index(bundle[:200])
    ours = page[:start] + page[start + len(bundle) :]
    assert not re.search(r"https?://|wss?://|\bsrc\s*=|@import|url\(|\.connect\(", ours)
    assert re.findall(r"href\s*=\s*\"[^\"]*\"", ours) == ['href=""']  # the data beside the page, here none
    assert "default-src 'none'" in ours
    assert "unsafe-eval" not in ours
    assert page.count("</script") == 3  # the payload, meshcat, the player: none ends early


def test_text_from_outside_is_escaped(run: xr.Dataset) -> None:
    page = view_html(run, title="<script>alert(1)</script>", subtitle="a & b @@payload@@")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a &amp; b @@payload@@" in page


def test_a_minute_stays_below_three_megabytes(run: xr.Dataset) -> None:
    rows = 3001
    again = np.resize(np.arange(run.sizes["time"]), rows)
    long = run.isel(time=again).assign_coords(time=np.arange(rows) * 0.02)
    rng = np.random.default_rng(1)  # noise, so that repetition does not help the compression
    long["joint_position"] = long.joint_position + 0.01 * rng.standard_normal(long.joint_position.shape)
    page = view_html(long, title="A minute")
    assert len(page.encode()) < 3e6
    assert len(array(payload(page), "time")) == 1501


def test_the_number_of_frames_is_bounded(run: xr.Dataset) -> None:
    assert len(array(payload(view_html(run, title="few", max_frames=20)), "time")) <= 20


def test_what_is_packed_comes_back(run: xr.Dataset, body: Body) -> None:
    data = payload(view_html(run, title="A run"))
    time = array(data, "time")[:, 0]
    rows = run.sel(time=time, method="nearest")
    np.testing.assert_allclose(array(data, "joints"), rows.joint_position.values, atol=1e-7)
    np.testing.assert_allclose(array(data, "com"), rows.position_com_in_deck.values, atol=1e-6)
    assert [data["names"][bone["joint"]] for bone in data["skeleton"]] == body.joint_names


def test_every_shape_of_a_body_is_drawn_when_nothing_says_that_it_is_a_person(run: xr.Dataset, body: Body) -> None:
    plain = run.assign_attrs(body_sidecar="{}")
    kinds = [command["type"] for command in commands(payload(view_html(plain, title="A run")))]
    assert kinds.count("set_object") == body.urdf.count("<visual>")


def test_a_body_with_segments_is_drawn_as_a_person(run: xr.Dataset, body: Body) -> None:
    drawn = [c for c in commands(payload(view_html(run, title="A run"))) if c["type"] == "set_object"]
    heavy = [entry["segment"] for entry in body.sidecar["segments"].values() if entry.get("carries_mass")]
    assert len(drawn) == sum(1 + bool(part.beside) for segment in heavy for part in PROFILES[segment])


def test_a_link_without_visuals_is_drawn_by_its_collision_shapes(run: xr.Dataset, body: Body) -> None:
    urdf = body.urdf.replace("<visual>", "<collision>").replace("</visual>", "</collision>")
    plain = run.assign_attrs(body_urdf=urdf, body_sidecar="{}")
    kinds = [command["type"] for command in commands(payload(view_html(plain, title="A run")))]
    assert kinds.count("set_object") == body.urdf.count("<visual>")


def test_the_same_run_gives_the_same_page(run: xr.Dataset) -> None:
    assert view_html(run, title="A run") == view_html(run, title="A run")


MESH = '<visual><geometry><mesh filename="missing.stl"/></geometry></visual>'


@pytest.mark.parametrize("replacement", ["", MESH])
def test_a_body_without_shapes_becomes_a_stick_figure(run: xr.Dataset, body: Body, replacement: str) -> None:
    urdf = re.sub(r"<visual>.*?</visual>", replacement, body.urdf, flags=re.DOTALL)
    plain = run.assign_attrs(body_urdf=urdf, body_sidecar="{}")
    data = payload(view_html(plain, title="Sticks"))
    balls = {joint for joint in range(2, body.model.njoints) if np.linalg.norm(body.model.inertias[joint].lever) > 1e-6}
    assert balls <= set(data["drawn"])  # of the three hinges at one place, the one that carries something
    assert sum(command["type"] == "set_object" for command in commands(data)) == 2 * len(data["drawn"])  # ball and bar


def test_gaps_in_the_run_are_tolerated(run: xr.Dataset) -> None:
    lifted = run.copy(deep=True)
    lifted["position_cop_on_deck"][:] = np.nan
    lifted["stance_margin"][:] = np.nan
    data = payload(view_html(lifted, title="In the air"))
    assert np.isnan(array(data, "cop")).all()

    bare = run[["joint_position"]].assign_attrs(run.attrs)
    page = view_html(bare, title="Joints only")
    assert payload(page)["outline"] == []
    assert [plot["title"] for plot in payload(page)["plots"]] == ["Joint angle"]  # only what is known
    assert "class='tile'" not in page


def test_a_run_without_joint_angles_is_refused(run: xr.Dataset) -> None:
    with pytest.raises(ResultError, match="joint_position"):
        view_html(run.drop_vars("joint_position"), title="Nothing")


def test_a_browser_draws_the_page_without_complaint(run: xr.Dataset, tmp_path: Path, browser: Browser) -> None:
    write_view(run, tmp_path / "run.html", title="A run")
    context = browser.new_context(offline=True)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "run.html").as_uri() + "#t=1&view=feet")
    page.wait_for_function("window.postureReady", timeout=120_000)
    assert page.inner_text("#clock") == "1.00 / 2.00 s"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#clock") == "1.10 / 2.00 s"
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()
