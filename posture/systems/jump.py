"""Muscles, ground and joint forces in a sports jump: the planar model of Blajer, Dziewiecki and Mazur.

W. Blajer, K. Dziewiecki, Z. Mazur (2010) "Aspekty modelowania dynamiki ruchu człowieka dla zadań symulacji odwrotnej"
(Remarks on human body movement modelling for the inverse dynamics analysis; in Polish). Equation numbers are the
paper's.

What is here, in the paper's order: absolute coordinates p (42) and the equations of motion (1), (2); independent
coordinates q (16) by projection, (3)-(5); determinate inverse dynamics (6), (7) and the ground reaction alone (18);
equivalence of torques and muscles (9), (11); muscles straight from the motion (16); joint reactions (19), (20), (25).
All of it is ``Planar``, written from the paper for the body jump.urdf and sharing no dynamics with the package, which
does the same work by Newton and Euler in three dimensions (posture.joint_loads, muscles, muscle_sharing).
``reproduce()`` holds one to the other; the paper prints no subject, motion or result to compare with.

Corrected against the print (each correction has a test that fails without it):
  2.1  k'' = 7 torques above the legs, not 6.
  2.2  M_A = R_y d + R_x h and d = (M_A - R_x h)/R_y for M_A counter-clockwise and d forward; the printed signs hold for
       neither of the usual axes.
  (4)  C_r transposed.
  (6), (7)  the matrices need -Cᵀ and -C_rᵀ; as printed, the reactions come out with the wrong sign.
  (9)  is wrong: multiplying (1) by Bᵀ M⁻¹ leaves Bᵀ M⁻¹ Cᵀ λ, and λ differs between torques and muscles. The "proof"
       D (Dᵀ M D)⁻¹ Dᵀ = M⁻¹ compares a matrix of rank 16 with one of rank 42. (11) is right, and is the same as
       τ' = R(q) F with R the moment arms.
  (16), (17)  the right side must lose what the torques above the legs do, B'ᵀ M⁻¹ B'' τ''.
  (18) needs the transposed complement. E in (22) is 3N × l.

Paper axes: x forward, y up, angles counter-clockwise as seen from the right, so θ = minus our rotation about Y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.joint_loads import Push, joint_loads
from posture.jump_motion import jump_motion
from posture.kinematics import Base, postures, tree_of
from posture.muscle_sharing import eliminate, share
from posture.muscles import Muscles, load_muscles
from posture.systems import comparison

Array = NDArray[np.floating]

SIDES = ("right", "left")
# Segments 1-14 and joints 1-13 (parent, child) in the paper's order; 8-14 are not numbered in print.
SEGMENTS = (
    *(f"{side}_{part}" for side in SIDES for part in ("foot", "shank", "thigh")),
    "pelvis",
    "middle_trunk",
    "upper_trunk",
    "head",
    *(f"{side}_{part}" for side in SIDES for part in ("upper_arm", "forearm")),
)
JOINTS = (
    *(f"{side}_{part}" for side in SIDES for part in ("ankle", "knee", "hip")),
    "lumbar",
    "thoracic",
    "neck",
    *(f"{side}_{part}" for side in SIDES for part in ("shoulder", "elbow")),
)
LEG_JOINTS = JOINTS[:6]
PELVIS = 6


def _turn(angle: float) -> Array:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _ahead(vector: Array) -> Array:
    """A vector turned by a right angle: the rate of a vector per rate of its angle."""
    return np.array([-vector[1], vector[0]])


@dataclass(frozen=True)
class State:
    """Independent coordinates [x_H, y_H, φ1…φ14], their rates and accelerations (16 each)."""

    q: Array
    rate: Array
    acceleration: Array


class Planar:
    """The paper's matrices for one body; every method takes a ``State``."""

    def __init__(self, body: Body) -> None:
        model = body.model
        joint = [body.joint_index(name) + 2 for name in JOINTS]
        self.body = body
        self.parent, self.child = [], []
        frames = {SEGMENTS[PELVIS]: 1}
        for name, index in zip(JOINTS, joint, strict=True):
            frames[self._child_of(body, name)] = index
        by_index = {index: SEGMENTS.index(name) for name, index in frames.items()}
        for index in joint:
            self.parent.append(by_index[int(model.parents[index])])
            self.child.append(by_index[index])
        inertias = [model.inertias[frames[name]] for name in SEGMENTS]
        self.mass = np.array([inertia.mass for inertia in inertias])
        self.center = np.array([inertia.lever[[0, 2]] for inertia in inertias])
        self.inertia = np.array([inertia.inertia[1, 1] for inertia in inertias])
        self.offset = np.array([model.jointPlacements[index].translation[[0, 2]] for index in joint])
        self.M = np.diag(np.stack((self.mass, self.mass, self.inertia), axis=1).ravel())
        self.f_g = np.stack((0 * self.mass, -STANDARD_GRAVITY * self.mass, 0 * self.mass), axis=1).ravel()
        # Arms L[i, k]: C_i = H + Σ_k R(φ_k) L[i, k]
        self.arms = np.zeros((14, 14, 2))
        self.beyond = np.zeros((13, 14), bool)  # segments carried by a joint
        for segment in range(14):
            self.arms[segment, segment] += self.center[segment]
            at = segment
            while at != PELVIS:
                through = self.child.index(at)
                self.beyond[through, segment] = True
                at = self.parent[through]
                self.arms[segment, at] += self.offset[through]
        # A URDF angle grows the paper's θ of the child by this; a torque likewise.
        self.sign = -tree_of(body).axis[[index - 2 for index in joint], 1]

    @staticmethod
    def _child_of(body: Body, joint: str) -> str:
        index = body.joint_index(joint) + 2
        return next(str(f.name) for f in body.model.frames if f.parentJoint == index and f.name in SEGMENTS)

    # -------- (1), (2): absolute coordinates

    @cached_property
    def B_tau(self) -> Array:
        """Torques on child and, reversed, parent: 42 × 13."""
        B = np.zeros((42, 13))
        for joint, (parent, child) in enumerate(zip(self.parent, self.child, strict=True)):
            B[3 * child + 2, joint], B[3 * parent + 2, joint] = 1, -1
        return B

    def constraints(self, state: State) -> tuple[Array, Array]:
        """Matrix C (26 × 42) of the joints, child point minus parent point, and ξ = -C' p'."""
        C, xi = np.zeros((26, 42)), np.zeros(26)
        for joint, (parent, child) in enumerate(zip(self.parent, self.child, strict=True)):
            rows = slice(2 * joint, 2 * joint + 2)
            for segment, arm, sign in (
                (child, -self.center[child], 1),
                (parent, self.offset[joint] - self.center[parent], -1),
            ):
                out = _turn(state.q[2 + segment]) @ arm
                C[rows, 3 * segment : 3 * segment + 2] += sign * np.eye(2)
                C[rows, 3 * segment + 2] += sign * _ahead(out)
                xi[rows] += sign * state.rate[2 + segment] ** 2 * out
        return C, xi

    def contact(self, state: State, foot: str) -> Array:
        """C_r (3 × 42) of one foot: minus the rates of ankle place and foot angle, so that λ_r = (R_x, R_y, M_A)."""
        segment = SEGMENTS.index(foot)
        C_r = np.zeros((3, 42))
        C_r[:2, 3 * segment : 3 * segment + 2] = -np.eye(2)
        C_r[:2, 3 * segment + 2] = -_ahead(_turn(state.q[2 + segment]) @ -self.center[segment])
        C_r[2, 3 * segment + 2] = -1
        return C_r

    def B_stress(self, state: State, muscles: Muscles) -> Array:
        """Columns of B for muscle stresses σ' (42 × muscles): pulls on each segment times the muscle's area."""
        base, position, _, _ = self.package(state)
        paths = muscles.paths(postures(self.body, position, base))
        carried = {self.body.joint_index(name): self.child[joint] for joint, name in enumerate(JOINTS)} | {-1: PELVIS}
        p = self.g(state)
        B = np.zeros((42, len(muscles.names)))
        for column, pull in enumerate(paths.pulls):
            for joint, point, unit in zip(pull.joints, pull.points, pull.pulls, strict=True):
                segment = carried[joint]
                force, arm = unit[[0, 2], 0], point[[0, 2], 0] - p[3 * segment : 3 * segment + 2]
                B[3 * segment : 3 * segment + 2, column] += force
                B[3 * segment + 2, column] += arm[0] * force[1] - arm[1] * force[0]
        return B * muscles.area

    # -------- (3): independent coordinates

    def g(self, state: State) -> Array:
        """Absolute coordinates of a state."""
        p = np.empty((14, 3))
        turned = np.einsum("kij,skj->si", np.array([_turn(angle) for angle in state.q[2:]]), self.arms)
        p[:, :2], p[:, 2] = state.q[:2] + turned, state.q[2:]
        return p.ravel()

    def D(self, state: State) -> Array:
        """∂g/∂q, 42 × 16."""
        D = np.zeros((14, 3, 16))
        D[:, 0, 0] = D[:, 1, 1] = 1
        for segment in range(14):
            D[segment, 2, 2 + segment] = 1
            for k in range(14):
                D[segment, :2, 2 + k] = _ahead(_turn(state.q[2 + k]) @ self.arms[segment, k])
        return D.reshape(42, 16)

    def gamma(self, state: State) -> Array:
        """D' q'."""
        gamma = np.zeros((14, 3))
        for segment in range(14):
            for k in range(14):
                gamma[segment, :2] -= state.rate[2 + k] ** 2 * _turn(state.q[2 + k]) @ self.arms[segment, k]
        return gamma.ravel()

    def E(self, joints: int = 13) -> Array:
        """∂g/∂z (22): opening a joint shifts all it carries; for the first ``joints`` joints, 42 × 2 joints."""
        E = np.zeros((14, 3, 2 * joints))
        for joint in range(joints):
            E[self.beyond[joint], 0, 2 * joint] = E[self.beyond[joint], 1, 2 * joint + 1] = 1
        return E.reshape(42, 2 * joints)

    # -------- the same motion for the package

    def package(self, state: State) -> tuple[Base, Array, Array, Array]:
        """The state as root motion and URDF joint angles, rates and accelerations (one frame)."""
        joints = []
        for values in (state.q, state.rate, state.acceleration):
            row = np.zeros(13)
            for joint, name in enumerate(JOINTS):
                relative = values[2 + self.child[joint]] - values[2 + self.parent[joint]]
                row[self.body.joint_index(name)] = self.sign[joint] * relative
            joints.append(row[None])

        def root(values: Array) -> Array:
            return np.array([[values[0], values[1], -values[2 + PELVIS]]])

        base = Base.planar(root(state.q), root(state.rate), root(state.acceleration))
        return base, joints[0], joints[1], joints[2]

    # -------- inverse dynamics

    def determinate_absolute(self, state: State, foot: str) -> tuple[Array, Array, Array]:
        """λ (26), λ_r (3), u_τ (13) by (6), corrected."""
        C, _ = self.constraints(state)
        p2 = self.D(state) @ state.acceleration + self.gamma(state)
        found = np.linalg.solve(np.hstack((-C.T, -self.contact(state, foot).T, self.B_tau)), self.M @ p2 - self.f_g)
        return found[:26], found[26:29], found[29:]

    def projected(self, state: State, foot: str) -> tuple[Array, Array, Array, Array, Array]:
        """Mass matrix, d, gravity, C_r and B_τ in independent coordinates, (4), (5)."""
        D = self.D(state)
        return (
            D.T @ self.M @ D,
            D.T @ self.M @ self.gamma(state),
            D.T @ self.f_g,
            self.contact(state, foot) @ D,
            D.T @ self.B_tau,
        )

    def determinate(self, state: State, foot: str) -> tuple[Array, Array]:
        """λ_r and u_τ by (7), corrected."""
        M, d, f_g, C_r, B = self.projected(state, foot)
        found = np.linalg.solve(np.hstack((-C_r.T, B)), M @ state.acceleration + d - f_g)
        return found[:3], found[3:]

    def ground_alone(self, state: State, foot: str) -> Array:
        """λ_r by (18): projection on what no torque reaches."""
        M, d, f_g, C_r, B = self.projected(state, foot)
        A = np.linalg.svd(B)[0][:, 13:]  # AᵀB = 0
        return np.linalg.solve(A.T @ C_r.T, A.T @ (f_g - M @ state.acceleration - d))

    def equivalence_printed(self, state: State, muscles: Muscles) -> tuple[Array, Array]:
        """G' and H' of (9), as printed."""
        B, inverse = self.B_tau[:, :6], np.linalg.inv(self.M)
        return B.T @ inverse @ B, B.T @ inverse @ self.B_stress(state, muscles)

    def equivalence(self, state: State, muscles: Muscles) -> tuple[Array, Array]:
        """G' and H' of (11)."""
        D = self.D(state)
        B = D.T @ self.B_tau[:, :6]
        inverse = np.linalg.inv(D.T @ self.M @ D)
        return B.T @ inverse @ B, B.T @ inverse @ D.T @ self.B_stress(state, muscles)

    def direct_right_side(
        self, state: State, foot: str, ground: Array, above: Array, *, printed: bool = False
    ) -> Array:
        """Right side of (16); ``above``: torques τ''. ``printed`` leaves their part in, as the paper does."""
        M, d, f_g, C_r, B = self.projected(state, foot)
        inverse = np.linalg.inv(M)
        h = B[:, :6].T @ (state.acceleration + inverse @ (d - f_g + C_r.T @ ground))
        return h if printed else h - B[:, :6].T @ inverse @ B[:, 6:] @ above

    # -------- joint reactions; ``control``: B u (42)

    def reactions_19(self, state: State, external: Array) -> Array:
        """λ (26) by (19); ``external``: gravity, ground and control together (42)."""
        C, xi = self.constraints(state)
        inverse = np.linalg.inv(self.M)
        return np.linalg.solve(C @ inverse @ C.T, C @ inverse @ external - xi)

    def reactions_20(self, state: State, external: Array) -> Array:
        """λ (26) by (20)."""
        C, _ = self.constraints(state)
        inverse = np.linalg.inv(self.M)
        return np.linalg.solve(C @ inverse @ C.T, C @ (inverse @ external - self.gamma(state)))

    def reactions_25(self, state: State, external: Array) -> Array:
        """λ' (12) of the legs' joints by (25)."""
        p2 = self.D(state) @ state.acceleration + self.gamma(state)
        return self.E(6).T @ (external - self.M @ p2)


