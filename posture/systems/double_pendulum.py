"""Two rigid bodies on a platform: Hemami's double inverted pendulum with Lyapunov feedback, cable and inverse plant.

The paper (its title page is lost; H. Hemami and co-workers, after 2002) derives the double inverted pendulum from two
free rigid bodies, balances it with a Lyapunov function, ties a cable between the bodies and estimates an applied
couple by an inverse plant. Equation numbers below are the paper's. Vectors: R from a body's centre of mass to its
lower joint, S1 from that of body 1 to the joint with body 2, s = S1 - R1; A turns body axes into inertial ones.

What is here: the paper's equations as ``TwoBodies``, sharing no code with Pinocchio (the platform translates, as
there); what the paper prints, where that is wrong, as ``MISPRINTS``; the feedback with its parameters on the general
``controllers.Lyapunov``; the two simulations of its Section 6; ``reproduce()``.

Corrected against the print (each has a test that fails without it):
  f     third component: -w1 w2 (j2 - j1).
  (3)   the hat is missing over (R^ Ω); (4) "J - b" is J_b; (5) the last hat belongs to Ω', not Ω.
  (9)   a force in inertial axes gives N = R^ A'F; as printed F would be in body axes.
  (22)  V2 = Va - A1 s^ Ω1 + A2 R2^ Ω2.
  (24)  the cable also pushes: H1 gains Γ and H2 loses it; -N21 = E1^ A1'Γ, N12 = -E2^ A2'Γ. The same for (25).
  (B1)  J12 = m2 s^ A1'A2 R2^, J21 = J12': A1 is transposed and both signs differ from the print.
  (B2)  D1 = -m2 s^ (Ω1^² s - A1'A2 Ω2^² R2), D2 = m2 R2^ A2'A1 Ω1^² s.
  F     holds f_b about the joints, not f.
  H     platform: H1 - m1 Va' and H2 - m2 Va', both bodies.
  (27)  X0 is not stated; upright, X01 = -R1 and X02 = s - R2.

Not printed at all: S1 and the inertias. "S2" = 0.184 m with |R2| = 0.247 m gives 0.431 m, the length of a thigh of a
man of 1.76 m, and the masses are those of his leg with foot and of his thigh, so "S2" belongs to body 2 and
S1 = 0.502 - 0.267 = 0.235 m, with 0.502 m the length of leg and foot. Inertias follow from radii of gyration of 0.416
and 0.323 of those lengths (segment factors of Drillis and Contini, quoted from memory). The variants ``literal_s1``
(S1 = 0.184 m) and ``biped_inertia`` of the body hold the other readings; nothing qualitative depends on them. Figures
are lost, too, so a row's "paper" value is what the paper's own equations give, integrated by themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from controllers import InversePlant, Lyapunov, best_gain
from controllers.lyapunov import bryant_angles
from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.deck import bryant_rates, constant_deck
from posture.elements import Elements, Rod
from posture.estimate import joint_torques, replica, smooth_motion
from posture.segments import Segments, lyapunov
from posture.simulate import Dynamics, closed_loop_matrix, simulate
from posture.systems import comparison
from posture.systems.ship_stance import angle_rates, bryant, skew

Array = NDArray[np.floating]

GRAVITY = 10.0  # m/s², Appendix C
ROTATION = {"body_1": 100.0, "body_2": 25.0}  # Kr over inertia, rad²/s²
TRANSLATION = 25.0  # Kt over mass, 1/s²
DAMPING_TIME = 0.2  # s, L over K
START_SPEED = (0.0, 10.0, 0.0, 0.0, -20.0, 0.0)  # rad/s, of the joints: body 1 +10, body 2 -10 about y
TILTED = np.array([0.3, -0.4, 0.2, 0.1, 0.5, -0.3])  # rad, a start off every plane
READINGS = ("", "+literal_s1", "+biped_inertia", "+literal_s1+biped_inertia")
ANCHOR_1, ANCHOR_2 = (0.05, 0.03, -0.10), (0.06, -0.02, 0.08)  # m from the centres of mass; ours, none are printed
COUPLE, COUPLE_RATE = 2.0, np.pi  # N·m, rad/s: the periodic couple on body 2, axis 1; ours, Fig. 6 is lost


@dataclass(frozen=True)
class Absolute:
    """Both bodies in the paper's coordinates: rotations, angular velocities (body axes) and their rates."""

    A1: Array
    A2: Array
    W1: Array
    W2: Array
    W1_rate: Array
    W2_rate: Array


def absolute(position: Array, velocity: Array, acceleration: Array) -> Absolute:
    """From the six joint angles of the URDF, relative and X-Y-Z, and their derivatives."""
    (w1, w), (w1_rate, w_rate) = bryant_rates(
        position.reshape(2, 3), velocity.reshape(2, 3), acceleration.reshape(2, 3)
    )
    A1, A = bryant(position[:3]), bryant(position[3:])
    carried = A.T @ w1
    return Absolute(A1, A1 @ A, w1, carried + w, w1_rate, A.T @ w1_rate - np.cross(w, carried) + w_rate)


