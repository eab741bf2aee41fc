"""Recordings that no standing person can have made, and runs that end half way: one sentence, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time as clock
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posture.cli import main
from posture.cohort import run_cohort
from posture.errors import RecordingError
from posture.recordings import read_recording

COUNT, RATE = 3000, 100.0
TIME = np.arange(COUNT) / RATE


def good() -> dict[str, np.ndarray]:
    """30 s of ordinary sway, m and N."""
    sway = np.column_stack(
        [sum(a * np.sin(w * TIME + p) for a, w, p in ((3, 0.7, k), (2, 1.9, 2 * k), (1, 4.3, 3 * k))) for k in (1, 2)]
    )
    noise = np.random.default_rng(0).standard_normal((COUNT, 2))
    cop = 0.001 * (sway + 0.05 * noise)
    return {"time_s": TIME.copy(), "copx_m": cop[:, 0], "copy_m": cop[:, 1], "fz_N": 700 + 2 * np.sin(TIME)}


def write(path: Path, columns: Mapping[str, np.ndarray]) -> Path:
    rows = np.column_stack(list(columns.values()))
    lines = [",".join(columns), *(",".join(f"{value:.9g}" for value in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def changed(**changes: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    table = good()
    for name, change in changes.items():
        table[name] = change(table[name])
    return table


def replaced(rows: slice, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[rows] = value
        return values

    return change


def renamed(table: dict[str, np.ndarray], **names: str) -> dict[str, np.ndarray]:
    return {names.get(name, name): values for name, values in table.items()}


BAD: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "flat line": (changed(copx_m=lambda x: 0 * x), "never moves"),
    "two seconds": ({name: values[:200] for name, values in good().items()}, "lasts 2 s"),
    "a gap of half a second": (changed(copx_m=replaced(slice(500, 550), np.nan)), "no COP for 0.50 s from 5.00 s"),
    "nothing but gaps": (changed(copx_m=lambda x: x * np.nan), "no COP"),
    "clipped COP": (changed(copx_m=lambda x: np.clip(x, -0.003, 0.003)), "clipped"),
    "clipped force": (changed(fz_N=lambda x: np.minimum(x, 700.5)), "clipped"),
    "foot off the plate": (
        changed(fz_N=replaced(slice(900, 950), 100.0)),
        "at 9.00 s the plate carries only 100 of 70",
    ),
    "cm taken for m": (changed(copx_m=lambda x: 100 * x, copy_m=lambda x: 100 * x), "is it in cm or mm"),
    "mm taken for m": (changed(copx_m=lambda x: 1000 * x, copy_m=lambda x: 1000 * x), "is it in cm or mm"),
    "m taken for mm": (
        renamed(good(), copx_m="copx_mm", copy_m="copy_mm"),
        "less than breathing causes",
    ),
    "a broken sample": (changed(copx_m=replaced(slice(700, 701), 0.3)), "the COP jumps"),
    "time runs back": (changed(time_s=replaced(slice(700, 701), 0.0)), "time does not grow"),
    "samples missing": ({name: np.delete(values, slice(100, 200)) for name, values in good().items()}, "are missing"),
    "no unit": (renamed(good(), copx_m="copx"), "does not say its unit"),
    "unknown unit": (renamed(good(), copx_m="copx[furlong]"), "has the unit 'furlong'"),
    "other columns": (renamed(good(), copx_m="a_m", copy_m="b_m", fz_N="c"), "neither COP"),
}


@pytest.mark.parametrize("name", list(BAD))
@pytest.mark.parametrize("command", ["sway", "identify"])
def test_a_bad_recording_gets_one_sentence(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, sentence = BAD[name]
    path = write(tmp_path / "trial.csv", table)
    more = ["--height", "1.7", "--sex", "male"] if command == "identify" else []
    out = tmp_path / "out.csv"
    assert main([command, str(path), *more, "--out", str(out), "--plots", str(tmp_path / "pictures")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert not out.exists()
    assert not (tmp_path / "pictures").exists()


def test_the_good_one_is_good(tmp_path: Path) -> None:
    assert read_recording(write(tmp_path / "trial.csv", good())).duration == 30


def test_a_short_gap_is_bridged_and_said(tmp_path: Path) -> None:
    path = write(tmp_path / "trial.csv", changed(copx_m=replaced(slice(500, 505), np.nan)))
    found = read_recording(path)
    assert np.isfinite(found.cop).all()
    assert any("5 missing samples" in note for note in found.notes)
    assert np.abs(found.cop[500:505, 0] - good()["copx_m"][500:505]).max() < 1e-3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "fewer than three lines"),
        (b"time,copx_m,copy_m\n0,1,2\n1,2\n2,3,4\n3,4,5\n", "line 3 does not have"),
        (b"\x00\x01\x02\xff" * 100, "cannot be read as text"),
        (b"1,2,3\n4,5,6\n7,8,9\n1,1,1\n", "the first line holds numbers"),
        (b"only\none\ncolumn\nhere\n", "one column only"),
    ],
)
def test_files_that_are_no_tables(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "trial.csv"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=sentence):
        read_recording(path)


def test_damaged_gzip_and_c3d_and_wrong_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"\x1f\x8b\x08broken")
    (tmp_path / "a.c3d").write_bytes(b"\x02\x50 but nothing else")
    for name, sentence in (
        ("a.csv.gz", "cannot be read"),
        ("a.c3d", "C3D"),
        ("a.docx", "unknown kind"),
        ("b.csv", "no such file"),
    ):
        with pytest.raises(RecordingError, match=sentence):
            read_recording(tmp_path / name)


def test_who_stood_there_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "trial.csv", good())
    assert main(["identify", str(path)]) == 2
    assert "who stood there" in capsys.readouterr().err
    for more, sentence in (
        (["--fix", "stiffness"], "NAME=VALUE"),
        (["--fix", "stiffness=x"], "must be a number"),
        (["--prior", "delay=0.1"], "log-sd"),
        (["--method", "magic"], "no method"),
        (["--bootstrap", "3"], "from 10"),
        (["--columns", "z=copx_m"], "no quantity"),
        (["--origins", "1", "2"], "x,y of each plate"),
    ):
        assert main(["identify", str(path), "--height", "1.7", "--sex", "male", *more]) == 2
        assert sentence in capsys.readouterr().err


def test_a_folder_with_bad_files_gives_a_table_of_the_good_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "c"):
        write(tmp_path / f"{name}.csv", good())
    write(tmp_path / "b.csv", BAD["flat line"][0])
    assert main(["sway", str(tmp_path), "--out", str(tmp_path / "out.nc"), "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["recordings"] == 2
    assert "never moves" in found["bad"]["b.csv"]
    assert "left out b.csv" in printed.err
    (tmp_path / "a.csv").unlink()
    (tmp_path / "c.csv").unlink()
    assert main(["sway", str(tmp_path), "--out", str(tmp_path / "none.csv")]) == 2
    assert not (tmp_path / "none.csv").exists()


def _row(path: Path, settings: Mapping[str, Any]) -> dict[str, float | str]:
    if path.name == settings["stop_at"] and not Path(settings["flag"]).exists():
        raise KeyboardInterrupt
    with Path(settings["log"]).open("a") as log:
        log.write(path.name + "\n")
    return {"recording": path.name, "value": float(len(path.name)), "empty": float("nan")}


def test_an_interrupted_folder_goes_on_where_it_stopped(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.csv", {"time_s": TIME[:3]}) for name in "abcd"]
    flag, log = tmp_path / "flag", tmp_path / "log"
    settings = {"stop_at": "c.csv", "flag": str(flag), "log": str(log)}
    with pytest.raises(KeyboardInterrupt):
        run_cohort(files, _row, settings, out=tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()
    flag.touch()
    table = run_cohort(files, _row, settings, out=tmp_path / "t.csv")
    assert table.resumed == 2
    assert log.read_text().split() == ["a.csv", "b.csv", "c.csv", "d.csv"]  # each once
    assert [row["recording"] for row in table.rows] == ["a.csv", "b.csv", "c.csv", "d.csv"]
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "recording,value,empty"


@pytest.mark.slow
def test_a_killed_folder_goes_on_with_several_workers(tmp_path: Path) -> None:
    for index in range(12):
        write(tmp_path / f"p{index:02}.csv", good())
    out = tmp_path / "out.csv"
    command = [sys.executable, "-m", "posture.cli", "sway", str(tmp_path), "--out", str(out), "--workers", "2"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    parts, until = tmp_path / "out.csv.parts", clock.monotonic() + 120
    while not (parts.is_dir() and len(list(parts.glob("*.json"))) >= 3):
        assert clock.monotonic() < until
        clock.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert not out.exists()
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=240, check=True)
    found = json.loads(again.stdout)
    assert found["recordings"] == 12
    assert found["resumed"] >= 3
    assert len(out.read_text().splitlines()) == 13


def test_a_dask_scheduler_gives_the_same_table(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    from posture.commands.sway import sway_row

    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv", good())
    settings = {"columns": {}, "surface": 0.0, "forward": "x"}
    settings |= dict.fromkeys(("unit", "rate", "origins", "start", "end", "cutoff"))
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    local = run_cohort(files, sway_row, settings, out=tmp_path / "local.csv")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        remote = run_cohort(files, sway_row, settings, out=tmp_path / "dask.csv", scheduler=cluster.scheduler_address)
    assert (tmp_path / "dask.csv").read_text() == (tmp_path / "local.csv").read_text()
    assert len(remote.rows) == len(local.rows) == 2
