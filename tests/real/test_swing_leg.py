"""Torques of a real leg in swing, as a double pendulum hung from a moving hip, against published inverse dynamics."""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, filtfilt

from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import DeckSamples
from posture.estimate import joint_torques, smooth_motion

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "gait" / "leg2d_treadmill_csuhmc"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"the recording {FOLDER.name} is not beside the repository")

MASS = 67.2  # kg
# Mass, centre, radius of gyration as shares of body mass and segment length. The record's documentation names Winter's
# masses (0.1, 0.0465, 0.0145), but its joint forces were computed with the foot's for all three: the test shows it.
SHARE = {"thigh": (0.0145, 0.433, 0.323), "shank": (0.0145, 0.433, 0.302), "foot": (0.0145, 0.5, 0.475)}
MARKER_NOISE = 1e-3  # m


class Hip:
    """A platform that moves as the hip does and does not turn."""

    def __init__(self, time: np.ndarray, acceleration: np.ndarray) -> None:
        self.duration, self._time, self._acceleration = float(time[-1]), time, acceleration

    def sample(self, time: np.ndarray) -> DeckSamples:
        assert np.array_equal(time, self._time)
        none = np.zeros((len(time), 3))
        force = none.copy()
        force[:, [0, 2]] = self._acceleration
        force[:, 2] += STANDARD_GRAVITY
        return DeckSamples(time, none, none, force, none, np.tile([0, 0, 0, 1.0], (len(time), 1)))


def leg(thigh: float, shank: float, foot: np.ndarray) -> Body:
    """The pendulum with a thigh, and with shank and foot as one; ``foot``: its centre in the shank's frame, m."""
    masses = {name: MASS * share for name, (share, _, _) in SHARE.items()}
    upper = masses["thigh"] * (SHARE["thigh"][2] * thigh) ** 2
    total = masses["shank"] + masses["foot"]
    along = np.array([0, 0, SHARE["shank"][1] * shank])
    center = (masses["shank"] * along + masses["foot"] * foot) / total
    about = masses["shank"] * ((SHARE["shank"][2] * shank) ** 2 + np.sum((along - center) ** 2))
    about += masses["foot"] * np.sum((foot - center) ** 2)
    return load_body("double_pendulum").changed(
        links={
            "body_1": {
                "mass": masses["thigh"],
                "center": [0, 0, SHARE["thigh"][1] * thigh],
                "inertia": [upper, upper, upper / 5],
            },
            "body_2": {"mass": total, "center": center, "inertia": [about, about, about / 5]},
        },
        joints={"middle_x": {"origin": [0, 0, thigh]}},
    )


def test_hip_and_knee_torques_of_a_swinging_leg():
    raw = np.loadtxt(FOLDER / "rawdata.txt", skiprows=1)
    reference = np.genfromtxt(FOLDER / "refresults.csv", delimiter=",", names=True)
    for column in raw.T:  # a marker is hidden for a few frames
        gap = np.isnan(column)
        column[gap] = np.interp(raw[gap, 0], raw[~gap, 0], column[~gap])
    time, push = raw[:, 0] - raw[0, 0], raw[:, 14]
    hip, knee, ankle, heel, toe = (raw[:, column : column + 2] for column in (3, 5, 7, 9, 11))
    lengths = [float(np.median(np.linalg.norm(b - a, axis=1))) for a, b in ((hip, knee), (knee, ankle))]
    tilts = np.unwrap([np.arctan2(*(b - a).T) for a, b in ((hip, knee), (knee, ankle))], axis=1)
    angles = np.zeros((len(time), 6))
    angles[:, 1], angles[:, 4] = tilts[0], tilts[1] - tilts[0]
    noise = np.full(6, MARKER_NOISE * 2 / min(lengths))
    motion = smooth_motion(time, angles, noise_position=noise)
    platform = Hip(time, smooth_motion(time, hip, noise_position=MARKER_NOISE).acceleration)

    # Centre of the foot along and across the shank, the same throughout: its ankle hardly moves in swing.
    swing = push < 15
    axis = np.column_stack((np.sin(tilts[1]), np.cos(tilts[1])))
    offset = (heel + toe) / 2 - knee
    across = np.column_stack((axis[:, 1], -axis[:, 0]))
    foot = np.array(
        [np.median(np.sum(offset * across, axis=1)[swing]), 0, np.median(np.sum(offset * axis, axis=1)[swing])]
    )
    torque = joint_torques(leg(*lengths, foot), platform, time, motion)
    # The plate reads a few N in swing, and the reference counts them: moments about hip and knee (z to the right).
    along_x, along_y, about_z = filtfilt(*butter(2, 6, fs=100), raw[:, 13:16], axis=0).T
    for column, joint in ((1, hip), (4, knee)):
        torque[:, column] += about_z - (joint[:, 0] * along_y - joint[:, 1] * along_x)
    inner = swing & (time > 0.1) & (time < time[-1] - 0.1)
    inner &= np.convolve(swing, np.ones(11), "same") == 11  # the reference's filter smears each contact by 0.05 s
    assert inner.sum() > 60
    thigh = smooth_motion(time, hip + SHARE["thigh"][1] * (knee - hip), noise_position=MARKER_NOISE).acceleration
    lift, carried = thigh[inner, 1] + STANDARD_GRAVITY, (reference["hip_Fy"] - reference["knee_Fy"])[inner]
    assert lift @ carried / (lift @ lift) == pytest.approx(SHARE["thigh"][0], rel=0.05)  # and not 0.1
    for ours, name in ((-torque[:, 1], "hip_mom_Nm_kg"), (torque[:, 4], "knee_mom")):
        theirs = MASS * reference[name]
        # Another filter (6 Hz), a foot of its own and 10 ms between the two are worth about a tenth of the range.
        assert np.sqrt(np.mean((ours - theirs)[inner] ** 2)) < 0.15 * np.ptp(theirs[inner])
        assert np.corrcoef(ours[inner], theirs[inner])[0, 1] > 0.95
