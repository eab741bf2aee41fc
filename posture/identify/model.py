"""The person who stands still as a linear stochastic system: body, balance control, disturbance, plate.

    M q'' = G q + torque,   ankle torque = Td - Tc(t - delay),   hip torque = Th - (Kp q + Kd q')
    Tc = KP u + KI z + KD u',  z' = u            (PID at the ankle, angle u)
    B Td' + Td = noise, so Td' = -Td/B + s·w     (w: unit white noise; s in N·m/√s; the same for Th at the hip)
    COP = (mean) + c_q q + c_a q'' + plate noise of standard deviation r at each sample

M, G and the rows c are read from any URDF body by Pinocchio, so a person scaled to mass and height is as good as the
paper's pendulum. The feedback delay is a second-order Padé approximation, whose phase is right within 1° up to
ω·delay = 1.7 rad (0.2 s: 1.35 Hz). One joint (ankle) or two (ankle and hip) may be free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import expm

from posture.body import STANDARD_GRAVITY, Body
from posture.errors import RecordingError, check_number, find_name

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Mechanics:
    """Linearised body on a level floor: M q'' = G q + torque, COP = c_q q + c_a q''; SI, rad, forwards positive.

    mass_matrix (n × n, kg·m²), toppling (n × n, N·m/rad), cop_angle (n, m/rad), cop_acceleration (n, m·s²/rad).
    """

    mass_matrix: Array
    toppling: Array
    cop_angle: Array
    cop_acceleration: Array
    mass: float

    @classmethod
    def pendulum(cls, *, mass: float, height: float, inertia: float, gravity: float = STANDARD_GRAVITY) -> Mechanics:
        """The paper's body: ``height`` (m) of the centre of mass above the ankle, ``inertia`` (kg·m²) about it."""
        weight = mass * gravity
        return cls(
            np.array([[inertia]]),
            np.array([[weight * height]]),
            np.array([height]),
            np.array([-inertia / weight]),
            mass,
        )

    @classmethod
    def of(cls, body: Body) -> Mechanics:
        """Linearise a body about upright, over its free joints; all of them must turn about the lateral axis (Y)."""
        joints = body.free
        if len(joints) not in (1, 2):
            raise RecordingError(
                f"{body.name}: {len(joints)} joints are free, but balance is identified with 1 (ankle) or 2 (ankle "
                "and hip); lock the others, as in load_body(..., locked=[...])"
            )
        upright, lift = body.with_base(body.neutral), np.zeros(body.model.nv)
        lift[2] = STANDARD_GRAVITY
        still = np.zeros(body.model.nv)
        by_angle, _, by_acceleration = pin.computeRNEADerivatives(body.model, body.data, upright, still, lift)
        columns = 6 + joints
        inertia = np.array(by_acceleration)
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        weight = body.mass * STANDARD_GRAVITY
        jacobian = pin.computeJointJacobians(body.model, body.data, upright)
        for joint in joints:
            if abs(jacobian[4, 6 + joint]) < 0.99:
                raise RecordingError(
                    f"{body.name}: joint {body.joint_names[joint]!r} does not turn about the lateral axis Y, but "
                    "fore-aft sway is identified; lock it"
                )
        return cls(
            inertia[np.ix_(columns, columns)],
            -np.array(by_angle)[np.ix_(columns, columns)],
            -np.array(by_angle)[4, columns] / weight,  # row 4: moment about Y at the floor
            -inertia[4, columns] / weight,
            body.mass,
        )

    @property
    def ankle_load(self) -> float:
        """m·g·h of the straight body about the ankle, N·m/rad: the least stiffness that can hold it."""
        return float(self.toppling[0, 0])

    @property
    def hip_load(self) -> float:
        """m·g·h of the upper body about the hip, N·m/rad."""
        return float(self.toppling[-1, -1])


@dataclass(frozen=True)
class Parameter:
    """One number to identify: what it is, its unit, where it starts, what is believed before any record.

    ``scale``: the unit is multiplied by this load ("ankle", "hip") to carry over between people; ``prior_log_sd``: the
    standard deviation of the natural logarithm, infinite for none.
    """

    name: str
    unit: str
    meaning: str
    scale: str
    start: float
    low: float
    high: float
    prior_median: float = math.nan
    prior_log_sd: float = math.inf


