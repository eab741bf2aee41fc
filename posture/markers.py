"""From markers to joint angles: the configuration whose markers lie nearest to the measured ones, frame by frame.

Least squares over all markers with Gauss-Newton steps. A step needs (Jᵀ W J + D)⁻¹ Jᵀ W r, with J the Jacobian of all
marker places: that is the acceleration of a body whose only masses are the weights, sitting at the markers, pulled by
the residuals, with D as rotor inertia. So Pinocchio's articulated-body algorithm solves it in linear time, for all
frames side by side; places and pulls are computed for all frames at once in NumPy.

D holds joints that are locked or stand at a limit, and a weak pull towards zero of what no marker can see (the twist
of a hand that carries one marker).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.anthropometry import Person
from posture.body import Body
from posture.errors import MotionError, check_number, find_name
from posture.inverse import ROOT_COORDINATES
from posture.motion_files import Markers

Array = NDArray[np.floating]

PRIOR = 1e-6  # m²/rad²: a joint one radian away from zero counts as one marker one millimetre off
HELD = 1e9  # rotor inertia of a coordinate that must not move
TOLERANCE = 3e-5  # m; a step that would move the markers by less (rms) is the last: a tenth of a camera's noise
COARSE = 5e-4  # m; the same where a solution is only a place to start from
MOST_ITERATIONS, PATIENT = 60, 8
BIGGEST_STEP = 0.7  # rad or m
DAMPING = 1e-4  # m²/rad²: added after a step that went too far along something the markers hardly see
SPARSE = 8  # every so many frames are solved first; the others start between them
FAR = 0.06  # m; a marker that stays so far from its place is mislabelled


@dataclass(frozen=True)
class MarkerSet:
    """Where markers sit on a body: link, place in the link's frame (m) and weight of each."""

    names: list[str]
    links: list[str]
    places: Array
    weights: Array
    source: str = ""

    def moved(self, places: Array) -> MarkerSet:
        """The same markers at other places."""
        return replace(self, places=np.asarray(places, float))

    def keep(self, names: Sequence[str]) -> MarkerSet:
        """These markers only, in this order."""
        at = [
            self.names.index(find_name(name, self.names, what="marker", where=self.source, error=MotionError))
            for name in names
        ]
        return replace(
            self, names=list(names), links=[self.links[i] for i in at], places=self.places[at], weights=self.weights[at]
        )


def read_marker_set(body: Body, path: str | Path | None = None) -> MarkerSet:
    """The marker set in a .toml file, or the one beside the body's URDF; places grow with the body's stature.

    The file: [markers] NAME = { link = "…", place = [x, y, z], weight = 1 }, and optionally height, the stature (m)
    for which the places are meant.
    """
    path = Path(path) if path is not None else body.path.with_suffix(".markers.toml")
    if not path.is_file():
        raise MotionError(f"{path}: no such marker set; write [markers] NAME = {{ link, place }} into a .toml file")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MotionError(f"{path}: not valid TOML ({error})") from None
    for key in content:
        find_name(key, ("height", "markers"), what="entry", where=str(path), error=MotionError)
    entries = content.get("markers", {})
    if not isinstance(entries, dict) or not entries:
        raise MotionError(f"{path}: [markers] is empty; each marker is NAME = {{ link = …, place = [x, y, z] }}")
    growth = 1.0
    if "height" in content and body.person is not None:
        height = check_number(content["height"], what=f"{path}: height", unit="m", low=1, high=2.5, error=MotionError)
        growth = body.person.height / height
    links, places, weights = [], [], []
    for name, entry in entries.items():
        where = f"{path}: marker {name!r}"
        try:
            link, place = entry["link"], np.array(entry["place"], float)
            good = isinstance(link, str) and place.shape == (3,) and bool(np.isfinite(place).all())
        except (KeyError, TypeError, ValueError):
            good = False
        if not good:
            raise MotionError(f"{where} needs a link and a place of three numbers in m")
        body.link_frame(link)
        if np.abs(place).max() > 2:
            raise MotionError(f"{where} sits {np.abs(place).max():g} m from its link; give places in m, not mm")
        links.append(link)
        places.append(place * growth)
        weight = entry.get("weight", 1.0)
        weights.append(check_number(weight, what=f"{where}: weight", unit="", low=0, high=1e6, error=MotionError))
    return MarkerSet(list(entries), links, np.array(places), np.array(weights), str(path))


