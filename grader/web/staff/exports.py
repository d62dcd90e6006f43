"""What a course's grades become outside: tables for spreadsheets, JSON, Gradescope's results.json, JUnit.

What counts (override, lateness) is what is exported; the judged grade stands beside it. Everything that a learner chose
is made harmless for whoever opens the file.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Grade, Verdict
from grader.report.audience import Audience
from grader.report.exports.junit import of_grade as junit_of_grade
from grader.report.gradescope_results import gradescope_results
from grader.report.json_report import from_json
from grader.report.safe_text import visible
from grader.report.words.banner import sentence
from grader.store.attempts.attempts import StoredAttempt
from grader.store.attempts.class_submissions import CountedAttempt
from grader.store.courses.courses import CourseFacts
from grader.store.grading.gradebook import Gradebook, GradebookCell
from grader.translation import ENGLISH, in_language
from grader.web.archives.folder_names import own_folder
from grader.web.documents.counted_grade import counts_out
from grader.web.staff.csv_files import Value, to_csv
from grader.web.staff.gradebook_table import required_of, total_of

_SCHEMA = 1
# Verdicts that are no failure of the learner's → a case's element, and what a suite counts it under.
_JUNIT = {Verdict.HELD: ("skipped", "skipped"), Verdict.JUDGE_ERROR: ("error", "errors")}
# A date within the range of the format, so that the same grades make the same bytes.
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@in_language(ENGLISH)
def gradebook_csv(book: Gradebook) -> bytes:
    """A line per learner; per task its points, possible points, verdict, and the sentence that says how it came about.

    What is held has that verdict and no points until it is decided.
    """
    header = ["login", "name", "total_percent", "required_accepted"]
    for task in book.tasks:
        name = task.task if task.profile == "cpu" else f"{task.task} ({task.profile})"
        header += [
            f"{name} {what}" for what in ("points", "of", "verdict", "days_late", "set_by_hand", "outcome")
        ]
    required = required_of(book.tasks)

    def rows() -> Iterator[list[Value]]:
        for row in book.rows:
            accepted = sum(_accepted(row.cells.get(one)) for one in required)
            line: list[Value] = [row.login, row.name, 100 * total_of(row, book.tasks), accepted]
            for task in book.tasks:
                cell = row.cells.get(task.id)
                result = None if cell is None else cell.result
                if result is None:
                    line += [None, None, "" if cell is None else "waiting", None, None, None]
                else:
                    line += [
                        result.points,
                        result.max_points,
                        result.verdict.value,
                        result.late_days or None,
                        "yes" if result.decided else "",
                        sentence(result),
                    ]
            yield line

    return to_csv(header, rows())


@in_language(ENGLISH)
def attempts_csv(attempts: Iterable[StoredAttempt], results: Mapping[int, AttemptResult]) -> bytes:
    """A line per attempt; `results`: what those with a grade count as."""
    header = [
        "attempt",
        "login",
        "name",
        "task",
        "profile",
        "submission",
        "lane",
        "state",
        "verdict",
        "points",
        "of",
        "outcome",
    ]
    header += ["handed_in", "finished", "counts", "same_as", "regrade_of", "task_version", "digest"]
    return to_csv(header, (_attempt(one, results.get(one.id)) for one in attempts))


@in_language(ENGLISH)
def gradebook_json(course: CourseFacts, book: Gradebook) -> str:
    """The gradebook as one document, schema 1."""
    document = {
        "schema": _SCHEMA,
        "course": {"name": course.name, "title": course.title},
        "tasks": [
            {
                "id": task.id,
                "task": task.task,
                "profile": task.profile,
                "title": task.terms.title,
                "version": task.terms.version,
                "weight": task.terms.weight,
                "required": task.terms.required,
                "withdrawn": task.withdrawn,
                "draft": task.draft,
                "due_at": _time(task.terms.due_at),
            }
            for task in book.tasks
        ],
        "people": [
            {
                "login": row.login,
                "name": row.name,
                "total": round(total_of(row, book.tasks), 6),
                "tasks": [_cell(task.id, row.cells[task.id]) for task in book.tasks if task.id in row.cells],
            }
            for row in book.rows
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


@in_language(ENGLISH)
def results_json(one: CountedAttempt) -> str | None:
    """One learner's `results.json` with the points that count; None where the grade is of a schema no longer read."""
    grade = _grade(one)
    return None if grade is None else gradescope_results(grade, one.result)


