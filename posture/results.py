"""Results: one schema of named, labelled arrays; saved whole with checksums or not at all.

Files are netCDF4 (HDF5). The SHA-256 of each variable and attribute stands in the file, so a flipped bit, a
truncated copy or a foreign file is told apart from a result. The SHA-256 of the whole file follows behind its end,
where HDF5 does not look: it is compared first, since HDF5 reads some damaged files for ever, deaf to Ctrl-C. A program
that changes a file cuts it off; the sums inside then still tell. A file is written under a temporary name and renamed
when complete.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
SIGNATURE = b"posture-sha256 "  # what stands between the end of a file and its checksum
CHUNK_ROWS = 500  # rows stored together, whatever the first block has: chunks of one row cost ten times their size
# Which command makes which kind of result.
COMMANDS = {"posture-run": "simulate", "posture-ensemble": "ensemble", "posture-sweep": "ship sweep"}

# name: dims after time, unit, meaning. Ship axes: X bow, Y port, Z up; origin where the person stands.
SCHEMA: dict[str, tuple[tuple[str, ...], str, str]] = {
    "joint_position": (("joint",), "rad", "joint angles"),
    "joint_velocity": (("joint",), "rad/s", "joint angular velocities"),
    "joint_acceleration": (("joint",), "rad/s^2", "joint angular accelerations"),
    "joint_torque": (("joint",), "N m", "controller torques on the child link; zero at locked joints"),
    "joint_power": (("joint",), "W", "torque times velocity, positive when the joint drives the motion"),
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
    "element_tension": (("element",), "N", "tension of ligaments, muscles, rods and cables"),
    "element_length": (("element",), "m", "length of each of them"),
    "element_impulse": (("element",), "N s", "impulse since the row before of cables snapping taut"),
    "element_impact_energy": (("element",), "J", "energy lost since the row before by cables snapping taut"),
    "force_elements_on_person": (("axis",), "N", "sum of forces of elements made fast to the root link, ship axes"),
    "stance_margin": ((), "m", "distance of the centre of pressure from the stance outline, positive inside"),
    # A floating body with muscles; world axes, X forward, Y left, Z up.
    "root_position": (("axis",), "m", "origin of the root link in the world"),
    "root_quaternion": (("quaternion",), "1", "root to world rotation, x y z w"),
    "ground_force": (("contact", "axis"), "N", "force of the ground on each contact"),
    "ground_moment": (("contact", "axis"), "N m", "moment of the ground on each contact about the world's origin"),
    "ground_point": (("contact", "axis"), "m", "centre of pressure of each contact on the ground"),
    "ground_residual_force": (("axis",), "N", "force that the motion needs and no contact gives"),
    "ground_residual_moment": (("axis",), "N m", "moment that the motion needs and no contact gives"),
    "joint_force": (("joint", "axis"), "N", "force of parent on child at the joint, muscles included"),
    "joint_force_torque_only": (("joint", "axis"), "N", "the same if torques moved the joints instead of muscles"),
    "muscle_activation": (("muscle",), "1", "activation, 0 to 1"),
    "muscle_activation_elimination": (
        ("muscle",),
        "1",
        "the same by pseudo-inverse and elimination; NaN: none",
    ),
    "muscle_force": (("muscle",), "N", "tension, passive part included"),
    "muscle_capacity": (("muscle",), "N", "active tension at activation 1"),
    "muscle_length": (("muscle",), "m", "length from origin to insertion"),
    "muscle_velocity": (("muscle",), "m/s", "rate of the length, positive when it lengthens"),
    "muscle_path": (("muscle", "path_point", "axis"), "m", "points of each muscle in the world, NaN beyond its last"),
    "sharing_kkt": ((), "1", "distance of the activations from satisfying all conditions of the optimum"),
    "sharing_torque_residual": (("muscle_joint",), "N m", "torque of the muscles minus torque asked for"),
    "sharing_shortfall": (("muscle_joint",), "N m", "torque that no activation can give"),
}

# What a result may hold besides, and views and reports then show. The motion that a run is to follow:
SCHEMA |= {
    "reference_joint_position": (("joint",), "rad", "joint angles to follow"),
    "reference_root_position": (("axis",), "m", "origin of a floating body's root to follow"),
    "reference_root_quaternion": (("quaternion",), "1", "root to world rotation to follow, x y z w"),
    "lyapunov_value": ((), "J", "Lyapunov function of the controller"),
}
# The waves of the sea, which do not change with time: height at (x, y) is Σ a cos(ω t - k·(x, y) + phase), in the axes
# of deck_position, which go along with the ship.
WAVES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "wave_amplitude": (("wave",), "m", "amplitude a of each wave"),
    "wave_number": (("wave", "plane"), "rad/m", "wave number k, along the way the wave goes"),
    "wave_frequency": (("wave",), "rad/s", "frequency ω at which the ship meets the wave"),
    "wave_phase": (("wave",), "rad", "phase at time 0 at the origin"),
}


def with_waves(dataset: xr.Dataset, waves: dict[str, Array]) -> xr.Dataset:
    """Add the waves of a sea to a run; nothing where there are none."""
    return dataset.assign(
        {name: (WAVES[name][0], values, {"units": WAVES[name][1], "long_name": WAVES[name][2]})
         for name, values in waves.items()}
    )  # fmt: skip


def make_dataset(
    time: Array,
    variables: dict[str, Array],
    *,
    joints: list[str],
    locked: list[str],
    labels: Mapping[str, Sequence[str]] | None = None,
) -> xr.Dataset:
    """Label raw arrays (time first) by the schema; ``labels``: those of dimensions that only some results have."""
    labels = {
        "joint": joints,
        "locked_joint": locked,
        "axis": AXES,
        "plane": AXES[:2],
        "quaternion": [*AXES, "w"],
        **(labels or {}),
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
def replacing(path: str | Path) -> Iterator[Path]:
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


@contextmanager
def creating(path: str | Path) -> Iterator[Any]:
    """Give a new netCDF4 file to fill; it gets its checksum and its name when the block ends well."""
    import h5netcdf

    with replacing(path) as temporary:
        with h5netcdf.File(temporary, "w") as file:
            yield file
        total = _digest(temporary, temporary.stat().st_size)
        with temporary.open("ab") as stream:
            stream.write(SIGNATURE + total)


def _digest(path: Path, size: int) -> bytes:
    """SHA-256, in hexadecimal digits, of a file's first ``size`` bytes."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while size and (piece := stream.read(min(size, 1 << 16))):
            total.update(piece)
            size -= len(piece)
    return total.hexdigest().encode()


