"""Pages open in a browser that cannot reach anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a file offline; what the page says and asks for is kept in ``page.said`` and ``page.asked``."""
    contexts = []

    def opened(path: Path, *, hash_: str = "t=0", size: tuple[int, int] = (1366, 768)) -> Any:
        context = browser.new_context(offline=True, viewport={"width": size[0], "height": size[1]})
        contexts.append(context)
        page: Any = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(f"{path.as_uri()}#{hash_}")
        page.wait_for_selector("body[data-ready]", timeout=120_000)
        return page

    yield opened
    for context in contexts:
        context.close()
