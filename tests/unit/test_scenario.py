"""Scenario files: defaults, people, decks, controllers, seeds, and text that tells all."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from controllers import PD, PID, Delayed, Relaxed
from posture.body import load_body
from posture.deck import RecordedDeck, SineDeck
from posture.errors import PostureError, ScenarioError
from posture.laws import NAMES
from posture.results import join
from posture.scenario import Scenario, parse_scenario, read_scenario

DEMO = Path(__file__).parents[2] / "posture" / "demo.toml"


def scenario(text: str, **overrides: Any) -> Scenario:
    return parse_scenario(text, Path("here/trial.toml"), overrides=overrides)


def test_an_empty_file_is_a_person_on_a_level_deck_for_a_minute() -> None:
    empty = scenario("")
    assert (empty.title, empty.seed) == ("trial", 0)
    body, deck = empty.body(), empty.deck()
    assert body.name == "ship_stance"
    assert body.person == load_body("ship_stance").person
    assert body.locked == {}
    np.testing.assert_allclose(deck.sample(np.array([3.0])).specific_force, [[0, 0, 9.80665]])
    controller = empty.controller(body)
    assert isinstance(controller, PD)
    toppling = np.array(list(body.toppling_stiffness().values()))
    np.testing.assert_allclose(controller.stiffness, 4.0 * toppling)
    np.testing.assert_allclose(controller.damping, 0.04 * 4.0 * toppling)
    run = empty.run()
    assert (run.duration, run.step, run.every) == (60.0, 0.005, 4)


def test_the_demo_is_what_its_comments_say() -> None:
    demo = read_scenario(DEMO)
    assert demo.title == "Standing watch in a rough sea"
    run = demo.run()
    assert (run.duration, run.step, run.every) == (60.0, 0.005, 4)
    assert run.body.mass == pytest.approx(80.0)
    assert isinstance(run.deck, SineDeck)
    np.testing.assert_array_equal(run.deck.station, [12, 3, 5])


def test_overrides_replace_the_setting_and_stand_in_the_text() -> None:
    text = '# first\nbody = "ship_stance"   # which\nduration = 5.0\n  seed=3\n[deck]\nseed_of_nothing = 1\n'
    changed = scenario(text, seed=9, duration=2.5, body='/a "quoted"/b\\c.urdf')
    assert changed.seed == 9
    assert changed.settings["duration"] == 2.5
    assert changed.settings["body"] == '/a "quoted"/b\\c.urdf'
    assert changed.settings["deck"] == {"seed_of_nothing": 1}  # tables below are left alone
    assert "# first" in changed.text
    assert scenario(changed.text).settings == changed.settings
    assert scenario("", step=1e-3).settings == {"step": 1e-3}


def test_a_person_scales_the_body() -> None:
    body = scenario('[person]\nmass = 55.0\nheight = 1.6\nsex = "female"').body()
    assert body.mass == pytest.approx(55.0)
    assert body.person is not None
    assert body.person.height == 1.6
    assert body.center_of_mass()[2] < load_body("ship_stance").center_of_mass()[2]


def test_joints_are_locked_by_name_by_pattern_or_at_an_angle() -> None:
    assert scenario('locked = ["neck_*", "hip_z"]').body().locked == dict.fromkeys(
        ("neck_x", "neck_y", "neck_z", "hip_z"), 0.0
    )
    held = scenario("[locked]\nknee_y = 20.0\n").run()
    assert held.body.locked == {"knee_y": pytest.approx(math.radians(20))}
    assert held.start[held.body.joint_index("knee_y")] == pytest.approx(math.radians(20))


def test_a_constant_deck_is_tilted_in_degrees() -> None:
    deck = scenario('[deck]\ntype = "constant"\nroll_deg = 5.0\npitch_deg = -2.0').deck()
    np.testing.assert_allclose(np.degrees(deck.sample(np.zeros(1)).roll_pitch_yaw), [[5, -2, 0]], atol=1e-12)


def test_sines_are_read_in_degrees_and_metres() -> None:
    text = """[deck]
