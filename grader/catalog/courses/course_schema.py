"""The format of a course file: the shape of its tables, what each key means, and how one is written.

    name = "…"                      short: small letters, digits, - and _
    title = "…"                     one line
    about = "…"                     a sentence or two for people
    profile = "cpu"                 where attempts run, unless a task names its own
    late_days = { total = 5, per_task = 2 }     days that each learner may be late, in all and for one task, at no cost

    [[tasks]]                       in the order of the course
    task = "ddp-toy"                name of its folder beside this file
    weight = 10                     percent of the course's total; they add up to 100
    required = true                 the certificate needs it accepted
    after = ["single-gpu"]          tasks that come before it: advice that the task list shows, never a lock
    opens = "7d"                    after the course's first day: days, hours and minutes, "1d 2h 30m"
    due = "14d"                     likewise; left out: never

Only shapes are checked here; what keys mean to each other is `course_file`'s matter.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from grader.catalog.tasks.task_schema import Name, Text

After = Annotated[str, Field(pattern=r"^\d{1,4}[dhm]( \d{1,4}[dhm]){0,2}$", examples=["7d"])]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CourseItemTable(_Table):
    """`[[tasks]]`: a task of the course and its terms.

    `late` says what happens after the due date: `closed` takes nothing more, `accepted` takes and marks it, `reduced`
    takes `late_loss` of the points for each day begun; both end after `late_days`, where that is set.
    `hidden_until_due` keeps points from learners until then. What comes within `grace_minutes` of the due date is not
    late yet.
    """

    task: Annotated[Name, Field(examples=["ddp-toy"])]
    weight: Annotated[float, Field(ge=0, le=100, examples=[10])]
    profile: Annotated[Name, Field(examples=["cpu"])] | None = None
    required: bool = True
    after: Annotated[list[Name], Field(examples=[["ddp-toy"]])] = []
    opens: After = "0d"
    due: After | None = None
    late: Annotated[Literal["closed", "accepted", "reduced"], Field(examples=["closed"])] = "closed"
    late_loss: Annotated[float, Field(ge=0, le=1, examples=[0.1])] = 0.0
    late_days: Annotated[int, Field(ge=1, le=9999, examples=[3])] | None = None
    hidden_until_due: bool = False
    max_per_day: Annotated[int, Field(ge=1, examples=[20])] | None = None
    max_total: Annotated[int, Field(ge=1, examples=[100])] | None = None
    grace_minutes: Annotated[int, Field(ge=1, le=10080, examples=[15])] | None = None


class LateDaysTable(_Table):
    """`late_days`: days that each learner may be late at no cost, whole ones, used by themselves for what counts."""

    total: Annotated[int, Field(ge=1, le=365, examples=[5])]
    per_task: Annotated[int, Field(ge=1, le=365, examples=[2])] | None = None


class CourseTable(_Table):
    """The whole of a course file."""

    name: Annotated[Name, Field(examples=["data-parallelism"])]
    title: Annotated[Text, Field(examples=["Training on several GPUs"])]
    about: Annotated[Text, Field(examples=["What a learner can do afterwards, in a sentence."])]
    profile: Annotated[Name, Field(examples=["cpu"])] = "cpu"
    late_days: LateDaysTable | None = None
    tasks: Annotated[list[CourseItemTable], Field(min_length=1)]
