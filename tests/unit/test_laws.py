"""Control laws against closed forms, and every named law on every body."""

import math

import casadi
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import lsq_linear

from controllers import (
    LQR,
    MPC,
    PD,
    PID,
    BaseFeedforward,
    ComputedTorque,
    ControllerError,
    Delayed,
    FilteredNoise,
    FromCasadi,
    FromFunction,
    FromPolicy,
    Held,
    Intermittent,
    Sensory,
    StrategySwitch,
    Together,
    WholeBody,
    intermittent,
    linearise,
)
from posture.body import STANDARD_GRAVITY, load_body
from posture.deck import Sine, SineDeck, constant_deck
from posture.errors import PostureError, ScenarioError, SimulationStopped
from posture.laws import NAMES, heavier, least_factor, make_law
from posture.plant import LEVEL, Plant
from posture.ship.hull import Hull
from posture.ship.motion import SeaDeck
from posture.ship.sea import sea_state
from posture.simulate import Dynamics, closed_loop_matrix, simulate
from posture.swap import stand

STILL = constant_deck()


def sea_deck(state="SS5", seed=1):
    frigate = Hull(length=120.0, beam=15.0, draught=4.8, metacentric_height=1.2, roll_radius=5.6, roll_damping=0.1)
    return SeaDeck(frigate, sea_state(state), heading=math.radians(120), speed=6.0, station=(-45.0, 0, 4.0), seed=seed)


def rocking(pitch=0.05, period=5.0):
    return SineDeck({"pitch": [Sine(pitch, period, 0.0)], "surge": [Sine(0.3, period, 1.0)]})


def load_and_inertia(body):
    """m·g·l and inertia about the ankle of a single pendulum."""
    return float(body.toppling_stiffness()["ankle"]), float(Plant(body).inertia(np.zeros(1))[0, 0])


# ---------------------------------------------------------------- LQR


def test_lqr_of_a_pendulum_is_the_closed_form():
    """A = [[0, 1], [k, 0]], B = (0, b): the Riccati equation splits into two quadratics."""
    body = load_body("cip")
    load, inertia = load_and_inertia(body)
    q, v, r = 3.0, 0.2, 1e-6
    law = LQR(Plant(body), position_weight=q, velocity_weight=v, torque_weight=r)
    k, b = load / inertia, 1 / inertia
    p12 = r * (k + math.sqrt(k**2 + b**2 * q / r)) / b**2
    p22 = math.sqrt(r * (2 * p12 + v)) / b
    np.testing.assert_allclose(law.gain, [[b * p12 / r, b * p22 / r]], rtol=1e-9)


def test_linearisation_agrees_with_differences_of_the_nonlinear_body():
    body = load_body("ship_stance")
    linear = linearise(Plant(body), np.zeros(12), LEVEL)
    silent = FromFunction(body.joint_names, lambda time, q, v: np.zeros(12))
    matrix = closed_loop_matrix(body, silent, np.zeros(24))[0]
    np.testing.assert_allclose(linear.A, matrix, atol=1e-6 * np.abs(matrix).max())


def test_cost_of_an_lqr_run_is_its_value_function():
    """From a small lean, ∫ x'Qx + u'Ru dt along the nonlinear run comes to x0'P x0."""
    body = load_body("ankle_hip")
    law = LQR(Plant(body), torque_weight=1e-6)
    start = np.array([0.004, -0.003])
    run = simulate(body, STILL, law, duration=20.0, step=0.002, output_step=0.002, start_position=start)
    x = np.hstack((run.joint_position.values, run.joint_velocity.values))
    u = run.joint_torque.values - law.hold
    cost = np.trapezoid(np.einsum("ti,ij,tj->t", x, law.Q, x) + np.einsum("ti,ij,tj->t", u, law.R, u), run.time.values)
    at = np.concatenate((start, [0, 0]))
    assert cost == pytest.approx(at @ law.P @ at, rel=2e-4)  # trapezoid and third order in 4 mrad


