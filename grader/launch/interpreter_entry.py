"""What `interpreter` starts: imports what scripts need, waits to be told which rank it is, and becomes it.

Run as `python -u interpreter_entry.py <descriptor of a socket>`, never imported to be used.
"""

from __future__ import annotations

import array
import json
import resource
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

_NUM_ENDS = 5
SECRET_BYTES = 16
"""The secret comes first and by itself, in memory that is wiped: no text that the script could search ever holds it."""


def main() -> NoReturn:
    """Get ready, say so, become the rank; ends where nobody is there to say what to become."""
    # As a script this file's own folder comes first; the package does instead, until the rank has its own path.
    sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)
    from grader.launch.rank import RankEnds, become_rank
    from grader.launch.spec import LaunchSpec
    from grader.launch.warm_imports import import_everything

    import_everything()
    used = resource.getrusage(resource.RUSAGE_SELF)
    with socket.socket(fileno=int(sys.argv[1])) as call:
        call.sendall(json.dumps({"user_s": used.ru_utime, "system_s": used.ru_stime}).encode())
        secret, ends = _receive_secret(call)
        request = _receive(call)
    spec = replace(LaunchSpec.from_json(json.dumps(request.pop("spec"))), secret=secret)
    del secret
    rank, environment = request["rank"], request["environment"]
    origin, parent = request["origin"], request["parent"]
    become_rank(spec, rank, RankEnds(*ends), environment, origin, parent)


def _receive_secret(call: socket.socket) -> tuple[int, list[int]]:
    """The secret, and the rank's descriptors that come with it."""
    buffer, ends = bytearray(SECRET_BYTES), array.array("i")
    num, rights, _flags, _address = call.recvmsg_into(
        [buffer], socket.CMSG_SPACE(_NUM_ENDS * ends.itemsize), socket.MSG_WAITALL
    )
    if num < SECRET_BYTES:
        sys.exit("nobody is there to say which rank to become")
    for _level, _kind, data in rights:
        ends.frombytes(data)
    secret = int.from_bytes(buffer, "big")
    buffer[:] = bytes(SECRET_BYTES)
    return secret, list(ends)


def _receive(call: socket.socket) -> dict[str, Any]:
    text = b""
    while not text.endswith(b"\n"):
        more = call.recv(1 << 16)
        if not more:
            sys.exit("nobody is there to say which rank to become")
        text += more
    request: dict[str, Any] = json.loads(text)
    return request


if __name__ == "__main__":
    main()
