"""The compiled engine and CasADi's interpreter against the readable reference: same numbers, same ends, same errors."""

import logging
import math
import subprocess
import sys
from collections.abc import Callable

import casadi
import numpy as np
import pinocchio as pin
import pytest
import xarray as xr

from controllers import PD, PID, Relaxed, Symbols
from posture.body import Body, body_from_text, load_body
from posture.deck import DeckSamples, RecordedDeck, Sine, SineDeck, channels_of
from posture.engine.frames import InverseDynamics
from posture.engine.gradient import Differentiable
from posture.engine.library import FLAGS, EngineError
from posture.engine.machine import Batch, evaluate, machine_for
from posture.engine.program import Program
from posture.engine.stepper import Stepper
from posture.engine.tables import Components, Samples
from posture.errors import BodyError, ScenarioError, SimulationStopped
from posture.simulate import prepare, simulate
from posture.systems.ship_stance import balance_controller, heavy_weather

SAME = 1e-11  # relative to the largest value: rounding, kept small by a stable closed loop


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("ship_stance")


def gains(body: Body, ratio: float = 7.0, time: float = 0.03) -> dict[str, dict[str, float]]:
    stiffness = {name: ratio * value for name, value in body.toppling_stiffness().items()}
    return {"stiffness": stiffness, "damping": {name: time * value for name, value in stiffness.items()}}


def largest_difference(one: xr.Dataset, other: xr.Dataset) -> float:
    """Over all variables, each relative to its largest value."""
    assert set(one.data_vars) == set(other.data_vars)
    return max(
        float(np.nanmax(np.abs(one[name].values - other[name].values)) / np.nanmax(np.abs(other[name].values)))
        for name in other.data_vars
        if other[name].size and np.nanmax(np.abs(other[name].values)) > 0
    )


def imu(seconds: float = 20.0) -> RecordedDeck:
    time = np.arange(round(seconds * 50) + 1) / 50
    deck = SineDeck({"roll": [Sine(0.08, 7, 1)], "pitch": [Sine(0.04, 5, 2)], "heave": [Sine(0.4, 6, 0)]})
    found = deck.sample(time)
    return RecordedDeck(time, found.angular_velocity, found.specific_force)


class OnlySamples:
    """A deck without a table, such as one a user writes."""

    def __init__(self, deck: SineDeck) -> None:
        self.duration, self._deck = 1e9, deck

    def sample(self, time: np.ndarray) -> DeckSamples:
        return self._deck.sample(time)


def test_sixty_seconds_agree_between_compiled_interpreted_and_reference(body: Body) -> None:
    controller = balance_controller(body, 2.0)
    runs = {
        engine: simulate(body, heavy_weather(), controller, duration=60, output_step=0.1, engine=engine)
        for engine in ("compiled", "vm", "reference")
    }
    assert {name: run.attrs["engine"] for name, run in runs.items()} == {name: name for name in runs}
    assert largest_difference(runs["compiled"], runs["reference"]) <= SAME
    assert largest_difference(runs["vm"], runs["compiled"]) <= SAME


CONTROLLERS: dict[str, Callable[[Body], object]] = {
    "pid": lambda body: PID(body.joint_names, **gains(body), integral=20.0, reference={"ankle_y": 0.02}),
    "gravity": lambda body: PD(body.joint_names, **gains(body, 3.0), gravity_torque=body.gravity_torque),
}
DECKS: dict[str, Callable[[], object]] = {
    "sines": heavy_weather,
    "record": imu,
    "samples": lambda: OnlySamples(heavy_weather()),
    "tilted": lambda: SineDeck(steady={"roll": 0.05, "pitch": -0.03}, station=(1, 2, 3)),
}


@pytest.mark.parametrize("law", CONTROLLERS)
@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_laws_with_memory_and_feed_forward_agree_with_the_reference(body: Body, law: str, engine: str) -> None:
    settings = {"duration": 3.0, "output_step": 0.05}
    ours = simulate(body, heavy_weather(), CONTROLLERS[law](body), engine=engine, **settings)
    assert (
        largest_difference(
            ours, simulate(body, heavy_weather(), CONTROLLERS[law](body), engine="reference", **settings)
        )
        <= SAME
    )


