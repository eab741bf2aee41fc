"""Limits of ship motion for people at work, and how a motion stands against them.

Every number here is quoted from memory of secondary sources (R. Nielsen and others (1987) for NORDFORSK, STANAG 4154
for NATO); pass your own table where a decision rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posture.body import STANDARD_GRAVITY
from posture.errors import DeckError, find_name


@dataclass(frozen=True)
class Limit:
    """One limit: a quantity of ``Response.rms`` (m, rad, m/s²) or of a human factor, and how much is allowed."""

    quantity: str
    limit: float
    unit: str
    shown: float  # what one shown unit is in SI

    @property
    def text(self) -> str:
        """The limit as people write it."""
        return f"{self.limit / self.shown:g} {self.unit}"


def _degrees(quantity: str, value: float) -> Limit:
    return Limit(quantity, math.radians(value), "deg RMS", math.pi / 180)


def _gs(quantity: str, value: float) -> Limit:
    return Limit(quantity, value * STANDARD_GRAVITY, "g RMS", STANDARD_GRAVITY)


def _work(vertical: float, lateral: float, roll: float) -> tuple[Limit, ...]:
    return (
        _gs("vertical_acceleration", vertical),
        _gs("lateral_acceleration", lateral),
        _degrees("roll", roll),
    )


CRITERIA: dict[str, tuple[Limit, ...]] = {
    "nordforsk_light_manual_work": _work(0.20, 0.10, 6.0),
    "nordforsk_heavy_manual_work": _work(0.15, 0.07, 4.0),
    "nordforsk_intellectual_work": _work(0.10, 0.05, 3.0),
    "nordforsk_transit_passengers": _work(0.05, 0.04, 2.5),
    "nordforsk_cruise_liner": _work(0.02, 0.03, 2.0),
    "nato_personnel": (
        *_work(0.20, 0.10, 4.0),
        _degrees("pitch", 1.5),
        Limit("interruptions_per_minute", 1.0, "per minute", 1.0),
        Limit("sickness_percent", 20.0, "percent", 1.0),
    ),
}


def check_criteria(
    found: Mapping[str, float], criteria: str | Sequence[Limit] = "nato_personnel"
) -> list[dict[str, Any]]:
    """Compare quantities (SI) with a named or own table: rows of quantity, value, limit, unit, share used, verdict.

    A quantity of the table that is not among ``found`` is reported as unknown, not as good.
    """
    if isinstance(criteria, str):
        criteria = CRITERIA[find_name(criteria, CRITERIA, what="criteria table", where="criteria", error=DeckError)]
    rows = []
    for limit in criteria:
        value = found.get(limit.quantity)
        rows.append(
            {
                "quantity": limit.quantity,
                "value": None if value is None else value / limit.shown,
                "limit": limit.limit / limit.shown,
                "unit": limit.unit,
                "used": None if value is None else value / limit.limit,
                "verdict": "unknown" if value is None else "pass" if value <= limit.limit else "FAIL",
            }
        )
    return rows
