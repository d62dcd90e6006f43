"""What an attempt leaves in the file store: its reports, and its evidence as one archive.

Names are a promise to whoever shows them: `report.html` and `grade-learner.json` may be shown to the learner,
everything else is for staff. Large outputs (weights) are named in the record, but left out of the archive.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

from grader.judging.attempt import Attempt
from grader.report.audience import Audience
from grader.report.html.attempt_page import plots_of, to_html
from grader.report.json_report import to_json
from grader.run.workspace import Workspace
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.files import FileTooLargeError

REPORT, REPORT_STAFF = "report.html", "report-staff.html"
GRADE, GRADE_LEARNER = "grade.json", "grade-learner.json"
EVIDENCE = "evidence.tar.gz"
_OUTPUT_BYTES = 1 << 20
"""Outputs larger than this are left out of the archive."""


def store_artifacts(
    keep: Callable[[str, bytes], StoredFile], attempt: Attempt, workspace: Workspace
) -> tuple[StoredFile, ...]:
    """Render everything, and have each file kept under its name.

    Raises:
        InfraError: it cannot be kept.
    """
    plots = plots_of(attempt)
    texts = {
        REPORT: to_html(attempt, plots=plots),
        REPORT_STAFF: to_html(attempt, audience=Audience.STAFF, plots=plots),
        GRADE: to_json(attempt.grade, audience=Audience.STAFF),
        GRADE_LEARNER: to_json(attempt.grade),
    }
    stored = [keep(name, text.encode("utf-8", "replace")) for name, text in texts.items()]
    try:
        stored.append(keep(EVIDENCE, evidence(workspace)))
    except FileTooLargeError:
        stored.append(keep(EVIDENCE, evidence(workspace, most_bytes=_OUTPUT_BYTES)))
    return tuple(stored)


def evidence(workspace: Workspace, most_bytes: int | None = None) -> bytes:
    """The attempt's folder as a compressed archive, `attempt/…`.

    Args:
        workspace: the folder.
        most_bytes: size of the largest file that is taken; None: all but large outputs.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=3) as tar:
        for path in sorted(workspace.root.rglob("*")):
            # Judging wrote all of this itself; a link or a device among it is nothing of ours.
            if path.is_symlink() or not path.is_file():
                continue
            most = most_bytes or (_OUTPUT_BYTES if _is_output(path, workspace) else None)
            if most is None or path.stat().st_size <= most:
                tar.add(path, f"attempt/{path.relative_to(workspace.root)}", recursive=False, filter=_plain)
    return archive.getvalue()


def _is_output(path: Path, workspace: Workspace) -> bool:
    return "outputs" in path.relative_to(workspace.root).parts


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry
