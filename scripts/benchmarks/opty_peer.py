"""Identify the gains of the controlled inverted pendulum with opty (direct collocation and IPOPT).

Run by identify.py in an environment of its own: python opty_peer.py record.npy truth.json. Prints JSON.
The record is explained by states, a free noise trajectory and three gains at once; the noise intensity, its time
constant and the plate noise are given, as this kind of estimator cannot find them.
"""

import json
import sys
import time

import numpy as np
import sympy as sm
from opty import Problem

record = np.load(sys.argv[1])
with open(sys.argv[2]) as stream:
    known = json.load(stream)
nodes, step = len(record), known["step"]

began = time.perf_counter()
t = sm.symbols("t")
z, u, v, d, w = (sm.Function(name)(t) for name in ("z", "u", "v", "d", "w"))
kp, ki, kd = sm.symbols("kp ki kd")
inertia, load, weight = known["inertia"], known["load"], known["weight"]
s, tau, r = known["noise_intensity"], known["noise_time_constant"], known["plate_noise"]
eom = sm.Matrix(
    [
        z.diff(t) - u,
        u.diff(t) - v,
        inertia * v.diff(t) - load * u - d + kp * u + ki * z + kd * v,
        d.diff(t) + d / tau - s * w,
    ]
)
# Free vector: z, u, v, d, w trajectories, then the gains in the order of their names (kd, ki, kp).
cut = [slice(k * nodes, (k + 1) * nodes) for k in range(5)]


def parts(free):
    """States, noise, gains and COP in the free vector."""
    states = [free[c] for c in cut[:4]]
    gains = free[5 * nodes :]
    cop = (gains[2] * states[1] + gains[1] * states[0] + gains[0] * states[2] - states[3]) / weight
    return states, free[cut[4]], gains, cop


def objective(free):
    """Misfit of the record and size of the noise, each in its own standard deviations."""
    _, noise, _, cop = parts(free)
    return 0.5 * np.sum(((cop - record) / r) ** 2) + 0.5 * step * np.sum(noise**2)


def gradient(free):
    """Of the objective."""
    states, noise, gains, cop = parts(free)
    error = (cop - record) / r**2 / weight
    result = np.zeros_like(free)
    for k, factor in enumerate((gains[1], gains[2], gains[0], -1.0)):
        result[cut[k]] = factor * error
    result[cut[4]] = step * noise
    result[5 * nodes :] = [error @ states[2], error @ states[0], error @ states[1]]
    return result


problem = Problem(
    objective,
    gradient,
    eom,
    (z, u, v, d),
    nodes,
    step,
    time_symbol=t,
    integration_method="midpoint",
    bounds={kp: (1.0201 * load, 20 * load), kd: (0.0201 * load, 10 * load), ki: (1.1e-5 * load, 3 * load)},  # as ours
)
built = time.perf_counter()
for name, value in (("print_level", 0), ("max_iter", 300), ("tol", 1e-6)):
    problem.add_option(name, value)
guess = np.zeros(problem.num_free)
guess[cut[1]] = record / known["height"]
guess[5 * nodes :] = [0.4 * load, 0.03 * load, 1.8 * load]
solution, info = problem.solve(guess)
ended = time.perf_counter()
kd_, ki_, kp_ = solution[5 * nodes :]
print(
    json.dumps(
        {
            "build_s": built - began,
            "solve_s": ended - built,
            "stiffness": kp_,
            "integral": ki_,
            "damping": kd_,
            "status": int(info["status"]),
        }
    )
)
