"""Torques from measured motion: a smoother for unknown inputs, then inverse dynamics.

Noise rules out differentiating, and the inverse plant (controllers/inverse_plant.py) trades it against lag. Here each
joint coordinate is taken as a fourfold integral of white noise (its snap) seen through measured positions and
velocities; a Kalman filter forward and a Rauch-Tung-Striebel smoother backward give the least-variance position,
velocity and acceleration at every sample from all samples. How strong the white noise is, the record itself says: the
strength with the largest likelihood, per joint. RNEA turns the result into joint torques.

statsmodels has this smoother for one series at a time and is a heavy dependency; all joints at once are forty lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

from controllers import Controller
from posture.body import Body
from posture.deck import DeckMotion
from posture.errors import PostureError
from posture.simulate import Dynamics

Array = NDArray[np.floating]

DECK_STEP = 0.005  # s
ORDER = 4  # position, velocity, acceleration, jerk


class EstimateError(PostureError):
    """A record from which nothing can be estimated."""


@dataclass(frozen=True)
class SmoothedMotion:
    """Position, velocity, acceleration (n × joints) and their standard deviations; strength of snap per joint."""

    position: Array
    velocity: Array
    acceleration: Array
    position_sd: Array
    velocity_sd: Array
    acceleration_sd: Array
    snap: Array


def smooth_motion(
    time: Array,
    position: Array,
    velocity: Array | None = None,
    *,
    noise_position: ArrayLike,
    noise_velocity: ArrayLike = math.inf,
    snap: ArrayLike | None = None,
) -> SmoothedMotion:
    """Smooth evenly sampled joint positions (n × joints) and, if measured, velocities.

    Noise: standard deviations, one number or one per joint. ``snap``: strength of the driving noise per joint
    (rad²/s⁷, one-sided), found by largest likelihood if None.
    """
    steps = np.diff(time)
    if len(time) < 10 or not (np.isfinite(position).all() and np.isfinite(time).all()):
        raise EstimateError(f"{len(time)} samples, not all finite or fewer than ten; fill gaps before smoothing")
    if steps.min() <= 0 or np.ptp(steps) > 1e-3 * steps.mean():
        raise EstimateError("samples must be evenly spaced in time; resample them first")
    joints = position.shape[1]
    seen = [position] if velocity is None else [position, velocity]
    noise = [noise_position] if velocity is None else [noise_position, noise_velocity]
    measured = np.stack(seen, axis=-1)  # n × joints × (1 or 2)
    spread = np.stack([np.broadcast_to(np.asarray(value, float), joints) ** 2 for value in noise], axis=-1)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise EstimateError("measurement noise must be given as positive standard deviations")
    step = float(steps.mean())
    if snap is None:
        strength = _likeliest(measured, spread, step)
    else:
        strength = np.broadcast_to(np.asarray(snap, float), joints).copy()
    _, mean, covariance, ahead_mean, ahead_covariance = _filter(measured, spread, step, strength)
    motion, _ = _model(step)
    for row in range(len(mean) - 2, -1, -1):
        back = np.swapaxes(np.linalg.solve(ahead_covariance[row + 1], motion @ covariance[row]), 1, 2)
        mean[row] += np.einsum("jab,jb->ja", back, mean[row + 1] - ahead_mean[row + 1])
        change = covariance[row + 1] - ahead_covariance[row + 1]
        covariance[row] += back @ change @ np.swapaxes(back, 1, 2)
    sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=2, axis2=3), 0))
    return SmoothedMotion(mean[..., 0], mean[..., 1], mean[..., 2], sd[..., 0], sd[..., 1], sd[..., 2], strength)


def _model(step: float) -> tuple[Array, Array]:
    """Transition over one sample and covariance of what unit white snap adds (Van Loan)."""
    size = ORDER
    rate = np.eye(size, k=1)
    block = np.zeros((2 * size, 2 * size))
    block[:size, :size], block[size:, size:] = -rate, rate.T
    block[size - 1, 2 * size - 1] = 1.0
    grown = expm(block * step)
    motion = grown[size:, size:].T
    return motion, motion @ grown[:size, size:]


def _filter(measured: Array, spread: Array, step: float, strength: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Kalman filter of all joints at once: log-likelihood per joint, filtered and predicted means and covariances."""
    motion, unit = _model(step)
    count, joints, seen = measured.shape
    driven = strength[:, None, None] * unit
    noise = spread[:, :, None] * np.eye(seen)
    mean, covariance = np.zeros((count, joints, ORDER)), np.zeros((count, joints, ORDER, ORDER))
    ahead_mean, ahead_covariance = np.zeros_like(mean), np.zeros_like(covariance)
    # The first sample is known as measured; what is not measured could be anything a body does.
    x = np.zeros((joints, ORDER))
    x[:, :seen] = measured[0]
    P = np.tile(np.diag([0.0, 1e2, 1e4, 1e6]), (joints, 1, 1))
    P[:, range(seen), range(seen)] = spread
    likelihood = np.zeros(joints)
    for row in range(count):
        if row:
            x = x @ motion.T
            P = motion @ P @ motion.T + driven
        ahead_mean[row], ahead_covariance[row] = x, P
        if row:
            innovation = measured[row] - x[:, :seen]
            total = P[:, :seen, :seen] + noise
            gain = np.swapaxes(np.linalg.solve(total, P[:, :seen, :]), 1, 2)
            weighted = np.linalg.solve(total, innovation[:, :, None])[:, :, 0]
            likelihood -= (np.sum(innovation * weighted, axis=1) + np.log(np.linalg.det(total))) / 2
            x = x + np.einsum("jab,jb->ja", gain, innovation)
            P = P - gain @ P[:, :seen, :]
            P = (P + np.swapaxes(P, 1, 2)) / 2
        mean[row], covariance[row] = x, P
    return likelihood, mean, covariance, ahead_mean, ahead_covariance


