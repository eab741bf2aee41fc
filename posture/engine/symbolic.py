"""Forward and inverse dynamics of a ``pin.Model`` as CasADi expressions: the mirror of Pinocchio.

Recursive Newton-Euler for inverse and articulated bodies for forward dynamics, in link frames, with classical
accelerations of the joint origins (so that linear velocities never appear). Masses, first moments, inertias and
offsets can be symbols: then persons of one build share the formulas, and CasADi can differentiate to them.
Spatial rows are ordered angular, then linear. Arguments follow Pinocchio's q, v, a.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi
import numpy as np
from numpy.typing import NDArray

from posture.engine import spatial as sp
from posture.engine.skeleton import FIELDS, Node, Skeleton
from posture.engine.spatial import Full, Ldl, Matrix, Planar, Rotation, Scalar, Vector

ZERO = [0.0, 0.0, 0.0]
Pulls = Mapping[int, tuple[Vector, Vector]]  # by node: moment about its joint and force from outside, node's axes


@dataclass
class Motion:
    """How a joint moves its link relative to its parent; vectors in the link's frame unless said otherwise.

    ``turns``: rotations parent to child, constant part first. ``shift``: travel in the parent's frame.
    ``spin``, ``glide``: relative angular and linear velocity; a ball joint's spin is worked out apart.
    """

    turns: list[Rotation]
    shift: Vector
    spin: Vector
    glide: Vector


class Mirror:
    """Dynamics of a skeleton. ``symbolic`` (nodes × 13, true where a number is a symbol) defaults to none.

    ``parameters`` is the vector of those symbols, ``parameter_names`` their names such as ``hip_z.mass``.
    """

    def __init__(self, skeleton: Skeleton, *, symbolic: NDArray[np.bool_] | None = None) -> None:
        self.skeleton = skeleton
        chosen = np.zeros(skeleton.values.shape, bool) if symbolic is None else symbolic
        self.parameter_names = [
            f"{node.name}.{field}"
            for node, row in zip(skeleton.nodes, chosen, strict=True)
            for field, wanted in zip(FIELDS, row, strict=True)
            if wanted
        ]
        self.parameters = casadi.SX.sym("parameters", len(self.parameter_names))
        waiting = iter(range(len(self.parameter_names)))
        self._numbers: list[Vector] = [
            [
                self.parameters[next(waiting)] if wanted else float(value)
                for wanted, value in zip(flags, row, strict=True)
            ]
            for flags, row in zip(chosen, skeleton.values, strict=True)
        ]
        self._children: list[list[int]] = [[] for _ in skeleton.nodes]
        for index, node in enumerate(skeleton.nodes):
            if node.parent >= 0:
                self._children[node.parent].append(index)

    # ------------------------------------------------------------ numbers of a node

    def _inertia(self, index: int) -> tuple[Scalar, Vector, Matrix]:
        mass, hx, hy, hz, xx, yy, zz, xy, xz, yz = self._numbers[index][:10]
        return mass, [hx, hy, hz], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]

    def _motion(self, node: Node, q: Vector, v: Vector, sines: dict[int, tuple[Scalar, Scalar]]) -> Motion:
        turns: list[Rotation] = []
        fixed = np.array(node.rotation).reshape(3, 3)
        if not np.array_equal(fixed, np.eye(3)):
            turns.append(Full(fixed.tolist()))
        shift, spin, glide = list(ZERO), list(ZERO), list(ZERO)
        rates = [v[index] for index in node.velocity]
        if node.kind == "revolute":
            turns.append(Planar(node.axes[0], *sines[node.position[0]]))
            spin[node.axes[0]] = rates[0]
        elif node.kind == "prismatic":
            travel = list(ZERO)
            travel[node.axes[0]] = q[node.position[0]]
            shift = sp.up(turns, travel)
            glide[node.axes[0]] = rates[0]
        elif node.kind == "ball":
            turns += [Planar(axis, *sines[index]) for axis, index in zip(node.axes, node.position, strict=True)]
        elif node.kind == "spherical":
            turns.append(Full(_quaternion([q[index] for index in node.position])))
            spin = rates
        elif node.kind == "planar":
            x, y, cosine, sine = (q[index] for index in node.position)
            shift = sp.up(turns, [x, y, 0.0])
            turns.append(Planar(2, sine, cosine))
            glide, spin = [rates[0], rates[1], 0.0], [0.0, 0.0, rates[2]]
        elif node.kind == "free":
            shift = sp.up(turns, [q[index] for index in node.position[:3]])
            turns.append(Full(_quaternion([q[index] for index in node.position[3:]])))
            glide, spin = rates[:3], rates[3:]
        return Motion(turns, shift, spin, glide)

    # ------------------------------------------------------------ dynamics

    def _kinematics(
        self, q: Vector, v: Vector, base: Base, sines: dict[int, tuple[Scalar, Scalar]] | None, pulls: Pulls | None
    ) -> _Pass:
        """Velocities of all links and everything that depends on them but not on accelerations."""
        if sines is None:
            sines = {index: (casadi.sin(q[index]), casadi.cos(q[index])) for index in self.skeleton.angles}
        state = _Pass([], [], [], [], [], [])
        for index, node in enumerate(self.skeleton.nodes):
            motion = self._motion(node, q, v, sines)
            spin_parent = state.spin[node.parent] if node.parent >= 0 else base.spin
            arm = sp.add(self._numbers[index][10:], motion.shift)
            state.arm.append(arm)
            state.centripetal.append(sp.cross(spin_parent, sp.cross(spin_parent, arm)))
            if node.kind == "ball":
                *early, last = motion.turns
                before = sp.down(early, spin_parent)
                relative, rate_bias = _ball_rates(node, motion, [v[i] for i in node.velocity])
                state.spin.append(last.down(sp.add(before, relative)))
                state.bias.append((sp.add(sp.cross(before, relative), rate_bias), ZERO))
            else:
                carried = sp.down(motion.turns, spin_parent)
                state.spin.append(sp.add(carried, motion.spin))
                twice = sp.add(carried, carried, motion.spin)
                state.bias.append((sp.cross(carried, motion.spin), sp.cross(twice, motion.glide)))
            state.turns.append(motion.turns)
            _, moment, inertia = self._inertia(index)
            w = state.spin[-1]
            turned, pushed = sp.cross(w, sp.times(inertia, w)), sp.cross(w, sp.cross(w, moment))
            if pulls and index in pulls:
                turned, pushed = (
                    sp.minus(own, outer) for own, outer in zip((turned, pushed), pulls[index], strict=True)
                )
            state.force.append((turned, pushed))
        return state

    def inverse(
        self,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        a: Sequence[Scalar],
        base: Base | None = None,
        sines: Any = None,
        pulls: Pulls | None = None,
    ) -> tuple[Vector, Vector]:
        """Generalised forces (nv; also of locked joints, zero of a prescribed base) and root wrench (force, moment)."""
        base = base or Base.still()
        q, v, a = list(q), list(v), list(a)
        state = self._kinematics(q, v, base, sines, pulls)
        turning: list[Vector] = []
        origin: list[Vector] = []
        wrench: list[tuple[Vector, Vector]] = []
        for index, node in enumerate(self.skeleton.nodes):
            spin_rate, linear = (
                (turning[node.parent], origin[node.parent]) if node.parent >= 0 else (base.spin_rate, base.linear)
            )
            at_joint = sp.add(linear, sp.cross(spin_rate, state.arm[index]), state.centripetal[index])
            turns, (spin_bias, glide_bias) = state.turns[index], state.bias[index]
            joint = self._spread(node, [a[i] for i in node.velocity])
            if node.kind == "ball":
                *early, last = turns
                turning.append(
                    last.down(sp.add(sp.down(early, spin_rate), spin_bias, self._ball_spread(node, turns, a)))
                )
            else:
                turning.append(sp.add(sp.down(turns, spin_rate), spin_bias, joint[:3]))
            origin.append(sp.add(sp.down(turns, at_joint), glide_bias, joint[3:]))
            mass, moment, inertia = self._inertia(index)
            alpha, acceleration = turning[-1], origin[-1]
            force = sp.add([mass * value for value in acceleration], sp.cross(alpha, moment), state.force[index][1])
            wrench.append(
                (sp.add(sp.times(inertia, alpha), state.force[index][0], sp.cross(moment, acceleration)), force)
            )
        result: Vector = [0.0] * self.skeleton.nv
        total, push = list(ZERO), list(ZERO)
        for index in reversed(range(len(wrench))):
            node = self.skeleton.nodes[index]
            moment, force = wrench[index]
            for place, value in zip(
                node.velocity, self._project(node, state.turns[index], moment, force), strict=False
            ):
                result[place] = value
            moment, force = sp.up(state.turns[index], moment), sp.up(state.turns[index], force)
            moment = sp.add(moment, sp.cross(state.arm[index], force))
            if node.parent >= 0:
                wrench[node.parent] = (sp.add(wrench[node.parent][0], moment), sp.add(wrench[node.parent][1], force))
            else:
                total, push = sp.add(total, moment), sp.add(push, force)
        return result, [*push, *total]

    def forward(
        self,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        tau: Sequence[Scalar],
        base: Base | None = None,
        sines: Any = None,
        pulls: Pulls | None = None,
    ) -> tuple[Vector, Vector]:
        """Accelerations (nv; zero at locked joints and a prescribed base) and root wrench (force, moment)."""
        base = base or Base.still()
        q, v, tau = list(q), list(v), list(tau)
        nodes = self.skeleton.nodes
        state = self._kinematics(q, v, base, sines, pulls)
        bodies = []
        for index in range(len(nodes)):
            mass, moment, inertia = self._inertia(index)
            heavy = [[mass, 0.0, 0.0], [0.0, mass, 0.0], [0.0, 0.0, mass]]
            bodies.append(_Articulated(inertia, sp.skew(moment), heavy, *state.force[index]))
        root = _Articulated([ZERO] * 3, [ZERO] * 3, [ZERO] * 3, ZERO, ZERO)
        solved: list[_Eliminated] = [None] * len(nodes)  # type: ignore[list-item]
        for index in reversed(range(len(nodes))):
            node, turns = nodes[index], state.turns[index]
            applied = self._generalised(node, turns, [tau[i] for i in node.velocity])
            spin_bias, glide_bias = state.bias[index]
            known = None
            if node.kind == "ball":  # all three turns are unknowns: no bias of theirs, and just the torque, goes on
                spin_bias, known, applied = ZERO, sp.up(turns[:-1], applied), turns[-1].down(applied)
            solved[index] = _Eliminated(bodies[index], _unknowns(node), applied, [*spin_bias, *glide_bias])
            target = bodies[node.parent] if node.parent >= 0 else root
            target.absorb(solved[index].passed, turns, state.arm[index], state.centripetal[index], known)
        result: Vector = [0.0] * self.skeleton.nv
        turning: list[Vector] = []
        origin: list[Vector] = []
        for index, node in enumerate(nodes):
            spin_rate, linear = (
                (turning[node.parent], origin[node.parent]) if node.parent >= 0 else (base.spin_rate, base.linear)
            )
            turns, (spin_bias, glide_bias) = state.turns[index], state.bias[index]
            at_joint = sp.add(linear, sp.cross(spin_rate, state.arm[index]), state.centripetal[index])
            glide = sp.add(sp.down(turns, at_joint), glide_bias)
            if node.kind == "ball":
                *early, last = turns
                total = solved[index].accelerations([*ZERO, *glide])
                relative = sp.minus(last.up(total[:3]), sp.add(sp.down(early, spin_rate), spin_bias))
                rates = self._ball_accelerations(node, turns, relative)
            else:
                carried = [*sp.add(sp.down(turns, spin_rate), spin_bias), *glide]
                total = solved[index].accelerations(carried)
                rates = [total[i] - carried[i] for i in _unknowns(node)]
            for place, value in zip(node.velocity, rates, strict=False):
                result[place] = value
            turning.append(total[:3])
            origin.append(total[3:])
        moment = sp.add(sp.times(root.inertia, base.spin_rate), sp.times(root.coupling, base.linear), root.moment)
        force = sp.add(
            sp.times(sp.transposed(root.coupling), base.spin_rate), sp.times(root.mass, base.linear), root.force
        )
        return result, [*force, *moment]

    def center_of_mass(self, q: Sequence[Scalar], sines: Any = None) -> Vector:
        """Centre of mass in the root frame, m."""
        q = list(q)
        if sines is None:
            sines = {index: (casadi.sin(q[index]), casadi.cos(q[index])) for index in self.skeleton.angles}
        nodes = self.skeleton.nodes
        masses = [self._inertia(index)[0] for index in range(len(nodes))]
        moments = [self._inertia(index)[1] for index in range(len(nodes))]
        mass, total = 0.0, list(ZERO)
        for index in reversed(range(len(nodes))):
            motion = self._motion(nodes[index], q, [0.0] * self.skeleton.nv, sines)
            arm = sp.add(self._numbers[index][10:], motion.shift)
            moment = sp.add(sp.up(motion.turns, moments[index]), [masses[index] * value for value in arm])
            parent = nodes[index].parent
            if parent >= 0:
                masses[parent] = masses[parent] + masses[index]
                moments[parent] = sp.add(moments[parent], moment)
            else:
                mass, total = mass + masses[index], sp.add(total, moment)
        return [value / mass for value in total]

    def point(self, index: int, local: Vector, q: Vector, sines: dict[int, tuple[Scalar, Scalar]]) -> Vector:
        """Place in the root frame (m) of a point of a node's frame."""
        place, still = list(local), [0.0] * self.skeleton.nv
        while index >= 0:
            motion = self._motion(self.skeleton.nodes[index], q, still, sines)
            place = sp.add(self._numbers[index][10:], motion.shift, sp.up(motion.turns, place))
            index = self.skeleton.nodes[index].parent
        return place

    def in_node(self, index: int, vector: Vector, q: Vector, sines: dict[int, tuple[Scalar, Scalar]]) -> Vector:
        """Components of a vector of the root frame along a node's axes."""
        node = self.skeleton.nodes[index]
        carried = vector if node.parent < 0 else self.in_node(node.parent, vector, q, sines)
        return sp.down(self._motion(node, q, [0.0] * self.skeleton.nv, sines).turns, carried)

    # ------------------------------------------------------------ joint coordinates and link directions

    def _spread(self, node: Node, rates: Vector) -> Vector:
        """Joint accelerations as six link directions; ball joints are handled apart."""
        spread: Vector = [0.0] * 6
        if node.kind != "ball":
            for place, value in zip(_unknowns(node), rates, strict=False):
                spread[place] = value
        return spread

    def _ball_spread(self, node: Node, turns: list[Rotation], a: Vector) -> Vector:
        first, second, third, _, sine, cosine, sign = _ball(node, turns)
        a1, a2, a3 = (a[i] for i in node.velocity)
        spread: Vector = [0.0] * 3
        spread[first], spread[second], spread[third] = cosine * a1, a2, sign * sine * a1 + a3
        return spread

    def _ball_accelerations(self, node: Node, turns: list[Rotation], relative: Vector) -> Vector:
        first, second, third, inverse, sine, _, sign = _ball(node, turns)
        a1 = relative[first] * inverse
        return [a1, relative[second], relative[third] - sign * sine * a1]

    def _generalised(self, node: Node, turns: list[Rotation], tau: Vector) -> Vector:
        """Joint torques as moments (forces) along the unknown link directions; of a ball, before its last turn."""
        if node.kind != "ball":
            return tau if node.kind != "fixed" else []
        first, second, third, inverse, sine, _, sign = _ball(node, turns)
        moment: Vector = [0.0] * 3
        moment[first] = (tau[0] - sign * sine * tau[2]) * inverse
        moment[second], moment[third] = tau[1], tau[2]
        return moment

    def _project(self, node: Node, turns: list[Rotation], moment: Vector, force: Vector) -> Vector:
        """Moment and force on a link as generalised forces of its joint."""
        if node.kind == "fixed":
            along = force if node.slides else moment
            return [sum(float(axis) * value for axis, value in zip(node.axis, along, strict=True))] if node.axis else []
        if node.kind != "ball":
            return [[*moment, *force][i] for i in _unknowns(node)]
        first, second, third, _, sine, cosine, sign = _ball(node, turns)
        before = turns[-1].up(moment)
        return [cosine * before[first] + sign * sine * before[third], before[second], before[third]]


