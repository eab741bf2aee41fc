"""The documentation's Python runs as it stands."""

import re
from pathlib import Path

import pytest


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).resolve().parents[2].joinpath("docs", "ship.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    found: dict[str, object] = {}
    exec(code, found)
    assert found["felt"].specific_force.shape == (600, 3)
    rate = float(capsys.readouterr().out.split()[0])
    low, high = found["answer"]["counted"].interval
    assert low <= rate <= high
