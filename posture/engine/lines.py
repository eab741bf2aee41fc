"""Elements (ligaments, muscles, rods, cables) of a program: how they are fastened, and their numbers.

The numbers of a line (where it is fastened, its law) are given with each run, so persons of one build share formulas
(see pulling.py). NumPy only, so that a cached library starts at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posture.body import Body
from posture.elements import LIMITS, Cable, Line, Muscle, Rod
from posture.engine.skeleton import Skeleton

Array = NDArray[np.floating]


def law_of(line: Line) -> dict[str, float]:
    """Numbers of a line's law by name; a cable's restitution matters to events only."""
    found = {key: float(getattr(line, key)) for key in LIMITS if hasattr(line, key) and key != "restitution"}
    for index, (time, value) in enumerate(line.activation if isinstance(line, Muscle) else ()):
        found |= {f"activation_{index}_time": time, f"activation_{index}": value}
    return found


def with_law(line: Line, symbols: dict[str, Any]) -> Line:
    """The same line with symbols for the numbers of ``law_of``."""
    plain = {key: value for key, value in symbols.items() if not key.startswith("activation")}
    if isinstance(line, Muscle):
        pairs = range(len(line.activation))
        plain["activation"] = tuple((symbols[f"activation_{i}_time"], symbols[f"activation_{i}"]) for i in pairs)
    return replace(line, **plain)


class Fastened:
    """The lines of a program: their names, structure and numbers."""

    def __init__(self, body: Body, skeleton: Skeleton, lines: Sequence[Line]) -> None:
        self.lines = tuple(lines)
        self.nodes = [tuple(node for node, _ in _ends(body, skeleton, line)) for line in lines]
        self.cables = [line.name for line in lines if isinstance(line, Cable)]
        self.constrained = any(isinstance(line, Rod | Cable) for line in lines)

    @property
    def structure(self) -> str:
        """Text that decides the formulas of the lines."""
        laws = [(type(line).__name__, tuple(law_of(line)), getattr(line, "slack", None)) for line in self.lines]
        return repr((laws, self.nodes))

    @property
    def number_names(self) -> list[str]:
        """Such as ``harness.a_x`` and ``harness.stiffness``, then ``harness.taut`` of cables."""
        ends = [f"{end}_{axis}" for end in "ab" for axis in "xyz"]
        own = [f"{line.name}.{key}" for line in self.lines for key in (*ends, *law_of(line))]
        return own + [f"{name}.taut" for name in self.cables]

    def numbers(self, body: Body, skeleton: Skeleton, lines: Sequence[Line]) -> Array:
        """The numbers of one run, in the order of ``number_names``; all cables slack."""
        parts = []
        for line in lines:
            parts += [point for _, point in _ends(body, skeleton, line)]
            parts.append(np.array(list(law_of(line).values())))
        return np.concatenate([*parts, np.zeros(len(self.cables))])


def carriers(body: Body, lines: Sequence[Line]) -> set[str]:
    """Joints whose links carry an end of a line."""
    frames = [body.model.frames[body.link_frame(link)] for line in lines for link in (line.link_a, line.link_b)]
    return {str(body.model.names[frame.parentJoint]) for frame in frames}


def _ends(body: Body, skeleton: Skeleton, line: Line) -> list[tuple[int, Array]]:
    found = []
    for link, point in ((line.link_a, line.point_a), (line.link_b, line.point_b)):
        frame = body.model.frames[body.link_frame(link)]
        found.append(skeleton.fasten(frame.parentJoint, frame.placement.act(np.array(point, float))))
    return found
