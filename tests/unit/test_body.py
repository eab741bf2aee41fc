"""Bodies: found by name or path, weighed by hand, locked, written and read back, wherever posture is installed."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import posture
from posture.anthropometry import Person
from posture.body import (
    STANDARD_GRAVITY,
    VERTICAL_AXIS_SHARE,
    Body,
    body_from_text,
    load_body,
    model_names,
    models_folder,
    read_twice,
    write_body,
)
from posture.errors import BodyError

REPOSITORY = Path(posture.__file__).parents[1]


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("ship_stance")


# ------------------------------------------------------------------ finding


def test_a_body_is_found_by_name_and_by_path(body: Body, tmp_path: Path) -> None:
    assert "ship_stance" in model_names()
    by_path = load_body(models_folder() / "ship_stance.urdf")
    assert by_path.sha256 == body.sha256
    assert load_body(str(by_path.path)).sha256 == body.sha256
    shutil.copy(by_path.path, tmp_path / "sailor.urdf")  # without its sidecar
    assert load_body(tmp_path / "sailor.urdf").name == "sailor"
    assert load_body(tmp_path / "sailor.urdf").contact_names == []


def test_every_body_that_comes_with_posture_is_read_alike_by_two_readers() -> None:
    for name in model_names():
        assert read_twice(load_body(name)) < 1e-9, name


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda body: load_body("ship_stnace"), "no body is called 'ship_stnace'; did you mean 'ship_stance'"),
        (lambda body: load_body("nowhere/x.urdf"), "nowhere/x.urdf: no such file"),
        (lambda body: body.joint_index("ankel_x"), "ship_stance: no joint is called 'ankel_x'; did you mean 'ankle_x'"),
        (lambda body: body.link_frame("trnuk"), "ship_stance: no link is called 'trnuk'; did you mean 'trunk'"),
        (lambda body: body.lock(["hipp_x"]), "no joint is called 'hipp_x'; did you mean 'hip_x'"),
        (lambda body: body.lock(["hip_?_?"]), "no joint is called"),
        (lambda body: body.contact_polygon("left_foto"), "no contact is called 'left_foto'; did you mean 'left_foot'"),
        (lambda body: body.lock({"hip_x": float("nan")}), "joint 'hip_x' is locked is nan, but must be a number"),
        (lambda body: body.lock({"hip_x": "bent"}), "joint 'hip_x' is locked is 'bent'"),
        (lambda body: body.lock({"hip_x": 45}), "45, but must be .* 6.28319 rad"),
        (lambda body: write_body(body, Path("body.xml")), "body.xml: .* ending in .urdf"),
    ],
)  # fmt: skip
def test_a_wrong_request_gets_the_nearest_right_one(body: Body, ask, message: str) -> None:
    with pytest.raises(BodyError, match=message) as refused:
        ask(body)
    assert "\n" not in str(refused.value)


# ------------------------------------------------------------------ mass, centre, contact

# A stick of 2 kg from 0.1 m to 1.1 m above the deck, tilted joint 'tilt' at its foot about Y, and a ball of 3 kg
# 0.4 m ahead of its top, that turns about Z.
STICK = """<robot name="stick">
  <link name="base"><inertial><origin xyz="0 0 0"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="stick"><inertial><origin xyz="0 0 0.5"/><mass value="2"/>
    <inertia ixx="0.2" iyy="0.2" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="ball"><inertial><origin xyz="0.4 0 0"/><mass value="3"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="tilt" type="revolute"><parent link="base"/><child link="stick"/><origin xyz="0 0 0.1"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="turn" type="continuous"><parent link="stick"/><child link="ball"/><origin xyz="0 0 1"/>
    <axis xyz="0 0 1"/></joint>
