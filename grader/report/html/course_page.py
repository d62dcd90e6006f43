"""The page over the reports of a proved course: what was promised, what came of it, and where its report lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.model.course import Course
from grader.model.verify_case import VerifyCase
from grader.report.html.page_engine import page_engine


@dataclass(frozen=True, slots=True)
class PageRow:
    """One promise of a course.

    Attributes:
        runtime: where it was judged; case: what came of it.
        report: address of its report, seen from the page; "" where there is none.
    """

    runtime: str
    case: VerifyCase
    report: str


def course_page(course: Course, rows: Sequence[PageRow], problems: Sequence[str]) -> str:
    """The whole page, which needs no network; `problems`: everything that is wrong or was not run, as sentences."""
    template = page_engine(Path(__file__).parent.parent / "templates").get_template("course.html.j2")
    return template.render(course=course, rows=rows, problems=problems)
