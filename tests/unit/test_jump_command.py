"""posture jump and posture muscles, and their pictures."""

import json

import numpy as np
import pytest

from posture.anthropometry import Person
from posture.body import load_body
from posture.cli import main
from posture.inverse import to_pinocchio
from posture.jump_motion import jump_motion
from posture.muscle_analysis import analyse_muscles
from posture.muscle_plots import plot_muscles
from posture.results import load


@pytest.mark.slow
def test_jump_writes_result_and_pictures(tmp_path, capsys):
    out, plots = tmp_path / "jump.nc", tmp_path / "plots"
    assert main(["jump", "--out", str(out), "--plots", str(plots), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["height_by_impulse_m"] == pytest.approx(found["height_by_flight_m"], abs=1e-3)
    assert found["sharing_kkt_largest"] < 1e-8
    assert found["infeasible_frames"] == 0
    result = load(out)
    assert result["muscle_path"].sizes["axis"] == 3
    first = {path.name: path.read_bytes() for path in plots.iterdir()}
    assert set(first) == {"activations.svg", "joint_loads.svg"}
    plot_muscles(result, tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == first
    assert all(picture.count(b"<path") > 20 for picture in first.values())


@pytest.mark.slow
def test_another_person_jumps_from_a_squat(tmp_path):
    motion = jump_motion(load_body("jump", person=Person(60.0, 1.65, "female")), kind="squat")
    assert motion.body.mass == pytest.approx(60)
    heights = motion.heights()
    assert heights["by_impulse"] == pytest.approx(heights["by_velocity"], abs=1e-3)
    assert heights["by_flight"] == pytest.approx(heights["by_velocity"], abs=1e-3)


def test_moment_arms_of_a_posture_are_printed(capsys):
    assert main(["muscles", "jump", "--posture", "right_knee=90", "--json"]) == 0
    rows = {row["muscle"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 18
    # The knee cap keeps the extensors at its radius: a quarter turn lengthens them by r·π/2.
    assert rows["right_vasti"]["moment_arms_m"] == {"right_knee": -0.042}
    stretched = rows["right_vasti"]["length_m"] - rows["left_vasti"]["length_m"]
    assert stretched == pytest.approx(0.042 * np.pi / 2, abs=2e-5)
    assert main(["muscles", "jump"]) == 0
    assert "right_soleus" in capsys.readouterr().out


def test_force_record_with_two_plates(tmp_path, capsys):
    time = np.arange(0, 3, 1e-3)
    force = np.full(len(time), 70 * 9.80665)
    force[(time >= 1) & (time < 1.15)] = 2000
    flight = 2 * (2000 / 70 - 9.80665) * 0.15 / 9.80665
    force[(time >= 1.15) & (time < 1.15 + flight)] = 0
    path = tmp_path / "plates.txt"
    np.savetxt(path, np.column_stack((0.5 * force, 0.5 * force)), header="left right", comments="")
    assert main(["jump", "--force", str(path), "--rate", "1000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mass_kg"] == pytest.approx(70, rel=1e-6)
    assert found["height_by_impulse_m"] == pytest.approx(found["height_by_flight_m"], rel=0.02)
    np.savetxt(path, np.column_stack((np.arange(len(force)), 0.5 * force, 0.5 * force)), header="sample left right")
    assert main(["jump", "--force", str(path), "--rate", "1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found  # a column that counts is no plate
    np.savetxt(path, force)
    assert main(["jump", "--force", str(path)]) == 2
    assert "say its rate with --rate" in capsys.readouterr().err


ARM = """<robot name="arm"><link name="table"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="forearm"><inertial><origin xyz="0.15 0 0"/><mass value="1.5"/>
<inertia ixx="0.002" iyy="0.012" izz="0.012" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="revolute"><parent link="table"/><child link="forearm"/><axis xyz="0 -1 0"/>
<limit lower="-1" upper="2.5" effort="50" velocity="10"/></joint></robot>"""
ARM_MUSCLES = """[muscle.biceps]
max_force = 600.0
path = [{ link = "table", point = [0.0, 0.0, 0.3] }, { link = "forearm", point = [0.04, 0.0, 0.0] }]
[muscle.triceps]
max_force = 900.0
path = [{ link = "table", point = [-0.02, 0.0, 0.3] }, { link = "forearm", point = [-0.025, 0.0, 0.0] }]
"""


def test_any_urdf_body_held_by_its_root(tmp_path, capsys):
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "arm.muscles.toml").write_text(ARM_MUSCLES)
    time = np.linspace(0, 1, 60)
    np.savetxt(
        tmp_path / "hold.csv", np.column_stack((time, 0 * time)), delimiter=",", header="time,elbow", comments=""
    )
    out, plots = tmp_path / "hold.nc", tmp_path / "plots"
    arguments = ["muscles", str(tmp_path / "arm.urdf"), "--motion", str(tmp_path / "hold.csv"), "--out", str(out)]
    assert main([*arguments, "--plots", str(plots), "--elimination", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["elimination_above_optimum_percent"] == 0
    found = load(out)
    # Held level: 1.5 kg at 0.15 m against the biceps, which pulls along (−0.04, 0, 0.3).
    needed = 1.5 * 9.80665 * 0.15
    arm = 0.04 * 0.3 / np.hypot(0.04, 0.3)
    np.testing.assert_allclose(found["muscle_force"].sel(muscle="biceps"), needed / arm, rtol=1e-9)
    np.testing.assert_allclose(found["muscle_force"].sel(muscle="triceps"), 0, atol=1e-9)
    # The elbow pushes the forearm down with what the biceps lifts too much.
    lift = needed / arm * 0.3 / np.hypot(0.04, 0.3)
    np.testing.assert_allclose(found["joint_force"].sel(joint="elbow", axis="z"), 1.5 * 9.80665 - lift, rtol=1e-9)
    assert "ground_force" not in found


def test_one_foot_carries_all_and_two_share_it():
    body = load_body("jump")
    time = np.linspace(0, 0.5, 26)
    values = np.zeros((26, 6 + 13))
    values[:, 2] = 0.9 + 0.02 * np.sin(4 * time)
    rates, speedups = np.zeros_like(values), np.zeros_like(values)
    rates[:, 2], speedups[:, 2] = 0.08 * np.cos(4 * time), -0.32 * np.sin(4 * time)
    motion = to_pinocchio(values, rates, speedups)
    needed = 80 * (9.80665 + speedups[:, 2])
    always = [(-np.inf, np.inf)]
    both = analyse_muscles(body, time, motion, contacts={"left_foot": always, "right_foot": always})
    np.testing.assert_allclose(both["ground_force"].sel(contact="left_foot", axis="z"), needed / 2, rtol=1e-12)
    one = analyse_muscles(body, time, motion, contacts={"left_foot": [], "right_foot": always})
    np.testing.assert_allclose(one["ground_force"].sel(contact="right_foot", axis="z"), needed, rtol=1e-12)
    assert not one["ground_force"].sel(contact="left_foot").any()
    assert float(np.abs(one["ground_residual_force"]).max()) < 1e-9
    ankles = one["joint_force_torque_only"].sel(joint=["left_ankle", "right_ankle"], axis="z").values
    foot = 80 * 0.0137 * (9.80665 + speedups[:, 2])
    np.testing.assert_allclose(ankles[:, 0], foot, rtol=1e-6)  # the hanging foot is held up
    np.testing.assert_allclose(ankles[:, 1], foot - needed, rtol=1e-6)  # the standing one is pressed down
