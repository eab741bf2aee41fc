"""Commands that show results: view, report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, show
from posture.errors import ResultError

KINDS = (".html", ".png", ".gif", ".webp", ".glb")


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    view = command("view", _view, "See a run in 3D: page, picture, film or model.", "view demo.nc --out demo.gif")
    view.add_argument("result", type=Path, help="result (.nc)")
    view.add_argument("--out", type=Path, help=f"{', '.join(KINDS)}; the result's name with .html by default")
    view.add_argument("--title", help="the result's name by default")
    view.add_argument("--live", action="store_true", help="show it in the browser from this computer, until Ctrl-C")
    view.add_argument("--no-browser", action="store_true", help="with --live: only print the address")
    view.add_argument("--camera", default="deck", help="deck, earth, frontal, sagittal or feet (pictures and films)")
    view.add_argument("--time", type=float, help="s, of a picture")
    view.add_argument("--start", type=float, help="s, where a film starts")
    view.add_argument("--end", type=float, help="s, where it ends")
    view.add_argument("--speed", type=float, default=1.0, help="of a film, 1 is real time")
    view.add_argument("--rate", type=float, default=12.0, help="frames per second of a film")
    view.add_argument("--size", help="WIDTHxHEIGHT in pixels of pictures and films")
    view.add_argument("--plain", action="store_true", help="pictures without curves and controls")

    report = command(
        "report", _report, "Write a report of a run, a sweep or a cohort: one page that prints.", "report demo.nc"
    )
    report.add_argument("result", type=Path, help="result of simulate or ship sweep (.nc), or a cohort's table (.csv)")
    report.add_argument("--out", type=Path, help="the result's name with _report.html by default")
    report.add_argument("--title", help="the result's name by default")
    report.add_argument("--figures", type=Path, help="also write the figures to this folder")
    report.add_argument("--figure-kind", choices=("svg", "png"), default="svg", help="of those files")
    report.add_argument("--no-3d", action="store_true", help="leave the 3D page out")


def _view(chosen: argparse.Namespace) -> int:
    from posture.results import load

    out = chosen.out or chosen.result.with_suffix(".html")
    if out.suffix not in KINDS:
        raise ResultError(f"{out}: unknown kind {out.suffix!r}; end the name in {', '.join(KINDS)}")
    dataset = load(chosen.result)
    title = chosen.title or chosen.result.stem
    about = f"{dataset.attrs['body']}, {float(dataset.attrs['body_mass_kg']):.3g} kg"
    if chosen.live:
        return _live(dataset, title, about, chosen)
    size: dict[str, Any] = {"size": _size(chosen.size)} if chosen.size else {}
    shared: dict[str, Any] = {"title": title, "subtitle": about}
    if out.suffix == ".html":
        from posture.view import write_view

        write_view(dataset, out, data_file=_beside(chosen.result, out), **shared)
    elif out.suffix == ".glb":
        from posture.view.glb import write_glb

        write_glb(dataset, out)
    elif out.suffix == ".png":
        from posture.view.pictures import write_picture

        write_picture(dataset, out, time=chosen.time, camera=chosen.camera, plain=chosen.plain, **size, **shared)
    else:
        from posture.view.pictures import write_film

        write_film(
            dataset,
            out,
            start=chosen.start,
            end=chosen.end,
            rate=chosen.rate,
            speed=chosen.speed,
            camera=chosen.camera,
            **size,
            **shared,
        )
    show({"result": str(chosen.result), "written": str(out)}, chosen, [f"wrote {out}"])
    return 0


def _live(dataset: Any, title: str, about: str, chosen: argparse.Namespace) -> int:
    from posture.view.live import LiveView

    with LiveView(title=title, subtitle=about) as live:
        live.add(dataset)
        live.finish()
        show({"url": live.url}, chosen, [f"{live.url}  (this computer only; Ctrl-C ends it)"])
        if not chosen.no_browser:
            import webbrowser

            webbrowser.open(live.url)
        live.wait()
    return 0


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 100 <= int(width) <= 4096 and 100 <= int(height) <= 4096):
        raise ResultError(f"--size is {text!r}; give WIDTHxHEIGHT in pixels, from 100x100 to 4096x4096")
    return int(width), int(height)


def _beside(result: Path, page: Path) -> str:
    """Name under which a page finds its data: only where both lie in one folder, and so move together."""
    return result.name if result.resolve().parent == page.resolve().parent else ""


def _report(chosen: argparse.Namespace) -> int:
    from posture.report.page import write_figures, write_report
    from posture.report.sources import read_source

    out = chosen.out or chosen.result.with_name(chosen.result.stem + "_report.html")
    if out.suffix != ".html":
        raise ResultError(f"{out}: a report is written as .html; give a name that ends so")
    source = read_source(chosen.result)
    title = chosen.title or source.attrs.get("title") or chosen.result.stem
    write_report(source, out, title=title, data_file=_beside(chosen.result, out), with_view=not chosen.no_3d)
    written = write_figures(source, chosen.figures, kind=chosen.figure_kind) if chosen.figures else []
    files = [str(out), *map(str, written)]
    show({"result": str(chosen.result), "written": files}, chosen, [f"wrote {name}" for name in files])
    return 0
