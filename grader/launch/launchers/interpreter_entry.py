"""What `interpreter` starts: imports what scripts need, waits to be told which rank it is, and becomes it.

Run as `python -u interpreter_entry.py <descriptor of a socket>`, never imported to be used.
"""

from __future__ import annotations

import json
import resource
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn


def main() -> NoReturn:
    """Get ready, say so, become the rank; ends where nobody is there to say what to become."""
    # As a script this file's own folder comes first; the package does instead, until the rank has its own path.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    from grader.launch.ranks.rank import NUM_ENDS, RankEnds, become_rank
    from grader.launch.ranks.seal_key import SealKey
    from grader.launch.servers.warm_imports import import_everything
    from grader.launch.spec import LaunchSpec

    import_everything()
    used = resource.getrusage(resource.RUSAGE_SELF)
    with socket.socket(fileno=int(sys.argv[1])) as call:
        call.sendall(json.dumps({"user_s": used.ru_utime, "system_s": used.ru_stime}).encode())
        try:
            key, ends = SealKey.receive(call, NUM_ENDS)
        except EOFError as error:
            sys.exit(str(error))
        request = _receive(call)
    spec = LaunchSpec.from_json(json.dumps(request.pop("spec")))
    rank, environment = request["rank"], request["environment"]
    origin, parent = request["origin"], request["parent"]
    become_rank(spec, rank, RankEnds(*ends), environment, origin, parent, key)


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
