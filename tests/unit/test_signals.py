"""Smoothing, gaps and splines."""

from __future__ import annotations

import numpy as np
import pytest

from posture.errors import MotionError
from posture.signals import fill_gaps, lowpass, spline, ssa

RATE = 100.0
TIME = np.arange(0, 3, 1 / RATE)


def walk(time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A history with three harmonics of 0.9 Hz and a drift, and its second derivative."""
    w = 2 * np.pi * 0.9
    value = 0.3 * time + 0.4 * np.cos(w * time) + 0.15 * np.sin(2 * w * time) + 0.05 * np.cos(4 * w * time)
    second = -(w**2) * (0.4 * np.cos(w * time) + 4 * 0.15 * np.sin(2 * w * time) + 16 * 0.05 * np.cos(4 * w * time))
    return value, second


@pytest.mark.parametrize("noise", [0.001, 0.005])
def test_ssa_finds_accelerations_in_noise(noise: float) -> None:
    value, second = walk(TIME)
    noisy = value + noise * np.random.default_rng(1).standard_normal(len(TIME))
    smooth, found = ssa(noisy, RATE)
    inner = slice(20, -20)

    def error(history: np.ndarray) -> float:
        gap = spline(TIME, history[:, None]).sample(TIME)[2][:, 0] - second
        return float(np.sqrt(np.mean(gap[inner] ** 2) / np.mean(second**2)))

    assert error(smooth) < 0.2
    assert error(noisy) > 10 * error(smooth)
    assert found.window == 40
    assert found.rank[0] < 12
    removed = np.sqrt(np.mean((noisy - smooth)[inner] ** 2))
    assert removed == pytest.approx(noise, rel=0.2)  # what was taken away is the noise


def test_rank_rule_is_near_the_best_rank() -> None:
    value, second = walk(TIME)
    noisy = value + 0.003 * np.random.default_rng(2).standard_normal(len(TIME))

    def error(rank: int | None) -> float:
        gap = spline(TIME, ssa(noisy, RATE, rank=rank)[0][:, None]).sample(TIME)[2][20:-20, 0] - second[20:-20]
        return float(np.sqrt(np.mean(gap**2)))

    best = min(error(rank) for rank in range(1, 15))
    assert error(None) < 1.6 * best


def test_ssa_leaves_a_clean_history_alone() -> None:
    value, _ = walk(TIME)
    smooth, _ = ssa(value, RATE)
    gap = np.abs(smooth - value)
    assert gap[20:-20].max() < 2e-3  # its range is 1.6
    assert gap.max() < 1e-2  # at the ends the reflection bends the other way
    still, found = ssa(np.full(len(TIME), 1.5), RATE)
    assert np.array_equal(still, np.full(len(TIME), 1.5))
    assert found.rank[0] == 0


def test_ssa_keeps_the_shape_of_many_columns() -> None:
    value, _ = walk(TIME)
    block = np.stack([value, 2 * value, -value], axis=1).reshape(len(TIME), 3)
    smooth, found = ssa(block, RATE, names=["a", "b", "c"])
    assert smooth.shape == block.shape
    assert np.allclose(smooth[:, 1], 2 * smooth[:, 0], atol=1e-9)
    assert found.worst()[0] == "b"


def test_lowpass_is_three_decibels_down_at_its_cutoff_and_has_no_delay() -> None:
    long = np.arange(0, 20, 1 / RATE)
    wave = np.sin(2 * np.pi * 6 * long)
    out = lowpass(wave, RATE, 6.0)[500:-500]
    assert np.sqrt(np.mean(out**2)) / np.sqrt(0.5) == pytest.approx(2**-0.5, rel=0.01)
    assert np.corrcoef(out, wave[500:-500])[0, 1] > 0.9999


def test_spline_derivatives_are_exact_for_polynomials() -> None:
    time = np.linspace(0, 1, 20)
    found = spline(time, np.column_stack((time**5, time**2)))
    at = np.array([0.123, 0.77])
    value, rate, acceleration = found.sample(at)
    assert np.abs(value[:, 0] - at**5).max() < 1e-13
    assert np.abs(rate[:, 0] - 5 * at**4).max() < 1e-11
    assert np.abs(acceleration[:, 0] - 20 * at**3).max() < 1e-9
    with pytest.raises(MotionError, match="asked of a record from 0 to 1 s"):
        found.sample(np.array([1.2]))


def test_short_gaps_are_filled_and_long_ones_reported() -> None:
    value, _ = walk(TIME)
    places = np.stack([value, value, value], axis=1)[:, None, :].repeat(2, axis=1)
    places[50:60, 0] = np.nan
    places[100:160, 1] = np.nan
    places[:5, 1] = np.nan
    filled, gaps = fill_gaps(TIME, places, names=["A", "B"], longest=0.2)
    assert gaps.filled == {"A": 10}
    assert [(round(a, 2), round(b, 2)) for a, b in gaps.left["B"]] == [(0.0, 0.05), (1.0, 1.6)]
    assert np.abs(filled[50:60, 0, 0] - value[50:60]).max() < 0.02
    assert "10 samples filled" in gaps.sentence()
    assert "0.60 s" in gaps.sentence()
    assert fill_gaps(TIME, np.ones((len(TIME), 1, 3)), names=["A"])[1].sentence() == "no gaps"


def test_bad_requests_are_refused() -> None:
    with pytest.raises(MotionError, match="too few"):
        ssa(np.zeros(5), RATE)
    with pytest.raises(MotionError, match="has gaps"):
        ssa(np.full(50, np.nan), RATE)
    with pytest.raises(MotionError, match=r"cut-off is 60, but must be a number from 0\.1 to 45 Hz"):
        lowpass(np.zeros(100), RATE, 60.0)
    with pytest.raises(MotionError, match="rising times"):
        spline(np.zeros(10), np.zeros((10, 1)))
