"""Ships, seas, stations and people from TOML: the [deck] of a scenario, and voyage files for `posture ship`.

Degrees where a key ends in ``_deg``, otherwise SI. `posture ship template` prints a whole voyage file.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posture.deck import DeckMotion, check_station
from posture.errors import ScenarioError, check_number, find_name
from posture.ship.assess import Sailor
from posture.ship.criteria import CRITERIA
from posture.ship.hull import Hull, Ship, check_heading_deg, check_on_board, read_ship
from posture.ship.interruptions import Rail, RigidPerson
from posture.ship.motion import SeaDeck
from posture.ship.record import read_motion_log
from posture.ship.sea import WAVES, Sea, bretschneider, jonswap, pierson_moskowitz, read_ndbc, sea_state
from posture.ship.stance import Stance

Table = dict[str, Any]

HULL_KEYS = (
    "length",
    "beam",
    "draught",
    "metacentric_height",
    "roll_radius",
    "roll_damping",
    "added_roll_inertia",
    "name",
)
SEA_KEYS = {
    "state": ("state",),
    "bretschneider": ("height", "peak_period", "mean_period", "zero_crossing_period"),
    "jonswap": ("height", "peak_period", "peakedness"),
    "pierson_moskowitz": ("wind_speed",),
    "ndbc": ("file", "when"),
}


def _known(table: Any, allowed: Sequence[str], where: str) -> Table:
    if not isinstance(table, dict):
        raise ScenarioError(f"{where} is {table!r}; it must be a table")
    for key in table:
        find_name(key, allowed, what="setting", where=where, error=ScenarioError)
    return table


def _needed(table: Table, keys: Sequence[str], where: str) -> None:
    missing = [key for key in keys if key not in table]
    if missing:
        raise ScenarioError(f"{where} lacks {', '.join(missing)}")


def _file(table: Table, key: str, folder: Path, where: str) -> Path:
    if not isinstance(table[key], str):
        raise ScenarioError(f"{where}: {key} is {table[key]!r}; give a file name in quotes")
    return folder / str(table[key])


def _station(value: Any, where: str) -> list[float]:
    if not (isinstance(value, list) and len(value) == 3):
        raise ScenarioError(f"{where}: station must be three numbers, x forward, y to port, z up in m")
    return value


def ship_from_table(table: Any, folder: Path, where: str) -> Ship:
    """A ship: ``table`` = a file of transfer functions, or the dimensions of a hull."""
    table = _known(table, ("table", *HULL_KEYS), where)
    if "table" in table:
        _known(table, ("table", "length", "beam"), where)
        return read_ship(_file(table, "table", folder, where), length=table.get("length"), beam=table.get("beam"))
    _needed(table, ("length", "beam", "draught", "metacentric_height"), where)
    return Hull(**table)


def sea_from_table(table: Any, folder: Path, where: str) -> Sea:
    """A sea: ``state`` = a name, or ``type`` with its parameters; ``spreading`` for short crests."""
    kinds = [*SEA_KEYS][1:]
    everything = ("type", "spreading", *(key for keys in SEA_KEYS.values() for key in keys))
    table = _known(table, everything, where)
    kind = "state" if "state" in table else table.get("type", "bretschneider")
    if kind != "state":
        find_name(kind, kinds, what="type of sea", where=where, error=ScenarioError)
    _known(table, ("type", "spreading", *SEA_KEYS[kind]), f"{where} ({kind})")
    spreading = table.get("spreading")
    given = {key: value for key, value in table.items() if key in SEA_KEYS[kind]}
    if kind == "state":
        return sea_state(given["state"], spreading=spreading)
    if kind == "ndbc":
        _needed(given, ("file",), where)
        when = str(given.get("when", "mean"))
        return read_ndbc(_file(given, "file", folder, where), when=when, spreading=spreading)
    if kind == "pierson_moskowitz":
        _needed(given, ("wind_speed",), where)
        return pierson_moskowitz(**given, spreading=spreading)
    _needed(given, ("height", "peak_period") if kind == "jonswap" else ("height",), where)
    make = jonswap if kind == "jonswap" else bretschneider
    return make(**given, spreading=spreading)


def deck_from_table(table: Table, source: Path, seed: int) -> DeckMotion:
    """The deck of a scenario: type "sea" (ship, sea, heading_deg, speed) or "log" (file of measured motion)."""
    where, folder = f"{source}: [deck]", source.parent
    station = _station(table.get("station", [0.0, 0.0, 0.0]), where)
    if table["type"] == "log":
        _known(table, ("type", "file", "flip", "cutoff_hz", "station"), where)
        _needed(table, ("file",), where)
        flip = table.get("flip", [])
        if not (isinstance(flip, list) and all(isinstance(name, str) for name in flip)):
            raise ScenarioError(f'{where}: flip is {flip!r}; give a list of motions, such as ["pitch"]')
        return read_motion_log(
            _file(table, "file", folder, where), flip=flip, cutoff_hz=table.get("cutoff_hz"), station=station
        )
    _known(table, ("type", "ship", "sea", "heading_deg", "speed", "station", "waves"), where)
    _needed(table, ("ship", "sea", "heading_deg"), where)
    return SeaDeck(
        ship_from_table(table["ship"], folder, f"{where} ship"),
        sea_from_table(table["sea"], folder, f"{where} sea"),
        heading=check_heading_deg(table["heading_deg"], what=f"{where} heading_deg"),
        speed=table.get("speed", 0.0),
        station=station,
        seed=seed,
        waves=table.get("waves", WAVES),
    )


def stance_from_table(table: Any, where: str) -> Stance:
    """How the person stands: width (m), foot_angle_deg, facing_deg."""
    table = _known(table, ("width", "foot_angle_deg", "facing_deg"), where)
    angles = {
        key: check_number(
            table.get(f"{key}_deg", 0.0), what=f"{where} {key}_deg", unit="°", low=-180, high=180, error=ScenarioError
        )
        for key in ("foot_angle", "facing")
    }
    return Stance(table.get("width"), math.radians(angles["foot_angle"]), math.radians(angles["facing"]))


# ---------------------------------------------------------------- voyages

VOYAGE_KEYS = (
    "title",
    "seed",
    "headings_deg",
    "speeds",
    "ship",
    "seas",
    "stations",
    "person",
    "stance",
    "rail",
    "count",
    "criteria",
    "model",
)
PERSON_KEYS = ("height", "half_width", "half_length", "friction", "gyration_lateral", "gyration_fore_aft")


@dataclass(frozen=True)
class Voyage:
    """A ship with the seas, headings (rad), speeds (m/s) and stations (m) to be looked at, and who stands there."""

    title: str
    ship: Ship
    seas: dict[str, Sea]
    headings: tuple[float, ...]
    speeds: tuple[float, ...]
    stations: dict[str, tuple[float, float, float]]
    sailor: Sailor
    seed: int
    criteria: str
    text: str


def parse_voyage(text: str, source: Path) -> Voyage:
    """Check a voyage file's text."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: not valid TOML ({error})") from None
    _known(settings, VOYAGE_KEYS, str(source))
    _needed(settings, ("ship", "seas", "headings_deg", "stations"), str(source))
    folder = source.parent
    seas: dict[str, Sea] = {}
    entries = settings["seas"]
    if not (isinstance(entries, list) and entries):
        raise ScenarioError(f'{source}: seas must be a list of tables, such as [[seas]] state = "SS5"')
    for number, entry in enumerate(entries, start=1):
        sea = sea_from_table(entry, folder, f"{source}: sea {number}")
        seas[sea.name if sea.name not in seas else f"{sea.name} ({number})"] = sea
    stations = {
        name: tuple(float(part) for part in _station(place, f"{source}: [stations] {name}"))
        for name, place in _known(settings["stations"], list(settings["stations"]), f"{source}: [stations]").items()
    }
    if not stations:
        raise ScenarioError(f"{source}: [stations] is empty; name at least one, such as bridge = [20.0, 0.0, 12.0]")
    ship = ship_from_table(settings["ship"], folder, f"{source}: [ship]")
    for place in stations.values():
        check_on_board(check_station(place), ship)
    return Voyage(
        title=str(settings.get("title", source.stem)),
        ship=ship,
        seas=seas,
        headings=tuple(
            check_heading_deg(value, what=f"{source}: headings_deg")
            for value in _list(settings, "headings_deg", source)
        ),
        speeds=tuple(
            check_number(value, what=f"{source}: speeds", unit="m/s", low=0, high=40, error=ScenarioError)
            for value in _list({"speeds": [0.0]} | settings, "speeds", source)
        ),
        stations=stations,  # type: ignore[arg-type]  # _station has checked that there are three
        sailor=_sailor(settings, source),
        seed=int(check_number(settings.get("seed", 0), what="seed", unit="", low=0, high=2**62, error=ScenarioError)),
        criteria=find_name(
            settings.get("criteria", "nato_personnel"),
            CRITERIA,
            what="criteria table",
            where=str(source),
            error=ScenarioError,
        ),
        text=text,
    )


