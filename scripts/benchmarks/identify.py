"""Identification of balance control against two peers, on the same simulated record of 60 s at 100 Hz.

``rows()`` gives one row per peer: {job, peer, ours_per_s, peer_per_s, ratio, agree}; a rate is fits per second, and
``agree`` says that our fit is at least as probable as the peer's.

opty lives in an environment of its own, .venv-opty; without it the row says why it is empty.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize
from scipy.signal import lfilter

from benchmarks.problem import ROOT, missing, row
from posture.identify import Mechanics, StanceModel, identify_balance
from posture.identify.fit import _beliefs, _prior_terms
from posture.identify.likelihood import _functions, kalman_function
from posture.identify.model import PARAMETERS

OPTY = ROOT / ".venv-opty/bin/python"
RATE, COUNT = 100.0, 6000
MASS, HEIGHT, INERTIA, GRAVITY = 60.0, 1.13, 76.0, 9.81
MECHANICS = Mechanics.pendulum(mass=MASS, height=HEIGHT, inertia=INERTIA, gravity=GRAVITY)
TRUTH = {
    "stiffness": 1470.0,
    "damping": 200.0,
    "integral": 14.32,
    "noise_intensity": 1.25,
    "noise_time_constant": 80.0,
    "plate_noise": 3e-4,
}


def posterior(model: StanceModel, record: np.ndarray, theta: np.ndarray) -> float:
    """Exact log-likelihood plus log-prior (constants left out): what all fits are judged by."""
    medians, precision = _prior_terms(model, _beliefs(model, {}))
    cost = float(kalman_function(model, len(record), 1 / RATE)(theta, 1000 * record)[0])
    return -cost - 0.5 * float(precision @ (theta - medians) ** 2)


def prediction_error_fit(model: StanceModel, record: np.ndarray, **options: float) -> np.ndarray:
    """The usual NumPy and SciPy way: steady Kalman gain, innovations as one filter, L-BFGS-B with differences."""
    medians, precision = _prior_terms(model, _beliefs(model, {}))
    low, high = (np.log([getattr(PARAMETERS[name], edge) for name in model.names]) for edge in ("low", "high"))
    values = 1000 * (record - record.mean())

    def cost(theta: np.ndarray) -> float:
        transition, covariance, output, sensor = model.sampled(theta, 1 / RATE)
        output, variance = 1000 * output, (1000 * sensor) ** 2
        try:
            steady = solve_discrete_are(transition.T, output[:, None], covariance, [[variance]])
        except (np.linalg.LinAlgError, ValueError):
            return 1e10
        innovation = output @ steady @ output + variance
        gain = transition @ steady @ output / innovation
        errors = lfilter(np.poly(transition), np.poly(transition - np.outer(gain, output)), values)
        prior = 0.5 * precision @ (theta - medians) ** 2
        return float(0.5 * (len(values) * np.log(innovation) + errors @ errors / innovation) + prior)

    start = model.theta({})
    found = minimize(cost, start, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)), options=options)
    return np.asarray(found.x)


def our_seconds(record: np.ndarray, repeats: int = 5) -> tuple[float, Any]:
    """Median time of a fit, the symbolic functions built anew each time."""
    seconds = []
    for _ in range(repeats):
        _functions.clear()
        began = time.perf_counter()
        found = identify_balance(record, rate=RATE, mechanics=MECHANICS)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds)), found


def _row(peer: str, ours: float, theirs: float, loss: float, note: str) -> dict[str, Any]:
    """``loss``: by how much the peer's fit is more probable than ours, in log-posterior; none is allowed."""
    return row("identify", peer, 1 / ours, 1 / theirs, max(0.0, loss), 1e-3) | {"note": note}


def opty_fit(record: np.ndarray) -> tuple[dict[str, float] | None, str]:
    """Gains and times of opty, or the reason why there are none."""
    if not OPTY.exists():
        return None, "opty is not installed; scripts/bench says why"
    known = TRUTH | {"inertia": INERTIA, "load": MASS * GRAVITY * HEIGHT, "weight": MASS * GRAVITY, "height": HEIGHT}
    with tempfile.TemporaryDirectory() as folder:
        data, truth = Path(folder) / "record.npy", Path(folder) / "truth.json"
        np.save(data, record - record.mean())
        truth.write_text(json.dumps(known | {"step": 1 / RATE}))
        script = Path(__file__).with_name("opty_peer.py")
        done = subprocess.run([OPTY, script, data, truth], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, f"opty failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def rows() -> list[dict[str, Any]]:
    """The comparisons; opty alone takes half a minute."""
    model = StanceModel(MECHANICS)
    record = model.simulate(TRUTH, rate=RATE, count=COUNT, seed=7)
    ours, found = our_seconds(record)
    best = posterior(model, record, found.theta)
    began = time.perf_counter()
    early = posterior(model, record, prediction_error_fit(model, record))
    early_seconds = time.perf_counter() - began
    began = time.perf_counter()
    theta = prediction_error_fit(model, record, ftol=1e-13, gtol=1e-3, maxfun=100_000)
    seconds = time.perf_counter() - began
    other = posterior(model, record, theta)
    note = (
        f"log-posterior ours {best:.3f}, peer {other:.3f}; with SciPy's default tolerances the peer stops after "
        f"{early_seconds:.2f} s at {early:.3f} (ratio {early_seconds / ours:.1f})"
    )
    table = [_row("NumPy prediction error, steady gain, converged", ours, seconds, other - best, note)]
    gains, reason = opty_fit(record)
    if gains is None:
        return [*table, missing("identify", "opty (collocation, IPOPT)", reason)]
    values = TRUTH | {name: gains[name] for name in ("stiffness", "damping", "integral")}
    other = posterior(model, record, model.theta(values))
    note = (
        f"log-posterior ours {best:.3f}, opty's gains with the true noise {other:.3f}; "
        f"opty KP {gains['stiffness']:.0f} KD {gains['damping']:.0f}, "
        f"build {gains['build_s']:.1f} s, solve {gains['solve_s']:.1f} s"
    )
    total = gains["build_s"] + gains["solve_s"]
    return [*table, _row("opty (collocation, IPOPT)", ours, total, other - best, note)]
