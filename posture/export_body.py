"""Give bodies to other programs: as plain URDF (scaled, standing, joints locked) and as MJCF by MuJoCo's own compiler.

Pinocchio reads URDF but cannot write it, so the text is kept beside the model. A locked joint becomes a fixed one at
its angle; nothing else changes, so that mass, inertia and motion stay the same (tested in Pinocchio, MuJoCo, Drake).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from posture.body import Body
from posture.errors import BodyError
from posture.results import write_text
from posture.swap import _axis, _fix, _origin, _set_origin, _words

MASSLESS = "1e-14"  # kg and kg·m²; MuJoCo has no massless frames between joints, so they get next to nothing


def urdf_text(body: Body) -> str:
    """URDF in which locked joints are fixed where they are locked."""
    root = etree.fromstring(body.urdf.encode())
    root.set("version", "1.1")  # capsules need it
    for joint in root.findall("joint"):
        angle = body.locked.get(joint.get("name"))
        if angle is None:
            continue
        axis = _axis(joint)
        if joint.get("type") == "prismatic":
            moved = pin.SE3(np.eye(3), axis * angle)
        else:
            moved = pin.SE3(pin.AngleAxis(angle, axis).matrix(), np.zeros(3))
        _set_origin(joint, _origin(joint) * moved)
        _fix(joint)
    return str(etree.tostring(root, encoding="unicode"))


def mjcf_text(body: Body) -> str:
    """MJCF of the same body, compiled and saved by MuJoCo (extra ``mujoco``): root fixed, or free if the body floats.

    Shapes are left out of the dynamics: masses and inertias are the URDF's, no limits or friction.
    """
    try:
        import mujoco
    except ImportError:
        raise BodyError("MJCF is written by MuJoCo, which is not installed; pip install mujoco") from None
    root = etree.fromstring(urdf_text(body).encode())
    for link in root.findall("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(shape)
    for joint in root.findall("joint"):
        # A range of zero width or an infinite one stops MuJoCo's compiler; the dynamics here have no stops anyway.
        if joint.get("type") == "revolute":
            joint.set("type", "continuous")
        for limit in joint.findall("limit"):
            if joint.get("type") == "continuous":
                joint.remove(limit)
        for extra in joint.findall("dynamics"):
            joint.remove(extra)
    if body.floats:
        above = {joint.find("child").get("link") for joint in root.findall("joint")}
        (first,) = [link.get("name") for link in root.findall("link") if link.get("name") not in above]
        etree.SubElement(root, "link", name="world")
        free = etree.SubElement(root, "joint", name="root_joint", type="floating")
        etree.SubElement(free, "parent", link="world")
        etree.SubElement(free, "child", link=first)
    settings = etree.SubElement(root, "mujoco")
    etree.SubElement(
        settings,
        "compiler",
        fusestatic="false",
        discardvisual="false",
        balanceinertia="false",
        boundmass=MASSLESS,
        boundinertia=MASSLESS,
        inertiafromgeom="false",
        strippath="true",
    )
    try:
        spec = mujoco.MjSpec.from_string(etree.tostring(root, encoding="unicode"))
        for one in spec.joints:
            one.limited = mujoco.mjtLimited.mjLIMITED_FALSE
        spec.option.gravity = [0, 0, -9.80665]
        model = spec.compile()
        return _with_all_digits(str(spec.to_xml()), model)
    except ValueError as error:
        raise BodyError(f"{body.name}: MuJoCo's compiler does not take it ({error})") from None


def _with_all_digits(text: str, model: Any) -> str:
    """MuJoCo writes six digits; here every number that decides the dynamics gets all of its own."""
    import mujoco

    root = etree.fromstring(text.encode())
    for element in root.iter("body"):
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, element.get("name"))
        element.set("pos", _words(model.body_pos[index]))
        element.set("quat", _words(model.body_quat[index]))
        inertial = element.find("inertial")
        if inertial is not None:
            inertial.set("pos", _words(model.body_ipos[index]))
            inertial.set("quat", _words(model.body_iquat[index]))
            inertial.set("mass", _words(model.body_mass[[index]]))
            inertial.set("diaginertia", _words(model.body_inertia[index]))
            inertial.attrib.pop("fullinertia", None)
        for joint in element.findall("joint"):
            number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.get("name"))
            joint.set("pos", _words(model.jnt_pos[number]))
            joint.set("axis", _words(model.jnt_axis[number]))
    for option in root.iter("option"):
        option.set("gravity", _words(model.opt.gravity))
    return str(etree.tostring(root, encoding="unicode", pretty_print=True))


def write_export(body: Body, path: str | Path) -> None:
    """Write a body for other programs: ``.urdf`` (no sidecar; see ``write_body``) or ``.xml`` (MJCF)."""
    path = Path(path)
    if path.suffix == ".urdf":
        write_text(path, urdf_text(body) + "\n")
    elif path.suffix == ".xml":
        write_text(path, mjcf_text(body))
    else:
        raise BodyError(f"{path}: a body is exported as .urdf or, for MuJoCo, as .xml; give a name that ends so")