# Start values, bounds and beliefs as multiples of the load where ``scale`` says so. The believed values of the two
# slow parameters are round numbers near those in use since Peterka (2000), that of the plate noise an ordinary plate's;
# with a log-sd of 1.5 the central 95 % spans a factor of 19 either way.
PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("stiffness", "N m/rad", "KP, ankle, beyond the toppling load", "ankle", 0.8, 0.02, 20.0),
        Parameter("damping", "N m s/rad", "KD, ankle", "ankle", 0.4, 0.02, 10.0),
        Parameter("integral", "N m/(rad s)", "KI, ankle", "ankle", 0.03, 1e-5, 3.0, 0.03, 1.5),
        Parameter(
            "noise_intensity", "N m/sqrt(s)", "s = (A/B) sqrt(noise step)", "ankle", 0.004, 1e-6, 1.0, 0.004, 2.0
        ),
        Parameter("noise_time_constant", "s", "B of the disturbance filter", "", 60.0, 0.05, 5000.0, 60.0, 1.5),
        Parameter("plate_noise", "m", "r, error of one COP sample", "", 2e-4, 1e-6, 1e-2, 2e-4, 1.5),
        Parameter("delay", "s", "feedback delay", "", 0.1, 0.01, 0.4, 0.12, 0.5),
        Parameter("hip_stiffness", "N m/rad", "hip, beyond the toppling load", "hip", 2.0, 0.02, 100.0, 2.0, 1.0),
        Parameter("hip_damping", "N m s/rad", "hip", "hip", 0.2, 0.002, 20.0, 0.2, 1.0),
        Parameter(
            "hip_noise_intensity", "N m/sqrt(s)", "s of the hip's disturbance", "hip", 0.004, 1e-7, 1.0, 0.004, 2.0
        ),
    )
}
BASIC = ("stiffness", "damping", "integral", "noise_intensity", "noise_time_constant", "plate_noise")
HIP = ("hip_stiffness", "hip_damping", "hip_noise_intensity")


