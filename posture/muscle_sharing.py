"""Share joint torques among muscles: exactly, for many frames at once, with a certificate for each.

In every frame: minimise J = Σ aᵢᵖ over activations a (a muscle's stress over its largest, σ/σ₀) such that the muscles
give the torques, Σ rⱼᵢ cᵢ aᵢ = τⱼ, and lowᵢ <= aᵢ <= highᵢ; r: moment arms, c: forces at full activation. Any p >= 1;
p = ∞ is the least peak activation (and among those the least Σ a²).

The method is a primal-dual interior point (Mehrotra's predictor and corrector) run on all frames together in NumPy,
followed by Newton steps on the constraints found active, which make the answer exact to rounding. No library does this:
solvers of one small problem spend their time on the call (CasADi's qrqp and ipopt, HiGHS), those for many need a GPU.
Muscles of different legs share no joint, so they are solved apart.

Every frame carries its proof: with multipliers y of the torques, a is optimal exactly if it stays where it is when it
steps down the slope J' - Gᵀy and is put back between its bounds. The distance it moves is ``kkt``. Above p = 3 this is
done in units of the frame's own peak (within a few per cent), where J still has a slope; for p = ∞, ``kkt`` is the peak
less the bound that the multipliers prove.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posture.errors import PostureError, check_number

Array = NDArray[np.floating]

FRAMES_AT_ONCE = 2048  # keeps the work in the processor's cache
MAX_ITERATIONS = 100
KKT_GOAL = 1e-10  # activation
TORQUE_GOAL = 1e-10  # of the largest torque the muscles could give
SHORTFALL_LIMIT = 1e-7  # of the same: what is missing beyond this makes a frame infeasible


class SharingError(PostureError):
    """The torques, moment arms or bounds given to muscle sharing are wrong."""


@dataclass(frozen=True)
class Sharing:
    """The answer and its proof; first index is the frame.

    ``activation``, ``force`` (N) per muscle; ``reserve`` (N·m) per joint; ``multiplier`` per joint (dJ/dτ, 1/(N·m));
    ``kkt`` (activation); ``torque_residual`` (N·m): what the muscles give minus what was asked; ``shortfall`` (N·m):
    what no activation can give, zero in feasible frames; ``objective``: J. An infeasible frame holds the activations
    that come nearest to the torques (least squares), and its ``kkt`` proves that; it has no multipliers (NaN).
    """

    activation: Array
    force: Array
    reserve: Array
    multiplier: Array
    objective: Array
    kkt: Array
    torque_residual: Array
    shortfall: Array
    exponent: float

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Frames in which the muscles can give the torques."""
        return np.asarray(~np.any(self.shortfall, axis=1))

    def complaint(self, joints: list[str], frame: int) -> str:
        """Which joints lack strength in a frame and by how much, as one sentence."""
        lacking = [
            f"{name} lacks {abs(value):.1f} N·m of {'positive' if value > 0 else 'negative'} torque"
            for name, value in zip(joints, self.shortfall[frame], strict=True)
            if value
        ]
        return f"frame {frame}: " + (", ".join(lacking) if lacking else "strong enough")


