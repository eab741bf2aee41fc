"""A whole walking trial against the truth it was made from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from posture import load_body
from posture.errors import MotionError
from posture.gait_trial import Trial, _against_plates, analyse_gait, cycle_table, feet_of
from posture.inverse import generalized_forces, states
from posture.markers import read_marker_set
from posture.motion_files import Markers, PlateRecord, axes_matrix
from posture.plates import check_cover, events_from_motion
from posture.systems.gait import SyntheticGait, walking

TIME = np.arange(0, 1.276, 0.01)
LEGS = [f"{side}_{joint}_y" for side in ("left", "right") for joint in ("hip", "knee", "ankle")]

pytestmark = pytest.mark.xdist_group("gait_trial")


@pytest.fixture(scope="module")
def walker() -> SyntheticGait:
    body = load_body("gait")
    return SyntheticGait(body, walking(body))


@pytest.fixture(scope="module")
def recording(walker: SyntheticGait) -> tuple[Markers, PlateRecord]:
    """What 0.5 mm cameras and plates with gain, offset and noise see."""
    markers = walker.markers(TIME, read_marker_set(walker.body), noise=0.0005, seed=2)
    return markers, walker.plate_record(np.arange(0, 1.276, 0.001), seed=2)


@pytest.fixture(scope="module")
def trial(walker: SyntheticGait, recording: tuple[Markers, PlateRecord]) -> Trial:
    return analyse_gait(walker.body, read_marker_set(walker.body), *recording, confirm=False)


def test_moments_from_noisy_files_are_the_true_ones(walker: SyntheticGait, trial: Trial) -> None:
    inner = slice(50, -50)  # the filters' ends
    time = trial.dataset.time.values[inner]
    truth = generalized_forces(walker.body, states(walker.motion, time), walker.feet(time))
    found = trial.dataset["joint_torque"].values[inner]
    for name in LEGS:
        joint = walker.body.joint_index(name)
        ours, theirs = found[:, joint] / walker.body.mass, truth[:, 6 + joint] / walker.body.mass
        # what recorded trials are held to against OpenSim
        assert np.corrcoef(ours, theirs)[0, 1] >= 0.98
        assert np.sqrt(np.mean((ours - theirs) ** 2)) <= 0.1
    assert trial.quality["notes"] == []
    assert trial.quality["round_trip"] <= 1e-10
    assert trial.quality["sharing_gap"] <= 1e-9


def test_curves_over_the_cycle_are_per_kilogram(walker: SyntheticGait, trial: Trial) -> None:
    titles, table = cycle_table(trial)
    assert table.shape == (101, 1 + 3 * 51)
    start, end = trial.quality["cycles"]["right"][0]
    assert end - start == pytest.approx(walker.motion.period, abs=0.02)
    middle = int(np.argmin(np.abs(trial.dataset.time.values - (start + end) / 2)))
    joint = walker.body.joint_index("right_knee_y")
    for quantity, variable, scale in (
        ("angle_deg", "joint_position", 180 / np.pi),
        ("moment_nm_per_kg", "joint_torque", 1 / 85),
        ("power_w_per_kg", "joint_power", 1 / 85),
    ):
        curve = table[:, titles.index(f"right_1.right_knee_y.{quantity}")]
        expected = scale * trial.dataset[variable].values[middle, joint]
        assert curve[50] == pytest.approx(expected, abs=2e-2 * np.ptp(curve))


def test_a_turned_room_changes_nothing(
    walker: SyntheticGait, recording: tuple[Markers, PlateRecord], trial: Trial
) -> None:
    """The same walk across the room (towards -Y): same contacts, same moments."""
    turn = axes_matrix("y -x z")
    markers, plates = recording
    across = analyse_gait(
        walker.body,
        read_marker_set(walker.body),
        replace(markers, positions=markers.positions @ turn.T),
        replace(plates, force=plates.force @ turn.T, moment=plates.moment @ turn.T),
        confirm=False,
    )
    assert across.contacts == trial.contacts
    gap = across.dataset["joint_torque"].values - trial.dataset["joint_torque"].values
    columns = [walker.body.joint_index(name) for name in LEGS]
    # SSA chooses its ranks for each coordinate of the room, so the curves are near, not equal
    assert np.sqrt(np.mean(gap[50:-50, columns] ** 2)) < 0.05 * walker.body.mass


@pytest.mark.parametrize("angle", [0.0, 1.0, 2.5, -2.0])
@pytest.mark.parametrize("belt", [0.0, 1.2])
def test_events_are_found_in_any_direction_and_on_a_treadmill(angle: float, belt: float) -> None:
    """A foot that swings as a raised cosine, pointing ahead; ``belt`` takes the walker's own speed away."""
    time = np.arange(0, 3, 0.01)
    swing = 0.35 * np.cos(2 * np.pi * time / 1.1)
    drift = -0.01 * time  # the walker falls back a little on the belt
    pelvis = np.column_stack(((1.2 - belt) * time + drift, 0 * time, 1 + 0 * time))
    heel = pelvis + np.column_stack((swing - 0.1, 0 * time, -1 + 0 * time))
    toe = heel + np.array([0.2, 0, 0])
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    found = events_from_motion(time, heel @ turn.T, toe @ turn.T, pelvis @ turn.T)
    assert [round(start, 2) for start, _ in found[1:]] == [1.1, 2.2]
    assert found[0] == (-np.inf, pytest.approx(0.55, abs=0.02))


