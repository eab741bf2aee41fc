"""Walking: inverse dynamics of 57 degrees of freedom that a forward simulation confirms.

R. Pàmies-Vilà, J. M. Font-Llagunes (2013) "Validation of the inverse dynamic analysis of human gait using a forward
dynamics approach", ASME DETC2013-13023. Equation numbers below are the paper's.

What is here, in the paper's order: the paper's coordinates, absolute angles of 18 segments (``absolute_angles``,
``to_relative``); its mixed natural coordinates with the projected equations (2)-(17) (``NaturalCoordinates``), which
share no code with Pinocchio; ``SyntheticGait``, a walking person with a known truth (motion, markers, plates) in
place of the paper's recording, which is not public; ``reproduce()``, the paper's comparisons: inverse dynamics,
forward dynamics without and with the controller.

Corrected against the print:
  after (13)  the dependent system has as many equations as unknowns (n + m), not fewer; what it lacks is the motion.
  the sharing method is cited as [13, 20]; it is that of [8, 19].
  "without any controller up to 90 %" depends on how the forces of the inverse analysis are applied again, which the
  paper does not say: on the lumbar joint and the segments an error grows by e^28 over the record, on the feet, where
  the ground pushes, by e^250. The first must have been meant (see ``growth`` in ``reproduce``).

The figures carry no numbers and the recording is not public, so the paper's printed bounds and table 1 are what is
compared; the walking person's joint curves are typical ones from memory of the literature, and inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY, Body, load_body
from posture.gait_trial import analyse_gait
from posture.inverse import coordinate_names, generalized_forces, states, total_wrench
from posture.markers import MarkerSet, read_marker_set
from posture.motion_files import Markers, PlateRecord
from posture.sharing import share, sharing_residual
from posture.systems import comparison
from posture.track import Tracker, Tracking, growth_rates, round_trip, track

Array = NDArray[np.floating]

CYCLE = 1.1  # s; ours, the paper prints no duration
RECORD = 1.16  # cycles: right heel strike to the left toe-off of the next cycle
STEP = 0.001  # s, as printed
TRACKER = Tracker(stiffness=400.0, derivative_time=2.5e-5)  # as printed
OPEN_LOOP = 90.0  # % of the cycle that the paper simulates without controller
CONTACTS = {"right": [(0.0, 0.66), (1.0, 1.66)], "left": [(-0.5, 0.16), (0.5, 1.16)]}  # cycles; ends as printed
PAPER_POSITION, PAPER_ANGLE, PAPER_FORCE, PAPER_TORQUE = 8e-7, 5e-6, 5e-3, 4e-3  # m, rad, N, N·m; bounds as printed
LEG = ("thigh", "shank", "hindfoot", "forefoot")

# Typical curves of level walking, degrees at 0, 5, … 95 % of the cycle from heel strike; X forward, Y left, Z up.
HIP = (-30, -29, -26, -22, -16, -11, -6, -1, 4, 8, 10, 8, 3, -6, -16, -24, -30, -34, -34, -32)
KNEE = (5, 10, 16, 18, 16, 13, 10, 7, 6, 8, 13, 23, 38, 52, 60, 59, 50, 34, 16, 5)
ANKLE = (0, 4, 4, 1, -2, -4, -6, -8, -10, -10, -6, 4, 15, 14, 8, 3, 0, -2, -2, -1)
TOES = (0, 0, 0, 0, 0, 0, 0, -1, -5, -14, -25, -28, -18, -6, 0, 2, 2, 1, 0, 0)
SHOULDER = (20, 19, 16, 11, 5, -1, -7, -12, -15, -17, -17, -15, -11, -6, 0, 6, 11, 15, 18, 20)


@dataclass(frozen=True)
class Fourier:
    """A periodic motion plus steady walking: every coordinate a Fourier series, exact to any derivative.

    ``cosine``, ``sine``: harmonics × coordinates; ``speed``: of the root along X, m/s.
    """

    period: float
    speed: float
    cosine: Array
    sine: Array

    def sample(self, time: Array) -> tuple[Array, Array, Array]:
        """Coordinates and their first two derivatives at times (s)."""
        order = np.arange(len(self.cosine)) * 2 * np.pi / self.period
        phase = np.multiply.outer(np.asarray(time, float), order)
        c, s = np.cos(phase), np.sin(phase)
        values = c @ self.cosine + s @ self.sine
        rates = (-s * order) @ self.cosine + (c * order) @ self.sine
        accelerations = -((c * order**2) @ self.cosine + (s * order**2) @ self.sine)
        values[:, 0] += self.speed * np.asarray(time)
        rates[:, 0] += self.speed
        return values, rates, accelerations


def walking(body: Body, *, cycle: float = CYCLE, harmonics: int = 7) -> Fourier:
    """A person who walks: all 57 coordinates move; speed and height of the pelvis follow from the standing foot."""
    names = coordinate_names(body)
    phase = np.arange(200) / 200
    degree = np.pi / 180
    curves = np.zeros((len(phase), len(names)))

    def put(name: str, values: Array) -> None:
        curves[:, names.index(name)] = values * degree

    def wave(order: int, amplitude: float, shift: float) -> Array:
        return np.asarray(amplitude * np.cos(2 * np.pi * order * (phase - shift)))

    def typical(curve: tuple[int, ...], delay: float) -> Array:
        spline = CubicSpline(np.linspace(0, 1, 21), [*curve, curve[0]], bc_type="periodic")
        return np.asarray(spline((phase - delay) % 1))

    put("root_yaw", wave(1, -4, 0.0))
    put("root_pitch", 3 + wave(2, 1.0, 0.1))
    put("root_roll", wave(1, 3, 0.2))
    put("lumbar_y", wave(2, 1.2, 0.3))
    put("lumbar_x", wave(1, -3, 0.22))
    put("lumbar_z", wave(1, 7, 0.02))
    for joint, size in (("neck", 1.0), ("head", 0.8)):
        put(f"{joint}_y", wave(2, size, 0.15))
        put(f"{joint}_x", wave(1, 0.7 * size, 0.4))
        put(f"{joint}_z", wave(1, -2 * size, 0.05))
    for side, sign, delay in (("right", -1, 0.0), ("left", 1, 0.5)):
        for joint, curve in (("hip", HIP), ("knee", KNEE), ("ankle", ANKLE), ("toes", TOES)):
            put(f"{side}_{joint}_y", typical(curve, delay))
        put(f"{side}_shoulder_y", typical(SHOULDER, delay))
        put(f"{side}_elbow_y", -25 + wave(1, 8, 0.05 + delay))
        put(f"{side}_wrist_y", wave(1, 4, 0.3 + delay))
        small = (("hip", 4.0, 5.0), ("knee", 1.5, 4.0), ("ankle", 3.0, 3.0), ("toes", 1.0, 1.0))
        for joint, sideways, twist in (*small, ("shoulder", 3.0, 5.0), ("elbow", 1.0, 5.0), ("wrist", 2.0, 2.0)):
            put(f"{side}_{joint}_x", sign * wave(1, sideways, 0.25 + delay))
            put(f"{side}_{joint}_z", sign * wave(1, twist, 0.45 + delay))
    series = np.fft.rfft(curves, axis=0) / len(phase)
    cosine, sine = 2 * series.real[: harmonics + 1], -2 * series.imag[: harmonics + 1]
    cosine[0] /= 2
    first = Fourier(cycle, 0.0, cosine, sine)
    # The lowest point of the soles is the ground; how fast it goes backward is how fast the person walks.
    heights, places = _soles(body, first, phase * cycle)
    right = (phase > 0.1) & (phase < 0.45)
    speed = -np.polyfit(phase[right] * cycle, places[right, 1], 1)[0]
    rise = np.fft.rfft(-heights.min(axis=1)) / len(phase)
    column = names.index("root_z")
    cosine[0, column] = rise[0].real
    for order in (2, 4):  # both steps alike
        cosine[order, column], sine[order, column] = 2 * rise[order].real, -2 * rise[order].imag
    return _over_its_feet(body, Fourier(cycle, float(speed), cosine, sine))


def _over_its_feet(body: Body, motion: Fourier) -> Fourier:
    """The motion with as much sway of the pelvis as keeps the ground's force under the standing foot.

    Typical joint angles alone put the centre of pressure anywhere. Moving the pelvis by x(t) moves it by -(h/g) x'' on
    the feet, for a centre of mass at height h: one factor for each harmonic. Three harmonics are enough; a person's
    trunk has next to nothing above them, and no camera would see it.
    """
    count, height = 200, 1.0  # m; a rough height is enough, as the steps are repeated
    share = np.arange(count) / count
    columns = [coordinate_names(body).index(name) for name in ("root_x", "root_y")]
    order = np.arange(1, 4)
    lever = (2 * np.pi * order / motion.period) ** 2 * height / STANDARD_GRAVITY
    for _ in range(4):
        total = SyntheticGait(body, motion).total(share * motion.period)
        ankles = {"left": np.empty((count, 2)), "right": np.empty((count, 2))}
        for row, q in enumerate(states(motion, share * motion.period).configuration):
            pin.framesForwardKinematics(body.model, body.data, q)
            for side, places in ankles.items():
                places[row] = body.data.oMf[body.link_frame(f"{side}_hindfoot")].translation[:2]
        wanted = np.zeros((count, 2))
        for side, landing in (("right", 0.0), ("left", 0.5), ("left", -0.5)):  # cycles; 0.66 of one on the ground
            since = share - landing
            load = 0.5 * (1 - np.cos(np.pi * np.interp(since, (0, 0.16, 0.5, 0.66), (0, 1, 1, 0))))
            forward = np.interp(since, (0, 0.16, 0.5, 0.66), (-0.03, 0.02, 0.12, 0.15))  # m from the ankle, heel to toe
            wanted += load[:, None] * (ankles[side] + np.outer(forward, [1, 0]))
        apart = np.fft.rfft(wanted - np.column_stack((-total[:, 4], total[:, 3])) / total[:, 2:3], axis=0) / count
        change = 2 * apart[order] / lever[:, None]
        cosine, sine = motion.cosine.copy(), motion.sine.copy()
        cosine[order[:, None], columns] += change.real
        sine[order[:, None], columns] -= change.imag
        motion = replace(motion, cosine=cosine, sine=sine)
    return motion


def _soles(body: Body, motion: Fourier, time: Array) -> tuple[Array, Array]:
    """Height of the lowest point and forward place of the middle of each foot (n × left, right)."""
    model, data = body.model, body.data
    heights, places = np.full((len(time), 2), np.inf), np.empty((len(time), 2))
    for row, q in enumerate(states(motion, time).configuration):
        pin.framesForwardKinematics(model, data, q)
        for column, side in enumerate(("left", "right")):
            for part in ("hindfoot", "forefoot"):
                frame = data.oMf[body.link_frame(f"{side}_{part}")]
                points = [frame.act(np.array(p)) for p in body.sidecar["contact"][f"{side}_{part}"]["points"]]
                heights[row, column] = min(heights[row, column], *(point[2] for point in points))
                if part == "hindfoot":
                    places[row, column] = np.mean([point[0] for point in points])
    return heights, places


# ---------------------------------------------------------------- the paper's coordinates


def turning_axes(angles: Array, order: str) -> Array:
    """Axes (3 × 3, columns) of three successive turns about moved axes, such as "XYZ", in the first frame."""
    axes = np.eye(3)["XYZ".index(order[0])], np.eye(3)["XYZ".index(order[1])], np.eye(3)["XYZ".index(order[2])]
    first = Rotation.from_rotvec(angles[0] * axes[0])
    second = first * Rotation.from_rotvec(angles[1] * axes[1])
    return np.column_stack((axes[0], first.apply(axes[1]), second.apply(axes[2])))


def axes_drift(axes: Array, rates: Array) -> Array:
    """What the moving axes add to the angular acceleration: (d axes / dt) · rates."""
    a, b, c = axes.T
    return np.asarray(
        rates[0] * rates[1] * np.cross(a, b)
        + rates[0] * rates[2] * np.cross(a, c)
        + rates[1] * rates[2] * np.cross(b, c)
    )


def absolute_angles(body: Body, configuration: Array) -> Array:
    """The paper's independent coordinates z (57): lumbar joint (m), then X-Y-Z angles (rad) of every segment."""
    data = body.data
    pin.forwardKinematics(body.model, data, configuration)
    turns = Rotation.from_matrix([data.oMi[joint].rotation for joint in body.segments.values()])
    return np.concatenate((configuration[:3], turns.as_euler("XYZ").ravel()))