@pytest.mark.parametrize("kind", DECKS)
@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_every_kind_of_deck_agrees_with_the_reference(body: Body, kind: str, engine: str) -> None:
    settings = {"duration": 4.0, "output_step": 0.05}
    runs = [
        simulate(body, DECKS[kind](), PD(body.joint_names, **gains(body)), engine=name, **settings)
        for name in (engine, "reference")
    ]
    assert largest_difference(*runs) <= SAME


@pytest.mark.parametrize("locked", [["knee_*", "hip_z"], ["*"], {"ankle_x": 0.1, "neck_y": -0.2}])
def test_locked_joints_and_their_moments_agree_with_the_reference(body: Body, locked: object) -> None:
    held = body.lock(locked)  # type: ignore[arg-type]
    runs = [
        simulate(held, heavy_weather(), PD(body.joint_names, **gains(body)), duration=2, engine=engine)
        for engine in ("compiled", "reference")
    ]
    assert np.abs(runs[0]["joint_constraint_moment"].values).max() > 0.01
    assert largest_difference(*runs) <= SAME


CART = """<robot name="cart">
<link name="rail"/>
<link name="cart"><inertial><mass value="2"/><origin xyz="0.1 0 0.2"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0.02"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="rail"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
<link name="pole"><inertial><mass value="1"/><origin xyz="0 0 0.5"/>
<inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="continuous"><parent link="cart"/><child link="pole"/><origin xyz="0 0.1 0.3" rpy="0.3 0.2 0"/>
<axis xyz="0.6 -0.8 0"/></joint>
<link name="tip"><inertial><mass value="0.3"/><origin xyz="0 0 0.1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="bend" type="revolute"><parent link="pole"/><child link="tip"/><origin xyz="0 0 1"/><axis xyz="0 -1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""
STONE = """<robot name="stone"><link name="stone"><inertial><mass value="2"/><origin xyz="0.1 0 0.2"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@pytest.mark.parametrize("urdf", [CART, STONE])
@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_slides_odd_axes_and_no_joints_at_all_agree_with_the_reference(urdf: str, engine: str) -> None:
    body = body_from_text("mechanism", urdf, {})
    law = PD(body.joint_names, stiffness=60.0, damping=6.0)
    runs = [simulate(body, heavy_weather(), law, duration=3, step=0.002, engine=name) for name in (engine, "reference")]
    assert largest_difference(*runs) <= SAME


def test_a_fall_ends_alike(body: Body) -> None:
    ends = []
    for engine in ("compiled", "vm", "reference"):
        with pytest.raises(SimulationStopped) as stopped:
            simulate(body, heavy_weather(), Relaxed(body.joint_names), duration=10, engine=engine)
        ends.append((str(stopped.value), stopped.value.partial.sizes["time"]))
    assert ends[0] == ends[1] == ends[2]


def test_lanes_threads_and_pieces_give_the_same_bytes_as_one_run(body: Body) -> None:
    stepper = Stepper(
        body, PD(body.joint_names, **gains(body)), heavy_weather(), step=0.005, every=10, engine="compiled"
    )
    start = np.zeros(24)
    whole = stepper.integrate(0, 1000, start)
    batch = Batch(np.tile(stepper.parameters, (11, 1)), np.zeros((11, 24)), [stepper.table] * 11, 1000, 0.005, 10)
    for one in stepper.machine.states(batch):
        assert one.tobytes() == whole.tobytes()
    middle = stepper.integrate(0, 640, start)  # a multiple of every node distance: pieces start on a node
    assert np.vstack((middle, stepper.integrate(640, 360, middle[-1]))).tobytes() == whole.tobytes()


