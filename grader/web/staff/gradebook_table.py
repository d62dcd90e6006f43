"""The gradebook as a table: sorted, cut into pages, with totals by weight. Works out numbers, decides no grade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.report.words.banner import sentence
from grader.report.words.wording import SYMBOLS, TONES, VERDICTS, points_text
from grader.store.courses.courses import AssignedTask
from grader.store.grading.gradebook import Gradebook, GradebookCell, GradebookLine
from grader.translation import current_language, gettext
from grader.web.staff.gradebook_query import GradebookQuery

PAGE = 100


@dataclass(frozen=True, slots=True)
class LearnerRow:
    """One learner: a cell per task as HTML, their total (0 to 1), and how many required tasks are accepted."""

    person_id: int
    login: str
    name: str
    cells: Markup
    total: float
    num_required: int


@dataclass(frozen=True, slots=True)
class TaskColumn:
    """One task over the whole class: how many handed in, how many are accepted, mean share of the points, 0 to 1.

    What is held is in none but the first.
    """

    task: AssignedTask
    num_handed_in: int
    num_accepted: int
    mean: float | None


@dataclass(frozen=True, slots=True)
class GradebookPage:
    """A part of the gradebook.

    Attributes:
        columns, lines: what is shown.
        number, num_pages: which part, from 1; num_found: learners as searched for; num_people: the whole class.
        num_required: tasks that the certificate needs; mean: of the class's totals, None without anybody.
        num_complete: of the class, those who have them all.
    """

    columns: tuple[TaskColumn, ...]
    lines: tuple[LearnerRow, ...]
    number: int
    num_pages: int
    num_found: int
    num_people: int
    num_required: int
    num_complete: int
    mean: float | None


_ORDER = {Verdict.ACCEPTED: 2, Verdict.HELD: 1}


@lru_cache(maxsize=64)
def _sign(tone: str, sign: str, text: str) -> Markup:
    # The text is shown to a mouse as a title, and said to everybody who hears the page.
    return Markup('<td class="tone-{0}"><b title="{2}" aria-hidden="true">{1}</b>{3}</td>').format(
        tone, sign, text, _said(text)
    )


def _said(text: str) -> Markup:
    return Markup('<span class="visually-hidden">{0}</span>').format(text)


def cell_html(cell: GradebookCell | None) -> Markup:
    """A cell as it is printed, in signs and words and never by colour alone.

    Made here and not in the template, because a page has thousands and the engine takes time for each value. Nothing
    in it comes from outside.
    """
    if cell is None:
        return _sign("quiet", "–", gettext("not handed in"))
    if cell.attempt_id is None or cell.result is None:
        return _sign("hint", "…", gettext("not judged yet"))
    before, after = _frame(cell.result, current_language())
    return Markup(f"{before}{cell.attempt_id:d}{after}")


@lru_cache(maxsize=8192)
def _frame(result: AttemptResult, _language: str) -> tuple[str, str]:
    """What stands before and after the attempt's number in a cell, in the present language."""
    tone = TONES[result.verdict]
    late, by_hand = gettext("late {days} d").format(days=result.late_days), gettext("set by hand")
    notes = f"<i>{late}</i>" if result.late_days else ""
    notes += f"<i>{by_hand}</i>" if result.decided else ""
    # Nothing counts before somebody has decided, so no number stands there.
    shown = VERDICTS[result.verdict] if result.verdict is Verdict.HELD else points_text(result.points)
    told = sentence(result)
    return (
        f'<td class="tone-{tone}"><a title="{told}" href="/attempts/',
        f'"><b aria-hidden="true">{SYMBOLS[tone]}</b> {shown}{_said(f"; {told}")}</a>{notes}</td>',
    )


def total_of(row: GradebookLine, tasks: tuple[AssignedTask, ...]) -> float:
    """Share of all points that somebody has, each task by its weight; what was not handed in counts as nothing.

    So does what is held until it is decided. Drafts, and what the course has withdrawn, count neither way.
    """
    whole = got = 0.0
    cells = row.cells
    for task in tasks:
        if not task.offered:
            continue
        weight = task.terms.weight
        whole += weight
        cell = cells.get(task.id)
        if cell is not None:
            got += weight * share_of(cell)
    return got / whole if whole > 0 else 0.0