@dataclass(frozen=True)
class Fit:
    """Configurations (n × nq, Pinocchio) with the distance (n × markers, m) of each measured marker from its place.

    NaN where the marker was not seen. ``iterations``: steps each frame took; ``converged``: which frames came to rest.
    """

    time: Array
    names: list[str]
    configuration: Array
    distance: Array
    iterations: NDArray[np.intp]
    converged: NDArray[np.bool_]

    @property
    def rms(self) -> Array:
        """Root mean square distance over the seen markers of each frame, m."""
        return np.asarray(np.sqrt(np.nanmean(self.distance**2, axis=1)))

    def of_seen(self) -> Fit:
        """The fit without markers that were never seen."""
        seen = np.atleast_1d(np.isfinite(self.distance).any(axis=0))
        names = [name for name, good in zip(self.names, seen, strict=True) if good]
        return replace(self, names=names, distance=self.distance[:, seen])


# ---------------------------------------------------------------- the solver


class _Tree:
    """Places of all links for many configurations at once, and generalized pulls of forces on them.

    All frames and all joints of one depth go through one product of 4 × 4 matrices: calls, not numbers, cost time here.
    """

    def __init__(self, model: pin.Model) -> None:
        self.model = model
        data = model.createData()
        neutral = pin.neutral(model)
        joints = range(2, model.njoints)
        self.parents = np.array(list(model.parents), np.intp)
        for joint in joints:
            kind = model.joints[joint]
            if kind.nv != 1 or kind.nq != 1:
                raise MotionError(f"joint {model.names[joint]!r} has {kind.nv} degrees of freedom; use revolutes")
        columns = [model.joints[joint].idx_v for joint in joints]
        axes6 = [
            pin.computeJointJacobian(model, data, neutral, joint)[:, column]
            for joint, column in zip(joints, columns, strict=True)
        ]
        self.turning = np.array([np.linalg.norm(axis[3:]) > 0.5 for axis in axes6], bool)
        self.axes = np.array([axis[3:] if turns else axis[:3] for axis, turns in zip(axes6, self.turning, strict=True)])
        self.axes = self.axes.reshape(-1, 3)
        self.rows = np.array([model.joints[joint].idx_q for joint in joints], np.intp)
        self.columns = np.array(columns, np.intp)
        # A joint's matrix is fixed + s first + (1 - c) second with its sine s and cosine c; of slides, s is the way.
        self.fixed, self.first, self.second = (np.zeros((len(joints), 1, 4, 4)) for _ in range(3))
        for index, joint in enumerate(joints):
            placement = model.jointPlacements[joint].homogeneous
            self.fixed[index, 0] = placement
            if self.turning[index]:
                K = np.zeros((4, 4))
                K[:3, :3] = pin.skew(self.axes[index])
                self.first[index, 0], self.second[index, 0] = placement @ K, placement @ K @ K
            else:
                self.first[index, 0, :3, 3] = placement[:3, :3] @ self.axes[index]
        depth = np.zeros(model.njoints, int)
        for joint in joints:
            depth[joint] = depth[self.parents[joint]] + 1
        self.levels = [np.flatnonzero(depth == level) for level in range(1, depth.max() + 1)]
        self.under = np.eye(model.njoints)  # row: joint, column: 1 for itself and all that it carries
        for joint in reversed(joints):
            self.under[self.parents[joint]] += self.under[joint]

    def places(self, q: Array) -> tuple[Array, Array]:
        """Rotations (joints × n × 3 × 3) and origins (joints × n × 3) of all joints."""
        found = np.empty((self.model.njoints, len(q), 4, 4))
        found[0] = np.eye(4)  # the world
        found[1, :, 3] = 0, 0, 0, 1
        found[1, :, :3, 3] = q[:, :3]
        x, y, z, w = q[:, 3:7].T
        found[1, :, 0, 0], found[1, :, 1, 1] = 1 - 2 * (y * y + z * z), 1 - 2 * (x * x + z * z)
        found[1, :, 2, 2] = 1 - 2 * (x * x + y * y)
        found[1, :, 0, 1], found[1, :, 1, 0] = 2 * (x * y - z * w), 2 * (x * y + z * w)
        found[1, :, 0, 2], found[1, :, 2, 0] = 2 * (x * z + y * w), 2 * (x * z - y * w)
        found[1, :, 1, 2], found[1, :, 2, 1] = 2 * (y * z - x * w), 2 * (y * z + x * w)
        way = q[:, self.rows].T[:, :, None, None]
        turning = self.turning[:, None, None, None]
        local = self.fixed + np.where(turning, np.sin(way), way) * self.first + (1 - np.cos(way)) * self.second
        for level in self.levels:
            found[level] = found[self.parents[level]] @ local[level - 2]
        return found[:, :, :3, :3], found[:, :, :3, 3]

    def pulls(self, rotation: Array, origin: Array, force: Array, moment: Array) -> Array:
        """Generalized forces (n × nv) of what each joint carries: force and moment about the world's origin."""
        local = moment - _cross(origin, force)  # about each joint's own origin
        found = np.empty((rotation.shape[1], self.model.nv))
        axes = (rotation[2:] @ self.axes[:, None, :, None])[..., 0]
        acting = np.where(self.turning[:, None, None], local[2:], force[2:])
        found[:, self.columns] = np.einsum("jni,jni->nj", axes, acting)
        found[:, :3] = np.einsum("nji,nj->ni", rotation[1], force[1])
        found[:, 3:6] = np.einsum("nji,nj->ni", rotation[1], local[1])
        return found


