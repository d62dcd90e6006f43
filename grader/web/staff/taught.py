"""The course that a staff page is about, together with who looks at it: one door for all such pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse

from grader.store.courses import CourseFacts, SetTask, course, tasks_of
from grader.web import flash
from grader.web.site import Here, Site
from grader.web.visit import Id, Staff, Visitor, not_found


@dataclass(frozen=True, slots=True)
class Taught:
    """A course and the instructor or admin who looks at it, with short ways to answer."""

    request: Request
    site: Site
    visitor: Visitor
    course: CourseFacts

    @property
    def at(self) -> str:
        """Address of the course."""
        return f"/courses/{self.course.id}"

    @property
    def actor(self) -> int:
        """Id of who does something here."""
        return self.visitor.account.id

    def tasks(self) -> tuple[SetTask, ...]:
        """The course's tasks in their order."""
        return tasks_of(self.site.store, self.course.id)

    def task(self, course_task_id: int) -> SetTask:
        """A task of this course; 404 for one of another."""
        for one in self.tasks():
            if one.id == course_task_id:
                return one
        raise not_found()

    def page(self, template: str, context: Mapping[str, Any], status_code: int = 200) -> HTMLResponse:
        """A page of this course."""
        return self.site.render(
            self.request,
            f"staff/{template}",
            visitor=self.visitor,
            status_code=status_code,
            course=self.course,
            at=self.at,
            **context,
        )

    def send_on(self, place: str, text: str = "", *, kind: str = "done") -> RedirectResponse:
        """On to a page below the course's address, with a message."""
        return flash.send_on(f"{self.at}/{place}", self.site.secret, text, kind=kind)


async def taught(request: Request, site: Here, visitor: Staff, course_id: Id) -> Taught:
    """The course in the path, for its staff; not there for others."""
    found = await run_in_threadpool(course, site.store, course_id)
    if found is None:
        raise not_found()
    return Taught(request, site, visitor, found)


TaughtHere = Annotated[Taught, Depends(taught)]
