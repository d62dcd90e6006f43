"""What workers bring that cannot reach the file store: few files of known names and bounded sizes, each with a receipt.

A file becomes an attempt's only when the attempt ends, and only with the receipt that was given for it under the same
lease: nobody makes a file of another attempt their own by naming its digest. No list of what was brought is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from grader.errors import InfraError
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.files import FileTooLargeError
from grader.web.monitoring.health import MIN_FREE_BYTES
from grader.web.security.body_limits import MAX_EVIDENCE_BYTES
from grader.web.service import WebService

GRADE = "grade.json"
MOST_BYTES = {
    "report.html": 32 << 20,
    "report-staff.html": 32 << 20,
    GRADE: 4 << 20,
    "grade-learner.json": 4 << 20,
    "evidence.tar.gz": MAX_EVIDENCE_BYTES,
}
_IN_MEMORY_BYTES = 1 << 20


async def receive(request: Request, name: str) -> IO[bytes]:
    """The request's body, whole, in a file without a name.

    Raises:
        HTTPException: there is no such file, or it is too large.
    """
    most = MOST_BYTES.get(name)
    if most is None:
        raise HTTPException(404, f"Attempts leave no {name}; they leave {', '.join(MOST_BYTES)}.")
    body = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - whoever gets it closes it
    try:
        async for part in request.stream():
            if body.tell() + len(part) > most:
                raise HTTPException(413, f"{name} may have {most} bytes.")
            await run_in_threadpool(body.write, part)
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


def keep(service: WebService, body: IO[bytes], name: str) -> StoredFile:
    """Put it into the file store.

    Raises:
        InfraError: there is no room for it, or it cannot be written.
        HTTPException: the store takes nothing that large.
    """
    free = shutil.disk_usage(service.state_dir).free
    if free < MIN_FREE_BYTES:
        raise InfraError(f"the state folder's disk has {free >> 20} MiB left: evidence is not taken")
    size = body.seek(0, 2)
    body.seek(0)
    try:
        return StoredFile(name, service.files.put(_parts(body)), size)
    except FileTooLargeError:
        raise HTTPException(413, f"{name} is larger than the store takes.") from None


def receipt(secret: str, attempt_id: int, lease_token: int, file: StoredFile) -> str:
    """What says that this file was brought for this attempt under this lease."""
    text = f"evidence {attempt_id} {lease_token} {file.name} {file.digest} {file.size}"
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def _parts(body: IO[bytes]) -> Iterator[bytes]:
    while part := body.read(_IN_MEMORY_BYTES):
        yield part
