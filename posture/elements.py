"""Straight lines between two points of a body: ligaments, muscles, rods and cables (paper equations (24), (25)).

A line runs from a point on one link to a point on another (or on the root link: a harness made fast to the ship) and
pulls both ends together with tension T. Everything follows from its length l(q): with the row a = ∂l/∂q,

    l' = a v        l'' = a v' + γ        joint torques = -a' T

Ligaments and muscles have T as a function of l, l' and time. Rods and taut cables have l'' = 0 instead; their
tensions solve the KKT system  M v' + h = u - A'λ,  A v' + γ + 2αl' + α²(l - l0) = 0. The α terms (Baumgarte) let a
plain integrator without the projection below hold the length, too. A cable only pulls: λ >= 0, l <= l0, λ (l0 - l) = 0.
It goes taut with an impulse (the relative speed along it is lost, or partly returned) and slack when its tension
would turn negative; both instants are located inside the integration step.

Lengths and rates do not depend on how the base moves, so nothing here knows about decks. Pinocchio has no distance
constraint, hence the KKT system is written out here; its Jacobians are Pinocchio's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq, lsq_linear

from posture.body import Body
from posture.errors import ScenarioError, check_number, find_name

Array = NDArray[np.floating]

STABILISATION = 20.0  # 1/s, α: how fast a length error would die out if nothing else removed it
TOUCH = 1e-9  # m and m/s: a cable this near its full length may be taut
LEVER = 1e-9  # m/rad: a line that changes less with every joint cannot be felt by any
REBOUND = 0.01  # m/s: a cable that snaps taut more slowly than this does not bounce
EVENTS_PER_STEP = 20  # beyond that a rattling cable is taken as taut for the rest of the step
SHORTEST = 1e-4  # m; the direction of a shorter line is not known well enough


@dataclass(frozen=True, kw_only=True)
class Line:
    """Where a line is attached: points (m) in the frames of two links."""

    name: str
    link_a: str
    point_a: tuple[float, float, float]
    link_b: str
    point_b: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Ligament(Line):
    """Spring and damper: T = k (l - l0) + b l', equation (25); slack below l0 and never pushing if ``slack``.

    stiffness N/m, damping N·s/m, rest_length m.
    """

    stiffness: float
    rest_length: float
    damping: float = 0.0
    slack: bool = True

    def tension(self, length: Any, rate: Any, time: Any, math: Any = np) -> Any:
        """Tension, N; ``math`` is numpy, or casadi for symbols."""
        linear = self.stiffness * (length - self.rest_length) + self.damping * rate
        return math.fmax(linear, 0.0) * (length > self.rest_length) if self.slack else linear


@dataclass(frozen=True, kw_only=True)
class Muscle(Line):
    """Muscle-like line actuator: T = activation · max_force · (force-length) · (force-velocity), no inner state.

    Force-length is exp(-((l/optimal_length - 1)/width)²); force-velocity is Hill's hyperbola with a/F0 = 1/4,
    reaching zero at ``max_velocity`` (m/s) of shortening and about 1.5 when stretched, without a corner at rest.
    ``activation``: pairs (time s, value 0…1), joined by straight lines and held before the first and after the last.
    """

    max_force: float
    optimal_length: float
    max_velocity: float
    activation: tuple[tuple[float, float], ...]
    width: float = 0.45

    def tension(self, length: Any, rate: Any, time: Any, math: Any = np) -> Any:
        """Tension, N; ``math`` is numpy, or casadi for symbols."""
        active: Any = self.activation[0][1]
        for (start, low), (end, high) in pairwise(self.activation):
            active = active + (high - low) * math.fmin(math.fmax((time - start) / (end - start), 0.0), 1.0)
        force_length = math.exp(-(((length / self.optimal_length - 1) / self.width) ** 2))
        shortening, stretch = math.fmin(rate / self.max_velocity, 0.0), math.fmax(rate / self.max_velocity, 0.0)
        force_velocity = (
            math.fmax(1 + shortening, 0.0) / (1 - 4 * shortening) + 0.5 - 0.5 * (1 - stretch) / (1 + 9 * stretch)
        )
        return self.max_force * active * force_length * force_velocity


@dataclass(frozen=True, kw_only=True)
class Rod(Line):
    """A line of fixed length that pulls and pushes, equation (24); the length at the start if none is given."""

    length: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cable(Line):
    """A line that cannot grow longer than ``length`` and goes slack freely.

    ``restitution`` (0…1): share of the speed along the cable that is returned when it snaps taut.
    """

    length: float | None = None
    restitution: float = 0.0


@dataclass(frozen=True)
class Impact:
    """A cable snapped taut: when (s), which, impulse (N·s) and energy lost (J)."""

    time: float
    name: str
    impulse: float
    energy: float


@dataclass(frozen=True)
class Geometry:
    """All lines at one instant: length, rate (n), row ∂l/∂q and γ of l'' = row v' + γ, unit direction a to b."""

    length: Array
    rate: Array
    row: Array
    bias: Array
    direction: Array


