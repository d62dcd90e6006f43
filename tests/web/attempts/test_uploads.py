"""Uploads, honest and hostile: what is no submission is refused with what to do, and leaves nothing behind."""

from __future__ import annotations

import resource
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import httpx2
import pytest

from grader.catalog.submissions.learner_files import MAX_FILES
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.submissions import source_of
from grader.store.tables.api_token import Scope
from grader.web.security import body_limits
from tests.notebooks.notebook_files import notebook
from tests.web import archives
from tests.web.archives import SCRIPT
from tests.web.conftest import School, Served

Parts = list[tuple[str, tuple[str | None, bytes]]]


def _files(**named: bytes) -> Parts:
    return [("files", (name, content)) for name, content in named.items()]


def _upload(school: School, parts: Parts, data: dict[str, str] | None = None) -> httpx2.Response:
    program = school.program(school.token("anna", Scope.SUBMIT))
    answer: httpx2.Response = program.post(
        f"/api/v1/course-tasks/{school.task}/submissions", files=parts, data=data
    )
    return answer


def _taken(school: School, parts: Parts, data: dict[str, str] | None = None) -> dict[str, str]:
    answer = _upload(school, parts, data)
    assert answer.status_code == 202, answer.text
    source = source_of(school.store, answer.json()["attempt_id"])
    assert source is not None
    return {file.path: file.text for file in source.files}


def _refused(school: School, parts: Parts, *words: str, status: int = 400) -> None:
    answer = _upload(school, parts)
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    message = answer.json()["error"]["message"]
    for word in words:
        assert word in message, message
    assert not attempts(school.store, AttemptFilter()), "something was kept"


HELPER = b"VALUE = 1\n"


def test_a_script_of_any_name_becomes_the_one_that_is_started(school: School) -> None:
    assert _taken(school, _files(**{"my solution.py": SCRIPT})) == {"train.py": SCRIPT.decode()}


def test_an_editors_mark_before_the_text_is_left_out(school: School) -> None:
    assert _taken(school, _files(**{"a.py": b"\xef\xbb\xbf" + SCRIPT})) == {"train.py": SCRIPT.decode()}


def test_several_files_keep_their_names(school: School) -> None:
    taken = _taken(school, _files(**{"train.py": SCRIPT, "lib/helper.py": HELPER}))
    assert taken == {"train.py": SCRIPT.decode(), "lib/helper.py": HELPER.decode()}


def test_a_zip_file_is_read_as_its_folder_would_be(school: School) -> None:
    plain = archives.packed({"train.py": SCRIPT, "lib/helper.py": HELPER})
    wrapped = archives.packed(
        {
            "mine/train.py": SCRIPT,
            "mine/lib/helper.py": HELPER,
            "mine/data.bin": b"\0" * 100,
            "mine/.git/config": b"x",
            "__MACOSX/mine/._train.py": b"\0",
            "mine/__pycache__/x.pyc": b"\0",
        }
    )
    for content in (plain, wrapped):
        assert _taken(school, _files(**{"mine.zip": content})) == {
            "train.py": SCRIPT.decode(),
            "lib/helper.py": HELPER.decode(),
        }


def test_pasted_text_is_a_submission(school: School) -> None:
    assert _taken(school, [("text", (None, b"print(1)\r\nprint(2)\r\n"))]) == {
        "train.py": "print(1)\nprint(2)\n"
    }


LAB = notebook(("markdown", "# Lab"), "%%writefile train.py\nimport helper\n", "print('tried')")
SCRIPT_OF_LAB = "# %% cell 2 of lab.ipynb\nimport helper\n"


def test_a_notebook_is_the_scripts_that_it_holds(school: School) -> None:
    assert _taken(school, _files(**{"lab.ipynb": LAB})) == {"train.py": SCRIPT_OF_LAB}
    both = _taken(school, _files(**{"lab.ipynb": LAB, "helper.py": HELPER}))
    assert both == {"train.py": SCRIPT_OF_LAB, "helper.py": HELPER.decode()}
    packed = archives.packed({"work/lab.ipynb": LAB, "work/helper.py": HELPER})
    assert _taken(school, _files(**{"lab.zip": packed})) == both
    as_json = school.program(school.token("anna", Scope.SUBMIT)).post(
        f"/api/v1/course-tasks/{school.task}/submissions",
        json={"name": "lab", "files": [{"path": "lab.ipynb", "text": LAB.decode()}]},
    )
    assert as_json.status_code == 202


