"""A mechanism in a browser: a page from a local server, which can be updated while a simulation runs.

The server accepts connections from this computer only. New samples are server-sent events in the format of the page.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import FileError, InputError
from cardan.model.model import Model
from cardan.model.values import number
from cardan.results.page.packing import packed
from cardan.results.page.page import html
from cardan.results.page.samples import CURVES, sampled
from cardan.results.simulate import simulate
from cardan.results.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

HOST = "127.0.0.1"
PIECE = 0.1  # s of simulated time between two messages to the page
RATE = 50  # samples per second of simulated time


def view(
    thing: Model | Trajectory, *names: str, q: ArrayLike | None = None, port: int = 0, open_browser: bool = True,
    live: bool = False,
) -> Viewer:  # fmt: skip
    """Show a model or a run in a browser, from a server on this computer; close the returned viewer when done.

    Args:
        thing: a model, or a run of one system.
        names: quantities to plot below the scene, as for `page`.
        q: configuration (nq,) of a model, rad and m; by default its start.
        port: of the server; by default any free port.
        open_browser: whether to open the page; its address is `viewer.url`.
        live: whether samples will be added, with `viewer.simulate(...)` or `viewer.add(run)`; a model only.

    """
    viewer = Viewer(thing, names, q=q, port=port, live=live)
    if open_browser:
        webbrowser.open(viewer.url)
    return viewer


class Viewer(AbstractContextManager["Viewer"]):
    """A page on a local server. Use it in a `with` block, or call `close`."""

    def __init__(
        self, thing: Model | Trajectory, names: Sequence[str] = (), *, q: Any = None, port: int = 0, live: bool = False
    ) -> None:
        if live and not isinstance(thing, Model):
            raise InputError(
                "view: a live page starts from a model; give the model here, and the run to viewer.add(...)"
            )
        self._names = tuple(names)
        self._live = live
        self._sent: list[bytes] = []
        self._listeners: list[queue.Queue[bytes]] = []
        self._lock = threading.Lock()
        self._page = html(thing, self._names, q=q, live=live, simulate=not live).encode()
        self._model = thing if isinstance(thing, Model) else thing.model
        try:
            self._server = _Server((HOST, port), _handler(self))
        except (OSError, OverflowError, TypeError) as error:
            raise FileError(f"view: port {port} cannot be used, {error}; give another, or 0 for any free one") from None
        self.url = f"http://{HOST}:{self._server.server_port}/"
        """Address of the page."""
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def add(self, run: Trajectory) -> None:
        """Append the samples of a run that continues the last one to a live page."""
        if not self._live:
            raise InputError("view: samples can be added only to a live page; open it with live=True")
        if not isinstance(run, Trajectory) or run.batch or run.model.key != self._model.key:
            raise InputError(f"view: the run must be of one system of model {self._model.name!r}, got {run!r}")
        samples = sampled(run, names=self._names or CURVES, offered=False)
        self._send(f"data: {json.dumps(packed(samples.arrays(0)))}\n\n".encode())

    def simulate(
        self, duration: float, q0: Any = None, v0: Any = None, *, start: float = 0.0, pace: float | None = 1.0,
        **how: Any,
    ) -> Trajectory:  # fmt: skip
        """Simulate the model while the page shows it, and return the run.

        Args:
            duration: s.
            q0: configuration (nq,), rad and m; by default the model's start, assembled.
            v0: velocities (nv,), rad/s and m/s.
            start: time at the start, s.
            pace: simulated seconds per second, or None for as fast as possible.
            how: other arguments of `cd.simulate`: method, formulation, rtol, ...

        """
        duration = number("simulate", "duration", duration, "of seconds", above=0)
        start = number("simulate", "start", start, "of seconds")
        if pace is not None:
            number("view", "pace", pace, above=0)
        if any(x is not None and np.ndim(x) > 1 for x in (q0, v0)):
            raise InputError("view: a live page shows one system; give q0 and v0 of one system, not of a batch")
        count = max(int(np.ceil(duration / PIECE)), 1)
        ends = start + duration * np.arange(1, count + 1) / count
        began, parts, t = time.monotonic(), [], start
        for end in ends:
            samples = max(int(np.ceil((end - t) * RATE)), 1) + 1
            run = simulate(self._model, end - t, q0, v0, start=t, samples=samples, progress=False, **how)
            parts.append(run)
            self.add(run)
            q0, v0, t = run.q[-1], run.v[-1], float(run.time[-1])
            if str(run.outcome):  # stopped by an event
                break
            if pace is not None:
                time.sleep(max((t - start) / pace - (time.monotonic() - began), 0.0))
        time_, q, v = (
            np.concatenate([getattr(run, name)[min(k, 1) :] for k, run in enumerate(parts)])  # without duplicate times
            for name in ("time", "q", "v")
        )
        last = parts[-1]
        return Trajectory(
            self._model, time_, q, v, tau=last.tau, method=last.method, formulation=last.formulation,
            settings=last.settings, events=[event for run in parts for event in run.events], outcome=last.outcome,
        )  # fmt: skip

    def finish(self) -> None:
        """Tell a live page that no more samples come."""
        if self._live:
            self._live = False
            self._send(b"event: end\ndata: {}\n\n")

    def wait(self) -> None:
        """Serve until interrupted by Ctrl-C."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the server."""
        self._send(b"")
        self._server.shutdown()
        self._server.server_close()

    def __exit__(self, *error: object) -> None:
        """Stop the server."""
        self.close()

    def _send(self, message: bytes) -> None:
        """Send a message to all open pages and keep it for later ones; an empty message ends the connection."""
        with self._lock:
            self._sent += [message] if message else []
            for listener in self._listeners:
                listener.put(message)

    def _listen(self) -> queue.Queue[bytes]:
        """A queue with all messages sent so far."""
        listener: queue.Queue[bytes] = queue.Queue()
        with self._lock:
            for message in self._sent:
                listener.put(message)
            self._listeners.append(listener)
        return listener


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False


def _handler(viewer: Viewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Serves the page and the stream of samples."""

        def do_GET(self) -> None:
            """Answer a request; one for another host name comes from a web page that resolves to this computer."""
            if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
                self.send_error(403)
            elif self.path == "/":
                self._begin("text/html; charset=utf-8", {"Content-Length": str(len(viewer._page))})
                self.wfile.write(viewer._page)
            elif self.path == "/stream":
                self._begin("text/event-stream", {})
                with suppress(OSError):  # the page was closed
                    for message in iter(viewer._listen().get, b""):
                        self.wfile.write(message)
                        self.wfile.flush()
            elif self.path == "/favicon.ico":
                self.send_response(204)
                self.end_headers()
            else:
                self.send_error(404)

        def _begin(self, kind: str, more: dict[str, str]) -> None:
            self.send_response(200)
            for name, value in {"Content-Type": kind, "Cache-Control": "no-store", **more}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler
