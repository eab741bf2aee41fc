"""Every error posture raises on purpose, and the one way names are looked up.

A message is one sentence: what is wrong, where, what is allowed, how to fix it.
The command line prints it after ``posture:`` and leaves with the error's ``exit_code``.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any


class PostureError(Exception):
    """Base of all errors of this package."""

    exit_code = 2


class BodyError(PostureError):
    """A URDF, its sidecar, or a request about a body is wrong."""


class DeckError(PostureError):
    """A deck motion cannot be built or does not cover the asked time."""


class MotionError(PostureError):
    """A recording (markers, plates, coordinates), its marker set or its settings are wrong."""


class ScenarioError(PostureError):
    """A scenario file or a run's settings are wrong."""


class ResultError(PostureError):
    """A result file cannot be read, or is not what its checksums say."""


class RecordingError(PostureError):
    """A recording of a standing person cannot be read, or does not allow what is asked of it."""


class SimulationStopped(PostureError):
    """The run ended early; ``partial`` holds what was computed up to then (an ``xarray.Dataset``)."""

    exit_code = 3

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class GaveUp(SimulationStopped):
    """The controller itself found no torque to go on with, such as none within its constraints."""


class Interrupted(SimulationStopped):
    """Ctrl-C during a run; what was computed is kept as for any early end."""

    exit_code = 130


def find_name(name: str, valid: Iterable[str], *, what: str, where: str, error: type[PostureError] = BodyError) -> str:
    """Return ``name`` if it is one of ``valid``; otherwise say which valid names come nearest."""
    names = list(valid)
    if name in names:
        return name
    close = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4)
    if close:
        hint = "did you mean " + " or ".join(repr(other) for other in close) + "?"
    elif names:
        hint = "known: " + ", ".join(names[:12]) + ("…" if len(names) > 12 else "")
    else:
        hint = "it has none"
    raise error(f"{where}: no {what} is called {name!r}; {hint}")


def check_number(
    value: object,
    *,
    what: str,
    unit: str,
    low: float,
    high: float,
    error: type[PostureError],
    hint: str = "",
) -> float:
    """Return ``value`` as a float inside [low, high]; refuse text, NaN, infinities and anything outside."""
    # Plain floats first: asking an abstract class is slow, and ensembles check a million numbers.
    is_number = type(value) is float or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    try:
        number = float(value) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not (math.isfinite(number) and low <= number <= high):
        shown = f"{number:g}" if is_number else repr(value)
        message = f"{what} is {shown}, but must be a number from {low:g} to {high:g} {unit}".rstrip()
        raise error(f"{message}{'; ' + hint if hint else ''}")
    return number
