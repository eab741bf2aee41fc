"""Results: labelled, saved whole, checked when read, and enough to make them again."""

import csv
import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from controllers import PD
from posture import results
from posture.body import Body, body_from_text, load_body
from posture.deck import Sine, SineDeck
from posture.errors import Interrupted, ResultError, SimulationStopped
from posture.report.sources import read_source
from posture.results import SCHEMA, export, join, load, make_dataset, replacing, save, save_blocks, write_text
from posture.scenario import parse_scenario
from posture.simulate import prepare

SCENARIO = """
title = "Short"
duration = 1.2
seed = 3
locked = { knee_z = 2.0 }
[person]
mass = 62.0
height = 1.65
sex = "female"
[deck]
type = "sines"
station = [5.0, 1.0, 2.0]
roll = [{ amplitude_deg = 3.0, period = 8.0 }, { amplitude_deg = 1.0, period = 5.0, phase_deg = 30.0 }]
heave = [{ amplitude = 0.5, period = 7.0 }]
[controller]
type = "pid"
stiffness_ratio = 8.0
damping_time = 0.03
"""


def blocks_of(text: str) -> list[xr.Dataset]:
    return list(parse_scenario(text, Path("scenario.toml")).run().blocks())


@pytest.fixture(scope="module")
def blocks() -> list[xr.Dataset]:
    return blocks_of(SCENARIO)


@pytest.fixture(scope="module")
def run(blocks: list[xr.Dataset]) -> xr.Dataset:
    return join(blocks)


def test_every_variable_has_its_unit_and_meaning(run: xr.Dataset) -> None:
    assert set(run.data_vars) <= set(SCHEMA)
    assert {"joint_constraint_moment", "stance_margin", "position_cop_on_deck"} <= set(run.data_vars)
    for name, variable in run.data_vars.items():
        dims, unit, meaning = SCHEMA[str(name)]
        assert variable.dims == ("time", *dims)
        assert variable.attrs == {"units": unit, "long_name": meaning}
        assert unit
        assert meaning
    assert run.time.attrs["units"] == "s"


def test_a_result_comes_back_as_it_was_saved(run: xr.Dataset, tmp_path: Path) -> None:
    save(run, tmp_path / "run.nc")
    back = load(tmp_path / "run.nc")
    for name in run.variables:
        np.testing.assert_array_equal(back[name].values, run[name].values)
        assert back[name].attrs == run[name].attrs
    assert {key: back.attrs[key] for key in run.attrs} == run.attrs
    save(back, tmp_path / "again.nc")
    assert load(tmp_path / "again.nc").identical(back)


def test_missing_values_survive(run: xr.Dataset, tmp_path: Path) -> None:
    lifted = run.copy(deep=True)
    lifted["stance_margin"][3:5] = np.nan
    save(lifted, tmp_path / "run.nc")
    assert np.isnan(load(tmp_path / "run.nc").stance_margin.values).sum() == 2


def test_block_by_block_is_the_same_file_content_as_at_once(
    blocks: list[xr.Dataset], run: xr.Dataset, tmp_path: Path
) -> None:
    pieces = [run.isel(time=slice(first, first + 7)) for first in range(0, run.sizes["time"], 7)]
    for name, parts in (("whole", [run]), ("blocks", blocks), ("sevens", pieces)):
        save_blocks(parts, tmp_path / f"{name}.nc")
    whole, in_blocks, sevens = (load(tmp_path / f"{name}.nc") for name in ("whole", "blocks", "sevens"))
    assert whole.identical(in_blocks)
    assert whole.identical(sevens)
    assert whole.attrs["checksums"] == sevens.attrs["checksums"]


def test_a_long_result_takes_little_more_than_its_numbers(run: xr.Dataset, tmp_path: Path) -> None:
    rows = 4000
    long = run.isel(time=np.resize(np.arange(run.sizes["time"]), rows)).assign_coords(time=np.arange(rows) * 0.02)
    save_blocks([long.isel(time=slice(0, 1)), long.isel(time=slice(1, None))], tmp_path / "run.nc")
    numbers = sum(variable.nbytes for variable in long.variables.values() if "time" in variable.dims)
    assert (tmp_path / "run.nc").stat().st_size < 1.1 * numbers + 200_000


