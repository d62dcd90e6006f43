"""The form with a task's terms: read into `TaskTerms`, every mistake shown beside its field."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo

from grader.store.courses.courses import TaskTerms
from grader.store.tables.course_task import LatePolicy
from grader.translation import N_, gettext
from grader.web.staff.form import SubmittedForm, local_field

_LATE = (
    (LatePolicy.CLOSED, N_("is not taken")),
    (LatePolicy.ACCEPTED, N_("is taken, and worth the same")),
    (LatePolicy.REDUCED, N_("is taken, and loses points each day")),
)
_PERCENT = 100.0
_MOST = 100_000
_MOST_MINUTES = 10_080


def late_options() -> list[tuple[str, str]]:
    """What becomes of what comes late, to choose from."""
    return [(value, gettext(text)) for value, text in _LATE]


def read_terms(form: SubmittedForm, now: TaskTerms, zone: tzinfo) -> TaskTerms:
    """The terms that the form says, its dates of that zone; version and need stay.

    Where something is wrong, `form.errors` says what.
    """
    title = form.needed("title", gettext("A title"))
    weight = form.number("weight", least=0, most=1000)
    opens_at, due_at = form.time("opens_at", zone), form.time("due_at", zone)
    if opens_at is not None and due_at is not None and due_at <= opens_at:
        form.errors["due_at"] = gettext("It would be due before it opens.")
    late = LatePolicy(form.one_of("late_policy", [value for value, _ in _LATE]))
    loss = form.number("late_loss", least=0, most=100)
    if late is LatePolicy.REDUCED and not loss and "late_loss" not in form.errors:
        form.errors["late_loss"] = gettext("How many percent does each day cost?")
    hidden = form.ticked("hidden_until_due")
    if hidden and due_at is None and "due_at" not in form.errors:
        form.errors["due_at"] = gettext("Hidden until when? Set a due date, or untick “hidden until due”.")
    exam = form.whole("exam_minutes", least=1, most=_MOST_MINUTES)
    if exam is not None and due_at is None and "due_at" not in form.errors:
        form.errors["due_at"] = gettext("When does the exam close? Set a due date.")
    if exam is not None and late is not LatePolicy.CLOSED:
        form.errors["late_policy"] = gettext("An exam takes nothing late.")
    return replace(
        now,
        title=title[:200] or now.title,
        weight=now.weight if weight is None else weight,
        required=form.ticked("required"),
        opens_at=opens_at,
        due_at=due_at,
        late_policy=late,
        late_loss=(loss or 0.0) / _PERCENT,
        late_days=form.whole("late_days", least=1, most=1000),
        hidden_until_due=hidden,
        max_per_day=form.whole("max_per_day", least=1, most=_MOST),
        max_total=form.whole("max_total", least=1, most=_MOST),
        max_concurrent=form.whole("max_concurrent", least=1, most=_MOST),
        grace_minutes=form.whole("grace_minutes", least=0, most=_MOST_MINUTES) or None,
        exam_minutes=exam if form.good else None,
    )


def as_sent(terms: TaskTerms, zone: tzinfo) -> dict[str, str]:
    """Terms as the texts of the form's fields, dates of that zone."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:g}"

    return {
        "title": terms.title,
        "weight": number(terms.weight),
        "required": "on" if terms.required else "",
        "opens_at": local_field(terms.opens_at, zone),
        "due_at": local_field(terms.due_at, zone),
        "late_policy": terms.late_policy,
        "late_loss": number(terms.late_loss * _PERCENT) if terms.late_loss else "",
        "late_days": number(terms.late_days),
        "max_per_day": number(terms.max_per_day),
        "max_total": number(terms.max_total),
        "max_concurrent": number(terms.max_concurrent),
        "grace_minutes": number(terms.grace_minutes),
        "exam_minutes": number(terms.exam_minutes),
        "hidden_until_due": "on" if terms.hidden_until_due else "",
    }
