"""Every controller on every body: one table of how they stand on a moving deck, and how much they forgive.

Each pair is run three times from the same upright start: as designed; on a body a tenth heavier than the controller was
told; and with everything it senses (deck motion included) 150 ms later. Sway is the larger RMS of the centre of mass
about its mean (forward or sideways), effort the RMS of all joint torques over body weight times height of the centre of
mass, MII the motion-induced interruptions per minute (ship/interruptions.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from posture.body import STANDARD_GRAVITY, Body
from posture.deck import DeckMotion
from posture.errors import GaveUp, PostureError, ScenarioError, SimulationStopped, check_number
from posture.laws import heavier, make_law
from posture.ship.interruptions import count_run
from posture.simulate import simulate
from posture.swap import stand

CASES = {"as designed": (1.0, 0.0), "10 % heavier": (1.1, 0.0), "150 ms later": (1.0, 0.15)}
BODIES = ("cip", "ankle_hip", "ship_stance", "jump")
BENT = 20  # degrees; who ends up so has not fallen, but does not stand upright either


@dataclass(frozen=True)
class Outcome:
    """One run: ``stood`` (s), ``sway_mm``, ``effort``, ``mii_per_minute``, largest joint angle (NaN: not known).

    ``ending``: stood, fell, gave up (the law found no torque) or not run; ``why`` it was not stood to the end.
    """

    body: str
    controller: str
    case: str
    ending: str
    stood: float
    sway_mm: float
    effort: float
    mii_per_minute: float
    bend_deg: float
    why: str = ""


def run_case(
    body: Body, controller: str, case: str, deck: DeckMotion, *, duration: float, step: float = 0.005, seed: int = 0
) -> Outcome:
    """Run one controller on one body in one of ``CASES``."""
    factor, delay = CASES[case]
    true = body if factor == 1.0 else heavier(body, factor)
    try:
        law = make_law(controller, body, deck, step=step, duration=duration, seed=seed, delay=delay)
        # A compiled law takes its feed-forward from the true body, so a wrong belief runs in the readable engine.
        engine = "reference" if factor != 1.0 and controller == "gravity_pd" else "auto"
        found = simulate(true, deck, law, duration=duration, step=step, output_step=4 * step, seed=seed, engine=engine)
        ending, why = "stood", ""
    except SimulationStopped as stopped:
        found, ending, why = stopped.partial, "gave up" if isinstance(stopped, GaveUp) else "fell", str(stopped)
    except PostureError as error:
        return Outcome(body.name, controller, case, "not run", 0.0, math.nan, math.nan, math.nan, math.nan, str(error))
    scale = true.mass * STANDARD_GRAVITY * true.center_of_mass()[2]
    torque, place = found["joint_torque"].values, found["position_com_in_deck"].values
    interruptions = count_run(found).per_minute if "stance_margin" in found and not why else math.nan
    return Outcome(
        body.name,
        controller,
        case,
        ending,
        float(found.time.values[-1]),
        1000 * float(place[:, :2].std(axis=0).max()),
        float(np.sqrt((torque**2).sum(axis=1).mean()) / scale),
        interruptions,
        math.degrees(float(np.abs(found["joint_position"].values - true.neutral).max())),
        why,
    )


def compare(
    bodies: Sequence[str | Body],
    controllers: Sequence[str],
    deck: DeckMotion,
    *,
    duration: float = 20.0,
    step: float = 0.005,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Outcome]:
    """All outcomes, body by body; foreign bodies are stood on their feet first. ``workers``: processes (all cores)."""
    check_number(duration, what="duration", unit="s", low=1, high=1e5, error=ScenarioError)
    stood = [stand(body) for body in bodies]
    jobs = [(_Texts.of(body), name, case) for body in stood for name in controllers for case in CASES]
    count = workers or os.cpu_count() or 1
    outcomes = []
    if count == 1:
        found = (_job(*job, deck, duration, step, seed) for job in jobs)
        for done, outcome in enumerate(found, start=1):
            outcomes.append(outcome)
            if progress:
                progress(done)
        return outcomes
    with ProcessPoolExecutor(count) as pool:
        waiting = [pool.submit(_job, *job, deck, duration, step, seed) for job in jobs]
        for done, future in enumerate(waiting, start=1):
            outcomes.append(future.result())
            if progress:
                progress(done)
    return outcomes


@dataclass(frozen=True)
class _Texts:
    """A body as text, which can be sent to another process."""

    name: str
    urdf: str
    sidecar: dict[str, Any]
    locked: dict[str, float]

    @classmethod
    def of(cls, body: Body) -> _Texts:
        return cls(body.name, body.urdf, body.sidecar, body.locked)


def _job(
    texts: _Texts, controller: str, case: str, deck: DeckMotion, duration: float, step: float, seed: int
) -> Outcome:
    from posture.body import body_from_text

    body = body_from_text(texts.name, texts.urdf, texts.sidecar)
    return run_case(body.lock(texts.locked), controller, case, deck, duration=duration, step=step, seed=seed)


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines for people: one per body and controller, the three cases side by side, or when and why it ended."""
    rows: dict[tuple[str, str], dict[str, Outcome]] = {}
    for one in outcomes:
        rows.setdefault((one.body, one.controller), {})[one.case] = one
    lines = [
        f"each case: sway mm / effort / interruptions per minute; * a joint bent by more than {BENT}°",
        f"{'':17}" + "".join(f"{case:>22}" for case in CASES),
    ]
    notes: list[str] = []
    body = ""
    for (name, controller), cases in rows.items():
        if name != body:
            lines.append(name)
            body = name
        cells = []
        for case in CASES:
            one = cases[case]
            if one.ending in ("not run", "gave up"):
                if one.why not in notes:
                    notes.append(one.why)
                at = f" at {one.stood:.1f} s" if one.ending == "gave up" else ""
                cells.append(f"{one.ending}{at} ({notes.index(one.why) + 1})")
            elif one.ending == "fell":
                cells.append(f"fell at {one.stood:.1f} s")
            else:
                rate = "-" if math.isnan(one.mii_per_minute) else f"{one.mii_per_minute:.0f}"
                folded = "*" if one.bend_deg > BENT else ""
                cells.append(f"{one.sway_mm:.1f} / {one.effort:.3f} / {rate}{folded}")
        lines.append(f"  {controller:15}" + "".join(f"{cell:>22}" for cell in cells))
    return lines + [f"({index}) {note}" for index, note in enumerate(notes, start=1)]