def to_relative(body: Body, z: Array, rates: Array, accelerations: Array) -> tuple[Array, Array, Array]:
    """Pinocchio's configuration, velocity and acceleration of one instant from z and its derivatives.

    w_i = E_i θ_i'; a joint sees the difference to its parent, split along its three axes Y, X, Z.
    """
    model, joints = body.model, list(body.segments.values())
    q, v, a = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    spin, swing, turn = {}, {}, {}
    for k, joint in enumerate(joints):
        block = slice(3 + 3 * k, 6 + 3 * k)
        axes = turning_axes(z[block], "XYZ")
        turn[joint] = Rotation.from_euler("XYZ", z[block])
        spin[joint] = axes @ rates[block]
        swing[joint] = axes @ accelerations[block] + axes_drift(axes, rates[block])
    root = turn[1]
    q[:3], q[3:7] = z[:3], root.as_quat()
    v[:3], v[3:6] = root.apply(rates[:3], inverse=True), root.apply(spin[1], inverse=True)
    a[:3] = root.apply(accelerations[:3] - np.cross(spin[1], rates[:3]), inverse=True)
    a[3:6] = root.apply(swing[1], inverse=True)
    for joint in joints[1:]:
        below = int(model.parents[joint])
        while below not in turn:
            below = int(model.parents[below])
        at = slice(model.joints[joint].idx_v - 2, model.joints[joint].idx_v + 1)
        angles = (turn[below].inv() * turn[joint]).as_euler("YXZ")
        axes = turning_axes(angles, "YXZ")
        relative = turn[below].apply(spin[joint] - spin[below], inverse=True)
        gained = swing[joint] - swing[below] - np.cross(spin[below], spin[joint] - spin[below])
        v[at] = np.linalg.solve(axes, relative)
        a[at] = np.linalg.solve(axes, turn[below].apply(gained, inverse=True) - axes_drift(axes, v[at]))
        q[at.start + 1 : at.stop + 1] = angles
    return q, v, a


