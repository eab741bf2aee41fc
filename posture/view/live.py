"""The page while a run goes on: served on this computer only, to whoever knows the address, until the program ends.

A server of the standard library's own, because meshcat's listens on all interfaces, without a password, and hangs when
it dies. The run hands over blocks and goes on; packing them for the page happens in the server's threads, when asked.
"""

from __future__ import annotations

import base64
import hmac
import html
import os
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import xarray as xr

from posture.results import join
from posture.view import body_of, page_html
from posture.view.payload import payload

KEPT_SECONDS = 120.0  # of the run that the page shows; older blocks are dropped
MAX_FRAMES = 4000
LAST_LOOK = 2.0  # s that the end of a run waits for an open page to fetch it
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
WAITING = "<!DOCTYPE html><meta http-equiv='refresh' content='1'><title>{0}</title><p>{0}: waiting for the first rows."


class LiveView:
    """Shows a run as it grows: ``with LiveView(title=…) as live: live.add(block)``; ``live.url`` is its address."""

    def __init__(self, *, title: str, subtitle: str = "") -> None:
        self.title, self.subtitle = title, subtitle
        self.token = secrets.token_urlsafe(24)
        self._blocks: list[xr.Dataset] = []
        self._lock = threading.Lock()
        self._done, self._looked = False, False
        self._sent_last = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))  # any free port
        self._server.daemon_threads, self._server.block_on_close = True, False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Address of the page, with the token without which it answers 403."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def add(self, block: xr.Dataset) -> None:
        """Take the next rows of the run; returns at once."""
        with self._lock:
            self._blocks.append(block)
            newest = float(block.time[-1])
            while len(self._blocks) > 1 and newest - float(self._blocks[0].time[-1]) > KEPT_SECONDS:
                self._blocks.pop(0)

    def finish(self) -> None:
        """Say that the run is over; an open page gets a moment to fetch the rest."""
        self._done = True
        if self._looked:
            self._sent_last.wait(LAST_LOOK)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def wait(self) -> None:
        """Serve until interrupted, or until the program that started this one has gone."""
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.5)

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What the server's threads ask for.

    def _rows(self) -> xr.Dataset | None:
        with self._lock:
            blocks = list(self._blocks)
        return (join(blocks) if len(blocks) > 1 else blocks[0]) if blocks else None

    def page(self) -> str:
        """The page with what is there so far."""
        rows = self._rows()
        if rows is None:
            return WAITING.format(html.escape(self.title))
        body = body_of(rows)
        packed = base64.b64encode(payload(rows, body, max_frames=MAX_FRAMES)).decode()
        more = f"run?token={self.token}"
        return page_html(rows, body, packed, title=self.title, subtitle=self.subtitle, live=more)

    def run(self) -> tuple[bytes, bool]:
        """What is there so far, packed, and whether that is all."""
        self._looked, done = True, self._done
        rows = self._rows()
        return (payload(rows, body_of(rows), max_frames=MAX_FRAMES) if rows is not None else b""), done

    def told_all(self) -> None:
        """The last rows have reached a page."""
        self._sent_last.set()


def _handler(live: LiveView) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # s for a request that does not come to an end
        server_version, sys_version = "posture", ""

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = parse_qs(parts.query).get("token", [""])[0]
            hosts = (f"127.0.0.1:{live.port}", f"localhost:{live.port}")  # another name would be a page elsewhere
            if not hmac.compare_digest(given.encode(), live.token.encode()) or self.headers.get("Host") not in hosts:
                self._answer(403, b"forbidden\n", "text/plain")
            elif parts.path == "/":
                self._answer(200, live.page().encode(), "text/html; charset=utf-8")
            elif parts.path == "/run":
                content, done = live.run()
                self._answer(200 if content else 204, content, "application/octet-stream", done)
                if done:
                    live.told_all()
            else:
                self._answer(404, b"not found\n", "text/plain")

        def _answer(self, code: int, content: bytes, kind: str, done: bool = False) -> None:
            self.send_response(code)
            for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            if done:
                self.send_header("X-Posture-Done", "1")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the terminal belongs to the run."""

    return Handler
