"""Every body that comes with posture in MuJoCo: another reader of URDF, another dynamics engine, same numbers.

MuJoCo gets the same file with a floating joint below its root, real gravity, a random attitude and a random motion
of the base in the world. Shapes are stripped (it has no URDF capsules, and inertia must come from the inertials).
Its free joint has linear speeds in the world and angular ones in the body, and massless frames between three
revolutes are not allowed: they get 1e-13 kg and kg·m², which is below what the tolerance can see.
"""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY, Body, body_from_text, load_body, model_names
from posture.simulate import Dynamics

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed; it comes with the test extra")

Array = NDArray[np.floating]
UP = np.array([0, 0, STANDARD_GRAVITY])
TOLERANCE = 1e-9  # relative; MuJoCo turns each inertia to its principal axes by iteration, exact to about 1e-12


class Peer:
    """A body in MuJoCo on a free base."""

    def __init__(self, body: Body) -> None:
        root = etree.fromstring(body.urdf.encode())
        for shape in [*root.iter("visual"), *root.iter("collision")]:
            shape.getparent().remove(shape)
        children = {joint.find("child").get("link") for joint in root.findall("joint")}
        (first,) = [link.get("name") for link in root.findall("link") if link.get("name") not in children]
        etree.SubElement(root, "link", name="world")
        joint = etree.SubElement(root, "joint", name="base_of_the_peer", type="floating")
        etree.SubElement(joint, "parent", link="world")
        etree.SubElement(joint, "child", link=first)
        settings = etree.SubElement(root, "mujoco")
        etree.SubElement(
            settings, "compiler", fusestatic="false", boundmass="1e-13", boundinertia="1e-13", balanceinertia="false"
        )
        self.model = mujoco.MjModel.from_xml_string(etree.tostring(root, encoding="unicode"))
        self.model.opt.gravity[:] = 0, 0, -STANDARD_GRAVITY
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT  # joint limits are not part of this
        self.data = mujoco.MjData(self.model)
        joints = [mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in body.joint_names]
        assert min(joints) > 0
        self.q, self.v = self.model.jnt_qposadr[joints], self.model.jnt_dofadr[joints]

    def set(self, attitude: Rotation, velocity: Array, w: Array, position: Array, speed: Array) -> None:
        self.data.qpos[:3] = 3.0, -2.0, 1.0
        self.data.qpos[3:7] = attitude.as_quat()[[3, 0, 1, 2]]
        self.data.qpos[self.q] = position
        self.data.qvel[:3], self.data.qvel[3:6], self.data.qvel[self.v] = velocity, w, speed


def states(body: Body, count: int = 20) -> list[tuple[Rotation, dict[str, Array]]]:
    rng, joints = np.random.default_rng(6), len(body.joint_names)
    return [
        (
            Rotation.from_quat(rng.normal(size=4)),
            {
                "velocity": rng.normal(0, 3, 3),
                "lift": rng.normal(0, 5, 3),
                "w": rng.normal(0, 2, 3),
                "wd": rng.normal(0, 2, 3),
                "position": rng.uniform(-1.2, 1.2, joints),
                "speed": rng.normal(0, 3, joints),
                "torque": rng.normal(0, 100, joints),
            },
        )
        for _ in range(count)
    ]


@pytest.fixture(scope="module", params=model_names())
def body(request: pytest.FixtureRequest) -> Body:
    """Each body, its root made heavy: a free base without inertia could spin against the first joint at no cost."""
    found = load_body(request.param)
    root = etree.fromstring(found.urdf.encode())
    children = {joint.find("child").get("link") for joint in root.findall("joint")}
    (first,) = [link for link in root.findall("link") if link.get("name") not in children]
    if first.find("inertial") is not None:
        return found
    inertial = etree.SubElement(first, "inertial")
    etree.SubElement(inertial, "mass", value="2")
    etree.SubElement(inertial, "inertia", ixx="0.02", iyy="0.03", izz="0.04", ixy="0", ixz="0", iyz="0")
    return body_from_text(found.name, etree.tostring(root, encoding="unicode"), found.sidecar)