class NaturalCoordinates:
    """The paper's 228 mixed coordinates: 22 points, two unit vectors and three angles for each of 18 segments.

    Constraints (171): every point but the first is carried by a segment, every vector is turned by its angles. The
    mass matrix of points and vectors is constant. Nothing here calls Pinocchio; it only lends masses and places.
    """

    def __init__(self, body: Body) -> None:
        model, joints = body.model, list(body.segments.values())
        order = {joint: k for k, joint in enumerate(joints)}
        self.count = len(joints)
        self.masses = np.array([model.inertias[joint].mass for joint in joints])
        # points: 0 the root's; one per further joint; then the centres of mass of segments that carry no other.
        self.proximal, self.carried = [0], []  # point of each segment; (carrier segment, offset) of each further point
        for joint in joints[1:]:
            below, first = int(model.parents[joint]), joint
            while below not in order:
                first, below = below, int(model.parents[below])
            self.carried.append((order[below], model.jointPlacements[first].translation.copy()))
            self.proximal.append(self._shared_point(len(self.carried)))
        distal: dict[int, int] = {}
        for point, (segment, _) in enumerate(self.carried, start=1):
            distal.setdefault(segment, point)
        for k, joint in enumerate(joints):
            if k not in distal:
                self.carried.append((k, model.inertias[joint].lever.copy()))
                distal[k] = len(self.carried)
        self.points = 1 + len(self.carried)
        self.vectors = []  # two local unit vectors of each segment, across the line to its distal point
        self.size = 3 * self.points + 9 * self.count
        self.mass = np.zeros((self.size, self.size))
        for k, joint in enumerate(joints):
            inertia, offset = model.inertias[joint], self._offset(distal[k])
            across = [axis for axis in range(3) if axis != int(np.argmax(np.abs(offset)))]
            self.vectors.append(np.eye(3)[across])
            basis = np.column_stack((offset, *self.vectors[k]))
            # r = P1 + X (a, b, c): weights of (P1, P2, u, v) for (1, r)
            X = np.linalg.inv(basis)
            N = np.vstack(([1, 0, 0, 0], np.zeros((3, 4))))
            N[0, 1:] -= X[0]
            N[1:, 1:] = X
            c, m = inertia.lever, inertia.mass
            J = 0.5 * np.trace(inertia.inertia) * np.eye(3) - inertia.inertia + m * np.outer(c, c)
            four = N @ np.block([[np.array([[m]]), m * c[None]], [m * c[:, None], J]]) @ N.T
            at = [3 * self.proximal[k], 3 * distal[k], *(3 * self.points + 6 * k + np.array([0, 3]))]
            for i, row in enumerate(at):
                for j, column in enumerate(at):
                    self.mass[row : row + 3, column : column + 3] += four[i, j] * np.eye(3)

    def _shared_point(self, point: int) -> int:
        """The lumbar joint is the root point itself, not a second one in the same place."""
        if np.any(self.carried[point - 1][1]):
            return point
        self.carried.pop()
        return 0

    def _offset(self, point: int) -> Array:
        return np.asarray(self.carried[point - 1][1])

    def projection(self, z: Array, rates: Array) -> tuple[Array, Array]:
        """R of (10) (228 × 57) and S c of (13), from the constraints' Jacobian and (11)."""
        m, g = self.size - 3 - 3 * self.count, 3 + 3 * self.count
        angles_at = self.size - 3 * self.count
        jacobian, c = np.zeros((m, self.size)), np.zeros(m)
        axes, turns, spins, drifts = [], [], [], []
        for k in range(self.count):
            block = slice(3 + 3 * k, 6 + 3 * k)
            axes.append(turning_axes(z[block], "XYZ"))
            turns.append(Rotation.from_euler("XYZ", z[block]))
            spins.append(axes[k] @ rates[block])
            drifts.append(axes_drift(axes[k], rates[block]))

        def turned(row: int, k: int, arm: Array) -> None:
            """Constraint: … - R_k(θ) arm = 0."""
            world = turns[k].apply(arm)
            jacobian[row : row + 3, angles_at + 3 * k : angles_at + 3 * k + 3] = -np.cross(axes[k].T, world).T
            c[row : row + 3] = np.cross(drifts[k], world) + np.cross(spins[k], np.cross(spins[k], world))

        row = 0
        for point, (k, offset) in enumerate(self.carried, start=1):
            jacobian[row : row + 3, 3 * point : 3 * point + 3] = np.eye(3)
            jacobian[row : row + 3, 3 * self.proximal[k] : 3 * self.proximal[k] + 3] -= np.eye(3)
            turned(row, k, offset)
            row += 3
        for k in range(self.count):
            for i, vector in enumerate(self.vectors[k]):
                column = 3 * self.points + 6 * k + 3 * i
                jacobian[row : row + 3, column : column + 3] = np.eye(3)
                turned(row, k, vector)
                row += 3
        free = np.r_[0:3, angles_at : self.size]
        bound = np.arange(3, angles_at)
        R, Sc = np.zeros((self.size, g)), np.zeros(self.size)
        R[free] = np.eye(g)
        R[bound] = -np.linalg.solve(jacobian[:, bound], jacobian[:, free])
        Sc[bound] = np.linalg.solve(jacobian[:, bound], c)
        return R, Sc

    def equations(self, z: Array, rates: Array) -> tuple[Array, Array]:
        """M~ and the bias of (16), M~ z'' = Q~ - bias: projected mass matrix, gravity and S c."""
        R, Sc = self.projection(z, rates)
        # A uniform gravity field accelerates every point alike and no vector.
        pull = np.zeros(self.size)
        pull[2 : 3 * self.points : 3] = -STANDARD_GRAVITY
        weight = self.mass @ pull
        return R.T @ self.mass @ R, R.T @ (self.mass @ Sc - weight)


