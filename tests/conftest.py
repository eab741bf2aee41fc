"""What several test files need."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Software rendering, and no calls home of the browser itself.
BROWSER_OPTIONS = [
    "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-quic",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser without a screen."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs chromium on the PATH to open a page")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=BROWSER_OPTIONS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """Rows of a system's reproduce(), which takes long: run once, whichever of the parallel workers asks first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # the workers' own folders lie in one of this session

    def rows(system: str) -> list[dict[str, Any]]:
        kept = folder / f"reproduced_{system}.json"
        with (folder / f"reproduced_{system}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.write_text(json.dumps(import_module(f"posture.systems.{system}").reproduce()))
        return json.loads(kept.read_text())

    return rows
