"""Standing on a moving deck as a Gymnasium environment, one or many at once, on the compiled engine (extra ``gym``).

Observation: joint positions (rad), joint velocities (rad/s) and the nine deck channels (angular velocity and
acceleration, specific force over g). Action: joint torques in shares of each joint's toppling stiffness (N·m), each in
[-1, 1], added to what carries the upright body and held for ``period`` s. Reward per step: 1 - lean² - 0.01 effort²,
where lean is the distance of the centre of mass from the middle of the stance in shares of its half size, and effort
the mean square action. An episode ends when the person falls, or is cut off after ``duration`` s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controllers import FromPolicy, Symbols
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import DeckMotion, Sine, SineDeck, channels_of
from posture.engine.machine import Batch, machine_for
from posture.engine.program import Program
from posture.engine.tables import Samples
from posture.errors import ScenarioError, check_number
from posture.simulate import FALLEN_SHARE

try:
    import gymnasium
except ImportError:  # pragma: no cover - the message is what is tested
    raise ScenarioError("the environment needs Gymnasium; pip install posture[gym]") from None

Array = NDArray[np.floating]

MakeDeck = Callable[[int], DeckMotion]


class Applied:
    """A constant torque, so that the compiled engine takes any action as parameters of one library."""

    memory_size = 0

    def __init__(self, joint_names: list[str]) -> None:
        self.joint_names = tuple(joint_names)
        self.applied = np.zeros(len(self.joint_names))

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """The torque itself."""
        return self.applied

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: there is no memory."""
        return np.zeros(0)

    def parameters(self) -> dict[str, Array]:
        """The torque, which differs from run to run."""
        return {"applied": self.applied}

    def symbolic_form(self) -> str:
        """Nothing but its size."""
        return "applied"

    def symbolic(self, symbols: Symbols) -> tuple[Any, Any]:
        """The torque itself."""
        return symbols.parameters["applied"], symbols.memory


def random_deck(seed: int) -> DeckMotion:
    """A deck that rolls, pitches and heaves in sines of random size and period: what is stood on by default."""
    random = np.random.default_rng(seed)
    sizes = {"roll": 0.06, "pitch": 0.04, "heave": 0.8, "surge": 0.3, "sway": 0.3}
    return SineDeck(
        {
            name: [Sine(size * random.uniform(0.3, 1), random.uniform(5, 12), random.uniform(0, 2 * np.pi))]
            for name, size in sizes.items()
        }
    )