def share(
    moment_arm: Array,
    torque: Array,
    capacity: Array,
    *,
    exponent: float = 2.0,
    low: Array | float = 0.0,
    high: Array | float = 1.0,
    reserve: float | None = None,
) -> Sharing:
    """Share torques (frames × joints, N·m) among muscles.

    ``moment_arm``: frames × joints × muscles, m; ``capacity``: force at full activation, N, frames × muscles or one
    row. ``low`` and ``high`` bound the activations. ``reserve``: if given, each joint also has a motor of that torque
    (N·m) at "activation" 1, unbounded and of either sign, which counts in J like a muscle (as in OpenSim).
    """
    arms, torques, forces, lows, highs = _checked(moment_arm, torque, capacity, low, high)
    if exponent != math.inf:
        check_number(exponent, what="exponent", unit="", low=1, high=100, error=SharingError, hint="or infinity")
    if reserve is not None:
        check_number(reserve, what="reserve", unit="N·m", low=1e-6, high=1e6, error=SharingError)
    frames, joints, muscles = arms.shape
    effect = arms * forces[:, None, :]
    motors = np.zeros((joints, 0))
    if reserve is not None:
        motors, floor = reserve * np.eye(joints), -np.inf
        if exponent < 2 or exponent == math.inf:  # the criterion has a kink at zero: one motor for each direction
            motors, floor = np.hstack((motors, -motors)), 0.0
        beside = (frames, motors.shape[1])
        effect = np.concatenate((effect, np.broadcast_to(motors, (frames, *motors.shape))), axis=2)
        lows = np.concatenate((lows, np.full(beside, floor)), axis=1)
        highs = np.concatenate((highs, np.full(beside, np.inf)), axis=1)
    found = {
        "activation": np.zeros(effect.shape[::2]),
        "multiplier": np.zeros((frames, joints)),
        "kkt": np.zeros(frames),
        "shortfall": np.zeros((frames, joints)),
    }
    for rows, columns in _groups(np.any(effect != 0, axis=0)):
        for start in range(0, frames, FRAMES_AT_ONCE):
            part = slice(start, min(start + FRAMES_AT_ONCE, frames))
            G = np.ascontiguousarray(np.moveaxis(effect[part][:, rows][:, :, columns], 0, 2))
            b, lo, hi = (
                np.ascontiguousarray(x.T)
                for x in (torques[part][:, rows], lows[part][:, columns], highs[part][:, columns])
            )
            a, y, kkt, missing = _solve(G, b, lo, hi, exponent)
            found["activation"][part, columns] = a.T
            found["multiplier"][part, rows] = np.where(missing.any(axis=0), np.nan, y).T
            found["shortfall"][part, rows] = missing.T
            found["kkt"][part] = np.maximum(found["kkt"][part], kkt)
    activation = found["activation"]
    own = activation[:, :muscles]
    residual = np.einsum("njm,nm->nj", effect, activation) - torques
    objective = (np.abs(activation) ** exponent).sum(axis=1) if exponent != math.inf else activation.max(axis=1)
    return Sharing(
        own,
        own * forces,
        activation[:, muscles:] @ motors.T,
        found["multiplier"],
        objective,
        found["kkt"],
        residual,
        found["shortfall"],
        float(exponent),
    )


def eliminate(
    moment_arm: Array, torque: Array, capacity: Array, *, all_at_once: bool = True
) -> tuple[Array, NDArray[np.bool_]]:
    """The literal loop after equation (15) of the jump paper: pseudo-inverse, negative muscles set to zero, again.

    Returns activations (frames × muscles; no upper bound is heeded) and whether the torques are still met. Neither is
    this the optimum nor does it always end with the torques met; ``share`` is the answer, this stays for comparison.
    ``all_at_once``: drop every negative muscle in each round (the paper's words), or only the most negative one.
    """
    arms, torques, forces, _, _ = _checked(moment_arm, torque, capacity, 0.0, 1.0)
    effect = arms * forces[:, None, :]
    activation, met = np.zeros((len(arms), arms.shape[2])), np.zeros(len(arms), bool)
    for frame, (G, b) in enumerate(zip(effect, torques, strict=True)):
        used = np.ones(G.shape[1], bool)
        while used.any():
            a = np.zeros(G.shape[1])
            a[used] = np.linalg.lstsq(G[:, used], b, rcond=None)[0]
            if a.min() >= -1e-12:
                break
            used &= (a > -1e-12) if all_at_once else np.arange(len(a)) != np.argmin(a)
        else:
            a = np.zeros(G.shape[1])
        activation[frame] = np.maximum(a, 0)
        met[frame] = np.abs(G @ a - b).max() <= 1e-6 * max(1.0, np.abs(b).max())
    return activation, met


def _checked(
    moment_arm: Array, torque: Array, capacity: Array, low: Array | float, high: Array | float
) -> tuple[Array, Array, Array, Array, Array]:
    arms, torques = np.asarray(moment_arm, float), np.asarray(torque, float)
    if arms.ndim != 3 or torques.shape != arms.shape[:2]:
        raise SharingError(
            f"moment arms have shape {arms.shape} and torques {torques.shape}; "
            "give frames × joints × muscles and frames × joints"
        )
    row = (arms.shape[0], arms.shape[2])
    try:
        forces, lows, highs = (np.broadcast_to(np.asarray(x, float), row) for x in (capacity, low, high))
    except ValueError:
        raise SharingError(
            f"capacity and bounds must be one number, one row of {row[1]} or {row[0]} × {row[1]} (frames × muscles)"
        ) from None
    for name, values in (("moment arms", arms), ("torques", torques), ("capacities", forces), ("lower bounds", lows)):
        if not np.isfinite(values).all():
            frame = int(np.argwhere(~np.isfinite(values))[0][0])
            raise SharingError(f"the {name} of frame {frame} are not finite; fill gaps in the recording first")
    if np.any(forces < 0):
        raise SharingError("a muscle's capacity is negative; it must be zero or more (N)")
    if np.any(lows < 0) or not np.all(lows <= highs):
        frame = int(np.argwhere((lows < 0) | ~(lows <= highs))[0][0])
        raise SharingError(f"frame {frame}: activation bounds must obey 0 <= low <= high")
    return arms, torques, forces, lows, highs


