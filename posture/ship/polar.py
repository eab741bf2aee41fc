"""Polar plots of a sweep as SVG: the ship seen from above, bow up; a point's direction is where the waves come from.

By matplotlib, which is loaded only here. Written without dates and random ids, so the same table gives the same file.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.errors import ResultError, find_name
from posture.results import replacing

LIMIT = {"interruptions_per_minute": 1.0, "sickness_percent": 20.0, "criteria_used": 1.0}  # drawn dashed
TITLES = {
    "interruptions_per_minute": "Motion-induced interruptions per minute",
    "sickness_percent": "Motion sickness incidence, %",
    "criteria_used": "Share of the tightest limit",
}
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8d5a97", "#c77d1e", "#4d4d4d")


def draw_polar(table: xr.Dataset, path: Path, *, station: str, quantity: str = "interruptions_per_minute") -> None:
    """Draw one quantity at one station: a plot for each sea, a line for each speed, all directions."""
    if path.suffix != ".svg":
        raise ResultError(f"{path}: plots are written as .svg; give a name that ends so")
    find_name(
        station, [str(name) for name in table["station"].values], what="station", where="sweep", error=ResultError
    )
    find_name(quantity, TITLES, what="plot", where="sweep", error=ResultError)
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    chosen = table.sel(station=station)
    points = chosen[quantity]
    lines = chosen["interruptions_formula"].sum("way") if quantity == "interruptions_per_minute" else points
    headings = np.mod(np.radians(table["heading"].values), 2 * math.pi)
    order = np.argsort(headings)
    if len(headings) > 2 and np.diff(headings[order]).max() < math.pi / 2:
        order = np.append(order, order[0])  # all around: close the line
    angle = np.unwrap(headings[order]) + math.pi  # waves come from where they do not go
    seas, limit = [str(name) for name in table["sea"].values], LIMIT[quantity]
    with mpl.rc_context({"svg.hashsalt": "posture", "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(3.4 * len(seas), 4.1), layout="constrained")
        for number, sea in enumerate(seas):
            axes: Any = figure.add_subplot(1, len(seas), number + 1, projection="polar")
            axes.set_theta_zero_location("N")
            for row, speed in enumerate(table["speed"].values):
                color = COLOURS[row % len(COLOURS)]
                axes.plot(angle, lines.values[number, row][order], lw=1.6, color=color, label=f"{speed:g} m/s")
                axes.plot(angle, points.values[number, row][order], "o", ms=3.5, color=color)
            top = float(np.nanmax(np.append(np.stack((lines.values[number], points.values[number])).ravel(), 0)))
            if top > 0.5 * limit:
                top = max(top, limit)
                axes.plot(np.linspace(0, 2 * math.pi, 181), np.full(181, limit), "--", color="0.35", lw=1)
            axes.set_ylim(0, 1.1 * max(top, 0.01 * limit))
            axes.set_rlabel_position(-22)
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.tick_params(axis="y", labelsize=7, labelcolor="0.3")
            axes.tick_params(axis="x", labelsize=8, pad=1)
            axes.set_xticks(np.arange(0, 2 * math.pi, math.pi / 4))
            axes.set_xticklabels(["head", "", "port", "", "following", "", "starboard", ""])
            axes.get_xticklabels()[2].set_horizontalalignment("right")
            axes.get_xticklabels()[6].set_horizontalalignment("left")
            axes.set_title(sea, fontsize=10)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
        meaning = "lines: level-crossing formula, points: counted; " if lines is not points else ""
        figure.suptitle(
            f"{TITLES[quantity]}, {station}, {table.attrs['ship']}\n"
            f"direction: where the waves come from; {meaning}dashed: {limit:g}",
            fontsize=10,
        )
        with replacing(path) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})


def draw_all(table: xr.Dataset, folder: Path) -> list[Path]:
    """Draw every quantity at every station into a folder; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for station in table["station"].values:
        for quantity in TITLES:
            safe = "".join(letter if letter.isalnum() else "_" for letter in str(station))
            paths.append(folder / f"{safe}_{quantity}.svg")
            draw_polar(table, paths[-1], station=str(station), quantity=quantity)
    return paths
