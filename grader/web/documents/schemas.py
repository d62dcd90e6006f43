"""The API's documents: what programs send and are sent. Keys that are not named here are refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from grader.checks.rubric_step import Sight
from grader.model.grade import Verdict
from grader.store.tables.api_token import Scope
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.course_task import LatePolicy
from grader.store.tables.person import Role
from grader.web.documents.document import Document, Received


class FileIn(Received):
    """A script to hand in."""

    path: Annotated[str, Field(min_length=1, max_length=200, examples=["train.py"])]
    text: Annotated[str, Field(max_length=1 << 20, examples=["import torch\n"])]


class SubmissionIn(Received):
    """A submission: one script of any name, or several with `train.py` among them."""

    name: Annotated[str, Field(max_length=200)] = "train"
    files: Annotated[list[FileIn], Field(min_length=1, max_length=64)]


class ErrorDetail(Document):
    """What stands in the way; `kind` is stable, `message` is for people, `lifted_at`: when it does so no longer."""

    kind: str
    message: str
    lifted_at: datetime | None = None


class ErrorOut(Document):
    """An error."""

    error: ErrorDetail


class MeOut(Document):
    """Who the token or session belongs to, and how far it goes (`scope` null: a browser's session)."""

    id: int
    login: str
    name: str
    role: Role
    scope: Scope | None


class CourseOut(Document):
    """A course and the caller's role in it (null: administrators see all)."""

    id: int
    name: str
    title: str
    role: Role | None
    closed: bool
    draft: bool
    archived: bool


class TaskOut(Document):
    """A task of a course, on what terms it is set; `opens_at`, `due_at`: for everybody, extensions are not in it.

    `draft`: only the course's instructors see it. `exam_minutes`: it is an exam, with so long of one's own from the
    moment when one begins it. `grace_minutes`: for so long after `due_at` it is not late yet.
    """

    id: int
    course_id: int
    task: str
    title: str
    profile: str
    position: int
    draft: bool
    required: bool
    weight: float
    opens_at: datetime | None
    due_at: datetime | None
    late_policy: LatePolicy
    max_per_day: int | None
    max_total: int | None
    max_concurrent: int | None
    grace_minutes: int | None
    exam_minutes: int | None


class FindingOut(Document):
    """What the source alone gives away; see the rule's page for the code.

    Read for a task, `severity` is what it comes to there: `error` stands in the way of acceptance, `warning` costs the
    points that `costs` tells, `hint` is free.
    """

    code: str
    severity: Literal["error", "warning", "hint", "review"]
    message: str
    hint: str
    costs: list[str] = Field(default_factory=list)
    path: str | None
    line: int | None
    column: int | None


class FindingsOut(Document):
    """Findings of the source, gravest first."""

    findings: list[FindingOut]


class StepOut(Document):
    """One item of a task's rubric as far as the text goes, and what is missing or where it stands."""

    id: str
    title: str
    must: bool
    points: float
    sight: Sight
    says: str


class ReadingOut(Document):
    """What reading a submission shows for a task: findings, and its items in the order in which to do them.

    `steps` is empty where the text is not Python, and for tasks that are not open yet.
    """

    findings: list[FindingOut]
    steps: list[StepOut]


class PlaceOut(Document):
    """Where an attempt stands in the queue: 1 is next; `starts_in_s` null: not known."""

    position: int
    starts_in_s: float | None


class AcceptedOut(Document):
    """A submission that was taken.

    `findings` null: the service is busy taking submissions; `findings_url` has them. `place` null: not known, or it
    does not wait. `attempts_left`: how many the learner still has, such as `2 of 3 left today`; "" where none are
    counted, null where the service is too busy to look.
    """

    submission_id: int
    attempt_id: int
    state: AttemptState
    late_days: int
    attempts_left: str | None
    repeated: bool
    place: PlaceOut | None
    findings: list[FindingOut] | None
    url: str
    findings_url: str


class AttemptOut(Document):
    """An attempt: `verdict` and `points` are what counts, `judged_…` what the judge gave; `outcome` says both.

    All of them null: not judged, or not told yet (`hidden_until`). `comment_points`: what comments of staff change of
    the judged points, unless those were overridden. `free_days`: so many of `late_days` cost nothing. `question`: what
    its learner was asked while it is held, and has not answered.
    """

    id: int
    submission: str
    digest: str
    course_id: int
    course_task_id: int
    task: str
    task_version: str
    profile: str
    lane: Lane
    state: AttemptState
    phase: str | None
    place: PlaceOut | None
    queued_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    cancel_requested: bool
    verdict: Verdict | None
    points: float | None
    max_points: float | None
    judged_verdict: Verdict | None
    judged_points: float | None
    late_days: int | None
    late_loss: float | None
    free_days: int | None
    comment_points: float | None
    overridden: bool | None
    held_since: datetime | None
    earlier_scale: bool | None
    outcome: str | None
    hidden_until: datetime | None
    question: str | None = None
    login: str | None = None
    person: str | None = None
    worker: str | None = None
    tries: int | None = None
    failure: str | None = None


class EventOut(Document):
    """Something that happened to an attempt; numbers go up by one."""

    seq: int
    kind: str
    at: datetime
    data: dict[str, Any]


class CancelOut(Document):
    """What a cancel did: `cancelled`, `requested` (its run is being ended) or `too_late`."""

    result: Literal["cancelled", "requested", "too_late"]


class RegradeOut(Document):
    """A regrade that was asked for."""

    batch: str


class CellOut(Document):
    """Where one learner stands in one task."""

    course_task_id: int
    num_attempts: int
    attempt_id: int | None
    points: float
    max_points: float
    verdict: Verdict | None
    late_days: int
    overridden: bool
    outcome: str | None


class LearnerOut(Document):
    """One row of a gradebook."""

    person_id: int
    login: str
    name: str
    cells: list[CellOut]


class GradebookOut(Document):
    """People × tasks of a course."""

    tasks: list[TaskOut]
    learners: list[LearnerOut]


class PasswordIn(Received):
    """Who wants a token, and what it is to be called: another one of that name ends with it."""

    login: Annotated[str, Field(min_length=1, max_length=200, examples=["anna"])]
    password: Annotated[str, Field(min_length=1, max_length=256, examples=["correct horse battery"])]
    name: Annotated[str, Field(min_length=1, max_length=120, examples=["grader on my laptop"])] = "grader"


class TokenOut(Document):
    """A token, told this once."""

    token: str
    name: str
    scope: Scope
    expires_at: datetime | None


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorOut, "description": words}
    for status, words in (
        (400, "What was sent is no submission; the message says what to do."),
        (401, "No token, or one that opens nothing."),
        (403, "The token does not reach that far, or the course does not allow it."),
        (404, "There is no such thing, or it is not the caller's."),
        (409, "It contradicts what is there."),
        (413, "It is too large."),
        (422, "It is not of the form that is described here."),
        (429, "Too often; Retry-After says when to come again."),
        (503, "Something the service needs is away; Retry-After says when to come again."),
    )
}
"""What every route may answer besides."""
