"""A jump whose truth is known: the highest one that a body's torques allow, found by optimal control (CasADi, IPOPT).

Both legs and both arms move alike. The motion is described from the toes: their place and the angles of the nine
different segments against the vertical (11 coordinates), so that a foot flat on the ground, a foot that turns about its
toes and flight differ only in which coordinates rest and which forces may act. Three phases: flat feet, toes, flight
until the toes touch down in the posture in which they left.

In each interval the accelerations are quadratic in time (Lobatto collocation, order 4 in velocity and place); at
every collocation point the equations of motion hold as constraints of the optimisation, so the points that are handed
out are dynamically consistent to its tolerance; between them energy and free fall hold to about 0.3 J and 0.1 mm.
Torques are bounded by constants that fall with speed, like a muscle's
force when it shortens. Nothing here is fitted to a person: it is a test motion, not a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from posture.body import STANDARD_GRAVITY, Body
from posture.errors import BodyError, SimulationStopped, check_number, find_name
from posture.inverse import States, to_pinocchio
from posture.kinematics import Base, postures

Array = NDArray[np.floating]

KINDS = ("countermovement", "squat")
# Distal to proximal, then the trunk upwards and the arms: (segment, its joint towards the pelvis or the trunk, count).
LEG = ("foot", "shank", "thigh")
TRUNK = ("pelvis", "middle_trunk", "upper_trunk", "head")
ARM = ("upper_arm", "forearm")
SEGMENTS = (*LEG, *TRUNK, *ARM)
JOINTS = ("ankle", "knee", "hip", "lumbar", "thoracic", "neck", "shoulder", "elbow")
# Largest torques of one joint, N·m, against and along its positive direction; ours, about what the 18 muscles can give.
TORQUE_LIMITS = {
    "ankle": (-150.0, 40.0),
    "knee": (-170.0, 60.0),
    "hip": (-140.0, 100.0),
    "lumbar": (-300.0, 150.0),
    "thoracic": (-200.0, 100.0),
    "neck": (-30.0, 30.0),
    "shoulder": (-50.0, 50.0),
    "elbow": (-30.0, 30.0),
}
FASTEST = 16.0  # rad/s at which a shortening joint has no torque left
FRICTION = 0.6
INTERVALS = (10, 6, 8)  # in each phase
GROWTH = (0.93, 1.0, 1.3)  # length of each interval over the one before: short where limbs start or stop fast
ANGLE_LIMITS = {  # rad; narrower than the URDF's, so that nobody sits down on their heels
    "knee": (0.0, 1.7),
    "hip": (-0.2, 1.7),
    "lumbar": (-0.1, 0.5),
    "thoracic": (-0.1, 0.2),
    "neck": (-0.3, 0.3),
    "shoulder": (-0.9, 1.5),
    "elbow": (0.0, 1.5),
}
SQUAT = {"ankle": 0.5, "knee": 1.6, "hip": 1.6, "lumbar": 0.2}  # where a squat jump starts


@dataclass(frozen=True)
class JumpMotion:
    """A jump at its collocation points; first index is the point.

    ``place``, ``place_rate``, ``place_acceleration`` (n × 3): root's x, z (m) and tilt (rad); ``position``,
    ``velocity``, ``acceleration`` (n × joints); ``torque`` (n × joints, N·m): the optimiser's; ``ground`` (n × 3):
    force x, z (N) and moment about Y (N·m) on each foot at its toes; ``phase``: 0 flat, 1 toes, 2 flight; ``toes`` (m):
    how far they are forward in the sole's frame; ``take_off``, ``landing`` (s).
    """

    body: Body
    time: Array
    place: Array
    place_rate: Array
    place_acceleration: Array
    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    ground: Array
    phase: NDArray[np.int_]
    toes: float
    take_off: float
    landing: float

    @property
    def base(self) -> Base:
        """Motion of the root."""
        return Base.planar(self.place, self.place_rate, self.place_acceleration)

    @property
    def states(self) -> States:
        """The motion in Pinocchio's terms."""
        still = np.zeros(len(self.time))

        def coordinates(place: Array, joints: Array) -> Array:
            return np.column_stack((place[:, 0], still, place[:, 1], still, place[:, 2], still, joints))

        return to_pinocchio(
            coordinates(self.place, self.position),
            coordinates(self.place_rate, self.velocity),
            coordinates(self.place_acceleration, self.acceleration),
        )

    def cut(self, chosen: NDArray[np.bool_]) -> JumpMotion:
        """Some of the points."""
        arrays = {
            item.name: getattr(self, item.name)[chosen]
            for item in fields(self)
            if isinstance(getattr(self, item.name), np.ndarray)
        }
        return replace(self, **arrays)

    @property
    def once(self) -> JumpMotion:
        """Without the last point of a phase where the next one starts at the same time."""
        return self.cut(np.append(np.diff(self.time) > 1e-9, True))

    def heights(self) -> dict[str, float]:
        """Rise of the centre of mass after take-off (m): by its velocity, by impulse, by time in the air."""
        mass = self.body.mass
        gained = 0.0
        for phase in (0, 1):
            rows = np.flatnonzero(self.phase == phase)
            gained += _integral(self.time[rows], 2 * self.ground[rows, 1] / mass - STANDARD_GRAVITY)
        leave = int(np.flatnonzero(self.phase == 2)[0])
        motion = self.states
        pin.centerOfMass(self.body.model, self.body.data, motion.configuration[leave], motion.velocity[leave])
        speed = float(self.body.data.vcom[0][2])
        return {
            "by_velocity": speed**2 / (2 * STANDARD_GRAVITY),
            "by_impulse": gained**2 / (2 * STANDARD_GRAVITY),
            "by_flight": STANDARD_GRAVITY * (self.landing - self.take_off) ** 2 / 8,
        }

    def energy_gap(self) -> float:
        """Largest difference over a phase (J) of the energy gained and the work of the torques; ground does none."""
        model, data = self.body.model, self.body.data
        states, weight = self.states, self.body.mass * STANDARD_GRAVITY
        energy = [
            pin.computeKineticEnergy(model, data, q, v) + weight * float(pin.centerOfMass(model, data, q)[2])
            for q, v in zip(states.configuration, states.velocity, strict=True)
        ]
        power = (self.torque * self.velocity).sum(axis=1)
        gaps = []
        for phase in range(3):
            rows = np.flatnonzero(self.phase == phase)
            gaps.append(energy[rows[-1]] - energy[rows[0]] - _integral(self.time[rows], power[rows]))
        return float(np.abs(gaps).max())

    @property
    def toe_points(self) -> dict[str, Array]:
        """World places (n × 3) of the toes of both feet."""
        posture = postures(self.body, self.position, self.base)
        points = {}
        for side in ("left", "right"):
            frame = self.body.model.frames[self.body.link_frame(f"{side}_sole")]
            local = frame.placement.act(np.array([self.toes, 0.0, 0.0]))
            points[side] = posture.place(int(frame.parentJoint) - 2, local).T
        return points


