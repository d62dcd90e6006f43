"""What changed between the files of two submissions: which were added, removed or renamed, and each one's diff.

How lines end does not count: who uploads a file once and pastes it the next time has changed nothing. Opens no file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from grader.model.finding import Location
from grader.model.submission import Submission
from grader.report.changes.text_diff import MOST_MATCHED, DiffHunk, TextDiff

MOST_LINES = 400
"""Lines of all diffs of two submissions together; what is beyond them is counted."""
_ALIKE = 0.5

Place = tuple[str, int, int]
"""What a place in one submission has in common with what it became in the other, and with nothing else."""


class FileChangeKind(StrEnum):
    """What became of a file."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that is not as it was.

    Attributes:
        path: in the new submission, or in the old one where it was removed; old_path: in the old one, "" where added.
        hunks: empty where it was only renamed.
        num_added, num_removed: lines.
        num_left_out: lines of the diff that are not in `hunks`, as it is long.
    """

    kind: FileChangeKind
    path: str
    old_path: str
    hunks: tuple[DiffHunk, ...]
    num_added: int
    num_removed: int
    num_left_out: int = 0

    @property
    def unified(self) -> str:
        """The diff as text; "" where no line changed."""
        if not self.hunks:
            return ""
        old = f"a/{self.old_path}" if self.old_path else "/dev/null"
        new = "/dev/null" if self.kind is FileChangeKind.REMOVED else f"b/{self.path}"
        lines = [f"--- {old}", f"+++ {new}"]
        for hunk in self.hunks:
            lines += [hunk.header, *(f"{line.sign}{line.text}" for line in hunk.lines)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """Two submissions compared, line by line."""

    pairs: tuple[FilePair, ...]

    @classmethod
    def between(cls, old: Submission, new: Submission) -> SourceChanges:
        """Compare; a file that is gone and one that is new are the same file where most lines are."""
        old_path_of = _renamed(old, new)
        before = {file.path for file in old.files} - set(old_path_of.values())
        pairs, left = [], MOST_MATCHED
        for path in sorted(before | {file.path for file in new.files}):
            old_path = old_path_of.get(path, path)
            diff = TextDiff.between(old.lines(old_path), new.lines(path), left)
            # One limit for all files together: there may be many.
            left -= diff.num_matched
            pairs.append(
                FilePair(
                    old_path if old.text(old_path) is not None else "",
                    path if new.text(path) is not None else "",
                    diff,
                )
            )
        return cls(tuple(pairs))

    def files(self, most_lines: int = MOST_LINES) -> tuple[FileChange, ...]:
        """Every file that changed, by path, with `most_lines` lines of their diffs in all."""
        found = []
        for pair in self.pairs:
            if (change := pair.change(most_lines)) is not None:
                found.append(change)
                most_lines -= sum(len(hunk.lines) for hunk in change.hunks)
        return tuple(found)

    def place_of_old(self, where: Location) -> Place:
        """The place of a line of the old submission."""
        pair = next((one for one in self.pairs if one.old_path == where.path), None)
        return (where.path, -1, where.line) if pair is None else pair.place(where.line, old=True)

    def place_of_new(self, where: Location) -> Place:
        """The place of a line of the new submission."""
        pair = next((one for one in self.pairs if one.new_path == where.path), None)
        return (where.path, -1, where.line) if pair is None else pair.place(where.line, old=False)


@dataclass(frozen=True, slots=True)
class FilePair:
    """A file as it was and as it is; a path is "" where there is none."""

    old_path: str
    new_path: str
    diff: TextDiff

    @property
    def kind(self) -> FileChangeKind:
        """What became of it, if anything did."""
        if not self.old_path:
            return FileChangeKind.ADDED
        if not self.new_path:
            return FileChangeKind.REMOVED
        return FileChangeKind.CHANGED if self.old_path == self.new_path else FileChangeKind.RENAMED

    def change(self, most_lines: int) -> FileChange | None:
        """What became of it, with the first lines of its diff; None: nothing."""
        if self.kind is FileChangeKind.CHANGED and not self.diff.changed:
            return None
        hunks = self.diff.hunks(most_lines)
        return FileChange(
            self.kind,
            self.new_path or self.old_path,
            self.old_path,
            hunks,
            num_added=self.diff.num_added,
            num_removed=self.diff.num_removed,
            num_left_out=self.diff.num_lines - sum(len(hunk.lines) for hunk in hunks),
        )

    def place(self, line: int, *, old: bool) -> Place:
        """Of a line of the old or the new text."""
        return self.new_path or self.old_path, *self.diff.place(line, old=old)


def _renamed(old: Submission, new: Submission) -> dict[str, str]:
    """New path → old path of files that are gone under the one and new under the other, the most alike first."""
    before, after = {file.path for file in old.files}, {file.path for file in new.files}
    gone = {path: Counter(old.lines(path)[:MOST_MATCHED]) for path in before - after}
    came = {path: Counter(new.lines(path)[:MOST_MATCHED]) for path in after - before}
    alike = sorted(
        (-_likeness(lines, others), path, other)
        for path, lines in gone.items()
        for other, others in came.items()
    )
    found: dict[str, str] = {}
    for unlike, path, other in alike:
        if -unlike >= _ALIKE and other not in found and path not in found.values():
            found[other] = path
    return found


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
