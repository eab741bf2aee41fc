"""Model predictive control with preview of the base's motion.

Every ``period`` s the torques over the coming ``horizon`` periods are chosen that minimise Σ x'Q x + u'R u + x_N'P x_N
for the body linearised about a posture, x⁺ = A x + B (u + d), while |u| <= limits and the centre of pressure stays in
the outline; the first is applied. d_k = -(h(r, 0, base(t_k)) - h(r, 0, level)) is what the base will do to the joints,
from the plant's knowledge of the base: an officer who sees the wave come. P is the value function of the endless
problem without preview (discrete Riccati equation), so that without limits, and for a base at rest, the law is exactly
the discrete LQR (J. B. Rawlings, D. Q. Mayne, M. M. Diehl, Model Predictive Control, 2017, chapters 1 and 2).

The problem is condensed to the torques. Where the unlimited optimum keeps all limits it is the solution and costs two
matrix products; otherwise CasADi's DAQP solves the quadratic program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_discrete_are

from controllers.held import Held
from controllers.plant import Plant, linearise
from controllers.protocol import Array, ControllerError, by_joint
from controllers.whole_body import _cone

Weights = Mapping[str, float] | float
LEVEL = np.array([0, 0, 0, 0, 0, 0, 0, 0, 9.80665])


class MPC(Held):
    """Linear MPC about ``reference``; weights as in ``LQR`` (per period here), ``horizon`` in periods.

    ``preview=False`` takes the base to stay as it is at the moment of the decision. ``limits`` (N·m) and ``outline``
    (n × 2, m) are kept over the whole horizon; where that is impossible, both are given up for that decision, which
    ``given_up`` counts.
    """

    def __init__(
        self,
        plant: Plant,
        *,
        position_weight: Weights = 1.0,
        velocity_weight: Weights = 0.1,
        torque_weight: Weights = 1e-6,
        reference: Weights = 0.0,
        horizon: int = 20,
        period: float = 0.05,
        preview: bool = True,
        limits: Mapping[str, float] | float | None = None,
        outline: ArrayLike | None = None,
        friction: float = 0.7,
    ) -> None:
        super().__init__(plant.joint_names, period=period)
        if horizon < 1:
            raise ControllerError(f"the horizon is {horizon} periods, but must be at least one")
        self.plant, self.horizon, self.preview = plant, int(horizon), preview
        self.reference = by_joint(reference, self.joint_names, what="reference")
        free, still = plant.free, np.zeros(len(self.joint_names))
        linear = linearise(plant, self.reference, LEVEL)
        self.hold = linear.hold
        self.A, self.B = linear.sampled(period)
        weights = [by_joint(w, self.joint_names, what="weight", lowest=0)[free]
                   for w in (position_weight, velocity_weight, torque_weight)]  # fmt: skip
        if not (weights[2] > 0).all():
            raise ControllerError("the torque weight of every joint must be above 0")
        self.Q, self.R = np.diag(np.concatenate(weights[:2])), np.diag(weights[2])
        self.P = solve_discrete_are(self.A, self.B, self.Q, self.R)
        self._condense()
        self.limits = (
            None if limits is None else by_joint(limits, self.joint_names, what="torque limit", lowest=0)[free]
        )
        self.cone = None if outline is None else _cone(np.asarray(outline, float), friction, 0.0)
        if self.cone is not None:
            inverse = np.linalg.inv(plant.inertia(self.reference)[np.ix_(free, free)])
            slope = plant.wrench(self.reference, still, LEVEL)[1][:, free]
            self._wrench_of_torque = slope @ inverse
            self._wrench_of_state = slope @ linear.A[len(free) :]
            self._wrench_of_state[:, : len(free)] += self._wrench_of_posture()
        self._solver: Any = None
        self.given_up = 0

    def _condense(self) -> None:
        """States x_0 … x_N and torques over the horizon, linear in x_0, corrections C and pushes D; the cost in C.

        The body falls without control, so that powers of A lose all digits; u = C - K x with the LQR's K has none of
        that, and C = 0 is the optimum where nothing pushes and nothing limits.
        """
        states, inputs = self.B.shape
        N = self.horizon
        self.K = np.linalg.solve(self.R + self.B.T @ self.P @ self.B, self.B.T @ self.P @ self.A)
        closed = self.A - self.B @ self.K
        F, G = np.zeros(((N + 1) * states, states)), np.zeros(((N + 1) * states, N * inputs))
        F[:states] = np.eye(states)
        for k in range(N):
            now, after = slice(k * states, (k + 1) * states), slice((k + 1) * states, (k + 2) * states)
            F[after] = closed @ F[now]
            G[after] = closed @ G[now]
            G[after, k * inputs : (k + 1) * inputs] += self.B
        feedback = np.kron(np.eye(N), self.K)
        self.F, self.G = F, G  # X = F x + G (C + D)
        self.torque_of_state = -feedback @ F[:-states]
        self.torque_of_push = -feedback @ G[:-states]
        self.torque_of_plan = np.eye(N * inputs) + self.torque_of_push
        weights = np.kron(np.eye(N + 1), self.Q)
        weights[-states:, -states:] = self.P
        effort = np.kron(np.eye(N), self.R)
        self.H = G.T @ weights @ G + self.torque_of_plan.T @ effort @ self.torque_of_plan
        self._of_state = G.T @ weights @ F + self.torque_of_plan.T @ effort @ self.torque_of_state
        self._of_push = G.T @ weights @ G + self.torque_of_plan.T @ effort @ self.torque_of_push
        self._optimum_of_state = np.linalg.solve(self.H, self._of_state)
        self._optimum_of_push = np.linalg.solve(self.H, self._of_push)

    def _wrench_of_posture(self) -> Array:
        """How the wrench of a body at rest changes with posture, 6 × free: weight that leans; by differences."""
        still, size, columns = np.zeros(len(self.reference)), 1e-5, []
        for joint in self.plant.free:
            nudge = still.copy()
            nudge[joint] = size
            ahead, behind = (self.plant.wrench(self.reference + way * nudge, still, LEVEL)[0] for way in (1, -1))
            columns.append((ahead - behind) / (2 * size))
        return np.array(columns).T

    def pushes(self, time: float) -> Array:
        """What the base will add to the joints' torques, horizon × free joints, each for the middle of its period."""
        still, rest = np.zeros(len(self.reference)), self.hold
        instants = [time + (k + 0.5) * self.period if self.preview else time for k in range(self.horizon)]
        return np.array([rest - self.plant.bias(self.reference, still, self.plant.base(at)) for at in instants])[
            :, self.plant.free
        ]

    def decide(self, time: float, position: Array, velocity: Array) -> Array:
        """Joint torques, N·m, for the coming period."""
        free = self.plant.free
        state = np.concatenate(((position - self.reference)[free], velocity[free]))
        if not np.isfinite(state).all():  # whoever integrates finds out and says so
            return self.hold
        push = self.pushes(time).ravel()
        plan = -self._optimum_of_state @ state - self._optimum_of_push @ push
        if self.limits is not None or self.cone is not None:
            rows, low, high = self._constraints(state, push, time)
            if not ((rows @ plan >= low - 1e-9) & (rows @ plan <= high + 1e-9)).all():
                plan = self._solve(self._of_state @ state + self._of_push @ push, rows, low, high, plan)
        torque = self.hold.copy()
        torque[free] += plan[: len(free)] - self.K @ state
        return torque

    def _constraints(self, state: Array, push: Array, time: float) -> tuple[Array, Array, Array]:
        """Rows of low <= rows · C <= high."""
        N, (states, inputs) = self.horizon, self.B.shape
        rows: list[Array] = [np.zeros((0, N * inputs))]
        low: list[Array] = [np.zeros(0)]
        high: list[Array] = [np.zeros(0)]
        torques = self.torque_of_state @ state + self.torque_of_push @ push  # without corrections
        if self.limits is not None:
            hold = np.tile(self.hold[self.plant.free], N)
            rows.append(self.torque_of_plan)
            low.append(-np.tile(self.limits, N) - hold - torques)
            high.append(np.tile(self.limits, N) - hold - torques)
        if self.cone is not None:
            still, path = np.zeros(len(self.reference)), self.F @ state + self.G @ push
            for k in range(N):
                at = time + k * self.period if self.preview else time
                fixed = self.plant.wrench(self.reference, still, self.plant.base(at))[0]
                x, u = slice(k * states, (k + 1) * states), slice(k * inputs, (k + 1) * inputs)
                # At rest in the reference the wrench is `fixed`; what is added is linear in state and torque.
                moving = self._wrench_of_state @ path[x] + self._wrench_of_torque @ (torques[u] + push[u])
                of_plan = self._wrench_of_state @ self.G[x] + self._wrench_of_torque @ self.torque_of_plan[u]
                rows.append(self.cone @ of_plan)
                low.append(-self.cone @ (fixed + moving))
                high.append(np.full(len(self.cone), np.inf))
        return np.vstack(rows), np.concatenate(low), np.concatenate(high)

    def _solve(self, linear: Array, rows: Array, low: Array, high: Array, plan: Array) -> Array:
        import casadi

        scale = np.maximum(np.linalg.norm(rows, axis=1), 1e-12)  # a wrench that no joint changes has a row of zeros
        rows, low, high = rows / scale[:, None], low / scale, high / scale
        if self._solver is None:
            shapes = {"h": casadi.Sparsity.dense(*self.H.shape), "a": casadi.Sparsity.dense(*rows.shape)}
            self._solver = casadi.conic("mpc", "daqp", shapes, {"error_on_fail": False})
        weight = np.abs(self.H).max()  # the solver's tolerances are absolute
        found = self._solver(h=self.H / weight, g=linear / weight, a=rows, lba=low, uba=high)
        if self._solver.stats()["success"]:
            return np.asarray(found["x"]).ravel()
        self.given_up += 1
        return plan
