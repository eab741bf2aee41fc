"""A scenario: one small TOML file that says who stands where, how the deck moves and how the person balances.

Every key has a default; the README shows a whole file. Lengths in m, times in s, angles in
degrees where the key ends in ``_deg``.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controllers import PD, PID, Controller, ControllerError, Relaxed
from posture.anthropometry import Person
from posture.balance import Balance
from posture.body import Body, load_body
from posture.deck import MOTIONS, DeckMotion, Sine, SineDeck, constant_deck, read_imu_csv
from posture.elements import Line, read_elements
from posture.errors import BodyError, ScenarioError, check_number, find_name
from posture.laws import NAMES, make_law
from posture.segments import lyapunov
from posture.ship.stance import Stance
from posture.simulate import Run, prepare

Array = NDArray[np.floating]

CONTROLLERS = ("pd", "pid", "relaxed", "lyapunov")
DECKS = ("sines", "imu", "constant", "sea", "log")
STARTS = ("balanced", "upright")


@dataclass(frozen=True)
class Scenario:
    """A checked scenario; ``text`` is the TOML it came from and goes into every result."""

    text: str
    source: Path
    settings: dict[str, Any]
    title: str
    seed: int

    def body(self) -> Body:
        """Load, scale and lock the body."""
        name = self.settings.get("body", "ship_stance")
        if not isinstance(name, str):
            raise ScenarioError(f"{self.source}: body is {name!r}; give a name or a path in quotes")
        nearby = self.source.parent / name
        body = load_body(nearby if name.endswith(".urdf") and nearby.is_file() else name, person=self.person())
        locked = self.settings.get("locked", [])
        if isinstance(locked, dict):
            locked = {joint: math.radians(self._number(locked, joint, "locked", 0, -180, 180)) for joint in locked}
        elif not (isinstance(locked, list) and all(isinstance(joint, str) for joint in locked)):
            raise ScenarioError(
                f"{self.source}: locked must be a list of joint names, or a table of joint = angle in degrees"
            )
        return self.stance().body(body.lock(locked))

    def stance(self) -> Stance:
        """How the person stands and where they look."""
        from posture.ship.settings import stance_from_table

        return stance_from_table(self._table("stance"), f"{self.source}: [stance]")

    def person(self) -> Person | None:
        """Whose size the body gets, if the scenario says so."""
        person = self._table("person")
        if not person:
            return None
        self._known(person, ("mass", "height", "sex"), "person")
        missing = [key for key in ("mass", "height", "sex") if key not in person]
        if missing:
            raise ScenarioError(
                f"{self.source}: [person] lacks {', '.join(missing)}; give mass (kg), height (m) and sex"
            )
        try:
            return Person(**person)
        except BodyError as error:
            raise ScenarioError(f"{self.source}: {error}") from None

    def deck(self) -> DeckMotion:
        """Build the deck motion; phases that are not given are drawn from the seed."""
        deck = self._table("deck")
        kind = find_name(
            deck.get("type", "constant"), DECKS, what="deck type", where=str(self.source), error=ScenarioError
        )
        if kind in ("sea", "log"):
            from posture.ship.settings import deck_from_table

            return deck_from_table(deck, self.source, self.seed)
        if kind == "imu":
            self._known(deck, ("type", "file", "cutoff_hz"), "deck")
            if not isinstance(deck.get("file"), str):
                raise ScenarioError(f'{self.source}: [deck] of type imu needs file = "record.csv"')
            return read_imu_csv(
                self.source.parent / deck["file"], cutoff_hz=self._number(deck, "cutoff_hz", "deck", 2.0, 0.01, 1e4)
            )
        if kind == "constant":
            self._known(deck, ("type", "roll_deg", "pitch_deg"), "deck")
            roll, pitch = (
                math.radians(self._number(deck, key, "deck", 0.0, -60, 60)) for key in ("roll_deg", "pitch_deg")
            )
            return constant_deck(roll=roll, pitch=pitch)
        self._known(deck, ("type", "station", *MOTIONS), "deck")
        station = deck.get("station", [0.0, 0.0, 0.0])
        if not (isinstance(station, list) and len(station) == 3):
            raise ScenarioError(
                f"{self.source}: [deck] station must be three numbers, x, y, z in m from the ship's reference point"
            )
        generator = np.random.default_rng(self.seed)
        return SineDeck(
            {motion: self._sines(motion, deck[motion], generator) for motion in MOTIONS if motion in deck},
            station=station,
        )

    def _sines(self, motion: str, parts: Any, generator: np.random.Generator) -> list[Sine]:
        angular = motion in MOTIONS[3:]
        key, unit = ("amplitude_deg", math.pi / 180) if angular else ("amplitude", 1.0)
        where = f"deck.{motion}"
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise ScenarioError(f"{self.source}: [{where}] must be a list such as [{{ {key} = 1.0, period = 8.0 }}]")
        sines = []
        for part in parts:
            self._known(part, (key, "period", "phase_deg"), where)
            for needed in (key, "period"):
                if needed not in part:
                    raise ScenarioError(f"{self.source}: an entry of {where} lacks {needed}")
            phase = self._number(part, "phase_deg", where, math.degrees(generator.uniform(0, 2 * math.pi)), -1e6, 1e6)
            amplitude = self._number(part, key, where, 0.0, 0, 90 if angular else 100)
            sines.append(
                Sine(amplitude * unit, self._number(part, "period", where, 0.0, 0.05, 3600), math.radians(phase))
            )
        return sines

    def controller(self, body: Body, deck: DeckMotion | None = None) -> Controller:
        """Build the controller for a body; laws that may know the deck's motion know ``deck`` (the scenario's own).

        Stiffness is ``stiffness_ratio`` times what each joint needs against toppling (m·g·l), damping is stiffness
        times ``damping_time``; both so that they carry over to any body. Single joints are set by name.
        """
        table = self._table("controller")
        kind = find_name(
            table.get("type", "pd"),
            dict.fromkeys((*CONTROLLERS, *NAMES)),
            what="controller type",
            where=str(self.source),
            error=ScenarioError,
        )
        if kind not in CONTROLLERS:
            self._known(table, ("type", "delay"), "controller")
            try:
                return make_law(
                    kind,
                    body,
                    self.stance().deck(self.deck()) if deck is None else deck,
                    step=self._step(),
                    duration=self._duration(),
                    seed=self.seed,
                    delay=self._number(table, "delay", "controller", 0.0, 0, 10),
                )
            except (ControllerError, ScenarioError) as error:
                raise ScenarioError(f"{self.source}: [controller] {error}") from None
        if kind == "relaxed":
            self._known(table, ("type",), "controller")
            return Relaxed(body.joint_names)
        if kind == "lyapunov":
            return self._lyapunov(table, body)
        allowed = [
            "type",
            "stiffness_ratio",
            "damping_time",
            "stiffness",
            "damping",
            "reference_deg",
            "gravity_compensation",
        ]
        self._known(table, (*allowed, "integral_rate", "integral") if kind == "pid" else allowed, "controller")
        ratio = self._number(table, "stiffness_ratio", "controller", 4.0, 0, 1e4)
        stiffness = {joint: ratio * value for joint, value in body.toppling_stiffness().items()}
        stiffness |= self._gains(table, "stiffness", body)
        damping_time = self._number(table, "damping_time", "controller", 0.04, 0, 100)
        damping = {joint: damping_time * value for joint, value in stiffness.items()} | self._gains(
            table, "damping", body
        )
        reference = {joint: math.radians(value) for joint, value in self._gains(table, "reference_deg", body).items()}
        compensate = table.get("gravity_compensation", False)
        if not isinstance(compensate, bool):
            raise ScenarioError(f"{self.source}: gravity_compensation is {compensate!r}; write true or false")
        gravity = body.gravity_torque if compensate else None
        try:
            if kind == "pd":
                return PD(
                    body.joint_names, stiffness=stiffness, damping=damping, reference=reference, gravity_torque=gravity
                )
            integral_rate = self._number(table, "integral_rate", "controller", 0.2, 0, 100)
            integral = {joint: integral_rate * value for joint, value in stiffness.items()} | self._gains(
                table, "integral", body
            )
            return PID(
                body.joint_names,
                stiffness=stiffness,
                damping=damping,
                integral=integral,
                reference=reference,
                gravity_torque=gravity,
            )
        except ControllerError as error:
            raise ScenarioError(f"{self.source}: {error}") from None

    def _lyapunov(self, table: dict[str, Any], body: Body) -> Controller:
        """Every segment drawn upright by springs in proportion to its mass, with a Lyapunov function to show for it."""
        self._known(
            table, ("type", "rotation", "translation", "damping_time", "attitude", "torque_limit"), "controller"
        )
        limit = self._number(table, "torque_limit", "controller", 1e9, 0, 1e9)
        try:
            return lyapunov(
                body,
                rotation=self._number(table, "rotation", "controller", 100.0, 1e-6, 1e6),
                translation=self._number(table, "translation", "controller", 25.0, 1e-6, 1e6),
                damping_time=self._number(table, "damping_time", "controller", 0.2, 1e-6, 100),
                attitude=table.get("attitude", "rotation"),
                limits=limit,
            )
        except ControllerError as error:
            raise ScenarioError(f"{self.source}: {error}") from None

    def _gains(self, table: dict[str, Any], key: str, body: Body) -> dict[str, float]:
        gains = table.get(key, {})
        if not isinstance(gains, dict):
            raise ScenarioError(
                f"{self.source}: [controller] {key} must be a table of joint "
                f"= number, such as {{ {body.joint_names[0]} = 100.0 }}"
            )
        for joint in gains:
            find_name(
                joint, body.joint_names, what="joint", where=f"{self.source}: [controller] {key}", error=ScenarioError
            )
        return {joint: self._number(gains, joint, f"controller.{key}", 0.0, -1e9, 1e9) for joint in gains}

    def start(self, balance: Balance, deck: DeckMotion) -> tuple[Array, Array]:
        """Joint positions and velocities at time 0.

        Unless the scenario says otherwise the person already stands balanced on the moving deck; where no such posture
        exists (nobody controls, or too weakly) or elements pull as well, upright and at rest.
        """
        upright = balance.body.neutral, np.zeros(len(balance.body.joint_names))
        asked = self.settings.get("start")
        if asked is not None:
            find_name(asked, STARTS, what="start", where=str(self.source), error=ScenarioError)
        alone = isinstance(balance.controller, Relaxed) or "element" in self.settings
        if asked == "upright" or (asked is None and alone):
            return upright
        try:
            return balance.start(deck)
        except ScenarioError:
            if asked is None:
                return upright
            raise

    def elements(self) -> list[Line]:
        """Ligaments, muscles, rods and cables between links."""
        return read_elements(self.settings.get("element", []), str(self.source))

    def run(self, engine: str = "auto") -> Run:
        """Everything put together and checked, ready to compute; ``engine`` as in ``simulate.prepare``."""
        body, deck = self.body(), self.stance().deck(self.deck())
        controller = self.controller(body, deck)
        position, velocity = self.start(Balance(body, controller), deck)
        output_step = None
        if "output_step" in self.settings:
            output_step = self._number(self.settings, "output_step", "", 0.0, 1e-6, 3600)
        return prepare(
            body,
            deck,
            controller,
            duration=self._duration(),
            step=self._step(),
            output_step=output_step,
            start_position=position,
            start_velocity=velocity,
            elements=self.elements(),
            seed=self.seed,
            scenario=self.text,
            engine=engine,
        )

    def _step(self) -> float:
        return self._number(self.settings, "step", "", 0.005, 1e-6, 0.1)

    def _duration(self) -> float:
        return self._number(self.settings, "duration", "", 60.0, 1e-3, 1e6)

    def _table(self, key: str) -> dict[str, Any]:
        table = self.settings.get(key, {})
        if not isinstance(table, dict):
            raise ScenarioError(f"{self.source}: {key} is {table!r}; it must be a table, [{key}]")
        return table

    def _known(self, table: dict[str, Any], allowed: Any, where: str) -> None:
        for key in table:
            find_name(key, allowed, what="setting", where=f"{self.source}: [{where}]", error=ScenarioError)

    def _number(self, table: dict[str, Any], key: str, where: str, default: float, low: float, high: float) -> float:
        name = f"{self.source}: {where + '.' if where else ''}{key}"
        return check_number(table.get(key, default), what=name, unit="", low=low, high=high, error=ScenarioError)


TOP_LEVEL = (
    "title",
    "body",
    "person",
    "locked",
    "stance",
    "deck",
    "controller",
    "element",
    "start",
    "duration",
    "step",
    "output_step",
    "seed",
)


def parse_scenario(text: str, source: Path, *, overrides: Mapping[str, str | float] | None = None) -> Scenario:
    """Check a scenario's text; ``overrides`` (body, seed, duration…) are written into it, so it still tells all."""
    for key, value in (overrides or {}).items():
        text = _override(text, key, value)
    try:
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(f"{source}: not valid TOML ({error})") from None
    for key in settings:
        find_name(key, TOP_LEVEL, what="setting", where=str(source), error=ScenarioError)
    title, seed = settings.get("title", source.stem), settings.get("seed", 0)
    if not isinstance(title, str):
        raise ScenarioError(f"{source}: title is {title!r}; write it in quotes")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ScenarioError(f"{source}: seed is {seed!r}; it must be a whole number from 0 up")
    return Scenario(text, source, settings, title, seed)


def _override(text: str, key: str, value: str | float) -> str:
    """Replace a one-line top-level setting, or put it first."""
    shown = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
    lines = text.splitlines()
    end = next((index for index, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    kept = [line for line in lines[:end] if not re.match(rf"\s*{key}\s*=", line)]
    return "\n".join([f"{key} = {shown}", *kept, *lines[end:], ""])


def read_scenario(path: str | Path, *, overrides: Mapping[str, str | float] | None = None) -> Scenario:
    """Read a scenario from a .toml file."""
    path = Path(path)
    if not path.is_file():
        raise ScenarioError(
            f"{path}: no such file; give the path of a scenario in TOML (`posture demo` writes one to start from)"
        )
    if path.stat().st_size > 1_000_000:
        raise ScenarioError(f"{path}: larger than 1 MB; is this a scenario?")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (UnicodeDecodeError, OSError) as error:
        raise ScenarioError(f"{path}: cannot be read as text ({error})") from None
    return parse_scenario(text, path, overrides=overrides)
