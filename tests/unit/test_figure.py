"""The drawn person: closed surfaces that point outwards, as heavy as the person when filled with flesh."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from posture.anthropometry import Person
from posture.body import load_body
from posture.figure import lofts

PEOPLE = [Person(80, 1.78, "male"), Person(52, 1.58, "female"), Person(110, 1.95, "male")]


def pieces(person: Person) -> list[tuple[str, np.ndarray, np.ndarray]]:
    segments = load_body("ship_stance").sidecar["segments"]
    return [
        (link, points, faces)
        for link, entry in segments.items()
        if entry.get("carries_mass")
        for points, faces, _ in lofts(person, entry, sole=0.0)
    ]


def volume(points: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (points[faces[:, corner]] for corner in range(3))
    return float(np.sum(np.cross(a, b) * c) / 6)


def test_every_piece_is_closed_and_seen_from_outside() -> None:
    for link, points, faces in pieces(PEOPLE[0]):
        edges = Counter((int(f[k]), int(f[(k + 1) % 3])) for f in faces for k in range(3))
        assert max(edges.values()) == 1, link
        assert all((b, a) in edges for a, b in edges), link  # each edge borders two triangles, run opposite ways
        assert volume(points, faces) > 0, link


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: f"{person.mass:g} kg")
def test_filled_with_flesh_it_weighs_what_the_person_weighs(person: Person) -> None:
    # Flesh has about 1.05 kg per litre; clothes, hair and pieces that overlap at the joints add to the volume.
    weight = 1050 * sum(volume(points, faces) for _, points, faces in pieces(person))
    assert 0.9 * person.mass < weight < 1.3 * person.mass


def test_a_taller_person_has_longer_legs() -> None:
    def extent(person: Person) -> float:
        points = np.vstack([points for link, points, _ in pieces(person) if link == "left_thigh"])
        return float(np.ptp(points[:, 2]))

    assert extent(PEOPLE[2]) / extent(PEOPLE[0]) == pytest.approx(1.95 / 1.78, rel=1e-9)
