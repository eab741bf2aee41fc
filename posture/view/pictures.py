"""Stills and films of the page, taken by a Chromium without a window (Playwright drives it, Pillow joins frames)."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.errors import ResultError, check_number, find_name
from posture.results import replacing
from posture.view import write_view

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
CAMERAS = ("deck", "earth", "frontal", "sagittal", "feet")
# Software rendering, which looks the same everywhere, and no calls home of the browser itself.
OPTIONS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
MOST_FRAMES = 600
PLAIN = "#panel, #bottom, #side { display: none !important; } #panel { --beside: 0 !important; }"


@contextmanager
def opened(html: Path, *, size: tuple[int, int], plain: bool = False) -> Iterator[Any]:
    """A page of ours in a browser, ready to be asked for times and cameras; offline."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise ResultError("pictures need Chromium on the PATH; install it, or write .html and look at that")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ResultError("pictures need Playwright; install it: pip install 'posture[pictures]'") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        try:
            context = browser.new_context(offline=True, viewport={"width": size[0], "height": size[1]})
            page = context.new_page()
            page.goto(html.resolve().as_uri() + "#t=0")
            page.wait_for_function("window.postureReady", timeout=120_000)
            if plain:
                page.add_style_tag(content=PLAIN)
                page.evaluate("window.dispatchEvent(new Event('resize'))")
            yield page
        finally:
            browser.close()


def shot(page: Any, time: float, camera: str) -> bytes:
    """PNG of an open page at a time (s) from a camera preset."""
    page.evaluate(f"posture.play(false); posture.look({camera!r}); posture.seek({time:.9g}); posture.scene.render()")
    return bytes(page.screenshot())


def write_picture(
    dataset: xr.Dataset,
    path: Path,
    *,
    title: str,
    subtitle: str = "",
    time: float | None = None,
    camera: str = "deck",
    size: tuple[int, int] = (1366, 768),
    plain: bool = False,
) -> None:
    """Write one PNG of the page at ``time`` (s; the middle of the run by default)."""
    find_name(camera, CAMERAS, what="camera", where="view", error=ResultError)
    times = dataset.time.values
    when = (times[0] + times[-1]) / 2 if time is None else _inside(time, times, "time")
    with _page(dataset, title, subtitle) as html, opened(html, size=size, plain=plain) as page:
        content = shot(page, float(when), camera)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_film(
    dataset: xr.Dataset,
    path: Path,
    *,
    title: str,
    subtitle: str = "",
    start: float | None = None,
    end: float | None = None,
    rate: float = 12.0,
    speed: float = 1.0,
    camera: str = "deck",
    size: tuple[int, int] = (640, 400),
    plain: bool = True,
) -> None:
    """Write an animated .gif or .webp from ``start`` to ``end`` (s), ``rate`` frames per second of the film."""
    from PIL import Image

    find_name(camera, CAMERAS, what="camera", where="view", error=ResultError)
    check_number(rate, what="film: frames per second", unit="1/s", low=1, high=50, error=ResultError)
    check_number(speed, what="film: speed", unit="", low=0.01, high=100, error=ResultError)
    times = dataset.time.values
    first = times[0] if start is None else _inside(start, times, "start")
    last = min(times[-1], first + 10 * speed) if end is None else _inside(end, times, "end")
    count = int((last - first) / speed * rate) + 1
    if not 1 < count <= MOST_FRAMES:
        raise ResultError(
            f"film: {count} frames from {first:g} to {last:g} s; give start and end for 2 to {MOST_FRAMES}"
        )
    with _page(dataset, title, subtitle) as html, opened(html, size=size, plain=plain) as page:
        frames = [
            Image.open(io.BytesIO(shot(page, float(when), camera))).convert("RGB")
            for when in first + np.arange(count) * speed / rate
        ]
    if path.suffix == ".gif":  # one palette for all frames, or colours would flicker
        palette = frames[len(frames) // 2].quantize(256)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG) for frame in frames]
    options: dict[str, Any] = {"quality": 80} if path.suffix == ".webp" else {"optimize": True}
    with replacing(path) as temporary:
        frames[0].save(
            temporary,
            format=path.suffix[1:],
            save_all=True,
            append_images=frames[1:],
            duration=round(1000 / rate),
            loop=0,
            **options,
        )


@contextmanager
def _page(dataset: xr.Dataset, title: str, subtitle: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="posture_") as folder:
        html = Path(folder) / "page.html"
        write_view(dataset, html, title=title, subtitle=subtitle)
        yield html


def _inside(value: float, times: Any, what: str) -> float:
    low, high = float(times[0]), float(times[-1])
    return check_number(value, what=f"film or picture: {what}", unit="s", low=low, high=high, error=ResultError)
