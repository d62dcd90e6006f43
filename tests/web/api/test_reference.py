"""The programming interface's page and docs/api.md: every example in them is run, and told is what holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings
from grader.store.queue import claims
from grader.store.tables.api_token import Scope
from grader.web.reference.operations import Operation, operations
from grader.web.reference.route_access import route_access
from tests.report.document import Document
from tests.store.campus import verdict_of
from tests.web.access_promises import needed_scope
from tests.web.conftest import School, Served
from tests.web.grades import graded
from tests.web.routes import ways

SCRIPT = "import torch\n\nprint(torch.__version__)\n"


def all_operations(school: School) -> list[Operation]:
    return [one for found in operations(school.app).values() for one in found]


def test_the_page_tells_every_operation_and_needs_nobody_elses_scripts(school: School) -> None:
    answer = school.client().get("/api")
    assert answer.status_code == 200
    told = Document(answer.text)
    assert not told.unbalanced
    assert "<script" not in re.sub(r'<script src="/static/[^"]+"[^>]*></script>', "", answer.text)
    document = school.client().get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}</code></h3>" in answer.text
    assert "/api" in school.client("anna").get("/account").text


def test_who_may_and_the_scope_are_what_routes_hold_to(school: School) -> None:
    told = route_access(school.app)
    for way in ways(school.app):
        if not way.is_api or way.path == "/api/v1/openapi.json" or way.access_rule is None:
            continue
        access = told[way.method.lower(), way.path]
        assert access.who == way.access_rule.value, way
        if access.scope is not None:
            assert access.scope is needed_scope(way), way


def run(command: str, served: Served, token: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "GRADER_URL": served.url, "GRADER_TOKEN": token}
    return subprocess.run(
        ["bash", "-c", command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_example_of_the_page_does_what_is_told(served: Served, tmp_path: Path) -> None:
    """With the token of whoever teaches; reading works, and what changes something is answered as it is told."""
    school = served.school
    first = school.judge(
        "anna", grade=graded(Verdict.REJECTED), files={"report-staff.html": b"<p>report</p>"}
    )
    assert first == 1, "the examples speak of attempt 1"
    token = school.token("ines")
    found = sorted(all_operations(school), key=lambda one: one.method == "DELETE")
    for one in found:
        marked = one.command.replace("curl ", "curl -sS -o /dev/null -w '%{http_code}' ", 1)
        done = run(marked, served, token, tmp_path)
        assert done.returncode == 0, (one.command, done.stderr)
        allowed = {one.answer.status, *(refusal.status for refusal in one.refusals)}
        assert done.stdout in ({one.answer.status} if one.method != "POST" else allowed), one.command


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def test_the_lines_of_the_docs_work(served: Served, repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs" / "api.md").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT)
    school = served.school
    tokens = {"submissions": school.token("anna", Scope.SUBMIT), "": school.token("ines", Scope.READ)}
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        token = next(token for part, token in tokens.items() if part in line)
        done = run(line, served, token, tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert done.stdout.startswith(("{", "[")), line


def test_the_program_of_the_docs_hands_in_and_waits(served: Served, repository: Path, tmp_path: Path) -> None:
    # The other one is of whoever is told by webhooks.
    program, _ = blocks((repository / "docs" / "api.md").read_text(encoding="utf-8"), "python")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "program.py").write_text(program)
    store = served.school.store
    over = threading.Event()

    def judge() -> None:
        while not over.wait(0.1):
            claimed = claims.claim(store, "w1", ("cpu",))
            if isinstance(claimed, claims.Claimed):
                grade = verdict_of(Verdict.ACCEPTED, 90.0)
                attempt_endings.finish(store, claimed.attempt_id, claimed.lease_token, grade)
                return

    worker = threading.Thread(target=judge)
    worker.start()
    try:
        token = served.school.token("anna", Scope.SUBMIT)
        done = run(f"{sys.executable} program.py", served, token, tmp_path)
    finally:
        over.set()
        worker.join(20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Accepted: 90 of 100"


@pytest.mark.parametrize("path", ["/api", "/api/v1/openapi.json"])
def test_it_names_no_course_and_nobody(school: School, path: str) -> None:
    text = school.client("ines").get(path).text
    assert "Distributed training" not in text
    assert "Olga" not in text
