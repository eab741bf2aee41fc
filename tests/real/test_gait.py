"""Recorded walking people: moments against the authors' and OpenSim's, after our own angles from markers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from lxml import etree

from posture.body import Body, body_from_text
from posture.gait_trial import analyse_gait
from posture.inverse import from_pinocchio, generalized_forces, states
from posture.markers import MarkerSet, fit_markers
from posture.motion_files import Y_UP, Markers, read_markers, read_plates, read_table
from posture.osim import read_osim
from posture.plates import check_plates, contacts, wrenches
from posture.signals import fill_gaps, lowpass, spline, ssa

DATA = Path(__file__).parents[3] / "shared" / "data" / "gait"
LEG2D, RAJAGOPAL = DATA / "leg2d_treadmill_csuhmc", DATA / "opensim_rajagopal_walk"
PLANAR = DATA / "opensim_gait10dof18musc_subject01"


def needs(folder: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not folder.is_dir(), reason=f"the recording {folder.name} is not beside the repository")


def close(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Correlation and rms difference."""
    return float(np.corrcoef(ours, theirs)[0, 1]), float(np.sqrt(np.mean((ours - theirs) ** 2)))


# ---------------------------------------------------------------- treadmill, one leg in the sagittal plane


WINTER = {"thigh": 0.100, "shank": 0.0465, "foot": 0.0145}  # shares of body mass, the authors' table
# What the reference was computed with, as its own joint forces show (see the test): the foot's share for all three.
REFERENCE_SHARES = dict.fromkeys(WINTER, 0.0145)


def leg_body(
    lengths: dict[str, float], heel: np.ndarray, toe: np.ndarray, mass: float, shares: dict[str, float]
) -> object:
    """Trunk, thigh, shank, foot with the authors' segment table (Winter): centre and gyration as shares of length."""
    robot = etree.Element("robot", name="leg2d", version="1.1")

    def link(name: str, m: float, center: np.ndarray, gyration: float) -> None:
        inertial = etree.SubElement(etree.SubElement(robot, "link", name=name), "inertial")
        etree.SubElement(inertial, "origin", xyz=" ".join(map(str, center)))
        etree.SubElement(inertial, "mass", value=str(m))
        i = str(m * gyration**2)
        etree.SubElement(inertial, "inertia", ixx=i, iyy=i, izz=i, ixy="0", ixz="0", iyz="0")

    def joint(name: str, parent: str, child: str, z: float) -> None:
        made = etree.SubElement(robot, "joint", name=name, type="revolute")
        etree.SubElement(made, "parent", link=parent)
        etree.SubElement(made, "child", link=child)
        etree.SubElement(made, "origin", xyz=f"0 0 {z}")
        etree.SubElement(made, "axis", xyz="0 1 0")
        etree.SubElement(made, "limit", lower="-3", upper="3", effort="1e4", velocity="1e3")

    thigh, shank, foot = lengths["thigh"], lengths["shank"], float(np.linalg.norm(toe - heel))
    link("trunk", 0.5 * mass, np.array([0, 0, 0.3]), 0.2)
    link("thigh", shares["thigh"] * mass, np.array([0, 0, -0.433 * thigh]), 0.323 * thigh)
    link("shank", shares["shank"] * mass, np.array([0, 0, -0.433 * shank]), 0.302 * shank)
    link("foot", shares["foot"] * mass, (heel + toe) / 2, 0.475 * foot)
    joint("hip", "trunk", "thigh", 0)
    joint("knee", "thigh", "shank", -thigh)
    joint("ankle", "shank", "foot", -shank)
    return body_from_text("leg2d", etree.tostring(robot, encoding="unicode"), {"floats": True})


