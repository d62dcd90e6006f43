"""Webhooks of a course: which programs are told, their secrets, shown once, and what came of each delivery."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.delivery.webhooks.signature import webhook_secret
from grader.errors import UsageError
from grader.store.delivery import deliveries, webhooks
from grader.store.delivery.webhook_events import queue_test
from grader.store.delivery.webhooks import CHANNEL, CHOSEN, Webhook, receiver_of
from grader.translation import gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()
_PLACE = "webhooks"
_HERE = "/courses/{course_id}/webhooks"
_ONE = _HERE + "/{webhook_id}"
_LOGGED = 100


@router.get(_HERE)
def show(request: CourseRequestDep) -> HTMLResponse:
    """All of them, and the form for another one."""
    return _page(request, SubmittedForm({}, {}))


@router.post(_HERE)
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """Another one; its secret is in this answer and nowhere else."""
    url = form.needed("url", gettext("An address"))
    events = [event for event in CHOSEN if form.ticked(event)]
    if not events:
        form.errors["events"] = gettext("Choose at least one.")
    if not form.good:
        return _page(request, form, 422)
    try:
        made = webhooks.add_webhook(
            request.service.store, request.course.id, url, events, actor_id=request.actor
        )
    except UsageError as error:
        problem = problem_text(error)
        form.errors["url"] = f"{problem[:1].upper()}{problem[1:]}."
        return _page(request, form, 422)
    return _with_secret(request, made)


@router.get(_ONE)
def log(request: CourseRequestDep, webhook_id: Id) -> HTMLResponse:
    """What one was told, and what it answered."""
    hook = _hook(request, webhook_id)
    found = deliveries.deliveries_of(
        request.service.store, request.course.id, CHANNEL, receiver=receiver_of(hook.id), limit=_LOGGED
    )
    return request.page("webhook.html.j2", {"hook": hook, "found": found, "most": _LOGGED})


@router.post(_ONE + "/test")
def test(request: CourseRequestDep, webhook_id: Id) -> Response:
    """Tell it something that means nothing."""
    hook = _hook(request, webhook_id)
    queue_test(request.service.store, hook)
    return request.redirect(
        f"{_PLACE}/{hook.id}", gettext("A test is on its way. Load this page again to see the answer.")
    )


@router.post(_ONE + "/secret")
def change_secret(request: CourseRequestDep, form: FormDep, webhook_id: Id) -> Response:
    """Another secret, which holds at once."""
    hook = _hook(request, webhook_id)
    if not is_confirmed(form):
        text = gettext(
            "The present one stops working at once: until the program has the new one, it takes nothing."
        )
        return _ask(request, hook, Question(gettext("Make another secret?"), text, gettext("Make it"), ""))
    changed = webhooks.change_secret(
        request.service.store, request.course.id, hook.id, actor_id=request.actor
    )
    if changed is None:
        raise not_found()
    return _with_secret(request, changed)


@router.post(_ONE + "/enable")
def enable(request: CourseRequestDep, webhook_id: Id) -> Response:
    """Tell one again that was told nothing any more."""
    if webhooks.enable(request.service.store, request.course.id, webhook_id, actor_id=request.actor) is None:
        raise not_found()
    return request.redirect(
        f"{_PLACE}/{webhook_id}", gettext("It is told again, also what it missed in the last week.")
    )


@router.post(_ONE + "/remove")
def remove(request: CourseRequestDep, form: FormDep, webhook_id: Id) -> Response:
    """Tell one nothing any more, for good."""
    hook = _hook(request, webhook_id)
    if not is_confirmed(form):
        text = gettext("{url} is told nothing more, and what is on its way is dropped.").format(url=hook.url)
        return _ask(request, hook, Question(gettext("Remove this webhook?"), text, gettext("Remove it"), ""))
    webhooks.remove_webhook(request.service.store, request.course.id, hook.id, actor_id=request.actor)
    return request.redirect(_PLACE, gettext("The webhook is removed."))


@router.post(_ONE + "/deliveries/{delivery_id}/retry")
def retry(request: CourseRequestDep, webhook_id: Id, delivery_id: Id) -> Response:
    """Try one delivery again, now."""
    hook = _hook(request, webhook_id)
    if deliveries.retry(request.service.store, delivery_id, course_id=request.course.id):
        return request.redirect(f"{_PLACE}/{hook.id}", gettext("It is tried again now."))
    text = gettext("It has arrived, or is under way.")
    return request.redirect(f"{_PLACE}/{hook.id}", text, kind="note")


def _hook(request: CourseRequest, webhook_id: int) -> Webhook:
    for one in webhooks.webhooks_of(request.service.store, request.course.id):
        if one.id == webhook_id:
            return one
    raise not_found()


def _ask(request: CourseRequest, hook: Webhook, question: Question) -> HTMLResponse:
    asked = Question(question.title, question.text, question.yes, f"{request.at}/{_PLACE}/{hook.id}")
    return ask_first(request.service, request.http, request.visitor, asked)


def _with_secret(request: CourseRequest, hook: Webhook) -> HTMLResponse:
    return _page(request, SubmittedForm({}, {}), fresh=(hook, webhook_secret(request.service.secret, hook)))


def _page(
    request: CourseRequest,
    form: SubmittedForm,
    status_code: int = 200,
    fresh: tuple[Webhook, str] | None = None,
) -> HTMLResponse:
    found = webhooks.webhooks_of(request.service.store, request.course.id)
    context = {"found": found, "form": form, "events": CHOSEN, "fresh": fresh}
    return request.page("webhooks.html.j2", context, status_code)
