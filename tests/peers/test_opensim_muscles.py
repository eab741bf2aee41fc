"""Sharing against OpenSim's static optimisation, on stored moment arms, forces and answers of its 18-muscle walk.

Where scripts/bench has installed OpenSim, also paths, sharing and joint forces of our own body built there anew.
"""

from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from scipy.interpolate import CubicSpline

from posture.body import Body
from posture.joint_loads import Push, joint_loads
from posture.kinematics import Base, postures
from posture.muscle_sharing import share
from posture.muscles import load_muscles
from posture.osim import TURN, read_osim
from posture.signals import spline

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "peers_opensim_g10"
MODEL = FOLDER.parent / "gait" / "opensim_gait10dof18musc_subject01" / "subject01.osim"
ROOT = Path(__file__).parents[2]
JOINTS = [f"{joint}_{side}" for side in "rl" for joint in ("hip_flexion", "knee_angle", "ankle_angle")]


def table(name):
    path = FOLDER / f"g10_{name}.csv"
    header = path.read_text().split("\n", 1)[0].strip().split(",")
    return header, np.loadtxt(path, delimiter=",", skiprows=1)


@pytest.fixture(scope="module", params=[2, 3])
def problem(request):
    """Moment arms, strengths and the torques that OpenSim's own answer gives (its accelerations are splined)."""
    if not FOLDER.is_dir():
        pytest.skip("OpenSim's answers are not beside the repository")
    p = request.param
    names, strength = table("muscle_fmax_rigid_tendon")
    muscles, capacity = names[1:], strength[:, 1:]
    arms = np.zeros((len(capacity), 6, 18))
    header, values = table("moment_arms")
    for column, name in enumerate(header[1:], 1):
        muscle, joint = name.split("|")
        arms[:, JOINTS.index(joint), muscles.index(muscle)] = values[:, column]
    header, values = table(f"so_p{p}_activation")
    theirs = np.column_stack([values[:, header.index(name)] for name in muscles])
    reserve = np.column_stack([values[:, header.index(f"reserve_{joint}")] for joint in JOINTS])
    torque = np.einsum("njm,nm->nj", arms, theirs * capacity) + reserve
    exact = table(f"so_p{p}_exact_activation")[1][:, 1:19]
    return p, arms, torque, capacity, theirs, reserve, exact


def test_never_worse_than_opensim_and_equal_to_the_exact_optimum(problem):
    p, arms, torque, capacity, theirs, reserve, exact = problem
    found = share(arms, torque, capacity, exponent=p, low=0.01, reserve=1.0)
    assert found.kkt.max() < 1e-8
    assert np.abs(found.torque_residual).max() < 1e-8
    objective = (theirs**p).sum(axis=1) + (np.abs(reserve) ** p).sum(axis=1)
    stored = table(f"so_p{p}_objective")[1]
    np.testing.assert_allclose(objective, stored[:, 1], rtol=1e-6)
    assert np.all(found.objective <= objective)
    np.testing.assert_allclose(found.activation, exact, atol=1e-6)


def test_torques_are_those_of_inverse_dynamics(problem):
    torque = problem[2]
    header, values = table("id")
    given = np.column_stack([values[:, header.index(f"{joint}_moment")] for joint in JOINTS])
    # Two splines of the same coordinates: same torques within 3 N·m at the ends, 0.1 N·m on average.
    assert np.abs(torque - given).max() < 3
    assert np.abs(torque - given).mean() < 0.1


def test_without_reserves_the_muscles_give_all_of_it(problem):
    p, arms, torque, capacity = problem[:4]
    found = share(arms, torque, capacity, exponent=p, low=0.01)
    assert found.feasible.all()
    assert np.abs(found.torque_residual).max() < 1e-8  # OpenSim's reserves miss up to 0.1 N·m at p = 3


def paths_of(model, values):
    """Muscle paths of an OpenSim model as our tables, its moving and conditional points as they are at ``values``."""

    def coordinate(point, socket):
        return values[point.findtext(socket).rsplit("/", 1)[-1]]

    def moved(point, axis):
        function, scale = point.find(f"{axis}_location")[0], 1.0
        if function.tag == "MultiplierFunction":
            function, scale = function.find("function")[0], float(function.findtext("scale"))
        if function.tag == "Constant":
            return scale * float(function.findtext("value"))
        x, y = (np.array(function.findtext(key).split(), float) for key in "xy")
        return scale * float(CubicSpline(x, y)(coordinate(point, f"socket_{axis}_coordinate")))

    found = {}
    for muscle in model.iterfind("Model/ForceSet/objects/*"):
        path = []
        for point in muscle.findall("GeometryPath/PathPointSet/objects/*"):
            if point.tag == "ConditionalPathPoint":
                low, high = map(float, point.findtext("range").split())
                if not low <= coordinate(point, "socket_coordinate") <= high:
                    continue
            place = (
                [moved(point, axis) for axis in "xyz"]
                if point.tag == "MovingPathPoint"
                else np.array(point.findtext("location").split(), float)
            )
            link = point.findtext("socket_parent_frame").rsplit("/", 1)[-1]
            path.append({"link": link, "point": (TURN @ place).tolist()})
        if path:
            found[muscle.get("name")] = {"max_force": 1.0, "path": path}
    return found