def test_compiled_lqr_agrees_with_the_readable_one():
    body, deck = load_body("ship_stance"), rocking()
    law = make_law("lqr", body, deck)
    runs = [simulate(body, deck, law, duration=6.0, engine=engine) for engine in ("compiled", "reference")]
    assert runs[0].attrs["engine"] == "compiled"
    np.testing.assert_allclose(runs[0].joint_position, runs[1].joint_position, atol=1e-9)


def test_feedforward_of_a_known_deck_leaves_nothing_to_feedback():
    body, deck = load_body("ankle_hip"), rocking()
    plant = Plant(body, deck)
    run = simulate(body, deck, Together(LQR(plant), BaseFeedforward(plant)), duration=5.0)
    assert np.abs(run.joint_position.values).max() < 1e-7
    late = Plant(body, deck, lag=0.1)
    run = simulate(body, deck, Together(LQR(late), BaseFeedforward(late)), duration=5.0)
    assert np.abs(run.joint_position.values).max() > 1e-4


# ---------------------------------------------------------------- MPC


def mpc(body, deck=None, **settings):
    weights = {"position_weight": 1.0, "velocity_weight": 0.1, "torque_weight": 1e-6}
    return MPC(Plant(body, deck), **(weights | settings))


def test_unlimited_mpc_is_the_discrete_lqr_whatever_its_horizon():
    body = load_body("ankle_hip")
    x = np.array([0.02, -0.03, 0.1, 0.05])
    for horizon in (1, 5, 30):
        law = mpc(body, horizon=horizon)
        P = solve_discrete_are(law.A, law.B, law.Q, law.R)
        K = np.linalg.solve(law.R + law.B.T @ P @ law.B, law.B.T @ P @ law.A)
        np.testing.assert_allclose(law.decide(0.0, x[:2], x[2:]) - law.hold, -K @ x, rtol=1e-7)


def test_preview_is_the_costate_sum_of_the_endless_problem():
    """U = -K x - S B' Σ (Acl')^i P B d_i, S = (R + B'PB)^-1: derived with costates, shares nothing with condensing."""
    body, deck = load_body("ankle_hip"), rocking()
    x = np.array([0.01, 0.02, -0.05, 0.02])
    law = mpc(body, deck, horizon=25)
    S = np.linalg.inv(law.R + law.B.T @ law.P @ law.B)
    K = S @ law.B.T @ law.P @ law.A
    closed, total = (law.A - law.B @ K).T, np.zeros(4)
    for i, push in enumerate(law.pushes(1.0)):
        total += np.linalg.matrix_power(closed, i) @ law.P @ law.B @ push
    expected = -K @ x - S @ law.B.T @ total
    np.testing.assert_allclose(law.decide(1.0, x[:2], x[2:]) - law.hold, expected, rtol=1e-7, atol=1e-6)
    # A long horizon changes nothing more: the far future is forgotten as fast as the closed loop settles.
    far = mpc(body, deck, horizon=120).decide(1.0, x[:2], x[2:])
    near = [np.abs(mpc(body, deck, horizon=n).decide(1.0, x[:2], x[2:]) - far).max() for n in (5, 20, 60)]
    assert near[0] > 10 * near[1] > 100 * near[2]


def test_preview_costs_less_than_knowing_the_moment_and_that_less_than_feedback_alone():
    body, deck = load_body("ankle_hip"), rocking()
    costs = []
    for law in (mpc(body, deck, horizon=25), mpc(body, deck, preview=False, horizon=25), mpc(body, horizon=25)):
        run = simulate(body, deck, law, duration=20.0, output_step=0.05)
        x = np.hstack((run.joint_position.values, run.joint_velocity.values))[100:]  # settled
        u = (run.joint_torque.values - law.hold)[100:]
        costs.append(np.einsum("ti,ij,tj->", x, law.Q, x) + np.einsum("ti,ij,tj->", u, law.R, u))
    assert costs[0] < costs[1] < costs[2]


