"""Balance with a certificate: every link is drawn to its place as if by springs and dampers of its own.

Hemami's construction for any chain of rigid links (equations (26)-(29) of the double pendulum paper): give each free
link a couple N and a force H,

    N = -B'(Θ) Kr Θ - Lr Ω          H = -Kt (X - X0) - Lt V - m g

add up kinetic and elastic energy to v = Σ ½ Ω'JΩ + ½ m V'V + ½ Θ'KrΘ + ½ (X-X0)'Kt(X-X0), and carry both over to the
joints: torques u = Σ Jw'N + Jv'H. Joints do no work, so v falls as it did for the free links,

    v' = -Σ (Ω'Lr Ω + V'Lt V) <= 0.

Θ are X-Y-Z angles of the link from its reference attitude, singular at ±90° pitch. ``attitude="rotation"`` replaces
½ Θ'KrΘ by tr(G (I - R)), G = ½ tr(Kr) I - Kr, which equals (1 - cos φ) n'Kr n for a turn by φ about n: the same
stiffness for small turns, no singularity, and a minimum without rival below 180°.

The law sees links through one function, ``kinematics(position, velocity) -> LinkMotion``: any body, any library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from controllers.protocol import Array, ControllerError, by_joint

ATTITUDES = ("angles", "rotation")


@dataclass(frozen=True)
class LinkMotion:
    """How n links move at one instant, seen from the base, and how j joint velocities make them move.

    rotation (n × 3 × 3): link axes to base axes. angular_velocity (n × 3): link axes. position, velocity (n × 3): of
    the centres of mass, base axes. Jacobians (n × 3 × j) give the two velocities from the joint velocities.
    """

    rotation: Array
    angular_velocity: Array
    position: Array
    velocity: Array
    angular_jacobian: Array
    linear_jacobian: Array


Kinematics = Callable[[Array, Array], LinkMotion]


@dataclass(frozen=True)
class LinkGains:
    """Gains of one link, each one number, three for the axes, or a symmetric 3 × 3 matrix.

    ``rotation`` N·m/rad and ``rotation_damping`` N·m·s/rad in link axes; ``translation`` N/m and
    ``translation_damping`` N·s/m in base axes.
    """

    rotation: ArrayLike
    rotation_damping: ArrayLike
    translation: ArrayLike
    translation_damping: ArrayLike

    @classmethod
    def proportional(
        cls, mass: float, inertia: Array, *, rotation: float, translation: float, damping_time: float
    ) -> LinkGains:
        """Gains in proportion to inertia and mass (rad²/s², s⁻², s), as in the paper's Appendix C."""
        turn, shift = rotation * np.asarray(inertia), translation * mass
        return cls(turn, damping_time * turn, shift, damping_time * shift)


@dataclass(frozen=True)
class Certificate:
    """The Lyapunov function along a motion of n instants.

    value (J); rate (W), what v' is with everything counted; damping (W), what the law promises (never positive);
    limit_power (W), added by torque limits; disturbance_power (W), added by forces the law does not know;
    limited (n × joints): where a torque limit is reached; broken: where v rises.
    """

    value: Array
    rate: Array
    damping: Array
    limit_power: Array
    disturbance_power: Array
    limited: NDArray[np.bool_]
    broken: NDArray[np.bool_]

    def report(self, time: Array, joint_names: Sequence[str]) -> list[str]:
        """One sentence per stretch of time in which v rises, with the joints then at their limits."""
        sentences = []
        edges = np.flatnonzero(np.diff(np.concatenate(([0], self.broken.astype(int), [0]))))
        for first, end in zip(edges[::2], edges[1::2], strict=True):
            hits = np.atleast_1d(self.limited[first:end].any(axis=0))
            joints = [name for name, hit in zip(joint_names, hits, strict=True) if hit]
            cause = f"torque limit of {', '.join(joints)}" if joints else "forces the law does not know"
            gained = float(self.value[min(end, len(time) - 1)] - self.value[first])
            sentences.append(
                f"{time[first]:.3f} to {time[end - 1]:.3f} s: v rises by {gained:.3g} J ({cause}), no certificate there"
            )
        return sentences


