"""Sharing the ground's wrench between the feet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posture.errors import MotionError
from posture.sharing import METHODS, contact_weights, share, sharing_residual

TIME = np.linspace(0, 1, 401)
CONTACTS = {"left": [(-np.inf, 0.35)], "right": [(0.2, 0.8)], "cane": [(0.7, np.inf)]}


def wrenches(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    random = np.random.default_rng(seed)
    shape = np.sin(2 * np.pi * np.outer(TIME, random.uniform(0.5, 3, 6)) + random.uniform(0, 6, 6))
    total = 100 * shape + np.array([0, 0, 800, 0, 0, 0])
    measured = {}
    for foot, spans in CONTACTS.items():
        bump = np.zeros(len(TIME))
        for start, end in spans:
            a, b = max(start, -0.2), min(end, 1.2)
            inside = (a <= TIME) & (b >= TIME)
            bump[inside] = np.sin(np.pi * (TIME[inside] - a) / (b - a))
        measured[foot] = bump[:, None] * (total * random.uniform(0.4, 1.2))
    return total, measured


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", ["corrected", "smooth"])
def test_sum_is_the_total_and_swing_is_free(method: str, seed: int) -> None:
    total, measured = wrenches(seed)
    contacts = {foot: CONTACTS[foot] for foot in ("left", "right")}
    contacts["right"] = [(0.2, np.inf)]
    found = share(TIME, total, contacts, {foot: measured[foot] for foot in contacts}, method=method)
    gap, air = sharing_residual(total, found, TIME, contacts)
    assert gap < 1e-9
    assert air == 0


def test_three_contacts_share_with_a_plate_each() -> None:
    total, measured = wrenches(3)
    found = share(TIME, total, CONTACTS, measured)
    gap, air = sharing_residual(total, found, TIME, CONTACTS)
    assert gap < 1e-9
    assert air == 0


def test_single_support_takes_everything() -> None:
    total, measured = wrenches(1)
    found = share(TIME, total, CONTACTS, measured)
    alone = (TIME > 0.36) & (TIME < 0.69)
    assert np.array_equal(found["right"][alone], total[alone])


def test_perfect_plates_are_left_alone() -> None:
    """When the plates already add up, correction changes nothing outside the few ms in which readings fade."""
    total, _ = wrenches(2)
    contacts = {"left": [(-np.inf, 0.6)], "right": [(0.4, np.inf)]}
    lead = np.clip((TIME - 0.4) / 0.2, 0, 1)[:, None] ** 1.5
    measured = {"left": (1 - lead) * total, "right": lead * total}
    found = share(TIME, total, contacts, measured)
    inside = (TIME > 0.415) & (TIME < 0.585)
    assert np.abs(found["left"] - measured["left"])[inside].max() < 1e-9


def test_no_jump_at_events_even_with_offsets() -> None:
    """A plate that reads 15 N in the air must not make a step: difference over 0.2 µs."""
    time = np.sort(np.concatenate((TIME, [0.2 - 1e-7, 0.2 + 1e-7, 0.35 - 1e-7, 0.35 + 1e-7])))
    total = np.tile([10.0, 5, 800, 3, 2, 1], (len(time), 1))
    contacts = {"left": [(-np.inf, 0.35)], "right": [(0.2, np.inf)]}
    measured = {foot: np.tile([4.0, 1, 415, 2, 1, 1], (len(time), 1)) for foot in contacts}
    one = {"left": measured["left"], "right": np.full((len(time), 6), np.nan)}
    for plates, method in ((measured, "corrected"), (one, "corrected"), (None, "smooth")):
        found = share(time, total, contacts, plates, method=method)
        for event in (0.2, 0.35):
            near = np.searchsorted(time, [event - 1e-7, event + 1e-7])
            for values in found.values():
                assert np.abs(np.diff(values[near], axis=0)).max() < 0.05


def test_one_plate_corrects_by_the_mismatch_where_its_foot_is_alone() -> None:
    total = np.tile([0.0, 0, 800, 0, 0, 0], (len(TIME), 1))
    contacts = {"left": [(-np.inf, 0.6)], "right": [(0.4, np.inf)]}
    truth = 800 * np.clip((TIME - 0.4) / 0.2, 0, 1)
    reading = np.zeros((len(TIME), 6))
    reading[:, 2] = truth + 20 * (TIME >= 0.4)  # an offset while loaded
    found = share(TIME, total, contacts, {"right": reading})
    gap, air = sharing_residual(total, found, TIME, contacts)
    assert gap < 1e-9
    assert air == 0
    both = (TIME > 0.42) & (TIME < 0.6)
    plain = np.abs(reading[both, 2] - truth[both]).mean()
    assert np.abs(found["right"][both, 2] - truth[both]).mean() < 0.8 * plain


@given(st.floats(0.05, 0.4), st.floats(0.45, 0.9))
@settings(max_examples=30, deadline=None)
def test_weights_add_up_to_one_on_the_ground(landing: float, leaving: float) -> None:
    contacts = {"left": [(-np.inf, leaving)], "right": [(landing, np.inf)]}
    weights = contact_weights(TIME, contacts)
    assert np.abs(sum(weights.values()) - 1).max() < 1e-12
    assert all((values >= 0).all() for values in weights.values())


def test_two_feet_that_land_together_share_equally() -> None:
    contacts = {"left": [(0.2, 0.8)], "right": [(0.2, 0.8)]}
    weights = contact_weights(TIME, contacts)
    standing = (TIME >= 0.2) & (TIME <= 0.8)
    assert np.abs(weights["left"][standing] - 0.5).max() < 1e-12
    assert weights["left"][~standing].max() == 0


def test_bad_requests_are_refused() -> None:
    total, measured = wrenches(0)
    with pytest.raises(MotionError, match="no way of sharing is called 'corected'; did you mean 'corrected'"):
        share(TIME, total, CONTACTS, measured, method="corected")
    with pytest.raises(MotionError, match="no foot with contact times is called 'middle'"):
        share(TIME, total, CONTACTS, {"middle": measured["left"]})
    with pytest.raises(MotionError, match="has no duration"):
        share(TIME, total, {"left": [(0.5, 0.2)]}, None, method="smooth")
    assert set(METHODS) == {"corrected", "smooth", "plain"}
