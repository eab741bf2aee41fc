"""Bodies and marker sets from OpenSim models (.osim, version 4), as URDF with the same coordinates.

Kept: masses, centres, inertias, joint places, every coordinate that turns or slides a body in proportion to it, with
its name, axis and range, so that a moment here is the moment OpenSim reports under the same name. Left out: muscles,
and motions that are nonlinear functions of a coordinate (a knee's sliding and screwing, a patella): these parts stay
where their function puts them at the default value. OpenSim's frames (Y up) become ours (Z up) in every link.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree
from numpy.typing import NDArray

from posture.body import Body, body_from_text
from posture.errors import MotionError, find_name
from posture.markers import MarkerSet
from posture.motion_files import Y_UP, axes_matrix

Array = NDArray[np.floating]
TURN = axes_matrix(Y_UP)
NO_LIMIT = 1e3  # rad or m; of coordinates that are not clamped


def read_osim(
    path: str | Path, *, at: Mapping[str, float] | None = None, free_coupled: bool = False
) -> tuple[Body, MarkerSet]:
    """Body and marker set of an OpenSim model.

    ``at``: value (rad, m) of coordinates at which their nonlinear couplings are frozen, instead of the default;
    ``free_coupled``: turns that follow a coordinate nonlinearly become coordinates of their own (COORDINATE_rotation2).
    """
    path = Path(path)
    if not path.is_file():
        raise MotionError(f"{path}: no such file; give an OpenSim model (.osim)")
    try:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
        document = etree.parse(str(path), parser).getroot()
    except etree.XMLSyntaxError as error:
        raise MotionError(f"{path}: not valid XML ({error})") from None
    model, version = document.find("Model"), document.get("Version", "0")
    if model is None or not version.isdecimal() or int(version) < 40000:
        raise MotionError(f"{path}: not an OpenSim 4 model; open it once in OpenSim 4 and save it")
    return _Reader(path, model, dict(at or {}), free_coupled).build()


class _Reader:
    def __init__(self, path: Path, model: etree._Element, at: dict[str, float], free_coupled: bool) -> None:
        self.path, self.model, self.at, self.free_coupled = path, model, at, free_coupled
        self.robot = etree.Element("robot", name=path.stem, version="1.1")
        self.inner: dict[str, pin.SE3] = {}  # each OpenSim body's own frame in the frame of its URDF link
        self.locked: dict[str, float] = {}

    def build(self) -> tuple[Body, MarkerSet]:
        joints = {self._body(joint, "child"): joint for joint in self.model.iterfind("JointSet/objects/*")}
        bodies = {str(body.get("name")): body for body in self.model.iterfind("BodySet/objects/Body")}
        for name, joint in joints.items():
            find_name(name, bodies, what="body", where=self._where(joint), error=MotionError)
            parent = self._body(joint, "parent")
            find_name(parent, ["ground", *joints], what="jointed body", where=self._where(joint), error=MotionError)
        waiting = list(joints)
        while waiting:
            ready = [name for name in waiting if self._body(joints[name], "parent") not in waiting]
            if not ready:
                raise MotionError(f"{self.path}: joints form a loop at {waiting[0]!r}; cut one")
            for name in ready:
                self._joint(joints[name], bodies[name])
                waiting.remove(name)
        text = etree.tostring(self.robot, encoding="unicode")
        body = body_from_text(self.path.stem, text, {"floats": True})
        return (body.lock(self.locked) if self.locked else body), self._markers()

    def _where(self, element: etree._Element) -> str:
        name = element.get("name")
        return f"{self.path}, line {element.sourceline}: {element.tag}{f' {name!r}' if name else ''}"

    def _numbers(self, element: etree._Element, tag: str, count: int | None = 3) -> Array:
        """Numbers in a child element; ``count`` None: as many as there are."""
        try:
            found = np.array((element.findtext(tag) or "").split(), float)
        except ValueError:
            found = np.empty(0)
        if len(found) != (count or max(1, len(found))) or not np.isfinite(found).all():
            many = "numbers" if count is None else "a number" if count == 1 else f"{count} numbers"
            raise MotionError(f"{self._where(element)} needs {many} in <{tag}>")
        return found

    def _number(self, element: etree._Element, tag: str) -> float:
        return float(self._numbers(element, tag, 1)[0])

    # -------------------------------------------------------- frames, in our axes

    def _frame(self, joint: etree._Element, end: str) -> etree._Element:
        name = (joint.findtext(f"socket_{end}_frame") or "").strip()
        for frame in joint.findall("frames/PhysicalOffsetFrame"):
            if frame.get("name") == name:
                return frame
        raise MotionError(f"{self._where(joint)} has no frame {name!r}; only offset frames are read")

    def _body(self, joint: etree._Element, end: str) -> str:
        return str(self._frame(joint, end).findtext("socket_parent")).strip().rsplit("/", 1)[-1]

    def _placement(self, frame: etree._Element) -> pin.SE3:
        angles = self._numbers(frame, "orientation")
        rotation = np.eye(3)
        for axis, angle in enumerate(angles):  # frame-fixed x-y-z
            rotation = rotation @ pin.AngleAxis(float(angle), np.eye(3)[axis]).matrix()
        return pin.SE3(TURN @ rotation @ TURN.T, TURN @ self._numbers(frame, "translation"))

    # -------------------------------------------------------- links and joints

    def _joint(self, joint: etree._Element, body: etree._Element) -> None:
        name = str(body.get("name"))
        parent = self._body(joint, "parent")
        self.inner[name] = self._placement(self._frame(joint, "child")).inverse()
        if parent == "ground":
            self._link(name, body)
            return
        start = self.inner[parent] * self._placement(self._frame(joint, "parent"))
        moves, rest = self._moves(joint)
        link = parent
        for number, (coordinate, kind, axis, before) in enumerate(moves, start=1):
            child = name if number == len(moves) else f"{coordinate}_moved"
            if child != name:
                etree.SubElement(self.robot, "link", name=child)
            self._write_joint(coordinate, kind, link, child, start * before, axis, self._limits(joint, coordinate))
            link, start = child, pin.SE3.Identity()
        if moves:
            self.inner[name] = rest * self.inner[name]
        else:
            self._write_joint(str(joint.get("name")), "fixed", parent, name, start * rest, None, None)
        self._link(name, body)

    def _moves(self, joint: etree._Element) -> tuple[list[tuple[str, str, Array, pin.SE3]], pin.SE3]:
        """Coordinates that move in proportion, in order, each with what is constant before it; and the constant rest.

        OpenSim's spatial transform slides along the parent's axes first, then turns about axes that turn along.
        """
        coordinates = [str(item.get("name")) for item in joint.findall("coordinates/Coordinate")]
        if joint.tag == "WeldJoint":
            return [], pin.SE3.Identity()
        simple = {"PinJoint": np.eye(3)[2:], "BallJoint": np.eye(3)}
        if joint.tag in simple:
            axes = simple[joint.tag]
            if len(coordinates) != len(axes):
                raise MotionError(f"{self._where(joint)} has {len(coordinates)} coordinates, but needs {len(axes)}")
            return [
                (name, "revolute", TURN @ axis, pin.SE3.Identity())
                for name, axis in zip(coordinates, axes, strict=True)
            ], pin.SE3.Identity()
        if joint.tag != "CustomJoint":
            raise MotionError(f"{self._where(joint)} is not read; Custom, Pin, Ball and Weld joints are")
        slides: list[tuple[str, Array]] = []
        shift, turned = np.zeros(3), np.eye(3)
        turns: list[tuple[str, str, Array, pin.SE3]] = []
        for transform in joint.findall("SpatialTransform/TransformAxis"):
            axis = TURN @ self._numbers(transform, "axis")
            axis /= max(float(np.linalg.norm(axis)), 1e-300)
            coordinate = (transform.findtext("coordinates") or "").strip()
            slope, value = self._function(joint, transform, coordinate)
            turning = (transform.get("name") or "").startswith("rotation")
            if slope and abs(abs(slope) - 1) > 1e-9:
                raise MotionError(
                    f"{self._where(transform)} of joint {joint.get('name')!r} moves {slope:g} times its coordinate; "
                    "only 1 and -1 times are read"
                )
            if not turning:
                shift = shift + value * axis
                slides += [(coordinate, slope * axis)] if slope else []
                continue
            frees = self.free_coupled and self._varies(transform) and bool(turns)
            turned = turned if frees else turned @ pin.AngleAxis(value, axis).matrix()
            if slope or frees:
                name = f"{coordinate}_{transform.get('name')}" if frees else coordinate
                turns.append((name, "revolute", (slope or 1.0) * axis, pin.SE3(turned, np.zeros(3))))
                turned = np.eye(3)
        moves = [(name, "prismatic", axis, pin.SE3.Identity()) for name, axis in slides] + turns
        shifted, rest = pin.SE3(np.eye(3), shift), pin.SE3(turned, np.zeros(3))
        if not moves:
            return [], shifted * rest
        moves[0] = (*moves[0][:3], shifted * moves[0][3])
        return moves, rest

    def _varies(self, transform: etree._Element) -> bool:
        return transform.find(".//PolynomialFunction") is not None or transform.find(".//SimmSpline") is not None

    def _function(self, joint: etree._Element, transform: etree._Element, coordinate: str) -> tuple[float, float]:
        """Slope of a linear function (0 of any other), and its value: at zero if linear, else where it is frozen."""
        scale = 1.0
        function = next((item for item in transform if item.tag.endswith(("Function", "Spline", "Constant"))), None)
        if function is not None and function.tag == "MultiplierFunction":
            scale = self._number(function, "scale")
            function = next(iter(function.iterfind("function/*")), None)
        if function is None:
            return 0.0, 0.0
        if function.tag == "LinearFunction":
            slope, offset = self._numbers(function, "coefficients", 2)
            return scale * float(slope), scale * float(offset)
        if function.tag == "Constant":
            return 0.0, scale * self._number(function, "value")
        defaults = {item.get("name"): item for item in joint.findall("coordinates/Coordinate")}
        where = self.at.get(coordinate, 0.0)
        if coordinate not in self.at and coordinate in defaults:
            where = self._default(defaults[coordinate])
        if function.tag == "PolynomialFunction":
            return 0.0, scale * float(np.polyval(self._numbers(function, "coefficients", None), where))
        if function.tag in ("SimmSpline", "PiecewiseLinearFunction", "NaturalCubicSpline"):
            from scipy.interpolate import CubicSpline

            x, y = self._numbers(function, "x", None), self._numbers(function, "y", None)
            if len(x) != len(y) or len(x) < 2 or not (np.diff(x) > 0).all():
                raise MotionError(f"{self._where(function)} needs as many rising x as y, at least two")
            return 0.0, scale * float(CubicSpline(x, y)(where))
        raise MotionError(f"{self._where(joint)} uses a {function.tag}, which is not read")

    def _default(self, coordinate: etree._Element) -> float:
        return self._number(coordinate, "default_value") if coordinate.find("default_value") is not None else 0.0

    def _limits(self, joint: etree._Element, coordinate: str) -> tuple[float, float]:
        for item in joint.findall("coordinates/Coordinate"):
            if item.get("name") == coordinate:
                if (item.findtext("locked") or "false").strip() == "true":
                    self.locked[coordinate] = self._default(item)
                low, high = self._numbers(item, "range", 2)
                if (item.findtext("clamped") or "false").strip() == "true":
                    return float(low), float(high)
        return -NO_LIMIT, NO_LIMIT

    def _write_joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        placement: pin.SE3,
        axis: Array | None,
        limits: tuple[float, float] | None,
    ) -> None:
        joint = etree.SubElement(self.robot, "joint", name=name, type=kind)
        etree.SubElement(joint, "parent", link=parent)
        etree.SubElement(joint, "child", link=child)
        angles = pin.rpy.matrixToRpy(placement.rotation)
        etree.SubElement(joint, "origin", xyz=_text(placement.translation), rpy=_text(angles))
        if axis is not None and limits is not None:
            etree.SubElement(joint, "axis", xyz=_text(axis))
            etree.SubElement(joint, "limit", lower=repr(limits[0]), upper=repr(limits[1]), effort="1e6", velocity="1e3")

    def _link(self, name: str, body: etree._Element) -> None:
        link = etree.SubElement(self.robot, "link", name=name)
        mass = self._number(body, "mass")
        if mass < 1e-6:
            return
        xx, yy, zz, xy, xz, yz = self._numbers(body, "inertia", 6)
        frame = self.inner[name]
        turn = frame.rotation @ TURN
        tensor = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
        inertial = etree.SubElement(link, "inertial")
        etree.SubElement(inertial, "origin", xyz=_text(frame.act(TURN @ self._numbers(body, "mass_center"))))
        etree.SubElement(inertial, "mass", value=repr(mass))
        keys = {"ixx": (0, 0), "iyy": (1, 1), "izz": (2, 2), "ixy": (0, 1), "ixz": (0, 2), "iyz": (1, 2)}
        etree.SubElement(inertial, "inertia", {key: repr(float(tensor[place])) for key, place in keys.items()})

    def _markers(self) -> MarkerSet:
        names, links, places = [], [], []
        for marker in self.model.iterfind("MarkerSet/objects/Marker"):
            link = str(marker.findtext("socket_parent_frame")).strip().rsplit("/", 1)[-1]
            if link not in self.inner:
                continue
            names.append(marker.get("name"))
            links.append(link)
            places.append(self.inner[link].act(TURN @ self._numbers(marker, "location")))
        return MarkerSet(names, links, np.array(places).reshape(-1, 3), np.ones(len(names)), str(self.path))


def _text(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)
