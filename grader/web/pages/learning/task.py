"""A task: what to do, what may still be handed in, and how the attempts so far went."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response

from grader.notebooks.lab import lab_notebook
from grader.web.languages import read_languages
from grader.web.learner.open_task import open_task
from grader.web.learner.task_page import task_page
from grader.web.security.access import SignedIn, VisibleCourseTask, not_found
from grader.web.service import ServiceDep

router = APIRouter()

_FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
_NOTHING = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@router.get("/courses/{course_id}/tasks/{course_task_id}")
def page(request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> Response:
    """The task's page."""
    return task_page(request, service, visitor, found)


@router.get("/courses/{course_id}/tasks/{course_task_id}/skeleton")
def skeleton(service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> Response:
    """What one starts from: the script, or a zip file where there are several."""
    task = open_task(service, visitor, found)
    files = [] if task is None else _skeleton_files(task.skeleton)
    if task is None or not files:
        raise not_found()
    if len(files) == 1:
        return _attachment(files[0].read_bytes(), files[0].name, "text/x-python")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.relative_to(task.skeleton).as_posix(), file.read_bytes())
    return _attachment(packed.getvalue(), f"{task.name}.zip", "application/zip")


@router.get("/courses/{course_id}/tasks/{course_task_id}/notebook")
def notebook(request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> Response:
    """The task as a notebook to work in."""
    task = open_task(service, visitor, found)
    if task is None:
        raise not_found()
    statement = task.told_in(read_languages(request)).text
    text = lab_notebook(task, statement, service.public_url or str(request.base_url).rstrip("/"))
    return _attachment(text.encode(), f"{task.name}.ipynb", "application/x-ipynb+json")


@router.get("/courses/{course_id}/tasks/{course_task_id}/figures/{name}")
def figure(service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask, name: str) -> Response:
    """A figure of the statement: nothing else of the task's folder is served."""
    task = open_task(service, visitor, found)
    folder = None if task is None else task.folder / "figures"
    media = _FIGURES.get(Path(name).suffix)
    # Compared with what is there, so that no name becomes a path.
    if (
        folder is None
        or media is None
        or not folder.is_dir()
        or name not in {p.name for p in folder.iterdir()}
    ):
        raise not_found()
    headers = {"Content-Security-Policy": _NOTHING, "Cache-Control": "private, max-age=600"}
    return FileResponse(folder / name, media_type=media, headers=headers)


def _skeleton_files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts)
    )


def _attachment(content: bytes, name: str, media_type: str) -> Response:
    return Response(
        content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
