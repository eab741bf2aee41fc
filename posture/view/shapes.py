"""What a body looks like: a person, the URDF's own shapes, or a stick figure, as commands for meshcat's viewer."""

from __future__ import annotations

import base64
import warnings
from typing import Any

import numpy as np
import pinocchio as pin
import umsgpack
from lxml import etree

from posture import figure
from posture.body import Body, pinocchio_text

with warnings.catch_warnings():  # meshcat's server, which is not used here, leans on a deprecated part of zmq
    warnings.simplefilter("ignore", DeprecationWarning)
    from meshcat.commands import SetObject, SetTransform
    from meshcat.geometry import Mesh, MeshPhongMaterial, TriangularMeshGeometry
    from meshcat.path import Path as MeshcatPath

Shape = tuple[int, pin.SE3, Any, tuple[float, ...]]  # joint, placement on it, meshcat geometry, colour

PLAIN_COLOR = (0.16, 0.29, 0.46, 1.0)


def body_shapes(body: Body) -> list[Shape]:
    """Everything that draws the body: a person where its sidecar says how, else what its URDF has.

    A link without visuals (their mesh files do not travel with a run) is drawn by its collision shapes; a joint that
    nothing is drawn on, by bars to the joints it carries.
    """
    lofted = figure.pieces(body)
    shapes = [
        (int(frame.parentJoint), frame.placement, TriangularMeshGeometry(points, faces), color)
        for link, pieces in lofted.items()
        for frame in [body.model.frames[body.link_frame(link)]]
        for piece in pieces
        for points, faces, color in figure.lofts(piece)
    ]
    text = pinocchio_text(etree.fromstring(body.urdf.encode()))
    drawn = set(lofted)
    for kind in (pin.VISUAL, pin.COLLISION):
        found: dict[str, list[Shape]] = {}
        for item in pin.buildGeomFromUrdfString(body.model, text, kind).geometryObjects:
            link = body.model.frames[item.parentFrame].name
            color = tuple(item.meshColor) if kind == pin.VISUAL else PLAIN_COLOR
            if link not in drawn and (geometry := _geometry(item.geometry)) is not None:
                found.setdefault(link, []).append((int(item.parentJoint), item.placement, geometry, color))
        shapes += [shape for several in found.values() for shape in several]
        drawn |= set(found)
    return shapes + _stick_figure(body, bare=set(range(1, body.model.njoints)) - {shape[0] for shape in shapes})


def _geometry(shape: Any) -> Any:
    kind = type(shape).__name__
    if kind == "Box":
        return _box(shape.halfSide)
    if kind == "Sphere":
        return _solid(shape.radius, 0)
    if kind in ("Capsule", "Cylinder"):
        return _solid(shape.radius, shape.halfLength, flat=kind == "Cylinder")
    return None


def _box(half: Any) -> Any:
    """A box by its half sides; every face has corners of its own, so that edges stay sharp."""
    vertices: list[Any] = []
    faces: list[list[int]] = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            corners = []
            for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                corner = np.zeros(3)
                corner[axis], corner[(axis + 1) % 3], corner[(axis + 2) % 3] = side, side * u, v
                corners.append(corner * half)
            first = len(vertices)
            vertices += corners
            faces += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return TriangularMeshGeometry(np.array(vertices), np.array(faces))


def _solid(radius: float, half_length: float, *, flat: bool = False, sides: int = 24) -> Any:
    """Turn a profile about Z: capsule, sphere (no length) or cylinder (flat ends)."""
    if flat:  # rings are doubled at the edges, so that shading does not round them off
        radii = radius * np.array([0, 1, 1, 1, 1, 0])
        heights = half_length * np.array([-1, -1, -1, 1, 1, 1])
    else:
        angle = np.linspace(-np.pi / 2, np.pi / 2, 14)
        radii = radius * np.cos(angle)
        heights = radius * np.sin(angle) + half_length * np.sign(angle)
    turn = np.arange(sides) * 2 * np.pi / sides
    vertices = np.stack(
        (np.outer(radii, np.cos(turn)), np.outer(radii, np.sin(turn)), np.repeat(heights[:, None], sides, axis=1)),
        axis=-1,
    ).reshape(-1, 3)
    ring, side = np.divmod(np.arange((len(radii) - 1) * sides), sides)
    corner, beside = ring * sides + side, ring * sides + (side + 1) % sides
    faces = np.vstack(
        (
            np.stack((corner, beside, beside + sides), axis=-1),
            np.stack((corner, beside + sides, corner + sides), axis=-1),
        )
    )
    return TriangularMeshGeometry(vertices, faces)


def _stick_figure(body: Body, *, bare: set[int]) -> list[Shape]:
    """Draw a ball at every bare joint and bars to the joints it carries, or to its centre of mass at the end."""
    model = body.model
    shapes: list[Shape] = []
    for joint in sorted(bare):
        ends = [model.jointPlacements[child].translation for child in model.children[joint]]
        bars = [end for end in ends or [model.inertias[joint].lever] if np.linalg.norm(end) > 1e-6]
        if bars or not ends:
            shapes.append((joint, pin.SE3.Identity(), _solid(0.03, 0), PLAIN_COLOR))
        for end in bars:
            turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0, 1]), end).toRotationMatrix()
            shapes.append((joint, pin.SE3(turn, end / 2), _solid(0.02, float(np.linalg.norm(end)) / 2), PLAIN_COLOR))
    return shapes


def shape_commands(shapes: list[Shape]) -> list[str]:
    """Draw shapes on their joints: meshcat's commands (msgpack), each in base64."""
    commands = []
    for number, (joint, placement, geometry, color) in enumerate(shapes):
        path = MeshcatPath(("ship", f"joint{joint}", f"shape{number}"))
        red, green, blue = (round(255 * min(max(part, 0), 1)) for part in color[:3])
        paint = red << 16 | green << 8 | blue
        material = MeshPhongMaterial(color=paint, opacity=float(color[3]), side=0, shininess=35)
        mesh = Mesh(geometry, material)
        for kind, part in (("geometry", geometry), ("material", material), ("mesh", mesh)):
            part.uuid = f"{kind}{number}"  # meshcat's own are made of the clock and this computer's address
        commands += [SetObject(mesh, path=path).lower(), SetTransform(placement.homogeneous, path).lower()]
    return [base64.b64encode(umsgpack.packb(command)).decode() for command in commands]
