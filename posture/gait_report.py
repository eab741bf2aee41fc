"""The folder that a walking trial leaves behind: result, tables for other programs, pictures and one page about all."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

from posture.gait_trial import Trial, cycle_table
from posture.results import export, save, write_text

WORDS = {
    "frames": "frames recorded",
    "rate_hz": "samples per second",
    "gaps": "gaps",
    "marker_filter": "marker filter",
    "coordinate_filter": "coordinate filter",
    "marker_rms_mm": "marker distance, rms mm",
    "marker_rms_worst_frame_mm": "marker distance in the worst frame, rms mm",
    "marker_worst": "worst markers, rms mm",
    "fit_converged_percent": "frames whose fit converged, %",
    "round_trip": "inverse to forward dynamics and back, acceleration, largest rad/s²",
    "sharing": "double support shared by",
    "sharing_gap": "sum of feet minus total, largest (N, N·m)",
    "load_in_swing": "load on a foot in the air, largest (N, N·m)",
    "plates_minus_motion_force_n": "plates against motion, force, rms N",
    "plates_minus_motion_moment_nm": "plates against motion, moment, rms N·m",
    "root_residual_force_n": "residual force on the pelvis, rms N",
    "root_residual_moment_nm": "residual moment on the pelvis, rms N·m",
    "cycles": "gait cycles, s",
    "tracked_whole": "forward run covers the record",
    "position_error_m": "forward run: pelvis, largest m",
    "angle_error_rad": "forward run: segment angles, largest rad",
    "controller_force_n": "forward run: controller force, largest N",
    "controller_torque_nm": "forward run: controller torque, largest N·m",
    "step_residual": "forward run: equation of a step holds to",
    "without_controller_within_1_deg_s": "without controller within 1° for, s",
    "duration_s": "duration, s",
    "error_growth_exponent": "without controller a small error grows over the record by e to the power of",
}
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse}td{padding:.15em 1em .15em 0;border-bottom:1px solid #ddd;vertical-align:top}"
    "td+td{font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}.note{color:#a33}"
)


def write_trial(trial: Trial, folder: Path, *, title: str) -> dict[str, str]:
    """Write everything about a trial into a folder; names of the files."""
    from posture.plots import write_figure
    from posture.plots.gait import ground_curves, joint_curves, marker_curves

    folder.mkdir(parents=True, exist_ok=True)
    files = {"result": "trial.nc", "angles": "angles.mot", "torques": "torques.sto", "report": "report.html"}
    save(trial.dataset, folder / files["result"])
    export(trial.dataset, folder / files["angles"])
    export(trial.dataset, folder / files["torques"], variables=["joint_torque"])
    if trial.quality["cycles"]:
        files["cycles"] = "cycles.csv"
        titles, table = cycle_table(trial)
        rows = (",".join(f"{value:.7g}" for value in row) for row in table)
        write_text(folder / files["cycles"], "\n".join([",".join(titles), *rows]) + "\n")
    figures = {"joints": joint_curves(trial), "ground": ground_curves(trial), "markers": marker_curves(trial)}
    for name, figure in figures.items():
        files[name] = f"{name}.svg"
        write_figure(figure, folder / files[name])
    write_text(folder / files["report"], report_page(trial, figures, title=title))
    return {name: str(folder / file) for name, file in files.items()}


def report_page(trial: Trial, figures: dict[str, Any], *, title: str) -> str:
    """One page with pictures inside, readable without any network."""
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(title)}</title>",
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(trial.body.name)}, {trial.body.mass:.1f} kg, {len(trial.body.joint_names)} joint angles.</p>",
    ]
    parts += [f"<p class='note'>{html.escape(note)}</p>" for note in trial.quality["notes"]]
    headings = {"joints": "Joints", "ground": "Ground under the feet", "markers": "Markers"}
    for name, figure in figures.items():
        parts.append(f"<h2>{headings[name]}</h2>{_inline(figure)}")
    parts.append("<h2>Quality</h2><table>")
    for key, value in _rows(trial.quality):
        parts.append(f"<tr><td>{html.escape(WORDS.get(key, key))}</td><td>{html.escape(value)}</td></tr>")
    parts.append("</table></html>")
    return "\n".join(parts) + "\n"


def _rows(quality: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for key, value in quality.items():
        if key == "notes":
            continue
        if key == "forward":
            rows += [(name, _shown(item)) for name, item in value.items()]
        elif isinstance(value, dict):
            rows.append((key, "; ".join(f"{name.replace('_', ' ')}: {_shown(item)}" for name, item in value.items())))
        else:
            rows.append((key, _shown(value)))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    if isinstance(value, tuple):
        return " to ".join(_shown(item) for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("_", " ")


def _inline(figure: Any) -> str:
    import matplotlib as mpl

    from posture.plots import STYLE as HOUSE

    stream = io.StringIO()
    with mpl.rc_context(HOUSE):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]
