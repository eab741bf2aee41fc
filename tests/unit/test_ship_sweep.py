"""Sweeps and `posture ship`: one condition, tables, plots, kill and resume, wrong inputs."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from posture import cli
from posture.errors import PostureError, ResultError
from posture.results import load, save
from posture.ship.assess import Sailor, assess
from posture.ship.hull import Hull, rao_table, read_ship, write_rao_csv
from posture.ship.motion import SeaDeck
from posture.ship.polar import draw_polar
from posture.ship.sea import sea_state
from posture.ship.settings import parse_voyage
from posture.ship.stance import Stance
from posture.ship.sweep import run_sweep, write_table

SMALL = """
seed = 3
headings_deg = [0, 90, 180]
speeds = [0.0, 6.0]
[ship]
length = 100
beam = 14
draught = 5
metacentric_height = 1.2
[[seas]]
state = "SS5"
[[seas]]
type = "jonswap"
height = 5
peak_period = 11
[stations]
bridge = [20.0, 0.0, 10.0]
deck = [-30.0, 0.0, 4.0]
[count]
duration = 120
"""


def template() -> str:
    return Path(cli.__file__).parent.joinpath("ship", "voyage.toml").read_text(encoding="utf-8")


def test_a_sweep_holds_what_single_conditions_give(tmp_path: Path) -> None:
    voyage = parse_voyage(SMALL, tmp_path / "voyage.toml")
    told: list[tuple[int, int]] = []
    table = run_sweep(voyage, tmp_path / "table.nc", progress=lambda done, total: told.append((done, total)))
    assert told == [(number, 12) for number in range(1, 13)]
    single = assess(
        voyage.ship,
        voyage.seas["SS5"],
        heading=math.pi / 2,
        speed=6.0,
        station=(20.0, 0.0, 10.0),
        sailor=voyage.sailor,
        seed=[3, 0, 1, 1],
    )
    cell = table.sel(sea="SS5", speed=6.0, heading=90.0, station="bridge")
    assert float(cell["interruptions_per_minute"]) == single["counted"].per_minute
    assert float(cell["dose"]) == single["dose"]
    assert float(cell["rms"].sel(quantity="roll")) == single["rms"]["roll"]
    np.testing.assert_array_equal(load(tmp_path / "table.nc", schema="posture-sweep")["dose"], table["dose"])
    # Beam seas roll, head seas do not; a larger sea makes more people sick.
    assert float(table["rms"].sel(quantity="roll", heading=180.0).max()) < 1e-9
    assert float(table["rms"].sel(quantity="roll", heading=90.0).min()) > 0.01
    write_table(table, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    assert len(rows) == 24
    assert float(rows[0]["dose"]) == pytest.approx(float(table["dose"].values[0, 0, 0, 0]), rel=1e-6)
    draw_polar(table, tmp_path / "one.svg", station="deck")
    draw_polar(table, tmp_path / "two.svg", station="deck")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    with pytest.raises(ResultError, match="no station is called 'decks'; did you mean 'deck'"):
        draw_polar(table, tmp_path / "one.svg", station="decks")


def test_a_file_of_another_voyage_is_not_continued(tmp_path: Path) -> None:
    run_sweep(parse_voyage(SMALL, tmp_path / "voyage.toml"), tmp_path / "table.nc")
    before = (tmp_path / "table.nc").read_bytes()
    other = parse_voyage(
        SMALL.replace("beam = 14", "beam = 15").replace("seed = 3", "seed = 4"), tmp_path / "voyage.toml"
    )
    with pytest.raises(ResultError, match="a voyage with other ship, seed; give another --out, or --restart"):
        run_sweep(other, tmp_path / "table.nc")
    assert (tmp_path / "table.nc").read_bytes() == before
    assert int(run_sweep(other, tmp_path / "table.nc", restart=True)["done"].sum()) == 12


@pytest.mark.slow
def test_a_killed_sweep_goes_on_to_identical_numbers(tmp_path: Path) -> None:
    # 12 headings × 3 speeds × 4 seas, one station, 40 s counted for each.
    text = template().replace("duration = 1200", "duration = 40").replace("flight_deck = ", "# flight_deck = ")
    text = text.replace("spreading = 2", "# spreading = 2")
    (tmp_path / "voyage.toml").write_text(text, encoding="utf-8")
    whole, cut = tmp_path / "whole.nc", tmp_path / "cut.nc"
    program = "import posture.ship.sweep as s; s.SAVE_EVERY = 0.5\nfrom posture.cli import main; main()"
    command = [sys.executable, "-c", program, "ship", "sweep", str(tmp_path / "voyage.toml"), "--out"]
    child = subprocess.Popen([*command, str(cut)], stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if "72 of 144" in line:
            break
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (not cut.exists() or load(cut, schema="posture-sweep")["done"].sum() < 40):
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stderr.close()
    half = load(cut, schema="posture-sweep")
    done = int(half["done"].sum())
    assert 40 <= done < 144
    assert np.isnan(half["dose"].values).sum() == 144 - done
    for path in (cut, whole):
        subprocess.run([*command, str(path)], check=True, capture_output=True)
    resumed, straight = (load(path, schema="posture-sweep") for path in (cut, whole))
    assert int(resumed["done"].sum()) == 144
    for name in straight.data_vars:
        assert resumed[name].values.tobytes() == straight[name].values.tobytes()
    assert [path.name for path in tmp_path.glob(".*")] == [
        path.name for path in tmp_path.glob(".cut.nc.*.part")
    ]  # a killed writer may leave its own temporary file, nothing else


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    voyage = parse_voyage(SMALL, tmp_path / "voyage.toml")

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(voyage, tmp_path / "table.nc", progress=stop)
    assert int(load(tmp_path / "table.nc", schema="posture-sweep")["done"].sum()) == 5


def test_counting_with_a_simulated_person(tmp_path: Path) -> None:
    text = SMALL.replace("headings_deg = [0, 90, 180]", "headings_deg = [90]").replace("[0.0, 6.0]", "[6.0]")
    text = text.replace("duration = 120", 'duration = 10\nmethod = "model"').replace("deck = [-30.0, 0.0, 4.0]\n", "")
    text += "[stance]\nwidth = 0.5\nfacing_deg = 30\n"
    text += "[model]\n[model.controller]\nstiffness_ratio = 8.0\ndamping_time = 0.025\n"
    table = run_sweep(parse_voyage(text, tmp_path / "voyage.toml"), tmp_path / "table.nc")
    assert np.isfinite(table["interruptions_per_minute"].values).all()
    rigid = text.replace('"model"', '"rigid"').replace("width = 0.5\n", "").split("[model]")[0]
    rigid = parse_voyage(rigid, tmp_path / "voyage.toml")
    assert rigid.sailor.simulate is None
    with pytest.raises(PostureError, match="a voyage with other"):
        run_sweep(rigid, tmp_path / "table.nc")


def test_a_simulated_person_who_knows_the_deck_knows_that_of_each_condition(tmp_path: Path) -> None:
    text = SMALL.replace("duration = 120", 'duration = 10\nmethod = "model"').replace("deck = [-30.0, 0.0, 4.0]\n", "")
    text += '[model]\nbody = "ankle_hip"\n[model.controller]\ntype = "lqr_deck"\n'
    voyage = parse_voyage(text, tmp_path / "voyage.toml")
    assert voyage.sailor.simulate is not None
    for heading in (2.0, 3.0):
        deck = SeaDeck(voyage.ship, sea_state("SS5"), heading=heading, speed=6.0, station=(-30.0, 0.0, 4.0), seed=1)
        run = voyage.sailor.simulate(deck, 5.0)
        assert np.ptp(run.deck_specific_force.values[:, 0]) > 0.1  # m/s²
        assert np.ptp(run.joint_position.values, axis=0).max() < 1e-6  # with the right deck nothing is left to correct


def test_the_sailor_looks_where_told() -> None:
    hull, sea = Hull(100, 14, 5, 1.2), sea_state("SS6")
    found = [
        assess(
            hull,
            sea,
            heading=math.pi / 2,
            speed=0.0,
            station=(0, 0, 8),
            seed=1,
            sailor=Sailor(stance=Stance(facing=facing), duration=600),
        )
        for facing in (0.0, math.pi / 2)
    ]
    # In beam seas one who looks to the side rolls along the short way of the feet: more stumbles.
    assert found[1]["formula"]["tip_fore_aft"] > found[0]["formula"]["tip_lateral"]
    assert found[1]["counted"].per_minute > found[0]["counted"].per_minute > 0
    with pytest.raises(ResultError, match="counting with a model needs a way to simulate"):
        Sailor(method="model")


def run_cli(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def test_the_command_line_answers_the_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    voyage = tmp_path / "voyage.toml"
    assert run_cli("ship", "template", "--out", voyage) == 0
    assert run_cli("ship", "template", "--out", voyage) == 2
    assert "exists already" in capsys.readouterr().err
    assert run_cli("ship", "template") == 0
    assert capsys.readouterr().out == template()
    asked = ("ship", "mii", voyage, "--heading-deg", 90, "--speed", 5, "--sea", "SS4", "--station", "bridge")
    assert run_cli(*asked) == 0
    text = capsys.readouterr().out
    assert "interruptions: " in text
    assert "lateral_acceleration" in text
    assert " mm for 0.1 %" in text
    assert run_cli(*asked, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counted"]["interruptions_per_minute_95_percent"][0] <= found["counted"]["interruptions_per_minute"]
    assert found["interruptions_per_minute"] == pytest.approx(sum(found["formula"].values()))


def test_the_command_line_sweeps_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "voyage.toml").write_text(SMALL)
    out, plots = tmp_path / "table.nc", tmp_path / "plots"
    assert run_cli("ship", "sweep", tmp_path / "voyage.toml", "--out", out, "--plots", plots, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["conditions"] == 12
    assert len(found["files"]) == 7
    assert all(Path(name).stat().st_size > 0 for name in found["files"])
    assert run_cli("ship", "draw", out, "--plots", tmp_path / "again") == 0
    for path in plots.glob("*.svg"):
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    # Two conditions share the highest rate, at different seas and headings.
    table = load(out, schema="posture-sweep")
    rates = table["interruptions_per_minute"].values
    rates[:] = 0.0
    rates[0, 1, 2, 0] = rates[1, 0, 1, 1] = 3.0
    save(table, out)
    capsys.readouterr()
    assert run_cli("ship", "sweep", tmp_path / "voyage.toml", "--out", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["worst_per_minute"] == 3.0
    assert found["worst_at"] == {"sea": "SS5", "speed": "6.0", "heading": "180.0", "station": "bridge"}
    out.write_bytes(out.read_bytes()[:-100])
    capsys.readouterr()
    assert run_cli("ship", "draw", out, "--plots", plots) == 2
    assert capsys.readouterr().err.startswith("posture: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("height = 5\n", "height = -5\n", "significant wave height is -5"),
        ("[0, 90, 180]", "[0, 1.5708, 3.1416]", "looks like radians (90°)"),
        ("bridge = [20.0, 0.0, 10.0]", "bridge = [90.0, 0.0, 10.0]", "lies outside hull: 90 m forward"),
        ("bridge = [20.0, 0.0, 10.0]", "bridge = [20.0, 0.0]", "station must be three numbers"),
        ("speeds = [0.0, 6.0]", "speeds = [0.0, 60.0]", "speeds is 60, but must be a number from 0 to 40 m/s"),
        ("speeds = [0.0, 6.0]", "speeds = [6.0, 6.0]", "give a list of different numbers"),
        ("beam = 14\n", "", "[ship] lacks beam"),
        ("beam = 14", "bream = 14", "no setting is called 'bream'; did you mean 'beam'"),
        ('state = "SS5"', 'state = "SS55"', "no sea state is called 'SS55'"),
        ('type = "jonswap"', 'type = "jonswop"', "no type of sea is called 'jonswop'; did you mean 'jonswap'"),
        ("duration = 120", "duration = 1", "counted duration is 1, but must be a number from 10"),
        ("duration = 120", 'method = "guess"', "no way of counting is called 'guess'"),
        ("seed = 3", 'criteria = "nato"', "no criteria table is called 'nato'"),
        ("metacentric_height = 1.2", 'metacentric_height = "1.2"', "metacentric_height is '1.2', but must be a number"),
        ("[ship]", "[ship", "not valid TOML"),
        ("[ship]", "[stance]\nwidth = 0.5\n[ship]", "place the feet of a model"),
        ("duration = 120", 'method = "model"\n[person]\nheight = 1.0', "[person] height describe the rigid person"),
        ("[ship]", "[model]\n[ship]", "[model] is of no use unless"),
        ("[ship]", "[rail]\nforce = -5\n[ship]", "rail: force is -5, but must be a number from 0 to 2000 N"),
        ("length = 100", 'table = "none.csv"', "no setting is called 'draught'"),
    ],
)
def test_wrong_voyages_get_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in SMALL
    (tmp_path / "voyage.toml").write_text(SMALL.replace(old, new))
    assert run_cli("ship", "sweep", tmp_path / "voyage.toml", "--out", tmp_path / "table.nc") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "table.nc").exists()


SCENARIO = """
duration = 2
seed = 1
[deck]
type = "sea"
heading_deg = 120
speed = 5
station = [10, 0, 6]
ship = { length = 100, beam = 14, draught = 5, metacentric_height = 1.1 }
sea = { state = "SS5", spreading = 2 }
waves = 100
[stance]
width = 0.5
foot_angle_deg = 10
facing_deg = 90
"""


def test_a_scenario_takes_a_sea_and_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sea.toml").write_text(SCENARIO)
    assert run_cli("simulate", tmp_path / "sea.toml", "--out", tmp_path / "sea.nc", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["interruptions_per_minute_95_percent"][1] > 0
    time_s = np.arange(0, 60.0, 0.5)
    log = np.column_stack((time_s, 3 * np.sin(time_s), np.cos(0.8 * time_s)))
    np.savetxt(tmp_path / "log.csv", log, delimiter=",", header="time_s,roll_deg,heave_m", comments="")
    (tmp_path / "log.toml").write_text('duration = 2\n[deck]\ntype = "log"\nfile = "log.csv"\nflip = ["heave"]\n')
    assert run_cli("simulate", tmp_path / "log.toml", "--out", tmp_path / "log.nc", "--json") == 0
    assert json.loads(capsys.readouterr().out)["deck_roll_rms_deg"] > 0.5
    for old, new, message in (
        ("heading_deg = 120", "heading_deg = 2.0944", "looks like radians (120°)"),
        ("heading_deg = 120\n", "", "[deck] lacks heading_deg"),
        ("width = 0.5", "widht = 0.5", "did you mean 'width'"),
        ("station = [10, 0, 6]", "station = [100, 0, 6]", "lies outside hull"),
    ):
        (tmp_path / "bad.toml").write_text(SCENARIO.replace(old, new))
        assert run_cli("simulate", tmp_path / "bad.toml", "--out", tmp_path / "bad.nc") == 2
        assert message in capsys.readouterr().err


def test_transfer_functions_and_logs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    omega, angles = np.linspace(0.2, 2.0, 40), np.linspace(0, math.pi, 7)
    hull = Hull(100, 14, 5, 1.2)
    values = np.stack([hull.transfer(omega, np.full(40, angle), 0.0) for angle in angles])[None]
    table = rao_table(speeds=np.zeros(1), headings=angles, omega=omega, values=values, name="hull")
    write_rao_csv(table, tmp_path / "ship.csv")
    assert run_cli("ship", "raos", tmp_path / "ship.csv", "--out", tmp_path / "again.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["headings"] == 12
    assert found["roll_peak_period_s"] == pytest.approx(hull.roll_period, rel=0.1)
    np.testing.assert_allclose(read_ship(tmp_path / "again.csv").values, table.values, atol=1e-9)
    time_s = np.arange(0, 120.0, 1.0)
    roll = 14 * np.sin(0.7 * time_s)
    np.savetxt(
        tmp_path / "log.csv", np.column_stack((time_s, roll)), delimiter=",", header="time_s,roll_deg", comments=""
    )
    assert run_cli("ship", "log", tmp_path / "log.csv", "--station", 0, 0, 5, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unknown_motions"] == ["surge", "sway", "heave", "pitch", "yaw"]
    verdicts = {row["quantity"]: row["verdict"] for row in found["criteria"]}
    assert verdicts["roll"] == verdicts["interruptions_per_minute"] == "FAIL"  # 14° up and down, both sides
    assert verdicts["pitch"] == "pass"
    assert verdicts["lateral_acceleration"] == verdicts["sickness_percent"] == "unknown"
    # By hand at 14°/√2, which a sine exceeds half of the time: gravity, 5 m of height and 4/3 h times ω² = 0.49/s².
    middle = 230 - 910 * math.tan(math.radians(14 / math.sqrt(2))) * (1 + 0.49 * (5 + 4 / 3 * 0.91) / 9.80665)
    assert found["stance_margin_percentiles_mm"]["50"] == pytest.approx(middle, abs=5)
    assert run_cli("ship", "log", tmp_path / "log.csv", "--criteria", "nordforsk_cruise_liner") == 0
    text = capsys.readouterr().out
    assert "careful: surge and sway are not known." in text
    assert "limits of nordforsk_cruise_liner:" in text
    assert run_cli("ship", "log", tmp_path / "log.csv", "--criteria", "none") == 2
    assert "no criteria table is called 'none'" in capsys.readouterr().err
    assert run_cli("ship", "raos", tmp_path / "ship.csv", "--draught", 5) == 2
    assert "needs both --draught and --metacentric-height" in capsys.readouterr().err
    assert found["interruptions"] == pytest.approx(2 * 119 * 0.7 / (2 * math.pi), abs=2)  # both sides, each period
    assert run_cli("ship", "log", tmp_path / "none.csv") == 2
