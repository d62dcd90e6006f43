"""A file was read that did not exist yet, or never.

## What happened
`open` or `torch.load` got a path where there is nothing.

## Why
Often one rank writes a file and the others read it: without a barrier between the two, a fast rank reads before the
file is there. Otherwise the path is one of the author's own machine.

## Mend it
Write on rank 0, then `dist.barrier()`, then read. Take folders from `DATA_DIR` and `OUTPUT_DIR`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 40
_WRITES = re.compile(r"write_text|write_bytes|\bopen\(.{0,200}?[\"'][wax]b?[\"']|\bsave\(|\bdump\(")
_WORDS = re.compile(
    r"No such file or directory|does not exist|is not a directory|Parent directory .* does not exist"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a missing file, and of the ranks that could have been too early for it."""
    if run.saying(_WORDS) is None or run.cause is None or run.cause.type == "ProcessRaisedException":
        return None
    some = len(run.alike) < run.evidence.world_size
    script = run.evidence.script
    made = next((c for c in script.called("mkdir", "makedirs") if script.guards.partial(c) is not None), None)
    site = run.cause.site
    writes = site is not None and _WRITES.search(script.line(site.path, site.line)) is not None
    folder = script.at(made) if some and writes and made is not None else ""
    return run.crash(
        title="A file was not there" + (" yet" if some else ""),
        what=f"used a path that does not exist (“{run.words}”)",
        why=(
            "A folder that one rank makes for itself is there for no other rank"
            if folder
            else "A file that one rank writes is there for the others only after a meeting point behind the write, so "
            "a fast rank can come too early"
            if some
            else "Only the folders that `DATA_DIR` and `OUTPUT_DIR` name are there for sure, and `OUTPUT_DIR` is empty "
            "when a run starts"
        ),
        hint=f"Take {script.quote(made)} at {folder} out of the test of the rank: every rank writes into a folder that "
        "it makes itself. Or write there on that rank alone."
        if folder and made is not None
        else (
            "Write on rank 0, call `dist.barrier()` on all ranks, then read; take folders from "
            '`os.environ["DATA_DIR"]` and `os.environ["OUTPUT_DIR"]`, and make subfolders with '
            "`os.makedirs(path, exist_ok=True)`."
        ),
    )
