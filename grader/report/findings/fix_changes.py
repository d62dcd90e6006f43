"""A fix as a small diff beside its hint: the lines that it changes, each with a line around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from grader.model.finding import Finding
from grader.model.fix import Edit, mended
from grader.model.submission import Submission
from grader.report.changes.text_diff import DiffHunk, LineBlock, TextDiff

_MOST_LINES = 40
_MOST_MATCHED = 200
_CONTEXT = 1


@dataclass(frozen=True, slots=True)
class FixChange:
    """What a fix changes in one file.

    Attributes:
        path: of the file. hunks: its diff.
        num_left_out: lines of the diff that are not in `hunks`, as it is long.
    """

    path: str
    hunks: tuple[DiffHunk, ...]
    num_left_out: int


def fix_changes(finding: Finding, submission: Submission) -> tuple[FixChange, ...]:
    """What a finding's fix changes, by file; empty where it has none, or is for another text."""
    if finding.fix is None:
        return ()
    try:
        after = mended(submission, [finding.fix])
    except ValueError:
        return ()
    found = []
    for path in sorted({edit.path for edit in finding.fix.edits}):
        edits = [edit for edit in finding.fix.edits if edit.path == path]
        old, new = submission.lines(path), after.lines(path)
        diff = TextDiff(old, new, tuple(_joined(_blocks(old, new, edits))), _CONTEXT)
        hunks = diff.hunks(_MOST_LINES)
        found.append(FixChange(path, hunks, diff.num_lines - sum(len(hunk.lines) for hunk in hunks)))
    return tuple(found)


def _blocks(old: tuple[str, ...], new: tuple[str, ...], edits: list[Edit]) -> Iterator[LineBlock]:
    """The edits tell where lines differ, so that only lines that they touch are compared."""
    done, moved = 0, 0
    for begin, end, more in _touched(edits, len(old)):
        if begin > done:
            yield LineBlock(True, done, begin, done + moved, begin + moved)
        part = TextDiff.between(old[begin:end], new[begin + moved : end + moved + more], _MOST_MATCHED).blocks
        for block in part:
            yield replace(
                block,
                old_start=block.old_start + begin,
                old_end=block.old_end + begin,
                new_start=block.new_start + begin + moved,
                new_end=block.new_end + begin + moved,
            )
        done, moved = end, moved + more
    if done < len(old):
        yield LineBlock(True, done, len(old), done + moved, len(new))


def _joined(blocks: Iterator[LineBlock]) -> Iterator[LineBlock]:
    """The same blocks; of equal ones that follow each other one is made."""
    last: LineBlock | None = None
    for block in blocks:
        if last is not None and last.equal and block.equal:
            last = replace(last, old_end=block.old_end, new_end=block.new_end)
            continue
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last


def _touched(edits: list[Edit], num_lines: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of lines that edits touch, 0-based and without their ends, and by how many lines each grows."""
    ranges: list[tuple[int, int, int]] = []
    for edit in sorted(edits, key=lambda one: (one.begin, one.end)):
        begin, end = edit.line - 1, min(edit.end_line, num_lines)
        more = edit.text.count("\n") - (edit.end_line - edit.line)
        if ranges and begin <= ranges[-1][1]:
            before, until, grown = ranges.pop()
            ranges.append((before, max(until, end), grown + more))
        else:
            ranges.append((begin, end, more))
    yield from ranges