def test_beside_the_script_a_notebook_in_an_archive_is_where_somebody_tried_things(school: School) -> None:
    packed = archives.packed({"a/lab.ipynb": LAB, "a/train.py": SCRIPT, "a/old.ipynb": b"{}"})
    assert _taken(school, _files(**{"a.zip": packed})) == {"train.py": SCRIPT.decode()}


def test_a_notebook_that_cannot_be_told_is_refused(school: School) -> None:
    _refused(school, _files(**{"lab.ipynb": b"{}"}), "lab.ipynb is no notebook")
    _refused(school, _files(**{"lab.ipynb": LAB, "train.py": SCRIPT}), "train.py was sent twice")
    packed = archives.packed({"a.ipynb": LAB, "b.ipynb": LAB})
    _refused(school, _files(**{"labs.zip": packed}), "2 notebooks")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([("name", (None, b"mine"))], "Nothing was uploaded"),
        (_files(**{"train.py": b"  \n"}), "empty"),
        (_files(**{"train.py": b"print(1)\0"}), "binary"),
        (_files(**{"train.py": "größe = 1".encode("latin-1")}), "UTF-8"),
        (_files(**{"weights.pt": b"x"}), ".py"),
        (_files(**{"a.tar.gz": b"x"}), "ZIP"),
        (_files(**{"a.py": SCRIPT, "b.py": SCRIPT}), "train.py"),
        ([*_files(**{"train.py": SCRIPT}), *_files(**{"train.py": HELPER})], "twice"),
        (_files(**{"train.py": SCRIPT, "TRAIN.py": SCRIPT}), "twice"),
        (_files(**{"train.py": SCRIPT, "a.py": SCRIPT, "a.py/b.py": SCRIPT}), "folder"),
        (_files(**{"train.py": b"#" * ((1 << 20) + 1)}), "1 MiB"),
        ([("files", (f"m{n}.py", SCRIPT)) for n in range(MAX_FILES + 1)], "64 files"),
        (_files(**{"train.py": SCRIPT, "../../evil.py": SCRIPT}), "points out"),
        (_files(**{"/etc/cron.d/evil.py": SCRIPT}), "absolute"),
        (_files(**{"train.py": SCRIPT, "a\u202egnp.py": SCRIPT}), "Rename"),
        (_files(**{"x/" * 9 + "a.py": SCRIPT}), "too long"),
    ],
)
def test_what_is_no_submission_is_refused_with_what_to_do(school: School, parts: Parts, words: str) -> None:
    _refused(school, parts, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04 not really", "no ZIP"),
        (archives.packed({"train.py": SCRIPT})[:-30], "ZIP file"),
        (archives.packed({"readme.txt": b"x"}), "no .py"),
        (archives.packed({"a.py": SCRIPT, "b.py": SCRIPT}), "train.py"),
        (archives.renamed("../../evil.py"), "points out"),
        (archives.renamed("/etc/evil.py"), "absolute"),
        (archives.renamed("..\\..\\evil.py"), "absolute"),
        (archives.renamed("a\x1b[2J.py"), "Rename"),
        (archives.renamed("a/../../b.py"), "points out"),
        (archives.with_mode("link.py", b"/etc/passwd", stat.S_IFLNK | 0o777), "link"),
        (archives.with_mode("pipe.py", b"", stat.S_IFIFO | 0o600), "special"),
        (archives.with_mode("device.py", b"", stat.S_IFCHR | 0o600), "special"),
        (archives.with_mode("folder", b"/", stat.S_IFLNK | 0o777), "link"),
        (archives.encrypted(), "encrypted"),
        (archives.bomb(), "1 MiB"),
        (archives.lying_bomb(), "ZIP"),
        (archives.overlapping(), "overlap"),
        (archives.packed({f"m{n}.py": b"#" * (1 << 20) for n in range(6)} | {"train.py": SCRIPT}), "4 MiB"),
        (archives.packed({f"m{n}.py": SCRIPT for n in range(70)}), "too many"),
    ],
    ids=[
        "no zip", "cut off", "no script", "no train.py", "slip", "absolute", "backslashes", "ansi", "inner slip",
        "symlink", "fifo", "device", "linked folder", "encrypted", "bomb", "lying bomb", "overlap", "large", "many",
    ],
)  # fmt: skip
def test_hostile_archives_are_refused(school: School, content: bytes, words: str) -> None:
    _refused(school, _files(**{"upload.zip": content}), words)


