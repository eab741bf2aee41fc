"""Forward simulation: the right equations, the right order, and early ends that lose nothing."""

import math
import re
import tracemalloc
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from controllers import PD, PID, Controller, ControllerError, FromFunction, Relaxed, WholeBody
from posture.balance import Balance
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import Sine, SineDeck, constant_deck
from posture.errors import GaveUp, Interrupted, ScenarioError, SimulationStopped
from posture.plant import Plant
from posture.results import save_blocks
from posture.scenario import parse_scenario
from posture.simulate import Dynamics, prepare, residual, simulate

simulation = import_module("posture.simulate")  # `posture.simulate` itself is the function of that name

Array = NDArray[np.floating]
UP = np.array([0, 0, STANDARD_GRAVITY])

LINK = """
  <link name="{name}"><inertial><origin xyz="{center}"/><mass value="{mass}"/>
    <inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{name}"/><origin xyz="{place}"/>
    <axis xyz="{axis}"/><limit lower="-3" upper="3" effort="1000" velocity="50"/></joint>"""


def chain(folder: Path, *links: dict[str, object], name: str = "chain") -> Body:
    """A body of the given links, one on the other, on a massless base."""
    text, parent = '<link name="base"/>', "base"
    for number, link in enumerate(links):
        values = {"name": f"link{number}", "joint": f"joint{number}", "axis": "0 1 0", "place": "0 0 0"} | link
        text += LINK.format(parent=parent, **values)
        parent = str(values["name"])
    path = folder / f"{name}.urdf"
    path.write_text(f'<robot name="{name}">{text}</robot>')
    return load_body(path)


ONE = {"mass": 10, "center": "0 0 0.5", "i": 0.4}  # about the joint 0.4 + 10·0.5² = 2.9 kg·m²
TWO = {"mass": 4, "center": "0.02 0.01 0.3", "i": 0.1, "place": "0 0 0.9", "axis": "1 0 0"}


@pytest.fixture
def single(tmp_path: Path) -> Body:
    return chain(tmp_path, ONE)


@pytest.fixture
def double(tmp_path: Path) -> Body:
    return chain(tmp_path, ONE, TWO)


@pytest.fixture(scope="module")
def person() -> Body:
    return load_body("ship_stance")


def balance(body: Body, ratio: float = 8.0, time: float = 0.03) -> PD:
    stiffness = {name: ratio * value for name, value in body.toppling_stiffness().items()}
    return PD(body.joint_names, stiffness=stiffness, damping={name: time * value for name, value in stiffness.items()})


def rocking() -> SineDeck:
    return SineDeck(
        {"roll": [Sine(0.06, 7.0, 0.3)], "pitch": [Sine(0.04, 5.0, 1.0)], "heave": [Sine(0.5, 6.0, 0.0)]},
        station=(8.0, 2.0, 3.0),
    )


# ---------------------------------------------------------------- the equations


def test_raw_inertial_channels_give_the_motion_of_the_full_free_flying_problem(person: Body) -> None:
    # The full problem knows gravity, attitude, position and velocity of the base. It is solved the other way round,
    # by the articulated-body algorithm: our deck wrench and torques go in, all accelerations must come out.
    full = person.model.copy()
    full.gravity.linear = -UP
    data, dynamics, rng, joints = full.createData(), Dynamics(person), np.random.default_rng(1), len(person.joint_names)
    for _ in range(25):
        attitude = Rotation.from_quat(rng.normal(size=4))
        w, wd, velocity, acceleration = rng.normal(0, 2, (4, 3))
        position = rng.uniform(-1.2, 1.2, joints)
        speed, torque = rng.normal(0, 3, joints), rng.normal(0, 100, joints)
        channels = np.concatenate((w, wd, attitude.inv().apply(acceleration + UP)))
        ours = dynamics.acceleration(position, speed, torque, channels)
        reactions = dynamics.reactions(position, speed, ours, channels)

        in_ship = attitude.inv().apply(velocity)
        q = np.concatenate((rng.normal(0, 50, 3), attitude.as_quat(), position))
        v = np.concatenate((in_ship, w, speed))
        spatial = attitude.inv().apply(acceleration) - np.cross(w, in_ship)  # Pinocchio's acceleration of the base
        found = pin.aba(full, data, q, v, np.concatenate((reactions[:6], torque)))
        expected = np.concatenate((spatial, wd, ours))
        assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()


