"""How likely a centre-of-pressure record is, as CasADi functions with exact gradients.

``kalman_cost``: minus the exact Gaussian log-likelihood of the whole record. The Kalman filter is run with its
steady gain, whose covariance comes from a doubling iteration of the Riccati equation (Chu, Fan, Lin and Wang 2004),
and what the unknown start state and the unknown mean add is put back exactly: they enter the innovations linearly, so
they are integrated out in closed form (de Jong 1991). The steady filter is a convolution, evaluated in blocks of
about √n samples as products of dense matrices: a few milliseconds for 6000 samples with its gradient, where a loop
over samples takes a hundred times that.

``whittle_cost``: the spectral approximation (Whittle 1953) on a Hann-tapered periodogram, with the exact spectrum of
the sampled system, aliases included; polynomials are in the delta operator (z - 1)/step, as in z they would lose all
digits.

Both take the COP in mm and leave the constant n/2·log 2π out.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from posture.identify.model import StanceModel

Array = NDArray[np.floating]

TAYLOR_TERMS = 12
HALVINGS = 6
RICCATI_DOUBLINGS = 22
MEAN_SPREAD = 1000.0  # mm: where on the plate the person stands is not known beforehand
HANN_LOSS = 35 / 18  # how many times less a Hann-tapered record tells: n Σw⁴ / (Σw²)²
SKIPPED_BINS = 2  # of the periodogram: mean and slowest drift, where a taper leaks most
KEPT_FUNCTIONS = 16

_functions: OrderedDict[tuple[Any, ...], ca.Function] = OrderedDict()


def discretize(rows: ca.MX, noise: ca.MX, step: float) -> tuple[ca.MX, ca.MX]:
    """Transition matrix and noise covariance over ``step`` s, by a Taylor series and doubling."""
    size, short = rows.shape[0], step / 2**HALVINGS
    transition, term = ca.MX(np.eye(size)), ca.MX(np.eye(size))
    spread = ca.mtimes(noise, noise.T)
    covariance, growth = spread * short, spread
    for order in range(1, TAYLOR_TERMS + 1):
        term = ca.mtimes(term, rows) * (short / order)
        transition += term
        growth = ca.mtimes(rows, growth) + ca.mtimes(growth, rows.T)
        covariance += growth * (short ** (order + 1) / math.factorial(order + 1))
    for _ in range(HALVINGS):
        covariance += ca.mtimes(ca.mtimes(transition, covariance), transition.T)
        transition = ca.mtimes(transition, transition)
    return transition, covariance


def steady_covariance(transition: ca.MX, covariance: ca.MX, output: ca.MX, variance: ca.MX) -> ca.MX:
    """Covariance of the predicted state in the steady Kalman filter."""
    size = transition.shape[0]
    a, g, h = transition.T, ca.mtimes(output.T, output) / variance, covariance
    for _ in range(RICCATI_DOUBLINGS):
        inverse = ca.inv(ca.MX(np.eye(size)) + ca.mtimes(g, h))
        left = ca.mtimes(a, inverse)
        h_next = h + ca.mtimes(ca.mtimes(a.T, ca.mtimes(h, inverse)), a)
        g = g + ca.mtimes(ca.mtimes(left, g), a.T)
        a = ca.mtimes(left, a)
        g, h = (g + g.T) / 2, (h_next + h_next.T) / 2
    return h


def _filtered(transition: ca.MX, gain: ca.MX, output: ca.MX, record: ca.MX, count: int) -> ca.MX:
    """Innovations of the steady filter, count × (2 + states): of the record, of a constant 1, of each start state.

    Block by block: innovations = (1 - T) inputs - O state, state after = Φ^L state + R inputs, with Φ = A - K C.
    """
    size = transition.shape[0]
    length = max(2, math.isqrt(count))
    blocks = -(-count // length)
    step = transition - ca.mtimes(gain, output)
    observed = output  # C, CΦ, CΦ², … by doubling
    power = step
    while observed.shape[0] < length:
        observed = ca.vertcat(observed, ca.mtimes(observed, power))
        power = ca.mtimes(power, power)
    observed = observed[:length, :]
    reached = gain  # K, ΦK, Φ²K, …
    power = step
    while reached.shape[1] < length:
        reached = ca.horzcat(reached, ca.mtimes(power, reached))
        power = ca.mtimes(power, power)
    reached = reached[:, list(range(length - 1, -1, -1))]
    over_block = ca.MX(np.eye(size))
    for bit in bin(length)[2:]:
        over_block = ca.mtimes(over_block, over_block)
        if bit == "1":
            over_block = ca.mtimes(over_block, step)

    response = ca.vertcat(0, ca.mtimes(observed, gain)[: length - 1])  # of the prediction to one sample
    lag = np.subtract.outer(np.arange(length), np.arange(length))
    toeplitz = ca.reshape(response[np.where(lag > 0, lag, 0).T.ravel().tolist()], length, length)
    inputs = ca.reshape(ca.vertcat(record, ca.MX(blocks * length - count, 1)), length, blocks)
    ones = ca.MX(np.ones((length, 1)))

    state = ca.MX.sym("state", size, size + 2)
    pushes = ca.MX.sym("pushes", size, 2)
    through = ca.MX.sym("through", size, size)
    after = ca.mtimes(through, state) + ca.horzcat(pushes, ca.MX(size, size))
    one_block = ca.Function("block", [state, pushes, through], [ca.densify(after)])
    driven, constant = ca.mtimes(reached, inputs), ca.mtimes(reached, ones)
    pushed = [ca.horzcat(driven[:, index], constant) for index in range(blocks - 1)]
    start = ca.densify(ca.horzcat(ca.MX(size, 2), ca.MX(np.eye(size))))
    states = [start]
    if blocks > 1:
        many = one_block.mapaccum("blocks", blocks - 1)
        states.append(many(start, ca.horzcat(*pushed), ca.repmat(over_block, 1, blocks - 1)))
    free = ca.mtimes(observed, ca.horzcat(*states))  # length × blocks·(size + 2)
    direct = inputs - ca.mtimes(toeplitz, inputs)
    level = ones - ca.mtimes(toeplitz, ones)
    columns = []
    for column in range(size + 2):
        part = -free[:, [column + index * (size + 2) for index in range(blocks)]]
        if column == 0:
            part += direct
        elif column == 1:
            part += ca.repmat(level, 1, blocks)
        columns.append(ca.reshape(part, blocks * length, 1)[:count])
    return ca.horzcat(*columns)


def _kalman(model: StanceModel, count: int, step: float) -> ca.Function:
    theta, record = ca.MX.sym("theta", len(model.names)), ca.MX.sym("record", count)
    rows, noise, output, variance = model.matrices(theta)
    transition, covariance = discretize(rows, noise, step)
    predicted = steady_covariance(transition, covariance, output, variance)
    innovation = ca.mtimes(ca.mtimes(output, predicted), output.T) + variance
    gain = ca.mtimes(ca.mtimes(transition, predicted), output.T) / innovation
    signals = _filtered(transition, gain, output, record, count)
    products = ca.mtimes(signals.T, signals) / innovation
    unknowns = model.size + 1
    spread = ca.MX(unknowns, unknowns)  # covariance of mean and start state, beyond what the steady filter assumes
    spread[0, 0] = MEAN_SPREAD**2
    spread[1:, 1:] = np.diag(model.start_spread**2) - predicted
    information, moment = products[1:, 1:], products[1:, 0]
    system = ca.MX(np.eye(unknowns)) + ca.mtimes(spread, information)
    best = ca.solve(system, ca.mtimes(spread, moment))  # posterior mean, up to sign
    quadratic = products[0, 0] - ca.dot(moment, best)
    cost = 0.5 * (count * ca.log(innovation) + ca.log(ca.det(system)) + quadratic)
    residual = (signals[:, 0] - ca.mtimes(signals[:, 1:], best)) / ca.sqrt(innovation)
    return ca.Function(
        "kalman",
        [theta, record],
        [cost, ca.gradient(cost, theta), residual, best],
        ["theta", "record"],
        ["cost", "gradient", "residual", "unknowns"],
    )


def _spectrum(model: StanceModel, theta: ca.MX, frequency: Array, step: float) -> ca.MX:
    """Two-sided spectral density (mm² per sample frequency 1) of the sampled COP at ``frequency`` (Hz)."""
    rows, noise, output, variance = model.matrices(theta)
    transition, covariance = discretize(rows, noise, step)
    size = model.size
    delta = (transition - np.eye(size)) / step
    # Faddeev-LeVerrier: characteristic polynomial and C·adjugate of (w - delta), highest power first.
    adjugate, rows_of_output, polynomial = ca.MX(np.eye(size)), [], [ca.MX(1)]
    for order in range(1, size + 1):
        rows_of_output.append(ca.mtimes(output, adjugate))
        product = ca.mtimes(delta, adjugate)
        coefficient = -ca.trace(product) / order
        polynomial.append(coefficient)
        adjugate = product + coefficient * ca.MX(np.eye(size))
    numerator = ca.vertcat(*rows_of_output)
    weights = ca.mtimes(ca.mtimes(numerator, covariance), numerator.T) / step**2
    points = (np.exp(2j * np.pi * frequency * step) - 1) / step
    powers = points[:, None] ** np.arange(size, -1, -1)
    bottom = ca.vertcat(*polynomial)
    denominator = ca.mtimes(powers.real, bottom) ** 2 + ca.mtimes(powers.imag, bottom) ** 2
    top = sum((ca.sum2(ca.mtimes(part, weights) * part) for part in (powers[:, 1:].real, powers[:, 1:].imag)), ca.MX(0))
    return top / denominator + variance


def log_spectrum_slopes(model: StanceModel, frequency: Array, step: float) -> ca.Function:
    """Function theta → derivatives of the log spectrum (frequencies × parameters), the stuff of Fisher information."""
    theta = ca.MX.sym("theta", len(model.names))
    density = _spectrum(model, theta, frequency, step)
    key = ("slopes", model.key, len(frequency), float(frequency[0]), float(frequency[-1]), step)
    return _kept(key, lambda: ca.Function("slopes", [theta], [ca.jacobian(ca.log(density), theta)]))


def _whittle(model: StanceModel, frequency: Array, step: float) -> ca.Function:
    theta, periodogram = ca.MX.sym("theta", len(model.names)), ca.MX.sym("periodogram", len(frequency))
    density = _spectrum(model, theta, frequency, step)
    cost = ca.sum1(ca.log(density) + periodogram / density) / HANN_LOSS
    return ca.Function("whittle", [theta, periodogram], [cost, ca.gradient(cost, theta), density])


def _kept(key: tuple[Any, ...], make: Callable[[], ca.Function]) -> ca.Function:
    """Reuse functions of equal shape: a cohort of equal records of one person builds one."""
    if key not in _functions:
        _functions[key] = make()
        while len(_functions) > KEPT_FUNCTIONS:
            _functions.popitem(last=False)
    _functions.move_to_end(key)
    return _functions[key]


def kalman_function(model: StanceModel, count: int, step: float) -> ca.Function:
    """Function (theta, record mm) → cost, gradient, standardised innovations, mean and start state (sign kept)."""
    return _kept(("kalman", model.key, count, step), lambda: _kalman(model, count, step))


def whittle_function(model: StanceModel, frequency: Array, step: float) -> ca.Function:
    """Function (theta, periodogram) → cost, gradient, model spectrum."""
    key = ("whittle", model.key, len(frequency), float(frequency[0]), float(frequency[-1]), step)
    return _kept(key, lambda: _whittle(model, frequency, step))


def tapered_periodogram(record: Array, step: float) -> tuple[Array, Array]:
    """Frequencies (Hz) and Hann-tapered periodogram (unit² per sample frequency 1), slowest bins left out."""
    taper = np.hanning(len(record) + 2)[1:-1]
    transform = np.fft.rfft(taper * (record - record.mean()))
    keep = slice(SKIPPED_BINS, (len(record) - 1) // 2)
    frequency = np.fft.rfftfreq(len(record), step)[keep]
    return frequency, (np.abs(transform) ** 2 / np.sum(taper**2))[keep]


def model_spectrum(model: StanceModel, theta: Array, frequency: Array, step: float) -> Array:
    """One-sided spectral density of the sampled COP, m²/Hz."""
    symbol = ca.MX.sym("theta", len(model.names))
    density = ca.Function("spectrum", [symbol], [_spectrum(model, symbol, frequency, step)])
    return np.asarray(density(theta)).ravel() * 2 * step * 1e-6
