"""The 3D view: one HTML file that replays a run, with no server and no network.

Python prepares what depends on the run: the body's shapes as meshcat commands, where every joint is in every
frame, curves and headline numbers. ``view_template.html`` holds the page, its scenery and its player;
meshcat's JavaScript (three.js inside) is copied into the page. All about the body is relative to the deck, so
that the page can ride with the deck or watch it from the earth.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import umsgpack
import xarray as xr
from lxml import etree
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from posture.body import STANDARD_GRAVITY, Body, body_from_text, pinocchio_text
from posture.errors import ResultError
from posture.results import write_text

with warnings.catch_warnings():  # meshcat's server, which is not used here, leans on a deprecated part of zmq
    warnings.simplefilter("ignore", DeprecationWarning)
    import meshcat
    from meshcat.commands import SetObject, SetTransform
    from meshcat.geometry import Box, Mesh, MeshPhongMaterial, TriangularMeshGeometry
    from meshcat.path import Path as MeshcatPath

Array = NDArray[np.floating]
Shape = tuple[int, pin.SE3, Any, tuple[float, ...]]  # joint, placement on it, meshcat geometry, colour

FRAMES_PER_SECOND = 25  # the page interpolates between frames, so this is smooth at any screen rate
PLAIN_COLOR = (0.16, 0.29, 0.46, 1.0)
NAVY, ORANGE, GREEN, PINK = "#1c4e80", "#e58a00", "#12904a", "#d81b60"


def write_view(dataset: xr.Dataset, path: Path, *, title: str, subtitle: str = "") -> None:
    """Write the page of a run to ``path``, complete or not at all."""
    write_text(path, view_html(dataset, title=title, subtitle=subtitle))


def view_html(dataset: xr.Dataset, *, title: str, subtitle: str = "", max_frames: int = 3000) -> str:
    """Return a page that shows a run (a result by the schema of results.py) in 3D, with curves beside it."""
    if "joint_position" not in dataset or not dataset.sizes["time"]:
        raise ResultError("view: the result holds no joint_position; give one made by `posture simulate`")
    attributes = dataset.attrs
    body = body_from_text(attributes["body"], attributes["body_urdf"], json.loads(attributes["body_sidecar"]))
    stopped = f"Stopped early: {attributes['stopped']}" if attributes.get("stopped") else ""
    content = json.dumps(_payload(dataset, body, max_frames)).encode()
    tiles = (f"<div class='tile'><b>{number}</b>{name}</div>" for name, number in _tiles(dataset))
    values = {
        "title": html.escape(title),
        "subtitle": html.escape(" ".join(filter(None, (subtitle, stopped)))),
        "tiles": "".join(tiles),
        "meshcat": _meshcat_script(),
        "payload": _base64(gzip.compress(content, mtime=0)),
    }
    template = Path(__file__).with_name("view_template.html").read_text(encoding="utf-8")
    # one pass, so that a title that looks like a placeholder stays a title
    return re.sub(r"@@(\w+)@@", lambda match: values[match[1]], template)


def _meshcat_script() -> str:
    bundle = Path(meshcat.__file__).parent / "viewer" / "dist" / "main.min.js"
    # inside a script element these two would end the script or hide its end
    return bundle.read_text(encoding="utf-8").replace("</script", r"<\/script").replace("<!--", r"<\!--")


# ---------------------------------------------------------------- numbers of a run


def _payload(dataset: xr.Dataset, body: Body, max_frames: int) -> dict[str, Any]:
    """Everything the player needs, ready for JSON; arrays are base64 of little-endian float32."""
    frames = dataset.isel(time=_frames(dataset.time.values, max_frames))
    shapes = _shapes(body)
    joints = sorted({joint for joint, *_ in shapes})
    poses = _joint_poses(body, frames.joint_position.sel(joint=body.joint_names).values, joints)
    deck = np.hstack((_rows(frames, "deck_position", 3, 0), _quaternions(frames)))
    deck[:, :3] -= deck[:, :3].mean(axis=0)  # the earth is drawn about the mean place of the station
    weight = body.mass * STANDARD_GRAVITY
    has_outline = "stance_margin" in frames and bool(body.contact_names)
    return {
        "commands": [_base64(command) for command in _body_commands(shapes)],
        "joints": joints,
        "outline": body.contact_polygon().tolist() if has_outline else [],
        "arrays": {
            "time": _floats(frames.time.values),
            "poses": _floats(poses),
            "deck": _floats(deck),
            "tilt": _floats(np.degrees(_tilt(frames))),
            "com": _floats(_rows(frames, "position_com_in_deck", 3)),
            "cop": _floats(_rows(frames, "position_cop_on_deck", 2)),
            "force": _floats(_rows(frames, "force_deck_on_person", 3) / weight),
            "margin": _floats(_rows(frames, "stance_margin", 0) * 1000),
        },
        "plots": _plots(frames, body),
    }


def _frames(time: Array, max_frames: int) -> NDArray[np.intp]:
    step = float(np.diff(time).mean()) if len(time) > 1 else 1.0
    stride = max(1, math.ceil(1 / FRAMES_PER_SECOND / step - 1e-6), math.ceil(len(time) / max_frames))
    return np.arange(0, len(time), stride)


def _rows(dataset: xr.Dataset, name: str, width: int, missing: float = math.nan) -> Array:
    """Values of a variable, or a constant where the run has none such (width 0: one number per row)."""
    if name in dataset:
        return np.array(dataset[name].values, dtype=np.float64)
    return np.full((dataset.sizes["time"], width) if width else dataset.sizes["time"], missing)


def _quaternions(dataset: xr.Dataset) -> Array:
    level = np.tile([0.0, 0, 0, 1], (dataset.sizes["time"], 1))
    return np.asarray(dataset["deck_quaternion"].values) if "deck_quaternion" in dataset else level


def _tilt(dataset: xr.Dataset) -> Array:
    """Roll and pitch (n × 2, rad); NaN where the run does not know the deck's pose, which is drawn level."""
    if "deck_quaternion" not in dataset:
        return _rows(dataset, "deck_quaternion", 2)
    return np.asarray(Rotation.from_quat(_quaternions(dataset)).as_euler("XYZ"))[:, :2]