class Elements:
    """The lines of one body, ready for dynamics; unsaid lengths are taken from ``position``."""

    def __init__(self, body: Body, lines: Sequence[Line], position: Array | None = None) -> None:
        self.body, self.model, self.data = body, body.model, body.model.createData()
        self.impacts: list[Impact] = []
        self._free = body.free
        self._block = np.ix_(body.free, body.free)
        self._q = body.with_base(body.neutral)
        self._v, self._a = np.zeros(self.model.nv), np.zeros(self.model.nv)
        names = [line.name for line in lines]
        for name in names:
            if names.count(name) > 1:
                raise ScenarioError(f"element {name!r} is named twice; give every element a name of its own")
        self._ends = [
            (self._anchor(line.link_a, line.point_a), self._anchor(line.link_b, line.point_b)) for line in lines
        ]
        start = self.geometry(body.neutral if position is None else position, np.zeros(len(body.joint_names)))
        self.lines: list[Line] = [
            replace(line, length=float(length)) if isinstance(line, Rod | Cable) and line.length is None else line
            for line, length in zip(lines, start.length, strict=True)
        ]
        self.names = names
        self.full = np.array([getattr(line, "length", math.nan) for line in self.lines], float)
        self.is_rod = np.array([isinstance(line, Rod) for line in self.lines], bool)
        self.is_cable = np.array([isinstance(line, Cable) for line in self.lines], bool)
        self.constrained = bool((self.is_rod | self.is_cable).any())
        for line in self.lines:
            _check_line(line)

    def _anchor(self, link: str, point: Sequence[float]) -> tuple[int, Array]:
        """Joint that carries a link, and the point in that joint's frame."""
        frame = self.model.frames[self.body.link_frame(link)]
        return frame.parentJoint, frame.placement.act(np.array(point, float))

    def geometry(self, position: Array, velocity: Array) -> Geometry:
        """Lengths, rates and rows; the base may be taken at rest."""
        self._q[7:], self._v[6:] = position, velocity
        pin.forwardKinematics(self.model, self.data, self._q, self._v, self._a)
        pin.computeJointJacobians(self.model, self.data, self._q)
        count = len(self._ends)
        length, rate, bias = np.empty(count), np.empty(count), np.empty(count)
        row, direction = np.empty((count, len(position))), np.empty((count, 3))
        for index, ends in enumerate(self._ends):
            (place_a, jacobian_a, swing_a), (place_b, jacobian_b, swing_b) = (self._point(*end) for end in ends)
            span, jacobian, swing = place_b - place_a, jacobian_b - jacobian_a, swing_b - swing_a
            length[index] = size = math.sqrt(span @ span)
            direction[index] = span / size if size else np.nan
            row[index] = direction[index] @ jacobian
            speed = jacobian @ velocity
            rate[index] = direction[index] @ speed
            bias[index] = direction[index] @ swing + (speed @ speed - rate[index] ** 2) / (size or np.nan)
        return Geometry(length, rate, row, bias, direction)

    def _point(self, joint: int, point: Array) -> tuple[Array, Array, Array]:
        """Place, Jacobian (3 × joints) and acceleration at zero joint acceleration of a point, root axes."""
        placement, twist, change = self.data.oMi[joint], self.data.v[joint], self.data.a[joint]
        jacobian = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL)[:, 6:]
        arm, spin = pin.skew(point), twist.angular
        swing = change.linear - arm @ change.angular + pin.skew(spin) @ (twist.linear - arm @ spin)
        rotation = placement.rotation
        return (
            placement.translation + rotation @ point,
            rotation @ (jacobian[:3] - arm @ jacobian[3:]),
            rotation @ swing,
        )

    def apply(
        self,
        inertia: Array,
        load: Array,
        position: Array,
        velocity: Array,
        *,
        time: float,
        held: NDArray[np.bool_] | None,
    ) -> tuple[Array, Array, Geometry]:
        """Joint torques left after the lines have pulled, their tensions (n, N), and the geometry used.

        ``inertia``: joint mass matrix (upper triangle); ``load``: torques minus inertial terms, so that the joints
        would accelerate by M⁻¹ load without lines; ``held``: which lines keep their length (found out if None).
        """
        at = self.geometry(position, velocity)
        tension = np.zeros(len(self.lines))
        for index, line in enumerate(self.lines):
            if isinstance(line, Ligament | Muscle):
                tension[index] = line.tension(at.length[index], at.rate[index], time)
        load = load - at.row.T @ tension
        if not self.constrained:
            return load, tension, at
        if held is None:
            held = self.is_rod | self._pulled(inertia, load, at, self._touching(at))
        if held.any():
            stiffness, demand = self._reduced(inertia, load, at, held)
            tension[held] = _solve(stiffness, demand)
            load = load - at.row[held].T @ tension[held]
        return load, tension, at

    def _reduced(self, inertia: Array, load: Array, at: Geometry, held: NDArray[np.bool_]) -> tuple[Array, Array]:
        """A M⁻¹ A' and the l'' (with stabilisation) that tensions of the held lines have to cancel."""
        rows = at.row[held][:, self._free]
        solved = dposv(inertia[self._block], np.column_stack((load[self._free], rows.T)))[1]
        error = at.length[held] - self.full[held]
        pull = 2 * STABILISATION * at.rate[held] + STABILISATION**2 * error
        return rows @ solved[:, 1:], rows @ solved[:, 0] + at.bias[held] + pull

    def touching(self, position: Array, velocity: Array) -> bool:
        """Whether any cable may be under tension."""
        return bool(self._touching(self.geometry(position, velocity)).any())

    def _touching(self, at: Geometry) -> NDArray[np.bool_]:
        """Cables at full length and not getting shorter."""
        near = self.is_cable & (at.length >= self.full - TOUCH) & (at.rate >= -TOUCH)
        return np.asarray(near & self._lever(at))

    def _lever(self, at: Geometry) -> NDArray[np.bool_]:
        """Lines that some free joint can lengthen: no other is ever pulled."""
        return np.asarray(np.abs(at.row[:, self._free]).max(axis=1, initial=0.0) > LEVER)

    def _pulled(self, inertia: Array, load: Array, at: Geometry, touching: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the touching cables will be under tension (rods always act): λ >= 0, l'' <= 0, λ l'' = 0."""
        pulled = np.zeros(len(self.lines), bool)
        if touching.any():
            acting = self.is_rod | touching
            tension = complementary(*self._reduced(inertia, load, at, acting), self.is_cable[acting])
            pulled[acting] = (tension > 0) & self.is_cable[acting]
        return pulled

    def advance(
        self,
        time: float,
        state: Array,
        step: float,
        *,
        inertia: Callable[[Array], Array],
        stride: Callable[[Array, float, float, NDArray[np.bool_]], Array],
        tensions: Callable[[Array, float, NDArray[np.bool_] | None], Array],
    ) -> Array:
        """One integration step of the whole state through whatever goes taut or slack inside it.

        ``inertia(position)``: joint mass matrix. ``stride(state, start, size, held)`` integrates smoothly over a part
        of the step; ``tensions(state, start, held)`` tells the tensions there (start and size as shares of the step).
        """
        joints, done = len(self.body.joint_names), 0.0
        released, stuck = np.zeros(len(self.lines), bool), np.zeros(len(self.lines), bool)

        def excess(x: Array, at: float, held: NDArray[np.bool_]) -> Array:
            """Per line: positive once a slack cable is too long (m) or a taut one would push (N)."""
            over, slack = np.full(len(self.lines), -1.0), self.is_cable & ~held
            taut = self.is_cable & held & ~stuck
            if slack.any():
                place = self.geometry(x[:joints], x[joints : 2 * joints])
                over[slack] = np.where(self._lever(place), place.length - self.full, -1.0)[slack]
            if taut.any():
                over[taut] = -tensions(x, at, held)[taut]
            return over

        def excess_after(part: float, x: Array, at: float, held: NDArray[np.bool_], index: int) -> float:
            return float(excess(stride(x, at, part, held) if part else x, at + part, held)[index])

        for _ in range(EVENTS_PER_STEP):
            state = self._snap(time + done * step, state, inertia)
            touching = self._touching(self.geometry(state[:joints], state[joints : 2 * joints])) & ~released
            taut = touching & (tensions(state, done, None) > 0) if touching.any() else touching
            held, left = self.is_rod | taut | stuck, 1 - done
            after = stride(state, done, left, held)
            happened = np.flatnonzero(excess(after, 1.0, held) > 0)
            if not len(happened):
                return self._project(after, held, inertia)
            before, parts = excess(state, done, held), np.full(len(self.lines), left)
            for index in map(int, happened):
                early = 0.0
                if before[index] >= 0:  # bounced off at this very instant: look for a moment of its short flight
                    shares = left * 0.5 ** np.arange(1, 9)
                    flights = [part for part in shares if excess_after(part, state, done, held, index) < 0]
                    stuck[index] = not flights
                    early = flights[0] if flights else left
                if not stuck[index]:
                    parts[index] = brentq(excess_after, early, left, args=(state, done, held, index), xtol=1e-13)
            if stuck[happened].any() and not (held & stuck)[happened].any():
                continue  # too short a flight to see: taut from here on
            part = parts.min()
            state = self._project(stride(state, done, part, held), held, inertia)
            released |= taut & (parts <= part)  # rounding must not hold it again at the instant of its release
            done += part
            if done >= 1 - 1e-12:
                return self._snap(time + step, state, inertia)
        held = self.is_rod | self._touching(self.geometry(state[:joints], state[joints : 2 * joints]))
        return self._project(stride(state, done, 1 - done, held), held, inertia)

    def _snap(self, time: float, state: Array, inertia: Callable[[Array], Array]) -> Array:
        """Stop cables that have reached their length with speed left: impulses p >= 0, l' <= 0 after (or -e l')."""
        joints, free = len(self.body.joint_names), self._free
        at = self.geometry(state[:joints], state[joints : 2 * joints])
        touching = self._touching(at)
        if not (touching & (at.rate > TOUCH)).any():
            return state
        acting = self.is_rod | touching
        mass = inertia(state[:joints])[self._block]
        rows = at.row[acting][:, free]
        spread = dposv(mass, rows.T)[1]
        back = np.array([getattr(line, "restitution", 0.0) for line in self.lines])[acting]
        back *= at.rate[acting] > REBOUND
        impulse = complementary(rows @ spread, (1 + back) * at.rate[acting], self.is_cable[acting])
        result = state.copy()
        result[joints + free] -= spread @ impulse
        for index, push in zip(np.flatnonzero(acting), impulse, strict=True):
            if push > 0 and self.is_cable[index]:
                after = float(at.row[index] @ result[joints : 2 * joints])
                lost = float(push) * float(at.rate[index] + after) / 2  # impulse times the mean speed along the cable
                self.impacts.append(Impact(time, self.names[index], float(push), lost))
        return result

    def _project(self, state: Array, held: NDArray[np.bool_], inertia: Callable[[Array], Array]) -> Array:
        """Remove what the integrator let the held lengths drift, at the least kinetic-energy distance."""
        if not held.any():
            return state
        joints, free = len(self.body.joint_names), self._free
        result = state.copy()
        for _ in range(4):
            at = self.geometry(result[:joints], result[joints : 2 * joints])
            error = at.length[held] - self.full[held]
            rows = at.row[held][:, free]
            spread = dposv(inertia(result[:joints])[self._block], rows.T)[1]
            if np.abs(error).max() < 1e-13:
                break
            result[free] -= spread @ _solve(rows @ spread, error)
        result[joints + free] -= spread @ _solve(rows @ spread, rows @ result[joints + free])
        return result

    def forces(self, tension: Array, at: Geometry) -> tuple[pin.StdVec_Force, Array]:
        """Forces of the lines on the links as Pinocchio takes them, and their sum (N, root axes) on the person.

        What is made fast to the root link pulls on the deck, not on the feet: that end is left out.
        """
        found = [pin.Force.Zero() for _ in range(self.model.njoints)]
        total = np.zeros(3)
        for pull, direction, ends in zip(tension, at.direction, self._ends, strict=True):
            for (joint, point), sign in zip(ends, (1.0, -1.0), strict=True):
                if joint > 1:
                    force = sign * pull * direction
                    local = self.data.oMi[joint].rotation.T @ force
                    found[joint] += pin.Force(local, np.cross(point, local))
                    total += force
        return pin.StdVec_Force(found), total

    def variables(self, time: Array, tension: Array, length: Array, pull: Array) -> dict[str, Array]:
        """What a result holds about the lines at its rows; ``pull``: their force on the person (rows × 3, N)."""
        impulse, lost = self._take_impacts(time)
        return {
            "element_tension": tension,
            "element_length": length,
            "force_elements_on_person": pull,
            "element_impulse": impulse,
            "element_impact_energy": lost,
        }

    def _take_impacts(self, time: Array) -> tuple[Array, Array]:
        """Impulse (N·s) and energy lost (J), rows × lines, in snaps since the row before; forgets them."""
        impulse, lost = np.zeros((len(time), len(self.lines))), np.zeros((len(time), len(self.lines)))
        for impact in self.impacts:
            row = min(int(np.searchsorted(time, impact.time - 1e-12)), len(time) - 1)
            impulse[row, self.names.index(impact.name)] += impact.impulse
            lost[row, self.names.index(impact.name)] += impact.energy
        self.impacts.clear()
        return impulse, lost


def _solve(matrix: Array, right: Array) -> Array:
    """Solve for tensions; by least squares where a line passes its dead centre and has no lever for an instant."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