def pressure_point(force_x: Array, force_y: Array, moment: Array, height: Array) -> Array:
    """Distance d (m) of the ground reaction ahead of the ankle, 2.2 corrected: d = (M_A - R_x h)/R_y.

    ``moment`` about the ankle, counter-clockwise; ``height`` of the ankle above the ground.
    """
    return np.asarray((moment - force_x * height) / force_y)


def ankle_moment(force_x: Array, force_y: Array, distance: Array, height: Array) -> Array:
    """M_A = R_y d + R_x h, 2.2 corrected."""
    return np.asarray(force_y * distance + force_x * height)


# ---------------------------------------------------------------- the comparison


def random_states(count: int, seed: int) -> list[State]:
    """Postures and motions of a lively person."""
    rng = np.random.default_rng(seed)
    return [State(*(scale * rng.normal(size=16) for scale in (0.6, 3.0, 20.0))) for _ in range(count)]


def _worst(differences: list[Array | float], sizes: list[Array]) -> float:
    """Largest difference relative to the size of what is compared."""
    return max(float(np.max(np.abs(one)) / np.max(np.abs(size))) for one, size in zip(differences, sizes, strict=True))


def equations(body: Body, muscles: Muscles, count: int = 40) -> list[dict[str, Any]]:
    """The paper's equations against each other and against the package, on random states."""
    planar, states = Planar(body), random_states(count, 1)
    rng = np.random.default_rng(2)
    area = muscles.area
    legs = [body.joint_index(name) for name in LEG_JOINTS]
    gaps: dict[str, list[Array | float]] = {}
    sizes: dict[str, list[Array]] = {}

    def add(name: str, difference: Array, size: Array) -> None:
        gaps.setdefault(name, []).append(difference)
        sizes.setdefault(name, []).append(size)

    for state in states:
        foot = str(rng.choice(["right_foot", "left_foot"]))
        base, position, rate, speedup = planar.package(state)
        absolute, ground_6, torque_6 = planar.determinate_absolute(state, foot)
        ground, torque = planar.determinate(state, foot)
        add("(6) = (7)", np.append(ground_6 - ground, torque_6 - torque), np.append(ground, torque))
        add("(18) = (7)", planar.ground_alone(state, foot) - ground, ground)
        ankle = postures(body, position, base).origin[body.joint_index(foot.replace("foot", "ankle")) + 1].T
        push = Push(
            foot,
            np.array([[ground[0], 0, ground[1]]]),
            ankle,
            np.array([[0, -ground[2], 0]]),
        )
        ours = joint_loads(body, position, rate, speedup, base=base, pushes=[push])
        mine = planar.sign * ours.torque[0, [body.joint_index(name) for name in JOINTS]]
        add("RNEA = (4)", np.append(mine - torque, ours.root_force[0]), torque)
        C, xi = planar.constraints(state)
        add("C D = 0", C @ planar.D(state), np.ones(1))
        add("C E = 1 (23)", C @ planar.E() - np.eye(26), np.ones(1))
        add("C γ = ξ", C @ planar.gamma(state) - xi, xi)

        B = planar.B_stress(state, muscles)
        activation = 0.5 * rng.random(18)
        stress = activation * muscles.specific_tension
        arms = muscles.at(position).moment_arm[0][legs]
        by_arms = planar.sign[:6] * (arms @ (stress * area))
        G, H = planar.equivalence(state, muscles)
        add("(11) = R(q) F", np.linalg.solve(G, H @ stress) - by_arms, by_arms)
        G, H = planar.equivalence_printed(state, muscles)
        add("(9) as printed", np.linalg.solve(G, H @ stress) - by_arms, by_arms)
        G, H = planar.equivalence(state, muscles)
        h = planar.direct_right_side(state, foot, ground, torque[6:])
        add("(16) corrected", np.linalg.solve(G, h) - torque[:6], torque[:6])
        literal = planar.direct_right_side(state, foot, ground, torque[6:], printed=True)
        add("(16) as printed", np.linalg.solve(G, literal) - torque[:6], torque[:6])

        # Mixed control: muscles in the legs with what they lack given by torques, so that the motion stays the same.
        control = B @ stress + planar.B_tau @ np.append(torque[:6] - by_arms, torque[6:])
        external = planar.f_g - planar.contact(state, foot).T @ ground + control
        r19, r20, r25 = (f(state, external) for f in (planar.reactions_19, planar.reactions_20, planar.reactions_25))
        add("(19) = (20)", r19 - r20, r19)
        add("(25) = (19)", r25 - r19[:12], r19)
        loads = joint_loads(
            body,
            position,
            rate,
            speedup,
            base=base,
            muscles=muscles,
            muscle_force=(stress * area)[None],
            pushes=[push],
            joints=LEG_JOINTS,
        )
        add("RNEA = (25)", -loads.force[0][:, [0, 2]].ravel() - r25, r25)
        add("torques alone", absolute[:12] - r25, r25)
    rows = [
        comparison(f"{name}, relative", None, _worst(gaps[name], sizes[name]), limit)
        for name, limit in (
            ("RNEA = (4)", 1e-12),
            ("(6) = (7)", 1e-11),
            ("(18) = (7)", 1e-11),
            ("C D = 0", 1e-12),
            ("C E = 1 (23)", 1e-12),
            ("C γ = ξ", 1e-12),
            ("(11) = R(q) F", 1e-12),
            ("(16) corrected", 1e-10),
            ("(19) = (20)", 1e-11),
            ("(25) = (19)", 1e-11),
            ("RNEA = (25)", 1e-11),
        )
    ]
    for name, text in (
        ("(9) as printed", "(9) as printed: torque wrong by, median"),
        ("(16) as printed", "(16) as printed: torque wrong by, median"),
        ("torques alone", "joint force from torques alone instead of muscles: wrong by, median"),
    ):
        ratios = [np.abs(a).max() / np.abs(b).max() for a, b in zip(gaps[name], sizes[name], strict=True)]
        rows.append(comparison(text, None, float(np.median(ratios)), None))
    return rows


