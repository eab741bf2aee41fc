"""Balance-control parameters from one centre-of-pressure record, with error bars that say what is not known.

``identify_balance`` finds the most probable parameters (likelihood times priors) in their logarithms, where the
uncertainty is closest to normal. Standard errors come from the Hessian there, and from a parametric bootstrap
on request. A parameter is ``identified`` when the record alone (without the belief about this one parameter) fixes
its logarithm within 0.5, ``weak`` within 1, and ``not identifiable`` beyond: then the value is the belief, not the
person.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import chi2, kstwobign

from posture.errors import RecordingError, check_number, find_name
from posture.identify.likelihood import (
    kalman_function,
    log_spectrum_slopes,
    model_spectrum,
    tapered_periodogram,
    whittle_function,
)
from posture.identify.model import PARAMETERS, Mechanics, StanceModel
from posture.recordings import filtered_before

Array = NDArray[np.floating]

METHODS = ("kalman", "whittle")
IDENTIFIED, WEAK = 0.5, 1.0  # largest standard error of the logarithm for each verdict
SHORTEST = 20.0  # s
FEWEST = 200  # samples
LEAST_SWAY = 1e-5  # m, standard deviation: below, nobody stood on the plate
WIDTH = 1.959964  # standard errors to each side of a 95 % interval
PATIENCE = 20  # steps of Fisher scoring before Newton's method
BAND_LIMIT_RATE = 10.0  # Hz, for records that were low-pass filtered before


@dataclass(frozen=True)
class Estimate:
    """One identified number: value, standard error and 95 % interval in ``unit``, and what it is worth."""

    value: float
    standard_error: float
    low: float
    high: float
    log_standard_error: float
    unit: str
    verdict: str


@dataclass(frozen=True)
class Identified:
    """What a record says about a person's balance; ``estimates`` by parameter name, the rest to judge them by."""

    model: StanceModel
    theta: Array
    covariance: Array
    estimates: dict[str, Estimate]
    record: Array = field(repr=False)
    step: float
    method: str
    log_likelihood: float
    innovations: Array = field(repr=False)
    whiteness: dict[str, Any]
    converged: bool
    iterations: int
    seconds: float
    fixed: dict[str, float]
    priors: dict[str, tuple[float, float]]
    notes: list[str]

    @property
    def free_count(self) -> int:
        """Number of parameters that were not fixed."""
        return len(self.model.names) - len(self.fixed)

    @property
    def aic(self) -> float:
        """Akaike's criterion: of two models of the same record, the smaller one predicts better."""
        return 2 * self.free_count - 2 * self.log_likelihood

    def describe(self) -> dict[str, Any]:
        """Everything worth printing, ready for JSON."""
        return {
            "method": self.method,
            "links": self.model.links,
            "samples": len(self.record),
            "rate_hz": 1 / self.step,
            "estimates": {name: vars(estimate) for name, estimate in self.estimates.items()},
            "relative_stiffness": self.estimates["stiffness"].value / self.model.mechanics.ankle_load,
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "whiteness": self.whiteness,
            "converged": self.converged,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "fixed": self.fixed,
            "notes": self.notes,
        }

    def spectrum(self, frequency: Array, *, draws: int = 0, seed: int = 0) -> tuple[Array, Array, Array]:
        """Model spectrum (m²/Hz) at ``frequency`` (Hz), and the 95 % band from ``draws`` of the parameters."""
        best = model_spectrum(self.model, self.theta, frequency, self.step)
        if not draws:
            return best, best, best
        random = np.random.default_rng(seed)
        drawn = random.multivariate_normal(self.theta, self.covariance, size=draws)
        low, high = (np.log([getattr(PARAMETERS[name], edge) for name in self.model.names]) for edge in ("low", "high"))
        many = [model_spectrum(self.model, np.clip(row, low, high), frequency, self.step) for row in drawn]
        return best, *np.percentile(many, (2.5, 97.5), axis=0)

    def smooth(self) -> xr.Dataset:
        """Posterior of sway and disturbance torque over the record: mean and standard deviation at each sample.

        A Rauch-Tung-Striebel smoother with the identified parameters. It is what the model believes about hidden
        quantities, given the record; it is not a measurement of them.
        """
        transition, covariance, output, sensor = self.model.sampled(self.theta, self.step)
        size, count = len(transition) + 1, len(self.record)  # one more state: the constant mean
        a, q, c = np.eye(size), np.zeros((size, size)), np.concatenate(([1.0], output))
        a[1:, 1:], q[1:, 1:] = transition, covariance
        mean, spread = np.zeros(size), np.diag(np.concatenate(([1.0], self.model.start_spread)) ** 2)
        ahead_mean, ahead_spread = np.empty((count, size)), np.empty((count, size, size))
        means, spreads = np.empty((count, size)), np.empty((count, size, size))
        for index, value in enumerate(self.record):
            ahead_mean[index], ahead_spread[index] = mean, spread
            gain = spread @ c / (c @ spread @ c + sensor**2)
            mean = mean + gain * (value - c @ mean)
            shrink = np.eye(size) - np.outer(gain, c)  # Joseph's form stays symmetric and positive
            spread = shrink @ spread @ shrink.T + sensor**2 * np.outer(gain, gain)
            means[index], spreads[index] = mean, spread
            mean, spread = a @ mean, a @ spread @ a.T + q
        for index in range(count - 2, -1, -1):
            back = spreads[index] @ a.T @ np.linalg.pinv(ahead_spread[index + 1], rcond=1e-14, hermitian=True)
            means[index] += back @ (means[index + 1] - ahead_mean[index + 1])
            spreads[index] += back @ (spreads[index + 1] - ahead_spread[index + 1]) @ back.T
        deviation = np.sqrt(np.clip(np.einsum("nii->ni", spreads), 0, None))
        links = self.model.links
        found = {"ankle_angle": (2, "rad"), "disturbance_torque": (2 + 2 * links, "N m")}
        if links == 2:
            found |= {"hip_angle": (3, "rad"), "hip_disturbance_torque": (3 + 2 * links, "N m")}
        variables: dict[str, Any] = {"cop": ("time", self.record, {"units": "m"})}
        variables["cop_model"] = ("time", means @ c, {"units": "m"})
        for name, (column, unit) in found.items():
            variables[name] = ("time", means[:, column], {"units": unit})
            variables[f"{name}_sd"] = ("time", deviation[:, column], {"units": unit})
        return xr.Dataset(variables, coords={"time": ("time", np.arange(count) * self.step, {"units": "s"})})

    def bootstrap(self, *, count: int = 100, seed: int = 0) -> dict[str, dict[str, float]]:
        """Refit ``count`` records drawn from the identified model: spread and bias that no formula assumes.

        Returns standard deviation, 2.5 and 97.5 percentiles and median of each free parameter, in its unit.
        """
        found = []
        for index in range(count):
            record = self.model.simulate(
                self.model.values(self.theta),
                rate=1 / self.step,
                count=len(self.record),
                seed=int(np.random.SeedSequence([seed, index]).generate_state(1)[0]),
                settle=60.0,
            )
            again = identify_balance(
                record,
                rate=1 / self.step,
                mechanics=self.model.mechanics,
                delay=self.model.delayed,
                method=self.method,
                fixed=self.fixed,
                priors=self.priors,
                start=self.model.values(self.theta),
                keep_rate=True,
            )
            found.append([again.estimates[name].value for name in self.estimates])
        table = np.array(found)
        low, middle, high = np.percentile(table, (2.5, 50, 97.5), axis=0)
        spread = table.std(axis=0, ddof=1)
        return {
            name: {
                "standard_error": float(spread[column]),
                "low": float(low[column]),
                "median": float(middle[column]),
                "high": float(high[column]),
            }
            for column, name in enumerate(self.estimates)
        }


