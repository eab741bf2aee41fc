"""posture: people as robots, standing, swaying and moving on decks that move.

Names below load their module when first used, so that ``import posture`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Body": "posture.body",
    "load_body": "posture.body",
    "model_names": "posture.body",
    "write_body": "posture.body",
    "Person": "posture.anthropometry",
    "DeckSamples": "posture.deck",
    "RecordedDeck": "posture.deck",
    "Sine": "posture.deck",
    "SineDeck": "posture.deck",
    "constant_deck": "posture.deck",
    "read_imu_csv": "posture.deck",
    "simulate": "posture.simulate",
    "Scenario": "posture.scenario",
    "read_scenario": "posture.scenario",
    "load": "posture.results",
    "save": "posture.results",
    "export": "posture.results",
    "write_view": "posture.view",
    "PostureError": "posture.errors",
    "SimulationStopped": "posture.errors",
}
__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from posture.anthropometry import Person
    from posture.body import Body, load_body, model_names, write_body
    from posture.deck import DeckSamples, RecordedDeck, Sine, SineDeck, constant_deck, read_imu_csv
    from posture.errors import PostureError, SimulationStopped
    from posture.results import export, load, save
    from posture.scenario import Scenario, read_scenario
    from posture.simulate import simulate
    from posture.view import write_view


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'posture' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    # `import posture.simulate` binds the submodule to the package; the function of the same name must win.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