def _groups(coupled: NDArray[np.bool_]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Joints and muscles that hang together, as index pairs; muscles that turn nothing come with no joint."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    joints, muscles = coupled.shape
    graph = np.zeros((joints + muscles,) * 2, bool)
    graph[:joints, joints:] = coupled
    labels = connected_components(csr_array(graph), directed=False)[1]
    return [
        (np.flatnonzero(labels[:joints] == label), np.flatnonzero(labels[joints:] == label))
        for label in np.unique(labels)
    ]


# ---------------------------------------------------------------- the solver; frame is the last index


def _slope(a: Array, p: float) -> Array:
    if p == 2:
        return 2 * a
    if p == 3:
        return 3 * a * np.abs(a)
    return np.asarray(p * np.sign(a) * np.abs(a) ** (p - 1))


def _curvature(a: Array, p: float) -> Array:
    if p == 2:
        return np.full_like(a, 2.0)
    if p == 3:
        return 6 * np.abs(a)
    return np.asarray(p * (p - 1) * np.maximum(np.abs(a), 1e-12) ** (p - 2))


def _damping(p: float) -> float:
    """Curvature added so that the equations stay regular; at high p a muscle below the peak has none of its own."""
    return 1e-14 if p <= 3 else 1e-9


def _top(a: Array, p: float) -> Array:
    """How far a Newton step may raise activations: to where the peak's slope has grown by e, as it is straight."""
    return np.asarray(np.abs(a).max(axis=0) * (1 + 1 / (p - 1)))


def _shortened(t: Array, a: Array, da: Array, stiffness: Array, p: float) -> Array:
    """Steps halved until the slope has not grown far beyond what the Newton step counted on."""
    slope, counted_on, enough = _slope(a, p), _curvature(a, p) * da, 0.5 * (da * da / stiffness).sum(axis=0)
    for _ in range(20):
        beyond = ((_slope(a + t * da, p) - slope - t * counted_on) * da).sum(axis=0)
        if not np.any(beyond > enough):
            break
        t = np.where(beyond > enough, t / 2, t)
    return t


def _solve(G: Array, b: Array, lo: Array, hi: Array, p: float) -> tuple[Array, Array, Array, Array]:
    """Activations (m × n), multipliers (k × n), certificate (n) and shortfall (k × n) of n frames."""
    k, m, n = G.shape
    if m == 0 or k == 0:
        a = np.where(np.isfinite(lo), lo, 0.0)  # a muscle that turns nothing rests; a joint without muscles lacks all
        return a, np.zeros((k, n)), np.zeros(n), b.copy()
    if p == math.inf:
        return _least_peak(G, b, lo, hi)
    scale = np.maximum(np.abs(G).sum(axis=1), 1e-12)  # N·m each joint could get at most
    G, b = G / scale[:, None], b / scale
    fixed = hi - lo < 1e-9
    b_free = b - (G * np.where(fixed, lo, 0.0)).sum(axis=1)
    solve = _interior if p <= 3 else _steep
    a, y, kkt = solve(np.where(fixed, 0.0, G), b_free, lo, np.where(fixed, lo + 1.0, hi), p)
    a = np.where(fixed, lo, a)
    gap = (G * a).sum(axis=1) - b
    missing = np.zeros_like(b)
    for frame in np.flatnonzero((np.abs(gap).max(axis=0) > 1e-9) | (kkt > 1e-6)):
        nearest, lack = _nearest(G[:, :, frame], b[:, frame], lo[:, frame], hi[:, frame], scale[:, frame])
        if np.abs(lack).max() > SHORTFALL_LIMIT:
            a[:, frame], missing[:, frame] = nearest, np.where(np.abs(lack) > SHORTFALL_LIMIT, lack, 0.0)
            weight = (scale[:, frame] / scale[:, frame].max()) ** 2
            downhill = nearest + G[:, :, frame].T @ (weight * lack)
            kkt[frame] = np.abs(nearest - np.clip(downhill, lo[:, frame], hi[:, frame])).max()
    return a, y / scale, kkt, missing * scale


def _nearest(G: Array, b: Array, lo: Array, hi: Array, scale: Array) -> tuple[Array, Array]:
    """Activations within bounds whose torques come nearest (least squares in N·m), and what still lacks."""
    from scipy.optimize import lsq_linear

    wide = np.maximum(hi, lo + 1e-12)
    best = lsq_linear(G * scale[:, None], b * scale, bounds=(lo, wide), method="bvls", tol=1e-14).x
    return np.clip(best, lo, hi), b - G @ best


def _least_peak(G: Array, b: Array, lo: Array, hi: Array) -> tuple[Array, Array, Array, Array]:
    """Exponent ∞: one linear programme per frame for the peak (HiGHS), then the least squares under it.

    The certificate is the gap between the peak of the answer and a bound that no peak can be below.
    """
    from scipy.optimize import linprog

    k, m, n = G.shape
    scale = np.maximum(np.abs(G).sum(axis=1), 1e-12)
    G, target = G / scale[:, None], b / scale
    peak, y, missing = np.full(n, np.inf), np.zeros((k, n)), np.zeros((k, n))
    for frame in range(n):
        for attempt in range(2):
            # In units of what the peak must be at least, as HiGHS calls 1e-7 nothing.
            unit = max(float(np.abs(target[:, frame]).max()), float(lo[:, frame].max()), 1e-12)
            found = linprog(
                np.append(np.zeros(m), 1.0),
                A_ub=np.hstack((np.eye(m), -np.ones((m, 1)))),
                b_ub=np.zeros(m),
                A_eq=np.hstack((G[:, :, frame], np.zeros((k, 1)))),
                b_eq=target[:, frame] / unit,
                bounds=[*zip(lo[:, frame] / unit, hi[:, frame] / unit, strict=True), (0, None)],
                method="highs",
            )
            if found.status == 0:
                peak[frame], y[:, frame] = found.fun * unit, found.eqlin.marginals
                break
            if attempt == 0:
                missing[:, frame] = _nearest(
                    G[:, :, frame], target[:, frame], lo[:, frame], hi[:, frame], scale[:, frame]
                )[1]
                target[:, frame] -= missing[:, frame]
    a, _, _, _ = _solve(G, target, lo, np.clip(peak * (1 + 1e-7) + 1e-12, lo, hi), 2.0)
    gap = np.maximum(a.max(axis=0) - _lowest_peak(G, target, lo, hi, y), 0.0)
    return a, y / scale, gap, missing * scale


def _lowest_peak(G: Array, b: Array, lo: Array, hi: Array, y: Array) -> Array:
    """Bound by duality: no activations within bounds that give the torques have a lower peak, whatever y is.

    With z = Gᵀy: y·b + min over t of t - Σ max z x over lo <= x <= min(hi, t), which bends only where t is a bound.
    """
    z = (G * y[:, None]).sum(axis=0)
    y = y / np.maximum(np.where(np.isfinite(hi), 0.0, np.maximum(z, 0)).sum(axis=0), 1.0)  # else there is no bound
    z = (G * y[:, None]).sum(axis=0)
    least = lo.max(axis=0)
    bends = np.vstack((least, np.where(np.isfinite(hi), np.maximum(hi, least), least)))
    values = [t - (np.maximum(z, 0) * np.minimum(hi, t)).sum(axis=0) for t in bends]
    return np.asarray((y * b).sum(axis=0) + np.min(values, axis=0) + (np.maximum(-z, 0) * lo).sum(axis=0))


def _steep(G: Array, b: Array, lo: Array, hi: Array, p: float) -> tuple[Array, Array, Array]:
    """Exponents above 3, reached in steps, each in units of the last one's peak and from its answer.

    Without the units nothing would be proved: at a = 0.3 the slope of a¹⁰⁰ is 1e-50, and any a looks like an optimum.
    The certificate is put back into activation by the same unit.
    """
    a, y, kkt = _interior(G, b, lo, hi, 2.0)
    able = kkt < 1e-6  # where the torques cannot be met now, they cannot at any exponent
    G, b, lo, hi, x, z = (values[..., able] for values in (G, b, lo, hi, a, y))
    stage, peak = 2.0, np.ones(x.shape[1])
    while stage < p:
        before, stage = stage, min(1.5 * stage, p)
        x = x * peak
        peak = np.maximum(np.abs(x).max(axis=0), 1e-9)
        x, z, proof = _interior(G, b / peak, lo / peak, hi / peak, stage, (x / peak, z * stage / before))
    a[:, able], y[:, able], kkt[able] = x * peak, z * peak ** (p - 1), proof * peak
    return a, y, kkt


def _interior(
    G: Array, b: Array, lo: Array, hi: Array, p: float, start: tuple[Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """Predictor-corrector interior point; frames leave the batch as soon as their polished answer is proved."""
    k, m, n = G.shape
    answer, multiplier, proof = np.zeros((m, n)), np.zeros((k, n)), np.full(n, np.inf)
    a: Array
    y: Array
    below: Array
    above: Array
    left = np.arange(n)
    bounded_below, bounded_above = np.isfinite(lo), np.isfinite(hi)
    damping = _damping(p)
    a = np.where(bounded_below, np.where(bounded_above, lo + 0.3 * np.minimum(hi - lo, 1.0), lo + 0.3), 0.1)
    y = np.zeros((k, n))
    below, above = bounded_below * 0.3, bounded_above * 0.3  # multipliers of the bounds
    if start is not None:
        width = np.minimum(hi - lo, 1.0)
        a, y = np.clip(start[0], lo + 0.01 * width, hi - 0.01 * width), start[1]
        below, above = bounded_below * 0.01 / (a - lo), bounded_above * 0.01 / (hi - a)
    for iteration in range(MAX_ITERATIONS):
        room, head = np.maximum(a - lo, 1e-30), np.maximum(hi - a, 1e-30)
        rest = (G * a).sum(axis=1) - b
        slope = _slope(a, p) - (G * y[:, None]).sum(axis=0)
        stiffness = 1 / (_curvature(a, p) + below / room + above / head + damping)
        weighted = G * stiffness
        factor = _factor([[(weighted[i] * G[j]).sum(axis=0) for j in range(i + 1)] for i in range(k)])
        count = np.maximum((bounded_below + bounded_above).sum(axis=0), 1)
        mean = (
            (below * np.where(bounded_below, room, 0)).sum(axis=0)
            + (above * np.where(bounded_above, head, 0)).sum(axis=0)
        ) / count

        def step(
            slope_now: Array,
            G: Array = G,
            weighted: Array = weighted,
            rest: Array = rest,
            stiffness: Array = stiffness,
            factor: list[list[Array]] = factor,
        ) -> tuple[Array, Array]:
            dy = _back(factor, (weighted * slope_now).sum(axis=1) - rest)
            return stiffness * ((G * dy[:, None]).sum(axis=0) - slope_now), dy

        da, _ = step(slope)  # predictor: aim at no slack at all
        d_below, d_above = -below - below * da / room, -above + above * da / head
        t = np.minimum(_reach(room, da), _reach(head, -da))
        s = np.minimum(_reach(below, d_below), _reach(above, d_above))
        aim = (
            (below + s * d_below) * np.where(bounded_below, room + t * da, 0)
            + (above + s * d_above) * np.where(bounded_above, head - t * da, 0)
        ).sum(axis=0) / count
        center = mean * np.minimum((aim / np.maximum(mean, 1e-300)) ** 3, 1.0)
        push_below = np.where(bounded_below, (center - d_below * da) / room, 0.0)
        push_above = np.where(bounded_above, (center + d_above * da) / head, 0.0)
        da, dy = step(slope - push_below + push_above)
        d_below = push_below - below - below * da / room
        d_above = push_above - above + above * da / head
        t = 0.995 * np.minimum(_reach(room, da), _reach(head, -da))
        s = 0.995 * np.minimum(_reach(below, d_below), _reach(above, d_above))
        t = s = np.minimum(np.minimum(t, s), 1.0)
        if p > 3:
            rise = _top(a, p) - np.abs(a)
            t = np.minimum(t, (rise / np.maximum(np.sign(a) * da, 1e-30)).min(axis=0))
            t = s = _shortened(t, a, da, stiffness, p)
        a, y, below, above = a + t * da, y + t * dy, below + s * d_below, above + s * d_above
        if iteration < 4 or (iteration % 2 and iteration < MAX_ITERATIONS - 1):
            continue
        candidates = [_polish(G, b, lo, hi, a, y, below, above, p)]
        if (
            p not in (2, 3) or iteration > 12
        ):  # where slopes are flat or kinked the iterate itself may be the better one
            candidates.append((a, y, _residual(G, b, lo, hi, a, y, p)))
        for sure, sure_y, residual in candidates:
            better = residual < proof[left]
            chosen = left[better]
            answer[:, chosen], multiplier[:, chosen] = sure[:, better], sure_y[:, better]
            proof[chosen] = residual[better]
        keep = proof[left] > KKT_GOAL
        if not keep.any():
            break
        left = left[keep]
        G, b, lo, hi, a, y, below, above, bounded_below, bounded_above = (
            x[..., keep] for x in (G, b, lo, hi, a, y, below, above, bounded_below, bounded_above)
        )
    return answer, multiplier, proof


def _polish(
    G: Array, b: Array, lo: Array, hi: Array, a: Array, y: Array, below: Array, above: Array, p: float
) -> tuple[Array, Array, Array]:
    """Newton steps with the bounds found active held; and the residual of all optimality conditions together."""
    at_low, at_high = a - lo < below, hi - a < above
    free = ~(at_low | at_high)
    a = np.where(at_low, lo, np.where(at_high, hi, a))
    k, damping = len(G), _damping(p)
    top = _top(a, p) if p > 3 else 0.0
    for _ in range(1 if p == 2 else 4):
        stiffness = np.where(free, 1 / (_curvature(a, p) + damping), 0.0)
        slope = _slope(a, p)
        weighted = G * stiffness
        normal = [[(weighted[i] * G[j]).sum(axis=0) for j in range(i + 1)] for i in range(k)]
        for i in range(k):
            normal[i][i] = normal[i][i] + 1e-15
        y = _back(_factor(normal), (weighted * slope).sum(axis=1) - ((G * a).sum(axis=1) - b))
        a = a + stiffness * ((G * y[:, None]).sum(axis=0) - slope)
        if p > 3:
            a = np.clip(a, -top, top)
    if p != 2:
        a = np.where(np.isfinite(lo), np.maximum(a, lo), a)
    return a, y, _residual(G, b, lo, hi, a, y, p)


def _residual(G: Array, b: Array, lo: Array, hi: Array, a: Array, y: Array, p: float) -> Array:
    """How far a frame is from satisfying all conditions of an optimum; infinite where it is not a number."""
    slope = _slope(a, p) - (G * y[:, None]).sum(axis=0)
    moved = np.abs(a - np.clip(a - slope, lo, hi)).max(axis=0)
    rest = np.abs((G * a).sum(axis=1) - b).max(axis=0)
    return np.asarray(np.nan_to_num(np.maximum(moved, rest), nan=np.inf))


def _factor(lower: list[list[Array]]) -> list[list[Array]]:
    """Cholesky factor, in place, of small matrices given by the rows of their lower half."""
    for i, row in enumerate(lower):
        for j in range(i + 1):
            value = row[j]
            for h in range(j):
                value = value - row[h] * lower[j][h]
            row[j] = np.sqrt(np.maximum(value, 1e-30)) if i == j else value / lower[j][j]
    return lower


def _back(factor: list[list[Array]], right: Array) -> Array:
    """Solve with a Cholesky factor."""
    k = len(factor)
    x = [right[i] for i in range(k)]
    for i in range(k):
        for j in range(i):
            x[i] = x[i] - factor[i][j] * x[j]
        x[i] = x[i] / factor[i][i]
    for i in reversed(range(k)):
        for j in range(i + 1, k):
            x[i] = x[i] - factor[j][i] * x[j]
        x[i] = x[i] / factor[i][i]
    return np.array(x)


def _reach(value: Array, change: Array) -> Array:
    """Largest step (at most 1) before a positive value that changes reaches zero, per frame."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(change < 0, -value / change, np.inf)
    return np.asarray(np.minimum(steps.min(axis=0), 1.0))