class TwoBodies:
    """The paper's equations, corrected. Small methods hold the places where the print is wrong.

    m, R, J: mass, vector to the lower joint and central inertia (diagonal, J[i] of three) of each body; S1, and weight
    vectors G in inertial axes.
    """

    def __init__(self, m: list[float], R: list[Array], S1: Array, J: list[Array], gravity: float = GRAVITY) -> None:
        self.m, self.R, self.S1, self.J, self.gravity = m, R, S1, J, gravity
        self.s: Array = S1 - R[0]
        self.G: list[Array] = [mass * np.array([0, 0, -gravity]) for mass in m]

    @classmethod
    def of(cls, body: Body, gravity: float = GRAVITY) -> TwoBodies:
        """Read from a body with the joints of double_pendulum."""
        bodies = [body.model.inertias[body.joint_index(name) + 2] for name in ("base_z", "middle_z")]
        joint = body.model.jointPlacements[body.joint_index("middle_x") + 2].translation
        R = [-inertia.lever for inertia in bodies]
        J = [np.diag(inertia.inertia) for inertia in bodies]
        return cls([inertia.mass for inertia in bodies], R, joint + R[0], J, gravity)

    # ------------------------------------------------ one body: (1) to (11)

    def f(self, W: Array, j: Array) -> Array:
        """Gyroscopic couple of (1), -Ω × JΩ."""
        return -np.array([W[1] * W[2] * (j[2] - j[1]), W[2] * W[0] * (j[0] - j[2]), W[0] * W[1] * (j[1] - j[0])])

    def f_b(self, W: Array, i: int) -> Array:
        """The same about the lower joint, (4): f - m R^ Ω^² R."""
        return self.f(W, self.J[i]) - self.m[i] * skew(self.R[i]) @ skew(W) @ skew(W) @ self.R[i]

    def J_b(self, i: int) -> Array:
        """Inertia about the lower joint, (4)."""
        return np.diag(self.J[i]) - self.m[i] * skew(self.R[i]) @ skew(self.R[i])

    def free(self, i: int, A: Array, W: Array, N: Array, H: Array, force: Array) -> tuple[Array, Array]:
        """Free body (1): Ω' and V' for couple N (body axes), force H and force Λ = ``force`` at R (inertial axes)."""
        turn = np.linalg.solve(np.diag(self.J[i]), self.f(W, self.J[i]) + N + skew(self.R[i]) @ A.T @ force)
        return turn, (self.G[i] + H + force) / self.m[i]

    def pinned(self, i: int, A: Array, W: Array, N: Array, H: Array, Va_rate: Array) -> tuple[Array, Array]:
        """Body on the platform: Ω' of (4) and the force Λ of (5)."""
        push = self.G[i] + H - self.m[i] * Va_rate
        W_rate = np.linalg.solve(self.J_b(i), self.f_b(W, i) + N - skew(self.R[i]) @ A.T @ push)
        return W_rate, self.pin_force(i, A, W, W_rate, H, Va_rate)

    def pin_force(self, i: int, A: Array, W: Array, W_rate: Array, H: Array, Va_rate: Array) -> Array:
        """Force of the platform on a pinned body, (5)."""
        swing = A @ skew(self.R[i]) @ W_rate - A @ skew(W) @ skew(W) @ self.R[i]
        return -self.G[i] - H + self.m[i] * (swing + Va_rate)

    def couple_of_force(self, A: Array, arm: Array, F: Array) -> Array:
        """Couple (body axes) of a force in inertial axes at ``arm`` in body axes, (9)."""
        return skew(arm) @ A.T @ F

    # ------------------------------------------------ two bodies: (12) to (23), Appendix B

    def J12(self, A1: Array, A2: Array) -> Array:
        """Upper right block of (B1)."""
        return self.m[1] * skew(self.s) @ A1.T @ A2 @ skew(self.R[1])

    def J21(self, A1: Array, A2: Array) -> Array:
        """Lower left block of (B1)."""
        return self.m[1] * skew(self.R[1]) @ A2.T @ A1 @ skew(self.s)

    def mass_matrix(self, A1: Array, A2: Array) -> Array:
        """(B1)."""
        first = self.J_b(0) - self.m[1] * skew(self.s) @ skew(self.s)
        return np.block([[first, self.J12(A1, A2)], [self.J21(A1, A2), self.J_b(1)]])

    def D1(self, A1: Array, A2: Array, W1: Array, W2: Array) -> Array:
        """Centrifugal couple on body 1, (B2)."""
        inner = skew(W1) @ skew(W1) @ self.s - A1.T @ A2 @ skew(W2) @ skew(W2) @ self.R[1]
        return -self.m[1] * skew(self.s) @ inner

    def D2(self, A1: Array, A2: Array, W1: Array, W2: Array) -> Array:
        """Centrifugal couple on body 2, (B2)."""
        return self.m[1] * skew(self.R[1]) @ A2.T @ A1 @ skew(W1) @ skew(W1) @ self.s

    def platform(self, Va_rate: Array) -> tuple[Array, Array]:
        """What the platform's acceleration adds to H1 and H2 in Appendix B."""
        return -self.m[0] * Va_rate, -self.m[1] * Va_rate

    def projected(self, A1: Array, A2: Array, F1: Array, F2: Array) -> Array:
        """Couples on both bodies of forces at their centres of mass: script G and H of Appendix B."""
        first = -skew(self.R[0]) @ A1.T @ F1 + skew(self.s) @ A1.T @ F2
        return np.concatenate((first, -skew(self.R[1]) @ A2.T @ F2))

    def right_side(self, at: Absolute, N: Array, H1: Array, H2: Array, Va_rate: Array) -> Array:
        """D + F + G + H + N of (23)."""
        P1, P2 = self.platform(Va_rate)
        D = np.concatenate((self.D1(at.A1, at.A2, at.W1, at.W2), self.D2(at.A1, at.A2, at.W1, at.W2)))
        F = np.concatenate((self.f_b(at.W1, 0), self.f_b(at.W2, 1)))
        return D + F + self.projected(at.A1, at.A2, self.G[0] + H1 + P1, self.G[1] + H2 + P2) + N

    def acceleration(self, at: Absolute, N: Array, H1: Array, H2: Array, Va_rate: Array) -> Array:
        """Ω1' and Ω2' (6) of (23); N: total couples on the bodies, body axes."""
        return np.linalg.solve(self.mass_matrix(at.A1, at.A2), self.right_side(at, N, H1, H2, Va_rate))

    def places(self, A1: Array, A2: Array) -> tuple[Array, Array]:
        """X1 and X2 from the platform's origin, (22)."""
        return -A1 @ self.R[0], A1 @ self.s - A2 @ self.R[1]

    def velocities(self, at: Absolute) -> tuple[Array, Array]:
        """V1 and V2 relative to the platform, (22)."""
        second = -at.A1 @ skew(self.s) @ at.W1 + at.A2 @ skew(self.R[1]) @ at.W2
        return at.A1 @ skew(self.R[0]) @ at.W1, second

    def linear_accelerations(self, at: Absolute, Va_rate: Array) -> tuple[Array, Array]:
        """V1' and V2' from (2) and (21)."""

        def swing(A: Array, W: Array, W_rate: Array, arm: Array) -> Array:
            return A @ (skew(W) @ skew(W) @ arm - skew(arm) @ W_rate)

        first = Va_rate - swing(at.A1, at.W1, at.W1_rate, self.R[0])
        return first, Va_rate + swing(at.A1, at.W1, at.W1_rate, self.s) - swing(at.A2, at.W2, at.W2_rate, self.R[1])

    def reactions(self, at: Absolute, H1: Array, H2: Array, Va_rate: Array) -> tuple[Array, Array]:
        """Λ1 on body 1 and Λ2 on body 2 (inertial axes), from (15) and (19)."""
        V1_rate, V2_rate = self.linear_accelerations(at, Va_rate)
        upper = self.m[1] * V2_rate - self.G[1] - H2
        return self.m[0] * V1_rate + upper - self.G[0] - H1, upper

    def joint_couples(self, position: Array, torque: Array) -> Array:
        """N = (N01 - N21, N12) from torques along the six joint axes, by (8) and N21 = A1'A2 N12."""
        N01 = angle_rates(position[:3]).T @ torque[:3]
        N12 = angle_rates(position[3:]).T @ torque[3:]
        return np.concatenate((N01 - bryant(position[3:]) @ N12, N12))

    # ------------------------------------------------ cable (24), (25)

    def line(self, at: Absolute, E1: Array, E2: Array) -> tuple[Array, Array, Array]:
        """L from body 1 to body 2, W of L' = W Ω, and d of L'' = W Ω' + d."""
        X1, X2 = self.places(at.A1, at.A2)
        L = X2 + at.A2 @ E2 - X1 - at.A1 @ E1
        W = np.hstack((at.A1 @ skew(E1 - self.S1), -at.A2 @ skew(E2 - self.R[1])))
        turning = at.A1 @ skew(at.W1) @ skew(at.W1) @ (self.S1 - E1)
        return L, W, turning + at.A2 @ skew(at.W2) @ skew(at.W2) @ (E2 - self.R[1])

    def rod_force(self, at: Absolute, right: Array, E1: Array, E2: Array) -> Array:
        """Γ = λL on body 1 that keeps L'L constant, (24); ``right``: the right side of (23) without it."""
        L, W, d = self.line(at, E1, E2)
        speed, row = W @ np.concatenate((at.W1, at.W2)), L @ W
        J = self.mass_matrix(at.A1, at.A2)
        reach = row @ np.linalg.solve(J, right) + speed @ speed + L @ d
        return np.asarray(reach / (row @ np.linalg.solve(J, row)) * L)

    def channels(self, at: Absolute, force: Array, E1: Array, E2: Array) -> tuple[Array, Array, Array]:
        """Γ as the paper's inputs: N (6), H1, H2."""
        return np.concatenate((skew(E1) @ at.A1.T @ force, -skew(E2) @ at.A2.T @ force)), force, -force