class Lyapunov:
    """The law above, with optional torque limits; gains by link name or one set for all.

    ``mass`` (n) and ``inertia`` (n × 3 × 3, about the centre of mass, link axes) are needed for v and for carrying
    the weight; ``gravity`` is in base axes, m/s². ``reference`` holds the joint positions that the links are drawn to
    (zeros by default). ``limits``: largest torque by joint, N·m.
    """

    memory_size = 0

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        kinematics: Kinematics,
        link_names: Sequence[str],
        mass: ArrayLike,
        inertia: ArrayLike,
        gains: Mapping[str, LinkGains] | LinkGains,
        reference: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.80665),
        attitude: str = "angles",
        limits: Mapping[str, float] | float | None = None,
    ) -> None:
        self.joint_names, self.link_names = tuple(joint_names), tuple(link_names)
        self.kinematics = kinematics
        self.mass, self.inertia = np.asarray(mass, float), np.asarray(inertia, float)
        if attitude not in ATTITUDES:
            raise ControllerError(f"attitude is {attitude!r}; it must be {' or '.join(ATTITUDES)}")
        self.attitude = attitude
        self.gravity = np.asarray(gravity, float)
        by_link = gains if isinstance(gains, Mapping) else dict.fromkeys(self.link_names, gains)
        if set(by_link) != set(self.link_names):
            raise ControllerError(f"gains are needed for exactly these links: {', '.join(self.link_names)}")
        self.Kr, self.Lr, self.Kt, self.Lt = (
            np.array([_positive(getattr(by_link[name], key), f"{key} of {name!r}") for name in self.link_names])
            for key in ("rotation", "rotation_damping", "translation", "translation_damping")
        )
        self.G = np.trace(self.Kr, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - self.Kr
        self.limits = (
            np.full(len(self.joint_names), np.inf)
            if limits is None
            else by_joint(limits, self.joint_names, what="torque limit", lowest=0)
        )
        still = np.zeros(len(self.joint_names))
        home = kinematics(still if reference is None else np.asarray(reference, float), still)
        self.home_rotation, self.home_position = home.rotation, home.position

    def torque(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Joint torques, N·m, within the limits."""
        return np.clip(self.wanted(position, velocity), -self.limits, self.limits)

    def memory_rate(self, time: float, position: Array, velocity: Array, memory: Array) -> Array:
        """Nothing: the law has no memory."""
        return np.zeros(0)

    def wanted(self, position: Array, velocity: Array) -> Array:
        """Joint torques of the unlimited law."""
        links = self.kinematics(position, velocity)
        couple, force = self.couples_and_forces(links)
        return np.asarray(
            np.einsum("nij,ni->j", links.angular_jacobian, couple)
            + np.einsum("nij,ni->j", links.linear_jacobian, force)
        )

    def couples_and_forces(self, links: LinkMotion) -> tuple[Array, Array]:
        """N (n × 3, link axes) and H (n × 3, base axes) of every link; equations (26), (27)."""
        turned = np.swapaxes(self.home_rotation, 1, 2) @ links.rotation
        if self.attitude == "angles":
            angles = bryant_angles(turned)
            pull = np.einsum("nji,njk,nk->ni", angle_rate_matrix(angles), self.Kr, angles)
        else:
            skew = self.G @ turned
            skew = skew - np.swapaxes(skew, 1, 2)  # G R - R'G
            pull = np.stack((skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]), axis=1)
        couple = -pull - np.einsum("nij,nj->ni", self.Lr, links.angular_velocity)
        force = -np.einsum("nij,nj->ni", self.Kt, links.position - self.home_position)
        force -= np.einsum("nij,nj->ni", self.Lt, links.velocity) + self.mass[:, None] * self.gravity
        return couple, force

    def value(self, position: Array, velocity: Array) -> float:
        """Lyapunov function v, J; equations (28), (29)."""
        links = self.kinematics(position, velocity)
        turned = np.swapaxes(self.home_rotation, 1, 2) @ links.rotation
        offset = links.position - self.home_position
        total = np.einsum("ni,nij,nj->", links.angular_velocity, self.inertia, links.angular_velocity)
        total += np.einsum("n,ni,ni->", self.mass, links.velocity, links.velocity)
        total += np.einsum("ni,nij,nj->", offset, self.Kt, offset)
        if self.attitude == "angles":
            angles = bryant_angles(turned)
            total += np.einsum("ni,nij,nj->", angles, self.Kr, angles)
        else:
            total += 2 * np.einsum("nij,nji->", self.G, np.eye(3) - turned)
        return float(total / 2)

    def damping(self, position: Array, velocity: Array) -> float:
        """What the law makes of v', W: -Σ (Ω'Lr Ω + V'Lt V)."""
        links = self.kinematics(position, velocity)
        turn = np.einsum("ni,nij,nj->", links.angular_velocity, self.Lr, links.angular_velocity)
        return -float(turn + np.einsum("ni,nij,nj->", links.velocity, self.Lt, links.velocity))

    def certificate(self, position: Array, velocity: Array, *, disturbance: Array | None = None) -> Certificate:
        """The function v and its rate along a motion (n × joints each), and where limits or disturbances break it.

        ``disturbance`` (n × joints, N·m): joint torques of everything the law does not know, such as a ligament or
        the inertia forces of a moving base.
        """
        value = np.array([self.value(q, v) for q, v in zip(position, velocity, strict=True)])
        damping = np.array([self.damping(q, v) for q, v in zip(position, velocity, strict=True)])
        wanted = np.array([self.wanted(q, v) for q, v in zip(position, velocity, strict=True)])
        missing = np.clip(wanted, -self.limits, self.limits) - wanted
        limit_power = np.sum(missing * velocity, axis=1)
        disturbance_power = np.zeros(len(value)) if disturbance is None else np.sum(disturbance * velocity, axis=1)
        rate = damping + limit_power + disturbance_power
        # Rounding in v is a few units of its last place; a rise smaller than that in a microsecond is none.
        return Certificate(
            value, rate, damping, limit_power, disturbance_power, missing != 0, rate > 1e-9 * (1 + np.abs(value))
        )


def bryant_angles(rotation: Array) -> Array:
    """X-Y-Z angles (n × 3, rad) of rotations (n × 3 × 3), the paper's (A5); pitch within ±90°."""
    return np.stack(
        (
            np.arctan2(-rotation[:, 1, 2], rotation[:, 2, 2]),
            np.arcsin(np.clip(rotation[:, 0, 2], -1, 1)),
            np.arctan2(-rotation[:, 0, 1], rotation[:, 0, 0]),
        ),
        axis=1,
    )


def angle_rate_matrix(angles: Array) -> Array:
    """B (n × 3 × 3) of Θ' = B Ω, Ω in the turned axes; the paper's (A6), singular at ±90° pitch."""
    (_, s2, s3), (_, c2, c3) = np.sin(angles).T, np.cos(angles).T
    none, one = np.zeros_like(s2), np.ones_like(s2)
    rows = [[c3 / c2, -s3 / c2, none], [s3, c3, none], [-s2 * c3 / c2, s2 * s3 / c2, one]]
    return np.moveaxis(np.array(rows), 2, 0)


def _positive(gain: ArrayLike, what: str) -> Array:
    """3 × 3 matrix from one number, three or nine; positive definite, or v would certify nothing."""
    values = np.asarray(gain, float)
    matrix = values * np.eye(3) if values.ndim == 0 else np.diag(values) if values.shape == (3,) else values
    if matrix.shape != (3, 3) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ControllerError(f"{what} must be one number, three, or a symmetric 3 × 3 matrix")
    if np.linalg.eigvalsh(matrix)[0] <= 0:
        raise ControllerError(f"{what} must be positive definite; without that there is no certificate")
    return matrix
