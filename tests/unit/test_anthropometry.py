"""The segment table and what is built from it: sums, asked sizes, and ship_stance.urdf worked out again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from posture.anthropometry import DE_LEVA, STANDING_STACK, TRUNK_PARTS, Person, segment_inertia
from posture.body import Body, body_from_text, load_body
from posture.errors import BodyError

SINGLE = ("head", "trunk")
people = st.builds(
    Person, st.floats(40, 150).map(float), st.floats(1.4, 2.1).map(float), st.sampled_from(["female", "male"])
)


@pytest.fixture(scope="module")
def body() -> Body:
    return load_body("ship_stance")


def joint_height(body: Body, name: str) -> float:
    import pinocchio as pin

    pin.forwardKinematics(body.model, body.data, body.with_base(body.neutral))
    return float(body.data.oMi[body.model.getJointId(name)].translation[2])


@pytest.mark.parametrize("sex", ["female", "male"])
def test_the_mass_fractions_of_all_segments_add_up_to_one(sex: str) -> None:
    total = sum(
        segment.mass * (1 if name in SINGLE else 2) for name, segment in DE_LEVA[sex].items() if name not in TRUNK_PARTS
    )
    assert total == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("sex", ["female", "male"])
def test_every_segment_could_be_a_solid(sex: str) -> None:
    for name, segment in DE_LEVA[sex].items():
        assert 0 < segment.center < 1, name
        moments = np.sort(np.square(segment.gyration))
        assert moments[0] + moments[1] > moments[2], name
    assert 0 < Person(70, 1.7, sex).length("ankle_height") < 0.1


@settings(max_examples=25, deadline=None)
@given(people)
def test_a_scaled_body_has_the_asked_mass_and_stature(person: Person) -> None:
    scaled = load_body("ship_stance").scaled(person)
    # Scaled masses are written with ten digits; lengths grow from the seven digits in ship_stance.urdf.
    assert scaled.mass == pytest.approx(person.mass, rel=1e-9)
    top = joint_height(scaled, "neck_x") + person.length("head")
    assert top == pytest.approx(person.height, rel=1e-7)
    assert scaled.person == person


def test_scaling_there_and_back_gives_the_same_body(body: Body) -> None:
    there_and_back = body.scaled(Person(52, 1.58, "female")).scaled(body.person)
    for one, other in zip(body.model.inertias, there_and_back.model.inertias, strict=True):
        # The file has seven digits.
        np.testing.assert_allclose(one.toDynamicParameters(), other.toDynamicParameters(), rtol=2e-6, atol=1e-7)
    for one, other in zip(body.model.jointPlacements, there_and_back.model.jointPlacements, strict=True):
        np.testing.assert_allclose(one.homogeneous, other.homogeneous, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(body.contact_polygon(), there_and_back.contact_polygon(), atol=2e-6)  # kept to 1 µm


def test_a_taller_person_of_the_same_mass_is_slimmer_with_longer_feet(body: Body) -> None:
    tall = body.scaled(Person(80, 2.0, "male"))

    def radius(of: Body) -> float:
        shape = etree.fromstring(of.urdf.encode()).find("link[@name='left_shank']/visual/geometry/capsule")
        return float(shape.get("radius"))

    # Same mass and density over a length grown by s: the cross-section shrinks by s, the radius by √s.
    assert radius(tall) / radius(body) == pytest.approx(np.sqrt(1.78 / 2.0), rel=1e-6)
    length = {name: np.ptp(of.contact_polygon("left_foot")[:, 0]) for name, of in (("tall", tall), ("own", body))}
    assert length["tall"] > length["own"]


# The rows of the men's table that ship_stance.urdf stands on, typed in again: length mm of 1741, mass %, centre %,
# radii of gyration %.
ROWS = {
    "foot": (258.1, 1.37, 44.15, 25.7, 24.5, 12.4),
    "shank": (440.3, 4.33, 43.95, 25.1, 24.6, 10.2),
    "thigh": (422.2, 14.16, 40.95, 32.9, 32.9, 14.9),
    "trunk": (603.3, 43.46, 51.38, 32.8, 30.6, 16.9),
    "upper_arm": (281.7, 2.71, 57.72, 28.5, 26.9, 15.8),
    "forearm": (268.9, 1.62, 45.74, 27.6, 26.5, 12.1),
    "hand": (86.2, 0.61, 79.00, 62.8, 51.3, 40.1),
    "head": (242.9, 6.94, 50.02, 30.3, 31.5, 26.1),
}
LINKS = {"trunk": "trunk", "head": "head"} | {
    f"{side}_{part}": part for side in ("left", "right") for part in ROWS if part not in SINGLE
}
FROM_BELOW = ("shank", "thigh", "trunk", "head")  # their frames sit at the lower end, Z up


@pytest.mark.parametrize("link", LINKS)
def test_each_link_of_ship_stance_has_the_table_s_mass_centre_and_inertia(body: Body, link: str) -> None:
    part = LINKS[link]
    length_mm, percent, center, *radii = ROWS[part]
    mass, length = 80 * percent / 100, 1.78 * length_mm / 1741
    inertial = etree.fromstring(body.urdf.encode()).find(f"link[@name='{link}']/inertial")
    tensor = inertial.find("inertia")
    written = [float(tensor.get(key)) for key in ("ixx", "iyy", "izz")]
    place = [float(word) for word in inertial.find("origin").get("xyz").split()]
    sagittal, transverse, longitudinal = (mass * (radius / 100 * length) ** 2 for radius in radii)
    if part == "foot":  # lies along X; the ankle is a quarter of its length from the heel
        expected, along = (longitudinal, transverse, sagittal), [(center / 100 - 0.25) * length, 0, 0]
    else:
        expected = (sagittal, transverse, longitudinal)
        along = [0, 0, (1 - center / 100) * length if part in FROM_BELOW else -center / 100 * length]
    assert float(inertial.find("mass").get("value")) == pytest.approx(mass, rel=1e-6)  # seven digits are written
    np.testing.assert_allclose(written, expected, rtol=1e-6)
    np.testing.assert_allclose(place, along, rtol=1e-6)


def test_the_four_moving_links_of_ship_stance_weigh_and_measure_what_the_table_says(body: Body) -> None:
    both = {part: 2 * 80 * ROWS[part][1] / 100 for part in ROWS if part not in SINGLE}
    expected = {
        "ankle_z": both["shank"],
        "knee_z": both["thigh"],
        "hip_z": 80 * 0.4346 + both["upper_arm"] + both["forearm"] + both["hand"],
        "neck_z": 80 * 0.0694,
    }
    np.testing.assert_allclose(list(expected.values()), [6.928, 22.656, 42.672, 5.552], rtol=1e-12)
    for joint, mass in expected.items():
        assert body.model.inertias[body.model.getJointId(joint)].mass == pytest.approx(mass, rel=1e-7), joint
    heights = [joint_height(body, f"{name}_x") for name in ("ankle", "knee", "hip", "neck")]
    lengths = [1.78 * ROWS[part][0] / 1741 for part in STANDING_STACK]
    np.testing.assert_allclose(np.diff(heights), lengths[:3], atol=1e-6)
    np.testing.assert_allclose(np.diff([*heights, 1.78]), [0.4502, 0.4317, 0.6168, 0.2483], atol=5e-5)
    # What is left of the stature below the shank is the ankle's height above the deck.
    assert heights[0] == pytest.approx(1.78 - sum(lengths), abs=1e-6)


def test_inertia_of_a_segment_follows_its_direction() -> None:
    person = Person(80, 1.78, "male")
    mass, center, along_z = segment_inertia(person, "thigh", np.array([0, 0, -1.0]), 0.0)
    _, ahead, along_x = segment_inertia(person, "thigh", np.array([1.0, 0, 0]), 0.0)
    length = 1.78 * 422.2 / 1741
    np.testing.assert_allclose(center, [0, 0, -0.4095 * length], rtol=1e-12)
    np.testing.assert_allclose(ahead, [0.4095 * length, 0, 0], rtol=1e-12)
    long, across = mass * (0.149 * length) ** 2, mass * (0.329 * length) ** 2
    np.testing.assert_allclose(along_z, np.diag([across, across, long]), rtol=1e-12)
    np.testing.assert_allclose(along_x, np.diag([long, across, across]), rtol=1e-12)


SIMPLE = """<robot name="one"><link name="deck"/><link name="torso">{inertial}
<visual><geometry><!-- a tin --><cylinder radius="0.1" length="0.6"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="deck"/><child link="torso"/><axis xyz="0 1 0"/></joint></robot>"""
INERTIAL = """<inertial>{origin}<mass value="40"/>
<inertia ixx="2" iyy="1.5" izz="0.7" ixy="0" ixz="0" iyz="0"/></inertial>"""
SEGMENTS = {"torso": {"segment": "trunk", "direction": [0, 0, -1], "origin": 1.0, "carries_mass": True}}
SIDECAR = {"person": {"mass": 80.0, "height": 1.8, "sex": "male"}, "segments": SEGMENTS}


@pytest.mark.parametrize("origin", ["", '<origin rpy="0.3 0.2 0.1"/>', '<origin xyz="0 0 0.5" rpy="0 1.57 0"/>'])
def test_scaling_replaces_an_inertia_that_was_turned_or_had_no_origin(origin: str) -> None:
    person = Person(60, 1.7, "female")
    body = body_from_text("one", SIMPLE.format(inertial=INERTIAL.format(origin=origin)), SIDECAR).scaled(person)
    mass, center, inertia = segment_inertia(person, "trunk", np.array([0, 0, -1.0]), 1.0)
    found = body.model.inertias[2]
    assert found.mass == pytest.approx(mass, rel=1e-9)
    np.testing.assert_allclose(found.lever, center, rtol=1e-9)
    np.testing.assert_allclose(found.inertia, inertia, rtol=1e-9, atol=1e-12)


def test_a_link_without_a_segment_keeps_its_share_of_the_mass() -> None:
    sidecar = {"person": SIDECAR["person"]}
    body = body_from_text("one", SIMPLE.format(inertial=INERTIAL.format(origin="")), sidecar)
    scaled = body.scaled(Person(60, 1.5, "male"))
    assert scaled.mass == pytest.approx(40 * 60 / 80)
    # Mass over mass, lengths by stature: the inertia grows with both, the latter squared.
    np.testing.assert_allclose(scaled.model.inertias[2].inertia, np.diag([2, 1.5, 0.7]) * 0.75 * (1.5 / 1.8) ** 2)


def test_a_body_of_unknown_size_cannot_be_scaled() -> None:
    body = body_from_text("one", SIMPLE.format(inertial=INERTIAL.format(origin="")), {})
    with pytest.raises(BodyError, match=r"one.urdf: the body does not say whose size it has; add \[person\]"):
        body.scaled(Person(60, 1.7, "male"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((80, 178, "male"), "height is 178, .* from 1.2 to 2.4 m; give metres, not centimetres"),
        ((80, "1.78", "male"), "height is '1.78'"),
        ((8, 1.78, "male"), "mass is 8, but must be a number from 25 to 300 kg"),
        ((float("nan"), 1.78, "male"), "mass is nan"),
        ((True, 1.78, "male"), "mass is True"),
        ((80, 1.78, "mail"), "no sex is called 'mail'; did you mean 'male'"),
    ],
)
def test_an_impossible_person_is_refused_with_the_range(given: tuple, message: str) -> None:
    with pytest.raises(BodyError, match=message):
        Person(*given)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Person(np.float32(80), np.float64(1.75), "male").length("head") > 0
    assert Person(np.int64(80), 1.75, "male").mass == 80


def test_an_unknown_segment_gets_the_nearest_names() -> None:
    with pytest.raises(BodyError, match="no segment is called 'thihg'; did you mean 'thigh'"):
        Person(80, 1.78, "male").length("thihg")
