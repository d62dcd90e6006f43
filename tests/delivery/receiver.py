"""A real HTTP server that webhooks can be sent to: it keeps what it gets and answers as it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """`status`, `headers`: of its answers; `drip`: the answer comes a byte at a time; `mute`: it never comes."""

    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    drip: bool = False
    mute: bool = False
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?course=1"


@contextmanager
def receiving() -> Iterator[Receiver]:
    """One on a free port of this machine."""
    receiver, over = Receiver(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if receiver.mute:
                over.wait(30)
                return
            if receiver.drip:
                for letter in b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1000:
                    self.wfile.write(bytes([letter]))
                    self.wfile.flush()
                    if over.wait(0.05):
                        return
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                time.sleep(0)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
