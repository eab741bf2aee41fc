"""A run as the page wants it: what stays (shapes, joints, scenery) as JSON, what moves as packed numbers.

Numbers are float32 by columns, their bytes regrouped by significance (neighbours in time then share bytes, which gzip
finds), after a JSON head that says where each array lies. The page turns joint angles into places itself, with the
joints' placements and axes from Pinocchio; that is a seventh of storing every joint's pose.
"""

from __future__ import annotations

import gzip
import json
import math
import struct
from typing import Any

import numpy as np
import pinocchio as pin
import xarray as xr
from numpy.typing import NDArray
from scipy.ndimage import spline_filter

from posture.anthropometry import muscle_places
from posture.body import STANDARD_GRAVITY, Body
from posture.view import story
from posture.view.shapes import body_shapes, shape_commands

Array = NDArray[np.floating]

SMOOTH, FINEST = 25.0, 100.0  # frames per second that are always and at most kept; the page interpolates between
SHORT_RUN = 1500  # frames up to which a run keeps more than SMOOTH
SEA_NODES, SEA_SPACING, SEA_FRAMES = 32, 8.0, 400  # wave heights on a square about the ship: nodes, m, at most


def frame_rows(time: Array, max_frames: int) -> NDArray[np.intp]:
    """Rows that are shown."""
    step = float(np.diff(time).mean()) if len(time) > 1 else 1.0
    rate = min(FINEST, max(SMOOTH, SHORT_RUN / max(1e-9, len(time) * step)))
    stride = max(1, math.ceil(1 / rate / step - 1e-6), math.ceil(len(time) / max_frames))
    return np.arange(0, len(time), stride)


def payload(dataset: xr.Dataset, body: Body, *, max_frames: int) -> bytes:
    """Everything the page needs about a run."""
    chosen = frame_rows(dataset.time.values, max_frames)
    frames = dataset.isel(time=chosen)
    head, arrays = fixed(frames, body), moving(frames, body, shift=deck_shift(dataset))
    head["events"] = [{"time": time, "text": text} for time, text in story.events(dataset)]
    head["every"] = int(chosen[1]) if len(chosen) > 1 else 1
    head["step"] = float(np.diff(dataset.time.values).mean()) if len(dataset.time) > 1 else 0.0
    if (sea := wave_heights(frames, deck_shift(dataset))) is not None:
        head["sea"], arrays["sea"] = sea
    return pack(head, arrays)


def deck_shift(dataset: xr.Dataset) -> Array:
    """Mean place of the station: the earth is drawn about it."""
    place = story.rows(dataset, "deck_position", 3, 0.0)
    good = place[np.isfinite(place).all(axis=1)]
    return np.asarray(good.mean(axis=0)) if len(good) else np.zeros(3)


# ---------------------------------------------------------------- what stays


def fixed(dataset: xr.Dataset, body: Body) -> dict[str, Any]:
    """Shapes, joints, names and units; nothing here depends on how long the run is."""
    shapes = body_shapes(body)
    joints = story.labels(dataset, "joint")
    has_outline = "stance_margin" in dataset and bool(body.contact_names) and not body.sidecar.get("floats")
    has_muscles = "muscle_path" in dataset and "muscle_activation" in dataset
    return {
        "commands": shape_commands(shapes),
        "drawn": sorted({joint for joint, *_ in shapes}),
        "skeleton": _skeleton(body, joints),
        "names": ["", "root", *body.joint_names],
        "facing": story.facing(dataset),
        "scene": "sea" if story.deck_moves(dataset) else "lab",
        "height": float(max(0.3, body.center_of_mass()[2])) if not body.sidecar.get("floats") else _standing(dataset),
        "outline": body.contact_polygon().tolist() if has_outline else [],
        "feet": story.has_feet(body),
        "contacts": story.labels(dataset, "contact") if "ground_force" in dataset else [],
        "muscles": story.labels(dataset, "muscle") if has_muscles else [],
        "skin": _over_muscles(body) if has_muscles else [],
        "elements": _elements(dataset, body),
        "loads": _loads(dataset, body),
        "ghost": "reference_joint_position" in dataset,
        "readouts": [
            {"label": item.label, "unit": item.unit, "digits": item.digits} for item in story.readouts(dataset, body)
        ],
        "plots": [
            {
                "title": plot.title,
                "unit": plot.unit,
                "cycle": plot.cycle,
                "curves": [{"label": curve.label, "color": curve.color} for curve in plot.curves],
            }
            for plot in story.plots(dataset, body)
        ],
    }