def test_a_sea_of_two_hundred_waves_is_what_its_formula_says(body: Body) -> None:
    random = np.random.default_rng(4)
    frequency = np.sort(random.uniform(0.3, 3.0, 200))
    size = np.array([0.05, 0.05, 0.08, 0.01, 0.006, 0.004])
    cosine, sine = random.normal(size=(2, 200, 6)) * size
    table = Components(frequency, cosine, sine, np.zeros(6), np.array([10.0, 2.0, 4.0]), 9.81)
    assert table.grid(0.005) == (16, 16)  # waves are evaluated at every 16th half step only
    program = Program([body], PD(body.joint_names, **gains(body)))
    machine = machine_for(program, "compiled")
    parameters = program.parameters(body, program.controller)
    batch = Batch(parameters[None, :], np.zeros((1, 24)), [table], 2000, 0.005, 20)
    half_steps = np.arange(4001) * 0.0025
    exact = Batch(parameters[None, :], np.zeros((1, 24)), [Samples(evaluate(table, half_steps))], 2000, 0.005, 20)
    states = machine.states(batch), machine.states(exact)
    assert np.abs(states[0] - states[1]).max() <= SAME * np.abs(states[1]).max()
    later = table.shifted(3.0)
    assert np.allclose(evaluate(later, half_steps), evaluate(table, half_steps + 3.0), rtol=0, atol=1e-11)


def test_a_table_in_numpy_is_the_deck_it_came_from() -> None:
    times = np.linspace(0, 15, 400)
    for deck in (heavy_weather(), imu()):
        assert np.allclose(evaluate(deck.table(), times), channels_of(deck.sample(times)), rtol=0, atol=1e-12)


class Odd(PD):
    """A law with time, limits and every function a muscle might need."""

    def torque(self, time: float, position: np.ndarray, velocity: np.ndarray, memory: np.ndarray) -> np.ndarray:
        plain = super().torque(time, position, velocity, memory)
        soft = 40 * np.tanh(plain / 40) + np.exp(-(position**2)) * np.sin(3 * time) + np.arctan(velocity)
        return np.clip(soft, -35, 35) + np.where(position > 0.01, np.sqrt(np.abs(position)), 0.0) * np.sign(velocity)

    def symbolic_form(self) -> str:
        return "odd"

    def symbolic(self, symbols: Symbols) -> tuple[object, object]:
        plain, memory = super().symbolic(symbols)
        q, v = symbols.position, symbols.velocity
        soft = 40 * casadi.tanh(plain / 40) + casadi.exp(-(q**2)) * casadi.sin(3 * symbols.time) + casadi.atan(v)
        limited = casadi.fmax(casadi.fmin(soft, 35), -35)
        return limited + casadi.if_else(q > 0.01, casadi.sqrt(casadi.fabs(q)), 0) * casadi.sign(v), memory


@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_a_law_with_every_function_agrees_with_its_torque(body: Body, engine: str) -> None:
    stepper = Stepper(body, Odd(body.joint_names, **gains(body)), heavy_weather(), step=0.005, every=1, engine=engine)
    law, random = Odd(body.joint_names, **gains(body)), np.random.default_rng(0)
    states = random.uniform(-0.5, 0.5, (50, 24))
    times = random.uniform(0, 100, 50)
    channels = random.normal(size=(50, 9))
    found = stepper.machine.observe(stepper.parameters, None, times, states, channels)[:, :12]
    expected = [
        law.torque(time, state[:12], state[12:], np.zeros(0)) for time, state in zip(times, states, strict=True)
    ]
    assert np.abs(found - expected).max() <= 1e-12 * np.abs(expected).max()


def test_sine_and_cosine_are_right_to_the_last_place() -> None:
    """The engine has its own, through a law whose torques are sin t and cos t."""
    body = load_body("ship_stance")
    law = PD(body.joint_names, **gains(body))
    program = Program([body], Ticking(body.joint_names, **gains(body)))
    machine = machine_for(program, "compiled")
    parameters = program.parameters(body, law)
    times = np.concatenate((np.linspace(-50, 50, 2001), np.pi / 4 * np.arange(-20, 21), [1e-300, 1e5, 123456.789]))
    states, channels = np.zeros((len(times), 24)), np.zeros((len(times), 9))
    found = machine.observe(parameters, None, times, states, channels)[:, :2]
    expected = np.array([[math.sin(time), math.cos(time)] for time in times])
    assert np.abs(found - expected).max() <= 2.3e-16  # one unit in the last place of 1


