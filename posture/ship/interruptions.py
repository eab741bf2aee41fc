"""Motion-induced interruptions (MII): moments at which a person would have to step, slide or lose the deck.

Two ways to the same count. From a simulated person: what the deck had to push (centre of pressure against the stance
outline, friction, vertical force). From the deck's motion alone: a rigid person on two feet, as R. Graham (1990)
"Motion-induced interruptions as ship operability criteria", Naval Engineers Journal, estimated it; in time or, for a
linear ship in a Gaussian sea, by the level-crossing formula. Graham's equations were re-derived here from the rigid
person's deck wrench rather than copied; signs are those of this package's axes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import chi2

from posture.body import STANDARD_GRAVITY
from posture.errors import ResultError, check_number

if TYPE_CHECKING:
    from posture.body import Body
    from posture.deck import DeckSamples
    from posture.ship.response import Response

Array = NDArray[np.floating]
Bools = NDArray[np.bool_]

CAUSES = ("lift_off", "tip", "slide")  # the first one in this order names an event with several


@dataclass(frozen=True)
class RigidPerson:
    """A stiff person for Graham's estimator; lengths in m.

    Defaults: centre of mass 0.91 and half stance 0.23 (their ratio 0.25) from a secondary source, fore-aft ratio 0.17
    and friction 0.70 from memory; radii of gyration about the centre of mass h/√3, those of a rod of length 2h.
    """

    height: float = 0.91
    half_width: float = 0.23
    half_length: float = 0.17 * 0.91
    friction: float = 0.70
    gyration_lateral: float | None = None
    gyration_fore_aft: float | None = None

    def __post_init__(self) -> None:
        """Refuse impossible people."""
        for key in ("height", "half_width", "half_length"):
            check_number(getattr(self, key), what=f"person: {key}", unit="m", low=0.001, high=10, error=ResultError)
        check_number(self.friction, what="person: friction", unit="", low=0.01, high=5, error=ResultError)
        for key in ("gyration_lateral", "gyration_fore_aft"):
            if getattr(self, key) is not None:
                check_number(getattr(self, key), what=f"person: {key}", unit="m", low=0, high=10, error=ResultError)

    @property
    def levers(self) -> tuple[float, float]:
        """H + k²/h for roll and for pitch: how high above the deck an angular acceleration acts; 4/3 h for a rod."""
        rod = self.height / math.sqrt(3)
        lateral, fore_aft = (
            self.height + (rod if radius is None else radius) ** 2 / self.height
            for radius in (self.gyration_lateral, self.gyration_fore_aft)
        )
        return lateral, fore_aft

    @classmethod
    def of(cls, body: Body, *, friction: float = 0.70) -> RigidPerson:
        """A body held stiff: its centre of mass, inertia and the size of its stance."""
        from posture.simulate import Dynamics

        dynamics, still = Dynamics(body), np.zeros(len(body.joint_names))
        center, outline = body.center_of_mass(), body.contact_polygon()
        radii = []
        for axis, beside in ((0, center[1]), (1, center[0])):
            spin = np.zeros(9)
            spin[3 + axis] = 1.0  # unit angular acceleration without gravity
            about_deck = float(dynamics.reactions(body.neutral, still, still, spin)[3 + axis])
            radii.append(math.sqrt(max(0.0, about_deck / body.mass - center[2] ** 2 - beside**2)))
        half_length, half_width = np.ptp(outline, axis=0) / 2
        return cls(float(center[2]), float(half_width), float(half_length), friction, *radii)

    def pressure(self, deck: DeckSamples) -> Array:
        """Centre of pressure (n × 2, m: forward, left) of the stiff person, from the deck's nine channels.

        x = -(h fx + (h² + k²) wy')/fz, y = (-h fy + (h² + k²) wx')/fz: Graham's tipping condition |y| > l without
        its small angles. Products of angular rates are left out, as Graham does.
        """
        force, spin = deck.specific_force, deck.angular_acceleration
        up = np.where(force[:, 2] > 0, force[:, 2], np.nan)
        lateral, fore_aft = self.levers
        along = -(force[:, 0] + fore_aft * spin[:, 1])
        across = -force[:, 1] + lateral * spin[:, 0]
        return self.height * np.column_stack((along, across)) / up[:, None]

    def push(self, deck: DeckSamples) -> Array:
        """Force of the deck per mass (n × 3, m/s²): the specific force at the centre of mass."""
        lift = np.array([0, 0, self.height])
        return np.asarray(deck.specific_force + np.cross(deck.angular_acceleration, lift))


@dataclass(frozen=True)
class Rail:
    """Something to hold: the hand can push or pull with up to ``force`` (N) at ``height`` (m) above the deck.

    Both defaults are assumptions of ours (a hand rail, a firm one-handed grip), to be set by the user.
    """

    height: float = 1.0
    force: float = 150.0

    def __post_init__(self) -> None:
        """Refuse rails nobody can hold."""
        check_number(self.height, what="rail: height", unit="m", low=0.1, high=2.5, error=ResultError)
        check_number(self.force, what="rail: force", unit="N", low=0, high=2000, error=ResultError)

    def helped(self, margin: Array, force: Array) -> tuple[Array, Array]:
        """Stance margin and horizontal force left to the feet when the hand does all it can; force n × 3, N.

        A horizontal hand force H moves the feet's centre of pressure by H·height/Fz towards the stance, and takes H
        off the friction, both in the same direction: one who is thrown forward is pulled back by the rail.
        """
        up = np.where(force[:, 2] > 0, force[:, 2], np.nan)
        sideways = np.hypot(force[:, 0], force[:, 1])
        return margin + self.force * self.height / up, np.maximum(sideways - self.force, 0)


@dataclass(frozen=True)
class Interruptions:
    """Counted events: when (s), why, over how long (s), and how surely: 95 % limits of the rate per minute.

    ``clumping``: variance over mean of counts; above 1 because high waves come in groups (1.3 to 1.8 in beam seas).
    ``margin``: distribution of the stance margin (``margin_distribution``); empty where it was nowhere known.
    """

    time: Array
    cause: tuple[str, ...]
    duration: float
    worst_start: float
    clumping: float = 1.0
    confidence: float = 0.95
    margin: dict[str, float] = field(default_factory=dict)

    @property
    def per_minute(self) -> float:
        """Events per minute."""
        return 60 * len(self.time) / self.duration

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence limits of the rate per minute: Garwood's for a Poisson count of clumps instead of events."""
        low, high = poisson_interval(len(self.time) / self.clumping, self.duration, self.confidence)
        return self.clumping * low, self.clumping * high

    def by_cause(self) -> dict[str, int]:
        """How many events each cause had."""
        return {name: self.cause.count(name) for name in CAUSES}

    def summary(self) -> dict[str, Any]:
        """Headline figures, ready for JSON."""
        low, high = self.interval
        return {
            "interruptions": len(self.time),
            "interruptions_by_cause": self.by_cause(),
            "interruptions_per_minute": round(self.per_minute, 4),
            "interruptions_per_minute_95_percent": [round(low, 4), round(high, 4)],
            "worst_10_s_start_s": round(self.worst_start, 3),
            "stance_margin_percentiles_mm": {
                name.removeprefix("percentile_"): round(1000 * value, 3)
                for name, value in self.margin.items()
                if name.startswith("percentile_")
            },
        }


