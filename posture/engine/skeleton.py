"""The tree of a ``pin.Model`` as the symbolic mirror needs it: fewer joints, aligned axes, numbers set apart.

Three massless-linked revolutes about different coordinate axes become one ball joint; an axis that is no coordinate
axis gets a frame in which it is one; locked joints become fixed. What is left splits in two: the structure, which
decides the formulas, and the numbers (masses, first moments, inertias about the joint, offsets), which persons of
one build share a formula with. Only NumPy and Pinocchio are needed, so that a cached library starts at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from posture.errors import BodyError

Array = NDArray[np.floating]

FIELDS = (
    "mass",
    *(f"moment_{axis}" for axis in "xyz"),  # mass times centre of mass, kg·m
    *(f"inertia_{pair}" for pair in ("xx", "yy", "zz", "xy", "xz", "yz")),  # about the joint, kg·m²
    *(f"offset_{axis}" for axis in "xyz"),  # of the joint in its parent's frame, m
)
DUST = 1e-14  # relative size below which a number is what rounding left of a zero


@dataclass(frozen=True)
class Node:
    """One joint with the link it carries.

    ``kind``: fixed, revolute, prismatic, ball (three revolutes), spherical, planar or free. ``axes``: coordinate
    axes of the turns or the slide. ``position`` and ``velocity``: where its coordinates stand in Pinocchio's q, v.
    ``axis`` and ``slides`` of a locked joint say along what its holding moment (force) is told.
    """

    name: str
    kind: str
    parent: int
    rotation: tuple[float, ...]  # constant part, child to parent, row by row
    axes: tuple[int, ...]
    position: tuple[int, ...]
    velocity: tuple[int, ...]
    axis: tuple[float, ...] = ()
    slides: bool = False


class Skeleton:
    """Nodes of a model, parents first, and the 13 numbers of each (``FIELDS``).

    ``locked``: joint name to angle (rad) or travel (m). ``prescribed_base``: the first joint is a free-flyer that is
    moved from outside; its link is the root. ``merge=False`` keeps triples apart (to measure what merging saves);
    where something is fastened to the links of joints named in ``apart``, they keep frames of their own.
    """

    def __init__(
        self,
        model: pin.Model,
        *,
        locked: Mapping[str, float] | None = None,
        prescribed_base: bool = False,
        merge: bool = True,
        apart: Collection[str] = (),
    ) -> None:
        self.nq, self.nv = int(model.nq), int(model.nv)
        self.prescribed_base = prescribed_base
        held = dict(locked or {})
        nodes: list[Node] = []
        rows: list[Array] = []
        node_of = {0: -1}
        align: dict[int, Array] = {0: np.eye(3)}  # pin joint frame from node frame
        children = [
            [child for child in range(1, model.njoints) if model.parents[child] == joint]
            for joint in range(model.njoints)
        ]
        joint = 1
        while joint < model.njoints:
            parent = int(model.parents[joint])
            group = _triple(model, joint, children, held, apart) if merge else ()
            last = group[-1] if group else joint
            placement = model.jointPlacements[joint]
            frame, translation = np.array(placement.rotation), np.array(placement.translation)
            own: Array = np.eye(3)
            extra: dict[str, object] = {}
            if group:
                kind, axes = "ball", tuple(_revolute_axis(model, index)[0] for index in group)
            elif joint == 1 and prescribed_base:
                kind, axes = "fixed", ()
            else:
                kind, axes, own, vector = _describe(model, joint)
                if model.names[joint] in held:
                    value = held[model.names[joint]]
                    extra = {"axis": tuple(vector.tolist()), "slides": kind == "prismatic"}
                    if kind == "prismatic":
                        translation = translation + frame @ vector * value
                    else:
                        frame = frame @ pin.AngleAxis(value, vector).toRotationMatrix()
                    kind, axes, own = "fixed", (), np.eye(3)
            before = align[parent]
            frame, translation = before.T @ frame @ own, before.T @ translation
            inertia = model.inertias[last]
            center, about = own.T @ inertia.lever, own.T @ inertia.inertia @ own
            about = about - inertia.mass * pin.skew(center) @ pin.skew(center)
            members = group or (joint,)
            fixed_base = joint == 1 and prescribed_base
            nodes.append(
                Node(
                    str(model.names[last]),
                    kind,
                    node_of[parent],
                    tuple(_tidy(frame).ravel().tolist()),
                    axes,
                    () if kind == "fixed" else tuple(i for m in members for i in _range(model, m, "q")),
                    () if fixed_base else tuple(i for m in members for i in _range(model, m, "v")),
                    **extra,  # type: ignore[arg-type]
                )
            )
            pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
            rows.append(
                np.array([inertia.mass, *(inertia.mass * center), *(about[pair] for pair in pairs), *translation])
            )
            for member in members:
                node_of[member], align[member] = len(nodes) - 1, own
            joint = last + 1
        self.nodes = tuple(nodes)
        self.values = _without_dust(np.array(rows))
        self._carrier = {index: (node_of[index], align[index]) for index in range(1, model.njoints)}

    @property
    def structure(self) -> str:
        """Text that decides the formulas, apart from which numbers are zero."""
        return repr((self.nq, self.nv, self.prescribed_base, self.nodes))

    def fasten(self, joint: int, point: Array) -> tuple[int, Array]:
        """Node that moves with a joint's link, and a point of the joint's frame in that node's frame."""
        node, own = self._carrier[joint]
        return node, own.T @ point

    @property
    def angles(self) -> tuple[int, ...]:
        """Places in q of angles whose sines and cosines the formulas need."""
        return tuple(index for node in self.nodes if node.kind in ("revolute", "ball") for index in node.position)