def _standing(dataset: xr.Dataset) -> float:
    """Height of the root of a floating body, m, which is about that of its centre of mass."""
    heights = story.rows(dataset, "root_position", 3, 1.0)[:, 2]
    return float(np.clip(np.nanmedian(heights), 0.3, 3.0)) if np.isfinite(heights).any() else 1.0


def _skeleton(body: Body, names: list[str]) -> list[dict[str, Any]]:
    """Every joint after the root: its parent, placement (x y z, quaternion x y z w), axis and column of the angles."""
    model, data = body.model, body.model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    found = []
    for joint in range(2, model.njoints):
        axis = pin.getJointJacobian(model, data, joint, pin.LOCAL)[:, model.joints[joint].idx_v]
        turns = bool(np.any(axis[3:]))
        name = model.names[joint]
        found.append(
            {
                "joint": joint,
                "parent": int(model.parents[joint]),
                "place": pin.SE3ToXYZQUAT(model.jointPlacements[joint]).tolist(),
                "turns": turns,
                "axis": (axis[3:] if turns else axis[:3]).tolist(),
                "column": names.index(name) if name in names else -1,
            }
        )
    return found


def _elements(dataset: xr.Dataset, body: Body) -> list[dict[str, Any]]:
    """Lines between links: which joint carries each end, and where on it."""
    if "element_tension" not in dataset:
        return []
    known = {line["name"]: line for line in json.loads(dataset.attrs.get("elements", "[]"))}
    found = []
    for name in story.labels(dataset, "element"):
        line = known.get(name)
        if line is None:
            continue
        ends = []
        for link, point in ((line["link_a"], line["point_a"]), (line["link_b"], line["point_b"])):
            frame = body.model.frames[body.link_frame(link)]
            place = frame.placement.act(np.array(point, float))
            ends.append({"joint": int(frame.parentJoint), "point": place.tolist()})
        found.append({"name": name, "type": line.get("type", "line"), "ends": ends})
    return found


def _over_muscles(body: Body) -> list[int]:
    """Joints whose links muscles run along: they are drawn as if the skin were clear."""
    links = {place["link"] for place in muscle_places(body.sidecar.get("muscles", {}))}
    return sorted({int(body.model.frames[body.link_frame(link)].parentJoint) for link in links})


def _loads(dataset: xr.Dataset, body: Body) -> list[int]:
    """Joints at which a load is drawn, in the order of the result's joints; 0 where it would only clutter.

    Of joints at one place (a ball made of three hinges) the last one stands for all.
    """
    if "joint_force" not in dataset:
        return []
    crossed = set(story.labels(dataset, "muscle_joint")) if "muscle_joint" in dataset.dims else None
    return [
        int(body.model.getJointId(name)) if crossed is None or name in crossed else 0
        for name in story.labels(dataset, "joint")
    ]


# ---------------------------------------------------------------- what moves


def moving(frames: xr.Dataset, body: Body, *, shift: Array) -> dict[str, Array]:
    """Numbers for each frame, by array name: frames × columns."""
    count = frames.sizes["time"]
    weight = body.mass * STANDARD_GRAVITY
    deck = np.hstack((story.rows(frames, "deck_position", 3, 0.0) - shift, _level(frames, "deck_quaternion")))
    arrays = {
        "time": frames.time.values,
        "joints": story.rows(frames, "joint_position", 0),
        "deck": deck,
        "com": _mass_centers(frames, body),
        "cop": story.pressure(frames, body),
        "force": story.rows(frames, "force_deck_on_person", 3) / weight,
        "margin": story.rows(frames, "stance_margin", 0) * 1000,
    }
    if "root_position" in frames:
        arrays["root"] = np.hstack((story.rows(frames, "root_position", 3, 0.0), _level(frames, "root_quaternion")))
    if "reference_joint_position" in frames:
        arrays["ghost_joints"] = story.rows(frames, "reference_joint_position", 0)
        if "reference_root_position" in frames:
            arrays["ghost_root"] = np.hstack(
                (story.rows(frames, "reference_root_position", 3, 0.0), _level(frames, "reference_root_quaternion"))
            )
    if "ground_force" in frames and "ground_point" in frames:
        arrays["contact_force"] = frames["ground_force"].values / weight
        arrays["contact_point"] = frames["ground_point"].values
    if "muscle_path" in frames and "muscle_activation" in frames:
        arrays["muscle_path"] = frames["muscle_path"].values
        arrays["muscle_activation"] = frames["muscle_activation"].values
    if "element_tension" in frames:
        arrays["tension"] = frames["element_tension"].values
    if "joint_force" in frames:
        arrays["load"] = frames["joint_force"].values / weight
    for k, readout in enumerate(story.readouts(frames, body)):
        arrays[f"readout{k}"] = readout.values
    for k, plot in enumerate(story.plots(frames, body)):
        arrays[f"plot{k}"] = np.column_stack([curve.values for curve in plot.curves])
    return {name: np.asarray(values, float).reshape(count, -1) for name, values in arrays.items()}