@needs(LEG2D)
@pytest.mark.parametrize("shares", [WINTER, REFERENCE_SHARES], ids=["table", "as computed"])
def test_treadmill_moments_agree_with_the_authors(shares: dict[str, float]) -> None:
    raw = np.loadtxt(LEG2D / "rawdata.txt", comments="%")
    reference = np.genfromtxt(LEG2D / "refresults.csv", delimiter=",", names=True)
    mass = 67.2
    names = ["RSHO", "RGTRO", "RLEK", "RLM", "RHEE", "RMT5"]
    places = np.zeros((len(raw), len(names), 3))
    places[:, :, 0], places[:, :, 2] = raw[:, 1:13:2], raw[:, 2:13:2]
    places, gaps = fill_gaps(raw[:, 0], places, names=names)
    assert not gaps.left
    markers = Markers(raw[:, 0], names, places)
    place = dict(zip(names, np.moveaxis(places, 1, 0), strict=True))

    def length(a: str, b: str) -> float:
        return float(np.linalg.norm(place[a] - place[b], axis=1).mean())

    # The foot's two markers seen from the ankle, in a frame along heel to toe: mean of the record.
    along = place["RMT5"] - place["RHEE"]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.stack((-along[:, 2], 0 * along[:, 0], along[:, 0]), axis=1)
    local = {
        name: np.array([np.mean(((place[name] - place["RLM"]) * axis).sum(axis=1)) for axis in (along, across)])
        for name in ("RHEE", "RMT5")
    }
    heel, toe = (np.array([local[name][0], 0, local[name][1]]) for name in ("RHEE", "RMT5"))
    lengths = {"thigh": length("RGTRO", "RLEK"), "shank": length("RLEK", "RLM"), "trunk": length("RSHO", "RGTRO")}
    body = leg_body(lengths, heel, toe, mass, shares)
    on = MarkerSet(
        names,
        ["trunk", "trunk", "thigh", "shank", "foot", "foot"],
        np.array(
            [[0, 0, lengths["trunk"]], [0, 0, 0], [0, 0, -lengths["thigh"]], [0, 0, -lengths["shank"]], heel, toe]
        ),
        np.array([1.0, 20, 5, 5, 1, 1]),  # the authors take the joints to be where hip, knee and ankle markers are
    )
    fit = fit_markers(body, on, markers, hold=("root_y", "root_yaw", "root_roll"))
    assert fit.converged.all()
    assert fit.rms.mean() < 0.012  # skin over the hip moves by more than a centimetre
    # A second-order Butterworth of 6 Hz run both ways, as the authors do, is 3 dB down at 6 (√2 - 1)^¼ = 4.81 Hz.
    values = lowpass(from_pinocchio(fit.configuration), markers.rate, 4.81)
    force = lowpass(raw[:, 13:16], markers.rate, 4.81)
    wrench = np.zeros((len(raw), 6))
    wrench[:, 0], wrench[:, 2], wrench[:, 4] = force[:, 0], force[:, 1], -force[:, 2]
    torque = generalized_forces(body, states(spline(markers.time, values), markers.time), {"foot": wrench})
    inner = slice(15, -15)  # both filters settle
    for joint, sign, name in (("hip", -1, "hip_mom_Nm_kg"), ("knee", 1, "knee_mom"), ("ankle", 1, "ankle_mom")):
        ours = sign * torque[:, 6 + body.joint_index(joint)] / mass
        correlation, rms = close(ours[inner], reference[name][inner])
        print(f"leg2d {joint}, {shares['thigh']:g} thigh: correlation {correlation:.4f}, rms {rms:.4f} N·m/kg")
        # With the table's masses the hip differs by what thigh and shank then weigh.
        assert correlation >= (0.94 if joint == "hip" and shares is WINTER else 0.98)
        assert rms <= 0.1


@needs(LEG2D)
def test_treadmill_reference_used_the_mass_of_the_foot_for_shank_and_thigh() -> None:
    """Its joint forces differ from one joint to the next by mass times acceleration: the mass can be read off."""
    raw = np.loadtxt(LEG2D / "rawdata.txt", comments="%")
    reference = np.genfromtxt(LEG2D / "refresults.csv", delimiter=",", names=True)
    filled, _ = fill_gaps(raw[:, 0], raw[:, 1:13].reshape(-1, 6, 2), names=list("abcdef"))
    hip, knee, ankle = (lowpass(filled[:, column], 100.0, 4.81) for column in (1, 2, 3))
    inner = slice(15, -15)
    for upper, lower, outer, near in ((knee, ankle, "knee", "ankle"), (hip, knee, "hip", "knee")):
        center = spline(raw[:, 0], upper + 0.433 * (lower - upper)).sample(raw[:, 0])[2]
        fx = reference["hip_Fx_N_kg" if outer == "hip" else f"{outer}_Fx"] - reference[f"{near}_Fx"]
        fy = reference[f"{outer}_Fy"] - reference[f"{near}_Fy"]
        assert np.mean(fy[inner] - 0.0145 * center[inner, 1]) / 9.81 == pytest.approx(0.0145, abs=2e-4)
        share = np.linalg.lstsq(center[inner, :1], fx[inner], rcond=None)[0][0]
        assert share == pytest.approx(0.0145, abs=1e-3)


