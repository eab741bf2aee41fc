"""What a simulation asks of a controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

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


@dataclass(frozen=True)
class Symbols:
    """What a symbolic law may use: CasADi columns in the order of ``joint_names``, and its own parameters by name.

    ``gravity_torque()`` gives the joint torques that hold ``position`` on a level deck at rest.
    """

    time: Any
    position: Any
    velocity: Any
    memory: Any
    parameters: dict[str, Any]
    gravity_torque: Callable[[], Any]


@runtime_checkable
class SymbolicController(Controller, Protocol):
    """A law that can also be written in CasADi, so that it can be compiled and differentiated.

    ``parameters`` (names to arrays) may differ between runs that share one compiled library; ``symbolic_form`` says
    in words what else decides the formula. Both must agree with ``torque`` and ``memory_rate``, which is checked.
    """

    def parameters(self) -> dict[str, Array]:
        """Numbers of the law that are not part of its formula."""
        ...

    def symbolic_form(self) -> str:
        """Everything besides the parameters that changes the formula."""
        ...

    def symbolic(self, symbols: Symbols) -> tuple[Any, Any]:
        """Torques and memory rates as CasADi columns."""
        ...


def by_joint(
    values: Mapping[str, float] | float, joint_names: Sequence[str], *, what: str, lowest: float = -np.inf
) -> Array:
    """Array in the order of ``joint_names`` from one number for all, or from a mapping by joint name (rest 0)."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in joint_names:
                raise ControllerError(f"{what}: no joint is called {name!r}; the joints are {', '.join(joint_names)}")
        given: list[object] = [values.get(name, 0.0) for name in joint_names]
    else:
        given = [values] * len(joint_names)
    array = np.array([float(value) if isinstance(value, Real) else np.nan for value in given])
    for name, value, number in zip(joint_names, given, array, strict=True):
        if not np.isfinite(number) or number < lowest:
            bound = f", {lowest:g} or more" if np.isfinite(lowest) else ""
            raise ControllerError(f"{what} of joint {name!r} is {value!r}; it must be a finite number{bound}")
    return array