@in_language(ENGLISH)
def gradescope_zip(counting: Iterable[CountedAttempt]) -> bytes:
    """A `results.json` per learner, in a folder of their login."""
    out = io.BytesIO()
    taken: set[str] = set()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in counting:
            text = results_json(one)
            if text is not None:
                archive.writestr(
                    zipfile.ZipInfo(f"{own_folder(one.login, one.person_id, taken)}/results.json", _ZIP_DATE),
                    text,
                )
    return out.getvalue()


@in_language(ENGLISH)
def junit(task: str, counting: Iterable[CountedAttempt]) -> bytes:
    """A suite per learner, as each was judged; its properties say what counts, and a case of its own if it differs."""
    root = ElementTree.Element("testsuites", {"name": visible(task)})
    for one in counting:
        grade = _grade(one)
        if grade is None:
            continue
        for suite in ElementTree.fromstring(junit_of_grade(grade, Audience.STAFF)).iter("testsuite"):
            suite.set("name", visible(one.login))
            _add_counts(suite, one.result)
            for case in suite.iter("testcase"):
                case.set("classname", visible(f"{task}.{one.login}"))
            root.append(suite)
    for kind in ("tests", "failures", "errors", "skipped"):
        root.set(kind, str(sum(int(suite.get(kind, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode("utf-8", "replace")


def _add_counts(suite: ElementTree.Element, result: AttemptResult) -> None:
    """What an attempt counts as, ahead of its cases; a case of its own where that is not what was judged."""
    properties = ElementTree.Element("properties")
    for name, value in counts_out(result).items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": str(value)})
    suite.insert(0, properties)
    if result.as_judged:
        return
    case = ElementTree.Element("testcase", {"name": "what counts", "time": "0.000"})
    suite.insert(1, case)
    counted = ["tests"]
    if result.verdict is not Verdict.ACCEPTED:
        kind, count = _JUNIT.get(result.verdict, ("failure", "failures"))
        ElementTree.SubElement(case, kind, {"message": sentence(result)})
        counted.append(count)
    for count in counted:
        suite.set(count, str(int(suite.get(count, "0")) + 1))


def _grade(one: CountedAttempt) -> Grade | None:
    try:
        return from_json(one.document)
    except ValueError:
        return None


def _attempt(one: StoredAttempt, result: AttemptResult | None) -> list[Value]:
    return [
        *(
            one.id,
            one.login,
            one.person,
            one.task,
            one.profile,
            one.submission,
            one.lane.value,
            one.state.value,
        ),
        *(
            (result.verdict.value, result.points, result.max_points, sentence(result))
            if result
            else (None, None, None, None)
        ),
        *(_time(one.queued_at), _time(one.finished_at), "yes" if one.counts else ""),
        *(one.cached_from, one.regrade_of, one.task_version, one.digest),
    ]


def _cell(task_id: int, cell: GradebookCell) -> dict[str, Any]:
    result = cell.result
    return {
        "id": task_id,
        "num_attempts": cell.num_attempts,
        "attempt": cell.attempt_id,
        "verdict": result.verdict.value if result else None,
        "points": _number(result.points) if result else None,
        "max_points": _number(result.max_points) if result else None,
        "days_late": result.late_days if result else 0,
        "set_by_hand": result.decided if result else False,
        "outcome": sentence(result) if result else None,
    }


def _accepted(cell: GradebookCell | None) -> bool:
    return cell is not None and cell.verdict is not None and cell.verdict.value == "accepted"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")
