"""What a simulation asks of a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class ControllerError(ValueError):
    """Gains or joint names that do not fit; the message is one sentence."""


class Controller(Protocol):
    """A law u = f(t, q, v, z) with memory z' = g(t, q, v, z), in arrays ordered like ``joint_names``.

    Both functions are called inside each Runge-Kutta stage and must not keep anything between calls: what a law
    has to remember (an error integral, a filter) is its memory ``z``, which the integrator carries along.
    """

    joint_names: tuple[str, ...]
    memory_size: int

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m (forces in N on sliding joints)."""
        ...

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Time derivative of the memory."""
        ...


def by_joint(
    values: Mapping[str, float] | float, joint_names: Sequence[str], *, what: str, lowest: float = -np.inf
) -> Array:
    """Array in the order of ``joint_names`` from one number for all, or from a mapping by joint name (rest 0)."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in joint_names:
                raise ControllerError(f"{what}: no joint is called {name!r}; the joints are {', '.join(joint_names)}")
        array = np.array([float(values.get(name, 0.0)) for name in joint_names])
    else:
        array = np.full(len(joint_names), float(values))
    for name, value in zip(joint_names, array, strict=True):
        if not np.isfinite(value) or value < lowest:
            raise ControllerError(
                f"{what} of joint {name!r} is {value:g}; it must be a finite number, {lowest:g} or more"
            )
    return array
