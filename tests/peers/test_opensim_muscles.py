"""Sharing against OpenSim's static optimisation, on stored moment arms, forces and answers of its 18-muscle walk.

Where scripts/bench has installed OpenSim, also paths, sharing and joint forces of our own body built there anew.
"""

from pathlib import Path

import numpy as np
import pytest

from posture.muscle_sharing import share

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "peers_opensim_g10"
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