type = "sines"
station = [1.0, 2.0, 3.0]
roll = [{ amplitude_deg = 4.0, period = 8.0, phase_deg = 90.0 }]
heave = [{ amplitude = 1.5, period = 7.0, phase_deg = 0.0 }]
"""
    deck = scenario(text).deck()
    assert isinstance(deck, SineDeck)
    value = deck.motions(np.array([0.0, 6.0]))[0]
    assert value[0, 2] == pytest.approx(1.5)
    np.testing.assert_allclose(np.degrees(value[:, 3]), [0.0, 4.0], atol=1e-12)  # cos(90°), then 3/4 period later


def test_an_inertial_record_is_found_beside_the_scenario(tmp_path: Path) -> None:
    time = np.arange(500) / 50
    table = np.column_stack((time, 0.05 * np.sin(time), time * 0, time * 0, time * 0, time * 0, time * 0 + 9.8))
    header = "time_s,gyro_x_rad_s,gyro_y_rad_s,gyro_z_rad_s,accel_x_m_s2,accel_y_m_s2,accel_z_m_s2"
    np.savetxt(tmp_path / "record.csv", table, delimiter=",", header=header, comments="")
    text = 'duration = 5.0\n[deck]\ntype = "imu"\nfile = "record.csv"\ncutoff_hz = 3.0\n'
    (tmp_path / "trial.toml").write_text(text)
    deck = read_scenario(tmp_path / "trial.toml").deck()
    assert isinstance(deck, RecordedDeck)
    assert deck.sample(np.array([2.0])).angular_velocity[0, 0] == pytest.approx(0.05 * math.sin(2), abs=1e-4)
    with pytest.raises(ScenarioError, match=r"lasts 9\.98 s; shorten the run"):
        read_scenario(tmp_path / "trial.toml", overrides={"duration": 20.0}).run()


OPEN_PHASES = """[deck]
type = "sines"
roll = [{ amplitude_deg = 4.0, period = 8.0 }, { amplitude_deg = 1.0, period = 6.0, phase_deg = 10.0 }]
heave = [{ amplitude = 1.0, period = 7.0 }]
"""


def phases(text: str, seed: int) -> dict[str, list[float]]:
    deck = scenario(text, seed=seed).deck()
    assert isinstance(deck, SineDeck)
    return {name: [part.phase for part in parts] for name, parts in deck.components.items()}


def test_the_seed_draws_only_the_phases_that_are_left_open() -> None:
    one, same, other = phases(OPEN_PHASES, 1), phases(OPEN_PHASES, 1), phases(OPEN_PHASES, 2)
    assert one == same
    assert one["roll"][0] != other["roll"][0]
    assert one["heave"] != other["heave"]
    assert one["roll"][1] == other["roll"][1] == pytest.approx(math.radians(10))
    assert one["roll"][0] != one["heave"][0]


def test_fixing_one_phase_leaves_the_others_as_drawn() -> None:
    fixed = OPEN_PHASES.replace("period = 7.0", "period = 7.0, phase_deg = 0.0")
    assert phases(fixed, 5)["roll"] == phases(OPEN_PHASES, 5)["roll"]


def test_drawn_phases_cover_the_circle() -> None:
    drawn = np.array([phases(OPEN_PHASES, seed)["roll"][0] for seed in range(400)])
    assert drawn.min() >= 0
    assert drawn.max() < 2 * math.pi
    # Uniform: the mean of e^(i phase) over n draws has length about 1/√n = 0.05.
    assert abs(np.exp(1j * drawn).mean()) < 0.15


def test_single_joints_can_be_set_by_name() -> None:
    text = """[controller]
