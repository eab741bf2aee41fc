"""What else can be made of a run: a live page, a moving model, pictures, a report that prints."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
import trimesh
import xarray as xr
from PIL import Image

from controllers import PD
from posture.body import load_body
from posture.cli import main
from posture.deck import Sine, SineDeck
from posture.results import save
from posture.simulate import simulate
from posture.view.glb import joint_places, write_glb
from posture.view.live import LiveView
from posture.view.payload import unpack

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def run() -> xr.Dataset:
    body = load_body("ship_stance")
    stiffness = {name: 9 * value for name, value in body.toppling_stiffness().items()}
    damping = {name: 0.03 * value for name, value in stiffness.items()}
    deck = SineDeck({"roll": [Sine(0.12, 7, 0.3)], "heave": [Sine(0.5, 8, 0)]})
    return simulate(body, deck, PD(body.joint_names, stiffness=stiffness, damping=damping), duration=4)


@pytest.fixture
def stored(run: xr.Dataset, tmp_path: Path) -> Path:
    save(run, tmp_path / "run.nc")
    return tmp_path / "run.nc"


def fetched(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


# ---------------------------------------------------------------- live


def test_the_live_view_listens_on_this_computer_only_and_wants_its_token(run: xr.Dataset) -> None:
    with LiveView(title="Live") as live:
        live.add(run)
        places = {c.laddr.ip for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN}
        assert places == {"127.0.0.1"}
        own = {a.address for cards in psutil.net_if_addrs().values() for a in cards if a.family == socket.AF_INET}
        for address in own - {"127.0.0.1"}:
            with pytest.raises(OSError, match=r".+"):
                socket.create_connection((address, live.port), timeout=2).close()
        address = f"http://127.0.0.1:{live.port}"
        for path in ("/", "/run", "/?token=", f"/?token={live.token[:-1]}", "/favicon.ico", "/../page"):
            assert fetched(address + path)[0] == 403
        assert fetched(live.url, Host="evil.example")[0] == 403
        assert fetched(f"{address}/other?token={live.token}")[0] == 404
        code, content = fetched(live.url)
        assert code == 200
        assert b"Live" in content
    with pytest.raises(OSError, match=r".+"):
        socket.create_connection(("127.0.0.1", live.port), timeout=2).close()


def test_a_live_run_grows_and_old_blocks_are_dropped(run: xr.Dataset) -> None:
    with LiveView(title="Live") as live:
        assert b"waiting" in fetched(live.url)[1]
        more = f"http://127.0.0.1:{live.port}/run?token={live.token}"
        assert fetched(more)[0] == 204
        ends = []
        for part in (slice(0, 80), slice(80, 201)):
            live.add(run.isel(time=part))
            _, arrays = unpack(fetched(more)[1])
            ends.append(float(arrays["time"][-1, 0]))
        assert ends == pytest.approx([1.58, 4.0], abs=0.03)
        live.add(run.assign_coords(time=run.time + 500))
        _, arrays = unpack(fetched(more)[1])
        assert arrays["time"][0, 0] >= 500


def test_a_client_that_hangs_does_not_hold_up_the_run(run: xr.Dataset) -> None:
    with LiveView(title="Live") as live:
        silent = socket.create_connection(("127.0.0.1", live.port))
        silent.sendall(b"GET /")  # and nothing more
        start = time.monotonic()
        live.add(run)
        live.finish()
        assert fetched(live.url)[0] == 200
        silent.close()
    assert time.monotonic() - start < 20  # the silent client itself would be waited for much longer


def test_a_browser_follows_a_live_run(run: xr.Dataset, browser: Browser) -> None:
    with LiveView(title="Live") as live:
        live.add(run.isel(time=slice(0, 80)))
        page = browser.new_context().new_page()
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(live.url)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        live.add(run.isel(time=slice(80, 201)))
        page.wait_for_function("() => posture.run.end > 3.9", timeout=30_000)
        live.finish()
        page.wait_for_selector("body[data-done]", timeout=30_000)
        assert said == []
        page.context.close()


def test_the_live_command_ends_with_the_program_that_started_it(stored: Path) -> None:
    script = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-m', 'posture.cli', 'view', {str(stored)!r}, '--live', "
        "'--no-browser', '--json'], stdout=subprocess.PIPE, text=True)\n"
        "print(child.pid, flush=True)\n"
        "child.stdout.readline(); child.stdout.readline()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=90, check=True)
    child = int(done.stdout)
    for _ in range(60):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.25)
    os.kill(child, 9)
    pytest.fail("the live view outlived its parent")


# ---------------------------------------------------------------- GLB, pictures


def test_the_moving_model_is_where_pinocchio_puts_it(run: xr.Dataset, tmp_path: Path) -> None:
    path = tmp_path / "run.glb"
    write_glb(run, path)
    content = path.read_bytes()
    magic, version, total = struct.unpack_from("<4sII", content)
    assert (magic, version, total) == (b"glTF", 2, len(content))
    (size,) = struct.unpack_from("<I", content, 12)
    document, data = json.loads(content[20 : 20 + size]), content[28 + size :]

    def values(number: int) -> np.ndarray:
        accessor = document["accessors"][number]
        view = document["bufferViews"][accessor["bufferView"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor["type"]]
        return np.frombuffer(data, "<f4", accessor["count"] * width, view["byteOffset"]).reshape(-1, width)

    body = load_body("ship_stance")
    animation = document["animations"][0]
    names = [node.get("name") for node in document["nodes"]]
    for channel in animation["channels"]:
        sampler, name = animation["samplers"][channel["sampler"]], names[channel["target"]["node"]]
        if channel["target"]["path"] == "translation" and name in body.joint_names:
            times = values(sampler["input"])[:, 0]
            places, _ = joint_places(run.sel(time=times, method="nearest"), body)
            expected = places[:, body.model.getJointId(name), :3]
            np.testing.assert_allclose(values(sampler["output"]), expected, atol=1e-6)
    scene = trimesh.load(path)  # an independent reader
    assert len(scene.geometry) == len(document["meshes"])
    assert 1.5 < scene.extents[1] < 2.0  # glTF has Y up: a person is that tall


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium on the PATH to take pictures")
def test_pictures_and_films_are_made(stored: Path) -> None:
    folder = stored.parent

    def run_alone(arguments: list[str]) -> int:  # the tests' own browser would be in the way
        return subprocess.run([sys.executable, "-m", "posture.cli", *arguments], timeout=120, check=False).returncode

    assert run_alone(["view", str(stored), "--out", str(folder / "a.png"), "--time", "1", "--size", "640x400"]) == 0
    with Image.open(folder / "a.png") as still:
        assert still.size == (640, 400)
        assert np.asarray(still.convert("L"), float).std() > 5
    for kind in ("gif", "webp"):
        out = folder / f"a.{kind}"
        size = ["--size", "320x200", "--end", "1", "--rate", "3"]
        assert run_alone(["view", str(stored), "--out", str(out), *size]) == 0
        with Image.open(out) as film:
            assert film.n_frames == 4
            assert film.size == (320, 200)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "a.mp4"], "unknown kind"),
        (["--out", "a.png", "--size", "9"], "WIDTHxHEIGHT"),
        (["--out", "a.png", "--time", "99"], "from 0 to 4"),
        (["--out", "a.png", "--camera", "deckk"], "did you mean 'deck'"),
    ],
)
def test_wrong_wishes_get_a_sentence(
    stored: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["view", str(stored), *arguments]) == 2
    assert says in capsys.readouterr().err


# ---------------------------------------------------------------- reports


def test_a_report_is_one_small_file_with_the_page_inside(
    stored: Path, open_page: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = stored.parent / "figures"
    bad = "<script>window.hurt = 1</script>"
    assert main(["report", str(stored), "--title", bad, "--figures", str(figures), "--figure-kind", "png"]) == 0
    assert {path.name for path in figures.iterdir()} == {"curves.png", "stance.png", "margin.png"}
    path = stored.with_name("run_report.html")
    assert path.stat().st_size < 3e6
    page = open_page(path)
    assert page.inner_text("h1") == bad
    assert page.evaluate("window.hurt") is None
    assert page.frames[1].evaluate("window.postureReady")
    for heading in ("Figures", "Criteria", "Numbers", "Can it be believed?"):
        assert heading in page.inner_text("body")
    assert all(image.get_attribute("alt") for image in page.query_selector_all("img"))
    assert [url for url in page.asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert page.said == []
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    page.emulate_media(media="print")
    assert page.locator("#still").is_visible()  # the still stands in for the moving page
    assert not page.locator("#view iframe").is_visible()


def test_a_cohort_is_reported_from_its_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    lines = [f"p{k}<b>,{rng.uniform(1, 2):.4f},{rng.uniform(3, 5):.4f},old" for k in range(20)]
    table = tmp_path / "people.csv"
    table.write_text("recording,rms_ap,ellipse_area,group\n" + "\n".join(lines))
    assert main(["report", str(table)]) == 0
    text = (tmp_path / "people_report.html").read_text()
    assert "20 recordings" in text
    assert "p3&lt;b&gt;" in text
    assert "p3<b>" not in text
    assert text.count("<figure ") == 1


def test_a_damaged_table_gets_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("a.csv", b"x,y\n1,2\n"), ("b.nc", b"nothing"), ("c.csv", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(content)
        assert main(["report", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.startswith("posture: ")


def test_png_in_memory_is_what_it_says(run: xr.Dataset) -> None:
    from posture.report.figures import encoded, run_pictures
    from posture.view import body_of

    first, again = ([encoded(item.figure) for item in run_pictures(run, body_of(run))] for _ in range(2))
    assert first == again  # the same data give the same bytes
    for picture in run_pictures(run, body_of(run)):
        assert Image.open(io.BytesIO(encoded(picture.figure, "png"))).width > 300
