"""The command line as a person or a program meets it: help, JSON, exit codes, interruptions, closed pipes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from posture.cli import _parser
from posture.results import load

POSTURE = [sys.executable, "-m", "posture.cli"]
SCENARIO = """duration = {duration}
[deck]
type = "sines"
roll = [{{ amplitude_deg = 4.0, period = 8.0 }}]
[controller]
stiffness_ratio = {ratio}
damping_time = 0.02
"""


def commands() -> list[str]:
    return list(next(action for action in _parser()._actions if action.choices).choices)


def scenario(folder: Path, *, duration: float = 1.0, ratio: float = 8.0) -> Path:
    path = folder / "run.toml"
    path.write_text(SCENARIO.format(duration=duration, ratio=ratio), encoding="utf-8")
    return path


def posture(*words: object, **settings: object) -> subprocess.CompletedProcess:
    asked = {"capture_output": True, "text": True, "timeout": 120} | settings
    return subprocess.run([*POSTURE, *map(str, words)], **asked)


def begun(folder: Path, *, options: tuple[str, ...] = ()) -> subprocess.Popen:
    """Start a long run and wait until it has told some progress."""
    line = [*POSTURE, "simulate", str(scenario(folder, duration=2000.0)), "--out", str(folder / "run.nc"), *options]
    running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 90
    while not list(folder.glob(".run.nc.*.part")) or max(p.stat().st_size for p in folder.glob(".run.nc.*")) < 300_000:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return running


def finished(running: subprocess.Popen) -> tuple[str, str]:
    try:
        return running.communicate(timeout=60)
    finally:
        running.kill()


# ------------------------------------------------------------------ help, light imports


@pytest.mark.parametrize("name", commands())
def test_the_help_of_every_command_has_an_example_that_parses(name: str, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as left:
        _parser().parse_args([name, "--help"])
    assert left.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"example: posture {name}" in shown
    assert "--json" in shown
    _parser().parse_args(shlex.split(shown.split("example: posture ")[1]))


@pytest.mark.parametrize(
    "code", ["import posture", "from posture.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"]
)
def test_importing_and_asking_for_help_load_nothing_heavy(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "posture" in loaded
    assert loaded.isdisjoint({"numpy", "scipy", "pinocchio", "casadi", "xarray", "lxml", "h5py", "h5netcdf", "tqdm"})


def test_every_public_name_can_be_imported() -> None:
    import posture as package

    for name in package.__all__:
        assert getattr(package, name) is not None


# ------------------------------------------------------------------ JSON and exit codes


def test_every_command_prints_json_that_parses(run_all, tmp_path: Path) -> None:
    out, person = tmp_path / "anna.urdf", ["--mass", "60", "--height", "1.7", "--sex", "female"]
    lines = {
        "models": ["models"],
        "check": ["check", "ship_stance"],
        "scale": ["scale", "ship_stance", *person, "--out", out],
        "simulate": ["simulate", scenario(tmp_path), "--out", tmp_path / "run.nc", "--view", tmp_path / "run.html"],
        "export": ["export", tmp_path / "run.nc", "--out", tmp_path / "run.sto"],
    }
    found = {}
    for name, done in zip(lines, run_all([[*line, "--json"] for line in lines.values()]), strict=True):
        assert done.code == 0, done.err
        found[name] = json.loads(done.out)
    assert {item["name"] for item in found["models"]} >= {"ship_stance"}
    assert found["check"]["mass_kg"] == 80
    assert found["scale"]["mass_kg"] == 60
    assert found["simulate"]["rows"] == 51
    assert found["export"]["written"].endswith("run.sto")
    assert (tmp_path / "run.html").stat().st_size > 1e5


def test_the_same_commands_print_for_people_too(run_all, tmp_path: Path) -> None:
    for done in run_all([["models"], ["check", "ship_stance"], ["simulate", scenario(tmp_path), "--seed", "3"]]):
        assert done.code == 0
        assert done.out.strip()
        assert "{" not in done.out


def test_usage_errors_and_bad_options_leave_with_two(run_all, tmp_path: Path) -> None:
    path, out = scenario(tmp_path), tmp_path / "x.nc"
    bad = {
        ("simulate",): "scenario",
        ("simulat", path): "simulat",
        ("scale", "ship_stance", "--mass", "heavy"): "heavy",
        ("reproduce", "ship_stnace"): "did you mean 'ship_stance'",
        ("simulate", path, "--out", tmp_path / "x.txt"): ".nc",
        ("simulate", path, "--out", tmp_path / "no" / "x.nc"): "does not exist; create it first",
        ("simulate", path, "--out", out, "--view", tmp_path / "no" / "x.html"): "does not exist; create it first",
        ("simulate", path, "--out", out, "--view", tmp_path / "x.nc"): ".html",
        ("simulate", path, "--out", out, "--view", tmp_path / "folder.html"): "folder.html: this is a folder",
        ("simulate", path, "--out", tmp_path / "folder.nc"): "folder.nc: this is a folder",
        ("reproduce", ""): "no system is called ''",
        ("simulate", path, "--out", out, "--duration", "nan"): "duration is nan",
        ("simulate", path, "--out", out, "--duration", "inf"): "duration is inf",
        ("simulate", path, "--out", out, "--step", "-1"): "step is -1",
        ("simulate", path, "--out", out, "--seed", "-1"): "seed is -1",
        ("simulate", path, "--out", out, "--body", "ship_stanc"): "did you mean 'ship_stance'",
        ("simulate", tmp_path / "none.toml"): "no such file",
        ("check", tmp_path): "no such file",
    }
    for name in ("folder.nc", "folder.html"):
        (tmp_path / name).mkdir()
    for words, done in zip(bad, run_all(list(bad)), strict=True):
        assert done.code == 2, (words, done.err)
        assert bad[words] in done.err
        assert "simulated" not in done.err  # told before an hour is spent
        assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.html", "folder.nc", "run.toml"]


def test_every_joint_of_a_scenario_may_be_locked(run_all, tmp_path: Path) -> None:
    path, out = scenario(tmp_path), tmp_path / "run.nc"
    path.write_text('locked = ["*"]\n' + path.read_text())
    (done,) = run_all([["simulate", path, "--out", out]])
    assert done.code == 0, done.err
    assert (load(out).joint_position.values == 0).all()


def test_a_scaled_body_does_not_write_over_a_scenario(run_all, tmp_path: Path) -> None:
    path = scenario(tmp_path)
    before = path.read_text()
    person = ["--mass", "60", "--height", "1.7", "--sex", "female"]
    scale = ["scale", "ship_stance", *person, "--out", tmp_path / "run.urdf"]
    refused, *done = run_all([scale, [*scale[:-1], tmp_path / "anna.urdf"], [*scale[:-1], tmp_path / "anna.urdf"]])
    assert refused.code == 2
    assert "run.toml: this file" in refused.err
    assert path.read_text() == before
    assert not (tmp_path / "run.urdf").exists()
    assert [found.code for found in done] == [0, 0]  # its own sidecar may be written again


def test_a_fall_leaves_with_three_and_keeps_what_came_before(run_all, tmp_path: Path) -> None:
    out = tmp_path / "fall.nc"
    (done,) = run_all([["simulate", scenario(tmp_path, duration=20.0, ratio=0.3), "--out", out, "--json"]])
    assert done.code == 3
    kept = load(out)
    assert 0.5 < float(kept.time[-1]) < 19
    assert kept.attrs["stopped"]
    assert json.loads(done.out)["stopped"] == kept.attrs["stopped"]
    last = done.err.splitlines()[-1]
    assert last.startswith("posture: ship_stance: ")
    assert f"{out} holds the first" in last


def test_a_body_without_joints_is_simulated_as_one_rigid_piece(run_all, tmp_path: Path) -> None:
    (tmp_path / "block.urdf").write_text(
        '<robot name="block"><link name="block"><inertial><origin xyz="0 0 0.5"/><mass value="10"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    (tmp_path / "rest.toml").write_text('body = "block.urdf"\nduration = 1.0\n')
    out = tmp_path / "rest.nc"
    checked, done = run_all(
        [["check", tmp_path / "block.urdf"], ["simulate", tmp_path / "rest.toml", "--out", out, "--json"]]
    )
    assert checked.code == 0, checked.err
    assert done.code == 0, done.err
    assert json.loads(done.out)["vertical_force_max_weights"] == 1
    assert load(out).force_deck_on_person.values[-1] == pytest.approx([0, 0, 98.0665], abs=1e-9)


# ------------------------------------------------------------------ interruptions


def test_ctrl_c_keeps_a_readable_result_that_says_why(tmp_path: Path) -> None:
    running = begun(tmp_path, options=("--json",))
    running.send_signal(signal.SIGINT)
    out, err = finished(running)
    assert running.returncode == 130, err
    kept = load(tmp_path / "run.nc")
    assert kept.attrs["stopped"] == "interrupted"
    assert 5 < float(kept.time[-1]) < 2000
    assert json.loads(out)["stopped"] == "interrupted"
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("posture: interrupted; ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.nc", "run.toml"]


IN_A_CALLBACK = """
import os, signal, weakref
from posture.commands import progress

