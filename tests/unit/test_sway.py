"""Posturography against closed forms, plain definitions and NeuroKit2; recordings in all their formats."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from posture import RecordingError, measure_sway, read_recording
from posture.cohort import recording_files, run_cohort
from posture.recordings import Recording, center_of_pressure_of_plates
from posture.sway import (
    MEASURES,
    as_row,
    dfa_exponent,
    dfa_windows,
    diffusion,
    diffusion_fit,
    ellipse,
    power_quantiles,
    sample_entropy,
    stay,
    sway_density,
)


def stance(seed: int = 0, rate: float = 100.0, seconds: float = 60.0) -> np.ndarray:
    """A plausible COP, m: two filtered random walks."""
    random = np.random.default_rng(seed)
    count = round(seconds * rate)
    steps = random.standard_normal((count, 2)) * np.array([0.0008, 0.0005]) * math.sqrt(100 / rate)
    walk = np.zeros((count, 2))
    for index in range(1, count):
        walk[index] = walk[index - 1] * (1 - 0.5 / rate) + steps[index]
    kernel = np.hanning(round(0.3 * rate))
    return np.column_stack([np.convolve(walk[:, k], kernel / kernel.sum(), mode="same") for k in range(2)])


def write_table(path: Path, columns: dict[str, np.ndarray], separator: str = ",") -> Path:
    rows = np.column_stack(list(columns.values()))
    lines = [separator.join(columns), *(separator.join(f"{value:.9g}" for value in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_circle_has_the_measures_of_a_circle() -> None:
    rate, radius, turns, seconds = 200.0, 0.01, 24, 60.0
    phase = 2 * math.pi * turns * np.arange(round(seconds * rate)) / (seconds * rate)
    recording = Recording("circle", rate, radius * np.column_stack((np.cos(phase), np.sin(phase))))
    row = as_row(measure_sway(recording, cutoff=0))
    length = 2 * math.pi * radius * turns
    assert row["path_length_resultant"] == pytest.approx(length, rel=1e-3)
    assert row["path_length_ap"] == pytest.approx(4 * radius * turns, rel=1e-3)
    assert row["mean_speed_resultant"] == pytest.approx(length / seconds, rel=1e-3)
    assert row["rms_resultant"] == pytest.approx(radius, rel=1e-9)
    assert row["rms_ap"] == pytest.approx(radius / math.sqrt(2), rel=1e-6)
    assert row["range_resultant"] == pytest.approx(2 * radius, rel=1e-6)
    assert row["mean_frequency_resultant"] == pytest.approx(turns / seconds, rel=1e-3)
    assert row["frequency_50_ap"] == pytest.approx(turns / seconds, abs=0.03)  # half a bin of the 20 s windows
    # For many samples the factor tends to the 95 % point of χ² with two degrees of freedom, -2 ln 0.05.
    assert row["ellipse_area"] == pytest.approx(math.pi * -2 * math.log(0.05) * radius**2 / 2, rel=1e-3)
    assert set(MEASURES) <= {name.rsplit("_", 1)[0] for name in row} | set(row)


def test_the_ellipse_holds_95_percent_and_points_the_right_way() -> None:
    random = np.random.default_rng(1)
    turn = np.array([[math.cos(0.4), -math.sin(0.4)], [math.sin(0.4), math.cos(0.4)]])
    points = random.standard_normal((4000, 2)) * [0.009, 0.003] @ turn.T
    found = ellipse(points - points.mean(axis=0))
    assert found["ellipse_angle"] == pytest.approx(0.4, abs=0.02)
    fresh = (random.standard_normal((40000, 2)) * [0.009, 0.003] @ turn.T - points.mean(axis=0)) @ turn
    inside = (fresh[:, 0] / found["ellipse_major"]) ** 2 + (fresh[:, 1] / found["ellipse_minor"]) ** 2 < 1
    assert inside.mean() == pytest.approx(0.95, abs=0.01)
    assert found["ellipse_area"] == pytest.approx(math.pi * found["ellipse_major"] * found["ellipse_minor"])


def test_sample_entropy_is_its_definition_and_that_of_neurokit() -> None:
    neurokit = pytest.importorskip("neurokit2")
    values = stance(2, seconds=6)[:, 0]
    radius = 0.2 * values.std()
    counts = []
    for length in (2, 3):
        templates = np.array([values[i : i + length] for i in range(len(values) - 2)])
        distance = np.abs(templates[:, None] - templates[None]).max(axis=2)
        counts.append((distance <= radius).sum() - len(templates))
    assert sample_entropy(values) == pytest.approx(math.log(counts[0] / counts[1]), rel=1e-12)
    other = neurokit.entropy_sample(values, dimension=2, tolerance=radius)[0]
    assert sample_entropy(values) == pytest.approx(other, rel=1e-3)  # it may count ties differently


def test_dfa_of_known_noises_and_of_neurokit() -> None:
    neurokit = pytest.importorskip("neurokit2")
    noise = np.random.default_rng(3).standard_normal(20000)
    assert dfa_exponent(noise, 100.0) == pytest.approx(0.5, abs=0.03)
    assert dfa_exponent(np.cumsum(noise), 100.0) == pytest.approx(1.5, abs=0.05)
    values = stance(4)[:, 0]
    other = neurokit.fractal_dfa(values, scale=dfa_windows(len(values), 100.0), order=1, overlap=False)[0]
    assert dfa_exponent(values, 100.0) == pytest.approx(other, abs=0.01)  # it averages windows at both ends


def test_diffusion_is_its_definition_and_finds_a_known_critical_point() -> None:
    recording = Recording("walk", 100.0, stance(5))
    lags, squares = diffusion(recording)
    for lag in (1, 37, 1000):
        direct = np.mean((recording.cop[lag:] - recording.cop[:-lag]) ** 2, axis=0)
        np.testing.assert_allclose(squares[lag - 1, :2], direct, rtol=1e-9)
        assert lags[lag - 1] == lag / 100
    bent = np.where(lags < 1.2, 20 * lags, 24 + 3 * (lags - 1.2)) * 1e-6
    fit = diffusion_fit(lags, bent)
    assert fit["critical_time"] == pytest.approx(1.2, rel=1e-3)
    assert fit["critical_square"] == pytest.approx(24e-6, rel=1e-3)
    assert fit["diffusion_short"] == pytest.approx(10e-6, rel=1e-6)
    assert fit["diffusion_long"] == pytest.approx(1.5e-6, rel=1e-3)
    assert fit["diffusion_exponent_short"] == pytest.approx(0.5, rel=1e-6)


def test_power_quantiles_of_two_sines() -> None:
    time = np.arange(12000) / 100
    values = math.sqrt(0.9) * np.sin(2 * math.pi * 0.4 * time) + math.sqrt(0.1) * np.sin(2 * math.pi * 2 * time)
    half, most = power_quantiles(values, 100.0)
    assert half == pytest.approx(0.4, abs=0.05)
    assert most == pytest.approx(2.0, abs=0.1)


def test_sway_density_counts_the_time_nearby() -> None:
    line = np.column_stack((0.0001 * np.arange(1000), np.zeros(1000)))  # 10 mm/s at 100 Hz: 2.5 mm are 25 samples
    assert set(stay(line * (1 - 1e-9))[30:-30]) == {50.0}
    time = np.arange(6000) / 100
    phase = 2 * math.pi * time / 5
    wavy = np.column_stack((0.01 * time - 0.005 * 5 / (2 * math.pi) * np.cos(phase), np.zeros(6000)))
    found = sway_density(wavy, 100.0)  # slowest, 5 mm/s, once every 5 s and 50 mm
    assert found["density_peak_interval"] == pytest.approx(5, rel=0.03)  # the ends count as half peaks
    assert found["density_peak_distance"] == pytest.approx(0.05, rel=0.03)
    assert 0.85 < found["density_peak"] < 2 * 0.0025 / 0.005  # less than at the least speed, as it does not last


def test_plates_give_the_point_where_the_force_acts() -> None:
    random = np.random.default_rng(6)
    force = random.normal([3, -2, 700], [1, 1, 5], (50, 3))
    place = np.column_stack((random.normal(0.02, 0.01, (50, 2)), np.full(50, 0.04)))
    moment = np.cross(place, force)
    cop, vertical = center_of_pressure_of_plates([force], [moment], origins=[(0, 0)], surface=0.04)
    np.testing.assert_allclose(cop, place[:, :2], atol=1e-12)
    np.testing.assert_allclose(vertical, force[:, 2])
    # Two plates: the resultant's point lies on the line between both, by their loads.
    left, right = force * [1, 1, 0.4], force * [1, 1, 0.6]
    far = np.array([[0.0, 0.1], [0.0, -0.1]])
    moments = [np.cross(place, part) for part in (left, right)]
    both, _ = center_of_pressure_of_plates([left, right], moments, origins=far, surface=0.04)
    expected = place[:, :2] + 0.4 * far[0] + 0.6 * far[1]
    np.testing.assert_allclose(both, expected, atol=1e-12)


def test_tables_are_read_by_header_mapping_sign_and_unit(tmp_path: Path) -> None:
    cop, time = stance(7), np.arange(6000) / 100
    reference = read_recording(
        write_table(tmp_path / "a.csv", {"time": time, "copx_m": cop[:, 0], "copy_m": cop[:, 1]})
    )
    assert reference.rate == 100
    np.testing.assert_allclose(reference.cop, cop, atol=1e-9)
    files = {
        "units in brackets": (
            {"t[ms]": 1000 * time, "COP x [mm]": 1000 * cop[:, 0], "COP y [mm]": 1000 * cop[:, 1]},
            {},
        ),
        "given unit": ({"time": time, "ap": 100 * cop[:, 0], "ml": 100 * cop[:, 1]}, {"unit": "cm"}),
        "mapped": (
            {"time": time, "chan1": -cop[:, 1], "chan2": cop[:, 0]},
            {"unit": "m", "columns": {"x": "chan2", "y": "-chan1"}},
        ),
        "no time": ({"ap": cop[:, 0], "ml": cop[:, 1]}, {"unit": "m", "rate": 100.0}),
    }
    for name, (columns, options) in files.items():
        for separator, suffix in ((",", ".csv"), ("\t", ".tsv"), (";", ".txt")):
            path = write_table(tmp_path / f"{name}{suffix}", columns, separator)
            np.testing.assert_allclose(read_recording(path, **options).cop, cop, atol=1e-8, err_msg=name)
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    np.testing.assert_allclose(read_recording(packed).cop, cop, atol=1e-9)
    assert read_recording(packed).name == "b"


def test_raw_plates_in_tables(tmp_path: Path) -> None:
    cop, time = stance(8), np.arange(6000) / 100
    force = np.column_stack((np.full(6000, 1.0), np.full(6000, -2.0), 700 + np.sin(time)))
    place = np.column_stack((cop, np.zeros(6000)))
    moment = np.cross(place, force)
    one = {"time": time}
    for column, axis in enumerate("xyz"):
        one |= {f"F{axis}[N]": force[:, column], f"M{axis}[Nm]": moment[:, column]}
    found = read_recording(write_table(tmp_path / "raw.tsv", one, "\t"))
    np.testing.assert_allclose(found.cop, cop, atol=1e-8)
    assert found.mass == pytest.approx(700 / 9.80665, rel=1e-3)
    two = {"time": time}
    origins = ([0.0, 0.1], [0.0, -0.1])
    for plate, (share, origin) in enumerate(zip((0.5, 0.5), origins, strict=True), start=1):
        own = np.cross(place - [*origin, 0.0], share * force)
        for column, axis in enumerate("xyz"):
            two |= {f"F{axis}{plate}[N]": share * force[:, column], f"M{axis}{plate}[Nm]": own[:, column]}
    path = write_table(tmp_path / "two.csv", two)
    both = read_recording(path, origins=origins)
    np.testing.assert_allclose(both.cop, cop, atol=1e-8)
    assert both.feet["left"]["share"].mean() == pytest.approx(0.5)
    np.testing.assert_allclose(both.feet["left"]["cop"], cop, atol=1e-8)
    with pytest.raises(RecordingError, match="not where they are"):
        read_recording(path)
    lifted = (time > 20) & (time < 21)  # all weight on the right plate for a second: their sum shows nothing
    for axis in ("Fx1[N]", "Fy1[N]", "Fz1[N]", "Mx1[Nm]", "My1[Nm]"):
        other = axis.replace("1", "2")
        two |= {axis: np.where(lifted, 0.02, 1.0) * two[axis], other: np.where(lifted, 1.98, 1.0) * two[other]}
    with pytest.raises(RecordingError, match="the left foot carries less than 5 %"):
        read_recording(write_table(tmp_path / "lifted.csv", two), origins=origins)


def test_c3d_force_plates(tmp_path: Path) -> None:
    ezc3d = pytest.importorskip("ezc3d")
    cop, count = stance(9, rate=100.0), 6000
    force = np.column_stack((np.full(count, 2.0), np.full(count, 1.0), np.full(count, 650.0) + np.arange(count) % 7))
    corners = 1000 * np.array([[0.3, 0.25, 0], [-0.3, 0.25, 0], [-0.3, -0.25, 0], [0.3, -0.25, 0]]).T  # lab, mm
    # Plate axes by the corners: x from corner 2 to 1, y from 4 to 1; here lab axes. A plate measures force on itself.
    place = np.column_stack((cop, np.zeros(count)))
    moment = np.cross(place, force)
    channels = np.vstack((-force.T, -1000 * moment.T))
    content = ezc3d.c3d()
    content["parameters"]["POINT"]["RATE"]["value"] = [100]
    content["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    content["parameters"]["ANALOG"]["RATE"]["value"] = [100]
    names = ["Fx", "Fy", "Fz", "Mx", "My", "Mz"]
    content["parameters"]["ANALOG"]["LABELS"]["value"] = names
    content["parameters"]["ANALOG"]["UNITS"]["value"] = ["N"] * 3 + ["Nmm"] * 3
    plate = content["parameters"]["FORCE_PLATFORM"]
    plate["USED"]["value"], plate["TYPE"]["value"] = np.array([1]), np.array([2])
    plate["CORNERS"]["value"], plate["ORIGIN"]["value"] = corners.reshape(3, 4, 1), np.zeros((3, 1))
    plate["CHANNEL"]["value"] = np.arange(1, 7).reshape(6, 1)
    content["data"]["points"] = np.zeros((4, 0, count))
    content["data"]["analogs"] = channels.reshape(1, 6, count)
    content.write(str(tmp_path / "trial.c3d"))
    found = read_recording(tmp_path / "trial.c3d")
    assert found.rate == 100
    assert found.mass == pytest.approx(653 / 9.80665, rel=1e-3)
    np.testing.assert_allclose(found.cop - found.cop.mean(axis=0), cop - cop.mean(axis=0), atol=2e-6)  # float32 file
    turned = read_recording(tmp_path / "trial.c3d", forward="y")
    np.testing.assert_allclose(turned.cop[:, 0], found.cop[:, 1], atol=1e-9)
    np.testing.assert_allclose(turned.cop[:, 1], -found.cop[:, 0], atol=1e-9)


def test_a_folder_becomes_a_table(tmp_path: Path) -> None:
    from posture.commands.sway import sway_row

    time = np.arange(2000) / 100
    for index in range(3):
        cop = stance(20 + index, seconds=20)
        write_table(tmp_path / f"p{index}.csv", {"time": time, "copx_m": cop[:, 0], "copy_m": cop[:, 1]})
    settings = dict.fromkeys(("unit", "rate", "origins", "start", "end", "cutoff")) | {
        "columns": {},
        "surface": 0.0,
        "forward": "x",
    }
    files = recording_files(tmp_path, "p*.csv")
    table = run_cohort(files, sway_row, settings, out=tmp_path / "out" / "table.csv")
    run_cohort(files, sway_row, settings, out=tmp_path / "out" / "table.nc")
    with (tmp_path / "out" / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    alone = as_row(measure_sway(read_recording(tmp_path / "p1.csv")))
    with xr.open_dataset(tmp_path / "out" / "table.nc", engine="h5netcdf") as stored:
        assert list(stored.recording.values) == ["p0", "p1", "p2"]
        for name, value in alone.items():
            assert float(rows[1][name]) == pytest.approx(value, rel=1e-12, nan_ok=True)
            assert float(stored[name].sel(recording="p1")) == pytest.approx(value, rel=1e-12, nan_ok=True)
    assert not table.bad
    assert not list((tmp_path / "out").glob("*.parts"))


def test_pictures_are_reproducible(tmp_path: Path) -> None:
    from posture.plots import write_figure
    from posture.plots.sway import diffusion_plot, stabilogram, statokinesigram

    recording = Recording("trial", 50.0, stance(1, rate=50.0, seconds=20))
    for draw in (stabilogram, statokinesigram, diffusion_plot):
        for name in ("one.svg", "two.svg"):
            write_figure(draw(recording), tmp_path / name)
        text = (tmp_path / "one.svg").read_text()
        assert text == (tmp_path / "two.svg").read_text()
        assert "trial" in text