# As printed (or as its reader must take it), by the method each replaces.
MISPRINTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "f, third component": ("f", lambda self, W, j: TwoBodies.f(self, W, j) * [1, 1, -1]),
    "F holds f, hat of (3) lost": ("f_b", lambda self, W, i: self.f(W, self.J[i])),
    "(5) hat over Ω": (
        "pin_force",
        lambda self, i, A, W, W_rate, H, Va_rate: TwoBodies.pin_force(self, i, A, W, W, H, Va_rate),
    ),
    "(9) F in inertial axes": ("couple_of_force", lambda self, A, arm, F: skew(arm) @ F),
    "(22) sign in V2": (
        "velocities",
        lambda self, at: (
            at.A1 @ skew(self.R[0]) @ at.W1,
            at.A1 @ skew(self.s) @ at.W1 + at.A2 @ skew(self.R[1]) @ at.W2,
        ),
    ),
    "(B1) J12, A1 not transposed": (
        "J12",
        lambda self, A1, A2: self.m[1] * skew(self.s) @ A1 @ A2 @ skew(self.R[1]),
    ),
    "(B1) J12, sign": ("J12", lambda self, A1, A2: -TwoBodies.J12(self, A1, A2)),
    "(B1) J21, sign": ("J21", lambda self, A1, A2: -TwoBodies.J21(self, A1, A2)),
    "(B2) D1, bracket": (
        "D1",
        lambda self, A1, A2, W1, W2: (
            -self.m[1] * skew(self.s) @ skew(W1) @ skew(W1) @ self.s + A1.T @ A2 @ skew(W2) @ skew(W2) @ self.R[1]
        ),
    ),
    "(B2) D2, sign": ("D2", lambda self, A1, A2, W1, W2: -TwoBodies.D2(self, A1, A2, W1, W2)),
    "H, sign of m1 Va'": ("platform", lambda self, Va_rate: (self.m[0] * Va_rate, -self.m[1] * Va_rate)),
    "H, m2 Va' missing": ("platform", lambda self, Va_rate: (-self.m[0] * Va_rate, np.zeros(3))),
    "(24) force omitted": (
        "channels",
        lambda self, at, force, E1, E2: (TwoBodies.channels(self, at, force, E1, E2)[0], np.zeros(3), np.zeros(3)),
    ),
    "(24) labels swapped, sign missing": (
        "channels",
        lambda self, at, force, E1, E2: (
            np.concatenate((-skew(E2) @ at.A2.T @ force, skew(E1) @ at.A1.T @ force)),
            force,
            -force,
        ),
    ),
}