class Thing: pass

def lost(reference):
    os.kill(os.getpid(), signal.SIGINT)
    sum(range(1000))  # the signal's handler runs here; what it raises would be dropped

with progress(10) as tell:
    thing = Thing()
    kept = weakref.ref(thing, lost)
    del thing
    try:
        tell(1)
    except KeyboardInterrupt:
        print("kept")
    try:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1000))
    except KeyboardInterrupt:
        print("at once")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_ctrl_c_is_not_lost_where_python_would_drop_it() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_CALLBACK], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["kept", "at once"], done.stderr
    assert "ignored" not in done.stderr


def test_a_killed_run_leaves_nothing_under_the_final_name(tmp_path: Path) -> None:
    running = begun(tmp_path)
    running.kill()
    finished(running)
    assert running.returncode == -signal.SIGKILL
    assert not (tmp_path / "run.nc").exists()


def test_a_killed_run_leaves_the_result_of_the_run_before(run_all, tmp_path: Path) -> None:
    (done,) = run_all([["simulate", scenario(tmp_path), "--out", tmp_path / "run.nc"]])
    assert done.code == 0
    before = (tmp_path / "run.nc").read_bytes()
    running = begun(tmp_path)
    running.kill()
    finished(running)
    assert (tmp_path / "run.nc").read_bytes() == before


# ------------------------------------------------------------------ pipes and terminals


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["models"], ["check", "ship_stance", "--json"]])
def test_a_reader_that_leaves_early_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = posture(*words, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


def test_progress_comes_in_plain_lines_when_nobody_watches(run_all, tmp_path: Path) -> None:
    (done,) = run_all(
        [["simulate", scenario(tmp_path, duration=40.0), "--engine", "reference", "--out", tmp_path / "run.nc"]]
    )
    assert done.code == 0, done.err
    lines = done.err.splitlines()
    assert lines[-1] == "posture: simulated 40 of 40 s"
    assert 2 <= len(lines) <= 10
    assert all(line.startswith("posture: simulated ") for line in lines)
    assert "\r" not in done.err
    assert "\x1b" not in done.err


def test_a_terminal_without_greek_letters_still_gets_its_output() -> None:
    words = ["check", "ship_stance", "--json"]
    done = posture(*words, env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mass_kg"] == 80
    refused = posture("check", "größe.urdf", env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert refused.returncode == 2
    assert refused.stderr.startswith("posture: gr\\xf6\\xdfe.urdf: no such file")


def test_the_installed_command_is_this_one() -> None:
    command = Path(sys.executable).with_name("posture")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("posture 0.")
