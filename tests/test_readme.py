"""What the README shows is what a reader gets: its blocks are run as they stand, in the order of the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)


def test_the_commands_and_the_python_of_the_readme_run(tmp_path: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for kind, text in BLOCKS:
        if kind == "toml":
            (tmp_path / "watch.toml").write_text(text, encoding="utf-8")
        elif kind == "python" or (kind == "sh" and "scripts/" not in text):
            command = [sys.executable, "-c", text] if kind == "python" else ["sh", "-ec", text]
            done = subprocess.run(
                command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{text}\n{done.stderr}"
    assert {"watch.nc", "watch.html", "watch.sto", "bjarne.urdf", "other.nc"} <= {p.name for p in tmp_path.iterdir()}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\]\(((?!http)[^)]+)\)", README))))
def test_every_file_the_readme_links_to_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_every_script_and_command_the_readme_names_exists() -> None:
    from posture.cli import _parser

    listed = set(re.findall(r"^\| `posture (\w+)", README, flags=re.MULTILINE))
    known = set(next(action for action in _parser()._actions if action.choices).choices)
    assert listed == known
    for script in set(re.findall(r"scripts/(\w+)", README)):
        assert os.access(ROOT / "scripts" / script, os.X_OK)
