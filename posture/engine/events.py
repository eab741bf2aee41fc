"""Cables of a run on a machine: the machine between events, the readable engine for the steps that hold one.

So a cable snaps taut, bounces and goes slack at the same instants and with the same impulses as in the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from controllers import Controller
from posture.simulate import Dynamics, integrate

if TYPE_CHECKING:
    from posture.engine.machine import Batch, Machine

Array = NDArray[np.floating]


class Events:
    """The cables of one run; ``impacts`` of its elements are kept by ``dynamics``."""

    def __init__(self, dynamics: Dynamics, controller: Controller) -> None:
        assert dynamics.elements is not None  # callers have cables
        self.dynamics, self.controller, self.elements = dynamics, controller, dynamics.elements

    def taut(self, time: float, state: Array, channels: Array) -> Array:
        """1 for every cable under tension, else 0."""
        joints = len(self.dynamics.body.joint_names)
        position, velocity, memory = np.split(state, [joints, 2 * joints])
        if not self.elements.touching(position, velocity):
            return np.zeros(int(self.elements.is_cable.sum()))
        torque = self.controller.torque(time, position, velocity, memory)
        self.dynamics.acceleration(position, velocity, torque, channels, time=time)
        return np.asarray(self.dynamics.tension[self.elements.is_cable] > 0, float)

    def step(self, time: float, state: Array, channels: Array, step: float) -> Array:
        """State after one step, through whatever happens inside; ``channels``: at its start, middle and end."""
        with np.errstate(all="ignore"):  # a fall may overflow; who asked finds and reports it
            found = integrate(self.dynamics, self.controller, channels, state, start=time, step=step, every=1)
        return np.asarray(found[0])


def states_through_events(machine: Machine, batch: Batch, run: int) -> Array:
    """States (rows × states) of one run at the kept instants."""
    from posture.engine.machine import Batch, evaluate
    from posture.engine.tables import Samples

    events = batch.events[run]
    channels = evaluate(batch.tables[run], (2 * batch.first + np.arange(2 * batch.steps + 1)) * (batch.step / 2))
    parameters, cables = np.array(batch.parameters[run], float), int(events.elements.is_cable.sum())
    state, done = np.asarray(batch.start[run], float), 0
    kept = [state] if batch.keep_start else []
    while done < batch.steps:
        time = (batch.first + done) * batch.step
        parameters[-cables:] = events.taut(time, state, channels[2 * done])
        table, left = Samples(channels[2 * done :]), batch.steps - done
        piece = Batch(parameters[None], state[None], [table], left, batch.step, 1, first=batch.first + done)
        passed = machine.until_alarm(piece)
        if len(passed) < left:
            time, three = time + len(passed) * batch.step, channels[2 * (done + len(passed)) :][:3]
            before = passed[-1] if len(passed) else state
            passed = np.vstack((passed, events.step(time, before, three, batch.step)))
        kept += [row for index, row in enumerate(passed, start=done + 1) if index % batch.every == 0]
        state, done = passed[-1], done + len(passed)
    return np.array(kept).reshape(batch.rows, len(state))


def observe_with_events(
    machine: Machine,
    events: Events,
    parameters: Array,
    outline: Array | None,
    times: Array,
    states: Array,
    channels: Array,
) -> Array:
    """Outputs (rows × …) of one run at given states; which cables are taut is found out for each row."""
    taut = np.array([events.taut(*row) for row in zip(times, states, channels, strict=True)])
    outputs = np.empty((len(states), machine.program.measures + 3))
    for pattern in np.unique(taut, axis=0):
        rows = (taut == pattern).all(axis=1)
        own = np.concatenate((parameters[: -len(pattern)], pattern))
        outputs[rows] = machine.observe(own, outline, times[rows], states[rows], channels[rows])
    return outputs
