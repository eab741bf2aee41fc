"""Other numbers for the same body: variants named in its sidecar, and changes from Python."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from posture.body import load_body, models_folder
from posture.errors import BodyError


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for kind in (".urdf", ".toml"):
        shutil.copy(models_folder() / f"double_pendulum{kind}", tmp_path / f"mine{kind}")
    return tmp_path / "mine.urdf"


def test_variants_of_a_file_are_given_apart_from_its_path(copied: Path):
    body = load_body(copied, variants=["literal_s1", "biped_inertia"])
    same = load_body("double_pendulum+literal_s1+biped_inertia")
    assert body.name == "mine+literal_s1+biped_inertia"
    for one, other in zip(body.model.inertias, same.model.inertias, strict=True):
        np.testing.assert_array_equal(one.toDynamicParameters(), other.toDynamicParameters())
    assert body.sha256 != load_body(copied).sha256


def test_changes_keep_everything_else_and_are_checked():
    body = load_body("ship_stance").lock(["neck_*"])
    heavy = body.changed(links={"head": {"mass": 9.0, "center": [0.01, 0.0, 0.1]}})
    assert heavy.mass - body.mass == pytest.approx(9.0 - 5.552, abs=1e-3)
    assert heavy.locked == body.locked
    assert load_body("ship_stance").mass == pytest.approx(body.mass)
    with pytest.raises(BodyError, match="inertia"):
        body.changed(links={"head": {"inertia": [1.0, 0.1, 0.1]}})  # no body has such moments
    with pytest.raises(BodyError, match="mass"):
        body.changed(links={"head": {"mass": -1.0}})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("middle_x", "midle_x", "did you mean 'middle_x'"),
        ("origin", "place", "no setting is called 'place'"),
        ("[0.0, 0.0, 0.451]", "0.451", "give three numbers"),
        ("[0.0, 0.0, 0.451]", '["a", 0, 0]', "give three numbers"),
        ("literal_s1.joints", "literal_s1.joint", "did you mean 'joints'"),
        ("body_1 =", "base_x_frame =", "has no <inertial>"),
    ],
)
def test_bad_variants_get_one_sentence(copied: Path, old: str, new: str, message: str):
    sidecar = copied.with_suffix(".toml")
    text = sidecar.read_text(encoding="utf-8")
    place = text.index("[variant.")
    assert old in text[place:]
    sidecar.write_text(text[:place] + text[place:].replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BodyError, match=message) as caught:
        load_body(copied, variants=["literal_s1", "biped_inertia"])
    assert "\n" not in str(caught.value)


def test_unknown_variant_gets_the_nearest_name():
    with pytest.raises(BodyError, match="did you mean 'literal_s1'"):
        load_body("double_pendulum+literal")
    with pytest.raises(BodyError, match="it has none"):
        load_body("ship_stance+tall")