def misprinted(model: TwoBodies, name: str) -> TwoBodies:
    """The same pendulum with one misprint put back."""
    wrong = TwoBodies(model.m, model.R, model.S1, model.J, model.gravity)
    method, printed = MISPRINTS[name]
    setattr(wrong, method, MethodType(printed, wrong))
    return wrong


# ---------------------------------------------------------------- against Pinocchio


def generic_body(generator: np.random.Generator) -> Body:
    """The pendulum with joints and centres of mass off any common line and three unequal moments of inertia."""
    links = {}
    for name in ("body_1", "body_2"):
        share = generator.uniform(0.4, 0.6, 3)  # of a sum of squares: always possible moments
        links[name] = {
            "mass": generator.uniform(2, 8),
            "center": generator.uniform(-0.3, 0.3, 3),
            "inertia": generator.uniform(0.02, 0.2) * (share.sum() - share),
        }
    return load_body("double_pendulum").changed(
        links=links, joints={"middle_x": {"origin": generator.uniform(-0.4, 0.4, 3)}}
    )


def disagreements(change: Callable[[TwoBodies], TwoBodies], *, count: int = 400, seed: int = 1) -> dict[str, float]:
    """Largest differences between the paper's equations and Pinocchio on random states, a new body every tenth.

    Accelerations, mass matrix and cable relative, reactions in N, velocities in m/s; the platform accelerates.
    """
    generator = np.random.default_rng(seed)
    worst = dict.fromkeys(("acceleration", "mass matrix", "reaction", "velocity", "one body", "couple", "cable"), 0.0)

    def note(what: str, found: Array, expected: Array, scale: float) -> None:
        worst[what] = max(worst[what], float(np.abs(found - expected).max()) / scale)

    for number in range(count):
        if number % 10 == 0:
            body = generic_body(generator)
            paper = change(TwoBodies.of(body))
            ends = generator.uniform(-0.3, 0.3, (2, 3))
            E1, E2 = ends
            anchors = [tuple(E - R) for E, R in zip(ends, paper.R, strict=True)]
            rod = Rod(name="rod", link_a="body_1", point_a=anchors[0], link_b="body_2", point_b=anchors[1])
            dynamics, segments = Dynamics(body), Segments(body)
        q, v, u = generator.uniform(-1.2, 1.2, 6), generator.normal(0, 3, 6), generator.normal(0, 20, 6)
        H1, H2, Va_rate = generator.normal(0, 20, (3, 3))
        channels = np.concatenate((np.zeros(6), Va_rate + np.array([0, 0, GRAVITY])))
        links = segments(q, v)
        torque = u + links.linear_jacobian[0].T @ H1 + links.linear_jacobian[1].T @ H2
        a = dynamics.acceleration(q, v, torque, channels)
        at = absolute(q, v, a)
        N = paper.joint_couples(q, u)
        rates = np.concatenate((at.W1_rate, at.W2_rate))
        note("acceleration", paper.acceleration(at, N, H1, H2, Va_rate), rates, float(np.abs(rates).max()))

        turn = np.vstack((links.angular_jacobian[0], links.angular_jacobian[1]))
        upper = np.triu(dynamics.inertia(q))
        inertia = upper + np.triu(upper, 1).T
        note("mass matrix", turn.T @ paper.mass_matrix(at.A1, at.A2) @ turn, inertia, float(np.abs(inertia).max()))
        for found, expected in zip(paper.velocities(at), links.velocity, strict=True):
            note("velocity", found, expected, 1.0)

        lower, upper_force = paper.reactions(at, H1, H2, Va_rate)
        total = dynamics.reactions(q, v, a, channels)[:3]
        joint = body.joint_index("middle_x") + 2
        transmitted = at.A1 @ bryant(np.array([q[3], 0, 0])) @ dynamics.data.f[joint].linear
        note("reaction", lower, total - H1 - H2, 1.0)
        note("reaction", upper_force, transmitted - H2, 1.0)

        # One body: (5) put into the free body (1) must give back (4) and keep the platform constraint (2).
        W_rate, force = paper.pinned(0, at.A1, at.W1, N[:3], H1, Va_rate)
        free_rate, V_rate = paper.free(0, at.A1, at.W1, N[:3], H1, force)
        swing = at.A1 @ (skew(at.W1) @ skew(at.W1) @ paper.R[0] - skew(paper.R[0]) @ W_rate)
        note("one body", free_rate, W_rate, float(np.abs(W_rate).max()))
        note("one body", V_rate + swing, Va_rate, float(np.abs(V_rate).max()))
        # (6)-(11): the power of a force is the same as couple and force at the centre of mass, and at its point.
        couple = paper.couple_of_force(at.A1, E1, H2)
        speed_of_point = links.velocity[0] + at.A1 @ skew(at.W1) @ E1
        note("couple", couple @ at.W1 + H2 @ links.velocity[0], H2 @ speed_of_point, float(np.linalg.norm(H2)))

        tied = Dynamics(body, [rod], q)
        row = Elements(body, [rod], q).geometry(q, v).row[0]
        v = v - row * (row @ v) / (row @ row)  # a motion that keeps the rod's length
        b = tied.acceleration(q, v, torque, channels)
        at = absolute(q, v, b)
        gamma = paper.rod_force(at, paper.right_side(at, N, H1, H2, Va_rate), E1, E2)
        N_more, H1_more, H2_more = paper.channels(at, gamma, E1, E2)
        rates = np.concatenate((at.W1_rate, at.W2_rate))
        found = paper.acceleration(at, N + N_more, H1 + H1_more, H2 + H2_more, Va_rate)
        note("cable", found, rates, float(np.abs(rates).max()))
    return worst