</robot>"""
TOE = {
    "contact": {
        "front": {"link": "base", "points": [[0.1, -0.1, 0], [0.3, 0, 0], [0.1, 0.1, 0], [0.15, 0, 0]]},
        "back": {"link": "base", "points": [[-0.1, -0.1, 0], [-0.1, 0.1, 0], [-0.2, 0, 0]]},
    }
}


def test_mass_and_centre_of_a_stick_with_a_ball_are_as_worked_out_by_hand() -> None:
    stick = body_from_text("stick", STICK, {})
    assert stick.mass == 6
    # upright: (1·0 + 2·(0.1 + 0.5) + 3·(0.1 + 1)) / 6 up, 3·0.4 / 6 ahead
    np.testing.assert_allclose(stick.center_of_mass(), [0.2, 0, 0.75], atol=1e-15)
    # tilted 90° forward (z turns to x, x to -z), ball turned by 90° to the left
    np.testing.assert_allclose(
        stick.center_of_mass(np.array([np.pi / 2, np.pi / 2])), [(2 * 0.5 + 3) / 6, 3 * 0.4 / 6, 0.5 / 6], atol=1e-15
    )


def test_the_torque_that_holds_the_stick_is_weight_times_lever() -> None:
    stick = body_from_text("stick", STICK, {})
    for angle in (0.0, 0.3, -0.7):
        lever = 2 * 0.5 * np.sin(angle) + 3 * (np.sin(angle) + 0.4 * np.cos(angle))
        # A positive turn about Y sends the top forward; gravity then turns it further, the joint must hold back.
        np.testing.assert_allclose(stick.gravity_torque(np.array([angle, 0.0])), [-9.80665 * lever, 0], atol=1e-12)


def test_contact_areas_are_outlined_one_by_one_and_together() -> None:
    stick = body_from_text("stick", STICK, TOE)
    assert stick.contact_names == ["front", "back"]
    assert sorted(map(tuple, stick.contact_polygon("front"))) == [(0.1, -0.1), (0.1, 0.1), (0.3, 0)]
    together = stick.contact_polygon()
    assert sorted(map(tuple, together)) == [
        (-0.2, 0), (-0.1, -0.1), (-0.1, 0.1), (0.1, -0.1), (0.1, 0.1), (0.3, 0),
    ]  # fmt: skip
    x, y = together.T
    # Two triangles, 0.1·0.2/2 and 0.2·0.2/2, and the rectangle between them; positive when counter-clockwise.
    area = 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
    assert area == pytest.approx(0.01 + 0.02 + 0.04)


def test_the_feet_of_ship_stance_stand_where_its_joints_put_them(body: Body) -> None:
    cosine, sine = np.cos(0.15), np.sin(0.15)
    points = np.array(body.sidecar["contact"]["left_foot"]["points"])[:, :2]
    turned = points @ np.array([[cosine, sine], [-sine, cosine]]) + [0, 0.15]
    left, right = body.contact_polygon("left_foot"), body.contact_polygon("right_foot")
    assert {tuple(point) for point in left.round(9)} <= {tuple(point) for point in turned.round(9)}
    np.testing.assert_allclose(sorted(map(tuple, left.round(9))), sorted(map(tuple, (right * [1, -1]).round(9))))


def test_a_body_without_contact_areas_says_where_to_name_them() -> None:
    with pytest.raises(BodyError, match=r"stick.urdf: no contact areas are known; add \[contact.NAME\] .* stick.toml"):
        body_from_text("stick", STICK, {}).contact_polygon()


# ------------------------------------------------------------------ locking


def test_joints_are_locked_by_list_wildcard_or_angle(body: Body) -> None:
    assert body.locked == {}
    assert body.lock(["hip_x", "neck_z"]).locked == {"hip_x": 0.0, "neck_z": 0.0}
    assert list(body.lock(["knee_*"]).locked) == list(body.lock("knee_*").locked) == ["knee_x", "knee_y", "knee_z"]
    bent = body.lock({"knee_y": 0.4, "*_z": -0.1})
    assert bent.locked == {"knee_y": 0.4, "ankle_z": -0.1, "knee_z": -0.1, "hip_z": -0.1, "neck_z": -0.1}
    assert bent.neutral[body.joint_index("knee_y")] == 0.4
    assert "knee_y" not in bent.free_joints
    assert len(bent.free) == 7
    assert bent.lock(["hip_x"]).locked == bent.locked | {"hip_x": 0.0}
    assert body.locked == {}  # the first one is as it was
    assert bent.sha256 != body.sha256


def test_a_locked_body_balances_where_it_is_locked(body: Body) -> None:
    bent = body.lock({"hip_y": 0.5})
    position = np.zeros(12)
    position[body.joint_index("hip_y")] = 0.5
    np.testing.assert_array_equal(bent.center_of_mass(), body.center_of_mass(position))
    assert bent.center_of_mass()[0] > 0.05  # trunk forward


def test_scaling_keeps_the_locks(body: Body) -> None:
    assert body.lock({"hip_y": 0.5}).scaled(Person(60, 1.6, "female")).locked == {"hip_y": 0.5}


def test_gimbal_joints_are_the_middle_ones_of_the_triples(body: Body) -> None:
    assert body.gimbal_joints == ["ankle_y", "knee_y", "hip_y", "neck_y"]
    assert body_from_text("stick", STICK, {}).gimbal_joints == []


# ------------------------------------------------------------------ toppling


def potential(body: Body, position: np.ndarray) -> float:
    return body.mass * STANDARD_GRAVITY * float(body.center_of_mass(position)[2])


def test_toppling_stiffness_is_the_curvature_of_the_potential_energy(body: Body) -> None:
    step, stiffness = 1e-3, body.toppling_stiffness()
    for index, name in enumerate(body.joint_names):
        ahead, behind = np.zeros(12), np.zeros(12)
        ahead[index], behind[index] = step, -step
        curve = (potential(body, ahead) - 2 * potential(body, body.neutral) + potential(body, behind)) / step**2
        if name.endswith("_z"):
            assert abs(curve) < 1e-3  # a turn about the vertical topples nothing; 1e-13 of rounding over 1e-6
            assert stiffness[name] == pytest.approx(VERTICAL_AXIS_SHARE * stiffness[name[:-1] + "y"])
        else:
            # The next term of the cosine is step² / 12 = 8e-8 of it; rounding of 1000 J adds 1e-13 / step² = 2e-7.
            assert stiffness[name] == pytest.approx(-curve, rel=1e-5), name
    # The head by hand: 5.552 kg, its centre 1 - 0.5002 of 1.78 · 242.9 / 1741 m above the neck.
    assert stiffness["neck_y"] == pytest.approx(5.552 * 9.80665 * (1 - 0.5002) * 1.78 * 242.9 / 1741, rel=1e-6)


def test_toppling_stiffness_of_a_tilted_axis_is_the_curvature_too() -> None:
    tilted = body_from_text("stick", STICK.replace('xyz="0 1 0"', 'xyz="0 0.6 0.8"').replace('xyz="0.4 0 0"', ""), {})
    step = 1e-3
    heights = [potential(tilted, np.array([angle, 0.0])) for angle in (-step, 0.0, step)]
    curve = (heights[0] - 2 * heights[1] + heights[2]) / step**2
    assert tilted.toppling_stiffness()["tilt"] == pytest.approx(-curve, rel=1e-5)


# ------------------------------------------------------------------ writing


def test_a_written_body_moves_like_the_one_it_was(body: Body, tmp_path: Path) -> None:
    anna = body.scaled(Person(58.3, 1.643, "female"))
    write_body(anna, tmp_path / "anna.urdf")
    again = load_body(tmp_path / "anna.urdf")
    assert again.person == anna.person
    assert again.sidecar == anna.sidecar
    np.testing.assert_array_equal(again.contact_polygon(), anna.contact_polygon())
    rng = np.random.default_rng(4)
    for _ in range(5):
        q, v, a = anna.with_base(rng.uniform(-1, 1, 12)), rng.normal(size=18), rng.normal(size=18)
        one, other = (pin.rnea(of.model, of.model.createData(), q, v, a) for of in (anna, again))
        np.testing.assert_array_equal(one, other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anna.toml", "anna.urdf"]


def test_names_in_any_script_survive_writing(tmp_path: Path) -> None:
    urdf = STICK.replace("base", "fuß 🦶")
    contact = {'ball "of" foot 🦶': {"link": "fuß 🦶", "points": TOE["contact"]["back"]["points"]}}
    write_body(body_from_text("stick", urdf, {"contact": contact}), str(tmp_path / "stick.urdf"))
    assert load_body(tmp_path / "stick.urdf").sidecar == {"contact": contact}


def test_a_body_that_cannot_be_written_leaves_nothing(body: Body, tmp_path: Path) -> None:
    with pytest.raises(posture.PostureError, match="does not exist; create it first"):
        write_body(body, tmp_path / "nowhere" / "x.urdf")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ places of installation

LOADS = """
import json, posture
from posture.body import load_body, models_folder
body = load_body("ship_stance")
print(json.dumps([posture.__file__, str(models_folder()), body.mass, body.contact_names]))
"""


def loaded_from(folder: Path, elsewhere: Path) -> tuple[Path, Path]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{LOADS}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=elsewhere, check=True, timeout=120
    )
    package, models, mass, contacts = json.loads(done.stdout)
    assert mass == pytest.approx(80)
    assert contacts == ["left_foot", "right_foot"]
    return Path(package), Path(models)


def test_bodies_are_found_in_a_source_tree(tmp_path: Path) -> None:
    for name in ("posture", "controllers", "models_urdf"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    package, models = loaded_from(tmp_path, tmp_path / "posture")
    assert package.is_relative_to(tmp_path)
    assert models == tmp_path / "models_urdf"


@pytest.mark.slow
def test_bodies_are_found_in_an_installed_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(REPOSITORY)]
    subprocess.run(build, capture_output=True, text=True, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "posture/models_urdf/ship_stance.urdf" in names
    assert "posture/models_urdf/ship_stance.toml" in names
    assert not [name for name in names if name.startswith("tests")]
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target"]
    target = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "pip", *install, str(target), str(wheel)], check=True, timeout=300)
    package, models = loaded_from(target, tmp_path)
    assert package.is_relative_to(target)
    assert models == target / "posture" / "models_urdf"


def test_bodies_are_found_where_this_posture_is_installed() -> None:
    assert (models_folder() / "ship_stance.urdf").is_file()
    assert models_folder().name == "models_urdf"


def test_the_function_simulate_is_not_hidden_by_its_module() -> None:
    code = "import posture, posture.scenario; assert callable(posture.simulate)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
