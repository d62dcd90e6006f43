"""Everything that is kept about whoever asks, as one zip file for themselves."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from grader.store.events import audit
from grader.web.archives.folder_names import plain_name
from grader.web.archives.personal_archive import personal_archive
from grader.web.archives.streamed_zip import streamed_zip
from grader.web.security.access import SignedIn
from grader.web.service import ServiceDep

router = APIRouter()


@router.get("/account/data.zip")
def data_zip(service: ServiceDep, visitor: SignedIn) -> StreamingResponse:
    """The visitor's own data, packed while it is sent."""
    account = visitor.account
    with service.store.write() as connection:
        audit(connection, f"person:{account.id}", "data_downloaded", actor_id=account.id)
    return StreamingResponse(
        streamed_zip(personal_archive(service, visitor)),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{plain_name(account.login)}-data.zip"'},
    )
