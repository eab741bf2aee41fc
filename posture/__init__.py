"""posture: people as robots, standing, swaying and moving on decks that move.

Names below load their module when first used, so that ``import posture`` costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
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
    "Muscles": "posture.muscles",
    "load_muscles": "posture.muscles",
    "analyse_muscles": "posture.muscle_analysis",
    "write_view": "posture.view",
    "Hull": "posture.ship.hull",
    "read_ship": "posture.ship.hull",
    "Sea": "posture.ship.sea",
    "bretschneider": "posture.ship.sea",
    "jonswap": "posture.ship.sea",
    "pierson_moskowitz": "posture.ship.sea",
    "read_ndbc": "posture.ship.sea",
    "sea_state": "posture.ship.sea",
    "SeaDeck": "posture.ship.motion",
    "TurnedDeck": "posture.ship.motion",
    "Response": "posture.ship.response",
    "RecordedMotion": "posture.ship.record",
    "read_motion_log": "posture.ship.record",
    "Stance": "posture.ship.stance",
    "Rail": "posture.ship.interruptions",
    "RigidPerson": "posture.ship.interruptions",
    "count_rigid": "posture.ship.interruptions",
    "count_run": "posture.ship.interruptions",
    "crossing_rates": "posture.ship.interruptions",
    "Sailor": "posture.ship.assess",
    "assess": "posture.ship.assess",
    "Plan": "posture.engine.plan",
    "run_ensemble": "posture.engine.ensemble",
    "Differentiable": "posture.engine.gradient",
    "InverseDynamics": "posture.engine.frames",
    "Mirror": "posture.engine.symbolic",
    "Cable": "posture.elements",
    "Ligament": "posture.elements",
    "Muscle": "posture.elements",
    "Rod": "posture.elements",
    "Segments": "posture.segments",
    "lyapunov": "posture.segments",
    "joint_torques": "posture.estimate",
    "smooth_motion": "posture.estimate",
    "ResponseInformation": "posture.observability",
    "fisher_information": "posture.observability",
    "Recording": "posture.recordings",
    "read_recording": "posture.recordings",
    "measure_sway": "posture.sway",
    "Identified": "posture.identify",
    "Mechanics": "posture.identify",
    "identify_balance": "posture.identify",
    "read_markers": "posture.motion_files",
    "read_plates": "posture.motion_files",
    "read_marker_set": "posture.markers",
    "fit_markers": "posture.markers",
    "read_osim": "posture.osim",
    "analyse_gait": "posture.gait_trial",
    "stand": "posture.swap",
    "by_role": "posture.swap",
    "roles": "posture.swap",
    "Plant": "posture.plant",
    "make_law": "posture.laws",
    "compare": "posture.compare",
    "write_export": "posture.export_body",
    "PostureError": "posture.errors",
    "RecordingError": "posture.errors",
    "SimulationStopped": "posture.errors",
}
__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from posture.anthropometry import Person
    from posture.body import Body, load_body, model_names, write_body
    from posture.compare import compare
    from posture.deck import DeckSamples, RecordedDeck, Sine, SineDeck, constant_deck, read_imu_csv
    from posture.elements import Cable, Ligament, Muscle, Rod
    from posture.engine.ensemble import run_ensemble
    from posture.engine.frames import InverseDynamics
    from posture.engine.gradient import Differentiable
    from posture.engine.plan import Plan
    from posture.engine.symbolic import Mirror
    from posture.errors import PostureError, RecordingError, SimulationStopped
    from posture.estimate import joint_torques, smooth_motion
    from posture.export_body import write_export
    from posture.gait_trial import analyse_gait
    from posture.identify import Identified, Mechanics, identify_balance
    from posture.laws import make_law
    from posture.markers import fit_markers, read_marker_set
    from posture.motion_files import read_markers, read_plates
    from posture.muscle_analysis import analyse_muscles
    from posture.muscles import Muscles, load_muscles
    from posture.observability import ResponseInformation, fisher_information
    from posture.osim import read_osim
    from posture.plant import Plant
    from posture.recordings import Recording, read_recording
    from posture.results import export, load, save
    from posture.scenario import Scenario, read_scenario
    from posture.segments import Segments, lyapunov
    from posture.ship.assess import Sailor, assess
    from posture.ship.hull import Hull, read_ship
    from posture.ship.interruptions import Rail, RigidPerson, count_rigid, count_run, crossing_rates
    from posture.ship.motion import SeaDeck, TurnedDeck
    from posture.ship.record import RecordedMotion, read_motion_log
    from posture.ship.response import Response
    from posture.ship.sea import Sea, bretschneider, jonswap, pierson_moskowitz, read_ndbc, sea_state
    from posture.ship.stance import Stance
    from posture.simulate import simulate
    from posture.swap import by_role, roles, stand
    from posture.sway import measure_sway
    from posture.view import write_view


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'posture' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # Importing posture.simulate binds the module to the package; the function of the same name must win.
        if isinstance(value, ModuleType) and name in _HOME:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