def _list(settings: Table, key: str, source: Path) -> list[Any]:
    values = settings[key]
    if not (isinstance(values, list) and values) or len(set(map(str, values))) != len(values):
        raise ScenarioError(f"{source}: {key} is {values!r}; give a list of different numbers")
    return values


def _sailor(settings: Table, source: Path) -> Sailor:
    person = RigidPerson(**_known(settings.get("person", {}), PERSON_KEYS, f"{source}: [person]"))
    rail = settings.get("rail")
    where = f"{source}: [count]"
    count = _known(settings.get("count", {}), ("method", "duration", "step", "refractory", "exposure", "waves"), where)
    method = count.get("method", "rigid")
    stance = stance_from_table(settings.get("stance", {}), f"{source}: [stance]")
    simulate, mass = None, 80.0
    if method == "model":
        useless = [key for key in settings.get("person", {}) if key != "friction"]
        if useless:
            raise ScenarioError(
                f"{source}: [person] {', '.join(useless)} describe the rigid person; the model's come from its body"
            )
        simulate, mass, person = _model(settings.get("model", {}), source, stance, person)
    elif stance.width is not None or stance.foot_angle:
        raise ScenarioError(
            f'{source}: [stance] width and foot_angle_deg place the feet of a model ([count] method = "model"); '
            "give the rigid person's half_width and half_length in [person]"
        )
    elif "model" in settings:
        raise ScenarioError(f'{source}: [model] is of no use unless [count] has method = "model"')
    return Sailor(
        person=person,
        stance=stance,
        rail=None if rail is None else Rail(**_known(rail, ("height", "force"), f"{source}: [rail]")),
        simulate=simulate,
        mass=mass,
        **count,
    )


