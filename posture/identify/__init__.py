"""What a person's sway says about how they balance: parameters of a control model from a COP record."""

from posture.identify.fit import Estimate, Identified, fisher_information, identify_balance, whiteness
from posture.identify.model import PARAMETERS, Mechanics, Parameter, StanceModel

__all__ = [
    "PARAMETERS",
    "Estimate",
    "Identified",
    "Mechanics",
    "Parameter",
    "StanceModel",
    "fisher_information",
    "identify_balance",
    "whiteness",
]