def test_limited_mpc_solves_its_quadratic_program():
    """Box limits only: the same problem as bounded least squares, by SciPy's own method."""
    body = load_body("ankle_hip")
    x = np.array([0.15, -0.1, 0.3, 0.2])
    limit = 60.0
    law = mpc(body, horizon=8, limits=limit)
    torque = law.decide(0.0, x[:2], x[2:])
    assert np.abs(torque).max() <= limit + 1e-6
    # Condensed without prestabilisation, as a textbook does it: X = F x + G U, short enough to keep its digits.
    A, B, N = law.A, law.B, 8
    F = np.vstack([np.linalg.matrix_power(A, k + 1) for k in range(N)])
    G = np.block([[np.linalg.matrix_power(A, r - c) @ B if r >= c else 0 * B for c in range(N)] for r in range(N)])
    weights = np.kron(np.eye(N), law.Q)
    weights[-4:, -4:] = law.P
    lower = np.linalg.cholesky(G.T @ weights @ G + np.kron(np.eye(N), law.R))
    gradient, hold = G.T @ weights @ F @ x, np.tile(law.hold, N)
    peer = lsq_linear(lower.T, -np.linalg.solve(lower, gradient), bounds=(-limit - hold, limit - hold), tol=1e-14)
    np.testing.assert_allclose(torque - law.hold, peer.x[:2], atol=1e-3)  # N·m; lsq_linear stops there


@pytest.mark.parametrize("angles", [[0.012, 0.0], [-0.01, 0.0], [0.01, 0.005]])
def test_the_outline_of_an_mpc_is_where_the_centre_of_pressure_stops(angles):
    """Leaning on feet too short for the torque it would like: by the body's own equations the pressure is at the edge.

    Within 0.3 mm, as the MPC's wrench is of first order; a wrench that forgets the weight's lean is up to 9 mm off.
    """
    body = load_body("ankle_hip")
    middle = body.center_of_mass()[0]
    outline = np.array([[-0.018, -0.2], [0.018, -0.2], [0.018, 0.2], [-0.018, 0.2]]) + np.array([middle, 0])
    position, velocity = np.array(angles), np.zeros(2)
    dynamics, pressure = Dynamics(body), []
    for law in (mpc(body, horizon=20), mpc(body, horizon=20, outline=outline)):
        torque = law.decide(0.0, position, velocity)
        acceleration = dynamics.acceleration(position, velocity, torque, LEVEL)
        wrench = dynamics.reactions(position, velocity, acceleration, LEVEL)
        pressure.append(-wrench[4] / wrench[2] - middle)
    assert law.given_up == 0
    assert abs(pressure[0]) > 0.022
    assert abs(pressure[1]) == pytest.approx(0.018, abs=3e-4)


# ---------------------------------------------------------------- whole body


class Counted(WholeBody):
    """Counts how often the program was needed, so that a test cannot pass with constraints that never bind."""

    needed = 0

    def _solve(self, *problem):
        self.needed += 1
        return super()._solve(*problem)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("duration", "friction", "limits", "reached"),
    [(20.0, 0.14, None, {"outline"}), (6.0, 0.11, 70.0, {"friction", "torque"})],
)
def test_whole_body_keeps_its_constraints_in_every_step_of_sea_state_5(duration, friction, limits, reached):
    """Each constraint is watched in what the run recorded, and reached in one of the runs: else nothing is shown."""
    body, deck = load_body("ship_stance"), sea_deck("SS5")
    outline = body.contact_polygon() * 0.55  # small feet on a wet deck,
    push = np.zeros(12)
    push[[body.joint_index("ankle_y"), body.joint_index("ankle_x")]] = 0.24, 0.16  # rad/s: and a push, to reach limits
    settings = {"outline": outline, "friction": friction, "inset": 0.0, "limits": limits, "frequency": 3.0}
    law = Counted(Plant(body, deck), **settings, period=0.005)
    run = simulate(body, deck, law, duration=duration, step=0.005, output_step=0.005, start_velocity=push)
    assert law.needed > 50
    force, cop, weight = run.force_deck_on_person.values, run.position_cop_on_deck.values, body.mass * STANDARD_GRAVITY
    edges = np.roll(outline, -1, axis=0) - outline
    normals = np.column_stack((-edges[:, 1], edges[:, 0])) / np.linalg.norm(edges, axis=1)[:, None]
    room = {  # negative where a constraint is broken; of the weight, m, of the limit
        "friction": (friction / math.sqrt(2) * force[:, 2:] - np.abs(force[:, :2])) / weight,
        "outline": np.einsum("en,ten->te", normals, cop[:, None, :] - outline[None, :, :]),
        "torque": 1 - np.abs(run.joint_torque.values) / (limits or math.inf),
    }
    assert len(run.time) == round(duration / 0.005) + 1
    assert force[:, 2].min() > 1.0 - 1e-6
    assert {name: values.min() for name, values in room.items() if values.min() < -1e-6} == {}
    assert {name for name, values in room.items() if values.min() < 1e-6} == reached