def _joint_poses(body: Body, positions: Array, joints: list[int]) -> Array:
    """Place (x y z) and quaternion (x y z w) of joints relative to the deck, side by side: n × 7·joints."""
    poses = np.empty((len(positions), len(joints), 7))
    for row, position in enumerate(positions):
        pin.forwardKinematics(body.model, body.data, body.with_base(position))
        for column, joint in enumerate(joints):
            poses[row, column] = pin.SE3ToXYZQUAT(body.data.oMi[joint])
    return poses.reshape(len(positions), -1)


def _tiles(dataset: xr.Dataset) -> list[tuple[str, str]]:
    """Headline numbers of the whole run."""
    lateral = _rows(dataset, "position_cop_on_deck", 2)[:, 1] * 1000
    margin = _rows(dataset, "stance_margin", 0)
    lateral, margin = lateral[np.isfinite(lateral)], margin[np.isfinite(margin)]
    roll = math.degrees(math.sqrt(float(np.mean(_tilt(dataset)[:, 0] ** 2))))
    return [
        ("roll RMS", f"{roll:.1f}°" if math.isfinite(roll) else "-"),
        ("COP RMS, lateral", f"{lateral.std():.0f} mm" if len(lateral) else "-"),
        ("COP outside stance", f"{100 * float(np.mean(margin < 0)):.1f} %" if len(margin) else "-"),
    ]


def _plots(frames: xr.Dataset, body: Body) -> list[dict[str, Any]]:
    tilt = np.degrees(_tilt(frames))
    com = _rows(frames, "position_com_in_deck", 3) * 1000
    cop = _rows(frames, "position_cop_on_deck", 2) * 1000
    up = _rows(frames, "force_deck_on_person", 3)[:, 2] / (body.mass * STANDARD_GRAVITY)
    turning = [
        name
        for name in body.joint_names
        if body.model.joints[body.model.getJointId(name)].shortname().startswith("JointModelR")
    ]
    angles = np.degrees(frames.joint_position.sel(joint=turning).values)
    largest = np.argsort(-angles.std(axis=0), kind="stable")[:3]
    plots: list[tuple[str, str, list[tuple[str, str, Array]]]] = [
        ("Deck", "deg", [("roll", NAVY, tilt[:, 0]), ("pitch", ORANGE, tilt[:, 1])]),
        ("Fore-aft", "mm", [("COP", PINK, cop[:, 0]), ("COM", ORANGE, com[:, 0])]),
        ("Lateral", "mm", [("COP", PINK, cop[:, 1]), ("COM", ORANGE, com[:, 1])]),
        ("Vertical force", "body weights", [("Fz", GREEN, up)]),
        (
            "Joints",
            "deg",
            [
                (turning[index], color, angles[:, index])
                for index, color in zip(largest, (NAVY, ORANGE, GREEN), strict=False)
            ],
        ),
    ]
    return [
        {
            "title": title,
            "unit": unit,
            "series": [{"label": label, "color": color, "values": _floats(values)} for label, color, values in series],
        }
        for title, unit, series in plots
        if any(np.isfinite(values).any() for _, _, values in series)
    ]


# ---------------------------------------------------------------- shapes of a body


def _shapes(body: Body) -> list[Shape]:
    """Everything that draws the body: its visuals, or a stick figure where it has none."""
    text = pinocchio_text(etree.fromstring(body.urdf.encode()))
    visuals = pin.buildGeomFromUrdfString(body.model, text, pin.VISUAL).geometryObjects
    shapes = [
        (int(item.parentJoint), item.placement, geometry, tuple(item.meshColor))
        for item in visuals
        if (geometry := _geometry(item.geometry)) is not None
    ]
    return shapes or _stick_figure(body)


def _geometry(shape: Any) -> Any:
    kind = type(shape).__name__
    if kind == "Box":
        return Box((2 * shape.halfSide).tolist())
    if kind == "Sphere":
        return _solid(shape.radius, 0)
    if kind in ("Capsule", "Cylinder"):
        return _solid(shape.radius, shape.halfLength, flat=kind == "Cylinder")
    return None


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


def _stick_figure(body: Body) -> list[Shape]:
    """Draw a ball at every joint and bars to the joints it carries, or to its centre of mass at the end."""
    model = body.model
    shapes: list[Shape] = []
    for joint in range(1, model.njoints):
        shapes.append((joint, pin.SE3.Identity(), _solid(0.03, 0), PLAIN_COLOR))
        ends = [model.jointPlacements[child].translation for child in model.children[joint]]
        for end in ends or [model.inertias[joint].lever]:
            length = float(np.linalg.norm(end))
            if length > 1e-6:
                turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0, 1]), end).toRotationMatrix()
                shapes.append((joint, pin.SE3(turn, end / 2), _solid(0.02, length / 2), PLAIN_COLOR))
    return shapes


def _body_commands(shapes: list[Shape]) -> list[bytes]:
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
    return [umsgpack.packb(command) for command in commands]


def _floats(values: Array) -> str:
    return _base64(np.ascontiguousarray(values, dtype="<f4").tobytes())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