def natural_against_pinocchio(body: Body, motion: Fourier, times: Array) -> dict[str, float]:
    """Largest relative differences of mass matrix, inverse and forward dynamics, and of the map itself.

    The natural equations get Pinocchio's states through z; forces go back by power: Q~ = Aᵀ τ with v = A z'.
    """
    natural = NaturalCoordinates(body)
    model, data = body.model_with_gravity, body.data
    worst = dict.fromkeys(("map", "mass matrix", "inverse", "forward"), 0.0)
    found = states(motion, times)
    step = 2e-4
    for row, time in enumerate(times):
        near = states(motion, time + step * np.arange(-2, 3))
        z = np.unwrap([absolute_angles(body, q) for q in near.configuration], axis=0)
        rates = (z[0] - 8 * z[1] + 8 * z[3] - z[4]) / (12 * step)
        accelerations = (-z[0] + 16 * z[1] - 30 * z[2] + 16 * z[3] - z[4]) / (12 * step**2)
        q, v, a = to_relative(body, z[2], rates, accelerations)
        true = (found.configuration[row], found.velocity[row], found.acceleration[row])
        sign = np.sign(q[3:7] @ true[0][3:7])
        gap = max(np.abs(q[7:] - true[0][7:]).max(), np.abs(sign * q[3:7] - true[0][3:7]).max())
        scale = np.abs(true[2]).max()
        worst["map"] = max(worst["map"], gap, np.abs(v - true[1]).max(), np.abs(a - true[2]).max() / scale)
        # A by columns, and the part of the acceleration that the moving axes make
        units = np.eye(57)
        A = np.column_stack([to_relative(body, z[2], unit, 0 * unit)[1] for unit in units])
        velocity = A @ rates
        drift = to_relative(body, z[2], rates, np.zeros(57))[2]
        mass, bias = natural.equations(z[2], rates)
        pin_mass = pin.crba(model, data, q)
        pin_mass = np.triu(pin_mass) + np.triu(pin_mass, 1).T
        ours = A.T @ pin_mass @ A
        worst["mass matrix"] = max(worst["mass matrix"], np.abs(mass - ours).max() / np.abs(ours).max())
        needed = A.T @ pin.rnea(model, data, q, velocity, A @ accelerations + drift)
        inverse = mass @ accelerations + bias
        worst["inverse"] = max(worst["inverse"], np.abs(inverse - needed).max() / np.abs(needed).max())
        back = np.linalg.solve(mass, needed - bias)
        worst["forward"] = max(worst["forward"], np.abs(back - accelerations).max() / np.abs(accelerations).max())
    return worst


