"""A small proxy that can slow down, stop passing anything on (half open), or hang up, and let go again."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from pathlib import Path


class Proxy:
    """Passes connections on. Use as a context manager.

    Attributes:
        delay_s: before each piece that is passed on.
        silent: takes what comes, answers nothing, closes nothing: as a switch that lost its power.
        away: hangs up on everybody, at once.
    """

    def __init__(self, target: int | Path, listen: Path | None = None) -> None:
        """`target`: a port of this machine, or a socket's path; `listen`: a path, None for a free port."""
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0)) if listen is None else _at(listen)
        self.port = int(self._listener.getsockname()[1]) if listen is None else 0
        self.delay_s = 0.0
        self.silent = False
        self.away = False
        self._other: dict[socket.socket, socket.socket] = {}
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over = True
        self._thread.join(5)
        self._listener.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._over:
                for key, _events in selector.select(0.1):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    elif isinstance(key.fileobj, socket.socket) and not self.silent:
                        self._pass_on(selector, key.fileobj)
                if self.away:
                    for one in list(self._other):
                        self._hang_up(selector, one)
                if self.silent:
                    time.sleep(0.05)
            for one in list(self._other):
                self._hang_up(selector, one)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _address = self._listener.accept()
        server: socket.socket | None = None
        if not self.away:
            with contextlib.suppress(OSError):
                server = _connect(self._target)
        if server is None:
            client.close()
            return
        for one, another in ((client, server), (server, client)):
            self._other[one] = another
            selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        target = self._other.get(source)
        if target is None:
            return
        time.sleep(self.delay_s)
        data = b""
        with contextlib.suppress(OSError):
            data = source.recv(1 << 16)
        with contextlib.suppress(OSError):
            target.sendall(data)
        if not data:
            self._hang_up(selector, source)

    def _hang_up(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        target = self._other.pop(source, None)
        for one in (source, target):
            if one is None:
                continue
            self._other.pop(one, None)
            with contextlib.suppress(KeyError, ValueError):
                selector.unregister(one)
            one.close()


def _at(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(64)
    return listener


def _connect(target: int | Path) -> socket.socket:
    if isinstance(target, int):
        return socket.create_connection(("127.0.0.1", target), 1)
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(target))
    return made
