"""The groups of a course as staff make them: one by one, or from a list."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.report.wording import plural
from grader.store import learner_groups
from grader.store.enrolments import participants
from grader.store.grading_rules import grading_rules
from grader.store.learner_groups import LearnerGroup
from grader.store.tables.person import Role
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.group_list import MAX_BYTES, read_group_list

router = APIRouter()


@router.get("/courses/{course_id}/groups")
def show(request: CourseRequestDep) -> HTMLResponse:
    """All groups, and who is in none."""
    return _page(request, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/groups")
def make(request: CourseRequestDep, form: FormDep) -> Response:
    """An empty one."""
    name = form.needed("name", "A name")
    if form.good:
        try:
            learner_groups.make_group(request.service.store, request.course.id, name, actor_id=request.actor)
        except UsageError as error:
            form.errors["name"] = f"{error}"
    return _page(request, form, 422) if not form.good else request.redirect("groups", f"{name} is made.")


@router.post("/courses/{course_id}/groups/list")
def take_over(request: CourseRequestDep, form: FormDep) -> Response:
    """Put learners into groups as a list says, all of them or none."""
    file = form.files.get("list")
    data = b"" if file is None else file.file.read(MAX_BYTES + 1)
    try:
        wanted = read_group_list(data or form.text("text", most=MAX_BYTES).encode())
        new = learner_groups.put_into_groups(
            request.service.store, request.course.id, wanted, actor_id=request.actor
        )
    except UsageError as error:
        form.errors["text"] = f"Nothing was changed: {error}."
        return _page(request, form, 422)
    made = f" {plural(new, 'group')} {'is' if new == 1 else 'are'} new." if new else ""
    return request.redirect("groups", f"{plural(len(wanted), 'learner')} put into their groups.{made}")


@router.post("/courses/{course_id}/groups/{group_id}/members")
def put(request: CourseRequestDep, group_id: Id, form: FormDep) -> Response:
    """Put a learner into a group, out of the one that they are in."""
    group, person = _group(request, group_id), form.ids("person")
    if len(person) != 1:
        return request.redirect("groups", "Choose somebody.", kind="problem")
    try:
        learner_groups.put_into_group(
            request.service.store, request.course.id, group.id, person[0], actor_id=request.actor
        )
    except UsageError as error:
        return request.redirect("groups", f"Nothing was changed: {error}.", kind="problem")
    return request.redirect("groups", f"What {group.name} hands in from now on counts for them, too.")


@router.post("/courses/{course_id}/groups/{group_id}/members/{person_id}/remove")
def take_out(request: CourseRequestDep, group_id: Id, person_id: Id) -> Response:
    """Take a learner out of a group."""
    group = _group(request, group_id)
    if person_id not in {one.person_id for one in group.members}:
        raise not_found()
    learner_groups.take_out_of_group(
        request.service.store, request.course.id, person_id, actor_id=request.actor
    )
    return request.redirect("groups", "They are in no group now, and keep what they have.")


@router.post("/courses/{course_id}/groups/{group_id}/dissolve")
def dissolve(request: CourseRequestDep, group_id: Id, form: FormDep) -> Response:
    """Let a group be no more; asked first."""
    group = _group(request, group_id)
    if not is_confirmed(form):
        question = Question(
            f"Dissolve {group.name}?",
            f"{plural(len(group.members), 'learner')} will hand in alone. What the group handed in counts on for all "
            "for whom it counted.",
            "Dissolve it",
            f"{request.at}/groups",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    learner_groups.dissolve_group(request.service.store, request.course.id, group.id, actor_id=request.actor)
    return request.redirect("groups", f"{group.name} is dissolved.")


def _group(request: CourseRequest, group_id: int) -> LearnerGroup:
    for one in learner_groups.groups_of(request.service.store, request.course.id):
        if one.id == group_id:
            return one
    raise not_found()


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    store, course_id = request.service.store, request.course.id
    groups = learner_groups.groups_of(store, course_id)
    inside = {one.person_id for group in groups for one in group.members}
    learners = [one for one in participants(store, course_id) if one.role is Role.LEARNER]
    return request.page(
        "groups.html.j2",
        {
            "groups": groups,
            "alone": [one for one in learners if one.person_id not in inside],
            "rules": grading_rules(store, course_id),
            "form": form,
        },
        status_code,
    )