# ---------------------------------------------------------------- a walking person whose truth is known


@dataclass(frozen=True)
class SyntheticGait:
    """A person who walks, with the ground's true wrench on each foot, and what imperfect plates make of it.

    In double support the rear foot unloads along its own curve, pushes forward and moves its centre of pressure;
    none of this is a window of ``posture.sharing``, so a sharing method can be wrong here. The front foot has the rest.
    """

    body: Body
    motion: Fourier

    @property
    def contacts(self) -> dict[str, list[tuple[float, float]]]:
        """Landing and leaving times (s) of each foot."""
        return {
            side: [(a * self.motion.period, b * self.motion.period) for a, b in spans]
            for side, spans in CONTACTS.items()
        }

    def total(self, time: Array) -> Array:
        """Wrench of the ground on the person, n × 6 about the world's origin."""
        return total_wrench(self.body, states(self.motion, time))

    def wrenches(self, time: Array) -> dict[str, Array]:
        """True wrench of the ground on each foot, by side."""
        time = np.asarray(time, float)
        total = self.total(time)
        found: dict[str, Array] = {side: np.zeros((len(time), 6)) for side in CONTACTS}
        contacts = self.contacts
        for front, rear in (("right", "left"), ("left", "right")):
            for landing, _ in contacts[front]:
                leaving = next((end for start, end in contacts[rear] if start < landing < end), None)
                if leaving is None:
                    continue
                both = (time >= landing) & (time <= leaving)
                found[rear][both] = self._unloading(time[both], total[both], landing, leaving)
                found[front][both] = total[both] - found[rear][both]
        for side, other in (("right", "left"), ("left", "right")):
            alone = _inside(time, contacts[side]) & ~_inside(time, contacts[other])
            found[side][alone] = total[alone]
        return found

    def _unloading(self, time: Array, total: Array, landing: float, leaving: float) -> Array:
        phase = (time - landing) / (leaving - landing)
        left = 0.5 * (1 + np.cos(np.pi * phase)) - 0.1 * np.sin(np.pi * phase) ** 2
        force = left[:, None] * total[:, :3]
        force[:, 0] += 0.08 * total[:, 2] * np.sin(np.pi * phase) ** 2
        start = self.total(np.array([landing]))[0]
        place = np.array([-start[4], start[3], 0.0]) / start[2] + np.outer(phase, [0.04, 0.0, 0.0])
        free = total[:, 5] - (-total[:, 4] * total[:, 1] - total[:, 3] * total[:, 0]) / total[:, 2]
        moment = np.cross(place, force)
        moment[:, 2] += left * free
        return np.hstack((force, moment))

    def markers(self, time: Array, marker_set: MarkerSet, *, noise: float = 0.0, seed: int = 0) -> Markers:
        """The body's markers at times (s), with white noise (m, each axis)."""
        body, data = self.body, self.body.data
        frames = [body.link_frame(link) for link in marker_set.links]
        places = np.empty((len(time), len(frames), 3))
        for row, q in enumerate(states(self.motion, time).configuration):
            pin.framesForwardKinematics(body.model, data, q)
            for column, frame in enumerate(frames):
                places[row, column] = data.oMf[frame].act(marker_set.places[column])
        places += noise * np.random.default_rng(seed).standard_normal(places.shape)
        return Markers(np.asarray(time, float), list(marker_set.names), places, "synthetic gait")

    def plate_record(self, time: Array, *, seed: int) -> PlateRecord:
        """``plates`` as a recording, a plate for each foot."""
        read = self.plates(time, seed=seed)
        wrench = np.stack(list(read.values()), axis=1)
        return PlateRecord(np.asarray(time, float), list(read), wrench[..., :3], wrench[..., 3:], "synthetic plates")

    def feet(self, time: Array) -> dict[str, Array]:
        """True wrenches by the link they act on."""
        return {f"{side}_hindfoot": values for side, values in self.wrenches(time).items()}

    def plates(self, time: Array, *, seed: int) -> dict[str, Array]:
        """What plates with gain error, offset, a misplaced origin and noise read under each foot (n × 6)."""
        random = np.random.default_rng(seed)
        found = {}
        for side, truth in self.wrenches(time).items():
            force = truth[:, :3] * (1 + 0.015 * random.standard_normal(3)) + 3.0 * random.standard_normal(3)
            force += 2.0 * _rumble(time, random)
            moment = truth[:, 3:] * (force[:, 2:] / np.where(truth[:, 2:3] > 1, truth[:, 2:3], np.inf))
            moment += np.cross(0.004 * random.standard_normal(3), force) + 0.5 * _rumble(time, random)
            found[side] = np.where(_inside(time, self.contacts[side])[:, None], np.hstack((force, moment)), 0.0)
        return found


