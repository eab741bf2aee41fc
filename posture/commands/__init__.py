"""What the commands share: each module of this package adds its commands to the parser, light until one is run.

A module has ``add(command)``; ``command(name, run, text, example)`` returns the argument parser of a new command,
which already knows ``--json``. Heavy imports belong inside the ``run`` functions, so that --help comes at once.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

Run = Callable[[argparse.Namespace], int]


class AddCommand(Protocol):
    """Makes a command's parser; ``run`` gets the parsed arguments and returns the exit code."""

    def __call__(self, name: str, run: Run, text: str, example: str) -> argparse.ArgumentParser:
        """Add one command with its help text and example."""
        ...


def show(found: Any, chosen: argparse.Namespace, lines: list[str]) -> None:
    """Print a result: JSON when asked for, lines for people otherwise."""
    print(json.dumps(found, indent=2) if chosen.json else "\n".join(lines), flush=True)


def as_lines(found: Mapping[str, Any]) -> list[str]:
    """One line for each thing found that has something to say, for people."""
    return [f"{name.replace('_', ' ')}: {_plain(value)}" for name, value in found.items() if value not in ("", None)]


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {_plain(item)}" for name, item in value.items())
    return ", ".join(_plain(item) for item in value) if isinstance(value, list) else str(value)


@contextmanager
def _patient_interrupts() -> Iterator[Callable[[], None]]:
    """Note Ctrl-C and raise it when asked; a second one is raised at once.

    Python drops a KeyboardInterrupt that comes while a weak reference is being cleared, and a run clears many.
    """
    pressed = False

    def note(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(duration: float, *, unit: str = "s") -> Iterator[Callable[[float], None]]:
    """Tell simulated seconds (or runs) by a bar on a terminal, a line every tenth otherwise; Ctrl-C waits for it."""
    with _patient_interrupts() as check, _told(duration, unit) as tell:

        def advance(seconds: float) -> None:
            tell(seconds)
            check()

        yield advance


@contextmanager
def _told(duration: float, unit: str) -> Iterator[Callable[[float], None]]:
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(
            total=duration, bar_format=f"{{l_bar}}{{bar}}| {{n:.0f}}/{{total:.0f}} {unit} [{{remaining}} left]"
        ) as bar:

            def advance(seconds: float) -> None:
                bar.update(seconds - bar.n)

            yield advance
        return
    told = 0

    def say(seconds: float) -> None:
        nonlocal told
        tenth = int(10 * seconds / duration + 1e-9)
        if tenth > told:
            told = tenth
            print(f"posture: simulated {seconds:.6g} of {duration:.6g} {unit}", file=sys.stderr, flush=True)

    yield say
