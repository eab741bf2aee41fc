"""Bodies from OpenSim models: where they put a point, against the model's own definition written out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from posture.errors import PostureError
from posture.motion_files import Y_UP, axes_matrix
from posture.osim import read_osim

AXES = ("0.6 0 0.8", "0 2 0", "1 0 0")
PARENT, CHILD = ((0.1, -0.2, 0.05), (0.2, -0.1, 0.3)), ((0.0, 0.4, 0.02), (-0.3, 0.2, 0.1))


def frame(name: str, body: str, placement: tuple[tuple[float, ...], ...]) -> str:
    shift, turn = (" ".join(map(str, values)) for values in placement)
    return (
        f'<PhysicalOffsetFrame name="{name}"><socket_parent>/bodyset/{body}</socket_parent>'
        f"<translation>{shift}</translation><orientation>{turn}</orientation></PhysicalOffsetFrame>"
    )


def coordinate(name: str) -> str:
    return f'<Coordinate name="{name}"><default_value>0</default_value><range>-2 2</range></Coordinate>'


def axis(name: str, direction: str, function: str, of: str = "") -> str:
    inside = f"<coordinates>{of}</coordinates><axis>{direction}</axis>{function}"
    return f'<TransformAxis name="{name}">{inside}</TransformAxis>'


def body(name: str) -> str:
    return (
        f'<Body name="{name}"><mass>2</mass><mass_center>0 -0.1 0</mass_center>'
        "<inertia>0.1 0.1 0.1 0 0 0</inertia></Body>"
    )


def constant(value: float) -> str:
    return f"<Constant><value>{value}</value></Constant>"


def linear(slope: float, offset: float) -> str:
    return f"<LinearFunction><coefficients>{slope} {offset}</coefficients></LinearFunction>"


def model(joint: str = "CustomJoint", slope: float = -1.0) -> str:
    """A pelvis and a thigh: slides and shifts, then a turn, a constant turn, and a reversed turn from 0.1 rad on."""
    transform = (
        axis("rotation1", AXES[0], linear(1, 0), "flexion")
        + axis("rotation2", AXES[1], constant(0.3))
        + axis("rotation3", AXES[2], linear(slope, 0.1), "twist")
        + axis("translation1", "1 0 0", constant(0.05))
        + axis("translation2", "0 1 0", linear(1, 0.02), "slide")
        + axis("translation3", "0 0 1", "<MultiplierFunction><function>" + constant(0.5) + "</function>"
               "<scale>0.06</scale></MultiplierFunction>")
    )  # fmt: skip
    return (
        '<OpenSimDocument Version="40000"><Model name="leg"><BodySet><objects>'
        + body("pelvis")
        + body("thigh")
        + '</objects></BodySet><JointSet><objects><CustomJoint name="root">'
        "<socket_parent_frame>g</socket_parent_frame><socket_child_frame>p</socket_child_frame><frames>"
        + frame("g", "ground", ((0, 0, 0), (0, 0, 0)))
        + frame("p", "pelvis", ((0, 0, 0), (0, 0, 0)))
        + f'</frames></CustomJoint><{joint} name="hip"><socket_parent_frame>a</socket_parent_frame>'
        "<socket_child_frame>b</socket_child_frame><coordinates>"
        + "".join(coordinate(name) for name in ("flexion", "twist", "slide"))
        + "</coordinates><frames>"
        + frame("a", "pelvis", PARENT)
        + frame("b", "thigh", CHILD)
        + f"</frames><SpatialTransform>{transform}</SpatialTransform></{joint}></objects></JointSet>"
        '<MarkerSet><objects><Marker name="M"><socket_parent_frame>/bodyset/thigh</socket_parent_frame>'
        "<location>0.03 -0.2 0.07</location></Marker></objects></MarkerSet></Model></OpenSimDocument>"
    )


def placed(placement: tuple[tuple[float, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(placement[0]), Rotation.from_euler("XYZ", placement[1]).as_matrix()


def test_marker_is_where_the_models_own_transform_puts_it(tmp_path: Path) -> None:
    path = tmp_path / "leg.osim"
    path.write_text(model())
    found, markers = read_osim(path)
    flexion, twist, slide = 0.4, -0.7, 0.03
    q = pin.neutral(found.model)
    for name, value in (("flexion", flexion), ("twist", twist), ("slide", slide)):
        q[7 + found.joint_index(name)] = value
    pin.framesForwardKinematics(found.model, found.data, q)
    ours = found.data.oMf[found.link_frame("thigh")].act(markers.places[0])
    turn = np.eye(3)
    for direction, angle in zip(AXES, (flexion, 0.3, -twist + 0.1), strict=True):
        unit = np.array(direction.split(), float)
        turn = turn @ Rotation.from_rotvec(angle * unit / np.linalg.norm(unit)).as_matrix()
    (at, parent), (inside, child) = placed(PARENT), placed(CHILD)
    marker = child.T @ (np.array([0.03, -0.2, 0.07]) - inside)
    expected = at + parent @ (np.array([0.05, slide + 0.02, 0.03]) + turn @ marker)
    assert ours == pytest.approx(axes_matrix(Y_UP) @ expected, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("-0.2 0.07", "x 0.07"), "Marker 'M' needs 3 numbers in <location>"),
        (("<mass>2</mass>", ""), "Body 'pelvis' needs a number in <mass>"),
        (("0.1 0.1 0.1 0 0 0", "0.1 0.1"), "Body 'pelvis' needs 6 numbers in <inertia>"),
        (("<range>-2 2</range>", "<range>2</range>"), "Coordinate 'slide' needs 2 numbers in <range>"),
        (("/bodyset/pelvis", "/bodyset/pelvi"), "no body is called 'pelvi'; did you mean 'pelvis'"),
        (("-1.0 0.1", "2.0 0.1"), "moves 2 times its coordinate"),
        (("<Constant>", "<Sine>"), "not valid XML"),
        (("<scale>0.06</scale>", ""), "needs a number in <scale>"),
        (("40000", "4.0"), "not an OpenSim 4 model"),
    ],
)
def test_damaged_models_are_told_by_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "leg.osim"
    path.write_text(model().replace(*change))
    with pytest.raises(PostureError, match=message) as caught:
        read_osim(path)
    assert "\n" not in str(caught.value)


def test_joints_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "leg.osim"
    path.write_text(model("GimbalJoint"))
    with pytest.raises(PostureError, match="GimbalJoint 'hip' is not read; Custom, Pin, Ball and Weld joints are"):
        read_osim(path)
    path.write_text(model("PinJoint"))
    with pytest.raises(PostureError, match="PinJoint 'hip' has 3 coordinates, but needs 1"):
        read_osim(path)
