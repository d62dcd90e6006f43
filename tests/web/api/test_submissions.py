"""Programs hand in through the API, and get a receipt with what the source gives away."""

from __future__ import annotations

import json
from itertools import takewhile

import pytest

from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.tables.api_token import Scope
from grader.web.security.rate_limits import SCRIPT_CHECKS
from tests import promised
from tests.web.conftest import SCRIPT, School


def _document(text: str = SCRIPT, **more: object) -> dict[str, object]:
    return {"name": "mine", "files": [{"path": "train.py", "text": text}], **more}


def test_a_submission_is_taken_with_its_place_and_findings(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    text = promised.text("ddp-toy", "accepted/never_destroyed")
    answer = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=_document(text))
    assert answer.status_code == 202, answer.text
    receipt = answer.json()
    assert receipt["state"] == "queued"
    assert receipt["place"] == {"position": 1, "starts_in_s": None}
    assert receipt["attempts_left"] == "", "nothing is counted here"
    told = {finding["code"]: finding for finding in receipt["findings"]}
    assert told["DIST002"]["severity"] == "warning", "this task makes it cost points"
    assert "points for “The group is taken down at the end”" in told["DIST002"]["costs"][0]
    assert program.get(receipt["url"]).json()["submission"] == "mine"
    assert program.get(receipt["findings_url"]).json()["findings"] == receipt["findings"]


def test_files_and_pasted_text_are_the_same_submission(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    address = f"/api/v1/course-tasks/{school.task}/submissions"
    by_file = program.post(address, files={"files": ("solution.py", SCRIPT.encode())})
    by_text = program.post(address, files={"text": (None, SCRIPT)})
    assert by_file.status_code == by_text.status_code == 202, by_file.text + by_text.text
    one, two = (program.get(answer.json()["url"]).json() for answer in (by_file, by_text))
    assert one["digest"] == two["digest"]
    assert one["submission"] == "solution"


def test_the_same_key_makes_one_attempt(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    address = f"/api/v1/course-tasks/{school.task}/submissions"
    headers = {"Idempotency-Key": "k1"}
    first, again = (program.post(address, json=_document(), headers=headers).json() for _ in range(2))
    assert again == {**first, "repeated": True, "place": again["place"]}
    other = program.post(address, json=_document("print(2)\n"), headers=headers)
    assert other.status_code == 409
    assert other.json()["error"]["kind"] == "key_reused"
    assert len(attempts(school.store, AttemptFilter())) == 1


def test_another_courses_task_is_not_there(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    answer = program.post(f"/api/v1/course-tasks/{school.other_task}/submissions", json=_document())
    missing = program.post("/api/v1/course-tasks/999999/submissions", json=_document())
    assert answer.status_code == missing.status_code == 404
    assert answer.json() == missing.json()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"files": []}',
        b'{"files": [{"path": "train.py", "text": "\\ud800"}]}',
        b'{"files": [{"path": "train.py", "text": "x", "mode": 511}]}',
        json.dumps(_document(more=1)).encode(),
        b'{"files": ' + b"[" * 50_000,
    ],
)
def test_what_is_no_submission_is_said_to_be_none(school: School, body: bytes) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    answer = program.post(
        f"/api/v1/course-tasks/{school.task}/submissions",
        content=body,
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["kind"] == "invalid"
    assert not attempts(school.store, AttemptFilter())


def test_a_check_says_what_the_task_asks_for_and_the_text_lacks(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    address = f"/api/v1/course-tasks/{school.task}/check"
    told = program.post(address, json=_document()).json()
    assert {step["sight"] for step in told["steps"] if step["id"] == "process-group"} == {"not_found"}
    assert told["steps"][0]["id"] == "process-group", "the first thing to do"
    assert "init_process_group" in told["steps"][0]["says"]
    right = program.post(address, json=_document(promised.text("ddp-toy", "accepted/flat_script"))).json()
    assert {step["sight"] for step in right["steps"] if step["must"]} <= {"seen", "run"}
    assert not attempts(school.store, AttemptFilter())


def test_what_cannot_run_is_not_queued(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    document = _document("def main(:\n")
    refused = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=document)
    assert refused.status_code == 400
    assert "not valid Python" in refused.json()["error"]["message"]
    assert "no attempt is spent" in refused.json()["error"]["message"]
    told = program.post(f"/api/v1/course-tasks/{school.task}/check", json=document).json()
    assert [finding["code"] for finding in told["findings"]] == ["SYNTAX"]
    assert told["steps"] == []
    assert not attempts(school.store, AttemptFilter())


def test_looking_without_handing_in_is_for_people_not_for_floods(school: School) -> None:
    program = school.program(school.token("anna", Scope.SUBMIT))
    # The bucket fills again meanwhile, so how many it takes depends on the machine.
    statuses = (
        program.post("/api/v1/lint", json=_document()).status_code for _ in range(SCRIPT_CHECKS.limit * 4)
    )
    taken = list(takewhile(lambda status: status == 200, statuses))
    assert SCRIPT_CHECKS.limit <= len(taken) < SCRIPT_CHECKS.limit * 4
    other = school.program(school.token("ben", Scope.SUBMIT))
    assert other.post("/api/v1/lint", json=_document()).status_code == 200
