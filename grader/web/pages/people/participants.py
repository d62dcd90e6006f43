"""The people of a course: who they are, one more of them, and what is done for many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.courses import enrolments
from grader.store.courses.enrolment_details import set_section
from grader.store.courses.enrolments import Participant
from grader.store.courses.roster_imports import RosterLine
from grader.store.delivery.delivery_channels import mail_problem
from grader.store.people.one_time_passwords import without_own_password
from grader.store.people.personal_invitations import personal_invitations
from grader.store.tables.person import Role
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.sign_in import need_passwords
from grader.web.staff import accounts
from grader.web.staff.course_request import CourseRequest, CourseRequestDep, ReaderRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.links import link
from grader.web.staff.password_handouts import handouts
from grader.web.staff.roster import MAX_DETAIL, problem_with

router = APIRouter()
_PAGE = 100
"""As many as one form may tick."""
_NO_SECTION = "-"
"""In an address: those who are in no section."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Whom an address asks for."""

    section: str = ""
    q: str = ""
    page: int = 1


@router.get("/courses/{course_id}/people")
def show(request: ReaderRequestDep, section: str = "", q: str = "", page: int = 1) -> HTMLResponse:
    """Everybody in the course whom the asker is shown, or those of a section or name, a hundred at a time."""
    return _page(request, SubmittedForm({}, {}), _Wanted(section, q.strip()[:200], page))


@router.post("/courses/{course_id}/people")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """One more learner, with an account that is made if there is none."""
    login, name = form.needed("login", gettext("A login")).casefold(), form.needed("name", gettext("A name"))
    section = form.text("section", most=MAX_DETAIL) or None
    trouble = problem_with(login, name) if form.good else None
    if trouble is not None:
        form.errors["login"] = trouble
    if not form.good:
        return _page(request, form, status_code=422)
    one = RosterLine(0, login, name, email=login if "@" in login else None, section=section)
    planned = accounts.plan(request.service.store, request.course.id, [one])
    if planned[0].inside is not None:
        told = gettext("{login} takes part already.").format(login=one.login)
        return request.redirect("people", told, kind="note")
    made = accounts.add_one(request.service, request.course.id, one, actor_id=request.actor)
    if not request.service.sign_on.local_passwords:
        told = gettext("{name} takes part now, and comes in by signing on.").format(name=made.name)
        return request.redirect("people", told)
    return handouts(request, (made,))


@router.post("/courses/{course_id}/people/section")
def put_into_section(request: CourseRequestDep, form: FormDep) -> Response:
    """Put the ticked people into a section, or into none."""
    chosen = _ticked(request, form)
    if not chosen:
        return _tick_first(request)
    section = form.text("section", most=MAX_DETAIL) or None
    ids = [one.person_id for one in chosen]
    number = set_section(request.service.store, request.course.id, ids, section, actor_id=request.actor)
    if section is None:
        told = counted(
            "%(num)s person changed: in no section now.", "%(num)s people changed: in no section now.", number
        )
    else:
        told = counted(
            "%(num)s person changed: in section {section} now.",
            "%(num)s people changed: in section {section} now.",
            number,
        ).format(section=section)
    return request.redirect("people", told)


@router.post("/courses/{course_id}/people/passwords")
def reissue(request: CourseRequestDep) -> Response:
    """New one-time passwords for all who have not chosen one: those before were lost."""
    need_passwords(request.service)
    made = accounts.reissue_passwords(request.service, request.visitor, request.course.id)
    if not made:
        return request.redirect("people", gettext("Everybody has chosen a password by now."), kind="note")
    return handouts(request, made)


