"""Bad muscle sidecars, motions and force records get one sentence and a non-zero exit, never a traceback."""

import re
import shutil

import numpy as np
import pytest

from posture.body import load_body, models_folder
from posture.cli import main
from posture.errors import BodyError, MotionError
from posture.jump_height import jump_height
from posture.muscles import load_muscles


@pytest.fixture
def copy(tmp_path):
    for name in ("jump.urdf", "jump.toml", "jump.muscles.toml"):
        shutil.copy(models_folder() / name, tmp_path / name)
    return tmp_path / "jump.muscles.toml"


def edit(path, old, new, count=1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


CASES = {
    "unknown link": ('link = "left_shank"', 'link = "left_shin"', r"left_shin.*did you mean 'left_shank'"),
    "zero force": ("max_force = 2700", "max_force = 0", r"max_force is 0, but must be a number from 0.001"),
    "zero PCSA": ("max_force = 2700", "pcsa_cm2 = 0.0", r"pcsa_cm2 is 0, but must be a number from 0.0001"),
    "force and area": ("max_force = 2700", "max_force = 2700\npcsa_cm2 = 44.0", "one of the two"),
    "text for a force": ("max_force = 2700", 'max_force = "strong"', "'strong', but must be a number"),
    "not a number": ("max_force = 2700", "max_force = nan", "max_force is nan"),
    "duplicate name": ("[muscle.left_soleus]", "[muscle.left_vasti]", "left_vasti.*twice|left_vasti"),
    "unknown key": ("pennation_deg = 25", "penation_deg = 25", "did you mean 'pennation_deg'"),
    "steep pennation": ("pennation_deg = 25", "pennation_deg = 95", "from 0 to 80 degrees"),
    "unknown pulley": ('pulley = "left_patella"', 'pulley = "left_patela"', "did you mean 'left_patella'"),
    "flat pulley": ("radius = 0.042", "radius = 0.0", "radius is 0, but"),
    "pulley without direction": ("axis = [0, 1, 0]", "axis = [0, 0, 0]", "must have a direction"),
    "two numbers for a point": (
        "point = [-0.0024, 0.0, -0.1605]",
        "point = [-0.0024, -0.1605]",
        "three finite numbers",
    ),
    "broken TOML": ("[muscle.left_vasti]", "[muscle.left_vasti", "not valid TOML"),
    "unknown table": ("specific_tension_mpa", "specific_tension", "did you mean 'specific_tension_mpa'"),
    "point inside a pulley": ("radius = 0.042", "radius = 0.3", "inside its radius"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_sidecar_gets_its_sentence(copy, capsys, case):
    old, new, words = CASES[case]
    text = copy.read_text()
    if case == "two numbers for a point":
        old = re.search(r"point = \[-0\.0024, 0\.0, [-0-9.]+\]", text).group(0)
    edit(copy, old, new)
    assert main(["muscles", str(copy.with_name("jump.urdf"))]) == 2
    said = capsys.readouterr().err
    assert said.startswith("posture: ")
    assert said.count("\n") == 1
    assert re.search(words, said), said
    assert "jump.muscles.toml" in said


def test_a_path_through_the_joint_centre(copy):
    text = copy.read_text()
    start = text.index("[muscle.left_soleus]")
    end = text.index("[muscle.", start + 5)
    # The ankle lies 0.4502 m below the knee: a line straight down the shank passes its centre.
    block = text[start : text.index("path", start)] + (
        'path = [{ link = "left_shank", point = [0, 0, -0.2] }, { link = "left_foot", point = [0, 0, -0.02] }]\n\n'
    )
    copy.write_text(text[:start] + block + text[end:])
    with pytest.raises(
        BodyError, match=r"'left_soleus' passes through the centre of joint 'left_ankle'.*could not turn"
    ):
        load_muscles(load_body(copy.with_name("jump.urdf")))


def test_a_path_on_one_link_and_a_pulley_at_its_end(copy):
    text = copy.read_text()
    start = text.index("[muscle.left_soleus]")
    head, rest = text[: text.index("path", start)], text[text.index("[muscle.", start + 5) :]
    one = 'path = [{ link = "left_shank", point = [0, 0, -0.2] }, { link = "left_shank", point = [0, 0.1, -0.3] }]\n'
    copy.write_text(f"{head}{one}{rest}")
    with pytest.raises(BodyError, match="'left_soleus' turns no joint"):
        load_muscles(load_body(copy.with_name("jump.urdf")))
    two = 'path = [{ pulley = "left_patella" }, { link = "left_shank", point = [0, 0.1, -0.3] }]\n'
    copy.write_text(f"{head}{two}{rest}")
    with pytest.raises(BodyError, match="a point before and after"):
        load_muscles(load_body(copy.with_name("jump.urdf")))


def test_a_body_without_muscles_says_what_to_add(capsys):
    assert main(["muscles", "ship_stance"]) == 2
    assert "no muscles are known; add [muscle.NAME]" in capsys.readouterr().err


def test_fibre_data_are_asked_for_when_needed(copy):
    edit(copy, "optimal_fiber_length = ", "# ", count=1)
    muscles = load_muscles(load_body(copy.with_name("jump.urdf")))
    with pytest.raises(BodyError, match="'left_hamstrings' has no fibre data"):
        muscles.strength(np.ones((1, 18)), np.zeros((1, 18)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jump", "--kind", "somersault"], "no kind of jump is called 'somersault'"),
        (["jump", "--exponent", "two"], "--exponent is 'two'"),
        (["jump", "--exponent", "0.5"], "--exponent is 0.5, but must be a number from 1 to 100; or inf"),
        (["jump", "--exponent", "nan"], "--exponent is nan"),
        (["jump", "--out", "jump.txt"], "a result is written as .nc"),
        (["muscles", "jump", "--motion", "nowhere.mot", "--feet", "left_foot=1"], "give it with --plates"),
        (["muscles", "jump", "--posture", "right_knee=nan"], "--posture right_knee is nan"),
        (["muscles", "jump", "--posture", "right_knee=1e9"], "from -360 to 360 degrees"),
        (["muscles", "jump", "--posture", "right_knee"], "NAME=VALUE"),
        (["muscles", "jump", "--posture", "right_knee=bent"], "number of degrees"),
        (["muscles", "jump", "--posture", "knee_right=10"], "no joint is called 'knee_right'"),
        (["muscles", "jump", "--motion", "nowhere.mot"], "nowhere.mot"),
        (["jump", "--force", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_commands_get_their_sentence(capsys, arguments, words):
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def motion_file(path, columns, rows=40):
    time = np.linspace(0, 1, rows)
    table = np.column_stack([time, *[0.01 * np.sin(3 * time + index) for index in range(len(columns))]])
    header = ",".join(["time", *columns])
    np.savetxt(path, table, delimiter=",", header=header, comments="")


def test_motion_files_with_wrong_columns(tmp_path, capsys):
    body = load_body("jump")
    joints = body.joint_names
    motion_file(tmp_path / "short.csv", ["root_x", "root_z", "root_pitch", *joints[1:]])
    assert main(["muscles", "jump", "--motion", str(tmp_path / "short.csv")]) == 2
    assert f"no column for joint {joints[0]!r}" in capsys.readouterr().err
    motion_file(tmp_path / "few.csv", joints, rows=4)
    assert main(["muscles", "jump", "--motion", str(tmp_path / "few.csv")]) == 2
    assert "4 frames; rates need at least 6" in capsys.readouterr().err
    motion_file(tmp_path / "gap.csv", joints)
    lines = (tmp_path / "gap.csv").read_text().splitlines()
    lines[20] = lines[20].rsplit(",", 1)[0] + ","
    (tmp_path / "gap.csv").write_text("\n".join(lines))
    assert main(["muscles", "jump", "--motion", str(tmp_path / "gap.csv")]) == 2
    assert f"{joints[-1]} has no number at 0.487" in capsys.readouterr().err
    motion_file(tmp_path / "odd.csv", ["root_x", "elbow", *joints])
    assert main(["muscles", "jump", "--motion", str(tmp_path / "odd.csv")]) == 2
    assert "no coordinate is called 'elbow'" in capsys.readouterr().err


def test_a_good_motion_file_writes_a_result_and_a_bad_name_nothing(tmp_path, capsys):
    from posture.results import load

    body = load_body("jump")
    good = tmp_path / "sway.csv"
    motion_file(good, ["root_x", "root_z", "root_pitch", *body.joint_names])
    assert main(["muscles", "jump", "--motion", str(good), "--out", str(tmp_path / "sway.txt")]) == 2
    assert not (tmp_path / "sway.txt").exists()
    assert main(["muscles", "jump", "--motion", str(good), "--out", str(tmp_path / "sway.nc"), "--json"]) == 0
    found = load(tmp_path / "sway.nc")
    assert found["muscle_path"].dims == ("time", "muscle", "path_point", "axis")
    assert float(found["sharing_kkt"].max()) < 1e-8


@pytest.mark.parametrize(
    ("text", "rate", "words"),
    [
        ("700.0\n" * 20, "0", "--rate is 0, but must be a number from 1"),
        ("700.0\n" * 20, "nan", "--rate is nan"),
        ("700.0\n" * 20, "20", "one force every 0.05 s is too few"),
        ("661,156\n" * 20, "1000", "commas but no decimal points"),
        ("".join(f"{sample} 700.0\n" for sample in range(20)), None, "if the first column counts samples"),
        ("".join(f"{0.01 * abs(sample - 10)} 700.0\n" for sample in range(20)), None, "does not go on after 0.1 s"),
        ("\udcff" * 20, "1000", "not a text file"),
        ("some words\n", "1000", "no table of numbers"),
    ],
)
def test_bad_force_records_get_their_sentence(tmp_path, capsys, text, rate, words):
    path = tmp_path / "force.txt"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert main(["jump", "--force", str(path), *(() if rate is None else ("--rate", rate))]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_force_records_without_a_jump():
    time = np.arange(2000) / 1000
    with pytest.raises(MotionError, match="no flight"):
        jump_height(time, np.full(2000, 700.0))
    with pytest.raises(MotionError, match="gaps"):
        jump_height(time, np.full(2000, np.nan))
    with pytest.raises(MotionError, match="equal length"):
        jump_height(time, np.zeros(5))
    restless = 700 + 300 * np.sin(20 * time)
    restless[900:1300] = 0
    with pytest.raises(MotionError, match="nobody stands still"):
        jump_height(time, restless)


def test_an_ideal_jump_has_the_same_height_both_ways():
    # 70 kg, at rest for a second, 2000 N until take-off, flight, and a landing as hard.
    rate, mass, gravity = 10000, 70.0, 9.80665
    time = np.arange(0, 3, 1 / rate)
    push = 0.15
    speed = (2000 / mass - gravity) * push
    flight = 2 * speed / gravity
    force = np.full(len(time), mass * gravity)
    force[(time >= 1) & (time < 1 + push)] = 2000
    force[(time >= 1 + push) & (time < 1 + push + flight)] = 0
    found = jump_height(time, force)
    assert found.height_by_impulse == pytest.approx(speed**2 / 2 / gravity, rel=2e-3)
    assert found.height_by_flight == pytest.approx(found.height_by_impulse, abs=2e-3)
