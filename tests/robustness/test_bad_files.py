"""Files that are wrong: each gets one sentence that names the file and the fault, and nothing is left behind."""

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers import PD
from posture.body import load_body
from posture.deck import constant_deck
from posture.results import save
from posture.simulate import simulate
from posture.urdf import read_urdf

GOOD = """<?xml version="1.0"?>
<robot name="mast" version="1.1">
  <link name="deck"/>
  <link name="pole">
    <inertial>
      <origin xyz="0 0 0.9"/>
      <mass value="70"/>
      <inertia ixx="8" iyy="8" izz="0.9" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <visual><geometry><capsule radius="0.1" length="1.6"/></geometry></visual>
  </link>
  <joint name="ankle" type="revolute">
    <parent link="deck"/>
    <child link="pole"/>
    <origin xyz="0 0 0.1"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="500" velocity="10"/>
  </joint>
</robot>
"""
SIDECAR = """[person]
mass = 70.0
height = 1.8
sex = "male"

[contact.sole]
link = "deck"
points = [[-0.1, -0.1, 0.0], [0.2, -0.1, 0.0], [0.2, 0.1, 0.0], [-0.1, 0.1, 0.0]]

[segments]
pole = { segment = "trunk", direction = [0, 0, -1], origin = 1.0, carries_mass = true }
"""
SCENARIO = """body = "mast.urdf"
duration = 1.0
step = 0.005
seed = 3

[deck]
type = "sines"
roll = [{ amplitude_deg = 3.0, period = 8.0 }]

[controller]
type = "pd"
stiffness_ratio = 4.0
"""
LINK = '<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'  # noqa: E501
JOINT = '<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{2}"/><axis xyz="1 0 0"/></joint>'


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def added(elements: str) -> str:
    return changed("</robot>", elements + "</robot>")


def bomb() -> str:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(12))
    return f"<?xml version='1.0'?><!DOCTYPE robot [{entities}]><robot name='&e11;'><link name='deck'/></robot>"


def chain(count: int, *, kind: str = "continuous") -> str:
    links = "".join(LINK.format(f"l{n}") for n in range(count + 1))
    joints = "".join(JOINT.format(f"j{n}", f"l{n}", f"l{n + 1}") for n in range(count)).replace("continuous", kind)
    return f"<robot name='chain'>{links}{joints}</robot>"


MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual></link>'

