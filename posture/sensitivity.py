"""Sensitivities of an error function to forces, parameters and duration, for structures of any number of joints.

The method of Barauskas and Krušinskienė (2006), section 2.2.1, with its corrections:

    m u'' + c u' + k u = w(u, u', p) + r f(t)                                   (2.3)
    J = φ(u_T, u'_T) + ∫ ψ(t, u, u', u'', p) dt                                 (2.4)
    dJ/df = rᵀ L,   dJ/dp = ∫ (w_pᵀ L + ψ_p) dt,   dJ/dT = ψ_T + φ_u·u'_T + φ_u'·u''_T      (2.16), corrected

with L = λ + μ' + η''. ``Structure.sensitivities`` finds L for nonlinear w by one first-order adjoint system (σ, ρ):

    σ' = -ρ - a_vᵀ(σ + ψ_a) - ψ_v,   ρ' = -a_uᵀ(σ + ψ_a) - ψ_u,   σ_T = φ_u',  ρ_T = φ_u,   L = m⁻ᵀ(σ + ψ_a)

where a(u, v, p, f) is the acceleration. ``conjugates`` solves the paper's own three equations (2.11) with the
corrected end values (2.13), for structures whose w has constant derivatives; both give the same L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import simpson

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Sensitivities:
    """J, dJ/df (samples × inputs, per second), dJ/dp, dJ/dT, and L (samples × joints)."""

    cost: float
    by_force: Array
    by_parameter: Array
    by_duration: float
    multiplier: Array


class Structure:
    """A structure (2.3) with its error function (2.4), given as symbolic expressions.

    ``force(u, v, p)`` is w; ``running(t, u, v, a, p)`` is ψ; ``terminal(u, v)`` is φ: each returns CasADi
    expressions. ``inputs`` is r (joints × inputs).
    """

    def __init__(
        self,
        mass: Array,
        damping: Array,
        stiffness: Array,
        inputs: Array,
        *,
        force: Callable[[ca.SX, ca.SX, ca.SX], ca.SX],
        running: Callable[[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX], ca.SX],
        terminal: Callable[[ca.SX, ca.SX], ca.SX],
        parameters: int,
    ) -> None:
        self.mass, self.damping, self.stiffness = (np.atleast_2d(part) for part in (mass, damping, stiffness))
        self.inputs = np.asarray(inputs, float).reshape(len(self.mass), -1)
        n = len(self.mass)
        t, u, v, a = (ca.SX.sym(name, size) for name, size in (("t", 1), ("u", n), ("v", n), ("a", n)))
        p, f = ca.SX.sym("p", parameters), ca.SX.sym("f", self.inputs.shape[1])
        w, psi, phi = force(u, v, p), running(t, u, v, a, p), terminal(u, v)
        total = w + ca.mtimes(self.inputs, f) - ca.mtimes(self.damping, v) - ca.mtimes(self.stiffness, u)
        acceleration = ca.solve(ca.SX(self.mass), total)
        state = [t, u, v, f, p]
        self._acceleration = ca.Function("acceleration", state, [acceleration])
        self._step = self._runge_kutta(n, self.inputs.shape[1], parameters)
        self._slopes = ca.Function("slopes", state, [ca.jacobian(acceleration, u), ca.jacobian(acceleration, v)])
        self._w = ca.Function("w", [u, v, p], [ca.jacobian(w, u), ca.jacobian(w, v), ca.jacobian(w, p)])
        parts = [psi, *(ca.gradient(psi, by) for by in (u, v, a)), ca.gradient(psi, p)]
        self._psi = ca.Function("psi", [t, u, v, a, p], parts)
        self._phi = ca.Function("phi", [u, v], [phi, ca.gradient(phi, u), ca.gradient(phi, v)])

    def _runge_kutta(self, n: int, inputs: int, parameters: int) -> ca.Function:
        """One step as a function: state, f at its start, middle and end, length, p (w does not depend on time)."""
        x, p, length = ca.SX.sym("x", 2 * n), ca.SX.sym("p", parameters), ca.SX.sym("length")
        before, middle, after = (ca.SX.sym(name, inputs) for name in ("before", "middle", "after"))

        def rate(state: ca.SX, f: ca.SX) -> ca.SX:
            return ca.vertcat(state[n:], self._acceleration(0, state[:n], state[n:], f, p))

        k1 = rate(x, before)
        k2 = rate(x + length / 2 * k1, middle)
        k3 = rate(x + length / 2 * k2, middle)
        k4 = rate(x + length * k3, after)
        end = x + length / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return ca.Function("step", [x, before, middle, after, length, p], [end])

    def run(self, start: Array, force: Array, parameters: Array, duration: float) -> tuple[Array, Array, Array, Array]:
        """Time, u, v, a (samples × joints) by RK4; ``force`` holds f at every half step (2 n + 1 rows)."""
        count = (len(force) - 1) // 2
        step, n = duration / count, len(self.mass)
        f = np.asarray(force, float).T
        many = self._step.mapaccum("run", count)
        ends = many(start, f[:, :-1:2], f[:, 1::2], f[:, 2::2], np.full((1, count), step), _columns(parameters, count))
        x = np.vstack((start, np.asarray(ends).T))
        time = np.arange(count + 1) * step
        a = self._acceleration.map(count + 1)(
            time[None], x[:, :n].T, x[:, n:].T, f[:, ::2], _columns(parameters, count + 1)
        )
        return time, x[:, :n], x[:, n:], np.asarray(a).T

    def cost(self, start: Array, force: Array, parameters: Array, duration: float) -> float:
        """J by Simpson's rule; an even number of steps."""
        time, u, v, a = self.run(start, force, parameters, duration)
        psi = np.asarray(self._psi.map(len(time))(time[None], u.T, v.T, a.T, _columns(parameters, len(time)))[0])[0]
        return float(self._phi(u[-1], v[-1])[0]) + float(simpson(psi, x=time))

    def sensitivities(self, start: Array, force: Array, parameters: Array, duration: float) -> Sensitivities:
        """All derivatives from one run forwards and one backwards, for any w; even number of steps."""
        time, u, v, a = self.run(start, force, parameters, duration)
        n, count, step = len(self.mass), len(time) - 1, duration / (len(time) - 1)
        psi, by_p, psi_a, driven, slopes = [], [], [], [], []
        for index, row in enumerate(zip(time, u, v, a, strict=True)):
            value, psi_u, psi_v, own_psi_a, own_p = (np.asarray(part).ravel() for part in self._psi(*row, parameters))
            a_u, a_v = (np.asarray(part) for part in self._slopes(row[0], row[1], row[2], force[2 * index], parameters))
            psi.append(value[0])
            psi_a.append(own_psi_a)
            by_p.append(own_p)
            driven.append(np.concatenate((a_u.T @ own_psi_a + psi_u, a_v.T @ own_psi_a + psi_v)))
            slopes.append((a_u.T, a_v.T))
        phi, phi_u, phi_v = (np.asarray(part).ravel() for part in self._phi(u[-1], v[-1]))

        def rate(adjoint: Array, index: int) -> Array:  # in reversed time; adjoint = (ρ, σ)
            a_u, a_v = slopes[index]
            rho, sigma = adjoint[:n], adjoint[n:]
            return np.asarray(np.concatenate((a_u @ sigma, rho + a_v @ sigma)) + driven[index])

        adjoint = np.empty((count + 1, 2 * n))
        adjoint[count] = np.concatenate((phi_u, phi_v))
        # Two samples per step, so that the middle of each RK4 step is a sample: no interpolation, fourth order.
        for index in range(count, 1, -2):
            y = adjoint[index]
            k1 = rate(y, index)
            k2 = rate(y + step * k1, index - 1)
            k3 = rate(y + step * k2, index - 1)
            k4 = rate(y + 2 * step * k3, index - 2)
            adjoint[index - 2] = y + step / 3 * (k1 + 2 * k2 + 2 * k3 + k4)
        even = slice(0, count + 1, 2)
        multiplier = np.linalg.solve(self.mass.T, (adjoint[:, n:] + np.array(psi_a)).T).T[even]
        w_p = np.array([np.asarray(self._w(u[i], v[i], parameters)[2]) for i in range(0, count + 1, 2)])
        integrand = np.einsum("tji,tj->ti", w_p, multiplier) + np.array(by_p)[even]
        return Sensitivities(
            float(phi[0]) + float(simpson(psi, x=time)),
            multiplier @ self.inputs,
            np.asarray(simpson(integrand, x=time[even], axis=0)),
            float(psi[-1] + phi_u @ v[-1] + phi_v @ a[-1]),
            multiplier,
        )

    def conjugates(self, start: Array, force: Array, parameters: Array, duration: float) -> Array:
        """L = λ + μ' + η'' at every second sample, by (2.11) with the end values (2.13) corrected.

        For w with constant derivatives. Corrected: the third equation has η k (the print has η' k'), and
        μ_T = k⁻ᵀ φ_u (the print has φ_u). All others are zero at T but η_T = -k⁻ᵀ φ_u'.
        """
        time, u, v, a = self.run(start, force, parameters, duration)
        n, count, step = len(self.mass), len(time) - 1, duration / (len(time) - 1)
        w_u, w_v, _ = (np.asarray(part) for part in self._w(u[-1], v[-1], parameters))
        m, c, k = self.mass.T, (self.damping - w_v).T, (self.stiffness - w_u).T
        psi = [
            [np.asarray(part).ravel() for part in self._psi(*row, parameters)]
            for row in zip(time, u, v, a, strict=True)
        ]
        _, phi_u, phi_v = (np.asarray(part).ravel() for part in self._phi(u[-1], v[-1]))
        drive = np.array([np.concatenate((row[1], -row[2], row[3])) for row in psi])  # of λ, μ, η
        m3, c3, k3 = (np.kron(np.eye(3), part) for part in (m, c, k))

        def rate(y: Array, index: int) -> Array:  # y = (λ μ η, their rates), reversed time: the rates change sign
            value, back = y[: 3 * n], y[3 * n :]
            return np.concatenate((back, np.linalg.solve(m3, drive[index] - c3 @ back - k3 @ value)))

        y = np.zeros(6 * n)
        y[n : 2 * n] = np.linalg.solve(k, phi_u)
        y[2 * n : 3 * n] = -np.linalg.solve(k, phi_v)
        found = np.empty((count // 2 + 1, n))
        for index in range(count, -1, -2):
            turn = rate(y, index)
            found[index // 2] = y[:n] - y[4 * n : 5 * n] + turn[5 * n :]  # λ + μ' + η''
            if index:
                k1 = turn
                k2 = rate(y + step * k1, index - 1)
                k3_ = rate(y + step * k2, index - 1)
                k4 = rate(y + 2 * step * k3_, index - 2)
                y = y + step / 3 * (k1 + 2 * k2 + 2 * k3_ + k4)
        return found


def _columns(values: Array, count: int) -> Array:
    return np.tile(np.asarray(values, float)[:, None], count)
