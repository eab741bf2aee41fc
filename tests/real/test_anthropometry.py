"""The segment table against an independent copy of de Leva's (1996) figures, when it is at hand."""

import csv
from pathlib import Path

import pytest

from posture.anthropometry import DE_LEVA, TRUNK_PARTS

FOLDER = Path(__file__).parents[3] / "shared/data/anthropometry/segment_parameters_bmc"
ROWS = {
    "head": "Head 2", "trunk": "Trunk 2", "upper_arm": "Upper arm", "forearm": "Forearm", "hand": "Hand",
    "thigh": "Thigh", "shank": "Shank", "foot": "Foot",
}  # fmt: skip
ENDS = {"head": "VERT-CERV", "trunk": "CERV-MIDH", "foot": "HEEL-TTIP", "shank": "KJC-AJC", "hand": "WJC-MET3"}


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"needs the published tables in {FOLDER}")
@pytest.mark.parametrize("sex", ["female", "male"])
def test_our_segments_are_those_of_the_published_table(sex: str) -> None:
    with (FOLDER / f"BSP{sex}_ZdeLeva.txt").open(newline="", encoding="utf-8") as stream:
        table = {row["Segment"]: row for row in csv.DictReader(stream, delimiter="\t")}
    assert set(DE_LEVA[sex]) == {*ROWS, *TRUNK_PARTS}
    weight = sum(float(table[row]["Mass"]) * (1 if name in ("head", "trunk") else 2) for name, row in ROWS.items())
    assert weight == pytest.approx(1, abs=2e-4)  # its own rounding; ours is divided by this sum
    for name, row in ROWS.items():
        published, ours = table[row], DE_LEVA[sex][name]
        assert published["Endpoints"].strip() == ENDS.get(name, published["Endpoints"].strip())
        assert ours.mass * weight == pytest.approx(float(published["Mass"]), abs=1e-12)
        assert ours.center == pytest.approx(float(published["CM Long"]), abs=1e-12)
        radii = [float(published[f"Rg {axis}"]) for axis in ("Sag", "Trans", "Long")]
        assert list(ours.gyration) == pytest.approx(radii, abs=1e-12)