# what is wrong: the URDF, and words its refusal must hold
URDFS: dict[str, tuple[str | bytes, list[str]]] = {
    "empty file": ("", ["empty"]),
    "not xml": ("solid cube\nfacet normal 0 0 1\n", ["line 1", "not well-formed"]),
    "unclosed element": (changed("</link>\n  <joint", "\n  <joint"), ["line ", "not well-formed"]),
    "binary": (bytes(range(256)) * 8, ["not well-formed"]),
    "another kind of xml": ("<sdf version='1.6'><model name='m'/></sdf>", ["<sdf>", "<robot>"]),
    "entity bomb": (bomb(), ["entities", "DOCTYPE"]),
    "entity bomb in utf-16": (bomb().replace("<?xml version='1.0'?>", "").encode("utf-16"), ["entities", "DOCTYPE"]),
    "entity that reads a file": (
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="x">&x;</robot>', ["entities"]),
    "no links": ("<robot name='nobody'/>", ["no <link>"]),
    "unnamed link": (added("<link/>"), ["<link>", "no name"]),
    "mass with a comma": (changed('value="70"', 'value="1,5"'), ["pole", "1,5", "line 4"]),
    "mass as text": (changed('value="70"', 'value="heavy"'), ["pole", "heavy"]),
    "mass nan": (changed('value="70"', 'value="nan"'), ["pole", "nan"]),
    "mass infinite": (changed('value="70"', 'value="1e999"'), ["pole", "1e999"]),
    "mass with a line break": (changed('value="70"', 'value="7&#10;x"'), ["pole", "finite number"]),
    "mass negative": (changed('value="70"', 'value="-70"'), ["pole", "-70 kg"]),
    "mass missing": (changed('<mass value="70"/>', ""), ["pole", "<mass>"]),
    "mass twice": (changed('<mass value="70"/>', '<mass value="70"/><mass value="7"/>'), ["pole", "<mass>", "2 times"]),
    "inertia missing": (changed('<inertia ixx="8" iyy="8" izz="0.9" ixy="0" ixz="0" iyz="0"/>', ""), ["<inertia>"]),
    "inertia incomplete": (changed(' iyz="0"', ""), ["pole", "iyz"]),
    "inertia not positive": (changed('ixy="0"', 'ixy="9"'), ["pole", "principal moment", "-1"]),
    "inertia of no solid": (changed('izz="0.9"', 'izz="90"'), ["pole", "8, 8, 90"]),
    "inertia zero": (changed('ixx="8" iyy="8" izz="0.9"', 'ixx="0" iyy="0" izz="0"'), ["pole", "inertia is zero"]),
    "inertia without mass": (changed('value="70"', 'value="0"'), ["pole", "mass is zero"]),
    "zero axis": (changed("0 1 0", "0 0 0"), ["ankle", "axis"]),
    "axis of two numbers": (changed('axis xyz="0 1 0"', 'axis xyz="0 1"'), ["ankle", "2 numbers, 3"]),
    "origin as text": (changed("0 0 0.1", "0 0 up"), ["ankle", "0 0 up"]),
    "two parents": (added(LINK.format("b") + JOINT.format("j", "deck", "b") + JOINT.format("k", "b", "pole")),
                    ["'pole'", "already has the parent 'deck'"]),
    "two roots": (added(LINK.format("island")), ["'deck' and 'island'"]),
    "cycle": (added(LINK.format("a") + LINK.format("b") + JOINT.format("j", "a", "b") + JOINT.format("k", "b", "a")),
              ["loop", "a → b → a"]),
    "joint to itself": (added(LINK.format("a") + JOINT.format("j", "a", "a")), ["loop", "a → a"]),
    "duplicate link": (added(LINK.format("pole")), ["link 'pole'", "already taken on line 4"]),
    "duplicate joint": (added(LINK.format("a") + JOINT.format("ankle", "pole", "a")), ["joint 'ankle'", "taken"]),
    "reserved name": (added(LINK.format("universe")), ["universe", "rename"]),
    "unknown parent": (changed('parent link="deck"', 'parent link="dekc"'), ["ankle", "'dekc' does not exist"]),
    "unknown joint type": (changed('"revolute"', '"ball"'), ["ankle", "'ball'"]),
    "floating joint": (changed('"revolute"', '"floating"'), ["ankle", "'floating'"]),
    "mimic": (changed("<axis", '<mimic joint="ankle"/><axis'), ["ankle", "<mimic>"]),
    "reversed limits": (changed('lower="-1" upper="1"', 'lower="1" upper="-1"'), ["ankle", "reversed"]),
    "limit nan": (changed('upper="1"', 'upper="nan"'), ["ankle", 'upper="nan"']),
    "limit missing": (changed('<limit lower="-1" upper="1" effort="500" velocity="10"/>', ""), ["ankle", "<limit"]),
    "effort negative": (changed('effort="500"', 'effort="-5"'), ["ankle", "effort"]),
    "mesh missing": (changed("</link>", MESH.format("no.stl")), ["pole", "no.stl", "does not exist"]),
    "mesh escaping": (changed("</link>", MESH.format("../../etc/passwd")), ["pole", "lies outside"]),
    "mesh escaping by package": (changed("</link>", MESH.format("package://../x.stl")), ["pole", "lies outside"]),
    "mesh absolute": (changed("</link>", MESH.format("/etc/passwd")), ["pole", "lies outside"]),
    "mesh from the web": (changed("</link>", MESH.format("https://x.y/z.stl")), ["pole", "https://x.y/z.stl"]),
    "mesh by a null byte": (changed("</link>", MESH.format("a&#1;.stl")), ["not well-formed"]),
    "mesh scale of text": (changed("</link>", MESH.format('mast.urdf" scale="1 1 big')), ["pole", "1 1 big"]),
    "capsule negative": (changed('radius="0.1"', 'radius="-0.1"'), ["pole", "radius", "positive"]),
    "unknown shape": (changed("<capsule", "<torus"), ["pole", "<torus>"]),
    "oversized file": (GOOD + " " * 5_000_001, ["bytes", "5000000"]),
    "mass in grams": (changed('value="70"', 'value="70000"'), ["pole", "70000 kg", "not g"]),
    "mass next to nothing": (changed('value="70"', 'value="1e-320"'), ["pole", "inertia of 8"]),
    "inertia in kg cm2": (
        changed('ixx="8" iyy="8" izz="0.9"', 'ixx="8e4" iyy="8e4" izz="9e3"'), ["pole", "kg·cm²"]),
    "lengths in mm": (changed("0 0 0.9", "0 0 900"), ["pole", "0 0 900", "mm"]),
    "turn in degrees": (changed('xyz="0 0 0.1"', 'xyz="0 0 0.1" rpy="0 0 90"'), ["ankle", "0 0 90", "degrees"]),
    "limits in degrees": (changed('lower="-1" upper="1"', 'lower="-90" upper="90"'), ["ankle", "90 rad", "degrees"]),
    "digits of another script": (changed('value="70"', 'value="７０"'), ["pole", "finite number"]),
    "blanks that do not break": (changed("0 0 0.1", "0\u00a00\u00a00.1"), ["ankle", "plain blanks"]),
    "tabs written as entities": (changed("0 0 0.1", "0&#9;0&#9;0.1"), ["ankle", "plain blanks"]),
    "misspelt inertial": (
        GOOD.replace("inertial>", "inertail>"), ["line 5", "<inertail>", "did you mean <inertial>"]),
    "misspelt origin": (changed('<origin xyz="0 0 0.1"', '<orgin xyz="0 0 0.1"'), ["<orgin>", "<origin>"]),
    "misspelt axis": (changed("<axis", "<axes"), ["<axes>", "did you mean <axis>"]),
    "misspelt xyz": (changed('xyz="0 0 0.1"', 'xzy="0 0 0.1"'), ["'xzy'", "xyz, rpy"]),
    "misspelt limit": (changed('upper="1"', 'uper="1"'), ["'uper'", "lower, upper"]),
    "capital letter": (added('<Link name="x"/>'), ["<Link>", "did you mean <link>"]),
    "link inside a link": (changed("</inertial>", '</inertial><link name="x"/>'), ["<link> in <link>", "<robot>"]),
    "name with a line break": (GOOD.replace("pole", "po&#10;le"), ["po\\nle", "line break"]),
    "robot without a name": (changed('robot name="mast"', "robot"), ["<robot> has no name"]),
    "material twice": (
        added('<material name="m"/><material name="m"/>'), ["material 'm'", "already taken"]),
    "material without a name": (changed("</visual>", "<material/></visual>"), ["<material> has no name"]),
    "colour of text": (
        changed("</visual>", '<material name="m"><color rgba="red"/></material></visual>'), ["'m'", "red"]),
    "damping of text": (changed("<axis", '<dynamics damping="abc"/><axis'), ["ankle", "abc"]),
    "massless leaf": (added('<link name="tip"/>' + JOINT.format("j", "pole", "tip")), ["'j'", "'tip'", "no mass"]),
    "two joints on one axis": (
        changed('child link="pole"', 'child link="gap"', added('<link name="gap"/>'
        '<joint name="twin" type="continuous"><parent link="gap"/><child link="pole"/><axis xyz="0 1 0"/></joint>')),
        ["share one axis"]),
    "more than 5000 joints": (chain(5001), ["5002 links", "2000"]),
    "more joints than memory": (chain(1500), ["1500 moving joints", "150"]),
    "deep xml": ("<robot name='d'>" + "<a>" * 4000 + "</a>" * 4000 + "</robot>", ["line 1", "not well-formed"]),
}  # fmt: skip

# what is wrong: the sidecar of a good URDF, and words
SIDECARS: dict[str, tuple[str | bytes, list[str]]] = {
    "not toml": ("[person\nmass = 70", ["mast.toml", "not valid TOML"]),
    "not text": (b"\xff\xfe\x00\x01", ["mast.toml", "not valid TOML"]),
    "nested beyond reason": ("person = " + "[" * 100_000, ["mast.toml", "not valid TOML"]),
    "misspelt table": (SIDECAR.replace("[person]", "[preson]"), ["mast.toml", "'preson'", "did you mean 'person'"]),
    "misspelt person key": (SIDECAR.replace("height", "hight"), ["mast.toml", "[person]", "height"]),
    "person in centimetres": (SIDECAR.replace("1.8", "180"), ["mast.toml", "180", "give metres"]),
    "person of text": (SIDECAR.replace("70.0", '"70"'), ["mast.toml", "mass", "'70'"]),
    "person of another sex": (SIDECAR.replace('"male"', '"mael"'), ["mast.toml", "'mael'", "did you mean 'male'"]),
    "person not a table": ("person = 3", ["mast.toml", "[person]"]),
    "contact with more": (SIDECAR.replace('= "deck"', '= "deck"\ncolour = 3'), ["[contact.sole]", "'colour'"]),
    "contact in mm": (SIDECAR.replace("0.1", "100").replace("0.2", "200"), ["[contact.sole]", "10 m"]),
    "contact of text": (SIDECAR.replace("0.2", '"0.2"'), ["[contact.sole]", "points"]),
    "variant not a table": ("variant = 3", ["mast.toml", "variant is 3"]),
    "variant of numbers": ("[variant.a.links]\npole = 3", ["mast.toml", "[variant.a] links"]),
    "roles not a table": ("roles = 3", ["mast.toml", "roles is 3"]),
    "roles of one word": ('[roles]\nankle_y = "ankle"', ["mast.toml", "roles is"]),
    "stand not a table": ("stand = 3", ["mast.toml", "stand is 3"]),
    "stand misspelt": ('[stand]\nhaed = "pole"', ["mast.toml", "'haed'", "did you mean 'head'"]),
    "contact not a table": ("contact = 3", ["mast.toml", "[contact"]),
    "contact of one point": ('[contact.a]\nlink = "deck"\npoints = [[0, 0, 0]]', ["[contact.a]", "three points"]),
    "contact on a line": (
        '[contact.a]\nlink = "deck"\npoints = [[0, 0, 0], [1, 0, 0], [2, 0, 0]]', ["mast.toml", "line"]),
    "contact nan": (SIDECAR.replace("0.2, -0.1", "nan, -0.1"), ["[contact.sole]", "points"]),
    "contact on no link": (SIDECAR.replace('"deck"', '"dekc"'), ["mast.toml", "'dekc'", "did you mean 'deck'"]),
    "contact that moves": (SIDECAR.replace('"deck"', '"pole"'), ["mast.toml", "'sole'", "moves"]),
    "segments not a table": ("segments = [1]", ["mast.toml", "[segments]"]),
    "segment of no link": (SIDECAR.replace("pole =", "poel ="), ["mast.toml", "'poel'", "did you mean 'pole'"]),
    "segment misspelt": (SIDECAR.replace('"trunk"', '"trnuk"'), ["mast.toml", "'trnuk'", "did you mean 'trunk'"]),
    "segment without direction": (SIDECAR.replace("direction = [0, 0, -1], ", ""), ["mast.toml", "pole", "direction"]),
    "segment askew": (SIDECAR.replace("[0, 0, -1]", "[0, 1, -1]"), ["mast.toml", "pole", "direction"]),
    "segment without origin": (SIDECAR.replace("origin = 1.0, ", ""), ["mast.toml", "pole", "origin"]),
    "segment key misspelt": (SIDECAR.replace("carries_mass", "carry_mass"), ["mast.toml", "'carry_mass'", "did you"]),
    "segment for a massless link": (
        SIDECAR + 'deck = { segment = "foot", direction = [1, 0, 0], origin = 0, carries_mass = true }',
        ["mast.toml", "deck", "<inertial>"]),
}  # fmt: skip

# what is wrong: the scenario of a good body, and words
SCENARIOS: dict[str, tuple[str | bytes, list[str]]] = {
    "not toml": ("body = mast", ["not valid TOML", "line 1"]),
    "not text": (b"\x80\x81", ["cannot be read as text"]),
    "nested beyond reason": ("deck = " + "[" * 100_000, ["not valid TOML"]),
    "oversized": ("#" * 1_000_001, ["1 MB"]),
    "misspelt setting": (SCENARIO.replace("duration", "duratoin"), ["'duratoin'", "did you mean 'duration'"]),
    "misspelt table": (SCENARIO.replace("[deck]", "[dekc]"), ["'dekc'", "did you mean 'deck'"]),
    "misspelt deck key": (SCENARIO.replace("roll =", "rol ="), ["[deck]", "'rol'", "did you mean 'roll'"]),
    "misspelt gain": (SCENARIO.replace("stiffness_ratio", "stifness_ratio"), ["[controller]", "stiffness_ratio"]),
    "misspelt joint": (SCENARIO + "stiffness = { anklee = 5.0 }", ["stiffness", "'anklee'", "did you mean 'ankle'"]),
    "misspelt locked joint": ('locked = ["ankel"]\n' + SCENARIO, ["'ankel'", "did you mean 'ankle'"]),
    "misspelt controller": (SCENARIO.replace('"pd"', '"pdd"'), ["'pdd'", "did you mean 'pd'"]),
    "misspelt deck type": (SCENARIO.replace('"sines"', '"sinse"'), ["'sinse'", "did you mean 'sines'"]),
    "unknown body": (SCENARIO.replace("mast.urdf", "ship_stnace"), ["'ship_stnace'", "did you mean 'ship_stance'"]),
    "missing body": (SCENARIO.replace("mast.urdf", "mats.urdf"), ["mats.urdf", "no such file"]),
    "body not a name": (SCENARIO.replace('"mast.urdf"', "7"), ["body is 7"]),
    "gain negative": (SCENARIO + "stiffness = { ankle = -5.0 }", ["stiffness", "'ankle'", "-5"]),
    "gain nan": (SCENARIO + "stiffness = { ankle = nan }", ["stiffness", "ankle", "nan"]),
    "gain text": (SCENARIO + 'damping = { ankle = "soft" }', ["damping", "ankle", "'soft'"]),
    "gain without joint": (SCENARIO + "damping = 5.0", ["damping", "ankle"]),
    "gain too stiff for the step": (SCENARIO + "damping = { ankle = 1e6 }", ["step", "damping of joint 'ankle'"]),
    "duration negative": (SCENARIO.replace("1.0", "-1.0", 1), ["duration", "-1"]),
    "duration of many digits": (SCENARIO.replace("1.0", "1" + "0" * 400, 1), ["duration", "must be a number"]),
    "duration of broken steps": (SCENARIO.replace("1.0", "1.003", 1), ["duration", "whole number", "try 1"]),
    "step nan": (SCENARIO.replace("0.005", "nan"), ["step", "nan"]),
    "seed broken": (SCENARIO.replace("seed = 3", "seed = 0.5"), ["seed", "whole number"]),
    "step that does not fit": (SCENARIO.replace("0.005", "0.003"), ["1 s", "whole number of steps of 0.003", "0.999"]),
    "body of nobody's home": (
        SCENARIO.replace("mast.urdf", "~no-such-user/x.urdf"), ["~no-such-user/x.urdf", "no such file"]),
    "frequency for period": (SCENARIO.replace("8.0", "0.125"), ["roll", "period 0.125 s", "not Hz"]),
    "period zero": (SCENARIO.replace("8.0", "0.0"), ["period", "0.05"]),
    "period missing": (SCENARIO.replace(", period = 8.0", ""), ["deck.roll", "period"]),
    "angle in the wrong unit": (SCENARIO.replace("amplitude_deg", "amplitude"), ["'amplitude'", "amplitude_deg"]),
    "station of two numbers": (SCENARIO.replace("[deck]", "[deck]\nstation = [1.0, 2.0]"), ["station", "three"]),
    "person incomplete": (SCENARIO + "[person]\nmass = 80.0", ["[person]", "height", "sex"]),
    "person in pounds": (SCENARIO + '[person]\nmass = 1e4\nheight = 1.8\nsex = "male"', ["bad.toml", "mass", "300 kg"]),
    "record missing": (SCENARIO.split("[deck]")[0] + '[deck]\ntype = "imu"\nfile = "no.csv"', ["no.csv", "no such"]),
}  # fmt: skip

HEADER = "time_s,gyro_x_rad_s,gyro_y_rad_s,gyro_z_rad_s,accel_x_m_s2,accel_y_m_s2,accel_z_m_s2"


def record(header: str = HEADER, **edits: Callable[[np.ndarray], None]) -> str:
    time = np.arange(400) / 50
    table = np.column_stack((time, 0.05 * np.sin(time), 0 * time, 0 * time, 0 * time, 0 * time, 0 * time + 9.8))
    for edit in edits.values():
        edit(table)
    lines = [",".join("" if math.isnan(value) else f"{value:.6g}" for value in row) for row in table]
    return "\n".join([header, *lines]) + "\n"


def setting(rows: object, column: int, value: float, *, scale: bool = False) -> Callable[[np.ndarray], None]:
    def edit(table: np.ndarray) -> None:
        table[rows, column] = table[rows, column] * value if scale else value

    return edit


def without_rows(text: str, first: int, last: int) -> str:
    lines = text.splitlines()
    return "\n".join(lines[:first] + lines[last:])


# what is wrong: the inertial record, and words
RECORDS: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["time_s"]),
    "header only": (HEADER + "\n", ["0 samples"]),
    "no header": (record().split("\n", 1)[1], ["no column time_s"]),
    "not text": (b"\xff\xfe" + bytes(200), ["not a CSV text file"]),
    "too short": ("\n".join(record().splitlines()[:20]), ["19 samples", "64"]),
    "column missing": (record(HEADER.replace("accel_z_m_s2", "up")), ["accel_z", "missing"]),
    "column twice": (record(HEADER.replace("gyro_y", "gyro_x")), ["gyro_"]),
    "units mixed": (record(HEADER.replace("gyro_y_rad_s", "gyro_y_deg_s")), ["gyro", "deg_s, rad_s"]),
    "text in a cell": (record().replace("9.8\n", "9.8m\n", 5), ["data row 1", "9.8m"]),
    "decimal commas": (record().replace(",", ";").replace(".", ","), ["time_s"]),
    "row cut short": (record().rstrip("\n")[:-20], ["data row 400"]),
    "missing value": (record(edit=setting(9, 2, math.nan)), ["sample 10", "missing"]),
    "infinite value": (record(edit=setting(9, 2, math.inf)), ["sample 10", "finite"]),
    "gap in time": (without_rows(record(), 200, 240), ["sample 200", "gap of"]),
    "time goes back": (record(edit=setting(100, 0, 0.5)), ["sample 101", "must increase"]),
    "time stands": (record(edit=setting(100, 0, 1.98)), ["sample 101", "must increase"]),
    "time in milliseconds": (record(edit=setting(slice(None), 0, 1000, scale=True)), ["every 20 s", "milliseconds"]),
    "g named m_s2": (record(edit=setting(slice(None), 6, 1.0)), ["looks like g", "accel_x_g"]),
    "gravity removed": (record(edit=setting(slice(None), 6, 0.0)), ["median length", "gravity"]),
    "upside down": (record(edit=setting(slice(None), 6, -9.8)), ["−Z", "turn the axes"]),
    "on its side": (record(edit=lambda t: t.__setitem__((slice(None), [4, 6]), [9.8, 0])), ["another axis than Z"]),
    "degrees named rad": (record(edit=setting(slice(None), 1, 100, scale=True)), ["rad/s", "gyro_x_deg_s"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def good_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    (folder / "mast.urdf").write_text(GOOD)
    (folder / "mast.toml").write_text(SIDECAR)
    body = load_body(folder / "mast.urdf")
    save(
        simulate(body, constant_deck(), PD(body.joint_names, stiffness=3000, damping=100), duration=1),
        folder / "run.nc",
    )
    return folder / "run.nc"


def edited(**attributes: object) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            for name, value in attributes.items():
                file.attrs[name] = value

    return edit


def values_changed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["joint_torque"][3] += 1e-9


def variable_removed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["joint_torque"]


def foreign(path: Path) -> None:
    path.unlink()
    xr.Dataset({"x": ("t", np.arange(3.0))}).to_netcdf(path, engine="h5netcdf")


def attribute_flipped(path: Path) -> None:
    raw = path.read_bytes()
    assert raw.count(b'value="70"') == 1
    path.write_bytes(raw.replace(b'value="70"', b'value="60"'))


RESULTS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "missing": (Path.unlink, ["no such file"]),
    "empty": (lambda path: path.write_bytes(b""), ["truncated"]),
    "text": (lambda path: path.write_text("time,x\n0,1\n"), ["not a readable netCDF4"]),
    "cut in half": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), ["truncated"]),
    "cut at the end": (lambda path: path.write_bytes(path.read_bytes()[:-1]), ["run.nc", "checksum"]),
    "cut before its sum": (lambda path: path.write_bytes(path.read_bytes()[:-90]), ["truncated"]),
    "foreign netcdf": (foreign, ["not a result of posture"]),
    "newer": (edited(schema_version=99), ["schema 99", "update posture"]),
    "version of text": (edited(schema_version="new"), ["run.nc", "schema"]),
    "checksums of text": (edited(checksums="none"), ["run.nc", "checksum"]),
    "checksums of nothing": (edited(checksums="{}"), ["run.nc", "checksum"]),
    "values changed": (values_changed, ["'joint_torque'", "checksum"]),
    "variable removed": (variable_removed, ["damaged"]),
    "body changed": (attribute_flipped, ["run.nc", "checksum", "damaged"]),
    "body changed, whole sum lost": (
        lambda path: [attribute_flipped(path), path.write_bytes(path.read_bytes()[:-79])], ["'body_urdf'", "checksum"]),
    "whole sum changed": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"), ["run.nc", "checksum"]),
    "folder": (lambda path: [path.unlink(), path.mkdir()], ["no such file"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory, run_all, good_result: Path) -> dict[str, tuple]:
    """Every bad file above put through the command line: case to (what happened, words, files before, files after)."""
    top = tmp_path_factory.mktemp("bad")
    lines, wanted, folders = {}, {}, {}

    def case(name: str, words: list[str], files: dict[str, str | bytes]) -> Path:
        folder = top / name.replace(" ", "_").replace(":", "")
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        wanted[name], folders[name] = words, folder
        return folder

    for kind, (urdf, words) in URDFS.items():
        folder = case(f"urdf: {kind}", ["mast.urdf", *words], {"mast.urdf": urdf})
        lines[f"urdf: {kind}"] = ["check", folder / "mast.urdf"]
    for kind, (sidecar, words) in SIDECARS.items():
        folder = case(f"sidecar: {kind}", words, {"mast.urdf": GOOD, "mast.toml": sidecar})
        scale = ["--mass", "60", "--height", "1.7", "--sex", "female", "--out", folder / "new.urdf"]
        lines[f"sidecar: {kind}"] = ["scale", folder / "mast.urdf", *scale]
    good = {"mast.urdf": GOOD, "mast.toml": SIDECAR}
    for kind, (scenario, words) in SCENARIOS.items():
        folder = case(f"scenario: {kind}", words, good | {"bad.toml": scenario})
        lines[f"scenario: {kind}"] = ["simulate", folder / "bad.toml", "--out", folder / "bad.nc"]
    by_record = SCENARIO.split("[deck]")[0] + '[deck]\ntype = "imu"\nfile = "record.csv"\n'
    for kind, (text, words) in RECORDS.items():
        folder = case(f"record: {kind}", ["record.csv", *words], good | {"r.toml": by_record, "record.csv": text})
        lines[f"record: {kind}"] = ["simulate", folder / "r.toml", "--out", folder / "r.nc"]
    for kind, (edit, words) in RESULTS.items():
        folder = case(f"result: {kind}", ["run.nc", *words], {})
        shutil.copy(good_result, folder / "run.nc")
        edit(folder / "run.nc")
        lines[f"result: {kind}"] = ["export", folder / "run.nc", "--out", folder / "run.csv"]
    before = {name: sorted(path.name for path in folder.iterdir()) for name, folder in folders.items()}
    done = run_all(list(lines.values()))
    after = {name: sorted(path.name for path in folder.iterdir()) for name, folder in folders.items()}
    return {name: (found, wanted[name], before[name], after[name]) for name, found in zip(lines, done, strict=True)}


CASES = [
    f"{kind}: {name}"
    for kind, table in {
        "urdf": URDFS, "sidecar": SIDECARS, "scenario": SCENARIOS, "record": RECORDS, "result": RESULTS,
    }.items()
    for name in table
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_gets_one_telling_sentence_and_leaves_nothing_behind(case: str, refusals: dict[str, tuple]) -> None:
    done, words, before, after = refusals[case]
    assert done.code == 2, done.err
    assert done.err.startswith("posture: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert done.out == ""
    assert [word for word in words if word not in done.err] == [], done.err
    assert after == before


def test_the_good_files_those_were_made_from_are_accepted(run_all, tmp_path: Path) -> None:
    (tmp_path / "mast.urdf").write_text(GOOD)
    (tmp_path / "mast.toml").write_text(SIDECAR)
    (tmp_path / "good.toml").write_text(SCENARIO)
    (tmp_path / "record.csv").write_text(record())
    imu = SCENARIO.split("[deck]")[0] + '[deck]\ntype = "imu"\nfile = "record.csv"\n'
    (tmp_path / "imu.toml").write_text(imu)
    person = ["--mass", "60", "--height", "1.7", "--sex", "female"]
    for done in run_all(
        [
            ["check", tmp_path / "mast.urdf"],
            ["scale", tmp_path / "mast.urdf", *person, "--out", tmp_path / "anna.urdf"],
            ["check", tmp_path / "anna.urdf"],
            ["simulate", tmp_path / "good.toml", "--out", tmp_path / "good.nc"],
            ["simulate", tmp_path / "imu.toml", "--out", tmp_path / "imu.nc"],
            ["export", tmp_path / "good.nc", "--out", tmp_path / "good.csv"],
        ]
    ):
        assert done.code == 0, done.err


def test_a_byte_order_mark_from_a_text_editor_does_no_harm(run_all, tmp_path: Path) -> None:
    for name, text in {"mast.urdf": GOOD, "mast.toml": SIDECAR, "good.toml": SCENARIO}.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
    (done,) = run_all([["simulate", tmp_path / "good.toml", "--out", tmp_path / "good.nc", "--json"]])
    assert done.code == 0, done.err
    assert json.loads(done.out)["body"] == "mast"


def test_what_no_dynamics_uses_is_passed_over_in_silence(run_all, tmp_path: Path) -> None:
    extras = '<dynamics/><safety_controller k_velocity="x"/><calibration rising="x"/><hardware_interface/>'
    text = changed("<axis", f"{extras}<axis", added('<gazebo reference="pole"/><transmission name="t"/>'))
    (tmp_path / "mast.urdf").write_text(text)
    (done,) = run_all([["check", tmp_path / "mast.urdf"]])
    assert (done.code, done.err) == (0, "")


def test_the_longest_chains_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "fixed.urdf").write_text(chain(1999, kind="fixed"))  # a check of cubic cost would take minutes
    assert len(read_urdf(tmp_path / "fixed.urdf").findall("link")) == 2000
    (tmp_path / "moving.urdf").write_text(chain(150))
    assert len(load_body(tmp_path / "moving.urdf").joint_names) == 150


def test_flipped_bytes_never_crash_nor_change_a_number_unseen(run_all, good_result: Path, tmp_path: Path) -> None:
    whole = good_result.read_bytes()
    chance = random.Random(5)
    used = [place for place, byte in enumerate(whole) if byte]  # the rest is room for more rows
    flipped = sorted(chance.sample(used, 40))
    for place in flipped:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        (tmp_path / f"{place}.nc").write_bytes(damaged)
    shutil.copy(good_result, tmp_path / "good.nc")
    export = [["export", tmp_path / f"{place}.nc", "--out", tmp_path / f"{place}.csv"] for place in (*flipped, "good")]
    done = run_all(export)
    assert done[-1].code == 0
    expected = (tmp_path / "good.csv").read_text()
    refused = 0
    for place, found in zip(flipped, done, strict=False):
        assert found.code in (0, 2), (place, found.code, found.err)
        if found.code == 0:  # unused space, or names of things that no number depends on
            assert (tmp_path / f"{place}.csv").read_text() == expected
        else:
            refused += 1
            assert found.err.count("\n") == 1, found.err
    assert refused > 10  # most of the file is data


WORDS = [
    "nan",
    "-1",
    "0",
    "1e308",
    "1e-320",
    "",
    " ",
    "x",
    "1,5",
    "0 0 0",
    "é",
    "revolute",
    "prismatic",
    "deck",
    "pole",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good URDF after a few accidents: lines lost, doubled or swapped, values replaced, text cut."""
    lines = GOOD.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        accident = draw(st.sampled_from(["lose", "double", "swap", "value", "value", "value", "byte", "cut"]))
        here, there = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if accident == "lose" and len(lines) > 1:
            del lines[here]
        elif accident == "double":
            lines.insert(there, lines[here])
        elif accident == "swap":
            lines[here], lines[there] = lines[there], lines[here]
        elif accident == "value":
            parts = lines[here].split('"')
            if len(parts) > 2:
                parts[1 + 2 * draw(st.integers(0, len(parts) // 2 - 1))] = draw(st.sampled_from(WORDS))
            lines[here] = '"'.join(parts)
        elif accident == "byte":
            at = draw(st.integers(0, len(lines[here])))
            lines[here] = lines[here][:at] + draw(st.characters(codec="utf-8")) + lines[here][at + 1 :]
        else:
            lines[here] = lines[here][: draw(st.integers(0, len(lines[here])))]
    return "\n".join(lines)


@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(mutated(), min_size=100, max_size=100))
def test_a_urdf_after_any_accident_is_accepted_or_refused_in_one_line(run_all, tmp_path_factory, urdfs) -> None:
    folder = tmp_path_factory.mktemp("accidents")
    for number, text in enumerate(urdfs):
        (folder / f"{number}.urdf").write_text(text, encoding="utf-8")
    for number, done in enumerate(run_all([["check", folder / f"{number}.urdf"] for number in range(len(urdfs))])):
        assert done.code in (0, 2), (done.err, urdfs[number])
        if done.code == 2:
            assert done.err.startswith("posture: ")
            assert done.err.count("\n") == 1, done.err
        else:
            assert done.err == "", (done.err, urdfs[number])