# ---------------------------------------------------------------- OpenSim's trials

SAGITTAL = [f"{joint}_{side}" for side in "rl" for joint in ("hip_flexion", "knee_angle", "ankle_angle")]


def planar() -> tuple[Body, MarkerSet, Markers]:
    """The planar model with the weights of its own fitting task, and the walk."""
    body, marker_set = read_osim(PLANAR / "subject01.osim")
    tasks = ElementTree.parse(PLANAR / "walk_Setup_IK.xml").getroot().iter("IKMarkerTask")
    weights = {t.get("name"): float(t.findtext("weight")) for t in tasks if t.findtext("apply").strip() == "true"}
    marker_set = replace(marker_set, weights=np.array([weights.get(name, 0.0) for name in marker_set.names]))
    return body, marker_set, read_markers(PLANAR / "subject01_walk.trc", axes=Y_UP)


@needs(PLANAR)
def test_planar_angles_agree_with_opensim() -> None:
    """Its answer is in degrees; its knee slides by up to 6 mm on a 0.4 m thigh, 0.9°, where ours is a hinge."""
    body, marker_set, markers = planar()
    fit = fit_markers(body, marker_set, markers, hold=("root_y", "root_yaw", "root_roll"))
    reference = read_table(PLANAR / "subject01_walk_IK.mot")
    assert reference.in_degrees
    for name in body.joint_names:
        correlation, rms = close(fit.configuration[:, 7 + body.joint_index(name)], reference.angle(name))
        print(f"gait10dof18musc {name}: correlation {correlation:.4f}, rms {np.degrees(rms):.2f}°")
        assert correlation >= 0.99
        assert np.degrees(rms) <= 1.0


@needs(PLANAR)
def test_planar_leg_moments_agree_with_opensim() -> None:
    body, marker_set, markers = planar()
    reference = read_table(PLANAR / "subject01_walk_ID.sto")
    plates = read_plates(
        PLANAR / "subject01_walk_grf.mot", axes=Y_UP, feet={"r": "ground_force", "l": "1_ground_force"}
    )
    check_plates(plates, mass=body.mass)
    fit = fit_markers(body, marker_set, markers, hold=("root_y", "root_yaw", "root_roll"))
    motion = states(spline(markers.time, lowpass(from_pinocchio(fit.configuration), markers.rate, 6.0)), markers.time)
    loads = wrenches(plates, markers.time, contacts(plates))
    torque = generalized_forces(body, motion, {f"calcn_{side}": loads[side] for side in loads})
    inner = slice(3, -3)  # 50 ms: OpenSim's filter and ours begin differently
    for name in SAGITTAL:
        correlation, rms = close(
            torque[inner, 6 + body.joint_index(name)] / body.mass, reference[f"{name}_moment"][inner] / body.mass
        )
        print(f"gait10dof18musc {name}: correlation {correlation:.4f}, rms {rms:.4f} N·m/kg")
        assert correlation >= 0.98
        assert rms <= 0.1