def _range(model: pin.Model, joint: int, kind: str) -> range:
    entry = model.joints[joint]
    start, size = (entry.idx_q, entry.nq) if kind == "q" else (entry.idx_v, entry.nv)
    return range(start, start + size)


def _revolute_axis(model: pin.Model, joint: int) -> tuple[int, ...]:
    """(axis,) of a revolute joint about +X, +Y or +Z; empty otherwise."""
    name = model.joints[joint].shortname()
    return ("XYZ".index(name[-1]),) if name in ("JointModelRX", "JointModelRY", "JointModelRZ") else ()


def _triple(
    model: pin.Model, joint: int, children: list[list[int]], held: Collection[str], apart: Collection[str]
) -> tuple[int, ...]:
    """Three revolutes in a row that make a ball joint, or nothing."""
    group = (joint, joint + 1, joint + 2)
    if group[-1] >= model.njoints:
        return ()
    axes = [_revolute_axis(model, index) for index in group]
    for index in group[:2]:
        inertia = model.inertias[index]
        empty = inertia.mass == 0 and not np.any(inertia.inertia)
        if not empty or children[index] != [index + 1] or not model.jointPlacements[index + 1].isIdentity(0.0):
            return ()
    named = any(model.names[index] in held for index in group) or any(model.names[i] in apart for i in group[:2])
    return group if not named and all(axes) and len(set(axes)) == 3 else ()


def _describe(model: pin.Model, joint: int) -> tuple[str, tuple[int, ...], Array, Array]:
    """Kind, coordinate axes, frame in which they are coordinate axes, and the axis in Pinocchio's frame."""
    entry = model.joints[joint]
    name = entry.shortname()
    simple = {
        "JointModelFreeFlyer": ("free", (0, 1, 2)),
        "JointModelSpherical": ("spherical", (0, 1, 2)),
        "JointModelPlanar": ("planar", (2,)),
    }
    if name in simple:
        kind, axes = simple[name]
        return kind, axes, np.eye(3), np.zeros(3)
    data = entry.createData()
    if name in ("JointModelRX", "JointModelRY", "JointModelRZ", "JointModelRevoluteUnaligned"):
        kind, part = "revolute", slice(3, 6)
    elif name in ("JointModelPX", "JointModelPY", "JointModelPZ", "JointModelPrismaticUnaligned"):
        kind, part = "prismatic", slice(0, 3)
    else:
        raise BodyError(
            f"joint {model.names[joint]!r} is a {name}, which the compiled engine does not know; "
            "use revolute, prismatic, spherical, planar or free joints, or engine 'reference'"
        )
    entry.calc(data, pin.neutral(model))
    vector = np.array(data.S).reshape(6)[part]
    largest = int(np.argmax(np.abs(vector)))
    if abs(abs(vector[largest]) - 1) < 1e-15:
        own = np.eye(3)
        if vector[largest] < 0:  # half a turn about a neighbouring axis points it the other way
            own = -np.eye(3)
            own[(largest + 1) % 3, (largest + 1) % 3] = 1.0
        return kind, (largest,), own, vector
    own = np.array(pin.Quaternion.FromTwoVectors(np.array([0, 0, 1.0]), vector).toRotationMatrix())
    return kind, (2,), own, vector


def _tidy(matrix: Array) -> Array:
    """Rotation matrices written with a handful of digits: exact zeros and ones where only rounding is left."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) < DUST, rounded, matrix) + 0.0


def _without_dust(values: Array) -> Array:
    """Numbers with rounding left-overs set to zero: first moments, products of inertia and offsets."""
    cleaned = values.copy()
    trace = values[:, 4:7].sum(axis=1)
    reach = np.abs(values[:, 10:]).max(initial=1e-3)
    for columns, scale in ((slice(1, 4), values[:, 0] * reach), (slice(7, 10), trace), (slice(10, 13), reach)):
        part = cleaned[:, columns]
        part[np.abs(part) <= DUST * np.broadcast_to(scale, len(values))[:, None]] = 0.0
    return cleaned
