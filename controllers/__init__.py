"""Control laws a roboticist would recognise, for any body whose joints have names.

Nothing here imports posture: a law sees joint names and arrays, and gives torques.
"""

from controllers.pd import PD, PID, Relaxed
from controllers.protocol import Controller, ControllerError

__all__ = ["PD", "PID", "Controller", "ControllerError", "Relaxed"]