def flight_and_pressure(body: Body, count: int = 40) -> list[dict[str, Any]]:
    """Ground reactions of exact flight, and the centre of pressure there and back."""
    planar, rng = Planar(body), np.random.default_rng(3)
    worst = 0.0
    for state in random_states(count, 4):
        M, d, f_g, _, B = planar.projected(state, "right_foot")
        flying = State(state.q, state.rate, np.linalg.solve(M, f_g - d + B @ rng.normal(0, 50, 13)))
        worst = max(worst, float(np.abs(planar.determinate(flying, "right_foot")[0]).max()))
        base, position, rate, speedup = planar.package(flying)
        loads = joint_loads(body, position, rate, speedup, base=base)
        worst = max(worst, float(np.abs(loads.root_force[0, [0, 2]]).max()))
    force_x, force_y = rng.normal(0, 200, 1000), rng.uniform(50, 2000, 1000)
    distance, height = rng.uniform(-0.07, 0.2, 1000), rng.uniform(0.03, 0.15, 1000)
    there = ankle_moment(force_x, force_y, distance, height)
    back = pressure_point(force_x, force_y, there, height)
    wrong = (there + force_x * height) / force_y  # the printed sign
    return [
        comparison("ground reaction in exact flight, N", 0.0, worst, 1e-9),
        comparison("centre of pressure there and back, m", None, float(np.abs(back - distance).max()), 1e-12),
        comparison(
            "centre of pressure with the printed sign: wrong by up to, m",
            None,
            float(np.abs(wrong - distance).max()),
            None,
        ),
    ]


