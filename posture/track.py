"""Forward dynamics of a floating body that repeats a motion from the forces behind it: the proof of inverse dynamics.

The loads of a motion (``posture.inverse.loads``) are applied again, open loop or with the paper's PD on the root's
place and every segment's attitude, and the body must walk the same way. The controller sits inside the implicit
step: with errors taken from the step's own end, iterated until the step's equation holds to 1e-12. Lagged by one
step, the same gains destroy the run.

``trapezoid``  x1 = x0 ⊕ h/2 (v0 + v1), v1 = v0 + h/2 (a0 + a1), Newton with Pinocchio's derivatives of ABA and the
               exact derivatives of the loads and of the controller.
``rk4``        the classical explicit rule, on the coordinates of ``posture.inverse``; for comparison, open loop.
``dop853``     SciPy's eighth-order adaptive rule on the same coordinates, loads evaluated at every stage; open loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from posture.body import Body
from posture.errors import MotionError
from posture.inverse import (
    States,
    Trajectory,
    coordinate_accelerations,
    loads,
    states,
    to_pinocchio,
)

Array = NDArray[np.floating]
Feet = Callable[[Array], Mapping[str, Array]]  # wrenches of the ground by link at given times

NEWTON_TOLERANCE = 1e-12  # rad/s, m/s: largest violation of a step's equation
MOST_ITERATIONS = 60
FALLEN = 1.0  # rad; beyond this error the motion has nothing to do with the recorded one


@dataclass(frozen=True)
class Tracker:
    """The paper's controller (18)-(20): force on the root, torque on every segment, both against the world.

    ``stiffness``: N/m and N·m/rad per kg of the segment; ``derivative_time``: s. ``lagged`` takes the errors of the
    step before instead of the step's own: the usual way of writing it, and the one that fails.
    """

    stiffness: float = 400.0
    derivative_time: float = 2.5e-5
    lagged: bool = False


@dataclass(frozen=True)
class Tracking:
    """A forward run beside its motion; arrays by time, errors as reference minus run.

    ``position_error`` (n × 3, m): root; ``attitude_error`` (n × segments × 3, rad): rotation vectors in the world;
    ``force`` (n × 3, N) and ``torque`` (n × segments × 3, N·m): the controller's share; ``residual``: of each step's
    equation; ``iterations``: Newton's. ``stopped``: time (s) at which the run was lost, or None.
    """

    time: Array
    states: States
    segments: list[str]
    position_error: Array
    attitude_error: Array
    force: Array
    torque: Array
    residual: Array
    iterations: Array
    stopped: float | None = None

    def time_within(self, angle: float) -> float:
        """Last time (s) up to which every segment's attitude stays within ``angle`` (rad)."""
        worst = np.linalg.norm(self.attitude_error, axis=2).max(axis=1)
        beyond = np.flatnonzero(~(worst <= angle))
        return float(self.time[beyond[0] - 1] if len(beyond) else self.time[-1])


