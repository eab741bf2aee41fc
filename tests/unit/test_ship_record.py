"""Logged ship motion: band-limited interpolation, what is unknown, refusals."""

import functools
import math
import operator
from pathlib import Path

import numpy as np
import pytest

from posture.errors import DeckError
from posture.ship.record import RecordedMotion, read_motion_log

TIME = np.arange(0, 600.0)  # 1 Hz


def roll(time: np.ndarray) -> np.ndarray:
    return 0.05 * np.cos(0.7 * time + 0.3) + 0.02 * np.cos(1.45 * time)


def roll_acceleration(time: np.ndarray) -> np.ndarray:
    return -0.05 * 0.49 * np.cos(0.7 * time + 0.3) - 0.02 * 1.45**2 * np.cos(1.45 * time)


def test_motion_between_samples_is_recovered_even_at_one_hertz() -> None:
    deck = RecordedMotion(TIME, {"roll": roll(TIME)})
    inside = np.arange(30, 570, 0.037)
    value, _, acceleration = deck.motions(inside)
    # The ends' reflection leaks inwards and fades as 1/time; half a minute in, 1e-3 of the motion is left.
    assert np.abs(value[:, 3] - roll(inside)).max() < 1e-3 * 0.07
    assert np.abs(acceleration[:, 3] - roll_acceleration(inside)).max() < 5e-3 * 0.067
    assert value[:, 3].std() == pytest.approx(roll(inside).std(), rel=1e-4)
    assert not value[:, [0, 1, 2, 4, 5]].any()
    assert deck.unknown == ["surge", "sway", "heave", "pitch", "yaw"]
    assert deck.cutoff_hz == pytest.approx(0.4)


def test_straight_lines_between_samples_would_not_do() -> None:
    # What the band-limited interpolation is for: linear interpolation loses the accelerations altogether.
    deck, middle = RecordedMotion(TIME, {"roll": roll(TIME)}), np.arange(30, 570) + 0.5
    linear = np.interp(middle, TIME, roll(TIME))
    ours = deck.motions(middle)[0][:, 3]
    assert np.abs(linear - roll(middle)).max() > 50 * np.abs(ours - roll(middle)).max()


def test_derivatives_are_those_of_the_value() -> None:
    deck = RecordedMotion(TIME, {"roll": roll(TIME), "heave": 10 * roll(TIME + 3)}, station=(10.0, 0.0, 5.0))
    at, step = np.array([0.5, 77.7, 300.3, 598.0]), 1e-3

    def slope(order: int) -> np.ndarray:
        parts = [deck.motions(at + shift * step)[order] for shift in (2, 1, -1, -2)]
        return (-parts[0] + 8 * parts[1] - 8 * parts[2] + parts[3]) / (12 * step)

    _, rate, acceleration = deck.motions(at)
    np.testing.assert_allclose(slope(0), rate, atol=1e-8)
    np.testing.assert_allclose(slope(1), acceleration, atol=1e-8)
    sample = deck.sample(at)
    np.testing.assert_allclose(sample.angular_acceleration[:, 0], acceleration[:, 3])


def test_list_is_kept_and_drift_of_heave_removed() -> None:
    deck = RecordedMotion(TIME, {"roll": 0.03 + roll(TIME), "heave": 7.0 + roll(TIME)})
    value = deck.motions(TIME[:-1])[0]
    assert value[:, 3].mean() == pytest.approx(0.03, abs=2e-4)
    assert value[:, 2].mean() == pytest.approx(0.0, abs=2e-4)


def test_what_is_faster_than_the_cutoff_is_left_out() -> None:
    slow, fast = 0.05 * np.cos(0.7 * TIME), 0.01 * np.cos(2 * math.pi * 0.45 * TIME)
    deck = RecordedMotion(TIME, {"roll": slow + fast}, cutoff_hz=0.3)
    inside = np.arange(50, 550, 0.2)
    assert np.abs(deck.motions(inside)[0][:, 3] - 0.05 * np.cos(0.7 * inside)).max() < 3e-4


def write(path: Path, header: str, *columns: np.ndarray) -> Path:
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=header, comments="")
    return path


def test_a_log_is_read_with_its_units_and_signs(tmp_path: Path) -> None:
    degrees = np.degrees(roll(TIME))
    heading = np.mod(359 + degrees, 360)
    path = write(
        tmp_path / "log.csv",
        "t_s,roll_deg,pitch_deg,heave_m,heading_deg,speed_kn",
        TIME,
        degrees,
        degrees,
        degrees,
        heading,
        TIME,
    )
    log = read_motion_log(path, flip=["pitch", "heave"])
    value = log.motions(np.arange(100.0, 200.0))[0]
    np.testing.assert_allclose(value[:, 3], roll(np.arange(100.0, 200.0)), atol=1e-4)
    np.testing.assert_allclose(value[:, 4], -value[:, 3], atol=1e-12)
    # A compass turns clockwise, yaw to port: the other way, across 360°, without the mean.
    np.testing.assert_allclose(value[:, 5], -value[:, 3], atol=1e-3)
    assert log.unknown == ["surge", "sway"]


