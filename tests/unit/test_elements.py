"""Ligaments, muscles, rods and cables on any body: geometry, tensions, drift, snaps, energy, symbols, bad input."""

from itertools import product

import numpy as np
import pytest
import xarray as xr

from controllers import PD
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import Sine, SineDeck, constant_deck
from posture.elements import (
    STABILISATION,
    Cable,
    Elements,
    Ligament,
    Line,
    Muscle,
    Rod,
    complementary,
    read_elements,
)
from posture.engine.gradient import Differentiable
from posture.engine.machine import machine_for
from posture.engine.plan import Plan
from posture.errors import BodyError, ScenarioError
from posture.results import load, save
from posture.scenario import parse_scenario
from posture.simulate import Dynamics, Run, prepare, residual, simulate
from posture.systems.double_pendulum import TILTED, balance, tied_line

LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
HARNESS = {
    "name": "harness",
    "link_a": "deck",
    "point_a": (-0.6, 0.2, 1.4),
    "link_b": "trunk",
    "point_b": (-0.1, 0, 0.3),
}
ACROSS = {
    "name": "across",
    "link_a": "left_shank",
    "point_a": (0.1, 0, 0.2),
    "link_b": "head",
    "point_b": (0, 0.1, 0.1),
}


@pytest.fixture(scope="module")
def person() -> Body:
    return load_body("ship_stance")


@pytest.fixture(scope="module")
def pendulum() -> Body:
    return load_body("double_pendulum+biped_inertia")


def stiff(body: Body) -> PD:
    stiffness = {name: 8 * value for name, value in body.toppling_stiffness().items()}
    return PD(body.joint_names, stiffness=stiffness, damping={name: 0.03 * value for name, value in stiffness.items()})


