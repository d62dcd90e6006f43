"""A class's last submissions of a task, compared, and a pair of them side by side: a hint for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from markupsafe import Markup

from grader.report.html.highlight import highlighted
from grader.store.attempts.class_submissions import LastSubmission, last_submissions
from grader.store.attempts.similar_pairs import (
    NewComparison,
    NewPair,
    keep_comparison,
    newest_attempt,
    passages_of,
    same_task_elsewhere,
)
from grader.store.courses.courses import AssignedTask
from grader.store.database import Store
from grader.store.files import FileStore
from grader.web.lookups.catalog import task_in
from grader.web.service import WebService
from grader.web.similarity.comparison import ComparedSubmission, ComparisonRequest, Passage, SimilarPair
from grader.web.similarity.comparison_process import MAX_EARLIER, MAX_SUBMISSIONS, compare_in_process
from grader.web.staff.annotated_source import MOST_LINES


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


def compare_class(store: Store, files: FileStore, task: AssignedTask) -> None:
    """Compare the last submissions of all learners of a task, with those of earlier courses, too, and keep the pairs.

    Raises:
        UsageError: it takes too long. InfraError: comparing failed.
    """
    # Before the submissions are read: what comes in between is compared once more rather than never.
    newest = newest_attempt(store, task.id)
    own = last_submissions(store, task.id, limit=MAX_SUBMISSIONS)
    earlier: list[LastSubmission] = []
    for elsewhere in same_task_elsewhere(store, task.id):
        earlier += last_submissions(store, elsewhere, limit=MAX_EARLIER - len(earlier))
        if len(earlier) >= MAX_EARLIER:
            break
    skeleton = _skeleton(store, files, task)
    works = (*map(_work, own), *(replace(_work(one), earlier=True) for one in earlier))
    found = compare_in_process(ComparisonRequest(works, skeleton, closer=True))
    mine = {one.attempt_id for one in own}
    too_large = len(mine & set(found.too_large))
    pairs = tuple(_kept(pair, closer, mine) for pair, closer in zip(found.pairs, found.closer, strict=True))
    keep_comparison(
        store,
        task.id,
        NewComparison(newest, len(own) - too_large, too_large, len(earlier), bool(skeleton), pairs),
    )


def _kept(pair: SimilarPair, closer: SimilarPair, mine: set[int]) -> NewPair:
    """A pair as it is kept, the one of this class first."""
    passages = [[list(astuple(one)) for one in side] for side in (closer.passages_a, closer.passages_b)]
    if pair.a in mine:
        return NewPair(pair.a, pair.b, pair.num_lines, pair.share_a, pair.share_b, passages)
    return NewPair(pair.b, pair.a, pair.num_lines, pair.share_b, pair.share_a, passages[::-1])


def side_by_side(
    service: WebService, a: LastSubmission, b: LastSubmission, task: AssignedTask
) -> tuple[PairSide, PairSide] | None:
    """Two works with the passages that they share, what others have, too, included; None: they share none.

    Raises:
        UsageError: it takes too long. InfraError: comparing failed.
    """
    kept = passages_of(service.store, task.id, a.attempt_id, b.attempt_id)
    if kept is None:
        skeleton = _skeleton(service.store, service.files, task)
        request = ComparisonRequest((_work(a), _work(b)), skeleton, most=1, ignore_common=False)
        found = compare_in_process(request).pairs
        if not found:
            return None
        sides = (found[0].passages_a, found[0].passages_b)
        first, second = sides if found[0].a == a.attempt_id else sides[::-1]
    else:
        first, second = (tuple(Passage(*one) for one in side) for side in kept)
    return _side(a, first), _side(b, second)


def _work(one: LastSubmission) -> ComparedSubmission:
    return ComparedSubmission(one.attempt_id, tuple((file.path, file.text) for file in one.files))


def _skeleton(store: Store, files: FileStore, assigned: AssignedTask) -> tuple[str, ...]:
    task = task_in(store, files, assigned.task, assigned.terms.version)
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
