"""What changed between two attempts, as the API tells it."""

from __future__ import annotations

from typing import Literal

from grader.report.changes.source_changes import FileChangeKind
from grader.web.documents.document import Document


class FindingChangeOut(Document):
    """A finding that only one of two attempts has; `path` and `line` are in the text that has it.

    `cell`: how the author of a notebook knows that line, "" for scripts.

    `doubt`: why its fault may be there in the other attempt as well, "" where nothing speaks for that.
    """

    code: str
    title: str
    severity: Literal["error", "warning", "hint", "review"]
    path: str | None
    line: int | None
    cell: str
    doubt: str


class FileChangeOut(Document):
    """A file that is not as it was; `old_path` null: there was none.

    `diff` is a unified diff; `num_left_out`: lines that it lacks, as it is long.
    """

    kind: FileChangeKind
    path: str
    old_path: str | None
    num_added: int
    num_removed: int
    num_left_out: int
    diff: str


class ChangesOut(Document):
    """What changed between two attempts of one learner at one task; `since` null: there is none to compare with.

    `outcome` and `outcome_before` say what both count as; `went`, `came`: findings that only the earlier, only the
    later attempt has; `notes`: what else to know before comparing.
    """

    attempt_id: int
    since: int | None
    outcome_before: str | None
    outcome: str | None
    went: list[FindingChangeOut]
    came: list[FindingChangeOut]
    num_stayed: int
    files: list[FileChangeOut]
    notes: list[str]
