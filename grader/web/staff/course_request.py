"""A request for a staff page: the course that it is about, and who asks. One dependency for all such pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from grader.store.courses.courses import AssignedTask, CourseFacts, tasks_of
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.web import flash
from grader.web.security.access import CourseInPath, CourseReader, CourseStaff, Visitor, not_found
from grader.web.service import ServiceDep, WebService

_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class CourseRequest:
    """A course and whoever of its staff asks for a page of it, with short ways to answer."""

    http: Request
    service: WebService
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

    @property
    def learners(self) -> Learners | None:
        """Those whom the asker is shown; None: everybody who ever handed anything in."""
        return self.visitor.learners(self.course.id)

    @property
    def shown(self) -> Learners:
        """The same where it is about those alone who learn in the course now."""
        return self.learners or ALL_LEARNERS

    def tasks(self) -> tuple[AssignedTask, ...]:
        """The course's tasks in their order."""
        return tasks_of(self.service.store, self.course.id)

    def task(self, course_task_id: int) -> AssignedTask:
        """A task of this course; 404 for one of another."""
        for one in self.tasks():
            if one.id == course_task_id:
                return one
        raise not_found()

    def page(self, template: str, context: Mapping[str, Any], status_code: int = 200) -> HTMLResponse:
        """A page of this course; it knows whether its reader `teaches` the course, or `grades` its learners.

        And whether `local_passwords` open anything here.
        """
        return self.service.render(
            self.http,
            f"staff/{template}",
            visitor=self.visitor,
            status_code=status_code,
            zone=self.course.zone,
            course=self.course,
            at=self.at,
            teaches=self.visitor.teaches(self.course.id),
            grades=self.visitor.grades(self.course.id),
            local_passwords=self.service.sign_on.local_passwords,
            **context,
        )

    def download(self, name: str, media_type: str, data: bytes) -> Response:
        """A file to be kept, under the course's name."""
        called = _PLAIN.sub("_", self.course.name)[:60]
        headers = {"Content-Disposition": f'attachment; filename="{called}-{name}"'}
        return Response(data, media_type=media_type, headers=headers)

    def redirect(self, place: str, text: str = "", *, kind: str = "done") -> RedirectResponse:
        """On to a page below the course's address, with a message."""
        return flash.redirect(f"{self.at}/{place}", self.service.secret, text, kind=kind)


async def course_request(
    http: Request, service: ServiceDep, visitor: CourseStaff, found: CourseInPath
) -> CourseRequest:
    """The course in the path, for its instructors; not there for others."""
    return CourseRequest(http, service, visitor, found)


async def reader_request(
    http: Request, service: ServiceDep, visitor: CourseReader, found: CourseInPath
) -> CourseRequest:
    """The same for all of its staff: what they get is of `learners` alone."""
    return CourseRequest(http, service, visitor, found)


CourseRequestDep = Annotated[CourseRequest, Depends(course_request)]
ReaderRequestDep = Annotated[CourseRequest, Depends(reader_request)]
