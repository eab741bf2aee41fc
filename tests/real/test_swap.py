"""Six people of robotology/human-gazebo (Xsens subjects, 48 and 66 joints) stand, sway and are drawn."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from posture.body import STANDARD_GRAVITY, body_from_text, load_body
from posture.deck import Sine, SineDeck
from posture.export_body import mjcf_text
from posture.laws import make_law
from posture.simulate import Dynamics, simulate
from posture.swap import by_role, roles, stand
from posture.view import write_view
from tests.unit.test_swap import _twins, held, lockstep, ours

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "urdf" / "urdf_human_gazebo"
FILES = sorted(FOLDER.glob("humanSubject*.urdf"))
MASS = {"01": 62.2, "03": 75.4, "05": 55.0}  # kg, from the README beside the files
STATURE = {"01": 1.68, "03": 1.80, "05": 1.68}
pytestmark = pytest.mark.skipif(not FILES, reason=f"the human-gazebo bodies are not in {FOLDER}")


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_they_stand_with_their_mass_and_height(path):
    body, subject = stand(path), path.stem[12:14]
    assert body.mass == pytest.approx(MASS[subject], abs=1e-3)  # two hands of 1e-5 kg markers
    assert 0.53 < body.center_of_mass()[2] / STATURE[subject] < 0.63  # arms held out to the side
    toes, legs = (2, 8) if "48" in path.stem else (6, 9)
    assert len(body.joint_names) == int(path.stem[15:17]) - toes - legs
    assert {"ankle_y", "ankle_x", "knee_y", "hip_y", "trunk_y", "neck_y", "left_elbow_z"} <= set(roles(body))


def test_their_dynamics_are_those_of_the_file(path):
    original, body = load_body_without_zero_boxes(path), stand(path)
    toes = [joint for joint in original.joint_names if "BallFoot" in joint]
    names = [joint for joint in original.joint_names if joint not in toes]
    merged, apart = lockstep(body, names, 1)
    expected, found = held(original, ["LeftFoot", "RightFoot"], toes, *apart), ours(body, *merged)
    scale = max(abs(value) for value in expected.values())
    for joint in body.joint_names:
        twin = joint if joint in expected else _twins(joint, names)[0]
        assert found[joint] == pytest.approx(expected[twin], abs=1e-8 * scale), joint


def load_body_without_zero_boxes(path):
    """The file as it is, but for boxes of no size, which load_body refuses."""
    text = path.read_text()
    shapeless = re.sub(r"<(visual|collision)>.*?</\1>", "", text[text.index("<robot") :], flags=re.DOTALL)
    return body_from_text(path.stem, shapeless, {"floats": True})


def test_the_same_settings_hold_them_and_a_paper_s_person(path, tmp_path):
    """One set of settings, told in multiples of m·g·l, for ship_stance and for a stranger; and the page is drawn."""
    deck = SineDeck({"pitch": [Sine(math.radians(2), 6.0, 0.0)], "roll": [Sine(math.radians(2), 8.0, 1.0)]})
    for body in (load_body("ship_stance"), stand(path)):
        run = simulate(body, deck, make_law("pd", body, deck), duration=4.0, engine="reference")
        sway = run.position_com_in_deck.values[:, :2].std(axis=0)
        assert (sway > 1e-4).all()
        assert (sway < 0.08).all()
        assert np.isfinite(run.stance_margin.values).all()
    write_view(run, tmp_path / "person.html", title=body.name)
    assert (tmp_path / "person.html").stat().st_size > 100_000


def test_settings_by_role_reach_the_same_joints(path):
    """Told by role, the stiffness of ankle, knee and hip lands on the joints of those names, and on no other."""
    body = stand(path)
    found = by_role(body, {"ankle": 900.0, "knee": 800.0, "hip": 700.0}, rest=50.0)
    for word, value in (("Ankle", 900.0), ("Knee", 800.0), ("Hip", 700.0)):
        assert {name for name, one in found.items() if one == value} == {n for n in body.joint_names if word in n}


def test_they_go_to_mujoco_as_they_are(path):
    """Written as MJCF, a stranger on the deck accelerates as in Pinocchio: 1e-9, massless frames are 1e-14 kg there."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed; it comes with the test extra")
    body = stand(path)
    model = mujoco.MjModel.from_xml_string(mjcf_text(body))
    assert model.body_mass.sum() == pytest.approx(body.mass, rel=1e-10)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, random, count = mujoco.MjData(model), np.random.default_rng(3), len(body.joint_names)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in body.joint_names]
    level = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
    for _ in range(5):
        q, v, u = random.uniform(-0.6, 0.6, count), random.normal(0, 2, count), random.normal(0, 40, count)
        data.qpos[model.jnt_qposadr[joints]], data.qvel[model.jnt_dofadr[joints]] = q, v
        data.qfrc_applied[model.jnt_dofadr[joints]] = u
        mujoco.mj_forward(model, data)
        expected = Dynamics(body).acceleration(q, v, u, level)
        np.testing.assert_allclose(data.qacc[model.jnt_dofadr[joints]], expected, atol=1e-9 * np.abs(expected).max())
