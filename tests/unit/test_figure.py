"""The drawn person: closed surfaces that point outwards, as heavy as the person when filled with flesh."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pinocchio as pin
import pytest

from posture.anthropometry import Person
from posture.body import Body, body_from_text, load_body
from posture.errors import BodyError
from posture.figure import lofts, pieces

PEOPLE = [Person(80, 1.78, "male"), Person(52, 1.58, "female"), Person(110, 1.95, "male")]
DRAWN = ["ship_stance", "cip", "ankle_hip", "gait", "jump"]


def surfaces(body: Body) -> list[tuple[str, np.ndarray, np.ndarray]]:
    return [
        (link, points, faces)
        for link, found in pieces(body).items()
        for piece in found
        for points, faces, _ in lofts(piece)
    ]


def volume(points: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return float(np.sum(np.cross(a, b) * c) / 6)


@pytest.mark.parametrize("name", DRAWN)
def test_every_piece_is_closed_and_seen_from_outside(name: str) -> None:
    for link, points, faces in surfaces(load_body(name)):
        edges = Counter((int(f[k]), int(f[(k + 1) % 3])) for f in faces for k in range(3))
        assert max(edges.values()) == 1, link
        assert all((b, a) in edges for a, b in edges), link  # each edge borders two triangles, run opposite ways
        assert volume(points, faces) > 0, link


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: f"{person.mass:g} kg")
@pytest.mark.parametrize("name", ["ship_stance", "gait"])
def test_filled_with_flesh_it_weighs_what_the_person_weighs(name: str, person: Person) -> None:
    # Flesh has about 1.05 kg per litre; clothes, hair and what overlaps inside the joints add to the volume.
    weight = 1050 * sum(volume(points, faces) for _, points, faces in surfaces(load_body(name).scaled(person)))
    assert 0.9 * person.mass < weight < 1.35 * person.mass


@pytest.mark.parametrize("name", DRAWN)
def test_it_stands_on_its_soles_and_is_as_tall_as_the_person(name: str) -> None:
    body = load_body(name)
    data = body.model.createData()
    pin.framesForwardKinematics(body.model, data, pin.neutral(body.model))
    places = {link: data.oMf[body.link_frame(link)] for link in pieces(body)}
    points = np.vstack(
        [points @ places[link].rotation.T + places[link].translation for link, points, _ in surfaces(body)]
    )
    areas = [data.oMf[body.link_frame(area["link"])].act(np.array(point, float))
             for area in body.sidecar["contact"].values() for point in area["points"]]  # fmt: skip
    floor = min(point[2] for point in areas)
    assert points[:, 2].min() == pytest.approx(floor, abs=0.006)  # a sole that floats or sinks would be seen
    stature = body.person.height if body.person else {"cip": 1.95, "ankle_hip": 1.78}[name]
    assert points[:, 2].max() - floor == pytest.approx(stature, abs=0.025)  # with hair


def test_a_taller_person_has_longer_legs() -> None:
    def extent(person: Person) -> float:
        body = load_body("ship_stance").scaled(person)
        return float(np.ptp(np.vstack([points for link, points, _ in surfaces(body) if link == "left_thigh"])[:, 2]))

    assert extent(PEOPLE[2]) / extent(PEOPLE[0]) == pytest.approx(1.95 / 1.78, rel=1e-6)


def test_pieces_given_by_the_sidecar_grow_with_the_body() -> None:
    body = load_body("gait")
    grown = body.scaled(Person(body.person.mass, 1.1 * body.person.height, body.person.sex))
    for name, piece in body.sidecar["figure"].items():
        now = grown.sidecar["figure"][name]
        length, before = (np.linalg.norm(np.subtract(p["upper"], p["lower"])) for p in (now, piece))
        assert length / before == pytest.approx(1.1, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"piece": "torsoo"}, "did you mean 'torso'"),
        ({"link": "chest"}, "link"),
        ({"girth": 20}, "girth"),
        ({"upper": [0, 0]}, "upper"),
        ({"upper": [0, 0, float("nan")]}, "upper"),
        ({"lower": [0, 0, 0.5075]}, "same point"),
        ({"color": "red"}, "color"),
    ],
)
def test_a_figure_that_cannot_be_drawn_gets_a_sentence(change: dict, says: str) -> None:
    body = load_body("gait")
    figure = body.sidecar["figure"] | {"torso": body.sidecar["figure"]["torso"] | change}
    with pytest.raises(BodyError, match=says):
        body_from_text("gait", body.urdf, body.sidecar | {"figure": figure})
