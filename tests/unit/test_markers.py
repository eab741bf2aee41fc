"""Marker sets, fitting, registration, scaling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from posture import Person, load_body
from posture.errors import BodyError, MotionError
from posture.inverse import states
from posture.markers import (
    MarkerSet,
    _Fitter,
    check_labels,
    fit_markers,
    read_marker_set,
    register,
    scale_to_markers,
    twin,
)
from posture.motion_files import Markers
from posture.systems.gait import SyntheticGait, walking

TIME = np.arange(0, 0.6, 0.01)
UNSEEN = ("toes", "wrist")  # one marker each: the turn about the line to it leaves no trace


@pytest.fixture(scope="module")
def walker() -> SyntheticGait:
    body = load_body("gait")
    return SyntheticGait(body, walking(body))


@pytest.fixture(scope="module")
def marker_set(walker: SyntheticGait) -> MarkerSet:
    return read_marker_set(walker.body)


def seen(walker: SyntheticGait) -> np.ndarray:
    return np.array([not any(part in name for part in UNSEEN) for name in walker.body.joint_names])


def test_default_set_has_37_markers_on_all_segments(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    assert len(marker_set.names) == len(set(marker_set.names)) == 37
    assert set(marker_set.links) == set(walker.body.segments)


def test_angles_come_back_from_perfect_markers(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    fit = fit_markers(walker.body, marker_set, walker.markers(TIME, marker_set), prior=1e-12)
    truth = states(walker.motion, TIME).configuration
    assert fit.converged.all()
    assert fit.rms.max() < 1e-6
    assert np.abs(fit.configuration[:, :3] - truth[:, :3]).max() < 1e-6
    assert np.abs((fit.configuration - truth)[:, 7:][:, seen(walker)]).max() < 1e-4


def test_noise_of_a_millimetre_costs_a_degree_or_two(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    fit = fit_markers(walker.body, marker_set, walker.markers(TIME, marker_set, noise=0.001, seed=3))
    truth = states(walker.motion, TIME).configuration
    error = np.degrees(np.sqrt(np.mean((fit.configuration - truth)[:, 7:] ** 2, axis=0)))
    legs = [walker.body.joint_index(f"{side}_{joint}_y") for side in ("left", "right") for joint in ("hip", "knee")]
    assert error[legs].max() < 0.5
    # 111 measured numbers less 57 found ones leave 1 mm · √(3·54/111) of distance
    assert fit.rms.mean() == pytest.approx(0.001 * np.sqrt(3 * (111 - 57) / 111), rel=0.1)


def test_step_solves_the_normal_equations(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    """ABA of the body made of markers is (JᵀWJ + D)⁻¹ JᵀWr, with J from Pinocchio's frames."""
    body = walker.body
    fitter = _Fitter(body, marker_set, (), 1e-4)
    q = states(walker.motion, TIME[:1]).configuration
    random = np.random.default_rng(0)
    weight = random.uniform(0.5, 2, (1, 37))
    measured = walker.markers(TIME[:1], marker_set).positions + 0.003 * random.standard_normal((1, 37, 3))
    rotation, origin, at, gap = fitter.residuals(q, measured)
    step, gain = fitter.steps(q, rotation, origin, at, gap, weight, np.zeros((1, 51)), np.zeros(1))
    model, data = body.model, body.data
    pin.computeJointJacobians(model, data, q[0])
    pin.framesForwardKinematics(model, data, q[0])
    rows = []
    for link, place in zip(marker_set.links, marker_set.places, strict=True):
        frame = body.link_frame(link)
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        arm = data.oMf[frame].rotation @ place
        rows.append(J[:3] - pin.skew(arm) @ J[3:])
    J, W = np.vstack(rows), np.repeat(weight[0], 3)
    gradient = J.T @ (W * gap[0].ravel()) - fitter.prior * np.concatenate((np.zeros(6), q[0, 7:]))
    expected = np.linalg.solve(J.T @ (W[:, None] * J) + np.diag(fitter.armature), gradient)
    assert np.abs(step[0] - expected).max() < 1e-6 * np.abs(expected).max()
    assert gain[0] == pytest.approx(expected @ gradient, rel=1e-6)