@router.post("/courses/{course_id}/people/reset")
def reset_many(request: CourseRequestDep, form: FormDep) -> Response:
    """New one-time passwords for the ticked people, whatever they have now; asked first."""
    need_passwords(request.service)
    chosen = _ticked(request, form)
    if not chosen:
        return _tick_first(request)
    ids = [one.person_id for one in chosen]
    allowed = accounts.managed(request.service.store, request.visitor, ids)
    if not allowed:
        text = gettext(
            "None of these accounts is yours to look after; an administrator can give them new passwords."
        )
        return request.redirect("people", text, kind="problem")
    if not is_confirmed(form):
        told = [gettext("The passwords that they have stop working, and their sessions and tokens end.")]
        if len(ids) > len(allowed):
            left = gettext("{number} of the ticked have accounts that are not yours to look after.")
            told.append(left.format(number=len(ids) - len(allowed)))
        question = Question(
            counted(
                "New one-time passwords for %(num)s person?",
                "New one-time passwords for %(num)s people?",
                len(allowed),
            ),
            " ".join(told),
            gettext("Make new passwords"),
            f"{request.at}/people",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    return handouts(
        request, accounts.reissue_passwords(request.service, request.visitor, request.course.id, ids)
    )


def _page(
    request: CourseRequest, form: SubmittedForm, wanted: _Wanted = _Wanted(), status_code: int = 200
) -> HTMLResponse:
    store, course_id = request.service.store, request.course.id
    everybody = enrolments.participants(store, course_id)
    # Who teaches is no secret; of learners one is shown one's own.
    there = [one for one in everybody if one.role is not Role.LEARNER or is_shown(request, one)]
    sections = sorted({one.section for one in there if one.section is not None}, key=str.casefold)
    section = wanted.section if wanted.section in (*sections, _NO_SECTION) else ""
    found = [
        one
        for one in there
        if (not section or (one.section or _NO_SECTION) == section) and _holds(one, wanted.q.casefold())
    ]
    num_pages = max(1, -(-len(found) // _PAGE))
    number = min(max(wanted.page, 1), num_pages)
    teaches = request.visitor.teaches(course_id)
    people = found[(number - 1) * _PAGE : number * _PAGE]
    return request.page(
        "people.html.j2",
        {
            "people": people,
            "pages": [
                (one, link(f"{request.at}/people", {"section": section, "q": wanted.q, "page": one}))
                for one in range(1, num_pages + 1)
            ],
            "number": number,
            "q": wanted.q,
            "linked": {one.person_id for one in people if is_shown(request, one)},
            "sections": sections,
            "section": section,
            "no_section": _NO_SECTION,
            "counts": _counts(found),
            "num_waiting": len(without_own_password(store, course_id)) if teaches else 0,
            "num_kept": len(accounts.kept_passwords(request.service, request.visitor, course_id))
            if teaches
            else 0,
            "mails": not mail_problem(store),
            "num_invited": len(personal_invitations(store, course_id)) if teaches else 0,
            "form": form,
        },
        status_code,
    )


def _counts(found: Sequence[Participant]) -> str:
    """How many there are of each role, as a sentence."""
    number = Counter(one.role for one in found)
    told = [counted("%(num)s learner", "%(num)s learners", number[Role.LEARNER])]
    if number[Role.ASSISTANT]:
        told.append(counted("%(num)s assistant", "%(num)s assistants", number[Role.ASSISTANT]))
    if number[Role.OBSERVER]:
        told.append(counted("%(num)s observer", "%(num)s observers", number[Role.OBSERVER]))
    if number[Role.INSTRUCTOR]:
        told.append(counted("%(num)s instructor", "%(num)s instructors", number[Role.INSTRUCTOR]))
    if len(told) == 1:
        return f"{told[0]}."
    return gettext("{several} and {last}.").format(several=", ".join(told[:-1]), last=told[-1])


def _holds(one: Participant, text: str) -> bool:
    known = (one.name, one.login, one.external_id, one.email)
    return any(text in part.casefold() for part in known if part)


def is_shown(request: CourseRequest, one: Participant) -> bool:
    """Whether the asker is shown how this participant does."""
    return request.visitor.reads_learner(request.course.id, one.role, one.section)


def _ticked(request: CourseRequest, form: SubmittedForm) -> list[Participant]:
    wanted = set(form.ids("person"))
    return [
        one
        for one in enrolments.participants(request.service.store, request.course.id)
        if one.person_id in wanted
    ]


def _tick_first(request: CourseRequest) -> Response:
    return request.redirect("people", gettext("Tick the people first."), kind="problem")