def poisson_interval(count: float, duration: float, confidence: float = 0.95) -> tuple[float, float]:
    """Exact limits of a Poisson rate per minute from a count in ``duration`` s (counts of clumps may be fractions)."""
    tail = (1 - confidence) / 2
    low = float(chi2.ppf(tail, 2 * count)) / 2 if count else 0.0
    return 60 * low / duration, 60 * float(chi2.isf(tail, 2 * count + 2)) / 2 / duration


def count_events(
    time: Array, margin: Array, force: Array, *, friction: float, refractory: float = 1.0, rail: Rail | None = None
) -> Interruptions:
    """Count interruptions along a run.

    time (n, s, even steps); margin (n, m): of the centre of pressure inside the stance; force (n × 3, N): deck on
    person. Unsafe is: no push up (lift-off), margin below zero (tip), sideways force above friction times the
    vertical one (slide). An event begins where a safe moment is followed by an unsafe one, and not within
    ``refractory`` s after the last event began: one stumble counts once.
    """
    if len(time) < 2:
        raise ResultError("interruptions are counted along a run of at least two rows")
    check_number(refractory, what="refractory time", unit="s", low=0, high=60, error=ResultError)
    check_number(friction, what="friction", unit="", low=0.01, high=5, error=ResultError)
    sideways = np.hypot(force[:, 0], force[:, 1])
    if rail is not None:
        margin, sideways = rail.helped(margin, force)
    lifted = ~(force[:, 2] > 0)
    unsafe = np.column_stack((lifted, ~(margin >= 0) & ~lifted, (sideways > friction * force[:, 2]) & ~lifted))
    events, causes = _edges(time, unsafe, refractory)
    step = float(time[1] - time[0])
    duration = len(time) * step
    return Interruptions(
        events,
        causes,
        duration,
        worst_clip(time, margin),
        clumping(events - float(time[0]), duration),
        margin=margin_distribution(margin) if np.isfinite(margin).any() else {},
    )


