"""Elements as formulas: what posture/elements.py does by Pinocchio's Jacobians, in CasADi.

Ligaments and muscles pull on the links directly. Rods and taut cables solve A M⁻¹A' λ = A a + γ + 2αl' + α²(l - l0),
with a the accelerations without them and M⁻¹A' by forward dynamics at rest. Whether a cable is taut is a number of
the run (1 or 0): the formulas hold between two events, and ``alarms`` turn positive where one has come.
"""

from __future__ import annotations

from typing import Any

import casadi

from posture.elements import STABILISATION, TOUCH, Cable, Ligament, Muscle, Rod
from posture.engine import spatial as sp
from posture.engine.codegen import column, scalars
from posture.engine.lines import Fastened, law_of, with_law
from posture.engine.spatial import Ldl, Scalar, Vector
from posture.engine.symbolic import Base, Mirror, Pulls


class Pulling:
    """Lines at one instant, as CasADi expressions; ``numbers`` as in ``Fastened.number_names``.

    ``position``, ``velocity``: of the joints; ``s``, ``c``: sines and cosines of their angles, which are inputs of
    their own here, so derivatives to an angle go through both.
    """

    def __init__(
        self,
        fastened: Fastened,
        mirror: Mirror,
        numbers: Any,
        *,
        position: Any,
        velocity: Any,
        s: Any,
        c: Any,
        q: Vector,
        sines: dict[int, tuple[Scalar, Scalar]],
        now: Any,
    ) -> None:
        self.mirror, self.q, self.sines, self.nodes = mirror, q, sines, fastened.nodes
        self.points: list[tuple[Vector, Vector]] = []
        self.directions: list[Vector] = []
        values, lengths, lines = iter(scalars(numbers)), [], []
        for line, nodes in zip(fastened.lines, fastened.nodes, strict=True):
            ends = tuple([next(values) for _ in range(3)] for _ in range(2))
            lines.append(with_law(line, {key: next(values) for key in law_of(line)}))
            near, far = (mirror.point(node, point, q, sines) for node, point in zip(nodes, ends, strict=True))
            span = sp.minus(far, near)
            lengths.append(casadi.sqrt(sum(value * value for value in span)))
            self.points.append((ends[0], ends[1]))
            self.directions.append([value / lengths[-1] for value in span])
        self.length = column(lengths)

        def along(expression: Any, rates: Any) -> Any:
            """Rate of an expression of the joints' positions."""
            turning = casadi.jtimes(expression, s, c * rates) - casadi.jtimes(expression, c, s * rates)
            return casadi.jtimes(expression, position, rates) + turning

        to_slide, to_sine, to_cosine = (casadi.jacobian(self.length, part) for part in (position, s, c))
        self.row = to_slide + casadi.mtimes(to_sine, casadi.diag(c)) - casadi.mtimes(to_cosine, casadi.diag(s))
        self.rate = casadi.mtimes(self.row, velocity)
        bias = along(self.rate, velocity)
        self.tension: list[Scalar] = [
            line.tension(self.length[index], self.rate[index], now, casadi)
            if isinstance(line, Ligament | Muscle)
            else casadi.SX(0)
            for index, line in enumerate(lines)
        ]
        self.held = [index for index, line in enumerate(lines) if isinstance(line, Rod | Cable)]
        self.is_cable = [isinstance(lines[index], Cable) for index in self.held]
        self.share = [next(values) if cable else 1.0 for cable in self.is_cable]
        self.error = [self.length[index] - lines[index].length for index in self.held]  # type: ignore[attr-defined]
        self.demand = [
            bias[index] + 2 * STABILISATION * self.rate[index] + STABILISATION**2 * error
            for index, error in zip(self.held, self.error, strict=True)
        ]
        rows = [[self.row[index, joint] for joint in range(position.numel())] for index in self.held]
        still = [0.0] * mirror.skeleton.nv
        self.spread = [mirror.forward(q, still, [*still[:6], *row], Base.still(), sines)[0][6:] for row in rows]
        self.rows = rows

    def _solve(self, wanted: Vector) -> Vector:
        """Solve A M⁻¹A' λ = wanted over rods and taut cables; λ is zero of slack ones."""
        share, count = self.share, len(self.held)
        matrix = [
            [share[i] * share[j] * _dot(self.rows[i], self.spread[j]) for j in range(count)] for i in range(count)
        ]
        for index in range(count):
            matrix[index][index] = matrix[index][index] + (1 - share[index])
        factor = Ldl(matrix)
        return factor.backward(factor.forward([one * value for one, value in zip(share, wanted, strict=True)]))

    def forward(self, v: Vector, torque: Vector, base: Base) -> Vector:
        """Joint accelerations under these torques (joints); fills in the tensions of rods and taut cables."""
        still = [0.0] * 6
        free = self.mirror.forward(self.q, v, [*still, *torque], base, self.sines, self.pulls())[0][6:]
        if not self.held:
            return free
        wanted = [_dot(row, free) + demand for row, demand in zip(self.rows, self.demand, strict=True)]
        for index, tension in zip(self.held, self._solve(wanted), strict=True):
            self.tension[index] = tension
        return self._less(free, [self.tension[index] for index in self.held])

    def _less(self, values: Vector, push: Vector) -> Vector:
        """Values of the joints less M⁻¹A' times something of each rod and cable."""
        parts = [
            sum(spread[joint] * one for spread, one in zip(self.spread, push, strict=True))
            for joint in range(len(values))
        ]
        return sp.minus(values, parts)

    def projected(self, position: Vector, velocity: Vector) -> Vector:
        """Positions and velocities without what an integrator let the lengths drift (one step of Newton's method)."""
        speeds = [self.rate[index] for index in self.held]
        return [*self._less(position, self._solve(self.error)), *self._less(velocity, self._solve(speeds))]

    def alarms(self) -> Vector:
        """Per cable, positive once a slack one may be too long (m) or a taut one pushes (N)."""
        return [
            (1 - taut) * (error + TOUCH) - taut * self.tension[index]
            for index, error, taut, cable in zip(self.held, self.error, self.share, self.is_cable, strict=True)
            if cable
        ]

    def pulls(self) -> Pulls:
        """Moments and forces of the lines on the nodes; on the root they pull at the deck, not at the person."""
        found: dict[int, tuple[Vector, Vector]] = {}
        for tension, direction, nodes, points in zip(
            self.tension, self.directions, self.nodes, self.points, strict=True
        ):
            for node, point, sign in zip(nodes, points, (1.0, -1.0), strict=True):
                if node == 0:
                    continue
                pull = [sign * tension * value for value in direction]
                force = self.mirror.in_node(node, pull, self.q, self.sines)
                moment = sp.cross(point, force)
                if node in found:
                    moment, force = sp.add(found[node][0], moment), sp.add(found[node][1], force)
                found[node] = moment, force
        return found

    def total(self) -> Vector:
        """Sum of the lines' forces on the person, root axes, N."""
        parts = [[0.0, 0.0, 0.0]]
        for tension, direction, nodes in zip(self.tension, self.directions, self.nodes, strict=True):
            share = float(nodes[0] != 0) - float(nodes[1] != 0)
            parts.append([share * tension * value for value in direction])
        return sp.add(*parts)


def _dot(one: Vector, other: Vector) -> Scalar:
    return sum(first * second for first, second in zip(one, other, strict=True))
