"""Reports: one HTML file with verdicts, figures, tables, where the numbers come from, and the 3D page inside.

Opens from a file without network, and prints to a clean PDF: the 3D page gives way to a still of itself.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.report import summary
from posture.report.figures import Picture, cohort_pictures, encoded, run_pictures, sweep_pictures
from posture.report.sources import kind_of
from posture.results import replacing, write_text
from posture.ship.criteria import CRITERIA, check_criteria
from posture.ship.interruptions import count_run
from posture.systems import system_names
from posture.view import body_of, story, view_html

MOST_ROWS = 60  # of a table in print
MAIN_MEASURES = ("ellipse_area", "rms_ap", "rms_ml", "mean_speed_planar", "path_length_planar", "frequency_50_ap",
                 "sample_entropy_ap", "dfa_exponent_ap")  # fmt: skip
REFERENCES = {
    "interruptions": "R. Graham (1990), Motion-induced interruptions as ship operability criteria, Naval Engineers "
    "Journal 102(2).",
    "criteria": "NORDFORSK (1987), Assessment of ship performance in a seaway; NATO STANAG 4154: figures from "
    "secondary sources.",
    "de Leva": "P. de Leva (1996), Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters, J. Biomechanics "
    "29(9).",
    "pinocchio": "Carpentier et al. (2019), The Pinocchio C++ library: rigid-body dynamics (RNEA, ABA).",
}


def write_report(source: xr.Dataset, path: Path, *, title: str, data_file: str = "", with_view: bool = True) -> None:
    """Write the report of a run, a sweep or a cohort, complete or not at all."""
    write_text(path, report_html(source, title=title, data_file=data_file, with_view=with_view))


def write_figures(source: xr.Dataset, folder: Path, *, kind: str = "svg") -> list[Path]:
    """Write the report's figures as files of their own; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in _pictures(source):
        safe = "".join(letter if letter.isalnum() else "_" for letter in picture.name)
        written.append(folder / f"{safe}.{kind}")
        with replacing(written[-1]) as temporary:
            temporary.write_bytes(encoded(picture.figure, kind))
    return written


def report_html(source: xr.Dataset, *, title: str, data_file: str = "", with_view: bool = True) -> str:
    """The report as one HTML text."""
    kind = kind_of(source)
    sections: dict[str, Callable[[xr.Dataset], Iterator[str]]] = {
        "run": _run_sections,
        "sweep": _sweep_sections,
        "cohort": _cohort_sections,
    }
    page = view_html(source, title=title) if kind == "run" and with_view else ""
    link = f"<a download href='{html.escape(data_file)}'>{html.escape(data_file)}</a>" if data_file else ""
    values = {
        "title": html.escape(title),
        "about": html.escape(_about(source, kind)) + (f" · all data: {link}" if link else ""),
        "tiles": "".join(f"<div class='tile'><b>{_text(n)}</b>{_text(name)}</div>" for name, n in _tiles(source, kind)),
        "verdicts": "".join(f"<li class='{mark}'>{_text(says)}</li>" for mark, says in _verdicts(source, kind)),
        "figures": "".join(_figure(picture) for picture in _pictures(source)),
        "sections": "".join(sections[kind](source)),
        "view": base64.b64encode(gzip.compress(page.encode(), mtime=0)).decode() if page else "",
    }
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return re.sub(r"@@(\w+)@@", lambda match: values[match[1]], template)


# ---------------------------------------------------------------- parts of every report


def _text(value: object) -> str:
    return html.escape(str(value))