@dataclass(frozen=True)
class Base:
    """Motion of the root: angular velocity, angular acceleration and specific force, root axes."""

    spin: Vector
    spin_rate: Vector
    linear: Vector

    @classmethod
    def still(cls, gravity: float = 0.0) -> Base:
        """A level root at rest; ``gravity`` in m/s²."""
        return cls(ZERO, ZERO, [0.0, 0.0, gravity])

    @classmethod
    def of_channels(cls, channels: Sequence[Scalar]) -> Base:
        """From the nine deck channels (see deck.py)."""
        nine = list(channels)
        return cls(nine[:3], nine[3:6], nine[6:])


@dataclass
class _Pass:
    """Per node: arm of its joint, centripetal acceleration, spin, turns, velocity terms of acceleration and force."""

    arm: list[Vector]
    centripetal: list[Vector]
    spin: list[Vector]
    turns: list[list[Rotation]]
    bias: list[tuple[Vector, Vector]]
    force: list[tuple[Vector, Vector]]


@dataclass
class _Articulated:
    """Moment = inertia·α + coupling·a + moment, force = couplingᵀ·α + mass·a + force, about the joint."""

    inertia: Matrix
    coupling: Matrix
    mass: Matrix
    moment: Vector
    force: Vector

    def absorb(
        self, child: _Articulated, turns: list[Rotation], arm: Vector, centripetal: Vector, moment: Vector | None
    ) -> None:
        """Add a child's articulated inertia, turned into this frame and shifted by ``arm``.

        ``moment``: the child's, if it is known in this frame already.
        """
        inertia, mass = sp.up_symmetric(turns, child.inertia), sp.up_symmetric(turns, child.mass)
        coupling = sp.up_matrix(turns, child.coupling)
        force = sp.add(sp.up(turns, child.force), sp.times(mass, centripetal))
        moment = sp.up(turns, child.moment) if moment is None else moment
        moment = sp.add(moment, sp.times(coupling, centripetal), sp.cross(arm, force))
        shifted = sp.cross_matrix(arm, mass)  # [r] M
        tilted = sp.cross_matrix(arm, sp.transposed(coupling))  # [r] Hᵀ
        # J - H[r] + [r]Hᵀ - [r]M[r]; (H[r])ᵀ = -[r]Hᵀ and ([r]M[r])ᵀ is itself
        twisted = sp.cross_matrix(arm, sp.transposed(shifted))
        for row in range(3):
            for column in range(row, 3):
                value = inertia[row][column] + tilted[row][column] + tilted[column][row] + twisted[row][column]
                self.inertia[row][column] = self.inertia[row][column] + value
                if column > row:
                    self.inertia[column][row] = self.inertia[row][column]
        self.coupling = sp.add_matrices(self.coupling, sp.add_matrices(coupling, shifted))
        self.mass = sp.add_matrices(self.mass, mass)
        self.moment, self.force = sp.add(self.moment, moment), sp.add(self.force, force)

    def __post_init__(self) -> None:
        self.inertia = [list(row) for row in self.inertia]


