"""Whatever a learner writes: an answer in time wherever it is read, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.checks.limited_reading import BEFORE_RUN, WAITED_FOR, lint_within, problem_within
from grader.checks.source.syntax.problem import SyntaxProblem
from grader.judging.attempt_folder import read_facts
from grader.judging.judge import regrade
from grader.model.grade import Verdict
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.pipeline import Pipeline
from grader.readers import ReadingLimits
from grader.store import schema
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.database import Store
from grader.store.people import people, tokens
from grader.store.tables.api_token import Scope
from tests.bench.web_server import serving
from tests.untrusted.texts import TEXTS

ANSWER_S = 5.0
PATIENT = replace(WAITED_FOR, wall_s=60.0)
"""On a machine that does much else, the pages' own limits end with a plea to come again instead."""
SLOW = "one f-string"
"""Python's own parser takes minutes for it."""
CHECKED_LONG = "import torch.distributed as dist\ndist.init_process_group('gloo')\n" + "".join(
    f"def f{n}(m, x):\n    m.step()\n    x.backward()\n    dist.all_reduce(x)\n    return f{n * 7 % 1500}(m, x)\n"
    for n in range(1500)
)
"""Python's own parser reads it at once."""


def submission(text: str) -> Submission:
    return Submission("hostile", (SourceFile("train.py", text),))


def test_every_text_has_the_size_that_may_be_handed_in() -> None:
    assert {name for name, text in TEXTS.items() if not 500_000 < len(text.encode()) <= 1 << 20} == set()


def test_what_takes_too_long_is_told_with_what_to_do() -> None:
    problem = problem_within(PATIENT, submission(TEXTS[SLOW]))
    assert problem is not None
    assert "`train.py` could not be read within " in problem.refusal
    assert "no attempt is spent" in problem.refusal
    (finding,) = lint_within(PATIENT, submission(TEXTS[SLOW]))
    assert (finding.code, finding.severity.value) == ("SYNTAX", "error")
    assert "1,048,5" in finding.message, "it says how large the file is"
    assert "Hand in a file" in finding.hint


def test_the_file_that_takes_too_long_is_named() -> None:
    files = (SourceFile("helper.py", TEXTS[SLOW]), SourceFile("train.py", "import helper\n"))
    problem = problem_within(PATIENT, Submission("hostile", files))
    assert problem is not None
    assert problem.path == "helper.py"


def test_an_ordinary_script_is_read_by_the_same_way(repository: Path) -> None:
    text = (repository / "skeletons" / "ddp-fashion" / "train.py").read_text(encoding="utf-8")
    assert problem_within(PATIENT, submission(text)) is None
    assert {finding.code for finding in lint_within(PATIENT, submission(text))} != {"SYNTAX"}


def test_what_takes_too_long_to_check_is_not_called_an_error_of_its_text() -> None:
    little = ReadingLimits(cpu_s=0.7, wall_s=60)
    (finding,) = lint_within(little, submission(CHECKED_LONG))
    assert "is valid Python" in finding.message
    assert (
        "checking it took more than 0.7 s of processor time: it has 7,503 lines with 1,500 functions"
        in finding.message
    )
    assert "nothing was judged" in finding.message
    assert "lead to each other" in finding.hint
    problem = problem_within(little, submission(CHECKED_LONG))
    assert problem is not None
    assert problem.unread is not None
    assert SyntaxProblem.of_unread(*problem.unread) == problem


def test_what_was_not_read_is_still_told_of_stored_attempts() -> None:
    problem = SyntaxProblem.of_unread("train.py", "12 s of processor time", "it has 9 lines")
    assert (
        "`train.py` could not be read within 12 s of processor time: it has 9 lines"
        in problem.finding().message
    )


def test_memory_has_a_limit_too() -> None:
    little = ReadingLimits(cpu_s=20, wall_s=60, memory_bytes=64 << 20)
    # Python's parser says of it that it is nested too deeply.
    assert problem_within(little, submission(TEXTS["one long list"])) is not None
    problem = problem_within(little, submission(TEXTS["functions in a ring"]))
    assert problem is not None