def check_whole(path: Path) -> None:
    """Refuse a file that is not what its checksum behind the end says; files without one pass."""
    size = max(0, path.stat().st_size - len(SIGNATURE) - 2 * hashlib.sha256().digest_size)
    with path.open("rb") as stream:
        stream.seek(size)
        end = stream.read()
    at = end.find(SIGNATURE)  # not the first of these bytes if the last ones are lost
    if at >= 0 and end[at + len(SIGNATURE) :] != _digest(path, size + at):
        raise ResultError(f"{path}: the file does not match its checksum; it was damaged, so copy or make it again")


def save_blocks(blocks: Iterable[xr.Dataset], path: str | Path) -> None:
    """Write consecutive blocks of one run as they come; memory holds one block at a time.

    If the blocks end in an exception (a fall, Ctrl-C), what came before is kept in a complete, readable file whose
    attribute ``stopped`` says why, and the exception goes on.
    """
    reason: BaseException | None = None
    with creating(path) as file:
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
        seal(file, sums)
    if reason is not None:
        raise reason


def seal(file: Any, sums: dict[str, Any]) -> None:
    """Write the checksums of an open file: those of its variables, given, and of its attributes as they now are."""
    held = {name: value for name, value in file.attrs.items() if name != "checksums"}
    sums = sums | {name: hashlib.sha256(str(value).encode()) for name, value in held.items()}
    file.attrs["checksums"] = json.dumps({name: total.hexdigest() for name, total in sums.items()})


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
            else tuple(max(1, CHUNK_ROWS if dim == "time" else size) for dim, size in variable.sizes.items()),
        )
        if "time" not in variable.dims:
            made[...] = np.array(variable.values, dtype=object) if text else variable.values
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
    if "time" not in block.sizes:  # a table, not a run: laid out whole by _create
        return 1, sums
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


