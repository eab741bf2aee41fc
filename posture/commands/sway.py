"""Commands about recordings of quiet stance: sway, identify; one recording, or a folder of them into one table."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posture.commands import AddCommand, show
from posture.errors import RecordingError, check_number, find_name


def add(command: AddCommand) -> None:
    """Add the commands of this module."""
    sway = command(
        "sway",
        _sway,
        "Measure sway (posturography) in a recording, or in a folder of them.",
        "sway trial.csv --unit cm --columns x=AP y=-ML --plots pictures",
    )
    sway.add_argument("--cutoff", type=float, help="low-pass before measuring, Hz; 10 by default, 0 for none")
    _add_reading(sway)

    identify = command(
        "identify",
        _identify,
        "Identify a person's balance control from a recording, or from a folder of them.",
        "identify BDS00001.txt --height 1.58 --sex female --plots pictures",
    )
    identify.add_argument("--mass", type=float, help="kg; from the vertical force by default")
    identify.add_argument("--height", type=float, help="m")
    identify.add_argument("--sex", help="female or male: which segment table")
    identify.add_argument("--people", type=Path, help="CSV with recording, mass, height, sex: who stood in which file")
    identify.add_argument("--body", help="another body (name or .urdf) as it is, not scaled; see --joints")
    identify.add_argument("--joints", nargs="+", metavar="NAME", help="free joints of the body, ankle first, then hip")
    identify.add_argument("--links", type=int, choices=(1, 2), default=1, help="1: ankle; 2: ankle and hip")
    identify.add_argument("--no-delay", action="store_true", help="feedback without delay, as in the 2006 paper")
    identify.add_argument("--method", default="kalman", help="kalman (exact, default) or whittle (spectral)")
    identify.add_argument("--fix", nargs="+", default=[], metavar="NAME=VALUE", help="hold parameters")
    identify.add_argument(
        "--prior", nargs="+", default=[], metavar="NAME=MEDIAN,LOGSD", help="beliefs; LOGSD inf for none"
    )
    identify.add_argument("--bootstrap", type=int, default=0, metavar="N", help="refit N drawn records for error bars")
    identify.add_argument("--compare", action="store_true", help="also fit the other models and compare them")
    _add_reading(identify)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", type=Path, help=".csv, .tsv, .txt (also .gz) or .c3d; or a folder")
    parser.add_argument(
        "--columns", nargs="+", default=[], metavar="KEY=COLUMN", help="x, y, time, fx … my; - turns a sign"
    )
    parser.add_argument("--unit", help="of COP columns that do not say theirs: m, cm or mm")
    parser.add_argument("--rate", type=float, help="Hz, for tables without time")
    parser.add_argument("--surface", type=float, default=0.0, help="plate surface above the origin of raw moments, m")
    parser.add_argument("--origins", nargs=2, metavar="X,Y", help="where two raw plates have their origins, m")
    parser.add_argument("--forward", default="x", help="C3D: laboratory axis the person faces (x, -x, y, -y)")
    parser.add_argument("--from", dest="start", type=float, help="s")
    parser.add_argument("--to", dest="end", type=float, help="s")
    parser.add_argument("--pattern", default="*", help="files of a folder, such as 'BDS*.gz'")
    parser.add_argument("--out", type=Path, help="table to write (.csv or .nc); needed for a folder")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="also write pictures (SVG)")
    parser.add_argument("--workers", type=int, default=1, help="processes for a folder")
    parser.add_argument("--scheduler", help="for a folder: a running Dask scheduler, such as tcp://host:8786")


# ---------------------------------------------------------------- settings: plain values, so that workers can have them


def _pairs(items: list[str], option: str) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign or not name or not value:
            raise RecordingError(f"{option}: {item!r} is not of the form NAME=VALUE")
        pairs[name] = value
    return pairs


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RecordingError(f"{what} is {text!r}, but must be a number") from None


def _reading(chosen: argparse.Namespace) -> dict[str, Any]:
    origins = None
    if chosen.origins:
        origins = [[_number(part, "--origins") for part in item.split(",")] for item in chosen.origins]
        if any(len(origin) != 2 for origin in origins):
            raise RecordingError("--origins: give x,y of each plate in m, such as 0,0.25 0,-0.25")
    return {
        "columns": _pairs(chosen.columns, "--columns"),
        "unit": chosen.unit,
        "rate": chosen.rate,
        "surface": chosen.surface,
        "origins": origins,
        "forward": chosen.forward,
        "start": chosen.start,
        "end": chosen.end,
    }


def _read(path: Path, settings: Mapping[str, Any]) -> Any:
    from posture.recordings import checked, read_recording

    keys = ("columns", "unit", "rate", "surface", "origins", "forward")
    recording = read_recording(path, **{key: settings[key] for key in keys}, quiet=False)
    if settings["start"] is not None or settings["end"] is not None:
        end = recording.duration if settings["end"] is None else settings["end"]
        recording = recording.between(settings["start"] or 0.0, end)
    return checked(recording)


# ---------------------------------------------------------------- sway


def sway_row(path: Path, settings: Mapping[str, Any]) -> dict[str, float | str]:
    """One row of the table of a folder: measures of one recording, SI units."""
    from posture.sway import as_row, measure_sway

    recording = _read(path, settings)
    measures = measure_sway(recording, cutoff=settings["cutoff"])
    return {
        "recording": recording.name,
        "duration_s": recording.duration,
        "rate_hz": recording.rate,
        "mass_kg": math.nan if recording.mass is None else recording.mass,
        **as_row(measures),
        "notes": measures.attrs["notes"],
    }


def _sway(chosen: argparse.Namespace) -> int:
    settings = _reading(chosen) | {"cutoff": chosen.cutoff}
    if chosen.recording.is_dir():
        return _folder(chosen, sway_row, settings)
    from posture.sway import MEASURES, as_row, measure_sway

    recording = _read(chosen.recording, settings)
    measures = measure_sway(recording, cutoff=chosen.cutoff)
    row = as_row(measures)
    files = []
    if chosen.out:
        from posture.cohort import write_table

        write_table([sway_row(chosen.recording, settings)], chosen.out)
        files.append(str(chosen.out))
    if chosen.plots:
        from posture.plots.sway import diffusion_plot, stabilogram, statokinesigram

        pictures = {"stabilogram": stabilogram, "statokinesigram": statokinesigram, "diffusion": diffusion_plot}
        files += _write_plots(chosen.plots, recording.name, {name: draw(recording) for name, draw in pictures.items()})
    lines = [
        f"{recording.name}: {recording.duration:g} s at {recording.rate:g} Hz"
        + (f", {recording.mass:.1f} kg" if recording.mass else ""),
        f"{'':26}{'fore-aft':>12}{'lateral':>12}{'resultant':>12}",
    ]
    scales = {
        "m": (1e3, "mm"),
        "m/s": (1e3, "mm/s"),
        "m^2": (1e6, "mm²"),
        "m^2/s": (1e6, "mm²/s"),
        "rad": (57.29578, "°"),
    }
    for name, (dims, unit, _) in MEASURES.items():
        factor, shown = scales.get(unit, (1.0, "" if unit == "1" else unit))
        values = [row[f"{name}_{way}"] for way in ("ap", "ml", "resultant")] if dims else [row[name]]
        cells = "".join(f"{factor * value:>12.4g}" for value in values)
        lines.append(f"{name.replace('_', ' '):26}{cells if dims else ' ' * 24 + cells} {shown}")
    lines += [f"note: {note}" for note in recording.notes] + [f"wrote {name}" for name in files]
    found = {
        "recording": recording.name,
        "duration_s": recording.duration,
        "rate_hz": recording.rate,
        "mass_kg": recording.mass,
        "low_pass_hz": measures.attrs["low_pass_hz"],
        "measures": row,
        "units": {name: unit for name, (_, unit, _) in MEASURES.items()},
        "notes": list(recording.notes),
        "files": files,
    }
    show(_clean(found), chosen, lines)
    return 0


# ---------------------------------------------------------------- identify


def _person_of(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Mass, height and sex: of the row of this recording in the table of people, else as given for all."""
    person = {key: settings[key] for key in ("mass", "height", "sex")}
    if settings["people"] is not None:
        name = path.name.removesuffix(".gz").rsplit(".", 1)[0]
        if name not in settings["people"]:
            raise RecordingError(f"{path}: the table of people has no recording {name!r}; add a row")
        person |= settings["people"][name]
    return person


