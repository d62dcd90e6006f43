"""Choosing what a platform's course shall link to: the connected course's tasks.

It happens in the platform's own frame, so there is no session: the page carries the launch, signed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fastapi import Request
from starlette.responses import HTMLResponse

from grader.lti.deep_linking import LINK, LinkedTask, answer, content_item
from grader.lti.launch_message import DeepLinkingSettings
from grader.lti.platform_http import platform_address
from grader.store.courses.courses import AssignedTask, course, tasks_of
from grader.store.lti.lti_contexts import PlatformContext, enter
from grader.store.people.people import Account
from grader.store.tables.person import Role
from grader.translation import gettext
from grader.web.lti.arrival import Arrival, LaunchRefusal, connection_of, launch_token
from grader.web.lti.framed import framed_page, refused_page
from grader.web.service import WebService


@dataclass(frozen=True, slots=True)
class _Choice:
    context: PlatformContext
    asked: DeepLinkingSettings


def choice_page(
    service: WebService, request: Request, came: Arrival, who: Account | None, error: str = ""
) -> HTMLResponse:
    """The tasks to choose from; or, before there are any, the way to connect the course in a window of its own."""
    choice = _choice(service, came, who)
    if isinstance(choice, LaunchRefusal):
        return refused_page(service, request, choice)
    token = launch_token(service, came.launch.id)
    if choice is None:
        return framed_page(service, request, "connect_first.html.j2", token=token, came=came)
    return framed_page(
        service,
        request,
        "choose.html.j2",
        token=token,
        came=came,
        course=course(service.store, choice.context.course_id),
        tasks=_tasks(service, choice.context),
        several=choice.asked.accept_multiple,
        error=error,
    )


def answer_page(
    service: WebService, request: Request, came: Arrival, who: Account, chosen: Collection[int]
) -> HTMLResponse:
    """The signed answer on its way to the platform, or the choice again where nothing fit was chosen."""
    choice = _choice(service, came, who)
    if not isinstance(choice, _Choice):
        return choice_page(service, request, came, who)
    tasks = [one for one in _tasks(service, choice.context) if one.id in chosen]
    if not tasks or (len(tasks) > 1 and not choice.asked.accept_multiple):
        error = gettext("Choose one task.") if tasks else gettext("Choose a task.")
        return choice_page(service, request, came, who, error)
    items = [
        content_item(
            LinkedTask(one.id, one.terms.title, one.terms.opens_at, one.terms.due_at),
            f"{service.site(request)}/lti/launch",
            with_line_item=choice.asked.accept_lineitem,
        )
        for one in tasks
    ]
    return framed_page(
        service,
        request,
        "answer.html.j2",
        form_action=choice.asked.deep_link_return_url,
        signed=answer(
            service.tool_keys, came.platform.terms, came.message.deployment_id, choice.asked, items
        ),
        tasks=tasks,
        came=came,
    )


def _choice(service: WebService, came: Arrival, who: Account | None) -> _Choice | LaunchRefusal | None:
    """What may be chosen from, and what the platform takes; None: the course is not connected yet."""
    asked = came.message.deep_linking
    if not came.teaches or asked is None:
        return LaunchRefusal(
            gettext("For instructors"), gettext("Who teaches the course chooses its content.")
        )
    if LINK not in asked.accept_types:
        text = gettext(
            "The platform takes no links to tools here. Choose the content where activities are added."
        )
        return LaunchRefusal(gettext("Nothing that could be chosen"), text)
    if platform_address(asked.deep_link_return_url) is not None:
        text = gettext(
            "The platform wants the answer at an address that is not safe: it must begin with https://."
        )
        return LaunchRefusal(gettext("Nothing that could be chosen"), text)
    found = None if who is None else connection_of(service, came)
    if found is None or who is None:
        return None
    if enter(service.store, found, who.id, came.message.sub, came.message.role) is not Role.INSTRUCTOR:
        text = gettext("In the grader's course you are not an instructor. Who is one there can make you one.")
        return LaunchRefusal(gettext("For instructors"), text)
    return _Choice(found, asked)


def _tasks(service: WebService, found: PlatformContext) -> list[AssignedTask]:
    return [one for one in tasks_of(service.store, found.course_id) if not one.withdrawn]
