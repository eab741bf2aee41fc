"""Which measured outputs see which feedback gains, and how to move the platform so that they see them best.

A gain that changes no measured output cannot be estimated from it, however long the record. The Fisher information
says how much each output tells: F = Σ S' S / noise², S the sensitivity of the samples to the logarithm of each gain.
The inverse of F bounds the relative standard error of any unbiased estimate (Cramér and Rao).

``fisher_information`` takes sensitivities from whole simulations of any kind. ``ResponseInformation`` linearises a
standing body and gives the information of a sinusoidal platform motion at each frequency; since independent
sinusoids add up, the best mix of a given size is a concave problem (largest log det F), solved by CasADi with IPOPT
and closed by a bound on what any other mix could reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import linprog

from controllers import Controller
from posture.body import STANDARD_GRAVITY, Body
from posture.deck import DeckSamples, Sine, SineDeck
from posture.errors import ScenarioError, find_name
from posture.simulate import Dynamics, closed_loop_matrix, observe

Array = NDArray[np.floating]

UNSEEN = 1e-9  # share of the largest information below which a direction counts as unseen


def fisher_information(
    run: Callable[[Array], xr.Dataset],
    gains: Mapping[str, float],
    noise: Mapping[str, float],
    *,
    change: float = 0.01,
) -> xr.Dataset:
    """Information that each output of a run holds about each gain, by central differences of two runs per gain.

    ``run(values)`` simulates with gains in the order of ``gains``; ``noise``: standard deviation of one sample of each
    output (a variable of the result). ``change``: relative step. See ``summarise`` for what comes back.
    """
    names, base = list(gains), np.array(list(gains.values()), float)
    ahead, behind = [], []
    for index in range(len(base)):
        step = np.ones(len(base))
        step[index] = math.exp(change)
        ahead.append(run(base * step))
        behind.append(run(base / step))
    matrices = {}
    for output, sd in noise.items():
        find_name(output, [str(name) for name in ahead[0].data_vars], what="output", where="run", error=ScenarioError)
        slopes = [
            (more[output].values - less[output].values).ravel() / (2 * change)
            for more, less in zip(ahead, behind, strict=True)
        ]
        sensitivity = np.nan_to_num(np.array(slopes)) / sd
        matrices[output] = sensitivity @ sensitivity.T
    return summarise(matrices, names)


def summarise(matrices: Mapping[str, Array], gains: Sequence[str]) -> xr.Dataset:
    """Dataset with ``information`` (output × gain × gain) and ``relative_error`` (output × gain).

    The error is the smallest relative standard error of a gain from that output alone, all gains unknown, and from all
    outputs together ("all"); infinite for a gain that the output does not see apart from others.
    """
    outputs = [*matrices, "all"]
    stack = np.array([*matrices.values(), sum(matrices.values())])
    errors = np.array([_bounds(matrix) for matrix in stack])
    return xr.Dataset(
        {
            "information": (("output", "gain", "gain_again"), stack, {"units": "1", "long_name": "Fisher information"}),
            "relative_error": (("output", "gain"), errors, {"units": "1", "long_name": "Cramér-Rao bound"}),
        },
        coords={"output": outputs, "gain": list(gains), "gain_again": list(gains)},
    )


def _bounds(matrix: Array) -> Array:
    """Square roots of the diagonal of the inverse; infinite where an unseen direction touches a gain."""
    values, vectors = np.linalg.eigh(matrix)
    seen = values > UNSEEN * max(float(values[-1]), 1e-300)
    variance = np.sum(vectors[:, seen] ** 2 / values[seen], axis=1)
    blurred = np.sum(vectors[:, ~seen] ** 2, axis=1) > 1e-6
    return np.where(blurred, np.inf, np.sqrt(variance))


@dataclass(frozen=True)
class Perturbation:
    """A platform motion as a sum of sinusoids, and how good it is.

    amplitude (m or rad) at each frequency (Hz); information (gain × gain); ``efficiency``: no motion within the same
    limits has more than 1/efficiency times this one's information per gain (det F to the power 1/gains).
    """

    motion: str
    frequency: Array
    amplitude: Array
    information: Array
    efficiency: float

    def deck(self) -> SineDeck:
        """The motion, with phases that keep its peaks low (Schroeder's)."""
        share = self.amplitude**2 / np.sum(self.amplitude**2)
        phases = -2 * np.pi * np.cumsum(np.cumsum(share) - share / 2)
        return SineDeck(
            {
                self.motion: [
                    Sine(float(amplitude), 1 / float(frequency), float(phase))
                    for amplitude, frequency, phase in zip(self.amplitude, self.frequency, phases, strict=True)
                    if amplitude > 0
                ]
            }
        )


class ResponseInformation:
    """Information of small sinusoidal platform motions about the gains of a standing body, frequency by frequency.

    ``controller(values)``: the controller with gains in the order of ``gains``; ``noise``: as in
    ``fisher_information``, of outputs sampled ``rate`` times per second for ``duration`` s; ``motion``: surge … yaw.
    """

    def __init__(
        self,
        body: Body,
        controller: Callable[[Array], Controller],
        gains: Mapping[str, float],
        noise: Mapping[str, float],
        *,
        motion: str,
        frequency: Sequence[float] | Array,
        duration: float = 60.0,
        rate: float = 50.0,
        change: float = 0.01,
    ) -> None:
        self.body, self.motion, self.gains = body, motion, list(gains)
        self.frequency = np.asarray(frequency, float)
        self.noise = dict(noise)
        base = np.array(list(gains.values()), float)
        self.response = self._responses(controller(base))
        slopes = []
        for index in range(len(base)):
            step = np.ones(len(base))
            step[index] = math.exp(change)
            ahead, behind = self._responses(controller(base * step)), self._responses(controller(base / step))
            slopes.append({name: (ahead[name] - behind[name]) / (2 * change) for name in noise})
        # n samples of Re(G a e^{iωt}) have n/2 |a|² Re(G* G) in them.
        samples = duration * rate
        self.by_output = {
            name: np.array(
                [
                    samples / 2 / sd**2 * np.real(np.conj(stack) @ stack.T)
                    for stack in np.moveaxis(np.array([slope[name] for slope in slopes]), 1, 0)
                ]
            )
            for name, sd in noise.items()
        }
        self.information: Array = np.sum(list(self.by_output.values()), axis=0)  # frequency × gain × gain

    def _responses(self, controller: Controller) -> dict[str, NDArray[np.complexfloating]]:
        """Complex response (frequency × components) of every output to unit motion of the platform."""
        body, joints = self.body, len(self.body.joint_names)
        dynamics = Dynamics(body)
        state = np.concatenate((body.neutral, np.zeros(joints + controller.memory_size)))
        level = np.array([0, 0, 0, 0, 0, 0, 0, 0, STANDARD_GRAVITY])
        known = observe(dynamics, controller, SineDeck().sample(np.zeros(1)), state[None])
        for name in self.noise:
            find_name(name, map(str, known.data_vars), what="output", where=body.name, error=ScenarioError)
        matrix = closed_loop_matrix(body, controller, state)[0]
        columns = np.concatenate((body.free, joints + body.free, np.arange(2 * joints, len(state)))).astype(int)

        def outputs(x: Array, channels: Array) -> Array:
            one = np.zeros((1, 3))
            sample = DeckSamples(
                np.zeros(1),
                channels[None, :3],
                channels[None, 3:6],
                channels[None, 6:],
                one,
                np.array([[0, 0, 0, 1.0]]),
            )
            result = observe(dynamics, controller, sample, x[None])
            return np.concatenate([result[name].values.ravel() for name in self.noise])

        def rates(channels: Array) -> Array:
            position, still, memory = state[:joints], np.zeros(joints), state[2 * joints :]
            torque = controller.torque(0.0, position, still, memory)
            result = np.zeros(len(state))
            result[joints : 2 * joints] = dynamics.acceleration(position, still, torque, channels)
            return np.asarray(result[columns])

        size = 1e-5

        def slope(function: Callable[[Array], Array], at: Array, column: int) -> Array:
            nudge = np.zeros(len(at))
            nudge[column] = size
            return np.asarray((function(at + nudge) - function(at - nudge)) / (2 * size))

        sees = np.array([slope(lambda x: outputs(x, level), state, column) for column in columns]).T
        driven = np.array([slope(rates, level, column) for column in range(9)]).T
        direct = np.array([slope(lambda c: outputs(state, c), level, column) for column in range(9)]).T
        found = []
        for frequency in self.frequency:
            push = self._channels(float(frequency))
            inner = np.linalg.solve(2j * np.pi * frequency * np.eye(len(matrix)) - matrix, driven @ push)
            found.append(sees @ inner + direct @ push)
        parts = np.split(np.array(found), np.cumsum([known[name].size for name in self.noise])[:-1], axis=1)
        return dict(zip(self.noise, parts, strict=True))

    def _channels(self, frequency: float) -> NDArray[np.complexfloating]:
        """Complex deck channels (9) of a unit motion a cos(ωt), from two instants of a small one."""
        size = 1e-6
        deck = SineDeck({self.motion: [Sine(size, 1 / frequency, 0.0)]})
        sample, level = deck.sample(np.array([0.0, 0.25 / frequency])), np.zeros(9)
        level[8] = STANDARD_GRAVITY
        rows = np.hstack((sample.angular_velocity, sample.angular_acceleration, sample.specific_force)) - level
        return np.asarray((rows[0] - 1j * rows[1]) / size)

    def of(self, amplitude: Array) -> xr.Dataset:
        """Information of a mix of sinusoids with these amplitudes (m or rad), as from ``fisher_information``."""
        power = np.asarray(amplitude, float) ** 2
        return summarise({name: np.tensordot(power, parts, 1) for name, parts in self.by_output.items()}, self.gains)

    def best(
        self,
        *,
        rms: float,
        rms_acceleration: float = math.inf,
        rms_output: Mapping[str, float] | None = None,
    ) -> Perturbation:
        """The mix with the largest log det F within limits on root mean squares.

        ``rms`` of the motion (m or rad), ``rms_acceleration`` of it (m/s² or rad/s²), and ``rms_output`` of single
        outputs, such as how far the centre of pressure may wander (all components together, their own units).
        """
        import casadi

        omega = 2 * np.pi * self.frequency
        limits = [np.ones(len(omega)) / (2 * rms**2)]
        if math.isfinite(rms_acceleration):
            limits.append(omega**4 / (2 * rms_acceleration**2))
        for name, limit in (rms_output or {}).items():
            find_name(name, self.response, what="output", where="rms_output", error=ScenarioError)
            limits.append(np.sum(np.abs(self.response[name]) ** 2, axis=1) / (2 * limit**2))
        rows = np.array(limits)
        # Powers as shares of what each frequency may have alone, information relative to the even mix.
        alone = 1 / rows.max(axis=0)
        even = np.tensordot(alone / len(alone), self.information, 1)
        if np.linalg.eigvalsh(even)[0] <= UNSEEN * np.linalg.eigvalsh(even)[-1]:
            raise ScenarioError(
                "these outputs cannot tell all these gains apart, whatever the platform does; measure more or ask for "
                "fewer gains"
            )
        whiten = np.linalg.inv(np.linalg.cholesky(even))
        pieces = alone[:, None, None] * (whiten @ self.information @ whiten.T)
        share = casadi.SX.sym("share", len(alone))
        total = casadi.SX.zeros(*even.shape)
        for index, piece in enumerate(pieces):
            total += share[index] * casadi.DM(piece)
        problem = {"x": share, "f": -casadi.log(casadi.det(total)), "g": casadi.mtimes(casadi.DM(rows * alone), share)}
        solver = casadi.nlpsol(
            "best", "ipopt", problem, {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
        )
        found = solver(x0=np.full(len(alone), 1 / len(alone)), lbx=0, ubx=1, ubg=1)
        shares = np.maximum(np.array(found["x"]).ravel(), 0)
        shares[shares < 1e-6 * shares.max()] = 0
        shares /= max(1.0, float((rows @ (shares * alone)).max()))
        inverse = np.linalg.inv(np.tensordot(shares, pieces, 1))
        worth = np.einsum("ij,kji->k", inverse, pieces)
        # log det is concave: no mix within the limits beats this one by more than max Σ q worth - gains.
        reach = linprog(-worth, A_ub=rows * alone, b_ub=np.ones(len(rows)), bounds=(0, None))
        power = shares * alone
        return Perturbation(
            self.motion,
            self.frequency,
            np.sqrt(power),
            np.tensordot(power, self.information, 1),
            math.exp(-max(0.0, -float(reach.fun) / len(even) - 1)),
        )