def _rumble(time: Array, random: np.random.Generator) -> Array:
    """Noise of unit size in three channels with frequencies up to 60 Hz, a function of time like a filtered plate's."""
    frequency, phase = random.uniform(1, 60, (30, 3)), random.uniform(0, 2 * np.pi, (30, 3))
    waves = np.cos(2 * np.pi * frequency * np.asarray(time)[:, None, None] + phase)
    return np.asarray(waves.sum(axis=1) * np.sqrt(2 / 30))


def _inside(time: Array, spans: list[tuple[float, float]]) -> NDArray[np.bool_]:
    return np.asarray(np.logical_or.reduce([(time >= start) & (time <= end) for start, end in spans]))


# ---------------------------------------------------------------- the paper's comparisons


def record(cycle: float = CYCLE, *, step: float = STEP) -> Array:
    """Times (s) of the paper's record: 116 % of a cycle."""
    return np.arange(round(RECORD * cycle / step) + 1) * step


def formulation(gait: SyntheticGait) -> list[dict[str, Any]]:
    """Coordinates and equations (1)-(17) against Pinocchio."""
    worst = natural_against_pinocchio(gait.body, gait.motion, np.array([0.05, 0.47, 0.98]) * gait.motion.period)
    return [
        comparison(
            "map from absolute angles and their rates to joints, against finite differences", None, worst["map"], 1e-7
        ),
        *(
            comparison(f"natural coordinates against Pinocchio, {name}, relative", None, worst[name], 1e-12)
            for name in ("mass matrix", "inverse", "forward")
        ),
        comparison(
            "inverse to forward dynamics and back, acceleration, rad/s²",
            None,
            round_trip(gait.body, states(gait.motion, record(step=0.01))),
            1e-10,
        ),
    ]


