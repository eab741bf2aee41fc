"""Named controllers with settings that fit any body: every one of ``NAMES`` for every standing body, by one call.

Gains are told in multiples of what the body itself asks for: the toppling stiffness m·g·l of each joint, times the
least factor at which stiffness alone holds the whole chain up. So the same settings carry over from a one-joint
pendulum to a person of fifty joints. What a law cannot do with a body it refuses, in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from controllers import (
    LQR,
    MPC,
    PD,
    PID,
    BaseFeedforward,
    ComputedTorque,
    Controller,
    ControllerError,
    Delayed,
    FilteredNoise,
    Intermittent,
    Sensed,
    Sensory,
    StrategySwitch,
    Together,
    WholeBody,
)
from posture.body import Body, body_from_text
from posture.deck import DeckMotion
from posture.errors import ScenarioError, find_name
from posture.plant import Plant
from posture.segments import lyapunov
from posture.swap import roles
from posture.urdf import INERTIA_KEYS

Array = NDArray[np.floating]

FASTEST = 120.0  # rad/s
ACCELERATION = 500.0  # rad/s²; as dear to an LQR as a lean of 1 rad
HUMAN_DELAY = 0.1  # s; feedback of a standing person, between the 0.08 and 0.2 s in use


@dataclass(frozen=True)
class Recipe:
    """What a law is made from: the body it believes in, the deck it may know of, the integration step, a seed.

    ``lag``: how late it learns of the deck's motion, s.
    """

    body: Body
    deck: DeckMotion
    step: float
    duration: float
    seed: int
    lag: float = 0.0

    @property
    def names(self) -> list[str]:
        """Joint names."""
        return self.body.joint_names

    def scaled(self, factor: float) -> dict[str, float]:
        """``factor`` times what holds the body up by stiffness alone, joint by joint, N·m/rad; light joints less.

        A joint alone never swings faster than ``FASTEST``: an arm held out needs no more, and integrators ask for it.
        """
        share, lightness = factor * least_factor(self.body), self._lightness()
        own = self.body.toppling_stiffness()
        return {name: min(share * value, FASTEST**2 / lightness[name]) for name, value in own.items()}

    def plant(self, *, knows_deck: bool) -> Plant:
        """The model that a law uses."""
        return Plant(self.body, self.deck if knows_deck else None, lag=self.lag)

    def damping(self, stiffness: dict[str, float], time: float) -> dict[str, float]:
        """``time`` (s) times stiffness, but never more than stops a joint alone within 20 ms."""
        lightest = self._lightness()
        return {name: min(time * value, 50.0 / lightest[name]) for name, value in stiffness.items()}

    def _lightness(self) -> dict[str, float]:
        """Acceleration of each joint per torque on it, 1/(kg·m²), all other joints free."""
        free = self.body.free
        inertia = self.plant(knows_deck=False).inertia(self.body.neutral)[np.ix_(free, free)]
        found = dict.fromkeys(self.names, 1.0) | dict(
            zip(self.body.free_joints, np.diag(np.linalg.inv(inertia)), strict=True)
        )
        return {name: float(value) for name, value in found.items()}

    def weights(self, *, straight: tuple[str, ...] = (), dear: tuple[str, ...] = ()) -> dict[str, Any]:
        """LQR weights: torque in multiples of toppling stiffness, light joints dearer.

        Roles in ``straight`` have their angle count a hundredfold, roles in ``dear`` their torque tenfold.
        """
        own, lightness = self.body.toppling_stiffness(), self._lightness()
        part = {name: role.rpartition("_")[0] for role, names in roles(self.body).items() for name in names}
        torque = {
            name: (10.0 if part.get(name) in dear else 1.0) * max(1 / own[name], lightness[name] / ACCELERATION) ** 2
            for name in self.names
        }
        position = {name: 100.0 if part.get(name) in straight else 1.0 for name in self.names}
        return {"position_weight": position, "velocity_weight": 0.1, "torque_weight": torque}

    def lowest(self) -> list[str]:
        """Joints next to the deck that can topple the body: the ankles of a person."""
        heights = self.body.joint_heights()
        low = min(heights.values())
        vertical = {name for role, names in roles(self.body).items() if role.endswith("_z") for name in names}
        return [name for name, height in heights.items() if height < low + 0.02 and name not in vertical]

    def lean(self) -> Array:
        """Rows that tell from joint angles how far the centre of mass leans about each joint: J_i·J / J_i·J_i."""
        jacobian = self.plant(knows_deck=False).center(self.body.neutral, np.zeros(len(self.names)))[2][:2]
        own = np.einsum("ij,ij->j", jacobian, jacobian)
        return np.asarray(jacobian.T @ jacobian / np.where(own > 1e-12, own, np.inf)[:, None])

    def outline(self) -> Array:
        """The stance, which constrained laws need."""
        if not self.body.contact_names:
            raise ControllerError("it needs the outline of the feet, which the body's sidecar does not tell")
        return self.body.contact_polygon()


def least_factor(body: Body) -> float:
    """Stiffness over toppling stiffness, the same for all joints, at which the upright body just does not fall.

    The largest eigenvalue of D^-1/2 H D^-1/2 with H = -d(gravity torque)/dq, the toppling matrix, and D its scale per
    joint; 1 for a single joint, up to the number of joints that carry each other.
    """
    scale = np.array([body.toppling_stiffness()[name] for name in body.free_joints])
    if (scale <= 0).any():
        joint = body.free_joints[int(np.argmin(scale))]
        raise ControllerError(f"joint {joint!r} carries nothing that could topple; lock it or give its gain by name")
    slopes = Plant(body).slopes(body.neutral, np.zeros(len(body.joint_names)), Plant(body).base(0))[0]
    toppling = -slopes[np.ix_(body.free, body.free)]
    root = 1 / np.sqrt(scale)
    return float(np.linalg.eigvalsh(root[:, None] * (toppling + toppling.T) / 2 * root)[-1])


def heavier(body: Body, factor: float) -> Body:
    """The body with all masses and inertias multiplied: somebody the controller was not told of."""
    root = etree.fromstring(body.urdf.encode())
    for inertial in root.iter("inertial"):
        mass, inertia = inertial.find("mass"), inertial.find("inertia")
        mass.set("value", f"{factor * float(mass.get('value')):.17g}")
        for key in INERTIA_KEYS:
            inertia.set(key, f"{factor * float(inertia.get(key)):.17g}")
    return body_from_text(body.name, etree.tostring(root, encoding="unicode"), body.sidecar).lock(body.locked)


def _pd(recipe: Recipe) -> Controller:
    stiffness = recipe.scaled(2.0)
    return PD(recipe.names, stiffness=stiffness, damping=recipe.damping(stiffness, 0.2))


def _pid(recipe: Recipe) -> Controller:
    stiffness = recipe.scaled(2.0)
    integral = _times(stiffness, 0.1)
    return PID(recipe.names, stiffness=stiffness, damping=recipe.damping(stiffness, 0.2), integral=integral)


def _gravity_pd(recipe: Recipe) -> Controller:
    stiffness = recipe.scaled(1.0)
    damping = recipe.damping(stiffness, 0.3)
    return PD(recipe.names, stiffness=stiffness, damping=damping, gravity_torque=recipe.body.gravity_torque)


def _lqr(recipe: Recipe) -> Controller:
    return LQR(recipe.plant(knows_deck=False), **recipe.weights())


def _lqr_deck(recipe: Recipe) -> Controller:
    plant = recipe.plant(knows_deck=True)
    return Together(LQR(plant, **recipe.weights()), BaseFeedforward(plant))


def _computed_torque(recipe: Recipe) -> Controller:
    return ComputedTorque(recipe.plant(knows_deck=True), frequency=3.0, damping_ratio=1.0)


def _lyapunov(recipe: Recipe) -> Controller:
    return lyapunov(recipe.body, rotation=60.0, translation=15.0, damping_time=0.3)


def _whole_body(recipe: Recipe) -> Controller:
    period = max(recipe.step, 0.005)
    return WholeBody(recipe.plant(knows_deck=True), outline=recipe.outline(), frequency=3.0, period=period)


def _mpc(recipe: Recipe) -> Controller:
    return MPC(
        recipe.plant(knows_deck=True), period=0.05, horizon=20, outline=recipe.outline(), **recipe.weights()
    )  # fmt: skip


def _late_ankles(recipe: Recipe, law: Callable[[dict[str, float], dict[str, float]], Controller]) -> Controller:
    """A person: nerves steer the joints next to the deck, late; all others are held by their muscles' own stiffness.

    A chain of joints that are all fed back 0.1 s late cannot be held up: its faster modes topple within that time.
    """
    ankles, own = recipe.lowest(), recipe.body.toppling_stiffness()
    late = {name: 1.8 * own[name] for name in ankles}
    steering = Sensed(law(late, {name: 0.45 * own[name] for name in ankles}), recipe.lean())
    active = Delayed(steering, delay=HUMAN_DELAY, step=recipe.step)
    return Together(_muscles(recipe, dict.fromkeys(ankles, 0.0)), active)


def _muscles(recipe: Recipe, ankles: dict[str, float]) -> Controller:
    """Passive stiffness of everything above the ankles, and as much as given (times m·g·l) at the ankles."""
    own, rest = recipe.body.toppling_stiffness(), recipe.scaled(3.0)
    stiffness = rest | {name: share * own[name] for name, share in ankles.items()}
    return PD(recipe.names, stiffness=stiffness, damping=recipe.damping(stiffness, 0.1))


def _delayed_pd(recipe: Recipe) -> Controller:
    return _late_ankles(recipe, lambda stiffness, damping: PD(recipe.names, stiffness=stiffness, damping=damping))


def _sensory(recipe: Recipe) -> Controller:
    noise = {
        name: FilteredNoise(
            gain=0.01, time_constant=0.5, interval=recipe.step, duration=recipe.duration, seed=recipe.seed + index
        )
        for index, name in enumerate(("proprioceptive", "vestibular"))
    }
    tilt = recipe.plant(knows_deck=True).tilt
    weights = {"proprioceptive": 0.7, "vestibular": 0.3}
    return _late_ankles(
        recipe,
        lambda stiffness, damping: Sensory(
            recipe.names, stiffness=stiffness, damping=damping, weights=weights, tilt=tilt, noise=noise, lag=HUMAN_DELAY
        ),
    )


def _intermittent(recipe: Recipe) -> Controller:
    ankles, own = recipe.lowest(), recipe.body.toppling_stiffness()
    active = Intermittent(
        recipe.names,
        stiffness={name: 0.8 * own[name] for name in ankles},
        damping={name: 0.3 * own[name] for name in ankles},
    )
    late = Delayed(Sensed(active, recipe.lean()), delay=HUMAN_DELAY, step=recipe.step)
    return Together(_muscles(recipe, dict.fromkeys(ankles, 0.8)), late)


def _ankle_hip(recipe: Recipe) -> Controller:
    found = {role.rpartition("_")[0] for role in roles(recipe.body)}
    if not {"ankle", "hip"} <= found:
        missing = "ankle" if "ankle" not in found else "hip"
        raise ControllerError(f"it switches between ankle and hip, and no joint of this body has the role of {missing}")
    plant = recipe.plant(knows_deck=False)
    ankle = LQR(plant, **recipe.weights(straight=("hip", "trunk")))
    hip = LQR(plant, **recipe.weights(dear=("ankle",)))
    return StrategySwitch(plant, ankle, hip, outline=recipe.outline())


def _times(gains: dict[str, float], factor: float) -> dict[str, float]:
    return {name: factor * value for name, value in gains.items()}


_MAKERS: dict[str, Callable[[Recipe], Controller]] = {
    "pd": _pd,
    "pid": _pid,
    "gravity_pd": _gravity_pd,
    "lqr": _lqr,
    "lqr_deck": _lqr_deck,
    "computed_torque": _computed_torque,
    "lyapunov": _lyapunov,
    "whole_body": _whole_body,
    "mpc": _mpc,
    "delayed_pd": _delayed_pd,
    "sensory": _sensory,
    "intermittent": _intermittent,
    "ankle_hip": _ankle_hip,
}
NAMES = tuple(_MAKERS)


def make_law(
    name: str,
    body: Body,
    deck: DeckMotion,
    *,
    step: float = 0.005,
    duration: float = 60.0,
    seed: int = 0,
    delay: float = 0.0,
) -> Controller:
    """One of ``NAMES`` for a body; laws that may know the deck's motion know ``deck``.

    ``delay`` (s, whole steps) comes on top of a law's own: everything it senses arrives so much later.
    """
    find_name(name, NAMES, what="controller", where="laws", error=ScenarioError)
    try:
        law = _MAKERS[name](Recipe(body, deck, step, duration, seed, delay))
        return Delayed(law, delay=delay, step=step) if delay else law
    except ControllerError as error:
        raise ScenarioError(f"{name} does not fit {body.name}: {error}") from None