def _read_people(path: Path) -> dict[str, dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: cannot be read as CSV ({error})") from None
    people: dict[str, dict[str, Any]] = {}
    for line, row in enumerate(rows, start=2):
        if not {"recording", "height", "sex"} <= row.keys():
            raise RecordingError(f"{path}: needs the columns recording, height (m), sex, and may have mass (kg)")
        person: dict[str, Any] = {"height": _number(row["height"], f"{path}: line {line}: height"), "sex": row["sex"]}
        if row.get("mass"):
            person["mass"] = _number(row["mass"], f"{path}: line {line}: mass")
        people[row["recording"]] = person
    return people


def _mechanics(recording: Any, path: Path, settings: Mapping[str, Any], links: int) -> Any:
    from posture.anthropometry import Person
    from posture.body import load_body
    from posture.identify import Mechanics

    if settings["body"] is not None:
        body = load_body(settings["body"])
        joints = settings["joints"] or body.joint_names
    else:
        person = _person_of(path, settings)
        mass = person["mass"] if person["mass"] is not None else recording.mass
        if mass is None or person["height"] is None or person["sex"] is None:
            raise RecordingError(
                f"{path}: who stood there? give --height (m) and --sex, and --mass (kg) if the file has no forces"
            )
        body = load_body("ship_stance", person=Person(mass, person["height"], person["sex"]))
        joints = ["ankle_y", "hip_y"]
    for joint in joints:
        body.joint_index(joint)
    free = joints[:links]
    return Mechanics.of(body.lock([name for name in body.joint_names if name not in free]))


def _fit(recording: Any, path: Path, settings: Mapping[str, Any], links: int, delay: bool) -> Any:
    from posture.identify import identify_balance

    return identify_balance(
        recording.cop[:, 0],
        rate=recording.rate,
        mechanics=_mechanics(recording, path, settings, links),
        delay=delay,
        method=settings["method"],
        fixed=settings["fixed"],
        priors={name: (pair[0], pair[1]) for name, pair in settings["priors"].items()},
    )


def identify_row(path: Path, settings: Mapping[str, Any]) -> dict[str, float | str]:
    """One row of the table of a folder: estimates with errors and verdicts, likelihood, notes."""
    recording = _read(path, settings)
    found = _fit(recording, path, settings, settings["links"], settings["delay"])
    row: dict[str, float | str] = {"recording": recording.name, "samples": float(len(found.record))}
    for name, estimate in found.estimates.items():
        row[name] = estimate.value
        row |= {f"{name}_{key}": getattr(estimate, key) for key in ("standard_error", "low", "high", "verdict")}
    row["relative_stiffness"] = found.estimates["stiffness"].value / found.model.mechanics.ankle_load
    row |= {"log_likelihood": found.log_likelihood, "aic": found.aic}
    row |= {"converged": str(found.converged), "white": str(found.whiteness["white"])}
    row["notes"] = "; ".join([*recording.notes, *found.notes])
    return row


def _identify(chosen: argparse.Namespace) -> int:
    from posture.identify.fit import METHODS

    find_name(chosen.method, METHODS, what="method", where="identify", error=RecordingError)
    fixed = {name: _number(text, f"--fix {name}") for name, text in _pairs(chosen.fix, "--fix").items()}
    priors = {}
    for name, text in _pairs(chosen.prior, "--prior").items():
        median, comma, spread = text.partition(",")
        if not comma:
            raise RecordingError(f"--prior: {name}={text} needs a median and a log-sd, such as {name}={text},0.5")
        priors[name] = [_number(median, f"--prior {name}"), _number(spread, f"--prior {name}")]
    settings = _reading(chosen) | {
        "mass": chosen.mass,
        "height": chosen.height,
        "sex": chosen.sex,
        "people": _read_people(chosen.people) if chosen.people else None,
        "body": chosen.body,
        "joints": chosen.joints,
        "links": chosen.links,
        "delay": not chosen.no_delay,
        "method": chosen.method,
        "fixed": fixed,
        "priors": priors,
    }
    if chosen.recording.is_dir():
        return _folder(chosen, identify_row, settings)
    if chosen.bootstrap:
        check_number(chosen.bootstrap, what="--bootstrap", unit="", low=10, high=10000, error=RecordingError)
    recording = _read(chosen.recording, settings)
    found = _fit(recording, chosen.recording, settings, chosen.links, not chosen.no_delay)
    result = found.describe() | {"recording": recording.name}
    result["notes"] = [*recording.notes, *found.notes]
    joints = "ankle" if chosen.links == 1 else "ankle and hip"
    lines = [
        f"{recording.name}: {len(found.record)} samples at {1 / found.step:.4g} Hz, {joints}"
        f"{'' if chosen.no_delay else ', with delay'}, {chosen.method}, {found.seconds:.2f} s",
        f"{'':22}{'value':>10}{'± se':>10}{'95 % from':>12}{'to':>10}",
    ]
    for name, one in found.estimates.items():
        shown = f"{one.value:>10.4g}{one.standard_error:>10.2g}{one.low:>12.4g}{one.high:>10.4g}"
        lines.append(f"{name.replace('_', ' '):22}{shown}  {one.unit:13}{one.verdict}")
    lines.append(f"stiffness is {result['relative_stiffness']:.3g} times the toppling load m·g·h")
    lines.append(f"log-likelihood {found.log_likelihood:.1f}, AIC {found.aic:.1f}")
    if found.whiteness["white"]:
        lines.append(found.whiteness["sentence"])
    if chosen.bootstrap:
        result["bootstrap"] = found.bootstrap(count=chosen.bootstrap)
        lines.append(f"bootstrap of {chosen.bootstrap} drawn records:")
        for name, one in result["bootstrap"].items():
            lines.append(
                f"{name.replace('_', ' '):22}{one['median']:>10.4g}{one['standard_error']:>10.2g}"
                f"{one['low']:>12.4g}{one['high']:>10.4g}"
            )
    if chosen.compare:
        result["models"], more = _compare(recording, chosen, settings)
        lines += more
    files = []
    if chosen.out:
        from posture.cohort import write_table

        write_table([identify_row(chosen.recording, settings)], chosen.out)
        files.append(str(chosen.out))
    if chosen.plots:
        from posture.plots.sway import model_plot, spectrum_plot

        figures = {
            "spectrum": spectrum_plot(found, name=recording.name),
            "model": model_plot(found, name=recording.name),
        }
        files += _write_plots(chosen.plots, recording.name, figures)
    result["files"] = files
    lines += [f"note: {note}" for note in result["notes"]] + [f"wrote {name}" for name in files]
    show(_clean(result), chosen, lines)
    return 0


def _compare(
    recording: Any, chosen: argparse.Namespace, settings: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[str]]:
    rows, lines = [], ["models of the same samples, best first (a difference in AIC of 10 is decisive):"]
    for links in (1, 2):
        for delay in (False, True):
            known = {**settings, "fixed": {}, "priors": {}}  # names that only some of the models know
            fit = _fit(recording, chosen.recording, known, links, delay)
            name = ("ankle" if links == 1 else "ankle and hip") + (" with delay" if delay else "")
            rows.append(
                {
                    "model": name,
                    "log_likelihood": fit.log_likelihood,
                    "aic": fit.aic,
                    "relative_stiffness": fit.estimates["stiffness"].value / fit.model.mechanics.ankle_load,
                    "white": fit.whiteness["white"],
                    "p_white": fit.whiteness["p_periodogram"],
                }
            )
    rows.sort(key=lambda row: float(row["aic"]))
    lines += [
        f"  {row['model']:28} AIC {row['aic']:>9.1f}  stiffness {row['relative_stiffness']:.2f} mgh  "
        f"{'white' if row['white'] else 'not white'} (p = {row['p_white']:.2g})"
        for row in rows
    ]
    return rows, lines


# ---------------------------------------------------------------- folders, pictures, printing


def _folder(chosen: argparse.Namespace, job: Any, settings: dict[str, Any]) -> int:
    from posture.cohort import recording_files, run_cohort

    if chosen.out is None:
        raise RecordingError(f"{chosen.recording}: a folder needs a table to write; add --out table.csv (or .nc)")
    if chosen.plots:
        raise RecordingError("--plots draws one recording; leave it out for a folder")
    check_number(chosen.workers, what="--workers", unit="", low=1, high=1024, error=RecordingError)
    files = recording_files(chosen.recording, chosen.pattern)
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        if (tenth := 10 * done // total) > told:
            told = tenth
            print(f"posture: {done} of {total} recordings", file=sys.stderr, flush=True)

    table = run_cohort(
        files, job, settings, out=chosen.out, workers=chosen.workers, scheduler=chosen.scheduler, tell=tell
    )
    for name, sentence in table.bad.items():
        print(f"posture: left out {name}: {sentence}", file=sys.stderr)
    found = {"table": str(chosen.out), "recordings": len(table.rows), "bad": table.bad, "resumed": table.resumed}
    lines = [f"wrote {chosen.out}: {len(table.rows)} recordings, {len(table.bad)} left out"]
    if not table.rows:
        raise RecordingError(f"{chosen.recording}: none of {len(files)} files could be used; nothing was written")
    show(found, chosen, lines)
    return 0


def _write_plots(folder: Path, name: str, figures: Mapping[str, Any]) -> list[str]:
    from posture.plots import write_figure

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind, figure in figures.items():
        path = folder / f"{name}_{kind}.svg"
        write_figure(figure, path)
        files.append(str(path))
    return files


def _clean(found: Any) -> Any:
    """Numbers that JSON cannot hold become null."""
    if isinstance(found, dict):
        return {key: _clean(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_clean(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found