class Ticking(PD):
    """Torques sin t and cos t."""

    def symbolic_form(self) -> str:
        return "ticking"

    def symbolic(self, symbols: Symbols) -> tuple[object, object]:
        rest = casadi.SX.zeros(len(self.joint_names) - 2)
        return casadi.vertcat(casadi.sin(symbols.time), casadi.cos(symbols.time), rest), symbols.memory


def test_a_symbolic_law_that_differs_from_its_torque_is_refused(body: Body, caplog: pytest.LogCaptureFixture) -> None:
    law = Ticking(body.joint_names, **gains(body))
    with pytest.raises(EngineError, match="Ticking differs from its torque"):
        simulate(body, heavy_weather(), law, duration=6, engine="compiled")
    with caplog.at_level(logging.WARNING):
        assert simulate(body, heavy_weather(), law, duration=6, output_step=0.1).attrs["engine"] == "reference"
    assert "readable engine" in caplog.text
    foreign = PD(body.joint_names, **gains(body), gravity_torque=lambda position: np.zeros(12))
    with pytest.raises(EngineError, match=r"must be body\.gravity_torque"):
        simulate(body, heavy_weather(), foreign, duration=6, engine="compiled")


class Plain:
    """A law without symbols."""

    memory_size = 0

    def __init__(self, body: Body) -> None:
        self.joint_names, self._law = tuple(body.joint_names), PD(body.joint_names, **gains(body))

    def torque(self, *arguments: object) -> np.ndarray:
        return self._law.torque(*arguments)  # type: ignore[arg-type]

    def memory_rate(self, *arguments: object) -> np.ndarray:
        return np.zeros(0)


def test_a_law_without_symbols_runs_on_the_reference_only(body: Body) -> None:
    assert simulate(body, heavy_weather(), Plain(body), duration=0.1).attrs["engine"] == "reference"
    with pytest.raises(ScenarioError, match="Plain has no symbolic law"):
        simulate(body, heavy_weather(), Plain(body), duration=0.1, engine="compiled")
    with pytest.raises(ScenarioError, match="no engine is called 'warp'"):
        simulate(body, heavy_weather(), Plain(body), duration=0.1, engine="warp")