def _cross(a: Array, b: Array) -> Array:
    """Cross product along the last axis; NumPy's own spends its time on moving axes."""
    found = np.empty(a.shape)
    found[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    found[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    found[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return found


def _point_masses(weights: Array, places: Array) -> pin.Inertia:
    """Inertia of weights at places."""
    mass = float(weights.sum())
    if mass == 0:
        return pin.Inertia.Zero()
    center = weights @ places / mass
    arms = places - center
    spread = (weights[:, None] * arms).T @ arms
    return pin.Inertia(mass, center, np.trace(spread) * np.eye(3) - spread)


class _Fitter:
    """The least-squares problem of one body with one marker set."""

    def __init__(self, body: Body, markers: MarkerSet, hold: Sequence[str], prior: float) -> None:
        self.body, self.markers = body, markers
        self.model = body.model.copy()
        self.tree = _Tree(self.model)
        frames = [self.model.frames[body.link_frame(link)] for link in markers.links]
        self.joint = np.array([frame.parentJoint for frame in frames])
        self.places = np.array([frame.placement.act(p) for frame, p in zip(frames, markers.places, strict=True)])
        self.prior = np.concatenate((np.zeros(6), np.full(self.model.nv - 6, prior)))
        self.armature = self.prior + 1e-12
        names = [*ROOT_COORDINATES, *body.joint_names]
        # the root's rotations are held about its own axes, in the order X, Y, Z
        place = {name: i for i, name in enumerate(names)} | {"root_yaw": 5, "root_pitch": 4, "root_roll": 3}
        for name in [*hold, *body.locked]:
            self.armature[place[find_name(name, names, what="coordinate", where=body.name)]] = HELD
        # A coordinate that moves no marker stays where it is.
        seen = np.zeros(self.model.njoints, bool)
        for joint in set(self.joint.tolist()):
            above = joint
            while above:
                seen[above] = True
                above = int(self.model.parents[above])
        for joint in range(2, self.model.njoints):
            if not seen[joint]:
                self.armature[self.model.joints[joint].idx_v] = HELD
        self.lower = self.model.lowerPositionLimit[7:].copy()
        self.upper = self.model.upperPositionLimit[7:].copy()
        self.data = self.model.createData()
        self.inertias: dict[bytes, list[pin.Inertia]] = {}

    def residuals(self, q: Array, measured: Array) -> tuple[Array, Array, Array, Array]:
        """Rotations, origins, marker places (n × markers × 3) and measured minus them."""
        rotation, origin = self.tree.places(q)
        at = np.einsum("mnij,mj->nmi", rotation[self.joint], self.places) + origin[self.joint].transpose(1, 0, 2)
        return rotation, origin, at, measured - at

    def cost(self, q: Array, gap: Array, weight: Array) -> Array:
        """Weighted sum of squares with the weak pull to zero, by frame."""
        return np.asarray(np.einsum("nm,nmi,nmi->n", weight, gap, gap) + q[:, 7:] ** 2 @ self.prior[6:])

    def steps(
        self,
        q: Array,
        rotation: Array,
        origin: Array,
        at: Array,
        gap: Array,
        weight: Array,
        held: Array,
        damping: Array,
    ) -> tuple[Array, Array]:
        """Gauss-Newton steps (n × nv), and by how much (n) the first order lets the cost sink, halved."""
        pull = weight[:, :, None] * gap
        carried = self.tree.under[:, self.joint]  # joints × markers
        force, moment = ((carried @ values).transpose(1, 0, 2) for values in (pull, _cross(at, pull)))
        tau = self.tree.pulls(rotation, origin, force, moment)
        tau[:, 6:] -= self.prior[6:] * q[:, 7:]
        found = np.empty_like(tau)
        groups: dict[bytes, list[int]] = {}
        for row, key in enumerate(np.packbits(np.hstack((weight > 0, held > 0)), axis=1)):
            groups.setdefault(key.tobytes(), []).append(row)
        for rows in groups.values():
            found[rows] = self._solve(q[rows], tau[rows], weight[rows[0]], held[rows[0]], damping[rows])
        size = np.abs(found).max(axis=1, keepdims=True)
        found *= np.minimum(1, BIGGEST_STEP / np.maximum(size, 1e-300))
        return found, np.einsum("nk,nk->n", found, tau)

    def _solve(self, q: Array, tau: Array, weight: Array, held: Array, damping: Array) -> Array:
        """Accelerations of the body made of markers: ABA, with the markers seen and the joints held in these frames."""
        key = weight.tobytes()
        if key not in self.inertias:
            self.inertias[key] = [
                _point_masses(weight[self.joint == joint], self.places[self.joint == joint])
                for joint in range(self.model.njoints)
            ]
        for joint, inertia in enumerate(self.inertias[key]):
            self.model.inertias[joint] = inertia
        plain = self.armature + HELD * np.concatenate((np.zeros(6), held))
        self.model.armature = plain
        still = np.zeros(self.model.nv)
        found = np.empty_like(tau)
        for row in range(len(q)):
            if damping[row] > 0:
                self.model.armature = plain + damping[row]
            found[row] = pin.aba(self.model, self.data, q[row], still, tau[row])
            if damping[row] > 0:
                self.model.armature = plain
        return found

    def solve(
        self, q: Array, measured: Array, weight: Array, limits: bool, tolerance: float = TOLERANCE
    ) -> tuple[Array, NDArray[np.intp], NDArray[np.bool_]]:
        """Iterate all frames from ``q``; configurations, iterations and which converged."""
        count = len(q)
        best = q.copy()
        iterations, done = np.zeros(count, np.intp), np.zeros(count, bool)
        lowest, gain, step = np.full(count, np.inf), np.full(count, np.inf), np.zeros((count, self.model.nv))
        held, damping = np.zeros((count, self.model.nv - 6)), np.zeros(count)
        trial = q.copy()
        active = np.arange(count)
        for iteration in range(MOST_ITERATIONS):
            rotation, origin, at, gap = self.residuals(trial[active], measured[active])
            cost = self.cost(trial[active], gap, weight[active])
            better = cost <= lowest[active] * (1 + 1e-12)
            worse = active[~better]
            step[worse] *= 0.25
            gain[worse] *= 0.25
            damping[worse] = np.maximum(10 * damping[worse], DAMPING)  # for the step after the next good one
            rows = active[better]
            best[rows], lowest[rows] = trial[rows], cost[better]
            if len(rows):
                whole = len(rows) == len(active)
                pick = slice(None) if whole else better
                args = (rotation[:, pick], origin[:, pick], at[pick], gap[pick], weight[rows])
                step[rows], gain[rows] = self.steps(best[rows], *args, held[rows], damping[rows])
                if limits:
                    self._respect_limits(best, step, gain, held, damping, rows, args)
                damping[rows] = np.where(damping[rows] > 1e-3 * DAMPING, 0.25 * damping[rows], 0.0)
            iterations[active] += 1
            patience = 1 if iteration < PATIENT else 4  # what is left creeps along something the markers hardly see
            moving = gain[active] > (patience * tolerance) ** 2 * weight[active].sum(axis=1)
            done[active[~moving]] = True
            active = active[moving]
            if not len(active):
                break
            for row in active:
                trial[row] = pin.integrate(self.model, best[row], step[row])
            if limits:
                trial[active, 7:] = np.clip(trial[active, 7:], self.lower, self.upper)
        final: Array = best
        if done.all():
            final = np.array([pin.integrate(self.model, a, b) for a, b in zip(best, step, strict=True)])
        if limits:
            final[:, 7:] = np.clip(final[:, 7:], self.lower, self.upper)
        return final, iterations, done

    def _respect_limits(
        self,
        best: Array,
        step: Array,
        gain: Array,
        held: Array,
        damping: Array,
        rows: NDArray[np.intp],
        args: tuple[Array, ...],
    ) -> None:
        """Hold joints that stand at a limit and are pushed outward, and solve those frames again without them."""
        outward = ((best[rows, 7:] >= self.upper) & (step[rows, 6:] > 0)) | (
            (best[rows, 7:] <= self.lower) & (step[rows, 6:] < 0)
        )
        again = np.flatnonzero(outward.any(axis=1) & ~(held[rows] >= outward).all(axis=1))
        if len(again):
            held[rows[again]] = np.maximum(held[rows[again]], outward[again])
            rotation, origin, at, gap, weight = args
            step[rows[again]], gain[rows[again]] = self.steps(
                best[rows[again]],
                rotation[:, again],
                origin[:, again],
                at[again],
                gap[again],
                weight[again],
                held[rows[again]],
                damping[rows[again]],
            )


def fit_markers(
    body: Body,
    marker_set: MarkerSet,
    markers: Markers,
    *,
    hold: Sequence[str] = (),
    limits: bool = True,
    prior: float = PRIOR,
) -> Fit:
    """Configurations nearest to the measured markers; markers of the record that the set does not know are ignored.

    ``hold``: coordinates that stay at zero (root_y, root_yaw, root_roll for a planar body); ``prior``: weak pull of
    joints to zero, m²/rad².
    """
    names = [name for name in marker_set.names if name in markers.names]
    if len(names) < 3:
        raise MotionError(
            f"{markers.source or 'markers'}: {len(names)} of its markers are in the marker set "
            f"({marker_set.source}), at least 3 are needed; the record has {', '.join(markers.names[:8])}…"
        )
    used = marker_set.keep(names)
    measured = markers.select(names).positions
    seen = np.asarray(np.isfinite(measured).all(axis=2))
    few = np.flatnonzero(seen.sum(axis=1) < 3)
    if len(few):
        raise MotionError(
            f"{markers.source or 'markers'}: only {seen[few[0]].sum()} markers are seen at "
            f"{markers.time[few[0]]:.3f} s; fill the gaps or cut the frame"
        )
    weight = seen * used.weights
    filled = np.where(seen[:, :, None], measured, 0.0)
    fitter = _Fitter(body, used, hold, prior)
    count = len(measured)
    coarse = np.unique(np.r_[0 : count : (SPARSE if count > 4 * SPARSE else 1), count - 1])
    start = _first_guess(fitter, filled[coarse], seen[coarse], hold)
    rough = TOLERANCE if len(coarse) == count else COARSE
    found, iterations, done = fitter.solve(start, filled[coarse], weight[coarse], limits, rough)
    found, gap = _leave_side_valleys(fitter, found, filled[coarse], weight[coarse], limits)
    if len(coarse) < count:
        between = _interpolate(coarse, found, count)
        found, more, done = fitter.solve(between, filled, weight, limits)
        found, gap = _leave_side_valleys(fitter, found, filled, weight, limits)
        more[coarse] += iterations
        iterations = more
    distance = np.where(seen, np.linalg.norm(gap, axis=2), np.nan)
    return Fit(markers.time, names, found, distance, iterations, done)


def _leave_side_valleys(fitter: _Fitter, q: Array, measured: Array, weight: Array, limits: bool) -> tuple[Array, Array]:
    """Start frames that fit worse than those around them again from their neighbours', and keep what fits better.

    From the neutral pose a limb can settle in the wrong valley (an arm twisted the long way round). Returns the
    configurations and the gaps (measured minus found place, n × markers × 3) they leave.
    """
    from scipy.ndimage import median_filter

    gap = fitter.residuals(q, measured)[3]
    best = fitter.cost(q, gap, weight)
    floor = 1e-6 * weight.sum(axis=1)  # one millimetre rms is never poor
    for direction in (1, -1, 1, -1):
        poor = np.flatnonzero((best > 1.3 * median_filter(best, size=9, mode="nearest")) & (best > floor))
        poor = poor[(poor - direction >= 0) & (poor - direction < len(q))]
        if not len(poor):
            break
        again, _, _ = fitter.solve(q[poor - direction], measured[poor], weight[poor], limits, COARSE)
        left = fitter.residuals(again, measured[poor])[3]
        lower = fitter.cost(again, left, weight[poor])
        won = lower < best[poor]
        q[poor[won]], gap[poor[won]], best[poor[won]] = again[won], left[won], lower[won]
    return q, gap


def _interpolate(known: NDArray[np.intp], q: Array, count: int) -> Array:
    from scipy.interpolate import CubicSpline

    frames = np.arange(count)
    q = q.copy()
    for row in range(1, len(q)):  # the same rotation has two quaternions
        if q[row, 3:7] @ q[row - 1, 3:7] < 0:
            q[row, 3:7] *= -1
    between = np.asarray(CubicSpline(known, q)(frames))
    between[:, 3:7] /= np.linalg.norm(between[:, 3:7], axis=1, keepdims=True)
    return between


def _first_guess(fitter: _Fitter, measured: Array, seen: NDArray[np.bool_], hold: Sequence[str]) -> Array:
    """Neutral joints; the root where its own markers (or, if they are too few, all markers) say, frame by frame."""
    model = fitter.model
    neutral = pin.neutral(model)
    for name, value in fitter.body.locked.items():
        neutral[7 + fitter.body.joint_index(name)] = value
    room = 0.2 * np.minimum(fitter.upper - fitter.lower, 1.0)  # a straight knee stands at its limit: begin inside
    free = np.array([name not in fitter.body.locked for name in fitter.body.joint_names], bool)
    neutral[7:] = np.where(free, np.clip(neutral[7:], fitter.lower + room, fitter.upper - room), neutral[7:])
    _, _, at, _ = fitter.residuals(neutral[None], measured[:1])
    own = seen & (fitter.joint == 1)
    use = np.where((own.sum(axis=1, keepdims=True) >= 3) & (not hold), own, seen)
    share = use / use.sum(axis=1, keepdims=True)
    ours, theirs = share @ at[0], np.einsum("nm,nmi->ni", share, measured)
    turn = np.broadcast_to(np.eye(3), (len(measured), 3, 3))
    if not hold:
        arms = use[:, :, None] * (measured - theirs[:, None])
        U, _, V = np.linalg.svd(np.einsum("nmi,nmj->nij", arms, at[0] - ours[:, None]))
        U[:, :, 2] *= np.sign(np.linalg.det(U @ V))[:, None]
        turn = U @ V
    guess = np.tile(neutral, (len(measured), 1))
    guess[:, :3] = theirs + np.einsum("nij,nj->ni", turn, neutral[:3] - ours)
    guess[:, 3:7] = Rotation.from_matrix(turn).as_quat()
    for name in hold:
        if name in ROOT_COORDINATES[:3]:
            guess[:, ROOT_COORDINATES.index(name)] = 0
    return guess


# ---------------------------------------------------------------- registration, scaling, sides


def register(
    body: Body, marker_set: MarkerSet, markers: Markers, *, keep: Sequence[str] = (), rounds: int = 4
) -> tuple[MarkerSet, Fit]:
    """Move markers to where a trial shows them: fit, average each marker in its link's frame, again.

    ``keep``: markers that stay (on bony landmarks). A marker of weight 0, whose place nobody knew, weighs 1 once it has
    been seen. Returns the new set and the last fit.
    """
    fit = fit_markers(body, marker_set, markers)
    for _ in range(rounds):
        marker_set = _averaged(body, marker_set, markers, fit, keep)
        found = np.array([name in fit.names for name in marker_set.names])
        marker_set = replace(marker_set, weights=np.where(found & (marker_set.weights == 0), 1.0, marker_set.weights))
        fit = fit_markers(body, marker_set, markers)
    return marker_set, fit


def _averaged(body: Body, marker_set: MarkerSet, markers: Markers, fit: Fit, keep: Sequence[str]) -> MarkerSet:
    places = marker_set.places.copy()
    frames = [body.link_frame(link) for link in marker_set.links]
    sums, counts = np.zeros_like(places), np.zeros(len(places))
    measured = {name: markers.positions[:, markers.names.index(name)] for name in fit.names}
    for row, q in enumerate(fit.configuration):
        pin.framesForwardKinematics(body.model, body.data, q)
        for marker, name in enumerate(marker_set.names):
            if name in measured and np.isfinite(measured[name][row]).all():
                sums[marker] += body.data.oMf[frames[marker]].actInv(measured[name][row])
                counts[marker] += 1
    for marker, name in enumerate(marker_set.names):
        if counts[marker] and name not in keep:
            places[marker] = sums[marker] / counts[marker]
    return marker_set.moved(places)


def scale_to_markers(
    body: Body,
    marker_set: MarkerSet,
    markers: Markers,
    person: Person,
    *,
    rounds: int = 8,
    stiffness: float = 1e-3,
    frames: int = 10,
) -> tuple[Body, MarkerSet, dict[str, float]]:
    """Grow every link by its own factor so that the markers of a (static) trial fit; left and right alike.

    With the attitudes of all links known, marker places are linear in the factors: each round fits the pose, then
    solves for all factors at once. ``stiffness`` (m²) pulls them to the person's stature over the body's. Returns the
    body, the marker set grown with it, and the factors by link.
    """
    model_height = body.person.height if body.person else person.height
    common = person.height / model_height
    links = list(body.segments)
    groups = sorted({re.sub("^(left|right)_", "", link) for link in links})
    group = {link: groups.index(re.sub("^(left|right)_", "", link)) for link in links}
    factors = np.full(len(groups), common)
    rows = np.unique(np.linspace(0, len(markers.time) - 1, min(frames, len(markers.time))).round().astype(int))
    trial = replace(markers, time=markers.time[rows], positions=markers.positions[rows])
    scaled, grown = body, marker_set
    for _ in range(rounds):
        by_link = {link: float(factors[group[link]]) for link in links}
        scaled = body.stretched(by_link, person)
        grown = marker_set.moved(marker_set.places * np.array([[by_link.get(link, 1.0)] for link in marker_set.links]))
        fit = fit_markers(scaled, grown, trial)
        factors = _factors(body, marker_set, trial, fit, group, len(groups), common, stiffness)
    return scaled, grown, by_link


def _factors(
    body: Body,
    marker_set: MarkerSet,
    trial: Markers,
    fit: Fit,
    group: Mapping[str, int],
    count: int,
    common: float,
    stiffness: float,
) -> Array:
    """Least squares for the links' factors and the root's place in each frame, attitudes held."""
    model, data = body.model, body.data
    by_joint = {joint: link for link, joint in body.segments.items()}
    unknowns = count + 3 * len(fit.configuration)
    normal, right = np.zeros((unknowns, unknowns)), np.zeros(unknowns)
    normal[:count, :count] = stiffness * np.eye(count)
    right[:count] = stiffness * common
    for row, q in enumerate(fit.configuration):
        pin.forwardKinematics(model, data, q)
        own = slice(count + 3 * row, count + 3 * row + 3)
        for name in fit.names:
            measured = trial.positions[row, trial.names.index(name)]
            if not np.isfinite(measured).all():
                continue
            at = marker_set.names.index(name)
            block = np.zeros((3, unknowns))
            block[:, own] = np.eye(3)
            joint, link = body.segments[marker_set.links[at]], marker_set.links[at]
            block[:, group[link]] += data.oMi[joint].rotation @ marker_set.places[at]
            while joint > 1:  # towards the root: each joint's offset belongs to the link that carries it
                carrier = int(model.parents[joint])
                if model.jointPlacements[joint].translation.any():
                    link = by_joint[carrier]
                    block[:, group[link]] += data.oMi[carrier].rotation @ model.jointPlacements[joint].translation
                joint = carrier
            weight = marker_set.weights[at]
            normal += weight * block.T @ block
            right += weight * block.T @ measured
    return np.linalg.solve(normal, right)[:count]


def twin(name: str) -> str | None:
    """The same marker on the other side: L and R, left and right, as the first letter or a word of its own."""
    swap = {"L": "R", "R": "L", "l": "r", "r": "l", "left": "right", "right": "left", "Left": "Right", "Right": "Left"}
    for pattern in (r"(?i)left|right", r"^[LRlr](?=[A-Z._ 0-9])", r"(?<=[._ ])[LRlr](?=$|[._ ])"):
        found = re.search(pattern, name)
        if found and found[0] in swap:
            return name[: found.start()] + swap[found[0]] + name[found.end() :]
    return None


def check_labels(body: Body, marker_set: MarkerSet, markers: Markers) -> list[str]:
    """Refuse a record whose left and right are swapped; sentences about single markers that cannot be right.

    A few frames are fitted as labelled and with sides exchanged.
    """
    names = [name for name in marker_set.names if name in markers.names]
    rows = np.unique(np.linspace(0, len(markers.time) - 1, min(6, len(markers.time))).round().astype(int))
    rows = np.array([row for row in rows if np.isfinite(markers.positions[row]).all(axis=1).sum() >= 3], int)
    if not len(rows):
        return []
    trial = replace(markers, time=markers.time[rows], positions=markers.positions[rows])
    as_said = fit_markers(body, marker_set, trial).of_seen()
    pairs = {name: other for name in names if (other := twin(name)) in markers.names}

    def swapped(which: Sequence[str]) -> float:
        exchanged = [pairs[name] if name in which else name for name in trial.names]
        return float(np.median(fit_markers(body, marker_set, replace(trial, names=exchanged)).rms))

    here = float(np.median(as_said.rms))
    if here > FAR / 2 and pairs and swapped(list(pairs)) < 0.6 * here:
        raise MotionError(
            f"{markers.source or 'markers'}: the record fits the body with {1000 * here:.0f} mm, and "
            f"{1000 * swapped(list(pairs)):.0f} mm with left and right exchanged; the sides are swapped, "
            "or the axes mirror"
        )
    notes = []
    far = np.nanmedian(as_said.distance, axis=0)
    for name, gap in sorted(zip(as_said.names, far, strict=True), key=lambda item: -item[1]):
        other = pairs.get(name)
        if gap > FAR and gap > 2.5 * here * 0.5:
            if other is not None and name < other and swapped([name, other]) < 0.7 * here:
                raise MotionError(
                    f"{markers.source or 'markers'}: {name} and {other} fit only when exchanged; "
                    "their labels are swapped"
                )
            notes.append(
                f"marker {name} stays {1000 * gap:.0f} mm from its place on the body; check its label or place"
            )
    return notes