def complementary(matrix: Array, demand: Array, one_sided: NDArray[np.bool_]) -> Array:
    """λ with matrix λ = demand, except that one-sided λ >= 0 and matrix λ >= demand there, their product zero.

    For a symmetric positive definite matrix that is the least-squares problem min ½ λ'Aλ - demand'λ, λ >= 0.
    """
    root = np.linalg.cholesky(matrix).T
    target = np.linalg.solve(root.T, demand)
    low = np.where(one_sided, 0.0, -np.inf)
    return np.asarray(lsq_linear(root, target, bounds=(low, np.inf), method="bvls", tol=1e-14).x)


# ---------------------------------------------------------------- checks and scenario tables

KINDS: dict[str, type[Line]] = {"ligament": Ligament, "muscle": Muscle, "rod": Rod, "cable": Cable}
LIMITS = {  # unit, lowest, highest
    "stiffness": ("N/m", 0.0, 1e9),
    "damping": ("N·s/m", 0.0, 1e7),
    "rest_length": ("m", SHORTEST, 100.0),
    "max_force": ("N", 0.0, 1e5),
    "optimal_length": ("m", SHORTEST, 100.0),
    "max_velocity": ("m/s", 1e-3, 1e3),
    "width": ("", 0.05, 10.0),
    "length": ("m", SHORTEST, 100.0),
    "restitution": ("", 0.0, 1.0),
}


