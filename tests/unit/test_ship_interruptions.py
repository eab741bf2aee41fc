"""Interruptions: Graham against a simulated stiff person, formula against counting, causes, rails, stances."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from controllers import PD
from posture.body import Body, load_body
from posture.deck import Sine, SineDeck, constant_deck, deck_samples
from posture.errors import BodyError, ResultError
from posture.ship.hull import Hull
from posture.ship.interruptions import (
    Interruptions,
    Rail,
    RigidPerson,
    clumping,
    count_events,
    count_rigid,
    count_run,
    crossing_rates,
    disagreement,
    margin_distribution,
    poisson_interval,
    worst_clip,
)
from posture.ship.motion import SeaDeck
from posture.ship.response import Response
from posture.ship.sea import bretschneider
from posture.ship.stance import Stance
from posture.simulate import simulate

G = 9.80665


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("ship_stance")


def stiff_run(body: Body, deck: SineDeck, duration: float = 12.0) -> xr.Dataset:
    held = body.lock(["*"])
    idle = PD(body.joint_names, stiffness={}, damping={})
    return simulate(held, deck, idle, duration=duration, output_step=0.05, step=0.05)


def no_yaw(scale: float) -> SineDeck:
    return SineDeck(
        {
            "sway": [Sine(scale * 3.0, 7.1, 0.3)],
            "surge": [Sine(scale * 2.0, 8.3, 1.0)],
            "heave": [Sine(scale * 4.0, 6.0, 2.0)],
            "roll": [Sine(scale * 0.5, 9.0, 0.7)],
            "pitch": [Sine(scale * 0.3, 6.5, 0.1)],
        },
        station=(5.0, 2.0, 4.0),
    )


def graham(deck: SineDeck, person: RigidPerson, time: np.ndarray) -> np.ndarray:
    """Graham's linear form, written out: where the stiff person's weight comes down, with y'' at the deck."""
    value, _, acceleration = deck.motions(time)
    x, y, z = deck.station
    roll, pitch, _ = value[:, 3:].T
    a_roll, a_pitch, a_yaw = acceleration[:, 3:].T
    ax = acceleration[:, 0] + z * a_pitch - y * a_yaw
    ay = acceleration[:, 1] + x * a_yaw - z * a_roll
    az = acceleration[:, 2] + y * a_roll - x * a_pitch
    lateral, fore_aft = person.levers
    across = person.height * (lateral * a_roll - ay - G * roll) / (G + az)
    along = -person.height * (fore_aft * a_pitch + ax - G * pitch) / (G + az)
    return np.column_stack((along, across))


def test_graham_and_a_simulated_stiff_person_agree_to_second_order(body: Body) -> None:
    # Both see the same first-order motion; what differs are products of small quantities, so the difference of the
    # centres of pressure falls with the square of the amplitude.
    person = RigidPerson.of(body)
    scales = np.array([0.01, 0.02, 0.04, 0.08])
    gaps = []
    for scale in scales:
        deck = no_yaw(scale)
        run = stiff_run(body, deck)
        pressure = run["position_cop_on_deck"].values - [body.center_of_mass()[0], 0]
        gaps.append(np.abs(pressure - graham(deck, person, run.time.values)).max(axis=0))
    slopes = [np.polyfit(np.log(scales), np.log(column), 1)[0] for column in np.array(gaps).T]
    np.testing.assert_allclose(slopes, 2.0, atol=0.1)


@pytest.mark.parametrize("wrong", ["height", "gyration_lateral"])
def test_a_wrong_stiff_person_does_not_agree_to_second_order(body: Body, wrong: str) -> None:
    right = RigidPerson.of(body)
    person = replace(right, **{wrong: 1.1 * getattr(right, wrong)})
    gaps = []
    for scale in (1e-4, 4e-4):
        run = stiff_run(body, no_yaw(scale))
        across = graham(no_yaw(scale), person, run.time.values)[:, 1]
        gaps.append(np.abs(run["position_cop_on_deck"].values[:, 1] - across).max())
    assert math.log(gaps[1] / gaps[0]) / math.log(4) < 1.3


def test_pressure_from_nine_channels_keeps_its_precision_at_large_roll(body: Body) -> None:
    # With the felt acceleration instead of small angles, what is left are products of angular rates.
    deck, person = no_yaw(0.5), RigidPerson.of(body)  # 14° of roll
    run = stiff_run(body, deck)
    exact = run["position_cop_on_deck"].values - [body.center_of_mass()[0], 0]
    nine = person.pressure(deck.sample(run.time.values))
    linear = graham(deck, person, run.time.values)
    assert np.abs(nine[:, 1] - exact[:, 1]).max() < 0.4 * np.abs(linear[:, 1] - exact[:, 1]).max()


def test_the_disagreement_with_graham_is_reported(body: Body) -> None:
    gaps = []
    for scale in (0.25, 0.5):  # 7° and 14° of roll
        found = disagreement(stiff_run(body, no_yaw(scale)))
        gaps.append(found["rigid_person_cop_difference_max_mm"])
    # Graham's condition on felt accelerations misses products of angular rates only: some mm at 14°.
    assert 4 < gaps[1] / gaps[0] < 20
    assert 0.5 < gaps[1] < 5
    assert found["rigid_person_interruptions"] > 0
    # A person who sways is another matter, however small the motion: the first-order difference stays.
    stiffness = {name: 8 * value for name, value in body.toppling_stiffness().items()}
    soft = PD(body.joint_names, stiffness=stiffness, damping={name: 0.03 * value for name, value in stiffness.items()})
    swaying = disagreement(simulate(body, no_yaw(0.02), soft, duration=6))
    assert swaying["rigid_person_cop_difference_max_mm"] > 5


def test_static_tilt_tips_and_slides_where_geometry_says() -> None:
    time = np.arange(0, 20, 0.1)
    person = RigidPerson(height=1.0, half_width=0.25, half_length=0.2, friction=0.7)
    for roll, cause in ((14.0, None), (14.1, "tip")):  # tan 14.04° = 0.25
        found = count_rigid(constant_deck(roll=math.radians(roll)).sample(time), person)
        assert found.cause == ((cause,) if cause else ())
    wide = RigidPerson(height=1.0, half_width=1.5, half_length=0.2, friction=0.7)
    for roll, cause in ((34.9, None), (35.1, "slide")):  # tan 34.99° = 0.7
        assert count_rigid(constant_deck(roll=math.radians(roll)).sample(time), wide).cause == (
            (cause,) if cause else ()
        )
    for pitch, tips in ((11.2, 0), (11.4, 1)):  # tan 11.31° = 0.2
        assert len(count_rigid(constant_deck(pitch=math.radians(pitch)).sample(time), person).time) == tips


@pytest.mark.slow
def test_the_level_crossing_formula_meets_counting_over_twenty_hours() -> None:
    hull, station, person = Hull(120, 15, 4.8, 1.2, roll_radius=5.6), (20.0, 0.0, 8.0), RigidPerson()
    period, heading, speed = 9.7, math.pi / 2, 5.0
    unit = SeaDeck(
        hull,
        bretschneider(height=2, peak_period=period),
        heading=heading,
        speed=speed,
        station=station,
        seed=1,
        waves=2000,  # the roll resonance then holds some hundred waves, enough to be Gaussian
    )
    scales = (1.5, 1.8, 2.2)  # of 2 m: roll of 2.9, 3.5 and 4.3° RMS
    counts = dict.fromkeys(scales, 0)
    for hour in range(20):
        time = hour * 3600 + np.arange(36000) * 0.1
        value, rate, acceleration = (part[:, 1:] for part in unit.signals(time))
        for scale in scales:  # the ship is linear: a higher sea is the same motion, larger
            deck = deck_samples(time, scale * value, scale * rate, scale * acceleration, station=unit.station)
            counts[scale] += len(count_rigid(deck, person).time)
    for scale in scales:
        sea = bretschneider(height=2 * scale, peak_period=period)
        rates = crossing_rates(Response(hull, sea, heading=heading, speed=speed, station=station), person)
        assert counts[scale] > 800  # chance alone is then below 3.5 %
        assert counts[scale] / 1200 == pytest.approx(rates["tip_lateral"], rel=0.05)


@pytest.mark.parametrize("degrees", [60, 150])
def test_each_way_of_the_formula_is_rices_for_the_stiff_persons_own_wrench(degrees: int) -> None:
    # Far forward, where vertical accelerations count as much as the others.
    hull, station, speed = Hull(100, 14, 5, 1.2, roll_radius=5), (45.0, 3.0, 6.0), 6.0
    sea, heading = bretschneider(height=2, peak_period=9.0), math.radians(degrees)
    person = RigidPerson(half_width=0.16, half_length=0.14, friction=0.18)
    step = 0.2
    deck = SeaDeck(hull, sea, heading=heading, speed=speed, station=station, seed=2)
    felt = deck.sample(np.arange(0, 4 * 3600, step))
    # Newton and Euler of a rod on the deck: force at its centre h up, moment about the feet, for one kg.
    up = np.array([0, 0, person.height])
    force = felt.specific_force + np.cross(felt.angular_acceleration, up)
    moment = person.height**2 / 3 * felt.angular_acceleration + np.cross(up, force)
    limits = {
        "tip_lateral": (moment[:, 0] / person.height, person.half_width / person.height),
        "tip_fore_aft": (moment[:, 1] / person.height, person.half_length / person.height),
        "slide_lateral": (force[:, 1], person.friction),
        "slide_fore_aft": (force[:, 0], person.friction),
    }
    rates = crossing_rates(Response(hull, sea, heading=heading, speed=speed, station=station), person)
    for way, (signal, ratio) in limits.items():
        expected, exponent = 0.0, math.inf
        for side in (1, -1):
            excess = side * signal - ratio * (force[:, 2] - G)
            spread, rate = excess.std(), np.gradient(excess, step).std()
            exponent = min(exponent, 0.5 * (ratio * G / spread) ** 2)
            expected += 60 * rate / spread / (2 * math.pi) * math.exp(-0.5 * (ratio * G / spread) ** 2)
        # Exponents differ as variances do: chance of four hours 2 %, and products of angles, a quarter at half the
        # sea's height (8 % along the deck at 4 m, 3 % here); frequencies of crossing to 5 %.
        assert math.log(rates[way]) == pytest.approx(math.log(expected), abs=0.05 + 0.05 * exponent)


def test_the_formula_turns_with_the_person() -> None:
    hull, sea = Hull(120, 15, 4.8, 1.2), bretschneider(height=4, peak_period=9.7)
    person = RigidPerson(half_width=0.2, half_length=0.2)  # a round base: only the axes change
    ahead, aside = (
        crossing_rates(Response(hull, sea, heading=math.pi / 2, station=(0, 0, 8), facing=facing), person)
        for facing in (0.0, math.pi / 2)
    )
    assert ahead["tip_lateral"] > 0.1
    assert aside["tip_fore_aft"] == pytest.approx(ahead["tip_lateral"], rel=1e-9)
    assert aside["tip_lateral"] == pytest.approx(ahead["tip_fore_aft"], abs=1e-12)


def test_events_and_their_causes() -> None:
    time = np.arange(0, 10, 0.1)
    margin = np.full(100, 0.1)
    force = np.tile([0.0, 0.0, 800.0], (100, 1))
    margin[20:25] = -0.01  # a tip at 2 s
    force[40:42, 0] = 700.0  # a slide at 4 s
    force[60, 2] = -1.0  # no deck at 6 s
    margin[60] = np.nan
    margin[64] = -0.01  # 0.4 s later: the same stumble
    margin[90:] = -0.01  # a tip at 9 s that lasts
    found = count_events(time, margin, force, friction=0.7)
    np.testing.assert_allclose(found.time, [2, 4, 6, 9])
    assert found.cause == ("tip", "slide", "lift_off", "tip")
    assert found.by_cause() == {"lift_off": 1, "tip": 2, "slide": 1}
    assert found.per_minute == pytest.approx(24)
    again = count_events(time, margin, force, friction=0.7, refractory=0.0)
    np.testing.assert_allclose(again.time, [2, 4, 6, 6.4, 9])
    with pytest.raises(ResultError, match="friction is -1"):
        count_events(time, margin, force, friction=-1)


def test_confidence_limits_are_the_textbook_ones() -> None:
    # Exact 95 % limits of a Poisson mean: 0 → 0 to 3.689, 1 → 0.0253 to 5.572, 10 → 4.795 to 18.39.
    for count, low, high in ((0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.39)):
        found = poisson_interval(count, 60.0)
        np.testing.assert_allclose(found, (low, high), rtol=1e-3, atol=1e-9)
    events = Interruptions(np.arange(10.0), ("tip",) * 10, 600.0, 0.0)
    assert events.per_minute == 1.0
    np.testing.assert_allclose(events.interval, (0.4795, 1.839), rtol=1e-3)


def test_limits_hold_when_events_come_in_groups() -> None:
    # Groups of three events, one group each 40 s on average: 4.5 per minute. Twenty minutes at a time, the limits must
    # hold the true rate about 95 times in 100; taken for single events they would do so much more rarely.
    generator = np.random.default_rng(5)
    grouped = single = 0
    for _ in range(400):
        starts = np.sort(generator.uniform(0, 1200, generator.poisson(30)))
        times = np.sort((starts[:, None] + [0, 8, 16]).ravel())
        low, high = Interruptions(times, ("tip",) * len(times), 1200, 0.0, clumping(times, 1200)).interval
        grouped += low <= 4.5 <= high
        low, high = poisson_interval(len(times), 1200)
        single += low <= 4.5 <= high
    assert grouped / 400 > 0.87  # ten windows tell the clumping only roughly
    assert single / 400 < 0.85
    assert clumping(np.arange(5.0), 1200) == 1.0


def test_the_worst_ten_seconds_are_found() -> None:
    time = np.arange(0, 100, 0.1)
    margin = np.full(1000, 0.1)
    margin[430:530] -= 0.05 * np.sin(np.linspace(0, math.pi, 100))
    assert worst_clip(time, margin) == pytest.approx(43.0, abs=0.2)
    margin[700:720] = np.nan  # the deck dropped away: worse than anything that can be measured
    margin[0] = -0.5
    assert 61.9 < worst_clip(time, margin) <= 70.0
    spread = margin_distribution(np.linspace(-0.01, 0.09, 1001))
    assert spread["share_outside"] == pytest.approx(0.1, abs=2e-3)
    assert spread["percentile_50"] == pytest.approx(0.04)
    assert spread["smallest"] == pytest.approx(-0.01)


def test_a_rail_moves_the_limit_by_its_moment() -> None:
    # 100 N at 1.2 m against 80 kg: the edge moves out by 0.153 m, 0.7 of friction grows by 100/784.5.
    time, person = np.arange(0, 5, 0.1), RigidPerson(height=1.0, half_width=0.25, half_length=1.5, friction=5.0)
    rail = Rail(height=1.2, force=100.0)
    for extra, tips in ((-1e-3, 0), (1e-3, 1)):
        # Tilted by φ the deck pushes m g cos φ: h tan φ = l + F z/(m g cos φ).
        angle = 0.3
        for _ in range(50):
            angle = math.atan(0.25 + 100 * 1.2 / (80 * G * math.cos(angle)))
        deck = constant_deck(roll=angle + extra).sample(time)
        assert len(count_rigid(deck, person, rail=rail).time) == tips
        assert len(count_rigid(deck, person).time) == 1
    slippery = RigidPerson(height=0.2, half_width=1.5, half_length=1.5, friction=0.3)
    deck = constant_deck(roll=math.atan(0.35)).sample(time)
    assert count_rigid(deck, slippery).cause == ("slide",)
    assert not len(count_rigid(deck, slippery, rail=rail).time)


def test_a_wide_stance_and_turned_feet_move_the_outline(body: Body) -> None:
    own = body.contact_polygon()
    wide = Stance(width=0.6).body(body).contact_polygon()
    ankles = 0.6 - 2 * abs(float(body.data.oMf[body.link_frame("left_foot")].translation[1]))
    assert np.ptp(wide[:, 1]) - np.ptp(own[:, 1]) == pytest.approx(ankles, abs=1e-12)
    assert np.ptp(wide[:, 0]) == pytest.approx(np.ptp(own[:, 0]))
    out = Stance(foot_angle=math.radians(90)).body(body)
    left, right = (np.asarray(out.contact_polygon(name)) for name in ("left_foot", "right_foot"))
    assert left[:, 1].max() == pytest.approx(-right[:, 1].min())  # toes point outwards on both sides
    ankle = float(body.data.oMf[body.link_frame("left_foot")].translation[1])
    ahead = float(body.contact_polygon("left_foot")[:, 0].max())  # what was forward is now to the left
    assert left[:, 1].max() == pytest.approx(ankle + ahead)
    assert Stance().body(body) is body
    assert Stance(width=0.6).body(body).mass == body.mass
    with pytest.raises(BodyError, match=r"width is 3, but must be a number from 0\.05 to 1\.5 m"):
        Stance(width=3)


def test_a_wider_stance_means_fewer_interruptions_of_the_model(body: Body) -> None:
    deck = SineDeck({"roll": [Sine(0.16, 9.0, 0.0)]}, station=(0, 0, 3))
    counts = []
    for width in (None, 0.9):
        run = stiff_run(Stance(width=width).body(body), deck, duration=30.0)
        counts.append(len(count_run(run).time))
    assert counts[0] >= 6  # twice each period
    assert counts[1] == 0
    with pytest.raises(ResultError, match="no stance_margin"):
        count_run(run.drop_vars("stance_margin"))
