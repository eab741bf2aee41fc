"""Sharing against other solvers, against its own dual, and in closed form."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, lsq_linear

from posture.body import load_body
from posture.muscle_sharing import SharingError, eliminate, share
from posture.muscles import load_muscles
from posture.systems.jump import leg_postures


@pytest.fixture(scope="module")
def legs():
    body = load_body("jump")
    muscles = load_muscles(body)
    position, torque = leg_postures(body, muscles, 300, 11)
    return muscles.at(position).moment_arm[:, muscles.joints], torque, muscles.max_force


def dual_bound(arms, torque, capacity, y, p, low, high):
    """Lagrangian dual at y, a lower bound of the objective by weak duality; derived here on its own.

    min over low <= a <= high of a^p - s a, s = Gᵀy: at a = (s/p)^(1/(p-1)) put between the bounds.
    """
    s = np.einsum("njm,nj->nm", arms * capacity, y)
    a = np.clip((np.maximum(s, 0) / p) ** (1 / (p - 1)), low, high)
    return (a**p - s * a).sum(axis=1) + (y * torque).sum(axis=1)


@pytest.mark.parametrize("p", [1.02, 1.3, 2, 2.5, 3, 4.5, 10, 30, 100])
def test_no_gap_to_the_dual(legs, p):
    arms, torque, capacity = legs
    arms, torque = (values[: 300 if p <= 3 else 80] for values in (arms, torque))
    found = share(arms, torque, capacity, exponent=p)
    assert found.feasible.all()
    assert found.kkt.max() < 1e-8
    # The solver stops at 1e-10 of what a joint could get at most, some 300 N·m.
    assert np.abs(found.torque_residual).max() < (1e-8 if p in (2, 3) else 3e-8)
    assert found.activation.min() >= 0
    assert found.activation.max() <= 1
    bound = dual_bound(arms, torque, capacity, found.multiplier, p, 0.0, 1.0)
    # Relative to J, which at p = 100 is 1e-44: the slope is p J/a, so 1e-10 of 0.4 of activation is worth p · 3e-10,
    # and a torque that is met to 1e-10 as much.
    assert np.abs(found.objective / bound - 1).max() < 1e-6


def test_a_suboptimal_answer_has_no_proof(legs):
    from posture.muscle_sharing import _residual

    arms, torque, capacity = legs
    best = share(arms, torque, capacity)
    G = np.moveaxis(arms * capacity, 0, 2)
    scale = np.abs(G).sum(axis=1)
    loop, met = eliminate(arms, torque, capacity)
    late = met & ((loop**2).sum(axis=1) > best.objective * 1.01) & (loop.max(axis=1) < 1)
    assert late.any()
    proof = _residual(
        G / scale[:, None],
        torque.T / scale,
        np.zeros(loop.T.shape),
        np.ones(loop.T.shape),
        loop.T,
        best.multiplier.T * scale,
        2,
    )
    assert proof[late].min() > 1e-5


@pytest.mark.parametrize("p", [2, 3])
def test_agrees_with_casadi(legs, p):
    import casadi

    arms, torque, capacity = legs
    found = share(arms[:12], torque[:12], capacity, exponent=p)
    a = casadi.SX.sym("a", 18)
    G, b = casadi.SX.sym("G", 6, 18), casadi.SX.sym("b", 6)
    problem = {"x": a, "p": casadi.horzcat(G, b), "f": casadi.sum1(a**p), "g": casadi.mtimes(G, a) - b}
    solver = casadi.nlpsol(
        "solver", "ipopt", problem, {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-11}}
    )
    for frame in range(12):
        effect = arms[frame] * capacity
        other = solver(x0=0.3, lbx=0, ubx=1, lbg=0, ubg=0, p=np.column_stack((effect, torque[frame])))
        # ipopt stops at 1e-8 of complementarity; where a cubic is flat that is worth its square root.
        assert float(other["f"]) == pytest.approx(found.objective[frame], abs=1e-6)
        np.testing.assert_allclose(np.array(other["x"]).ravel(), found.activation[frame], atol=2e-5 if p == 2 else 3e-3)


def test_linear_criterion_has_the_optimum_of_a_linear_programme(legs):
    arms, torque, capacity = legs
    found = share(arms[:40], torque[:40], capacity, exponent=1)
    for frame in range(40):
        other = linprog(np.ones(18), A_eq=arms[frame] * capacity, b_eq=torque[frame], bounds=(0, 1))
        assert found.objective[frame] == pytest.approx(other.fun, abs=1e-7)


def test_a_high_exponent_is_all_but_the_least_peak(legs):
    arms, torque, capacity = legs
    peak = share(arms[:20], torque[:20], capacity, exponent=math.inf).objective
    high = share(arms[:20], torque[:20], capacity, exponent=100).activation.max(axis=1)
    # max a <= (Σ a^p)^(1/p) at its optimum <= the same for the least peak <= 18^(1/p) times that peak.
    assert np.all(high >= peak * (1 - 1e-6))
    assert np.all(high <= peak * 18 ** (1 / 100) * (1 + 1e-6))


@pytest.mark.parametrize("exponent", [1, math.inf])
@pytest.mark.parametrize("reserve", [None, 50.0])
def test_kinked_criteria_have_the_optimum_of_a_linear_programme_also_with_reserves(legs, exponent, reserve):
    arms, torque, capacity = legs
    found = share(arms[:12], torque[:12], capacity, exponent=exponent, low=0.01, reserve=reserve)
    assert found.kkt.max() < 1e-6
    assert np.abs(found.torque_residual).max() < 1e-7
    given = np.einsum("njm,nm->nj", arms[:12], found.force) + found.reserve
    np.testing.assert_allclose(given, torque[:12], atol=1e-7)
    motors = np.zeros((6, 0)) if reserve is None else reserve * np.hstack((np.eye(6), -np.eye(6)))
    count = 18 + motors.shape[1]
    bounds = [(0.01, 1)] * 18 + [(0, None)] * motors.shape[1]
    for frame in range(12):
        effect = np.hstack((arms[frame] * capacity, motors))
        if exponent == 1:
            other = linprog(np.ones(count), A_eq=effect, b_eq=torque[frame], bounds=bounds)
        else:
            other = linprog(
                np.append(np.zeros(count), 1.0),
                A_ub=np.hstack((np.eye(count), -np.ones((count, 1)))),
                b_ub=np.zeros(count),
                A_eq=np.hstack((effect, np.zeros((6, 1)))),
                b_eq=torque[frame],
                bounds=[*bounds, (0, None)],
            )
        assert found.objective[frame] == pytest.approx(other.fun, abs=1e-6)


def test_least_peak_is_a_bound_that_no_other_criterion_beats(legs):
    arms, torque, capacity = legs
    peak = share(arms[:40], torque[:40], capacity, exponent=math.inf)
    assert peak.kkt.max() < 1e-6
    assert np.abs(peak.torque_residual).max() < 1e-6
    before = None
    for p in (2, 4, 8):
        other = share(arms[:40], torque[:40], capacity, exponent=p).activation.max(axis=1)
        assert np.all(peak.activation.max(axis=1) <= other + 1e-6)
        before = other if before is None else before
    assert np.mean(peak.activation.max(axis=1) < before - 1e-3) > 0.3  # and it does differ


def test_reserves_are_bounded_least_squares(legs):
    arms, torque, capacity = legs
    found = share(arms[:30], torque[:30], capacity, low=0.01, reserve=1.0)
    for frame in range(30):
        other = lsq_linear(
            np.vstack((np.eye(18), arms[frame] * capacity)),
            np.append(np.zeros(18), torque[frame]),
            bounds=(0.01, 1),
            method="bvls",
            tol=1e-14,
        )
        np.testing.assert_allclose(found.activation[frame], other.x, atol=1e-8)


def test_one_joint_two_muscles_in_closed_form():
    # min a² + b² with 2a + b = 1.5 in N·m: a = 0.6, b = 0.3; in the cube a/b = √2.
    arms = np.array([[[2.0, 1.0, -1.0]]])
    square = share(arms, np.array([[1.5]]), 1.0)
    np.testing.assert_allclose(square.activation[0], [0.6, 0.3, 0], atol=1e-12)
    cube = share(arms, np.array([[1.5]]), 1.0, exponent=3)
    b = 1.5 / (2 * math.sqrt(2) + 1)
    np.testing.assert_allclose(cube.activation[0], [math.sqrt(2) * b, b, 0], atol=1e-9)
    assert square.multiplier[0, 0] == pytest.approx(2 * 0.3)  # dJ/dτ


def test_too_weak_joints_are_named_with_what_they_lack():
    arms = np.array([[[0.05, 0.0], [0.0, 0.04]]] * 2)
    found = share(arms, np.array([[10.0, -3.0], [70.0, 5.0]]), np.array([1000.0, 800.0]))
    assert found.feasible.tolist() == [False, False]
    assert np.isnan(found.multiplier).any(axis=1).all()  # nothing says what the missing torque would cost
    np.testing.assert_allclose(found.shortfall, [[0, -3], [20, 0]], atol=1e-9)
    np.testing.assert_allclose(found.activation, [[0.2, 0], [1, 5 / 32]], atol=1e-9)
    assert found.complaint(["hip", "knee"], 0) == "frame 0: knee lacks 3.0 N·m of negative torque"
    assert found.complaint(["hip", "knee"], 1) == "frame 1: hip lacks 20.0 N·m of positive torque"


def test_a_single_weak_frame_does_not_disturb_the_others(legs):
    arms, torque, capacity = legs
    strong = share(arms[:50], torque[:50], capacity)
    wanted = torque[:50].copy()
    wanted[7] *= 50
    mixed = share(arms[:50], wanted, capacity)
    assert np.flatnonzero(~mixed.feasible).tolist() == [7]
    assert mixed.kkt[7] < 1e-8  # proves that nothing comes nearer
    other = lsq_linear(arms[7] * capacity, wanted[7], bounds=(0, 1), tol=1e-13)
    assert np.sum(mixed.shortfall[7] ** 2) == pytest.approx(2 * other.cost, rel=1e-6)
    np.testing.assert_allclose(np.delete(mixed.activation, 7, 0), np.delete(strong.activation, 7, 0), atol=1e-12)


def test_frames_do_not_depend_on_their_company(legs):
    arms, torque, capacity = legs
    together = share(arms, torque, capacity, exponent=3).activation
    alone = np.array([share(arms[i : i + 1], torque[i : i + 1], capacity, exponent=3).activation[0] for i in range(20)])
    np.testing.assert_allclose(together[:20], alone, atol=1e-12)


def test_fixed_and_idle_muscles(legs):
    arms, torque, capacity = legs
    low = np.zeros(18)
    low[4] = 0.1
    high = np.ones(18)
    high[4] = 0.1
    found = share(arms[:20], torque[:20], capacity, low=low, high=high)
    np.testing.assert_array_equal(found.activation[:, 4], 0.1)
    assert np.abs(found.torque_residual[found.feasible]).max() < 1e-8
    idle = share(np.array([[[0.05, 0.0]]]), np.array([[10.0]]), np.array([1000.0, 500.0]))
    np.testing.assert_allclose(idle.activation, [[0.2, 0.0]], atol=1e-12)


def test_elimination_is_never_better_and_sometimes_fails(legs):
    arms, torque, capacity = legs
    arms, torque, capacity = arms[:, :3, :9], torque[:, :3], capacity[:9]
    best = share(arms, torque, capacity, high=np.inf).objective
    for at_once in (True, False):
        loop, met = eliminate(arms, torque, capacity, all_at_once=at_once)
        assert np.all((loop**2).sum(axis=1)[met] >= best[met] * (1 - 1e-9))
        assert loop.min() >= 0
    literal = (eliminate(arms, torque, capacity)[0] ** 2).sum(axis=1)
    assert np.mean(literal > best * (1 + 1e-6)) > 0.05


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exponent": 0.5}, "exponent is 0.5, but must be a number from 1"),
        ({"exponent": math.nan}, "exponent is nan"),
        ({"torque": np.zeros((2, 5))}, "frames × joints"),
        ({"torque": np.full((3, 6), np.nan)}, "torques of frame 0 are not finite"),
        ({"capacity": -1.0}, "negative"),
        ({"capacity": np.ones(7)}, "one row of 18"),
        ({"low": 0.5, "high": 0.2}, "0 <= low <= high"),
        ({"low": -0.1}, "0 <= low <= high"),
        ({"reserve": 0.0}, "reserve is 0"),
    ],
)
def test_bad_input_gets_its_sentence(legs, changes, words):
    arms, torque, capacity = legs
    given = {"moment_arm": arms[:3], "torque": torque[:3], "capacity": capacity} | changes
    with pytest.raises(SharingError, match=words):
        share(given.pop("moment_arm"), given.pop("torque"), given.pop("capacity"), **given)