def full(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def test_rows_rates_and_bias_are_derivatives_of_the_length(person: Body):
    elements = Elements(person, [Rod(**HARNESS), Rod(**ACROSS)])
    generator, h = np.random.default_rng(1), 1e-5
    for _ in range(5):
        q, v, a = generator.uniform(-0.5, 0.5, 12), generator.normal(0, 1, 12), generator.normal(0, 3, 12)
        at = elements.geometry(q, v)
        steps = np.eye(12) * h
        rows = [(elements.geometry(q + s, v).length - elements.geometry(q - s, v).length) / (2 * h) for s in steps]
        np.testing.assert_allclose(at.row, np.array(rows).T, atol=1e-9)
        np.testing.assert_allclose(at.rate, at.row @ v, atol=1e-13)

        def length(t: float, q: np.ndarray = q, v: np.ndarray = v, a: np.ndarray = a) -> np.ndarray:
            return elements.geometry(q + t * v + t**2 / 2 * a, v).length

        second = (length(1e-4) - 2 * length(0) + length(-1e-4)) / 1e-8
        np.testing.assert_allclose(at.row @ a + at.bias, second, atol=1e-5)  # rounding 1e-16 / 1e-8, h² l''''


def test_rod_acceleration_obeys_constraint_and_equations_of_motion(person: Body):
    lines = [Rod(**HARNESS, length=1.0), Rod(**ACROSS, length=1.2)]
    dynamics, bare = Dynamics(person, lines), Dynamics(person)
    generator = np.random.default_rng(2)
    for _ in range(5):
        q, v, u = generator.uniform(-0.3, 0.3, 12), generator.normal(0, 1, 12), generator.normal(0, 30, 12)
        channels = np.r_[generator.normal(0, 0.3, 6), generator.normal(0, 1, 2), 9.8]
        a = dynamics.acceleration(q, v, u, channels)
        at = dynamics.elements.geometry(q, v)
        demand = -2 * STABILISATION * at.rate - STABILISATION**2 * (at.length - [1.0, 1.2])
        np.testing.assert_allclose(at.row @ a + at.bias, demand, atol=1e-9)
        free = bare.acceleration(q, v, u, channels)
        pulled = full(bare.inertia(q)) @ (a - free)
        np.testing.assert_allclose(pulled, -at.row.T @ dynamics.tension, atol=1e-8)
        # Inverse dynamics with the lines' forces on the links must give the controller's torques back.
        np.testing.assert_allclose(dynamics.reactions(q, v, a, channels)[6:], u, atol=1e-8)


def test_locked_joints_stay_locked_and_their_moment_counts_the_line(person: Body):
    held = person.lock(["knee_*", "neck_*"])
    run = simulate(held, constant_deck(), stiff(held), duration=0.2, elements=[Rod(**ACROSS)])
    assert np.ptp(run["joint_position"].sel(joint="knee_y").values) == 0
    assert np.ptp(run["element_length"].values) < 1e-12


@pytest.mark.parametrize("line", [Rod(**HARNESS), Ligament(**HARNESS, stiffness=900, damping=20, rest_length=0.5)])
def test_newtons_law_for_the_whole_person_holds_with_a_line_to_the_deck(person: Body, line: Line):
    deck = SineDeck({"roll": [Sine(0.06, 5, 0.3)], "surge": [Sine(0.2, 4, 1)]}, station=(2, 1, 1))
    run = simulate(person, deck, stiff(person), duration=1, step=0.0025, output_step=0.0025, elements=[line])
    assert run["element_tension"].values.max() > 1
    # Central differences of the recorded path: h² c''''/12, a few 1e-4 g here; without the line's force 0.01 and more.
    assert residual(run) < 1e-3
    assert residual(run.drop_vars("force_elements_on_person")) > 5e-3


def test_rod_does_not_drift_in_a_long_run_on_a_moving_deck(pendulum: Body):
    deck = SineDeck({"surge": [Sine(0.1, 1.1, 0.0)], "roll": [Sine(0.1, 1.7, 0.4)]})
    run = simulate(
        pendulum,
        deck,
        balance(pendulum, gravity=9.80665),
        duration=10,
        start_position=TILTED,
        elements=[Rod(**tied_line(pendulum))],
    )
    assert np.ptp(run["joint_position"].values) > 0.1
    assert np.ptp(run["element_length"].values) < 1e-11


@pytest.mark.slow
def test_stiff_springs_approach_the_rod_with_first_order(pendulum: Body):
    ends, law, deck = tied_line(pendulum), balance(pendulum), constant_deck(gravity=10.0)
    settings = {"duration": 0.4, "step": 0.0005, "output_step": 0.01, "start_position": TILTED}
    rod = simulate(pendulum, deck, law, elements=[Rod(**ends)], **settings)
    errors, springs = [], (1e4, 3e4, 1e5)
    for k in springs:
        line = Ligament(
            **ends, stiffness=k, damping=0.02 * k, rest_length=float(rod["element_length"][0, 0]), slack=False
        )
        soft = simulate(pendulum, deck, law, elements=[line], **settings)
        errors.append(np.abs(soft["joint_position"].values - rod["joint_position"].values).max())
    assert np.polyfit(np.log(springs), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.05)


def snapping(body: Body, restitution: float, step: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    """A pendulum on undamped springs with a loose cable: energy not accounted for, energy lost, lengths, tensions."""
    run = simulate(
        body,
        constant_deck(gravity=10.0),
        PD(body.joint_names, stiffness=90.0, damping=0.0),
        duration=0.4,
        step=step,
        output_step=0.02,
        start_position=TILTED,
        elements=[Cable(**tied_line(body), length=0.62, restitution=restitution)],
    )
    dynamics, q, v = Dynamics(body), run["joint_position"].values, run["joint_velocity"].values
    energy = body.mass * 10 * run["position_com_in_deck"].values[:, 2] + 45 * np.sum(q**2, axis=1)
    energy += [w @ full(dynamics.inertia(p)) @ w / 2 for p, w in zip(q, v, strict=True)]
    lost = run["element_impact_energy"].values.sum(axis=1)
    missing = float(np.abs(energy + np.cumsum(lost) - energy[0]).max())
    return missing, float(lost.sum()), run["element_length"].values[:, 0], run["element_tension"].values[:, 0]


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_cable_goes_slack_and_taut_with_all_energy_accounted_for(pendulum: Body, restitution: float):
    coarse, fine = (snapping(pendulum, restitution, step) for step in (0.004, 0.002))
    assert fine[0] < 0.02  # of 90 J
    assert fine[0] < coarse[0] / 8  # and that is the integrator's: it falls like RK4's error, not like a missed event's
    _, lost, length, tension = fine
    assert length.max() <= 0.62 + 1e-11
    assert length.min() < 0.619
    assert (tension >= 0).all()
    if restitution == 1:
        assert abs(lost) < 1e-9
    else:
        assert lost > 1
        assert ((tension > 0) & (length > 0.62 - 1e-9)).any()
        assert (tension[length < 0.62 - 1e-6] == 0).all()


def test_harness_catches_a_person_without_control(person: Body):
    """A stiff body falls backwards between two cables until the fore one holds its weight."""
    held = person.lock([name for name in person.joint_names if name != "ankle_y"])
    loose = dict.fromkeys(person.joint_names, 0.0)
    forward = HARNESS | {"name": "fore", "point_a": (0.8, 0.0, 1.4), "point_b": (0.1, 0, 0.3)}
    run = simulate(
        held,
        constant_deck(),
        PD(person.joint_names, stiffness=loose, damping=loose),
        duration=1.5,
        start_velocity=np.eye(12)[1] * -0.4,
        elements=[Cable(**HARNESS, length=0.75), Cable(**forward, length=0.80)],
    )
    angle = run["joint_position"].sel(joint="ankle_y").values
    assert angle[-1] == pytest.approx(angle[-5], abs=1e-9)  # hangs still in the fore cable
    tension = run["element_tension"].values[-1]
    assert tension[0] == 0
    # Moment balance about the ankle: m g x = T × lever, from the row of the cable.
    row = Elements(held, [Cable(**forward, length=0.8)]).geometry(run["joint_position"].values[-1], np.zeros(12)).row[0]
    weight = -person.gravity_torque(run["joint_position"].values[-1])[1]
    assert tension[1] * row[1] == pytest.approx(weight, rel=1e-6)


def test_complementarity_against_trying_all_combinations():
    generator = np.random.default_rng(3)
    for _ in range(30):
        root = generator.normal(size=(5, 7))
        matrix, demand = root @ root.T, generator.normal(size=5)
        one_sided = np.array([False, True, True, True, True])
        found = complementary(matrix, demand, one_sided)
        good = []
        for chosen in product([False, True], repeat=4):
            active = np.array([True, *chosen])
            trial = np.zeros(5)
            trial[active] = np.linalg.solve(matrix[np.ix_(active, active)], demand[active])
            if (trial[1:] >= 0).all() and (matrix @ trial - demand)[1:].min() > -1e-9:
                good.append(trial)
        assert len(good) == 1
        np.testing.assert_allclose(found, good[0], atol=1e-9)


def test_ligament_laws():
    spring = Ligament(**HARNESS, stiffness=100, damping=5, rest_length=0.5)
    assert spring.tension(0.6, 0.2, 0.0) == pytest.approx(11.0)
    assert spring.tension(0.4, 3.0, 0.0) == 0
    assert spring.tension(0.51, -3.0, 0.0) == 0  # a ligament does not push, however fast it is let go
    both_ways = Ligament(**HARNESS, stiffness=100, damping=5, rest_length=0.5, slack=False)
    assert both_ways.tension(0.4, 0.0, 0.0) == pytest.approx(-10.0)


def test_muscle_laws():
    muscle = Muscle(
        **HARNESS, max_force=800, optimal_length=0.3, max_velocity=3.0, activation=((0.0, 0.0), (1.0, 0.5), (2.0, 0.5))
    )
    assert muscle.tension(0.3, 0.0, 0.5) == pytest.approx(200)
    assert muscle.tension(0.3, 0.0, 9.0) == pytest.approx(400)
    assert muscle.tension(0.3, -3.0, 9.0) == 0
    assert muscle.tension(0.3, -1.5, 9.0) == pytest.approx(400 * 0.5 / 3)  # Hill: (1 - r) / (1 + 4 r)
    assert 400 < muscle.tension(0.3, 3.0, 9.0) <= 400 * 1.56
    assert muscle.tension(0.3 * 1.45, 0.0, 9.0) == pytest.approx(400 / np.e)
    slope = [(muscle.tension(0.3, rate, 9.0) - 400) / rate for rate in (-1e-6, 1e-6)]
    assert slope[0] == pytest.approx(slope[1], rel=1e-4)


def test_muscle_pulls_the_joint_it_spans(pendulum: Body):
    muscle = Muscle(
        name="front", link_a="body_1", point_a=(0.05, 0, 0.3), link_b="body_2", point_b=(0.05, 0, 0.1),
        max_force=200, optimal_length=0.3, max_velocity=2.0, activation=((0.0, 1.0),),
    )  # fmt: skip
    run = simulate(pendulum, constant_deck(), balance(pendulum), duration=0.2, elements=[muscle])
    assert run["joint_position"].sel(joint="middle_y").values[-1] > 0.02  # towards the side it lies on: x forward


# ---------------------------------------------------------------- compiled engine


def everything(body: Body) -> list[Line]:
    """One of each kind, the cable bouncing, between links and to the platform."""
    ends = tied_line(body)
    other = ends | {"name": "other", "point_a": (-0.05, 0.02, 0.2), "point_b": (0.03, 0.04, 0.1)}
    third = ends | {"name": "third", "link_a": "platform", "point_a": (0.3, 0.2, 0.1)}
    return [
        Cable(**ends, length=0.62, restitution=0.5),
        Ligament(**other, stiffness=500, damping=10, rest_length=0.3),
        Muscle(**third, max_force=90, optimal_length=0.5, max_velocity=2, activation=((0.0, 0.1), (1.0, 0.9))),
        Rod(**third | {"name": "fourth", "link_b": "body_1"}),
    ]


MOVING = SineDeck({"surge": [Sine(0.1, 1.1, 0.0)], "roll": [Sine(0.1, 1.7, 0.4)]})


def swinging(body: Body, lines: list[Line], **settings: object) -> xr.Dataset:
    law = PD(body.joint_names, stiffness=90.0, damping=2.0)
    usual = {"duration": 0.4, "step": 0.002, "output_step": 0.01, "start_position": TILTED}
    return simulate(body, MOVING, law, elements=lines, **usual | settings)


def largest_difference(one: xr.Dataset, other: xr.Dataset) -> float:
    """Over all variables, each relative to its largest value."""
    assert set(one.data_vars) == set(other.data_vars)
    return max(
        float(np.nanmax(np.abs(one[name].values - other[name].values)) / np.nanmax(np.abs(other[name].values)))
        for name in other.data_vars
        if other[name].size and np.nanmax(np.abs(other[name].values)) > 0
    )


# Rounding of 1e-16 in some 500 steps of an undamped-looking swing; a wrong sign or a missed event is of order 1.
AGREES = 1e-9


@pytest.fixture(scope="module")
def reference(pendulum: Body) -> xr.Dataset:
    return swinging(pendulum, everything(pendulum), engine="reference")


@pytest.mark.parametrize("engine", ["compiled", "vm"])
def test_all_kinds_at_once_agree_with_the_reference(pendulum: Body, reference: xr.Dataset, engine: str):
    ours = swinging(pendulum, everything(pendulum), engine=engine)
    assert ours.attrs["engine"] == engine
    snaps = reference["element_impulse"].values[:, 0] > 0
    assert snaps.sum() >= 3  # the cable goes taut, bounces, and hangs slack in between
    assert (reference["element_tension"].values[:, 0] == 0).any()
    assert np.abs(reference["element_tension"].values[:, 1:]).max(axis=0).min() > 2
    assert largest_difference(ours, reference) < AGREES
    assert np.ptp(ours["element_length"].values[:, 3]) < 1e-12


@pytest.mark.parametrize("kind", [Rod, Cable])
def test_elements_of_person_harness_and_locked_joints_agree_in_the_interpreter(person: Body, kind: type[Line]):
    """To a massless link inside a ball joint, over locked joints, with their holding moments."""
    held = person.lock({"knee_y": 0.2, "knee_x": 0.0, "knee_z": 0.0, "neck_y": 0.1})
    lines = [
        kind(**HARNESS),
        Ligament(**ACROSS, stiffness=300, damping=5, rest_length=0.8),
        Rod(name="inside", link_a="deck", point_a=(0.2, 0.1, 0.3), link_b="hip_x_frame", point_b=(0.05, 0, 0)),
    ]
    start = np.zeros(12)
    runs = [
        simulate(held, MOVING, stiff(person), duration=0.3, start_position=start, elements=lines, engine=engine)
        for engine in ("vm", "reference")
    ]
    assert np.abs(runs[1]["joint_constraint_moment"].values).max() > 1
    assert np.abs(runs[1]["element_tension"].values[-1]).min() > 0.1
    assert largest_difference(*runs) < AGREES


def test_the_rod_of_a_long_compiled_run_does_not_drift(pendulum: Body):
    run = swinging(pendulum, everything(pendulum), duration=5.0, engine="compiled")
    assert np.ptp(run["element_length"].values[:, 3]) < 1e-12
    assert run["element_length"].values[:, 0].max() < 0.62 + 1e-9


def test_a_cable_of_the_length_at_the_start_is_no_reason_for_a_tiny_step(pendulum: Body):
    line = Cable(**tied_line(pendulum))  # at the corner between slack and taut
    law = PD(pendulum.joint_names, stiffness=90.0, damping=2.0)
    prepare(pendulum, MOVING, law, duration=0.1, step=0.002, output_step=0.02, start_position=TILTED, elements=[line])


def test_auto_compiles_runs_with_elements_where_it_pays(pendulum: Body):
    law = PD(pendulum.joint_names, stiffness=90.0, damping=2.0)
    settings = {"start_position": TILTED, "elements": everything(pendulum), "step": 0.002, "output_step": 0.01}
    kinds = [
        type(prepare(pendulum, MOVING, law, duration=duration, **settings).stepper()).__name__
        for duration in (0.1, 4.0)
    ]
    assert kinds == ["Reference", "Stepper"]


def test_gradient_to_a_ligament_is_that_of_differences_of_the_reference(pendulum: Body):
    def run(stiffness: float) -> Run:
        line = Ligament(**tied_line(pendulum), stiffness=stiffness, damping=5.0, rest_length=0.55)
        law = PD(pendulum.joint_names, stiffness=90.0, damping=2.0)
        settings = {"duration": 0.2, "step": 0.002, "output_step": 0.02, "start_position": TILTED, "elements": [line]}
        return prepare(pendulum, MOVING, law, **settings)

    def positions(stiffness: float) -> np.ndarray:
        return np.vstack([block["joint_position"].values for block in run(stiffness).blocks()])[1:]

    slope = Differentiable(run(400.0), engine="vm").jacobian(["cable.stiffness"])[:, :6, 0]
    expected = (positions(400.4) - positions(399.6)) / 0.8
    np.testing.assert_allclose(slope, expected, atol=1e-5 * np.abs(expected).max())


def test_gradients_that_rods_and_cables_do_not_have_are_refused(pendulum: Body):
    law = PD(pendulum.joint_names, stiffness=90.0, damping=2.0)
    settings = {"duration": 0.1, "start_position": TILTED, "step": 0.002, "output_step": 0.02}
    with pytest.raises(ScenarioError, match="use ligaments instead"):
        Differentiable(prepare(pendulum, MOVING, law, elements=[Cable(**tied_line(pendulum))], **settings), engine="vm")
    rod = Differentiable(prepare(pendulum, MOVING, law, elements=[Rod(**tied_line(pendulum))], **settings), engine="vm")
    with pytest.raises(ScenarioError, match="use jacobian"):
        rod.pullback(np.zeros((5, 12)))


HARNESSED = """
body = "double_pendulum+biped_inertia"
duration = 0.6
step = 0.002
output_step = 0.02
[controller]
stiffness_ratio = 1.2
[deck]
type = "sines"
surge = [{ amplitude = 0.3, period = 1.5 }]
[[element]]
type = "%s"
name = "harness"
from = { link = "platform", point = [-0.3, 0.0, 0.6] }
to = { link = "body_2", point = [0.0, 0.0, 0.3] }
%s
"""


@pytest.mark.parametrize(
    ("kind", "law", "engine"),
    [
        ("ligament", "stiffness = 400.0\nrest_length = 0.3", "vm"),
        ("cable", "length = 0.362", "vm"),
        ("rod", "", "compiled"),
    ],
)
def test_an_ensemble_has_the_elements_of_its_scenario(tmp_path, kind: str, law: str, engine: str):
    scenario = parse_scenario(HARNESSED % (kind, law), tmp_path / "s.toml")
    plan = Plan(scenario, 3, {}, 5, signals=("com_x", "cop_x"))
    machine = machine_for(plan.program, engine)
    batch, _ = plan.batch(range(3))
    states, outputs = machine.trajectories(batch)
    joints, pulls = plan.program.joints, []
    for run in range(3):
        single = list(plan.settings_of(run)[0].run("reference").blocks())
        expected = np.vstack([block["joint_position"].values for block in single])
        np.testing.assert_allclose(states[run, :, :joints], expected, atol=1e-9)
        tension = np.concatenate([block["element_tension"].values[:, 0] for block in single])
        pulls.append(np.abs(tension).max())
        np.testing.assert_allclose(outputs[run, :, 2 * joints + 9], tension, atol=1e-6 * np.abs(tension).max())
    assert max(pulls) > 5
    found = plan.statistics()
    machine.gather(batch, found)
    expected = np.concatenate([block["position_cop_on_deck"].values[:, 0] for block in single])
    np.testing.assert_allclose(found.moments[2, :, 1], (outputs[2, :, 2 * joints + 6].mean(), expected.mean()))


def test_a_run_of_an_ensemble_whose_rod_cannot_be_is_named(tmp_path):
    text = HARNESSED % ("rod", "length = 0.9")
    with pytest.raises(ScenarioError, match=r"is a rod of 0\.9 m, but at the start"):
        Plan(parse_scenario(text, tmp_path / "s.toml"), 2, {}, 5).batch(range(2))


# ---------------------------------------------------------------- scenarios, files, bad input

SCENARIO = """
body = "ship_stance"
duration = 0.2
[[element]]
type = "cable"
name = "harness"
from = { link = "deck", point = [-0.6, 0.2, 1.4] }
to = { link = "trunk", point = [-0.1, 0.0, 0.3] }
length = 0.9
[[element]]
type = "muscle"
from = { link = "shank", point = [-0.05, 0.0, 0.1] }
to = { link = "thigh", point = [-0.05, 0.0, 0.2] }
max_force = 500.0
optimal_length = 0.45
max_velocity = 3.0
activation = [[0.0, 0.0], [0.1, 0.3]]
"""


def test_elements_from_a_scenario_reach_the_result_file(tmp_path):
    run = parse_scenario(SCENARIO, tmp_path / "s.toml").run()
    blocks = list(run.blocks())
    assert list(blocks[0]["element"].values) == ["harness", "element_2"]
    assert blocks[-1]["element_tension"].values[-1, 1] > 50
    save(blocks[-1], tmp_path / "run.nc")
    again = load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again["element_length"].values, blocks[-1]["element_length"].values)
    assert again["element_tension"].attrs["units"] == "N"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type = "cable"', 'type = "rope"', "no element type is called 'rope'"),
        ("length = 0.9", "lenght = 0.9", "did you mean 'length'"),
        ("length = 0.9", "length = -0.9", "must be a number from 0.0001 to 100 m"),
        ("length = 0.9", "length = 0.2", "make it longer or start nearer"),
        ('link = "trunk"', 'link = "trnk"', "did you mean 'trunk'"),
        ("point = [-0.1, 0.0, 0.3]", "point = [-0.1, 0.3]", "write to = "),
        ("max_force = 500.0", "", "lacks 'max_force'"),
        ("[[0.0, 0.0], [0.1, 0.3]]", "[[0.2, 0.0], [0.1, 0.3]]", "rising times"),
        ("[[0.0, 0.0], [0.1, 0.3]]", "1.5", "values from 0 to 1"),
        ("[[0.0, 0.0], [0.1, 0.3]]", '"half"', "activation must be"),
        ('name = "harness"', 'name = "element_2"', "named twice"),
        ("length = 0.9", "restitution = 2.0", "restitution is 2"),
    ],
)
def test_bad_elements_get_one_sentence(tmp_path, old: str, new: str, message: str):
    assert old in SCENARIO
    with pytest.raises((ScenarioError, BodyError), match=message) as caught:
        parse_scenario(SCENARIO.replace(old, new, 1), tmp_path / "s.toml").run()
    assert "\n" not in str(caught.value)