def test_whole_body_without_active_constraints_is_computed_torque():
    body = load_body("ankle_hip")
    plant = Plant(body)
    law = WholeBody(plant, outline=[[-9, -9], [9, -9], [9, 9], [-9, 9]], posture_weight=1e9, torque_weight=0.0)
    other = ComputedTorque(plant, frequency=4.0, damping_ratio=1.0)
    q, v = np.array([0.05, -0.1]), np.array([0.2, 0.1])
    np.testing.assert_allclose(law.decide(0.0, q, v), other.torque(0.0, q, v, np.zeros(0)), rtol=1e-6)


def test_whole_body_says_when_a_step_is_needed():
    body = load_body("cip")
    law = WholeBody(Plant(body), outline=body.contact_polygon(), limits=20.0, least_force=5000.0)
    with pytest.raises(ControllerError, match=r"at 0\.000 s no torques keep the feet.*step would be needed"):
        law.decide(0.0, np.array([0.2]), np.array([0.5]))


def test_computed_torque_makes_the_error_linear_whatever_the_deck_does():
    body, deck = load_body("ship_stance"), sea_deck("SS6")
    omega, start = 3.0, np.linspace(-0.1, 0.1, 12)
    law = ComputedTorque(Plant(body, deck), frequency=omega)
    run = simulate(body, deck, law, duration=3.0, start_position=start)
    time = run.time.values[:, None]
    np.testing.assert_allclose(run.joint_position, start * (1 + omega * time) * np.exp(-omega * time), atol=1e-7)


# ---------------------------------------------------------------- delay


def delay_margin(load, inertia, proportional, derivative, integral):
    """Phase margin over crossover frequency of (Kp + Kd s + Ki/s)/(I s² - mgl), by its own frequency response."""
    omega = np.linspace(0.5, 20, 2_000_001)
    s = 1j * omega
    loop = (proportional + derivative * s + integral / s) / (inertia * s**2 - load)
    row = int(np.flatnonzero(np.abs(loop) > 1)[-1])
    return float((np.angle(loop[row]) % (2 * np.pi) - np.pi) % (2 * np.pi) / omega[row])


def test_delay_margin_of_the_cip_gains_is_126_ms():
    """The paper's own pendulum: I = 76 kg·m², 60 kg, 1.13 m, g = 9.81."""
    assert delay_margin(60 * 9.81 * 1.13, 76.0, 1470.0, 200.0, 14.32) == pytest.approx(0.126, abs=0.0005)


@pytest.mark.slow
def test_delayed_pid_turns_unstable_at_the_analytic_margin():
    body = load_body("cip")
    load, inertia = load_and_inertia(body)
    margin = delay_margin(load, inertia, 1470.0, 200.0, 14.32)
    assert margin == pytest.approx(0.126, abs=0.002)
    step, growth = 0.001, {}
    for delay in (margin - 0.004, margin + 0.004):
        delay = round(delay / step) * step
        law = Delayed(
            PID(body.joint_names, stiffness=1470.0, damping=200.0, integral=14.32), delay=delay, step=step
        )  # fmt: skip
        run = simulate(body, STILL, law, duration=24.0, step=step, output_step=0.01, start_position=np.array([0.002]))
        speed, time = run.joint_velocity.values[:, 0], run.time.values
        early, late = (np.sqrt((speed[(time >= a) & (time < a + 8)] ** 2).mean()) for a in (8.0, 16.0))
        growth[delay] = math.log(late / early) / 8
    (short, low), (long, high) = growth.items()
    assert low < 0 < high
    boundary = short - low * (long - short) / (high - low)
    assert boundary == pytest.approx(margin, abs=0.002)