# ---------------------------------------------------------------- balance (Section 4) and transient (6.1)


def balance(body: Body, *, gravity: float = GRAVITY, attitude: str = "angles") -> Lyapunov:
    """Feedback (26), (27) with the gains of Appendix C."""
    return lyapunov(
        body,
        rotation=ROTATION,
        translation=TRANSLATION,
        damping_time=DAMPING_TIME,
        gravity=gravity,
        attitude=attitude,
    )


class Balanced:
    """The paper's closed loop (23), (26)-(29) in its own coordinates Θ1, Ω1, Θ2, Ω2 (12 numbers)."""

    def __init__(self, paper: TwoBodies) -> None:
        self.paper = paper
        self.Kr = [ratio * J for ratio, J in zip(ROTATION.values(), paper.J, strict=True)]
        self.Kt = [TRANSLATION * mass for mass in paper.m]
        self.home = paper.places(np.eye(3), np.eye(3))

    def parts(self, z: Array) -> tuple[Absolute, Array, Array, Array]:
        """State as rotations; N (6), H (2 × 3); angle rates Θ1', Θ2'."""
        A1, A2, B1, B2 = bryant(z[:3]), bryant(z[6:9]), angle_rates(z[:3]), angle_rates(z[6:9])
        still = np.zeros(3)
        at = Absolute(A1, A2, z[3:6], z[9:], still, still)
        N = np.concatenate((-B1.T @ (self.Kr[0] * z[:3]), -B2.T @ (self.Kr[1] * z[6:9])))
        N -= DAMPING_TIME * np.concatenate((self.Kr[0] * z[3:6], self.Kr[1] * z[9:]))
        H = np.array(
            [
                -self.Kt[i] * (X - self.home[i] + DAMPING_TIME * V) - self.paper.G[i]
                for i, (X, V) in enumerate(zip(self.paper.places(A1, A2), self.paper.velocities(at), strict=True))
            ]
        )
        return at, N, H, np.concatenate((B1 @ z[3:6], B2 @ z[9:]))

    def rate(self, z: Array, couple: Array | None = None) -> Array:
        """Derivative of the state; ``couple`` (3): applied to body 2, its axes."""
        at, N, H, angle_speed = self.parts(z)
        if couple is not None:
            N[3:] += couple
        W_rate = self.paper.acceleration(at, N, H[0], H[1], np.zeros(3))
        return np.concatenate((angle_speed[:3], W_rate[:3], angle_speed[3:], W_rate[3:]))

    def value(self, z: Array) -> tuple[float, float, float]:
        """Function v of (29), its rate by the chain rule along (23), and what (26), (27) promise for that rate."""
        at, _, _, angle_speed = self.parts(z)
        rate = self.rate(z)
        at = Absolute(at.A1, at.A2, at.W1, at.W2, rate[3:6], rate[9:])
        X, V = self.paper.places(at.A1, at.A2), self.paper.velocities(at)
        V_rate = self.paper.linear_accelerations(at, np.zeros(3))
        v, change, promised = 0.0, 0.0, 0.0
        for i, (angles, W, W_rate) in enumerate(((z[:3], at.W1, rate[3:6]), (z[6:9], at.W2, rate[9:]))):
            J, m, Kr, Kt, offset = self.paper.J[i], self.paper.m[i], self.Kr[i], self.Kt[i], X[i] - self.home[i]
            v += float(W @ (J * W) + m * V[i] @ V[i] + angles @ (Kr * angles) + Kt * offset @ offset) / 2
            change += float(W @ (J * W_rate) + m * V[i] @ V_rate[i] + Kt * offset @ V[i])
            change += float(angles @ (Kr * angle_speed[3 * i : 3 * i + 3]))
            promised -= DAMPING_TIME * float(W @ (Kr * W) + Kt * V[i] @ V[i])
        return v, change, promised

    def run(self, start: Array, time: Array, couple: Callable[[float], Array] | None = None) -> Array:
        """States (n × 12) by an adaptive method of order 8."""
        return np.asarray(
            solve_ivp(
                lambda t, z: self.rate(z, None if couple is None else couple(t)),
                (0, time[-1]),
                start,
                method="DOP853",
                t_eval=time,
                rtol=1e-10,
                atol=1e-12,
            ).y.T
        )


