"""What a run left, as the second container hands it out: frames of its stream become files of the workspace.

The worker stores bytes and never unpacks any: names are checked, sizes are capped, nothing is opened but what is made
here.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import PurePosixPath
from typing import Any

from grader.errors import InfraError
from grader.model.run import WrittenFile
from grader.run.container_connection import ContainerConnection
from grader.run.runtime import Job
from grader.run.workspace import Workspace

FILES_S = 60.0
"""Time that all files may take to come."""
_LARGEST_RECORD_BYTES = 1 << 30


def fetch_files(
    scorer: ContainerConnection, output_bytes: int, workspace: Workspace, nnodes: int = 1
) -> tuple[list[WrittenFile], list[list[str]]]:
    """Take what the second container hands out; mtime_s of the files is Unix time here.

    Raises:
        InfraError: it stopped, or sent what it must not.
    """
    scorer.send({"op": "files", "output_bytes": output_bytes})
    deadline = time.monotonic() + FILES_S
    outputs: list[WrittenFile] = []
    left = {"record": _LARGEST_RECORD_BYTES, "output": output_bytes}
    while (event := scorer.event(deadline)) is not None:
        if "files" in event:
            return outputs, [[str(name), str(why)] for name, why in event["refused"]]
        if "file" not in event:
            raise InfraError(f"The files of the run could not be brought back.{scorer.last_words()}")
        folder, size = str(event["folder"]), int(event["bytes"])
        left[folder] -= size
        if size < 0 or left[folder] < 0:
            raise InfraError("More came back of the run than may be kept.")
        name = PurePosixPath(str(event["file"]))
        if name.is_absolute() or ".." in name.parts:
            raise InfraError(f"A file came back under a name that leads out of its folder: {name}.")
        if folder == "output":
            path = workspace.outputs / name
            outputs.append(WrittenFile(str(name), size, float(event["mtime_unix_s"])))
        else:
            path = workspace.root.joinpath(*_of_node(name, nnodes).parts[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(scorer.take(size, deadline))
    raise InfraError(f"The files of the run did not come back in time.{scorer.last_words()}")


def _of_node(name: PurePosixPath, nnodes: int) -> PurePosixPath:
    """Where a file of `<node>/…` belongs: what is not a single rank's is told apart by its node."""
    if nnodes == 1 or name.name.startswith("rank"):
        return name
    return name.with_name(f"{name.stem}.node{name.parts[0]}{name.suffix}")


def out_of_memory(job: Job, nodes: tuple[int, ...]) -> tuple[str, str]:
    """Ending and reason where the kernel ended a supervisor with its ranks; `nodes`: where."""
    where = "the container" if job.nnodes == 1 else f"node {', '.join(map(str, nodes))}"
    return "out_of_memory", f"The kernel ended all processes of {where}: there was no memory left."


def timed_out(job: Job) -> tuple[str, str]:
    """Ending and reason where a run had to be ended from outside."""
    limit = f"The run reached its limit of {job.limits.wall_s:g} s"
    return "timed_out", f"{limit}, and kept its container so busy that nothing more of it could be told."


def write_lost_record(workspace: Workspace, job: Job, ending: tuple[str, str]) -> None:
    """What is known of a run of which no supervisor could tell any more: how it ended, and why."""
    world = job.nproc_per_node * job.nnodes
    rank: dict[str, Any] = dict.fromkeys(
        ("started_s", "ended_s", "cpu_user_s", "cpu_system_s"), 0.0
    ) | dict.fromkeys(
        ("peak_rss_bytes", "stdout_bytes", "stderr_bytes", "stdout_lines", "trace_bytes", "leftovers"), 0
    )
    ended_by_us = ending[0] == "timed_out"
    rank |= {"exit_code": None if ended_by_us else -9, "killed_by_judge": ended_by_us}
    rank |= {"output_cut": False, "trace_cut": False}
    rank |= {"waiting": None, "failure": None}
    record = {
        "runtime": "",
        "launcher": job.launcher,
        "isolated": True,
        "world_size": world,
        "ending": ending[0],
        "ending_reason": ending[1],
        "wall_s": job.limits.wall_s if ended_by_us else 0.0,
        "deadline_s": job.limits.wall_s,
        "ranks": [rank | {"rank": number, "node": number // job.nproc_per_node} for number in range(world)],
        "outputs": [],
        "phases_s": {},
        "environment": {"num_cores": len(os.sched_getaffinity(0))},
        "loopback_bytes": None,
    }
    workspace.record.write_text(json.dumps(record), encoding="utf-8")
