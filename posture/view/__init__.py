"""The 3D view: one HTML file that replays a run, with no server and no network.

``story`` finds what a run has to tell, ``shapes`` what its body looks like, ``payload`` packs both; ``page.html`` and
the scripts beside it are the page; meshcat's JavaScript (three.js inside) is copied into it. All about the body is
relative to the deck, so that the page can ride with the deck or watch it from the earth. ``live`` serves the same page
while a run goes on, ``pictures`` takes pictures of it with Chromium, ``glb`` writes the moving body for other programs.
"""

from __future__ import annotations

import base64
import html
import json
import re
import warnings
from pathlib import Path

import xarray as xr

from posture.body import Body, body_from_text
from posture.errors import ResultError
from posture.results import write_text
from posture.view.payload import payload
from posture.view.story import tiles

with warnings.catch_warnings():  # meshcat's server, which is not used here, leans on a deprecated part of zmq
    warnings.simplefilter("ignore", DeprecationWarning)
    import meshcat

SCRIPTS = ("data.js", "plots.js", "scenery.js", "marks.js", "scene.js", "player.js")
MAX_FRAMES = 12000


def write_view(dataset: xr.Dataset, path: Path, *, title: str, subtitle: str = "", data_file: str = "") -> None:
    """Write the page of a run to ``path``, complete or not at all."""
    write_text(path, view_html(dataset, title=title, subtitle=subtitle, data_file=data_file))


def view_html(
    dataset: xr.Dataset, *, title: str, subtitle: str = "", data_file: str = "", max_frames: int = MAX_FRAMES
) -> str:
    """Return a page that shows a run (a result by the schema of results.py) in 3D, with curves beside it.

    ``data_file``: name of the full result beside the page, which the page then points to.
    """
    body = body_of(dataset)
    packed = base64.b64encode(payload(dataset, body, max_frames=max_frames)).decode()
    return page_html(dataset, body, packed, title=title, subtitle=subtitle, data_file=data_file)


def body_of(dataset: xr.Dataset) -> Body:
    """The body a result was made with; refuses results that hold no motion."""
    if "joint_position" not in dataset or not dataset.sizes["time"]:
        raise ResultError("view: the result holds no joint_position; give one made by `posture simulate`")
    attributes = dataset.attrs
    return body_from_text(attributes["body"], attributes["body_urdf"], json.loads(attributes["body_sidecar"]))


def page_html(
    dataset: xr.Dataset, body: Body, packed: str, *, title: str, subtitle: str, data_file: str = "", live: str = ""
) -> str:
    """Put the page together; ``packed`` is the run in base64, ``live`` where more of it comes from."""
    stopped = f"Stopped early: {dataset.attrs['stopped']}" if dataset.attrs.get("stopped") else ""
    folder = Path(__file__).parent
    values = {
        "title": html.escape(title),
        "subtitle": html.escape(" ".join(filter(None, (subtitle, stopped)))),
        "tiles": "".join(
            f"<div class='tile'><b>{html.escape(number)}</b>{html.escape(name)}</div>"
            for name, number in tiles(dataset, body)
        ),
        "data": html.escape(data_file),
        "connect": "'self'" if live else "data: blob:",
        "live": html.escape(live),
        "meshcat": _meshcat_script(),
        "scripts": "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "payload": packed,
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    # one pass, so that a title that looks like a placeholder stays a title
    return re.sub(r"@@(\w+)@@", lambda match: values[match[1]], template)


def _meshcat_script() -> str:
    bundle = Path(meshcat.__file__).parent / "viewer" / "dist" / "main.min.js"
    # inside a script element these two would end the script or hide its end
    return bundle.read_text(encoding="utf-8").replace("</script", r"<\/script").replace("<!--", r"<\!--")
