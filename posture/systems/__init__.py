"""The published systems, one file per paper; each has ``reproduce()`` with the paper's numbers beside ours."""

from __future__ import annotations

import math
import pkgutil
from typing import Any


def system_names() -> list[str]:
    """Stems of the files of this folder, which are also the names of their bodies."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def comparison(
    quantity: str, paper: float | None, ours: float, tolerance: float | None, *, distance: bool = False
) -> dict[str, Any]:
    """One line of the comparison: passes when ours <= tolerance, or |ours - paper| <= tolerance for a ``distance``."""
    value, paper = float(ours), None if paper is None else float(paper)
    error = abs(value - paper) if distance and paper is not None else value
    return {
        "quantity": quantity,
        "paper": paper,
        "ours": value,
        "tolerance": tolerance,
        "pass": math.isfinite(value) and (tolerance is None or bool(error <= tolerance)),
    }