class _Eliminated:
    """An articulated body with the joint's own directions solved for; ``passed`` is what its parent feels."""

    def __init__(self, body: _Articulated, unknown: tuple[int, ...], applied: Vector, bias: Vector) -> None:
        whole = [
            *(list(row) + list(right) for row, right in zip(body.inertia, body.coupling, strict=True)),
            *(list(row) + list(right) for row, right in zip(sp.transposed(body.coupling), body.mass, strict=True)),
        ]
        offset = [*body.moment, *body.force]
        self.unknown, self.known = unknown, [i for i in range(6) if i not in unknown]
        self.factor = Ldl([[whole[i][j] for j in unknown] for i in unknown])
        self.columns = {k: self.factor.forward([whole[i][k] for i in unknown]) for k in self.known}
        self.right = self.factor.forward([value - offset[i] for i, value in zip(unknown, applied, strict=True)])
        scaled = {
            k: [value * inverse for value, inverse in zip(column, self.factor.inverse, strict=True)]
            for k, column in self.columns.items()
        }
        passed: Matrix = [[0.0] * 6 for _ in range(6)]
        for place, row in enumerate(self.known):
            for column in self.known[place:]:
                removed = sum(one * other for one, other in zip(scaled[row], self.columns[column], strict=True))
                passed[row][column] = passed[column][row] = whole[row][column] - removed
        remaining: Vector = [0.0] * 6
        for i, value in zip(unknown, applied, strict=True):
            remaining[i] = value
        for row in self.known:
            remaining[row] = (
                offset[row]
                + sum(passed[row][k] * bias[k] for k in self.known)
                + sum(one * other for one, other in zip(scaled[row], self.right, strict=True))
            )
        self.passed = _Articulated(
            [row[:3] for row in passed[:3]],
            [row[3:] for row in passed[:3]],
            [row[3:] for row in passed[3:]],
            remaining[:3],
            remaining[3:],
        )

    def accelerations(self, carried: Vector) -> Vector:
        """Six accelerations of the link; ``carried`` gives those the joint leaves alone."""
        total = list(carried)
        if self.unknown:
            reduced = [
                value - sum(self.columns[k][row] * carried[k] for k in self.known)
                for row, value in enumerate(self.right)
            ]
            for i, value in zip(self.unknown, self.factor.backward(reduced), strict=True):
                total[i] = value
        return total