def test_locked_joints_stand_still_and_their_moments_are_the_inverse_dynamics(person: Body) -> None:
    held = person.lock({"knee_*": 0.1, "neck_x": -0.05})
    run = simulate(held, rocking(), balance(person), duration=1)
    locked = list(run.locked_joint.values)
    assert sorted(locked) == ["knee_x", "knee_y", "knee_z", "neck_x"]
    for name, angle in held.locked.items():
        assert (run.joint_position.sel(joint=name) == angle).all()
    for variable in ("joint_velocity", "joint_acceleration", "joint_torque"):
        assert (run[variable].sel(joint=locked) == 0).all()
    # A full model with gravity, base moving as in the world, agrees at every row.
    full = person.model.copy()
    full.gravity.linear = -UP
    data = full.createData()
    for row in range(0, run.sizes["time"], 7):
        now = run.isel(time=row)
        attitude = Rotation.from_quat(now.deck_quaternion.values)
        lift = now.deck_specific_force.values - attitude.inv().apply(UP)
        q = np.concatenate((now.deck_position.values, now.deck_quaternion.values, now.joint_position.values))
        v = np.concatenate((np.zeros(3), now.deck_angular_velocity.values, now.joint_velocity.values))
        a = np.concatenate((lift, now.deck_angular_acceleration.values, now.joint_acceleration.values))
        needed = pin.rnea(full, data, q, v, a)
        scale = np.abs(needed).max()
        constraint = now.joint_constraint_moment.values
        assert np.abs(constraint - needed[6:][[person.joint_index(name) for name in locked]]).max() < 1e-10 * scale
        free = [name for name in person.joint_names if name not in locked]
        torque = now.joint_torque.sel(joint=free).values
        assert np.abs(torque - needed[6:][[person.joint_index(name) for name in free]]).max() < 1e-10 * scale
        assert np.abs(now.force_deck_on_person.values - needed[:3]).max() < 1e-10 * scale
        assert np.abs(now.moment_deck_on_person.values - needed[3:6]).max() < 1e-10 * scale


def test_a_pendulum_moves_as_its_closed_form_says(single: Body) -> None:
    # (K - m g l) / I = w²: small swings of a spring-held inverted pendulum.
    stiffness, inertia, topple = 200.0, 2.9, 10 * STANDARD_GRAVITY * 0.5
    omega = math.sqrt((stiffness - topple) / inertia)
    run = simulate(
        single,
        constant_deck(),
        PD(single.joint_names, stiffness=stiffness, damping=0.0),
        duration=2,
        step=0.002,
        start_position=np.array([1e-4]),
    )
    np.testing.assert_allclose(run.joint_position[:, 0], 1e-4 * np.cos(omega * run.time), atol=1e-10)


def test_the_integrator_is_of_fourth_order(double: Body) -> None:
    controller, start = balance(double, 3.0, 0.02), np.array([0.4, -0.3])

    def end(step: float) -> Array:
        run = simulate(
            double, rocking(), controller, duration=1.6, step=step, output_step=1.6, start_position=start
        ).isel(time=-1)
        return np.concatenate((run.joint_position.values, run.joint_velocity.values))

    ends = [end(0.02 / 2**k) for k in range(4)]
    gaps = [float(np.linalg.norm(a - b)) for a, b in pairwise(ends)]
    orders = np.log2(np.array(gaps[:-1]) / gaps[1:])
    assert np.abs(orders - 4).max() < 0.1, orders


def test_memory_of_a_controller_is_integrated_with_the_same_order(single: Body) -> None:
    controller = PID(single.joint_names, stiffness=150.0, damping=12.0, integral=60.0)

    def end(step: float) -> float:
        run = simulate(
            single, constant_deck(pitch=0.1), controller, duration=1.6, step=step, output_step=1.6,
            start_position=np.array([0.3]),
        )  # fmt: skip
        return float(run.joint_position[-1, 0])

    ends = [end(0.01 / 2**k) for k in range(3)]
    assert math.log2(abs((ends[0] - ends[1]) / (ends[1] - ends[2]))) == pytest.approx(4, abs=0.1)


