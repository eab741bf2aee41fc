"""The moving body as animated GLB (binary glTF 2.0), for Blender, PowerPoint, web viewers and game engines.

Written by hand: trimesh, which is installed anyway, writes no animations, and pygltflib only turns dataclasses into
JSON and leaves buffers and accessors, which is all there is to do here, to its user. The ground, forces and curves stay
in the page; this holds the body's shapes, one node for each joint, and a node "deck" that moves as the deck does.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import xarray as xr
from numpy.typing import NDArray

from posture.body import Body
from posture.results import replacing
from posture.view import body_of, story
from posture.view.payload import deck_shift, frame_rows
from posture.view.shapes import body_shapes

Array = NDArray[np.floating]

FLOAT, UINT32 = 5126, 5125  # glTF's names of number formats
ARRAY_BUFFER, ELEMENT_BUFFER = 34962, 34963
Y_UP = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]  # glTF has Y up, we have Z up


def write_glb(dataset: xr.Dataset, path: str | Path, *, max_frames: int = 6000) -> None:
    """Write a run's body and motion, complete or not at all."""
    frames = dataset.isel(time=frame_rows(dataset.time.values, max_frames))
    content = glb_bytes(frames, body_of(dataset), deck_shift(dataset))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


class _Buffer:
    """Numbers one after another, and the accessors that find them."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: Array | NDArray[np.integer], kind: str, target: int | None = None) -> int:
        whole = np.issubdtype(values.dtype, np.integer)
        packed = np.ascontiguousarray(values, "<u4" if whole else "<f4")
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.content), "byteLength": packed.nbytes}
        self.views.append(view | ({"target": target} if target else {}))
        self.content += packed.tobytes()
        accessor: dict[str, Any] = {
            "bufferView": len(self.views) - 1,
            "componentType": UINT32 if whole else FLOAT,
            "count": len(packed),
            "type": kind,
        }
        table = packed.reshape(len(packed), -1)
        accessor |= {"min": table.min(axis=0).tolist(), "max": table.max(axis=0).tolist()}
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def glb_bytes(frames: xr.Dataset, body: Body, shift: Array) -> bytes:
    """The file's content; gaps (NaN) in the run are left out of the animation."""
    places, known = joint_places(frames, body)
    deck = np.hstack((story.rows(frames, "deck_position", 3, 0.0) - shift, _quaternion(frames, "deck_quaternion")))
    known &= np.isfinite(deck).all(axis=1)
    buffer = _Buffer()
    time = buffer.add(frames.time.values[known] - frames.time.values[0], "SCALAR") if known.any() else None
    nodes: list[dict[str, Any]] = [
        {"name": "posture", "rotation": Y_UP, "children": [1]},
        {"name": "deck", "children": []},
    ]
    meshes: list[dict[str, Any]] = []
    materials: list[dict[str, Any]] = []
    paints: dict[tuple[float, ...], int] = {}
    moves = [(1, deck)]
    joints: dict[int, int] = {}
    for joint, placement, geometry, color in body_shapes(body):
        if joint not in joints:
            joints[joint] = len(nodes)
            nodes.append({"name": body.model.names[joint] if joint > 1 else "root", "children": []})
            nodes[1]["children"].append(joints[joint])
            moves.append((joints[joint], places[:, joint]))
        if color not in paints:
            paints[color] = len(materials)
            surface = {"baseColorFactor": [*map(float, color)], "metallicFactor": 0.0, "roughnessFactor": 0.75}
            materials.append({"pbrMetallicRoughness": surface, "alphaMode": "OPAQUE" if color[3] >= 1 else "BLEND"})
        vertices, faces = np.asarray(geometry.vertices, float), np.asarray(geometry.faces)
        attributes = {
            "POSITION": buffer.add(vertices, "VEC3", ARRAY_BUFFER),
            "NORMAL": buffer.add(_normals(vertices, faces), "VEC3", ARRAY_BUFFER),
        }
        indices = buffer.add(faces.astype(np.uint32).ravel(), "SCALAR", ELEMENT_BUFFER)
        meshes.append({"primitives": [{"attributes": attributes, "indices": indices, "material": paints[color]}]})
        pose = pin.SE3ToXYZQUAT(placement)
        nodes[joints[joint]]["children"].append(len(nodes))
        nodes.append({"mesh": len(meshes) - 1, "translation": pose[:3].tolist(), "rotation": pose[3:].tolist()})
    samplers: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    for node, poses in moves if time is not None else []:
        start = poses[np.flatnonzero(known)[0]]  # for viewers that do not play animations
        nodes[node] |= {"translation": start[:3].tolist(), "rotation": _continuous(start[None, 3:])[0].tolist()}
        for path, values in (("translation", poses[known, :3]), ("rotation", _continuous(poses[known, 3:]))):
            kind = "VEC3" if path == "translation" else "VEC4"
            channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
            samplers.append({"input": time, "output": buffer.add(values, kind), "interpolation": "LINEAR"})
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "posture"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{key: value for key, value in node.items() if value != []} for node in nodes],
        "meshes": meshes,
        "materials": materials,
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "buffers": [{"byteLength": len(buffer.content)}],
    }
    if channels:
        document["animations"] = [{"name": "run", "samplers": samplers, "channels": channels}]
    text = json.dumps(document, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    data = bytes(buffer.content) + b"\0" * (-len(buffer.content) % 4)
    total = 12 + 8 + len(text) + 8 + len(data)
    head = struct.pack("<4sII", b"glTF", 2, total) + struct.pack("<I4s", len(text), b"JSON")
    return head + text + struct.pack("<I4s", len(data), b"BIN\0") + data


def joint_places(frames: xr.Dataset, body: Body) -> tuple[Array, NDArray[np.bool_]]:
    """Place and quaternion of every joint relative to the deck (frames × joints × 7), and which frames are known."""
    roots = np.hstack((story.rows(frames, "root_position", 3, 0.0), _quaternion(frames, "root_quaternion")))
    columns = [7 + body.joint_index(name) for name in story.labels(frames, "joint")]
    found = np.zeros((frames.sizes["time"], body.model.njoints, 7))
    known = np.zeros(frames.sizes["time"], bool)
    q = pin.neutral(body.model)
    for row, (root, values) in enumerate(zip(roots, frames["joint_position"].values, strict=True)):
        q[:7], q[columns] = root, values
        known[row] = bool(np.isfinite(q).all())
        if known[row]:
            pin.forwardKinematics(body.model, body.data, q)
            found[row] = [pin.SE3ToXYZQUAT(place) for place in body.data.oMi]
    return found, known


def _quaternion(frames: xr.Dataset, name: str) -> Array:
    return story.rows(frames, name, 4) if name in frames else np.tile([0.0, 0, 0, 1], (frames.sizes["time"], 1))


def _continuous(turns: Array) -> Array:
    """Quaternions of unit length without changes of sign, which would make a viewer turn the long way round."""
    unit = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    sign = np.where(np.sum(unit[1:] * unit[:-1], axis=1) < 0, -1.0, 1.0)
    return np.asarray(unit * np.concatenate(([1.0], np.cumprod(sign)))[:, None])


def _normals(vertices: Array, faces: NDArray[np.integer]) -> Array:
    corners = vertices[faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    found = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(found, faces[:, corner], across)
    size = np.linalg.norm(found, axis=1, keepdims=True)
    return np.where(size > 1e-15, found / np.where(size > 0, size, 1), [0.0, 0.0, 1.0])
