"""TRC, C3D, MOT, STO and CSV files, force plates and events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from posture import load_body
from posture.errors import MotionError
from posture.inverse import states
from posture.markers import read_marker_set
from posture.motion_files import (
    Y_UP,
    Z_UP,
    Markers,
    PlateRecord,
    axes_matrix,
    plausible,
    read_markers,
    read_plates,
    read_table,
    write_plates,
    write_trc,
)
from posture.plates import (
    assign_feet,
    center_of_pressure,
    check_feet,
    check_plates,
    contacts,
    events_from_motion,
    wrenches,
)
from posture.systems.gait import SyntheticGait, walking

TIME = np.arange(0, 1.27, 0.01)


@pytest.fixture(scope="module")
def walker() -> SyntheticGait:
    body = load_body("gait")
    return SyntheticGait(body, walking(body))


@pytest.fixture(scope="module")
def markers(walker: SyntheticGait) -> Markers:
    return walker.markers(TIME, read_marker_set(walker.body))


@pytest.fixture(scope="module")
def plates(walker: SyntheticGait) -> PlateRecord:
    return walker.plate_record(np.arange(0, 1.27, 0.001), seed=1)


def test_trc_comes_back_as_it_was_written(markers: Markers, tmp_path: Path) -> None:
    places = markers.positions.copy()
    places[3:6, 4] = np.nan
    path = tmp_path / "walk.trc"
    write_trc(replace(markers, positions=places), path)
    found = read_markers(path, axes=Y_UP)
    assert found.names == markers.names
    assert np.abs(found.time - markers.time).max() < 1e-9
    assert np.isnan(found.positions[3:6, 4]).all()
    assert np.nanmax(np.abs(found.positions - places)) < 1e-8


def test_y_up_file_holds_the_height_in_y(markers: Markers, tmp_path: Path) -> None:
    path = tmp_path / "walk.trc"
    write_trc(markers, path)
    first = [float(cell) for cell in path.read_text().splitlines()[6].split("\t")[2:5]]
    x, y, z = 1000 * markers.positions[0, 0]
    assert first == pytest.approx([x, z, -y], abs=1e-4)


def test_axes_are_rotations() -> None:
    assert np.array_equal(axes_matrix(Z_UP), np.eye(3))
    assert np.array_equal(axes_matrix(Y_UP) @ [1, 2, 3], [1, -3, 2])
    for wrong, message in (
        ("x y", "once each"),
        ("x x y", "once each"),
        ("x y -z", "left one"),
        ("a b c", "once each"),
    ):
        with pytest.raises(MotionError, match=message):
            axes_matrix(wrong)


def test_csv_needs_its_unit(markers: Markers, tmp_path: Path) -> None:
    path = tmp_path / "walk.csv"
    header = ["time", *(f"{name}_{axis}" for name in markers.names for axis in "xyz")]
    table = np.column_stack((markers.time, 100 * markers.positions.reshape(len(TIME), -1)))
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="")
    with pytest.raises(MotionError, match="does not say its unit"):
        read_markers(path, axes=Z_UP)
    found = read_markers(path, axes=Z_UP, unit="cm")
    assert np.abs(found.positions - markers.positions).max() < 1e-12


def test_rounded_times_are_made_even(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{k / 60:.3f},{k},0,1.0" for k in range(30)]
    path.write_text("time,A_x,A_y,A_z\n" + "\n".join(rows) + "\n")
    found = read_markers(path, axes=Z_UP, unit="m")
    assert np.ptp(np.diff(found.time)) < 1e-12
    assert found.rate == pytest.approx(60, rel=1e-3)


def test_c3d_points_and_plates(tmp_path: Path) -> None:
    ezc3d = pytest.importorskip("ezc3d")
    made = ezc3d.c3d()
    made["parameters"]["POINT"]["RATE"]["value"] = [100]
    made["parameters"]["POINT"]["LABELS"]["value"] = ["A", "B"]
    made["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    points = np.zeros((4, 2, 20))
    points[0] = 1000 + np.arange(20)
    points[1, 1] = 500
    points[2] = 1700
    points[3] = 1
    made["data"]["points"] = points
    residuals = np.zeros((1, 2, 20))
    residuals[0, 1, 4] = -1  # not seen
    made["data"]["meta_points"]["residuals"] = residuals
    path = tmp_path / "a.c3d"
    made.write(str(path))
    found = read_markers(path, axes=Z_UP)
    assert found.names == ["A", "B"]
    assert found.rate == pytest.approx(100)
    assert found.positions[3, 0] == pytest.approx([1.003, 0, 1.7])
    assert np.isnan(found.positions[4, 1]).all()
    assert found.positions[5, 1] == pytest.approx([1.005, 0.5, 1.7])
    with pytest.raises(MotionError, match="no force plates"):
        read_plates(path, axes=Z_UP)


@pytest.mark.parametrize(("unit", "per_metre"), [("mm", 1000), ("m", 1)])
@pytest.mark.parametrize("heading", [0, 90, 180, 37])
def test_c3d_plate_may_stand_in_any_direction(tmp_path: Path, heading: float, unit: str, per_metre: float) -> None:
    """Type 2 plate turned by ``heading`` degrees in the room, its sensor 41 mm below and beside the surface's middle.

    What it reads follows from a force in the world: turned into the plate's axes, moment about its sensor.
    """
    ezc3d = pytest.importorskip("ezc3d")
    cosine, sine = np.cos(np.radians(heading)), np.sin(np.radians(heading))
    room = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1.0]]) @ np.diag([1, -1, -1.0])  # plate to world
    middle, below = np.array([0.5, 0.3, 0]), np.array([0.003, -0.002, -0.041])
    push, point, twist = np.array([50.0, -20, 800]), np.array([0.6, 0.33, 0]), np.array([0, 0, 5.0])
    moment = np.cross(point - (middle - room @ below), push) + twist
    made = ezc3d.c3d()
    made["parameters"]["POINT"]["RATE"]["value"] = [100]
    made["parameters"]["POINT"]["LABELS"]["value"] = ["A"]
    made["parameters"]["POINT"]["UNITS"]["value"] = [unit]
    made["data"]["points"] = np.ones((4, 1, 10))
    made["parameters"]["ANALOG"]["RATE"]["value"] = [1000]
    made["parameters"]["ANALOG"]["LABELS"]["value"] = ["Fx", "Fy", "Fz", "Mx", "My", "Mz"]
    made["parameters"]["ANALOG"]["UNITS"]["value"] = ["N"] * 3 + [f"N{unit}"] * 3
    reading = np.concatenate((room.T @ push, per_metre * (room.T @ moment)))
    made["data"]["analogs"] = np.repeat(reading[None, :, None], 100, axis=2)
    made.add_parameter("FORCE_PLATFORM", "USED", 1)
    whole = dict(made["parameters"]["FORCE_PLATFORM"]["USED"])
    for name, value in (("TYPE", np.array([2])), ("ZERO", np.array([1, 0])), ("CHANNEL", np.arange(1, 7)[:, None])):
        made["parameters"]["FORCE_PLATFORM"][name] = whole | {"value": value}
    made.add_parameter("FORCE_PLATFORM", "ORIGIN", per_metre * below[:, None])
    around = np.array([[0.2, 0.3, 0], [-0.2, 0.3, 0], [-0.2, -0.3, 0], [0.2, -0.3, 0]])
    made.add_parameter("FORCE_PLATFORM", "CORNERS", (per_metre * (middle + around @ room.T)).T[:, :, None])
    path = tmp_path / "plate.c3d"
    made.write(str(path))
    found = read_plates(path, axes=Z_UP)
    assert found.force[5, 0] == pytest.approx(push, rel=1e-5)  # the file holds single precision
    assert found.moment[5, 0] == pytest.approx(np.cross(point, push) + twist, abs=2e-3)


def test_c3d_force_plate_pushes_up_where_the_foot_is(tmp_path: Path) -> None:
    """Type 2 plate (AMTI), 400 × 600 mm around (0.5, 0.3) m; a person of 800 N stands 0.1 m forward of its middle."""
    ezc3d = pytest.importorskip("ezc3d")
    made = ezc3d.c3d()
    frames = 10
    made["parameters"]["POINT"]["RATE"]["value"] = [100]
    made["parameters"]["POINT"]["LABELS"]["value"] = ["A"]
    made["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    made["data"]["points"] = np.ones((4, 1, frames))
    made["parameters"]["ANALOG"]["RATE"]["value"] = [1000]
    made["parameters"]["ANALOG"]["LABELS"]["value"] = [f"F1{name}" for name in ("Fx", "Fy", "Fz", "Mx", "My", "Mz")]
    made["parameters"]["ANALOG"]["UNITS"]["value"] = ["N", "N", "N", "Nmm", "Nmm", "Nmm"]
    # Plate axes: x forward, y right, z down. C3D files hold the reaction on the person: 800 N up at x = 100 mm.
    analog = np.zeros((1, 6, frames * 10))
    analog[0, 2], analog[0, 4] = -800, 80000
    made["data"]["analogs"] = analog
    made.add_parameter("FORCE_PLATFORM", "USED", 1)
    whole = dict(made["parameters"]["FORCE_PLATFORM"]["USED"])  # ezc3d writes lists as floats; these must be whole
    for name, value in (("TYPE", np.array([2])), ("ZERO", np.array([1, 0])), ("CHANNEL", np.arange(1, 7)[:, None])):
        made["parameters"]["FORCE_PLATFORM"][name] = whole | {"value": value}
    made.add_parameter("FORCE_PLATFORM", "ORIGIN", np.array([[0.0], [0.0], [0.0]]))
    # corner 1 is +x +y of the plate's own axes, and so on around
    corners = np.array([[700, 0, 0], [300, 0, 0], [300, 600, 0], [700, 600, 0]], float).T[:, :, None]
    made.add_parameter("FORCE_PLATFORM", "CORNERS", corners)
    path = tmp_path / "plate.c3d"
    made.write(str(path))
    found = read_plates(path, axes=Z_UP)
    assert found.names == ["plate_1"]
    assert abs(found.force[5, 0, 2]) == pytest.approx(800)
    assert found.force[5, 0, 2] > 0  # the ground pushes the person up
    assert center_of_pressure(found.force, found.moment)[5, 0] == pytest.approx([0.6, 0.3], abs=1e-6)
    assert read_plates(path, axes=Z_UP, reverse=True).force[5, 0, 2] == pytest.approx(-800)


def test_plates_come_back_as_they_were_written(plates: PlateRecord, tmp_path: Path) -> None:
    path = tmp_path / "walk.mot"
    write_plates(plates, path)
    found = read_plates(path, axes=Y_UP, feet={"right": "right_ground_force", "left": "left_ground_force"})
    loaded = plates.force[..., 2] > 20
    assert np.abs(found.force - plates.force)[loaded].max() < 1e-4
    assert np.abs(found.moment - plates.moment)[loaded].max() < 1e-4
    unnamed = read_plates(path, axes=Y_UP)
    assert unnamed.names == ["right_ground_force", "left_ground_force"]


def test_degrees_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.mot"
    path.write_text("Coordinates\nversion=1\ninDegrees=yes\nendheader\ntime knee\n0 10\n0.1 12\n")
    table = read_table(path)
    assert table.in_degrees
    assert table["knee"] == pytest.approx([10, 12])
    assert table.angle("knee") == pytest.approx(np.radians([10, 12]))
    path.write_text(path.read_text().replace("yes", "no"))
    assert read_table(path).angle("knee") == pytest.approx([10, 12])
    with pytest.raises(MotionError, match="no column is called 'kne'; did you mean 'knee'"):
        table["kne"]


def test_contacts_find_the_events_within_fifteen_milliseconds(walker: SyntheticGait, plates: PlateRecord) -> None:
    found = contacts(plates)
    # The force under a foot starts like a parabola here, so the threshold is reached late: 15 ms, 1.4 % of a cycle.
    assert found["right"][0][1] == pytest.approx(walker.contacts["right"][0][1], abs=0.015)
    assert found["left"][0][0] == -np.inf
    assert found["left"][0][1] == pytest.approx(walker.contacts["left"][0][1], abs=0.015)
    assert found["left"][1][0] == pytest.approx(walker.contacts["left"][1][0], abs=0.015)
    values = wrenches(plates, TIME, found)
    swing = (found["right"][0][1] < TIME) & (found["right"][1][0] > TIME)
    assert np.abs(values["right"][swing]).max() == 0


def test_events_from_motion_are_near_those_of_the_plates() -> None:
    """Two steps of a foot that swings as a raised cosine: it lands at its most forward, leaves at its most backward."""
    time = np.arange(0, 3, 0.01)
    pelvis = np.column_stack((1.2 * time, 0 * time, 1 + 0 * time))
    swing = 0.35 * np.cos(2 * np.pi * time / 1.1)
    foot = pelvis + np.column_stack((swing, 0 * time, -1 + 0 * time))
    found = events_from_motion(time, foot, foot, pelvis)
    assert [round(a, 2) for a, _ in found[1:]] == [1.1, 2.2]
    assert found[0] == (-np.inf, pytest.approx(0.55, abs=0.02))
    assert found[1][1] == pytest.approx(1.65, abs=0.02)
    backward = events_from_motion(time, -foot, -foot, -pelvis)
    assert backward == found


def test_numbered_plates_are_given_to_the_nearest_foot(walker: SyntheticGait, plates: PlateRecord) -> None:
    numbered = replace(plates, names=["plate_1", "plate_2"])
    spans = contacts(numbered)
    feet = {side: (TIME, np.empty((len(TIME), 3))) for side in ("left", "right")}
    body = walker.body
    for row, q in enumerate(states(walker.motion, TIME).configuration):
        pin.framesForwardKinematics(body.model, body.data, q)
        for side in feet:
            feet[side][1][row] = body.data.oMf[body.link_frame(f"{side}_hindfoot")].translation
    found, times = assign_feet(numbered, spans, feet)
    assert found.names == ["left", "right"]
    assert times["right"] == spans["plate_1"]
    assert np.abs(found.force.sum(axis=1) - plates.force.sum(axis=1)).max() < 60  # only readings in the air are lost


def test_plausible_record_passes(markers: Markers, plates: PlateRecord) -> None:
    assert plausible(markers, height=1.82) == []
    assert check_plates(plates, mass=85.0) == []


def test_wrong_units_and_axes_are_told(markers: Markers, plates: PlateRecord, walker: SyntheticGait) -> None:
    with pytest.raises(MotionError, match="probably in mm"):
        plausible(replace(markers, positions=1000 * markers.positions))
    with pytest.raises(MotionError, match="converted twice"):
        plausible(replace(markers, positions=markers.positions / 1000))
    with pytest.raises(MotionError, match="so Z is not up"):
        plausible(replace(markers, positions=markers.positions @ axes_matrix(Y_UP)))
    turned = plates.force @ axes_matrix(Y_UP), plates.moment @ axes_matrix(Y_UP)
    with pytest.raises(MotionError, match="points along Y, not up; the plates' axes are swapped"):
        check_plates(replace(plates, force=turned[0], moment=turned[1]))
    with pytest.raises(MotionError, match="force on the plate, so reverse it"):
        check_plates(replace(plates, force=-plates.force, moment=-plates.moment))
    with pytest.raises(MotionError, match="N·mm"):
        check_plates(replace(plates, moment=1000 * plates.moment))
    with pytest.raises(MotionError, match="body weights"):
        check_plates(replace(plates, force=plates.force / 9.81, moment=plates.moment / 9.81), mass=85.0)
    with pytest.raises(MotionError, match="nobody stood"):
        check_plates(replace(plates, force=0 * plates.force, moment=0 * plates.moment))
    feet = {side: (TIME, np.tile([0.6 if side == "left" else 0.0, 0, 0], (len(TIME), 1))) for side in ("left", "right")}
    still = replace(plates, force=np.tile([0.0, 0, 400], (len(plates.time), 2, 1)), moment=np.zeros_like(plates.moment))
    still.moment[:, plates.names.index("left"), 1] = -400 * 0.6
    check_feet(still, feet)
    with pytest.raises(MotionError, match="left and right are swapped"):
        check_feet(replace(still, names=["left", "right"]), feet)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "has 0 bytes"),
        (lambda text: "hello\n", "not a TRC file"),
        (lambda text: text.replace("\t37\tmm", "\t36\tmm"), "promises 36 markers, line 4 names 37"),
        (lambda text: "\n".join(text.splitlines()[:60]) + "\n", "may be cut short"),
        (lambda text: text.replace("100\t100\t127", "50\t50\t127"), "says 50 samples/s, but the times run at 100"),
        (lambda text: text.replace("\tmm\t", "\tfurlong\t"), "no unit of length is called 'furlong'"),
        (lambda text: text.replace("0.030000", "0.025000x"), "is not a number"),
        (lambda text: text.replace("\t0.050000\t", "\t0.010000\t"), "time does not rise"),
        (lambda text: text.replace("LASI", "RASI"), "'RASI' stands twice"),
        (lambda text: text.replace("\tmm\t", "\t\t"), "does not say its unit of length"),
    ],
)
def test_damaged_trc_files_are_refused(markers: Markers, tmp_path: Path, change: object, message: str) -> None:
    path = tmp_path / "walk.trc"
    write_trc(markers, path)
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    with pytest.raises(MotionError, match=message) as caught:
        read_markers(path, axes=Y_UP)
    assert "\n" not in str(caught.value)


def test_lost_markers_are_lost_however_they_are_written(markers: Markers, tmp_path: Path) -> None:
    """Empty cells, zeros, NaN and infinities; a frame count written as 127.0 or header words with two tabs between."""
    path = tmp_path / "walk.trc"
    write_trc(markers, path)
    lines = path.read_text().splitlines()
    lines[1:3] = [line.replace("\t127\t", "\t127.0\t").replace("\t", "\t\t ") for line in lines[1:3]]
    for row, lost in ((8, ("", "", "")), (9, ("0", "0", "0")), (10, ("1", "nan", "2")), (11, ("inf", "-inf", "1e400"))):
        lines[row] = "\t".join((*lines[row].split("\t")[:5], *lost, *lines[row].split("\t")[8:]))
    path.write_text("\n".join(lines))
    found = read_markers(path, axes=Y_UP)
    gone = np.isnan(found.positions)
    assert gone[2:6, 1].all()
    assert gone.sum() == 12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("endheader\ntime\ta\tb\n0\t1\t2\n0.1\t3\n", "line 4: 2 cells, but the header names 3 columns"),
        ("endheader\ntime a a\n0 1 2\n0.1 3 4\n", "column 'a' stands twice"),
        ("nRows=9\nendheader\ntime a\n0 1\n0.1 3\n", "promises 9 rows, the file holds 2; it may be cut short"),
        ("endheader\nknee a\n0 1\n", "line 2: the first column must be time"),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.sto"
    path.write_text(text)
    with pytest.raises(MotionError, match=message):
        read_table(path)


def test_an_empty_cell_moves_no_column(tmp_path: Path) -> None:
    path = tmp_path / "a.sto"
    path.write_text("endheader\n\ntime\ta\tb\n0\t\t1\n0.1 \t 2\t 3\t\n")
    table = read_table(path)
    assert np.isnan(table["a"][0])
    assert table["a"][1] == 2
    assert table["b"] == pytest.approx([1, 3])


def test_missing_frames_and_unknown_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"{k / 100:.2f},{k},0,1.0" for k in range(50) if not 20 <= k < 30]
    path.write_text("time,A_x,A_y,A_z\n" + "\n".join(rows) + "\n")
    with pytest.raises(MotionError, match=r"frames are missing after 0\.19 s"):
        read_markers(path, axes=Z_UP, unit="m")
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(MotionError, match=r"unknown kind '\.xlsx'"):
        read_markers(tmp_path / "a.xlsx", axes=Z_UP)
    (tmp_path / "a.c3d").write_bytes(b"\x00" * 600)
    with pytest.raises(MotionError, match="not a readable C3D file"):
        read_markers(tmp_path / "a.c3d", axes=Z_UP)
    (tmp_path / "b.trc").write_bytes(b"PathFileType\xff\xfe\x00")
    with pytest.raises(MotionError, match="not a text file"):
        read_markers(tmp_path / "b.trc", axes=Z_UP)
    with pytest.raises(MotionError, match="no such file"):
        read_table(tmp_path / "none.mot")
    (tmp_path / "c.mot").write_text("no header here\n1 2 3\n")
    with pytest.raises(MotionError, match="endheader"):
        read_table(tmp_path / "c.mot")