def test_integral_action_takes_away_the_sag_that_pd_leaves(single: Body) -> None:
    gains = {"stiffness": 200.0, "damping": 40.0}
    tilted, topple = constant_deck(pitch=0.1), 10 * STANDARD_GRAVITY * 0.5
    pd = simulate(single, tilted, PD(single.joint_names, **gains), duration=20, output_step=1)
    pid = simulate(single, tilted, PID(single.joint_names, integral=100.0, **gains), duration=20, output_step=1)
    # At rest K q = m g l sin(q + tilt) under PD; nothing is left under PID.
    sag = brentq(lambda q: gains["stiffness"] * q - topple * math.sin(q + 0.1), 0, 1)
    assert float(pd.joint_position[-1, 0]) == pytest.approx(sag, abs=1e-6)
    assert abs(float(pid.joint_position[-1, 0])) < 1e-4 < 0.01 < sag


def energy(body: Body, controller: PD, position: Array, velocity: Array) -> float:
    model = body.model.copy()
    model.gravity.linear = -UP
    data, q = model.createData(), body.with_base(position)
    v = np.concatenate((np.zeros(6), velocity))
    total = pin.computeKineticEnergy(model, data, q, v) + pin.computePotentialEnergy(model, data, q)
    return float(total + 0.5 * controller.stiffness @ position**2)


def test_without_force_and_damping_energy_drifts_only_by_the_step(double: Body) -> None:
    # |R(iy)|² = 1 - y⁶/72: a mode loses y⁶/72 of its energy per step, so y⁵ per unit of time. Half the step leaves
    # 1/32 of the drift of a linear system; large swings mix in the fourth-order error, 1/16.
    controller, start = balance(double, 3.0, 0.0), np.array([0.5, -0.4])

    def drift(step: float) -> float:
        run = simulate(
            double, constant_deck(), controller, duration=20, step=step, output_step=0.4, start_position=start
        )
        states = zip(run.joint_position.values, run.joint_velocity.values, strict=True)
        values = [energy(double, controller, position, velocity) for position, velocity in states]
        swing = values[0] - energy(double, controller, np.zeros(2), np.zeros(2))
        return float(np.abs(np.array(values) - values[0]).max() / swing)

    coarse, fine = drift(0.02), drift(0.01)
    assert coarse < 0.02
    assert 2**4 * 0.9 < coarse / fine < 2**5 * 1.1


def test_a_person_on_a_tilted_deck_comes_to_rest_where_forces_balance(person: Body) -> None:
    controller = balance(person, 6.0, 0.04)
    run = simulate(person, constant_deck(roll=0.05, pitch=-0.03), controller, duration=40, output_step=0.5)
    end = run.isel(time=-1)
    position = end.joint_position.values
    assert np.abs(end.joint_velocity.values).max() < 1e-5
    # Inverse dynamics at rest in the tilted field: the spring holds each joint.
    lift = np.concatenate((end.deck_specific_force.values, np.zeros(3 + len(position))))
    holding = pin.rnea(person.model, person.model.createData(), person.with_base(position), lift * 0, lift)[6:]
    np.testing.assert_allclose(-controller.stiffness * position, holding, atol=1e-3)
    pull = person.mass * end.deck_specific_force.values
    np.testing.assert_allclose(end.force_deck_on_person, pull, atol=1e-3)
    # The centre of pressure is where the line of the specific force through the centre of mass meets the deck.
    com = end.position_com_in_deck.values
    np.testing.assert_allclose(end.position_cop_on_deck, com[:2] - com[2] * pull[:2] / pull[2], atol=1e-6)
    # Starboard (−Y) is down and the bow (+X) up: the person sags downhill.
    assert com[1] < -0.01
    assert com[0] < -0.01


def test_gravity_compensation_holds_any_posture_on_a_level_deck(person: Body) -> None:
    angles = np.tile([0.02, 0.1, 0.0], 4)
    controller = PD(
        person.joint_names,
        stiffness=300.0,
        damping=10.0,
        reference=dict(zip(person.joint_names, angles, strict=True)),
        gravity_torque=person.gravity_torque,
    )
    run = simulate(person, constant_deck(), controller, duration=1, start_position=angles, step=0.002)
    np.testing.assert_allclose(run.joint_position, np.tile(angles, (run.sizes["time"], 1)), atol=1e-12)