def _check_line(line: Line) -> None:
    for key, (unit, low, high) in LIMITS.items():
        if hasattr(line, key):
            check_number(
                getattr(line, key),
                what=f"element {line.name!r}: {key}",
                unit=unit,
                low=low,
                high=high,
                error=ScenarioError,
            )
    if isinstance(line, Muscle):
        times = [time for time, _ in line.activation]
        good = len(times) > 0 and all(late > early for early, late in pairwise(times))
        if not good or not all(0 <= value <= 1 for _, value in line.activation):
            raise ScenarioError(
                f"element {line.name!r}: activation needs pairs [time, value] with rising times and values from 0 to 1"
            )


def check_start(elements: Elements, position: Array, velocity: Array, inertia: Array) -> None:
    """Refuse rods and cables that the start state contradicts, or that hold each other fast."""
    at = elements.geometry(position, velocity)
    for line, length, rate in zip(elements.lines, at.length, at.rate, strict=True):
        if length < SHORTEST:
            raise ScenarioError(f"element {line.name!r} joins two points at the same place; move one of them")
        if isinstance(line, Rod) and (abs(length - (line.length or 0)) > 1e-6 or abs(rate) > 1e-6):
            raise ScenarioError(
                f"element {line.name!r} is a rod of {line.length:.6g} m, but at the start its ends are {length:.6g} m "
                f"apart and part at {rate:.3g} m/s; give that length (or none) and a start velocity that keeps it"
            )
        if isinstance(line, Cable) and length > (line.length or 0) + 1e-6:
            raise ScenarioError(
                f"element {line.name!r} is a cable of {line.length:.6g} m, but at the start its ends are {length:.6g} "
                "m apart; make it longer or start nearer"
            )
    rods = at.row[elements.is_rod][:, elements.body.free]
    if len(rods):
        spread = dposv(inertia[np.ix_(elements.body.free, elements.body.free)], rods.T)[1]
        reduced = rods @ spread
        scale = np.sqrt(np.maximum(np.diag(reduced), 0.0))
        if (scale < 1e-9).any() or np.linalg.eigvalsh(reduced / np.outer(scale, scale))[0] < 1e-9:
            names = ", ".join(name for name, rod in zip(elements.names, elements.is_rod, strict=True) if rod)
            raise ScenarioError(f"rods {names}: one of them changes nothing or repeats another; remove it")