def _level(frames: xr.Dataset, name: str) -> Array:
    return story.rows(frames, name, 4) if name in frames else np.tile([0.0, 0, 0, 1], (frames.sizes["time"], 1))


def _mass_centers(frames: xr.Dataset, body: Body) -> Array:
    """Centre of mass of each frame: the result's, or worked out for a floating body."""
    if "position_com_in_deck" in frames or "root_position" not in frames:
        return story.rows(frames, "position_com_in_deck", 3)
    found = np.full((frames.sizes["time"], 3), np.nan)
    columns = [body.joint_index(name) for name in story.labels(frames, "joint")]
    q = pin.neutral(body.model)
    roots = np.hstack((frames["root_position"].values, _level(frames, "root_quaternion")))
    for row, (root, joints) in enumerate(zip(roots, frames["joint_position"].values, strict=True)):
        q[:7] = root
        q[[7 + column for column in columns]] = joints
        if np.isfinite(q).all():
            found[row] = pin.centerOfMass(body.model, body.data, q)
    return found


def wave_heights(frames: xr.Dataset, shift: Array) -> tuple[dict[str, Any], Array] | None:
    """The sea about the ship where the run knows its waves: heights (m) on a grid, some times a second.

    Waves: variables along ``wave``: ``wave_amplitude`` (m), ``wave_number`` (with ``plane``, rad/m, the way the wave
    goes), ``wave_frequency`` (rad/s, as met by the ship), ``wave_phase`` (rad): height at (x, y), in the axes of
    deck_position, is Σ a cos(ω t - k·(x, y) + phase). What is stored are the coefficients of a cubic spline, so that
    the page's surface goes through the heights.
    """
    if "wave_amplitude" not in frames:
        return None
    amplitude, number, frequency, phase = (
        np.asarray(frames[f"wave_{name}"].values, float) for name in ("amplitude", "number", "frequency", "phase")
    )
    time = frames.time.values
    count = int(min(SEA_FRAMES, max(2, math.ceil(5 * (time[-1] - time[0])))))
    times = np.linspace(time[0], time[-1], count)
    line = (np.arange(SEA_NODES) - (SEA_NODES - 1) / 2) * SEA_SPACING
    x, y = (values.ravel() for values in np.meshgrid(line + shift[0], line + shift[1]))
    there = np.exp(-1j * (np.outer(number[:, 0], x) + np.outer(number[:, 1], y)))
    then = amplitude * np.exp(1j * (np.outer(times, frequency) + phase))
    heights = (then @ there).real.reshape(count, SEA_NODES, SEA_NODES)
    smooth = np.array([spline_filter(sheet, order=3, mode="mirror") for sheet in heights])
    largest = float(np.abs(smooth).max()) or 1.0
    head = {"nodes": SEA_NODES, "spacing": SEA_SPACING, "count": count, "largest": largest, "level": float(-shift[2])}
    return head, np.round(smooth / largest * 127 + 128).reshape(count, -1)


# ---------------------------------------------------------------- packing


def pack(head: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """A head and arrays in one compressed piece; wave heights go as bytes, all else as float32."""
    parts, places, at = [], {}, 0
    for name, values in arrays.items():
        kind = "u1" if name == "sea" else "f4"
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which the page leaves out
            columns = np.ascontiguousarray(values.T, dtype=np.dtype(kind).newbyteorder("<"))
        planes = columns.view(np.uint8).reshape(-1, columns.dtype.itemsize).T.tobytes()
        places[name] = {"rows": len(values), "width": values.shape[1], "at": at, "kind": kind}
        parts.append(planes)
        at += len(planes)
    text = json.dumps({**head, "arrays": places}, allow_nan=False).encode()
    return gzip.compress(struct.pack("<I", len(text)) + text + b"".join(parts), mtime=0)


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The reverse of ``pack``, as the page does it."""
    whole = gzip.decompress(content)
    (size,) = struct.unpack_from("<I", whole)
    head = json.loads(whole[4 : 4 + size])
    arrays = {}
    for name, place in head.pop("arrays").items():
        kind = np.dtype(place["kind"]).newbyteorder("<")
        count = place["rows"] * place["width"]
        planes = np.frombuffer(whole, np.uint8, count * kind.itemsize, 4 + size + place["at"])
        flat = np.ascontiguousarray(planes.reshape(kind.itemsize, count).T).view(kind)[:, 0]
        arrays[name] = flat.reshape(place["width"], place["rows"]).T
    return head, arrays
