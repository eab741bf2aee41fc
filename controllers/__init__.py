"""Control laws a roboticist would recognise, for any body whose joints have names.

Nothing here imports posture: a law sees joint names and arrays, and gives torques.
"""

from controllers.computed_torque import ComputedTorque
from controllers.delayed import Delayed
from controllers.disturbed import Disturbed, FilteredNoise
from controllers.feedforward import BaseFeedforward
from controllers.held import Held
from controllers.intermittent import Intermittent, intermittent
from controllers.inverse_plant import Estimate, InversePlant, best_gain
from controllers.lqr import LQR
from controllers.lyapunov import Certificate, LinkGains, LinkMotion, Lyapunov
from controllers.mpc import MPC
from controllers.own import FromCasadi, FromFunction, FromPolicy
from controllers.pd import PD, PID, Relaxed
from controllers.plant import Linear, Plant, linearise
from controllers.protocol import Controller, ControllerError, SymbolicController, Symbols
from controllers.sensed import Sensed
from controllers.sensory import Sensory
from controllers.strategies import StrategySwitch
from controllers.together import Together
from controllers.whole_body import WholeBody

__all__ = [
    "LQR",
    "MPC",
    "PD",
    "PID",
    "BaseFeedforward",
    "Certificate",
    "ComputedTorque",
    "Controller",
    "ControllerError",
    "Delayed",
    "Disturbed",
    "Estimate",
    "FilteredNoise",
    "FromCasadi",
    "FromFunction",
    "FromPolicy",
    "Held",
    "Intermittent",
    "InversePlant",
    "Linear",
    "LinkGains",
    "LinkMotion",
    "Lyapunov",
    "Plant",
    "Relaxed",
    "Sensed",
    "Sensory",
    "StrategySwitch",
    "SymbolicController",
    "Symbols",
    "Together",
    "WholeBody",
    "best_gain",
    "intermittent",
    "linearise",
]