def test_the_residual_falls_with_the_square_of_the_output_step_and_sees_a_wrong_force(person: Body) -> None:
    runs = [
        simulate(person, rocking(), balance(person), duration=2, output_step=step).sel(time=slice(1, None))
        for step in (0.02, 0.01)
    ]
    assert residual(runs[0]) < 1e-3
    assert residual(runs[0]) / residual(runs[1]) == pytest.approx(4, abs=0.4)
    wrong = runs[0].copy(deep=True)
    wrong["force_deck_on_person"] *= 1.002
    assert residual(wrong) > 1.5e-3


# ---------------------------------------------------------------- the step


def single_limit(*, stiffness: float, damping: float) -> float:
    """Largest stable step of RK4 for the single pendulum, from its characteristic equation."""
    roots = np.roots([2.9, damping, stiffness - 10 * STANDARD_GRAVITY * 0.5])

    def growth(step: float) -> float:
        z = step * roots
        return float(np.abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24).max()) - 1

    fastest = float(np.abs(roots).max())
    return float(brentq(growth, 2.5 / fastest, 3.2 / fastest))


@pytest.mark.parametrize(
    ("stiffness", "damping", "gain"),
    [
        (3000.0, 900.0, "damping"),
        (40000.0, 30.0, "stiffness"),
        (40000.0, 0.0, "stiffness"),
        (1000.0, 2000.0, "damping"),
    ],
)
def test_the_largest_step_is_stated_right_and_the_gain_is_named(
    single: Body, stiffness: float, damping: float, gain: str
) -> None:
    controller = PD(single.joint_names, stiffness=stiffness, damping=damping)
    limit = single_limit(stiffness=stiffness, damping=damping)

    def at(step: float) -> simulation.Run:
        return prepare(single, constant_deck(), controller, duration=step, step=step, output_step=step)

    with pytest.raises(ScenarioError, match=f"{gain} of joint 'joint0'") as refusal:
        at(1.001 * limit)
    stated = float(re.search(r"at most ([\d.e-]+) s", str(refusal.value))[1])  # type: ignore[index]
    assert 0.99 * limit < stated <= limit
    at(stated)
    at(0.999 * limit)
    # And it is true: below, a small push dies out or stays; above, it grows.
    level = np.tile(np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY]), (2001, 1))
    start = np.array([1e-6, 0.0])
    for factor, grows in ((0.98, False), (1.02, True)):
        states = simulation.integrate(
            Dynamics(single), controller, level, start, start=0.0, step=factor * limit, every=1
        )
        assert bool(np.abs(states[-100:, 0]).max() > 1e-6) == grows


@pytest.mark.parametrize(
    ("joint", "gain", "value"),
    [
        ("neck_x", "damping", 60.0),
        ("knee_y", "damping", 900.0),
        ("ankle_y", "stiffness", 2e7),
        ("hip_z", "damping", 300),
    ],
)
def test_of_many_gains_the_guilty_one_is_named(person: Body, joint: str, gain: str, value: float) -> None:
    usual = balance(person, 3.5, 0.02)
    gains = {
        "stiffness": dict(zip(person.joint_names, usual.stiffness, strict=True)),
        "damping": dict(zip(person.joint_names, usual.damping, strict=True)),
    }
    prepare(person, constant_deck(), PD(person.joint_names, **gains), duration=1)
    gains[gain][joint] = value
    with pytest.raises(ScenarioError, match=f"the {gain} of joint '{joint}'"):
        prepare(person, constant_deck(), PD(person.joint_names, **gains), duration=1)


def test_an_integral_gain_can_be_the_guilty_one(single: Body) -> None:
    # 2.9 s³ + 10 s² + (1000 - mgl) s + Ki = 0 with Ki = 2.9·1000³: modes near 1000 rad/s.
    controller = PID(single.joint_names, stiffness=1000.0, damping=10.0, integral=2.9e9)
    with pytest.raises(ScenarioError, match="integral gain of joint 'joint0'"):
        prepare(single, constant_deck(), controller, duration=1)


