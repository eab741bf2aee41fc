"""Your own law as a controller: a plain function, a CasADi function, or a learnt policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from controllers.held import Held
from controllers.protocol import Array, ControllerError, Symbols


class FromFunction:
    """A law from ``function(time, position, velocity) -> torques``; it must keep nothing between calls."""

    memory_size = 0

    def __init__(self, joint_names: Sequence[str], function: Callable[[float, Array, Array], ArrayLike]) -> None:
        self.joint_names, self.function = tuple(joint_names), function

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        return _checked(self.function(time, position, velocity), self.joint_names)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)


class FromCasadi:
    """A law from a CasADi Function of (position, velocity) or (time, position, velocity); it is compiled like ours."""

    memory_size = 0

    def __init__(self, joint_names: Sequence[str], function: Any) -> None:
        self.joint_names = tuple(joint_names)
        count, inputs = len(self.joint_names), [function.numel_in(index) for index in range(function.n_in())]
        if inputs not in ([count, count], [1, count, count]) or function.numel_out(0) != count:
            raise ControllerError(
                f"the CasADi function takes {inputs} and gives {function.numel_out(0)} numbers; it must take (time,) "
                f"position and velocity and give torques of {count} joints"
            )
        self.takes_time = len(inputs) == 3
        self.function = function if function.is_a("SXFunction") else function.expand()

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m."""
        given = (time, position, velocity) if self.takes_time else (position, velocity)
        found = self.function(*given)
        return np.asarray(found[0] if isinstance(found, tuple) else found, float).ravel()

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)

    def parameters(self) -> dict[str, Array]:
        """None: all numbers are inside the function."""
        return {}

    def symbolic_form(self) -> str:
        """Fingerprint of the function's instructions."""
        return hashlib.sha256(self.function.serialize().encode("latin-1", "replace")).hexdigest()

    def symbolic(self, symbols: Symbols) -> tuple[Any, Any]:
        """The function itself."""
        times = [symbols.time] if self.takes_time else []
        found = self.function(*times, symbols.position, symbols.velocity)
        return found[0] if isinstance(found, tuple) else found, symbols.memory


class FromPolicy(Held):
    """A policy as in Gymnasium: ``act(observation)`` in [-1, 1] per joint, every ``period`` s, times ``scale``.

    ``observe(time, position, velocity)`` makes the observation. Policies that give (action, state), as
    Stable-Baselines3's ``predict`` does, are taken as well.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        act: Callable[[Array], Any],
        *,
        observe: Callable[[float, Array, Array], Array],
        scale: ArrayLike,
        hold: ArrayLike = 0.0,
        period: float = 0.02,
    ) -> None:
        super().__init__(joint_names, period=period)
        self.act, self.observe = act, observe
        self.scale, self.hold = np.asarray(scale, float), np.asarray(hold, float)

    def decide(self, time: float, position: Array, velocity: Array) -> Array:
        """Joint torques, N·m, for the coming period."""
        action = self.act(self.observe(time, position, velocity))
        action = action[0] if isinstance(action, tuple) else action
        return _checked(self.hold + self.scale * np.clip(np.asarray(action, float), -1, 1), self.joint_names)


def _checked(torque: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    found = np.asarray(torque, float)
    if found.shape != (len(joint_names),) or not np.isfinite(found).all():
        raise ControllerError(
            f"the law gave {found!r}; it must give {len(joint_names)} finite torques in N·m, one per joint"
        )
    return found
