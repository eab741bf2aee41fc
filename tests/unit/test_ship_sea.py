"""Waves: spectra against their closed forms, energy of random seas, NDBC files, refusals."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from posture.errors import DeckError
from posture.ship.sea import (
    SEA_STATES,
    Sea,
    bretschneider,
    jonswap,
    pierson_moskowitz,
    read_ndbc,
    sea_state,
)


def test_bretschneider_has_the_height_and_periods_it_was_asked_for() -> None:
    sea = bretschneider(height=3.25, peak_period=9.7)
    assert sea.significant_height == pytest.approx(3.25, rel=1e-4)  # the cut tail holds 6e-5 of the energy
    assert sea.peak_period == pytest.approx(9.7, rel=1e-3)
    mean = 2 * math.pi * sea.moment(0) / sea.moment(1)
    assert mean / 9.7 == pytest.approx(0.7718, rel=1e-3)  # known ratio T1/Tp of this spectrum
    again = bretschneider(height=3.25, mean_period=mean)
    assert again.peak_period == pytest.approx(9.7, rel=2e-3)
    crossing = bretschneider(height=3.25, zero_crossing_period=0.7104 * 9.7)  # known ratio Tz/Tp
    assert crossing.peak_period == pytest.approx(9.7, rel=1e-3)


def test_jonswap_without_peakedness_is_bretschneider() -> None:
    plain, flat = bretschneider(height=2, peak_period=8), jonswap(height=2, peak_period=8, peakedness=1)
    np.testing.assert_allclose(flat.density, plain.density, rtol=1e-4)


def test_jonswap_raises_the_peak_and_keeps_the_height() -> None:
    flat, peaked = (jonswap(height=2, peak_period=8, peakedness=value) for value in (1.0, 3.3))
    assert peaked.moment(0) == pytest.approx(0.25, rel=1e-9)
    # With γ = 3.3 the peak rises 3.3 times before scaling to equal height takes a third of it back.
    assert 2.0 < peaked.density.max() / flat.density.max() < 2.4


def test_jonswaps_peak_is_narrower_below_than_above() -> None:
    flat, peaked = (jonswap(height=2, peak_period=8, peakedness=value) for value in (1.0, 3.3))
    ratio = np.interp(np.array([0.9, 1.1, 3.0]) * math.pi / 4, flat.omega, peaked.density / flat.density)
    # By hand, a tenth off the peak: γ^exp(-0.01/(2·0.07²)) = 3.3^0.3604 and γ^exp(-0.01/(2·0.09²)) = 3.3^0.5394.
    np.testing.assert_allclose(ratio[:2] / ratio[2], [3.3**0.3604, 3.3**0.5394], rtol=1e-3)


def test_pierson_moskowitz_is_its_own_formula() -> None:
    sea = pierson_moskowitz(wind_speed=15)
    formula = 0.0081 * 9.81**2 / sea.omega**5 * np.exp(-0.74 * (9.81 / (15 * sea.omega)) ** 4)
    np.testing.assert_allclose(sea.density, formula, rtol=1e-9)


@pytest.mark.parametrize("spreading", [None, 2.0])
def test_a_random_sea_has_the_energy_of_its_spectrum(spreading: float | None) -> None:
    sea = sea_state("SS5", spreading=spreading)
    waves = sea.waves(seed=1, count=200)
    assert np.sum(waves.amplitude**2) / 2 == pytest.approx(0.998 * sea.moment(0), rel=1e-9)
    same, other = sea.waves(seed=1, count=200), sea.waves(seed=2, count=200)
    np.testing.assert_array_equal(waves.omega, same.omega)
    np.testing.assert_array_equal(waves.phase, same.phase)
    assert not np.any(waves.phase == other.phase)


def test_energy_of_a_random_sea_sits_where_the_spectrum_says() -> None:
    sea = jonswap(height=4, peak_period=10)
    waves = sea.waves(seed=3, count=4000)  # a cell at a band's edge is then worth below 1 %
    for low, high in ((0.4, 0.6), (0.6, 0.7), (0.7, 1.5)):
        inside = (waves.omega >= low) & (waves.omega < high)
        exact = np.trapezoid(np.where((sea.omega >= low) & (sea.omega < high), sea.density, 0), sea.omega)
        assert np.sum(waves.amplitude[inside] ** 2) / 2 == pytest.approx(exact, rel=0.02)


def test_spreading_follows_its_cosine() -> None:
    sea = sea_state("SS4", spreading=2)
    angles, shares = sea.directions()
    assert shares.sum() == pytest.approx(1)
    # ∫cos⁴/∫cos² over ±90° is 3/4: the share of the energy along the main direction.
    assert np.sum(shares * np.cos(angles) ** 2) == pytest.approx(0.75, abs=1e-3)


def test_named_sea_states_grow() -> None:
    heights = [sea_state(name).significant_height for name in SEA_STATES]
    assert heights == sorted(heights)
    assert sea_state("ss 5").name == "SS5"


OLD = """YY MM DD hh   .050   .100   .150   .200
96 01 01 00    1.00   4.00   2.00   1.00
96 01 01 01    2.00   8.00 999.00   2.00
96 01 01 02    3.00  12.00   6.00   3.00
"""
NEW = """#YY  MM DD hh mm  .0500  .1000  .1500  .2000
2018 01 01 00 40   1.00   4.00   2.00   1.00
2018 01 01 01 40   3.00  12.00   6.00   3.00
"""
REALTIME = """#YY  MM DD hh mm Sep_Freq  < spec_1 (freq_1) spec_2 (freq_2) spec_3 (freq_3) ... >
2018 01 01 01 40 0.200 3.000 (0.050) 12.000 (0.100) 6.000 (0.150) 3.000 (0.200)
2018 01 01 00 40 0.200 1.000 (0.050) 4.000 (0.100) 2.000 (0.150) 1.000 (0.200)
"""


def variance(values: list[float]) -> float:
    return float(np.trapezoid(values, [0.05, 0.10, 0.15, 0.20]))


def test_ndbc_files_old_new_real_time_and_gzipped(tmp_path: Path) -> None:
    for name, text in (("old.txt", OLD), ("new.txt", NEW), ("now.data_spec", REALTIME)):
        path = tmp_path / name
        path.write_text(text)
        assert read_ndbc(path).moment(0) == pytest.approx(variance([2, 8, 4, 2]), rel=1e-9)
        assert read_ndbc(path, when="highest").moment(0) == pytest.approx(variance([3, 12, 6, 3]), rel=1e-9)
    assert read_ndbc(tmp_path / "old.txt", when="1996-01-01 00:00").moment(0) == pytest.approx(variance([1, 4, 2, 1]))
    assert read_ndbc(tmp_path / "new.txt", when="2018-01-01T01:40").peak_period == pytest.approx(10)
    packed = tmp_path / "new.txt.gz"
    packed.write_bytes(gzip.compress(NEW.encode()))
    assert read_ndbc(packed).moment(0) == read_ndbc(tmp_path / "new.txt").moment(0)


def test_bad_ndbc_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_text(OLD)
    with pytest.raises(DeckError, match=r"no spectrum of '1997-01-01 00:00'; the file goes from 1996-01-01 00:00"):
        read_ndbc(path, when="1997-01-01 00:00")
    with pytest.raises(DeckError, match="missing or negative values"):
        read_ndbc(path, when="1996-01-01 01:00")
    path.write_text("time,height\n1,2\n")
    with pytest.raises(DeckError, match="line 1: NDBC spectra begin with"):
        read_ndbc(path)
    path.write_text(NEW.replace("12.00   6.00   3.00", "12.00"))
    with pytest.raises(DeckError, match="data row 2: 2 densities for 4 frequencies"):
        read_ndbc(path)
    path.write_text(NEW.replace(".0500  .1000", ".1000  .0500"))
    with pytest.raises(DeckError, match=r"must increase, but 0\.1 is followed by 0\.05 Hz"):
        read_ndbc(path)
    path.write_text(NEW.replace("2018 01 01 01", "2018 xx 01 01"))
    with pytest.raises(DeckError, match="data row 2: '2018 xx 01 01 40' is not a date and hour"):
        read_ndbc(path, when="highest")
    path.write_text(REALTIME.replace("1.000 (0.050)", "1.000 (0.055)"))
    with pytest.raises(DeckError, match="the rows have different frequencies"):
        read_ndbc(path)
    path.write_text(NEW.replace("4.00", "-4.00").replace("12.00", "-1.00"))
    with pytest.raises(DeckError, match=r"no row without missing \(999\) or negative values"):
        read_ndbc(path)
    packed = tmp_path / "old.txt.gz"
    for content in (gzip.compress(NEW.encode() * 50)[:-20], gzip.compress(NEW.encode() * 50)[:30] + bytes(30), b"x"):
        packed.write_bytes(content)
        with pytest.raises(DeckError, match="not an NDBC text file"):
            read_ndbc(packed)
    path.write_bytes(gzip.compress(b"x"))
    with pytest.raises(DeckError, match="not an NDBC text file"):
        read_ndbc(path)


def test_impossible_seas_are_refused() -> None:
    with pytest.raises(DeckError, match=r"significant wave height is -2, but must be a number from 0\.01 to 30 m"):
        bretschneider(height=-2, peak_period=8)
    with pytest.raises(DeckError, match="every wave breaks; lower the height"):
        bretschneider(height=10, peak_period=5)
    with pytest.raises(DeckError, match="give exactly one of peak_period"):
        bretschneider(height=2)
    with pytest.raises(DeckError, match=r"exactly one of .* 2 were given"):
        bretschneider(height=2, peak_period=8, mean_period=6)
    with pytest.raises(DeckError, match="peakedness is 0"):
        jonswap(height=2, peak_period=8, peakedness=0)
    with pytest.raises(DeckError, match="no sea state is called 'SS12'; known: SS2"):
        sea_state("SS12")
    with pytest.raises(
        DeckError, match=r"wave frequencies must increase, but 0\.7 is followed by 0\.6 rad/s; sort them"
    ):
        Sea(np.array([0.5, 0.7, 0.6]), np.ones(3))
    with pytest.raises(DeckError, match="not finite"):
        Sea(np.array([0.5, 0.6, 0.7]), np.array([1, np.nan, 1]))
    with pytest.raises(DeckError, match="spreading is 0"):
        sea_state("SS5", spreading=0)
