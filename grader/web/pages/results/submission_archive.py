"""All that a class handed in, as one zip file that is packed while it is sent."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from grader.store.events import audit
from grader.web.archives.class_archive import ArchiveChoice, class_archive
from grader.web.archives.folder_names import plain_name
from grader.web.archives.streamed_zip import streamed_zip
from grader.web.security.access import not_found
from grader.web.staff.course_request import CourseRequestDep

router = APIRouter()


@router.get("/courses/{course_id}/exports/submissions.zip")
def submissions_zip(
    request: CourseRequestDep,
    task: str = "",
    which: Literal["current", "all"] = "current",
    names: Literal["login", "pseudonym"] = "login",
) -> StreamingResponse:
    """The scripts of one task, or of all; `which` attempts; who is called how. The audit has it."""
    if task and not (task.isascii() and task.isdigit()):
        raise not_found()
    tasks = (request.task(int(task)),) if task else request.tasks()
    store, course = request.service.store, request.course
    with store.write() as connection:
        audit(
            connection,
            f"course:{course.id}",
            "submissions_exported",
            actor_id=request.actor,
            course_task_id=tasks[0].id if task else None,
            which=which,
            names=names,
        )
    secret = request.service.secret if names == "pseudonym" else ""
    files = class_archive(store, course.id, ArchiveChoice(tasks, every=which == "all", secret=secret))
    called = f"{course.name}-{tasks[0].task}" if task else course.name
    return StreamingResponse(
        streamed_zip(files),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{plain_name(called)}-submissions.zip"'},
    )
