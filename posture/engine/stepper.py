"""One simulation on a machine: the fast counterpart of ``posture.simulate.Reference``."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from controllers import Controller
from posture.body import Body
from posture.deck import DeckMotion, DeckSamples, channels_of
from posture.engine.events import Events, observe_with_events
from posture.engine.library import EngineError
from posture.engine.machine import Batch, Machine, machine_for
from posture.engine.program import Program
from posture.engine.tables import HasTable, Samples, Table
from posture.simulate import Dynamics, labelled

Array = NDArray[np.floating]

LAW_TOLERANCE = 1e-9  # relative; rounding is 1e-15, a wrong law is of order 1


class Stepper:
    """Integrates and observes one body, controller and deck (see ``Reference`` for the readable version).

    ``dynamics``: of the readable version, where the run has elements.
    """

    block_steps = 20_000  # rows of a block stay a few megabytes

    def __init__(
        self,
        body: Body,
        controller: Controller,
        deck: DeckMotion,
        *,
        step: float,
        every: int,
        engine: str,
        dynamics: Dynamics | None = None,
    ) -> None:
        self.body, self.deck, self.step, self.every = body, deck, step, every
        self.elements = dynamics.elements if dynamics else None
        lines = self.elements.lines if self.elements else []
        program = Program([body], controller, lines)
        self.machine: Machine = machine_for(program, engine)
        self.kind = self.machine.kind
        self.parameters = program.parameters(body, controller, lines)
        self.events = [Events(dynamics, controller)] if dynamics and program.elements.cables else []
        self.outline = body.contact_polygon() if body.contact_names else None
        self.table = deck.table() if isinstance(deck, HasTable) else None
        check_law(self.machine, self.parameters, controller)

    def integrate(self, first: int, count: int, state: Array) -> Array:
        """States after each ``every`` of ``count`` steps from step ``first`` on."""
        table: Table | None = self.table
        if table is None:
            half_steps = (2 * first + np.arange(2 * count + 1)) * (self.step / 2)
            table = Samples(channels_of(self.deck.sample(half_steps)))
        batch = Batch(self.parameters[None, :], state[None, :], [table], count, self.step, self.every, first=first)
        batch.events = self.events
        return np.asarray(self.machine.states(batch)[0])

    def observe(self, deck: DeckSamples, states: Array) -> xr.Dataset:
        """Everything that follows from joint states and deck motion."""
        at = self.parameters, self.outline, deck.time, states, channels_of(deck)
        outputs = observe_with_events(self.machine, self.events[0], *at) if self.events else self.machine.observe(*at)
        joints, held = len(self.body.joint_names), len(self.body.locked)
        count = len(self.machine.program.elements.lines)
        ends = np.cumsum([joints, joints, 3, 3, 3, held, count, count, 3 if count else 0])
        *whole, tension, length, pull = np.split(outputs[:, : ends[-1]], ends[:-1], axis=1)
        torque, acceleration, force, moment, com, holding = whole
        if self.elements is None:
            return labelled(self.body, deck, states, torque, acceleration, force, moment, com, holding)
        lines = self.elements.variables(deck.time, tension, length, pull)
        return labelled(
            self.body, deck, states, torque, acceleration, force, moment, com, holding,
            lines=lines, names=self.elements.names,
        )  # fmt: skip


def check_law(machine: Machine, parameters: Array, controller: Controller) -> None:
    """Refuse a symbolic law that is not the one of ``torque`` and ``memory_rate``."""
    joints, size = machine.program.joints, machine.program.states
    random = np.random.default_rng(0)
    states, times = random.uniform(-0.3, 0.3, (3, size)), random.uniform(0, 10, 3)
    channels = np.tile([0, 0, 0, 0, 0, 0, 0, 0, 9.8], (3, 1))
    outputs = machine.observe(parameters, None, times, states, channels)
    free = [index for index in range(joints) if index not in machine.program.locked]
    for time, state, output in zip(times, states, outputs, strict=True):
        position, velocity, memory = np.split(state, [joints, 2 * joints])
        torque = np.asarray(controller.torque(time, position, velocity, memory))
        rate = np.asarray(controller.memory_rate(time, position, velocity, memory))
        ours = machine.rate(parameters, time, state, channels[0])[2 * joints :]
        for one, other in ((output[:joints][free], torque[free]), (ours, rate)):
            if len(one) and np.abs(one - other).max() > LAW_TOLERANCE * max(1.0, np.abs(other).max()):
                raise EngineError(
                    f"the symbolic law of {type(controller).__name__} differs from its torque() or memory_rate(); "
                    "make them agree (a feed-forward must be body.gravity_torque), or use engine 'reference'"
                )