def test_plates_that_doubt_the_mass_or_the_clock_are_told(walker: SyntheticGait) -> None:
    time = np.arange(0, 1.1, 0.002)
    total, truth = walker.total(time), walker.wrenches(time)
    found, notes = _against_plates(total, truth, walker.contacts, time, 85.0)
    assert found["plates_minus_motion_force_n"] < 1e-9
    assert notes == []
    light = {side: 0.9 * wrench for side, wrench in truth.items()}
    assert "the plates carry 8.5 kg less on average than the body of 85.0 kg needs" in str(
        _against_plates(total, light, walker.contacts, time, 85.0)[1]
    )
    late = walker.wrenches(time + 0.1)
    assert "share their clock" in str(_against_plates(total, late, walker.contacts, time, 85.0)[1])
    unseen = {side: np.full_like(wrench, np.nan) for side, wrench in truth.items()}
    assert "no time at which" in str(_against_plates(total, unseen, walker.contacts, time, 85.0)[1])


def test_labels_swapped_for_a_while_and_bare_segments_are_told(
    walker: SyntheticGait, recording: tuple[Markers, PlateRecord]
) -> None:
    markers, _ = recording
    places = markers.positions.copy()
    left, right = markers.names.index("LKNE"), markers.names.index("RKNE")
    places[50:70, [left, right]] = places[50:70, [right, left]]
    places[:, [markers.names.index(name) for name in ("LFIN", "LWRA", "LWRB")]] = np.nan
    marker_set = read_marker_set(walker.body)
    found = analyse_gait(walker.body, marker_set, replace(markers, positions=places), confirm=False).quality["notes"]
    swapped = [note for note in found if "check its label there" in note]
    assert any(note.startswith("marker LKNE is") for note in swapped)
    assert any(note.startswith("marker RKNE is") for note in swapped)
    bare = next(note for note in found if "is a guess" in note)
    assert "left_hand" in bare
    assert "right_hand" not in bare


def test_both_feet_are_needed(walker: SyntheticGait) -> None:
    with pytest.raises(MotionError, match="give the links of both feet, left and right, not left only"):
        feet_of(walker.body, {"left": "left_hindfoot"})


def test_plates_must_cover_the_markers(recording: tuple[Markers, PlateRecord]) -> None:
    markers, plates = recording
    check_cover(plates, markers.time)
    short = replace(plates, time=plates.time[:800], force=plates.force[:800], moment=plates.moment[:800])
    with pytest.raises(MotionError, match=r"from 0 to 0\.799 s, the markers from 0 to 1\.27 s; .*--between 0 0\.799"):
        check_cover(short, markers.time)
    with pytest.raises(MotionError, match="they share no time"):
        check_cover(plates, markers.time + 5)