def sharing(gait: SyntheticGait, *, seed: int = 1) -> list[dict[str, Any]]:
    """Corrected force plates: exact sum, nothing in the air, no jump, and nearer to the truth than the plates."""
    events = np.array([edge for spans in gait.contacts.values() for span in spans for edge in span])
    events = events[(events > 0) & (events < RECORD * gait.motion.period - 1e-3)]
    time = np.unique(np.concatenate((record(gait.motion.period), events - 1e-7, events + 1e-7)))
    total, truth, plates = gait.total(time), gait.wrenches(time), gait.plates(time, seed=seed)
    both = np.logical_and.reduce([_inside(time, spans) for spans in gait.contacts.values()])
    one = {side: values.copy() for side, values in plates.items()}
    one["left"][:] = np.nan
    ways = {
        "plain plates": (plates, "plain"),
        "corrected, two plates": (plates, "corrected"),
        "corrected, right plate only": (one, "corrected"),
        "no plates, smooth transition": (None, "smooth"),
    }
    rows, plain = [], (np.inf, np.inf)
    for name, (measured, method) in ways.items():
        found = share(time, total, gait.contacts, measured, method=method)
        gap, air = sharing_residual(total, found, time, gait.contacts)
        error = np.concatenate([found[side][both] - truth[side][both] for side in truth])
        if method != "plain":
            jump = max(
                float(np.abs(np.diff(values[np.searchsorted(time, [edge - 1e-7, edge + 1e-7])], axis=0)).max())
                for values in found.values()
                for edge in events
            )
            rows += [
                comparison(f"{name}: sum of feet minus total, N or N·m", None, gap, 1e-9),
                comparison(f"{name}: load on a foot in the air, N or N·m", None, air, 0.0),
                # Steepest honest slope here is about 2e4 N/s: 0.005 N within the 0.2 µs across an event.
                comparison(f"{name}: jump at landing or leaving, N or N·m", None, jump, 0.05),
            ]
        found_error = np.sqrt(np.mean(error[:, :3] ** 2)), np.sqrt(np.mean(error[:, 3:] ** 2))
        plain = found_error if method == "plain" else plain
        for unit, ours, bound in zip(
            ("force error in double support, rms N", "moment error, rms N·m"), found_error, plain, strict=True
        ):
            rows.append(comparison(f"{name}: {unit}", None, ours, bound if method == "corrected" else None))
    return rows


def pipeline(gait: SyntheticGait, *, noise: float = 0.0005, seed: int = 1) -> list[dict[str, Any]]:
    """Markers (100 Hz, ``noise`` in m) and imperfect plates through all of ``posture.gait_trial``, against the truth.

    Correction makes plates agree with the motion: better joint moments, and no residual, at the price of the motion's
    own errors in the wrench of each foot. The filters' first and last 50 ms are left out.
    """
    body, end = gait.body, RECORD * gait.motion.period
    marker_set = read_marker_set(body)
    markers = gait.markers(np.arange(0, end, 0.01), marker_set, noise=noise, seed=seed)
    plates = gait.plate_record(np.arange(0, end, 0.001), seed=seed)
    rows, inner = [], slice(50, -50)
    for method, name in (("plain", "plain plates"), ("corrected", "corrected, two plates")):
        trial = analyse_gait(body, marker_set, markers, plates, sharing=method, confirm=False)
        time = trial.dataset.time.values[inner]
        truth, feet = states(gait.motion, time), gait.wrenches(time)
        both = np.logical_and.reduce([_inside(time, spans) for spans in gait.contacts.values()])
        force = trial.dataset["ground_force"].values[inner]
        sides = [str(side) for side in trial.dataset["contact"].values]
        error = np.stack([force[both, k] - feet[side][both, :3] for k, side in enumerate(sides)])
        label = f"whole pipeline, {name}"
        rows.append(
            comparison(f"{label}: force error in double support, rms N", None, np.sqrt(np.mean(error**2)), None)
        )
        torque = trial.dataset["joint_torque"].values[inner] - generalized_forces(body, truth, gait.feet(time))[:, 6:]
        for joint in ("hip", "knee", "ankle"):
            columns = [body.joint_index(f"{side}_{joint}_y") for side in CONTACTS]
            found = np.sqrt(np.mean(torque[:, columns] ** 2)) / body.mass
            # what is asked of recorded people against OpenSim
            bound = 0.1 if method == "corrected" else None
            rows.append(comparison(f"{label}: {joint} moment error, rms N·m/kg", None, found, bound))
    return rows


def controller_figures(run: Tracking) -> dict[str, float]:
    """What the paper prints of a run with controller: lumbar error, β errors of the legs, force, torques about Y."""
    legs = [k for k, name in enumerate(run.segments) if name.split("_", 1)[-1] in LEG]
    return {
        "position": float(np.abs(run.position_error).max()),
        "angle": float(np.abs(run.attitude_error[:, legs, 1]).max()),
        "any angle": float(np.abs(run.attitude_error).max()),
        "force": float(np.abs(run.force).max()),
        "torque": float(np.abs(run.torque[:, legs, 1]).max()),
        "residual": float(run.residual.max()),
    }