@pytest.mark.parametrize("damping", [0.0, 1e-9, 1e-7])
def test_a_mode_without_damping_is_not_mistaken_for_one_that_needs_a_tiny_step(double: Body, damping: float) -> None:
    # Its real part is rounding only, of either sign.
    for ratio in np.linspace(1.1, 4, 30):
        prepare(double, constant_deck(), balance(double, ratio, damping), duration=1)
    prepare(double, constant_deck(), Relaxed(double.joint_names), duration=1)


def test_a_locked_joint_s_gain_does_not_matter(person: Body) -> None:
    stiffness = {name: 3.5 * value for name, value in person.toppling_stiffness().items()} | {"neck_x": 1e9}
    controller = PD(person.joint_names, stiffness=stiffness, damping=0.0)
    prepare(person.lock(["neck_x"]), constant_deck(), controller, duration=1)
    prepare(person.lock(["*"]), constant_deck(), controller, duration=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"duration": 0}, "duration is 0"),
        ({"duration": math.nan}, "duration is nan"),
        ({"duration": 1, "step": 0.2}, "step is 0.2"),
        ({"duration": 1, "output_step": 0.0123}, "not a whole number of steps of 0.005 s; try 0.01"),
        ({"duration": 1.01, "output_step": 0.02}, "not a whole number of output steps"),
        ({"duration": 1.003}, "not a whole number of steps of 0.005 s; try 1.005"),
        ({"duration": 1, "start_position": np.zeros(3)}, "2 finite numbers"),
        ({"duration": 1, "start_velocity": np.array([0, np.nan])}, "2 finite numbers"),
    ],
)
def test_settings_that_cannot_be_are_refused(double: Body, settings: dict[str, float], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        prepare(double, constant_deck(), Relaxed(double.joint_names), **settings)


@pytest.mark.parametrize(
    ("duration", "step", "kept"),
    [(60, 0.005, 0.02), (60, 0.003, 0.015), (0.01, 0.005, 0.01), (1, 0.1, 0.1), (0.995, 0.005, 0.005)],
)
def test_rows_come_as_near_to_every_20_ms_as_step_and_duration_allow(
    double: Body, duration: float, step: float, kept: float
) -> None:
    run = prepare(double, constant_deck(), Relaxed(double.joint_names), duration=duration, step=step)
    assert run.every * run.step == pytest.approx(kept)


def test_a_controller_for_other_joints_is_refused(double: Body, person: Body) -> None:
    with pytest.raises(ScenarioError, match=r"build it with body\.joint_names"):
        prepare(double, constant_deck(), Relaxed(person.joint_names), duration=1)


# ---------------------------------------------------------------- early ends, memory, other bodies


def test_a_fall_is_told_and_what_came_before_is_kept(person: Body) -> None:
    start = np.zeros(len(person.joint_names))
    start[person.joint_index("ankle_x")] = 0.1
    with pytest.raises(SimulationStopped, match=r"fell: at .* s the centre of mass|passed 80°") as stopped:
        simulate(person, constant_deck(), Relaxed(person.joint_names), duration=30, start_position=start)
    partial = stopped.value.partial
    assert 0.3 < float(partial.time[-1]) < 5
    assert np.isfinite(partial.joint_position.values).all()
    np.testing.assert_allclose(np.diff(partial.time), 0.02, atol=1e-9)
    assert partial.attrs["body"] == "ship_stance"
    # A falling person gathers speed: the last kept row is far from upright.
    assert float(partial.position_com_in_deck[-1, 2]) < 0.75 * float(partial.position_com_in_deck[0, 2])


def test_a_stiff_person_falls_like_a_broom_until_low(person: Body) -> None:
    start = np.zeros(len(person.joint_names))
    start[person.joint_index("ankle_x")] = 0.3
    held = person.lock([name for name in person.joint_names if name != "ankle_x"])
    with pytest.raises(SimulationStopped, match="fell") as stopped:
        simulate(held, constant_deck(), Relaxed(person.joint_names), duration=30, start_position=start)
    heights = stopped.value.partial.position_com_in_deck.values[:, 2]
    limit = 0.3 * person.center_of_mass()[2]
    assert heights[-1] < limit < heights[-2]
    assert f"{heights[-1]:.2f} m" in str(stopped.value)


def test_a_motion_that_overflows_is_told_by_its_time(single: Body) -> None:
    class Runaway(Relaxed):
        def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
            return np.array([np.inf if time > 0.5 else 0.0])

    with pytest.raises(SimulationStopped, match=r"no longer finite after 0\.50") as stopped:
        simulate(single, constant_deck(), Runaway(single.joint_names), duration=1, output_step=0.01)
    assert float(stopped.value.partial.time[-1]) == pytest.approx(0.5)
    assert np.isfinite(stopped.value.partial.joint_position.values).all()


def test_ctrl_c_keeps_what_was_computed(single: Body) -> None:
    class Impatient(Relaxed):
        def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
            if time > 25:
                raise KeyboardInterrupt
            return np.zeros(1)

    hanging = single.lock(["*"])
    with pytest.raises(Interrupted) as stopped:
        simulate(hanging, constant_deck(), Impatient(single.joint_names), duration=60, engine="reference")
    assert float(stopped.value.partial.time[-1]) == pytest.approx(20)  # two whole blocks of 2000 steps
    assert stopped.value.exit_code == 130


@pytest.mark.parametrize("every", [1, 3, 5000])
def test_blocks_do_not_change_the_numbers(double: Body, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    duration = 0.001 * (5000 if every == 5000 else 900)
    settings = {"duration": duration, "step": 0.001, "output_step": 0.001 * every}
    runs = []
    for size in (2000, 70, 1):
        if every == 5000 and size != 2000:
            continue
        monkeypatch.setattr(simulation.Reference, "block_steps", size)
        runs.append(simulate(double, rocking(), balance(double), engine="reference", **settings))
    assert runs[0].sizes["time"] == round(duration / settings["output_step"]) + 1
    np.testing.assert_allclose(runs[0].time, np.arange(runs[0].sizes["time"]) * settings["output_step"], atol=1e-12)
    for run in runs[1:]:
        drawn = "deck_position"  # its rotation sums in an order that depends on the number of rows
        assert run.drop_vars(drawn).identical(runs[0].drop_vars(drawn))
        np.testing.assert_allclose(run[drawn], runs[0][drawn], rtol=0, atol=1e-14)


SCENARIO = """
duration = 2.0
seed = 7
[deck]
type = "sines"
roll = [{ amplitude_deg = 3.0, period = 8.0 }]
heave = [{ amplitude = 0.5, period = 7.0 }]
[controller]
stiffness_ratio = 8.0
damping_time = 0.03
"""


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    files = {}
    for name, seed in (("one", 7), ("two", 7), ("other", 8)):
        scenario = parse_scenario(SCENARIO, tmp_path / "s.toml", overrides={"seed": seed})
        save_blocks(scenario.run().blocks(), tmp_path / f"{name}.nc")
        files[name] = (tmp_path / f"{name}.nc").read_bytes()
    assert files["one"] == files["two"]
    assert files["one"] != files["other"]


def test_a_long_run_needs_no_more_memory_than_a_short_one(
    double: Body, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation.Reference, "block_steps", 100)

    def peak(blocks: int) -> tuple[int, int]:
        run = prepare(double, rocking(), balance(double), duration=0.5 * blocks, output_step=0.005, engine="reference")
        tracemalloc.start()
        save_blocks(run.blocks(), tmp_path / "run.nc")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, (tmp_path / "run.nc").stat().st_size

    peak(2)  # what is loaded once
    (short, few), (long, many) = peak(10), peak(90)
    assert many - few > 1_500_000
    # Keeping the blocks would cost at least what they take in the file; a little may wait for garbage collection.
    assert long - short < (many - few) / 8


def test_the_same_scenario_runs_with_another_body_by_path(tmp_path: Path) -> None:
    body = chain(tmp_path, ONE, TWO, name="robot")
    text = 'body = "robot.urdf"\n' + SCENARIO
    for scenario in (
        parse_scenario(text, tmp_path / "scenario.toml"),  # beside the scenario
        parse_scenario(SCENARIO, tmp_path / "scenario.toml", overrides={"body": str(tmp_path / "robot.urdf")}),
    ):
        blocks = list(scenario.run().blocks())
        assert list(blocks[-1].joint.values) == body.joint_names == ["joint0", "joint1"]
        assert blocks[-1].attrs["body_mass_kg"] == pytest.approx(14)
        assert "stance_margin" not in blocks[-1]  # no sidecar, so no feet are known
        assert np.isfinite(blocks[-1].position_cop_on_deck.values).all()
        assert np.abs(blocks[-1].joint_position.values).max() > 1e-3


def test_progress_is_told_in_simulated_seconds(double: Body) -> None:
    told: list[float] = []
    for _ in prepare(double, constant_deck(), balance(double), duration=25, engine="reference").blocks(told.append):
        pass
    np.testing.assert_allclose(told, [10, 20, 25])


def test_any_object_with_the_protocol_can_control(single: Body) -> None:
    class Bang:
        joint_names = ("joint0",)
        memory_size = 1

        def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
            return -400 * memory

        def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
            return 20 * (position - memory)

    controller: Controller = Bang()
    run = simulate(single, constant_deck(), controller, duration=1, start_position=np.array([0.01]))
    # The memory follows the angle, and the torque is the memory's.
    assert float(run.joint_torque[0, 0]) == 0
    assert float(np.abs(run.joint_torque).max()) > 1


def test_who_starts_balanced_on_a_tilted_deck_does_not_move(person: Body) -> None:
    deck, controller = constant_deck(roll=0.1, pitch=-0.06), balance(person)
    position, velocity = Balance(person, controller).start(deck)
    assert np.abs(position).max() > 0.003
    np.testing.assert_allclose(velocity, 0, atol=1e-10)
    run = simulate(person, deck, controller, duration=2, start_position=position)
    np.testing.assert_allclose(run.joint_position.values, np.tile(position, (run.sizes["time"], 1)), atol=1e-10)


def test_who_starts_balanced_on_a_rolling_deck_has_little_swing_of_their_own(person: Body) -> None:
    deck, controller = rocking(), balance(person)
    settled = simulate(person, deck, controller, duration=40)
    upright = settled.joint_position.values
    position, velocity = Balance(person, controller).start(deck)
    ready = simulate(person, deck, controller, duration=40, start_position=position, start_velocity=velocity)
    gone = np.abs(upright - ready.joint_position.values)
    assert gone[-250:].max() < 1e-3 * gone[0].max()  # what is left in the end is the same motion

    def swing(angles: Array) -> float:  # fast part of the first two seconds: second differences see only that
        return float(np.abs(np.diff(angles[:100], n=2, axis=0)).max())

    assert swing(ready.joint_position.values) < 0.1 * swing(upright)


def test_a_controller_too_weak_to_balance_cannot_start_balanced(single: Body) -> None:
    with pytest.raises(ScenarioError, match="upright"):
        Balance(single, balance(single, ratio=0.3)).start(constant_deck(pitch=1.0))


@pytest.mark.parametrize(("last", "kept"), [(0.012, 0.0), (0.5, 0.48), (0.507, 0.5), (11.0, 10.98)])
def test_a_law_that_gives_up_leaves_what_was_computed(last: float, kept: float) -> None:
    """Whether it gives up inside an output step, at its end, or in the second block of rows."""
    body = load_body("cip")

    def law(time: float, position: Array, velocity: Array) -> Array:
        if time >= last - 1e-9:
            raise ControllerError("no torque is enough")
        return -2000 * position - 300 * velocity

    with pytest.raises(GaveUp, match="cip: the controller gave up: no torque is enough") as stopped:
        simulate(body, constant_deck(), FromFunction(body.joint_names, law), duration=12.0)
    assert stopped.value.exit_code == 3
    assert stopped.value.partial.time.values[-1] == pytest.approx(kept)


def test_a_law_that_gives_up_at_once_is_bad_input() -> None:
    body = load_body("ship_stance")
    law = WholeBody(Plant(body), outline=body.contact_polygon(), least_force=1e5)
    with pytest.raises(ScenarioError, match=r"ship_stance: the controller cannot start: at 0\.000 s no torques"):
        simulate(body, constant_deck(), law, duration=1.0)
