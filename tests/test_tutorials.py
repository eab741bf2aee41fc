"""The tutorials run as they are, in an empty folder."""

import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "sway" in done.stdout


def test_both_promised_tutorials_are_there():
    assert {path.stem for path in TUTORIALS} >= {"your_controller", "your_urdf"}