def controlled(gait: SyntheticGait) -> list[dict[str, Any]]:
    """The run with the paper's controller: 116 % of the cycle at 1 ms, its order, and what lagging does."""
    figures = {}
    for step in (0.002, STEP, STEP / 2):
        run = track(gait.body, gait.motion, record(gait.motion.period, step=step), tracker=TRACKER)
        if run.stopped is not None:
            return [
                comparison(
                    f"controlled run at {step:g} s ends early, % of cycle", 116.0, 100 * run.stopped / CYCLE, 0.0
                )
            ]
        figures[step] = controller_figures(run)
    rows = []
    bounds = {
        "position": (PAPER_POSITION, "lumbar joint, m"),
        "angle": (PAPER_ANGLE, "leg angles β, rad"),
        "force": (PAPER_FORCE, "controller force, N"),
        "torque": (PAPER_TORQUE, "controller torque about Y on the legs, N·m"),
    }
    for step in (STEP, STEP / 2):
        for key, (bound, name) in bounds.items():
            # The torque's bound takes half the paper's step here: our walk has more of the fast harmonics.
            tolerance = None if key == "torque" and step == STEP else bound
            rows.append(comparison(f"PD, trapezoid {1000 * step:g} ms: {name}", bound, figures[step][key], tolerance))
        rows.append(
            comparison(f"PD, trapezoid {1000 * step:g} ms: any segment, rad", None, figures[step]["any angle"], None)
        )
    order = np.log2(figures[0.002]["angle"] / figures[STEP / 2]["angle"]) / 2
    rows.append(comparison("PD: order of the trapezoid", 2.0, order, 0.1, distance=True))
    rows.append(
        comparison(
            "PD: largest violation of a step's equation", None, max(f["residual"] for f in figures.values()), 1e-12
        )
    )
    lagged = track(gait.body, gait.motion, record(gait.motion.period), tracker=Tracker(lagged=True))
    lost = 100 * (lagged.stopped if lagged.stopped is not None else np.inf) / gait.motion.period
    rows.append(comparison("PD lagged by one step: lost at % of cycle (must fail)", None, lost, 116.0))
    ground = track(gait.body, gait.motion, record(gait.motion.period), way="ground", feet=gait.feet, tracker=TRACKER)
    found = controller_figures(ground)
    rows.append(comparison("PD, loads at the feet: leg angles β, rad", None, found["angle"], None))
    return rows


def open_loop(gait: SyntheticGait) -> list[dict[str, Any]]:
    """No controller: how far the loads alone carry, by the way they are applied and by the integrator."""
    rows = []
    time, degree = record(gait.motion.period), np.pi / 180
    for way, name in (
        ("segment", "lumbar force and segment torques"),
        ("joint", "joint torques"),
        ("ground", "at the feet"),
    ):
        feet = gait.feet if way == "ground" else None
        growth = growth_rates(gait.body, gait.motion, time[::25], way=way, feet=feet)
        rows.append(
            comparison(
                f"open loop, {name}: growth of errors over the record, exponent", None, growth.mean() * time[-1], None
            )
        )
        run = track(gait.body, gait.motion, time, way=way, feet=feet)
        percent = 100 * run.time_within(degree) / gait.motion.period
        paper = OPEN_LOOP if way == "segment" else None
        rows.append(comparison(f"open loop, {name}, trapezoid 1 ms: within 1° up to % of cycle", paper, percent, None))
        if way == "segment":
            legs = 100 * run.time_within(5 * degree) / gait.motion.period
            rows.append(comparison(f"open loop, {name}, trapezoid 1 ms: within 5° up to % of cycle", paper, legs, None))
    classical = track(gait.body, gait.motion, time, method="rk4")
    rows.append(
        comparison(
            "open loop, RK4 1 ms: within 1° up to % of cycle",
            OPEN_LOOP,
            100 * classical.time_within(degree) / gait.motion.period,
            None,
        )
    )
    best = track(gait.body, gait.motion, time, method="dop853")
    rows += [
        comparison(
            "open loop, eighth order: within 1° up to % of cycle",
            100 * RECORD,
            100 * best.time_within(degree) / gait.motion.period,
            0.1,
            distance=True,
        ),
        comparison(
            "open loop, eighth order: largest angle error at 116 %, degrees",
            None,
            np.abs(best.attitude_error).max() / degree,
            1.0,
        ),
    ]
    return rows


def reproduce() -> list[dict[str, Any]]:
    """Run the paper's comparisons; rows with the paper's figure, ours, the tolerance and the verdict.

    A row without tolerance only reports. Less than a minute.
    """
    body = load_body("gait")
    gait = SyntheticGait(body, walking(body))
    return [*formulation(gait), *sharing(gait), *pipeline(gait), *controlled(gait), *open_loop(gait)]
