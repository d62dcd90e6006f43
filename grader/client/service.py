"""The service over HTTP: one method per question, patience with a service that is busy, errors that say what to do.

A request that may be said twice is said again after 429, 502, 503, 504 and broken connections, as the service asks for
(Retry-After); handing in is such a request because it has a name. Redirects are not followed: a token goes to the
address it was made for and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from grader.client.answers import (
    AttemptAnswer,
    ChangesAnswer,
    EventAnswer,
    ReadingAnswer,
    SignInAnswer,
    SubmissionAnswer,
    TaskAnswer,
    findings_of,
)
from grader.client.credentials import Key
from grader.client.refusals import refusal
from grader.errors import InfraError, UsageError
from grader.http.connection import connection, is_hopeless, reason_of, retry_after
from grader.model.finding import Finding
from grader.model.submission import Submission
from grader.settings import settings

_AWAY = (502, 503, 504)
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0

Waiting = Callable[[float, str], None]


class Service:
    """A service and the key to it; use as a context manager."""

    def __init__(
        self, key: Key, *, patience_s: float | None = None, waiting: Waiting = lambda _s, _why: None
    ) -> None:
        """`patience_s`: for a busy service, None: $GRADER_PATIENCE_S; `waiting` hears of each pause and its reason."""
        self.url = key.url
        self._patience_s = settings().patience_s if patience_s is None else patience_s
        self._waiting = waiting
        self._http = connection(key.url, key.token, _TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ways_to_sign_in(self) -> SignInAnswer:
        """How people sign in there."""
        try:
            told = self._mapping("/sign-in")
        except UsageError:
            # A service of an earlier version knows passwords alone.
            return SignInAnswer(True, ())
        return SignInAnswer(bool(told["passwords"]), tuple(map(str, told["providers"])))

    def issue_token(self, login: str, password: str, name: str) -> str:
        """A token for whoever has this password."""
        body = {"login": login, "password": password, "name": name}
        return str(self._ask("POST", "/tokens", json=body).json()["token"])

    def end_token(self) -> bool:
        """End the token that this key is; False: it held no longer."""
        return bool(self._ask("DELETE", "/tokens").json().get("revoked"))

    def me(self) -> Mapping[str, Any]:
        """Whose token this is."""
        return self._mapping("/me")

    def tasks(self, course: str | None = None) -> tuple[TaskAnswer, ...]:
        """The tasks of all one's courses, or of the one of that name."""
        found: list[TaskAnswer] = []
        for one in self._list("/courses"):
            if course is not None and course.casefold() not in (str(one["name"]).casefold(), str(one["id"])):
                continue
            found += [
                TaskAnswer(
                    int(task["id"]),
                    str(task["task"]),
                    str(task.get("title", "")),
                    int(one["id"]),
                    str(one["name"]),
                )
                for task in self._list(f"/courses/{one['id']}/tasks")
            ]
        return tuple(found)

    def exam(self, course_task_id: int) -> Mapping[str, Any] | None:
        """One's own time in an exam: `minutes`, `begun_at`, `ends_at`, `closes_at`; None: the task is none."""
        answer: Mapping[str, Any] | None = self._ask("GET", f"/course-tasks/{course_task_id}/exam").json()
        return answer

    def begin_exam(self, course_task_id: int) -> Mapping[str, Any]:
        """Let one's own time begin; once more changes nothing."""
        answer: Mapping[str, Any] = self._ask("POST", f"/course-tasks/{course_task_id}/exam").json()
        return answer

    def hand_in(self, course_task_id: int, submission: Submission, *, key: str) -> SubmissionAnswer:
        """Hand in; the same `key` again never makes a second submission."""
        path = f"/course-tasks/{course_task_id}/submissions"
        answer = self._ask("POST", path, json=_body(submission), headers={"Idempotency-Key": key})
        return SubmissionAnswer.of(answer.json())

    def findings(self, attempt_id: int) -> tuple[Finding, ...]:
        """What the source of an attempt gives away."""
        return findings_of(self._list(f"/attempts/{attempt_id}/findings", "findings"))

    def check(self, course_task_id: int, submission: Submission) -> ReadingAnswer:
        """What the text shows for a task before it is handed in; nothing is kept."""
        path = f"/course-tasks/{course_task_id}/check"
        return ReadingAnswer.of(self._ask("POST", path, json=_body(submission)).json())

    def attempt(self, attempt_id: int) -> AttemptAnswer:
        """How an attempt stands."""
        return AttemptAnswer.of(self._mapping(f"/attempts/{attempt_id}"))

    def attempts(self) -> tuple[AttemptAnswer, ...]:
        """One's latest attempts, newest first."""
        return tuple(AttemptAnswer.of(one) for one in self._list("/attempts"))

    def events(self, attempt_id: int, after: int) -> tuple[EventAnswer, ...]:
        """What happened to an attempt since event number `after`."""
        found = self._list(f"/attempts/{attempt_id}/events", params={"after": after})
        return tuple(EventAnswer.of(one) for one in found)

    def grade(self, attempt_id: int) -> str:
        """The grade as JSON of schema 1."""
        return self._ask("GET", f"/attempts/{attempt_id}/grade").text

    def changes(self, attempt_id: int, since: int | None = None) -> ChangesAnswer:
        """What changed since the attempt before, or since the one of that number."""
        options = {} if since is None else {"params": {"since": since}}
        return ChangesAnswer.of(self._ask("GET", f"/attempts/{attempt_id}/changes", **options).json())

    def report(self, attempt_id: int) -> str:
        """The report as one HTML file."""
        return self._ask("GET", f"/attempts/{attempt_id}/report", headers={"Accept": "text/html"}).text

    def cancel(self, attempt_id: int) -> str:
        """Cancel an attempt; what became of that."""
        return str(self._ask("POST", f"/attempts/{attempt_id}/cancel").json().get("result", ""))

    def _mapping(self, path: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._ask("GET", path).json()
        return answer

    def _list(self, path: str, name: str = "", **options: Any) -> Sequence[Mapping[str, Any]]:
        answer = self._ask("GET", path, **options).json()
        found: Sequence[Mapping[str, Any]] = answer[name] if name else answer
        return found

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask until there is an answer, or patience ends.

        Raises:
            UsageError: the service refuses; InfraError: it cannot be reached, or fails.
        """
        until = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            wait_s, response = pause_s, self._try(method, path, options)
            if isinstance(response, httpx.Response):
                if not _again(response):
                    return self._checked(response)
                why = "is busy" if response.status_code == 429 else "is not ready"
                wait_s = max(pause_s, retry_after(response) or 0.0)
            else:
                why = f"does not answer ({reason_of(response)})"
            if time.monotonic() + wait_s > until or wait_s > _LONGEST_PAUSE_S:
                if isinstance(response, httpx.Response):
                    return self._checked(response)
                raise InfraError(f"{self.url} {why}") from response
            self._waiting(wait_s, f"{self.url} {why}")
            time.sleep(wait_s)
            pause_s = min(pause_s * 2, 10.0)

    def _try(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response | httpx.TransportError:
        try:
            return self._http.request(method, path, **options)
        except httpx.TransportError as error:
            # A name or a certificate that is wrong stays wrong.
            if is_hopeless(error):
                raise InfraError(f"{self.url} cannot be reached: {reason_of(error)}") from error
            return error

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            if not _is_ours(response):
                raise UsageError(f"{self.url} answers, but is no grader of this version")
            return response
        raise refusal(self.url, response)


def _body(submission: Submission) -> dict[str, Any]:
    files = [{"path": file.path, "text": file.text} for file in submission.files]
    return {"name": submission.name, "files": files}


def _is_ours(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "").split(";")[0]
    return kind == "application/json" or (kind == "text/html" and response.url.path.endswith("/report"))


def _again(response: httpx.Response) -> bool:
    # A limit of the course is a refusal, and no matter of patience: it comes without a time to wait.
    busy = response.status_code == 429 and "retry-after" in response.headers
    return busy or response.status_code in _AWAY
