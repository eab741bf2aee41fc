"""Foreign bodies on the deck: feet and roles are found, the dynamics stay those of the original."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree

from posture.body import load_body, write_body
from posture.errors import BodyError
from posture.simulate import Dynamics
from posture.swap import by_role, roles, stand

GRAVITY = 9.80665
LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, GRAVITY])


def held(original, feet, toes, position, velocity, torque):
    """Joint accelerations of a floating body whose feet are held, by Pinocchio and a KKT system: a second way.

    Joint arrays by name; the base is put where the first foot is at the origin and at rest.
    """
    whole = original.model_with_gravity
    model = pin.buildReducedModel(whole, [whole.getJointId(name) for name in toes], pin.neutral(whole))
    data = model.createData()
    q, v, u = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for name, value in position.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
        v[model.joints[model.getJointId(name)].idx_v] = velocity[name]
        u[model.joints[model.getJointId(name)].idx_v] = torque[name]
    frames = [model.getFrameId(foot) for foot in feet]
    pin.framesForwardKinematics(model, data, q)
    q[:7] = pin.SE3ToXYZQUAT(data.oMf[frames[0]].inverse())
    pin.computeJointJacobians(model, data, q)
    pin.framesForwardKinematics(model, data, q)
    jacobian = np.vstack([pin.getFrameJacobian(model, data, frame, pin.LOCAL) for frame in frames])
    v[:6] = -np.linalg.solve(jacobian[:6, :6], jacobian[:6, 6:] @ v[6:])
    assert np.abs(jacobian @ v).max() < 1e-9, "the motion asked for would move a foot"
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    drift = np.concatenate([pin.getFrameAcceleration(model, data, frame, pin.LOCAL).vector for frame in frames])
    inertia = np.array(pin.crba(model, data, q))
    inertia = np.triu(inertia) + np.triu(inertia, 1).T
    bias = pin.nonLinearEffects(model, data, q, v)
    rows = len(jacobian)
    system = np.block([[inertia, -jacobian.T], [jacobian, np.zeros((rows, rows))]])
    found = np.linalg.lstsq(system, np.concatenate((u - bias, -drift)), rcond=None)[0][: model.nv]
    return {name: found[model.joints[model.getJointId(name)].idx_v] for name in position}


def random_motion(names, seed):
    random = np.random.default_rng(seed)
    return [dict(zip(names, values, strict=True)) for values in random.uniform(-0.5, 0.5, (2, len(names)))] + [
        dict(zip(names, random.uniform(-40, 40, len(names)), strict=True))
    ]


def ours(body, position, velocity, torque):
    rows = [np.array([by_name[name] for name in body.joint_names]) for by_name in (position, velocity, torque)]
    return dict(zip(body.joint_names, Dynamics(body).acceleration(*rows, LEVEL), strict=True))


def assert_same_acceleration(one, other):
    scale = max(abs(value) for value in other.values())
    for name, value in other.items():
        assert one[name] == pytest.approx(value, abs=1e-9 * scale), name


@pytest.mark.parametrize("name", ["gait", "jump"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_turning_the_tree_round_keeps_the_dynamics(name, side):
    original, body = load_body(name), stand(name, on=side)
    assert body.mass == pytest.approx(original.mass, rel=1e-14)
    toes = [joint for joint in original.joint_names if joint not in body.joint_names]
    foot = body.sidecar["stand"]["feet"][side]
    for seed in range(3):
        position, velocity, torque = random_motion(body.joint_names, seed)
        expected = held(original, [foot], toes, position, velocity, torque)
        assert_same_acceleration(ours(body, position, velocity, torque), expected)


def lockstep(body, original, seed):
    """Sagittal motion in which both legs do the same: by joint of the merged body and of the original."""
    table = roles(body)
    legs = [joint for role in ("ankle_y", "knee_y", "hip_y") for joint in table[role]]
    middle = [joint for role, joints in table.items() if role.endswith("_y") and role[:4] in ("trun", "neck")
              for joint in joints]  # fmt: skip
    names = [*legs, *middle]
    merged = [dict.fromkeys(body.joint_names, 0.0) for _ in range(3)]
    apart = [dict.fromkeys(original, 0.0) for _ in range(3)]
    for row, motion in enumerate(random_motion(names, seed)):
        for name, value in motion.items():
            merged[row][name] = value
            for twin in [name] if name in original else _twins(name, original):
                # A torque of the merged leg is shared by both.
                apart[row][twin] = value / 2 if row == 2 and twin != name else value
    return merged, apart


def _twins(name, original):
    plain = {joint: joint.replace("left_", "").replace("right_", "") for joint in original}
    plain |= {joint: text.replace("Left", "").replace("Right", "") for joint, text in plain.items()}
    return [joint for joint, text in plain.items() if text == name]


@pytest.mark.parametrize("name", ["gait", "jump"])
def test_two_legs_as_one_are_exact_in_the_sagittal_plane(name):
    original, body = load_body(name), stand(name)
    toes = [joint for joint in original.joint_names if "toes" in joint]
    names = [joint for joint in original.joint_names if joint not in toes]
    for seed in range(3):
        merged, apart = lockstep(body, names, seed)
        expected = held(original, list(body.sidecar["stand"]["feet"].values()), toes, *apart)
        found = ours(body, *merged)
        scale = max(abs(value) for value in expected.values())
        for joint in body.joint_names:
            twin = joint if joint in expected else _twins(joint, names)[0]
            assert found[joint] == pytest.approx(expected[twin], abs=1e-8 * scale), joint


def test_a_standing_body_is_left_as_it_is():
    for name in ("cip", "ankle_hip", "ship_stance", "double_pendulum"):
        assert stand(name).urdf == load_body(name).urdf


def test_a_written_standing_body_is_read_back_the_same(tmp_path):
    body = stand("gait")
    write_body(body, tmp_path / "standing.urdf")
    again = load_body(tmp_path / "standing.urdf")
    assert again.joint_names == body.joint_names
    assert roles(again) == roles(body)
    np.testing.assert_allclose(again.contact_polygon(), body.contact_polygon(), atol=1e-12)


def test_the_feet_touch_the_deck_with_their_soles():
    body = stand("jump")
    pin.framesForwardKinematics(body.model, body.data, body.with_base(body.neutral))
    outline = body.contact_polygon()
    assert outline[:, 1].max() == pytest.approx(-outline[:, 1].min(), abs=1e-9)  # left and right alike
    heel_to_toe = np.ptp(outline[:, 0])
    assert 0.2 < heel_to_toe < 0.32
    assert 0.5 < body.center_of_mass()[2] / 1.76 < 0.62  # share of the stature, standing


def test_settings_carry_over_by_role():
    gait, ship = stand("gait"), load_body("ship_stance")
    settings = {"ankle": 900.0, "ankle_x": 700.0, "knee": 800.0, "hip": 600.0, "neck": 30.0}
    for body in (gait, ship):
        found = by_role(body, settings, rest=20.0)
        assert (found["ankle_x"], found["ankle_y"], found["hip_z"]) == (700.0, 900.0, 600.0)
    assert by_role(gait, settings, rest=20.0)["left_elbow_y"] == 20.0
    with pytest.raises(BodyError, match=r"left_elbow_y|lumbar_y"):
        by_role(gait, settings)
    with pytest.raises(BodyError, match="no joint role is called 'ankel'; did you mean 'ankle"):
        by_role(gait, {"ankel": 1.0}, rest=0.0)


# ---------------------------------------------------------------- foreign files

LINK = (
    '<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial>{more}</link>'
)
BOX = '<collision><origin xyz="0.05 0 -0.06"/><geometry><box size="0.26 0.1 0.04"/></geometry></collision>'


def joint(name, parent, child, at, kind="revolute", axis="0 1 0", more=""):
    limit = '<limit lower="-1" upper="1" effort="100" velocity="5"/>' if kind == "revolute" else ""
    axis = f'<axis xyz="{axis}"/>' if kind == "revolute" else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}"/>{axis}{limit}{more}</joint>'
    )


def robot(*, feet=("l_foot", "r_foot"), sole=BOX, up="0 0 1", across=0.1, right_axis="0 1 0", more="", right=True):
    """A small humanoid: pelvis, two legs of two joints, a head; its parts can be spoilt one by one."""
    parts = [
        LINK.format(name="pelvis", at="0 0 0.2", mass=40, more=""),
        LINK.format(name="head", at="0 0 0.1", mass=5, more=""),
        joint("neck", "pelvis", "head", " ".join(str(0.6 * float(word)) for word in up.split())),
    ]
    for side, foot, sign in (("l", feet[0], 1), ("r", feet[1], -1)):
        if side == "r" and not right:
            continue
        axis = "0 1 0" if side == "l" else right_axis
        parts += [
            LINK.format(name=f"{side}_leg", at="0 0 -0.4", mass=10, more=""),
            LINK.format(name=foot, at="0.05 0 -0.04", mass=1, more=sole),
            joint(f"{side}_hip", "pelvis", f"{side}_leg", f"0 {sign * across} 0", axis=axis),
            joint(f"{side}_ankle", f"{side}_leg", foot, "0 0 -0.8", axis=axis),
        ]
    return f'<robot name="small">{"".join(parts)}{more}</robot>'


def write(folder, text):
    path = folder / "small.urdf"
    path.write_text(text)
    return path


def test_a_foreign_robot_stands(tmp_path):
    body = stand(write(tmp_path, robot()))
    assert body.joint_names == ["ankle", "hip", "neck"]
    assert body.mass == pytest.approx(67)
    np.testing.assert_allclose(np.ptp(body.contact_polygon(), axis=0), [0.26, 0.3])
    # 2 legs of 10 kg at 0.4 + 0.08, 2 feet at 0.04, trunk 40 at 1.08, head 5 at 1.58 (sole 0.08 below the ankle).
    assert body.center_of_mass()[2] == pytest.approx((20 * 0.48 + 2 * 0.04 + 40 * 1.08 + 5 * 1.58) / 67, rel=1e-12)


def test_what_a_robot_has_and_a_person_has_not_is_left_out_and_said(tmp_path):
    mesh = '<visual><geometry><mesh filename="package://robot/absent.stl"/></geometry></visual>'
    more = (
        '<link name="world"/>'
        + joint("to_world", "world", "pelvis", "0 0 1", kind="floating")
        + LINK.format(name="finger", at="0 0 0", mass=0.1, more=mesh)
        + joint("finger", "head", "finger", "0 0 0", more='<mimic joint="neck"/>')
        + '<transmission name="t"/><gazebo/>'
    )
    body = stand(write(tmp_path, robot(more=more)))
    notes = " ".join(body.sidecar["stand"]["notes"])
    assert "absent.stl" in notes
    assert "finger only followed another" in notes
    assert "world was only a frame" in notes
    assert body.joint_names == ["ankle", "hip", "neck"]


def test_mirrored_axes_become_one_joint(tmp_path):
    body = stand(write(tmp_path, robot(right_axis="0 -1 0")))
    assert body.joint_names == ["ankle", "hip", "neck"]


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (robot(feet=("l_end", "r_end")), {}, r"which links are the feet.*lowest links are.*end"),
        (robot(right=False), {}, "which links are the feet"),
        (robot(sole=""), {}, r"foot 'l_foot' has no box.*\[contact\.NAME\]"),
        (robot(up="2 0 0"), {}, "not above the feet along Z"),
        (robot(across=-0.1), {"feet": {"left": "l_foot", "right": "r_foot"}}, "not to the left"),
        (robot(right_axis="1 0 0"), {}, r"turn about different axes.*one foot"),
        (robot(), {"feet": {"left": "l_foot"}}, "both left and right"),
        (robot(), {"feet": {"left": "l_foot", "right": "l_foot"}}, "name two links"),
        (robot(), {"feet": {"left": "l_fot", "right": "r_foot"}}, "did you mean 'l_foot'"),
        (robot(), {"feet": {"left": "pelvis", "right": "r_foot"}}, "cannot move against the root"),
        (robot(), {"head": "haed"}, "did you mean 'head'"),
        (robot(), {"on": "hands"}, "no stance is called 'hands'"),
        (robot().replace('mass value="10"', 'mass value="-10"'), {}, "must be zero or more"),
    ],
)
def test_refusals_are_one_clear_sentence(tmp_path, text, settings, message):
    with pytest.raises(BodyError, match=message) as refused:
        stand(write(tmp_path, text), **settings)
    assert "\n" not in str(refused.value)


SPHERES = "".join(
    f'<collision><origin xyz="{x} {y} -0.04"/><geometry><sphere radius="0.01"/></geometry></collision>'
    for x in (-0.05, 0.15)
    for y in (-0.03, 0.03)
)


def test_feet_without_a_name_are_beyond_the_ankles_and_may_stand_on_spheres(tmp_path):
    text = robot(feet=("l_ankle_link", "r_ankle_link"), sole=SPHERES)
    body = stand(write(tmp_path, text))
    assert body.joint_names == ["ankle", "hip", "neck"]
    # A sphere touches where it is lowest: 0.2 m long, 2 × 0.1 apart plus 0.06 wide, 0.05 below the ankle.
    np.testing.assert_allclose(np.ptp(body.contact_polygon(), axis=0), [0.2, 0.26])
    assert body.center_of_mass()[2] == pytest.approx((20 * 0.45 + 2 * 0.01 + 40 * 1.05 + 5 * 1.55) / 67, rel=1e-12)


def soles(*, mass="0.01"):
    """Frames fixed under links that are not called feet, as many robots have them."""
    return "".join(
        LINK.format(name=f"{side}_sole", at="0 0 0", mass=mass, more="")
        + joint(f"{side}_sole_fixed", f"{side}_leg_6", f"{side}_sole", "0 0 -0.08", kind="fixed")
        for side in ("l", "r")
    )


def test_a_sole_fixed_under_the_last_link_of_a_leg_is_part_of_the_foot(tmp_path):
    body = stand(write(tmp_path, robot(feet=("l_leg_6", "r_leg_6"), more=soles())))
    assert body.sidecar["stand"]["feet"] == {"left": "l_leg_6", "right": "r_leg_6"}
    np.testing.assert_allclose(np.ptp(body.contact_polygon(), axis=0), [0.26, 0.3])


def test_an_outline_that_was_asked_for_is_taken(tmp_path):
    """Only meshes for feet: the refusal asks for the outline, and with it the same file stands."""
    path = write(tmp_path, robot(sole=""))
    with pytest.raises(BodyError, match=r"foot 'l_foot' has no box.*\[contact\.NAME\]"):
        stand(path)
    corners = "[[-0.05, -0.04, -0.08], [0.15, -0.04, -0.08], [0.15, 0.04, -0.08], [-0.05, 0.04, -0.08]]"
    path.with_suffix(".toml").write_text(
        "".join(f'[contact.{one}]\nlink = "{one}"\npoints = {corners}\n' for one in ("l_foot", "r_foot"))
    )
    body = stand(path)
    assert body.joint_names == ["ankle", "hip", "neck"]
    np.testing.assert_allclose(np.ptp(body.contact_polygon(), axis=0), [0.2, 0.28])


def test_a_root_without_mass_is_no_floor_where_the_feet_move(tmp_path):
    more = '<link name="base_link"/>' + joint("waist", "base_link", "pelvis", "0 0 1", kind="fixed")
    text = robot(more=more + LINK.format(name="camera", at="0 0 0", mass=0.1, more=""))
    body = stand(
        write(
            tmp_path, text.replace("</robot>", joint("eye", "base_link", "camera", "0 0 2", kind="fixed") + "</robot>")
        )
    )
    assert body.joint_names == ["ankle", "hip", "neck"]
    assert body.mass == pytest.approx(67.1)


def test_joints_that_move_nothing_with_mass_are_fixed_and_said(tmp_path):
    more = '<link name="finger"/>' + joint("finger", "head", "finger", "0 0 0")
    body = stand(write(tmp_path, robot(more=more)))
    assert body.joint_names == ["ankle", "hip", "neck"]
    assert "joint finger moves nothing that has mass and is fixed" in body.sidecar["stand"]["notes"]


# Z up becomes Y up (ISB), X up, or a body that faces Y: where the old X, Y, Z axes point in the new root link.
TURNS = {
    "isb": [[1, 0, 0], [0, 0, 1], [0, -1, 0]],
    "x_up": [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
    "faces_y": [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
}


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_body_in_other_axes_is_turned_and_keeps_its_dynamics(tmp_path, turn):
    """The same robot with another frame for its root link: the same body, but for a note."""
    plain, rotation = stand(write(tmp_path, robot())), np.array(turn, float)
    assert np.linalg.det(rotation) == pytest.approx(1)
    root = etree.fromstring(robot().encode())
    rpy = " ".join(f"{angle:.17g}" for angle in pin.rpy.matrixToRpy(rotation))
    at_root = [root.find("link[@name='pelvis']/inertial")]
    at_root += [one for one in root.findall("joint") if one.find("parent").get("link") == "pelvis"]
    for holder in at_root:
        place = rotation @ np.array(holder.find("origin").get("xyz").split(), float)
        holder.find("origin").set("xyz", " ".join(f"{x:.17g}" for x in place))
        holder.find("origin").set("rpy", rpy)
    turned = stand(write(tmp_path, etree.tostring(root, encoding="unicode")))
    assert any(note.startswith("turned, as the file has") for note in turned.sidecar["stand"]["notes"])
    np.testing.assert_allclose(turned.contact_polygon(), plain.contact_polygon(), atol=1e-12)
    for seed in range(2):
        motion = random_motion(plain.joint_names, seed)
        assert_same_acceleration(ours(turned, *motion), ours(plain, *motion))


def test_named_feet_stand_where_names_say_nothing(tmp_path):
    path = write(tmp_path, robot(feet=("l_end", "r_end")))
    path.with_suffix(".toml").write_text('[stand]\nfeet = { left = "l_end", right = "r_end" }\n')
    assert stand(path).joint_names == ["ankle", "hip", "neck"]


def test_a_point_mass_may_be_fixed_but_not_moved(tmp_path):
    inertia = '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/>'
    point = f'<link name="point"><inertial><mass value="0.1"/>{inertia}</inertial></link>'
    path = write(tmp_path, robot(more=point + joint("p", "head", "point", "0 0 0.1", kind="fixed")))
    assert load_body(path).mass == pytest.approx(67.1)
    path = write(tmp_path, robot(more=point + joint("p", "head", "point", "0 0 0.1")))
    with pytest.raises(BodyError, match="the inertia is zero"):
        load_body(path)


def test_the_urdf_of_a_standing_body_is_well_formed():
    root = etree.fromstring(stand("gait").urdf.encode())
    names = [element.get("name") for element in root.findall("link")]
    assert len(names) == len(set(names))
