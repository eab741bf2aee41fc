"""The page of each of the five systems in a real browser: offline, silent, drawn, and where the result says."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import xarray as xr
from PIL import Image

from posture.body import body_from_text, model_names
from posture.systems import system_names
from posture.view import write_view

_spec = importlib.util.spec_from_file_location("example_runs", Path(__file__).parents[1] / "example_runs.py")
examples = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(examples)

# What each page must tell, besides its body: layers of the scene, and a plot.
STORY = {
    "ship_stance": ({"stance", "com", "cop", "force"}, "Deck"),
    "cip": ({"stance", "com", "cop", "force", "chart"}, "Fore-aft"),
    "double_pendulum": ({"com", "force", "ligament", "cable"}, "Lyapunov function"),
    "gait": ({"com", "cop", "force", "ghost"}, "Joint torque"),
    "jump": ({"com", "cop", "force", "muscles", "load"}, "Muscle activation"),
}


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in STORY])
def system(request: pytest.FixtureRequest) -> str:
    if request.param not in system_names() or request.param not in model_names():
        pytest.skip(f"{request.param} is not part of this package yet")
    return request.param


@pytest.fixture(scope="module")
def run(system: str) -> xr.Dataset:
    return examples.EXAMPLES[system]()


@pytest.fixture(scope="module")
def html(system: str, run: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(system) / "run.html"
    write_view(run, path, title=system)
    return path


def truth(run: xr.Dataset, time: float) -> dict[str, np.ndarray]:
    """Places of all joints relative to the deck at a row of the result, by Pinocchio."""
    body = body_from_text(run.attrs["body"], run.attrs["body_urdf"], json.loads(run.attrs["body_sidecar"]))
    row = run.sel(time=time, method="nearest")
    assert abs(float(row.time) - time) < 1e-6
    q = pin.neutral(body.model)
    if "root_position" in run:
        q[:7] = np.concatenate((row.root_position.values, row.root_quaternion.values))
    for name, value in zip(run.joint.values, row.joint_position.values, strict=True):
        q[7 + body.joint_index(str(name))] = value
    data = body.model.createData()
    pin.forwardKinematics(body.model, data, q)
    return {name: data.oMi[body.model.getJointId(name)].translation for name in body.joint_names}


def picture(page: Any) -> np.ndarray:
    page.evaluate("posture.scene.render()")
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), float)


def test_the_page_is_drawn_offline_and_every_body_is_where_the_result_says(
    system: str, run: xr.Dataset, html: Path, open_page: Callable[..., Any]
) -> None:
    page = open_page(html)
    layers, plot = STORY[system]
    assert layers | {"body"} == set(page.evaluate("Object.keys(posture.scene.layers)"))
    assert plot in page.evaluate("posture.run.plots.map(plot => plot.title)")
    assert picture(page)[:, 420:1000].std() > 5  # a blank canvas has one colour

    shown = page.evaluate("Array.from(posture.run.time)")
    for time in (shown[0], shown[len(shown) // 3], shown[-1]):
        page.evaluate(f"posture.seek({time})")
        for name, place in truth(run, round(time, 6)).items():
            np.testing.assert_allclose(page.evaluate(f"posture.scene.place({name!r})"), place, atol=1e-4)

    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_scrubbing_cameras_and_keys_work(html: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(html)
    end = page.evaluate("posture.run.end")
    before = picture(page)
    page.evaluate(
        f"const s = document.getElementById('slider'); s.value = {end / 2}; s.dispatchEvent(new Event('input'))"
    )
    assert page.evaluate("posture.time()") == pytest.approx(end / 2, abs=1e-3)
    assert np.abs(picture(page) - before)[:600, 420:1000].mean() > 0.02

    cameras = set()
    for number in range(1, 6):
        page.keyboard.press(str(number))
        assert page.evaluate("document.querySelector('#views [aria-pressed=true]').value") == [
            "deck", "earth", "frontal", "sagittal", "feet"][number - 1]  # fmt: skip
        cameras.add(tuple(np.round(page.evaluate("posture.scene.camera()"), 3)))
    assert len(cameras) == 5

    page.keyboard.press("Home")
    assert page.evaluate("posture.time()") == page.evaluate("posture.run.start")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("posture.time()") == pytest.approx(page.evaluate("posture.run.start") + 0.1, abs=1e-6)
    page.keyboard.press("End")
    assert page.evaluate("posture.time()") == end
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press("Space")
    assert page.inner_text("#play") == "Play"
    assert page.said == []