class _Stepping:
    """Many persons of one body, each on a deck of their own, advanced together."""

    def __init__(self, body: str | Body, make_deck: MakeDeck, *, period: float, step: float, duration: float) -> None:
        self.body = load_body(body) if isinstance(body, str) else body
        check_number(step, what="step", unit="s", low=1e-4, high=0.1, error=ScenarioError)
        self.steps = round(period / step)
        if self.steps < 1 or abs(self.steps * step - period) > 1e-9:
            raise ScenarioError(f"the period {period:g} s is not a whole number of steps of {step:g} s")
        self.step, self.period, self.make_deck = step, period, make_deck
        self.length = round(duration / period)
        self.law = Applied(self.body.joint_names)
        program = Program([self.body], self.law)
        self.machine = machine_for(program, "auto")
        numbers = program.parameters(self.body, self.law)
        self.joints = len(self.body.joint_names)
        self.numbers = numbers[: len(numbers) - self.joints]  # the law's come last
        stiffness = self.body.toppling_stiffness()
        self.scale = np.array([stiffness[name] for name in self.body.joint_names])
        self.hold = self.body.gravity_torque(self.body.neutral)
        self.upright = float(self.body.center_of_mass()[2])
        outline = self.body.contact_polygon() if self.body.contact_names else np.array([[-0.1, -0.1], [0.1, 0.1]])
        self.middle, self.half = (outline.min(axis=0) + outline.max(axis=0)) / 2, np.ptp(outline, axis=0) / 2
        size = 2 * self.joints + 9
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (self.joints,), np.float64)

    def channels(self, deck: DeckMotion) -> Array:
        """All the deck does in an episode, at half steps."""
        return channels_of(deck.sample(np.arange(2 * self.steps * self.length + 1) * (self.step / 2)))

    def start(self, random: np.random.Generator) -> Array:
        """Nearly upright, at rest."""
        state = np.zeros(2 * self.joints)
        state[: self.joints] = self.body.neutral
        state[self.body.free] += random.normal(0, 0.01, len(self.body.free))
        return state

    def advance(self, states: Array, channels: Array, actions: Array) -> Array:
        """States after one period; channels are those of each person's period (runs × 2 steps + 1 × 9)."""
        torque = self.hold + self.scale * np.clip(actions, -1, 1)
        numbers = np.hstack((np.tile(self.numbers, (len(states), 1)), torque))
        tables = [Samples(rows) for rows in channels]
        with np.errstate(all="ignore"):
            batch = Batch(numbers, states, tables, self.steps, self.step, self.steps)
            return np.asarray(self.machine.states(batch)[:, -1])

    def observed(self, states: Array, channels: Array) -> Array:
        """Observations (runs × size) from states and the deck's present channels (runs × 9)."""
        return np.hstack((states, channels / [1, 1, 1, 1, 1, 1, *[STANDARD_GRAVITY] * 3]))

    def judged(self, states: Array, actions: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Reward of each person and whether they fell."""
        rewards, fallen = np.zeros(len(states)), np.zeros(len(states), bool)
        for row, state in enumerate(states):
            if not np.isfinite(state).all() or np.abs(state[: self.joints]).max() > np.pi:
                fallen[row] = True
                continue
            center = self.body.center_of_mass(state[: self.joints])
            fallen[row] = center[2] < max(FALLEN_SHARE, 0.8) * self.upright
            lean = float(np.linalg.norm((center[:2] - self.middle) / self.half))
            rewards[row] = 1 - min(lean, 10.0) ** 2 - 0.01 * float(np.mean(np.clip(actions[row], -1, 1) ** 2))
        return np.where(fallen, 0.0, rewards), fallen


class DeckStance(gymnasium.Env[Array, Array]):
    """One person on a deck; ``make_deck(seed)`` gives each episode its motion."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        body: str | Body = "ship_stance",
        make_deck: MakeDeck = random_deck,
        *,
        period: float = 0.02,
        step: float = 0.005,
        duration: float = 20.0,
    ) -> None:
        self.stepping = _Stepping(body, make_deck, period=period, step=step, duration=duration)
        self.observation_space, self.action_space = self.stepping.observation_space, self.stepping.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """A new episode; the same seed gives the same deck and start."""
        super().reset(seed=seed)
        self.channels = self.stepping.channels(self.stepping.make_deck(int(self.np_random.integers(2**31))))
        self.state = self.stepping.start(self.np_random)
        self.count = 0
        return self._observation(), {}

    def _observation(self) -> Array:
        row = self.channels[2 * self.stepping.steps * self.count]
        return np.asarray(self.stepping.observed(self.state[None], row[None])[0])

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Hold an action for one period."""
        first = 2 * self.stepping.steps * self.count
        rows = self.channels[None, first : first + 2 * self.stepping.steps + 1]
        after = self.stepping.advance(self.state[None], rows, np.asarray(action, float)[None])
        rewards, fallen = self.stepping.judged(after, np.asarray(action)[None])
        self.state, self.count = np.nan_to_num(after[0], posinf=1e6, neginf=-1e6), self.count + 1
        cut = self.count >= self.stepping.length
        return self._observation(), float(rewards[0]), bool(fallen[0]), cut, {}


class DeckStances(gymnasium.vector.VectorEnv[Array, Array, NDArray[Any]]):
    """Many persons advanced in one call of the compiled engine; a finished one starts anew at the next step."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        count: int,
        body: str | Body = "ship_stance",
        make_deck: MakeDeck = random_deck,
        *,
        period: float = 0.02,
        step: float = 0.005,
        duration: float = 20.0,
    ) -> None:
        self.num_envs = count
        self.stepping = _Stepping(body, make_deck, period=period, step=step, duration=duration)
        self.single_observation_space = self.stepping.observation_space
        self.single_action_space = self.stepping.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, count)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, count)
        self._done = np.zeros(count, bool)
        self._random: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes for all; person k of seed s has what ``DeckStance.reset(seed=s + k)`` gives.

        Without a seed the random numbers go on from where they were, as Gymnasium wants it.
        """
        seeds = [seed + k for k in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise ScenarioError(
                f"reset got {len(seeds)} seeds for {self.num_envs} persons; give one each, or one number"
            )
        for row, one in enumerate(seeds):
            if one is not None or row == len(self._random):
                self._random[row : row + 1] = [gymnasium.utils.seeding.np_random(one)[0]]
        self.channels: list[Array] = [np.zeros(0)] * self.num_envs
        self.states, self.counts = np.zeros((self.num_envs, 2 * self.stepping.joints)), np.zeros(self.num_envs, int)
        for row in range(self.num_envs):
            self._restart(row)
        self._done[:] = False
        return self._observations(), {}

    def _restart(self, row: int) -> None:
        random = self._random[row]
        self.channels[row] = self.stepping.channels(self.stepping.make_deck(int(random.integers(2**31))))
        self.states[row], self.counts[row] = self.stepping.start(random), 0

    def _observations(self) -> Array:
        rows = np.array([self.channels[k][2 * self.stepping.steps * self.counts[k]] for k in range(self.num_envs)])
        return self.stepping.observed(self.states, rows)

    def step(self, actions: Array) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Hold each person's action for one period."""
        going = ~self._done
        rewards, fallen = np.zeros(self.num_envs), np.zeros(self.num_envs, bool)
        for row in np.flatnonzero(self._done):
            self._restart(int(row))
        if going.any():
            size = 2 * self.stepping.steps
            parts = np.array([self.channels[k][size * self.counts[k] :][: size + 1] for k in np.flatnonzero(going)])
            after = self.stepping.advance(self.states[going], parts, actions[going])
            rewards[going], fallen[going] = self.stepping.judged(after, actions[going])
            self.states[going] = np.nan_to_num(after, posinf=1e6, neginf=-1e6)
            self.counts[going] += 1
        cut = going & (self.counts >= self.stepping.length)
        self._done = fallen | cut
        return self._observations(), rewards, fallen, cut, {}


def policy_controller(env: DeckStance, act: Callable[[Array], Any], deck: DeckMotion) -> FromPolicy:
    """A policy learnt in ``env`` as a controller for ``simulate`` on ``deck``."""
    stepping = env.stepping

    def observe(time: float, position: Array, velocity: Array) -> Array:
        row = channels_of(deck.sample(np.array([time])))
        return np.asarray(stepping.observed(np.concatenate((position, velocity))[None], row)[0])

    return FromPolicy(
        stepping.body.joint_names,
        act,
        observe=observe,
        scale=stepping.scale,
        hold=stepping.hold,
        period=stepping.period,
    )