def _unknowns(node: Node) -> tuple[int, ...]:
    """Link directions (0-2 angular, 3-5 linear) in which the joint moves, in Pinocchio's order."""
    if node.kind == "revolute":
        return node.axes
    if node.kind == "prismatic":
        return (3 + node.axes[0],)
    return {"fixed": (), "ball": (0, 1, 2), "spherical": (0, 1, 2), "planar": (3, 4, 2), "free": (3, 4, 5, 0, 1, 2)}[
        node.kind
    ]


def _ball(node: Node, turns: list[Rotation]) -> tuple[int, int, int, Scalar, Scalar, Scalar, float]:
    """Axes of the three turns, 1/cos, sin, cos of the middle angle, and +1 for X-Y-Z order, -1 for Z-Y-X and kin.

    Before the last turn the first axis is cos·e1 ± sin·e3, the second e2 and the third e3.
    """
    first, second, third = node.axes
    middle = turns[-2]
    assert isinstance(middle, Planar)
    sign = 1.0 if (second - first) % 3 == 1 else -1.0
    return first, second, third, 1.0 / middle.cosine, middle.sine, middle.cosine, sign


def _ball_rates(node: Node, motion: Motion, rates: Vector) -> tuple[Vector, Vector]:
    """Relative angular velocity before the last turn, and what its rate holds besides the angle accelerations."""
    first, second, third, _, sine, cosine, sign = _ball(node, motion.turns)
    v1, v2, v3 = rates
    relative: Vector = [0.0] * 3
    relative[first], relative[second], relative[third] = cosine * v1, v2, sign * sine * v1 + v3
    last: Vector = [0.0] * 3
    last[third] = v3
    bias = sp.cross(relative, last)
    product = v1 * v2
    bias[first] = bias[first] - sine * product
    bias[third] = bias[third] + sign * cosine * product
    return relative, bias


def _quaternion(q: Vector) -> Matrix:
    """Rotation matrix of a unit quaternion x, y, z, w."""
    x, y, z, w = q
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