def landmarks(time: Array, angles: Array, value: Array, rate: Array) -> dict[str, float]:
    """What is read off the transient: ``angles`` n × 2, pitch of both bodies from upright."""
    size = np.abs(angles)
    at = {float(t): int(np.argmin(np.abs(time - t))) for t in (1.0, 2.0)}
    return {
        "v(0), J": float(value[0]),
        "v(1 s), J": float(value[at[1.0]]),
        "v(2 s), J": float(value[at[2.0]]),
        "v'(0), W": float(rate[0]),
        "largest angle of body 1, rad": float(size[:, 0].max()),
        "largest angle of body 2, rad": float(size[:, 1].max()),
        "last time an angle is 0.01 rad, s": float(time[np.flatnonzero(size.max(axis=1) > 1e-2)[-1]]),
        "last time an angle is 0.001 rad, s": float(time[np.flatnonzero(size.max(axis=1) > 1e-3)[-1]]),
    }


def transient(reading: str, *, duration: float = 3.0, step: float = 0.002) -> tuple[dict[str, float], dict[str, float]]:
    """Section 6.1 for one reading of the unprinted numbers: landmarks by simulation and by the paper's equations."""
    body = load_body("double_pendulum" + reading)
    law = balance(body)
    run = simulate(
        body,
        constant_deck(gravity=GRAVITY),
        law,
        duration=duration,
        step=step,
        output_step=step,
        start_velocity=np.array(START_SPEED),
    )
    q, v, time = run["joint_position"].values, run["joint_velocity"].values, run.time.values
    found = law.certificate(q, v)
    ours = landmarks(time, np.column_stack((q[:, 1], q[:, 1] + q[:, 4])), found.value, found.rate)
    paper = Balanced(TwoBodies.of(body))
    z = paper.run(np.array([0, 0, 0, 0, 10, 0, 0, 0, 0, 0, -10, 0.0]), time)
    values = np.array([paper.value(row) for row in z])
    return ours, landmarks(time, z[:, [1, 7]], values[:, 0], values[:, 1])


# ---------------------------------------------------------------- inverse plant (Section 5, 6.2)


def applied_couple(time: Array) -> Array:
    """Couple on body 2 (n × 3, its axes, N·m): periodic about the first axis."""
    return np.outer(COUPLE * np.sin(COUPLE_RATE * time), [1.0, 0, 0])


def both_bodies(law: Lyapunov, state: Array) -> Array:
    """Angles and angular velocities Θ1, Ω1, Θ2, Ω2 (12) from joint angles and rates."""
    links = law.kinematics(state[:6], state[6:])
    return np.hstack((bryant_angles(links.rotation), links.angular_velocity)).ravel()