def test_a_ship_that_turns_is_followed_across_the_wrap(tmp_path: Path) -> None:
    yaw = np.degrees(0.02 * TIME + roll(TIME))  # twice around in ten minutes
    log = read_motion_log(write(tmp_path / "log.csv", "time_s,yaw_deg", TIME, (yaw + 180) % 360 - 180))
    inside = np.arange(50, 550, 0.5)
    rate = log.motions(inside)[1][:, 5]
    exact = 0.02 - 0.05 * 0.7 * np.sin(0.7 * inside + 0.3) - 0.02 * 1.45 * np.sin(1.45 * inside)
    np.testing.assert_allclose(rate, exact, atol=1e-4)


def test_sentences_of_a_motion_sensor_are_read_and_damaged_ones_left_out(tmp_path: Path) -> None:
    lines = []
    for second in range(100):
        body = f"PSXN,23,{3 * math.sin(0.7 * second):.3f},{2 * math.sin(0.7 * second):.3f},218.0,{math.sin(second):.3f}"
        check = 0
        for letter in body.encode():
            check ^= letter
        stamp = f"2014-08-01T00:{second // 60:02d}:{second % 60:02d}.500000Z"
        lines += [f"{stamp} $INHDT,218.26,T*1A", f"{stamp} ${body}*{check:02X}"]
    path = tmp_path / "log.txt"
    path.write_text("\n".join(lines) + "\n")
    log = read_motion_log(path)
    assert log.duration == pytest.approx(99)
    assert log.unknown == ["surge", "sway"]
    time = np.arange(20, 80.0)
    value = log.motions(time)[0]
    np.testing.assert_allclose(value[:, 3], np.radians(3 * np.sin(0.7 * time)), atol=1e-3)
    np.testing.assert_allclose(value[:, 4], -value[:, 3] * 2 / 3, atol=1e-4)  # bow up becomes bow down
    np.testing.assert_allclose(value[:, 2], -np.sin(time), atol=0.02)
    lines[101] = lines[101].replace("PSXN,23,", "PSXN,23,9")  # one damaged sentence is a gap, and said to be one
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DeckError, match="sample 51: 2 s after the one before"):
        read_motion_log(path)
    short = "PSXN,23,1"
    path.write_text(f"2014-08-01T00:00:00Z ${short}*{functools.reduce(operator.xor, short.encode()):02X}\n")
    with pytest.raises(DeckError, match="not a log of time stamps and"):
        read_motion_log(path)
    path.write_text("nothing of interest\n")
    with pytest.raises(DeckError, match=r"neither a \.csv file nor a log with time-stamped"):
        read_motion_log(path)


def test_bad_logs_are_refused(tmp_path: Path) -> None:
    values = roll(TIME)
    with pytest.raises(DeckError, match=r"roll reaches 4 rad; if the values are degrees, name the column roll_deg"):
        RecordedMotion(TIME, {"roll": np.degrees(values)})
    gap = TIME.copy()
    gap[300:] += 5
    with pytest.raises(DeckError, match="sample 301: 6 s after the one before, where samples come every 1 s"):
        RecordedMotion(gap, {"roll": values})
    broken = values.copy()
    broken[99] = np.nan
    with pytest.raises(DeckError, match="sample 100: a value is missing"):
        RecordedMotion(TIME, {"roll": broken})
    with pytest.raises(DeckError, match=r"cutoff_hz is 0\.7, .* nothing above 0\.5 Hz is in it"):
        RecordedMotion(TIME, {"roll": values}, cutoff_hz=0.7)
    with pytest.raises(DeckError, match="no motion is called 'rol'; did you mean 'roll'"):
        RecordedMotion(TIME, {"rol": values})
    with pytest.raises(DeckError, match="too few"):
        RecordedMotion(TIME[:9], {"roll": values[:9]})
    deck = RecordedMotion(TIME, {"roll": values})
    with pytest.raises(DeckError, match="the log lasts 599 s but 700 s was asked for"):
        deck.sample(np.array([700.0]))
    with pytest.raises(DeckError, match="no such file"):
        read_motion_log(tmp_path / "none.csv")
    with pytest.raises(DeckError, match="one column of time is needed"):
        read_motion_log(write(tmp_path / "log.csv", "clock,roll_deg", TIME, values))
    with pytest.raises(DeckError, match="there is no motion in it"):
        read_motion_log(write(tmp_path / "log.csv", "time_s,rpm", TIME, values))
    with pytest.raises(DeckError, match="in two units"):
        read_motion_log(write(tmp_path / "log.csv", "time_s,roll_deg,roll_rad", TIME, values, values))
    with pytest.raises(DeckError, match="column roll_deg stands there 2 times"):
        read_motion_log(write(tmp_path / "log.csv", "time_s,roll_deg,roll_deg", TIME, values, values))
    with pytest.raises(DeckError, match=r"come every 1000 s, too seldom .* if the times are milliseconds"):
        read_motion_log(write(tmp_path / "log.csv", "time_s,roll_deg", 1000 * TIME, values))
    with pytest.raises(DeckError, match=r"roll reaches 0\.907 rad; if the values are degrees"):
        RecordedMotion(TIME, {"roll": 13 * values})  # below 57°, but 28° RMS is no ship's
    with pytest.raises(DeckError, match=r"yaw changes by .* more than a ship can turn; if the values are degrees"):
        RecordedMotion(TIME, {"yaw": 3 + np.degrees(values)})
    (tmp_path / "log.csv").write_text("time_s,roll_deg\n0,x\n")
    with pytest.raises(DeckError, match="column roll_deg does not hold a number in every row"):
        read_motion_log(tmp_path / "log.csv")
