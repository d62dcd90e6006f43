"""What a worker's token opens: the attempts that its workers hold, within bounds, and nothing of anybody else's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from grader.catalog.data.datasets import prepare
from grader.catalog.data.transfer import OfferedData, take_data
from grader.catalog.tasks.kept_tasks import unpack_task
from grader.catalog.tasks.task_folders import load_task
from grader.json_reader import read_value
from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.store.attempts import attempt_endings, attempts
from grader.store.courses.task_versions import keep_version
from grader.store.events import events_of
from grader.store.files import FolderFiles
from grader.store.grading import grades
from grader.store.queue import claims
from grader.store.queue.worker_tokens import issue_worker_token
from grader.store.tables.attempt import AttemptState
from grader.web.api import worker
from grader.web.security.rate_limits import RateLimit
from grader.web.upload import evidence
from tests.report import factory
from tests.web.conftest import SCRIPT, School

JUDGED = factory.near_miss().grade
DOCUMENT = to_json(JUDGED, Audience.STAFF).encode()
ABSENT = 987_654


@dataclasses.dataclass
class Site:
    """The workers of one token."""

    school: School
    client: TestClient

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer: Any = self.client.request(method, f"/api/v1/worker{path}", **options)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        found: httpx.Response = answer
        return found

    def claim(self, name: str = "node1") -> dict[str, Any]:
        body = {"worker": name, "needs": ["cpu"], "lane": None, "fitting": None, "lease_s": 30}
        answer = self.ask("POST", "/claims", json=body)
        assert answer.status_code == 200, answer.text
        claimed: dict[str, Any] = answer.json()["claimed"]
        return claimed

    def bring(
        self, claimed: dict[str, Any], name: str = "grade.json", data: bytes = DOCUMENT
    ) -> httpx.Response:
        return self.ask("PUT", place(claimed, f"/files/{name}"), content=data)

    def finish(self, claimed: dict[str, Any], *files: dict[str, Any]) -> httpx.Response:
        return self.ask("POST", place(claimed, "/end"), json={"how": "finish", "files": list(files)})


def place(claimed: dict[str, Any], below: str = "") -> str:
    return f"/attempts/{claimed['attempt_id']}{below}?lease={claimed['lease_token']}"


Sites = Callable[[str], Site]
REQUESTS: dict[str, Callable[[Site, dict[str, Any]], httpx.Response]] = {
    "look": lambda site, claimed: site.ask("GET", place(claimed)),
    "heartbeat": lambda site, claimed: site.ask(
        "POST", place(claimed, "/heartbeat"), json={"phase": "run", "lease_s": 30}
    ),
    "events": lambda site, claimed: site.ask(
        "POST", place(claimed, "/events"), json={"events": [["phase", {"phase": "run"}]]}
    ),
    "source": lambda site, claimed: site.ask("GET", place(claimed, "/source")),
    "task": lambda site, claimed: site.ask("GET", place(claimed, "/task")),
    "data": lambda site, claimed: site.ask("GET", place(claimed, "/data")),
    "piece": lambda site, claimed: site.ask("GET", place(claimed, "/data/0")),
    "files": lambda site, claimed: site.bring(claimed),
    "finish": lambda site, claimed: site.finish(claimed),
    "fail": lambda site, claimed: site.ask(
        "POST", place(claimed, "/end"), json={"how": "fail", "reason": "x"}
    ),
    "give up": lambda site, claimed: site.ask("POST", place(claimed, "/end"), json={"how": "give_up"}),
}


def _piece(site: Site, claimed: dict[str, Any], number: int, offset: int) -> bytes:
    answer = site.ask("GET", f"{place(claimed, f'/data/{number}')}&offset={offset}")
    assert answer.status_code in (200, 204)
    return answer.content


@pytest.fixture
def sites(school: School) -> Iterator[Sites]:
    made: list[TestClient] = []

    def make(name: str) -> Site:
        client = school.program(issue_worker_token(school.store, name, lifetime_s=None))
        made.append(client)
        return Site(school, client)

    yield make
    for client in made:
        client.close()


def kept_files(school: School) -> list[Path]:
    assert isinstance(school.files, FolderFiles)
    return [path for path in school.files.root.rglob("*") if path.is_file()]


def test_every_request_about_an_attempt_is_tried_below(school: School) -> None:
    routes = {
        path for route in worker.router.routes if "{attempt_id}" in (path := getattr(route, "path", ""))
    }
    assert len(routes) == 9
    assert len(REQUESTS) == len(routes) + 2, "three ways to end"


def test_an_attempt_is_there_for_those_who_claimed_it(school: School, sites: Sites) -> None:
    ours, others = sites("ours"), sites("others")
    school.hand_in("anna", SCRIPT)
    held = ours.claim()
    school.hand_in("ben")
    beside = claims.claim(school.store, "node1", ("cpu",))
    assert isinstance(beside, claims.Claimed)
    for request, ask in REQUESTS.items():
        refused = [
            ask(others, held),
            ask(ours, {"attempt_id": beside.attempt_id, "lease_token": beside.lease_token}),
            ask(ours, {**held, "lease_token": held["lease_token"] + 1}),
            ask(ours, {**held, "attempt_id": ABSENT}),
        ]
        assert [answer.status_code for answer in refused] == [409] * 4, request
        assert len({answer.text for answer in refused}) == 1, f"one learns by {request} what there is"
    assert kept_files(school) == []
    for attempt_id in (held["attempt_id"], beside.attempt_id):
        facts = attempts.attempt(school.store, attempt_id)
        assert facts is not None
        assert (facts.state, facts.phase) == (AttemptState.RUNNING, "prepare")
    source = REQUESTS["source"](ours, held).json()["submission"]
    assert source["files"] == [{"path": "train.py", "text": SCRIPT}]
    assert REQUESTS["task"](ours, held).status_code == 204, "nobody kept its version"
    keep_version(school.store, school.files, load_task("ddp-toy"))
    packed = REQUESTS["task"](ours, held).content
    prepare("digits")
    offered = read_value(OfferedData, REQUESTS["data"](ours, held).json()["offered"])
    assert take_data(offered, lambda number, offset: _piece(ours, held, number, offset)).name == "digits"
    assert unpack_task("ddp-toy", load_task("ddp-toy").version, packed).name == "ddp-toy"
    for request, ask in REQUESTS.items():
        school.hand_in()
        answer = ask(ours, ours.claim())
        # There is no grade with it.
        assert answer.status_code == (422 if request == "finish" else 200), f"{request}: {answer.text}"


def test_who_comes_after_the_lease_has_passed_on_leaves_nothing(school: School, sites: Sites) -> None:
    site = sites("ours")
    school.hand_in()
    late = site.claim("slow")
    kept = site.bring(late).json()
    before = kept_files(school)
    attempt_endings.give_up(school.store, late["attempt_id"], late["lease_token"])
    attempt_id, num_events = late["attempt_id"], len(events_of(school.store, late["attempt_id"]))
    for taken_over in (False, True):
        if taken_over:
            assert site.claim("quick")["attempt_id"] == attempt_id
            num_events += 1
        for request, ask in REQUESTS.items():
            answer = site.finish(late, kept) if request == "finish" else ask(site, late)
            assert answer.status_code == 409, f"{request}: {answer.text}"
            assert answer.json()["error"]["kind"] == "conflict"
        assert kept_files(school) == before
        assert len(events_of(school.store, attempt_id)) == num_events
    facts = attempts.attempt(school.store, attempt_id)
    assert facts is not None
    assert (facts.state, facts.worker) == (AttemptState.RUNNING, "ours/quick")


def test_a_grade_that_is_brought_twice_is_one(school: School, sites: Sites) -> None:
    site = sites("ours")
    school.hand_in()
    claimed = site.claim()
    files = [site.bring(claimed).json(), site.bring(claimed, "evidence.tar.gz", b"archive").json()]
    for _ in range(2):
        assert site.finish(claimed, *files).json() == {"ending": "judged"}
    stored = grades.grade_of(school.store, claimed["attempt_id"])
    assert stored is not None
    assert (stored.verdict, stored.points, stored.document) == (
        JUDGED.verdict,
        JUDGED.points,
        DOCUMENT.decode(),
    )
    kept = attempts.files_of(school.store, claimed["attempt_id"])
    assert [(one.name, school.files.get(one.digest)) for one in kept] == [
        ("evidence.tar.gz", b"archive"),
        ("grade.json", DOCUMENT),
    ]
    assert site.bring(claimed).status_code == 409, "it is over"


def test_files_of_others_are_nobodys_to_name(school: School, sites: Sites) -> None:
    """Whoever knows a digest does not get the file, and no receipt serves twice for different things."""
    site = sites("ours")
    secret = school.files.put(b"evidence of another attempt")
    school.hand_in("anna")
    first = site.claim()
    grade = site.bring(first).json()
    elsewhere = site.bring(first, "report.html", b"of the first").json()
    school.hand_in("ben")
    second = site.claim()
    own = site.bring(second).json()
    stolen = {**own, "name": "evidence.tar.gz", "digest": secret, "size": 27}
    for files in ([own, stolen], [own, elsewhere], [grade]):
        assert site.finish(second, *files).status_code == 403
    assert site.finish(second, own).json() == {"ending": "judged"}


def _error(**changes: Any) -> bytes:
    return to_json(dataclasses.replace(JUDGED, **changes), Audience.STAFF).encode()


NO_GRADES = {
    "empty": b"",
    "another document": b"{}",
    "no text": b"\xff",
    "a judge error": _error(verdict=Verdict.JUDGE_ERROR),
    "more points than there are": _error(points=1e9),
    "no number": _error(max_points=float("nan")),
}


def test_what_is_no_grade_is_not_recorded(school: School, sites: Sites) -> None:
    site = sites("ours")
    school.hand_in()
    claimed = site.claim()
    for what, document in NO_GRADES.items():
        assert site.finish(claimed, site.bring(claimed, data=document).json()).status_code == 422, what
    assert grades.grade_of(school.store, claimed["attempt_id"]) is None
    good = site.bring(claimed).json()
    assert site.finish(claimed, good, good).status_code == 422, "each file once"
    assert site.finish(claimed, good).status_code == 200


def test_what_is_brought_is_bounded(school: School, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    site = sites("ours")
    school.hand_in()
    claimed = site.claim()
    monkeypatch.setitem(evidence.MOST_BYTES, "report.html", 1000)

    def unannounced() -> Iterator[bytes]:
        yield from [b"x" * 600] * 2

    for answer in (
        site.bring(claimed, "report.html", b"x" * 1001),
        site.ask("PUT", place(claimed, "/files/report.html"), content=unannounced()),
    ):
        assert answer.status_code == 413
    assert site.bring(claimed, "weights.pt", b"x").status_code == 404
    # More than any request may bring, but evidence.
    large = b"x" * (school.service.max_upload_bytes + 1)
    assert site.ask("POST", place(claimed, "/events"), content=large).status_code == 413
    assert kept_files(school) == []
    assert site.bring(claimed, "evidence.tar.gz", large).status_code == 200
    for events in (
        [["log", {"text": "x" * 300_000}]],
        [["judged", {}]],
        [["phase", {}]],
        [["log", {}]] * 5001,
    ):
        assert site.ask("POST", place(claimed, "/events"), json={"events": events}).status_code == 422
    assert [one.kind for one in events_of(school.store, claimed["attempt_id"])] == ["queued", "claimed"]


def test_a_full_disk_takes_no_evidence_and_says_when_to_come_again(
    school: School, sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = sites("ours")
    school.hand_in()
    claimed = site.claim()
    with monkeypatch.context() as full:
        full.setattr(evidence, "MIN_FREE_BYTES", 1 << 60)
        answer = site.bring(claimed)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert kept_files(school) == []
        # What takes no room goes on.
        assert REQUESTS["heartbeat"](site, claimed).status_code == 200
    assert site.bring(claimed).status_code == 200


def test_who_asks_too_often_is_told_when_to_come_again(
    school: School, sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WORKER_CLAIMS", RateLimit("claims", 2, 60))
    ours, others = sites("ours"), sites("others")
    body = {"worker": "n", "needs": ["cpu"], "lane": None, "fitting": None, "lease_s": 30}
    answers = [ours.ask("POST", "/claims", json=body) for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert others.ask("POST", "/claims", json=body).status_code == 200


def test_a_worker_is_told_of_a_cancel_and_of_a_drain(school: School, sites: Sites) -> None:
    from grader.store.queue.queue import drain_worker

    site = sites("ours")
    report = {"needs": ["cpu"], "slots": 1, "host": None}
    assert site.ask("PUT", "/hosts/node1", json=report).json() == {"drain": False}
    attempt_id = school.hand_in()
    claimed = site.claim()
    attempt_endings.cancel(school.store, attempt_id, actor_id=None)
    for request in ("look", "heartbeat"):
        assert REQUESTS[request](site, claimed).json() == {"answer": "cancel"}
    assert REQUESTS["give up"](site, claimed).json() == {"ending": "cancelled"}
    assert drain_worker(school.store, "ours/node1", actor_id=None)
    assert site.ask("PUT", "/hosts/node1", json=report).json() == {"drain": True}
    school.hand_in()
    assert site.claim() is None


def test_what_no_worker_is_called(school: School, sites: Sites) -> None:
    site = sites("ours")
    school.hand_in()
    for name in ("a/b", "..", "", "x" * 61, "w\n"):
        body = {"worker": name, "needs": ["cpu"], "lane": None, "fitting": None, "lease_s": 30}
        assert site.ask("POST", "/claims", json=body).status_code == 422, name