@dataclass(frozen=True)
class PeriodicResponse:
    """The balanced pendulum under the periodic couple: joint states (n × 12) and what an inverse needs."""

    body: Body
    law: Lyapunov
    time: Array
    states: Array

    @classmethod
    def computed(cls, *, duration: float, rate: float = 100.0) -> PeriodicResponse:
        """From rest, sampled at ``rate`` Hz, with the inertias of ``biped_inertia``."""
        body = load_body("double_pendulum+biped_inertia")
        law, time = balance(body), np.arange(round(duration * rate) + 1) / rate
        plant = cls.plant(body, law, duration)
        found = solve_ivp(
            lambda t, x: plant(t, x, applied_couple(np.array([t]))[0]),
            (0, time[-1]),
            np.zeros(12),
            method="DOP853",
            t_eval=time,
            rtol=1e-10,
            atol=1e-12,
        )
        return cls(body, law, time, found.y.T)

    @staticmethod
    def plant(body: Body, law: Lyapunov, duration: float) -> Callable[[float, Array, Array], Array]:
        """Balanced pendulum with a couple on body 2 as its input."""

        def spread(position: Array) -> Array:
            return np.asarray(law.kinematics(position, np.zeros(6)).angular_jacobian[1].T)

        return replica(body, constant_deck(gravity=GRAVITY), duration=duration, controller=law, spread=spread)

    def inverse(self, gain: float, measured: Array, *, between: str = "smooth") -> Array:
        """Couple on body 2 (n × 3) by the paper's inverse: N2^ = [I I] K (Z2 - Z2^), K = diag(k I, 0.2 k I).

        ``measured``: Θ1, Ω1, Θ2, Ω2 (n × 12), of which it uses the second half.
        """
        plant = self.plant(self.body, self.law, float(self.time[-1]))
        K = gain * np.hstack((np.eye(3), DAMPING_TIME * np.eye(3)))
        inverse = InversePlant(plant, lambda x: both_bodies(self.law, x)[6:], gain=K)
        return inverse.run(self.time, measured[:, 6:], start=np.zeros(12), between=between).input

    def error(self, couple: Array) -> float:
        """Rms error of an estimated couple over the rms of the applied one, in the second half of the run."""
        half = len(self.time) // 2
        applied = applied_couple(self.time)[half:]
        return float(np.sqrt(np.mean((couple[half:] - applied) ** 2) / np.mean(applied**2)))

    def measured(self, *, angle: float = 0.0, speed: float = 0.0, seed: int = 0) -> Array:
        """Θ1, Ω1, Θ2, Ω2 (n × 12) with white noise of these standard deviations (rad, rad/s)."""
        noise = np.random.default_rng(seed).normal(0, 1, (len(self.time), 12))
        clean = np.array([both_bodies(self.law, state) for state in self.states])
        return np.asarray(clean + np.tile(np.repeat([angle, speed], 3), 2) * noise)

    def smoothed(self, measured: Array, *, angle: float, speed: float) -> Array:
        """Couple on body 2 (n × 3) from noisy Θ1, Ω1, Θ2, Ω2: smoother, RNEA, minus the known feedback."""
        joints = np.array([_joint_state(row) for row in measured])
        # An angle between bodies is the difference of two measured ones.
        more = np.repeat([1, np.sqrt(2)], 3)
        motion = smooth_motion(
            self.time, joints[:, :6], joints[:, 6:], noise_position=more * angle, noise_velocity=more * speed
        )
        total = joint_torques(self.body, constant_deck(gravity=GRAVITY), self.time, motion)
        couples = []
        for q, v, torque in zip(motion.position, motion.velocity, total, strict=True):
            turn = self.law.kinematics(q, v).angular_jacobian[1].T
            couples.append(np.linalg.lstsq(turn, torque - self.law.wanted(q, v), rcond=None)[0])
        return np.array(couples)


def _joint_state(z: Array) -> Array:
    """Joint angles and rates (12) from Θ1, Ω1, Θ2, Ω2."""
    between = bryant(z[:3]).T @ bryant(z[6:9])
    angles = bryant_angles(between[None])[0]
    rates = angle_rates(z[:3]) @ z[3:6], angle_rates(angles) @ (z[9:] - between.T @ z[3:6])
    return np.concatenate((z[:3], angles, *rates))


# ---------------------------------------------------------------- comparison


def tied_line(body: Body) -> dict[str, Any]:
    """Where the cable of the examples is made fast, in the frames of the links."""
    ends = zip((ANCHOR_1, ANCHOR_2), TwoBodies.of(body).R, strict=True)
    point_a, point_b = (tuple(np.array(E) - R) for E, R in ends)
    return {"name": "cable", "link_a": "body_1", "point_a": point_a, "link_b": "body_2", "point_b": point_b}


def equations() -> list[dict[str, Any]]:
    """The paper's equations against Pinocchio, and whether each misprint shows."""
    right = disagreements(lambda paper: paper)
    limits = {"reaction": (1e-10, ", N"), "velocity": (1e-12, ", m/s")}
    rows = [
        comparison(f"400 random states, {what}: paper's equations against Pinocchio{unit}", None, value, limit)
        for what, value in right.items()
        for limit, unit in [limits.get(what, (1e-12, ", relative"))]
    ]
    shown = [max(disagreements(partial(misprinted, name=name), count=20).values()) for name in MISPRINTS]
    rows.append(comparison(f"misprints, of {len(shown)}, that stay unnoticed", None, sum(d < 1e-3 for d in shown), 0))
    return rows