def leg_postures(body: Body, muscles: Muscles, count: int, seed: int) -> tuple[Array, Array]:
    """Random leg postures within the joints' limits (frames × joints) and torques that muscles can give."""
    rng = np.random.default_rng(seed)
    low, high = body.model.lowerPositionLimit[7:], body.model.upperPositionLimit[7:]
    position = low + (high - low) * rng.random((count, len(body.joint_names)))
    arms = muscles.at(position).moment_arm[:, muscles.joints]
    return position, np.einsum("njm,nm->nj", arms, 0.6 * rng.random((count, len(muscles.names))) * muscles.max_force)


def sharing(body: Body, muscles: Muscles, count: int = 1500) -> list[dict[str, Any]]:
    """Moment arms against -dl/dq; certificates of the sharing; what the paper's elimination loop loses."""
    position, torque = leg_postures(body, muscles, count, 5)
    some, step, worst = position[:100], 1e-5, 0.0
    arms_here = muscles.at(some).moment_arm
    for joint in muscles.joints:
        shift = step * np.eye(len(body.joint_names))[joint]
        # Fourth-order differences: error of order step⁴, rounding 1e-16/step.
        lengths = [muscles.at(some + k * shift).length for k in (-2, -1, 1, 2)]
        slope = (lengths[0] - 8 * lengths[1] + 8 * lengths[2] - lengths[3]) / (12 * step)
        worst = max(worst, float(np.abs(arms_here[:, joint] + slope).max()))
    rows = [comparison("moment arms = -dl/dq, m", None, worst, 1e-8)]
    arms = muscles.at(position).moment_arm[:, muscles.joints]
    for p, limit in ((2, 1e-8), (3, 1e-7)):
        found = share(arms, torque, muscles.max_force, exponent=p)
        rows.append(comparison(f"sharing p = {p}, KKT residual, {count} postures", None, float(found.kkt.max()), limit))
        rows.append(
            comparison(f"sharing p = {p}, torque residual, N·m", None, np.abs(found.torque_residual).max(), limit)
        )
    # The loop knows no upper bound, so the optimum it is compared with has none either; one leg, as in the table.
    leg = [muscles.names.index(name) for name in muscles.names if name.startswith("right")]
    rows_of_leg = [muscles.joints.index(body.joint_index(name)) for name in ("right_hip", "right_knee", "right_ankle")]
    arms, torque = arms[:, rows_of_leg][:, :, leg], torque[:, rows_of_leg]
    best = share(arms, torque, muscles.max_force[leg], exponent=2, high=np.inf).objective
    for all_at_once, name in ((True, "all negative muscles at once"), (False, "the most negative muscle first")):
        loop, met = eliminate(arms, torque, muscles.max_force[leg], all_at_once=all_at_once)
        gap = (loop**2).sum(axis=1)[met] / best[met] - 1
        late = gap > 1e-6
        rows += [
            comparison(f"elimination, {name}: misses the torques, %", None, 100 * float(1 - np.mean(met)), None),
            comparison(f"elimination, {name}: suboptimal, %", None, 100 * float(late.sum() / count), None),
            comparison(
                f"elimination, {name}: J above the optimum, median of those, %",
                None,
                100 * float(np.median(gap[late])) if late.any() else 0.0,
                None,
            ),
            comparison(f"elimination, {name}: J above the optimum, largest, %", None, 100 * float(gap.max()), None),
            comparison(
                f"elimination, {name}: J below the optimum, largest (must be rounding)",
                None,
                float(max(-gap.min(), 0)),
                1e-9,
            ),
        ]
    return rows


