"""The process inside a container that runs one submission: a fork server that takes one job, then ends.

    python -u -m grader.launch.servers.container_server [--hide-clone3] [--on-network]

Runs as root with the rights to change user and to signal, and nothing else; what a learner wrote becomes files, and
then processes, only as another user. Speaks the protocol of `fork_server`, except that a request is
`{"files": [{"path": …, "text": …}], "data": [{"path": …, "base64": …}], "spec": {…}}`: the submission and the run's own
data come in on our input, before any rank exists. Without `"data"` the data folder is laid out already. With
`"give_back": true` the ranks' folders become ours when all is over, which `{"event": "given_back"}` tells: where they
are folders of the machine, nobody else there could read or remove what another user left.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

from grader.launch.ranks.data_folder import files_below, lay_out_data
from grader.launch.ranks.syscalls import HIDE_CLONE3, hide_clone3
from grader.launch.ranks.user import as_user
from grader.launch.servers.fork_server import ForkServer
from grader.launch.spec import LaunchSpec
from grader.launch.system.network import LOOPBACK, meeting_place

DATA, OUT, RECORD, WORK, SCRATCH = "/data", "/out", "/record", "/work", "/jit"
"""Where the run finds its data, and where ranks, supervisor, script and libraries write."""
PREPARED = "/prepared"
"""Data that all runs share, read-only: what lies in `DATA` and is not the run's own is a link to here."""
JUDGE_GID = 19998
"""Group that may read records and traces: the scorer's."""
STORE_UID = 19999
"""User of the rendezvous store, which speaks with learners' code and so must be neither root nor a rank."""
FIRST_RANK_UID = 20000
NUM_RANK_UIDS = 256
"""Ranks of attempts side by side are different users."""
ON_NETWORK = "--on-network"
"""Argument of a container that is one of several nodes: its ranks meet the others on the network it was given."""
IDLE_S = 3600.0
"""One that nobody gives a job ends by itself: whoever made it may be gone."""


class ContainerServer(ForkServer):
    """Serves one job."""

    def __init__(self) -> None:
        # Only root can make the store another user's.
        store_uid = 0 if os.getuid() else STORE_UID
        place = meeting_place() if ON_NETWORK in sys.argv[1:] else LOOPBACK
        super().__init__(once=True, idle_s=IDLE_S, store_uid=store_uid, place=place)

    def answer(self, request: dict[str, Any]) -> None:
        """Lay out the submission as the ranks' user and run it."""
        try:
            spec = LaunchSpec.from_json(json.dumps(request.pop("spec")))
            texts = {str(file["path"]): str(file["text"]) for file in request["files"]}
            as_user(spec.rank_uid, lambda: lay_out(texts, Path(spec.submission_dir)))
            if "data" in request:
                own = {str(file["path"]): base64.b64decode(file["base64"]) for file in request["data"]}
                lay_out_data(Path(spec.data_dir), files_below(Path(PREPARED)), PREPARED, own)
        except (KeyError, TypeError, ValueError, OSError) as error:
            self.report({"event": "failed", "reason": f"the job could not be laid out: {error}"})
            return
        self.run(spec)
        if request.get("give_back"):
            for folder in (spec.output_dir, spec.submission_dir, spec.scratch_dir):
                take_over(folder)
            self.report({"event": "given_back"})


def take_over(root: str) -> None:
    """Make everything below a folder ours, and its folders open to us; every process of another user is dead."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        # What cannot be had, such as a name that is too long, stays what it is: it is refused when it is collected.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    os.chown(entry.path, os.getuid(), os.getgid(), follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        os.chmod(entry.path, stat.S_IRWXU)
                        waiting.append(entry.path)


def lay_out(texts: dict[str, str], folder: Path) -> None:
    """Write a submission's files below an empty folder; names were checked when the submission was read."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def main() -> int:
    """Serve one job; 0 when it is done or none came."""
    if HIDE_CLONE3 in sys.argv[1:]:
        hide_clone3()
    try:
        ContainerServer().serve()
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