def certificates() -> list[dict[str, Any]]:
    """Lyapunov function: identity of its rate on random states, fall along spatial runs, eigenvalues."""
    body = load_body("double_pendulum")
    paper, law, generator = Balanced(TwoBodies.of(body)), balance(body), np.random.default_rng(2)
    identity = torque = 0.0
    for _ in range(200):
        z = np.concatenate([generator.uniform(-1, 1, 3), generator.normal(0, 2, 3)] * 2)
        v, change, promised = paper.value(z)
        identity = max(identity, abs(change - promised))
        joints = _joint_state(z)
        _, N, H, _ = paper.parts(z)
        at = paper.parts(z)[0]
        couples = N + paper.paper.projected(at.A1, at.A2, H[0], H[1])
        found = paper.paper.joint_couples(joints[:6], law.wanted(joints[:6], joints[6:]))
        torque = max(torque, float(np.abs(found - couples).max() / np.abs(couples).max()))
        torque = max(torque, abs(law.value(joints[:6], joints[6:]) - v) / v)
    rising = 0
    for attitude in ("angles", "rotation"):
        spatial = balance(body, attitude=attitude)
        run = simulate(
            body,
            constant_deck(gravity=GRAVITY),
            spatial,
            duration=2.0,
            output_step=0.005,
            start_position=TILTED,
            start_velocity=np.array([2.0, 1, -3, 1, -2, 2]),
        )
        value = spatial.certificate(run["joint_position"].values, run["joint_velocity"].values).value
        rising += int(np.sum(np.diff(value) >= 0))
    matrix = np.array([_central(paper.rate, column) for column in range(12)]).T
    theirs = np.sort_complex(np.linalg.eigvals(matrix))
    ours = np.sort_complex(
        np.linalg.eigvals(closed_loop_matrix(body, balance(body, gravity=STANDARD_GRAVITY), np.zeros(12))[0])
    )
    return [
        comparison("v' by the chain rule against -ΣΩ'LrΩ - ΣV'LtV, 200 spatial states, W", None, identity, 1e-8),
        comparison("feedback and v: general law against (26)-(29), relative", None, torque, 1e-12),
        comparison("steps in which v rises, spatial starts, angles and rotation laws", None, rising, 0),
        comparison("slowest eigenvalue, real part", float(theirs.real.max()), ours.real.max(), 1e-3, distance=True),
        comparison("eigenvalues: largest difference", None, np.abs(ours - theirs).max(), 1e-3),
    ]


def _central(function: Callable[[Array], Array], column: int, size: float = 1e-6) -> Array:
    nudge = np.zeros(12)
    nudge[column] = size
    return (function(nudge) - function(-nudge)) / (2 * size)


def transients() -> list[dict[str, Any]]:
    """Section 6.1 for all readings of what is not printed."""
    rows = []
    for reading in READINGS:
        ours, paper = transient(reading)
        name = " and ".join(reading[1:].split("+")) or "default"
        for what, expected in paper.items():
            room = float(f"{1e-3 * min(1, abs(expected)):.1g}")
            rows.append(comparison(f"transient ({name}), {what}", expected, ours[what], room, distance=True))
    return rows


def rods() -> list[dict[str, Any]]:
    """The rigid cable (24) on the balanced pendulum: no drift, and it takes nothing from the certificate."""
    body = load_body("double_pendulum+biped_inertia")
    law, deck, line = balance(body), constant_deck(gravity=GRAVITY), Rod(**tied_line(body))
    run = simulate(body, deck, law, duration=5.0, output_step=0.02, start_position=TILTED, elements=[line])
    value = law.certificate(run["joint_position"].values, run["joint_velocity"].values).value
    return [
        comparison("rod, drift of its length in 5 s, m", None, np.ptp(run["element_length"].values), 1e-8),
        comparison("rod, steps in which v rises", None, int(np.sum(np.diff(value) >= 0)), 0),
    ]


def inverses() -> list[dict[str, Any]]:
    """Section 6.2: error of the inverse plant against its gain, and with noise against the smoother."""
    response = PeriodicResponse.computed(duration=6.0)
    clean, gains = response.measured(), (1e2, 1e3, 1e4)
    errors = [response.error(response.inverse(gain, clean)) for gain in gains]
    slope = float(np.polyfit(np.log(gains), np.log(errors), 1)[0])
    angle, speed = 1e-3, 1e-2
    noisy = response.measured(angle=angle, speed=speed, seed=3)
    tried = {k: response.error(response.inverse(k, noisy, between="straight")) for k in (30.0, 60.0, 100.0)}
    best = min(tried.values())
    scale = COUPLE / np.sqrt(2)  # of the couple, so that errors are in N·m
    _, predicted = best_gain(
        errors[1] * gains[1] * scale, noise_position=angle, noise_velocity=speed, damping_time=DAMPING_TIME
    )
    smooth = response.error(response.smoothed(noisy, angle=angle, speed=speed))
    return [
        comparison(
            "inverse plant, relative error at gain 1000 (beside: another program)",
            0.00525,
            errors[1],
            0.05 * 0.00525,
            distance=True,
        ),
        comparison("inverse plant, slope of the error against the gain", -1.0, slope, 0.05, distance=True),
        comparison("inverse plant, 1 mrad and 10 mrad/s noise, best gain: relative error", None, best, None),
        comparison("  the same, predicted by best_gain", None, predicted / scale, None),
        comparison("smoother and RNEA: error over that of the best inverse plant", None, smooth / best, 0.5),
    ]


def reproduce() -> list[dict[str, Any]]:
    """Compare the paper's equations with the package; a row without tolerance only reports."""
    return [*equations(), *certificates(), *transients(), *rods(), *inverses()]
