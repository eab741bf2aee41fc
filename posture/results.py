"""Results: one schema of named, labelled arrays; saved whole with checksums or not at all.

Files are netCDF4 (HDF5). Each variable's SHA-256 stands in the file, so a flipped bit, a truncated copy or a
foreign file is told apart from a result. A file is written under a temporary name and renamed when complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from posture.errors import Interrupted, ResultError, find_name

Array = NDArray[np.floating]

SCHEMA_VERSION = 1
AXES = ["x", "y", "z"]

# name: dims after time, unit, meaning. Ship axes: X bow, Y port, Z up; origin where the person stands.
SCHEMA: dict[str, tuple[tuple[str, ...], str, str]] = {
    "joint_position": (("joint",), "rad", "joint angles"),
    "joint_velocity": (("joint",), "rad/s", "joint angular velocities"),
    "joint_acceleration": (("joint",), "rad/s^2", "joint angular accelerations"),
    "joint_torque": (("joint",), "N m", "controller torques on the child link; zero at locked joints"),
    "joint_constraint_moment": (("locked_joint",), "N m", "moment that holds each locked joint"),
    "deck_angular_velocity": (("axis",), "rad/s", "deck angular velocity, ship axes"),
    "deck_angular_acceleration": (("axis",), "rad/s^2", "deck angular acceleration, ship axes"),
    "deck_specific_force": (("axis",), "m/s^2", "deck acceleration minus gravity, ship axes"),
    "deck_position": (("axis",), "m", "station in the world, Z up"),
    "deck_quaternion": (("quaternion",), "1", "ship to world rotation, x y z w"),
    "force_deck_on_person": (("axis",), "N", "force of the deck on the person, ship axes"),
    "moment_deck_on_person": (("axis",), "N m", "moment of the deck on the person about the station, ship axes"),
    "position_cop_on_deck": (("plane",), "m", "centre of pressure on the deck, ship axes"),
    "position_com_in_deck": (("axis",), "m", "centre of mass, ship axes"),
    "stance_margin": ((), "m", "distance of the centre of pressure from the stance outline, positive inside"),
}


def make_dataset(time: Array, variables: dict[str, Array], *, joints: list[str], locked: list[str]) -> xr.Dataset:
    """Label raw arrays (time first) by the schema."""
    labels = {
        "joint": joints,
        "locked_joint": locked,
        "axis": AXES,
        "plane": AXES[:2],
        "quaternion": [*AXES, "w"],
    }
    used = {dim for name in variables for dim in SCHEMA[name][0]}
    return xr.Dataset(
        {
            name: (("time", *SCHEMA[name][0]), values, {"units": SCHEMA[name][1], "long_name": SCHEMA[name][2]})
            for name, values in variables.items()
        },
        coords={"time": ("time", time, {"units": "s"}), **{dim: labels[dim] for dim in labels if dim in used}},
    )


def join(blocks: Sequence[xr.Dataset]) -> xr.Dataset:
    """Put consecutive blocks of one run together."""
    return xr.concat(
        blocks,
        dim="time",
        data_vars="minimal",
        coords="minimal",
        compat="override",
        join="override",
        combine_attrs="override",
    )


def provenance(body: Any, *, step: float, seed: int | None, scenario: str) -> dict[str, Any]:
    """Attributes that let a result be understood and made again."""
    return {
        "schema": "posture-run",
        "schema_version": SCHEMA_VERSION,
        "body": body.name,
        "body_sha256": body.sha256,
        "body_mass_kg": body.mass,
        "body_urdf": body.urdf,
        "body_sidecar": json.dumps(body.sidecar),
        "body_locked": json.dumps(body.locked),
        "step_s": step,
        "seed": -1 if seed is None else seed,
        "scenario": scenario,
        "versions": json.dumps(versions()),
        "stopped": "",
    }


def versions() -> dict[str, str]:
    """Versions of everything that can change a number."""
    found = {}
    for package in ("posture", "pin", "numpy", "scipy", "casadi", "xarray"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree without installation
            found[package] = "source tree"
    return found


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside ``path``; move it there when the block ends well, remove it otherwise."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ResultError(f"{path}: the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise ResultError(f"{path}: this is a folder; give a file name")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise ResultError(f"{path}: cannot write there ({error.strerror}); choose another place") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files only their owner can read
        os.replace(temporary, path)
    except OSError as error:
        raise ResultError(f"{path}: writing failed ({error.strerror}); nothing was changed") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, complete or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def save_blocks(blocks: Iterable[xr.Dataset], path: Path) -> None:
    """Write consecutive blocks of one run as they come; memory holds one block at a time.

    If the blocks end in an exception (a fall, Ctrl-C), what came before is kept in a complete, readable file whose
    attribute ``stopped`` says why, and the exception goes on.
    """
    import h5netcdf

    reason: BaseException | None = None
    with replacing(path) as temporary, h5netcdf.File(temporary, "w") as file:
        sums: dict[str, Any] = {}
        rows = 0
        try:
            for block in blocks:
                if not rows:
                    sums = _create(file, block)
                rows, sums = _append(file, block, rows, sums)
        except BaseException as stopped:
            if not rows:
                raise
            reason = Interrupted("interrupted") if isinstance(stopped, KeyboardInterrupt) else stopped
            file.resize_dimension("time", rows)  # an interrupted block may be written in part
            file.attrs["stopped"] = str(reason) or type(reason).__name__
        file.attrs["checksums"] = json.dumps({name: total.hexdigest() for name, total in sums.items()})
    if reason is not None:
        raise reason


def _create(file: Any, block: xr.Dataset) -> dict[str, Any]:
    """Lay out the file like the first block; start a checksum for each variable."""
    import h5py

    sums: dict[str, Any] = {}
    file.dimensions = {str(dim): None if dim == "time" else size for dim, size in block.sizes.items()}
    for name, variable in block.variables.items():
        text = variable.dtype.kind in "UO"
        kind: Any = h5py.string_dtype() if text else np.float64
        made = file.create_variable(
            str(name),
            tuple(str(dim) for dim in variable.dims),
            dtype=kind,
            chunks=None
            if text
            else tuple(min(2048, max(1, size)) if dim == "time" else size for dim, size in variable.sizes.items()),
        )
        if text:
            made[...] = np.array(variable.values, dtype=object)
        for key, value in variable.attrs.items():
            made.attrs[key] = value
        sums[str(name)] = hashlib.sha256()
        if "time" not in variable.dims:
            sums[str(name)].update(_bytes(variable.values))
    for key, value in block.attrs.items():
        file.attrs[key] = value
    return sums


def _append(file: Any, block: xr.Dataset, rows: int, sums: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Write one block after ``rows`` others; the new count and checksums, the old ones untouched."""
    count = block.sizes["time"]
    added = {name: total.copy() for name, total in sums.items()}
    file.resize_dimension("time", rows + count)
    for name, variable in block.variables.items():
        if "time" in variable.dims:
            file[str(name)][rows : rows + count] = variable.values
            added[str(name)].update(_bytes(variable.values))
    return rows + count, added