def added_inertia_share(body: Body) -> float:
    """How much more than TOLERANCE the 1e-13 kg·m² of massless frames change, where a joint turns next to nothing."""
    inertia = np.array(pin.crba(body.model, body.data, body.with_base(body.neutral)))[6:, 6:]
    smallest = np.linalg.eigvalsh(np.triu(inertia) + np.triu(inertia, 1).T)[0]
    # Middle angles up to 1.2 rad shrink what a triple turns by cos² = 0.13; some frames hang on each other.
    return max(1.0, 10 * 1e-13 / (0.13 * smallest) / TOLERANCE)


def test_mujoco_reads_the_same_mass_and_joints(body: Body) -> None:
    peer = Peer(body)
    assert peer.model.nv == 6 + len(body.joint_names)
    assert peer.model.body_mass.sum() == pytest.approx(body.mass, rel=1e-10)
    mujoco.mj_forward(peer.model, peer.data)
    np.testing.assert_allclose(peer.data.subtree_com[0], body.center_of_mass(), atol=1e-10)


def test_accelerations_on_a_moving_base_are_mujoco_s(body: Body) -> None:
    peer, dynamics = Peer(body), Dynamics(body)
    for attitude, s in states(body):
        channels = np.concatenate((s["w"], s["wd"], attitude.inv().apply(s["lift"] + UP)))
        ours = dynamics.acceleration(s["position"], s["speed"], s["torque"], channels)
        wrench = dynamics.reactions(s["position"], s["speed"], ours, channels)[:6]
        # Forward: with our deck wrench and torques, MuJoCo must find the prescribed base motion and our accelerations.
        peer.set(attitude, s["velocity"], s["w"], s["position"], s["speed"])
        peer.data.qfrc_applied[:3], peer.data.qfrc_applied[3:6] = attitude.apply(wrench[:3]), wrench[3:]
        peer.data.qfrc_applied[peer.v] = s["torque"]
        mujoco.mj_forward(peer.model, peer.data)
        scale = max(np.abs(part).max() for part in (ours, s["lift"], s["wd"])) * added_inertia_share(body)
        assert np.abs(peer.data.qacc[peer.v] - ours).max() <= TOLERANCE * scale
        assert np.abs(peer.data.qacc[:3] - s["lift"]).max() <= TOLERANCE * scale
        assert np.abs(peer.data.qacc[3:6] - s["wd"]).max() <= TOLERANCE * scale


def test_deck_wrench_and_moments_of_locked_joints_are_mujoco_s(body: Body) -> None:
    peer = Peer(body)
    locked = body.joint_names[1::2]
    held = Dynamics(body.lock(locked))
    still = [body.joint_index(name) for name in locked]
    for attitude, s in states(body):
        s["speed"][still] = 0
        channels = np.concatenate((s["w"], s["wd"], attitude.inv().apply(s["lift"] + UP)))
        ours = held.acceleration(s["position"], s["speed"], s["torque"], channels)
        assert (ours[still] == 0).all()
        reactions = held.reactions(s["position"], s["speed"], ours, channels)
        peer.set(attitude, s["velocity"], s["w"], s["position"], s["speed"])
        peer.data.qacc[:3], peer.data.qacc[3:6], peer.data.qacc[peer.v] = s["lift"], s["wd"], ours
        mujoco.mj_inverse(peer.model, peer.data)
        found = peer.data.qfrc_inverse
        scale = np.abs(reactions).max()
        assert np.abs(attitude.inv().apply(found[:3]) - reactions[:3]).max() <= TOLERANCE * scale
        assert np.abs(found[3:6] - reactions[3:6]).max() <= TOLERANCE * scale
        assert np.abs(found[peer.v] - reactions[6:]).max() <= TOLERANCE * scale
        assert np.abs(found[peer.v][body.lock(locked).free] - s["torque"][body.lock(locked).free]).max() <= (
            TOLERANCE * scale
        )