@pytest.mark.parametrize("variable", ["joint_position", "stance_margin", "time", "joint"])
def test_a_changed_value_is_found_by_its_checksum(run: xr.Dataset, tmp_path: Path, variable: str) -> None:
    save(run, tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        values = file[variable][...]
        if variable == "joint":
            values[0] = b"ankle_w"
        else:
            values.flat[5] = np.nextafter(values.flat[5], math.inf)
        file[variable][...] = values
    with pytest.raises(ResultError, match=f"'{variable}' does not match its checksum"):
        load(tmp_path / "run.nc")


@pytest.mark.parametrize("attribute", ["scenario", "body_urdf", "step_s", "stopped"])
def test_a_changed_attribute_is_found_too(run: xr.Dataset, tmp_path: Path, attribute: str) -> None:
    save(run, tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        file.attrs[attribute] = 0.004 if attribute == "step_s" else "another"
    with pytest.raises(ResultError, match=f"'{attribute}' does not match its checksum"):
        load(tmp_path / "run.nc")


def test_a_damaged_file_is_refused_before_hdf5_sees_it(
    run: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # HDF5 reads some damaged files for ever, and no signal ends that.
    save(run, tmp_path / "run.nc")
    whole = (tmp_path / "run.nc").read_bytes()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a damaged file was opened")

    monkeypatch.setattr(h5py, "File", never)
    monkeypatch.setattr(xr, "open_dataset", never)
    for place in (0, 100, 5000, len(whole) // 2, len(whole) - 1):
        (tmp_path / "run.nc").write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        for read in (load, read_source):
            with pytest.raises(ResultError, match=r"run\.nc: the file does not match its checksum"):
                read(tmp_path / "run.nc")


def test_truncated_foreign_newer_and_missing_files_are_told_apart(run: xr.Dataset, tmp_path: Path) -> None:
    save(run, tmp_path / "run.nc")
    whole = (tmp_path / "run.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: len(whole) // 2])
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "foreign.nc", engine="h5netcdf")
    save(run.assign_attrs(schema_version=99), tmp_path / "newer.nc")
    for name, words in (
        ("cut", "truncated"),
        ("foreign", "not a result of posture"),
        ("newer", "schema 99"),
        ("none", "no such file"),
    ):
        with pytest.raises(ResultError, match=words):
            load(tmp_path / f"{name}.nc")


def test_names_of_files_may_be_text(run: xr.Dataset, tmp_path: Path) -> None:
    save(run, str(tmp_path / "run.nc"))
    export(load(str(tmp_path / "run.nc")), str(tmp_path / "run.csv"))
    assert (tmp_path / "run.csv").is_file()


# ---------------------------------------------------------------- complete or not at all


def test_a_run_that_falls_is_kept_with_the_reason(run: xr.Dataset, tmp_path: Path) -> None:
    def falling() -> object:
        yield run.isel(time=slice(0, 10))
        yield run.isel(time=slice(10, 20))
        raise SimulationStopped("the person fell")

    with pytest.raises(SimulationStopped, match="fell"):
        save_blocks(falling(), tmp_path / "run.nc")
    kept = load(tmp_path / "run.nc")
    assert kept.sizes["time"] == 20
    assert kept.attrs["stopped"] == "the person fell"
    np.testing.assert_array_equal(kept.joint_position, run.joint_position[:20])


def test_ctrl_c_is_kept_and_told(run: xr.Dataset, tmp_path: Path) -> None:
    def impatient() -> object:
        yield run.isel(time=slice(0, 10))
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        save_blocks(impatient(), tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").attrs["stopped"] == "interrupted"


def test_a_block_written_in_part_is_left_out(run: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = results._bytes, 0

    def impatient(values: np.ndarray) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 2 * len(run.variables):  # in the middle of the second block or later, between two variables
            raise KeyboardInterrupt
        return real(values)

    monkeypatch.setattr(results, "_bytes", impatient)
    pieces = [run.isel(time=slice(first, first + 10)) for first in range(0, 60, 10)]
    with pytest.raises(Interrupted):
        save_blocks(pieces, tmp_path / "run.nc")
    monkeypatch.undo()
    kept = load(tmp_path / "run.nc")
    assert kept.sizes["time"] % 10 == 0
    np.testing.assert_array_equal(kept.joint_position, run.joint_position[: kept.sizes["time"]])


def test_a_failure_before_the_first_row_leaves_the_old_file(run: xr.Dataset, tmp_path: Path) -> None:
    save(run, tmp_path / "run.nc")
    before = (tmp_path / "run.nc").read_bytes()

    def broken() -> object:
        raise ResultError("nothing came")
        yield run

    with pytest.raises(ResultError, match="nothing came"):
        save_blocks(broken(), tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_writing_replaces_only_when_complete(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")

    def half() -> None:
        with replacing(tmp_path / "a.txt") as temporary:
            temporary.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        half()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ResultError, match="does not exist"):
        write_text(tmp_path / "nowhere" / "a.txt", "x")
    with pytest.raises(ResultError, match="is a folder"):
        write_text(tmp_path, "x")


# ---------------------------------------------------------------- export


def read_opensim(path: Path) -> tuple[dict[str, str], list[str], np.ndarray]:
    """Header, column names and numbers, by the format's description alone."""
    lines = path.read_text().splitlines()
    end = lines.index("endheader")
    header = dict(line.split("=") for line in lines[1:end])
    return header, lines[end + 1].split("\t"), np.array([line.split("\t") for line in lines[end + 2 :]], float)


def test_csv_holds_everything_and_reads_back(run: xr.Dataset, tmp_path: Path) -> None:
    export(run, tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    table = np.array(rows, float)
    assert len(set(header)) == len(header)
    assert len(header) == 1 + sum(variable[0].size for variable in run.data_vars.values())
    np.testing.assert_allclose(table[:, header.index("time")], run.time, rtol=1e-9)
    np.testing.assert_allclose(table[:, header.index("hip_y")], run.joint_position.sel(joint="hip_y"), rtol=1e-9)
    np.testing.assert_allclose(
        table[:, header.index("force_deck_on_person.z")], run.force_deck_on_person.sel(axis="z"), rtol=1e-9
    )
    np.testing.assert_allclose(
        table[:, header.index("joint_constraint_moment.knee_z")], run.joint_constraint_moment[:, 0], rtol=1e-9
    )
    np.testing.assert_allclose(table[:, header.index("stance_margin")], run.stance_margin, rtol=1e-9)


def test_sto_and_mot_are_what_opensim_reads(run: xr.Dataset, tmp_path: Path) -> None:
    export(run, tmp_path / "run.sto")
    export(run, tmp_path / "run.mot")
    for name, columns in (("run.sto", None), ("run.mot", ["time", *run.joint.values])):
        header, names, table = read_opensim(tmp_path / name)
        assert header == {
            "version": "1",
            "nRows": str(len(table)),
            "nColumns": str(table.shape[1]),
            "inDegrees": "no",
        }
        assert columns is None or names == columns
        assert len(names) == table.shape[1]
        assert len(table) == run.sizes["time"]
        np.testing.assert_allclose(table[:, names.index("ankle_x")], run.joint_position[:, 0], rtol=1e-9)


def test_chosen_variables_and_wrong_names(run: xr.Dataset, tmp_path: Path) -> None:
    export(run, tmp_path / "run.csv", variables=["stance_margin", "position_cop_on_deck"])
    header = (tmp_path / "run.csv").read_text().splitlines()[0]
    assert header == "time,stance_margin,position_cop_on_deck.x,position_cop_on_deck.y"
    with pytest.raises(ResultError, match="did you mean 'stance_margin'"):
        export(run, tmp_path / "run.csv", variables=["stance_margins"])
    with pytest.raises(ResultError, match=r"unknown kind '\.xls'"):
        export(run, tmp_path / "run.xls")


# ---------------------------------------------------------------- provenance


def test_a_result_is_repeated_bit_for_bit_from_its_own_scenario(run: xr.Dataset, tmp_path: Path) -> None:
    save(run, tmp_path / "run.nc")
    stored = load(tmp_path / "run.nc")
    again = join(blocks_of(stored.attrs["scenario"]))
    for name in run.data_vars:
        assert again[name].values.tobytes() == stored[name].values.tobytes()
    assert again.attrs["body_sha256"] == stored.attrs["body_sha256"]
    save(again, tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == (tmp_path / "run.nc").read_bytes()


def test_the_body_is_kept_in_the_result(run: xr.Dataset) -> None:
    attributes = run.attrs
    body = body_from_text(attributes["body"], attributes["body_urdf"], json.loads(attributes["body_sidecar"]))
    body = body.lock(json.loads(attributes["body_locked"]))
    assert body.sha256 == attributes["body_sha256"]
    assert body.mass == pytest.approx(62.0)
    assert body.locked == {"knee_z": pytest.approx(math.radians(2))}
    assert attributes["seed"] == 3
    assert attributes["step_s"] == 0.005
    versions = json.loads(attributes["versions"])
    assert {"posture", "pin", "numpy", "scipy"} <= set(versions)


def test_a_run_from_python_says_that_it_has_no_scenario() -> None:
    body: Body = load_body("ship_stance").lock(["*"])
    deck = SineDeck({"roll": [Sine(0.1, 8, 0)]})
    run = prepare(body, deck, PD(body.joint_names, stiffness=0, damping=0), duration=0.1)
    assert run.attributes["scenario"] == ""
    assert run.attributes["seed"] == -1


def test_labels_follow_the_schema() -> None:
    made = make_dataset(np.arange(3.0), {"joint_position": np.zeros((3, 2))}, joints=["a", "b"], locked=[])
    assert list(made.coords) == ["time", "joint"]
    assert made.joint_position.sel(joint="b").shape == (3,)
