"""Forward simulation of a body on a moving base: the readable reference, in Pinocchio.

The base motion is prescribed, so only the joints are unknown (equation (14) of Bourgeois and Langlois):

    M_jj a_j = u - h_j(q, v, w, w', f)

with h the inverse dynamics for zero joint acceleration. Zero gravity, identity base attitude, base velocity (0, w)
and base acceleration (f, w') give the same joint motion and deck wrench as the full free-flying problem.

``integrate`` is the seam for faster engines: joint state in, deck channels in, joint states out. Everything a
result holds besides the states is worked out afterwards by ``observe``, from states alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import xarray as xr
from numpy.typing import NDArray
from scipy.linalg import eig
from scipy.linalg.lapack import dposv

from controllers import Controller
from posture.body import STANDARD_GRAVITY, Body
from posture.contact import center_of_pressure, stance_margin
from posture.deck import DeckMotion, DeckSamples
from posture.errors import Interrupted, ScenarioError, SimulationStopped, check_number
from posture.results import join, make_dataset, provenance

Array = NDArray[np.floating]

BLOCK_STEPS = 2000
GIMBAL_LIMIT = math.radians(80)  # X-Y-Z angles lose their meaning at 90°
FALLEN_SHARE = 0.3  # of the upright height of the centre of mass


class Dynamics:
    """Joint accelerations and full reactions of one body for given base channels (w, w', f; 9 numbers, ship axes)."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.model, self.data = body.model, body.model.createData()
        self.free = body.free
        self._all_free = len(self.free) == len(body.joint_names)
        self._block = np.ix_(self.free, self.free)
        self._q = body.with_base(body.neutral)
        self._v = np.zeros(self.model.nv)
        self._a = np.zeros(self.model.nv)

    def acceleration(self, position: Array, velocity: Array, torque: Array, channels: Array) -> Array:
        """Accelerations of all joints (zero for locked ones); arrays over all joints."""
        q, v, a = self._q, self._v, self._a
        q[7:], v[6:] = position, velocity
        v[3:6], a[:3], a[3:6], a[6:] = channels[:3], channels[6:], channels[3:6], 0.0
        bias = pin.rnea(self.model, self.data, q, v, a)[6:]
        inertia = pin.crba(self.model, self.data, q)[6:, 6:]
        if self._all_free:
            return np.asarray(dposv(inertia, torque - bias)[1])
        result = np.zeros(len(position))
        if len(self.free):
            result[self.free] = dposv(inertia[self._block], (torque - bias)[self.free])[1]
        return result

    def reactions(self, position: Array, velocity: Array, acceleration: Array, channels: Array) -> Array:
        """Deck force (3), deck moment about the root (3) in ship axes, then the moment along every joint."""
        self._q[7:], self._v[6:], self._a[6:] = position, velocity, acceleration
        self._v[3:6], self._a[:3], self._a[3:6] = channels[:3], channels[6:], channels[3:6]
        return np.array(pin.rnea(self.model, self.data, self._q, self._v, self._a))


def integrate(
    dynamics: Dynamics, controller: Controller, channels: Array, state: Array, *, start: float, step: float, every: int
) -> Array:
    """RK4 with fixed step over ``channels`` (2n+1 rows of 9, half a step apart); states after each ``every`` steps.

    A state is joint positions, joint velocities and controller memory in one row.
    """
    joints = len(dynamics.body.joint_names)

    def rate(time: float, x: Array, channel: Array) -> Array:
        position, velocity, memory = x[:joints], x[joints : 2 * joints], x[2 * joints :]
        torque = controller.torque(time, position, velocity, memory)
        result = np.empty_like(x)
        result[:joints] = velocity
        result[joints : 2 * joints] = dynamics.acceleration(position, velocity, torque, channel)
        result[2 * joints :] = controller.memory_rate(time, position, velocity, memory)
        return result

    count = (len(channels) - 1) // 2
    kept = np.empty((count // every, len(state)))
    for index in range(count):
        time = start + index * step
        before, middle, after = channels[2 * index], channels[2 * index + 1], channels[2 * index + 2]
        k1 = rate(time, state, before)
        k2 = rate(time + step / 2, state + step / 2 * k1, middle)
        k3 = rate(time + step / 2, state + step / 2 * k2, middle)
        k4 = rate(time + step, state + step * k3, after)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (index + 1) % every == 0:
            kept[(index + 1) // every - 1] = state
    return kept


def observe(dynamics: Dynamics, controller: Controller, deck: DeckSamples, states: Array) -> xr.Dataset:
    """Everything that follows from joint states and deck motion: torques, deck wrench, COP, COM, margins."""
    body, joints = dynamics.body, len(dynamics.body.joint_names)
    position, velocity, memory = states[:, :joints], states[:, joints : 2 * joints], states[:, 2 * joints :]
    channels = _channels(deck)
    torque, acceleration = np.zeros_like(position), np.zeros_like(position)
    reaction, com = np.empty((len(states), dynamics.model.nv)), np.empty((len(states), 3))
    for row, time in enumerate(deck.time):
        torque[row] = controller.torque(time, position[row], velocity[row], memory[row])
        acceleration[row] = dynamics.acceleration(position[row], velocity[row], torque[row], channels[row])
        reaction[row] = dynamics.reactions(position[row], velocity[row], acceleration[row], channels[row])
        com[row] = body.center_of_mass(position[row])
    locked = [body.joint_index(name) for name in body.locked]
    torque[:, locked] = 0.0  # a locked joint is held by its constraint, whatever the controller wants
    pressure = center_of_pressure(reaction[:, :3], reaction[:, 3:6])
    variables: dict[str, Array] = {
        "joint_position": position,
        "joint_velocity": velocity,
        "joint_acceleration": acceleration,
        "joint_torque": torque,
        "deck_angular_velocity": deck.angular_velocity,
        "deck_angular_acceleration": deck.angular_acceleration,
        "deck_specific_force": deck.specific_force,
        "deck_position": deck.position,
        "deck_quaternion": deck.quaternion,
        "force_deck_on_person": reaction[:, :3],
        "moment_deck_on_person": reaction[:, 3:6],
        "position_cop_on_deck": pressure,
        "position_com_in_deck": com,
    }
    if body.contact_names:
        variables["stance_margin"] = stance_margin(pressure, body.contact_polygon())
    if locked:
        variables["joint_constraint_moment"] = reaction[:, 6:][:, locked]
    return make_dataset(deck.time, variables, joints=body.joint_names, locked=list(body.locked))


@dataclass(frozen=True)
class Run:
    """A checked, ready simulation: ``blocks()`` computes it piece by piece in bounded memory."""

    body: Body
    deck: DeckMotion
    controller: Controller
    duration: float
    step: float
    every: int
    start: Array
    attributes: dict[str, Any]

    def blocks(self, progress: Callable[[float], None] | None = None) -> Iterator[xr.Dataset]:
        """Yield results in order of time; ``progress`` is told the simulated seconds so far."""
        dynamics = Dynamics(self.body)
        total = round(self.duration / self.step)
        block = max(1, BLOCK_STEPS // self.every) * self.every
        upright = self.body.center_of_mass()[2]
        state = self.start
        yield self._labelled(observe(dynamics, self.controller, self.deck.sample(np.zeros(1)), state[None, :]))
        for first in range(0, total, block):
            count = min(block, total - first)
            half_steps = (2 * first + np.arange(2 * count + 1)) * (self.step / 2)
            deck = self.deck.sample(half_steps)
            with np.errstate(all="ignore"):  # a fall may overflow; _standing finds and reports it
                states = integrate(
                    dynamics,
                    self.controller,
                    _channels(deck),
                    state,
                    start=first * self.step,
                    step=self.step,
                    every=self.every,
                )
            good, reason = self._standing(states, half_steps[2 * self.every :: 2 * self.every])
            rows = slice(2 * self.every, 2 * self.every * good + 1, 2 * self.every)
            result = self._labelled(observe(dynamics, self.controller, _part(deck, rows), states[:good]))
            heights = result["position_com_in_deck"].values[:, 2]
            if self.body.contact_names and (heights < FALLEN_SHARE * upright).any():
                good = int(np.argmax(heights < FALLEN_SHARE * upright)) + 1
                result = result.isel(time=slice(good))
                reason = (
                    f"the person fell: at {result.time.values[-1]:.3f} s the centre "
                    f"of mass is {heights[good - 1]:.2f} m above the deck"
                )
            yield result
            if reason:
                raise SimulationStopped(
                    f"{self.body.name}: {reason}; use stiffer control, gentler motion or a shorter run"
                )
            state = states[-1]
            if progress:
                progress((first + count) * self.step)

    def _standing(self, states: Array, times: Array) -> tuple[int, str]:
        """How many leading states make sense, and why the next one does not."""
        gimbals = [self.body.joint_index(name) for name in self.body.gimbal_joints]
        broken = np.asarray(~np.isfinite(states).all(axis=1))
        turned = np.abs(states[:, gimbals]) > GIMBAL_LIMIT
        bad = broken | turned.any(axis=1)
        if not bad.any():
            return len(states), ""
        row = int(np.argmax(bad))
        if broken[row]:
            return row, f"the motion is no longer finite after {times[row] - self.step * self.every:.3f} s"
        joint = self.body.gimbal_joints[int(np.argmax(turned[row]))]
        return row, f"at {times[row]:.3f} s joint {joint!r} passed 80°, where X-Y-Z angles lose their meaning"

    def _labelled(self, dataset: xr.Dataset) -> xr.Dataset:
        return dataset.assign_attrs(self.attributes)


def prepare(
    body: Body,
    deck: DeckMotion,
    controller: Controller,
    *,
    duration: float,
    step: float = 0.005,
    output_step: float = 0.02,
    start_position: Array | None = None,
    start_velocity: Array | None = None,
    seed: int | None = None,
    scenario: str = "",
) -> Run:
    """Check everything that can be checked before a simulation starts.

    Times in s; a result row is kept every ``output_step``, which must be a whole number of steps.
    """
    check_number(duration, what="duration", unit="s", low=1e-3, high=1e6, error=ScenarioError)
    check_number(step, what="step", unit="s", low=1e-6, high=0.1, error=ScenarioError, hint="0.005 suits most people")
    check_number(output_step, what="output_step", unit="s", low=step, high=duration, error=ScenarioError)
    every = round(output_step / step)
    if abs(every * step - output_step) > 1e-9:
        raise ScenarioError(
            f"output_step is {output_step:g} s, which is not a whole number of steps of {step:g} s; "
            f"try {every * step:g}"
        )
    if abs(round(duration / output_step) * output_step - duration) > 1e-6:
        raise ScenarioError(
            f"duration is {duration:g} s, which is not a whole number of output steps of {output_step:g} s; "
            f"try {round(duration / output_step) * output_step:g}"
        )
    if duration > deck.duration + 1e-9:
        raise ScenarioError(
            f"duration is {duration:g} s but the deck motion lasts {deck.duration:g} s; shorten the run"
        )
    if tuple(controller.joint_names) != tuple(body.joint_names):
        raise ScenarioError(
            f"the controller is for joints {', '.join(controller.joint_names)}, "
            f"the body {body.name!r} has {', '.join(body.joint_names)}; "
            "build it with body.joint_names"
        )
    state = np.zeros(2 * len(body.joint_names) + controller.memory_size)
    state[: len(body.joint_names)] = body.neutral
    for offset, given in ((0, start_position), (len(body.joint_names), start_velocity)):
        if given is not None:
            values = np.asarray(given, float)
            if values.shape != (len(body.joint_names),) or not np.isfinite(values).all():
                raise ScenarioError(
                    f"the start state needs {len(body.joint_names)} finite numbers, one per joint of {body.name!r}"
                )
            state[offset + body.free] = values[body.free]
    _check_step(body, controller, state, step)
    return Run(
        body, deck, controller, duration, step, every, state, provenance(body, step=step, seed=seed, scenario=scenario)
    )


def simulate(body: Body, deck: DeckMotion, controller: Controller, *, duration: float, **settings: Any) -> xr.Dataset:
    """Simulate and return one dataset in memory; settings as in ``prepare``.

    A fall raises ``SimulationStopped`` and Ctrl-C ``Interrupted``, with what was computed until then in ``partial``.
    """
    blocks: list[xr.Dataset] = []
    try:
        for block in prepare(body, deck, controller, duration=duration, **settings).blocks():
            blocks.append(block)  # noqa: PERF402 (what came before a fall must be kept)
    except SimulationStopped as stopped:
        stopped.partial = join(blocks)
        raise
    except KeyboardInterrupt:
        if not blocks:
            raise
        raise Interrupted("interrupted", join(blocks)) from None
    return join(blocks)


def residual(dataset: xr.Dataset) -> float:
    """Largest error, in g, of Newton's law for the centre of mass along a run: a check no integrator shares.

    F = m (f + w' × c + w × (w × c) + 2 w × c' + c''), with c' and c'' by central differences of the recorded path,
    so the figure falls with the square of the output step until rounding is reached.
    """
    step = float(dataset.time[1] - dataset.time[0])
    com = dataset["position_com_in_deck"].values
    com_rate = np.gradient(com, step, axis=0)
    com_acceleration = (com[2:] - 2 * com[1:-1] + com[:-2]) / step**2
    w, wd, f = (
        dataset[f"deck_{name}"].values for name in ("angular_velocity", "angular_acceleration", "specific_force")
    )
    expected = f + np.cross(wd, com) + np.cross(w, np.cross(w, com)) + 2 * np.cross(w, com_rate)
    force = dataset["force_deck_on_person"].values / dataset.attrs["body_mass_kg"]
    return float(np.abs(force[1:-1] - expected[1:-1] - com_acceleration).max() / STANDARD_GRAVITY)


def _channels(deck: DeckSamples) -> Array:
    return np.hstack((deck.angular_velocity, deck.angular_acceleration, deck.specific_force))


def _part(deck: DeckSamples, rows: slice) -> DeckSamples:
    return DeckSamples(*(getattr(deck, name)[rows] for name in DeckSamples.__dataclass_fields__))


def closed_loop_matrix(body: Body, controller: Controller, state: Array) -> tuple[Array, Array, Array]:
    """Linearised closed loop on a level deck at rest, by central differences, over the free joints.

    Returns the system matrix A of (position, velocity, memory), how each joint's torque enters the rates (size ×
    joints) and how each joint's torque depends on the state through the controller (joints × size).
    """
    dynamics, joints, free = Dynamics(body), len(body.joint_names), body.free
    level = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
    memory_columns = np.arange(2 * joints, len(state))
    columns = np.concatenate((free, joints + free, memory_columns)).astype(int)

    def parts(x: Array) -> tuple[Array, Array]:
        position, velocity, memory = x[:joints], x[joints : 2 * joints], x[2 * joints :]
        torque = controller.torque(0.0, position, velocity, memory)
        acceleration = dynamics.acceleration(position, velocity, torque, level)
        return np.concatenate((velocity, acceleration, controller.memory_rate(0.0, position, velocity, memory))), torque

    size = 1e-6
    matrix, gains = np.empty((len(columns), len(columns))), np.empty((joints, len(columns)))
    for index, column in enumerate(columns):
        ahead, behind = state.copy(), state.copy()
        ahead[column] += size
        behind[column] -= size
        (rate_ahead, torque_ahead), (rate_behind, torque_behind) = parts(ahead), parts(behind)
        matrix[:, index] = (rate_ahead - rate_behind)[columns] / (2 * size)
        gains[:, index] = (torque_ahead - torque_behind) / (2 * size)
    push = np.zeros((len(columns), joints))  # how each joint's torque enters the rates
    still = np.zeros(joints)
    base = dynamics.acceleration(state[:joints], still, still, level)
    for joint in free:
        unit = np.zeros(joints)
        unit[joint] = 1.0
        push[len(free) : 2 * len(free), joint] = (dynamics.acceleration(state[:joints], still, unit, level) - base)[
            free
        ]
    return matrix, push, gains


def _amplification(z: complex) -> float:
    return abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24)


def _check_step(body: Body, controller: Controller, state: Array, step: float) -> None:
    """Refuse a step for which RK4 would turn a decaying mode of the closed loop into a growing one."""
    if not len(body.free):
        return
    matrix, push, gains = closed_loop_matrix(body, controller, state)
    values, left, right = eig(matrix, left=True, right=True)
    unsafe = [
        index for index, value in enumerate(values) if value.real < 1e-6 and _amplification(step * value) > 1 + 1e-9
    ]
    if not unsafe:
        return
    worst = max(unsafe, key=lambda index: abs(values[index]))
    largest = step
    while any(_amplification(largest * values[index]) > 1 for index in unsafe):
        largest *= 0.99
    # First-order change of the eigenvalue when one gain of one joint grows: w* (dA) v / (w* v).
    w, v, count = left[:, worst], right[:, worst], len(body.free)
    scale = abs(np.vdot(w, v))
    blame = {}
    for joint, name in zip(body.free, body.free_joints, strict=True):
        into = np.vdot(w, push[:, joint])
        blame[f"stiffness of joint {name!r}"] = abs(into * (gains[joint, :count] @ v[:count])) / scale
        blame[f"damping of joint {name!r}"] = (
            abs(into * (gains[joint, count : 2 * count] @ v[count : 2 * count])) / scale
        )
    guilty = max(blame, key=lambda name: blame[name])
    raise ScenarioError(
        f"step {step:g} s is too large for the {guilty} (its fastest mode needs a step of at most {largest:.2g} s); "
        "shorten the step or lower that gain"
    )