def save(dataset: xr.Dataset, path: str | Path) -> None:
    """Write a whole dataset."""
    save_blocks([dataset], path)


def load(path: str | Path, *, schema: str | None = None) -> xr.Dataset:
    """Read a result and verify it against its checksums; ``schema`` is the kind of result that is meant, if any."""
    path, command = Path(path), COMMANDS[schema or "posture-run"]
    if not path.is_file():
        raise ResultError(f"{path}: no such file; make one with `posture {command} … --out {path.name}`")
    check_whole(path)
    import h5py

    try:
        with h5py.File(path) as file:
            dict(file.attrs)  # h5netcdf leaves a complaint on stderr when this fails inside it
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            dataset = stored.load()
    except Exception:  # h5py raises half a dozen unrelated types for damaged files
        raise ResultError(
            f"{path}: not a readable netCDF4 file; "
            "it is truncated, damaged or of another kind, so copy or make it again"
        ) from None
    if dataset.attrs.get("schema") not in ([schema] if schema else COMMANDS) or "checksums" not in dataset.attrs:
        raise ResultError(f"{path}: a netCDF file, but not a result of posture; make one with `posture {command}`")
    try:
        found, sums = int(dataset.attrs["schema_version"]), dict(json.loads(dataset.attrs["checksums"]))
    except (KeyError, TypeError, ValueError):
        raise ResultError(
            f"{path}: the schema version or the checksums cannot be read; the file was damaged, so make it again"
        ) from None
    if found > SCHEMA_VERSION:
        raise ResultError(
            f"{path}: written with result schema {found}, this posture reads up to {SCHEMA_VERSION}; update posture"
        )
    held = {str(name): _bytes(variable.values) for name, variable in dataset.variables.items()}
    held |= {name: str(value).encode() for name, value in dataset.attrs.items() if name != "checksums"}
    for name in held | sums:
        if name not in held or hashlib.sha256(held[name]).hexdigest() != sums.get(name):
            raise ResultError(
                f"{path}: {name!r} does not match its checksum; the file was damaged or edited, so make it again"
            )
    return dataset


# ---------------------------------------------------------------- export to other programs


def as_table(dataset: xr.Dataset, names: Iterable[str]) -> tuple[list[str], Array]:
    """Flatten variables into columns ``variable.label`` (joint angles just by joint name), time first."""
    header, columns = ["time"], [dataset.time.values]
    known = [str(key) for key, variable in dataset.data_vars.items() if "time" in variable.dims]
    for name in names:
        variable = dataset[find_name(name, known, what="variable over time", where="result", error=ResultError)]
        if variable.ndim == 1:
            header.append(name)
            columns.append(variable.values)
            continue
        for place in np.ndindex(variable.shape[1:]):
            label = ".".join(str(variable[dim].values[at]) for dim, at in zip(variable.dims[1:], place, strict=True))
            header.append(label if name == "joint_position" else f"{name}.{label}")
            columns.append(variable.values[(slice(None), *place)])
    return header, np.column_stack(columns)


def export(dataset: xr.Dataset, path: str | Path, *, variables: Sequence[str] | None = None) -> None:
    """Write .csv (everything), .sto (everything, OpenSim) or .mot (joint angles, OpenSim); SI units and radians."""
    path, kinds = Path(path), (".csv", ".sto", ".mot")
    if path.suffix not in kinds:
        raise ResultError(f"{path}: unknown kind {path.suffix!r}; end the name in {', '.join(kinds)}")
    everything = [str(name) for name, variable in dataset.data_vars.items() if "time" in variable.dims]
    names = list(variables) if variables else (["joint_position"] if path.suffix == ".mot" else everything)
    header, table = as_table(dataset, names)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as stream:
        if path.suffix == ".csv":
            csv.writer(stream, lineterminator="\n").writerow(header)  # names of joints may hold commas
            np.savetxt(stream, table, fmt="%.10g", delimiter=",")
        else:
            stream.write(
                f"{dataset.attrs.get('body', 'posture')}\nversion=1\nnRows={len(table)}\nnColumns={len(header)}\n"
            )
            stream.write("inDegrees=no\nendheader\n" + "\t".join(header) + "\n")
            np.savetxt(stream, table, fmt="%.10g", delimiter="\t")
