"""Which files of an attempt may be had by whom: a learner gets report, grade without what is for staff, and source."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass

from grader.store.attempts import StoredAttempt, attempt, files_of
from grader.store.submissions import source_of
from grader.web import stored_report
from grader.web.service import WebService

_LEARNERS = {
    stored_report.REPORT: ("The report as one file", "text/html"),
    "grade-learner.json": ("The grade for programs", "application/json"),
}
_STAFF = {
    stored_report.STAFF_REPORT: ("The report for staff", "text/html"),
    "grade.json": ("The whole grade", "application/json"),
    "evidence.tar.gz": ("All evidence", "application/gzip"),
}


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that is offered: its name, what it is, its size in bytes."""

    name: str
    about: str
    size: int


def offered_files(service: WebService, facts: StoredAttempt, *, staff: bool) -> tuple[OfferedFile, ...]:
    """What is offered on the attempt's page."""
    wanted = _LEARNERS | (_STAFF if staff else {})
    return tuple(
        OfferedFile(one.name, wanted[one.name][0], one.size)
        for one in files_of(service.store, facts.id)
        if one.name in wanted
    )


def file_of(service: WebService, facts: StoredAttempt, name: str, *, staff: bool) -> tuple[bytes, str] | None:
    """Bytes and media type of an offered file, or None: there is none of that name for this visitor.

    Raises:
        InfraError: it cannot be read.
    """
    wanted = _LEARNERS | (_STAFF if staff else {})
    found = next(
        (one for one in files_of(service.store, facts.id) if one.name == name and name in wanted), None
    )
    if found is None:
        return None
    data, media_type = service.files.get(found.digest), wanted[name][1]
    if facts.cached_from is not None:
        data = _under_own_name(service, facts, data, media_type)
    return data, media_type


def _under_own_name(service: WebService, facts: StoredAttempt, data: bytes, media_type: str) -> bytes:
    """A file of somebody else's attempt at the same scripts, with the submission called by its own name."""
    if media_type == "application/json":
        fields = {**json.loads(data), "submission": facts.submission}
        return (json.dumps(fields, indent=2, allow_nan=False) + "\n").encode()
    origin = None if facts.cached_from is None else attempt(service.store, facts.cached_from)
    if origin is None or media_type != "text/html":
        return data
    return stored_report.renamed(data, origin.submission, facts.submission)


def packed_source(service: WebService, facts: StoredAttempt) -> tuple[bytes, str, str] | None:
    """What was handed in, as (bytes, file name, media type): the script, or a zip file of several; None: it is gone."""
    source = source_of(service.store, facts.id)
    if source is None:
        return None
    if len(source.files) == 1:
        return source.files[0].text.encode(), source.files[0].path, "text/x-python"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in source.files:
            archive.writestr(file.path, file.text)
    return packed.getvalue(), f"attempt-{facts.id}.zip", "application/zip"
