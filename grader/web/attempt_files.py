"""Which files of an attempt may be had by whom: a learner gets report, grade without what is for staff, and source."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass

from markupsafe import Markup

from grader.report.audience import Audience, for_audience
from grader.report.json_report import from_json
from grader.report.words import banner
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import StoredAttempt, attempt, files_of
from grader.store.attempts.submissions import source_of
from grader.store.grading.grades import grade_of
from grader.store.grading.reviews import overrides_of
from grader.translation import ENGLISH, N_, gettext, in_language
from grader.web import stored_report
from grader.web.documents.counted_grade import with_counts
from grader.web.service import WebService
from grader.web.stored_report import InForce

_LEARNERS = {
    stored_report.REPORT: (N_("The report as one file"), "text/html"),
    "grade-learner.json": (
        N_("The grade, for programs: as it was judged, and what counts"),
        "application/json",
    ),
}
_STAFF = {
    stored_report.STAFF_REPORT: (N_("The report for staff"), "text/html"),
    "grade.json": (N_("The whole grade: as it was judged, and what counts"), "application/json"),
    "evidence.tar.gz": (N_("All evidence"), "application/gzip"),
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
        OfferedFile(one.name, gettext(wanted[one.name][0]), one.size)
        for one in files_of(service.store, facts.id)
        if one.name in wanted
    )


@in_language(ENGLISH)
def file_of(service: WebService, facts: StoredAttempt, name: str, *, staff: bool) -> tuple[bytes, str] | None:
    """Bytes and media type of an offered file, or None: there is none of that name for this visitor.

    They are the same in whatever language the visitor reads pages.

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
    if media_type == "application/json":
        result = results_of(service.store, [facts.id]).get(facts.id)
        data = with_counts(data.decode(), result).encode()
    elif media_type == "text/html" and (told := _in_force(service, facts, staff=staff)) is not None:
        data = stored_report.with_result(data, told)
    return data, media_type


def _in_force(service: WebService, facts: StoredAttempt, *, staff: bool) -> InForce | None:
    """What counts, for a report; None where that is what was judged, on the scale of today."""
    result, stored = results_of(service.store, [facts.id]).get(facts.id), grade_of(service.store, facts.id)
    if result is None or (result.as_judged and not result.earlier_scale):
        return None
    try:
        grade = None if stored is None else from_json(stored.document)
    except ValueError:
        grade = None
    audience = Audience.STAFF if staff else Audience.LEARNER
    decision = next((one for one in overrides_of(service.store, facts.id) if one.withdrawn_at is None), None)
    panel = service.templates.get_template("verdict_panel.html.j2").render(
        result=result,
        reason="" if grade is None else for_audience(grade, audience).verdict_reason,
        decision=decision,
    )
    by = (decision.actor if decision else None) or "an instructor"
    rows = service.templates.get_template("points_below.html.j2").render(lines=banner.sum_lines(result, by))
    return InForce(
        title=f"{banner.sentence(result)}: {facts.submission} · {facts.task}",
        panel=Markup(panel),
        rows=Markup(rows),
        otherwise=result.otherwise,
    )


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