def _say(value: Any) -> str:
    """A number as people read it; a dash where there is none."""
    if isinstance(value, bool) or value is None:
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return f"{value:.4g}" if math.isfinite(value) else "–"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_say(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " to ".join(_say(item) for item in value)
    return str(value)


def _table(heading: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    head = "".join(f"<th scope='col'>{_text(name)}</th>" for name in heading)
    lines = []
    for row in rows:
        cells = "".join(f"<td class='{_kind(cell)}'>{_text(_say(cell))}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    shown = f"<caption>{_text(caption)}</caption>" if caption else ""
    return f"<table>{shown}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _kind(cell: Any) -> str:
    if isinstance(cell, int | float | np.floating | np.integer) and not isinstance(cell, bool):
        return "number"
    return {"pass": "good", "FAIL": "bad", "unknown": "dull"}.get(str(cell), "")


def _figure(picture: Picture) -> str:
    data = base64.b64encode(encoded(picture.figure)).decode()
    meaning = _text(picture.meaning)
    image = f"<img alt='{meaning}' src='data:image/svg+xml;base64,{data}'>"
    width = picture.figure.get_size_inches()[0]  # or a long caption would push a small figure's neighbour away
    return f"<figure style='width: {width:.2f}in'>{image}<figcaption>{meaning}</figcaption></figure>"


def _pictures(source: xr.Dataset) -> list[Picture]:
    kind = kind_of(source)
    if kind == "sweep":
        return list(sweep_pictures(source))
    if kind == "cohort":
        return list(cohort_pictures(source, _measures(source)))
    return list(run_pictures(source, body_of(source)))


def _about(source: xr.Dataset, kind: str) -> str:
    if kind == "run":
        time = source.time.values
        mass = float(source.attrs["body_mass_kg"])
        return f"{source.attrs['body']}, {mass:.4g} kg, {time[-1] - time[0]:.4g} s, {len(time)} rows"
    if kind == "sweep":
        done = float(source["done"].mean()) if "done" in source else 1.0
        return f"{source.attrs.get('ship', 'ship')}: {int(source['done'].size)} conditions, {100 * done:.0f} % done"
    return f"{source.sizes['recording']} recordings, {len(_measures(source, main=False))} measures"


def _tiles(source: xr.Dataset, kind: str) -> list[tuple[str, str]]:
    if kind == "run":
        return story.tiles(source, body_of(source))
    if kind == "sweep":
        found = (
            ("most interruptions", "interruptions_per_minute", "/min"),
            ("most motion sickness", "sickness_percent", " %"),
            ("of the tightest limit, at worst", "criteria_used", "×"),
        )
        return [(says, f"{float(source[name].max()):.3g}{unit}") for says, name, unit in found]
    return [
        (f"median {name.replace('_', ' ')}", _say(float(np.nanmedian(source[name]))))
        for name in _measures(source)[:6]
        if np.isfinite(source[name].values).any()
    ]


# ---------------------------------------------------------------- what it comes to, in sentences


def _verdicts(source: xr.Dataset, kind: str) -> list[tuple[str, str]]:
    """Sentences, each marked ``good``, ``bad`` or ``plain``."""
    found = {"run": _run_verdicts, "sweep": _sweep_verdicts, "cohort": _cohort_verdicts}[kind](source)
    return list(found)


def _run_verdicts(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    body = body_of(dataset)
    if dataset.attrs.get("stopped"):
        yield "bad", f"The run ended early: {dataset.attrs['stopped']}."
    if "stance_margin" in dataset and "force_deck_on_person" in dataset and dataset.sizes["time"] > 2:
        counted = count_run(dataset)
        low, high = counted.interval
        count = len(counted.time)
        if story.deck_moves(dataset) or count:
            yield (
                "good" if counted.per_minute <= 1 else "bad",
                f"Balance was interrupted {count} time{'s' * (count != 1)} in {counted.duration:.4g} s: "
                f"{counted.per_minute:.3g} per minute (95 % limits {low:.2g} to {high:.2g}; usual limit 1 per minute).",
            )
        margin = dataset["stance_margin"].values
        if np.isfinite(margin).any():
            outside = 100 * float(np.mean(~(margin >= 0)))
            near = 1000 * float(np.nanmin(margin))
            yield (
                "bad" if outside else "good",
                f"The centre of pressure was outside the stance for {outside:.3g} % of the time; at worst it was "
                f"{abs(near):.0f} mm {'outside' if near < 0 else 'inside'}.",
            )
    if "lyapunov_value" in dataset:
        value = story.rows(dataset, "lyapunov_value", 0)
        rises = int(np.sum(np.diff(value) > 1e-9 * (1 + np.abs(value[:-1]))))
        yield (
            "bad" if rises else "good",
            f"The Lyapunov function falls from {value[0]:.3g} to {value[-1]:.2g} J and rises in {rises} of "
            f"{len(value) - 1} steps.",
        )
    if "reference_joint_position" in dataset:
        apart = np.degrees(np.abs(dataset["joint_position"].values - dataset["reference_joint_position"].values))
        within = np.flatnonzero(apart.max(axis=1) > 5)
        until = dataset.time.values[within[0]] if len(within) else dataset.time.values[-1]
        yield (
            "good" if not len(within) else "plain",
            f"The run stays within 5° of its reference motion in every joint until {until:.3g} s "
            f"(largest difference {np.nanmax(apart):.3g}°).",
        )
    if "joint_force" in dataset:
        size = np.linalg.norm(story.weights(dataset, body, "joint_force"), axis=2)
        row, joint = np.unravel_index(int(np.nanargmax(size)), size.shape)
        yield (
            "plain",
            f"The largest joint load is {size[row, joint]:.3g} body weights, at "
            f"{story.labels(dataset, 'joint')[joint].replace('_', ' ')} after {dataset.time.values[row]:.3g} s.",
        )
    if "sharing_kkt" in dataset:
        shortfall = np.abs(dataset["sharing_shortfall"].values).max()
        yield (
            "good" if shortfall == 0 else "bad",
            "The muscles can give all torques of the motion."
            if shortfall == 0
            else f"The muscles lack up to {shortfall:.3g} N·m.",
        )


def _sweep_verdicts(table: xr.Dataset) -> Iterator[tuple[str, str]]:
    used = table["criteria_used"]
    known = np.isfinite(used.values)
    if known.any():
        kept = float(np.mean(used.values[known] <= 1))
        yield (
            "good" if kept == 1 else "plain",
            f"{100 * kept:.0f} % of the conditions keep all limits of the criteria table.",
        )
    for name, unit, what in (
        ("interruptions_per_minute", "per minute", "Interruptions are most frequent"),
        ("sickness_percent", "%", "Motion sickness is highest"),
    ):
        values = table[name]
        if np.isfinite(values.values).any():
            worst = values.isel(values.argmax(...))
            place = {dim: worst[dim].values for dim in ("station", "sea", "speed", "heading")}
            yield (
                "plain",
                f"{what}, {float(worst):.3g} {unit}, at {str(place['station']).replace('_', ' ')} in {place['sea']}, "
                f"{float(place['speed']):g} m/s, heading {float(place['heading']):g}° to the waves.",
            )
    if (open_ := int(table["done"].size - float(table["done"].sum()))) > 0:
        yield "bad", f"{open_} conditions are not done yet; run the sweep again to go on."


def _cohort_verdicts(table: xr.Dataset) -> Iterator[tuple[str, str]]:
    yield "plain", f"The table holds {table.sizes['recording']} recordings."
    for name in _measures(table)[:3]:
        values = table[name].values
        good = values[np.isfinite(values)]
        if len(good) > 2:
            low, middle, high = np.percentile(good, (25, 50, 75))
            far = np.flatnonzero(values > high + 3 * (high - low))
            yield (
                "plain",
                f"{name.replace('_', ' ')}: median {middle:.3g}, middle half {low:.3g} to {high:.3g}"
                + (
                    f"; far above it: {', '.join(str(table['recording'].values[k]) for k in far[:5])}."
                    if len(far)
                    else "."
                ),
            )
    missing = sum(int(np.sum(~np.isfinite(table[name].values))) for name in _measures(table, main=False))
    if missing:
        yield "bad", f"{missing} values are missing."


# ---------------------------------------------------------------- sections


def _run_sections(dataset: xr.Dataset) -> Iterator[str]:
    found = summary(dataset)
    if story.deck_moves(dataset):
        yield _criteria(dataset, found)
    yield "<section><h2>Numbers</h2>" + _table(
        ("quantity", "value"), ((name.replace("_", " "), value) for name, value in found.items() if value != "")
    ) + "</section>"  # fmt: skip
    yield _credibility(dataset, found)
    rows = (
        (
            name,
            " × ".join(map(str, variable.dims)),
            variable.attrs.get("units", "").replace("^2", "²"),
            variable.attrs.get("long_name", ""),
        )
        for name, variable in dataset.data_vars.items()
    )
    yield "<section><h2>What the data file holds</h2>" + _table(("variable", "along", "unit", "meaning"), rows)
    yield "</section>"


def _criteria(dataset: xr.Dataset, found: dict[str, Any]) -> str:
    """The run's own motion and interruptions against the tables; sickness needs hours, so it stays unknown here."""
    roll, pitch = (math.sqrt(float(np.nanmean(values**2))) for values in story.tilt(dataset).T)
    felt, turn = story.rows(dataset, "deck_specific_force", 3), story.facing(dataset)  # limits are for the ship's axes
    known: dict[str, float] = {"roll": roll, "pitch": pitch}
    if np.isfinite(felt).any():
        known |= {
            "lateral_acceleration": float(np.nanstd(felt[:, 0] * math.sin(turn) + felt[:, 1] * math.cos(turn))),
            "vertical_acceleration": float(np.nanstd(felt[:, 2])),
        }
    if "interruptions_per_minute" in found:
        known["interruptions_per_minute"] = float(found["interruptions_per_minute"])
    rows = []
    for name in CRITERIA:
        for row in check_criteria(known, name):
            used = None if row["used"] is None else round(100 * row["used"])
            quantity = row["quantity"].replace("_", " ")
            rows.append(
                (name.replace("_", " "), quantity, row["value"], row["limit"], row["unit"], used, row["verdict"])
            )
    heading = ("criteria table", "quantity", "this run", "limit", "unit", "% used", "verdict")
    caption = "Limits are RMS values from secondary sources; the run's are those felt at the station."
    return f"<section><h2>Criteria</h2>{_table(heading, rows, caption)}</section>"


def _credibility(dataset: xr.Dataset, found: dict[str, Any]) -> str:
    attributes = dataset.attrs
    rows: list[tuple[str, Any]] = []
    if "newton_residual_g" in found:
        rows.append(("Newton's law against the stored forces, largest error over g", found["newton_residual_g"]))
    for name, what in (
        ("sharing_kkt", "muscle sharing: distance from the optimum"),
        ("sharing_torque_residual", "muscle sharing: torque error, N·m"),
        ("ground_residual_force", "force that no contact gives, N"),
    ):
        if name in dataset:
            rows.append((what, float(np.nanmax(np.abs(dataset[name].values)))))
    gaps = sum(
        int(np.sum(~np.isfinite(variable.values)))
        for variable in dataset.data_vars.values()
        if variable.dtype.kind == "f"
    )
    rows += [
        ("values that are missing", gaps),
        ("integration step, s", float(attributes.get("step_s", math.nan))),
        ("seed", "none" if int(attributes.get("seed", -1)) < 0 else int(attributes["seed"])),
        ("locked joints", ", ".join(json.loads(attributes.get("body_locked", "{}"))) or "none"),
        ("body, SHA-256", attributes.get("body_sha256", "unknown")),
        *((f"version of {name}", number) for name, number in json.loads(attributes.get("versions", "{}")).items()),
    ]
    used = ["pinocchio", "de Leva"] if "person" in attributes.get("body_sidecar", "") else ["pinocchio"]
    used += ["interruptions", "criteria"] if story.deck_moves(dataset) else []
    listed = "".join(
        f"<li>{_text(text)}</li>" for text in (*_system(str(attributes.get("body"))), *map(REFERENCES.get, used))
    )
    scenario = str(attributes.get("scenario", ""))
    settings = f"<h3>Scenario</h3><pre>{_text(scenario)}</pre>" if scenario else ""
    return (
        "<section><h2>Can it be believed?</h2>"
        + _table(("check or setting", "value"), rows)
        + f"<h3>Sources</h3><ul>{listed}</ul>{settings}</section>"
    )


def _system(name: str) -> list[str]:
    """What the module of a body's system says about itself, if it is one of ours."""
    if name not in system_names():
        return []
    text = import_module(f"posture.systems.{name}").__doc__ or ""
    return [" ".join(text.split("\n\n")[0].split())]


def _sweep_sections(table: xr.Dataset) -> Iterator[str]:
    rows = []
    for station in story.labels(table, "station"):
        for sea in story.labels(table, "sea"):
            part = table.sel(station=station, sea=sea)
            if not np.isfinite(part["criteria_used"].values).any():
                continue
            worst = part["criteria_used"].isel(part["criteria_used"].argmax(...))
            at = part.sel(speed=worst["speed"], heading=worst["heading"])
            rows.append(
                (
                    station.replace("_", " "),
                    sea,
                    float(worst["speed"]),
                    float(worst["heading"]),
                    float(at["interruptions_per_minute"]),
                    [float(at["interruptions_low"]), float(at["interruptions_high"])],
                    float(at["sickness_percent"]),
                    round(100 * float(worst)),
                    "pass" if float(worst) <= 1 else "FAIL",
                )
            )
    heading = ("station", "sea", "speed, m/s", "heading, °", "interruptions/min", "95 % limits", "sickness, %",
               "% of limit", "verdict")  # fmt: skip
    yield f"<section><h2>Worst condition of each sea</h2>{_table(heading, rows)}</section>"
    versions = json.loads(table.attrs.get("versions", "{}"))
    settings = [(f"version of {name}", number) for name, number in versions.items()]
    listed = "".join(f"<li>{_text(REFERENCES[name])}</li>" for name in ("interruptions", "criteria"))
    yield f"<section><h2>Can it be believed?</h2>{_table(('check or setting', 'value'), settings)}"
    yield f"<h3>Sources</h3><ul>{listed}</ul><h3>Voyage</h3><pre>{_text(table.attrs.get('voyage', ''))}</pre></section>"


def _measures(table: xr.Dataset, *, main: bool = True) -> list[str]:
    """Columns of numbers; the main ones first, or those that come first in the table."""
    numbers = [str(name) for name, values in table.data_vars.items() if values.dtype.kind in "fi"]
    chosen = [name for name in MAIN_MEASURES if name in numbers]
    return (chosen or numbers[:8]) if main else numbers


def _cohort_sections(table: xr.Dataset) -> Iterator[str]:
    rows = []
    for name in _measures(table, main=False):
        values = table[name].values.astype(float)
        good = values[np.isfinite(values)]
        spread = np.percentile(good, (0, 25, 50, 75, 100)) if len(good) else np.full(5, np.nan)
        rows.append((name.replace("_", " "), len(good), *map(float, spread)))
    heading = ("measure (SI units)", "recordings", "smallest", "quarter", "median", "three quarters", "largest")
    yield f"<section><h2>Spread of every measure</h2>{_table(heading, rows)}</section>"
    shown = _measures(table)[:6]
    people = (
        (str(name), *(float(table[measure].values[k]) for measure in shown))
        for k, name in enumerate(table["recording"].values[:MOST_ROWS])
    )
    left = table.sizes["recording"] - MOST_ROWS
    caption = f"{left} more recordings are in the table itself." if left > 0 else ""
    names = ("recording", *(name.replace("_", " ") for name in shown))
    yield f"<section><h2>Recordings</h2>{_table(names, people, caption)}</section>"
