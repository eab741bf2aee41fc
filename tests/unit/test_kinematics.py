"""Many frames at once against Pinocchio, one frame at a time."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from posture.body import body_from_text, load_body
from posture.errors import PostureError
from posture.joint_loads import Push, joint_loads
from posture.kinematics import Base, postures

GRAVITY = np.array([0.3, -0.2, -9.81])  # not along an axis, so that no component can hide

SLIDER = """<robot name="slider"><link name="base"><inertial><mass value="2"/><origin xyz="0.1 0 0"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
<link name="arm"><inertial><origin xyz="0 0.2 0.1"/><mass value="1.5"/>
<inertia ixx="0.05" iyy="0.06" izz="0.04" ixy="0" ixz="0.005" iyz="0"/></inertial></link>
<link name="rod"><inertial><origin xyz="0.05 0 0.3"/><mass value="0.7"/>
<inertia ixx="0.03" iyy="0.02" izz="0.025" ixy="0" ixz="0" iyz="0.002"/></inertial></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/>
<origin xyz="0.1 0.2 0.3" rpy="0.4 -0.3 0.2"/>
<axis xyz="0.6 0 0.8"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="rod"/><origin xyz="0 0 0.5" rpy="0.1 0.7 0"/>
<axis xyz="0 0.6 0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def _bodies():
    return {
        "jump": load_body("jump"),
        "ship_stance": load_body("ship_stance"),
        "slider": body_from_text("slider", SLIDER, {"floats": True}),
    }


def _states(body, count, seed):
    rng = np.random.default_rng(seed)
    quaternion = Rotation.random(count, random_state=seed).as_quat()
    configuration = np.hstack((rng.normal(size=(count, 3)), quaternion, rng.normal(size=(count, body.model.nq - 7))))
    return configuration, rng.normal(size=(count, body.model.nv)), rng.normal(size=(count, body.model.nv))


@pytest.mark.parametrize("name", ["jump", "ship_stance", "slider"])
def test_places_and_loads_agree_with_pinocchio(name):
    body = _bodies()[name]
    q, v, a = _states(body, 12, 3)
    base = Base.free_flyer(q, v, a)
    placed = postures(body, q[:, 7:], base)
    loads = joint_loads(body, q[:, 7:], v[:, 6:], a[:, 6:], base=base, gravity=GRAVITY)
    model = body.model.copy()
    model.gravity = pin.Motion(GRAVITY, np.zeros(3))
    data = model.createData()
    for frame in range(len(q)):
        torque = pin.rnea(model, data, q[frame], v[frame], a[frame])
        pin.forwardKinematics(model, data, q[frame])
        # Sums of some tens of terms of size 100: rounding stays below 1e-11.
        np.testing.assert_allclose(loads.torque[frame], torque[6:], atol=1e-11)
        root = data.oMi[1].act(data.f[1])
        np.testing.assert_allclose(loads.root_force[frame], root.linear, atol=1e-11)
        np.testing.assert_allclose(loads.root_moment[frame], root.angular, atol=1e-11)
        for joint in range(len(body.joint_names)):
            place = data.oMi[joint + 2]
            np.testing.assert_allclose(placed.origin[joint + 1][:, frame], place.translation, atol=1e-13)
            np.testing.assert_allclose(placed.rotation[joint + 1][:, :, frame], place.rotation, atol=1e-13)
            np.testing.assert_allclose(loads.force[frame, joint], place.rotation @ data.f[joint + 2].linear, atol=1e-11)
            np.testing.assert_allclose(
                loads.moment[frame, joint], place.rotation @ data.f[joint + 2].angular, atol=1e-11
            )


def test_pushes_agree_with_external_forces_of_pinocchio():
    body = load_body("jump")
    q, v, a = _states(body, 5, 8)
    base = Base.free_flyer(q, v, a)
    rng = np.random.default_rng(9)
    force, moment = rng.normal(0, 300, (5, 3)), rng.normal(0, 30, (5, 3))
    point = rng.normal(size=(5, 3))
    push = Push("left_sole", force, point, moment)
    loads = joint_loads(body, q[:, 7:], v[:, 6:], a[:, 6:], base=base, pushes=[push], gravity=GRAVITY)
    model = body.model.copy()
    model.gravity = pin.Motion(GRAVITY, np.zeros(3))
    data = model.createData()
    joint = model.getJointId("left_ankle")
    for frame in range(5):
        pin.forwardKinematics(model, data, q[frame])
        outside = [pin.Force.Zero() for _ in range(model.njoints)]
        world = pin.Force(force[frame], moment[frame] + np.cross(point[frame], force[frame]))
        outside[joint] = data.oMi[joint].actInv(world)
        torque = pin.rnea(model, data, q[frame], v[frame], a[frame], outside)
        np.testing.assert_allclose(loads.torque[frame], torque[6:], atol=1e-10)


def test_chosen_joints_get_the_same_loads_as_all():
    body = load_body("jump")
    q, v, a = _states(body, 700, 4)  # more frames than are worked on at once
    base = Base.free_flyer(q, v, a)
    every = joint_loads(body, q[:, 7:], v[:, 6:], a[:, 6:], base=base)
    some = joint_loads(body, q[:, 7:], v[:, 6:], a[:, 6:], base=base, joints=["right_knee", "lumbar"])
    columns = [body.joint_index("right_knee"), body.joint_index("lumbar")]
    np.testing.assert_array_equal(some.force, every.force[:, columns])
    np.testing.assert_array_equal(some.torque, every.torque[:, columns])


def test_wrong_sizes_are_told():
    body = load_body("jump")
    with pytest.raises(PostureError, match="12 columns, the body 13 joints"):
        postures(body, np.zeros((4, 12)))
    zero = np.zeros((4, 13))
    with pytest.raises(PostureError, match="together"):
        joint_loads(body, zero, zero, zero, muscle_force=np.zeros((4, 18)))
