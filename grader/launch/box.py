"""The process inside a container that runs one submission: a warm parent that takes one job, then ends.

    python -u -m grader.launch.box

Runs as root with the rights to change user and to signal, and nothing else; what a learner wrote becomes files, and
then processes, only as another user. Speaks the protocol of `warm`, except that a request is
`{"files": [{"path": …, "text": …}], "spec": {…}}`: the container shares no folder with the machine, so the
submission comes in on our input, before any rank exists.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grader.launch.spec import LaunchSpec
from grader.launch.user import as_user
from grader.launch.warm import WarmParent

DATA, OUT, RECORD, WORK, SCRATCH = "/data", "/out", "/record", "/work", "/jit"
"""Where a box finds the data, and where ranks, supervisor, script and libraries write."""
JUDGE_GID = 19998
"""Group that may read records and traces: the scorer's."""
STORE_UID = 19999
"""User of the rendezvous store, which speaks with learners' code and so must be neither root nor a rank."""
FIRST_RANK_UID = 20000
NUM_RANK_UIDS = 256
"""Ranks of attempts side by side are different users."""
IDLE_S = 3600.0
"""A box that nobody gives a job ends by itself: whoever made it may be gone."""


class Box(WarmParent):
    """Serves one job."""

    def __init__(self) -> None:
        super().__init__(once=True, idle_s=IDLE_S, store_uid=STORE_UID)

    def answer(self, request: dict[str, Any]) -> None:
        """Lay out the submission as the ranks' user and run it."""
        try:
            spec = LaunchSpec.from_json(json.dumps(request["spec"]))
            texts = {str(file["path"]): str(file["text"]) for file in request["files"]}
            as_user(spec.rank_uid, lambda: lay_out(texts, Path(spec.submission_dir)))
        except (KeyError, TypeError, ValueError, OSError) as error:
            self.say({"event": "failed", "reason": f"the job could not be laid out: {error}"})
            return
        self.run(spec)


def lay_out(texts: dict[str, str], folder: Path) -> None:
    """Write a submission's files below an empty folder; names were checked when the submission was read."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def main() -> int:
    """Serve one job; 0 when it is done or none came."""
    try:
        Box().serve()
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
