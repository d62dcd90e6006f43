"""One record of a run from those that the supervisors of its nodes wrote, each about its own ranks.

Their times need no change: all count from the instant at which all nodes started (see `node_coordinator`). Decides
nothing but which node's account of the ending is the run's.
"""

from __future__ import annotations

import json
from typing import Any

from grader.run.workspace import Workspace


def merge_records(workspace: Workspace, nnodes: int, decided: tuple[str, str] | None) -> None:
    """Write the run's record beside those of its nodes.

    Args:
        workspace: holds one record per node.
        nnodes: how many there are.
        decided: ending and reason that were decided upon while ranks still ran; None where they ended by themselves.

    Raises:
        OSError, ValueError: a node's record is missing or damaged.
    """
    parts = [json.loads(workspace.node_record(node).read_text(encoding="utf-8")) for node in range(nnodes)]
    ending, reason = decided or _ending(parts)
    ranks = [rank for part in parts for rank in part["ranks"]]
    sent = [part["loopback_bytes"] for part in parts]
    peaks = [part["environment"].get("memory_peak_bytes", 0) for part in parts]
    record = parts[0] | {
        "world_size": sum(part["world_size"] for part in parts),
        "ending": ending,
        "ending_reason": reason,
        "wall_s": round(max(part["wall_s"] for part in parts) - min(rank["started_s"] for rank in ranks), 6),
        "ranks": ranks,
        "environment": parts[0]["environment"] | {"nnodes": nnodes, "memory_peak_bytes": max(peaks)},
        "loopback_bytes": sum(sent) if None not in sent else None,
    }
    workspace.record.write_text(json.dumps(record), encoding="utf-8")


def _ending(parts: list[dict[str, Any]]) -> tuple[str, str]:
    """The account of the node whose rank failed first; its failure ended the others'."""
    failed = [
        (rank["ended_s"], part["ending"], part["ending_reason"])
        for part in parts
        for rank in part["ranks"]
        if part["ending"] != "completed" and rank["exit_code"] != 0 and not rank["killed_by_judge"]
    ]
    if failed:
        return min(failed)[1:]
    num_ranks = sum(part["world_size"] for part in parts)
    for part in parts:
        if part["ending"] != "completed":
            return part["ending"], part["ending_reason"]
    return "completed", f"All {num_ranks} ranks on {len(parts)} nodes ended by themselves with exit code 0."