def reduced_model(body: Body, count: int = 40) -> list[dict[str, Any]]:
    """Section 2.3: only pelvis and legs, the pelvis moved as measured, the ground's forces measured.

    Checked against the full model: the leg torques must be the same whatever trunk, head and arms do.
    """
    planar, rng = Planar(body), np.random.default_rng(6)
    worst = 0.0
    for state in random_states(count, 7):
        ground, torque = planar.determinate(state, "left_foot")
        hidden = [2 + SEGMENTS.index(name) for name in SEGMENTS[PELVIS + 1 :]]
        unknown = State(*(values.copy() for values in (state.q, state.rate, state.acceleration)))
        for values in (unknown.q, unknown.rate, unknown.acceleration):
            values[hidden] = rng.normal(size=len(hidden))  # nobody measured these
        base, position, rate, speedup = planar.package(unknown)
        ankle = postures(body, position, base).origin[body.joint_index("left_ankle") + 1].T
        push = Push("left_foot", np.array([[ground[0], 0, ground[1]]]), ankle, np.array([[0, -ground[2], 0]]))
        loads = joint_loads(body, position, rate, speedup, base=base, pushes=[push], joints=LEG_JOINTS)
        worst = max(worst, float(np.abs(planar.sign[:6] * loads.torque[0] - torque[:6]).max() / np.abs(torque).max()))
    return [comparison("reduced model (2.3): leg torques as in the full model, relative", None, worst, 1e-12)]


