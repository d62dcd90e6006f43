"""A learner and a CI job hand in from the command line: at once told what reading shows, then how it was judged."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import Grade, Verdict
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.store import events
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.grading import reviews
from grader.store.grading.grades import new_grade
from grader.store.queue import claims, queue
from grader.store.tables.api_token import Scope
from grader.store.tables.course_task import LatePolicy
from tests import promised
from tests.client.conftest import CHECKOUT, PASSWORD, Cli, Served

FLAWED = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.DataParallel(torch.nn.Linear(4, 2))
for x, y in batches:
    model(x).sum().backward()
dist.destroy_process_group()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my_train.py"
    path.write_text(FLAWED)
    return path


@pytest.fixture
def anna(served: Served) -> dict[str, str]:
    """What a CI job of hers sets."""
    token = served.school.token("anna", Scope.SUBMIT)
    return {"GRADER_URL": served.url, "GRADER_TOKEN": token}


def grade_of(verdict: Verdict) -> Grade:
    finding = Finding(
        "GRAD003", Severity.ERROR, EvidenceKind.TRACE, "DataParallel, not DDP.", "Wrap it in DDP."
    )
    return Grade(
        verdict=verdict,
        verdict_reason="Every item was verified."
        if verdict is Verdict.ACCEPTED
        else "An item was contradicted.",
        points=100.0 if verdict is Verdict.ACCEPTED else 40.0,
        max_points=100.0,
        task="ddp-toy",
        task_version="0" * 64,
        submission="my_train",
        digest="0" * 64,
        profile="cpu",
        dataset="",
        world_size=2,
        runtime="process",
        rubric=(),
        findings=() if verdict is Verdict.ACCEPTED else (finding,),
        checks=(),
        metrics={},
        phases={},
        environment={},
    )


@contextmanager
def judging(served: Served, verdict: Verdict | None) -> Iterator[None]:
    """Claims whatever comes, says a word while it runs, and judges it so (None: the grader fails)."""
    store, over = served.school.store, threading.Event()
    prepared = None if verdict is None else grade_of(verdict)

    def work() -> None:
        while not over.wait(0.05):
            claimed = claims.claim(store, "w1", ("cpu",))
            if not isinstance(claimed, claims.Claimed):
                continue
            said = ("log", {"rank": 0, "stream": "stdout", "text": "epoch 1\n"})
            events.add_live_events(store, claimed.attempt_id, claimed.lease_token, [said])
            if prepared is None:
                attempt_endings.fail(store, claimed.attempt_id, claimed.lease_token, "no room", retry=False)
                continue
            page = b"<!doctype html><title>report</title>"
            files = [StoredFile("report.html", served.school.files.put(page), len(page))]
            kept = new_grade(prepared, to_json(prepared, Audience.STAFF))
            attempt_endings.finish(store, claimed.attempt_id, claimed.lease_token, kept, files)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def handed_in(served: Served) -> int:
    return len(attempts(served.school.store, AttemptFilter(course_id=served.school.course)))


def test_a_password_is_sent_once_for_a_token_that_only_its_owner_reads(
    served: Served, cli: Cli, tmp_path: Path
) -> None:
    done = cli("login", served.url, "--login", "anna", typed=PASSWORD + "\n")
    assert done.returncode == 0, done.stderr
    assert "as anna" in done.stdout
    kept = tmp_path / "config" / "login.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert PASSWORD not in kept.read_text() + done.stdout + done.stderr
    token = re.search(r"grd_[\w-]+", kept.read_text())
    assert token is not None
    assert token[0] not in done.stdout + done.stderr
    assert cli("status").returncode == 0
    gone = cli("login", served.url, "--out")
    assert (gone.returncode, gone.stdout) == (0, "Signed out; the token is revoked.\n")
    assert served.school.program(token[0]).get("/api/v1/me").status_code == 401
    signed_out = cli("status")
    assert signed_out.returncode == 2
    assert "grader login" in signed_out.stderr


def test_signing_in_again_leaves_no_token_behind_that_nobody_knows(
    served: Served, cli: Cli, tmp_path: Path
) -> None:
    kept = tmp_path / "config" / "login.json"
    cli("login", served.url, "--login", "anna", typed=PASSWORD + "\n")
    first = json.loads(kept.read_text())["tokens"][served.url]
    cli("login", served.url, "--login", "anna", typed=PASSWORD + "\n")
    refused = cli("status", GRADER_URL=served.url, GRADER_TOKEN=first)
    assert refused.returncode == 2
    assert cli("status").returncode == 0


def test_a_token_of_the_account_page_signs_in_too(served: Served, cli: Cli) -> None:
    token = served.school.token("anna", Scope.SUBMIT)
    done = cli("login", served.url, "--token", typed=token + "\n")
    assert done.returncode == 0, done.stderr
    assert token not in done.stdout + done.stderr
    assert json.loads(cli("status", "--json").stdout)["attempts"] == []


def test_a_wrong_password_is_a_plain_answer(served: Served, cli: Cli, tmp_path: Path) -> None:
    done = cli("login", served.url, "--login", "anna", typed="not this one at all\n")
    assert done.returncode == 2
    assert "do not go together" in done.stderr
    assert not (tmp_path / "config" / "login.json").exists()


def test_a_token_never_passes_over_plain_http_to_another_machine(cli: Cli) -> None:
    done = cli("status", GRADER_URL="http://grader.example", GRADER_TOKEN="grd_x")
    assert done.returncode == 2
    assert "https" in done.stderr


def test_handing_in_says_at_once_what_reading_shows(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    done = cli("submit", "ddp-toy", script, **anna)
    assert done.returncode == 0, done.stderr
    assert "GRAD003" in done.stdout
    assert "torch.nn.DataParallel(torch.nn.Linear(4, 2))" in done.stdout, (
        "the line is quoted from the file at hand"
    )
    assert "queued, place 1" in done.stdout
    assert f"{served.url}/attempts/" in done.stdout


@pytest.mark.parametrize(
    ("verdict", "code", "word"),
    [(Verdict.ACCEPTED, 0, "accepted"), (Verdict.REJECTED, 1, "GRAD003"), (None, 4, "the grader failed")],
)
def test_waiting_ends_with_the_verdict_and_its_exit_code(
    served: Served,
    cli: Cli,
    anna: dict[str, str],
    script: Path,
    tmp_path: Path,
    verdict: Verdict | None,
    code: int,
    word: str,
) -> None:
    report = tmp_path / "report.html"
    with judging(served, verdict):
        done = cli("submit", "ddp-toy", script, "--wait", "--out", report, **anna)
    assert done.returncode == code, done.stdout + done.stderr
    assert word in done.stdout.casefold() or word in done.stdout
    assert report.exists() == (verdict is not None)


def test_before_it_is_sent_it_says_what_the_task_asks_for_and_the_text_lacks(
    served: Served, cli: Cli, anna: dict[str, str], tmp_path: Path
) -> None:
    skeleton = CHECKOUT / "skeletons" / "ddp-toy" / "train.py"
    checked = cli("submit", "ddp-toy", skeleton, "--check", **anna)
    assert checked.returncode == 1, checked.stderr
    told = " ".join(checked.stdout.split())
    assert "3 of 5 things that must be right are not in the text yet." in told
    assert told.index("init_process_group") < told.index("DistributedDataParallel")
    steps = json.loads(cli("submit", "ddp-toy", skeleton, "--check", "--json", **anna).stdout)["steps"]
    assert steps[0]["sight"] == "not_found"
    right = promised.script("ddp-toy", "accepted/flat_script", tmp_path)
    assert cli("submit", "ddp-toy", right, "--check", **anna).returncode == 0
    assert handed_in(served) == 0
    sent = cli("submit", "ddp-toy", skeleton, **anna)
    assert sent.returncode == 0
    assert sent.stdout.index("not in the text yet") < sent.stdout.index("attempt ")
    assert handed_in(served) == 1


def test_what_cannot_run_is_not_sent(served: Served, cli: Cli, anna: dict[str, str], tmp_path: Path) -> None:
    broken, huge = tmp_path / "broken.py", tmp_path / "huge.py"
    broken.write_text("def main(:\n")
    huge.write_bytes(b"#" * (20 << 20))
    (tmp_path / "folder").mkdir()
    for path, word in (
        (broken, "no attempt is spent"),
        (huge, "1 MiB"),
        (tmp_path / "folder", "has no train.py"),
    ):
        refused = cli("submit", "ddp-toy", path, **anna)
        assert refused.returncode == 2
        assert word in refused.stderr
    assert handed_in(served) == 0


def test_a_reader_that_leaves_early_loses_neither_report_nor_exit_code(
    served: Served, anna: dict[str, str], script: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    command = [
        sys.executable,
        "-m",
        "grader",
        "submit",
        "ddp-toy",
        str(script),
        "--wait",
        "--out",
        str(report),
    ]
    with judging(served, Verdict.ACCEPTED):
        environment = {
            **os.environ,
            "PYTHONPATH": str(CHECKOUT),
            "GRADER_CONFIG_DIR": str(tmp_path / "c"),
            **anna,
        }
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr is not None
            errors = process.stderr.read()
        assert process.returncode == 0, errors
    assert report.read_text().startswith("<!doctype html>")


def test_what_is_hidden_until_it_is_due_is_no_failure(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    school = served.school
    due = datetime.now(UTC) + timedelta(hours=1)
    terms = TaskTerms("Toy", "0" * 64, due_at=due, hidden_until_due=True)
    courses.set_task(school.store, school.course, "ddp-toy", "cpu", terms)
    with judging(served, Verdict.REJECTED):
        done = cli("submit", "ddp-toy", script, "--wait", **anna)
    assert done.returncode == 0, done.stderr
    assert f"not told until {due:%Y-%m-%d}" in done.stdout
    assert "An item was contradicted" not in done.stdout + done.stderr
    number = attempts(school.store, AttemptFilter())[0].id
    refused = cli("report", str(number), "--html", **anna)
    assert refused.returncode == 2
    assert f"when the task is due, on {due:%-d %B %Y, %H:%M} UTC." in refused.stderr.replace("\n", " ")


def test_when_the_next_attempt_is_free_is_said_once_with_its_zone(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    school = served.school
    terms = TaskTerms("Toy", "0" * 64, max_per_day=1)
    courses.set_task(school.store, school.course, "ddp-toy", "cpu", terms)
    queue.report_worker(school.store, "w1", ["cpu"], 1)
    first = cli("submit", "ddp-toy", script, **anna)
    assert "queued, place 1, starts at once" in first.stdout
    refused = cli("submit", "ddp-toy", script, **anna)
    assert refused.returncode == 2
    told = " ".join(refused.stderr.split())
    assert told.endswith("UTC.")
    assert len(re.findall(r"\d\d:\d\d", told)) == 1, told


def test_a_program_reads_the_grade_as_json(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    with judging(served, Verdict.REJECTED):
        done = cli("submit", "ddp-toy", script, "--wait", "--json", **anna)
    grade = json.loads(done.stdout)
    assert (grade["schema"], grade["verdict"]) == (2, "rejected")
    number = attempts(served.school.store, AttemptFilter())[0].id
    again = cli("report", str(number), "--json", **anna)
    assert json.loads(again.stdout) == grade
    assert "<!doctype html>" in cli("report", str(number), "--html", **anna).stdout
    shown = cli("report", str(number), **anna)
    assert "An item was contradicted." in shown.stdout
    listed = json.loads(cli("status", "--json", **anna).stdout)
    assert [one["id"] for one in listed["attempts"]] == [number]


def test_a_report_leads_with_what_counts_and_ends_with_its_exit_code(
    served: Served, cli: Cli, anna: dict[str, str], script: Path, tmp_path: Path
) -> None:
    school = served.school
    with judging(served, Verdict.ACCEPTED):
        assert cli("submit", "ddp-toy", script, "--wait", **anna).returncode == 0
    number = attempts(school.store, AttemptFilter())[0].id
    ines = school.people["ines"]
    reviews.override(school.store, number, Verdict.REJECTED, 80.0, "See me.", actor_id=ines)
    sentence = "Not accepted by an instructor: 80 of 100 (judged accepted, 100)"
    shown = cli("report", str(number), **anna)
    assert shown.returncode == 1
    assert sentence in shown.stdout.splitlines()[0]
    assert "As judged: Accepted." in shown.stdout
    told = cli("report", str(number), "--json", **anna)
    assert told.returncode == 1
    found = json.loads(told.stdout)
    assert (found["verdict"], found["points"], found["outcome"]) == ("rejected", 80.0, sentence)
    assert (found["judged_verdict"], found["judged_points"]) == ("accepted", 100.0)
    page = tmp_path / "report.html"
    assert cli("report", str(number), "--out", page, **anna).returncode == 1
    followed = cli("status", str(number), "--wait", **anna)
    assert followed.returncode == 1
    assert sentence in followed.stdout
    judged = school.program(anna["GRADER_TOKEN"]).get(f"/api/v1/attempts/{number}/grade").json()
    assert (judged["verdict"], judged["points"]) == ("accepted", 100.0), "the judge's own stays to be had"


def test_a_question_of_an_instructor_is_shown_with_where_to_answer(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    school = served.school
    with judging(served, Verdict.HELD):
        assert cli("submit", "ddp-toy", script, "--wait", **anna).returncode == 1
    number = attempts(school.store, AttemptFilter())[0].id
    assert "asks you" not in cli("status", **anna).stdout
    reviews.ask(school.store, number, "What is\nline 3 for?", author_id=school.people["ines"])
    for command in (["status"], ["status", f"{number}"], ["report", f"{number}"]):
        told = cli(*command, **anna).stdout
        assert "An instructor asks you: What is line 3 for?" in told
        assert f"/attempts/{number}#question" in told
    (listed,) = json.loads(cli("status", "--json", **anna).stdout)["attempts"]
    assert listed["question"] == "What is\nline 3 for?"
    reviews.answer(school.store, number, "Nothing.", author_id=school.people["anna"])
    assert "asks you" not in cli("status", **anna).stdout


def test_handing_in_late_ends_with_what_is_left_of_the_points(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    school = served.school
    due = datetime.now(UTC) - timedelta(hours=30)
    late = TaskTerms("Toy", "0" * 64, due_at=due, late_policy=LatePolicy.REDUCED, late_loss=0.05, max_total=3)
    courses.set_task(school.store, school.course, "ddp-toy", "cpu", late)
    with judging(served, Verdict.ACCEPTED):
        done = cli("submit", "ddp-toy", script, "--wait", **anna)
    assert done.returncode == 0, done.stderr
    assert "attempts: 2 of 3 left in all" in done.stdout
    assert "Accepted: 90 of 100 (judged 100; 2 days late, −10 %)" in done.stdout


def test_the_same_request_again_hands_nothing_in_twice(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    first = cli("submit", "ddp-toy", script, "--key", "build-17", "--json", **anna)
    again = cli("submit", "ddp-toy", script, "--key", "build-17", "--json", **anna)
    assert json.loads(first.stdout)["attempt"] == json.loads(again.stdout)["attempt"]
    assert json.loads(again.stdout)["repeated"]
    assert handed_in(served) == 1


def test_others_attempts_are_not_there(served: Served, cli: Cli, anna: dict[str, str]) -> None:
    bens = served.school.hand_in("ben")
    for command in (("status", str(bens)), ("report", str(bens))):
        done = cli(*command, **anna)
        assert done.returncode == 2
        assert f"has no attempt {bens} that you may see" in done.stderr


def test_a_task_that_no_course_sets_is_said_with_those_that_are(
    served: Served, cli: Cli, anna: dict[str, str], script: Path
) -> None:
    done = cli("submit", "ddp-tyo", script, **anna)
    assert done.returncode == 2
    assert "ddp-toy" in done.stderr
    assert handed_in(served) == 0


def test_a_revoked_token_says_how_to_sign_in(served: Served, cli: Cli) -> None:
    done = cli("status", GRADER_URL=served.url, GRADER_TOKEN="grd_" + "x" * 43)
    assert done.returncode == 2
    assert "grader login" in done.stderr
    assert "grd_" not in done.stderr