def _bytes(values: NDArray[Any]) -> bytes:
    if values.dtype.kind in "UO":
        return "\n".join(str(value) for value in values.ravel()).encode()
    return np.ascontiguousarray(values, dtype="<f8").tobytes()


def save(dataset: xr.Dataset, path: Path) -> None:
    """Write a whole dataset."""
    save_blocks([dataset], path)


def load(path: Path) -> xr.Dataset:
    """Read a result and verify it against its checksums."""
    if not path.is_file():
        raise ResultError(f"{path}: no such file; make one with `posture simulate … --out {path.name}`")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            dataset = stored.load()
    except Exception:  # h5py raises half a dozen unrelated types for damaged files
        raise ResultError(
            f"{path}: not a readable netCDF4 file; "
            "it is truncated, damaged or of another kind, so copy or make it again"
        ) from None
    if dataset.attrs.get("schema") != "posture-run" or "checksums" not in dataset.attrs:
        raise ResultError(f"{path}: a netCDF file, but not a result of posture; make one with `posture simulate`")
    found = int(dataset.attrs.get("schema_version", 0))
    if found > SCHEMA_VERSION:
        raise ResultError(
            f"{path}: written with result schema {found}, this posture reads up to {SCHEMA_VERSION}; update posture"
        )
    for name, expected in json.loads(dataset.attrs["checksums"]).items():
        if name not in dataset.variables or hashlib.sha256(_bytes(dataset[name].values)).hexdigest() != expected:
            raise ResultError(
                f"{path}: variable {name!r} does not match its checksum; "
                "the file was damaged or edited, so make it again"
            )
    return dataset


# ---------------------------------------------------------------- export to other programs


def as_table(dataset: xr.Dataset, names: Iterable[str]) -> tuple[list[str], Array]:
    """Flatten variables into columns ``variable.label`` (joint angles just by joint name), time first."""
    header, columns = ["time"], [dataset.time.values]
    for name in names:
        variable = dataset[
            find_name(name, [str(key) for key in dataset.data_vars], what="variable", where="result", error=ResultError)
        ]
        if variable.ndim == 1:
            header.append(name)
            columns.append(variable.values)
            continue
        for label in variable[variable.dims[1]].values:
            header.append(str(label) if name == "joint_position" else f"{name}.{label}")
            columns.append(variable.sel({variable.dims[1]: label}).values)
    return header, np.column_stack(columns)


def export(dataset: xr.Dataset, path: Path, *, variables: Sequence[str] | None = None) -> None:
    """Write .csv (everything), .sto (everything, OpenSim) or .mot (joint angles, OpenSim); SI units and radians."""
    kinds = (".csv", ".sto", ".mot")
    if path.suffix not in kinds:
        raise ResultError(f"{path}: unknown kind {path.suffix!r}; end the name in {', '.join(kinds)}")
    everything = [str(name) for name in dataset.data_vars]
    names = list(variables) if variables else (["joint_position"] if path.suffix == ".mot" else everything)
    header, table = as_table(dataset, names)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        if path.suffix == ".csv":
            stream.write(",".join(header) + "\n")
            np.savetxt(stream, table, fmt="%.10g", delimiter=",")
        else:
            stream.write(
                f"{dataset.attrs.get('body', 'posture')}\nversion=1\nnRows={len(table)}\nnColumns={len(header)}\n"
            )
            stream.write("inDegrees=no\nendheader\n" + "\t".join(header) + "\n")
            np.savetxt(stream, table, fmt="%.10g", delimiter="\t")
