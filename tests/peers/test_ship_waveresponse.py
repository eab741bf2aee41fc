"""waveresponse, another program for ships in waves, on the same spectra and the same ship at rest; if it is there."""

import math

import numpy as np
import pytest

from posture.ship.hull import Hull
from posture.ship.response import Response
from posture.ship.sea import Sea, bretschneider, jonswap

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # within waveresponse itself
waveresponse = pytest.importorskip(
    "waveresponse",
    reason="waveresponse is not installed (it brings pandas and pyarrow); pip install posture[peers]",
)


def test_spectra_agree() -> None:
    omega = np.linspace(0.3, 2.5, 200)
    theirs = waveresponse.JONSWAP(omega, freq_hz=False)(3.0, 9.0, gamma=3.3)[1]
    ours = jonswap(height=3.0, peak_period=9.0)
    # Their constant is an approximation of the integral that ours is scaled with: below 1 %.
    np.testing.assert_allclose(np.interp(omega, ours.omega, ours.density), theirs, rtol=0.01, atol=1e-4)
    plain = waveresponse.ModifiedPiersonMoskowitz(omega, freq_hz=False)(3.0, 9.0)[1]
    sea = bretschneider(height=3.0, peak_period=9.0)
    np.testing.assert_allclose(np.interp(omega, sea.omega, sea.density), plain, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("degrees", [150.0, 90.0])
def test_motion_in_a_spread_sea_agrees(degrees: float) -> None:
    hull, omega = Hull(100, 14, 5, 1.2), np.linspace(0.3, 2.5, 600)
    degrees_all = np.arange(0.0, 360.0, 2.0)
    whole = bretschneider(height=3.0, peak_period=9.0)
    spectrum = np.interp(omega, whole.omega, whole.density)
    off = np.radians((degrees_all - degrees + 180) % 360 - 180)
    share = np.where(np.abs(off) < math.pi / 2, np.cos(off) ** 2, 0) * 2 / math.pi
    wave = waveresponse.WaveSpectrum(
        omega,
        degrees_all,
        spectrum[:, None] * share * math.pi / 180,  # theirs is per degree here, ours per radian
        freq_hz=False,
        degrees=True,
        clockwise=False,
        waves_coming_from=False,
    )
    sea = Sea(omega, spectrum, spreading=2.0)
    response = Response(hull, sea, heading=math.radians(degrees))
    values = np.stack(
        [hull.transfer(omega, np.full(len(omega), math.radians(angle)), 0.0) for angle in degrees_all], axis=1
    )
    for column in (2, 3, 4):
        rao = waveresponse.RAO(omega, degrees_all, values[:, :, column], freq_hz=False, degrees=True)
        theirs = float(waveresponse.calculate_response(rao, wave, 0.0).var())
        assert response.moment(response.motions[:, column]) == pytest.approx(theirs, rel=0.01)