def _model(table: Any, source: Path, stance: Stance, person: RigidPerson) -> tuple[Any, float, RigidPerson]:
    """A simulated person: body, person, controller, step as in a scenario; and the rigid person of the same body."""
    from posture.balance import Balance
    from posture.scenario import Scenario
    from posture.simulate import simulate

    table = _known(table, ("body", "person", "locked", "controller", "step"), f"{source}: [model]")
    scenario = Scenario("", source, table, "", 0)
    body = stance.body(scenario.body())
    scenario.controller(body)  # what is wrong with it is said now, not in the middle of a sweep
    step = check_number(table.get("step", 0.005), what="step", unit="s", low=1e-4, high=0.05, error=ScenarioError)

    def run(deck: SeaDeck, duration: float) -> Any:
        felt = stance.deck(deck)
        controller = replace(scenario, settings=table | {"duration": duration}).controller(body, felt)
        position, velocity = Balance(body, controller).start(felt)
        return simulate(
            body,
            felt,
            controller,
            duration=duration,
            step=step,
            output_step=4 * step,
            start_position=position,
            start_velocity=velocity,
        )

    return run, body.mass, RigidPerson.of(body, friction=person.friction)


def read_voyage(path: Path) -> Voyage:
    """Read a voyage from a .toml file."""
    if not path.is_file():
        raise ScenarioError(f"{path}: no such file; `posture ship template --out {path.name}` writes one to start from")
    try:
        return parse_voyage(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: cannot be read as text ({error})") from None