def test_delay_of_a_law_that_decides_now_and_then():
    """A held law fed late decides on what was true a delay ago."""
    seen = []

    class Watching(Held):
        def decide(self, time, position, velocity):
            seen.append((time, position[0]))
            return np.zeros(1)

    law = Delayed(Watching(["ankle"], period=0.02), delay=0.05, step=0.01)
    memory = np.zeros(law.memory_size)
    for index in range(20):
        memory = law.sample(index * 0.01, np.array([float(index)]), np.zeros(1), memory)
    assert [value for _, value in seen] == [max(0, round(time / 0.01) - 5) for time, _ in seen]
    assert [time for time, _ in seen] == pytest.approx(np.arange(0, 0.2, 0.02))


# ---------------------------------------------------------------- human laws


def sensory(body, deck, **settings):
    gains = {"stiffness": 1300.0, "damping": 400.0}
    return Sensory(body.joint_names, **gains, tilt=Plant(body, deck).tilt, **settings)


@pytest.mark.parametrize("share", [1.0, 0.6, 0.0])
def test_sensory_weighting_leans_as_peterka_derives(share):
    """On a deck tilted by θ the body leans α = Kp w_p θ / (Kp - mgl) from the vertical."""
    body, tilt = load_body("cip"), 0.02
    deck = constant_deck(pitch=tilt)
    law = sensory(body, deck, weights={"proprioceptive": share, "vestibular": 1 - share})
    run = simulate(body, deck, law, duration=30.0)
    load, _ = load_and_inertia(body)
    lean = run.joint_position.values[-1, 0] + tilt
    assert lean == pytest.approx(1300 * share * tilt / (1300 - load), abs=1e-3 * tilt)  # sin for θ: θ²/6


def test_eyes_help_only_where_they_see_the_horizon():
    body = load_body("cip")
    deck = rocking()
    weights = {"proprioceptive": 0.3, "visual": 0.7}
    below, outside = (sensory(body, deck, weights=weights, horizon=horizon) for horizon in (0.0, 1.0))
    q, v = np.array([0.01]), np.array([0.02])
    plain = PD(body.joint_names, stiffness=1300.0, damping=400.0).torque(0.0, q, v, np.zeros(0))
    np.testing.assert_allclose(below.torque(1.0, q, v, np.zeros(0)), plain)
    assert not np.allclose(outside.torque(1.0, q, v, np.zeros(0)), plain)


def test_sensory_noise_makes_sway_and_a_seed_repeats_it():
    body = load_body("cip")
    noise = {"vestibular": FilteredNoise(gain=0.02, time_constant=0.5, interval=0.01, duration=10.0, seed=3)}
    weights = {"proprioceptive": 0.5, "vestibular": 0.5}
    runs = [simulate(body, STILL, sensory(body, STILL, weights=weights, noise=noise), duration=5.0) for _ in range(2)]
    assert runs[0].joint_position.values.std() > 1e-5
    assert runs[0].equals(runs[1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {"proprioceptive": 0.5}}, "add up to 0.5"),
        ({"weights": {"ears": 1.0}}, "no sensory channel is called 'ears'"),
        ({"weights": {"visual": 1.5, "vestibular": -0.5}}, "0 or more"),
    ],
)
def test_sensory_refusals(settings, message):
    with pytest.raises(ControllerError, match=message):
        sensory(load_body("cip"), STILL, **settings)


def test_intermittent_acts_only_away_from_the_stable_manifold():
    law = Intermittent(["ankle"], stiffness=1.0, damping=1.0, slope=-0.4, radius=0.004)
    cases = [
        ((0.01, 0.01), 1),  # falls forward
        ((-0.01, -0.01), 1),  # falls backward
        ((0.01, -0.01), 0),  # comes back fast enough
        ((0.01, -0.003), 1),  # comes back, but too slowly
        ((0.002, 0.002), 0),  # too little to feel
    ]
    for (q, v), expected in cases:
        assert law.acts(np.array([q]), np.array([v]))[0] == expected


