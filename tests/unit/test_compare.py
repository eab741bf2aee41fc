"""The table of controllers: figures of one run, endings that are told, and the command line."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from posture.body import load_body
from posture.cli import main
from posture.compare import CASES, compare, run_case, table
from posture.deck import Sine, SineDeck, constant_deck
from posture.laws import make_law
from posture.simulate import simulate
from posture.swap import stand

ROCKING = SineDeck({"pitch": [Sine(0.03, 5.0, 0.0)]})


def test_figures_are_those_of_the_run():
    body = load_body("cip")
    one = run_case(body, "pd", "as designed", ROCKING, duration=6.0)
    run = simulate(body, ROCKING, make_law("pd", body, ROCKING), duration=6.0)
    assert one.stood == 6.0
    assert one.sway_mm == pytest.approx(1000 * run.position_com_in_deck.values[:, 0].std())
    weight = 60 * 9.80665 * 1.13
    assert one.effort == pytest.approx(np.sqrt((run.joint_torque.values**2).mean()) / weight, rel=1e-6)


def test_a_heavier_person_leans_more_and_delay_costs_most():
    body = load_body("cip")
    sway = {case: run_case(body, "gravity_pd", case, ROCKING, duration=6.0).sway_mm for case in CASES}
    assert sway["as designed"] < sway["10 % heavier"]
    assert sway["as designed"] < sway["150 ms later"]


def test_one_who_falls_or_cannot_start_is_told():
    found = compare(["ankle_hip", "cip"], ["lqr", "ankle_hip"], ROCKING, duration=4.0, workers=1)
    assert [(one.body, one.controller) for one in found[:3]] == [("ankle_hip", "lqr")] * 3
    late = next(one for one in found if (one.body, one.controller, one.case) == ("ankle_hip", "lqr", "150 ms later"))
    assert late.stood < 4.0
    assert late.ending == "fell"
    assert "fell" in late.why
    lines = table(found)
    assert any("fell at" in line for line in lines)
    assert any("not run (1)" in line for line in lines)
    assert any(line.startswith("(1) ankle_hip does not fit cip") for line in lines)


def test_a_law_that_finds_no_torque_gives_up_and_keeps_its_figures():
    """No joint of a plane body helps against roll: the centre of pressure leaves the feet; a step would be needed."""
    rolling = SineDeck({"roll": [Sine(0.4, 8.0, math.pi / 2)]})  # level at first
    one = run_case(stand("jump"), "whole_body", "as designed", rolling, duration=6.0)
    assert one.ending == "gave up"
    assert 0 < one.stood < 3.0
    assert one.effort > 0
    assert "no torques keep the feet on the deck" in one.why
    lines = table([one, *(replace(one, case=case) for case in CASES if case != one.case)])
    assert any(f"gave up at {one.stood:.1f} s (1)" in line for line in lines)


def test_processes_give_what_one_process_gives():
    one, two = (compare(["cip"], ["pd"], ROCKING, duration=1.0, workers=workers) for workers in (1, 2))
    assert one == two


def test_compare_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "table.csv"
    line = ["compare", "--bodies", "cip", "--controllers", "pd", "lqr", "--duration", "2", "--out", str(path)]
    assert main([*line, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 6
    with path.open() as file:
        assert [row["controller"] for row in csv.DictReader(file)] == [row["controller"] for row in rows]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["compare", "--controllers", "pdd"], "no controller is called 'pdd'"),
        (["compare", "--sea", "SS11", "--bodies", "cip"], "no sea state is called 'SS11'"),
        (["compare", "--bodies", "cpi"], "no body is called 'cpi'"),
        (["compare", "--duration", "-1", "--sea", "still"], "duration"),
        (["compare", "--out", "table.txt"], "written as .csv"),
        (["give", "cip", "--out", "cip.sdf"], "exported as .urdf"),
        (["stand", "absent.urdf", "--out", "x.urdf"], "no such file"),
    ],
)
def test_refusals_on_the_command_line(line, message, capsys):
    assert main(line) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_stand_and_give_on_the_command_line(tmp_path, capsys):
    assert main(["stand", "jump", "--out", str(tmp_path / "standing.urdf")]) == 0
    assert "both legs move as one" in capsys.readouterr().out
    given = tmp_path / "given.urdf"
    assert main(["give", str(tmp_path / "standing.urdf"), "--lock", "knee", "--out", str(given)]) == 0
    assert "knee" not in load_body(given).joint_names
    assert load_body(given).mass == pytest.approx(80.0)


def test_a_still_deck_leaves_a_quiet_controller_quiet():
    assert run_case(load_body("cip"), "pd", "as designed", constant_deck(), duration=1.0).sway_mm == 0.0


def test_a_stiff_body_is_compared_with_a_shorter_step(capsys):
    """What one step refuses, in a sentence that names the step it needs, another runs."""
    line = ["compare", "--bodies", "cip", "--controllers", "pd", "--duration", "1", "--sea", "still", "--json"]
    endings = {}
    for step in ("0.1", "0.0025"):
        assert main([*line, "--step", step]) == 0
        endings[step] = {row["ending"]: row["why"] for row in json.loads(capsys.readouterr().out)}
    assert list(endings["0.0025"]) == ["stood"]
    assert "step" in endings["0.1"]["not run"]
