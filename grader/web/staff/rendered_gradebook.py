"""A page of the gradebook with its table as HTML, made once for all who are shown the same learners.

Nothing of it depends on who looks, nor on when: it is the same until something happens. What is told of the reader, and
the tokens of their forms, stand in the page around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from jinja2 import Environment
from markupsafe import Markup

from grader.store.courses.learners import Learners
from grader.store.database import Store
from grader.store.grading.gradebook import gradebook
from grader.translation import current_language
from grader.web.lookups.until_next_event import UntilNextEvent
from grader.web.staff.gradebook_query import GradebookQuery
from grader.web.staff.gradebook_table import GradebookPage, gradebook_page


@dataclass(frozen=True, slots=True)
class RenderedGradebook:
    """What is shown, and its table; "" where it has no lines."""

    shown: GradebookPage
    table: Markup


def rendered_gradebook(
    kept: UntilNextEvent, engine: Environment, course_id: int, learners: Learners, wanted: GradebookQuery
) -> RenderedGradebook:
    """The part of a course's gradebook that an address asks for, of these learners, in the present language."""
    return kept.of(_render, kept, engine, course_id, learners, wanted, current_language())


def _render(
    _store: Store,
    kept: UntilNextEvent,
    engine: Environment,
    course_id: int,
    learners: Learners,
    wanted: GradebookQuery,
    _language: str,
) -> RenderedGradebook:
    book = kept.of(gradebook, course_id, learners, anonymous=bool(wanted.anonymous))
    shown = gradebook_page(book, wanted)
    if not shown.lines:
        return RenderedGradebook(shown, Markup())
    at = f"/courses/{course_id}"
    template = engine.get_template("staff/gradebook_table.html.j2")
    table = template.render(
        shown=shown, sorting=partial(wanted.sorting, at), anonymous=wanted.anonymous, at=at
    )
    return RenderedGradebook(shown, Markup(table))