def test_a_kept_library_starts_without_casadi(body: Body) -> None:
    Stepper(body, balance_controller(body), heavy_weather(), step=0.005, every=1, engine="compiled")
    code = """
import sys
from posture.body import load_body
from posture.engine.stepper import Stepper
from posture.systems.ship_stance import balance_controller, heavy_weather
body = load_body("ship_stance")
Stepper(body, balance_controller(body), heavy_weather(), step=0.005, every=1, engine="compiled")
assert "casadi" not in sys.modules, "casadi was loaded"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_flag_trades_correctness_for_speed() -> None:
    assert not any("fast-math" in flag or "unsafe" in flag or "Ofast" in flag for flag in FLAGS)
    assert "-ffp-contract=off" in FLAGS


# ---------------------------------------------------------------- gradients


@pytest.fixture(scope="module")
def differentiable(body: Body) -> Differentiable:
    return Differentiable(prepare(body, heavy_weather(), balance_controller(body, 2.0), duration=10.0, output_step=0.1))


NAMES = ["stiffness.ankle_x", "damping.hip_y", "reference.knee_y", "hip_z.mass", "knee_z.offset_z", "neck_z.inertia_xx"]


def test_reverse_and_lanes_give_one_gradient(differentiable: Differentiable) -> None:
    states, _ = differentiable.run()
    weights = np.random.default_rng(1).normal(size=states.shape)
    by_lanes = np.einsum("rs,rsp->p", weights, differentiable.jacobian(NAMES))
    reverse, to_start = differentiable.pullback(weights)
    chosen = reverse[[differentiable.names.index(name) for name in NAMES]]
    assert np.abs(by_lanes / chosen - 1).max() <= 1e-6
    start, shifted = differentiable.batch.start.copy(), []
    for sign in (1, -1):
        differentiable.batch.start = start + sign * 1e-6 * np.eye(24)[13]
        shifted.append(differentiable.run()[0])
    differentiable.batch.start = start
    assert np.sum(weights * (shifted[0] - shifted[1])) / 2e-6 == pytest.approx(to_start[13], rel=1e-6)


def test_the_gradient_is_that_of_the_reference_simulation(body: Body, differentiable: Differentiable) -> None:
    ends = []
    for sign in (1, -1):
        controller = balance_controller(body, 2.0)
        controller.stiffness[0] *= 1 + sign * 1e-4
        run = simulate(body, heavy_weather(), controller, duration=10.0, output_step=0.1, engine="reference")
        ends.append(run["joint_position"].values[1:])
    expected = (ends[0] - ends[1]) / (2e-4 * balance_controller(body, 2.0).stiffness[0])
    found = differentiable.jacobian(["stiffness.ankle_x"])[:, :12, 0]
    assert (
        np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()
    )  # differences of relative step 1e-4 err by 1e-8
    outputs = differentiable.jacobian(["stiffness.ankle_x"], of="outputs")
    assert outputs.shape == (100, 12 + 12 + 9 + 3, 1)


def test_gradient_requests_that_make_no_sense_are_refused(differentiable: Differentiable) -> None:
    with pytest.raises(
        ScenarioError, match=r"no parameter is called 'stiffness\.ankel_x'; did you mean 'stiffness\.ankle_x'"
    ):
        differentiable.jacobian(["stiffness.ankel_x"])
    with pytest.raises(ScenarioError, match="weights have shape"):
        differentiable.pullback(np.zeros((3, 3)))


# ---------------------------------------------------------------- inverse dynamics of recordings


def whole_body(balls: int = 17) -> pin.Model:
    """18 segments, 17 ball joints, free base: 57 degrees of freedom."""
    random, model = np.random.default_rng(0), pin.Model()
    joints = [model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")]
    for number in range(balls):
        joint, place = joints[max(0, number - 3)], pin.SE3(np.eye(3), random.uniform(-0.2, 0.2, 3))
        for axis, kind in zip("xyz", (pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ()), strict=True):
            joint = model.addJoint(joint, kind, place if axis == "x" else pin.SE3.Identity(), f"{number}{axis}")
        joints.append(joint)
    for joint in joints:
        model.appendBodyToJoint(
            joint, pin.Inertia.FromEllipsoid(float(random.uniform(1, 9)), 0.1, 0.2, 0.3), pin.SE3.Identity()
        )
    return model


@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_inverse_dynamics_of_57_joints_agree_with_rnea(engine: str) -> None:
    model = whole_body()
    assert model.nv == 57
    random, frames = np.random.default_rng(2), 43  # no multiple of any lane width
    q = np.array([pin.integrate(model, pin.neutral(model), random.uniform(-1, 1, model.nv)) for _ in range(frames)])
    v, a = random.normal(size=(2, frames, model.nv))
    ours = InverseDynamics(model, engine=engine)
    data = model.createData()
    expected = np.array([pin.rnea(model, data, *state).copy() for state in zip(q, v, a, strict=True)])
    found = ours(q, v, a)
    assert ours.kind == engine
    assert np.abs(found - expected).max() <= 1e-13 * np.abs(expected).max()
    assert (
        ours(np.tile(q, (300, 1)), np.tile(v, (300, 1)), np.tile(a, (300, 1)), threads=2).tobytes()
        == np.tile(found, (300, 1)).tobytes()
    )
    assert ours(q[:0], v[:0], a[:0]).shape == (0, 57)
    with pytest.raises(BodyError, match=r"v has shape \(43, 3\)"):
        ours(q, v[:, :3], a)