def identify_balance(
    record: Array,
    *,
    rate: float,
    mechanics: Mechanics,
    delay: bool = False,
    method: str = "kalman",
    fixed: Mapping[str, float] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
    start: Mapping[str, float] | None = None,
    keep_rate: bool = False,
) -> Identified:
    """Identify balance control from a fore-aft COP ``record`` (m, forwards positive) sampled at ``rate`` Hz.

    ``fixed``: parameters to hold, in their units. ``priors``: name to (median, standard deviation of the logarithm),
    in place of the defaults of ``PARAMETERS``; an infinite deviation means no belief. A record that was low-pass
    filtered before is thinned to 10 Hz, as its samples are no longer independent looks at the plate; ``keep_rate``
    forbids that.
    """
    began = clock.perf_counter()
    find_name(method, METHODS, what="method", where="identify", error=RecordingError)
    check_number(rate, what="rate", unit="Hz", low=2, high=1e5, error=RecordingError)
    model = StanceModel(mechanics, delay=delay)
    samples, step, notes = _checked(np.asarray(record, float), float(rate), keep_rate)
    beliefs = _beliefs(model, priors or {})
    first = model.theta({**(start or {}), **(fixed or {})})
    free = np.array([index for index, name in enumerate(model.names) if name not in (fixed or {})], dtype=int)
    if not len(free):
        raise RecordingError("identify: every parameter is fixed; leave at least one open")
    low, high = (np.log([getattr(PARAMETERS[name], edge) for name in model.names]) for edge in ("low", "high"))
    medians, precision = _prior_terms(model, beliefs)
    information = _information(model, len(samples), step)

    def whole(part: Array) -> Array:
        theta = first.copy()
        theta[free] = part
        return theta

    def objective(method: str) -> Callable[[Array], tuple[float, Array]]:
        cost = _cost(model, samples, step, method)

        def total(part: Array) -> tuple[float, Array]:
            theta = whole(part)
            value, slope = cost(theta)
            off = theta - medians
            if not (math.isfinite(value) and np.isfinite(slope).all()):
                return math.inf, np.zeros(len(free))
            return value + 0.5 * float(precision @ off**2), (slope + precision * off)[free]

        return total

    def curvature(part: Array) -> Array:
        return np.asarray((information(whole(part)) + np.diag(precision))[np.ix_(free, free)])

    total, bounds = objective(method), {"low": low[free], "high": high[free]}
    begins = [first[free]]
    if start is None:  # the spectral cost is several times cheaper: it chooses where to begin
        search = objective("whittle")
        tried = [score(search, curvature, one[free], **bounds, most=PATIENCE) for one in _starts(model, first, free)]
        tried.sort(key=lambda result: result[1])
        begins = [result[0] for result in tried[: 1 if model.links == 1 else None]]  # two joints have several optima
    found = [score(total, curvature, begin, **bounds) for begin in begins]
    point, _, slope_left, iterations = min(found, key=lambda result: result[1])
    theta = first.copy()
    theta[free] = point
    inner = (point > low[free] + 1e-6) & (point < high[free] - 1e-6)
    hessian = _hessian(lambda part: total(part)[1], point)
    remaining = slope_left[inner] @ _inverse(hessian[np.ix_(inner, inner)]) @ slope_left[inner]
    converged = bool(remaining < 1e-3)  # squared distance from the optimum, in standard errors
    own = precision[free]
    covariance = np.zeros((len(theta), len(theta)))
    covariance[np.ix_(free, free)] = _inverse(hessian)
    estimates = {}
    slopes = model.slopes(theta)
    values = model.values(theta)
    for column, index in enumerate(free):
        name = model.names[index]
        error = math.sqrt(covariance[index, index])
        without = hessian.copy()
        without[column, column] -= own[column]  # what the record says without the belief about this parameter
        alone = math.sqrt(_inverse(without)[column, column])
        at_edge = not inner[column]
        verdict = (
            "at its bound"
            if at_edge
            else "identified"
            if alone <= IDENTIFIED
            else "weak"
            if alone <= WEAK
            else "not identifiable"
        )
        reach = np.clip(theta[index] + WIDTH * error * np.array([-1, 1]), low[index], high[index])
        edges = model.offset(name) + model.scale(name) * np.exp(reach)
        estimates[name] = Estimate(
            values[name],
            error * float(slopes[index]),
            float(edges[0]),
            float(edges[1]),
            error,
            PARAMETERS[name].unit,
            verdict,
        )
    filtered = kalman_function(model, len(samples), step)
    kalman_cost, _, innovations, _ = filtered(theta, 1000 * samples)
    worst = float(model.poles(theta).real.max())
    if worst >= 0:
        notes.append(
            f"the identified loop is not stable (a mode grows at {worst:.2g} 1/s); the record fits the model badly"
        )
    white = whiteness(np.asarray(innovations).ravel(), step)
    if not white["white"]:
        notes.append(white["sentence"])
    return Identified(
        model=model,
        theta=theta,
        covariance=covariance,
        estimates=estimates,
        record=samples,
        step=step,
        method=method,
        log_likelihood=-float(kalman_cost) - len(samples) * (0.5 * math.log(2 * math.pi) - math.log(1000)),
        innovations=np.asarray(innovations).ravel(),
        whiteness=white,
        converged=converged,
        iterations=iterations,
        seconds=clock.perf_counter() - began,
        fixed=dict(fixed or {}),
        priors=beliefs,
        notes=notes,
    )


