"""What an ensemble consists of: a scenario, how many runs, and what differs between them.

Run r draws everything from the seed and r alone, so any run can be computed anywhere, in any order.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from controllers import Controller
from posture.balance import Balance
from posture.body import Body, body_from_text
from posture.deck import DeckMotion, channels_of
from posture.elements import Line
from posture.engine.events import Events
from posture.engine.machine import Batch, Statistics
from posture.engine.program import Program
from posture.engine.tables import HasTable, Samples, Table
from posture.errors import ScenarioError, check_number, find_name
from posture.scenario import Scenario, parse_scenario
from posture.simulate import FALLEN_SHARE, GIMBAL_LIMIT, Dynamics, Run, with_elements

Array = NDArray[np.floating]

BINS = 1000
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
VARIED_TABLES = ("person", "controller", "deck")
# name: column of force, moment, com or pressure after the joints' own; histogram range; unit. A stance is within a
# metre, a centre of mass below two, and vertical force within four times the weight of the heaviest person.
SIGNALS: dict[str, tuple[int, float, float, str]] = {
    "force_x": (0, -2000.0, 2000.0, "N"),
    "force_y": (1, -2000.0, 2000.0, "N"),
    "force_z": (2, 0.0, 4000.0, "N"),
    "com_x": (6, -1.0, 1.0, "m"),
    "com_y": (7, -1.0, 1.0, "m"),
    "com_z": (8, 0.0, 2.0, "m"),
    "cop_x": (9, -1.0, 1.0, "m"),
    "cop_y": (10, -1.0, 1.0, "m"),
    "stance_margin": (11, -1.0, 1.0, "m"),
}


@dataclass(frozen=True)
class Draw:
    """A distribution: normal(mean, sd), normal(mean, sd, low, high), uniform(low, high) or choice(a, b, …)."""

    kind: str
    arguments: tuple[float | str, ...]

    @classmethod
    def parse(cls, text: str, where: str) -> Draw:
        """Read "normal(80, 10)" and its kin."""
        match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text)
        kinds = {"normal": (2, 4), "uniform": (2,), "choice": range(1, 1000)}
        if not match:
            raise ScenarioError(
                f"{where}: {text!r} is no distribution; write uniform(3, 8), normal(80, 10) or choice(a, b)"
            )
        kind = find_name(match[1], kinds, what="distribution", where=where, error=ScenarioError)
        words = [word.strip() for word in match[2].split(",")]
        arguments: list[float | str] = []
        for word in words:
            try:
                arguments.append(float(word))
            except ValueError:
                if kind != "choice" or not word:
                    raise ScenarioError(f"{where}: {word!r} in {text!r} is not a number") from None
                arguments.append(word)
        if len(arguments) not in kinds[kind] or not all(np.isfinite(v) for v in arguments if isinstance(v, float)):
            raise ScenarioError(f"{where}: {text!r} has {len(arguments)} arguments; see `posture ensemble --help`")
        if kind == "uniform" and float(arguments[0]) > float(arguments[1]):
            raise ScenarioError(f"{where}: {text!r} has its lower end above the upper one; swap them")
        if kind == "normal" and (
            float(arguments[1]) < 0 or (len(arguments) == 4 and float(arguments[2]) >= float(arguments[3]))
        ):
            raise ScenarioError(f"{where}: {text!r} needs a standard deviation of 0 or more, and low below high")
        return cls(kind, tuple(arguments))

    def draw(self, generator: np.random.Generator) -> float | str:
        """One value."""
        if self.kind == "choice":
            return self.arguments[int(generator.integers(len(self.arguments)))]
        first, second, *limits = (float(value) for value in self.arguments)
        if self.kind == "uniform":
            return float(generator.uniform(first, second))
        for _ in range(1000):
            value = float(generator.normal(first, second))
            if not limits or limits[0] <= value <= limits[1]:
                return value
        raise ScenarioError(f"normal({first:g}, {second:g}) hardly ever falls between {limits[0]:g} and {limits[1]:g}")


@dataclass(frozen=True)
class Plan:
    """An ensemble. ``vary``: path in the scenario ("person.mass") to distribution; ``same_sea`` keeps one seed.

    An event is a step of the centre of pressure out of the stance, or the loss of all pressure, that begins at least
    ``refractory`` s after the last one began.
    """

    scenario: Scenario
    runs: int
    vary: Mapping[str, str]
    seed: int
    signals: tuple[str, ...] = tuple(SIGNALS)
    refractory: float = 1.0
    same_sea: bool = False

    def __post_init__(self) -> None:
        check_number(self.runs, what="runs", unit="", low=1, high=1e8, error=ScenarioError)
        check_number(self.refractory, what="refractory", unit="s", low=0, high=3600, error=ScenarioError)
        for name in self.signals:
            find_name(name, SIGNALS, what="signal", where="ensemble", error=ScenarioError)
        for path in self.vary:
            table, _, key = path.partition(".")
            find_name(table, VARIED_TABLES, what="table", where=f"--vary {path}", error=ScenarioError)
            if not key:
                raise ScenarioError(f"--vary {path}: name a setting of the table, such as person.mass")

    def text(self) -> str:
        """The whole plan as JSON; ``Plan.of_text`` makes it again, here or on another machine."""
        return json.dumps(
            {
                "scenario": self.scenario.text,
                "source": str(self.scenario.source.resolve()),
                "runs": self.runs,
                "vary": dict(self.vary),
                "seed": self.seed,
                "signals": self.signals,
                "refractory": self.refractory,
                "same_sea": self.same_sea,
            },
            sort_keys=True,
        )

    @classmethod
    def of_text(cls, text: str) -> Plan:
        """Read what ``text`` wrote."""
        found = json.loads(text)
        scenario = parse_scenario(found.pop("scenario"), Path(found.pop("source")))
        return cls(scenario, **found | {"signals": tuple(found["signals"])})

    @property
    def sha256(self) -> str:
        """Fingerprint of the plan, wherever the scenario file lies."""
        return hashlib.sha256(json.dumps(json.loads(self.text()) | {"source": ""}).encode()).hexdigest()

    @property
    def part_size(self) -> int:
        """Runs per part: a multiple of every lane width, from the number of runs alone."""
        return min(256, max(16, -(-self.runs // 512) * 16))

    @property
    def parts(self) -> int:
        """Number of parts."""
        return -(-self.runs // self.part_size)

    # ------------------------------------------------------------ single runs

    @cached_property
    def _draws(self) -> dict[str, Draw]:
        return {path: Draw.parse(text, f"--vary {path}") for path, text in sorted(self.vary.items())}

    def settings_of(self, run: int) -> tuple[Scenario, dict[str, float | str]]:
        """The scenario of one run and the values drawn for it."""
        generator = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(run,)))
        drawn = {path: draw.draw(generator) for path, draw in self._draws.items()}
        seed = self.scenario.seed if self.same_sea else int(generator.integers(2**62))
        settings = self.scenario.settings
        if drawn:
            settings = copy.deepcopy(settings)
        for path, value in drawn.items():
            *tables, key = path.split(".")
            place = settings
            for table in tables:
                place = place.setdefault(table, {})
            place[key] = value
        return replace(self.scenario, settings=settings, seed=seed), drawn

    @cached_property
    def first(self) -> Run:
        """The first run, checked as a single simulation would be."""
        return self.settings_of(0)[0].run()

    def _varies(self, table: str) -> bool:
        return any(path.startswith(table + ".") for path in self.vary)

    @cached_property
    def _common_body(self) -> Body:
        return self.scenario.body()

    @cached_property
    def _bare(self) -> Body:
        """The unscaled body without its shapes: quicker to scale to thousands of persons."""
        plain = replace(
            self.scenario, settings={k: v for k, v in self.scenario.settings.items() if k != "person"}
        ).body()
        root = etree.fromstring(plain.urdf.encode())
        for shape in [*root.iter("visual"), *root.iter("collision")]:
            shape.getparent().remove(shape)
        bare = body_from_text(plain.name, etree.tostring(root, encoding="unicode"), plain.sidecar)
        return bare.lock(plain.locked) if plain.locked else bare

    def body_of(self, scenario: Scenario) -> Body:
        """The body of one run."""
        person = scenario.person()
        return self._bare.scaled(person) if self._varies("person") and person else self._common_body

    @cached_property
    def _common_controller(self) -> Controller:
        return self.scenario.controller(self._common_body)

    @cached_property
    def program(self) -> Program:
        """Formulas for all persons of the plan."""
        bodies = [self.body_of(self.settings_of(run)[0]) for run in range(min(self.runs, 4))]
        elements = Dynamics(bodies[0], self._lines).elements
        return Program(bodies, self.scenario.controller(bodies[0]), elements.lines if elements else [])

    @cached_property
    def _lines(self) -> list[Line]:
        return self.scenario.elements()

    def batch(self, runs: range) -> tuple[Batch, Array]:
        """Some runs ready to compute, and the numbers drawn for them (choices as their place in the list)."""
        parameters: list[Array] = []
        tables: list[Table] = []
        outlines: list[Array] = []
        lowest: list[float] = []
        drawn_numbers: list[list[float]] = []
        sample = self.first
        steps = round(sample.duration / sample.step)
        decks: list[DeckMotion] = []
        starts: list[Array] = []
        events: list[Events] = []
        balance: Balance | None = None
        last: Body | None = None
        for run in runs:
            scenario, drawn = self.settings_of(run)
            body = self.body_of(scenario)
            fresh = self._varies("person") or self._varies("controller")
            controller = scenario.controller(body) if fresh else self._common_controller
            new_deck = not self.same_sea or self._varies("deck") or not decks
            deck = scenario.stance().deck(scenario.deck()) if new_deck else decks[0]
            if sample.duration > deck.duration + 1e-9:
                raise ScenarioError(f"run {run}: the deck motion lasts only {deck.duration:g} s; shorten the run")
            decks.append(deck)
            same = body is last and not fresh
            tables.append(table_of(deck, steps, sample.step) if deck is not decks[0] or not tables else tables[0])
            if body.contact_names:
                outlines.append(outlines[-1] if body is last else body.contact_polygon())
                lowest.append(lowest[-1] if body is last else FALLEN_SHARE * body.center_of_mass()[2])
            if balance is None or not same:
                balance = Balance(body, controller)
            position, velocity = scenario.start(balance, deck)
            starts.append(np.concatenate((position, velocity, np.zeros(controller.memory_size))))
            if self._lines:  # lengths that are not said are those of this start
                dynamics = with_elements(body, self._lines, position, velocity, where=f"run {run}: ")
                assert dynamics.elements is not None  # for the type checker: there are lines
                parameters.append(self.program.parameters(body, controller, dynamics.elements.lines))
                if self.program.elements.cables:
                    events.append(Events(dynamics, controller))
            else:
                parameters.append(parameters[-1] if same else self.program.parameters(body, controller))
            last = body
            drawn_numbers.append(
                [
                    float(self._draws[path].arguments.index(value))
                    if self._draws[path].kind == "choice"
                    else float(value)
                    for path, value in drawn.items()
                ]
            )
        batch = Batch(
            np.array(parameters),
            np.array(starts),
            tables,
            steps,
            sample.step,
            sample.every,
            keep_start=True,
            outlines=outlines,
            lowest=np.array(lowest) if lowest else None,
            gimbals=[sample.body.joint_index(name) for name in sample.body.gimbal_joints],
            gimbal_limit=GIMBAL_LIMIT,
            events=events,
        )
        return batch, np.array(drawn_numbers).reshape(len(runs), len(self._draws))

    def statistics(self) -> Statistics:
        """Empty statistics for the plan's signals."""
        joints, states = self.program.joints, self.program.states
        between = self.program.measures - (2 * joints + 9)  # holding moments and elements, before the pressure
        columns = []
        for name in self.signals:
            offset = SIGNALS[name][0]
            columns.append(states + 2 * joints + offset + (between if offset > 8 else 0))
        low, high = (np.array([SIGNALS[name][which] for name in self.signals]) for which in (1, 2))
        return Statistics(columns, low, high, BINS, self.refractory)


def table_of(deck: DeckMotion, steps: int, step: float) -> Table:
    """A deck's own table, or its samples at the half steps of a run."""
    if isinstance(deck, HasTable):
        return deck.table()
    return Samples(channels_of(deck.sample(np.arange(2 * steps + 1) * (step / 2))))
