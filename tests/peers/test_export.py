"""Exported bodies in other programs: mass, inertia and forward dynamics as in Pinocchio.

MuJoCo comes with the test extra. Drake is a large wheel that does not share a process with Pinocchio: it runs in a
subprocess of whatever Python has it (POSTURE_DRAKE_PYTHON, else this one), and is skipped where there is none.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest

from posture.anthropometry import Person
from posture.body import STANDARD_GRAVITY, load_body
from posture.errors import BodyError
from posture.export_body import mjcf_text, urdf_text, write_export
from posture.swap import stand

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed; it comes with the test extra")

TOLERANCE = 1e-9  # relative; massless frames get 1e-14 kg·m² in MuJoCo, inertias are turned to principal axes
BODIES = {
    "cip": lambda: load_body("cip"),
    "ankle_hip": lambda: load_body("ankle_hip"),
    "ship_stance": lambda: load_body("ship_stance"),
    "double_pendulum": lambda: load_body("double_pendulum"),
    "gait": lambda: load_body("gait"),
    "jump": lambda: load_body("jump"),
    "scaled": lambda: load_body("ship_stance", person=Person(62.0, 1.68, "female")),
    "locked": lambda: load_body("ship_stance").lock({"knee_y": 0.3, "knee_x": 0.0, "neck_*": -0.2}),
    "standing": lambda: stand("gait"),
    "one_foot": lambda: stand("jump", on="left"),
}


def states(body, count=10):
    """Random motions of the free joints, and of the root of a body that floats: q, v, torques by joint."""
    random, n = np.random.default_rng(8), len(body.free)
    return [(random.uniform(-0.8, 0.8, n), random.normal(0, 2, n), random.normal(0, 60, n)) for _ in range(count)]


def pinocchio_s(body):
    """Accelerations of the free joints by ABA on the exported URDF's reduced model, or the floating one, in gravity."""
    whole = body.model_with_gravity
    locked = [whole.getJointId(name) for name in body.locked]
    fixed = [] if body.floats else [1]
    model = pin.buildReducedModel(whole, [*fixed, *locked], body.with_base(body.neutral))
    data, start = model.createData(), 7 if body.floats else 0
    rows = []
    for q, v, u in states(body):
        position, velocity, torque = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        position[start:], velocity[start - (start > 0) :], torque[start - (start > 0) :] = q, v, u
        rows.append(pin.aba(model, data, position, velocity, torque))
    return np.array(rows)


@pytest.fixture(scope="module", params=BODIES)
def body(request):
    return BODIES[request.param]()


def test_forward_dynamics_survive_the_way_through_mujoco(body):
    text = mjcf_text(body)
    model = mujoco.MjModel.from_xml_string(text)
    assert model.body_mass.sum() == pytest.approx(body.mass, rel=1e-10)
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, index) for index in range(model.njnt)]
    names = [name for name in names if name in body.joint_names]
    assert names == [name for name in names if name in body.free_joints]
    assert sorted(names) == sorted(body.free_joints)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in body.free_joints]
    rows, data = [], mujoco.MjData(model)
    base = 6 if body.floats else 0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for q, v, u in states(body):
        mujoco.mj_resetData(model, data)
        data.qpos[model.jnt_qposadr[joints]], data.qvel[model.jnt_dofadr[joints]] = q, v
        data.qfrc_applied[model.jnt_dofadr[joints]] = u
        mujoco.mj_forward(model, data)
        rows.append(np.concatenate((data.qacc[:base], data.qacc[model.jnt_dofadr[joints]])))
    expected = pinocchio_s(body)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(np.array(rows) - expected) / scale).max() < TOLERANCE


def test_exported_urdf_is_the_locked_body(body, tmp_path):
    write_export(body, tmp_path / "given.urdf")
    again = load_body(tmp_path / "given.urdf")
    assert again.joint_names == body.free_joints
    assert again.mass == pytest.approx(body.mass, rel=1e-14)
    q = states(body, 1)[0][0]
    whole = body.neutral
    whole[body.free] = q
    np.testing.assert_allclose(again.center_of_mass(q), body.center_of_mass(whole), atol=1e-12)
    inertias = [
        np.array(pin.crba(one.model, one.data, one.with_base(at)))[np.ix_(rows, rows)]
        for one, at, rows in ((again, q, np.arange(len(q)) + 6), (body, whole, body.free + 6))
    ]
    np.testing.assert_allclose(np.triu(inertias[0]), np.triu(inertias[1]), atol=1e-11)


DRAKE = """
import json, sys
import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.math import RigidTransform

given = json.load(sys.stdin)
plant = MultibodyPlant(0.0)
plant.mutable_gravity_field().set_gravity_vector([0, 0, -given["gravity"]])
(model,) = Parser(plant).AddModelsFromString(given["urdf"], "urdf")
if not given["floats"]:
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName(given["root"]), RigidTransform())
plant.Finalize()
context, rows = plant.CreateDefaultContext(), []
joints = [plant.GetJointByName(name) for name in given["joints"]]
for q, v, u in given["states"]:
    position, velocity = np.zeros(plant.num_positions()), np.zeros(plant.num_velocities())
    torque = np.zeros(plant.num_velocities())
    if given["floats"]:
        position[0] = 1.0
    for joint, a, b, c in zip(joints, q, v, u):
        position[joint.position_start()], velocity[joint.velocity_start()] = a, b
        torque[joint.velocity_start()] = c
    plant.SetPositions(context, position)
    plant.SetVelocities(context, velocity)
    inertia = plant.CalcMassMatrix(context)
    bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
    rows.append(np.linalg.solve(inertia, torque - bias)[[joint.velocity_start() for joint in joints]].tolist())
json.dump({"mass": plant.CalcTotalMass(context), "rows": rows}, sys.stdout)
"""


def drake_python():
    python = os.environ.get("POSTURE_DRAKE_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import pydrake.multibody.plant"], capture_output=True, check=False)
    return python if found.returncode == 0 else None


def test_forward_dynamics_survive_the_way_through_drake(body):
    python = drake_python()
    if python is None:
        pytest.skip("Drake is not installed; pip install drake, or name a Python that has it in POSTURE_DRAKE_PYTHON")
    from lxml import etree

    root = etree.fromstring(urdf_text(body).encode())
    for shape in [*root.iter("visual"), *root.iter("collision")]:
        shape.getparent().remove(shape)
    for material in root.findall("material"):
        root.remove(material)
    above = {joint.find("child").get("link") for joint in root.findall("joint")}
    (first,) = [link.get("name") for link in root.findall("link") if link.get("name") not in above]
    given = {
        "urdf": etree.tostring(root, encoding="unicode"),
        "root": first,
        "floats": body.floats,
        "joints": body.free_joints,
        "gravity": STANDARD_GRAVITY,
        "states": [[row.tolist() for row in state] for state in states(body)],
    }
    done = subprocess.run([python, "-c", DRAKE], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["mass"] == pytest.approx(body.mass, rel=1e-12)
    expected = pinocchio_s(body)[:, 6 if body.floats else 0 :]
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(np.array(found["rows"]) - expected) / scale).max() < TOLERANCE


def test_a_body_is_given_as_urdf_or_mjcf_only(tmp_path):
    with pytest.raises(BodyError, match=r"exported as \.urdf or, for MuJoCo, as \.xml"):
        write_export(load_body("cip"), tmp_path / "cip.sdf")
    assert not list(tmp_path.iterdir())