def best_jump(body: Body) -> list[dict[str, Any]]:
    """The highest countermovement jump of this body: Newton and Euler on its points, and three ways to its height."""
    motion = jump_motion(body)
    loads = joint_loads(body, motion.position, motion.velocity, motion.acceleration, base=motion.base)
    flying = motion.phase == 2
    standing = np.abs(loads.root_force[:, [0, 2]] - 2 * motion.ground[:, :2])[~flying]
    heights = motion.heights()
    return [
        comparison("best jump: ground force in flight, N", 0.0, np.abs(loads.root_force[flying]).max(), 1e-5),
        comparison("best jump: ground force against the optimiser's, N", None, standing.max(), 1e-5),
        comparison("best jump: height by velocity at take-off, m", None, heights["by_velocity"], None),
        comparison(
            "best jump: height by impulse minus by velocity, m",
            None,
            abs(heights["by_impulse"] - heights["by_velocity"]),
            5e-4,
        ),
        comparison(
            "best jump: height by flight time minus by velocity, m",
            None,
            abs(heights["by_flight"] - heights["by_velocity"]),
            5e-4,
        ),
        # Collocation of order 4; energies reach 400 J.
        comparison("best jump: energy gained minus work of the torques, J", 0.0, motion.energy_gap(), 0.5),
    ]


def reproduce() -> list[dict[str, Any]]:
    """Hold the paper's equations to each other and to the package; rows without tolerance only report."""
    body = load_body("jump")
    muscles = load_muscles(body)
    return [
        *equations(body, muscles),
        *flight_and_pressure(body),
        *sharing(body, muscles),
        *reduced_model(body),
        *best_jump(body),
    ]
