"""The process inside the second container: hands out what a run left, and scores it. Never runs a learner's code.

    python -u -m grader.evaluate.scorer.container_server [--hide-clone3]

Sees the run's folders read-only, has no network and no rights. Messages as in `scorer`, with two differences: the
task's folder comes with the request, because the container shares none with the machine; and `{"op": "files",
"output_bytes": …}` is answered with `{"file": …, "bytes": n, …}` and n bytes for each file, then `{"files": …}`. What
is scored is the same copy that is handed out, taken once, after every process of the run was dead.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import select
import shutil
import sys
import tarfile
import time
from base64 import b64decode
from pathlib import Path
from typing import IO, Any

from grader.evaluate.scorer.run_scoring import ScoringCache
from grader.evaluate.scorer.scorer_process import answer_request
from grader.launch.ranks.syscalls import HIDE_CLONE3, hide_clone3
from grader.launch.servers.gc_freeze import gc_frozen
from grader.run.output_collection import collect

OUT, RECORDS, VISIBLE, HIDDEN = "/out", "/record", "/visible", "/hidden"
"""Mounted read-only: the ranks' output, the supervisors' records, both sides of the data."""
COPY = "/tmp/outputs"
_TASK = Path("/tmp/task")
_IDLE_S = 3600.0
_RECORD_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20


class ScorerServer:
    """Answers requests until its input ends or nobody asks any more."""

    def __init__(self) -> None:
        # The protocol moves away from 0 and 1: stray prints of libraries must not be taken for answers.
        self._requests = os.dup(0)
        self._replies: IO[bytes] = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
        os.dup2(2, 1)
        self._pending = bytearray()
        self._cache = ScoringCache()

    def serve(self) -> None:
        """Get ready, say so, answer."""
        sys.dont_write_bytecode = True
        # Without hidden data nothing will be scored, only handed out.
        hidden = Path(HIDDEN)
        if hidden.is_dir() and any(hidden.iterdir()):
            with gc_frozen():
                # Imported, not used: thread pools do not survive a fork.
                import torch  # noqa: F401

        self._reply({"event": "ready"})
        parent = os.getppid()
        while (request := self._next_request(parent)) is not None:
            if request.get("op") == "files":
                self._hand_out(int(request["output_bytes"]))
            else:
                evaluate = _unpacked(request.pop("task_files")) / "evaluate.py"
                self._reply(answer_request(request | {"evaluate": str(evaluate)}, self._cache, parent))

    def _hand_out(self, output_bytes: int) -> None:
        """Every record and every acceptable output as frames, then what was refused."""
        copy = Path(COPY)
        shutil.rmtree(copy, ignore_errors=True)
        outputs = collect(Path(OUT), copy, output_bytes)
        records = Path(f"{COPY}-records")
        shutil.rmtree(records, ignore_errors=True)
        kept = collect(Path(RECORDS), records, _RECORD_BYTES)
        for root, collection, folder in ((records, kept, "record"), (copy, outputs, "output")):
            for file in collection.files:
                header = {"file": file.path, "folder": folder, "bytes": file.size_bytes}
                self._reply(header | {"mtime_unix_s": file.mtime_unix_s})
                self._send(root / file.path, file.size_bytes)
        shutil.rmtree(records, ignore_errors=True)
        self._reply({"files": len(outputs.files) + len(kept.files), "refused": outputs.refused})

    def _send(self, path: Path, num_bytes: int) -> None:
        with path.open("rb") as file:
            left = num_bytes
            while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
                self._replies.write(chunk)
                left -= len(chunk)
        self._replies.flush()

    def _next_request(self, parent: int) -> dict[str, Any] | None:
        deadline = time.monotonic() + _IDLE_S
        while b"\n" not in self._pending:
            readable, _, _ = select.select([self._requests], [], [], 1.0)
            if os.getppid() != parent or time.monotonic() > deadline:
                return None
            if readable:
                chunk = os.read(self._requests, _CHUNK_BYTES)
                if not chunk:
                    return None
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        request = json.loads(line)
        return request if isinstance(request, dict) else {}

    def _reply(self, answer: dict[str, Any]) -> None:
        self._replies.write(json.dumps(answer, allow_nan=False).encode() + b"\n")
        self._replies.flush()


def _unpacked(text: str) -> Path:
    """The task's folder as one of this container, unpacked once per content."""
    content = b64decode(text)
    folder = _TASK / hashlib.sha256(content).hexdigest()[:16]
    if not folder.exists():
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(folder)
    return folder


def main() -> int:
    """Serve until nobody asks any more."""
    if HIDE_CLONE3 in sys.argv[1:]:
        hide_clone3()
    try:
        ScorerServer().serve()
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