def required_of(tasks: tuple[AssignedTask, ...]) -> list[int]:
    """Ids of the tasks that the certificate needs accepted."""
    return [task.id for task in tasks if task.terms.required and task.offered]


def share_of(cell: GradebookCell) -> float:
    """Points of possible points, 0 to 1."""
    return 0.0 if cell.result is None else cell.result.share


def gradebook_page(book: Gradebook, wanted: GradebookQuery) -> GradebookPage:
    """One page of the gradebook, in the reader's language.

    It is sorted by `name`, `family` (the last word of a name), `login`, `total`, `required` or the number of a task;
    of pages that do not exist it is the nearest one.
    """
    whole = _whole_class(book)
    part = wanted.q.casefold().strip()
    rows = [
        row for row in book.rows if not part or part in row.name.casefold() or part in row.login.casefold()
    ]
    rows.sort(key=_key(wanted.sort, whole.totals, whole.num_required), reverse=wanted.descending)
    num_pages = max(1, -(-len(rows) // PAGE))
    number = min(max(1, wanted.page), num_pages)
    lines = tuple(
        LearnerRow(
            row.person_id,
            row.login,
            row.name,
            Markup().join(cell_html(row.cells.get(task.id)) for task in book.tasks),
            whole.totals[row.person_id],
            whole.num_required[row.person_id],
        )
        for row in rows[(number - 1) * PAGE : number * PAGE]
    )
    num_required = len(required_of(book.tasks))
    totals, done = whole.totals.values(), whole.num_required.values()
    return GradebookPage(
        columns=whole.columns,
        lines=lines,
        number=number,
        num_pages=num_pages,
        num_found=len(rows),
        num_people=len(book.rows),
        num_required=num_required,
        num_complete=sum(one == num_required for one in done) if num_required else 0,
        mean=sum(totals) / len(totals) if totals else None,
    )


@dataclass(frozen=True, slots=True)
class _WholeClass:
    """Of everybody, by their ids: the total, and how many required tasks are accepted; and what stands below."""

    totals: dict[int, float]
    num_required: dict[int, int]
    columns: tuple[TaskColumn, ...]


@lru_cache(maxsize=8)
def _whole_class(book: Gradebook) -> _WholeClass:
    required = required_of(book.tasks)
    return _WholeClass(
        {row.person_id: total_of(row, book.tasks) for row in book.rows},
        {row.person_id: sum(_accepted(row.cells.get(one)) for one in required) for row in book.rows},
        tuple(_column(task, book.rows) for task in book.tasks),
    )


def _column(task: AssignedTask, rows: tuple[GradebookLine, ...]) -> TaskColumn:
    cells = [cell for row in rows if (cell := row.cells.get(task.id)) is not None]
    judged = [cell for cell in cells if cell.verdict not in (None, Verdict.HELD)]
    mean = sum(map(share_of, judged)) / len(judged) if judged else None
    accepted = sum(cell.verdict is Verdict.ACCEPTED for cell in judged)
    return TaskColumn(task, len(cells), accepted, mean)


def _accepted(cell: GradebookCell | None) -> bool:
    return cell is not None and cell.verdict is Verdict.ACCEPTED


def _key(
    sort: str, totals: dict[int, float], done: dict[int, int]
) -> Callable[[GradebookLine], tuple[float, float, str, int]]:
    """Numbers first, then names: equal ones stay in the order of the alphabet."""

    def key(row: GradebookLine) -> tuple[float, float, str, int]:
        name = row.name.casefold()
        if sort == "family":
            *_, family = name.split() or [""]
            return 0, 0, f"{family} {name}", row.person_id
        if sort == "login":
            return 0, 0, row.login, row.person_id
        if sort == "total":
            return totals[row.person_id], 0, name, row.person_id
        if sort == "required":
            return done[row.person_id], totals[row.person_id], name, row.person_id
        if sort.isascii() and sort.isdigit():
            cell = row.cells.get(int(sort))
            if cell is None:
                return -2, 0, name, row.person_id
            if cell.verdict is None:
                return -1, 0, name, row.person_id
            return _ORDER.get(cell.verdict, 0), share_of(cell), name, row.person_id
        return 0, 0, name, row.person_id

    return key
