"""A class's last submissions of a task, compared, and a pair of them side by side: a hint for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grader.report.highlight import highlighted
from grader.store.class_submissions import LastSubmission, last_submissions
from grader.store.courses import AssignedTask
from grader.web.lookups.catalog import cached_task
from grader.web.service import WebService
from grader.web.similarity.comparison import (
    ComparedSubmission,
    ComparisonRequest,
    Passage,
    SimilarityResult,
    SimilarPair,
)
from grader.web.similarity.comparison_process import MAX_SUBMISSIONS, compare_in_process
from grader.web.staff.annotated_source import MOST_LINES


@dataclass(frozen=True, slots=True)
class ClassComparison:
    """What comparing a class gave: `by_id` are the submissions by attempt, `skeleton` whether one was left out."""

    comparison: SimilarityResult
    by_id: dict[int, LastSubmission]
    skeleton: bool


@dataclass(frozen=True, slots=True)
class SideLine:
    """One line of a side; `passage` 0: it resembles nothing, otherwise the number of its passage there."""

    number: int
    text: Markup
    passage: int


@dataclass(frozen=True, slots=True)
class PairSide:
    """One work of a pair: its files as (path, lines), and per passage the number of that it resembles on the other."""

    work: LastSubmission
    files: tuple[tuple[str, tuple[SideLine, ...]], ...]
    partners: tuple[int, ...]


def compare_class(service: WebService, task: AssignedTask) -> ClassComparison:
    """Compare the last submissions of all learners of a task.

    Raises:
        UsageError: it takes too long. InfraError: comparing failed.
    """
    found = last_submissions(service.store, task.id, limit=MAX_SUBMISSIONS)
    skeleton = _skeleton(service, task)
    comparison = compare_in_process(ComparisonRequest(tuple(map(_work, found)), skeleton))
    return ClassComparison(comparison, {one.attempt_id: one for one in found}, bool(skeleton))


def side_by_side(
    service: WebService, a: LastSubmission, b: LastSubmission, task: AssignedTask
) -> tuple[SimilarPair | None, PairSide, PairSide]:
    """Two works with the passages that they share, what others have, too, included.

    Raises:
        UsageError: it takes too long. InfraError: comparing failed.
    """
    request = ComparisonRequest((_work(a), _work(b)), _skeleton(service, task), most=1, ignore_common=False)
    pairs = compare_in_process(request).pairs
    if not pairs:
        return None, _side(a, ()), _side(b, ())
    pair = pairs[0]
    first, second = (
        (pair.passages_a, pair.passages_b) if pair.a == a.attempt_id else (pair.passages_b, pair.passages_a)
    )
    return pair, _side(a, first), _side(b, second)


def _work(one: LastSubmission) -> ComparedSubmission:
    return ComparedSubmission(one.attempt_id, tuple((file.path, file.text) for file in one.files))


def _skeleton(service: WebService, assigned: AssignedTask) -> tuple[str, ...]:
    task = cached_task(service, assigned.task, assigned.terms.version)
    try:
        scripts = () if task is None else sorted(task.skeleton.rglob("*.py"))
        return tuple(path.read_text(encoding="utf-8") for path in scripts)
    except (OSError, UnicodeDecodeError):
        return ()


def _side(one: LastSubmission, passages: Sequence[Passage]) -> PairSide:
    marked: dict[tuple[str, int], int] = {}
    for number, passage in enumerate(passages, start=1):
        for line in range(passage.first, passage.last + 1):
            marked.setdefault((passage.path, line), number)
    files = tuple(
        (
            file.path,
            tuple(
                SideLine(number, text, marked.get((file.path, number), 0))
                for number, text in enumerate(highlighted(file.text.split("\n")[:MOST_LINES]), start=1)
            ),
        )
        for file in one.files
    )
    return PairSide(one, files, tuple(passage.partner + 1 for passage in passages))