class StanceModel:
    """Symbolic state space of a standing person; ``theta`` are logarithms of the scaled parameters ``names``."""

    def __init__(self, mechanics: Mechanics, *, delay: bool = False) -> None:
        self.mechanics = mechanics
        self.delayed = delay
        self.links = len(mechanics.cop_angle)
        self.names = (*BASIC, *(("delay",) if delay else ()), *(HIP if self.links == 2 else ()))

    @property
    def key(self) -> tuple[Any, ...]:
        """What decides the equations; models with equal keys share compiled functions."""
        parts = self.mechanics
        arrays = (parts.mass_matrix, parts.toppling, parts.cop_angle, parts.cop_acceleration)
        return (self.delayed, *(tuple(np.ravel(array)) for array in arrays))

    @property
    def size(self) -> int:
        """Number of states: integral, angles, speeds, disturbances, delay line."""
        return 1 + 3 * self.links + 2 * self.delayed

    def scale(self, name: str) -> float:
        """Load (N·m/rad) that multiplies a parameter, 1 for times and lengths."""
        loads = {"ankle": self.mechanics.ankle_load, "hip": self.mechanics.hip_load, "": 1.0}
        return loads[PARAMETERS[name].scale]

    def offset(self, name: str) -> float:
        """What is added: a stiffness counts from the toppling load up."""
        return self.scale(name) if name in ("stiffness", "hip_stiffness") else 0.0

    def theta(self, values: Mapping[str, float]) -> Array:
        """Logarithms from physical values; missing ones get their start value."""
        for name in values:
            find_name(name, self.names, what="parameter", where="identify", error=RecordingError)
        result = []
        for name in self.names:
            parameter, load = PARAMETERS[name], self.scale(name)
            if name in values:
                low, high = (self.offset(name) + load * edge for edge in (parameter.low, parameter.high))
                value = check_number(
                    float(values[name]), what=name, unit=parameter.unit, low=low, high=high, error=RecordingError
                )
                result.append(math.log((value - self.offset(name)) / load))
            else:
                result.append(math.log(parameter.start))
        return np.array(result)

    def values(self, theta: Array) -> dict[str, float]:
        """Physical values from logarithms."""
        return {
            name: self.offset(name) + self.scale(name) * math.exp(entry)
            for name, entry in zip(self.names, theta, strict=True)
        }

    def slopes(self, theta: Array) -> Array:
        """Derivative of each physical value with respect to its logarithm."""
        return np.array([self.scale(name) * math.exp(entry) for name, entry in zip(self.names, theta, strict=True)])

    def matrices(self, theta: ca.MX) -> tuple[ca.MX, ca.MX, ca.MX, ca.MX]:
        """F (x' = F x + N w), N, the output row C (COP in mm, which keeps the numbers near one) and r² (mm²)."""
        p = {name: self.offset(name) + self.scale(name) * ca.exp(theta[index]) for index, name in enumerate(self.names)}
        n, size, body = self.links, self.size, self.mechanics
        angle, speed, disturbance, line = 1, 1 + n, 1 + 2 * n, 1 + 3 * n
        torque = ca.MX(n, size)  # total joint torque as a row over the state, one row per joint
        wanted = ca.MX(1, size)  # Tc before the delay
        wanted[0, 0], wanted[0, angle], wanted[0, speed] = p["integral"], p["stiffness"], p["damping"]
        rows = ca.MX(size, size)
        if self.delayed:
            # Padé(2) of exp(-s·delay) = 1 - 12 (s·delay) / ((s·delay)² + 6 s·delay + 12), states scaled by the delay.
            rate = 1 / p["delay"]
            rows[line, line + 1] = math.sqrt(12) * rate
            rows[line + 1, line] = -math.sqrt(12) * rate
            rows[line + 1, line + 1] = -6 * rate
            rows[line + 1, :] += rate * wanted
            torque[0, :] = -wanted
            torque[0, line + 1] += 12
        else:
            torque[0, :] = -wanted
        torque[0, disturbance] += 1
        if n == 2:
            torque[1, angle + 1] = -p["hip_stiffness"]
            torque[1, speed + 1] = -p["hip_damping"]
            torque[1, disturbance + 1] = 1
        gravity = ca.MX(n, size)
        gravity[:, angle : angle + n] = body.toppling
        acceleration = ca.mtimes(np.linalg.inv(body.mass_matrix), torque + gravity)
        rows[0, angle] = 1
        for joint in range(n):
            rows[angle + joint, speed + joint] = 1
            rows[disturbance + joint, disturbance + joint] = -1 / p["noise_time_constant"]
        rows[speed : speed + n, :] = acceleration
        noise = ca.MX(size, n)
        noise[disturbance, 0] = p["noise_intensity"]
        if n == 2:
            noise[disturbance + 1, 1] = p["hip_noise_intensity"]
        output = ca.mtimes(body.cop_acceleration.reshape(1, n), acceleration)
        output[0, angle : angle + n] += body.cop_angle.reshape(1, n)
        return ca.densify(rows), ca.densify(noise), ca.densify(1000 * output), (1000 * p["plate_noise"]) ** 2

    @cached_property
    def start_spread(self) -> Array:
        """Standard deviations of the state before the first sample: wide, so that no record contradicts them."""
        load = self.mechanics.ankle_load
        return np.concatenate(
            (
                [1.0],
                np.full(2 * self.links, 0.03),
                np.full(self.links, 0.03 * load),
                np.full(2 * self.delayed, 0.03 * load),
            )
        )

    @cached_property
    def numeric(self) -> ca.Function:
        """Matrices F, N, C, r² as a function of theta."""
        theta = ca.MX.sym("theta", len(self.names))
        return ca.Function("matrices", [theta], list(self.matrices(theta)))

    def system(self, theta: Array) -> tuple[Array, Array, Array, float]:
        """F, N, C (m) and r (m) as numbers."""
        rows, noise, output, variance = (np.array(part) for part in self.numeric(theta))
        return rows, noise, output[0] / 1000, float(np.sqrt(variance[0, 0])) / 1000

    def poles(self, theta: Array) -> NDArray[np.complexfloating]:
        """Eigenvalues of the closed loop, 1/s, disturbance filters included."""
        return np.asarray(np.linalg.eigvals(self.system(theta)[0]))

    def sampled(self, theta: Array, step: float) -> tuple[Array, Array, Array, float]:
        """Exact sampled system at ``step`` s: transition, noise covariance, output row (m), r (m)."""
        rows, noise, output, sensor = self.system(theta)
        size = len(rows)
        block = np.zeros((2 * size, 2 * size))
        block[:size, :size], block[:size, size:], block[size:, size:] = -rows, noise @ noise.T, rows.T
        van_loan = expm(block * step)
        transition = van_loan[size:, size:].T
        return transition, transition @ van_loan[:size, size:], output, sensor

    def simulate(
        self, values: Mapping[str, float], *, rate: float, count: int, seed: int, settle: float = 0.0
    ) -> Array:
        """Draw a COP record (m) of ``count`` samples at ``rate`` Hz, from rest and after ``settle`` s of lead-in."""
        theta = self.theta(values)
        worst = float(self.poles(theta).real.max())
        if worst >= 0:
            raise RecordingError(
                f"these parameters do not balance the body (a mode grows at {worst:.3g} 1/s); raise the stiffness or "
                "damping, or lower the integral gain or delay"
            )
        transition, covariance, output, sensor = self.sampled(theta, 1 / rate)
        lead = round(settle * rate)
        random = np.random.default_rng(seed)
        values_, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        shocks = (
            random.standard_normal((lead + count, len(transition))) @ (vectors * np.sqrt(np.clip(values_, 0, None))).T
        )
        state, record = np.zeros(len(transition)), np.empty(lead + count)
        for index, shock in enumerate(shocks):
            record[index] = output @ state
            state = transition @ state + shock
        return np.asarray(record[lead:] + sensor * random.standard_normal(count))
