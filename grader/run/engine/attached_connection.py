"""A container's standard streams as the engine attaches them: its framing of chunks (type, length, payload)."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct

from docker.models.containers import Container

from grader.run import container_connection

_HEADER = struct.Struct(">BxxxL")
_STDERR = 2
_CHUNK_BYTES = 1 << 18


class AttachedConnection(container_connection.ContainerConnection):
    """Attached to a container that has not been started yet, so that no word of it is missed."""

    def __init__(self, container: Container) -> None:
        super().__init__(str(container.name))
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        # Kept: the response object would close the socket when it is collected.
        self._attached = container.attach_socket(params=params)
        self._socket: socket.socket = getattr(self._attached, "_sock")  # noqa: B009  the reader hides it
        self._socket.settimeout(None)
        self._framed = bytearray()

    def fileno(self) -> int:
        """What becomes readable when it says something."""
        return self._socket.fileno()

    def close(self) -> None:
        """Let go; the container lives on."""
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(OSError, AttributeError):
            self._attached.close()

    def _write(self, data: bytes, limit_s: float) -> None:
        self._socket.settimeout(limit_s)
        try:
            self._socket.sendall(data)
        finally:
            self._socket.settimeout(None)

    def _read(self, left_s: float) -> bool:
        readable, _, _ = select.select([self._socket], [], [], left_s)
        if not readable:
            return False
        try:
            chunk = os.read(self._socket.fileno(), _CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            raise EOFError
        self._framed += chunk
        while len(self._framed) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._framed)
            if len(self._framed) < _HEADER.size + length:
                break
            payload = self._framed[_HEADER.size : _HEADER.size + length]
            del self._framed[: _HEADER.size + length]
            if kind == _STDERR:
                self._take_errors(payload)
            else:
                self._take_output(payload)
        return True
