"""Elements against MuJoCo's spatial tendons and against Pinocchio's own constraint dynamics."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.elements import Ligament, Rod
from posture.simulate import Dynamics
from posture.systems.double_pendulum import tied_line

LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("double_pendulum+biped_inertia")


def mjcf(ends: dict, tendon: str) -> str:
    """The pendulum of double_pendulum.urdf with its numbers typed in again, and one tendon."""
    hinges = "".join(f'<joint type="hinge" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    site_a, site_b = (" ".join(map(str, ends[key])) for key in ("point_a", "point_b"))
    return f"""
    <mujoco>
      <compiler angle="radian" autolimits="true"/>
      <option gravity="0 0 -{STANDARD_GRAVITY}" timestep="0.001"/>
      <worldbody>
        <body>{hinges}
          <inertial pos="0 0 0.267" mass="4.6" diaginertia="0.105 0.105 0.0105"/>
          <site name="a" pos="{site_a}"/>
          <body pos="0 0 0.502">{hinges}
            <inertial pos="0 0 0.247" mass="7.6" diaginertia="0.089 0.089 0.0178"/>
            <site name="b" pos="{site_b}"/>
          </body>
        </body>
      </worldbody>
      <tendon><spatial name="line" {tendon}><site site="a"/><site site="b"/></spatial></tendon>
    </mujoco>"""


def states(count: int):
    generator = np.random.default_rng(11)
    for _ in range(count):
        yield generator.uniform(-0.8, 0.8, 6), generator.normal(0, 2, 6), generator.normal(0, 20, 6)


def test_ligament_agrees_with_a_mujoco_tendon(body: Body):
    ends = tied_line(body)
    line = Ligament(**ends, stiffness=700, damping=12, rest_length=0.55, slack=False)
    model = mujoco.MjModel.from_xml_string(mjcf(ends, 'stiffness="700" damping="12" springlength="0.55"'))
    data, dynamics = mujoco.MjData(model), Dynamics(body, [line])
    for q, v, u in states(50):
        data.qpos, data.qvel, data.qfrc_applied = q, v, u
        mujoco.mj_forward(model, data)
        ours = dynamics.acceleration(q, v, u, LEVEL)
        np.testing.assert_allclose(ours, data.qacc, rtol=1e-9, atol=1e-8)
        at = dynamics.elements.geometry(q, v)
        assert at.length[0] == pytest.approx(data.ten_length[0], rel=1e-12)
        assert at.rate[0] == pytest.approx(data.ten_velocity[0], rel=1e-9, abs=1e-12)


def test_slack_ligament_agrees_with_a_mujoco_tendon_with_a_dead_band(body: Body):
    ends = tied_line(body)
    line = Ligament(**ends, stiffness=700, rest_length=0.6)
    model = mujoco.MjModel.from_xml_string(mjcf(ends, 'stiffness="700" springlength="0 0.6"'))
    data, dynamics = mujoco.MjData(model), Dynamics(body, [line])
    slack = 0
    for q, v, u in states(50):
        data.qpos, data.qvel, data.qfrc_applied = q, v, u
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(dynamics.acceleration(q, v, u, LEVEL), data.qacc, rtol=1e-9, atol=1e-8)
        slack += dynamics.tension[0] == 0
    assert 0 < slack < 50


def test_rod_agrees_with_the_kkt_matrix_of_pinocchios_frames(body: Body):
    """Points as operational frames, their Jacobians and drift by Pinocchio, one dense solve; on a floating model."""
    ends = tied_line(body)
    model = body.model.copy()
    frames = [
        model.addFrame(
            pin.Frame(key, model.getJointId(joint), 0, pin.SE3(np.eye(3), np.array(ends[key])), pin.FrameType.OP_FRAME)
        )
        for key, joint in (("point_a", "base_z"), ("point_b", "middle_z"))
    ]
    data = model.createData()
    for q, v, u in states(100):
        dynamics = Dynamics(body, [Rod(**ends)], q)
        row = dynamics.elements.geometry(q, v).row[0]
        v = v - row * (row @ v) / (row @ row)
        ours = dynamics.acceleration(q, v, u, LEVEL)
        configuration, velocity = body.with_base(q), np.concatenate((np.zeros(6), v))
        bias = pin.rnea(model, data, configuration, velocity, np.concatenate(([0, 0, STANDARD_GRAVITY], np.zeros(9))))
        inertia = np.triu(pin.crba(model, data, configuration))
        inertia = (inertia + np.triu(inertia, 1).T)[6:, 6:]
        bias = np.array(bias)[6:]
        pin.forwardKinematics(model, data, configuration, velocity, np.zeros(12))
        pin.computeJointJacobians(model, data, configuration)
        pin.updateFramePlacements(model, data)
        way = pin.LOCAL_WORLD_ALIGNED
        near, far = (
            (
                data.oMf[frame].translation,
                pin.getFrameJacobian(model, data, frame, way)[:3, 6:],
                pin.getFrameVelocity(model, data, frame, way).linear,
                pin.getFrameClassicalAcceleration(model, data, frame, way).linear,
            )
            for frame in frames
        )
        span, jacobian, speed, drift = (b - a for a, b in zip(near, far, strict=True))
        row, gamma = span @ jacobian, speed @ speed + span @ drift  # d²(L'L/2)/dt² = 0
        matrix = np.block([[inertia, row[:, None]], [row[None], np.zeros((1, 1))]])
        solved = np.linalg.solve(matrix, np.concatenate((u - bias, [-gamma])))
        np.testing.assert_allclose(ours, solved[:6], atol=1e-10 * np.abs(ours).max())
        force = solved[6] * np.linalg.norm(span)
        assert dynamics.tension[0] == pytest.approx(force, rel=1e-9, abs=1e-9)


def test_rod_agrees_with_pinocchios_constraint_dynamics(body: Body):
    """A massless-as-can-be stick on a ball at one end, its other end held to the second body by Pinocchio."""
    ends = tied_line(body)
    model = pin.buildModelFromXML(body.urdf)
    model.gravity = pin.Motion(np.array([0, 0, -STANDARD_GRAVITY]), np.zeros(3))
    lower, upper = model.getJointId("base_z"), model.getJointId("middle_z")
    stick = model.addJoint(lower, pin.JointModelSpherical(), pin.SE3(np.eye(3), np.array(ends["point_a"])), "stick")
    mass = 1e-8
    model.appendBodyToJoint(stick, pin.Inertia(mass, np.zeros(3), mass * np.eye(3)), pin.SE3.Identity())
    data = model.createData()
    for q, v, u in states(20):
        dynamics = Dynamics(body, [Rod(**ends)], q)
        at = dynamics.elements.geometry(q, v)
        row = at.row[0]
        v = v - row * (row @ v) / (row @ row)  # a motion that keeps the length
        ours = dynamics.acceleration(q, v, u, LEVEL)

        # The stick along its x axis, turning as the line turns.
        plain = body.model.createData()
        zero = np.zeros(6)
        pin.forwardKinematics(body.model, plain, body.with_base(q), np.concatenate((zero, v)))
        places, speeds = [], []
        for joint, key in ((4, "point_a"), (7, "point_b")):
            frame, twist = plain.oMi[joint], plain.v[joint]
            places.append(frame.act(np.array(ends[key])))
            speeds.append(frame.rotation @ (twist.linear + np.cross(twist.angular, ends[key])))
        span, speed = places[1] - places[0], speeds[1] - speeds[0]
        length = np.linalg.norm(span)
        x = span / length
        y = np.cross(x, [0.3, 0.5, 0.8])
        y /= np.linalg.norm(y)
        carrier = plain.oMi[4].rotation
        local = carrier.T @ np.column_stack((x, y, np.cross(x, y)))
        spin = np.cross(span, speed) / length**2  # of the stick in the world, none about itself
        inner = local.T @ (carrier.T @ spin - plain.v[4].angular)
        configuration = np.concatenate((q, pin.Quaternion(local).coeffs()))
        constraint = pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D,
            model,
            stick,
            pin.SE3(np.eye(3), np.array([length, 0, 0])),
            upper,
            pin.SE3(np.eye(3), np.array(ends["point_b"])),
            pin.LOCAL,
        )
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        models.append(constraint)
        datas.append(constraint.createData())
        pin.initConstraintDynamics(model, data, models, datas)
        theirs = pin.constraintDynamics(
            model, data, configuration, np.concatenate((v, inner)), np.concatenate((u, np.zeros(3))), models, datas
        )
        # The stick's own inertia of 1e-8 kg·m² against the bodies' 0.01 to 1: up to 1e-6, found 2e-8.
        np.testing.assert_allclose(ours, np.array(theirs)[:6], atol=1e-7 * np.abs(ours).max())
