"""What only the grader's side knows of a run, written into the supervisor's record: one way for all runtimes.

Never judges, and changes nothing that the supervisor saw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from grader.launch.record import write_json
from grader.model.run import WrittenFile
from grader.run.runtime import Runtime
from grader.run.workspace import Workspace


def complete_record(
    runtime: Runtime,
    workspace: Workspace,
    outputs: Iterable[WrittenFile],
    phases_s: Mapping[str, float],
    environment: Mapping[str, Any],
    devices: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Fill in the record of a run.

    Args:
        runtime: where it ran.
        workspace: of the run; its record is rewritten, whole or not at all.
        outputs: files that were brought back; mtime_s is Unix time here.
        phases_s: seconds of the phases around the run; environment: facts to add.
        devices: what was told of the run's GPUs.
    """
    record = json.loads(workspace.record.read_text(encoding="utf-8"))
    origin = record["environment"].get("started_unix_s", 0.0)
    timed = [asdict(replace(file, mtime_s=round(file.mtime_s - origin, 3))) for file in outputs]
    record |= {"runtime": runtime.name, "isolated": runtime.isolates, "outputs": timed}
    record["devices"] = list(devices)
    record["phases_s"] |= {name: round(seconds, 4) for name, seconds in phases_s.items()}
    record["environment"] |= environment
    write_json(workspace.record, record)


def note_disturbed(workspace: Workspace) -> None:
    """Write into the record of a run that others left its ranks too little of the machine."""
    record = json.loads(workspace.record.read_text(encoding="utf-8"))
    write_json(workspace.record, record | {"disturbed": True})
