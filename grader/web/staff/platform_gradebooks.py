"""The gradebook as learning platforms read it: a CSV file for Canvas, and one for Moodle.

Points are of 100 in every task, as both platforms keep one maximum for a whole column. What is held, not judged yet or
not handed in is an empty cell. Drafts and what the course has withdrawn are left out. No cell can act as a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from grader.store.courses.class_register import RegisteredLearner
from grader.store.courses.courses import AssignedTask
from grader.store.grading.gradebook import Gradebook, GradebookCell
from grader.web.staff.csv_files import Value, to_csv
from grader.web.staff.gradebook_table import share_of

MAXIMUM = 100
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_MOODLE = ("ID number", "Username", "Email address", "Name")
_CANVAS_ID = re.compile(r"\((\d+)\)\s*$")
# Canvas takes columns for its own, and rows for no learner's, wherever these words stand in them.
_CANVAS_WORDS = re.compile(
    r"\b(Points) (Possible)\b|\b(Current|Final) (Score|Points|Grade)\b|\b(Override) (Score|Grade|Status)\b"
)


def canvas_csv(book: Gradebook, learners: Sequence[RegisteredLearner]) -> bytes:
    """For Grades, Import in Canvas.

    Its five columns stand first; the second row says the points possible. Canvas finds learners by `ID` (its own
    number, which we do not know), then `SIS User ID` (our external id), `SIS Login ID` (our login), or the name. A
    column that has no assignment of its title becomes a new one; `(12)` at the end of a title would name Canvas' own
    number, so we write `[12]`.

    Sources: Canvas Instructor Guide, "How do I import grades in the Gradebook?"; `lib/gradebook_importer.rb` of
    github.com/instructure/canvas-lms, which is what reads the file.
    """
    tasks = _offered(book)
    titles = [_canvas_text(_CANVAS_ID.sub(r"[\1]", one)) for one in _titles(tasks)]
    possible: list[Value] = ["    Points Possible", "", "", "", "", *[MAXIMUM] * len(tasks)]

    def rows() -> Iterator[list[Value]]:
        yield possible
        for one, scores in _scores(book, learners, tasks):
            who: list[Value] = [_canvas_text(one.name), None, one.external_id, one.login, one.section or ""]
            yield [*who, *scores]

    return to_csv([*_CANVAS, *titles], rows())


def moodle_csv(book: Gradebook, learners: Sequence[RegisteredLearner]) -> bytes:
    """For Grades, Import, CSV file in Moodle: comma separated, UTF-8.

    Whoever imports maps one of the first three columns to the user (`ID number` is our external id), and each task's
    column to a grade item or to a new one; an empty cell is no grade. Moodle refuses a file with a grade above 100
    unless the site allows unlimited grades.

    Sources: Moodle documentation, "Grade import"; `grade/import/csv/classes/load_data.php` of
    github.com/moodle/moodle, which is what reads the file.
    """
    tasks = _offered(book)

    def rows() -> Iterator[list[Value]]:
        for one, scores in _scores(book, learners, tasks):
            yield [one.external_id, one.login, one.email, one.name, *scores]

    return to_csv([*_MOODLE, *_titles(tasks)], rows())


def _offered(book: Gradebook) -> tuple[AssignedTask, ...]:
    return tuple(task for task in book.tasks if task.offered)


def _titles(tasks: Sequence[AssignedTask]) -> list[str]:
    """The tasks' titles, each once: two columns of one name would be one there."""
    titles = [task.terms.title for task in tasks]
    return [
        title if titles.count(title) == 1 else f"{title}, {task.task} {task.profile}"
        for title, task in zip(titles, tasks, strict=True)
    ]


def _canvas_text(text: str) -> str:
    return _CANVAS_WORDS.sub(lambda found: found[0].replace(" ", "-"), text)


def _scores(
    book: Gradebook, learners: Sequence[RegisteredLearner], tasks: Sequence[AssignedTask]
) -> Iterator[tuple[RegisteredLearner, list[Value]]]:
    cells = {row.person_id: row.cells for row in book.rows}
    for one in learners:
        own = cells.get(one.person_id, {})
        yield one, [_score(own.get(task.id)) for task in tasks]


def _score(cell: GradebookCell | None) -> Value:
    if cell is None or cell.result is None or cell.result.held_since is not None:
        return None
    return round(MAXIMUM * share_of(cell), 2)
