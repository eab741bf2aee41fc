"""Figures of a report by matplotlib, which is loaded only here: the same bytes for the same data.

Each is a name, a sentence that says what it shows, and the figure; ``encoded`` makes SVG or PNG of it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from posture.body import Body
from posture.view import story

Array = NDArray[np.floating]

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.fontsize": 8,
    "svg.hashsalt": "posture",
    "svg.fonttype": "path",
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}
POINTS = 1200  # of a curve, as many as a printed page can show
INSIDE, OUTSIDE = story.BLUE, story.RED
LIMIT = {"interruptions_per_minute": 1.0, "sickness_percent": 20.0, "criteria_used": 1.0}


@dataclass(frozen=True)
class Picture:
    """A figure with its name (also of its file) and its meaning in one sentence."""

    name: str
    meaning: str
    figure: Any


def encoded(figure: Any, kind: str = "svg") -> bytes:
    """A figure as SVG, or as PNG with 200 dots per inch."""
    import matplotlib as mpl

    stream = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format=kind, metadata=metadata, dpi=200)
    return stream.getvalue()


def _new(rows: int = 1, columns: int = 1, *, size: tuple[float, float], **settings: Any) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def _thin(time: Array, values: Array) -> tuple[Array, Array]:
    """Fewer points with the same look: of every stretch its smallest and largest value."""
    if len(time) <= 2 * POINTS:
        return time, values
    size = math.ceil(len(time) / POINTS)
    count = len(time) // size
    blocks = np.where(np.isfinite(values), values, np.nan)[: count * size].reshape(count, size)
    filled = np.where(np.isnan(blocks), 0, blocks)
    chosen = np.sort(np.stack((filled.argmin(axis=1), filled.argmax(axis=1)), axis=1), axis=1)
    rows = (np.arange(count)[:, None] * size + chosen).ravel()
    return time[rows], values[rows]


# ---------------------------------------------------------------- a run


def run_pictures(dataset: xr.Dataset, body: Body) -> Iterator[Picture]:
    """The stance seen from above, how near its edge the person comes, then curves: so they fit printed pages."""
    pressure = 1000 * story.pressure(dataset, body)
    if np.isfinite(pressure).any() and not body.sidecar.get("floats"):
        yield Picture("stance", "Centre of pressure seen from above, with the outline of the stance.",
                      _stance(dataset, body, pressure))  # fmt: skip
    if "stance_margin" in dataset and np.isfinite(dataset["stance_margin"].values).any() and story.deck_moves(dataset):
        yield Picture("margin", "How often the centre of pressure is how far inside the stance; outside is negative.",
                      _margin(dataset))  # fmt: skip
    plots = story.plots(dataset, body)
    if plots:
        yield Picture("curves", "The run over time: " + ", ".join(plot.title.lower() for plot in plots) + ".",
                      _curves(dataset, plots))  # fmt: skip
    if "muscle_activation" in dataset:
        yield Picture("muscles", "Activation of every muscle over time, 0 dark to 1 bright.", _muscles(dataset))


def _curves(dataset: xr.Dataset, plots: list[story.Plot]) -> Any:
    figure, axes = _new(len(plots), 1, size=(7.2, 1.35 * len(plots) + 0.4), sharex=True)
    time = dataset.time.values
    for axis, plot in zip(axes[:, 0], plots, strict=True):
        for curve in plot.curves:
            axis.plot(*_thin(time, curve.values), color=curve.color, lw=0.9, label=curve.label)
        axis.set_ylabel(plot.unit)
        axis.set_title(plot.title, loc="left", fontsize=9)
        axis.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=4, borderpad=0, handlelength=1.2, frameon=False)
        for when, _ in story.events(dataset):
            axis.axvline(when, color="0.45", lw=0.5, ls=":")
    axes[-1, 0].set_xlabel("time, s")
    axes[-1, 0].set_xlim(time[0], time[-1] if time[-1] > time[0] else time[0] + 1)
    return figure


def _stance(dataset: xr.Dataset, body: Body, pressure: Array) -> Any:
    figure, axes = _new(size=(3.5, 3.3))
    axis = axes[0, 0]
    outline = 1000 * body.contact_polygon()
    axis.fill(outline[:, 1], outline[:, 0], facecolor="#cfe3f3", edgecolor=INSIDE, lw=1)
    inside = story.rows(dataset, "stance_margin", 0) >= 0
    for flags, color, label in ((inside, INSIDE, "inside"), (~inside, OUTSIDE, "outside")):
        shown = np.where(flags[:, None], pressure, np.nan)
        if np.isfinite(shown).any():
            axis.plot(*(np.ma.masked_invalid(shown[:, k]) for k in (1, 0)), color=color, lw=0.6, label=label)
    axis.set_aspect("equal", adjustable="datalim")
    axis.invert_xaxis()
    axis.set_xlabel("left, mm")
    axis.set_ylabel("forward, mm")
    axis.legend(loc="upper right", frameon=False)
    return figure


def _margin(dataset: xr.Dataset) -> Any:
    figure, axes = _new(size=(3.5, 3.3))
    axis = axes[0, 0]
    margin = 1000 * dataset["stance_margin"].values
    known = margin[np.isfinite(margin)]
    low, high = float(known.min()), float(known.max())
    edges = np.linspace(min(low, 0.0), max(high, 1.0), 41)
    for chosen, color in ((known[known >= 0], INSIDE), (known[known < 0], OUTSIDE)):
        axis.hist(chosen, edges, weights=np.full(len(chosen), 100 / len(margin)), color=color)
    axis.axvline(0, color="0.3", lw=0.8)
    axis.set_xlabel("stance margin, mm")
    axis.set_ylabel("share of time, %")
    return figure


def _muscles(dataset: xr.Dataset) -> Any:
    names = story.labels(dataset, "muscle")
    figure, axes = _new(size=(7.2, 0.19 * len(names) + 1.0))
    axis = axes[0, 0]
    time, values = dataset.time.values, dataset["muscle_activation"].values.T
    stride = max(1, len(time) // POINTS)
    edges = (time[0], time[-1], len(names) - 0.5, -0.5)
    drawn = axis.imshow(values[:, ::stride], aspect="auto", cmap="plasma", vmin=0, vmax=1, extent=edges)
    axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
    axis.grid(visible=False)
    axis.set_xlabel("time, s")
    figure.colorbar(drawn, ax=axis, label="activation", pad=0.01)
    return figure


# ---------------------------------------------------------------- a sweep over conditions


def sweep_pictures(table: xr.Dataset) -> Iterator[Picture]:
    """Polar plots: one for each station and quantity; each sea a ring of headings, each speed a line."""
    for station in story.labels(table, "station"):
        for quantity, limit in LIMIT.items():
            if quantity not in table or not np.isfinite(table[quantity].sel(station=station)).any():
                continue
            said = f"{quantity} at {station}".replace("_", " ")
            meaning = f"{said}, by where the waves come from; dashed: limit {limit:g}."
            yield Picture(f"{station}_{quantity}", meaning.capitalize(), _polar(table, station, quantity, limit))


def _polar(table: xr.Dataset, station: str, quantity: str, limit: float) -> Any:
    seas = story.labels(table, "sea")
    figure, axes = _new(1, len(seas), size=(2.5 * len(seas), 2.9), subplot_kw={"projection": "polar"})
    chosen = table[quantity].sel(station=station).transpose("sea", "speed", "heading").values
    headings = np.mod(np.radians(table["heading"].values), 2 * math.pi)
    order = np.argsort(headings)
    closed = np.append(order, order[0]) if len(order) > 2 and np.diff(headings[order]).max() < math.pi / 2 else order
    angle = np.unwrap(headings[closed]) + math.pi  # waves come from where they do not go
    for number, (axis, sea) in enumerate(zip(axes[0], seas, strict=True)):
        axis.set_theta_zero_location("N")
        for row, speed in enumerate(table["speed"].values):
            color = story.COLORS[row % len(story.COLORS)]
            axis.plot(angle, chosen[number, row][closed], "o-", ms=2.5, lw=1.2, color=color, label=f"{speed:g} m/s")
        top = float(np.nanmax(chosen[number], initial=0.0))
        if top > 0.5 * limit:
            axis.plot(np.linspace(0, 2 * math.pi, 181), np.full(181, limit), "--", color="0.35", lw=0.9)
        axis.set_ylim(0, 1.1 * max(top, limit if top > 0.5 * limit else 0.01 * limit))
        axis.set_xticks(np.arange(0, 2 * math.pi, math.pi / 2), ["head", "port", "following", "starb."], fontsize=7)
        axis.tick_params(axis="y", labelsize=6)
        axis.set_title(sea, fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


# ---------------------------------------------------------------- a cohort


def cohort_pictures(table: xr.Dataset, names: list[str]) -> Iterator[Picture]:
    """How the people of a cohort spread in each chosen measure."""
    chosen = [name for name in names if np.isfinite(table[name].values).sum() > 1][:8]
    if not chosen:
        return
    columns = min(4, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure, axes = _new(rows, columns, size=(1.8 * columns, 2.1 * rows))
    for axis in axes.ravel()[len(chosen) :]:
        axis.set_visible(False)
    jitter = np.random.default_rng(0).uniform(-0.18, 0.18, table.sizes["recording"])
    for axis, name in zip(axes.ravel(), chosen, strict=False):
        values = table[name].values
        good = np.isfinite(values)
        axis.plot(jitter[good], values[good], "o", ms=2.5, color=story.BLUE, alpha=0.6, mew=0)
        low, middle, high = np.percentile(values[good], (25, 50, 75))
        axis.plot([-0.3, 0.3], [middle, middle], color=story.RED, lw=1.6)
        axis.fill_between([-0.3, 0.3], low, high, color=story.RED, alpha=0.15, lw=0)
        axis.set_xlim(-0.5, 0.5)
        axis.set_xticks([])
        axis.set_title(name.replace("_", " "), fontsize=8)
        axis.tick_params(axis="y", labelsize=7)
    yield Picture("cohort", "Every recording as a dot; line and band: median and quartiles.", figure)