def jump_motion(
    body: Body, *, kind: str = "countermovement", torque_share: float = 1.0, iterations: int = 600
) -> JumpMotion:
    """Find the highest jump of a body with the joints of jump.urdf.

    ``torque_share`` scales all torque limits (1: those of this file). Takes some seconds.
    """
    find_name(kind, KINDS, what="kind of jump", where="jump")
    check_number(torque_share, what="torque_share", unit="", low=0.2, high=5, error=BodyError)
    find_name("right_foot", body.contact_names, what="contact", where=str(body.path))
    return _Problem(body, kind, torque_share).solve(iterations)


class _Problem:
    """The optimal control problem of one body."""

    def __init__(self, body: Body, kind: str, torque_share: float) -> None:
        self.body, self.kind = body, kind
        self.limits = torque_share * np.array([TORQUE_LIMITS[joint] for joint in JOINTS])
        self._read()
        self._symbols()

    def _read(self) -> None:
        """Masses, centres and arms of the nine different segments, seen from the toes."""
        model = self.body.model

        def joint(name: str) -> int:
            return self.body.joint_index(name) + 2

        owners = {
            "foot": joint("right_ankle"),
            "shank": joint("right_knee"),
            "thigh": joint("right_hip"),
            "pelvis": 1,
            "middle_trunk": joint("lumbar"),
            "upper_trunk": joint("thoracic"),
            "head": joint("neck"),
            "upper_arm": joint("right_shoulder"),
            "forearm": joint("right_elbow"),
        }

        def flat(vector: Any) -> Array:
            return np.array([vector[0], vector[2]], float)

        inertias = {name: model.inertias[index] for name, index in owners.items()}
        twice = {name: 2.0 if name in (*LEG, *ARM) else 1.0 for name in SEGMENTS}
        self.mass = np.array([twice[name] * inertias[name].mass for name in SEGMENTS])
        self.inertia = np.array([twice[name] * inertias[name].inertia[1, 1] for name in SEGMENTS])
        sole = model.frames[self.body.link_frame("right_sole")].placement
        outline = np.array(self.body.sidecar["contact"]["right_foot"]["points"])
        self.toes, self.heel = float(outline[:, 0].max()), float(outline[:, 0].min())
        toe = flat(sole.act(np.array([self.toes, 0, 0])))
        place = {name: flat(model.jointPlacements[index].translation) for name, index in owners.items() if index > 1}
        # Legs upwards: from a segment's lower joint to its upper one is minus the URDF's placement of the lower joint.
        steps = {"foot": -toe, "shank": -place["foot"], "thigh": -place["shank"], "pelvis": -place["thigh"]}
        arms = np.zeros((9, 9, 2))  # center of i = toes + Σ_k R(angle_k) arms[i, k]
        base: dict[str, list[tuple[str, Array]]] = {"foot": [("foot", steps["foot"])]}
        base["shank"] = [*base["foot"], ("shank", steps["shank"])]
        base["thigh"] = [*base["shank"], ("thigh", steps["thigh"])]
        base["pelvis"] = [*base["thigh"], ("pelvis", steps["pelvis"])]  # origin of the pelvis frame: the hip's height
        base["middle_trunk"] = [*base["pelvis"], ("pelvis", place["middle_trunk"])]
        base["upper_trunk"] = [*base["middle_trunk"], ("middle_trunk", place["upper_trunk"])]
        base["head"] = [*base["upper_trunk"], ("upper_trunk", place["head"])]
        base["upper_arm"] = [*base["upper_trunk"], ("upper_trunk", place["upper_arm"])]
        base["forearm"] = [*base["upper_arm"], ("upper_arm", place["forearm"])]
        for row, name in enumerate(SEGMENTS):
            for other, arm in [*base[name], (name, flat(inertias[name].lever))]:
                arms[row, SEGMENTS.index(other)] += arm
        self.arms = arms
        self.hip_chain = np.zeros((9, 2))
        for other, arm in base["pelvis"]:
            self.hip_chain[SEGMENTS.index(other)] += arm
        # Joint angle = sign · (child - parent); URDF axes point left or right.
        ends = {
            "ankle": ("shank", "foot"),
            "knee": ("thigh", "shank"),
            "hip": ("pelvis", "thigh"),
            "lumbar": ("pelvis", "middle_trunk"),
            "thoracic": ("middle_trunk", "upper_trunk"),
            "neck": ("upper_trunk", "head"),
            "shoulder": ("upper_trunk", "upper_arm"),
            "elbow": ("upper_arm", "forearm"),
        }
        self.to_joint = np.zeros((8, 9))  # joint angles from segment angles (rotation about +Y)
        self.count = np.ones(8)
        for row, name in enumerate(JOINTS):
            both = name not in ("lumbar", "thoracic", "neck")
            full = f"right_{name}" if both else name
            axis = float(np.array(model.joints[joint(full)].createData().S).ravel()[4])
            parent, child = ends[name]
            self.to_joint[row, SEGMENTS.index(child)] = axis
            self.to_joint[row, SEGMENTS.index(parent)] = -axis
            self.count[row] = 2.0 if both else 1.0
        ranges: list[tuple[float, float]] = []
        for name in JOINTS:
            full = name if name in ("lumbar", "thoracic", "neck") else f"right_{name}"
            column = self.body.joint_index(full)
            ranges.append(
                ANGLE_LIMITS.get(name, (model.lowerPositionLimit[7 + column], model.upperPositionLimit[7 + column]))
            )
        self.ranges = np.array(ranges)

    def _symbols(self) -> None:
        """CasADi functions: residual of the equations of motion (11 rows) and centre of mass (place, velocity)."""
        import casadi

        q, v, a = (casadi.SX.sym(name, 11) for name in "qva")
        torque, ground = casadi.SX.sym("torque", 8), casadi.SX.sym("ground", 3)
        sine, cosine = casadi.sin(q[2:]), casadi.cos(q[2:])
        residual = casadi.SX.zeros(11)
        center, momentum = casadi.SX.zeros(2), casadi.SX.zeros(2)
        for i in range(9):
            place, speed, speedup = q[:2], v[:2], a[:2]
            lines = {}
            for k in range(9):
                x, z = self.arms[i, k]
                if x == 0 and z == 0:
                    continue
                # R(angle about +Y): (x, z) → (x cos + z sin, z cos - x sin)
                out = casadi.vertcat(x * cosine[k] + z * sine[k], z * cosine[k] - x * sine[k])
                ahead = casadi.vertcat(z * cosine[k] - x * sine[k], -x * cosine[k] - z * sine[k])
                lines[k] = ahead
                place = place + out
                speed = speed + ahead * v[2 + k]
                speedup = speedup + ahead * a[2 + k] - out * v[2 + k] ** 2
            force = self.mass[i] * (speedup + casadi.vertcat(0, STANDARD_GRAVITY))
            residual[:2] += force
            for k, ahead in lines.items():
                residual[2 + k] += casadi.dot(ahead, force)
            residual[2 + i] += self.inertia[i] * a[2 + i]
            center += self.mass[i] * place
            momentum += self.mass[i] * speed
        residual[2:] -= casadi.mtimes(self.to_joint.T, self.count * torque)
        residual[:2] -= 2 * ground[:2]
        residual[2] -= 2 * ground[2]
        total = float(self.mass.sum())
        self.residual = casadi.Function("residual", [q, v, a, torque, ground], [residual])
        self.center = casadi.Function("center", [q, v], [center / total, momentum / total])

    def solve(self, iterations: int) -> JumpMotion:
        """Set the problem up, solve it and hand out its collocation points."""
        import casadi

        opti = casadi.Opti()
        weight = float(self.mass.sum()) * STANDARD_GRAVITY
        durations = [opti.variable() for _ in INTERVALS]
        for duration, (least, guess, most) in zip(
            durations, ((0.2, 0.6, 1.0), (0.03, 0.12, 0.2), (0.2, 0.5, 0.75)), strict=True
        ):
            opti.subject_to(opti.bounded(least, duration, most))
            opti.set_initial(duration, guess)
        upright = np.zeros(11)
        squat = self._squat()
        points: list[tuple[Any, ...]] = []
        effort: Any = 0
        before: tuple[Any, ...] | None = None
        for phase, (count, duration) in enumerate(zip(INTERVALS, durations, strict=True)):
            parts = _parts(phase)
            for index in range(2 * count + 1):
                end = 2 * max((index + 1) // 2, 1)  # of the point's interval
                step = duration * (parts[end] - parts[end - 2])
                q, v, a = opti.variable(11), opti.variable(11), opti.variable(11)
                torque, ground = opti.variable(8), opti.variable(3)
                part = parts[index]
                opti.set_initial(q, self._guess(phase, part, upright, squat))
                if phase == 2:
                    opti.set_initial(v[1], 2.4 * (1 - 2 * part))
                    opti.set_initial(a[1], -STANDARD_GRAVITY)
                if phase < 2:
                    opti.set_initial(ground[1], weight / 2)
                self._point(opti, phase, q, v, a, torque, ground, weight)
                effort += casadi.sumsqr(torque / self.limits[:, 1]) * step + 1e-4 * casadi.sumsqr(a) * step
                if phase == 2:
                    effort += 1e-3 * casadi.sumsqr(a) * step + 1e-2 * casadi.sumsqr(v[2:]) * step
                points.append((phase, q, v, a, torque, ground))
                if index >= 2 and index % 2 == 0:
                    (_, q0, v0, a0, t0, _), (_, q1, v1, a1, t1, _) = points[-3], points[-2]
                    opti.subject_to(v1 == v0 + step / 24 * (5 * a0 + 8 * a1 - a))
                    opti.subject_to(q1 == q0 + step / 2 * v0 + step**2 / 96 * (7 * a0 + 6 * a1 - a))
                    opti.subject_to(v == v0 + step / 6 * (a0 + 4 * a1 + a))
                    opti.subject_to(q == q0 + step * v0 + step**2 / 6 * (a0 + 2 * a1))
                    effort += 0.5 * casadi.sumsqr((t0 - 2 * t1 + torque) / self.limits[:, 1])
                    effort += 1e-3 * casadi.sumsqr(a0 - 2 * a1 + a) / 10
                    effort += 1e-3 * (casadi.sumsqr(a1 - a0) + casadi.sumsqr(a - a1)) / 10
                if index == 0 and before is not None:
                    opti.subject_to(q == before[1])
                    opti.subject_to(v == before[2])
            before = points[-1]
        first, last = points[0], points[-1]
        opti.subject_to(first[1][:2] == 0)
        opti.subject_to(first[2] == 0)
        opti.subject_to(first[3] == 0)
        if self.kind == "squat":
            opti.subject_to(first[1][2:] == squat[2:])
        else:
            opti.subject_to(opti.bounded(-0.05, first[1][3:7], 0.05))
            opti.subject_to(opti.bounded(-0.2, first[1][7:], 0.2))
        leave = next(point for point in points if point[0] == 2)
        opti.subject_to(last[1][1:] == leave[1][1:])  # lands on its toes in the posture of take-off
        place, speed = self.center(leave[1], leave[2])
        opti.subject_to(speed[1] >= 0.3)
        opti.minimize(-10 * (place[1] + speed[1] ** 2 / (2 * STANDARD_GRAVITY)) + 0.1 * effort)
        opti.solver("ipopt", {"print_time": False, "expand": True}, self._settings(iterations))
        try:
            found = opti.solve()
        except RuntimeError:
            raise SimulationStopped(
                f"the optimal {self.kind} jump of {self.body.name!r} was not found "
                f"({opti.return_status()}); try other torque limits or more iterations"
            ) from None
        return self._motion(found, points, [float(found.value(duration)) for duration in durations])

    @staticmethod
    def _settings(iterations: int) -> dict[str, Any]:
        return {
            "print_level": 0,
            "sb": "yes",
            "max_iter": iterations,
            "tol": 1e-7,
            "acceptable_tol": 1e-5,
            "acceptable_constr_viol_tol": 1e-10,
            "constr_viol_tol": 1e-10,
            "bound_relax_factor": 0.0,
            "mu_strategy": "adaptive",
        }

    def _squat(self) -> Array:
        """Segment angles of the squat in which a squat jump starts, balanced over the feet."""
        angles = np.zeros(11)
        foot_up = np.array([SQUAT.get(name, 0.0) for name in JOINTS])
        # Shank leans forward by dorsiflexion, thigh back by knee flexion, trunk forward by hip flexion.
        shank = foot_up[0]
        thigh = shank - foot_up[1]
        pelvis = thigh + foot_up[2]
        angles[2:] = [0, shank, thigh, pelvis, pelvis + foot_up[3], *([pelvis + foot_up[3]] * 2), 0, 0]
        return angles

    def _guess(self, phase: int, part: float, upright: Array, squat: Array) -> Array:
        if phase == 0:
            low = np.sin(np.pi * min(part, 1.0)) if self.kind == "countermovement" else 1 - 0.8 * part
            return upright + low * (squat - upright)
        guess = upright.copy()
        guess[2] = 0.6 * (part if phase == 1 else 1)  # heels up
        if phase == 2:
            guess[1] = 4 * 0.3 * part * (1 - part)
        return guess

    def _point(self, opti: Any, phase: int, q: Any, v: Any, a: Any, torque: Any, ground: Any, weight: float) -> None:
        """Constraints at one collocation point."""
        import casadi

        opti.subject_to(self.residual(q, v, a, torque, ground) / weight == 0)
        angles, rates = self.to_joint @ q[2:], self.to_joint @ v[2:]
        opti.subject_to(opti.bounded(self.ranges[:, 0], angles, self.ranges[:, 1]))
        low, high = self.limits[:, 0], self.limits[:, 1]
        opti.subject_to(opti.bounded(low, torque, high))
        opti.subject_to(torque / high + rates / FASTEST <= 1)
        opti.subject_to(torque / low - rates / FASTEST <= 1)
        if phase == 2:
            opti.subject_to(ground == 0)
            opti.subject_to(q[1] >= -1e-9)
            opti.subject_to(q[1] + (self.toes - self.heel) * casadi.sin(q[2]) >= -1e-9)  # heel above the ground
            return
        opti.subject_to(a[:2] == 0)  # the toes stay
        opti.subject_to(ground[1] >= 0)
        opti.subject_to(opti.bounded(-FRICTION * ground[1], ground[0], FRICTION * ground[1]))
        if phase == 0:
            opti.subject_to(a[2] == 0)  # and so does the foot's angle
            # Moment about the toes of a push between heel and toes: forward of them is none.
            opti.subject_to(opti.bounded(0, ground[2], ground[1] * (self.toes - self.heel)))
        else:
            opti.subject_to(ground[2] == 0)
            opti.subject_to(q[2] >= 0)

    def _motion(self, found: Any, points: list[tuple[Any, ...]], durations: list[float]) -> JumpMotion:
        """Hand the points to the package: root place and all thirteen joints; each phase's ends are kept."""
        starts = np.concatenate(([0.0], np.cumsum(durations)))
        times, phases = [], []
        for phase, count in enumerate(INTERVALS):
            times.append(starts[phase] + _parts(phase) * (starts[phase + 1] - starts[phase]))
            phases.append(np.full(2 * count + 1, phase))
        q, v, a, torque, ground = (
            np.array([np.asarray(found.value(point[item])).ravel() for point in points]) for item in range(1, 6)
        )
        turned = np.einsum("nkij,kj->ni", _matrices(q[:, 2:], 0), self.hip_chain)
        spun = np.einsum("nkij,kj,nk->ni", _matrices(q[:, 2:], 1), self.hip_chain, v[:, 2:])
        pushed = np.einsum("nkij,kj,nk->ni", _matrices(q[:, 2:], 1), self.hip_chain, a[:, 2:]) - np.einsum(
            "nkij,kj,nk->ni", _matrices(q[:, 2:], 0), self.hip_chain, v[:, 2:] ** 2
        )
        pelvis = 2 + SEGMENTS.index("pelvis")

        def root(values: Array, part: Array) -> Array:
            return np.column_stack((values[:, :2] + part, values[:, pelvis]))

        names = self.body.joint_names
        to_all = np.zeros((len(names), 8))
        for column, name in enumerate(JOINTS):
            for full in (name, f"left_{name}", f"right_{name}"):
                if full in names:
                    to_all[names.index(full), column] = 1
        angles = to_all @ self.to_joint
        return JumpMotion(
            self.body,
            np.concatenate(times),
            root(q, turned),
            root(v, spun),
            root(a, pushed),
            q[:, 2:] @ angles.T,
            v[:, 2:] @ angles.T,
            a[:, 2:] @ angles.T,
            torque @ to_all.T,
            ground,
            np.concatenate(phases),
            self.toes,
            float(starts[2]),
            float(starts[3]),
        )


def _integral(time: Array, values: Array) -> float:
    """Over one phase by Simpson's rule: collocation points are the ends and middles of the intervals."""
    return float(np.diff(time[::2]) @ (values[:-1:2] + 4 * values[1::2] + values[2::2])) / 6


def _parts(phase: int) -> Array:
    """Where the ends and middles of a phase's intervals lie in its duration, from 0 to 1."""
    count = INTERVALS[phase]
    ends = np.concatenate(([0.0], np.cumsum(GROWTH[phase] ** np.arange(count))))
    return np.asarray(np.interp(np.arange(2 * count + 1) / 2, np.arange(count + 1), ends / ends[-1]))


def _matrices(angles: Array, derivative: int) -> Array:
    """Rotations about +Y of (x, z), or their derivatives by the angle; n × segments × 2 × 2."""
    sine, cosine = np.sin(angles), np.cos(angles)
    if derivative:
        sine, cosine = cosine, -sine
    return np.stack((np.stack((cosine, sine), axis=-1), np.stack((-sine, cosine), axis=-1)), axis=-2)