@needs(RAJAGOPAL)
def test_rajagopal_moments_agree_with_opensim() -> None:
    body, marker_set = read_osim(RAJAGOPAL / "subject_walk_scaled.osim", free_coupled=True)
    markers = read_markers(RAJAGOPAL / "markers_walk.trc", axes=Y_UP)
    reference = read_table(RAJAGOPAL / "id_walk.sto")
    plates = read_plates(RAJAGOPAL / "grf_walk.mot", axes=Y_UP, feet={"r": "ground_force_r", "l": "ground_force_l"})
    assert any("not places" in note for note in check_plates(plates, mass=body.mass))
    smooth = replace(markers, positions=ssa(markers.positions, markers.rate)[0])
    fit = fit_markers(body, marker_set, smooth)
    assert 1000 * fit.rms.mean() < 13.05  # OpenSim's own fit of this trial, 13.05 mm
    values = ssa(from_pinocchio(fit.configuration), markers.rate)[0]
    # The reference starts at 0.45 s with coordinates filtered from there on: its first and last 50 ms are the filter's.
    time = reference.time[(reference.time >= 0.5) & (reference.time <= 1.75)]
    loads = wrenches(plates, time, contacts(plates))
    torque = generalized_forces(
        body, states(spline(markers.time, values), time), {f"calcn_{side}": loads[side] for side in loads}
    )
    for name in SAGITTAL:
        theirs = np.interp(time, reference.time, reference[f"{name}_moment"])
        correlation, rms = close(torque[:, 6 + body.joint_index(name)] / body.mass, theirs / body.mass)
        print(f"rajagopal {name}: correlation {correlation:.4f}, rms {rms:.4f} N·m/kg")
        assert correlation >= 0.98
        assert rms <= 0.1


@needs(RAJAGOPAL)
def test_dynamics_agree_with_opensim_on_its_own_angles() -> None:
    """Same angles, same plates: what is left is the knee's sliding and screwing, which the body freezes."""
    body, _ = read_osim(RAJAGOPAL / "subject_walk_scaled.osim")
    body = body.lock(["mtp_*"])
    table = read_table(RAJAGOPAL / "coordinates.sto")
    value = {name.split("/")[-2]: table[name] for name in table.names if name.endswith("/value")}
    from scipy.spatial.transform import Rotation

    from posture.motion_files import axes_matrix

    turn = axes_matrix(Y_UP)
    angles = np.column_stack([value[name] for name in ("pelvis_tilt", "pelvis_list", "pelvis_rotation")])
    q = np.zeros((len(table.time), body.model.nq))
    q[:, :3] = np.column_stack([value[name] for name in ("pelvis_tx", "pelvis_ty", "pelvis_tz")]) @ turn.T
    q[:, 3:7] = Rotation.from_matrix(turn @ Rotation.from_euler("ZXY", angles).as_matrix() @ turn.T).as_quat()
    for column, name in enumerate(body.joint_names):
        if name in value:
            q[:, 7 + column] = value[name]
    reference = read_table(RAJAGOPAL / "id_walk.sto")
    plates = read_plates(RAJAGOPAL / "grf_walk.mot", axes=Y_UP, feet={"r": "ground_force_r", "l": "ground_force_l"})
    time = reference.time[(reference.time >= 0.5) & (reference.time <= 1.75)]
    loads = wrenches(plates, time, contacts(plates))
    motion = states(spline(table.time, lowpass(from_pinocchio(q), 1000.0, 6.0)), time)
    torque = generalized_forces(body, motion, {f"calcn_{side}": loads[side] for side in loads})
    for name in SAGITTAL:
        theirs = np.interp(time, reference.time, reference[f"{name}_moment"]) / body.mass
        correlation, rms = close(torque[:, 6 + body.joint_index(name)] / body.mass, theirs)
        knee = name.startswith("knee")
        assert correlation >= (0.995 if knee else 0.999)
        assert rms <= (0.035 if knee else 0.02)


@needs(RAJAGOPAL)
def test_whole_trial_runs_forward() -> None:
    body, marker_set = read_osim(RAJAGOPAL / "subject_walk_scaled.osim", free_coupled=True)
    markers = read_markers(RAJAGOPAL / "markers_walk.trc", axes=Y_UP).between(0.6, 1.6)
    plates = read_plates(
        RAJAGOPAL / "grf_walk.mot", axes=Y_UP, feet={"left": "ground_force_l", "right": "ground_force_r"}
    )
    trial = analyse_gait(body, marker_set, markers, plates)
    forward = trial.quality["forward"]
    assert forward["tracked_whole"]
    assert forward["step_residual"] <= 1e-12
    assert forward["angle_error_rad"] < 1e-3
    assert trial.quality["sharing_gap"] <= 1e-9
    assert trial.quality["root_residual_force_n"] < 1e-9
    assert trial.quality["plates_minus_motion_force_n"] < 50  # rms; 6 % of body weight
