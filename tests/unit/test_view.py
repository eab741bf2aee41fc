"""The 3D page: self-contained, true to Pinocchio, tolerant of gaps."""

import base64
import gzip
import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import umsgpack
import xarray as xr

from controllers import PD
from posture.body import Body, load_body
from posture.deck import Sine, SineDeck
from posture.errors import ResultError
from posture.simulate import simulate
from posture.view import view_html, write_view


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
    text = re.search(r'id="payload">([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(text)))


def array(data: dict, name: str, width: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["arrays"][name]), "<f4").reshape(-1, width)


def commands(data: dict) -> list[dict]:
    return [umsgpack.unpackb(base64.b64decode(text)) for text in data["commands"]]


def test_the_page_loads_nothing_from_elsewhere(run: xr.Dataset) -> None:
    page = view_html(run, title="A run")
    package = Path(importlib.util.find_spec("meshcat").origin).parent
    bundle = (package / "viewer/dist/main.min.js").read_text(encoding="utf-8")
    start = page.index(bundle[:200])
    ours = page[:start] + page[start + len(bundle) :]
    assert not re.search(r"https?://|wss?://|\b(src|href)\s*=|@import|url\(|\.connect\(", ours)
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
    assert len(array(payload(page), "time", 1)) == 1501


def test_the_number_of_frames_is_bounded(run: xr.Dataset) -> None:
    assert len(array(payload(view_html(run, title="few", max_frames=20)), "time", 1)) <= 20


def test_frames_are_where_pinocchio_puts_them(run: xr.Dataset, body: Body) -> None:
    data = payload(view_html(run, title="A run"))
    time, poses = array(data, "time", 1)[:, 0], array(data, "poses", 7 * len(data["joints"]))
    frame = len(time) // 2
    position = run.joint_position.sel(time=time[frame], method="nearest").values
    model_data = body.model.createData()
    pin.forwardKinematics(body.model, model_data, body.with_base(position))
    for column, joint in enumerate(data["joints"]):
        expected = pin.SE3ToXYZQUAT(model_data.oMi[joint])
        np.testing.assert_allclose(poses[frame, 7 * column : 7 * column + 7], expected, atol=1e-6)


def test_every_shape_of_the_body_is_drawn(run: xr.Dataset, body: Body) -> None:
    kinds = [command["type"] for command in commands(payload(view_html(run, title="A run")))]
    assert kinds.count("set_object") == body.urdf.count("<visual>")


def test_the_same_run_gives_the_same_page(run: xr.Dataset) -> None:
    assert view_html(run, title="A run") == view_html(run, title="A run")


MESH = '<visual><geometry><mesh filename="missing.stl"/></geometry></visual>'


@pytest.mark.parametrize("replacement", ["", MESH])
def test_a_body_without_shapes_becomes_a_stick_figure(run: xr.Dataset, body: Body, replacement: str) -> None:
    urdf = re.sub(r"<visual>.*?</visual>", replacement, body.urdf, flags=re.DOTALL)
    plain = run.assign_attrs(body_urdf=urdf)
    data = payload(view_html(plain, title="Sticks"))
    assert len(data["joints"]) == len(body.joint_names) + 1
    assert sum(command["type"] == "set_object" for command in commands(data)) > len(body.joint_names)


def test_gaps_in_the_run_are_tolerated(run: xr.Dataset) -> None:
    lifted = run.copy(deep=True)
    lifted["position_cop_on_deck"][:] = np.nan
    lifted["stance_margin"][:] = np.nan
    data = payload(view_html(lifted, title="In the air"))
    assert np.isnan(array(data, "cop", 2)).all()

    bare = run[["joint_position"]].assign_attrs(run.attrs)
    page = view_html(bare, title="Joints only")
    assert payload(page)["outline"] == []
    assert [plot["title"] for plot in payload(page)["plots"]] == ["Joints"]  # only what is known
    assert page.count("<b>-</b>") == 3


def test_a_run_without_joint_angles_is_refused(run: xr.Dataset) -> None:
    with pytest.raises(ResultError, match="joint_position"):
        view_html(run.drop_vars("joint_position"), title="Nothing")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium on the PATH to open the page")
def test_a_browser_draws_the_page_without_complaint(run: xr.Dataset, tmp_path: Path) -> None:
    write_view(run, tmp_path / "run.html", title="A run")
    options = [
        "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--use-gl=angle", "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader", "--virtual-time-budget=8000", "--enable-logging=stderr", "--v=0",
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
    ]  # fmt: skip
    address = (tmp_path / "run.html").as_uri() + "#t=1&view=feet"
    command = ["chromium", *options, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    assert '<body data-ready="1">' in done.stdout
    assert "1.00 / 2.0 s" in done.stdout
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