def read_elements(tables: Any, where: str) -> list[Line]:
    """Lines from the [[element]] tables of a scenario: type, name, from, to, then its settings."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ScenarioError(f"{where}: elements are written as [[element]] tables")
    lines = []
    for number, table in enumerate(tables, start=1):
        settings = dict(table)
        place = f"{where}: [[element]] {number}"
        kind = KINDS[find_name(settings.pop("type", "?"), KINDS, what="element type", where=place, error=ScenarioError)]
        settings.setdefault("name", f"element_{number}")
        for end, letter in (("from", "a"), ("to", "b")):
            anchor = settings.pop(end, None)
            try:
                point = tuple(float(value) for value in anchor["point"])
                good = len(point) == 3 and all(map(math.isfinite, point)) and isinstance(anchor["link"], str)
            except (TypeError, KeyError, ValueError):
                good = False
            if not good:
                raise ScenarioError(
                    f'{place}: write {end} = {{ link = "…", point = [x, y, z] }} with m in the link\'s frame'
                )
            settings |= {f"link_{letter}": anchor["link"], f"point_{letter}": point}
        allowed = {field.name: field for field in fields(kind)}
        for key in settings:
            find_name(key, allowed, what="setting", where=place, error=ScenarioError)
        if "activation" in settings:
            given = settings["activation"]
            pairs = given if isinstance(given, list) else [[0.0, given]]
            try:
                settings["activation"] = tuple((float(time), float(value)) for time, value in pairs)
            except (TypeError, ValueError):
                raise ScenarioError(f"{place}: activation must be a number or pairs [time, value]") from None
        try:
            line = kind(**settings)
        except TypeError as error:
            missing = str(error).partition("argument")[2].lstrip("s: ")
            raise ScenarioError(f"{place}: lacks {missing}") from None
        if not isinstance(line.name, str) or not isinstance(getattr(line, "slack", True), bool):
            raise ScenarioError(f"{place}: name must be in quotes, slack true or false")
        lines.append(line)
    return lines