def test_no_archive_takes_more_memory_than_a_submission_may_have(school: School) -> None:
    """Bombs of every kind in turn: what the process needed at most hardly grows."""
    _upload(school, _files(**{"warm.zip": archives.packed({"train.py": b"#" * (1 << 20)})}))
    attacks = [
        archives.bomb(size=256 << 20),
        archives.lying_bomb(256 << 20),
        archives.overlapping(),
        archives.crowded(),
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content in attacks:
        assert len(content) < school.service.max_upload_bytes
        assert _upload(school, _files(**{"upload.zip": content})).status_code == 400
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < 64 << 20, f"{grown >> 20} MiB more"


def test_what_is_announced_too_large_is_refused_before_it_comes(served: Served) -> None:
    """The client has sent the head alone; the answer is there all the same."""
    school = served.school
    host, port = served.url.removeprefix("http://").split(":")
    token = school.token("anna", Scope.SUBMIT)
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(
            f"POST /api/v1/course-tasks/{school.task}/submissions HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {1 << 40}\r\n\r\n".encode()
        )
        assert b" 413 " in connection.recv(4096)


def test_what_turns_out_too_large_is_refused_while_it_comes(served: Served) -> None:
    school = served.school
    chunk = b"x" * (1 << 16)
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += len(chunk)
            yield chunk

    with served.client(headers={"Authorization": f"Bearer {school.token('anna', Scope.SUBMIT)}"}) as client:
        try:
            answer = client.post(
                f"/api/v1/course-tasks/{school.task}/submissions",
                content=endless(),
                headers={"content-type": "application/json"},
            )
            assert answer.status_code == 413
        except (OSError, httpx.TransportError):
            pass  # the server has hung up on us, which is as good
    assert sent < 64 << 20, "it went on reading"


def test_strangers_may_not_bring_much(school: School) -> None:
    client = school.client()
    assert client.post("/sign-in", data={"login": "x" * 100_000}).status_code == 413


def test_very_many_parts_are_refused(school: School) -> None:
    parts: Parts = [("files", (f"m{n}.py", b"x")) for n in range(500)]
    assert _upload(school, parts).status_code == 400
    fields = {f"f{n}": "x" for n in range(500)}
    assert _upload(school, _files(**{"train.py": SCRIPT}), fields).status_code == 400
    assert not attempts(school.store, AttemptFilter())


def test_a_slow_upload_is_ended_and_holds_up_nobody(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limits, "IDLE_S", 0.3)
    school = served.school
    host, port = served.url.removeprefix("http://").split(":")
    token = school.token("anna", Scope.SUBMIT)
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(
            f"POST /api/v1/course-tasks/{school.task}/submissions HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: 1000\r\n\r\n{{".encode()
        )
        with served.client() as client:
            assert client.get("/healthz").status_code == 200
        assert b" 408 " in connection.recv(4096)


def test_nothing_of_an_upload_lies_about_afterwards(school: School, tmp_path: Path) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    _upload(school, _files(**{"upload.zip": archives.renamed("../../evil.py")}))
    _upload(school, _files(**{"train.py": SCRIPT, "../../evil.py": SCRIPT}))
    after = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in after - before if "grader.db" not in path.name} == set()
    assert not list(tmp_path.parent.rglob("evil.py"))