@pytest.mark.parametrize("p", [2, 3])
def test_joint_forces_are_those_of_opensims_joint_reaction(p):
    if not FOLDER.is_dir() or not MODEL.is_file():
        pytest.skip("OpenSim's answers are not beside the repository")
    (names, q), (columns, forces), (places, theirs) = table("q"), table(f"so_p{p}_force"), table(f"jr_p{p}")
    model = etree.parse(str(MODEL)).getroot()
    rates = spline(q[:, 0], q[:, 1:]).sample(q[:, 0])
    largest = 0.0
    for frame in range(12, 140, 18):
        here = dict(zip(names[1:], q[frame, 1:], strict=True))
        # The knee slides with its angle: frozen where it is now, so only the force that slides it is left out.
        plain, _ = read_osim(MODEL, at={name: here[name] for name in ("knee_angle_r", "knee_angle_l")})
        sidecar = plain.sidecar | {"muscles": {"muscle": paths_of(model, here)}}
        body = Body(plain.name, plain.path, plain.urdf, sidecar, plain.model)
        muscles = load_muscles(body)

        def of(values, wanted):
            return np.array([[values[names.index(name) - 1] for name in wanted]])

        joints = [of(values[frame], body.joint_names) for values in rates]
        # Their tilt is about the axis to the right, ours about the one to the left.
        roots = [of(values[frame], ["pelvis_tx", "pelvis_ty", "pelvis_tilt"]) * [1, 1, -1] for values in rates]
        base = Base.planar(*roots)
        # Where on the foot the ground pushes is no matter for forces.
        ground = [
            Push(
                f"calcn_{side}",
                (TURN @ [forces[frame, columns.index(f"calcn_{side}_{word}_F{axis}")] for axis in "xyz"])[None],
                np.zeros((1, 3)),
            )
            for side, word in (("r", "right"), ("l", "left"))
        ]
        tension = np.array([[forces[frame, columns.index(name)] for name in muscles.names]])
        loads = joint_loads(body, *joints, base=base, muscles=muscles, muscle_force=tension, pushes=ground)
        turned = postures(body, joints[0], base).rotation
        for side in "rl":
            for name, coordinate, child in (
                ("hip", "hip_flexion", "femur"),
                ("knee", "knee_angle", "tibia"),
                ("ankle", "ankle_angle", "talus"),
            ):
                joint = body.joint_index(f"{coordinate}_{side}")
                ours = TURN.T @ turned[joint + 1][:, :, 0].T @ loads.force[0, joint]
                column = places.index(f"{name}_{side}_on_{child}_{side}_in_{child}_{side}_fx")
                reaction = theirs[frame, column : column + 3]
                # In the plane: a shank of 3 kg whose knee slides and two splines of one motion, some 4 m/s².
                np.testing.assert_allclose(ours[:2], reaction[:2], atol=15, err_msg=f"{name}_{side}, frame {frame}")
                # Across it nothing accelerates.
                assert ours[2] == pytest.approx(reaction[2], abs=0.05)
                largest = max(largest, float(np.linalg.norm(reaction)))
    assert largest > 2000


def test_our_body_in_opensim(monkeypatch):
    python = ROOT / ".venv-opensim" / "bin" / "python"
    if not python.is_file():
        pytest.skip("OpenSim is not installed; scripts/bench does it")
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from benchmarks import muscles as bench

    body = bench.load_body("jump")
    muscles = bench.load_muscles(body)
    given = bench.problem(body, muscles, 2)
    theirs = bench.in_opensim(given, python)
    ours = muscles.at(np.array(given["position"])[:, 3:])
    np.testing.assert_allclose(ours.length, theirs["lengths"], atol=1e-12)
    np.testing.assert_allclose(ours.moment_arm[:, muscles.joints], theirs["moment_arms"], atol=1e-12)
    assert bench.sharing(muscles, theirs, 2, "p = 2")["agree"]
    assert bench.reactions(body, muscles, theirs)["agree"]
