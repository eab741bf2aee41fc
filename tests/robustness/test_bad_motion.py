"""Bad recordings at the command line: each is told in one sentence, or survived with a note; nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from posture.cli import main
from posture.markers import twin
from posture.motion_files import (
    Y_UP,
    Markers,
    PlateRecord,
    axes_matrix,
    read_markers,
    read_plates,
    write_plates,
    write_trc,
)

FEET = {"left": "left_ground_force", "right": "right_ground_force"}

pytestmark = pytest.mark.xdist_group("bad_motion")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gait") / "example"
    assert main(["gait", "example", "--out", str(folder)]) == 0
    return folder


def files(
    example: Path,
    folder: Path,
    markers: Callable[[Markers], Markers] = lambda m: m,
    plates: Callable[[PlateRecord], PlateRecord] = lambda p: p,
) -> list[str]:
    """Changed copies of the example as command-line arguments."""
    write_trc(markers(read_markers(example / "walk.trc", axes=Y_UP)), folder / "walk.trc")
    write_plates(plates(read_plates(example / "walk.mot", axes=Y_UP, feet=FEET)), folder / "walk.mot")
    return ["--markers", str(folder / "walk.trc"), "--plates", str(folder / "walk.mot"), "--axes", "x -z y"]


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], message: str) -> None:
    out = Path(arguments[arguments.index("--markers") + 1]).parent / "out"
    code = main(["gait", "run", *arguments, "--out", str(out)])
    error = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("posture: checking")]
    told = [line for line in error if message in line]
    assert code == 2
    assert len(told) == 1, error
    assert not out.exists()


def survived(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    out = Path(arguments[arguments.index("--markers") + 1]).parent / "out"
    assert main(["gait", "run", *arguments, "--no-forward", "--json", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    for path in found["files"].values():
        assert Path(path).stat().st_size > 0
    return dict(found)


def test_good_files_pass(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = survived(files(example, tmp_path), capsys)
    assert found["marker_rms_mm"] < 1
    assert found["sharing_gap"] < 1e-9
    page = Path(found["files"]["report"]).read_text()  # type: ignore[index]
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_missing_markers_are_survived_and_named(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def without(markers: Markers) -> Markers:
        return markers.select([name for name in markers.names if name not in ("LKNE", "T10", "RBHD")])

    found = survived(files(example, tmp_path, without), capsys)
    assert any("lacks: T10, LKNE, RBHD" in note for note in found["notes"])  # type: ignore[attr-defined]
    assert found["marker_rms_mm"] < 2


def test_too_few_markers_are_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = files(example, tmp_path, lambda m: replace(m, names=[f"M{k}" for k in range(len(m.names))]))
    refused(arguments, capsys, "at least 3 are needed")


def test_swapped_sides_are_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def swapped(markers: Markers) -> Markers:
        return replace(markers, names=[twin(name) if twin(name) in markers.names else name for name in markers.names])

    refused(files(example, tmp_path, swapped), capsys, "the sides are swapped")


def test_swapped_plates_are_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = files(example, tmp_path, plates=lambda p: replace(p, names=p.names[::-1]))
    refused(arguments, capsys, "left and right are swapped in markers or plates")


def test_millimetres_taken_for_metres_are_refused(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused([*files(example, tmp_path), "--unit", "m"], capsys, "the file is probably in mm")


def test_wrong_axes_are_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = files(example, tmp_path)
    arguments[-1] = "x y z"
    refused(arguments, capsys, "so Z is not up")


def test_plates_with_swapped_axes_are_refused(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = axes_matrix("y z x")
    lines = (example / "walk.mot").read_text().splitlines()
    start = lines.index("endheader") + 2
    table = np.array([line.split() for line in lines[start:]], float)
    for column in range(1, table.shape[1], 3):
        table[:, column : column + 3] = table[:, column : column + 3] @ turn.T
    arguments = files(example, tmp_path)
    (tmp_path / "walk.mot").write_text(
        "\n".join(lines[:start]) + "\n" + "\n".join("\t".join(map(str, row)) for row in table) + "\n"
    )
    refused(arguments, capsys, "the plates' axes are swapped")


def test_plates_that_push_down_are_refused_and_can_be_reversed(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = files(example, tmp_path)
    lines = (tmp_path / "walk.mot").read_text().splitlines()
    start = lines.index("endheader") + 2
    table = np.array([line.split() for line in lines[start:]], float)
    names = lines[start - 1].split()
    for column, name in enumerate(names):
        if "_v" in name or "torque" in name:
            table[:, column] *= -1
    (tmp_path / "walk.mot").write_text(
        "\n".join(lines[:start]) + "\n" + "\n".join("\t".join(map(str, row)) for row in table) + "\n"
    )
    refused(arguments, capsys, "so reverse it")
    assert main(["gait", "check", *arguments, "--reverse-plates"]) == 0


def test_thirty_percent_gaps_are_survived_and_counted(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def holes(markers: Markers) -> Markers:
        places = markers.positions.copy()
        random = np.random.default_rng(7)
        for marker in range(len(markers.names)):
            for start in range(2, len(markers.time) - 12, 20):
                places[start + random.integers(0, 8) :][:6, marker] = np.nan  # six of twenty frames
        return replace(markers, positions=places)

    found = survived(files(example, tmp_path, holes), capsys)
    assert "samples filled in 37 histories" in str(found["gaps"])
    assert found["marker_rms_mm"] < 6


def test_a_negative_gap_is_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused([*files(example, tmp_path), "--longest-gap", "-1"], capsys, "longest gap to fill is -1, but must be")


def test_plates_may_have_axes_of_their_own(example: Path, tmp_path: Path) -> None:
    """Markers with Z up beside plates with Y up."""
    arguments = files(example, tmp_path)
    up = read_markers(example / "walk.trc", axes=Y_UP)
    write_trc(replace(up, positions=up.positions @ axes_matrix(Y_UP).T), tmp_path / "walk.trc")  # written back as Z up
    assert main(["gait", "check", *arguments[:-1], "x y z", "--plate-axes", "x -z y"]) == 0
    assert main(["gait", "check", *arguments[:-1], "x y z"]) == 2


def test_a_marker_lost_for_long_is_told(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def lost(markers: Markers) -> Markers:
        places = markers.positions.copy()
        places[20:100, markers.names.index("LTHI")] = np.nan
        return replace(markers, positions=places)

    found = survived(files(example, tmp_path, lost), capsys)
    assert "1 keep gaps of up to 0.80 s" in str(found["gaps"])
    assert any("marker LTHI is seen in" in note for note in found["notes"])  # type: ignore[attr-defined]


def test_wrong_sampling_rate_is_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = files(example, tmp_path)
    path = tmp_path / "walk.trc"
    path.write_text(path.read_text().replace("\n100\t100\t", "\n200\t200\t", 1))
    refused(arguments, capsys, "the header says 200 samples/s, but the times run at 100")


def test_plates_of_another_trial_are_refused(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def elsewhere(plates: PlateRecord) -> PlateRecord:
        return replace(plates, moment=plates.moment + np.cross([0.0, 3.0, 0.0], plates.force))

    refused(files(example, tmp_path, plates=elsewhere), capsys, "do not share their axes or origin")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gait", "run", "--markers", "none.trc", "--axes", "x -z y", "--out", "x"], "none.trc: no such file"),
        (["gait", "run", "--axes", "x -z y"], "give --markers and --axes"),
        (
            ["gait", "run", "--markers", "a.trc", "--axes", "x y z", "--mass", "80"],
            "--mass, --height and --sex together",
        ),
        (["gait", "example"], "give --out"),
        (["gait", "example", "--out", "/dev/null"], "/dev/null is not a folder that can be written to"),
        (["gait", "example", "--out", "/dev/null/a/b"], "/dev/null is not a folder that can be written to"),
        (["gait", "example", "--seed", "-1", "--out", "x"], "--seed is -1, but must be a number from 0"),
        (["gait", "run", "--markers", "a.trc", "--axes", "x y z", "--body", "gate"], "did you mean 'gait'"),
    ],
)
def test_bad_requests_are_told(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_damaged_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, message in (
        ("<OpenSimDocument Version='30000'><Model/></OpenSimDocument>", "not an OpenSim 4 model"),
        ("<OpenSimDocument", "not valid XML"),
    ):
        path = tmp_path / "a.osim"
        path.write_text(text)
        assert main(["gait", "check", "--markers", "a.trc", "--axes", "x y z", "--body", str(path)]) == 2
        assert message in capsys.readouterr().err