def fisher_information(model: StanceModel, values: Mapping[str, float], *, rate: float, count: int) -> Array:
    """Expected information of ``count`` samples about the logarithms of all parameters (Whittle's formula).

    Its inverse bounds the covariance of any unbiased estimator (Cramér and Rao).
    """
    return _information(model, count, 1 / rate, points=count)(model.theta(values))


def _information(model: StanceModel, count: int, step: float, points: int = 256) -> Callable[[Array], Array]:
    """Expected information as a function of theta, summed over at most ``points`` representative frequencies."""
    every = np.fft.rfftfreq(count, step)[1 : (count + 1) // 2]
    edges = np.unique(np.round(np.geomspace(1, len(every) + 1, min(points, len(every)) + 1)).astype(int)) - 1
    if points >= len(every):
        edges = np.arange(len(every) + 1)
    weights = np.diff(edges)
    slopes = log_spectrum_slopes(model, every[(edges[:-1] + edges[1:] - 1) // 2], step)

    def information(theta: Array) -> Array:
        table = np.asarray(slopes(theta))
        return np.asarray(table.T @ (weights[:, None] * table))

    return information


def score(
    total: Callable[[Array], tuple[float, Array]],
    curvature: Callable[[Array], Array],
    start: Array,
    *,
    low: Array,
    high: Array,
    most: int = 200,
) -> tuple[Array, float, Array, int]:
    """Minimise within bounds by damped quasi-Newton steps that begin with the expected Hessian (Fisher's).

    Far fewer evaluations than methods that have to learn the curvature from nothing. Where record and model disagree
    that is still a poor guide: after ``PATIENCE`` steps the real Hessian, with its signs made positive, takes over.
    Returns the point, its cost, its gradient and the number of steps, ``most`` at most.
    """
    point = np.clip(start, low, high)
    value, slope = total(point)
    matrix, damping = curvature(point), 1e-2
    for iteration in range(1, most + 1):
        moving = ~(((point <= low) & (slope > 0)) | ((point >= high) & (slope < 0)))
        if not moving.any():
            return point, value, slope, iteration
        if iteration > PATIENCE:
            matrix = _positive(_hessian(lambda part: total(part)[1], point))
        used = matrix[np.ix_(moving, moving)]
        while True:
            step = np.zeros(len(point))
            step[moving] = -np.linalg.solve(used + damping * np.diag(np.diag(used) + 1e-3), slope[moving])
            step *= min(1.0, 1.5 / np.abs(step).max())
            trial = np.clip(point + step, low, high)
            promised = -float(slope @ (trial - point))
            if promised < 1e-5 and 1e-3 < damping < 1e10:  # small because damped, not because the end is near
                matrix, damping = _positive(_hessian(lambda part: total(part)[1], point)), 1e-3
                used = matrix[np.ix_(moving, moving)]
                continue
            if promised < 1e-5 or damping > 1e10:
                return point, value, slope, iteration
            trial_value, trial_slope = total(trial)
            if trial_value <= value - 1e-4 * promised:
                break
            damping = max(10 * damping, 1e-3)
        moved, turned = trial - point, trial_slope - slope
        if moved @ turned > 1e-10:  # the update of Broyden, Fletcher, Goldfarb and Shanno
            along = matrix @ moved
            matrix = matrix + np.outer(turned, turned) / (moved @ turned) - np.outer(along, along) / (moved @ along)
        point, value, slope = trial, trial_value, trial_slope
        damping = max(damping / 10, 1e-9)
    return point, value, slope, iteration


def whiteness(innovations: Array, step: float) -> dict[str, Any]:
    """Whether standardised innovations are white noise: what a model that explains a record leaves behind.

    Lag-one correlation, Ljung and Box's test over 20 lags, and the cumulative periodogram (Bartlett), whose largest
    departure from a straight line tells at which frequency the model misses power.
    """
    values = innovations - innovations.mean()
    count = len(values)
    spectrum = np.abs(np.fft.rfft(values)) ** 2
    correlation = np.fft.irfft(np.abs(np.fft.rfft(values, 2 * count)) ** 2)[:21]
    correlation = correlation / correlation[0]
    lags = np.arange(1, 21)
    box = count * (count + 2) * float(np.sum(correlation[1:] ** 2 / (count - lags)))
    power = spectrum[1 : (count + 1) // 2]
    frequency = np.fft.rfftfreq(count, step)[1 : (count + 1) // 2]
    cumulative = np.cumsum(power) / power.sum()
    departure = cumulative - np.arange(1, len(power) + 1) / len(power)
    p_periodogram = float(kstwobign.sf(np.abs(departure).max() * math.sqrt(len(power))))
    white = p_periodogram > 0.01
    sentence = "innovations are white: the model explains the record"
    if not white:
        edges = np.geomspace(frequency[0], frequency[-1] * 1.0001, 9)
        bands = [(frequency >= low) & (frequency < high) for low, high in pairwise(edges)]
        means = [float(power[band].mean() / power.mean()) if band.any() else 1.0 for band in bands]
        # The mean of k exponential variables has a relative deviation of 1/√k.
        worst = int(np.argmax([abs(mean - 1) * math.sqrt(band.sum()) for mean, band in zip(means, bands, strict=True)]))
        sentence = (
            f"innovations are not white (p = {p_periodogram:.1g}): between {edges[worst]:.2g} and "
            f"{edges[worst + 1]:.2g} Hz the record has {means[worst]:.2g} times the power the model expects"
        )
    return {
        "white": white,
        "standard_deviation": float(innovations.std()),
        "lag_one": float(correlation[1]),
        "p_ljung_box": float(chi2.sf(box, len(lags))),
        "p_periodogram": p_periodogram,
        "sentence": sentence,
    }


def _checked(record: Array, rate: float, keep_rate: bool) -> tuple[Array, float, list[str]]:
    """The record fit for identification: checked, and thinned where it was filtered before."""
    notes: list[str] = []
    if record.ndim != 1:
        raise RecordingError(f"identify: the record has shape {record.shape}, but must be one column of COP in m")
    if not np.isfinite(record).all():
        at = int(np.argmin(np.isfinite(record)))
        raise RecordingError(
            f"identify: sample {at} ({at / rate:.2f} s) is not a number; cut the record to a part without gaps"
        )
    if len(record) / rate < SHORTEST or len(record) < FEWEST:
        raise RecordingError(
            f"identify: the record lasts {len(record) / rate:.3g} s with {len(record)} samples, but sway says nothing "
            f"about control below {SHORTEST:g} s and {FEWEST} samples; record 60 s or more"
        )
    spread = float(record.std())
    if spread < LEAST_SWAY:
        raise RecordingError(
            f"identify: the COP stays within {1e6 * spread:.2g} µm (standard deviation), as no standing person does; "
            "is this the right column, and in metres?"
        )
    if spread > 0.2:
        raise RecordingError(
            f"identify: the COP has a standard deviation of {spread:.3g} m, more than feet allow; is it in cm or mm?"
        )
    thin = int(rate // BAND_LIMIT_RATE)
    if not keep_rate and thin > 1 and filtered_before(record, rate):
        record, rate = record[::thin], rate / thin
        notes.append(f"the record was low-pass filtered before; every {_ordinal(thin)} sample is used ({rate:.3g} Hz)")
    return record, 1 / rate, notes


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _beliefs(model: StanceModel, priors: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Priors by name: (median in its unit, standard deviation of the logarithm)."""
    found = {}
    for name in model.names:
        parameter = PARAMETERS[name]
        if math.isfinite(parameter.prior_log_sd):
            median = model.offset(name) + model.scale(name) * parameter.prior_median
            found[name] = (median, parameter.prior_log_sd)
    for name, (median, spread) in priors.items():
        find_name(name, model.names, what="parameter", where="priors", error=RecordingError)
        if not spread > 0:
            raise RecordingError(f"priors: the log-sd of {name} is {spread:g}, but must be above 0 (infinite for none)")
        found[name] = (float(median), float(spread))
    return found


def _prior_terms(model: StanceModel, beliefs: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    medians = model.theta({name: median for name, (median, _) in beliefs.items()})
    precision = np.array([1 / beliefs[name][1] ** 2 if name in beliefs else 0.0 for name in model.names])
    return medians, precision


def _cost(model: StanceModel, samples: Array, step: float, method: str) -> Callable[[Array], tuple[float, Array]]:
    if method == "kalman":
        function, values = kalman_function(model, len(samples), step), 1000 * samples
    else:
        frequency, values = tapered_periodogram(1000 * samples, step)
        function = whittle_function(model, frequency, step)
    data = ca.DM(values)

    def cost(theta: Array) -> tuple[float, Array]:
        value, slope = function(theta, data)[:2]
        return float(value), np.asarray(slope).ravel()

    return cost


def _starts(model: StanceModel, first: Array, free: NDArray[np.intp]) -> list[Array]:
    """Places to begin, well apart, as stiff and lazy control, or ankle and hip noise, can explain sway alike."""
    changes: list[dict[str, float]] = [{}, {"stiffness": 0.25, "damping": 0.4}]
    if model.links == 2:
        changes += [{"noise_intensity": 0.01, "hip_noise_intensity": 0.5}, {"hip_noise_intensity": 0.01}]
    starts = []
    for factors in changes:
        begin = first.copy()
        for index in free:
            begin[index] += math.log(factors.get(model.names[index], 1.0))
        starts.append(begin)
    return starts


def _hessian(gradient: Callable[[Array], Array], at: Array) -> Array:
    size = 1e-4
    columns = [(gradient(at + size * unit) - gradient(at - size * unit)) / (2 * size) for unit in np.eye(len(at))]
    matrix = np.array(columns)
    return (matrix + matrix.T) / 2


def _positive(hessian: Array) -> Array:
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors * np.maximum(np.abs(values), 1e-3)) @ vectors.T)


def _inverse(hessian: Array) -> Array:
    """Inverse with directions the record says nothing about left wide open instead of negative."""
    values, vectors = np.linalg.eigh(hessian)
    return np.asarray((vectors / np.maximum(values, 1e-6)) @ vectors.T)