def test_lost_markers_are_survived(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME, marker_set)
    places = markers.positions.copy()
    places[10:30, [0, 7, 20]] = np.nan
    places[:, 15] = np.nan
    fit = fit_markers(walker.body, marker_set, replace(markers, positions=places))
    assert fit.converged.all()
    assert np.isnan(fit.distance[:, 15]).all()
    assert fit.rms.max() < 2e-4


def test_a_third_of_all_samples_may_be_lost(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME, marker_set)
    places = markers.positions.copy()
    places[np.random.default_rng(5).random(places.shape[:2]) < 0.3] = np.nan
    fit = fit_markers(walker.body, marker_set, replace(markers, positions=places))
    assert np.median(fit.rms) < 1e-3
    knee = walker.body.joint_index("left_knee_y")
    truth = states(walker.motion, TIME).configuration[:, 7 + knee]
    assert np.median(np.abs(fit.configuration[:, 7 + knee] - truth)) < 0.02


def test_limits_and_locks_hold(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME[::4], marker_set)
    locked = walker.body.lock({"lumbar_z": 0.05})
    fit = fit_markers(locked, marker_set, markers)
    assert np.abs(fit.configuration[:, 7 + locked.joint_index("lumbar_z")] - 0.05).max() < 1e-6
    planar = fit_markers(walker.body, marker_set, markers, hold=("root_y", "root_roll", "root_yaw"))
    assert np.abs(planar.configuration[:, 1]).max() < 1e-6
    assert np.abs(planar.configuration[:, [3, 5]]).max() < 1e-6
    lower, upper = walker.body.model.lowerPositionLimit[7:], walker.body.model.upperPositionLimit[7:]
    assert (planar.configuration[:, 7:] >= lower - 1e-12).all()
    assert (planar.configuration[:, 7:] <= upper + 1e-12).all()