def test_rods_that_cannot_be_are_refused(person: Body):
    def start(*lines: Line, **settings: object) -> None:
        simulate(person, constant_deck(), stiff(person), duration=0.1, elements=lines, **settings)

    with pytest.raises(ScenarioError, match=r"is a rod of 0\.8 m, but at the start"):
        start(Rod(**HARNESS, length=0.8))
    with pytest.raises(ScenarioError, match="start velocity that keeps it"):
        start(Rod(**HARNESS), start_velocity=np.full(12, 0.5))
    with pytest.raises(ScenarioError, match="repeats another"):
        start(Rod(**HARNESS), Rod(**HARNESS | {"name": "twin"}))
    with pytest.raises(ScenarioError, match="changes nothing"):
        start(Rod(**HARNESS | {"link_b": "deck"}))
    with pytest.raises(ScenarioError, match="same place"):
        start(Ligament(**HARNESS | {"link_b": "deck", "point_b": HARNESS["point_a"]}, stiffness=1, rest_length=1))
    with pytest.raises(ScenarioError, match="too large for the elements 'harness'"):
        start(Ligament(**HARNESS, stiffness=1e6, damping=2e5, rest_length=0.5))


def test_a_cable_without_lever_changes_nothing(pendulum: Body):
    """From the platform's origin to a point of body 1: its length cannot change."""
    line = Cable(name="idle", link_a="platform", point_a=(0, 0, 0), link_b="body_1", point_b=(0, 0, 0.3))
    law = balance(pendulum, gravity=STANDARD_GRAVITY)
    with_it, without = (
        simulate(pendulum, constant_deck(), law, duration=0.1, start_position=TILTED, elements=lines)
        for lines in ([line], [])
    )
    np.testing.assert_allclose(with_it["joint_position"].values, without["joint_position"].values, atol=1e-14)


def test_elements_tables_must_be_tables():
    with pytest.raises(ScenarioError, match=r"\[\[element\]\]"):
        read_elements({"type": "rod"}, "s.toml")
