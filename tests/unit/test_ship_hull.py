"""Transfer functions: long waves, encounter, tables in and out, refusals."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from posture.errors import DeckError
from posture.ship.assess import Sailor, assess
from posture.ship.hull import (
    Hull,
    check_heading_deg,
    encounter,
    rao_table,
    read_rao_csv,
    read_ship,
    read_veres,
    wave_number,
    write_rao_csv,
)
from posture.ship.motion import SeaDeck
from posture.ship.response import Response
from posture.ship.sea import Sea, sea_state

HULL = Hull(100, 14, 5, 1.2, roll_radius=5)
OMEGA = np.linspace(0.2, 2.0, 40)


def sampled(hull: Hull = HULL, headings: int = 13):
    angles = np.linspace(0, math.pi, headings)
    values = np.stack([hull.transfer(OMEGA, np.full(40, angle), 0.0) for angle in angles])
    return rao_table(speeds=np.zeros(1), headings=angles, omega=OMEGA, values=values[None], name="sampled")


@pytest.mark.parametrize("degrees", range(0, 360, 15))
def test_in_long_waves_a_ship_moves_as_the_water(degrees: int) -> None:
    # Deep-water particle paths and the slope of ζ = a cos(ωt - k(x cos β + y sin β)), by hand, in the house's axes.
    beta, omega = math.radians(degrees), np.array([0.05])
    k = float(wave_number(omega)[0])
    ahead, across = math.cos(beta), math.sin(beta)
    expected = np.array([-1j * ahead, -1j * across, 1, -1j * k * across, 1j * k * ahead, -k * ahead * across])
    found = Hull(30, 6, 2, 0.8).transfer(omega, np.array([beta]), 0.0)[0]
    # What is left are terms of the order of k times the draught and of (ω/ω_roll)², both below 0.03 here.
    np.testing.assert_allclose(found[:3], expected[:3], atol=5e-3)
    np.testing.assert_allclose(found[3:] / k, expected[3:] / k, atol=0.03)


def test_encounter_by_hand_and_where_the_ship_overtakes_the_waves() -> None:
    head, following = math.pi, 0.0
    # ω = 1 rad/s: k = 0.10197 1/m, waves run at g/ω = 9.80665 m/s.
    assert encounter(np.ones(1), np.array([head]), 5.0)[0] == pytest.approx(1 + 5 / 9.80665)
    assert encounter(np.ones(1), np.array([following]), 5.0)[0] == pytest.approx(1 - 5 / 9.80665)
    assert encounter(np.ones(1), np.array([following]), 9.80665)[0] == pytest.approx(0, abs=1e-12)
    assert encounter(np.ones(1), np.array([following]), 12.0)[0] < 0
    assert encounter(np.ones(1), np.array([math.pi / 2]), 12.0)[0] == pytest.approx(1)
    # The closed form stays finite and continuous through standstill against the waves.
    speeds = 9.80665 + np.array([-1e-6, 0, 1e-6])
    answers = np.array([HULL.transfer(np.ones(1), np.zeros(1), speed)[0] for speed in speeds])
    assert np.isfinite(answers).all()
    assert np.abs(np.diff(answers, axis=0)).max() < 1e-5


@pytest.mark.parametrize("speed", [0.0, 4.0, 8.0])
@pytest.mark.parametrize("degrees", [0, 40, 140, 180])
def test_a_moving_ship_is_accelerated_as_the_water_is(degrees: int, speed: float) -> None:
    # The water's acceleration where the ship is does not depend on how fast the ship passes: ω² times the displacement.
    beta, omega = np.full(3, math.radians(degrees)), np.array([0.2, 0.3, 0.4])
    met = encounter(omega, beta, speed)
    surge = -(met**2) * Hull(15, 4, 1, 0.8).transfer(omega, beta, speed)[:, 0]
    # Left are half the draught of decay (1 %), the mean over 15 m (1 %), and (0.1/α)⁴, at most 0.5 %.
    np.testing.assert_allclose(surge, omega**2 * 1j * np.cos(beta), rtol=0.025)
    sway = np.abs(Hull(15, 4, 1, 0.8).transfer(omega, beta, speed)[:, 1])
    low, high = np.sort([np.ones(3), (omega / met) ** 2], axis=0) * np.abs(np.sin(beta))
    assert (sway >= 0.97 * low).all()  # between the water's path and its acceleration
    assert (sway <= high + 1e-12).all()


def test_nothing_is_felt_along_the_deck_of_a_small_boat_in_long_swell() -> None:
    # It slides down the slope as fast as the slope would make it: a plumb line stays square to the deck, at any speed.
    boat, swell = Hull(10, 3, 0.6, 0.8), Sea(np.linspace(0.28, 0.32, 50), np.ones(50))
    for speed in (0.0, 6.0):
        for degrees in (0, 180):
            response = Response(boat, swell, heading=math.radians(degrees), speed=speed)
            assert response.rms()["fore_aft_acceleration"] < 0.03 * 9.80665 * response.rms()["pitch"]


def test_heave_and_pitch_are_the_closed_form_of_the_literature_but_for_the_decay_with_depth() -> None:
    # Amplitudes as published, written out anew; only exp(-kT) is replaced by exp(-kT/2).
    hull, speed = Hull(150, 22, 8, 1.5), 7.0
    omega = np.linspace(0.3, 1.4, 23)
    for beta in (math.pi, 2.6):
        k = omega**2 / 9.80665
        froude = speed / math.sqrt(9.80665 * 150)
        alpha = 1 - froude * np.sqrt(k * 150) * math.cos(beta)
        radiated = 2 * np.sin(k * 22 * alpha**2 / 2) * np.exp(-k * 8 * alpha**2)
        f = np.sqrt((1 - k * 8) ** 2 + (radiated**2 / (k * 22 * alpha**3)) ** 2)
        eta = 1 / np.sqrt((1 - 2 * k * 8 * alpha**2) ** 2 + (radiated**2 / (k * 22 * alpha**2)) ** 2)
        effective = np.abs(k * math.cos(beta))
        half = effective * 150 / 2
        depth = np.exp(-k * 8 / 2)
        heave = eta * depth * f * 2 / (effective * 150) * np.sin(half)
        pitch = eta * depth * f * 24 / ((effective * 150) ** 2 * 150) * (np.sin(half) - half * np.cos(half))
        found = np.abs(hull.transfer(omega, np.full(len(omega), beta), speed))
        np.testing.assert_allclose(found[:, 2], np.abs(heave), rtol=1e-9)
        np.testing.assert_allclose(found[:, 4], np.abs(pitch), rtol=1e-9)


def test_roll_resonates_at_the_natural_period_with_the_given_damping() -> None:
    light, heavy = (
        Hull(100, 14, 5, 1.2, roll_radius=5, roll_damping=damping, added_roll_inertia=0.2) for damping in (0.05, 0.1)
    )
    assert light.roll_period == pytest.approx(2 * math.pi * 5 * math.sqrt(1.2 / (9.80665 * 1.2)))
    omega = np.linspace(0.3, 1.2, 9001)
    one, other = (np.abs(hull.transfer(omega, np.full(9001, math.pi / 2), 0.0)[:, 3]) for hull in (light, heavy))
    # Whatever drives both, half the damping gives twice the roll at resonance and less than that elsewhere.
    assert (one / other).max() == pytest.approx(2, rel=1e-5)
    assert 2 * math.pi / omega[np.argmax(one / other)] == pytest.approx(light.roll_period, rel=1e-3)
    # Well above resonance the wave's slope times (ωn/ω)² is left, turned over: in phase with the water's push, late.
    assert np.angle(light.transfer(omega[-1:], np.array([math.pi / 2]), 0.0)[0, 3]) == pytest.approx(
        math.pi / 2, abs=0.2
    )


def test_port_and_starboard_mirror() -> None:
    table = sampled()
    for ship in (HULL, table):
        one, other = (ship.transfer(OMEGA, np.full(40, angle), 0.0) for angle in (1.1, -1.1))
        np.testing.assert_allclose(other, one * [1, -1, 1, -1, 1, -1], atol=1e-12)


def test_a_table_gives_its_own_points_and_nothing_in_ripples() -> None:
    table = sampled()
    np.testing.assert_allclose(
        table.transfer(OMEGA, np.full(40, math.pi / 2), 0.0),
        HULL.transfer(OMEGA, np.full(40, math.pi / 2), 0.0),
        atol=1e-12,
    )
    assert not table.transfer(np.array([2.5]), np.zeros(1), 0.0).any()
    np.testing.assert_allclose(table.transfer(np.array([0.1]), np.zeros(1), 0.0), table.values[:, 0, 0])
    with pytest.raises(DeckError, match="covers speeds from 0 to 0 m/s, but 5 m/s was asked for"):
        table.transfer(OMEGA, np.zeros(40), 5.0)


def test_speeds_between_those_of_a_table_are_interpolated() -> None:
    angles = np.linspace(0, math.pi, 7)
    values = np.stack(
        [np.stack([HULL.transfer(OMEGA, np.full(40, angle), speed) for angle in angles]) for speed in (0.0, 4.0)]
    )
    table = rao_table(speeds=np.array([0.0, 4.0]), headings=angles, omega=OMEGA, values=values, name="two")
    middle = table.transfer(OMEGA, np.full(40, math.pi), 1.0)
    np.testing.assert_allclose(middle, 0.75 * values[0, -1] + 0.25 * values[1, -1], atol=1e-12)


def test_csv_goes_round_in_any_order(tmp_path: Path) -> None:
    path, table = tmp_path / "ship.csv", sampled()
    write_rao_csv(table, path)
    again = read_rao_csv(path, length=100, beam=14)
    np.testing.assert_allclose(again.values, table.values, atol=1e-9)
    header, *rows = path.read_text().splitlines()
    np.random.default_rng(1).shuffle(rows)
    path.write_text("# my ship\n" + "\n".join([header, *rows]) + "\n")
    np.testing.assert_array_equal(read_ship(path).values, again.values)
    # Radians instead of degrees, said so in the names, are the same ship.
    names = header.split(",")
    converted = [
        ",".join(
            repr(math.radians(float(cell))) if name.endswith("phase_deg") else cell
            for name, cell in zip(names, row.split(","), strict=True)
        )
        for row in rows
    ]
    path.write_text(header.replace("phase_deg", "phase_rad") + "\n" + "\n".join(converted) + "\n")
    np.testing.assert_allclose(read_ship(path).values, table.values, atol=1e-8)


def test_phases_in_the_wrong_unit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ship.csv"
    write_rao_csv(sampled(), path)
    good = path.read_text()
    path.write_text(good.replace("phase_deg", "phase_rad"))
    with pytest.raises(DeckError, match=r"_phase_rad goes up to 90, which looks like degrees"):
        read_rao_csv(path)
    header, *rows = good.splitlines()
    names = header.split(",")
    radians = [
        ",".join(
            repr(math.radians(float(cell))) if name.endswith("phase_deg") else cell
            for name, cell in zip(names, row.split(","), strict=True)
        )
        for row in rows
    ]
    path.write_text("\n".join([header, *radians]) + "\n")
    with pytest.raises(
        DeckError, match=r"surge_phase_deg stays within ±1\.57, which looks like radians; name it surge"
    ):
        read_rao_csv(path)
    # Degrees of roll per metre called radians, or Z pointing down, betray themselves in long waves.
    with pytest.raises(DeckError, match="a ship follows such long waves"):
        rao_table(
            speeds=np.zeros(1),
            headings=np.linspace(0, math.pi, 13),
            omega=OMEGA,
            values=sampled().values[:, :13] * [1, 1, -1, 1, 1, 1],
            name="Z down",
        )


def test_bad_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ship.csv"
    write_rao_csv(sampled(), path)
    header, *rows = path.read_text().splitlines()
    for text, message in (
        (header.replace("omega_rad_s", "omega") + "\n" + rows[0], "column omega_rad_s must be there once"),
        ("\n".join([header, *rows[:-1]]), "every combination once"),
        ("\n".join([header, *rows, rows[0]]), "every combination once"),
        ("\n".join([header, *rows[:-1], rows[0]]), "every combination once"),  # one twice, another one missing
        (header + "\nbroken", "not a table of numbers"),
        ("\n".join([header.replace("roll_phase_deg", "x"), *rows]), "roll needs both an amplitude and a phase"),
        (
            "\n".join([header.replace("roll_amplitude_rad_m", "roll_amp_rad_m"), *rows]),
            "no column is called 'roll_amp_rad_m'; did you mean 'roll_amplitude_rad_m'",
        ),
        ("\n".join([header.replace("pitch_phase", "roll_phase"), *rows]), "roll_phase_deg stands there 2 times"),
    ):
        path.write_text(text + "\n")
        with pytest.raises(DeckError, match=message):
            read_rao_csv(path)
    values = sampled().values[:, :13]
    with pytest.raises(DeckError, match=r"wave frequencies must increase, but 2 is followed by"):
        rao_table(speeds=np.zeros(1), headings=np.linspace(0, math.pi, 13), omega=OMEGA[::-1], values=values, name="x")
    broken = np.where(np.arange(40) == 7, math.nan, OMEGA)
    with pytest.raises(DeckError, match="wave frequencies must increase"):
        rao_table(speeds=np.zeros(1), headings=np.linspace(0, math.pi, 13), omega=broken, values=values, name="x")
    with pytest.raises(DeckError, match="must cover 0° to 180°"):
        rao_table(speeds=np.zeros(1), headings=np.linspace(0, 2, 13), omega=OMEGA, values=values, name="x")
    with pytest.raises(DeckError, match="headings go up to 180 rad"):
        rao_table(speeds=np.zeros(1), headings=np.linspace(0, 180, 13), omega=OMEGA, values=values, name="x")
    path.write_text("MOTION TRANSFER FUNCTIONS\n1 2 3\n")
    with pytest.raises(DeckError, match="not a readable VERES motion file"):
        read_veres(path)
    with pytest.raises(DeckError, match="transfer functions are read from"):
        read_ship(tmp_path / "ship.xlsx")
    for content in (gzip.compress(b"MOTION" * 500)[:-20], gzip.compress(b"MOTION" * 500)[:20] + bytes(20), b"MOTION"):
        (tmp_path / "ship.re1.gz").write_bytes(content)
        with pytest.raises(DeckError, match="not a readable VERES motion file"):
            read_ship(tmp_path / "ship.re1.gz")
    (tmp_path / "ship.mat").write_bytes(b"no matlab")
    with pytest.raises(DeckError, match="not a readable MSS vessel structure"):
        read_ship(tmp_path / "ship.mat")


def test_a_table_may_know_only_some_motions(tmp_path: Path) -> None:
    path, whole = tmp_path / "ship.csv", sampled()
    write_rao_csv(whole, path)
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    for motions in (("heave", "roll", "pitch"), ("roll",)):
        kept = [at for at, name in enumerate(header) if name.split("_")[0] in ("speed", "heading", "omega", *motions)]
        path.write_text("\n".join(",".join(row[at] for at in kept) for row in [header, *rows]) + "\n")
        ship = read_rao_csv(path)
        assert sorted(ship.missing) == sorted({"surge", "sway", "heave", "roll", "pitch", "yaw"} - set(motions))
        np.testing.assert_allclose(ship.values[..., 3], whole.values[..., 3], atol=1e-9)
        found = assess(ship, sea_state("SS5"), heading=1.0, speed=0.0, station=(0, 0, 5), sailor=Sailor(method="none"))
        assert (found["sickness_percent"] == 0.0) == ("heave" not in motions)
    assert whole.missing == []


def test_headings_in_radians_by_mistake_are_refused() -> None:
    for wrong in (math.pi / 2, 2.0944, -1.0472):
        with pytest.raises(DeckError, match="looks like radians"):
            check_heading_deg(wrong)
    assert check_heading_deg(3) == pytest.approx(math.radians(3))
    assert check_heading_deg(135) == pytest.approx(math.radians(135))
    with pytest.raises(DeckError, match="must be a number from -360 to 360 degrees"):
        check_heading_deg(400)


def test_impossible_hulls_are_refused() -> None:
    with pytest.raises(DeckError, match=r"metacentric_height is -1, but must be a number from 0\.02 to 30 m"):
        Hull(100, 14, 5, -1)
    with pytest.raises(DeckError, match=r"roll_radius is 30, but must be a number from 2\.1 to 8\.4 m"):
        Hull(100, 14, 5, 1.2, roll_radius=30)


def test_a_table_that_ends_too_early_is_refused() -> None:
    short = rao_table(
        speeds=np.zeros(1),
        headings=np.linspace(0, math.pi, 13),
        omega=OMEGA[:10],  # up to 0.62 rad/s
        values=sampled().values[:, :13, :10],
        name="short",
    )
    with pytest.raises(DeckError, match=r"short: the transfer functions end at 0\.615 rad/s, .* extend the table"):
        SeaDeck(short, sea_state("SS5"), heading=1.0, seed=1)
    SeaDeck(sampled(), sea_state("SS5"), heading=1.0, seed=1)  # up to 2 rad/s, where little moves and little is left