type = "pid"
stiffness_ratio = 5.0
damping_time = 0.02
integral_rate = 0.5
stiffness = { neck_x = 70.0 }
damping = { hip_y = 33.0 }
integral = { ankle_x = 4.0 }
reference_deg = { ankle_y = 2.0 }
gravity_compensation = true
"""
    trial = scenario(text)
    body = trial.body()
    controller = trial.controller(body)
    assert isinstance(controller, PID)
    at = body.joint_index
    toppling = body.toppling_stiffness()
    assert controller.stiffness[at("neck_x")] == 70.0
    assert controller.damping[at("neck_x")] == pytest.approx(0.02 * 70)  # damping follows the joint's own stiffness
    assert controller.integral[at("neck_x")] == pytest.approx(0.5 * 70)
    assert controller.stiffness[at("hip_y")] == pytest.approx(5 * toppling["hip_y"])
    assert controller.damping[at("hip_y")] == 33.0
    assert controller.integral[at("ankle_x")] == 4.0
    assert controller.reference[at("ankle_y")] == pytest.approx(math.radians(2))
    leaning = np.full(12, 0.1)
    np.testing.assert_allclose(
        controller.torque(0.0, leaning, np.zeros(12), np.zeros(12))
        - controller.stiffness * (controller.reference - leaning),
        body.gravity_torque(leaning),
    )


def test_a_relaxed_person_has_no_torque() -> None:
    trial = scenario('[controller]\ntype = "relaxed"')
    controller = trial.controller(trial.body())
    assert isinstance(controller, Relaxed)
    np.testing.assert_array_equal(controller.torque(0.0, np.ones(12), np.ones(12), np.zeros(0)), 0)


def test_the_text_a_result_keeps_makes_the_same_run() -> None:
    trial = scenario(
        'duration = 9.0\nlocked = ["neck_*"]\n' + OPEN_PHASES + "[controller]\nstiffness_ratio = 6.0\n",
        duration=0.2,
        seed=12,
    )
    first = join(list(trial.run().blocks()))
    again = join(list(scenario(first.attrs["scenario"]).run().blocks()))
    assert first.identical(again)
    assert float(first.time[-1]) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("duration = ", "not valid TOML"),
        ("durations = 3", "did you mean 'duration'"),
        ("duration = true", "duration is True"),
        ('duration = "5"', "duration is '5'"),
        ("duration = -1", "duration is -1"),
        ("duration = nan", "duration is nan"),
        ("step = 1.0", "step is 1"),
        ("seed = -1", "seed is -1"),
        ("seed = 1.5", "seed is 1.5"),
        ("title = 3", "title is 3"),
        ("body = 3", "body is 3"),
        ('body = "ship_stanse"', "did you mean 'ship_stance'"),
        ("deck = 3", r"it must be a table, \[deck\]"),
        ("[person]\nmass = 80.0", "lacks height, sex"),
        ('[person]\nmass = 80.0\nheight = 1.8\nsex = "male"\nage = 3', "'age'"),
        ("locked = 3", "list of joint names"),
        ('locked = ["elbow"]', "no joint is called 'elbow'"),
        ("[locked]\nknee_y = 400", "knee_y is 400"),
        ('[deck]\ntype = "sine"', "did you mean 'sines'"),
        ('[deck]\ntype = "imu"', "needs file"),
        ('[deck]\ntype = "constant"\nroll_deg = 80', "roll_deg is 80"),
        ('[deck]\ntype = "constant"\nroll = 1', "'roll'"),
        ('[deck]\ntype = "sines"\nroll = [{ amplitude = 0.1, period = 8.0 }]', "amplitude_deg"),
        ('[deck]\ntype = "sines"\nroll = [{ amplitude_deg = 1.0 }]', "lacks period"),
        ('[deck]\ntype = "sines"\nroll = 3', "must be a list"),
        ('[deck]\ntype = "sines"\nstation = [1, 2]', "three numbers"),
        ('[deck]\ntype = "sines"\nstation = [1, 2, "a"]', "station coordinate is 'a'"),
        ('[controller]\ntype = "lqg"', r"no controller type is called 'lqg'; did you mean 'lqr'"),
        ('[controller]\ntype = "lqr"\nstiffness_ratio = 3.0', r"no setting is called 'stiffness_ratio'"),
        (
            '[controller]\ntype = "lqr"\ndelay = 0.013',
            r"here/trial.toml: \[controller\] .*delay is 0.013 s.*whole number",
        ),
        (
            'body = "double_pendulum"\n[controller]\ntype = "mpc"',
            "mpc does not fit double_pendulum: it needs the outline",
        ),
        ("[controller]\nstiffness = 3", "must be a table"),
        ("[controller]\nstiffness = { ankel_x = 3.0 }", "did you mean 'ankle_x'"),
        ("[controller]\nstiffness = { ankle_x = -3.0 }", "stiffness of joint 'ankle_x' is -3"),
        ("[controller]\nintegral_rate = 1.0", "'integral_rate'"),
        ("[controller]\ngravity_compensation = 1", "write true or false"),
        ("[controller]\ndamping_time = 5.0", "too large for the damping of joint"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_that_names_the_file(text: str, words: str) -> None:
    with pytest.raises(PostureError, match=words) as refusal:
        scenario(text).run()
    message = str(refusal.value)
    assert "\n" not in message
    assert refusal.value.exit_code == 2


TILTED = """
body = "cip"
duration = 2.0
[deck]
type = "constant"
pitch_deg = 2.0
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_named_law_is_a_controller_type_and_starts_balanced(name: str) -> None:
    """A deck at rest asks nothing new of one who already stands balanced on it, so nothing moves.

    But for an integral that still grows, senses that are noisy, and two laws that have no balanced posture to be found
    (they switch on the way), so that the run starts upright.
    """
    trial = scenario(TILTED.replace("cip", "ankle_hip") + f'[controller]\ntype = "{name}"\n')
    run = simulate_all(trial)
    angles = run.joint_position.values
    restless = ("pid", "sensory", "intermittent", "ankle_hip")
    assert np.abs(angles - angles[0]).max() < (0.1 if name in restless else 1e-6)  # rad


def test_a_scenario_s_law_may_hear_of_everything_late() -> None:
    late = scenario(TILTED + '[controller]\ntype = "gravity_pd"\ndelay = 0.1\n')
    law = late.controller(late.body())
    assert isinstance(law, Delayed)
    assert law.steps == 20


def test_a_law_that_knows_the_deck_knows_the_scenario_s_own() -> None:
    rolling = (
        'body = "ankle_hip"\nduration = 3.0\n[deck]\ntype = "sines"\npitch = [{ amplitude_deg = 3.0, period = 5.0 }]\n'
    )
    swing = {}
    for name in ("lqr", "lqr_deck"):
        run = simulate_all(scenario(rolling + f'[controller]\ntype = "{name}"\n'))
        swing[name] = np.abs(run.joint_position.values).max()
    assert swing["lqr_deck"] < 1e-6 < 1e-3 < swing["lqr"]


def simulate_all(trial: Scenario) -> xr.Dataset:
    return join(list(trial.run().blocks()))


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such file"):
        read_scenario(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="cannot be read as text"):
        read_scenario(tmp_path / "binary.toml")