def test_judging_rejects_what_it_cannot_read_and_says_the_same_when_it_judges_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.pipeline.BEFORE_RUN", ReadingLimits(cpu_s=0.5, wall_s=BEFORE_RUN.wall_s))
    task = load_task("ddp-toy")
    with Pipeline("process") as pipeline:
        attempt, workspace = pipeline.grade(
            task, submission(TEXTS[SLOW]), options=Options(), out=tmp_path / "attempt"
        )
    assert attempt.grade.verdict is Verdict.REJECTED
    (finding,) = attempt.grade.findings
    assert "could not be read within 0.5 s of processor time" in finding.message
    assert read_facts(workspace).unread is not None
    assert regrade(workspace, task).grade == attempt.grade


@dataclass(frozen=True, slots=True)
class Service:
    """A server of its own, with a course in it."""

    port: int
    course_task: int
    token: str
    store: Store

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder / 'grader.db'}"
    store = Store(url)
    schema.upgrade(store)
    task = load_task("ddp-toy")
    course = courses.add_course(store, "hostile", "Hostile")
    person = people.add_person(store, "mallory", "Mallory")
    enrolments.enrol(store, course, person)
    token = tokens.issue_token(store, person, "test", Scope.SUBMIT, lifetime_s=3600, actor_id=None)
    course_task = courses.set_task(store, course, task.name, "cpu", TaskTerms(task.title, task.version))
    with serving(url, folder) as port:
        yield Service(port, course_task, token, store)
    store.close()


async def _asked(service: Service, path: str, text: str) -> tuple[httpx.Response, float, list[float]]:
    """The answer, how long it took, and how long others waited for `/healthz` meanwhile."""
    waited: list[float] = []
    done = asyncio.Event()

    async def look() -> None:
        async with httpx.AsyncClient(base_url=service.url, timeout=30) as client:
            while not done.is_set():
                began = time.perf_counter()
                assert (await client.get("/healthz")).status_code == 200
                waited.append(time.perf_counter() - began)
                await asyncio.sleep(0.02)

    watch = asyncio.create_task(look())
    body = {"name": "hostile", "files": [{"path": "train.py", "text": text}]}
    content = json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=service.url, timeout=60, headers=headers) as client:
        began = time.perf_counter()
        answer = await client.post(path, content=content)
        took = time.perf_counter() - began
    done.set()
    await watch
    return answer, took, waited


@pytest.mark.slow
@pytest.mark.parametrize("way", ["check", "submissions"])
def test_every_text_is_answered_in_time_and_nobody_waits(service: Service, way: str) -> None:
    health, slowest, slow = [], {}, []
    for name, text in TEXTS.items():
        answer, took, waited = asyncio.run(
            _asked(service, f"/api/v1/course-tasks/{service.course_task}/{way}", text)
        )
        assert answer.status_code in {200, 202, 400, 422, 429, 503}, (name, answer.text[:300])
        health += waited
        slowest[name] = took
        if took > ANSWER_S:
            slow.append(f"{name}: {took:.1f} s")
        # Rate limits are for people; here each text is to be read.
        time.sleep(0.05)
    p99 = statistics.quantiles(health, n=100)[98]
    worst = max(slowest, key=lambda name: slowest[name])
    print(f"{way}: slowest {worst} {slowest[worst]:.2f} s; /healthz p99 {p99 * 1000:.0f} ms of {len(health)}")
    assert not slow
    assert p99 < 0.1


def test_what_cannot_be_read_costs_no_attempt(service: Service) -> None:
    path = f"/api/v1/course-tasks/{service.course_task}/submissions"
    before = len(attempts(service.store, AttemptFilter(), limit=100))
    answer, took, waited = asyncio.run(_asked(service, path, TEXTS[SLOW]))
    assert answer.status_code in {400, 422}
    assert "could not be read within " in answer.json()["error"]["message"]
    assert took < ANSWER_S
    assert statistics.median(waited) < 0.1, "others are answered meanwhile"
    assert len(attempts(service.store, AttemptFilter(), limit=100)) == before


@pytest.mark.slow
def test_lint_of_every_text_ends_in_time(tmp_path: Path) -> None:
    slow = []
    for name, text in TEXTS.items():
        path = tmp_path / "train.py"
        path.write_text(text, encoding="utf-8")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "grader", "lint", str(path), "--json"], capture_output=True, check=False
        )
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        assert done.returncode in {0, 1, 2}, (name, done.stderr[-300:])
        if took > ANSWER_S:
            slow.append(f"{name}: {took:.1f} s")
    assert not slow
