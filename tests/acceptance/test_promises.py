"""Every submission of every task gets the verdict of its folder and exactly the codes of its header, in a real run.

All of them take a machine of two cores half an hour. So what shows something for the first time is run first, the
cheapest that shows it; what shows it once more (`further`) is run after all other tests, and left out where a limit of
time is over by then.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from grader.catalog.courses.course_file import load_course
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.checks.rule import load_rules
from grader.judging.attempt_folder import open_attempt
from grader.judging.judge import regrade
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.run_options import Options
from grader.model.verify_case import VerifyCase
from grader.pipeline import Pipeline
from grader.promises.course_proof import judge_skeleton
from grader.promises.verification import Reuse, Verification, clock_decides, verify
from grader.report.audience import Audience
from grader.report.json_report import to_json
from tests.acceptance.conftest import Cli
from tests.twice import AGAIN

CHEAPEST_FIRST = (
    "ddp-toy",
    "gradient-averaging",
    "gradient-descent",
    "ring-all-reduce",
    "single-gpu",
    "fsdp",
)
"""By what one run takes; tasks that are not named come after these."""
TOGETHER = 24
"""So many take no more than a few minutes: what has begun is never cut short."""
DIGITS = Options(dataset="digits", timed=False)
TASKS = {name: load_task(name) for name in find_tasks()}


def told_first() -> tuple[list[tuple[str, PromisedSubmission]], list[tuple[str, PromisedSubmission]]]:
    """Submissions that show a code, or an ending of their task, which no cheaper one shows; and all others."""
    tasks = sorted(TASKS, key=lambda name: name not in CHEAPEST_FIRST)
    first, further, shown = [], [], set[object]()
    for name in (*CHEAPEST_FIRST, *tasks[len(CHEAPEST_FIRST) :]):
        for promised in submissions_of(TASKS[name]):
            shows = {*promised.codes, (name, promised.verdict)}
            if shows - shown or is_reference(name, promised):
                first.append((name, promised))
            else:
                further.append((name, promised))
            shown |= shows
    return first, further


def runtime_of(task: str) -> str:
    return "docker" if TASKS[task].profiles[0].nnodes > 1 else "process"


def is_reference(task: str, promised: PromisedSubmission) -> bool:
    return (TASKS[task].folder / "submissions" / TASKS[task].reference).with_suffix(
        ""
    ) == promised.path.with_suffix("")


def needs_clock(task: str, promised: PromisedSubmission) -> bool:
    """Whether it is run with the clock, alone: where that decides, and of the accepted ones the reference."""
    decides = clock_decides(TASKS[task], promised)
    return decides and (
        promised.verdict != Verdict.ACCEPTED or promised.points is not None or is_reference(task, promised)
    )


FIRST, FURTHER = told_first()


def submissions_to_judge(task: str, further: bool) -> list[PromisedSubmission]:
    return [promised for name, promised in (FURTHER if further else FIRST) if name == task]


@dataclass(frozen=True)
class Proving:
    """Judges submissions of a task side by side, once a test asks for one of them; `folder`: for their attempts."""

    folder: Path

    def case(self, task: str, promised: PromisedSubmission, further: bool) -> VerifyCase:
        """What was found out about one, with some of its neighbours."""
        part = submissions_to_judge(task, further).index(promised) // TOGETHER
        return self._judge(task, further, part)[promised.name]

    @cache  # noqa: B019  one object, which lives as long as the module
    def _judge(self, task: str, further: bool, part: int) -> dict[str, VerifyCase]:
        mine = submissions_to_judge(task, further)[part * TOGETHER : (part + 1) * TOGETHER]
        # Once more after a failure: promises that held have left their evidence, and only the others run.
        reuse = Reuse.WHERE_KEPT if AGAIN in os.environ else Reuse.NEVER
        found: dict[str, VerifyCase] = {}
        for timed in (False, True):
            some = [promised for promised in mine if needs_clock(task, promised) == timed]
            folder = self.folder / f"{task}-{further}-{part}-{timed}"
            how = Verification(replace(DIGITS, timed=timed), runtime_of(task), reuse, 3, folder)
            todo = [(TASKS[task], promised) for promised in some]
            cases = verify(todo, how, lambda _sign: None, lambda _case: None) if todo else ()
            found |= {promised.name: case for promised, case in zip(some, cases, strict=True)}
        return found


@pytest.fixture(scope="module")
def proving(tmp_path_factory: pytest.TempPathFactory) -> Proving:
    return Proving(tmp_path_factory.mktemp("kept"))


PROMISES = [
    *(pytest.param(task, promised, False, id=f"{task}-{promised.name}") for task, promised in FIRST),
    *(
        pytest.param(task, promised, True, id=f"{task}-{promised.name}", marks=pytest.mark.further)
        for task, promised in FURTHER
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "promised", "further"), PROMISES)
def test_each_submission_keeps_its_promise(
    task: str, promised: PromisedSubmission, further: bool, proving: Proving, request: pytest.FixtureRequest
) -> None:
    if runtime_of(task) == "docker":
        request.getfixturevalue("docker_images")
    case = proving.case(task, promised, further)
    assert (case.ok, case.message, case.skipped) == (True, "", "")
    (folder,) = proving.folder.rglob(f"[0-9][0-9][0-9]-{task}-{promised.name.replace('/', '-')}")
    # The same evidence judged again gives the same bytes, and every report was rendered.
    again = regrade(open_attempt(folder))
    assert to_json(again.grade, audience=Audience.STAFF) == (folder / "grade.json").read_text("utf-8")
    assert again.grade.verdict == promised.verdict
    if again.grade.verdict is Verdict.ACCEPTED:
        assert [f.code for f in again.grade.findings if f.severity is Severity.ERROR] == []
    else:
        assert again.grade.points < again.grade.max_points, "what stands against acceptance costs points, too"
    assert again.grade.verdict_reason.split()[0] in (folder / "report.html").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_no_skeleton_passes_unchanged(task: str, request: pytest.FixtureRequest) -> None:
    if runtime_of(task) == "docker":
        request.getfixturevalue("docker_images")
    with Pipeline(runtime_of(task)) as pipeline:
        skeleton = judge_skeleton(DIGITS, pipeline, TASKS[task], lambda _sign: None)
    assert skeleton.problem == ""


@pytest.mark.slow
@pytest.mark.further
def test_the_whole_course_is_proved(cli: Cli, cli_env: dict[str, str], docker_images: object) -> None:
    """`grader course check`: every promise, in containers too where it is a reference, and every point within reach.

    What was judged just now is judged again from its evidence; the clock was looked at there.
    """
    cli_env["GRADER_EVIDENCE_DIR"] = os.environ["GRADER_EVIDENCE_DIR"]
    arguments = ("--cache", "--no-time", "--jobs", 3, "--dataset", "digits", "--json")
    done = cli("course", "check", *arguments, timeout_s=3600)
    assert done.stdout, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert all("its time, which was left out" in text for text in told["unproved"]), told["unproved"]
    course = {item.task for item in load_course().items}
    assert {case["task"] for case in told["cases"]} == course
    assert {skeleton["task"] for skeleton in told["skeletons"]} == course


def test_every_rule_of_the_task_has_a_flawed_submission() -> None:
    # What a task picks out it shows itself; whatever can stand against acceptance is shown somewhere.
    everywhere = {code for _, promised in (*FIRST, *FURTHER) for code in promised.codes}
    assert {rule.code for rule in load_rules() if rule.severity is Severity.ERROR} <= everywhere
    for name, task in TASKS.items():
        picked = set(task.checks)
        shown = {code for of, promised in (*FIRST, *FURTHER) if of == name for code in promised.codes}
        assert picked <= shown, name