def clumping(times: Array, duration: float, *, window: float = 120.0) -> float:
    """Variance over mean of the counts in windows of 120 s, at least 1; 1 where ten events or windows are missing."""
    windows = int(duration // window)
    if len(times) < 10 or windows < 10:
        return 1.0
    counts = np.histogram(times, np.arange(windows + 1) * window)[0]
    return max(1.0, float(counts.var(ddof=1) / counts.mean())) if counts.any() else 1.0


def worst_clip(time: Array, margin: Array, *, length: float = 10.0) -> float:
    """Where the ``length`` s with the smallest mean stance margin begin, s; no push from the deck counts as worst."""
    window = min(len(time) - 1, round(length / float(time[1] - time[0])))
    known = np.where(np.isnan(margin), np.nanmin(margin, initial=0.0), margin)
    sums = np.concatenate(([0.0], np.cumsum(known)))
    return float(time[int(np.argmin(sums[window:] - sums[:-window]))])


def _edges(time: Array, unsafe: Bools, refractory: float) -> tuple[Array, tuple[str, ...]]:
    any_cause = np.asarray(unsafe.any(axis=1))
    rising = np.flatnonzero(np.diff(any_cause.astype(int), prepend=0) > 0)
    events: list[int] = []
    for row in rising:
        if not events or time[row] - time[events[-1]] >= refractory:
            events.append(int(row))
    return time[events], tuple(CAUSES[int(np.argmax(unsafe[row]))] for row in events)


def count_run(
    dataset: xr.Dataset, *, friction: float = 0.70, refractory: float = 1.0, rail: Rail | None = None
) -> Interruptions:
    """Interruptions of a simulated person, from a result that has a stance margin."""
    if "stance_margin" not in dataset:
        raise ResultError("the result has no stance_margin; use a body whose sidecar names its contact areas")
    return count_events(
        dataset.time.values,
        dataset["stance_margin"].values,
        dataset["force_deck_on_person"].values,
        friction=friction,
        refractory=refractory,
        rail=rail,
    )


def disagreement(dataset: xr.Dataset, *, friction: float = 0.70) -> dict[str, Any]:
    """How far Graham's rigid person is from the simulated one along a run: the person of the same body, held stiff.

    Largest distance between the two centres of pressure, share of rows in which one is outside the stance and the
    other is not, and the rigid person's events. For a body with all joints locked the distance is a mm or two at 14°
    of roll and vanishes faster than the square of the motion; a person who sways differs at any size of motion.
    """
    from posture.body import body_from_text
    from posture.contact import stance_margin
    from posture.deck import DeckSamples

    attributes = dataset.attrs
    body = body_from_text(attributes["body"], attributes["body_urdf"], json.loads(attributes["body_sidecar"]))
    body = body.lock(json.loads(attributes["body_locked"]))
    person, center = RigidPerson.of(body, friction=friction), body.center_of_mass()
    names = ("angular_velocity", "angular_acceleration", "specific_force", "position", "quaternion")
    deck = DeckSamples(dataset.time.values, *(dataset[f"deck_{name}"].values for name in names))
    rigid = person.pressure(deck) + center[:2]
    margin = stance_margin(rigid, body.contact_polygon())
    apart = np.hypot(*(rigid - dataset["position_cop_on_deck"].values).T)
    counted = count_events(deck.time, margin, body.mass * person.push(deck), friction=friction)
    return {
        "rigid_person_cop_difference_max_mm": round(1000 * float(np.nanmax(apart)), 3),
        "rigid_person_decides_differently_percent": round(
            100 * float(np.mean((margin >= 0) != (dataset["stance_margin"].values >= 0))), 3
        ),
        "rigid_person_interruptions": len(counted.time),
    }


def count_rigid(
    deck: DeckSamples,
    person: RigidPerson,
    *,
    mass: float = 80.0,
    refractory: float = 1.0,
    rail: Rail | None = None,
) -> Interruptions:
    """Interruptions of Graham's rigid person on a deck motion (even time steps); mass in kg matters only to a rail."""
    point = np.abs(person.pressure(deck))
    margin = np.minimum(person.half_length - point[:, 0], person.half_width - point[:, 1])
    return count_events(
        deck.time,
        margin,
        mass * person.push(deck),
        friction=person.friction,
        refractory=refractory,
        rail=rail,
    )


def crossing_rates(response: Response, person: RigidPerson) -> dict[str, float]:
    """Interruptions per minute of the rigid person by the level-crossing formula, for each way to lose balance.

    Sideways, tipping to one side is s(t) - (l/h) z'' > (l/h) g with s = (h + k²/h) φ'' - y'' - g φ, to the other
    -s(t) - (l/h) z'' > (l/h) g; fore and aft likewise with x'' - g θ + (h + k²/h) θ''. Sliding compares the force at
    the centre of mass with friction, each axis alone. Rare events only: near one per cycle the formula counts
    crossings, not stumbles. Rails and refractory times are not in it.
    """
    g = STANDARD_GRAVITY
    felt, spin = response.felt(), response.angular_acceleration
    lateral, fore_aft = person.levers
    signals = {
        "tip_lateral": (lateral * spin[0] - felt[1], person.half_width / person.height),
        "tip_fore_aft": (fore_aft * spin[1] + felt[0], person.half_length / person.height),
        "slide_lateral": (felt[1] - person.height * spin[0], person.friction),
        "slide_fore_aft": (felt[0] + person.height * spin[1], person.friction),
    }
    up = response.acceleration[2]
    return {
        name: 60 * sum(response.crossings(side * signal - ratio * up, ratio * g) for side in (1, -1))
        for name, (signal, ratio) in signals.items()
    }


def margin_distribution(margin: Array, *, percentiles: tuple[float, ...] = (0.1, 1, 5, 25, 50)) -> dict[str, float]:
    """How near to the edge the centre of pressure comes: percentiles of the stance margin in m, and time outside."""
    known = margin[np.isfinite(margin)]
    if not len(known):
        raise ResultError("the stance margin is nowhere known: the deck never pushes up")
    found = {f"percentile_{level:g}": float(np.percentile(known, level)) for level in percentiles}
    return found | {"smallest": float(known.min()), "share_outside": float(np.mean(~(margin >= 0)))}
