"""The page about controllers shows what the command shows, and its files work."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from posture.commands.compare import _deck
from posture.compare import BODIES, CASES, compare, table
from posture.laws import NAMES
from posture.scenario import parse_scenario

FOLDER = Path(__file__).resolve().parents[2] / "docs"
PAGE = (FOLDER / "controllers.md").read_text(encoding="utf-8")
(TABLE,) = re.findall(r"```\n(each case.*?)```", PAGE, re.DOTALL)


def test_the_table_has_every_controller_on_every_body() -> None:
    for body, rows in zip(BODIES, re.split(rf"^(?:{'|'.join(BODIES)})$", TABLE, flags=re.MULTILINE)[1:], strict=True):
        assert re.findall(r"^  (\w+)", rows, re.MULTILINE) == list(NAMES), body
    for name in NAMES:
        assert f"`{name}`" in PAGE.split("## The table")[0]


@pytest.mark.slow
def test_rows_of_the_table_are_what_the_command_gives() -> None:
    """Three laws of one body, all cases: compiled, late, and stopped by what does not fit."""
    names = ["pd", "lqr", "ankle_hip"]
    found = compare(["cip"], names, _deck(SimpleNamespace(sea="SS5", seed=1)), duration=20.0, seed=1, workers=1)
    lines = table(found)
    assert len(lines) == 2 + 1 + len(names) + 1
    assert len(CASES) == 3
    for line in lines:
        assert line in TABLE.splitlines(), line


def test_the_page_s_files_are_read_as_they_stand() -> None:
    scenario, sidecar = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    text = scenario.replace("standing.urdf", "ankle_hip").replace("20.0", "0.1")
    assert next(parse_scenario(text, Path("page.toml")).run().blocks()) is not None
    assert len(tomllib.loads(sidecar)["contact"]["left_foot"]["points"]) == 4


@pytest.mark.parametrize("name", re.findall(r"\]\(((?!http)[^)]+)\)", PAGE))
def test_every_file_the_page_links_to_exists(name: str) -> None:
    assert (FOLDER / name).exists()