@dataclass
class _Plant:
    """Accelerations of the body under loads and controller, with their derivatives."""

    body: Body
    tracker: Tracker | None
    model: pin.Model = field(init=False)
    data: pin.Data = field(init=False)

    def __post_init__(self) -> None:
        self.model = self.body.model_with_gravity
        self.data = self.model.createData()
        parts = self.body.segments
        self.names, self.joints = list(parts), list(parts.values())
        self.masses = np.array([self.model.inertias[joint].mass for joint in self.joints])
        count, nv = self.model.njoints, self.model.nv
        column_joint = np.zeros(nv, int)
        self.carried = np.zeros((nv, count))  # which joints' bodies each velocity column moves
        for joint in range(1, count):
            start, size = self.model.joints[joint].idx_v, self.model.joints[joint].nv
            column_joint[start : start + size] = joint
        for joint in range(1, count):
            above = joint
            while above:
                self.carried[column_joint == above, joint] = 1
                above = int(self.model.parents[above])
        # derivative[k, j]: does turning column j move the axis of column k?
        self.moved = np.array([[self.carried[j, column_joint[k]] for j in range(nv)] for k in range(nv)])
        moves = self.carried[:, self.joints]  # nv × segments
        self.shared_mass = (moves * self.masses) @ moves.T

    def references(self, motion: States) -> tuple[Array, Array]:
        """Root places (n × 3) and segment rotations (n × segments × 3 × 3) of a motion."""
        rotations = np.empty((len(motion.configuration), len(self.joints), 3, 3))
        for row, q in enumerate(motion.configuration):
            pin.forwardKinematics(self.model, self.data, q)
            for column, joint in enumerate(self.joints):
                rotations[row, column] = self.data.oMi[joint].rotation
        return motion.configuration[:, :3].copy(), rotations

    def errors(self, q: Array, place: Array, rotations: Array) -> tuple[Array, Array]:
        """Root error (3, m) and segment errors (segments × 3, rad); needs forward kinematics done."""
        now = np.array([self.data.oMi[joint].rotation for joint in self.joints])
        return place - q[:3], rotation_vectors(rotations @ now.transpose(0, 2, 1))

    def forces(self, q: Array, load: tuple[Array, Array, Array], push: Array, twist: Array) -> tuple[Array, Array]:
        """Generalized forces (nv) of loads and controller, and their derivative by configuration (nv × nv).

        A wrench φ fixed in the world on body i gives τ_k = S_k · φ; turning column j moves the axis S_k to
        S_k + S_j × S_k, so ∂τ_k/∂q_j = S_j · (S_k ×* φ). ``push``, ``twist``: the controller's force and torques.
        """
        torque, root_force, wrench = load
        S = pin.computeJointJacobians(self.model, self.data, q)
        acting = wrench.copy()
        acting[self.joints, 3:] += twist
        beyond = self.carried @ acting  # nv × 6: everything outward of each column
        force, moment = beyond[:, :3], beyond[:, 3:]
        linear, angular = S[:3].T, S[3:].T
        tau = torque + np.einsum("ki,ki->k", linear, force) + np.einsum("ki,ki->k", angular, moment)
        crossed_force = _cross(angular, force)
        crossed_moment = _cross(angular, moment) + _cross(linear, force)
        slope = (crossed_force @ S[:3] + crossed_moment @ S[3:]) * self.moved
        local = self.data.oMi[1].rotation.T @ (root_force + push)
        tau[:3] += local
        slope[:3, 3:6] += pin.skew(local)
        return tau, slope

    def controller(
        self, position: Array, attitude: Array, before: tuple[Array, Array], step: float
    ) -> tuple[Array, Array]:
        """Force (3) and torques (segments × 3) of (18)-(20)."""
        if self.tracker is None:
            return np.zeros(3), np.zeros((len(self.joints), 3))
        time = self.tracker.derivative_time / step
        gain = self.tracker.stiffness
        push = gain * self.masses[0] * (position + time * (position - before[0]))
        return push, gain * self.masses[:, None] * (attitude + time * (attitude - before[1]))

    def controller_slope(self, step: float) -> Array:
        """Derivative of the controller's generalized forces by configuration (errors are small: log ≈ identity)."""
        assert self.tracker is not None
        gain = self.tracker.stiffness * (1 + self.tracker.derivative_time / step)
        S = self.data.J
        slope = np.zeros((self.model.nv, self.model.nv))
        # Two columns share the segments that both move: the mass beyond the outer one.
        slope -= gain * (S[3:].T @ S[3:]) * self.shared_mass
        slope[:3, :3] -= gain * self.masses[0] * np.eye(3)
        return slope

    def linearized(self, q: Array, v: Array, load: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """∂a/∂q and ∂a/∂v of the open loop (nv × nv each)."""
        tau, slope = self.forces(q, load, np.zeros(3), np.zeros((len(self.joints), 3)))
        pin.computeABADerivatives(self.model, self.data, q, v, tau)
        return self.data.ddq_dq + full_inverse(self.data.Minv) @ slope, self.data.ddq_dv.copy()


def _cross(one: Array, other: Array) -> Array:
    """Cross products of rows; NumPy's own takes ten times as long for so few."""
    return one[:, [1, 2, 0]] * other[:, [2, 0, 1]] - one[:, [2, 0, 1]] * other[:, [1, 2, 0]]


def full_inverse(upper: Array) -> Array:
    """Pinocchio fills the upper triangle of the inverse mass matrix only."""
    return np.triu(upper) + np.triu(upper, 1).T


def rotation_vectors(rotations: Array) -> Array:
    """Rotation vectors (n × 3, rad) of rotations (n × 3 × 3), exact to rounding for the small ones met here."""
    skewed = 0.5 * np.stack(
        (
            rotations[:, 2, 1] - rotations[:, 1, 2],
            rotations[:, 0, 2] - rotations[:, 2, 0],
            rotations[:, 1, 0] - rotations[:, 0, 1],
        ),
        axis=1,
    )
    sine = np.linalg.norm(skewed, axis=1)
    angle = np.arctan2(sine, 0.5 * (np.trace(rotations, axis1=1, axis2=2) - 1))
    return skewed * np.where(sine > 1e-8, angle / np.maximum(sine, 1e-300), 1.0)[:, None]


def track(
    body: Body,
    trajectory: Trajectory,
    time: Array,
    *,
    way: str = "segment",
    feet: Feet | None = None,
    tracker: Tracker | None = None,
    method: str = "trapezoid",
) -> Tracking:
    """Run forward from the motion's first state under its own loads, on the given evenly spaced times (s).

    ``way``: how the loads are applied (see ``posture.inverse.loads``); ``tracker``: None runs open loop.
    """
    if method == "trapezoid":
        return _trapezoid(body, trajectory, np.asarray(time, float), way, feet, tracker)
    if tracker is not None:
        raise MotionError(f"{method} runs open loop only; the tracker needs the implicit trapezoid")
    if method not in ("rk4", "dop853"):
        raise MotionError(f"no integrator is called {method!r}; use trapezoid, rk4 or dop853")
    return _explicit(body, trajectory, np.asarray(time, float), way, feet, method)


def _trapezoid(
    body: Body, trajectory: Trajectory, time: Array, way: str, feet: Feet | None, tracker: Tracker | None
) -> Tracking:
    plant = _Plant(body, tracker)
    model, data = plant.model, plant.data
    motion = states(trajectory, time)
    applied = loads(body, motion, way, feet(time) if feet else None)
    places, rotations = plant.references(motion)
    count, nv, step = len(time), model.nv, float(time[1] - time[0])
    q, v = motion.configuration.copy(), motion.velocity.copy()
    a = motion.acceleration.copy()
    position, attitude = np.zeros((count, 3)), np.zeros((count, len(plant.joints), 3))
    force, torque = np.zeros_like(position), np.zeros_like(attitude)
    residual, iterations = np.zeros(count), np.zeros(count, int)
    identity = np.eye(nv)
    stopped = None
    for row in range(1, count):
        load = (applied.torque[row], applied.root_force[row], applied.wrench[row])
        before = (position[row - 1], attitude[row - 1])
        v1, solve = v[row - 1] + step * a[row - 1], None
        for iteration in range(1, MOST_ITERATIONS + 1):
            q1 = pin.integrate(model, q[row - 1], 0.5 * step * (v[row - 1] + v1))
            pin.forwardKinematics(model, data, q1)
            errors = plant.errors(q1, places[row], rotations[row])
            if tracker is not None and tracker.lagged:
                earlier = (position[row - 2], attitude[row - 2]) if row > 1 else before
                push, twist = plant.controller(*before, earlier, step)
            else:
                push, twist = plant.controller(*errors, before, step)
            tau, slope = plant.forces(q1, load, push, twist)
            if solve is None or iteration % 4 == 0:
                if tracker is not None and not tracker.lagged:
                    slope = slope + plant.controller_slope(step)
                pin.computeABADerivatives(model, data, q1, v1, tau)
                a1 = data.ddq.copy()
                by_q = data.ddq_dq + full_inverse(data.Minv) @ slope
                solve = np.linalg.inv(identity - 0.5 * step * (0.5 * step * by_q + data.ddq_dv))
            else:
                a1 = pin.aba(model, data, q1, v1, tau)
            gap = v1 - v[row - 1] - 0.5 * step * (a[row - 1] + a1)
            residual[row] = np.abs(gap).max()
            if residual[row] <= NEWTON_TOLERANCE or not np.isfinite(residual[row]):
                break
            v1 = v1 - solve @ gap
        iterations[row] = iteration
        q[row], v[row], a[row] = q1, v1, a1
        position[row], attitude[row] = errors
        force[row], torque[row] = push, twist
        if not residual[row] <= 1e3 * NEWTON_TOLERANCE or np.abs(attitude[row]).max() > FALLEN:
            stopped = float(time[row])
            break
    kept = slice(0, row + 1)
    return Tracking(
        time[kept],
        States(q[kept], v[kept], a[kept]),
        plant.names,
        position[kept],
        attitude[kept],
        force[kept],
        torque[kept],
        residual[kept],
        iterations[kept],
        stopped,
    )


def _explicit(body: Body, trajectory: Trajectory, time: Array, way: str, feet: Feet | None, method: str) -> Tracking:
    plant = _Plant(body, None)
    model, data = plant.model, plant.data
    still, quiet = np.zeros(3), np.zeros((len(plant.joints), 3))

    def derivative(when: float, state: Array) -> Array:
        half = len(state) // 2
        values, rates = state[:half], state[half:]
        at = np.array([when])
        applied = loads(body, states(trajectory, at), way, feet(at) if feet else None)
        now = to_pinocchio(values, rates, np.zeros_like(rates))
        q, v = now.configuration[0], now.velocity[0]
        tau, _ = plant.forces(q, (applied.torque[0], applied.root_force[0], applied.wrench[0]), still, quiet)
        a = np.array(pin.aba(model, data, q, v, tau))
        return np.concatenate((rates, coordinate_accelerations(values, rates, a)))

    motion = states(trajectory, time)
    places, rotations = plant.references(motion)
    start = trajectory.sample(time[:1])
    state = np.concatenate((start[0][0], start[1][0]))
    rows = [state]
    if method == "dop853":
        from scipy.integrate import solve_ivp

        found = solve_ivp(derivative, (time[0], time[-1]), state, method="DOP853", t_eval=time, rtol=1e-13, atol=1e-14)
        rows = list(found.y.T)
    else:
        step = float(time[1] - time[0])
        for when in time[:-1]:
            k1 = derivative(when, state)
            k2 = derivative(when + step / 2, state + step / 2 * k1)
            k3 = derivative(when + step / 2, state + step / 2 * k2)
            k4 = derivative(when + step, state + step * k3)
            state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            if not np.isfinite(state).all() or np.abs(state[3:]).max() > 1e6:
                break
            rows.append(state)
    half = len(state) // 2
    values, rates = np.array(rows)[:, :half], np.array(rows)[:, half:]
    run = to_pinocchio(values, rates, np.zeros_like(rates))
    position, attitude = np.empty((len(rows), 3)), np.empty((len(rows), len(plant.joints), 3))
    for row, q in enumerate(run.configuration):
        pin.forwardKinematics(model, data, q)
        position[row], attitude[row] = plant.errors(q, places[row], rotations[row])
    nothing = np.zeros(len(rows))
    return Tracking(
        time[: len(rows)],
        run,
        plant.names,
        position,
        attitude,
        np.zeros_like(position),
        np.zeros_like(attitude),
        nothing,
        nothing.astype(int),
        None if len(rows) == len(time) else float(time[len(rows) - 1]),
    )


def growth_rates(
    body: Body, trajectory: Trajectory, time: Array, *, way: str = "segment", feet: Feet | None = None
) -> Array:
    """Fastest growth (1/s) of a small error at each time: largest real part among the open loop's eigenvalues.

    The mean times the duration bounds the logarithm of what integration and rounding errors grow to.
    """
    plant = _Plant(body, None)
    motion = states(trajectory, time)
    applied = loads(body, motion, way, feet(time) if feet else None)
    nv = plant.model.nv
    found = np.empty(len(time))
    for row in range(len(time)):
        by_q, by_v = plant.linearized(
            motion.configuration[row],
            motion.velocity[row],
            (applied.torque[row], applied.root_force[row], applied.wrench[row]),
        )
        drift = np.zeros((nv, nv))  # the root's error is told in the moving root frame
        drift[:6, :6] = -pin.Motion(motion.velocity[row][:6]).action
        whole = np.block([[drift, np.eye(nv)], [by_q, by_v]])
        found[row] = np.linalg.eigvals(whole).real.max()
    return found


def round_trip(body: Body, motion: States) -> float:
    """Largest difference (rad/s², m/s²) between a motion's accelerations and ABA of RNEA's forces."""
    from posture.inverse import generalized_forces

    model, data = body.model_with_gravity, body.data
    needed = generalized_forces(body, motion)
    back = [
        pin.aba(model, data, q, v, tau) for q, v, tau in zip(motion.configuration, motion.velocity, needed, strict=True)
    ]
    return float(np.abs(np.array(back) - motion.acceleration).max())