def _likeliest(measured: Array, spread: Array, step: float) -> Array:
    """Strength of snap with the largest likelihood, each joint for itself: a coarse, then a fine search of log10."""
    part = measured[: min(len(measured), 2000)]
    best = np.zeros(measured.shape[1])
    for width, points in ((8.0, 9), (2.0, 5), (0.5, 3)):
        trials = best + np.linspace(-width, width, points)[:, None]
        found = np.array([_filter(part, spread, step, 10.0**trial)[0] for trial in trials])
        best = trials[np.argmax(found, axis=0), np.arange(len(best))]
    return np.asarray(10.0**best)


def joint_torques(body: Body, deck: DeckMotion, time: Array, motion: SmoothedMotion) -> Array:
    """Joint torques (n × joints, N·m) that make the body move like that on that deck, by RNEA."""
    dynamics, samples = Dynamics(body), deck.sample(time)
    channels = np.hstack((samples.angular_velocity, samples.angular_acceleration, samples.specific_force))
    return np.array(
        [
            dynamics.reactions(motion.position[row], motion.velocity[row], motion.acceleration[row], channels[row])[6:]
            for row in range(len(time))
        ]
    )


def replica(
    body: Body,
    deck: DeckMotion,
    *,
    duration: float,
    controller: Controller | None = None,
    spread: Callable[[Array], Array] | None = None,
) -> Callable[[float, Array, Array], Array]:
    """Rate of a body's joint positions and velocities for an inverse plant: f(time, state, input), up to ``duration``.

    ``controller``: known part of the torques. ``spread(position)`` (joints × inputs): how an input enters as joint
    torques; joint torques themselves by default.
    """
    dynamics, joints = Dynamics(body), len(body.joint_names)
    nothing = np.zeros(0)
    # Implicit solvers ask for any instant, thousands of times: a spline through samples answers ten times faster.
    grid = np.linspace(0, duration, max(2, math.ceil(duration / DECK_STEP)) + 1)
    samples = deck.sample(grid)
    motion = CubicSpline(
        grid, np.hstack((samples.angular_velocity, samples.angular_acceleration, samples.specific_force))
    )

    def rate(time: float, state: Array, applied: Array) -> Array:
        position, velocity = state[:joints], state[joints:]
        torque = applied if spread is None else spread(position) @ applied
        if controller is not None:
            torque = torque + controller.torque(time, position, velocity, nothing)
        return np.concatenate((velocity, dynamics.acceleration(position, velocity, torque, motion(time))))

    return rate