def test_a_joint_beyond_its_limit_stops_there(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    q = pin.neutral(walker.body.model)
    knee = walker.body.joint_index("left_knee_y")
    q[7 + knee] = -0.6  # the knee of a flamingo; the limit is -15°
    places = []
    pin.framesForwardKinematics(walker.body.model, walker.body.data, q)
    for link, place in zip(marker_set.links, marker_set.places, strict=True):
        places.append(walker.body.data.oMf[walker.body.link_frame(link)].act(place))
    markers = Markers(np.array([0.0, 0.01]), marker_set.names, np.array([places, places]))
    fit = fit_markers(walker.body, marker_set, markers)
    assert fit.configuration[0, 7 + knee] == pytest.approx(np.radians(-15), abs=1e-3)
    free = fit_markers(walker.body, marker_set, markers, limits=False)
    assert free.configuration[0, 7 + knee] == pytest.approx(-0.6, abs=1e-3)


def test_registration_finds_where_markers_really_are(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    moved = marker_set.places.copy()
    random = np.random.default_rng(4)
    technical = [marker_set.names.index(name) for name in ("LBHD", "T10", "LPSI")]  # three others hold each segment
    moved[technical] += 0.02 * random.standard_normal((len(technical), 3))
    markers = walker.markers(TIME, marker_set.moved(moved))
    keep = [name for k, name in enumerate(marker_set.names) if k not in technical]
    before = fit_markers(walker.body, marker_set, markers).rms.mean()
    found, fit = register(walker.body, marker_set, markers, keep=keep, rounds=6)
    assert fit.rms.mean() < 0.2 * before
    assert np.abs(found.places - moved)[technical].max() < 0.004


def test_scaling_finds_long_thighs(marker_set: MarkerSet) -> None:
    body = load_body("gait")
    person = Person(70.0, 1.82, "male")
    truth = {link: 1.08 if link.endswith("thigh") else 0.95 if link == "torso" else 1.0 for link in body.segments}
    tall = body.stretched(truth, person)
    grown = marker_set.moved(marker_set.places * np.array([[truth[link]] for link in marker_set.links]))
    markers = SyntheticGait(tall, walking(body)).markers(TIME[::6], grown)
    scaled, placed, factors = scale_to_markers(body, marker_set, markers, person)
    assert scaled.mass == pytest.approx(70.0, abs=1e-4)
    assert factors["left_thigh"] == factors["right_thigh"] == pytest.approx(1.08, abs=0.01)
    assert factors["torso"] == pytest.approx(0.95, abs=0.01)
    assert factors["left_shank"] == pytest.approx(1.0, abs=0.015)
    assert fit_markers(scaled, placed, markers).rms.mean() < 2e-3


def test_swapped_sides_are_told(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME, marker_set)
    assert check_labels(walker.body, marker_set, markers) == []
    sides = [twin(name) if twin(name) in markers.names else name for name in markers.names]
    with pytest.raises(MotionError, match="left and right exchanged; the sides are swapped"):
        check_labels(walker.body, marker_set, replace(markers, names=sides))
    names = list(markers.names)
    a, b = names.index("LKNE"), names.index("RKNE")
    names[a], names[b] = names[b], names[a]
    with pytest.raises(MotionError, match="LKNE and RKNE fit only when exchanged"):
        check_labels(walker.body, marker_set, replace(markers, names=names))


def test_a_marker_far_from_its_place_is_told(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME, marker_set)
    places = markers.positions.copy()
    places[:, markers.names.index("C7"), 1] += 0.3
    notes = check_labels(walker.body, marker_set, replace(markers, positions=places))
    assert any("marker C7 stays" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("LASI", "RASI"),
        ("R.Knee", "L.Knee"),
        ("left_heel", "right_heel"),
        ("C7", None),
        ("STRN", None),
        ("LELB", "RELB"),
    ],
)
def test_twins(name: str, other: str | None) -> None:
    assert twin(name) == other


def test_results_do_not_depend_on_the_other_frames(walker: SyntheticGait, marker_set: MarkerSet) -> None:
    markers = walker.markers(TIME, marker_set, noise=0.001, seed=1)
    whole = fit_markers(walker.body, marker_set, markers)
    part = fit_markers(walker.body, marker_set, replace(markers, time=TIME[20:24], positions=markers.positions[20:24]))
    legs = [walker.body.joint_index(f"left_{joint}_y") for joint in ("hip", "knee", "ankle")]
    assert np.abs(whole.configuration[20:24, 7:][:, legs] - part.configuration[:, 7:][:, legs]).max() < 1e-3


def test_marker_sets_from_files(tmp_path: Path) -> None:
    body = load_body("gait", person=Person(60.0, 1.638, "female"))
    path = tmp_path / "mine.toml"
    path.write_text('height = 1.82\n[markers]\nHIP = { link = "pelvis", place = [0.1, 0, 0.02], weight = 3 }\n')
    found = read_marker_set(body, path)
    assert found.names == ["HIP"]
    assert found.places[0] == pytest.approx(np.array([0.09, 0, 0.018]))
    assert found.weights[0] == 3
    for text, message in (
        ("[markers]\n", "is empty"),
        ('[markers]\nA = { link = "pelvis" }\n', "needs a link and a place"),
        ('[markers]\nA = { link = "pelvis", place = [100, 0, 20] }\n', "not mm"),
        ("[marker]\nA = 1\n", "did you mean 'markers'"),
        ("[markers\n", "not valid TOML"),
        ('[markers]\nA = { link = "pelvis", place = [0, 0, 0], weight = -1 }\n', "weight is -1"),
    ):
        path.write_text(text)
        with pytest.raises(MotionError, match=message):
            read_marker_set(body, path)
    path.write_text('[markers]\nA = { link = "pelvi", place = [0, 0, 0] }\n')
    with pytest.raises(BodyError, match="did you mean 'pelvis'"):
        read_marker_set(body, path)
    with pytest.raises(MotionError, match="no such marker set"):
        read_marker_set(body, tmp_path / "none.toml")
