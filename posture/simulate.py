"""Forward simulation of a body on a moving base: the readable reference, in Pinocchio.

The base motion is prescribed, so only the joints are unknown (equation (14) of Bourgeois and Langlois):

    M_jj a_j = u - h_j(q, v, w, w', f)

with h the inverse dynamics for zero joint acceleration. Zero gravity, identity base attitude, base velocity (0, w)
and base acceleration (f, w') give the same joint motion and deck wrench as the full free-flying problem.

``Reference`` is the seam for faster engines (posture/engine): joint state in, joint states out. Everything a
result holds besides the states is worked out afterwards by ``observe``, from states alone.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
import xarray as xr
from numpy.typing import NDArray
from scipy.linalg import eig
from scipy.linalg.lapack import dposv

from controllers import Controller, ControllerError, SymbolicController
from posture.body import STANDARD_GRAVITY, Body
from posture.contact import center_of_pressure, stance_margin
from posture.deck import DeckMotion, DeckSamples, channels_of
from posture.elements import Elements, Line, check_start
from posture.errors import GaveUp, Interrupted, PostureError, ScenarioError, SimulationStopped, check_number, find_name
from posture.results import join, make_dataset, provenance, with_waves

if TYPE_CHECKING:
    from posture.engine.stepper import Stepper

Array = NDArray[np.floating]

ENGINES = ("auto", "compiled", "vm", "reference")
SHORT_RUN_STEPS = 1000
BLOCK_STEPS = 2000
USUAL_OUTPUT_STEP = 0.02  # s
GIMBAL_LIMIT = math.radians(80)  # X-Y-Z angles lose their meaning at 90°
FALLEN_SHARE = 0.3  # of the upright height of the centre of mass


class Dynamics:
    """Joint accelerations and full reactions of one body for given base channels (w, w', f; 9 numbers, ship axes)."""

    def __init__(self, body: Body, elements: Sequence[Line] = (), position: Array | None = None) -> None:
        self.body = body
        self.elements = Elements(body, elements, position) if elements else None
        self.tension: Array = np.zeros(len(elements))  # of the elements, N, at the last acceleration
        self.model, self.data = body.model, body.model.createData()
        self.free = body.free
        self._all_free = 0 < len(self.free) == len(body.joint_names)
        self._block = np.ix_(self.free, self.free)
        self._q = body.with_base(body.neutral)
        self._v = np.zeros(self.model.nv)
        self._a = np.zeros(self.model.nv)

    def acceleration(
        self,
        position: Array,
        velocity: Array,
        torque: Array,
        channels: Array,
        *,
        time: float = 0.0,
        held: NDArray[np.bool_] | None = None,
    ) -> Array:
        """Accelerations of all joints (zero for locked ones); arrays over all joints.

        ``time`` and ``held`` (which elements keep their length; found out if None) matter to elements only.
        """
        q, v, a = self._q, self._v, self._a
        q[7:], v[6:] = position, velocity
        v[3:6], a[:3], a[3:6], a[6:] = channels[:3], channels[6:], channels[3:6], 0.0
        bias = pin.rnea(self.model, self.data, q, v, a)[6:]
        inertia = pin.crba(self.model, self.data, q)[6:, 6:]
        load = torque - bias
        if self.elements is not None:
            load, self.tension, self._lines = self.elements.apply(
                inertia, load, position, velocity, time=time, held=held
            )
        if self._all_free:
            return np.asarray(dposv(inertia, load)[1])
        result = np.zeros(len(position))
        if len(self.free):
            result[self.free] = dposv(inertia[self._block], load[self.free])[1]
        return result

    def inertia(self, position: Array) -> Array:
        """Joint mass matrix, upper triangle."""
        self._q[7:] = position
        return np.array(pin.crba(self.model, self.data, self._q)[6:, 6:])

    def reactions(self, position: Array, velocity: Array, acceleration: Array, channels: Array) -> Array:
        """Deck force (3), deck moment about the root (3) in ship axes, then the moment along every joint.

        Elements count with the tensions of the last call of ``acceleration``, which must be for the same state.
        """
        self._q[7:], self._v[6:], self._a[6:] = position, velocity, acceleration
        self._v[3:6], self._a[:3], self._a[3:6] = channels[:3], channels[6:], channels[3:6]
        if self.elements is None:
            return np.array(pin.rnea(self.model, self.data, self._q, self._v, self._a))
        forces, self.force_of_elements = self.elements.forces(self.tension, self._lines)
        return np.array(pin.rnea(self.model, self.data, self._q, self._v, self._a, forces))


def with_elements(body: Body, lines: Sequence[Line], position: Array, velocity: Array, *, where: str = "") -> Dynamics:
    """Dynamics of a body with lines whose unsaid lengths are those of this start, which they must allow."""
    dynamics = Dynamics(body, lines, position)
    assert dynamics.elements is not None  # callers have lines
    try:
        check_start(dynamics.elements, position, velocity, dynamics.inertia(position))
    except ScenarioError as error:
        raise ScenarioError(f"{where}{error}") from None
    return dynamics


def integrate(
    dynamics: Dynamics, controller: Controller, channels: Array, state: Array, *, start: float, step: float, every: int
) -> Array:
    """RK4 with fixed step over ``channels`` (2n+1 rows of 9, half a step apart); states after each ``every`` steps.

    A state is joint positions, joint velocities and controller memory in one row. A law that gives up raises ``GaveUp``
    with the states until then as ``partial``.
    """
    joints = len(dynamics.body.joint_names)

    def rate(time: float, x: Array, channel: Array, held: NDArray[np.bool_] | None = None) -> Array:
        position, velocity, memory = x[:joints], x[joints : 2 * joints], x[2 * joints :]
        torque = controller.torque(time, position, velocity, memory)
        result = np.empty_like(x)
        result[:joints] = velocity
        result[joints : 2 * joints] = dynamics.acceleration(position, velocity, torque, channel, time=time, held=held)
        result[2 * joints :] = controller.memory_rate(time, position, velocity, memory)
        return result

    def stride(
        time: float, x: Array, channel: Sequence[Array] | Array, size: float, held: NDArray[np.bool_] | None = None
    ) -> Array:
        before, middle, after = channel
        k1 = rate(time, x, before, held)
        k2 = rate(time + size / 2, x + size / 2 * k1, middle, held)
        k3 = rate(time + size / 2, x + size / 2 * k2, middle, held)
        k4 = rate(time + size, x + size * k3, after, held)
        return np.asarray(x + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4))

    def through_events(time: float, x: Array, channel: Array, elements: Elements) -> Array:
        def between(share: float) -> Any:
            """Deck channels inside the step, by the parabola through its three samples."""
            before, middle, after = channel
            return before + share * (4 * middle - 3 * before - after + 2 * share * (before - 2 * middle + after))

        def part(y: Array, start: float, share: float, held: NDArray[np.bool_]) -> Array:
            samples = [between(start + share * at) for at in (0.0, 0.5, 1.0)]
            return stride(time + start * step, y, samples, share * step, held)

        def tensions(y: Array, start: float, held: NDArray[np.bool_] | None) -> Array:
            rate(time + start * step, y, between(start), held)
            return dynamics.tension

        return elements.advance(time, x, step, inertia=dynamics.inertia, stride=part, tensions=tensions)

    count = (len(channels) - 1) // 2
    kept = np.empty((count // every, len(state)))
    for index in range(count):
        time, channel = start + index * step, channels[2 * index : 2 * index + 3]
        try:
            state = sampled(controller, joints, time, state)
            if dynamics.elements is not None and dynamics.elements.constrained:
                state = through_events(time, state, channel, dynamics.elements)
            else:
                state = stride(time, state, channel, step)
        except ControllerError as error:
            raise GaveUp(str(error), kept[: index // every]) from None
        if (index + 1) % every == 0:
            kept[(index + 1) // every - 1] = state
    return kept


def sampled(controller: Controller, joints: int, time: float, state: Array) -> Array:
    """State at the start of a step: a law with a ``sample`` method (delay, slow sensors) renews its memory there."""
    if not hasattr(controller, "sample"):
        return state
    position, velocity, memory = state[:joints], state[joints : 2 * joints], state[2 * joints :]
    return np.concatenate((state[: 2 * joints], controller.sample(time, position, velocity, memory)))


def observe(dynamics: Dynamics, controller: Controller, deck: DeckSamples, states: Array) -> xr.Dataset:
    """Everything that follows from joint states and deck motion: torques, deck wrench, COP, COM, margins."""
    body, joints = dynamics.body, len(dynamics.body.joint_names)
    position, velocity = states[:, :joints], states[:, joints : 2 * joints]
    channels = channels_of(deck)
    torque, acceleration = np.zeros_like(position), np.zeros_like(position)
    reaction, com = np.empty((len(states), dynamics.model.nv)), np.empty((len(states), 3))
    elements = dynamics.elements
    tension, pull = np.zeros((len(states), len(dynamics.tension))), np.zeros((len(states), 3))
    length = np.zeros_like(tension)
    for row, time in enumerate(deck.time):
        held = sampled(controller, joints, time, states[row])[2 * joints :]
        torque[row] = controller.torque(time, position[row], velocity[row], held)
        acceleration[row] = dynamics.acceleration(position[row], velocity[row], torque[row], channels[row], time=time)
        reaction[row] = dynamics.reactions(position[row], velocity[row], acceleration[row], channels[row])
        if elements is not None:
            tension[row], pull[row] = dynamics.tension, dynamics.force_of_elements
            length[row] = elements.geometry(position[row], velocity[row]).length
        com[row] = body.center_of_mass(position[row])
    locked = [body.joint_index(name) for name in body.locked]
    torque[:, locked] = 0.0  # a locked joint is held by its constraint, whatever the controller wants
    force, moment, holding = reaction[:, :3], reaction[:, 3:6], reaction[:, 6:][:, locked]
    if elements is None:
        return labelled(body, deck, states, torque, acceleration, force, moment, com, holding)
    lines = elements.variables(deck.time, tension, length, pull)
    return labelled(
        body, deck, states, torque, acceleration, force, moment, com, holding, lines=lines, names=elements.names
    )


def labelled(
    body: Body,
    deck: DeckSamples,
    states: Array,
    torque: Array,
    acceleration: Array,
    force: Array,
    moment: Array,
    com: Array,
    holding: Array,
    *,
    lines: Mapping[str, Array] | None = None,
    names: Sequence[str] = (),
) -> xr.Dataset:
    """Dataset of what was worked out at each instant.

    ``holding``: moments of the locked joints; ``lines``: variables of the elements called ``names``.
    """
    joints = len(body.joint_names)
    pressure = center_of_pressure(force, moment)
    variables: dict[str, Array] = {
        "joint_position": states[:, :joints],
        "joint_velocity": states[:, joints : 2 * joints],
        "joint_acceleration": acceleration,
        "joint_torque": torque,
        "deck_angular_velocity": deck.angular_velocity,
        "deck_angular_acceleration": deck.angular_acceleration,
        "deck_specific_force": deck.specific_force,
        "deck_position": deck.position,
        "deck_quaternion": deck.quaternion,
        "force_deck_on_person": force,
        "moment_deck_on_person": moment,
        "position_cop_on_deck": pressure,
        "position_com_in_deck": com,
    }
    if body.contact_names:
        variables["stance_margin"] = stance_margin(pressure, body.contact_polygon())
    if body.locked:
        variables["joint_constraint_moment"] = holding
    return make_dataset(
        deck.time,
        variables | dict(lines or {}),
        joints=body.joint_names,
        locked=list(body.locked),
        labels={"element": list(names)},
    )


class Reference:
    """Integrates and observes one body, controller and deck in Pinocchio, one readable step after the other."""

    kind = "reference"
    block_steps = BLOCK_STEPS

    def __init__(
        self, dynamics: Dynamics, controller: Controller, deck: DeckMotion, *, step: float, every: int
    ) -> None:
        self.dynamics, self.controller, self.deck = dynamics, controller, deck
        self.step, self.every = step, every

    def integrate(self, first: int, count: int, state: Array) -> Array:
        """States after each ``every`` of ``count`` steps from step ``first`` on."""
        half_steps = (2 * first + np.arange(2 * count + 1)) * (self.step / 2)
        channels = channels_of(self.deck.sample(half_steps))
        with np.errstate(all="ignore"):  # a fall may overflow; Run finds and reports it
            return integrate(
                self.dynamics,
                self.controller,
                channels,
                state,
                start=first * self.step,
                step=self.step,
                every=self.every,
            )

    def observe(self, deck: DeckSamples, states: Array) -> xr.Dataset:
        """Everything that follows from joint states and deck motion."""
        return observe(self.dynamics, self.controller, deck, states)


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
    elements: tuple[Line, ...] = ()
    engine: str = "reference"

    def dynamics(self) -> Dynamics:
        """The body with its elements, whose unsaid lengths are those of the start."""
        return Dynamics(self.body, self.elements, self.start[: len(self.body.joint_names)])

    def stepper(self) -> Reference | Stepper:
        """What integrates this run: the engine asked for; "auto" takes the readable one where it must or may.

        It must where the law has no symbolic form, and may on runs so short that loading a library costs more.
        """
        dynamics = self.dynamics()
        worth = isinstance(self.controller, SymbolicController) and self.duration / self.step >= SHORT_RUN_STEPS
        if self.engine in ("compiled", "vm") or (self.engine == "auto" and worth):
            from posture.engine.stepper import Stepper

            try:
                return Stepper(
                    self.body,
                    self.controller,
                    self.deck,
                    step=self.step,
                    every=self.every,
                    engine=self.engine,
                    dynamics=dynamics,
                )
            except PostureError as error:
                if self.engine != "auto":
                    raise
                logging.getLogger("posture").warning("posture: %s; the readable engine runs instead", error)
        return Reference(dynamics, self.controller, self.deck, step=self.step, every=self.every)

    def blocks(self, progress: Callable[[float], None] | None = None) -> Iterator[xr.Dataset]:
        """Yield results in order of time; ``progress`` is told the simulated seconds so far."""
        stepper = self.stepper()
        total = round(self.duration / self.step)
        block = max(1, stepper.block_steps // self.every) * self.every
        upright = self.body.center_of_mass()[2]
        state = self.start
        attributes = self.attributes | {"engine": stepper.kind}
        waves: dict[str, Array] = getattr(self.deck, "waves", dict)()  # only a sea has them

        def observed(times: Array, states: Array) -> xr.Dataset:
            return with_waves(stepper.observe(self.deck.sample(times), states), waves).assign_attrs(attributes)

        try:
            yield observed(np.zeros(1), state[None, :])
        except ControllerError as error:
            raise ScenarioError(f"{self.body.name}: the controller cannot start: {error}") from None
        for first in range(0, total, block):
            count = min(block, total - first)
            times = (2 * first + 2 * self.every * np.arange(1, count // self.every + 1)) * (self.step / 2)
            gave_up = ""
            try:
                states = stepper.integrate(first, count, state)
            except GaveUp as stopped:
                states, gave_up = stopped.partial, str(stopped)
            good, reason = self._standing(states, times)
            try:
                result = observed(times[:good], states[:good])
            except ControllerError as error:  # it gives up at the last instant, of which the torque is then unknown
                good, gave_up = good - 1, str(error)
                result = observed(times[:good], states[:good])
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
            if gave_up:
                raise GaveUp(f"{self.body.name}: the controller gave up: {gave_up}")
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


def prepare(
    body: Body,
    deck: DeckMotion,
    controller: Controller,
    *,
    duration: float,
    step: float = 0.005,
    output_step: float | None = None,
    start_position: Array | None = None,
    start_velocity: Array | None = None,
    elements: Sequence[Line] = (),
    seed: int | None = None,
    scenario: str = "",
    engine: str = "auto",
) -> Run:
    """Check everything that can be checked before a simulation starts.

    Times in s; a result row is kept every ``output_step``, a whole number of steps (as near to 0.02 s as the duration
    allows, by default). ``elements``:
    ligaments, muscles, rods and cables between links (see elements.py). ``engine``: compiled, vm (CasADi's
    interpreter), reference (Pinocchio, readable), or auto.
    """
    find_name(engine, ENGINES, what="engine", where="simulate", error=ScenarioError)
    check_number(duration, what="duration", unit="s", low=1e-3, high=1e6, error=ScenarioError)
    check_number(step, what="step", unit="s", low=1e-6, high=0.1, error=ScenarioError, hint="0.005 suits most people")
    steps = round(duration / step)
    if steps < 1 or abs(steps * step - duration) > 1e-6:
        raise ScenarioError(
            f"duration is {duration:g} s, which is not a whole number of steps of {step:g} s; "
            f"try {max(1, steps) * step:g}"
        )
    if output_step is None:
        most = max(1, round(USUAL_OUTPUT_STEP / step))
        output_step = step * max(every for every in range(1, most + 1) if steps % every == 0)
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
    if body.floats:
        raise ScenarioError(
            f"the body {body.name!r} floats, so it does not stand on a deck with its root; "
            "simulate one without floats = true in its .toml"
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
    attributes = provenance(body, step=step, seed=seed, scenario=scenario)
    attributes["facing_rad"] = float(getattr(deck, "facing", 0.0))  # of X from the bow to port (ship/motion.TurnedDeck)
    if elements:
        position, velocity, _ = np.split(state, [len(body.joint_names), 2 * len(body.joint_names)])
        dynamics = with_elements(body, elements, position, velocity)
        assert dynamics.elements is not None  # for the type checker: there are elements
        attributes["elements"] = json.dumps(
            [{"type": type(line).__name__.lower()} | asdict(line) for line in dynamics.elements.lines]
        )
    _check_step(body, controller, state, step, elements)
    return Run(body, deck, controller, duration, step, every, state, attributes, tuple(elements), engine)


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
    if "force_elements_on_person" in dataset:
        force = force + dataset["force_elements_on_person"].values / dataset.attrs["body_mass_kg"]
    error = np.abs(force[1:-1] - expected[1:-1] - com_acceleration).max(axis=1)
    if "element_impulse" in dataset:  # a cable that snaps taut changes velocities at once: no acceleration there
        snapped = dataset["element_impulse"].values.max(axis=1) > 0
        error = error[~(snapped[:-2] | snapped[1:-1] | snapped[2:])]
    return float(error.max(initial=0.0) / STANDARD_GRAVITY)


def closed_loop_matrix(
    body: Body, controller: Controller, state: Array, elements: Sequence[Line] = ()
) -> tuple[Array, Array, Array]:
    """Linearised closed loop on a level deck at rest, by central differences, over the free joints.

    Cables stay taut or slack as they are: a nudge must not find the corner between the two.

    Returns the system matrix A of (position, velocity, memory), how each joint's torque enters the rates (size ×
    joints) and how each joint's torque depends on the state through the controller (joints × size).
    """
    joints, free = len(body.joint_names), body.free
    dynamics = Dynamics(body, elements, state[:joints])
    level = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
    held = None
    if dynamics.elements is not None:
        torque = controller.torque(0.0, *np.split(state, [joints, 2 * joints]))
        dynamics.acceleration(state[:joints], state[joints : 2 * joints], torque, level)
        held = dynamics.elements.is_rod | (dynamics.elements.is_cable & (dynamics.tension > 0))
    memory_columns = np.arange(2 * joints, len(state))
    columns = np.concatenate((free, joints + free, memory_columns)).astype(int)

    def parts(x: Array) -> tuple[Array, Array]:
        position, velocity, memory = x[:joints], x[joints : 2 * joints], x[2 * joints :]
        torque = controller.torque(0.0, position, velocity, memory)
        acceleration = dynamics.acceleration(position, velocity, torque, level, held=held)
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
    base = dynamics.acceleration(state[:joints], still, still, level, held=held)
    for joint in free:
        unit = np.zeros(joints)
        unit[joint] = 1.0
        push[len(free) : 2 * len(free), joint] = (
            dynamics.acceleration(state[:joints], still, unit, level, held=held) - base
        )[free]
    return matrix, push, gains


def _spoils(value: complex, step: float) -> bool:
    """Whether RK4 with this step makes a mode (eigenvalue in 1/s) grow that does not grow in truth."""
    z = step * value
    return value.real < 1e-6 and abs(1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24) > 1 + 1e-9


def _spoiled(values: NDArray[Any], step: float) -> list[int]:
    """Which modes RK4 with this step would spoil."""
    return [index for index, value in enumerate(values) if _spoils(value, step)]


def _check_step(body: Body, controller: Controller, state: Array, step: float, elements: Sequence[Line] = ()) -> None:
    """Refuse a step for which RK4 would turn a decaying mode of the closed loop into a growing one."""
    if not len(body.free):
        return
    matrix, push, gains = closed_loop_matrix(body, controller, state, elements)
    values, left, right = eig(matrix, left=True, right=True)
    unsafe = _spoiled(values, step)
    if not unsafe:
        return
    worst = max(unsafe, key=lambda index: abs(values[index]))
    largest, refused = 0.0, step
    while refused - largest > 1e-4 * refused:
        middle = (largest + refused) / 2
        if any(_spoils(values[index], middle) for index in unsafe):
            refused = middle
        else:
            largest = middle
    digit = 10.0 ** (math.floor(math.log10(largest)) - 2)
    largest = math.floor(largest / digit) * digit  # three digits, never rounded up to what would be refused
    # First-order change of the eigenvalue when one gain of one joint grows: w* (dA) v / (w* v).
    w, v, count = left[:, worst], right[:, worst], len(body.free)
    scale = abs(np.vdot(w, v))
    blame = {}
    for joint, name in zip(body.free, body.free_joints, strict=True):
        into = np.vdot(w, push[:, joint])
        for gain, columns in (
            ("stiffness", slice(count)),
            ("damping", slice(count, 2 * count)),
            ("integral gain", slice(2 * count, None)),
        ):
            blame[f"{gain} of joint {name!r}"] = abs(into * (gains[joint, columns] @ v[columns])) / scale
    guilty = max(blame, key=lambda name: blame[name])
    if elements and not _spoiled(np.linalg.eigvals(closed_loop_matrix(body, controller, state)[0]), step):
        guilty = "elements " + ", ".join(repr(line.name) for line in elements)
    raise ScenarioError(
        f"step {step:g} s is too large for the {guilty} (its fastest mode needs a step of at most {largest:.3g} s); "
        "shorten the step or lower that gain"
    )