def test_intermittent_control_holds_what_its_muscles_alone_cannot():
    """Asai's settings: passive 0.8 mgl, active 0.25 mgl, 10 N·m·s/rad, 0.2 s late, on the cip pendulum."""
    body = load_body("cip")
    load, _ = load_and_inertia(body)
    passive = {"passive_stiffness": 0.8 * load, "passive_damping": 4.0}
    active = {"stiffness": 0.25 * load, "damping": 10.0, "delay": 0.2, "step": 0.005}
    start = {"start_position": np.array([0.01])}
    run = simulate(body, STILL, intermittent(body.joint_names, **passive, **active), duration=40.0, **start)
    late = run.joint_position.values[run.time.values > 20, 0]
    assert 1e-4 < np.abs(late).max() < 0.05  # sways, does not fall, does not come to rest
    alone = intermittent(body.joint_names, **passive, **(active | {"stiffness": 0.0, "damping": 0.0}))
    with pytest.raises(SimulationStopped, match="fell"):
        simulate(body, STILL, alone, duration=40.0, **start)


def test_hip_strategy_comes_in_as_the_ankles_run_out_of_foot():
    body = load_body("ankle_hip")
    law = make_law("ankle_hip", body, STILL)
    assert isinstance(law, StrategySwitch)
    still, nothing = np.zeros(2), np.zeros(0)
    middle = (body.contact_polygon()[:, 0].max() + body.contact_polygon()[:, 0].min()) / 2
    lean = np.array([(middle - body.center_of_mass()[0]) / body.center_of_mass()[2], 0.0])
    assert law.share_of_hip(lean, still) == 0.0
    assert law.share_of_hip(np.array([0.25, 0.0]), np.array([1.0, 0.0])) == 1.0
    q, v = np.array([0.25, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_allclose(law.torque(0, q, v, nothing), law.hip.torque(0, q, v, nothing))
    # Horak and Nashner: pushed, the ankle strategy sways as one piece, the hip strategy bends at the hips.
    bend = []
    for one in (law.ankle, law.hip):
        pushed = simulate(body, STILL, one, duration=3.0, start_velocity=np.array([0.2, 0.0])).joint_position.values
        bend.append(np.abs(pushed[:, 1]).max() / np.abs(pushed[:, 0]).max())
    assert bend[1] > 2 * bend[0]


# ---------------------------------------------------------------- own laws


def test_three_ways_to_bring_the_same_law():
    body, deck = load_body("cip"), rocking()
    k, d = 1400.0, 300.0
    q, v = casadi.SX.sym("q"), casadi.SX.sym("v")
    laws = [
        PD(body.joint_names, stiffness=k, damping=d),
        FromFunction(body.joint_names, lambda time, position, velocity: -k * position - d * velocity),
        FromCasadi(body.joint_names, casadi.Function("law", [q, v], [-k * q - d * v])),
    ]
    runs = [simulate(body, deck, law, duration=6.0) for law in laws]
    assert [run.attrs["engine"] for run in runs] == ["compiled", "reference", "compiled"]
    for run in runs[1:]:
        np.testing.assert_allclose(run.joint_position, runs[0].joint_position, atol=1e-10)


def test_a_policy_decides_at_its_own_rate():
    body, asked = load_body("cip"), []

    def act(observation):
        asked.append(observation)
        return np.array([-3.0 * observation[0] - 1.0 * observation[1]]), None  # with a state, as Stable-Baselines3 does

    law = FromPolicy(
        body.joint_names, act, observe=lambda time, q, v: np.concatenate((q, v)), scale=500.0, period=0.02
    )  # fmt: skip
    run = simulate(
        body, STILL, law, duration=5.0, output_step=0.01, start_position=np.array([0.02]), engine="reference"
    )  # fmt: skip
    torque = run.joint_torque.values[:, 0]
    np.testing.assert_array_equal(torque[2:-1:2], torque[3::2])  # held over each second row
    assert abs(run.joint_position.values[-1, 0]) < 1e-3


@pytest.mark.parametrize("bad", [lambda t, q, v: [1.0, 2.0], lambda t, q, v: [math.nan]])
def test_an_own_law_that_gives_nonsense_is_refused(bad):
    law = FromFunction(["ankle"], bad)
    with pytest.raises(ControllerError, match="must give 1 finite torques"):
        law.torque(0.0, np.zeros(1), np.zeros(1), np.zeros(0))


def test_a_casadi_law_of_the_wrong_size_is_refused():
    q = casadi.SX.sym("q", 2)
    with pytest.raises(ControllerError, match=r"takes \[2, 2\] and gives 2 numbers.*1 joints"):
        FromCasadi(["ankle"], casadi.Function("law", [q, casadi.SX.sym("v", 2)], [q]))


def test_laws_together_must_share_their_joints():
    with pytest.raises(ControllerError, match="same joints"):
        Together(PD(["a"], stiffness=1, damping=1), PD(["b"], stiffness=1, damping=1))


# ---------------------------------------------------------------- every law, every body

BODIES = {
    "cip": lambda: load_body("cip"),
    "ankle_hip": lambda: load_body("ankle_hip"),
    "double_pendulum": lambda: load_body("double_pendulum"),
    "ship_stance": lambda: load_body("ship_stance"),
    "jump": lambda: stand("jump"),
    "locked": lambda: load_body("ship_stance").lock(["knee_*", "neck_*", "*_z"]),
}
REFUSED = {
    ("ankle_hip", "cip"): "role of hip",
    ("ankle_hip", "double_pendulum"): "role of ankle",
    ("whole_body", "double_pendulum"): "outline of the feet",
    ("mpc", "double_pendulum"): "outline of the feet",
}


@pytest.mark.parametrize("body_name", BODIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_law_stands_on_every_body_or_says_why_not(name, body_name):
    body, deck = BODIES[body_name](), rocking(0.02)
    if (name, body_name) in REFUSED:
        with pytest.raises(ScenarioError, match=REFUSED[name, body_name]) as refused:
            make_law(name, body, deck)
        assert "\n" not in str(refused.value)
        return
    run = simulate(body, deck, make_law(name, body, deck, duration=3.0), duration=3.0, engine="reference")
    assert np.isfinite(run.joint_torque.values).all()
    assert np.abs(run.joint_position.values).max() < 0.6
    assert run.position_com_in_deck.values[-1, 2] > 0.9 * body.center_of_mass()[2]


def test_an_unknown_law_is_refused_with_a_hint():
    with pytest.raises(ScenarioError, match="no controller is called 'lqg'; did you mean"):
        make_law("lqg", load_body("cip"), STILL)


def test_least_factor_is_where_stiffness_alone_just_holds():
    body = stand("jump")
    factor = least_factor(body)
    for share, holds in ((1.02, True), (0.98, False)):
        gains = {name: share * factor * value for name, value in body.toppling_stiffness().items()}
        law = PD(body.joint_names, stiffness=gains, damping=0.0)
        values = np.linalg.eigvals(closed_loop_matrix(body, law, np.zeros(2 * len(body.joint_names)))[0])
        assert (values.real.max() < 1e-3) == holds


def test_a_heavier_body_has_heavier_everything():
    body = load_body("ship_stance")
    q, v = np.linspace(-0.2, 0.2, 12), np.linspace(0.1, -0.3, 12)
    for one, other in (
        (Plant(heavier(body, 1.1)).inertia(q), Plant(body).inertia(q)),
        (Plant(heavier(body, 1.1)).bias(q, v, LEVEL), Plant(body).bias(q, v, LEVEL)),
    ):
        np.testing.assert_allclose(one, 1.1 * other, rtol=1e-12)


def test_errors_of_laws_are_errors_of_posture():
    with pytest.raises(PostureError):
        make_law("whole_body", load_body("double_pendulum"), STILL)
