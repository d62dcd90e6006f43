"""How long a course keeps evidence and scripts, and what of them its rule deletes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.attempts.retention import (
    MOST_DAYS,
    DueContent,
    RetentionRule,
    due_content,
    rule_of,
    set_rule,
)
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()


@router.get("/courses/{course_id}/retention")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The rule as it is, and what is due."""
    own = rule_of(request.service.store, request.course.id)
    days = {"evidence": own.evidence_days, "scripts": own.scripts_days}
    return _page(request, SubmittedForm({name: [str(one or "")] for name, one in days.items()}, {}))


@router.post("/courses/{course_id}/retention")
def change(request: CourseRequestDep, form: FormDep) -> Response:
    """Another rule; where it deletes something now, that is asked first."""
    rule = RetentionRule(
        form.whole("evidence", least=1, most=MOST_DAYS), form.whole("scripts", least=1, most=MOST_DAYS)
    )
    if not form.good:
        return _page(request, form, 422)
    due = _due(request, rule)
    if due is not None and (due.num_evidence or due.num_scripts) and not is_confirmed(form):
        question = Question(
            gettext("Delete what is older?"),
            gettext(
                "This deletes {evidence} and {scripts}, within minutes and for good. Grades and points stay."
            ).format(
                evidence=counted(
                    "the evidence of %(num)s attempt", "the evidence of %(num)s attempts", due.num_evidence
                ),
                scripts=counted(
                    "the scripts of %(num)s attempt", "the scripts of %(num)s attempts", due.num_scripts
                ),
            ),
            gettext("Delete it"),
            f"{request.at}/retention",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    set_rule(request.service.store, request.course.id, rule, actor_id=request.actor)
    return request.redirect("retention", gettext("The course keeps things for so long from now on."))


def _due(request: CourseRequest, rule: RetentionRule) -> DueContent | None:
    return due_content(request.service.store, request.course.id, rule.within(request.service.retention))


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    own, site = rule_of(request.service.store, request.course.id), request.service.retention
    return request.page(
        "retention.html.j2",
        {"form": form, "site": site, "rule": own.within(site), "due": _due(request, own)},
        status_code,
    )
